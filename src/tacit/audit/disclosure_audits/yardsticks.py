"""Syntactic yardsticks: how similar the rows of a table are, group by group.

Rows with the same values of the public attributes are a group. P is the distribution of the sensitive attribute in a
group, Q that in the whole table.

    k-anonymity      the size of the smallest group
    l-diversity      distinct: the fewest different values in a group; entropy: exp(entropy of P), the least; recursive
                     (c, l): every group's most frequent value is less than c times all but its l - 1 most frequent
                     ones together, so c must exceed the number given here
    t-closeness      the largest distance of P from Q: half the sum of differences (equal distance), or the mean
                     difference of running sums (ordered distance: neighbouring values are near)
    beta-likeness    the largest (p - q)/q
    delta-growth     the largest p - q
    rho1-rho2        of values with q <= rho1 the largest p: rho2 must be at least that

Of several sensitive attributes each is measured by itself, as publishers do, and all of them as one, whose values are
the combinations: a group may have many values of each of two attributes, and few combinations. Combinations have no
order, so they have no ordered distance.

A taxonomy file says which general value each value of an attribute becomes:

    job:
      Professional: [Engineer, Lawyer]
      Artist: {Stage: [Dancer, Singer], Studio: [Painter]}
    age:
      "[30-35)": [30..34]

Every attribute is a tree: names of classes, then what is in them, down to lists of values; `30..34` are whole numbers.
At level 1 a value becomes the class at the top of its branch, at level 2 the class below that, and so on; a branch that
is shorter ends in the value itself. At level 0 all values are one.

Guarantee   None. These are descriptions of a table, not promises about what somebody learns: a table that meets one of
            them may tell everything to whoever knows a little more (document 004, section 2.2.1).
Assumes     Groups are found by values as they are, or as a taxonomy makes them more general.
Why         The definitions, for all groups at once. A table without rows has no groups and is refused; with one
            sensitive value all distances are 0, entropy and distinct diversity 1, and no c is large enough. Rows that
            miss a cell of a named column are left out, as in published tables. Of a published table its published
            records are measured: a line stands for as many as its count says. Masked counts are no records.
Reference   Document 004, section 2.2.1: Sweeney; Machanavajjhala et al.; Li et al.; Cao and Karras; Evfimievski et al.
Checked by  tests/unit/audit/test_yardsticks.py.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit.arrays import Floats, Ints
from tacit.audit.disclosure_audits.confidences import (
    ConfidenceColumns,
    Confidences,
    Names,
    as_names,
    check_apart,
    in_words,
)
from tacit.drawing import Held
from tacit.errors import DataRefused, PlanError, PolicyError, kind_of, nearest, sealed, word_or_kind
from tacit.policy.yaml_entries import YamlEntry, YamlSource
from tacit.publish.table import COUNT, PublishedTable
from tacit.release.curator import PRIVATE
from tacit.release.curator.private_counts import PrivateCounts, counts_of_columns

OF_PUBLISHED: Final = (
    "Measured on what a published table shows, so this says no more than the table. It is about published records, "
    "which differ from the true ones."
)


class _Measures(Held, ABC):
    """The worst of each yardstick over the lines of `frame`; `private` is empty where they are of a published table."""

    private: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'for the curator only' if self.private else 'of a published table'})"

    @property
    @abstractmethod
    def frame(self) -> pd.DataFrame:
        """A line for each group with its size and every yardstick."""

    @property
    def k(self) -> int:
        """The size of the smallest group."""
        return int(self.frame["size"].min())

    @property
    def distinct(self) -> int:
        """The fewest different values in a group."""
        return int(self.frame["distinct"].min())

    @property
    def entropy(self) -> float:
        """The l of entropy l-diversity."""
        return float(self.frame["entropy"].min())

    @property
    def recursive(self) -> float | None:
        """What c must exceed for recursive (c, l)-diversity; None if no c is large enough."""
        worst = float(self.frame["recursive"].max())
        return None if np.isinf(worst) else worst

    @property
    def t_equal(self) -> float:
        """The t of t-closeness, where all values are equally far apart."""
        return float(self.frame["t_equal"].max())

    @property
    def t_ordered(self) -> float | None:
        """The t of t-closeness, where values have an order; None where they have none."""
        return float(self.frame["t_ordered"].max()) if "t_ordered" in self.frame else None

    @property
    def beta(self) -> float:
        """The beta of beta-likeness."""
        return float(self.frame["beta"].max())

    @property
    def growth(self) -> float:
        """The delta of delta-growth."""
        return float(self.frame["growth"].max())

    @property
    def rho2(self) -> float:
        """The largest share that a value as rare as rho1 has in a group; 0 if no value is as rare."""
        return float(self.frame["rho2"].max())


@dataclass(frozen=True, eq=False, repr=False)
class Yardsticks(_Measures):
    """The yardsticks of a table. `l` is the order of recursive diversity, `rho1` the share up to which a value is rare.

    `ordered` says whether sensitive values have an order. `left_out` rows miss a cell of a named column.
    """

    groups: Confidences
    l: int
    rho1: float
    ordered: bool = True
    left_out: int = 0
    private: str = field(default=PRIVATE, kw_only=True)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A line for each group: its size and every yardstick. `recursive` is infinite where no c is large enough."""
        groups = self.groups
        p, q = groups.theta / groups.phi[:, None], groups.prior
        logs = np.log(p, out=np.zeros_like(p), where=p > 0)
        gain = np.where(p > q, p - q, 0.0)
        rare = np.where(q <= self.rho1, p, 0.0)
        columns: dict[str, Any] = {
            "group": groups.labels(),
            "size": groups.phi,
            "distinct": (p > 0).sum(axis=1),
            "entropy": np.exp(-(p * logs).sum(axis=1)),
            "recursive": _recursive(groups.theta, self.l),
            "t_equal": np.abs(p - q).sum(axis=1) / 2,
            "t_ordered": np.abs(np.cumsum(p - q, axis=1)[:, :-1]).sum(axis=1) / max(len(q) - 1, 1),
            "beta": np.divide(gain, q, out=np.zeros_like(gain), where=q > 0).max(axis=1),
            "growth": gain.max(axis=1),
            "rho2": rare.max(axis=1),
        }
        return pd.DataFrame({name: column for name, column in columns.items() if self.ordered or name != "t_ordered"})

    def document(self) -> dict[str, Any]:
        """Return the yardsticks as plain data."""
        return {
            "private": self.private,
            "sensitive": self.groups.columns.sensitive,
            "public": list(self.groups.columns.known),
            "groups": len(self.groups.places),
            "rows_left_out": self.left_out,
            "k_anonymity": self.k,
            "l_diversity": {
                "distinct": self.distinct,
                "entropy": self.entropy,
                "recursive": {"l": self.l, "c_above": self.recursive},
            },
            "t_closeness": {"equal": self.t_equal, "ordered": self.t_ordered},
            "beta_likeness": self.beta,
            "delta_growth": self.growth,
            "rho1_rho2": {"rho1": self.rho1, "rho2": self.rho2},
        }

    def words(self) -> list[str]:
        """Return the yardsticks as lines of a report."""
        c = "no c" if self.recursive is None else f"every c above {self.recursive:.4g}"
        ordered = "" if self.t_ordered is None else f", {self.t_ordered:.4g} (ordered distance)"
        return [
            f"{len(self.groups.places):,} groups by {', '.join(self.groups.columns.known)}; sensitive: "
            f"{self.groups.columns.sensitive}",
            f"  k-anonymity      k = {self.k}",
            f"  l-diversity      distinct l = {self.distinct}; entropy l = {self.entropy:.4g}; "
            f"recursive (c, {self.l}) for {c}",
            f"  t-closeness      t = {self.t_equal:.4g} (equal distance){ordered}",
            f"  beta-likeness    beta = {self.beta:.4g}",
            f"  delta-growth     delta = {self.growth:.4g}",
            f"  rho1-rho2        values of a share up to {self.rho1:g} reach {self.rho2:.4g}",
        ]

    def __str__(self) -> str:
        left_out = [in_words(self.left_out)] if self.left_out else []
        return "\n".join([self.private or OF_PUBLISHED, "", *self.words(), *left_out])


