"""What a release leaves behind.

In reading order:

    value_files    released numbers as CSV, large tables as Parquet, and as texts
    record         what every release leaves behind, and plain answers
    ranges         answers about a line or a grid: any range can be read off
    derived        questions that are made of several parts; clusters
    selections     verdicts, rankings, lists
    true_records   records as they are
    shown_records  from rows to these
"""
