"""Variables in job files: what they stand for, and what they cannot do."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from tacit.errors import JobError, Refused
from tacit.jobs.job_file import Job, job_schema, read_job

JOB = """\
policy: {domain: {ward: {categories: ["${A}", south]}}, secrets: everything}
rows:
  - visits-${DATE}.csv
  - ${DATE}/$${DATE}.csv
dataset: visits
budget: ${BUDGET}
per_person: ${M}
person: id
releases:
  - name: north
    query: {count: "ward == '${WARD}'"}
    epsilon: 1/${PARTS}
"""
SET = {"DATE": "2024-05-01", "BUDGET": "4", "M": "2", "WARD": "south", "PARTS": "3"}


def read(folder: Path, text: str = JOB, **variables: str) -> Job:
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    return read_job(folder / "job.yaml", variables)


def test_a_variable_is_a_part_of_a_value_and_the_policy_has_none(tmp_path: Path) -> None:
    found = read(tmp_path, **SET)
    assert [Path(path).relative_to(tmp_path).as_posix() for path in found.rows] == [
        "visits-2024-05-01.csv",
        "2024-05-01/${DATE}.csv",
    ]
    assert (found.budget, found.per_person, found.releases[0].epsilon.denominator) == (4, 2, 3)
    assert "south" in str(found.releases[0].query)
    written = read(tmp_path, JOB.replace("${BUDGET}", "4").replace("${M}", "2").replace("${PARTS}", "3"), **DAY)
    assert found.asked == written.asked  # what is asked is what the file means
    assert "${A}" in found.policy.to_yaml()


def test_a_ledger_is_told_the_file_and_its_variables_but_for_those_of_its_address(tmp_path: Path) -> None:
    address = "ledger: postgresql://tacit:${LOGIN}@${HOST}/ledgers\n"
    found = read(tmp_path, JOB + address, **SET, LOGIN="word", HOST="db")
    assert found.label == "job.yaml BUDGET=4 DATE=2024-05-01 M=2 PARTS=3 WARD=south"


DAY = {name: SET[name] for name in ("DATE", "WARD")}


def test_what_is_set_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SET, "M": "3"}.items():
        monkeypatch.setenv(name, value)
    assert read(tmp_path).per_person == 3
    assert read(tmp_path, M="5").per_person == 5
    assert read(tmp_path).asked != read(tmp_path, DATE="2024-05-02").asked


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"WARD": None},
            "job.yaml:11: releases[0].query.count needs the variable WARD, which is not set. Say --set WARD",
        ),
        ({"DAET": "2024-05-01"}, "the job uses no variable DAET, which --set gives. Did you mean 'DATE'?"),
        ({"DATE": "secret\nledger: other.db"}, "job.yaml:3: rows[0] needs the variable DATE as one printable line."),
        ({"M": "two"}, "job.yaml:7: per_person must be a whole number"),
        ({"BUDGET": "{a: 1}"}, "job.yaml:6: budget must"),
    ],
)
def test_wrong_variables_are_refused(change: dict[str, str | None], sentence: str, tmp_path: Path) -> None:
    given = {name: value for name, value in {**SET, **change}.items() if value is not None}
    with pytest.raises(Refused) as refused:
        read(tmp_path, **given)
    assert sentence in str(refused.value)
    assert "secret" not in str(refused.value)


def test_an_editor_takes_a_variable_wherever_a_value_may_stand_but_not_in_the_policy() -> None:
    schema = jsonschema.Draft202012Validator(job_schema())
    job = yaml.safe_load(JOB) | {"xlsx": "${XLSX}", "decimal": "${SIGN}"}
    assert not list(schema.iter_errors(job))
    for wrong in ({"budget": "much"}, {"per_person": 1.5}, {"xlsx": "${}"}, {"decimal": ";"}):
        assert len(list(schema.iter_errors(job | wrong))) == 1, wrong
    assert list(schema.iter_errors(job | {"policy": {**job["policy"], "presence": "${PRESENCE}"}}))


def test_braces_without_a_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="dataset must name a variable after"):
        read(tmp_path, JOB.replace("dataset: visits", "dataset: ${the day}"), **SET)
