"""`tacit audit`: what it lists, audits, prints and writes, how it ends, and what it refuses."""

import json
import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from cli.shell import Outcome, files_in, inside
from tacit.audit.sampled_audits.subjects import HEADINGS
from tacit.audit.selfcheck.attacked_tables import AttackRow, attacked_tables
from tacit.audit.selfcheck.planted import planted
from tacit.audit.selfcheck.planted.tables import planted_tables
from tacit.audit.selfcheck.registry import MECHANISMS
from tacit.cli.audit import NEVER
from tacit.plan.choose import choose
from tacit.release.curator import PRIVATE

FEW = ("--samples", "20000")
KEYS = {
    *("mechanism", "what", "claimed_epsilon", "exact_loss", "lower_bound", "tightness", "verdict", "witness", "beyond"),
    *("samples", "alpha", "as_expected"),
}


def strict(outcome: Outcome) -> dict:
    """Return stdout as JSON without NaN and Infinity, which are no JSON."""

    def no(constant: str) -> None:
        raise AssertionError(constant)

    assert outcome.err == ""
    said = json.loads(outcome.out, parse_constant=no)
    if "audits" in said:
        assert all(set(row) == KEYS for row in said["audits"])
    return dict(said)


def test_list_names_everything(tmp_path: Path) -> None:
    outcome = inside(tmp_path, "audit", "list")
    assert (outcome.code, outcome.err) == (0, "")
    for name in (*MECHANISMS, *planted, *attacked_tables):
        assert f"  {name}" in outcome.out
    said = strict(inside(tmp_path, "audit", "list", "--json"))
    assert said["mechanisms"] == list(MECHANISMS)
    assert said["planted"] == {name: leak.mistake for name, leak in planted.items()}
    assert said["tables"] == {name: table.what for name, table in attacked_tables.items()}
    assert files_in(tmp_path) == {}


def test_a_mechanism_of_ours(tmp_path: Path) -> None:
    outcome = inside(tmp_path, "audit", "mechanism", "count-one-sided", *FEW)
    assert (outcome.code, outcome.err) == (0, f"{NEVER}\n")
    for heading in HEADINGS:
        assert heading in outcome.out
    assert "NONE_FOUND at alpha 1e-06 with 20,000 samples a side" in outcome.out
    assert "private" not in outcome.out + outcome.err
    (row,) = strict(inside(tmp_path, "audit", "mechanism", "count-one-sided", *FEW, "--json"))["audits"]
    assert (row["claimed_epsilon"], row["exact_loss"], row["verdict"]) == (1, [1, 1], "NONE_FOUND")
    assert 0.8 < row["tightness"] == row["lower_bound"] < 1
    assert (row["samples"], row["alpha"], row["as_expected"]) == (20_000, 1e-6, True)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", ["naive-suppression", "forked-noise-reuse", "randomised-response-second-coin"])
def test_a_planted_leak_is_found_and_exits_1(name: str, tmp_path: Path) -> None:
    outcome = inside(tmp_path, "audit", "mechanism", name, *FEW)
    assert outcome.code == 1
    assert "LEAK_FOUND: the loss is at least" in outcome.out
    assert "Not as expected" not in outcome.out
    said = strict(outcome := inside(tmp_path, "audit", "mechanism", name, *FEW, "--json"))
    assert (outcome.code, said["as_expected"], said["audits"][0]["verdict"]) == (1, True, "LEAK_FOUND")
    assert said["audits"][0]["exact_loss"] in (["infinite", "infinite"], [planted[name].exact_loss] * 2)


