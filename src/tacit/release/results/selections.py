"""Selections: from true counts to a verdict, a ranking or a list, and the record of it.

True counts live in `select` and below it, and nowhere else. What a record holds is the output of a mechanism and what
follows from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.law import Law
from tacit.noise.sum_bounds import noise_bounds
from tacit.noise.tilted_cube import TiltedCube
from tacit.plan.plans.selection_plan import SelectionPlan
from tacit.plan.plans.thresholds import AbovePlan, BelowPlan, ThresholdPlan
from tacit.plan.plans.top_k import BarOutput, BarPlan, RankingPlan, TopKPlan
from tacit.release.estimate.tilted import estimate_counts, largest_radius
from tacit.release.results.record import ReleaseRecord, check_level, draw_record
from tacit.release.results.value_files import number_text, side_by_side


class SelectedCounts(ABC):
    """Noisy counts of a selection, and what follows from them."""

    @abstractmethod
    def estimates(self) -> Floats:
        """Return the best estimates."""

    @abstractmethod
    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals, taken one at a time."""


@dataclass(frozen=True, eq=False)
class Noisy(SelectedCounts):
    """Noisy counts with independent noise of one law, or exact ones."""

    counts: Ints
    law: Law | None

    def estimates(self) -> Floats:
        """Return the counts without the mean of the noise."""
        return np.asarray(self.counts - (self.law.mean() if self.law is not None else 0.0), dtype=np.float64)

    def ends(self, level: float) -> tuple[Floats, Floats]:
        low, high = (0.0, 0.0) if self.law is None else noise_bounds(self.law, 1, 0, level)
        return (self.counts - high).astype(np.float64), (self.counts - low).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Tilted(SelectedCounts):
    """Noisy counts of a tilted cube; `middle` is a noisy mean of the true ones, less that of the noisy, with a rate."""

    counts: Ints
    law: TiltedCube
    middle: tuple[float, float] | None = None

    def estimates(self) -> Floats:
        return estimate_counts(self.counts, self.law, self.middle)

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals; no true count is above the upper one."""
        radius = largest_radius(self.counts, self.law, level)
        return (self.counts - radius).astype(np.float64), self.counts.astype(np.float64)


@singledispatch
def with_law(law: Law | TiltedCube | None, counts: Ints) -> SelectedCounts:
    """Return noisy counts with what their law says about them."""
    raise TypeError(type(law).__name__)


@with_law.register
def _(law: Law | None, counts: Ints) -> SelectedCounts:
    return Noisy(counts, law)


@with_law.register
def _(law: TiltedCube, counts: Ints) -> SelectedCounts:
    return Tilted(counts, law)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SelectionRecord(ReleaseRecord):
    """The result of a selection: a row for each item (or the one count) that was chosen or asked about.

    `places` are positions in the domain, `is_above` the verdicts. `_measured` has the noisy counts, and `_which` says
    for each row which of them is its own, -1 for none. `_floor` and `_ceiling` are what a verdict alone proves.
    """

    plan: SelectionPlan
    places: Ints
    is_above: npt.NDArray[np.bool_] | None = None
    _measured: SelectedCounts | None = field(repr=False, default=None)
    _which: Ints = field(repr=False)
    _floor: Floats = field(repr=False)
    _ceiling: Floats = field(repr=False)

    @property
    def verdicts(self) -> list[str]:
        """The verdict of each row in words; none for a ranking."""
        return []

    @property
    def verdict(self) -> str:
        """The verdict on the only count."""
        if len(self.verdicts) != 1:
            raise PlanError("must be about one count", key="verdict", fix="Look at verdicts, or at the frame.")
        return self.verdicts[0]

    @property
    def is_free(self) -> bool:
        """Whether every verdict is a certain one that stands alone: it is no less likely along any secret edge."""
        return self.plan.is_exact or (self.plan.step.monotone is not None and self._measured is None)

    def reading_order(self) -> Ints:
        """Return the rows with a value first: among many verdicts, these are the ones that a reader looks for."""
        return np.argsort(np.isnan(self.values), kind="stable")

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """Return what each row is about."""

    def labels(self) -> dict[str, Any]:
        return side_by_side(self.about(), {"verdict": self.verdicts}) if self.is_above is not None else self.about()

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return lower and upper ends that contain the true count with at least this probability, taken one at a time.

        Where there is no value, they are what the verdict proves: from 0 to less than the threshold for one that is
        certainly below; nothing (up to infinity) where it proves nothing.
        """
        check_level(level)
        lower, upper = self._floor.copy(), self._ceiling.copy()
        if self._measured is not None:
            rows = self._which >= 0
            low, high = self._measured.ends(level)
            # what a true count can be, widened where that leaves the published value out
            floor, ceiling, shown = self._floor[rows], self._ceiling[rows], self.values[rows]
            lower[rows] = np.minimum(np.clip(low[self._which[rows]], floor, ceiling), shown)
            upper[rows] = np.maximum(np.clip(high[self._which[rows]], floor, ceiling), shown)
        return lower, upper


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VerdictRecord(SelectionRecord):
    """Verdicts about a threshold."""

    plan: ThresholdPlan
    is_above: npt.NDArray[np.bool_]

    @property
    def verdicts(self) -> list[str]:
        return [self.plan.words.of(one) for one in self.is_above.tolist()]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CountVerdict(VerdictRecord):
    """The verdict on one count."""

    plan: BelowPlan

    def summary(self) -> str:
        about = "exactly" if self.plan.is_exact else "about"
        value = number_text("value", self.values[0], self.plan.rmse)
        return f"{self.verdict} {self.plan.query.threshold:,}" + (f", {about} {value}" if value else "")

    def about(self) -> dict[str, Any]:
        return {"count of": [str(self.plan.query.where)], "threshold": [self.plan.query.threshold]}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ItemVerdicts(VerdictRecord):
    """The verdicts on items, in the order in which they were asked."""

    plan: AbovePlan

    def summary(self) -> str:
        found = self.verdicts.count(self.plan.words.above)
        return f"{found:,} {self.plan.words.above} among {len(self.places):,} of {self.plan.answers:,} asked"

    def about(self) -> dict[str, Any]:
        query = self.plan.query
        items = {query.called: query.cells(self.places, self.plan.policy.domain)}
        if isinstance(query.threshold, int):
            return items
        return side_by_side(items, {"threshold": self.plan.thresholds[self.places].tolist()})

    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return the values; a list of verdicts has no column of intervals."""
        return {"value": self.values}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ranking(SelectionRecord):
    """The items with the largest counts."""

    plan: RankingPlan

    def summary(self) -> str:
        return f"{len(self.places):,} of {self.plan.query.candidates(self.plan.policy.domain):,}"

    def about(self) -> dict[str, Any]:
        query = self.plan.query
        return {query.called: query.cells(self.places, self.plan.policy.domain)}


def select(plan: SelectionPlan, truth: Ints) -> SelectionRecord:
    """Answer a selection from the true counts."""
    record = make_record(plan, plan.draw(truth))
    return replace(record, values=np.maximum(record.values, 0.0)) if plan.nonnegative else record


@draw_record.register
def _(plan: SelectionPlan, truths: Sequence[Ints], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    record = select(plan, *truths)
    return lambda: record


@singledispatch
def make_record(plan: SelectionPlan, output: Any) -> SelectionRecord:
    """Return the record of an output: everything from here on is post-processing."""
    raise TypeError(type(plan).__name__)


@make_record.register
def _(plan: BelowPlan, output: int | None) -> SelectionRecord:
    is_above = np.array([plan.step.monotone == "rising" if output is None else output >= plan.query.threshold])
    measured = None if output is None else with_law(plan.noise, _whole([output]))
    which = _whole([-1 if output is None else 0])
    proved = plan.proved(is_above)
    return _with_rows(CountVerdict, plan, _whole([0]), measured, which, is_above, proved=proved)


@make_record.register
def _(plan: AbovePlan, output: tuple[Sequence[bool], Sequence[int]]) -> SelectionRecord:
    verdicts, noisy = output
    is_above = np.asarray(verdicts, dtype=np.bool_)
    found = np.flatnonzero(is_above == plan.costly)
    which = np.full(len(is_above), -1)
    measured: SelectedCounts | None = None
    if noisy:
        which[found] = np.arange(len(found))
        measured = with_law(plan.measuring(found), _whole(noisy))
    proved = plan.proved(is_above)
    return _with_rows(ItemVerdicts, plan, np.arange(len(is_above)), measured, which, is_above, proved=proved)


@make_record.register
def _(plan: TopKPlan, output: Sequence[tuple[int, int]]) -> SelectionRecord:
    places, noisy = zip(*output, strict=True)
    return _rank(plan, _whole(places), with_law(plan.measuring, _whole(noisy)))


@make_record.register
def _(plan: BarPlan, output: BarOutput) -> SelectionRecord:
    middle = None
    if output.centre is not None and plan.centring is not None:
        # whole numbers are subtracted first: sums of large counts have no digits to spare
        gap = (output.centre - sum(output.noisy)) / plan.candidates
        middle = gap, plan.candidates / float(plan.centring.right)
    return _rank(plan, _whole(output.places), Tilted(_whole(output.noisy), plan.law.at(output.bar + 1), middle))


def _rank(plan: RankingPlan, places: Ints, measured: SelectedCounts) -> SelectionRecord:
    # by the estimates alone, equal ones by their place: what is shown, and in which order, says nothing more
    estimates = measured.estimates()
    order = np.argsort(-estimates, kind="stable")[: plan.query.k]
    return _with_rows(Ranking, plan, places[order], measured, order, values=estimates[order])


def _with_rows(
    kind: type[SelectionRecord],
    plan: SelectionPlan,
    places: Ints,
    measured: SelectedCounts | None,
    which: Ints,
    is_above: npt.NDArray[np.bool_] | None = None,
    *,
    proved: tuple[Floats, Floats] | None = None,
    values: Floats | None = None,
) -> SelectionRecord:
    """Return the record of some rows; `values` are their estimates, where these are known already."""
    floor, ceiling = (np.zeros(len(places)), np.full(len(places), np.inf)) if proved is None else proved
    if values is None:
        values = np.full(len(places), np.nan)
        if measured is not None:
            values[which >= 0] = measured.estimates()[which[which >= 0]]
    return kind(
        plan=plan,
        values=values,
        places=places.astype(np.int64),
        is_above=is_above,
        _measured=measured,
        _which=which.astype(np.int64),
        _floor=floor,
        _ceiling=ceiling,
    )


def _whole(numbers: Sequence[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)
