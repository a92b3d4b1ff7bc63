"""The largest weighted sum of epsilons under one limit on the sum of informations, found globally to any gap.

Guarantee   `solve_one` returns release probabilities that keep the limit by evaluation, and a bound that no allowed sum
            of epsilons exceeds. None where a line is not shaped as assumed; then nothing is claimed.
Assumes     One limit, on a sum of convex functions g, one of each line. With m(u) = (1 - u) g'(u) / weight, each m may
            fall first, then rises and then falls: that is checked, cell by cell.
Why         In what a line costs, c = g(u), its epsilon times its weight has the slope 1 / m(u). So every best point has
            one t with: lines at zero have m >= t, lines at their upper bound m <= t, and all others m = t. A line that
            has m = t where m falls gains the more, the more it takes; of two such lines one could take from the other,
            so there is at most one. For t between t1 and t2 a line is therefore in one of a few short ranges
            (`_Options`): at zero; low, where m rises; at its upper bound; and, one line at most, between (in a piece of
            where m falls). A range costs up to `most`, and is worth `worth` there. On it m <= t2, so that what costs d
            less is worth at most `worth - d / t2`. So all ranges together are worth at most the sum of `worth`, less
            1 / t2 for each unit by which the sum of `most` exceeds the limit; and it exceeds it by no more than the
            ranges are wide. The best choice of ranges is found line by line, with those sums that no other beats in
            both cost and worth. Intervals of t cover everything; they are cut until bound and best meet, which happens
            at the square of their width.
            g, g', g'' and g''' rise: the k-th derivative is a mean of a^k / (1 - u a)^(k - 1) over a, less the same of
            the mean of a, and that function of a is convex (Jensen). So numbers at the ends of a cell enclose m on it,
            and the slope of m up to the square of its width.
Reference   Nemhauser and Ullmann, Discrete dynamic programming and capital allocation, Management Science 15 (1969).
Checked by  tests/unit/plan/test_leakage_program.py.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.plan.leakage.convex_program import ConvexProgram, Solved, around_the_least, epsilons, where_it_ends
from tacit.plan.leakage.informations import NOTHING, Mask

Places = npt.NDArray[np.intp]
_Roots = list[tuple[Floats, Floats]]

CELLS = 256  # of a line, evenly in epsilon, on which shapes are checked
ZOOMS, ZOOM_CELLS = 5, 24  # rounds in which the place where m turns is found more closely
HALVINGS = 44
MOST_SUMS = 3_000  # of more, neighbours are taken together, each at its best
PRICE_STEPS = 40
ROOM = 1e-12  # of rounding
PIECES = 600  # of the ranges between, over all lines
LOW, TOP, ZERO, BETWEEN = range(4)  # and what is larger is another piece of the ranges between


def solve_one(program: ConvexProgram, *, tolerance: float, most_intervals: int) -> Solved | None:
    """Return the largest sum of `gain` times epsilon; None if a line is not shaped as this needs it."""
    costs = program.terms.each(program.upper)[0]
    live = (costs > NOTHING) & (program.upper > 0) & (program.gain > 0)
    u = program.upper.copy()  # what costs nothing, or gains nothing, stays where it may be
    free = float(program.gain[~live] @ epsilons(u[~live]))
    if not live.any():
        return Solved(u, free, free)
    lines = _CostlyLines.of(program, live)
    if lines is None:
        return None
    found = _IntervalSearch(lines, tolerance).run(most_intervals)
    u[live] = found.u
    if not program.is_allowed(u):  # by the rounding of sums alone
        u[live] = found.u * (1.0 - ROOM)
    reached = float(program.gain @ epsilons(u))
    return Solved(u, reached, max(reached, free + found.bound)) if program.is_allowed(u) else None


@dataclass(frozen=True)
class _Zone:
    """Where m turns, from one number to the next, and what it is there: at both ends, at least and at most."""

    start: Floats
    stop: Floats
    at_start: Floats
    at_stop: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, program: ConvexProgram, start: Floats, stop: Floats) -> _Zone:
        slopes = [program.terms.with_slopes(at)[1][0] / program.gain for at in (start, stop)]
        ends = (1.0 - start) * slopes[0], (1.0 - stop) * slopes[1]
        return cls(start, stop, *ends, (1.0 - stop) * slopes[0], (1.0 - start) * slopes[1])


@dataclass(frozen=True)
class _CostlyLines:
    """Lines that cost something. On each, m falls up to `bottom`, rises up to `ridge`, and then falls."""

    program: ConvexProgram  # of these lines alone
    bottom: _Zone
    ridge: _Zone
    at_zero: Floats
    at_top: Floats

    @classmethod
    def of(cls, program: ConvexProgram, live: Mask) -> _CostlyLines | None:
        terms = program.terms.part(np.ones(1, dtype=bool), live)
        own = ConvexProgram(program.gain[live], terms, program.limits, program.lower[live], program.upper[live])
        turning = _turning(own)
        if turning is None:
            return None
        bottom, ridge = (_Zone.of(own, *ends) for ends in turning)
        return cls(own, bottom, ridge, _ratio(own, np.zeros_like(own.upper)), _ratio(own, own.upper))

    @property
    def limit(self) -> float:
        return float(self.program.limits[0])

    def cost(self, u: Floats) -> Floats:
        return np.asarray(self.program.terms.each(u)[0])

    def worth(self, u: Floats) -> Floats:
        return self.program.gain * epsilons(u)

    def roots(self, t: float) -> _Roots:
        """Return between which two numbers m reaches t: where it falls first, where it rises, where it falls again.

        Where it does not reach t on a stretch, both are the end of the stretch at which m is nearer to it.
        """
        zero, top = np.zeros_like(self.at_zero), self.program.upper
        return [
            self._root(t, self.bottom.start, zero, self.bottom.at_start, self.at_zero),
            self._root(t, self.bottom.stop, self.ridge.start, self.bottom.at_stop, self.ridge.at_start),
            self._root(t, top, self.ridge.stop, self.at_top, self.ridge.at_stop),
        ]

    def _root(self, t: float, low: Floats, high: Floats, at_low: Floats, at_high: Floats) -> tuple[Floats, Floats]:
        """Return the root between where m is low and where it is high, from both sides, in the order of u."""
        below, above = where_it_ends(lambda u: _ratio(self.program, u) <= t, low, high, HALVINGS)
        below, above = np.where(at_low >= t, low, below), np.where(at_low >= t, low, above)
        below, above = np.where(at_high <= t, high, below), np.where(at_high <= t, high, above)
        return np.minimum(below, above), np.maximum(below, above)


def _ratio(program: ConvexProgram, u: Floats) -> Floats:
    """Return m: what one more unit of worth costs."""
    return np.asarray((1.0 - u) * program.terms.with_slopes(u)[1][0] / program.gain)


def _turning(program: ConvexProgram) -> _Roots | None:
    """Return intervals in which m certainly turns from falling to rising, and back; None if it turns more often."""
    zero, end = np.zeros_like(program.upper), epsilons(program.upper)
    rises, falls = _signs(program, zero, end, CELLS)
    number = np.arange(CELLS)[:, None]
    falling = falls.all(axis=0)
    # where it falls throughout there is only the last stretch
    first = np.where(falling, 0, (~falls).argmax(axis=0))
    last = np.where(falling, 0, CELLS - (~falls[::-1]).argmax(axis=0))
    width = end / CELLS
    _, slope, bend = program.terms.with_curvatures(-np.expm1(-first * width))
    # where no cell certainly rises, a short rise may be hidden where the uncertain cells begin
    hidden = np.where(np.exp(-first * width) * bend[0] > slope[0], first, last)
    begins = np.where(rises.any(axis=0), rises.argmax(axis=0), hidden)
    ends = np.where(rises.any(axis=0), CELLS - rises[::-1].argmax(axis=0), hidden)
    if (~rises & (number >= begins) & (number < ends)).any():
        return None
    found = []
    for start, stop, is_bottom in ((first, begins, True), (ends, last, False)):
        at, until = start * width, stop * width
        for _ in range(ZOOMS):
            rising, sinking = _signs(program, at, until, ZOOM_CELLS)
            before, after = (sinking, rising) if is_bottom else (rising, sinking)
            done = np.where(before.all(axis=0), ZOOM_CELLS, (~before).argmax(axis=0))
            left = np.where(after.all(axis=0), 0, ZOOM_CELLS - (~after[::-1]).argmax(axis=0))
            step = (until - at) / ZOOM_CELLS
            at, until = at + done * step, at + np.maximum(done, left) * step
        found.append((-np.expm1(-at), np.minimum(-np.expm1(-until), program.upper)))
    return found


def _signs(program: ConvexProgram, start: Floats, stop: Floats, cells: int) -> tuple[Mask, Mask]:
    """Return on which cells between two epsilons m certainly rises, and on which it certainly falls."""
    cuts = [-np.expm1(-(start + share * (stop - start))) for share in np.linspace(0, 1, 2 * cells + 1)]
    u, (slope, bend, more) = np.stack(cuts), _derivatives(program, cuts)
    low, middle, high = slice(None, -1, 2), slice(1, None, 2), slice(2, None, 2)
    # the slope of m is (1 - u) g'' - g', and the slope of that (1 - u) g''' - 2 g'', of which both parts rise
    steep = np.maximum(
        np.abs((1.0 - u[high]) * more[low] - 2 * bend[high]), np.abs((1.0 - u[low]) * more[high] - 2 * bend[low])
    )
    there = (1.0 - u[middle]) * bend[middle] - slope[middle]
    reach = np.maximum(u[high] - u[middle], u[middle] - u[low]) * steep
    return there >= reach, there <= -reach


def _derivatives(program: ConvexProgram, cuts: list[Floats]) -> tuple[Floats, Floats, Floats]:
    """Return the first three derivatives of what each line costs, at each cut."""
    terms, found = program.terms, []
    mass = terms.prior[0] * terms.share[0]
    for u in cuts:
        _, slope, bend = terms.with_curvatures(u)
        rest, left = 1.0 - u[:, None] * terms.share[0], 1.0 - u * terms.released
        third = (mass * (terms.share[0] / rest) ** 2).sum(axis=1) - (terms.released / left) ** 2 * mass.sum(axis=1)
        found.append((slope[0], bend[0], np.maximum(third, 0.0)))
    first, second, third = (np.stack(each) for each in zip(*found, strict=True))
    return first, second, third


@dataclass(frozen=True)
class _Options:
    """The ranges in which each line may be for t in an interval: (options, lines), nan where it may not be there."""

    most: Floats  # the largest cost
    worth: Floats  # what it is worth there
    room: float  # how much less all of them together can cost
    price: float  # what costing less is worth less, at least

    @classmethod
    def of(cls, lines: _CostlyLines, t1: float, t2: float, first: _Roots, last: _Roots) -> _Options:
        bottom, ridge, top = lines.bottom, lines.ridge, lines.program.upper
        low = np.where(bottom.at_stop >= t1, bottom.start, first[1][0])
        high = np.where(ridge.at_start <= t2, ridge.stop, last[1][1])
        may_low = (bottom.least <= t2) & (ridge.most >= t1)
        pieces = max(4, PIECES // len(top))
        ends, may = [high, top, np.zeros_like(top)], [may_low, lines.at_top <= t2, lines.at_zero >= t1]
        starts = [low, top, ends[ZERO]]
        for stretch, at_high, at_low in ((2, ridge.at_stop, lines.at_top), (0, lines.at_zero, bottom.at_start)):
            there = (at_high >= t1) & (at_low <= t2) & (lines.bottom.start > 0 if not stretch else True)
            begin, end = last[stretch][0], first[stretch][1]
            cuts = [begin + share * (end - begin) for share in np.linspace(0, 1, pieces + 1)]
            if there.any():
                starts, ends, may = starts + cuts[:-1], ends + cuts[1:], may + [there] * pieces
        allowed = np.stack(may)
        most = np.stack([lines.cost(end) for end in ends])
        width = np.where(allowed, most - np.stack([lines.cost(start) for start in starts]), 0.0)
        # where m turns it may be a little above t2
        above = np.where(may_low & (high > ridge.start), ridge.most, 0.0)
        above = np.maximum(above, np.where(may_low & (low < bottom.stop), bottom.most, 0.0))
        excluded = np.where(allowed, 0.0, np.nan)
        room = float(width[LOW].sum() + width[BETWEEN:].max(initial=0.0))  # only one is between
        worth = np.stack([lines.worth(end) for end in ends])
        return cls(most + excluded, worth + excluded, room, 1.0 / max(t2, float(above.max())))


@dataclass
class _IntervalSearch:
    """Intervals of t, cut until the best that was found and the bound on all of them meet."""

    lines: _CostlyLines
    tolerance: float

    def __post_init__(self) -> None:
        self.best = np.zeros_like(self.lines.at_zero)
        self.reached = 0.0
        self._roots: dict[float, _Roots] = {}

    def run(self, most_intervals: int) -> Solved:
        count, settled = itertools.count(), 0.0
        end = float(np.maximum(self.lines.ridge.most, self.lines.at_zero).max())
        queue: list[tuple[float, int, float, float]] = [(-np.inf, next(count), 0.0, end)]
        looked = 0
        while queue and looked < most_intervals:
            bound, _, t1, t2 = heapq.heappop(queue)
            if -bound <= self.reached + self.tolerance:
                settled = max(settled, -bound)
                continue
            for part in itertools.pairwise([t1, _cut(t1, t2), t2]):
                found = min(-bound, self._look(*part))
                looked += 1
                if found <= self.reached + self.tolerance or part[1] - part[0] <= ROOM * part[1]:
                    settled = max(settled, found)
                else:
                    heapq.heappush(queue, (-found, next(count), *part))
        return Solved(self.best, self.reached, max([self.reached, settled, *(-one[0] for one in queue)]))

    def _at(self, t: float) -> _Roots:
        if t not in self._roots:
            self._roots[t] = self.lines.roots(t)
        return self._roots[t]

    def _look(self, t1: float, t2: float) -> float:
        """Return what nothing with t in an interval exceeds, and try what comes nearest to it."""
        options = _Options.of(self.lines, t1, t2, self._at(t1), self._at(t2))
        if np.isnan(options.most).all(axis=0).any():
            return -np.inf
        bound, chosen = _best_sums(options, self.lines.limit, self.reached + self.tolerance)
        if chosen is not None:
            for t in (t1, t2):
                self._try(chosen, t)
        return bound

    def _try(self, chosen: Places, t: float) -> None:
        """Put lines where a choice has them, and give one what is left of the limit."""
        (_, (low, _), (left, _)), top = self._at(t), self.lines.program.upper
        u = np.choose(np.minimum(chosen, BETWEEN), [low, top, np.zeros_like(top), left])
        between = np.flatnonzero(chosen >= BETWEEN)
        cost = self.lines.cost(u)
        takers = [int(np.argmax(cost * (chosen == kind))) for kind in (LOW, TOP)]
        for taker in between if len(between) else takers:
            rest = self.lines.limit * (1.0 - ROOM) - float(cost.sum() - cost[taker])
            if rest < 0:
                continue
            there, end = u.copy(), top
            if self.lines.cost(top)[taker] > rest:
                fits = partial(self._fits, taker, rest)
                end, _ = where_it_ends(fits, np.zeros_like(u), top, HALVINGS)
            there[taker] = end[taker]
            value = float(self.lines.worth(there).sum())
            if value > self.reached and self.lines.program.is_allowed(there):
                self.best, self.reached = there, value

    def _fits(self, line: np.intp | int, rest: float, u: Floats) -> bool:
        return bool(self.lines.cost(u)[line] <= rest)


def _cut(t1: float, t2: float) -> float:
    if not t1:
        return t2 / 8
    return float(np.sqrt(t1 * t2)) if t2 > 2 * t1 else 0.5 * (t1 + t2)


@dataclass
class _CostFrontier:
    """Costs and worths of choices for the lines so far, none beaten in both, with where each came from."""

    cost: Floats
    worth: Floats
    parent: Places
    option: Places

    def at(self, fits: Mask | Places) -> _CostFrontier:
        return _CostFrontier(self.cost[fits], self.worth[fits], self.parent[fits], self.option[fits])


def _best_sums(options: _Options, limit: float, enough: float) -> tuple[float, Places | None]:
    """Return a bound on what a choice of ranges is worth, and the best choice unless that is worth `enough` or less."""
    lines = options.most.shape[1]
    size = limit + float(np.nansum(np.abs(options.most)))
    budget = limit + options.room + ROOM * size
    order = np.argsort(np.nanmax(options.worth, axis=0) - np.nanmin(options.worth, axis=0))[::-1]
    after = _After.of(options, order, limit, budget)
    empty = np.empty(0)
    none = np.empty(0, dtype=np.intp)
    plain = _CostFrontier(np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp))
    mixed = _CostFrontier(empty, empty, none, none)  # with one line between
    steps: list[tuple[_CostFrontier, _CostFrontier]] = []
    skipped = -np.inf
    for number, line in enumerate(order):
        most, worth = options.most[:, line], options.worth[:, line]
        found = []
        for sums, others in ((plain, None), (mixed, plain)):
            parts = [(sums, one) for one in (LOW, TOP, ZERO) if most[one] == most[one]]
            if others is not None:
                parts += [(others, one) for one in range(BETWEEN, len(most)) if most[one] == most[one]]
            made = _CostFrontier(
                np.concatenate([part.cost + most[one] for part, one in parts] or [empty]),
                np.concatenate([part.worth + worth[one] for part, one in parts] or [empty]),
                np.concatenate([np.arange(len(part.cost)) for part, _ in parts] or [none]),
                np.concatenate([np.full(len(part.cost), one) for part, one in parts] or [none]),
            )
            bounds = after.bounds(made, number + 1)
            hopeless = bounds <= enough
            skipped = max(skipped, float(bounds[hopeless].max(initial=-np.inf)))
            found.append(_unbeaten(made.at(~hopeless)))
        plain, mixed = found
        steps.append((plain, mixed))
    best, choice = skipped, None
    for which, sums in enumerate((plain, mixed)):
        if len(sums.cost):
            values = sums.worth - options.price * np.maximum(sums.cost - limit, 0.0)
            at = int(np.argmax(values))
            if values[at] > best:
                best, choice = float(values[at]), (which, at)
    if best > -np.inf:
        best += ROOM * (abs(best) + size * options.price)
    if choice is None:
        return best, None
    chosen = np.zeros(lines, dtype=np.intp)
    which, at = choice
    for number in range(lines - 1, -1, -1):
        sums = steps[number][which]
        chosen[order[number]] = sums.option[at]
        if sums.option[at] >= BETWEEN:
            which = 0
        at = int(sums.parent[at])
    return best, chosen


@dataclass(frozen=True)
class _After:
    """What the lines that are still to come can add, by a few prices (weak duality)."""

    prices: Floats
    surplus: Floats  # (lines + 1, prices): of the lines from a number on
    cheapest: Floats  # (lines + 1)
    budget: float
    whole: Floats  # (prices): what the limit is worth

    @classmethod
    def of(cls, options: _Options, order: Places, limit: float, budget: float) -> _After:
        most, worth = options.most[:, order], options.worth[:, order]

        def dual(price: float) -> float:
            return float(np.nanmax(worth - price * most, axis=0).sum()) + price * limit

        best = 0.5 * sum(around_the_least(dual, options.price, options.price, PRICE_STEPS))
        prices = np.array([options.price, *(best * np.array([1.0, 0.9, 0.97, 1.03, 1.1]))])
        surplus = np.nanmax(worth[:, :, None] - prices * most[:, :, None], axis=0)
        ends = np.concatenate([np.cumsum(surplus[::-1], axis=0)[::-1], np.zeros((1, len(prices)))])
        least = np.concatenate([np.cumsum(np.nanmin(most, axis=0)[::-1])[::-1], np.zeros(1)])
        whole = prices * limit + np.maximum(prices - options.price, 0.0) * (budget - limit)
        return cls(prices, ends, least, budget, whole)

    def bounds(self, sums: _CostFrontier, number: int) -> Floats:
        """Return what each sum can become with the lines from a number on; minus infinity if that costs too much."""
        each = sums.worth[:, None] - self.prices * sums.cost[:, None] + self.surplus[number] + self.whole
        dear = sums.cost + self.cheapest[number] > self.budget
        return np.where(dear, -np.inf, each.min(axis=1) if len(each) else np.empty(0))


def _unbeaten(sums: _CostFrontier) -> _CostFrontier:
    """Return those that no other beats in both cost and worth; of very many, neighbours are taken together."""
    if not len(sums.cost):
        return sums
    order = np.lexsort((-sums.worth, sums.cost))
    worth = sums.worth[order]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(worth)[:-1]])
    found = sums.at(order[worth > before])
    if len(found.cost) <= MOST_SUMS:
        return found
    together = -(-len(found.cost) // MOST_SUMS)
    starts = np.arange(0, len(found.cost), together)
    ends = np.minimum(starts + together, len(found.cost)) - 1
    return _CostFrontier(found.cost[starts], found.worth[ends], found.parent[ends], found.option[ends])
