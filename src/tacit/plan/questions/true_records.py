"""`true_records`: records as they are, as far as no secret edge forbids it: one-sided randomised response.

With a `key` that is public, there is a row for each key, and each other column of it is shown or missing. Without one,
or where a secret edge changes the key, records are shown as a whole or leave nothing. What may be shown is derived from
the policy (`plan/plans/visible_records.py`); a coin hides some of the rest, so that a gap does not give away what is
hidden. With a key the coin of a record is remembered: the same question has the same answer, and costs nothing again; a
larger epsilon shows more, and costs the difference. Without a key nothing tells a record from others like it, so every
time somebody asks, coins are tossed anew and all of epsilon is paid again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

from tacit.errors import PlanError, kind_of
from tacit.plan.plans.records import RecordsPlan, plan_records
from tacit.plan.question import Query, attribute_of, check_different, in_words, read_where, suffix
from tacit.plan.question_keys import WHERE, Question, first_attribute, names_of
from tacit.plan.questions.counts import Marginals
from tacit.policy.domain import Domain
from tacit.policy.genuine import as_plain
from tacit.policy.keys import TEXT, TEXTS, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where

MOST_KEYS: Final = 2**62  # different keys, which are numbered


@dataclass(frozen=True)
class TrueRecords(Query):
    """Some columns of the records, as they are: of each row that a `key` names, or of rows that have no name.

    The key is shown as well, before the columns, unless some of it is among them.
    `application` is who asks: each has coins of its own, so that what one sees tells nothing about the coins of others.
    `version` says which state of the records it is: a text that is public. Each has coins of its own, too.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    where: Where | None = None
    application: str = ""
    version: str = ""
    keyword: ClassVar[str] = "true_records"

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that are no part of the key: each of them is shown or missing."""
        return tuple(name for name in self.columns if name not in self.key)

    @property
    def counted(self) -> Marginals:
        """The cells that a shown record can be in: what audits look at."""
        return Marginals((self.shown,), self.where)

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have, and keys that cannot be numbered."""
        for key, names in (("columns", self.columns), ("key", self.key)):
            check_different(names, f"true_records.{key}")
            for name in names:
                if name in self.key and name not in domain:
                    continue  # a column that names rows, and is no part of a record
                if attribute_of(domain, name, f"true_records.{key}").is_set:
                    rule = "must have one value for each record"
                    fix = "Leave the list of items out; its counts are asked for with `histogram`."
                    raise PlanError(rule, key=f"true_records.{key}", given=name, fix=fix)
        sets = [name for name, attribute in domain.items() if attribute.is_set]
        if sets:
            rule = "must be about a domain without lists of items: what hides a list is not derived"
            fix = "Declare a domain without it, which reads the same rows."
            raise PlanError(rule, key="true_records", given=sets[0], fix=fix)
        numbered = [name for name in self.key or self.columns if name in domain]
        if math.prod(domain[name].size for name in numbered) > MOST_KEYS:
            raise PlanError(
                "must have at most 2^62 different values together",
                key="true_records.key" if self.key else "true_records.columns",
                given=numbered,
                fix="Declare a narrower range, or name fewer attributes.",
            )
        super().check(domain)

    def resolved(self, domain: Domain) -> Query:
        named = self.columns or tuple(name for name in domain if name not in self.key)
        if not named:
            rule = "must name a column that is no part of the key"
            raise PlanError(rule, key="true_records.columns", fix="The key has all of them: leave one out of it.")
        found = replace(self, columns=named)
        found.check(domain)
        return found

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at; a key may have others, which are no attributes."""
        return super().mentioned() | set(self.shown)

    def coined_for(self, application: str) -> Query:
        return replace(self, application=application)

    def options(self) -> dict[str, Any]:
        others = {"key": list(self.key), "application": self.application, "version": self.version}
        return {"columns": list(self.columns), **{key: value for key, value in others.items() if value}}

    def words(self, domain: Domain) -> str:
        by = f", for each {in_words(self.key)}" if self.key else ""
        return f"True records: {in_words(self.columns)}{by}"

    def unit_words(self, domain: Domain) -> str:
        return "records"

    def size_words(self, answers: int, domain: Domain) -> str:
        return f"records with {in_words(self.columns)}"

    @property
    def remembers(self) -> bool:
        return bool(self.key)

    def never_negative(self, domain: Domain) -> bool:
        return False

    def plan(self, policy: Policy, epsilon: Fraction) -> RecordsPlan:
        return plan_records(self, policy, epsilon)

    def __str__(self) -> str:
        key = f"; key {', '.join(self.key)}" if self.key else ""
        asked = f"; for {self.application}" if self.application else ""
        version = f"; version {self.version}" if self.version else ""
        return f"true_records({', '.join(self.columns) or 'all columns'}{key}{asked}{version}{suffix(self.where)})"


def true_records(
    columns: str | Sequence[str] | None = None,
    *,
    key: str | Sequence[str] | None = None,
    where: Any = None,
    application: str | None = None,
    version: str | None = None,
) -> TrueRecords:
    """Ask for records as they are: these columns, of rows that a `key` names, or of rows without a name.

    Without `columns`, all attributes of the domain that are no part of the key; a policy that allows no record to show
    one of them refuses, and says which.
    Records that have changed under their keys, by a correction or because time goes on, need another `version`: a text
    that is public, such as a month. It has new coins, and is charged anew.

    >>> str(true_records(["room", "arrival"], key=["room", "day"]))
    'true_records(room, arrival; key room, day)'
    """
    asked = () if columns is None else _names(columns, "columns")
    names = () if key is None else _names(key, "key")
    if columns is not None and not set(asked) - set(names):
        raise PlanError(
            "must name a column that is no part of the key", key="true_records.columns", fix="Write columns=['age']."
        )
    for word, given, what, fix in (
        ("application", application, "a name", "say who asks: 'lighting'"),
        ("version", version, "a text", "name a state: '2024-03'"),
    ):
        if given is not None and not (isinstance(given, str) and given.strip()):
            rule = f"must be {what}, not {kind_of(given)}"
            raise PlanError(rule, key=f"true_records.{word}", fix=f"Leave it out, or {fix}.")
    if version is not None and not names:
        rule = "needs a key: without one no coin is remembered, and every asking has new ones"
        raise PlanError(rule, key="true_records.version", given=version, fix="Leave it out, or name a key.")
    return TrueRecords(asked, names, read_where(where), application or "", version or "")


def _names(given: Any, key: str) -> tuple[str, ...]:
    listed: list[Any] = names_of(given) if isinstance(given, str | list | tuple) else [None]
    if not all(isinstance(name, str) for name in listed):
        rule = f"must be names of attributes, not {kind_of(given)}"
        raise PlanError(rule, key=f"true_records.{key}", fix=f"Write {key}=['room', 'day'].")
    return tuple(as_plain(listed))


TRUE_RECORDS: Final = Question(
    "true_records",
    keys=(
        Key("columns", TEXTS, "The attributes that are shown.", required=True),
        Key("key", TEXTS, "What names a row: no two rows have the same."),
        Key("application", TEXT, "Who asks; each has coins of its own."),
        Key("version", TEXT, "Which state of the records, if they change under their keys; new coins, charged anew."),
        WHERE,
    ),
    ask=true_records,
    example=lambda policy: true_records([first_attribute(policy, "true_records", lambda one: not one.is_set)]),
    shown=(
        ("`{true_records: [age, ward]}`", "records as they are, as far as no secret edge forbids it"),
        (
            "`{true_records: {columns: [arrival], key: [room, day], application: lighting}}`",
            "the same for each room and day, missing where it is hidden",
        ),
    ),
    by_group="Name the attributes among `columns`, or as the `key`.",
)