def test_a_question_under_a_policy(clinic: Path) -> None:
    policy = ("--policy", "clinic.policy.yaml", *FEW)
    outcome = inside(clinic, "audit", "mechanism", "histogram", *policy, "--epsilon", "0.5")
    assert (outcome.code, outcome.err) == (0, f"{NEVER}\n")
    assert "histogram(age)" in outcome.out
    (row,) = strict(inside(clinic, "audit", "mechanism", "count", *policy, "--json"))["audits"]
    assert (row["mechanism"], row["claimed_epsilon"], row["exact_loss"]) == ("count(age == 0)", 1, [1, 1])
    ask = ("--ask", "{count: \"disease == 'hiv'\"}", "--epsilon", "1/3")
    (row,) = strict(inside(clinic, "audit", "mechanism", "count", *policy, *ask, "--json"))["audits"]
    assert row["mechanism"] == "count(disease == 'hiv')"
    assert row["what"] == "one-sided geometric noise"
    low, high = row["exact_loss"]
    assert low < high
    assert row["claimed_epsilon"] == pytest.approx(1 / 3)
    assert row["as_expected"]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("kind", ["count", "histogram", "marginals", "cumulative", "ranges", "total", "below"])
def test_every_kind_of_question_can_be_audited_by_its_name(kind: str, clinic: Path) -> None:
    samples = ("--samples", "1000")
    outcome = inside(clinic, "audit", "mechanism", kind, "--policy", "clinic.policy.yaml", *samples, "--json")
    assert outcome.code == 0
    assert strict(outcome)["audits"][0]["verdict"] == "NONE_FOUND"


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("count-one-sidet",), "mechanism must be a name from `tacit audit list`; got 'count-one-sidet'. Did you mean"),
        (("nothing at all",), "mechanism must be a name from `tacit audit list`"),
        (("count-one-sided", "--epsilon", "2"), "--epsilon needs a policy; got '2'. Say --policy P.yaml as well."),
        (("count", "--ask", "count"), "--ask needs a policy"),
        (("count-one-sided", "--alpha", "2"), "alpha must lie between 1e-100 and 1; got 2.0. Use 1e-6."),
        (("count-one-sided", "--alpha", "nan"), "alpha must lie between"),
        (("count-one-sided", "--alpha", "1e-90"), "or more: with fewer no leak at all is found at epsilon 1"),
        (("masks-that-add-up", "--alpha", "1e-90"), "alpha must be above"),
        (("masks-that-ad-up",), "Did you mean 'masks-that-add-up'?"),
        (("count", "--policy", "clinic.policy.yaml", "--epsilon", "4"), "samples must be"),
        (("count", "--policy", "clinic.policy.yaml", "--epsilon", "40"), "epsilon must be smaller: no number of"),
        (("count", "--policy", "nowhere.yaml"), "nowhere.yaml"),
        (("histogran", "--policy", "clinic.policy.yaml"), "must be a kind of question; got 'histogran'. Did you mean"),
        (("top_k", "--policy", "clinic.policy.yaml", "--ask", "count"), "ask must be a question of the kind top_k"),
        (("count", "--policy", "clinic.policy.yaml", "--epsilon", "0"), "epsilon must lie above 0"),
        (("count", "--policy", "clinic.policy.yaml", "--epsilon", "much"), "epsilon must be a finite number"),
        (("histogram", "--policy", "clinic.policy.yaml", "--ask", "[: :"), "ask must be a question"),
        (("histogram", "--policy", "clinic.policy.yaml", "--ask", "histogram: [agee]"), "Did you mean 'age'?"),
        (("histogram", "--policy", "clinic.csv"), "clinic.csv"),
    ],
)
def test_what_cannot_be_audited_is_refused(args: tuple[str, ...], sentence: str, clinic: Path) -> None:
    assert sentence in inside(clinic, "audit", "mechanism", *args, "--samples", "1000").refusal()
    error = inside(clinic, "audit", "mechanism", *args, "--samples", "1000", "--json").error()
    assert error["rule"]


@pytest.mark.parametrize("args", [("mechanism", "count-one-sided", "--samples", "999"), ("mechanism",), ("nothing",)])
def test_wrong_usage(args: tuple[str, ...], tmp_path: Path) -> None:
    assert inside(tmp_path, "audit", *args).code == 2


