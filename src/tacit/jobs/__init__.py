"""The files that people write (jobs, cases, tables, monitors): read, planned and run.

In reading order:

    job_file         a file of releases
    shares           what each release costs, where the file says how accurate it must be or shares a budget
    variables        `${DATE}` in such files
    results_folder   where results go, and whether they are there already
    job_run          what it would cost, whether it could run, and running it
    case_dependence  how attributes of a case depend on each other, as its file says
    case_file        a job with a dependence: who is shown what, and what may be learned
    monitor_file     a file that asks for a monitor
    table_file       a file that asks for a table
"""
