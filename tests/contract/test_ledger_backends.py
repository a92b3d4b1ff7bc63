"""One list of laws for every database that a ledger can be kept in."""

import threading
import uuid
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from sqlalchemy import create_engine, delete, insert, select, text
from sqlalchemy.pool import NullPool
from tests.older_ledgers import as_older

from contract.conftest import execute
from tacit.errors import BudgetExceeded, LedgerError
from tacit.ledger.chain import METADATA
from tacit.ledger.clauses import RecordsShown, TableNote
from tacit.ledger.coins import ContentMarks, RaisedCoins
from tacit.ledger.ledger import Ledger
from tacit.plan.leakage.shown import Shown


@dataclass(frozen=True)
class EdgePolicy:
    """The least that the ledger needs of a policy."""

    edges: str

    @property
    def fingerprint(self) -> str:
        return f"fingerprint of {self.edges}"

    def to_yaml(self) -> str:
        return self.edges

    @classmethod
    def from_yaml(cls, text: str) -> "EdgePolicy":
        return cls(text)

    def covers(self, other: "EdgePolicy") -> bool:
        return set(other.edges) <= set(self.edges)


def filled(where: str, **options: str) -> Ledger:
    ledger = Ledger(where, **options)
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.grant(dataset="clinic", epsilon=0.5, analyst="ana")
    for analyst, epsilon in [("ana", 0.1), ("bob", 0.2), ("ana", 0.3)]:
        ledger.charge(dataset="clinic", analyst=analyst, epsilon=epsilon, what="count, été")
    return ledger


def test_a_new_ledger_is_empty_and_sound(where: str) -> None:
    ledger = Ledger(where)
    assert (ledger.entries(), ledger.accounts()) == ([], [])
    assert ledger.verify().ok


def test_what_was_written_is_there_when_opened_again(where: str) -> None:
    written = filled(where).entries()
    again = Ledger(where, create=False)
    assert again.entries() == written
    assert [e.number for e in written] == [1, 2, 3, 4, 5]
    assert written[-1].what == "count, été"
    assert (again.verify().ok, again.verify().entries, again.verify().head) == (True, 5, written[-1].hash)


def test_sums_are_exact(where: str) -> None:
    ledger = Ledger(where)
    ledger.grant(dataset="clinic", epsilon=1)
    for _ in range(3):
        ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1)
    ledger.charge(dataset="clinic", analyst="ana", epsilon="1/3")
    assert ledger.remaining(dataset="clinic") == Fraction(11, 30)
    assert ledger.accounts()[0].spent == Fraction(19, 30)


def test_a_charge_that_does_not_fit_leaves_no_trace(where: str) -> None:
    ledger = filled(where)
    before = (ledger.entries(), ledger.accounts(), ledger.verify())
    for analyst in ("ana", "bob"):
        with pytest.raises(BudgetExceeded):
            ledger.charge(dataset="clinic", analyst=analyst, epsilon=0.41)
    with pytest.raises(BudgetExceeded, match="the cap of 'ana'"):
        ledger.charge(dataset="clinic", analyst="ana", epsilon=0.11)
    with pytest.raises(LedgerError, match="Did you mean 'clinic'"):
        ledger.charge(dataset="clinik", analyst="ana", epsilon=0.1)
    assert (ledger.entries(), ledger.accounts(), ledger.verify()) == before


def test_caps_hold_within_the_total(where: str) -> None:
    ledger = filled(where)
    assert ledger.remaining(dataset="clinic", analyst="ana") == Fraction(1, 10)
    assert ledger.remaining(dataset="clinic", analyst="bob") == Fraction(2, 5)
    assert ledger.charge(dataset="clinic", analyst="bob", epsilon=0.35).remaining == Fraction(1, 20)
    assert ledger.remaining(dataset="clinic", analyst="ana") == Fraction(1, 20)
    assert ledger.charge(dataset="clinic", analyst="ana", epsilon=0.01).remaining == Fraction(1, 25)  # not of the cap


