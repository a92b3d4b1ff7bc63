"""The best release probabilities under limits on joint informations, on boxes whose bounds close with their square.

Guarantee   `solve_curved` returns an allowed point, no worse than the one it was given, and a bound that no allowed
            point exceeds. The gap is at most the tolerance unless `most_boxes` were not enough; it is reported.
Assumes     Gains are convex in each release probability and add up. Informations rise and are convex in each by itself
            (`joint_terms`), with mixed derivatives of at most M on a box (`mixed_slopes`).
Why         Let c be the middle of a box. Going from c to x one line after the other, each step is at least its tangent,
            whose slope has changed by at most the sum of M times the steps before. So an information is at least its
            tangent plane at c less M times a quarter of both widths, summed over pairs. Gains lie below their chords.
            The most that chords reach below one such plane is a linear program with one constraint: lines are taken in
            the order of what they are worth for what they cost. Slopes lie between those of two short chords on either
            side of c, by convexity; half of their difference times half of the width is taken off.
Reference   Adjiman and others, A global optimization method for general constrained nonconvex problems (1998).
Checked by  tests/unit/plan/test_leakage_curved.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.plan.leakage.measures.joint_terms import JointLimit
from tacit.plan.leakage.optimisers.convex_program import Solved
from tacit.plan.leakage.optimisers.mixed_slopes import largest_mixed

AT_ONCE = 64
ROUNDS = 120
TRIED = 1  # box of each round in which an allowed point is looked for
STEP = 1e-5  # of the short chords
ROUNDING = 1e-13  # of an information
HALVINGS = 36


@dataclass(frozen=True)
class Curved:
    """Gains, joint informations with their limits, and upper bounds of a few release probabilities."""

    gain: Callable[[Floats], Floats]  # (points, lines) -> (points, lines)
    joint: Sequence[JointLimit]
    limits: Floats
    upper: Floats

    def is_allowed(self, u: Floats) -> bool:
        """Say whether one point keeps all limits, by evaluation."""
        return all(one.at(u[None])[0] <= most for one, most in zip(self.joint, self.limits, strict=True))

    def bounds(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return what nothing that is allowed in each box exceeds, and where the linear program has it."""
        base, steep = self.gain(low), self.gain(high) - self.gain(low)  # for the whole width
        found, best = base.sum(axis=1) + steep.sum(axis=1), high
        for joint, most in zip(self.joint, self.limits, strict=True):
            room, cost = self._plane(joint, most, low, high)
            bound, share = _packed(steep, cost, room)
            less = base.sum(axis=1) + bound < found
            found = np.where(less, base.sum(axis=1) + bound, found)
            best = np.where(less[:, None], low + share * (high - low), best)
        return found, best

    def _plane(self, joint: JointLimit, most: float, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return what a limit leaves at `low`, and what going to `high` takes of it at least, for each line."""
        middle, width = 0.5 * (low + high), high - low
        boxes, lines = low.shape
        step = np.minimum(STEP, 0.25 * width)
        units = np.eye(lines)
        points = [middle, *(middle + step * unit for unit in units), *(middle - step * unit for unit in units)]
        values = joint.at(np.concatenate(points)).reshape(2 * lines + 1, boxes)
        at, after, before = values[0], values[1 : lines + 1].T, values[lines + 1 :].T
        safe = np.where(step > 0, step, 1.0)
        above = np.where(step > 0, (after - at[:, None] + ROUNDING) / safe, 0.0)
        below = np.where(step > 0, (at[:, None] - before - ROUNDING) / safe, 0.0)
        slope = 0.5 * (above + below)
        apart = (0.25 * np.abs(above - below) * width).sum(axis=1)
        for first, second in itertools.combinations(range(lines), 2):
            area = width[:, first] * width[:, second]
            mixed = largest_mixed(joint, first, second, low, high)
            apart = apart + np.where(area > 0, 0.25 * np.where(area > 0, mixed, 0.0) * area, 0.0)
        room = most - at + ROUNDING + 0.5 * (slope * width).sum(axis=1) + apart
        return room, slope * width


def solve_curved(problem: Curved, start: Solved, *, tolerance: float, most_boxes: int) -> Solved:
    """Return the best allowed point and a bound on all of them."""
    best, reached = start.u, start.gain
    low, high = np.zeros((1, len(problem.upper))), problem.upper[None].copy()
    bounds = np.array([start.bound])
    settled, looked = -np.inf, 0
    for _ in range(ROUNDS):
        if looked >= most_boxes:
            break
        done = bounds <= reached + tolerance
        settled = max(settled, float(bounds[done].max(initial=-np.inf)))
        low, high, bounds = low[~done], high[~done], bounds[~done]
        order = np.argsort(-bounds)
        now, later = order[:AT_ONCE], order[AT_ONCE:]
        if not len(now):
            break
        left, right = _halved(problem, low[now], high[now])
        found, points = problem.bounds(left, right)
        found = np.minimum(found, np.tile(bounds[now], 2))
        looked += len(left)
        for at in np.argsort(-found)[:TRIED]:
            there = _raised(problem, points[at])
            value = float(problem.gain(there[None]).sum())
            if value > reached:
                best, reached = there, value
        low, high = np.concatenate([low[later], left]), np.concatenate([high[later], right])
        bounds = np.concatenate([bounds[later], found])
    return Solved(best, reached, max(reached, settled, float(bounds.max(initial=-np.inf))))


def _packed(steep: Floats, cost: Floats, room: Floats) -> tuple[Floats, Floats]:
    """Return the most that shares of lines gain in all while their costs stay within the room, and the shares."""
    prices = np.where(cost > 0, steep / np.where(cost > 0, cost, 1.0), np.inf)
    order = np.argsort(-prices, axis=1)
    dear, worth = np.take_along_axis(cost, order, axis=1), np.take_along_axis(steep, order, axis=1)
    before = np.cumsum(np.maximum(dear, 0.0), axis=1) - np.maximum(dear, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(dear > 0, np.clip((room[:, None] - before) / np.where(dear > 0, dear, 1.0), 0.0, 1.0), 1.0)
    bound = np.where(room < 0, -np.inf, (shares * worth).sum(axis=1) * (1 + 1e-14))
    back = np.empty_like(shares)
    np.put_along_axis(back, order, shares, axis=1)
    return bound, back


def _halved(problem: Curved, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return both halves of each box, cut across its widest line."""
    row, line = np.arange(len(low)), np.argmax((high - low) / np.maximum(problem.upper, 1e-300), axis=1)
    middle = 0.5 * (low[row, line] + high[row, line])
    left, right = high.copy(), low.copy()
    left[row, line] = right[row, line] = middle
    return np.concatenate([low, right]), np.concatenate([left, high])


def _raised(problem: Curved, u: Floats) -> Floats:
    """Return an allowed point near one: all lines shrunk together, then the one that gains most raised."""
    share, high = 0.0, 1.0
    if problem.is_allowed(u):
        share = 1.0
    else:
        for _ in range(HALVINGS):
            middle = 0.5 * (share + high)
            share, high = (middle, high) if problem.is_allowed(middle * u) else (share, middle)
    there = share * u
    line = int(np.argmax(problem.gain(problem.upper[None])[0] - problem.gain(there[None])[0]))
    low, high = float(there[line]), float(problem.upper[line])
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        moved = np.where(np.arange(len(u)) == line, middle, there)
        low, high = (middle, high) if problem.is_allowed(moved) else (low, middle)
    return np.where(np.arange(len(u)) == line, low, there)
