"""What an exclusion audit finds: the worst outcome, freedom from exclusion attacks, and what each coalition learns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tacit.dependence.information import NOTHING
from tacit.dependence.suppression import SOME_VALUE


@dataclass(frozen=True)
class WorstOutcome:
    """What could be seen that raises the odds of an attribute being sensitive most.

    `outcome` has for each attribute seen the value shown, or None where it was suppressed; `chance` is how often it
    comes out. `prior` and `posterior` are the probabilities of being sensitive, `factor` is by how much the odds rise.
    """

    attribute: str
    outcome: Mapping[str, Any]
    chance: float
    prior: float
    posterior: float
    factor: float

    def __str__(self) -> str:
        return (
            f"{self.attribute} is sensitive with probability {self.posterior:.4g} instead of {self.prior:.4g} "
            f"(odds times {self.factor:.4g}) after {in_words(self.outcome)}, which has probability {self.chance:.4g}"
        )


@dataclass(frozen=True)
class Freedom:
    """The smallest epsilon at which a release is free from exclusion attacks, and what needs it.

    `hidden` is a sensitive value of the attribute and `cover` another value; no outcome raises the odds of any such
    pair by more than exp(level). It is infinite where something that can be seen rules a value out.
    """

    level: float
    attribute: str | None
    hidden: Any
    cover: Any
    outcome: Mapping[str, Any]

    @property
    def is_free(self) -> bool:
        """Whether there is freedom from exclusion attacks at any epsilon at all."""
        return self.level < math.inf

    def __str__(self) -> str:
        if self.attribute is None:
            return "nothing that can be seen raises the odds of a sensitive value"
        pair = f"{self.attribute} {self.hidden!r} against {self.cover!r}, after {in_words(self.outcome)}"
        if not self.is_free:
            return f"not free from exclusion attacks at any epsilon: {pair}, which rules {self.cover!r} out"
        return f"free from exclusion attacks at epsilon {self.level:.6g}: worst for {pair}"


@dataclass(frozen=True)
class LeakRow:
    """What one application or coalition learns about one attribute. Information is in nats."""

    who: tuple[str, ...]
    attribute: str
    prior: float
    worst: WorstOutcome
    bit: float
    value: float
    entropy: float
    freedom: float


@dataclass(frozen=True)
class LeakReport:
    """What every application and every coalition learns about every attribute that has sensitive values.

    `marks` stand first wherever it is printed: that its dependence was counted on the private rows.
    """

    rows: tuple[LeakRow, ...]
    marks: tuple[str, ...] = ()

    @property
    def unprotected(self) -> bool:
        """Whether it follows from private rows that nobody paid for."""
        return bool(self.marks)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows, as a pandas frame; with a column `unprotected` where it is for nobody else to see."""
        return pd.DataFrame(
            {
                **({"unprotected": [True] * len(self.rows)} if self.unprotected else {}),
                "who": [" + ".join(row.who) for row in self.rows],
                "attribute": [row.attribute for row in self.rows],
                "prior": [row.prior for row in self.rows],
                "worst posterior": [row.worst.posterior for row in self.rows],
                "after": [in_words(row.worst.outcome) for row in self.rows],
                "odds times": [row.worst.factor for row in self.rows],
                "information of the bit": [row.bit for row in self.rows],
                "information of the value": [row.value for row in self.rows],
                "of at most": [row.entropy for row in self.rows],
                "free at epsilon": [row.freedom for row in self.rows],
            }
        )

    def __str__(self) -> str:
        lines = list(self.marks)
        for row in self.rows:
            free = f"free at epsilon {row.freedom:.4g}" if row.freedom < math.inf else "not free at any epsilon"
            lines.append(
                f"{' + '.join(row.who)}, {row.attribute}: sensitive with probability {row.prior:.4g}, at worst "
                f"{row.worst.posterior:.4g} after {in_words(row.worst.outcome)}; "
                f"{row.value:.4g} of {row.entropy:.4g} nats ({row.bit:.4g} of the bit alone); {free}"
            )
        return "\n".join(lines)


def in_words(outcome: Mapping[str, Any]) -> str:
    """Return an outcome in words."""
    parts = []
    for name, shown in outcome.items():
        parts.append(
            f"{name} suppressed" if shown is NOTHING else f"{name} {'released' if shown is SOME_VALUE else shown}"
        )
    return ", ".join(parts) or "nothing"
