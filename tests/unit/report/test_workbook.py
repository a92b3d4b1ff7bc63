"""Results as a workbook: the numbers of the files, no formula whatever a label is, and refused before any charge."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from openpyxl import load_workbook

from tacit.errors import JobError
from tacit.jobs.job_file import Job, read_job
from tacit.ledger.ledger import Ledger
from tacit.report.job_folder import publish

FORMULAS = ["=1+1", "=cmd|' /C calc'!A0", "+1", "-x", "@SUM(A1)", "\t=1", "x\x07y", "plain"]
LONG = "diseases of all patients in all wards"  # longer than the name of a sheet
JOB = f"""\
name: clinic
policy:
  domain:
    age: {{integers: [0, 9], otherwise: clip}}
    label: {{categories: {FORMULAS!r}, otherwise: plain}}
  secrets: taking_part
rows: people.csv
dataset: clinic
budget: 3
ledger: ledger.db
out: results
xlsx: true
releases:
  - {{name: {LONG} one, query: {{histogram: [label]}}, epsilon: 1}}
  - {{name: {LONG} two, query: {{histogram: [label, age]}}, epsilon: 1}}
  - {{name: history, query: {{count: "age < 5"}}, epsilon: 1}}
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "people.csv").write_text("age,label\n1,=1+1\n2,plain\n", encoding="utf-8")
    text = JOB.replace("\\t", "\t").replace("'=cmd|' /C calc'!A0'", "\"=cmd|' /C calc'!A0\"")
    (tmp_path / "job.yaml").write_text(text.replace("'x\\x07y'", '"x\\x07y"'), encoding="utf-8")
    return read_job(tmp_path / "job.yaml")


def test_a_workbook_has_the_numbers_of_the_files_and_no_formula(job: Job) -> None:
    folder = publish(job)
    book = load_workbook(folder / "results.xlsx")
    assert book.sheetnames == ["Results", LONG[:31], f"{LONG[:29]} 2", "history 2"]
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    assert all(cell.quotePrefix for cell in cells if cell.data_type == "s")
    assert "at most 20.09 times as likely" in book["Results"]["A1"].value  # e to the 3, rounded up
    heads, *rows = book[LONG[:31]].iter_rows(values_only=True)
    assert heads == ("label", "value", "lower", "upper")
    assert [row[0] for row in rows][:4] == FORMULAS[:4]
    with (folder / f"{LONG} one.csv").open(encoding="utf-8", newline="") as file:
        written = [[float(number) for number in line[1:4]] for line in list(csv.reader(file))[1:]]
    assert [list(row[1:]) for row in rows] == written
    assert 'href="results.xlsx"' in (folder / "report.html").read_text(encoding="utf-8")


def test_without_the_package_a_workbook_is_refused_before_anything_is_charged(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)  # as if it were not installed
    with pytest.raises(JobError, match=r"xlsx needs the package openpyxl, which is not installed.*tacit\[xlsx\]"):
        publish(job)
    assert not job.out.exists()
    assert job.ledger is not None
    assert not Path(job.ledger).exists()


@pytest.mark.skipif(
    subprocess.run(["sh", "-c", "unshare -m true"], capture_output=True).returncode != 0,
    reason="mounting needs Linux and the right to do so",
)
def test_a_folder_that_cannot_be_replaced_is_refused_before_anything_is_charged(job: Job) -> None:
    job.out.mkdir()
    with Ledger(job.ledger) as ledger:
        ledger.grant(epsilon=3, dataset="clinic")
    run = f"mount -t tmpfs none '{job.out}' && exec '{sys.executable}' -m tacit run '{job.file}'"
    done = subprocess.run(["unshare", "-m", "sh", "-c", run], capture_output=True, text=True)
    assert done.returncode != 0
    assert "must be a folder that nothing else uses" in done.stderr
    assert "Nothing was charged." in done.stderr
    with Ledger(job.ledger) as ledger:
        assert ledger.remaining(dataset="clinic") == 3
    assert [file.name for file in job.out.parent.iterdir() if "part" in file.name] == []
