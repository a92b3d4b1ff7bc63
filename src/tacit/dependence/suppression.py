"""What an observer believes after seeing some attributes released and others suppressed, and how much that tells.

Each attribute is released by one-sided randomised response. Asked for attribute i, the release shows its value with
probability 1 - exp(-epsilon_i) if the value is not sensitive, and never if it is. Coins of different attributes are
independent.

Guarantee   `posterior` is the conditional distribution, given the dependence and what was seen, of any attributes:
            P(x | seen) ~ p(x) * prod over released i of 1[x_i = v_i] * prod over suppressed i of w_i(x_i), where w_i is
            exp(-n_i epsilon_i) if x_i is not sensitive and 1 if it is, after n_i suppressions with fresh coins.
            `outcomes` has P(target, outcome) for every value of the target and every outcome of the attributes seen.
            Mutual information, the worst outcome and freedom from exclusion attacks follow from it exactly.
Assumes     The adversary knows the dependence, which values are sensitive and every epsilon, and nothing else; a record
            is one draw from the dependence. With remembered coins any number of questions counts as one question.
            `outcomes` has at most 2^22 cells (values of the target times outcomes); more are refused.
Why         Given x, what is seen of i depends on x_i alone (Lemma 1), so likelihoods multiply; the channel of i acts
            along one axis. A sensitive value is suppressed with probability 1, any other with exp(-epsilon_i) each
            time. A released value says what x_i is; earlier suppressions then add a factor that is the same for every
            x that is still possible. Elimination sums the product exactly, in logarithms.
            After n questions with fresh coins the value is known unless all n were suppressed, so n questions at
            epsilon are one at n * epsilon. All sensitive values of an attribute look alike, so they form one class.
Reference   Lee and Smith, Privacy Leakage over Dependent Attributes in One-Sided Differential Privacy, Theorems 1 to 4
            for two yes/no attributes; their products of pairwise factors do not hold for three (docs/dependence.md).
            Section V.C: mutual information of bits, sensitive or not. A release shows its value, so bits understate
            it; `value` looks at values.
Checked by  tests/property/test_exclusion.py, tests/property/test_networks.py, tests/statistical/test_exclusion.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import EllipsisType, MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.dependence.factor import MOST_CELLS, log_table, too_large
from tacit.dependence.given import listed
from tacit.errors import PlanError, kind_of, word_or_kind

Coins: TypeAlias = Literal["fresh", "remembered"]
MOST_QUESTIONS: Final = 10**9
SOME_VALUE: Final[
    EllipsisType
] = ...  # in the place of a value: something was released, and what it was is not looked at


@dataclass(frozen=True, eq=False)
class Suppression:
    """A dependence, the sensitive values of its attributes, and the epsilon at which each attribute is released.

    An attribute without an epsilon is never released; one without sensitive values is suppressed by its coin alone.
    `coins`: every question tosses a fresh coin, or an attribute's coin is tossed once and remembered.

    >>> day = Dependence.from_table(
    ...     {("late", "late"): 0.3, ("late", "early"): 0.1, ("early", "early"): 0.6}, names=("arrival", "leaving")
    ... )
    >>> seen = suppression(day, sensitive={"arrival": ["late"]}, epsilon={"arrival": 1.0})
    >>> seen.posterior(["leaving"], suppressed={"arrival": 1}).round(4).tolist()
    [0.4833, 0.5167]
    """

    dependence: Dependence
    sensitive: Mapping[str, tuple[Any, ...]]
    epsilon: Mapping[str, float]
    coins: Coins

    def is_sensitive(self, name: str) -> npt.NDArray[np.bool_]:
        """Return for each value of an attribute whether it is sensitive."""
        own = self.sensitive.get(name, ())
        return np.array([value in own for value in self.dependence.values[name]], dtype=np.bool_)

    def total_epsilon(self, name: str, questions: int) -> float:
        """Return the epsilon of several questions about an attribute together: fresh coins add up."""
        counted = min(questions, 1) if self.coins == "remembered" else questions
        return self.epsilon[name] * counted if counted else 0.0  # zero questions at an infinite epsilon

    def posterior(self, names: Sequence[str], *, suppressed: Any = None, released: Any = None) -> Floats:
        """Return the distribution of some attributes given what was seen, with one axis for each.

        `suppressed` has for each attribute in how many questions it was suppressed, `released` the value that was shown
        (`...` if it was released and its value is ignored).
        """
        logs = self.log_joint(names, suppressed=suppressed, released=released)
        weights = np.exp(logs - logs.max())
        found: Floats = weights / weights.sum()
        return found

    def log_odds(self, name: str, *, suppressed: Any = None, released: Any = None) -> float:
        """Return the logarithm of P(sensitive) / P(not sensitive) given what was seen; infinite if it is certain."""
        logs = self.log_joint([name], suppressed=suppressed, released=released)
        hidden = self.is_sensitive(name)
        above, below = np.logaddexp.reduce(logs[hidden]), np.logaddexp.reduce(logs[~hidden])
        return float(above - below) if hidden.any() and not hidden.all() else math.inf if hidden.any() else -math.inf

    def chance(self, *, suppressed: Any = None, released: Any = None) -> float:
        """Return how likely it is to see this."""
        evidence = self.evidence(suppressed, released)
        found = self.dependence.weighed(evidence, [])
        return float(np.exp(found.logs[0])) if found.cells else 0.0

    def log_joint(self, names: Sequence[str], *, suppressed: Any = None, released: Any = None) -> Floats:
        """Return the logarithm of P(attributes and what was seen); refuse what cannot be seen."""
        keep = [self.dependence.place(name) for name in names]
        cells = math.prod(len(self.dependence.domains[place]) for place in keep)
        if cells > MOST_CELLS:
            raise too_large(cells)
        evidence = self.evidence(suppressed, released)
        found = self.dependence.weighed(evidence, keep)
        if not found.cells:
            raise self._impossible(suppressed, released)
        return found.dense()

    def evidence(self, suppressed: Any, released: Any) -> dict[int, Floats]:
        """Return for each attribute of which something was seen the logarithm of its chance, by its value."""
        found: dict[int, Floats] = {}
        shown = _checked_released(released)
        times = questions_of(suppressed, key="suppressed")
        for name in {**times, **shown}:
            place = self.released_place(name, key="released" if name in shown else "suppressed")
            hidden = self.is_sensitive(name)
            logs = np.where(hidden, 0.0, -self.total_epsilon(name, times.get(name, 0)))
            if name in shown:
                if times.get(name) and self.coins == "remembered":
                    rule = "cannot be both suppressed and released where its coin is remembered"
                    raise PlanError(rule, key=name, fix='Leave one of the two out, or say coins="fresh".')
                logs = np.where(hidden, -np.inf, logs + log_release(self.epsilon[name]))
                if shown[name] is not SOME_VALUE:
                    code = self.dependence.code(name, shown[name], key=f"released.{name}")
                    if hidden[code]:
                        rule = "is sensitive and never released"
                        fix = "Take a value that is not sensitive."
                        raise PlanError(rule, key=f"released.{name}", given=word_or_kind(shown[name]), fix=fix)
                    logs = np.where(np.arange(len(hidden)) == code, logs, -np.inf)
            found[place] = logs
        return found

    def released_place(self, name: Any, *, key: str) -> int:
        """Return the position of an attribute that is released to somebody, or refuse."""
        place = self.dependence.place(name, key=key)
        if name not in self.epsilon:
            fix = f'Give epsilon={{"{name}": ..}}.'
            raise PlanError("names an attribute that is not released", key=key, given=name, fix=fix)
        return place

    def _impossible(self, suppressed: Any, released: Any) -> PlanError:
        """Return the refusal of an impossible observation; it names the first attribute that makes it impossible."""
        shown, times = _checked_released(released), questions_of(suppressed, key="suppressed")
        evidence: dict[int, Floats] = {}
        for name in (*shown, *times):
            place = self.dependence.place(name)
            evidence[place] = self.evidence(
                {name: times[name]} if name in times else None, {name: shown[name]} if name in shown else None
            )[place]
            if not self.dependence.weighed(evidence, []).cells:
                break
        before = [self.dependence.names[place] for place in list(evidence)[:-1]]
        given = f" together with what was seen of {', '.join(before)}" if before else ""
        key, value = ("released", shown[name]) if name in shown else ("suppressed", times[name])
        return PlanError(
            f"has probability 0 under the dependence{given}",
            key=f"{key}.{name}",
            given="a value" if value is SOME_VALUE else word_or_kind(value),
            fix="Check the value; if it can happen, give it a probability (smoothing does for counts).",
        )


def suppression(dependence: Any, sensitive: Any, epsilon: Any, coins: Any = "fresh") -> Suppression:
    """Return a checked suppression, or refuse."""
    if not isinstance(dependence, Dependence):
        fix = "Make one with tc.Dependence.from_table(..)."
        raise PlanError(f"must be a dependence, not {kind_of(dependence)}", key="dependence", fix=fix)
    if not isinstance(coins, str) or coins not in ("fresh", "remembered"):
        fix = "Say how coins are kept."
        raise PlanError('must be "fresh" or "remembered"', key="coins", given=word_or_kind(coins), fix=fix)
    return Suppression(
        dependence,
        MappingProxyType(_checked_sensitive(dependence, sensitive)),
        MappingProxyType(checked_epsilon(dependence, epsilon)),
        "fresh" if coins == "fresh" else "remembered",
    )


def log_release(epsilon: float) -> float:
    """Return the logarithm of the chance 1 - exp(-epsilon) that a value is released; minus infinity at zero."""
    return float(np.log(-np.expm1(-epsilon))) if epsilon > 0 else -math.inf


def questions_of(given: Any, *, key: str) -> dict[str, int]:
    """Return how many questions were asked about each attribute, from a mapping or from names (once each)."""
    if given is None:
        return {}
    names = listed(given)
    if names is None or not all(isinstance(name, str) for name in names):
        fix = f'Write {key}={{"a": 1}}.'
        raise PlanError("must be a mapping of names to numbers", key=key, given=word_or_kind(given), fix=fix)
    counted = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, 1)
    for name, times in counted.items():
        if isinstance(times, bool) or not isinstance(times, int) or not 0 <= times <= MOST_QUESTIONS:
            rule = f"must be a whole number from 0 to {MOST_QUESTIONS:,}"
            raise PlanError(rule, key=f"{key}.{name}", given=word_or_kind(times), fix="Count questions.")
    return {name: times for name, times in counted.items() if times}


def _checked_released(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        fix = 'Write released={"arrival": "early"}.'
        raise PlanError(f"must be a mapping, not {kind_of(given)}", key="released", fix=fix)
    return dict(given)


def _checked_sensitive(dependence: Dependence, given: Any) -> dict[str, tuple[Any, ...]]:
    fix = 'Write sensitive={"arrival": ["late"]}.'
    if not isinstance(given, Mapping):
        raise PlanError(f"must be a mapping, not {kind_of(given)}", key="sensitive", fix=fix)
    found = {}
    for name, values in given.items():
        dependence.place(name, key="sensitive")
        own = listed(values)
        if own is None:
            raise PlanError("must be a list of values", key=f"sensitive.{name}", given=word_or_kind(values), fix=fix)
        codes = {dependence.code(name, value, key=f"sensitive.{name}") for value in own}
        found[name] = tuple(value for code, value in enumerate(dependence.values[name]) if code in codes)
    return found


def checked_epsilon(dependence: Dependence, given: Any, *, key: str = "epsilon") -> dict[str, float]:
    """Return the epsilon of each attribute, or refuse."""
    fix = 'Write epsilon={"arrival": 1.0}; 0 never releases, math.inf always does.'
    if not isinstance(given, Mapping):
        raise PlanError(f"must be a mapping, not {kind_of(given)}", key=key, fix=fix)
    found = {}
    for name, amount in given.items():
        dependence.place(name, key=key)
        found[name] = _number(amount)
        if not found[name] >= 0:
            raise PlanError("must be a number from 0", key=f"{key}.{name}", given=word_or_kind(amount), fix=fix)
    return found


def _number(given: Any) -> float:
    """Return a number as a float, and anything else as NaN."""
    if isinstance(given, bool) or not isinstance(given, Real):
        return math.nan
    try:
        return float(given)
    except OverflowError:
        return math.nan


NOTHING: Final = None  # what is seen of a suppressed attribute


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Logarithms of P(target, outcome): the target on the first axis, then one axis for each attribute seen.

    `labels` has what each position of the first axis stands for, `shows` what each position of the others shows.
    """

    target: str
    seen: tuple[str, ...]
    labels: tuple[Any, ...]
    hidden: npt.NDArray[np.bool_]  # of the labels: which are sensitive
    shows: tuple[tuple[Any, ...], ...]
    logs: Floats

    def information(self) -> float:
        """Return the mutual information of target and outcome, in nats."""
        flat = self.logs.reshape(len(self.labels), -1)
        prior = np.logaddexp.reduce(flat, axis=1, keepdims=True)
        seen = np.logaddexp.reduce(flat, axis=0, keepdims=True)
        with np.errstate(invalid="ignore"):
            gained = np.where(flat > -np.inf, np.exp(flat) * (flat - prior - seen), 0.0)
        return max(float(gained.sum()), 0.0)

    def outcome(self, at: int) -> dict[str, Any]:
        """Return what an outcome shows of each attribute; nothing where it was suppressed."""
        places = np.unravel_index(at, self.logs.shape[1:]) if self.seen else ()
        return {name: each[int(place)] for name, each, place in zip(self.seen, self.shows, places, strict=True)}

    def log_odds(self) -> Floats:
        """Return for each outcome the logarithm of P(sensitive) / P(not); minus infinity where none can happen."""
        flat = self.logs.reshape(len(self.labels), -1)
        above = np.logaddexp.reduce(flat[self.hidden], axis=0, initial=-np.inf)
        below = np.logaddexp.reduce(flat[~self.hidden], axis=0, initial=-np.inf)
        with np.errstate(invalid="ignore"):
            return np.where(above > -np.inf, above - below, -np.inf)

    def log_chances(self) -> Floats:
        """Return the logarithm of the chance of each outcome."""
        found: Floats = np.logaddexp.reduce(self.logs.reshape(len(self.labels), -1), axis=0)
        return found

    def freedom(self) -> tuple[float, Any, Any, int]:
        """Return the logarithm of the largest factor by which an outcome raises the odds of a sensitive value.

        Also the two values, and the number of the outcome. Values with probability zero have no odds. The result is
        zero if no value is sensitive, or no other value is possible.
        """
        flat = self.logs.reshape(len(self.labels), -1)
        prior = np.logaddexp.reduce(flat, axis=1, keepdims=True)
        possible = prior[:, 0] > -np.inf
        best: tuple[float, Any, Any, int] = (0.0, None, None, 0)
        with np.errstate(invalid="ignore"):
            given = flat - prior
        for x in np.flatnonzero(self.hidden & possible):
            for y in np.flatnonzero(possible):
                if x == y:
                    continue
                with np.errstate(invalid="ignore"):
                    ratios = np.where(given[x] > -np.inf, given[x] - given[y], -np.inf)
                at = int(np.argmax(ratios))
                if ratios[at] > best[0]:
                    best = float(ratios[at]), self.labels[x], self.labels[y], at
        return best


