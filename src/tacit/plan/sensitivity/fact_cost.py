"""What it costs that something is known: by how much each fact raises the noise, and which secrets would avoid it.

Noise grows with the largest step, so what a fact costs is the step with it over the step without it. A fact costs
nothing if no secret edge changes it. So narrower secrets are looked for that leave it alone: they are made of the
policy's own families (`Secrets.without_attributes`), or of blocks within which a known predicate stays as it is. Each
is asked for its edges and its step before it is named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit.amounts import rough
from tacit.errors import PlanError, PolicyError
from tacit.plan.plans.plan import Plan
from tacit.plan.sensitivity.responses import CellTables, Watched
from tacit.plan.sensitivity.steps import is_touched, step_of_one_row
from tacit.policy.describe import edge_that_changes
from tacit.policy.edges.shapes import axes_of
from tacit.policy.knowledge import Known
from tacit.policy.policy import Policy
from tacit.policy.secrets import Partition, Secrets, Union
from tacit.policy.yaml_entries import quoted

_MOST_LISTED: Final = 100  # values that are named one by one
_MOST_SHOWN: Final = 8  # of these, in a sentence
_PLAIN: Final = re.compile(r"[A-Za-z_][\w -]*\w|[A-Za-z]")  # texts that need no quotes


@dataclass(frozen=True)
class Way:
    """Secrets that leave a fact alone, and the largest step under them while everything else is known."""

    secrets: Secrets
    step: int | None

    @property
    def text(self) -> str:
        """What a policy file says for them, on one line."""
        said = self.secrets.document()
        return ", ".join(_line(one) for one in (said if isinstance(said, list) else [said]))


@dataclass(frozen=True)
class FactCost:
    """What one fact costs: the largest step (sum of all changes) with it and without it; None where none is proved.

    `edge` is a secret edge that changes it, in words, where one was found; `ways` are narrower secrets that do not.
    """

    fact: Known
    step: int | None
    without: int | None
    edge: str
    ways: tuple[Way, ...]

    @property
    def times(self) -> float | None:
        """By how much it multiplies the noise; infinity: without it the answers would be exact; None: not known."""
        if self.step is None or self.without is None:
            return None
        return self.step / self.without if self.without else math.inf if self.step else 1.0

    @property
    def words(self) -> str:
        """The cost in one sentence or two."""
        known, because = self.fact.words(), f" ({self.edge} changes it)" if self.edge else ""
        if self.step is None:
            said = f"knowing {known} leaves no proven bound{because}"
        elif self.times is None:
            said = f"knowing {known} changes the noise by an unknown factor{because}"
        elif self.times == 0:
            return f"knowing {known} fixes the answers: no noise is needed"
        elif math.isinf(self.times):
            said = f"without knowing {known} the answers would be exact{because}"
        elif self.times < 1:
            said = f"knowing {known} lowers the noise {rough(1 / self.times, 3)} times"
        else:
            said = f"knowing {known} multiplies the noise by {rough(self.times, 3)}{because}"
        if not self.ways or (self.times or 2.0) <= 1:
            return said
        named = "; or ".join(f"{way.text} ({_step_words(way.step, self.step)})" for way in self.ways)
        return f"{said}. Secrets that leave it alone: {named}"

    def document(self) -> dict[str, Any]:
        """Return the cost as plain data; `times` is "inf" where the answers would be exact without the fact."""
        times = self.times
        return {
            "fact": self.fact.document(),
            "step": self.step,
            "step_without": self.without,
            "times": "inf" if times is not None and math.isinf(times) else times,
            "edge": self.edge or None,
            "avoided_by": [{"secrets": way.secrets.document(), "step": way.step} for way in self.ways],
        }


def costs_of_knowledge(watched: Watched, policy: Policy) -> tuple[FactCost, ...]:
    """Return what each fact costs a question, of the facts that change its step."""
    if not policy.known or policy.per_person > 1:
        return ()
    step = _step(watched, policy)
    found = []
    for fact in dict.fromkeys(policy.known):
        if not is_touched(fact, policy):
            continue
        others = tuple(other for other in policy.known if other != fact)
        without = _step(watched, _knowing(policy, others))
        if without != step or step is None:
            ways = tuple(_ways(watched, fact, policy))
            found.append(FactCost(fact, step, without, edge_that_changes(fact, policy), ways))
    return tuple(found)


def costs_for_plan(plan: Plan) -> tuple[FactCost, ...]:
    """Return what each fact costs what a plan adds noise to; of several parts, the one that moves furthest."""
    return costs_of_knowledge(max(plan.parts, key=lambda part: part.step.l1).watched, plan.policy)


def costs_for_tables(policy: Policy) -> tuple[FactCost, ...]:
    """Return what each fact costs a histogram of all attributes, which shows most of whatever changes."""
    names = tuple(name for name, attribute in policy.domain.attributes if not attribute.is_set)
    return costs_of_knowledge(CellTables((names,)), policy) if names else ()


def _knowing(policy: Policy, known: Sequence[Known], secrets: Secrets | None = None) -> Policy:
    """Return the policy where something else is known, and with other secrets if they are given."""
    presence = "secret" if policy.presence == "secret" else None
    chosen, against = policy.secrets if secrets is None else secrets, policy.adversary if known else None
    return Policy(policy.domain, chosen, known, presence, adversary=against)


def _step(watched: Watched, policy: Policy) -> int | None:
    """Return the largest step, or None where no bound is proved."""
    try:
        return step_of_one_row(watched, policy).l1
    except PlanError:
        return None


def _ways(watched: Watched, fact: Known, policy: Policy) -> Iterator[Way]:
    """Go through narrower secrets under which no secret edge changes a fact."""
    whole, seen = _knowing(policy, ()), set[Secrets]()
    for secrets in _narrower(fact, policy):
        try:
            narrow = _knowing(policy, (), secrets)
        except PolicyError:
            continue
        if narrow.secrets in seen or not narrow.shapes or is_touched(fact, narrow) or not whole.covers(narrow):
            continue
        seen.add(narrow.secrets)
        yield Way(narrow.secrets, _step(watched, _knowing(policy, policy.known, secrets)))


def _narrower(fact: Known, policy: Policy) -> Iterator[Secrets]:
    """Go through secrets with fewer edges: without a fact's attributes, or within blocks that it does not split."""
    spared = policy.secrets.without_attributes(fact.about, policy.domain)
    blocks = list(_blocks(fact, policy))
    if blocks:
        yield Union((*(spared.families() if spared is not None else ()), *blocks))
    if spared is not None:
        yield spared