CASE = """
policy:
  domain: {arrival: {categories: [ok, late]}, leaving: {categories: [ok, early]}}
  secrets: {values: {arrival: [late], leaving: [early]}}
dependence:
  counts: {file: earlier.csv, attributes: [arrival, leaving], smoothing: 0.5}
sensitive: {arrival: [late], leaving: [early]}
applications: {A: [arrival], B: [leaving]}
limit: 0.5
rows: rooms.csv
budget: 4
releases:
  - {name: a, query: {true_records: {columns: [arrival], key: [room], application: A}}, epsilon: 1}
  - {name: b, query: {true_records: {columns: [leaving], key: [room], application: B}}, epsilon: 1}
"""


@pytest.mark.slow
def test_a_case_is_audited_like_a_job_and_its_true_records_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(CASE, encoding="utf-8")
    (tmp_path / "earlier.csv").write_text("arrival,leaving\nok,ok\nlate,early\nok,early\n", encoding="utf-8")
    (tmp_path / "rooms.csv").write_text("room,arrival,leaving\n", encoding="utf-8")
    said = strict(inside(tmp_path, "audit", "job", "case.yaml", "--samples", "1000", "--json"))
    named = [row["mechanism"] for row in said["audits"]]
    assert named == ["a", "a, whole", "b", "b, whole", "true records, one after the other"]
    assert said["as_expected"]
    assert said["audits"][-1]["claimed_epsilon"] == 2


@pytest.mark.slow
def test_a_job_is_audited_without_its_rows(clinic: Path) -> None:
    """Each mechanism by itself, and each release from made-up rows to the record."""
    (clinic / "clinic.csv").unlink()
    one = """
policy:
  domain: {disease: {categories: [flu, hiv]}}
  secrets: {values: {disease: [hiv]}}
rows: clinic.csv
budget: 1
releases:
  - {name: hiv, query: {count: "disease == 'hiv'"}, epsilon: 0.3}
"""
    (clinic / "one.job.yaml").write_text(one, encoding="utf-8")
    before = files_in(clinic)
    outcome = inside(clinic, "audit", "job", "one.job.yaml", "--samples", "1000", "--output", "../audited")
    assert (outcome.code, outcome.err) == (0, f"{NEVER}\n")
    assert "\nhiv: NONE_FOUND" in outcome.out
    assert "\nhiv, whole: NONE_FOUND" in outcome.out
    assert "private" not in outcome.out + outcome.err
    assert files_in(clinic) == before
    page = (clinic / "../audited/audit.html").read_text(encoding="utf-8")
    assert "hiv, whole: NONE_FOUND" in page
    assert NEVER in page
    again = inside(clinic, "audit", "job", "one.job.yaml", "--output", "../audited")
    assert "--output must not exist yet" in again.err


DISCLOSING = """
policy:
  domain: {ward: {categories: [A, B]}, disease: {categories: [flu, hiv]}}
  secrets: {attributes: [disease]}
rows: patients.csv
budget: 1
releases:
  - {name: table, query: {histogram: [ward, disease]}, epsilon: 0.5}
"""


@pytest.fixture
def disclosing(tmp_path: Path) -> Path:
    rows = [("A", "hiv")] * 80 + [("A", "flu")] * 20 + [("B", "flu")] * 900
    (tmp_path / "patients.csv").write_text("ward,disease\n" + "".join(f"{w},{d}\n" for w, d in rows), encoding="utf-8")
    (tmp_path / "job.yaml").write_text(DISCLOSING, encoding="utf-8")
    return tmp_path


