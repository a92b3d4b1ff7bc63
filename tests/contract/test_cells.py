"""One table of cells, by the type of their column, against every kind of attribute, on every engine.

Each engine must give each cell the position that `tests/cell_readings.py` gives it, or refuse the attribute by the type
of the column; and what a typed cell counts as, its spelling in a CSV must count as too.
"""

import contextlib
import datetime
import decimal
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cell_readings
import engines
import tacit as tc
from engines import Source, as_parquet
from tacit.errors import DataRefused
from tacit.policy.attributes import Attribute, Categories, Dates, Decimals, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.rows.cells.encoder import Encoder
from tacit.rows.cells.kinds import code_of
from tacit.rows.cells.object_cells import text_of
from tacit.rows.cells.readings import Code, DataColumn
from tacit.rows.counts.batches import Batch
from tacit.rows.rows import open_rows
from tacit.rows.sources.duckdb_engine import looker_of
from tacit.rows.sources.engine import Engine
from tacit.rows.sources.source import engine_for

D = decimal.Decimal
DAY = datetime.date(2024, 5, 1)
NOON = datetime.datetime(2024, 5, 1, 12)
UTC = datetime.UTC
LATE = datetime.datetime(2024, 4, 30, 23, 30, tzinfo=UTC)  # on another day east and west of it
OTHER_DAYS = [datetime.date(*day) for day in ((2024, 2, 29), (2021, 1, 3), (2021, 1, 4), (1, 1, 1), (9999, 12, 31))]
OTHER_TIMES = [
    datetime.datetime(1969, 12, 31, 23, 59, 59),
    datetime.datetime(2024, 5, 1),
    datetime.datetime(1900, 1, 1),
]
AT = ("c", "d")
ATTRIBUTES: dict[str, Attribute] = {
    "texts": Categories(["x", "1", "true", "0.5", "2024-05-01", "inf", "", " x"]),
    "other spellings": Categories(["other", "1.0", "True", "-0.50", "1e3", "-Infinity", "é"], otherwise="other"),
    "codes": Categories(["007", "7", "x", "+1"]),
    "one value twice": Categories(["1", "1.0", "TRUE", "true", "1e3", "1000"], otherwise="1"),
    "numbers": Categories([0, 1, 1000], otherwise=0),
    "truths": Categories([True, False]),
    "numbers and texts": Categories(["x", 3, "03", "3", True, "0.5", "False"]),
    "number or text": Categories([1000, "1", "false", "x"], otherwise="x"),
    "words": Categories(["x", "nan", "other"], otherwise="other"),
    "integers": Integers(0, 10),
    "integers, otherwise": Integers(0, 1000, otherwise=7),
    "integers, clip": Integers(-3, 7, otherwise="clip"),
    "steps": Integers(-4, 1000, 4),
    "steps, otherwise": Integers(-3, 9, 4, otherwise=5),
    "steps, clip": Integers(-5, 10, 5, otherwise="clip"),
    "far": Integers(5, 9),
    "flag": Flag(),
    "flag, otherwise": Flag(otherwise=True),
    "cells": Grid(3, 4, of=AT),
    "cells, clip": Grid(3, 1001, of=AT, otherwise="clip"),
    "cells, otherwise": Grid(3, 4, of=AT, otherwise=(2, 3)),
    "coordinates": Grid(4, 5, of=AT, low=(-1, 0), high=(2, 1e19)),
    "coordinates, clip": Grid(4, 5, of=AT, low=(-1, 0), high=(1.5, 1e40), otherwise="clip"),
    "coordinates, otherwise": Grid(7, 3, of=AT, low=(-1, 0), high=(2, 5), otherwise=(0, 2)),
    "items": Items(3, first=1),
    "named items": Items(["x", "1", 3, "0.5", "true"]),
    "tenths": Decimals(-1, 1, 0.1),
    "tenths, clip": Decimals("-0.3", "7.2", "0.3", otherwise="clip"),
    "quarters, otherwise": Decimals(-0.5, 1000, 0.25, otherwise=7.25),
    "between wholes, clip": Decimals(0.05, 8.05, 0.5, otherwise="clip"),
    "millionths": Decimals(0, "0.00002", "0.000001"),
    "finer than floats": Decimals("999.99", "1000.01", "0.00001", otherwise="clip"),
    "days": Dates("2024-04-29", "2024-05-02"),
    "days, clip": Dates("1969-12-31", "2024-05-01", otherwise="clip"),
    "weeks, otherwise": Dates("1969-12-29", "2024-05-05", by="week", otherwise="2024-W10"),
    "weeks, clip": Dates("2020-12-28", "2024-05-05", by="week", otherwise="clip"),
    "months": Dates("1969-12", "2024-05", by="month"),
    "quarters, clip": Dates("2000-Q1", "2024-Q2", by="quarter", otherwise="clip"),
    "years, otherwise": Dates("1969", "2025", by="year", otherwise="2000"),
}
SPELLED_NUMBERS = [
    *("1", "1.0", "01", " 1", "1 ", "+1", "1.", "1e0", "1e3", "1E+03", "1000", "-0", "-0.0", "0", "0.5", ".5", "-.50"),
    *("007", "7", "7.0", "0x1", "1_000", "1,5", "1e", "e1", "--1", "1e-999", "1e999", "-1e999", "3", "03", "8.0"),
    *("inf", "-inf", "Infinity", "-INFINITY", "+inf", "infin", "İnf", "nan", "NaN", "٣", "1\n", "\n1", "1\x00"),
    *("9007199254740993", "4611686018427387905", "9223372036854775808", "18446744073709551616", "1" + "0" * 40),
    *("-" + "9" * 400, "0." + "9" * 60, "0.50000000000000000000000000001"),
]
SPELLED_DATES = [
    *("2024-05-01", "2024-04-30", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-04-31", "2024-13-01"),
    *("2024-00-10", "2024-05-00", "2024-5-1", "2024-05-01 ", " 2024-05-01", "2024-05-01\n", "20240501", "2024-W18-3"),
    *("2024-05-01T12:00", "2024-05-01 23:59:59", "2024-05-01T23:59:59.999999999", "2024-05-01T24:00", "2024-05-01T"),
    *("2024-05-01T23:30:00Z", "2024-05-01T23:30:00-05:00", "2024-05-01T00:30+01:00", "2024-05-01 00:30:00+00:00"),
    *("2024-05-01 00:30:00.5+0130", "2024-04-30 23:00:00-01", "2024-05-01T12:00 Z", "2024-05-01T12:60", "2024-05-01Z"),
    *("2021-01-03", "2021-01-04", "2020-12-31", "0001-01-01", "0001-01-01T00:00+01:00", "9999-12-31T23:00-01:00"),
    *("1970-01-01T00:53:27+00:53:28", "1970-01-01T00:53:28.5+00:53:28", "2024-05-01T23:59:59-00:00:01"),
    *("2024-05-01T23:59:58-00:00:01", "2024-05-01T12:00+0053:28", "2024-05-01T12:00+005328"),
    "2024-05-01T12:00+00:53:60",
    *("0000-05-01", "9999-12-31", "10000-01-01", "2024-05", "2024-13", "2024", "24", "2024-W18", "2024-Q2", "0000"),
]
SPELLED_DECIMALS = [
    *("36.6", "0.3", "0.30000000000000004", "0.1", "0.7", ".25", "7.25", "-0.3", "7.2", "0.000003"),
    "0.55",
]
SPELLED_WORDS = ["x", " x", "X", "", " ", "é", "true", "True", "TRUE", "tRuE", " true", "false", "FALSE", "yes", "t"]
WIDE = [2**53, 2**53 + 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1]
FRACTIONS = [0.3, 0.1 + 0.2, 0.1 * 3, 0.7, 0.1 * 7, 1 - 0.9, -0.3, -0.1 * 3, 7.2, 7.25, 3.3000000000000003, 0.55, 3e-6]
REALS = [*FRACTIONS, 0.0, -0.0, 0.5, -0.5, 1.0, 3.0, 4.0, 7.0, 8.0, 1000.0, 0.1, 2.5, 1e-5, -1e-320]
NARROW = [0.30000001, 7.2001, 7.1999, 0.15, 0.35, 6.9, 3.05, 7.05, 1.2e-5, 2e-5, 2.1e-5, -0.7, -1.0, -0.30001, 1000.25]
NARROW += [999.8, 999.75, 36.6, 6.1e-5, 65504.0]
LARGE_REALS = [float(2**53), float(2**62), float(2**63), float(2**64), 1e19, 1e40, 1e300, -1e300, math.inf, -math.inf]


@dataclass(frozen=True)
class Held:
    """Cells as a column holds them: its Arrow type, how such a type is read, and which engines cannot hold it."""

    arrow: pa.DataType
    cells: list[Any]
    kind: str
    decimals: int = 0
    without: frozenset[str] = field(default_factory=frozenset)

    def array(self) -> pa.Array:
        if pa.types.is_dictionary(self.arrow):
            return pa.array(self.cells, type=self.arrow.value_type).dictionary_encode()
        if pa.types.is_float16(self.arrow):
            return pa.array([None if cell is None else np.float16(cell) for cell in self.cells], type=self.arrow)
        return pa.array(self.cells, type=self.arrow)

    def values(self) -> list[Any]:
        """The cells as plain Python values."""
        return [float(cell) if isinstance(cell, np.floating) else cell for cell in self.array().to_pylist()]


def held(arrow: pa.DataType, cells: list[Any], kind: str, decimals: int = 0, without: str = "") -> Held:
    return Held(arrow, cells, kind, decimals, frozenset(without.split()))


DECIMALS = [D("0.00"), D("-0.50"), D("0.50"), D("1.00"), D("3.00"), D("7.25"), D("1000.00"), D("99999999.99"), None]
LONG_DECIMALS = [D("2." + "9" * 20), D("0.1"), D("1"), D("0.5"), D("-0." + "0" * 19 + "1"), D(10**17), None]
COLUMNS: dict[str, Held] = {
    "texts": held(pa.string(), [*SPELLED_NUMBERS, *SPELLED_WORDS, *SPELLED_DATES, *SPELLED_DECIMALS, None], "text"),
    "large texts": held(pa.large_string(), ["x", "1.0", None], "text"),
    "dictionary of texts": held(
        pa.dictionary(pa.int32(), pa.string()), [*SPELLED_NUMBERS[:20], *SPELLED_WORDS, None], "text", without="spark"
    ),
    "nothing": held(pa.null(), [None, None], "text"),
    "int64": held(pa.int64(), [0, 1, -1, 3, 4, 7, 1000, *WIDE, -(2**53), -(2**63), None], "whole"),
    "int8": held(pa.int8(), [0, 1, 3, -128, 127, None], "whole"),
    "uint8": held(pa.uint8(), [0, 1, 3, 255, None], "whole", without="spark"),
    "uint64": held(pa.uint64(), [0, 1, 3, *WIDE, 2**63, 2**64 - 1, None], "whole", without="spark"),
    "dictionary of numbers": held(
        pa.dictionary(pa.int8(), pa.int64()), [0, 1, 1000, 2**63 - 1, None], "whole", without="spark polars polars-lazy"
    ),
    "float64": held(pa.float64(), [*REALS, *LARGE_REALS, math.nan, None], "real"),
    "float32": held(pa.float32(), [*REALS, *NARROW, math.inf, math.nan, 2.0**64, 2.0**100], "real"),
    "float16": held(pa.float16(), [*REALS, *NARROW, math.inf, -math.inf, math.nan, None], "real", 0, "spark ibis"),
    "dictionary of reals": held(
        pa.dictionary(pa.int8(), pa.float64()), [0.5, 1.0, math.inf, None], "real", 0, "spark polars polars-lazy"
    ),
    "decimals": held(pa.decimal128(10, 2), DECIMALS, "real", 2),
    "long decimals": held(pa.decimal128(38, 20), LONG_DECIMALS, "real", 20),
    "whole decimals": held(pa.decimal128(38, 0), [D(0), D(1), D(3), D(2**53), D(2**64), D(-(10**37)), None], "real"),
    "truths": held(pa.bool_(), [True, False, None], "truth"),
    "dates": held(pa.date32(), [DAY, datetime.date(1969, 12, 31), *OTHER_DAYS, None], "date"),
    "timestamps": held(pa.timestamp("us"), [NOON, *OTHER_TIMES, None], "time"),
    "zoned timestamps": held(pa.timestamp("us", "UTC"), [NOON.replace(tzinfo=UTC), LATE, None], "time"),
    "timestamps elsewhere": held(
        pa.timestamp("us", "America/New_York"), [NOON.replace(tzinfo=UTC), LATE, None], "time"
    ),
    "seconds": held(pa.timestamp("s"), [NOON, *OTHER_TIMES, None], "time"),
    "milliseconds": held(pa.timestamp("ms", "Asia/Tokyo"), [NOON.replace(tzinfo=UTC), LATE, None], "time"),
    "times": held(pa.time64("us"), [NOON.time(), None], "other", without="spark"),
    "durations": held(pa.duration("us"), [datetime.timedelta(1), None], "other", without="parquet"),
    "bytes": held(pa.binary(), [b"1", b"x", b"\xff", None], "other"),
    "structures": held(pa.struct({"a": pa.int64()}), [{"a": 1}, None], "other"),
    "lists": held(pa.list_(pa.int64()), [[1], [], None], "other"),
    "dictionary of dates": held(
        pa.dictionary(pa.int8(), pa.date32()), [DAY, None], "date", without="spark ibis polars polars-lazy"
    ),
}
_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype(), pa.bool_(): pd.BooleanDtype()}
_NULLABLE |= {pa.int8(): pd.Int8Dtype(), pa.uint8(): pd.UInt8Dtype()}


