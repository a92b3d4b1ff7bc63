"""The purse of a session: what it may spend, the ledger it charges, the coins it remembers, the limits it keeps.

Everything is charged in one transaction, before rows are opened. A price that hangs on coins is worked out from what
was read of them; if they have moved meanwhile, nothing is written and it is worked out again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tacit.amounts import shown
from tacit.errors import BudgetExceeded, DataRefused, Refused
from tacit.ledger.clauses.applications import WeighingRequest
from tacit.ledger.clauses.coins import CoinState, Contents, Due, OwnCoins, Reached, StateMoved, prices
from tacit.ledger.clauses.contents import Content
from tacit.ledger.clauses.tables import TableNote, check_alone
from tacit.ledger.ledger import Ledger, Receipt
from tacit.plan.leakage.shown import Shown
from tacit.plan.plans.plan import AnyPlan
from tacit.policy.policy import Policy
from tacit.release.leakage_watch import LeakageWatch
from tacit.release.split import Costs
from tacit.rows.guard import charges


class Paid(NamedTuple):
    """What was paid for: the ledger's receipts, or None for each; the coins; what was noted of the files of lines."""

    receipts: Sequence[Receipt | None]
    coins: CoinState
    kept: Contents


NOTHING_PAID = Paid((), CoinState(b"", {}, {}), {})


