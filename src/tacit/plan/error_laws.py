"""How far estimates are off: the laws of their errors, and the expected error of a plan, from public parameters alone.

What is said here is about what `release/estimate/infer.py` does by default, with the same facts, which the plan holds:
subtract the mean of the noise, then use the totals that no secret edge changes, by least squares, and make several
tables agree if that is asked for. Rising counts and non-negativity are projections on sets that contain the truth: for
them the expected error is an upper bound, and intervals still hold.

The estimate of an answer is sum over j of weight_j * noisy_j, plus what is known exactly. Answers whose errors have the
same law share one. These are the weights, for every way in which answers are estimated:

* an entry by itself: weight 1;
* a cell of a group with an exact total: least squares subtracts the share v_i / sum of v of the group's error;
* k of n cells of a block with an exact total, added up: weights 1 - k/n inside and -k/n outside, for the k cells are
  known as well from themselves as from the n - k others. What is left is k (1 - k/n) times the variance of one cell. A
  range of cells cuts at most two blocks; all blocks in between are exact;
* the difference of two cumulative counts: weights 1 and -1.

Where sums of cells have too many laws, those of nearly as many cells share one, and their bounds are moved outwards by
a bound on what they differ by (`noise/sum_bounds.py`).

Tables that were made to agree are at least as close to the truth as each by itself. They have the intervals of the
latter, which hold at least at their level.

Counts on a line are differences of estimated running counts, whatever noise is added to. `LineErrors` is what every way
to estimate them says about itself: the variance of a run of neighbouring positions, the mean over all runs of a kind
without listing them, and bounds that hold, from the law of its error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Floats, Ints
from tacit.noise.law import Kind, Law
from tacit.noise.sum_bounds import Term, bounds_near

if TYPE_CHECKING:
    from tacit.plan.measure.measured import Measured
    from tacit.plan.measure.workload import Workload
    from tacit.plan.plans.linear import LinearPlan
    from tacit.plan.question import Linear
    from tacit.policy.policy import Policy


Array = TypeVar("Array", bound="np.ndarray[Any, Any]")
Apart: TypeAlias = tuple[tuple[Law, int, int], ...]
WIDEST: Final = 16  # laws among which the widest bound is looked for
MOST_LAWS: Final = 1500  # that are worked out for one release, at a few milliseconds each; more share some
RATIOS: Final = (1.005, 1.01, 1.02, 1.04, 1.08, 1.16, 1.32, 1.64, 2.0, 4.0)  # of the numbers of cells that are tried


# ---- laws ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PositionGroups:
    """For each position the first and last position of its group; groups are unbroken."""

    first: Ints
    last: Ints


def blocks_of(groups: Ints) -> PositionGroups | None:
    """Return the groups as blocks, or None if some group has a gap."""
    if not groups.any():  # one group
        return PositionGroups(np.zeros_like(groups), np.full_like(groups, len(groups) - 1))
    if (np.diff(groups) < 0).any():
        return None
    first = np.searchsorted(groups, groups, side="left")
    last = np.searchsorted(groups, groups, side="right") - 1
    return PositionGroups(first.astype(np.int64), last.astype(np.int64))


def cells_in_sum(low: Ints, high: Ints, blocks: PositionGroups | None) -> Floats:
    """Return the variance of the sum of the cells low..high, in units of one cell's noise variance."""
    pieces = _pieces(low, high, blocks, even=False)
    inside, whole = pieces[:, [0, 2]].astype(np.float64), pieces[:, [1, 3]]
    shares = np.divide(inside, whole, out=np.zeros_like(inside), where=whole > 0)
    return np.asarray((inside * (1 - shares)).sum(axis=1))


