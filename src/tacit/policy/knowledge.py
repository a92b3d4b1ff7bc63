"""What the world already knows about the data set: its size, whole marginals, counts of predicates.

Knowledge couples people: if the number of hiv patients is public and one record changes, another must have changed
with it. So knowledge never makes a release cheaper by itself, it raises the largest step
(`plan/sensitivity/coupling.py`), and in return a release may use the known numbers exactly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record, positions
from tacit.policy.genuine import settle
from tacit.policy.where import Test, Where, where


class Known(ABC):
    """Something public about the data set."""

    keyword: ClassVar[str]

    def __post_init__(self) -> None:
        settle(self)

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse what the domain does not have."""

    @property
    @abstractmethod
    def about(self) -> frozenset[str]:
        """The attributes that it is about."""

    def tests(self, domain: Domain) -> list[Test]:
        """Return the predicates that it counts by; none where every value counts by itself."""
        return []

    @abstractmethod
    def added_by(self, record: Record | None, domain: Domain) -> Any:
        """Return what one person adds to the known numbers; None is somebody not in the data."""

    @abstractmethod
    def document(self) -> Any:
        """Return what a policy file says for it."""

    @abstractmethod
    def words(self) -> str:
        """Say it in plain words."""


@dataclass(frozen=True)
class KnownSize(Known):
    """How many people there are. `people` is the number itself, where it is known beforehand."""

    people: int | None = None
    keyword: ClassVar[str] = "size"

    def check(self, domain: Domain) -> None:
        """Refuse an invalid number."""
        if self.people is not None and (isinstance(self.people, bool) or not isinstance(self.people, int)):
            raise PolicyError("must be a whole number", key="known.size", given=self.people, fix="Leave it out.")
        if self.people is not None and self.people < 0:
            raise PolicyError("must not be negative", key="known.size", given=self.people, fix="Leave it out.")

    @property
    def about(self) -> frozenset[str]:
        """No attribute: who is in the data."""
        return frozenset()

    def added_by(self, record: Record | None, domain: Domain) -> Any:
        """Return one for whoever is in the data."""
        return int(record is not None)

    def document(self) -> Any:
        """Return what a policy file says for it."""
        return self.keyword if self.people is None else {self.keyword: self.people}

    def words(self) -> str:
        """Say it in plain words."""
        return "how many people there are" + (f" ({self.people:,})" if self.people is not None else "")


@dataclass(frozen=True)
class KnownMarginal(Known):
    """The whole histogram of some attributes."""

    names: tuple[str, ...]
    keyword: ClassVar[str] = "marginal"

    def check(self, domain: Domain) -> None:
        """Refuse unknown names."""
        for name in self.names:
            if not isinstance(name, str):
                raise PolicyError("must be texts", key="known.marginal", given=name, fix="Write marginal('a', 'b').")
        if not self.names or len(set(self.names)) < len(self.names):
            raise PolicyError(
                "must name different attributes", key="known.marginal", given=list(self.names), fix="List each once."
            )
        for name in self.names:
            if domain.attribute(name, key="known.marginal").is_set:
                raise PolicyError("must not be a set of items", key="known.marginal", given=name, fix="Use count.")

    @property
    def about(self) -> frozenset[str]:
        """The attributes of the histogram."""
        return frozenset(self.names)

    def added_by(self, record: Record | None, domain: Domain) -> Any:
        """Return the cell that a person is in."""
        said = dict(zip(domain, record, strict=True)) if record is not None else {}
        return tuple(said[name] for name in self.names) if said else None

    def document(self) -> Any:
        """Return what a policy file says for it."""
        return {self.keyword: list(self.names)}

    def words(self) -> str:
        """Say it in plain words."""
        return f"the histogram of {' x '.join(self.names)}"


@dataclass(frozen=True)
class KnownCount(Known):
    """How many people a predicate picks."""

    where: Where
    keyword: ClassVar[str] = "count"

    def check(self, domain: Domain) -> None:
        """Refuse predicates that the domain cannot answer."""
        try:
            self.where.compile(domain)
        except PolicyError as refusal:
            raise refusal.located(key="known.count") from None

    @property
    def about(self) -> frozenset[str]:
        """The attributes that the predicate asks about."""
        return self.where.columns()

    def tests(self, domain: Domain) -> list[Test]:
        """Return the predicate."""
        return [self.where.compile(domain)]

    def added_by(self, record: Record | None, domain: Domain) -> Any:
        """Return one for whoever is picked."""
        return int(record is not None and self.where.compile(domain).of_record(positions(domain, record)))

    def document(self) -> Any:
        """Return what a policy file says for it."""
        return {self.keyword: str(self.where)}

    def words(self) -> str:
        """Say it in plain words."""
        return f"how many people have {self.where}"


def size(people: int | None = None) -> Known:
    """Declare that the number of people is public."""
    return KnownSize(people)


def marginal(*names: str) -> Known:
    """Declare that the histogram of these attributes is public."""
    return KnownMarginal(tuple(names))


def count(where_picked: Where | str) -> Known:
    """Declare that the number of people that a predicate picks is public."""
    return KnownCount(where(where_picked))


__all__ = ["Known", "KnownCount", "KnownMarginal", "KnownSize", "count", "marginal", "size"]


def __dir__() -> list[str]:
    """Return what a user may want to complete: the facts."""
    return ["count", "marginal", "size"]
