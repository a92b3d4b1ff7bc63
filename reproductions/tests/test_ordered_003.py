"""The ordered hierarchical mechanism: its loss and its error against definitions that count one by one."""

from fractions import Fraction

import numpy as np
import pytest

from parameters import replaying
from tacit import noise
from tacit_reproductions.document_003.line_trials import Asked, line_policy, our_noise, scored
from tacit_reproductions.document_003.ordered import ConsistentTree, OrderedHierarchical, best_fan_out, height

ONE = Fraction(1)
# values, theta, fan-out
SMALL = [
    *((16, 4, 2), (16, 4, 4), (50, 7, 3), (33, 8, 2), (12, 1, 2), (17, 16, 16), (9, 5, 9)),
    *((20, 20, 4), (33, 40, 2), (17, 17, 4)),  # one tree alone
]
stream = replaying(b"ordered mechanisms of paper 003.")


def cells(low, high, fan_out):
    """Return the cells of a tree over low..high-1 without its root, as the paper cuts them."""
    width = high - low
    if width <= 1:
        return []
    part = -(-width // fan_out)
    found = []
    for start in range(low, high, part):
        end = min(start + part, high)
        found += [(start, end), *cells(start, end, fan_out)]
    return found


def counted(mechanism):
    """Return every count that gets noise, as (from, before, rate), written down anew."""
    n, theta, share = mechanism.values, mechanism.theta, mechanism.budget
    found = [(0, end, share.ordered) for end in range(theta, n, theta)]
    for start in range(0, n, theta):
        own = cells(start, min(start + theta, n), mechanism.fan_out)
        found += [(low, high, share.trees / (2 * height(min(theta, n), mechanism.fan_out))) for low, high in own]
    return found


@pytest.mark.parametrize("sizes", SMALL)
def test_the_repaired_loss_is_at_most_epsilon_over_all_edges(sizes):
    mechanism = OrderedHierarchical(*sizes)
    nodes = counted(mechanism)
    worst = max(
        sum(rate for low, high, rate in nodes if (low <= x < high) != (low <= y < high))
        for x in range(mechanism.values)
        for y in range(x + 1, min(mechanism.values, x + mechanism.theta + 1))
    )
    assert mechanism.worst_loss() == pytest.approx(worst, abs=1e-12)
    assert worst <= 1 + 1e-12


def test_random_sizes_and_shares_keep_epsilon():
    for _ in range(60):
        values = 3 + noise.uniform_below(60)
        theta, fan_out = 2 + noise.uniform_below(values - 2), 2 + noise.uniform_below(8)
        share = (5 + noise.uniform_below(90)) / 100
        assert OrderedHierarchical(values, theta, fan_out, share=share).worst_loss() <= 1 + 1e-12


@pytest.mark.parametrize("sizes", SMALL)
@pytest.mark.parametrize("printed", [False, True])
def test_the_expected_error_is_that_of_every_range(sizes, printed):
    """Each running count is written as a sum of nodes, one by one; a range is a difference of two."""
    mechanism = OrderedHierarchical(*sizes, printed=printed)
    ordered, trees = mechanism.variances(ONE)
    uses = []
    for upto in range(mechanism.values + 1):
        block, own = upto // mechanism.theta, {}
        if upto < mechanism.values:
            if block:
                own["S", block] = ordered[block - 1]
            start = block * mechanism.theta
            end = min(start + mechanism.theta, mechanism.values)
            left = start
            for low, high in sorted(cells(start, end, mechanism.fan_out), key=lambda cell: (cell[0], -cell[1])):
                if low == left and high <= upto:
                    own[low, high], left = trees[block], high
            assert left == upto
        uses.append(own)
    pairs = [(uses[a], uses[b]) for a in range(len(uses)) for b in range(a + 1, len(uses))]
    total = sum(sum(v for k, v in (*a.items(), *b.items()) if (k in a) != (k in b)) for a, b in pairs)
    assert mechanism.mean_square(ONE) == pytest.approx(total / len(pairs))


@pytest.mark.parametrize("mechanism", [OrderedHierarchical(60, 10, 3), OrderedHierarchical(60, 10, 3, printed=True)])
def test_drawn_noise_has_the_expected_error(mechanism):
    error = mechanism.noise(Fraction(1, 2), 4_000).astype(float)
    n = mechanism.values
    drawn = ((n + 1) * (error**2).sum(axis=1) - error.sum(axis=1) ** 2) / (n * (n + 1) / 2)
    spread = drawn.std() / np.sqrt(len(drawn))
    assert abs(drawn.mean() - mechanism.mean_square(Fraction(1, 2))) < 5 * spread
    assert spread < 0.02 * drawn.mean()
    assert not error[:, [0, -1]].any()


def test_the_best_fan_out_is_no_worse_than_any():
    best = best_fan_out(200, 50)
    least = OrderedHierarchical(200, 50, best).mean_square(ONE)
    assert all(least <= OrderedHierarchical(200, 50, other).mean_square(ONE) for other in (2, 4, 8, 16, 32))


def test_a_consistent_tree_is_least_squares():
    """With fan-out 2 on 4 values: the variance of each running count against the normal equations."""
    rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4)])
    # the total is exact: only differences are free
    basis = np.linalg.svd(np.ones((1, 4)))[2][1:].T
    scale = 2 * 2
    law = noise.two_scale(Fraction(scale), Fraction(scale), 200_000).astype(float)
    covariance = basis @ np.linalg.inv(basis.T @ rows.T @ rows @ basis) @ basis.T * law.var()
    running = np.tril(np.ones((4, 4)))
    expected = np.diag(running @ covariance @ running.T)
    drawn = ConsistentTree(4, 2).noise(ONE, 40_000)[:, 1:].var(axis=0)
    np.testing.assert_allclose(drawn[:3], expected[:3], rtol=0.05)
    assert drawn[3] == 0


def test_ranges_are_drawn_evenly_and_scored_by_their_ends():
    asked = Asked.drawn(3, 60_000)
    assert set(zip(asked.low.tolist(), asked.high.tolist(), strict=True)) == {
        (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)
    }  # fmt: skip
    counts = np.bincount(asked.low * 4 + asked.high)
    assert (np.abs(counts[counts > 0] - 10_000) < 5 * np.sqrt(10_000)).all()
    running = np.array([0, 5, 5, 9])
    errors = scored(asked, running, np.array([[0, 3, -3, 0]]))
    of_pairs = [9, 9, 0, 36, 9, 9]
    assert errors.raw.value == pytest.approx(np.mean(of_pairs), rel=0.05)
    assert errors.rising.value < errors.raw.value  # 8, 2 become 5, 5


@pytest.mark.parametrize("theta", [1, 3, 12])
def test_our_column_is_what_a_session_releases(theta):
    import pandas as pd

    import tacit as tc

    counts = np.array([3, 0, 2, 7, 1, 0, 0, 4, 5, 1, 0, 2])
    people = pd.DataFrame({"value": np.repeat(np.arange(12), counts)})
    with noise.replayed(noise.Keystream(key=b"5" * 32)):
        session = tc.Session(line_policy(12, theta), people, budget=1)
        released = session.release(tc.ranges("value", "all"), epsilon=ONE)
    with noise.replayed(noise.Keystream(key=b"5" * 32)):
        (error,), _ = our_noise(counts, theta, ONE, 1)
    running = np.concatenate([[0], np.cumsum(counts)]) + error
    expected = [running[high + 1] - running[low] for low in range(12) for high in range(low, 12)]
    np.testing.assert_allclose(released.values, expected, atol=1e-9)
