"""`total`: the sum of an attribute's numbers over the people, or one for each cell of other attributes.

With a weight, products are added up. Along an edge a person's number moves from v to v' and the weight from w to w',
and a sum changes by w' v' - w v; where the person's cell changes, one sum loses w v and another gains w' v'. For fixed
weights these are linear in (v, v'), for fixed numbers linear in (w, w'); rises, falls, lengths and squares are convex
in them. So the largest is attained where (v, v') is a corner of what the edges allow on its line and (w, w') a corner
on its own. Where both lines share one distance, each difference v' - v fixes how far the weight may move and is looked
at by itself; of very many differences, neighbouring ones are taken together, which allows a little more than the edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError
from tacit.plan.measure.measured import CellCounts, CellSums, Tally
from tacit.plan.question import (
    Linear,
    Query,
    attribute_of,
    cell_of,
    check_different,
    check_names,
    in_words,
    position,
    suffix,
)
from tacit.plan.question_keys import (
    ATTRIBUTE_OR_EACH,
    BY,
    OF,
    OR_ROWS,
    WHERE,
    Question,
    about,
    can_be_added_up,
    first_attribute,
    names_of,
)
from tacit.plan.sensitivity.responses import (
    Jump,
    LineMove,
    PlacedResponse,
    RecordMove,
    Response,
    cell_labels,
    corner_moves,
)
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Near
from tacit.policy.keys import TEXT, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where

LARGEST_TOTAL: Final = 2**62
LARGEST_PRODUCT: Final = LARGEST_TOTAL // 2**20  # of one person, so that the sum over a million is not cut
MOST_PRODUCTS: Final = 5_000_000  # cells in each of which one number is added up before it is multiplied by the other


@dataclass(frozen=True)
class Summed(Query):
    """What questions about the sum of an attribute have in common: of all people or, with `by`, in each cell."""

    name: str
    where: Where | None = None
    by: tuple[str, ...] = ()

    def check(self, domain: Domain) -> None:
        check_number(domain, self.name, self.keyword, "Count it instead.")
        key = f"{self.keyword}.by"
        for other in self.by:
            if attribute_of(domain, other, key).is_set:
                rule = "must not be a set of items, since a person is in several of its cells"
                raise PlanError(rule, key=key, given=other, fix="Use `where`, one release for each item.")
        if self.name in self.by:
            rule = "must not be what is added up, since all are alike in such a cell"
            raise PlanError(rule, key=key, given=self.name, fix=f"Ask for histogram({self.name!r}).")
        check_different(self.by, key)
        super().check(domain)

    def mentioned(self) -> frozenset[str]:
        return super().mentioned() | {self.name, *self.by}

    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""
        return math.prod(domain[name].size for name in self.by)

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        """Return the columns that say what each answer is about."""
        return {**cell_labels(self.by, domain)} if self.by else {f"{self.keyword} of": [str(self)]}

    def options(self) -> dict[str, Any]:
        return {"attribute": self.name, **({"by": list(self.by)} if self.by else {})}

    def words(self, domain: Domain) -> str:
        return f"{self.keyword.capitalize()} of {self.name}{by_words(self.by)}{self.of_rows}{self.cut_words(domain)}"

    def split_by(self) -> tuple[str, ...]:
        return self.by

    def unit_words(self, domain: Domain) -> str:
        return self.name

    def written(self, word: str, what: str) -> str:
        """Return the question in a line."""
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"{word}({what}{by}{suffix(self.where, self.of, self.each)})"

    def __str__(self) -> str:
        return self.written(self.keyword, self.name)


@dataclass(frozen=True)
class Total(Summed, Linear):
    """The sum of an attribute over the people, in its unit; with `by`, one for each cell of these attributes.

    Everybody's number is counted from `origin` (in units), which keeps what somebody adds small who comes or leaves.
    With `weight`, everybody's number is multiplied by that attribute's.
    """

    origin: int = 0
    weight: str | None = None
    keyword: ClassVar[str] = "total"
    counts_people: ClassVar[bool] = False

    def check(self, domain: Domain) -> None:
        super().check(domain)
        if self.weight is not None:
            check_number(domain, self.weight, "total.weight", "Name another one.")
            if self.weight in (self.name, *self.by):
                rule = "must be another attribute than what is added up and what people are split by"
                raise PlanError(rule, key="total.weight", given=self.weight, fix="Name another one.")

    def check_size(self, domain: Domain) -> None:
        super().check_size(domain)
        if self.weight is None:
            return
        split, _ = self._split(domain, self.weight)
        largest = math.prod(_largest(domain[name]) for name in (self.name, self.weight))
        check_products(self.size(domain) * domain[split].size, largest, "total.weight", split, self.weight)

    def mentioned(self) -> frozenset[str]:
        return super().mentioned() | ({self.weight} if self.weight is not None else frozenset())

    def document(self) -> Any:
        said = super().document()[self.keyword]
        return {self.keyword: said if self.weight is None else {**said, "weight": self.weight}}

    def words(self, domain: Domain) -> str:
        if self.weight is None:
            return super().words(domain)
        return f"Total of {self.unit_words(domain)}{by_words(self.by)}{self.of_rows}"

    def unit_words(self, domain: Domain) -> str:
        return self.name if self.weight is None else f"{self.name} times {self.weight}"

    def never_negative(self, domain: Domain) -> bool:
        """Say whether nobody's number is below zero."""
        lowest = [domain[self.name].number(0) - self.origin]
        return min(lowest + ([] if self.weight is None else [domain[self.weight].number(0)])) >= 0

    def unit(self, domain: Domain) -> Fraction:
        units = [domain[name].unit or Fraction(1) for name in (self.name, self.weight) if name is not None]
        return math.prod(units, start=Fraction(1))

    def _split(self, domain: Domain, weight: str) -> tuple[str, str]:
        """Return which of number and weight splits people into cells, the one with fewer values; and the other one."""
        return (weight, self.name) if domain[weight].size <= domain[self.name].size else (self.name, weight)

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        """Return what rows are counted for: of products, the sums of one number for each value of the other."""
        if self.weight is not None:
            split, added = self._split(policy.domain, self.weight)
            return (CellSums(added, (*self.by, split), self.where),)
        sums = CellSums(self.name, self.by, self.where)
        return (sums, CellCounts(self.by, self.where)) if self.origin else (sums,)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        """Return the sums, cut to what 62 bits hold: cutting never moves two sums further apart."""
        sums = np.asarray(tallied[0], dtype=object)
        if self.weight is not None:
            split = domain[self._split(domain, self.weight)[0]]
            by_value = sums.reshape(-1, split.size)
            first, spacing = split.number(0), split.spacing
            # first * (all sums) + spacing * (each sum as often as its position says)
            sums = first * by_value.sum(axis=1) + spacing * (by_value @ np.arange(split.size).astype(object))
        sums = sums.reshape(-1)
        if self.origin:
            sums = sums - self.origin * np.asarray(tallied[1]).astype(object).reshape(-1)
        return as_sums(sums)

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        out = np.zeros(self.size(domain), dtype=np.int64)
        cell = cell_of(record, self.by, domain)
        out[cell] = domain[self.name].number(position(domain, self.name, record[self.name])) - self.origin
        if self.weight is not None:
            out[cell] *= domain[self.weight].number(position(domain, self.weight, record[self.weight]))
        return out

    def response(self, domain: Domain) -> Response:
        line = domain.axes_of(self.name)[0]
        if self.weight is None:
            return SumResponse(self.numbers(domain), cells=self.by, line=line)
        weight, weights = domain.axes_of(self.weight)[0], Numbers.of(domain[self.weight])
        return WeightedSumResponse(self.numbers(domain), weights, cells=self.by, line=line, weight=weight)

    def numbers(self, domain: Domain) -> Numbers:
        """Return the number at each position, counted from the origin."""
        return Numbers.of(domain[self.name], self.origin)

    def __str__(self) -> str:
        return self.written(self.keyword, self.name if self.weight is None else f"{self.name} times {self.weight}")


