"""Everything that a job counts, in one pass over batches of rows.

Guarantee   A row is counted where `rows/cells/readings.py` says, and it is in the data iff every attribute of the
            domain has a position for it. With `person`, those of a person's rows count that
            `rows/counts/row_choice.py` says. No count depends on the order of rows or batches, on threads, or on what
            was asked before.
Why         Cells become positions by look-up (`rows/cells/encoder.py`). Rows that lack one are left out; the others
            become words that sort as the places of their values do, and an embedded DuckDB, which spills what does not
            fit into memory, puts them together by the person column. What then is counted are sums over rows, or over
            people with all their records side by side (`rows/counts/counting.py`).
Checked by  tests/property/test_rows_people.py, tests/contract/test_rows_engines.py, tests/contract/test_cells.py,
            tests/contract/test_one_pass.py.

Positions may be kept for the next question, as far as they fit into `KEPT` bytes: all of them come from one pass, and
only where a source that is unchanged has the same rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import InternalError
from tacit.rows.cells.dates import arrow_moment
from tacit.rows.cells.encoder import Codes, Encoder, smallest
from tacit.rows.counts.batches import BATCH, Batch, Piece, Workers, joined, of_reader, plain
from tacit.rows.counts.chosen_rows import ChosenRows, whole_people
from tacit.rows.counts.counting import MOST_BINS, Bins, CompiledTally
from tacit.rows.sources.duckdb_engine import embedded, looker_of
from tacit.rows.sources.engine import PERSON
from tacit.rows.sources.source import Opened

KEPT: Final = 2**26  # bytes of positions that are kept between questions
_MEMORY: Final = 768 * 2**20  # bytes that rows of people may take before they are spilled
_MOST_RECORDS: Final = 8  # of a person, side by side in one line

Records = Sequence[tuple[Mapping[str, Codes], npt.NDArray[np.bool_] | None]]


class OnePass:
    """One pass over the rows of an engine, for any number of needs."""

    def __init__(self, opened: Opened, *, looker: Callable[[], Any] | None = None) -> None:
        self._engine, self._domain, self._codes = opened.engine, opened.domain, opened.codes
        self._person, self._per_person, self._order = opened.person, opened.per_person, opened.order
        self._layout = opened.layout
        self._sizes = {name: self._domain[name].size for name in self._codes}
        self._dropping = frozenset(name for name, code in self._codes.items() if code.valid is not None)
        self._kept: tuple[frozenset[str], list[tuple[Records, int]]] | None = None
        self._looker: Any = None  # a DuckDB that looks cells up
        self._make_looker = looker or partial(looker_of, opened.engine)
        self._owners: Any = None  # puts the rows of people together; a DuckDB of its own, whose threads may wait for us
        self._encoder: Encoder | None = None

    def can_count(self, need: CompiledTally) -> bool:
        """Say whether a need can be counted here: no items, and a table that fits into memory."""
        cells = 1
        for name in need.names:
            cells *= self._domain[name].size
        wide = max((self._sizes[name] for name in self._codes), default=0) >= 2**62
        return (
            need.is_about_cells(self._domain) and cells <= MOST_BINS and not wide and self._per_person <= _MOST_RECORDS
        )

    def counted(self, needs: Sequence[CompiledTally]) -> list[npt.NDArray[Any]] | None:
        """Return what was counted for each need; None if the engine counts better by itself."""
        asked = frozenset().union(*(need.attributes(self._domain) for need in needs))
        if self._kept is not None and asked <= self._kept[0]:
            bins = Bins(needs, self._domain)
            with self._engine.quiet():
                for records, people in self._kept[1]:
                    bins.add_people(records, people)
            return bins.found()
        if self._kept is not None:
            asked |= self._kept[0]
        try:
            return self._read(needs, asked, f"{_MEMORY} bytes")
        except Exception as failure:
            if self._person is None or "Out of Memory" not in str(failure):  # Arrow keeps the text of it alone
                raise
        return self._read(needs, asked, "80%")

    def _read(
        self, needs: Sequence[CompiledTally], asked: frozenset[str], memory: str
    ) -> list[npt.NDArray[Any]] | None:
        pieces = self._pieces(asked)
        if pieces is None:
            return None
        bins, keeper = Bins(needs, self._domain), _Keeper(self._engine.keeps)

        def count(records: Records, people: int) -> None:
            keeper.keep(records, people)
            bins.add_people(records, people)

        if self._person is None:
            self._count_rows(pieces, asked, count)
        else:
            self._count_people(pieces, asked, count, memory)
        self._kept = (asked, keeper.found) if keeper.found is not None else None
        return bins.found()

    def _pieces(self, asked: frozenset[str]) -> list[Piece] | None:
        with self._engine.quiet():
            return self._engine.pieces(self._columns(asked))

    def _columns(self, asked: frozenset[str]) -> dict[str, str]:
        # which of a person's rows come first may be up to any attribute
        read = asked | self._dropping if self._person is None or not asked else self._codes.keys()
        columns = {column.name: column.raw for name in read for column in self._codes[name].columns}
        if self._person is not None:
            columns[PERSON] = self._person.raw
            if self._order is not None and asked:
                columns["o"] = self._order.raw
        return columns

    def rehearse(self) -> None:
        """Do with no rows everything that fails if their types cannot be counted."""
        columns = self._columns(frozenset(self._codes))
        if not columns or self._pieces(frozenset(self._codes)) is None:
            return
        table = self._engine.nothing(columns)
        cells = {name: joined(table.column(name)) for name in columns}
        if self._codes:
            read = {column.name for code in self._codes.values() for column in code.columns}
            self._encoding().rehearse(Batch(0, {name: found for name, found in cells.items() if name in read}))
        if self._person is not None:
            rows: dict[str, Any] = {name: arrow_moment(plain(cells[name])) for name in (PERSON, "o") if name in cells}
            choosing = self._choosing() if self._codes else None
            if choosing is not None:
                rows |= choosing.packed({word: np.zeros(0, dtype=np.int64) for word in self._layout.words})
                choosing.person_keys(rows[PERSON])
            self._put_together(self.looker().from_arrow(pa.table(rows)), choosing).to_arrow_table()

    # ------------------------------------------------------------------ every row is a person

    def _count_rows(
        self, pieces: Sequence[Piece], asked: frozenset[str], count: Callable[[Records, int], None]
    ) -> None:
        encoder = self._encoding()

        def work(batch: Batch) -> None:
            encoder.prepare(asked | self._dropping, batch)
            codes = {name: encoder.codes(name, batch) for name in asked | self._dropping}
            fits = self._fitting(codes)
            if fits is not None:
                codes = {name: codes[name][fits] for name in asked}
            count([(codes, None)], batch.rows if fits is None else int(fits.sum()))

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
            self._encoder = Encoder(self._codes, self._sizes, self.looker())
        return self._encoder

    def looker(self) -> Any:
        """Return the DuckDB that looks cells up."""
        if self._looker is None:
            self._looker = self._make_looker()
        return self._looker

    # ------------------------------------------------------------------ rows have owners

    def _count_people(
        self, pieces: Sequence[Piece], asked: frozenset[str], count: Callable[[Records, int], None], memory: str
    ) -> None:
        """Let DuckDB put the rows of each person together, each packed into a few words."""
        encoder, layout = self._encoding(), self._layout
        choosing = self._choosing() if asked else None
        read = self._codes.keys() if asked else self._dropping

        def encoded(batch: Batch) -> pa.RecordBatch:
            codes = {name: encoder.codes(name, batch) for name in read}
            columns = {
                name: arrow_moment(plain(batch.columns[name])) for name in (PERSON, "o") if name in batch.columns
            }
            fits, rows = self._fitting(codes), batch.rows
            if fits is not None:
                codes, rows = {name: code[fits] for name, code in codes.items()}, int(fits.sum())
                columns = {name: column.filter(pa.array(fits)) for name, column in columns.items()}
            packed = {} if choosing is None else choosing.packed(layout.words_of(codes, rows))
            return pa.record_batch({**columns, **{word: pa.array(found) for word, found in packed.items()}})

        def work(batch: Batch) -> None:
            if choosing is None:
                count([({}, None)], batch.rows)
                return
            chosen, people = choosing.chosen(batch)
            lines = []
            for words, has in chosen:
                codes = layout.codes_of(words, asked)
                lines.append(({name: code.astype(smallest(self._sizes[name])) for name, code in codes.items()}, has))
            count(lines, people)

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
                relation = self._put_together(connection.from_arrow(reader), choosing)
                stream = of_reader(lambda: relation.to_arrow_reader(BATCH))
                counting.append(Workers(stream if choosing is None else whole_people(stream), work))
                counting[0].finish()
            finally:
                reading.end()
        self._owners = connection  # not one whose work has failed

    def _put_together(self, relation: Any, choosing: ChosenRows | None) -> Any:
        """Sort rows by who owns them, or return one line for each person if nothing is read from rows."""
        assert self._person is not None  # noqa: S101 - for the type checker
        relation = relation.filter("u IS NOT NULL")
        if self._person.reading == "real":
            relation = relation.filter("NOT isnan(CAST(u AS DOUBLE))")
        if choosing is None:
            return relation.query("r", "SELECT count(*) AS n, u FROM r GROUP BY u").project("1 AS one")
        return choosing.sorted(relation)

    def _choosing(self) -> ChosenRows:
        assert self._person is not None  # noqa: S101 - for the type checker
        return ChosenRows(self._layout, self._person, self._order, self._per_person, self.looker())


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
        self.found: list[tuple[Records, int]] | None = [] if keeps else None
        self._bytes = 0
        self._lock = threading.Lock()

    def keep(self, records: Records, people: int) -> None:
        """Keep these, or nothing any more."""
        size = sum(code.nbytes for codes, _ in records for code in codes.values()) + 64
        with self._lock:
            self._bytes += size
            if self._bytes > KEPT:
                self.found = None
            if self.found is not None:
                self.found.append((records, people))
