"""Papers: figures and tables of the documents that Tacit implements, recomputed beside what they claim.

Nothing here protects anybody: data sets are public, and baselines are what we compare with, never what a session uses.

In reading order:

    data             where the data sets are
    streams          the same noise for everybody
    results          claims of a paper beside our numbers
    figures_001      document 001, one-sided privacy of attributes that depend on each other
    theorems_001     its theorems over a grid: printed, enumerated, computed, drawn
    claims_001       what it claims, and where that ends
    occupancy        rooms over days, and what a day comes to
    building_001     the building of its examples: attributes, decisions, the trade-off
    charts_001       the figures, drawn
    figures_002      document 002, asymmetric differential privacy
    errors_002       its claims about errors and certainty, from the laws alone
    lists_002        its lists of the largest counts
    goals_002        what our lists should reach
    places_002       its safe and unsafe places
    monitoring       its maps of places
    baselines        mechanisms of others
    trials           many runs on known counts
    charts_002       the figures, drawn
    figures_003      document 003, Blowfish privacy
    theorems_003     its theorems and examples: claimed, true and ours
    composition_003  its sections on knowledge and composition
    constraints_003  neighbours under public knowledge, by definition
    ranges_003       its counts of ranges
    ordered_003      its mechanisms for ranges, as printed and repaired
    line_trials      many runs on the counts of a line
    clusters_003     its clusters
    kmeans_003       its k-means, as printed and with valid noise
    charts_003       the figures, drawn
    figures_004      document 004, disclosure and reconstruction privacy
    parts            what a part of it comes to
    tables_004       its tables of people
    examples_004     its examples and small tables
    disclosures_004  what noisy answers disclose
    charts_004       the figures, drawn
    violations_004   groups that are too large, by its criterion and exactly
    workload_004     its count queries, and how wrong they are answered
    reconstruction_004  its chapter 4: criteria, publications, attacks
    charts_reconstruction_004  its figures, drawn
"""
