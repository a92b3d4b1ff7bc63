"""A policy: the domain, what must stay secret in it, what is known anyway, and whether taking part is secret.

The guarantee of a release at epsilon under a policy: for every secret edge hidden -> cover, every data set and every
set O of outputs, Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O]. Nothing is promised from cover to hidden.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tacit.errors import PolicyError, nearest
from tacit.policy.domain import Domain, Items, Value
from tacit.policy.edges import STAY_ITEMS, EdgeShape, Same
from tacit.policy.knowledge import Known, KnownSize
from tacit.policy.secrets import Everything, Secrets

PRESENCE: Final = ("public", "secret")


class _Absent:
    """The value of somebody who is not in the data."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True)
class Policy:
    """What must stay secret, about whom, and what the world already knows.

    `presence="public"`: who takes part is no secret (and so the number of people is public). `presence="secret"`: the
    value "not in the data" is added, with edges both ways. `person` names the column that says whose row it is, where
    people own several rows (of which `per_person` count); without it, every row is a person of its own.
    """

    domain: Domain
    secrets: Secrets
    known: tuple[Known, ...] = ()
    presence: str = "public"
    name: str = "policy"
    person: str | None = None
    per_person: int = 1

    def __init__(
        self,
        domain: Domain,
        secrets: Secrets,
        known: Iterable[Known] = (),
        presence: str = "public",
        name: str = "policy",
        *,
        person: str | None = None,
        per_person: int = 1,
    ) -> None:
        if not isinstance(domain, Domain):
            raise PolicyError("must be a Domain", key="domain", given=domain, fix="Write tc.Domain({...}).")
        if not isinstance(secrets, Secrets):
            raise PolicyError("must be secrets", key="secrets", given=secrets, fix="Write tc.secrets.everything().")
        if presence not in PRESENCE:
            raise PolicyError(
                "must be public or secret", key="presence", given=presence, fix=nearest(str(presence), PRESENCE)
            )
        listed = (known,) if isinstance(known, Known) else tuple(known)
        if person is not None and (not isinstance(person, str) or not person):
            raise PolicyError("must be the name of a column", key="person", given=person, fix="Leave it out.")
        if isinstance(per_person, bool) or not isinstance(per_person, int) or per_person < 1:
            raise PolicyError("must be a whole number from 1", key="per_person", given=per_person, fix="Use 1.")
        if per_person > 1 and person is None:
            raise PolicyError("needs a person column", key="per_person", given=per_person, fix="Say person='id'.")
        if not isinstance(name, str):
            raise PolicyError("must be a text", key="name", given=name, fix="Quote it.")
        secrets.check(domain)
        secrets = secrets.settled(domain)
        for fact in listed:
            if not isinstance(fact, Known):
                raise PolicyError("must be knowledge", key="known", given=fact, fix="Write tc.known.marginal(..).")
            fact.check(domain)
        sizes = {fact.people for fact in listed if isinstance(fact, KnownSize) and fact.people is not None}
        if len(sizes) > 1:
            raise PolicyError("must not say two sizes", key="known.size", given=sorted(sizes), fix="Keep one of them.")
        for field, value in (
            ("domain", domain),
            ("secrets", secrets),
            ("known", listed),
            ("presence", presence),
            ("name", name),
            ("person", person),
            ("per_person", per_person),
        ):
            object.__setattr__(self, field, value)
        self.shapes  # noqa: B018 - computed now, so that a policy that exists can be used

    @cached_property
    def shapes(self) -> tuple[EdgeShape, ...]:
        """The secret edges between present people, as shapes."""
        return tuple(self.secrets.shapes(self.domain))

    def has_edge(self, hidden: Value, cover: Value) -> bool:
        """Say whether `hidden -> cover` is a secret edge. Either side may be `ABSENT`."""
        if hidden is ABSENT or cover is ABSENT:
            return self.presence == "secret" and hidden is not cover
        a, b = self.domain.record(hidden), self.domain.record(cover)
        return a != b and self.secrets.has_edge(self.domain, a, b)

    def owned_by(self, person: str | None, per_person: int) -> Policy:
        """Return the same policy about people who own rows in this way."""
        if (person, per_person) == (self.person, self.per_person):
            return self
        return Policy(
            self.domain, self.secrets, self.known, self.presence, self.name, person=person, per_person=per_person
        )

    @property
    def moved_attributes(self) -> frozenset[str]:
        """The attributes that some secret edge changes."""
        return frozenset(
            name
            for name in self.domain
            for shape in self.shapes
            if any(shape.relation(axis.name, axis.size) != Same() for axis in self.domain.axes_of(name))
            or (isinstance(self.domain[name], Items) and shape.item_moves(name) != STAY_ITEMS)
        )

    def covers(self, weaker: Policy) -> bool:
        """Say whether every edge of the other policy is surely one of this one, so that its promise is included."""
        from tacit.policy.inclusion import includes

        return includes(self, weaker)

    def plain(self) -> Policy:
        """Return the policy of plain differential privacy over the same domain and presence."""
        return Policy(
            self.domain,
            Everything(),
            (),
            self.presence,
            f"{self.name} (differential privacy)",
            person=self.person,
            per_person=self.per_person,
        )

    def document(self) -> dict[str, Any]:
        """Return the policy as a policy file says it."""
        from tacit.policy.file import policy_document

        return policy_document(self)

    @property
    def fingerprint(self) -> str:
        """A short name for exactly this policy; the policy's own name does not count."""
        said = {key: value for key, value in self.document().items() if key != "name"}
        return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()[:32]

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file."""
        from tacit.policy.file import load_policy

        return load_policy(path)

    @classmethod
    def from_yaml(cls, text: str, *, file: str = "policy") -> Policy:
        """Read a policy from a text."""
        from tacit.policy.file import read_policy

        return read_policy(text, file=file)

    def to_yaml(self) -> str:
        """Write the policy as a text that `from_yaml` reads back."""
        from tacit.policy.file import write_policy

        return write_policy(self)

    def save(self, path: str | Path) -> None:
        """Write the policy to a file."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")

    def describe(self) -> str:
        """Say in plain words what is protected against what, with examples and warnings."""
        from tacit.policy.describe import describe

        return describe(self)
