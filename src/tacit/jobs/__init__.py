"""The files that people write (jobs, cases, tables, monitors): read, planned and run.

In reading order:

    case_dependence  how attributes of a case depend on each other, as its file says
    job_file         a file of releases
    case_file        the same with a dependence: who is shown what, and what may be learned
    job_plan         what it would cost, and whether it could run
    job_run          pay for it and make its releases
    monitor_file     a file that asks for a monitor
    table_file       a file that asks for a table
"""
