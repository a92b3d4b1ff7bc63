"""Figures and tables of the documents that Tacit implements, recomputed beside what they claim.

Nothing here protects anybody: data sets are public, and baselines are what we compare with, never what a session uses.

In reading order:

    data          where the data sets are
    measured      numbers over many runs
    marks         what charts are made of
    results       claims beside our numbers, and tables
    reproduction  how a document is recomputed, part by part
    document_001  one-sided privacy of attributes that depend on each other
    document_002  asymmetric differential privacy
    document_003  Blowfish privacy
    document_004  disclosure and reconstruction privacy
    command       what `tacit reproduce` and `tacit bench` do
"""
