"""Histograms by a part of a time or a date: arrivals by hour of the day, by weekday, by ward and month of the year.

Guarantee   None of its own: each cell is a predicate of `counts`, such as `arrived.hour == 3 and ward == 'a'`, and the
            largest step is that of the list (`plan/sensitivity/listed.py`). So whoever moves within a part moves no
            count, and whoever moves between two parts moves both.
Checked by  tests/property/test_time_parts.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import product
from operator import and_
from typing import Any, ClassVar, Final

import numpy as np

from tacit.arrays import Bools, Ints
from tacit.errors import PlanError, PolicyError
from tacit.plan.measure.measured import CellCounts, Tally
from tacit.plan.question import Linear, attribute_of, check_different, in_words, suffix
from tacit.plan.questions.listed_counts import MOST_LISTED, ListedCounts
from tacit.plan.sensitivity.responses import cell_labels
from tacit.policy.attributes import Attribute, Integers
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.where import ColumnTest, Where

MOST_COUNTED: Final = 5_000_000  # cells of whole times that rows are counted in, before parts are added up

MOST_DIRECTED: Final = 32  # cells, for each of which it is looked at which way it can move


def has_parts(names: Sequence[str], domain: Domain) -> bool:
    """Say whether one of these names is a part of a time, such as arrived.hour, and no attribute's own."""
    bases = [domain.get(name.rpartition(".")[0]) for name in names if name not in domain]
    return any(base is not None and base.measured == "times" for base in bases)


@dataclass(frozen=True)
class PartCounts(ListedCounts):
    """How many people are in each cell of some attributes, or parts of times, which `names` has."""

    names: tuple[str, ...] = ()
    keyword: ClassVar[str] = "histogram"

    @classmethod
    def of_cells(cls, names: tuple[str, ...], where: Where | None, of: str | None, domain: Domain) -> PartCounts:
        """Return the question in a domain that has the attributes, or refuse."""
        check_different(names, "histogram")
        cells = _cells_of(names, domain)
        for name in names:
            if not isinstance(cells[name].value(0), str | int | float | Decimal):
                rule = "must be a number, a text, a flag or a time beside parts of times"
                raise PlanError(rule, key="histogram", given=name, fix="Use `where` for it.")
        many = math.prod(cells[name].size for name in names)
        if many > MOST_LISTED:
            rule = f"must have at most {MOST_LISTED:,} cells where it has parts of times"
            raise PlanError(rule, key="histogram", given=many, fix="Name fewer attributes, or coarser ones.")
        tests = [[_test(name, domain) == value for value in cells[name].every_value()] for name in names]
        listed = [reduce(and_, each) for each in product(*tests)]
        return cls(tuple((str(one), one) for one in listed), where, names=names, of=of)

    def check(self, domain: Domain) -> None:
        Linear.check(self, domain)  # cells without any moment, such as a month that a year has not, stay empty

    def cells(self, domain: Domain) -> Domain:
        """Return what the cells are of, as a domain: numbers where an attribute has parts of times."""
        return _cells_of(self.names, domain)

    def labels(self, domain: Domain) -> dict[str, Sequence[Value]]:
        return {**cell_labels(self.names, self.cells(domain))}

    def options(self) -> dict[str, Any]:
        return {"attributes": list(self.names)}

    def words(self, domain: Domain) -> str:
        return f"{self.who.capitalize()} by {in_words(self.names)}"

    def tallies(self, policy: Policy) -> tuple[Tally, ...]:
        """Return counts of whole times where these add up; a person with several rows is picked cell by cell."""
        whole = self.whole(policy.domain)
        many = math.prod(policy.domain[name].size for name in whole)
        if many <= MOST_COUNTED and (policy.per_person == 1 or self.counts_rows):
            return (CellCounts(whole, self.where),)
        return super().tallies(policy)

    def answers(self, tallied: Sequence[Any], domain: Domain) -> Ints:
        whole = self.whole(domain)
        if len(tallied) != 1 or np.ndim(tallied[0]) != len(whole):
            return super().answers(tallied, domain)
        cells, at = self.cells(domain), np.zeros(np.shape(tallied[0]), dtype=np.int64)
        for name in self.names:
            base = name if name in domain else name.rpartition(".")[0]
            along = [-1 if one == base else 1 for one in whole]
            at = at * cells[name].size + _places(name, domain, cells[name]).reshape(along)
        found = np.zeros(self.size(domain), dtype=np.int64)
        np.add.at(found, at, tallied[0])
        return found

    def directions(self, policy: Policy) -> tuple[Bools, Bools] | None:
        return super().directions(policy) if len(self.predicates) <= MOST_DIRECTED else None

    def whole(self, domain: Domain) -> tuple[str, ...]:
        """Return the attributes that are looked at, each once."""
        return tuple(dict.fromkeys(name if name in domain else name.rpartition(".")[0] for name in self.names))

    def __str__(self) -> str:
        return f"histogram({', '.join(self.names)}{suffix(self.where, self.of)})"


def _cells_of(names: Sequence[str], domain: Domain) -> Domain:
    """Return the attributes of cells: of a part of a time, the numbers from the smallest to the largest one."""
    found: dict[str, Attribute] = {}
    for name in names:
        if has_parts([name], domain):
            numbers = _numbers(name, domain)
            found[name] = Integers(int(numbers.min()), int(numbers.max()))
        else:
            found[name] = attribute_of(domain, name, "histogram")
    return Domain(found)


def _numbers(name: str, domain: Domain) -> Ints:
    """Return the hour, weekday, month or year of each value of an attribute, or refuse what is no part of it."""
    base, _, part = name.rpartition(".")
    attribute: Any = domain[base]  # which has parts
    try:
        found: Ints = attribute.numbers(base, part)
    except PolicyError as refusal:
        raise refusal.retold(PlanError, key=f"histogram: {name}") from None
    return found


def _places(name: str, domain: Domain, cells: Attribute) -> Ints:
    """Return for each value of an attribute along which cell it lies."""
    if name in domain:
        return np.arange(cells.size)
    numbers = _numbers(name, domain)
    return numbers - int(numbers.min())


def _test(name: str, domain: Domain) -> ColumnTest:
    base, _, part = name.rpartition(".")
    return ColumnTest(name) if name in domain else ColumnTest(base, part)