@dataclass(frozen=True)
class Numbers:
    """The number at each position of a line: the first, and how far one is from the next."""

    first: int
    spacing: int

    @classmethod
    def of(cls, attribute: Any, origin: int = 0) -> Numbers:
        """Return the numbers of an attribute, counted from an origin."""
        return cls(int(attribute.number(0)) - origin, attribute.spacing)

    def at(self, place: int) -> int:
        """Return the number at a position."""
        return self.first + self.spacing * place


@dataclass(frozen=True)
class SumResponse(PlacedResponse):
    """The sum of a number in each cell.

    From -5 to 5 a person moves the sum of one cell by 10, but those of two cells by 5 each.
    """

    numbers: Numbers
    staying_may_show_more: ClassVar[bool] = True

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """A sum changes by the difference of the two numbers; between two cells, one loses and the other gains."""
        if not move.changed:
            found = move.relation.differences(move.hidden, move.cover)
            return [Jump.of(end * self.numbers.spacing) for end in found.ends]
        return [Jump.of(-self.numbers.at(start), self.numbers.at(end)) for start, end in corner_moves(move)]

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return [Jump.of(self.numbers.at(end)) for end in places.ends]


def as_sums(exact: Iterable[Any]) -> Ints:
    """Return sums cut to what 62 bits hold: cutting never moves two sums further apart."""
    return np.array([max(-LARGEST_TOTAL, min(int(one), LARGEST_TOTAL)) for one in exact], dtype=np.int64)


