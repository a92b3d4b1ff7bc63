"""`tacit plan` and `tacit run`: what they print, write, charge, refuse, and what never gets out of the rows."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from cli.conftest import POLICY, rows, write_rows
from cli.shell import Outcome, files_in, inside, tacit
from tacit import Ledger
from tacit.cli.jobs import NO_LEDGER, ONE_ROW_EACH
from tacit.errors import Exit

CANARY = "CANARY-7391"
NUMBER = "739173917391"
ChangeJob = Callable[[str, str], None]
LEFT_OUT = (
    "Rows that do not fit the policy are left out unseen, also if only a column that some question does not use "
    "misfits (age and disease): give that column a value as `otherwise` to keep them; look first: `"
)


def notes_of(outcome: Outcome) -> list[str]:
    """Return what is said on stderr; of the command that shows which rows do not fit, all but where `tacit` lies."""
    return [
        re.sub(r"look first: `.*tacit check", "look first: `tacit check", line) for line in outcome.err.splitlines()
    ]


CHECK = f"{LEFT_OUT}tacit check clinic.policy.yaml --rows clinic.csv`"


def remaining(folder: Path) -> Fraction:
    with Ledger(folder / "ledger.db", create=False) as ledger:
        return ledger.remaining(dataset="clinic", analyst="ana")


def test_plan_shows_the_cost_and_touches_nothing(clinic: Path) -> None:
    before = files_in(clinic)
    outcome = inside(clinic, "plan", "clinic.job.yaml")
    assert (outcome.code, notes_of(outcome)) == (0, [ONE_ROW_EACH, CHECK])
    for expected in ("wards", "hiv", "ages", "exact", "Costs 0.8 of 1."):
        assert expected in outcome.out
    assert files_in(clinic) == before


def test_plan_as_json(clinic: Path) -> None:
    outcome = inside(clinic, "plan", "clinic.job.yaml", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    said = outcome.document
    assert (said["job"], said["dataset"], said["cost"], said["remaining"], said["fits"]) == (
        "clinic",
        "clinic",
        "4/5",
        "1",
        True,
    )
    assert [release["name"] for release in said["releases"]] == ["wards", "hiv", "ages"]
    assert [release["mechanism"] for release in said["releases"]][:2] == ["exact", "one-sided geometric noise"]
    assert all(release["expected_rmse"] <= release["plain_dp_rmse"] for release in said["releases"])


def test_plan_finds_the_epsilons_of_an_accuracy_and_touches_nothing(clinic: Path, change_job: ChangeJob) -> None:
    before = files_in(clinic)
    said = inside(clinic, "plan", "clinic.job.yaml", "--error", "20", "--json").document
    assert all(one["expected_rmse"] <= 20 for one in said["releases"])
    assert said["releases"][2]["expected_rmse"] >= 19.8
    outcome = inside(clinic, "plan", "clinic.job.yaml", "--within", "20", "--level", "0.9")
    assert outcome.code == 0
    assert "the job with `within: 20, level: 0.9` in place of each `epsilon` makes the releases" in outcome.out
    outcome = inside(clinic, "plan", "clinic.job.yaml", "--error", "0.2")
    assert outcome.code == Exit.BUDGET_SPENT  # it is shown all the same
    assert "only 1 remains: the job with `error: 0.2` in place of each `epsilon` would be refused." in outcome.out
    assert files_in(clinic) == before
    change_job("epsilon: 0.4", "error: 20")
    assert "ages" in inside(clinic, "plan", "clinic.job.yaml").out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--error", "20", "--within", "20"], "within must not be given beside error"),
        (["--level", "0.9"], "level belongs to within; got 0.9"),
        (["--error", "much"], "error must be a finite number; got 'much'"),
        (["--error", "20", "--sweep"], "--error must not be given beside --sweep"),
        (["--sweep", "--out", "clinic.csv"], "--out must be a new file that ends in .svg or .csv; got 'clinic.csv'"),
        (["--out", "sweep.pdf"], "--out must be a new file that ends in .svg or .csv; got 'sweep.pdf'"),
    ],
)
def test_options_of_plan_that_contradict_each_other_are_refused(clinic: Path, options: list[str], words: str) -> None:
    assert words in inside(clinic, "plan", "clinic.job.yaml", *options).refusal()


def test_a_sweep_shows_error_against_epsilon_beside_plain_privacy(clinic: Path) -> None:
    outcome = inside(clinic, "plan", "clinic.job.yaml", "--sweep")
    assert (outcome.code, outcome.err) == (0, "Nothing was spent, no row was opened.\n")
    for word in ("hiv: count(", "0.01", "10", "plain", "exact"):
        assert word in outcome.out
    assert inside(clinic, "plan", "clinic.job.yaml", "--out", "sweep.svg").code == 0
    assert (clinic / "sweep.svg").read_text().startswith("<svg")
    said = inside(clinic, "plan", "clinic.job.yaml", "--out", "sweep.csv", "--json").document
    errors = [point["expected_rmse"] for point in said["sweep"][1]["points"]]
    assert errors == sorted(errors, reverse=True)
    assert len((clinic / "sweep.csv").read_text().splitlines()) == 1 + 3 * len(errors)


def test_plan_says_why(clinic: Path) -> None:
    outcome = inside(clinic, "plan", "clinic.job.yaml", "--verbose")
    assert outcome.code == 0
    assert "because no secret edge changes the answers" in outcome.out


def test_a_plan_that_does_not_fit_is_shown_and_exits_as_the_run_would(clinic: Path, change_job: ChangeJob) -> None:
    change_job("budget: 1", "budget: 0.5")
    outcome = inside(clinic, "plan", "clinic.job.yaml")
    assert (outcome.code, notes_of(outcome)) == (3, [ONE_ROW_EACH, CHECK])
    assert "Costs 0.8, but only 0.5 remains" in outcome.out
    outcome = inside(clinic, "plan", "clinic.job.yaml", "--json")
    assert (outcome.code, outcome.document["fits"]) == (3, False)
    assert inside(clinic, "run", "clinic.job.yaml").code == 3


def test_run_writes_everything_once_and_never_overwrites(clinic: Path) -> None:
    outcome = inside(clinic, "run", "clinic.job.yaml")
    assert (outcome.code, notes_of(outcome)) == (0, [ONE_ROW_EACH, CHECK])
    assert re.search(r"hiv .* \d+ \(\d+ to \d+\)", outcome.out)  # the one release with one answer
    assert outcome.out.count("in the report") == 2
    assert f"The report is {Path('results', 'report.html')}" in outcome.out
    written = files_in(clinic / "results")
    for name in ("wards", "hiv", "ages"):
        assert f"{name}.csv" in written
        assert json.loads(written[f"{name}.certificate.json"])["dataset"] == "clinic"
    assert b"<html" in written["report.html"]
    assert remaining(clinic) == Fraction(1, 5)
    again = inside(clinic, "run", "clinic.job.yaml").refusal()
    assert again.startswith("clinic.job.yaml:7: out must be a new or empty folder")
    assert files_in(clinic / "results") == written
    assert remaining(clinic) == Fraction(1, 5)


def test_run_as_json(clinic: Path) -> None:
    outcome = inside(clinic, "run", "clinic.job.yaml", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    said = outcome.document
    assert set(said) == {"job", "dataset", "person", "per_person", "has_ledger", "cost", "folder", "report", "releases"}
    assert (said["person"], said["per_person"], said["has_ledger"]) == (None, 1, True)
    assert (clinic / said["report"]).is_file()
    for release in said["releases"]:
        assert (clinic / release["values"]).is_file()
        assert (clinic / release["certificate"]).is_file()
    again = inside(clinic, "run", "clinic.job.yaml", "--json")
    assert again.code == 6
    assert (again.error()["kind"], again.error()["key"]) == ("JobError", "out")


def test_a_spent_budget_is_refused_before_anything_is_charged(clinic: Path) -> None:
    with Ledger(clinic / "ledger.db") as ledger:
        ledger.grant(dataset="clinic", epsilon="0.7")
    sentence = inside(clinic, "run", "clinic.job.yaml").refusal()
    assert sentence.startswith("clinic.job.yaml: releases must not cost more in all than what remains, 0.7; got 0.8.")
    assert not (clinic / "results").exists()
    assert remaining(clinic) == Fraction(7, 10)
    error = inside(clinic, "run", "clinic.job.yaml", "--json").error()
    assert (error["kind"], error["file"], error["key"]) == ("BudgetExceeded", "clinic.job.yaml", "releases")


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("budget: 1", "buget: 1", "clinic.job.yaml:4: buget is not a key that may stand here. Did you mean 'budget'?"),
        ("epsilon: 0.3", "epsilon: -1", "must lie above 0"),
        ("cumulative: age", "cumulative: agee", "Did you mean 'age'?"),
        ("clinic.policy.yaml", "nowhere.yaml", "must be a policy file"),
        ("name: hiv", "name: ../hiv", "must start with a letter or digit"),
        ("name: hiv", "name: wards", "must be the name of one release only"),
    ],
)
def test_a_wrong_job_is_refused_with_its_place(
    old: str, new: str, sentence: str, clinic: Path, change_job: ChangeJob
) -> None:
    change_job(old, new)
    before = files_in(clinic)
    for command in ("plan", "run"):
        assert sentence in inside(clinic, command, "clinic.job.yaml").refusal()
    assert files_in(clinic) == before


def test_a_missing_job_is_refused(tmp_path: Path) -> None:
    assert "must exist" in inside(tmp_path, "run", "nowhere.yaml").refusal()
    assert inside(tmp_path, "plan", "nowhere.yaml", "--json").error()["rule"] == "must exist"


def test_what_a_job_takes_for_granted_is_said(clinic: Path, change_job: ChangeJob) -> None:
    change_job("ledger: ledger.db\n", "")
    for command in ("plan", "run"):
        outcome = inside(clinic, command, "clinic.job.yaml")
        assert (outcome.code, notes_of(outcome)) == (0, [ONE_ROW_EACH, NO_LEDGER, CHECK])
    page = (clinic / "results" / "report.html").read_text(encoding="utf-8")
    assert NO_LEDGER in page
    change_job("rows: clinic.csv", "rows: clinic.csv\nperson: id\nledger: ledger.db")
    lines = [f"{row},{number}" for number, row in enumerate(rows())]
    (clinic / "clinic.csv").write_text("\n".join(["age,disease,ward,id", *lines]) + "\n", encoding="utf-8")
    outcome = inside(clinic, "plan", "clinic.job.yaml")
    counted = "Of each person (id) one row that fits the domain counts, chosen as at random; other rows are left out."
    assert (outcome.code, notes_of(outcome)) == (0, [counted, CHECK.replace(".csv`", ".csv --person id`")])
    said = inside(clinic, "plan", "clinic.job.yaml", "--json").document
    assert (said["person"], said["per_person"], said["has_ledger"]) == ("id", 1, True)


def test_a_plan_without_rows_is_shown_and_says_what_is_missing(clinic: Path) -> None:
    (clinic / "clinic.csv").unlink()
    outcome = inside(clinic, "plan", "clinic.job.yaml")
    sentence = "clinic.job.yaml:3: rows must be a file that exists; got 'clinic.csv'."
    assert outcome.code == 5
    assert "Costs 0.8 of 1." in outcome.out
    assert "would be refused" in outcome.out
    assert sentence in outcome.err
    said = inside(clinic, "plan", "clinic.job.yaml", "--json")
    assert (said.code, said.document["fits"]) == (5, True)
    assert said.document["rows_missing"].startswith(sentence)
    refused = inside(clinic, "run", "clinic.job.yaml")
    assert refused.refusal().startswith(sentence)
    assert refused.code == 5
    assert not (clinic / "ledger.db").exists()


def test_a_job_is_called_as_it_was_given_and_a_table_is_not_repeated(clinic: Path) -> None:
    for command in ("plan", "run"):
        refusal = inside(clinic.parent, command, f"{clinic.name}/clinic.policy.yaml").refusal()
        assert refusal.startswith(f"{clinic.name}/clinic.policy.yaml:2: domain is not a key")
        refusal = inside(clinic, command, "clinic.csv").refusal()
        assert refusal.startswith("clinic.csv looks like a table, not a job file. Name the job file;")


def test_a_broken_ledger_stops_a_run(clinic: Path) -> None:
    (clinic / "ledger.db").write_bytes(b"no ledger at all " * 100)
    assert "ledger.db" in inside(clinic, "run", "clinic.job.yaml").refusal()
    assert not (clinic / "results").exists()


def traces(folder: Path, outcome: Outcome) -> list[str]:
    """Return where a planted value can be found after a run, apart from the rows themselves."""
    places = {name: content for name, content in files_in(folder).items() if name != "clinic.csv"}
    places |= {"stdout": outcome.out.encode(), "stderr": outcome.err.encode()}
    marks = (CANARY.encode(), NUMBER.encode())
    return [name for name, content in places.items() if any(mark in content for mark in marks)]


def test_an_unexpected_value_never_gets_out(clinic: Path) -> None:
    """Outside the domain in every column, among good rows: nothing but the counts may notice."""
    planted = [f"{NUMBER},hiv,north", f"31,{CANARY},south", f"32,flu,{CANARY}", f"{CANARY},{CANARY},{CANARY}", ",,"]
    write_rows(clinic / "clinic.csv", [*rows()[:150], *planted, *rows()[150:]])
    outcome = tacit(clinic, "run", "clinic.job.yaml", TACIT_DEBUG="1")
    assert (outcome.code, notes_of(outcome)) == (0, [ONE_ROW_EACH, CHECK])
    assert traces(clinic, outcome) == []


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"age,ward\n31,{CANARY}\n{NUMBER},north\n", id="a column is missing"),
        pytest.param(f"age,disease,ward\n31,{CANARY}\n1,2,3,4,{NUMBER}\n", id="rows of different lengths"),
        pytest.param(f'age,disease,ward\n31,"{CANARY},north\n{NUMBER},flu,south\n', id="a quote is not closed"),
        pytest.param(f"{CANARY},{NUMBER}\n", id="no header"),
    ],
)
def test_unreadable_rows_are_never_quoted(content: str, clinic: Path) -> None:
    (clinic / "clinic.csv").write_text(content, encoding="utf-8")
    for option in ([], ["--json"]):
        outcome = inside(clinic, "run", "clinic.job.yaml", *option)
        assert outcome.code in (0, 4)
        assert traces(clinic, outcome) == []
        assert "Traceback" not in outcome.out + outcome.err


def test_a_plan_says_that_the_ledger_does_not_take_the_policy(clinic: Path) -> None:
    (clinic / "all.policy.yaml").write_text(
        POLICY[: POLICY.index("secrets:")] + "secrets: everything\n", encoding="utf-8"
    )
    grant = ("ledger", "grant", "ledger.db", "--dataset", "clinic", "--epsilon", "5", "--policy", "all.policy.yaml")
    assert inside(clinic, *grant).code == 0
    planned = inside(clinic, "plan", "clinic.job.yaml")
    sentence = inside(clinic, "run", "clinic.job.yaml").refusal()
    assert planned.code == 1
    assert sentence in planned.err
    assert "would be refused for its policy." in " ".join(planned.out.split())
    said = inside(clinic, "plan", "clinic.job.yaml", "--json")
    assert (said.code, said.document["fits"], said.document["policy_refused"]) == (1, True, sentence)
    with Ledger(clinic / "ledger.db", create=False) as ledger:
        assert ledger.remaining(dataset="clinic") == 5


@pytest.mark.parametrize("line", [b"31,fl\xfc,north", b"31,flu,north,more"])
def test_rows_that_cannot_be_read_cost_nothing_and_begin_no_ledger(line: bytes, clinic: Path) -> None:
    (clinic / "clinic.csv").write_bytes((clinic / "clinic.csv").read_bytes() + line + b"\n")
    refusal = inside(clinic, "run", "clinic.job.yaml").refusal()
    assert "well-formed CSV in UTF-8" in refusal
    assert refusal.endswith(" Nothing was charged.")
    assert not (clinic / "ledger.db").exists()
    assert not (clinic / "results").exists()


def test_a_job_that_plain_privacy_could_not_answer_is_planned_run_and_reported(tmp_path: Path) -> None:
    policy = "domain:\n  amount: {integers: [0, 1000000000000000]}\nsecrets:\n  within: {amount: 1}\n"
    (tmp_path / "wide.policy.yaml").write_text(policy, encoding="utf-8")
    (tmp_path / "rows.csv").write_text("amount\n1\n2\n", encoding="utf-8")
    release = "{name: sum, query: {total: amount}, epsilon: 0.00001}"
    job = f"policy: wide.policy.yaml\nrows: rows.csv\nbudget: 1\nreleases:\n  - {release}\n"
    (tmp_path / "job.yaml").write_text(job, encoding="utf-8")
    said = " ".join(inside(tmp_path, "plan", "job.yaml", "--verbose").out.split())
    assert "at the same epsilon: no answer, since it needs noise of scale 1e+20" in said
    (made,) = inside(tmp_path, "run", "job.yaml", "--json").document["releases"]
    assert made["plain_dp_rmse"] is None
    assert "needs noise of scale" in made["plain_dp_refused"]
    assert "has no answer at the same cost" in (tmp_path / "job-release" / "report.html").read_text(encoding="utf-8")
