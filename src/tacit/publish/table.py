"""A published table: what it holds, what it promises, and in which forms it can be had.

Nothing in it depends on true counts but through what was drawn, so it may be printed, saved and sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from tacit.errors import PlanError, kind_of, sealed
from tacit.publish.generalisation import NOTHING_MERGED, Generalisation, merged
from tacit.publish.groups import PersonalGroups, personal_groups
from tacit.publish.method import Floats, Ints, Method

TWO_VALUES: Final = (
    "there are two sensitive values: whoever knows that somebody cannot have the one knows that they have the other"
)
CORRELATED: Final = (
    "one record of people whose values hang together (a family, a person's several rows) belongs in the table: others "
    "would tell about it"
)


@dataclass(frozen=True, eq=False, repr=False)
class PublishedTable:
    """Personal groups with published counts. `frame` has a line for each group and sensitive value.

    `published` are whole numbers; `estimates` what they say about the true counts.
    """

    groups: PersonalGroups  # what is public of them
    sizes: Ints
    published: Ints
    method: Method
    merges: Generalisation = NOTHING_MERGED  # which public values became one before they were published
    certificate: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<table of {len(self.sizes):,} groups, {self.method.name}, epsilon {float(self.epsilon):.6g}>"

    @property
    def epsilon(self) -> Fraction:
        """What one record loses at most, along edges that change sensitive values alone."""
        return self.method.epsilon

    @property
    def values(self) -> list[Any]:
        """The sensitive values, in the order of the columns of `published`."""
        return self.groups.columns.values

    @cached_property
    def estimates(self) -> Floats:
        """Estimates of the true counts: a row for each group, a column for each sensitive value."""
        return self.method.estimates(self.published, self.sizes)

    @cached_property
    def frame(self) -> Any:
        """A line for each group and sensitive value: the published count, and what it says about the true one."""
        columns: dict[str, Any] = {
            **self.groups.group_labels(lines=len(self.values)),
            **self.groups.columns.value_labels(len(self.sizes)),
            "count": self.published.ravel()
            if self.method.unit == 1
            else self.published.ravel() * float(self.method.unit),
            "estimate": self.estimates.ravel(),
        }
        return self.groups.frame(columns)

    @property
    def rows(self) -> Any:
        """One line for each published record; refused where counts are no records, since they may be negative."""
        if not self.method.appends:
            fix = "Use frame, which has the counts."
            raise PlanError(
                "has counts, and no records that could be listed", key="table", given=self.method.name, fix=fix
            )
        lines = self.published.ravel()
        columns: dict[str, Any] = {
            name: column[:0] if not lines.size else _repeated(column, lines)
            for name, column in {
                **self.groups.group_labels(lines=len(self.values)),
                **self.groups.columns.value_labels(len(self.sizes)),
            }.items()
        }
        return self.groups.frame(columns)

    @property
    def expected_error(self) -> float:
        """The expected error (root mean square) of the count of one value among all, if all are equally frequent."""
        return self.method.expected_error(self.sizes, len(self.values))

    @property
    def personal_errors(self) -> Floats:
        """About how wrong the estimate of each count is, relative to it: a row for each group; at most 1,000%.

        These are estimates themselves, from what is published.
        """
        counts = np.maximum(self.estimates, 1)
        return np.asarray(np.minimum(np.sqrt(self.method.variances(counts, self.sizes)) / counts, 10.0))

    @property
    def warnings(self) -> list[str]:
        """What a reader should know who trusts the promise."""
        return [*([TWO_VALUES] if len(self.values) == 2 else []), CORRELATED]

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{len(self.sizes):,} groups, {int(self.sizes.sum()):,} records, {len(self.values)} sensitive values; "
                f"epsilon {float(self.epsilon):.6g}",
                *(f"  {line}" for line in (*self.method.words(), *self.merges.words())),
                f"  expected error of the count of one value among all people: {self.expected_error:.4g}",
                *(f"  not prevented: {line}" for line in self.method.leaves_open),
                *(f"  note: {line}" for line in self.warnings),
            ]
        )


def _repeated(column: Any, lines: Ints) -> Any:
    return type(column)(column.values, np.repeat(column.which, lines))


@sealed
def append(table: PublishedTable, rows: Any) -> PublishedTable:
    """Return a new version of a perturbed table with rows that came later.

    Rows that are in it already keep their coins: nothing about them is drawn again, and so epsilon holds for all
    versions together. Give only new rows: a record that is given twice is perturbed twice, and loses twice as much. The
    criterion of reconstruction privacy is about groups, which grow: audit the new sizes (`tc.audit.reconstruction`).
    """
    if not isinstance(table, PublishedTable):
        raise PlanError(f"must be a published table, not {kind_of(table)}", key="table", fix="Make one first.")
    if not table.method.appends:
        raise PlanError(
            "must be perturbed uniformly: what is promised about groups would not hold for two versions together",
            key="table",
            given=table.method.name,
            fix="Publish all rows anew, which costs epsilon again.",
        )
    new = merged(personal_groups(rows, table.groups.columns), table.merges)
    return joined(table, new, table.method.draw(new.counts))


def joined(table: PublishedTable, new: PersonalGroups, drawn: Ints) -> PublishedTable:
    """Return a table with the published counts of new groups added to its own."""
    values, old_codes, new_codes = [], [], []
    for at, (ours, theirs) in enumerate(zip(table.groups.values, new.values, strict=True)):
        union = sorted({*ours, *theirs}, key=lambda value: (str(type(value)), value))
        place = {value: number for number, value in enumerate(union)}
        values.append(tuple(union))
        old_codes.append(np.array([place[value] for value in ours], np.int64)[table.groups.which[:, at]])
        new_codes.append(np.array([place[value] for value in theirs], np.int64)[new.which[:, at]])
    old, late = (np.stack(codes, axis=1) if codes else None for codes in (old_codes, new_codes))
    if old is None or late is None:
        which, of = table.groups.which[:1], np.zeros(len(table.sizes) + len(new.which), np.int64)
    else:
        which, of = np.unique(np.concatenate([old, late]), axis=0, return_inverse=True)
    counts = np.zeros((len(which), drawn.shape[1]), np.int64)
    sizes = np.zeros(len(which), np.int64)
    np.add.at(counts, of.ravel(), np.concatenate([table.published, drawn]))
    np.add.at(sizes, of.ravel(), np.concatenate([table.sizes, new.sizes]))
    groups = replace(table.groups, values=tuple(values), which=which)
    return replace(table, groups=groups, sizes=sizes, published=counts)
