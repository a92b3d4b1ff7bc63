"""What every family of secrets says about itself: one method for each behaviour; and families made of other families.

If a person's true record is `hidden`, a release must look almost as if it were `cover`. Each family states its edges
twice: `has_edge` is the definition, word for word; `shapes` is the same set in a form that steps are computed from.
The tests compare the two, edge by edge.

`Union` has the edges of several families. `SomePeople` keeps the edges whose `hidden` satisfies a predicate; `cover`
may be anybody. People for whom the predicate is false have no such secret (Blowfish's privacy-agnostic people). If an
edge changes what the predicate asks about, its cover may not satisfy the predicate; then the reverse is no edge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from tacit.errors import PolicyError, kind_of
from tacit.policy.attributes import Attribute
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, Record, positions
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import FromTo
from tacit.policy.edges.shapes import Absence, EdgeShape, ItemMoves, axes_of, cells, holds
from tacit.policy.genuine import settle
from tacit.policy.keys import PREDICATE, Row, Schema, mapping
from tacit.policy.where import Test, Where, where
from tacit.policy.yaml_entries import YamlEntry

Fields: TypeAlias = dict[str, Value]
MOST_NAMES = 3  # attributes of one family that get examples of their own


@dataclass(frozen=True)
class Promise:
    """What a family protects, in words, and what it does not protect.

    `open` holds if everybody is known to be in the data. `weaker` holds instead if anybody might be absent: then any
    two records look alike at twice the epsilon, through absence.
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
        """Whether what no edge protects may be published exactly.

        It may not if presence is secret (through absence any two records look alike at twice the epsilon), nor if
        something is known (the people who make up for a change may change in any way).
        """
        return not self.known and not self.absence and not self.some_absence


@dataclass(frozen=True)
class ExamplePair:
    """Two records to show, with a reason for each answer; without a reason the pair is not shown."""

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
        if not isinstance(other, Secrets):
            fix = "Write a | b, for instance tc.secrets.within(5, 'age') | tc.secrets.attributes('sex')."
            raise PolicyError(f"must be united with secrets, not with {kind_of(other)}", key="secrets", fix=fix)
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

    @property
    def held(self) -> frozenset[str]:
        """The attributes that no edge of the whole policy may change; of most families none."""
        return frozenset()

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
        """Return the edges whose hidden record satisfies a predicate."""
        return SomePeople(self, people)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        """Return a family with some of these edges, none of which changes these attributes; None if unknown."""
        return None

    def canonical(self, domain: Domain) -> Secrets:
        """Return the same edges in canonical form, so that equal policies are equal."""
        return self

    # ---- policy files ----

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        """Read the family from what stands under its keyword; here nothing may stand there."""
        if not entry.is_empty:
            fix = f"Write `{cls.keyword}` without a colon."
            raise entry.refuse("must stand alone", given=entry.plain(), fix=fix)
        return cls()

    @classmethod
    def schemas(cls) -> list[Schema]:
        """Return the JSON schemas of all ways to write it, each with the key `where`."""
        people = {**PREDICATE, "description": "Only people with this have the secret, for instance: consent == False."}
        found: list[Schema] = []
        for row in cls.rows:
            meaning = f"What looks like what: {row.values}."
            found += [] if cls.example else [{"const": cls.keyword, "description": meaning}]
            if row.schema is not None:
                found.append(mapping({cls.keyword: row.schema, "where": people}, [cls.keyword], meaning))
        return found

    def document(self) -> Any:
        """Return what a policy file says for this family; here its keyword alone."""
        return self.keyword

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
    for name in entry.one_or_more():
        with name.blamed():
            found.append(name.text())
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


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names joined for a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def listed_briefly(names: Iterable[str], word: str = "and") -> str:
    """Return names joined for a sentence; of many, the first ones and how many more."""
    some = list(names)
    return listed(some if len(some) <= 8 else [*some[:7], f"{len(some) - 7} more"], word)


@dataclass(frozen=True)
class Union(Secrets):
    """The edges of all its members."""

    members: tuple[Secrets, ...]
    keyword: ClassVar[str] = "union"

    def families(self) -> tuple[Secrets, ...]:
        return self.members

    def check(self, domain: Domain) -> None:
        if not self.members:
            raise PolicyError("must protect something", key="secrets", given=[], fix="Write tc.secrets.everything().")
        for member in self.members:
            member.check(domain)

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        return any(member.has_edge(domain, hidden, cover) for member in self.members)

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        return [shape for member in self.members for shape in member.shapes(domain)]

    def absences(self, domain: Domain) -> list[Absence]:
        return [absence for member in self.members for absence in member.absences(domain)]

    def only_for(self, people: Where) -> Secrets:
        return Union(tuple(family for member in self.members for family in member.only_for(people).families()))

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        members = [found for member in self.members if (found := member.without_attributes(names, domain)) is not None]
        return Union(tuple(members)) if members else None

    def canonical(self, domain: Domain) -> Secrets:
        members = tuple(family for member in self.members for family in member.canonical(domain).families())
        return members[0] if len(members) == 1 else Union(members)

    def document(self) -> Any:
        return [member.document() for member in self.members]

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        raise entry.refuse("must be a list of families", fix="Start each on a line of its own with a dash.")

    def promise(self, domain: Domain) -> Promise:
        return Promise("; and ".join(member.words(domain) for member in self.members))


