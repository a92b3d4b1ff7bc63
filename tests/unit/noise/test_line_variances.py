"""Variances of noise on a line against enumeration, and against simulation where that is too long."""

from fractions import Fraction

import numpy as np
import pytest

from line_laws import drawn_rates, norm, outputs
from tacit import noise
from tacit.errors import PlanError
from tacit.noise.keystream import Keystream
from tacit.noise.line import moments as line_moments
from tacit.noise.line.law import DRAWN, LineNoise
from tacit.noise.line.messages import Rates
from tacit.noise.line.variances import LineVariances

F = Fraction
SMALL = [
    LineNoise((3,), 1, F(1, 2), (F(3, 2),), None),
    LineNoise((4,), 2, F(1, 2), (F(1), F(3, 2)), None),
    LineNoise((4,), 4, F(0), (F(0), F(1), F(3, 2)), None),
    LineNoise((3,), 2, F(1, 2), (F(1), F(3, 2)), F(1)),
    LineNoise((3,), 4, F(1, 2), (F(1), F(0), F(2)), F(1)),
    LineNoise((2,), 4, F(1, 2), (F(1), F(1), F(2)), F(1)),
    LineNoise((1, 3, 1), 2, F(1, 2), (F(1), F(2)), None),
    LineNoise((3,), 1, F(2), (F(0),), None),
    LineNoise((1,), 8, F(2), (F(0), F(1), F(1), F(1)), None),
]


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.9])
def test_two_values_have_geometric_noise_of_their_summed_rates(rate):
    """The rates of one anchor and of the values on either side add up; each alone may be small."""
    found = line_moments.point_moments(2, Rates(rate / 3, (rate / 3,), None), free=False)
    assert found.anchor_variances[1] == pytest.approx(2 * np.exp(-rate) / np.expm1(-rate) ** 2, rel=1e-3)


