"""A job whose rows lack a column, or are no table, is refused by `plan` as by `run`, with the line that needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.shell import inside

POLICY = """\
domain:
  age: {integers: [0, 99]}
  sex: {categories: [f, m]}
  income: {integers: [0, 9]}
secrets: everything
"""
JOB = """\
policy: p.yaml
rows: people.csv
budget: 1
releases:
  - {name: all, query: count, epsilon: 1}
"""


def refusals(folder: Path) -> str:
    """Return what both commands say, after checking that they say the same."""
    planned, run = inside(folder, "plan", "job.yaml"), inside(folder, "run", "job.yaml")
    sentence = run.refusal()
    assert planned.code == run.code
    assert sentence in planned.err
    assert "would be refused" in planned.out
    assert not (folder / "job-release").exists()
    return sentence


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(POLICY)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def test_a_missing_column_has_its_line_and_the_known_ones(folder: Path) -> None:
    (folder / "people.csv").write_text("age,sex,wages\n1,f,3\n")
    assert refusals(folder) == ("p.yaml:4: domain.income must be a column of the rows. Known columns: age, sex, wages.")
    (folder / "people.csv").write_text("age,sex," + ",".join(f"c{n}" for n in range(900)) + "\n")
    assert len(refusals(folder)) < 300


@pytest.mark.one_in(5)
@pytest.mark.parametrize("first", ["31,f,CANARY", "age,CANARY", "CANARY,f,m", "age,sex,CANARY@example.org"])
def test_a_first_line_that_may_hold_values_is_not_listed(first: str, folder: Path) -> None:
    (folder / "people.csv").write_text(f"{first}\n1,f,3\n")
    assert "Check the name in the header of the file." in refusals(folder)
    assert "CANARY" not in refusals(folder)


def test_a_policy_inside_the_job_has_its_line_there(folder: Path) -> None:
    inner = "policy:\n" + "".join(f"  {line}\n" for line in POLICY.splitlines())
    (folder / "job.yaml").write_text(JOB.replace("policy: p.yaml\n", inner))
    (folder / "people.csv").write_text("age,sex\n1,f\n")
    assert refusals(folder).startswith("job.yaml:5: domain.income must be a column of the rows.")


def test_the_person_must_be_a_column(folder: Path) -> None:
    (folder / "people.csv").write_text("age,sex,income\n1,f,3\n")
    (folder / "job.yaml").write_text(JOB + "person: patient\n")
    assert refusals(folder) == (
        "job.yaml:6: person must be a column of the rows; got 'patient'. Known columns: age, sex, income."
    )


def test_an_excel_file_is_called_one(folder: Path) -> None:
    (folder / "people.xlsx").write_bytes(b"PK\x03\x04")
    (folder / "job.yaml").write_text(JOB.replace("people.csv", "people.xlsx"))
    said = refusals(folder)
    assert "people.xlsx' is a workbook, not a table" in said
    assert said.endswith("in Excel as `CSV UTF-8`; `tacit init` copies one of .xlsx into a CSV file.")


def test_parquet_is_looked_at_by_its_schema(folder: Path) -> None:
    import pandas as pd

    pd.DataFrame({"age": [1], "sex": ["f"]}).to_parquet(folder / "people.parquet")
    (folder / "job.yaml").write_text(JOB.replace("people.csv", "people.parquet"))
    assert "domain.income must be a column of the rows. Known columns: age, sex." in refusals(folder)
