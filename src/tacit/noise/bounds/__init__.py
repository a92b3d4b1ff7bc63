"""Bounds that contain the error of an estimate with a stated probability.

In reading order:

    log_concave   bounds on noise whose variance is known
    of_sums       bounds on sums of noises
    coverage      bounds on the noise of one answer
    of_variances  the same for sums of very many, from their variance
"""