def csv_file(table: pa.Table, folder: Path) -> Path:
    def written(cell: Any) -> str:
        said = cell_readings.spelled(cell)
        return "" if said is None else '"' + said.replace('"', '""') + '"'

    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    lines = ["i,c", *(",".join(map(written, row)) for row in rows)]
    (folder / "cells.csv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return folder / "cells.csv"


def pandas_objects(table: pa.Table, _: Path) -> pd.DataFrame:
    cells = np.empty(table.num_rows, dtype=object)
    for place, cell in enumerate(table.column("c").to_pylist()):
        cells[place] = cell
    return pd.DataFrame({"i": range(table.num_rows), "c": pd.Series(cells, dtype=object)})


ENGINES: dict[str, Source] = {
    "csv": csv_file,
    "parquet": as_parquet,
    "pandas": lambda table, _: table.to_pandas(types_mapper=_NULLABLE.get),
    "pandas-numpy": lambda table, _: table.drop_null().to_pandas(),
    "pandas-objects": pandas_objects,
    **{name: made for name, made in engines.ENGINES.items() if name not in ("csv", "parquet", "pandas")},
}
NO_FLOAT16 = {"duckdb", "pandas-arrow"}  # whose own frames cannot hold it, or be made of it


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, Held], Any]:
    """Return what puts a column into an engine, or None where the engine has no such type."""

    def make(engine: str, column: Held) -> Any:
        if engine in column.without or (column.arrow == pa.float16() and engine in NO_FLOAT16):
            return None
        table = pa.table({"i": pa.array(range(len(column.cells)), pa.int64()), "c": column.array()})
        if engine == "spark":
            return request.getfixturevalue("spark").createDataFrame(table)
        return ENGINES[engine](table, tmp_path)

    return make


