"""The theorems of document 001 over a grid of parameters, four times: printed, enumerated, computed and drawn.

Printed is the paper's formula, enumerated goes through all worlds and coins, computed is what our audit says, and drawn
looks at records and coins.
Two attributes i and j of one record are sensitive or not: X_i, X_j = 0 or 1. delta1 = P(X_i = 0 | X_j = 0), delta2 =
P(X_i = 0 | X_j = 1), theta_j = P(X_j = 0). M_i = 1 says that record i was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from tacit import noise
from tacit.dependence.dependence import Dependence
from tacit.dependence.suppression import SOME_VALUE, Suppression, suppression
from tacit_reproductions.document_001.closed_forms import BitPair, own_suppression
from tacit_reproductions.results import Table

ALPHA: Final = 1e-6  # of each interval around what was drawn
_COIN_BITS: Final = 53


@dataclass(frozen=True)
class Setting:
    """Parameters of one line: the two attributes, their epsilons, and how often record i was asked for."""

    theta_j: Fraction
    delta1: Fraction
    delta2: Fraction
    epsilon_i: float
    epsilon_j: float
    questions: int

    def joint(self) -> dict[tuple[int, int], float]:
        """Return the probability of each (X_i, X_j)."""
        chances = {0: self.theta_j, 1: 1 - self.theta_j}
        hidden = {0: self.delta1, 1: self.delta2}
        return {
            (x_i, x_j): float(chances[x_j] * (hidden[x_j] if x_i == 0 else 1 - hidden[x_j]))
            for x_i, x_j in product((0, 1), repeat=2)
        }

    def pair(self) -> BitPair:
        """Return what the printed formulas ask."""
        share = self.theta_j * self.delta1 + (1 - self.theta_j) * self.delta2
        return BitPair(float(share), float(self.theta_j), float(self.delta1), float(self.delta2))

    def release(self) -> Suppression:
        """Return the same for our own computation: value 0 is sensitive."""
        found = Dependence.from_table(self.joint(), names=("i", "j"), values={"i": (0, 1), "j": (0, 1)})
        return suppression(found, sensitive={"i": [0], "j": [0]}, epsilon={"i": self.epsilon_i, "j": self.epsilon_j})

    def __str__(self) -> str:
        asked = f", {self.questions} questions" if self.questions > 1 else ""
        return (
            f"P(X_j=0) {float(self.theta_j):g}, delta {float(self.delta1):g} and {float(self.delta2):g}, "
            f"epsilon {self.epsilon_i:g} and {self.epsilon_j:g}{asked}"
        )


@dataclass(frozen=True)
class Statement:
    """A theorem: by how much the odds of X_j = 0 change given what was seen (M_i, M_j), as printed."""

    name: str
    seen: Mapping[str, int]
    factor: Callable[[Setting, BitPair], float]
    repeated: bool = False

    def printed(self, setting: Setting) -> float:
        """Return the odds as printed."""
        pair = setting.pair()
        return self.factor(setting, pair) * pair.prior_odds

    def __str__(self) -> str:
        shown = ", ".join(f"M_{name} = {bit}" for name, bit in self.seen.items())
        return f"{self.name}: {shown}{' each time' * self.repeated}"


STATEMENTS: Final = (
    Statement("Theorem 1", {"j": 0}, lambda s, pair: own_suppression(s.epsilon_j)),
    Statement("Theorem 1", {"j": 0}, lambda s, pair: own_suppression(s.epsilon_j, s.questions), repeated=True),
    Statement("Theorem 2", {"i": 0}, lambda s, pair: pair.suppressed(s.epsilon_i)),
    Statement("Corollary 1", {"i": 0}, lambda s, pair: pair.suppressed(s.epsilon_i, s.questions), repeated=True),
    Statement("Theorem 3", {"i": 1}, lambda s, pair: pair.released()),
    Statement("Theorem 4", {"i": 0, "j": 0}, lambda s, pair: pair.both_suppressed(s.epsilon_i, s.epsilon_j)),
    Statement("Theorem 4", {"i": 1, "j": 0}, lambda s, pair: pair.released_and_suppressed(s.epsilon_j)),
)


def settings(*, few: bool) -> list[Setting]:
    """Return the grid."""
    thetas = [Fraction("0.5")] if few else [Fraction("0.1"), Fraction("0.5")]
    deltas = [("0.8", "0.2"), ("0.2", "0.6"), ("0.5", "0.5"), ("0.9", "0.1")]
    epsilons = [(1.0, 0.5)] if few else [(0.1, 0.5), (1.0, 0.5), (3.0, 2.0)]
    return [
        Setting(theta, Fraction(first), Fraction(second), e_i, e_j, questions)
        for theta in thetas
        for first, second in (deltas[:2] if few else deltas)
        for e_i, e_j in epsilons
        for questions in (1, 3)
    ]


def enumerated(setting: Setting, statement: Statement) -> float:
    """Return the odds by going through all values and all tosses of every coin."""
    sums: dict[int, list[float]] = {0: [], 1: []}
    asked = dict.fromkeys(statement.seen, setting.questions if statement.repeated else 1)
    epsilons = {"i": setting.epsilon_i, "j": setting.epsilon_j}
    coins = [name for name, many in asked.items() for _ in range(many)]
    for (x_i, x_j), chance in setting.joint().items():
        values = {"i": x_i, "j": x_j}
        for shown in product((False, True), repeat=len(coins)):
            weight, released = chance, dict.fromkeys(asked, False)
            for name, falls in zip(coins, shown, strict=True):
                stays = math.exp(-epsilons[name])
                weight *= 1 - stays if falls else stays
                released[name] |= falls and values[name] == 1
            if all(released[name] == bool(seen) for name, seen in statement.seen.items()):
                sums[values["j"]].append(weight)
    return math.fsum(sums[0]) / math.fsum(sums[1])


def computed(setting: Setting, statement: Statement) -> float:
    """Return the odds as the audit computes them."""
    times = setting.questions if statement.repeated else 1
    hidden = {name: times for name, seen in statement.seen.items() if not seen}
    shown = {name: SOME_VALUE for name, seen in statement.seen.items() if seen}
    return math.exp(setting.release().log_odds("j", suppressed=hidden, released=shown))


@dataclass(frozen=True)
class Drawn:
    """What was drawn: how often X = 0 among the records that showed what was seen, and an interval for the odds."""

    hits: int
    among: int

    def odds(self) -> tuple[float, float, float]:
        """Return the odds that were drawn, and the ends of an interval that misses with probability ALPHA at most."""
        low = beta.ppf(ALPHA / 2, self.hits, self.among - self.hits + 1) if self.hits else 0.0
        high = beta.isf(ALPHA / 2, self.hits + 1, self.among - self.hits) if self.hits < self.among else 1.0
        return _odds(self.hits / self.among), _odds(float(low)), _odds(float(high))


def drawn(setting: Setting, statement: Statement, records: int) -> Drawn:
    """Draw records, then the coins of every question, and look only at those that show what was seen."""
    cells = list(setting.joint().items())
    ends = np.cumsum([chance for _, chance in cells])
    which = np.searchsorted(ends, _uniform(records) * ends[-1], side="right")
    values = {name: np.array([cell[at] for cell, _ in cells])[which] for at, name in enumerate("ij")}
    epsilons = {"i": setting.epsilon_i, "j": setting.epsilon_j}
    fits = np.ones(records, dtype=np.bool_)
    for name, seen in statement.seen.items():
        times = setting.questions if statement.repeated else 1
        falls = (_uniform((times, records)) < -math.expm1(-epsilons[name])).any(axis=0)
        fits &= (falls & (values[name] == 1)) == bool(seen)
    return Drawn(int((values["j"][fits] == 0).sum()), int(fits.sum()))


@dataclass(frozen=True)
class Line:
    """One theorem at one setting, four times."""

    setting: Setting
    statement: Statement
    printed: float
    enumerated: float
    computed: float
    drawn: Drawn

    @property
    def apart(self) -> float:
        """The largest relative difference between what was printed, enumerated and computed."""
        return max(abs(one / self.enumerated - 1) for one in (self.printed, self.computed))

    @property
    def fits(self) -> bool:
        """Whether the enumerated odds lie in the interval around what was drawn."""
        _, low, high = self.drawn.odds()
        return low <= self.enumerated <= high

    def cells(self) -> tuple[str, ...]:
        """Return the line of the table."""
        own, low, high = self.drawn.odds()
        return (
            str(self.statement),
            str(self.setting),
            f"{self.printed:.6g}",
            f"{self.enumerated:.6g}",
            f"{self.computed:.6g}",
            f"{self.apart:.0e}",
            f"{own:.4g} ({low:.4g} to {high:.4g})",
        )


HEADINGS: Final = (
    "theorem",
    "setting",
    "printed",
    "enumerated",
    "Tacit",
    "apart",
    f"drawn (interval at alpha {ALPHA:g})",
)


def lines(grid: list[Setting], records: int) -> list[Line]:
    """Return every theorem at every setting; statements about one question only where one was asked."""
    return list(_lines(grid, records))


def _lines(grid: list[Setting], records: int) -> Iterator[Line]:
    for setting in grid:
        for statement in STATEMENTS:
            if statement.repeated == (setting.questions > 1):
                yield Line(
                    setting,
                    statement,
                    statement.printed(setting),
                    enumerated(setting, statement),
                    computed(setting, statement),
                    drawn(setting, statement, records),
                )


def theorem_table(found: list[Line], records: int) -> Table:
    """Return all lines as a table."""
    apart = max(line.apart for line in found)
    return Table(
        f"Odds of X_j = 0 given what was seen: {len(found):,} lines",
        HEADINGS,
        [line.cells() for line in found],
        (
            f"Apart: the largest relative difference between the three columns before; {apart:.0e} at most.",
            f"Drawn: {records:,} records for each line; {sum(line.fits for line in found):,} of {len(found):,} "
            "intervals hold the enumerated odds.",
        ),
        on_screen=False,
    )


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else math.inf


def _uniform(shape: Any) -> npt.NDArray[np.float64]:
    return np.asarray(noise.uniform_below(2**_COIN_BITS, shape) / 2**_COIN_BITS)
