"""What many releases tell about one attribute, between two numbers, where not all outcomes can be gone through.

Guarantee   `between` encloses what everything that is seen tells about the target: its mutual information, how sure
            the surest outcome makes that it is sensitive, and the epsilon of freedom from exclusion attacks. Where all
            outcomes fit into a table both ends are equal: then nothing is bounded, and the numbers are exact.
Assumes     What `suppression` assumes. The network was given as tables: from one table of everything nothing is far.
Why         Let T be the target, N attributes around it, B all others that share a table with one of N and lead to
            something else that is seen, F what is seen of the rest. Given B, what is seen of F is independent of T and
            of what is seen of N (every path in the graph of tables from N to F goes through B; what is seen of an
            attribute depends on it alone). So
                I(T; N seen) <= I(T; N, B, F seen) <= I(T; N, F seen; B known) = I(T; N seen; B known).
            The posterior of T given what is seen is a mean, over B, of posteriors given what is seen of N and B; so no
            outcome of everything makes surer than the surest of those, and some outcome makes as sure as the surest of
            N alone, which is a mean too. A ratio P(seen | x) / P(seen | y) is a quotient of sums over B whose addends
            have the factor P(F seen | B) in common, so it is at most the largest quotient of addends.
            Attributes that nothing seen and no target depends on are left out first: their tables sum to one.
Reference   Cover and Thomas, Elements of Information Theory, Theorem 4.5.1 (the same for the entropy rate of a hidden
            Markov chain); Lauritzen, Graphical Models, Proposition 3.8.
Checked by  tests/property/test_days_and_people.py.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final

from tacit.dependence.dependence import Dependence
from tacit.dependence.factor import MOST_CELLS, too_large
from tacit.dependence.suppression import Outcomes, Suppression, checked_seen, outcomes, questions_of
from tacit.errors import PlanError

MOST_NEAR: Final = (2**20, 2**16, 2**12)  # cells of outcomes that are gone through: some tenths of a second

Graph = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class Around:
    """What is seen around some targets, and the border: beyond it nothing is left to tell if the border is known.

    Without a border nothing that is seen, and could tell, is left out.
    """

    near: tuple[str, ...]
    border: tuple[str, ...]


def around(
    dependence: Dependence, targets: Sequence[str], seen: Iterable[str], sides: Callable[[str], int], most: int
) -> Around:
    """Return what is around targets, as far as its outcomes and the values of the border fit into a table.

    `sides` says how many outcomes and values of an attribute count.

    Raises:
        PlanError: If not even the targets fit, and what shares a table with them.
    """
    watched = list(dict.fromkeys(seen))
    meets = dependence.meets([*targets, *watched])
    far = _distances(targets, meets)

    def at_border(inside: Collection[str]) -> list[str]:
        leading: set[str] = set()  # what leads to something that is seen, without going through the inside
        waiting = [name for name in watched if name not in inside]
        while waiting:
            name = waiting.pop()
            if name not in leading:
                leading.add(name)
                waiting += [one for one in meets[name] if one not in inside]
        found = {one for name in inside for one in meets[name]} - set(inside)
        return sorted(found & leading, key=lambda name: (far[name], name))

    def cells(inside: Collection[str], border: Sequence[str]) -> int:
        return math.prod(sides(name) for name in {*targets, *(one for one in watched if one in inside), *border})

    inside, border, skipped = set(targets), at_border(targets), set[str]()
    while more := [name for name in border if name not in skipped]:
        wider = {*inside, more[0]}
        beyond = at_border(wider)
        if cells(wider, beyond) <= most:
            inside, border = wider, beyond
        else:
            skipped.add(more[0])
    if cells(inside, border) > MOST_CELLS:
        raise too_large(cells(inside, border))
    return Around(tuple(name for name in watched if name in inside), tuple(border))


def _distances(targets: Iterable[str], meets: Graph) -> dict[str, int]:
    found = dict.fromkeys(targets, 0)
    waiting = deque(found)
    while waiting:
        name = waiting.popleft()
        for one in meets[name]:
            if one not in found:
                found[one] = found[name] + 1
                waiting.append(one)
    return found


@dataclass(frozen=True)
class Between:
    """Outcomes that tell no more about the target than all that is seen, and outcomes that tell no less."""

    around: Around
    most: Outcomes
    _least: Callable[[], Outcomes]

    @cached_property
    def least(self) -> Outcomes:
        """Outcomes of what is near and at the border, as they are seen."""
        return self._least()


def between(
    release: Suppression,
    target: str,
    seen: Iterable[str],
    *,
    questions: Any = None,
    sizes: Sequence[int] | None = None,
) -> Between:
    """Return what encloses all that an observer could see of some attributes; both ends are equal if all of it fits.

    `sizes` are tables of outcomes, the largest first; smaller ones where inference between them needs too much.
    """
    names = checked_seen(release, seen)
    counts = questions_of(questions, key="questions")
    dependence = release.dependence

    def fitting(most: int) -> Between:
        place = around(dependence, [target], names, lambda name: len(dependence.values[name]) + 1, most)
        asked = {name: times for name, times in counts.items() if name in place.near}
        if not place.border:
            found = outcomes(release, target, place.near, questions=asked)
            return Between(place, found, lambda: found)
        outer = [name for name in names if name in place.border]
        also = {name: times for name, times in counts.items() if name in (*place.near, *outer)}
        # what is known is shown for certain, whatever it is
        known = replace(
            release,
            sensitive=MappingProxyType({one: own for one, own in release.sensitive.items() if one not in place.border}),
            epsilon=MappingProxyType({**release.epsilon, **dict.fromkeys(place.border, math.inf)}),
        )
        return Between(
            place,
            outcomes(known, target, [*place.near, *place.border], questions=asked),
            partial(outcomes, release, target, [*place.near, *outer], questions=also),
        )

    *larger, last = sizes or MOST_NEAR
    for most in larger:
        with suppress(PlanError):
            return fitting(most)
    return fitting(last)
