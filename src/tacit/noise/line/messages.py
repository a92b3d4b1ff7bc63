"""The parts of noise on a line: its rates, its cells, and the messages that say what a cell weighs, given its sum.

A cell of the line is made of two halves, and these of quarters, down to single values. With weights exp(-w_l |x|) for
the cells of level l, the sum over everything inside a cell that adds up to x is the message

    p_l(x) = exp(-w_l |x|) * sum over y of p_(l+1)(y) p_(l+1)(x - y),      p_L(x) = exp(-w_L |x|).

Each message is a mixture of negative binomials, p(x) = sum over a of weights[a] * nb_a(|x|) with
nb_a(j) = C(j+a, a) r^j (1-r)^(a+1), r = exp(-rate), rate = w_l + .. + w_L: convolution (`joined`) and a factor
exp(-w |x|) (`sharpened`) keep this form. All terms are positive, so that every number here has a small *relative*
error, also far out in the tails; `UNIT` times the counts below bounds it. That is what the draws need
(`noise/line/draws.py`).

Why `joined` is right, for s >= 0: in sum_x p(x) q(s-x) the x in 0..s give nb_a * nb_b = nb_(a+b+1). Beyond s, with
x = s + k, C(s+k+a, a) = sum_i C(s+i, i) C(k-1+a-i, a-i) gives nb_a(s+k) = sum_i nb_i(s) nb_(a-i)(k-1) r/(1-r), and so
the weight sum_j weights[i+j] mu_j of nb_i, mu_j = r/(1-r) sum_k q(k) nb_j(k-1). That sum over k is the chance that a
sum of b+1 geometrics exceeds one of j+1 by one; taking the geometrics away one by one, it is sum_i C(j+i, i) P^(j+1)
Q^i nb_(b-i)(i+1) with P = 1/(1+r), Q = r/(1+r).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, expm1
from typing import Final

import numpy as np

from tacit.arrays import Floats, Ints

UNIT: Final = 2.0**-53
FARTHEST: Final = 690.0  # tables end before rate * x reaches this: exp(-690) still has all its digits
_DROPPED: Final = 2.0**-60  # share of a message, anywhere in its table, that may be left out
_RUN: Final = 256  # entries that are added up one after the other
_AT_ONCE: Final = 64  # rows of negative binomials that are made together
_MOST_TILT: Final = 300.0  # exponent by which a message is lifted
_MOST_LENT: Final = 1e-30


@dataclass(frozen=True, eq=False)
class Message:
    """The function p(x) = sum over a of weights[a] * nb_a(|x|), with r = exp(-rate)."""

    weights: Floats
    rate: float

    def table(self, reach: int) -> Floats:
        """Return p(0), .., p(reach)."""
        return self.at(np.arange(reach + 1, dtype=np.float64))

    def at(self, places: Floats) -> Floats:
        """Return p at whole numbers, zero or more."""
        j = places
        if self.rate == 0:
            return np.ones_like(j)
        miss = -expm1(-self.rate)
        row = miss * np.exp(-self.rate * j)
        found = self.weights[0] * row
        for a in range(1, len(self.weights)):
            row *= (j + a) * (miss / a)
            found += self.weights[a] * row
        return np.asarray(found)

    @property
    def rounding(self) -> float:
        """A bound on the relative error of an entry of the table, beside that of the weights."""
        # the exponent, up to 690, is off by half a unit; six roundings for each term
        return UNIT * (FARTHEST + 8 + 6 * len(self.weights))

    @property
    def derivation(self) -> float:
        """A bound on the relative error of weights that were made from others, what was left out included."""
        return UNIT * (32 + 16 * len(self.weights)) + 2 * _DROPPED


def unit_message(rate: float) -> Message:
    """Return the message of one value: exp(-rate |x|) up to a factor."""
    return Message(np.ones(1), rate)


def sharpened(message: Message, by: float) -> Message:
    """Return the message times exp(-by |x|), up to a factor."""
    if by == 0:
        return message
    # nb_a(j) e^(-by j) is nb_a at the larger rate, times ((1-r) / (1-r'))^(a+1)
    rate = message.rate + by
    weights = message.weights * (expm1(-message.rate) / expm1(-rate)) ** np.arange(1, len(message.weights) + 1)
    return _shortened(weights / weights.sum(), rate)


def joined(left: Message, right: Message) -> Message:
    """Return the convolution of two messages of the same rate, up to a factor."""
    g, h, rate = left.weights, right.weights, left.rate
    out = np.zeros(len(g) + len(h))
    out[1:] = np.convolve(g, h)
    past_right = _past(h, g, rate)
    out[: len(g)] += past_right
    out[: len(h)] += past_right if left is right else _past(g, h, rate)
    return _shortened(out / out.sum(), rate)


def _past(other: Floats, own: Floats, rate: float) -> Floats:
    """Return what the mixture gets from values that overshoot the other message and lie in this one."""
    beyond = _overshoots(other, len(own), rate)
    return np.correlate(own, beyond, "full")[len(own) - 1 :]


def _overshoots(weights: Floats, many: int, rate: float) -> Floats:
    """Return mu_j for j < many: r/(1-r) times sum over k >= 1 of q(k) nb_j(k-1)."""
    r, miss = exp(-rate), -expm1(-rate)
    own = len(weights)
    i = np.arange(own, dtype=np.float64)
    each = np.zeros(own)
    later = np.lib.stride_tricks.sliding_window_view(np.concatenate([weights, np.zeros(own)]), own)
    # nb_c(i+1), from c = 0 on
    for c, rows in _rows(miss * np.exp(-rate * (i + 1)), i + 1, miss, own):
        each += np.einsum("ci,ci->i", later[c : c + len(rows)], rows)
    found = np.empty(many)
    # C(j+i, i) P^(j+1) Q^i, from j = 0 on
    for j, rows in _rows((1 / (1 + r)) * np.exp(i * np.log(r / (1 + r))), i, 1 / (1 + r), many):
        found[j : j + len(rows)] = rows @ each
    return found * (r / miss)


def _rows(first: Floats, plus: Floats, by: float, many: int) -> Iterator[tuple[int, Floats]]:
    """Yield the rows that follow from the first one, each the one before times (plus + a) by / a, some at a time."""
    last = first
    for start in range(0, many, _AT_ONCE):
        a = np.arange(start, min(start + _AT_ONCE, many), dtype=np.float64)[:, np.newaxis]
        rows = plus + a
        rows *= by / np.maximum(a, 1)
        rows[0] = rows[0] * last if start else first
        for before, row in pairwise(rows):
            row *= before
        last = rows[-1]
        yield start, rows


def _shortened(weights: Floats, rate: float) -> Message:
    """Return the message without the last weights, where they are negligible in the whole table."""
    if len(weights) < 64:
        return Message(weights, rate)
    # nb_a(x) / nb_b(x) grows with x for a > b: what is negligible at the far end is so everywhere
    a = np.arange(1, len(weights), dtype=np.float64)
    log_rows = np.concatenate([[0.0], np.cumsum(np.log((FARTHEST / rate + a) * (-expm1(-rate) / a)))])
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + log_rows
    share = np.exp(logs - logs.max())
    beyond = np.cumsum(share[::-1])[::-1]
    keep = int(np.searchsorted(-beyond, -_DROPPED * beyond[0] / 4, "left"))
    kept = weights[: max(keep, 1)]
    return Message(kept / kept.sum(), rate)


def smoothed(message: Message, centred: Floats) -> Floats:
    """Return sum over y of p(x - y) f(y), for an even f on -R..R and x on the same points.

    Positive first-order recursions: with f(y) r^(-y), a sum over y <= x of nb_a(x - y) f(y) is a + 1 running sums. The
    powers of r start again with each piece, so that none of them leaves the doubles. Within a piece, runs are added up
    by themselves and then put together, so that few roundings come together.
    """
    if message.rate == 0:
        return np.full_like(centred, centred.sum())
    size, piece = len(centred), _piece(message.rate)
    run = min(_RUN, piece)
    miss, hit = -expm1(-message.rate), exp(-message.rate)
    tilt = np.exp(-message.rate * np.arange(piece, dtype=np.float64)).reshape(-1, run)
    lifted = np.zeros(-(-size // piece) * piece)
    lifted[:size] = centred
    lifted = lifted.reshape(-1, *tilt.shape) / tilt
    sums, scaled = np.zeros_like(lifted), np.empty_like(lifted)
    lent = 1.0  # powers of (1-r) that are still to be multiplied by
    for weight in message.weights[::-1]:
        np.multiply(lifted, weight / lent, out=scaled)
        sums += scaled
        np.cumsum(sums, axis=2, out=sums)
        sums[:, 1:] += np.cumsum(sums[:, :-1, -1], axis=1)[:, :, np.newaxis]
        for row in range(1, len(sums)):
            sums[row] += sums[row - 1, -1, -1] * (tilt[-1, -1] * hit)
        lent *= miss
        if lent < _MOST_LENT:
            sums *= lent
            lent = 1.0
    below = (sums * tilt).ravel()[:size] * lent
    at_zero = float(message.table(0)[0])
    return np.asarray(below + below[::-1] - at_zero * centred)


def smoothing_error(message: Message, entries: int) -> float:
    """Return a bound on the relative error of an entry of `smoothed`."""
    if message.rate == 0:
        return UNIT * entries
    # each running sum: its adds and a few more roundings; then powers, twice, and a difference of condition 3
    piece = _piece(message.rate)
    adds = _RUN + piece / _RUN + 3 * (entries / piece + 1) + 6
    return 3 * UNIT * (len(message.weights) * adds + 2 * _MOST_TILT + 20)


def _piece(rate: float) -> int:
    """Return how many entries share their powers of r: a multiple of a run, or less than one."""
    longest = max(1, int(_MOST_TILT / rate))
    return longest // _RUN * _RUN if longest > _RUN else longest


@dataclass(frozen=True)
class Rates:
    """The rates of a segment as doubles: anchors, cells from the largest to single values, and the end."""

    anchor: float
    cells: tuple[float, ...]
    end: float | None

    def times(self, factor: float) -> Rates:
        """Return all rates times a factor."""
        end = None if self.end is None else self.end * factor
        return Rates(self.anchor * factor, tuple(rate * factor for rate in self.cells), end)

    @property
    def levels(self) -> int:
        """How often a block is halved."""
        return len(self.cells) - 1

    @property
    def block(self) -> int:
        """How many values a block has."""
        return 1 << self.levels


def kinds_of(lengths: Sequence[int], rates: Rates) -> Ints:
    """Return the kind of each segment: its length, or minus that where its end is free, as that of the last may be."""
    kinds = np.array(lengths, dtype=np.int64)
    kinds[-1] *= -1 if rates.end is not None else 1
    return kinds


def level_messages(cells: tuple[float, ...]) -> tuple[Message, ...]:
    """Return the messages of whole cells, from the block to a single value."""
    found = [unit_message(cells[-1])]
    for rate in reversed(cells[:-1]):
        found.append(sharpened(joined(found[-1], found[-1]), rate))
    return tuple(reversed(found))


def cut_messages(rest: int, cells: tuple[float, ...], levels: tuple[Message, ...]) -> dict[int, Message]:
    """Return the messages of the cells that the end of a segment cuts short, by level, where `rest` values remain.

    On each level it is one cell: whatever lies behind the last multiple of its size.
    """
    found: dict[int, Message] = {}
    depth = len(cells) - 1
    for level in range(depth - 1, -1, -1):
        half = 1 << (depth - level - 1)
        inside = rest % (2 * half)
        if not inside:
            continue
        inner = found.get(level + 1)
        if inside >= half:
            inner = levels[level + 1] if inner is None else joined(levels[level + 1], inner)
        found[level] = sharpened(inner, cells[level])  # type: ignore[arg-type]
    return found


def cut_levels(rest: int, depth: int) -> list[int]:
    """Return the levels of the whole cells that `rest` values are made of, the largest first."""
    return [level for level in range(1, depth + 1) if rest & (1 << (depth - level))]