def test_what_a_job_would_disclose_is_for_the_curator(disclosing: Path) -> None:
    before = files_in(disclosing)
    refused = inside(disclosing, "audit", "disclosure", "job.yaml")
    assert (refused.code, refused.out) == (1, "")
    assert "--curator must be given: this audit opens the rows" in refused.err
    found = inside(disclosing, "audit", "disclosure", "job.yaml", "--curator")
    assert (found.code, found.err) == (0, "")
    assert " ".join(found.out.split()).startswith(PRIVATE)  # in lines as wide as the screen
    assert "ward=A -> disease=hiv: 80.0% of 100 people, 10.0 times the share of all" in found.out.replace("\n    ", " ")
    said = strict(inside(disclosing, "audit", "disclosure", "job.yaml", "--curator", "--json"))
    assert said["disclosures"] == 1
    assert said["private"].startswith("For the curator only")
    assert files_in(disclosing) == before
    drawn = inside(disclosing, "audit", "disclosure", "job.yaml", "--curator", "--chart", "c.svg", "--jump", "20")
    assert "\n0 disclosures in 2 groups" in drawn.out
    assert "For the curator only" in (disclosing / "c.svg").read_text(encoding="utf-8")
    assert inside(disclosing, "audit", "disclosure", "job.yaml", "--curator", "--chart", "c.png").code == 0
    assert (disclosing / "c.png").read_bytes()[:4] == b"\x89PNG"
    inside(disclosing, "audit", "disclosure", "job.yaml", "--curator", "--output", "page", "--jump", "5")
    page = (disclosing / "page/disclosure.html").read_text(encoding="utf-8")
    assert PRIVATE in page
    assert all(part in page for part in ("ward=A", "disease=hiv", "80.0%", "<svg"))
    odd = inside(disclosing, "audit", "disclosure", "job.yaml", "--curator", "--chart", "c.pdf")
    assert "--chart must be an .svg or a .png file" in odd.err
    again = inside(disclosing, "audit", "disclosure", "job.yaml", "--curator", "--chart", "c.svg")
    assert "--chart must be a new file" in again.err


@pytest.mark.slow
def test_a_job_as_data(clinic: Path) -> None:
    said = strict(inside(clinic, "audit", "job", "clinic.job.yaml", "--samples", "2000", "--json"))
    names = ["wards", "wards, whole", "hiv", "hiv, whole", "ages", "ages, whole"]
    assert [row["mechanism"] for row in said["audits"]] == names
    assert [row["claimed_epsilon"] for row in said["audits"]] == [0.1, 0.1, 0.3, 0.3, 0.4, 0.4]
    assert said["audits"][0]["exact_loss"] == [0, 0]  # nothing about wards is secret
    assert all("so many samples" in row["beyond"] for row in said["audits"][2:])
    assert said["as_expected"]


