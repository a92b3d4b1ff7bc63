"""Range counts by the mechanisms of document 003 and by trees: noise on the running counts of an ordered attribute.

Baselines for measurements only: no session uses them. A line of |T| values is cut into blocks of theta. The ordered
hierarchical mechanism adds noise to the running counts at the ends of blocks ("S nodes") and to the cells of a tree
with fan-out f over every block ("H nodes"); a running count is an S node and the cells up to it. With theta = 1 only
S nodes are left (the ordered mechanism), with theta = |T| only one tree. Noise is whole, as in `baselines`.

Guarantee   Repaired: epsilon under `within theta`, for records that change, not come or go. Printed: none; its loss
            is up to 1.774 epsilon, see `worst_loss`. `ConsistentTree`: epsilon-differential privacy, records replaced.
Assumes     The number of people is public; theta, fan-out and epsilon too.
Why         A move by at most theta values crosses the end of at most one block: one S node changes, by one. In each of
            at most h levels below the roots two cells change, by one each. So rates eps_S and eps_H / (2 h) with
            eps_S + eps_H = epsilon are enough, as long as roots are not published: the root of a block is a difference
            of S nodes. The printed version publishes roots, which is two more cells, and gives the first block rates
            of epsilon / (2 h), although a move may lead out of it into a block that has its own.
Reference   He, Machanavajjhala, Ding, Blowfish Privacy, 2014, sections 7.1 and 7.2. Hay, Rastogi, Miklau, Suciu,
            Boosting the Accuracy of Differentially Private Histograms Through Consistency, 2010: consistent trees.
Checked by  reproductions/tests/test_ordered_003.py, reproductions/tests/test_reproduce_003.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.noise.two_scale import TwoScale

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FAN_OUT: Final = 16  # of the paper's experiments
FAN_OUTS: Final = tuple(range(2, 65))
_DIGITS: Final = 10**6  # scales are rounded up to this denominator


@dataclass(frozen=True)
class Budget:
    """Shares of epsilon for S nodes and for H nodes, which add up to one."""

    ordered: float
    trees: float


def equation_15(values: int, theta: int, fan_out: int, *, whole: bool = True) -> tuple[float, Budget]:
    """Return the expected error of a range times epsilon squared, and the best shares: Equations 14 and 15.

    `whole` takes the height of a tree for the logarithm of theta, as it has to be; the paper prints the logarithm.
    """
    high = height(theta, fan_out) if whole else math.log(theta, fan_out)
    ordered = (4 * (values - theta) / (values + 1)) ** (1 / 3)
    trees = (8 * (fan_out - 1) * high**3 * values / (values + 1)) ** (1 / 3)
    return (ordered + trees) ** 3, Budget(ordered / (ordered + trees), trees / (ordered + trees))


def height(width: int, fan_out: int) -> int:
    """Return how many levels a tree has below its root.

    >>> height(16, 16), height(17, 16), height(1, 16)
    (1, 2, 0)
    """
    levels = 0
    while width > 1:
        width, levels = -(-width // fan_out), levels + 1
    return levels


@dataclass(frozen=True)
class OrderedHierarchical:
    """The ordered hierarchical mechanism, repaired or as `printed`.

    `share` is the part of epsilon for S nodes; without it the paper's best.
    """

    values: int
    theta: int
    fan_out: int = FAN_OUT
    printed: bool = False
    share: float | None = None

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return "as printed (invalid)" if self.printed else f"repaired, fan-out {self.fan_out}"

    @property
    def blocks(self) -> int:
        """How many blocks there are; the last may be short."""
        return -(-self.values // self.theta)

    @cached_property
    def levels(self) -> int:
        """How many levels the tree over a block has below its root."""
        return height(min(self.theta, self.values), self.fan_out)

    @cached_property
    def budget(self) -> Budget:
        """How epsilon is shared."""
        if self.blocks == 1:
            return Budget(0.0, 1.0)
        if not self.levels:
            return Budget(1.0, 0.0)
        if self.share is not None:
            return Budget(self.share, 1 - self.share)
        return equation_15(self.values, self.theta, self.fan_out, whole=not self.printed)[1]

    @cached_property
    def ends(self) -> IntArray:
        """Where blocks end, but for the last: the S nodes are the running counts there."""
        return np.arange(1, self.blocks, dtype=np.int64) * self.theta

    @cached_property
    def nodes(self) -> tuple[Level, ...]:
        """The levels of all trees together, without roots."""
        found: list[Level] = []
        starts = np.arange(0, self.values, self.theta)
        widths = np.minimum(self.theta, self.values - starts)
        while (widths > 1).any():
            level = Level.below(starts, widths, self.fan_out, self.values)
            found.append(level)
            starts, widths = level.starts, level.widths
        return tuple(found)

    def rates(self) -> tuple[Floats, Floats]:
        """Return one over the scale of each S node, and of the H nodes of each block, for epsilon = 1."""
        ordered = np.full(len(self.ends), self.budget.ordered)
        trees = np.full(self.blocks, self.budget.trees / (2 * self.levels) if self.levels else 0.0)
        if self.printed and self.levels:
            trees[0] = 1 / (2 * self.levels)
            ordered[:1] = trees[0]  # s_1 is the root of the first tree
        return ordered, trees

    def worst_loss(self, *, roots: bool = True) -> float:
        """Return the largest loss over all moves by at most theta, over epsilon; between blocks by trying all of them.

        `roots` says whether the printed version publishes the roots of the trees after the first.
        """
        return _worst_loss(self, roots)

    def variances(self, epsilon: Fraction) -> tuple[Floats, Floats]:
        """Return the variance of each S node, and of the H nodes of each block."""
        ordered, trees = self.rates()
        return _variances(ordered, epsilon), _variances(trees, epsilon)

    def mean_square(self, epsilon: Fraction) -> float:
        """Return the expected squared error of a range, over all ranges, from the variances of the nodes.

        A node that c of the |T| + 1 running counts (the first is 0) use is in the differences of c (|T| + 1 - c) pairs.
        """
        ordered, trees = self.variances(epsilon)
        of_s = np.diff(np.append(self.ends, self.values)).astype(np.float64)
        total = float((ordered * of_s * (self.values + 1 - of_s)).sum())
        last = self.values - (self.blocks - 1) * self.theta
        total += float(trees[:-1].sum()) * _used(self.theta, self.fan_out, self.values + 1)
        total += float(trees[-1]) * _used(last, self.fan_out, self.values + 1)
        return total / (self.values * (self.values + 1) / 2)

    def noise(self, epsilon: Fraction, runs: int) -> IntArray:
        """Draw the noise on the running counts of 0, 1, .., |T| values; the first and the last have none."""
        ordered, trees = self.rates()
        z = np.zeros((runs, self.values + 1), dtype=np.int64)
        if len(ordered):
            drawn = _drawn(ordered, epsilon, runs)
            z[:, self.theta : self.values] += np.repeat(drawn, self.theta, axis=1)[:, : self.values - self.theta]
        for level in self.nodes:
            drawn = _drawn(trees[level.starts // self.theta], epsilon, runs)
            before = np.cumsum(drawn, axis=1) - drawn
            before -= before[:, level.first]
            has_node = level.at >= 0
            z[:, :-1][:, has_node] += before[:, level.at[has_node]]
        return z


@dataclass(frozen=True, eq=False)
class Level:
    """One level of all trees: where its cells start and how wide they are.

    `first` is the first cell with the same parent, `at` the cell that each value is in (-1 where there is none).
    """

    starts: IntArray
    widths: IntArray
    first: IntArray
    at: IntArray

    @classmethod
    def below(cls, starts: IntArray, widths: IntArray, fan_out: int, values: int) -> Level:
        """Cut cells that are wider than one value into `fan_out` parts, the last ones shorter."""
        wide = widths > 1
        starts, widths = starts[wide], widths[wide]
        part = -(-widths // fan_out)
        many = -(-widths // part)
        parent = np.repeat(np.arange(len(starts)), many)
        first = np.repeat(np.cumsum(many) - many, many)
        number = np.arange(len(parent)) - first
        own = starts[parent] + number * part[parent]
        wide_as = np.minimum(part[parent], starts[parent] + widths[parent] - own)
        at = np.full(values, -1, dtype=np.int64)
        at[np.concatenate([np.arange(s, s + w) for s, w in zip(own, wide_as, strict=True)])] = np.repeat(
            np.arange(len(own)), wide_as
        )
        return cls(own, wide_as, first, at)


def best_fan_out(values: int, theta: int, fan_outs: tuple[int, ...] = FAN_OUTS) -> int:
    """Return the fan-out with the least expected error of a range."""
    one = Fraction(1)
    if theta == 1:
        return fan_outs[0]  # there are no trees
    return min(fan_outs, key=lambda fan_out: OrderedHierarchical(values, theta, fan_out).mean_square(one))


@dataclass(frozen=True)
class ConsistentTree:
    """A complete tree over the line with equal noise on all levels, made consistent by least squares.

    Plain differential privacy, as packages offer it. The number of people is public.
    """

    values: int
    fan_out: int

    def noise(self, epsilon: Fraction, runs: int) -> Floats:
        """Draw the error of the running counts of 0, 1, .., |T| values."""
        f, levels = self.fan_out, height(self.values, self.fan_out)
        scale = scale_of(1 / (2 * levels), epsilon)
        measured = [
            noise.discrete_laplace(scale, (runs, f**depth)).astype(np.float64) for depth in range(1, levels + 1)
        ]
        # upwards: the best estimate of a cell from its own noise and its descendants'
        best = measured[-1:]
        for tall, own in enumerate(reversed(measured[:-1]), start=2):
            below = best[0].reshape(runs, -1, f).sum(axis=2)
            best.insert(0, ((f**tall - f ** (tall - 1)) * own + (f ** (tall - 1) - 1) * below) / (f**tall - 1))
        # downwards: what is missing to the parent is shared out equally
        found = np.zeros((runs, 1))
        for own in best:
            cells = own.reshape(runs, -1, f)
            found = (cells + ((found - cells.sum(axis=2)) / f)[:, :, np.newaxis]).reshape(runs, -1)
        z = np.zeros((runs, self.values + 1))
        np.cumsum(found[:, : self.values], axis=1, out=z[:, 1:])
        z[:, -1] = 0.0  # the number of people is public
        return z


def scale_of(rate: float, epsilon: Fraction) -> Fraction:
    """Return a scale that can be drawn, not smaller than 1 / (rate epsilon) but for rounding of the rate."""
    return Fraction(math.ceil(_DIGITS / (rate * float(epsilon)) - 1e-6), _DIGITS)


def _variances(rates: Floats, epsilon: Fraction) -> Floats:
    """Return the variance of the noise of each rate; where there is no rate there is no node."""
    different, which = np.unique(rates, return_inverse=True)
    laws = [None if not rate else TwoScale(scale_of(rate, epsilon), scale_of(rate, epsilon)) for rate in different]
    return np.array([0.0 if law is None else law.variance() for law in laws])[which]


def _drawn(rates: Floats, epsilon: Fraction, runs: int) -> IntArray:
    """Draw noise for each rate, a line for each run."""
    drawn = np.zeros((runs, len(rates)), dtype=np.int64)
    for rate in np.unique(rates).tolist():
        own = rates == rate
        drawn[:, own] = noise.discrete_laplace(scale_of(rate, epsilon), (runs, int(own.sum())))
    return drawn


@cache
def _worst_loss(mechanism: OrderedHierarchical, roots: bool) -> float:  # noqa: FBT001 - behind a keyword
    ordered, trees = mechanism.rates()
    block = np.arange(mechanism.values) // mechanism.theta
    of_value, s_before = trees[block], np.concatenate([[0.0], np.cumsum(ordered)])[block]
    if mechanism.blocks == 1:
        return _loss_of_one_tree(mechanism, float(trees[0]))
    worst = 0.0
    for distance in range(1, min(mechanism.theta, mechanism.values - 1) + 1):
        low, high = slice(None, -distance), slice(distance, None)
        loss = s_before[high] - s_before[low]
        for level in mechanism.nodes:
            loss += _change(level.at[low], level.at[high], of_value[low], of_value[high])
        if mechanism.printed and roots and mechanism.levels:
            # the root of the first tree is s_1, which is counted already
            both = np.where(block[low] == 0, 0.0, of_value[low]) + of_value[high]
            loss += np.where(block[low] != block[high], both, 0.0)
        worst = max(worst, float(loss.max(initial=0.0)))
    return worst


def _loss_of_one_tree(mechanism: OrderedHierarchical, rate: float) -> float:
    """Return the loss of a single tree: the two deepest values under different children of the root."""
    if not mechanism.nodes:
        return 0.0
    depth = np.sum([level.at >= 0 for level in mechanism.nodes], axis=0)
    top = mechanism.nodes[0]
    deepest = np.sort(
        [int(depth[start : start + width].max()) for start, width in zip(top.starts, top.widths, strict=True)]
    )
    return rate * float(deepest[-2:].sum())


def _change(low: IntArray, high: IntArray, of_low: Floats, of_high: Floats) -> Floats:
    """Return the rates of the cells of one level that change when somebody moves."""
    return np.where(low != high, np.where(low >= 0, of_low, 0.0) + np.where(high >= 0, of_high, 0.0), 0.0)


@cache
def _used(width: int, fan_out: int, counts: int) -> float:
    """Return the sum of c (counts - c) over the cells of a tree without its root, c running counts use each."""
    if width <= 1:
        return 0.0
    part, total = -(-width // fan_out), 0.0
    for start, end in _parts(width, part):
        used = width - end
        total += used * (counts - used) + _used(end - start, fan_out, counts)
    return total


def _parts(width: int, part: int) -> Iterator[tuple[int, int]]:
    for start in range(0, width, part):
        yield start, min(start + part, width)
