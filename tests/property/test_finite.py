"""Whatever is computed after the charge is finite and stable: any size of counts, any epsilon, every kind of record."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from parameters import examples
from tacit.plan.choose import choose
from tacit.plan.plans.linear import LinearPlan
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import measure
from tacit.release.results.selections import select
from tacit.report.charts.release_charts import chart

SIZE = 24
DOMAIN = tc.Domain({"x": tc.Integers(0, SIZE - 1), "y": tc.Integers(0, 2), "c": tc.Items(SIZE)})
POLICIES = {
    "everything": tc.Policy(DOMAIN, tc.secrets.attributes("x", "y") | tc.secrets.values({"c": [1]})),
    "blocks": tc.Policy(DOMAIN, tc.secrets.partition("x", width=5) | tc.secrets.values({"c": [1]})),
    "presence": tc.Policy(DOMAIN, tc.secrets.attributes("x", "y"), presence="secret"),
    "one-sided": tc.Policy(DOMAIN, tc.secrets.records("y == 1") | tc.secrets.values({"c": [1]})),
}
QUERIES = {
    "count": tc.count("x < 5"),
    "histogram": tc.histogram("x"),
    "table": tc.histogram("x", "y"),
    "cumulative": tc.cumulative("x"),
    "ranges": tc.ranges("x", [(0, 3), (4, 20), (7, 7)]),
    "total": tc.total("x"),
    "marginals": tc.marginals(sets=[["x"], ["x", "y"]]),
    "items": tc.histogram("c"),
    "top_k": tc.top_k("c", 5),
    "top_k of many": tc.top_k("c", 20),
    "above": tc.above("c", 10, at_most=3),
    "below": tc.below("x < 5", 10),
}
EPSILONS = ["1e-6", "1e-3", "0.1", "1", "5", "20", "100", "1000"]
LARGEST = 2**53


@examples(400, 10)
@given(data=st.data())
def test_every_number_of_a_record_is_finite(data):
    policy = POLICIES[data.draw(st.sampled_from(sorted(POLICIES)))]
    name = data.draw(st.sampled_from(sorted(QUERIES)))
    try:
        plan = choose(QUERIES[name], policy, data.draw(st.sampled_from(EPSILONS)))
    except tc.PlanError:
        return  # refused before anything was charged: noise too large to draw
    entries = plan.base.size(policy.domain)
    size = data.draw(st.sampled_from([0, 10**3, 10**8, 10**12, LARGEST]))
    counts = data.draw(st.sampled_from(["equal", "one huge", "spread"]))
    truth = {
        "equal": np.maximum(np.full(entries, size) - np.arange(entries), 0),
        "one huge": np.where(np.arange(entries) == entries // 2, size, 0),
        "spread": np.geomspace(1, size + 1, entries).astype(np.int64) - 1,
    }[counts]
    if name == "marginals":  # sums of one joint table
        truth = np.concatenate([truth[-SIZE * 3 :].reshape(SIZE, 3).sum(axis=1), truth[-SIZE * 3 :]])
    fit, positive = data.draw(st.booleans()), data.draw(st.booleans())
    if isinstance(plan, LinearPlan):
        record = infer(measure(plan, truth), consistent=fit, nonnegative=positive)
        answered = np.ones(len(record.values), dtype=np.bool_)
    else:
        record = select(replace(plan, nonnegative=positive), truth)
        answered = record._which >= 0
    assert np.isfinite(record.values[answered]).all()
    for level in (0.01, 0.95, 1 - 1e-9):
        lower, upper = record.interval(level)
        assert np.isfinite(lower).all()
        assert np.isfinite(upper[answered]).all()
        assert (lower[answered] <= record.values[answered]).all()
        assert (record.values[answered] <= upper[answered]).all()
    frame = record.frame
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == len(record.values)
    json.dumps(plan.noise_document(), allow_nan=False)
    assert np.isfinite(plan.rmse)
    if data.draw(st.integers(0, 9)) == 0:  # drawing takes longer than all the rest
        chart(record).to_dict()


@pytest.mark.parametrize("epsilon", [5, 20, 100])
@pytest.mark.parametrize(
    "count", [pytest.param(10**8, marks=pytest.mark.slow), pytest.param(10**9, marks=pytest.mark.slow), 2**52]
)
def test_estimates_of_a_choice_do_not_depend_on_how_large_its_counts_are(epsilon, count):
    """Far above the bar all that matters is how far counts are apart; squares of large counts have no digits left."""
    from tacit.noise import Keystream, replayed

    domain = tc.Domain({"c": tc.Items(200)})
    plan = choose(tc.top_k("c", 60), tc.Policy(domain, tc.secrets.values({"c": [1]})), epsilon)
    errors = []
    for size in (10**4, count):
        truth = np.arange(200) + size
        with replayed(Keystream(key=b"how large counts are, no matter!")):
            record = select(plan, truth)
        errors.append(record.values - truth[record.places])
    assert errors[1] == pytest.approx(errors[0], abs=2)  # at 2^52 a float knows whole numbers only


@pytest.mark.parametrize(("k", "epsilon"), [(5, 300), (20, 300), (20, 1000)])
def test_a_choice_with_almost_no_noise_is_made_like_any_other(k, epsilon):
    """No noise has a scale below a hundredth: where tilted noise would need one, choice and measurement are apart."""
    rows = pd.DataFrame({"c": [["0"], ["0", "1"], []]})
    domain = tc.Domain({"c": tc.Items([str(n) for n in range(SIZE)])})
    session = tc.Session(tc.Policy(domain, tc.secrets.values({"c": [1]})), rows, budget=1000)
    record = session.release(tc.top_k("c", k), epsilon=epsilon)
    assert record.values.shape == (k,)
    assert np.isfinite(record.values).all()
    assert record.plan.rmse < 0.2
    assert session.remaining == 1000 - epsilon
