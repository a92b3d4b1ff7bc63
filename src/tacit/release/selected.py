"""Selections: from true counts to a verdict, a ranking or a list, and the record of it.

True counts live in `select` and below it, and nowhere else. What a record holds is the output of a mechanism and what
follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.amounts import shown
from tacit.errors import PlanError
from tacit.mechanism.selection import output_of
from tacit.noise.law import Law
from tacit.noise.tilted_cube import TiltedCube
from tacit.plan.coverage import noise_bounds
from tacit.plan.ranking import BarPlan, TopKPlan
from tacit.plan.selection_plan import SelectionPlan
from tacit.plan.verdicts import AbovePlan, BelowPlan
from tacit.policy.attributes import Attribute
from tacit.release.number_texts import number_text
from tacit.release.record import Floats, Ints, ReleaseRecord, check_level
from tacit.release.table_file import side_by_side
from tacit.release.tilted_estimates import estimated, largest_radius

AnySelection: TypeAlias = BelowPlan | AbovePlan | TopKPlan | BarPlan


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noisy counts with independent noise of one law, or exact ones."""

    counts: Ints
    law: Law | None

    def estimates(self) -> Floats:
        """Return the counts without the mean of the noise."""
        return np.asarray(self.counts - (self.law.mean() if self.law is not None else 0.0), dtype=np.float64)

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals, taken one at a time."""
        low, high = (0.0, 0.0) if self.law is None else noise_bounds(self.law, 1, 0, level)
        return (self.counts - high).astype(np.float64), (self.counts - low).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Tilted:
    """Noisy counts of a tilted cube; `middle` is a noisy mean of the true ones, less that of the noisy, with a rate."""

    counts: Ints
    law: TiltedCube
    middle: tuple[float, float] | None = None

    def estimates(self) -> Floats:
        """Return the best estimates."""
        return estimated(self.counts, self.law, self.middle)

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals; no true count is above the upper one."""
        radius = largest_radius(self.counts, self.law, level)
        return (self.counts - radius).astype(np.float64), self.counts.astype(np.float64)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SelectionRecord(ReleaseRecord):
    """The result of a selection: a row for each item (or the one count) that was chosen or asked about.

    `places` are positions in the domain, `is_above` the verdicts. `_measured` has the noisy counts, and `_which` says
    for each row which of them is its own, -1 for none. `_floor` and `_ceiling` are what a verdict alone proves.
    """

    plan: AnySelection
    places: Ints
    is_above: npt.NDArray[np.bool_] | None = None
    _measured: Noisy | Tilted | None = field(repr=False, default=None)
    _which: Ints = field(repr=False)
    _floor: Floats = field(repr=False)
    _ceiling: Floats = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for array in (self.places, self._which, self._floor, self._ceiling):
            array.flags.writeable = False

    def __repr__(self) -> str:
        plan = self.plan
        return f"<release of {plan.query}, epsilon {shown(plan.epsilon)}: {self.summary()}>"

    @property
    def verdicts(self) -> list[str]:
        """The verdict of each row in words; none for a ranking."""
        if self.is_above is None or isinstance(self.plan, TopKPlan | BarPlan):
            return []
        words = self.plan.words
        return [words.of(one) for one in self.is_above.tolist()]

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

    def summary(self) -> str:
        """Return what came out in a few words."""
        match self.plan:
            case BelowPlan():
                about = "exactly" if self.plan.is_exact else "about"
                value = number_text("value", self.values[0], self.plan.rmse)
                return f"{self.verdict} {self.plan.query.threshold:,}" + (f", {about} {value}" if value else "")
            case AbovePlan():
                found = self.verdicts.count(self.plan.words.above)
                return f"{found:,} {self.plan.words.above} among {len(self.places):,} of {self.plan.answers:,} asked"
            case _:
                return f"{len(self.places):,} of {self.plan.query.candidates(self.plan.policy.domain):,}"

    def reading_order(self) -> Ints:
        """Return the rows with a value first: among many verdicts, these are the ones that a reader looks for."""
        return np.argsort(np.isnan(self.values), kind="stable")

    def labels(self) -> dict[str, Any]:
        """Return what each row is about, and its verdict."""
        if isinstance(self.plan, BelowPlan):
            about: dict[str, Any] = {"count of": [str(self.plan.query.where)], "threshold": [self.plan.query.threshold]}
        else:
            name = self.plan.query.name
            about = {name: _names(self.plan.policy.domain[name], self.places)}
        return side_by_side(about, {"verdict": self.verdicts}) if self.is_above is not None else about

    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return the values and, but for a list of verdicts, the ends of their intervals."""
        if isinstance(self.plan, AbovePlan):
            return {"value": self.values}
        lower, upper = self.interval(level)
        return {"value": self.values, "lower": lower, "upper": upper}

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


def select(plan: SelectionPlan, truth: Ints) -> SelectionRecord:
    """Answer a selection from the true counts."""
    record = make_record(plan, output_of(truth, plan))
    return replace(record, values=np.maximum(record.values, 0.0)) if plan.nonnegative else record


def make_record(plan: SelectionPlan, output: Any) -> SelectionRecord:
    """Return the record of an output: everything from here on is post-processing."""
    match plan:
        case BelowPlan():
            is_above = plan.step.monotone == "rising" if output is None else output >= plan.query.threshold
            measured = None if output is None else Noisy(_whole([output]), plan.law)
            return _rows(plan, _whole([0]), measured, _whole([-1 if output is None else 0]), np.array([is_above]))
        case AbovePlan():
            return _verdicts(plan, *output)
        case TopKPlan():
            places, noisy = zip(*output, strict=True)
            return _rank(plan, _whole(places), Noisy(_whole(noisy), plan.measuring))
        case BarPlan():
            middle = None
            if output.centre is not None and plan.centring is not None:
                # whole numbers are subtracted first: sums of large counts have no digits to spare
                gap = (output.centre - sum(output.noisy)) / plan.candidates
                middle = gap, plan.candidates / float(plan.centring.right)
            tilted = Tilted(_whole(output.noisy), plan.law.at(output.bar + 1), middle)
            return _rank(plan, _whole(output.places), tilted)
    raise TypeError(type(plan))


def _verdicts(plan: AbovePlan, verdicts: Sequence[bool], noisy: Sequence[int]) -> SelectionRecord:
    is_above = np.asarray(verdicts, dtype=np.bool_)
    found = np.flatnonzero(is_above == plan.costly)
    which = np.full(len(is_above), -1)
    measured: Noisy | Tilted | None = None
    if noisy:
        which[found] = np.arange(len(found))
        law = plan.measuring(len(found))
        measured = Tilted(_whole(noisy), law) if isinstance(law, TiltedCube) else Noisy(_whole(noisy), law)
    return _rows(plan, np.arange(len(is_above)), measured, which, is_above)


def _rank(plan: TopKPlan | BarPlan, places: Ints, measured: Noisy | Tilted) -> SelectionRecord:
    # by the estimates alone, equal ones by their place: what is shown, and in which order, says nothing more
    estimates = measured.estimates()
    order = np.argsort(-estimates, kind="stable")[: plan.query.k]
    return _rows(plan, places[order], measured, order, values=estimates[order])


def _rows(
    plan: AnySelection,
    places: Ints,
    measured: Noisy | Tilted | None,
    which: Ints,
    is_above: npt.NDArray[np.bool_] | None = None,
    *,
    values: Floats | None = None,
) -> SelectionRecord:
    """Return the record of some rows; `values` are their estimates, where these are known already."""
    floor, ceiling = np.zeros(len(places)), np.full(len(places), np.inf)
    if is_above is not None and isinstance(plan, BelowPlan | AbovePlan):
        if plan.words.below_is_certain:
            ceiling[~is_above] = plan.query.threshold - 1
        if plan.words.above_is_certain:
            floor[is_above] = plan.query.threshold
    if values is None:
        values = np.full(len(places), np.nan)
        if measured is not None:
            values[which >= 0] = measured.estimates()[which[which >= 0]]
    return SelectionRecord(
        plan=plan,
        values=values,
        places=places.astype(np.int64),
        is_above=is_above,
        _measured=measured,
        _which=which.astype(np.int64),
        _floor=floor,
        _ceiling=ceiling,
    )


def _names(attribute: Attribute, places: Ints) -> list[Any]:
    """Return what the items or values at these positions are called."""
    return [attribute.cell(place) for place in places.tolist()]


def _whole(numbers: Sequence[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)
