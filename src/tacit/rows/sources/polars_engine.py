"""Polars frames, eager or lazy."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.errors import DataRefused
from tacit.rows.cells.dates import AFTER, BEFORE, DAY_SECONDS, FORMS, SECONDS, SHIFT, STEPS, shorter_forms
from tacit.rows.cells.dialect import Dialect
from tacit.rows.cells.item_lists import Key
from tacit.rows.cells.readings import NOT_PLAIN, NUMBER, DataColumn
from tacit.rows.counts.batches import BATCH, Piece, of_columns
from tacit.rows.files.identity import Identities, identities
from tacit.rows.files.planned_files import files_of_plan
from tacit.rows.sources.buffers import is_held, plain_cells
from tacit.rows.sources.engine import (
    Engine,
    MakeFrame,
    role_of,
    schema_of,
)
from tacit.rows.sources.frames import as_arrow

_OLDEST_POLARS: Final = (1, 18)  # not a dependency, so that no installer sees to it


def _polars_date(column: str, kind: Any, precision: str) -> Any:
    """Return the UTC date of a column of this type."""
    import polars as pl

    cell = pl.col(column)
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        days = cell.to_physical().cast(pl.Int64)
        if isinstance(kind, pl.Datetime):
            days = days // (DAY_SECONDS * STEPS[kind.time_unit])
        return days.clip(BEFORE, AFTER).cast(pl.Int32).cast(pl.Date)
    text = cell.cast(pl.String)
    sign, hours, rest, last = (text.str.extract(f"{SHIFT}$", number) for number in (1, 2, 3, 4))

    def whole(part: Any) -> Any:
        return part.cast(pl.Int64, strict=False).fill_null(0)

    minutes = whole(text.str.slice(11, 2)) * 60 + whole(text.str.slice(14, 2))
    seconds = minutes * 60 + whole(text.str.extract(SECONDS, 1))
    offset = (whole(hours) * 60 + whole(rest)) * 60 + whole(last)
    utc = seconds - pl.when(sign == "-").then(-offset).otherwise(offset)
    shift = pl.when(utc < 0).then(-1).when(utc >= DAY_SECONDS).then(1).otherwise(0)
    day = text.str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False) + pl.duration(days=shift)
    found = pl.when(text.str.starts_with("0000")).then(None).when(text.str.contains(f"{FORMS['day']}$")).then(day)
    for form, ending in shorter_forms(precision):
        first = (text + ending).str.to_date("%Y-%m-%d", strict=False)
        found = found.when(text.str.contains(f"{FORMS[form]}$")).then(first)
    return found.otherwise(None)


class _PolarsDialect(Dialect):
    """Expressions of polars."""

    def column(self, name: str) -> Any:
        import polars as pl

        return pl.col(name)

    def kinds(self, native: Any) -> Mapping[str, Any]:
        return dict(native.collect_schema())

    def added(self, native: Any, expressions: Mapping[str, Any]) -> Any:
        return native.with_columns(made.alias(name) for name, made in expressions.items())

    def text(self, name: str) -> Any:
        import polars as pl

        return pl.col(name).cast(pl.String)

    def number(self, text: Any) -> Any:
        import polars as pl

        lower = text.str.to_lowercase()
        spelled = pl.when(text.str.contains(NUMBER)).then(text.str.strip_chars(" ")).cast(pl.Float64, strict=False)
        return pl.when(lower == "true").then(1.0).when(lower == "false").then(0.0).otherwise(spelled)

    def date(self, name: str, kind: Any, precision: str) -> Any:
        return _polars_date(name, kind, precision)

    def hashed(self, name: str, kind: Any) -> Any:
        # polars leaves it to us: each different text of a batch is hashed once
        import polars as pl

        text = self.column(name) if kind in (pl.String, pl.Binary) else self.text(name)
        return text.map_batches(_polars_hashes, pl.Int64, is_elementwise=True)

    def native_unrolled(self, native: Any, column: str, place: str) -> Any:
        import polars as pl

        filled = native.filter(pl.col(column).list.len() > 0)
        return filled.with_columns(pl.int_ranges(pl.col(column).list.len()).alias(place)).explode(column, place)

    def of_texts(self, column: Any) -> Any:
        import polars as pl

        return column.cast(pl.List(pl.String))

    def mapped(self, column: Any, made: Callable[[Any], Any]) -> Any:
        import polars as pl

        return column.list.eval(made(pl.element()))

    def kept(self, column: Any, condition: Callable[[Any], Any]) -> Any:
        import polars as pl

        return column.list.eval(pl.element().filter(condition(pl.element()))).list.unique(maintain_order=True)

    def once(self, column: Any) -> Any:
        return column.list.unique()

    def first(self, column: Any, many: int) -> Any:
        return column.list.head(many)

    def among(self, element: Any, values: list[Any]) -> Any:
        import polars as pl

        if values and isinstance(values[0], float):  # decimals are compared as the floats that they are read as
            element = element.cast(pl.Float64)
        return element.is_in(values).fill_null(value=False) if values else pl.lit(value=False)

    def between(self, element: Any, low: int, high: int, *, fractions: bool, truths: bool) -> Any:
        import polars as pl

        number = element.cast(pl.Int8) if truths else element
        inside = (number >= low) & (number <= high)
        return ((inside & (number.floor() == number)) if fractions else inside).fill_null(value=False)

    def chosen(self, cases: list[tuple[Any, Any]], otherwise: Any) -> Any:
        import polars as pl

        found = otherwise
        for when, then in reversed(cases):
            found = pl.when(when).then(then).otherwise(found)
        return found

    def looked_up(self, number: Any, table: dict[float, str]) -> Any:
        import polars as pl

        return number.replace_strict(table, default=None, return_dtype=pl.String)

    def constant(self, text: str) -> Any:
        import polars as pl

        return pl.lit(text)

    def is_plain(self, text: Any) -> Any:
        return ~text.str.contains(NOT_PLAIN)

    def has(self, column: Any, key: Key) -> Any:
        import polars as pl

        # `contains` would insist on the very type of the elements
        return column.list.eval(pl.element() == key).list.any().fill_null(value=False)


POLARS: Final = _PolarsDialect()


class PolarsEngine(Engine):
    """A polars frame, eager or lazy."""

    kind = "polars"
    dialect = POLARS

    def __init__(self, source: Any) -> None:
        import polars as pl

        # what older ones lack would be missed only after the charge
        if tuple(map(int, pl.__version__.split(".")[:2])) < _OLDEST_POLARS:
            oldest = ".".join(map(str, _OLDEST_POLARS))
            raise DataRefused(f"polars must be at least version {oldest}", fix=f"pip install 'polars>={oldest}'.")
        self._lazy = source.lazy()
        self._scans = isinstance(source, pl.LazyFrame)
        self.place = ("polars", self._scans)
        self.rows = None if self._scans else len(source)
        self.keeps = not self._scans  # a plan may read something else next time; a frame does not change
        self._found: Any = None
        self._files: Identities = {}

    def names(self) -> list[str]:
        return list(self._lazy.collect_schema().names())

    def unchanged(self) -> bool:
        """Look at the columns again, and at the files that a plan may read by position."""
        import polars as pl

        same = self._identities() == self._files
        return same and bool(self._lazy.select(pl.all()).collect_schema() == self._found)

    def _identities(self) -> Identities:
        return identities(files_of_plan(self._lazy)) if self._scans else {}

    def schema(self) -> dict[str, DataColumn]:
        import polars as pl

        self._files = self._identities()
        self._found = self._lazy.collect_schema()
        nothing = {name for name, dtype in self._found.items() if dtype == pl.Null}
        return {name: DataColumn("text") if name in nothing else found for name, found in schema_of(self._lazy).items()}

    def select(self, columns: Mapping[str, str]) -> Any:
        """Select columns under new names."""
        import polars as pl
        from polars import selectors

        # a selector, because pl.col reads a name like ^a.*$ as a pattern
        chosen = [selectors.by_name(raw).as_expr().alias(new) for new, raw in columns.items()]
        return self._lazy.select(chosen) if chosen else self._lazy.select(pl.int_range(pl.len()).alias("one"))

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Cut the columns of a frame into batches; of a plan, leave the counting to polars."""
        if self._scans:
            return None
        import polars as pl

        held = (
            pl.Int8,
            pl.Int16,
            pl.Int32,
            pl.Int64,
            pl.UInt8,
            pl.UInt16,
            pl.UInt32,
            pl.UInt64,
            pl.Float32,
            pl.Float64,
        )
        texts = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Datetime, pl.Decimal, pl.Null)
        if not all(self._found[raw] in (*held, *texts) for raw in columns.values()):  # Arrow may lack the type
            return None
        table = self.select(columns).collect().to_arrow()
        found = {new: plain_cells(table.column(new), role_of(new)) for new in columns}
        if not all(is_held(column.type) for column in found.values()):
            return None
        return of_columns(found, table.num_rows)

    def parts(self, native: Any) -> Iterator[pa.Table]:
        """Let polars go through a plan bit by bit; older ones cannot."""
        if not hasattr(native, "collect_batches"):
            yield native.collect().to_arrow()
            return
        for frame in native.collect_batches(chunk_size=BATCH, maintain_order=True):
            yield frame.to_arrow()

    def emptied(self) -> Engine:
        """Make a frame of the same columns: whatever a plan does, none of it is done."""
        import polars as pl

        other = copy.copy(self)
        other._lazy, other.rows = pl.DataFrame(schema=self._found).lazy(), 0
        return other

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        table = self.select(columns).collect().to_arrow()
        cells = {new: plain_cells(table.column(new), role_of(new)) for new in columns}
        return pa.table(cells).slice(0, 0)

    def rehearse(self, native: Any) -> None:
        native.collect().to_arrow()

    def type_of(self, raw: str) -> str:
        return str(self._found[raw])

    @property
    def frame(self) -> MakeFrame:
        return _as_polars


def _polars_hashes(texts: Any) -> Any:
    import polars as pl

    cells = texts.unique().drop_nulls()
    hashes = [_hash(cell if isinstance(cell, bytes) else cell.encode()) for cell in cells.to_list()]
    return texts.replace_strict(cells, pl.Series(hashes, dtype=pl.Int64), default=None, return_dtype=pl.Int64)


def _hash(cell: bytes) -> int:
    return int(hashlib.sha256(cell).hexdigest()[:13], 16)


def _as_polars(columns: Mapping[str, Sequence[Any]]) -> Any:
    import polars as pl

    return pl.DataFrame(as_arrow(columns))
