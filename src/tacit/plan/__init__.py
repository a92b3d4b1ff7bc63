"""What is asked, and at what cost: everything here is computed from the policy and public parameters.

In reading order:

    queries          what can be asked
    tally            what rows are counted for
    asked            questions as users and files write them, checked
    responses        how answers move with one record
    steps            how far they move along secret edges
    coupling         the same under public knowledge
    directions       which answers can rise, which can fall
    noise_for        the least noise that hides a step
    totals           what no secret edge changes
    sums             sums of noisy cells with exact totals
    predict          the expected error
    any_plan         what every plan has
    choose           a whole plan
    coverage         bounds on the noise of one answer
    explain          a plan in words

Questions whose answer is a choice have plans of their own kind:

    selections       what can be asked
    selection_plan   what such plans share
    selection_noise  the least noise that hides a choice
    verdicts         `below` and `above`
    ranking          `top_k`
"""
