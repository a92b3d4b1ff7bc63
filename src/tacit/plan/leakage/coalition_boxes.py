"""The best release probabilities of the few lines that a coalition sees, found globally by cutting boxes.

Guarantee   `solve_rising` and `solve_curved` return an allowed point and a bound that no allowed point exceeds. The gap
            is at most the tolerance unless `most_boxes` were not enough; it is reported either way. `solve_curved` is
            never worse than the point it starts from. `largest_mixed` is at least the size of the mixed second
            derivative of a joint information anywhere in a box; infinite where that is not known.
Assumes     Gains and limits rise (weakly) in every release probability, and limits are convex in each by itself, as
            joint informations are (`outcomes`). `solve_curved` and `largest_mixed`: gains are convex in each release
            probability and add up, and no two lines of the coalition show the same attribute.
Why         Rising limits: one probability is set apart. Take a box of the others, from `low` to `high`. Whoever is
            allowed in it keeps the limits with the others moved down to `low` too, so the one set apart is at most what
            is allowed beside `low`, and all others are at most `high`. That bounds the gain. At `low`, with the one set
            apart as large as is allowed there, the gain is reached. As boxes shrink the two meet.
            Curved limits: let c be the middle of a box, and M a bound on mixed derivatives. Going from c to x one line
            after the other, each step is at least its tangent, whose slope has changed by at most the sum of M times
            the steps before. So an information is at least its tangent plane at c less M times a quarter of both
            widths, summed over pairs. Gains lie below their chords. The most that chords reach below one such plane is
            a linear program with one constraint: lines are taken in the order of their gain per cost. Slopes lie
            between those of two short chords on either side of c, by convexity; half of their difference times half of
            the width is taken off.
            Mixed derivatives: with A the targets, Y what is seen and Y_out what is seen of attributes that are no
            targets, the information is H(A) + H(Y) - H(A, Y_out) less entropies of single coins, which have no mixed
            derivative. For one outcome of all other attributes let a(v, w) be the mass where two attributes have values
            v and w that may be shown, b(v) and b(w) the masses where one has that value and the other is not shown, P
            where neither is shown. All are sums of products of hiding chances. The mixed derivative of an entropy is,
            added up over outcomes,
                sum a(v, w) log(b(v) b(w) / (a(v, w) P)) + sum a - (sum b(v)) (sum b(w)) / P
            times the release probabilities of what is shown of the others. Each mass falls with every release
            probability, so its values at both corners of a box enclose it, and these enclose the whole.
Reference   Tuy, Monotonic optimization: problems and solution approaches, SIAM Journal on Optimization 11 (2000).
            Adjiman and others, A global optimization method for general constrained nonconvex problems (1998).
            docs/decisions/0015-leakage.md.
Checked by  tests/unit/plan/test_leakage_program.py, tests/unit/plan/test_leakage_curved.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.plan.leakage.convex_program import Solved, where_it_ends
from tacit.plan.leakage.outcomes import JointLimit, SeenValues, SummedLimit

Places = npt.NDArray[np.intp]
Look = Callable[[Floats, Floats], tuple[Floats, Floats, float]]

STEPS = 40  # of the search for a root; half a dozen are mostly enough
NEAR = 1e-9  # how well a root is known
ROUNDING = 1e-12  # how far beyond a limit an evaluation must be to prove that the limit is broken
MOST_ROUNDS = 120  # of curved boxes
SHORT = 1e-5  # of the short chords
CHORD_ROUNDING = 1e-13  # of an information
HALVINGS = 36


def _best_first(
    look: Look,
    widest: Callable[[Floats, Floats], Places],
    box: tuple[Floats, Floats],
    start: Solved,
    *,
    tolerance: float,
    most_boxes: int,
    most_rounds: int,
    at_once: int,
) -> Solved:
    """Cut the boxes with the largest bounds across their widest lines until bound and best point meet.

    `look` returns the bound of each box, an allowed point of one of them, and what that gains.
    """
    best, reached, settled, looked = start.u, start.gain, -np.inf, 0
    (low, high), above = box, np.full(1, start.bound)
    waiting_low, waiting_high, waiting = low[:0], high[:0], above[:0]
    for _ in range(most_rounds):
        bounds, point, gain = look(low, high)
        looked += len(low)
        if gain > reached:
            best, reached = point, gain
        waiting_low, waiting_high = np.concatenate([waiting_low, low]), np.concatenate([waiting_high, high])
        waiting = np.concatenate([waiting, np.minimum(bounds, above)])
        done = waiting <= reached + tolerance
        settled = max(settled, float(waiting[done].max(initial=-np.inf)))
        waiting_low, waiting_high, waiting = waiting_low[~done], waiting_high[~done], waiting[~done]
        if looked >= most_boxes or not waiting_low.size:
            break
        order = np.argsort(-waiting)
        now, later = order[:at_once], order[at_once:]
        low, high = _halved(waiting_low[now], waiting_high[now], widest(waiting_low[now], waiting_high[now]))
        above = np.tile(waiting[now], 2)
        waiting_low, waiting_high, waiting = waiting_low[later], waiting_high[later], waiting[later]
    else:  # boxes that were cut last are still to be looked at
        waiting = np.concatenate([waiting, above])
    return Solved(best, reached, max(reached, settled, float(waiting.max(initial=-np.inf))))


def _halved(low: Floats, high: Floats, line: Places) -> tuple[Floats, Floats]:
    """Return both halves of each box, cut across one of its lines."""
    row = np.arange(len(low))
    left, right = high.copy(), low.copy()
    left[row, line] = right[row, line] = 0.5 * (low[row, line] + high[row, line])
    return np.concatenate([low, right]), np.concatenate([left, high])


# ---- limits that rise -----------------------------------------------------------------------------------------------


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

    def look(low: Floats, high: Floats) -> tuple[Floats, Floats, float]:
        points = np.zeros((len(low), len(upper)))
        points[:, others] = low

        def excess(one: Floats) -> Floats:
            return problem.excess(np.concatenate([points[:, :alone], one[:, None], points[:, alone + 1 :]], axis=1))

        at_start = excess(np.zeros(len(low)))
        start, stop = _root(excess, at_start, upper[alone])
        far = points.copy()
        far[:, others], far[:, alone] = high, stop
        bounds = np.where(at_start > ROUNDING, -np.inf, problem.gain(far).sum(axis=1))
        points[:, alone] = start
        # a point that is beyond its limit by rounding alone is no candidate
        points[at_start > 0] = 0.0
        gains = np.where(np.isneginf(bounds), -np.inf, problem.gain(points).sum(axis=1))
        top = int(np.argmax(gains))
        return bounds, points[top], float(gains[top])

    def widest(low: Floats, high: Floats) -> Places:
        """Return the line of each box that makes its bound loose."""
        near, far = np.tile(upper, (len(low), 1)), np.tile(upper, (len(low), 1))
        near[:, others], far[:, others] = low, high
        return np.asarray(np.argmax((problem.gain(far) - problem.gain(near))[:, others], axis=1))

    box = np.zeros((1, len(others))), upper[others][None]
    nothing = Solved(np.zeros_like(upper), 0.0, np.inf)
    rounds = most_boxes + 1  # each has a box at least
    return _best_first(
        look, widest, box, nothing, tolerance=tolerance, most_boxes=most_boxes, most_rounds=rounds, at_once=128
    )


def _root(excess: Callable[[Floats], Floats], at_start: Floats, upper: float) -> tuple[Floats, Floats]:
    """Return between which two numbers a rising convex function leaves zero: allowed at the first, not at the second.

    The chord between the two meets zero where the function is not positive. The line through two points behind the
    root meets zero, if it is extended, where the function is not negative. Only what was evaluated moves an end.
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
        extended = stop - at_stop * (behind - stop) / np.where(slope > 0, slope, 1.0) + NEAR / 4
        look(np.where((slope > 0) & (step % 4 < 3), extended, 0.5 * (start + stop)))
        look(start - at_start * (stop - start) / np.where(rise > 0, rise, 1.0))
    return start, stop