def test_policies_are_compared_with_the_stored_one(where: str) -> None:
    ledger = Ledger(where)
    ledger.grant(dataset="clinic", epsilon=1, policy=EdgePolicy("ab"))
    Ledger(where).charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=EdgePolicy("abc"))
    with pytest.raises(LedgerError, match="protects less"):
        ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=EdgePolicy("a"))
    with pytest.raises(LedgerError, match="policy must be given"):
        ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1)
    assert ledger.accounts()[0].policy_text == "ab"
    assert ledger.remaining(dataset="clinic") == Fraction(9, 10)


def test_an_account_takes_the_policy_of_its_first_charge(where: str) -> None:
    ledger = Ledger(where)
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=EdgePolicy("ab"))
    for weaker in ("a", "bc"):
        with pytest.raises(LedgerError, match="protects less"):
            Ledger(where).charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=EdgePolicy(weaker))
    assert (ledger.accounts()[0].policy_text, ledger.verify().ok) == ("ab", True)


def test_several_charges_are_one(where: str) -> None:
    ledger = Ledger(where)
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.reserve(dataset="clinic", charges=[(0.2, "a"), (0.4, "b")], run="1", job="j")
    with pytest.raises(BudgetExceeded):
        ledger.reserve(dataset="clinic", charges=[(0.1, "a"), (0.4, "b")], run="2", job="j")
    ledger.ended("1", lost=True)
    assert (ledger.remaining(dataset="clinic"), len(ledger.entries())) == (Fraction(2, 5), 3)
    assert [(run.run, run.first, run.last, run.state) for run in ledger.runs()] == [("1", 2, 3, "lost")]


def test_an_older_ledger_is_brought_up_to_date_by_the_first_write(where: str) -> None:
    filled(where)
    as_older(where, version=1)
    execute(where, "DROP TABLE tacit_runs")
    ledger = Ledger(where)
    assert (ledger.runs(), ledger.verify().ok) == ([], True)
    ledger.reserve(dataset="clinic", charges=[(0.1, "")], analyst="bob", run="1")
    assert (len(ledger.runs()), ledger.verify().ok) == (1, True)


def test_a_trigger_is_noticed(where: str) -> None:
    ledger = filled(where)
    if where.startswith("postgres"):
        body = "BEGIN UPDATE tacit_accounts SET spent = '0'; RETURN NULL; END"
        execute(
            where,
            f"CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $body${body}$body$",
            "CREATE TRIGGER undo AFTER INSERT ON tacit_entries FOR EACH ROW EXECUTE FUNCTION undo()",
        )
    else:
        undo = "UPDATE tacit_accounts SET spent = '0'"
        execute(where, f"CREATE TRIGGER undo AFTER INSERT ON tacit_entries BEGIN {undo}; END")
    for call in (lambda: ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1), lambda: Ledger(where)):
        with pytest.raises(LedgerError, match="holds the trigger 'undo', which Tacit did not make"):
            call()
    assert ledger.verify().problem == "changed: holds the trigger 'undo', which Tacit did not make"


def test_a_key_is_needed_where_one_was_used(where: str) -> None:
    filled(where, key="secret")
    assert Ledger(where, key="secret").verify().ok
    assert Ledger(where).verify().problem == "wrong key: the ledger was started with a key and none was given"
    with pytest.raises(LedgerError, match="started with a key"):
        Ledger(where).charge(dataset="clinic", analyst="bob", epsilon=0.1)


def test_changed_entries_are_found(where: str) -> None:
    ledger = filled(where)
    execute(where, "UPDATE tacit_entries SET epsilon = '1/100' WHERE number = 3")
    assert ledger.verify().problem == "changed: entry 3 does not fit its hash"


def test_missing_entries_are_found(where: str) -> None:
    ledger = filled(where)
    execute(where, "DELETE FROM tacit_entries WHERE number = 3")
    assert ledger.verify().problem == "missing: entry 3 is gone"


