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
from itertools import islice
from typing import Any, Final

from tacit.errors import PolicyError
from tacit.policy.attributes import Attribute
from tacit.policy.attributes.attribute import Value
from tacit.policy.chains import chain_length, surely_unconnected
from tacit.policy.classes import axes_of, cells, holds
from tacit.policy.domain import Domain, positions
from tacit.policy.edges import Same
from tacit.policy.intervals import Intervals
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import Attributes, Everything, Pairs, Partition, Records, Secrets, Values, Within
from tacit.policy.where import Test

_MOST_NAMES: Final = 3  # attributes of one family that get examples of their own
_MOST_EXAMPLES: Final = 12  # of each kind
_MOST_CELLS: Final = 20_000  # combinations tried to find a record that a predicate picks
_WIDTH: Final = 100

Fields = dict[str, Value]


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


@dataclass(frozen=True)
class _Candidate:
    """Two records worth showing, with the reason for either answer; no reason means: then do not show it."""

    hidden: Fields | None
    cover: Fields | None
    if_protected: str = ""
    if_not: str = ""
    family: Secrets | None = None  # whose reason it is


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
            times = 1 if protected else chain_length(policy, *sides)
            apart = times is None and surely_unconnected(policy, *sides)
            found.append(Example(candidate.hidden, candidate.cover, protected, reason, times, apart))
    return sorted(found, key=lambda example: not example.protected)