@dataclass(frozen=True, eq=False, repr=False)
class SeveralYardsticks(_Measures):
    """The yardsticks of a table with several sensitive attributes: `each` by itself, and all of them `together`.

    `together` takes the combinations of their values for the values of one attribute. Every yardstick here is the worst
    of `each` and `together`: neither of the two is always the worse one.
    """

    each: Mapping[str, Yardsticks]
    together: Yardsticks
    private: str = field(default=PRIVATE, kw_only=True)

    @property
    def left_out(self) -> int:
        """How many rows miss a cell of a named column."""
        return self.together.left_out

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The lines of each attribute, one below the other; `sensitive` says which it is."""
        parts = [one.frame.assign(sensitive=name) for name, one in self.each.items()]
        parts.append(self.together.frame.assign(sensitive=self.together.groups.columns.sensitive))
        return pd.concat(parts, ignore_index=True)

    def document(self) -> dict[str, Any]:
        """Return the yardsticks as plain data."""
        each = {name: one.document() for name, one in self.each.items()}
        return {"private": self.private, "each": each, "together": self.together.document()}

    def __str__(self) -> str:
        lines = [self.private or OF_PUBLISHED]
        for one in (*self.each.values(), self.together):
            lines += ["", *one.words()]
        return "\n".join([*lines, *([in_words(self.left_out)] if self.left_out else [])])


@sealed
def syntactic(
    frame: Any,
    *,
    public: str | Sequence[str],
    sensitive: str | Sequence[str],
    taxonomy: str | Path | None = None,
    levels: Mapping[str, int] | None = None,
    order: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    l: int = 2,
    rho1: float = 0.1,
    weight: str | None = None,
) -> Yardsticks | SeveralYardsticks:
    """Measure a table by k-anonymity, l-diversity, t-closeness, beta-likeness, delta-growth and rho1-rho2 privacy.

    Args:
        frame: any table that a session takes; each row is a person, unless there is a `weight`. Rows that miss a cell
            of a named column are left out. Or a table that `tc.publish` made, which is read by its counts.
        public: the attributes that make the groups.
        sensitive: the attribute whose distribution is looked at; of several, each by itself and all of them together.
        taxonomy: a YAML file of classes (`taxonomies.py`), to make public attributes more general first.
        levels: how general: attribute -> level, 1 for the classes at the top, 0 for one class. Every other public
            attribute that the taxonomy has is taken at level 1.
        order: the order of the sensitive values for the ordered distance; without it that of numbers or of letters. Of
            several attributes, attribute -> order.
        l: the order of recursive diversity.
        rho1: the share up to which a value counts as rare.
        weight: the column that says how many people each row stands for, such as `count` in the file of a published
            table. A frame that has a column of this name is refused without it, unless that is public or sensitive.
    """
    known, targets = as_names(public, "public"), as_names(sensitive, "sensitive")
    check_apart(known, targets)
    if isinstance(l, bool) or not isinstance(l, int) or l < 1:
        raise PlanError("must be a whole number from 1", key="l", given=word_or_kind(l), fix="Use 2.")
    if not isinstance(rho1, int | float) or isinstance(rho1, bool) or not 0 < rho1 < 1:
        raise PlanError("must lie between 0 and 1", key="rho1", given=word_or_kind(rho1), fix="For instance 0.1.")
    wanted, orders = _levels(known, taxonomy, levels), _orders(targets, order)
    full = (*known, *targets)
    private = PRIVATE
    if isinstance(frame, PublishedTable):
        private, (frame, weight) = "", _by_counts(frame, weight)
    counts = counts_of_columns(frame, [full], weight)
    if not counts.people:
        raise DataRefused(
            "the table must have rows with a value in every column that is named", fix="Give a table with people in it."
        )
    table, values = counts.tables[full], dict(counts.values)
    for name, (tree, level) in wanted.items():
        classes = tree.general(name, values[name], level)
        values[name] = sorted(set(classes))
        table = _placed(table, full.index(name), [values[name].index(one) for one in classes], len(values[name]))
    for name, listed in orders.items():
        places = _places(name, values[name], listed)
        table, values[name] = _placed(table, full.index(name), places, len(listed)), listed
    counted = PrivateCounts(values, counts.people, {full: table}, counts.left_out)
    about: dict[str, Any] = {"l": l, "rho1": float(rho1), "left_out": counts.left_out, "private": private}
    each = {name: Yardsticks(_alone(counted, known, name), **about) for name in targets}
    if len(each) == 1:
        return each[targets[0]]
    together = Yardsticks(_together(counted, known, targets), **about, ordered=False)
    return SeveralYardsticks(each, together, private=private)


def _by_counts(table: PublishedTable, weight: Any) -> tuple[Any, str]:
    """Return the frame of a published table and the column that weighs its lines, or refuse masked counts."""
    if table.method.unit != 1:
        raise PlanError(
            "must have counts of records: masked counts are in parts of a person, and may be negative, so that they "
            "say nothing about how similar the people of a group are",
            key="frame",
            given=table.method.name,
            fix="The sizes of its groups are public (table.sizes). Measure the rows that it was made of.",
        )
    if weight not in (None, COUNT):
        rule = f"must be {COUNT!r} for a published table"
        raise PlanError(rule, key="weight", given=word_or_kind(weight), fix="Leave it out.")
    return table.frame, COUNT


def _levels(known: Sequence[str], path: Any, levels: Any) -> dict[str, tuple[Taxonomy, int]]:
    """Return the taxonomy and the level of each attribute that is made more general."""
    if path is None:
        if levels:
            raise PlanError("needs a taxonomy", key="levels", fix="Name its file as taxonomy.")
        return {}
    tree = Taxonomy.load(path)
    given = {name: 1 for name in known if name in tree.branches} | dict(levels or {})
    if not given:
        fix = nearest(known[0], list(tree.branches), most=10)
        raise PlanError(
            "must have classes for at least one public attribute", key="taxonomy", given=Path(path).name, fix=fix
        )
    for name, level in given.items():
        if name not in known:
            raise PlanError("must be one of the public attributes", key="levels", given=name, fix="Name it as public.")
        if isinstance(level, bool) or not isinstance(level, int) or level < 0:
            raise PlanError(
                "must be a whole number from 0", key=f"levels.{name}", given=word_or_kind(level), fix="Use 1."
            )
    return {name: (tree, level) for name, level in given.items()}


def _orders(targets: Names, given: Any) -> dict[str, list[Any]]:
    """Return the order of each sensitive attribute that has one, or refuse."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if len(targets) > 1 or isinstance(given, str) or not isinstance(given, Sequence):
            rule = "must say which attribute it is of" if len(targets) > 1 else "must be a list of values"
            fix = f"Write order={{{targets[0]!r}: [..]}}."
            raise PlanError(rule, key="order", given=kind_of(given), fix=fix)
        given = {targets[0]: given}
    for name, listed in given.items():
        if name not in targets:
            fix = nearest(str(word_or_kind(name)), targets)
            raise PlanError("must be about sensitive attributes", key="order", given=word_or_kind(name), fix=fix)
        if isinstance(listed, str) or not isinstance(listed, Sequence):
            raise PlanError("must be lists of values", key="order", given=kind_of(listed), fix="Write [..].")
        if len(set(map(str, listed))) < len(listed):
            raise PlanError("must list each value once", key="order", fix="Leave out what is there twice.")
    return {name: list(listed) for name, listed in given.items()}


