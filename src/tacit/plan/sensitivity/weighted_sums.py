"""How sums of products respond to moves: the sum over people of one number times another, the weight.

Along an edge a person's number moves from v to v' and the weight from w to w', and a sum changes by w' v' - w v; where
the person's cell changes, one sum loses w v and another gains w' v'. For fixed weights these are linear in (v, v'), for
fixed numbers linear in (w, w'); rises, falls, lengths and squares are convex in them. So the largest is attained where
(v, v') is a corner of what the edges allow on its line and (w, w') a corner on its own. Where both lines share one
distance, that is said for each difference v' - v by itself, since it fixes how far the weight may move; of very many
differences, runs of neighbouring ones are taken together, which allows a little more than the edges do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from tacit.plan.sensitivity.responses import Jump, LineMove, RecordMove, TwoLines, corner_moves
from tacit.policy.attributes.attribute import Axis
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Near

MOST_DIFFERENCES: Final = 2048  # of a line that shares its distance with the weight's, looked at one by one
_MANY: Final = 6  # corners, of which those inside of the others' hull are left out
Ends = tuple[int, int]


@dataclass(frozen=True)
class Numbers:
    """The number at each position of a line: the first, and how far one is from the next."""

    first: int
    spacing: int

    def at(self, place: int) -> int:
        """Return the number at a position."""
        return self.first + self.spacing * place


@dataclass(frozen=True)
class WeightedSumResponse(TwoLines):
    """The sum of a number times a weight in each cell."""

    line: Axis
    cells: tuple[str, ...]
    numbers: Numbers
    weights: Numbers
    items: str | None = None
    staying_may_show_more: ClassVar[bool] = True

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """A sum changes by the difference of the two products; between two cells, one loses and the other gains."""
        for before, after, bound in self._products(move):
            if move.changed:
                yield Jump.between(before, after, bound=bound)
            else:
                yield Jump.of_one(after - before, bound=bound)

    def left(self, move: RecordMove) -> Iterable[Jump]:
        """A sum loses the hidden product."""
        return (Jump.of_one(-before, bound=bound) for before, _, bound in self._products(move))

    def entered(self, move: RecordMove) -> Iterable[Jump]:
        """A sum gains the cover product."""
        return (Jump.of_one(after, bound=bound) for _, after, bound in self._products(move))

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
