"""The right formula, betrayed by the machine that runs it: digits, processes and error texts.

floating-point-laplace   Laplace noise by -ln(u) in double precision. A double near 0 has more binary digits after the
                         point than one near 1, so that noise added to 0 shows digits that a sum with 1 rounds away:
                         outputs between -1 and 1 that are no multiple of 2^-53 (probability 0.27) are impossible at
                         `cover`. Right: noise on a public lattice, here of 2^-10.
forked-noise-reuse       Two sessions in two processes, forked after the generator was seeded, draw the same noise. The
                         difference of their answers is exact: infinite loss, probability 1. Right: fresh noise.
error-raised-on-value    A release that refuses implausible values, and says which one it saw. At `hidden` it always
                         raises. Right: every value of the domain is counted, and nothing is said about it.
error-text-quotes-value  A text instead of a count below 5, decided by the true count, which it quotes: infinite loss,
                         probability 1. Right: decided by the noisy count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import noise
from tacit.arrays import Ints
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

_LATTICE = 1 << 10
_OLDEST_PLAUSIBLE = 100
_FEWEST = 5


def _laplace_of_doubles(count: int, size: int) -> NDArray[np.float64]:
    """Return count plus Laplace noise of scale 1, as it is usually computed."""
    uniform = (noise.uniform_below(1 << 53, size) + 1).astype(np.float64) / 2.0**53
    magnitude: NDArray[np.float64] = -np.log(uniform)
    laplace = np.where(noise.bernoulli(0.5, size), magnitude, -magnitude)
    return count + laplace  # BROKEN: which doubles can come out depends on the count


def _laplace_on_a_lattice(count: int, size: int) -> NDArray[np.float64]:
    """Return count plus Laplace noise of scale 1 on the multiples of 2^-10."""
    return (count * _LATTICE + noise.discrete_laplace(_LATTICE, size)) / _LATTICE


def _two_sessions(counts: Sequence[int], size: int, *, forked: bool) -> Ints:
    """Return one count from each of two processes, half of epsilon = 1 for each."""
    parent = noise.discrete_laplace(2, size)
    child = parent if forked else noise.discrete_laplace(2, size)  # BROKEN: the child repeats its parent's draws
    return np.stack([counts[0] + parent, counts[1] + child], axis=1)


def _count_of_the_oldest(ages: Sequence[int], size: int, *, checked: bool) -> Ints:
    """Return how many people are older than is plausible, at epsilon = 1."""
    for age in ages:
        if checked and age > _OLDEST_PLAUSIBLE:
            message = f"age {age} is not plausible"
            raise ValueError(message)  # BROKEN: that there is an error, and what it says, depends on a person
    return sum(age > _OLDEST_PLAUSIBLE for age in ages) + noise.discrete_laplace(1, size)


def _count_or_text(people: int, size: int, *, by_true_count: bool) -> NDArray[Any]:
    """Return texts: a noisy count at epsilon = 1, or that it is too small."""
    values, place = np.unique(people + noise.discrete_laplace(1, size), return_inverse=True)
    if by_true_count:
        if people < _FEWEST:
            return np.full(size, f"refused: {people} people are too few")  # BROKEN: decided by, and quotes, the truth
        return values.astype(np.str_)[place]
    return np.where(values < _FEWEST, "refused: too few people", values.astype(np.str_))[place]


PLANTED = (
    PlantedLeak(
        name="floating-point-laplace",
        mistake="noise in double precision, whose last digits depend on what it was added to",
        source="Mironov, On Significance of the Least Significant Bits for Differential Privacy, 2012",
        claimed_epsilon=1.0,
        hidden=0,
        cover=1,
        release=_laplace_of_doubles,
        repaired=_laplace_on_a_lattice,
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="forked-noise-reuse",
        mistake="two processes go on with the same stream of noise",
        source="classic",
        claimed_epsilon=1.0,
        hidden=(5, 3),
        cover=(4, 4),
        release=partial(_two_sessions, forked=True),
        repaired=partial(_two_sessions, forked=False),
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="error-raised-on-value",
        mistake="refuses a value that it finds implausible, by name",
        source="classic",
        claimed_epsilon=1.0,
        hidden=(41, 104, 77),
        cover=(41, 99, 77),
        release=partial(_count_of_the_oldest, checked=True),
        repaired=partial(_count_of_the_oldest, checked=False),
        exact_loss=math.inf,
    ),
    PlantedLeak(
        name="error-text-quotes-value",
        mistake="refuses small counts by the true count, and quotes it",
        source="classic",
        claimed_epsilon=1.0,
        hidden=4,
        cover=5,
        release=partial(_count_or_text, by_true_count=True),
        repaired=partial(_count_or_text, by_true_count=False),
        exact_loss=math.inf,
    ),
)