def _places(name: str, found: Sequence[Any], listed: list[Any]) -> list[int]:
    """Return the place of each value in an order; values that do not occur have a place as well."""
    if any(value not in listed for value in found):
        raise DataRefused("has values that the order misses", column=name, fix="List every value.")
    return [listed.index(value) for value in found]


def _placed(table: Ints, axis: int, places: Sequence[int], size: int) -> Ints:
    """Add up the cells along an axis at new places; `size` is how many places there are."""
    moved = np.moveaxis(table, axis, 0)
    added = np.zeros((size, *moved.shape[1:]), dtype=np.int64)
    np.add.at(added, list(places), moved)
    return np.moveaxis(added, 0, axis)


def _alone(counts: PrivateCounts, known: Names, name: str) -> Confidences:
    """Return the groups with one of the sensitive attributes."""
    ((full, table),) = counts.tables.items()
    columns = ConfidenceColumns(known, name)
    others = tuple(at for at, one in enumerate(full) if one not in columns.table)
    return Confidences.of(columns, PrivateCounts(counts.values, counts.people, {columns.table: table.sum(axis=others)}))


def _together(counts: PrivateCounts, known: Names, targets: Names) -> Confidences:
    """Return the groups with all sensitive attributes as one."""
    ((_, table),) = counts.tables.items()
    columns = ConfidenceColumns(known, " and ".join(targets))
    flat = table.reshape(*table.shape[: len(known)], -1)
    values = {**counts.values, columns.sensitive: list(product(*(counts.values[name] for name in targets)))}
    return Confidences.of(columns, PrivateCounts(values, counts.people, {columns.table: flat}))


