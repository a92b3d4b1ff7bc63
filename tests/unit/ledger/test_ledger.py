"""The ledger's rules, its sentences and what `verify` finds, on an SQLite file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BudgetExceeded, LedgerError
from tacit.ledger.ledger import Ledger, exact_epsilon


@dataclass(frozen=True)
class EdgePolicy:
    """The least that the ledger needs of a policy: a set of named edges."""

    edges: frozenset[str]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.to_yaml().encode()).hexdigest()

    def to_yaml(self) -> str:
        return f"edges: [{', '.join(sorted(self.edges))}]\n"

    @classmethod
    def from_yaml(cls, text: str) -> EdgePolicy:
        return policy(*text.removeprefix("edges: [").removesuffix("]\n").split(", "))

    def covers(self, other: EdgePolicy) -> bool:
        return other.edges <= self.edges


def policy(*edges: str) -> EdgePolicy:
    return EdgePolicy(frozenset(edges))


@pytest.fixture(autouse=True)
def _no_key_and_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger("ledger.db")


def tamper(*statements: str, file: str = "ledger.db") -> None:
    with closing(sqlite3.connect(file)) as db, db:
        for statement in statements:
            db.execute(statement)


def stored() -> list[tuple[object, ...]]:
    """Return the entries as they stand in the file, whatever anybody has made of them."""
    with closing(sqlite3.connect("ledger.db")) as db:
        return db.execute("SELECT * FROM tacit_entries ORDER BY number").fetchall()


def filled(**options: str) -> Ledger:
    """Five entries: a total, a cap, and three charges."""
    ledger = Ledger("ledger.db", **options)
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.grant(dataset="clinic", epsilon=0.5, analyst="ana")
    for analyst, epsilon in [("ana", 0.1), ("bob", 0.2), ("ana", 0.3)]:
        ledger.charge(dataset="clinic", analyst=analyst, epsilon=epsilon, what="count")
    return ledger


def message(call: object, *args: object, **options: object) -> str:
    with pytest.raises((LedgerError, BudgetExceeded)) as caught:
        call(*args, **options)  # type: ignore[operator]
    return str(caught.value)


# --- grants and charges ---------------------------------------------------------------------------------------


def test_a_charge_takes_from_the_total_and_gives_a_receipt(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1.0)
    receipt = ledger.charge(dataset="clinic", analyst="ana", epsilon=0.2, what="count")
    assert (receipt.entry, receipt.remaining) == (2, Fraction(4, 5))
    assert receipt.hash == ledger.entries()[-1].hash
    assert ledger.remaining(dataset="clinic") == Fraction(4, 5)


def test_ten_tenths_fit_exactly_into_one_and_no_more(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    for _ in range(10):
        last = ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1)
    assert last.remaining == 0
    with pytest.raises(BudgetExceeded):
        ledger.charge(dataset="clinic", analyst="ana", epsilon="1e-20")


def test_analysts_share_the_total(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.7)
    assert ledger.remaining(dataset="clinic", analyst="bob") == Fraction(3, 10)
    with pytest.raises(BudgetExceeded):
        ledger.charge(dataset="clinic", analyst="bob", epsilon=0.4)


def test_a_cap_holds_within_the_total_and_grants_add_up(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.grant(dataset="clinic", epsilon=0.2, analyst="ana")
    with pytest.raises(BudgetExceeded):
        ledger.charge(dataset="clinic", analyst="ana", epsilon=0.3)
    ledger.grant(dataset="clinic", epsilon=0.2, analyst="ana")
    assert ledger.charge(dataset="clinic", analyst="ana", epsilon=0.3).remaining == Fraction(1, 10)
    assert ledger.charge(dataset="clinic", analyst="bob", epsilon=0.65).remaining == Fraction(1, 20)
    assert ledger.remaining(dataset="clinic", analyst="ana") == Fraction(1, 20)
    assert ledger.verify().ok


def test_a_cap_counts_what_was_spent_before_it(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.5)
    ledger.grant(dataset="clinic", epsilon=0.2, analyst="ana")
    assert ledger.remaining(dataset="clinic", analyst="ana") == 0
    ledger.grant(dataset="clinic", epsilon=0.4, analyst="ana")
    assert ledger.remaining(dataset="clinic", analyst="ana") == Fraction(1, 10)
    assert ledger.verify().ok


def test_a_cap_alone_is_no_budget(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=0.2, analyst="ana")
    assert "dataset has no budget" in message(ledger.charge, dataset="clinic", analyst="ana", epsilon=0.1)
    assert ledger.accounts()[0].remaining == 0
    ledger.grant(dataset="clinic", epsilon=1)
    assert ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1).remaining == Fraction(1, 10)


def test_nobody_in_particular_may_charge_only_where_nobody_has_a_cap(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", epsilon=0.1)
    ledger.charge(dataset="clinic", epsilon=0.1, analyst="bob")
    ledger.charge(dataset="clinic", epsilon=0.1)
    ledger.grant(dataset="clinic", epsilon=0.2, analyst="ana")
    assert message(ledger.charge, dataset="clinic", epsilon=0.1) == (
        "ledger.db: analyst must be given: dataset 'clinic' has caps for single analysts. "
        'Say who asks, as in charge(.., analyst="ana").'
    )
    assert ledger.verify().ok


def test_accounts_lists_totals_and_caps(ledger: Ledger) -> None:
    ledger.grant(dataset="survey", epsilon=2)
    ledger.grant(dataset="clinic", epsilon=1, policy=policy("a"))
    ledger.grant(dataset="clinic", epsilon="1/3", analyst="ana")
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.2, policy=policy("a"))
    ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1, policy=policy("a"))
    shown = [(a.dataset, a.analyst, a.policy, a.granted, a.spent, a.remaining) for a in ledger.accounts()]
    assert shown == [
        ("clinic", None, policy("a").fingerprint, Fraction(1), Fraction(3, 10), Fraction(7, 10)),
        ("clinic", "ana", None, Fraction(1, 3), Fraction(1, 5), Fraction(2, 15)),
        ("survey", None, None, Fraction(2), Fraction(0), Fraction(2)),
    ]
    assert ledger.accounts()[0].policy_text == "edges: [a]\n"
    with pytest.raises(dataclasses.FrozenInstanceError):
        ledger.accounts()[0].spent = Fraction(0)  # type: ignore[misc]


def test_entries_tell_who_asked_what_and_when() -> None:
    with filled() as ledger:
        entries = ledger.entries()
        assert [(e.number, e.kind, e.analyst, str(e.epsilon), e.what) for e in entries] == [
            (1, "grant", None, "1", ""),
            (2, "grant", "ana", "1/2", ""),
            (3, "charge", "ana", "1/10", "count"),
            (4, "charge", "bob", "1/5", "count"),
            (5, "charge", "ana", "3/10", "count"),
        ]
        when = datetime.fromisoformat(entries[-1].time)
        assert when.utcoffset() == timedelta(0)
        assert abs(datetime.now(UTC) - when) < timedelta(minutes=5)
        ledger.grant(dataset="survey", epsilon=1)
        assert [e.number for e in ledger.entries(dataset="survey")] == [6]
        assert ledger.entries("nowhere") == []


def test_an_entry_can_be_checked_by_hand_from_the_file() -> None:
    filled()
    with closing(sqlite3.connect("ledger.db")) as db:
        db.row_factory = sqlite3.Row
        row = dict(db.execute("SELECT * FROM tacit_entries WHERE number = 3").fetchone())
    stated = row.pop("hash")
    text = json.dumps(row, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == stated
    assert row["epsilon"] == "1/10"


def test_two_spellings_of_one_name_are_one_account(ledger: Ledger) -> None:
    ledger.grant(dataset="caf\u00e9", epsilon=1)
    assert ledger.remaining(dataset="cafe\u0301") == 1


def test_notes_are_put_on_one_line_and_shortened(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, what="count\n  of flu")
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, what="x" * 5000)
    notes = [e.what for e in ledger.entries()[1:]]
    assert notes[0] == "count of flu"
    assert len(notes[1]) == 1000


def test_a_ledger_is_kept_and_opened_again() -> None:
    filled().close()
    with Ledger(Path("ledger.db")) as by_path, Ledger("sqlite:///ledger.db", create=False) as by_url:
        assert by_path.entries() == by_url.entries()
        assert by_url.charge(dataset="clinic", analyst="bob", epsilon=0.4).remaining == 0
        assert repr(by_path) == "Ledger('ledger.db')"


def test_a_closed_ledger_says_so(ledger: Ledger) -> None:
    ledger.close()
    ledger.close()
    assert message(ledger.accounts) == "ledger.db: is closed. Open it again with Ledger(...)."


# --- policies -------------------------------------------------------------------------------------------------


def test_a_charge_that_protects_more_than_the_account_asks_is_allowed(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1, policy=policy("a", "b"))
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a", "b"))
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a", "b", "c"))
    assert [e.policy for e in ledger.entries()[1:]] == [policy("a", "b").fingerprint, policy("a", "b", "c").fingerprint]
    assert ledger.verify().ok


def test_a_charge_that_protects_less_is_refused(ledger: Ledger) -> None:
    asked, weaker = policy("a", "b"), policy("a")
    ledger.grant(dataset="clinic", epsilon=1, policy=asked)
    assert message(ledger.charge, dataset="clinic", analyst="ana", epsilon=0.1, policy=weaker) == (
        "ledger.db: the release's policy protects less than the one the total of dataset 'clinic' is counted under, "
        f"policy {asked.fingerprint[:12]}: some records that must look alike there need not look alike here, "
        f"or only to another adversary; got 'policy {weaker.fingerprint[:12]}'. "
        "Nothing was charged. Release under the account's policy or one that "
        "covers it: a release that protects more than the account asks is allowed, never less."
    )
    assert len(ledger.entries()) == 1


def test_a_charge_without_a_policy_needs_an_account_without_one(ledger: Ledger) -> None:
    asked = policy("a")
    ledger.grant(dataset="clinic", epsilon=1, policy=asked)
    assert message(ledger.charge, dataset="clinic", analyst="ana", epsilon=0.1) == (
        f"ledger.db: policy must be given: the total of dataset 'clinic' is counted under policy "
        f"{asked.fingerprint[:12]}. Nothing was charged. Pass the policy that the release keeps, as in "
        "charge(.., policy=policy)."
    )
    ledger.grant(dataset="open", epsilon=1)
    ledger.charge(dataset="open", analyst="ana", epsilon=0.1)
    ledger.charge(dataset="open", analyst="ana", epsilon=0.1, policy=asked)
    assert ledger.remaining(dataset="open") == Fraction(4, 5)


def test_an_account_without_a_policy_takes_that_of_its_first_charge(ledger: Ledger) -> None:
    pinned, weaker = policy("a", "b"), policy("a")
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=pinned)
    assert [(a.policy, a.policy_text) for a in ledger.accounts()] == [(pinned.fingerprint, pinned.to_yaml())]
    for other in (weaker, policy("b", "c"), policy("c")):
        # the sentence that a grant with a policy gives
        assert message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1, policy=other) == (
            "ledger.db: the release's policy protects less than the one the total of dataset 'clinic' is counted "
            f"under, policy {pinned.fingerprint[:12]}: some records that must look alike there need not look alike "
            f"here, or only to another adversary; got 'policy {other.fingerprint[:12]}'. "
            "Nothing was charged. Release under the account's policy or "
            "one that covers it: a release that protects more than the account asks is allowed, never less."
        )
    assert "policy must be given" in message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1)
    ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1, policy=policy("a", "b", "c"))
    assert ledger.accounts()[0].policy == pinned.fingerprint  # the first one stays
    assert ledger.verify().ok
    assert Ledger("ledger.db").remaining(dataset="clinic") == Fraction(4, 5)


def test_more_may_be_granted_to_an_account_that_took_its_policy_from_a_charge(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a"))
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.grant(dataset="clinic", epsilon=1, policy=policy("a"))
    assert "must be the one of the earlier grants" in message(
        ledger.grant, dataset="clinic", epsilon=1, policy=policy("b")
    )
    assert "protects less" in message(ledger.charge, dataset="clinic", analyst="a", epsilon=0.1, policy=policy("b"))
    assert ledger.verify().ok


def test_a_refused_charge_pins_nothing(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    message(ledger.charge, dataset="clinic", analyst="ana", epsilon=2, policy=policy("a"))
    message(ledger.reserve, dataset="clinic", charges=[(0.5, "x"), (0.6, "y")], policy=policy("a"))
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("b"))
    assert ledger.accounts()[0].policy == policy("b").fingerprint


def test_a_cap_without_a_policy_is_counted_under_that_of_the_total(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.grant(dataset="clinic", epsilon="1/2", analyst="ana")
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a", "b"))
    for analyst in ("ana", "bob"):
        said = message(ledger.charge, dataset="clinic", analyst=analyst, epsilon=0.1, policy=policy("a"))
        assert "protects less than the one the total of dataset 'clinic'" in said
    assert ledger.verify().ok


def test_a_policy_that_was_taken_out_or_put_in_again_is_noticed(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a", "b"))
    tamper("UPDATE tacit_accounts SET policy = NULL, first_grant = 1 WHERE analyst = ''")
    assert "hold policy None, the entries add up to" in str(ledger.verify().problem)


def test_a_reservation_is_charged_as_a_whole_or_not_at_all(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.grant(dataset="clinic", epsilon=0.5, analyst="ana")
    charges = [(0.1, "one"), ("1/5", "two"), (Fraction(1, 5), "three")]
    receipts = ledger.reserve(dataset="clinic", charges=charges, analyst="ana", run="r1", job="yearly")
    assert [(r.entry, r.remaining) for r in receipts] == [(3, Fraction(2, 5)), (4, Fraction(1, 5)), (5, 0)]
    assert [e.hash for e in ledger.entries()[2:]] == [r.hash for r in receipts]
    for options in ({"analyst": "ana"}, {"analyst": "bob", "charges": [(0.3, ""), (0.3, "")]}):
        said = message(ledger.reserve, **{"dataset": "clinic", "charges": [(0.1, "")], **options})
        assert "Nothing was charged" in said
    for broken in ([(0.1, ""), (0, "")], [(0.1, ""), (0.1, "a\0")]):
        message(ledger.reserve, dataset="clinic", charges=broken, analyst="bob")
    assert ledger.reserve(dataset="clinic", charges=[], analyst="bob") == []
    assert len(ledger.entries()) == 5
    assert [(run.job, run.first, run.last, run.state) for run in ledger.runs()] == [("yearly", 3, 5, "reserved")]
    ledger.ended("r1")
    assert [run.state for run in ledger.runs()] == ["finished"]
    assert ledger.verify().ok


@pytest.mark.parametrize("change", ["first = 'x'", "state = 'odd'", "last = 9", "first = 0", "job = x'00'"])
def test_what_is_noted_of_a_run_is_verified_and_hides_no_budget(ledger: Ledger, change: str) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.reserve(dataset="clinic", charges=[(0.1, "one")], run="r1", job="yearly")
    assert ledger.verify().ok
    tamper(f"UPDATE tacit_runs SET {change}")
    verdict = ledger.verify()
    assert (verdict.ok, verdict.problem) == (False, "changed: what is noted of a run cannot be read")
    assert [account.spent for account in ledger.accounts()] == [Fraction(1, 10)]


def test_a_cap_may_ask_for_a_policy_of_its_own(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1, policy=policy("a"))
    ledger.grant(dataset="clinic", epsilon=1, policy=policy("b"), analyst="ana")
    refused = message(ledger.charge, dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a"))
    assert "the one the cap of 'ana' in dataset 'clinic' is counted under" in refused
    ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1, policy=policy("a"))
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a", "b"))
    assert ledger.verify().ok


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("a", None), (None, "a")])
def test_all_grants_to_one_account_carry_the_same_policy(ledger: Ledger, first: str | None, second: str | None) -> None:
    ledger.grant(dataset="clinic", epsilon=1, policy=policy(first) if first else None)
    ledger.grant(dataset="clinic", epsilon=1, policy=policy(first) if first else None)
    name = {edge: f"policy {policy(edge).fingerprint[:12]}" if edge else "no policy" for edge in (first, second)}
    assert message(ledger.grant, dataset="clinic", epsilon=1, policy=policy(second) if second else None) == (
        "ledger.db: policy of a grant must be the one of the earlier grants to the total of dataset 'clinic', "
        f"which is {name[first]}; got '{name[second]}'. Grant under that policy, or give the data set another name "
        "in the ledger."
    )
    assert ledger.remaining(dataset="clinic") == 2


def test_a_policy_is_compared_once_per_ledger(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    covers = EdgePolicy.covers
    monkeypatch.setattr(EdgePolicy, "covers", lambda self, other: asked.append(other) or covers(self, other))
    ledger.grant(dataset="clinic", epsilon=1, policy=policy("a"))
    for _ in range(3):
        ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a", "b"))
    assert asked == [policy("a")]


def test_a_swapped_policy_text_is_not_believed(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1, policy=policy("a", "b"))
    ledger.grant(dataset="survey", epsilon=1)  # so that the swapped text is not in the last entry
    tamper("UPDATE tacit_entries SET policy_text = 'edges: [a]\n' WHERE number = 1")
    refused = message(ledger.charge, dataset="clinic", analyst="ana", epsilon=0.1, policy=policy("a"))
    assert "is damaged: entry 1 does not fit its hash" in refused
    assert ledger.verify().problem == "changed: entry 1 does not fit its hash"


def test_real_policies_are_stored_and_compared(ledger: Ledger) -> None:
    pytest.importorskip("tacit.policy.policy_file", reason="policies cannot be written to text yet")
    from tacit.policy import secrets
    from tacit.policy.attributes import Integers
    from tacit.policy.domain import Domain
    from tacit.policy.policy import Policy

    domain = Domain({"age": Integers(17, 90)})
    narrow, wide = (Policy(domain, secrets=secrets.within(years, "age")) for years in (5, 10))
    ledger.grant(dataset="clinic", epsilon=1, policy=narrow)
    ledger.charge(dataset="clinic", analyst="ana", epsilon=0.1, policy=wide)
    ledger.grant(dataset="survey", epsilon=1, policy=wide)
    assert "protects less" in message(ledger.charge, dataset="survey", analyst="ana", epsilon=0.1, policy=narrow)
    assert Policy.from_yaml(str(ledger.accounts()[0].policy_text)).fingerprint == narrow.fingerprint


def test_something_that_is_no_policy_is_refused(ledger: Ledger) -> None:
    assert message(ledger.grant, dataset="clinic", epsilon=1, policy="clinic.yaml") == (
        "ledger.db: policy must be a policy; got 'clinic.yaml'. Load it first: tc.Policy.load(\"clinic.yaml\")."
    )


# --- sentences ------------------------------------------------------------------------------------------------


def test_the_sentence_of_a_spent_budget() -> None:
    ledger = filled()
    assert message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.5) == (
        "ledger.db: epsilon must fit in what remains of the total of dataset 'clinic': 0.4 of 1; got 0.5. Nothing was "
        "charged. Ask for less, or grant more: `tacit ledger grant ledger.db --dataset clinic --epsilon 1`."
    )
    assert message(ledger.charge, dataset="clinic", analyst="ana", epsilon="1/3") == (
        "ledger.db: epsilon must fit in what remains of the cap of 'ana' in dataset 'clinic': 0.1 of 0.5; got 1/3. "
        "Nothing was charged. Ask for less, or grant more: `tacit ledger grant ledger.db --dataset clinic --epsilon 1`."
    )
    assert len(ledger.entries()) == 5


def test_the_sentence_of_an_unknown_dataset(ledger: Ledger) -> None:
    assert message(ledger.charge, dataset="clinic", analyst="ana", epsilon=0.5) == (
        "ledger.db: dataset has no budget in this ledger; got 'clinic'. Grant one: "
        "`tacit ledger grant ledger.db --dataset clinic --epsilon 1`."
    )
    ledger.grant(dataset="clinic", epsilon=1)
    expected = (
        "ledger.db: dataset has no budget in this ledger; got 'clinc'. Did you mean 'clinic'? Or grant one: "
        "`tacit ledger grant ledger.db --dataset clinc --epsilon 1`."
    )
    assert message(ledger.charge, dataset="clinc", analyst="ana", epsilon=0.5) == expected
    assert message(ledger.remaining, dataset="clinc") == expected


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, "1/10"),
        (1, "1"),
        ("0.25", "1/4"),
        ("1/3", "1/3"),
        (" 1e-3 ", "1/1000"),
        (Decimal("0.7"), "7/10"),
        (Fraction(2, 7), "2/7"),
        (np.float64(0.1), "1/10"),
        (np.float32(0.1), "1/10"),
        (np.int64(3), "3"),
    ],
)
def test_an_epsilon_is_the_number_that_was_written(ledger: Ledger, value: float, exact: str) -> None:
    assert exact_epsilon(value) == Fraction(exact)
    assert ledger.grant(dataset="clinic", epsilon=value).epsilon == Fraction(exact)


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, 0.0, -0.1, float("nan"), float("inf"), -(10**9000), True, 1j, Decimal("NaN"), None, [1], b"1"),
        *("nan", "-inf", "", "ten", "1/0", "1/-3", "1/2/3", "0x10", "1e999999999999", "1" * 5000),
    ],
    ids=lambda value: "huge" if value == -(10**9000) else repr(value)[:12],
)
def test_anything_else_is_no_epsilon(ledger: Ledger, value: object) -> None:
    for call in (ledger.grant, ledger.charge):
        said = message(call, dataset="clinic", epsilon=value)
        assert said.startswith("ledger.db: epsilon must be a number above 0; got ")
        assert said.endswith('. For example 0.1 or "1/10".')
    assert ledger.entries() == []


@pytest.mark.parametrize("value", [5e-324, "1e-61", 10**60, 10**9000, Fraction(1, 10**9000)], ids=lambda _: "long")
def test_an_epsilon_is_not_absurdly_long(ledger: Ledger, value: float) -> None:
    said = message(ledger.grant, dataset="clinic", epsilon=value)
    assert "epsilon must be a " in said
    assert len(said) < 200


def test_running_sums_stay_short(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    # Neighbouring whole numbers share no large factor: each charge adds some 50 digits to the sum's denominator.
    for step in range(20):
        ledger.charge(dataset="clinic", analyst="ana", epsilon=Fraction(1, 10**49 + step))
    assert message(ledger.charge, dataset="clinic", analyst="ana", epsilon=Fraction(1, 10**59 + 1)) == (
        "ledger.db: epsilon would give the running sum a denominator of more than 1000 digits. Nothing was written. "
        "Use an epsilon with a few decimals, such as 0.05."
    )
    assert (ledger.verify().ok, ledger.verify().entries) == (True, 21)


@pytest.mark.parametrize("name", ["", " ", " ana", "ana ", "a\nb", "a\0b", "\udc80", None, 3, "x" * 201])
def test_names_must_be_names(ledger: Ledger, name: object) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    for call, key in [(ledger.grant, "dataset"), (ledger.charge, "dataset"), (ledger.remaining, "dataset")]:
        options = {} if call == ledger.remaining else {"epsilon": 0.1, "analyst": "ana"}
        assert f"ledger.db: {key} must " in message(call, **{**options, key: name})
    if name is not None:
        assert "ledger.db: analyst must " in message(ledger.charge, dataset="clinic", epsilon=0.1, analyst=name)
    assert len(ledger.entries()) == 1


def test_a_note_must_be_printable_text(ledger: Ledger) -> None:
    ledger.grant(dataset="clinic", epsilon=1)
    for what in ("a\0b", 3):
        said = message(ledger.charge, dataset="clinic", epsilon=0.1, what=what)
        assert "ledger.db: what must be printable text" in said


# --- files that are no ledger ---------------------------------------------------------------------------------


def test_a_file_that_is_not_sqlite_is_left_alone() -> None:
    Path("notes.txt").write_text("dear diary")
    assert message(Ledger, "notes.txt") == (
        "notes.txt: is not an SQLite database, so it is no ledger. Name another file: Tacit will not write into "
        "this one."
    )
    assert Path("notes.txt").read_text() == "dear diary"
    assert os.listdir() == ["notes.txt"]


def test_another_sqlite_database_is_left_alone() -> None:
    tamper("CREATE TABLE recipes (name TEXT)", "CREATE TABLE cooks (name TEXT)", file="food.db")
    before = Path("food.db").read_bytes()
    assert message(Ledger, "food.db") == (
        "food.db: is an SQLite database but no Tacit ledger; it holds cooks, recipes. Name another file: Tacit will "
        "not write into this one."
    )
    assert Path("food.db").read_bytes() == before
    assert os.listdir() == ["food.db"]


def test_a_half_written_ledger_is_refused() -> None:
    filled().close()
    tamper("DROP TABLE tacit_accounts")
    before = Path("ledger.db").read_bytes()
    assert message(Ledger, "ledger.db") == (
        "ledger.db: is a half-written or damaged ledger: tacit_accounts missing. Put the last good copy back, or name "
        "a new file and grant the budget that is left."
    )
    assert Path("ledger.db").read_bytes() == before


def test_a_cut_file_is_refused() -> None:
    filled().close()
    whole = Path("ledger.db").read_bytes()
    Path("ledger.db").write_bytes(whole[: len(whole) // 2])
    assert message(Ledger, "ledger.db").startswith("ledger.db: ")


def test_an_empty_file_is_a_new_ledger() -> None:
    Path("ledger.db").touch()
    with Ledger("ledger.db") as ledger:
        ledger.grant(dataset="clinic", epsilon=1)
        assert ledger.verify().ok


def test_a_newer_ledger_is_refused() -> None:
    ledger = filled()
    tamper("UPDATE tacit_head SET version = 4")
    said = (
        "ledger.db: was written by a newer Tacit: this one knows ledger version 3; got 4. Upgrade with "
        "`pip install -U tacit`."
    )
    assert message(Ledger, "ledger.db") == said
    assert message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1) == said


def test_places_where_no_ledger_can_be() -> None:
    assert message(Ledger, "missing/ledger.db") == (
        "missing/ledger.db: the ledger's folder does not exist; got 'missing'. Create it first."
    )
    assert message(Ledger, ".") == ".: is a folder. Name a file in it: ledger.db."
    for memory in (":memory:", "sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"):
        assert "cannot be kept in memory" in message(Ledger, memory)
    for nowhere in ("", None, 3, "a\0b"):
        assert "ledger must be a path or a database URL" in message(Ledger, nowhere)
    assert "must be a path or a database URL, not a text" in message(Ledger, "x" * 5000)
    assert os.listdir() == []


def test_a_ledger_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = filled()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1)
    os.link("../ledger.db", "ledger.db")
    assert "must have one name" in message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1)


def test_a_ledger_that_was_deleted_is_not_begun_anew_by_a_charge() -> None:
    ledger = filled()
    Path("ledger.db").unlink()
    assert "cannot be opened" in message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1)
    assert os.listdir() == []


def test_a_working_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "cannot be opened" in message(Ledger, "ledger.db") or "does not exist" in message(Ledger, "ledger.db")
    monkeypatch.chdir(tmp_path)


def test_only_looking_does_not_begin_a_ledger() -> None:
    expected = "ledger.db: there is no ledger here. Check the name, or begin one: "
    expected += "`tacit ledger grant ledger.db --dataset NAME --epsilon 4`."
    assert message(Ledger, "ledger.db", create=False) == expected
    assert os.listdir() == []


def test_a_read_only_ledger_can_be_read_and_not_charged() -> None:
    filled().close()
    with Ledger("sqlite:///file:ledger.db?mode=ro&uri=true") as ledger:
        assert ledger.verify().ok
        assert "may not be written to; nothing was changed" in message(
            ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1
        )
    assert "cannot be opened" in message(Ledger, "sqlite:///file:other.db?mode=ro&uri=true")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only files")
def test_a_file_without_write_permission_is_refused() -> None:
    filled().close()
    Path("ledger.db").chmod(0o444)
    with Ledger("ledger.db") as ledger:
        assert "may not be written to" in message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1)


@pytest.mark.parametrize("url", ["mysql://root:secret@host/db", "postgresql+asyncpg://u:secret@h/db", "ftp://x/y"])
def test_other_databases_are_refused(url: str) -> None:
    assert message(Ledger, url) == (
        "ledger must be kept in SQLite (sqlite:///) or PostgreSQL (postgresql+psycopg://); "
        f'got {url.split(":")[0]!r}. Name a file, as in "ledger.db", or such a URL.'
    )


def test_a_url_that_cannot_be_read_is_not_repeated() -> None:
    for url in ("postgresql://u:secret@host:port/db", "://secret"):
        said = message(Ledger, url)
        assert said.startswith("ledger must be a path or a database URL that can be read. ")
        assert "secret" not in said


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert message(Ledger, "postgresql://u:secret@host/db") == (
        "postgresql+psycopg://u:***@host/db: PostgreSQL needs the package psycopg. Run `pip install 'tacit[postgres]'`."
    )


def test_a_server_that_does_not_answer_is_named() -> None:
    pytest.importorskip("psycopg")
    said = message(Ledger, "postgresql://u:secret@/db?host=/nonexistent")
    assert said.startswith("postgresql+psycopg://u:***@/db?host=%2Fnonexistent: the database refused (")
    assert "secret" not in said
    assert said.endswith(" Check the address, that the server is running and that this user may read and write there.")


def test_a_lock_that_is_never_let_go_is_named() -> None:
    ledger = filled()
    impatient = Ledger("ledger.db", wait_seconds=0.1)
    with closing(sqlite3.connect("ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert message(impatient.charge, dataset="clinic", analyst="bob", epsilon=0.1) == (
            "ledger.db: was locked by another process for 0.1 seconds; nothing was written. Try again, or find the "
            "process that keeps a transaction open."
        )
        assert impatient.remaining(dataset="clinic") == Fraction(2, 5)  # readers do not wait
        other.execute("ROLLBACK")
    assert len(ledger.entries()) == 5


def test_messages_hold_no_trace_of_the_database_layer() -> None:
    Path("notes.txt").write_text("dear diary")
    with pytest.raises(LedgerError) as caught:
        Ledger("notes.txt")
    assert caught.value.__suppress_context__
    assert "sqlalche" not in str(caught.value)


# --- the chain ------------------------------------------------------------------------------------------------


def test_a_sound_ledger_verifies(ledger: Ledger) -> None:
    assert ledger.verify() == dataclasses.replace(ledger.verify(), ok=True, entries=0, head="0" * 64, problem=None)
    ledger = filled()
    verdict = ledger.verify()
    assert (verdict.ok, verdict.entries, verdict.problem) == (True, 5, None)
    assert verdict.head == ledger.entries()[-1].hash


SWAP = [f"UPDATE tacit_entries SET number = {to} WHERE number = {of}" for of, to in ((3, 9), (4, 3), (9, 4))]
CLOSE_THE_GAP = [f"UPDATE tacit_entries SET number = {n - 1} WHERE number = {n}" for n in (4, 5)]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (["UPDATE tacit_entries SET epsilon = '1/100' WHERE number = 3"], "changed: entry 3 does not fit its hash"),
        (["UPDATE tacit_entries SET what = 'nothing' WHERE number = 5"], "changed: entry 5 does not fit its hash"),
        (["UPDATE tacit_entries SET time = x'00' WHERE number = 1"], "changed: entry 1 does not fit its hash"),
        (["UPDATE tacit_entries SET analyst = NULL WHERE number = 2"], "changed: entry 2 does not fit its hash"),
        (["DELETE FROM tacit_entries WHERE number = 1"], "missing: entry 1 is gone"),
        (["DELETE FROM tacit_entries WHERE number = 3"], "missing: entry 3 is gone"),
        (
            ["DELETE FROM tacit_entries WHERE number = 3", *CLOSE_THE_GAP],
            "missing: entry 3 is gone, what stands in its place was written as entry 4",
        ),
        (SWAP, "reordered: entry 3 was written as entry 4"),
        (
            ["DELETE FROM tacit_entries WHERE number > 3"],
            "cut off: the head row counts 5 entries, the last one found is entry 3",
        ),
        (["DELETE FROM tacit_entries"], "cut off: the head row counts 5 entries, the last one found is entry 0"),
        (
            ["UPDATE tacit_head SET count = 4, head = (SELECT hash FROM tacit_entries WHERE number = 4)"],
            "changed: entry 5 stands behind the head row, which counts 4 entries",
        ),
        (
            [
                "DELETE FROM tacit_entries WHERE number = 5",
                "UPDATE tacit_head SET count = 4, head = (SELECT hash FROM tacit_entries WHERE number = 4)",
            ],
            "changed: the head row was rewritten; entries after entry 4 may have been cut off, or other rows put back",
        ),
        (["UPDATE tacit_head SET head = 'x'"], "changed: the head row holds another hash than entry 5"),
        (["UPDATE tacit_head SET key_mark = 'x'"], "changed: the mark of the key in the head row"),
        (["DELETE FROM tacit_head"], "missing: the head row is gone"),
        (
            [
                "INSERT INTO tacit_entries SELECT 0, time, kind, dataset, analyst, epsilon, policy, policy_text, what, "
                "previous, hash FROM tacit_entries WHERE number = 3"
            ],
            "changed: entry 0 was put in",
        ),
        (
            ["UPDATE tacit_accounts SET spent = '0' WHERE analyst = ''"],
            "changed: the running sums of dataset 'clinic' hold spent 0, the entries add up to 3/5",
        ),
        (
            ["UPDATE tacit_accounts SET granted = '9' WHERE analyst = 'ana'"],
            "changed: the running sums of dataset 'clinic', analyst 'ana' hold granted 9, the entries add up to 1/2",
        ),
        (
            ["DELETE FROM tacit_accounts WHERE analyst = 'bob'"],
            "changed: the running sums of dataset 'clinic', analyst 'bob' are gone",
        ),
        (
            ["INSERT INTO tacit_accounts VALUES ('lab', '', '1', '0', NULL, NULL)"],
            "changed: the running sums of dataset 'lab' hold granted 1, the entries add up to 0",
        ),
        (
            ["UPDATE tacit_accounts SET policy = 'f00' WHERE analyst = ''"],
            "changed: the running sums of dataset 'clinic' hold policy f00, the entries add up to None",
        ),
    ],
)
def test_verify_names_the_first_bad_entry_and_the_damage(statements: list[str], problem: str) -> None:
    ledger = filled()
    tamper(*statements)
    verdict = ledger.verify()
    assert (verdict.ok, verdict.problem) == (False, problem)


def rewrite(number: int, key: bytes | None = None, **fields: object) -> None:
    """Change an entry and make its own hash fit again, as someone who knows the format (and the key) could."""
    from tacit.ledger.chain import Seal

    with closing(sqlite3.connect("ledger.db")) as db, db:
        db.row_factory = sqlite3.Row
        row = dict(db.execute("SELECT * FROM tacit_entries WHERE number = ?", (number,)).fetchone()) | fields
        row["hash"] = Seal(key).of_entry(row)
        columns = ", ".join(f"{name} = :{name}" for name in row)
        db.execute(f"UPDATE tacit_entries SET {columns} WHERE number = :number", row)


def test_a_rewritten_entry_breaks_the_link_to_the_next() -> None:
    ledger = filled()
    rewrite(3, epsilon="1/100")
    assert ledger.verify().problem == "changed: entry 3 was rewritten after entry 4 had been chained to it"


def test_a_rewritten_first_and_last_entry_are_noticed() -> None:
    ledger = filled()
    rewrite(1, previous="f" * 64)
    assert ledger.verify().problem == "changed: entry 1 does not begin the chain"
    Path("ledger.db").unlink()
    ledger = filled()
    rewrite(5, epsilon="1/100")
    assert ledger.verify().problem == "changed: the head row holds another hash than entry 5"


def test_entries_that_could_not_have_been_written_are_noticed() -> None:
    ledger = filled()
    rewrite(5, epsilon="9")
    assert ledger.verify().problem == "changed: entry 5 charges more than dataset 'clinic' was granted before it"
    rewrite(5, epsilon="lots")
    assert ledger.verify().problem == "changed: entry 5 holds 'lots', which is no epsilon"
    assert "is damaged: an amount in it cannot be read; got 'lots'" in message(ledger.entries)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM tacit_entries WHERE number = 5",
        "UPDATE tacit_entries SET epsilon = '1/100' WHERE number = 5",
        "UPDATE tacit_head SET head = 'x'",
        "UPDATE tacit_head SET seal = 'x'",
        "UPDATE tacit_head SET count = 4",
        "DELETE FROM tacit_head",
    ],
)
def test_nothing_is_written_behind_a_damaged_end(statement: str) -> None:
    ledger = filled()
    tamper(statement)
    before = stored()
    for call in (ledger.grant, ledger.charge):
        said = message(call, dataset="clinic", analyst="bob", epsilon=0.1)
        assert "so nothing m" in said
        assert "`tacit ledger verify`" in said
    assert stored() == before
    assert "is damaged" in message(ledger.entries)


def test_the_sentence_of_a_damaged_ledger() -> None:
    ledger = filled()
    tamper("DELETE FROM tacit_entries WHERE number = 5")
    assert message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1) == (
        "ledger.db: is damaged (cut off: the head row counts 5 entries, the last one found is entry 4), so nothing "
        "more may be written. Put the last good copy back; `tacit ledger verify` tells which one is good."
    )


# --- keys -----------------------------------------------------------------------------------------------------


def test_a_key_from_the_environment_is_the_same_as_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    filled(key="a long secret")
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a long secret")
    with Ledger("ledger.db") as ledger:
        assert ledger.verify().ok
        ledger.charge(dataset="clinic", analyst="bob", epsilon=0.1)
        assert "secret" not in repr(vars(ledger))
    with Ledger("ledger.db", key=b"a long secret") as ledger:
        assert ledger.verify().ok


@pytest.mark.parametrize(
    ("written", "read", "why"),
    [
        ("one", None, "the ledger was started with a key and none was given"),
        (None, "one", "the ledger was started without a key and one was given"),
        ("one", "two", "the key given is not the one the ledger was started with"),
    ],
)
def test_a_wrong_key_is_told_from_damage(written: str | None, read: str | None, why: str) -> None:
    filled(**({"key": written} if written else {})).close()
    ledger = Ledger("ledger.db", key=read)
    assert ledger.verify().problem == f"wrong key: {why}"
    assert ledger.remaining(dataset="clinic") == Fraction(2, 5)
    assert message(ledger.charge, dataset="clinic", analyst="bob", epsilon=0.1) == (
        f"ledger.db: cannot be written to: {why}. Set TACIT_LEDGER_KEY to the key that it was started with, or unset "
        "it if there was none."
    )
    assert len(ledger.entries()) == 5


def test_a_wrong_key_on_an_empty_ledger() -> None:
    Ledger("ledger.db", key="one").close()
    assert Ledger("ledger.db", key="two").verify().problem == (
        "wrong key: the key given is not the one the ledger was started with"
    )


def test_with_a_key_nobody_else_can_make_a_hash_fit() -> None:
    ledger = filled(key="one")
    rewrite(5, epsilon="1/100")
    assert ledger.verify().problem == "changed: entry 5 does not fit its hash"
    # Whoever cuts the tail and knows the format, but not the key, cannot seal the head again.
    Path("ledger.db").unlink()
    ledger = filled(key="one")
    tamper(
        "DELETE FROM tacit_entries WHERE number = 5",
        "UPDATE tacit_head SET count = 4, head = (SELECT hash FROM tacit_entries WHERE number = 4)",
    )
    assert ledger.verify().problem == (
        "changed: the head row was rewritten; entries after entry 4 may have been cut off, or other rows put back"
    )


@pytest.mark.parametrize("key", ["", b"", 7])
def test_a_key_must_be_something(key: object) -> None:
    assert message(Ledger, "ledger.db", key=key) == (
        "key must be text or bytes and not empty. Leave it out for a ledger without a key."
    )
    assert os.listdir() == []


def test_what_does_not_fit_is_told_as_people_write_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant(dataset="clinic", epsilon=1)
    with pytest.raises(BudgetExceeded) as refused:
        ledger.charge(dataset="clinic", epsilon=Fraction(5, 2), what="count")
    assert "1 of 1; got" in str(refused.value)
    assert "Fraction" not in str(refused.value)
