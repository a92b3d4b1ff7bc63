"""What we show: charts of releases, tables for the terminal, one HTML report, and the folder that is published.

Everything here works on plans, records and ledger accounts, which are public, but for the chart of a disclosure audit,
which is for the curator and says so; rows are never opened in this stage.

    views             the parts of charts, and the registries of questions
    linear_charts     counts, tables, lines and sums
    derived_charts    means and quantiles
    cluster_charts    centres among cells
    record_charts     records as they are
    selection_charts  verdicts, and what was chosen
    charts            one chart for every kind of question
    asking_graph      who asks for what, what depends on what, and who colludes
    leakage_charts    what applications could learn from what is left out
    monitor_chart     verdicts over time, and a map of places
    disclosure_chart  what is disclosed, and how wrong counts are, against epsilon
    text              tables for the terminal
    csv_tables        released numbers as files for colleagues
    html              the report that a privacy officer shows to a lawyer
    draft_folder      the folder that results are written to before it gets its name
    publish           a job's results as one folder, all or nothing
    publish_table     a table in such a folder
"""
