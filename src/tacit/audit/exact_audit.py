"""The exact audit: the worst loss of a mechanism whose output distribution can be written down.

A question: the mechanism that a session would choose for it is taken apart, and its loss is added up exactly (in
fractions) over every edge of the policy, found by the definition of the policy and not by the planner. Or any function
from a data set to a finite table `{output: probability}`: every pair of neighbouring data sets is tried on every
output. An infinite tail is entered as one output, from where the likelihood ratio no longer changes.

A selection among a few counts decides (which items, which verdicts) and measures. All decisions are tried; of the noisy
values those at which measuring loses most, which are the true ones at `hidden` for noise that is independent of the
decision. Counts of other people are tried around the threshold, or where items tie, and far away. So `low` is attained,
and often the truth; `high` is what the proof of the plan allows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch
from itertools import combinations_with_replacement, product
from typing import Any, Final

import numpy as np

from tacit.amounts import as_epsilon
from tacit.arrays import Ints
from tacit.audit.loss import ExactAudit, Loss, Witness, loss_of_tables
from tacit.audit.sampled_audits.shown_records import law_of
from tacit.audit.worlds import (
    MOST_RECORDS,
    Neighbours,
    change_along,
    contributions,
    is_coupled,
    neighbours,
    of_all_rows,
    records_to_try,
)
from tacit.errors import PlanError
from tacit.noise.law import Law
from tacit.plan.choose import choose
from tacit.plan.plans.derived import DerivedPlan
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.records import RecordsPlan
from tacit.plan.plans.selection_plan import SelectionPlan
from tacit.plan.questions.clusters import ClustersPlan
from tacit.plan.sensitivity.moves import exact_attributes
from tacit.policy.domain import every_record
from tacit.policy.policy import ABSENT, Policy, as_policy

MOST_WORLDS: Final = 20_000  # data sets that a table is asked for


def exact(mechanism: Any, policy: Policy, epsilon: Any = None, *, people: int = 1) -> ExactAudit:
    """Return the worst loss along the secret edges of a policy.

    `mechanism` is a question (`tc.histogram("age")`: what a session would do for it at this epsilon) or a function
    that returns `{output: probability}` for a data set, a tuple of records. With a function, `people` says how many
    people the data sets have, beside those whom knowledge couples.

    >>> import tacit as tc
    >>> policy = tc.Policy(tc.Domain({"sick": tc.Flag()}), tc.secrets.values({"sick": [True]}))
    >>> found = tc.audit.exact(tc.count("sick == True"), policy, 0.5)
    >>> found.forward, found.backward
    (0.5, inf)
    """
    policy = as_policy(policy, fix="Write audit.exact(query, policy, epsilon): the question first.")
    if isinstance(mechanism, type):
        raise PlanError(
            f"must be a question or a function, not the class {mechanism.__name__}",
            key="mechanism",
            fix="A function is called as mechanism(data) and returns {output: probability}.",
        )
    if callable(mechanism) and not hasattr(mechanism, "keyword"):
        claimed = None if epsilon is None else float(as_epsilon(epsilon))
        pairs, complete = _worlds(policy, people)
        return loss_of_tables(mechanism, pairs, claimed, complete=complete)
    return plan_loss(choose(mechanism, policy, epsilon))


@singledispatch
def plan_loss(plan: Plan) -> ExactAudit:
    """Return the worst loss of a plan."""
    raise TypeError(type(plan).__name__)


@plan_loss.register(LinearPlan)
@plan_loss.register(DerivedPlan)
def _(plan: LinearPlan | DerivedPlan) -> ExactAudit:
    return _loss_of_parts(plan, plan.parts)


@plan_loss.register
def _(plan: ClustersPlan) -> ExactAudit:
    """Return the worst loss of whatever may be released, given what was released before."""
    found = [_loss_of_parts(one, one.parts) for one in plan.outcomes]
    worst = max(found, key=lambda one: one.forward.high)
    return replace(worst, backward=max((one.backward for one in found), key=lambda loss: loss.high))


def _loss_of_parts(plan: Plan, parts: Sequence[LinearPlan]) -> ExactAudit:
    """Return the worst loss of independent noise on the answers of all parts: along an edge, losses add up."""
    policy, domain = plan.policy, plan.policy.domain
    tried = [records_to_try(policy, part.base) for part in parts]
    records = list(dict.fromkeys(record for found, _ in tried for record in found))
    pairs = of_all_rows(neighbours(policy, records), policy, [part.base for part in parts])
    adds = [contributions(part.base, domain, records) for part in parts]
    unchanged = [_shown_exactly(part) for part in parts]
    seen: dict[bytes, tuple[Fraction | float, Fraction | float]] = {}
    worst: tuple[Fraction | float, Fraction | float] = (Fraction(0), Fraction(0))
    at: Neighbours | None = None
    for pair in pairs:
        changes = [change_along(pair, added) for added in adds]
        # short: there may be many, and each as long as the answers
        key = hashlib.sha256(b"".join(change.tobytes() for change in changes)).digest()
        if key not in seen:
            each = list(zip(parts, changes, unchanged, strict=True))
            seen[key] = (
                sum((_loss(part, change, test) for part, change, test in each), Fraction(0)),
                sum((_loss(part, -change, test) for part, change, test in each), Fraction(0)),
            )
        forward, backward = seen[key]
        if at is None or forward > worst[0]:
            at = pair
        worst = max(worst[0], forward), max(worst[1], backward)
    complete = all(all_of for _, all_of in tried) and not is_coupled(policy, records) and policy.per_person == 1
    proven = sum((part.proven_loss() for part in parts), Fraction(0))
    back = sum((part.proven_loss(backward=True) for part in parts), Fraction(0))
    witness = None
    if at is not None:
        # at the hidden data set's own answers the noise is zero there and largest at the cover data set
        truth = [np.asarray(sum(added[record] for record in at.hidden)).tolist() for added in adds]
        witness = Witness(
            _records(policy, at.hidden), _records(policy, at.cover), truth[0] if len(truth) == 1 else truth
        )
    return ExactAudit(
        plan.mechanism,
        float(plan.epsilon),
        Loss.between(worst[0], worst[0] if complete else max(worst[0], proven)),
        Loss.between(worst[1], worst[1] if complete else max(worst[1], back)),
        witness,
        len(pairs),
        complete,
    )


@plan_loss.register
def _(plan: RecordsPlan) -> ExactAudit:
    """Return the worst loss of true records, over every edge and everything that can be shown of one record.

    Of a large domain some records are tried, and the rest is what the proof of the plan allows.
    """
    policy = plan.policy
    records, all_of = records_to_try(policy, plan.base)
    pairs = [_who_are_there(pair) for pair in neighbours(policy, records)]
    found = loss_of_tables(law_of(plan), pairs, float(plan.epsilon), complete=True)
    complete = all_of and not is_coupled(policy, records) and policy.per_person == 1
    if not complete:
        proven = Loss.between(0, plan.epsilon).high
        forward = Loss(found.forward.low, max(found.forward.high, proven))
        found = replace(found, forward=forward, backward=Loss(found.backward.low, math.inf), complete=False)
    return replace(found, mechanism=plan.mechanism)


def _loss(plan: LinearPlan, change: Ints, unchanged: Callable[[Ints], bool]) -> Fraction | float:
    """Return the worst loss when the answers change so from hidden to cover."""
    if not unchanged(change):
        return math.inf
    if plan.noise is None:
        return math.inf if change.any() else Fraction(0)
    total: Fraction | float = Fraction(0)
    for law, entries in plan.laws():
        total = total + law_loss(law, change[entries])
    return total


def law_loss(law: Law, change: Ints) -> Fraction | float:
    """Return the worst loss of noise under a change of the answers from hidden to cover."""
    if law.is_joint:
        loss: Fraction | float = law.loss(change.tolist())
        return loss
    fall, rise = int(np.maximum(-change, 0).sum()), int(np.maximum(change, 0).sum())
    parts = [law.loss(step) for step in (-fall, rise) if step]  # each unit costs the same, however it is spread
    return math.inf if math.inf in parts else sum(parts, Fraction(0))


def _shown_exactly(plan: LinearPlan) -> Callable[[Ints], bool]:
    """Return a test of whether a change leaves alone everything that a release may show without noise."""
    if plan.noise is None:
        return lambda _: True
    totals = list(_exact_totals(plan))

    def unchanged(change: Ints) -> bool:
        fixed = plan.fixed_counts(change)
        if fixed is not None and fixed.any():
            return False
        return not any(np.bincount(group, change[entries]).any() for entries, group in totals)

    return unchanged


def _exact_totals(plan: LinearPlan) -> Iterator[tuple[slice, Ints]]:
    """Yield which entries are added up to exact totals, with a label for each; options of a release included."""
    policy, domain = plan.policy, plan.policy.domain
    groups, tables = plan.groups, plan.base.tables(domain)
    start = 0
    for names, group in zip(tables, groups or (), strict=groups is not None):
        entries = slice(start, start + len(group))
        yield entries, group
        if len(tables) > 1:  # tables that are made to agree also use the exact ones among those that they share
            kept = exact_attributes(policy, names)
            places = np.indices([domain[name].size if name in kept else 1 for name in names])
            sizes = [domain[name].size for name in names]
            shared = np.ravel_multi_index([np.broadcast_to(place, sizes) for place in places], sizes)
            yield entries, np.unique(shared.reshape(-1), return_inverse=True)[1]
        start += len(group)


def _worlds(policy: Policy, people: Any) -> tuple[list[Neighbours], bool]:
    """Return pairs of neighbouring data sets of so many people, and whether they are all that there are."""
    if isinstance(people, bool) or not isinstance(people, int) or people < 1:
        raise PlanError("must be a whole number from 1", key="people", given=people, fix="Use 1 or 2.")
    if policy.domain.size > MOST_RECORDS:
        raise PlanError(
            f"must have at most {MOST_RECORDS} records, since a table is asked for each data set",
            key="domain",
            given=policy.domain.size if policy.domain.size < 10**18 else "more than 10^18",
            fix="Audit it by samples, or on a smaller domain.",
        )
    records = every_record(policy.domain)
    found = []
    for pair in neighbours(policy, records):
        others = people - len(pair.hidden)
        for rest in combinations_with_replacement(records, max(others, 0)):
            found.append(Neighbours((*pair.hidden, *rest), (*pair.cover, *rest)))
            if len(found) > MOST_WORLDS:
                raise PlanError(
                    f"needs more than {MOST_WORLDS:,} pairs of data sets",
                    key="people",
                    given=people,
                    fix="Use fewer people or a smaller domain.",
                )
    return [_who_are_there(pair) for pair in found], not is_coupled(policy, records) and policy.per_person == 1


def _who_are_there(pair: Neighbours) -> Neighbours:
    """Return two data sets without those who are absent."""
    return Neighbours(*(tuple(one for one in side if one is not ABSENT) for side in (pair.hidden, pair.cover)))


def _records(policy: Policy, people: Sequence[Any]) -> list[Any]:
    return [
        record if record is ABSENT else {name: _short(value) for name, value in zip(policy.domain, record, strict=True)}
        for record in people
    ]


def _short(value: Any) -> Any:
    """Return a large set of items as what can be read."""
    if isinstance(value, frozenset) and len(value) > 8:
        return f"{len(value):,} items"
    return sorted(value, key=str) if isinstance(value, frozenset) else value


MOST_COUNTS: Final = 5
MOST_OUTPUTS: Final = 1_500  # whose probabilities are compared
FAR: Final = 12  # people
ROUNDING: Final = 1e-10  # of log probabilities, which are sums of up to a few thousand terms


@plan_loss.register
def _(plan: SelectionPlan) -> ExactAudit:
    """Return the worst loss of a selection among a few counts."""
    many = plan.base.size(plan.policy.domain)
    if many > MOST_COUNTS:
        raise PlanError(
            f"looks at {many:,} counts; its outputs can be gone through for at most {MOST_COUNTS}",
            key=str(plan.query),
            fix="Audit it by samples, or on a smaller domain.",
        )
    records, _ = records_to_try(plan.policy, plan.base)
    adds = contributions(plan.base, plan.policy.domain, records)
    changes: dict[tuple[int, ...], Neighbours] = {}
    for pair in of_all_rows(neighbours(plan.policy, records), plan.policy, [plan.base]):
        changes.setdefault(tuple(change_along(pair, adds).tolist()), pair)
    changes.pop((0,) * many, None)
    forward, backward, tried = 0.0, 0.0, 0
    witness: Witness | None = None
    likeliest = -math.inf
    for hidden, cover in _telling_worlds(plan, list(changes), many):
        for output, chance, loss, back in _outputs(plan, hidden, cover):
            tried += 1
            if loss > forward + ROUNDING or (loss > forward - ROUNDING and chance > likeliest):
                witness, likeliest = Witness(hidden.tolist(), cover.tolist(), output), chance
            forward, backward = max(forward, loss), max(backward, back)
    proven = Loss.between(0, plan.epsilon if changes else 0).high
    both_ways = all(tuple(-part for part in change) in changes for change in changes)
    return ExactAudit(
        plan.mechanism,
        float(plan.epsilon),
        Loss(max(forward - ROUNDING, 0.0), max(forward, proven)),
        Loss(max(backward - ROUNDING, 0.0), max(backward, proven) if both_ways else math.inf),
        witness,
        tried,
        complete=False,
    )


def _telling_worlds(plan: SelectionPlan, changes: list[tuple[int, ...]], many: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield counts of two neighbours, the most telling ones of others first: as many as outputs allow."""
    telling = plan.telling_counts(FAR)
    alike = sorted(product(*(range(len(own)) for own in telling)), key=lambda places: len(set(places)))
    others = [[own[place] for own, place in zip(telling, places, strict=True)] for places in alike]
    outputs = sum(1 for _ in _outputs(plan, np.ones(many, dtype=np.int64), np.zeros(many, dtype=np.int64)))
    room = max(1, MOST_OUTPUTS // max(1, outputs * len(changes)))
    for change in map(np.array, changes):
        for background in others[:room]:
            hidden = np.array(background) + np.maximum(-change, 0)  # the person is there
            yield hidden, hidden + change


def _outputs(plan: SelectionPlan, hidden: Ints, cover: Ints) -> Iterator[tuple[Any, float, float, float]]:
    """Yield outputs with their log probability at hidden and their loss forward and backward."""
    listed = {*plan.outputs_near(hidden, FAR), *plan.outputs_near(cover, FAR)}
    for output in sorted(listed, key=repr):
        here, there = (plan.log_probability(counts.tolist(), output) for counts in (hidden, cover))
        if max(here, there) > -math.inf:
            yield output, here, _log_ratio(here, there), _log_ratio(there, here)


def _log_ratio(here: float, there: float) -> float:
    """Return the log of a likelihood ratio; an output that cannot happen here is no loss."""
    return -math.inf if here == -math.inf else here - there
