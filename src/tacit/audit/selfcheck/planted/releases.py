"""Whole releases that go wrong around a sound mechanism: in which rows count, after the noise, or once in a while.

noise-for-one-row-of-three   Three rows of a person count in a histogram, and the noise is that for one: a person who
                             moves with all three changes six counts. Loss 3, spread over six answers. Right: noise for
                             three rows.
truth-in-post-processing     Two noisy counts; one that is truly zero is set to zero. A count that is not zero is then
                             known not to be: infinite loss, probability 0.85. Right: noisy values below zero are set
                             to zero.
order-by-a-true-count        The two largest of two noisy counts, listed in an order that hangs on whether a true count
                             is odd. Infinite loss, probability 1, in nothing but the order. Right: by the noisy counts.
mean-over-the-true-count     A noisy sum, divided by how many people there are truly, where taking part is secret. With
                             four people every mean is a multiple of 1/4, with three of 1/3: infinite loss,
                             probability 3/4. Right: divide by a noisy count.
noise-left-out-at-times      Twelve noisy counts; once in 2,000 releases all of them are the true ones. By itself all
                             noise is zero once in 20 million: loss 10.3, by an event of probability 1/2000. About
                             400,000 samples of either side find it at alpha 1e-6; with 20,000 it is beyond an audit.
                             Right: noise, always.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

CELLS = 6
_OLDEST = 9
_FEW = Fraction(1, 2_000)
_MANY = 12


def _histogram_of_rows(rows: Sequence[int], size: int, *, counted: int) -> Ints:
    """Return a noisy histogram of a person's rows among others, with noise for so many rows, at epsilon = 1."""
    counts = np.bincount(rows, minlength=CELLS)
    return counts + noise.discrete_laplace(2 * counted, (size, CELLS))


def _never_negative(counts: Sequence[int], size: int, *, by_truth: bool) -> Ints:
    """Return two noisy counts of which none is below zero, at epsilon = 1."""
    noisy = np.array(counts) + noise.discrete_laplace(2, (size, 2))
    if by_truth:
        return np.where(np.array(counts) == 0, 0, noisy)  # BROKEN: which counts are zero is no public thing
    return np.maximum(noisy, 0)


def _two_largest(counts: Sequence[int], size: int, *, by_truth: bool) -> Ints:
    """Return both of two items, each with its noisy count, at epsilon = 1."""
    noisy = np.array(counts) + noise.discrete_laplace(1, (size, 2))
    first = np.argmax(noisy, axis=1)
    if by_truth:
        first[:] = counts[0] % 2  # BROKEN: the order shows whether a true count is odd
    rows = np.arange(size)
    return np.stack([first, noisy[rows, first], 1 - first, noisy[rows, 1 - first]], axis=1)


def _mean(ages: Sequence[int], size: int, *, by_truth: bool) -> npt.NDArray[np.float64]:
    """Return the mean of ages from 0 to 9, at epsilon = 1: a half for the sum, a half for the number of people."""
    sums = sum(ages) + noise.discrete_laplace(2 * _OLDEST, size)
    if by_truth:
        return sums / len(ages)  # BROKEN: who takes part is secret, so their number has to be noisy
    return sums / np.maximum(len(ages) + noise.discrete_laplace(2, size), 1)


def _counts_with_gaps(counts: Sequence[int], size: int, *, share: Fraction) -> Ints:
    """Return noisy counts at epsilon = 1, and the true ones in so many of all releases."""
    noisy = np.array(counts) + noise.discrete_laplace(2, (size, len(counts)))
    if not share:
        return noisy
    left_out = noise.bernoulli(share, size).astype(np.bool_)
    return np.where(left_out[:, None], np.array(counts), noisy)  # BROKEN: a release without noise


def _loss_of_gaps() -> float:
    """Return the loss at the true counts of `hidden`, which come without noise or by twelve zeros."""
    zero = math.tanh(1 / 4) ** _MANY  # discrete Laplace noise of scale 2 is zero with probability (1 - r) / (1 + r)
    share = float(_FEW)
    return math.log(share + (1 - share) * zero) - math.log((1 - share) * zero) + 1


PLANTED = (
    PlantedLeak(
        name="noise-for-one-row-of-three",
        mistake="three rows of a person count, and the noise is that for one",
        source="classic",
        claimed_epsilon=1.0,
        hidden=(0, 1, 2),
        cover=(3, 4, 5),
        release=partial(_histogram_of_rows, counted=1),  # BROKEN: three rows count
        repaired=partial(_histogram_of_rows, counted=3),
        exact_loss=3.0,
    ),
    PlantedLeak(
        name="truth-in-post-processing",
        mistake="sets to zero what is truly zero, after the noise",
        source="classic",
        claimed_epsilon=1.0,
        hidden=(1, 3),
        cover=(0, 4),
        release=partial(_never_negative, by_truth=True),
        repaired=partial(_never_negative, by_truth=False),
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="order-by-a-true-count",
        mistake="lists noisy counts in an order that shows whether a true one is odd",
        source="classic",
        claimed_epsilon=1.0,
        hidden=(5, 3),
        cover=(4, 3),
        release=partial(_two_largest, by_truth=True),
        repaired=partial(_two_largest, by_truth=False),
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="mean-over-the-true-count",
        mistake="divides a noisy sum by the true number of people, who may have stayed away",
        source="classic",
        claimed_epsilon=1.0,
        hidden=(4, 4, 4, 4),
        cover=(4, 4, 4),
        release=partial(_mean, by_truth=True),
        repaired=partial(_mean, by_truth=False),
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="noise-left-out-at-times",
        mistake="once in 2,000 releases there is no noise",
        source="classic",
        claimed_epsilon=1.0,
        hidden=(5, 3, *[4] * (_MANY - 2)),
        cover=(4, 4, *[4] * (_MANY - 2)),
        release=partial(_counts_with_gaps, share=_FEW),
        repaired=partial(_counts_with_gaps, share=Fraction(0)),
        exact_loss=_loss_of_gaps(),
    ),
)
