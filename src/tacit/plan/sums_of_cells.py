"""The laws of sums of cells that were measured one by one: margins of a table, or any other parts of it.

Guarantee   None of its own: what is released is not changed. The law of a sum is that of its error, so that intervals
            which are made from it hold at their level, as those of single cells do.
Assumes     Cells are estimated as `release/estimate/infer.py` does by default: each noisy count less the mean of its
            noise, then least squares with the totals of the plan's groups that no secret edge changes.
Why         Least squares shares what a group misses of its total in proportion to the variances v of its cells. A sum
            over some cells of a group is therefore off by the sum of their noises less W times the sum of all noises
            of the group, where W is the share of those cells in the sum of v. Groups are independent of each other,
            and noises that are drawn together keep their law, which `noise/sum_bounds.py` works out.
Checked by  tests/unit/release/test_sums_of_cells.py
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import numpy as np

from tacit.arrays import Ints
from tacit.noise.law import Law
from tacit.plan.error_laws import Spread
from tacit.plan.plans.linear import LinearPlan

MOST_CELLS: Final = 100_000  # of a table whose sums are worked out
MOST_SUMS: Final = 500  # at a few milliseconds each


def spread_of_sums(plan: LinearPlan, table: int, sums: Ints) -> Spread | None:
    """Return the law of each sum of cells of a table, which `sums` numbers, or None where it is not worked out."""
    domain = plan.policy.domain
    names = plan.query.tables(domain)
    many = int(sums.max(initial=-1)) + 1
    if plan.noise is None:
        return Spread(((),), np.zeros(many, dtype=np.int64))
    by_cell = isinstance(plan.spread, Spread) and plan.base.tables(domain) == names
    if not by_cell or len(sums) > MOST_CELLS or many > MOST_SUMS or not all(law.is_alike for law, _ in plan.laws()):
        return None
    start = sum(math.prod(domain[name].cells for name in each) for each in names[:table])
    laws = [law for law, _ in plan.laws()]
    own = np.zeros(plan.base.size(domain), dtype=np.int64)
    for number, (_, entries) in enumerate(plan.laws()):
        own[entries] = number
    own = own[start : start + len(sums)]
    groups = np.arange(len(sums)) if plan.groups is None else plan.groups[table]
    terms: list[Counter[tuple[Law, float]]] = [Counter() for _ in range(many)]
    # how many cells of each law every group has, and every part of a group that is in one sum
    whole = _counted(groups, own, len(laws))
    parts, first = np.unique(sums * (int(groups.max(initial=0)) + 1) + groups, return_index=True)
    inside = _counted(np.searchsorted(parts, sums * (int(groups.max(initial=0)) + 1) + groups), own, len(laws))
    variances = np.array([law.variance() for law in laws])
    for mine, group, number in zip(inside, groups[first], sums[first], strict=True):
        doubt = float(whole[group] @ variances) if plan.groups is not None else 0.0
        share = float(mine @ variances) / doubt if doubt > 0 else 0.0
        if (mine == whole[group]).all() and plan.groups is not None:
            continue  # the whole group: its total is exact
        for law, here, everywhere in zip(laws, mine.tolist(), whole[group].tolist(), strict=True):
            terms[number][law, 1 - share] += here
            terms[number][law, -share] += everywhere - here
    listed = [tuple((law, weight, many) for (law, weight), many in each.items() if many) for each in terms]
    kinds = list(dict.fromkeys(listed))
    return Spread(tuple(kinds), np.array([kinds.index(each) for each in listed], dtype=np.int64))


def _counted(places: Ints, own: Ints, laws: int) -> Ints:
    """Return for each place how many cells of each law it has."""
    size = int(places.max(initial=-1)) + 1
    return np.stack([np.bincount(places[own == law], minlength=size) for law in range(laws)], axis=1).astype(np.int64)
