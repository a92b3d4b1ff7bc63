"""What least squares knows about a tree of measured cells, for each kind of node.

All nodes of one size and with the same number of values are alike, so there are few kinds: the full ones, and what is
left over at the ends of larger ones. In a node, given its total, let S be the sum of the variances v of its children's
totals. A child's total then has the share v/S of the node's, and the covariance of two children is v - v^2/S on the
diagonal and -v v'/S elsewhere. With W, the sum of v before some place in the node (within a child by its own shares):

* the running count at that place has the share s = W/S of the node's total;
* two of them, at W <= W', have the covariance W (S - W')/S, plus what is inside of a child that has both;
* the *ramp*, the sum of all running counts in the node, counts each child's total k times: once for each later value,
  and by the child's own shares inside of it. Its covariance with a running count is h = sum of v k before the place,
  minus s times Q, the sum of v k over the node.

Sums of s, h and their products over all places of a node follow from those of its children, on which they depend
linearly. From them come all average errors (`plan/measure/lines/run_errors.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.plan.measure.lines.layout import LineLayout

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NodeClass:
    """A node with so many values; a sum over places runs over all running counts that end in it."""

    values: int
    variance: float  # of its total, from all cells in it and its own
    children: float = math.inf  # S, the sum of the variances of its children's totals
    ramp_weight: float = 0.0  # Q, the sum over children of variance times k
    s: float = 1.0  # sum of s over places; the share of the node's total in its ramp
    ss: float = 1.0
    h: float = 0.0  # sum of h over places; the variance of the ramp given the total
    sh: float = 0.0
    hh: float = 0.0
    within: float = 0.0  # sum of the variances of running counts given the total
    # of single values, the differences of running counts: sums of products of their s and h, and of their variances
    step_ss: float = 1.0
    step_sh: float = 0.0
    step_hh: float = 0.0
    step_within: float = 0.0


class BlockTree:
    """The kinds of nodes of a layout whose cells have noise of these variances."""

    def __init__(self, layout: LineLayout, variances: Sequence[float]) -> None:
        self.sizes = layout.node_sizes
        own = dict(zip(layout.cells, variances, strict=False))
        self._own = [own.get(size, math.inf) for size in self.sizes]
        self._kinds: list[dict[int, NodeClass]] = [{} for _ in self.sizes]

    def kind(self, level: int, values: int) -> NodeClass:
        """Return the kind of a node of some level with so many values."""
        known = self._kinds[level]
        if values not in known:
            known[values] = self._made(level, values)
        return known[values]

    def numbers(self, level: int, lengths: npt.NDArray[np.int64], name: str) -> Floats:
        """Return a number of the kind of each node."""
        out = np.full(lengths.shape, getattr(self.kind(level, self.sizes[level]), name), dtype=np.float64)
        rest = lengths != self.sizes[level]
        if rest.any():
            every, which = np.unique(lengths[rest], return_inverse=True)
            out[rest] = np.array([getattr(self.kind(level, int(one)), name) for one in every])[which]
        return out

    def _made(self, level: int, values: int) -> NodeClass:
        own = self._own[level]
        if self.sizes[level] == 1:
            return NodeClass(values, own)
        size = self.sizes[level + 1]
        full, left = divmod(values, size)
        child = self.kind(level + 1, size if full else left)
        last = self.kind(level + 1, left) if full and left else None
        full = full or 1
        # k of the j-th full child is k0 - size * j; of the last one, which is smaller, its own s
        v, k0 = child.variance, child.s + values - child.values
        total = full * v + (last.variance if last else 0.0)
        in_full = v * (k0 * full - size * full * (full - 1) / 2)
        weight = in_full + (last.variance * last.s if last else 0.0)
        share, mean = v / total, weight / total
        many = _ChildSums(
            child, share, share, v * (k0 + size / 2 - mean), -v * size / 2, v * (k0 - mean), -v * size, _powers(full)
        )
        sums = many.sums(v, total)
        if last:
            w = last.variance
            at_end = in_full / full - share * weight  # for each of the full children before
            powers = [float(full) ** power for power in range(5)]
            one = _ChildSums(last, share, w / total, at_end, 0.0, w * (last.s - mean), 0.0, powers)
            sums = [a + b for a, b in zip(sums, one.sums(v, total), strict=True)]
        variance = total if own == math.inf else total * own / (total + own)
        return NodeClass(values, variance, total, weight, *sums)


@dataclass(frozen=True)
class _ChildSums:
    """What like children add to the sums of their node; `powers` are the sums over them of j^0 to j^4.

    A place that has s and h in the j-th child has a0 j + a1 s and h + (b1 j + b2 j^2) + (c0 + c1 j) s in the node.
    """

    child: NodeClass
    a0: float
    a1: float
    b1: float
    b2: float
    c0: float
    c1: float
    powers: Sequence[float]

    def sums(self, before: float, total: float) -> list[float]:
        """Return the sums in the order of a kind; `before` is the variance of a full child, `total` that of all."""
        child, a0, a1, v = self.child, self.a0, self.a1, self.child.variance
        n, s, ss, h, sh = child.values, child.s, child.ss, child.h, child.sh
        p0, p1, p2, p3, p4 = self.powers
        b = self.b1 * p1 + self.b2 * p2
        jb = self.b1 * p2 + self.b2 * p3
        bb = self.b1**2 * p2 + 2 * self.b1 * self.b2 * p3 + self.b2**2 * p4
        c = self.c0 * p0 + self.c1 * p1
        jc = self.c0 * p1 + self.c1 * p2
        cc = self.c0**2 * p0 + 2 * self.c0 * self.c1 * p1 + self.c1**2 * p2
        bc = self.b1 * jc + self.b2 * (self.c0 * p2 + self.c1 * p3)
        through = before**2 * p2 * n + 2 * before * v * p1 * s + v**2 * p0 * ss
        return [
            a0 * p1 * n + a1 * p0 * s,
            a0**2 * p2 * n + 2 * a0 * a1 * p1 * s + a1**2 * p0 * ss,
            p0 * h + b * n + c * s,
            a0 * (p1 * h + jb * n + jc * s) + a1 * (p0 * sh + b * s + c * ss),
            p0 * child.hh + bb * n + cc * ss + 2 * (b * h + c * sh + bc * s),
            p0 * child.within + before * p1 * n + v * p0 * ss - through / total,
            a1**2 * p0 * child.step_ss,
            a1 * (p0 * child.step_sh + c * child.step_ss),
            p0 * child.step_hh + 2 * c * child.step_sh + cc * child.step_ss,
            p0 * (child.step_within + child.step_ss * (v - v**2 / total)),
        ]


def _powers(many: int) -> list[float]:
    """Return the sums of j^0 to j^4 over j below a number."""
    n = float(many)
    last = n - 1
    return [
        n,
        n * last / 2,
        n * last * (2 * n - 1) / 6,
        (n * last / 2) ** 2,
        n * last * (2 * n - 1) * (3 * n * n - 3 * n - 1) / 30,
    ]
