"""What we show: charts of releases, tables for the terminal, one HTML report, and the folder that is published.

Everything here works on plans, records and ledger accounts, which are public, but for the chart of a disclosure audit,
which is for the curator and says so; rows are never opened in this stage.

In reading order:

    charts        charts, one module for each kind of answer
    text          tables for the terminal
    csv_tables    released numbers as files for colleagues
    html          the report that a privacy officer shows to a lawyer
    draft_folder  the folder that results are written to before it gets its name
    job_folder    a job's results as one folder, all or nothing
    table_folder  a table in such a folder
    monitors      what monitors have said, as a table and as files
"""
