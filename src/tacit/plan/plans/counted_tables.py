"""Tables of counts as a plan publishes them: which noise each cell has, and which sums of cells are exact.

For whoever asks what several cells tell together, such as their ratio. Everything here is public, as a plan is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Ints
from tacit.noise.bounds.of_sums import Term
from tacit.plan.errors.error_laws import Spread

if TYPE_CHECKING:
    from tacit.plan.plans.linear import LinearPlan


@dataclass(frozen=True, eq=False)
class CountedTable:
    """A table of counts of everybody, one axis for each name. Arrays have an entry for each cell, in order.

    The estimate of a cell is off by the terms of `laws[which]`: independent noises with their weights, the cell's own
    first; none where it is exact. Sums over cells of the same number in `groups` are exact; None where none is used.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]
    laws: tuple[tuple[Term, ...], ...]
    which: Ints
    groups: Ints | None


def counted_tables(plan: LinearPlan) -> Iterator[CountedTable]:
    """Yield the tables of a plan whose cells are measured one by one; none where noise depends on places."""
    domain, spread = plan.policy.domain, plan.spread
    names = plan.query.tables(domain)
    measured = plan.base.tables(domain) == names and isinstance(spread, Spread)
    everybody = all(tally.where is None for tally in plan.base.tallies(plan.policy))
    if not (measured and everybody) or not all(law.is_alike for law, _ in plan.laws()):
        return
    assert isinstance(spread, Spread)  # noqa: S101 - asked above
    start = 0
    for number, table in enumerate(names):
        shape = tuple(domain[name].size for name in table)
        cells = slice(start, start + math.prod(shape))
        groups = None if plan.groups is None else plan.groups[number]
        yield CountedTable(table, shape, spread.laws, np.asarray(spread.which[cells]), groups)
        start = cells.stop
