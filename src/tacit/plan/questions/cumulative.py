"""`cumulative`: for each value of an ordered attribute, how many people have at most that.

Whatever is about the order of values is answered through these counts, so what such questions share stands here too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from tacit.arrays import Bools, Floats, Ints
from tacit.errors import PlanError
from tacit.noise.law import Law
from tacit.plan.error_laws import LineErrors, NoisyCounts
from tacit.plan.measure.measured import CellCounts, LineEntries, Measured, Strategy, Tally
from tacit.plan.measure.workload import Workload
from tacit.plan.question import LARGEST_RELEASE, Linear, attribute_of, position, read_where, suffix
from tacit.plan.question_keys import ATTRIBUTE, OF, WHERE, Question, first_attribute, has_order
from tacit.plan.questions.counts import Marginals
from tacit.plan.sensitivity.moves import exact_cumulative
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response, running_counts_moved
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class OnALine(Linear):
    """A question whose answers are counts of runs of neighbouring values of an ordered attribute."""

    name: str

    @property
    def about_a_line(self) -> OnALine:
        return self

    def check(self, domain: Domain) -> None:
        check_ordered(domain, self.name, self.keyword)
        super().check(domain)

    def mentioned(self) -> frozenset[str]:
        return super().mentioned() | {self.name}

    def options(self) -> dict[str, Any]:
        return {"attribute": self.name}

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts((self.name,), self.where),)

    @abstractmethod
    def running_counts(self) -> Cumulative:
        """Return the counts of the same people at or below each value."""

    @abstractmethod
    def runs(self, domain: Domain) -> tuple[Ints, Ints]:
        """Return the first and last position of a line that each answer adds up."""

    @abstractmethod
    def workload(self, domain: Domain) -> Workload:
        """Return the runs whose counts should be as good as possible; there may be more of them than answers."""

    def lists_values(self, domain: Domain) -> bool:
        """Say whether single values stand for answers that are too many to be listed."""
        return False

    def exact_running(self, policy: Policy) -> Bools | None:
        """Return which running counts no secret edge changes; None if none is."""
        return exact_cumulative(self.name, self.where, policy)

    def strategies(self, policy: Policy, epsilon: Fraction) -> list[Strategy]:
        from tacit.plan.measure.line_strategies import line_strategies

        asked = self.workload(policy.domain)
        return line_strategies(self.running_counts(), self.name, self.where, policy, epsilon, asked)


def check_ordered(domain: Domain, name: str, keyword: str) -> None:
    """Refuse an attribute whose values have no order."""
    attribute = attribute_of(domain, name, keyword)
    axes = domain.axes_of(name)
    if len(axes) != 1 or not axes[0].ordered:
        ordered = "Declare ordered=True (in a file: `ordered: true`)."
        fix = ordered if attribute.measured == "names" else "Use a histogram."
        raise PlanError("must have an order", key=keyword, given=name, fix=fix)


@dataclass(frozen=True)
class Cumulative(OnALine, LineEntries):
    """For each value v of an ordered attribute: how many people have at most v."""

    where: Where | None = None
    keyword: ClassVar[str] = "cumulative"
    never_falls: ClassVar[bool] = True
    entry_words: ClassVar[tuple[str, str]] = ("a running count", "running counts")

    def size(self, domain: Domain) -> int:
        return domain[self.name].size

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        return {f"{self.name} up to": domain[self.name].every_cell()}

    def words(self, domain: Domain) -> str:
        return f"{self.who.capitalize()} with {self.name} up to each value"

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        return np.cumsum(tallied[0], dtype=np.int64)

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        out = np.zeros(self.size(domain), dtype=np.int64)
        out[position(domain, self.name, record[self.name]) :] = 1
        return out

    def response(self, domain: Domain) -> Response:
        line = domain.axes_of(self.name)[0]
        return CumulativeResponse(line.size, line=line)

    def bases(self, policy: Policy) -> list[tuple[Linear, str]]:
        found: list[tuple[Linear, str]] = [(self, "direct")]
        if policy.domain[self.name].size <= LARGEST_RELEASE:
            found.append((Marginals(((self.name,),), self.where, of=self.of), "by adding up noisy cells"))
        return found

    def running_counts(self) -> Cumulative:
        return self

    def running(self, entries: Floats) -> Floats:
        return entries

    def line_errors(
        self, noise: Law, groups: Sequence[Ints] | None, fixed: Bools | None, domain: Domain
    ) -> LineErrors | None:
        if noise.is_joint and not noise.is_even:
            return None  # dependent entries: sums are not predicted, so this strategy is not taken
        return NoisyCounts.of(noise, fixed, self.size(domain))

    def runs(self, domain: Domain) -> tuple[Ints, Ints]:
        high = np.arange(domain[self.name].size, dtype=np.int64)
        return np.zeros_like(high), high

    def workload(self, domain: Domain) -> Workload:
        return Workload((domain[self.name].size, 1), kind="prefixes")

    def fitting(self, base: Measured) -> str:
        return "Cumulative counts were made not to fall."

    def __str__(self) -> str:
        return f"cumulative({self.name}{suffix(self.where, self.of)})"


@dataclass(frozen=True)
class CumulativeResponse(PlacedResponse):
    """Counts of people at or below each position of a line of so many values."""

    values: int

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        return running_counts_moved(move)

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        """All counts from the position on rise."""
        return [Jump.by_ones(rise=self.values - places.lowest, fall=0)] if places else []


def cumulative(name: str, *, where: Where | str | None = None, of: str | None = None) -> Cumulative:
    """Ask for each value how many people have at most that."""
    return Cumulative(name, read_where(where), of=of)


CUMULATIVE: Final = Question(
    "cumulative",
    keys=(ATTRIBUTE, WHERE, OF),
    ask=cumulative,
    example=lambda policy: cumulative(first_attribute(policy, "cumulative", has_order)),
    shown=(("`{cumulative: age}`", "for each value, people with at most that"),),
)
