"""Selections in job files: what reads, what is refused and where, and what is published."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
import yaml

import tacit as tc
from tacit.jobs.job_file import job_schema, read_job
from tacit.jobs.job_run import plan_job
from tacit.plan.question import resolve
from tacit.plan.questions.written import from_document
from tacit.report.job_folder import publish

JOB = """\
policy:
  domain:
    clicked: {items: 30, first: 1}
    age: {integers: [0, 99], otherwise: clip}
  secrets: {values: {clicked: [1]}}
rows: clicks.csv
person: user
item: clicked
budget: 10
releases:
  - {name: most, query: {top_k: {attribute: clicked, k: 5}}, epsilon: 1}
  - {name: young, query: {top_k: {attribute: clicked, k: 3, where: "age < 50"}}, epsilon: 1}
  - {name: often, query: {above: {attribute: clicked, threshold: 40, at_most: 4}}, epsilon: 1}
  - {name: verdicts, query: {above: {attribute: clicked, threshold: 40, at_most: 4, values: false}}, epsilon: 1}
  - {name: each, query: {above: {attribute: clicked, threshold: %s, at_most: 4}}, epsilon: 1}
  - {name: rare, query: {below: {item: [clicked, 30], threshold: 100}}, epsilon: 1}
  - {name: not rare, query: {below: {where: "clicked.has(1)", threshold: 5}}, epsilon: 1}
""" % [20 + item for item in range(30)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    clicks = [(user, item, user % 100) for item in range(1, 31) for user in range(0, 600, item)]
    pd.DataFrame(clicks, columns=["user", "clicked", "age"]).to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    return Path(os.path.relpath(folder / "job.yaml"))


def test_a_job_with_selections_is_planned_and_published(folder):
    job = read_job(written(folder, JOB))
    jsonschema.Draft202012Validator(job_schema()).validate(yaml.safe_load(JOB))
    plans = plan_job(job).plans
    assert [plan.answers for plan in plans] == [5, 3, 30, 30, 30, 1, 1]
    out = publish(job)
    most = pd.read_csv(out / "most.csv")
    assert list(most.columns) == ["clicked", "value", "lower", "upper"]
    assert most["clicked"].tolist()[:2] == [1, 2]
    often = pd.read_csv(out / "often.csv")
    assert list(often.columns) == ["clicked", "verdict", "value"]
    assert (often["verdict"] == "above").sum() <= 4
    page = (out / "report.html").read_text(encoding="utf-8")
    for said in (
        "The 5 most frequent items of clicked",
        "Items of clicked that at least 40 people have",
        "Whether fewer than 100 people are picked, where clicked has 30",
        "is never wrong",
        "certainly below",
    ):
        assert said in page, said
    certificate = json.loads((out / "often.certificate.json").read_text())
    assert certificate["query"] == {"above": {"attribute": "clicked", "threshold": 40, "at_most": 4}}
    assert len(certificate["terms"]) == 2
    for name in ("most", "often", "verdicts", "each", "rare", "not rare"):
        assert (out / f"{name}.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    "said",
    [
        {"top_k": {"attribute": "clicked", "k": 5}},
        {"top_k": {"attribute": "clicked", "k": 5, "where": "age < 50"}},
        {"above": {"attribute": "clicked", "threshold": 40, "at_most": 4}},
        {"above": {"attribute": "age", "threshold": 40, "at_most": 4, "values": False}},
        {"above": {"attribute": "clicked", "threshold": list(range(1, 31)), "at_most": 4}},
        {"below": {"where": "clicked.has(1)", "threshold": 5}},
    ],
)
def test_what_a_query_writes_reads_back(said, folder):
    domain = read_job(written(folder, JOB)).policy.domain
    assert resolve(from_document(said), domain).document() == said


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("k: 5}", "k: 50}", "job.yaml:11: releases[0].query.top_k.k must be from 1 to 30"),
        ("k: 5}", "k: none}", "job.yaml:11: releases[0].query.top_k.k must be a whole number from 1; got 'none'"),
        ("clicked, k: 5}", "clicks, k: 5}", "must be an attribute of the domain; got 'clicks'"),
        ("k: 5}", "many: 5}", "must be a known key; got 'many'"),
        (", k: 5}", "}", "must say k"),
        ("threshold: 40, at_most: 4}}", "threshold: 0, at_most: 4}}", "threshold must be a whole number from 1; got 0"),
        ("threshold: 40, at_most: 4}}", "threshold: 40}}", "must say at_most"),
        (
            "threshold: 40, at_most: 4}}",
            "threshold: [4, 5], at_most: 2}}",
            "or 30: one for each of the items of clicked",
        ),
        ("item: [clicked, 30]", "item: [clicked, 31]", "must be an item from 1 to 30; got 31"),
        ("item: [clicked, 30]", "item: clicked", "must be (attribute, item); got 'clicked'"),
        ("values: false", "values: maybe", "must be true or false; got 'maybe'"),
    ],
)
def test_refusals_name_the_line_the_rule_and_the_value(old, new, sentence, folder):
    assert old in JOB
    with pytest.raises(tc.Refused) as refused:
        read_job(written(folder, JOB.replace(old, new, 1)))
    assert sentence in str(refused.value)
    assert str(refused.value).startswith("job.yaml:1")


def test_the_schema_refuses_what_the_reader_refuses():
    schema = jsonschema.Draft202012Validator(job_schema())
    for wrong in (
        {"top_k": {"attribute": "a"}},
        {"above": {"attribute": "a", "threshold": 0, "at_most": 1}},
        {"below": 3},
    ):
        job = {**yaml.safe_load(JOB), "releases": [{"name": "x", "query": wrong, "epsilon": 1}]}
        assert not schema.is_valid(job), wrong
