"""Many runs of the mechanisms on known counts: how far off the values are, and how many of the right items come out.

What is measured of ours is the mechanism of a release: a plan from `tacit.plan.choose`, answered by
`tacit.release.results.selections`, without opening rows or charging a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.plan.choose import choose
from tacit.plan.questions import above, top_k
from tacit.policy.attributes import Items
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import values as secret_values
from tacit.release.results.selections import select
from tacit_reproductions.document_002.baselines import (
    NONE,
    Answers,
    FreeGap,
    algorithm_1,
    algorithm_2,
    free_gap_sparse_vector,
    free_gap_top_k,
)
from tacit_reproductions.measured import OURS, Number

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FREE_GAP: Final = "free gap"
GENERAL: Final = "free gap, general form"
EXPONENTIAL: Final = "free gap, exponential noise"
ADAPTIVE: Final = "free gap, adaptive"
ALGORITHM_1: Final = "Algorithm 1"
ALGORITHM_2: Final = "Algorithm 2, stopped in time"
_AT_ONCE: Final = 1 << 22


@dataclass(frozen=True)
class Trials:
    """What many runs came to: squared error and mean error of the values, and the share of the right items.

    `wrong` counts items that were called certainly below although they are not.
    """

    squared: Number
    off: Number
    accuracy: Number
    runs: int
    wrong: int = 0


def scored(
    counts: IntArray,
    k: int,
    answers: Answers,
    *,
    mean: Callable[[Floats], Number] = Number.mean,
    wrong: int = 0,
) -> Trials:
    """Compare what was released with the truth: an item is right if its count is at least the k-th largest."""
    seen = answers.places != NONE
    true = counts[np.maximum(answers.places, 0)]
    right = seen & (true >= np.sort(counts)[-k])
    error = np.where(seen, answers.values - true, 0.0)
    found = seen.sum(axis=1)
    with np.errstate(invalid="ignore"):
        squared, off = (error**2).sum(axis=1) / found, error.sum(axis=1) / found
    accuracy = right.sum(axis=1) / k
    return Trials(mean(squared), mean(off), mean(accuracy), len(found), wrong)


def items_policy(items: int) -> Policy:
    """Return the policy of the paper's first example: "has the item" is secret, "has not" is not."""
    return Policy(Domain({"item": Items(items)}), secret_values({"item": [1]}))


def top_k_trials(mechanism: str, counts: IntArray, k: int, epsilon: Fraction, runs: int) -> Trials:
    """Return what many top-k lists by one of the mechanisms come to."""
    of_others: dict[str, Callable[[], Answers]] = {
        ALGORITHM_1: lambda: algorithm_1(counts, k, epsilon, runs),
        FREE_GAP: lambda: free_gap_top_k(counts, k, epsilon, runs),
        GENERAL: lambda: free_gap_top_k(counts, k, epsilon, runs, form=FreeGap.general),
        EXPONENTIAL: lambda: free_gap_top_k(counts, k, epsilon, runs, form=FreeGap.exponential),
    }
    if mechanism in of_others:
        return scored(counts, k, of_others[mechanism]())
    plan: Any = choose(top_k("item", k), items_policy(len(counts)), epsilon)
    records = [select(plan, counts) for _ in range(runs)]
    places = np.stack([record.places for record in records])
    return scored(counts, k, Answers(places, np.stack([record.values for record in records])))


def threshold_trials(mechanism: str, counts: IntArray, k: int, epsilon: Fraction, runs: int) -> Trials:
    """Return what many lists of at most k items above a threshold come to, as a way to find the k largest.

    As in the paper, the threshold of each run is the count of a rank between k and 2k (here all ranks equally often),
    and items are asked in an order that is drawn anew.
    """
    parts, wrong = [], 0
    ranks = np.minimum(k + np.arange(runs) * (k + 1) // runs, len(counts))
    levels = np.sort(counts)[::-1][ranks - 1]
    most = max(1, _AT_ONCE // len(counts))
    for start in range(0, runs, most):
        many = min(most, runs - start)
        orders = np.stack([noise.permutation(len(counts)) for _ in range(many)])
        thresholds = levels[start : start + many]
        if mechanism == OURS:
            found, mistakes = _ours_above(counts[orders], thresholds, k, epsilon)
            wrong += mistakes
        elif mechanism == ALGORITHM_2:
            found = algorithm_2(counts[orders], thresholds, k, epsilon)
        else:
            found = free_gap_sparse_vector(counts[orders], thresholds, k, epsilon, adaptive=mechanism == ADAPTIVE)
        named = np.where(found.places == NONE, NONE, np.take_along_axis(orders, np.maximum(found.places, 0), axis=1))
        parts.append(Answers(named, found.values))
    return scored(counts, k, Answers.joined(parts), mean=Number.mean_along, wrong=wrong)


def _ours_above(counts: IntArray, thresholds: IntArray, most: int, epsilon: Fraction) -> tuple[Answers, int]:
    """Return what `above` finds in each line, and how many it called certainly below that are not."""
    places = np.full((len(counts), most), NONE, dtype=np.int64)
    values = np.full((len(counts), most), np.nan)
    policy, wrong = items_policy(counts.shape[1]), 0
    for line, (row, threshold) in enumerate(zip(counts, thresholds.tolist(), strict=True)):
        plan: Any = choose(above("item", threshold, at_most=most), policy, epsilon)
        record = select(plan, row)
        is_above = np.asarray(record.is_above)
        found = np.flatnonzero(is_above)
        places[line, : len(found)], values[line, : len(found)] = found, record.values[found]
        wrong += int((row[: len(is_above)][~is_above] >= threshold).sum())
    return Answers(places, values), wrong
