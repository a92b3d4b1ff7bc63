"""`count`, `histogram` and `marginals`: how many people there are, in all or in each cell of some attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from tacit.arrays import Bools, Floats, Ints
from tacit.errors import PlanError
from tacit.noise.law import Law
from tacit.plan.error_laws import LineErrors, NoisyCells, blocks_of
from tacit.plan.measure.measured import CellCounts, ItemHolders, LineEntries, Measured, Tally
from tacit.plan.question import (
    LARGEST_RELEASE,
    Linear,
    Query,
    attribute_of,
    cell_of,
    check_names,
    in_words,
    labels_of_cells,
    one_below_the_other,
    read_where,
    suffix,
)
from tacit.plan.question_keys import (
    ATTRIBUTES,
    IN_A_HISTOGRAM,
    OF,
    OF_EACH,
    WHERE,
    Question,
    about,
    first_attribute,
    first_predicate,
)
from tacit.plan.questions.time_parts import PartCounts, has_parts
from tacit.plan.sensitivity.moves import directions, exact_groups, finest_groups
from tacit.plan.sensitivity.responses import CellTables, Response, cell_labels, everybody
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.keys import POSITIVE, TEXT, TEXTS, Key
from tacit.policy.policy import Policy
from tacit.policy.where import Where


@dataclass(frozen=True)
class Count(Linear):
    """How many people there are, or how many a predicate picks."""

    where: Where | None = None
    keyword: ClassVar[str] = "count"
    readings: ClassVar[tuple[str, ...]] = ("people", "rows")

    def size(self, domain: Domain) -> int:
        return 1

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        everyone = "everyone" if self.of != "rows" else "all rows"
        return {"count of": [str(self.where) if self.where is not None else everyone]}

    def words(self, domain: Domain) -> str:
        return f"Number of {self.who}"

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        return (CellCounts((), self.where),)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        return np.asarray(tallied[0], dtype=np.int64).reshape(1)

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        return np.ones(1, dtype=np.int64)

    def response(self, domain: Domain) -> Response:
        return everybody().response(domain)

    def __str__(self) -> str:
        said = (None if self.where is None else str(self.where), None if self.of is None else f"of {self.of}")
        return f"count({', '.join(filter(None, said))})"


def count(where_picked: Where | str | None = None, *, where: Where | str | None = None, of: str | None = None) -> Count:
    """Ask how many people there are, or how many a predicate picks; with `of="rows"`, how many rows."""
    return Count(read_where(where_picked if where_picked is not None else where), of=of)


COUNT: Final = Question(
    "count",
    keys=(WHERE, OF),
    ask=count,
    example=lambda policy: count(first_predicate(policy)),
    shown=(
        ('`count`, or `{count: "age < 18"}`', "how many people"),
        ("`{count: {of: rows}}`", "how many rows, where people own several (every question takes `of`)"),
    ),
    by_group=IN_A_HISTOGRAM,
)


MOST_SETS: Final = 20_000  # histograms of one release
WAYS: Final = 2  # attributes of each histogram, if nobody says how many


@dataclass(frozen=True)
class Marginals(CellTables, Linear, LineEntries):
    """One histogram for each set of attributes; an ordinary histogram is one set.

    The histogram of a set of items counts for each item the people who have it. Running counts follow from the
    histogram of one ordered attribute, which alone is a base of a line.
    """

    ways: int | None = None
    keyword: ClassVar[str] = "marginals"
    readings: ClassVar[tuple[str, ...]] = ("people", "rows")
    entry_words: ClassVar[tuple[str, str]] = ("the count of a cell", "counts of cells")

    def resolved(self, domain: Domain) -> Query:
        if len(self.sets) == 1 and self.each is None and has_parts(self.sets[0], domain):
            found = PartCounts.of_cells(self.sets[0], self.where, self.of, domain)
            found.check(domain)
            return found
        return super().resolved(domain)

    def check(self, domain: Domain) -> None:
        for names in self.sets:
            for name in names:
                attribute = attribute_of(domain, name, "histogram" if len(self.sets) == 1 else self.keyword)
                if attribute.is_set and len(names) > 1:
                    raise PlanError(
                        "must be asked alone", key="histogram", given=name, fix="Use `where` for the other attributes."
                    )
            if not names or len(set(names)) < len(names):
                raise PlanError(
                    "must name different attributes", key="histogram", given=list(names), fix="Remove the second one."
                )
        super().check(domain)

    def mentioned(self) -> frozenset[str]:
        return super().mentioned().union(*self.sets)

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        """Return the columns; None where a histogram does not mention an attribute.

        One histogram has its columns in the order of its attributes, several in that of the domain.
        """
        if self.each is not None:
            return {self.each.name: self.each.cells(domain[self.each.name])}
        if len(self.sets) == 1:
            return {**cell_labels(self.sets[0], domain)}
        values = {name: domain[name].every_cell() for names in self.sets for name in names}
        own = [dict(zip(names, labels_of_cells([values[name] for name in names]), strict=True)) for names in self.sets]
        sizes = self.sizes(domain)
        return {
            name: one_below_the_other([part.get(name, cells) for part, cells in zip(own, sizes, strict=True)])
            for name in domain
            if name in values
        }

    @property
    def word(self) -> str:
        return "histogram" if len(self.sets) == 1 else self.keyword

    def options(self) -> dict[str, Any]:
        if len(self.sets) == 1:
            return {"attributes": list(self.sets[0])}
        if self.ways is not None:
            return {"attributes": list(dict.fromkeys(itertools.chain(*self.sets))), "ways": self.ways}
        return {"sets": [list(names) for names in self.sets]}

    def words(self, domain: Domain) -> str:
        if len(self.sets) == 1:
            (names,) = self.sets
            if self.is_items(domain):
                return f"{self.who.capitalize()} by item of {names[0]}"
            return f"{self.who.capitalize()} by {in_words(names)}{self.cut_words(domain)}"
        lengths = tuple({len(names) for names in self.sets})
        kinds: dict[tuple[int, ...], str] = {(1,): "single attributes", (2,): "pairs of attributes"}
        return f"{self.who.capitalize()} by {kinds.get(lengths, 'sets of attributes')}"

    def plan(self, policy: Policy, epsilon: Fraction) -> Any:
        if len(self.sets) == 1:
            return super().plan(policy, epsilon)
        from tacit.plan.plans.weighted_tables import plan_tables

        return plan_tables(self, policy, epsilon)

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        if self.is_items(policy.domain):
            return (ItemHolders(self.sets[0][0], self.where),)
        return tuple(CellCounts(names, self.where) for names in self.sets)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        return np.concatenate([np.asarray(table, dtype=np.int64).reshape(-1) for table in tallied])

    def added_by(self, record: Mapping[str, Any], domain: Domain) -> Ints:
        out = np.zeros(self.size(domain), dtype=np.int64)
        start = 0
        for names, cells in zip(self.sets, self.sizes(domain), strict=True):
            attribute = domain[names[0]]
            if attribute.is_set:
                out[[start + place for place in attribute.positions(record[names[0]])]] = 1
            else:
                out[start + cell_of(record, names, domain)] = 1
            start += cells
        return out

    def exact_groups(self, policy: Policy) -> list[Ints] | None:
        """Return the groups of cells whose totals are exact; none where a person may count in several cells."""
        return exact_groups(self, policy) if policy.per_person == 1 or self.counts_rows else None

    def finest_groups(self, policy: Policy) -> list[Ints] | None:
        return finest_groups(self, policy) if policy.per_person == 1 or self.counts_rows else None

    def directions(self, policy: Policy) -> tuple[Bools, Bools] | None:
        return directions(self, policy)

    def tables(self, domain: Domain) -> tuple[tuple[str, ...], ...]:
        """Return the attributes of each table; items have none, since a person may have several."""
        return () if self.is_items(domain) else self.sets

    def running(self, entries: Floats) -> Floats:
        return np.cumsum(entries)

    def line_errors(
        self, noise: Law, groups: Sequence[Ints] | None, fixed: Bools | None, domain: Domain
    ) -> LineErrors | None:
        if noise.is_joint:
            return None  # dependent entries: sums are not predicted, so this strategy is not taken
        return NoisyCells(noise, self.size(domain), None if groups is None else blocks_of(groups[0]))

    def fitting(self, base: Measured) -> str:
        return "Tables were made to agree with each other." if len(self.sets) > 1 else ""


@dataclass(frozen=True)
class MarginalsOf(Query):
    """All marginals of some attributes; which ones is known once there is a domain."""

    names: tuple[str, ...]
    ways: int
    where: Where | None = None
    keyword: ClassVar[str] = "marginals"
    readings: ClassVar[tuple[str, ...]] = ("people", "rows")

    def resolved(self, domain: Domain) -> Marginals:
        names = self.names or tuple(name for name in domain if not domain[name].is_set)
        for name in names:
            attribute_of(domain, name, self.keyword)
        if self.ways > len(names):
            rule = f"must be at most {len(names)}, the number of attributes"
            raise PlanError(rule, key="marginals.ways", given=self.ways, fix="Lower it or name more attributes.")
        _check_ways(names, self.ways, domain)
        found = Marginals(tuple(itertools.combinations(names, self.ways)), self.where, self.ways, of=self.of)
        found.check(domain)
        return found

    def check(self, domain: Domain) -> None:
        self.resolved(domain)

    def mentioned(self) -> frozenset[str]:
        """Return the attributes that are named; without any, all of a domain's are meant."""
        return super().mentioned() | set(self.names)

    def options(self) -> dict[str, Any]:
        named = {"attributes": list(self.names)} if self.names else {}
        return {**named, "ways": self.ways}

    def words(self, domain: Domain) -> str:
        return self.resolved(domain).words(domain)

    def plan(self, policy: Policy, epsilon: Any) -> Any:
        return self.resolved(policy.domain).plan(policy, epsilon)

    @property
    def counted(self) -> Linear:
        """Not known before there is a domain."""
        raise TypeError(self)

    def __str__(self) -> str:
        ways = [f"ways={self.ways}"] if self.ways != WAYS else []
        inside = f"{', '.join([*self.names, *ways])}{suffix(self.where, self.of)}"
        return f"marginals({inside.strip()})"


