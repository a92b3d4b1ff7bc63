"""A plan of leakage: the epsilons, what they let everybody learn, and how far from the best they can be.

Guarantee   If two dependences are at most `distance` apart in total variation, and releases are made by the same coins,
            then a mutual information between a target with `values` values and what is seen changes by at most
            `largest_change(distance, values)` nats.
Assumes     Total variation of the attributes that are involved; it is never larger than that of all attributes.
Why         Let (X, Y) be target and what is seen under one dependence, (X', Y') under the other. What is seen is made
            from attributes by the same coins, so the laws of (X, Y) and (X', Y') are at most d apart too, and can be
            coupled with Pr[E = 1] <= d, where E says that the pairs differ. Then
                H(X | Y) <= H(E) + H(X | Y, E) <= h(d) + (1 - d) H(X | Y, E = 0) + d log |X|
            and where E = 0 the pairs are equal: (1 - d) H(X' | Y', E = 0) <= H(X' | Y', E) <= H(X' | Y').
            So H(X | Y) <= H(X' | Y') + h(d) + d log |X|, and the same without Y and with the two exchanged. An
            information is H(X) - H(X | Y), so it changes by at most twice that; and it never exceeds log |X|.
            (h is the binary entropy. Where Pr[E = 1] < d, some equal pairs are counted as different at random, so that
            the probability is d.)
Reference   Fannes' inequality, in its classical form.
Checked by  tests/unit/plan/test_leakage_plan.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.errors import PlanError, sealed, word_or_kind
from tacit.plan.leakage.informations import MeasuredTables
from tacit.plan.leakage.setting import LeakageSetting, Limit, ReleaseLine, largest_posterior

METHODS = {
    "convex": "a convex program",
    "boxes": "branch and bound",
    "safe": "a convex bound that is never below the joint leakage, then raised as far as the joint leakage allows",
}


@dataclass(frozen=True)
class LimitUse:
    """How much of one limit a plan uses: what `seen_by` learns about the attributes `about` together, in nats.

    Without coalitions it is `added_up` from what each release by itself tells about each attribute by itself.
    """

    seen_by: str
    about: tuple[str, ...]
    leakage: float
    limit: float
    added_up: bool = False

    def __str__(self) -> str:
        who = "Single releases, added up, tell" if self.added_up else f"{self.seen_by} would learn"
        return f"{who} {self.leakage:.6g} of at most {self.limit:.6g} nats about {', '.join(self.about)}."


@dataclass(frozen=True)
class StillHolds:
    """Whether a plan keeps its limits under another dependence, and why. True or False as it stands."""

    holds: bool
    distance: float
    why: str

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True)
class LeakagePlan:
    """Epsilons for each line of release.

    `epsilon` and `release_probability` are by attribute, or by application and then by attribute if applications were
    given; the probability is that of a value that is not sensitive. `leakage` is the largest that a limit bounds,
    and `limits` has all of them. `value` is what the plan reaches, and nothing that is allowed reaches more than
    `value + gap`. If a `posterior` was limited, it is how sure any outcome could make a coalition, of at most
    `most_sure`. The plan holds for every dependence at most `drift` away in total variation from its own.

    `unprotected` says that its dependence was counted on the private rows: then the plan tells about them.
    """

    unprotected: bool = field(init=False)
    epsilon: Mapping[str, Any]
    release_probability: Mapping[str, Any]
    value: float
    gap: float
    objective: str
    method: str
    limits: tuple[LimitUse, ...]
    drift: float
    setting: LeakageSetting = field(repr=False)
    dependence: Dependence = field(repr=False)
    u: Floats = field(repr=False, compare=False)
    posterior: float | None = None
    most_sure: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "unprotected", self.dependence.unprotected)

    @property
    def leakage(self) -> float:
        """The largest number that a limit bounds, in nats."""
        return max(use.leakage for use in self.limits)

    @sealed
    def holds_for(self, other: Dependence) -> StillHolds:
        """Say whether the plan may be kept under another dependence over the same attributes, or must be made anew.

        Proven by the distance alone where that is at most `drift`; otherwise the leakage is computed anew.
        """
        names = self.setting.attributes
        if not isinstance(other, Dependence):
            raise PlanError("must be a dependence", key="other", given=word_or_kind(other), fix="Make one first.")
        for name in names:
            other.place(name, key="other")
        found = self._still_holds(other, self.dependence.total_variation(other, *names))
        marks = self.dependence.marks or other.marks
        return replace(found, why=" ".join([*marks, found.why]))

    def _still_holds(self, other: Dependence, distance: float) -> StillHolds:
        if distance <= self.drift:
            why = f"Kept: the dependence has moved by {distance:.3g}, and up to {self.drift:.3g} was planned for."
            return StillHolds(True, distance, why)
        uses = uses_of(self.setting, self.setting.tables(other), self.u)
        worst = max(uses, key=lambda use: use.leakage - use.limit)
        moved = f"the dependence has moved by {distance:.3g}"
        if self.most_sure is not None:
            sure = largest_posterior(self.setting, other, self.u)
            if sure > self.most_sure:
                now = f"An outcome could now give {sure:.6g} of at most {self.most_sure:.6g}."
                return StillHolds(False, distance, f"Plan anew: {moved}. {now}")
        if worst.leakage <= worst.limit:
            return StillHolds(True, distance, f"Kept: {moved}, and every limit still holds. {worst}")
        return StillHolds(False, distance, f"Plan anew: {moved}. {worst}")

    def most_at(self, distance: float) -> tuple[float, ...]:
        """Return what each leakage can become, at most, if the dependence moves by this total variation."""
        return tuple(
            use.leakage + allowance(self.setting, self.dependence, limit, distance)
            for use, limit in zip(self.limits, self.setting.limits, strict=True)
        )

    def document(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {
            "unprotected": self.unprotected,
            "objective": self.objective,
            "measure": self.setting.measure,
            "method": self.method,
            "epsilon": dict(self.epsilon),
            "release_probability": dict(self.release_probability),
            "value": self.value,
            "gap": self.gap,
            "leakage": self.leakage,
            "limits": [
                {"seen_by": use.seen_by, "about": list(use.about), "leakage": use.leakage, "limit": use.limit}
                for use in self.limits
            ],
            "drift": self.drift,
            "posterior": self.posterior,
            "dependence": self.dependence.fingerprint,
        }

    def __str__(self) -> str:
        lines = list(self.dependence.marks)
        lines += [
            f"{line}: epsilon {_of_line(self.epsilon, line):.6g}, a value that is not sensitive is released with "
            f"probability {u:.4g}."
            for line, u in zip(self.setting.lines, self.u.tolist(), strict=True)
        ]
        what = "weighted releases for each record" if self.objective == "releases" else "weighted sum of epsilons"
        lines.append(f"Reaches {self.value:.6g} ({what}); no allowed plan reaches {self.gap:.2g} more.")
        lines += map(str, self.limits)
        if self.posterior is not None:
            lines.append(f"No outcome gives more than {self.posterior:.6g} of at most {self.most_sure:.6g}.")
        return "\n".join(lines)


def uses_of(setting: LeakageSetting, tables: MeasuredTables, u: Floats) -> tuple[LimitUse, ...]:
    """Return how much of each limit release probabilities use, by evaluation."""
    found = setting.leakages(tables, u)
    return tuple(
        LimitUse(limit.seen_by, limit.about, float(leakage), limit.most, added_up=not setting.joint)
        for limit, leakage in zip(setting.limits, found, strict=True)
    )


def allowance(setting: LeakageSetting, dependence: Dependence, limit: Limit, distance: float) -> float:
    """Return how much what a limit bounds can rise while the dependence moves by at most this distance."""
    size = setting.tables(dependence).size
    return sum(largest_change(distance, math.prod(map(size, one))) for one in setting.addends(limit, size))


def by_line(setting: LeakageSetting, numbers: Floats) -> dict[str, Any]:
    """Return a number of each line by attribute, or by application and attribute."""
    pairs = list(zip(setting.lines, np.asarray(numbers).tolist(), strict=True))
    if all(line.application == line.attribute for line in setting.lines):
        return {line.attribute: number for line, number in pairs}
    found: dict[str, Any] = {}
    for line, number in pairs:
        found.setdefault(line.application, {})[line.attribute] = number
    return found


def _of_line(numbers: Mapping[str, Any], line: ReleaseLine) -> float:
    found = numbers[line.application]
    return float(found[line.attribute] if isinstance(found, Mapping) else found)


def largest_change(distance: float, values: int) -> float:
    """Return how much one mutual information can change, in nats.

    >>> largest_change(0.0, 3), round(largest_change(0.01, 2), 4), round(largest_change(0.5, 2), 4)
    (0.0, 0.1259, 0.6931)
    """
    d = min(max(distance, 0.0), 1.0)
    entropy = 0.0 if d in (0.0, 1.0) else -d * math.log(d) - (1 - d) * math.log1p(-d)
    return min(math.log(max(values, 1)), 2 * (entropy + d * math.log(max(values, 1))))
