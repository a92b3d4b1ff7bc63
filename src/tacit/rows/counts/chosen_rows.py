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
from typing import Any, Final, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from tacit.rows.cells.readings import DataColumn
from tacit.rows.counts.batches import Batch, Piece, joined, shared
from tacit.rows.counts.counting import changes
from tacit.rows.counts.row_choice import KEY, Order, Places, WordLayout, row_keys, whole_keys, with_person_keys
from tacit.rows.sources.duckdb_engine import DUCKDB
from tacit.rows.sources.engine import PERSON

_LONG: Final = 63  # bits of a whole number that is not below 0
HASH: Final = "hash(u)"


class OwnedRows(NamedTuple):
    """The rows of some people: the whole numbers of each, "at" for where it stands in its batch, and the first ones."""

    columns: dict[str, Places]
    begins: npt.NDArray[np.bool_]


class ChosenRows:
    """How the rows that count are chosen, so many of each person; `reads`: whether anything is read from them."""

    def __init__(
        self, layout: WordLayout, person: DataColumn, order: Order | None, many: int, looker: Any, *, reads: bool
    ) -> None:
        self._layout, self._person, self._order, self._many = layout, person, order, many
        # one number is sorted several times faster than two
        self._is_one = 0 < sum(layout.bits.values()) <= _LONG
        self._names = [] if not reads else ["w"] if self._is_one else layout.words
        self._looker = looker
        self._lock = threading.Lock()

    def packed(self, words: Mapping[str, Places]) -> dict[str, Places]:
        """Put the words of rows together, as far as they fit into one number."""
        if not self._is_one or not self._names:
            return dict(words) if self._names else {}
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

    def sorted(self, relation: Any, more: Sequence[str]) -> Any:
        """Sort the rows of a relation of DuckDB: "u", what they are ordered by, their words, and `more` columns."""
        person, by = [f"{HASH} AS h", PERSON], ["h"]
        if self._person.reading == "whole":
            person = ["CAST(u AS BIGINT) AS h"]
        elif dict(zip(relation.columns, relation.types, strict=True))[PERSON].id != "varchar":
            person += ["create_sort_key(u, 'ASC NULLS LAST') AS same"]  # equal where persons are, in any type
        if self._order is not None:
            relation = nw.to_native(self._order.added(DUCKDB, nw.from_native(relation).lazy()))
            turn = f"dense_rank() OVER (PARTITION BY u ORDER BY {', '.join(self._order.names)})"
            person, by = [*person, f"{turn} AS turn"], ["h", "turn"]
        columns = ", ".join([*person, *self._names, *more])
        return relation.query("r", f"SELECT {columns} FROM r ORDER BY {', '.join([*by, *self._names])}")  # noqa: S608

    # ------------------------------------------------------------------ those that count

    def chosen(self, batch: Batch, people: OwnedRows) -> tuple[dict[str, Places], npt.NDArray[Any] | None]:
        """Return the words of the rows that count, and the number of the person who has each (None: all have one)."""
        columns, begins = people
        if not self._names:
            return {}, None
        starts = np.flatnonzero(begins)
        many = np.diff(starts, append=batch.rows)
        words = self._unpacked(columns)
        places = np.arange(batch.rows)
        if (more := many > self._many).any():
            turns = begins | changes(columns["turn"]) if "turn" in columns else begins
            alike = turns.copy()
            for word in self._layout.public:
                alike |= changes(words[word])
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
        if self._many == 1:
            return {word: cells[places[starts]] for word, cells in words.items()}, None
        kept = places[np.arange(batch.rows) - np.repeat(starts, many) < self._many]
        who = np.repeat(np.arange(len(starts), dtype=np.int32), np.minimum(many, self._many))
        return {word: cells[kept] for word, cells in words.items()}, who

    def person_keys(self, persons: pa.Array) -> Places:
        """Return the keys of persons; every one carries the number of the person who was asked for."""
        table = pa.table({PERSON: persons, "at": np.arange(len(persons))})
        with self._lock:
            frame = with_person_keys(DUCKDB, nw.from_native(self._looker.from_arrow(table)).lazy(), self._person)
            found = frame.select("at", "key").collect(backend="pyarrow").to_arrow()
        keys = np.zeros(len(persons), dtype=np.int64)
        keys[found["at"].to_numpy()] = found["key"].to_numpy()
        return keys

    def people(self, batch: Batch) -> OwnedRows:
        """Return the rows of a batch, person after person."""
        columns = {
            name: batch.columns[name].to_numpy() for name in ("h", "turn", *self._names) if name in batch.columns
        }
        columns["at"] = np.arange(batch.rows)
        begins = changes(columns["h"])
        if PERSON not in batch.columns:
            return OwnedRows(columns, begins)
        same = batch.columns.get("same", batch.columns[PERSON])
        others = pc.not_equal(same[1:], same[:-1]).to_numpy(zero_copy_only=False)
        if (others > begins[1:]).any():  # two persons with one hash
            columns["who"] = same.dictionary_encode().indices.to_numpy().astype(np.int64)
            by = [columns[name] for name in ("h", "who", "turn", *self._names) if name in columns]
            order = np.lexsort(by[::-1])
            columns = {name: cells[order] for name, cells in columns.items()}
            begins |= changes(columns["who"])
        return OwnedRows(columns, begins)


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
