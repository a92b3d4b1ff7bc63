"""Mechanisms of this package under audit: what they claim, where their loss is largest, and what the audit finds.

The inputs are true answers at the two ends of a secret edge. The exact audit finds them; where there are too many
outputs for that, they are built from the policy. The audit samples the mechanism itself, as a session calls it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, singledispatch
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Ints
from tacit.audit.exact_audit import MOST_COUNTS, exact, law_loss, plan_loss
from tacit.audit.loss import ExactAudit, Loss
from tacit.audit.sampled_audits.draws import FEWEST, Progress
from tacit.audit.sampled_audits.releases import SECONDS, WholeRelease, audit_pairs
from tacit.audit.sampled_audits.sampled_audit import SampledAudit, Verdict, sampled
from tacit.audit.sampled_audits.shown_records import claimed, drawn, is_named, law_of, telling_records
from tacit.audit.worlds import Neighbours, change_along, contributions, neighbours, records_to_try
from tacit.monitor.alarm import NO_VALUE, alarm_noise, decide_all
from tacit.plan.measure.measured import Measured
from tacit.plan.plans.derived import DerivedPlan
from tacit.plan.plans.linear import LinearPlan, blur
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.records import RecordsPlan
from tacit.plan.plans.selection_plan import SelectionPlan
from tacit.plan.plans.zoom import draw_stages
from tacit.plan.questions.clusters import ClustersPlan
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import pairs
from tacit.publish.local import RandomisedResponse

Array = npt.NDArray[Any]
MOST_SHOWN: Final = 50_000  # numbers of an output; of more, the audit looks only at some that change
MOST_DRAWN: Final = 15 * 10**6  # numbers that are drawn of either side
MOST_ASKED: Final = 250_000  # rows in a session that several questions are about
MOST_ONE_BY_ONE: Final = 10**5  # samples of a mechanism that draws one output at a time
SECONDS_ONE_BY_ONE: Final = 15  # for all of them
MOST_STAGED: Final = 4_000  # samples of a mechanism that decides for each output what it counts
MOST_MOVED: Final = 4  # numbers of either stage of such a mechanism


@dataclass(frozen=True)
class Subject:
    """A mechanism under audit. `release(answers, size)` draws outputs for given true answers."""

    name: str
    mechanism: str
    epsilon: float
    hidden: Any
    cover: Any
    release: Callable[[Any, int], Array]
    exact: ExactAudit | None = None
    most_samples: int = 10**9

    def sampled(self, samples: int, alpha: float, progress: Progress | None = None) -> SampledAudit:
        """Look for a leak at the claimed epsilon."""
        return sampled(self.release, self.hidden, self.cover, self.epsilon, samples, alpha, progress=progress)


def subject_of(name: str, plan: Plan) -> Subject:
    """Return what a session would do for a plan, with the two inputs that should show its loss best."""
    return Subject(name, plan.mechanism, float(plan.epsilon), *_inputs(plan))


Inputs = tuple[Ints, Ints, Callable[[Ints, int], Array], ExactAudit | None, int]  # the last five fields of a subject


@singledispatch
def _inputs(plan: Plan) -> Inputs:
    raise TypeError(type(plan).__name__)


@_inputs.register(LinearPlan)
@_inputs.register(DerivedPlan)
def _inputs_of_parts(plan: LinearPlan | DerivedPlan) -> Inputs:
    hidden, cover = _farthest(plan)
    most = max(FEWEST, MOST_DRAWN // len(hidden))
    return hidden, cover, _blurred(plan.parts, hidden, cover), plan_loss(plan), most


@_inputs.register
def _(plan: ClustersPlan) -> Inputs:
    """Draw the look and what follows from it, where there is one, among people who all stand in one cell."""
    if plan.look is None:
        return _inputs_of_parts(plan)
    hidden, cover = _farthest(plan, plan.tallied)
    others = np.zeros_like(hidden)
    others[np.argmax(hidden)] = others[-1] = round(plan.people) - 1  # the last number is how many there are
    release = _staged(plan, hidden, cover)
    most = min(MOST_STAGED, _most_samples(release, hidden + others))
    return hidden + others, cover + others, release, plan_loss(plan), most


@_inputs.register(SelectionPlan)
def _(plan: SelectionPlan) -> Inputs:
    found = plan_loss(plan) if plan.base.size(plan.policy.domain) <= MOST_COUNTS else None
    if found is not None and found.witness is not None:
        hidden, cover = np.array(found.witness.hidden), np.array(found.witness.cover)
    else:
        hidden, cover = _farthest(plan)
    release = _selected(plan, len(hidden))
    return hidden, cover, release, found, _most_samples(release, hidden)


@_inputs.register
def _(plan: RecordsPlan) -> Inputs:
    return _inputs_of_records([plan], plan_loss(plan))


def records_subject(name: str, plans: Sequence[RecordsPlan]) -> Subject:
    """Return questions for true records, asked one after the other, with what they cost together."""
    epsilon = claimed(*plans)
    found = exact(law_of(*plans), plans[0].policy, epsilon)
    return Subject(name, plans[0].mechanism, float(epsilon), *_inputs_of_records(plans, found))


def _inputs_of_records(plans: Sequence[RecordsPlan], found: ExactAudit) -> Inputs:
    domain, worst = plans[0].policy.domain, found.witness
    if worst is not None and len(worst.hidden) == len(worst.cover) == 1:
        edge = worst.hidden[0], worst.cover[0]
    else:  # somebody comes or leaves, or others move along: what is drawn is one record that changes
        edge = telling_records(plans[0])
    hidden, cover = (
        np.array([domain[name].position(value) for name, value in zip(domain, record, strict=True)]) for record in edge
    )
    return hidden, cover, drawn(*plans), found, MOST_ASKED if is_named(plans) else MOST_DRAWN


def visits_policy(step: int) -> Policy:
    """Return the policy under which a person's visits to a place, at most `step`, may be none."""
    visits = Domain({"visits": Integers(0, step)})
    return Policy(visits, pairs([(many, 0) for many in range(1, step + 1)]))


