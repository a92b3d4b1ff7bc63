"""`tacit ledger`: grants, looks, and broken chains."""

import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

from cli.shell import inside
from tacit import Categories, Domain, Ledger, Policy, Session, secrets, true_records
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
    first = inside(tmp_path, "ledger", "grant", "ledger.db", "--dataset", "clinic", "--epsilon", "1/3")
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
    outcome = inside(ledger.parent, "ledger", "show", "ledger.db")
    assert (outcome.code, outcome.err) == (0, "")
    for expected in ("clinic", "ana", "1.75"):
        assert expected in outcome.out


def test_show_says_who_when_and_what_in_80_columns(ledger: Path) -> None:
    with Ledger(ledger) as opened:
        opened.reserve(
            dataset="clinic",
            charges=[("1/100", "marginals(age, disease, ward; ways 2)" * 3), ("1/50", "count()")],
            analyst="a rather long name of an analyst",
            run="f00",
            job="yearly",
        )
        today = opened.entries()[0].time[:10]
    outcome = inside(ledger.parent, "ledger", "show", "ledger.db", COLUMNS="80")
    assert (outcome.code, outcome.err) == (0, "")
    tables = outcome.out.partition("Run f00")[0]
    assert max(map(len, tables.splitlines())) <= 80
    assert "\u2026" not in tables  # nothing is cut
    for expected in (today, "ana", "count()", "+2", "0.25", "granted", "everyone", "0.02"):
        assert expected in tables
    assert "Run f00 of job 'yearly' paid 0.03 (entries 4 to 5) and has not ended" in outcome.out
    with Ledger(ledger) as opened:
        opened.ended("f00", lost=True)
    some = inside(ledger.parent, "ledger", "show", "ledger.db", "--last", "1")
    assert "4 earlier: --last 5, or --json." in some.out
    assert "and broke off: what it had not written is lost." in some.out
    assert inside(ledger.parent, "ledger", "show", "ledger.db", "--json").document["unfinished_runs"] == [
        {"run": "f00", "job": "yearly", "first": 4, "last": 5, "state": "lost"}
    ]


def test_a_rerun_under_a_weaker_policy_is_refused_although_the_grant_named_none(clinic: Path) -> None:
    job, policy = clinic / "clinic.job.yaml", clinic / "clinic.policy.yaml"
    job.write_text(job.read_text().replace("budget: 1\n", ""))
    grant = ("ledger", "grant", "ledger.db", "--dataset", "clinic", "--epsilon", "2")
    assert inside(clinic, *grant).code == 0
    assert inside(clinic, "run", "clinic.job.yaml").code == 0
    policy.write_text(policy.read_text().replace("age: 5", "age: 1"))
    job.write_text(job.read_text().replace("out: results", "out: again"))
    sentence = inside(clinic, "run", "clinic.job.yaml").refusal()
    assert "the release's policy protects less than the one the total of dataset 'clinic' is counted under" in sentence
    assert "Nothing was charged" in sentence
    assert sorted(path.name for path in clinic.iterdir() if path.is_dir()) == ["results"]
    assert inside(clinic, *grant).code == 0  # more budget, still without naming the policy


@pytest.mark.parametrize("edit", ["SET epsilon = '1/1000'", "SET analyst = NULL", "SET what = 'nothing'"])
def test_show_promises_nothing_from_entries_that_were_changed(ledger: Path, edit: str) -> None:
    assert inside(ledger.parent, "ledger", "show", "ledger.db").code == 0
    with closing(sqlite3.connect(ledger)) as db, db:
        assert db.execute(f"UPDATE tacit_entries {edit} WHERE kind = 'charge'").rowcount
    sentence = inside(ledger.parent, "ledger", "show", "ledger.db").refusal()
    assert "is damaged: entry" in sentence
    assert "Run `tacit ledger verify`" in sentence


def test_show_shows_budgets_also_where_a_run_cannot_be_read(ledger: Path) -> None:
    with closing(sqlite3.connect(ledger)) as db, db:
        db.execute("INSERT INTO tacit_runs (run, job, first, last, state) VALUES ('r', 'j', 'x', 'y', 'odd')")
    shown = inside(ledger.parent, "ledger", "show", "ledger.db")
    assert shown.code == 0
    assert "clinic" in shown.out
    assert "a row of tacit_runs was changed, taken out or put in" in shown.out
    assert inside(ledger.parent, "ledger", "show", "ledger.db", "--json").document["unfinished_runs"] is None
    assert inside(ledger.parent, "ledger", "verify", "ledger.db").code == 1


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
    assert main(["ledger", command, str(tmp_path / "nowhere.db")]) == 5
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
    broken = inside(ledger.parent, "ledger", "verify", "ledger.db")
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


def test_coins_are_rotated_once_it_was_said_what_that_means(ledger: Path) -> None:
    domain = Domain({"arrival": Categories(["early", "late"])})
    rooms = pd.DataFrame({"room": range(40), "arrival": ["early"] * 40})
    asked = true_records("arrival", key="room")
    policy = Policy(domain, secrets.records("arrival == 'late'"))

    def seen() -> list[bool]:
        session = Session(policy, rooms, ledger=ledger, dataset="rooms")
        return list(session.release(asked, epsilon=1).frame["arrival"].isna())

    with Ledger(ledger) as opened:
        opened.grant(dataset="rooms", epsilon=5)
    first = seen()
    rotate = ("ledger", "rotate", "ledger.db", "--dataset", "rooms")
    said = inside(ledger.parent, *rotate)
    assert (said.code, said.err) == (1, "")
    assert "1 line was paid for with the coins that it has, up to epsilon 1; 4 remains" in " ".join(said.out.split())
    assert said.out.endswith("Nothing was changed. Say --yes to rotate them.\n")
    assert seen() == first
    with Ledger(ledger) as opened:
        opened.reserve(dataset="rooms", charges=[("1/2", "count()")], policy=policy, run="f00", job="yearly")
        opened.reserve(dataset="clinic", charges=[("1/100", "count()")], analyst="ana", run="f01", job="other")
        opened.ended("f00", lost=True)
        opened.ended("f01", lost=True)
    told = inside(ledger.parent, "ledger", "show", "ledger.db").out
    assert "what it had not written is lost, except for true records: another run shows them by the same coins" in told
    assert told.count("what it had not written is lost.") == 1  # no coins of the other data set are remembered
    assert inside(ledger.parent, *rotate, "--json").document == {
        "dataset": "rooms",
        "rotated": False,
        "lines": 1,
        "remaining": "7/2",
    }
    done = inside(ledger.parent, *rotate, "--yes")
    assert (done.code, done.out.endswith("The coins were rotated.\n")) == (0, True)
    assert seen() != first  # two draws of 40 fair coins and more: the same once in 10^9
    with Ledger(ledger) as opened:
        assert opened.remaining(dataset="rooms") == Fraction(5, 2)
        assert opened.verify().ok


def test_only_a_data_set_with_a_budget_has_coins_to_rotate(ledger: Path) -> None:
    outcome = inside(ledger.parent, "ledger", "rotate", "ledger.db", "--dataset", "clinc", "--yes")
    assert "clinic" in outcome.refusal()


def test_another_key_is_no_damage(ledger: Path) -> None:
    said = inside(ledger.parent, "ledger", "verify", ledger.name, TACIT_LEDGER_KEY="another")
    assert (said.code, "wrong key" in said.out, "last good copy" in said.out) == (1, True, False)
