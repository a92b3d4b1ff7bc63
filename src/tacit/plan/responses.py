"""How a query's answers move when one person's record moves.

Each query watches a record in one of four ways: not at all beyond its predicate (count), through the cell it falls
into (histograms), through its place on one line (total, cumulative, ranges), or item by item. A response turns
"the person moved, left or entered" into jumps; `plan/steps.py` decides which of these some secret edge can cause.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanError
from tacit.plan.queries import Count, Cumulative, LinearQuery, Marginals, Ranges, Total
from tacit.policy.attributes import Integers
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges import Blocks, FromTo, Near, Relation, Same
from tacit.policy.intervals import Intervals

_MOST_PIECES: Final = 1_000_000  # pairs of pieces of a line that are looked at one by one


@dataclass(frozen=True)
class Jump:
    """What one move does to all answers: sum of rises and of falls, largest of each, sum of squares.

    A jump that no move need make, but that every move of its kind stays below, is a `bound`.
    """

    rise: int
    fall: int
    up: int
    down: int
    square: int
    bound: bool = False

    @classmethod
    def by_ones(cls, *, rise: int, fall: int, bound: bool = False) -> Jump:
        """Return a jump in which each answer that changes does so by one."""
        return cls(rise, fall, int(rise > 0), int(fall > 0), rise + fall, bound)

    @classmethod
    def of_one(cls, change: int) -> Jump:
        """Return the jump of a single answer."""
        rise, fall = max(change, 0), max(-change, 0)
        return cls(rise, fall, rise, fall, change * change)


@dataclass(frozen=True)
class ItemRoom:
    """What the items that no predicate mentions may still do along a move, next to the mentioned ones."""

    flags_lost: int = 0
    flags_gained: int = 0
    flags_hidden: int = 0
    flags_cover: int = 0
    rest: int = 0
    most: int = 0
    may_lose: int = 0
    may_gain: int = 0
    budget: int = 0
    exactly: tuple[frozenset[int], frozenset[int]] | None = None


@dataclass(frozen=True)
class Move:
    """One way in which a record may move: attributes that change, the line's relation and ends, room for items."""

    changed: frozenset[str] = frozenset()
    relation: Relation = field(default_factory=Same)
    hidden: Intervals = field(default_factory=Intervals)
    cover: Intervals = field(default_factory=Intervals)
    items: ItemRoom = field(default_factory=ItemRoom)


class Response(Protocol):
    """How answers respond to moves."""

    @property
    def cells(self) -> tuple[str, ...]:
        """Attributes of which only a change is seen."""

    @property
    def line(self) -> Axis | None:
        """The axis whose positions are seen."""

    @property
    def items(self) -> str | None:
        """The set of items that is seen."""

    def moved(self, move: Move) -> Iterable[Jump]:
        """Return what a move of a person who is counted before and after does."""

    def left(self, move: Move) -> Iterable[Jump]:
        """Return what happens when the person is no longer counted."""

    def entered(self, move: Move) -> Iterable[Jump]:
        """Return what happens when the person is newly counted."""


@dataclass(frozen=True)
class CellResponse:
    """Counts of cells: of each of several histograms, or (with one set of no attributes) of everybody."""

    sets: tuple[tuple[str, ...], ...]
    line: Axis | None = None
    items: str | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """Every attribute that decides on a cell."""
        return tuple(dict.fromkeys(name for names in self.sets for name in names))

    def moved(self, move: Move) -> Iterable[Jump]:
        """Each histogram with a changed attribute loses one in a cell and gains one in another."""
        touched = sum(1 for names in self.sets if move.changed.intersection(names))
        return [Jump.by_ones(rise=touched, fall=touched)] if touched else []

    def left(self, move: Move) -> Iterable[Jump]:
        """Each histogram loses one."""
        return [Jump.by_ones(rise=0, fall=len(self.sets))]

    def entered(self, move: Move) -> Iterable[Jump]:
        """Each histogram gains one."""
        return [Jump.by_ones(rise=len(self.sets), fall=0)]


