"""The count queries of document 004, section 4.4.1, and how wrong publications answer them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from tacit import noise
from tacit.publish.groups import PersonalGroups
from tacit.publish.methods.criterion import Channel
from tacit.publish.methods.method import Method
from tacit.publish.methods.perturbation import Uniform
from tacit_reproductions.document_004.violations import DEFAULT

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_AT_ONCE: Final = 2_000  # queries that are drawn together
_MOST_TRIED: Final = 200_000  # queries that are tried until enough of them are frequent
_SELECTIVITY: Final = 1e-3
FLOOR: Final = 0.3 / 1.036  # the least relative deviation of a normal mask that hides a count at (0.3, 0.3)


@dataclass(frozen=True, eq=False)
class Workload:
    """Count queries: which cells of the table each adds up (a line of a sparse matrix), and the true answers."""

    cells: csr_array[Any]
    truth: Floats

    def answers(self, counts: npt.NDArray[Any]) -> Floats:
        """Return the sums of counts that the queries ask for."""
        return np.asarray(self.cells @ counts.ravel().astype(np.float64))


def workload(groups: PersonalGroups, queries: int) -> Workload:
    """Draw the queries of section 4.4.1: one to three attributes, one value of each, one sensitive value.

    Those that hold for less than 0.1% of the people are left out.
    """
    counts, total, attributes = groups.counts, int(groups.counts.sum()), len(groups.values)
    size = counts.shape[1]
    by_value = [np.ascontiguousarray(column) for column in counts.T]
    having = [[groups.which[:, at] == value for value in range(len(values))] for at, values in enumerate(groups.values)]
    chosen: list[Ints] = []
    truths: list[float] = []
    for _ in range(_MOST_TRIED // _AT_ONCE):
        many = 1 + noise.uniform_below(min(3, attributes), _AT_ONCE)
        order = np.argsort(noise.uniform_below(1 << 62, (_AT_ONCE, attributes)), axis=1)
        values = [noise.uniform_below(len(known), _AT_ONCE) for known in groups.values]
        for number, value in enumerate(noise.uniform_below(size, _AT_ONCE).tolist()):
            mask = np.ones(len(counts), np.bool_)
            for at in order[number, : many[number]].tolist():
                mask &= having[at][int(values[at][number])]
            truth = int(by_value[value] @ mask)
            if truth >= _SELECTIVITY * total:
                chosen.append(np.flatnonzero(mask) * size + value)
                truths.append(float(truth))
            if len(chosen) == queries:
                break
        if len(chosen) == queries:
            break
    ends = np.cumsum([0, *(len(one) for one in chosen)])
    columns = np.concatenate([np.zeros(0, np.int64), *chosen])
    cells = csr_array((np.ones(len(columns)), columns, ends), shape=(len(chosen), counts.size))
    return Workload(cells, np.array(truths))


def relative_error(method: Method, groups: PersonalGroups, asked: Workload) -> float:
    """Return the mean relative error of the queries in one publication."""
    estimates = method.estimates(method.draw(groups.counts), groups.sizes)
    return float(np.mean(abs(asked.answers(estimates) - asked.truth) / asked.truth))


def floor_ratios(method: Method, groups: PersonalGroups, asked: Workload, runs: int) -> tuple[float, float]:
    """Return the median error of queries beside uniform perturbation's, and beside the least that masks allow."""
    counts, sizes = groups.counts, groups.sizes
    errors = []
    for _ in range(runs):
        estimates = method.estimates(method.draw(counts), sizes)
        errors.append(asked.answers(estimates) - asked.truth)
    own = np.sqrt(np.mean(np.square(errors), axis=0))
    values = counts.shape[1]
    uniform = Uniform(Channel(DEFAULT["p"], values)).variances(counts.astype(np.float64), sizes)
    hidden = np.maximum(counts, sizes[:, None] - counts) if values == 2 else counts
    least = (FLOOR * hidden) ** 2
    return (
        float(np.median(own / np.sqrt(asked.answers(uniform)))),
        float(np.median(own / np.sqrt(asked.answers(least)))),
    )
