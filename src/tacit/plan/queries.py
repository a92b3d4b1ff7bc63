"""What is asked: linear questions about a data set, each a sum over people of a function of one record.

A query is a small public object: it says which attributes it mentions, what its answers are called and how a policy or
job file writes it. How much one person can change the answers is `plan/steps.py`; how rows are counted is
`release/answers.py`.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanError, PolicyError, kind_of
from tacit.policy.attributes import Categories, Integers, Items
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.where import Where, where

MOST_SETS: Final = 20_000  # histograms of one release
LARGEST_RELEASE: Final = 50_000_000  # answers; more would not fit beside the counts in a machine's memory


@dataclass(frozen=True)
class Query(ABC):
    """A question. `where` restricts it to the people that a predicate picks."""

    keyword: ClassVar[str]

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""

    @abstractmethod
    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at."""

    @abstractmethod
    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""

    @abstractmethod
    def labels(self, domain: Domain) -> dict[str, list[Value]]:
        """Return the columns that say what each answer is about."""

    @abstractmethod
    def document(self) -> Any:
        """Return what a job file says for this query."""


@dataclass(frozen=True)
class Count(Query):
    """How many people there are, or how many a predicate picks."""

    where: Where | None = None
    keyword: ClassVar[str] = "count"

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""
        _check_where(self.where, domain)

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at."""
        return _columns(self.where)

    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""
        return 1

    def labels(self, domain: Domain) -> dict[str, list[Value]]:
        """Return the columns that say what each answer is about."""
        return {"count of": [str(self.where) if self.where is not None else "everyone"]}

    def document(self) -> Any:
        """Return what a job file says for this query."""
        return {self.keyword: with_where({}, self.where)}

    def __str__(self) -> str:
        return f"count({self.where if self.where is not None else ''})"


@dataclass(frozen=True)
class Marginals(Query):
    """One histogram for each set of attributes; an ordinary histogram is one set.

    The histogram of a set of items counts for each item the people who have it.
    """

    sets: tuple[tuple[str, ...], ...]
    where: Where | None = None
    ways: int | None = None
    keyword: ClassVar[str] = "marginals"

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""
        for names in self.sets:
            for name in names:
                attribute = _attribute(domain, name, "histogram" if len(self.sets) == 1 else self.keyword)
                if isinstance(attribute, Items) and len(names) > 1:
                    raise PlanError(
                        "must be asked alone", key="histogram", given=name, fix="Use `where` for the other attributes."
                    )
            if not names or len(set(names)) < len(names):
                raise PlanError(
                    "must name different attributes", key="histogram", given=list(names), fix="Remove the second one."
                )
        _check_where(self.where, domain)

    def is_items(self, domain: Domain) -> bool:
        """Say whether this counts the items of a set."""
        return any(isinstance(domain[name], Items) for names in self.sets for name in names)

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at."""
        return frozenset(name for names in self.sets for name in names) | _columns(self.where)

    def sizes(self, domain: Domain) -> list[int]:
        """Return the number of cells of each histogram."""
        return [math.prod(_cells(domain[name]) for name in names) for names in self.sets]

    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""
        return sum(self.sizes(domain))

    def labels(self, domain: Domain) -> dict[str, list[Value]]:
        """Return the columns that say what each answer is about; None where a histogram does not mention one."""
        # one histogram has its columns as they were asked for, several those of the domain
        mentioned = [name for name in domain if any(name in names for names in self.sets)]
        order = list(self.sets[0]) if len(self.sets) == 1 else mentioned
        columns: dict[str, list[Value]] = {name: [] for name in order}
        for names, cells in zip(self.sets, self.sizes(domain), strict=True):
            sizes = [_cells(domain[name]) for name in names]
            for name in order:
                if name not in names:
                    columns[name].extend([None] * cells)
                    continue
                at = names.index(name)
                inner, outer = math.prod(sizes[at + 1 :]), math.prod(sizes[:at])
                # values repeat in the fixed pattern of a table written row by row
                columns[name].extend([value for value in _values(domain[name]) for _ in range(inner)] * outer)
        return columns

    def document(self) -> Any:
        """Return what a job file says for this query."""
        if len(self.sets) == 1:
            return {"histogram": with_where({"attributes": list(self.sets[0])}, self.where)}
        if self.ways is not None:
            names = list(dict.fromkeys(name for names in self.sets for name in names))
            return {self.keyword: with_where({"attributes": names, "ways": self.ways}, self.where)}
        return {self.keyword: with_where({"sets": [list(names) for names in self.sets]}, self.where)}

    def __str__(self) -> str:
        if len(self.sets) == 1:
            return f"histogram({', '.join(self.sets[0])}{suffix(self.where)})"
        return f"marginals of {len(self.sets)} sets{suffix(self.where)}"


