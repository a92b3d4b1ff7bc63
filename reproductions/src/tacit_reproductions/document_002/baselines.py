"""Mechanisms of others that ours are compared with: free gap, and Algorithms 1 and 2 of document 002.

Baselines for measurements only: no session uses them. Counts are whole numbers, so noise is discrete; for scales as
they are here (k / epsilon and more) its variance is the continuous one but for a fraction of one.

Guarantee   `free_gap_top_k` and `free_gap_sparse_vector`: epsilon-differential privacy for one more or one less person,
            with any set of items. Such a person moves all counts that change in one direction: they are monotone. The
            general form, with twice the noise in the choice, also covers counts that move both ways. `algorithm_1`
            and `algorithm_2`: the asymmetric half of it, "has the item" looks like "has not", never the reverse.
Assumes     Items in a public order; k, thresholds and epsilon public.
Why         Noise of scale k / epsilon on all counts pays for which k are the largest and, at no further cost, for the
            differences between them: shift the noise of the winners alone, all by at most one. So half of epsilon
            chooses and half measures the k counts, with Laplace noise of scale 2 k / epsilon. The sparse vector spends
            a part on a noisy threshold, and the distances to it are free.
            Least squares: let a_i be the measured counts (variance s), t_i the noisy counts by which they were chosen
            (variance r s), of which only differences are known. The best linear unbiased estimate keeps the mean of a
            and takes deviations from it as (r (a_i - mean a) + t_i - mean t) / (1 + r); its variance is
            s (1 + r k) / (k + r k). Of a count above the threshold there are two estimates: weights by variance.
Reference   Ding, Wang, Zhang, Kifer, Free Gap Information from the Differentially Private Sparse Vector and Noisy Max
            Mechanisms, arXiv:1904.12773: top-k with gap, adaptive sparse vector with gap, and estimates from both.
            Ding and others, Free Gap Estimates from the Exponential Mechanism, Sparse Vector, Noisy Max and Related
            Algorithms, arXiv:2012.01592, for exponential noise. Lyu, Su, Li, Understanding the Sparse Vector Technique,
            arXiv:1603.01699: the threshold has a share of 1 to k^(2/3). Takagi, Cao, Yoshikawa, Asymmetric Differential
            Privacy, 2020: Algorithms 1 and 2.
Checked by  reproductions/tests/test_baselines.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.noise.two_scale import TwoScale

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NONE: Final = -1  # a place where fewer were found than asked for
_AT_ONCE: Final = 1 << 22  # counts with noise in memory


class FreeGap(StrEnum):
    """How free gap chooses: Laplace noise for counts that move one way, for any counts, or exponential noise."""

    monotone = "monotone"
    general = "general"
    exponential = "exponential"


@dataclass(frozen=True)
class Answers:
    """What many runs released, a line for each: places of items (`NONE` where there is none) and values (NaN there)."""

    places: IntArray
    values: Floats

    @classmethod
    def joined(cls, parts: list[Answers]) -> Answers:
        """Return the runs of several parts as one."""
        return cls(np.concatenate([part.places for part in parts]), np.concatenate([part.values for part in parts]))


def free_gap_top_k(
    counts: IntArray, k: int, epsilon: Fraction, runs: int, *, form: FreeGap = FreeGap.monotone
) -> Answers:
    """Choose with half of epsilon, measure with the other half, and let the gaps improve what was measured."""
    scale = 2 * k / epsilon
    chosen_by, ratio = {
        FreeGap.monotone: (TwoScale(scale, scale), 1.0),
        FreeGap.general: (TwoScale(2 * scale, 2 * scale), 4.0),
        FreeGap.exponential: (TwoScale(scale, Fraction(0)), 0.5),
    }[form]
    found = []
    for many in _parts(runs, len(counts)):
        places, noisy = _largest(counts + noise.sample(chosen_by, (many, len(counts))), k)
        measured = counts[places] + noise.discrete_laplace(scale, (many, k))
        found.append(Answers(places, with_gaps(measured, noisy, ratio)))
    return Answers.joined(found)


def with_gaps(measured: npt.ArrayLike, noisy: npt.ArrayLike, ratio: float) -> Floats:
    """Return the least-squares estimate from measured counts and the gaps between noisy ones, along the last axis.

    `ratio` is the variance of the noise in `noisy` over that in `measured`. Only differences of `noisy` are used.
    """
    own, other = np.asarray(measured, dtype=np.float64), np.asarray(noisy, dtype=np.float64)
    mean = own.mean(axis=-1, keepdims=True)
    return np.asarray(mean + (ratio * (own - mean) + other - other.mean(axis=-1, keepdims=True)) / (1 + ratio))


def algorithm_1(counts: IntArray, k: int, epsilon: Fraction, runs: int) -> Answers:
    """Release the k largest noisy counts less the mean of the noise: Algorithm 1, each count added once."""
    law = TwoScale(k / epsilon, Fraction(0))
    found = []
    for many in _parts(runs, len(counts)):
        places, noisy = _largest(counts + noise.sample(law, (many, len(counts))), k)
        found.append(Answers(places, noisy.astype(np.float64) - law.mean()))
    return Answers.joined(found)


def algorithm_2(counts: IntArray, thresholds: IntArray, most: int, epsilon: Fraction) -> Answers:
    """Release the first noisy counts that reach the threshold, at most so many: Algorithm 2, but stopped in time.

    `counts` has a line for each run, in the order in which items are asked; `thresholds` a number for each.
    """
    law = TwoScale(most / epsilon, Fraction(0))
    noisy = counts + noise.sample(law, counts.shape)
    places = _first(noisy >= thresholds[:, np.newaxis], most)
    return Answers(places, _at(noisy, places) - law.mean())


def free_gap_sparse_vector(
    counts: IntArray, thresholds: IntArray, most: int, epsilon: Fraction, *, adaptive: bool = False
) -> Answers:
    """Find counts above a noisy threshold with half of epsilon, measure them with the rest, and use the free gaps.

    `adaptive` asks first with half of what an answer may cost, and keeps the rest if the count is two standard
    deviations above: here the rest goes into the measurement. Lines as for `algorithm_2`.
    """
    tests = epsilon / 2
    share = Fraction(most ** (2 / 3)).limit_denominator(1000)
    of_threshold = tests / (1 + share)
    each = (tests - of_threshold) / most
    bar = thresholds + noise.discrete_laplace(1 / of_threshold, len(thresholds))
    gap = counts + noise.discrete_laplace(1 / each, counts.shape) - bar[:, np.newaxis]
    is_above, variance = gap >= 0, np.full(counts.shape, _laplace_variance(1 / each))
    cheap = np.zeros(counts.shape, dtype=np.bool_)
    if adaptive:
        law = TwoScale(2 / each, 2 / each)
        rough = counts + noise.sample(law, counts.shape) - bar[:, np.newaxis]
        cheap = rough >= 2 * math.sqrt(law.variance())
        gap, is_above = np.where(cheap, rough, gap), is_above | cheap
        variance[cheap] = law.variance()
    places = _first(is_above, most)
    kept = _at(cheap, places) == 1
    budgets = [epsilon - tests + many * each / 2 for many in kept.sum(axis=1).tolist()]
    measured, spread = _measured(_at(counts, places), most, budgets)
    from_gap = _at(gap, places) + thresholds[:, np.newaxis]
    weight = 1 / (_at(variance, places) + _laplace_variance(1 / of_threshold))
    own = 1 / spread[:, np.newaxis]
    return Answers(places, (own * measured + weight * from_gap) / (own + weight))


def _measured(counts: Floats, most: int, budgets: list[Fraction]) -> tuple[Floats, Floats]:
    """Return counts with Laplace noise for as many answers, and its variance; a budget for each line."""
    noisy, spread = np.array(counts), np.zeros(len(counts))
    for budget in sorted(set(budgets)):
        lines = np.array([line for line, own in enumerate(budgets) if own == budget])
        scale = most / budget
        noisy[lines] += noise.discrete_laplace(scale, (len(lines), counts.shape[1]))
        spread[lines] = _laplace_variance(scale)
    return noisy, spread


def _largest(noisy: IntArray, k: int) -> tuple[IntArray, IntArray]:
    """Return places and noisy counts of the k largest of each line, largest first; ties go to the earlier place."""
    items = noisy.shape[1]
    ranked = noisy * items + np.arange(items)[::-1]
    places = np.argpartition(ranked, items - k, axis=1)[:, items - k :] if k < items else np.indices(noisy.shape)[1]
    order = np.argsort(-np.take_along_axis(ranked, places, axis=1), axis=1)
    places = np.take_along_axis(places, order, axis=1)
    return places, np.take_along_axis(noisy, places, axis=1)


def _first(is_above: npt.NDArray[np.bool_], most: int) -> IntArray:
    """Return the places of the first so many that are above, of each line."""
    rank = np.cumsum(is_above, axis=1)
    lines, columns = np.nonzero(is_above & (rank <= most))
    places = np.full((len(is_above), most), NONE, dtype=np.int64)
    places[lines, rank[lines, columns] - 1] = columns
    return places


def _at(table: npt.NDArray[Any], places: IntArray) -> Floats:
    """Return the entries at these places of each line, NaN where there is none."""
    entries = np.take_along_axis(table, np.maximum(places, 0), axis=1).astype(np.float64)
    return np.where(places == NONE, np.nan, entries)


def _parts(runs: int, items: int) -> Iterator[int]:
    """Yield how many runs to do at once, so that they fit in memory."""
    most = max(1, _AT_ONCE // items)
    for start in range(0, runs, most):
        yield min(most, runs - start)


def _laplace_variance(scale: Fraction) -> float:
    return TwoScale(scale, scale).variance()
