"""Nearest values that fit what is known of the truth: exact totals, rising counts, no negative ones, tables that agree.

Post-processing, which costs no privacy. Nothing here sees true answers other than totals that no secret edge changes
(`plan/sensitivity/moves.py`). Everything but `following` is a projection on a convex set that contains the
truth, so it never leads further away from it.

Tables agree if their sums over shared attributes, and over groups with exact totals, match. The projection is the x
nearest to y, in squares weighed by one over a variance, among all x with P (b - A x) = 0 and, if asked, x >= 0. Each
row of A adds up the cells of one table over one combination of attributes (or over one group), P leaves out what the
tables that share a combination have in common, and b has the exact totals. The true tables satisfy all of this.

By duality x = y + variance * A'P u, cut at zero, for the multipliers u that make the gaps vanish. They are found by an
accelerated gradient method that restarts whenever it overshoots. Its step is safe: a row of A that adds up cells of
variance w in all, of which none is in more than k rows, may move by 1 / (k w), since then A V A' <= 1 / step. The work
is bounded by the number of cells, and nothing is random. Cells without variance stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def with_totals(values: Floats, groups: Ints, totals: Floats, variances: Floats) -> Floats:
    """Return the nearest values whose sums over groups are the exact totals (weighted least squares).

    What is missing in a group is shared out in proportion to how uncertain each value is.
    """
    missing = totals - np.bincount(groups, values, minlength=len(totals))
    doubt = np.bincount(groups, variances, minlength=len(totals))
    rate = np.divide(missing, doubt, out=np.zeros_like(missing), where=doubt > 0)
    return values + variances * of_groups(rate, groups)


def of_groups(numbers: Floats, groups: Ints) -> Floats:
    """Return for each value the number of its group."""
    return np.broadcast_to(numbers, groups.shape) if len(numbers) == 1 else numbers[groups]


def nonnegative(values: Floats, groups: Ints | None = None, totals: Floats | None = None) -> Floats:
    """Return the nearest values that are not negative and, if given, keep the groups' exact totals.

    Within a group this is the projection on a simplex: subtract what makes the positive parts add up. Newton's method
    from below finds it, since the sum of positive parts is convex: what is subtracted only grows, until the values that
    stay positive are the right ones.
    """
    if groups is None or totals is None:
        return np.asarray(np.maximum(values, 0.0))
    many = np.bincount(groups, minlength=len(totals))
    # within a group everything is reckoned from its largest value: large counts of one group drown no others
    top = np.full(len(totals), -np.inf)
    np.maximum.at(top, groups, values)
    below = values - top[groups]  # at most 0
    lowest = (np.bincount(groups, below, minlength=len(totals)) - totals) / np.maximum(many, 1)
    while True:
        kept = below > lowest[groups]
        counts = np.bincount(groups, kept, minlength=len(totals))
        sums = np.bincount(groups[kept], below[kept], minlength=len(totals))
        higher = np.divide(sums - totals, counts, out=lowest.copy(), where=counts > 0)
        if not (higher > lowest).any():
            return np.where(kept, np.maximum(below - lowest[groups], 0.0), 0.0)
        lowest = np.maximum(lowest, higher)


def increasing(values: Floats, exact: npt.NDArray[np.bool_] | None, truth_at_exact: Floats | None) -> Floats:
    """Return the nearest cumulative counts that never fall, between 0 and the exact ones."""
    from scipy.optimize import isotonic_regression  # takes longer to load than most releases to be made

    if exact is None or truth_at_exact is None or not exact.any():
        return np.maximum(np.asarray(isotonic_regression(values).x), 0.0)
    out = np.empty_like(values)
    start, floor = 0, 0.0
    for end, known in zip(np.flatnonzero(exact), truth_at_exact, strict=True):
        inner = values[start:end]
        if inner.size:
            out[start:end] = np.clip(np.asarray(isotonic_regression(inner).x), floor, known)
        out[end] = known
        start, floor = int(end) + 1, float(known)
    if start < len(values):
        out[start:] = np.maximum(np.asarray(isotonic_regression(values[start:]).x), floor)
    return out


def following(values: Floats, rising: Floats, exact: npt.NDArray[np.bool_] | None, alike: float) -> Floats:
    """Return rising counts of which those that stayed as they were follow the ones that were moved.

    `rising` moved some of the noisy values, by what is now known of their errors. Neighbours have errors that are much
    alike (their correlation is `alike`, and falls with the distance as that of an autoregression does), so those of the
    values that stayed are expected to be such parts of them. Else the step from a moved count to its neighbour would
    have all of the neighbour's error, where the noisy one has the little in which the two differ. The result may fall
    in places.
    """
    moved = rising != values
    settled = moved if exact is None else moved | exact
    if alike <= 0 or not moved.any():
        return rising
    at = np.arange(len(values))
    # the count before the first value is zero, without an error; after the last one there is nothing to follow
    before = np.maximum.accumulate(np.where(settled, at, -1))
    after = np.minimum.accumulate(np.where(settled, at, len(values))[::-1])[::-1]
    error = np.concatenate([values - rising, [0.0, 0.0]])  # at len(values), and at -1
    left, right = (alike ** (at - before)), np.where(after < len(values), alike ** (after - at), 0.0)
    between = 1 - (left * right) ** 2
    shared = (left * (1 - right**2) * error[before] + right * (1 - left**2) * error[after]) / np.where(
        settled, 1.0, between
    )
    return np.where(settled, rising, values - shared)


Names = tuple[str, ...]
LARGEST_FIT: Final = 2_000_000  # cells of tables that are made to agree
MOST_TABLES: Final = 4_000  # all pairs of them are looked at
MOST_SUMMED: Final = 32_000_000  # cells of all sums that must agree: about 1 GB while they are laid out


@lru_cache(maxsize=8)
def shared_names(tables: tuple[Names, ...]) -> tuple[Names, ...]:
    """Return every combination of attributes that two of the tables share, and no more."""
    return tuple(sorted({tuple(sorted(set(a) & set(b))) for a, b in combinations(tables, 2)}))


def check_agreement(tables: Sequence[Names], sizes: Sequence[int]) -> None:
    """Refuse tables of so many cells that cannot be made to agree in bounded memory and time."""
    fix = "Ask for fewer or smaller tables, or leave it out."
    cells = sum(sizes)
    if cells > LARGEST_FIT:
        rule = f"is for tables of {LARGEST_FIT:,} cells at most, and these have {cells:,}"
        raise PlanError(rule, key="consistent", fix=fix)
    if len(tables) > MOST_TABLES:
        rule = f"is for {MOST_TABLES:,} tables at most, and these are {len(tables):,}"
        raise PlanError(rule, key="consistent", fix=fix)
    holders = [frozenset(names) for names in tables]
    wanted = [frozenset(names) for names in shared_names(tuple(tables))]
    summed = cells + sum(size for names in wanted for held, size in zip(holders, sizes, strict=True) if names <= held)
    if summed > MOST_SUMMED:
        rule = f"is for sums of {MOST_SUMMED:,} cells in all at most, and these tables share sums of {summed:,}"
        raise PlanError(rule, key="consistent", fix=fix)


TOLERANCE: Final = 1e-10  # people by which sums that must agree may differ; in large sums, what a float can tell
FEWEST_STEPS: Final = 500
MOST_STEPS: Final = 20_000
_WORK: Final = 10**9  # cells that are looked at in all: small tables get more steps


@dataclass(frozen=True, eq=False)
class Agreement:
    """Which sums of the cells of several tables must be equal, and which have a known value.

    `sums` has a row of zeros and ones for each sum. Rows with the same number in `shared` must be equal; those with -1
    must be what `totals` says. `even` has the shares of cells in tables where all combinations are equally frequent.
    """

    sums: csr_matrix
    shared: Ints
    totals: Floats
    even: Floats

    def differences(self, numbers: Floats) -> Floats:
        """Return numbers for each row, less what the rows that must be equal have in common."""
        free = self.shared >= 0
        if not free.any():
            return numbers
        common = np.bincount(self.shared[free], numbers[free]) / np.bincount(self.shared[free])
        out = numbers.copy()
        out[free] -= common[self.shared[free]]
        return out

    def missing(self, cells: Floats) -> Floats:
        """Return what the sums lack."""
        return self.differences(self.totals - self.sums @ cells)

    def step(self, missing: Floats, pace: Floats) -> Floats:
        """Return how multipliers move against what is missing, each at its own pace, in steps that cancel out."""
        free = self.shared >= 0
        out = missing.copy()
        if free.any():
            numbers = self.shared[free]
            moved, paces = np.bincount(numbers, (pace * missing)[free]), np.bincount(numbers, pace[free])
            out[free] -= np.divide(moved, paces, out=np.zeros_like(moved), where=paces > 0)[numbers]
        return pace * out

    def spread(self, multipliers: Floats) -> Floats:
        """Return for each cell the multipliers of the sums that it is part of."""
        return np.asarray(self.sums.T @ self.differences(multipliers))


def agreement(tables: Sequence[Names], sizes: Sequence[Sequence[int]], groups: Sequence[Ints] | None) -> Agreement:
    """Return what must agree between tables of these attributes, and the groups of cells with exact totals."""
    from scipy.sparse import csr_matrix, vstack  # takes longer to load than most releases to be made

    cells = [int(np.prod(size, dtype=np.int64)) for size in sizes]
    starts = np.concatenate([[0], np.cumsum(cells)])
    blocks: list[csr_matrix] = []
    shared: list[Ints] = []
    taken = 0

    def add(table: int, places: Ints, rows: int, numbers: Ints) -> None:
        at = np.arange(starts[table], starts[table + 1])
        blocks.append(csr_matrix((np.ones(len(at)), (places, at)), shape=(rows, int(starts[-1]))))
        shared.append(numbers)

    for table, group in enumerate(groups or ()):
        rows = int(group.max()) + 1
        add(table, group, rows, np.full(rows, -1, dtype=np.int64))
    places = [_places(names, size) for names, size in zip(tables, sizes, strict=True)]
    for names in shared_names(tuple(tables)):
        holding = [number for number, table in enumerate(tables) if set(names) <= set(table)]
        lengths = [dict(zip(tables[holding[0]], sizes[holding[0]], strict=True))[name] for name in names]
        rows = int(np.prod(lengths, dtype=np.int64))
        where = {}
        for table in holding:
            by_name = dict(zip(tables[table], places[table], strict=True))
            at = np.zeros(cells[table], dtype=np.int64)
            for name, length in zip(names, lengths, strict=True):
                at = at * length + by_name[name]
            where[table] = at
        if groups is not None and all(_is_coarser(where[table], groups[table]) for table in holding):
            continue  # exact in every table: they agree already
        for table in holding:
            add(table, where[table], rows, taken + np.arange(rows))
        taken += rows
    numbers = np.concatenate(shared) if shared else np.zeros(0, dtype=np.int64)
    sums = vstack(blocks, format="csr") if blocks else csr_matrix((0, int(starts[-1])))
    even = np.repeat(1 / np.maximum(np.array(cells, dtype=np.float64), 1), cells)
    return Agreement(sums, numbers, np.zeros(len(numbers)), even)


def nearest(start: Floats, variances: Floats, wanted: Agreement, *, positive: bool = False) -> Floats:
    """Return the nearest cells whose sums agree; with `positive`, none below zero. Cells without variance stay."""
    gaps = wanted.missing(start)
    # the smallest change that a cell may have; everything is reckoned in changes, so that large counts drown no small
    floor = np.where(variances > 0, -start, 0.0) if positive else np.full(len(start), -np.inf)
    each = np.asarray(wanted.sums @ variances) * max(float(wanted.sums.sum(axis=0).max()), 1.0)
    pace = np.divide(1.0, each, out=np.zeros_like(each), where=each > 0)
    reached = max(TOLERANCE, 2.0**-48 * max(_largest(start), _largest(gaps)))
    multipliers, ahead, momentum = np.zeros_like(gaps), np.zeros_like(gaps), 1.0
    best, least = np.maximum(floor, 0.0), np.inf
    for _ in range(min(max(FEWEST_STEPS, _WORK // max(int(wanted.sums.nnz), 1)), MOST_STEPS)):
        changed = np.maximum(variances * wanted.spread(ahead), floor)
        missing = gaps - wanted.differences(wanted.sums @ changed)
        left = _largest(missing)
        if left < least:
            best, least = changed, left
        if left <= reached:
            break
        following = ahead + wanted.step(missing, pace)
        if missing @ (following - multipliers) < 0:
            momentum = 1.0
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / faster * (following - multipliers)
        multipliers, momentum = following, faster
    cells = start + best
    if positive:
        cells = np.where(variances > 0, np.maximum(cells, 0.0), cells)
        return cells if least <= reached else _settle(cells, variances, wanted)
    return cells


def _settle(cells: Floats, variances: Floats, wanted: Agreement) -> Floats:
    """Return cells that agree exactly and are not negative, from ones that nearly agree.

    The nearest ones that agree, moved towards even tables until none is negative. Even tables agree if they spread the
    totals of groups evenly; where they do not (some cells are fixed), what is left of the gaps stays.
    """
    agreeing = nearest(cells, variances, wanted)
    known = wanted.shared < 0
    if known.any():
        each = wanted.sums[np.flatnonzero(known)]
        even = np.asarray(each.T @ (wanted.totals[known] / np.maximum(np.asarray(each.sum(axis=1)).reshape(-1), 1.0)))
    else:
        even = wanted.even * max(float(agreeing @ wanted.even) / float(wanted.even @ wanted.even), 1.0)
    low = agreeing < 0
    if _largest(wanted.missing(even)) > 1e-9 * max(1.0, _largest(even)) or (even[low] <= 0).any():
        return cells
    share = float(np.max(-agreeing[low] / (even[low] - agreeing[low]), initial=0.0))
    return np.where(variances > 0, np.maximum(agreeing + share * (even - agreeing), 0.0), agreeing)


def _largest(numbers: Floats) -> float:
    return float(np.max(np.abs(numbers), initial=0.0))


def _places(names: Names, size: Sequence[int]) -> list[Ints]:
    return [part.reshape(-1).astype(np.int64) for part in np.indices(tuple(size))] if names else []


def _is_coarser(places: Ints, groups: Ints) -> bool:
    """Say whether each group lies in one place, so that exact totals of groups give those of places."""
    first = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    first[groups] = places
    return bool((first[groups] == places).all())
