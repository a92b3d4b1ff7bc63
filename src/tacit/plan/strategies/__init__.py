"""Ways to measure a line: which sums, with which noise, and what follows from them.

In reading order:

    joint          one noise for all running counts: its block and its rates
"""
