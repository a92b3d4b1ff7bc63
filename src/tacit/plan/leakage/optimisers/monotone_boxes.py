"""The best release probabilities under limits that rise with each of them, found globally by cutting boxes.

Guarantee   `solve_rising` returns an allowed point and a bound that no allowed point exceeds. The gap is at most the
            tolerance unless `most_boxes` were not enough; it is reported either way.
Assumes     Gain and limits rise (weakly) in every release probability, and limits are convex in each of them taken by
            itself, as joint informations are (`joint_terms`).
Why         One probability is set apart. Take a box of the others, from `low` to `high`: whoever is allowed in it keeps
            the limits with the others moved down to `low` too, so the one set apart is at most what is allowed beside
            `low`, and all others are at most `high`. That bounds the gain. At `low`, with the one set apart as large as
            is allowed there, the gain is reached. As boxes shrink the two meet. Boxes cover everything.
Reference   Tuy, Monotonic optimization: problems and solution approaches, SIAM Journal on Optimization 11 (2000).
Checked by  tests/unit/plan/test_leakage_program.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.plan.leakage.optimisers.convex_program import Solved

Places = npt.NDArray[np.intp]

STEPS = 40  # of the search for a root; half a dozen are mostly enough
NEAR = 1e-9  # how well a root is known
ROUNDING = 1e-12  # how far beyond a limit an evaluation must be to prove that the limit is broken
AT_ONCE = 128


@dataclass(frozen=True)
class RisingLimits:
    """Gains, limits and upper bounds of a few release probabilities; `excess` is positive where a limit is broken."""

    gain: Callable[[Floats], Floats]  # (points, lines) -> (points, lines): what each line adds
    excess: Callable[[Floats], Floats]  # (points, lines) -> (points): the largest of limit sum minus limit
    upper: Floats


def solve_rising(problem: RisingLimits, *, tolerance: float, most_boxes: int) -> Solved:
    """Return the best allowed point and a bound on all of them."""
    upper = problem.upper
    alone = int(np.argmax(problem.gain(upper[None])[0]))
    others = np.flatnonzero(np.arange(len(upper)) != alone)
    low, high = np.zeros((1, len(others))), upper[others][None]
    best, reached, settled = np.zeros_like(upper), 0.0, 0.0
    looked = 0
    held_low, held_high, held_bound = np.empty((0, len(others))), np.empty((0, len(others))), np.empty(0)
    while len(low):
        points, bounds = _looked_at(problem, low, high, alone, others)
        looked += len(low)
        gains = np.where(np.isneginf(bounds), -np.inf, problem.gain(points).sum(axis=1))
        top = int(np.argmax(gains))
        if gains[top] > reached:
            best, reached = points[top], float(gains[top])
        held_low, held_high = np.concatenate([held_low, low]), np.concatenate([held_high, high])
        held_bound = np.concatenate([held_bound, bounds])
        done = held_bound <= reached + tolerance
        settled = max(settled, float(held_bound[done].max(initial=-np.inf)))
        held_low, held_high, held_bound = held_low[~done], held_high[~done], held_bound[~done]
        if looked >= most_boxes or not len(others):
            break
        order = np.argsort(-held_bound)[:AT_ONCE]
        low, high = _halved(problem, held_low[order], held_high[order], others, upper)
        stay = np.ones(len(held_bound), dtype=bool)
        stay[order] = False
        held_low, held_high, held_bound = held_low[stay], held_high[stay], held_bound[stay]
    return Solved(best, reached, max(reached, settled, float(held_bound.max(initial=-np.inf))))


def _looked_at(problem: RisingLimits, low: Floats, high: Floats, alone: int, others: Places) -> tuple[Floats, Floats]:
    """Return an allowed point of each box and what nothing in it exceeds; minus infinity where nothing is allowed."""
    points = np.zeros((len(low), len(problem.upper)))
    points[:, others] = low

    def excess(one: Floats) -> Floats:
        return problem.excess(np.concatenate([points[:, :alone], one[:, None], points[:, alone + 1 :]], axis=1))

    at_start = excess(np.zeros(len(low)))
    start, stop = _root(excess, at_start, problem.upper[alone])
    far = points.copy()
    far[:, others], far[:, alone] = high, stop
    bounds = np.where(at_start > ROUNDING, -np.inf, problem.gain(far).sum(axis=1))
    points[:, alone] = start
    # a point that is beyond its limit by rounding alone is no candidate
    points[at_start > 0] = 0.0
    return points, bounds


def _root(excess: Callable[[Floats], Floats], at_start: Floats, upper: float) -> tuple[Floats, Floats]:
    """Return between which two numbers a rising convex function leaves zero: allowed at the first, not at the second.

    The chord between the two meets zero where the function is not positive; the line through two points behind the
    root, drawn out, meets zero where it is not negative. Only what was evaluated moves an end.
    """
    start, stop = np.zeros(len(at_start)), np.full(len(at_start), upper)
    at_stop = excess(stop)
    whole = at_stop <= ROUNDING
    start = np.where(at_stop <= 0, stop, start)
    behind, at_behind = stop, at_stop

    def look(at: Floats) -> None:
        nonlocal start, stop, at_start, at_stop, behind, at_behind
        at = np.clip(at, start, stop)
        found = excess(at)
        moves = (found <= 0) & (at > start)
        start, at_start = np.where(moves, at, start), np.where(moves, found, at_start)
        beyond = (found > ROUNDING) & (at < stop)
        behind, at_behind = np.where(beyond, stop, behind), np.where(beyond, at_stop, at_behind)
        stop, at_stop = np.where(beyond, at, stop), np.where(beyond, found, at_stop)

    for step in range(STEPS):
        if (whole | (at_start > 0) | (stop - start <= NEAR)).all():
            break
        rise, slope = at_stop - at_start, at_behind - at_stop
        drawn = stop - at_stop * (behind - stop) / np.where(slope > 0, slope, 1.0) + NEAR / 4
        middle = 0.5 * (start + stop)
        look(np.where((slope > 0) & (step % 4 < 3), drawn, middle))
        look(start - at_start * (stop - start) / np.where(rise > 0, rise, 1.0))
    return start, stop


def _halved(problem: RisingLimits, low: Floats, high: Floats, others: Places, upper: Floats) -> tuple[Floats, Floats]:
    """Return both halves of each box, cut across the line that makes its bound loose."""
    near, far = np.tile(upper, (len(low), 1)), np.tile(upper, (len(low), 1))
    near[:, others], far[:, others] = low, high
    line = np.argmax((problem.gain(far) - problem.gain(near))[:, others], axis=1)
    row = np.arange(len(low))
    middle = 0.5 * (low[row, line] + high[row, line])
    left, right = high.copy(), low.copy()
    left[row, line] = right[row, line] = middle
    return np.concatenate([low, right]), np.concatenate([left, high])
