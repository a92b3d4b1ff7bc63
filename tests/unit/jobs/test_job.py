"""Job files: every refusal has a line and a fix, nothing is charged before everything is checked."""

import os
import shutil
import textwrap
from fractions import Fraction
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import pandas as pd
import pytest
import yaml

import tacit as tc
from tacit.errors import BudgetExceeded, DataRefused, JobError, LedgerError, PlanError, PolicyError, Refused
from tacit.jobs.job_file import Job, JobRelease, job_schema, read_job
from tacit.jobs.job_run import check_rows, plan_job, run_job
from tacit.policy.keys import Keys

POLICY = """\
name: clinic
domain:
  age: {integers: [0, 99]}
  disease: {categories: [flu, hiv]}
secrets:
  - within: {age: 5}
  - attributes: [disease]
"""
JOB = """\
name: clinic demo
policy: clinic.policy.yaml
rows: people.csv
budget: 1.0
ledger: ledger.db
analyst: ana
out: results
releases:
  - {name: ages, query: {histogram: [age]}, epsilon: 0.5, nonnegative: true}
  - name: young
    query: {count: "age < 30"}
    epsilon: 1/10
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # refusals call a file as it was called
    (tmp_path / "clinic.policy.yaml").write_text(POLICY)
    people = pd.DataFrame({"age": [3, 31, 47, 31], "disease": ["flu", "hiv", "flu", "flu"], "id": [1, 2, 3, 4]})
    people.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def written(folder: Path, text: str = JOB, name: str = "demo.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return Path(os.path.relpath(path))


def job_with(folder: Path, **changes: Any) -> Path:
    """Write the job with some keys changed; None takes a key away."""
    said = {**yaml.safe_load(JOB), **changes}
    return written(folder, yaml.safe_dump({key: value for key, value in said.items() if value is not None}))


def one(name: Any = "ages", **changes: Any) -> list[dict[str, Any]]:
    return [{"name": name, "query": {"histogram": ["age"]}, "epsilon": 0.5, **changes}]


# ---- reading


def test_a_job_file_says_everything(folder: Path) -> None:
    job = read_job(written(folder))
    assert (job.name, job.dataset, job.analyst, job.file) == ("clinic demo", "people", "ana", "demo.yaml")
    assert job.rows == (str(folder / "people.csv"),)
    assert job.ledger == str(folder / "ledger.db")
    assert job.out == folder / "results"
    assert job.policy == tc.Policy.load(folder / "clinic.policy.yaml")
    assert [release.name for release in job.releases] == ["ages", "young"]
    assert job.releases[0].nonnegative
    assert not job.releases[0].consistent
    assert job.releases[1].query == tc.count("age < 30")


def test_amounts_are_exactly_what_was_written(folder: Path) -> None:
    job = read_job(written(folder))
    assert [release.epsilon for release in job.releases] == [Fraction(1, 2), Fraction(1, 10)]
    assert job.cost == Fraction(3, 5)


def test_what_is_left_out_has_a_default(folder: Path) -> None:
    job = read_job(job_with(folder, name=None, ledger=None, analyst=None, out=None))
    assert (job.name, job.ledger, job.analyst, job.person, job.per_person) == ("demo", None, None, None, None)
    assert job.out == folder / "demo-release"


def test_a_policy_may_stand_inside_the_job(folder: Path) -> None:
    assert read_job(job_with(folder, policy=yaml.safe_load(POLICY))).policy == tc.Policy.from_yaml(POLICY)


def test_paths_are_relative_to_the_job_file_not_to_the_caller(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = folder / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    written(folder)
    assert read_job("../demo.yaml").rows[0].endswith("people.csv")
    assert len(run_job(read_job("../demo.yaml"))) == 2


def test_a_folder_that_looks_like_a_pattern_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "data[1]*"
    folder.mkdir()
    (folder / "clinic.policy.yaml").write_text(POLICY)
    pd.DataFrame({"age": [1], "disease": ["flu"]}).to_csv(folder / "part-1.csv", index=False)
    job = read_job(job_with(folder, rows="part-*.csv", dataset="parts", ledger=None))
    assert set(run_job(job)) == {"ages", "young"}


def test_several_files_need_a_name_for_the_data_set(folder: Path) -> None:
    assert len(read_job(job_with(folder, rows=["a.csv", "b.csv"], dataset="both")).rows) == 2
    for rows in (["a.csv", "b.csv"], "part-*.csv"):
        with pytest.raises(JobError, match=r"several files, so the data set needs a name.*Add `dataset"):
            read_job(job_with(folder, rows=rows))


def test_the_demo_comes_with_the_package(folder: Path) -> None:
    job = read_job(job_with(folder, rows="demo:adult"))
    assert job.dataset == "adult"
    assert Path(job.rows[0]).is_file()
    with pytest.raises(JobError, match=r"must be data that come with Tacit; got 'demo:adlut'. Did you mean 'adult'"):
        read_job(job_with(folder, rows="demo:adlut"))
    with pytest.raises(JobError, match="must be data that come with Tacit"):
        read_job(job_with(folder, rows="demo:../../secret"))


def test_a_password_is_not_shown(folder: Path) -> None:
    job = read_job(job_with(folder, ledger="postgresql://ana:hunter2@host/db"))
    assert "hunter2" not in repr(job)


@pytest.mark.parametrize(
    ("old", "new", "kind", "sentence"),
    [
        (
            "budget: 1.0",
            "bugdet: 1.0",
            JobError,
            "demo.yaml:4: bugdet is not a key that may stand here. Did you mean 'budget'?",
        ),
        (
            "epsilon: 1/10",
            "epsilon: -1",
            PlanError,
            "demo.yaml:12: releases[1].epsilon must lie above 0 and at most 1000; got -1. Typical: 0.1 to 2.",
        ),
        (
            '{count: "age < 30"}',
            '{count: "agee < 30"}',
            PlanError,
            "demo.yaml:11: releases[1].query.count must be an attribute of the domain; got 'agee'. Did you mean 'age'?",
        ),
        (
            "{histogram: [age]}",
            "{histgram: [age]}",
            PlanError,
            "demo.yaml:9: releases[0].query must be a known query; got 'histgram'. Did you mean 'histogram'?",
        ),
        (
            "policy: clinic.policy.yaml",
            "policy: clinic.yaml",
            JobError,
            "demo.yaml:2: policy must be a policy file; got 'clinic.yaml'. Check the path; it is relative to the job "
            "file.",
        ),
        (
            "nonnegative: true",
            "nonnegative: maybe",
            JobError,
            "demo.yaml:9: releases[0].nonnegative must be true or false; got 'maybe'. Write true or false.",
        ),
        (
            "name: young",
            "name: AGES",
            JobError,
            "demo.yaml:10: releases[1].name must be the name of one release only; got 'AGES'. Rename it; the first is "
            "in line 9.",
        ),
        (
            "rows: people.csv\n",
            "",
            JobError,
            "demo.yaml:1: the job must have the key rows; got ['analyst', 'budget', 'ledger', 'name', 'out', 'policy', "
            "'releases']. Add `rows: ..`.",
        ),
        (
            "analyst: ana",
            "per_person: 3",
            JobError,
            "demo.yaml:6: per_person needs the key person. Name the column that says whose row it is.",
        ),
    ],
)
def test_a_refusal_is_one_sentence_with_line_and_fix(
    folder: Path, old: str, new: str, kind: type[Refused], sentence: str
) -> None:
    assert old in JOB
    with pytest.raises(kind) as caught:
        read_job(written(folder, JOB.replace(old, new)))
    assert str(caught.value) == sentence


def test_what_is_wrong_in_an_inner_policy_is_a_policy_error_with_the_line_of_the_job(folder: Path) -> None:
    text = JOB.replace(
        "policy: clinic.policy.yaml", "policy:\n  domain:\n    age: {integers: [0, 99]}\n  secrets: {within: {agee: 5}}"
    )
    with pytest.raises(PolicyError, match=r"^demo.yaml:5: policy.secrets.*Did you mean 'age'"):
        read_job(written(folder, text))


def test_a_missing_budget_is_refused(folder: Path) -> None:
    with pytest.raises(JobError, match="must have the key budget or the key ledger"):
        read_job(job_with(folder, budget=None, ledger=None))


def test_a_missing_or_foreign_file_is_refused(folder: Path) -> None:
    with pytest.raises(JobError, match="must exist"):
        read_job(folder / "nothing.yaml")
    with pytest.raises(JobError, match="readable file"):
        read_job(folder)
    (folder / "latin.yaml").write_bytes(b"name: x\nrows: caf\xe9.csv\n")
    with pytest.raises(JobError, match=r"latin.yaml:2: the job must be a text in UTF-8"):
        read_job(folder / "latin.yaml")


@pytest.mark.parametrize(
    "name",
    [
        *("../ages", "a/b", "a\\b", "..", ".ages", "a.b", "", " ages", "ages ", "-ages", "_ages", "a\tb", "a:b"),
        *("CON", "lpt1", "x" * 101, "{{ages}}", "a\nb", "a\u202eb"),
    ],
)
def test_a_name_that_is_no_file_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(JobError, match=r"releases\[0\]\.name"):
        read_job(job_with(folder, releases=one(name)))


@pytest.mark.parametrize("name", ["ages", "Ages by 10", "a-b_c", "2024", 2024, "größe"])
def test_ordinary_names_are_kept(folder: Path, name: Any) -> None:
    assert read_job(job_with(folder, releases=one(name))).releases[0].name == str(name)


@pytest.mark.parametrize(
    "query",
    [
        5,
        [],
        {},
        "nothing",
        {"histogram": 5},
        {"histogram": []},
        {"histogram": [["age"]]},
        {"count": {"where": 5}},
        {"total": ["age"]},
        {"ranges": {"attribute": "age", "ranges": [[1, 2, 3]]}},
        {"marginals": {"sets": 5}},
        {"marginals": {"ways": "two"}},
        {"histogram": ["age"], "count": None},
        {"cumulative": {"atribute": "age"}},
        {"count": "__import__('os')"},
        {"total": "disease"},
        {"histogram": {"age": 1}},
        {"count": 0.5},
        None,
    ],
)
def test_no_query_can_crash_the_reader(folder: Path, query: Any) -> None:
    with pytest.raises(Refused, match=r"^demo.yaml:\d+: releases\[0\]\.query"):
        read_job(job_with(folder, releases=[{"name": "q", "query": query, "epsilon": 1}]))


@pytest.mark.parametrize("epsilon", [0, -1, "nan", "inf", "1e999", "abc", [1], {}, 1001, "1/0", True])
def test_no_epsilon_can_crash_the_reader(folder: Path, epsilon: Any) -> None:
    with pytest.raises(Refused, match=r"^demo.yaml:\d+: releases\[0\]\.epsilon"):
        read_job(job_with(folder, releases=one(epsilon=epsilon)))


# ---- planning


def test_a_plan_needs_no_rows_and_makes_no_ledger(folder: Path) -> None:
    (folder / "people.csv").unlink()
    explanations = plan_job(read_job(written(folder))).explanations.values()
    assert [said.remaining for said in explanations] == [Fraction(1, 2), Fraction(2, 5)]
    assert not (folder / "ledger.db").exists()
    assert not (folder / "results").exists()


def test_a_plan_that_costs_too_much_is_shown_as_such(folder: Path) -> None:
    explanations = plan_job(read_job(job_with(folder, budget=0.55))).explanations.values()
    assert [said.remaining for said in explanations] == [Fraction(1, 20), Fraction(-1, 20)]


def test_a_plan_starts_from_what_the_ledger_has_left(folder: Path) -> None:
    with tc.Ledger(folder / "ledger.db") as ledger:
        ledger.grant(dataset="people", epsilon=2)
        ledger.charge(dataset="people", analyst="ana", epsilon="1.3")
    job = read_job(written(folder))
    assert plan_job(job).explanations["ages"].remaining == Fraction(7, 10) - Fraction(1, 2)
    # the ledger has more than the job may spend
    assert plan_job(read_job(job_with(folder, budget=0.6))).explanations["ages"].remaining == Fraction(1, 10)


def test_a_new_ledger_needs_a_budget(folder: Path) -> None:
    with pytest.raises(JobError, match="must be given, since the ledger is new") as refused:
        plan_job(read_job(job_with(folder, budget=None)))
    assert f"`tacit ledger grant {folder / 'ledger.db'} --dataset people --epsilon 0.6`" in str(refused.value)


@pytest.mark.parametrize("url", ["sqlite:///{}/new.db", "{}/new.db"])
def test_a_ledger_that_is_not_begun_is_planned_with_the_budget(folder: Path, url: str) -> None:
    job = read_job(job_with(folder, ledger=url.format(folder)))
    assert plan_job(job).explanations["ages"].remaining == Fraction(1, 2)
    assert not (folder / "new.db").exists()


# ---- running


def spent(job: Job) -> Fraction:
    assert job.ledger is not None
    if not Path(job.ledger).exists():
        return Fraction(0)
    with tc.Ledger(job.ledger, create=False) as ledger:
        return sum((account.spent for account in ledger.accounts()), Fraction(0))


def test_all_releases_are_made_in_order_and_charged(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    kept: list[str] = []
    job = read_job(written(folder))
    records = run_job(job, on_progress=lambda *step: told.append(step), on_release=lambda name, _: kept.append(name))
    assert list(records) == kept == ["ages", "young"]
    assert told == [("ages", 0, 2), ("young", 1, 2), ("done", 2, 2)]
    assert (records["ages"].values >= 0).all()
    assert records["ages"].certificate["post_processing"] == ["nonnegative"]
    assert records["young"].certificate["dataset"] == "people"
    assert spent(job) == job.cost


def test_a_job_that_does_not_fit_is_refused_before_anything_is_charged(folder: Path) -> None:
    job = read_job(job_with(folder, budget=0.55))
    with pytest.raises(BudgetExceeded) as caught:
        run_job(job)
    assert str(caught.value) == (
        "demo.yaml: releases must not cost more in all than what remains, 0.55; got 0.6. Ask for less, or grant more "
        "budget. Nothing was charged."
    )
    assert not (folder / "ledger.db").exists()


def test_a_job_that_does_not_fit_into_its_ledger_is_refused(folder: Path) -> None:
    run_job(read_job(written(folder)))
    job = read_job(written(folder))
    with pytest.raises(BudgetExceeded, match=r"what remains, 0\.4; got 0\.6"):
        run_job(job)
    assert spent(job) == job.cost


def test_a_folder_that_is_not_free_is_refused_before_anything_is_charged(folder: Path) -> None:
    job = read_job(written(folder))
    job.out.mkdir()
    (job.out / "old.csv").write_text("1")
    with pytest.raises(JobError, match=r"^demo.yaml:7: out must be a new or empty folder; .* half written"):
        run_job(job)
    (job.out / "finished.json").write_text("{}")
    with pytest.raises(JobError, match=r"must be a new or empty folder; this one has .* never overwritten"):
        run_job(job)
    assert spent(job) == 0


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"rows": "nothing.csv"}, JobError),
        ({"rows": "nothing-*.csv", "dataset": "parts"}, JobError),
        ({"person": "nobody"}, JobError),
        ({"item": "id"}, DataRefused),
        ({"ledger": "nowhere/ledger.db"}, LedgerError),
    ],
)
def test_what_only_the_rows_can_tell_is_refused_before_anything_is_charged(
    folder: Path, changes: dict[str, Any], kind: type[Exception]
) -> None:
    job = read_job(job_with(folder, **changes))
    with pytest.raises(kind):
        run_job(job)
    assert spent(job) == 0


def test_a_later_release_that_cannot_be_made_is_refused_before_the_first_is_charged(folder: Path) -> None:
    domain = {name: {"integers": [0, 99]} for name in ("age", "x", "y")}
    policy = {"domain": domain, "secrets": "everything"}
    pd.DataFrame({"age": [1], "x": [1], "y": [1]}).to_csv(folder / "people.csv", index=False)
    pairs = {"name": "pairs", "query": "marginals", "epsilon": 0.1, "consistent": True}
    job = read_job(job_with(folder, policy=policy, person="age", per_person=2, releases=[*one(), pairs]))
    with pytest.raises(PlanError, match=r"^demo.yaml: release 'pairs'.*consistent"):
        run_job(job)
    assert spent(job) == 0


def test_people_may_own_several_rows(folder: Path) -> None:
    rows = pd.DataFrame({"id": [1, 1, 2], "age": [5, 6, 7], "disease": ["flu", "flu", "hiv"], "at": [2, 1, 1]})
    rows.to_csv(folder / "people.csv", index=False)
    job = read_job(job_with(folder, person="id", per_person=2, order="at", releases=one()))
    record = run_job(job)["ages"]
    assert (record.plan.policy.person, record.plan.policy.per_person) == ("id", 2)
    assert "up to 2 rows that fit" in record.certificate["protects"]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("in_policy", [False, True])
def test_jobs_by_another_order_are_not_charged_to_one_account(folder: Path, in_policy: bool) -> None:
    rows = {"id": [1, 1, 2], "age": [5, 60, 7], "disease": ["flu", "flu", "hiv"], "at": [2, 1, 1], "until": [1, 2, 1]}
    pd.DataFrame(rows).to_csv(folder / "people.csv", index=False)

    def job(order: str | None, out: str) -> Job:
        said = {} if order is None else {"order": order}
        policy = {**yaml.safe_load(POLICY), "person": "id", **(said if in_policy else {})}
        return read_job(job_with(folder, policy=policy, out=out, releases=one(), **({} if in_policy else said)))

    first = job("at", "a")
    assert first.about().order == "at"
    record = run_job(first)["ages"]
    assert record.certificate["policy"]["order"] == "at"
    paid = spent(first)
    for other in ("until", None):
        with pytest.raises(LedgerError, match="protects less"):
            run_job(job(other, "b"))
        assert spent(first) == paid
    run_job(job("at", "c"))
    assert spent(first) == 2 * paid


def test_a_column_that_the_policy_names_is_looked_for_before_anything_is_charged(folder: Path) -> None:
    policy = {**yaml.safe_load(POLICY), "person": "age", "order": "nothing"}
    job = read_job(job_with(folder, policy=policy, releases=one()))
    with pytest.raises(JobError, match="order must be a column of the rows"):
        run_job(job)
    assert spent(job) == 0


def test_whose_rows_they_are_may_stand_in_the_policy_and_the_job_may_say_otherwise(folder: Path) -> None:
    policy = {**yaml.safe_load(POLICY), "person": "id", "per_person": 3}
    rows = pd.DataFrame({"id": [1, 1, 2], "age": [5, 6, 7], "disease": ["flu", "flu", "hiv"], "at": [2, 1, 1]})
    rows.to_csv(folder / "people.csv", index=False)
    for changes, person, per_person in (
        ({}, "id", 3),
        ({"per_person": 2}, "id", 2),
        ({"order": "at"}, "id", 3),
        ({"person": "at"}, "at", 1),
        ({"person": "at", "per_person": 2}, "at", 2),
    ):
        job = read_job(job_with(folder, policy=policy, ledger=None, releases=one(), **changes))
        assert (job.person, job.per_person) == (changes.get("person"), changes.get("per_person"))
        assert (job.about().person, job.about().per_person) == (person, per_person)
        # what is planned is what is released
        (said,), record = plan_job(job).explanations.values(), run_job(job)["ages"]
        assert record.plan.policy == said.plan.policy == job.about()
        assert record.plan.rmse == said.plan.rmse
    with pytest.raises(JobError, match=r"person must be the name of a column"):
        read_job(job_with(folder, person=""))


def test_a_link_is_no_folder_for_results(folder: Path) -> None:
    job = read_job(written(folder))
    (folder / "elsewhere").mkdir()
    for target in ("elsewhere", "nowhere"):
        job.out.unlink(missing_ok=True)
        job.out.symlink_to(folder / target)
        with pytest.raises(JobError, match=r"^demo.yaml:7: out must be a folder of its own, not a link; got 'results'"):
            run_job(job)
    assert spent(job) == 0


def test_rows_that_do_not_exist_are_refused_with_the_line(folder: Path) -> None:
    with pytest.raises(JobError) as caught:
        check_rows(read_job(written(folder, JOB.replace("people.csv", "nobody.csv"))))
    assert str(caught.value) == (
        "demo.yaml:3: rows must be a file that exists; got 'nobody.csv'. Check the path; it is relative to the job "
        "file."
    )
    listed = JOB.replace("rows: people.csv", "dataset: parts\nrows:\n  - people.csv\n  - part-*.csv")
    with pytest.raises(JobError, match=r"^demo.yaml:6: rows must match a file; got 'part-\*.csv'"):
        check_rows(read_job(written(folder, listed)))
    shutil.copyfile(folder / "people.csv", folder / "part-1.csv")
    check_rows(read_job(written(folder, listed)))
    with pytest.raises(JobError, match=r"^demo.yaml:6: rows\[1\] must not be given twice"):
        read_job(written(folder, listed.replace("part-*.csv", "people.csv")))


def test_a_file_is_called_as_it_was_given(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "job.yaml").write_text("buget: 1\n")
    with pytest.raises(JobError, match=r"^sub/job.yaml:1: buget is not a key"):
        read_job("sub/job.yaml")
    with pytest.raises(JobError, match=r"^sub/nothing.yaml must exist"):
        read_job("sub/nothing.yaml")


CANARY = "CANARY-7391"


TABLES = [
    *(f"name,disease\n{CANARY},hiv\n", f'"{CANARY}","x"\n"{CANARY}","y"\n', f"name;disease\n{CANARY};*{CANARY}\n"),
    *(f"name,note\n1,a: {CANARY}\n", f"- {CANARY}\n- {CANARY}\n", f"'{CANARY}\n"),
]
# these may be job files with a mistake, and mistakes are named; but not if the file is called a table
DOUBTFUL = [f"{CANARY}: x,disease\n{CANARY},hiv\n", f"!{CANARY},1\n2,3\n", f"{CANARY}\n", f"*{CANARY},1\n"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, text) for name in ("rows.txt", "rows.yaml") for text in TABLES),
        *((name, text) for name in ("rows.csv", "ROWS.PARQUET", "rows.csv.gz") for text in [*TABLES, *DOUBTFUL]),
    ],
)
def test_a_table_given_as_a_job_is_never_repeated(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(JobError) as caught:
        read_job(name)
    assert CANARY not in str(caught.value)
    assert CANARY not in str(caught.value.given)
    if name not in ("rows.txt", "rows.yaml"):
        assert str(caught.value).startswith(f"{name} looks like a table, not a job file")


# ---- the schema


def test_the_schema_accepts_what_the_reader_accepts(folder: Path) -> None:
    schema = job_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(JOB), schema)
    jsonschema.validate({**yaml.safe_load(JOB), "policy": yaml.safe_load(POLICY)}, schema)
    for query in ("count", {"count": None}, {"cumulative": "age"}, {"total": {"attribute": "age", "where": "age < 3"}}):
        read_job(job_with(folder, releases=one(query=query)))
        jsonschema.validate({**yaml.safe_load(JOB), "releases": one(query=query)}, schema)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "change",
    [
        *({"bugdet": 1}, {"releases": []}, {"budget": 0}, {"policy": {"domain": {}}}, {"releases": one("a/b")}),
        *({"releases": one(query={"histgram": ["age"]})}, {"per_person": 0}, {"rows": []}),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(folder: Path, change: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        read_job(job_with(folder, **change))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**yaml.safe_load(JOB), **change}, job_schema())


def test_schema_and_reader_know_the_same_keys() -> None:
    schema = job_schema()
    assert list(schema["properties"]) == [key.name for key in Keys.of(Job)]
    assert schema["required"] == ["policy", "rows", "releases"]
    release = schema["properties"]["releases"]["items"]
    assert list(release["properties"]) == [key.name for key in Keys.of(JobRelease)]
    assert release["required"] == ["name", "query"]


@pytest.mark.parametrize("kind", [Job, JobRelease])
def test_every_key_is_the_field_that_it_stands_on(kind: type) -> None:
    hints = get_type_hints(kind, include_extras=True)
    named = [name for name, hint in hints.items() if hasattr(hint, "__metadata__")]
    assert named == [key.name for key in Keys.of(kind)]


def test_a_job_of_true_records_costs_nothing_the_second_time(tmp_path):
    rows = pd.DataFrame({"id": range(50), "ill": [at % 3 == 0 for at in range(50)]})
    rows.to_csv(tmp_path / "people.csv", index=False)
    text = """
        policy: {domain: {ill: flag}, secrets: {values: {ill: [true]}}}
        rows: people.csv
        budget: 1
        ledger: ledger.db
        releases:
          - {name: ill, query: {true_records: {columns: [ill], key: [id]}}, epsilon: 1}
        """
    (tmp_path / "job.yaml").write_text(textwrap.dedent(text))
    first, again = (run_job(read_job(tmp_path / "job.yaml"))["ill"] for _ in range(2))
    assert again.frame.equals(first.frame)
    planned = plan_job(read_job(tmp_path / "job.yaml"))
    assert planned.cost == 0
    assert planned.explanations["ill"].remaining == 0
    (tmp_path / "more.yaml").write_text(textwrap.dedent(text).replace("epsilon: 1}", "epsilon: 1.5}"))
    with pytest.raises(BudgetExceeded):
        run_job(read_job(tmp_path / "more.yaml"))


@pytest.mark.parametrize("name", ["x" * 300, "y/" * 2500 + "z"])
@pytest.mark.parametrize("key", ["policy", "rows", "out", "ledger"])
def test_a_name_that_no_file_can_have_is_refused_by_its_key(key: str, name: str, tmp_path: Path) -> None:
    said = {"policy": "{domain: {age: {integers: [0, 9]}}, secrets: everything}", "rows": "people.csv", key: name}
    lines = [f"{word}: {value}" for word, value in said.items()]
    path = tmp_path / "a.job.yaml"
    path.write_text(
        "\n".join([*lines, "dataset: d", "budget: 1", "releases: [{name: a, query: {count: }, epsilon: 1}]"]) + "\n"
    )
    with pytest.raises(JobError, match=f"{key} must be a path, with names of at most 255 bytes and 4,095 in all"):
        read_job(path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("rows: people.csv", "data: people.csv", "demo.yaml:3: data is not a key that may stand here. Say `rows`."),
        ("rows: people.csv", "rows: SELECT * FROM people", "demo.yaml:3: rows must name files, not a query."),
    ],
)
def test_what_newcomers_write_gets_the_word_that_they_need(folder: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(JobError) as refused:
        read_job(written(folder, JOB.replace(old, new)))
    assert str(refused.value).startswith(sentence)
