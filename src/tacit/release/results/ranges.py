"""Records of questions about a line or a grid: ranges, running counts, quantiles and rectangles, with their intervals.

A release of ranges, of cumulative counts or of quantiles is one set of estimated running counts, and one of rectangles
has estimates of all cells. Everything that is read off them is post-processing: it costs nothing, however much is read.
A few listed ranges or rectangles often have less noise when each is measured by itself. Then no other one can be told,
and the refusal says what to ask instead.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.plan.error_laws import AnySpread, spread_of_runs
from tacit.plan.plans.grid_plan import NO_NOISE, GridPlan
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.question import in_words, position_of_end
from tacit.plan.questions import quantiles as ask_quantiles
from tacit.plan.questions.cumulative import OnALine
from tacit.plan.questions.rectangles import in_rectangles
from tacit.policy.attributes import Attribute
from tacit.release.estimate.measure import Measurements, measure
from tacit.release.estimate.projections import increasing
from tacit.release.results.record import LinearRecord, NumbersRecord, ReleaseRecord, check_level, draw_record


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
    attribute = plan.policy.domain[name]
    if is_list(low) != is_list(high) or (is_list(low) and len(low) != len(high)):
        raise PlanError("must have as many lower as upper ends", key=key, fix="Write range(low, high).")
    lows, highs = (list(ends) if is_list(ends) else [ends] for ends in (low, high))
    first, last = (
        np.array([_position(attribute, end, f"{key} ({side} end)") for end in ends], dtype=np.int64)
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
    return position_of_end(attribute, end.item() if isinstance(end, np.generic) else end, key)


def is_list(ends: Any) -> bool:
    """Say whether many ends are given, and not one."""
    return isinstance(ends, list | tuple | np.ndarray)


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
        return super().interval(level) if low is None and high is None else self.range_ends(level, low, high)

    def ends(self, level: float) -> tuple[Floats, Floats]:
        return self.line.ends(*on_line(self.plan).runs(self.plan.policy.domain), level, self.plan.spread)

    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return the values and the ends of their intervals; beside counts of values also the running counts."""
        found = super().numbers(level)
        return {**found, "up to": self.running} if on_line(self.plan).lists_values(self.plan.policy.domain) else found


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

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what is read off running counts, which were not measured."""
        if name in ("running", "running_interval", "quantiles", "quantile_interval", "median"):
            self._refuse(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
        rule = f"cannot be told: only the listed ranges of {name} were measured, each by itself"
        fix = f"{'List it too, or ask' if given else 'Ask'} for ranges({name!r}, 'all')."
        raise PlanError(rule, key=key, fix=fix, **given)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RectanglesRecord(NumbersRecord):
    """The result of a question about rectangles. `rectangle` tells any other one from the same measurements."""

    plan: GridPlan
    _cells: Floats | None = field(repr=False)  # estimates of all cells; None where only rectangles were measured
    _centre: Floats = field(repr=False)  # estimates of the answers, as they are: values may have been cut at zero

    def rectangle(self, x_low: Any, x_high: Any, y_low: Any, y_high: Any) -> float:
        """Return the estimated number of people in a rectangle, all ends included."""
        estimate = self._estimate((x_low, x_high, y_low, y_high))
        return max(estimate, 0.0) if self.plan.nonnegative else estimate

    def interval(self, level: float = 0.95, *rectangle: Any) -> tuple[Any, Any]:
        """Return ends that hold each true answer with at least this probability, one at a time.

        With the four ends of a rectangle: the same for that rectangle.
        """
        if not rectangle:
            return super().interval(level)
        check_level(level)
        lower, upper = self._around(level, self._placed(rectangle), np.array([self._estimate(rectangle)]))
        published = self.rectangle(*rectangle)
        return min(float(lower[0]), published), max(float(upper[0]), published)

    def ends(self, level: float) -> tuple[Floats, Floats]:
        return self._around(level, self.plan.query.ends(self.plan.policy.domain), self._centre)

    def _around(self, level: float, places: Ints, centre: Floats) -> tuple[Floats, Floats]:
        """Return the ends of intervals: counts are whole and not negative."""
        far = self.plan.half_widths(level, places)
        slack = 1e-9 * (1 + np.abs(centre))
        return np.maximum(np.ceil(centre - far - slack), 0.0), np.maximum(np.floor(centre + far + slack), 0.0)

    def _placed(self, rectangle: tuple[Any, ...]) -> Ints:
        return np.array([self.plan.query.places(self.plan.policy.domain, rectangle)], dtype=np.int64)

    def _estimate(self, rectangle: tuple[Any, ...]) -> float:
        """Return the estimate of one rectangle, or refuse where it cannot be told."""
        ends = self._placed(rectangle)
        if self._cells is not None:
            found = float(in_rectangles(self._cells, ends)[0])
            return float(np.rint(found)) if self.plan.variances(ends)[0] < NO_NOISE else found
        same = np.flatnonzero((self.plan.query.ends(self.plan.policy.domain) == ends).all(axis=1))
        if not len(same):
            names = self.plan.query.names
            rule = f"cannot be told: only the listed rectangles of {in_words(names)} were measured, each by itself"
            fix = f"List it too, or ask for rectangles({', '.join(map(repr, names))}, 'all')."
            raise PlanError(rule, key="rectangle", given=list(rectangle), fix=fix)
        return float(self._centre[same[0]])


def infer_rectangles(measured: Measurements, plan: GridPlan) -> RectanglesRecord:
    """Return the estimates of rectangles, or of all cells, from noisy sums."""
    query, domain = plan.query, plan.policy.domain
    entries = measured.noisy.astype(np.float64)
    cells = plan.cells(entries)
    ends = query.ends(domain)
    centre = entries if cells is None else cells.reshape(-1) if query.rectangles is None else in_rectangles(cells, ends)
    centre = np.where(plan.spread.exact(), np.rint(centre), centre)
    values = np.maximum(centre, 0.0) if plan.nonnegative else centre.copy()
    return RectanglesRecord(plan=plan, values=values, _cells=cells, _centre=centre)


@draw_record.register
def _(plan: GridPlan, truths: Sequence[Ints], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    return partial(infer_rectangles, measure(plan, *truths), plan)
