"""What every family of secrets says about itself: one method for each behaviour.

If a person's true record is `hidden`, a release must look almost as if it were `cover`. Each family states its edges
twice: `has_edge` is the definition, word for word; `shapes` is the same set in a form that steps are computed from.
The tests hold the two against each other, edge by edge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tacit.errors import PolicyError, kind_of
from tacit.policy.attributes import Attribute
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, Record
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import FromTo
from tacit.policy.edges.shapes import Absence, EdgeShape, ItemMoves
from tacit.policy.genuine import settle
from tacit.policy.keys import PREDICATE, Row, Schema, mapping
from tacit.policy.where import Where, where
from tacit.policy.yaml_entries import YamlEntry

Fields: TypeAlias = dict[str, Value]
MOST_NAMES = 3  # attributes of one family that get examples of their own


@dataclass(frozen=True)
class Promise:
    """What a family protects, in words, and what it leaves open.

    `open` holds if everybody is known to be in the data. `weaker` holds instead if anybody might be absent: then any
    two records look alike at twice the epsilon, by way of absence.
    """

    protected: str
    open: str = ""
    weaker: str = ""

    def words(self, *, absence: bool = False) -> str:
        """Return one sentence."""
        return self.protected + (self.weaker if absence else self.open)


@dataclass(frozen=True)
class PolicyContext:
    """What else a policy says that changes what a family promises."""

    known: bool
    absence: bool  # whether anybody might not be in the data
    some_absence: bool = False  # whether some people might not be in it

    @property
    def certain(self) -> bool:
        """Whether what no edge protects may indeed be published exactly.

        It may not where presence is secret (by way of absence any two records look alike at twice the price), nor where
        something is known (the people who make up for a change may move in any way).
        """
        return not self.known and not self.absence and not self.some_absence


@dataclass(frozen=True)
class ExamplePair:
    """Two records worth showing, with the reason for either answer; without a reason it is not shown."""

    hidden: Fields | None
    cover: Fields | None
    if_protected: str = ""
    if_not: str = ""
    family: Secrets | None = None  # whose reason it is


class Secrets(ABC):
    """A set of directed edges. Unite two with `|`."""

    keyword: ClassVar[str]
    example: ClassVar[str] = ""  # in a policy file; nothing where the word stands alone
    rows: ClassVar[tuple[Row, ...]] = ()  # of the table in docs/files.md, with the JSON schemas

    def __post_init__(self) -> None:
        settle(self)

    def __or__(self, other: Secrets) -> Secrets:
        from tacit.policy.secrets.combined import Union

        if not isinstance(other, Secrets):
            raise PolicyError(
                f"must be united with secrets, not with {kind_of(other)}",
                key="secrets",
                fix="Write a | b, for instance tc.secrets.within(5, 'age') | tc.secrets.attributes('sex').",
            )
        return Union((*self.families(), *other.families()))

    def __and__(self, other: object) -> Secrets:
        raise PolicyError("must be united with |", key="secrets", fix="Write a | b: the edges of both are secret.")

    def __bool__(self) -> bool:
        # `a and b` would silently keep one of the two
        raise PolicyError("must be united with |, not `and` or `or`", key="secrets", fix="Write a | b.")

    def families(self) -> tuple[Secrets, ...]:
        """Return the families that this is the union of."""
        return (self,)

    # ---- edges ----

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse names and values that the domain does not have."""

    @abstractmethod
    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say by the definition whether `hidden -> cover` is a secret edge (both canonical, and different)."""

    @abstractmethod
    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return the same edges as shapes."""

    def absences(self, domain: Domain) -> list[Absence]:
        """Return the edges to and from not being in the data; most families have none."""
        return []

    def only_for(self, people: Where) -> Secrets:
        """Return those of these edges whose hidden record satisfies a predicate: nobody else has such a secret."""
        from tacit.policy.secrets.combined import SomePeople

        return SomePeople(self, people)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        """Return a family of some of these edges, all of which leave these attributes alone; None if unknown."""
        return None

    def canonical(self, domain: Domain) -> Secrets:
        """Return the same edges written in the one way that a policy keeps, so that equal policies are equal."""
        return self

    # ---- policy files ----

    @classmethod
    @abstractmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        """Read the family from what stands under its keyword."""

    @classmethod
    def schemas(cls) -> list[Schema]:
        """Return the JSON schemas of all ways to write it, and beside each the people who have the secret."""
        people = {**PREDICATE, "description": "Only people with this have the secret, for instance: consent == False."}
        found: list[Schema] = []
        for row in cls.rows:
            said = f"What looks like what: {row.values}."
            found += [] if cls.example else [{"const": cls.keyword, "description": said}]
            if row.schema is not None:
                found.append(mapping({cls.keyword: row.schema, "where": people}, [cls.keyword], said))
        return found

    @abstractmethod
    def document(self) -> Any:
        """Return what a policy file says for this family."""

    # ---- words ----

    @property
    def called(self) -> str:
        """What sentences call the family: its word."""
        return self.keyword

    @abstractmethod
    def promise(self, domain: Domain) -> Promise:
        """Say in plain words what is protected, and what is left open."""

    def words(self, domain: Domain) -> str:
        """Say in plain words what is protected."""
        return self.promise(domain).words()

    def why_empty(self, domain: Domain) -> str:
        """Say why the family surely has no edge; the empty text if it has one, or may have."""
        return ""

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        """Yield what the family does not do although one might expect it."""
        return iter(())

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        """Yield pairs of records worth showing, made from an ordinary record."""
        return iter(())


