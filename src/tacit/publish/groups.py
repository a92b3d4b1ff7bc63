"""Personal groups: people who agree in every public column, how many have each sensitive value, and merged groups.

Guarantee   A session never publishes groups that were made from people's rows. A table of plain rows says so in its
            guarantee, its text and its report.
Assumes     A map that is given was made without looking at the rows, or from public facts.
Why         Which values are merged is published with the table. If it follows from sensitive values, the names of the
            groups tell about them, whatever the perturbation is: two data sets that differ in one record may have
            different groups, which no epsilon bounds.
Checked by  tests/unit/publish/test_generalise.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.drawing import Held
from tacit.errors import PlanError, Refused, kind_of, nearest, word_or_kind
from tacit.plan.question import Labels
from tacit.policy.attributes import Attribute, Categories
from tacit.policy.domain import Domain
from tacit.rows.counts.groups import PublicGroups, count_groups
from tacit.rows.sources.engine import MakeFrame

RESERVED: Final = ("size", "largest allowed size", "violated", "count", "estimate")  # columns of results


@dataclass(frozen=True)
class Columns:
    """Which columns are public, and which are sensitive with which values."""

    public: tuple[str, ...]
    sensitive: Mapping[str, Attribute]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each sensitive column has."""
        return tuple(attribute.size for attribute in self.sensitive.values())

    @property
    def values(self) -> list[Any]:
        """Every sensitive value; of several columns, every combination as a tuple."""
        each = [attribute.every_value() for attribute in self.sensitive.values()]
        return list(each[0]) if len(each) == 1 else list(itertools.product(*each))

    def value_labels(self, groups: int) -> dict[str, Labels]:
        """Return the sensitive columns of a table with a line for each group and value, group by group."""
        places = np.unravel_index(np.arange(math.prod(self.shape)), self.shape)
        return {
            name: Labels(list(attribute.every_value()), np.tile(place, groups))
            for (name, attribute), place in zip(self.sensitive.items(), places, strict=True)
        }


@dataclass(frozen=True, eq=False, repr=False)
class PersonalGroups:
    """The personal groups of some rows. All but `counts` is public.

    `values` has the values of each public column, `which` the value of each group in each of them, `counts` a row for
    each group and a column for each sensitive value.
    """

    columns: Columns
    values: tuple[tuple[Any, ...], ...]
    which: Ints
    counts: Ints
    frame: MakeFrame

    def __repr__(self) -> str:
        return f"PersonalGroups({len(self.which)} groups)"

    @property
    def sizes(self) -> Ints:
        """How many people each group has."""
        return np.asarray(self.counts.sum(axis=1))

    def group_labels(self, lines: int = 1) -> dict[str, Labels]:
        """Return the public columns of a table with this number of lines for each group."""
        return {
            name: Labels(list(values), np.repeat(self.which[:, at], lines))
            for at, (name, values) in enumerate(zip(self.columns.public, self.values, strict=True))
        }

    def texts(self) -> list[str]:
        """Return each group as text: its public values by column."""
        named = list(zip(self.columns.public, self.values, self.which.T, strict=True))
        return [
            ", ".join(f"{name}={values[own[line]]}" for name, values, own in named) for line in range(len(self.which))
        ]

    def without_counts(self) -> PersonalGroups:
        """Return what is public of the groups."""
        return replace(self, counts=np.zeros((len(self.which), 0), np.int64))


def as_columns(public: Any, sensitive: Any, values: Any) -> Columns:
    """Return the columns that were named, with the values that were listed, or refuse."""
    names = _texts(public, "public")
    hidden = _texts([sensitive] if isinstance(sensitive, str) else sensitive, "sensitive")
    if not hidden:
        raise PlanError("must name a column", key="sensitive", fix="For instance sensitive='income'.")
    both = [name for name in hidden if name in names]
    if both:
        raise PlanError("must not be public as well", key="sensitive", given=both[0], fix="Take it out of public.")
    reserved = [name for name in (*names, *hidden) if name in RESERVED]
    if reserved:
        raise PlanError("must not be called like a column of the result", key="columns", given=reserved[0])
    if isinstance(values, Mapping):
        listed = [values.get(name) for name in hidden]
    else:
        listed = [values] if len(hidden) == 1 else list(values) if isinstance(values, list | tuple) else []
    if len(listed) != len(hidden) or any(one is None for one in listed):
        raise PlanError(
            "must list the values of every sensitive column", key="values", fix="Give {column: [values]} for several."
        )
    found = Columns(names, {name: _attribute(one) for name, one in zip(hidden, listed, strict=True)})
    if math.prod(found.shape) < 2:
        declared = isinstance(values, Mapping) and all(isinstance(one, Attribute) for one in listed)
        rule = "must have at least two values" if declared else "must be at least two"
        raise PlanError(
            f"{rule}: a value that everybody has is no secret",
            key="sensitive" if declared else "values",
            given=list(hidden) if declared else 1,
            fix="List every value that the sensitive attribute may have.",
        )
    return found


