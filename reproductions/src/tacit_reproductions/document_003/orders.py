"""Section 7 of document 003: what it says about orders of magnitude, tried on lines of growing length."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np

from tacit.noise.two_scale import TwoScale
from tacit.release.estimate.projections import increasing
from tacit_reproductions.document_003.ordered import FAN_OUT, OrderedHierarchical, height
from tacit_reproductions.results import Claim, about, check, spread

_ONE: Final = Fraction(1)
_LENGTHS: Final = (2**8, 2**10, 2**12, 2**14, 2**16)
_SHORT: Final = (2**6, 2**8, 2**10, 2**12)
_SAME: Final = 1.1  # what counts as the same number, as a factor


def order_claims(runs: int) -> list[Claim]:
    """Return what section 7 says without numbers; `runs` draws of running counts."""
    return [*_crossing(), *_rising(runs), _complexity()]


def _crossing() -> list[Claim]:
    """Judge where the ordered mechanism, with noise of scale theta on all counts, becomes worse than a tree."""
    # noise of scale theta has theta^2 times as much; whole-number noise of scale 1 a little less than the paper's
    less = TwoScale(_ONE, _ONE).variance() / 2
    plain = {values: OrderedHierarchical(values, 1).mean_square(_ONE) / less for values in _LENGTHS}
    tree = {values: OrderedHierarchical(values, values, 2).mean_square(_ONE) for values in _LENGTHS}
    crossing = [math.sqrt(tree[values] / plain[values]) for values in _LENGTHS]
    logs = [math.log2(values) for values in _LENGTHS]
    over = [theta / log**1.5 for theta, log in zip(crossing, logs, strict=True)]
    at_log = [plain[values] * log**2 / tree[values] for values, log in zip(_LENGTHS, logs, strict=True)]
    run = "exact expectations, noise of theta times the scale against a binary tree; no data"
    return [
        Claim(
            "section 7.2",
            f"theta from which the ordered mechanism is worse than a tree, {_LENGTHS[0]:,} to {_LENGTHS[-1]:,} values",
            run,
            "of the order of log^1.5 of the number of values",
            f"{', '.join(f'{one:.1f}' for one in crossing)}: {spread(over, '{:.2f}'.format)} times that (base 2)",
            (about("that ratio beside the next", [b / a for a, b in pairwise(over)], 1, _SAME),),
        ),
        Claim(
            "section 7.2",
            "error of the ordered mechanism over the tree's where theta is the logarithm of the number of values",
            run,
            "comparable",
            f"{spread(at_log, '{:.3f}'.format)} times (base 2), the less the longer the line",
            (about("that ratio", at_log, 1, 2),),
            "errors grow as theta^2, and the tree's as log^3",
        ),
    ]


def _rising(runs: int) -> list[Claim]:
    """Judge the error after counts are made to rise, for p different counts: one, or as many as there are values."""
    found = {}
    for many in ("one", "all"):
        totals = []
        for values in _SHORT:
            counts = np.full(values, 1000) if many == "all" else np.eye(1, values, dtype=np.int64)[0] * 1000 * values
            running, last = np.cumsum(counts), np.arange(values) == values - 1
            drawn = OrderedHierarchical(values, 1).noise(_ONE, runs)[:, 1:]
            made = [increasing(running + one * 1.0, last, running[-1:].astype(np.float64)) for one in drawn]
            totals.append(float(((np.stack(made) - running) ** 2).sum(axis=1).mean()))
        found[many] = totals
    over = [total / math.log(values) ** 3 for total, values in zip(found["one"], _SHORT, strict=True)]
    each = [total / values for total, values in zip(found["all"], _SHORT, strict=True)]
    run = f"repaired mechanism, {runs:,} runs of made-up counts on {_SHORT[0]} to {_SHORT[-1]:,} values"
    return [
        Claim(
            "section 7.1",
            "total squared error after counts were made to rise, all people at one value (p = 1)",
            run,
            "at most of the order of log^3 of the number of values",
            f"{', '.join(f'{one:.2f}' for one in found['one'])}: {spread(over, '{:.3f}'.format)} times that",
            (check("that ratio beside the next shorter line's", [b / a for a, b in pairwise(over)], "at most", 1.0),),
        ),
        Claim(
            "section 7.1",
            "the same with people at every value (p is the number of values)",
            run,
            "of the order of the number of values",
            f"{spread(each, '{:.2f}'.format)} for each value",
            (about("that beside the next", [b / a for a, b in pairwise(each)], 1, _SAME),),
        ),
    ]


def _complexity() -> Claim:
    """Judge how many nodes a structure has, and how many of them a range needs."""
    values = _LENGTHS[2]
    nodes, used, allowed = [], [], []
    for theta in (1, 16, 128, 1024, values):
        one = OrderedHierarchical(values, theta, FAN_OUT)
        nodes.append((len(one.ends) + sum(len(level.starts) for level in one.nodes)) / values)
        # a running count is an S node and the cells before its own, level by level
        of_count = np.ones(values, dtype=np.int64)
        for level in one.nodes:
            of_count += np.where(level.at >= 0, level.at - level.first[level.at], 0)
        used.append(2 * int(of_count.max()))
        allowed.append(2 * (1 + (FAN_OUT - 1) * height(theta, FAN_OUT)))
    return Claim(
        "section 7.2",
        f"nodes that are made, and nodes that a range needs, {values:,} values, theta 1, 16, 128, 1,024, all",
        f"the repaired mechanism's structure, fan-out {FAN_OUT}, counted; no data",
        "O(values) and O(log theta)",
        f"{', '.join(f'{one:.2f}' for one in nodes)} for each value; {', '.join(map(str, used))}",
        (
            check("nodes for each value", nodes, "at most", 1 + 1 / (FAN_OUT - 1) + 1),
            check("nodes of a range, beside 2 (1 + 15 levels),", used, "at most", allowed),
        ),
    )
