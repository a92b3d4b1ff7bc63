"""What an observer believes after seeing some attributes released and others suppressed.

Each attribute is released by one-sided randomised response. Asked for attribute i, the release shows its value with
probability 1 - exp(-epsilon_i) where the value is not sensitive, and nothing where it is. Coins of different attributes
are independent.

Guarantee   `posterior` is the conditional distribution, given the dependence and what was seen, of any attributes:
            P(x | seen) ~ p(x) * prod over released i of 1[x_i = v_i] * prod over suppressed i of w_i(x_i), where w_i is
            exp(-n_i epsilon_i) if x_i is not sensitive and 1 if it is, after n_i suppressions with fresh coins.
Assumes     The adversary knows the dependence, which values are sensitive and every epsilon, and nothing else; a record
            is one draw from the dependence. With remembered coins any number of questions is one question.
Why         Given x, what is seen of i depends on x_i alone (Lemma 1), so likelihoods multiply. A sensitive value is
            suppressed with probability 1, any other with exp(-epsilon_i) each time. A released value says what x_i
            is; earlier suppressions then add a factor that is the same for every x that is still possible.
            Elimination sums the product exactly, in logarithms.
Reference   Lee and Smith, Privacy Leakage over Dependent Attributes in One-Sided Differential Privacy, Theorems 1 to 4
            for two yes/no attributes; their products of pairwise factors do not hold for three (docs/dependence.md).
Checked by  tests/property/test_exclusion.py, tests/property/test_networks.py, tests/statistical/test_exclusion.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import EllipsisType, MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.dependence.factor import MOST_CELLS, too_large
from tacit.dependence.given_tables import listed
from tacit.errors import PlanError, kind_of, word_or_kind

Coins: TypeAlias = Literal["fresh", "remembered"]
MOST_QUESTIONS: Final = 10**9
SOME_VALUE: Final[
    EllipsisType
] = ...  # in the place of a value: something was released, and what it was is not looked at


@dataclass(frozen=True, eq=False)
class Suppression:
    """A dependence, the sensitive values of its attributes, and the epsilon at which each attribute is released.

    An attribute without an epsilon is released to nobody; one without sensitive values is suppressed by its coin alone.
    `coins` says whether every question tosses its own, or an attribute's coin is tossed once and remembered.

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
        return self.epsilon[name] * counted if counted else 0.0  # an infinite epsilon, never asked, is nothing

    def posterior(self, names: Sequence[str], *, suppressed: Any = None, released: Any = None) -> Floats:
        """Return the distribution of some attributes given what was seen, with one axis for each.

        `suppressed` has for each attribute in how many questions it was suppressed, `released` the value that was shown
        (`...` where it was released, and its value is not looked at).
        """
        logs = self.log_joint(names, suppressed=suppressed, released=released)
        weights = np.exp(logs - logs.max())
        found: Floats = weights / weights.sum()
        return found

    def log_odds(self, name: str, *, suppressed: Any = None, released: Any = None) -> float:
        """Return the logarithm of P(sensitive) / P(not sensitive) given what was seen; infinite where one is sure."""
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
            place = self.asked(name, key="released" if name in shown else "suppressed")
            hidden = self.is_sensitive(name)
            logs = np.where(hidden, 0.0, -self.total_epsilon(name, times.get(name, 0)))
            if name in shown:
                if times.get(name) and self.coins == "remembered":
                    raise PlanError(
                        "cannot be both suppressed and released where its coin is remembered",
                        key=name,
                        fix='Leave one of the two out, or say coins="fresh".',
                    )
                logs = np.where(hidden, -np.inf, logs + log_release(self.epsilon[name]))
                if shown[name] is not SOME_VALUE:
                    code = self.dependence.code(name, shown[name], key=f"released.{name}")
                    if hidden[code]:
                        raise PlanError(
                            "is sensitive and never released",
                            key=f"released.{name}",
                            given=word_or_kind(shown[name]),
                            fix="Take a value that is not sensitive.",
                        )
                    logs = np.where(np.arange(len(hidden)) == code, logs, -np.inf)
            found[place] = logs
        return found

    def asked(self, name: Any, *, key: str) -> int:
        """Return the position of an attribute that is released to somebody, or refuse."""
        place = self.dependence.place(name, key=key)
        if name not in self.epsilon:
            raise PlanError(
                "names an attribute that is not released", key=key, given=name, fix=f'Give epsilon={{"{name}": ..}}.'
            )
        return place

    def _impossible(self, suppressed: Any, released: Any) -> PlanError:
        """Return the refusal of what cannot be seen, which names the first attribute that makes it impossible."""
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
        raise PlanError(
            f"must be a dependence, not {kind_of(dependence)}",
            key="dependence",
            fix="Make one with tc.Dependence.from_table(..).",
        )
    if not isinstance(coins, str) or coins not in ("fresh", "remembered"):
        raise PlanError(
            'must be "fresh" or "remembered"', key="coins", given=word_or_kind(coins), fix="Say how coins are kept."
        )
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
        raise PlanError(
            "must be a mapping of names to numbers", key=key, given=word_or_kind(given), fix=f'Write {key}={{"a": 1}}.'
        )
    counted = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, 1)
    for name, times in counted.items():
        if isinstance(times, bool) or not isinstance(times, int) or not 0 <= times <= MOST_QUESTIONS:
            raise PlanError(
                f"must be a whole number from 0 to {MOST_QUESTIONS:,}",
                key=f"{key}.{name}",
                given=word_or_kind(times),
                fix="Count questions.",
            )
    return {name: times for name, times in counted.items() if times}


def _checked_released(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise PlanError(
            f"must be a mapping, not {kind_of(given)}", key="released", fix='Write released={"arrival": "early"}.'
        )
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
    """Return a number as a float, and what is none as one that equals nothing."""
    if isinstance(given, bool) or not isinstance(given, Real):
        return math.nan
    try:
        return float(given)
    except OverflowError:
        return math.nan
