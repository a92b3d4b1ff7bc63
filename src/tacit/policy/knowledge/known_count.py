"""The number of people whom a predicate picks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record, positions
from tacit.policy.files.spec import PREDICATE, Key
from tacit.policy.knowledge.fact import Known
from tacit.policy.where import Test, Where, where


@dataclass(frozen=True)
class KnownCount(Known):
    """How many people a predicate picks."""

    where: Where
    key: ClassVar[Key] = Key(
        "count", PREDICATE, "How many people a predicate picks.", read=lambda entry, _: KnownCount(where(entry.text()))
    )
    example: ClassVar[str] = '{count: "age < 18"}'

    def check(self, domain: Domain) -> None:
        """Refuse predicates that the domain cannot answer."""
        try:
            self.where.compile(domain)
        except PolicyError as refusal:
            raise refusal.located(key="known.count") from None

    @property
    def picked(self) -> Where | None:
        return self.where

    @property
    def about(self) -> frozenset[str]:
        """The attributes that the predicate asks about."""
        return self.where.columns()

    def tests(self, domain: Domain) -> list[Test]:
        return [self.where.compile(domain)]

    def added_by(self, record: Record | None, domain: Domain) -> Any:
        """Return one for whoever is picked."""
        return int(record is not None and self.where.compile(domain).of_record(positions(domain, record)))

    def document(self) -> Any:
        return {self.key.name: str(self.where)}

    def words(self) -> str:
        return f"how many people satisfy {self.where}"
