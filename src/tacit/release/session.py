"""A session: one policy, one set of rows, one budget. Plans, charges, and only then opens the rows.

Order of a release: make the plan from public things (refuse here if anything is wrong), charge the budget in one
transaction, open and count the rows, blur, estimate, certify. A crash after the charge loses budget, never privacy.
"""

from __future__ import annotations

import datetime
import os
import sys
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import BudgetExceeded, DataRefused, InternalError, LedgerError, PlanError, PolicyError
from tacit.mechanism.additive import blur
from tacit.mechanism.keystream import is_replayed
from tacit.plan.choose import AnyPlan, Plan, as_epsilon, choose
from tacit.plan.explain import Explanation, explain, shown
from tacit.plan.predict import exact_entries, groups_used, query_ends
from tacit.plan.queries import Cumulative, LinearQuery, Marginals, Ranges, Total
from tacit.plan.selection_plan import SelectionPlan
from tacit.plan.sums import blocks_of, centred
from tacit.plan.totals import exact_attributes
from tacit.plan.verdicts import BelowPlan
from tacit.policy.domain import Domain, Grid, Items
from tacit.policy.knowledge import KnownSize
from tacit.policy.policy import Policy
from tacit.release.answers import range_sums, true_answers
from tacit.release.asking import Asking, asking_plan
from tacit.release.engines import closed
from tacit.release.estimate import consistent, consistent_and_nonnegative, increasing, nonnegative, with_totals
from tacit.release.ledger import Ledger, Receipt
from tacit.release.record import Floats, LinearRecord, ReleaseRecord
from tacit.release.rows import Rows, open_rows
from tacit.release.selected import SelectionRecord, selected

LARGEST_JOINT = 200_000  # cells of the joint table behind consistent, non-negative marginals


class Session:
    """One policy, one set of rows, one budget.

    `rows` is a path (csv, parquet, glob), a frame (pandas, polars, pyarrow), a DuckDB relation, a Spark DataFrame, an
    Ibis table, or `ItemCounts`. `person` names the column that says who owns a row; each person keeps at most
    `per_person` rows (the first ones by `order`, a column that must be public). Both may stand in the policy; without
    them every row is a person of its own.

    With a `ledger` the budget is shared with other processes: if the data set has no budget there yet, `budget` is
    granted, otherwise the ledger's own budget holds as well. Without one, the budget is this object's alone.
    """

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
        if not isinstance(policy, Policy):
            raise PolicyError("must be a Policy", key="policy", given=policy, fix="Use tc.Policy.load('policy.yaml').")
        if person is not None or per_person is not None:
            owner = person if person is not None else policy.person
            policy = policy.owned_by(owner, per_person or (policy.per_person if person is None else 1))
        _check_public_columns(policy, order)
        self.policy = policy
        self.analyst = analyst
        self._budget = None if budget is None else as_epsilon(budget, key="budget")
        self._spent = Fraction(0)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._ledger = Ledger(ledger) if isinstance(ledger, str | Path) else ledger
        if self._budget is None and self._ledger is None:
            raise PlanError("must be given", key="budget", fix="Say budget=1.0, or name a ledger with one.")
        self.dataset = dataset or _name_of(rows, named_in_ledger=self._ledger is not None)
        self._rows = open_rows(
            rows, policy.domain, person=policy.person, per_person=policy.per_person, order=order, item=item
        )
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

    def explain(self, query: Any, epsilon: Any, *, show: bool = True) -> Explanation:
        """Say what a release would cost and how wrong it would be. Nothing is charged, no row is opened."""
        said = explain(query, self.policy, epsilon, remaining=self.remaining - as_epsilon(epsilon))
        if show:
            sys.stdout.write(f"{said}\n")
        return said

    def release(
        self, query: Any, epsilon: Any, *, consistent: bool = False, nonnegative: bool = False
    ) -> ReleaseRecord:
        """Answer a question with the policy's guarantee at this cost.

        `consistent` makes marginals agree with each other and cumulative counts never fall; `nonnegative` lets no
        count be below zero. Both are post-processing and cost nothing.
        """
        plan = choose(query, self.policy, epsilon)
        check_options(plan, wants_joint=consistent and nonnegative)
        rows, domain = self._rows, self.policy.domain
        check_rows(rows, plan.base, domain)
        receipt = self._charge(plan.epsilon, str(plan.query))
        done = [word for word, used in (("consistent", consistent), ("nonnegative", nonnegative)) if used]
        certificate = _certificate(plan, receipt, self.dataset, done)
        record = closed(
            lambda: _opened(plan, rows, domain, fit=consistent, positive=nonnegative), InternalError("rows were open")
        )
        return replace(record, certificate=certificate, _make_frame=rows.frame)

    def asking(self, at_most: int, epsilon: Any) -> Asking:
        """Begin to ask whether counts are above thresholds, one at a time; the whole cost is charged now.

        Answers that are certain are free. After `at_most` others it refuses.
        """
        plan = asking_plan(self.policy, at_most, as_epsilon(epsilon))
        rows, domain = self._rows, self.policy.domain
        receipt = self._charge(plan.epsilon, str(plan))

        def check(question: BelowPlan) -> None:
            check_rows(rows, question.base, domain)

        def answered(question: BelowPlan) -> SelectionRecord:
            certificate = _certificate(question, receipt, self.dataset, [])
            certificate["part_of"] = f"{plan}, for epsilon {shown(plan.epsilon)} in all"
            record = closed(
                lambda: selected(question, _counted(question, rows, domain)), InternalError("rows were open")
            )
            return replace(record, certificate=certificate, _make_frame=rows.frame)

        return Asking(plan, check, answered)

    def _charge(self, epsilon: Fraction, what: str) -> Receipt | None:
        if self._budget is not None and os.getpid() != self._process:
            # what was spent is remembered in one process; a ledger alone is shared
            raise BudgetExceeded(
                "belongs to the process that made the session",
                key="budget",
                fix="Make a session here; a ledger without a budget of the session can be shared.",
            )
        with self._lock:
            if self._budget is not None and self._spent + epsilon > self._budget:
                raise BudgetExceeded(
                    f"must not exceed what remains, {shown(self._budget - self._spent)}",
                    key="epsilon",
                    given=shown(epsilon),
                    fix="Ask for less, or start a session with a larger budget.",
                )
            receipt = None
            if self._ledger is not None:
                receipt = self._ledger.charge(
                    dataset=self.dataset,
                    analyst=self.analyst,
                    epsilon=epsilon,
                    policy=self.policy,
                    what=what,
                )
            self._spent += epsilon
            return receipt


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