@dataclass(frozen=True)
class TotalResponse:
    """The sum of a whole-number attribute."""

    attribute: Integers
    line: Axis
    cells: tuple[str, ...] = ()
    items: str | None = None

    def moved(self, move: Move) -> Iterable[Jump]:
        """The total changes by the difference of the two values."""
        found = move.relation.differences(move.hidden, move.cover)
        return [Jump.of_one(end * self.attribute.step) for end in _ends(found)]

    def left(self, move: Move) -> Iterable[Jump]:
        """The total loses the hidden value."""
        return [Jump.of_one(-self.attribute.value(end)) for end in _ends(_hidden_ends(move))]

    def entered(self, move: Move) -> Iterable[Jump]:
        """The total gains the cover value."""
        return [Jump.of_one(self.attribute.value(end)) for end in _ends(_cover_ends(move))]


@dataclass(frozen=True)
class CumulativeResponse:
    """Counts of people at or below each position of a line."""

    line: Axis
    cells: tuple[str, ...] = ()
    items: str | None = None

    def moved(self, move: Move) -> Iterable[Jump]:
        """A move upwards by d lowers d of the counts by one; downwards, it raises them."""
        for end in _ends(move.relation.differences(move.hidden, move.cover)):
            yield Jump.by_ones(rise=max(-end, 0), fall=max(end, 0))

    def left(self, move: Move) -> Iterable[Jump]:
        """All counts from the hidden position on fall."""
        found = _hidden_ends(move)
        return [Jump.by_ones(rise=0, fall=self.line.size - found.lowest)] if found else []

    def entered(self, move: Move) -> Iterable[Jump]:
        """All counts from the cover position on rise."""
        found = _cover_ends(move)
        return [Jump.by_ones(rise=self.line.size - found.lowest, fall=0)] if found else []


@dataclass(frozen=True)
class AllRangesResponse:
    """Counts of people in every range of a line of T positions."""

    line: Axis
    cells: tuple[str, ...] = ()
    items: str | None = None

    def moved(self, move: Move) -> Iterable[Jump]:
        """A move by d leaves (u+1) d or so ranges and joins others: d (T+1-d) in all, whatever the start.

        From u to v > u: the ranges [i, j] with i <= u <= j < v are left, (u+1)(v-u) of them; those with
        u < i <= v <= j are joined, (v-u)(T-v) of them. How the sum splits depends on u; both extremes are returned.
        """
        found = move.relation.differences(move.hidden, move.cover)
        size = self.line.size
        distances = Intervals.of(
            (low, high) if low > 0 else (-high, -low) for low, high in found.without(Intervals.points([0]))
        )
        for distance in _near_middle(distances, size + 1):
            seen = distance * (size + 1 - distance)
            yield Jump(seen, 0, 1, 1, seen)
            yield Jump(0, seen, 1, 1, seen)

    def left(self, move: Move) -> Iterable[Jump]:
        """The (u+1)(T-u) ranges around the hidden position fall."""
        yield from (
            Jump.by_ones(rise=0, fall=self._around(place))
            for place in _near_middle(_hidden_ends(move), self.line.size - 1)
        )

    def entered(self, move: Move) -> Iterable[Jump]:
        """The ranges around the cover position rise."""
        yield from (
            Jump.by_ones(rise=self._around(place), fall=0)
            for place in _near_middle(_cover_ends(move), self.line.size - 1)
        )

    def _around(self, position: int) -> int:
        return (position + 1) * (self.line.size - position)


