"""`tacit publish table`: a file in, a folder out; wrong input is one sentence and costs nothing."""

import csv
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

import tacit as tc
from cli.shell import files_in, inside
from tacit.jobs.table_file import read_table_job
from tacit.report.job_folder import PublishError
from tacit.report.table_folder import publish_table

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
    assert made.code == 0
    assert "No ledger: this budget holds for this run only.\n" in made.err
    assert "another run does not know of this table" in made.err
    assert "each record keeps its value with probability 0.5" in made.out
    assert made.out.splitlines()[-1] == "Published. The table, its certificate and this report are in job-table."
    assert sorted(files_in(clinic / "job-table")) == ["certificate.json", "finished.json", "report.html", "table.csv"]
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
    assert "What is not prevented" in (clinic / "job-table" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("retention: 0.5", "retention: 2"), "retention must lie strictly between 0 and 1"),
        (("retention: 0.5", "retention: 0.99"), "table must not cost more in all than what remains, 2"),
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
    (clinic / "job-table" / "note.txt").write_text("mine", encoding="utf-8")
    assert "must be a new or empty folder" in inside(clinic, "publish", "table", "job.yaml").refusal()
    assert files_in(clinic / "job-table") == {"note.txt": b"mine"}


def test_a_second_table_is_refused_and_the_plan_says_so(clinic: Path) -> None:
    (clinic / "job.yaml").write_text(WITH_LEDGER, encoding="utf-8")
    made = inside(clinic, "publish", "table", "job.yaml")
    assert made.code == 0
    assert "ledger" not in made.err
    asked = WITH_LEDGER.replace("ledger:", "out: second\nledger:") + "  lam: 0.3\n  delta: 0.3\n"
    (clinic / "job.yaml").write_text(asked, encoding="utf-8")
    before = spent(clinic)
    for option in ((), ("--plan",)):
        refused = inside(clinic, "publish", "table", "job.yaml", *option).refusal()
        assert "must not be in two tables: of data set 'people' there is a table of ill by ward already" in refused
    assert spent(clinic) == before
    assert not (clinic / "second").exists()
    (clinic / "job.yaml").write_text(asked + "  again: true\n", encoding="utf-8")
    assert inside(clinic, "publish", "table", "job.yaml").code == 0
    assert "no (lambda, delta) criterion is promised any more" in (clinic / "second" / "report.html").read_text(
        encoding="utf-8"
    )
    assert [one["kind"] for one in inside(clinic, "ledger", "show", "clinic.db", "--json").document["entries"]] == [
        "grant",
        *["charge", "table"] * 2,
    ]


def spent(clinic: Path) -> str:
    """Return what the ledger says is spent of the rows."""
    (account,) = inside(clinic, "ledger", "show", "clinic.db", "--json").document["accounts"]
    return str(account["spent"])


WITH_LEDGER = JOB.replace("budget: 2", "budget: 4\nledger: clinic.db")


REFUSED = (
    (("ledger:", "out: people.csv/sub\nledger:"), "out must be a folder that can be made"),
    (("rows: people.csv", 'rows: "p*.csv"'), "the data set needs a name"),
    (("rows: people.csv", "rows: [people.csv, people.csv]"), "must not be given twice"),
    (("rows: people.csv", "rows: nobody.csv"), "must be a file that exists"),
    (("ledger:", "per_person: 2\nledger:"), "per_person needs the key person"),
    (("ledger:", "person: id\nledger:"), "person must be a column of the rows"),
    (("ledger:", "releases: []\nledger:"), "releases"),
)


def test_what_a_job_refuses_a_table_refuses_before_the_charge(clinic: Path) -> None:
    (clinic / "job.yaml").write_text(WITH_LEDGER, encoding="utf-8")
    assert inside(clinic, "publish", "table", "job.yaml").code == 0
    before = spent(clinic)
    (clinic / "job-table").rename(clinic / "first")
    for change, sentence in REFUSED:
        (clinic / "job.yaml").write_text(WITH_LEDGER.replace(*change), encoding="utf-8")
        assert sentence in inside(clinic, "publish", "table", "job.yaml").refusal()
    assert spent(clinic) == before
    assert not (clinic / "job-table").exists()


def test_rows_of_several_files_and_of_people(clinic: Path) -> None:
    for half in "xy":
        rows = "".join(f"{n},{'ab'[n % 2]},{('flu', 'hiv', 'none')[n % 3]}\n" for n in range(50))
        (clinic / f"{half}.csv").write_text("id,ward,ill\n" + rows, encoding="utf-8")
    job = JOB.replace("rows: people.csv", "rows: [x.csv, y.csv]\ndataset: halves\nperson: id")
    (clinic / "job.yaml").write_text(job, encoding="utf-8")
    made = inside(clinic, "publish", "table", "job.yaml", "--json")
    assert (made.code, made.document["dataset"]) == (0, "halves")
    lines = list(csv.DictReader((clinic / "job-table" / "table.csv").open(encoding="utf-8")))
    assert sum(float(line["count"]) for line in lines) == 50  # one row of each person