def kind_on(engine: str, column: Held, frame: Any) -> tuple[str, int]:
    """Return as what an engine holds a column: pandas has objects for what numpy has no type for."""
    if engine in ("csv", "pandas-objects"):
        return "text", 0
    if isinstance(frame, pd.DataFrame):
        dtype = frame["c"].dtype
        if (dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype) == np.dtype(object):
            return "text", 0
    return column.kind, column.decimals


def positions(
    engine: Engine, column: DataColumn, attributes: dict[str, Attribute]
) -> dict[str, list[int | None] | None]:
    """Return the position of each cell under each attribute, or None where it is refused; read as rows are counted."""
    codes = {}
    for name, attribute in attributes.items():
        with contextlib.suppress(DataRefused):
            codes[name] = code_of(attribute, (column, column) if isinstance(attribute, Grid) else (column,))
    result: dict[str, list[int | None] | None] = dict.fromkeys(attributes)
    if not codes:
        return result
    found = engine_positions(engine, codes) if engine.counts else looked_up(engine, codes, attributes)
    numbered = sorted(found.pop("i"), key=lambda row: row[1])
    return result | {name: [places[at] for at, _ in numbered] for name, places in found.items()}


def looked_up(engine: Engine, codes: dict[str, Code], attributes: dict[str, Attribute]) -> dict[str, list[Any]]:
    """Return the positions that the tables of an encoder give, which knows the cells the second time."""
    sizes = {name: attributes[name].cells if attributes[name].is_set else attributes[name].size for name in codes}
    encoder = Encoder(codes, sizes, looker_of(engine))
    found: dict[str, list[Any]] = {name: [] for name in ["i", *codes]}
    for batch in chain.from_iterable(piece() for piece in engine.pieces({"i": "i", "c0": "c"})):
        encoder.prepare(codes, batch)
        backward = pa.array(range(batch.rows - 1, -1, -1))
        again = Batch(batch.rows, {name: cells.take(backward) for name, cells in batch.columns.items()})
        start = len(found["i"])
        found["i"] += [(start + at, int(number)) for at, number in enumerate(batch.columns["i"].to_pylist())]
        for name in codes:
            places = encoder.codes(name, batch).tolist()
            assert encoder.codes(name, again).tolist() == places[::-1], name
            found[name] += [None if place == sizes[name] else place for place in places]
    return found