def check_products(cells: int, largest: int, key: str, split: str, factor: str | None = None) -> None:
    """Refuse sums of products that are made of more numbers than memory holds, or of too large ones."""
    one_of_two = " for one of the two" if factor else ""
    if cells > MOST_PRODUCTS:
        raise PlanError(
            f"must have at most {MOST_PRODUCTS:,} values, here {cells:,}: one sum is made for each",
            key=key,
            given=split,
            fix=f"Declare a coarser step{one_of_two}, or ask for fewer cells.",
        )
    if largest > LARGEST_PRODUCT:
        rule = f"must be a product of at most {LARGEST_PRODUCT:.3g} units, here {float(largest):.3g}"
        fix = f"Declare a coarser step or narrower ends{one_of_two}."
        raise PlanError(rule, key=key, given=factor or split, fix=fix)


def _largest(attribute: Any) -> int:
    return max(abs(int(attribute.number(place))) for place in (0, attribute.size - 1))


def total(
    name: str | None = None,
    by: str | Iterable[str] = (),
    *,
    weight: str | None = None,
    where: Where | str | None = None,
    of: str | None = None,
    each: str | None = None,
    at_most: Any = None,
    step: Any = None,
) -> Total:
    """Ask for the sum of an attribute; with `by`, for one sum in each cell of these attributes.

    With `weight`, everybody's number is first multiplied by that attribute's. With `each`, one number of each person
    is added up, as in `mean`: where the sum of each is `at_most` so much, nobody changes the total by more.
    """
    fields = about("total", name, where=where, of=of, each=each, at_most=at_most, step=step, also=weight or by)
    return Total(**fields, by=read_by(by, "total"), weight=weight)


def read_by(by: Any, keyword: str) -> tuple[str, ...]:
    """Return the attributes that split people into cells, or refuse."""
    if not isinstance(by, str | list | tuple | set | frozenset):
        raise PlanError("must name attributes", key=f"{keyword}.by", given=by, fix="Write by=('sex',).")
    listed = tuple(names_of(by))
    check_names(listed, f"{keyword}.by")
    return listed


def check_number(domain: Domain, name: str, key: str, fix: str) -> None:
    """Refuse an attribute whose values are no numbers."""
    if not can_be_added_up(attribute_of(domain, name, key)):
        raise PlanError("must be declared as integers or decimals", key=key, given=name, fix=fix)


def by_words(by: tuple[str, ...]) -> str:
    """Return the cells in words, or nothing."""
    return f" by {in_words(by)}" if by else ""


TOTAL: Final = Question(
    "total",
    keys=(
        *ATTRIBUTE_OR_EACH,
        BY,
        Key("weight", TEXT, "An attribute by which everybody's number is multiplied."),
        WHERE,
        OF,
    ),
    some=OR_ROWS,
    ask=total,
    example=lambda policy: total(first_attribute(policy, "total", can_be_added_up)),
    shown=(
        ("`{total: income}`", "the sum of a number"),
        ("`{total: {attribute: income, by: [ward, sex]}}`", "one sum for each cell"),
        ("`{total: {attribute: income, weight: months}}`", "the sum of one number times another"),
        (
            "`{total: {attribute: hours, each: sum, at_most: 40}}`",
            "the sum of what people add up to, 40 of each at most",
        ),
    ),
)


MOST_DIFFERENCES: Final = 2048  # of a line that shares its distance with the weight's, looked at one by one
_MANY: Final = 6  # corners, of which those inside of the others' hull are left out
Ends = tuple[int, int]


