"""Exact amounts as short texts."""

from __future__ import annotations

from fractions import Fraction


def shown(amount: Fraction) -> str:
    """Return a short exact text for an amount: 0.2, or 1/3 where decimals do not end.

    >>> shown(Fraction(1, 5)), shown(Fraction(1, 3))
    ('0.2', '1/3')
    """
    decimal = f"{float(amount):.12g}"
    return decimal if Fraction(decimal) == amount else str(amount)