def decision_subject(name: str, epsilon: Fraction, *, step: int, threshold: int = 3) -> Subject:
    """Return one decision of a monitor about a place where a person has at most `step` visits, or perhaps none."""
    last = threshold + 4 * step

    def law(people: tuple[tuple[int], ...]) -> dict[int, float]:
        count, of_noise = sum(many for (many,) in people), alarm_noise(epsilon, step=step)
        values = {value: float(of_noise.pmf(value - count)) for value in range(threshold, last)}
        tail = {last: float(of_noise.survival(last - 1 - count))}  # further out the likelihood ratio stays the same
        return {NO_VALUE: float(of_noise.cdf(threshold - 1 - count)), **values, **tail}

    def release(count: int, size: int) -> Array:
        return decide_all(np.full(size, count), threshold, epsilon, step=step)

    found = exact(law, visits_policy(step), epsilon, people=3)
    mechanism = "one-sided geometric noise, shown from the threshold on"
    return Subject(name, mechanism, float(epsilon), threshold, threshold - step, release, found)


def local_subject(name: str, rule: RandomisedResponse, policy: Policy) -> Subject:
    """Return the answer of one person to a yes/no question, which is the only attribute of a policy."""

    def release(truth: bool, size: int) -> Array:  # noqa: FBT001 - the true answer
        return rule.answers(np.full(size, truth)).astype(np.int64)

    found = exact(lambda people: rule.law(truth=people[0][0]), policy, rule.epsilon)
    return Subject(name, str(rule), float(rule.epsilon), True, False, release, found)


def _farthest(plan: Plan, shown: Sequence[Measured] = ()) -> tuple[Ints, Ints]:
    """Return the answers of all parts, or of the questions `shown`, at the two neighbours that lie farthest apart."""
    policy = plan.policy
    records = list(dict.fromkeys(r for part in plan.parts for r in records_to_try(policy, part.base)[0]))
    adds = [contributions(part.base, policy.domain, records) for part in plan.parts]

    def cost(pair: Neighbours) -> float:
        total = 0.0
        for part, added in zip(plan.parts, adds, strict=True):
            change = change_along(pair, added)
            laws = part.laws()
            total += float(sum(law_loss(law, change[at]) for law, at in laws) if laws else np.abs(change).sum())
        return total

    nobody = Neighbours((records[0],), (records[0],))
    pair = max(neighbours(policy, records), key=cost, default=nobody)
    if shown:
        adds = [contributions(one, policy.domain, records) for one in shown]
    change = np.concatenate([change_along(pair, added) for added in adds])
    others = plan.telling_others(change != 0)
    own = np.concatenate([np.asarray(sum(added[record] for record in pair.hidden)) for added in adds])
    hidden = np.asarray(own + (0 if others is None else others), dtype=np.int64)
    return hidden, np.asarray(hidden + change)


def _blurred(parts: Sequence[LinearPlan], hidden: Ints, cover: Ints) -> Callable[[Ints, int], Array]:
    """Return the function that draws noisy answers; of very many, only some of those that change."""
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


