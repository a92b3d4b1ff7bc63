"""How a person can move counts on a line: what every strategy for ranges, cumulative counts and quantiles must hide.

Guarantee   For every secret edge hidden -> cover, whoever is counted before and after changes at most `reach` running
            counts, all within one segment and none of them the last of it. Only with
            `may_enter_or_leave` may an edge change whether somebody is counted; then no running count is exact and
            there is one segment.
Assumes     One record per person, and public knowledge that couples nobody.
Why         A move from position u to v changes the running counts from the lower of both up to the one before the
            higher, |u - v| of them. The step calculus (`plan/sensitivity/steps.py`) finds the largest such move over
            all edges, and whether some edge changes who is counted; no edge crosses an exact count
            (`plan/sensitivity/exact_totals.py`).
Reference   Blowfish privacy, section 7 (the ordered mechanism), for every family of secrets.
Checked by  tests/property/test_line_moves.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tacit.plan.sensitivity.coupling import couples_people
from tacit.plan.sensitivity.exact_totals import exact_cumulative
from tacit.plan.sensitivity.grid_moves import GridMoves
from tacit.plan.sensitivity.responses import Jump, RecordMove, Response, running_counts_moved
from tacit.plan.sensitivity.steps import free_step
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class LineMoves:
    """How far people move on a line, and whether they may enter or leave the count.

    `segments` are the lengths of the stretches of values between exact running counts: the count at the end of each is
    exact, unless people may enter or leave. `reach` says how many running counts the longest move changes.
    """

    segments: tuple[int, ...]
    reach: int
    may_enter_or_leave: bool

    @property
    def values(self) -> int:
        """How many values the line has."""
        return sum(self.segments)

    @property
    def grid(self) -> GridMoves:
        """The same moves on the grid of one row that the line is."""
        far = min(self.reach, max(self.segments) - 1)
        pairs = ((far, 0),) if far else ()
        return GridMoves(
            (self.segments, (1,)),
            pairs,
            may_enter_or_leave=self.may_enter_or_leave,
            has_totals=not self.may_enter_or_leave,
        )


def line_moves(name: str, where: Where | None, policy: Policy) -> LineMoves | None:
    """Return how people move on the line of an attribute; None where knowledge couples people, or rows a person.

    >>> from tacit.policy.attributes import Integers
    >>> from tacit.policy.secrets import partition, within
    >>> domain = Domain({"age": Integers(0, 9)})
    >>> line_moves("age", None, Policy(domain, within(3, "age")))
    LineMoves(segments=(10,), reach=3, may_enter_or_leave=False)
    >>> line_moves("age", None, Policy(domain, partition("age", width=4)))
    LineMoves(segments=(4, 4, 2), reach=3, may_enter_or_leave=False)
    """
    if policy.per_person > 1 or couples_people(policy):
        return None
    line = policy.domain.axes_of(name)[0]
    may_enter_or_leave = free_step(_Watching(where, _WhetherCounted(line)), policy).l1 > 0
    reach = free_step(_Watching(where, _Moved(line)), policy).l1
    exact = None if may_enter_or_leave else exact_cumulative(name, where, policy)
    ends = np.array([line.size - 1]) if exact is None else np.flatnonzero(exact)
    return LineMoves(tuple(np.diff(ends, prepend=-1).tolist()), reach, may_enter_or_leave)


@dataclass(frozen=True)
class _Watching:
    """One way to look at people whom a predicate picks."""

    where: Where | None
    seen: Response

    def response(self, domain: Domain) -> Response:
        """Return how what is looked at responds to moves."""
        return self.seen

    def unit(self, domain: Domain) -> Fraction:
        """Return one: people are counted."""
        return Fraction(1)


@dataclass(frozen=True)
class _Moved:
    """The running counts that a move changes; who enters or leaves is not looked at."""

    line: Axis
    cells: tuple[str, ...] = ()
    items: str | None = None
    staying_may_show_more: ClassVar[bool] = False

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """A move by d changes d of them."""
        return running_counts_moved(move)

    def left(self, move: RecordMove) -> Iterable[Jump]:
        """Not looked at."""
        return []

    def entered(self, move: RecordMove) -> Iterable[Jump]:
        """Not looked at."""
        return []


@dataclass(frozen=True)
class _WhetherCounted:
    """Whether somebody is counted at all; where is not looked at."""

    line: Axis
    cells: tuple[str, ...] = ()
    items: str | None = None
    staying_may_show_more: ClassVar[bool] = False

    def moved(self, move: RecordMove) -> Iterable[Jump]:
        """Counted before and after."""
        return []

    def left(self, move: RecordMove) -> Iterable[Jump]:
        """One fewer."""
        return [Jump.by_ones(rise=0, fall=1)]

    def entered(self, move: RecordMove) -> Iterable[Jump]:
        """One more."""
        return [Jump.by_ones(rise=1, fall=0)]
