"""Files that an earlier version wrote open as before: a ledger with coins and limits, monitors, certificates."""

import json
import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit as tc
from tacit.ledger.chain import LedgerEntry
from tacit.monitor.history import History
from tacit.release import session

STORED = Path(__file__).parents[1] / "stored"
ROWS = pd.DataFrame({"id": range(12), "room": ["a", "b"] * 6, "arrival": ["early", "late", "early"] * 4})
ROOMS = tc.Domain({"room": tc.Categories(["a", "b"]), "arrival": tc.Categories(["early", "late"])})
LATE = tc.Policy(ROOMS, tc.secrets.attributes("arrival", where="arrival == 'late'"))
ALL = tc.Policy(ROOMS, tc.secrets.attributes("arrival"))
TOWN = tc.Policy(
    tc.Domain({"visited": tc.Items(["gym", "cafe", "park"])}), secrets=tc.secrets.values({"visited": [1]}), name="town"
)
TABLE: dict[str, Any] = {"public": ["room"], "sensitive": "arrival"}
VALUES = ["early", "late"]
GYM: dict[str, Any] = {"place": "gym", "threshold": 5, "epsilon": 1, "window": 3}


def limits() -> tc.Applications:
    day = tc.Dependence.from_table({("late",): 0.3, ("early",): 0.7}, names=("arrival",))
    return tc.Applications(day, sensitive={"arrival": ["late"]}, coalitions={"heat": ["heat"]}, limit=2)


