"""Plans of leakage: which epsilons release the most while nobody learns more than a limit about what is protected.

In reading order:

    measured_tables     joint tables, by value or as sensitive or not
    convex_terms        what single releases say, convex in the release probability
    joint_terms         what several releases say together, and a convex function that is never less
    posterior_terms     how sure any outcome could make
    setting             who is shown what, and what must not be learned, checked
    convex_program      the most releases under convex limits, with a certificate
    epsilon_sum         the largest sum of epsilons, globally
    mixed_slopes        how much slopes of joint informations change
    one_limit           the same under one limit, to any gap
    monotone_boxes      the best under limits that rise, globally
    curved_boxes        the same, with bounds that close with the square of a box
    posterior_limit     what of that can be limited
    coalition_budget    what coalitions may be shown
    changed_dependence  how much leakage changes with the dependence
    leakage_plan        what a plan says
    budget              the plan
    shown               what a release shows of single records, and to whom
"""
