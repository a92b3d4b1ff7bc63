"""The published strategies for ordered values, with the budget repaired, and least squares on top.

*Ordered*: the running counts themselves. *Ordered hierarchical*: running counts at the ends of blocks of `reach`
values, and in each block a tree. As printed, the roots of trees are published and nobody pays for them; here, roots
are not measured: the running counts at the ends of blocks have what they would say, and the last one is exact.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.scheme import Scheme
from tacit.plan.sensitivity.line_moves import LineMoves


def ordered(moves: LineMoves) -> Scheme:
    """Return noisy running counts at all values."""
    layout = LineLayout(moves.segments, moves.leaves, 1, (), anchors=True)
    return Scheme.with_rates("ordered", layout, [Fraction(1)], moves)


def ordered_hierarchical(moves: LineMoves, fan_out: int) -> Scheme:
    """Return running counts after every `reach` values with trees of a fan-out between, and the published shares.

    The shares minimise 4 (n - reach) / (n + 1) / e_s^2 + 8 (f - 1) h^3 n / (n + 1) / e_h^2 (equation 14, with whole h).
    """
    longest = max(moves.segments)
    block = longest if moves.reach >= longest - 1 else max(moves.reach, 1)
    if block == 1:
        return ordered(moves)
    sizes = [1]
    while sizes[0] * fan_out < block:
        sizes.insert(0, sizes[0] * fan_out)
    height = len(sizes)
    layout = LineLayout(moves.segments, moves.leaves, block, tuple(sizes), anchors=block < longest)
    rates: list[float] = [1.0] * height
    if block < longest:
        running = (4 * (longest - block) / (longest + 1)) ** (1 / 3)
        trees = (8 * (fan_out - 1) * height**3 * longest / (longest + 1)) ** (1 / 3)
        rates = [trees / (2 * height)] * height + [running / layout.moved(moves.reach)[height]]
    return Scheme.with_rates(f"ordered hierarchical, fan-out {fan_out}", layout, rates, moves)
