"""Records of questions about a line: any range, the running counts, quantiles, all with intervals that hold.

A release of ranges, of cumulative counts or of quantiles is one set of estimated running counts. Everything that is
read off them is post-processing: it costs nothing, however much is read.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.plan.errors.error_laws import AnySpread, spread_of_runs
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.question import position_of_end
from tacit.plan.questions import quantiles as ask_quantiles
from tacit.plan.questions.cumulative import OnALine
from tacit.policy.attributes import Attribute
from tacit.release.estimate.cell_estimates import increasing
from tacit.release.results.record import NumbersRecord, check_level


@dataclass(frozen=True, eq=False, repr=False)
class RunningCounts:
    """How many people have at most each value: the published estimates, and those whose law is known (`centre`).

    No true count is below `floor` or above `ceiling`.
    """

    plan: LinearPlan
    published: Floats
    centre: Floats
    floor: Floats
    ceiling: Floats
    nonnegative: bool

    def __post_init__(self) -> None:
        for array in (self.published, self.centre, self.floor, self.ceiling):
            array.flags.writeable = False

    @cached_property
    def rising(self) -> Floats:
        """The nearest counts that never fall, with the exact ones in their places."""
        fixed = self.plan.fixed
        return increasing(self.centre, fixed, None if fixed is None else self.floor[fixed])

    def of(self, low: Ints, high: Ints) -> Floats:
        """Return the published numbers of people at the positions low..high."""
        found = self.whole(_between(self.published, low, high), low, high)
        return np.maximum(found, 0.0) if self.nonnegative else found

    def whole(self, values: Floats, low: Ints, high: Ints) -> Floats:
        """Return numbers of which the exact ones are whole: sums of estimates may miss them by a rounding."""
        if self.plan.fixed is None:
            return values
        # a run that ends at exact counts, or begins at the first value, is exact
        exact = self.plan.fixed[high] & ((low == 0) | self.plan.fixed[low - 1])
        return np.where(exact, np.rint(values), values) if exact.any() else values

    def ends(self, low: Ints, high: Ints, level: float, spread: AnySpread | None = None) -> tuple[Floats, Floats]:
        """Return ends that hold the true number of each run with this probability, and the published one always."""
        values = self.of(low, high)
        if self.plan.noise is None:
            return values, values
        spread = spread_of_runs(self.plan, low, high) if spread is None else spread
        below, above = spread.bounds(level)
        centre = self.whole(_between(self.centre, low, high), low, high)
        lower, upper = centre - above, centre - below
        # no fewer than between the exact counts inside, no more than between those around
        before = low - 1
        least = self.floor[high] - np.where(low > 0, self.ceiling[before], 0.0)
        most = self.ceiling[high] - np.where(low > 0, self.floor[before], 0.0)
        for end in (lower, upper):
            np.clip(end, np.maximum(least, 0.0), most, out=end)
        return np.minimum(lower, values), np.maximum(upper, values)

    def up_to(self, level: float) -> tuple[Floats, Floats]:
        """Return ends that hold each true running count with this probability."""
        high = np.arange(len(self.centre), dtype=np.int64)
        return self.ends(np.zeros_like(high), high, level)


def _between(running: Floats, low: Ints, high: Ints) -> Floats:
    return running[high] - np.where(low > 0, running[low - 1], 0.0)


class RunningAnswers:
    """What every record about a line can tell: any range of values, and shares of the people."""

    @property
    @abstractmethod
    def line(self) -> RunningCounts:
        """The running counts behind the record."""

    @property
    def running(self) -> Floats:
        """How many people have at most each value: the published estimates, in the order of the values."""
        return self.line.published

    def running_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return ends that hold the true number of people up to each value, each with this probability."""
        check_level(level)
        return self.line.up_to(level)

    def range(self, low: Any, high: Any) -> Any:
        """Return how many people have a value from low to high, both included; with two lists, for each pair.

        Raises:
            PlanError: For what is no value of the attribute, and for a range that ends before it starts.
        """
        found = self.line.of(*positions_of(self.line.plan, low, high))
        return found if is_list(low) else float(found[0])

    def range_ends(self, level: float, low: Any, high: Any) -> tuple[Any, Any]:
        """Return ends that hold the true number of people in a range with this probability, taken one at a time."""
        check_level(level)
        lower, upper = self.line.ends(*positions_of(self.line.plan, low, high), level)
        return (lower, upper) if is_list(low) else (float(lower[0]), float(upper[0]))

    def quantiles(self, shares: Any) -> Floats:
        """Return for each share the smallest value that at least this share of the people do not exceed."""
        query, counts = _asked(self.line, shares)
        found: Floats = query.values([counts], self.line.plan.policy.domain)
        return found

    def quantile_interval(self, level: float, shares: Any) -> tuple[Floats, Floats]:
        """Return ends that hold each of these quantiles with this probability, taken one at a time."""
        check_level(level)
        query, counts = _asked(self.line, shares)
        domain = self.line.plan.policy.domain
        values = query.values([counts], domain)
        lower, upper = query.ends([counts], domain, level)
        return np.minimum(lower, values), np.maximum(upper, values)

    def median(self) -> float:
        """Return the value that half of the people do not exceed."""
        return float(self.quantiles([0.5])[0])


