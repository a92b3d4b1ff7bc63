"""Policies that people choose: each person has the secrets of the policy that their own record names.

Guarantee   The edges are those hidden -> cover that leave the column `by` as it is and are edges of the policy that it
            names. So one release promises each person what their own policy says, all at the same epsilon.
Assumes     The choice is public: no edge of the whole policy may change `by`, and policies that do are refused.
Why         A person keeps their column, so every edge belongs to one policy, and a union of edges is promised at once.
            The choice cannot be private while policies differ: if a -> b is an edge for whoever chose `strict`, and
            choices looked like each other, then (open, a) -> (strict, a) -> (strict, b) -> (open, b) would be a chain.
            At three times epsilon everybody would have the secrets of everybody else, and nobody a policy of their own.
Checked by  tests/property/test_chosen_policies.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from tacit.errors import PolicyError, nearest, word_or_kind
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, Record
from tacit.policy.edges.relations import Same
from tacit.policy.edges.shapes import Absence, EdgeShape
from tacit.policy.keys import TEXT, Key, Keys, Row, together
from tacit.policy.secrets.family import (
    ExamplePair,
    Fields,
    PolicyContext,
    Promise,
    Secrets,
    listed_briefly,
    plain,
    plain_value,
    read_value,
    restricted_to,
)
from tacit.policy.where import Where, col
from tacit.policy.yaml_entries import YamlEntry

NOTHING: Final = "nothing"  # the policy of people who have no secret
_KEY: Final = "secrets.policies"
_FAMILIES: Final = {"anyOf": [{"const": NOTHING}, {"$ref": "#/$defs/families"}]}
KEYS: Final = Keys(
    Key("by", TEXT, "The public attribute that says which policy somebody chose.", read=together, required=True),
    Key(
        "named",
        {"type": "object", "minProperties": 1, "additionalProperties": _FAMILIES},
        "The secrets of each policy, or nothing.",
        read=together,
        required=True,
    ),
    Key(
        "chosen",
        {"type": "object", "minProperties": 1, "additionalProperties": TEXT},
        "The policy of each value of `by`.",
        "each value is the name of a policy",
        read=together,
    ),
)


@dataclass(frozen=True)
class Policies(Secrets):
    """The edges of the policy that a record names, of those that leave its name as it is; None has no edges."""

    by: str
    named: tuple[tuple[str, Secrets | None], ...]
    chosen: tuple[tuple[Value, str], ...] = ()
    keyword: ClassVar[str] = "policies"
    example: ClassVar[str] = "{policies: {by: consent, named: {given: nothing, refused: everything}}}"
    rows: ClassVar[tuple[Row, ...]] = (
        Row(
            "policies",
            "`policies: {by: consent, named: {given: nothing, refused: everything}}`",
            "everybody has the secrets of the policy that they chose; the choice is public",
            KEYS.schema(),
        ),
    )

    @property
    def held(self) -> frozenset[str]:
        return frozenset([self.by])

    def check(self, domain: Domain) -> None:
        attribute, names = domain.attribute(self.by, key=f"{_KEY}.by"), [name for name, _ in self.named]
        if attribute.is_set or len(attribute.axes(self.by)) > 1:
            rule, fix = "must have one value for each person", "Name an attribute such as categories."
            raise PolicyError(rule, key=f"{_KEY}.by", given=self.by, fix=fix)
        if not any(family is not None for _, family in self.named):
            fix = "Give one of them a family of secrets."
            raise PolicyError("must have a policy that protects something", key=f"{_KEY}.named", given=names, fix=fix)
        if attribute.size > max(len(names), len(self.chosen)):
            fix = f"Say in `chosen` which of {listed_briefly(names)} each value stands for."
            rule = f"must say a policy for each of the {attribute.size:,} values of {self.by}"
            raise PolicyError(rule, key=_KEY, given=len(self.chosen or names), fix=fix)
        choice = self._choice(domain)
        for value, name in choice.items():
            if name not in names:
                rule, fix = f"must name a policy: {self.by} {value} does not", f"{nearest(name, names)} Or declare it."
                raise PolicyError(rule, key=f"{_KEY}.{'chosen' if self.chosen else 'named'}", given=name, fix=fix)
        for name, family in self.named:
            if name not in choice.values():
                fix = f"Remove it, or let a value of {self.by} stand for it."
                raise PolicyError("must be a policy that somebody may choose", key=f"{_KEY}.named", given=name, fix=fix)
            if family is None:
                continue
            family.check(domain)
            for shape in family.shapes(domain):
                moves = [axis for axis in domain.axes_of(self.by) if axis.name in shape.relations]
                if any(shape.relation(axis).can_move for axis in moves):
                    rule = f"must not change {self.by}, which says who chose which policy and is public"
                    raise PolicyError(rule, key=f"{_KEY}.named.{name}", fix=f"Leave {self.by} out of its secrets.")

    def _choice(self, domain: Domain) -> dict[Value, str]:
        """Return the name of the policy that each value of the column stands for."""
        attribute = domain[self.by]
        if not self.chosen:
            return {value: str(value) for value in attribute.every_value()}
        given = {attribute.canonical(value): name for value, name in self.chosen}
        missing = [value for value in attribute.every_value() if value not in given]
        if missing:
            fix = f"Add {', '.join(map(str, missing[:3]))}."
            raise PolicyError(f"must say what every value of {self.by} stands for", key=f"{_KEY}.chosen", fix=fix)
        return given

    def _people(self, domain: Domain) -> Iterator[tuple[str, tuple[Value, ...], Secrets | None]]:
        """Go through the policies, with the values of those who chose them."""
        choice = self._choice(domain)
        for name, family in self.named:
            yield name, tuple(value for value, chosen in choice.items() if chosen == name), family

    def _members(self, domain: Domain) -> Iterator[Secrets]:
        """Go through the secrets of those who have some, each for these people alone."""
        for _, values, family in self._people(domain):
            if family is not None:
                yield family.only_for(col(self.by).is_in(values))

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        at = list(domain).index(self.by)
        families = {value: family for _, values, family in self._people(domain) for value in values}
        family = families[hidden[at]]
        return hidden[at] == cover[at] and family is not None and family.has_edge(domain, hidden, cover)

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        stays = {axis.name: Same() for axis in domain.axes_of(self.by)}
        return [
            replace(shape, relations={**shape.relations, **stays})
            for member in self._members(domain)
            for shape in member.shapes(domain)
        ]

    def absences(self, domain: Domain) -> list[Absence]:
        return [absence for member in self._members(domain) for absence in member.absences(domain)]

    def _each(self, change: Callable[[Secrets], Secrets]) -> Policies:
        named = ((name, None if family is None else change(family)) for name, family in self.named)
        return replace(self, named=tuple(named))

    def only_for(self, people: Where) -> Secrets:
        return self._each(lambda family: family.only_for(people))

    def canonical(self, domain: Domain) -> Secrets:
        found = self._each(lambda family: family.canonical(domain))
        return replace(found, chosen=tuple(self._choice(domain).items()) if self.chosen else ())

    def document(self) -> Any:
        named = {name: NOTHING if family is None else family.document() for name, family in self.named}
        chosen = {"chosen": {plain(value): name for value, name in self.chosen}} if self.chosen else {}
        return {self.keyword: {"by": self.by, "named": named, **chosen}}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        # here, not above: that module reads every family
        from tacit.policy.policy_file import read_secrets

        places = KEYS.entries(entry)
        by = places["by"].text()
        with places["by"].blamed():
            attribute = domain.attribute(by)
        named = {
            name: None if one.is_single and one.text() == NOTHING else read_secrets(one, domain)
            for name, one in places["named"].mapping().items()
        }
        chosen = places["chosen"].pairs() if "chosen" in places else []
        return policies(by, named, chosen={read_value(value, attribute): name.text() for value, name in chosen})

    def promise(self, domain: Domain) -> Promise:
        others = Domain({name: attribute for name, attribute in domain.attributes if name != self.by})
        parts = []
        for name, values, family in self._people(domain):
            words = "nothing" if family is None else "; and ".join(one.words(others) for one in family.families())
            called = f" ({name})" if self.chosen else ""
            parts.append(f"of people whose {self.by} is {_said(values)}{called}, {words}")
        return Promise(
            f"what each person's own policy says, at the same epsilon; {self.by} says which it is, and stays as it is: "
            + "; ".join(parts)
        )

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        yield (
            f"`policies`: which policy somebody chose is public. Whether {self.by} may be known must not hang on what "
            "people want to hide: that somebody asks for protection may be telling."
        )
        for name, values, family in self._people(domain):
            if family is None:
                yield f"`policies` protects nothing of people whose {self.by} is {_said(values)}."
            else:
                for one in family.families():
                    yield from (f"In policy {name}: {sentence}" for sentence in one.warnings(domain, setting))

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        for _, values, family in self._people(domain):
            start = {**base, self.by: plain(values[0])}
            for one in () if family is None else family.families():
                for found in one.candidates(domain, start):
                    if found.hidden is not None and found.hidden.get(self.by) == start[self.by]:
                        chose = f"{self.by} is {values[0]}, and "
                        yes, no = (why and chose + why for why in (found.if_protected, found.if_not))
                        yield replace(found, if_protected=yes, if_not=no)
            if family is None:
                name = next(name for name in domain if name != self.by)
                for other in domain[name].others(start[name])[:1]:
                    yield ExamplePair(start, {**start, name: other}, if_not=f"whoever chose {values[0]} has no secret")


def _said(values: Sequence[Value]) -> str:
    return listed_briefly(map(str, values), "or")


def policies(
    by: str,
    named: Mapping[str, Secrets | None],
    *,
    chosen: Mapping[Value, str] | None = None,
    where: Where | str | None = None,
) -> Secrets:
    """Protect each person by the policy that they chose: different people have different secrets in one release.

    Args:
        by: The public attribute that says who chose which policy.
        named: The secrets of each policy by its name; None for people who have no secret.
        chosen: The policy of each value of `by`; left out, each value is the name of a policy.
        where: Only people with this have the secret.
    """
    for key, given in (("named", named), ("chosen", {} if chosen is None else chosen)):
        if not isinstance(given, Mapping) or not isinstance(by, str):
            fix = 'Write policies("consent", {"given": None, "refused": tc.secrets.everything()}).'
            raise PolicyError("must be a mapping", key=f"{_KEY}.{key}", given=word_or_kind(given), fix=fix)
    for name, family in named.items():
        if not isinstance(name, str) or not (family is None or isinstance(family, Secrets)):
            fix = "Write tc.secrets.everything(), or None for nothing."
            raise PolicyError("must be secrets", key=f"{_KEY}.named", given=word_or_kind(name), fix=fix)
        if any(isinstance(one, Policies) for one in (() if family is None else family.families())):
            fix = "Write one list of policies, by an attribute that says all."
            raise PolicyError("must not choose once more", key=f"{_KEY}.named", given=name, fix=fix)
    listed = tuple((plain_value(value), name) for value, name in (chosen or {}).items())
    return restricted_to(Policies(by, tuple(named.items()), listed), where)
