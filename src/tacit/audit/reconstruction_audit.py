"""Which personal groups a perturbed table would tell too much about: the (lambda, delta) criterion, group by group.

The audit reads the true counts of every group, and its result says which groups have a very frequent value. So it is
for whoever holds the rows, and never to be published. Of several sensitive columns the values of each are looked at,
and the combinations of some and of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.drawing import Held
from tacit.errors import sealed
from tacit.plan.question import Labels
from tacit.publish.groups import PersonalGroups, as_columns, as_generalisation, merged, personal_groups
from tacit.publish.methods.criterion import Channel, Criterion, is_private, largest_size
from tacit.release.curator import PRIVATE


@dataclass(frozen=True, eq=False, repr=False)
class ReconstructionAudit(Held):
    """What an audit of personal groups found. `frame` has a line for each group.

    `violated` says whether some value of the group can be estimated too well.
    """

    channel: Channel
    criterion: Criterion
    groups: PersonalGroups
    sizes: npt.NDArray[np.int64]
    frequencies: tuple[tuple[Channel, npt.NDArray[np.float64]], ...]  # of the most frequent value, of each part
    violated: npt.NDArray[np.bool_]
    private: str = field(default=PRIVATE, init=False)

    @cached_property
    def largest(self) -> npt.NDArray[np.float64]:
        """The largest size that the most frequent value of each group allows; of several columns, of all parts."""
        every = [largest_size(often, part, self.criterion) for part, often in self.frequencies]
        return np.asarray(np.min(every, axis=0))

    @cached_property
    def frame(self) -> Any:
        """A line for each group: its public values, its size, the largest allowed size, and whether it is violated.

        The largest allowed size is that of a group with the same frequency; small groups below it may be violated too,
        since whole records leave no room for an error on both sides. It is infinite where every size is allowed.
        """
        texts = self.groups.texts()
        columns: dict[str, Any] = {
            "group": Labels(texts, np.arange(len(texts))),
            **self.groups.group_labels(),
            "size": self.sizes,
            "largest allowed size": self.largest,
            "violated": self.violated,
        }
        return self.groups.frame(columns)

    @property
    def count(self) -> int:
        """How many groups are violated."""
        return int(self.violated.sum())

    @property
    def share_of_groups(self) -> float:
        """The share of groups that are violated; of no groups, none."""
        return float(self.violated.sum() / max(self.violated.size, 1))

    @property
    def share_of_records(self) -> float:
        """The share of records in groups that are violated; of no records, none."""
        return float(self.sizes[self.violated].sum() / max(int(self.sizes.sum()), 1))

    def __str__(self) -> str:
        return (
            f"{self.private}\n{self.count:,} of {self.violated.size:,} groups ({self.share_of_groups:.1%}) with "
            f"{self.share_of_records:.1%} of the records violate: {self.criterion}"
        )

    def __repr__(self) -> str:
        return f"ReconstructionAudit({self.violated.size} groups)"


@sealed
def reconstruction(
    rows: Any,
    *,
    public: Any,
    sensitive: Any,
    values: Any,
    retention: Any,
    lam: Any,
    delta: Any,
    criterion: str = "exact",
    tails: str = "each",
    groups: Any = None,
) -> ReconstructionAudit:
    """Say for every personal group whether uniform perturbation at this retention would hide its values well enough.

    Args:
        rows: a path or a frame of any kind.
        public: the columns that make personal groups.
        sensitive: the column that is perturbed; of several, the values of each and all combinations are looked at.
        values: every value that it may have; of several columns, a list for each.
        retention: the probability that a record keeps its value.
        lam: an error above `lam` times the frequency is large enough.
        delta: how likely such an error must be.
        criterion: `chernoff`, the thesis' bound (Eq 4.9), or `exact`.
        tails: `each` (Definition 8: both errors that likely) or `together` (one or the other).
        groups: what values of public columns become, so that some make one group: `{column: {value: name}}`, or what
            `generalise` returns.
    """
    columns = as_columns(public, sensitive, values)
    channel = Channel(retention, int(np.prod(columns.shape)), columns.shape)
    asked = Criterion(lam, delta, criterion, tails)
    asked.check(channel)
    merges = as_generalisation(groups, columns.public)
    return audit_groups(merged(personal_groups(rows, columns), merges), channel, asked)


def audit_groups(groups: PersonalGroups, channel: Channel, asked: Criterion) -> ReconstructionAudit:
    """Audit groups that were counted before."""
    sizes, violated, often = groups.sizes, np.zeros(len(groups.which), np.bool_), []
    for part, counts in _parts(groups.counts, channel):
        most = counts.max(axis=1, initial=0)
        often.append((part, most / np.maximum(sizes, 1)))
        # nearly always the most frequent value decides; the others are looked at only where it does not
        violated |= ~is_private(most, sizes, part, asked)
        rest = np.flatnonzero(~violated)
        violated[rest] = ~is_private(counts[rest], sizes[rest, None], part, asked).all(axis=1)
    return ReconstructionAudit(channel, asked, groups.without_counts(), sizes, tuple(often), violated)


def _parts(counts: npt.NDArray[np.int64], channel: Channel) -> Iterator[tuple[Channel, npt.NDArray[np.int64]]]:
    """Yield the counts of the values of each column, and of the combinations of some, with how they are perturbed."""
    shape = channel.shape or (channel.values,)
    table = counts.reshape(len(counts), *shape)
    for left in range(len(shape)):
        for out in combinations(range(len(shape)), left):
            values = int(np.prod([size for axis, size in enumerate(shape) if axis not in out]))
            added = table.sum(axis=tuple(axis + 1 for axis in out))
            yield Channel(channel.retention, values), added.reshape(len(counts), values)
