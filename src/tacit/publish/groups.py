"""Personal groups: people who agree in every public column, and how many of them have each sensitive value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.errors import PlanError, Refused, kind_of, word_or_kind
from tacit.plan.labels import Labels
from tacit.policy.attributes import Attribute, Categories
from tacit.rows.counts.groups import PublicGroups, count_groups
from tacit.rows.sources.engine import MakeFrame

RESERVED: Final = ("size", "largest allowed size", "violated", "count", "estimate")  # columns of what is made here


@dataclass(frozen=True)
class Columns:
    """Which columns are public, and which are sensitive with which values. All of it is public."""

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
    """The personal groups of some rows: what the public columns hold is public, `counts` is not.

    `values` has the values of each public column, `which` the value that each group has, `counts` a row for each group
    and a column for each sensitive value.
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
        """Return the public columns of a table with so many lines for each group."""
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
