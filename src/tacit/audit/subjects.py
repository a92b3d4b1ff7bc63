"""Mechanisms of this package, ready to be audited: what they claim, and two inputs on which their loss is largest.

The inputs are true answers at the two ends of a secret edge, found by the exact audit, or built from the policy where
outputs are too many to go through. What is sampled is the mechanism itself, as a session calls it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.audit.draws import FEWEST, Progress
from tacit.audit.exact import exact, law_loss, of_plan
from tacit.audit.loss import ExactAudit
from tacit.audit.sampled import SampledAudit, sampled
from tacit.audit.selections import MOST_COUNTS
from tacit.audit.worlds import Ints, Neighbours, change_along, contributions, neighbours, records_to_try
from tacit.mechanism.additive import blur
from tacit.mechanism.alarm import NO_VALUE, alarm_noise, decide_all
from tacit.mechanism.selection import output_of
from tacit.plan.any_plan import AnyPlan
from tacit.plan.choose import Plan
from tacit.plan.derived import DerivedPlan
from tacit.plan.ranking import BarPlan, TopKPlan
from tacit.plan.selection_plan import SelectionPlan
from tacit.plan.verdicts import AbovePlan, BelowPlan
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import pairs

Array = npt.NDArray[Any]
NOTHING: Final = -(10**6)  # stands where an output has no number
MOST_SHOWN: Final = 50_000  # numbers of an output; of more, only some that change are looked at
MOST_DRAWN: Final = 5 * 10**8  # numbers that are drawn of either side
MOST_ONE_BY_ONE: Final = 10**5  # samples of a mechanism that is drawn one output at a time ..
SECONDS_ONE_BY_ONE: Final = 15  # .. and about how long that may take


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit. `release(answers, size)` draws outputs for given true answers."""

    name: str
    mechanism: str
    epsilon: float
    hidden: Any
    cover: Any
    release: Callable[[Any, int], Array]
    exact: Callable[[], ExactAudit] | None = None
    most_samples: int = 10**9

    def sampled(self, samples: int, alpha: float, progress: Progress | None = None) -> SampledAudit:
        """Look for a leak at the claimed epsilon."""
        return sampled(self.release, self.hidden, self.cover, self.epsilon, samples, alpha, progress=progress)