@pytest.mark.slow
def test_a_job_with_several_rows_of_a_person(clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that forgets how many rows of a person count is found, and the job exits 1."""
    job = """
policy:
  domain: {age: {integers: [0, 9]}}
  secrets: {attributes: [age]}
  person: id
  per_person: 3
rows: nobody.csv
order: day
budget: 1
releases:
  - {name: total, query: {total: age}, epsilon: 1}
"""
    (clinic / "visits.job.yaml").write_text(job, encoding="utf-8")
    few = ("--samples", "1000")
    assert inside(clinic, "audit", "job", "visits.job.yaml", *few).code == 0

    def careless(query: Any, policy: Any, epsilon: Any) -> Any:
        return replace(choose(query, policy.owned_by(policy.person, 1), epsilon), policy=policy)

    monkeypatch.setattr("tacit.release.planner.choose", careless)
    outcome = inside(clinic, "audit", "job", "visits.job.yaml", *few)
    assert outcome.code == 1
    assert "total, whole: LEAK_FOUND" in outcome.out
    assert "rows of one person, of which 3 count" in outcome.out


@pytest.mark.slow
def test_the_job_of_the_demo(tmp_path: Path) -> None:
    for name in ("adult.job.yaml", "adult.policy.yaml"):
        shutil.copy(str(files("tacit").joinpath("data", name)), tmp_path / name)
    outcome = inside(tmp_path, "audit", "job", "adult.job.yaml", "--samples", "1000", "--json")
    said = strict(outcome)
    assert (outcome.code, said["as_expected"]) == (0, True)
    assert len(said["audits"]) == 16
    for row in said["audits"]:
        if row["exact_loss"] is not None:
            assert row["exact_loss"][1] <= row["claimed_epsilon"] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("job", "nowhere.yaml"), "must exist"),
        (("job", "clinic.policy.yaml"), "clinic.policy.yaml"),
        (("job", "."), "must be a readable file"),
        (("job", "clinic.job.yaml", "--alpha", "0"), "alpha must lie between"),
        (("all", "--samples", "1000", "--alpha", "1e-90"), "samples must be"),
        (
            ("all", "--samples", "1000", "--write", "no/such/folder.md"),
            "--write must be a file in a folder that exists",
        ),
        (("all", "--samples", "1000", "--write", "."), "--write must be a file in a folder that exists"),
    ],
)
def test_files_that_are_not_there_are_refused_before_anything_is_drawn(
    args: tuple[str, ...], sentence: str, clinic: Path
) -> None:
    before = files_in(clinic)
    assert sentence in inside(clinic, "audit", *args).refusal()
    assert files_in(clinic) == before


def check_table(outcome: Outcome, page: str, ours: list[str], leaks: list[str], missed: set[str]) -> None:
    """Check a page without tables under attack, or with all of them."""
    assert outcome.err == f"{NEVER}\n"
    assert page.startswith("# Every mechanism and every planted leak, audited\n")
    assert "At most 2,000 samples a side, alpha 1e-06 each." in page
    page, _, attacks = page.partition("## Tables under attack")
    assert attacks.count("_FOUND |") in (0, len(attacked_tables))
    assert attacks.count("LEAK_FOUND |") in (0, len(planted_tables))
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(lines) == len(ours) + len(leaks) + 2
    for name in (*ours, *leaks):
        (line,) = [line for line in lines if line.startswith(f"| {name} |")]
        assert line.count("|") == len(HEADINGS) + 2
        assert ("LEAK_FOUND" in line) == (name in leaks and name not in missed)
        assert name in outcome.out
    assert "nan" not in page


def test_tables_under_attack_stand_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = ["estimates-from-masked-counts", "scales-published"]
    monkeypatch.setattr("tacit.audit.selfcheck.registry.names", lambda: ["count-one-sided", *tables])
    outcome = inside(tmp_path, "audit", "all", "--samples", "2000", "--write", "table.md")
    assert outcome.code == 0
    page = (tmp_path / "table.md").read_text(encoding="utf-8")
    titles = ["## Mechanisms of the package", "## Tables under attack", "## Planted tables"]
    assert [line for line in page.splitlines() if line.startswith("## ")] == titles
    assert "groups, alpha 1e-06 each." in page
    for heading in AttackRow.headings:
        assert heading in outcome.out
    said = strict(inside(tmp_path, "audit", "all", "--samples", "2000", "--json"))
    assert ([row["mechanism"] for row in said["audits"]], said["as_expected"]) == (["count-one-sided"], True)
    assert [(row["table"], row["verdict"]) for row in said["tables"]] == [
        (tables[0], "NONE_FOUND"),
        (tables[1], "LEAK_FOUND"),
    ]
    alone = inside(tmp_path, "audit", "mechanism", "scales-published")
    assert alone.code == 1
    assert "more than the 70% that the criterion allows" in alone.out


def test_some_of_them_in_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, leaks = ["count-two-sided", "items-cube", "place-decision"], ["naive-suppression", "bounds-from-data"]
    monkeypatch.setattr("tacit.audit.selfcheck.registry.names", lambda: [*ours, *leaks])
    outcome = inside(tmp_path, "audit", "all", "--samples", "2000", "--write", "table.md")
    assert outcome.code == 0
    check_table(outcome, (tmp_path / "table.md").read_text(encoding="utf-8"), ours, leaks, set())
    said = strict(inside(tmp_path, "audit", "all", "--samples", "2000", "--json"))
    assert [row["mechanism"] for row in said["audits"]] == [*ours, *leaks]
    assert said["as_expected"]


@pytest.mark.slow
def test_all_of_them_in_a_table(tmp_path: Path) -> None:
    """So few samples miss some of the leaks, and the command says so."""
    outcome = inside(tmp_path, "audit", "all", "--samples", "2000", "--write", "table.md")
    assert outcome.code == 1
    said = outcome.out.splitlines()[-1]
    assert said.startswith("Not as expected: ")
    missed = set(said.removeprefix("Not as expected: ").removesuffix(".").split(", "))
    assert missed <= set(planted)  # none of ours is accused
    page = (tmp_path / "table.md").read_text(encoding="utf-8")
    check_table(outcome, page, list(MECHANISMS), list(planted), missed)