def test_a_plan_says_cost_and_error_and_spends_nothing(clinic: Path) -> None:
    (clinic / "job.yaml").write_text(WITH_LEDGER, encoding="utf-8")
    planned = inside(clinic, "publish", "table", "job.yaml", "--plan", "--json")
    assert planned.document["cost"] == str(Fraction(planned.document["cost"]))
    assert float(Fraction(planned.document["cost"])) == pytest.approx(math.log(4), abs=1e-9)
    assert planned.document["remaining"] == "4"
    # 1,000 people, a third each: coins of 2/3 and of 1/6 (twice), over a retention of 1/2
    variance = 1000 * (2 / 9 + 2 * 5 / 36) / 3 / 0.25
    assert planned.document["expected"][-1]["people"] == 1000
    assert planned.document["expected"][-1]["error"] == pytest.approx(math.sqrt(variance))
    words = inside(clinic, "publish", "table", "job.yaml", "--plan").out
    assert "Nothing was spent, no row was opened." in words
    assert not (clinic / "clinic.db").exists()
    assert not (clinic / "job-table").exists()


def test_a_table_that_could_not_be_written_says_what_is_lost(clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clinic / "job.yaml").write_text(WITH_LEDGER, encoding="utf-8")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tacit.report.table_folder.write_table", full)
    asked = read_table_job(clinic / "job.yaml")
    with pytest.raises(PublishError, match=r"no space left on device.*Budget was spent"):
        publish_table(asked)
    monkeypatch.undo()
    with pytest.raises(tc.JobError, match="which was paid for"):
        publish_table(asked)


def test_the_schema_knows_what_the_reader_reads(clinic: Path) -> None:
    schema = inside(clinic, "schema", "table").document
    checker = Draft202012Validator(schema)
    checker.check_schema(schema)
    good = yaml.safe_load(JOB)
    assert checker.is_valid(good)
    good["table"] |= {"lam": 0.3, "delta": 0.3, "method": "best", "groups": {"ward": {"a": "x", "b": "x"}}}
    assert checker.is_valid(good)
    for wrong in ({"lam": 0.3}, {"epsilon": 1}, {"method": "best"}, {"publik": ["ward"]}):
        bad = yaml.safe_load(JOB)
        bad["table"] |= wrong
        assert not checker.is_valid(bad)
    assert not checker.is_valid({**yaml.safe_load(JOB), "releases": []})


KINDS = """\
domain:
  age: {integers: [0, 90]}
  smokes: flag
  born: {dates: [2024-01-01, 2024-03-31], by: month}
  fever: {decimals: [36.0, 36.5], step: 0.1}
  level: {categories: [1, 2, "a..b"]}
  ill: {categories: [flu, hiv]}
secrets: {attributes: [ill]}
"""
KINDS_JOB = """\
policy: kinds.policy.yaml
rows: people.csv
budget: 2
table:
  public: [age, smokes, born, fever, level]
  sensitive: ill
  retention: 0.5
  groups:
"""


def test_groups_are_of_values_as_policies_write_them(tmp_path: Path) -> None:
    (tmp_path / "kinds.policy.yaml").write_text(KINDS, encoding="utf-8")
    job = tmp_path / "job.yaml"
    job.write_text(
        KINDS_JOB + "    age: {0..17: child, 18..64: adult, 65..89: old, 90: old}\n"
        "    smokes: {true: any, false: any}\n"
        "    born: {2024-01..2024-02: winter, 2024-03: spring}\n"
        "    fever: {36.0: low, 36.1..36.5: high}\n"
        "    level: {1: 1, 2: 1, a..b: other}\n",
        encoding="utf-8",
    )
    maps = read_table_job(job).plan.merges.maps
    assert {value: maps["age"][value] for value in (0, 17, 18, 64, 65, 90)} == {
        0: "child",
        17: "child",
        18: "adult",
        64: "adult",
        65: "old",
        90: "old",
    }
    assert maps["smokes"] == {True: "any", False: "any"}
    assert maps["born"] == {"2024-01": "winter", "2024-02": "winter", "2024-03": "spring"}
    assert maps["fever"] == {36.0: "low", **dict.fromkeys((36.1, 36.2, 36.3, 36.4, 36.5), "high")}
    assert maps["level"] == {1: "1", 2: "1", "a..b": "other"}
    (tmp_path / "people.csv").write_text(
        "age,smokes,born,fever,level,ill\n17,true,2024-01-09,36.1,1,flu\n18,false,2024-03-01,36.5,2,hiv\n",
        encoding="utf-8",
    )
    made = inside(tmp_path, "publish", "table", "job.yaml")
    assert made.code == 0
    lines = list(csv.DictReader((tmp_path / "job-table" / "table.csv").open(encoding="utf-8")))
    assert {(line["age"], line["born"], line["level"]) for line in lines} == {
        ("child", "winter", "1"),
        ("adult", "spring", "1"),
    }


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("age: {0..17: child, 18..89: adult}", "must say what every value of 'age' becomes; got 'nothing for 90'"),
        ("age: {0..17: child, 17..90: adult}", "must not say twice what a value becomes; got 17"),
        ("age: {17..0: child}", "must be a list of values or a range like '0..17'"),
        ("age: {0..91: child}", "must be a whole number from 0 to 90; got 91"),
        ("age: {young: child}", "must be a whole number; got 'young'"),
        ("smokes: {maybe: any}", "must be true or false; got 'maybe'"),
        ("born: {2025-01: later}", "must be a month from 2024-01 to 2024-03"),
        ("level: {3: x}", "must be one of the categories; got 3"),
        ("ages: {0..90: x}", "must be about public columns; got 'ages'"),
        ("age: [0, 90]", "must be a mapping"),
        ("age: {0..90: [x]}", "must be one value"),
    ],
)
def test_groups_that_do_not_fit_are_refused_with_their_line(groups: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "kinds.policy.yaml").write_text(KINDS, encoding="utf-8")
    (tmp_path / "people.csv").write_text("age\n", encoding="utf-8")
    job = tmp_path / "job.yaml"
    job.write_text(KINDS_JOB + f"    {groups}\n", encoding="utf-8")
    with pytest.raises(tc.TacitError) as refused:
        read_table_job(job)
    said = str(refused.value)
    assert words in said
    assert re.search(r"job\.yaml:[89]: table\.groups", said)
    assert "nan" not in said


