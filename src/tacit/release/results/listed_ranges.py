"""Records of ranges that were measured one by one: each can be told, and no other.

A few listed ranges often have less noise than the line that all ranges could be read off. What was not measured is
refused then, with what to ask instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.release.results.line import is_list, on_line, positions_of
from tacit.release.results.record import LinearRecord


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ListedRangesRecord(LinearRecord):
    """The result of a question about listed ranges. `range` and `interval` tell the listed ones."""

    def range(self, low: Any, high: Any) -> Any:
        """Return how many people have a value from low to high, both included; with two lists, for each pair.

        Raises:
            PlanError: For a range that is not listed, besides what is no range at all.
        """
        found = self.values[self._listed(low, high)]
        return found if is_list(low) else float(found[0])

    def interval(self, level: float = 0.95, low: Any = None, high: Any = None) -> tuple[Any, Any]:
        """Return ends that hold each true answer with at least this probability, one at a time.

        With `low` and `high`, those of this range, which must be a listed one.
        """
        lower, upper = super().interval(level)
        if low is None and high is None:
            return lower, upper
        at = self._listed(low, high)
        return (lower[at], upper[at]) if is_list(low) else (float(lower[at[0]]), float(upper[at[0]]))

    def range_ends(self, level: float, low: Any, high: Any) -> tuple[Any, Any]:
        """Return ends that hold the true number of people in a listed range with this probability."""
        return self.interval(level, low, high)

    @property
    def running(self) -> Floats:
        """Refused: running counts were not measured."""
        self._refuse("running")

    def running_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Refuse: running counts were not measured."""
        self._refuse("running_interval")

    def quantiles(self, shares: Any) -> Floats:
        """Refuse: running counts were not measured."""
        self._refuse("quantiles")

    def quantile_interval(self, level: float, shares: Any) -> tuple[Floats, Floats]:
        """Refuse: running counts were not measured."""
        self._refuse("quantile_interval")

    def median(self) -> float:
        """Refuse: running counts were not measured."""
        self._refuse("median")

    def _listed(self, low: Any, high: Any) -> Ints:
        """Return which answers are about these ranges, or refuse the first that none is about."""
        asked = zip(*(ends.tolist() for ends in positions_of(self.plan, low, high)), strict=True)
        runs = zip(*(ends.tolist() for ends in on_line(self.plan).runs(self.plan.policy.domain)), strict=True)
        places = {ends: at for at, ends in reversed(list(enumerate(runs)))}  # of equal ones the first
        found = []
        for ends in asked:
            if ends not in places:
                self._refuse("range", given=[self._value(end) for end in ends])
            found.append(places[ends])
        return np.array(found, dtype=np.int64)

    def _value(self, position: int) -> Any:
        return self.plan.policy.domain[on_line(self.plan).name].value(position)

    def _refuse(self, key: str, **given: Any) -> NoReturn:
        name = on_line(self.plan).name
        raise PlanError(
            f"cannot be told: only the listed ranges of {name} were measured, each by itself",
            key=key,
            fix=f"{'List it too, or ask' if given else 'Ask'} for ranges({name!r}, 'all').",
            **given,
        )
