"""The edges of several families together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record
from tacit.policy.edges.shapes import Absence, EdgeShape
from tacit.policy.files.yaml_entries import YamlEntry
from tacit.policy.secrets.family import Promise, Secrets
from tacit.policy.where import Where


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