def outcomes(
    release: Suppression,
    target: str,
    seen: Iterable[str],
    *,
    questions: Any = None,
    target_bit: bool = False,
    seen_bits: bool = False,
) -> Outcomes:
    """Return all that an observer could see of some attributes, with its chance for each value of the target.

    `questions` is the number of questions about each attribute (one by default). With `target_bit` the target is only
    sensitive or not; with `seen_bits` an outcome only shows whether there was a release.
    """
    names = checked_seen(release, seen)
    counts = {**dict.fromkeys(names, 1), **questions_of(questions, key="questions")}
    for name in counts:
        if name not in names:
            raise PlanError("names an attribute that is not seen", key="questions", given=name, fix="Add it to seen.")
    place = release.dependence.place(target)
    places = [release.dependence.place(name) for name in names]
    hidden = release.is_sensitive(target)
    classes = [_classes(release, name, seen_bits) for name in names]
    sizes = (2 if target_bit else len(hidden), *(len(shown) for _, shown in classes))
    if math.prod(sizes) > MOST_CELLS:
        rule = f"has {math.prod(sizes):,} outcomes and values together, and {MOST_CELLS:,} is the most"
        fix = "Ask about fewer attributes at once, for bits alone with value=False, or for bounds with between(..)."
        raise PlanError(rule, key="seen", given=len(names), fix=fix)
    joint = release.dependence.weighed({}, list(dict.fromkeys([place, *places])))
    first = joint.codes[joint.variables.index(place)]
    columns = [
        ~hidden[first] if target_bit else first,
        *(codes[joint.codes[joint.variables.index(at)]] for at, (codes, _) in zip(places, classes, strict=True)),
    ]
    logs = log_table(columns, sizes, joint.logs)
    for axis, name in enumerate(names, start=1):
        logs = _seen_through(logs, axis, release.total_epsilon(name, counts.get(name, 0)))
    labels = (True, False) if target_bit else release.dependence.values[target]
    return Outcomes(
        target,
        names,
        labels,
        np.array([True, False]) if target_bit else hidden,
        tuple(shown for _, shown in classes),
        logs,
    )


