"""Audits find every planted leak at its claimed epsilon, and accuse no repaired version.

A bound is wrong with probability ALPHA at most. The keys are fixed, so a passing suite stays passing.
"""

import math

import numpy as np
import pytest
from scipy.stats import beta

from parameters import replaying
from tacit.audit import Verdict, sampled
from tacit.audit.selfcheck.planted import planted

ALPHA = 1e-6
KEY = b"tacit planted leaks, statistical"

# The audit looks for its own events. These are the ones that the modules name.
EVENTS = {
    "kmeans-two-theta": lambda y: y[:, 0] > 250,
    # s_2, the roots of the blocks 2 and 3, and the leaves of 24 and 40, in the order of the printed nodes
    "hierarchical-printed-budget": lambda y: (
        (y[:, [0, 20, 29]] >= [2, 1, 1]).all(axis=1) & (y[:, [37, 46]] <= 0).all(axis=1)
    ),
    "constraint-sensitivity": lambda y: (y[:, [0, 3]] >= 1).all(axis=1) & (y[:, [1, 2]] <= 0).all(axis=1),
    "list-with-the-step-of-one-query": lambda y: (y >= 4).all(axis=1),
    "sparse-vector-one-more-answer": lambda y: (y[:, :2] >= 4).all(axis=1),
    "sparse-vector-no-fresh-threshold-noise": lambda y: y >= 8,
    "sparse-vector-noise-reused": lambda y: y == 1,
    "sparse-vector-values-from-same-noise": lambda y: (y[:, 0] >= 4) & (y[:, 0] < 9) & (y[:, 1] <= 1),
    "monitor-pauses-by-data": lambda y: y[:, 1] == -1,
    "monitor-person-with-several-visits": lambda y: (y[:, [0, 3]] >= 2).all(axis=1),
    "map-moves-between-places": lambda y: y[:, 1] == 0,
    "mixed-directions-top-k": lambda y: (y == [0, 5]).all(axis=1),
    "top-k-adds-count-twice": lambda y: (
        ((y[:, 0] == 0) & (y[:, 1] >= 10) & (y[:, 2] == 1) & (y[:, 3] >= 8))
        | ((y[:, 0] == 1) & (y[:, 1] >= 8) & (y[:, 2] == 0) & (y[:, 3] >= 10))
    ),
    "debias-by-realised-maximum": lambda y: y[:, 1] == 5,
    "zoom-by-true-counts": lambda y: y[:, 1] == 0,
    "zoom-spends-again": lambda y: (y[:, 0] >= 2) & (y[:, 1] == 0) & (y[:, 2] >= 2),
    "one-sided-noise-two-directions": lambda y: y == 3,
    "sensitivity-one-for-replaced-records": lambda y: (y[:, 0] >= 5) & (y[:, 1] <= 3),
    "composition-unpaid": lambda y: (y >= 5).all(axis=1),
    "noise-scale-rounded": lambda y: y >= 5,
    "randomised-response-second-coin": lambda y: y == 1,
    "bounds-from-data": lambda y: y >= 175,
    "joint-noise-one-cell": lambda y: (y[:, 0] >= 1) & (y[:, 0] >= y[:, 1]),
    "cells-read-off-the-data": lambda y: y[:, 2] > -1000,
    "naive-suppression": lambda y: y[:, 1] == -1,
    "coin-tossed-anew": lambda y: (y == -1).all(axis=1),
    "coin-forgotten-at-times": lambda y: (y == -1).all(axis=1),
    "coin-of-the-value": lambda y: (y == [1, -1, 1]).all(axis=1),
    "scaled-tables": lambda y: np.logical_and.reduce([(y % many).any(axis=1) for many in (3, 4, 6)]),
    "floating-point-laplace": lambda y: (np.abs(y) < 1) & (y * 2.0**53 % 1 != 0),
    "forked-noise-reuse": lambda y: y[:, 0] - y[:, 1] == 2,
    "noise-for-one-row-of-three": lambda y: (y[:, :3] >= 1).all(axis=1) & (y[:, 3:] <= 0).all(axis=1),
    "truth-in-post-processing": lambda y: y[:, 0] != 0,
    "order-by-a-true-count": lambda y: y[:, 0] == 1,
    "mean-over-the-true-count": lambda y: y * 3 % 1 != 0,
    "noise-left-out-at-times": lambda y: (y == [5, 3, *[4] * 10]).all(axis=1),
    "error-text-quotes-value": lambda y: np.char.startswith(y, "refused: 4 "),
}
RAISES = "error-raised-on-value"
RARE = "noise-left-out-at-times"  # by an event of probability 1/2000
stream = replaying(KEY)


def loss_lower_bound(hits_hidden, hits_cover, draws):
    low = beta.ppf(ALPHA / 2, hits_hidden, draws - hits_hidden + 1)
    high = beta.ppf(1 - ALPHA / 2, hits_cover + 1, draws - hits_cover)
    return math.log(low / high)


def test_every_leak_has_an_event_or_raises():
    assert set(EVENTS) | {RAISES} == set(planted)


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", EVENTS)
def test_the_event_that_the_module_names_shows_the_leak(name):
    leak, event, draws = planted[name], EVENTS[name], 400_000 if name == RARE else 200_000
    hidden, cover = (int(np.sum(event(leak.release(data, draws)))) for data in (leak.hidden, leak.cover))
    assert hidden / draws > (0.0004 if name == RARE else 0.0095)
    assert loss_lower_bound(hidden, cover, draws) > 1.15 * leak.claimed_epsilon
    if leak.exact_loss < math.inf:
        assert loss_lower_bound(hidden, cover, draws) < leak.exact_loss
    elif name != "bounds-from-data":  # there nothing is impossible, only ever less likely
        assert cover == 0


def samples_of(name):
    """`tacit audit all` draws a million of each."""
    return 10**6 if name == RARE else 250_000


@pytest.mark.slow
@pytest.mark.parametrize("name", planted)
def test_the_audit_finds_the_leak(name):
    leak = planted[name]
    found = sampled(leak.release, leak.hidden, leak.cover, leak.claimed_epsilon, samples_of(name), ALPHA)
    assert found.verdict == Verdict.LEAK_FOUND, str(found)
    assert leak.claimed_epsilon < found.lower_bound <= leak.exact_loss


@pytest.mark.slow
@pytest.mark.parametrize("name", planted)
def test_the_audit_does_not_accuse_the_repaired_version(name):
    leak = planted[name]
    found = sampled(leak.repaired, leak.hidden, leak.cover, leak.claimed_epsilon, samples_of(name), ALPHA)
    assert found.verdict == Verdict.NONE_FOUND, str(found)
