"""The contract of a question: everything that one says about itself.

A question is a small public object. It says what it is called and how job files write it, which attributes it looks at,
and through which other questions it may be answered. A linear one can also be measured: it says what rows are counted
for it, and how its answers respond when one record moves (`plan/measure/measured.py`). Nothing outside asks which kind
a question is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

import numpy as np
import numpy.typing as npt

from tacit.drawing import Held
from tacit.errors import InternalError, PlanError, PolicyError, TacitError, kind_of
from tacit.plan.measure.measured import Measured, Responding
from tacit.policy.genuine import is_genuine, settle, stranger
from tacit.policy.person_numbers import PersonNumber
from tacit.policy.where import Where, where

if TYPE_CHECKING:
    from tacit.plan.measure.measured import Strategy
    from tacit.plan.questions.cumulative import OnALine
    from tacit.policy.attributes.attribute import Value
    from tacit.policy.domain import Domain
    from tacit.policy.policy import Policy

LARGEST_RELEASE: Final = 50_000_000  # answers; more would not fit beside the counts in a machine's memory


class PlanningFault(InternalError):
    """A fault of Tacit itself while a question was planned. No row has a part in it, so it says where it was."""

    def __init__(self, cause: str) -> None:
        self.stage, self.cause = "a question was planned", cause
        TacitError.__init__(
            self,
            f"internal fault while {self.stage} ({cause}); nothing was charged for it and no row was looked "
            "at. Please report it.",
        )


@dataclass(frozen=True, kw_only=True)
class WhatCounts:
    """What is counted where people own several rows: `people`, each once, or `rows`; None leaves it to the question.

    A question about one number of each person has it as `each`. It then asks for an attribute of the number's name,
    and which rows are picked is part of the number.
    """

    of: str | None = None
    each: PersonNumber | None = None


class Query(Held, WhatCounts, ABC):
    """A question. `where` restricts it to the people, or to the rows, that a predicate picks.

    `readings` are what it can be asked of where people own several rows; of two, people are meant if nothing is said.
    """

    keyword: ClassVar[str]
    readings: ClassVar[tuple[str, ...]] = ("rows",)
    error_of: ClassVar[str] = "one answer"  # what the expected error is about
    where: Where | None

    def __post_init__(self) -> None:
        settle(self)
        if self.of not in (None, "people", "rows"):
            fix = "Leave it out, or write `of: rows` to count every row of a person."
            raise PlanError("must be people or rows", key=f"{self.keyword}.of", given=self.of, fix=fix)

    @property
    def who(self) -> str:
        """What is counted, in words: rows where the question says so, else people."""
        return self.of or "people"

    @property
    def of_rows(self) -> str:
        """The word behind what does not say by itself that rows are meant."""
        return " (rows)" if self.of == "rows" else ""

    def cut_words(self, domain: Domain) -> str:
        """Say what larger numbers of a person count as, if the question is about one number of each; else nothing."""
        return "" if self.each is None else self.each.cut_words(domain[self.each.name])

    @property
    def asked_about(self) -> frozenset[str]:
        """The attributes of the rows that are looked at, also where they are made into one number of each person."""
        if self.each is None:
            return self.mentioned()
        return columns_of(self.each.where) | ({self.each.attribute} if self.each.attribute else set())

    def read_under(self, policy: Policy) -> Query:
        """Return the question with what it counts under this policy, or refuse what it cannot be asked of."""
        if self.of == "rows" and policy.person is not None and any(policy.domain[n].is_set for n in self.mentioned()):
            rule = "must not be rows where a person's items come from several rows"
            raise PlanError(rule, key=f"{self.keyword}.of", given=self.of, fix="Leave it out.")
        if policy.per_person == 1 or self.of == "rows" or "people" in self.readings or not self.readings:
            return self
        if self.of is not None:
            raise PlanError(
                f"must be rows, since a person may be in several places with per_person={policy.per_person}",
                key=f"{self.keyword}.of",
                given=self.of,
                fix="Leave it out, or set per_person to 1.",
            )
        query: Any = self
        of_rows: Query = replace(query, of="rows")
        return of_rows

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""
        check_where(self.where, domain)

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at; here those of its predicate."""
        return columns_of(self.where)

    def coined_for(self, application: str) -> Query:
        """Return the question with the coins of an application; here, where there are none, as it is."""
        return self

    def options(self) -> dict[str, Any]:
        """Return what a job file writes below the keyword, without the predicate."""
        return {}

    @property
    def word(self) -> str:
        """The keyword by which a job file asks for this query."""
        return self.keyword

    def document(self) -> Any:
        """Return what a job file says for this query."""
        condition = {} if self.where is None else {"where": str(self.where)}
        options = self.options()
        if self.each is not None:
            main, *_ = options  # what is named: the attribute
            said = options.pop(main)
            if self.each.attribute is not None:
                options = {main: self.each.attribute if isinstance(said, str) else [self.each.attribute], **options}
            condition = self.each.document()
        return {self.word: {**options, **condition, **self.reading()}}

    def reading(self) -> dict[str, str]:
        """Return what a job file says about what is counted."""
        return {} if self.of is None else {"of": self.of}

    @abstractmethod
    def words(self, domain: Domain) -> str:
        """Return in words what is asked, without its condition."""

    @abstractmethod
    def plan(self, policy: Policy, epsilon: Fraction) -> Any:
        """Return the plan with the smallest expected error at this cost, for a query that was checked."""

    @property
    @abstractmethod
    def counted(self) -> Linear:
        """The linear query whose answers are looked at."""

    def resolved(self, domain: Domain) -> Query:
        """Return the query that a domain makes of this one, checked."""
        self.check(domain)
        return self

    def among(self, people: Where) -> Query:
        """Return the same question about those of its people whom a predicate picks."""
        query: Any = self
        picked = people if self.picked is None else self.picked & people
        among = {"where": picked} if self.each is None else {"each": replace(self.each, where=picked)}
        restricted: Query = replace(query, **among)
        return restricted

    @property
    def picked(self) -> Where | None:
        """The predicate that restricts the question: to people, or to the rows that people's numbers are made of."""
        return self.where if self.each is None else self.each.where

    def unit_words(self, domain: Domain) -> str:
        """Return what the values are numbers of."""
        return self.who

    def error_unit(self, domain: Domain) -> str:
        """Return what the expected error is a number of: the same as the values, where it is about them."""
        return self.unit_words(domain)

    def size_words(self, answers: int, domain: Domain) -> str:
        """Return in words how many answers there are."""
        return f"{answers:,} answer{'s' * (answers != 1)}"

    def listed_words(self, domain: Domain) -> str:
        """Return what the rows of the table of answers are called."""
        return "answers"

    def tables(self, domain: Domain) -> tuple[tuple[str, ...], ...]:
        """Return the attributes of each table of cells that the answers are; none for other answers."""
        return ()

    def never_negative(self, domain: Domain) -> bool:
        """Say whether no true answer can be below zero while a noisy one can."""
        return True

    def split_by(self) -> tuple[str, ...]:
        """Return the attributes for each of whose cells there is one answer that is no count; none for others."""
        return ()

    def fitting(self, base: Measured) -> str:
        """Say what making the answers consistent did, or nothing."""
        return ""

    @property
    def remembers(self) -> bool:
        """Whether asking again gives the same answer, and may cost nothing."""
        return False


