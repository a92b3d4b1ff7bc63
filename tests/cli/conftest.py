"""A small clinic: rows, a policy and a job in an otherwise empty folder."""

from pathlib import Path

import pytest

POLICY = """\
name: clinic
domain:
  age: {integers: [0, 99]}
  disease: {categories: [flu, hiv, none]}
  ward: {categories: [north, south], otherwise: north}
secrets:
  - within: {age: 5}
  - values: {disease: [hiv]}
"""

JOB = """\
name: clinic
policy: clinic.policy.yaml
rows: clinic.csv
budget: 1
ledger: ledger.db
analyst: ana
out: results
releases:
  - {name: wards, query: {histogram: [ward]}, epsilon: 0.1}
  - {name: hiv, query: {count: "disease == 'hiv'"}, epsilon: 0.3}
  - {name: ages, query: {cumulative: age}, epsilon: 0.4}
"""


def rows() -> list[str]:
    diseases, wards = ("flu", "hiv", "none"), ("north", "south")
    return [f"{number % 90},{diseases[number % 3]},{wards[number % 2]}" for number in range(300)]


def write_rows(file: Path, lines: list[str]) -> None:
    file.write_text("\n".join(["age,disease,ward", *lines]) + "\n", encoding="utf-8")


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A folder with `clinic.csv`, `clinic.policy.yaml` and `clinic.job.yaml`."""
    write_rows(tmp_path / "clinic.csv", rows())
    (tmp_path / "clinic.policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "clinic.job.yaml").write_text(JOB, encoding="utf-8")
    return tmp_path


@pytest.fixture
def change_job(clinic: Path) -> object:
    """Replace a piece of text in the job file."""

    def change(old: str, new: str) -> None:
        file = clinic / "clinic.job.yaml"
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    return change
