"""Plans for coalitions: release probabilities under limits on what each coalition learns from all its lines together.

Guarantee   What is returned keeps every limit, by going through all outcomes, and nothing that is allowed exceeds the
            bound.
Assumes     `joint_terms`: a joint information rises with each release probability; so does the surest outcome
            (`posterior_terms`).
Why         Lines that no coalition connects are planned apart, since gains add up; where a posterior is limited,
            coalitions without a limit on information connect theirs too. A few lines are planned by cutting
            boxes: `monotone_boxes`, then `curved_boxes`, whose bounds close faster. For many there is a convex bound
            that is never below the joint information: what it allows is allowed, and is then raised as far as the joint
            information itself allows. Nobody can gain more than each line alone, with nothing else released, since
            limits rise.
Reference   docs/decisions/0015-leakage.md.
Checked by  tests/unit/plan/test_leakage_program.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tacit.arrays import Floats
from tacit.plan.leakage.measures.convex_terms import NOTHING, Mask, Terms
from tacit.plan.leakage.measures.joint_terms import JointLimit
from tacit.plan.leakage.measures.measured_tables import MeasuredTables
from tacit.plan.leakage.optimisers.convex_program import ConvexProgram, Solved
from tacit.plan.leakage.optimisers.curved_boxes import Curved, solve_curved
from tacit.plan.leakage.optimisers.mixed_slopes import shows_apart
from tacit.plan.leakage.optimisers.monotone_boxes import ROUNDING, RisingLimits, solve_rising
from tacit.plan.leakage.posterior_limit import Sure
from tacit.plan.leakage.setting import LeakageSetting

COARSE = 1e-6  # of what could be reached
NARROW = 5e-7  # where bounds close with the square of a box
MOST_BOXES = 6_000
FIRST_BOXES = 600  # before that
MOST_CURVED = 6_000
FEW_LINES = 3  # that coalitions connect: more are planned by the convex bound
HALVINGS = 60


@dataclass(frozen=True)
class Over:
    """What holds for some lines, by place: limits on informations, and coalitions that may not be too sure."""

    limits: list[int]
    coalitions: list[int]

    def __bool__(self) -> bool:
        return bool(self.limits or self.coalitions)


@dataclass(frozen=True)
class Coalitions:
    """The joint informations of a setting, their limits, and what is gained."""

    setting: LeakageSetting
    tables: MeasuredTables
    joint: Sequence[JointLimit]
    limits: Floats
    gain: Callable[[Floats], Floats]
    convex: Callable[[ConvexProgram], Solved]
    sure: Sure | None = None

    def alone(self, upper: Floats) -> Floats:
        """Return beyond which release probability each line breaks a limit, with nothing else released."""
        found = upper.copy()
        for number in range(len(upper)):
            over = self._over({number})
            if over:
                along = partial(self._along, np.zeros(len(upper)), _unit(len(upper), number), over)
                found[number] = _beyond(along, float(upper[number]))
        return found

    def best(self, upper: Floats, alone: Floats, slopes: Floats) -> tuple[Solved, str]:
        """Return the plan of all parts together, and how it was found."""
        u, bound, method = np.zeros(len(upper)), 0.0, "boxes"
        for lines, over in self._parts(len(upper)):
            if not over:
                u[lines] = upper[lines]
                bound += float(self.gain(upper[None])[0, lines].sum())
            elif len(lines) <= FEW_LINES:
                solved = self._few(alone, lines, over)
                u[lines], bound = solved.u, bound + solved.bound
            else:
                u[lines] = self._many(alone, lines, over, slopes)
                bound += float(self.gain(alone[None])[0, lines].sum())
                method = "safe"
        return Solved(u, float(self.gain(u[None]).sum()), bound), method

    def _excess(self, over: Over, u: Floats) -> Floats:
        """Return by how much each row of release probabilities breaks a limit, at most zero where it breaks none."""
        found = [self.joint[at].at(u) - self.limits[at] for at in over.limits]
        if self.sure is not None and over.coalitions:
            found.append(self.sure.excess(over.coalitions, u))
        worst: Floats = np.max(found, axis=0)
        return worst

    def _over(self, lines: set[int]) -> Over:
        """Return everything that one of some lines counts for."""
        surest = [] if self.sure is None else self.sure.each
        return Over(
            [at for at, limit in enumerate(self.setting.limits) if lines.intersection(limit.lines)],
            [at for at, one in enumerate(surest) if lines & one.lines],
        )

    def _along(self, start: Floats, step: Floats, over: Over, share: float) -> float:
        return float(self._excess(over, (start + share * step)[None])[0])

    def _few(self, upper: Floats, lines: list[int], over: Over) -> Solved:
        def spread(part: Floats) -> Floats:
            found = np.zeros((len(part), len(upper)))
            found[:, lines] = part
            return found

        problem = RisingLimits(
            lambda part: self.gain(spread(part))[:, lines], lambda part: self._excess(over, spread(part)), upper[lines]
        )
        reach = float(self.gain(upper[None])[0, lines].sum())
        tolerance = min(NARROW, COARSE * max(reach, 1e-3))
        if over.coalitions or not all(shows_apart(self.joint[at]) for at in over.limits):
            return solve_rising(problem, tolerance=COARSE * max(reach, 1e-3), most_boxes=MOST_BOXES)
        first = solve_rising(problem, tolerance=tolerance, most_boxes=FIRST_BOXES)
        place = {line: at for at, line in enumerate(lines)}
        joint = [self.joint[at].renumbered(place) for at in over.limits]
        curved = Curved(problem.gain, joint, self.limits[over.limits], upper[lines])
        return solve_curved(curved, first, tolerance=tolerance, most_boxes=MOST_CURVED)

    def _many(self, upper: Floats, lines: list[int], over: Over, slopes: Floats) -> Floats:
        """Return release probabilities of many lines: by the convex bound, then raised."""
        found = np.zeros(len(upper))
        found[lines] = self._safe(upper, lines, over.limits, slopes) if over.limits else upper[lines]
        # a hair, by rounding; and as far as a limit on posteriors asks for
        found = found * _largest(partial(self._along, np.zeros(len(upper)), found, over))
        # all towards their bounds together first, then each by itself, what is worth most first
        room = np.zeros(len(upper))
        room[lines] = (upper - found)[lines]
        found = found + _largest(partial(self._along, found, room, over)) * room
        for number in sorted(lines, key=lambda one: -slopes[one]):
            step = _unit(len(upper), number) * (upper[number] - found[number])
            found = found + _largest(partial(self._along, found, step, over)) * step
        raised: Floats = found[lines]
        return raised

    def _safe(self, upper: Floats, lines: list[int], over: list[int], slopes: Floats) -> Floats:
        """Return release probabilities that keep limits on informations, by the convex bound."""
        safe = self.setting.safe_terms(self.tables)
        terms = safe.kept(_mask(over, safe.limits), _mask(lines, len(upper)))
        limits = self.limits[over]
        bounds = alone_bounds(terms, limits, upper[lines])
        return self.convex(ConvexProgram(slopes[lines], terms, limits, np.zeros(len(lines)), bounds)).u

    def _parts(self, lines: int) -> list[tuple[list[int], Over]]:
        """Return groups of lines that nothing connects, each with what holds for them."""
        group = list(range(lines))
        surest = [] if self.sure is None else self.sure.each
        for seen in [*(limit.lines for limit in self.setting.limits), *(one.lines for one in surest)]:
            joined = {group[number] for number in seen}
            group = [min(joined) if one in joined else one for one in group]
        found = []
        for name in sorted(set(group)):
            members = [number for number in range(lines) if group[number] == name]
            found.append((members, self._over(set(members))))
        return found


def alone_bounds(terms: Terms, limits: Floats, upper: Floats) -> Floats:
    """Return bounds on release probabilities: what each line may have where nothing else is released."""
    # with nothing left of a limit, only what says nothing is released; rounding would let a little through
    leaks = (terms.each(upper) > NOTHING) & (limits <= 0)[:, None]
    upper = np.where(leaks.any(axis=0), 0.0, upper)
    low, high = np.zeros_like(upper), upper.copy()
    whole = (terms.each(high) <= np.maximum(limits, NOTHING)[:, None]).all(axis=0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        fits = (terms.each(middle) <= limits[:, None]).all(axis=0)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(whole, upper, high)


def _mask(chosen: list[int], size: int) -> Mask:
    found = np.zeros(size, dtype=bool)
    found[chosen] = True
    return found


def _unit(lines: int, number: int) -> Floats:
    found = np.zeros(lines)
    found[number] = 1.0
    return found


def _largest(excess: Callable[[float], float]) -> float:
    """Return the largest share that breaks no limit."""
    if excess(1.0) <= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) <= 0 else (low, middle)
    return low


def _beyond(excess: Callable[[float], float], most: float) -> float:
    """Return a number up to `most` beyond which a limit is broken for certain, whatever rounding did."""
    if excess(most) <= ROUNDING:
        return most
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) > ROUNDING else (middle, high)
    return high