class Linear(Query, Responding):
    """A question whose answers are sums over people of a function of one record: it can be measured as it is."""

    @property
    def counted(self) -> Linear:
        return self

    @property
    def counts_rows(self) -> bool:
        return self.of == "rows" or "people" not in self.readings

    @property
    def about_a_line(self) -> OnALine | None:
        """The question itself, if its answers are counts of runs of values; else None."""
        return None

    @abstractmethod
    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        """Return the columns that say what each answer is about."""

    def plan(self, policy: Policy, epsilon: Fraction) -> Any:
        from tacit.plan.plans.linear import plan_linear

        return plan_linear(self, policy, epsilon)

    def check_size(self, domain: Domain) -> None:
        """Refuse more answers than can be released."""
        answers = self.size(domain)
        if answers > LARGEST_RELEASE:
            raise PlanError(
                f"has {answers:,} answers, more than {LARGEST_RELEASE:,}",
                key=str(self),
                fix="Ask about fewer attributes, or coarser ones.",
            )

    def bases(self, policy: Policy) -> list[tuple[Linear, str]]:
        """Return the queries whose noisy answers may answer this one, each with how, in words."""
        return [(self, "direct")]

    def strategies(self, policy: Policy, epsilon: Fraction) -> list[Strategy]:
        """Return further ways to answer, with a noise of their own; none by default."""
        return []


def check_query(query: Any) -> Query:
    """Return a query, or refuse what is none."""
    if isinstance(query, Query):
        return query
    raise PlanError(f"must be a query, not {kind_of(query)}", key="query", fix="For instance tc.histogram('age').")


def resolve(query: Any, domain: Domain) -> Query:
    """Return a query that is checked against a domain, or refuse."""
    asked = check_query(query)
    if not is_genuine(asked):
        raise PlanError(
            f"must be one of tc's own, of plain values and predicates; found {stranger(asked)}",
            key=f"query {getattr(type(asked), 'keyword', '')}".rstrip(),
            fix="One of another class might count something else than was planned. For instance tc.histogram('age').",
        )
    if asked.each is None:
        return asked.resolved(domain)
    asked.each.check(domain)
    return asked


# ---- what the modules of questions share ----------------------------------------------------------------------------