def asked(version: str = "") -> Any:
    return tc.true_records("arrival", key="id", application="heat", **({"version": version} if version else {}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the ledger, the state of a monitor, and the rows that both are about."""
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "source_name", lambda rows: "rooms.csv" if isinstance(rows, str) else "")
    for name in ("ledger", "monitor"):
        with sqlite3.connect(f"{name}.db") as db:
            db.executescript((STORED / f"{name}.sql").read_text(encoding="utf-8"))
        db.close()
    ROWS.to_csv("rooms.csv", index=False)
    return tmp_path


def opened() -> tc.Session:
    rooms: dict[str, Any] = {"ledger": "ledger.db", "dataset": "rooms", "analyst": "ana", "leakage": limits()}
    return tc.Session(LATE, "rooms.csv", **rooms)


def paying(**options: Any) -> tc.Session:
    return tc.Session(ALL, ROWS, **{"ledger": "ledger.db", "dataset": "wards", "analyst": "ana", **options})


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((STORED / f"{name}.certificate.json").read_text(encoding="utf-8"))
    return found


def constant(certificate: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return a certificate in the order of its keys, without what is new each time."""
    plain = json.loads(json.dumps(certificate))
    return [(key, None if key in ("made", "ledger", "earlier", "tacit") else said) for key, said in plain.items()]


# ---- the ledger -----------------------------------------------------------------------------------------------------


def test_a_ledger_opens_as_before(folder: Path) -> None:
    with tc.Ledger("ledger.db") as ledger:
        assert ledger.verify().ok
        spent = {(one.dataset, one.analyst): one.spent for one in ledger.accounts()}
        table = Fraction("999999999339/1000000000000")
        assert spent == {("rooms", None): 1, ("rooms", "ana"): 1, ("town", None): 1, ("wards", None): 2 * table + 1}
        assert [(run.run, run.first, run.state) for run in ledger.runs()] == [("a run", 12, "reserved")]
        assert [(str(one), one.epsilon) for one in ledger.shown(dataset="rooms")] == [("arrival to heat", 1)]
        assert [one.coalition for one in ledger.leakage(dataset="rooms")] == ["heat"]
        kinds = " ".join(entry.kind for entry in ledger.entries())
        assert kinds == "grant grant limits charge shown grant charge table charge table charge charge grant charge"
        assert isinstance(ledger.entries()[0], LedgerEntry)
        assert [part.epsilon for part in ledger.statement(dataset="wards").parts] == [2 * table + 1]
        assert ledger.coin_lines(dataset="rooms") == [1]


def test_a_ledger_is_charged_as_before(folder: Path) -> None:
    with tc.Ledger("ledger.db") as ledger:
        before = ledger.remaining(dataset="wards")
        assert ledger.charge(dataset="wards", analyst="ana", epsilon="0.5", policy=ALL).remaining == before - Fraction(
            1, 2
        )
        ledger.ended("a run")
        assert (ledger.runs()[0].state, ledger.verify().ok) == ("finished", True)


def test_coins_are_remembered_and_cost_nothing_more(folder: Path) -> None:
    shown = pd.read_csv(STORED / "records.csv")
    room = opened()
    found = room.release(asked(), epsilon=1).frame
    assert found["id"].tolist() == shown["id"].tolist()
    assert found["arrival"].fillna("").tolist() == shown["arrival"].fillna("").tolist()
    assert room.remaining == 3
    room.release(asked("2"), epsilon="0.1")
    assert room.remaining == Fraction("2.9")


def test_other_rows_and_other_limits_are_refused_as_before(folder: Path) -> None:
    ROWS.assign(arrival="early").to_csv("rooms.csv", index=False)
    with pytest.raises(tc.DataRefused, match="the files must hold what they held"):
        opened().release(asked(), epsilon=1)
    ROWS.to_csv("rooms.csv", index=False)
    other = tc.Applications(
        limits().dependence, sensitive={"arrival": ["late"]}, coalitions={"heat": ["heat"]}, limit=1
    )
    with pytest.raises(tc.LedgerError, match="must be those that hold for dataset 'rooms' already"):
        tc.Session(LATE, "rooms.csv", ledger="ledger.db", dataset="rooms", leakage=other)


def test_a_table_is_held_against_those_that_were_published(folder: Path) -> None:
    with pytest.raises(tc.PlanError, match="there is a table of arrival by room already"):
        tc.publish.reconstruction_private(paying(), **TABLE, retention=0.5, lam=0.9, delta=0.2)


# ---- certificates ---------------------------------------------------------------------------------------------------


def test_certificates_of_tables_are_what_they_were(folder: Path) -> None:
    session = paying()
    table = tc.publish.perturbed(session, **TABLE, epsilon=1)
    assert constant(table.certificate) == constant(stored("table"))
    version = tc.publish.append(table, session)
    assert constant(version.certificate) == constant(stored("version"))
    assert version.certificate["earlier"] == [table.certificate["ledger"]]
    plain = tc.publish.perturbed(ROWS, **TABLE, values=VALUES, epsilon=1)
    assert constant(plain.certificate) == constant(stored("plain_table"))
    masked = tc.publish.reconstruction_private(ROWS, **TABLE, values=VALUES, retention=0.5, lam=0.9, delta=0.2)
    assert constant(masked.certificate) == constant(stored("criterion"))


def test_the_certificate_of_a_release_is_what_it_was(folder: Path) -> None:
    released = paying().release(tc.count("arrival == 'late'"), epsilon=Fraction(1, 2))
    assert constant(released.certificate) == constant(stored("release"))
    assert set(released.certificate["ledger"]) == set(stored("release")["ledger"])


# ---- monitors -------------------------------------------------------------------------------------------------------


def test_the_state_of_a_monitor_opens_as_before(folder: Path) -> None:
    published = pd.read_csv(STORED / "monitor.csv")
    assert History.read("monitor.db").frame["verdict"].tolist() == published["verdict"].tolist()
    with tc.PlaceMonitor(TOWN, **GYM, state="monitor.db", ledger="ledger.db", dataset="town", analyst="ana") as monitor:
        assert constant(monitor.certificate) == constant(stored("monitor"))
        assert monitor.certificate["ledger"] == stored("monitor")["ledger"]  # charged once
        again = monitor.feed(["cafe"], batch_id="first")
        assert (again.verdict, again.value) == ("above", published["value"][0])
        assert monitor.feed(["gym"], batch_id="fourth").step == 3


def test_the_certificate_of_a_map_is_what_it_was() -> None:
    with tc.MapMonitor(TOWN, threshold=5, epsilon=1) as monitor:
        monitor.feed(["gym"] * 100)
        assert constant(monitor.certificate) == constant(stored("map"))
