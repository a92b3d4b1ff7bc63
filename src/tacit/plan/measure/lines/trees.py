"""Trees of cells: the values of each segment, cells of some of them, and so on down to single values.

Under plain differential privacy nothing else is needed. With levels of different weights, and fan-outs that are free,
trees have less noise than the uniform tree whose nodes all have the same scale.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import log
from typing import Final

from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.scheme import Scheme
from tacit.plan.measure.lines.search import Sizes, best_sizes
from tacit.plan.measure.lines.weights import RateSearch, Workload
from tacit.plan.sensitivity.line_moves import LineMoves

_USUAL_FAN_OUT: Final = 18  # of the best trees for ranges


def single_values(moves: LineMoves) -> Scheme:
    """Return noisy counts of the single values, and nothing else."""
    longest = max(moves.segments)
    layout = LineLayout(moves.segments, moves.leaves, longest, (1,))
    return Scheme.with_rates("single values", layout, [Fraction(1)], moves)


def uniform_tree(moves: LineMoves, fan_out: int) -> Scheme:
    """Return the tree with one fan-out, and the same noise on all nodes that are not exact."""
    longest = max(moves.segments)
    root = (longest,) if moves.leaves and longest > 1 else ()
    layout = _tree(moves, (*root, *_powers(fan_out, longest)))
    return Scheme.with_rates(f"uniform tree of fan-out {fan_out}", layout, [Fraction(1)] * len(layout.cells), moves)


def best_tree(moves: LineMoves, workload: Workload) -> Scheme:
    """Return the tree whose fan-outs and weights are best for a workload."""
    weighing = RateSearch(moves, workload)
    longest = max(moves.segments)

    def layout_of(sizes: Sizes) -> LineLayout | None:
        whole = longest + 1 if moves.leaves else longest  # a root is measured where it is not exact
        fits = all(large > small for large, small in zip((whole, *sizes), (*sizes, 1), strict=True))
        return _tree(weighing.moves, sizes) if fits else None

    usual = round(log(longest) / log(_USUAL_FAN_OUT)) if longest > 1 else 1
    levels = sorted({1, max(usual - 1, 1), usual, usual + 1} - {0})
    guesses = [tuple(round(longest ** (1 - level / many)) for level in range(1, many)) for many in levels]
    guesses += [_powers(fan_out, longest) for fan_out in (12, 16, 20)]
    if moves.leaves:
        guesses += [(longest, *sizes) for sizes in guesses]
    found = best_sizes(weighing, layout_of, guesses)
    if found is None:  # a line of one value
        return single_values(moves)
    return Scheme.with_rates("tree", replace(found.layout, segments=moves.segments), found.rates, moves)


def _tree(moves: LineMoves, sizes: Sizes) -> LineLayout:
    """Return the tree with cells of these sizes and single values."""
    return LineLayout(moves.segments, moves.leaves, max(moves.segments), (*sizes, 1))


def _powers(fan_out: int, longest: int) -> Sizes:
    """Return the powers of a fan-out below a length, from large to small, without 1."""
    sizes: list[int] = []
    while (size := fan_out ** (len(sizes) + 1)) < longest:
        sizes.insert(0, size)
    return tuple(sizes)
