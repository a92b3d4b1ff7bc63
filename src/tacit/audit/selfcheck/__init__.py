"""The package's own mechanisms and planted mistakes, audited by `tacit audit all`.

In reading order:

    planted          what the audits must find
    attacked_tables  how often attacks on published tables are nearly right
    registry         one case for each kind of noise, and the table of all audits
"""