def _staged(plan: ClustersPlan, hidden: Ints, cover: Ints) -> Callable[[Ints, int], Array]:
    """Return the function that draws clusters, each output as a row of numbers.

    The number of counted cells, the people, and the numbers of counts and look that change; zero where one is missing.
    """

    @cache
    def moved(base: Measured) -> Ints:
        here, there = (base.answers([answers[:-1]], plan.policy.domain) for answers in (hidden, cover))
        return np.flatnonzero(here != there)[:MOST_MOVED]

    def one(answers: Ints) -> Ints:
        _, (counted, people, *look) = draw_stages(plan, answers[:-1], answers[-1:])
        row = np.zeros(2 + 2 * MOST_MOVED, dtype=np.int64)
        row[:2] = len(counted.noisy), people.noisy[0]
        for part, at in zip((counted, *look), (2, 2 + MOST_MOVED), strict=False):
            shown = part.noisy[moved(part.plan.base)]
            row[at : at + len(shown)] = shown
        return row

    return lambda answers, size: np.array([one(answers) for _ in range(size)])


def _selected(plan: SelectionPlan, many: int) -> Callable[[Ints, int], Array]:
    """Return the function that draws outputs of a selection, each as a row of numbers."""

    def release(counts: Ints, size: int) -> Array:
        return np.array([plan.row_of(plan.draw(counts), many) for _ in range(size)], dtype=np.int64)

    return release


def _most_samples(release: Callable[[Ints, int], Array], counts: Ints) -> int:
    """Return how many outputs of either side can be drawn one by one in a reasonable time."""
    release(counts, 1)  # the first draw makes its tables
    start = time.perf_counter()
    release(counts, 10)
    each = (time.perf_counter() - start) / 10
    return max(FEWEST, min(MOST_ONE_BY_ONE, int(SECONDS_ONE_BY_ONE / each / 2)))


SAMPLES: Final = 10**6
ALPHA: Final = 1e-6
HEADINGS: Final = ("mechanism", "claimed epsilon", "exact loss", "sampled lower bound", "tightness", "verdict")


@dataclass(frozen=True)
class AuditRow:
    """One line of the table. `expected` is the verdict that a sound mechanism, or a planted leak, must get."""

    headings: ClassVar[tuple[str, ...]] = HEADINGS

    name: str
    what: str
    epsilon: float
    exact_loss: Loss | None
    found: SampledAudit
    expected: Verdict

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the expected one."""
        sound = self.expected == Verdict.NONE_FOUND
        exact = self.exact_loss is None or (self.exact_loss <= self.epsilon * (1 + 1e-9)) == sound
        return self.found.verdict == self.expected and exact

    def document(self) -> dict[str, Any]:
        """Return the line as plain data."""
        return {
            "mechanism": self.name,
            "what": self.what,
            "claimed_epsilon": self.epsilon,
            "exact_loss": None if self.exact_loss is None else [_finite(end) for end in self.exact_loss],
            "lower_bound": self.found.lower_bound,
            "tightness": self.found.tightness,
            "verdict": str(self.found.verdict),
            "witness": str(self.found.witness),
            "beyond": self.found.beyond,
            "samples": self.found.samples,
            "alpha": self.found.alpha,
            "as_expected": self.as_expected,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the line as texts, in the order of the headings."""
        return (
            self.name,
            f"{self.epsilon:.4g}",
            "" if self.exact_loss is None else str(self.exact_loss),
            f"{self.found.lower_bound:.3f}",
            f"{self.found.tightness:.2f}",
            str(self.found.verdict),
        )


def _finite(number: float) -> float | str:
    """Return a number in a form that JSON has."""
    return number if math.isfinite(number) else "infinite"


def audit_subject(
    subject: Subject, samples: int = SAMPLES, alpha: float = ALPHA, progress: Callable[[float], None] | None = None
) -> AuditRow:
    """Audit a mechanism with what it claims."""
    exact = None if subject.exact is None else subject.exact.forward
    found = subject.sampled(min(samples, subject.most_samples), alpha, progress)
    return AuditRow(subject.name, subject.mechanism, subject.epsilon, exact, found, Verdict.NONE_FOUND)


def audit_whole(
    name: str,
    whole: WholeRelease,
    samples: int = SAMPLES,
    alpha: float = ALPHA,
    progress: Callable[[float], None] | None = None,
    seconds: float = SECONDS,
) -> AuditRow:
    """Audit a whole release with what it claims, with as many samples as some time allows."""
    found = audit_pairs(whole, samples, alpha, seconds, progress)
    return AuditRow(name, "rows in, record out", float(whole.epsilon), None, found, Verdict.NONE_FOUND)
