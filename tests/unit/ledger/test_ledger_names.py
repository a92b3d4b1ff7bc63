"""Names in a ledger have one spelling: what cannot be seen and what looks alike is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tacit.errors import LedgerError
from tacit.ledger.input import look_alike
from tacit.ledger.ledger import Ledger


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ledger:
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.grant(dataset="clinic 1", epsilon=1)
    ledger.grant(dataset="clinic 1", epsilon="1/10", analyst="Olga Mayer")
    return ledger


UNSEEN = [
    *("\ufe0f", "\u034f", "\u3164", "\u200b", "\u2060", "\u00ad", "\u115f", "\u2800", "\U000e0041", "\uffa0"),
    "\u180b",
]
ALIKE = [
    ("clinic 1", ["Clinic 1", "CLINIC 1", "clinic  1", "clinic l", "\u0441linic 1", "cl\u0456nic 1", "clin\u0131c 1"]),
    ("clinic 1", ["\uff43linic 1", "clinic \u00b9", "clinic \u2460", "cIinic 1", "c1inic 1", "clinic |"]),
    ("Olga Mayer", ["olga mayer", "0lga Mayer", "\u041elga Mayer", "Olga M\u0430yer", "OIga Mayer", "Olg\u0251 Mayer"]),
    ("clinic", ["\u03f2linic", "\u03f9linic", "CIinic", "cli\u0307nic", "CL\u0130NIC", "cli\u0307\u0307nic"]),
    ("CLINIC", ["CIinic", "\u03f2linic", "\u03f9LINIC"]),
    ("jan", ["j\u0307an", "\u0237an"]),
    ("a-b", ["a\u2010b", "a\u2013b", "a\u2212b"]),
    ("stra\u00dfe", ["strasse", "STRASSE"]),
    ("\u041c\u041e\u0421\u041a", ["MOCK", "mock"]),
]
APART = [
    *("clinic", "clinic 2", "clinics 1", "clinic-1", "klinic 1", "c", "\u0643\u0644", "cl\u00ednic 1", "mall"),
    "mail",
]


@pytest.mark.parametrize("unseen", UNSEEN, ids=lambda letter: f"U+{ord(letter):04X}")
def test_what_cannot_be_seen_is_no_part_of_a_name(ledger: Ledger, unseen: str) -> None:
    for name in (f"{unseen}clinic 1", f"cli{unseen}nic 1", f"clinic 1{unseen}"):
        with pytest.raises(LedgerError, match="dataset must be a name without"):
            ledger.grant(dataset=name, epsilon=1)
        with pytest.raises(LedgerError, match="analyst must be a name without"):
            ledger.charge(dataset="clinic 1", epsilon="1/100", analyst=name)


@pytest.mark.parametrize(("name", "others"), ALIKE, ids=lambda part: part if isinstance(part, str) else "")
def test_names_that_look_alike(name: str, others: list[str]) -> None:
    for other in others:
        assert look_alike(other, ["another", name]) == name, other
        assert look_alike(name, [other]) == other


def test_names_that_do_not() -> None:
    for name in APART:
        assert look_alike(name, ["clinic 1", *(other for other in APART if other != name)]) is None, name
        assert look_alike(name, [name]) is None


def test_no_second_budget_and_no_way_around_a_cap(ledger: Ledger) -> None:
    for name in ALIKE[0][1] + ALIKE[1][1]:
        with pytest.raises(LedgerError, match=r"dataset looks like 'clinic 1', which is in this ledger"):
            ledger.grant(dataset=name, epsilon=1)
        with pytest.raises(LedgerError, match="dataset has no budget"):
            ledger.charge(dataset=name, epsilon="1/100", analyst="ana")
    for name in ALIKE[2][1]:
        for call in (ledger.grant, ledger.charge):
            with pytest.raises(LedgerError, match=r"analyst looks like 'Olga Mayer'"):
                call(dataset="clinic 1", epsilon="1/2", analyst=name)
    assert len(ledger.entries()) == 2
    ledger.charge(dataset="clinic 1", epsilon="1/2", analyst="ana")
    with pytest.raises(LedgerError, match="analyst looks like 'ana'"):
        ledger.charge(dataset="clinic 1", epsilon="1/100", analyst="Ana")
    assert ledger.remaining(dataset="clinic 1") == Fraction(1, 2)


def test_the_sentence_names_the_spelling_that_is_there(ledger: Ledger) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.remaining(dataset="CLINIC 1")
    assert str(caught.value).endswith("got 'CLINIC 1'. Did you mean 'clinic 1'? A name has one spelling.")


def test_old_ledgers_keep_names_that_look_alike(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr("tacit.ledger.payment.known_alike", lambda *known: None)
        ledger.grant(dataset="Clinic 1", epsilon=1)
    for name in ("clinic 1", "Clinic 1"):
        ledger.charge(dataset=name, epsilon="1/100", analyst="ana")
    assert ledger.verify().ok


def test_a_name_is_a_plain_text_from_then_on(ledger: Ledger) -> None:
    class Name(str):
        def __eq__(self, other: object) -> bool:
            return False

        __hash__ = str.__hash__

    ledger.charge(dataset=Name("clinic 1"), epsilon="1/100", analyst=Name("ana"))
    assert {type(entry.dataset) for entry in ledger.entries()} == {str}
