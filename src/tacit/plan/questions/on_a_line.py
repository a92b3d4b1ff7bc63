"""What questions about the order of an attribute's values share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.arrays import Bools, Ints
from tacit.errors import PlanError
from tacit.plan.measure.measured import Measured
from tacit.plan.measure.strategy import Strategy
from tacit.plan.measure.tally import CellCounts, Tally
from tacit.plan.question import Linear, attribute_of, check_where, columns_of
from tacit.plan.sensitivity.exact_totals import exact_cumulative
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.errors.runs import Runs
    from tacit.plan.questions.cumulative import Cumulative


@dataclass(frozen=True)
class OnALine(Linear):
    """A question whose answers are counts of runs of neighbouring values of an ordered attribute."""

    name: str

    @property
    def about_a_line(self) -> OnALine:
        return self

    def check(self, domain: Domain) -> None:
        check_ordered(domain, self.name, self.keyword)
        check_where(self.where, domain)

    def mentioned(self) -> frozenset[str]:
        return columns_of(self.where) | {self.name}

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts((self.name,), self.where),)

    @abstractmethod
    def running_counts(self) -> Cumulative:
        """Return the counts of the same people at or below each value."""

    @abstractmethod
    def runs(self, domain: Domain) -> tuple[Ints, Ints]:
        """Return the first and last position of a line that each answer adds up."""

    @abstractmethod
    def workload(self, domain: Domain) -> Runs:
        """Return the runs whose counts should be as good as possible; there may be more of them than answers."""

    def lists_values(self, domain: Domain) -> bool:
        """Say whether single values stand for answers that are too many to be listed."""
        return False

    def exact_running(self, policy: Policy) -> Bools | None:
        """Return which running counts no secret edge changes; None if none is."""
        return exact_cumulative(self.name, self.where, policy) if policy.per_person == 1 else None

    def strategies(self, policy: Policy, epsilon: Fraction) -> list[Strategy]:
        """Return the ways to measure the line."""
        from tacit.plan.measure.line_strategies import line_strategies

        runs = self.workload(policy.domain)
        return line_strategies(self.running_counts(), self.name, self.where, policy, epsilon, runs)

    def check_rows_of_one(self, policy: Policy) -> None:
        """Refuse people who own several rows."""
        refuse_several_rows(self, policy)


def check_ordered(domain: Domain, name: str, keyword: str) -> None:
    """Refuse an attribute whose values have no order."""
    attribute = attribute_of(domain, name, keyword)
    axes = domain.axes_of(name)
    if len(axes) != 1 or not axes[0].ordered:
        ordered = "Declare ordered=True (in a file: `ordered: true`)."
        fix = ordered if attribute.measured == "names" else "Use a histogram."
        raise PlanError("must have an order", key=keyword, given=name, fix=fix)


def refuse_several_rows(measured: Measured, policy: Policy) -> None:
    """Refuse people who own several rows: counted once in each cell, they count several times in sums of cells."""
    raise PlanError(
        "has no proven step where a person owns several rows",
        key=str(measured),
        given=f"per_person={policy.per_person}",
        fix="Keep one row per person, or ask for a histogram.",
    )
