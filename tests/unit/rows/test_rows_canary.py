"""No failure while rows are open shows a cell: a marked value is planted in each failing path, then searched for.

Searched are message, representation, arguments, attributes, notes, cause, context and the printed traceback of what is
raised, everything logged, warned about, or printed on either stream (by engines written in other languages too).
"""

from __future__ import annotations

import decimal
import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import DataRefused, InternalError, TacitError, Unread
from tacit.policy.attributes import Categories, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.where import where
from tacit.rows.cells import category_cells as listed_cells
from tacit.rows.rows import Rows, closed, open_rows

CANARY = "CANARY-7f3a"
DOMAIN = Domain({"age": Integers(0, 9, otherwise=9)})
UNREADABLE = (
    "the engine could not read the rows. No detail is shown because rows were open: the file or table may be "
    "incomplete (read it outside Tacit), or memory, disk space or the engine failed (count made-up rows of the same "
    "types)."
)


@pytest.fixture
def silence(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Fail if the canary was printed, logged or warned about."""
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        yield
    printed = capfd.readouterr()
    logged = [record.getMessage() + str(record.exc_info) + str(vars(record)) for record in caplog.records]
    for text in (printed.out, printed.err, caplog.text, *logged, *(str(warning.message) for warning in warned)):
        assert CANARY not in text


pytestmark = pytest.mark.usefixtures("silence")


def leaks(raised: BaseException) -> list[str]:
    """Return the places in an exception that hold the canary."""
    places = {
        "message": str(raised),
        "repr": repr(raised),
        "args": repr(raised.args),
        "vars": repr(vars(raised)),
        "notes": repr(getattr(raised, "__notes__", None)),
        "traceback": "".join(traceback.format_exception(raised)),
    }
    found = [place for place, text in places.items() if CANARY in text]
    chained = [name for name in ("__cause__", "__context__") if getattr(raised, name) is not None]
    return found + chained


QUESTIONS: dict[str, Callable[[Rows], Any]] = {
    "count": lambda rows: rows.counts(()),
    "histogram": lambda rows: rows.counts(("age",)),
    "where": lambda rows: rows.counts((), where("age < 3").compile(DOMAIN)),
    "total": lambda rows: rows.total("age"),
}


def refused(source: Any, ask: Callable[[Rows], Any], error: type[TacitError] = DataRefused) -> TacitError:
    with pytest.raises(error) as caught:
        ask(open_rows(source, DOMAIN))
    assert leaks(caught.value) == []
    return caught.value


# ---------------------------------------------------------------------- engines that fail


def broken_parquet(folder: Path) -> Path:
    """Write a Parquet file whose footer is whole and whose pages are not."""
    path = folder / "broken.parquet"
    cells = [f"{CANARY} {number}" for number in range(5000)]
    pq.write_table(pa.table({"age": cells}), path, compression="snappy", use_dictionary=False)
    whole = bytearray(path.read_bytes())
    whole[40:4000] = bytes(byte ^ 0x5A for byte in whole[40:4000])
    path.write_bytes(bytes(whole))
    return path


def failing_polars(_: Path) -> pl.LazyFrame:
    return pl.LazyFrame({"age": ["1", CANARY]}).with_columns(pl.col("age").cast(pl.Int64))


def failing_function(_: Path) -> pl.LazyFrame:
    def fail(cell: Any) -> int:
        raise ValueError(f"bad cell {cell}")

    column = pl.col("age").map_elements(fail, return_dtype=pl.Int64)
    return pl.LazyFrame({"age": ["1", CANARY]}).with_columns(column)


def failing_relation(_: Path) -> Any:
    relation = duckdb.connect().from_arrow(pa.table({"age": ["1", CANARY]}))
    return relation.project("CAST(age AS INTEGER) AS age")


def failing_ibis(_: Path) -> Any:
    table = ibis.memtable(pa.table({"age": ["1", CANARY]}))
    return table.mutate(age=table.age.cast("int64"))


@pytest.mark.one_in(8)
@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=list(QUESTIONS))
@pytest.mark.parametrize(
    "source",
    [broken_parquet, failing_polars, failing_function, failing_relation, failing_ibis],
    ids=lambda f: f.__name__,
)
def test_an_engine_that_fails_says_one_fixed_sentence(
    source: Callable[[Path], Any], ask: Callable[[Rows], Any], tmp_path: Path
) -> None:
    made = source(tmp_path)
    if ask is QUESTIONS["count"]:
        assert open_rows(made, DOMAIN).counts(()) > 0  # no cell is read for a number of rows, so nothing can fail
    else:
        assert str(refused(made, ask)) == UNREADABLE


@pytest.mark.spark
def test_spark_fails_in_silence(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"age": ["1", CANARY]})).selectExpr("cast(age as int) as age")
    assert str(refused(frame, QUESTIONS["histogram"])) == UNREADABLE


def test_a_file_that_is_no_parquet_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_text(f"age\n{CANARY}\n")
    with pytest.raises(DataRefused) as caught:
        open_rows(path, DOMAIN)
    assert str(caught.value) == f"file {str(path)!r} must be readable as Parquet. Write it again."
    assert leaks(caught.value) == []


def test_a_packed_file_that_ends_early(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "rows.csv.gz"
    text = "age\n" + "".join(f"{CANARY} {number * 7919 % 10007}\n" for number in range(100_000))
    path.write_bytes(gzip.compress(text.encode())[:-5000])
    assert str(refused(path, lambda rows: rows)) == UNREADABLE


@pytest.mark.parametrize("line", [f'"{CANARY}', f"1,{CANARY}", f'"{CANARY}"1', f"{CANARY}\r1", f"{CANARY}\udcff"])
def test_a_malformed_csv_is_refused_by_its_name(line: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(f"age\n1\n{line}\n2\n".encode("utf-8", "surrogateescape"))
    assert str(refused(path, lambda rows: rows)) == malformed(path)


def malformed(path: Path) -> str:
    return (
        f"file {str(path)!r} must be well-formed CSV in UTF-8: as many fields in every line as in the header, "
        "quotes closed, one kind of line end. If its letters are in another encoding, say `encoding: cp1252`. Else "
        "write it again with a CSV library; `tacit init` says what is wrong and where."
    )


@pytest.mark.parametrize(
    "first", [f"{CANARY},{CANARY}", f"{CANARY},other", f"age{CANARY},age{CANARY}", f"age,{CANARY}"]
)
def test_a_file_without_a_header_shows_no_value(first: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"{first}\n1,2\n")
    domain = Domain({"age": Integers(0, 9), "sex": Integers(0, 1)})
    with pytest.raises(DataRefused) as caught:
        open_rows(path, domain)
    assert leaks(caught.value) == []


def test_rows_given_as_a_text_are_not_shown() -> None:
    refused(f"age\n{CANARY}\n", QUESTIONS["count"])


# ---------------------------------------------------------------------- values that must not even fail


def test_a_text_in_a_number_column_is_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f'age\n1\n{CANARY}\n"{CANARY}\n2"\n')
    assert open_rows(path, DOMAIN).counts(("age",)).tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    for source in (pl.DataFrame({"age": ["1", CANARY]}), pd.DataFrame({"age": ["1", CANARY]})):
        rows = open_rows(source, DOMAIN)
        assert rows.counts(("age",)).tolist() == [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
        assert CANARY not in repr(rows)
        assert CANARY not in str(rows)


class Odd:
    """An object that shows the canary, by failing, whatever is done with it."""

    def __str__(self) -> str:
        raise ValueError(CANARY)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise ValueError(CANARY)

    def __hash__(self) -> int:
        raise ValueError(CANARY)

    def __bool__(self) -> bool:
        raise ValueError(CANARY)

    def __len__(self) -> int:
        raise ValueError(CANARY)

    def __float__(self) -> float:
        raise ValueError(CANARY)

    @property
    def __class__(self) -> Any:
        raise ValueError(CANARY)


class OddText(str):
    """A text with a mind of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        raise ValueError(CANARY)

    def __hash__(self) -> int:
        raise ValueError(CANARY)


class OddList(list[Any]):
    """A list that cannot be walked."""

    def __iter__(self) -> Iterator[Any]:
        raise ValueError(CANARY)


def test_odd_python_objects_are_missing_values() -> None:
    cells = [
        1,
        Odd(),
        OddText("2"),
        [CANARY],
        {CANARY: 1},
        CANARY.encode(),
        10**5000,
        decimal.Decimal("sNaN"),
        3j,
        "\ud800",
    ]
    rows = open_rows(pd.DataFrame({"age": pd.Series(cells, dtype=object)}), DOMAIN)
    assert rows.counts(("age",)).tolist() == [0, 1, 1, 0, 0, 0, 0, 0, 0, 8]


def test_odd_lists_of_items_are_read_without_asking_them() -> None:
    domain = Domain({"items": Items(3)})
    cells = np.empty(8, dtype=object)
    odd = [
        [1],
        OddList([2]),
        np.array(1),
        np.array([[1]]),
        np.array(["2020"], "M8[ns]"),
        Odd(),
        [Odd(), 0],
        {object(), "2"},
    ]
    for place, cell in enumerate(odd):
        cells[place] = cell
    rows = open_rows(pd.DataFrame({"items": pd.Series(cells, dtype=object)}), domain)
    assert rows.item_counts("items").tolist() == [1, 2, 2]


def test_odd_ids_are_nobody() -> None:
    cells = np.empty(4, dtype=object)
    for place, cell in enumerate([Odd(), OddText("2"), "2", OddList([Odd()])]):
        cells[place] = cell
    frame = pd.DataFrame({"age": 1, "who": pd.Series(cells, dtype=object)})
    assert open_rows(frame, DOMAIN, person="who").counts(()) == 1


# ---------------------------------------------------------------------- faults of our own


def test_a_fault_of_our_own_says_where_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise KeyError(CANARY)

    monkeypatch.setattr(listed_cells, "_looked_up", fail)
    domain = Domain({"name": Categories(["a", "b"], otherwise="b")})
    with pytest.raises(InternalError) as caught:
        open_rows(pl.DataFrame({"name": ["a", CANARY]}), domain).counts(("name",))
    assert "while counting rows" in str(caught.value)
    assert leaks(caught.value) == []


@pytest.mark.parametrize("ended", [KeyboardInterrupt, SystemExit])
def test_an_interruption_stays_one_without_its_history(ended: type[BaseException]) -> None:
    def work() -> None:
        try:
            raise ValueError(CANARY)
        except ValueError:
            raise ended(CANARY)  # noqa: B904 - the history is the point

    with pytest.raises(ended) as caught:
        closed(work, InternalError("unused"))
    assert leaks(caught.value) == []


def test_a_panic_is_a_failure_like_any_other() -> None:
    class Panic(BaseException):
        pass

    def work() -> None:
        raise Panic(CANARY)

    with pytest.raises(DataRefused) as caught:
        closed(work, Unread("the engine could not read the rows"))
    assert leaks(caught.value) == []


def test_an_interruption_inside_the_engine_is_one() -> None:
    def work() -> None:
        raise duckdb.InterruptException(CANARY)

    with pytest.raises(KeyboardInterrupt) as caught:
        closed(work, InternalError("unused"))
    assert leaks(caught.value) == []
