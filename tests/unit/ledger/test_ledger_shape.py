"""What somebody does to a ledger with the tools of its database: seen at opening, before a charge, and by `verify`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tacit.errors import LedgerError, TacitError
from tacit.ledger.chain import ACCOUNTS, ENTRIES, HEAD, RUNS
from tacit.ledger.ledger import Ledger


@pytest.fixture(autouse=True)
def _no_key_and_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


def filled(**options: str) -> Ledger:
    ledger = Ledger("ledger.db", **options)
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.grant(dataset="clinic", epsilon=0.5, analyst="ana")
    ledger.reserve(dataset="clinic", analyst="ana", charges=[(0.1, "a"), (0.2, "b")], run="r", job="j")
    ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1, what="c")
    return ledger


def tamper(*statements: str) -> None:
    with closing(sqlite3.connect("ledger.db")) as db, db:
        for statement in statements:
            db.execute(statement)


RESET = "BEGIN UPDATE tacit_accounts SET spent = '0'; END"

STRANGE = {
    "trigger 'reset'": [f"CREATE TRIGGER reset AFTER INSERT ON tacit_entries {RESET}"],
    "trigger 'tacit_accounts'": [f"CREATE TRIGGER tacit_accounts AFTER UPDATE ON tacit_head {RESET}"],
    "view 'sums'": ["CREATE VIEW sums AS SELECT * FROM tacit_accounts"],
    "table 'more'": ["CREATE TABLE more (name TEXT)"],
    "index 'more'": ["CREATE UNIQUE INDEX more ON tacit_accounts (spent)"],
    "table 'tacit_runs'": ["DROP TABLE tacit_runs", "CREATE TABLE tacit_runs (run TEXT)"],
    "table 'tacit_accounts'": ["ALTER TABLE tacit_accounts ADD COLUMN more TEXT GENERATED ALWAYS AS ('0')"],
}


@pytest.mark.parametrize("what", STRANGE)
def test_what_tacit_did_not_make_is_noticed_before_anything_is_charged(what: str) -> None:
    ledger = filled(key="a key does not help against this")
    before = ledger.entries()
    tamper(*STRANGE[what])
    sentence = f"holds the {what}, which Tacit did not make and which could change sums, so nothing may be charged"
    for call in (
        lambda: ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1),
        lambda: ledger.grant(dataset="clinic", epsilon=1),
        lambda: ledger.remaining(dataset="clinic"),
        ledger.accounts,
        lambda: Ledger("ledger.db"),
    ):
        with pytest.raises(LedgerError) as caught:
            call()
        assert sentence in str(caught.value)
    assert ledger.verify().problem == f"changed: holds the {what}, which Tacit did not make"
    with closing(sqlite3.connect("ledger.db")) as db:
        assert db.execute("SELECT count(*) FROM tacit_entries").fetchone() == (len(before),)


def test_statistics_of_sqlite_are_no_damage() -> None:
    ledger = filled()
    tamper("ANALYZE")
    with closing(sqlite3.connect("ledger.db")) as db:
        db.execute("VACUUM")
    ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1)
    assert ledger.verify().ok


def test_a_write_ahead_log_that_comes_back_is_noticed_before_anything_is_charged() -> None:
    """An older Tacit may open the file while this ledger is open; then its locks are not those of the file."""
    ledger = filled()
    before = ledger.entries()
    with closing(sqlite3.connect("ledger.db")) as older:
        assert older.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
        for call in (
            lambda: ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1),
            lambda: ledger.grant(dataset="clinic", epsilon=1),
        ):
            with pytest.raises(LedgerError, match=r"is still open in a process of an older Tacit.*nothing was written"):
                call()
    assert ledger.entries() == before
    with Ledger("ledger.db") as reopened:  # which leaves that mode
        reopened.charge(dataset="clinic", analyst="bob", epsilon=0.1)
        assert reopened.verify().ok


# one value of each storage class, and the texts that break readers
VALUES = [
    *("NULL", "0", "-1", "9223372036854775807", "1.5", "9e999", "'abc'", "''", "x'00ff'", "CAST(x'ff41' AS TEXT)"),
    *("'1e999999999'", "'1/0'", "'-1/3'", "'٣'", "replace(hex(zeroblob(100000)), '0', '9')"),
]
COLUMNS = [
    (table.name, column.name)
    for table in (HEAD, ENTRIES, ACCOUNTS)
    for column in table.columns
    if (table.name, column.name) != ("tacit_head", "id")
]


# Each field gets a third of the values, and its neighbours the others; `make audit` tries all values in all fields.
FIELDS = [
    pytest.param(
        table, column, part, marks=() if part == place % 3 else pytest.mark.slow, id=f"{table}-{column}-{part}"
    )
    for place, (table, column) in enumerate(COLUMNS)
    for part in range(3)
]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("table", "column", "part"), FIELDS)
def test_whatever_stands_in_a_field_verify_ends_with_a_verdict(table: str, column: str, part: int) -> None:
    filled().close()
    whole = Path("ledger.db").read_bytes()
    # the last row, which is what a charge looks at, and the first, in turn
    for number, value in enumerate(VALUES[part::3]):
        place = ("max", "min")[number % 2]
        Path("ledger.db").write_bytes(whole)
        with closing(sqlite3.connect("ledger.db")) as db:
            try:
                which = f"rowid = (SELECT {place}(rowid) FROM {table})"
                changed = db.execute(
                    f"UPDATE {table} SET {column} = {value} WHERE {which} AND {column} IS NOT {value}"
                ).rowcount
                db.commit()
            except sqlite3.Error:
                continue  # the table itself does not take it
        if changed:
            reported(table, column, value)


def refusal(call: Callable[[], object]) -> str:
    """Return what a call refuses, or nothing; anything but a refusal is a fault."""
    try:
        call()
    except TacitError as refused:
        return str(refused)
    return ""


def reported(table: str, column: str, value: str) -> None:
    began = time.monotonic()
    opened: list[Ledger] = []
    if unopened := refusal(lambda: opened.append(Ledger("ledger.db", create=False))):
        assert "newer Tacit" in unopened or "damaged" in unopened
        return
    with opened[0] as ledger:
        verdict = ledger.verify()
        assert not verdict.ok, (table, column, value)
        assert len(str(verdict.problem)) < 600
        for call in (
            ledger.accounts,
            ledger.entries,
            lambda: ledger.remaining(dataset="clinic", analyst="ana"),
            lambda: ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1),
        ):
            assert len(refusal(call)) < 600
    assert time.monotonic() - began < 5


def test_runs_that_somebody_edited_change_no_budget() -> None:
    ledger = filled()
    before = [account.spent for account in ledger.accounts()]
    for column in RUNS.columns:
        for value in ("0", "x'00'", "'abc'"):
            tamper(f"UPDATE tacit_runs SET {column.name} = {value}")
            found = ledger.verify()
            assert found.ok or "run" in str(found.problem)
            said = refusal(ledger.runs)
            assert not said or "is damaged" in said
            assert not (found.ok and said)
            assert [account.spent for account in ledger.accounts()] == before


def test_a_huge_number_of_an_entry_does_not_make_verify_search_for_ever() -> None:
    ledger = filled()
    tamper(
        "UPDATE tacit_entries SET epsilon = '1/7' WHERE number = 3",
        "UPDATE tacit_entries SET number = 9223372036854775806 WHERE number = 5",
    )
    began = time.monotonic()
    assert ledger.verify().problem == "changed: entry 3 does not fit its hash"
    assert time.monotonic() - began < 5
