"""A way to answer a question: what is measured, with which noise, and what it is called."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.noise.law import Law
    from tacit.plan.errors.runs import LineErrors
    from tacit.plan.measure.measured import Responding


@dataclass(frozen=True)
class Strategy:
    """Noise is added to `base`, and the answers are read off that.

    Without a `noise` of its own it is the least that hides the step of the base (`plan/calibrate.py`). `why` says what
    makes it good, `drawn` is a drawing of what is measured, line by line. `errors` are those of counts on a line, and
    `loss` is what the noise costs along the dearest edge, where these are known by the strategy alone.
    """

    name: str
    base: Responding
    noise: Law | None = None
    why: str = ""
    drawn: tuple[str, ...] = ()
    errors: LineErrors | None = None
    loss: Fraction | float | None = None
