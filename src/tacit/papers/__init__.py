"""Papers: figures and tables of the documents that Tacit implements, recomputed beside what they claim.

Nothing here protects anybody: data sets are public, and baselines are what we compare with, never what a session uses.

In reading order:

    data         where the data sets are
    results      claims of a paper beside our numbers
    figures_002  document 002, asymmetric differential privacy
    lists_002    its lists of the largest counts
    places_002   its safe and unsafe places
    monitoring   its maps of places
    baselines    mechanisms of others
    trials       many runs on known counts
    charts_002   the figures, drawn
"""
