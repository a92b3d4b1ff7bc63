"""The contract of what is counted: numbers that noise is added to, or that are compared with each other.

Each number is a sum over people of a function of one record. Every linear question can be measured as it is; sums of
cells, which nobody asks for, can be measured in place of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from tacit.noise.law import Law
    from tacit.plan.errors.runs import LineErrors
    from tacit.plan.measure.tally import Tally
    from tacit.plan.sensitivity.responses import Response
    from tacit.policy.domain import Domain
    from tacit.policy.policy import Policy
    from tacit.policy.where import Where


class Measured(ABC):
    """Sums over the people whom `where` picks.

    `counts_people` says whether the numbers are counts, which are never negative; `never_falls` whether each is at
    least the one before it. `entry_words` are what one number, and all, are called where answers are read off them.
    """

    counts_people: ClassVar[bool] = True
    never_falls: ClassVar[bool] = False
    entry_words: ClassVar[tuple[str, str]] = ("a measured count", "measured counts")
    where: Where | None

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
        """Return what rows are counted for."""

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

    def check_rows_of_one(self, policy: Policy) -> None:
        """Refuse what has no proven step where a person owns several rows; counts of cells have one."""


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
