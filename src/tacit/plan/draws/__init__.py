"""The draws of plans: true counts go in, noisy ones come out.

In reading order:

    additive     add the noise of a plan to true answers
    suppression  show records where they are no secret
    thresholds   compare counts with a threshold
    top_k        choose the largest counts, then measure them
    selection    the right one of these for a plan
    zoom         look at cells, then count those anew where people are
"""
