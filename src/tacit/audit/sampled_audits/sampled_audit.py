"""The sampled audit: what outputs alone show about a mechanism, whoever wrote it.

Guarantee   With probability at least 1 - alpha the true loss along hidden -> cover is at least `lower_bound`,
            whatever the mechanism. So a verdict of LEAK_FOUND at a claimed epsilon that does hold has probability
            at most alpha. NONE_FOUND proves nothing: it says which losses this many samples can no longer hide.
Assumes     Outputs of separate draws are independent.
Why         Events are found on one half of the samples (`audit/sampled_audits/events.py`); how often they happen is
            counted on the
            other half, with Clopper and Pearson's bounds on both probabilities, at alpha divided by the events. Where
            all starts over because outputs took a new form, each start has its own part of alpha.
Reference   Ding, Wang, Wang, Zhang, Kifer, Detecting Violations of Differential Privacy, arXiv:1805.10277; Clopper,
            Pearson 1934.
Checked by  tests/statistical/test_sampled_audit.py, tests/statistical/test_planted.py
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.amounts import as_epsilon
from tacit.audit.sampled_audits.draws import FEWEST, RAISES, TEXT, FormChanged, OutputSource, Progress, Release
from tacit.audit.sampled_audits.events import Event, find_events, lower_bound
from tacit.audit.sampled_audits.views import Columns, columns_of
from tacit.audit.worlds import check_neighbours
from tacit.drawing import Held, watched
from tacit.errors import PlanError
from tacit.policy.policy import Policy

SMALLEST_ALPHA: Final = 1e-100  # below, no bound can be computed in doubles
MOST_EVENTS: Final = 4
MOST_SAMPLES: Final = 10**9  # that anybody would wait for


def _raised(columns: Columns) -> npt.NDArray[np.float64]:
    return np.array([text.startswith(RAISES) for text in columns[TEXT]], dtype=np.float64)


# looked at whenever a mechanism raises: with or without an exception
FAILING: Final = (
    Event("it raises", _raised, 1.0),
    Event("it does not raise", lambda columns: 1 - _raised(columns), 1.0),
)


class Verdict(StrEnum):
    """What an audit may conclude. There is no `private`: samples cannot show that."""

    LEAK_FOUND = "LEAK_FOUND"
    NONE_FOUND = "NONE_FOUND"


@dataclass(frozen=True)
class SampledWitness:
    """An event and how often it happened on samples that it was not chosen by."""

    event: str
    hidden: int
    cover: int
    samples: int

    def __str__(self) -> str:
        a, b = self.hidden / self.samples, self.cover / self.samples
        return f"{self.event}: {a:.4%} of the outputs of hidden, {b:.4%} of cover's"


@dataclass(frozen=True, repr=False)
class SampledAudit(Held):
    """The outcome of a sampled audit. `lower_bound` is on the loss from hidden to cover, at confidence 1 - alpha."""

    verdict: Verdict
    lower_bound: float
    witness: SampledWitness
    epsilon: float
    samples: int
    alpha: float
    events: int = MOST_EVENTS  # that share alpha

    @property
    def tightness(self) -> float:
        """How much of the claimed epsilon can be seen: far below 1 means wasted budget (or a weak audit)."""
        return self.lower_bound / self.epsilon

    @property
    def rarest(self) -> float | None:
        """How likely an event must be that only `hidden` can show, for this audit to find it every other time.

        None if no event is likely enough for so few samples. What is rarer than this is beyond the audit.
        """
        fresh, alpha = self.samples - self.samples // 2, self.alpha / 2 / self.events
        hits = np.unique(np.geomspace(1, fresh, 2_000).astype(np.int64))
        enough = hits[lower_bound(hits, np.zeros_like(hits), fresh, fresh, alpha) > self.epsilon]
        return float(enough[0]) / fresh if len(enough) else None

    @property
    def beyond(self) -> str:
        """What stays beyond so many samples, in a sentence."""
        if self.rarest is None:
            return "So few samples find no leak at all at this epsilon and alpha, however plain it is."
        if self.rarest > 0.5:
            return "So few samples find only what almost every output shows."
        return (
            f"An event that only hidden can show is beyond so many samples if fewer than about 1 in "
            f"{_two_digits(1 / self.rarest):,} outputs of hidden show it."
        )

    def __str__(self) -> str:
        if self.verdict == Verdict.LEAK_FOUND:
            return (
                f"LEAK_FOUND: the loss is at least {self.lower_bound:.3f}, more than the claimed {self.epsilon:g} "
                f"(wrong with probability below {self.alpha:g}). {self.witness}"
            )
        return (
            f"NONE_FOUND at alpha {self.alpha:g} with {self.samples:,} samples a side: every epsilon below "
            f"{self.lower_bound:.3f} is ruled out, the claimed {self.epsilon:g} is not. {self.witness}. "
            f"{self.beyond}"
        )


def _two_digits(number: float) -> int:
    """Return a number rounded down to two digits."""
    unit = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return int(number // unit * unit)


def sampled(
    release: Release,
    hidden: Any,
    cover: Any,
    epsilon: Any = 1.0,
    samples: int = 10**6,
    alpha: float = 1e-6,
    *,
    policy: Policy | None = None,
    workers: int = 2,
    progress: Progress | None = None,
) -> SampledAudit:
    """Look for a set of outputs that betrays `hidden` against `cover` by more than epsilon.

    `release(data, size)` returns `size` independent outputs: numbers, rows of numbers, or texts, one along the first
    axis for each draw. `hidden` and `cover` are whatever it takes as data. With a `policy` both are lists of records
    and must be one secret edge apart. `samples` outputs are drawn from each of the two. `workers=1` never calls
    `release` from two threads at once.

    >>> import tacit as tc
    >>> def careless(people, size):
    ...     return sum(people) + tc.noise.geometric(1, size)
    >>> tc.audit.sampled(careless, [0, 1], [1, 1], epsilon=1, samples=20_000).verdict
    <Verdict.LEAK_FOUND: 'LEAK_FOUND'>
    """
    claimed = float(as_epsilon(epsilon))
    if not callable(release):
        raise PlanError("must be a function", key="release", given=release, fix="It is called as release(data, size).")
    if progress is not None and not callable(progress):
        raise PlanError("must be a function", key="progress", given=progress, fix="It is called with the share done.")
    check_samples(samples, alpha, workers)
    if policy is not None:
        check_neighbours(policy, hidden, cover)
    with watched("auditing", progress) as told:
        source = OutputSource(release, (hidden, cover), int(samples), workers, told)
        bound, witness = _looked_at(source, float(alpha))
    verdict = Verdict.LEAK_FOUND if bound > claimed else Verdict.NONE_FOUND
    return SampledAudit(verdict, bound, witness, claimed, source.samples, float(alpha))


def _looked_at(source: OutputSource, left: float) -> tuple[float, SampledWitness]:
    """Return the bound and where it was found, in the form of output that all draws have."""
    while True:
        # a mechanism may show a new form of output late; then all starts over, and half of alpha is kept for that
        share = left if source.alone else left / 2
        try:
            return _audited(source, share)
        except FormChanged as change:
            left -= share
            form = change.form
        source.start_over(form)


def _audited(source: OutputSource, alpha: float) -> tuple[float, SampledWitness]:
    """Return the bound and where it was found."""
    kept = min(source.samples // 2, source.most_kept)
    fresh = source.samples - kept
    first = source.draw(kept)
    events = [*find_events(*first, alpha / MOST_EVENTS, MOST_EVENTS), *(FAILING if source.alone else ())]
    # alpha is spent on fresh samples, shared evenly by the events that were chosen before these were drawn ..
    hits, seen = np.zeros((len(events), 2), dtype=np.int64), np.full(len(events), fresh)
    for side, outputs in source.chunks(fresh):
        hits[:, side] += _happened(events, outputs)
    if source.alone:
        # .. but an event that no sample had a say in may use all of them
        seen[-len(FAILING) :] += kept
        for side, outputs in enumerate(first):
            hits[-len(FAILING) :, side] += _happened(FAILING, outputs)
    bounds = lower_bound(hits[:, 0], hits[:, 1], seen, seen, alpha / len(events))
    best = int(np.argmax(bounds))
    witness = SampledWitness(events[best].words, int(hits[best, 0]), int(hits[best, 1]), int(seen[best]))
    return max(float(bounds[best]), 0.0), witness


def _happened(events: Sequence[Event], outputs: npt.NDArray[Any]) -> list[int]:
    columns = columns_of(outputs)
    return [int(event.holds(columns).sum()) for event in events]


def assert_no_leak(
    release: Release,
    hidden: Any,
    cover: Any,
    epsilon: Any = 1.0,
    samples: int = 10**6,
    alpha: float = 1e-6,
    *,
    policy: Policy | None = None,
    workers: int = 2,
) -> SampledAudit:
    """Fail a test if the audit finds a leak; return what it found otherwise.

    >>> import tacit as tc
    >>> def test_my_count_keeps_its_promise():
    ...     release = lambda people, size: len(people) + tc.noise.discrete_laplace(1, size)
    ...     tc.audit.assert_no_leak(release, hidden=[1, 2, 3], cover=[1, 2], epsilon=1, samples=20_000)
    >>> test_my_count_keeps_its_promise()
    """
    found = sampled(release, hidden, cover, epsilon, samples, alpha, policy=policy, workers=workers)
    if found.verdict == Verdict.LEAK_FOUND:
        raise AssertionError(str(found))
    return found


def check_power(samples: int, alpha: float, epsilon: Any) -> None:
    """Refuse so few samples that no leak at all could be found at this epsilon and alpha, however plain it is."""
    check_samples(samples, alpha)
    claimed = float(as_epsilon(epsilon))
    if _most_found(samples, alpha) > claimed:
        return
    many = range(samples, MOST_SAMPLES)
    enough = samples + bisect_right(many, claimed, key=lambda one: _most_found(one, alpha))
    if enough >= MOST_SAMPLES:
        rule = f"must be smaller: no number of samples would show a loss of {claimed:g} at alpha {alpha:g}"
        raise PlanError(rule, key="epsilon", given=claimed, fix="Audit the same question at a smaller one.")
    raise PlanError(
        f"must be {enough:,} or more: with fewer no leak at all is found at epsilon {claimed:g} and alpha {alpha:g}",
        key="samples",
        given=samples,
        fix="Draw more, or take a larger alpha.",
    )


def _most_found(samples: int, alpha: float) -> float:
    """Return the largest lower bound that so many samples can give: of what hidden always shows, and cover never."""
    fresh = np.array([samples - samples // 2])
    return float(lower_bound(fresh, np.zeros_like(fresh), fresh, fresh, alpha / 2 / MOST_EVENTS)[0])


def check_samples(samples: Any, alpha: Any, workers: Any = 1) -> None:
    """Refuse numbers with which nothing can be audited."""
    for key, number, least, usual in (("samples", samples, FEWEST, "10**6"), ("workers", workers, 1, "2")):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
            raise PlanError(f"must be a whole number from {least:,}", key=key, given=number, fix=f"Use {usual}.")
    is_number = isinstance(alpha, float | int | np.floating) and not isinstance(alpha, bool) and math.isfinite(alpha)
    if not (is_number and SMALLEST_ALPHA <= alpha < 1):
        given = alpha if is_number else str(alpha)  # JSON has no word for nan
        raise PlanError(f"must lie between {SMALLEST_ALPHA:g} and 1", key="alpha", given=given, fix="Use 1e-6.")
