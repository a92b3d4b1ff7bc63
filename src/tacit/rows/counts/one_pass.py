"""Everything that a job counts, in one pass over batches of rows.

Guarantee   A row is counted where `rows/cells/readings.py` says, and it is in the data iff every attribute of the
            domain has a position for it. With `person`, those of a person's rows count that
            `rows/counts/row_choice.py` says. No count depends on the order of rows or batches, on threads, or on what
            was asked before.
Why         Cells become positions by look-up (`rows/cells/encoder.py`). Rows that lack one are left out; the others
            become words that sort as the places of their values do, and an embedded DuckDB, which spills what does not
            fit into memory, puts them together by the person column. What then is counted are sums over rows, or over
            people with all their records (`rows/counts/counting.py`). An item of a list is one more position of its
            row: lists are taken apart, and each item remembers its row.
Checked by  tests/property/test_rows_people.py, tests/contract/test_rows_engines.py, tests/contract/test_cells.py,
            tests/contract/test_one_pass.py.

With a set of items each person has one record: the other attributes come from the person's first row, the items from
all rows that fit (one item per row, or lists of them). Of more items than `at_most`, those count that occur first: by
`order`, then by their place in a list, then by their place in the domain.

Positions may be kept for the next question, as far as they fit into `KEPT` bytes: all of them come from one pass, and
only where a source that is unchanged has the same rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from tacit.arrays import Ints
from tacit.errors import InternalError
from tacit.rows.cells.encoder import Codes, Encoder, smallest
from tacit.rows.cells.number_cells import arrow_moment
from tacit.rows.counts.batches import BATCH, Batch, Piece, Workers, joined, of_reader, plain
from tacit.rows.counts.chosen_rows import ChosenRows, OwnedRows, whole_people
from tacit.rows.counts.counting import Bins, CompiledTally, Records, changes, repeated
from tacit.rows.sources.duckdb_engine import embedded, looker_of
from tacit.rows.sources.engine import PERSON
from tacit.rows.sources.source import Opened

KEPT: Final = 2**26  # bytes of positions that are kept between questions
_MEMORY: Final = 768 * 2**20  # bytes that rows of people may take before they are spilled


class OnePass:
    """One pass over the rows of an engine, for any number of needs."""

    def __init__(self, opened: Opened, *, looker: Callable[[], Any] | None = None) -> None:
        self._engine, self._domain, self._codes, self._sets = opened.engine, opened.domain, opened.codes, opened.items
        self._read_from = {**opened.codes, **{name: opened.item_codes[name] for name in opened.items}}
        self._person, self._per_person, self._order = opened.person, opened.per_person, opened.order
        self._opened = opened
        self._sizes = {name: self._domain[name].size for name in self._codes}
        self._sizes |= {name: self._domain[name].cells for name in self._sets}
        self._dropping = frozenset(name for name, code in self._codes.items() if code.valid is not None)
        self._kept: tuple[frozenset[str], list[Records]] | None = None
        self._looker: Any = None  # a DuckDB that looks cells up
        self._make_looker = looker or partial(looker_of, opened.engine)
        self._owners: Any = None  # puts the rows of people together; a DuckDB of its own, whose threads may wait for us
        self._encoder: Encoder | None = None

    def counted(self, needs: Sequence[CompiledTally]) -> list[npt.NDArray[Any]]:
        """Return what was counted for each need."""
        asked = frozenset().union(*(need.attributes for need in needs))
        if self._kept is not None and asked <= self._kept[0]:
            bins = Bins(needs, self._domain)
            with self._engine.quiet():
                for records in self._kept[1]:
                    bins.add(records)
            return bins.found()
        if self._kept is not None:
            asked |= self._kept[0]
        try:
            return self._read(needs, asked, f"{_MEMORY} bytes")
        except Exception as failure:
            if self._person is None or "Out of Memory" not in str(failure):  # Arrow keeps the text of it alone
                raise
        return self._read(needs, asked, "80%")

    def _read(self, needs: Sequence[CompiledTally], asked: frozenset[str], memory: str) -> list[npt.NDArray[Any]]:
        with self._engine.quiet():
            pieces = self._engine.pieces(self._columns(asked))
        bins, keeper = Bins(needs, self._domain), _Keeper(self._engine.keeps)

        def count(records: Records) -> None:
            keeper.keep(records)
            bins.add(records)

        if self._person is None:
            self._count_rows(pieces, asked, count)
        else:
            self._count_people(pieces, asked, count, memory)
        self._kept = (asked, keeper.found) if keeper.found is not None else None
        return bins.found()

    def _columns(self, asked: frozenset[str]) -> dict[str, str]:
        # which of a person's rows come first may be up to any attribute
        own = asked & self._codes.keys()
        read = own | self._dropping if self._person is None or not own else self._codes.keys()
        columns = {column.name: column.raw for name in read for column in self._codes[name].columns}
        columns |= {self._sets[name].name: self._sets[name].raw for name in asked & self._sets.keys()}
        if self._person is not None:
            columns[PERSON] = self._person.raw
            if self._order is not None and asked:
                columns["o"] = self._order.raw
        return columns

    def rehearse(self) -> None:
        """Do with no rows everything that fails if their types cannot be counted."""
        every = frozenset([*self._codes, *self._sets])
        columns = self._columns(every)
        if not columns:
            return
        with self._engine.quiet():
            self._engine.pieces(columns)
            table = self._engine.nothing(columns)
        cells = {name: joined(table.column(name)) for name in columns}
        listed = {column.name: _taken_apart(cells[column.name])[0] for column in self._sets.values()}
        read = {column.name for code in self._codes.values() for column in code.columns}
        if self._read_from:
            self._encoding().rehearse(Batch(0, {name: cells[name] for name in read} | listed))
        if self._person is not None:
            rows: dict[str, Any] = {name: arrow_moment(plain(cells[name])) for name in (PERSON, "o") if name in cells}
            choosing = self._choosing(every)
            if choosing is not None:
                rows |= choosing.packed({word: np.zeros(0, dtype=np.int64) for word in self._opened.layout.words})
                choosing.person_keys(rows[PERSON])
            self._put_together(self.looker().from_arrow(pa.table(rows)), choosing, ()).to_arrow_table()

    # ------------------------------------------------------------------ every row is a person

    def _count_rows(self, pieces: Sequence[Piece], asked: frozenset[str], count: Callable[[Records], None]) -> None:
        encoder, own = self._encoding(), asked & self._codes.keys()

        def work(batch: Batch) -> None:
            encoder.prepare(own | self._dropping, batch)
            codes = {name: encoder.codes(name, batch) for name in own | self._dropping}
            fits = self._fitting(codes)
            items = {}
            for name in asked & self._sets.keys():
                rows, found, _ = self._items(name, batch, fits)
                items[name] = _each_once(rows, found, self._domain[name].at_most)
            if fits is not None:
                codes = {name: codes[name][fits] for name in own}
            count(Records(codes, batch.rows if fits is None else int(fits.sum()), None, items))

        workers = Workers(pieces, work)
        with self._engine.quiet(workers.stop, self._looker.interrupt):
            workers.finish()

    def _fitting(self, codes: Mapping[str, Codes]) -> npt.NDArray[np.bool_] | None:
        """Say which rows the domain does not drop; None: all of them."""
        fits = None
        for name in self._dropping:
            there = codes[name] != self._sizes[name]
            if not there.all():
                fits = there if fits is None else fits & there
        return fits

    def _encoding(self) -> Encoder:
        if self._encoder is None:
            self._encoder = Encoder(self._read_from, self._sizes, self.looker())
        return self._encoder

    def _items(self, name: str, batch: Batch, fits: npt.NDArray[np.bool_] | None) -> tuple[Ints, Ints, Ints]:
        """Return the known items in the rows that fit: of each the row, which one it is, and its place in the list."""
        column = self._sets[name].name
        cells = plain(batch.columns[column])
        cells, rows = _taken_apart(cells if fits is None else cells.filter(pa.array(fits)))
        items = self._encoding().codes(name, Batch(len(cells), {column: cells}))
        known = items != self._sizes[name]
        return rows[known], items[known], _turns(rows)[known].astype(np.int32)

    def looker(self) -> Any:
        """Return the DuckDB that looks cells up."""
        if self._looker is None:
            self._looker = self._make_looker()
        return self._looker

    # ------------------------------------------------------------------ rows have owners

    def _count_people(
        self, pieces: Sequence[Piece], asked: frozenset[str], count: Callable[[Records], None], memory: str
    ) -> None:
        """Let DuckDB put the rows of each person together, each packed into a few words."""
        encoder, layout, own = self._encoding(), self._opened.layout, asked & self._codes.keys()
        choosing, sets = self._choosing(asked), sorted(asked & self._sets.keys())
        read = self._codes.keys() if own else self._dropping
        bounded = [name for name in sets if self._domain[name].at_most is not None]
        lists = [*map(self._listed, sets), *(self._listed(name, "p") for name in bounded)]

        def encoded(batch: Batch) -> pa.RecordBatch:
            codes = {name: encoder.codes(name, batch) for name in read}
            columns = {
                name: arrow_moment(plain(batch.columns[name])) for name in (PERSON, "o") if name in batch.columns
            }
            fits, rows = self._fitting(codes), batch.rows
            if fits is not None:
                codes, rows = {name: code[fits] for name, code in codes.items()}, int(fits.sum())
                columns = {name: column.filter(pa.array(fits)) for name, column in columns.items()}
            packed = choosing.packed(layout.words_of(codes, rows)) if choosing is not None and own else {}
            columns |= {word: pa.array(found) for word, found in packed.items()}
            for name in sets:
                at, items, places = self._items(name, batch, fits)
                ends = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=rows))])
                columns[self._listed(name)] = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(items))
                if name in bounded:
                    columns[self._listed(name, "p")] = pa.LargeListArray.from_arrays(pa.array(ends), pa.array(places))
            return pa.record_batch(columns)

        def work(batch: Batch) -> None:
            if choosing is None:
                count(Records({}, batch.rows))
                return
            people = choosing.people(batch)
            words, who = choosing.chosen(batch, people)
            codes = {
                name: code.astype(smallest(self._sizes[name])) for name, code in layout.codes_of(words, own).items()
            }
            items = {name: self._items_of(name, batch, people) for name in sets}
            count(Records(codes, int(people.begins.sum()) if who is None else len(who), who, items))

        reading = Workers(pieces, encoded)
        connection, self._owners = self._owners or embedded(), None
        counting: list[Workers] = []

        def stop() -> None:
            for workers in (reading, *counting):
                workers.stop()
            connection.interrupt()
            self._looker.interrupt()

        with self._engine.quiet(stop):
            connection.execute(f"SET memory_limit = '{memory}'")
            connection.execute("SET preserve_insertion_order = false")  # no answer depends on it
            try:
                results = reading.results()
                first = next(results, None)
                if first is None:
                    return
                reader = pa.RecordBatchReader.from_batches(first.schema, _alike(first, results))
                relation = self._put_together(connection.from_arrow(reader), choosing, lists)
                stream = of_reader(lambda: relation.to_arrow_reader(BATCH))
                counting.append(Workers(stream if choosing is None else whole_people(stream), work))
                counting[0].finish()
            finally:
                reading.end()
        self._owners = connection  # not one whose work has failed

    def _put_together(self, relation: Any, choosing: ChosenRows | None, lists: Sequence[str]) -> Any:
        """Sort rows by who owns them, or return one line for each person if nothing is read from rows."""
        assert self._person is not None  # noqa: S101 - for the type checker
        relation = relation.filter("u IS NOT NULL")
        if self._person.reading == "real":
            relation = relation.filter("NOT isnan(CAST(u AS DOUBLE))")
        if choosing is None:
            return relation.query("r", "SELECT count(*) AS n, u FROM r GROUP BY u").project("1 AS one")
        return choosing.sorted(relation, lists)

    def _choosing(self, asked: Iterable[str]) -> ChosenRows | None:
        """Return how the rows that count are chosen; None if nothing is read from them."""
        assert self._person is not None  # noqa: S101 - for the type checker
        reads = not self._codes.keys().isdisjoint(asked)
        if not reads and self._sets.keys().isdisjoint(asked):
            return None
        return ChosenRows(self._opened.layout, self._person, self._order, self._per_person, self.looker(), reads=reads)

    def _listed(self, name: str, part: str = "i") -> str:
        """Return the column of a set's items, or of their places, in a name that SQL can tell."""
        return f"{part}_{self._sets[name].name}"

    def _items_of(self, name: str, batch: Batch, people: OwnedRows) -> tuple[Ints, Ints]:
        """Return the items of people in all their rows, each once: of each the person, and which one it is."""
        most = self._domain[name].at_most
        order = pa.array(people.columns["at"])
        cells, rows = _taken_apart(batch.columns[self._listed(name)].take(order))
        items, who = cells.to_numpy(), (np.cumsum(people.begins) - 1)[rows]
        if most is not None:
            places, _ = _taken_apart(batch.columns[self._listed(name, "p")].take(order))
            turns = (people.columns["turn"][rows],) if "turn" in people.columns else ()
            first = np.lexsort((items, places.to_numpy(), *turns, who))
            who, items = who[first], items[first]
        return _each_once(who, items, most)


