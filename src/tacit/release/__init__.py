"""Plan, charge, count, blur, estimate, certify.

In reading order:

    session        the order of events: everything is refused or charged before rows are opened
    publication    paid outputs that are not answers to questions: tables
    planner        plans, each made once
    leakage_watch  limits on what applications learn from single records
    certificate    what is promised
    estimate       from measurements to estimates and intervals
    split          groups of people that together cost as much as the dearest
    curator        what is for the holder of the rows alone
    budget         what a session may spend, and how it pays
    execute        what was paid for, drawn once
    interactive    one question at a time
    results        what a release leaves behind, one module for each kind
"""
