"""The worked case of the building runs as its README says: plan, release, decisions, audit, charts, live."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import tacit as tc

ROOT = Path(__file__).parents[2]
CASE = ROOT / "examples" / "building"


def run(script: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CASE / script), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("building")
    found = run("building.py", "--output", "out", folder=folder)
    assert found.returncode == 0, found.stderr
    return folder / "out"


def test_report_tables_and_charts_are_written(done):
    report = (done / "report.md").read_text(encoding="utf-8")
    for said in ("## Epsilons", "## Decisions", "## What leaks", "lighting + space planning", "gaps filled"):
        assert said in report
    for name in ("pattern", "posterior", "leakage", "graph"):
        assert (done / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"]({name}.png)" in report


def test_decisions_stand_beside_the_true_ones(done):
    truth = pd.read_csv(CASE / "days.csv").groupby("room")
    for name, attribute in (("lighting", "arrival"), ("space-planning", "share")):
        table = pd.read_csv(done / f"{name}.csv", index_col="room")
        assert table["true"].equals(truth[attribute].mean().rename("true"))
        agree = (table["true: decision"] == table["gaps filled: decision"]).mean()
        assert agree >= 0.75
        # gaps are filled with what is expected there, which takes most of the bias away
        off = {how: abs((table[how] - table["true"]).mean()) for how in ("shown days", "gaps filled")}
        assert off["gaps filled"] < off["shown days"]


def test_nothing_secret_is_shown_in_the_live_form_and_lines_repeat(tmp_path):
    rows = pd.read_csv(CASE / "days.csv")
    first = rows[rows["day"].isin(sorted(rows["day"].unique())[:3])]
    first.to_csv(tmp_path / "new.csv", index=False)
    once, again = (run("live.py", "new.csv", "--ledger", "live.db", "--once", folder=tmp_path) for _ in range(2))
    assert once.returncode == 0, once.stderr
    lines = [json.loads(line) for line in once.stdout.splitlines()]
    assert [line["day"] for line in lines] == sorted(first["day"].unique())
    for line in lines:
        assert line["lower"] <= line["value"] <= line["upper"]
    assert again.stdout == once.stdout  # the same coins: nothing new is learned


def test_the_made_up_rows_are_what_the_script_makes(tmp_path):
    assert run("days.py", "--into", str(tmp_path), folder=tmp_path).returncode == 0
    for name in ("earlier.csv", "days.csv"):
        assert (tmp_path / name).read_bytes() == (CASE / name).read_bytes()


def test_the_policy_hides_what_the_readme_says():
    policy = tc.Policy.load(CASE / "policy.yaml")
    secret = policy.document()["secrets"]["values"]
    assert (min(secret["arrival"]), max(secret["leaving"]), max(secret["share"])) == (630, 900, 20)