class AnySpread(ABC):
    """What is known of the errors of estimates."""

    @abstractmethod
    def bounds(self, level: float) -> tuple[Floats, Floats]:
        """Return for each answer low <= estimate - truth <= high, which holds at this level."""

    def half_width(self, level: float) -> float:
        """Return what no answer is off by more than, at this level."""
        low, high = self.bounds(level)
        return float(max(-low.min(initial=0.0), high.max(initial=0.0)))

    @abstractmethod
    def variances(self) -> Floats:
        """Return the variance of each answer's estimate."""

    @abstractmethod
    def exact(self) -> Bools:
        """Return which answers have no noise at all."""


def read_only(array: Array) -> Array:
    """Return an array that nobody can write to, nor make writeable again: a plan is what was explained, for good."""
    own = array if array.base is None else array.copy()
    own.flags.writeable = False
    return own.view()


@dataclass(frozen=True, eq=False)
class ShapedSpread(AnySpread):
    """Errors of which variances are known, and a bound for each level and variance that holds on either side."""

    variance: Floats
    bound: Callable[[float, Floats], Floats]

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", read_only(self.variance))

    def bounds(self, level: float) -> tuple[Floats, Floats]:
        most = self.bound(level, self.variance)
        return -most, most

    def variances(self) -> Floats:
        return self.variance

    def exact(self) -> Bools:
        return np.asarray(self.variance == 0)


