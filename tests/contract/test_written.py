"""Texts that are written in another way: on every engine, each is read as Python's own definition of it says."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pytest

import tacit as tc
from engines import ENGINES, SPARK, in_engine
from tacit.errors import DataRefused, PolicyError
from tacit.release.curator.row_check import check_rows
from tacit.rows.cells.readings import DataColumn
from tacit.rows.files.written import ENCODINGS, date_form
from tacit.rows.rows import open_rows

NUMBERS = ["1,5", "1.5", " 2,25 ", "1.234,5", "1,2,3", "-,5", "1,5e1", "7", "007", "2,", ",", "true", "", None, "٣,5"]
DATES = [
    *("01.05.2024", "1.5.2024", "31.12.2023 23:30-02:00", "01.05.2024T10:30:00", "31.02.2024", "01.05.2024\n"),
    *(
        "5.2024",
        "2024-05-02",
        "2024-05-03 10:30",
        "01/05/2024",
        "01.05.24",
        "20240501",
        " 01.05.2024",
        "01.05.2024 ",
        "",
        None,
    ),
    *("1.13.2024", "1.5.0000", "01.05.2024x", "01..05.2024"),
]
DOMAIN = tc.Domain(
    {
        "number": tc.Decimals(-5, 20, 0.25, otherwise=-5),
        "day": tc.Dates("2023-12-01", "2024-05-31", otherwise="2023-12-01"),
        "word": tc.Categories(["1,5", "1.5", "2", "other"], otherwise="other"),
    }
)


def table() -> pa.Table:
    rows = max(len(NUMBERS), len(DATES))
    numbers, dates = (pa.array((cells * rows)[:rows], pa.string()) for cells in (NUMBERS, DATES))
    return pa.table({"number": numbers, "day": dates, "word": numbers})


def plainly(cells: pa.Array | pa.ChunkedArray, column: DataColumn) -> pa.Array:
    return pa.array([column.plain(cell) for cell in cells.to_pylist()], pa.string())


@pytest.mark.parametrize("engine", [*ENGINES, SPARK])
def test_cells_are_read_as_they_are_written_on_every_engine(engine, tmp_path, request):
    """Numbers and days as if Python had written them in Tacit's way; words are texts as they stand."""
    given, column = table(), DataColumn("text", comma=True)
    # a number that is written with a point is none
    points = pa.array([cell if "." not in (cell or "") else None for cell in given["number"].to_pylist()], pa.string())
    plain = given.set_column(0, "number", plainly(points, column))
    plain = plain.set_column(1, "day", plainly(given["day"], replace(column, form=date_form("D.M.YYYY"))))
    written = tc.Written(in_engine(engine, given, tmp_path, request), ",", "D.M.YYYY")
    found, expected = (open_rows(rows, DOMAIN).counts(tuple(DOMAIN)) for rows in (written, plain))
    assert (found == expected).all()
    assert [(found.sum((1, 2)) > 0).sum(), (found.sum((0, 2)) > 0).sum()] == [8, 5]


@pytest.mark.parametrize("engine", ["pandas", "csv", SPARK])
def test_rows_are_ordered_by_what_texts_mean(engine, tmp_path, request):
    """As texts, 10,5 comes before 9,5 and 02.01.2024 before 31.12.2023."""
    order = ["9,5", "10,5", "31.12.2023", "02.01.2024"]
    given = pa.table({"p": ["a", "a", "b", "b"], "value": [2, 1, 2, 1], "o": [order[at] for at in (1, 0, 3, 2)]})
    rows = tc.Written(in_engine(engine, given, tmp_path, request), ",", "DD.MM.YYYY")
    found = open_rows(rows, tc.Domain({"value": tc.Integers(1, 2)}), person="p", order="o")
    assert found.counts(("value",)).tolist() == [2, 0]


