"""What applications have been shown, what their coalitions could know by now, and which release would tell too much.

Guarantee   A release that names what it shows is written into the ledger only if afterwards every coalition has learned
            at most its limit about the protected attributes, from all that its members were ever shown of a data set:
            on average (mutual information, in nats) and, where asked for, at worst (the posterior after any outcome).
            Refused before anything is charged and before rows are opened; processes that charge at once see each other.
            Nothing that follows from an unprotected dependence is written: neither limits nor where anybody stands.
Assumes     The dependence is the true one, a record is one draw from it (with `by`, all days of a person or all people
            of a household are one draw, with a record of each), draws are independent of each other, the sensitive
            values are those that the policy hides (a session refuses others), and all that shows single records of
            the data set is charged to the same ledger.
Why         What was shown is weighed before the ledger is locked; in the one locked transaction of the charge it is
            appended only if nothing else was shown since, and weighed again otherwise (`leakage`). It is an entry
            of the chain, so that nobody can take it out unnoticed. Lines of coins are independent of each other, so
            epsilons of an attribute add up within a coalition; on a line whose coins are remembered the largest counts
            (`plan/leakage/shown.py`). A key, and what a `where` looks at, count as shown for certain. The information
            is computed over all outcomes and about all attributes of a limit together, or bounded from above
            (`plan/leakage/outcomes.py`). Every release that shows single records is weighed where it is
            charged, also in a group of a split that pays nothing. With `by`, it counts for every day and person that
            its `where` may pick (`plan/leakage/shown.py`).
Reference   docs/decisions/0015-leakage.md.
Checked by  tests/unit/ledger/test_applications.py, tests/unit/ledger/test_limits_over_days.py,
            tests/contract/test_application_races.py.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.amounts import shown as in_short
from tacit.dependence.dependence import Dependence
from tacit.dependence.given import listed as as_tuple
from tacit.dependence.nearby import between
from tacit.dependence.suppression import outcomes, suppression
from tacit.dependence.unrolled import AT, base_of
from tacit.errors import BudgetExceeded, Exit, LedgerError, PlanError, nearest, sealed, word_or_kind
from tacit.ledger.input import canonical_json
from tacit.plan.leakage.outcomes import MOST_AROUND, MOST_OUTCOMES
from tacit.plan.leakage.setting import LeakageSetting, ReleaseLine, check_own, checked_limits, checked_setting
from tacit.plan.leakage.shown import Shown, ShownSoFar, apart

MOST_LISTED: Final = 8
QUICK: Final = (MOST_AROUND, 2**8)  # cells of outcomes around one attribute, where there are more in all


@dataclass(frozen=True)
class Standing:
    """What one coalition could know by now about some attributes together.

    `leakage` is the mutual information with all of them together, in nats, of at most `limit`; with very many values it
    is a number that is never below it. `posterior` is the largest probability that any outcome could give to any
    protected attribute being sensitive, over all that is seen: `worst` says which attribute and which outcome.
    """

    coalition: str
    applications: tuple[str, ...]
    about: tuple[str, ...]
    sees: Mapping[str, Fraction]
    leakage: float
    limit: float
    posterior: float
    worst: str

    def __str__(self) -> str:
        seen = _few([f"{name} at {in_short(epsilon)}" for name, epsilon in self.sees.items()]) or "nothing yet"
        return (
            f"{self.coalition} has seen {seen}: {self.leakage:.4g} of at most {self.limit:.4g} nats about "
            f"{_few(self.about)}; at worst {self.worst}."
        )

    def document(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return {
            **asdict(self),
            "applications": list(self.applications),
            "about": list(self.about),
            "sees": {name: str(epsilon) for name, epsilon in self.sees.items()},
        }

    @classmethod
    def from_document(cls, said: Mapping[str, Any]) -> Standing:
        """Return what `document` wrote."""
        listed = {"applications": tuple(said["applications"]), "about": tuple(said["about"])}
        sees = {name: Fraction(epsilon) for name, epsilon in said["sees"].items()}
        return cls(**{**said, **listed, "sees": sees})


class Applications:
    """Which applications may pool what they see, and how much each such coalition may learn.

    Args:
        dependence: How attributes depend on each other.
        sensitive: The sensitive values of each protected attribute.
        coalitions: The applications of each coalition, by its name; one that colludes with nobody is a coalition too.
        limit: In nats, as for `tc.plan.leakage_budget`: one number for what any coalition learns about all protected
            attributes together, or one for each coalition or attribute.
        measure: `value` or `bit`.
        own: Whether what an attribute's own release says about it counts; left out only where each limit is about one.
        posterior: The largest probability that any outcome may give to a protected attribute being sensitive, for every
            coalition and attribute and all that is seen, whatever `limit` and `own` say.
        by: The columns of the policy that say which person and which day a record is of, in the order of the names of a
            dependence over days and people: with `by=["day"]`, `arrival@3` is arrival in records of day 3.
    """

    @sealed
    def __init__(
        self,
        dependence: Dependence,
        *,
        sensitive: Mapping[str, Iterable[Any]],
        coalitions: Mapping[str, Iterable[str]],
        limit: Any,
        measure: str = "value",
        own: bool = True,
        posterior: float | None = None,
        by: str | Sequence[str] = (),
    ) -> None:
        members = _members(coalitions)
        checked = checked_setting(dependence, sensitive=sensitive, limit=0, measure=measure, own=own)
        self.dependence = dependence
        self.coalitions: Mapping[str, tuple[str, ...]] = members
        self.sensitive = checked.sensitive
        self.measure, self.own = measure, own
        self.posterior = _probability(posterior)
        self.by: tuple[str, ...] = _columns(by)
        self.each = _each(dependence, self.by)
        self._limits = checked_limits(limit, checked.sensitive, dict.fromkeys(members, ()), has_coalitions=True)
        check_own(self._limits, own=own)

    def __repr__(self) -> str:
        return f"Applications({', '.join(self.coalitions)}; about {', '.join(self.sensitive)})"

    @property
    def known(self) -> list[str]:
        """Every application that is in a coalition."""
        return list(dict.fromkeys(one for members in self.coalitions.values() for one in members))

    def check_public(self) -> None:
        """Refuse a dependence that nobody paid for: what it refuses and what is written of it tell about people.

        Raises:
            PlanError: If it was counted on the private rows. Nothing was charged.
        """
        if self.dependence.unprotected:
            raise PlanError(
                "must rest on a public dependence; this one was counted on the private rows, and nobody paid for that",
                key="leakage",
                given="unprotected",
                fix="Nothing was charged. Count a public or an earlier data set, or set no limits.",
            )

    def document(self) -> dict[str, Any]:
        """Return the limits as plain data; the dependence by its fingerprint."""
        return {
            "dependence": self.dependence.fingerprint,
            "sensitive": {name: sorted(map(str, values)) for name, values in sorted(self.sensitive.items())},
            "coalitions": {name: list(members) for name, members in self.coalitions.items()},
            "limits": [
                {"coalition": limit.seen_by, "about": list(limit.about), "limit": limit.most} for limit in self._limits
            ],
            "measure": self.measure,
            "own": self.own,
            "posterior": self.posterior,
            **({"by": list(self.by)} if self.by else {}),  # limits without it stay what they were
        }

    @property
    def fingerprint(self) -> str:
        """The same for equal limits under equal dependences, in every process."""
        return hashlib.sha256(canonical_json(self.document()).encode()).hexdigest()

    @sealed
    def standing(self, shown: Sequence[Shown]) -> tuple[Standing, ...]:
        """Return what each coalition could know after all this was shown, one for each limit."""
        seen = ShownSoFar()
        seen.add(shown)
        return self._standing(self._reached(seen))

    def _standing(self, reached: Mapping[tuple[str, str], Fraction]) -> tuple[Standing, ...]:
        lines = tuple(ReleaseLine(application, attribute) for application, attribute in reached)
        seen = {
            name: tuple(at for at, line in enumerate(lines) if line.application in ("", *members))
            for name, members in self.coalitions.items()
        }
        limits = tuple(replace(limit, lines=seen[limit.seen_by]) for limit in self._limits)
        setting = LeakageSetting(self.sensitive, lines, limits, self.measure, self.own, joint=True, coalitions=seen)
        u = np.array([-math.expm1(-float(epsilon)) for epsilon in reached.values()])
        found = setting.leakages(setting.tables(self.dependence), u)
        sees = {limit.seen_by: self._sees(limit.seen_by, reached) for limit in limits}
        surest = {name: self._surest(each) for name, each in sees.items()}
        return tuple(
            Standing(name, self.coalitions[name], limit.about, sees[name], float(leakage), limit.most, *surest[name])
            for name, limit, leakage in zip((limit.seen_by for limit in limits), limits, found, strict=True)
        )

    def weigh(self, before: Sequence[Shown], new: Sequence[Shown], *, file: str = "") -> tuple[Standing, ...]:
        """Return where everybody stands after a release, or refuse it, as `weigh_after` does."""
        seen = ShownSoFar()
        seen.add(before)
        return self.weigh_after(seen, new, file=file)

    def weigh_after(self, before: ShownSoFar, new: Sequence[Shown], *, file: str = "") -> tuple[Standing, ...]:
        """Return where everybody stands after a release, or refuse it if a coalition would learn too much.

        Raises:
            BudgetExceeded: If it would. Nothing was charged.
            LedgerError: If it shows something that the limits do not know.
        """
        for one in new:
            self._check_known(one, file)
        reached = self._reached(before.after(new))
        after = self._standing(reached)
        listed = _few(list(map(str, new)))
        for stands in after:
            if stands.leakage > stands.limit:
                raise BudgetExceeded(
                    f"of {stands.coalition} must stay at most {stands.limit:g} nats about {_few(stands.about)}; "
                    f"after this release ({listed}) it would be {stands.leakage:.4g}",
                    key="leakage",
                    file=file,
                    fix="Nothing was charged and no row was opened. Ask for a smaller epsilon "
                    "(`tc.plan.leakage_budget` finds the largest), or for another attribute.",
                    exit_code=Exit.REFUSED,  # no grant would help
                )
        if self.posterior is not None:
            known = {stands.coalition: (stands.posterior, stands.worst) for stands in after}
            for name in self.coalitions:  # also one without a limit on what it learns on average
                chance, words = known[name] if name in known else self._surest(self._sees(name, reached))
                if chance > self.posterior:
                    raise BudgetExceeded(
                        f"of {name} must stay at most {self.posterior:g} in every outcome; after this release "
                        f"({listed}), {words}",
                        key="posterior",
                        file=file,
                        fix="Nothing was charged and no row was opened. Ask for a smaller epsilon.",
                        exit_code=Exit.REFUSED,
                    )
        return after

    def _check_known(self, one: Shown, file: str) -> None:
        if one.attribute not in self.dependence.values and not one.is_public:
            raise LedgerError(
                "must be an attribute of the dependence that limits what applications learn",
                key="attribute",
                given=one.attribute,
                file=file,
                fix=f"Nothing was charged. {nearest(one.attribute, list(self.dependence.names))} "
                "Or set limits with a dependence that has it.",
            )
        if one.is_public and self.sensitive.get(one.attribute):
            rule = "is shown for certain, and has sensitive values: the policy does not hide them"
            fix = "Nothing was charged. Let the policy protect these values, or set limits without them."
            raise LedgerError(rule, key="attribute", given=one.attribute, file=file, fix=fix)
        if one.application and one.application not in self.known:
            rule = "must be an application of a coalition"
            fix = f"Nothing was charged. {nearest(one.application, self.known)} Or set limits that name it."
            raise LedgerError(rule, key="application", given=one.application, file=file, fix=fix)

    def _reached(self, seen: ShownSoFar) -> dict[tuple[str, str], Fraction]:
        """Return the epsilon of each application and attribute that the dependence says something about."""
        found: dict[tuple[str, str], Fraction] = {}
        for whom, epsilon in seen.reached.items():
            for name, at in self._named(whom[1], epsilon):
                # what is public and the dependence does not have, it says nothing about
                if name in self.dependence.values or whom not in seen.public:
                    found[whom[0], name] = found.get((whom[0], name), Fraction(0)) + at
        return found

    def _named(self, attribute: str, epsilon: Fraction) -> list[tuple[str, Fraction]]:
        """Return under which names of the dependence something was shown, perhaps under other limits."""
        names = self.names_of(attribute) or self.names_of(base_of(attribute)) or (attribute,)
        # if of all days and people, perhaps by one coin
        return [(name, apart(epsilon, len(names))) for name in names]

    def names_of(self, attribute: str) -> tuple[str, ...]:
        """Return the names that the dependence has for an attribute: its own, or those of all days and people."""
        return (attribute,) if attribute in self.dependence.values else tuple(self.each.get(attribute, {}).values())

    def _sees(self, coalition: str, reached: Mapping[tuple[str, str], Fraction]) -> dict[str, Fraction]:
        found: dict[str, Fraction] = {}
        for (application, attribute), epsilon in reached.items():
            if application in ("", *self.coalitions[coalition]):  # what everybody sees, every coalition sees
                found[attribute] = found.get(attribute, Fraction(0)) + epsilon
        return found

    def _surest(self, sees: Mapping[str, Fraction]) -> tuple[float, str]:
        """Return how sure the surest outcome of what is seen makes of any protected attribute, and which, in words."""
        release = suppression(
            self.dependence,
            {name: list(values) for name, values in self.sensitive.items()},
            {name: float(epsilon) for name, epsilon in sees.items()},
        )
        chance, worst = 0.0, ""
        cells = math.prod(len(self.dependence.values[name]) + 1 for name in sees)
        is_bound = self.dependence.is_network and cells > MOST_OUTCOMES
        for target in self.sensitive:
            try:
                found = (
                    between(release, target, sees, sizes=QUICK).most if is_bound else outcomes(release, target, sees)
                )
            except PlanError:
                if not is_bound:
                    raise
                return 1.0, f"{target} might be known to be sensitive: too much depends on it for a better bound"
            odds = found.log_odds()
            at = int(np.argmax(odds))
            posterior = 1.0 / (1.0 + math.exp(-odds[at])) if odds[at] > -700 else 0.0
            if posterior > chance or not worst:
                given = ", ".join(f"{name} {_word(value)}" for name, value in found.outcome(at).items())
                chance = posterior
                words = f"at most {posterior:.4g}, by a bound over all outcomes" if is_bound else f"{posterior:.4g}"
                worst = f"{target} is sensitive with probability {words}"
                worst += f" given {given}" if given and not is_bound else ""
        return chance, worst


def _columns(given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else as_tuple(given)
    if names is None or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise PlanError("must name columns of the policy", key="by", given=word_or_kind(given), fix='Say by=["day"].')
    return names


def _each(dependence: Dependence, by: Sequence[str]) -> dict[str, dict[tuple[str, ...], str]]:
    """Return for each attribute its names by the labels of their person and day, if they have as many as there are."""
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for name in dependence.names:
        base, *labels = name.split(AT)
        if by and len(labels) == len(by):
            found.setdefault(base, {})[tuple(labels)] = name
    if by and not found:
        rule = f"must say as many columns as names of the dependence have labels, such as {dependence.names[0]}"
        raise PlanError(rule, key="by", given=list(by), fix="Make it with tc.Dependence.over(..).")
    return found


def _few(words: Sequence[str]) -> str:
    return (
        ", ".join(words)
        if len(words) <= MOST_LISTED
        else f"{', '.join(words[:MOST_LISTED])} and {len(words) - MOST_LISTED} more"
    )


def _word(value: Any) -> str:
    return "suppressed" if value is None else f"= {value}"


def _members(given: Any) -> dict[str, tuple[str, ...]]:
    fix = 'Say coalitions={"lighting": ["lighting"], "both": ["lighting", "space"]}.'
    if not isinstance(given, Mapping) or not given:
        raise PlanError("must map names to applications", key="coalitions", given=word_or_kind(given), fix=fix)
    found = {}
    for name, listed in given.items():
        members = [listed] if isinstance(listed, str) else list(listed) if isinstance(listed, Iterable) else []
        if (
            not isinstance(name, str)
            or not name
            or not members
            or not all(isinstance(one, str) and one for one in members)
        ):
            raise PlanError("must name applications", key="coalitions", given=word_or_kind(name), fix=fix)
        found[name] = tuple(dict.fromkeys(members))
    return found


def _probability(given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise PlanError("must be a probability", key="posterior", given=word_or_kind(given), fix="For instance 0.9.")
    return float(given)
