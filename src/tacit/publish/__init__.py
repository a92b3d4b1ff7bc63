"""Tables for everybody: rows whose sensitive values are perturbed, so that much is learnt about many, little about few.

In reading order:

    groups     people who agree in every public column
    criterion  when an estimate about a few people is too good
"""
