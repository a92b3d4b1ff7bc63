"""The package's own mechanisms and planted mistakes, audited by `tacit audit all`.

In reading order:

    planted         what the audits must find
    table_subjects  ways to publish a table, ready to be audited
    registry        one case for each way in which answers are blurred
    table           the table of all audits
"""
