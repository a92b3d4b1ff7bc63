"""Every block of YAML in the documentation reads: policies as policies, jobs as jobs."""

from __future__ import annotations

import contextlib
import doctest
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from cli.shell import inside
from tacit.jobs.case_file import OPTIONS, Case
from tacit.jobs.job_file import Job, JobRelease, job_schema, read_job
from tacit.jobs.monitor_file import MONITOR_KEYS, file_keys
from tacit.jobs.table_file import TABLE_KEYS
from tacit.plan.questions import QUESTIONS
from tacit.plan.questions.written import KEYWORDS
from tacit.policy.keys import Keys
from tacit.policy.policy_file import POLICY_KEYS, policy_schema, read_policy, write_policy
from tacit.policy.where import where

DOCS = Path(__file__).resolve().parents[3] / "docs"
README = DOCS.parent / "README.md"
BLOCKS = {
    f"{name}:{text[: found.start()].count(chr(10)) + 2}": found[1]
    for name in ("files.md", "tour.md", "one_sided.md")
    for text in [(DOCS / name).read_text(encoding="utf-8")]
    for found in re.finditer(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
}
POLICIES = {place: text for place, text in BLOCKS.items() if "domain" in yaml.safe_load(text)}
JOBS = {place: text for place, text in BLOCKS.items() if place not in POLICIES}
CLINIC = next(text for text in POLICIES.values() if "name: clinic" in text)


def test_there_are_policies_and_jobs_in_all_pages():
    assert len(POLICIES) >= 3
    assert len(JOBS) >= 3
    assert {place.split(":")[0] for place in JOBS} == {"files.md", "tour.md", "one_sided.md"}


@pytest.mark.parametrize("place", POLICIES)
def test_a_policy_in_the_documentation_reads(place):
    policy = read_policy(POLICIES[place], file=place)
    assert read_policy(write_policy(policy)) == policy
    assert policy.describe()
    jsonschema.Draft202012Validator(policy_schema()).validate(yaml.safe_load(POLICIES[place]))


@pytest.mark.parametrize("place", JOBS)
def test_a_job_in_the_documentation_reads(place, tmp_path):
    (tmp_path / "clinic.policy.yaml").write_text(CLINIC, encoding="utf-8")
    (tmp_path / "job.yaml").write_text(JOBS[place], encoding="utf-8")
    job = read_job(tmp_path / "job.yaml")
    assert job.budget is None or job.cost <= job.budget
    jsonschema.Draft202012Validator(job_schema()).validate(yaml.safe_load(JOBS[place]))


def test_every_key_and_every_word_is_on_the_page():
    page = (DOCS / "files.md").read_text(encoding="utf-8")
    for schema in (policy_schema(), job_schema()):
        for key in schema["properties"]:
            assert f"`{key}`" in page, key
    for word in (*KEYWORDS, "everything", "attributes", "partition", "within", "pairs", "values", "records"):
        assert f"| {word} |" in page, word
    for fact in ("size", "marginal:", "count:"):
        assert f"  - {fact}" in page, fact


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        ("files.md", [POLICY_KEYS, Keys.of(Job), Keys.of(JobRelease)]),
        ("leakage.md", [(*Keys.of(Case), *OPTIONS)]),
        ("tables.md", [TABLE_KEYS]),
        ("monitors.md", [file_keys(), MONITOR_KEYS]),
    ],
)
def test_the_tables_of_keys_are_those_that_the_keys_make(page, tables):
    text = (DOCS / page).read_text(encoding="utf-8")
    _, *found = text.split(" | meaning | if left out |\n|---|---|---|\n")
    assert [table.split("\n\n")[0].split("\n") for table in found] == [[key.row() for key in keys] for keys in tables]


def test_the_table_of_queries_is_the_one_that_the_questions_make():
    page = (DOCS / "files.md").read_text(encoding="utf-8")
    table = page.split("| query | in YAML | answers |\n|---|---|---|\n")[1].split("\n\n")[0]
    assert table.split("\n") == [row for question in QUESTIONS for row in question.rows()]


def test_the_predicates_in_the_table_read():
    page = (DOCS / "files.md").read_text(encoding="utf-8").split("## The language")[1]
    domain = read_policy(CLINIC).domain
    for text in (
        "age < 18",
        "disease == 'hiv'",
        "18 <= age <= 64",
        "disease in ['flu', 'hiv']",
        "smoker",
        "visited.has('gym')",
        "clicked.has(7)",
        "place.row < 10",
        "place.column == 3",
    ):
        assert f"`{text}`" in page, text
        where(text).compile(domain)
    assert where("`marital status` == 'single'").columns() == {"marital status"}


def test_the_job_of_the_readme_runs_with_nothing_but_the_readme(tmp_path):
    text = README.read_text(encoding="utf-8")
    (job,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    before = text[: text.index(job)]
    _, written = re.findall(r"^```python\n(.*?)^```$", before, re.DOTALL | re.MULTILINE)
    (tmp_path / "job.yaml").write_text(job, encoding="utf-8")
    said: dict[str, object] = {}
    with contextlib.chdir(tmp_path):
        for example in doctest.DocTestParser().get_examples(before):
            exec(compile(example.source, "README.md", "exec"), said)  # noqa: S102 - our own page
        exec(compile(written, "README.md", "exec"), said)  # noqa: S102 - our own page
    assert inside(tmp_path, "plan", "job.yaml").code == 0
    assert inside(tmp_path, "run", "job.yaml").code == 0