def _check_public_columns(policy: Policy, order: str | None) -> None:
    """Refuse to tell people apart, or to choose their rows, by something that a secret edge changes."""
    secret_columns = {
        column
        for name in policy.moved_attributes
        for column in (policy.domain[name].of if isinstance(policy.domain[name], Grid) else (name,))  # type: ignore[union-attr]
    }
    for key, column in (("person", policy.person), ("order", order)):
        if column in secret_columns:
            raise PlanError(
                "must not be a column that the policy keeps secret",
                key=key,
                given=column,
                fix="Use an identifier or a date that no secret edge changes.",
            )


def _name_of(rows: Any, *, named_in_ledger: bool) -> str:
    """Return the name of a data set: a single file's own, and in a ledger no other is made up."""
    if isinstance(rows, str | Path) and Path(rows).is_file():
        return Path(rows).stem
    if named_in_ledger:
        raise PlanError(
            "must be named, because the ledger keeps the budget under this name",
            key="dataset",
            fix="Say dataset='clinic', and always the same for the same people.",
        )
    return "data"


def check_options(plan: AnyPlan, *, wants_joint: bool) -> None:
    """Refuse post-processing that would need too large a table, before anything is charged."""
    query = plan.query
    if wants_joint and isinstance(query, Marginals) and len(query.sets) > 1:
        names = {name for names in query.sets for name in names}
        cells = float(np.prod([float(plan.policy.domain[name].size) for name in names]))
        if cells > LARGEST_JOINT:
            raise PlanError(
                f"needs a joint table of {cells:,.0f} cells, more than {LARGEST_JOINT:,}",
                key="consistent and nonnegative",
                fix="Ask for one of the two, or for fewer attributes.",
            )


def _answered(plan: Plan, entries: Floats) -> Floats:
    """Return the answers of the query from the entries of its base."""
    if plan.query is plan.base:
        return entries
    below = np.concatenate([[0.0], np.cumsum(entries) if isinstance(plan.base, Marginals) else entries])
    if isinstance(plan.query, Cumulative):
        return below[1:]
    assert isinstance(plan.query, Ranges)  # noqa: S101 - the only other query that is answered through another
    return range_sums(plan.query, below, plan.policy.domain)


def finished(
    plan: Plan,
    truth: npt.NDArray[np.int64],
    noisy: npt.NDArray[np.int64],
    *,
    fit: bool = False,
    positive: bool = False,
) -> LinearRecord:
    """Return the record of a plan's noisy entries; `truth` is used only where no secret edge changes it."""
    values, exact = _estimates(plan, truth, noisy, fit=fit, positive=positive)
    raw, added = _raw_answers(plan, truth, noisy.astype(np.float64))
    return LinearRecord(plan=plan, values=values, _noisy=raw, _exact=exact, _added=added)


def _raw_answers(
    plan: Plan, truth: npt.NDArray[np.int64], noisy: Floats
) -> tuple[Floats, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None]:
    """Return answers with the raw noise of a known number of entries, which intervals are made from."""
    if plan.query is plan.base or plan.noise is None:
        return _answered(plan, noisy), None
    low, high = query_ends(plan.query, plan.policy)
    if isinstance(plan.base, Cumulative):
        fixed = exact_entries(plan.base, plan.policy)
        exact = np.zeros(len(noisy), dtype=np.bool_) if fixed is None else fixed
        values = _answered(plan, np.where(exact, truth.astype(np.float64), noisy))
        return values, ((~exact[high]).astype(np.int64), ((low > 0) & ~exact[low - 1]).astype(np.int64))
    groups = groups_used(plan.query, plan.base, plan.policy, plan.noise)
    blocks = None if groups is None else blocks_of(groups[0])
    if blocks is None:
        return _answered(plan, noisy), (high - low + 1, np.zeros_like(low))
    values, plus, minus = centred(low, high, blocks, noisy, truth)
    return values, (plus, minus)


