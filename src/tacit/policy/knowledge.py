"""What the world already knows about the data set.

A fact is a set of counts of people: of all of them, of those who satisfy a predicate, or of those in each cell of a
histogram. Knowledge couples people: if the number of hiv patients is public and one record changes, another must have
changed as well. So knowledge raises the largest step (`plan/sensitivity/coupling.py`) and never makes a release
cheaper; in return a release may use the known numbers exactly.

A new fact is a class and its name in `FACTS` below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record, positions
from tacit.policy.genuine import settle
from tacit.policy.keys import NAMES, PREDICATE, Key, Schema, mapping
from tacit.policy.secrets.family import read_names
from tacit.policy.where import Test, Where, where


class Known(ABC):
    """Something public about the data set."""

    key: ClassVar[Key]  # its word in a policy file with its value; the reader also takes the domain
    example: ClassVar[str]  # in a policy file
    alone: ClassVar[bool] = False  # whether the word may stand alone

    def __post_init__(self) -> None:
        settle(self)

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""

    # ---- what is counted ----

    @property
    def histogram(self) -> tuple[str, ...]:
        """The attributes whose cells are counted; none where one number is known."""
        return ()

    @property
    def picked(self) -> Where | None:
        """Who is counted; None means everybody."""
        return None

    @property
    def is_size(self) -> bool:
        """Whether it is the number of all people."""
        return not self.histogram and self.picked is None

    @property
    def declared(self) -> int | None:
        """The number of people, if it is declared."""
        return None

    @property
    def about(self) -> frozenset[str]:
        """The attributes that the fact depends on."""
        return frozenset(self.histogram)

    def tests(self, domain: Domain) -> list[Test]:
        """Return the predicates that it counts; none if it counts single values."""
        return []

    @abstractmethod
    def added_by(self, record: Record | None, domain: Domain) -> Any:
        """Return what one person adds to the known numbers; None is somebody not in the data."""

    # ---- policy files and words ----

    @classmethod
    def schemas(cls) -> list[Schema]:
        """Return the JSON schemas of all ways to write it."""
        name = cls.key.name
        alone = [{"const": name, "description": cls.key.meaning}] if cls.alone else []
        return [*alone, mapping({name: cls.key.schema}, [name], cls.key.meaning)]

    @classmethod
    def row(cls) -> str:
        """Return the line of the table in docs/files.md."""
        return f"| {cls.key.name} | `{cls.example}` | {cls.key.meaning} |"

    @abstractmethod
    def document(self) -> Any:
        """Return what a policy file says for it."""

    @abstractmethod
    def words(self) -> str:
        """Say it in plain words."""


@dataclass(frozen=True)
class KnownSize(Known):
    """The number of people: `people`, or None if nobody has declared it."""

    people: int | None = None
    key: ClassVar[Key] = Key(
        "size",
        {"type": "integer", "minimum": 0},
        "How many people there are. The number itself may be left out.",
        read=lambda entry, _: KnownSize(entry.whole()),
    )
    example: ClassVar[str] = "{size: 1200}"
    alone: ClassVar[bool] = True

    def check(self, domain: Domain) -> None:
        if self.people is not None and (isinstance(self.people, bool) or not isinstance(self.people, int)):
            raise PolicyError("must be a whole number", key="known.size", given=self.people, fix="Leave it out.")
        if self.people is not None and self.people < 0:
            raise PolicyError("must not be negative", key="known.size", given=self.people, fix="Leave it out.")

    @property
    def declared(self) -> int | None:
        return self.people

    def added_by(self, record: Record | None, domain: Domain) -> Any:
        return int(record is not None)

    def document(self) -> Any:
        return self.key.name if self.people is None else {self.key.name: self.people}

    def words(self) -> str:
        return "how many people there are" + (f" ({self.people:,})" if self.people is not None else "")


@dataclass(frozen=True)
class KnownMarginal(Known):
    """The whole histogram of some attributes."""

    names: tuple[str, ...]
    key: ClassVar[Key] = Key(
        "marginal",
        NAMES,
        "The whole histogram of some attributes.",
        read=lambda entry, domain: KnownMarginal(tuple(read_names(entry, domain))),
    )
    example: ClassVar[str] = "{marginal: [disease]}"

    def check(self, domain: Domain) -> None:
        key, given = "known.marginal", list(self.names)
        for name in self.names:
            if not isinstance(name, str):
                raise PolicyError("must be texts", key=key, given=name, fix="Write marginal('a', 'b').")
        if not self.names or len(set(self.names)) < len(self.names):
            raise PolicyError("must name different attributes", key=key, given=given, fix="List each once.")
        for name in self.names:
            if domain.attribute(name, key=key).is_set:
                raise PolicyError("must not be a set of items", key=key, given=name, fix="Use count.")

    @property
    def histogram(self) -> tuple[str, ...]:
        return self.names

    def added_by(self, record: Record | None, domain: Domain) -> Any:
        fields = dict(zip(domain, record, strict=True)) if record is not None else {}
        return tuple(fields[name] for name in self.names) if fields else None

    def document(self) -> Any:
        return {self.key.name: list(self.names)}

    def words(self) -> str:
        return f"the histogram of {' x '.join(self.names)}"


@dataclass(frozen=True)
class KnownCount(Known):
    """How many people a predicate picks."""

    where: Where
    key: ClassVar[Key] = Key(
        "count", PREDICATE, "How many people a predicate picks.", read=lambda entry, _: KnownCount(where(entry.text()))
    )
    example: ClassVar[str] = '{count: "age < 18"}'

    def check(self, domain: Domain) -> None:
        self.where.check(domain, key="known.count")

    @property
    def picked(self) -> Where | None:
        return self.where

    @property
    def about(self) -> frozenset[str]:
        return self.where.columns()

    def tests(self, domain: Domain) -> list[Test]:
        return [self.where.compile(domain)]

    def added_by(self, record: Record | None, domain: Domain) -> Any:
        return int(record is not None and self.where.compile(domain).of_record(positions(domain, record)))

    def document(self) -> Any:
        return {self.key.name: str(self.where)}

    def words(self) -> str:
        return f"how many people satisfy {self.where}"


FACTS: Final[dict[str, type[Known]]] = {one.key.name: one for one in (KnownSize, KnownMarginal, KnownCount)}


def size(people: int | None = None) -> Known:
    """Declare that the number of people is public."""
    return KnownSize(people)


def marginal(*names: str) -> Known:
    """Declare that the histogram of these attributes is public."""
    return KnownMarginal(tuple(names))


def count(where_picked: Where | str) -> Known:
    """Declare that the number of people that a predicate picks is public."""
    return KnownCount(where(where_picked))


__all__ = ["FACTS", "Known", "KnownCount", "KnownMarginal", "KnownSize", "count", "marginal", "size"]


def __dir__() -> list[str]:
    """Return what a user may want to complete: the facts."""
    return ["count", "marginal", "size"]
