"""Sampled audits: what outputs alone show about a mechanism.

In reading order:

    canonical      what a reader sees of an output
    views          where in an output a leak may show
    made_up        made-up data sets, as rows that a session can open
    draws          outputs, drawn many at a time
    shown_records  what is shown of true records
    events         events that tell two samples apart
    sampled_audit  the sampled audit
    releases       the audit of a whole release
    subjects       mechanisms of this package under audit, and one line of what that comes to
"""
