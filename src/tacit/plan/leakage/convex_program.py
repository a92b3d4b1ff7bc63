"""The most weighted releases, or the largest weighted sum of epsilons, under convex limits on leakage.

Guarantee   `solve` and `solve_sum` return release probabilities that keep every limit by evaluation, and a number that
            nothing within the bounds and limits can exceed, whatever went on in the search. The gap of `solve_sum` is
            at most the tolerance unless `most_boxes` were not enough; it is reported either way.
Assumes     `informations`: each limit bounds a sum of convex functions, one for each line of release. For sums, every
            epsilon has a cap: without one the sum has no bound once one line may be released with certainty.
Why         For multipliers k >= 0, `sum gain u - sum k (sum g(u) - limit)` is at least the gain of everything that is
            allowed (weak duality). It is a sum over lines of concave functions; each lies below its tangent at any
            point, whose largest value between two bounds is at one of them. So one evaluation at any point and any
            multipliers gives a bound. A bound on the rounding of that evaluation is added. The search is a barrier
            method: Newton steps on `t gain u + sum log(what is left of limits and bounds)`, whose multipliers
            1 / (t what is left) make the two sides meet as t grows (Boyd and Vandenberghe, 11.3).
            With u = 1 - exp(-eps), the sum of epsilons is `- sum weight log(1 - u)`: convex in u, and what is allowed
            is a convex set. On a box of release probabilities a convex function lies below its chord, so the convex
            program with the chords' slopes bounds what can be reached in the box, and its answer is allowed. The box
            with the largest bound is cut where chord and function differ most; there the chord then touches. Boxes
            cover everything, so the largest bound among them is one for all. A second bound prices the limits and cuts
            each line into pieces; with many lines it is the closer one, since only few of them are between two choices.
            (In epsilons the limits are neither convex nor concave.)
Reference   Falk and Soland, An algorithm for separable nonconvex programming problems, Management Science 15 (1969).
            docs/decisions/0015-leakage.md.
Checked by  tests/unit/plan/test_leakage_program.py.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.plan.leakage.informations import ROUNDING, Mask, Terms

STEPS = 60  # Newton steps for one t; a dozen are enough
GROWTH = 30.0  # of t, from one centre to the next
AT_A_BOUND = 1e-6  # of the room between bounds, or of a limit: nearer counts as reached
CENTRED = 1e-8  # the square of the Newton decrement at which a point is central enough


@dataclass(frozen=True)
class Solved:
    """Release probabilities that are allowed, what they gain, and what nothing that is allowed can exceed."""

    u: Floats
    gain: float
    bound: float


@dataclass(frozen=True)
class ConvexProgram:
    """Gain for each line, informations, their limits, and the bounds of each release probability."""

    gain: Floats
    terms: Terms
    limits: Floats
    lower: Floats
    upper: Floats

    def is_allowed(self, u: Floats) -> bool:
        """Say whether release probabilities keep all limits, by evaluation."""
        return bool((self.terms.at(u) <= self.limits).all())

    def bound(self, u: Floats, multipliers: Floats) -> float:
        """Return what nothing that is allowed can gain: the tangents at `u` of the Lagrangian, with rounding."""
        value, slope = self.terms.with_slopes(u)
        steep = self.gain - multipliers @ slope
        reach = np.maximum(steep * (self.upper - u), steep * (self.lower - u))
        found = self.gain @ u - multipliers @ (value.sum(axis=1) - self.limits) + reach.sum()
        size = np.abs(self.gain) @ u + multipliers @ np.abs(self.limits) + np.abs(reach).sum()
        room = ROUNDING * (len(u) + len(multipliers) + 8) * size + multipliers @ self.terms.rounding(u)
        return float(found + room)


def solve(program: ConvexProgram, *, tolerance: float) -> Solved | None:
    """Return the best release probabilities within `tolerance`, or None if even the lower bounds keep no limit."""
    at_lower = program.terms.at(program.lower)
    if (at_lower > program.limits).any():
        return None
    most = float(program.gain @ program.upper)
    if program.is_allowed(program.upper):
        return Solved(program.upper, most, most)
    wide = program.upper > program.lower
    at_upper = program.terms.at(program.upper)
    tight = at_upper > program.limits  # any other limit holds whatever is released
    slack, rise = (program.limits - at_lower)[tight], (at_upper - at_lower)[tight]
    if not wide.any() or (slack <= 0).any():
        return Solved(program.lower, float(program.gain @ program.lower), most)
    # a convex function along a line lies below its chord: half of the way to where the first chord meets its limit
    start = program.lower + 0.5 * float(np.min(slack / rise)) * (program.upper - program.lower)
    inner = _Inner(program, wide, tight)
    u = program.lower.copy()
    u[wide], found = inner.follow(start[wide], tolerance)
    multipliers = np.zeros(len(tight))
    multipliers[tight] = found
    bounds = [program.bound(u, one) for one in (multipliers, _fitted(program, u))]
    return _moved_inside(program, _without_traces(program, u, tolerance), min(most, *bounds))


def _fitted(program: ConvexProgram, u: Floats) -> Floats:
    """Return multipliers that leave the least slope where a release probability is at neither of its bounds.

    At the end of the search what is left of a limit has few digits, and so has its multiplier; slopes have all of them.
    """
    width = program.upper - program.lower
    inside = np.minimum(u - program.lower, program.upper - u) > AT_A_BOUND * width
    _, slope = program.terms.with_slopes(u)
    multipliers = np.zeros(len(program.limits))
    left = program.limits - program.terms.at(u)
    tight = left <= AT_A_BOUND * np.maximum(program.limits, left)
    if inside.any() and tight.any():
        from scipy.optimize import nnls  # takes a while to load, and most commands never plan

        with suppress(RuntimeError):  # too many steps: any multipliers give a bound, these a poor one
            multipliers[tight] = nnls(slope[np.ix_(tight, inside)].T, program.gain[inside])[0]
    return multipliers


def _without_traces(program: ConvexProgram, u: Floats, tolerance: float) -> Floats:
    """Return the point with what the barrier alone keeps off its lower bound put there, where that costs nothing."""
    near = u - program.lower <= AT_A_BOUND * (program.upper - program.lower)
    lost = float((program.gain * (u - program.lower))[near].sum())
    return np.where(near, program.lower, u) if lost <= 0.5 * tolerance else u


def _moved_inside(program: ConvexProgram, u: Floats, bound: float) -> Solved:
    """Return an allowed point near `u`: rounding may have put it a hair outside."""
    back = 0.0
    while back < 1.0 and not program.is_allowed(u + back * (program.lower - u)):
        back = 2.0 * back or 1e-15
    u = program.lower if back >= 1.0 else u + back * (program.lower - u)
    return Solved(u, float(program.gain @ u), bound)


class _Inner:
    """The barrier method on the lines whose bounds leave room, and the limits that can be met."""

    def __init__(self, program: ConvexProgram, wide: Mask, tight: Mask) -> None:
        self._gain = program.gain[wide]
        self._lower, self._upper = program.lower[wide], program.upper[wide]
        self._terms = program.terms.part(tight, wide)
        self._limits = program.limits[tight] - program.terms.part(tight, ~wide).at(program.lower[~wide])
        self._size = len(self._limits) + 2 * len(self._gain)

    def follow(self, u: Floats, tolerance: float) -> tuple[Floats, Floats]:
        """Return the last centre and its multipliers."""
        scale = float(np.abs(self._gain) @ (self._upper - self._lower)) or 1.0
        t = self._size / scale
        u = self._centred(u, t)
        while self._size / t > 0.25 * tolerance:
            t *= GROWTH
            u = self._centred(u, t)
        return u, 1.0 / (t * (self._limits - self._terms.at(u)))

    def _centred(self, u: Floats, t: float) -> Floats:
        for _ in range(STEPS):
            gradient, pull, stiff = self._shape(u, t)
            try:
                step: Floats = np.linalg.solve(np.diag(stiff) + pull.T @ pull, gradient).astype(np.float64)
            except np.linalg.LinAlgError:
                break  # near the end, lines that tell the same are the same after rounding: no step is better
            rate = float(gradient @ step)
            if not np.isfinite(rate) or rate <= CENTRED:
                break
            moved = self._searched(u, step, rate, t)
            if moved is None:
                break
            u = moved
        return u

    def _shape(self, u: Floats, t: float) -> tuple[Floats, Floats, Floats]:
        """Return the gradient of the barrier, and the two parts of its curvature."""
        value, slope, curvature = self._terms.with_curvatures(u)
        left = self._limits - value.sum(axis=1)
        below, above = u - self._lower, self._upper - u
        pull = slope / left[:, None]
        gradient = t * self._gain - pull.sum(axis=0) + 1.0 / below - 1.0 / above
        return gradient, pull, (curvature / left[:, None]).sum(axis=0) + below**-2.0 + above**-2.0

    def _searched(self, u: Floats, step: Floats, rate: float, t: float) -> Floats | None:
        """Return a point along a step that is not far beyond the top, or None if rounding hides where that is.

        Slopes are compared, not heights: near the end a height has too few digits to tell two points apart.
        """
        room = np.where(step > 0, (self._upper - u) / np.where(step > 0, step, 1.0), np.inf)
        room = np.minimum(room, np.where(step < 0, (self._lower - u) / np.where(step < 0, step, -1.0), np.inf))
        length = min(1.0, 0.99 * float(room.min()))
        while length > 1e-13:
            there = u + length * step
            inside = (there > self._lower).all() and (there < self._upper).all()
            if inside and (self._terms.at(there) < self._limits).all():
                gradient, _, _ = self._shape(there, t)
                if float(gradient @ step) >= -0.5 * rate:
                    return there
            length *= 0.5
        return None


PIECES = 200  # of a line, where limits are priced
PRICE_STEPS = 60
MOST_PRICE = 1e15
CLIMBS = 8  # steps from an allowed point to a better one
NEAR_AN_END = 0.02  # of a box: a cut nearer to its end than this is moved to the middle


def where_it_ends(fits: Callable[[Any], Any], low: Any, high: Any, halvings: int) -> tuple[Any, Any]:
    """Return the last number that was seen to fit and the first that was not; arrays are searched all at once."""
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        fit = fits(middle)
        low, high = np.where(fit, middle, low), np.where(fit, high, middle)
    return low, high


def around_the_least(bound: Callable[[float], float], low: float, high: float, steps: int) -> tuple[float, float]:
    """Return two prices with the least of a convex bound between them; `high` is where the search for it begins."""
    while bound(2 * high) < bound(high) and high < MOST_PRICE:
        high *= 2
    high *= 2
    for _ in range(steps):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if bound(left) <= bound(right) else (left, high)
    return low, high


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
        ends, costs = [], []
        for low, high in pairwise(cuts):
            middle = 0.5 * (low + high)
            value, slope = program.terms.with_slopes(middle)
            ends += [low, high]
            costs += [value + slope * (end - middle) for end in (low, high)]
        worth = weights[:, None] * epsilons(np.stack(ends, axis=1))
        return cls(program.limits, np.stack(ends, axis=1), worth, np.stack(costs, axis=2))

    def bound(self, prices: Floats) -> float:
        """Return what nothing that is allowed can exceed (weak duality), with room for rounding."""
        each = (self.worth - np.tensordot(prices, self.costs, axes=1)).max(axis=1)
        found = float(prices @ self.limits + each.sum())
        return found + ROUNDING * 64 * (abs(found) + float(prices @ self.limits) + float(self.worth.max(axis=1).sum()))

    def bought(self, prices: Floats) -> Floats:
        """Return the release probabilities that are worth most at these prices."""
        at = (self.worth - np.tensordot(prices, self.costs, axes=1)).argmax(axis=1)
        return np.asarray(self.ends[np.arange(len(self.ends)), at])

    def common_price(self) -> tuple[float, Floats, Floats]:
        """Return the least bound with one price for every limit, and what is bought a little below and above it."""
        ones = np.ones(len(self.limits))
        low, high = around_the_least(lambda price: self.bound(price * ones), 0.0, 1.0, PRICE_STEPS)
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
