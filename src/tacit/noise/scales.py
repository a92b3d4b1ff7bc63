"""Scales of noise, and exact numbers as people write them."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

from tacit.errors import PlanError, decimal_comma, is_word, kind_of

ScaleLike = int | float | str | Decimal | Fraction

SMALLEST_SCALE = Fraction(1, 100)
LARGEST_SCALE = Fraction(10**12)


def as_fraction(value: ScaleLike, *, key: str) -> Fraction:
    """Return the exact number that was written; a float means its shortest decimal form.

    What is given is looked at once, and a plain fraction is what goes on: a subclass of a number could be one value
    where it is charged and another where noise is made.

    >>> as_fraction(0.2, key="epsilon"), as_fraction("1/3", key="epsilon")
    (Fraction(1, 5), Fraction(1, 3))
    """
    fix = 'Write it as 2, 0.5, "1/3" or Fraction(1, 3).'
    if isinstance(value, Fraction):
        top, bottom = int(value.numerator), int(value.denominator)
        if not bottom:
            raise PlanError("must not divide by zero", key=key, fix=fix)
        return Fraction(top, bottom)
    if isinstance(value, (bool, np.bool_)):
        raise PlanError("must be a number", key=key, given=value, fix=fix)
    if isinstance(value, (int, np.integer)):
        return Fraction(int(value))
    if isinstance(value, (float, np.floating)):
        # str, not the binary value: whoever writes 0.2 means one fifth. str(np.float32(0.2)) is "0.2" as well.
        value = float.__repr__(value) if isinstance(value, float) else str(value)
    if not isinstance(value, (str, Decimal)):
        raise PlanError(f"must be a number, not {kind_of(value)}", key=key, fix=fix)
    plain = is_word(value) or isinstance(value, Decimal)  # before a text of some other class becomes a plain one
    value = str.__str__(value) if isinstance(value, str) else value
    parts = value.split("/") if isinstance(value, str) else [value]
    try:
        numbers = [Decimal(part) for part in parts]
    except InvalidOperation:
        numbers = []
    # The exponent is looked at before the fraction is formed: "1e999999999" would need a gigabyte.
    if len(numbers) not in (1, 2) or any(not x.is_finite() or (x and abs(x.adjusted()) > 400) for x in numbers):
        fix = decimal_comma(str(value)) or fix
        if plain:
            raise PlanError("must be a finite number", key=key, given=value, fix=fix)
        raise PlanError(f"must be a finite number, not {kind_of(value)}", key=key, fix=fix)
    if len(numbers) == 2 and not numbers[1]:
        raise PlanError("must not divide by zero", key=key, given=value, fix=fix)
    return Fraction(numbers[0]) / (Fraction(numbers[1]) if len(numbers) == 2 else 1)


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