@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_variances_are_those_of_the_law(law):
    values, points = sum(law.segments), outputs(law, 13)
    weights = np.exp(-float(DRAWN) * norm(law, points))
    weights /= weights.sum()
    below = np.concatenate([np.zeros((len(points), 1)), points], axis=1)
    low, high = np.triu_indices(values)
    expected = weights @ (below[:, high + 1] - below[:, low]) ** 2
    np.testing.assert_allclose(law.run_variance(low, high), expected, rtol=1e-6, atol=1e-9)
    assert law.mean_variance("ranges") == pytest.approx(expected.mean(), rel=1e-6, abs=1e-9)
    assert law.mean_variance("prefixes") == pytest.approx(expected[low == 0].mean(), rel=1e-6, abs=1e-9)
    assert law.mean_variance("cells") == pytest.approx(expected[low == high].mean(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("by", [1, 5, 20, 40, 60])
@pytest.mark.parametrize("law", SMALL, ids=repr)
def test_variances_of_noise_that_is_nearly_always_zero_are_positive_and_not_above_the_true_ones(law, by):
    law = scaled(law, by)
    points = outputs(law, 3)
    weights = np.exp(-float(DRAWN) * norm(law, points))
    below = np.concatenate([np.zeros((len(points), 1)), points], axis=1)
    low, high = np.triu_indices(sum(law.segments))
    # positive terms alone, so that the smallest of them has all its digits; what is left out makes it smaller
    expected = weights @ (below[:, high + 1] - below[:, low]) ** 2 / weights.sum()
    found = law.run_variance(low, high)
    assert ((found > 0) == (expected > 0)).all()
    if by > 1:
        assert (found <= expected * 1.001 + 1e-12).all()
    for kind, asked in (("ranges", low >= 0), ("prefixes", low == 0), ("cells", low == high)):
        mean = law.mean_variance(kind)
        assert (mean > 0) == (expected[asked].mean() > 0)
        assert by == 1 or mean <= expected[asked].mean() * 1.001 + 1e-12


LONG = [
    # anchors that are alike in the middle; with and without a last block that is cut short, and with a free end
    LineNoise((400,), 4, F(1, 40), (F(1, 10), F(0), F(1, 5)), None),
    LineNoise((333,), 8, F(1, 40), (F(1, 10), F(0), F(1, 20), F(1, 5)), None),
    LineNoise((61, 333), 4, F(1, 40), (F(1, 10), F(0), F(1, 5)), F(1, 8)),
    LineNoise((300,), 512, F(0), (F(0), *[F(1, 18)] * 8, F(1, 6)), None),
    LineNoise((13,), 2, F(1, 4), (F(1, 10), F(1, 4)), F(1, 8)),
]


# the quick one has all of it: anchors that are alike in the middle, a block that is cut short, a free end
LONGEST = [law if law is LONG[2] else pytest.param(law, marks=pytest.mark.slow) for law in LONG]


@pytest.mark.parametrize("law", LONGEST, ids=repr)
def test_means_are_those_of_all_runs(law):
    values = sum(law.segments)
    low, high = np.triu_indices(values)
    each = law.run_variance(low, high)
    assert law.mean_variance("ranges") == pytest.approx(each.mean(), rel=1e-5)
    assert law.mean_variance("prefixes") == pytest.approx(each[low == 0].mean(), rel=1e-5)
    assert law.mean_variance("cells") == pytest.approx(each[low == high].mean(), rel=1e-5)


@pytest.mark.parametrize("law", LONGEST, ids=repr)
def test_few_runs_have_the_variances_that_they_have_among_all(law):
    low, high = np.triu_indices(sum(law.segments))
    some = np.random.default_rng(4).choice(len(low), 12, replace=False)
    rates = drawn_rates(law)
    expected = LineVariances(law.segments, rates).of_runs(low[::5], high[::5])  # needs all points at once
    few = LineVariances(law.segments, rates)
    one_by_one = [float(few.of_runs(low[at : at + 1], high[at : at + 1])[0]) for at in some // 5 * 5]
    np.testing.assert_allclose(one_by_one, expected[some // 5], rtol=1e-9, atol=1e-12)


def scaled(law, by):
    end = None if law.end_rate is None else law.end_rate * by
    return LineNoise(law.segments, law.block, law.anchor_rate * by, tuple(w * by for w in law.cell_rates), end)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("law", LONG, ids=repr)
def test_large_scales_follow_from_smaller_ones(law, monkeypatch):
    largest = max(float(law.anchor_rate), float(sum(law.cell_rates)), float(law.end_rate or 0))
    law = scaled(law, F(1, 10) / F(largest))
    low, high = np.triu_indices(sum(law.segments))
    rates = drawn_rates(law)
    found = LineVariances(law.segments, rates).of_runs(low[::7], high[::7])
    monkeypatch.setattr(line_moments, "_FINE", (0.05, 0.07))  # so that 0.1 is computed outright
    np.testing.assert_allclose(found, LineVariances(law.segments, rates).of_runs(low[::7], high[::7]), rtol=1e-3)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("law", "by"),
    [
        *((law, 1) for law in LONG),
        (LONG[1], 10),
        *(pytest.param(law, 10, marks=pytest.mark.slow) for law in LONG if law != LONG[1]),
        (LONG[4], 100),
        *(pytest.param(law, 100, marks=pytest.mark.slow) for law in LONG[:4]),
    ],
    ids=repr,
)
def test_draws_vary_as_predicted(law, by):
    law, values, rounds = scaled(law, F(1, by)), sum(law.segments), 1200
    low, high = np.sort(np.random.default_rng(3).integers(0, values, (2, 400)), axis=0)
    with noise.replayed(Keystream(key=bytes(range(32)))):
        drawn = law.draw(rounds)
    below = np.concatenate([np.zeros((rounds, 1)), drawn], axis=1)
    measured = ((below[:, high + 1] - below[:, low]) ** 2).mean(axis=0)
    expected = law.run_variance(low, high)
    used = expected > 0
    assert not measured[~used].any()
    ratio = measured[used] / expected[used]
    # each ratio has a standard deviation of about sqrt(2 to 5 / rounds), and their mean much less
    assert ratio.mean() == pytest.approx(1, abs=0.03)
    assert np.abs(ratio - 1).max() < 0.4
    squares = (below[:, 1:] ** 2).mean()
    assert law.mean_variance("prefixes") == pytest.approx(squares, rel=0.06)


def test_segments_are_independent():
    law = LineNoise((5, 6, 4), 2, F(1, 2), (F(1, 2), F(1)), F(1, 2))
    across = law.run_variance([2], [12])
    left, right = law.run_variance([2], [4]), law.run_variance([11], [12])
    assert across == pytest.approx(left + right, rel=1e-9)
    assert law.run_variance([5], [10]) == 0


def test_runs_outside_the_line_are_refused():
    law = LineNoise((5,), 2, F(1, 2), (F(1, 2), F(1)), None)
    for low, high in ((-1, 2), (2, 5), (3, 2)):
        with pytest.raises(PlanError, match="run"):
            law.run_variance([low], [high])
    with pytest.raises(PlanError, match="workload"):
        law.mean_variance("everything")
