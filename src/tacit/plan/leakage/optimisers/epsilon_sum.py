"""The largest weighted sum of epsilons under limits on leakage, found globally, with a certified gap.

Guarantee   `solve_sum` returns release probabilities that keep every limit by evaluation, and a bound that no allowed
            sum of epsilons exceeds. The gap between the two is at most the tolerance unless `most_boxes` were not
            enough; it is reported either way.
Assumes     Every epsilon has a cap. Without one the sum has no bound once one line may be released with certainty.
Why         With u = 1 - exp(-eps), the sum is `- sum weight log(1 - u)`: convex in u, and what is allowed is a convex
            set. On a box of release probabilities a convex function lies below its chord, so the convex program with
            the chords' slopes bounds what can be reached in the box, and its answer is allowed. The box with the
            largest bound is cut where chord and function differ most; there the chord then touches. Boxes cover
            everything, so the largest bound among them is one for all. A second bound prices the limits and cuts
            each line into pieces; with many lines it is the closer one, since only few of them are between two choices.
            (In epsilons the limits are neither convex nor concave.)
Reference   Falk and Soland, An algorithm for separable nonconvex programming problems, Management Science 15 (1969).
Checked by  tests/unit/plan/test_leakage_program.py.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tacit.arrays import Floats
from tacit.plan.leakage.measures.convex_terms import ROUNDING
from tacit.plan.leakage.optimisers.convex_program import ConvexProgram, Solved, solve

PIECES = 200  # of a line, where limits are priced
PRICE_STEPS = 60
CLIMBS = 8  # steps from an allowed point to a better one
NEAR_AN_END = 0.02  # of a box: a cut nearer to its end than this is moved to the middle


def epsilons(u: Floats) -> Floats:
    """Return the epsilon of each release probability."""
    return -np.log1p(-u)


def solve_sum(program: ConvexProgram, *, tolerance: float, most_boxes: int) -> Solved:
    """Return the largest sum of `gain` times epsilon. Bounds of the program are release probabilities below 1."""
    weights, count = program.gain, itertools.count()
    best = program.lower
    queue: list[tuple[float, int, ConvexProgram, Floats]] = []
    settled = -np.inf  # the largest bound among boxes that are no longer looked at

    def value(u: Floats) -> float:
        return float(weights @ epsilons(u))

    def look(box: ConvexProgram) -> None:
        nonlocal best, settled
        bound, u = _chords(box, weights, tolerance)
        if u is None:
            return
        if value(u) > value(best) - tolerance * 10 or not queue:
            u_up = _climbed(program, weights, u, tolerance)
            best = max(best, u, u_up, key=value)
        if bound <= value(best) + tolerance:
            settled = max(settled, bound)
        else:
            heapq.heappush(queue, (-bound, next(count), box, u))

    priced = _Priced.of(program, weights)
    at_most, *starts = priced.common_price()
    for start in filter(program.is_allowed, starts):
        best = max(best, _climbed(program, weights, start, tolerance), key=value)
    look(program)
    boxes = 1
    while queue and boxes < most_boxes:
        bound, _, box, u = heapq.heappop(queue)
        if -bound <= value(best) + tolerance:
            settled = max(settled, -bound)
            continue
        for part in _cut(box, weights, u):
            look(part)
            boxes += 1
    reached = value(best)
    by_boxes = max([reached, settled, *(-bound for bound, *_ in queue)])
    return Solved(best, reached, max(reached, min(by_boxes, at_most)))


@dataclass(frozen=True)
class _Priced:
    """Lines cut into pieces; at the ends of each, epsilons are no less and informations no more than they are on it.

    On a piece the convex sum lies below its chord, and a convex information above its tangent in the middle. So for any
    prices of the limits, what a line is worth less what it costs is at most the largest number at an end of its pieces.
    """

    limits: Floats
    ends: Floats  # (lines, ends)
    worth: Floats  # (lines, ends)
    costs: Floats  # (limits, lines, ends)

    @classmethod
    def of(cls, program: ConvexProgram, weights: Floats) -> _Priced:
        """Cut all lines, evenly in epsilon."""
        top = epsilons(program.upper)
        cuts = [-np.expm1(-top * share) for share in np.linspace(0, 1, PIECES + 1)]
        ends, worth, costs = [], [], []
        for low, high in pairwise(cuts):
            middle = 0.5 * (low + high)
            value, slope = program.terms.with_slopes(middle)
            for end in (low, high):
                ends.append(end)
                worth.append(weights * epsilons(end))
                costs.append(value + slope * (end - middle))
        return cls(program.limits, np.stack(ends, axis=1), np.stack(worth, axis=1), np.stack(costs, axis=2))

    def bound(self, prices: Floats) -> float:
        """Return what nothing that is allowed can exceed (weak duality), with room for rounding."""
        each = (self.worth - np.tensordot(prices, self.costs, axes=1)).max(axis=1)
        found = float(prices @ self.limits + each.sum())
        return found + ROUNDING * 64 * (abs(found) + float(prices @ self.limits) + float(self.worth.max(axis=1).sum()))

    def bought(self, prices: Floats) -> Floats:
        """Return the release probabilities that are worth most at these prices."""
        at = (self.worth - np.tensordot(prices, self.costs, axes=1)).argmax(axis=1)
        found: Floats = self.ends[np.arange(len(self.ends)), at]
        return found

    def common_price(self) -> tuple[float, Floats, Floats]:
        """Return the least bound with one price for every limit, and what is bought a little below and above it."""
        ones = np.ones(len(self.limits))
        low, high = 0.0, 1.0
        while self.bound(2 * high * ones) < self.bound(high * ones) and high < 1e12:
            high *= 2
        high *= 2
        for _ in range(PRICE_STEPS):  # the bound is convex in the price
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if self.bound(left * ones) <= self.bound(right * ones) else (left, high)
        return self.bound(0.5 * (low + high) * ones), self.bought(low * ones), self.bought(high * 1.0001 * ones)


def _chords(box: ConvexProgram, weights: Floats, tolerance: float) -> tuple[float, Floats | None]:
    """Return a bound on what a box can reach, and an allowed point of it, or None if it has none."""
    low, high = epsilons(box.lower), epsilons(box.upper)
    width = box.upper - box.lower
    slope = weights * np.where(width > 0, (high - low) / np.where(width > 0, width, 1.0), 0.0)
    solved = solve(replace(box, gain=slope), tolerance=0.1 * tolerance)
    if solved is None:
        return -np.inf, None
    base = float(weights @ low - slope @ box.lower)
    return base + solved.bound, solved.u


def _cut(box: ConvexProgram, weights: Floats, u: Floats) -> tuple[ConvexProgram, ConvexProgram]:
    """Return the two parts of a box, cut where chord and function differ most."""
    low, high = epsilons(box.lower), epsilons(box.upper)
    width = box.upper - box.lower
    share = np.where(width > 0, (u - box.lower) / np.where(width > 0, width, 1.0), 0.0)
    apart = weights * (low + share * (high - low) - epsilons(u))
    line = int(np.argmax(apart))
    at = u[line]
    if not NEAR_AN_END < share[line] < 1 - NEAR_AN_END:
        at = box.lower[line] + 0.5 * width[line]
    below, above = box.upper.copy(), box.lower.copy()
    below[line] = above[line] = at
    return replace(box, upper=below), replace(box, lower=above)


def _climbed(program: ConvexProgram, weights: Floats, u: Floats, tolerance: float) -> Floats:
    """Return an allowed point that is no worse: a convex function lies above its tangent, which is maximised."""
    for _ in range(CLIMBS):
        solved = solve(replace(program, gain=weights / (1.0 - u)), tolerance=0.1 * tolerance)
        if solved is None or weights @ epsilons(solved.u) <= weights @ epsilons(u) + tolerance:
            break
        u = solved.u
    return u
