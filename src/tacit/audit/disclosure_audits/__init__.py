"""What noisy answers and tables tell of groups of people; these audits read private data, for the curator.

In reading order:

    ratios        what the ratio of two noisy counts tells
    whole_ratios  the same for what is published: whole noise, exact sizes, sums
    confidences   groups of people with their sensitive values, and what readers see of them
    disclosures   what is told of them, at this cost and at others
    yardsticks    how similar the rows of a table are
"""
