"""From noisy measurements to estimates and their intervals: post-processing, which costs no privacy.

In reading order:

    answers         true answers, which never leave this stage
    cell_estimates  post-processing of one table: exact totals, order, no negative counts
    measure         noisy entries, and what no secret edge changes
    shared_sums     which sums tables have in common, and how many are too many
    agree           tables that agree with each other
    infer           from measurements to estimates with their errors
    tilted          values of chosen counts
"""
