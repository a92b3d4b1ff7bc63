"""Where the counts of a table come from, and who pays: plain rows, or a session with a policy and a budget.

Guarantee   A table is drawn only if every secret edge of the session's policy leaves the public columns as they are,
            and epsilon is charged before rows are opened. A method that would lose more than this is not drawn.
Assumes     The method keeps its epsilon along every edge that changes one record's sensitive values alone.
Why         Edges between neighbours change one person's record: one row, since of each person one row counts. Refused
            are edges that change a public column, secret presence (sizes of groups are published), and facts that an
            edge changes: making up for them may move other people along any values.
Reference   Blowfish privacy, section 8 (constraints couple people).
Checked by  tests/unit/test_published_tables.py, tests/unit/test_publications.py.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.errors import InternalError, PlanError, PolicyError
from tacit.ledger.ledger import Receipt
from tacit.noise.keystream import is_replayed
from tacit.plan.coupling import is_touched
from tacit.plan.query import as_plan_error
from tacit.plan.tally import CellCounts
from tacit.policy.policy import Policy
from tacit.publish.generalise import as_maps, check_complete, merged
from tacit.publish.groups import Columns, PersonalGroups, as_columns, personal_groups
from tacit.publish.method import Ints, Method
from tacit.publish.table import Account, PublishedTable
from tacit.release.publication import Publication, announced
from tacit.release.session import Session
from tacit.rows.engines import MakeFrame

ChooseMethod = Callable[[Ints], Method]
Maps = Mapping[str, Mapping[Any, str]]
PROMISE: Final = (
    "for every two records that agree in the public columns: Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O], "
    "whatever is known about other records"
)
REPLAYED: Final = "none: the noise was replayed for a test"


def columns_for(rows: Any, public: Any, sensitive: Any, values: Any) -> Columns:
    """Return the columns of a table; of a session, with the values of its domain."""
    if not isinstance(rows, Session):
        return as_columns(public, sensitive, values)
    if values is not None:
        fix = "Leave it out."
        raise PlanError("must not be given for a session, whose domain says it", key="values", fix=fix)
    domain, names = rows.policy.domain, [sensitive] if isinstance(sensitive, str) else sensitive
    try:
        found = as_columns(public, sensitive, {name: domain.attribute(name, key="sensitive") for name in names})
        for name in found.public:
            if domain.attribute(name, key="public").is_set:
                raise PlanError("must have one value for each person", key="public", given=name, fix="Leave it out.")
    except PolicyError as refusal:
        refused = as_plan_error(refusal)
    else:
        check_policy(rows.policy, found)
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


def published(rows: Any, columns: Columns, choose: ChooseMethod, epsilon: Fraction, groups: Any) -> PublishedTable:
    """Count the groups, merge some, choose a method by their public sizes, and draw. A session pays first."""
    maps: Maps = {name: dict(one) for name, one in as_maps(groups, columns.public).items()}
    if isinstance(rows, Session):
        for name, one in maps.items():
            check_complete(name, rows.policy.domain[name].every_value(), one)
        found = rows.publish(_publication(rows.policy, epsilon, columns, choose, maps))
        return found if isinstance(found, PublishedTable) else _never()
    about = {"secrets": {"attributes": list(columns.sensitive)}}
    made = _drawn(merged(personal_groups(rows, columns), maps), choose, epsilon, about)
    return replace(made, merges=maps)


def _never() -> PublishedTable:
    raise TypeError("a session returns what a publication makes")


def _drawn(groups: PersonalGroups, choose: ChooseMethod, epsilon: Fraction, about: dict[str, Any]) -> PublishedTable:
    method = choose(groups.sizes)
    if method.epsilon > epsilon:
        raise InternalError("a method would lose more than was charged for it")
    certificate = {
        **about,
        "version": 1,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "public": list(groups.columns.public),
        "sensitive": list(groups.columns.sensitive),
        "method": method.name,
        "epsilon": str(method.epsilon),
        "guarantee": REPLAYED if is_replayed() else PROMISE,
        "terms": [*method.words(), "rows without a listed value are left out; the sizes of groups do not count them"],
        "not_prevented": method.leaves_open,
    }
    return PublishedTable(groups.without_counts(), groups.sizes, method.draw(groups.counts), method, certificate)


def _publication(policy: Policy, epsilon: Fraction, columns: Columns, choose: ChooseMethod, maps: Maps) -> Publication:
    """Return what a session needs to know of a table: what it costs, what is counted, what is made of the counts."""

    def make(
        counts: Sequence[npt.NDArray[Any]], frame: MakeFrame, dataset: str, receipt: Receipt | None
    ) -> PublishedTable:
        (found,) = counts
        about = {
            "dataset": dataset,
            "policy": policy.document(),
            "policy_fingerprint": policy.fingerprint,
            "ledger": None if receipt is None else {"entry": receipt.entry, "hash": receipt.hash},
        }
        made = _drawn(merged(_groups_that_occur(found, policy, columns, frame), maps), choose, epsilon, about)
        return replace(made, merges=maps, account=Account(policy, dataset, made.method.epsilon))

    title = f"table of {', '.join(columns.sensitive)} by {', '.join(columns.public)}"
    return announced(policy, epsilon, (CellCounts((*columns.public, *columns.sensitive)),), title, make)


def _groups_that_occur(found: npt.NDArray[Any], policy: Policy, columns: Columns, frame: MakeFrame) -> PersonalGroups:
    """Return the groups of a table of all cells that have anybody: which these are is public."""
    table = found.reshape(-1, int(np.prod(columns.shape)))
    there = np.flatnonzero(table.sum(axis=1))
    domain, public = policy.domain, columns.public
    shape = tuple(domain[name].size for name in public)
    which = np.stack(np.unravel_index(there, shape), axis=1) if shape else np.zeros((len(there), 0), np.int64)
    values = tuple(tuple(domain[name].every_value()) for name in public)
    return PersonalGroups(columns, values, which.astype(np.int64), table[there].astype(np.int64), frame)