def mutual_information(
    release: Suppression, target: str, seen: Iterable[str], *, questions: Any = None, value: bool = True
) -> float:
    """Return the mutual information of the target and the attributes seen, in nats: of values, or of bits alone."""
    found = outcomes(release, target, seen, questions=questions, target_bit=not value, seen_bits=not value)
    return found.information()


def checked_seen(release: Suppression, seen: Any) -> tuple[str, ...]:
    """Return the names of the attributes that somebody sees, or refuse."""
    names = listed(seen)
    if names is None:
        raise PlanError("must be a list of attributes", key="seen", given=word_or_kind(seen), fix='Write seen=["a"].')
    for name in names:
        release.released_place(name, key="seen")
    return tuple(dict.fromkeys(names))


def _classes(release: Suppression, name: str, bits: bool) -> tuple[npt.NDArray[np.uint32], tuple[Any, ...]]:  # noqa: FBT001
    """Return the class of each value of a seen attribute, and what each class shows if it is released.

    Class 0 has all sensitive values. It exists even if there are none, since a coin may suppress any value.
    """
    hidden = release.is_sensitive(name)
    if bits:
        return (~hidden).astype(np.uint32), (NOTHING, SOME_VALUE)
    values = release.dependence.values[name]
    shown = [value for value, own in zip(values, hidden, strict=True) if not own]
    return np.where(hidden, 0, np.cumsum(~hidden)).astype(np.uint32), (NOTHING, *shown)


def _seen_through(logs: Floats, axis: int, epsilon: float) -> Floats:
    """Apply the coin of one attribute to the table: class 0 shows nothing, the others show themselves."""
    before, classes, after = math.prod(logs.shape[:axis]), logs.shape[axis], math.prod(logs.shape[axis + 1 :])
    sides = logs.reshape(before, classes, after)
    found = sides + log_release(epsilon)
    found[:, 0] = sides[:, 0]
    for each in range(1, classes):
        np.logaddexp(found[:, 0], sides[:, each] - epsilon, out=found[:, 0])
    return found.reshape(logs.shape)