# ---- limits with bounded mixed derivatives --------------------------------------------------------------------------


@dataclass(frozen=True)
class CurvedLimits:
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

    def raised(self, u: Floats) -> Floats:
        """Return an allowed point near one: all lines shrunk together, then the one that gains most raised."""
        share = 1.0
        if not self.is_allowed(u):
            share, _ = where_it_ends(lambda part: self.is_allowed(part * u), 0.0, 1.0, HALVINGS)
        there = share * u
        line = int(np.argmax(self.gain(self.upper[None])[0] - self.gain(there[None])[0]))

        def moved(number: float) -> Floats:
            return np.where(np.arange(len(u)) == line, number, there)

        low, _ = where_it_ends(lambda one: self.is_allowed(moved(one)), there[line], self.upper[line], HALVINGS)
        return moved(low)

    def _plane(self, joint: JointLimit, most: float, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return what a limit leaves at `low`, and what going to `high` takes of it at least, for each line."""
        middle, width = 0.5 * (low + high), high - low
        boxes, lines = low.shape
        step = np.minimum(SHORT, 0.25 * width)
        units = np.eye(lines)
        points = [middle, *(middle + step * unit for unit in units), *(middle - step * unit for unit in units)]
        values = joint.at(np.concatenate(points)).reshape(2 * lines + 1, boxes)
        at, after, before = values[0], values[1 : lines + 1].T, values[lines + 1 :].T
        safe = np.where(step > 0, step, 1.0)
        above = np.where(step > 0, (after - at[:, None] + CHORD_ROUNDING) / safe, 0.0)
        below = np.where(step > 0, (at[:, None] - before - CHORD_ROUNDING) / safe, 0.0)
        slope = 0.5 * (above + below)
        apart = (0.25 * np.abs(above - below) * width).sum(axis=1)
        for first, second in itertools.combinations(range(lines), 2):
            area = width[:, first] * width[:, second]
            mixed = largest_mixed(joint, first, second, low, high)
            apart = apart + np.where(area > 0, 0.25 * np.where(area > 0, mixed, 0.0) * area, 0.0)
        room = most - at + CHORD_ROUNDING + 0.5 * (slope * width).sum(axis=1) + apart
        return room, slope * width


def solve_curved(problem: CurvedLimits, start: Solved, *, tolerance: float, most_boxes: int) -> Solved:
    """Return the best allowed point and a bound on all of them."""

    def look(low: Floats, high: Floats) -> tuple[Floats, Floats, float]:
        bounds, points = problem.bounds(low, high)
        point = problem.raised(points[int(np.argmax(bounds))])
        return bounds, point, float(problem.gain(point[None]).sum())

    def widest(low: Floats, high: Floats) -> Places:
        return np.asarray(np.argmax((high - low) / np.maximum(problem.upper, 1e-300), axis=1))

    box = np.zeros((1, len(problem.upper))), problem.upper[None]
    return _best_first(
        look, widest, box, start, tolerance=tolerance, most_boxes=most_boxes, most_rounds=MOST_ROUNDS, at_once=64
    )


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


# ---- mixed derivatives ----------------------------------------------------------------------------------------------


def shows_apart(limit: JointLimit | SummedLimit) -> TypeGuard[JointLimit]:
    """Say whether what a coalition learns is one information, and no two of its lines show the same attribute."""
    if not isinstance(limit, JointLimit):
        return False
    return all(one is None or one.known or len(one.lines) == 1 for one in (*limit.own, *limit.others))


def largest_mixed(limit: JointLimit, first: int, second: int, low: Floats, high: Floats) -> Floats:
    """Return a bound on the size of the mixed derivative by two lines, for each box."""
    hidden = tuple(axis for axis, one in enumerate(limit.own) if one is None)
    seen: list[SeenValues | None] = [one for one in (*limit.own, *limit.others) if one is not None]
    of_seen = _enclosed(limit.table.sum(axis=hidden), seen, first, second, low, high)
    beside: list[SeenValues | None] = [*(None for _ in limit.own), *limit.others]
    of_targets = _enclosed(limit.table, beside, first, second, low, high)
    found: Floats = np.maximum(np.abs(of_seen[0] - of_targets[1]), np.abs(of_seen[1] - of_targets[0]))
    return np.where(np.isfinite(found), found, np.inf)


def _enclosed(
    table: Floats, axes: list[SeenValues | None], first: int, second: int, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return two numbers between which the mixed derivative of an entropy is; an axis without `SeenValues` is known."""
    places = [at for line in (first, second) for at, one in enumerate(axes) if one and line in one.lines]
    if len(places) < 2:
        return np.zeros(len(low)), np.zeros(len(low))
    one, other = (axes[at] for at in places)
    assert one is not None and other is not None  # noqa: S101, PT018 - for the type checker
    rest = [axis for at, axis in enumerate(axes) if at not in places]
    moved = np.moveaxis(table, places, [-2, -1])
    ends = [_masses(moved, rest, one, other, u, (first, second)) for u in (low, high)]
    scales = [_shown(rest, u) for u in (low, high)]
    (a_most, v_most, w_most, p_most), (a_least, v_least, w_least, p_least) = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        log_most = np.log(v_most)[..., None] + np.log(w_most)[..., None, :] - np.log(a_least)
        log_most = log_most - np.log(p_least)[..., None, None]
        log_least = np.log(v_least)[..., None] + np.log(w_least)[..., None, :] - np.log(a_most)
        log_least = log_least - np.log(p_most)[..., None, None]
        most = np.where(a_most > 0, np.where(log_most > 0, a_most, a_least) * log_most, 0.0).sum(axis=(-2, -1))
        least = np.where(a_most > 0, np.where(log_least < 0, a_most, a_least) * log_least, 0.0).sum(axis=(-2, -1))
        none = p_most <= 0  # then nothing is left of the others either
        ratio_most = np.where(none, 0.0, v_most.sum(axis=-1) * w_most.sum(axis=-1) / p_least)
        ratio_least = np.where(none, 0.0, v_least.sum(axis=-1) * w_least.sum(axis=-1) / p_most)
    most = most + a_most.sum(axis=(-2, -1)) - ratio_least
    least = least + a_least.sum(axis=(-2, -1)) - ratio_most
    up = np.where(most > 0, scales[1], scales[0]) * most
    down = np.where(least < 0, scales[1], scales[0]) * least
    axes_left = tuple(range(1, up.ndim))
    return down.sum(axis=axes_left), up.sum(axis=axes_left)


def _masses(
    table: Floats, rest: list[SeenValues | None], one: SeenValues, other: SeenValues, u: Floats, lines: tuple[int, int]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return a, b of the first, b of the second and P, for each outcome of the rest; what is shown counts in full."""
    found = np.broadcast_to(table, (len(u), *table.shape))
    for axis, seen in enumerate(rest, start=1):
        if seen is not None:
            found = np.moveaxis(seen.through(found, seen.hidden(u), axis, in_full=True), -1, axis)
    shape = (-1, *(1,) * (found.ndim - 3))
    hide = [(1.0 - u[:, line]).reshape(shape) for line in lines]
    open_rows, shut_rows = found[..., ~one.sensitive, :], found[..., one.sensitive, :]
    a, sides = open_rows[..., ~other.sensitive], open_rows[..., other.sensitive].sum(axis=-1)
    across, corner = shut_rows[..., ~other.sensitive].sum(axis=-2), shut_rows[..., other.sensitive].sum(axis=(-2, -1))
    first = sides + hide[1][..., None] * a.sum(axis=-1)
    second = across + hide[0][..., None] * a.sum(axis=-2)
    both = corner + hide[0] * first.sum(axis=-1) + hide[1] * across.sum(axis=-1)
    return a, first, second, both


def _shown(rest: list[SeenValues | None], u: Floats) -> Floats:
    """Return the product of the release probabilities of what is shown, for each outcome of the rest."""
    found = np.ones((len(u), *(1,) * len(rest)))
    for axis, seen in enumerate(rest, start=1):
        if seen is not None:
            each = np.ones((len(u), seen.outcomes))
            each[:, :-1] = 1.0 - seen.hidden(u)[:, None]
            found = found * each.reshape((len(u), *(1,) * (axis - 1), -1, *(1,) * (len(rest) - axis)))
    return found
