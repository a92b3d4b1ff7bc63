"""What a release shows of single records, and to whom: the lines that leakage is counted on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Shown:
    """An attribute that an application is shown, as it is or not at all, at the epsilon of its coin.

    `line` names coins that are remembered: asking again on the same line shows what the largest epsilon shows. Where it
    is empty each asking tosses its own coins. An empty `application` stands for everybody.
    """

    application: str
    attribute: str
    epsilon: Fraction
    line: str = ""

    def __str__(self) -> str:
        return f"{self.attribute} to {self.application or 'everybody'}"


def together(shown: Iterable[Shown]) -> dict[tuple[str, str], Fraction]:
    """Return the epsilon that each application has reached for each attribute, in the order in which they asked.

    Coins of different lines are independent, so that a value stays hidden on all of them with the product of the
    chances: epsilons add up. On one line the largest counts, since its coins are remembered.

    >>> first = Shown("lighting", "arrival", Fraction(1, 2), "a")
    >>> again = Shown("lighting", "arrival", Fraction(3, 4), "a")
    >>> other = Shown("lighting", "arrival", Fraction(1, 4))
    >>> together([first, again, other])
    {('lighting', 'arrival'): Fraction(1, 1)}
    """
    found: dict[tuple[str, str], dict[str, Fraction]] = {}
    for one in shown:
        lines = found.setdefault((one.application, one.attribute), {})
        before = lines.get(one.line, Fraction(0))
        lines[one.line] = max(before, one.epsilon) if one.line else before + one.epsilon
    return {who: sum(lines.values(), Fraction(0)) for who, lines in found.items()}
