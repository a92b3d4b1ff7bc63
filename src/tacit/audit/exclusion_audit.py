"""What leaving records out gives away where attributes depend on each other: the exclusion audit.

An adversary who knows the dependence sees a value, or nothing, of each attribute that one of their applications asked
for. Everything here is exact: posteriors of any attribute after any pattern, what is learnt on average and at worst,
and whether a release is free from exclusion attacks. Nothing opens rows; the audit is about what could be seen.

Freedom from exclusion attacks at epsilon means: whatever is seen, the odds of a sensitive value of an attribute against
any other value of it rise by a factor of exp(epsilon) at most. One attribute alone has it at its own epsilon; beside
others that depend on it, it may need much more, or have none at all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from tacit.audit.exclusion_results import (
    Cancellation,
    Freedom,
    LeakBounds,
    LeakReport,
    LeakRow,
    WorstOutcome,
    cancellations,
    cancelling_epsilon,
)
from tacit.audit.posterior_bounds import PosteriorBounds, posterior_bounds
from tacit.dependence.dependence import Dependence
from tacit.dependence.given import listed
from tacit.dependence.nearby import between
from tacit.dependence.suppression import Suppression, checked_epsilon, checked_seen, outcomes, suppression
from tacit.drawing import Held
from tacit.errors import PlanError, kind_of, sealed, word_or_kind
from tacit.policy.policy import Policy, as_policy

_NAME: Final = 'Write "leaving", or ["arrival", "leaving"].'


@dataclass(frozen=True, eq=False, repr=False)
class Exclusion(Held):
    """An exclusion audit. Made by `tc.audit.exclusion`."""

    release: Suppression
    applications: Mapping[str, Mapping[str, float]]  # what each sees, and at which epsilon
    coalitions: tuple[tuple[str, ...], ...]

    @property
    def dependence(self) -> Dependence:
        """The dependence that the adversary is assumed to know."""
        return self.release.dependence

    def sees(self, *applications: str) -> tuple[str, ...]:
        """Return the attributes that some applications see; all that are released, without a name."""
        for name in applications:
            if not isinstance(name, str) or name not in self.applications:
                raise PlanError(
                    "must be an application",
                    key="application",
                    given=word_or_kind(name),
                    fix=f"Known: {', '.join(self.applications) or 'none; name them with applications={..}'}.",
                )
        if not applications:
            return tuple(self.release.epsilon)
        return tuple(dict.fromkeys(name for one in applications for name in self.applications[one]))

    def together(self, *applications: str) -> Exclusion:
        """Return the audit of some applications that exchange what they see.

        Each has coins of its own, so that the epsilons of an attribute that several of them see add up: it is
        suppressed for all of them only if all of their coins say so.
        """
        seen = {
            name: sum(self.applications[one].get(name, 0.0) for one in applications)
            for name in (self.sees(*applications) if applications else ())
        }
        release = Suppression(self.dependence, self.release.sensitive, MappingProxyType(seen), self.release.coins)
        return Exclusion(release, MappingProxyType({}), ())

    # ---- after one pattern ------------------------------------------------------------------------------------------

    @sealed
    def posterior(
        self, attribute: str | Sequence[str], suppressed: Any = None, released: Any = None
    ) -> dict[Any, float]:
        """Return the probability of each value, given what was seen; of several attributes, of each combination.

        `suppressed={"arrival": 3}` was suppressed in three questions, `released={"arrival": "early"}` was shown.
        """
        names = [attribute] if isinstance(attribute, str) else listed(attribute)
        if not names:
            raise PlanError("must be one or several names", key="attribute", given=word_or_kind(attribute), fix=_NAME)
        found = self.release.posterior(names, suppressed=suppressed, released=released)
        values = [self.dependence.values[name] for name in names]
        cells = values[0] if isinstance(attribute, str) else itertools.product(*values)
        return dict(zip(cells, found.ravel().tolist(), strict=True))

    @sealed
    def odds(self, attribute: str, suppressed: Any = None, released: Any = None) -> float:
        """Return P(sensitive) / P(not sensitive), given what was seen."""
        return _exp(self.release.log_odds(attribute, suppressed=suppressed, released=released))

    @sealed
    def factor(self, attribute: str, suppressed: Any = None, released: Any = None) -> float:
        """Return by how much the odds of being sensitive have changed through what was seen."""
        before = self.release.log_odds(attribute)
        after = self.release.log_odds(attribute, suppressed=suppressed, released=released)
        return 1.0 if before == after else _exp(after - before)

    @sealed
    def chance(self, suppressed: Any = None, released: Any = None) -> float:
        """Return how likely it is to see this."""
        return self.release.chance(suppressed=suppressed, released=released)

    @sealed
    def cancelling_epsilon(
        self, attribute: str, vary: str, suppressed: Any = None, released: Any = None
    ) -> float | None:
        """Return the epsilon of `vary`, suppressed, at which what was seen leaves the attribute's odds as they were."""
        return cancelling_epsilon(self.release, attribute, vary, suppressed=suppressed, released=released)

    @sealed
    def bounds(
        self, attribute: str, *, knows: Mapping[str, Any], suppressed: Any = None, released: Any = None
    ) -> PosteriorBounds:
        """Return the least and largest posterior of an adversary who knows the dependence only roughly.

        `knows={"variation": 0.05}`: no event's probability is off by more; also `contamination`, `cells`, `intervals`
        (`tacit.audit.posterior_bounds` says what they mean).
        """
        return posterior_bounds(self.release, attribute, knows, suppressed=suppressed, released=released)

    # ---- over all outcomes ------------------------------------------------------------------------------------------

    @sealed
    def mutual_information(
        self, attribute: str, seen: Any = None, *, value: bool = True, questions: Any = None
    ) -> float:
        """Return what the attributes seen tell about one attribute on average, in nats.

        By default about its value, from the values that are shown. With `value=False` only about whether it is
        sensitive, from whether there was a release: what the paper computes, and too little where values differ.
        """
        if not isinstance(value, bool):
            raise PlanError("must be True or False", key="value", given=word_or_kind(value), fix="False: bits alone.")
        return outcomes(
            self.release, attribute, self._seen(seen), questions=questions, target_bit=not value, seen_bits=not value
        ).information()

    @sealed
    def worst(self, attribute: str, seen: Any = None, *, questions: Any = None) -> WorstOutcome:
        """Return the outcome that raises the odds of the attribute being sensitive most, the likeliest of several."""
        table = outcomes(self.release, attribute, self._seen(seen), questions=questions, target_bit=True)
        odds, chances = table.log_odds(), table.log_chances()
        best = np.flatnonzero(odds >= odds.max() - 1e-12 if np.isfinite(odds.max()) else odds == odds.max())
        at = int(best[np.argmax(chances[best])])
        prior = self.release.log_odds(attribute)
        return WorstOutcome(
            attribute,
            MappingProxyType(table.outcome(at)),
            _exp(float(chances[at])),
            _share(prior),
            _share(float(odds[at])),
            1.0 if odds[at] == prior else _exp(float(odds[at]) - prior),
        )

    @sealed
    def between(self, attribute: str, seen: Any = None, *, questions: Any = None) -> LeakBounds:
        """Return between which numbers that lies which everything seen tells about one attribute, however much it is.

        Where all outcomes fit into a table it is what `mutual_information`, `worst` and `freedom` say.
        """
        found = between(self.release, attribute, self._seen(seen), questions=questions)
        ends = found.least, found.most
        information, odds, freedom = zip(
            *((end.information(), float(end.log_odds().max()), end.freedom()[0]) for end in ends), strict=True
        )
        prior, entropy = _share(self.release.log_odds(attribute)), _entropy(self.dependence.marginal(attribute))
        posterior = _share(odds[0]), _share(odds[1])
        return LeakBounds(attribute, found.around, information, entropy, posterior, prior, freedom)

    @sealed
    def freedom(self, attribute: str | None = None, seen: Any = None, *, questions: Any = None) -> Freedom:
        """Return the smallest epsilon at which there is freedom from exclusion attacks: of one attribute, or of all."""
        names = list(self.release.sensitive) if attribute is None else [attribute]
        best = Freedom(0.0, None, None, None, MappingProxyType({}))
        for name in names:
            table = outcomes(self.release, name, self._seen(seen), questions=questions)
            level, hidden, cover, at = table.freedom()
            if level > best.level:
                best = Freedom(level, name, hidden, cover, MappingProxyType(table.outcome(at)))
        return best

    def free(self, epsilon: float, seen: Any = None, *, questions: Any = None) -> bool:
        """Say whether there is freedom from exclusion attacks at this epsilon, for every attribute."""
        if isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not epsilon >= 0:
            raise PlanError("must be a number from 0", key="epsilon", given=word_or_kind(epsilon), fix="Write 1.0.")
        return self.freedom(seen=seen, questions=questions).level <= epsilon * (1 + 1e-9)

    def cancellations(self) -> tuple[Cancellation, ...]:
        """Return for every pair of attributes how two suppressions work together, and where they cancel each other."""
        return tuple(cancellations(self.release))

    @sealed
    def report(self) -> LeakReport:
        """Return what each application and each coalition learns; without applications, whoever sees everything."""
        groups = [(name,) for name in self.applications] + [one for one in self.coalitions if len(one) > 1]
        rows = []
        for who in groups or [("everybody",)]:
            leak = self.together(*who) if groups else self
            for name, values in self.release.sensitive.items():
                if not values:
                    continue
                whole = outcomes(leak.release, name, leak.sees())
                worst = leak.worst(name)
                rows.append(
                    LeakRow(
                        who,
                        name,
                        worst.prior,
                        worst,
                        leak.mutual_information(name, value=False),
                        whole.information(),
                        _entropy(self.dependence.marginal(name)),
                        whole.freedom()[0],
                    )
                )
        return LeakReport(tuple(rows), self.dependence.marks)

    def _seen(self, seen: Any) -> tuple[str, ...]:
        return self.sees() if seen is None else checked_seen(self.release, seen)

    def __repr__(self) -> str:
        asked = ", ".join(f"{name} at {epsilon:g}" for name, epsilon in self.release.epsilon.items())
        mark = "unprotected; " if self.dependence.unprotected else ""
        return f"Exclusion({mark}{asked}; coins {self.release.coins})"

    def __str__(self) -> str:
        try:
            return f"{self.report()}\n{self.freedom()}"
        except PlanError as refused:  # too many outcomes; single questions may have fewer
            return "\n".join([*self.dependence.marks, f"{self!r}", f"{refused}"])


