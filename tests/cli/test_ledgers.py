"""`tacit ledger`: grants, looks, and broken chains."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from cli.shell import inside, tacit
from tacit import Ledger
from tacit.cli import main


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    file = tmp_path / "ledger.db"
    with Ledger(file) as opened:
        opened.grant(dataset="clinic", epsilon=2)
        opened.grant(dataset="clinic", epsilon="1/3", analyst="ana")
        opened.charge(dataset="clinic", epsilon="0.25", analyst="ana", what="count()")
    return file


def tamper(ledger: Path) -> None:
    with sqlite3.connect(ledger) as db:
        (name,) = (row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE name LIKE '%entries'"))
        db.execute(f"UPDATE {name} SET epsilon = '1/100' WHERE number = 3")
    db.close()


def test_a_grant_begins_a_ledger_and_adds_up(tmp_path: Path) -> None:
    first = tacit(tmp_path, "ledger", "grant", "ledger.db", "--dataset", "clinic", "--epsilon", "1/3")
    assert (first.code, first.err) == (0, "")
    assert first.out == "Granted 1/3 to the total of clinic (entry 1). 1/3 may be spent now.\n"
    second = inside(tmp_path, "ledger", "grant", "ledger.db", "--dataset", "clinic", "--epsilon", "0.5", "--json")
    assert second.document["granted"]["epsilon"] == "1/2"
    assert second.document["remaining"] == "5/6"
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]


def test_a_cap_and_a_policy(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where, policy = str(clinic / "new.db"), str(clinic / "clinic.policy.yaml")
    grant = ["ledger", "grant", where, "--dataset", "clinic", "--epsilon", "1"]
    assert main([*grant, "--policy", policy]) == 0
    assert main([*grant, "--analyst", "ana"]) == 0
    assert "the cap of ana in clinic" in capsys.readouterr().out
    assert main([*grant, "--json"]) == 1  # without the policy of the first grant
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "LedgerError"
    assert main(["ledger", "show", where, "--json"]) == 0
    accounts = json.loads(capsys.readouterr().out)["accounts"]
    assert [(account["analyst"], account["granted"]) for account in accounts] == [(None, "1"), ("ana", "1")]
    assert accounts[0]["policy"] is not None


def test_show_says_what_remains(ledger: Path) -> None:
    outcome = tacit(ledger.parent, "ledger", "show", "ledger.db")
    assert (outcome.code, outcome.err) == (0, "")
    for expected in ("clinic", "ana", "1.75"):
        assert expected in outcome.out


def test_show_as_json(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show", str(ledger), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["accounts"][0] == {
        "dataset": "clinic",
        "analyst": None,
        "policy": None,
        "granted": "2",
        "spent": "1/4",
        "remaining": "7/4",
    }
    assert [(entry["kind"], entry["epsilon"]) for entry in said["entries"]] == [
        ("grant", "2"),
        ("grant", "1/3"),
        ("charge", "1/4"),
    ]
    assert main(["ledger", "show", str(ledger), "--dataset", "other"]) == 0
    assert capsys.readouterr().out == "No budget was granted to other yet.\n"


@pytest.mark.parametrize("command", ["show", "verify"])
def test_looking_never_begins_a_ledger(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", command, str(tmp_path / "nowhere.db")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_verify_exits_1_when_the_chain_is_broken(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "verify", str(ledger)]) == 0
    assert capsys.readouterr().out.startswith("Sound: 3 entries")
    assert main(["ledger", "verify", str(ledger), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    tamper(ledger)
    broken = tacit(ledger.parent, "ledger", "verify", "ledger.db")
    assert broken.code == 1
    assert broken.out.startswith("NOT sound: ")
    assert "3" in broken.out
    assert main(["ledger", "verify", str(ledger), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] is False
    assert said["problem"]


def test_nothing_is_granted_in_a_broken_ledger(ledger: Path) -> None:
    tamper(ledger)
    before = ledger.read_bytes()
    sentence = inside(ledger.parent, "ledger", "grant", "ledger.db", "--dataset", "clinic", "--epsilon", "1").refusal()
    assert "tacit ledger verify" in sentence
    assert ledger.read_bytes() == before


def test_a_wrong_epsilon_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "grant", str(tmp_path / "new.db"), "--dataset", "d", "--epsilon", "much", "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["key"], error["given"]) == ("epsilon", "much")


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("not a database at all, just some text\n" * 50, encoding="utf-8")
    assert "notes.db" in inside(tmp_path, "ledger", "verify", "notes.db").refusal()
