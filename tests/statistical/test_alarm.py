"""Decisions on thresholds: never wrong when certain, and as often certain as the bound allows.

Streams are fixed by key, so a failure repeats. Each assertion has its ALPHA; there are about 40: below 1e-3 in all.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare, geom

import tacit as tc
from parameters import replaying
from tacit.monitor import monitor
from tacit.monitor.alarm import NO_VALUE, alarm_noise, chance_certainly_below, decide, decide_all

ALPHA = 1e-5
ONE = Fraction(1)
stream = replaying(b"decisions on thresholds, stream.")


def fits(hits: int, trials: int, chance: float) -> bool:
    return binomtest(hits, trials, chance).pvalue > ALPHA


def test_no_certain_verdict_is_wrong_in_ten_million():
    counts = np.arange(10_000_000) % 13
    values = decide_all(counts, 5, ONE)
    certain = values == NO_VALUE
    assert certain.sum() > 3_000_000
    assert not (certain & (counts >= 5)).any()
    assert (values[~certain] >= np.maximum(counts[~certain], 5)).all()


def test_false_alarms_at_an_empty_place_stay_below_one_percent():
    alarms = int((decide_all(np.zeros(1_000_000, np.int64), 5, ONE) != NO_VALUE).sum())
    assert alarms < 10_000
    assert fits(alarms, 1_000_000, math.exp(-5))


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(7, 3)])
@pytest.mark.parametrize("gap", [1, 2, 5, 10])
def test_the_bound_is_attained(epsilon, gap):
    """1 - exp(-k epsilon) is the most that any mechanism can say for certain; this one says it."""
    trials = 200_000
    certain = int((decide_all(np.full(trials, 20 - gap), 20, epsilon) == NO_VALUE).sum())
    assert fits(certain, trials, -math.expm1(-gap * float(epsilon)))
    assert chance_certainly_below(20 - gap, 20, epsilon) == pytest.approx(-math.expm1(-gap * float(epsilon)), rel=1e-14)


@pytest.mark.parametrize(("claimed", "right"), [(3, True), (2, False), (4, False)])
def test_a_unit_of_several_visits_has_the_noise_of_its_step_and_no_other(claimed, right):
    trials = 200_000
    certain = int((decide_all(np.full(trials, 4), 10, ONE, step=3) == NO_VALUE).sum())
    assert fits(certain, trials, float(chance_certainly_below(4, 10, ONE, step=claimed))) == right


@pytest.mark.parametrize("count", [0, 4, 5, 30])
def test_without_its_mean_the_value_estimates_the_count_or_the_threshold(count):
    """The noise is memoryless: what an alarm shows above max(count, threshold) is geometric again."""
    values = decide_all(np.full(400_000, count), 5, Fraction(1, 2))
    shown = values[values != NO_VALUE] - max(count, 5)
    law = geom(-math.expm1(-0.5), loc=-1)
    observed = np.bincount(np.minimum(shown, 12), minlength=13)
    expected = np.append(law.pmf(np.arange(12)), law.sf(11)) * len(shown)
    assert chisquare(observed, expected).pvalue > ALPHA
    assert abs(shown.mean() - alarm_noise(Fraction(1, 2)).mean()) < 6 * law.std() / math.sqrt(len(shown))


def test_thresholds_between_counts_work_as_well():
    assert not (decide_all(np.full(1000, 5), 4.5, ONE) == NO_VALUE).any()
    assert chance_certainly_below(4, 4.5, ONE) == chance_certainly_below(4, 5, ONE)
    assert decide(5, 4.5, ONE) is not None


def test_several_decisions_multiply():
    assert chance_certainly_below(0, 5, ONE, decisions=3) == pytest.approx((-math.expm1(-5)) ** 3)


def test_a_monitor_decides_as_often_as_it_says():
    """The whole way through a monitor: batches, window and journal, at a steady count of 3 below 5."""
    policy = tc.Policy(tc.Domain({"here": tc.Flag()}), secrets=tc.secrets.values({"here": [1]}))
    said = {"certainly below": 0, "above": 0, "paused": 0}
    with tc.PlaceMonitor(policy, place="here", threshold=5, epsilon=1, window=1) as watched:
        chance = watched.chance_certainly_below(3)
        batch = monitor.read_events([True, False, True, True], watched._columns, only=1)
        for step in range(3000):
            watched._take(step, None, batch)
        for verdict in watched.history.verdicts:
            said[verdict.verdict] += 1
    assert said["paused"] == 0  # a window of one step has no further one to be silent for
    assert fits(said["certainly below"], 3000, chance)
