"""Where the counts of a table come from, and who pays: plain rows, or a session with a policy and a budget.

Guarantee   A table is drawn only if every secret edge of the session's policy leaves the public columns as they are,
            the groups were not made from people's rows, and epsilon is charged before rows are opened. A method that
            would lose more than this is not drawn.
Assumes     The method keeps its epsilon along every edge that changes one record's sensitive values alone.
Why         Edges between neighbours change one person's record: one row, since of each person one row counts. Refused
            are edges that change a public column, secret presence (sizes of groups are published), and facts that an
            edge changes: making up for them may move other people along any values. With `one_per`, a table is a
            mixture, over who is picked of a set, of tables in which that set has one record: whatever the values of all
            its members change to, each part of the mixture changes by epsilon at most, and so does the whole.
Reference   Blowfish privacy, section 8 (constraints couple people).
Checked by  tests/unit/publish/test_published_tables.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import Ints
from tacit.errors import InternalError, PlanError, PolicyError, kind_of
from tacit.ledger.clauses import TableNote
from tacit.ledger.ledger import Receipt
from tacit.noise.keystream import is_replayed
from tacit.plan.measure.measured import CellCounts
from tacit.plan.sensitivity.steps import is_touched
from tacit.policy.policy import Policy
from tacit.publish.groups import (
    Columns,
    Generalisation,
    PersonalGroups,
    as_columns,
    as_generalisation,
    check_covers,
    check_protected,
    merged,
    personal_groups,
)
from tacit.publish.methods.method import Method, PromisingMethod
from tacit.publish.table import ONE_PER, PaidAccount, PublishedTable
from tacit.release.certificate import now, receipt_facts
from tacit.release.publication import announced
from tacit.release.session import Session
from tacit.rows.sources.engine import MakeFrame


@dataclass(frozen=True)
class Choice:
    """What a table costs, and which method makes it, by the public sizes of groups.

    `promises` says whether the method keeps a criterion, `again` that the table is made although others of the same
    rows may tell about the same columns.
    """

    epsilon: Fraction
    method: Callable[[Ints], Method]
    promises: bool
    again: bool = False


def columns_for(source: Any, public: Any, sensitive: Any, values: Any) -> Columns:
    """Return the columns of a table; of a session, or under a policy, with the values of its domain."""
    policy = source.policy if isinstance(source, Session) else source
    if not isinstance(policy, Policy):
        return as_columns(public, sensitive, values)
    if values is not None:
        fix = "Leave it out."
        raise PlanError("must not be given for a session, whose domain says it", key="values", fix=fix)
    domain, names = policy.domain, [sensitive] if isinstance(sensitive, str) else sensitive
    try:
        found = as_columns(public, sensitive, {name: domain.attribute(name, key="sensitive") for name in names})
        for name in found.public:
            if domain.attribute(name, key="public").is_set:
                raise PlanError("must have one value for each person", key="public", given=name, fix="Leave it out.")
    except PolicyError as refusal:
        refused = refusal.retold(PlanError)
    else:
        check_policy(policy, found)
        return found
    raise refused


def check_policy(policy: Policy, columns: Columns) -> None:
    """Refuse a policy along whose edges a table would show more than its epsilon."""
    moved = [name for name in columns.public if name in policy.moved_attributes]
    if moved:
        rule = "must not be a column that a secret edge changes"
        raise PlanError(rule, key="public", given=moved[0], fix="Name it as sensitive, or leave it out.")
    if policy.absences:
        raise PlanError(
            "must be public, since sizes of groups are published", key="presence", given="secret", fix="Release counts."
        )
    if policy.per_person > 1:
        rule = "must be 1: each record of a person would lose epsilon"
        raise PlanError(rule, key="per_person", given=policy.per_person, fix="Keep one row of each person.")
    alone = Policy(policy.domain, policy.secrets)
    for fact in policy.known:
        if is_touched(fact, alone):
            rule = f"must not change what is known, but it is known {fact.words()}"
            raise PlanError(rule, key="secrets", fix="Choose secrets that leave it alone, or release counts.")


def published(rows: Any, columns: Columns, choice: Choice, groups: Any, one_per: Any = None) -> PublishedTable:
    """Count the groups, merge some, choose a method by their public sizes, and draw. A session pays first."""
    sets = _sets(rows, columns, one_per)
    if isinstance(rows, Session):
        return paid_table(rows, plan_table(rows.policy, columns, choice, groups))
    merges = as_generalisation(groups, columns.public)
    return _drawn(personal_groups(rows, columns, sets), merges, choice, one_per=sets)


def _sets(rows: Any, columns: Columns, given: Any) -> str | None:
    """Return the column that says which records belong together, or refuse it."""
    if given is None:
        return None
    if not isinstance(given, str):
        rule = f"must be the name of a column, not {kind_of(given)}"
        raise PlanError(rule, key=ONE_PER, fix="For instance one_per='household'.")
    if given in columns.sensitive:
        raise PlanError("must not be sensitive", key=ONE_PER, given=given, fix="Name the column that says the set.")
    if isinstance(rows, Session):
        raise PlanError(
            "must not be given for a session, which knows whose row it is",
            key=ONE_PER,
            given=given,
            fix=f"Nothing was charged. Open the session with person={given!r}: of each, one row counts.",
        )
    return given


def plan_table(policy: Policy, columns: Columns, choice: Choice, groups: Any) -> TablePlan:
    """Return the table that a session will pay for, or refuse its groups. Nothing is charged."""
    merges = as_generalisation(groups, columns.public)
    check_protected(merges)
    check_covers(merges, policy.domain)
    return TablePlan(policy, columns, choice, merges)


def paid_table(
    session: Session,
    plan: TablePlan,
    *,
    run: str | None = None,
    job: str = "",
    on_paid: Callable[[], None] | None = None,
) -> PublishedTable:
    """Let a session pay for a table, and return it."""
    tallies = (CellCounts((*plan.columns.public, *plan.columns.sensitive)),)
    announcement = announced(plan.policy, plan.epsilon, tallies, str(plan), plan.note, plan.make)
    found = session.publish(announcement, run=run, job=job, on_paid=on_paid)
    if not isinstance(found, PublishedTable):
        raise TypeError("a session returns what a publication makes")
    return found


def _drawn(
    counted: PersonalGroups,
    merges: Generalisation,
    choice: Choice,
    *,
    one_per: str | None = None,
    payer: Callable[[Fraction], PaidAccount] | None = None,
) -> PublishedTable:
    groups = merged(counted, merges)
    method = choice.method(groups.sizes)
    if method.epsilon > choice.epsilon:
        raise InternalError("a method would lose more than was charged for it")
    if isinstance(method, PromisingMethod) != choice.promises:
        raise InternalError("a table would promise something else than was noted of it")
    return PublishedTable(
        groups.without_counts(),
        groups.sizes,
        method.draw(groups.counts),
        method,
        made=now(),
        replayed=is_replayed(),
        merges=merges,
        again=choice.again,
        one_per=one_per,
        account=None if payer is None else payer(method.epsilon),
    )


@dataclass(frozen=True)
class TablePlan:
    """A table for which a session will pay: its cost, the counts that it needs, and how it is made of them."""

    policy: Policy
    columns: Columns
    choice: Choice
    merges: Generalisation

    @property
    def epsilon(self) -> Fraction:
        """What one record loses at most."""
        return self.choice.epsilon

    @property
    def note(self) -> TableNote:
        """The columns of the table, which are compared with those of other tables of the data set."""
        return TableNote(self.columns.public, tuple(self.columns.sensitive), self.choice.promises, self.choice.again)

    def expected(self, size: int) -> tuple[Method, float]:
        """Return the method for one group of this size, and its expected error if all values are as frequent."""
        sizes = np.array([size], np.int64)
        method = self.choice.method(sizes)
        return method, method.expected_error(sizes, int(np.prod(self.columns.shape)))

    def __str__(self) -> str:
        by = f" by {', '.join(self.columns.public)}" if self.columns.public else ""
        return f"table of {', '.join(self.columns.sensitive)}{by}"

    def make(
        self, counts: Sequence[npt.NDArray[Any]], frame: MakeFrame, dataset: str, receipt: Receipt | None
    ) -> PublishedTable:
        """Draw the table from the counts."""
        (found,) = counts
        table = found.reshape(-1, int(np.prod(self.columns.shape)))
        there = np.flatnonzero(table.sum(axis=1))
        domain, public = self.policy.domain, self.columns.public
        shape = tuple(domain[name].size for name in public)
        which = np.stack(np.unravel_index(there, shape), axis=1) if shape else np.zeros((len(there), 0), np.int64)
        values = tuple(tuple(domain[name].every_value()) for name in public)
        groups = PersonalGroups(self.columns, values, which.astype(np.int64), table[there].astype(np.int64), frame)
        payer = partial(PaidAccount, self.policy, dataset, receipts=(receipt_facts(receipt),))
        return _drawn(groups, self.merges, self.choice, payer=payer)
