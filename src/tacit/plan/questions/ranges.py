"""`ranges`: how many people have a value from low to high, for listed ranges or for all."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Ints
from tacit.errors import PlanError
from tacit.plan.measure.measured import LineEntries, Measured
from tacit.plan.measure.workload import Workload
from tacit.plan.question import LARGEST_RELEASE, Labels, Linear, position, position_of_end, read_where, suffix
from tacit.plan.question_keys import (
    ATTRIBUTE,
    OF,
    WHERE,
    Question,
    as_ends,
    first_attribute,
    has_order,
    listed_ends,
    read_ends,
)
from tacit.plan.questions.counts import Marginals
from tacit.plan.questions.cumulative import Cumulative, OnALine
from tacit.plan.sensitivity.responses import Jump, PlacedResponse, RecordMove, Response
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.keys import Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where

MOST_LISTED: Final = 1_000_000  # ranges in the table of one release
_MOST_PIECES: Final = 1_000_000  # pairs of pieces of a line that are looked at one by one


@dataclass(frozen=True)
class Ranges(OnALine):
    """How many people have a value from low to high, for each listed range, or for all of them (`ranges=None`)."""

    ranges: tuple[tuple[Value, Value], ...] | None = None
    where: Where | None = None
    keyword: ClassVar[str] = "ranges"

    def check(self, domain: Domain) -> None:
        super().check(domain)
        if self.ranges is not None:
            if not self.ranges:
                raise PlanError("must list a range", key="ranges", given=[], fix="Write [[low, high], ..], or all.")
            self.positions(domain)

    def resolved(self, domain: Domain) -> Ranges:
        self.check(domain)
        if self.ranges is None:
            return self
        written = domain[self.name].canonical
        return replace(self, ranges=tuple((written(low), written(high)) for low, high in self.ranges))

    def positions(self, domain: Domain) -> list[tuple[int, int]]:
        """Return the listed ranges as positions."""
        attribute = domain[self.name]
        found = []
        for low, high in self.ranges or ():
            ends = (
                position_of_end(attribute, low, f"ranges: lower end of {self.name}"),
                position_of_end(attribute, high, f"ranges: upper end of {self.name}"),
            )
            if ends[0] > ends[1]:
                raise PlanError("must not end before it starts", key="ranges", given=[low, high], fix="Swap the ends.")
            found.append(ends)
        return found

    def lists_values(self, domain: Domain) -> bool:
        """Say whether there are too many ranges to list: then counts of single values tell each of them."""
        return self.ranges is None and _how_many(domain[self.name].size) > MOST_LISTED

    def runs(self, domain: Domain) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        if self.ranges is not None:
            ends = np.array(self.positions(domain), dtype=np.int64)
            return ends[:, 0], ends[:, 1]
        if self.lists_values(domain):
            each = np.arange(domain[self.name].size, dtype=np.int64)
            return each, each
        low, high = np.triu_indices(domain[self.name].size)
        return low.astype(np.int64), high.astype(np.int64)

    def workload(self, domain: Domain) -> Workload:
        listed = None if self.ranges is None else tuple((low, high, 0, 0) for low, high in self.positions(domain))
        return Workload((domain[self.name].size, 1), listed)

    def size(self, domain: Domain) -> int:
        values = domain[self.name].size
        if self.ranges is not None:
            return len(self.ranges)
        return values if self.lists_values(domain) else _how_many(values)

    def size_words(self, answers: int, domain: Domain) -> str:
        values = domain[self.name].size
        if self.ranges is None:
            return f"all {_how_many(values):,} ranges of {values:,} values"
        return f"{answers:,} range{'s' * (answers != 1)}"

    def listed_words(self, domain: Domain) -> str:
        return "values" if self.lists_values(domain) else "ranges"

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        first, last = f"{self.name} from", f"{self.name} to"
        if self.ranges is not None:
            return {first: [low for low, _ in self.ranges], last: [high for _, high in self.ranges]}
        if self.lists_values(domain):
            return {self.name: domain[self.name].every_cell()}
        values, (low, high) = domain[self.name].every_cell(), self.runs(domain)
        return {first: Labels(values, low), last: Labels(values, high)}

    def options(self) -> dict[str, Any]:
        return {**super().options(), "ranges": "all" if self.ranges is None else [list(ends) for ends in self.ranges]}

    def words(self, domain: Domain) -> str:
        return f"{self.who.capitalize()} by range of {self.name}"

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        below = np.concatenate([[0], np.cumsum(tallied[0], dtype=np.int64)])
        low, high = self.runs(domain)
        return np.asarray(below[high + 1] - below[low])

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        at, (low, high) = position(domain, self.name, record[self.name]), self.runs(domain)
        return ((low <= at) & (at <= high)).astype(np.int64)

    def response(self, domain: Domain) -> Response:
        line = domain.axes_of(self.name)[0]
        if self.ranges is None:
            return AllRangesResponse(line.size, line=line)
        return ListedRangesResponse(tuple(self.positions(domain)), line=line)

    def check_size(self, domain: Domain) -> None:
        """Refuse more answers than can be released, and more values: ranges are read off the counts of all values."""
        super().check_size(domain)
        values = domain[self.name].size
        if values > LARGEST_RELEASE:
            rule = f"has {values:,} values, more than {LARGEST_RELEASE:,}"
            raise PlanError(rule, key=self.name, fix="Ask for counts with `where`, or declare a coarser step.")

    def bases(self, policy: Policy) -> list[tuple[Linear, str]]:
        # all ranges are read off a line in any case, so that a record can tell each of them
        return [
            *([] if self.ranges is None else [(self, "direct")]),
            (Marginals(((self.name,),), self.where, of=self.of), "by adding up noisy cells"),
            (self.running_counts(), "as differences of noisy cumulative counts"),
        ]

    def running_counts(self) -> Cumulative:
        return Cumulative(self.name, self.where, of=self.of)

    def fitting(self, base: Measured) -> str:
        return "The cumulative counts behind the ranges were made not to fall." if isinstance(base, LineEntries) else ""

    def __str__(self) -> str:
        many = "all" if self.ranges is None else str(len(self.ranges))
        return f"ranges({self.name}, {many}{suffix(self.where, self.of)})"


@dataclass(frozen=True)
class AllRangesResponse(PlacedResponse):
    """Counts of people in every range of a line of so many `values`: T positions."""

    values: int

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """A move by d leaves (u+1) d or so ranges and joins others: d (T+1-d) in all, whatever the start.

        From u to v > u: the ranges [i, j] with i <= u <= j < v are left, (u+1)(v-u) of them; those with
        u < i <= v <= j are joined, (v-u)(T-v) of them. How the sum splits depends on u; both extremes are returned.
        """
        found = move.relation.differences(move.hidden, move.cover)
        distances = Intervals.of(
            (low, high) if low > 0 else (-high, -low) for low, high in found.without(Intervals.points([0]))
        )
        for distance in _near_middle(distances, self.values + 1):
            seen = distance * (self.values + 1 - distance)
            yield Jump(seen, 0, 1, 1, seen)
            yield Jump(0, seen, 1, 1, seen)

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        """The (u+1)(T-u) ranges around position u rise."""
        for place in _near_middle(places, self.values - 1):
            yield Jump.by_ones(rise=(place + 1) * (self.values - place), fall=0)


@dataclass(frozen=True)
class ListedRangesResponse(PlacedResponse):
    """Counts of people in each of some listed ranges of a line."""

    ranges: tuple[tuple[int, int], ...]

    def _pieces(self, positions: Intervals) -> list[tuple[int, int]]:
        """Cut a set of positions wherever a range begins or ends."""
        cuts = sorted({cut for low, high in self.ranges for cut in (low, high + 1)})
        found = []
        for start, end in positions:
            inside = cuts[bisect_right(cuts, start) : bisect_right(cuts, end)]
            found += list(zip([start, *inside], [*(cut - 1 for cut in inside), end], strict=True))
        return found

    def _membership(self, pieces: list[tuple[int, int]]) -> npt.NDArray[np.float64]:
        lows = np.array([low for low, _ in self.ranges])
        highs = np.array([high for _, high in self.ranges])
        starts = np.array([start for start, _ in pieces])
        return ((lows <= starts[:, None]) & (starts[:, None] <= highs)).astype(np.float64)

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """Ranges around the hidden position only fall, those around the cover only rise."""
        hidden, cover = self._pieces(move.hidden), self._pieces(move.cover)
        if not hidden or not cover:
            return []
        if len(hidden) * len(cover) > _MOST_PIECES:
            return self._moved_by_windows(move)
        a, b = self._membership(hidden), self._membership(cover)
        shared = a @ b.T
        possible = move.relation.meets(hidden, cover)
        falls, rises = (a.sum(1)[:, None] - shared)[possible], (b.sum(1)[None, :] - shared)[possible]
        seen = np.unique(np.stack([falls, rises], axis=1).astype(np.int64), axis=0)
        return [Jump.by_ones(rise=int(rise), fall=int(fall)) for fall, rise in seen]

    def _moved_by_windows(self, move: RecordMove) -> Iterable[Jump]:
        """Bound what a move does, for more ranges than can be looked at in pairs.

        Whoever moves up from u by at most d leaves only ranges that end in u .. u+d-1 and joins only ranges that begin
        in u+1 .. u+d; downwards, it is the other way round. Within blocks u+d is the end of the block at most. Nobody
        is in more ranges than lie around one position. Every move's window lies in one that starts where a range ends
        or just before one begins.
        """
        far = move.relation.farthest(move.hidden, move.cover)
        if not far:
            return []
        lows, highs = (np.sort(np.array(ends, dtype=np.int64)) for ends in zip(*self.ranges, strict=True))
        from_here = np.unique(np.concatenate([highs, lows - 1]))
        upto = move.relation.farthest_ends(from_here, from_here + far)
        starts = np.searchsorted(lows, upto, "right") - np.searchsorted(lows, from_here, "right")
        ends = np.searchsorted(highs, upto) - np.searchsorted(highs, from_here)
        around = int((np.searchsorted(lows, lows, "right") - np.searchsorted(highs, lows)).max())
        seen = np.unique(np.minimum(np.stack([starts, ends], axis=1), around), axis=0)
        return [
            Jump.by_ones(rise=int(x), fall=int(y), bound=True)
            for a, b in seen
            for x, y in ((a, b), (b, a))
            if a or b  # a bound of nothing is exact
        ]

    def counted_at(self, places: Intervals) -> Iterable[Jump]:
        pieces = self._pieces(places)
        if not pieces:
            return []
        starts = np.array([start for start, _ in pieces])
        lows, highs = (np.sort(np.array(ends, dtype=np.int64)) for ends in zip(*self.ranges, strict=True))
        most = int((np.searchsorted(lows, starts, "right") - np.searchsorted(highs, starts)).max())
        return [Jump.by_ones(rise=most, fall=0)]


def _how_many(values: int) -> int:
    return values * (values + 1) // 2


def _near_middle(positions: Intervals, twice: int) -> list[int]:
    """Return the members nearest to twice/2 from either side: the maximum of x (twice - x) is one of them."""
    return sorted({positions.closest_to(twice // 2), positions.closest_to((twice + 1) // 2)}) if positions else []


def ranges(
    name: str,
    ranges: Iterable[tuple[Value, Value]] | str,
    *,
    where: Where | str | None = None,
    of: str | None = None,
) -> Ranges:
    """Ask how many people have a value from low to high (both included), for listed ranges or for "all"."""
    listed = read_ends(ranges, "ranges", ("low", "high"), "Write [[low, high], ..].")
    each = None if listed is None else tuple((low, high) for low, high in listed)
    return Ranges(name, each, read_where(where), of=of)


RANGES: Final = Question(
    "ranges",
    keys=(ATTRIBUTE, Key("ranges", listed_ends(2), read=as_ends), WHERE, OF),
    ask=lambda name, **options: ranges(name, **{"ranges": "all", **options}),
    example=lambda policy: ranges(first_attribute(policy, "ranges", has_order), "all"),
    shown=(
        (
            "`{ranges: {attribute: age, ranges: [[0, 17], [18, 64]]}}`",
            "people in each listed range, both ends included",
        ),
        ("`{ranges: age}`", "all ranges, any of which can be read off the release"),
    ),
)
