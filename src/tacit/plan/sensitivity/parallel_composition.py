"""Groups of people whose releases together cost as much as the dearest of them: parallel composition.

Guarantee   Let each release look at one group alone. For every two neighbouring data sets, all of them together lose at
            most the largest sum of the epsilons of one group, also where questions are chosen by earlier answers.
Assumes     Groups are told apart by predicates of a record that never hold at once. Whoever is in no group is looked at
            by no release. Where up to m rows of a person count, releases are about rows, and the change of one row
            along an edge, or its coming or leaving, costs any of them at most 1/m of its epsilon.
Why         It is enough that between neighbours one group changes and no other: releases about the others have the
            same distribution on both, whatever was released before, so that only the epsilons of that group add up.
            Without knowledge that any secret edge changes, neighbours are one person who moves along an edge, leaves or
            joins. If no secret edge leads from one group to another, or into or out of one, only that person's group
            changes. Refused otherwise: an edge between two groups changes both. And a known fact that an edge changes
            couples people: whoever makes up for the change may move along any values, edge or not, and so may be of
            any group.
            Where a person owns several rows, at most m of them change, each in its own group, by the same argument. If
            k rows of a group change, the releases about it lose at most k/m of what that group has spent: rows are
            changed one after the other. The k of all groups add up to m at most, so all groups together lose at most
            what the dearest has spent. A count of people is refused: whoever is in m groups changes m counts.
Reference   Blowfish privacy, Theorem 4.3, in which a fact affects a group only if a secret pair of it by itself changes
            the fact; a person who moves along no secret pair may restore it just as well, and then the theorem fails.
Checked by  tests/property/test_disjoint.py, tests/property/test_rows_of_people.py,
            tests/unit/release/test_split.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tacit.errors import PlanError, PolicyError, kind_of
from tacit.plan.question import Query
from tacit.plan.sensitivity.responses import CellTables, Watched, everybody
from tacit.plan.sensitivity.steps import shape_jumps, touched_facts
from tacit.policy.describe import edge_that_changes
from tacit.policy.edges.shapes import axes_of, cells, holds
from tacit.policy.knowledge import Known, KnownCount, KnownMarginal
from tacit.policy.policy import Policy
from tacit.policy.where import Compare, Where, where

MOST_GROUPS: Final = 10_000
_MOST_CELLS: Final = 100_000  # combinations of classes at which predicates are compared


@dataclass(frozen=True)
class DisjointGroups:
    """Groups by name, and how they were named; `names` has the name of the group of each value, by type and value."""

    by: str
    members: Mapping[str, Where]
    names: Mapping[tuple[type, Any], str] = field(default_factory=dict)


def check_about_rows(query: Query, policy: Policy) -> None:
    """Refuse a question about people in groups where one person may be in several of them."""
    if policy.per_person > 1 and query.of != "rows":
        fix = "Write of='rows', or keep one row of each person: per_person=1."
        if query.each is not None:
            fix = "Ask the session itself, with `where`."
        rule = "must be about rows in a group of a split, since one person may be in several groups"
        raise PlanError(rule, key=str(query), fix=fix)


def disjoint_groups(by: Any, policy: Policy) -> DisjointGroups:
    """Return the groups that an attribute or several predicates make, or refuse what may not be split by them."""
    groups = _by_attribute(by, policy) if isinstance(by, str) and by in policy.domain else _by_predicates(by, policy)
    for fact in touched_facts(policy):
        edge = edge_that_changes(fact, policy)
        raise PlanError(
            f"would have costs that add up: {f'the secret edge {edge} changes' if edge else 'secret edges change'} "
            f"what is known ({fact.words()}), so that people of other groups may have to make up for it",
            key="split",
            given=groups.by,
            fix="Ask the session itself, or choose secrets that leave what is known alone.",
        )
    return groups


def _by_attribute(name: str, policy: Policy) -> DisjointGroups:
    attribute = policy.domain[name]
    if attribute.is_set or len(policy.domain.axes_of(name)) > 1 or attribute.size > MOST_GROUPS:
        raise PlanError(
            f"must have one value for each person, on one axis, and at most {MOST_GROUPS:,} of them",
            key="split",
            given=name,
            fix="Give predicates: session.split(['age < 18', 'age >= 18']).",
        )
    _refuse_edges(CellTables(((name,),)), KnownMarginal((name,)), name, policy)
    values = list(attribute.every_value())
    # 1 and "1" are different values, and so different groups
    many = Counter(map(str, values))
    named = [str(value) if many[str(value)] == 1 else f"{value} ({kind_of(value)})" for value in values]
    members = {called: Compare(name, "==", value) for called, value in zip(named, values, strict=True)}
    if len(members) < len(values):
        raise PlanError(
            "must have values that can be told apart by their texts", key="split", given=name, fix="Give predicates."
        )
    return DisjointGroups(
        name, members, {(type(value), value): called for called, value in zip(named, values, strict=True)}
    )


def _by_predicates(by: Any, policy: Policy) -> DisjointGroups:
    if isinstance(by, str):  # one word: an attribute that is none, named with the nearest one
        try:
            policy.domain.attribute(by, key="split")
        except PolicyError as refusal:
            raise refusal.retold(PlanError) from None
    if not isinstance(by, Sequence) or not by or not all(isinstance(one, str | Where) for one in by):
        raise PlanError(
            f"must be an attribute or a list of predicates, not {kind_of(by)}",
            key="split",
            fix="Write session.split('sex') or session.split(['age < 18', 'age >= 18']).",
        )
    try:
        members = {str(one): one for one in map(where, by)}
        tests = {name: one.compile(policy.domain) for name, one in members.items()}
    except PolicyError as refusal:
        raise refusal.retold(PlanError, key="split") from None
    split = axes_of(tests.values())
    if math.prod(len(parts) for _, parts in split.values()) > _MOST_CELLS:
        raise PlanError("must tell fewer classes of records apart", key="split", given=list(members), fix="Simplify.")
    for cell in cells(split):
        both = [name for name, test in tests.items() if holds(test, cell)]
        if len(both) > 1:
            raise PlanError("must not overlap", key="split", given=both[:2], fix="Let each person be in one group.")
    for name, one in members.items():
        _refuse_edges(everybody(one), KnownCount(one), name, policy)
    return DisjointGroups(" | ".join(members), members)


def _refuse_edges(watched: Watched, fact: Known, by: str, policy: Policy) -> None:
    """Refuse groups that some secret edge leads into, out of or between; leaving the data changes one group alone."""
    if not any(True for shape in policy.shapes for _ in shape_jumps(watched, policy.domain, shape)):
        return
    edge = edge_that_changes(fact, policy)
    raise PlanError(
        f"would have costs that add up: {f'the secret edge {edge} leads' if edge else 'secret edges lead'} from one "
        f"group to another and {'changes' if edge else 'change'} both",
        key="split",
        given=by,
        fix="Split by something that no secret edge changes.",
    )