def _blocks(fact: Known, policy: Policy) -> Iterator[Secrets]:
    """Go through partitions of an attribute into what a known predicate about it alone tells apart."""
    if len(fact.about) != 1:
        return
    (name,) = fact.about
    attribute, axes = policy.domain[name], policy.domain.axes_of(name)
    if attribute.is_set or len(axes) > 1 or attribute.size > _MOST_LISTED:
        return
    for _, parts in axes_of(fact.tests(policy.domain)).values():
        values = [tuple(attribute.value(at) for low, high in part for at in range(low, high + 1)) for part in parts]
        yield Partition(name, None, tuple(values))


def _step_words(step: int | None, now: int | None) -> str:
    if step is None:
        return "no proven bound"
    if now is None:
        return f"a step of {step:,}"
    return f"{rough(now / step, 3)} times less noise" if step else "exact answers"


def _line(document: Any) -> str:
    """Return one family as a policy file may say it, on one line."""
    if isinstance(document, dict):
        inside = ", ".join(f"{key}: {_line(value)}" for key, value in document.items())
        return f"{{{inside}}}"
    if isinstance(document, list):
        shown = [_line(value) for value in document]
        return f"[{', '.join(shown if len(shown) <= _MOST_SHOWN else [*shown[:3], '..', shown[-1]])}]"
    return quoted(document) if isinstance(document, str) and not _PLAIN.fullmatch(document) else str(document)
