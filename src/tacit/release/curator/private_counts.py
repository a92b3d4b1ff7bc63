"""True counts of people, for the curator: what audits look at that must know what the rows say.

Guarantee   None: these are true counts. They are for the holder of the rows alone; no release, record, certificate or
            ledger can hold them, nothing is charged, and nothing is written.
Assumes     Whoever asks may see the rows anyway.
Why         What noisy answers disclose depends on the people they are about, so an audit of it must count them. It does
            so through this one door (`docs/decisions/0016-audits-that-read-private-data.md`).
Checked by  tests/unit/release/test_private_counts.py, tests/architecture/test_private_doors.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError, kind_of, sealed
from tacit.plan.measure.measured import CellCounts
from tacit.policy.policy import Policy
from tacit.release.session import check_public_columns, open_for
from tacit.rows.counts.groups import GroupedRows, group_counts

Names = tuple[str, ...]
MOST_CELLS: Final = 1 << 27


@dataclass(frozen=True, eq=False, repr=False)
class PrivateCounts:
    """True tables of counts. `values` are what each attribute may be, `people` how many are counted.

    `left_out` is how many rows are not counted, because they miss a cell of a column that was named.
    """

    values: Mapping[str, Sequence[Any]]
    people: int
    tables: Mapping[Names, Ints]
    left_out: int = 0


@sealed
def counts_of_columns(rows: Any, tables: Iterable[Names], weight: Any = None) -> PrivateCounts:
    """Count people by columns as they are: values are those that occur.

    Every row is a person, or as many as its `weight` column says. A row that misses a cell of one of these columns is
    left out, as in published tables (`rows/counts/groups.py`).
    """
    wanted = list(dict.fromkeys(tables))
    names = list(dict.fromkeys(name for table in wanted for name in table))
    if weight is not None and not isinstance(weight, str):
        fix = "For instance weight='count'."
        raise PlanError("must be the name of a column", key="weight", given=kind_of(weight), fix=fix)
    if weight in names:
        raise PlanError("must not be public or sensitive as well", key="weight", given=weight, fix="Name another.")
    found = group_counts(rows, names, weight)
    values = dict(zip(names, found.values, strict=True))
    for table in wanted:
        _check_size(table, [len(values[name]) for name in table])
    made = {table: _table(found, names, table) for table in wanted}
    return PrivateCounts(values, int(found.counts.sum()), made, found.left_out)


@sealed
def counts_under(policy: Policy, rows: Any, tables: Iterable[Names]) -> PrivateCounts:
    """Count people at the positions of a policy's domain, as a release would."""
    check_public_columns(policy)
    wanted = list(dict.fromkeys(tables))
    domain = policy.domain
    for table in wanted:
        _check_size(table, [domain[name].size for name in table])
    everybody, *found = open_for(policy, rows).tally([CellCounts(()), *(CellCounts(table) for table in wanted)])
    names = dict.fromkeys(name for table in wanted for name in table)
    values = {name: [domain[name].value(place) for place in range(domain[name].size)] for name in names}
    made = {table: np.asarray(counts, dtype=np.int64) for table, counts in zip(wanted, found, strict=True)}
    return PrivateCounts(values, int(everybody), made)


def _table(found: GroupedRows, names: Sequence[str], table: Names) -> Ints:
    """Add the rows of each combination to its cell."""
    places = [names.index(name) for name in table]
    shape = tuple(len(found.values[place]) for place in places)
    codes = [found.codes[place].astype(np.int64) for place in places]
    cells = np.ravel_multi_index(codes, shape) if shape else np.zeros(len(found.counts), dtype=np.int64)
    # counts below 2^53 are whole as floats
    return np.bincount(cells, found.counts, math.prod(shape)).astype(np.int64).reshape(shape)


def _check_size(table: Names, sizes: Sequence[int]) -> None:
    if math.prod(sizes) > MOST_CELLS:
        fix = "Name fewer attributes."
        raise PlanError("must have at most 2^27 cells", key="table", given=", ".join(table), fix=fix)
