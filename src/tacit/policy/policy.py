"""A policy: the domain, what must stay secret in it, what is known anyway, and whether taking part is secret.

The guarantee of a release at epsilon under a policy: for every secret edge hidden -> cover, every data set and every
set O of outputs, Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O]. Nothing is promised from cover to hidden.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.drawing import Held, briefly
from tacit.errors import PlanError, PolicyError, kind_of, nearest, sealed, word_or_kind
from tacit.policy.adversary import USUAL, Adversary, as_adversary
from tacit.policy.application import Application
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, positions
from tacit.policy.edges.shapes import Absence, EdgeShape
from tacit.policy.genuine import as_plain, is_genuine, stranger
from tacit.policy.knowledge import Known
from tacit.policy.secrets import Everything, Secrets, TakingPart, Union

if TYPE_CHECKING:
    from tacit.policy.edges.chains import Distance

PRESENCE: Final = ("public", "secret")


class _Absent:
    """Stands for somebody who is not in the data."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, repr=False)
class Policy(Held):
    """What must stay secret, about whom, and what the world already knows.

    `presence="public"`: who takes part is no secret (and so the number of people is public). `presence="secret"`: the
    value "not in the data" is added, with edges both ways; the family `taking_part` means the same. `person` names the
    column that says whose row it is, if people own several rows (of which `per_person` count); without it, every row
    is a different person. The rows that count are the first ones by the column `order` of those that fit the domain, or
    without `order` a choice as if at random. `item` names the column that holds the items of the domain's set, if its
    name is not that of the attribute. `adversary` names one weaker than the usual one, where what is known ties people
    together: "alike" or {"group": 4} (`policy/adversary.py`). `applications` are those
    who may ask, where that is declared.
    """

    domain: Domain
    secrets: Secrets
    known: tuple[Known, ...] = ()
    presence: str = "public"
    name: str = "policy"
    person: str | None = None
    per_person: int = 1
    order: str | None = None
    item: str | None = None
    adversary: Adversary = USUAL
    applications: tuple[Application, ...] = ()

    @sealed
    def __init__(
        self,
        domain: Domain,
        secrets: Secrets,
        known: Iterable[Known] = (),
        presence: str | None = None,
        name: str = "policy",
        *,
        person: str | None = None,
        per_person: int = 1,
        order: str | None = None,
        item: str | None = None,
        adversary: Adversary | str | Mapping[str, int] | None = None,
        applications: Iterable[Application] = (),
    ) -> None:
        if not isinstance(domain, Domain):
            raise PolicyError(f"must be a Domain, not {kind_of(domain)}", key="domain", fix="Write tc.Domain({...}).")
        if not isinstance(secrets, Secrets):
            fix = "Write tc.secrets.everything(); for pairs of values, tc.secrets.graph(pairs)."
            raise PolicyError(f"must be secrets, not {kind_of(secrets)}", key="secrets", fix=fix)
        presence, name, person, per_person, order, item = as_plain((presence, name, person, per_person, order, item))
        hides_presence = TakingPart() in secrets.families()
        if presence is None:
            presence = "secret" if hides_presence else "public"
        if not isinstance(presence, str) or presence not in PRESENCE:
            fix = nearest(presence if isinstance(presence, str) else "", PRESENCE)
            raise PolicyError("must be public or secret", key="presence", given=word_or_kind(presence), fix=fix)
        if hides_presence and presence == "public":
            rule = "must not be public where taking part is a secret"
            raise PolicyError(rule, key="presence", given=presence, fix="Leave it out.")
        listed = (known,) if isinstance(known, Known) else tuple(known) if isinstance(known, Iterable) else (known,)
        for key, column in (("person", person), ("order", order), ("item", item)):
            if column is not None and (not isinstance(column, str) or not column):
                rule, given = "must be the name of a column", word_or_kind(column)
                raise PolicyError(rule, key=key, given=given, fix="Leave it out.")
        if isinstance(per_person, bool) or not isinstance(per_person, int) or per_person < 1:
            rule = "must be a whole number from 1"
            raise PolicyError(rule, key="per_person", given=word_or_kind(per_person), fix="Use 1.")
        for key, value in (("per_person", per_person if per_person > 1 else None), ("order", order)):
            if value is not None and person is None:
                raise PolicyError("needs a person column", key=key, given=value, fix="Say person='id'.")
        sets = [attribute for attribute, kind in domain.items() if kind.is_set]
        if sets == [item]:
            item = None  # the column that is read anyway
        if not isinstance(name, str):
            raise PolicyError("must be a text", key="name", given=word_or_kind(name), fix="Quote it.")
        secrets.check(domain)
        secrets = _without_presence(secrets.canonical(domain))
        for fact in listed:
            if not isinstance(fact, Known):
                fix = "Write tc.known.marginal(..)."
                raise PolicyError(f"must be knowledge, not {kind_of(fact)}", key="known", fix=fix)
            fact.check(domain)
        sizes = {fact.declared for fact in listed if fact.declared is not None}
        if len(sizes) > 1:
            raise PolicyError("must not say two sizes", key="known", given=sorted(sizes), fix="Keep one of them.")
        against = as_adversary(adversary)
        if against.is_named and not listed:
            rule, fix = "needs something that is known, which ties people together", "Leave it out."
            raise PolicyError(rule, key="adversary", given=against.kind, fix=fix)
        if against.people is not None and any(many < against.people for many in sizes):
            rule = f"must not be a larger group than all people, of whom {min(sizes):,} are known to be there"
            raise PolicyError(rule, key="adversary", given=against.people, fix="Lower it, or leave it out.")
        declared = _declared(applications, domain)
        values = (domain, secrets, listed, presence, name, person, per_person, order, item, against, declared)
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)
        held = {name for family in secrets.families() for name in family.held}
        if moved := sorted(held & self.moved_attributes):  # with all shapes, so that a policy that exists can be used
            rule = "must be public, since people choose policies by it, and another secret of this policy changes it"
            fix = "Leave it out of the other secrets. A choice that is secret cannot decide who is protected how."
            raise PolicyError(rule, key="secrets", given=moved[0], fix=fix)
        for one in declared:
            if one.secrets is not None and not self.promised_to(one).covers(self):
                key, fix = f"applications.{one.name}.secrets", "Name the same attributes as the policy's secrets."
                raise PolicyError("must leave as it is which rows of a person count", key=key, fix=fix)

    def __repr__(self) -> str:
        return f"<policy {briefly(self.name)}: {briefly(str(self.domain))}>"

    def __str__(self) -> str:
        return self.describe().rstrip("\n")

    @cached_property
    def shapes(self) -> tuple[EdgeShape, ...]:
        """The secret edges between present people, as shapes."""
        return tuple(self.secrets.shapes(self.domain))

    @cached_property
    def absences(self) -> tuple[Absence, ...]:
        """The secret edges to and from not being in the data."""
        everybody = [Absence()] if self.presence == "secret" else []
        return tuple(dict.fromkeys([*everybody, *self.secrets.absences(self.domain)]))

    @cached_property
    def coupling_facts(self) -> tuple[Known, ...]:
        """The known facts that a secret edge might change, so that others must have changed with it.

        Never too few: a fact is left out if nobody can be absent and no edge changes an attribute that it is about.
        """
        moved = self.moved_attributes
        return tuple(fact for fact in dict.fromkeys(self.known) if self.absences or fact.about & moved)

    @property
    def known_people(self) -> int | None:
        """How many people there are, if that is declared."""
        return next((fact.declared for fact in self.known if fact.declared is not None), None)

    def has_edge(self, hidden: Value, cover: Value) -> bool:
        """Say whether `hidden -> cover` is a secret edge. Either side may be `ABSENT`."""
        if hidden is ABSENT:
            return cover is not ABSENT and any(absence.joins for absence in self.absences)
        if cover is ABSENT:
            return self.may_leave(hidden)
        a, b = self.domain.record(hidden), self.domain.record(cover)
        return a != b and self.secrets.has_edge(self.domain, a, b)

    def may_leave(self, hidden: Value) -> bool:
        """Say whether somebody with this record must look as if they were not in the data."""
        at = positions(self.domain, self.domain.record(hidden))
        return any(absence.only_from is None or absence.only_from.of_record(at) for absence in self.absences)

    def promised_to(self, application: Application) -> Policy:
        """Return the policy that what an application is shown keeps: these secrets and its own."""
        secrets = self.secrets if application.secrets is None else self.secrets | application.secrets
        return replace(self, secrets=secrets, applications=())

    def application(self, name: str) -> Application:
        """Return a declared application, or refuse."""
        found = next((one for one in self.applications if one.name == name), None)
        if found is None:
            names = [one.name for one in self.applications]
            rule = "must be an application that the policy declares"
            fix = f"Nothing was charged. {nearest(name, names)} Or declare it below `applications` of the policy."
            if not name:
                rule, fix = (
                    f"must be named: the policy declares who may ask ({', '.join(names)})",
                    "Nothing was charged.",
                )
            raise PlanError(rule, key="application", given=name or "nobody", fix=fix)
        return found

    def check_open(self, what: str) -> None:
        """Refuse what names no application, where the policy declares who may ask."""
        if self.applications:
            rule = f"must not be declared for {what}, which names nobody who asks"
            fix = "Nothing was charged. Use a policy without `applications`, or ask single questions."
            raise PlanError(rule, key="applications", fix=fix)

    def owned_by(
        self, person: str | None, per_person: int, *, order: str | None = None, item: str | None = None
    ) -> Policy:
        """Return the same policy with other owners of rows; `order` and `item` stay as they are if left out."""
        if order is None and person is not None:
            order = self.order
        item = self.item if item is None else item
        given, own = (person, per_person, order, item), (self.person, self.per_person, self.order, self.item)
        # types first: an argument of another class may define equality in its own way
        if all(type(one) is type(other) and one == other for one, other in zip(given, own, strict=True)):
            return self
        return replace(self, person=person, per_person=per_person, order=order, item=item)

    @property
    def charged(self) -> Policy:
        """The policy whose promise a plan under this one keeps, and whose budget it spends: this one itself."""
        return self

    @cached_property
    def of_one_row(self) -> Policy:
        """The same policy where one row of each person counts: what may happen to a single one of their rows."""
        return self if self.per_person == 1 else replace(self, per_person=1)

    def about(
        self,
        person: str | None = None,
        per_person: int | None = None,
        order: str | None = None,
        item: str | None = None,
    ) -> Policy:
        """Return the same policy with the owners of rows that a job or session names; what it leaves out stays.

        If it names the column of people, one row of each person counts unless it gives another number.
        """
        owner = self.person if person is None else person
        several = per_person if per_person is not None else self.per_person if person is None else 1
        return self.owned_by(owner, several, order=order, item=item)

    @property
    def _choice_in_words(self) -> tuple[str, bool]:
        """How rows are chosen, and whether items of all rows count."""
        how = "chosen as at random" if self.order is None else f"the first by {self.order}"
        return how, self.per_person == 1 and any(attribute.is_set for attribute in self.domain.values())

    @property
    def rows_in_words(self) -> str:
        """Which rows of a person count, if a person column is named."""
        return self.counted_in_words(None).replace("; in counts,", "; in counts of people,")

    def counted_in_words(self, of: str | None) -> str:
        """Say which rows of a person count in a question of people or of rows."""
        many, (how, has_items) = self.per_person, self._choice_in_words
        if has_items:
            items = "items" if self.item is None else f"items in {self.item}"
            return f"the {items} of all rows that fit the domain count, and all else of one of these rows, {how}"
        some = "one row that fits the domain counts" if many == 1 else f"up to {many:,} rows that fit the domain count"
        once = "; every one of them counts" if of == "rows" else "; in counts, each person once in each cell"
        once = "" if many == 1 else once
        return f"{some}, {how}; other rows are left out{once}"

    @property
    def scope_in_words(self) -> str:
        """The rows about which a number or an interval is exact."""
        many, (how, has_items) = self.per_person, self._choice_in_words
        if self.person is None:
            return "for the rows that fit the domain, with each cell as the domain reads it"
        if has_items:
            return f"for what counts of each {self.person}, with each cell as the domain reads it"
        some = "one that fits" if many == 1 else f"up to {many:,} that fit"
        return f"for the rows that count (of each {self.person} {some} the domain, {how})"

    @cached_property
    def moved_attributes(self) -> frozenset[str]:
        """The attributes that some secret edge changes."""
        return frozenset(name for name in self.domain for shape in self.shapes if shape.moves(self.domain, name))

    def covers(self, weaker: Policy) -> bool:
        """Say whether this policy's promise surely includes the other one's, for whole data sets with their owners."""
        from tacit.policy.inclusion import includes

        return includes(self, as_policy(weaker))

    @sealed
    def distance(self, hidden: Value, cover: Value) -> Distance:
        """Return how many secret edges lead from one record to another, with a shortest chain of them as its `path`.

        Infinity if no chain exists. The reverse distance may differ. None means somebody not in the data.
        """
        from tacit.policy.edges.chains import distance

        return distance(self, hidden, cover)

    def plain(self) -> Policy:
        """Return the policy of plain differential privacy over the same domain, in the form that fits this policy.

        If presence is public, any record may be replaced by any other. If it is secret, anybody may be added or
        removed, which is what most tools mean by differential privacy.
        """
        secrets, presence = (TakingPart(), "secret") if self.absences else (Everything(), "public")
        name = f"{self.name} (differential privacy)"
        return replace(self, secrets=secrets, known=(), presence=presence, name=name, adversary=USUAL, applications=())

    @property
    def plain_form(self) -> str:
        """What changes between neighbours under `plain`, in words."""
        return "one person added or removed" if self.absences else "one record replaced, the number of people public"

    def document(self) -> dict[str, Any]:
        """Return the policy as a policy file says it."""
        from tacit.policy.policy_file import policy_document

        return policy_document(self)

    @property
    def fingerprint(self) -> str:
        """A short digest of everything but the policy's name.

        If it matters which rows of a person count, the rule that chooses them is part of it.
        """
        content = {key: value for key, value in self.document().items() if key != "name"}
        if self.person is not None:
            from tacit.policy.inclusion import CHOICE, protects_whole_owners

            if not protects_whole_owners(self, self):  # a promise about all rows does not depend on the choice
                content["choice"] = CHOICE
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:32]

    @classmethod
    @sealed
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file."""
        from tacit.policy.policy_file import load_policy

        return load_policy(path)

    @classmethod
    @sealed
    def from_yaml(cls, text: str, *, file: str = "policy") -> Policy:
        """Read a policy from a text."""
        from tacit.policy.policy_file import read_policy

        return read_policy(text, file=file)

    def to_yaml(self) -> str:
        """Write the policy as a text that `from_yaml` reads back."""
        from tacit.policy.policy_file import write_policy

        return write_policy(self)

    def save(self, path: str | Path) -> None:
        """Write the policy to a file."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")

    def describe(self) -> str:
        """Say in plain words what is protected against what, with examples and warnings."""
        from tacit.policy.describe import describe

        return describe(self)


