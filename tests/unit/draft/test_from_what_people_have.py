"""Drafts of what people have: other ways of writing, descriptions, workbooks, databases, several rows of one person."""

from __future__ import annotations

import datetime
import json
import sqlite3

import duckdb
import openpyxl
import pytest

from cli.shell import inside
from tacit.jobs.job_file import read_job
from tacit.policy.attributes import Categories, Dates, Decimals, Flag, Integers

ROWS = [
    (f"P{place % 20}", ("Köln", "Bonn")[place % 2], 1.5 + place, datetime.date(2024, 1, 1 + place % 31), 20 + place % 9)
    for place in range(60)
]
NAMES = ("patient_id", "city", "cost", "day", "age")


def as_written(separator, decimal, form):
    cells = [
        [who, city, str(cost).replace(".", decimal), f"{day:{form}}", str(age)] for who, city, cost, day, age in ROWS
    ]
    return "".join(f"{separator.join(row)}\n" for row in [list(NAMES), *cells])


def drafted(folder, *words):
    """Draft, look whether the job is one, and return it with what was on the screen."""
    outcome = inside(folder, "init", *words)
    assert outcome.code == 0, outcome.err
    job = read_job(folder / "job.yaml")
    assert "P1" not in outcome.out
    return job, outcome.out


@pytest.mark.parametrize(
    ("separator", "decimal", "form", "encoding", "declared"),
    [
        (";", ",", "%d.%m.%Y", "cp1252", (",", "DD.MM.YYYY", "cp1252")),
        ("\t", ".", "%m/%d/%Y", "utf-16", (".", "MM/DD/YYYY", "utf-16")),
        (",", ".", "%Y-%m-%d", "utf-8", (".", "", "utf-8")),
    ],
)
def test_how_a_table_is_written_is_found_and_the_job_keeps_all_rows(
    separator, decimal, form, encoding, declared, tmp_path
):
    (tmp_path / "visits.csv").write_text(as_written(separator, decimal, form), encoding=encoding, newline="")
    job, screen = drafted(tmp_path, "visits.csv")
    assert (job.decimal, job.format, job.encoding) == declared
    assert job.policy.domain["cost"] == Decimals(1.5, 60.5, 0.1, otherwise="clip")
    assert job.policy.domain["day"] == Dates("2024-01-01", "2024-01-31", otherwise="clip")
    assert job.releases[0].name == "everybody"
    for line in (tmp_path / "job.yaml").read_text(encoding="utf-8").splitlines():
        if line.startswith(("decimal:", "format:", "encoding:")):
            assert "# REVIEW" in line
    job_text = " ".join((tmp_path / "job.yaml").read_text(encoding="utf-8").replace("\n#", " ").split())
    for said in (screen, job_text):
        check = said.split("tacit check policy.yaml --rows ")[1].split("`")[0].split()
        kept = inside(tmp_path, "check", "policy.yaml", "--rows", *(word.strip("'") for word in check)).out
        assert "60 rows; the domain keeps 60 and drops 0." in kept


def test_what_could_mean_two_things_is_not_found(tmp_path):
    (tmp_path / "a.csv").write_text("age,day,cost\n" + "30,01/02/2024,1.5\n31,03/04/2024,2.5\n" * 20, encoding="utf-8")
    job, screen = drafted(tmp_path, "a.csv")
    assert job.format == ""
    assert set(job.policy.domain) == {"age", "cost"}
    assert "Say how they are written, for instance `--format DD/MM/YYYY`" in screen
    (tmp_path / "job.yaml").unlink()
    (tmp_path / "policy.yaml").unlink()
    job, _ = drafted(tmp_path, "a.csv", "--format", "MM/DD/YYYY")
    assert job.policy.domain["day"] == Dates("2024-01-02", "2024-03-04", otherwise="clip")


def test_several_rows_of_one_person_are_asked_about(tmp_path):
    (tmp_path / "visits.csv").write_text(as_written(",", ".", "%Y-%m-%d"), encoding="utf-8")
    _, screen = drafted(tmp_path, "visits.csv")
    assert "May one person own several rows" in screen
    assert "20 values" not in screen
    policy = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    assert 'In the sample 20 values of "patient_id" stand in several rows, one in 3.' in policy
    assert "May one person own several rows" in " ".join(
        (tmp_path / "job.yaml").read_text(encoding="utf-8").split("\n")
    )
    single = "".join(f"{line}\n" for line in as_written(",", ".", "%Y-%m-%d").splitlines()[:21])
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "visits.csv").write_text(single, encoding="utf-8")
    assert "several rows" not in drafted(tmp_path / "single", "visits.csv")[1].split("Left out")[0]


FRICTIONLESS = {
    "resources": [
        {
            "name": "visits",
            "path": "visits.csv",
            "schema": {
                "fields": [
                    {"name": "patient_id", "type": "string"},
                    {"name": "city", "type": "string", "constraints": {"enum": ["Bonn", "Köln", "Aachen"]}},
                    {"name": "cost", "type": "number", "decimalChar": ","},
                    {
                        "name": "day",
                        "type": "date",
                        "format": "%d.%m.%Y",
                        "constraints": {"minimum": "2020-01-01", "maximum": "2029-12-31"},
                    },
                    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
                ]
            },
        }
    ]
}
CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "visits.csv",
    "tableSchema": {
        "columns": [
            {"titles": "patient_id", "datatype": "string"},
            {"titles": "city", "datatype": {"base": "string", "format": "Bonn|Köln|Aachen"}},
            {"titles": "cost", "datatype": {"base": "number", "format": {"decimalChar": ","}}},
            {
                "titles": "day",
                "datatype": {"base": "date", "format": "dd.MM.yyyy", "minimum": "2020-01-01", "maximum": "2029-12-31"},
            },
            {"titles": "age", "datatype": {"base": "integer", "minimum": 0, "maximum": 120}},
        ]
    },
}