@dataclass(frozen=True)
class WeightedSumResponse(Response):
    """The sum of a number times a weight in each cell."""

    numbers: Numbers
    weights: Numbers
    staying_may_show_more: ClassVar[bool] = True

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """A sum changes by the difference of the two products; between two cells, one loses and the other gains."""
        for before, after, bound in self._products(move):
            if move.changed:
                yield Jump.of(-before, after, bound=bound)
            else:
                yield Jump.of(after - before, bound=bound)

    def left(self, move: RecordMove) -> Iterable[Jump]:
        """A sum loses the hidden product."""
        return (Jump.of(-before, bound=bound) for before, _, bound in self._products(move))

    def entered(self, move: RecordMove) -> Iterable[Jump]:
        """A sum gains the cover product."""
        return (Jump.of(after, bound=bound) for _, after, bound in self._products(move))

    def _products(self, move: RecordMove) -> Iterator[tuple[int, int, bool]]:
        """Yield the products before and after at the corners of what a move may do, and whether it may do less."""
        for lines, weights, bound in _corners(move):
            for v, v_after in lines:
                for w, w_after in weights:
                    before = self.numbers.at(v) * self.weights.at(w)
                    yield before, self.numbers.at(v_after) * self.weights.at(w_after), bound


def _corners(move: RecordMove) -> Iterator[tuple[list[Ends], list[Ends], bool]]:
    """Yield corners of the line with those of the weight's line that go with each of them."""
    weight = move.weight
    if weight is None:
        raise TypeError(move)
    line = LineMove(move.relation, move.hidden, move.cover)
    if weight.left is None:
        yield _outermost(corner_moves(line)), _outermost(corner_moves(weight)), False
        return
    differences = move.relation.differences(move.hidden, move.cover)
    width = -(-differences.count // MOST_DIFFERENCES)
    by_reach: dict[int, list[Ends]] = {}
    for low, high in _runs(differences, width):
        reach = weight.left(min(abs(low), abs(high)))
        if reach not in by_reach:
            near = LineMove(Near(reach), weight.hidden, weight.cover)
            by_reach[reach] = _outermost(corner_moves(near)) if reach >= 0 else []
        lines = _by(low, move) if low == high else _band(low, high, move)
        if lines and by_reach[reach]:
            yield lines, by_reach[reach], low < high


def _runs(differences: Intervals, width: int) -> Iterator[Ends]:
    """Cut differences into runs of at most so many, none of which has differences of both signs, or zero and others."""
    sides = Intervals.of(part for part in differences.without(Intervals.points([0])) if part[1] < 0)
    for side in (sides, Intervals.points([0]) & differences, differences.without(sides | Intervals.points([0]))):
        for low, high in side:
            yield from ((start, min(start + width - 1, high)) for start in range(low, high + 1, width))


def _by(difference: int, move: RecordMove) -> list[Ends]:
    """Return the ends of all moves by one difference: they lie on a line."""
    ends = Intervals(tuple((low - difference, high - difference) for low, high in move.cover))
    return [(start, start + difference) for start in (move.hidden & ends).ends]


def _band(low: int, high: int, move: RecordMove) -> list[Ends]:
    """Return the corners of a polygon that holds all moves with a difference from low to high; gaps are filled."""
    a, b = (move.hidden.lowest, move.hidden.highest), (move.cover.lowest, move.cover.highest)
    tried = [(x, y) for x in a for y in (max(b[0], x + low), min(b[1], x + high))]
    tried += [(x, y) for y in b for x in (max(a[0], y - high), min(a[1], y - low))]
    return sorted({(x, y) for x, y in tried if low <= y - x <= high and a[0] <= x <= a[1] and b[0] <= y <= b[1]})


def _outermost(points: list[Ends]) -> list[Ends]:
    """Return the corners of the convex hull of sorted points: elsewhere no convex function is larger than there."""
    if len(points) < _MANY:
        return points
    hull: list[Ends] = []
    for side in (points, points[::-1]):
        chain: list[Ends] = []
        for x, y in side:
            # the last point stays only if the way to this one turns left there
            while len(chain) > 1 and _turn(chain[-2], chain[-1], (x, y)) <= 0:
                chain.pop()
            chain.append((x, y))
        hull += chain[:-1]
    return hull


def _turn(a: Ends, b: Ends, c: Ends) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
