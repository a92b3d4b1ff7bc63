"""Releases of a job are asked by accuracy or share the budget by weights, which is known before anything is paid."""

from __future__ import annotations

import json
from fractions import Fraction

import jsonschema
import pytest
import yaml

from tacit.cli import main
from tacit.errors import Refused
from tacit.jobs.job_file import job_schema, read_job
from tacit.jobs.job_run import plan_job, run_job
from tacit.ledger.ledger import Ledger

POLICY = """
domain:
  age: {integers: [0, 9]}
  ill: flag
secrets: [taking_part]
"""


@pytest.fixture
def job_of(tmp_path):
    """Return what writes a job with these releases and returns its path."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "people.csv").write_text("age,ill\n" + "3,true\n5,false\n" * 20)

    def write(*releases, **keys):
        named = [{"name": f"r{at}", "query": {"histogram": "age"}, **one} for at, one in enumerate(releases)]
        job = {"policy": "policy.yaml", "rows": "people.csv", "budget": 1, "releases": named} | keys
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in job.items() if value is not None}))
        return path

    return write


def test_what_is_asked_by_accuracy_comes_first_and_the_rest_is_shared_by_weight(job_of):
    job = read_job(job_of({"epsilon": 0.1}, {"error": 20}, {"within": 20, "level": 0.9}, {}, {"weight": 2}))
    plans = plan_job(job).plans
    assert 19.8 <= plans[1].rmse <= 20
    assert plans[2].half_width(0.9) <= 20 < plans[2].half_width(0.95)
    assert plans[0].epsilon == Fraction(1, 10)
    assert plans[4].epsilon == 2 * plans[3].epsilon
    assert job.cost == 1  # exactly
    assert set(run_job(job)) == {"r0", "r1", "r2", "r3", "r4"}


def test_releases_without_any_key_share_the_budget_evenly(job_of):
    assert [one.epsilon for one in read_job(job_of({}, {}, {})).releases] == [Fraction(1, 3)] * 3


@pytest.mark.parametrize(
    ("releases", "keys", "words"),
    [
        ([{"epsilon": 1, "error": 20}], {}, "releases[0].error must not be given beside epsilon: each of them"),
        ([{"error": 20, "within": 20}], {}, "releases[0].within must not be given beside error"),
        ([{"error": 20, "weight": 2}], {}, "releases[0].weight is for releases that share what the others leave"),
        ([{"epsilon": 0.5, "weight": 2}], {}, "releases[0].weight is for releases that share what the others leave"),
        ([{"error": 20, "level": 0.9}], {}, "releases[0].level belongs to within; got 0.9"),
        ([{"error": -1}], {}, "releases[0].error must lie above 0; got -1"),
        ([{"weight": 0}], {}, "releases[0].weight must lie above 0"),
        ([{"within": [1]}], {}, "releases[0].within must be a number; got [1]"),
        (
            [{"error": 0.1}],
            {},
            "releases[0].error cannot be reached with what remains of the budget: epsilon 1 reaches",
        ),
        ([{"epsilon": 1}, {"error": 20}], {}, "releases[1].error cannot be reached, since no budget remains"),
        ([{"epsilon": 1}, {}], {}, "releases[1].name has no share of the budget 1, since the other releases cost 1"),
        (
            [{}],
            {"budget": None, "ledger": "l.db"},
            "releases[0].name must say what it costs (epsilon, error or within)",
        ),
    ],
)
def test_contradictions_and_what_cannot_be_reached_are_refused_by_line(job_of, releases, keys, words):
    path = job_of(*releases, **keys)
    with pytest.raises(Refused) as refused:
        read_job(path)
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"{path}:")
    assert not (path.parent / "l.db").exists()


@pytest.mark.parametrize(
    "release", [{"epsilon": 1, "error": 2}, {"error": 1, "within": 1}, {"weight": 1, "error": 1}, {"level": 0.9}]
)
def test_the_schema_knows_which_keys_exclude_each_other(job_of, release):
    job = yaml.safe_load(job_of({"within": 20, "level": 0.9}, {"weight": 2}, {}).read_text())
    jsonschema.validate(job, job_schema())
    job["releases"][0] = {"name": "a", "query": "count", **release}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(job, job_schema())


def test_the_command_line_says_what_the_budget_reaches_and_charges_nothing(job_of, capsys):
    path = job_of({"error": 0.5}, ledger="ledger.db")
    assert main(["run", str(path)]) != 0
    assert "reaches 1.357; got 0.5. Say error=1.357 or more" in " ".join(capsys.readouterr().err.split())
    assert not (path.parent / "ledger.db").exists()
    with Ledger(path.parent / "ledger.db") as ledger:
        ledger.grant(dataset="people", epsilon="0.3")
    assert main(["run", str(job_of({"error": 2, "name": "a"}, {"epsilon": 0.1, "name": "b"}, ledger="ledger.db"))]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "release 'a': error cannot be reached with what remains of the budget: epsilon 0.2 reaches" in said
    assert main(["plan", "--json", str(job_of({"error": 5}))]) == 0
    (release,) = json.loads(capsys.readouterr().out)["releases"]
    assert 4.95 <= release["expected_rmse"] <= 5