def engine_positions(engine: Engine, codes: dict[str, Code]) -> dict[str, list[Any]]:
    """Return the positions that the expressions of codes give in an engine that counts by itself."""
    frame = nw.from_native(engine.select({"i": "i", "c0": "c"})).lazy()
    frame = engine.dialect.with_readings(frame, dict.fromkeys(one for code in codes.values() for one in code.numbers))
    chosen = []
    for name, code in codes.items():
        for place, key in enumerate(code.keys):
            chosen.append((key if code.valid is None else nw.when(code.valid).then(key)).alias(f"{name} {place}"))
        valid = ~nw.col("i").is_null() if code.valid is None else code.valid
        chosen.append(valid.alias(f"{name} valid"))
    with engine.quiet():
        table = engine.collected(frame.select(nw.col("i").cast(nw.Int64), *chosen))
    found: dict[str, list[Any]] = {"i": list(enumerate(table.column("i").to_pylist()))}
    for name, code in codes.items():
        places = code.decode([table.column(f"{name} {place}") for place in range(len(code.keys))])
        places = np.broadcast_to(places, (table.num_rows,))
        kept = table.column(f"{name} valid").fill_null(False).to_pylist()
        found[name] = [int(p) if k and p >= 0 else None for p, k in zip(places, kept, strict=True)]
    return found