def test_reordered_entries_are_found(where: str) -> None:
    ledger = filled(where)
    swap = [(3, 9), (4, 3), (9, 4)]
    execute(where, *(f"UPDATE tacit_entries SET number = {to} WHERE number = {of}" for of, to in swap))
    assert ledger.verify().problem == "reordered: entry 3 was written as entry 4"


def test_a_cut_tail_is_found_and_not_written_behind(where: str) -> None:
    ledger = filled(where)
    execute(where, "DELETE FROM tacit_entries WHERE number = 5")
    problem = "cut off: the head row counts 5 entries, the last one found is entry 4"
    assert ledger.verify().problem == problem
    for call in (ledger.grant, ledger.charge):
        with pytest.raises(LedgerError, match=problem):
            call(dataset="clinic", analyst="bob", epsilon=0.1)
    with pytest.raises(LedgerError, match="is damaged: the head row counts 5 entries, the last one found is entry 4"):
        ledger.entries()


def test_changed_sums_are_found(where: str) -> None:
    ledger = filled(where)
    execute(where, "UPDATE tacit_accounts SET spent = '0' WHERE analyst = ''")
    assert ledger.verify().problem == (
        "changed: the running sums of dataset 'clinic' hold spent 0, the entries add up to 3/5"
    )


def test_half_a_ledger_is_refused(where: str) -> None:
    filled(where).close()
    execute(where, "DROP TABLE tacit_accounts")
    with pytest.raises(LedgerError, match="half-written or damaged ledger: tacit_accounts missing"):
        Ledger(where)


def test_a_newer_ledger_is_refused(where: str) -> None:
    filled(where).close()
    execute(where, "UPDATE tacit_head SET version = 4")
    with pytest.raises(LedgerError, match="newer Tacit"):
        Ledger(where)


def test_looking_does_not_create(where: str) -> None:
    for _ in range(2):
        with pytest.raises(LedgerError, match="there is no ledger here"):
            Ledger(where, create=False)


def test_a_lock_that_is_never_let_go_is_named(where: str) -> None:
    filled(where)
    impatient = Ledger(where, wait_seconds=0.1)
    engine = create_engine(where.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as other:
        other.execute(text("UPDATE tacit_head SET version = 1"))
        with pytest.raises(LedgerError, match=r"was locked by another process for 0\.1 seconds; nothing was written"):
            impatient.charge(dataset="clinic", analyst="bob", epsilon=0.1)
        assert impatient.remaining(dataset="clinic") == Fraction(2, 5)


def test_threads_share_one_ledger(where: str) -> None:
    ledger = Ledger(where)
    ledger.grant(dataset="clinic", epsilon=1)
    refused = []

    def spend() -> None:
        for _ in range(5):
            try:
                ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1)
            except BudgetExceeded as error:
                refused.append(error)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert ledger.verify().ok  # whoever looks meanwhile sees the ledger at one moment
    for thread in threads:
        thread.join()
    assert (ledger.remaining(dataset="clinic"), len(refused)) == (0, 10)
    assert ledger.verify().ok


