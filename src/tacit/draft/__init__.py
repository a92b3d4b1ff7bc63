"""First drafts of policy files from column names and types, for `tacit init`.

In reading order:

    draft  a first draft of a policy
"""
