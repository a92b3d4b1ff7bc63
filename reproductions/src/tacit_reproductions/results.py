"""Claims of the paper beside our numbers, and tables of our own.

Nobody writes a verdict. A claim has checks, each with the numbers that were found, a relation and a limit, and the
verdict follows from them: yes if every number meets its limit, no if none does, partly otherwise. A claim that cannot
be checked says why.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

YES: Final = "yes"
NO: Final = "no"
PARTLY: Final = "partly"
NOT_JUDGED: Final = "not judged"
CLAIM_HEADINGS: Final = ("figure", "what", "run on", "the paper's claim", "our number", "holds?")
Relation: TypeAlias = Literal["below", "at most", "is", "at least", "above"]
_LISTED: Final = 5  # numbers that are written one by one
_MEETS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "below": operator.lt,
    "at most": operator.le,
    "is": operator.eq,
    "at least": operator.ge,
    "above": operator.gt,
}


@dataclass(frozen=True)
class Check:
    """A condition that a claim comes to: what is compared, the numbers found, how, and with which limit or limits."""

    what: str
    found: tuple[float, ...]
    relation: Relation
    limits: tuple[float, ...]

    def passed(self) -> list[bool]:
        """Return for each number whether it meets its limit."""
        limits = self.limits * len(self.found) if len(self.limits) == 1 else self.limits
        return [bool(_MEETS[self.relation](a, b)) for a, b in zip(self.found, limits, strict=True)]

    def __str__(self) -> str:
        passed = self.passed()
        many = f"{sum(passed):,} of {len(passed):,}, " if len(passed) > 1 else ""
        return f"{self.what} {self.relation} {_range(self.limits)}: {many}found {_range(self.found)}"


def check(what: str, found: Any, relation: Relation, limit: Any) -> Check:
    """Return a condition on one number or on several; the limit is one for all of them, or one for each.

    >>> str(check("ratio", [0.989, 1.26], "above", 1))
    'ratio above 1: 1 of 2, found 0.989, 1.26'
    """
    numbers, limits = _numbers(found), _numbers(limit)
    if not what or not numbers or len(limits) not in (1, len(numbers)):
        raise ValueError("a check says what it is about, has a number, and a limit for all or for each")
    return Check(what, numbers, relation, limits)


def same(what: str, found: Any, wanted: Any, within: float) -> Check:
    """Return the condition that numbers lie within a distance of what is wanted, each of its own."""
    apart = [abs(a - b) for a, b in zip(_numbers(found), _numbers(wanted), strict=True)]
    return check(f"{what}, distance from {_range(_numbers(wanted))},", apart, "at most", within)


def about(what: str, found: Any, wanted: float, factor: float) -> Check:
    """Return the condition that positive numbers are what is wanted up to a factor, upwards or downwards."""
    off = [max(one / wanted, wanted / one) for one in _numbers(found)]
    return check(f"{what}, factor from {wanted:g},", off, "at most", factor)


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, what was run on what, and what was found; `unjudged` says why there is no check.

    `why` explains a verdict that is not yes.
    """

    figure: str
    what: str
    run: str
    claim: str
    ours: str
    checks: tuple[Check, ...] = ()
    why: str = ""
    unjudged: str = ""

    def __post_init__(self) -> None:
        if not all((self.figure, self.what, self.run, self.claim, self.ours)):
            raise ValueError("a claim says where it stands, what was run on what, what is claimed and what was found")
        if bool(self.checks) == bool(self.unjudged):
            raise ValueError("a claim has checks, or a reason why it has none")

    @property
    def holds(self) -> str:
        """The verdict: it follows from the checks."""
        passed = [one for part in self.checks for one in part.passed()]
        return NOT_JUDGED if not passed else YES if all(passed) else PARTLY if any(passed) else NO

    def cells(self) -> tuple[str, ...]:
        """Return the claim as cells of a table."""
        judged = self.unjudged or "; ".join(map(str, self.checks))
        why = f"; {self.why}" if self.why and self.holds != YES else ""
        return self.figure, self.what, self.run, self.claim, self.ours, f"{self.holds}: {judged}{why}"

    def document(self) -> dict[str, Any]:
        """Return the claim as plain data."""
        names = ("figure", "what", "run", "claim", "ours", "holds", "why", "unjudged")
        checks = [
            {"what": one.what, "found": list(one.found), "relation": one.relation, "limits": list(one.limits)}
            for one in self.checks
        ]
        return {**{name: getattr(self, name) for name in names}, "checks": checks}


def tally(claims: Sequence[Claim]) -> str:
    """Say how claims are judged, and how many hold."""
    holds, partly, fails, open_ = (sum(one.holds == word for one in claims) for word in (YES, PARTLY, NO, NOT_JUDGED))
    return (
        "A verdict follows from the conditions beside it: yes if every number meets its condition, no if none does, "
        f"partly otherwise. Of {len(claims)} claims {holds} hold, {partly} hold in part, {fails} do not, and {open_} "
        "are not judged."
    )


def said(is_so: bool) -> str:  # noqa: FBT001 - the answer itself
    """Return yes or no."""
    return YES if is_so else NO


@dataclass(frozen=True)
class Table:
    """Numbers of our own under a title, with notes; a long one is on the page, but not on the screen."""

    title: str
    headings: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()
    on_screen: bool = True

    def markdown(self) -> list[str]:
        """Return the table as lines of a page."""
        noted = ["", *(f"- {said}" for said in self.notes)] if self.notes else []
        return [
            "",
            f"## {self.title}",
            "",
            *map(_row, (self.headings, ["---"] * len(self.headings), *self.lines)),
            *noted,
        ]

    def document(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {
            "title": self.title,
            "headings": list(self.headings),
            "lines": [list(line) for line in self.lines],
            "notes": list(self.notes),
        }


def spread(numbers: Sequence[float], form: Callable[[float], str]) -> str:
    """Return the least and the largest of some numbers as a text.

    >>> spread([3.61, 4.58, 4.0], "{:.1f}".format)
    '3.6 to 4.6'
    """
    low, high = form(min(numbers)), form(max(numbers))
    return low if low == high else f"{low} to {high}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _numbers(given: Any) -> tuple[float, ...]:
    """Return one number or several as plain numbers."""
    listed = np.asarray(given, dtype=object).ravel().tolist()
    return tuple(one if isinstance(one, int) and not isinstance(one, bool) else float(one) for one in listed)


def _range(numbers: Sequence[float]) -> str:
    """Write a few numbers one by one, and many as the least and the largest."""

    def written(one: float) -> str:
        return f"{one:,}" if isinstance(one, int) else f"{one:.4g}"

    few = len(set(numbers)) > 1 and len(numbers) <= _LISTED
    return ", ".join(map(written, numbers)) if few else spread(numbers, written)
