"""Document 002: asymmetric differential privacy.

In reading order:

    figures     document 002, asymmetric differential privacy
    errors      its claims about errors and certainty, from the laws alone
    lists       its lists of the largest counts
    goals       what our lists should reach
    places      its safe and unsafe places
    monitoring  its maps of places
    baselines   mechanisms of others
    trials      many runs on known counts
    charts      the figures, drawn
"""
