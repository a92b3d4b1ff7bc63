"""Document 001: one-sided privacy of attributes that depend on each other.

In reading order:

    figures       document 001, one-sided privacy of attributes that depend on each other
    closed_forms  its formulas for two yes/no attributes
    theorems      its theorems over a grid: printed, enumerated, computed, drawn
    claims        what it claims, and where that ends
    occupancy     rooms over days, and what a day comes to
    building      the building of its examples: attributes, decisions, the trade-off
    months        what a month of arrivals tells about a hidden day
    charts        the figures, drawn
"""
