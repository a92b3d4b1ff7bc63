"""Mistakes around a sound mechanism: in whole releases, in the machine that runs them, and in what is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import noise
from tacit.arrays import Floats, Ints
from tacit.audit.selfcheck.planted.planted_leak import plant

# ---- whole releases go wrong in which rows count, after the noise, or once in a while -------------------------------

CELLS = 6
_OLDEST = 9
_FEW = Fraction(1, 2_000)
_MANY = 12


@plant((0, 1, 2), (3, 4, 5), loss=3.0)
def noise_for_one_row_of_three(rows: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Three rows of a person count, and the noise is that for one.

    A person who moves with all three changes six counts of a histogram. Loss 3, spread over six answers. Right: noise
    for three rows.
    """
    scale = 2 if broken else 2 * len(rows)  # BROKEN: three rows count
    return np.bincount(rows, minlength=CELLS) + noise.discrete_laplace(scale, (size, CELLS))


@plant((1, 3), (0, 4))
def truth_in_post_processing(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Sets to zero what is truly zero, after the noise.

    Two noisy counts. One that is not zero is then known not to be: infinite loss, probability 0.85. Right: noisy values
    below zero are set to zero.
    """
    noisy = np.array(counts) + noise.discrete_laplace(2, (size, 2))
    if broken:
        return np.where(np.array(counts) == 0, 0, noisy)  # BROKEN: which counts are zero is no public thing
    return np.maximum(noisy, 0)


@plant((5, 3), (4, 3))
def order_by_a_true_count(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Lists noisy counts in an order that shows whether a true one is odd.

    The two largest of two. Infinite loss, probability 1, in nothing but the order. Right: by the noisy counts.
    """
    noisy = np.array(counts) + noise.discrete_laplace(1, (size, 2))
    first = np.full(size, counts[0] % 2) if broken else np.argmax(noisy, axis=1)  # BROKEN: by a true count
    rows = np.arange(size)
    return np.stack([first, noisy[rows, first], 1 - first, noisy[rows, 1 - first]], axis=1)


@plant((4, 4, 4, 4), (4, 4, 4))
def mean_over_the_true_count(ages: Sequence[int], size: int, *, broken: bool) -> Floats:
    """Divides a noisy sum by the true number of people, who may have stayed away.

    Ages from 0 to 9; a half of epsilon for the sum, a half for the number of people. With four people every mean is a
    multiple of 1/4, with three of 1/3: infinite loss, probability 3/4. Right: divide by a noisy count.
    """
    sums = sum(ages) + noise.discrete_laplace(2 * _OLDEST, size)
    if broken:
        return sums / len(ages)  # BROKEN: who takes part is secret, so their number has to be noisy
    return sums / np.maximum(len(ages) + noise.discrete_laplace(2, size), 1)


def _loss_of_gaps() -> float:
    """Return the loss at the true counts of `hidden`, which come without noise or by twelve zeros."""
    zero = math.tanh(1 / 4) ** _MANY  # discrete Laplace noise of scale 2 is zero with probability (1 - r) / (1 + r)
    share = float(_FEW)
    return math.log(share + (1 - share) * zero) - math.log((1 - share) * zero) + 1


@plant((5, 3, *[4] * (_MANY - 2)), (4, 4, *[4] * (_MANY - 2)), loss=_loss_of_gaps())
def noise_left_out_at_times(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Once in 2,000 releases there is no noise.

    Twelve noisy counts, and then all of them are the true ones. By itself all noise is zero once in 20 million: loss
    10.3, by an event of probability 1/2000. About 400,000 samples of either side find it at alpha 1e-6; with 20,000 it
    is beyond an audit. Right: noise, always.
    """
    noisy = np.array(counts) + noise.discrete_laplace(2, (size, len(counts)))
    if not broken:
        return noisy
    left_out = noise.bernoulli(_FEW, size).astype(np.bool_)
    return np.where(left_out[:, None], np.array(counts), noisy)  # BROKEN: a release without noise


# ---- the machine goes wrong in digits, processes and error texts ----------------------------------------------------

_LATTICE = 1 << 10
_OLDEST_PLAUSIBLE = 100
_FEWEST = 5


@plant(0, 1, source="Mironov, On Significance of the Least Significant Bits for Differential Privacy, 2012")
def floating_point_laplace(count: int, size: int, *, broken: bool) -> Floats:
    """Noise in double precision, whose last digits depend on what it was added to.

    Laplace noise by -ln(u). A double near 0 has more binary digits after the point than one near 1, so that noise added
    to 0 shows digits that a sum with 1 rounds away: outputs between -1 and 1 that are no multiple of 2^-53 (probability
    0.27) are impossible at `cover`. Right: noise on a public lattice, here of 2^-10.
    """
    if not broken:
        return (count * _LATTICE + noise.discrete_laplace(_LATTICE, size)) / _LATTICE
    uniform = (noise.uniform_below(1 << 53, size) + 1).astype(np.float64) / 2.0**53
    magnitude: Floats = -np.log(uniform)
    laplace = np.where(noise.bernoulli(0.5, size), magnitude, -magnitude)
    return count + laplace  # BROKEN: which doubles can come out depends on the count


@plant((5, 3), (4, 4))
def forked_noise_reuse(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Two processes go on with the same stream of noise.

    Two sessions in two processes, forked after the generator was seeded, draw the same noise; each has half of epsilon.
    The difference of their answers is exact: infinite loss, probability 1. Right: fresh noise.
    """
    parent = noise.discrete_laplace(2, size)
    child = parent if broken else noise.discrete_laplace(2, size)  # BROKEN: the child repeats its parent's draws
    return np.stack([counts[0] + parent, counts[1] + child], axis=1)


@plant((41, 104, 77), (41, 99, 77))
def error_raised_on_value(ages: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Refuses a value that it finds implausible, by name.

    At `hidden` it always raises. Right: every value of the domain is counted, and nothing is said about it.
    """
    old = [age for age in ages if age > _OLDEST_PLAUSIBLE]
    if broken and old:
        message = f"age {old[0]} is not plausible"
        raise ValueError(message)  # BROKEN: that there is an error, and what it says, depends on a person
    return len(old) + noise.discrete_laplace(1, size)


@plant(4, 5)
def error_text_quotes_value(people: int, size: int, *, broken: bool) -> NDArray[Any]:
    """Refuses small counts by the true count, and quotes it.

    A text instead of a count below 5: infinite loss, probability 1. Right: decided by the noisy count.
    """
    values, place = np.unique(people + noise.discrete_laplace(1, size), return_inverse=True)
    if broken:
        if people < _FEWEST:
            return np.full(size, f"refused: {people} people are too few")  # BROKEN: decided by, and quotes, the truth
        return values.astype(np.str_)[place]
    return np.where(values < _FEWEST, "refused: too few people", values.astype(np.str_))[place]


# ---- records and tables are released as they are, after a choice that tells more than they do -----------------------

SUPPRESSED = -1
_SENSITIVE = 2
_RELEASED = Fraction(632, 1000)  # just below 1 - exp(-1)
_ASKINGS = 5
_FORGOTTEN = Fraction(1, 10)


def _shown(coins: Any, *records: int) -> Ints:
    """Return records where their coins allow it, if they are not sensitive, and what stands for a missing one."""
    return np.where(coins, [SUPPRESSED if record == _SENSITIVE else record for record in records], SUPPRESSED)


@plant((0, 2, 1), (0, 1, 1), source="One-sided differential privacy, arXiv:1712.05888 (exclusion attack)")
def naive_suppression(records: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Releases every record but the sensitive ones, which the gaps give away.

    What is missing is known to be sensitive (the exclusion attack): infinite loss, probability 1. Right: one-sided
    randomised response, which leaves out other records too, each with probability exp(-eps).
    """
    share = Fraction(1) if broken else _RELEASED  # BROKEN: only sensitive records are missing
    return _shown(noise.bernoulli(share, (size, len(records))), *records)


@plant(
    2,
    1,
    loss=-3 * math.log(1 - _RELEASED),
    source="Privacy leakage over dependent attributes in one-sided differential privacy, repeated queries",
)
def coin_tossed_anew(record: int, size: int, *, broken: bool) -> Ints:
    """Tosses a new coin whenever the same record is asked for.

    One-sided randomised response, asked three times: a record that is missing thrice is sensitive, or unlucky with
    probability exp(-3 eps). Loss 3, probability 1. Right: remember the coin of a record.
    """
    coins = noise.bernoulli(_RELEASED, (size, 3))
    return _shown(coins if broken else coins[:, [0, 0, 0]], record)  # BROKEN: three coins instead of one


@plant(2, 1, loss=-math.log(1 - _RELEASED) - (_ASKINGS - 1) * math.log(1 - _FORGOTTEN * _RELEASED))
def coin_forgotten_at_times(record: int, size: int, *, broken: bool) -> Ints:
    """Remembers the coin of a record, but for one asking in ten.

    One-sided randomised response, asked five times: one asking in ten tosses a new coin. Of a record that is not
    sensitive all five are missing with probability exp(-eps) times (1 - 0.0632)^4: loss 1.26, probability 1. Right:
    remember it always.
    """
    coins = np.repeat(noise.bernoulli(_RELEASED, (size, 1)), _ASKINGS, axis=1)
    if broken:
        anew = noise.bernoulli(_FORGOTTEN, (size, _ASKINGS - 1)).astype(np.bool_)
        fresh = noise.bernoulli(_RELEASED, (size, _ASKINGS - 1))
        coins[:, 1:] = np.where(anew, fresh, coins[:, 1:])  # BROKEN: a coin that is not remembered
    return _shown(coins, record)


@plant((1, 2, 1), (1, 1, 1), source="what comes to mind where records have no key")
def coin_of_the_value(records: Sequence[int], size: int, *, broken: bool) -> Ints:
    """Remembers the coin by the value, so that others with the same value tell it.

    One-sided randomised response: of two people with the same value both are shown or none. Where the one is shown and
    the other not, that one is sensitive: infinite loss, probability 0.63. Right: remember the coin of a record, by its
    public key.
    """
    coins = noise.bernoulli(_RELEASED, (size, max(len(records), _SENSITIVE + 1)))
    own = list(records) if broken else list(range(len(records)))  # BROKEN: a coin that many share
    return _shown(coins[:, own], *records)


# The promise of reconstruction privacy (lambda, delta), and how many values keep their place.
_ERROR, _CHANCE = 0.9, 0.7
_KEPT, _VALUES = Fraction(1, 2), 2
_PUBLIC_SAMPLE = 3
_MOST_SAMPLED = 6


def _sampled_by_frequency(counts: Sequence[int], size: int) -> Ints:
    """Return how many records of each value are sampled: their share of a size that Chernoff's bound allows."""
    p, f, people = float(_KEPT), max(counts) / sum(counts), sum(counts)
    allowed = -2 * (f * p + (1 - p) / _VALUES) * math.log(_CHANCE) / (_ERROR * p * f) ** 2
    shares = [Fraction(count * allowed / people).limit_denominator(10**6) for count in counts]
    return np.stack([math.floor(share) + noise.bernoulli(share % 1, size) for share in shares], axis=1)


def _sampled_publicly(counts: Sequence[int], size: int) -> Ints:
    """Return how many of a public number of records, drawn without looking at them, have each value."""
    first = np.zeros(size, np.int64)
    for drawn in range(_PUBLIC_SAMPLE):
        first += noise.uniform_below(sum(counts) - drawn, size) < counts[0] - first
    return np.stack([first, _PUBLIC_SAMPLE - first], axis=1)


@plant(
    (8, 4),
    (9, 3),
    claimed=math.log(3),  # ln(1 + p m / (1 - p)): what perturbation of each record promises
    source="Han, Sensitive disclosures under differential privacy guarantees, 2016 (SPS)",
)
def scaled_tables(counts: Sequence[int], size: int, *, broken: bool) -> Ints:
    """The size of the sample follows from the data, and copies show it.

    A group of 12 records is sampled, each value replaced by a random one with probability 1/2, and the sample scaled up
    to 12 by copies. Printed: the size s of the sample follows from the frequency f of the most frequent value, and each
    value gives its share of s, rounded at random. Copies show the size of the sample, hence f: with frequencies 9 and 3
    a sample has 2 to 4 records and all counts are multiples of 6, 4 or 3; with 8 and 4 it may have 5, and a record has
    2 or 3 copies. Infinite loss, by an event of probability 0.46. Right: a simple random sample of a public size. A
    public size alone is not enough: rounding the share of each value tells its count in the same way.
    """
    sample = (_sampled_by_frequency if broken else _sampled_publicly)(counts, size)  # BROKEN: f is not public
    many = sample.sum(axis=1, keepdims=True)
    place = np.arange(_MOST_SAMPLED)
    shape = (size, _MOST_SAMPLED)
    value = np.where(noise.bernoulli(_KEPT, shape), place >= sample[:, :1], noise.uniform_below(_VALUES, shape))
    # People / many copies on average. All samples have 2 to 6 records, so the chance of one more is a multiple of 1/60.
    people = sum(counts)
    copies = people // many + (noise.uniform_below(60, shape) * many < 60 * (people % many))
    copies[place >= many] = 0
    return np.stack([(copies * (value == v)).sum(axis=1) for v in range(_VALUES)], axis=1)
