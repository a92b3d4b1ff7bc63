"""Sampled audits: what outputs alone show about a mechanism.

In reading order:

    canonical        what a reader sees of an output
    features         where in an output a leak may show
    made_up          made-up data sets, as rows that a session can open
    neighbour_check  data sets that are given for an audit
    outputs          what belongs to a call, and what to each of its outputs
    draws            outputs, drawn many at a time
    shown_records    what is shown of true records
    trees            a small classifier for outputs with structure
    events           events that tell two samples apart
    sampled_audit    the sampled audit
    releases         the audit of a whole release
    subjects         mechanisms of this package, ready to be audited
    audit_row        one line of what such an audit comes to
"""
