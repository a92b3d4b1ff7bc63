"""Plan, charge, count, add noise, estimate, certify.

In reading order:

    session      the order of events: everything is refused or charged before rows are opened
    publication  paid outputs that are not answers to questions: tables
    planner      plans, each made once
    certificate  what is promised
    budget       what a session may spend, how it pays, and limits on what applications learn from single records
    execute      what was paid for, drawn once
    split        groups of people that together cost as much as the dearest
    interactive  one question at a time
    estimate     from measurements to estimates and intervals
    results      what a release leaves behind
    curator      what is for the holder of the rows alone
"""