WHOLE_TABLE = ("pyarrow", "polars")
FEW = ("other spellings", "numbers and texts", "integers", "steps, clip", "coordinates, clip", "named items")
FEW += ("tenths", "between wholes, clip", "days", "weeks, clip", "years, otherwise")
FEW_COLUMNS = (
    *("texts", "uint64", "float64", "float32", "decimals", "long decimals", "truths", "dates", "timestamps", "bytes"),
    *("int64", "timestamps elsewhere", "seconds"),
    *("dictionary of numbers", "dictionary of dates"),
)
FEW_ON_SPARK = ("texts", "float64", "float32", "long decimals", "truths", "dates", "bytes")  # a second or two for each
every_other_engine = pytest.mark.parametrize(
    "engine", [*(name for name in ENGINES if name not in WHOLE_TABLE), engines.SPARK]
)


WIDTHS = {pa.float32(): np.float32, pa.float16(): np.float16}


def check(engine: str, frame: Any, column: Held, attributes: dict[str, Attribute]) -> None:
    """Compare what an engine makes of a column with the definition."""
    if frame is None or (engine == "csv" and column.kind == "other"):
        return
    opened = engine_for(frame, lists=frozenset(), declared=frozenset({"c"}))
    kind, decimals = kind_on(engine, column, frame)
    cells = [cell for cell in column.values() if cell is not None or engine != "pandas-numpy"]
    if engine == "csv":
        cells = [cell_readings.spelled(cell) for cell in cells]
    elif kind == "text" and column.kind in ("time", "other"):
        cells = [object_text(cell) for cell in cells]
    elif kind == "real" and (width := WIDTHS.get(column.arrow)) is not None:
        cells = [None if cell is None else width(cell) for cell in cells]
    read = replace(opened.schema()["c"], raw="c", name="c0")
    found = positions(opened, read, attributes)
    for key, attribute in attributes.items():
        refused = cell_readings.is_refused(attribute, kind, decimals)
        wanted = None if refused else [cell_readings.position(attribute, [cell, cell]) for cell in cells]
        assert found[key] == wanted, (key, cells)


