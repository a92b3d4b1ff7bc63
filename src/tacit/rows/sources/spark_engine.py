"""Spark frames."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.rows.cells.date_texts import spark_date
from tacit.rows.cells.item_lists import Key, ListReading, SparkLists
from tacit.rows.cells.readings import NUMBER, DataColumn
from tacit.rows.counts.batches import Piece
from tacit.rows.files.identity import identity
from tacit.rows.guard import closed
from tacit.rows.sources.duckdb_engine import shared_embedded
from tacit.rows.sources.engine import (
    Engine,
    MakeFrame,
    cancelled,
    no_warnings,
    schema_of,
    unreadable,
)
from tacit.rows.sources.frames import as_arrow
from tacit.rows.sources.spark_log import log_off


class SparkEngine:
    """A Spark DataFrame."""

    kind = "pyspark"
    keeps = False
    rows: int | None = None

    def pieces(self, columns: Mapping[str, str]) -> list[Piece] | None:
        """Leave the counting to Spark."""
        return None

    def parts(self, native: Any) -> Iterator[pa.Table]:
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

    def legible(self) -> Engine:
        """Texts of this engine are UTF-8."""
        return self

    def nothing(self, columns: Mapping[str, str]) -> pa.Table:
        """Return no rows: there are no pieces."""
        return pa.table({})

    def rehearse(self, native: Any) -> None:
        """Look at the types of the plan: Spark checks them when it makes one, and no job runs."""
        _ = native.schema

    def type_of(self, raw: str) -> str:
        """Return the name of a type."""
        return str(self._source.schema[raw].dataType.simpleString())

    def helper(self) -> duckdb.DuckDBPyConnection:
        """Return a connection to the DuckDB of this process."""
        return shared_embedded()

    def __init__(self, source: Any) -> None:
        self._source = source
        self.place = ("pyspark", id(source.sparkSession))
        self._files: dict[str, Any] = {}

    def names(self) -> list[str]:
        """Return the names of all columns."""
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
        """Return how each column is read."""
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

    def try_column(self, raw: str) -> None:
        """No cell makes it fail."""

    def select(self, columns: Mapping[str, str]) -> Any:
        """Select columns under new names."""
        from pyspark.sql import functions

        chosen = [_spark_column(raw).alias(new) for new, raw in columns.items()] or [functions.lit(1).alias("one")]
        return self._source.select(*chosen)

    def numbers(self, native: Any, columns: Mapping[str, str]) -> Any:
        """Read texts as numbers."""
        from pyspark.sql import functions

        texts = ((new, functions.col(column).cast("string")) for new, column in columns.items())
        return native.select("*", *(_spark_number(text).alias(new) for new, text in texts))

    def dates(self, native: Any, columns: Mapping[str, tuple[str, str]]) -> Any:
        """Read dates."""
        kinds = {field.name: field.dataType.typeName() for field in native.schema.fields}
        return native.withColumns(
            {new: spark_date(column, kinds[column], form) for new, (column, form) in columns.items()}
        )

    def hashed(self, native: Any, new: str, column: str) -> Any:
        """Hash texts."""
        from pyspark.sql import functions

        digits = functions.substring(functions.sha2(functions.col(column).cast("string"), 256), 1, 13)
        return native.withColumn(new, functions.conv(digits, 16, 10).cast("bigint"))

    def keyed(self, native: Any, columns: Mapping[str, ListReading]) -> Any:
        """Read lists."""
        from pyspark.sql import functions

        keyed = SparkLists(_spark_number).keyed
        return native.withColumns(
            {column: keyed(functions.col(column), reading) for column, reading in columns.items()}
        )

    def having(self, native: Any, marks: Mapping[str, tuple[str, Key]]) -> Any:
        """Look into lists."""
        from pyspark.sql import functions

        has = SparkLists(_spark_number).has
        return native.withColumns({new: has(functions.col(column), key) for new, (column, key) in marks.items()})

    def unrolled(self, native: Any, column: str, place: str) -> Any:
        """Unroll a list column."""
        from pyspark.sql import functions

        others = [name for name in native.columns if name != column]
        return native.select(*others, functions.posexplode(column).alias(place, column))

    def stacked(self, native: Any, kept: Sequence[str], columns: Sequence[str], name: str) -> Any:
        """Stack columns."""
        return native.unpivot(list(kept), list(columns), "v", name).select(*kept, name)

    @property
    def frame(self) -> MakeFrame:
        """Make a Spark DataFrame."""
        return functools.partial(_as_spark, self._source.sparkSession)

    @contextlib.contextmanager
    def quiet(self, *cancel: Callable[[], object]) -> Iterator[None]:
        """Keep quiet: Spark writes the text of a failure, cell included, to its own log."""
        with no_warnings(), log_off(self._source), cancelled(*cancel):
            yield


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


def _spark_number(text: Any) -> Any:
    from pyspark.sql import functions

    lower = functions.lower(text)
    # in Java, $ would also match before a line break at the end
    spelled = text.rlike(NUMBER.removesuffix("$") + r"\z")
    number = functions.when(lower == "true", 1.0).when(lower == "false", 0.0)
    return number.when(spelled, functions.trim(text).try_cast("double"))


def _spark_column(raw: str) -> Any:
    from pyspark.sql import functions

    return functions.col("`" + raw.replace("`", "``") + "`")


def _as_spark(session: Any, columns: Mapping[str, Sequence[Any]]) -> Any:
    return session.createDataFrame(as_arrow(columns))