def _estimates(
    plan: Plan, truth: npt.NDArray[np.int64], noisy: npt.NDArray[np.int64], *, fit: bool, positive: bool
) -> tuple[Floats, npt.NDArray[np.bool_] | None]:
    """Return the best estimates, and which of them are exact. Uses the truth only where no secret edge changes it."""
    if plan.noise is None:
        values = _answered(plan, truth.astype(np.float64))
        return values, np.ones(len(values), dtype=np.bool_)
    entries: Floats = noisy - plan.per_entry(lambda law: law.mean())
    base, exact = plan.base, None
    if isinstance(base, Cumulative):
        fixed = exact_entries(base, plan.policy)
        if fixed is not None:
            entries = np.where(fixed, truth.astype(np.float64), entries)
        if fit:
            entries = increasing(entries, fixed, None if fixed is None else truth[fixed].astype(np.float64))
        exact = fixed if plan.query is base else None
    elif isinstance(base, Marginals) and not base.is_items(plan.policy.domain):
        entries, exact = _cells(plan, base, truth, entries, fit=fit, positive=positive)
        exact = exact if plan.query is base else None
    values = _answered(plan, entries)
    if fit and isinstance(plan.query, Cumulative) and plan.query is not base:
        values = _rising(plan, values, truth)
    is_count = plan.query.keyword != "total"
    return (np.asarray(nonnegative(values)) if positive and is_count else values), exact


def _rising(plan: Plan, values: Floats, truth: npt.NDArray[np.int64]) -> Floats:
    """Return cumulative counts that were added up from noisy cells, made never to fall."""
    assert isinstance(plan.query, Cumulative)  # noqa: S101 - the caller looked
    fixed = exact_entries(plan.query, plan.policy)
    known = None if fixed is None else np.cumsum(truth)[fixed].astype(np.float64)
    return increasing(values, fixed, known)


def _cells(
    plan: Plan, base: Marginals, truth: npt.NDArray[np.int64], entries: Floats, *, fit: bool, positive: bool
) -> tuple[Floats, npt.NDArray[np.bool_] | None]:
    domain = plan.policy.domain
    groups = groups_used(plan.query, base, plan.policy, plan.noise)
    ends = np.cumsum(base.sizes(domain))[:-1]
    if fit and len(base.sets) > 1:
        sizes = {name: domain[name].size for name in domain if any(name in names for names in base.sets)}
        shaped = {
            names: part.reshape([sizes[name] for name in names])
            for names, part in zip(base.sets, np.split(entries, ends), strict=True)
        }
        exact: dict[tuple[str, ...], Floats] = {}
        if groups is not None:
            for names, part in zip(base.sets, np.split(truth, ends), strict=True):
                kept = exact_attributes(plan.policy, names)
                away = tuple(place for place, name in enumerate(names) if name not in kept)
                table = part.reshape([sizes[name] for name in names]).sum(axis=away)
                exact[tuple(name for name in names if name in kept)] = table.astype(np.float64)
        fitted = (consistent_and_nonnegative if positive else consistent)(shaped, sizes, exact)
        return np.concatenate([fitted[names].reshape(-1) for names in base.sets]), None
    if groups is None:
        return entries, None
    weights = plan.per_entry(lambda law: law.variance())
    parts, known = [], []
    for group, noisy_part, true_part, weight in zip(
        groups, np.split(entries, ends), np.split(truth, ends), np.split(weights, ends), strict=True
    ):
        totals = np.bincount(group, true_part).astype(np.float64)
        alone = np.bincount(group)[group] == 1
        fitted_part = np.where(alone, totals[group], with_totals(noisy_part, group, totals, weight))
        exact_part = alone | (weight == 0)
        if positive and not exact_part.all():
            free = ~exact_part
            left = totals - np.bincount(group, np.where(free, 0.0, fitted_part), minlength=len(totals))
            fitted_part[free] = nonnegative(fitted_part[free], group[free], left)
        parts.append(fitted_part)
        known.append(exact_part)
    return np.concatenate(parts), np.concatenate(known)


def _certificate(plan: AnyPlan, receipt: Receipt | None, dataset: str, done: list[str]) -> dict[str, Any]:
    """Return what the release promises, as plain data. Nothing in it depends on a row."""
    from tacit import __version__

    policy = plan.policy
    if policy.person is None:
        owner = "one row (no person column was named, so every row is taken for a person of its own)"
    else:
        rows = "the first row" if policy.per_person == 1 else f"the first {policy.per_person} rows"
        if any(isinstance(attribute, Items) for attribute in policy.domain.values()):
            rows = "one record, with the items of all rows (and everything else of the first row)"
        owner = f"one person: {rows} with the same {policy.person}"
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
        "protects": owner,
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
