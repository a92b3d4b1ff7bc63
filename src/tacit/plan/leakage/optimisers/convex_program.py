"""The convex program: the most weighted releases under limits on leakage, with a certificate.

Guarantee   `solve` returns release probabilities that keep every limit by evaluation, and a number that no release
            probabilities within the bounds and limits can exceed, whatever went on in the search.
Assumes     `convex_terms`: each limit bounds a sum of convex functions, one for each line of release.
Why         For multipliers k >= 0, `sum gain u - sum k (sum g(u) - limit)` is at least the gain of everything that is
            allowed (weak duality). It is a sum over lines of concave functions; each lies below its tangent at any
            point, whose largest value between two bounds is at one of them. So one evaluation at any point and any
            multipliers gives a bound. A bound on the rounding of that evaluation is added. The search is a barrier
            method: Newton steps on `t gain u + sum log(what is left of limits and bounds)`, whose multipliers
            1 / (t what is left) make the two sides meet as t grows (Boyd and Vandenberghe, 11.3).
Reference   docs/decisions/0015-leakage.md.
Checked by  tests/unit/plan/test_leakage_program.py.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.plan.leakage.measures.convex_terms import ROUNDING, Mask, Terms

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
    return _kept_inside(program, _without_traces(program, u, tolerance), min(most, *bounds))


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


def _kept_inside(program: ConvexProgram, u: Floats, bound: float) -> Solved:
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
        self._terms = program.terms.kept(tight, wide)
        self._limits = program.limits[tight] - program.terms.kept(tight, ~wide).at(program.lower[~wide])
        self._size = len(self._limits) + 2 * len(self._gain)

    def follow(self, u: Floats, tolerance: float) -> tuple[Floats, Floats]:
        """Return the last centre and its multipliers."""
        scale = float(np.abs(self._gain) @ (self._upper - self._lower)) or 1.0
        t = self._size / scale
        while True:
            u = self._centred(u, t)
            if self._size / t <= 0.25 * tolerance:
                break
            t *= GROWTH
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
