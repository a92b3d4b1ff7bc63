"""`tacit audit exclusion`, `tacit plan leakage`, `tacit run` and `tacit ledger show` on one case."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from cli.shell import inside
from tacit.audit.case_audit import audit_case
from tacit.jobs.case_file import read_case
from tacit.report.audit_page import leakage_page
from tacit.report.charts.audit_charts import leakage_charts

CASE = """\
policy:
  domain:
    arrival: {categories: [late, early]}
    leaving: {categories: [late, early]}
  secrets:
    values: {arrival: [late], leaving: [early]}
rows: days.csv
ledger: ledger.db
budget: 5
out: out
dependence:
  counts: {file: earlier.csv, attributes: [arrival, leaving], smoothing: 0.5}
sensitive: {arrival: [late], leaving: [early]}
applications: {lighting: [arrival], space: [leaving]}
coalitions: {lighting: [lighting], both: [lighting, space]}
limit: {lighting: 0.1, both: 0.2}
releases:
  - {name: starts, query: {true_records: {columns: [arrival], key: room, application: lighting}}, epsilon: planned}
  - {name: ends, query: {true_records: {columns: [leaving], key: room, application: space}}, epsilon: planned}
"""
FIXED = CASE.replace("epsilon: planned", "epsilon: 0.05")  # nothing is to be planned


def rows(shift: int) -> str:
    lines = [
        f"r{number},{'late' if (number + shift) % 10 < 3 else 'early'},{'early' if number % 5 < 2 else 'late'}"
        for number in range(60)
    ]
    return "\n".join(["room,arrival,leaving", *lines]) + "\n"


@pytest.fixture
def rooms(tmp_path: Path) -> Path:
    (tmp_path / "case.yaml").write_text(CASE)
    (tmp_path / "days.csv").write_text(rows(0))
    (tmp_path / "earlier.csv").write_text(rows(1))
    return tmp_path


def test_one_case_is_planned_audited_and_run(rooms: Path) -> None:
    planned = inside(rooms, "plan", "leakage", "case.yaml", "--json").document
    assert planned["gap"] < 1e-5
    assert all(use["leakage"] <= use["limit"] for use in planned["limits"])
    audited = inside(rooms, "audit", "exclusion", "case.yaml", "--json").document
    assert audited["epsilon"] == planned["epsilon"]
    both = [row for row in audited["rows"] if row["who"] == "both"]
    # about both attributes together: no less than about either, and here less than the sum
    together = planned["limits"][1]["leakage"]
    assert max(row["value"] for row in both) <= together <= sum(row["value"] for row in both)
    ran = inside(rooms, "run", "case.yaml", "--json")
    assert ran.code == 0
    assert (rooms / "out" / "starts.csv").is_file() or any((rooms / "out").glob("starts.*"))
    report = (rooms / "out" / "report.html").read_text(encoding="utf-8")
    assert "What applications could learn" in report
    assert "<li>both has seen arrival at" in report
    assert "of at most 0.2 nats about arrival, leaving" in report
    shown = inside(rooms, "ledger", "show", "ledger.db", "--json").document
    assert [stands["coalition"] for stands in shown["leakage"]["days"]] == ["lighting", "both"]
    told = inside(rooms, "ledger", "show", "ledger.db")
    assert "both has seen arrival at" in told.out
    assert inside(rooms, "ledger", "verify", "ledger.db").code == 0


def test_a_run_that_would_tell_too_much_is_refused_and_costs_nothing(rooms: Path) -> None:
    (rooms / "case.yaml").write_text(FIXED)
    assert inside(rooms, "run", "case.yaml").code == 0
    (rooms / "case.yaml").write_text(FIXED.replace("epsilon: 0.05", "epsilon: 1", 1).replace("out: out", "out: b"))
    before = inside(rooms, "ledger", "show", "ledger.db", "--json").document["accounts"]
    refused = inside(rooms, "run", "case.yaml", "--json")
    assert refused.code == 1
    assert refused.document["error"]["kind"] == "BudgetExceeded"
    assert "leakage of lighting must stay at most 0.1 nats" in refused.document["error"]["message"]
    assert inside(rooms, "ledger", "show", "ledger.db", "--json").document["accounts"] == before
    assert not (rooms / "b").exists()


def test_charts_and_a_page_are_written_into_a_new_folder(rooms: Path) -> None:
    alone = CASE.replace(", space: [leaving]}", "}").replace("limit: {lighting: 0.1, both: 0.2}", "limit: 0.2")
    alone = alone[: alone.index("  - {name: ends")].replace("coalitions: ", "# ")
    (rooms / "case.yaml").write_text(alone)  # one line is planned at once
    made = inside(rooms, "audit", "exclusion", "case.yaml", "--output", "leak")
    assert made.code == 0
    names = {file.name for file in (rooms / "leak").iterdir()}
    assert names == {"posterior.png", "graph.png", "leakage.png", "exclusion.html", "exclusion.json"}
    assert all((rooms / "leak" / name).read_bytes().startswith(b"\x89PNG") for name in names if name.endswith("png"))
    assert json.loads((rooms / "leak" / "exclusion.json").read_text())["case"] == "case"
    assert "lighting" in (rooms / "leak" / "exclusion.html").read_text()
    again = inside(rooms, "audit", "exclusion", "case.yaml", "--output", "leak")
    assert again.code == 1
    assert "must not exist yet" in again.err


def test_what_rests_on_the_private_rows_says_so_first_and_everywhere(rooms: Path) -> None:
    mark = "The dependence is unprotected: it was counted on the private rows. Show this to nobody."
    alone = CASE.replace(", space: [leaving]}", "}").replace("limit: {lighting: 0.1, both: 0.2}", "limit: 0.2")
    alone = alone[: alone.index("releases:")].replace("coalitions: ", "# ")
    alone = alone[: alone.index("rows:")] + alone[alone.index("dependence:") :]  # nothing is run
    marked = alone.replace("earlier.csv", "days.csv").replace("smoothing: 0.5", "smoothing: 0.5, unprotected: true")
    (rooms / "case.yaml").write_text(marked)
    for command in (["plan", "leakage"], ["audit", "exclusion"]):
        said = inside(rooms, *command, "case.yaml")
        assert said.code == 0
        assert said.out.splitlines()[0] == mark  # where a file that it is sent to has it
        assert "no private row was opened" not in said.out + said.err
        assert inside(rooms, *command, "case.yaml", "--json").document["unprotected"] is True
    audit = audit_case(read_case(rooms / "case.yaml"))
    charts = leakage_charts(audit)
    assert set(charts) == {"posterior", "graph", "leakage"}
    for chart in charts.values():
        assert " ".join(chart.to_dict()["title"]["subtitle"]).startswith(mark)
    assert mark in leakage_page(audit, {})
    (rooms / "case.yaml").write_text(alone)
    said = inside(rooms, "plan", "leakage", "case.yaml")
    assert "no private row was opened" in said.out
    assert "unprotected" not in said.out


def test_jobs_are_planned_as_before(clinic: Path) -> None:
    assert inside(clinic, "plan", "clinic.job.yaml").code == 0
    wrong = inside(clinic, "plan", "clinic.job.yaml", "other.yaml")
    assert wrong.code == 1
    assert "must be one file" in wrong.err


def test_the_schema_of_a_case_takes_this_one(rooms: Path) -> None:
    schema = inside(rooms, "schema", "case").document
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(CASE))


def test_what_is_wrong_in_a_case_is_refused_by_its_place(rooms: Path) -> None:
    (rooms / "case.yaml").write_text(CASE.replace("both: 0.2", "bth: 0.2"))
    for command in (["plan", "leakage"], ["audit", "exclusion"], ["run"]):
        refused = inside(rooms, *command, "case.yaml", "--json")
        assert refused.code == 1
        error = refused.document["error"]
        assert error["file"] == "case.yaml"
        assert error["line"] == 16
        assert "Did you mean 'both'?" in error["fix"]


def test_a_plan_says_before_that_a_limit_would_refuse_the_run(rooms: Path) -> None:
    fits = inside(rooms, "plan", "case.yaml", "--json")
    assert (fits.code, fits.document["leakage_refused"]) == (0, None)
    more = CASE.replace("epsilon: planned}\n  - {name: ends", "epsilon: 1}\n  - {name: ends")
    (rooms / "case.yaml").write_text(more)
    told = inside(rooms, "plan", "case.yaml", "--json")
    ran = inside(rooms, "run", "case.yaml", "--json")
    assert (told.code, told.document["fits"], ran.code) == (1, True, 1)
    assert ran.document["error"]["message"].endswith(told.document["leakage_refused"])
    assert "would be refused for its leakage" in inside(rooms, "plan", "case.yaml").out


def test_a_plan_says_before_that_a_file_that_was_replaced_would_be_refused(rooms: Path) -> None:
    (rooms / "case.yaml").write_text(FIXED)
    assert inside(rooms, "run", "case.yaml").code == 0
    (rooms / "case.yaml").write_text(FIXED.replace("out: out", "out: again"))
    (rooms / "days.csv").write_text(rows(2))
    told = inside(rooms, "plan", "case.yaml", "--json")
    assert (told.code, told.document["cost"]) == (4, "0")
    assert told.document["files_refused"].startswith("the files must hold what they held")
    assert "would be refused for its files" in inside(rooms, "plan", "case.yaml").out


@pytest.mark.parametrize(
    ("more", "said"),
    [("r1,early,late\n", "a key is there twice"), (",early,late\n", "must have a value in every row")],
    ids=["twice", "missing"],
)
def test_rows_that_a_key_does_not_name_once_lose_nothing_and_are_found_before(
    rooms: Path, more: str, said: str
) -> None:
    (rooms / "case.yaml").write_text(FIXED)
    (rooms / "days.csv").write_text(rows(0) + more)
    (rooms / "policy.yaml").write_text(yaml.safe_dump(yaml.safe_load(CASE)["policy"]))
    checked = inside(rooms, "check", "policy.yaml", "--rows", "days.csv", "--key", "room")
    assert checked.code == 0
    assert "For the curator only" in checked.out
    assert "true records by this key would be refused" in " ".join(checked.out.split())
    broken = inside(rooms, "run", "case.yaml")
    assert broken.code == 7
    assert "the rows could not be read to the end" in broken.err
    assert said in broken.err
    assert "Nothing was released. The ledger remembers that all of it is paid for: nothing is lost" in broken.err
    assert "and is lost" not in broken.err
    left = inside(rooms, "ledger", "show", "ledger.db", "--json").document["accounts"]
    (rooms / "days.csv").write_text(rows(0))
    assert inside(rooms, "run", "case.yaml").code == 0
    assert inside(rooms, "ledger", "show", "ledger.db", "--json").document["accounts"] == left
    again = inside(rooms, "check", "policy.yaml", "--rows", "days.csv", "--key", "room", "--json").document["key"]
    assert again == {"columns": ["room"], "rows": 60, "repeated": 0, "refused": None}


def test_a_leakage_plan_says_at_once_that_the_policy_hides_something_else(rooms: Path) -> None:
    other = CASE.replace("sensitive: {arrival: [late],", "sensitive: {arrival: [early],")
    (rooms / "case.yaml").write_text(other.replace("epsilon: planned", "epsilon: 0.01"))
    planned = inside(rooms, "plan", "leakage", "case.yaml")
    assert planned.code == 1
    assert "would be refused." in planned.out
    assert "makes the releases" not in planned.out
    assert "must take for sensitive what the policy hides of arrival: late" in planned.err
    ran = inside(rooms, "run", "case.yaml")
    assert ran.code == 1
    assert "must take for sensitive what the policy hides of arrival: late" in ran.err
