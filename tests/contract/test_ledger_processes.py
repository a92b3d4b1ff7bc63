"""A ledger under racing, killed and forked processes: nothing is overspent and nothing acknowledged is lost."""

import contextlib
import multiprocessing
import os
import signal
import time
import warnings
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import BudgetExceeded
from tacit.ledger.ledger import Ledger

PROCESSES = 8


FORK = multiprocessing.get_context("fork")  # a process that has loaded everything: an import takes longer than a race


def work(mouth: Connection, where: str, name: str, grants: str, charges: str) -> None:
    """Grant on the first word and charge on the second, until nothing fits; in a process of its own."""
    mouth.send("ready")
    mouth.recv()
    ledger = Ledger(where)
    ledger.grant(dataset="clinic", epsilon=grants)
    mouth.send("granted")
    mouth.recv()
    try:
        while True:
            receipt = ledger.charge(dataset="clinic", analyst=name, epsilon=charges)
            mouth.send(f"{receipt.entry} {receipt.hash}")
    except BudgetExceeded:
        mouth.send("refused")


class Worker:
    """A process that grants on the first word and charges on the second, until nothing fits."""

    def __init__(self, where: str, name: str, *, grants: str, charges: str) -> None:
        self._ear, mouth = FORK.Pipe()
        self.process = FORK.Process(target=work, args=(mouth, where, name, grants, charges), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads that we do not have
            self.process.start()
        mouth.close()  # the end of the process is then the end of what can be heard

    def go(self) -> None:
        self._ear.send("go")

    def hears(self, word: str) -> None:
        assert self.line() == word

    def line(self) -> str:
        return str(self._ear.recv())

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)

    def rest(self) -> list[str]:
        """Wait for the end and return what was said meanwhile; a word that was cut was not said."""
        said = []
        with self._ear, contextlib.suppress(EOFError, ConnectionError):
            while True:
                said.append(self.line())
        self.process.join(timeout=60)
        return said


def started(where: str, *, count: int, grants: str, charges: str) -> list[Worker]:
    """Return workers that have all opened the fresh ledger at the same time, granted, and wait to charge."""
    workers = [Worker(where, f"analyst{n}", grants=grants, charges=charges) for n in range(count)]
    for worker in workers:
        worker.hears("ready")
    for worker in workers:
        worker.go()
    for worker in workers:
        worker.hears("granted")
    return workers


@pytest.mark.one_in(5)
def test_racing_processes_spend_all_that_was_granted_and_no_more(where: str) -> None:
    workers = started(where, count=PROCESSES, grants="1/2", charges="1/15")
    for worker in workers:
        worker.go()
    said = [worker.rest() for worker in workers]
    assert all(lines[-1] == "refused" for lines in said)
    assert all(worker.process.exitcode == 0 for worker in workers)
    receipts = [line for lines in said for line in lines[:-1]]
    with Ledger(where) as ledger:
        # 8 grants of 1/2 hold 60 charges of 1/15 and not one more.
        assert len(receipts) == 60
        assert (ledger.accounts()[0].granted, ledger.remaining(dataset="clinic")) == (4, 0)
        charges = {f"{e.number} {e.hash}" for e in ledger.entries() if e.kind == "charge"}
        assert set(receipts) == charges
        assert (ledger.verify().ok, ledger.verify().entries) == (True, 68)


@pytest.mark.one_in(5)
def test_what_was_acknowledged_survives_kill_9(where: str) -> None:
    workers = started(where, count=4, grants="1000", charges="1/1000")
    for worker in workers:
        worker.go()
    # some from each, however slow the machine is, and then in the middle of whatever they are doing
    early = [worker.line() for worker in workers for _ in range(4)]
    for worker in workers:
        worker.kill()
    said = [early, *(worker.rest() for worker in workers)]
    assert all(worker.process.exitcode == -signal.SIGKILL for worker in workers)
    with Ledger(where) as ledger:
        verdict = ledger.verify()
        assert verdict.ok, verdict.problem
        written = {f"{e.number} {e.hash}" for e in ledger.entries() if e.kind == "charge"}
        acknowledged = {line for lines in said for line in lines}
        assert len(acknowledged) > 10
        assert acknowledged <= written
        # Each process may have been killed between the commit and the receipt: budget is lost, never privacy.
        assert len(written) - len(acknowledged) <= len(workers)
        spent = 4000 - ledger.remaining(dataset="clinic")
        assert spent == Fraction(len(written), 1000)
        ledger.charge(dataset="clinic", analyst="ana", epsilon=1)


def forked(work: object) -> int:
    """Run `work` in a forked child and return its process number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads that we do not have
        child = os.fork()
    if child == 0:
        try:
            work()  # type: ignore[operator]
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


@pytest.mark.one_in(5)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forked_children_may_use_the_ledger_of_their_parent(where: str) -> None:
    ledger = Ledger(where)
    ledger.grant(dataset="clinic", epsilon=1)
    ledger.charge(dataset="clinic", analyst="parent", epsilon="1/100")

    def spend() -> None:
        for _ in range(10):
            ledger.charge(dataset="clinic", analyst="child", epsilon="1/100")

    children = [forked(spend) for _ in range(4)]
    for _ in range(10):
        ledger.charge(dataset="clinic", analyst="parent", epsilon="1/100")
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert ledger.remaining(dataset="clinic") == Fraction(49, 100)
    assert (ledger.verify().ok, ledger.verify().entries) == (True, 52)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("apart", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_a_ledger_whose_creation_was_killed_can_be_created_again(apart: int, tmp_path: Path) -> None:
    for attempt in range(0, 30, apart):
        file = tmp_path / f"ledger{attempt}.db"
        child = forked(lambda file=file: Ledger(file).grant(dataset="clinic", epsilon=1))
        time.sleep(attempt * 0.001)  # creation takes some 10 to 20 ms
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with Ledger(file) as ledger:
            granted = len(ledger.entries())
            assert granted in (0, 1)
            ledger.grant(dataset="clinic", epsilon=1)
            assert ledger.remaining(dataset="clinic") == granted + 1
            assert ledger.verify().ok


def test_what_does_not_fit_is_refused_whoever_comes_first(where: str) -> None:
    first, second = Ledger(where), Ledger(where)
    first.grant(dataset="clinic", epsilon=1)
    second.charge(dataset="clinic", analyst="ana", epsilon=0.6)
    with pytest.raises(BudgetExceeded):
        first.charge(dataset="clinic", analyst="bob", epsilon=0.6)


def granted_once(where: str, ready: Any, results: Any) -> None:
    ready.wait()
    with Ledger(where) as ledger:
        results.put(ledger.grant_once(dataset="clinic", epsilon=1) is not None)


@pytest.mark.one_in(5)
def test_racing_first_grants_grant_once(where: str) -> None:
    ready, results = FORK.Barrier(PROCESSES), FORK.Queue()
    workers = [FORK.Process(target=granted_once, args=(where, ready, results)) for _ in range(PROCESSES)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(found) == 1
    with Ledger(where) as ledger:
        assert [account.granted for account in ledger.accounts()] == [1]
