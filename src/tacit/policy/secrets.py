"""What must stay secret: families of directed edges `hidden -> cover` between records.

If a person's true record is `hidden`, a release must look almost as if it were `cover`. Each family states its edges
twice: `has_edge` is the definition, word for word; `shapes` is the same set in a form that steps are computed from.
The tests hold the two against each other, edge by edge.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any, ClassVar, Final

from tacit.errors import PolicyError, kind_of, nearest
from tacit.policy.attributes import Attribute
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, Record, canonical, positions
from tacit.policy.edges import Blocks, EdgeShape, FromTo, ItemMoves, Metric, Near, Relation
from tacit.policy.intervals import Intervals
from tacit.policy.where import Where, where

METRICS: Final = ("l1", "l2", "linf")
# short exponents only: the exact fraction of 1e999999999 would not fit into memory
_DISTANCE: Final = re.compile(r"[-+]?[0-9]{1,30}(\.[0-9]{0,30}|/[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?")


class Secrets(ABC):
    """A set of directed edges. Unite two with `|`."""

    keyword: ClassVar[str]

    def __or__(self, other: Secrets) -> Secrets:
        return Union((*self.families(), *other.families()))

    def __and__(self, other: object) -> Secrets:
        raise PolicyError("must be united with |", key="secrets", fix="Write a | b: the edges of both are secret.")

    def __bool__(self) -> bool:
        # `a and b` would silently keep one of the two
        raise PolicyError("must be united with |, not `and` or `or`", key="secrets", fix="Write a | b.")

    def families(self) -> tuple[Secrets, ...]:
        """Return the families that this is the union of."""
        return (self,)

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse names and values that the domain does not have."""

    @abstractmethod
    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say by the definition whether `hidden -> cover` is a secret edge (both canonical, and different)."""

    @abstractmethod
    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return the same edges as shapes."""

    def settled(self, domain: Domain) -> Secrets:
        """Return the same edges written in the one way that a policy keeps, so that equal policies are equal."""
        return self

    @abstractmethod
    def document(self) -> Any:
        """Return what a policy file says for this family."""

    @abstractmethod
    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""


@dataclass(frozen=True)
class Everything(Secrets):
    """Every value -> every value: differential privacy."""

    keyword: ClassVar[str] = "everything"

    def check(self, domain: Domain) -> None:
        """Accept any domain."""

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say yes to every two different records."""
        return hidden != cover

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape: anything may become anything."""
        return [EdgeShape(any_elsewhere=True)]

    def document(self) -> Any:
        """Return what a policy file says for this family."""
        return "everything"

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        return f"everything about a person: any values of {_listed(list(domain))} look like any others"


@dataclass(frozen=True)
class Attributes(Secrets):
    """Values that differ in exactly one of the listed attributes."""

    names: tuple[str, ...]
    keyword: ClassVar[str] = "attributes"

    def check(self, domain: Domain) -> None:
        """Refuse unknown or missing names."""
        _check_names(self.names, domain, "secrets.attributes")

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether exactly one attribute differs, and it is listed."""
        changed = _changed(domain, hidden, cover)
        return len(changed) == 1 and changed[0] in self.names

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape for each attribute."""
        return [_free(domain, name) for name in self.names]

    def document(self) -> Any:
        """Return what a policy file says for this family."""
        return {self.keyword: list(self.names)}

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        if len(self.names) == 1:
            return f"the value of {self.names[0]}: any value looks like any other"
        return (
            f"each of {_listed(self.names)}, one at a time: any value looks like any other while the rest is as it is"
        )


