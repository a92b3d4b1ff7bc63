"""Masked counts of groups to which records came later: what was published, and the new counts, are masked once more.

Guarantee   The (lambda, delta) criterion, for every count and every frequency, both tails together: what is published
            of all records of a group, and of those that came with one version, and every multiple of either, is wrong
            by more than lambda times the true count with probability at least delta. (Of the first version as before.)
            Epsilon for every edge: all is made of the masked counts of old records and those of new ones.
Assumes     What `publish/methods/masked.py` assumes. Nobody knows how the counts of old and new records relate, such as
            that shares stay what they were: for two versions of equal size they would find the count of both as if its
            mask were 0.89 times as wide.
Why         Let y be what is published of the old records, and d the masked counts of the new ones, which are not shown.
            Published is y + d + e, with a mask e as wide as the larger of |y + d| and |d| asks for. Given y and d, a
            mask hides every number that is no larger than what it was made for, from every multiple and for every true
            count (`publish/methods/masked.py`). So y + d + e hides the count of all records; and d + e, what a reader
            of both versions sees of the new ones, hides theirs. What was promised of y stands. Masks of old and new
            records by themselves do not do: of two equal halves they are one of 0.71 times the width, and their sum is
            right in 84% instead of 70%. No mask is shared here: those of counts beside a far larger one follow from the
            public size, so that nothing of this is a limit. Each tail is not promised: after a low y it is rarely too
            high.
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016: chapter 5, adding new records.
Checked by  tests/unit/publish/test_grown_groups.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.noise.two_scale import TwoScale
from tacit.publish.methods.masked import Masked, MaskLayout


@dataclass(frozen=True)
class GrownMasks(Masked):
    """Masked counts of a table in which some group is in so many versions.

    Errors and intervals of every group are those of one that is in all versions.
    """

    versions: int

    def draw(self, counts: Ints) -> Ints:
        return Masked(self.channel, self.criterion).draw(counts)

    @property
    def noise(self) -> TwoScale:
        scale = super().noise.right * self.versions  # one noise of no less variance than all
        return TwoScale(scale, scale)

    @property
    def kappa(self) -> float:
        return super().kappa * self._wider

    def deviations(self, counts: Ints | Floats) -> Floats:
        return super().deviations(counts) * self._wider

    @property
    def _wider(self) -> float:
        """How much wider masks are together: one for each version, around numbers that have those before in them."""
        return float(np.sqrt(self.versions * (1 + super().kappa ** 2) ** (self.versions - 1)))

    @property
    def beside(self) -> None:
        return None

    def layout(self, counts: Ints | Floats, sizes: Ints) -> MaskLayout:
        found = super().layout(counts, sizes)
        return replace(found, shared=np.zeros_like(found.shared))

    def mask_variances(self, counts: Floats, sizes: Ints) -> Floats:
        found = super().mask_variances(counts, sizes)
        if self.channel.values == 2:
            return found
        # each version may have had a largest value of its own, whose mask the others shared
        have, need = np.maximum(counts, 0.0), self.deviations(counts) ** 2
        others = np.maximum(have.sum(axis=1, keepdims=True) - have.max(axis=1, keepdims=True), 1.0)
        parts = np.minimum(have / others, 1.0)
        return np.asarray(np.maximum(found, need + need.max(axis=1, keepdims=True) * parts**2))

    @property
    def leaves_open(self) -> list[str]:
        return [
            *super().leaves_open,
            "who knows how old and new rows of a group relate to each other, for instance that shares stay what they "
            "were, may weigh versions: of two equal ones the masks are then 0.89 times as wide",
        ]

    def words(self) -> list[str]:
        return [
            *Masked(self.channel, self.criterion).words(),
            "groups to which rows came later are masked once more, around what was published and the new counts: the "
            "same is promised of the rows of each version, and of all rows",
        ]


def grown(method: Masked, published: Ints, added: Ints, sizes: Ints) -> tuple[GrownMasks, Ints]:
    """Return what is published of groups in two versions: the sum of both, of which `added` is new, with masks."""
    found = GrownMasks(method.channel, method.criterion, getattr(method, "versions", 1) + 1)
    unit = float(method.unit)
    private: Floats = np.asarray(published * unit, np.float64)
    hidden: Floats = np.asarray(np.maximum(abs(published), abs(added)) * unit, np.float64)
    return found, replace(found, versions=1).whole(private, sizes, hidden)
