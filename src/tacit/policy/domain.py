"""What a person's record may look like: a finite product of declared, public attributes.

A domain is never read off the data. Each attribute is laid out on one or more *axes* with positions 0, 1, 2, ..:
categories in the order given, integers from `low` upwards, a grid on two axes. A set of items has one yes/no axis
for each item, made only when it is needed, so that a domain with a million items costs nothing.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeAlias, TypeVar

from tacit.drawing import Held
from tacit.errors import PolicyError
from tacit.policy.attributes import KINDS, Attribute
from tacit.policy.attributes.attribute import Axis, Value, alike
from tacit.policy.genuine import as_plain

Made = TypeVar("Made")
MOST_REMEMBERED: Final = 20_000  # compiled comparisons of a domain
_made: Final[dict[int, dict[Hashable, Any]]] = {}  # by domain, not in it: nothing that a plan holds can be written to
Record: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, repr=False)
class Domain(Held, Mapping[str, Attribute]):
    """The declared attributes by name. Public; never read off the data.

    >>> from tacit.policy.attributes import Categories, Integers
    >>> domain = Domain({"age": Integers(17, 90), "disease": Categories(["flu", "hiv"])})
    >>> domain.size
    148
    >>> domain.record({"disease": "hiv", "age": 20})
    (20, 'hiv')
    """

    attributes: tuple[tuple[str, Attribute], ...]

    def __init__(self, attributes: Mapping[str, Attribute]) -> None:
        if not isinstance(attributes, Mapping):
            fix = 'Write {"age": tc.Integers(17, 90)}.'
            raise PolicyError("must be a mapping", key="domain", given=attributes, fix=fix)
        object.__setattr__(self, "attributes", as_plain(tuple(attributes.items())))
        if not self.attributes:
            raise PolicyError("must have at least one attribute", key="domain", given={}, fix="Declare a column.")
        for name, attribute in self.attributes:
            if not isinstance(name, str) or len(name.splitlines()) != 1 or any(mark in name for mark in "[]\n`"):
                rule = "must be a text without brackets, backticks or line breaks"
                raise PolicyError(rule, key="domain: attribute name", given=name, fix="Rename the column first.")
            if not isinstance(attribute, Attribute):
                names = [kind.__name__ for kind in KINDS.values()]
                rule = f"must be {', '.join(names[:-1])} or {names[-1]}"
                raise PolicyError(rule, key=f"domain.{name}", given=attribute, fix="For instance tc.Integers(0, 99).")
        taken = [axis.name for name, attribute in self.attributes for axis in attribute.axes(name)]
        for name in taken:
            if taken.count(name) > 1:
                raise PolicyError("must not be used twice", key="domain", given=name, fix="Rename one attribute.")

    def __getitem__(self, name: str) -> Attribute:
        for known, attribute in self.attributes:
            if known == name:
                return attribute
        raise KeyError(name)

    def __str__(self) -> str:
        return ", ".join(self)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what is made of this domain for a key: lists of predicates ask for the same again and again."""
        made = _made.get(id(self))
        if made is None:
            made = _made.setdefault(id(self), {})
            weakref.finalize(self, _made.pop, id(self), None)
        found: Made | None = made.get(key)
        if found is None:
            found = make()
            if len(made) < MOST_REMEMBERED:
                made[key] = found
        return found

    @property
    def size(self) -> int:
        """Number of possible records, as an exact integer."""
        return math.prod(attribute.size for _, attribute in self.attributes)

    def attribute(self, name: str, *, key: str = "attribute") -> Attribute:
        """Return an attribute, or refuse with the nearest known name."""
        if not isinstance(name, str) or name not in self:
            raise PolicyError("must be an attribute of the domain", key=key, given=name, fix=alike(name, list(self)))
        return self[name]

    def axes_of(self, name: str) -> tuple[Axis, ...]:
        """Return the fixed axes of an attribute (none for a set of items)."""
        return self[name].axes(name)

    def axis(self, name: str) -> Axis:
        """Return a fixed axis by its name, `age` or `place.row`, or refuse."""
        axes = {axis.name: axis for attribute in self for axis in self.axes_of(attribute)}
        if name not in axes:
            raise PolicyError("must be an axis of the domain", key="axis", given=name, fix=alike(name, list(axes)))
        return axes[name]

    def record(self, value: Value) -> Record:
        """Return a canonical record from what a user writes for one person, or refuse.

        Accepts a mapping with every attribute, a sequence in the order of the domain, or, in a domain with one
        attribute, the bare value.
        """
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in self]
            if unknown:
                self.attribute(unknown[0], key="record")
            missing = [name for name in self if name not in value]
            if missing:
                fix = f"Add {', '.join(missing)}."
                raise PolicyError("must give every attribute", key="record", given=dict(value), fix=fix)
            parts: Sequence[Value] = [value[name] for name in self]
        elif len(self) == 1 and not self._is_whole_record(value):
            parts = [value]
        elif isinstance(value, tuple | list) and len(value) == len(self):
            parts = value
        else:
            fix = "Write a mapping."
            raise PolicyError(f"must have the attributes {', '.join(self)}", key="record", given=value, fix=fix)
        return tuple(
            canonical(attribute, part, key=name) for (name, attribute), part in zip(self.attributes, parts, strict=True)
        )

    def _is_whole_record(self, value: Value) -> bool:
        """Say whether a 1-tuple is a record with its only value, and not the bare value.

        No cell has one part, and no item is a list or set, so the two never look the same.
        """
        if not isinstance(value, tuple) or len(value) != 1:
            return False
        (attribute,) = self.values()
        return not attribute.is_set or isinstance(value[0], set | frozenset | list | tuple)


def canonical(attribute: Attribute, value: Value, *, key: str) -> Value:
    """Return the canonical value of an attribute, or refuse naming the key."""
    try:
        return attribute.canonical(value)
    except PolicyError as refusal:
        raise refusal.located(key=key) from None


def every_record(domain: Domain) -> list[Record]:
    """Return every record, in the order of the domain."""
    return list(product(*(attribute.every_value() for attribute in domain.values())))


def positions(domain: Domain, record: Record) -> dict[str, int]:
    """Return the position of a canonical record on every axis; items only where it has them."""
    found = _ZeroByDefault()
    for (name, attribute), value in zip(domain.attributes, record, strict=True):
        found.update(attribute.places(name, value))
    return found


class _ZeroByDefault(dict[str, int]):
    """Positions by axis; an item that is not in the set is at 0."""

    def __missing__(self, axis: str) -> int:
        return 0
