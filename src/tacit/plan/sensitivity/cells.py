"""Counts of people in cells, and how they respond to moves: what questions, and much of what is known, are about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.errors import PlanError
from tacit.plan.labels import Labels, labels_of_cells
from tacit.plan.question import suffix
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.where import Where


@dataclass(frozen=True)
class CellTables:
    """Whoever is picked by a predicate, in the cells of one histogram for each set of attributes.

    The set of no attributes has one cell, with everybody in it.
    """

    sets: tuple[tuple[str, ...], ...]
    where: Where | None = None

    def is_items(self, domain: Domain) -> bool:
        """Say whether this counts the items of a set."""
        return any(is_items(domain[name]) for names in self.sets for name in names)

    def sizes(self, domain: Domain) -> list[int]:
        """Return the number of cells of each histogram."""
        return [math.prod(cells_of(domain[name]) for name in names) for names in self.sets]

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
            return f"histogram({', '.join(self.sets[0])}{suffix(self.where)})"
        return f"marginals of {len(self.sets)} sets{suffix(self.where)}"


def everybody(where: Where | None = None) -> CellTables:
    """Return the one cell of everybody whom a predicate picks."""
    return CellTables(((),), where)


def is_items(attribute: Any) -> bool:
    """Say whether an attribute is a set of items, of which a person has several."""
    return bool(attribute.is_set)


def cells_of(attribute: Any) -> int:
    """Return the number of cells of an attribute's histogram."""
    return int(attribute.cells)


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