def _recursive(theta: Ints, order: int) -> Floats:
    """Return the largest count over the sum of all but the `order` - 1 largest ones; infinite where that is 0."""
    falling = -np.sort(-theta, axis=1)
    rest = falling[:, order - 1 :].sum(axis=1)
    return np.asarray(np.divide(falling[:, 0], rest, out=np.full(len(theta), np.inf), where=rest > 0))


ANYTHING: Final = "*"
MOST_NUMBERS: Final = 100_000
_NUMBERS: Final = re.compile(r"(-?\d{1,15})\.\.(-?\d{1,15})")


@dataclass(frozen=True)
class Taxonomy:
    """The classes of each value of each attribute, from the top of its branch down."""

    branches: Mapping[str, Mapping[str, tuple[str, ...]]]

    @classmethod
    def load(cls, path: str | Path) -> Taxonomy:
        """Read a taxonomy from a YAML file, or refuse with the line that is wrong."""
        if not isinstance(path, str | Path):
            raise PlanError(f"must be the path of a file, not {kind_of(path)}", key="taxonomy", fix="Name a YAML file.")
        source = YamlSource.open(
            path,
            file=Path(path).name,
            whole="the taxonomy",
            refusal=PolicyError,
            kind="a taxonomy",
            if_table="Write it as YAML: attribute, classes, lists of values.",
            if_missing="Check the path.",
        )
        return cls({name: _branches(tree) for name, tree in source.read().mapping().items()})

    def general(self, name: str, values: Sequence[Any], level: int) -> list[str]:
        """Return what each of these values becomes; refuse values that are in no class."""
        if name not in self.branches:
            fix = nearest(name, list(self.branches))
            raise PlanError("must be an attribute of the taxonomy", key="levels", given=name, fix=fix)
        branches = self.branches[name]
        texts = [text_of(value) for value in values]
        if not all(text in branches for text in texts):
            # which ones would tell about the rows
            raise DataRefused(
                "has values that the taxonomy misses", column=name, fix="Put every value that may occur into a class."
            )
        return [
            ANYTHING if level == 0 else (*branches[text][:level], text)[min(level, len(branches[text]) + 1) - 1]
            for text in texts
        ]


