"""Bounds on posteriors over all distributions that somebody holds for possible: linear-fractional programs.

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
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linprog

from tacit.arrays import Floats
from tacit.audit.exclusion_audits.partial_knowledge import Possible, possible, read_knowledge
from tacit.dependence.suppression import Suppression
from tacit.errors import PlanError

if TYPE_CHECKING:
    import pandas as pd

LARGEST_GAP: Final = 1e-7  # between the two sides of a program; more is refused
Cells = npt.NDArray[np.bool_]
_ROUNDING: Final = 1e-12
_SMALLEST_WEIGHT: Final = 1e-9  # of a cell, against the largest: below it a solver's tolerance decides


@dataclass(frozen=True)
class PosteriorBounds:
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
