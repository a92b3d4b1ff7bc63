"""A session: one policy, one set of rows, one budget. Plans, charges, and only then opens the rows.

Order of a release: make the plan from public things (refuse here if anything is wrong), charge the budget in one
transaction, open and count the rows, blur, estimate, certify. A crash after the charge loses budget, never privacy.
Several releases may be paid for in one transaction (`reserve`); each is then made at most once, since what was drawn
the first time may have been seen.
"""

from __future__ import annotations

import datetime
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.errors import BudgetExceeded, DataRefused, InternalError, LedgerError, PlanError, kind_of, sealed
from tacit.ledger.ledger import Ledger, Receipt
from tacit.mechanism.additive import blur
from tacit.mechanism.keystream import is_replayed
from tacit.plan.choose import AnyPlan, Plan, as_epsilon, choose
from tacit.plan.explain import Explanation, explain, shown
from tacit.plan.queries import Cumulative, LinearQuery, Marginals, Ranges, Total
from tacit.plan.selection_plan import SelectionPlan
from tacit.plan.verdicts import BelowPlan
from tacit.policy.domain import Domain
from tacit.policy.knowledge import KnownSize
from tacit.policy.policy import Policy, as_policy
from tacit.release.answers import true_answers
from tacit.release.asking import Asking, asking_plan
from tacit.release.infer import check_options, finished
from tacit.release.record import ReleaseRecord
from tacit.release.selected import SelectionRecord, selected
from tacit.rows.engines import is_file
from tacit.rows.guard import charges, closed, paid_for
from tacit.rows.rows import Rows, columns_of, open_rows


