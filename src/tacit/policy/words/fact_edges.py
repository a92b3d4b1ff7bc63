"""A secret edge that changes what is known, to be shown: why a fact couples people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from tacit.errors import PolicyError
from tacit.policy.edges.classes import axes_of
from tacit.policy.knowledge import Known
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.words.describe import protected_examples
from tacit.policy.words.pair import record_words

_FEW: Final = 12  # positions of one attribute that are tried with each other


def edge_that_changes(fact: Known, policy: Policy) -> str:
    """Return in words a secret edge that changes a fact: `age 17 -> age 18`. Nothing if none was found."""
    domain = policy.domain
    for hidden, cover in _candidates(fact, policy):
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


def _candidates(fact: Known, policy: Policy) -> Iterator[tuple[Any, Any]]:
    """Go through pairs of records: those that a description shows, then such at which a fact changes."""
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
