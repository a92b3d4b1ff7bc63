"""The worked case of the building runs as its README says: plan, release, decisions, audit, charts, live."""

import importlib
import json
import math
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
from tacit.jobs.job_file import read_job_or_case
from tacit.jobs.job_run import session_of

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


@pytest.fixture(scope="module")
def job(folder):
    """The releases of the case at planned epsilons; planning takes seconds."""
    return read_job_or_case(folder / "case.yaml")


def test_applications_see_true_values_or_gaps_and_no_secret(worked, folder):
    truth = pd.read_csv(folder / "days.csv").set_index(["room", "day"])
    for name, attribute in (("lighting", "arrival"), ("space planning", "share")):
        table = worked.seen[name]
        seen = table.assign(day=table["day"].astype(str)).set_index(["room", "day"])[attribute]
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


def test_a_release_beyond_the_limit_is_refused(worked, job):
    session = session_of(job)
    more = tc.true_records(["arrival"], key=["room", "day"], application="lighting")
    with pytest.raises(tc.BudgetExceeded, match="both"):
        session.release(more, epsilon=2.5)


def test_the_case_file_is_planned_and_run_and_run_again_shows_the_same(worked, folder):
    planned = inside(folder, "plan", "leakage", "case.yaml", "--json")
    assert planned.code == 0, planned
    assert inside(folder, "run", "case.yaml").code == 0
    certificate = json.loads((folder / "case-release" / "arrivals.certificate.json").read_text(encoding="utf-8"))
    spent = float(Fraction(certificate["epsilon"]))
    assert 0 <= planned.document["epsilon"]["lighting"]["arrival"] - spent < 1e-3  # what was planned is released
    again = (folder / "case.yaml").read_text().replace("rows: days.csv", "rows: days.csv\nout: again")
    (folder / "again.yaml").write_text(again)
    before = tc.Ledger(folder / "ledger.db").leakage(dataset="building")
    assert inside(folder, "run", "again.yaml").code == 0
    for name, who, attribute in (("arrivals", "lighting", "arrival"), ("shares", "space planning", "share")):
        first, second = (pd.read_parquet(folder / run / f"{name}.parquet") for run in ("case-release", "again"))
        assert {"room", "day", attribute} <= set(first.columns)
        # new coins would fill gaps, and what is missing in both would nearly always be a secret
        pd.testing.assert_frame_equal(first, second)
        pd.testing.assert_series_equal(first[attribute], worked.seen[who][attribute], check_dtype=False)
    ledger = tc.Ledger(folder / "ledger.db")
    assert ledger.leakage(dataset="building") == before
    shares = json.loads((folder / "case-release" / "shares.certificate.json").read_text(encoding="utf-8"))
    paid = Fraction(certificate["epsilon"]) + Fraction(shares["epsilon"])
    assert ledger.remaining(dataset="building") == 6 - paid  # once, however often it is run


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_case_with_a_limit_is_refused_without_a_ledger(command, folder):
    without = [line for line in (folder / "case.yaml").read_text().splitlines() if not line.startswith("ledger:")]
    (folder / "without.yaml").write_text("\n".join(without).replace("epsilon: planned", "epsilon: 0.1"))
    refused = inside(folder, command, "without.yaml")
    assert refused.code == 1
    assert "ledger must be given where a limit holds" in refused.err
    assert "Add `ledger: ledger.db`" in refused.err
    assert not (folder / "without-release").exists()


def test_the_live_form_publishes_each_day_once_and_shows_what_a_run_shows(worked, job, folder, scripts):
    live = scripts["live"]
    left = tc.Ledger(folder / "ledger.db").remaining(dataset="building")
    days = list(live.new_days(folder / "days.csv", once=True, wait=0))
    assert days == sorted(pd.read_csv(folder / "days.csv")["day"].unique())
    seen = worked.seen["lighting"]
    kept = 1 - math.exp(-float(job.releases[0].epsilon))
    for day in days[:3]:
        line = live.published(day, job)
        shown = (pd.to_numeric(seen["arrival"][seen["day"].astype(str) == day]) <= 540).sum()
        assert line["value"] == pytest.approx(shown / kept)
        assert 0 <= line["lower"] <= line["value"] <= line["upper"] <= 13
        assert live.published(day, job) == line
    assert tc.Ledger(folder / "ledger.db").remaining(dataset="building") == left


def test_the_live_form_follows_a_file_that_grows_and_another_file_is_another_data_set(folder, tmp_path, scripts):
    live, new = scripts["live"], tmp_path / "annexe.csv"
    rows = pd.read_csv(folder / "days.csv").sort_values(["day", "room"])
    lines = rows.to_csv(index=False).splitlines(keepends=True)
    new.write_text("".join(lines[: len(lines) // 2]))
    job = live.job_of(new, tmp_path / "live.db")
    assert (job.dataset, live.job_of(folder / "days.csv", None).dataset) == ("annexe", "building")
    assert live.job_of(new, None, "other").dataset == "other"
    day = next(live.new_days(new, once=True, wait=0))
    line = live.published(day, job)
    left = tc.Ledger(tmp_path / "live.db").remaining(dataset="annexe")
    new.write_text("".join(lines))
    assert live.published(day, job) == line
    assert tc.Ledger(tmp_path / "live.db").remaining(dataset="annexe") == left
    new.write_text("".join([lines[0], *reversed(lines[1:])]))
    with pytest.raises(tc.DataRefused, match="the files must hold what they held"):
        live.published(day, job)


def test_the_live_form_says_what_is_missing(tmp_path, scripts, monkeypatch):
    for name in ("policy.yaml", "earlier.csv", "days.csv"):
        shutil.copy(CASE / name, tmp_path)
    case = (CASE / "case.yaml").read_text().replace("epsilon: planned", "epsilon: 0.1")
    (tmp_path / "case.yaml").write_text(case)
    monkeypatch.setattr(scripts["live"], "HERE", tmp_path)
    rows = pd.read_csv(CASE / "days.csv")
    for column in ("arrival", "day"):
        rows.drop(columns=column).to_csv(tmp_path / "less.csv", index=False)
        monkeypatch.setattr(sys, "argv", ["live.py", str(tmp_path / "less.csv"), "--ledger", str(tmp_path / "l.db")])
        with pytest.raises(SystemExit) as ended:
            scripts["live"].main()
        assert str(ended.value.code).startswith("Refused: ")
        assert column in str(ended.value.code)


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
