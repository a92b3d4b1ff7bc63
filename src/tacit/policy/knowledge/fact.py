"""What every known fact says about itself: one method for each behaviour.

A fact is a set of counts of people: of all of them, of those whom a predicate picks, or of those in each cell of a
histogram.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tacit.policy.domain import Domain, Record
from tacit.policy.files.spec import Key, Schema, mapping
from tacit.policy.genuine import settle
from tacit.policy.where import Test, Where


class Known(ABC):
    """Something public about the data set."""

    key: ClassVar[Key]  # its word in a policy file, and what stands there; the reader is told the domain
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
        """Who is counted; None for everybody."""
        return None

    @property
    def is_size(self) -> bool:
        """Whether it is the number of all people."""
        return not self.histogram and self.picked is None

    @property
    def declared(self) -> int | None:
        """How many people there are, if it says so."""
        return None

    @property
    def about(self) -> frozenset[str]:
        """The attributes that it is about."""
        return frozenset(self.histogram)

    def tests(self, domain: Domain) -> list[Test]:
        """Return the predicates that it counts by; none where every value counts by itself."""
        return []

    @abstractmethod
    def added_by(self, record: Record | None, domain: Domain) -> Any:
        """Return what one person adds to the known numbers; None is somebody not in the data."""

    # ---- policy files and words ----

    @classmethod
    def schemas(cls) -> list[Schema]:
        """Return the JSON schemas of all ways to write it."""
        name = cls.key.name
        alone = [{"const": name, "description": cls.key.says}] if cls.alone else []
        return [*alone, mapping({name: cls.key.schema}, [name], cls.key.says)]

    @classmethod
    def row(cls) -> str:
        """Return the line of the table in docs/files.md."""
        return f"| {cls.key.name} | `{cls.example}` | {cls.key.says} |"

    @abstractmethod
    def document(self) -> Any:
        """Return what a policy file says for it."""

    @abstractmethod
    def words(self) -> str:
        """Say it in plain words."""
