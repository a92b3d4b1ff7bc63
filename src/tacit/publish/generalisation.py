"""Which values of public columns become one, who may know that, and groups after it.

Guarantee   A session never publishes groups that were made from people's rows. A table of plain rows says so in its
            guarantee, its words and its report.
Assumes     A map that is given was made up without looking at the rows, or from public things.
Why         Which values are merged is published with the table. If it follows from sensitive values, a table tells them
            by the names of its groups, whatever the perturbation is: two data sets that differ in one record may have
            different groups, which no epsilon bounds.
Checked by  tests/unit/test_generalise.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tacit.errors import PlanError, kind_of, nearest, word_or_kind
from tacit.publish.groups import PersonalGroups

MADE_FROM_ROWS: Final = "groups were made from these rows; no epsilon covers them"


@dataclass(frozen=True)
class Generalisation:
    """Which values of each public column become one: `maps[column][value]` is what a value becomes.

    `protected` says whether it may be published as it is.
    """

    maps: Mapping[str, Mapping[Any, str]]
    protected: bool

    @property
    def sizes(self) -> dict[str, int]:
        """How many values each column has afterwards."""
        return {name: len(set(one.values())) for name, one in self.maps.items()}

    def words(self) -> list[str]:
        """Say what a table with these groups does not promise."""
        return [] if self.protected else [MADE_FROM_ROWS]

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {len(one)} -> {self.sizes[name]}" for name, one in self.maps.items())
        return sizes if self.protected else f"{sizes}; made from people's rows and not protected by any epsilon"


NOTHING_MERGED: Final = Generalisation({}, protected=True)


def as_generalisation(given: Any, public: tuple[str, ...]) -> Generalisation:
    """Return which values are merged in which columns, or refuse; a map of the caller's own may be published."""
    if given is None:
        return NOTHING_MERGED
    maps = given.maps if isinstance(given, Generalisation) else given
    if not isinstance(maps, Mapping) or not all(isinstance(one, Mapping) for one in maps.values()):
        rule = f"must map columns to what their values become, not {kind_of(given)}"
        raise PlanError(rule, key="groups", fix="Give {column: {value: name}}, or what `generalise` returns.")
    unknown = [name for name in maps if name not in public]
    if unknown:
        fix = nearest(str(unknown[0]), public)
        raise PlanError("must be about public columns", key="groups", given=word_or_kind(unknown[0]), fix=fix)
    return given if isinstance(given, Generalisation) else Generalisation(maps, protected=True)


def check_protected(merges: Generalisation) -> None:
    """Refuse groups that were made from people's rows: a budget cannot pay for them."""
    if not merges.protected:
        raise PlanError(
            "must not be made from people's rows, since no epsilon covers what they tell",
            key="groups",
            given="a generalisation that is not protected",
            fix="Generalise public data (public_data=True) or a published table, or give a map of your own.",
        )


def check_complete(name: str, values: Any, one: Mapping[Any, str]) -> None:
    """Refuse a map that misses a value."""
    missing = [value for value in values if value not in one]
    if missing:
        rule = f"must say what every value of {name!r} becomes"
        raise PlanError(rule, key="groups", given=f"nothing for {missing[0]!r}", fix="Add it.")


def merged(groups: PersonalGroups, merges: Generalisation) -> PersonalGroups:
    """Return the groups after values of public columns were merged."""
    which, values = groups.which.copy(), list(groups.values)
    for name, one in merges.maps.items():
        at = groups.columns.public.index(name)
        check_complete(name, groups.values[at], one)
        names = sorted({str(one[value]) for value in groups.values[at]})
        place = {label: number for number, label in enumerate(names)}
        which[:, at] = np.array([place[str(one[value])] for value in groups.values[at]], np.int64)[which[:, at]]
        values[at] = tuple(names)
    distinct, of = np.unique(which, axis=0, return_inverse=True)
    counts = np.zeros((len(distinct), groups.counts.shape[1]), np.int64)
    np.add.at(counts, of.ravel(), groups.counts)
    return replace(groups, values=tuple(values), which=distinct, counts=counts)
