"""A published table: what it holds, what it promises, and its forms as frame, rows and certificate.

It depends on true counts only through published numbers, so it may be printed, saved and sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.drawing import Held
from tacit.errors import PlanError
from tacit.plan.question import Labels
from tacit.policy.policy import Policy
from tacit.publish.groups import MADE_FROM_ROWS, NOTHING_MERGED, Generalisation, PersonalGroups
from tacit.publish.methods.method import Method
from tacit.release.certificate import Certificate, against_in_words, policy_facts

TWO_VALUES: Final = (
    "there are two sensitive values: whoever knows that somebody cannot have one of them knows that they have the other"
)
LEFT_OUT: Final = (
    "rows with an empty public column or an unlisted sensitive value are left out; somebody who knows how many people "
    "a group really has can see how many were left out"
)
NOBODY: Final = "no row had a listed value in every column: check the spelling of `values`"
CORRELATED: Final = (
    "if the values of several records depend on each other (a family, several rows of one person), the table may hold "
    "only one of them: the others would tell about it"
)
AGAIN: Final = "again"  # key of certificates: the table was made although others may tell about the same columns
TOLD_AGAIN: Final = (
    "other tables about {names} of the same rows may be published, and this one was made all the same: for groups that "
    "are in both, no (lambda, delta) criterion is promised any more, neither by this table nor by the others"
)
PROMISE: Final = (
    "for every two records that agree in the public columns: Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O], "
    "whatever is known about other records"
)
ONE_OF_EACH: Final = (
    "of all records with the same {sets}, one was picked at random, each with the same chance: epsilon holds for all "
    "of them together, also if all their values change at once; records without {sets} are left out"
)
UNLISTED: Final = "rows without a listed value are left out; the sizes of groups do not count them"
GIVEN_ONCE: Final = "each record was given once, as whoever appended rows says"
COUNT: Final = "count"  # the column that says how many people a line stands for
ONE_PER: Final = "one_per"  # key of certificates: the column of whose values one record each is in the table


@dataclass(frozen=True)
class PaidAccount:
    """Whose budget has paid for a table; `epsilon` is what a person loses who is in all of its versions.

    `receipts` has one for each version: what the ledger says of its charge, None without a ledger.
    """

    policy: Policy
    dataset: str
    epsilon: Fraction
    receipts: tuple[Mapping[str, Any] | None, ...]


@dataclass(frozen=True, eq=False, repr=False)
class PublishedTable(Held):
    """Personal groups with published counts. `frame` has a line for each group and sensitive value.

    `published` are whole numbers; `estimates` what they say about the true counts. `account` is None if no session has
    paid; `merges` says what values of public columns have become. `again` and `one_per` are those of `perturbed`.
    """

    groups: PersonalGroups  # what is public of them
    sizes: Ints
    published: Ints
    method: Method
    made: str  # when
    replayed: bool  # whether the noise was that of a test, so that nothing is promised
    merges: Generalisation = NOTHING_MERGED  # which public values became one before they were published
    again: bool = False
    one_per: str | None = None
    account: PaidAccount | None = None
    version: int = 1

    @property
    def certificate(self) -> dict[str, Any]:
        """What the table promises, as plain data."""
        return self.promise.document()

    @property
    def promise(self) -> Certificate:
        """What the table promises."""
        columns, paid = self.groups.columns, self.account
        about: dict[str, Any] = {"secrets": {"attributes": list(columns.sensitive)}}
        if paid is not None:
            about = {"dataset": paid.dataset, **policy_facts(paid.policy), "ledger": paid.receipts[-1]}
        exception = f"none for the table as a whole: {MADE_FROM_ROWS}; with groups held fixed, "
        sets = [] if self.one_per is None else [ONE_OF_EACH.format(sets=self.one_per)]
        details: dict[str, Any] = {
            **({AGAIN: True} if self.again else {}),
            "terms": [*self.undone, *self.method.words(), UNLISTED, *self.merges.words(), *sets],
            "not_prevented": self.method.leaves_open,
            **({} if self.one_per is None else {ONE_PER: self.one_per}),
        }
        if self.version > 1:
            details |= {"assumes": GIVEN_ONCE} if paid is None else {"earlier": list(paid.receipts[:-1])}
        against = "" if paid is None else against_in_words(paid.policy)
        return Certificate(
            epsilon=self.epsilon,
            promise=f"{'' if self.merges.protected else exception}{PROMISE}{against}",
            subject={
                **about,
                "version": self.version,
                "made": self.made,
                "public": list(columns.public),
                "sensitive": list(columns.sensitive),
                "method": self.method.name,
            },
            details=details,
            replayed=self.replayed,
        )

    def __repr__(self) -> str:
        return f"<table of {len(self.sizes):,} groups, {self.method.name}, epsilon {float(self.epsilon):.6g}>"

    @property
    def epsilon(self) -> Fraction:
        """The largest loss along an edge that changes sensitive values alone.

        Of plain rows, that of one record, since later versions have other records. Of a session, that of one person,
        who may be in every version: the sum over all of them.
        """
        return self.method.epsilon if self.account is None else self.account.epsilon

    @property
    def values(self) -> list[Any]:
        """The sensitive values, in the order of the columns of `published`."""
        return self.groups.columns.values

    @cached_property
    def estimates(self) -> Floats:
        """Estimates of the true counts: a row for each group, a column for each sensitive value."""
        return self.method.estimates(self.published, self.sizes)

    def labels(self) -> dict[str, Labels]:
        """Return the public and the sensitive columns of a frame with a line for each group and sensitive value."""
        public = self.groups.group_labels(lines=len(self.values))
        return {**public, **self.groups.columns.value_labels(len(self.sizes))}

    @cached_property
    def frame(self) -> Any:
        """A line for each group and sensitive value: the published count, and what it says about the true one."""
        counts = self.published.ravel() if self.method.unit == 1 else self.published.ravel() * float(self.method.unit)
        columns: dict[str, Any] = {**self.labels(), COUNT: counts, "estimate": self.estimates.ravel()}
        return self.groups.frame(columns)

    @property
    def rows(self) -> Any:
        """One line for each published record; refused where counts are not of records, and may be negative."""
        if not self.method.appends:
            fix = "Use frame, which has the counts."
            raise PlanError(
                "has counts, and no records that could be listed", key="table", given=self.method.name, fix=fix
            )
        lines = self.published.ravel()
        return self.groups.frame({name: _repeated(column, lines) for name, column in self.labels().items()})

    @property
    def expected_error(self) -> float:
        """The expected error (root mean square) of the count of one value among all, if all are equally frequent."""
        return self.method.expected_error(self.sizes, len(self.values))

    @property
    def estimated_errors(self) -> Floats:
        """About how wrong the count of each value among all is (root mean square), estimated from the table."""
        return np.asarray(np.sqrt(self.method.estimated_variances(self.estimates, self.sizes).sum(axis=0)))

    @property
    def personal_errors(self) -> Floats:
        """About how wrong each estimate is, relative to itself: a row for each group; at most 1,000%."""
        counts = np.maximum(self.estimates, 1)
        return np.asarray(np.minimum(np.sqrt(self.method.variances(counts, self.sizes)) / counts, 10.0))

    @property
    def warnings(self) -> list[str]:
        """What a reader of the table should know about its promise."""
        return [
            *([] if self.sizes.size else [NOBODY]),
            *([TWO_VALUES] if len(self.values) == 2 else []),
            LEFT_OUT,
            *([CORRELATED] if self.one_per is None else []),
        ]

    @property
    def undone(self) -> list[str]:
        """What is no longer promised, since other tables may tell about the same columns."""
        names = ", ".join(self.groups.columns.sensitive)
        return [TOLD_AGAIN.format(names=names)] if self.again else []

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{len(self.sizes):,} groups, {int(self.sizes.sum()):,} records, {len(self.values)} sensitive values; "
                f"epsilon {float(self.epsilon):.6g}",
                *(f"  {line}" for line in (*self.undone, *self.method.words(), *self.merges.words())),
                f"  expected error (root mean square) of the count of one value among all people: "
                f"{self.expected_error:.4g} if all values are equally frequent; as estimated from this table, "
                f"{_between(self.estimated_errors)}",
                *(f"  not prevented: {line}" for line in self.method.leaves_open),
                *(f"  note: {line}" for line in self.warnings),
            ]
        )


def _between(errors: Floats) -> str:
    """Return the range of some errors as text."""
    least, most = (f"{end:.4g}" for end in (errors.min(initial=np.inf), errors.max(initial=0.0)))
    return f"about {most}" if least == most else f"about {least} to {most}"


def _repeated(column: Labels, lines: Ints) -> Labels:
    # in few bytes for each record: there may be very many
    narrow = column.which.astype(np.min_scalar_type(-len(column.values) - 1))
    return Labels(column.values, np.repeat(narrow, lines))
