"""CSV files of releases: nothing in them is a formula, and their digits are those that mean something."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from tacit.release.results.value_files import (
    LARGEST_CSV,
    decimals_for,
    file_name,
    rounded,
    spreadsheet_safe,
    write_frame,
)
from tacit.report.csv_tables import write_release

EVIL = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", '=HYPERLINK("x")']
FIRST = tuple("=+-@\t\r\n＝＋－＠")


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@given(st.text(max_size=12))
def test_no_text_is_a_formula(text: str) -> None:
    safe = spreadsheet_safe(text)
    assert not safe.startswith(FIRST) or safe.lstrip("+-").replace(".", "", 1).isdecimal()
    assert (safe.removeprefix("'") if safe.startswith("'") else safe) == text  # it can be read back, so none is lost


def record_of(names: list[str], *, categories: list[str] = EVIL, **options: bool) -> tc.ReleaseRecord:
    domain = tc.Domain(
        {"=evil": tc.Categories(categories), "sex": tc.Categories(["f", "m"]), "-5": tc.Categories(["-1", "0", "+1"])}
    )
    rows = pd.DataFrame({"=evil": categories, "sex": ["f", "m", "f"] * 3, "-5": ["0"] * 9})
    policy = tc.Policy(domain, tc.secrets.everything())
    query = tc.marginals(*names, ways=2) if len(names) > 2 else tc.histogram(*names)
    return tc.Session(policy, rows, budget=1).release(query, epsilon=1, **options)


@pytest.mark.parametrize("names", [["=evil"], ["=evil", "sex"], ["=evil", "sex", "-5"]])
def test_no_cell_of_any_file_is_a_formula(names: list[str], tmp_path: Path) -> None:
    record = record_of(names)
    files = write_release(tmp_path, "it", record)
    record.save(tmp_path / "saved")
    for path in [tmp_path / "saved" / "values.csv", *(tmp_path / name for name in files)]:
        for row in cells(path):
            for cell in row:
                is_number = cell.lstrip("+-").replace(".", "", 1).isdecimal()
                assert is_number or not cell.startswith(FIRST), (path.name, cell)


def test_places_of_monitors_are_labels_too(tmp_path: Path) -> None:
    town = tc.Policy(tc.Domain({"visited": tc.Items(["=1+1", "gym"])}), tc.secrets.values({"visited": [1]}))
    with tc.MapMonitor(town, threshold=10**9, epsilon=1) as watched:
        watched.feed(iter(["gym"]))
        watched.history.write_csv(tmp_path / "town.csv")
    assert [row[0] for row in cells(tmp_path / "town.csv")[1:]] == ["'=1+1", "gym"]


def test_whole_counts_are_whole_and_no_digit_is_noise(tmp_path: Path) -> None:
    domain = tc.Domain({"age": tc.Integers(0, 9), "sex": tc.Categories(["f", "m"])})
    rows = pd.DataFrame({"age": [1, 2, 3], "sex": ["f", "m", "f"]})
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("age")), rows, budget=9)
    session.release(tc.histogram("sex"), epsilon=1).write_csv(tmp_path / "exact.csv")
    assert cells(tmp_path / "exact.csv")[1:] == [["f", "2", "2", "2"], ["m", "1", "1", "1"]]
    noisy = session.release(tc.histogram("age", "sex"), epsilon="1/10")  # totals of each sex are exact: thirds appear
    assert noisy.plan.rmse > 2
    noisy.write_csv(tmp_path / "noisy.csv")
    for row, value in zip(cells(tmp_path / "noisy.csv")[1:], noisy.values, strict=True):
        assert all("." not in cell for cell in row)
        assert abs(float(row[2]) - value) <= 0.5 + 1e-9


@given(st.floats(-1e9, 1e9), st.floats(0, 1e4), st.floats(0, 1e4), st.floats(1e-3, 1e6))
def test_intervals_are_rounded_outwards_and_hold_their_value(
    value: float, down: float, up: float, error: float
) -> None:
    decimals = decimals_for(error)
    ends = {"lower": value - down, "value": value, "upper": value + up}
    low, middle, high = (float(rounded(name, np.array([end]), decimals)[0]) for name, end in ends.items())
    assert low <= middle <= high
    assert low <= ends["lower"] + 1e-5
    assert high >= ends["upper"] - 1e-5
    assert abs(middle - value) <= max(error / 4, 1e-6) + 1e-6 * abs(value)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(1e-5, 1e4))
def test_digits_that_do_not_count_are_not_written(values: list[float], error: float) -> None:
    decimals = decimals_for(error)
    written = io.StringIO()
    column = rounded("value", np.array(values), decimals)
    write_frame(pd.DataFrame({"value": pd.Series(column, dtype=object)}), written)
    for cell, value in zip(written.getvalue().splitlines()[1:], values, strict=True):
        whole, _, digits = cell.partition(".")
        assert whole.lstrip("-").isdecimal()
        assert len(digits) <= decimals
        assert not digits.endswith("0")
        assert abs(float(cell) - value) <= 0.5 / 10**decimals + 1e-6


@pytest.mark.parametrize("name", ["value", "lower", "upper"])
def test_long_columns_are_rounded_to_their_end(name: str) -> None:
    numbers = np.arange(2 * 2**16 + 3) * 1.25
    # each by itself, since they are rounded some at a time
    places = [0, 1, 2**16 - 1, 2**16, 2**16 + 1, 2 * 2**16 - 1, 2 * 2**16, len(numbers) - 1]
    column = rounded(name, numbers, 1)
    assert len(column) == len(numbers)
    assert [column[place] for place in places] == [rounded(name, numbers[[place]], 1)[0] for place in places]


def test_estimates_of_monitors_have_no_digits_that_say_nothing() -> None:
    written = io.StringIO()
    frame = pd.DataFrame({"value": [3, None], "estimate": [2.5, None]})
    write_frame(frame.astype({"value": "Int64", "estimate": "Float64"}), written)
    assert written.getvalue() == "value,estimate\n3,2.5\n,\n"


# ---- columns in the place of others ---------------------------------------------------------------------------------

OURS = ["value", "lower", "upper", "share", "verdict", "Value", "value (released)", "threshold", "count of"]


def session_about(*names: str) -> tc.Session:
    domain = tc.Domain({name: tc.Categories(["low", "high"]) for name in names})
    rows = pd.DataFrame({name: ["low", "high", "high"] for name in names})
    return tc.Session(tc.Policy(domain, tc.secrets.everything()), rows, budget=100)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", OURS)
def test_an_attribute_that_is_called_like_a_number_keeps_its_labels(name: str, tmp_path: Path) -> None:
    session = session_about(name, "x")
    asked = [tc.histogram(name), tc.histogram(name, "x"), tc.marginals(name, "x", ways=1), tc.top_k(name, 2)]
    for number, query in enumerate([*asked, tc.above(name, 1, at_most=2)]):
        record = session.release(query, epsilon=1)
        labels = record.labels()
        assert set(map(str, labels[name])) <= {"low", "high", "None"}
        assert [cell for cell in record.frame[name] if isinstance(cell, str)] == [cell for cell in labels[name] if cell]
        plain = {key for key in record.columns() if key not in labels}
        assert len(plain) == len(record.numbers())
        assert len({key.casefold() for key in record.columns()}) == len(record.columns())  # SQL knows no case
        folder = tmp_path / str(number)
        folder.mkdir()
        files = write_release(folder, "it", record)
        record.save(folder / "saved")
        for file in [folder / "saved" / "values.csv", *(folder / each for each in files)]:
            first, *rest = cells(file)
            assert len(set(first)) == len(first)
            assert all(len(row) == len(first) for row in rest)
            if first[0] == name:  # not the table of x alone
                assert {row[0] for row in rest} <= {"low", "high", ""}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", OURS)
def test_frames_of_engines_without_case_have_every_column(name: str) -> None:
    import duckdb

    policy = tc.Policy(tc.Domain({name: tc.Categories(["low", "high"])}), tc.secrets.everything())
    rows = duckdb.sql(f"""select 'low' as "{name}" from range(3)""")
    frame = tc.Session(policy, rows, budget=1).release(tc.histogram(name), epsilon=1).frame
    assert frame.columns[0] == name
    assert [row[0] for row in frame.fetchall()] == ["low", "high"]
    assert len({column.casefold() for column in frame.columns}) == 4


ALIKE = [
    [1, "1", 2],
    ["a by b", "a by b ", "A by b"],
    ["=cmd()", "'=cmd()", "''=cmd()"],
    ["1", "'1", 1],
    ["lower", "upper", "value"],
    ["share", "a", "b"],
]


@pytest.mark.parametrize("values", ALIKE, ids=str)
def test_cross_tables_have_a_column_for_each_value(values: list[str | int], tmp_path: Path) -> None:
    grid = np.arange(12).reshape(4, 3) + 0.4
    domain = tc.Domain({"a": tc.Integers(0, 3), "b": tc.Categories(values)})
    rows = pd.DataFrame({"a": [0, 1], "b": [str(values[0])] * 2})
    record = tc.Session(tc.Policy(domain, tc.secrets.everything()), rows, 9).release(tc.histogram("a", "b"), "1/2")
    object.__setattr__(record, "values", grid.ravel())
    write_release(tmp_path, "it", record)
    first, *rest = cells(tmp_path / "it.cross.csv")
    assert len(set(first)) == len(first) == 4
    # none of them is rounded like the end of an interval, whatever it is called
    expected = np.round(grid, decimals_for(record.plan.rmse))
    assert [[float(cell) for cell in row[1:]] for row in rest] == expected.tolist()
    assert [row[0] for row in rest] == ["0", "1", "2", "3"]
    places = [row[1] for row in cells(tmp_path / "it.csv")[1:4]]
    assert len(set(places)) == 3  # and in the long table, too, every label is told from the others


@given(st.lists(st.one_of(st.integers(-20, 20), st.text("'=+-1 a", max_size=4)), unique=True, min_size=2, max_size=6))
def test_no_two_labels_are_written_alike(labels: list[str | int]) -> None:
    file = io.StringIO()
    write_frame(pd.DataFrame({"it": pd.Series(labels, dtype=object), "value": 0}), file)
    written = [row[0] for row in csv.reader(io.StringIO(file.getvalue()))][1:]
    assert all(one != other for one, other in itertools.combinations(written, 2))


def test_each_table_of_marginals_has_its_file_and_pairs_a_cross_table(tmp_path: Path) -> None:
    record = record_of(["=evil", "sex", "-5"])
    assert write_release(tmp_path, "it", record) == [
        "it.csv",
        "it.evil-sex.csv",
        "it.evil-sex.cross.csv",
        "it.evil-5.csv",
        "it.evil-5.cross.csv",
        "it.sex-5.csv",
        "it.sex-5.cross.csv",
    ]
    table = pd.read_csv(tmp_path / "it.sex-5.csv")
    assert table.columns.tolist() == ["sex", "-5", "value", "lower", "upper", "share"]
    assert len(table) == 6
    total = record.values[-6:].sum()
    if total > 0:
        assert table["share"].to_numpy() == pytest.approx(record.values[-6:] / total, abs=6e-5)
    cross = pd.read_csv(tmp_path / "it.sex-5.cross.csv")
    assert cross.columns.tolist() == ["'-5 by sex", "f", "m"]
    expected = np.round(record.values[-6:].reshape(2, 3).T, decimals_for(record.plan.rmse))
    assert (cross[["f", "m"]].to_numpy() == expected).all()
    one = record_of(["sex"])
    assert write_release(tmp_path, "one", one) == ["one.csv"]
    assert pd.read_csv(tmp_path / "one.csv").columns.tolist() == ["sex", "value", "lower", "upper", "share"]


def test_files_of_tables_never_share_a_name(tmp_path: Path) -> None:
    names = ["a b", "a_b", "A-b", "ä", "ö", "x" * 100, "x" * 100 + "y"]
    domain = tc.Domain({name: tc.Flag() for name in names})
    rows = pd.DataFrame({name: [0, 1] for name in names})
    session = tc.Session(tc.Policy(domain, tc.secrets.everything()), rows, budget=1)
    record = session.release(tc.marginals(sets=[[name] for name in names]), epsilon=1)
    _, *written = write_release(tmp_path, "it", record)
    assert len({name.lower() for name in written}) == len(names)
    assert all((tmp_path / name).is_file() and name.isascii() for name in written)


# ---- tables that no spreadsheet opens --------------------------------------------------------------------------------

KINDS = {
    "names": tc.Categories(["=1+1", "'1", "ä"]),
    "mixed": tc.Categories([1, "1", 2]),
    "whole": tc.Integers(-3, 3, step=3),
    "yes": tc.Flag(),
    "day": tc.Dates("2024-01-30", "2024-02-02"),
    "tenths": tc.Decimals("0.1", "0.3", step="0.1"),
    "place": tc.Grid(2, 2),
}
PAIRS = list(zip(KINDS, [*list(KINDS)[1:], *list(KINDS)[:1]], strict=True))


def session_of_all_kinds() -> tc.Session:
    cells = {"names": "ä", "mixed": "1", "whole": 0, "yes": True, "day": "2024-02-01", "tenths": 0.1}
    rows = pd.DataFrame({name: [cell] for name, cell in {**cells, "row": 0, "column": 1}.items()})
    return tc.Session(tc.Policy(tc.Domain(KINDS), tc.secrets.everything()), rows, budget=100)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_frames_are_those_of_lists(names: tuple[str, ...]) -> None:
    session = session_of_all_kinds()
    for query in (tc.histogram(*names), tc.marginals(sets=[[names[0]], list(names)])):
        record = session.release(query, epsilon=1)
        listed = {name: list(column) for name, column in record.columns().items()}
        pd.testing.assert_frame_equal(record.frame, pd.DataFrame(listed))
        by_hand = [
            tuple(cell.get(name) for name in (names if len(query.sets) == 1 else [n for n in KINDS if n in names]))
            for table in query.sets
            for cell in (
                dict(zip(table, values, strict=True))
                for values in itertools.product(*(KINDS[name].every_value() for name in table))
            )
        ]
        assert list(zip(*record.labels().values(), strict=True)) == by_hand


@pytest.mark.one_in(8)
@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_parquet_has_the_columns_and_numbers_of_csv(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = session_of_all_kinds().release(tc.marginals(sets=[[names[0]], list(names)]), epsilon="1/3")
    small = write_release(tmp_path, "it", record)
    monkeypatch.setattr("tacit.release.results.value_files.LARGEST_CSV", 5)
    monkeypatch.setattr("tacit.report.csv_tables.LARGEST_CSV", 5)
    large = write_release(tmp_path, "it", record)
    first, one, both, *cross = small
    assert len(cross) == 1
    assert large == [first.replace("csv", "parquet"), one, both.replace("csv", "parquet")]  # by size, no cross table
    for text, binary in ((first, large[0]), (both, large[2])):
        table, (heading, *lines) = pq.read_table(tmp_path / binary), cells(tmp_path / text)
        assert table.column_names == heading
        for place, name in enumerate(heading):
            column = table.column(name).to_pylist()
            if name in KINDS:
                wanted = [value for value in column if value is not None]
                assert {tuple(value) if isinstance(value, list) else str(value) for value in wanted} == {
                    value if isinstance(value, tuple) else str(value) for value in KINDS[name].every_value()
                }
                assert [value is None for value in column] == [line[place] == "" for line in lines]
            else:
                assert column == [float(line[place]) for line in lines if line[place]] or np.isnan(column).all()
                assert "-0.0" not in map(str, column)


def test_the_kind_of_file_depends_on_the_number_of_cells_alone(tmp_path: Path) -> None:
    for values, called in ((LARGEST_CSV, "values.csv"), (LARGEST_CSV + 1, "values.parquet")):
        assert file_name("values", values) == called
    names = [f"b{number}" for number in range(1000)]
    domain = tc.Domain({"a": tc.Integers(1, 1100), "b": tc.Categories(names)})
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("a")), pd.DataFrame({"a": [1], "b": ["b7"]}), budget=1)
    record = session.release(tc.histogram("a", "b"), epsilon=1)
    assert write_release(tmp_path, "big", record) == ["big.parquet"]
    assert sorted(path.name for path in record.save(tmp_path / "saved").iterdir()) == [
        "certificate.json",
        "values.parquet",
    ]
    table = pq.read_table(tmp_path / "big.parquet")
    assert pa.types.is_dictionary(table.schema.field("b").type)  # each label once
    assert np.array_equal(table.column("a").to_numpy(), np.repeat(np.arange(1, 1101), 1000))
    labels = table.column("b").unify_dictionaries().combine_chunks()
    assert labels.take(pa.array(range(1000))).to_pylist() == names
    assert np.array_equal(labels.indices.to_numpy(), np.tile(labels.indices[:1000].to_numpy(), 1100))
    assert np.abs(table.column("value").to_numpy() - record.values).max() <= 0.5
    assert (tmp_path / "big.parquet").stat().st_size < 20_000_000
