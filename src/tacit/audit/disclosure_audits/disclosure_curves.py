"""Disclosures and errors at other costs: how many values are told, and how wrong counts are, as epsilon grows.

The two conflict (document 004, section 3.4): both follow from how accurate counts are. Only values whose jump is large
enough can be disclosed, so closeness is worked out for those alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from tacit.audit.disclosure_audits.confidences import Confidences
from tacit.audit.disclosure_audits.published import PublishedCounts
from tacit.errors import PlanError

SANITY: Final = 1e-4  # of all people: smaller counts are not expected to be accurate (document 004, section 3.4.4)
LOWEST: Final = 1e-6
HIGHEST: Final = 1e3
DIGITS: Final = 1.002  # two epsilons closer than this are the same, to three digits


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """What would be disclosed at other costs."""

    published: PublishedCounts
    parts: tuple[Confidences, ...]
    people: int
    tau: float
    closeness: float
    jump: float

    def disclosures(self, epsilon: float) -> int:
        """Return how many values would be disclosed at this cost."""
        shown, found = self.published.at(epsilon), 0
        for part in self.parts:
            lines, columns = np.nonzero((part.jumps >= self.jump) & (part.theta > 0))
            if len(lines):
                found += int((shown.closeness(part, self.tau, (lines, columns)) >= self.closeness).sum())
        return found

    def frame(self, epsilons: Sequence[float]) -> pd.DataFrame:
        """Return a line for each cost; those are left out at which there is no plan, or too much noise to add up."""
        rows = []
        for epsilon in epsilons:
            if not 0 < epsilon < np.inf:
                raise PlanError("must be numbers above 0", key="epsilons", given=str(epsilon))
            many = self._tried(epsilon)
            if many is not None:
                error = overall_error(self.published.at(epsilon), self.parts, self.people)
                rows.append((float(epsilon), many, error))
        return pd.DataFrame(rows, columns=["epsilon", "disclosures", "error"])

    @cached_property
    def largest_safe(self) -> float | None:
        """The largest cost without a disclosure, to three digits; None where there is none, or no disclosure at all.

        Closeness grows with epsilon but for what two negative counts add, which no closeness above one half is made of.
        So a bisection finds where disclosures begin; what lies at its lower end was looked at.
        """
        start = self.published.epsilon
        low, high = (start, None) if not self.disclosures(start) else (None, start)
        while low is None or high is None:
            tried = (high or start) / 4 if low is None else low * 4
            many = self._tried(tried) if LOWEST <= tried <= HIGHEST else None
            if many is None:
                return None
            low, high = (tried, high) if not many else (low, tried)
        while high / low > DIGITS:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if self._tried(middle) != 0 else (middle, high)
        return low

    def _tried(self, epsilon: float) -> int | None:
        """Return how many values would be disclosed; None where there is no plan, or too much noise to add up."""
        try:
            return self.disclosures(epsilon)
        except PlanError:
            return None


def overall_error(published: PublishedCounts, parts: Sequence[Confidences], people: int) -> float:
    """Return the mean over all counts of the expected error over the count.

    Where the sanity bound is larger than the count, over that.
    """
    total, cells = 0.0, 0
    for part in parts:
        for errors, counts in published.errors(part):
            total += float((errors / np.maximum(counts, max(SANITY * people, 1e-300))).sum())
            cells += len(counts)
    return total / cells if cells else 0.0
