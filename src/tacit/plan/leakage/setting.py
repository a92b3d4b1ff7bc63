"""What a plan of leakage is about, checked: who is shown what, what must not be learned, and by whom."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.amounts import LARGEST_EPSILON
from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.errors import PlanError, kind_of, nearest, word_or_kind
from tacit.plan.leakage.informations import MEASURES, MeasuredTables, Term, Terms, gathered
from tacit.plan.leakage.outcomes import (
    JointLimit,
    PosteriorLimit,
    ShownBy,
    SummedLimit,
    joint_limit,
    posterior_limits,
    safe_terms,
    targets_for,
)

EVERYBODY = "everybody"


@dataclass(frozen=True)
class ReleaseLine:
    """One line of release: an attribute that is shown to an application, by coins of its own."""

    application: str
    attribute: str

    def __str__(self) -> str:
        return self.attribute if self.application == self.attribute else f"{self.attribute} for {self.application}"


@dataclass(frozen=True)
class Limit:
    """What one coalition may learn about some attributes, in nats: together, or added up (`LeakageSetting.joint`)."""

    seen_by: str
    lines: tuple[int, ...]
    about: tuple[str, ...]
    most: float


@dataclass(frozen=True)
class LeakageSetting:
    """Lines, protected attributes and limits.

    With `joint` a coalition sees all its lines at once, and learns about all attributes of a limit together. Otherwise
    the informations between single lines and single attributes are added up, as in the paper; that misses what shows
    only in several of them together. `coalitions` has the lines of each coalition, with a limit or without.
    """

    sensitive: Mapping[str, frozenset[Any]]
    lines: tuple[ReleaseLine, ...]
    limits: tuple[Limit, ...]
    measure: str
    own: bool
    joint: bool
    coalitions: Mapping[str, tuple[int, ...]]

    def tables(self, dependence: Dependence) -> MeasuredTables:
        """Return the tables of a dependence as the measure looks at them."""
        codes = {
            name: frozenset(at for at, value in enumerate(dependence.values[name]) if value in hidden)
            for name, hidden in self.sensitive.items()
        }
        return MeasuredTables(dependence, codes, self.attributes, self.measure)

    @property
    def attributes(self) -> list[str]:
        """All attributes that are shown or protected."""
        return list(dict.fromkeys([*(line.attribute for line in self.lines), *self.sensitive]))

    def released(self, tables: MeasuredTables) -> Floats:
        """Return for each line how likely its attribute is not sensitive, by value."""
        return np.array([tables.released(line.attribute) for line in self.lines])

    def pair_terms(self, tables: MeasuredTables) -> Terms:
        """Return the convex terms of limits on sums over pairs."""
        shown = [line.attribute for line in self.lines]
        terms = [
            Term(at, number, tables.table(target, shown[number]), tables.sensitive(shown[number]))
            for at, limit in enumerate(self.limits)
            for number in limit.lines
            for target in limit.about
            if self.own or target != shown[number]
        ]
        return self._gathered(terms, tables)

    def safe_terms(self, tables: MeasuredTables) -> Terms:
        """Return convex terms that are never below what a coalition learns from all its lines."""
        terms = [
            term
            for at, limit in enumerate(self.limits)
            for term in safe_terms(tables, limit.about, self._shown(limit), limit=at)
        ]
        return self._gathered(terms, tables)

    def joint_limits(self, tables: MeasuredTables) -> list[JointLimit | SummedLimit]:
        """Return what each coalition learns about all attributes of its limit together, by all outcomes."""
        return [joint_limit(tables, limit.about, self._shown(limit)) for limit in self.limits]

    def posterior_limits(self, dependence: Dependence) -> list[PosteriorLimit]:
        """Return how sure each coalition could become about each protected attribute, from all lines that it sees."""
        tables = replace(self, measure="value").tables(dependence)
        each = [posterior_limits(tables, self.sensitive, self._by_attribute(seen)) for seen in self.coalitions.values()]
        return [limit for found in each for limit in found]

    def of_line(self, number: int) -> LeakageSetting:
        """Return the same with nothing shown but one line."""
        limits = tuple(replace(limit, lines=tuple({number} & {*limit.lines})) for limit in self.limits)
        seen = {name: tuple({number} & {*lines}) for name, lines in self.coalitions.items()}
        return replace(self, limits=limits, coalitions=seen)

    def leakages(self, tables: MeasuredTables, u: Floats) -> Floats:
        """Return what each limit bounds, at release probabilities."""
        if not self.joint:
            return self.pair_terms(tables).at(u)
        return np.array([limit.at(u[None])[0] for limit in self.joint_limits(tables)])

    def addends(self, limit: Limit, size: Callable[[str], int]) -> list[tuple[str, ...]]:
        """Return the targets of each information that a limit adds up; `size` says how many values they have."""
        if self.joint:
            return [targets_for(limit.about, [name for name, _ in self._shown(limit)], size)]
        shown = [self.lines[number].attribute for number in limit.lines]
        return [(target,) for target in limit.about for name in shown if self.own or target != name]

    def _shown(self, limit: Limit) -> ShownBy:
        """Return which attributes count for a limit, each with the lines that show it."""
        # without its own, a limit is about one attribute
        counts = [number for number in limit.lines if self.own or self.lines[number].attribute not in limit.about]
        return self._by_attribute(counts)

    def _by_attribute(self, numbers: Iterable[int]) -> ShownBy:
        found: dict[str, list[int]] = {}
        for number in numbers:
            found.setdefault(self.lines[number].attribute, []).append(number)
        return [(name, tuple(numbers)) for name, numbers in found.items()]

    def _gathered(self, terms: list[Term], tables: MeasuredTables) -> Terms:
        return gathered(terms, limits=len(self.limits), lines=len(self.lines), released=self.released(tables))


def checked_setting(
    dependence: Any,
    *,
    sensitive: Any,
    limit: Any,
    measure: Any,
    applications: Any = None,
    coalitions: Any = None,
    shown: Iterable[str] | None = None,
    own: bool = True,
) -> LeakageSetting:
    """Return the setting, or refuse it. `shown` are attributes that are released beside the sensitive ones."""
    if not isinstance(dependence, Dependence):
        fix = "Make one: tc.Dependence.from_table(..), from_counts(..) or from_network(..)."
        raise PlanError(f"must be a dependence, not {kind_of(dependence)}", key="dependence", fix=fix)
    hidden = checked_sensitive(dependence, sensitive)
    if not isinstance(measure, str) or measure not in MEASURES:
        raise PlanError("must be value or bit", key="measure", given=word_or_kind(measure), fix='Say measure="value".')
    if not isinstance(own, bool):
        raise PlanError("must be True or False", key="own", given=word_or_kind(own), fix="Leave it out for True.")
    lines = _lines(dependence, applications, [*hidden, *(shown or [])])
    groups = _coalitions(lines, coalitions, by_application=applications is not None)
    seen = groups or {EVERYBODY: tuple(range(len(lines)))}
    limits = checked_limits(limit, hidden, seen, has_coalitions=groups is not None)
    if groups is not None:
        check_own(limits, own=own)
    return LeakageSetting(hidden, lines, limits, measure, own, joint=groups is not None, coalitions=seen)


def checked_sensitive(dependence: Dependence, given: Any) -> dict[str, frozenset[Any]]:
    """Return the sensitive values of each attribute that has some."""
    fix = 'Say sensitive={"arrival": ["late"]}.'
    if not isinstance(given, Mapping) or not given:
        raise PlanError("must map attributes to their sensitive values", key="sensitive", given=kind_of(given), fix=fix)
    found = {}
    for name, values in given.items():
        dependence.place(name, key="sensitive")
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise PlanError(f"must list values of {name}", key="sensitive", given=word_or_kind(values), fix=fix)
        listed = list(values)
        for value in listed:
            dependence.code(name, value, key="sensitive")
        found[str(name)] = frozenset(listed)
    return found


def nonnegative(value: Any, *, key: str, fix: str) -> float:
    """Return a number that is finite and not negative, or refuse it."""
    is_number = isinstance(value, int | float) or hasattr(value, "numerator")
    if isinstance(value, bool) or not is_number or not math.isfinite(value) or value < 0:
        raise PlanError("must be a finite number, zero or more", key=key, given=word_or_kind(value), fix=fix)
    return float(value)


def checked_cap(cap: Any) -> float | None:
    """Return the largest epsilon that any line may have, None for no bound."""
    if cap is None:
        return None
    found = nonnegative(cap, key="cap", fix="For instance cap=3.")
    if not 0 < found <= LARGEST_EPSILON:
        raise PlanError(
            f"must lie above 0 and at most {LARGEST_EPSILON}", key="cap", given=found, fix="For instance 3."
        )
    return found


def checked_weights(weights: Any, lines: tuple[ReleaseLine, ...]) -> Floats:
    """Return the weight of each line, given by attribute or by application and attribute; 1 by default."""
    if weights is None:
        return np.ones(len(lines))
    fix = 'Say weights={"arrival": 2, "leaving": 1}.'
    if not isinstance(weights, Mapping):
        raise PlanError(f"must map attributes to numbers, not {kind_of(weights)}", key="weights", fix=fix)
    by_line = {(line.application, line.attribute): number for number, line in enumerate(lines)}
    names = {line.attribute for line in lines}
    found = np.zeros(len(lines))
    for key, value in weights.items():
        weight = nonnegative(value, key="weights", fix=fix)
        if isinstance(key, str) and key in names:
            for number, line in enumerate(lines):
                found[number] = weight if line.attribute == key else found[number]
        elif isinstance(key, tuple) and key in by_line:
            found[by_line[key]] = weight
        else:
            near = nearest(key, sorted(names)) if isinstance(key, str) else f"Known: {', '.join(sorted(names))}."
            raise PlanError("must be attributes that are released", key="weights", given=word_or_kind(key), fix=near)
    if not found.any():
        raise PlanError("must not all be zero: nothing would be worth a release", key="weights", given=0, fix=fix)
    return found


def _lines(dependence: Dependence, applications: Any, names: list[str]) -> tuple[ReleaseLine, ...]:
    if applications is None:
        for name in names:
            dependence.place(name, key="weights")
        return tuple(ReleaseLine(name, name) for name in dict.fromkeys(names))
    fix = 'Say applications={"lighting": ["arrival"], "space": ["leaving"]}.'
    if not isinstance(applications, Mapping) or not applications:
        raise PlanError("must map applications to attributes", key="applications", given=kind_of(applications), fix=fix)
    found: list[ReleaseLine] = []
    for application, listed in applications.items():
        if not isinstance(application, str) or not application:
            raise PlanError("must have names", key="applications", given=word_or_kind(application), fix=fix)
        attributes = [listed] if isinstance(listed, str) else listed
        if not isinstance(attributes, Iterable):
            raise PlanError("must list attributes", key="applications", given=word_or_kind(listed), fix=fix)
        for name in attributes:
            dependence.place(name, key="applications")
            if ReleaseLine(application, name) in found:
                raise PlanError(f"must name {name} once for {application}", key="applications", given=name, fix=fix)
            found.append(ReleaseLine(application, name))
    if not found:
        raise PlanError("must ask for an attribute", key="applications", given=0, fix=fix)
    return tuple(found)


def _coalitions(
    lines: tuple[ReleaseLine, ...], given: Any, *, by_application: bool
) -> dict[str, tuple[int, ...]] | None:
    """Return the lines that each coalition sees, by its name; None if nobody is taken together."""
    if given is None:
        return None
    member = "application" if by_application else "attribute"
    fix = f"List groups of {member}s, or give them names: {{'both': [..]}}."
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise PlanError(f"must be groups of {member}s", key="coalitions", given=word_or_kind(given), fix=fix)
    named = given if isinstance(given, Mapping) else {}
    groups = list(given.values()) if isinstance(given, Mapping) else list(given)
    known = list(dict.fromkeys(line.application for line in lines))
    found: dict[str, tuple[int, ...]] = {}
    for at, group in enumerate(groups):
        members = [group] if isinstance(group, str) else list(group) if isinstance(group, Iterable) else []
        if not members:
            raise PlanError(f"must each name an {member}", key="coalitions", given=word_or_kind(group), fix=fix)
        for one in members:
            if not isinstance(one, str) or one not in known:
                near = nearest(one, known) if isinstance(one, str) else fix
                raise PlanError(f"must be {member}s that ask", key="coalitions", given=word_or_kind(one), fix=near)
        name = list(named)[at] if named else " + ".join(dict.fromkeys(members))
        if not isinstance(name, str) or not name or name in found:
            raise PlanError("must have a name each, once", key="coalitions", given=word_or_kind(name), fix=fix)
        found[name] = tuple(number for number, line in enumerate(lines) if line.application in members)
    if not found:
        raise PlanError("must not be an empty list", key="coalitions", given=0, fix="Leave it out for sums over pairs.")
    return found


def checked_limits(
    given: Any, sensitive: Mapping[str, Any], groups: Mapping[str, tuple[int, ...]], *, has_coalitions: bool
) -> tuple[Limit, ...]:
    """Return the limits: one number for all protected attributes, or one for each attribute or coalition."""
    fix = 'In nats, for instance 0.1; or one each: {"arrival": 0.1}.'
    everything = tuple(sensitive)
    if not isinstance(given, Mapping):
        most = nonnegative(given, key="limit", fix=fix)
        return tuple(Limit(name, lines, everything, most) for name, lines in groups.items())
    if not given:
        raise PlanError("must not be empty", key="limit", given={}, fix=fix)
    coalitions = groups if has_coalitions else {}
    known = [*sensitive, *coalitions]
    for key in given:
        if key not in known:
            near = nearest(key, known) if isinstance(key, str) else fix
            rule = "must be for protected attributes or coalitions"
            raise PlanError(rule, key="limit", given=word_or_kind(key), fix=near)
    bounds = {key: nonnegative(value, key="limit", fix=fix) for key, value in given.items()}
    found = [Limit(name, groups[name], everything, most) for name, most in bounds.items() if name in coalitions]
    for name, most in bounds.items():
        if name not in coalitions:
            found += [Limit(seen_by, lines, (name,), most) for seen_by, lines in groups.items()]
    return tuple(found)


def check_own(limits: Iterable[Limit], *, own: bool) -> None:
    """Refuse to leave out what attributes say about themselves where a coalition learns about several together.

    What a release of one of them says about the others together with itself cannot be told apart from what it says
    about itself.
    """
    several = next((limit for limit in limits if len(limit.about) > 1), None)
    if several is not None and not own:
        rule = f"must be left out where what {several.seen_by} learns is limited about several attributes together"
        fix = f"Limit each by itself: limit={{{several.about[0]!r}: {several.most:g}, ..}}."
        raise PlanError(rule, key="own", given=own, fix=fix)


def checked_posterior(given: Any, setting: LeakageSetting, dependence: Dependence, *, drift: float) -> float | None:
    """Return the largest probability that an outcome may give, or refuse one that cannot be planned or kept."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise PlanError("must be a probability", key="posterior", given=word_or_kind(given), fix="For instance 0.9.")
    if not setting.joint:
        rule = "can only be planned for coalitions: it is about outcomes that somebody sees together"
        fix = "Say who pools what they see: coalitions=[[..]]. An application alone is a coalition too."
        raise PlanError(rule, key="posterior", given=given, fix=fix)
    if drift:
        rule = "cannot be planned together with a drift: what rare outcomes tell may change by any amount"
        fix = "Leave drift out, and ask plan.holds_for(..) after a change."
        raise PlanError(rule, key="posterior", given=given, fix=fix)
    before = largest_posterior(setting, dependence, np.zeros(len(setting.lines)))
    if before > given:
        rule = f"must be at least {before:.4g}: so likely an attribute is sensitive before anything is shown"
        if any(one.is_bound for one in setting.posterior_limits(dependence)):
            rule += " (a bound, which takes what lies beyond the nearest attributes for known)"
        fix = "Choose a larger one, or protect values that are rarer."
        raise PlanError(rule, key="posterior", given=given, fix=fix)
    return float(given)


def largest_posterior(setting: LeakageSetting, dependence: Dependence, u: Floats) -> float:
    """Return how sure the surest outcome makes any coalition, by going through all of them."""
    return max(float(limit.at(u[None])[0]) for limit in setting.posterior_limits(dependence))