def restricted_to(family: Secrets, people: Where | str | None) -> Secrets:
    """Return a family, of the people that `where` picks only if it is given."""
    return family if people is None else family.only_for(where(people))


def free(domain: Domain, name: str) -> EdgeShape:
    """Return the shape in which one attribute may become anything."""
    if domain[name].is_set:
        return EdgeShape(items={name: ItemMoves(lose=True, gain=True)})
    axes = domain.axes_of(name)
    return EdgeShape({axis.name: FromTo(Intervals.full(axis.size), Intervals.full(axis.size)) for axis in axes})


def changed(domain: Domain, hidden: Record, cover: Record) -> list[str]:
    """Return the attributes in which two records differ."""
    return [name for name, a, b in zip(domain, hidden, cover, strict=True) if a != b]


def check_names(names: tuple[str, ...], domain: Domain, key: str) -> None:
    """Refuse names that are missing, given twice, or no attributes."""
    if not names:
        raise PolicyError("must name an attribute", key=key, given=[], fix=f"Known: {', '.join(domain)}.")
    for name in names:
        if isinstance(name, list | tuple | set | frozenset):
            raise PolicyError("must be given one by one", key=key, given=name, fix="Remove the brackets.")
        domain.attribute(name, key=key)
    if len(set(names)) < len(names):
        raise PolicyError("must not repeat an attribute", key=key, given=list(names), fix="Remove one.")


def read_names(entry: YamlEntry, domain: Domain) -> list[str]:
    """Read one attribute, or a list."""
    found = []
    for said in entry.one_or_more():
        with said.blamed():
            found.append(said.text())
            domain.attribute(found[-1])
    return found


def read_value(entry: YamlEntry, attribute: Attribute) -> Value:
    """Read one value of an attribute, as that attribute's values are meant."""
    found = attribute.read_value(entry)
    with entry.blamed():
        attribute.canonical(found)
    return found


def plain_value(value: Any) -> Any:
    """Return a value without the types of numpy."""
    if isinstance(value, list):
        return tuple(value)
    return value.item() if isinstance(value, np.generic) else value


def plain(value: Any) -> Any:
    """Return a value as JSON has it: cells and sets as lists."""
    if isinstance(value, frozenset | set):
        return sorted(value, key=lambda item: (isinstance(item, str), item))
    return list(value) if isinstance(value, tuple) else value


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them, all of them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def listed_briefly(names: Iterable[str], word: str = "and") -> str:
    """Return names as a sentence has them; of many, the first and how many more."""
    some = list(names)
    if len(some) > 8:
        some = [*some[:7], f"{len(some) - 7} more"]
    return some[0] if len(some) == 1 else f"{', '.join(some[:-1])} {word} {some[-1]}"
