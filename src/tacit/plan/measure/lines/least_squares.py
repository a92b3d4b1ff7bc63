"""From noisy sums of a line to its running counts: weighted least squares with the exact counts, in one sweep.

Cells are added up towards their block: the best estimate of a node's total weighs its own cell against the sum of its
children's. The totals, ramps and anchors of blocks make a system with three diagonals for the counts at block ends.
From there the way leads down again: what a node's total and its block's ramp say more than its children did is shared
out among them, by the covariances of `plan/measure/lines/block_trees.py`. Every step is exact elimination, so the
result is that of dense least squares; the work grows with the number of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.plan.measure.lines.layout import Level, LineLayout
from tacit.plan.measure.lines.run_errors import RunErrors, factors, solved_by

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def running_counts(layout: LineLayout, variances: Sequence[float], entries: npt.NDArray[Any]) -> Floats:
    """Return the count of people at or below each value, from noisy entries with noise of these variances by group."""
    errors = RunErrors(layout, variances)
    parts = np.split(np.asarray(entries, dtype=np.float64), np.cumsum(layout.sizes)[:-1])
    rest = parts[len(layout.cells) :]
    ramps = rest.pop(0) if layout.ramps else None
    anchors = rest.pop(0) if layout.anchors else None
    known = rest.pop(0) if not layout.leaves else None
    levels = layout.levels()
    trees = _up(layout, errors, levels, dict(zip(layout.cells, parts, strict=False)), variances)
    blocks, pulls = _chain(layout, errors, levels, trees[0], ramps, anchors, known)
    counts = _down(errors, levels, trees, blocks, pulls)
    running = np.cumsum(counts)
    if known is not None:  # also to the last digit
        running[np.cumsum(np.array(layout.segments)) - 1] = known
    return np.asarray(running)


@dataclass(frozen=True, eq=False)
class _Totals:
    """The totals of all nodes of one size, as far as the cells in them say."""

    best: Floats
    children: Floats  # the sum of what the children say
    ramps: Floats | None  # the expected sum of the running counts in each node, where ramps are measured


def _up(
    layout: LineLayout, errors: RunErrors, levels: list[Level], noisy: dict[int, Floats], variances: Sequence[float]
) -> list[_Totals]:
    """Return what the cells say about nodes of each size, from blocks to single values."""
    single = noisy[1] if 1 in noisy else np.zeros(layout.values)
    found = [_Totals(single, single, single if layout.ramps else None)]
    for level in range(len(levels) - 1, -1, -1):
        size, nodes, below = layout.node_sizes[level], levels[level], found[0]
        children = np.add.reduceat(below.best, nodes.first_child)
        ramps = None
        if below.ramps is not None:
            here = below.ramps + below.best * _later(errors, levels, level)
            ramps = np.add.reduceat(here, nodes.first_child)
        best = children
        if size in noisy:
            doubt = errors.tree.numbers(level, nodes.lengths, "children")
            best = children + doubt / (doubt + variances[layout.cells.index(size)]) * (noisy[size] - children)
            if ramps is not None:
                weight = errors.tree.numbers(level, nodes.lengths, "ramp_weight")
                ramps = ramps + (best - children) * weight / doubt
        found.insert(0, _Totals(best, children, ramps))
    return found


def _chain(
    layout: LineLayout,
    errors: RunErrors,
    levels: list[Level],
    blocks: _Totals,
    ramps: Floats | None,
    anchors: Floats | None,
    known: Floats | None,
) -> tuple[Floats, Floats | None]:
    """Return the total of each block, and by how much its ramp is off, in units of the ramp's variance."""
    tree, (first, last) = errors.tree, layout.block_numbers()
    lengths = levels[0].lengths if levels else np.ones(layout.values, dtype=np.int64)
    weight = 1 / tree.numbers(0, lengths, "variance")
    # each block says what the difference of the counts at its end and its start is
    start, end, between = weight.copy(), weight.copy(), -weight
    for_start, for_end = -weight * blocks.best, weight * blocks.best
    of_end = of_start = ramp = excess = None
    if ramps is not None and blocks.ramps is not None and errors.ramp is not None:
        of_end = tree.numbers(0, lengths, "s")
        of_start = lengths - of_end
        ramp = 1 / (tree.numbers(0, lengths, "h") + errors.ramp)
        excess = ramps - blocks.ramps + of_end * blocks.best
        start += ramp * of_start**2
        end += ramp * of_end**2
        between += ramp * of_start * of_end
        for_start += ramp * of_start * excess
        for_end += ramp * of_end * excess
    # the count at a block's end is the one at the next block's start; segments start at zero
    inner = np.ones(len(lengths), dtype=np.bool_)
    inner[last] = False
    diagonal, right = end, for_end
    diagonal[:-1] += np.where(inner[:-1], start[1:], 0.0)
    right[:-1] += np.where(inner[:-1], for_start[1:], 0.0)
    off = np.where(inner[:-1], between[1:], 0.0)
    if anchors is not None:
        at = slice(None) if layout.leaves else inner
        diagonal[at] += errors.anchor
        right[at] += errors.anchor * anchors
    if known is not None:
        totals = np.diff(known, prepend=0.0)
        several = last > first
        right[last[several] - 1] -= off[last[several] - 1] * totals[several]
        off[last[several] - 1] = 0.0
        diagonal[last], right[last] = 1.0, totals
    ends = solved_by(factors(diagonal, off), right)
    starts = np.append(0.0, ends[:-1])
    starts[first] = 0.0
    if ramp is None or excess is None or of_start is None or of_end is None:
        return ends - starts, None
    return ends - starts, ramp * (excess - of_start * starts - of_end * ends)


def _down(errors: RunErrors, levels: list[Level], trees: list[_Totals], totals: Floats, pulls: Floats | None) -> Floats:
    """Return the single values, from the totals of blocks."""
    tree = errors.tree
    for level, nodes in enumerate(levels):
        below = trees[level + 1].best
        many = np.diff(nodes.first_child, append=len(below))
        lengths = levels[level + 1].lengths if level + 1 < len(levels) else None
        doubt = tree.numbers(level, nodes.lengths, "children")
        missing = (totals - trees[level].children) / doubt
        if pulls is not None:
            missing -= pulls * tree.numbers(level, nodes.lengths, "ramp_weight") / doubt
        share = np.repeat(missing, many)
        if pulls is not None:
            pulls = np.repeat(pulls, many)
            own = 1.0 if lengths is None else tree.numbers(level + 1, lengths, "s")
            share += pulls * (own + _later(errors, levels, level))
        share *= tree.kind(level + 1, 1).variance if lengths is None else tree.numbers(level + 1, lengths, "variance")
        totals = below + share
    return totals


def _later(errors: RunErrors, levels: list[Level], level: int) -> Ints:
    """Return for each child of the nodes of a level how many values of the node come after it."""
    nodes, size = levels[level], errors.tree.sizes[level + 1]
    many = -(-nodes.lengths // size)
    # of the number-th child: the length of the node minus (number + 1) sizes, and of the last one nothing
    from_first = np.repeat(nodes.lengths + size * nodes.first_child - size, many)
    return np.maximum(from_first - size * np.arange(len(from_first)), 0)
