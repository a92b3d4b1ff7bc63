"""What a session may spend, the ledger it charges, the coins it remembers, and its limits on what applications learn.

Everything is charged in one transaction, before rows are opened. Where a price depends on coins, it is computed from
the coins that were read; if they have moved meanwhile, nothing is written and it is computed again.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from tacit.amounts import shown
from tacit.dependence.unrolled import AT, base_of
from tacit.errors import (
    BudgetExceeded,
    DataRefused,
    LedgerError,
    PlanError,
    PolicyError,
    Refused,
    TacitError,
    kind_of,
    nearest,
    word_or_kind,
)
from tacit.ledger.applications import Applications
from tacit.ledger.chain import shown_name
from tacit.ledger.clauses import Clause, Limits, RecordsShown, TableNote, check_alone
from tacit.ledger.coins import CoinState, Content, Contents, RaisedCoins, Reached, StateMoved
from tacit.ledger.ledger import Ledger, Receipt
from tacit.noise.kept_coins import new_secret
from tacit.plan.leakage.shown import Shown, ShownSoFar, labels_by, of_each
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.records import RecordsPlan
from tacit.policy.application import coalitions
from tacit.policy.attributes.attribute import Attribute
from tacit.policy.policy import Policy
from tacit.release.split import Costs
from tacit.rows.guard import charges


class LeakageWatch:
    """The limits of one session. With a ledger they are kept there; without one, what was shown is remembered here."""

    def __init__(self, applications: Applications | None, policy: Policy) -> None:
        if applications is not None and not isinstance(applications, Applications):
            rule = f"must be limits on what applications learn, not {kind_of(applications)}"
            fix = "Say leakage=tc.Applications(dependence, sensitive=.., coalitions=.., limit=..)."
            raise PlanError(rule, key="leakage", fix=fix)
        if applications is not None:
            applications.check_public()
            _check_domain(applications, policy)
            _check_coalitions(applications, policy)
        self._applications = applications
        self._seen = ShownSoFar()

    def begin(self, ledger: Ledger, dataset: str) -> None:
        """Let the limits hold in a ledger."""
        if self._applications is not None:
            ledger.limit_leakage(dataset=dataset, applications=self._applications)

    def of(self, plans: Iterable[Plan]) -> tuple[Shown, ...]:
        """Return what plans show of single records."""
        listed = [records for plan in plans if (records := plan.records) is not None]
        if self._applications is not None:
            for records in listed:
                _check_hidden(self._applications, records)
        return tuple(one for records in listed for one in self._named(records))

    def _named(self, records: RecordsPlan) -> Iterable[Shown]:
        """Return what records show, under the names that limits have for days and people."""
        limits = self._applications
        if limits is None or not limits.by:
            return records.shows
        query = records.query
        picked = labels_by(records.policy.domain, limits.by, query.where)
        return of_each(records.shows, limits.each, picked, has_own_coins=set(limits.by) <= set(query.key))

    def showing(self, shows: Iterable[Shown], mark: str) -> RecordsShown | None:
        """Return the clause that holds what is shown against the limits; None if no single record is shown.

        `mark` tells the secret that coins are made from: coins of another secret are other coins.
        """
        found = tuple(one if not one.line else replace(one, line=shown_name(one.line, mark)) for one in shows)
        return RecordsShown(found, self._applications) if found else None

    def check(
        self, plans: Iterable[Plan], ledger: Ledger | None, dataset: str, mark: str, *, opening: bool = False
    ) -> None:
        """Refuse plans that would tell more than limits allow, with the sentence of their charge; write nothing.

        `opening` also refuses limits that could not begin to hold in the ledger.
        """
        showing = self.showing(self.of(plans), mark)
        if ledger is None:
            if showing is not None and self._applications is not None:
                self._applications.weigh_after(self._seen, showing.shown)
            return
        limits = Limits(self._applications) if opening and self._applications is not None else None
        if clauses := [one for one in (limits, showing) if one is not None]:
            ledger.check(dataset=dataset, clauses=clauses)

    def weigh(self, showing: RecordsShown | None) -> None:
        """Hold what is shown against the limits of a session without a ledger, and remember it; or refuse."""
        if showing is None:
            return
        if self._applications is not None:
            self._applications.weigh_after(self._seen, showing.shown)
        self._seen.add(showing.shown)


def _check_hidden(applications: Applications, plan: RecordsPlan) -> None:
    """Refuse a release that hides other values than the limits take for sensitive: it tells something else."""
    pairs = [(shows, name) for shows in plan.shows for name in applications.names_of(shows.attribute)]
    for one, name in pairs:
        if one.is_public:
            continue  # refused where it is weighed, if at all
        known = applications.dependence.values[name]
        wanted, found = applications.sensitive.get(name, frozenset()), plan.never_shown(one.attribute)
        if found is None:
            rule = "must be hidden by its own value alone where limits on what applications learn hold"
            fix = "Nothing was charged. Name a key, and let the policy protect values of this attribute."
            raise PlanError(rule, key="leakage", given=one.attribute, fix=fix)
        if found & set(known) != wanted & set(known):
            raise PlanError(
                f"must take for sensitive what the policy hides of {one.attribute}: "
                f"{', '.join(sorted(map(str, found))[:5]) or 'nothing'}",
                key="leakage",
                given=sorted(map(str, wanted))[:5],
                fix="Nothing was charged. Say the same in both.",
            )


def _check_domain(applications: Applications, policy: Policy) -> None:
    """Refuse limits about attributes that the policy does not have, or values that they do not have there."""
    days = set(labels_by(policy.domain, applications.by)) if applications.by else set()
    labels = {full: said for names in applications.each.values() for said, full in names.items()}
    for full in applications.dependence.names:
        name = base_of(full) if applications.by else full
        if name not in policy.domain:
            if applications.by:
                continue  # nobody is shown it, and a release of what is meant is refused
            fix = f"{nearest(name, list(policy.domain))} Or make the dependence of fewer attributes."
            raise PlanError("must be about attributes of the policy", key="leakage", given=name, fix=fix)
        if applications.by and labels.get(full) not in days:
            rule = f"must have names with values of {', '.join(applications.by)} as the policy writes them"
            fix = f"For instance {AT.join([name, *min(days)])}."
            raise PlanError(rule, key="leakage", given=full, fix=fix)
        for value in applications.dependence.values[full]:
            if not _is_value(value, policy.domain[name]):
                rule = f"must be about values of {name} as the policy writes them"
                fix = f"Make the dependence of such as {policy.domain[name].words(policy.domain[name].value(0))}."
                raise PlanError(rule, key="leakage", given=word_or_kind(value), fix=fix)


def _check_coalitions(applications: Applications, policy: Policy) -> None:
    """Refuse limits under which some who collude by the policy are not weighed together."""
    for pool in coalitions(policy.applications):
        if not any(set(pool) <= set(members) for members in applications.coalitions.values()):
            rule = "must have a coalition of all who pool what they see, as the policy declares it"
            fix = f"Add a coalition of {', '.join(pool)}, with its limit."
            raise PlanError(rule, key="leakage", given=list(applications.coalitions), fix=fix)


def _is_value(value: Any, attribute: Attribute) -> bool:
    try:
        return bool(attribute.canonical(value) == value)
    except PolicyError:
        return False


@dataclass(frozen=True)
class Due:
    """One charge whose price may depend on what lines of coins have reached: its note, price, and what it raises."""

    what: str
    price: Callable[[Reached], Fraction]
    lines: Reached = field(default_factory=dict)


def _prices(due: Sequence[Due], reached: Reached) -> tuple[list[Fraction], dict[str, Fraction]]:
    after = dict(reached)
    costs = []
    for one in due:
        costs.append(one.price(after))
        for line, epsilon in one.lines.items():
            after[line] = max(epsilon, after.get(line, Fraction(0)))
    return costs, after


class Paid(NamedTuple):
    """What was paid for: the ledger's receipts, or None for each; the coins; what the files of lines contain."""

    receipts: Sequence[Receipt | None]
    coins: CoinState
    contents: Contents


