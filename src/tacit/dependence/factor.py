"""Tables of weights in which most cells are zero, and exact inference on them by elimination.

Only cells above zero are stored, each with the logarithm of its weight: after a thousand suppressions a weight may be
exp(-1000), and it still decides between two values that are both so unlikely. The size of a table is the number of its
possible cells, not the product of its sides.

Elimination multiplies tables only around the variable that is summed out next. The order is greedy: first every
variable that is in one table only, then the variable whose neighbours together have the fewest cells. Any order gives
the same result, but a bad order may need tables that are too large.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError

Codes = npt.NDArray[np.unsignedinteger]

MOST_CELLS: Final = 2**22  # of one table: some hundred megabytes while it is made
_MOST_NUMBERS: Final = 2**62


@dataclass(frozen=True, eq=False)
class Factor:
    """Possible cells of a table. `codes` has a row for each variable: the position of its value in every cell."""

    variables: tuple[int, ...]
    sizes: tuple[int, ...]
    codes: Codes
    logs: Floats

    @property
    def cells(self) -> int:
        """How many cells are possible."""
        return len(self.logs)

    def weighed(self, variable: int, logs: Floats) -> Factor:
        """Return the table times a weight that depends on one variable, without the cells that become impossible."""
        added = logs[self.codes[self.variables.index(variable)]]
        stay = added > -np.inf
        if stay.all():
            return Factor(self.variables, self.sizes, self.codes, self.logs + added)
        return Factor(self.variables, self.sizes, self.codes[:, stay], self.logs[stay] + added[stay])

    def summed(self, keep: Sequence[int]) -> Factor:
        """Return the table over the variables to keep, in this order; all others are summed out."""
        rows = [self.variables.index(variable) for variable in keep]
        sizes = tuple(self.sizes[row] for row in rows)
        if len(rows) == len(self.variables):  # nothing to sum: cells are only named in another order
            return Factor(tuple(keep), sizes, self.codes[rows], self.logs)
        groups, count = _groups(self.codes[rows], sizes, self.cells)
        first, logs = _log_sums(groups, self.logs, count)
        return Factor(tuple(keep), sizes, self.codes[rows][:, first], logs)

    def times(self, other: Factor) -> Factor:
        """Return the product of two tables; cells that differ in a shared variable have no product."""
        shared = [variable for variable in self.variables if variable in other.variables]
        new = [row for row, variable in enumerate(other.variables) if variable not in shared]
        left = self.codes[[self.variables.index(variable) for variable in shared]]
        right = other.codes[[other.variables.index(variable) for variable in shared]]
        sizes = [self.sizes[self.variables.index(variable)] for variable in shared]
        numbers, _ = _numbers(np.concatenate([left, right], axis=1), sizes)
        here, there = numbers[: self.cells], numbers[self.cells :]
        order = np.argsort(there, kind="stable")
        starts = np.searchsorted(there[order], here, side="left")
        matches = np.searchsorted(there[order], here, side="right") - starts
        total = int(matches.sum())
        if total > MOST_CELLS:
            raise too_large(total)
        rows = np.repeat(np.arange(self.cells), matches)
        within = np.arange(total) - np.repeat(np.cumsum(matches) - matches, matches)
        met = order[np.repeat(starts, matches) + within]
        codes = np.concatenate([self.codes[:, rows], other.codes[new][:, met]])
        return Factor(
            (*self.variables, *(other.variables[row] for row in new)),
            (*self.sizes, *(other.sizes[row] for row in new)),
            codes,
            self.logs[rows] + other.logs[met],
        )

    def dense(self) -> Floats:
        """Return the logarithms as an array with one axis for each variable; impossible cells have minus infinity."""
        return log_table(list(self.codes), self.sizes, self.logs)


def too_large(cells: int) -> PlanError:
    """Return the refusal of a table that does not fit into memory."""
    return PlanError(
        f"needs a table of {cells:,} cells, and {MOST_CELLS:,} is the most",
        key="dependence",
        fix="Ask about fewer attributes at once, merge rare values, or drop arrows of the network.",
    )


def as_codes(columns: Sequence[npt.ArrayLike], sizes: Sequence[int], cells: int) -> Codes:
    """Return positions of values as one array, in the smallest type that holds them."""
    largest = max(sizes, default=1)
    kind = np.uint8 if largest <= 2**8 else np.uint16 if largest <= 2**16 else np.uint32
    found: Codes = np.empty((len(sizes), cells), dtype=kind)
    for row, column in enumerate(columns):
        found[row] = column
    return found


def cell_numbers(codes: Codes, sizes: Sequence[int]) -> Ints:
    """Return a number for each column of codes, equal where the columns are and in their order."""
    return _numbers(codes, sizes)[0]


def _numbers(codes: Codes, sizes: Sequence[int]) -> tuple[Ints, int]:
    """Return the number of each column, and how many numbers there could be."""
    found = np.zeros(codes.shape[1], dtype=np.int64)
    most = 1
    for row, size in zip(codes, sizes, strict=True):
        if most * size > _MOST_NUMBERS:
            ranked, found = np.unique(found, return_inverse=True)
            most = len(ranked)
        found *= size
        found += row
        most *= size
    return found, most


def log_table(columns: Sequence[npt.NDArray[Any]], sizes: Sequence[int], logs: Floats) -> Floats:
    """Return the logarithms of sums of weights over cells that lie in the same place, as an array of these sizes."""
    numbers = np.zeros(len(logs), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        numbers *= size
        numbers += column
    found = np.full(math.prod(sizes), -np.inf)
    first, sums = _log_sums(numbers, logs, found.size)
    found[numbers[first]] = sums
    return found.reshape(tuple(sizes))


def _groups(codes: Codes, sizes: Sequence[int], cells: int) -> tuple[Ints, int]:
    """Return the group of each column, counted from zero, without large gaps, and how many groups there could be."""
    numbers, most = _numbers(codes, sizes)
    if most <= 4 * cells + 1024:
        return numbers, most
    found, groups = np.unique(numbers, return_inverse=True)
    return groups.astype(np.int64), len(found)


def _log_sums(groups: Ints, logs: Floats, count: int) -> tuple[Ints, Floats]:
    """Return for each group that has a cell one of them, and the logarithm of the sum of all weights in the group."""
    largest = np.full(count, -np.inf)
    np.maximum.at(largest, groups, logs)
    sums = np.bincount(groups, np.exp(logs - largest[groups]), minlength=count)
    one = np.zeros(count, dtype=np.int64)
    one[groups] = np.arange(len(groups))
    there = np.flatnonzero(sums > 0)
    return one[there], largest[there] + np.log(sums[there])


def eliminated(factors: Sequence[Factor], keep: Sequence[int]) -> Factor:
    """Return the product of the tables, with all variables summed out but those to keep, in this order."""
    kept = set(keep)
    tables = dict(enumerate(factors))
    having: dict[int, set[int]] = {}  # the tables that each variable is in
    for at, factor in tables.items():
        for variable in factor.variables:
            having.setdefault(variable, set()).add(at)
    for at, factor in tables.items():
        tables[at] = factor.summed([one for one in factor.variables if one in kept or len(having[one]) > 1])
    costs = {one: _cost([tables[at] for at in own]) for one, own in having.items() if one not in kept}
    costs = {one: cost for one, cost in costs.items() if len(having[one]) > 1}
    for number in itertools.count(len(tables)):
        if not costs:
            break
        variable = min(costs, key=lambda one: (costs[one], one))
        met = having[variable]
        product = _product([tables.pop(at) for at in sorted(met)])
        # what is in none of the other tables is summed out at once
        rest = [one for one in product.variables if one in kept or not having[one] <= met]
        for one in set(product.variables) - set(rest):
            del costs[one]
        tables[number] = product.summed(rest)
        for one in rest:
            having[one] = having[one] - met | {number}
        for one in rest:
            if one not in kept:
                costs[one] = _cost([tables[at] for at in having[one]])
    return _product(list(tables.values())).summed(list(keep))


def _cost(together: Sequence[Factor]) -> float:
    """Return a bound on the logarithm of how many cells the product of some tables has."""
    sides = {one: size for factor in together for one, size in zip(factor.variables, factor.sizes, strict=True)}
    return min(
        sum(math.log(size) for size in sides.values()), sum(math.log(max(factor.cells, 1)) for factor in together)
    )


def _product(factors: Sequence[Factor]) -> Factor:
    if not factors:
        return Factor((), (), as_codes([], [], 1), np.zeros(1))
    return reduce(Factor.times, sorted(factors, key=lambda factor: factor.cells))
