"""An adversary who knows the dependence only roughly: the set of distributions that they hold for possible.

What they know is a mapping with one or several of

    contamination  a share s: the truth is (1 - s) times the dependence plus s times anything
    variation      a distance: no event's probability is further than this from the dependence's
    cells          an amount: no cell of the joint table is further than this from the dependence's
    intervals      bounds on probabilities of values, {"arrival": {"late": (0.1, 0.3)}}, or of combinations of values,
                   {("arrival", "leaving"): {("late", "early"): (0, 0.1)}}; alone, they are all that is known

Several together must all hold. Each is a polytope. Only the attributes that matter are kept (the target, those of which
something was seen, those with intervals): the image of a polytope of joints is again one of the same kind, so bounds
stay sharp. That holds for each kind by itself; where several are given, all attributes are kept.

A network is relaxed: also distributions near it are allowed that no network with its arrows has. Bounds are then safe,
and may be wider than those over such networks alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.errors import PlanError, kind_of, nearest, word_or_kind

MOST_BOUNDED: Final = 20_000  # cells of a linear program
_NEIGHBOURHOODS: Final = ("contamination", "variation", "cells")
_KINDS: Final = (*_NEIGHBOURHOODS, "intervals")


@dataclass(frozen=True)
class Knowledge:
    """What is known, checked: the size of each neighbourhood, and intervals as (attributes, values, low, high)."""

    sizes: Mapping[str, float]
    intervals: tuple[tuple[tuple[str, ...], tuple[Any, ...], float, float], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that intervals are about."""
        return tuple(dict.fromkeys(name for names, *_ in self.intervals for name in names))

    def __str__(self) -> str:
        said = [f"{kind} {size:g}" for kind, size in self.sizes.items()]
        return " and ".join([*said, *([f"{len(self.intervals)} intervals"] if self.intervals else [])])


@dataclass(frozen=True, eq=False)
class Possible:
    """Distributions p over cells: low <= p <= high, near a centre in variation, and with bounds on events."""

    low: Floats
    high: Floats
    centre: Floats
    variation: float | None
    events: tuple[tuple[npt.NDArray[np.bool_], float, float], ...]

    def favouring(self, order: npt.NDArray[np.int64]) -> Floats:
        """Return the one of them with the most in the first cells of an order and the least in the last.

        For one neighbourhood without events: it is filled up from its lower bounds, or as much as the variation allows
        is taken from the last cells and given to the first.
        """
        if self.variation is None:
            room = (self.high - self.low)[order]
            before = np.cumsum(room) - room
            found = self.low.copy()
            found[order] += np.clip(1 - self.low.sum() - before, 0, room)
            return found
        last = order[::-1]
        before = np.cumsum(self.centre[last]) - self.centre[last]
        taken = np.clip(self.variation - before, 0, self.centre[last])
        found = self.centre.copy()
        found[last] -= taken
        found[order[0]] += taken.sum()
        return found


def read_knowledge(dependence: Dependence, given: Any) -> Knowledge:
    """Return what is known, checked, or refuse."""
    if not isinstance(given, Mapping) or not given:
        raise PlanError(
            f"must be a mapping with at least one entry, not {kind_of(given)}",
            key="knows",
            fix='Write knows={"variation": 0.05}.',
        )
    sizes, intervals = {}, []
    for kind, size in given.items():
        if kind not in _KINDS:
            fix = nearest(kind, list(_KINDS)) if isinstance(kind, str) else f"Known: {', '.join(_KINDS)}."
            raise PlanError("must be a kind of knowledge", key="knows", given=word_or_kind(kind), fix=fix)
        if kind == "intervals":
            intervals = _read_intervals(dependence, size)
        else:
            sizes[kind] = _share(size, f"knows.{kind}")
    return Knowledge(sizes, tuple(intervals))


