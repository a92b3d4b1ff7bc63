"""What a planted leak is: a mechanism that is wrong on purpose, its claim, and the data that show the mistake."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

Release = Callable[[Any, int], Any]
_Draw = TypeVar("_Draw", bound=Callable[..., Any])


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


leaks: dict[str, PlantedLeak] = {}  # in the order in which they are written down


def plant(
    hidden: Any, cover: Any, *, source: str = "classic", claimed: float = 1.0, loss: float = math.inf
) -> Callable[[_Draw], _Draw]:
    """Make a planted leak of the mechanism `draw(data, size, broken=..)`, under its own name with dashes.

    The first line of its docstring is the mistake. Lines that `broken` decides are marked.
    """

    def register(draw: _Draw) -> _Draw:
        name, said = draw.__name__.replace("_", "-"), (draw.__doc__ or " ").partition("\n")[0].removesuffix(".")
        leaks[name] = PlantedLeak(
            name=name,
            mistake=said[0].lower() + said[1:],
            source=source,
            claimed_epsilon=claimed,
            hidden=hidden,
            cover=cover,
            release=partial(draw, broken=True),
            repaired=partial(draw, broken=False),
            exact_loss=loss,
        )
        return draw

    return register
