"""What a planted leak is: a mechanism that is wrong on purpose, its claim, and the data that show the mistake."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Release = Callable[[Any, int], Any]


@dataclass(frozen=True, kw_only=True)
class PlantedLeak:
    """A published or classic mistake as a runnable mechanism.

    `release(data, size)` returns `size` independent outputs. `hidden` and `cover` are data sets one secret edge apart,
    on which the mistake shows. `repaired` is the same mechanism without the mistake: it keeps the claim. `exact_loss`
    is the true worst loss on this pair, infinite where an output of `hidden` is impossible at `cover`.
    """

    name: str
    mistake: str
    source: str = "classic"
    claimed_epsilon: float = 1.0
    hidden: Any
    cover: Any
    release: Release
    repaired: Release
    exact_loss: float = math.inf