def _asked(line: RunningCounts, shares: Any) -> tuple[Any, Prefixes]:
    """Return the question for these shares of the people, checked, and what it is read off."""
    query = ask_quantiles(on_line(line.plan).name, shares)
    query.check(line.plan.policy.domain)
    return query, Prefixes(line)


def on_line(plan: LinearPlan) -> OnALine:
    """Return the question about a line that a plan answers."""
    asked = plan.query.about_a_line
    assert asked is not None  # noqa: S101 - no other plan has such a record
    return asked


def positions_of(plan: LinearPlan, low: Any, high: Any) -> tuple[Ints, Ints]:
    """Return ranges of values as positions, or refuse."""
    name = on_line(plan).name
    key = f"range of {name}"
    if is_list(low) != is_list(high) or (is_list(low) and len(low) != len(high)):
        raise PlanError("must have as many lower as upper ends", key=key, fix="Write range(low, high).")
    lows, highs = (list(ends) if is_list(ends) else [ends] for ends in (low, high))
    first, last = (
        np.array([_position(plan.policy.domain[name], end, f"{key} ({side} end)") for end in ends], dtype=np.int64)
        for side, ends in (("lower", lows), ("upper", highs))
    )
    if (first > last).any():
        wrong = int(np.argmax(first > last))
        given = [lows[wrong], highs[wrong]]
        raise PlanError("must not end before it starts", key=key, given=given, fix="Swap the ends.")
    return first, last


def _position(attribute: Attribute, end: Any, key: str) -> int:
    if end is None:
        raise PlanError("must be given", key=key, fix="Give both ends: low, high.")
    return position_of_end(attribute, _plain(end), key)


def is_list(ends: Any) -> bool:
    """Say whether many ends are given, and not one."""
    return isinstance(ends, list | tuple | np.ndarray)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, eq=False, repr=False)
class Prefixes:
    """Running counts that never fall, as quantiles are read off them."""

    line: RunningCounts

    @property
    def values(self) -> Floats:
        """The counts up to each value."""
        return self.line.rising

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Which of them have no noise."""
        if self.line.plan.noise is None:
            return np.ones(len(self.values), dtype=np.bool_)
        fixed = self.line.plan.fixed
        return np.zeros(len(self.values), dtype=np.bool_) if fixed is None else fixed

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return ends that hold the true counts, each with this probability."""
        return self.line.up_to(level)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LineRecord(RunningAnswers, NumbersRecord):
    """The result of a question about a line: one value with its interval for each answer, and any range besides."""

    plan: LinearPlan
    _published: Floats = field(repr=False)  # the running counts behind the values,
    _centre: Floats = field(repr=False)  # those whose law is known,
    _floor: Floats = field(repr=False)  # and what no true one is below
    _ceiling: Floats = field(repr=False)  # or above
    _nonnegative: bool = field(repr=False, default=False)
    _ends: tuple[float, Floats, Floats] | None = field(repr=False, init=False, default=None)  # of the last level

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_ends": None}

    @property
    def line(self) -> RunningCounts:
        arrays = self._published, self._centre, self._floor, self._ceiling
        return RunningCounts(self.plan, *arrays, nonnegative=self._nonnegative)

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Which values have no noise."""
        return self.plan.spread.exact()

    def interval(self, level: float = 0.95, low: Any = None, high: Any = None) -> tuple[Any, Any]:
        """Return lower and upper ends that contain the true answer with at least this probability, taken one at a time.

        With `low` and `high`, those of this range; else those of all values. They are made from the law of the
        estimate, cut to what a true answer can be (no count is negative, none above an exact total that it is part of),
        and wide enough to hold the published value.
        """
        if low is not None or high is not None:
            return self.range_ends(level, low, high)
        check_level(level)
        if self._ends is None or self._ends[0] != level:
            runs = on_line(self.plan).runs(self.plan.policy.domain)
            lower, upper = self.line.ends(*runs, level, self.plan.spread)
            lower.flags.writeable = upper.flags.writeable = False  # files, charts and reports all want them
            object.__setattr__(self, "_ends", (level, lower, upper))
        assert self._ends is not None  # noqa: S101 - set above
        return self._ends[1:]

    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return the values and the ends of their intervals; beside counts of values also the running counts."""
        found = super().numbers(level)
        return {**found, "up to": self.running} if on_line(self.plan).lists_values(self.plan.policy.domain) else found