@pytest.mark.one_in(16)
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(name, engine, marks=[] if engine == "polars" or name in FEW_COLUMNS else pytest.mark.slow)
        for name in COLUMNS
        for engine in WHOLE_TABLE
    ],
)
def test_a_cell_means_what_is_defined(source: Any, engine: str, name: str) -> None:
    check(engine, source(engine, COLUMNS[name]), COLUMNS[name], ATTRIBUTES)


@pytest.mark.one_in(16)
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        *((name, engine) for name in FEW_COLUMNS for engine in ENGINES if engine not in WHOLE_TABLE),
        *(pytest.param(name, "spark", marks=pytest.mark.spark) for name in FEW_ON_SPARK),
    ],
)
def test_a_cell_means_the_same_on_every_engine(source: Any, engine: str, name: str) -> None:
    few = {key: ATTRIBUTES[key] for key in FEW}
    check(engine, source(engine, COLUMNS[name]), COLUMNS[name], few)


@every_other_engine
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.slow
def test_a_cell_means_what_is_defined_on_every_engine(source: Any, engine: str, name: str) -> None:
    check(engine, source(engine, COLUMNS[name]), COLUMNS[name], ATTRIBUTES)


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "pandas-numpy"])
def test_a_column_of_no_type_is_missing_cells(source: Any, engine: str) -> None:
    check(engine, source(engine, COLUMNS["nothing"]), COLUMNS["nothing"], {key: ATTRIBUTES[key] for key in FEW})


def object_text(cell: Any) -> str | None:
    if isinstance(cell, bytes):
        return None if cell == b"\xff" else cell.decode()
    return str(cell) if isinstance(cell, datetime.datetime | datetime.time | datetime.timedelta) else None


@pytest.mark.parametrize("name", [name for name, column in COLUMNS.items() if column.kind != "other"])
def test_a_typed_cell_counts_as_its_spelling_does(name: str) -> None:
    column = COLUMNS[name]
    for key, attribute in ATTRIBUTES.items():
        if not cell_readings.is_refused(attribute, column.kind, column.decimals):
            for cell in column.values():
                spelled = cell_readings.spelled(cell)
                said = cell_readings.position(attribute, [cell, cell])
                assert cell_readings.position(attribute, [spelled, spelled]) == said, (key, cell)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("width", [np.float32, np.float16])
def test_a_narrow_float_is_the_decimal_that_it_prints_as(width: Any, tmp_path: Path) -> None:
    tenths, values = Decimals(35, 42, 0.1), np.arange(350, 421) / 10
    assert cell_readings.position(tenths, [width(36.6)]) == cell_readings.position(tenths, [str(width(36.6))]) == 16
    for otherwise in (None, "clip"):
        domain = Domain({"c": Decimals(35, 42, 0.1, otherwise=otherwise)})
        table = pa.table({"c": pa.array(values.astype(width))})
        for frame in (table, table.to_pandas(), pl.DataFrame(table), as_parquet(table, tmp_path)):
            assert open_rows(frame, domain).counts(("c",)).tolist() == [1] * 71


# ---------------------------------------------------------------------- through the front door

HUGE = [2**53, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**100, 10**37]
CLIPPED = Domain({"c": Integers(0, 4, otherwise="clip")})


@pytest.mark.one_in(8)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "frame",
    [
        lambda cells: pl.DataFrame({"c": pl.Series(cells, dtype=pl.Int128)}),
        lambda cells: duckdb.sql("SELECT unnest([" + ", ".join(f"{cell}::HUGEINT" for cell in cells) + "]) AS c"),
        lambda cells: pa.table({"c": pa.array(map(D, cells), pa.decimal128(38, 0))}),
        lambda cells: pa.table({"c": pa.array(map(float, cells))}),
        lambda cells: pa.table({"c": pa.array(map(str, [*cells[:-1], cells[-1] * 10**400]))}),
        lambda cells: pd.DataFrame({"c": pd.Series([*cells[:-1], cells[-1] * 10**5000], dtype=object)}),
        lambda cells: pd.DataFrame({"c": pd.Series([D(cell) * 10**3 for cell in cells], dtype=object)}),
        lambda cells: pa.table({"c": pa.array([cell for cell in cells if abs(cell) < 2**63] * 2, pa.int64())}),
    ],
    ids=["int128", "hugeint", "decimal", "float", "text", "object", "decimal object", "int64"],
)
def test_clip_keeps_every_number(frame: Callable[[list[int]], Any], sign: int) -> None:
    cells = [sign * cell for cell in HUGE]
    counts = open_rows(frame(cells), CLIPPED).counts(("c",)).tolist()
    assert counts == ([0, 0, 0, 0, len(HUGE)] if sign > 0 else [len(HUGE), 0, 0, 0, 0])