def test_a_range_of_more_values_than_a_map_may_list_is_refused_before_it_is_written_out(tmp_path: Path) -> None:
    most = 10**12  # nobody lives to see these in a list
    (tmp_path / "kinds.policy.yaml").write_text(KINDS.replace("[0, 90]", f"[0, {most}]"), encoding="utf-8")
    (tmp_path / "people.csv").write_text("age\n", encoding="utf-8")
    (tmp_path / "job.yaml").write_text(KINDS_JOB + f"    age: {{0..17: child, 18..{most}: adult}}\n", encoding="utf-8")
    with pytest.raises(tc.TacitError) as refused:
        read_table_job(tmp_path / "job.yaml")
    said = str(refused.value)
    assert "table.groups.age must be about columns of at most 1,000,000 values" in said
    assert re.search(r"job\.yaml:[89]: .*; got 'age'\. Declare it in coarser steps", said)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("retention: 0.5, epsilon: 1", "table must have one of retention, epsilon, rho; got ['retention', 'epsilon']"),
        ("", "table must have one of retention, epsilon, rho; got ['public', 'sensitive']"),
        ("retention: 1", "table.retention must lie strictly between 0 and 1; got 1"),
        ("retention: .nan", "table.retention must be a finite number; got '.nan'"),
        ("retention: 0.5, lam: 5, delta: 0.3", "table.lam must be at most 1 + (1 - p) / (m p) = 1.33333; got 5"),
        ("retention: 0.5, tails: each", "table needs lam and delta"),
        ("retention: 0.5, lam: 0.3, delta: 0.3, tails: both", "table.tails must be one of each, together; got 'both'"),
        (
            "retention: 0.5, lam: 0.3, delta: 0.3, tails: each, method: retention",
            "table.tails must be 'together' for 'retention' here",
        ),
        ("retention: 0.5, lam: 0.3, delta: 1", "table.delta must lie between 0 and 1; got 1"),
    ],
)
def test_what_a_file_asks_for_is_checked_before_anything_is_paid(table: str, words: str, clinic: Path) -> None:
    (clinic / "bad.yaml").write_text(
        "policy: clinic.policy.yaml\nrows: people.csv\nbudget: 2\n"
        f"table: {{public: [ward], sensitive: ill, {table}}}\n",
        encoding="utf-8",
    )
    with pytest.raises(tc.TacitError) as refused:
        read_table_job(clinic / "bad.yaml")
    said = str(refused.value)
    assert words.partition(" = ")[0] in said
    assert words.partition("; got")[2] in said
    assert "bad.yaml:4:" in said


def test_a_secret_with_one_value_is_named(clinic: Path) -> None:
    one = POLICY.replace("[flu, hiv, none]", "[flu]")
    (clinic / "clinic.policy.yaml").write_text(one, encoding="utf-8")
    with pytest.raises(
        tc.TacitError, match=r"table\.sensitive must have at least two values: .*; got \['ill'\]\. List"
    ):
        read_table_job(clinic / "job.yaml")


def test_a_plan_says_its_cost_as_people_write_it(clinic: Path) -> None:
    said = inside(clinic, "publish", "table", "job.yaml", "--plan").out
    assert said.startswith("table of ill by ward: costs 1.38629436112 of 2.")


def test_a_table_that_keeps_each_tail_says_so_everywhere(clinic: Path) -> None:
    (clinic / "job.yaml").write_text(f"{JOB}  lam: 0.3\n  delta: 0.3\n  tails: each\n", encoding="utf-8")
    planned = inside(clinic, "publish", "table", "job.yaml", "--plan")
    made = inside(clinic, "publish", "table", "job.yaml")
    certificate = (clinic / "job-table" / "certificate.json").read_text(encoding="utf-8")
    report = (clinic / "job-table" / "report.html").read_text(encoding="utf-8")
    for said in (planned.out, made.out, certificate, report):
        assert "(each tail, as Definition 8 asks)" in said
