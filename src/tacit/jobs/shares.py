"""What each release of a job costs, where the file says how accurate it must be, or how the rest is shared.

Releases with an epsilon have it. Releases with `error` or `within` have the smallest epsilon that reaches it, in the
order of the file, from what those leave of the budget. The others share all of what is then left, by their weights.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from tacit.amounts import as_epsilon, shown
from tacit.errors import PlanError
from tacit.plan.accuracy import Accuracy, cost_or_accuracy
from tacit.plan.question import Query
from tacit.policy.policy import Policy
from tacit.policy.yaml_entries import YamlEntry
from tacit.release.planner import Planner


@dataclass(frozen=True)
class Share:
    """The part of a job's budget that one release asks for: an epsilon, an accuracy, or its weight in the rest."""

    asked: Fraction | Accuracy | None
    weight: Fraction
    query: Query
    options: Mapping[str, Any]
    places: Mapping[str, YamlEntry]

    @property
    def place(self) -> YamlEntry:
        """Where the file says it, or names the release."""
        words = ("epsilon", "error", "within", "weight", "name")
        return next(self.places[word] for word in words if word in self.places)


def read_share(
    places: Mapping[str, YamlEntry], values: Mapping[str, Any], query: Query, epsilon: Fraction | None
) -> Share:
    """Return what a release asks for, or refuse two that contradict each other."""
    options = {key: values[key] for key in ("consistent", "nonnegative", "application") if key in values}
    given = {key: values[key] for key in ("error", "within", "level") if key in values}
    whole = places["name"]
    with whole.blamed(places):
        if epsilon is None and not given:
            return Share(None, as_epsilon(values.get("weight", 1), key="weight"), query, options, places)
        asked = cost_or_accuracy(epsilon, **given)
        if "weight" in values:
            rule = "is for releases that share what the others leave, so nothing else may say what they cost"
            raise PlanError(rule, key="weight", given=values["weight"], fix="Leave one out.")
    return Share(asked, Fraction(0), query, options, places)


def epsilons_of(shares: Sequence[Share], policy: Policy, budget: Fraction | None) -> list[Fraction]:
    """Return the epsilon of each release; with any that share what is left, they add up to the budget exactly."""
    found = [share.asked if isinstance(share.asked, Fraction) else Fraction(0) for share in shares]
    planner = Planner(policy)
    for at, share in enumerate(shares):
        if isinstance(share.asked, Accuracy):
            left = None if budget is None else partial(operator.sub, budget, sum(found))
            with share.place.blamed(share.places):
                found[at] = planner.plan(share.query, share.asked, left, **share.options).epsilon
    taken, together = sum(found, Fraction(0)), sum(share.weight for share in shares)
    for at, share in enumerate(shares):
        if not share.weight:
            continue
        if budget is None:
            rule = "must say what it costs (epsilon, error or within): only the budget of a file can be shared"
            raise share.place.refuse(rule, fix="Say it, or add `budget: 1.0` to the file.")
        if taken >= budget:
            rule = f"has no share of the budget {shown(budget)}, since the other releases cost {shown(taken)}"
            raise share.place.refuse(rule, fix="Let them cost less, or say what this release costs.")
        with share.place.blamed(share.places):
            found[at] = as_epsilon((budget - taken) * share.weight / together)
    return found
