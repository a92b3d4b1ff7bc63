"""Ramps and cells: block averages of running counts, and the single values (with cells between) inside of blocks.

A running count at one place tells little for its cost: a move by `reach` values changes as many of them as it crosses.
The sum of the running counts of a block, divided by its length, is as good an anchor for its surroundings, and all of
these together change by reach / block along a move, without rounding up, for blocks of any length. In whole numbers a
person with value v adds clamp(end - v, 0, block) to the sum of a block.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.scheme import Scheme
from tacit.plan.measure.lines.search import Sizes, best_sizes
from tacit.plan.measure.lines.weights import RateSearch, Workload
from tacit.plan.sensitivity.line_moves import LineMoves

_LEAST_SHARE: Final = 0.02  # of the loss


def best_ramps(moves: LineMoves, workload: Workload) -> Scheme | None:
    """Return the ramps and cells whose sizes and weights are best for a workload; None on lines without two blocks."""
    weighing = RateSearch(moves, workload)
    longest = max(moves.segments)
    reach = min(moves.reach, longest - 1)

    def layout_of(sizes: Sizes) -> LineLayout | None:
        if not sizes:
            return None
        block, *inner = sizes
        fits = block < longest and all(a > b > 1 for a, b in zip(sizes, inner, strict=False))
        if block < 2 or not fits:
            return None
        return LineLayout(weighing.moves.segments, moves.leaves, block, (*inner, 1), ramps=True)

    if reach < 1 or longest < 2:
        return None
    guesses: list[Sizes] = []
    for share in (0.8, 0.5):
        block = min(max(round(share * reach), 2), longest - 1)
        guesses += [(block,), (block, round(block**0.5)), (block, round(block ** (2 / 3)), round(block ** (1 / 3)))]
    found = best_sizes(weighing, layout_of, guesses)
    # ramps that hardly cost anything say hardly anything: that is a tree
    if found is None or found.rates[-1] * reach < _LEAST_SHARE:
        return None
    return Scheme.with_rates("ramps and cells", replace(found.layout, segments=moves.segments), found.rates, moves)