@pytest.mark.parametrize("encoding", [*ENCODINGS, "utf-8-sig", "windows-1252"])
def test_a_file_in_any_encoding_has_the_same_rows(encoding, tmp_path):
    ending = "\r\n" if encoding == "utf-16" else "\n"
    path, names = tmp_path / "people.csv", ["Müller", "Ångström", "Zoë"]
    if encoding in ("cp1250", "cp1251", "cp1253", "cp1255", "cp1256", "cp1257"):
        names = ["a", "b", "c"]
    path.write_bytes(ending.join(["name;cost", *(f"{name};1,5" for name in names), ""]).encode(encoding, "replace"))
    known = [name.encode(encoding, "replace").decode(encoding) for name in names]
    domain = tc.Domain({"name": tc.Categories([*known, "other"], otherwise="other"), "cost": tc.Decimals(0, 2, 0.5)})
    found = open_rows(tc.Written(path, ",", encoding=encoding), domain)
    assert found.counts(("name",)).tolist() == [1, 1, 1, 0]
    path.write_bytes(path.read_bytes() + f"x;1{ending}".encode(encoding).removeprefix(b"\xff\xfe"))
    with pytest.raises(DataRefused, match="must stay as they were"):
        found.counts(("name",))


def test_a_file_in_another_encoding_than_was_said_is_refused(tmp_path):
    path, domain = tmp_path / "people.csv", tc.Domain({"name": tc.Categories(["a", "b"])})
    path.write_bytes("name\nMüller\n".encode("latin-1"))
    with pytest.raises(DataRefused, match="must begin with a byte order mark"):
        open_rows(tc.Written(path, encoding="utf-16"), domain)
    with pytest.raises(DataRefused, match="say `encoding: cp1252`"):
        open_rows(path, domain)
    path.write_bytes("name\nMüller\n".encode("utf-16"))
    with pytest.raises(DataRefused, match="Say so: `encoding: utf-16`"):
        open_rows(path, domain)
    path.write_bytes(b"name\n" + 10_000 * b"a\n" + b"\x81\n")
    with pytest.raises(DataRefused, match="must be a text in cp1252, and is none"):
        open_rows(tc.Written(path, encoding="cp1252"), domain)
    with pytest.raises(DataRefused, match="CSV files alone have one"):
        open_rows(tc.Written(pd.DataFrame({"name": ["a"]}), encoding="cp1252"), domain)


@pytest.mark.parametrize(
    ("given", "likely"),
    [("%d/%m/%Y", "DD/MM/YYYY"), ("DD.MM.YY", "DD.MM.YYYY"), ("YYYY-DD-MM", "DD.MM.YYYY"), ("DDMMYYYY", "DD.MM.YYYY")],
)
def test_a_form_of_dates_that_could_mean_two_days_is_refused(given, likely):
    with pytest.raises(PolicyError, match=f"format must say how dates are written.*For instance {likely}"):
        tc.Written("x.csv", format=given)


def test_a_session_and_the_check_read_what_was_declared(tmp_path):
    """The same true count in both, and the check says the remedy where nothing was declared."""
    path = tmp_path / "visits.csv"
    path.write_text("cost,day\n" + '"1,5",13.05.2024\n' * 30, encoding="utf-8")
    domain = tc.Domain({"cost": tc.Decimals(0, 2, 0.5), "day": tc.Dates("2024-05", "2024-06", by="month")})
    policy = tc.Policy(domain, tc.secrets.attributes("cost"))  # days are no secret, so that counts by day are exact
    session = tc.Session(policy, tc.Written(path, ",", "DD.MM.YYYY"), budget=1)
    assert session.release(tc.histogram("day"), epsilon=0.5).values.tolist() == [30, 0]
    assert check_rows(policy, tc.Written(path, ",", "DD.MM.YYYY")).kept == 30
    said = str(check_rows(policy, path))
    assert "30 numbers with a comma" in said
    assert "`--decimal ,`" in said
    assert "30 dates in another form" in said
    assert "`--format DD.MM.YYYY`" in said
    path.write_text("cost,day\n1,3.1.2024\n2,03.05.2024\n", encoding="utf-8")
    said = str(check_rows(policy, path))
    assert "1 dates in another form, 1 dates in another form, with a day or month of one digit" in said
    assert "tc.Written(rows, format='D.M.YYYY')" in said
    said = str(check_rows(policy, tc.Written(path, format="DD.MM.YYYY")))
    assert "do not fit DD.MM.YYYY, which was given; D and M may have one digit or two" in said
    assert "--format" not in said
