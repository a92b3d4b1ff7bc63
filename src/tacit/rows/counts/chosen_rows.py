"""The rows of people that count, chosen from batches: one sort by DuckDB, the rest by arithmetic on whole columns.

Guarantee   The rows that are chosen are those that `rows/counts/row_choice.py` says.
Why         DuckDB, which spills what does not fit into memory, sorts rows by person, then by `order`, then by their
            words, public ones first. So the rows of a person stand together, rows that look alike do too, and the
            number of a row among these is how far it is from the first of them. A batch is cut where a person ends.
            Who owns no more rows than count needs no key: all of them do. The rows of the others are sorted by their
            keys, within the rows that agree in `order`; the sort is stable, so equal keys leave rows as they were, by
            their words.
            Persons who are no whole numbers are sorted by a hash, and told apart by what they are: where two of them
            have one hash, their rows are sorted once more.
Checked by  tests/unit/rows/test_chosen_rows.py, tests/unit/rows/test_row_keys.py, tests/property/test_rows_people.py,
            tests/contract/test_rows_engines.py, tests/contract/test_one_pass.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from tacit.rows.cells.readings import DataColumn
from tacit.rows.counts.batches import Batch, Piece, joined, shared
from tacit.rows.counts.row_choice import KEY, Order, Places, WordLayout, row_keys, whole_keys, with_person_keys
from tacit.rows.sources.duckdb_sql import DUCKDB
from tacit.rows.sources.engine import PERSON

_LONG: Final = 63  # bits of a whole number that is not below 0
HASH: Final = "hash(u)"


class ChosenRows:
    """How the rows that count are chosen, so many of each person."""

    def __init__(self, layout: WordLayout, person: DataColumn, order: Order | None, many: int, looker: Any) -> None:
        self._layout, self._person, self._order, self._many = layout, person, order, many
        # one number is sorted several times faster than two
        self._is_one = sum(layout.bits.values()) <= _LONG
        self._names = ["w"] if self._is_one else layout.words
        self._looker = looker
        self._lock = threading.Lock()

    def packed(self, words: Mapping[str, Places]) -> dict[str, Places]:
        """Put the words of rows together, as far as they fit into one number."""
        if not self._is_one:
            return dict(words)
        one = words[self._layout.words[0]]
        for word in self._layout.words[1:]:
            one = one << self._layout.bits[word] | words[word]
        return {"w": one}

    def _unpacked(self, columns: Mapping[str, Places]) -> dict[str, Places]:
        if not self._is_one:
            return {word: columns[word] for word in self._layout.words}
        found, left = {}, sum(self._layout.bits.values())
        for word in self._layout.words:
            left -= (bits := self._layout.bits[word])
            found[word] = columns["w"] if len(self._layout.words) == 1 else columns["w"] >> left & (2**bits - 1)
        return found

    # ------------------------------------------------------------------ rows of a person, together

    def sorted(self, relation: Any) -> Any:
        """Sort the rows of a relation of DuckDB: "u", what they are ordered by, and their words."""
        person, by = [f"{HASH} AS h", PERSON], ["h"]
        if self._person.reading == "whole":
            person = ["CAST(u AS BIGINT) AS h"]
        elif dict(zip(relation.columns, relation.types, strict=True))[PERSON].id != "varchar":
            person += ["create_sort_key(u, 'ASC NULLS LAST') AS same"]  # equal where persons are, in any type
        if self._order is not None:
            ordered = DUCKDB.with_numbers(nw.from_native(relation).lazy(), self._order.numbers)
            relation = nw.to_native(self._order.added(ordered))
            turn = f"dense_rank() OVER (PARTITION BY u ORDER BY {', '.join(self._order.names)})"
            person, by = [*person, f"{turn} AS turn"], ["h", "turn"]
        columns = ", ".join([*person, *self._names])
        return relation.query("r", f"SELECT {columns} FROM r ORDER BY {', '.join([*by, *self._names])}")  # noqa: S608

    # ------------------------------------------------------------------ those that count

    def chosen(self, batch: Batch) -> tuple[list[tuple[dict[str, Places], npt.NDArray[np.bool_] | None]], int]:
        """Return the words of the rows that count, the first of each person, the second and so on, and the people.

        Where some have no such row it is said who has one, and what stands there for others is a row of somebody.
        """
        columns, begins = self._people(batch)
        starts = np.flatnonzero(begins)
        many = np.diff(starts, append=batch.rows)
        words = self._unpacked(columns)
        places = np.arange(batch.rows)
        if (more := many > self._many).any():
            turns = begins | _changes(columns["turn"]) if "turn" in columns else begins
            alike = turns.copy()
            for word in self._layout.public:
                alike |= _changes(words[word])
            rows = np.flatnonzero(np.repeat(more, many))
            numbers = (places - np.maximum.accumulate(np.where(alike, places, 0)) + 1)[rows]
            public = [(words[word][rows], self._layout.bits[word]) for word in self._layout.public]
            first = starts[more]
            if PERSON in batch.columns:
                keys = self.person_keys(batch.columns[PERSON].take(pa.array(columns["at"][first])))
            else:
                keys = whole_keys(columns["h"][first])
            keys = row_keys(np.repeat(keys, many[more]), public, numbers)
            places[rows] = rows[np.argsort(np.cumsum(turns)[rows] << KEY | keys, kind="stable")]
        found: list[tuple[dict[str, Places], npt.NDArray[np.bool_] | None]] = []
        for record in range(self._many):
            at = places[np.minimum(starts + record, batch.rows - 1)]
            found.append(({word: cells[at] for word, cells in words.items()}, many > record if record else None))
        return found, len(starts)

    def person_keys(self, persons: pa.Array) -> Places:
        """Return the keys of persons; every one carries the number of the person who was asked for."""
        table = pa.table({PERSON: persons, "at": np.arange(len(persons))})
        with self._lock:
            frame = with_person_keys(DUCKDB, nw.from_native(self._looker.from_arrow(table)).lazy(), self._person)
            found = frame.select("at", "key").collect(backend="pyarrow").to_arrow()
        keys = np.zeros(len(persons), dtype=np.int64)
        keys[found["at"].to_numpy()] = found["key"].to_numpy()
        return keys

    def _people(self, batch: Batch) -> tuple[dict[str, Places], npt.NDArray[np.bool_]]:
        """Return the whole numbers of rows, "at" for where a row stands in the batch, and where people begin."""
        columns = {
            name: batch.columns[name].to_numpy() for name in ("h", "turn", *self._names) if name in batch.columns
        }
        columns["at"] = np.arange(batch.rows)
        begins = _changes(columns["h"])
        if PERSON not in batch.columns:
            return columns, begins
        same = batch.columns.get("same", batch.columns[PERSON])
        others = pc.not_equal(same[1:], same[:-1]).to_numpy(zero_copy_only=False)
        if (others > begins[1:]).any():  # two persons with one hash
            columns["who"] = same.dictionary_encode().indices.to_numpy().astype(np.int64)
            by = [columns[name] for name in ("h", "who", "turn", *self._names) if name in columns]
            order = np.lexsort(by[::-1])
            columns = {name: cells[order] for name, cells in columns.items()}
            begins |= _changes(columns["who"])
        return columns, begins


def _changes(cells: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Say which cells differ from those before them; the first does."""
    found = np.ones(len(cells), dtype=np.bool_)
    np.not_equal(cells[1:], cells[:-1], out=found[1:])
    return found


def whole_people(stream: Sequence[Piece]) -> list[Piece]:
    """Cut a stream of sorted rows anew, so that each batch has all rows of its people; pieces share the stream."""
    return shared(lambda: _cut(stream[0]()))


def _cut(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Cut sorted rows where the last person of a batch begins."""
    left: list[Batch] = []
    for batch in batches:
        if not batch.rows:
            continue
        hashes = batch.columns["h"].to_numpy()
        cut = int(np.searchsorted(hashes, hashes[-1]))
        if cut or (left and left[0].columns["h"][0].as_py() != hashes[0]):
            yield _together([*left, _part(batch, 0, cut)])
            left = []
        left.append(_part(batch, cut, batch.rows))
    if left:
        yield _together(left)


def _part(batch: Batch, start: int, stop: int) -> Batch:
    return Batch(stop - start, {name: cells[start:stop] for name, cells in batch.columns.items()})


def _together(parts: Sequence[Batch]) -> Batch:
    names = parts[0].columns
    return Batch(
        sum(part.rows for part in parts),
        {name: joined(pa.chunked_array([part.columns[name] for part in parts])) for name in names},
    )