def stored(where: str) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of a ledger, by its tables."""
    with create_engine(where.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool).begin() as db:
        tables = METADATA.tables.items()
        return {name: [dict(row) for row in db.execute(select(table)).mappings()] for name, table in tables}


def put(where: str, name: str, rows: list[dict[str, Any]]) -> None:
    """Let a table hold these rows and no other."""
    with create_engine(where.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool).begin() as db:
        db.execute(delete(METADATA.tables[name]))
        for row in rows:
            db.execute(insert(METADATA.tables[name]).values(**row))


def charged_with_coins(where: str, number: int) -> Ledger:
    """Charge something that leaves a row in every table."""
    ledger = Ledger(where, key="k")
    ledger.grant_once(dataset="clinic", epsilon=5)
    before = ledger.coins(dataset="clinic", lines=["line"])
    ledger.reserve(
        dataset="clinic",
        analyst="ana",
        charges=[(0.1, "a")],
        run=f"run {number}",
        clauses=[
            TableNote(("a",), (f"b{number}",), promises=False),
            RecordsShown((Shown("lighting", "arrival", Fraction(number), "line"),), None),
            RaisedCoins(before, {"line": Fraction(number)}, {"line": ContentMarks(str(number), "digest", "sizes")}),
        ],
    )
    ledger.coins(dataset=f"other {number}", lines=["line"])
    return ledger


def test_rows_of_every_table_are_sealed(where: str) -> None:
    charged_with_coins(where, 1)
    old = stored(where)
    ledger = charged_with_coins(where, 2)
    now = stored(where)
    assert ledger.verify().ok
    for name, rows in now.items():
        first, *others = rows
        edits = [[], others, old[name]]
        for column, value in first.items():
            edits.append([{**first, column: value + 50 if isinstance(value, int) else f"{value}x"}, *others])
        for edit in edits:
            put(where, name, edit)
            assert not ledger.verify().ok, (name, edit)
        put(where, name, rows)
    assert ledger.verify().ok
    for name in ("tacit_accounts", "tacit_coins", "tacit_lines", "tacit_contents", "tacit_state", "tacit_seals"):
        for edit in ([], old[name]):
            put(where, name, edit)
            if name != "tacit_coins" or not edit:  # the old ones lack a data set that nothing is asked of here
                with pytest.raises(LedgerError, match="is damaged"):
                    charged_with_coins(where, 3)
        put(where, name, now[name])
    assert ledger.verify().ok


def test_a_ledger_of_the_last_version_goes_on_with_its_coins(where: str) -> None:
    secret = charged_with_coins(where, 1).coins(dataset="clinic", lines=[]).secret
    as_older(where, "k")
    ledger = Ledger(where, key="k")
    assert ledger.verify().ok
    assert ledger.coins_begun(dataset="clinic", lines=["line"]).reached == {"line": 1}
    charged_with_coins(where, 2)
    assert ledger.coins(dataset="clinic", lines=["line"]).secret == secret
    assert [entry.kind for entry in ledger.entries()].count("taken over") == 1
    verdict = ledger.verify()
    assert (verdict.ok, "cannot be known" in verdict.unknown) == (True, True)


@pytest.mark.postgres
def test_a_ledger_may_live_beside_other_tables_in_postgresql(postgres: str) -> None:
    execute(postgres, "CREATE TABLE recipes (name text)")
    filled(postgres)
    assert Ledger(postgres).verify().ok


@pytest.mark.postgres
def test_a_user_who_may_not_write_is_told_so(postgres: str) -> None:
    schema, user = (f"l{uuid.uuid4().hex}" for _ in range(2))
    where = f"{postgres}&options=-csearch_path%3D{schema}"
    execute(
        postgres, f"CREATE SCHEMA {schema}", f"CREATE ROLE {user} LOGIN", f"GRANT USAGE ON SCHEMA {schema} TO {user}"
    )
    reader = where.replace("//postgres:@", f"//{user}:@")
    with pytest.raises(LedgerError, match="may not be written to; nothing was changed"):
        Ledger(reader)
    filled(where)
    execute(where, f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {user}")
    ledger = Ledger(reader)
    assert ledger.verify().ok
    with pytest.raises(LedgerError, match="may not be written to; nothing was changed"):
        ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1)


@pytest.mark.postgres
def test_a_server_whose_default_is_not_durable_still_keeps_charges(postgres: str) -> None:
    # The setting ends with the transaction, so ask for it from inside one.
    where = f"{postgres}&options=-csynchronous_commit%3Doff"
    ledger = Ledger(where)
    shown = ledger._store.write(lambda db: db.execute(text("SHOW synchronous_commit")).scalar_one())
    assert shown == "on"
