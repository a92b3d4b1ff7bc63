"""Document 003: Blowfish privacy.

In reading order:

    figures      document 003, Blowfish privacy
    theorems     its theorems and examples: claimed, true and ours
    composition  its sections on knowledge and composition
    adversaries  beliefs beside its losses, and the axioms of privacy
    constraints  neighbours under public knowledge, by definition
    ranges       its counts of ranges
    ordered      its mechanisms for ranges, as printed and repaired
    orders       what it says about orders of magnitude
    line_trials  many runs on the counts of a line
    clusters     its clusters
    kmeans       its k-means, as printed and with valid noise
    charts       the figures, drawn
"""