NO_COINS = CoinState(b"", {}, {})
NOTHING_PAID = Paid((), NO_COINS, {})


class Refusals(dict[str, TacitError]):
    """What would refuse to pay, by what it is about: `policy`, `table`, `leakage`, `files`."""

    @contextlib.contextmanager
    def catching(self, about: str, kind: type[TacitError]) -> Iterator[None]:
        """Keep a refusal of this kind, and go on."""
        try:
            yield
        except kind as refused:
            self[about] = refused

    def words(self, about: str) -> str:
        """Return the sentence of a refusal, empty if there is none."""
        return str(self.get(about, ""))


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
        self._own_coins = NO_COINS  # of a session without a ledger, as long as it lives
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
        found = self._coins_so_far(lines)
        return {} if found is None else found.reached

    def refusals(self, plans: Sequence[Plan], *, opening: bool = False, table: TableNote | None = None) -> Refusals:
        """Return what would refuse to pay for plans and a table as things stand: a dry run, which writes nothing.

        `opening` asks as well what a session would refuse that is opened for them: its policy, and its limits.
        """
        found, ledger = Refusals(), self.ledger
        lines = [line for plan in plans for line in plan.coin_lines]
        coins = self._coins_so_far(lines) if lines else None
        if ledger is not None and opening and any(one.dataset == self._dataset for one in ledger.accounts()):
            with found.catching("policy", LedgerError):
                ledger.check_policies(dataset=self._dataset, policies=[self._policy], analyst=self._analyst)
        if ledger is not None and table is not None:
            with found.catching("table", PlanError):
                ledger.check(dataset=self._dataset, clauses=[table])
        with found.catching("leakage", Refused):
            mark = "" if coins is None else coins.mark
            self.leakage.check(plans, ledger, self._dataset, mark, opening=opening)
        if ledger is not None and coins is not None and self._content is not None:
            with found.catching("files", DataRefused):
                coins.contents_now(self._content, lines)
        return found

    def _coins_so_far(self, lines: Iterable[str]) -> CoinState | None:
        """Return the state of these lines, without beginning a secret in the ledger; None if it has none yet."""
        if self.ledger is None:
            return self._coin_state(lines)
        return self.ledger.coins_begun(dataset=self._dataset, lines=list(lines), source=self._source)

    def _coin_state(self, lines: Iterable[str]) -> CoinState:
        """Return the secret of the coins that are remembered, and what these lines have reached.

        The first line that is asked for makes the secret, in a ledger or in a session without one.
        """
        listed = list(lines)
        if self.ledger is None:
            if listed and not self._own_coins.secret:
                self._own_coins = CoinState(new_secret(), {}, {})
            return self._own_coins
        if not listed:
            return NO_COINS
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
            fix = "Make a session here; a ledger without a budget of the session can be shared."
            raise BudgetExceeded("belongs to the process that made the session", key="budget", fix=fix)
        with self._lock:
            while True:
                lines_read = [*(line for one in due for line in one.lines), *lines]
                coins = self._coin_state(lines_read)
                contents = {} if self._content is None else coins.contents_now(self._content, lines_read)
                costs, after = _prices(due, coins.reached)
                epsilon = sum(costs, Fraction(0))
                if self._budget is not None and self._spent + epsilon > self._budget:
                    rule = f"must not exceed what remains, {shown(self._budget - self._spent)}"
                    fix = "Ask for less, or start a session with a larger budget."
                    raise BudgetExceeded(rule, key="epsilon", given=epsilon, fix=fix)
                showing = self.leakage.showing(shows, coins.mark) if shows else None
                if self.ledger is None:
                    if table is not None:
                        check_alone(table, self._own_tables, self._dataset)
                    self.leakage.weigh(showing)
                clauses: list[Clause] = [one for one in (table, showing) if one is not None]
                if contents or (after and epsilon):
                    clauses.append(RaisedCoins(coins, after, contents))
                with contextlib.suppress(StateMoved), charges.charging(epsilon):
                    receipts = self._receipts(due, costs, coins, clauses, run=run, job=job)
                    self._own_tables += [] if table is None else [table]
                    self._own_coins = replace(self._own_coins, reached=after)
                    self._spent += epsilon
                    return Paid(receipts, coins, contents)

    def were_shown(self, paid: Paid, lines: Iterable[str]) -> None:
        """Note that lines are shown with what their files held, before they are handed out; or refuse that."""
        contents = {line: paid.contents[line] for line in lines if line in paid.contents}
        if self.ledger is not None and contents:
            self.ledger.were_shown(dataset=self._dataset, kept=(paid.coins, contents))

    def were_not_shown(self, paid: Paid) -> None:
        """Take back what files held, after a refusal that showed nothing of them."""
        if self.ledger is not None and paid.contents:
            self.ledger.were_not_shown(dataset=self._dataset, kept=(paid.coins, paid.contents))

    def _receipts(
        self,
        due: Sequence[Due],
        costs: Sequence[Fraction],
        coins: CoinState,
        clauses: Sequence[Clause],
        *,
        run: str | None,
        job: str,
    ) -> list[Receipt | None]:
        """Charge the ledger, if there is one. What costs nothing, since it was paid for before, has that receipt."""
        if self.ledger is None:
            return [None] * len(due)
        whom: dict[str, Any] = {"dataset": self._dataset, "analyst": self._analyst}
        whose = f"{job}: " if job else ""
        listed = [(cost, f"{whose}{one.what}") for cost, one in zip(costs, due, strict=True) if cost]
        made = iter(self.ledger.reserve(**whom, charges=listed, policy=self._policy, clauses=clauses, run=run, job=job))
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
