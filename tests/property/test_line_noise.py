"""Noise on running counts: its law, taken apart, and what it loses along every step that one person can make."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

from line_laws import drawn_logs, norm, outputs, random_law, steps
from tacit.errors import PlanError
from tacit.noise.line.law import DRAWN, LineNoise

F = Fraction
SMALL = [
    LineNoise((3,), 1, F(1, 2), (F(3, 2),), None),
    LineNoise((4,), 2, F(1, 2), (F(1), F(3, 2)), None),
    LineNoise((4,), 4, F(0), (F(0), F(1), F(3, 2)), None),
    LineNoise((3,), 2, F(1, 2), (F(1), F(3, 2)), F(1)),
    LineNoise((3,), 4, F(1, 2), (F(1), F(0), F(2)), F(2, 3)),
    LineNoise((1, 3, 1), 2, F(1, 2), (F(1), F(2)), None),
    LineNoise((2, 2), 8, F(1, 2), (F(1), F(0), F(1), F(2)), F(2)),
    LineNoise((3,), 1, F(2), (F(0),), None),
]


@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_draws_have_the_stated_law(law):
    points = outputs(law, 16)
    weights = np.exp(-float(DRAWN) * norm(law, points))
    near = np.abs(points).max(axis=1) <= 4
    expected = np.log(weights[near] / weights.sum())
    # what lies beyond 16 weighs less than 1e-10, and less than 1e-12 in most cases
    np.testing.assert_allclose(drawn_logs(law, points[near]), expected, rtol=1e-12, atol=1e-10)
    some = points[near][::7]
    np.testing.assert_allclose([law.joint_log_pmf(z) for z in some], expected[::7], rtol=1e-12, atol=1e-10)


def test_the_worst_loss_over_all_steps_is_what_the_rates_say():
    rng = np.random.default_rng(5)
    for _ in range(300):
        law, reach, may_enter_or_leave = random_law(rng, 7)
        assert law.loss_of(reach, may_enter_or_leave=may_enter_or_leave) == 1
        exact = [law.loss(step) for step in steps(law, reach, may_enter_or_leave=may_enter_or_leave)]
        assert max(exact) == 1


def worst_drawn_loss(law, reach, *, may_enter_or_leave):
    """The largest loss that the tables of the draws have, over all steps and all outputs near zero."""
    around = outputs(law, 2)
    drawn = np.full((5,) * around.shape[1], -inf)
    drawn[tuple(around.T + 2)] = drawn_logs(law, around)
    # the step itself is among these outputs, and there the ratio is largest
    hidden = outputs(law, 1)
    return max(
        float(np.max(drawn[tuple(hidden.T + 2)] - drawn[tuple((hidden - step).T + 2)]))
        for step in steps(law, reach, may_enter_or_leave=may_enter_or_leave)
    )


@pytest.mark.parametrize(
    ("laws", "most"),
    [(200, 4), pytest.param(2000, 5, marks=pytest.mark.slow), pytest.param(300, 7, marks=pytest.mark.slow)],
)
def test_the_worst_loss_of_what_is_drawn_is_at_most_epsilon_and_nearly_that(laws, most):
    rng = np.random.default_rng(6)
    for _ in range(laws):
        law, reach, may_enter_or_leave = random_law(rng, most)
        assert (1 - 2.0**-15) <= worst_drawn_loss(law, reach, may_enter_or_leave=may_enter_or_leave) <= 1, law


def test_a_step_costs_its_norm():
    rng = np.random.default_rng(7)
    for _ in range(100):
        law, _, _ = random_law(rng, 9)
        step = rng.integers(-3, 4, sum(law.segments))
        stops = np.cumsum(law.segments) - 1
        step[stops[:-1]] = 0
        if law.end_rate is None:
            assert step[-1] == 0 or law.loss(step) == inf
            step[-1] = 0
        assert float(law.loss(step)) == pytest.approx(norm(law, step[np.newaxis])[0], rel=1e-12)


def test_leaving_needs_noise_at_the_end():
    law = LineNoise((4,), 2, F(1, 2), (F(1), F(3, 2)), None)
    assert law.loss_of(1, may_enter_or_leave=True) == inf
    assert law.loss([0, 0, 0, 1]) == inf
    assert law.joint_log_pmf([0, 0, 0, 1]) == -inf


def test_profiles_of_runs_cost_what_runs_cost():
    law = LineNoise((6,), 2, F(1, 4), (F(1, 8), F(1, 4)), None)
    assert law.proven_loss([(3, 0), (0, 1)], 1) == law.loss_of(3, may_enter_or_leave=False)
    assert law.proven_loss([(2, 2)], 1) == 2 * law.loss_of(2, may_enter_or_leave=False)
    assert law.proven_loss([], 0) == 0


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (((), 1, 1, (1,), None), "segments"),
        (((3, 0), 1, 1, (1,), None), "segments"),
        (((3,), 3, 1, (1, 1), None), "block"),
        (((3,), 2, 1, (1,), None), "cell_rates"),
        (((3,), 2, 1, (1, 0), None), "cell_rates"),
        (((3,), 1, 0, (0,), None), "cell_rates"),
        (((3,), 1, -1, (1,), None), "anchor_rate"),
        (((3,), 1, 1, (1,), 0), "end_rate"),
    ],
)
def test_what_is_no_such_noise_is_refused(given, key):
    with pytest.raises(PlanError, match=key):
        LineNoise(*given)
