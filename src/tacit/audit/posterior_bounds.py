"""Bounds on posteriors over all distributions that an adversary holds for possible: linear-fractional programs.

The adversary knows the dependence only roughly: a mapping with one or several of

    contamination  a share s: the truth is (1 - s) times the dependence plus s times anything
    variation      a distance: no event's probability is further than this from the dependence's
    cells          an amount: no cell of the joint table is further than this from the dependence's
    intervals      bounds on probabilities of values, {"arrival": {"late": (0.1, 0.3)}}, or of combinations of values,
                   {("arrival", "leaving"): {("late", "early"): (0, 0.1)}}; alone, they are all that is known

All of them must hold, and each is a polytope. Of a single kind only the attributes that matter are kept (the target,
those of which something was seen, those with intervals): the image of a polytope of joints is again one of the same
kind, so bounds stay sharp. Of several kinds all attributes are kept. A network is relaxed: distributions near it are
allowed that no network with its arrows has, so bounds are safe, and may be wider than over such networks alone.

Guarantee   For every distribution p that the knowledge allows and that can bring about what was seen, the posterior
            probability of a value lies between `low` and `high`, up to the stated `gap`; and some p come as close to
            either end as one likes.
Assumes     As suppression, but for the dependence: its values are known, its probabilities as far as `knows` says.
Why         The posterior is (c.p) / (d.p), where d is the chance of what was seen in each cell and c is d in the cells
            with the value, else 0. With y = p / (d.p) and t = 1 / (d.p) (Charnes and Cooper) it is the linear program:
            maximise c.y, where d.y = 1, sum(y) = t and every bound on p holds for y times t. Any multipliers of the
            constraints bound it from above (weak duality), so what is returned is computed from the solver's
            multipliers and not from its point; the point, divided anew, says how far off that can be.
            Over one neighbourhood the optimum is known beforehand: at the optimum v, mass in a cell is worth
            (1 - v) d if it has the value and -v d if not, so that one order of the cells is best for every v; the
            distribution that favours this order attains the optimum, and no solver is needed.
Reference   Charnes and Cooper, Programming with linear fractional functionals, 1962.
Checked by  tests/property/test_posterior_bounds.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.dependence.suppression import Suppression
from tacit.drawing import Held
from tacit.errors import PlanError, kind_of, nearest, word_or_kind

if TYPE_CHECKING:
    import pandas as pd

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


LARGEST_GAP: Final = 1e-7  # between the two sides of a program; more is refused
Cells = npt.NDArray[np.bool_]
_ROUNDING: Final = 1e-12
_SMALLEST_WEIGHT: Final = 1e-9  # of a cell, against the largest: below it a solver's tolerance decides


@dataclass(frozen=True, repr=False)
class PosteriorBounds(Held):
    """The least and largest posterior probability of each value, over everything that is held for possible.

    `sensitive` bounds the probability of being sensitive. `gap` is how far these ends are, at most, from what some
    distribution attains. `relaxed` says that a network was relaxed: its bounds are safe, and may be wider than needed.
    """

    attribute: str
    low: Mapping[Any, float]
    high: Mapping[Any, float]
    sensitive: tuple[float, float]
    knows: str
    gap: float
    relaxed: bool

    @property
    def odds(self) -> tuple[float, float]:
        """The least and largest odds of being sensitive."""
        low, high = (share / (1 - share) if share < 1 else math.inf for share in self.sensitive)
        return low, high

    @property
    def frame(self) -> pd.DataFrame:
        """The bounds, as a pandas frame."""
        import pandas as pd

        return pd.DataFrame({self.attribute: list(self.low), "low": self.low.values(), "high": self.high.values()})

    def __str__(self) -> str:
        each = ", ".join(f"{value} {self.low[value]:.4g} to {self.high[value]:.4g}" for value in self.low)
        wider = "; over all joints near the network, also those without its arrows" if self.relaxed else ""
        return (
            f"{self.attribute}: {each}; sensitive {self.sensitive[0]:.4g} to {self.sensitive[1]:.4g}, to an adversary "
            f"who knows the dependence up to {self.knows}{wider}"
        )


def posterior_bounds(
    release: Suppression, attribute: str, knows: Any, *, suppressed: Any = None, released: Any = None
) -> PosteriorBounds:
    """Return sharp bounds on the posterior of an attribute, for an adversary who knows the dependence only roughly."""
    dependence = release.dependence
    dependence.place(attribute)
    knowledge = read_knowledge(dependence, knows)
    evidence = release.evidence(suppressed, released)
    seen = [dependence.names[place] for place in evidence]
    several = len(knowledge.sizes) + bool(knowledge.intervals) > 1
    keep = tuple(dict.fromkeys([attribute, *seen, *(dependence.names if several else knowledge.names)]))
    allowed = possible(dependence, knowledge, keep)
    values = dependence.values[attribute]
    sides = [len(dependence.values[name]) for name in keep]
    logs = np.zeros(sides)
    for place, weights in evidence.items():
        axis = keep.index(dependence.names[place])
        logs = logs + weights.reshape([-1 if other == axis else 1 for other in range(len(sides))])
    target = np.repeat(np.arange(len(values)), math.prod(sides[1:]))
    near = _Neighbourhood if not several and not knowledge.intervals else _FractionalProgram
    ranges = near(allowed, logs.ravel())
    ends = [ranges.range_of(target == code) for code in range(len(values))]
    sensitive = ranges.range_of(release.is_sensitive(attribute)[target])
    return PosteriorBounds(
        attribute,
        MappingProxyType(dict(zip(values, (low for low, _ in ends), strict=True))),
        MappingProxyType(dict(zip(values, (high for _, high in ends), strict=True))),
        sensitive,
        str(knowledge),
        ranges.gap,
        dependence.is_network,
    )


class _Neighbourhood:
    """One neighbourhood of the dependence: one order of the cells is best whatever the optimum is."""

    gap = 0.0

    def __init__(self, allowed: Possible, logs: Floats) -> None:
        self._allowed, self._logs = allowed, logs
        if self._chance(np.argsort(-logs, kind="stable"), np.ones(len(logs), dtype=np.bool_)) == -np.inf:
            raise _impossible()

    def range_of(self, wanted: Cells) -> tuple[float, float]:
        """Return the least and the largest share that the wanted cells can have of what was seen."""
        return 1 - self._largest(~wanted), self._largest(wanted)

    def _largest(self, wanted: Cells) -> float:
        order = np.lexsort((np.where(wanted, -self._logs, self._logs), ~wanted))
        above, below = self._chance(order, wanted), self._chance(order, ~wanted)
        return 1 / (1 + math.exp(below - above)) if above > -np.inf and below - above < 700 else 0.0

    def _chance(self, order: npt.NDArray[np.int64], cells: Cells) -> float:
        """Return the logarithm of the chance of what was seen in some cells, where an order of cells is favoured."""
        with np.errstate(divide="ignore"):
            logs = np.log(self._allowed.favouring(order)[cells]) + self._logs[cells]
        return float(np.logaddexp.reduce(logs, initial=-np.inf))


def _scaled(logs: Floats) -> Floats:
    """Return chances of what was seen, the largest one being one; refuse a range that a solver cannot tell apart."""
    found: Floats = np.exp(logs - logs.max()) if logs.max() > -np.inf else np.zeros(len(logs))
    small = (logs > -np.inf) & (found < _SMALLEST_WEIGHT)
    if small.any() or not found.any():
        raise PlanError(
            "makes some values too unlikely for bounds that can be trusted",
            key="suppressed",
            given=float(f"{found[small].min() if small.any() else 0.0:.3g}"),
            fix="Ask about fewer questions (epsilon times questions at most 20), or give one kind of knowledge.",
        )
    return found


def _impossible() -> PlanError:
    return PlanError(
        "allows no distribution that can bring this about",
        key="knows",
        fix="Check that intervals do not contradict each other, and that what was seen is possible.",
    )


class _FractionalProgram:
    """The programs over one set of distributions and one pattern; they differ in what is maximised."""

    def __init__(self, allowed: Possible, logs: Floats) -> None:
        self.gap = 0.0
        chances = _scaled(logs)
        self._falls: tuple[slice, int] | None = None  # the rows of the centre, and the row of the distance
        self._chances = chances
        cells = len(chances)
        moved = allowed.variation is not None
        one = sparse.identity(cells, format="csr")
        none = sparse.csr_matrix((cells, cells))
        rows: list[Any] = [[one, none], [-one, none]] if moved else [[one], [-one]]
        limits = [allowed.high, -allowed.low]
        if moved:  # p + fall >= centre, where all falls together are at most the distance
            rows += [[-one, -one], [sparse.csr_matrix((1, cells)), sparse.csr_matrix(np.ones((1, cells)))]]
            limits += [-allowed.centre, np.array([allowed.variation])]
            self._falls = slice(2 * cells, 3 * cells), 3 * cells
        for mask, low, high in allowed.events:
            event = sparse.csr_matrix(mask[None, :].astype(np.float64))
            blank = [sparse.csr_matrix((1, cells))] if moved else []
            rows += [[event, *blank], [-event, *blank]]
            limits += [np.array([high]), np.array([-low])]
        self._most = np.concatenate(limits)
        self._bounds = sparse.csr_matrix(sparse.bmat(rows))
        self._columns = self._bounds.shape[1]
        last = sparse.csr_matrix(-self._most[:, None])
        self._rows: Any = sparse.csr_matrix(sparse.bmat([[self._bounds, last]]))
        whole = np.zeros((2, self._columns + 1))
        whole[0, :cells], whole[0, -1] = 1, -1  # sum(y) = t
        whole[1, :cells] = chances  # d.y = 1
        self._whole = whole

    def range_of(self, wanted: Cells) -> tuple[float, float]:
        """Return the least and the largest share that the wanted cells can have of what was seen."""
        ends = [self._largest(np.where(cells, self._chances, 0.0)) for cells in (~wanted, wanted)]
        return max(1 - ends[0], 0.0), min(ends[1], 1.0)

    def _largest(self, wanted: Floats) -> float:
        if not wanted.any():
            return 0.0
        cells = len(wanted)
        goal = np.zeros(self._columns + 1)
        goal[:cells] = wanted
        found = linprog(
            -goal,
            A_ub=self._rows,
            b_ub=np.zeros(len(self._most)),
            A_eq=self._whole,
            b_eq=[0.0, 1.0],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.x is None:
            raise _impossible()
        point = found.x[:cells]
        reached = float(wanted @ point / (self._chances @ point))
        bound = self._bound(goal, -found.ineqlin.marginals)
        if not bound - reached <= LARGEST_GAP:
            raise PlanError(
                "cannot be bounded with a certificate",
                key="knows",
                given=float(f"{bound - reached:.3g}"),
                fix="Ask about fewer questions or attributes.",
            )
        self.gap = max(self.gap, bound - reached)
        return bound

    def _bound(self, goal: Floats, costs: Floats) -> float:
        """Return what the multipliers of the bounds prove: a number that c.y cannot exceed, however they were found.

        For any costs >= 0 of the rows G p <= h, let rest = c - G'costs + h.costs in every cell. As sum(y) = t and
        G y <= h t, c.y is at most the sum of rest * y. If rest <= price * d everywhere, that is at most price.
        """
        costs = np.maximum(costs, 0.0)
        if self._falls is not None:  # a fall costs as much as all of them together, so that no fall has a gain
            rows, total = self._falls
            costs[total] = max(costs[total], costs[rows].max())
        cells = len(self._chances)
        rest = (goal[:-1] - self._bounds.T @ costs)[:cells] + self._most @ costs
        seen = self._chances > 0
        # cells in which this cannot be seen must have no gain at all; beyond rounding, nothing is proved
        proved = seen.all() or rest[~seen].max() <= _ROUNDING
        return float((rest[seen] / self._chances[seen]).max()) if proved else math.inf
