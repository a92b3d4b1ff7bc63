"""Rows of which only the counts per item exist: what they can answer, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import DataRefused
from tacit.plan.measure.measured import CellCounts, CellSums, ItemHolders, OfNumbers, Tally
from tacit.policy.domain import Domain
from tacit.policy.where import Test
from tacit.rows.counts.counting import items_of, no_cells, no_total, where_of
from tacit.rows.counts.records import Work
from tacit.rows.sources.engine import MakeFrame
from tacit.rows.sources.frames import as_pandas

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class ItemCounts:
    """Rows when only the counts per item exist: how many people have each item, out of how many.

    `at_most` of the domain is then a promise about how the counts were made; nothing can check it here.
    """

    counts: Counts
    people: int

    def __init__(self, counts: Sequence[int] | npt.NDArray[Any], *, people: int) -> None:
        array = np.asarray(counts)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise DataRefused("item counts must be a list of whole numbers", fix="Give one count per item.")
        if isinstance(people, bool) or not isinstance(people, int | np.integer) or people < 0:
            raise DataRefused("people must be a whole number from 0", fix="Say how many people were counted.")
        if (array < 0).any() or (array > int(people)).any():
            raise DataRefused("item counts must lie between 0 and the number of people", fix="Count each person once.")
        frozen = array.astype(np.int64)
        frozen.flags.writeable = False
        object.__setattr__(self, "counts", frozen)
        object.__setattr__(self, "people", int(people))

    def __repr__(self) -> str:
        return f"ItemCounts({len(self.counts)} items)"


class CountedItems:
    """Item counts, asked as rows."""

    kind = "items"

    def __init__(self, source: ItemCounts, domain: Domain) -> None:
        self._source, self._domain = source, domain
        ((name, items), *others) = domain.items()
        if others or not items.is_set:
            raise DataRefused("item counts need a domain with one set of items", fix="Declare only the items.")
        if items.cells != len(source.counts):
            raise DataRefused("must have one count per item of the domain", column=name, fix="Check the two lengths.")

    def check(self, tally: Tally) -> None:
        """Refuse what item counts alone cannot answer."""
        self._check(tally.attributes, where_of(tally, self._domain))

    def _check(self, names: tuple[str, ...], where: Test | None) -> None:
        if names and names != tuple(self._domain):
            raise no_cells(names)
        if names and where is not None:
            raise DataRefused("item counts cannot be restricted to some people", fix="Give the rows.")
        if where is not None and len({axis.name for axis, _ in where.atoms}) > 1:
            raise DataRefused("item counts cannot say how many people have two items together", fix="Give the rows.")

    def tally(self, tallies: Sequence[Tally]) -> list[npt.NDArray[Any]]:
        """Return the counts that each tally asks for."""
        return [self._tallied(tally) for tally in tallies]

    def _tallied(self, tally: Tally) -> npt.NDArray[Any]:
        where = where_of(tally, self._domain)
        match tally:
            case CellCounts(names):
                return self.counts(names, where)
            case ItemHolders(name):
                return self.item_counts(name, where)
            case CellSums(name):
                raise no_total(name)
            case OfNumbers():
                raise no_cells(tally.attributes)

    def counts(self, names: tuple[str, ...], where: Test | None = None) -> Counts:
        """Count the people, or those who have (or lack) one item."""
        if names:
            raise no_cells(names)
        self._check(names, where)
        if where is None:
            return np.array(self._source.people, dtype=np.int64)
        axis = where.atoms[0][0]
        having = int(self._source.counts[axis.item])
        picked = (having if where.of_record({axis.name: 1}) else 0) + (
            self._source.people - having if where.of_record({axis.name: 0}) else 0
        )
        return np.array(picked, dtype=np.int64)

    def item_counts(self, name: str, where: Test | None = None) -> Counts:
        """Return the counts."""
        items_of(self._domain, name)
        self._check((name,), where)
        return self._source.counts.copy()

    def total(self, name: str, where: Test | None = None) -> int:
        """Refuse: items have no total."""
        raise no_total(name)

    def check_naming(self, key: Sequence[str]) -> None:
        """Refuse: there are no rows to name."""
        raise DataRefused("item counts have no records", fix="Give the rows.")

    def records(self, names: Sequence[str], key: Sequence[str], work: Work) -> Iterator[Any]:
        """Refuse: there are no rows."""
        raise DataRefused("item counts have no records", fix="Give the rows.")

    @property
    def frame(self) -> MakeFrame:
        """Make a pandas frame."""
        return as_pandas

    def __repr__(self) -> str:
        return "Rows(items)"
