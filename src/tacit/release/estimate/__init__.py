"""From noisy measurements to estimates and their intervals: post-processing, which costs no privacy.

In reading order:

    measure      true answers, which never leave this stage, and noisy measurements
    projections  exact totals, rising counts, no negative counts, tables that agree with each other
    infer        from measurements to estimates with their errors
    tilted       values of chosen counts
"""
