"""`rectangles`: how many people are in rectangles of two ordered attributes, or of a map; listed ones, or all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError
from tacit.plan.measure.measured import CellCounts, Tally
from tacit.plan.question import (
    Linear,
    attribute_of,
    cell_of,
    check_names,
    in_words,
    position_of_end,
    read_where,
    suffix,
)
from tacit.plan.question_keys import OF, WHERE, Question, as_ends, has_order, listed_ends, read_ends
from tacit.plan.questions.cumulative import check_ordered
from tacit.plan.sensitivity.responses import CellResponse, Jump, PlacedResponse, RecordMove, Response, cell_labels
from tacit.policy.attributes.attribute import Axis, Value
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.genuine import as_plain
from tacit.policy.keys import TEXTS, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where

if TYPE_CHECKING:
    from tacit.plan.measure.workload import Workload
    from tacit.plan.plans.grid_plan import GridPlan

Ends = tuple[Value, Value, Value, Value]
MOST_CELLS: Final = 10_000_000
MOST_ALONG: Final = 4_096  # positions of one axis, whose pairs are looked at
_ENDS: Final = ("x_low", "x_high", "y_low", "y_high")
_WRITE: Final = "Write [[x_low, x_high, y_low, y_high], ..], or 'all'."


@dataclass(frozen=True)
class Rectangles(Linear):
    """How many people are in each listed rectangle, or (`rectangles=None`) in any: then the answers are all cells.

    `names` are two ordered attributes, or one of places. A rectangle is its first and last value along x, then along y,
    all included.
    """

    names: tuple[str, ...]
    rectangles: tuple[Ends, ...] | None = None
    where: Where | None = None
    keyword: ClassVar[str] = "rectangles"

    def check(self, domain: Domain) -> None:
        if len(self.names) == 1:
            (name,) = self.names
            attribute = attribute_of(domain, name, self.keyword)
            if attribute.measured != "places":
                rule = "must name two ordered attributes, or a grid"
                raise PlanError(rule, key=self.keyword, given=name, fix="Name the second, or ask for `ranges`.")
        elif len(self.names) != 2 or self.names[0] == self.names[1]:
            rule = "must name two different ordered attributes, or a grid"
            fix = "For instance rectangles('age', 'income', 'all')."
            raise PlanError(rule, key=self.keyword, given=list(self.names), fix=fix)
        else:
            for name in self.names:
                check_ordered(domain, name, self.keyword)
        super().check(domain)
        if self.rectangles is not None:
            if not self.rectangles:
                raise PlanError("must list a rectangle", key=self.keyword, given=[], fix=_WRITE)
            self.positions(domain)

    def resolved(self, domain: Domain) -> Rectangles:
        self.check(domain)
        if self.rectangles is None or len(self.names) == 1:
            return self
        x, y = (domain[name].canonical for name in self.names)
        return replace(self, rectangles=tuple((x(a), x(b), y(c), y(d)) for a, b, c, d in self.rectangles))

    def axes(self, domain: Domain) -> tuple[Axis, Axis]:
        """Return the axes along which rectangles lie."""
        x, y = (axis for name in self.names for axis in domain.axes_of(name))
        return x, y

    def positions(self, domain: Domain) -> list[tuple[int, int, int, int]]:
        """Return the listed rectangles as positions."""
        return [self.places(domain, ends) for ends in self.rectangles or ()]

    def places(self, domain: Domain, ends: Any) -> tuple[int, int, int, int]:
        """Return a rectangle as positions, or refuse it."""
        if not isinstance(ends, tuple | list) or len(ends) != len(_ENDS):
            raise PlanError(f"must be [{', '.join(_ENDS)}]", key=self.keyword, given=ends, fix="Give all ends.")
        if len(self.names) == 1:
            sizes = [axis.size for axis in self.axes(domain)]
            found = [_place(end, size, self.names[0]) for end, size in zip(ends, np.repeat(sizes, 2), strict=True)]
        else:
            sides = [(name, side) for name in self.names for side in ("lower", "upper")]
            found = [
                position_of_end(domain[name], end, f"{self.keyword}: {side} end of {name}")
                for end, (name, side) in zip(ends, sides, strict=True)
            ]
        if found[0] > found[1] or found[2] > found[3]:
            raise PlanError("must not end before it starts", key=self.keyword, given=list(ends), fix="Swap the ends.")
        return found[0], found[1], found[2], found[3]

    def wanted(self, domain: Domain) -> Workload:
        """Return which rectangles are asked for, as positions."""
        from tacit.plan.measure.workload import Workload

        x, y = self.axes(domain)
        return Workload((x.size, y.size), None if self.rectangles is None else tuple(self.positions(domain)))

    def mentioned(self) -> frozenset[str]:
        return super().mentioned() | set(self.names)

    def size(self, domain: Domain) -> int:
        if self.rectangles is not None:
            return len(self.rectangles)
        x, y = self.axes(domain)
        return x.size * y.size

    def size_words(self, answers: int, domain: Domain) -> str:
        if self.rectangles is not None:
            return f"{answers:,} rectangle{'s' * (answers != 1)}"
        x, y = self.axes(domain)
        return f"all rectangles of {x.size:,} x {y.size:,} cells"

    def listed_words(self, domain: Domain) -> str:
        return "cells" if self.rectangles is None else "rectangles"

    def check_size(self, domain: Domain) -> None:
        super().check_size(domain)
        x, y = self.axes(domain)
        if x.size * y.size > MOST_CELLS or max(x.size, y.size) > MOST_ALONG:
            raise PlanError(
                f"has {x.size:,} x {y.size:,} cells, more than {MOST_ALONG:,} along one side or {MOST_CELLS:,} in all",
                key=self.keyword,
                fix="Declare coarser steps, or a coarser grid.",
            )

    def ends(self, domain: Domain) -> Ints:
        """Return the first and last position along x, then along y, of each answer."""
        if self.rectangles is not None:
            return np.array(self.positions(domain), dtype=np.int64)
        x, y = (np.arange(axis.size) for axis in self.axes(domain))
        across, along = np.repeat(x, len(y)), np.tile(y, len(x))
        return np.stack([across, across, along, along], axis=1)

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        if self.rectangles is None:
            return {**cell_labels(self.names, domain)}
        return {
            f"{axis.name} {end}": [ends[2 * at + last] for ends in self.rectangles]
            for at, axis in enumerate(self.axes(domain))
            for last, end in enumerate(("from", "to"))
        }

    def options(self) -> dict[str, Any]:
        listed = "all" if self.rectangles is None else [list(ends) for ends in self.rectangles]
        return {"attributes": list(self.names), "rectangles": listed}

    def words(self, domain: Domain) -> str:
        return f"{self.who.capitalize()} by rectangle of {in_words(self.names)}"

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts(self.names, self.where),)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        x, y = self.axes(domain)
        cells = np.asarray(tallied[0], dtype=np.int64).reshape(x.size, y.size)
        return np.asarray(cells.reshape(-1) if self.rectangles is None else in_rectangles(cells, self.ends(domain)))

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        x, y = divmod(cell_of(record, self.names, domain), self.axes(domain)[1].size)
        ends = self.ends(domain).T
        inside = (ends[0] <= x) & (x <= ends[1]) & (ends[2] <= y) & (y <= ends[3])
        return np.asarray(inside, dtype=np.int64)

    def response(self, domain: Domain) -> Response:
        if self.rectangles is None:
            return CellResponse.of((self.names,))
        return ListedRectanglesResponse(self.wanted(domain).deepest, cells=self.names)

    def plan(self, policy: Policy, epsilon: Fraction) -> GridPlan:
        from tacit.plan.plans.grid_plan import plan_rectangles

        return plan_rectangles(self, policy, epsilon)

    def __str__(self) -> str:
        many = "all" if self.rectangles is None else str(len(self.rectangles))
        return f"rectangles({', '.join(self.names)}, {many}{suffix(self.where, self.of)})"


@dataclass(frozen=True)
class ListedRectanglesResponse(PlacedResponse):
    """Counts of people in listed rectangles, of which `deepest` at most hold the same cell: bounds, not maxima."""

    deepest: int

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """Whoever changes the cell leaves and joins at most so many rectangles."""
        return [Jump.by_ones(rise=self.deepest, fall=self.deepest, bound=True)] if move.changed else []

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return [Jump.by_ones(rise=self.deepest, fall=0, bound=True)]


def in_rectangles(cells: Any, ends: Ints) -> Any:
    """Return the sum of the cells in each rectangle, from running sums along both axes."""
    below = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1), dtype=cells.dtype)
    below[1:, 1:] = cells.cumsum(axis=0).cumsum(axis=1)
    x_low, x_high, y_low, y_high = ends.T
    upper = below[x_high + 1, y_high + 1] - below[x_low, y_high + 1]
    return upper - below[x_high + 1, y_low] + below[x_low, y_low]


def _place(end: Any, size: int, name: str) -> int:
    if isinstance(end, bool) or not isinstance(end, int | np.integer) or not 0 <= end < size:
        rule = f"must be a row or column of {name}, from 0 to {size - 1}"
        raise PlanError(rule, key="rectangles", given=end, fix="Write [row_low, row_high, column_low, column_high].")
    return int(end)


def rectangles(*what: Any, where: Where | str | None = None, of: str | None = None) -> Rectangles:
    """Ask how many people are in rectangles of two ordered attributes, or of a map.

    First come the names, then "all" or a list of [x_low, x_high, y_low, y_high], all ends included:
    `rectangles("age", "income", "all")`, `rectangles("place", [[0, 9, 0, 9]])`.
    """
    *names, ends = as_plain(what) if what else ("", "all")
    if isinstance(ends, str) and ends != "all":
        fix = "After the names write 'all', or [[x_low, x_high, y_low, y_high], ..]."
        raise PlanError("must end with 'all' or a list", key="rectangles", given=ends, fix=fix)
    check_names(names, "rectangles")
    if not names or names == [""]:
        rule = "must name two ordered attributes, or a grid"
        raise PlanError(rule, key="rectangles", given=[], fix="For instance rectangles('age', 'income', 'all').")
    listed = read_ends(ends, "rectangles", _ENDS, _WRITE)
    each = None if listed is None else tuple((a, b, c, d) for a, b, c, d in listed)
    return Rectangles(tuple(names), each, read_where(where), of=of)


def _example(policy: Policy) -> Rectangles:
    """Return a question about the first map, or the first two attributes with an order, secret ones first."""
    moved = sorted(policy.domain, key=lambda name: name not in policy.moved_attributes)
    for name in moved:
        if policy.domain[name].measured == "places":
            return Rectangles((name,))
    ordered = [name for name in moved if has_order(policy.domain[name])]
    if len(ordered) < 2:
        rule = "has no two attributes that rectangles can be asked about"
        raise PlanError(rule, key="policy", fix="Ask another kind of question.")
    return Rectangles((ordered[0], ordered[1]))


RECTANGLES: Final = Question(
    "rectangles",
    keys=(
        Key("attributes", TEXTS, "Two ordered attributes, or a grid.", required=True),
        Key("rectangles", listed_ends(4), read=as_ends),
        WHERE,
        OF,
    ),
    ask=lambda *names, **options: rectangles(*names, options.pop("rectangles", "all"), **options),
    example=_example,
    shown=(
        (
            "`{rectangles: {attributes: [age, income], rectangles: [[0, 17, 0, 99]]}}`",
            "people with both values between the ends of each listed rectangle",
        ),
        (
            "`{rectangles: [age, income]}`, or `{rectangles: place}` on a grid",
            "all rectangles; the table has the cells that they are sums of",
        ),
    ),
)
