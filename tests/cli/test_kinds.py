"""Dates and decimals from a policy file and a CSV to tables: `tacit check`, `plan` and `run`."""

import csv
from pathlib import Path

import pytest

from cli.shell import inside

POLICY = """\
domain:
  admitted: {dates: [2024-01-01, 2024-04-30], by: month, otherwise: clip}
  fever: {decimals: [35, 37], step: 0.5, otherwise: clip}
secrets:
  - within: {admitted: 1}
  - within: {fever: 0.5}
"""
JOB = """\
name: fevers
policy: fever.policy.yaml
rows: fever.csv
budget: 200
releases:
  - {name: months, query: {histogram: admitted}, epsilon: 40}
  - {name: upto, query: {cumulative: fever}, epsilon: 40}
  - {name: both, query: {histogram: [admitted, fever]}, epsilon: 40}
  - {name: late, query: {cumulative: {attribute: admitted, where: "fever >= 36.5"}}, epsilon: 40}
"""
ROWS = [
    ("2024-01-05", "36.5"),
    ("2024-02-01T23:30:00-05:00", "36.9"),
    ("2023-12-31", "35.0"),
    ("2024-04-30 12:00:00", "41"),
    ("2024-03", "36.0"),
    ("soon", "36.0"),
    ("2024-01-05", "hot"),
]


@pytest.fixture
def fevers(tmp_path: Path) -> Path:
    (tmp_path / "fever.policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "fever.job.yaml").write_text(JOB, encoding="utf-8")
    lines = ["admitted,fever", *(",".join(row) for row in ROWS)]
    (tmp_path / "fever.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def column(folder: Path, release: str, name: str) -> list[str]:
    (file,) = folder.rglob(f"{release}.csv")
    with file.open(encoding="utf-8", newline="") as lines:
        return [row[name] for row in csv.DictReader(lines)]


def test_a_policy_with_dates_and_decimals_is_described(fevers: Path) -> None:
    outcome = inside(fevers, "check", "fever.policy.yaml")
    assert outcome.code == 0
    assert "admitted 2024-02 looks like admitted 2024-03 (not further apart than 1 month)" in outcome.out
    assert "fever 35.5 looks like fever 36.0 (not further apart than 0.5)" in outcome.out


def test_histograms_and_cumulative_counts_of_dates_and_decimals(fevers: Path) -> None:
    assert inside(fevers, "plan", "fever.job.yaml").code == 0
    outcome = inside(fevers, "run", "fever.job.yaml")
    assert outcome.code == 0, outcome.err
    # at such an epsilon the noise is zero but for a chance of 10^-15
    months = dict(zip(column(fevers, "months", "admitted"), column(fevers, "months", "value"), strict=True))
    assert {month: float(count) for month, count in months.items()} == {
        "2024-01": 2,
        "2024-02": 1,
        "2024-03": 1,
        "2024-04": 1,
    }
    assert list(map(float, column(fevers, "upto", "fever up to"))) == [35.0, 35.5, 36.0, 36.5, 37.0]
    assert list(map(float, column(fevers, "upto", "value"))) == [1, 1, 2, 4, 5]
    assert list(map(float, column(fevers, "late", "value"))) == [1, 2, 2, 3]
    assert len(column(fevers, "both", "value")) == 20
