"""Every way to measure a line: its predicted error is what comes out, its intervals hold, its best is not beaten."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

import tacit as tc
from parameters import replaying
from tacit.plan.plans.linear import every_plan
from tacit.plan.question import resolve

ALPHA = 1e-6
DRAWS = 6000
DOMAIN = tc.Domain({"x": tc.Integers(0, 52), "sick": tc.Flag()})
POLICIES = {
    "near": tc.Policy(DOMAIN, tc.secrets.within(7, "x")),
    "everything": tc.Policy(DOMAIN, tc.secrets.everything()),
    "blocks": tc.Policy(DOMAIN, tc.secrets.partition("x", width=20)),
    "near, may be absent": tc.Policy(DOMAIN, tc.secrets.within(7, "x"), presence="secret"),
}
QUERIES = {
    "ranges": tc.ranges("x", "all"),
    "prefixes": tc.cumulative("x"),
    "listed": tc.ranges("x", [(0, 9), (5, 30), (50, 52), (18, 41)]),
}
stream = replaying(b"strategies on a line, our stream")


def strategies(policy, query, epsilon):
    """Return the plans that have a noise of their own."""
    asked = resolve(query, DOMAIN)
    plans = every_plan(asked, policy, Fraction(epsilon))
    return [plan for plan in plans if plan.own_errors is not None]


def errors_of(plan):
    """Return the errors of the running counts in many releases: least squares is linear, so units tell all of it."""
    entries = plan.base.size(DOMAIN)
    units = np.array([plan.base.running(unit) for unit in np.eye(entries)])
    drawn = plan.noise.draw_for((DRAWS, entries)) @ units
    return np.concatenate([np.zeros((DRAWS, 1)), drawn], axis=1)


def runs_of(plan):
    asked = plan.query.workload(DOMAIN)
    if asked.listed is not None:
        return asked.ends[:, 0], asked.ends[:, 1]
    if asked.kind == "prefixes":
        return np.zeros(53, dtype=np.int64), np.arange(53)
    return np.triu_indices(53)


def mean_square(plan, below):
    """Return the mean squared error over the runs that are asked for."""
    low, high = runs_of(plan)
    return ((below[:, high + 1] - below[:, low]) ** 2).mean()


FAST = {("near", "ranges"), ("near", "listed"), ("blocks", "prefixes"), ("near, may be absent", "ranges")}
CASES = [
    pytest.param(policy, query, marks=[] if (policy, query) in FAST else [pytest.mark.slow])
    for policy in POLICIES
    for query in QUERIES
]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("policy", "query"), CASES)
def test_predicted_errors_are_what_is_measured_and_intervals_hold(policy, query):
    found = strategies(POLICIES[policy], QUERIES[query], "1/2")
    assert found
    for plan in found:
        below = errors_of(plan)
        low, high = runs_of(plan)
        assert mean_square(plan, below) == pytest.approx(plan.mse, rel=0.03), plan.strategy
        variance = plan.own_errors.run_variance(low, high)
        assert variance.mean() == pytest.approx(plan.mse, rel=2e-3), plan.strategy
        picked = slice(None, None, -(-len(low) // 12))
        errors = below[:, high[picked] + 1] - below[:, low[picked]]
        least, most = plan.own_errors.spread(low[picked], high[picked]).bounds(0.9)
        inside = ((least <= errors) & (errors <= most)).sum(axis=0)
        for many in inside.tolist():
            assert binomtest(many, DRAWS, 0.9, alternative="less").pvalue > ALPHA, plan.strategy
        noisy = variance[picked] > 0
        assert inside[noisy].mean() / DRAWS < 0.975, plan.strategy  # not so wide that the level means nothing


def test_a_level_close_to_one_and_noise_that_is_nearly_always_zero_are_covered():
    for plan in strategies(POLICIES["near"], QUERIES["ranges"], 30):
        below = errors_of(plan)
        low, high = np.array([0, 5, 17]), np.array([9, 30, 17])
        errors = below[:, high + 1] - below[:, low]
        for level in (0.5, 0.99):
            least, most = plan.own_errors.spread(low, high).bounds(level)
            inside = ((least <= errors) & (errors <= most)).sum(axis=0)
            for many in inside.tolist():
                assert binomtest(many, DRAWS, level, alternative="less").pvalue > ALPHA, plan.strategy