@sealed
def exclusion(
    dependence: Dependence,
    sensitive: Mapping[str, Iterable[Any]],
    epsilon: Mapping[str, float],
    *,
    coins: str = "fresh",
    policy: Policy | None = None,
    applications: Mapping[str, Iterable[str] | Mapping[str, float]] | None = None,
    coalitions: Iterable[Iterable[str]] = (),
) -> Exclusion:
    """Return the audit of a release of attributes that depend on each other.

    `sensitive` has the sensitive values of attributes, `epsilon` the epsilon at which each is released (0 never,
    infinite always where it is not sensitive). `coins` says whether asking again tosses a new coin ("fresh") or returns
    the same ("remembered"). `applications` says who sees which attributes, with `{"arrival": 0.5}` at epsilons of their
    own; each has its own coins. `coalitions` says which of them exchange what they see. With a `policy`, every
    attribute and value must be one of its domain.

    >>> import tacit as tc
    >>> day = tc.Dependence.from_table(
    ...     {("late", "late"): 0.3, ("late", "early"): 0.1, ("early", "early"): 0.6}, names=("arrival", "leaving")
    ... )
    >>> leak = exclusion(day, sensitive={"arrival": ["late"], "leaving": ["late"]}, epsilon={"arrival": 1.0})
    >>> round(leak.odds("leaving", suppressed={"arrival": 3}), 4)
    2.31
    >>> print(leak.worst("leaving"))
    leaving is sensitive with probability 0.4833 instead of 0.3 (odds times 2.183) after arrival suppressed, which has \
probability 0.6207
    """
    release = suppression(dependence, sensitive, epsilon, coins)
    if policy is not None:
        dependence.check_domain(as_policy(policy, fix="Write exclusion(.., policy=policy).").domain)
    seen = _checked_applications(release, applications)
    return Exclusion(release, MappingProxyType(seen), _checked_coalitions(seen, coalitions))


