"""A policy in plain words, for the person who has to sign it: `tacit check`.

Every example is a pair of whole records, and `Policy.has_edge` decides about it before it is shown, so that the words
always agree with the edges. Nothing goes through the domain value by value: a domain of 10^12 records or 41,270 items
is described as quickly as a small one.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Final

from tacit.errors import PolicyError
from tacit.policy.application import coalitions
from tacit.policy.domain import Domain, Record
from tacit.policy.edges.chains import distance
from tacit.policy.edges.shapes import Absence, axes_of
from tacit.policy.knowledge import Known
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import Everything, Secrets, TakingPart
from tacit.policy.secrets.family import MOST_NAMES, ExamplePair, Fields, PolicyContext, listed_briefly, plain

_MOST_EXAMPLES: Final = 12  # of each kind
_WIDTH: Final = 100
_FEW: Final = 12  # positions of one attribute that are tried with each other
_EFFORT: Final = 1000  # for one example: a chain that is harder to find is not claimed


@dataclass(frozen=True)
class Example:
    """Two records, and whether somebody with the first must look almost as if they had the second.

    Records are given by attribute, ready for JSON: cells and sets of items are lists, None is "not in the data".
    `times` is a number of epsilons that is enough: 1 for a secret edge, more for a chain of edges, None if no chain
    exists or none is known. `told_apart`: no chain exists, so nothing is promised.
    """

    hidden: Fields | None
    cover: Fields | None
    protected: bool
    reason: str
    times: int | None = None
    told_apart: bool = False

    def document(self) -> dict[str, Any]:
        """Return the example as plain data."""
        return asdict(self)


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
        known = any((one.hidden, one.cover) == (candidate.hidden, candidate.cover) for one in found)
        if reason and not known and sum(e.protected == protected for e in found) < _MOST_EXAMPLES:
            times, apart = (1, False) if protected else _through_a_chain(policy, *sides)
            found.append(Example(candidate.hidden, candidate.cover, protected, reason, times, apart))
    return sorted(found, key=lambda example: not example.protected)


def _through_a_chain(policy: Policy, hidden: Any, cover: Any) -> tuple[int | None, bool]:
    """Return the number of edges of a shortest chain, if one is known, and whether there surely is none.

    If a known fact may change, nothing is claimed: the data sets between the ends of a chain would have to fit it.
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
    """A heading with points, or a paragraph without any; `warns`: it is about what is not protected."""

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
    """Return the description as data: what the policy is about, and each heading that has points."""
    examples = protected_examples(policy)

    def listed(wanted: Callable[[Example], bool]) -> tuple[str, ...]:
        return tuple(_example_in_words(policy, example) for example in examples if wanted(example))

    owners = f"A person is all rows with the same {policy.person}: {policy.rows_in_words}"
    if policy.person is None:
        owners = "Each row is one person" + (f", with the items in {policy.item}" if policy.item is not None else "")
    attributes = _many(len(policy.domain), "attribute")
    about = f"Policy {policy.name}: {attributes}, {_size_in_words(policy.domain)}. {owners}."
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
        Section("Who may ask, and nobody else", tuple(_who_may_ask(policy))),
        Section("Against whom", (policy.adversary.words()[0],) if policy.adversary.is_named else ()),
        Section("What is public", tuple(public_facts(policy))),
        Section("What this policy does not protect", tuple(warnings(policy)), warns=True),
    ]
    return [Section(about), *(section for section in sections if section.points)]


def _who_may_ask(policy: Policy) -> Iterator[str]:
    yield from (one.words(policy.domain) for one in policy.applications)
    for group in coalitions(policy.applications):
        own = [one.name for one in policy.applications if one.name in group and one.secrets is not None]
        yield (
            f"{listed_briefly(group)} pool what they see: along the policy's own secrets they learn at most what the "
            "sum of their epsilons allows"
            + (f"; what {listed_briefly(own)} alone must not be shown, the others may show them" if own else "")
        )


def protections(policy: Policy) -> list[str]:
    """Say what is protected, one sentence for each family of secrets, and one for taking part if it is secret."""
    absence = Absence() in policy.absences and not policy.coupling_facts
    families = dict.fromkeys(policy.secrets.families())
    promises = []
    for family in families:
        why = family.why_empty(policy.domain)
        promise = family.promise(policy.domain).words(absence=absence)
        promises.append(f"nothing by `{family.called}`: {why}" if why else promise)
    if policy.presence == "secret" and TakingPart() not in families:
        promises.append(
            "taking part: somebody in the data looks like somebody who is not in it, and the other way round"
        )
    return promises


