"""Bounds that hold the noise of an answer with a stated probability.

One entry's noise has exact quantiles; that of an answer which adds up and subtracts several independent entries follows
from the law of their sum (`noise/bounds/of_sums.py`).
"""

from __future__ import annotations

import math
from functools import lru_cache

from tacit.noise.bounds.of_sums import error_bounds
from tacit.noise.law import Law


@lru_cache(maxsize=2**18)
def noise_bounds(noise: Law, plus: int, minus: int, level: float) -> tuple[float, float]:
    """Return (low, high) with low <= sum of `plus` entries minus sum of `minus` entries <= high at this level."""
    if plus + minus == 0:
        return 0.0, 0.0
    mean = (plus - minus) * noise.mean()
    low, high = error_bounds(((noise, 1.0, plus), (noise, -1.0, minus)), level)
    # whole numbers: what lies between two of them is not needed
    return float(math.ceil(mean + low - 1e-9 * (1 + abs(mean)))), float(
        math.floor(mean + high + 1e-9 * (1 + abs(mean)))
    )
