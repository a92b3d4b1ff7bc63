"""`tacit publish table`: a file in, a folder out; wrong input is one sentence and costs nothing."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from cli.shell import files_in, inside

POLICY = """\
domain:
  ward: {categories: [a, b]}
  ill: {categories: [flu, hiv, none]}
secrets: {attributes: [ill]}
"""
JOB = """\
policy: clinic.policy.yaml
rows: people.csv
budget: 2
table:
  public: [ward]
  sensitive: ill
  retention: 0.5
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    (tmp_path / "clinic.policy.yaml").write_text(POLICY, encoding="utf-8")
    rows = "".join(f"{'ab'[n % 2]},{('flu', 'hiv', 'none', 'none')[n % 4]}\n" for n in range(200))
    (tmp_path / "people.csv").write_text("ward,ill\n" + rows, encoding="utf-8")
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    return tmp_path


def test_a_perturbed_table(clinic: Path) -> None:
    made = inside(clinic, "publish", "table", "job.yaml")
    assert (made.code, made.err) == (0, "")
    assert "each record keeps its value with probability 0.5" in made.out
    assert made.out.splitlines()[-1] == "Published. The table, its certificate and this report are in job-table."
    assert sorted(files_in(clinic / "job-table")) == ["certificate.json", "report.txt", "table.csv"]
    lines = list(csv.DictReader((clinic / "job-table" / "table.csv").open(encoding="utf-8")))
    assert list(lines[0]) == ["ward", "ill", "count", "estimate"]
    assert sum(float(line["count"]) for line in lines) == 200
    certificate = json.loads((clinic / "job-table" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["method"] == "uniform"


def test_a_private_table(clinic: Path) -> None:
    (clinic / "job.yaml").write_text(
        JOB + "  lam: 0.3\n  delta: 0.3\n  groups: {ward: {a: x, b: x}}\n", encoding="utf-8"
    )
    made = inside(clinic, "publish", "table", "job.yaml", "--json")
    assert made.document["method"] == "masked"
    assert any("empirical Bayes" in line for line in made.document["not_prevented"])
    assert "not prevented" in (clinic / "job-table" / "report.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("retention: 0.5", "retention: 2"), "retention must lie strictly between 0 and 1"),
        (("retention: 0.5", "retention: 0.99"), "epsilon must not exceed what remains"),
        (("retention: 0.5", "retention: 0.5\n  lam: 0.3"), "must have lam and delta together"),
        (("retention: 0.5", "retention: 0.5\n  method: best"), "needs lam and delta"),
        (("public: [ward]", "public: [wart]"), "wart"),
        (("budget: 2\n", ""), "must have the key budget or the key ledger"),
        (("sensitive:", "sensitve:"), "Did you mean 'sensitive'"),
    ],
)
def test_refusals(clinic: Path, change: tuple[str, str], sentence: str) -> None:
    (clinic / "job.yaml").write_text(JOB.replace(*change), encoding="utf-8")
    assert sentence in inside(clinic, "publish", "table", "job.yaml").refusal()
    assert not (clinic / "job-table").exists()


def test_nothing_is_overwritten(clinic: Path) -> None:
    (clinic / "job-table").mkdir()
    assert "must name a folder that does not exist yet" in inside(clinic, "publish", "table", "job.yaml").refusal()
