"""Two sums from which a sum and a number of people both follow, so that a mean need not split epsilon.

Let a person be p steps above the smallest number, and R - p steps below the largest. `TwoSums` adds up both: together
they are R for each person. Whoever joins or leaves moves the two by R steps together, wherever p is; a move by t steps
raises one by t and lowers the other by t.

Guarantee   `ends`: for every cell with people, an interval of level L holds their mean with probability L at least.
Assumes     The two sums have the noise of their plan, each by its own draw or in the shape of a cube.
Why         For true sums U and V of people whose mean is m, T(m) = m V - (R - m) U is zero. For noisy ones it is the
            error m Y - (R - m) X, whose law is known (Fieller). The interval is about every m at which T(m) is within
            bounds for that error. These are worked out for the middle of each of `BINS` parts of the range. Elsewhere
            in that part the error differs by at most half its width times |X + Y|, which is bounded by itself with
            a share `ASIDE` of the chance to miss.
Reference   Fieller, Some Problems in Interval Estimation, 1954. For people who join or leave, both sums together have
            the noise of Hardt, Talwar, On the Geometry of Differential Privacy, arXiv:0907.3754, in two dimensions.
Checked by  tests/property/test_two_sums.py, tests/statistical/test_derived.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.noise.sum_bounds import error_bounds
from tacit.plan.measure.measured import CellCounts, CellSums, Tally
from tacit.plan.question import cell_of, labels_of_cells, position
from tacit.plan.questions.total import Total, as_sums
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response, corner_moves
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.plans.derived import Released

BINS: Final = 64
ASIDE: Final = 1 / 50
SAID: Final = "the sum and the people follow from two sums that share epsilon"


@dataclass(frozen=True)
class TwoSums(Total):
    """In each cell, the distances of people from the smallest number, added up, and those from the largest."""

    def size(self, domain: Domain) -> int:
        return 2 * super().size(domain)

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        values = [*(domain[name].every_cell() for name in self.by), ("above the smallest", "below the largest")]
        return dict(zip((*self.by, f"sums of {self.name}"), labels_of_cells(values), strict=True))

    def unit(self, domain: Domain) -> Fraction:
        attribute: Any = domain[self.name]
        return Fraction(attribute.unit * attribute.spacing)

    def steps(self, domain: Domain) -> int:
        """Return how many steps the range has."""
        return int(domain[self.name].size) - 1

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return CellSums(self.name, self.by, self.where), CellCounts(self.by, self.where)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        sums, people = (np.asarray(part, dtype=object).reshape(-1) for part in tallied)
        attribute: Any = domain[self.name]
        places = (sums - attribute.number(0) * people) // attribute.spacing
        return as_sums(np.stack([places, self.steps(domain) * people - places], axis=1).reshape(-1))

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        out = np.zeros((self.size(domain) // 2, 2), dtype=np.int64)
        place = position(domain, self.name, record[self.name])
        out[cell_of(record, self.by, domain)] = place, self.steps(domain) - place
        return out.reshape(-1)

    def response(self, domain: Domain) -> Response:
        return TwoSumsResponse(self.steps(domain), cells=self.by, line=domain.axes_of(self.name)[0])

    # ---- what follows from noisy sums, in steps from the smallest number

    def error_of_mean(self, variance: float) -> float:
        """Return the mean squared error of a mean times people squared, for sums with this variance.

        That is for small errors, and a mean that may lie anywhere in the range.
        """
        return variance * 2 / 3  # the mean of m^2 + (1 - m)^2, of errors that are not correlated

    def people_and_distances(self, part: Released, domain: Domain) -> tuple[Floats, Floats]:
        """Return the people in each cell, and the sum of their distances from the smallest number."""
        above, below = self._sums(part, domain)
        return (above + below) / self.steps(domain), above

    def ends(self, part: Released, domain: Domain, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals for the means; the other way round where no mean in the range is likely."""
        noise: Any = part.plan.noise
        (above, below), steps, miss = self._sums(part, domain), self.steps(domain), 1 - level
        half = steps / BINS / 2 * (1 + 1e-9)  # neighbouring parts overlap by a rounding
        together = (noise, 1.0, 1), (noise, 1.0, 1)
        aside = error_bounds(together, 1 - miss * ASIDE)
        further = half * max(-aside[0], aside[1])
        lower, upper = np.full(above.shape, np.inf), np.full(above.shape, -np.inf)
        for middle in ((np.arange(BINS) + 0.5) / BINS * steps).tolist():
            weights = [middle - steps, middle]
            if noise.is_even:  # then the bounds are those of the mirrored part, which are kept
                weights = sorted(map(abs, weights))
            low, high = error_bounds(tuple((noise, weight, 1) for weight in weights), 1 - miss * (1 - ASIDE))
            with np.errstate(divide="ignore", invalid="ignore"):
                one, other = ((bound + steps * above) / (above + below) for bound in (low - further, high + further))
            start, end = np.fmax(np.fmin(one, other), middle - half), np.fmin(np.fmax(one, other), middle + half)
            holds = start <= end
            lower, upper = np.where(holds, np.fmin(lower, start), lower), np.where(holds, np.fmax(upper, end), upper)
        nobody = above + below <= error_bounds(together, level)[1]  # may be there
        return np.where(nobody, 0.0, lower), np.where(nobody, steps, upper)

    def _sums(self, part: Released, domain: Domain) -> tuple[Floats, Floats]:
        sums = (part.values / float(self.unit(domain))).reshape(-1, 2)
        return sums[:, 0], sums[:, 1]

    def __str__(self) -> str:
        return self.written("two sums", self.name)


@dataclass(frozen=True)
class TwoSumsResponse(PlacedResponse):
    """The distances from either end of a range of so many steps, added up in each cell."""

    steps: int
    staying_may_show_more: ClassVar[bool] = True

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """One sum rises and the other falls alike; between two cells, two lose and two others gain."""
        if not move.changed:
            found = move.relation.differences(move.hidden, move.cover)
            return [Jump.of(end, -end) for end in found.ends]
        return [Jump.of(-start, start - self.steps, end, self.steps - end) for start, end in corner_moves(move)]

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        return [Jump.of(end, self.steps - end) for end in places.ends]
