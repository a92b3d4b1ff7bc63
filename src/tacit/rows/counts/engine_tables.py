"""Tables that Spark counts, whose rows are elsewhere: its groups, decoded to positions.

Guarantee   Only groups with their number of people, or sums with their number of rows, leave the engine, and each is
            added to the cell that `rows/cells/readings.py` says. A person counts once in each cell, and every kept row
            in a sum and in a count of rows. Sums are exact.
Why         What is grouped are the lines of `rows/counts/lines.py`, by keys that the domain bounds. Numbers are added
            up in two halves of 31 bits, which no engine's 64-bit sum of them overflows.
Checked by  tests/contract/test_one_pass.py, tests/contract/test_rows_engines.py, tests/property/test_rows_people.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import InternalError
from tacit.policy.edges.intervals import Intervals
from tacit.policy.person_numbers import PersonGrid
from tacit.policy.where import Test
from tacit.rows.cells.readings import Expr, Positions
from tacit.rows.counts.counting import HALF, CompiledTally, items_of
from tacit.rows.counts.item_counts import Counts
from tacit.rows.counts.lines import PeopleLines, asked_in, grouped, holds, key_columns, lines_of, whole
from tacit.rows.guard import closed
from tacit.rows.sources.source import Opened

MOST_PILED: Final = 16  # predicates, for each of which every row has a line


class EngineTables:
    """What Spark counts by itself."""

    def __init__(self, opened: Opened) -> None:
        self._opened, self._domain, self._slots = opened, opened.domain, opened.layout.slots
        self._lines = lines_of(opened)

    def counted(self, needs: Sequence[CompiledTally]) -> list[npt.NDArray[Any]]:
        """Return what was counted for each need."""
        found: dict[int, npt.NDArray[Any]] = {}
        for rows in (False, True):
            plain = [at for at, need in enumerate(needs) if need.added is None and need.each is None]
            ours = [at for at in plain if needs[at].rows == rows]
            flags = [at for at in ours if not needs[at].names and needs[at].is_about_cells]
            flags = flags if len(flags) > MOST_PILED else []  # few predicates share the job of the tables
            piles = [at for at in ours if at not in flags and self._can_pile(needs[at], len(needs))]
            for together, count in ((flags, self._flagged), (piles, self._piled)):
                if len(together) > 1:
                    found.update(zip(together, count([needs[at] for at in together]), strict=True))
        for number, need in enumerate(needs):
            if number not in found:
                one = self._summed if need.added else self._held_items if need.items else self._grouped
                found[number] = self._numbers(need, need.each) if need.each is not None else one(need)
        return [found[number] for number in range(len(needs))]

    def rehearse(self) -> None:
        """Look at the types of everything that may be asked for: Spark checks them in its plans, and no job runs."""
        lines, owner, names = self._lines, list(self._lines.owner), tuple(self._opened.codes)
        tables = []
        if names:
            frame = lines.slots(frozenset(names))
            marks = [slot.name for name in names for slot in self._slots[name]]
            keys = [nw.col(mark) for mark in marks]
            tables = [grouped(frame, keys, distinct=lines.owner) if owner else lines.grouped(names, None)]
            tables.append(frame.unpivot(marks, index=owner))
        elif owner:
            tables.append(grouped(lines.slots(frozenset()), [], distinct=lines.owner))
        for name in self._opened.items:
            held = lines.held(name, None)
            tables.append(grouped(held.frame, held.keys, distinct=lines.owner))
        for table in tables:
            _ = nw.to_native(table).schema

    def looker(self) -> Any:
        """Return nothing: no cell is looked up here."""

    def _grouped(self, need: CompiledTally) -> Counts:
        """Let the engine group the rows."""
        shape = tuple(self._domain[name].size for name in need.names)
        table = self._opened.read(lambda: self._lines.grouped(need.names, need.where, rows=need.rows))
        return closed(
            lambda: _cells(table, self._lines.positions(table, need.names), shape), InternalError("counting rows")
        )

    # ------------------------------------------------------------------ several tables in one go

    def _can_pile(self, need: CompiledTally, needs: int) -> bool:
        """Say whether the cells of a need, one of so many, fit into 62 bits as the engine numbers them."""
        if not need.is_about_cells:
            return False
        slots = [slot for name in need.names for slot in self._slots[name]]
        asked, _ = asked_in(need.where)
        wide = any(not slot.bits for name in {*need.names, *asked} for slot in self._slots[name])
        return not wide and math.prod(slot.size for slot in slots) * needs < 2**62

    def _piled(self, needs: Sequence[CompiledTally]) -> list[Counts]:
        """Let the engine count several tables in one go: one line for each row and table, with a number for its cell.

        The number is the mixed-radix number of the slots, times the number of tables, plus which table it is.
        """
        names = frozenset().union(*(need.attributes for need in needs))
        marks = [f"t{number}" for number in range(len(needs))]
        owner = list(self._lines.owner) if self._opened.per_person > 1 and not needs[0].rows else []

        def piled() -> Any:
            frame = self._lines.slots(names)
            cells = [self._cell_of(need, len(needs)) + number for number, need in enumerate(needs)]
            frame = frame.select(*owner, *(cell.alias(mark) for cell, mark in zip(cells, marks, strict=True)))
            frame = frame.unpivot(marks, index=owner, value_name="t").select(*owner, "t")
            frame = frame.filter(~nw.col("t").is_null())
            return grouped(frame, [nw.col("t")], distinct=tuple(owner))

        table = self._opened.read(piled)

        def decoded() -> list[Counts]:
            numbers, people = whole(table.column("k0")), whole(table.column("n"))
            tables = []
            for number, need in enumerate(needs):
                ours = numbers % len(needs) == number
                cells, places = numbers[ours] // len(needs), []
                for name in reversed(need.names):
                    kept = []
                    for slot in reversed(self._slots[name]):
                        kept.append(cells % slot.size)
                        cells = cells // slot.size
                    places.append(self._opened.layout.code_of(name, reversed(kept)))
                shape = tuple(self._domain[name].size for name in need.names)
                counts = np.zeros(math.prod(shape), dtype=np.int64)
                np.add.at(counts, _cell_numbers(int(ours.sum()), places[::-1], shape), people[ours])
                tables.append(counts.reshape(shape))
            return tables

        return closed(decoded, InternalError("counting rows"))

    def _cell_of(self, need: CompiledTally, needs: int) -> Expr:
        """Return the number of a row's cell, times `needs`; missing where the need does not count the row."""
        cell: Any = nw.lit(0, nw.Int64)
        for slot in (slot for name in need.names for slot in self._slots[name]):
            cell = cell * slot.size + nw.col(slot.name)
        cell = cell * needs
        return cell if need.where is None else nw.when(self._holds(need.where)).then(cell)

    def _holds(self, where: Test) -> Expr:
        """Say of the slots of a line whether a predicate about cells holds."""

        def atom(axis: str, positions: Intervals) -> Expr:
            name, part = self._opened.axes[axis]
            return self._slots[name][part == "column"].lies_in(positions)

        return holds(where, atom)

    def _flagged(self, needs: Sequence[CompiledTally]) -> list[Counts]:
        """Let the engine count in one go whom each of several predicates picks: a person once for each."""
        names = frozenset().union(*(need.attributes for need in needs))
        marks = [f"t{number}" for number in range(len(needs))]
        owner = list(self._lines.owner) if self._opened.per_person > 1 and not needs[0].rows else []

        def flagged() -> Any:
            one = nw.lit(1, nw.Int64)
            flags = [one if need.where is None else nw.when(self._holds(need.where)).then(one) for need in needs]
            frame = self._lines.slots(names)
            frame = frame.select(*owner, *(flag.alias(mark) for flag, mark in zip(flags, marks, strict=True)))
            if owner:
                frame = frame.group_by(*owner).agg(*(nw.col(mark).max() for mark in marks))
            return frame.select(*(nw.col(mark).sum().cast(nw.Int64) for mark in marks))

        table = self._opened.read(flagged)
        return closed(lambda: [whole(table.column(mark)).reshape(()) for mark in marks], InternalError("counting rows"))

    # ------------------------------------------------------------------ items and sums

    def _held_items(self, need: CompiledTally) -> Counts:
        """Count for each item of a set the people who have it."""
        name = need.items or ""
        attribute = items_of(self._domain, name)

        def of_items() -> Any:
            held = self._lines.held(name, need.where)
            return grouped(held.frame, held.keys, distinct=self._lines.owner)

        table = self._opened.read(of_items)

        def decoded() -> Counts:
            counts = np.zeros(attribute.cells, dtype=np.int64)
            places = self._lines.item_positions(name, key_columns(table))
            people = whole(table.column("n"))
            np.add.at(counts, places[places >= 0], people[places >= 0])
            return counts

        code = self._opened.item_codes[name]
        return closed(decoded, InternalError("counting items")) if code.keys else np.zeros(attribute.cells, np.int64)

    def _summed(self, need: CompiledTally) -> npt.NDArray[Any]:
        """Let the engine add positions up: sums, and how many rows were added."""
        name = need.added or ""
        ((_, _, step),) = self._opened.codes[name].ranges
        shape = tuple(self._domain[one].size for one in need.names)

        def summed() -> Any:
            frame, keys, above = self._lines.added(name, need.names, need.where)
            # every kept row counts, also if two of a person are equal: a sum over distinct values could jump by a whole
            # value when one of them moves by one
            by = [f"g{place}" for place in range(len(keys))]
            frame = frame.select(*(key.alias(one) for key, one in zip(keys, by, strict=True)), k0=above)
            frame = frame.select(*by, low=nw.col("k0") % HALF, rest=nw.col("k0") - nw.col("k0") % HALF)
            # rest is a multiple of 2^31 below 2^63, so the division is exact in any engine
            frame = frame.select(*by, "low", high=(nw.col("rest") / HALF).cast(nw.Int64))
            # a sum may be wider than what it adds up, and a connection may hand out wide numbers as bytes
            sums = [nw.col(one).sum().cast(nw.Int64).alias(one) for one in ("low", "high")]
            lines = nw.len().cast(nw.Int64).alias("n")
            return frame.group_by(*by).agg(*sums, lines) if by else frame.select(*sums, lines)

        table = self._opened.read(summed)

        def decoded() -> npt.NDArray[Any]:
            places = self._lines.positions(table.drop_columns(["low", "high"]), need.names)
            found = np.zeros((math.prod(shape), 2), dtype=object)
            columns = (whole(table.column(one)).tolist() for one in ("low", "high", "n"))
            for cell, low, high, lines in zip(_cell_numbers(table.num_rows, places, shape), *columns, strict=True):
                if cell >= 0:
                    found[cell] += (high * HALF + low) // step, lines
            return found.reshape(*shape, 2)

        return closed(decoded, InternalError("adding up rows"))

    def _numbers(self, need: CompiledTally, grid: PersonGrid) -> Counts:
        """Count the people at each place of their number: the engine groups rows by person, then people alike."""
        name = grid.number.attribute or need.read or ""
        ((_, _, step),) = self._opened.codes[name].ranges if grid.number.attribute else ((0, 0, 1),)

        def of_people() -> Any:
            assert isinstance(self._lines, PeopleLines)  # noqa: S101 - rows without owners make no number
            frame = self._lines.owned(name, need.where, summed=grid.number.attribute is not None)
            made = nw.col("k0").max() if grid.number.each == "max" else nw.col("k0").sum()
            people = frame.group_by("u").agg(nw.len().cast(nw.Int64).alias("r"), made.cast(nw.Int64).alias("k"))
            return people.group_by("r", "k").agg(nw.len().alias("n"))

        table = self._opened.read(of_people)

        def decoded() -> Counts:
            counts = np.zeros(grid.values.size, dtype=np.int64)
            rows, made, people = (whole(table.column(one)) for one in ("r", "k", "n"))
            np.add.at(counts, grid.places(rows, made // step), people)
            return counts

        return closed(decoded, InternalError("counting people"))


def _cells(table: pa.Table, places: Sequence[Positions], shape: tuple[int, ...]) -> Counts:
    """Add the people of each group to the cell that its positions say."""
    people, cells = whole(table.column("n")), _cell_numbers(table.num_rows, places, shape)
    counts = np.zeros(math.prod(shape), dtype=np.int64)
    np.add.at(counts, cells[cells >= 0], people[cells >= 0])
    return counts.reshape(shape)


def _cell_numbers(groups: int, places: Sequence[Positions], shape: tuple[int, ...]) -> Counts:
    """Return the cell of each group; -1 where one of its positions is -1, which is no position."""
    if not places:
        return np.zeros(groups, dtype=np.int64)
    cells = np.ravel_multi_index(tuple(places), shape, mode="clip")
    return np.where(np.min(places, axis=0) < 0, -1, cells)
