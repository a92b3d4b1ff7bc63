"""Tables with their own noise: losses against every edge, errors against other weights and against draws."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import tacit as tc
from brute_force import answers_of, edges_of
from parameters import examples
from tacit import noise
from tacit.plan.plans.weighted_tables import STRATEGY, TablesPlan, scales_for, table_changes
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import measure
from tacit.release.estimate.projections import agreement, nearest
from tacit.release.planner import Planner

DOMAIN = tc.Domain({"a": tc.Integers(0, 1), "b": tc.Integers(0, 5), "c": tc.Categories([*"pqr"])})
SECRETS = {
    "everything": tc.secrets.everything(),
    "one at a time": tc.secrets.attributes("a", "b"),
    "all, one at a time": tc.secrets.attributes("a", "b", "c"),
    "near": tc.secrets.within(2, "b"),
    "near in two": tc.secrets.within(2, "a", "b"),
    "blocks": tc.secrets.partition("b", width=3) | tc.secrets.attributes("c"),
    "one way": tc.secrets.values({"c": ["p"]}) | tc.secrets.attributes("b"),
}
SETS = [[["a"], ["b"], ["c"]], [["a", "b"], ["b", "c"], ["a"]], [["a"], ["a", "b", "c"]], [["b"], ["c"]]]


def plans(presence="public"):
    for secrets in SECRETS.values():
        for sets in SETS:
            policy = tc.Policy(DOMAIN, secrets, presence=presence)
            yield policy, tc.explain(tc.marginals(sets=sets), policy, Fraction(1, 2)).plan


@pytest.mark.one_in(5)
@pytest.mark.parametrize("presence", ["public", "secret"])
def test_no_edge_costs_more_than_epsilon_and_one_costs_that(presence) -> None:
    weighted = 0
    for policy, plan in plans(presence):
        if plan.strategy != STRATEGY:
            continue
        weighted += 1
        assert isinstance(plan, TablesPlan)
        ends = np.cumsum(plan.noise.sizes)[:-1]
        worst: Fraction | float = Fraction(0)
        for hidden, cover in edges_of(policy):
            change = answers_of(plan.query, DOMAIN, cover) - answers_of(plan.query, DOMAIN, hidden)
            worst = max(worst, plan.noise.loss_of([int(np.abs(part).sum()) for part in np.split(change, ends)]))
        assert worst == Fraction(1, 2) == plan.proven_loss()
        found = tc.audit.exact(plan.query, policy, Fraction(1, 2))
        assert found.keeps
        assert found.forward.low == pytest.approx(0.5)
    assert weighted >= 6


def test_a_table_that_no_secret_touches_is_exact_and_takes_nothing_from_the_others() -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("b"))
    plan = tc.explain(tc.marginals(sets=[["a"], ["b"], ["a", "b"]]), policy, 1).plan
    assert plan.strategy == STRATEGY
    assert plan.noise.scales[0] == 0
    assert sum(2 / scale for scale in plan.noise.scales[1:]) == 1
    session = tc.Session(policy, pd.DataFrame({"a": [0, 1, 1], "b": [2, 3, 5], "c": [*"ppq"]}), budget=9)
    found = session.release(tc.marginals(sets=[["a"], ["b"], ["a", "b"]]), epsilon=1)
    fitted = session.release(tc.marginals(sets=[["a"], ["b"], ["a", "b"]]), epsilon=1, consistent=True)
    assert fitted.values[:2].tolist() == found.values[:2].tolist() == [1.0, 2.0]
    assert fitted.values[2:8] == pytest.approx(fitted.values[8:].reshape(2, 6).sum(axis=0))
    assert found.interval()[0][:2].tolist() == found.interval()[1][:2].tolist() == [1.0, 2.0]


@examples(30)
@given(
    st.lists(st.lists(st.sampled_from([0, 2]), min_size=3, max_size=3).filter(any), min_size=1, max_size=3),
    st.lists(st.integers(1, 200), min_size=3, max_size=3),
)
def test_the_weights_are_nearly_the_best(rows, weights) -> None:
    changes = [tuple(row) for row in rows]
    scales = scales_for(changes, [float(weight) for weight in weights], Fraction(1))
    touched = [any(row[table] for row in rows) for table in range(3)]
    assert [scale > 0 for scale in scales] == touched
    assert max(sum(change / scale for change, scale in zip(row, scales, strict=True) if change) for row in rows) == 1
    used = [table for table in range(3) if touched[table]]
    matrix = np.array(rows, dtype=float)[:, used]

    def error(rates):
        return float(sum(weights[table] / rate**2 for table, rate in zip(used, rates, strict=True)))

    best = minimize(
        error,
        np.full(len(used), 0.1),
        method="SLSQP",
        bounds=[(1e-3, 10)] * len(used),
        constraints={"type": "ineq", "fun": lambda rates: 1 - matrix @ rates},
    )
    assert error([float(1 / scales[table]) for table in used]) <= best.fun * 1.02


def variance_of_agreeing(plan) -> float:
    """Return the mean variance of the estimates that a release makes: those of single entries of noise, added up."""
    tables = plan.query.sets
    sizes = [[DOMAIN[name].size for name in names] for names in tables]
    variances = plan.per_entry(lambda law: law.variance()).astype(float)
    alone = [np.bincount(group)[group] == 1 for group in plan.groups or ()]
    if alone:
        variances[np.concatenate(alone)] = 0.0
    wanted = agreement(tables, sizes, plan.groups)
    moved = [nearest(one, variances, wanted) for one in np.eye(len(variances))]
    return sum(v * float(row @ row) for v, row in zip(variances, moved, strict=True) if v) / len(variances)


def test_the_error_of_tables_that_agree_is_predicted() -> None:
    gains = []
    for policy, plain in [*plans(), *plans("secret")]:
        plan = Planner(policy).plan(plain.query, Fraction(1, 2), consistent=True)
        assert plan.variance <= plain.variance * (1 + 1e-12)
        if plan.sides is None and plan.noise is not None and plan.variance < plain.variance:
            assert plan.variance == pytest.approx(variance_of_agreeing(plan), rel=1e-6)
            gains.append(plan.variance / plain.variance)
            assert tc.explain(plan).expected_mse == pytest.approx(plan.rmse**2)
    assert len(gains) >= 20
    assert min(gains) < 0.9


def test_both_ways_to_answer_several_tables_are_shown() -> None:
    domain = tc.Domain({"a": tc.Integers(0, 7), "b": tc.Integers(0, 999)})
    said = tc.explain(tc.marginals("a", "b", ways=1), tc.Policy(domain, tc.secrets.everything()), 1)
    assert list(said.candidates) == [STRATEGY, "with the same noise for all tables"]
    assert said.candidates[STRATEGY] == pytest.approx(said.expected_mse)
    assert said.candidates[STRATEGY] < 0.5 * said.candidates["with the same noise for all tables"]
    assert "with the same noise for all tables" in str(said)


def test_two_tables_under_everything_have_the_closed_form() -> None:
    policy = tc.Policy(tc.Domain({"a": tc.Integers(0, 7), "b": tc.Integers(0, 999)}), tc.secrets.everything())
    plan = tc.explain(tc.marginals("a", "b", ways=1), policy, 1).plan
    small, large = plan.noise.scales
    # one cell of each table follows from the exact total: 7 and 999 are left
    assert float(small / large) == pytest.approx((999 / 7) ** (1 / 3), rel=0.01)
    assert plan.variance / plan.same_noise.variance == pytest.approx(
        (7 ** (1 / 3) + 999 ** (1 / 3)) ** 3 / (4 * 1006), rel=0.01
    )
    assert plan.tried[STRATEGY] == plan.variance


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("name", "sets"), [("one at a time", SETS[2]), ("blocks", SETS[1]), ("everything", SETS[2])])
def test_errors_are_as_predicted_and_tables_can_be_made_to_agree(name, sets) -> None:
    policy = tc.Policy(DOMAIN, SECRETS[name])
    plan = tc.explain(tc.marginals(sets=sets), policy, Fraction(1, 2)).plan
    assert plan.strategy == STRATEGY
    counts = np.arange(36).reshape(2, 6, 3)
    others = [tuple(axis for axis, one in enumerate("abc") if one not in names) for names in sets]
    truth = np.concatenate([counts.sum(axis=axes).ravel() for axes in others])
    errors, fitted, inside = [], [], []
    with noise.replayed(noise.Keystream(key=b"tables with a noise of their own")):
        for _ in range(200):
            measured = measure(plan, truth)
            found = infer(measured)
            low, high = found.interval(0.9)
            errors.append(found.values - truth)
            inside.append((low <= truth) & (truth <= high))
            fitted.append(infer(measured, consistent=True).values - truth)
    # 200 draws of several cells: within 10%
    assert np.mean(np.square(errors)) == pytest.approx(plan.variance, rel=0.1)
    assert plan.spread.variances().mean() == pytest.approx(plan.variance, rel=1e-9)
    assert np.mean(inside) >= 0.9
    assert np.mean(np.square(fitted)) <= np.mean(np.square(errors))


def test_what_is_known_and_several_rows_keep_one_noise_for_all() -> None:
    domain = tc.Domain({"a": tc.Integers(0, 7), "b": tc.Integers(0, 99)})
    for policy in (
        tc.Policy(domain, tc.secrets.everything(), [tc.known.count("a == 0")]),
        tc.Policy(domain, tc.secrets.everything(), person="id", per_person=2),
    ):
        assert tc.explain(tc.marginals("a", "b", ways=1), policy, 1).plan.strategy == "direct"


def test_rows_of_changes_are_those_of_shapes() -> None:
    query = tc.marginals(sets=[["a"], ["b"], ["a", "b"]])
    assert table_changes(query, tc.Policy(DOMAIN, SECRETS["one at a time"])) == [(0, 2, 2), (2, 0, 2)]
    assert table_changes(query, tc.Policy(DOMAIN, SECRETS["near in two"])) == [(2, 2, 2)]
    assert table_changes(query, tc.Policy(DOMAIN, tc.secrets.within(1, "b"), presence="secret")) == [
        (0, 2, 2),
        (1, 1, 1),
    ]