def text_of(value: Any) -> str:
    """Return a value as a taxonomy writes it: a whole number without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _branches(tree: YamlEntry) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for text, branch, entry in _leaves(tree, ()):
        if text in found:
            raise entry.refuse("must be in one class only", given=text, fix="Leave it out of the other.")
        found[text] = branch
    return found


def _leaves(entry: YamlEntry, branch: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], YamlEntry]]:
    """Yield every value with the classes that it is in."""
    if entry.is_mapping:
        for name, below in entry.mapping().items():
            yield from _leaves(below, (*branch, name))
        return
    if not branch:
        raise entry.refuse("must have classes with values", fix="Write Artist: [Dancer, Singer].")
    for one in entry.one_or_more():
        if one.is_list or one.is_mapping or one.is_empty:
            raise one.refuse("must be a value", fix="Write a text, a number, or 30..34 for several numbers.")
        text = text_of(one.plain())
        numbers = _NUMBERS.fullmatch(text)
        if numbers is None:
            yield text, branch, one
            continue
        first, last = int(numbers[1]), int(numbers[2])
        if not first <= last < first + MOST_NUMBERS:
            raise one.refuse(f"must be at most {MOST_NUMBERS:,} numbers, the smaller end first", given=text)
        for number in range(first, last + 1):
            yield str(number), branch, one
