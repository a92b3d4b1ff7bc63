"""Exact amounts: read from whatever people write, and shown as short texts."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, Final

from tacit.errors import PlanError, decimal_comma, is_word, kind_of

LARGEST_EPSILON: Final = 1000
EPSILON_DIGITS: Final = 60  # above and below the line; more could not be added up exactly in a ledger
_WRITTEN_OUT: Final = 1e9
_LARGEST_FLOAT: Final = 10**300
_MOST_DIGITS: Final = 1000  # of a number that is read at all
FINEST_SHARE: Final = Fraction(1, 10**9)
_WRITTEN: Final[dict[str, Any]] = {"type": "string", "pattern": r"^[0-9.]+(/[0-9.]+)?$"}
AMOUNT: Final[dict[str, Any]] = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _WRITTEN]}  # what files write
EPSILON_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST_EPSILON}, _WRITTEN]
}


def as_fraction(value: Any, *, key: str) -> Fraction:
    """Return the exact number that was written; a float means its shortest decimal form.

    The value is read once and becomes a plain fraction: an object of a subclass could have one value when it is charged
    and another one when noise is made.

    >>> as_fraction(0.2, key="epsilon"), as_fraction("1/3", key="epsilon")
    (Fraction(1, 5), Fraction(1, 3))
    """
    fix = 'Write it as 2, 0.5 or "1/3".'
    if isinstance(value, bool):
        raise PlanError("must be a number", key=key, given=value, fix=fix)
    if isinstance(value, Rational):
        top, bottom = int(value.numerator), int(value.denominator)
        if not bottom:
            raise PlanError("must not divide by zero", key=key, fix=fix)
        return Fraction(top, bottom)
    if isinstance(value, Real):
        # the text, not the binary value: 0.2 means one fifth, and str(np.float32(0.2)) is "0.2" as well
        value = float.__repr__(value) if isinstance(value, float) else str(value)
    if not isinstance(value, str | Decimal):
        raise PlanError(f"must be a number, not {kind_of(value)}", key=key, fix=fix)
    plain = is_word(value) or isinstance(value, Decimal)  # before a text of some other class becomes a plain one
    value = str.__str__(value) if isinstance(value, str) else value
    parts = value.split("/") if isinstance(value, str) else [value]
    try:
        numbers = [Decimal(part) for part in parts]
    except InvalidOperation:
        numbers = []
    # Check the exponent before making the fraction: "1e999999999" would need a gigabyte.
    if len(numbers) not in (1, 2) or any(not x.is_finite() or (x and abs(x.adjusted()) > 400) for x in numbers):
        fix = decimal_comma(str(value)) or fix
        if plain:
            raise PlanError("must be a finite number", key=key, given=value, fix=fix)
        raise PlanError(f"must be a finite number, not {kind_of(value)}", key=key, fix=fix)
    if any(len(x.as_tuple().digits) > _MOST_DIGITS for x in numbers):
        raise PlanError(f"must have at most {_MOST_DIGITS:,} digits", key=key, fix="Round it.")
    if len(numbers) == 2 and not numbers[1]:
        raise PlanError("must not divide by zero", key=key, given=value, fix=fix)
    return Fraction(numbers[0]) / (Fraction(numbers[1]) if len(numbers) == 2 else 1)


def as_epsilon(value: Any, *, key: str = "epsilon") -> Fraction:
    """Return epsilon as the exact fraction that was written, or refuse."""
    epsilon = as_fraction(value, key=key)
    if not 0 < epsilon <= LARGEST_EPSILON:
        fix = "Typical: 0.1 to 2."
        raise PlanError(f"must lie above 0 and at most {LARGEST_EPSILON}", key=key, given=epsilon, fix=fix)
    if not has_few_digits(epsilon):
        raise PlanError(f"must have fewer than {EPSILON_DIGITS} digits", key=key, fix="Round it.")
    return epsilon


def as_share(value: Any, *, key: str) -> Fraction:
    """Return an exact number for computations with doubles: refuse what a double would round to 0 or 1."""
    share = as_fraction(value, key=key)
    if not has_few_digits(share):
        raise PlanError(f"must have fewer than {EPSILON_DIGITS} digits", key=key, fix="Round it.")
    if 0 < share < FINEST_SHARE or 0 < abs(1 - share) < FINEST_SHARE:
        raise PlanError("must differ from 0 and from 1 by 1e-9 at least", key=key, given=share, fix="Round it.")
    return share


def has_few_digits(amount: Fraction) -> bool:
    """Say whether an amount can be added up exactly, and printed."""
    return bool(max(abs(amount.numerator), amount.denominator) < 10**EPSILON_DIGITS)


def shown(amount: Fraction) -> str:
    """Return a short exact text for an amount: 0.2, or 1/3 where decimals do not end within 15 digits.

    >>> shown(Fraction(1, 5)), shown(Fraction(1, 3)), shown(Fraction(1098612288669, 10**12))
    ('0.2', '1/3', '1.098612288669')
    """
    decimal = f"{float(amount):.15g}" if abs(amount) < _LARGEST_FLOAT else ""
    return decimal if decimal and Fraction(decimal) == amount else str(amount)


def rough(number: float, digits: int = 4) -> str:
    """Return a number for readers, with so many significant digits, and an exponent only from 10^9.

    >>> rough(0.0123456), rough(15019.4), rough(1234.5), rough(3.2e12)
    ('0.01235', '15,019', '1,234', '3.2e+12')
    """
    return f"{number:,.0f}" if 10**digits <= abs(number) < _WRITTEN_OUT else f"{number:,.{digits}g}"


def error_text(rmse: float) -> str:
    """Return an expected error in few digits."""
    return "exact" if rmse == 0 else rough(rmse, 3)


def shown_with_decimal(amount: Fraction) -> str:
    """Return an exact text; a fraction has a decimal beside it.

    >>> shown_with_decimal(Fraction(1, 5)), shown_with_decimal(Fraction(35, 114))
    ('0.2', '35/114 (about 0.307)')
    """
    exact = shown(amount)
    return f"{exact} (about {float(amount):.3g})" if "/" in exact and abs(amount) < _LARGEST_FLOAT else exact
