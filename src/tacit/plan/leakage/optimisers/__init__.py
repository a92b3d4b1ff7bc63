"""Optimisers of release probabilities under limits on leakage; each says how far from the best it can be.

In reading order:

    convex_program  the most releases under convex limits, with a certificate
    epsilon_sum     the largest sum of epsilons, globally
    mixed_slopes    how much slopes of joint informations change
    one_limit       the largest sum of epsilons under one limit, to any gap
    monotone_boxes  the best under limits that rise, globally
    curved_boxes    the same, with bounds that close with the square of a box
"""
