"""How a query's answers move when one person's record moves.

Each question watches a record in one of four ways: not at all beyond its predicate (count), through the cell it falls
into (histograms), through its place on one line (total, cumulative, ranges), or item by item. A response turns
"the person moved, left or entered" into jumps; `plan/sensitivity/steps.py` decides which of these some secret edge can
cause. The responses stand beside their questions, in `plan/sensitivity/cells.py` and `plan/questions/`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Blocks, EdgeShape, FromTo, Near, Relation, Same
from tacit.policy.where import Where


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
    def of_one(cls, change: int, *, bound: bool = False) -> Jump:
        """Return the jump of a single answer."""
        rise, fall = max(change, 0), max(-change, 0)
        return cls(rise, fall, rise, fall, change * change, bound)

    @classmethod
    def between(cls, lost: int, gained: int, *, bound: bool = False) -> Jump:
        """Return the jump of two answers, one of which loses a number and the other gains one."""
        changes = -lost, gained
        rises, falls = [max(change, 0) for change in changes], [max(-change, 0) for change in changes]
        return cls(sum(rises), sum(falls), max(rises), max(falls), lost * lost + gained * gained, bound)


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
class LineMove:
    """How the position on one line may move: from where to where.

    `left` is given where another line shares the distance: how far this one may move if that one moves so far.
    """

    relation: Relation
    hidden: Intervals
    cover: Intervals
    left: Callable[[int], int] | None = None


@dataclass(frozen=True)
class RecordMove:
    """One way in which a record may move: attributes that change, the line's relation and ends, room for items.

    `weight` is the move on a second line, where a response watches two.
    `shape` says how far the attributes may change that do; without it, as far as there is room.
    """

    changed: frozenset[str] = frozenset()
    relation: Relation = field(default_factory=Same)
    hidden: Intervals = field(default_factory=Intervals)
    cover: Intervals = field(default_factory=Intervals)
    items: ItemRoom = field(default_factory=ItemRoom)
    weight: LineMove | None = None
    shape: EdgeShape | None = None


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

    @property
    def staying_may_show_more(self) -> bool:
        """Whether somebody whose cell stays the same may move an answer further than somebody whose cell changes."""

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """Return what a move of a person who is counted before and after does."""

    def left(self, move: RecordMove) -> Iterable[Jump]:
        """Return what happens when the person is no longer counted."""

    def entered(self, move: RecordMove) -> Iterable[Jump]:
        """Return what happens when the person is newly counted."""


@dataclass(frozen=True)
class TwoLines:
    """What a response is that sees the positions of a second axis, too."""

    weight: Axis

    @staticmethod
    def second(seen: Response) -> Axis | None:
        """Return the second axis of a response, if it sees one."""
        return seen.weight if isinstance(seen, TwoLines) else None


class Watched(Protocol):
    """What steps are computed of: how answers respond to moves, of those whom a predicate picks."""

    @property
    def where(self) -> Where | None:
        """Who is picked; None for everybody."""

    def response(self, domain: Domain) -> Response:
        """Return how the answers respond."""

    def unit(self, domain: Domain) -> Fraction:
        """Return what one unit of the answers is worth."""


def ends_of(found: Intervals) -> list[int]:
    """Return the lowest and the highest member, if there is one."""
    return sorted({found.lowest, found.highest}) if found else []


def running_counts_moved(move: RecordMove) -> Iterable[Jump]:
    """A move upwards by d lowers d of the counts up to each value by one; downwards, it raises them."""
    for end in ends_of(move.relation.differences(move.hidden, move.cover)):
        yield Jump.by_ones(rise=max(-end, 0), fall=max(end, 0))


def hidden_ends(move: RecordMove) -> Intervals:
    """Return where on the line a move may start."""
    return move.hidden & move.relation.sources(move.cover)


def cover_ends(move: RecordMove) -> Intervals:
    """Return where on the line a move may end."""
    return move.cover & move.relation.targets(move.hidden)


def corner_moves(move: RecordMove | LineMove) -> list[tuple[int, int]]:
    """Return moves (from, to) on the line among which every convex function of both ends has its maximum.

    Between two intervals the possible moves are the whole points of a polygon (a rectangle, a band, a diagonal), whose
    corners are whole. Of equal blocks along the diagonal only the outermost have corners of the convex hull; the first
    and the last may be cut, so the two outermost at either end are taken.
    """
    staying = {(place, place) for place in ends_of(move.hidden & move.cover)}
    match move.relation:
        case Same():
            return sorted(staying)
        case FromTo(sources, covers, may_stay):
            # from any of one set to any of another: the hull is a rectangle, whatever gaps the sets have
            starts, ends = ends_of(move.hidden & sources), ends_of(move.cover & covers)
            return sorted({(x, y) for x in starts for y in ends} | (staying if may_stay else set()))
    found: set[tuple[int, int]] = set()
    pairs = [(start, end) for start in move.hidden for end in _reached(start, move)]
    for a, b in pairs:
        match move.relation:
            case Near(reach):
                tried = [(x, y) for x in a for y in (max(b[0], x - reach), min(b[1], x + reach))]
                tried += [(x, y) for y in b for x in (max(a[0], y - reach), min(a[1], y + reach))]
                found |= {(x, y) for x, y in tried if abs(x - y) <= reach and _in(x, a) and _in(y, b)}
            case Blocks(width):
                first, last = max(a[0] // width, b[0] // width), min(a[1] // width, b[1] // width)
                for block in {first, first + 1, last - 1, last}:
                    if first <= block <= last:
                        here = block * width, block * width + width - 1
                        found |= {
                            (x, y)
                            for x in (max(a[0], here[0]), min(a[1], here[1]))
                            for y in (max(b[0], here[0]), min(b[1], here[1]))
                        }
            case _:
                raise TypeError(move.relation)
    return sorted(found)


def _reached(part: tuple[int, int], move: RecordMove | LineMove) -> tuple[tuple[int, int], ...]:
    """Return the parts of the cover that a move from one part of the hidden set may reach."""
    window, parts = move.relation.targets(Intervals((part,))), move.cover.parts
    first = bisect_left(parts, window.lowest, key=lambda one: one[1])
    return parts[first : bisect_right(parts, window.highest, key=lambda one: one[0])]


def _in(place: int, part: tuple[int, int]) -> bool:
    return part[0] <= place <= part[1]


def meet(relation: Relation, hidden: list[tuple[int, int]], cover: list[tuple[int, int]]) -> npt.NDArray[np.bool_]:
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
