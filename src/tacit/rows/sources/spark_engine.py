"""Spark frames."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.rows.cells.number_cells import DAY_SECONDS, FORMS, SECONDS, SHIFT, STEPS, shorter_forms
from tacit.rows.cells.readings import NUMBER, DataColumn, Dialect
from tacit.rows.counts.batches import Batch, Piece, joined
from tacit.rows.files.identity import identity
from tacit.rows.files.written import DateForm
from tacit.rows.guard import closed
from tacit.rows.sources.buffers import plain_cells
from tacit.rows.sources.engine import (
    Engine,
    MakeFrame,
    cancelled,
    no_warnings,
    role_of,
    schema_of,
    unreadable,
)
from tacit.rows.sources.frames import as_arrow
from tacit.rows.sources.spark_log import log_off


def _spark_moment(column: str, kind: str, precision: str) -> Any:
    """Return the UTC date of a column of this type, or its second."""
    from pyspark.sql import functions as f

    def since_1970(day: Any) -> Any:
        return f.datediff(day, f.lit("1970-01-01").cast("date")).cast("bigint") * DAY_SECONDS

    cell = f.col(column)
    if precision == "second" and kind == "timestamp_ntz":  # as many seconds as in UTC, whatever zone the session has
        return since_1970(cell.cast("date")) + f.hour(cell) * 3600 + f.minute(cell) * 60 + f.second(cell)
    if precision == "second" and kind == "timestamp":
        steps, many = f"unix_micros({column})", f"{STEPS['us']}L"
        return f.expr(f"{steps} div {many} - IF({steps} % {many} < 0, 1L, 0L)")
    if kind in ("date", "timestamp_ntz"):
        return cell.cast("date")
    if kind == "timestamp":
        steps, many = f"unix_micros({column})", f"{DAY_SECONDS * STEPS['us']}L"
        return f.expr(f"date_add(DATE'1970-01-01', CAST({steps} div {many} - IF({steps} % {many} < 0, 1, 0) AS INT))")
    text = cell.cast("string")
    sign, hours, rest, last = (f.regexp_extract(text, rf"{SHIFT}\z", number) for number in (1, 2, 3, 4))

    def whole(part: Any) -> Any:
        return f.coalesce(part.try_cast("int"), f.lit(0))

    minutes = whole(f.substring(text, 12, 2)) * 60 + whole(f.substring(text, 15, 2))
    seconds = minutes * 60 + whole(f.regexp_extract(text, SECONDS, 1))
    offset = (whole(hours) * 60 + whole(rest)) * 60 + whole(last)
    utc = seconds - f.when(sign == "-", -offset).otherwise(offset)
    shift = f.when(utc < 0, -1).when(utc >= DAY_SECONDS, 1).otherwise(0)
    day = f.substring(text, 1, 10).try_cast("date")
    day = since_1970(day) + utc if precision == "second" else f.date_add(day, shift)
    # in Java, $ would also match before a line break at the end
    found = f.when(text.startswith("0000"), None).when(text.rlike(rf"{FORMS['day']}\z"), day)
    for form, ending in shorter_forms(precision):
        first = f.concat(text, f.lit(ending)).try_cast("date")
        found = found.when(text.rlike(rf"{FORMS[form]}\z"), first)
    return found


class _SparkDialect(Dialect):
    """Columns of Spark."""

    def kinds(self, native: Any) -> Mapping[str, Any]:
        return {field.name: field.dataType.typeName() for field in native.schema.fields}

    def added(self, native: Any, expressions: Mapping[str, Any]) -> Any:
        return native.withColumns(dict(expressions))

    def text(self, name: str) -> Any:
        return _spark_column(name).cast("string")

    def number(self, text: Any) -> Any:
        from pyspark.sql import functions

        lower = functions.lower(text)
        # in Java, $ would also match before a line break at the end
        spelled = text.rlike(NUMBER.removesuffix("$") + r"\z")
        number = functions.when(lower == "true", 1.0).when(lower == "false", 0.0)
        return number.when(spelled, functions.trim(text).try_cast("double"))

    def swapped(self, text: Any) -> Any:
        from pyspark.sql import functions

        return functions.translate(text, ".,", ",.")

    def iso(self, text: Any, form: DateForm) -> Any:
        from pyspark.sql import functions as f

        # in Java, $ would also match before a line break at the end
        year, month, day, rest = (
            f.regexp_extract(text, rf"^{form.pattern}\z", group) for group in (form.year, form.month, form.day, 4)
        )
        written = f.concat(year, f.lit("-"), f.lpad(month, 2, "0"), f.lit("-"), f.lpad(day, 2, "0"), rest)
        return f.when(text.rlike(rf"^{form.pattern}\z"), written).otherwise(text)

    def date(self, name: str, kind: Any, precision: str) -> Any:
        return _spark_moment(name, kind, precision)

    def hashed(self, name: str, kind: Any) -> Any:
        from pyspark.sql import functions

        digits = functions.substring(functions.sha2(self.text(name), 256), 1, 13)
        return functions.conv(digits, 16, 10).cast("bigint")

    def native_unrolled(self, native: Any, column: str, place: str) -> Any:
        from pyspark.sql import functions

        others = [name for name in native.columns if name != column]
        return native.select(*others, functions.posexplode(column).alias(place, column))


SPARK: Final = _SparkDialect()


class SparkEngine(Engine):
    """A Spark DataFrame."""

    kind = "pyspark"
    dialect = SPARK
    counts = True

    def pieces(self, columns: Mapping[str, str]) -> list[Piece]:
        """Fetch the rows, all of them in one thread: what Spark logs of a job hangs on the thread that asks for it."""
        return [lambda: (_batch(part, columns) for part in self._parts(self.select(columns)))]

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        return self.emptied().select(columns).toArrow()

    def _parts(self, native: Any) -> Iterator[pa.Table]:
        """Fetch partition after partition, each row of what Spark hands over being a batch of Arrow's.

        Batches are packed where the rows are. Where Python cannot work there, all rows come at once.
        """
        packed = native.mapInArrow(_packing(), "packed binary").toLocalIterator(prefetchPartitions=True)
        try:
            first = next(packed, None)
        except Exception:  # the same rows, read as a whole, say whether they can be read
            yield native.toArrow()
            return
        for row in () if first is None else itertools.chain([first], packed):
            with pa.ipc.open_stream(row["packed"]) as stream:
                yield stream.read_all()

    def emptied(self) -> Engine:
        """Limit the frame to no row."""
        other = copy.copy(self)
        other._source = self._source.limit(0)
        return other

    def type_of(self, raw: str) -> str:
        return str(self._source.schema[raw].dataType.simpleString())

    def __init__(self, source: Any) -> None:
        self._source = source
        self.place = ("pyspark", id(source.sparkSession))
        self._files: dict[str, Any] = {}

    def names(self) -> list[str]:
        return list(self._source.columns)

    def unchanged(self) -> bool:
        """Look at the files again: Spark made its plan when the frame was made, and reads texts by position."""
        return all(self._file(address) == found for address, found in self._files.items())

    def _file(self, address: str) -> Any:
        if address.startswith("file:"):
            return identity(unquote(urlsplit(address).path))
        context = self._source.sparkSession.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(address)
        status = path.getFileSystem(context._jsc.hadoopConfiguration()).getFileStatus(path)
        return status.getLen(), status.getModificationTime()

    def schema(self) -> dict[str, DataColumn]:
        # columnar files are read by name
        with self.quiet():  # listing files plans the question, and a plan may fail on a cell and log it
            # not to be passed over: a question about other columns may have a plan that does not fail
            listed = closed(lambda: list(self._source.inputFiles()), unreadable())
        by_place = [name for name in listed if not name.endswith((".parquet", ".orc"))]
        self._files = {address: self._file(address) for address in by_place}
        found = {}
        names = self._source.columns
        for field in self._source.schema.fields:
            if sum(name.casefold() == field.name.casefold() for name in names) > 1:
                continue  # Spark cannot tell which one is meant, and nobody may ask for it
            empty = field.dataType.typeName() == "void"
            plain = self._source.select(_spark_column(field.name).alias("c"))
            found[field.name] = DataColumn("text") if empty else schema_of(plain)["c"]
        return found

    def select(self, columns: Mapping[str, str]) -> Any:
        """Select columns under new names."""
        from pyspark.sql import functions

        chosen = [_spark_column(raw).alias(new) for new, raw in columns.items()] or [functions.lit(1).alias("one")]
        return self._source.select(*chosen)

    @property
    def frame(self) -> MakeFrame:
        return functools.partial(_as_spark, self._source.sparkSession)

    @contextlib.contextmanager
    def quiet(self, *cancel: Callable[[], object]) -> Iterator[None]:
        """Keep quiet: Spark writes the text of a failure, cell included, to its own log."""
        with no_warnings(), log_off(self._source), cancelled(*cancel):
            yield


def _batch(part: pa.Table, columns: Mapping[str, str]) -> Batch:
    cells = {new: joined(plain_cells(part.column(new), role_of(new))) for new in columns}
    return Batch(part.num_rows, cells)


def _packing() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what packs each batch into one cell; made here so that it is sent as it is, to where nobody has Tacit."""

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for batch in batches:
            sink = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            cell = pyarrow.array([sink.getvalue().to_pybytes()], type=pyarrow.binary())
            yield pyarrow.RecordBatch.from_arrays([cell], names=["packed"])

    return packed


def _spark_column(raw: str) -> Any:
    from pyspark.sql import functions

    return functions.col("`" + raw.replace("`", "``") + "`")


def _as_spark(session: Any, columns: Mapping[str, Sequence[Any]]) -> Any:
    return session.createDataFrame(as_arrow(columns))