def test_clip_keeps_unsigned_numbers() -> None:
    cells = [0, 2**62, 2**62 + 1, 2**63, 2**64 - 1]
    for frame in (
        pd.DataFrame({"c": np.array(cells, np.uint64)}),
        pl.DataFrame({"c": pl.Series(cells, dtype=pl.UInt64)}),
    ):
        assert open_rows(frame, CLIPPED).counts(("c",)).tolist() == [1, 0, 0, 0, 4]
        widest = Domain({"c": Integers(0, 2**62, 2**61)})
        assert open_rows(frame, widest).counts(("c",)).tolist() == [1, 0, 1]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("cells", "attribute", "rule"),
    [
        (pa.array([DAY]), Integers(0, 9), "holds dates, which are no numbers"),
        (pa.array([DAY]), Flag(otherwise=False), "holds dates, which are no numbers"),
        (pa.array([DAY]), Categories([1, 2]), "holds dates, and no category is one of them"),
        (pa.array([NOON]), Categories(["2024-05-01"]), "must hold texts, numbers or true/false"),
        (pa.array([b"1"]), Integers(0, 9), "must hold texts, numbers or true/false"),
        (pa.array([D("1.50")]), Integers(0, 9), "holds decimals with 2 digits after the point"),
        (pa.array([D("1.50")]), Integers(0, 9, otherwise=0), "holds decimals with 2 digits after the point"),
        (pa.array([1]), Categories(["a", "b"], otherwise="b"), "holds numbers, and no category is one of them"),
        (pa.array([1]), Categories(["1", 1]), "of which the categories '1' and 1 are the same one"),
        (pa.array([True]), Categories(["True", "true"]), "of which the categories 'True' and 'true' are the same one"),
        (pa.array([True]), Categories(["0", "1"]), "holds true and false, and no category is one of them"),
        (pa.array([True]), Integers(17, 90), "holds true and false, which count as 1 and 0, and the range has neither"),
        (pa.array([1]), Categories([2**63, 1]), "must have a domain within 62 bits"),
        (pa.array([1]), Categories(["9223372036854775808", "1"]), "must have a domain within 62 bits"),
        (pa.array([1.0]), Categories(["9007199254740993", "1"]), "must have a whole-number type"),
    ],
)
def test_what_no_value_of_a_type_can_be_is_refused_before_anything_is_charged(
    cells: pa.Array, attribute: Attribute, rule: str
) -> None:
    policy = tc.Policy(tc.Domain({"c": attribute}), tc.secrets.attributes("c"))
    for frame in (pa.table({"c": cells}), pl.DataFrame({"c": cells}), duckdb.from_arrow(pa.table({"c": cells}))):
        with pytest.raises(DataRefused) as refused:
            tc.Session(policy, frame, budget=1)
        assert rule in str(refused.value)
        assert str(refused.value).startswith("column 'c' ")


@pytest.mark.one_in(5)
@pytest.mark.parametrize("engine", ["csv", "pyarrow", "polars", "pandas"])
def test_two_spellings_of_one_value_are_one_value_of_a_person(engine: str, tmp_path: Path) -> None:
    cells = ["1", "1.0", "1e0", "True", "TRUE", "-0", "0.0", "x"]
    table = pa.table({"i": pa.array([7] * len(cells)), "c": cells})
    domain = Domain({"c": Categories(["true", "1", "x", 0])})
    rows = open_rows(ENGINES[engine](table, tmp_path), domain, person="i", per_person=len(cells))
    assert rows.counts(("c",)).tolist() == [1, 1, 1, 1]


def test_zeros_of_both_signs_are_one_value_of_a_person(tmp_path: Path) -> None:
    table = pa.table({"i": pa.array([7, 7, 7]), "c": pa.array([0.0, -0.0, 1.0])})
    for engine in ("pyarrow", "polars", "parquet", "ibis"):
        rows = open_rows(
            ENGINES[engine](table, tmp_path), Domain({"c": Categories(["0", "1"])}), person="i", per_person=3
        )
        assert rows.counts(("c",)).tolist() == [1, 1], engine


