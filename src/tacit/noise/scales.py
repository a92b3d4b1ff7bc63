"""Scales of noise: exact fractions, within what the samplers can draw."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from tacit.amounts import as_fraction
from tacit.errors import PlanError

ScaleLike = int | float | str | Decimal | Fraction

SMALLEST_SCALE = Fraction(1, 100)
LARGEST_SCALE = Fraction(10**12)


def as_scale(value: ScaleLike, *, key: str = "scale", zero: bool = False) -> Fraction:
    """Return a scale as an exact fraction in [1/100, 10^12]; `zero` also allows 0, a side that carries nothing.

    >>> as_scale(0.2), as_scale("1/3"), as_scale(0, zero=True)
    (Fraction(1, 5), Fraction(1, 3), Fraction(0, 1))
    """
    scale = as_fraction(value, key=key)
    if zero and scale == 0:
        return scale
    if scale <= 0:
        rule = "must be zero or positive" if zero else "must be positive"
        raise PlanError(rule, key=key, given=value, fix="A scale is the step of the query divided by epsilon.")
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        fix = "Below, the noise is almost surely zero; above, it hides any count. Check epsilon and the units."
        raise PlanError("must lie between 0.01 and 10^12", key=key, given=value, fix=fix)
    return scale
