"""Exact inference by elimination: tables are multiplied only around the variable that is summed out next.

The order is greedy: first every variable that is in one table only, then the variable whose neighbours together have
the fewest cells. Any order gives the same result, but a bad order may need tables that are too large.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import reduce

import numpy as np

from tacit.dependence.factor import Factor, as_codes


def eliminated(factors: Sequence[Factor], keep: Sequence[int]) -> Factor:
    """Return the product of the tables, with all variables summed out but those to keep, in this order."""
    kept = set(keep)
    waiting = list(factors)
    while True:
        met = Counter(variable for factor in waiting for variable in factor.variables)
        waiting = [_without_own(factor, met, kept) for factor in waiting]
        left = {variable for factor in waiting for variable in factor.variables} - kept
        if not left:
            return _product(waiting).summed(list(keep))
        variable = min(sorted(left), key=lambda one: _cost(one, waiting))
        together = [factor for factor in waiting if variable in factor.variables]
        product = _product(together)
        waiting = [factor for factor in waiting if variable not in factor.variables]
        waiting.append(product.summed([one for one in product.variables if one != variable]))


def _without_own(factor: Factor, met: Counter[int], kept: set[int]) -> Factor:
    """Return the table without the variables that no other one has."""
    keep = [variable for variable in factor.variables if variable in kept or met[variable] > 1]
    return factor if len(keep) == len(factor.variables) else factor.summed(keep)


def _cost(variable: int, factors: Sequence[Factor]) -> float:
    """Return a bound on the logarithm of how many cells the product of the tables with this variable has."""
    together = [factor for factor in factors if variable in factor.variables]
    sides = {one: size for factor in together for one, size in zip(factor.variables, factor.sizes, strict=True)}
    return min(
        sum(math.log(size) for size in sides.values()), sum(math.log(max(factor.cells, 1)) for factor in together)
    )


def _product(factors: Sequence[Factor]) -> Factor:
    """Return the product of tables, the small ones first."""
    if not factors:
        return Factor((), (), as_codes([], [], 1), np.zeros(1))
    return reduce(Factor.times, sorted(factors, key=lambda factor: factor.cells))
