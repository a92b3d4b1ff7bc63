"""The worked case of the building runs as its README says: plan, release, decisions, audit, charts, live."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import tacit as tc
from cli.shell import inside
from tacit import noise

ROOT = Path(__file__).parents[2]
CASE = ROOT / "examples" / "building"
SECRET = {"arrival": {630, 660, 690, 720}, "share": {0, 20}}


@pytest.fixture(scope="module")
def scripts():
    """The scripts as modules: they import each other by name, as scripts of one folder do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CASE))
        yield {name: importlib.import_module(name) for name in ("days", "building", "live")}
        for name in ("days", "building", "live"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, scripts):
    found = tmp_path_factory.mktemp("building")
    scripts["building"].prepared(found, None)
    return found


@pytest.fixture(scope="module")
def worked(folder, scripts):
    with noise.replayed(noise.Keystream(key=b"coins of the building, in tests.")):
        return scripts["building"].worked(folder)


def test_applications_see_true_values_or_gaps_and_no_secret(worked, folder):
    truth = pd.read_csv(folder / "days.csv").set_index(["room", "day"])
    for name, attribute in (("lighting", "arrival"), ("space planning", "share")):
        seen = worked.seen[name].set_index(["room", "day"])[attribute]
        assert len(seen) == len(truth)
        shown = seen.dropna()
        assert (shown == truth.loc[shown.index, attribute]).all()
        assert SECRET[attribute].isdisjoint(shown)
        kept = worked.plan.release_probability[name][attribute]
        open_days = (~truth[attribute].isin(SECRET[attribute])).sum()
        # five standard deviations of a binomial: missed with a chance of 6e-7, if the stream were new
        assert abs(len(shown) - kept * open_days) < 5 * (open_days * kept * (1 - kept)) ** 0.5


def test_the_plan_keeps_the_limit_for_every_coalition(worked):
    assert {use.seen_by for use in worked.plan.limits} == {"lighting", "space planning", "both"}
    assert all(use.leakage <= use.limit == 0.15 for use in worked.plan.limits)
    assert worked.plan.leakage > 0.149


def test_decisions_stand_beside_the_true_ones(worked, folder):
    truth = pd.read_csv(folder / "days.csv").groupby("room")
    for name, attribute in (("lighting", "arrival"), ("space planning", "share")):
        table = worked.tables[name]
        pd.testing.assert_series_equal(table["true"], truth[attribute].mean(), check_names=False)
        assert (table["true: decision"] == table["gaps filled: decision"]).mean() >= 0.75
    # secret days are late ones: shown days alone start too early, and filling gaps takes most of that away
    lighting = worked.tables["lighting"]
    shown, filled = ((lighting[how] - lighting["true"]).mean() for how in ("shown days", "gaps filled"))
    assert shown < -15
    assert abs(filled) < 10


def test_a_release_beyond_the_limit_is_refused(worked, folder):
    session = tc.Session(
        worked.case.policy,
        pd.read_csv(folder / "days.csv"),
        budget=6,
        ledger=str(folder / "ledger.db"),
        dataset="building",
        leakage=worked.case.limits(),
    )
    more = tc.true_records(["arrival"], key=["room", "day"], application="lighting")
    with pytest.raises(tc.BudgetExceeded, match="both"):
        session.release(more, epsilon=2.5)


def test_the_case_file_is_planned_and_run(folder):
    planned = inside(folder, "plan", "leakage", "case.yaml", "--json")
    assert planned.code == 0, planned
    assert inside(folder, "run", "case.yaml").code == 0
    certificate = json.loads((folder / "case-release" / "arrivals.certificate.json").read_text(encoding="utf-8"))
    spent = float(Fraction(certificate["epsilon"]))
    assert 0 <= planned.document["epsilon"]["lighting"]["arrival"] - spent < 1e-3  # what was planned is released
    shown = pd.read_parquet(folder / "case-release" / "arrivals.parquet")
    assert {"room", "day", "arrival"} <= set(shown.columns)


def test_the_live_form_publishes_each_day_once_and_the_same_again(tmp_path, scripts):
    rows = pd.read_csv(CASE / "days.csv")
    first = rows[rows["day"].isin(sorted(rows["day"].unique())[:2])]
    first.to_csv(tmp_path / "new.csv", index=False)
    policy = tc.Policy.load(CASE / "policy.yaml")
    live = scripts["live"]
    once, again = (
        [
            live.published(day, policy, tmp_path / "live.db", 1.0)
            for day in live.new_days(tmp_path / "new.csv", once=True, wait=0)
        ]
        for _ in range(2)
    )
    assert [line["day"] for line in once] == sorted(first["day"].unique())
    for line in once:
        assert 0 <= line["lower"] <= line["value"] <= line["upper"] <= 13
    assert again == once  # the same coins: nothing new is learned
    ledger = tc.Ledger(tmp_path / "live.db")
    assert ledger.remaining(dataset="building, live") == 0  # one epsilon, however many days


def test_the_made_up_rows_are_what_the_script_makes(tmp_path, scripts):
    scripts["days"].write(scripts["days"].made_up(), tmp_path)
    for name in ("earlier.csv", "days.csv"):
        assert (tmp_path / name).read_bytes() == (CASE / name).read_bytes()


@pytest.mark.slow
def test_the_scripts_run_as_the_readme_says(tmp_path):
    shutil.copy(CASE / "days.csv", tmp_path)
    for script, *arguments in (
        ("building.py", "--output", "out"),
        ("live.py", "days.csv", "--ledger", "live.db", "--once"),
    ):
        done = subprocess.run(
            [sys.executable, str(CASE / script), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )
        assert done.returncode == 0, done.stderr
    assert all({"day", "value", "lower", "upper"} == set(json.loads(line)) for line in done.stdout.splitlines())
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    for said in ("## Epsilons", "## Decisions", "## What leaks", "- both: leaving", "gaps filled"):
        assert said in report
    for name in ("pattern", "gaps", "posterior", "leakage", "graph"):
        assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"]({name}.png)" in report