def histogram(
    *names: str,
    where: Where | str | None = None,
    of: str | None = None,
    each: str | None = None,
    at_most: Any = None,
    step: Any = None,
) -> Marginals:
    """Ask for the number of people in each cell of these attributes; for a set of items, for each item.

    Parts of times and dates stand beside attributes: `histogram("arrived.hour", "ward")`.

    With `each`, for how many people have each value of one number of each person, as in `mean`.
    """
    if each is not None:
        options = {"where": where, "of": of, "each": each, "at_most": at_most, "step": step}
        fields = about("histogram", *(names[:1] or [None]), **options, also=names[1:])
        return Marginals(((fields["name"],),), each=fields["each"])
    if not names:
        raise PlanError("must name an attribute", key="histogram", given=[], fix="For instance histogram('age').")
    check_names(names, "histogram")
    return Marginals((tuple(names),), read_where(where), of=of)


def marginals(
    *names: str,
    ways: int = WAYS,
    sets: Iterable[Sequence[str]] | None = None,
    where: Where | str | None = None,
    of: str | None = None,
) -> MarginalsOf | Marginals:
    """Ask for the histograms of all sets of `ways` attributes out of these (all by default), or of listed sets."""
    if sets is not None:
        listed = tuple(tuple(names) for names in sets)
        if not listed:
            raise PlanError("must list a set", key="marginals.sets", given=[], fix="Write [[a, b], [a, c]].")
        return Marginals(listed, read_where(where), of=of)
    if isinstance(ways, bool) or not isinstance(ways, int) or ways < 1:
        raise PlanError("must be a whole number from 1", key="marginals.ways", given=ways, fix="Use 2.")
    check_names(names, "marginals")
    return MarginalsOf(tuple(names), int(ways), read_where(where), of=of)