@dataclass(frozen=True)
class Cumulative(Query):
    """For each value v of an ordered attribute: how many people have at most v."""

    name: str
    where: Where | None = None
    keyword: ClassVar[str] = "cumulative"

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""
        _ordered(domain, self.name, self.keyword)
        _check_where(self.where, domain)

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at."""
        return _columns(self.where) | {self.name}

    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""
        return domain[self.name].size

    def labels(self, domain: Domain) -> dict[str, list[Value]]:
        """Return the columns that say what each answer is about."""
        return {f"{self.name} up to": _values(domain[self.name])}

    def document(self) -> Any:
        """Return what a job file says for this query."""
        return {self.keyword: with_where({"attribute": self.name}, self.where)}

    def __str__(self) -> str:
        return f"cumulative({self.name}{suffix(self.where)})"


@dataclass(frozen=True)
class Ranges(Query):
    """How many people have a value from low to high, for each listed range, or for all of them (`ranges=None`)."""

    name: str
    ranges: tuple[tuple[Value, Value], ...] | None = None
    where: Where | None = None
    keyword: ClassVar[str] = "ranges"

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""
        _ordered(domain, self.name, self.keyword)
        _check_where(self.where, domain)
        if self.ranges is not None:
            if not self.ranges:
                raise PlanError("must list a range", key="ranges", given=[], fix="Write [[low, high], ..], or all.")
            self.positions(domain)

    def positions(self, domain: Domain) -> list[tuple[int, int]]:
        """Return the listed ranges as positions."""
        attribute = domain[self.name]
        found = []
        for low, high in self.ranges or ():
            try:
                ends = attribute.position(low), attribute.position(high)
            except PolicyError as refusal:
                raise as_plan_error(refusal, key="ranges") from None
            if ends[0] > ends[1]:
                raise PlanError("must not end before it starts", key="ranges", given=[low, high], fix="Swap the ends.")
            found.append(ends)
        return found

    def ends(self, domain: Domain) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first and the last position of each range."""
        if self.ranges is None:
            low, high = np.triu_indices(domain[self.name].size)
            return low.astype(np.int64), high.astype(np.int64)
        ends = np.array(self.positions(domain), dtype=np.int64)
        return ends[:, 0], ends[:, 1]

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at."""
        return _columns(self.where) | {self.name}

    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""
        values = domain[self.name].size
        return len(self.ranges) if self.ranges is not None else values * (values + 1) // 2

    def labels(self, domain: Domain) -> dict[str, list[Value]]:
        """Return the columns that say what each answer is about."""
        attribute = domain[self.name]
        listed = (
            self.ranges
            if self.ranges is not None
            else tuple(itertools.combinations_with_replacement(_values(attribute), 2))
        )
        return {f"{self.name} from": [low for low, _ in listed], f"{self.name} to": [high for _, high in listed]}

    def document(self) -> Any:
        """Return what a job file says for this query."""
        listed = "all" if self.ranges is None else [list(ends) for ends in self.ranges]
        return {self.keyword: with_where({"attribute": self.name, "ranges": listed}, self.where)}

    def __str__(self) -> str:
        many = "all" if self.ranges is None else str(len(self.ranges))
        return f"ranges({self.name}, {many}{suffix(self.where)})"


@dataclass(frozen=True)
class Total(Query):
    """The sum of a whole-number attribute over the people."""

    name: str
    where: Where | None = None
    keyword: ClassVar[str] = "total"

    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""
        attribute = _attribute(domain, self.name, self.keyword)
        if not isinstance(attribute, Integers):
            raise PlanError("must be declared as integers", key="total", given=self.name, fix="Count it instead.")
        _check_where(self.where, domain)

    def mentioned(self) -> frozenset[str]:
        """Return every attribute that the query looks at."""
        return _columns(self.where) | {self.name}

    def size(self, domain: Domain) -> int:
        """Return how many numbers the answer has."""
        return 1

    def labels(self, domain: Domain) -> dict[str, list[Value]]:
        """Return the columns that say what each answer is about."""
        return {"total of": [str(self)]}

    def document(self) -> Any:
        """Return what a job file says for this query."""
        return {self.keyword: with_where({"attribute": self.name}, self.where)}

    def __str__(self) -> str:
        return f"total({self.name}{suffix(self.where)})"


LinearQuery: TypeAlias = Count | Marginals | Cumulative | Ranges | Total


def count(where_picked: Where | str | None = None, *, where: Where | str | None = None) -> Count:
    """Ask how many people there are, or how many a predicate picks."""
    return Count(read_where(where_picked if where_picked is not None else where))


def histogram(*names: str, where: Where | str | None = None) -> Marginals:
    """Ask for the number of people in each cell of these attributes; for a set of items, for each item."""
    if not names:
        raise PlanError("must name an attribute", key="histogram", given=[], fix="For instance histogram('age').")
    _check_names(names, "histogram")
    return Marginals((tuple(names),), read_where(where))


def marginals(
    *names: str, ways: int = 2, sets: Iterable[Sequence[str]] | None = None, where: Where | str | None = None
) -> MarginalsOf | Marginals:
    """Ask for the histograms of all sets of `ways` attributes out of these (all by default), or of listed sets."""
    if sets is not None:
        listed = tuple(tuple(names) for names in sets)
        if not listed:
            raise PlanError("must list a set", key="marginals.sets", given=[], fix="Write [[a, b], [a, c]].")
        return Marginals(listed, read_where(where))
    if isinstance(ways, bool) or not isinstance(ways, int) or ways < 1:
        raise PlanError("must be a whole number from 1", key="marginals.ways", given=ways, fix="Use 2.")
    _check_names(names, "marginals")
    return MarginalsOf(tuple(names), int(ways), read_where(where))


@dataclass(frozen=True)
class MarginalsOf:
    """All marginals of some attributes; which ones is known once there is a domain."""

    names: tuple[str, ...]
    ways: int
    where: Where | None = None


def cumulative(name: str, *, where: Where | str | None = None) -> Cumulative:
    """Ask for each value how many people have at most that."""
    return Cumulative(name, read_where(where))


def ranges(name: str, ranges: Iterable[tuple[Value, Value]] | str, *, where: Where | str | None = None) -> Ranges:
    """Ask how many people have a value from low to high (both included), for listed ranges or for "all"."""
    if isinstance(ranges, str):
        if ranges != "all":
            raise PlanError("must be 'all' or a list", key="ranges", given=ranges, fix="Write [[low, high], ..].")
        return Ranges(name, None, read_where(where))
    listed = []
    for ends in ranges:
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise PlanError("must be [low, high]", key="ranges", given=ends, fix="Give both ends.")
        listed.append((ends[0], ends[1]))
    return Ranges(name, tuple(listed), read_where(where))


def total(name: str, *, where: Where | str | None = None) -> Total:
    """Ask for the sum of an attribute."""
    return Total(name, read_where(where))


def resolved(query: Any, domain: Domain) -> LinearQuery:
    """Return a query that is checked against a domain, or refuse."""
    if isinstance(query, MarginalsOf):
        names = query.names or tuple(name for name in domain if not isinstance(domain[name], Items))
        for name in names:
            _attribute(domain, name, "marginals")
        if query.ways > len(names):
            raise PlanError(
                f"must be at most {len(names)}, the number of attributes",
                key="marginals.ways",
                given=query.ways,
                fix="Lower it or name more attributes.",
            )
        _check_ways(names, query.ways, domain)
        query = Marginals(tuple(itertools.combinations(names, query.ways)), query.where, query.ways)
    if not isinstance(query, Count | Marginals | Cumulative | Ranges | Total):
        fix = "For instance tc.histogram('age')."
        raise PlanError(f"must be a query, not {kind_of(query)}", key="query", fix=fix)
    query.check(domain)
    return query


def _check_ways(names: tuple[str, ...], ways: int, domain: Domain) -> None:
    """Refuse more histograms, or more cells in all of them, than can be released, before any is listed."""
    many = math.comb(len(names), ways)
    if many > MOST_SETS:
        raise PlanError(
            f"must make at most {MOST_SETS:,} histograms",
            key="marginals.ways",
            given=ways,
            fix=f"{len(names)} attributes have {many:,} sets of {ways}: lower it, or name fewer attributes.",
        )
    # the sum over all sets of the product of their sizes, one attribute after the other
    cells = [1, *[0] * ways]
    for name in names:
        for taken in range(ways, 0, -1):
            cells[taken] += cells[taken - 1] * _cells(domain[name])
    if cells[ways] > LARGEST_RELEASE:
        raise PlanError(
            f"must have at most {LARGEST_RELEASE:,} answers in all",
            key="marginals.ways",
            given=ways,
            fix=f"All sets of {ways} have {cells[ways]:,} cells: lower it, or name fewer attributes.",
        )


def _check_names(names: tuple[Any, ...], keyword: str) -> None:
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


def as_plan_error(refusal: PolicyError, *, key: str = "") -> PlanError:
    """Return what a policy refuses as what a plan refuses."""
    said: dict[str, Any] = {"given": refusal.given} if refusal._has_given else {}
    return PlanError(refusal.rule, key=key or refusal.key, fix=refusal.fix, **said)


def read_where(given: Where | str | None) -> Where | None:
    """Return a predicate that was written as a text or built, or None."""
    return None if given is None else where(given)


def _attribute(domain: Domain, name: str, keyword: str) -> Any:
    try:
        return domain.attribute(name, key=keyword)
    except PolicyError as refusal:
        raise as_plan_error(refusal) from None


def _ordered(domain: Domain, name: str, keyword: str) -> None:
    attribute = _attribute(domain, name, keyword)
    axes = domain.axes_of(name)
    if len(axes) != 1 or not axes[0].ordered:
        ordered = "Declare ordered=True (in a file: `ordered: true`)."
        fix = ordered if isinstance(attribute, Categories) else "Use a histogram."
        raise PlanError("must have an order", key=keyword, given=name, fix=fix)


def _check_where(predicate: Where | None, domain: Domain) -> None:
    if predicate is None:
        return
    try:
        predicate.compile(domain)
    except PolicyError as refusal:
        raise as_plan_error(refusal) from None


def _columns(predicate: Where | None) -> frozenset[str]:
    return frozenset() if predicate is None else predicate.columns()


def _cells(attribute: Any) -> int:
    return int(attribute.cells)


def _values(attribute: Any) -> list[Value]:
    return [attribute.cell(place) for place in range(attribute.cells)]


def with_where(said: dict[str, Any], predicate: Where | None) -> dict[str, Any]:
    """Return what a job file says, with the predicate if there is one."""
    return said if predicate is None else {**said, "where": str(predicate)}


def suffix(predicate: Where | None) -> str:
    """Return the predicate as it stands at the end of a query's name."""
    return "" if predicate is None else f" where {predicate}"