class Purse:
    """What one session spends, under one policy, from one data set."""

    def __init__(
        self,
        policy: Policy,
        budget: Fraction | None,
        ledger: Ledger | None,
        watch: LeakageWatch,
        *,
        dataset: str,
        analyst: str | None,
        source: str,
        content: Content | None,
    ) -> None:
        self.ledger, self.leakage = ledger, watch
        self._policy, self._budget = policy, budget
        self._dataset, self._analyst, self._source, self._content = dataset, analyst, source, content
        self._spent = Fraction(0)
        self._own_coins = OwnCoins()
        self._own_tables: list[TableNote] = []
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def remaining(self) -> Fraction:
        """What may still be spent."""
        own = None if self._budget is None else self._budget - self._spent
        if self.ledger is None:
            assert own is not None  # noqa: S101 - a session insists on one of the two
            return own
        shared = self.ledger.remaining(dataset=self._dataset, analyst=self._analyst)
        return shared if own is None else min(own, shared)

    def reached(self, lines: Iterable[str]) -> Reached:
        """Return what lines of coins have reached, and write nothing."""
        if self.ledger is None:
            return self._own_coins.state(lines).reached
        found = self.ledger.coins_begun(dataset=self._dataset, lines=list(lines), source=self._source)
        return {} if found is None else found.reached

    def leakage_refusal(self, plan: AnyPlan) -> str:
        """Return the sentence with which limits on what applications learn would refuse a plan; write nothing."""
        if not plan.shows:
            return ""
        lines = list(plan.lines_asked)
        coins: CoinState | None = self._own_coins.state(lines)
        if self.ledger is not None:
            coins = self.ledger.coins_begun(dataset=self._dataset, lines=lines, source=self._source)
        try:
            self.leakage.check([plan], self.ledger, self._dataset, "" if coins is None else coins.mark)
        except Refused as refused:
            return str(refused)
        return ""

    def files_refusal(self, plan: AnyPlan) -> str:
        """Return the sentence with which a plan would be refused for what its files hold; write nothing."""
        lines = list(plan.lines_asked)
        if self.ledger is None or self._content is None or not lines:
            return ""
        coins = self.ledger.coins_begun(dataset=self._dataset, lines=lines, source=self._source)
        try:
            if coins is not None:
                coins.kept_now(self._content, lines)
        except DataRefused as refused:
            return str(refused)
        return ""

    def _coin_state(self, lines: Iterable[str]) -> CoinState:
        """Return the secret of the coins that are remembered, and what these lines have reached."""
        if self.ledger is None:
            return self._own_coins.state(lines)
        listed = list(lines)
        # a ledger gets a secret when the first line is asked for
        if not listed:
            return CoinState(b"", {}, {})
        return self.ledger.coins(dataset=self._dataset, lines=listed, source=self._source)

    def pay(
        self,
        due: Sequence[Due],
        *,
        run: str | None = None,
        job: str = "",
        shows: Sequence[Shown] = (),
        lines: Sequence[str] = (),
        table: TableNote | None = None,
    ) -> Paid:
        """Charge what is due, all or nothing.

        What is shown of single records is held against limits, also if nothing is due. `lines` are more of those whose
        coins decide on it; they are not raised. A `table` is held against the tables before it.
        """
        if self._budget is not None and os.getpid() != self._process:
            # what was spent is remembered in one process; a ledger alone is shared
            raise BudgetExceeded(
                "belongs to the process that made the session",
                key="budget",
                fix="Make a session here; a ledger without a budget of the session can be shared.",
            )
        with self._lock:
            while True:
                asked = [*(line for one in due for line in one.lines), *lines]
                coins = self._coin_state(asked)
                kept = {} if self._content is None else coins.kept_now(self._content, asked)
                costs, after = prices(due, coins.reached)
                epsilon = sum(costs, Fraction(0))
                if self._budget is not None and self._spent + epsilon > self._budget:
                    raise BudgetExceeded(
                        f"must not exceed what remains, {shown(self._budget - self._spent)}",
                        key="epsilon",
                        given=shown(epsilon),
                        fix="Ask for less, or start a session with a larger budget.",
                    )
                weighing = self.leakage.weighing(shows, coins.mark)
                if self.ledger is None:
                    if table is not None:
                        check_alone(table, self._own_tables, self._dataset)
                    self.leakage.weigh(weighing)
                with contextlib.suppress(StateMoved), charges.charging(epsilon):
                    noted: Any = {"kept": kept, "weighing": weighing, "table": table}
                    receipts = self._receipts(due, costs, coins, after, run=run, job=job, **noted)
                    self._own_tables += [] if table is None else [table]
                    self._own_coins.raised(after)
                    self._spent += epsilon
                    return Paid(receipts, coins, kept)

    def were_shown(self, paid: Paid, lines: Iterable[str]) -> None:
        """Note that lines are shown with what their files held, before they are handed out; or refuse that."""
        kept = {line: paid.kept[line] for line in lines if line in paid.kept}
        if self.ledger is not None and kept:
            self.ledger.were_shown(dataset=self._dataset, kept=(paid.coins, kept))

    def were_not_shown(self, paid: Paid) -> None:
        """Take back what files held, after a refusal that showed nothing of them."""
        if self.ledger is not None and paid.kept:
            self.ledger.were_not_shown(dataset=self._dataset, kept=(paid.coins, paid.kept))

    def _receipts(
        self,
        due: Sequence[Due],
        costs: Sequence[Fraction],
        coins: CoinState,
        after: Reached,
        *,
        run: str | None,
        job: str,
        kept: Contents,
        weighing: WeighingRequest | None,
        table: TableNote | None,
    ) -> list[Receipt | None]:
        """Charge the ledger, if there is one. What costs nothing, since it was paid for before, has that receipt."""
        if self.ledger is None:
            return [None] * len(due)
        whom: dict[str, Any] = {"dataset": self._dataset, "analyst": self._analyst}
        listed = [(cost, one.what) for cost, one in zip(costs, due, strict=True) if cost]
        lines = (coins, after) if after else None
        paid: dict[str, Any] = {"charges": listed, "policy": self._policy, "coins": lines, "weighing": weighing}
        paid |= {"kept": (coins, kept) if kept else None, "table": table}
        made = iter(self.ledger.reserve(**whom, **paid, run=run, job=job))
        found: list[Receipt | None] = []
        for cost, one in zip(costs, due, strict=True):
            if cost:
                found.append(next(made))
                continue
            entry = max((coins.entries[line] for line in one.lines if line in coins.entries), default=None)
            found.append(None if entry is None else self.ledger.receipt(**whom, entry=entry))
        return found


def fixed(costs: Costs) -> list[Due]:
    """Return charges whose price depends on nothing."""
    return [Due(what, lambda _, cost=cost: cost) for cost, what in costs]  # type: ignore[misc]
