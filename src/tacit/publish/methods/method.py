"""What every way to publish a table says about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tacit.amounts import shown
from tacit.arrays import Bools, Floats, Ints
from tacit.publish.methods.criterion import Channel, Criterion, not_prevented
from tacit.release.estimate.projections import nonnegative as nearest_counts


class Method(ABC):
    """A way to publish the counts of personal groups. Everything in it is public.

    Counts have a row for each group and a column for each sensitive value; `sizes` are the public sizes of the groups.
    """

    name: ClassVar[str]
    channel: Channel  # sets epsilon: how records are perturbed at most, or what loses as much

    @property
    def epsilon(self) -> Fraction:
        """What one record loses at most."""
        return self.channel.epsilon

    def check(self) -> None:  # noqa: B027 - nothing to refuse, unless a method says so
        """Refuse, from public parameters alone, what could not be published, before anything is charged."""

    @property
    def unit(self) -> Fraction:
        """What one unit of the published numbers is worth, in records."""
        return Fraction(1)

    @abstractmethod
    def draw(self, counts: Ints) -> Ints:
        """Return what is published for these true counts."""

    @abstractmethod
    def estimates(self, published: Ints, sizes: Ints) -> Floats:
        """Return estimates of the true counts, from what is published."""

    @abstractmethod
    def variances(self, counts: Floats, sizes: Ints) -> Floats:
        """Return the variance of the estimates where these are the true counts."""

    def estimated_variances(self, estimates: Floats, sizes: Ints) -> Floats:
        """Return the variance of the estimates where the true counts are unknown; on average not too little."""
        return self.variances(estimates, sizes)

    def sum_variance(self, estimates: Floats, sizes: Ints, columns: list[int]) -> float:
        """Return about the variance of a sum of estimates over all groups and some values.

        Estimates of a group add up to its size, so that a sum and the rest are equally wrong; and the deviation of a
        sum is at most the sum of deviations.
        """
        each = self.estimated_variances(estimates, sizes).sum(axis=0)
        others = [at for at in range(len(each)) if at not in columns]
        return float(min(np.sqrt(each[columns]).sum(), np.sqrt(each[others]).sum()) ** 2)

    def nonnegative(self, published: Ints, sizes: Ints) -> Floats:
        """Return estimates of the counts of all groups together that are zero or more, and add up (one row)."""
        found = self.estimates(published, sizes).sum(axis=0)
        return nearest_counts(found, np.zeros(found.size, np.int64), np.array([float(sizes.sum())]))[None, :]

    @property
    def appends(self) -> bool:
        """Whether rows may come later without breaking what was promised about those before."""
        return False

    def holds_together(self, old: Ints, new: Ints) -> Bools:
        """Say of groups with so many old and so many new records whether what is promised holds for both together.

        Old coins are kept, and the new records of a group are published as a group of their own size.
        """
        return np.ones(len(old), np.bool_)

    def expected_error(self, sizes: Ints, values: int) -> float:
        """Return the root mean squared error of the count of one value in all groups, if all values are as frequent.

        It follows from public sizes alone, so methods may be compared by it.
        """
        even = np.repeat(sizes[:, None] / values, values, axis=1)
        return float(np.sqrt(self.variances(even, sizes)[:, 0].sum()))

    def least_error(self, sizes: Ints, values: int) -> float:
        """Return a lower bound on the expected error that is found faster; 0 if there is none."""
        return 0.0

    @property
    def leaves_open(self) -> list[str]:
        """What it does not prevent, beyond what everybody expects."""
        return []

    @abstractmethod
    def words(self) -> list[str]:
        """Say what is done, and what it promises."""


class PromisingMethod(Method):
    """A way to publish that also promises a criterion for estimates of every group."""

    criterion: Criterion

    @property
    def has_every_size(self) -> bool:
        """Whether, once checked, it is known to publish groups of every size."""
        return True

    def words_for_frequencies(self, bound: Fraction) -> str:
        """Say what is promised of the estimate of each frequency, if none is above a public bound."""
        which = ", of each value of each column and of each combination" if self.channel.shape else ""
        limit = "" if bound == 1 else f", as long as no frequency is above {shown(bound)}"
        return f"the unbiased estimate of each frequency f in each group{which}: {self.criterion}{limit}"

    def holds_together(self, old: Ints, new: Ints) -> Bools:
        # two estimates of one group would be better than one
        return np.asarray((old == 0) | (new == 0))

    @property
    def leaves_open(self) -> list[str]:
        return not_prevented(self.criterion)
