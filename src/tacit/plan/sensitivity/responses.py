"""How the answers to a question move when one person's record moves.

A question sees of a record whether its predicate picks it (count), the cell it falls into (histograms), its position on
one line (total, cumulative, ranges) or its items. A response turns "the person moved, left or entered" into jumps;
`plan/sensitivity/steps.py` decides which of these some secret edge can cause. Counts of people in cells, which
questions and much of what is known are about, stand here; other responses stand beside their questions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Protocol

from tacit.errors import PlanError
from tacit.plan.question import Labels, WhatCounts, labels_of_cells, suffix
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Relation, Same
from tacit.policy.edges.shapes import EdgeShape
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
    def of(cls, *changes: int, bound: bool = False) -> Jump:
        """Return the jump in which one answer, or each of several, changes by so much."""
        rises, falls = [max(change, 0) for change in changes], [max(-change, 0) for change in changes]
        return cls(sum(rises), sum(falls), max(rises), max(falls), sum(change**2 for change in changes), bound)

    def undone(self) -> Jump:
        """Return the jump back."""
        return Jump(self.fall, self.rise, self.down, self.up, self.square, self.bound)


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


@dataclass(frozen=True, kw_only=True)
class Response(ABC):
    """How answers respond to moves.

    Of the attributes in `cells` only a change is seen; of `line`, and of a second axis `weight`, the position; of the
    set of items `items`, each item. `staying_may_show_more` says whether somebody whose cell stays the same may move an
    answer further than somebody whose cell changes.
    """

    cells: tuple[str, ...] = ()
    line: Axis | None = None
    weight: Axis | None = None
    items: str | None = None
    staying_may_show_more: ClassVar[bool] = False

    @abstractmethod
    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """Return what a move of a person who is counted before and after does."""

    @abstractmethod
    def left(self, move: RecordMove) -> Iterable[Jump]:
        """Return what happens when the person is no longer counted."""

    @abstractmethod
    def entered(self, move: RecordMove) -> Iterable[Jump]:
        """Return what happens when the person is newly counted."""


class PlacedResponse(Response):
    """A response where leaving undoes what entering at the same position on the line did."""

    @abstractmethod
    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        """Return what happens when a person at one of these positions is newly counted."""

    def left(self, move: RecordMove) -> Iterable[Jump]:
        return [jump.undone() for jump in self.counted_at(hidden_ends(move))]

    def entered(self, move: RecordMove) -> Iterable[Jump]:
        return self.counted_at(cover_ends(move))


class Watched(Protocol):
    """What steps are computed of: how answers respond to moves, of those whom a predicate picks."""

    @property
    def where(self) -> Where | None:
        """Who is picked; None for everybody."""

    @property
    def listed(self) -> tuple[Where, ...]:
        """For each number the predicate that picks whom it counts; none where it is `where` for all of them."""

    def response(self, domain: Domain) -> Response:
        """Return how the answers respond, or how each does whose predicate is listed."""

    def unit(self, domain: Domain) -> Fraction:
        """Return what one unit of the answers is worth."""


def running_counts_moved(move: RecordMove) -> Iterable[Jump]:
    """A move upwards by d lowers d of the counts up to each value by one; downwards, it raises them."""
    for end in move.relation.differences(move.hidden, move.cover).ends:
        yield Jump.by_ones(rise=max(-end, 0), fall=max(end, 0))


def hidden_ends(move: RecordMove) -> Intervals:
    """Return where on the line a move may start."""
    return move.hidden & move.relation.sources(move.cover)


def cover_ends(move: RecordMove) -> Intervals:
    """Return where on the line a move may end."""
    return move.cover & move.relation.targets(move.hidden)


def corner_moves(move: RecordMove | LineMove) -> list[tuple[int, int]]:
    """Return moves (from, to) on the line among which every convex function of both ends has its maximum."""
    return sorted(move.relation.corners(move.hidden, move.cover))


# ---- counts of people in cells -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellTables(WhatCounts):
    """Whoever is picked by a predicate, in the cells of one histogram for each set of attributes.

    The set of no attributes has one cell, with everybody in it.
    """

    sets: tuple[tuple[str, ...], ...]
    where: Where | None = None
    listed: ClassVar[tuple[Where, ...]] = ()

    def is_items(self, domain: Domain) -> bool:
        """Say whether this counts the items of a set."""
        return any(domain[name].is_set for names in self.sets for name in names)

    def sizes(self, domain: Domain) -> list[int]:
        """Return the number of cells of each histogram."""
        return [math.prod(domain[name].cells for name in names) for names in self.sets]

    def size(self, domain: Domain) -> int:
        """Return the number of cells of all histograms."""
        return sum(self.sizes(domain))

    def unit(self, domain: Domain) -> Fraction:
        """Return one: people are counted."""
        return Fraction(1)

    def response(self, domain: Domain) -> Response:
        """Return how the counts respond to moves."""
        if not self.is_items(domain):
            return CellResponse.of(self.sets)
        if len(self.sets) > 1:
            raise PlanError("must be asked alone", key="marginals", given=str(self), fix="Use a histogram.")
        return ItemResponse(items=self.sets[0][0])

    def __str__(self) -> str:
        if self.sets == ((),):
            return f"count({self.where if self.where is not None else ''})"
        if len(self.sets) == 1:
            return f"histogram({', '.join(self.sets[0])}{suffix(self.where, self.of, self.each)})"
        return f"marginals of {len(self.sets)} sets{suffix(self.where, self.of)}"


def everybody(where: Where | None = None) -> CellTables:
    """Return the one cell of everybody whom a predicate picks."""
    return CellTables(((),), where)


def cell_labels(names: tuple[str, ...], domain: Domain) -> dict[str, Labels]:
    """Return for each attribute of a histogram its value in every cell, in the order of a table written row by row."""
    return dict(zip(names, labels_of_cells([domain[name].every_cell() for name in names]), strict=True))


@dataclass(frozen=True)
class CellResponse(PlacedResponse):
    """Counts of cells: of each of several `histograms` or, with one set of no attributes, of everybody."""

    histograms: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, sets: tuple[tuple[str, ...], ...]) -> CellResponse:
        """Return the response of histograms: every attribute of theirs decides on a cell."""
        return cls(sets, cells=tuple(dict.fromkeys(name for names in sets for name in names)))

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """Each histogram with a changed attribute loses one in a cell and gains one in another."""
        touched = sum(1 for names in self.histograms if move.changed.intersection(names))
        return [Jump.by_ones(rise=touched, fall=touched)] if touched else []

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return [Jump.by_ones(rise=len(self.histograms), fall=0)]


@dataclass(frozen=True)
class ItemResponse(Response):
    """Counts of people for each item of a set."""

    def moved(self, move: RecordMove) -> Iterator[Jump]:
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

    def left(self, move: RecordMove) -> Iterable[Jump]:
        """All items of the hidden set fall; what is not lost must still fit into the cover set."""
        room = move.items
        if room.exactly is not None:
            return [Jump.by_ones(rise=0, fall=len(room.exactly[0]))]
        kept = room.most - room.flags_cover + min(room.may_lose, room.budget)
        return [Jump.by_ones(rise=0, fall=room.flags_hidden + min(room.rest, room.most - room.flags_hidden, kept))]

    def entered(self, move: RecordMove) -> Iterable[Jump]:
        """All items of the cover set rise; what was not gained must have fitted into the hidden set."""
        room = move.items
        if room.exactly is not None:
            return [Jump.by_ones(rise=len(room.exactly[1]), fall=0)]
        there = room.most - room.flags_hidden + min(room.may_gain, room.budget)
        return [Jump.by_ones(rise=room.flags_cover + min(room.rest, room.most - room.flags_cover, there), fall=0)]