def describe(policy: Policy) -> str:
    """Say what is protected against what, with examples, what is public, and what one might wrongly expect."""
    examples = protected_examples(policy)

    def listed(wanted: Callable[[Example], bool]) -> list[str]:
        return [_example_in_words(policy, example) for example in examples if wanted(example)]

    parts = [
        f"Policy {policy.name}: {_many(len(policy.domain), 'attribute')}, {_size_in_words(policy.domain)}. "
        f"{person_in_words(policy)}.",
        _section("What is protected", protections(policy)),
        _section(
            "Protected, for instance (somebody with the first looks almost as if they had the second)",
            listed(lambda example: example.protected),
        ),
        _section(
            "Protected more weakly (by a chain of secret edges, each of which costs the epsilon once)",
            listed(lambda example: not example.protected and example.times is not None),
        ),
        _section(
            "NOT protected at all: a release may tell the first from the second",
            listed(lambda example: example.told_apart),
        ),
        _section(
            "NOT protected by a secret edge (what follows from several edges or people together is not claimed)",
            listed(lambda example: example.times is None and not example.told_apart),
        ),
        _section("What is public", public_facts(policy)),
        _section("What you may not expect", warnings(policy)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def protections(policy: Policy) -> list[str]:
    """Say what is protected, one sentence for each family of secrets, and one for taking part if it is secret."""
    said = [family.words(policy.domain) for family in dict.fromkeys(policy.secrets.families())]
    if policy.presence == "secret" and not policy.known:
        for public, weaker in _WEAKER.items():
            said = [sentence.replace(public, weaker) for sentence in said]
    if policy.presence == "secret":
        said.append("taking part: somebody in the data looks like somebody who is not in it, and the other way round")
    return said


# what the families say by themselves, and what is true of it where anybody might not be in the data
_WEAKER: Final = {
    "stays public": "is protected at twice the epsilon only",
    "the other way round nothing is promised": "the other way round at twice the epsilon only",
    "; nothing about the others": "; about the others at twice the epsilon only",
}


def person_in_words(policy: Policy) -> str:
    """Say about whom the policy is."""
    if policy.person is None:
        return "Each row is one person" + (f", with the items in {policy.item}" if policy.item is not None else "")
    people, many = f"A person is all rows with the same {policy.person}", policy.per_person
    if many == 1 and any(attribute.is_set for attribute in policy.domain.values()):
        first = "one row, chosen by what is in it" if policy.order is None else f"the first row by {policy.order}"
        items = "their items" if policy.item is None else f"their items in {policy.item}"
        return f"{people}: all {items} count, of the rest {first}"
    if policy.order is None:
        counted = "one counts, chosen by what is in it" if many == 1 else f"{many:,} count, chosen by what is in them"
    else:
        counted = f"the first by {policy.order} counts" if many == 1 else f"the first {many:,} by {policy.order} count"
    return f"{people}, of which {counted}"


def public_facts(policy: Policy) -> list[str]:
    """Say what the policy declares to be public."""
    said = ["this policy: the attributes, the values they may have, and what is secret"]
    if policy.presence == "public":
        said.append("who is in the data, and how many they are (presence is public)")
    said.extend(fact.words() for fact in dict.fromkeys(policy.known))
    loose = _unprotected(policy)
    if loose and _is_certain(policy):
        said.append(f"{_listed(loose)}: no secret mentions {_it(loose)}, so a release may give exact answers")
    return said


def _is_certain(policy: Policy) -> bool:
    """Say whether what no edge protects may indeed be published exactly.

    It may not where presence is secret (by way of absence any two records look alike at twice the price), nor where
    something is known (the people who make up for a change may move in any way).
    """
    return policy.presence == "public" and not policy.known


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
    loose = _unprotected(policy)
    if loose:
        learnt = "may be released exactly" if _is_certain(policy) else "is not protected by any of them"
        said.append(f"No secret mentions {_listed(loose, 'or')}: {'it' if len(loose) == 1 else 'each'} {learnt}.")
    if policy.presence == "public":
        said.append(
            "Taking part is not protected: who is in the data and how many they are may be published. "
            "Write `presence: secret` to change that."
        )
    else:
        alike = Everything() in families or policy.known  # at the epsilon itself; not claimed under knowledge
        said.append(
            "Taking part is protected in both directions, so the number of people is blurred like any other count"
            + ("." if alike else ", and any two records look alike at twice the epsilon at most, by way of absence.")
        )
    if policy.person is None:
        said.append(
            "Each row counts as one person; if a person may own several rows, name the column: `person: ..`. Otherwise "
            "every row is protected by itself, and the rows of one person add up."
        )
    if policy.known:
        said.append(
            "What is known couples people: if one record changes, others must have changed with it. Every release "
            "is charged for that, so the noise is larger than without the known facts."
        )
    dropping = [name for name, attribute in domain.attributes if attribute.dropped == "unexpected"]
    if dropping:
        said.append(
            f"Rows with an unexpected value in {_listed(dropping, 'or')} are dropped, and dropped rows are outside the "
            "promise. Declare `otherwise` to keep them."
        )
    clipped = [name for name, attribute in domain.attributes if attribute.dropped == "unreadable"]
    if clipped:
        said.append(
            f"In {_listed(clipped)}, `otherwise: clip` keeps numbers out of range only: rows with a missing or "
            "unreadable value there are still dropped, and dropped rows are outside the promise. A value as "
            "`otherwise` keeps them."
        )
    said.extend(note for name, attribute in domain.attributes for note in attribute.notes(name))
    return list(dict.fromkeys(said))


def _family_warnings(family: Secrets, policy: Policy) -> Iterator[str]:
    domain = policy.domain
    certain = _is_certain(policy)
    if _protects_nothing(family, domain):
        yield f"`{family.keyword}` protects nothing here: {_why_nothing(family, domain)}."
        return
    match family:
        case Attributes(names) if len(names) > 1 and not policy.known and policy.presence == "secret":
            yield "`attributes` protects one attribute at a time; several at once only at twice the epsilon."
        case Attributes(names) if len(names) > 1 and not policy.known:
            yield (
                f"`attributes` protects one attribute at a time. Two at once, say {names[0]} and {names[1]}, are "
                "protected at twice the epsilon, three at three times, and so on."
            )
        case Partition(name):
            yield (
                f"`partition` leaves the block public: which block of {name} somebody is in may be released exactly."
                if certain
                else f"`partition` protects {name} only within its block, not which block somebody is in."
            )
            yield from _outside_blocks(family, domain)
        case Within(theta, names):
            yield (
                f"`within` leaves the rough value public: two values of {_listed(names)} that are further apart than "
                f"{theta} can be told apart{_price_of_far(family, policy)}."
            )
        case Values(sensitive):
            for name, values in sensitive:
                yield from _values_warnings(name, domain[name], values, certain=certain)
        case Records(where) if certain:
            yield (
                f"`records` protects nobody outside `{where}`: anything about them may be released exactly, and that "
                "somebody is not sensitive may be learnt for certain."
            )
        case Records(where):
            yield f"`records` protects nobody outside `{where}`; that somebody is not sensitive is no secret."
        case Pairs():
            if not all(family.has_edge(domain, b, a) for a, b in _pair_records(family, domain)):
                yield "`pairs` protects from the first record to the second only; list the reverse as well if meant."


def _outside_blocks(family: Partition, domain: Domain) -> Iterator[str]:
    attribute = domain[family.name]
    if family.blocks is None:
        return
    covered = Intervals.of([ends for block in family._block_positions(domain) for ends in block])
    outside = Intervals.full(attribute.size).without(covered)
    if outside.count:
        shown = attribute.words(attribute.value(outside.lowest))
        whole = f"{outside.count:,} values of {family.name}, for instance {shown}, are"
        if outside.count == 1:
            whole = f"the value {shown} of {family.name} is"
        yield f"`partition` protects listed blocks only: {whole} in no block and not protected by it."


def _values_warnings(name: str, attribute: Attribute, values: tuple[Value, ...], *, certain: bool) -> Iterator[str]:
    learnt = "may be learnt for certain" if certain else "is not protected by it"
    if attribute.is_set:
        if 0 not in values:
            yield (
                f"`values` protects having an item of {name} (having visited), not being without it (having stayed "
                f"away): that somebody does not have an item {learnt}."
            )
        if 1 not in values:
            yield f"`values` protects being without an item of {name}: that somebody has an item {learnt}."
    elif len(set(values)) < attribute.size:
        shown = _listed([attribute.words(value) for value in values], "or")
        yield f"`values` protects {name} being {shown}, nothing else: that it is something else {learnt}."


def _price_of_far(family: Within, policy: Policy) -> str:
    """Return what the promise still is between the two ends of an axis, where there is a way of small steps."""
    if policy.known:
        return ""
    if policy.presence == "secret":
        return ", at twice the epsilon at most"  # by way of absence no two records cost more
    for name in family.names:
        for axis in policy.domain.axes_of(name):
            reach, span = int(family.theta // axis.spacing), axis.size - 1
            if 0 < reach < span:
                many = -(-span // reach)
                return (
                    "; the cost grows with the distance, up to "
                    f"{many:,} times the epsilon between the ends of {axis.name}"
                )
    return "; the cost grows with the distance"


def _protects_nothing(family: Secrets, domain: Domain) -> bool:
    """Say whether a family surely has no edge at all."""
    match family:
        case Records(where):
            return _found(domain, where.compile(domain), lambda answer: answer) == "nobody"
        case Attributes(names):
            return all(domain[name].size == 1 for name in names)
        case Partition(name, width, blocks):
            if width is None:
                return all(not isinstance(block, str) and len(block) < 2 for block in blocks or ())
            axes = domain.axes_of(name)
            widths = width * len(axes) if len(width) == 1 else width
            return all(min(w // axis.spacing, axis.size) < 2 for w, axis in zip(widths, axes, strict=True))
        case Within(theta, names):
            if any(domain[name].is_set for name in names):
                return theta < 1
            axes = tuple(axis for name in names for axis in domain.axes_of(name))
            return all(theta < axis.spacing or axis.size == 1 for axis in axes)
        case _:
            return False


def _why_nothing(family: Secrets, domain: Domain) -> str:
    match family:
        case Records(where):
            return f"no record has {where}"
        case Within(theta, names):
            return f"no two values of {_listed(names)} are as close as {theta}"
        case Partition(name):
            return f"every block of {name} has one value"
        case _:
            return "there is only one value"


def _unprotected(policy: Policy) -> list[str]:
    """Return the attributes that no edge ever changes."""
    loose = []
    for name in policy.domain:
        moves = any(
            shape.any_elsewhere
            or name in shape.items
            or any(not isinstance(shape.relation(a.name, a.size), Same) for a in policy.domain.axes_of(name))
            for shape in policy.shapes
        )
        if not moves:
            loose.append(name)
    return loose


# ---- candidates -----------------------------------------------------------------------------------------------------


def _all_candidates(policy: Policy, base: Fields) -> Iterator[_Candidate]:
    domain = policy.domain
    for family in dict.fromkeys(policy.secrets.families()):
        for candidate in _candidates(family, domain, base):
            yield replace(candidate, family=family)
    for name in _unprotected(policy)[:_MOST_NAMES]:
        for other in domain[name].others(base[name])[:1]:
            yield _Candidate(base, {**base, name: other}, if_not=f"no secret mentions {name}")
    not_there = "taking part is secret" if policy.presence == "secret" else "taking part is public"
    yield _Candidate(base, None, not_there, not_there)
    yield _Candidate(None, base, not_there)


def _candidates(family: Secrets, domain: Domain, base: Fields) -> Iterator[_Candidate]:
    match family:
        case Everything():
            yield from _everything_candidates(domain, base)
        case Attributes(names):
            yield from _attributes_candidates(names, domain, base)
        case Partition():
            yield from _partition_candidates(family, domain, base)
        case Within():
            yield from _within_candidates(family, domain, base)
        case Pairs():
            for hidden, cover in islice(_pair_records(family, domain), _MOST_NAMES):
                a, b = ({name: _jsonable(v) for name, v in zip(domain, side, strict=True)} for side in (hidden, cover))
                yield _Candidate(a, b, "a listed pair")
                yield _Candidate(b, a, "listed in both directions", "the pair is listed in the other direction only")
        case Values(sensitive):
            for name, values in sensitive[:_MOST_NAMES]:
                yield from _values_candidates(name, values, domain, base)
        case Records(where):
            yield from _records_candidates(where.compile(domain), str(where), domain, base)


def _everything_candidates(domain: Domain, base: Fields) -> Iterator[_Candidate]:
    changed = dict(base)
    for number, (name, attribute) in enumerate(domain.attributes):
        for other in attribute.others(base[name])[:1]:
            changed[name] = other
            if number < _MOST_NAMES:
                yield _Candidate(base, {**base, name: other}, "everything is secret")
    if sum(changed[name] != base[name] for name in domain) > 1:
        yield _Candidate(base, changed, "everything is secret, all attributes at once")


def _attributes_candidates(names: tuple[str, ...], domain: Domain, base: Fields) -> Iterator[_Candidate]:
    movable = [(name, domain[name].others(base[name])) for name in names]
    movable = [(name, others) for name, others in movable if others]
    for name, others in movable[:_MOST_NAMES]:
        yield _Candidate(base, {**base, name: others[-1]}, f"{name} is secret and nothing else differs")
    if len(movable) > 1:
        (first, some), (second, more) = movable[:2]
        both = {**base, first: some[-1], second: more[-1]}
        yield _Candidate(base, both, if_not=f"{first} and {second} differ at once")


def _partition_candidates(family: Partition, domain: Domain, base: Fields) -> Iterator[_Candidate]:
    name, attribute = family.name, domain[family.name]
    inside, outside = "in one block", "in different blocks"
    if family.blocks is not None:
        blocks = family._block_positions(domain)
        wide = [block for block in blocks if block.count > 1]
        for block in wide[:1]:
            low, high = attribute.value(block.lowest), attribute.value(block.highest)
            yield _Candidate({**base, name: low}, {**base, name: high}, inside)
        if len(blocks) > 1:
            low, high = attribute.value(blocks[0].lowest), attribute.value(blocks[1].lowest)
            yield _Candidate({**base, name: low}, {**base, name: high}, if_not=outside)
        return
    first, last, after = attribute.block(base[name], family._widths(domain))
    start = {**base, name: first}
    if last is not None and last != first:
        yield _Candidate(start, {**start, name: last}, inside)
    if after is not None:
        yield _Candidate(start, {**start, name: after}, if_not=outside)


def _within_candidates(family: Within, domain: Domain, base: Fields) -> Iterator[_Candidate]:
    near, far = f"not further apart than {family.theta}", f"further apart than {family.theta}"
    moved_all: Fields = {}
    for name in family.names[:_MOST_NAMES]:
        attribute = domain[name]
        if attribute.is_set:
            reach = int(family.theta) if family.metric != "linf" else attribute.most
            steps = [min(reach, attribute.most), reach + 1]
        else:
            steps = [int(family.theta // axis.spacing) for axis in domain.axes_of(name)[:1]]
            steps = [steps[0], steps[0] + 1]
        for step in steps:
            start, end = attribute.apart(base[name], step)
            if end is None or start == end:
                continue
            yield _Candidate({**base, name: start}, {**base, name: end}, near, far)
            if step == steps[0]:
                moved_all[name] = (start, end)
    if len(moved_all) > 1:
        starts, ends = ({name: pair[side] for name, pair in moved_all.items()} for side in (0, 1))
        yield _Candidate({**base, **starts}, {**base, **ends}, near, f"together {far}")


def _values_candidates(name: str, values: tuple[Value, ...], domain: Domain, base: Fields) -> Iterator[_Candidate]:
    attribute = domain[name]
    if attribute.is_set:
        item = attribute.cell(min(6, attribute.cells - 1))
        has, has_not = {**base, name: [item]}, {**base, name: []}
        with_it, without = f"having an item of {name} is secret", f"not having an item of {name} is secret"
        yield _Candidate(has, has_not, with_it, f"having an item of {name} is not listed as secret")
        yield _Candidate(has_not, has, without, f"not having an item of {name} is not listed as secret")
        return
    listed = [_jsonable(value) for value in values]
    hidden = listed[0]
    plain = [value for value in attribute.others(hidden) if value not in listed]
    cover = plain[0] if plain else (listed[1:] or [None])[0]
    if cover is None:
        return
    shown = attribute.words(hidden), attribute.words(cover)
    a, b = {**base, name: hidden}, {**base, name: cover}
    yield _Candidate(a, b, f"{name} being {shown[0]} is secret")
    yield _Candidate(
        b, a, f"{name} being {shown[1]} is secret, too", f"{name} being {shown[1]} is not listed as secret"
    )


def _records_candidates(test: Test, text: str, domain: Domain, base: Fields) -> Iterator[_Candidate]:
    inside = _found(domain, test, lambda answer: answer, base)
    outside = _found(domain, test, lambda answer: not answer, base)
    if isinstance(inside, str):
        return
    if isinstance(outside, str):
        for name in domain:
            for other in domain[name].others(inside[name])[:1]:
                yield _Candidate(inside, {**inside, name: other}, f"the first has {text}")
                return
        return
    yield _Candidate(inside, outside, f"the first has {text}")
    yield _Candidate(outside, inside, f"the first has {text}", f"the first does not have {text}")
    for name in domain:
        for other in domain[name].others(outside[name]):
            stays = {**outside, name: other}
            if not _holds(domain, test, stays):
                yield _Candidate(outside, stays, if_not=f"the first does not have {text}")
                return


def _pair_records(family: Pairs, domain: Domain) -> Iterator[tuple[tuple[Value, ...], tuple[Value, ...]]]:
    """Return the listed pairs as whole records; what a pair leaves open is filled in."""
    for a, b in family._named(domain):
        filled = {name: attribute.usual() for name, attribute in domain.attributes if name not in a}
        yield domain.record({**filled, **a}), domain.record({**filled, **b})


def _found(domain: Domain, test: Test, wanted: Callable[[bool], bool], base: Fields | None = None) -> Fields | str:
    """Return a record that a predicate picks (or does not), else "nobody" if there is none, else "unknown".

    Positions that the predicate cannot tell apart are tried once, so the size of the domain does not matter.
    """
    start = base or {name: attribute.usual() for name, attribute in domain.attributes}
    if wanted(_holds(domain, test, start)):
        return start
    split = axes_of([test])
    tried = 0
    for cell in cells(split):
        tried += 1
        if tried > _MOST_CELLS:
            return "unknown"
        if not wanted(holds(test, cell)):
            continue
        record = dict(start)
        for name, attribute in domain.attributes:
            record[name] = attribute.moved_into(name, start[name], {split[axis][0]: cell[axis] for axis in cell})
        try:
            domain.record(record)
        except PolicyError:
            continue  # more items than one person may have
        return record
    return "nobody"


def _holds(domain: Domain, test: Test, record: Fields) -> bool:
    return test.of_record(positions(domain, domain.record(record)))


def _jsonable(value: Value) -> Value:
    if isinstance(value, frozenset | set):
        return sorted(value, key=lambda item: (isinstance(item, str), item))
    return list(value) if isinstance(value, tuple) else value


# ---- words ----------------------------------------------------------------------------------------------------------


def _example_in_words(policy: Policy, example: Example) -> str:
    changed = [
        name
        for name in policy.domain
        if example.hidden is None or example.cover is None or example.hidden[name] != example.cover[name]
    ]
    hidden, cover = (_record_in_words(policy.domain, side, changed) for side in (example.hidden, example.cover))
    link = "looks like" if example.protected else "may be told from"
    reason = example.reason
    if not example.protected and example.times is not None:
        link = "looks like"
        absence = ", by way of absence" if policy.presence == "secret" else ""
        reason = f"at {example.times:,} times the epsilon{absence}: {reason}"
    return f"{hidden} {link} {cover} ({reason})"


def _record_in_words(domain: Domain, record: Fields | None, names: Iterable[str]) -> str:
    if record is None:
        return "somebody who is not in the data"
    listed = list(names)
    if len(listed) == len(domain) > _MOST_NAMES:
        listed = listed[:_MOST_NAMES]
        return ", ".join(f"{name} {domain[name].words(record[name])}" for name in listed) + ", .."
    return ", ".join(f"{name} {domain[name].words(record[name])}" for name in listed)


def _size_in_words(domain: Domain) -> str:
    tens = sum(attribute.tens for attribute in domain.values())
    return f"about 10^{math.floor(tens)} possible records" if tens > 9 else f"{_many(domain.size, 'possible record')}"


def _section(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    wrapped = [
        textwrap.fill(line, _WIDTH, initial_indent="  - ", subsequent_indent="    ", break_long_words=False)
        for line in lines
    ]
    return "\n".join([title, *wrapped])


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _listed(names: Iterable[str], word: str = "and") -> str:
    listed = list(names)
    if len(listed) > 8:
        listed = [*listed[:7], f"{len(listed) - 7} more"]
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} {word} {listed[-1]}"


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"
