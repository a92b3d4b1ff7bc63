"""Families made of families: several together, or the edges of one that start at some people only.

An edge `hidden -> cover` of a family is one of some people if `hidden` satisfies their predicate; `cover` may be
anybody. Whoever the predicate does not pick has no such secret (Blowfish's privacy-agnostic people). Where an edge
changes what the predicate asks about, its cover may lie outside, and then the way back is no edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record, positions
from tacit.policy.edges.shapes import Absence, EdgeShape, axes_of, cells, holds
from tacit.policy.keys import Row
from tacit.policy.secrets.family import ExamplePair, Fields, PolicyContext, Promise, Secrets
from tacit.policy.where import Test, Where
from tacit.policy.yaml_entries import YamlEntry


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
        """Say whether some member has the edge."""
        return any(member.has_edge(domain, hidden, cover) for member in self.members)

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return the shapes of all members."""
        return [shape for member in self.members for shape in member.shapes(domain)]

    def absences(self, domain: Domain) -> list[Absence]:
        """Return the edges to and from absence of all members."""
        return [absence for member in self.members for absence in member.absences(domain)]

    def only_for(self, people: Where) -> Secrets:
        """Return the union of what is left of every member."""
        return Union(tuple(family for member in self.members for family in member.only_for(people).families()))

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        """Return what the members keep."""
        kept = [found for member in self.members if (found := member.without_attributes(names, domain)) is not None]
        return Union(tuple(kept)) if kept else None

    def canonical(self, domain: Domain) -> Secrets:
        """Return the union of the canonical members; a union of one is that one."""
        members = tuple(family for member in self.members for family in member.canonical(domain).families())
        return members[0] if len(members) == 1 else Union(members)

    def document(self) -> Any:
        return [member.document() for member in self.members]

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        """Refuse: a union is a list, and has no word."""
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
        """Refuse what the family refuses, and predicates that the domain cannot answer."""
        self.family.check(domain)
        try:
            self.where.compile(domain)
        except PolicyError as refusal:
            raise refusal.located(key=f"secrets.{self.called}.where") from None

    def _picks(self, domain: Domain, record: Record) -> bool:
        return self.where.compile(domain).of_record(positions(domain, record))

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        """Say whether it is an edge of the family, and the hidden record is picked."""
        return self.family.has_edge(domain, hidden, cover) and self._picks(domain, hidden)

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return the family's shapes, with the condition on the hidden side."""
        test = self.where.compile(domain)
        return [shape.only_for(test) for shape in self.family.shapes(domain)]

    def only_for(self, people: Where) -> Secrets:
        """Return the edges of those whom both predicates pick."""
        return SomePeople(self.family, self.where & people)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        """Return what the family keeps, of the same people."""
        kept = self.family.without_attributes(names, domain)
        return None if kept is None else kept.only_for(self.where)

    def canonical(self, domain: Domain) -> Secrets:
        """Return the canonical family, of the same people."""
        return self.family.canonical(domain).only_for(self.where)

    def document(self) -> Any:
        said = self.family.document()
        return {**(said if isinstance(said, dict) else {said: None}), self.keyword: str(self.where)}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        """Refuse: `where` stands beside the word of a family."""
        raise entry.refuse("must stand beside a family", fix='Write {within: {age: 5}, where: "smoker == True"}.')

    def promise(self, domain: Domain) -> Promise:
        said = self.family.promise(domain)
        return Promise(
            f"of people for whom {self.where}, {said.protected}",
            f"{said.open}; of the others nothing by this",
            f"{said.weaker}; of the others nothing by this",
        )

    def why_empty(self, domain: Domain) -> str:
        """Say why there is no edge."""
        return self.family.why_empty(domain) or why_nobody(domain, self.where)

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        """Say that others are not protected, and where edges lead out of the people who are."""
        yield f"`{self.called}` with `where` protects nobody outside `{self.where}`."
        changed = sorted(name for name in self.where.columns() if name in self.moved(domain))
        if changed:
            yield (
                f"An edge of `{self.called}` may change {', '.join(changed)} and so lead to somebody outside "
                f"`{self.where}`; no edge leads back, so that somebody is outside is not protected."
            )
        # chains of edges may end where somebody is no longer picked, so nothing is said about their length
        yield from self.family.warnings(domain, replace(setting, known=True) if changed else setting)

    def moved(self, domain: Domain) -> list[str]:
        """Return the attributes that an edge may change."""
        return [name for name in domain if any(shape.moves(domain, name) for shape in self.family.shapes(domain))]

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        """Yield the family's pairs of somebody who is picked, and one of somebody who is not."""
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
    """Return a record, or None and whether there surely is none.

    Positions that the predicate cannot tell apart are tried once, so the size of the domain does not matter.
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