@pytest.mark.parametrize("said", [FRICTIONLESS, CSVW], ids=["data package", "csvw"])
def test_what_a_description_says_is_declared_as_it_stands(said, tmp_path):
    """It is public: no line that comes from it is marked, and no value of the rows is in such a line."""
    (tmp_path / "visits.csv").write_text(as_written(",", ".", "%d.%m.%Y"), encoding="utf-8")
    (tmp_path / "datapackage.json").write_text(json.dumps(said), encoding="utf-8")
    job, _ = drafted(tmp_path, "datapackage.json")
    domain = job.policy.domain
    assert domain["city"] == Categories(["Bonn", "Köln", "Aachen"])
    assert domain["day"] == Dates("2020-01-01", "2029-12-31", otherwise="clip")
    assert domain["age"] == Integers(0, 120, otherwise="clip")
    assert (job.decimal, job.format) == (",", "DD.MM.YYYY")
    lines = (tmp_path / "policy.yaml").read_text(encoding="utf-8").splitlines()
    assert [
        ("REVIEW" in line, "datapackage" in line) for line in lines if line.startswith(("  city", "  day", "  age"))
    ] == [(False, True)] * 3


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"resources": [{"path": 3, "schema": 4}]}', '{"url": "x", "tableSchema": 1}']
)
def test_a_description_that_says_nothing_is_refused(text, tmp_path):
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    assert "x.json' must " in inside(tmp_path, "init", "x.json").refusal()
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def as_workbook(path):
    book = openpyxl.Workbook()
    book.active.title = "visits"
    for row in (NAMES, *ROWS):
        book.active.append(row)
    book.save(path)


def in_duckdb(path):
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits (patient_id VARCHAR, city VARCHAR, cost DOUBLE, day DATE, age INTEGER)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", ROWS)


def in_sqlite(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE visits (patient_id, city, cost, day, age)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", [(*r[:3], str(r[3]), r[4]) for r in ROWS])
    connection.close()


@pytest.mark.parametrize(
    ("name", "write"), [("visits.xlsx", as_workbook), ("visits.duckdb", in_duckdb), ("visits.db", in_sqlite)]
)
def test_a_table_of_a_workbook_or_a_database_is_copied_and_drafted(name, write, tmp_path):
    write(tmp_path / name)
    job, screen = drafted(tmp_path, name, "--table", "visits")
    assert f"Wrote {tmp_path / 'visits.csv'}" in screen or "Wrote visits.csv" in screen
    assert (tmp_path / "visits.csv").stat().st_mode & 0o077 == 0
    assert job.policy.domain["cost"] == Decimals(1.5, 60.5, 0.1, otherwise="clip")
    assert job.policy.domain["day"] == Dates("2024-01-01", "2024-01-31", otherwise="clip")
    assert inside(tmp_path, "run", "job.yaml").code == 0
    for made in ("policy.yaml", "job.yaml"):
        (tmp_path / made).unlink()
    assert "visits.csv' must not exist yet" in inside(tmp_path, "init", name).refusal()
    assert "must have the table that is named" in inside(tmp_path, "init", name, "--table", "nope").refusal()


def test_options_that_mean_nothing_for_a_table_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("age\n30\n", encoding="utf-8")
    as_workbook(tmp_path / "visits.xlsx")
    assert "--table needs a workbook" in inside(tmp_path, "init", "a.csv", "--table", "visits").refusal()
    assert "--encoding needs a CSV file" in inside(tmp_path, "init", "visits.xlsx", "--encoding", "cp1252").refusal()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "visits.xlsx"]


def test_what_is_no_workbook_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "visits.xlsx").write_bytes(b"PK\x03\x04 no workbook, CANARY")
    said = inside(tmp_path, "init", "visits.xlsx").refusal()
    assert "could not be read" in said
    assert "CANARY" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["visits.xlsx"]


@pytest.mark.postgres
def test_a_table_of_a_server_is_copied_and_drafted(postgres, tmp_path):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("CREATE TABLE drafted (ward text, cost numeric(8, 2), day date, ok boolean)")
        db.execute(
            "INSERT INTO drafted SELECT 'ward ' || i % 3, i / 4.0, date '2024-01-01' + i, i % 2 = 0 "
            "FROM generate_series(1, 60) i"
        )
    assert inside(tmp_path, "init", postgres, "--table", "drafted").code == 0
    job = read_job(tmp_path / "job.yaml")
    kinds = {name: type(kind) for name, kind in job.policy.domain.items()}
    assert kinds == {"ward": Categories, "cost": Decimals, "day": Dates, "ok": Flag}
    assert inside(tmp_path, "run", "job.yaml").code == 0


def test_a_server_that_does_not_answer_is_out_of_reach_and_no_password_is_told(tmp_path):
    pytest.importorskip("psycopg")
    outcome = inside(tmp_path, "init", "postgresql://ana:CANARY@127.0.0.1:1/visits")
    assert (outcome.code, "CANARY" in outcome.out + outcome.err) == (5, False)
    assert "the database cannot be reached" in outcome.err
    assert not list(tmp_path.iterdir())