class Session:
    """One policy, one set of rows, one budget.

    `rows` is a path (csv, parquet, glob), a frame (pandas, polars, pyarrow), a DuckDB relation, a Spark DataFrame, an
    Ibis table, or `ItemCounts`. `person` names the column that says who owns a row; each person keeps at most
    `per_person` rows (the first ones by `order`, a column that must be public, then by their content); `item` names the
    column of items, if it is not called like the attribute. All four may stand in the policy. What is given here comes
    first, and is part of the policy that is charged. Without a person every row is a person of its own.

    With a `ledger` the budget is shared with other processes: if the data set has no budget there yet, `budget` is
    granted, otherwise the ledger's own budget holds as well. Without one, the budget is this object's alone.
    """

    @sealed
    def __init__(
        self,
        policy: Policy,
        rows: Any,
        budget: Any = None,
        *,
        ledger: str | Path | Ledger | None = None,
        analyst: str | None = None,
        dataset: str | None = None,
        person: str | None = None,
        per_person: int | None = None,
        order: str | None = None,
        item: str | None = None,
    ) -> None:
        policy = as_policy(policy)
        _check_texts(analyst=analyst, dataset=dataset, person=person, order=order, item=item)
        if per_person is not None and (isinstance(per_person, bool) or not isinstance(per_person, int)):
            raise PlanError(f"must be a whole number, not {kind_of(per_person)}", key="per_person", fix="Leave it out.")
        if ledger is not None and not isinstance(ledger, str | Path | Ledger):
            raise LedgerError(
                f"must be a path, not {kind_of(ledger)}", key="ledger", fix="Name the file of the ledger."
            )
        policy = policy.about(person, per_person, order, item)
        _check_public_columns(policy)
        self.policy = policy
        self.analyst = analyst
        self._budget = None if budget is None else as_epsilon(budget, key="budget")
        self._spent = Fraction(0)
        self._process = os.getpid()
        self._lock = threading.Lock()
        if self._budget is None and ledger is None:
            raise PlanError("must be given", key="budget", fix="Say budget=1.0, or name a ledger with one.")
        self.dataset = dataset or _name_of(rows, named_in_ledger=ledger is not None)
        self._order = order
        self._rows = open_rows(
            rows,
            policy.domain,
            person=policy.person,
            per_person=policy.per_person,
            order=policy.order,
            item=policy.item,
            moved=policy.moved_attributes,
        )
        # after the rows: a refused source leaves no new ledger behind
        self._ledger = Ledger(ledger) if isinstance(ledger, str | Path) else ledger
        if self._ledger is not None:
            verdict = self._ledger.verify()
            if not verdict.ok:
                raise LedgerError(f"is damaged ({verdict.problem})", key="ledger", fix="Restore it before spending.")
            if self._budget is not None:
                self._ledger.grant_once(dataset=self.dataset, epsilon=self._budget, policy=self.policy)

    def __repr__(self) -> str:
        return f"Session({self.dataset!r}, policy {self.policy.name!r}, {shown(self.remaining)} remains)"

    def __copy__(self) -> Session:
        raise PlanError("must not be copied, since its budget would be spent twice", key="session", fix="Share it.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Session:
        return self.__copy__()

    def __reduce__(self) -> str:
        raise PlanError("must not be pickled, since it holds rows and a budget", key="session", fix="Make a new one.")

    @property
    def remaining(self) -> Fraction:
        """What may still be spent in this session."""
        own = None if self._budget is None else self._budget - self._spent
        if self._ledger is None:
            assert own is not None  # noqa: S101 - the constructor insists on one of the two
            return own
        shared = self._ledger.remaining(dataset=self.dataset, analyst=self.analyst)
        return shared if own is None else min(own, shared)

    @sealed
    def explain(self, query: Any, epsilon: Any, *, show: bool = True) -> Explanation:
        """Say what a release would cost and how wrong it would be. Nothing is charged, no row is opened."""
        said = explain(query, self.policy, epsilon, remaining=self.remaining - as_epsilon(epsilon))
        if show:
            sys.stdout.write(f"{said}\n")
        return said

    @sealed
    def release(
        self, query: Any, epsilon: Any, *, consistent: bool = False, nonnegative: bool = False
    ) -> ReleaseRecord:
        """Answer a question with the policy's guarantee at this cost.

        `consistent` makes marginals agree with each other and cumulative counts never fall; `nonnegative` lets no
        count be below zero. Both are post-processing and cost nothing.
        """
        made = self._prepared(query, epsilon, consistent=consistent, nonnegative=nonnegative)
        (receipt,) = self._charge([made.cost])
        return made.release(receipt)

    @sealed
    def reserve(self, asked: Sequence[Asked], *, run: str | None = None, job: str = "") -> list[Reserved]:
        """Pay for several releases at once, all of them or none, and return what makes each of them, once.

        Everything that can be refused is refused before anything is charged. With a ledger and a `run`, the ledger
        keeps that the run is under way until it is told that it has ended.
        """
        prepared = [
            self._prepared(one.query, one.epsilon, consistent=one.consistent, nonnegative=one.nonnegative)
            for one in _questions(asked)
        ]
        receipts = self._charge([one.cost for one in prepared], run=run, job=job)
        return [Reserved(one, receipt) for one, receipt in zip(prepared, receipts, strict=True)]

    def _prepared(self, query: Any, epsilon: Any, *, consistent: bool, nonnegative: bool) -> _Prepared:
        plan = choose(query, self.policy, epsilon)
        check_options(plan, consistent=consistent)
        rows, domain = self._rows, self.policy.domain
        check_rows(rows, plan.base, domain)

        def release(receipt: Receipt | None) -> ReleaseRecord:
            done = [word for word, used in (("consistent", consistent), ("nonnegative", nonnegative)) if used]
            certificate = _certificate(plan, receipt, self.dataset, done, order=self._order)
            with paid_for(plan.epsilon):
                record = closed(
                    lambda: _opened(plan, rows, domain, fit=consistent, positive=nonnegative),
                    InternalError("rows were open"),
                )
            return replace(record, certificate=certificate, _make_frame=rows.frame)

        return _Prepared((plan.epsilon, str(plan.query)), release)

    @sealed
    def asking(self, at_most: int, epsilon: Any) -> Asking:
        """Begin to ask whether counts are above thresholds, one at a time; the whole cost is charged now.

        Answers that are certain are free. After `at_most` others it refuses.
        """
        plan = asking_plan(self.policy, at_most, as_epsilon(epsilon))
        rows, domain = self._rows, self.policy.domain
        (receipt,) = self._charge([(plan.epsilon, str(plan))])

        def check(question: BelowPlan) -> None:
            check_rows(rows, question.base, domain)

        def answered(question: BelowPlan) -> SelectionRecord:
            certificate = _certificate(question, receipt, self.dataset, [], order=self._order)
            certificate["part_of"] = f"{plan}, for epsilon {shown(plan.epsilon)} in all"
            record = closed(
                lambda: selected(question, _counted(question, rows, domain)), InternalError("rows were open")
            )
            return replace(record, certificate=certificate, _make_frame=rows.frame)

        return Asking(plan, check, answered)

    def _charge(
        self, costs: Sequence[tuple[Fraction, str]], *, run: str | None = None, job: str = ""
    ) -> Sequence[Receipt | None]:
        """Charge each epsilon with its note, all or nothing; return the ledger's receipts, or None for each."""
        if self._budget is not None and os.getpid() != self._process:
            # what was spent is remembered in one process; a ledger alone is shared
            raise BudgetExceeded(
                "belongs to the process that made the session",
                key="budget",
                fix="Make a session here; a ledger without a budget of the session can be shared.",
            )
        epsilon = sum((cost for cost, _ in costs), Fraction(0))
        with self._lock:
            if self._budget is not None and self._spent + epsilon > self._budget:
                raise BudgetExceeded(
                    f"must not exceed what remains, {shown(self._budget - self._spent)}",
                    key="epsilon",
                    given=shown(epsilon),
                    fix="Ask for less, or start a session with a larger budget.",
                )
            receipts: Sequence[Receipt | None] = [None] * len(costs)
            with charges.charging(epsilon):
                if self._ledger is not None:
                    receipts = self._ledger.reserve(
                        dataset=self.dataset, analyst=self.analyst, charges=costs, policy=self.policy, run=run, job=job
                    )
                self._spent += epsilon
            return receipts


class Asked(Protocol):
    """One question of several that are paid for together."""

    @property
    def query(self) -> Any:
        """What is asked."""
        ...

    @property
    def epsilon(self) -> Fraction:
        """What it costs."""
        ...

    @property
    def consistent(self) -> bool:
        """As in `Session.release`."""
        ...

    @property
    def nonnegative(self) -> bool:
        """As in `Session.release`."""
        ...


def _questions(asked: Any) -> list[Asked]:
    """Return what was asked, or refuse what is no list of questions, without a word of what it was."""
    try:
        found = list(asked)
        is_right = all(hasattr(one, key) for one in found for key in ("query", "epsilon", "consistent", "nonnegative"))
    except Exception:  # whatever an object does when it is asked what it has
        is_right = False
    if is_right:
        return found
    raise PlanError(
        "must be a list of questions, each with query, epsilon, consistent and nonnegative",
        key="asked",
        fix="Nothing was charged. Give the releases of a job, or ask for one with `release`.",
    )


@dataclass(frozen=True)
class _Prepared:
    """A checked release that has not been paid for: its cost with a note for the ledger, and what makes it."""

    cost: tuple[Fraction, str]
    release: Callable[[Receipt | None], ReleaseRecord]


class Reserved:
    """A release that was paid for. It is made once: its noise is drawn once."""

    def __init__(self, prepared: _Prepared, receipt: Receipt | None) -> None:
        self._prepared: _Prepared | None = prepared
        self._receipt = receipt

    @sealed
    def make(self) -> ReleaseRecord:
        """Open the rows and answer.

        Raises:
            PlanError: The second time, also if the first failed: what it had drawn may have been seen.
        """
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            raise PlanError("was paid for once and made once", key="release", fix="Ask again, which costs again.")
        return prepared.release(self._receipt)


def _opened(plan: AnyPlan, rows: Rows, domain: Domain, *, fit: bool, positive: bool) -> ReleaseRecord:
    """Count, blur and estimate. True answers live in this frame and those below it, and nowhere else."""
    truth = _counted(plan, rows, domain)
    if isinstance(plan, Plan):
        return finished(plan, truth, blur(truth, plan), fit=fit, positive=positive)
    return selected(plan, truth, positive=positive)


def _counted(plan: AnyPlan, rows: Rows, domain: Domain) -> npt.NDArray[np.int64]:
    """Return the true answers of what a plan looks at."""
    declared = next((fact.people for fact in plan.policy.known if isinstance(fact, KnownSize)), None)
    if declared is not None and int(rows.counts(())) != declared:
        # the number is public, and bounds were made from it
        fix = "Correct known.size; rows that the domain drops do not count."
        raise DataRefused(f"must hold the declared number of people, {declared:,}", fix=fix)
    return true_answers(plan.base, rows, domain, joint_is_safe=plan.policy.per_person == 1)


def check_rows(rows: Rows, query: LinearQuery, domain: Domain) -> None:
    """Refuse, before anything is charged, what these rows can never answer for a public reason."""
    test = query.where.compile(domain) if query.where is not None else None
    match query:
        case Marginals(sets):
            asked: tuple[tuple[str, ...], ...] = sets
        case Cumulative(name) | Ranges(name) | Total(name):
            asked = ((name,),)
        case _:
            asked = ((),)
    for names in asked:
        rows.check(names, test)


def _check_texts(**given: Any) -> None:
    for key, value in given.items():
        if value is not None and not isinstance(value, str):
            raise PlanError(f"must be a text, not {kind_of(value)}", key=key, fix="Leave it out, or give a name.")


def _check_public_columns(policy: Policy) -> None:
    """Refuse to tell people apart, or to choose their rows, by something that a secret edge changes."""
    columns = columns_of(policy.domain, policy.item)
    secret_columns = {column for name in policy.moved_attributes for column in columns[name]}
    for key, column in (("person", policy.person), ("order", policy.order)):
        if column in secret_columns:
            raise PlanError(
                "must not be a column that the policy keeps secret",
                key=key,
                given=column,
                fix="Use an identifier or a date that no secret edge changes.",
            )


def _name_of(rows: Any, *, named_in_ledger: bool) -> str:
    """Return the name of a data set: a single file's own, and in a ledger no other is made up."""
    if isinstance(rows, str | Path) and is_file(rows):
        return Path(rows).stem
    if named_in_ledger:
        raise PlanError(
            "must be named, because the ledger keeps the budget under this name",
            key="dataset",
            fix="Say dataset='clinic', and always the same for the same people.",
        )
    return "data"


def _protected(policy: Policy, order: str | None) -> str:
    """Say whose record a release protects, and which of their rows count."""
    if policy.person is None:
        return "one row (no person column was named, so every row is taken for a person of its own)"
    many = policy.per_person
    chosen = f"the first by {order}" if order is not None else f"chosen by what is in {'it' if many == 1 else 'them'}"
    rows = "one row" if many == 1 else f"up to {many} rows"
    if any(attribute.is_set for attribute in policy.domain.values()):
        return (
            f"one person: one record, with the items of all rows with the same {policy.person} "
            f"(and everything else of {rows}, {chosen})"
        )
    return f"one person: {rows} with the same {policy.person} ({chosen})"


def _certificate(
    plan: AnyPlan, receipt: Receipt | None, dataset: str, done: list[str], *, order: str | None
) -> dict[str, Any]:
    """Return what the release promises, as plain data. Nothing in it depends on a row."""
    from tacit import __version__

    policy = plan.policy
    promise = (
        "for every secret edge hidden -> cover of the policy, every data set and every set O of outputs: "
        f"Pr[M(hidden) in O] <= exp({shown(plan.epsilon)}) * Pr[M(cover) in O]; nothing is promised from "
        "cover to hidden"
    )
    replayed = is_replayed()
    return {
        "tacit": __version__,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "dataset": dataset,
        "query": plan.query.document(),
        "epsilon": str(plan.epsilon),
        "guarantee": "none: the noise was replayed for a test" if replayed else promise,
        "protects": _protected(policy, order),
        "policy": plan.policy.document(),
        "policy_fingerprint": plan.policy.fingerprint,
        "step": {
            "up": plan.step.up,
            "down": plan.step.down,
            "l1": plan.step.l1,
            "l2": plan.step.l2,
            "exact": plan.step.exact,
            "derivation": list(plan.step.why),
        },
        "mechanism": plan.mechanism,
        "strategy": plan.strategy,
        "noise": plan.noise_document(),
        "randomness": "REPLAYED FOR A TEST: this is no release" if replayed else "fresh from the operating system",
        "expected_rmse": plan.rmse,
        **({"terms": plan.terms()} if isinstance(plan, SelectionPlan) else {}),
        "post_processing": done,
        "ledger": None if receipt is None else {"entry": receipt.entry, "hash": receipt.hash},
    }
