"""Plan, charge, count, blur, estimate, certify.

In reading order:

    session           the order of events: everything is refused or charged before rows are opened
    purse             what a session may spend, and how it pays
    drawn             what was paid for, drawn once
    publication       what it pays for that is no answer to a question
    planner           plans, each made once
    leakage_watch     limits on what applications learn from single records
    certificate       what is promised
    answers           true answers, which never leave this stage
    measure           noisy entries, and what no secret edge changes
    infer             from measurements to estimates with their errors
    estimate          post-processing of one table: exact totals, order, no negative counts
    shared_sums       which sums tables have in common, and how many are too many
    agree             tables that agree with each other
    record            what a release leaves behind
    line              the same for questions about a line: any range can be read off
    listed_ranges     the same for ranges that were measured by themselves: no other can be told
    derived           questions that are made of several parts
    clusters          centres, and who is nearest to which
    rectangles        counts of rectangles, from the estimates of all cells
    selected          the same for choices: verdicts, rankings, lists
    true_records      records as they are
    show_records      from rows to these
    gathered_records  batches of them, put together
    tilted_estimates  values of chosen counts
    asking            one question at a time
    split             groups of people that together cost as much as the dearest
    job_file          a file of releases: what it says
    case_dependence   how attributes of a case depend on each other, as its file says
    case_options      what it may say about its plan and its limits
    case_file         the same with a dependence: who is shown what, and what may be learned
    job_plan          what it would cost, and whether it could run
    job_run           pay for it and make its releases
    curator           whom true counts are for
    private_counts    true counts for audits, for the curator
    key_check         whether a key names every row once
    row_check         which cells of the rows do not fit the domain
    table_file        released numbers as CSV, large tables as Parquet
    number_texts      released numbers as people read them
"""
