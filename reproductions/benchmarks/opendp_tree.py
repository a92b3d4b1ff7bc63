"""Ranges under plain differential privacy: OpenDP's b-ary tree with consistency beside the trees of this package."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit.plan.measure.grid_search import candidates
from tacit.plan.measure.workload import Workload
from tacit.plan.sensitivity.moves import GridMoves

REPLACED = 2  # cells that a person who is replaced changes, each by one


def opendp_range_variance(values: int, epsilon: float, *, fan_out: int | None = None, releases: int = 200) -> float:
    """Return the mean squared error over all ranges of OpenDP's tree, measured; by default with its own fan-out."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    fan_out = dp.t.choose_branching_factor(values) if fan_out is None else fan_out
    domain = dp.vector_domain(dp.atom_domain(T=int), size=values), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*domain, leaf_count=values, branching_factor=fan_out)
    consistent = dp.t.make_consistent_b_ary_tree(fan_out)
    nodes = tree.output_domain, tree.output_metric
    scale = dp.binary_search_param(
        lambda scale: tree >> dp.m.make_laplace(*nodes, scale), d_in=REPLACED, d_out=float(epsilon)
    )
    release = tree >> dp.m.make_laplace(*nodes, scale) >> consistent
    total = 0.0
    for _ in range(releases):
        below = np.append(0.0, np.cumsum(release([0] * values)[:values]))
        # the sum over all pairs of (y_i - y_j)^2
        total += len(below) * float((below**2).sum()) - float(below.sum()) ** 2
    return total / releases / (values * (values + 1) / 2)


def main(*, quick: bool = False) -> dict[str, float]:
    """Print the mean squared error of a range of 4,357 values at epsilon 1."""
    values, epsilon = 4357, Fraction(1)
    moves = GridMoves.on_line((values,), values - 1, may_enter_or_leave=False)
    ours = candidates(moves, Workload((values, 1)), epsilon)[0].variance
    theirs = opendp_range_variance(values, float(epsilon), releases=10 if quick else 200)
    found = {"opendp": theirs, "tree": ours, "over_opendp": ours / theirs}
    print(f"mean squared error of a range, {values} values, epsilon {epsilon}:", end=" ")
    print(f"OpenDP {theirs:.0f}, weighted tree {ours:.0f}, ratio {ours / theirs:.2f}")
    return found


if __name__ == "__main__":
    main()
