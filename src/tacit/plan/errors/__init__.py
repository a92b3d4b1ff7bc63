"""Expected errors of a plan, and the laws of the errors of its answers.

In reading order:

    error_laws   the laws of the errors of estimates
    runs         runs of values, and how wrong their counts are
    line_errors  how wrong counts on a line are, for noise made for lines
    predict      the expected error
"""
