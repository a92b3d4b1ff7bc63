"""What somebody who knows something learns: data sets that are possible, gone through one by one.

Two demonstrations on small domains, straight from the definitions.

`posterior_odds` plays a Pufferfish adversary. They hold each person's record for independent of the others', with
probabilities of their own, and know some facts for certain. A release changes their odds between two records of one
person; it should change them by at most a factor of exp(epsilon) along a secret edge, and does not where they know what
the policy does not declare.

`steps_among` compares two ways to calibrate noise where only some data sets are possible: to the largest change between
neighbours (ours), and to the largest change per moved person (restricted sensitivity), which forgets that nobody can
move alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.audit.worlds import contributions, every_edge, known_numbers
from tacit.drawing import Held
from tacit.errors import PlanError, kind_of, sealed, word_or_kind
from tacit.noise.law import Law
from tacit.plan.choose import choose
from tacit.plan.plans.plan import Plan
from tacit.plan.question import Query
from tacit.plan.sensitivity.steps import asked_under
from tacit.policy.domain import every_record
from tacit.policy.knowledge import Known
from tacit.policy.policy import ABSENT, Policy, as_policy

MOST_WORLDS: Final = 5_000
MOST_NUMBERS: Final = 20_000_000  # probabilities of outputs, over all worlds


@dataclass(frozen=True, repr=False)
class PosteriorOdds(Held):
    """The largest change of the odds between two records of one person, along a secret edge.

    `loss` is its logarithm, to be held against `epsilon`. `known` are the numbers that were known, `output` is what
    changed the odds most: the noisy entries, and then what was shown exactly.
    """

    loss: float
    epsilon: float
    hidden: Any
    cover: Any
    known: tuple[int, ...]
    output: tuple[int, ...]

    @property
    def factor(self) -> float:
        """By how much the odds changed."""
        return math.exp(self.loss)

    @property
    def keeps(self) -> bool:
        """Whether the odds changed by no more than epsilon allows."""
        return self.loss <= self.epsilon * (1 + 1e-9)

    def __str__(self) -> str:
        return (
            f"odds of {self.hidden} against {self.cover} times {self.factor:.4g} (epsilon allows "
            f"{math.exp(self.epsilon):.4g}), where {list(self.known)} is known and {list(self.output)} comes out"
        )


@sealed
def posterior_odds(
    query: Any,
    policy: Policy,
    epsilon: Any,
    *,
    people: int,
    knows: Sequence[Known] | None = None,
    priors: Sequence[Mapping[Any, float]] | None = None,
) -> PosteriorOdds:
    """Return how far a release about so many people can move the odds of somebody who knows these facts.

    `knows` is what the adversary knows; the policy's own knowledge by default. `priors` has for each person the
    probability of each record (as the domain's tuples have it; what is left out is impossible); all alike by default.
    """
    policy = as_policy(policy, fix="Write posterior_odds(query, policy, epsilon, people=..).")
    if isinstance(people, bool) or not isinstance(people, int) or people < 1:
        raise PlanError(
            "must be a whole number from 1", key="people", given=word_or_kind(people), fix="Write people=2."
        )
    _check_priors(priors, people)
    plan = choose(query, policy, epsilon)
    records: list[Any] = [*every_record(policy.domain), *([ABSENT] if policy.absences else [])]
    if len(records) ** people > MOST_WORLDS:
        raise PlanError(
            f"has more than {MOST_WORLDS:,} possible data sets", key="people", given=people, fix="Ask about fewer."
        )
    worlds = list(product(records, repeat=people))
    learnt = Policy(policy.domain, policy.secrets, policy.known if knows is None else knows)
    numbers = [known_numbers(learnt, world) for world in worlds]
    outputs, chances = _chances(plan, worlds, records)
    _check_believed(priors, records)
    weights = _weights(worlds, priors)
    best = PosteriorOdds(0.0, float(plan.epsilon), None, None, (), ())
    by_known: dict[tuple[int, ...], list[int]] = {}
    for place, number in enumerate(numbers):
        by_known.setdefault(number, []).append(place)
    for number, places in by_known.items():
        for hidden, cover in every_edge(policy):
            for person in range(people):
                sides = [[at for at in places if worlds[at][person] == side] for side in (hidden, cover)]
                masses = [weights[side].sum() for side in sides]
                if not all(masses):
                    continue  # one of the two is impossible: there are no odds
                a, b = (weights[side] @ chances[side] / mass for side, mass in zip(sides, masses, strict=True))
                with np.errstate(divide="ignore", invalid="ignore"):
                    losses = np.where(a > 0, np.log(a) - np.log(b), -np.inf)
                at = int(np.argmax(losses))
                if losses[at] > best.loss:
                    best = PosteriorOdds(float(losses[at]), best.epsilon, hidden, cover, number, outputs[at])
    return best


def steps_among(query: Any, policy: Policy, worlds: Sequence[Sequence[Any]]) -> tuple[int, float]:
    """Return the largest change between neighbours among possible data sets, and the largest per moved person.

    Data sets are sequences of records of the same people. Neighbours: somebody moved along a secret edge, and no
    other possible data set makes only some of these moves. The second number is restricted sensitivity.

    >>> import tacit as tc
    >>> policy = tc.Policy(tc.Domain({"x": tc.Flag()}), tc.secrets.everything())
    >>> steps_among(tc.count("x == True"), policy, [[False] * 5, [True] * 5])  # all alike, and that is known
    (5, 1.0)
    """
    question, policy = asked_under(query, policy)
    domain, asked = policy.domain, question.counted
    listed = [tuple(domain.record(record) for record in world) for world in worlds]
    adds = contributions(asked, domain, {record for world in listed for record in world})
    largest, restricted = 0, 0.0
    for start in listed:
        moves = {_moves(start, end) for end in listed}
        for moved in moves:
            secret = any(policy.has_edge(start[i], y) for i, y in moved)
            change = int(np.abs(sum((adds[y] - adds[start[i]] for i, y in moved), np.zeros(1, np.int64))).sum())
            if moved:
                restricted = max(restricted, change / len(moved))
            if secret and not any(other and other < moved for other in moves):
                largest = max(largest, change)
    return largest, restricted


def _moves(start: tuple[Any, ...], end: tuple[Any, ...]) -> frozenset[tuple[int, Any]]:
    """Return who moved where."""
    return frozenset((who, y) for who, (x, y) in enumerate(zip(start, end, strict=True)) if x != y)


def _check_priors(priors: Any, people: int) -> None:
    """Refuse what is no probability of records for each person."""
    fix = "Write one mapping {record: probability} for each person."
    if priors is None:
        return
    if not isinstance(priors, Sequence) or not all(isinstance(prior, Mapping) for prior in priors):
        raise PlanError(f"must be a list of mappings, not {kind_of(priors)}", key="priors", fix=fix)
    if len(priors) != people:
        raise PlanError(f"must have one mapping for each of {people} people", key="priors", given=len(priors), fix=fix)
    for prior in priors:
        if not all(isinstance(chance, int | float) and chance >= 0 for chance in prior.values()):
            raise PlanError("must hold no negative probabilities", key="priors", fix=fix)


def _check_believed(priors: Sequence[Mapping[Any, float]] | None, records: Sequence[Any]) -> None:
    """Refuse beliefs about what is no record, and such that leave a person no record: they would move no odds."""
    for prior in priors or ():
        if unknown := [record for record in prior if record not in records]:
            raise PlanError(
                "must be about records, as tuples of the domain's values",
                key="priors",
                given=unknown[0],
                fix=f"Write for example {{{records[0]!r}: 1.0}}.",
            )
        if not any(prior.values()):
            raise PlanError(
                "must leave each person a record", key="priors", fix="Give some record a probability above 0."
            )


def _weights(worlds: Sequence[tuple[Any, ...]], priors: Sequence[Mapping[Any, float]] | None) -> Floats:
    """Return how likely each data set is before anything is known."""
    if priors is None:
        return np.ones(len(worlds))
    return np.array(
        [math.prod(prior.get(one, 0.0) for prior, one in zip(priors, world, strict=True)) for world in worlds]
    )


def _chances(
    plan: Plan, worlds: Sequence[tuple[Any, ...]], records: Sequence[Any]
) -> tuple[list[tuple[int, ...]], Floats]:
    """Return outputs, and for each data set how likely each is, up to a factor that is the same for all data sets.

    Beyond the smallest and largest true answer, one step further out multiplies all these chances alike (geometric
    noise), so that no other output tells more. What is shown exactly comes last in an output.
    """
    part = _independent(plan)
    adds = contributions(part.base, plan.policy.domain, records)
    truths = np.array([sum((adds[one] for one in world), np.zeros(len(adds[ABSENT]), np.int64)) for world in worlds])
    reach = [range(int(low), int(high) + 1) for low, high in zip(truths.min(0), truths.max(0), strict=True)]
    exact = [tuple(int(number) for number in shown) for shown in _exact_sums(part, truths)]
    if math.prod(len(each) for each in reach) * len(worlds) * len(set(exact)) > MOST_NUMBERS:
        raise PlanError("has too many outputs", key="query", given=str(plan.query), fix="Ask about fewer answers.")
    noisy = list(product(*reach))
    seen, found = np.array(noisy, dtype=np.int64), np.zeros((len(worlds), len(noisy)))
    for place in range(truths.shape[1]):
        with np.errstate(divide="ignore"):
            found += np.log(_law(part, place).pmf(seen[None, :, place] - truths[:, None, place]))
    outputs: list[tuple[int, ...]] = []
    parts = []
    for shown in sorted(set(exact)):
        shows = np.array([one == shown for one in exact])
        parts.append(np.where(shows[:, None], np.exp(found), 0.0))
        outputs += [(*output, *shown) for output in noisy]
    return outputs, np.concatenate(parts, axis=1)


def _law(part: Plan, place: int) -> Law:
    """Return the law of the noise in one entry."""
    for law, entries in part.laws():
        mask = np.zeros(part.base.size(part.policy.domain), dtype=np.bool_)
        mask[entries] = True
        if mask[place]:
            return law
    raise TypeError(place)


def _exact_sums(part: Plan, truths: Ints) -> Ints:
    """Return for each data set what a release may show exactly beside the noise."""
    found, start = [], 0
    for labels in part.base.exact_groups(part.policy) or ():
        for label in np.unique(labels):
            found.append(truths[:, start + np.flatnonzero(labels == label)].sum(1))
        start += len(labels)
    return np.array(found, dtype=np.int64).T if found else np.zeros((len(truths), 0), dtype=np.int64)


def _independent(plan: Plan) -> Plan:
    """Return the plan if it adds a noise of its own to each entry of what is asked, or refuse."""
    laws = plan.laws()
    base = plan.base
    is_own = isinstance(base, Query) and plan.query is base and not base.never_falls
    if is_own and laws and not any(law.is_joint for law, _ in laws):
        return plan
    raise PlanError(
        "must be answered with independent noise on its own counts",
        key="query",
        given=str(plan.query),
        fix="Ask for a count or a histogram that is not exact.",
    )
