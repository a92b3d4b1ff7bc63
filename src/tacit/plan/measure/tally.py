"""What rows are counted for: the few plain things that a question needs to know of the data.

A question says which tallies it needs; the rows make all tallies of a job in one pass; the question makes its true
answers of them. So a new question needs nothing new of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.policy.where import Where


@dataclass(frozen=True)
class CellCounts:
    """How many people are in each cell of these attributes: an array with one axis for each; with none, a number."""

    names: tuple[str, ...]
    where: Where | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """What is looked at, beside `where`."""
        return self.names


@dataclass(frozen=True)
class ItemHolders:
    """How many people have each item of a set."""

    name: str
    where: Where | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """What is looked at, beside `where`."""
        return (self.name,)


@dataclass(frozen=True)
class CellSums:
    """The sum of an attribute's numbers over the kept rows in each cell of `by`, exact, as Python whole numbers.

    Numbers are counted in the attribute's unit (`Attribute.unit`): 1 for integers, a tenth for decimals with step 0.1.
    """

    name: str
    by: tuple[str, ...] = ()
    where: Where | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """What is looked at, beside `where`."""
        return (self.name, *self.by)


Tally = CellCounts | ItemHolders | CellSums
