"""Policies in plain words: for the person who signs one.

In reading order:

    pair        what is promised about two records
    describe    a policy in plain words
"""
