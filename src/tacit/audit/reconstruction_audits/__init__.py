"""How well a few people's values can be estimated from a table that is published.

In reading order:

    reconstruction_audit    which personal groups can be estimated too well
    own_rows                what a group's own row of a table adds
    reconstruction_attacks  tables that are wrong on purpose, and the attacks that show it
    attacked_tables         how often such attacks are nearly right
"""
