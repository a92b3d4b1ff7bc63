"""What a planted leak is: a mechanism that is wrong on purpose, with what it claims and where to look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Release = Callable[[Any, int], Any]


@dataclass(frozen=True)
class PlantedLeak:
    """A published or classic mistake as a runnable mechanism.

    `release(data, size)` returns `size` independent outputs. `hidden` and `cover` are data sets one secret edge apart,
    on which the mistake shows. `repaired` is the same mechanism with the broken line mended: it keeps the claim.
    `exact_loss` is the true worst loss on this pair where it can be written down (infinite where an output of `hidden`
    is impossible at `cover`).
    """

    name: str
    mistake: str
    source: str
    claimed_epsilon: float
    hidden: Any
    cover: Any
    release: Release
    repaired: Release
    exact_loss: float | None = None