def _check_ways(names: tuple[str, ...], ways: int, domain: Domain) -> None:
    """Refuse more histograms, or more cells in all of them, than can be released, before any is listed."""
    many = math.comb(len(names), ways)
    if many > MOST_SETS:
        fix = f"{len(names)} attributes have {many:,} sets of {ways}: lower it, or name fewer attributes."
        raise PlanError(f"must make at most {MOST_SETS:,} histograms", key="marginals.ways", given=ways, fix=fix)
    # the sum over all sets of the product of their sizes, one attribute after the other
    cells = [1, *[0] * ways]
    for name in names:
        for taken in range(ways, 0, -1):
            cells[taken] += cells[taken - 1] * domain[name].cells
    if cells[ways] > LARGEST_RELEASE:
        rule = f"must have at most {LARGEST_RELEASE:,} answers in all"
        fix = f"All sets of {ways} have {cells[ways]:,} cells: lower it, or name fewer attributes."
        raise PlanError(rule, key="marginals.ways", given=ways, fix=fix)


HISTOGRAM: Final = Question(
    "histogram",
    keys=(replace(ATTRIBUTES, required=False), *OF_EACH, WHERE, OF),
    some=("attributes", "each"),
    ask=histogram,
    example=lambda policy: histogram(first_attribute(policy, "histogram", lambda _: True)),
    shown=(
        ("`{histogram: [ward, disease]}`", "people in each cell; of a set of items, people with each item"),
        ("`{histogram: arrived.hour}`", "the same by a part of a time: `hour`, `weekday`, `month` or `year`"),
    ),
    by_group=IN_A_HISTOGRAM,
)
MARGINALS: Final = Question(
    "marginals",
    keys=(
        Key("attributes", TEXTS),
        Key("ways", POSITIVE),
        Key("sets", {"type": "array", "items": {"type": "array", "items": TEXT, "minItems": 1}}),
        WHERE,
        OF,
    ),
    ask=marginals,
    example=lambda policy: marginals(*(name for name in policy.domain if not policy.domain[name].is_set), ways=1),
    shown=(
        ("`{marginals: {attributes: [a, b, c], ways: 2}}`", "the histograms of all pairs"),
        ("`{marginals: {sets: [[a], [a, b]]}}`", "the listed histograms"),
    ),
)
