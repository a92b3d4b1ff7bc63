"""Two processes that show records at once: together they never tell a coalition more than its limit."""

import multiprocessing
import warnings
from fractions import Fraction
from typing import Any

import pytest

import tacit as tc
from tacit.ledger import clauses
from tacit.ledger.clauses import RecordsShown
from tacit.plan.leakage.shown import Shown

FORK = multiprocessing.get_context("fork")
STEP = Fraction(1, 20)


def limits() -> tc.Applications:
    day = tc.Dependence.from_table({("l", "e"): 0.3, ("l", "l"): 0.1, ("e", "l"): 0.6}, names=("arrival", "leaving"))
    coalitions = {"both": ["lighting", "space"]}
    return tc.Applications(day, sensitive={"arrival": ["l"], "leaving": ["e"]}, coalitions=coalitions, limit=0.4)


def ask(where: str, shown: Shown, start: Any, told: Any) -> None:
    ledger, wanted, asked = tc.Ledger(where), limits(), 0
    start.wait()
    try:
        while True:
            ledger.reserve(dataset="rooms", charges=[(STEP, "records")], clauses=[RecordsShown((shown,), wanted)])
            asked += 1
    except tc.BudgetExceeded as refused:
        told.put((asked, "leakage of both" in str(refused)))


@pytest.mark.parametrize("patience", [pytest.param(0, marks=pytest.mark.slow), 20])
def test_racing_processes_keep_the_limit_together(where: str, patience: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clauses, "PATIENCE", patience)  # with none, everything is weighed while others wait
    ledger = tc.Ledger(where)
    ledger.grant(dataset="rooms", epsilon=100)
    ledger.limit_leakage(dataset="rooms", applications=limits())
    start, told = FORK.Event(), FORK.Queue()
    lines = [Shown("lighting", "arrival", STEP), Shown("space", "leaving", STEP)]
    workers = [FORK.Process(target=ask, args=(where, line, start, told), daemon=True) for line in lines]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for worker in workers:
            worker.start()
    start.set()
    asked = [told.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert all(by_leakage for _, by_leakage in asked)
    shown = ledger.shown(dataset="rooms")
    assert len(shown) == sum(many for many, _ in asked) > 2
    (stands,) = limits().standing(shown)
    assert stands.leakage <= 0.4
    # either of the two would have gone over it
    assert all(limits().standing([*shown, line])[0].leakage > 0.4 for line in lines)
    assert ledger.verify().ok


@pytest.mark.parametrize("patience", [1, 20])
def test_what_was_shown_between_weighing_and_charging_is_seen(
    where: str, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process is faster, once: what was worked out before is not used, and the limit holds for both.

    Whoever has lost as often as that waits no longer, and works it out while others wait.
    """
    monkeypatch.setattr(clauses, "PATIENCE", patience)
    ledger, wanted, large = tc.Ledger(where), limits(), Fraction(1)
    ledger.grant(dataset="rooms", epsilon=100)
    ledger.limit_leakage(dataset="rooms", applications=wanted)
    arrival, leaving = Shown("lighting", "arrival", large), Shown("space", "leaving", large)
    assert max(wanted.standing([one])[0].leakage for one in (arrival, leaving)) <= 0.4
    assert wanted.standing([arrival, leaving])[0].leakage > 0.4
    prepare, looks = clauses.RecordsShown.prepare, []

    def slowly(showing: clauses.RecordsShown, *where_it_is: Any) -> None:
        prepare(showing, *where_it_is)
        looks.append(showing)
        if len(looks) == 1:
            other = tc.Ledger(where)
            other.reserve(dataset="rooms", charges=[(large, "other")], clauses=[RecordsShown((leaving,), wanted)])

    monkeypatch.setattr(clauses.RecordsShown, "prepare", slowly)
    with pytest.raises(tc.BudgetExceeded, match="leakage of both"):
        ledger.reserve(dataset="rooms", charges=[(large, "own")], clauses=[RecordsShown((arrival,), wanted)])
    assert len(looks) == 3  # our own, the other's, and our own again
    assert ledger.shown(dataset="rooms") == [leaving]
    assert ledger.remaining(dataset="rooms") == 99
    assert ledger.verify().ok


def test_the_ledger_is_not_locked_while_a_release_is_weighed(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, wanted = tc.Ledger(where), limits()
    ledger.grant(dataset="rooms", epsilon=100)
    ledger.limit_leakage(dataset="rooms", applications=wanted)
    other = tc.Ledger(where, wait_seconds=0.2)
    weigh = tc.Applications.weigh_after

    def meanwhile(*given: Any, **more: Any) -> Any:
        other.charge(dataset="rooms", epsilon=1)
        return weigh(*given, **more)

    monkeypatch.setattr(tc.Applications, "weigh_after", meanwhile)
    shown = Shown("lighting", "arrival", STEP)
    ledger.reserve(dataset="rooms", charges=[(STEP, "own")], clauses=[RecordsShown((shown,), wanted)])
    assert ledger.remaining(dataset="rooms") == 99 - STEP
