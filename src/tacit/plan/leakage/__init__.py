"""Plans of leakage: which epsilons release the most while nobody learns more than a limit about what is protected.

In reading order:

    measures            what releases say about protected attributes
    setting             who is shown what, and what must not be learned, checked
    optimisers          the best release probabilities under limits
    posterior_limit     what of that can be limited
    coalition_budget    what coalitions may be shown
    changed_dependence  how much leakage changes with the dependence
    leakage_plan        what a plan says
    budget              the plan
    shown               what a release shows of single records, and to whom
"""