def _taken_apart(cells: pa.Array) -> tuple[pa.Array, Ints]:
    """Return what is in lists, and the row of each; a cell that is no list has one thing in it."""
    if not (pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type)):
        return cells, np.arange(len(cells))
    found = pc.list_flatten(cells)
    found = found.cast(pa.string()) if pa.types.is_null(found.type) else found
    return found, pc.list_parent_indices(cells).to_numpy().astype(np.int64, copy=False)


def _turns(who: Ints) -> Ints:
    """Return how many stand before each one of the same row or person; these stand together."""
    begins = changes(who)
    found: Ints = np.arange(len(who)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return found


def _each_once(who: Ints, items: Ints, most: int | None) -> tuple[Ints, Ints]:
    """Return the items of each row or person, each once; the first so many of them."""
    fresh = ~repeated(who, items)
    who, items = who[fresh], items[fresh]
    if most is None:
        return who, items
    first = _turns(who) < most
    return who[first], items[first]


def _alike(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hand out batches of one schema: whoever reads them takes the bytes of any other for what they are not."""
    yield first
    for batch in others:
        if not batch.schema.equals(first.schema):
            raise InternalError("putting rows together")
        yield batch


class _Keeper:
    """Positions for the next question, as long as they fit."""

    def __init__(self, keeps: bool) -> None:  # noqa: FBT001
        self.found: list[Records] | None = [] if keeps else None
        self._bytes = 0
        self._lock = threading.Lock()

    def keep(self, records: Records) -> None:
        """Keep these, or nothing any more."""
        with self._lock:
            self._bytes += records.nbytes + 64
            if self._bytes > KEPT:
                self.found = None
            if self.found is not None:
                self.found.append(records)
