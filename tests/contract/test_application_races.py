"""Two processes that show records at once: together they never tell a coalition more than its limit."""

from __future__ import annotations

import multiprocessing
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tacit as tc
from tacit.ledger.applications import Weighing
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
            ledger.reserve(dataset="rooms", charges=[(STEP, "records")], weighing=Weighing((shown,), wanted))
            asked += 1
    except tc.BudgetExceeded as refused:
        told.put((asked, "leakage of both" in str(refused)))


def test_racing_processes_keep_the_limit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)
    where = str(tmp_path / "ledger.db")
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
