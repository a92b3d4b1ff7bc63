"""How answers are blurred: one module for each mechanism. Randomness comes from `tacit.noise` alone.

In reading order:

    additive     add the noise of a plan to true answers
    zoom         look at cells, then count those anew where people are
    thresholds   compare counts with a threshold
    top_k        choose the largest counts, then measure them
    selection    the right one of these for a plan
    suppression  show records where they are no secret
    local        randomised response of single people
    alarm        is a count below a threshold, for monitors
"""