def public_facts(policy: Policy) -> list[str]:
    """Say what the policy declares to be public."""
    facts = ["this policy: the attributes, the values they may have, and what is secret"]
    if not policy.absences:
        facts.append("who is in the data, and how many they are (presence is public)")
    facts.extend(fact.words() for fact in dict.fromkeys(policy.known))
    loose = _unprotected(policy)
    if loose and _setting(policy).certain:
        them = "it" if len(loose) == 1 else "them"
        facts.append(f"{listed_briefly(loose)}: no secret mentions {them}, so a release may give exact answers")
    return facts


def _setting(policy: Policy) -> PolicyContext:
    absences = policy.absences
    return PolicyContext(known=bool(policy.coupling_facts), absence=Absence() in absences, some_absence=bool(absences))


def warnings(policy: Policy) -> list[str]:
    """Say what the policy does not do although one might expect it."""
    domain = policy.domain
    families = tuple(dict.fromkeys(policy.secrets.families()))
    found = []
    if Everything() not in families:
        alone = "" if len(families) == 1 else "By itself, "
        found = [alone + sentence for family in families for sentence in _family_warnings(family, policy)]
    elif len(families) > 1:
        found.append("`everything` includes every other family; the others change nothing.")
    loose = _unprotected(policy) if policy.shapes else []  # without any shape only taking part is a secret
    if loose:
        learnt = "may be released exactly" if _setting(policy).certain else "is not protected by any of them"
        found.append(
            f"No secret mentions {listed_briefly(loose, 'or')}: {'it' if len(loose) == 1 else 'each'} {learnt}."
        )
    if not policy.absences:
        found.append(
            "Taking part is not protected: who is in the data and how many they are may be published. "
            "Write `presence: secret` to change that."
        )
    elif policy.presence == "secret":
        alike = Everything() in families or policy.coupling_facts  # at the epsilon itself; not claimed under knowledge
        found.append(
            "Taking part is protected in both directions, so the number of people is blurred like any other count"
            + ("." if alike else ", and any two records look alike at twice the epsilon at most, by way of absence.")
        )
    if policy.person is None:
        found.append(
            "Each row counts as one person; if a person may own several rows, name the column: `person: ..`. Otherwise "
            "every row is protected by itself, and the rows of one person add up."
        )
    found.extend(_coupled_people(policy))
    found += [policy.adversary.words()[1]] if policy.adversary.is_named else []
    dropping = [name for name, attribute in domain.attributes if attribute.dropped == "unexpected"]
    if dropping:
        found.append(
            f"Rows with an unexpected value in {listed_briefly(dropping, 'or')} are dropped, and dropped rows are "
            "outside the promise. Declare `otherwise` to keep them."
        )
    clipped = [name for name, attribute in domain.attributes if attribute.dropped == "unreadable"]
    if clipped:
        found.append(
            f"In {listed_briefly(clipped)}, `otherwise: clip` keeps numbers out of range only: rows with a missing or "
            "unreadable value there are still dropped, and dropped rows are outside the promise. A value as "
            "`otherwise` keeps them."
        )
    found.extend(note for name, attribute in domain.attributes for note in attribute.notes(name))
    return list(dict.fromkeys(found))


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
    sides = (example.hidden, example.cover)
    changed = [name for name in policy.domain if None in sides or sides[0][name] != sides[1][name]]  # type: ignore[index]
    hidden, cover = (_fields_in_words(policy.domain, side, changed, MOST_NAMES) for side in sides)
    link = "looks like" if example.protected else "can be distinguished from"
    reason = example.reason
    if not example.protected and example.times is not None:
        link = "looks like"
        absence = ", by way of absence" if Absence() in policy.absences else ""
        reason = f"at {example.times:,} times the epsilon{absence}: {reason}"
    return f"{hidden} {link} {cover} ({reason})"


def _fields_in_words(domain: Domain, fields: Fields | None, names: Sequence[str], most: int | None = None) -> str:
    """Return a record in words, as far as these names go; if they are all the names, the first `most` of them."""
    if fields is None:
        return "somebody who is not in the data"
    is_cut = most is not None and len(names) == len(domain) > most
    words = [f"{name} {domain[name].words(fields[name])}" for name in (names[:most] if is_cut else names)]
    return ", ".join([*words, ".."] if is_cut else words)


def record_words(domain: Domain, record: Record | Any, names: Sequence[str] | None = None) -> str:
    """Return a canonical record, or `ABSENT`, in words: all attributes, or those that are named."""
    return _fields_in_words(domain, plain_fields(domain, record), list(domain) if names is None else names)


def _size_in_words(domain: Domain) -> str:
    digits = sum(attribute.log10_size for attribute in domain.values())
    return f"about 10^{math.floor(digits)} possible records" if digits > 9 else _many(domain.size, "possible record")


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


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


def plain_fields(domain: Domain, record: Any) -> Fields | None:
    """Return a canonical record as JSON has it; None for `ABSENT`."""
    return None if record is ABSENT else {name: plain(value) for name, value in zip(domain, record, strict=True)}