def _checked_applications(release: Suppression, given: Any) -> dict[str, Mapping[str, float]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise PlanError(
            f"must be a mapping, not {kind_of(given)}", key="applications", fix='Write {"lighting": ["arrival"]}.'
        )
    found: dict[str, Mapping[str, float]] = {}
    for name, seen in given.items():
        if isinstance(seen, Mapping):
            own = checked_epsilon(release.dependence, seen, key=f"applications.{name}")
        else:
            own = {one: release.epsilon[one] for one in checked_seen(release, seen)}
        found[str(name)] = MappingProxyType(own)
    return found


def _checked_coalitions(applications: Mapping[str, Any], given: Any) -> tuple[tuple[str, ...], ...]:
    fix = 'Write coalitions=[["lighting", "planning"]].'
    groups = listed(given)
    if groups is None:
        raise PlanError("must be a list of lists", key="coalitions", given=word_or_kind(given), fix=fix)
    found = []
    for one in groups:
        members = listed(one)
        if members is None:
            raise PlanError("must be a list of lists", key="coalitions", given=word_or_kind(one), fix=fix)
        for name in members:
            if not isinstance(name, str) or name not in applications:
                raise PlanError(
                    "must name applications",
                    key="coalitions",
                    given=word_or_kind(name),
                    fix=f"Known: {', '.join(applications) or 'none'}.",
                )
        found.append(tuple(dict.fromkeys(members)))
    return tuple(found)


def _exp(log: float) -> float:
    return math.inf if log > 709 else math.exp(log)


def _share(log_odds: float) -> float:
    """Return the probability with these odds."""
    return 1 / (1 + math.exp(-log_odds)) if log_odds > -700 else 0.0


def _entropy(chances: Any) -> float:
    return float(-sum(one * math.log(one) for one in chances.tolist() if one > 0))
