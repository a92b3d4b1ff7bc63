"""The plan of a question about rectangles: what is measured, with which noise, and the error of any rectangle.

Guarantee   For every secret edge hidden -> cover, every data set and every set O of outputs:
            Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
Assumes     `plan/sensitivity/moves.py` bounds the moves, `plan/measure/regions.py` what they change; of
            listed rectangles that are measured by themselves, nobody is in more than the deepest cell has.
Why         Noise is independent and two-sided geometric: a change by m of the sums of a group costs m / scale. The
            changes of all groups together cost at most epsilon (`Weighted.loss`); no edge changes the exact numbers.
            Least squares works on noisy and exact numbers alone.
Reference   Blowfish privacy, sections 5 and 7; the matrix mechanism (least squares on noisy sums).
Checked by  tests/property/test_grids.py, tests/statistical/test_rectangles.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.noise.two_scale import TwoScale
from tacit.noise.variance_bounds import half_width
from tacit.plan.error_laws import AnySpread, ShapedSpread
from tacit.plan.measure.grid_search import UNIT_CELLS, candidates, listed_change
from tacit.plan.measure.regions import GridStrategy, Weighted
from tacit.plan.measure.sums import GridSums
from tacit.plan.measure.workload import Workload, rectangle_variances
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.question import in_words
from tacit.plan.questions.rectangles import Rectangles
from tacit.plan.sensitivity.moves import GridMoves, grid_moves
from tacit.plan.sensitivity.responses import CellTables, Watched
from tacit.plan.sensitivity.steps import LargestStep, check_rows_move_alone, of_all_rows
from tacit.policy.policy import Policy

NO_NOISE: Final = 1e-9  # a variance that is nothing but rounding
EXACT: Final = "no secret edge changes the counts of cells, so they are released exactly"


@dataclass(frozen=True)
class GridPlan(LinearPlan):
    """How counts of rectangles are estimated, from `sums`; None: the listed rectangles are measured by themselves.

    `weighted` has the noise of the sums, if there is any. `compared` are all ways that were, with their expected mean
    squared errors, the best first.
    """

    query: Rectangles
    moves: GridMoves = field(kw_only=True, repr=False)
    workload: Workload = field(kw_only=True, repr=False)
    sums: GridSums | None = field(kw_only=True, repr=False)
    weighted: Weighted | None = field(kw_only=True)

    @property
    def variance(self) -> float:
        return self.compared[0][1]

    @cached_property
    def spread(self) -> AnySpread:
        return ShapedSpread(self.variances(self.query.ends(self.policy.domain)), self.half_widths_of)

    @property
    def chosen(self) -> str:
        return self.compared[0][0]

    @property
    def watched(self) -> Watched:
        """The counts of cells: sums of them change as these do."""
        return CellTables((self.query.names,), self.query.where)

    def cells(self, entries: Floats) -> Floats | None:
        """Return the estimates of all cells from noisy entries of the base; None where only rectangles are measured."""
        if self.sums is None:
            return None
        if self.weighted is None:
            return entries.reshape(self.sums.sizes)
        return self.sums.cells(entries, self.weighted.variances)

    def variances(self, ends: Ints) -> Floats:
        """Return the variance of the estimate of each rectangle: first and last position along x, then along y."""
        if self.noise is None:
            return np.zeros(len(ends))
        if self.weighted is None:
            return np.full(len(ends), self.noise.variance())
        found = rectangle_variances(self.weighted.strategy, self.weighted.variances, self.moves, ends)
        return np.where(found < NO_NOISE, 0.0, found)

    def half_widths(self, level: float, ends: Ints) -> Floats:
        """Return by how much each estimate is off at most, with this probability."""
        return self.half_widths_of(level, self.variances(ends))

    def half_widths_of(self, level: float, variances: Floats) -> Floats:
        """Return the same for estimates with these variances."""
        if self.noise is None:
            return np.zeros(len(variances))
        if self.weighted is None:
            return np.full(len(variances), float(self.noise.quantile((1 + level) / 2)))
        return half_width(level, variances, self.weighted.laws)

    def proven_loss(self, *, backward: bool = False) -> Fraction | float:
        """Return the loss of the worst move; it is the same in both directions, since the noise is even."""
        if self.weighted is None:
            return super().proven_loss()
        return self.policy.per_person * self.weighted.loss(self.moves)

    def predicted(self) -> dict[str, Any]:
        return {"value_rmse": self.rmse, "candidates": dict(self.compared)}

    def terms(self) -> list[str]:
        only = "only the listed rectangles were measured; no other can be told from them"
        return [only] if self.sums is None else []


def plan_rectangles(query: Rectangles, policy: Policy, epsilon: Fraction) -> GridPlan:
    """Return the plan with the smallest expected error for a checked question about rectangles."""
    query.check_size(policy.domain)
    check_rows_move_alone(policy)
    domain, rows = policy.domain, policy.per_person
    workload = query.wanted(domain)
    moves, step = grid_moves(query.names, query.where, policy.of_one_row)
    whole = partial(GridPlan, query, policy, epsilon, answers=query.size(domain), moves=moves, workload=workload)
    all_rows = partial(of_all_rows, measured=query, policy=policy)
    if step.l1 == 0:
        sums = GridSums.of(query.names, GridStrategy(), replace(moves, has_totals=False), query.where)
        compared = ((UNIT_CELLS, 0.0),)
        return whole(step=all_rows(step), why=EXACT, base=sums, noise=None, sums=sums, weighted=None, compared=compared)
    found = candidates(moves, workload, epsilon / rows)
    best = found[0]
    tried = tuple((one.name, one.variance) for one in found if one.variance < math.inf)
    if best.weighted is None:
        most = listed_change(moves, workload)
        fall, largest = (most, most) if moves.coupled is not None else (min(most, workload.deepest), 1)
        size: dict[str, Any] = {"up": largest, "down": largest, "l1": most, "square": most * largest, "exact": False}
        profiles = tuple(sorted({(fall, most - fall), (most - fall, fall)}))
        listed, noise = replace(step, profiles=profiles, **size), TwoScale(best.scale, best.scale)
        why = f"nobody changes more than {most} of the listed rectangles"
        named = partial(whole, why=why, strategy=best.name, compared=tried)
        return named(step=all_rows(listed), base=query, noise=noise, sums=None, weighted=None)
    weighted = best.weighted
    sums = GridSums.of(query.names, weighted.strategy, moves, query.where)
    x, y = query.axes(domain)
    measured = in_words(weighted.strategy.names((x.name, y.name)))
    return whole(
        step=all_rows(_step(weighted.strategy, moves, step, measured)),
        why=f"of all ways that were tried, {best.name} have the smallest expected error"
        if len(found) > 1
        else "nothing but the counts of cells has a proven step",
        base=sums,
        noise=sums.noise_of(weighted),
        strategy=f"{best.name}: least squares on {measured}",
        sums=sums,
        weighted=weighted,
        compared=tried,
    )


def _step(strategy: GridStrategy, moves: GridMoves, cells: LargestStep, measured: str) -> LargestStep:
    """Return how far the sums of all groups move, from how far the counts of cells do."""
    if strategy.groups == 1:
        return cells
    levels = len(strategy.sides)
    widest = max((width for width in strategy.ramps), default=0)
    profiles: set[tuple[int, int]] = set()
    largest, l1, square = 1, 0, 0
    for row in strategy.changes(moves):
        counted, ramps = sum(row[:levels]), row[levels:]
        l1 = max(l1, counted + sum(ramps))
        square = max(square, counted + sum(min(widest, far) * far for far in ramps))
        largest = max([largest, *(min(widest, far) for far in ramps)])
        if 2 in row[:levels]:  # a move: from one cell to another, and along each axis either way
            ways = [[(far, 0), (0, far)] for far in ramps]
            for turn in product(*ways):
                profiles.add((counted // 2 + sum(a for a, _ in turn), counted // 2 + sum(b for _, b in turn)))
        else:
            profiles |= {(counted + sum(ramps), 0), (0, counted + sum(ramps))}
    why = (*cells.why, f"measured are {measured}")
    return replace(
        cells, up=largest, down=largest, l1=l1, square=square, profiles=tuple(sorted(profiles)), why=why, exact=False
    )
