"""Document 004: disclosure and reconstruction privacy.

In reading order:

    figures                document 004, disclosure and reconstruction privacy
    tables                 its tables of people
    examples               its examples and small tables
    theorems               its lemmas, theorems and corollaries
    disclosures            what noisy answers disclose
    charts                 the figures, drawn
    violations             groups that are too large, by its criterion and exactly
    workload               its count queries, and how wrong they are answered
    own_rows               what the own row of a group adds
    reconstruction         its chapter 4: criteria, publications, attacks
    reconstruction_charts  its figures, drawn
"""
