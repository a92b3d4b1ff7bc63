"""Ways to publish the counts of personal groups: what each draws, estimates and promises.

In reading order:

    criterion       when an estimate about a few people is too good
    method          what every way to publish says about itself
    both_tails      how wide masks are for each tail
    lumps           masks of two values for each tail
    perturbation    uniform perturbation
    sampled         a perturbed sample of each group
    groupwise       a retention for each size of a group
    masked          private counts, each masked by noise that grows with it
    masked_columns  the same for several columns: masks are multiplied
    grown           masks of groups to which records came later
    intervals       how far from the truth what is published may be
"""