def subject_of(name: str, plan: AnyPlan) -> Subject:
    """Return what a session would do for a plan, with the two inputs that should show its loss best."""
    found: ExactAudit | None = None
    if not isinstance(plan, SelectionPlan) or plan.base.size(plan.policy.domain) <= MOST_COUNTS:
        found = of_plan(plan)
    if isinstance(plan, SelectionPlan) and found is not None and found.witness is not None:
        hidden, cover = np.array(found.witness.hidden), np.array(found.witness.cover)
    else:
        hidden, cover = _farthest(plan)
    known = None if found is None else lambda: found
    if isinstance(plan, Plan | DerivedPlan):
        release, most = _blurred(plan.parts, hidden, cover), max(FEWEST, MOST_DRAWN // len(hidden))
        return Subject(name, plan.mechanism, float(plan.epsilon), hidden, cover, release, known, most)
    assert isinstance(plan, SelectionPlan)  # noqa: S101 - the only other kind of plan
    release = _drawn(plan, len(hidden))
    most = _most_samples(release, hidden)
    return Subject(name, plan.mechanism, float(plan.epsilon), hidden, cover, release, known, most)


def decision_subject(name: str, epsilon: Fraction, *, step: int, threshold: int = 3) -> Subject:
    """Return one decision of a monitor, about a place where a person has up to `step` visits that may be none."""
    visits = Domain({"visits": Integers(0, step)})
    policy = Policy(visits, pairs([(many, 0) for many in range(1, step + 1)]))
    last = threshold + 4 * step

    def law(people: tuple[tuple[int], ...]) -> dict[int, float]:
        count, of_noise = sum(many for (many,) in people), alarm_noise(epsilon, step=step)
        values = {value: float(of_noise.pmf(value - count)) for value in range(threshold, last)}
        tail = {last: float(of_noise.survival(last - 1 - count))}  # further out the likelihood ratio stays the same
        return {NO_VALUE: float(of_noise.cdf(threshold - 1 - count)), **values, **tail}

    return Subject(
        name,
        "one-sided geometric noise, shown from the threshold on",
        float(epsilon),
        threshold,
        threshold - step,
        lambda count, size: decide_all(np.full(size, count), threshold, epsilon, step=step),
        lambda: exact(law, policy, epsilon, people=3),
    )


def _farthest(plan: AnyPlan) -> tuple[Ints, Ints]:
    """Return answers of two neighbours, one of whom moves the answers as far as anybody can; those of all parts."""
    policy = plan.policy
    records = list(dict.fromkeys(r for part in plan.parts for r in records_to_try(policy, part.base)[0]))
    adds = [contributions(part.base, policy.domain, records) for part in plan.parts]

    def cost(pair: Neighbours) -> float:
        total = 0.0
        parts: tuple[Any, ...] = plan.parts
        for part, added in zip(parts, adds, strict=True):
            change = change_along(pair, added)
            if isinstance(part, SelectionPlan) or part.noise is None:
                total += float(np.abs(change).sum())
            else:
                total += float(sum(law_loss(law, change[entries]) for law, entries in part.laws()))
        return total

    nobody = Neighbours((records[0],), (records[0],))
    pair = max(neighbours(policy, records), key=cost, default=nobody)
    change = np.concatenate([change_along(pair, added) for added in adds])
    others = others_of(plan, change != 0) if isinstance(plan, SelectionPlan) else 0
    own = np.concatenate([np.asarray(sum(added[record] for record in pair.hidden)) for added in adds])
    hidden = np.asarray(own + others, dtype=np.int64)
    return hidden, np.asarray(hidden + change)


def others_of(plan: SelectionPlan, moves: npt.NDArray[np.bool_]) -> Ints:
    """Return how many others have each item: a selection shows most where counts that move are about to be chosen."""
    law = getattr(plan, "choosing", None) or getattr(plan, "testing", None)
    clear = 1 if law is None else math.ceil(8 * math.sqrt(law.variance()))  # no noise makes up for it
    match plan:
        case AbovePlan():
            at = plan.query.threshold
            return np.where(moves, at - 1, max(0, at - clear) if plan.costly else at + clear)
        case BelowPlan():
            return np.full(len(moves), plan.query.threshold - 1)
        case _:
            return np.where(moves, clear, 0)


def _blurred(parts: Sequence[Plan], hidden: Ints, cover: Ints) -> Callable[[Ints, int], Array]:
    """Return how noisy answers are drawn; of very many, only some of those that change."""
    starts = np.cumsum([part.base.size(part.policy.domain) for part in parts])[:-1]

    def blurred(answers: Ints) -> Array:
        each = zip(np.split(answers, starts, axis=-1), parts, strict=True)
        return np.concatenate([blur(own, part) for own, part in each], axis=-1)

    if len(hidden) <= MOST_SHOWN:
        return lambda answers, size: blurred(np.tile(answers, (size, 1)))
    moved = np.flatnonzero(hidden != cover)
    shown = moved[:: len(moved) // 1_000 + 1]

    def release(answers: Ints, size: int) -> Array:
        return np.array([blurred(answers)[shown] for _ in range(size)])

    return release


def _drawn(plan: SelectionPlan, many: int) -> Callable[[Ints, int], Array]:
    """Return how outputs of a selection are drawn, each as a row of numbers."""

    def release(counts: Ints, size: int) -> Array:
        return np.array([_row(plan, output_of(counts, plan), many) for _ in range(size)], dtype=np.int64)

    return release


def _row(plan: SelectionPlan, output: Any, many: int) -> list[int]:
    match plan:
        case BelowPlan():
            return [NOTHING if output is None else output]
        case AbovePlan():
            verdicts, noisy = output
            return [*_filled(verdicts, many), *_filled(noisy, plan.query.at_most)]
        case TopKPlan():
            return [number for pair in output for number in pair]
        case BarPlan():
            return [*output.places, output.bar, *output.noisy, 0 if output.centre is None else output.centre]
    raise TypeError(plan)


def _filled(numbers: Any, many: int) -> list[int]:
    return [*map(int, numbers), *([NOTHING] * (many - len(numbers)))]


def _most_samples(release: Callable[[Ints, int], Array], counts: Ints) -> int:
    """Return how many outputs of either side can be drawn one by one in a reasonable time."""
    release(counts, 1)  # the first draw makes its tables
    start = time.perf_counter()
    release(counts, 10)
    each = (time.perf_counter() - start) / 10
    return max(FEWEST, min(MOST_ONE_BY_ONE, int(SECONDS_ONE_BY_ONE / each / 2)))