def possible(dependence: Dependence, knowledge: Knowledge, keep: Sequence[str]) -> Possible:
    """Return the distributions of some attributes that the knowledge allows, over all their combinations in order."""
    places = [dependence.place(name) for name in keep]
    sides = tuple(len(dependence.domains[place]) for place in places)
    cells = math.prod(sides)
    if cells > MOST_BOUNDED:
        raise PlanError(
            f"needs a program of {cells:,} cells, and {MOST_BOUNDED:,} is the most",
            key="knows",
            given=", ".join(keep),
            fix="Give one kind of knowledge, intervals of fewer attributes, or a pattern of fewer.",
        )
    low, high = np.zeros(cells), np.ones(cells)
    centre = np.exp(dependence.weighed({}, places).dense()).ravel() if knowledge.sizes else np.zeros(cells)
    if "contamination" in knowledge.sizes:
        low = np.maximum(low, (1 - knowledge.sizes["contamination"]) * centre)
    if "cells" in knowledge.sizes:
        below, above = _cell_bounds(dependence, places, sides, knowledge.sizes["cells"])
        low, high = np.maximum(low, below), np.minimum(high, above)
    events = []
    codes = np.indices(sides).reshape(len(sides), -1)
    for names, values, least, most in knowledge.intervals:
        mask = np.ones(cells, dtype=np.bool_)
        for name, value in zip(names, values, strict=True):
            mask &= codes[list(keep).index(name)] == dependence.values[name].index(value)
        events.append((mask, least, most))
    return Possible(low, high, centre, knowledge.sizes.get("variation"), tuple(events))


def _cell_bounds(
    dependence: Dependence, places: Sequence[int], sides: tuple[int, ...], amount: float
) -> tuple[Floats, Floats]:
    """Return the least and most that cells of the whole joint let a cell of some attributes have."""
    joint = dependence.weighed({}, range(len(dependence.names)))
    chances = np.exp(joint.logs)
    numbers = np.ravel_multi_index(tuple(joint.codes[place].astype(np.int64) for place in places), sides)
    cells = math.prod(sides)
    below: Floats = np.bincount(numbers, np.maximum(chances - amount, 0), minlength=cells).astype(np.float64)
    above = np.bincount(numbers, chances + amount, minlength=cells)
    others = math.prod(map(len, dependence.domains)) // cells - np.bincount(numbers, minlength=cells)
    most: Floats = np.minimum(above + amount * others.astype(np.float64), 1.0)
    return below, most


def _share(given: Any, key: str) -> float:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= float(given) <= 1:
        raise PlanError("must lie between 0 and 1", key=key, given=word_or_kind(given), fix="Write 0.05.")
    return float(given)


def _read_intervals(dependence: Dependence, given: Any) -> list[tuple[tuple[str, ...], tuple[Any, ...], float, float]]:
    key, fix = "knows.intervals", 'Write {"arrival": {"late": (0.1, 0.3)}}.'
    if not isinstance(given, Mapping) or not given:
        raise PlanError(f"must be a mapping with at least one entry, not {kind_of(given)}", key=key, fix=fix)
    found = []
    for about, bounds in given.items():
        names = about if isinstance(about, tuple) else (about,)
        for name in names:
            dependence.place(name, key=key)
        if not isinstance(bounds, Mapping):
            raise PlanError(f"must be a mapping, not {kind_of(bounds)}", key=f"{key}.{about}", fix=fix)
        for cell, pair in bounds.items():
            values = cell if isinstance(about, tuple) else (cell,)
            if not isinstance(values, tuple) or len(values) != len(names):
                raise PlanError(f"must have a value for each of {', '.join(names)}", key=key, given=cell, fix=fix)
            for name, value in zip(names, values, strict=True):
                dependence.code(name, value, key=f"{key}.{name}")
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise PlanError("must be two numbers, low and high", key=f"{key}.{about}", given=pair, fix=fix)
            low, high = (_share(end, f"{key}.{about}") for end in pair)
            if low > high:
                raise PlanError("must have its low end first", key=f"{key}.{about}", given=list(pair), fix=fix)
            found.append((names, values, low, high))
    return found
