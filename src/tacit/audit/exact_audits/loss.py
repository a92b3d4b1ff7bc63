"""What an exact audit finds: the worst log likelihood ratio along secret edges, in both directions, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

LONGEST: Final = 160  # letters of a witness that are printed


class Loss(float):
    """A loss that surely lies between `low` and `high`; as a number it is `high`, so that `loss <= epsilon` is safe.

    >>> third = Loss.between(Fraction(1, 3), Fraction(1, 3))
    >>> Fraction(third.low) < Fraction(1, 3) < Fraction(third.high)
    True
    >>> float(Loss.between(Fraction(1, 2), Fraction(1, 2)))
    0.5
    """

    low: float

    def __new__(cls, low: float, high: float) -> Loss:
        """Make a loss from its two ends."""
        made = super().__new__(cls, high)
        made.low = low
        return made

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        """Return what a copy is made from."""
        return self.low, float(self)

    @classmethod
    def between(cls, low: Fraction | float, high: Fraction | float) -> Loss:
        """Return a loss between two exact numbers, rounded outward."""
        return cls(_rounded(low, up=False), _rounded(high, up=True))

    @property
    def high(self) -> float:
        """The upper end."""
        return float(self)

    def __iter__(self) -> Iterator[float]:
        yield self.low
        yield self.high

    def __repr__(self) -> str:
        if self.low == self.high or math.isclose(self.low, self.high, rel_tol=1e-9):
            return f"{self.high:.6g}"
        return f"{self.low:.4g} to {self.high:.4g}"

    __str__ = __repr__


@dataclass(frozen=True)
class Witness:
    """Where the worst loss is: two neighbouring data sets and an output that tells them apart."""

    hidden: Any
    cover: Any
    output: Any

    def __str__(self) -> str:
        return f"{_short(self.hidden)} -> {_short(self.cover)} at output {_short(self.output)}"


@dataclass(frozen=True)
class ExactAudit:
    """The worst-case loss of a mechanism along the secret edges of a policy.

    `forward` is what a guarantee is about (hidden -> cover); `backward` may be infinite and often is. `forward.low` is
    attained on the witness. `complete` says that every pair of neighbours was tried, so that the two ends differ by
    rounding only; otherwise `forward.high` is what the plan's proof allows, or infinite where there is no plan.
    """

    mechanism: str
    epsilon: float | None
    forward: Loss
    backward: Loss
    witness: Witness | None
    neighbours: int
    complete: bool

    @property
    def keeps(self) -> bool:
        """Whether the loss along secret edges surely is at most epsilon."""
        # a billionth: probabilities that are given as floating-point numbers carry their own rounding
        return self.epsilon is not None and self.forward.high <= self.epsilon * (1 + 1e-9)

    def __str__(self) -> str:
        tried = "all" if self.complete else "the most telling"
        claimed = "" if self.epsilon is None else f", claimed {self.epsilon:g}"
        return (
            f"{self.mechanism}: loss {self.forward} along secret edges{claimed}, {self.backward} backward "
            f"({tried} {self.neighbours:,} pairs of neighbours); worst: {self.witness}"
        )


def _short(value: Any) -> str:
    said = str(value)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} .."


def _rounded(exact: Fraction | float, *, up: bool) -> float:
    near = float(exact)
    if not isinstance(exact, Fraction) or math.isinf(near) or Fraction(near) == exact:
        return near
    if (Fraction(near) > exact) == up:
        return near
    return math.nextafter(near, math.inf if up else -math.inf)
