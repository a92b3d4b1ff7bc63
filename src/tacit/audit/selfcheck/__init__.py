"""The package's own mechanisms and planted mistakes, audited by `tacit audit all`.

In reading order:

    planted          what the audits must find
    registry         one case for each way in which answers are blurred
    attacked_tables  how often attacks on published tables are nearly right
    table            the table of all audits
"""
