"""Cube noise: many numbers at once, of which one person moves any subset by one.

In reading order:

    draws   the radius of a cube: exact draws
    radius  the radius of a cube: expectations
    law     many numbers at once
    tilted  noise for counts that were chosen because they are large
"""
