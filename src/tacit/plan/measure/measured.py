"""The contract of what is counted, what rows are counted for, and what a way to answer is.

A question says which tallies it needs, rows make all tallies of a job in one pass, and the question makes its true
answers of them: so a new question needs nothing new of the rows. Each measured number is a sum over people of a
function of one record. Every linear question can be measured as it is; sums of cells, which nobody asks for, can be
measured in place of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.arrays import Bools, Floats, Ints
from tacit.policy.person_numbers import NumberPolicy, PersonGrid
from tacit.policy.where import Where

if TYPE_CHECKING:
    from tacit.noise.law import Law
    from tacit.plan.error_laws import LineErrors
    from tacit.plan.sensitivity.responses import Response
    from tacit.policy.domain import Domain
    from tacit.policy.policy import Policy


@dataclass(frozen=True)
class CellCounts:
    """How many people are in each cell of these attributes: an array with one axis for each; with none, a number.

    With `rows`, how many rows that count.
    """

    names: tuple[str, ...]
    where: Where | None = None
    rows: bool = False

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


@dataclass(frozen=True)
class OfNumbers:
    """A tally of people's numbers, as if each were a row: see `policy/person_numbers.py`."""

    grid: PersonGrid
    tally: CellCounts | CellSums

    @property
    def where(self) -> Where | None:
        """Which rows people's numbers are made of."""
        return self.grid.number.where

    @property
    def attributes(self) -> tuple[str, ...]:
        """What is looked at, beside `where`."""
        return (self.grid.number.attribute or self.grid.number.name,)


Tally = CellCounts | ItemHolders | CellSums | OfNumbers


@dataclass(frozen=True)
class Strategy:
    """Noise is added to `base`, and the answers are read off that.

    Without a `noise` of its own it is the least that hides the step of the base (`plan/calibrate.py`). `why` says what
    makes it good, `drawn` is a drawing of what is measured, line by line. `errors` are those of counts on a line, and
    `loss` is what the noise costs along the dearest edge, where these are known by the strategy alone.
    """

    name: str
    base: Responding
    noise: Law | None = None
    why: str = ""
    drawn: tuple[str, ...] = ()
    errors: LineErrors | None = None
    loss: Fraction | float | None = None


class Measured(ABC):
    """Sums over the people whom `where` picks.

    `counts_people` says whether the numbers are counts, which are never negative; `never_falls` whether each is at
    least the one before it. `entry_words` are what one number, and all, are called where answers are read off them.
    """

    counts_people: ClassVar[bool] = True
    never_falls: ClassVar[bool] = False
    entry_words: ClassVar[tuple[str, str]] = ("a measured count", "measured counts")
    where: Where | None

    @property
    def counts_rows(self) -> bool:
        """Whether every row counts where a person owns several; else a person counts once in each number."""
        return True

    @property
    def listed(self) -> tuple[Where, ...]:
        """For each number the predicate that picks whom it counts; none where it is `where` for all of them."""
        return ()

    @abstractmethod
    def mentioned(self) -> frozenset[str]:
        """Return every attribute that is looked at."""

    @abstractmethod
    def size(self, domain: Domain) -> int:
        """Return how many numbers there are."""

    def unit(self, domain: Domain) -> Fraction:
        """Return what one unit of the numbers is worth; they are counted in whole units."""
        return Fraction(1)

    @abstractmethod
    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        """Return what rows are counted for, where a person owns one."""

    def needed(self, policy: Policy) -> tuple[Tally, ...]:
        """Return what rows are counted for: every row, where a person owns several and each counts."""
        each = self.counts_rows and policy.per_person > 1
        found = self.tallies(policy)
        if isinstance(policy, NumberPolicy):
            return tuple(OfNumbers(policy.grid, one) for one in found if not isinstance(one, ItemHolders | OfNumbers))
        return tuple(replace(one, rows=True) if each and isinstance(one, CellCounts) else one for one in found)

    @abstractmethod
    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        """Return the true numbers, flat, from what was counted."""

    @abstractmethod
    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        """Return what one person whom the predicate picks adds to the numbers: the definition, for audits."""

    def tables(self, domain: Domain) -> tuple[tuple[str, ...], ...]:
        """Return the attributes of each table of cells that the numbers are; none for other numbers."""
        return ()

    def exact_groups(self, policy: Policy) -> list[Ints] | None:
        """Return for each table a label per cell such that sums over equal labels are exact; None if there is none."""
        return None

    def finest_groups(self, policy: Policy) -> list[Ints] | None:
        """Return the same, also where the labels are no product of those of single axes."""
        return self.exact_groups(policy)

    def directions(self, policy: Policy) -> tuple[Bools, Bools] | None:
        """Return which numbers can fall and which can rise, or None where all can do both."""
        return None


class Responding(Measured):
    """Measured numbers whose largest step follows from how they respond when one record moves."""

    @abstractmethod
    def response(self, domain: Domain) -> Response:
        """Return how the numbers respond to moves."""


class LineEntries(Responding):
    """Measured numbers from which the counts at or below each value of an ordered attribute follow."""

    @abstractmethod
    def running(self, entries: Floats) -> Floats:
        """Return the counts at or below each position of the line, from the entries."""

    def line_errors(
        self, noise: Law, groups: Sequence[Ints] | None, fixed: Bools | None, domain: Domain
    ) -> LineErrors | None:
        """Return how far counts of runs of positions are off; None where the way to measure them says that itself."""
        return None
