"""What a release shows of single records, and to whom: the lines that leakage is counted on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

CERTAIN: Final = Fraction(1000)  # an epsilon at which a coin never hides anything
_FINE: Final = 10**12


@dataclass(frozen=True)
class Shown:
    """An attribute that an application is shown, unchanged or not at all, at the epsilon of its coin.

    `line` names coins that are remembered: repeated questions on the same line show what the largest epsilon shows, and
    attributes on one line share their coins. If it is empty, each question tosses a new coin. An empty `application`
    is everybody. What no secret edge changes `is_public`, and is certainly shown.
    """

    application: str
    attribute: str
    epsilon: Fraction
    line: str = ""
    is_public: bool = False

    def __str__(self) -> str:
        return f"{self.attribute} to {self.application or 'everybody'}"


@dataclass
class ShownSoFar:
    """What was shown so far: the epsilon that each application has reached for each attribute, in order of questions.

    `lines` is what was shown along each line of an application, `public` what was shown only as public.

    Coins of different lines are independent, so that a value is hidden on all of them with the product of the chances:
    epsilons add up. On one line the largest counts, since its coins are remembered.

    >>> first = Shown("lighting", "arrival", Fraction(1, 2), "a")
    >>> again = Shown("lighting", "arrival", Fraction(3, 4), "a")
    >>> other = Shown("lighting", "arrival", Fraction(1, 4))
    >>> ShownSoFar().after([first, again, other]).reached
    {('lighting', 'arrival'): Fraction(1, 1)}
    """

    reached: dict[tuple[str, str], Fraction] = field(default_factory=dict)
    lines: dict[tuple[str, str], dict[str, Fraction]] = field(default_factory=dict)
    public: set[tuple[str, str]] = field(default_factory=set)

    def add(self, shown: Iterable[Shown]) -> None:
        """Add what is shown; `lines` must have what was shown before along the same lines."""
        for one in shown:
            whom = (one.application, one.attribute)
            if one.is_public and whom not in self.reached:
                self.public.add(whom)
            elif not one.is_public:
                self.public.discard(whom)
            self.reached.setdefault(whom, Fraction(0))
            if not one.line:
                self.reached[whom] += one.epsilon
                continue
            before = self.lines.get((one.application, one.line), {})
            after = {**before, one.attribute: max(before.get(one.attribute, Fraction(0)), one.epsilon)}
            for attribute, epsilon in after.items():
                old = apart(before[attribute], len(before)) if attribute in before else Fraction(0)
                self.reached[one.application, attribute] += apart(epsilon, len(after)) - old
            self.lines[one.application, one.line] = after

    def after(self, shown: Iterable[Shown]) -> ShownSoFar:
        """Return what was shown after this as well."""
        more = ShownSoFar(dict(self.reached), dict(self.lines), set(self.public))
        more.add(shown)
        return more


def apart(epsilon: Fraction, attributes: int) -> Fraction:
    """Return an epsilon at which separate coins show no less of some attributes than one coin for all of them.

    One coin shows all of them with probability u, or none. Separate coins that each show with the root of u show all of
    them together with probability u, and who sees more can ignore it. So they show no less. Rounded up.

    >>> apart(Fraction(1, 2), 1), round(float(apart(Fraction(1, 2), 2)), 6)
    (Fraction(1, 2), 0.986905)
    """
    if attributes <= 1 or epsilon >= CERTAIN:
        return epsilon
    root = (-math.expm1(-float(epsilon))) ** (1 / attributes)
    if root >= 1:
        return CERTAIN
    return min(CERTAIN, Fraction(math.ceil(-math.log1p(-root) * _FINE * (1 + 1e-12)) + 1, _FINE))
