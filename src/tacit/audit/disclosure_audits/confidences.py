"""Groups of people and their sensitive values: true counts, from which confidences and jumps follow.

A *group* is everybody with the same values of some attributes that a reader may know of a person. Of a sensitive value
the *confidence* in a group is the share of its people who have it, the *prior* the share among all people, and the
*jump* the one over the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError, nearest
from tacit.release.curator.private_counts import PrivateCounts

Names = tuple[str, ...]


@dataclass(frozen=True)
class AskedConfidences:
    """Which confidences are looked at: those of a sensitive attribute in the groups that some others make."""

    known: Names
    sensitive: str

    @property
    def table(self) -> Names:
        """The attributes of the table that has the counts."""
        return (*self.known, self.sensitive)


@dataclass(frozen=True, eq=False, repr=False)
class Confidences:
    """The true counts of one table: `cells` has a line for each group that there may be, and a column for each value.

    `places` are the lines of the groups that have people, `theta` those lines.
    """

    asked: AskedConfidences
    cells: Ints
    theta: Ints
    places: Ints
    prior: Floats
    known_values: tuple[Sequence[Any], ...]
    values: Sequence[Any]

    @classmethod
    def of(cls, asked: AskedConfidences, counts: PrivateCounts) -> Confidences:
        """Return the confidences of a table that was counted."""
        table = counts.tables[asked.table]
        cells = table.reshape(math.prod(table.shape[:-1]), table.shape[-1])
        places = np.flatnonzero(cells.any(axis=1))
        everybody = cells.sum(axis=0)
        prior = everybody / max(int(everybody.sum()), 1)
        known = tuple(counts.values[name] for name in asked.known)
        return cls(asked, cells, cells[places], places, prior, known, counts.values[asked.sensitive])

    @cached_property
    def phi(self) -> Ints:
        """How many people each group has."""
        return np.asarray(self.theta.sum(axis=1))

    @cached_property
    def jumps(self) -> Floats:
        """The confidence over the prior; 0 for a value that nobody in the group has, or nobody at all."""
        confidence = self.theta / self.phi[:, None]
        return np.divide(confidence, self.prior, out=np.zeros_like(confidence), where=self.prior > 0)

    def labels(self) -> list[str]:
        """Return the groups in words."""
        shape = tuple(len(values) for values in self.known_values)
        parts = []
        for name, values, at in zip(
            self.asked.known, self.known_values, np.unravel_index(self.places, shape), strict=True
        ):
            texts = np.array([f"{name}={value}" for value in values], dtype=object)
            parts.append(texts[at])
        return [", ".join(words) for words in zip(*parts, strict=True)]


def in_words(left_out: int) -> str:
    """Say how many rows an audit leaves out for what they miss."""
    many = (
        "1 row misses a cell of a column that is named and is"
        if left_out == 1
        else (f"{left_out:,} rows miss a cell of a column that is named and are")
    )
    return f"{many} left out."


def confidences_asked(public: Names, sensitive: Names, ways: Sequence[int]) -> list[AskedConfidences]:
    """Return which confidences to look at: each sensitive attribute by so many others at a time.

    A sensitive attribute may be known of somebody and tell another, so the others count as known as well.
    """
    found = []
    for target in sensitive:
        others = (*public, *(name for name in sensitive if name != target))
        for many in dict.fromkeys(min(way, len(others)) for way in ways):
            found += [AskedConfidences(known, target) for known in combinations(others, many)]
    return found


def as_names(given: Any, key: str) -> Names:
    """Return names of attributes, or refuse."""
    listed = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if not listed or not all(isinstance(name, str) and name for name in listed) or len(set(listed)) < len(listed):
        raise PlanError("must be the names of one or more attributes, each once", key=key, fix="For instance ['sex'].")
    return listed


def check_apart(public: Names, sensitive: Names) -> None:
    """Refuse an attribute that is called both public and sensitive."""
    both = sorted(set(public) & set(sensitive))
    if both:
        raise PlanError("must not be sensitive as well", key="public", given=both[0], fix="Name it once.")


def as_ways(given: Any) -> tuple[int, ...]:
    """Return how many known attributes make a group, or refuse."""
    listed = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not listed or not all(isinstance(way, int) and not isinstance(way, bool) and way >= 1 for way in listed):
        raise PlanError("must be a whole number from 1, or a list of them", key="ways", fix="Use 2.")
    return listed


def check_known(names: Names, known: Sequence[str], key: str) -> None:
    """Refuse names that are no attributes."""
    for name in names:
        if name not in known:
            raise PlanError("must be an attribute of the policy", key=key, given=name, fix=nearest(name, list(known)))
