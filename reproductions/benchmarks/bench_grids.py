"""Rectangles on grids: expected error of the chosen strategy beside a uniform quadtree with least squares."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np

import tacit as tc
from tacit.plan.measure.grid_search import TWO_LEVELS, weighted_at
from tacit.plan.measure.regions import GridStrategy
from tacit.plan.plans.grid_plan import GridPlan
from tacit.plan.plans.linear import blur
from tacit.plan.questions.rectangles import in_rectangles

# side, distance: the largest share of the quadtree's mean squared error that is allowed
SMALL = [(32, 32, 2), (32, 32, 4), (32, 32, 8), (64, 64, 4), (64, 64, 16)]
LARGE = [(400, 300, 4), (400, 300, 16), (1000, 1000, 16)]
RECTANGLES = 10_000
REPETITIONS = 50


def planned(wide: int, high: int, far: int) -> tuple[GridPlan, float]:
    """Return the plan for all rectangles at epsilon 1, and how long planning took."""
    policy = tc.Policy(tc.Domain({"place": tc.Grid(wide, high)}), tc.secrets.within(far, "place"))
    start = time.perf_counter()
    plan = tc.explain(tc.rectangles("place", "all"), policy, Fraction(1)).plan
    return plan, time.perf_counter() - start  # type: ignore[return-value]


def quadtree(plan: GridPlan) -> float:
    """Return the expected mean squared error of cells whose sides are powers of two, all with the same noise."""
    longest = max(plan.workload.sizes)
    strategy = GridStrategy(tuple(2**level for level in range(max(1, (longest - 1).bit_length()))))
    weighted = weighted_at(strategy, np.ones(strategy.groups), strategy.changes(plan.moves), plan.epsilon)
    return plan.workload.predictor(strategy, plan.moves)(np.array(weighted.variances))


def measured(plan: GridPlan, repetitions: int) -> tuple[float, float]:
    """Return the mean squared error of random rectangles over releases, and the seconds that one release takes."""
    sizes = plan.workload.sizes
    picked = np.random.default_rng(1)
    along = [[(a, b) for a in range(size) for b in range(a, size)] for size in sizes]
    drawn = [np.array(part)[picked.integers(0, len(part), RECTANGLES)] for part in along]
    ends = np.concatenate(drawn, axis=1)
    truth = plan.base.answers([np.zeros(sizes, dtype=np.int64)], plan.policy.domain)
    squares, start = 0.0, time.perf_counter()
    for _ in range(repetitions):
        cells = plan.cells(blur(truth, plan).astype(np.float64))
        squares += float((in_rectangles(cells, ends) ** 2).mean())
    return squares / repetitions, (time.perf_counter() - start) / repetitions


def main(*, quick: bool = False) -> dict[str, float]:
    """Print the ratios of expected (and drawn) mean squared errors; `quick` leaves large grids out."""
    found: dict[str, float] = {}
    print("  grid        distance  of quadtree  of two levels  drawn/expected  plan s  release s  what is measured")
    for wide, high, far in SMALL if quick else [*SMALL, *LARGE]:
        plan, seconds = planned(wide, high, far)
        ways = plan.tried
        of_tree, of_grid = plan.variance / quadtree(plan), plan.variance / ways[TWO_LEVELS]
        drawn, each = measured(plan, 10 if quick else REPETITIONS)
        name = f"{wide}x{high}_{far}"
        found |= {
            f"{name}_of_quadtree": of_tree,
            f"{name}_of_two_levels": of_grid,
            f"{name}_drawn": drawn / plan.variance,
        }
        what = plan.strategy.partition("least squares on ")[2]
        print(
            f"  {f'{wide} x {high}':11} {far:8} {of_tree:12.3f} {of_grid:14.3f} {drawn / plan.variance:15.3f} "
            f"{seconds:7.2f} {each:10.3f}  {what}"
        )
    return found


if __name__ == "__main__":
    main()
