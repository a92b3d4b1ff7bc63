"""How attributes depend on each other: a joint distribution that an adversary is assumed to know.

A dependence is public: a table of probabilities, counts of a public or an earlier data set, or a Bayesian network. One
that was counted on the private rows has the mark `unprotected`, because no budget paid for it. It may be looked at but
not shown, and no release may use it. The code that counts the rows sets the mark.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats
from tacit.dependence.factor import MOST_CELLS, Factor, cell_numbers, eliminated, too_large
from tacit.dependence.given import (
    Given,
    as_distribution,
    cells_of,
    checked_names,
    checked_values,
    counted_rows,
    every_cell,
    read_network,
)
from tacit.dependence.unrolled import base_of, unrolled
from tacit.drawing import Held
from tacit.errors import PlanError, PolicyError, nearest, sealed, word_or_kind
from tacit.policy.domain import Domain

MOST_LISTED: Final = 30  # names in words
SMALL: Final = 2**13  # cells of a joint that is remembered
MOST_REMEMBERED: Final = 500  # some ten megabytes
UNPROTECTED: Final = "The dependence is unprotected: it was counted on the private rows. Show this to nobody."


@dataclass(frozen=True, eq=False, repr=False)
class Dependence(Held):
    """A joint distribution of attributes. Made by `from_table`, `from_counts` or `from_network`.

    >>> day = Dependence.from_table(
    ...     {("late", "late"): 0.3, ("late", "early"): 0.1, ("early", "early"): 0.6}, names=("arrival", "leaving")
    ... )
    >>> day.marginal("leaving").round(12).tolist()
    [0.3, 0.7]
    >>> day.values["leaving"]
    ('late', 'early')
    """

    names: tuple[str, ...]
    domains: tuple[tuple[Any, ...], ...]
    factors: tuple[Factor, ...] = field(repr=False)
    probabilities: tuple[Floats, ...] = field(repr=False)
    parents: tuple[tuple[int, ...], ...] | None
    unprotected: bool

    # ---- how it is made ---------------------------------------------------------------------------------------------

    @classmethod
    @sealed
    def from_table(cls, table: Any, names: Iterable[str], *, values: Any = None) -> Dependence:
        """Return the joint distribution with these probabilities: `{("late", "early"): 0.2, ..}`, or an array.

        Cells that are left out are impossible. `values` fixes the values of an attribute and their order; by default
        they come in the order of the table. An array has one axis for each name, and needs `values`.
        """
        order = checked_names(names)
        given = cells_of(table, order, values, what="probabilities")
        fix = "Write every possible cell, or divide by the sum."
        return _of_cells(order, given, as_distribution(given.numbers, key="table", fix=fix), unprotected=False)

    @classmethod
    @sealed
    def from_counts(
        cls,
        frame: Any,
        names: Iterable[str] | None = None,
        *,
        smoothing: float = 0.0,
        values: Any = None,
        unprotected: bool = False,
    ) -> Dependence:
        """Return the shares of a data set's rows, or of counts `{("late", "early"): 12, ..}`.

        `smoothing` is added to the count of every cell, possible or not (1/2 and 1 are usual), so that a cell without
        rows is not impossible.

        Pass `unprotected=True` if the rows are the private ones; otherwise the counts are assumed to be public. With
        this mark, everything printed of the result has a warning, and sessions and ledgers refuse limits that depend on
        it. A case file must mark its own rows.
        """
        order, given = counted_rows(frame, names, values)
        extra = _smoothing(smoothing)
        given = _smoothed(given, extra) if extra else given
        total = math.fsum(given.numbers)
        if not total > 0:
            raise PolicyError("must count at least one row", key="frame", given=total, fix="Give counts above zero.")
        return _of_cells(order, given, given.numbers / total, unprotected=bool(unprotected))

    @classmethod
    @sealed
    def from_network(cls, tables: Any, *, values: Any = None) -> Dependence:
        """Return the Bayesian network of these conditional tables.

        >>> day = Dependence.from_network({
        ...     "arrival": {"late": 0.5, "early": 0.5},
        ...     "leaving": {"given": ["arrival"], "table": {"late": {"late": 1}, "early": {"late": 0.5, "early": 0.5}}},
        ... })
        >>> day.marginal("arrival", "leaving").tolist()
        [[0.5, 0.0], [0.25, 0.25]]
        """
        network = read_network(tables, values)
        return cls(network.names, network.values, network.factors, network.probabilities, network.parents, False)

    @classmethod
    @sealed
    def over(
        cls,
        tables: Any,
        *,
        days: Any = None,
        people: Any = None,
        first: Any = None,
        shared: Any = (),
        values: Any = None,
    ) -> Dependence:
        """Return the network of the days of a person, of the people of a household or team, or of both.

        `tables` has the conditional tables of one day of one person, as for `from_network`. A parent `arrival@before`
        is the attribute on the day before; what looks back has another table for the `first` day. What is `shared` is
        the same for all people. Days are counted from 1, or labelled; the attributes are then named `arrival@3`,
        `arrival@ana` or `arrival@ana@3`, and what is shared `home` or `home@3`.

        >>> week = Dependence.over(
        ...     {"arrival": {"given": ["arrival@before"], "table": {
        ...         "late": {"late": 0.8, "early": 0.2}, "early": {"late": 0.1, "early": 0.9}}}},
        ...     first={"arrival": {"late": 0.5, "early": 0.5}},
        ...     days=7,
        ... )
        >>> week.names[:2], week.marginal("arrival@7").round(4).tolist()
        (('arrival@1', 'arrival@2'), [0.3529, 0.6471])
        """
        network = unrolled(tables, days=days, people=people, first=first, shared=shared)
        known = checked_values(values, list(tables))
        own = {name: known[base_of(name)] for name in network if base_of(name) in known}
        found = cls.from_network(network, values=own)
        eliminated(found.factors, [])  # refuses what could not be summed over all days and people
        return found

    @sealed
    def each(self, given: Any) -> Any:
        """Return the names of an attribute for every day and person, or a mapping by them of what is said of each.

        >>> team = Dependence.over({"arrival": {"late": 0.2, "early": 0.8}}, people=["ana", "bob"])
        >>> team.each("arrival"), team.each({"arrival": 0.5})
        (('arrival@ana', 'arrival@bob'), {'arrival@ana': 0.5, 'arrival@bob': 0.5})
        """
        if isinstance(given, Mapping):
            return {full: said for name, said in given.items() for full in self.each(name)}
        found = tuple(name for name in self.names if base_of(name) == given)
        if not found:
            bases = list(dict.fromkeys(map(base_of, self.names)))
            fix = nearest(given, bases, most=20) if isinstance(given, str) else "Name an attribute."
            raise PlanError("must be an attribute of the dependence", key="each", given=word_or_kind(given), fix=fix)
        return found

    # ---- its contents -----------------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> Mapping[str, tuple[Any, ...]]:
        """The values of each attribute, in the order of the axes of `marginal`."""
        return MappingProxyType(dict(zip(self.names, self.domains, strict=True)))

    @property
    def is_network(self) -> bool:
        """Whether it was given as conditional tables."""
        return self.parents is not None

    def place(self, name: Any, *, key: str = "attribute") -> int:
        """Return the position of an attribute, or refuse a name that there is not."""
        if not isinstance(name, str) or name not in self.values:
            fix = nearest(name, list(self.names), most=20) if isinstance(name, str) else "Name an attribute."
            raise PlanError("must be an attribute of the dependence", key=key, given=word_or_kind(name), fix=fix)
        return self.names.index(name)

    def code(self, name: str, value: Any, *, key: str) -> int:
        """Return the position of a value of an attribute, or refuse one that it does not have."""
        own = self.values[name]
        try:
            return own.index(value)
        except ValueError:
            known = ", ".join(map(repr, own[:10])) + (", .." if len(own) > 10 else "")
            fix = f"Its values: {known}."
            raise PlanError(f"must be a value of {name}", key=key, given=word_or_kind(value), fix=fix) from None

    def check_domain(self, domain: Domain) -> None:
        """Refuse a dependence over attributes or values that a policy's domain does not have."""
        for name, values in self.values.items():
            attribute = domain.attribute(name, key="dependence")
            for value in values:
                try:
                    attribute.position(value)
                except PolicyError as unknown:
                    raise unknown.located(key=f"dependence: {name}") from None

    @sealed
    def marginal(self, *names: str) -> Floats:
        """Return the distribution of some attributes, as an array with one axis for each, in the order asked for."""
        keep = self._places(names)
        if math.prod(len(self.domains[place]) for place in keep) > MOST_CELLS:
            raise too_large(math.prod(len(self.domains[place]) for place in keep))
        return np.exp(self.weighed({}, keep).dense())

    def weighed(self, weights: Mapping[int, Floats], keep: Sequence[int]) -> Factor:
        """Return the joint times weights (logarithms, by the value of one attribute each), summed to some attributes.

        This is P(these attributes, and what was seen) if each weight is the chance of what was seen of its attribute.
        """
        if not weights:
            return self._joint(tuple(sorted(set(keep)))).summed(list(keep))
        factors = [self.factors[place] for place in self._relevant({*weights, *keep})]
        for place, logs in weights.items():
            at = next(row for row, factor in enumerate(factors) if place in factor.variables)
            factors[at] = factors[at].weighed(place, logs)
        return eliminated(factors, keep)

    def _joint(self, places: tuple[int, ...]) -> Factor:
        """Return the joint of some attributes; small ones are remembered: limits ask again."""
        if places not in self._joints:
            found = eliminated([self.factors[place] for place in self._relevant(set(places))], places)
            if len(self._joints) >= MOST_REMEMBERED:
                self._joints.clear()
            if found.cells > SMALL:
                return found
            self._joints[places] = found
        return self._joints[places]

    @cached_property
    def _joints(self) -> dict[tuple[int, ...], Factor]:
        return {}

    def meets(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Return which attributes share a table, of those that some attributes depend on, and of these themselves.

        Attributes that no path connects are independent, also given all others that cut every path between them.
        """
        found: dict[str, set[str]] = {}
        for row in self._relevant({self.place(name) for name in names}):
            together = {self.names[place] for place in self.factors[row].variables}
            for name in together:
                found.setdefault(name, set()).update(together - {name})
        return found

    @sealed
    def total_variation(self, other: Dependence, *names: str) -> float:
        """Return the largest difference of the probability of any event, between this dependence and another.

        It compares the joint of all attributes, or of some. Both must have the same attributes; a value that one of the
        two lacks is impossible there.

        >>> fair = Dependence.from_table({"heads": 0.5, "tails": 0.5}, names=["coin"])
        >>> round(fair.total_variation(Dependence.from_table({"heads": 0.6, "tails": 0.4}, names=["coin"])), 12)
        0.1
        """
        if not isinstance(other, Dependence):
            raise PlanError("must be a dependence", key="other", given=word_or_kind(other), fix="Make one first.")
        order = names or self.names
        if not names and set(self.names) != set(other.names):
            odd = sorted(set(self.names) ^ set(other.names))[0]
            raise PlanError("must have the same attributes", key="other", given=odd, fix="Name those to compare.")
        here, there = self._cells(order), other._cells(order)
        apart = math.fsum(abs(chance - there.get(cell, 0.0)) for cell, chance in here.items())
        return (apart + math.fsum(chance for cell, chance in there.items() if cell not in here)) / 2

    @property
    def marks(self) -> tuple[str, ...]:
        """The warning above everything that is shown and follows from it; empty if it is public."""
        return (UNPROTECTED,) if self.unprotected else ()

    @cached_property
    def fingerprint(self) -> str:
        """A digest of names, values and probabilities as they were given; the same in every process."""
        labels = [[[type(one).__name__, str(one)] for one in each] for each in self.domains]
        content = json.dumps([self.names, labels, self.parents, self.unprotected])
        found = hashlib.sha256(content.encode())
        for factor, chances in zip(self.factors, self.probabilities, strict=True):
            order = np.argsort(cell_numbers(factor.codes, factor.sizes), kind="stable")
            found.update(factor.codes[:, order].astype("<u4").tobytes())
            found.update(chances[order].astype("<f8").tobytes())
        return found.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Say whether the same numbers were given; `total_variation` compares distributions given in other ways."""
        return isinstance(other, Dependence) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        held = "a network" if self.is_network else f"{self.factors[0].cells:,} possible cells"
        mark = ", unprotected" if self.unprotected else ""
        return f"Dependence({_few(self.names)}: {held}{mark})"

    def __str__(self) -> str:
        each = [f"{name} ({len(values)} values)" for name, values in self.values.items()]
        lines = [f"Dependence between {_few(each)}."]
        if self.parents is not None:
            arrows = [
                f"{name} given {', '.join(self.names[parent] for parent in above)}"
                for name, above in zip(self.names, self.parents, strict=True)
                if above
            ]
            lines.append(f"A network: {_few(arrows, '; ') if arrows else 'no attribute depends on another'}.")
        else:
            lines.append(f"A table of {self.factors[0].cells:,} possible cells.")
        if self.unprotected:
            lines.append("Unprotected: counted on the private rows. Look at it, do not show it.")
        return "\n".join(lines)

    def _places(self, names: Sequence[str]) -> list[int]:
        return [self.place(name) for name in checked_names(names)]

    def _relevant(self, places: set[int]) -> list[int]:
        """Return the tables that are needed: in a network, those of the attributes and of all their ancestors.

        The table of any other attribute sums to one for each case of its parents.
        """
        if self.parents is None:
            return [0]
        found: set[int] = set()
        waiting = list(places)
        while waiting:
            place = waiting.pop()
            if place not in found:
                found.add(place)
                waiting += self.parents[place]
        return sorted(found)

    def _cells(self, names: Sequence[str]) -> dict[tuple[Any, ...], float]:
        """Return the possible cells of some attributes by their values."""
        keep = self._places(names)
        found = self.weighed({}, keep)
        columns = [
            [self.domains[place][code] for code in row.tolist()] for place, row in zip(keep, found.codes, strict=True)
        ]
        return dict(zip(zip(*columns, strict=True), np.exp(found.logs).tolist(), strict=True))


def _few(words: Sequence[str], between: str = ", ") -> str:
    rest = f" and {len(words) - MOST_LISTED} more" if len(words) > MOST_LISTED else ""
    return between.join(words[:MOST_LISTED]) + rest


def _of_cells(names: tuple[str, ...], given: Given, chances: Floats, *, unprotected: bool) -> Dependence:
    possible = chances > 0
    sizes = tuple(len(each) for each in given.values)
    codes = given.codes[:, possible]
    above_zero = chances[possible]
    factor = Factor(tuple(range(len(names))), sizes, codes, np.log(above_zero))
    return Dependence(names, given.values, (factor,), (above_zero,), None, unprotected)


def _smoothing(given: Any) -> float:
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not 0 <= given < math.inf:
        fix = "Write 0.5, or leave it out to add nothing."
        raise PolicyError("must be a finite number, zero or more", key="smoothing", given=word_or_kind(given), fix=fix)
    return float(given)


def _smoothed(given: Given, extra: float) -> Given:
    sizes = tuple(len(each) for each in given.values)
    cells = math.prod(sizes)
    if cells > MOST_CELLS:
        rule = f"needs a table of {cells:,} cells, and {MOST_CELLS:,} is the most"
        raise PolicyError(rule, key="smoothing", given=extra, fix="Name fewer attributes, or give a network.")
    counts = np.full(cells, extra)
    np.add.at(counts, np.ravel_multi_index(tuple(given.codes.astype(np.int64)), sizes), given.numbers)
    return Given(given.values, every_cell(sizes), counts)
