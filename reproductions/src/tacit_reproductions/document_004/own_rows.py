"""How much a group's own row adds to what the rest of a published table says about it.

No criterion about estimates prevents a guess from the rest of the table: people who share a public value with a group
say something about it. `own_row_gain` says how much oftener somebody is right who also sees the group's own row. The
guess is the mean of what each public column says without the group; with the row, guess and estimate are weighted by
how wrong each is (empirical Bayes).
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.publish.groups import PersonalGroups
from tacit.publish.methods.method import Method


def own_row_gain(groups: PersonalGroups, method: Method, lam: float, repetitions: int = 50) -> Floats:
    """Return for the most frequent value of each group how much oftener its frequency is found within lam.

    Counted over repeated publications: with the group's own row, less without it.
    """
    counts, sizes = groups.counts, np.maximum(groups.sizes, 1)
    rows, top = np.arange(len(counts)), counts.argmax(axis=1)
    true = counts[rows, top] / sizes
    gain = np.zeros(len(counts))
    for _ in range(repetitions):
        estimates = method.estimates(method.draw(counts), sizes)
        guess = others_say(groups, estimates)[rows, top]
        own = estimates[rows, top] / sizes
        noise = method.variances(estimates, sizes)[rows, top] / sizes.astype(np.float64) ** 2
        between = max(float(np.average((own - guess) ** 2 - noise, weights=sizes)), 1e-6)
        both = (own * between + guess * noise) / (between + noise)
        right = [abs(one - true) <= lam * true for one in (both, guess)]
        gain += right[0].astype(np.float64) - right[1]
    return gain / repetitions


def others_say(groups: PersonalGroups, estimates: Floats) -> Floats:
    """Return the frequencies that public columns suggest for each group, without its own row; their mean."""
    sizes = groups.sizes.astype(np.float64)
    said = []
    for at, values in enumerate(groups.values):
        which = groups.which[:, at]
        people, sums = np.zeros(len(values)), np.zeros((len(values), estimates.shape[1]))
        np.add.at(people, which, sizes)
        np.add.at(sums, which, estimates)
        said.append(_shares(sums[which] - estimates, people[which] - sizes))
    if not said:
        return np.full_like(estimates, 1 / estimates.shape[1])
    everybody = _shares(estimates.sum(axis=0) - estimates, sizes.sum() - sizes)
    # nobody else shares a value: everybody else speaks for the group
    filled = [np.where(np.isnan(one), everybody, one) for one in said]
    found = np.mean(filled, axis=0)
    return np.asarray(np.where(np.isnan(found), 1 / estimates.shape[1], found))


def _shares(counts: Floats, people: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(people[:, None] > 0, np.clip(counts / people[:, None], 0, 1), np.nan)
