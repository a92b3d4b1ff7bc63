"""However Arrow stores a column, and however its parts differ in that, the counts are those of plain cells."""

import datetime
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parameters import one_in
from tacit.errors import InternalError
from tacit.policy.attributes import Categories, Flag
from tacit.policy.domain import Domain
from tacit.rows.counts import batches, one_pass
from tacit.rows.rows import open_rows

WAYS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "texts": lambda cells: cells,
    "large texts": lambda cells: cells.cast(pa.large_string()),
    "views": lambda cells: cells.cast(pa.string_view()),
    "dictionary": lambda cells: cells.dictionary_encode(),
    "small dictionary": lambda cells: cells.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "large dictionary": lambda cells: cells.dictionary_encode().cast(pa.dictionary(pa.int16(), pa.large_string())),
}
OWNERS: list[dict[str, Any]] = [{}, {"person": "who"}, {"person": "who", "order": "day", "per_person": 3}]
DOMAIN = Domain({"ward": Categories(["A", "B", "C"], otherwise="C"), "ill": Flag()})
by_owner = pytest.mark.parametrize(
    "options", OWNERS, ids=lambda options: "-".join(map(str, options.values())) or "rows"
)


def parts() -> Iterator[dict[str, pa.Array]]:
    """Rows in four parts, with people who have rows in several of them."""
    for part in range(4):
        yield {
            "ward": pa.array(["A", "B", None, "?", "B", "C", "A"][part : part + 4]),
            "who": pa.array([f"p{part}", f"p{part + 1}", None, f"{'long' * part} name"]),
            "day": pa.array([f"2024-05-0{9 - part}", "7", None, "2023-01-01"]),
            "ill": pa.array([True, False, None, part == 2]),
        }


def counted(source: Any, options: dict[str, Any]) -> Any:
    """Count a table of the rows, by cells and by owner."""
    return open_rows(source, DOMAIN, **options).counts(("ward", "ill")).tolist()


def plain(options: dict[str, Any]) -> Any:
    return counted(pa.concat_tables([pa.table(part) for part in parts()]), options)


@pytest.mark.one_in(8)
@by_owner
@pytest.mark.parametrize("column", ["ward", "who", "day"])
def test_files_may_store_a_column_in_different_ways(column: str, options: dict[str, Any], tmp_path: Path) -> None:
    expected = plain(options)
    for first, second in itertools.pairwise(["dictionary", *WAYS]):
        for number, part in enumerate(parts()):
            part[column] = WAYS[second if number else first](part[column])
            pq.write_table(pa.table(part), tmp_path / f"{number}.parquet", row_group_size=2)
        assert counted(tmp_path / "*.parquet", options) == expected, (first, second)


def test_files_may_differ_in_the_zone_of_times(tmp_path: Path) -> None:
    days = [datetime.datetime(2024, 5, day, tzinfo=datetime.UTC) for day in (3, 1, 2, 4)]
    table = {"ward": pa.array(["A", "B", "B", "A"]), "ill": pa.array([True] * 4), "who": pa.array([1, 1, 2, 2])}
    options = {"person": "who", "order": "day"}
    for zone in ("UTC", "Europe/Berlin", "+02:00"):
        for number, kind in enumerate((pa.timestamp("us", "UTC"), pa.timestamp("us", zone))):
            rows = pa.table({**table, "day": pa.array(days, kind)}).slice(2 * number, 2)
            pq.write_table(rows, tmp_path / f"{number}.parquet")
        assert counted(tmp_path / "*.parquet", options) == [[0, 0], [0, 2], [0, 0]]


def test_times_of_the_old_form_are_read_by_the_engine(tmp_path: Path) -> None:
    far = [datetime.datetime(3000, 1, 1), datetime.datetime(2024, 1, 1)]  # 64 bits of nanoseconds end in 2262
    rows = pa.table({"ward": ["A", "B"], "ill": [True, True], "who": [1, 1], "day": pa.array(far, pa.timestamp("us"))})
    pq.write_table(rows, tmp_path / "0.parquet", use_deprecated_int96_timestamps=True)
    assert counted(tmp_path / "0.parquet", {"person": "who", "order": "day"}) == [[0, 0], [0, 1], [0, 0]]


