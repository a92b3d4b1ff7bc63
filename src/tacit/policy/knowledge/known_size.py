"""The number of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record
from tacit.policy.files.spec import Key
from tacit.policy.knowledge.fact import Known


@dataclass(frozen=True)
class KnownSize(Known):
    """How many people there are. `people` is the number itself, where it is known beforehand."""

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
