"""What we show: charts of releases, tables for the terminal, one HTML report, and the folder that is published.

All of it works on plans, records and ledger accounts, which are public, except the chart of a disclosure audit: that is
for the curator, and says so. This stage never opens rows.

In reading order:

    charts        charts of releases, audits and monitors
    text          tables for the terminal
    csv_tables    released numbers as files for colleagues
    page          what every page has in common
    shown_tables  the tables of a report
    html          the report that a privacy officer shows to a lawyer and a board
    workbook      released numbers as one workbook
    notebook      what a notebook shows of everything that somebody holds
    progress      a bar for who waits
    draft_folder  the folder that results are written to before it gets its name
    job_folder    the results of a job as one folder, complete or not there
    table_folder  a published table in such a folder
    audit_page    an audit of what applications could learn
"""