def read_where(given: Where | str | None) -> Where | None:
    """Return a predicate that was written as a text or built, or None."""
    return None if given is None else where(given)


def attribute_of(domain: Domain, name: str, keyword: str) -> Any:
    """Return an attribute, or refuse it in the words of a plan."""
    try:
        return domain.attribute(name, key=keyword)
    except PolicyError as refusal:
        raise refusal.retold(PlanError) from None


def check_where(predicate: Where | None, domain: Domain) -> None:
    """Refuse a predicate that the domain does not understand."""
    if predicate is None:
        return
    try:
        predicate.compile(domain)
    except PolicyError as refusal:
        raise refusal.retold(PlanError) from None


def check_names(names: Sequence[Any], keyword: str) -> None:
    """Refuse names that are not texts, and say how a list of them is written."""
    for name in names:
        if isinstance(name, str):
            continue
        listed = name if isinstance(name, list | tuple) and all(isinstance(part, str) for part in name) else ["age"]
        raise PlanError(
            "must name attributes one by one",
            key=keyword,
            given=name,
            fix=f"Write {keyword}({', '.join(repr(part) for part in listed)}).",
        )


def check_different(names: Sequence[str], key: str) -> None:
    """Refuse names of which one is there twice."""
    if len(set(names)) < len(names):
        raise PlanError("must name different attributes", key=key, given=list(names), fix="Remove one.")


def columns_of(predicate: Where | None) -> frozenset[str]:
    """Return the attributes that a predicate looks at."""
    return frozenset() if predicate is None else predicate.columns()


def suffix(predicate: Where | None, of: str | None = None, each: PersonNumber | None = None) -> str:
    """Return what is counted, if it is said, and the predicate, as they stand at the end of a query's name."""
    if each is not None:
        return each.options_in_words
    return ("" if of is None else f", of {of}") + ("" if predicate is None else f" where {predicate}")


def in_words(names: Sequence[str]) -> str:
    """Return names as they stand in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def position_of_end(attribute: Any, end: Any, key: str) -> int:
    """Return the place of an end of a range in its attribute, or refuse it in the words of a plan."""
    try:
        return int(attribute.position(end))
    except PolicyError as refusal:
        raise refusal.retold(PlanError, key=key) from None


def cell_of(record: Mapping[str, Any], names: Iterable[str], domain: Domain) -> int:
    """Return which cell of a table of these attributes, written row by row, a record is in."""
    cell = 0
    for name in names:
        cell = cell * domain[name].size + position(domain, name, record[name])
    return cell


def position(domain: Domain, name: str, value: Any) -> int:
    """Return the place of a value in its attribute."""
    return int(domain[name].position(value))


# ---- columns of labels: nothing is made for each cell but a small number, so that large tables need no loop ---------


class Labels(Sequence["Value"]):
    """A column of labels, read like a list. `values` has each of them once, `which` its place there, for every row.

    >>> list(Labels(["f", "m"], np.array([0, 0, 1])))
    ['f', 'f', 'm']
    """

    def __init__(self, values: Sequence[Value], which: npt.NDArray[Any]) -> None:
        self.values, self.which = values, which

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, place: int) -> Value: ...
    @overload
    def __getitem__(self, place: slice) -> Labels: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return Labels(self.values, self.which[place])
        return self.values[int(self.which[place])]

    def __iter__(self) -> Iterator[Value]:
        return map(self.values.__getitem__, self.which.tolist())


def labels_of_cells(values: Sequence[Sequence[Value]]) -> list[Labels]:
    """Return the labels of a table written row by row, one column for the values of each of its attributes.

    >>> [list(column) for column in labels_of_cells([["f", "m"], [1, 2, 3]])]
    [['f', 'f', 'f', 'm', 'm', 'm'], [1, 2, 3, 1, 2, 3]]
    """
    sizes = [len(each) for each in values]
    columns = []
    for at, each in enumerate(values):
        inner, outer = math.prod(sizes[at + 1 :]), math.prod(sizes[:at])
        places = np.arange(len(each), dtype=np.min_scalar_type(len(each)))
        columns.append(Labels(each, np.tile(np.repeat(places, inner), outer)))
    return columns


def one_below_the_other(parts: Sequence[Labels | int]) -> Labels:
    """Return several columns as one. A number stands for so many rows without a label, which is then None."""
    values: list[Value] = []
    taken: dict[int, int] = {}  # where the values of a column begin; tables of one attribute share theirs
    blank: int | None = None
    which = []
    for part in parts:
        if isinstance(part, int):
            if blank is None:
                blank = len(values)
                values.append(None)
            which.append(np.full(part, blank, dtype=np.int64))
            continue
        start = taken.get(id(part.values))
        if start is None:
            start = taken[id(part.values)] = len(values)
            values.extend(part.values)
        which.append(part.which.astype(np.int64) + start)
    return Labels(values, np.concatenate(which))
