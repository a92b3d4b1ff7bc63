"""How much a coalition learns on average and at worst: every outcome that it could see, with its chance.

Guarantee   `outcomes` has P(target, outcome) for every value of the target and every outcome of the attributes seen.
            Mutual information, the worst outcome and freedom from exclusion attacks follow from it exactly.
Assumes     As suppression; at most 2^22 cells (values of the target times outcomes), more are refused.
Why         What is seen of attribute i depends on x_i alone, so its channel acts along one axis: a sensitive value goes
            to "nothing", any other to itself with probability 1 - exp(-epsilon_i) and else to "nothing". After n
            questions with fresh coins the value is known unless all n were suppressed, so n questions at epsilon are
            one at n * epsilon. Sensitive values of an attribute that is seen all look alike: one class is enough.
Reference   Lee and Smith, section V.C: mutual information of bits, sensitive or not. A release shows its value, so that
            bits understate it; `value` looks at values.
Checked by  tests/property/test_exclusion.py, tests/property/test_networks.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.dependence.factor import MOST_CELLS, log_table
from tacit.dependence.given_tables import listed
from tacit.dependence.suppression import SOME_VALUE, Suppression, log_release, questions_of
from tacit.errors import PlanError, word_or_kind

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
        """Return by how much an outcome can raise the odds of a sensitive value against another one, in logarithms.

        Also the two values, and the number of the outcome. Values that have probability zero have no odds. It is zero
        where no value is sensitive, or no other value is possible.
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

    `questions` says how often each attribute is asked for (once by default). With `target_bit` the target is only
    sensitive or not; with `seen_bits` an outcome only shows whether there was a release.
    """
    names = checked_seen(release, seen)
    asked = {**dict.fromkeys(names, 1), **questions_of(questions, key="questions")}
    for name in asked:
        if name not in names:
            raise PlanError("names an attribute that is not seen", key="questions", given=name, fix="Add it to seen.")
    place = release.dependence.place(target)
    places = [release.dependence.place(name) for name in names]
    hidden = release.is_sensitive(target)
    classes = [_classes(release, name, seen_bits) for name in names]
    sizes = (2 if target_bit else len(hidden), *(len(shown) for _, shown in classes))
    if math.prod(sizes) > MOST_CELLS:
        raise PlanError(
            f"has {math.prod(sizes):,} outcomes and values together, and {MOST_CELLS:,} is the most",
            key="seen",
            given=len(names),
            fix="Ask about fewer attributes at once, or value=False for bits alone.",
        )
    joint = release.dependence.weighed({}, list(dict.fromkeys([place, *places])))
    first = joint.codes[joint.variables.index(place)]
    columns = [
        ~hidden[first] if target_bit else first,
        *(codes[joint.codes[joint.variables.index(at)]] for at, (codes, _) in zip(places, classes, strict=True)),
    ]
    logs = log_table(columns, sizes, joint.logs)
    for axis, name in enumerate(names, start=1):
        logs = _seen_through(logs, axis, release.total_epsilon(name, asked.get(name, 0)))
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
    """Return what the attributes seen tell about the target on average, in nats: about values, or about bits alone."""
    found = outcomes(release, target, seen, questions=questions, target_bit=not value, seen_bits=not value)
    return found.information()


def checked_seen(release: Suppression, seen: Any) -> tuple[str, ...]:
    """Return the names of the attributes that somebody sees, or refuse."""
    names = listed(seen)
    if names is None:
        raise PlanError("must be a list of attributes", key="seen", given=word_or_kind(seen), fix='Write seen=["a"].')
    for name in names:
        release.asked(name, key="seen")
    return tuple(dict.fromkeys(names))


def _classes(release: Suppression, name: str, bits: bool) -> tuple[npt.NDArray[np.uint32], tuple[Any, ...]]:  # noqa: FBT001
    """Return the class of each value of a seen attribute, and what each class shows if it is released.

    Class 0 has all sensitive values; it stays, empty, where there are none, since a coin may suppress any value.
    """
    hidden = release.is_sensitive(name)
    if bits:
        return (~hidden).astype(np.uint32), (NOTHING, SOME_VALUE)
    values = release.dependence.values[name]
    shown = [value for value, own in zip(values, hidden, strict=True) if not own]
    return np.where(hidden, 0, np.cumsum(~hidden)).astype(np.uint32), (NOTHING, *shown)


def _seen_through(logs: Floats, axis: int, epsilon: float) -> Floats:
    """Return the table with one attribute seen through its coin: class 0 is nothing, the others show themselves."""
    before, classes, after = math.prod(logs.shape[:axis]), logs.shape[axis], math.prod(logs.shape[axis + 1 :])
    sides = logs.reshape(before, classes, after)
    found = sides + log_release(epsilon)
    found[:, 0] = sides[:, 0]
    for each in range(1, classes):
        np.logaddexp(found[:, 0], sides[:, each] - epsilon, out=found[:, 0])
    return found.reshape(logs.shape)