class Loud(str):
    """A text that would tell whoever asks it."""

    def __str__(self) -> str:
        raise AssertionError("called")

    __repr__ = __eq__ = __hash__ = __format__ = __str__  # type: ignore[assignment]


OBJECTS: list[tuple[Any, str | None]] = [
    ("x", "x"),
    (Loud("x"), "x"),
    (1, "1"),
    (True, "true"),
    (np.bool_(False), "false"),
    (1.0, "1"),
    (-0.0, "0"),
    (1e22, "1" + "0" * 22),
    (math.inf, "inf"),
    (math.nan, None),
    (D("1.50"), "1.5"),
    (D("1e30"), "1" + "0" * 30),
    (D("-1e9999"), "-inf"),
    (D("1e-9999"), "0"),
    (D("sNaN"), None),
    (10**5000, "inf"),
    (DAY, "2024-05-01"),
    (NOON, "2024-05-01 12:00:00"),
    (NOON.replace(tzinfo=UTC), "2024-05-01 12:00:00+00:00"),
    (pd.Timestamp(NOON), "2024-05-01 12:00:00"),
    (np.datetime64("2024-05-01"), "2024-05-01"),
    (np.datetime64("2024-05-01T12"), "2024-05-01T12:00"),
    (np.datetime64("NaT"), None),
    (pd.NaT, None),
    (pd.NA, None),
    (datetime.timedelta(1), "1 day, 0:00:00"),
    (b"x", "x"),
    (b"\xff", None),
    (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    ([1], None),
    (object(), None),
    (None, None),
]


@pytest.mark.parametrize(("cell", "said"), OBJECTS, ids=lambda value: type(value).__name__)
def test_an_object_is_the_text_that_a_csv_would_have(cell: Any, said: str | None) -> None:
    assert text_of(cell) == said


@pytest.mark.parametrize(
    "dtype", ["datetime64[us]", "datetime64[us, UTC]", "timedelta64[us]", "period[D]", "complex128"]
)
def test_what_pandas_has_a_type_for_is_refused_by_it(dtype: str) -> None:
    for attribute in (Integers(0, 9), Categories(["x", "other"], otherwise="other")):
        with pytest.raises(DataRefused, match="must hold texts, numbers or true/false"):
            open_rows(pd.DataFrame({"c": pd.Series([], dtype=dtype)}), Domain({"c": attribute}))


@pytest.mark.parametrize(
    "sql", ["uuid()", "INTERVAL 1 DAY", "TIME '10:00'", "'1'::BIT", "{'a': 1}", "MAP {1: 2}", "[1]"]
)
def test_what_duckdb_has_a_type_for_is_refused_by_it(sql: str) -> None:
    for attribute in (Integers(0, 9), Categories(["x", "other"], otherwise="other")):
        with pytest.raises(DataRefused, match="must hold texts, numbers or true/false"):
            open_rows(duckdb.sql(f"SELECT {sql} AS c"), Domain({"c": attribute}))


@pytest.mark.parametrize("person", [None, "u"])
@pytest.mark.parametrize("spread", [False, True], ids=["few texts", "many texts"])
def test_a_text_that_is_no_utf8_in_a_parquet_file_is_an_unexpected_value(person, spread, tmp_path):
    """One person's cell decides neither whether a release fails nor what others count as."""
    texts = [b"A", b"B\xff", b"B", None, *((b"x%d" % at for at in range(6000)) if spread else ())]
    raw = pa.array(texts, pa.binary())
    cells = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    table = pa.table({"w": cells, "u": [f"p{at}" for at in range(len(raw))]})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=len(raw) if spread else 1)
    for otherwise, wanted in ((None, [1, 1, 0]), ("C", [1, 1, len(raw) - 2])):
        domain = tc.Domain({"w": tc.Categories(["A", "B", "C"], otherwise=otherwise)})
        policy = tc.Policy(domain, tc.secrets.attributes("w"), person=person)
        session = tc.Session(policy, tmp_path / "rows.parquet", budget=99)
        assert session.release(tc.histogram("w"), epsilon=90).values.tolist() == wanted
