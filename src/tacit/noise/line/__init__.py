"""Joint noise on running counts, in the shape of what one person can change along a line.

In reading order:

    messages   the parts of such noise: what they weigh together
    cells      the parts of such noise: cells, and their rates
    moments    second moments of such noise, between two exact counts
    splits     the parts of such noise: exact draws of one, given two
    tables     the parts of such noise: tables that keep the promise
    draws      the parts of such noise: all of them
    variances  variances of such noise, of any run
    law        running counts, all at once
"""
