"""Look, then zoom: cells are counted once, or looked at and counted anew in finer ones, for one epsilon.

A look at the cells of a grid has noise that is `LOOK` times as wide as what their count will have. It says where people
are. If they are in few of the cells, these are cut into as many parts as there are cells to spare, and all is counted
again. The constants were chosen on check-ins of three cities and of the world; `tacit bench clusters` shows what they
do elsewhere. Drawn are the number of people (its own part of epsilon, nothing where no edge changes it) and then, with
the rest e:

1. the cells of the grid that the noisy number of people calls for, with noise for e, kept from everybody;
2. if public numbers say so, a look: these noisy counts with more noise (`Law.widening`), which makes theirs LOOK = 5
   times as wide. What follows is a function of it, of the noisy number of people and of public numbers;
3. where the look shows people in few cells: a fresh count in finer cells, with noise for 4/5 e. Look and count are
   released, and what was kept is forgotten. Else what was kept is released.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every set O of outputs (the
            number of people, the look, which cells are counted, their counts): Pr[M(hidden) in O] <= exp(epsilon) *
            Pr[M(cover) in O], at the epsilon that was reserved as one before rows were read. Nothing is promised from
            cover to hidden.
Assumes     What `plan/plans/linear.py` assumes of every count, for every grid that may be chosen: each is planned by
            its own step under the policy, with the secret presence, `where` of edges and knowledge that this has (what
            others must do when somebody moves is in the step; a policy whose step is refused is refused before).
Why         Let p and p' be the chances of one output (people, look, counts) at hidden and at cover. The number of
            people: at most exp(its part). Given it, the grid is fixed. A look that leads to a fresh count: its law is
            additive noise of 5 times the scale, so each unit of each move costs a fifth: exp(e/5); given the look, the
            fresh count is additive noise on cells that the look has fixed: exp(4/5 e). A look that does not: what is
            released, the kept counts and the look, is the kept counts and noise that knows nothing of the data, so the
            ratio is that of the kept counts: exp(e). Which case holds is part of the output, so the ratio of every
            single output is at most exp(epsilon); sums over O keep that. Ratios are taken from hidden to cover only, so
            that edges of one direction and one-sided noise need no other argument.
Reference   Dwork, Roth, The algorithmic foundations of differential privacy, section 3.5 (adaptive composition);
            Koufogiannis, Han, Pappas, Gradual release of sensitive data under differential privacy (noise that becomes
            smaller), here on whole numbers and for two scales.
Checked by  tests/unit/plan/test_zoom.py, tests/statistical/test_zoom.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tacit.arrays import Bools, Floats, Ints
from tacit.plan.measure.soft_cells import AxisCells, SoftCellResponse, SoftCells, block_sums, of_totals
from tacit.plan.plans.linear import LinearPlan, blur
from tacit.plan.question import suffix
from tacit.plan.sensitivity.responses import Response
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.plan.questions.clusters import ClustersPlan


LOOK: Final = 5  # the look has one part in so many of epsilon
SEES: Final = 0.03  # of the people in one cell, a look must see at least
SEES_FAR: Final = 0.01  # the same of the count that follows, for cells that are not cut
RARE: Final = (4.0, 5.0, 6.0)  # logs of how rarely noise alone is that large: for a look at all, for a block, far away
MISSED: Final = 0.01  # of the people, who may seem to be in cells that are not cut


@dataclass(frozen=True)
class Zoomed(SoftCells):
    """People in the cells of a grid, of which some are cut into up to `times` parts along every axis.

    The cells that are not cut come first, row by row, then the parts of those that are. `axes` have no ramps.
    """

    chosen: tuple[int, ...] = ()
    times: int = 1

    @cached_property
    def _finer(self) -> tuple[AxisCells, ...]:
        return tuple(_cut(one, self.times) for one in self.axes)

    @cached_property
    def is_cut(self) -> Bools:
        """Which cells of the grid are cut."""
        found = np.zeros(math.prod(self.shape), dtype=np.bool_)
        found[list(self.chosen)] = True
        return found

    @cached_property
    def _starts(self) -> tuple[list[Ints], Ints]:
        """For each axis the first part of each of its cells, and for each cell of the grid where it begins."""
        firsts = [
            np.searchsorted([0, *fine.borders], [0, *one.borders]).astype(np.int64)
            for one, fine in zip(self.axes, self._finer, strict=True)
        ]
        many = np.ones((), dtype=np.int64)
        for first, fine in zip(firsts, self._finer, strict=True):
            many = np.multiply.outer(many, np.diff(np.append(first, fine.many)))
        order = np.argsort(self.is_cut, kind="stable")
        sizes = np.where(self.is_cut, many.reshape(-1), 1)
        starts = np.empty(len(order) + 1, dtype=np.int64)
        ends = np.cumsum(sizes[order])
        starts[order] = ends - sizes[order]
        starts[-1] = ends[-1]
        return firsts, starts

    @property
    def uncut(self) -> int:
        """How many cells are not cut."""
        return len(self.is_cut) - len(self.chosen)

    def size(self, domain: Domain) -> int:
        return int(self._starts[1][-1])

    def shape_words(self) -> str:
        parts = " x ".join([str(self.times)] * len(self.axes))
        return f"{super().shape_words()}, {len(self.chosen):,} of them cut into up to {parts} parts"

    def boxes(self) -> tuple[Floats, Floats]:
        low, high = super().boxes()
        firsts, starts = self._starts
        cells = np.array(self.chosen, dtype=np.int64)
        sizes = np.diff(np.append(starts[cells], starts[-1]))
        own = np.unravel_index(np.repeat(cells, sizes), self.shape)
        part = np.arange(self.uncut, starts[-1]) - np.repeat(starts[cells], sizes)
        fine_low, fine_high = (np.empty((len(part), len(self.axes))) for _ in range(2))
        for axis in reversed(range(len(self.axes))):
            fine, first = self._finer[axis], firsts[axis]
            part, within = np.divmod(part, np.diff(np.append(first, fine.many))[own[axis]])
            at = first[own[axis]] + within
            fine_low[:, axis], fine_high[:, axis] = ((fine.middles + side * fine.widths / 2)[at] for side in (-1, 1))
        return np.concatenate([low[~self.is_cut], fine_low]), np.concatenate([high[~self.is_cut], fine_high])

    def weights(self, counted: Floats, spread: float, total: float) -> tuple[Floats, Floats]:
        """Return weights of the cells, and numbers of people, as for a grid that is not cut.

        A cell that is not cut has weight only if its number is no noise: there are many, and they lie far away.
        """
        far, close = counted[: self.uncut], counted[self.uncut :]
        kept = np.where(far > spread * (math.log(max(len(far), 2)) + RARE[2]), far, 0.0)
        rest = max(total - float(kept.sum()), 0.0)
        found = of_totals(close[np.newaxis], np.array([rest]))[0]
        return np.concatenate([kept, found]), np.concatenate([kept, close + (rest - close.sum()) / len(close)])

    def _shared_out(self, places: Sequence[Ints], people: Ints) -> Ints:
        """Return how many of these people are in each cell."""
        firsts, starts = self._starts
        cell, part = (np.zeros(len(people), dtype=np.int64) for _ in range(2))
        for one, fine, first, place in zip(self.axes, self._finer, firsts, places, strict=True):
            at, within = one.shares[0][place], fine.shares[0][place]
            many = np.diff(np.append(first, fine.many))
            cell = cell * one.many + at
            part = part * many[at] + within - first[at]
        return np.bincount(starts[cell] + np.where(self.is_cut[cell], part, 0), people, int(starts[-1])).astype(
            np.int64
        )

    def response(self, domain: Domain) -> Response:
        return SoftCellResponse(self._finer, 1, bound=True, cells=self.names)

    def options(self) -> dict[str, Any]:
        cells = [{"axis": one.axis.name, "cells": one.many} for one in self.axes]
        return {"axes": cells, "cut": len(self.chosen), "times": self.times}

    def __str__(self) -> str:
        shape = " x ".join(f"{many:,}" for many in self.shape)
        return f"cells({', '.join(self.names)}, {shape}, {len(self.chosen):,} of them cut{suffix(self.where, self.of)})"


def look_at(cells: LinearPlan, people: float) -> LinearPlan | None:
    """Return the look before a count of cells, for so many people; None where it could not show where they are."""
    wide = None if cells.noise is None else cells.noise.widened(LOOK)
    grid = _uncut(cells)
    if wide is None or max(one.widest for one in grid.axes) == 1:
        return None
    look, many = replace(cells, epsilon=cells.epsilon / LOOK, noise=wide), math.log(math.prod(grid.shape))
    if deviation(look) * (many + RARE[0]) > SEES * people:
        return None
    return look if deviation(_counted(grid, look)) * (many + RARE[2]) <= SEES_FAR * people else None


def closer(look: LinearPlan, seen: Floats, people: float) -> LinearPlan | None:
    """Return how cells are counted anew after a look that showed these numbers; None where they stay as they are."""
    grid = _uncut(look)
    region = _region(seen.reshape(grid.shape), deviation(look), people)
    if region is None:
        return None
    spare = (region.size / np.count_nonzero(region)) ** (1 / region.ndim)
    times = min(int(spare + 1e-9), max(one.widest for one in grid.axes))
    return _counted(replace(grid, chosen=tuple(np.flatnonzero(region).tolist()), times=times), look)


def all_cut(look: LinearPlan) -> LinearPlan:
    """Return how cells are counted that are all cut in two along every axis."""
    grid = _uncut(look)
    return _counted(replace(grid, chosen=tuple(range(math.prod(grid.shape))), times=2), look)


def deviation(plan: LinearPlan) -> float:
    """Return the scale of discrete Laplace noise with the variance that a cell has, in people."""
    if plan.noise is None:
        return 0.0
    return math.sqrt(plan.noise.variance() / 2) * float(plan.query.unit(plan.policy.domain))


def _uncut(cells: LinearPlan) -> Zoomed:
    """Return the cells of a plan with borders in place of ramps."""
    grid: Any = cells.base
    return Zoomed(grid.names, tuple(replace(one, ramp=1) for one in grid.axes), grid.where)


def _counted(grid: Zoomed, look: LinearPlan) -> LinearPlan:
    """Return the plan that counts these cells with what the look has left of epsilon."""
    return _planned(grid, look.policy, look.epsilon * (LOOK - 1))


@lru_cache(maxsize=16)  # audits draw again and again
def _planned(grid: Zoomed, policy: Policy, epsilon: Fraction) -> LinearPlan:
    found: LinearPlan = grid.plan(policy, epsilon)
    return found


def _cut(line: AxisCells, times: int) -> AxisCells:
    """Return an axis whose cells are cut into so many parts, or into single positions where these are fewer."""
    starts = np.array([0, *line.borders], dtype=np.int64)
    wide = np.diff(np.append(starts, line.axis.size))
    parts = starts[:, np.newaxis] + wide[:, np.newaxis] * np.arange(times) // times
    return replace(line, borders=tuple(np.unique(parts)[1:].tolist()))


def _region(seen: Floats, spread: float, people: float) -> Bools | None:
    """Return where nearly all people seem to be; None where that is no small part of the grid.

    Cells where somebody seems to be, widened until all but a few people seem to be inside.
    """
    region = _somebody(seen, spread)
    if not region.any():
        return None
    while np.count_nonzero(region) * 2**seen.ndim <= seen.size:
        doubt = spread * math.sqrt(2 * int(np.count_nonzero(region)))
        if seen[region].sum() >= (1 - MISSED) * people - doubt:
            return region
        region = _widened(region)
    return None


def _widened(region: Bools) -> Bools:
    found = region.copy()
    for axis in range(region.ndim):
        wide, old = np.moveaxis(found, axis, 0), np.moveaxis(region, axis, 0)
        wide[1:] |= old[:-1]
        wide[:-1] |= old[1:]
    return found


def _somebody(seen: Floats, spread: float) -> Bools:
    """Return the cells where somebody seems to be: those that stand out, then blocks of which the rest does.

    A sum of m noises is above spread * (u + sqrt(4 (m - 1) u)) with a chance of about exp(-u). The rest of a block
    counts only if it is more than what stands out in it: else a few people around a town would take in all its land.
    """
    found = np.zeros(seen.shape, dtype=np.bool_)
    side = 1
    while True:
        rest, inside = (block_sums(np.where(found == is_in, seen, 0.0), side) for is_in in (False, True))
        many = block_sums(np.where(found, 0.0, 1.0), side)
        u = math.log(max(int(np.count_nonzero(many)), 2)) + RARE[1]
        limit = spread * (u + np.sqrt(4 * np.maximum(many - 1, 0.0) * u))
        stands_out = (many > 0) & (rest > limit) & (rest > inside)
        for axis in range(seen.ndim):
            stands_out = np.repeat(stands_out, side, axis=axis)
        found |= stands_out[tuple(slice(many) for many in seen.shape)]
        if side >= max(seen.shape):
            return found
        side *= 2


class NoisyPart(NamedTuple):
    """A plan, and the noisy answers that are released of it."""

    plan: LinearPlan
    noisy: Ints


def draw_stages(plan: ClustersPlan, table: Ints, people: Ints) -> tuple[ClustersPlan, list[NoisyPart]]:
    """Return the plan for the number of people that was measured, and what is released: cells, people and a look.

    `table` and `people` are true: the people in every cell of the domain, and in all. There is no look where there was
    none, and where it says no more than the cells.
    """
    domain = plan.policy.domain
    everybody = NoisyPart(plan.parts[1], blur(people, plan.parts[1]))
    number = float(_estimates(everybody)[0])
    settled = plan.for_so_many(number)
    cells, look = settled.parts[0], settled.look
    kept = NoisyPart(cells, blur(cells.base.answers([table], domain), cells))
    if look is None or cells.noise is None:
        return settled, [kept, everybody]
    seen = NoisyPart(look, kept.noisy + cells.noise.widening(LOOK, kept.noisy.shape))
    zoomed = closer(look, _estimates(seen), number)
    if zoomed is None:
        return settled, [kept, everybody]
    return settled, [NoisyPart(zoomed, blur(zoomed.base.answers([table], domain), zoomed)), everybody, seen]


def _estimates(part: NoisyPart) -> Floats:
    """Return noisy answers less the mean of their noise, in people."""
    mean = 0.0 if part.plan.noise is None else part.plan.noise.mean()
    unit = float(part.plan.query.unit(part.plan.policy.domain))
    return np.asarray((part.noisy - mean) * unit, dtype=np.float64)
