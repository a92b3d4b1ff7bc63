"""What a release leaves behind: one module for each kind of answer.

In reading order:

    value_files       released numbers as CSV, large tables as Parquet
    number_texts      released numbers as people read them
    record            what a release leaves behind
    line              the same for questions about a line: any range can be read off
    derived           questions that are made of several parts
    clusters          centres, and who is nearest to which
    listed_ranges     the same for ranges that were measured by themselves: no other can be told
    rectangles        counts of rectangles, from the estimates of all cells
    selections        the same for choices: verdicts, rankings, lists
    true_records      records as they are
    assemble_records  batches of them, put together
    suppress_records  from rows to these
"""
