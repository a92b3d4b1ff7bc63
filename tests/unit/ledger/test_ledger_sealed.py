"""Whatever somebody does to rows or tables of a ledger is seen by `verify`, and nothing that rests on it is shown."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from tests.older_ledgers import as_older

import tacit as tc
from tacit.ledger import clauses, page
from tacit.ledger import database as store
from tacit.ledger.chain import ACCOUNTS, METADATA, SHOWN, TABLE, place_of
from tacit.ledger.clauses import RecordsShown, TableNote
from tacit.ledger.ledger import Ledger
from tacit.ledger.page import Page
from tacit.plan.leakage.shown import Shown, ShownSoFar, apart

KEY = "a key that nobody guesses, 0123456789abcdef"
SENSITIVE = {"arrival": ["late"], "leaving": ["early"]}
DAY = tc.Dependence.from_table(
    {("late", "early"): 0.2, ("late", "late"): 0.1, ("early", "early"): 0.2, ("early", "late"): 0.5},
    names=("arrival", "leaving"),
)
LIMITS = tc.Applications(DAY, sensitive=SENSITIVE, coalitions={"both": ["lighting", "space"]}, limit=5.0)
POLICY = tc.Policy(
    tc.Domain({"arrival": tc.Categories(["late", "early"]), "leaving": tc.Categories(["late", "early"])}),
    tc.secrets.values(SENSITIVE),
)
ARRIVAL = tc.true_records(["arrival"], key="room", application="lighting")
LEAVING = tc.true_records(["leaving"], key="room", application="space")
TABLES = tuple(METADATA.tables)


def rooms(late: int = 3) -> str:
    rows = (f"r{i},{'late' if i % late == 0 else 'early'},{'early' if i % 4 == 0 else 'late'}\n" for i in range(60))
    return "room,arrival,leaving\n" + "".join(rows)


def session(name: str, key: str | None) -> tc.Session:
    ledger = Ledger(name, key=key)
    return tc.Session(POLICY, "rooms.csv", 5, ledger=ledger, dataset="rooms", leakage=LIMITS, analyst="ana")


@pytest.fixture(scope="module", params=[None, KEY], ids=["no key", "key"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str | None]]:
    """Write a ledger with rows in every table, as it was earlier and as it is; return its folder and its key."""
    folder, key = tmp_path_factory.mktemp("sealed"), request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TACIT_LEDGER_KEY", raising=False)
        patch.chdir(folder)
        Path("rooms.csv").write_text(rooms())
        asked = session("l.db", key)
        asked.release(ARRIVAL, 0.2)
        ledger = Ledger("l.db", key=key)
        charges: dict[str, Any] = {"dataset": "rooms", "analyst": "ana", "policy": POLICY}
        ledger.reserve(
            **charges, charges=[("1/10", "a")], run="one", job="j", clauses=[TableNote(("a",), ("b",), True)]
        )
        ledger.grant(dataset="other", epsilon=1, analyst="bob")
        shutil.copy("l.db", "earlier.db")
        ledger.ended("one")
        asked.release(ARRIVAL, 0.3)
        asked.release(LEAVING, 0.1)
        asked.reserve([asked.plan(tc.true_records(["leaving"], key="room", application="lighting"), 0.1)])
        ledger.reserve(
            **charges, charges=[("1/10", "b")], run="two", job="j", clauses=[TableNote(("a",), ("c",), True)]
        )
        ledger.grant(dataset="other", epsilon=2)
        ledger.rotate_coins(dataset="other")
        yield folder, key


@pytest.fixture
def here(made: tuple[Path, str | None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str | None:
    """Put copies of that ledger and its rows into the working folder; return the key."""
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)
    folder, key = made
    for name in ("l.db", "earlier.db"):
        shutil.copy(folder / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return key


def changed(value: Any) -> list[Any]:
    """Return other values than this one: of another type, and as near as can be."""
    if value is None:
        return ["x", 0]
    if isinstance(value, int):
        return [value + 1, value - 1, "x"]
    nearest = value[:-1] + ("1" if value[-1:] != "1" else "2") if value else "x"
    return [nearest, value + " ", "", None]


def statements(db: sqlite3.Connection, table: str) -> Iterator[tuple[str, list[tuple[str, Sequence[Any]]]]]:
    """Yield everything that is done to one table, by what it is: statements of the database."""
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    listed = db.execute(f"SELECT rowid, * FROM {table}").fetchall()
    marks = ", ".join("?" * len(columns))
    for rowid, *row in listed:
        yield f"delete {rowid}", [(f"DELETE FROM {table} WHERE rowid = ?", [rowid])]
        for column, value in zip(columns, row, strict=True):
            for new in changed(value):
                sql = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
                yield f"{column} of {rowid} to {new!r}", [(sql, [new, rowid])]
        for at, value in enumerate(row):
            copy = [*row[:at], *changed(value)[:1], *row[at + 1 :]]
            yield f"a copy of {rowid} but {columns[at]}", [(f"INSERT INTO {table} VALUES ({marks})", copy)]
    # two rows exchange all that is no key
    keys = {row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]}
    others = [column for column in columns if column not in keys]
    sets = f"UPDATE {table} SET {', '.join(f'{column} = ?' for column in others)} WHERE rowid = ?"
    for (first, *one), (second, *two) in pairwise(listed):
        mine, its = (dict(zip(columns, row, strict=True)) for row in (one, two))
        yield (
            f"exchange {first} and {second}",
            [
                (sets, [*(its[column] for column in others), first]),
                (sets, [*(mine[column] for column in others), second]),
            ],
        )
    yield "emptied", [(f"DELETE FROM {table}", [])]
    old = f"INSERT INTO {table} SELECT * FROM earlier.{table}"
    yield "rolled back", [(f"DELETE FROM {table}", []), (old, [])]
    for (rowid,) in db.execute(f"SELECT rowid FROM earlier.{table}").fetchall():
        back = f"INSERT OR REPLACE INTO {table} SELECT * FROM earlier.{table} WHERE rowid = ?"
        yield f"row {rowid} rolled back", [(back, [rowid])]


def content(db: sqlite3.Connection, table: str) -> list[Any]:
    return sorted(map(repr, db.execute(f"SELECT * FROM {table}")))


def passing(table: str, key: str | None, one_in: int) -> tuple[int, list[str]]:
    """Try one in so many edits of a table; return how many changed it, and those that `verify` calls sound."""
    with closing(sqlite3.connect("l.db")) as db:
        db.execute("ATTACH 'earlier.db' AS earlier")
        before, edits = content(db, table), list(statements(db, table))
    assert before, "a table without rows tests nothing"
    ledger, bytes_before = Ledger("l.db", key=key), Path("l.db").read_bytes()
    assert ledger.verify().ok
    tried, passed = 0, []
    for number, (what, listed) in enumerate(edits):
        if number % one_in and what not in ("emptied", "rolled back"):
            continue
        Path("l.db").write_bytes(bytes_before)
        with closing(sqlite3.connect("l.db")) as db, db:
            db.execute("ATTACH 'earlier.db' AS earlier")
            try:
                for sql, values in listed:
                    db.execute(sql, values)
            except sqlite3.IntegrityError:  # the table itself does not take it
                db.rollback()
            is_other = content(db, table) != before
        if is_other:
            tried += 1
            passed += [what] if ledger.verify().ok else []
    return tried, passed


@pytest.mark.parametrize("table", TABLES)
def test_no_edit_of_a_table_passes(table: str, here: str | None) -> None:
    one_in = {"tacit_entries": 47, "tacit_seals": 101, "tacit_state": 19}.get(table, 7)
    tried, passed = passing(table, here, one_in)
    assert tried >= 4
    assert not passed


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_no_edit_of_a_table_passes_of_all(table: str, here: str | None) -> None:
    tried, passed = passing(table, here, {"tacit_entries": 5, "tacit_seals": 5}.get(table, 1))
    assert tried
    assert not passed


def roll_back(tables: Sequence[str]) -> None:
    with closing(sqlite3.connect("l.db")) as db, db:
        db.execute("ATTACH 'earlier.db' AS earlier")
        for table in tables:
            db.execute(f"DELETE FROM {table}")
            db.execute(f"INSERT INTO {table} SELECT * FROM earlier.{table}")


def test_no_tables_that_are_put_back_together_pass_unless_all_are(here: str | None) -> None:
    """An old copy of the whole is a good ledger: only a hash that was kept elsewhere tells."""
    ledger, before = Ledger("l.db", key=here), Path("l.db").read_bytes()
    last = ledger.verify().head
    some = [*combinations(TABLES, 2), *combinations(TABLES, len(TABLES) - 1)]
    for tables in some[::3] if here else some[1::3]:
        Path("l.db").write_bytes(before)
        roll_back(tables)
        assert not ledger.verify().ok, tables
    Path("l.db").write_bytes(before)
    roll_back(TABLES)
    assert ledger.verify().ok
    assert last not in {entry.hash for entry in ledger.entries()}


FORGOTTEN = ["tacit_coins", "tacit_lines", "tacit_contents", "tacit_state", "tacit_seals", "tacit_runs"]
NEW = tc.true_records(["arrival"], key="room", application="space")


@pytest.mark.parametrize("many", [1, 2, 6])
def test_coins_that_are_made_to_forget_serve_no_other_rows(many: int, here: str | None) -> None:
    """Rows are gone, the file is another one: nothing is charged, and no row is opened."""
    Path("rooms.csv").write_text(rooms())
    session("l.db", here).release(NEW, 0.1)
    used, left = Path("l.db").read_bytes(), Ledger("l.db", key=here).remaining(dataset="rooms")
    Path("rooms.csv").write_text(rooms(late=7))
    asked = session("l.db", here)
    with pytest.raises(tc.DataRefused, match="must hold what they held"):
        asked.release(NEW, 0.1)
    for tables in list(combinations(FORGOTTEN, many))[:: 2 * many - 1]:
        Path("l.db").write_bytes(used)
        with closing(sqlite3.connect("l.db")) as db, db:
            for table in tables:
                db.execute(f"DELETE FROM {table}")
        assert not Ledger("l.db", key=here).verify().ok
        for epsilon in (0.1, 0.2):
            with pytest.raises(tc.TacitError, match=r"is damaged|must hold what they held"):
                asked.release(NEW, epsilon)
        with closing(sqlite3.connect("l.db")) as db:
            assert db.execute("SELECT count(*) FROM tacit_entries WHERE what = 'x'").fetchone() == (0,)
    Path("l.db").write_bytes(used)
    assert Ledger("l.db", key=here).remaining(dataset="rooms") == left


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE tacit_accounts SET spent = '0'",
        "DELETE FROM tacit_accounts WHERE analyst = 'ana'",
        "UPDATE tacit_state SET body = replace(body, 'lighting', 'nobody')",
        "DELETE FROM tacit_state WHERE kind = 'dataset'",
        "UPDATE tacit_seals SET seal = replace(seal, 'a', 'b')",
    ],
)
def test_no_charge_rests_on_a_row_that_was_changed(edit: str, here: str | None) -> None:
    asked = [Shown("space", "arrival", Fraction(1, 10))]
    ledger = Ledger("l.db", key=here)
    with closing(sqlite3.connect("l.db")) as db, db:
        before = db.execute("SELECT * FROM tacit_entries").fetchall()
        db.execute(edit)
    charge: dict[str, Any] = {"dataset": "rooms", "charges": [("1/10", "x")], "analyst": "ana", "policy": POLICY}
    with pytest.raises(tc.LedgerError, match="is damaged"):
        ledger.reserve(**charge, clauses=[RecordsShown(tuple(asked), LIMITS)])
    with closing(sqlite3.connect("l.db")) as db:
        assert db.execute("SELECT * FROM tacit_entries").fetchall() == before


def test_no_charge_rests_on_a_row_that_was_put_back_with_its_seal(here: str | None) -> None:
    ledger = Ledger("own.db", key=here)
    policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.everything())
    ledger.grant(dataset="d", epsilon=1, policy=policy)
    ledger.charge(dataset="d", epsilon="1/2", policy=policy)
    place = place_of(ACCOUNTS, ("d", ""))
    with closing(sqlite3.connect("own.db")) as db:
        row = db.execute("SELECT granted, spent FROM tacit_accounts").fetchone()
        seal = db.execute("SELECT seal FROM tacit_seals WHERE place = ?", (place,)).fetchone()
    ledger.charge(dataset="d", epsilon="1/2", policy=policy)
    with closing(sqlite3.connect("own.db")) as db, db:
        db.execute("UPDATE tacit_accounts SET granted = ?, spent = ?", row)
        db.execute("UPDATE tacit_seals SET seal = ? WHERE place = ?", (*seal, place))
    with pytest.raises(tc.LedgerError, match="is damaged"):
        ledger.charge(dataset="d", epsilon="1/2", policy=policy)


def test_a_ledger_cannot_be_made_an_older_one_to_be_sealed_anew(here: str | None) -> None:
    with closing(sqlite3.connect("l.db")) as db, db:
        db.execute("DELETE FROM tacit_lines")
        db.execute("UPDATE tacit_head SET version = 2")
    ledger = Ledger("l.db", key=here)
    assert not ledger.verify().ok
    with pytest.raises(tc.LedgerError, match="is damaged"):
        ledger.grant(dataset="rooms", epsilon=1)


def test_a_ledger_of_an_older_tacit_goes_on_with_its_coins_sums_and_names(here: str | None) -> None:
    Path("rooms.csv").write_text(rooms())
    first = session("l.db", here).release(NEW, 0.1)
    before = Ledger("l.db", key=here)
    left, shown = before.remaining(dataset="rooms"), before.shown(dataset="rooms")
    stands = before.leakage(dataset="rooms")
    as_older("sqlite:///l.db", here)
    ledger = Ledger("l.db", key=here)
    assert (ledger.remaining(dataset="rooms"), ledger.shown(dataset="rooms")) == (left, shown)
    verdict = ledger.verify()
    assert verdict.ok
    assert "the next charge seals them as they stand" in verdict.unknown
    again = session("l.db", here).release(NEW, 0.1)
    assert again.frame.equals(first.frame)
    assert (ledger.remaining(dataset="rooms"), ledger.leakage(dataset="rooms")) == (left, stands)
    assert ledger.entries()[-1].kind == "taken over"
    verdict = ledger.verify()
    assert verdict.ok
    assert f"up to entry {verdict.entries}, where" in verdict.unknown
    others = tc.Applications(DAY, sensitive=SENSITIVE, coalitions={"both": ["lighting"]}, limit=5.0)
    for sentence, refused in {
        "looks like 'ana'": lambda: ledger.charge(dataset="rooms", epsilon="1/10", analyst="Ana", policy=POLICY),
        "must be those that hold": lambda: ledger.limit_leakage(dataset="rooms", applications=others),
        "in two tables": lambda: ledger.check(dataset="rooms", clauses=[TableNote(("b",), ("d",), False)]),
        "analyst must be given": lambda: ledger.charge(dataset="other", epsilon="1/10"),
    }.items():
        with pytest.raises(tc.TacitError, match=sentence):
            refused()


def test_rows_that_were_taken_out_before_they_were_sealed_are_refused_where_they_are_missed(here: str | None) -> None:
    Path("rooms.csv").write_text(rooms())
    session("l.db", here).release(NEW, 0.1)
    as_older("sqlite:///l.db", here)
    with closing(sqlite3.connect("l.db")) as db, db:
        db.execute("DELETE FROM tacit_lines")
        db.execute("DELETE FROM tacit_contents")
    Path("rooms.csv").write_text(rooms(late=7))
    asked = session("l.db", here)
    left = asked.remaining
    with pytest.raises(tc.DataRefused, match="must be known to hold what they held"):
        asked.release(NEW, 0.1)
    assert asked.remaining == left


@pytest.mark.parametrize(
    "edit", ["UPDATE tacit_accounts SET spent = '0'", "UPDATE tacit_coins SET secret = 'abc' || substr(secret, 4)"]
)
def test_a_damaged_ledger_of_an_older_tacit_is_not_sealed(edit: str, here: str | None) -> None:
    as_older("sqlite:///l.db", here)
    with closing(sqlite3.connect("l.db")) as db, db:
        db.execute(edit)
    ledger = Ledger("l.db", key=here)
    with pytest.raises(tc.LedgerError, match="is damaged"):
        ledger.grant(dataset="rooms", epsilon=1)
    with closing(sqlite3.connect("l.db")) as db:
        assert db.execute("SELECT version FROM tacit_head").fetchone() == (2,)


def test_sums_entry_by_entry_are_the_sums_of_all() -> None:
    """Against the definition, over all showings at once."""
    for number in range(200):
        digits = [int(digit) for digit in f"{pow(7919, number + 9, 10**40):040d}"]
        shown = [
            Shown("ab"[a % 2], "xyz"[b % 3], Fraction(1 + c, 7), ("", "p", "q")[d % 3])
            for a, b, c, d in zip(digits[::4], digits[1::4], digits[2::4], digits[3::4], strict=True)
        ]
        expected: dict[tuple[str, str], Fraction] = {}
        for whom in dict.fromkeys((one.application, one.attribute) for one in shown):
            mine = [one for one in shown if (one.application, one.attribute) == whom]
            expected[whom] = sum((one.epsilon for one in mine if not one.line), Fraction(0))
            for line in {one.line for one in mine} - {""}:
                along = {one.attribute for one in shown if (one.application, one.line) == (whom[0], line)}
                expected[whom] += apart(max(one.epsilon for one in mine if one.line == line), len(along))
        assert ShownSoFar().after(shown).reached == expected
        seen = ShownSoFar()
        for one in shown:
            seen.add([one])
        assert seen.reached == expected


def costs(call: Callable[[], None]) -> tuple[int, int]:
    """Return how many statements a call makes, and how many rows it reads."""
    made: list[str] = []
    read: list[Any] = []

    def counted(_db: Any, _cursor: Any, statement: str, *_: Any) -> None:
        made.append(statement)

    def rows(*asked: Any) -> Any:
        read.append(store.rows(*asked))
        return read[-1]

    with pytest.MonkeyPatch.context() as patch:
        for module in (page, clauses):
            patch.setattr(module, "rows", rows)
        event.listen(Engine, "before_cursor_execute", counted)
        call()
        event.remove(Engine, "before_cursor_execute", counted)
    return len(made), sum(map(len, read))


def test_the_nth_charge_costs_what_the_first_ones_did(tmp_path: Path) -> None:
    """Of showings, tables and new analysts: a statement or a row for each one before would be seen."""
    ledger = Ledger(tmp_path / "l.db", key=KEY)
    ledger.grant(dataset="d", epsilon=1000)
    names = iter(range(10**6))

    def showing() -> None:
        one = Shown("lighting", "arrival", Fraction(1, 100), f"{next(names):032x}")
        ledger.reserve(dataset="d", charges=[("1/100", "r")], clauses=[RecordsShown((one,), None)])

    def table() -> None:
        told = TableNote(("a",), (f"c{next(names)}",), promises=False)
        ledger.reserve(dataset="d", charges=[("1/100", "r")], clauses=[told])

    def analyst() -> None:
        # letters that look like no other: how many skeletons a name has does not hang on the number
        name = "".join("bdfghjkrst"[int(digit)] for digit in str(next(names)))
        ledger.charge(dataset="d", epsilon="1/100", analyst=name)

    def fill(many: int) -> None:
        """Append as many of each as a ledger could have, in one transaction."""

        def work(page: Page) -> None:
            for _ in range(many):
                one = {**asdict(Shown("lighting", "arrival", Fraction(1), f"{next(names):032x}")), "epsilon": "1/100"}
                page.note(SHOWN, "d", None, None, ("x", json.dumps({"shown": [one], "standing": []})))
                told = asdict(TableNote(("a",), (f"c{next(names)}",), promises=False))
                page.note(TABLE, "d", None, None, ("x", json.dumps(told)))

        ledger._book.write(work)

    calls = (showing, table, analyst)
    fill(60)
    for call in calls:
        call()
    first = [costs(call) for call in calls]
    fill(240)
    last = [costs(call) for call in calls]
    assert [statements for statements, _ in last] == [statements for statements, _ in first]
    # nodes above a row fill up, to 16 each; nothing else grows
    assert all(after - before < 150 for (_, before), (_, after) in zip(first, last, strict=True))
    assert ledger.verify().ok
