"""`clusters`: k centres such that people lie close to the nearest one (k-means), from one release of cell counts.

What is released are noisy counts of people in the cells of a coarse grid, and how many people there are; everything
else (starts, rounds, sizes, the objective) follows from these numbers and costs nothing. So there are no rounds to pay
for, and no centres from which a step would have to be worked out. Where there are enough people, a look at the cells
comes first, and if it shows people in few of them, these are cut into finer ones (`plan/plans/zoom.py`).

How wide the cells are is chosen from the policy, the domain, epsilon, k and the number of people, which is measured
first, and exact wherever it is public. Wide cells say little about where people are in them; of many narrow cells each
has its noise. Three kinds are tried, each in many widths:

* cells with borders (a histogram), which every policy allows. Under most policies they are as good as it gets, and
  then the policy hardly matters: a large data set is clustered as well under plain differential privacy;
* cells with ramps (`plan/measure/soft_cells.py`), whose noise shrinks with theta / width under a distance policy;
* cells that no secret edge leaves (the blocks of a partition), without any noise.

What was tried and left out (`tacit bench clusters` has the numbers of what is kept): rounds of noisy sums and
sizes, the published mechanism, with its true sensitivity: it pays for every round and for every border, and was never
better; ramps narrower than a cell, which have more noise than full ones and hardly more to say; noise on every record,
which is better only where theta / epsilon is below a tenth of the range of several attributes (1,000 points in four
dimensions, theta a tenth of the range, epsilon 1: it adds 2% to the objective, ramps 7%), and useless soon above that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from tacit.amounts import shown
from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.sum_bounds import far_bounds
from tacit.plan.measure.cluster_grids import added_distance, grid_of, grids, inside, lines_of
from tacit.plan.measure.measured import Measured
from tacit.plan.plans.derived import PEOPLE, Derived, DerivedPlan, Released, step_of
from tacit.plan.plans.kmeans import centres_of, nearest, spread_around
from tacit.plan.plans.plan import LEVEL
from tacit.plan.plans.zoom import LOOK, all_cut, deviation, look_at
from tacit.plan.question import attribute_of, check_different, check_names, in_words, read_where, suffix
from tacit.plan.question_keys import ATTRIBUTES, OF, WHERE, Question, first_attribute
from tacit.plan.questions.counts import Count, Marginals
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.keys import POSITIVE, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where

if TYPE_CHECKING:
    from tacit.plan.plans.linear import LinearPlan

MOST_CENTRES: Final = 1000
STAGES: Final = ("cells", "people", "look")  # what is released of each plan, the look only where it led on
FOR_PEOPLE: Final = 16  # the part of epsilon that the number of people has, where it is secret: one in so many


@dataclass(frozen=True)
class FittedCentres:
    """Centres (heaviest first), how many people are nearest to each, and which cells these are.

    `objective` is the mean squared distance of a person to the nearest centre.
    """

    centres: Floats
    people: Floats
    objective: float
    own: Ints


@dataclass(frozen=True)
class Clusters(Derived):
    """The k centres of some attributes, with as many people around each as are nearest to it."""

    names: tuple[str, ...]
    k: int
    where: Where | None = None
    keyword: ClassVar[str] = "clusters"
    error_of: ClassVar[str] = "the centres, as a distance"
    roles: ClassVar[tuple[str, ...]] = ("cells", "people")
    measured: ClassVar[tuple[str, str]] = Marginals.entry_words

    @property
    def counted(self) -> Marginals:
        """The cells of the domain, of which coarser ones are made."""
        return Marginals((self.names,), self.where, of=self.of)

    def check(self, domain: Domain) -> None:
        for name in self.names:
            if not attribute_of(domain, name, self.keyword).coordinates:
                raise PlanError(
                    "must be declared as integers, decimals or a grid",
                    key=self.keyword,
                    given=name,
                    fix="Only between numbers there are distances. Ask for a `histogram`.",
                )
        check_different(self.names, self.keyword)
        cells = self.counted.size(domain)
        if self.k > cells:
            rule = f"must be at most {cells:,}, the number of different places"
            raise PlanError(rule, key="clusters.k", given=self.k, fix="Lower it.")
        super().check(domain)

    def mentioned(self) -> frozenset[str]:
        return super().mentioned() | set(self.names)

    def size(self, domain: Domain) -> int:
        return self.k

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        """Return the numbers of the clusters; where they lie is part of the answer."""
        return {"cluster": list(range(1, self.k + 1))}

    def columns(self, domain: Domain) -> tuple[str, ...]:
        """Return what each coordinate is called in the data."""
        return tuple(column for name in self.names for column in domain[name].read_from(name))

    def options(self) -> dict[str, Any]:
        return {"attributes": list(self.names), "k": self.k}

    def words(self, domain: Domain) -> str:
        return f"{self.k:,} cluster{'s' * (self.k != 1)} of {in_words(self.names)}{self.of_rows}"

    def error_unit(self, domain: Domain) -> str:
        """Return what the expected error is a number of: people lie so much further from the nearest centre."""
        return f"distance in {in_words(self.names)}"

    def size_words(self, answers: int, domain: Domain) -> str:
        return f"{answers:,} centre{'s' * (answers != 1)}"

    def listed_words(self, domain: Domain) -> str:
        return "clusters"

    # ---- how it is answered

    def plan(self, policy: Policy, epsilon: Fraction) -> ClustersPlan:
        return self.plan_for(policy, epsilon, policy.known_people)

    def plan_for(self, policy: Policy, epsilon: Fraction, people: int | None) -> ClustersPlan:
        self.counted.check_size(policy.domain)
        parts = self.parts(policy, epsilon, people)
        cells, total = parts
        look = look_at(cells, _so_many(people))
        step = step_of(list(zip(self.roles, parts, strict=True)))
        why = f"{cells.why}; the number of {self.who}: {total.why}"
        through = f"through {grid_of(cells).shape_words()}{'' if look is None else ' or finer ones'}"
        return ClustersPlan(self, policy, epsilon, step, why, parts, strategy=through, known_people=people, look=look)

    def parts(self, policy: Policy, epsilon: Fraction, people: int | None = None) -> tuple[LinearPlan, LinearPlan]:
        total: Any = Count(self.where, of=self.of)
        counted: LinearPlan = total.plan(policy, epsilon)
        share = Fraction(0) if counted.is_exact else Fraction(1, FOR_PEOPLE)
        tried = grids(self.names, self.where, self.k, policy)
        plans: Iterator[LinearPlan] = (grid.plan(policy, epsilon * (1 - share)) for grid in tried)
        cells = min(plans, key=lambda plan: added_distance(plan, self.k, _so_many(people)))
        return cells, total.plan(policy, epsilon * share)

    # ---- what follows from the released numbers

    def fit(self, parts: Sequence[Released]) -> FittedCentres:
        """Return the centres, and the rest, from noisy counts of cells and of people."""
        cells, people = parts[:2]
        grid = grid_of(cells.plan)
        total = max(float(people.values[0]), 0.0)
        points = grid.points()
        # noise that was cut off at zero would add up, so the objective takes noisy numbers as they are: no bias
        weights, even = grid.weights(cells.values, deviation(cells.plan), total)
        if cells.plan.noise is None:
            weights = cells.values
        # where nobody is, centres are spread over all cells alike
        centres = centres_of(points, weights if weights.any() else np.ones(len(points)), self.k)
        own = nearest(points, centres)
        mean = spread_around(points, even, centres) / total if total > 0 else math.nan
        return FittedCentres(centres, _sums(own, weights, self.k), max(mean + inside(grid, weights), 0.0), own)

    def values(self, parts: Sequence[Released], domain: Domain) -> Floats:
        return self.fit(parts).people

    def ends(self, parts: Sequence[Released], domain: Domain, level: float) -> tuple[Floats, Floats]:
        return self.ends_of(self.fit(parts).own, parts, level)

    def ends_of(self, own: Ints, parts: Sequence[Released], level: float) -> tuple[Floats, Floats]:
        """Return ends that hold the people in the cells that belong to each centre, whichever cells these are.

        Which cells are a centre's own was decided by the noise. So its bound holds for all regions at once that centres
        can have: cells between k - 1 pairs of centres. A plane cuts M points of d coordinates in at most
        2 * sum of C(M - 1, i), i <= d, ways. Whether cells were counted anew was decided by the noise as well: bounds
        for both cases, each for half of what the level leaves, hold together.
        """
        cells, people = parts[:2]
        grid, noise = grid_of(cells.plan), cells.plan.noise
        sums = _sums(own, cells.values, self.k)
        if noise is None:
            return sums, sums
        many = len(own)
        cuts = 2 * sum(math.comb(many - 1, axis) for axis in range(len(grid.axes) + 1))
        # each way to cut is one of 2^M at most
        nats = min((self.k - 1) * math.log(cuts), many * math.log(2)) + math.log(4 / (1 - level))
        unit = 1 / grid.parts
        sizes = np.bincount(own, minlength=self.k)
        reach = {size: far_bounds(((noise, 1.0, int(size)),), nats) for size in set(sizes.tolist())}
        low, high = (np.array([reach[size][end] for size in sizes.tolist()]) * unit for end in (0, 1))
        most = people.values[0] if people.exact.all() else math.inf
        return np.clip(sums - high, 0.0, most), np.clip(sums - low, 0.0, most)

    def range(self, domain: Domain) -> tuple[float, float]:
        lines = lines_of(self.names, domain)
        return 0.0, math.hypot(*(abs(line.step) * (line.axis.size - 1) for line in lines))

    def expected_error(self, parts: Sequence[LinearPlan], people: float) -> float:
        """Return the root of what cells and noise add to the mean squared distance to the nearest centre."""
        return math.sqrt(added_distance(parts[0], self.k, people))

    def prediction(self) -> str:
        return (
            ", and is about distances: the root of what cells and noise are expected to add to the mean squared "
            "distance of a person to the nearest centre"
        )

    def terms(self, parts: Sequence[LinearPlan]) -> list[str]:
        return [
            f"the number of {self.who} in the cells nearest to each centre; intervals hold for these cells, "
            "however the noise has chosen them"
        ]

    def __str__(self) -> str:
        return f"clusters({', '.join(self.names)}, k={self.k}{suffix(self.where, self.of)})"


@dataclass(frozen=True)
class ClustersPlan(DerivedPlan):
    """How clusters will be found. The width of the cells depends on the number of people that it was planned for.

    `look` is the look at the cells that comes first, if there is one. It is part of what the cells cost: where they are
    counted anew, that has the rest, and where they are not, the look is a noisier copy of their counts.
    """

    query: Clusters
    look: LinearPlan | None = field(default=None, kw_only=True)

    def for_so_many(self, people: float) -> ClustersPlan:
        """Return the plan for the number of people that was measured: this one if it is for as many."""
        many = max(round(people), 0)
        return self if many == self.known_people else self.query.plan_for(self.policy, self.epsilon, many)

    def done(self, parts: Sequence[LinearPlan]) -> ClustersDone:
        """Return what came of this plan, which is for the number of people that was measured, from the parts used."""
        cells, people = parts[:2]
        step = step_of(list(zip(STAGES, parts, strict=False)))
        why, through = (
            f"{cells.why}; the number of {self.query.who}: {people.why}",
            f"through {grid_of(cells).shape_words()}",
        )
        made = partial(ClustersDone, self.query, self.policy, self.epsilon, step, why, tuple(parts), self)
        return made(strategy=through, known_people=self.known_people)

    @property
    def outcomes(self) -> tuple[ClustersDone, ...]:
        """What may come of it for so many people: the cells as they are, or cells that are all cut in two."""
        kept = self.done(self.parts)
        return (kept,) if self.look is None else (kept, self.done((all_cut(self.look), self.parts[1], self.look)))

    @property
    def tallied(self) -> tuple[Measured, ...]:
        """What rows are counted for: every cell of the domain, of which the cells of any grid are made, and people."""
        return self.query.counted, self.parts[1].base

    @property
    def has_error(self) -> bool:
        """Yes: cells without noise are coarse as well."""
        return True

    def half_width(self, level: float = LEVEL) -> None:
        """Return nothing: how far centres may be off depends on where people are."""

    def predictions(self) -> list[str]:
        return [*super().predictions(), *self.stages()]

    def stages(self) -> list[str]:
        """Return in words what is measured one after the other, and what each costs."""
        cells, people = self.parts
        found = []
        if self.known_people is None or self.query.where is not None:
            cost = "exactly" if people.is_exact else f"for epsilon {shown(people.epsilon)}"
            found.append(
                f"the number of {self.query.who} is measured first, {cost}; the cells (here for {self.assumption}), "
                "and whether there is a look at them, follow from it"
            )
        if self.look is not None or found:
            look, rest, both = (shown(cells.epsilon * part / LOOK) for part in (1, LOOK - 1, LOOK))
            found.append(
                f"if there is a look at the cells: it has epsilon {look}. Where it shows people in few cells, these "
                f"are cut and all cells counted anew for epsilon {rest}; where it does not, the counts are shown of "
                f"which the look was a noisier copy, for epsilon {both} with the look"
            )
        return found

    def predicted(self) -> dict[str, Any]:
        return {**super().predicted(), "stages": self.stages()}

    def noise_document(self) -> dict[str, Any] | None:
        """Return the noise of each part as plain, exact data; of the look too, which is part of what the cells cost."""
        found = super().noise_document()
        if found is None or self.look is None:
            return found
        look = {"epsilon": str(self.look.epsilon), **(self.look.noise_document() or {})}
        rest = str(self.parts[0].epsilon - self.look.epsilon)
        return {**found, "look": look, "zoom": {"epsilon": rest, "law": "what the cells need that are counted"}}

    def terms(self) -> list[str]:
        return [*super().terms(), *self.stages()]


@dataclass(frozen=True)
class ClustersDone(ClustersPlan):
    """What came of a plan: the parts that were used, the look among them where cells were counted anew.

    It follows from released and from public numbers. `settled` is the plan for the number of people that was measured,
    and has the expected error; `look` is None, since nothing is open any more.
    """

    settled: ClustersPlan

    def named(self) -> list[tuple[str, LinearPlan]]:
        return list(zip(STAGES, self.parts, strict=False))

    @property
    def assumption(self) -> str:
        return f"{self.known_people:,} {self.query.who}, as measured"

    def stages(self) -> list[str]:
        cells, people, *looks = self.parts
        cost = "exactly" if people.is_exact else f"for epsilon {shown(people.epsilon)}"
        found = [f"the number of {self.query.who} was measured first, {cost}; the cells followed from it"]
        counted = "exactly" if cells.noise is None else f"for epsilon {shown(cells.epsilon)}"
        if looks:
            (look,) = looks
            return [
                *found,
                f"a look at {grid_of(look).shape_words()}, for epsilon {shown(look.epsilon)}, showed people in few of "
                f"them. All were counted anew, {counted}: {grid_of(cells).shape_words()}; {cells.answers:,} in all",
            ]
        copy = (
            "" if self.settled.look is None else "; a look, which was a noisier copy of their counts, led to no others"
        )
        return [*found, f"{grid_of(cells).shape_words()} were counted {counted}{copy}"]

    def noise_document(self) -> dict[str, Any] | None:
        found, counted = super().noise_document(), dict(self.named())
        return found and {role: {"counted": counted[role].query.document(), **law} for role, law in found.items()}

    @property
    def rmse(self) -> float:
        return self.settled.rmse


def _so_many(people: int | None) -> float:
    return float(PEOPLE if people is None else max(people, 1))


def _sums(own: Ints, weights: Floats, k: int) -> Floats:
    return np.bincount(own, weights, k).astype(np.float64)


def clusters(*names: str, k: int, where: Where | str | None = None, of: str | None = None) -> Clusters:
    """Ask for k centres such that people lie close to the nearest one, by squared distance (k-means)."""
    if not names:
        raise PlanError("must name an attribute", key="clusters", given=[], fix="For instance clusters('age', k=3).")
    check_names(names, "clusters")
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_CENTRES:
        raise PlanError(
            f"must be a whole number from 1 to {MOST_CENTRES:,}", key="clusters.k", given=k, fix="For instance k=4."
        )
    return Clusters(tuple(names), int(k), read_where(where), of=of)


CLUSTERS: Final = Question(
    "clusters",
    keys=(ATTRIBUTES, Key("k", POSITIVE, "How many centres.", required=True), WHERE, OF),
    ask=clusters,
    example=lambda policy: clusters(
        first_attribute(policy, "clusters", lambda attribute: bool(attribute.coordinates)), k=2
    ),
    shown=(("`{clusters: {attributes: [x, y], k: 4}}`", "centres that people lie close to, and how many around each"),),
)