@dataclass(frozen=True)
class SomePeople(Secrets):
    """The edges of a family that start at the records which a predicate picks."""

    family: Secrets
    where: Where
    keyword: ClassVar[str] = "where"
    rows: ClassVar[tuple[Row, ...]] = (
        Row("any of these", '`{within: {age: 5}, where: "smoker == True"}`', "the same, but only of people with this"),
    )

    @property
    def called(self) -> str:
        return self.family.called

    def check(self, domain: Domain) -> None:
        self.family.check(domain)
        self.where.check(domain, key=f"secrets.{self.called}.where")

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        picks = self.where.compile(domain).of_record
        return self.family.has_edge(domain, hidden, cover) and picks(positions(domain, hidden))

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        test = self.where.compile(domain)
        return [shape.only_for(test) for shape in self.family.shapes(domain)]

    def only_for(self, people: Where) -> Secrets:
        return SomePeople(self.family, self.where & people)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        family = self.family.without_attributes(names, domain)
        return None if family is None else family.only_for(self.where)

    def canonical(self, domain: Domain) -> Secrets:
        return self.family.canonical(domain).only_for(self.where)

    def document(self) -> Any:
        document = self.family.document()
        return {**(document if isinstance(document, dict) else {document: None}), self.keyword: str(self.where)}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        raise entry.refuse("must stand beside a family", fix='Write {within: {age: 5}, where: "smoker == True"}.')

    def promise(self, domain: Domain) -> Promise:
        inner = self.family.promise(domain)
        rest = "; of the others nothing by this"
        return Promise(
            f"of people for whom {self.where}, {inner.protected}", f"{inner.open}{rest}", f"{inner.weaker}{rest}"
        )

    def why_empty(self, domain: Domain) -> str:
        return self.family.why_empty(domain) or why_nobody(domain, self.where)

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        """Say that others are not protected, and where edges lead out of the people who are."""
        yield f"`{self.called}` with `where` protects nobody outside `{self.where}`."
        moved = [name for name in domain if any(shape.moves(domain, name) for shape in self.family.shapes(domain))]
        changed = sorted(self.where.columns() & set(moved))
        if changed:
            yield (
                f"An edge of `{self.called}` may change {', '.join(changed)} and so lead to somebody outside "
                f"`{self.where}`; no edge leads back, so that somebody is outside is not protected."
            )
        # a chain may leave the people whom the predicate picks, so nothing is claimed about its length
        yield from self.family.warnings(domain, replace(setting, known=True) if changed else setting)

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        test = self.where.compile(domain)
        for wanted in (True, False):
            start = record_with(domain, test, base, picked=wanted)
            if start is None:
                continue
            for found in self.family.candidates(domain, start):
                if found.hidden is None:
                    continue
                try:
                    picked = is_picked(domain, test, found.hidden)
                except PolicyError:
                    continue  # more items than one person may have
                if picked and wanted:
                    yield replace(found, if_protected=f"{found.if_protected}, and the first satisfies {self.where}")
                elif not picked:
                    yield replace(found, if_not=f"the first does not satisfy {self.where}")
                    if not wanted:
                        break


_MOST_CELLS: Final = 20_000  # combinations tried to find a record that a predicate picks


def record_with(domain: Domain, test: Test, base: Fields | None = None, *, picked: bool = True) -> Fields | None:
    """Return a record that a predicate picks (or does not pick); None if none was found."""
    return _looked_for(domain, test, base, picked=picked)[0]


def why_nobody(domain: Domain, people: Where) -> str:
    """Say that no record satisfies a predicate; the empty text if one does, or may."""
    found, is_sure = _looked_for(domain, people.compile(domain), None, picked=True)
    return f"no record satisfies {people}" if found is None and is_sure else ""


def _looked_for(domain: Domain, test: Test, base: Fields | None, *, picked: bool) -> tuple[Fields | None, bool]:
    """Return a record, or None, and whether that is certain.

    Positions that the predicate does not distinguish are tried once, so the size of the domain does not matter.
    """
    start = base or {name: attribute.usual() for name, attribute in domain.attributes}
    if is_picked(domain, test, start) == picked:
        return start, True
    split = axes_of([test])
    for tried, cell in enumerate(cells(split)):
        if tried == _MOST_CELLS:
            return None, False
        if holds(test, cell) != picked:
            continue
        record = dict(start)
        for name, attribute in domain.attributes:
            record[name] = attribute.moved_into(name, start[name], {split[axis][0]: cell[axis] for axis in cell})
        try:
            domain.record(record)
        except PolicyError:
            continue  # more items than one person may have
        return record, True
    return None, True


def is_picked(domain: Domain, test: Test, record: Fields) -> bool:
    """Say whether a predicate picks a record."""
    return test.of_record(positions(domain, domain.record(record)))
