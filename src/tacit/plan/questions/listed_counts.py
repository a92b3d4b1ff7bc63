"""`counts`: how many people each predicate of a list picks. One person may be picked by several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from tacit.arrays import Bools, Ints
from tacit.errors import PlanError, PolicyError, kind_of
from tacit.plan.measure.measured import CellCounts, Tally
from tacit.plan.question import Linear, check_where, columns_of, read_where, suffix
from tacit.plan.question_keys import IN_A_HISTOGRAM, OF, WHERE, Question, first_predicate
from tacit.plan.sensitivity.listed import MOST_CELLS, CellTable
from tacit.plan.sensitivity.responses import Response, everybody
from tacit.plan.sensitivity.steps import couples_people, free_step
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, positions
from tacit.policy.edges.shapes import axes_of
from tacit.policy.keys import TEXT, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where, where

PREDICATE: Final = "predicate"  # the column of names
MOST_LISTED: Final = 10_000  # predicates
Listed: TypeAlias = tuple[tuple[str, Where], ...]


@dataclass(frozen=True)
class ListedCounts(Linear):
    """How many people each predicate picks; `predicates` has the name of each, and the predicate."""

    predicates: Listed
    where: Where | None = None
    keyword: ClassVar[str] = "counts"
    readings: ClassVar[tuple[str, ...]] = ("people", "rows")

    def check(self, domain: Domain) -> None:
        super().check(domain)
        check_listed(self.predicates, domain, "counts.predicates")

    def mentioned(self) -> frozenset[str]:
        return super().mentioned().union(*(columns_of(one) for _, one in self.predicates))

    @property
    def listed(self) -> tuple[Where, ...]:
        return tuple(one if self.where is None else one & self.where for _, one in self.predicates)

    def size(self, domain: Domain) -> int:
        return len(self.predicates)

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        return {PREDICATE: [name for name, _ in self.predicates]}

    def options(self) -> dict[str, Any]:
        return {"predicates": as_document(self.predicates)}

    def words(self, domain: Domain) -> str:
        return f"{self.who.capitalize()} whom each of {len(self.predicates):,} predicates picks"

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return tuple(CellCounts((), one) for one in self.listed)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        return np.array([int(count) for count in tallied], dtype=np.int64)

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        at = positions(domain, tuple(record[name] for name in domain))
        return np.array([one.compile(domain).of_record(at) for _, one in self.predicates], dtype=np.int64)

    def response(self, domain: Domain) -> Response:
        return everybody().response(domain)

    def directions(self, policy: Policy) -> tuple[Bools, Bools] | None:
        if couples_people(policy):
            return None  # others move as well, and anywhere
        steps = [free_step(everybody(one), policy) for one in self.listed]
        fall, rise = np.array([step.down > 0 for step in steps]), np.array([step.up > 0 for step in steps])
        return None if (fall & rise).all() else (fall, rise)

    def __str__(self) -> str:
        return f"counts({shortly(self.predicates)}{suffix(self.where, self.of)})"


def counts(predicates: Any, *, where: Where | str | None = None, of: str | None = None) -> ListedCounts:
    """Ask how many people each predicate picks: a list of them, or a mapping from names to them.

    >>> str(counts({"young": "age < 18", "old": "age >= 65"}))
    'counts(young, old)'
    """
    return ListedCounts(read_listed(predicates, "counts.predicates"), read_where(where), of=of)


# ---- lists of predicates, which selections have as well --------------------------------------------------------------


def is_listed(given: Any) -> bool:
    """Say whether somebody wrote several predicates."""
    return isinstance(given, Mapping | list | tuple)


def read_listed(given: Any, key: str) -> Listed:
    """Return the predicates of a list, or of a mapping from their names, each with its name; or refuse."""
    if not is_listed(given):
        fix = "For instance {'young': 'age < 18', 'old': 'age >= 65'}."
        raise PlanError(f"must be a list of predicates, or name them, not {kind_of(given)}", key=key, fix=fix)
    named = list(given.items()) if isinstance(given, Mapping) else [(None, one) for one in given]
    if not named:
        raise PlanError("must list a predicate", key=key, given=[], fix="For instance ['age < 18'].")
    if len(named) > MOST_LISTED:
        rule = f"must list at most {MOST_LISTED:,} predicates"
        raise PlanError(rule, key=key, given=len(named), fix="Ask for a histogram of what they mention.")
    found: dict[str, Where] = {}
    for name, one in named:
        if name is not None and (not isinstance(name, str) or not name):
            raise PlanError("must have texts as names", key=key, given=name, fix=f"Write {str(name or 'one')!r}.")
        if not isinstance(one, str | Where):
            fix = (
                "For instance 'age < 18'. A list has predicates alone: weights and other questions have no place in it."
            )
            raise PlanError(
                f"must be a predicate, not {kind_of(one)}", key=key if name is None else f"{key}: {name}", fix=fix
            )
        try:
            read = where(one)
        except PolicyError as refusal:
            raise refusal.retold(PlanError, key=f"{key}: {name or one}") from None
        called = str(read) if name is None else name
        if called in found:
            raise PlanError("must be different", key=key, given=called, fix="Remove the second one, or name both.")
        found[called] = read
    return tuple(found.items())


def check_listed(predicates: Listed, domain: Domain, key: str) -> None:
    """Refuse predicates that the domain does not understand, and those that hold for every record or for none."""
    for name, one in predicates:
        try:
            check_where(one, domain)
        except PlanError as refusal:
            raise refusal.retold(PlanError, key=f"{key}: {name}: {refusal.key}") from None
        test = one.compile(domain)
        table = CellTable(axes_of([test]))
        if table.size > MOST_CELLS:
            continue
        holds = table.holds([test])[table.possible(domain), 0]
        if holds.all() or not holds.any():
            every = holds.all()
            rule = "must not hold for every record of the domain" if every else "must hold for a record of the domain"
            raise PlanError(rule, key=f"{key}: {name}", given=str(one), fix="Remove it, or correct its values.")


def as_document(predicates: Listed) -> Any:
    """Return predicates as a job file writes them: a list, or a mapping where they have names."""
    if all(name == str(one) for name, one in predicates):
        return [name for name, _ in predicates]
    return {name: str(one) for name, one in predicates}


def shortly(predicates: Listed) -> str:
    """Return the names of a few predicates, or how many there are."""
    named = ", ".join(name for name, _ in predicates)
    return named if len(named) <= 60 else f"{len(predicates):,} predicates"


PREDICATES: Final = Key(
    "predicates",
    {
        "anyOf": [
            {"type": "object", "additionalProperties": TEXT, "minProperties": 1},
            {"type": "array", "items": TEXT, "minItems": 1},
        ]
    },
    "A list of predicates, or a mapping from their names to them.",
)
COUNTS: Final = Question(
    "counts",
    keys=(Key(PREDICATES.name, PREDICATES.schema, PREDICATES.meaning, required=True), WHERE, OF),
    ask=counts,
    example=lambda policy: counts([first_predicate(policy)]),
    shown=(
        (
            '`{counts: {predicates: {young: "age < 18", flu: "disease == \'flu\'"}}}`',
            "people whom each predicate picks; one person may be picked by several",
        ),
        ('`{counts: ["age < 18", "age >= 65"]}`', "the same without names"),
    ),
    by_group=IN_A_HISTOGRAM,
)
