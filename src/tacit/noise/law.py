"""What every law of noise says about itself: probabilities, moments, quantiles, losses, and a draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import isfinite
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.draws import Size

Kind = Literal["ranges", "prefixes", "cells"]  # of runs of positions: all, from the first on, single
RAREST: Final = 2.0**-53  # what a table of a law may leave out at either end
MOST_VALUES: Final = 1 << 20  # of such a table


class Law(ABC):
    """A law of whole-number noise. It is frozen, hashable and public: a plan prints it, a certificate carries it.

    Methods that take or return one number speak about one draw; where several are drawn together, each has this law.
    """

    @property
    @abstractmethod
    def is_joint(self) -> bool:
        """Whether the entries of a release are drawn together, so that they depend on each other."""

    @property
    @abstractmethod
    def reaches(self) -> tuple[bool, bool]:
        """Whether noise can be negative, and whether it can be positive."""

    @property
    @abstractmethod
    def is_even(self) -> bool:
        """Whether noise is as likely as its negative."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the noise is called."""

    @abstractmethod
    def on_sides(self, *, falls: bool, rises: bool) -> Law:
        """Return the part of this noise that an answer needs which can fall, or rise, along secret edges."""

    @abstractmethod
    def proven_loss(self, profiles: Iterable[tuple[int, int]], largest: int) -> Fraction | float:
        """Return the loss of steps with these (sum of falls, sum of rises), in which no entry moves by more."""

    @abstractmethod
    def loss(self, step: Any) -> Any:
        """Return the worst log likelihood ratio hidden : cover when q(cover) - q(hidden) = step; inf if unbounded."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the law as plain, exact data."""

    @abstractmethod
    def joint_log_pmf(self, points: ArrayLike) -> float:
        """Return the logarithm of the probability that all entries have exactly this noise."""

    @abstractmethod
    def pmf(self, k: ArrayLike) -> Floats:
        """Return P(z = k)."""

    @abstractmethod
    def cdf(self, k: ArrayLike) -> Floats:
        """Return P(z <= k)."""

    @abstractmethod
    def survival(self, k: ArrayLike) -> Floats:
        """Return P(z > k), accurate where it is small."""

    @property
    def is_alike(self) -> bool:
        """Whether every two entries of a release go together in the same way."""
        return True

    def given_shared(self) -> Iterator[tuple[float, int, Floats]]:
        """Yield laws of independent entries which, mixed, are the law of all: one, unless entries share something.

        Each with its probability, as a table: its first value, and how likely that and the following ones are.
        """
        first, last = self.quantile(RAREST), self.quantile(1 - RAREST)
        if last - first >= MOST_VALUES:
            raise PlanError(
                f"must have fewer than {MOST_VALUES:,} values that matter",
                key="noise",
                given=last - first + 1,
                fix="Ask for less noise.",
            )
        yield 1.0, first, self.pmf(np.arange(first, last + 1))

    def beside(self, k: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
        """Return P(z = k in one entry and low <= z <= high in another of the same release)."""
        return np.asarray(self.pmf(k) * self.between(low, high))

    def between(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Return P(low <= z <= high): 0 where the ends are in the wrong order."""
        first, last = whole_numbers(low), whole_numbers(high)
        return np.where(last >= first, np.maximum(self.cdf(last) - self.cdf(first - 1), 0.0), 0.0)

    @abstractmethod
    def quantile(self, p: float) -> int:
        """Return the smallest k with P(z <= k) >= p, for 0 < p < 1."""

    @abstractmethod
    def mean(self) -> float:
        """Return E z."""

    @abstractmethod
    def variance(self) -> float:
        """Return E (z - E z)^2."""

    @abstractmethod
    def draw(self, size: Size | None = None) -> int | Ints:
        """Draw: one number or vector without `size`, else an int64 array of this shape."""

    @abstractmethod
    def draw_for(self, shape: tuple[int, ...]) -> Ints:
        """Draw noise for an array of entries: the last axis holds those of one release."""

    def widened(self, times: int) -> Law | None:
        """Return the law of this noise and a draw of `widening` together: scales that are so many times as large.

        None, by default: there is no such draw.
        """
        return None

    def widening(self, times: int, shape: tuple[int, ...]) -> Ints:
        """Draw what makes noise of this law noise of the widened one when it is added; independent of that noise."""
        raise TypeError(self.name)

    def far(self) -> Law:
        """Return the law for counts that stand far above a bar: this one, which knows of no bar."""
        return self

    def measure(self, counts: Ints) -> Ints:
        """Return counts with noise."""
        return counts + self.draw_for(counts.shape)

    def log_probability(self, counts: Sequence[int], noisy: Sequence[int]) -> float:
        """Return the logarithm of the probability that these counts come out as these noisy ones."""
        return self.joint_log_pmf(np.asarray(noisy, dtype=np.int64) - np.asarray(counts, dtype=np.int64))


class EvenJointLaw(Law):
    """Noise that is drawn for all entries together and is as likely as its negative."""

    @property
    def is_joint(self) -> bool:
        return True

    @property
    def reaches(self) -> tuple[bool, bool]:
        return True, True

    @property
    def is_even(self) -> bool:
        return True

    def mean(self) -> float:
        return 0.0

    @property
    def is_alike(self) -> bool:
        """How two entries go together depends on which they are."""
        return False

    def on_sides(self, *, falls: bool, rises: bool) -> Law:
        return self

    def beside(self, k: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
        """Refuse: how two entries go together depends on which they are."""
        raise PlanError(
            "must be the same for every two entries", key="noise", given=self.name, fix="Ask about one of its parts."
        )


def whole_numbers(k: ArrayLike) -> Ints:
    """Return int64 numbers; whoever asks about anything else has a mistake in the program."""
    values = np.asarray(k)
    if values.dtype.kind not in "iu":
        message = "noise takes integer values: ask about integers"
        raise TypeError(message)
    return values.astype(np.int64)


def quantile_of(law: Law, p: float, *, lowest: int, highest: int) -> int:
    """Return the smallest k with P(z <= k) >= p, by bisection."""
    if not (isfinite(p) and 0 < p < 1):
        raise PlanError("must lie strictly between 0 and 1", key="p", given=p)

    # Near one P(z > k) still has digits where P(z <= k) has none left; 1 - p is exact from one half on.
    def reached(k: int) -> bool:
        return bool(law.cdf(k) >= p and (p < 0.5 or law.survival(k) <= 1 - p))

    while highest - lowest > 1:
        middle = (lowest + highest) // 2
        lowest, highest = (lowest, middle) if reached(middle) else (middle, highest)
    return highest
