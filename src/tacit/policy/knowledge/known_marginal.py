"""The whole histogram of some attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, Record
from tacit.policy.files.spec import NAMES, Key
from tacit.policy.knowledge.fact import Known
from tacit.policy.secrets.family import read_names


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
    def histogram(self) -> tuple[str, ...]:
        return self.names

    def added_by(self, record: Record | None, domain: Domain) -> Any:
        """Return the cell that a person is in."""
        said = dict(zip(domain, record, strict=True)) if record is not None else {}
        return tuple(said[name] for name in self.names) if said else None

    def document(self) -> Any:
        return {self.key.name: list(self.names)}

    def words(self) -> str:
        return f"the histogram of {' x '.join(self.names)}"
