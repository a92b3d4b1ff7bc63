"""A policy in plain words, for the person who has to sign it: `tacit check`.

Every example is a pair of whole records and was asked of the policy itself (`Policy.has_edge`) before it is shown, so
that the words cannot drift away from the edges. Nothing goes through the domain value by value: a domain of 10^12
records or 41,270 items is described as quickly as a small one.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from tacit.errors import PolicyError
from tacit.policy.domain import Domain
from tacit.policy.edges.chains import distance
from tacit.policy.edges.shapes import Absence, axes_of
from tacit.policy.knowledge import Known
from tacit.policy.pair import record_words
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import Everything, Secrets, TakingPart
from tacit.policy.secrets.family import MOST_NAMES, ExamplePair, Fields, PolicyContext, listed_briefly

_MOST_EXAMPLES: Final = 12  # of each kind
_WIDTH: Final = 100
_FEW: Final = 12  # positions of one attribute that are tried with each other
_EFFORT: Final = 1000  # for one example: a chain that is harder to find is not claimed


@dataclass(frozen=True)
class Example:
    """Two records, and whether somebody with the first must look almost as if they had the second.

    Records are given by attribute, ready for JSON: cells and sets of items are lists, None is "not in the data".
    `times` is how many times the epsilon is surely enough: 1 for a secret edge, more for a chain of edges, None if no
    chain exists or none is known. `told_apart`: surely no chain exists, so that nothing at all is promised.
    """

    hidden: Fields | None
    cover: Fields | None
    protected: bool
    reason: str
    times: int | None = None
    told_apart: bool = False

    def document(self) -> dict[str, Any]:
        """Return the example as plain data."""
        return {
            "hidden": self.hidden,
            "cover": self.cover,
            "protected": self.protected,
            "reason": self.reason,
            "times": self.times,
            "told_apart": self.told_apart,
        }


def protected_examples(policy: Policy) -> list[Example]:
    """Return pairs of records that the policy protects and pairs that it does not, each asked of the policy itself."""
    base = {name: attribute.usual() for name, attribute in policy.domain.attributes}
    found: list[Example] = []
    for candidate in _all_candidates(policy, base):
        sides = [ABSENT if side is None else side for side in (candidate.hidden, candidate.cover)]
        try:
            protected = policy.has_edge(*sides)
        except PolicyError:
            continue  # a bound on the number of items is the only thing that a built record can break
        if protected and candidate.family is not None and None not in (candidate.hidden, candidate.cover):
            records = [policy.domain.record(side) for side in sides]
            if not candidate.family.has_edge(policy.domain, *records):
                continue  # true, but for the reason of another family
        reason = candidate.if_protected if protected else candidate.if_not
        known = any((e.hidden, e.cover) == (candidate.hidden, candidate.cover) for e in found)
        if reason and not known and sum(e.protected == protected for e in found) < _MOST_EXAMPLES:
            times, apart = (1, False) if protected else _through_a_chain(policy, *sides)
            found.append(Example(candidate.hidden, candidate.cover, protected, reason, times, apart))
    return sorted(found, key=lambda example: not example.protected)


def _through_a_chain(policy: Policy, hidden: Any, cover: Any) -> tuple[int | None, bool]:
    """Return how many edges the shortest chain has, if one is known, and whether there surely is none.

    If a known fact may change, nothing is claimed: the data sets in the middle of a chain would have to fit the fact.
    """
    if policy.coupling_facts:
        return None, False
    try:
        far = distance(policy, hidden, cover, effort=_EFFORT)
    except PolicyError:  # too many ways to look for a chain
        return None, False
    return (None, True) if math.isinf(far) else (int(far), False)


@dataclass(frozen=True)
class Section:
    """A heading with the points below it, or a paragraph where it has none; `warns`: it is about what is not kept."""

    heading: str
    points: tuple[str, ...] = ()
    warns: bool = False

    @property
    def lines(self) -> list[str]:
        """The section as lines of any length."""
        return [self.heading, *(f"  - {point}" for point in self.points)]


def describe(policy: Policy) -> str:
    """Say what is protected against what, with examples, what is public, and what is not protected."""
    options: dict[str, Any] = {"initial_indent": "  - ", "subsequent_indent": "    ", "break_long_words": False}
    sections = [
        "\n".join([section.heading, *(textwrap.fill(point, _WIDTH, **options) for point in section.points)])
        for section in description(policy)
    ]
    return "\n\n".join(sections) + "\n"


def description(policy: Policy) -> list[Section]:
    """Return the description as data: what the policy is about, and each heading that has something below it."""
    examples = protected_examples(policy)

    def listed(wanted: Callable[[Example], bool]) -> tuple[str, ...]:
        return tuple(_example_in_words(policy, example) for example in examples if wanted(example))

    about = (
        f"Policy {policy.name}: {_many(len(policy.domain), 'attribute')}, {_size_in_words(policy.domain)}. "
        f"{person_in_words(policy)}."
    )
    sections = [
        Section("What is protected", tuple(protections(policy))),
        Section(
            "Protected, for instance (somebody with the first looks almost as if they had the second)",
            listed(lambda example: example.protected),
        ),
        Section(
            "Protected more weakly (by a chain of secret edges, each of which costs the epsilon once)",
            listed(lambda example: not example.protected and example.times is not None),
            warns=True,
        ),
        Section(
            "NOT protected at all: a release may tell the first from the second",
            listed(lambda example: example.told_apart),
            warns=True,
        ),
        Section(
            "NOT protected by a secret edge (what follows from several edges or people together is not claimed)",
            listed(lambda example: example.times is None and not example.told_apart),
            warns=True,
        ),
        Section("What is public", tuple(public_facts(policy))),
        Section("What this policy does not protect", tuple(warnings(policy)), warns=True),
    ]
    return [Section(about), *(section for section in sections if section.points)]


def protections(policy: Policy) -> list[str]:
    """Say what is protected, one sentence for each family of secrets, and one for taking part if it is secret."""
    absence = Absence() in policy.absences and not policy.coupling_facts
    families = dict.fromkeys(policy.secrets.families())
    said = []
    for family in families:
        why = family.why_empty(policy.domain)
        promise = family.promise(policy.domain).words(absence=absence)
        said.append(f"nothing by `{family.called}`: {why}" if why else promise)
    if policy.presence == "secret" and TakingPart() not in families:
        said.append("taking part: somebody in the data looks like somebody who is not in it, and the other way round")
    return said


def person_in_words(policy: Policy) -> str:
    """Say about whom the policy is."""
    if policy.person is None:
        return "Each row is one person" + (f", with the items in {policy.item}" if policy.item is not None else "")
    return f"A person is all rows with the same {policy.person}: {rows_in_words(policy)}"


def rows_in_words(policy: Policy) -> str:
    """Say which rows of a person count, where a person is named."""
    many, by = policy.per_person, policy.order
    chosen = "chosen as at random" if by is None else f"the first by {by}"
    if many == 1 and any(attribute.is_set for attribute in policy.domain.values()):
        items = "items" if policy.item is None else f"items in {policy.item}"
        return f"the {items} of all rows that fit the domain count, and all else of one of these rows, {chosen}"
    counted = "one row that fits the domain counts" if many == 1 else f"up to {many:,} rows that fit the domain count"
    once = "" if many == 1 else "; in counts, each person once in each cell"
    return f"{counted}, {chosen}; other rows are left out{once}"


def of_the_rows_counted(policy: Policy) -> str:
    """Say about which rows a number or an interval is exact."""
    if policy.person is None:
        return "of the rows that the domain keeps, with the values it gives them"
    many, by = policy.per_person, policy.order
    if many == 1 and any(attribute.is_set for attribute in policy.domain.values()):
        return f"of what counts of each {policy.person}, with the values that the domain gives"
    some = "one that fits" if many == 1 else f"up to {many:,} that fit"
    chosen = "chosen as at random" if by is None else f"the first by {by}"
    return f"of the rows that count (of each {policy.person} {some} the domain, {chosen})"


def public_facts(policy: Policy) -> list[str]:
    """Say what the policy declares to be public."""
    said = ["this policy: the attributes, the values they may have, and what is secret"]
    if not policy.absences:
        said.append("who is in the data, and how many they are (presence is public)")
    said.extend(fact.words() for fact in dict.fromkeys(policy.known))
    loose = _unprotected(policy)
    if loose and _setting(policy).certain:
        said.append(f"{listed_briefly(loose)}: no secret mentions {_it(loose)}, so a release may give exact answers")
    return said


def _setting(policy: Policy) -> PolicyContext:
    absences = policy.absences
    return PolicyContext(known=bool(policy.coupling_facts), absence=Absence() in absences, some_absence=bool(absences))


def warnings(policy: Policy) -> list[str]:
    """Say what the policy does not do although one might expect it."""
    domain = policy.domain
    families = tuple(dict.fromkeys(policy.secrets.families()))
    said = []
    if Everything() not in families:
        alone = "" if len(families) == 1 else "By itself, "
        said = [alone + sentence for family in families for sentence in _family_warnings(family, policy)]
    elif len(families) > 1:
        said.append("`everything` includes every other family; the others change nothing.")
    loose = _unprotected(policy) if policy.shapes else []  # without any shape only taking part is a secret
    if loose:
        learnt = "may be released exactly" if _setting(policy).certain else "is not protected by any of them"
        said.append(
            f"No secret mentions {listed_briefly(loose, 'or')}: {'it' if len(loose) == 1 else 'each'} {learnt}."
        )
    if not policy.absences:
        said.append(
            "Taking part is not protected: who is in the data and how many they are may be published. "
            "Write `presence: secret` to change that."
        )
    elif policy.presence == "secret":
        alike = Everything() in families or policy.coupling_facts  # at the epsilon itself; not claimed under knowledge
        said.append(
            "Taking part is protected in both directions, so the number of people is blurred like any other count"
            + ("." if alike else ", and any two records look alike at twice the epsilon at most, by way of absence.")
        )
    if policy.person is None:
        said.append(
            "Each row counts as one person; if a person may own several rows, name the column: `person: ..`. Otherwise "
            "every row is protected by itself, and the rows of one person add up."
        )
    said.extend(_coupled_people(policy))
    dropping = [name for name, attribute in domain.attributes if attribute.dropped == "unexpected"]
    if dropping:
        said.append(
            f"Rows with an unexpected value in {listed_briefly(dropping, 'or')} are dropped, and dropped rows are "
            "outside the promise. Declare `otherwise` to keep them."
        )
    clipped = [name for name, attribute in domain.attributes if attribute.dropped == "unreadable"]
    if clipped:
        said.append(
            f"In {listed_briefly(clipped)}, `otherwise: clip` keeps numbers out of range only: rows with a missing or "
            "unreadable value there are still dropped, and dropped rows are outside the promise. A value as "
            "`otherwise` keeps them."
        )
    said.extend(note for name, attribute in domain.attributes for note in attribute.notes(name))
    return list(dict.fromkeys(said))


def _coupled_people(policy: Policy) -> Iterator[str]:
    """Say that what is known couples people, with an edge; nothing where no edge changes it."""
    for fact in policy.coupling_facts:
        if edge := edge_that_changes(fact, policy):
            yield (
                f"What is known couples people: {edge} changes {fact.words()}, so others must have changed with it. "
                "Every release that shows such changes has noise for all of them together."
            )
            return


def _family_warnings(family: Secrets, policy: Policy) -> Iterator[str]:
    if why := family.why_empty(policy.domain):
        yield f"`{family.called}` protects nothing here: {why}."
        return
    yield from family.warnings(policy.domain, _setting(policy))


def _unprotected(policy: Policy) -> list[str]:
    return [name for name in policy.domain if name not in policy.moved_attributes]


def _all_candidates(policy: Policy, base: Fields) -> Iterator[ExamplePair]:
    domain = policy.domain
    for family in dict.fromkeys(policy.secrets.families()):
        for candidate in family.candidates(domain, base):
            yield replace(candidate, family=family)
    for name in _unprotected(policy)[:MOST_NAMES]:
        for other in domain[name].others(base[name])[:1]:
            yield ExamplePair(base, {**base, name: other}, if_not=f"no secret mentions {name}")
    not_there = "taking part is secret" if policy.absences else "taking part is public"
    if policy.absences and policy.presence == "public":
        return  # of some people only; their family has shown it
    yield ExamplePair(base, None, not_there, not_there)
    yield ExamplePair(None, base, not_there)


# ---- words ----------------------------------------------------------------------------------------------------------


def _example_in_words(policy: Policy, example: Example) -> str:
    changed = [
        name
        for name in policy.domain
        if example.hidden is None or example.cover is None or example.hidden[name] != example.cover[name]
    ]
    hidden, cover = (_record_in_words(policy.domain, side, changed) for side in (example.hidden, example.cover))
    link = "looks like" if example.protected else "can be distinguished from"
    reason = example.reason
    if not example.protected and example.times is not None:
        link = "looks like"
        absence = ", by way of absence" if Absence() in policy.absences else ""
        reason = f"at {example.times:,} times the epsilon{absence}: {reason}"
    return f"{hidden} {link} {cover} ({reason})"


def _record_in_words(domain: Domain, record: Fields | None, names: Iterable[str]) -> str:
    if record is None:
        return "somebody who is not in the data"
    listed = list(names)
    if len(listed) == len(domain) > MOST_NAMES:
        listed = listed[:MOST_NAMES]
        return ", ".join(f"{name} {domain[name].words(record[name])}" for name in listed) + ", .."
    return ", ".join(f"{name} {domain[name].words(record[name])}" for name in listed)


def _size_in_words(domain: Domain) -> str:
    tens = sum(attribute.log10_size for attribute in domain.values())
    return f"about 10^{math.floor(tens)} possible records" if tens > 9 else f"{_many(domain.size, 'possible record')}"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"


# ---- a secret edge that changes what is known: why a fact couples people ----


def edge_that_changes(fact: Known, policy: Policy) -> str:
    """Return in words a secret edge that changes a fact: `age 17 -> age 18`. Nothing if none was found."""
    domain = policy.domain
    for hidden, cover in _pairs_at(fact, policy):
        a: Any
        b: Any
        try:
            a, b = (ABSENT if side is None else domain.record(side) for side in (hidden, cover))
            is_edge = policy.has_edge(a, b)
        except PolicyError:
            continue  # more items than one person may have
        added = [fact.added_by(None if side is ABSENT else side, domain) for side in (a, b)]
        if is_edge and added[0] != added[1]:
            names = [name for name in domain if None in (hidden, cover) or hidden[name] != cover[name]]
            return " -> ".join(record_words(domain, side, names) for side in (a, b))
    return ""


def _pairs_at(fact: Known, policy: Policy) -> Iterator[tuple[Any, Any]]:
    """Go through pairs of records: those that a description shows, then pairs between which a fact may change."""
    domain = policy.domain
    shown = [(example.hidden, example.cover) for example in protected_examples(policy) if example.protected]
    yield from shown
    usual = {name: attribute.usual() for name, attribute in domain.attributes}
    split = axes_of(fact.tests(domain))
    for name in sorted(fact.about):
        attribute, axes = domain[name], domain.axes_of(name)
        if attribute.is_set or len(axes) > 1:
            continue
        parts = split[axes[0].name][1] if axes[0].name in split else []
        ends = [at for part in parts for at in (part.lowest, part.highest)] or list(range(min(axes[0].size, _FEW)))
        values = [attribute.value(at) for at in dict.fromkeys(ends[:_FEW])]
        for start in [usual, *(hidden for hidden, _ in shown if hidden is not None)]:
            yield from ((start, {**start, name: value}) for value in values)
            yield from (({**start, name: a}, {**start, name: b}) for a, b in product(values, repeat=2))