def _declared(given: Any, domain: Domain) -> tuple[Application, ...]:
    """Return the applications that a policy declares, or refuse them."""
    declared = tuple(given) if isinstance(given, list | tuple) else (None,)
    if not all(isinstance(one, Application) for one in declared):
        fix = "Write tc.Application('lighting', 'to switch lights on in time', asks=.., sees=..)."
        raise PolicyError("must be applications", key="applications", given=word_or_kind(given), fix=fix)
    names = [one.name for one in declared]
    for one in declared:
        one.check(domain, names)
        if names.count(one.name) > 1:
            raise PolicyError("must be declared once", key="applications", given=one.name, fix="Rename one of them.")
    return declared


def _without_presence(secrets: Secrets) -> Secrets:
    """Leave out `taking_part`, since `presence` says it; if it is the only family, keep it."""
    families = tuple(family for family in secrets.families() if family != TakingPart())
    if not families or len(families) == len(secrets.families()):
        return secrets if families else TakingPart()
    return families[0] if len(families) == 1 else Union(families)


def as_policy(given: Any, *, fix: str = "Use tc.Policy.load('policy.yaml').") -> Policy:
    """Return the argument if it is a policy; a refusal does not repeat it, since it may be rows."""
    if not isinstance(given, Policy):
        raise PolicyError(f"must be a Policy, not {kind_of(given)}", key="policy", fix=fix)
    if not is_genuine(given):
        raise PolicyError(
            "must be a tc.Policy itself, with a domain, secrets and knowledge of tc's own kinds; "
            f"found {stranger(given)}",
            key="policy",
            fix="One of another class might have other edges than it says. Write tc.Policy(domain, secrets).",
        )
    return given
