"""A way to measure a line: which sums, and the rate of the noise of each group at epsilon 1.

Guarantee   The noise of `sums(.., epsilon)` costs at most epsilon along every move that the scheme was made for, and
            exactly epsilon where no scale had to be raised to the smallest that can be drawn.
Assumes     What moves change in each group is bounded by the layout (`plan/measure/lines/layout.py`).
Why         A rate is the loss of one unit. The rates that a search found are rounded to short decimals and divided, as
            fractions, by the largest loss that they have together, so that this is 1. Scales are 1 / (rate epsilon).
Reference   Blowfish privacy, section 7.2, where the budget is shared out between two groups.
Checked by  tests/property/test_line_schemes.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.noise.grouped import GroupedNoise
from tacit.plan.calibrate import drawable
from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.line_sums import LineSums
from tacit.plan.measure.lines.weights import Workload, mean_error
from tacit.plan.sensitivity.line_moves import LineMoves
from tacit.policy.where import Where


@dataclass(frozen=True)
class Scheme:
    """Sums of a line and the rates of their noise, by group; exact counts have none."""

    name: str
    layout: LineLayout
    rates: tuple[Fraction, ...]

    @classmethod
    def with_rates(cls, name: str, layout: LineLayout, rates: Sequence[float | Fraction], moves: LineMoves) -> Scheme:
        """Return the scheme whose rates are in this proportion and cost 1 in all, exactly."""
        short = [Fraction(f"{float(rate):.5g}") if isinstance(rate, float) else Fraction(rate) for rate in rates]
        largest = max(
            sum((rate * moved for rate, moved in zip(short, changed, strict=False)), Fraction(0))
            for changed in layout.profiles(moves)
        )
        return cls(name, layout, tuple(rate / largest for rate in short))

    def error(self, workload: Workload) -> float:
        """Return the average variance of the answers of a workload at epsilon 1, for noise that is not rounded."""
        exact = [] if self.layout.leaves else [0.0]
        return mean_error(self.layout, [*(float(2 / rate**2) for rate in self.rates), *exact], workload)

    def sums(self, name: str, where: Where | None, epsilon: Fraction) -> LineSums:
        """Return the sums over the values of an attribute, with noise for this epsilon."""
        scales = [drawable(1 / (rate * epsilon)) for rate in self.rates]
        exact = () if self.layout.leaves else (Fraction(0),)
        return LineSums(name, where, self.layout, GroupedNoise(self.layout.sizes, (*scales, *exact)))