@dataclass(frozen=True)
class ListedRangesResponse:
    """Counts of people in each of some listed ranges of a line."""

    line: Axis
    ranges: tuple[tuple[int, int], ...]
    cells: tuple[str, ...] = ()
    items: str | None = None

    def _pieces(self, positions: Intervals) -> list[tuple[int, int]]:
        """Cut a set of positions wherever a range begins or ends."""
        cuts = sorted({cut for low, high in self.ranges for cut in (low, high + 1)})
        found = []
        for start, end in positions:
            inside = cuts[bisect_right(cuts, start) : bisect_right(cuts, end)]
            found += list(zip([start, *inside], [*(cut - 1 for cut in inside), end], strict=True))
        return found

    def _membership(self, pieces: list[tuple[int, int]]) -> npt.NDArray[np.float64]:
        lows = np.array([low for low, _ in self.ranges])
        highs = np.array([high for _, high in self.ranges])
        starts = np.array([start for start, _ in pieces])
        return ((lows <= starts[:, None]) & (starts[:, None] <= highs)).astype(np.float64)

    def moved(self, move: Move) -> Iterable[Jump]:
        """Ranges around the hidden position only fall, those around the cover only rise."""
        hidden, cover = self._pieces(move.hidden), self._pieces(move.cover)
        if not hidden or not cover:
            return []
        if len(hidden) * len(cover) > _MOST_PIECES:
            return self._moved_by_windows(move)
        a, b = self._membership(hidden), self._membership(cover)
        shared = a @ b.T
        possible = _meet(move.relation, hidden, cover)
        falls, rises = (a.sum(1)[:, None] - shared)[possible], (b.sum(1)[None, :] - shared)[possible]
        seen = np.unique(np.stack([falls, rises], axis=1).astype(np.int64), axis=0)
        return [Jump.by_ones(rise=int(rise), fall=int(fall)) for fall, rise in seen]

    def _moved_by_windows(self, move: Move) -> Iterable[Jump]:
        """Bound what a move does, for more ranges than can be looked at in pairs.

        Whoever moves up from u by at most d leaves only ranges that end in u .. u+d-1 and joins only ranges that begin
        in u+1 .. u+d; downwards, it is the other way round. Within blocks u+d is the end of the block at most. Nobody
        is in more ranges than lie around one position. Every move's window lies in one that starts where a range ends
        or just before one begins.
        """
        far = max((abs(end) for end in _ends(move.relation.differences(move.hidden, move.cover))), default=0)
        if not far:
            return []
        lows, highs = (np.sort(np.array(ends, dtype=np.int64)) for ends in zip(*self.ranges, strict=True))
        from_here = np.unique(np.concatenate([highs, lows - 1]))
        upto = from_here + far
        if isinstance(move.relation, Blocks):
            width = move.relation.width
            upto = np.minimum(upto, (from_here // width + 1) * width - 1)
        starts = np.searchsorted(lows, upto, "right") - np.searchsorted(lows, from_here, "right")
        ends = np.searchsorted(highs, upto) - np.searchsorted(highs, from_here)
        around = int((np.searchsorted(lows, lows, "right") - np.searchsorted(highs, lows)).max())
        seen = np.unique(np.minimum(np.stack([starts, ends], axis=1), around), axis=0)
        return [
            Jump.by_ones(rise=int(x), fall=int(y), bound=True)
            for a, b in seen
            for x, y in ((a, b), (b, a))
            if a or b  # a bound of nothing is exact
        ]

    def left(self, move: Move) -> Iterable[Jump]:
        """The ranges around the hidden position fall."""
        return [Jump.by_ones(rise=0, fall=most) for most in self._most(_hidden_ends(move))]

    def entered(self, move: Move) -> Iterable[Jump]:
        """The ranges around the cover position rise."""
        return [Jump.by_ones(rise=most, fall=0) for most in self._most(_cover_ends(move))]

    def _most(self, positions: Intervals) -> list[int]:
        pieces = self._pieces(positions)
        if not pieces:
            return []
        starts = np.array([start for start, _ in pieces])
        lows, highs = (np.sort(np.array(ends, dtype=np.int64)) for ends in zip(*self.ranges, strict=True))
        return [int((np.searchsorted(lows, starts, "right") - np.searchsorted(highs, starts)).max())]


@dataclass(frozen=True)
class ItemResponse:
    """Counts of people for each item of a set."""

    items: str
    cells: tuple[str, ...] = ()
    line: Axis | None = None

    def moved(self, move: Move) -> Iterator[Jump]:
        """Items that are lost fall by one, items that are gained rise by one."""
        room = move.items
        if room.exactly is not None:
            hidden, cover = room.exactly
            yield Jump.by_ones(rise=len(cover - hidden), fall=len(hidden - cover))
            return
        lost = min(room.rest, room.most - room.flags_hidden, room.may_lose)
        gained = min(room.rest, room.most - room.flags_cover, room.may_gain)
        together = min(room.rest, room.budget)
        # the two corners of {a <= lost, b <= gained, a + b <= together}; every other choice lies below their line
        for a, b in (
            (min(lost, together), min(gained, together - min(lost, together))),
            (min(lost, together - min(gained, together)), min(gained, together)),
        ):
            yield Jump.by_ones(rise=room.flags_gained + b, fall=room.flags_lost + a)

    def left(self, move: Move) -> Iterator[Jump]:
        """All items of the hidden set fall."""
        room = move.items
        if room.exactly is not None:
            yield Jump.by_ones(rise=0, fall=len(room.exactly[0]))
            return
        # what is not lost must still fit into the cover set
        most = min(
            room.rest, room.most - room.flags_hidden, room.most - room.flags_cover + min(room.may_lose, room.budget)
        )
        yield Jump.by_ones(rise=0, fall=room.flags_hidden + most)

    def entered(self, move: Move) -> Iterator[Jump]:
        """All items of the cover set rise."""
        room = move.items
        if room.exactly is not None:
            yield Jump.by_ones(rise=len(room.exactly[1]), fall=0)
            return
        most = min(
            room.rest, room.most - room.flags_cover, room.most - room.flags_hidden + min(room.may_gain, room.budget)
        )
        yield Jump.by_ones(rise=room.flags_cover + most, fall=0)


def response(query: LinearQuery, domain: Domain) -> Response:
    """Return how the answers of a query respond to moves."""
    match query:
        case Count():
            return CellResponse(sets=((),))
        case Marginals():
            if query.is_items(domain):
                if len(query.sets) > 1:
                    raise PlanError("must be asked alone", key="marginals", given=str(query), fix="Use a histogram.")
                return ItemResponse(query.sets[0][0])
            return CellResponse(query.sets)
        case Total():
            attribute = domain[query.name]
            assert isinstance(attribute, Integers)  # noqa: S101 - refused by Total.check
            return TotalResponse(attribute, domain.axes_of(query.name)[0])
        case Cumulative():
            return CumulativeResponse(domain.axes_of(query.name)[0])
        case Ranges():
            line = domain.axes_of(query.name)[0]
            if query.ranges is None:
                return AllRangesResponse(line)
            return ListedRangesResponse(line, tuple(query.positions(domain)))


def _near_middle(positions: Intervals, twice: int) -> list[int]:
    """Return the members nearest to twice/2 from either side: the maximum of x (twice - x) is one of them."""
    return sorted({positions.closest_to(twice // 2), positions.closest_to((twice + 1) // 2)}) if positions else []


def _ends(found: Intervals) -> list[int]:
    return sorted({found.lowest, found.highest}) if found else []


def _hidden_ends(move: Move) -> Intervals:
    return move.hidden & move.relation.sources(move.cover)


def _cover_ends(move: Move) -> Intervals:
    return move.cover & move.relation.targets(move.hidden)


def _meet(relation: Relation, hidden: list[tuple[int, int]], cover: list[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Return which pieces (rows) have a member that may move to a member of which other pieces (columns)."""
    a, b = np.array(hidden), np.array(cover)
    overlap = (a[:, :1] <= b[:, 1]) & (b[:, 0] <= a[:, 1:])
    match relation:
        case Same():
            return overlap
        case FromTo(sources, covers, may_stay):
            starts = np.array([bool(sources & Intervals((piece,))) for piece in hidden])
            ends = np.array([bool(covers & Intervals((piece,))) for piece in cover])
            return np.asarray((starts[:, None] & ends) | (overlap & may_stay), dtype=np.bool_)
        case Near(reach):
            return (a[:, :1] - reach <= b[:, 1]) & (b[:, 0] <= a[:, 1:] + reach)
        case Blocks(width):
            a, b = a // width, b // width
            return (a[:, :1] <= b[:, 1]) & (b[:, 0] <= a[:, 1:])
    raise TypeError(relation)