@dataclass(frozen=True, eq=False)
class Spread(AnySpread):
    """The laws of the errors of estimates, and for each answer which of them is its own."""

    laws: tuple[tuple[Term, ...], ...]
    which: Ints
    apart: tuple[Apart, ...] | None = None  # how far each law may be from those of its answers; None: they are the same

    def __post_init__(self) -> None:
        object.__setattr__(self, "which", read_only(self.which))

    def bounds(self, level: float) -> tuple[Floats, Floats]:
        found = self._bounds_of(range(len(self.laws)), level)
        return self._of_each(found[:, 0]), self._of_each(found[:, 1])

    def half_width(self, level: float) -> float:
        """Return the same of the laws with the largest variances: many laws are sums of more and more of one noise."""
        widest = np.argsort(-self._variances(), kind="stable")[:WIDEST].tolist()
        return float(np.abs(self._bounds_of(widest, level)).max(initial=0.0))

    def _bounds_of(self, numbers: Sequence[int], level: float) -> Floats:
        apart = self.apart or ((),) * len(self.laws)
        each = [bounds_near(self.laws[at], apart[at], level) for at in numbers]
        return np.array(each, dtype=np.float64).reshape(-1, 2)

    def variances(self) -> Floats:
        """Return the variance of each answer's estimate; of answers that share a law, that of the law."""
        return self._of_each(self._variances())

    def _variances(self) -> Floats:
        each = [sum(many * weight**2 * law.variance() for law, weight, many in terms) for terms in self.laws]
        return np.array(each, dtype=np.float64)

    def exact(self) -> Bools:
        silent = [not any(weight and many and law.variance() for law, weight, many in terms) for terms in self.laws]
        if self.apart is not None:
            silent = [is_silent and not far for is_silent, far in zip(silent, self.apart, strict=True)]
        return self._of_each(np.array(silent, dtype=np.bool_))

    def _of_each(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.broadcast_to(numbers, self.which.shape) if len(numbers) == 1 else numbers[self.which]


def spread_of(plan: LinearPlan) -> AnySpread:
    """Return the laws of the estimates of a plan."""
    if plan.noise is None:
        return Spread(((),), np.zeros(plan.answers, dtype=np.int64))
    if plan.line is not None:
        return spread_of_runs(plan, *plan.line.query.runs(plan.policy.domain))
    return _by_entry(plan)


def spread_of_runs(plan: LinearPlan, low: Ints, high: Ints) -> AnySpread:
    """Return the laws of the estimated counts of these runs of positions."""
    if plan.noise is None:
        return Spread(((),), np.zeros(len(low), dtype=np.int64))
    errors = plan.line_errors
    if errors is not None:
        return errors.spread(low, high)
    # counts whose noise is drawn together: bounds of differences hold whatever they have in common
    return NoisyCounts.of(plan.noise, plan.fixed, plan.base.size(plan.policy.domain)).spread(low, high)


def of_cells(noise: Law, low: Ints, high: Ints, blocks: PositionGroups | None) -> Spread:
    """Return the laws of sums of neighbouring cells, in blocks with exact totals."""
    pieces = _pieces(low, high, blocks, even=noise.is_even)
    shared = pieces
    for ratio in RATIOS:
        if int(_numbered(shared).max(initial=0)) < MOST_LAWS:
            break
        shared = _nearby(pieces, ratio)

    def of_pieces(piece: Sequence[int]) -> tuple[Term, ...]:
        terms: list[Term] = []
        for inside, whole in (piece[:2], piece[2:]):
            share = inside / whole if whole else 0.0
            terms += [(noise, 1 - share, int(inside)), (noise, -share, int(whole - inside) if whole else 0)]
        return tuple(terms)

    spread = _shared(shared, of_pieces)
    if shared is pieces:
        return spread
    most = np.zeros((len(spread.laws), 4), dtype=np.int64)
    np.maximum.at(most, spread.which, np.abs(pieces - shared))
    whole = np.zeros_like(most)
    whole[spread.which] = shared
    apart = zip(most.tolist(), whole.tolist(), strict=True)
    return Spread(
        spread.laws,
        spread.which,
        tuple(tuple((noise, far[end], of[end + 1]) for end in (0, 2) if far[end]) for far, of in apart),
    )


def _by_entry(plan: LinearPlan) -> Spread:
    entries = plan.base.size(plan.policy.domain)
    laws = plan.laws()
    own: Ints = np.broadcast_to(np.int64(0), (entries,))
    if len(laws) > 1:
        own = np.zeros(entries, dtype=np.int64)
        for number, (_, where) in enumerate(laws):
            own[where] = number
    groups = plan.groups
    if groups is None:
        return Spread(tuple(((law, 1.0, 1),) for law, _ in laws), own)
    # how many cells of each law a group has; groups that have the same are alike
    starts = np.cumsum([len(group) for group in groups])[:-1]
    composition = []
    for group, mine in zip(groups, np.split(own, starts), strict=True):
        many = int(group.max()) + 1
        counts = np.stack([np.bincount(group, mine == law, minlength=many) for law in range(len(laws))], axis=1)
        composition.append(counts.astype(np.int64))
    listed = np.concatenate(composition)
    _, first, alike = np.unique(_numbered(listed), return_index=True, return_inverse=True)
    members = listed[first].tolist()
    variances = [law.variance() for law, _ in laws]

    def in_group(kind: int) -> tuple[Term, ...]:
        mine, group = divmod(kind, len(members))
        doubt = sum(many * variance for many, variance in zip(members[group], variances, strict=True))
        share = variances[mine] / doubt if doubt > 0 else 0.0
        terms: list[Term] = [(laws[mine][0], 1 - share, 1)]
        for number, many in enumerate(members[group]):
            terms.append((laws[number][0], -share, many - (number == mine)))
        return tuple(terms)

    if len(laws) * len(members) == 1:
        return Spread((in_group(0),), own)
    # of each cell the law and the kind of group, as one number
    ends = np.cumsum([len(counts) for counts in composition])[:-1]
    parts = [numbers[group] for numbers, group in zip(np.split(alike.reshape(-1), ends), groups, strict=True)]
    kinds = own * len(members) + np.concatenate(parts)
    there = np.bincount(kinds, minlength=len(laws) * len(members)) > 0
    which = (np.cumsum(there) - 1)[kinds].astype(np.int64)
    return Spread(tuple(in_group(kind) for kind in np.flatnonzero(there).tolist()), which)


def _shared(kinds: Ints, law_of: Any) -> Spread:
    """Return one law for all answers of a kind."""
    _, first, which = np.unique(_numbered(kinds), return_index=True, return_inverse=True)
    return Spread(tuple(law_of(kind) for kind in kinds[first].tolist()), which.reshape(-1).astype(np.int64))


def _numbered(kinds: Ints) -> Ints:
    """Return one number for each kind, a row of numbers."""
    key = np.zeros(len(kinds), dtype=np.int64)
    for column in kinds.T:
        # renumbered after each column, so that the product stays below the square of how many rows there are
        key = np.unique(key * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].reshape(-1)
    return key


def _pieces(low: Ints, high: Ints, blocks: PositionGroups | None, *, even: bool) -> Ints:
    """Return for each sum of cells how many it takes of how many, at its two ends; of 0 where no total is exact.

    The error of the other cells of a block is the negative of it, which is as likely with `even` noise.
    """
    nothing = np.zeros_like(low)
    if blocks is None:
        return np.stack([high - low + 1, nothing, nothing, nothing], axis=1)
    same = blocks.first[low] == blocks.first[high]
    head = np.where(same, high - low + 1, blocks.last[low] - low + 1)
    tail = np.where(same, 0, high - blocks.first[high] + 1)
    whole = blocks.last[low] - blocks.first[low] + 1
    other = np.where(same, 0, blocks.last[high] - blocks.first[high] + 1)
    # whole blocks are exact, and the order of the two ends does not matter
    ends = np.stack([np.where(head == whole, 0, head), whole, np.where(tail == other, 0, tail), other], axis=1)
    if even:
        ends[:, [0, 2]] = np.minimum(ends[:, [0, 2]], ends[:, [1, 3]] - ends[:, [0, 2]])
    ends[ends[:, 0] == 0, :2] = 0
    ends[ends[:, 2] == 0, 2:] = 0
    swap = ends[:, 0] * (whole.max() + 1) + ends[:, 1] < ends[:, 2] * (whole.max() + 1) + ends[:, 3]
    ends[swap] = ends[swap][:, [2, 3, 0, 1]]
    return ends


def _nearby(pieces: Ints, ratio: float) -> Ints:
    """Return sums of nearly as many cells, of which fewer differ."""
    out = pieces.copy()
    for inside, whole in ((0, 1), (2, 3)):
        k, n = pieces[:, inside], pieces[:, whole]
        less = np.where((n > 0) & (2 * k > n), n - k, k)  # as far from half of the block, on its near side
        steps = np.arange(0, np.log(less.max(initial=1) + 1) / np.log(ratio) + 2)
        grid = np.unique(np.ceil(ratio**steps)).astype(np.int64)
        near = grid[np.searchsorted((grid[:-1] + grid[1:]) / 2, less)]
        near = np.where(n > 0, np.minimum(near, n // 2), near)
        out[:, inside] = np.where(k == 0, 0, np.where((n > 0) & (2 * k > n), n - near, near))
    return out


# ---- expected errors -------------------------------------------------------------------------------------------------


class LineErrors(ABC):
    """How far estimated counts of runs are off."""

    @abstractmethod
    def run_variance(self, low: Ints, high: Ints) -> Floats:
        """Return the variance of the estimated number of people at the positions low..high."""

    @abstractmethod
    def mean_variance(self, kind: Kind) -> float:
        """Return its mean over all ranges, all prefixes or all single positions."""

    @abstractmethod
    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """Return the law of the error of each run, or what is known of it."""


def mean_over(errors: LineErrors, asked: Workload) -> float:
    """Return the mean variance of the runs that are asked for."""
    if asked.listed is None:
        return float(errors.mean_variance(asked.kind))
    return float(errors.run_variance(asked.ends[:, 0], asked.ends[:, 1]).mean())


@dataclass(frozen=True, eq=False)
class NoisyCounts(LineErrors):
    """Running counts with uncorrelated noise of one law, but for the exact ones."""

    noise: Law
    noisy: Bools

    def __post_init__(self) -> None:
        object.__setattr__(self, "noisy", read_only(self.noisy))

    @classmethod
    def of(cls, noise: Law, fixed: Bools | None, size: int) -> NoisyCounts:
        """Return so many counts, of which these are exact."""
        return cls(noise, np.ones(size, dtype=np.bool_) if fixed is None else ~fixed)

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        ends = np.stack([self.noisy[high], (low > 0) & self.noisy[low - 1]], axis=1).astype(np.int64)
        return _shared(ends, lambda end: ((self.noise, 1.0, int(end[0])), (self.noise, -1.0, int(end[1]))))

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        before = (low > 0) & self.noisy[low - 1]
        return np.asarray(self.noise.variance() * (self.noisy[high].astype(np.float64) + before))

    def mean_variance(self, kind: Kind) -> float:
        """A count is the upper end of the p+1 ranges up to it and the lower end of the n-1-p behind it: n in all."""
        values, noisy = len(self.noisy), int(self.noisy.sum())
        match kind:
            case "ranges":
                return self.noise.variance() * 2 * noisy / (values + 1)
            case "prefixes":
                return self.noise.variance() * noisy / values
            case "cells":  # every count but the last is the lower end of one cell as well
                return self.noise.variance() * (2 * noisy - int(self.noisy[-1])) / values


@dataclass(frozen=True, eq=False)
class NoisyCells(LineErrors):
    """Sums of cells with uncorrelated noise of one law, in blocks with exact totals."""

    noise: Law
    values: int
    blocks: PositionGroups | None

    def __post_init__(self) -> None:
        if self.blocks is not None:
            object.__setattr__(
                self, "blocks", PositionGroups(read_only(self.blocks.first), read_only(self.blocks.last))
            )

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        return of_cells(self.noise, low, high, self.blocks)

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        return self.noise.variance() * cells_in_sum(low, high, self.blocks)

    def mean_variance(self, kind: Kind) -> float:
        """Sums over whole blocks in closed form.

        A block of m cells has the part k with the variance k (1 - k/m). Each of the (m^2 - 1)/6 that the parts
        k = 1..m from either end add up to is met once for every range that begins (ends) here and ends (begins) in
        another block; ranges within the block are those of k cells, m + 1 - k of them.
        """
        n = self.values
        if self.blocks is None:
            return self.noise.variance() * {"ranges": (n + 2) / 3, "prefixes": (n + 1) / 2, "cells": 1.0}[kind]
        starts = np.flatnonzero(self.blocks.first == np.arange(n))
        m = np.diff(starts, append=n).astype(np.float64)
        ends = (m * m - 1) / 6
        match kind:
            case "prefixes":
                total = ends
            case "cells":
                total = m - 1
            case "ranges":
                within = (m + 1) * ends - m * (m + 1) * (2 * m + 1) / 6 + m * (m + 1) ** 2 / 4
                total = within + (n - m) * ends
        return self.noise.variance() * float(total.sum()) / (n * (n + 1) / 2 if kind == "ranges" else n)


def expected_variance(plan: LinearPlan) -> float:
    """Return the variance of an answer, averaged over the answers."""
    noise, base, domain = plan.noise, plan.base, plan.policy.domain
    if noise is None:
        return 0.0
    agreed = agreed_variance(plan)
    if agreed is not None:
        return agreed
    if plan.line is not None:
        errors = plan.line_errors
        if errors is not None:
            return mean_over(errors, plan.line.query.workload(domain))
        # entries that depend on each other: their sums are not predicted, so a way that adds them up is not taken
        exact = 0.0 if plan.fixed is None else float(plan.fixed.mean())
        return noise.variance() * (1 - exact) if plan.query is base else math.inf
    if plan.sides is None or noise.is_joint:
        # v - v^2 / (n v) for each of the n cells of a group with an exact total: what is left of n cells is n - 1
        totals = sum(int(group.max()) + 1 for group in plan.groups or ())
        return noise.variance() * (1 - totals / base.size(domain))
    entries = _by_side(noise, plan.sides)
    if plan.groups is not None:
        ends = np.cumsum([len(group) for group in plan.groups])[:-1]
        entries = np.concatenate(
            [_after_total(part, group) for part, group in zip(np.split(entries, ends), plan.groups, strict=True)]
        )
    return float(entries.mean())


def agreed_variance(plan: LinearPlan) -> float | None:
    """Return the variance of a cell, averaged over all, after several tables were made to agree; None where unknown.

    As in the analysis of variance, a table is a sum of orthogonal parts, one for each set S of its attributes, with one
    dimension for each combination of values but the first. A table of n cells of variance v gives the part of S, summed
    up to the n_S cells of S, with variance n v / n_S. Least squares weighs the tables that contain S by the inverse of
    that, and spreads the part evenly over the n / n_S cells of a table that each of these cells stands for.
    """
    domain, noise = plan.policy.domain, plan.noise
    tables = plan.base.tables(domain)
    if not plan.consistent or len(tables) < 2 or plan.query is not plan.base or noise is None:
        return None
    if plan.sides is not None or (noise.is_joint and not noise.is_even):
        return None
    shapes = [tuple(domain[name].size for name in names) for names in tables]
    cells = [math.prod(shape) for shape in shapes]
    entries = plan.per_entry(lambda law: law.variance())
    variances = [float(entries[end - size]) for end, size in zip(np.cumsum(cells), cells, strict=True)]
    weights: dict[frozenset[str], float] = {}
    for names, size, variance in zip(tables, cells, variances, strict=True):
        for part in _subsets(names):
            weights[part] = weights.get(part, 0.0) + (1 / (size * variance) if variance else math.inf)
    for names, shape, group in zip(tables, shapes, plan.groups or (), strict=bool(plan.groups)):
        known = _attributes_of(group, names, shape)
        if known is None:
            return None
        weights.update(dict.fromkeys(_subsets(known), math.inf))
    total = sum(
        math.prod(domain[name].size - 1 for name in part) / (size * weights[part])
        for names, size in zip(tables, cells, strict=True)
        for part in _subsets(names)
    )
    return total / sum(cells)


def _subsets(names: tuple[str, ...]) -> Iterator[frozenset[str]]:
    return (frozenset(some) for many in range(len(names) + 1) for some in combinations(names, many))


def _attributes_of(group: Ints, names: tuple[str, ...], shape: tuple[int, ...]) -> tuple[str, ...] | None:
    """Return the attributes whose cells the groups of a table are; None if the groups are no cells of attributes."""
    labels = group.reshape(shape)
    telling = [axis for axis in range(len(shape)) if np.diff(labels, axis=axis).any()]
    many = math.prod(shape[axis] for axis in telling)
    return tuple(names[axis] for axis in telling) if many == int(group.max()) + 1 else None


def groups_used(query: Linear, base: Measured, policy: Policy, noise: Law | None) -> list[Ints] | None:
    """Return the groups of cells whose exact totals a release uses, or None.

    Least squares wants uncorrelated noise, so a one-sided cube uses none. Sums of cells use groups without gaps only.
    """
    if noise is None or (noise.is_joint and not noise.is_even):
        return None
    groups = base.finest_groups(policy)
    if groups is not None and query is not base and blocks_of(groups[0]) is None:
        return None
    return groups


def _by_side(noise: Law, sides: tuple[Bools, Bools]) -> Floats:
    right, left = (noise.on_sides(falls=falls, rises=not falls).variance() for falls in (True, False))
    falls, rises = sides
    return np.where(falls & rises, noise.variance(), np.where(falls, right, 0.0) + np.where(rises, left, 0.0))


def _after_total(variances: Floats, group: Ints) -> Floats:
    """Return what is left of each variance after weighted least squares with an exact total: v - v^2 / sum of v."""
    sums = np.bincount(group, variances)[group]
    return variances - np.divide(variances**2, sums, out=np.zeros_like(variances), where=sums > 0)
