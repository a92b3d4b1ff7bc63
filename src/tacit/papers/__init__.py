"""Papers: figures and tables of the documents that Tacit implements, recomputed beside what they claim.

Nothing here protects anybody: data sets are public, and baselines are what we compare with, never what a session uses.
"""
