"""Ways to publish a table under audit: one group of a few people, one of whom changes to another sensitive value.

Records of a group are exchangeable and groups are drawn apart, so that one group shows what a record loses. The law of
what is published is written down where it is finite; masked counts have no last value, and are audited by samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from itertools import combinations, product
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.audit.exact_audits.exact_audit import exact
from tacit.audit.exact_audits.loss import ExactAudit
from tacit.audit.sampled_audits.subjects import Subject
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import everything
from tacit.publish.methods.criterion import Channel
from tacit.publish.methods.groupwise import Groupwise
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.method import Method
from tacit.publish.methods.perturbation import Uniform
from tacit.publish.methods.sampled import Sampled

PEOPLE: Final = 4  # of the group
MOST_MASKED: Final = 200_000  # samples: widths of masks of many values are found by bisection

Values = tuple[int, ...]  # of the people of a group
Law = Mapping[tuple[int, ...], float]  # of published counts


def group_policy(values: int) -> Policy:
    """Return the policy of one group: any of its values looks like any other."""
    return Policy(Domain({"value": Integers(0, values - 1)}), everything())


def table_subject(name: str, method: Method) -> Subject:
    """Return a table of one group, with what one record loses."""
    values, law = method.channel.values, law_of_group(method)
    found: ExactAudit | None = None
    hidden: Values = (0,) * PEOPLE
    cover: Values = (*hidden[1:], 1)
    if law is not None:
        found = exact(lambda people: law(_values(people)), group_policy(values), method.epsilon, people=PEOPLE)
        if found.witness is not None:
            hidden, cover = _values(found.witness.hidden), _values(found.witness.cover)

    def release(counts: Ints, size: int) -> Ints:
        return method.draw(np.tile(counts, (size, 1)))

    return Subject(
        name,
        method.words()[0],
        float(method.epsilon),
        np.bincount(hidden, minlength=values),
        np.bincount(cover, minlength=values),
        release,
        None if found is None else lambda: found,
        MOST_MASKED if law is None and values > 2 else 10**9,
    )


def _values(people: Sequence[Any]) -> Values:
    return tuple(value for (value,) in people)


@singledispatch
def law_of_group(method: Method) -> Callable[[Values], Law] | None:
    """Return the law of what is published for people with these values; None where it has no end."""
    raise TypeError(type(method).__name__)


@law_of_group.register
def _(method: Masked) -> None:
    return None


@law_of_group.register
def _(method: Uniform) -> Callable[[Values], Law]:
    return lambda values: _perturbed(values, method.channel)


@law_of_group.register
def _(method: Groupwise) -> Callable[[Values], Law]:
    def law(values: Values) -> Law:
        (retention,) = method.retentions(np.array([len(values)]))
        return _perturbed(values, Channel(retention, method.channel.values))

    return law


@law_of_group.register
def _(method: Sampled) -> Callable[[Values], Law]:
    def law(values: Values) -> Law:
        many = int(method.samples(np.array([len(values)]))[0])
        samples = list(combinations(values, many))
        found: dict[tuple[int, ...], float] = {}
        for sample in samples:
            for output, chance in _perturbed(sample, method.channel).items():
                found[output] = found.get(output, 0.0) + chance / len(samples)
        return found

    return law


def _perturbed(values: Values, channel: Channel) -> Law:
    """Return the law of the counts after each record kept its value or got a random one."""
    found: dict[tuple[int, ...], float] = {}
    other = float(channel.spread)
    for shown in product(range(channel.values), repeat=len(values)):
        chance = math.prod(channel.kept if one == own else other for one, own in zip(shown, values, strict=True))
        output = tuple(np.bincount(shown, minlength=channel.values).tolist())
        found[output] = found.get(output, 0.0) + chance
    return found