def test_batches_of_another_schema_are_never_handed_on() -> None:
    first, other = pa.record_batch({"u": ["a"]}), pa.record_batch({"u": pa.array(["a"]).dictionary_encode()})
    assert list(one_pass._alike(first, iter([first]))) == [first, first]
    with pytest.raises(InternalError):
        list(one_pass._alike(first, iter([other])))


# ---------------------------------------------------------------------- dictionaries of chunks


def dictionary(cells: list[int | None], entries: list[str | None], kind: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(cells, kind), pa.array(entries, pa.string()))


def many(start: int) -> pa.Array:
    return dictionary(list(range(100)), [f"w{start + number}" for number in range(100)], pa.int8())


CHUNKS: dict[str, Callable[[], list[pa.Array]]] = {
    "more entries than indices": lambda: [many(0), many(100), many(50)],
    "a missing entry": lambda: [dictionary([0, 1], ["A", "B"], pa.int8()), dictionary([1, 0], ["A", None], pa.int8())],
    "an entry twice": lambda: [dictionary([0, 1], ["A", "A"], pa.int8()), dictionary([0, 1], ["B", "B"], pa.int8())],
    "no entry": lambda: [dictionary([None, None], [], pa.int8()), dictionary([0, 1], ["A", "B"], pa.int8())],
    "no cell": lambda: [dictionary([], ["A"], pa.int8()), dictionary([0, None], ["B"], pa.int8())],
    "wide unsigned": lambda: [dictionary([0, None], ["A"], pa.uint64()), dictionary([0], ["B"], pa.uint64())],
    "alike": lambda: [dictionary([1, 0], ["A", "B"], pa.int32())] * 3,
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("chunks", "column", "options"), one_in(3, CHUNKS, ["ward", "who", "day"], OWNERS))
def test_chunks_may_have_any_dictionaries(chunks: str, column: str, options: dict[str, Any]) -> None:
    stored = pa.chunked_array(CHUNKS[chunks]())
    cells = pa.array(stored.to_pylist(), pa.string())
    names = pa.array([("A", "B", None)[number % 3] for number in range(len(cells))], pa.string())
    table = dict.fromkeys(("ward", "who", "day"), names) | {"ill": pa.array([True] * len(cells))}
    expected = counted(pa.table({**table, column: cells}), options)
    assert counted(pa.table({**table, column: stored}), options) == expected


def test_one_persons_cell_does_not_decide_whether_there_is_an_answer() -> None:
    domain = Domain({"ward": Categories([f"w{number}" for number in range(200)])})
    for last in ("w0", "w128"):
        years = [[f"w{number}" for number in range(100)], [f"w{number}" for number in range(100, 127)] + [last]]
        kind = pa.dictionary(pa.int8(), pa.string())
        rows = pa.table({"ward": pa.chunked_array([pa.array(year).dictionary_encode().cast(kind) for year in years])})
        assert open_rows(rows, domain).counts(("ward",)).sum() == 128


def test_texts_of_many_chunks_have_room() -> None:
    column = pa.chunked_array([pa.array(["a", None]), pa.array(["b"])])
    assert batches.joined(column).type == pa.large_string()
    assert batches.joined(column).to_pylist() == ["a", None, "b"]
    coded = pa.chunked_array([chunk.dictionary_encode() for chunk in column.chunks])
    assert batches.joined(coded).type == pa.dictionary(pa.int64(), pa.large_string())
    assert batches.joined(coded).to_pylist() == ["a", None, "b"]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("per_person", [1, 9])
@pytest.mark.parametrize("role", ["who", "day"])
@pytest.mark.parametrize("kind", [pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC"), pa.duration("s")], ids=str)
def test_no_time_is_too_far_to_be_compared(kind: pa.DataType, role: str, per_person: int) -> None:
    table = {"ward": ["A", "B", "B"], "ill": [True] * 3, "who": [1, 1, 2], "day": [2, 1, 3]}
    times = pa.array([2**62, -(2**62), 5]).view(kind)
    people = open_rows(pa.table({**table, role: times}), DOMAIN, person="who", order="day", per_person=per_person)
    assert people.counts(()) == (3 if role == "who" else 2)
    first = [[0, 0], [0, 2], [0, 0]] if role == "day" and per_person == 1 else [[0, 1], [0, 2], [0, 0]]
    assert people.counts(("ward", "ill")).tolist() == first
