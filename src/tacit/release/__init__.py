"""Rows are opened here, and nowhere else.

`session` is the order of events: plan, charge (`ledger`), count (`rows`, `answers`), blur, estimate (`estimate`),
record (`record`). `selected` does this for choices, `tilted_estimates` reads their values, `asking` answers one
question at a time. `job` does the same for a file of releases; `draft` drafts a policy from a table.
"""
