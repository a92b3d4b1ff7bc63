"""Plans of leakage: which epsilons release the most while nobody learns more than a limit about what is protected.

In reading order:

    informations     what each release says about each protected attribute
    outcomes         what coalitions learn from all that they see
    setting          who is shown what, and what must not be learned, checked
    convex_program   the most releases, or the largest sum of epsilons, under convex limits
    one_limit        the largest sum of epsilons under one limit, to any gap
    coalition_boxes  the best for the few lines of a coalition
    leakage_plan     what a plan says, and how it changes with the dependence
    budget           the plan
    shown            what a release shows of single records, of which days and people, and to whom
"""