@dataclass(frozen=True)
class Partition(Secrets):
    """Values within one block of an attribute; either blocks of a width, or listed ones."""

    name: str
    width: tuple[int | Fraction, ...] | None = None
    blocks: tuple[tuple[Value, ...] | str, ...] | None = None
    keyword: ClassVar[str] = "partition"

    def check(self, domain: Domain) -> None:
        """Refuse what does not make blocks."""
        attribute = domain.attribute(self.name, key="secrets.partition")
        key = f"secrets.partition.{self.name}"
        if (self.width is None) == (self.blocks is None):
            raise PolicyError("must have either width or blocks", key=key, fix="Give one of the two.")
        if attribute.is_set:
            raise PolicyError("must not be a set of items", key=key, fix="Use within to protect some of the items.")
        if self.width is not None:
            axes = domain.axes_of(self.name)
            if not all(axis.ordered for axis in axes):
                raise PolicyError(
                    "must list blocks for unordered categories",
                    key=key,
                    fix="Write blocks=[[a, b], ..] (in a file: `blocks: [[a, b], ..]`).",
                )
            widths = self.width * len(axes) if len(self.width) == 1 else self.width
            if len(widths) != len(axes):
                raise PolicyError(f"must have {len(axes)} widths", key=key, given=self.width, fix="One for each axis.")
            for axis, width in zip(axes, widths, strict=True):
                if not isinstance(width, int) and axis.spacing == int(axis.spacing):
                    raise PolicyError(
                        "must be a whole number", key=f"{key}.width", given=_plain_width(width), fix="Round it."
                    )
                is_number = isinstance(width, int | Fraction) and not isinstance(width, bool)
                if not is_number or width <= 0 or width % axis.spacing:
                    raise PolicyError(
                        f"must be a positive whole number of steps of {axis.spacing}",
                        key=f"{key}.width",
                        given=_plain_width(width),
                        fix="Change the width.",
                    )
            return
        if len(domain.axes_of(self.name)) > 1:
            raise PolicyError(
                "must have a width on a grid", key=key, fix="Write width=[rows, columns] (in a file: `width: [..]`)."
            )
        if not self.blocks:
            raise PolicyError("must list at least one block", key=f"{key}.blocks", given=[], fix="Write [[a, b], ..].")
        blocks = self._block_positions(domain)
        for block, found in zip(self.blocks, blocks, strict=True):
            if not found:
                given = block if isinstance(block, str) else list(block)
                raise PolicyError("must not have an empty block", key=f"{key}.blocks", given=given, fix="Remove it.")
        # what overlaps is counted once in the union
        together = Intervals.of(part for block in blocks for part in block)
        if together.count < sum(block.count for block in blocks):
            raise PolicyError("must not overlap", key=f"{key}.blocks", given=list(self.blocks or ()), fix="Fix it.")

    def _block_positions(self, domain: Domain) -> list[Intervals]:
        attribute = domain[self.name]
        found = []
        for block in self.blocks or ():
            try:
                if isinstance(block, str):
                    low, high = _range_ends(block, attribute)
                    found.append(Intervals.of([(attribute.position(low), attribute.position(high))]))
                else:
                    found.append(Intervals.points(attribute.position(value) for value in block))
            except PolicyError as refusal:
                raise refusal.located(key=f"secrets.partition.{self.name}.blocks") from None
        return found

    def _widths(self, domain: Domain) -> list[int]:
        axes = domain.axes_of(self.name)
        given = self.width or ()
        widths = given * len(axes) if len(given) == 1 else given
        return [int(width // axis.spacing) for axis, width in zip(axes, widths, strict=True)]

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether only this attribute differs, and both values are in one block."""
        if _changed(domain, hidden, cover) != [self.name]:
            return False
        attribute, place = domain[self.name], list(domain).index(self.name)
        a, b = (list(attribute.places(self.name, side[place]).values()) for side in (hidden, cover))
        if self.blocks is not None:
            return any(a[0] in block and b[0] in block for block in self._block_positions(domain))
        return all(x // w == y // w for x, y, w in zip(a, b, self._widths(domain), strict=True))

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape for a width, one for each listed block."""
        axes = domain.axes_of(self.name)
        if self.blocks is not None:
            return [
                EdgeShape({axes[0].name: FromTo(block, block)})
                for block in self._block_positions(domain)
                if block.count > 1
            ]
        relations = {
            axis.name: Blocks(width, axis.size) for axis, width in zip(axes, self._widths(domain), strict=True)
        }
        return [EdgeShape(relations)]

    def settled(self, domain: Domain) -> Secrets:
        """Return the blocks with every value as the domain writes it."""
        if self.blocks is None:
            return self
        attribute = domain[self.name]
        blocks = tuple(
            block if isinstance(block, str) else tuple(canonical(attribute, value, key=self.name) for value in block)
            for block in self.blocks
        )
        return Partition(self.name, None, blocks)

    def document(self) -> Any:
        """Return what a policy file says for this family."""
        said: dict[str, Any] = {"attribute": self.name}
        if self.width is not None:
            widths = [_plain_width(width) for width in self.width]
            said["width"] = widths[0] if len(widths) == 1 else widths
        if self.blocks is not None:
            said["blocks"] = [block if isinstance(block, str) else list(block) for block in self.blocks]
        return {self.keyword: said}

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        if self.width is not None:
            size = " x ".join(str(_plain_width(width)) for width in self.width)
            return f"{self.name} within its block of width {size}: which block it is stays public"
        return f"{self.name} within each of {len(self.blocks or ())} listed blocks: which block it is stays public"


@dataclass(frozen=True)
class Within(Secrets):
    """Values at a distance of at most theta in the listed attributes."""

    theta: Fraction
    names: tuple[str, ...]
    metric: str = "l1"
    keyword: ClassVar[str] = "within"

    def check(self, domain: Domain) -> None:
        """Refuse attributes without a distance."""
        _check_names(self.names, domain, "secrets.within")
        if self.theta <= 0:
            raise PolicyError("must be positive", key="secrets.within.theta", given=str(self.theta), fix="Raise it.")
        if self.metric not in METRICS:
            raise PolicyError(
                "must be l1, l2 or linf",
                key="secrets.within.metric",
                given=self.metric,
                fix=nearest(str(self.metric), METRICS),
            )
        for name in self.names:
            attribute = domain[name]
            if not all(axis.ordered for axis in attribute.axes(name)):
                raise PolicyError(
                    "must have distances",
                    key="secrets.within",
                    given=name,
                    fix="Use attributes, or declare ordered=True (in a file: `ordered: true`).",
                )

    def _distances(self, domain: Domain, hidden: Record, cover: Record) -> list[Fraction]:
        return [
            distance
            for (name, attribute), a, b in zip(domain.attributes, hidden, cover, strict=True)
            if name in self.names
            for distance in attribute.distances(a, b)
        ]

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether only listed attributes differ, by at most theta in all."""
        if not set(_changed(domain, hidden, cover)) <= set(self.names) or hidden == cover:
            return False
        return Metric(self.theta, self.metric).allows(self._distances(domain, hidden, cover))

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape with a shared distance."""
        axes = [axis for name in self.names for axis in domain.axes_of(name)]
        relations: dict[str, Relation] = {axis.name: Near(int(self.theta // axis.spacing)) for axis in axes}
        items = {name: ItemMoves(lose=True, gain=True) for name in self.names if domain[name].is_set}
        return [EdgeShape(relations, items, metric=Metric(self.theta, self.metric))]

    def document(self) -> Any:
        """Return what a policy file says for this family."""
        theta = int(self.theta) if self.theta.denominator == 1 else str(self.theta)
        said: dict[str, Any] = {"theta": theta, "attributes": list(self.names)}
        if self.metric != "l1":
            said["metric"] = self.metric
        return {self.keyword: said}

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        unit = "items" if all(domain[name].is_set for name in self.names) else self.metric
        return f"{_listed(self.names)} up to a distance of {self.theta} ({unit}): the rough value stays public"


@dataclass(frozen=True)
class Pairs(Secrets):
    """An explicit list of edges. Attributes that a pair does not mention stay as they are, whatever they are."""

    pairs: tuple[tuple[tuple[tuple[str, Value], ...], tuple[tuple[str, Value], ...]] | tuple[Value, Value], ...]
    keyword: ClassVar[str] = "pairs"

    def check(self, domain: Domain) -> None:
        """Refuse pairs that the domain does not have."""
        if not self.pairs:
            raise PolicyError("must list at least one pair", key="secrets.pairs", given=[], fix="Add [hidden, cover].")
        self._named(domain)

    def _named(self, domain: Domain) -> list[tuple[dict[str, Value], dict[str, Value]]]:
        named = []
        for number, (hidden, cover) in enumerate(self.pairs):
            key = f"secrets.pairs[{number}]"
            a, b = _partial(domain, hidden, key), _partial(domain, cover, key)
            for name in b:
                if name not in a:
                    raise PolicyError("must be given on the hidden side too", key=key, given=name, fix="Add its value.")
            b = {**a, **b}
            if a == b:
                raise PolicyError("must differ", key=key, given=[a, b], fix="Remove the pair.")
            named.append((a, b))
        return named

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether some listed pair matches, and the rest is unchanged."""
        x, y = dict(zip(domain, hidden, strict=True)), dict(zip(domain, cover, strict=True))
        return any(
            all(x[name] == a[name] and y[name] == b[name] for name in a)
            and all(x[name] == y[name] for name in domain if name not in a)
            for a, b in self._named(domain)
        )

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape for each pair."""
        found = []
        for a, b in self._named(domain):
            relations: dict[str, Relation] = {}
            items: dict[str, ItemMoves] = {}
            for name in a:
                attribute = domain[name]
                if attribute.is_set:
                    ends = attribute.positions(a[name]), attribute.positions(b[name])
                    items[name] = ItemMoves(lose=False, gain=False, exactly=ends)
                    continue
                starts, ends_at = attribute.places(name, a[name]), attribute.places(name, b[name])
                for axis, start in starts.items():
                    relations[axis] = FromTo(Intervals.points([start]), Intervals.points([ends_at[axis]]))
            found.append(EdgeShape(relations, items))
        return found

    def settled(self, domain: Domain) -> Secrets:
        """Return the pairs by attribute, in the order of the domain, so that nothing hangs on that order."""
        pairs = [
            tuple((_MAPPING, tuple((name, side[name]) for name in domain if name in side)) for side in pair)
            for pair in self._named(domain)
        ]
        return Pairs(tuple((hidden, cover) for hidden, cover in pairs))

    def document(self) -> Any:
        """Return what a policy file says for this family."""
        return {self.keyword: [[_pair_document(side) for side in pair] for pair in self.pairs]}

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        if len(self.pairs) == 1:
            return "1 listed pair: the first record looks like the second"
        return f"{len(self.pairs):,} listed pairs: the first record of each looks like the second"


@dataclass(frozen=True)
class Values(Secrets):
    """r -> r' where r' differs from r only in attributes whose value in r is listed as sensitive.

    For a set of items the values are 1 (has it) and 0 (has it not), item by item.
    """

    sensitive: tuple[tuple[str, tuple[Value, ...]], ...]
    keyword: ClassVar[str] = "values"

    def check(self, domain: Domain) -> None:
        """Refuse unknown attributes and values."""
        if not self.sensitive:
            raise PolicyError("must list an attribute", key="secrets.values", given={}, fix="Write {name: [values]}.")
        for name, values in self.sensitive:
            attribute = domain.attribute(name, key="secrets.values")
            if not values:
                raise PolicyError("must list a value", key=f"secrets.values.{name}", given=[], fix="Add one.")
            for value in values:
                if attribute.is_set:
                    if isinstance(value, bool) or value not in (0, 1):
                        raise PolicyError(
                            "must be 1 (has the item) or 0 (has it not)",
                            key=f"secrets.values.{name}",
                            given=value,
                            fix="Write [1], [0] or [0, 1].",
                        )
                else:
                    canonical(attribute, value, key=f"secrets.values.{name}")

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether every change starts from a sensitive value."""
        listed = dict(self.sensitive)
        for (name, attribute), a, b in zip(domain.attributes, hidden, cover, strict=True):
            if a == b:
                continue
            if name not in listed:
                return False
            if attribute.is_set:
                if (a - b and 1 not in listed[name]) or (b - a and 0 not in listed[name]):
                    return False
            elif a not in [canonical(attribute, value, key=name) for value in listed[name]]:
                return False
        return hidden != cover

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape in which each listed attribute may leave its sensitive values."""
        relations: dict[str, Relation] = {}
        items: dict[str, ItemMoves] = {}
        grids: list[tuple[str, Value]] = []
        for name, values in self.sensitive:
            attribute = domain[name]
            axes = attribute.axes(name)
            if attribute.is_set:
                items[name] = ItemMoves(lose=1 in values, gain=0 in values)
            elif len(axes) > 1:
                grids.extend((name, cell) for cell in values)
            else:
                sensitive = Intervals.points(attribute.position(value) for value in values)
                relations[name] = FromTo(sensitive, Intervals.full(attribute.size), may_stay=True)
        # A grid has two axes, so each sensitive cell is a shape of its own (one grid at a time: refused otherwise).
        if len({name for name, _ in grids}) > 1:
            raise PolicyError("must list at most one grid", key="secrets.values", fix="Use records or everything.")
        shapes = [EdgeShape(relations, items)] if relations or items else []
        for name, cell in grids:
            leaving: dict[str, Relation] = {
                axis.name: FromTo(
                    Intervals.points([domain[name].places(name, cell)[axis.name]]), Intervals.full(axis.size)
                )
                for axis in domain.axes_of(name)
            }
            shapes.append(EdgeShape({**relations, **leaving}, items))
        return shapes

    def settled(self, domain: Domain) -> Secrets:
        """Return every value as the domain writes it."""
        return Values(
            tuple(
                (name, values)
                if domain[name].is_set
                else (name, tuple(canonical(domain[name], value, key=name) for value in values))
                for name, values in self.sensitive
            )
        )

    def document(self) -> Any:
        """Return what a policy file says for this family."""
        return {self.keyword: {name: [_plain(value) for value in values] for name, values in self.sensitive}}

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        said = []
        for name, values in self.sensitive:
            if domain[name].is_set:
                kinds = {1: "having", 0: "not having"}
                said.append(f"{' and '.join(kinds[value] for value in values)} an item of {name}")
            else:
                said.append(f"{name} being {_listed([str(value) for value in values])}")
        return "; ".join(said) + ": it looks as if it were otherwise (the other way round nothing is promised)"


@dataclass(frozen=True)
class Records(Secrets):
    """Every record that a predicate calls sensitive -> every value."""

    where: Where
    keyword: ClassVar[str] = "records"

    def check(self, domain: Domain) -> None:
        """Refuse predicates that the domain cannot answer."""
        try:
            self.where.compile(domain)
        except PolicyError as refusal:
            raise refusal.located(key="secrets.records") from None

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether the hidden record is sensitive."""
        return hidden != cover and self.where.compile(domain).of_record(positions(domain, hidden))

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape with a condition on the hidden side."""
        return [EdgeShape(any_elsewhere=True, only_from=self.where.compile(domain))]

    def document(self) -> Any:
        """Return what a policy file says for this family."""
        return {self.keyword: str(self.where)}

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        return f"everything about people with {self.where}; nothing about the others"


@dataclass(frozen=True)
class Union(Secrets):
    """The edges of all its members."""

    members: tuple[Secrets, ...]
    keyword: ClassVar[str] = "union"

    def families(self) -> tuple[Secrets, ...]:
        """Return the families that this is the union of."""
        return self.members

    def check(self, domain: Domain) -> None:
        """Check every member."""
        if not self.members:
            raise PolicyError("must protect something", key="secrets", given=[], fix="Write tc.secrets.everything().")
        for member in self.members:
            member.check(domain)

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether some member has the edge."""
        return any(member.has_edge(domain, hidden, cover) for member in self.members)

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return the shapes of all members."""
        return [shape for member in self.members for shape in member.shapes(domain)]

    def settled(self, domain: Domain) -> Secrets:
        """Return the union of the settled members; a union of one is that one."""
        members = tuple(family for member in self.members for family in member.settled(domain).families())
        return members[0] if len(members) == 1 else Union(members)

    def document(self) -> Any:
        """Return what a policy file says for this family."""
        return [member.document() for member in self.members]

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        return "; and ".join(member.words(domain) for member in self.members)


def everything() -> Secrets:
    """Protect every value against every other: differential privacy."""
    return Everything()


def attributes(*names: str) -> Secrets:
    """Protect each of these attributes, one at a time (Blowfish's attribute graph)."""
    return Attributes(tuple(names))


def partition(
    name: str,
    *,
    blocks: Iterable[Iterable[Value] | str] | None = None,
    width: float | Fraction | Sequence[float | Fraction] | None = None,
) -> Secrets:
    """Protect the value within its block; the block stays public (Blowfish's partition graph).

    `blocks` lists values, or ranges as texts: [["flu", "cold"], ["hiv", "hepatitis"]] or ["0..17", "18..64"].
    """
    if width is not None and (isinstance(width, str) or not isinstance(width, int | float | Fraction | Iterable)):
        raise PolicyError("must be a whole number", key=f"secrets.partition.{name}.width", given=width, fix="Round it.")
    for block in blocks or ():
        if not isinstance(block, Iterable):
            raise PolicyError(
                "must be a list of values or a range like '0..17'",
                key=f"secrets.partition.{name}.blocks",
                given=block,
                fix="Write [[a, b], ..].",
            )
    widths = None
    if width is not None:
        widths = tuple(_exact_width(one) for one in (width if isinstance(width, Iterable) else (width,)))
    listed = None if blocks is None else tuple(b if isinstance(b, str) else tuple(b) for b in blocks)
    return Partition(name, widths, listed)


def _exact_width(width: Any) -> Any:
    """Return a width as it is written: 0.1 is a tenth."""
    if isinstance(width, float) and math.isfinite(width):
        width = Fraction(float.__repr__(width))
    return int(width) if isinstance(width, Fraction) and width.denominator == 1 else width


def _plain_width(width: Any) -> Any:
    return float(width) if isinstance(width, Fraction) else width


def within(theta: int | float | str | Fraction, *names: str, metric: str = "l1") -> Secrets:
    """Protect values against others at a distance of at most theta (Blowfish's distance graph)."""
    try:
        if isinstance(theta, bool):
            raise ValueError
        # a plain number, looked at once: a subclass may be something else the next time
        if isinstance(theta, float | str):
            text = float.__repr__(theta) if isinstance(theta, float) else str.__str__(theta)
            if not _DISTANCE.fullmatch(text.strip()):
                raise ValueError
            exact = Fraction(text)
        else:
            read = Fraction(theta)
            exact = Fraction(int(read.numerator), int(read.denominator))
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        swapped = isinstance(theta, str) and names and not isinstance(names[0], str)
        fix = f"Write within({names[0]!r}, {theta!r})." if swapped else "Write 5."
        raise PolicyError("must be a number", key="secrets.within.theta", given=theta, fix=fix) from None
    return Within(exact, tuple(names), metric)


def pairs(pairs: Iterable[tuple[Value, Value]]) -> Secrets:
    """Protect exactly these (hidden, cover) pairs. A side is a value, a tuple, or a mapping of some attributes."""
    if isinstance(pairs, str | Mapping) or not isinstance(pairs, Iterable):
        raise PolicyError(
            f"must be a list of (hidden, cover), not {kind_of(pairs)}",
            key="secrets.pairs",
            fix='Write pairs([("hiv", "flu")]), or for a rule one of within, partition, values, records.',
        )
    listed = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise PolicyError("must be [hidden, cover]", key="secrets.pairs", given=pair, fix="Give two records.")
        listed.append((_frozen(pair[0]), _frozen(pair[1])))
    return Pairs(tuple(listed))


def values(sensitive: Mapping[str, Iterable[Value]], *more: Any) -> Secrets:
    """Protect these values by making them look like any other (asymmetric differential privacy)."""
    if more:
        meant = list(more[0]) if isinstance(more[0], list | tuple) else list(more)
        raise PolicyError(
            "must be one mapping",
            key="secrets.values",
            given=[sensitive, *more],
            fix=f"Write values({{{sensitive!r}: {meant!r}}})."
            if isinstance(sensitive, str) and all(isinstance(value, str | int) for value in meant)
            else 'Write values({"disease": ["hiv"]}).',
        )
    if not isinstance(sensitive, Mapping):
        raise PolicyError("must be a mapping", key="secrets.values", given=sensitive, fix='Write {"disease": ["hiv"]}.')
    for name, listed in sensitive.items():
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise PolicyError("must be a list", key=f"secrets.values.{name}", given=listed, fix="Write [value].")
    return Values(tuple((name, tuple(_plain_value(v) for v in listed)) for name, listed in sensitive.items()))


def records(where_sensitive: Where | str) -> Secrets:
    """Protect everything about the people that a predicate calls sensitive (one-sided differential privacy)."""
    return Records(where(where_sensitive))


def _free(domain: Domain, name: str) -> EdgeShape:
    if domain[name].is_set:
        return EdgeShape(items={name: ItemMoves(lose=True, gain=True)})
    axes = domain.axes_of(name)
    return EdgeShape({axis.name: FromTo(Intervals.full(axis.size), Intervals.full(axis.size)) for axis in axes})


def _changed(domain: Domain, hidden: Record, cover: Record) -> list[str]:
    return [name for name, a, b in zip(domain, hidden, cover, strict=True) if a != b]


def _check_names(names: tuple[str, ...], domain: Domain, key: str) -> None:
    if not names:
        raise PolicyError("must name an attribute", key=key, given=[], fix=f"Known: {', '.join(domain)}.")
    for name in names:
        if isinstance(name, list | tuple | set | frozenset):
            raise PolicyError("must be given one by one", key=key, given=name, fix="Remove the brackets.")
        domain.attribute(name, key=key)
    if len(set(names)) < len(names):
        raise PolicyError("must not repeat an attribute", key=key, given=list(names), fix="Remove one.")


def _range_ends(text: str, attribute: Attribute) -> tuple[Value, Value]:
    low, dots, high = text.partition("..")
    try:
        ends = attribute.read_end(low), attribute.read_end(high)
        if not dots or ends[0] > ends[1]:
            raise ValueError
    except ValueError:
        raise PolicyError("must be a list of values or a range like '0..17'", given=text, fix="Change it.") from None
    return ends


def _partial(domain: Domain, side: Any, key: str) -> dict[str, Value]:
    """Return the attributes that one side of a pair gives, canonical."""
    if isinstance(side, tuple) and side and side[0] == _MAPPING:
        given = dict(side[1])
    else:
        return dict(zip(domain, domain.record(side), strict=True))
    for name in given:
        domain.attribute(name, key=key)
    return {name: canonical(domain[name], value, key=f"{key}.{name}") for name, value in given.items()}


_MAPPING: Final = "\0mapping"


def _frozen(side: Any) -> Any:
    if isinstance(side, Mapping):
        return (_MAPPING, tuple((name, _frozen_value(value)) for name, value in side.items()))
    return _frozen_value(side)


def _frozen_value(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return frozenset(value)
    return tuple(_frozen_value(part) for part in value) if isinstance(value, list | tuple) else _plain_value(value)


def _plain_value(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, Rational) and not isinstance(value, bool) and hasattr(value, "item"):
        return value.item()  # numpy integers
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset | set):
        return sorted(value, key=lambda item: (isinstance(item, str), item))
    return list(value) if isinstance(value, tuple) else value


def _pair_document(side: Any) -> Any:
    if isinstance(side, tuple) and side and side[0] == _MAPPING:
        return {name: _plain(value) for name, value in side[1]}
    return [_plain(part) for part in side] if isinstance(side, tuple) else _plain(side)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


__all__ = [
    "METRICS",
    "Secrets",
    "attributes",
    "everything",
    "pairs",
    "partition",
    "records",
    "values",
    "within",
]


def __dir__() -> list[str]:
    """Return what a user may want to complete: the families."""
    return ["attributes", "everything", "pairs", "partition", "records", "values", "within"]