def _texts(given: Any, key: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise PlanError(
            f"must be a list of columns, not {kind_of(given)}", key=key, fix="For instance ['sex', 'race']."
        )
    if len(set(given)) != len(given):
        raise PlanError("must not name a column twice", key=key, given=list(given), fix="Remove one of them.")
    return tuple(given)


def _attribute(given: Any) -> Attribute:
    if isinstance(given, Attribute):
        if given.is_set:
            raise PlanError("must have one value for each person", key="values", fix="Choose another attribute.")
        return given
    if isinstance(given, str) or not isinstance(given, Sequence):
        rule = f"must be a list of values, not {kind_of(given)}"
        raise PlanError(rule, key="values", given=word_or_kind(given), fix="List every value that there may be.")
    if not all(isinstance(one, str | int | float) for one in given):
        raise PlanError(
            "must be texts, numbers or yes/no",
            key="values",
            fix="List every value that there may be, as the rows say it.",
        )
    if len(set(given)) < len(given):
        raise PlanError("must not repeat a value", key="values", fix="List each value once.")
    try:
        return Categories(list(given))
    except Refused as refusal:
        refused = refusal.retold(PlanError, key="values")
    raise refused


def personal_groups(rows: Any, columns: Columns, one_per: str | None = None) -> PersonalGroups:
    """Group rows of any kind by their public columns, and count their sensitive values; of sets, one row each."""
    found: PublicGroups = count_groups(rows, columns.public, columns.sensitive, one_per)
    return PersonalGroups(columns, found.values, found.which, found.counts, found.frame)


Names = tuple[str, ...]
Maps = Mapping[str | Names, Mapping[Any, str]]
MADE_FROM_ROWS: Final = "groups were made from these rows; no epsilon covers them"
_MOST_LISTED: Final = 1_000_000  # values, or combinations, that a map may be asked to list


class FromRows(dict[Any, str]):
    """What the values of a column become, made from people's rows. The type marks it wherever it is used."""


@dataclass(frozen=True)
class Generalisation(Held):
    """Which values of public columns become one: `maps[column][value]` is what a value becomes.

    Several columns that become one together are a tuple: `maps["ward", "sex"]["north", "f"]`. In such a map None stands
    for every combination that it does not list. `protected` says whether it may be published as it is; if not, `maps`
    and each part of it keep that mark.
    """

    maps: Maps
    protected: bool

    def __post_init__(self) -> None:
        if any(isinstance(one, FromRows) for one in self.maps.values()):
            object.__setattr__(self, "protected", False)
        if not self.protected:
            object.__setattr__(self, "maps", {key: FromRows(one) for key, one in self.maps.items()})

    @property
    def sizes(self) -> dict[str, int]:
        """How many values each column has afterwards."""
        return {merged_name(key): len(set(one.values())) for key, one in self.maps.items()}

    def before(self, public: Sequence[str]) -> Names:
        """Return the columns that these were made of."""
        made_of = {merged_name(key): _columns(key) for key in self.maps}
        return tuple(name for column in public for name in made_of.get(column, (column,)))

    def words(self) -> list[str]:
        """Return what a table with these groups does not promise."""
        return [] if self.protected else [MADE_FROM_ROWS]

    def __str__(self) -> str:
        before = {merged_name(key): len(one.keys() - {None}) for key, one in self.maps.items()}
        sizes = ", ".join(f"{name} {many} -> {self.sizes[name]}" for name, many in before.items())
        return sizes if self.protected else f"{sizes}; made from people's rows and not protected by any epsilon"


NOTHING_MERGED: Final = Generalisation({}, protected=True)


def merged_name(key: str | Names) -> str:
    """Return the name of a merged column: its own, or those of all columns that became one."""
    return " and ".join(_columns(key))


def _columns(key: str | Names) -> Names:
    return (key,) if isinstance(key, str) else key


def as_generalisation(given: Any, public: Names) -> Generalisation:
    """Return which values are merged in which columns, or refuse; a map of the caller's own may be published."""
    if given is None:
        return NOTHING_MERGED
    maps = given.maps if isinstance(given, Generalisation) else given
    if not isinstance(maps, Mapping) or not all(isinstance(one, Mapping) for one in maps.values()):
        rule = f"must map columns to what their values become, not {kind_of(given)}"
        raise PlanError(rule, key="groups", fix="Give {column: {value: name}}, or what `generalise` returns.")
    named: list[Any] = []
    for key in maps:
        if not isinstance(key, str) and not (isinstance(key, tuple) and len(key) > 1):
            rule = "must be about a column, or a tuple of several"
            raise PlanError(rule, key="groups", given=kind_of(key), fix="Give {column: {value: name}}.")
        named += _columns(key)
    unknown = [name for name in named if name not in public]
    if unknown:
        fix = nearest(str(word_or_kind(unknown[0])), public)
        raise PlanError("must be about public columns", key="groups", given=word_or_kind(unknown[0]), fix=fix)
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise PlanError("must be about each column once", key="groups", given=twice[0], fix="Leave out one of both.")
    unmerged = [name for name in public if name not in named]
    taken = [name for name in map(merged_name, maps) if name in unmerged or name in RESERVED]
    if taken:
        rule = "must not make a column with the name of another"
        raise PlanError(rule, key="groups", given=taken[0], fix="Rename that one.")
    return given if isinstance(given, Generalisation) else Generalisation(maps, protected=True)


def check_protected(merges: Generalisation) -> None:
    """Refuse groups that were made from people's rows: a budget cannot pay for them."""
    if not merges.protected:
        raise PlanError(
            "must not be made from people's rows, since no epsilon covers what they tell",
            key="groups",
            given="a generalisation that is not protected",
            fix="Nothing was charged. Generalise public data (public_data=True) or a published table, or give a map "
            "that was made without looking at the rows.",
        )


def _are_too_many(attributes: Sequence[Attribute]) -> bool:
    """Say whether values, or combinations of them, are too many to list; sets of values are counted by digits."""
    tens = sum(attribute.log10_size for attribute in attributes)
    return tens > math.log10(_MOST_LISTED) + 1 or math.prod(one.size for one in attributes) > _MOST_LISTED


def check_listable(name: str, attribute: Attribute) -> None:
    """Refuse a column with too many values to list."""
    if _are_too_many([attribute]):
        rule = f"must be about columns of at most {_MOST_LISTED:,} values, since a map says what each of them becomes"
        fix = "Declare it in coarser steps (`step: 1000`), or leave it out of `groups`."
        raise PlanError(rule, key="groups", given=name, fix=fix)


def check_covers(merges: Generalisation, domain: Domain) -> None:
    """Refuse a map that misses a value that the domain has."""
    for key, one in merges.maps.items():
        if isinstance(key, str):
            check_listable(key, domain[key])
            _check_complete(key, domain[key].every_value(), one)
        elif None not in one:
            if _are_too_many([domain[name] for name in key]):
                rule = f"must say what combinations of {merged_name(key)!r} become that are not listed"
                raise PlanError(rule, key="groups", fix="Add None: 'others'.")
            _check_complete(merged_name(key), product(*(domain[name].every_value() for name in key)), one)


def _check_complete(name: str, values: Any, one: Mapping[Any, str]) -> None:
    missing = next((value for value in values if value not in one), one)
    if missing is not one:
        rule = f"must say what every value of {name!r} becomes"
        raise PlanError(rule, key="groups", given=f"nothing for {missing!r}", fix="Add it.")


def merged(groups: PersonalGroups, merges: Generalisation) -> PersonalGroups:
    """Return the groups after values of public columns were merged."""
    for key, one in merges.maps.items():
        groups = _with_one(groups, key, one)
    which, of = np.unique(groups.which, axis=0, return_inverse=True)
    counts = np.zeros((len(which), groups.counts.shape[1]), np.int64)
    np.add.at(counts, of.ravel(), groups.counts)
    return replace(groups, which=which, counts=counts)


def _with_one(groups: PersonalGroups, key: str | Names, one: Mapping[Any, str]) -> PersonalGroups:
    """Return the groups with some columns replaced by one; equal groups are not joined yet."""
    places = [groups.columns.public.index(name) for name in _columns(key)]
    if isinstance(key, str):
        listed, of = list(groups.values[places[0]]), groups.which[:, places[0]]
    else:
        there, found = np.unique(groups.which[:, places], axis=0, return_inverse=True)
        of = found.ravel()
        listed = [tuple(groups.values[at][int(n)] for at, n in zip(places, line, strict=True)) for line in there]
    if isinstance(key, str) or None not in one:
        _check_complete(merged_name(key), listed, one)
    labels = [str(one[value] if value in one else one[None]) for value in listed]
    names = sorted(set(labels))
    rank = np.array([names.index(label) for label in labels], np.int64)
    first, *rest = places
    public, values = list(groups.columns.public), list(groups.values)
    public[first], values[first] = merged_name(key), tuple(names)
    which = groups.which.copy()
    which[:, first] = rank[of] if len(rank) else 0
    left = [at for at in range(len(public)) if at not in rest]
    return replace(
        groups,
        columns=replace(groups.columns, public=tuple(public[at] for at in left)),
        values=tuple(values[at] for at in left),
        which=which[:, left],
    )
