"""Joint noise on running counts, in the shape of what one person can change along a line.

In reading order:

    law        the law of such noise, and what it costs
    messages   rates and cells, and what a cell weighs, given its sum
    tables     tables that noise is drawn with, and what rounding in them costs
    draws      exact draws of one part given the whole, and of a whole line
    moments    second moments between two exact counts
    variances  variances of any run
"""
