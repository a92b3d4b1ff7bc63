"""`tacit check` and `tacit init`."""

import json
from pathlib import Path

import pytest

from cli.conftest import POLICY, rows, write_rows
from cli.shell import files_in, inside
from tacit import Policy
from tacit.cli import main


def test_check_says_in_plain_words_what_a_policy_protects(clinic: Path) -> None:
    before = files_in(clinic)
    outcome = inside(clinic, "check", "clinic.policy.yaml")
    assert outcome.code == 0
    assert outcome.err == ""
    for expected in ("policy clinic", "what is protected", "not protected", "disease being hiv", "ward"):
        assert expected in outcome.out.lower()
    assert files_in(clinic) == before


def test_check_as_json(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(clinic / "clinic.policy.yaml"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    keys = "policy fingerprint person per_person order item protects examples public warnings knowledge"
    assert set(said) == set(keys.split())
    assert said["fingerprint"] == Policy.load(clinic / "clinic.policy.yaml").fingerprint
    assert {example["protected"] for example in said["examples"]} == {True, False}


def test_check_says_what_it_costs_that_something_is_known(clinic: Path) -> None:
    known = POLICY.replace("{age: 5}", "{age: 90}") + "known:\n  - marginal: [age]\n"
    (clinic / "clinic.policy.yaml").write_text(known, encoding="utf-8")
    said = " ".join(inside(clinic, "check", "clinic.policy.yaml").out.split())
    assert "knowing the histogram of age multiplies the noise by 100 (age " in said
    assert "Secrets that leave it alone: {values: {disease: [hiv]}} (100 times less noise)" in said
    (cost,) = inside(clinic, "check", "clinic.policy.yaml", "--json").document["knowledge"]
    assert (cost["step"], cost["step_without"], cost["times"]) == (200, 2, 100)


def test_check_says_how_far_apart_two_records_are(clinic: Path) -> None:
    said = inside(clinic, "check", "clinic.policy.yaml", "--pair", "age=30", "age=42")
    assert said.code == 0
    assert "3 secret edges." in said.out
    assert "age 30 -> age 35 -> age 40 -> age 42" in said.out
    assert "exp(3 times epsilon)" in said.out
    document = inside(clinic, "check", "clinic.policy.yaml", "--pair", "age=30", "age=42", "--json").document
    assert (document["distance"], document["distance_back"]) == (3, 3)
    assert [record["age"] for record in document["path"]] == [30, 35, 40, 42]
    assert document["assumed"] == ["disease", "ward"]
    assert "Assumed for both: disease flu, ward " in said.out
    assert "From age 30 to age 42:" in said.out
    absent = inside(clinic, "check", "clinic.policy.yaml", "--pair", "age=30", "absent", "--json").document
    assert (absent["cover"], absent["distance"], absent["path"]) == (None, None, [])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("thirty", "must be written as name=value"),
        ("agee=30", "Did you mean 'age'?"),
        ("age=[30]", "age must be a whole number"),
        ("age=30}", "--pair: age must be a whole number; got '30}'"),
        ("age=", "--pair: age must have a value. For instance age=30."),
        ("age=30,age=31", "--pair: age must be given once"),
        ("age=300", "--pair: age must be a whole number from 0 to 99; got 300"),
    ],
)
def test_a_record_that_is_none_is_refused(clinic: Path, written: str, expected: str) -> None:
    assert expected in inside(clinic, "check", "clinic.policy.yaml", "--pair", written, "age=42").refusal()


def test_a_mistyped_key_is_refused_with_its_line_and_the_nearest_key(clinic: Path) -> None:
    (clinic / "clinic.policy.yaml").write_text(POLICY.replace("secrets:", "secerts:"), encoding="utf-8")
    sentence = inside(clinic, "check", "clinic.policy.yaml").refusal()
    assert sentence.startswith("clinic.policy.yaml:6: secerts ")
    assert sentence.endswith("Did you mean 'secrets'?")


def test_an_unknown_attribute_is_refused_as_json(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (clinic / "clinic.policy.yaml").write_text(POLICY.replace("{age: 5}", "{agee: 5}"), encoding="utf-8")
    assert main(["check", str(clinic / "clinic.policy.yaml"), "--json"]) == 1
    said = capsys.readouterr()
    assert said.err == ""
    error = json.loads(said.out)["error"]
    assert (error["kind"], error["file"], error["line"]) == ("PolicyError", "clinic.policy.yaml", 7)
    assert error["fix"] == "Did you mean 'age'?"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    outcome = inside(tmp_path, "check", "nowhere.yaml", "--json")
    assert outcome.code == 1
    assert outcome.error()["rule"] == "must exist"
    assert list(tmp_path.iterdir()) == []


def test_init_drafts_a_policy_and_names_what_to_review_without_values(tmp_path: Path) -> None:
    write_rows(tmp_path / "people.csv", [*rows(), "31,CANARY-7391,north"])
    outcome = inside(tmp_path, "init", "people.csv")
    assert outcome.code == 0
    assert outcome.err == ""
    for column in ("age", "disease", "ward"):
        assert f"  {column}\n" in outcome.out
    assert "check policy.yaml --rows people.csv" in outcome.out
    assert "policy.yaml:" in outcome.out
    assert "CANARY" not in outcome.out
    draft = tmp_path / "policy.yaml"
    assert Policy.load(draft).name == "people"
    before = draft.read_bytes()
    assert "must not exist yet" in inside(tmp_path, "init", "people.csv").refusal()
    assert draft.read_bytes() == before


def test_init_as_json(clinic: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clinic)
    assert main(["init", "clinic.csv", "--out", "new.yaml", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["policy_file"] == "new.yaml"
    assert [found["column"] for found in said["review"]] == ["age", "disease", "ward"]
    lines = Path("new.yaml").read_text(encoding="utf-8").splitlines()
    assert all("REVIEW" in lines[found["line"] - 1] for found in said["review"])
    assert said["undeclared"] == []


def test_init_refuses_what_it_cannot_read_or_write(
    clinic: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clinic)
    before = files_in(clinic)
    assert main(["init", "nowhere.csv"]) == 5
    assert "'nowhere.csv' must exist" in capsys.readouterr().err
    assert main(["init", "clinic.csv", "--out", "no/such/folder.yaml"]) == 1
    assert "must be a file that can be written" in capsys.readouterr().err
    assert files_in(clinic) == before
