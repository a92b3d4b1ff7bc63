"""Masked counts: the criterion by enumeration of small counts, the limit of large ones, and what they add up to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import tacit as tc
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.masked import PARTS, Masked, balanced

HALF, THIRD = Fraction(1, 2), Fraction(3, 10)
ASKED = Criterion(THIRD, THIRD)
MULTIPLES = np.linspace(0.7, 1.15, 46)


def mask_law(deviation: float, reach: int) -> np.ndarray:
    """Return the law of a mask in parts of a record, from -reach to reach: written anew, as long as coins are light."""
    halves, law = int(np.ceil(2 * (PARTS * deviation) ** 2)), np.zeros(2 * reach + 1)
    near = np.arange(max(-reach, -halves), min(reach, halves) + 1)
    law[near + reach] = binom.pmf(near + halves, 2 * halves, 0.5)
    return law


def chances_of_an_error(method: Masked, count: int, size: int, narrower: float = 1.0) -> np.ndarray:
    """Return how likely each multiple of the published count of one of two values is wrong, by the exact law."""
    lam, noise = float(method.criterion.lam), np.arange(-12, 13)
    reach = PARTS * (4 * size + 40)
    law = np.zeros(2 * reach + 1)
    for moved, weight in zip(noise, method.noise.pmf(noise), strict=True):
        private = count + moved
        deviation = narrower * float(method.deviations(np.array(max(private, size - private))))
        law += weight * np.roll(mask_law(deviation, reach), PARTS * private)
    shown = np.arange(-reach, reach + 1) / PARTS
    return np.array([law[abs(a * shown - count) > lam * count + 1e-12].sum() for a in MULTIPLES])


@pytest.mark.parametrize(
    ("lam", "delta", "rule"),
    [
        ("1", "0.3", "lam must be below 1"),
        ("1.1", "0.3", "lam must be below 1"),
        ("0.9", "0.6", "delta must be at most"),
    ],
)
def test_what_no_mask_gives_is_refused_before_anybody_pays(lam: str, delta: str, rule: str) -> None:
    domain = tc.Domain({"ward": tc.Categories(["a", "b"]), "ill": tc.Categories(["flu", "none"])})
    rows = {"ward": ["a", "a", "b"], "ill": ["flu", "none", "none"]}
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("ill")), pd.DataFrame(rows), budget=2)
    asked = {"public": ["ward"], "sensitive": "ill", "retention": HALF, "lam": lam, "delta": delta}
    with pytest.raises(tc.PlanError, match=rule):
        tc.publish.reconstruction_private(session, **asked, method="masked")
    assert session.remaining == 2


def test_the_best_method_is_another_where_no_mask_will_do() -> None:
    rows = pd.DataFrame({"ward": ["a"] * 40, "ill": ["flu", "none"] * 20})
    asked = {"public": ["ward"], "sensitive": "ill", "values": ["flu", "none"], "retention": Fraction(1, 10)}
    assert tc.publish.reconstruction_private(rows, **asked, lam=1, delta=0.3).method.name != "masked"


@pytest.mark.parametrize("kept", ["0.5", "0.99"])
@pytest.mark.parametrize("promise", ["0.3", "0.05"])
def test_two_values_hold_by_enumeration(kept: str, promise: str) -> None:
    """However little noise keeps epsilon: the masks are wide enough by themselves."""
    asked = Criterion(Fraction(promise), Fraction(promise))
    method = Masked(Channel(Fraction(kept), 2), asked)
    for count, size in ((1, 1), (1, 2), (2, 2), (3, 3), (7, 7)):
        assert chances_of_an_error(method, count, size).min() >= float(promise)
    # a mask that is too narrow is found
    assert kept == "0.5" or chances_of_an_error(method, 7, 7, narrower=0.4).min() < float(promise)


def test_published_counts_add_up_and_scales_are_enough() -> None:
    method = Masked(Channel(HALF, 5), ASKED)
    counts = np.array([[9, 0, 1, 0, 0], [5, 5, 5, 5, 5], [40, 30, 20, 10, 0], [0, 0, 0, 0, 1], [100, 99, 2, 2, 2]])
    sizes = counts.sum(axis=1)
    drawn = method.draw(np.repeat(counts, 50, axis=0))
    assert (drawn.sum(axis=1) == PARTS * np.repeat(sizes, 50)).all()
    layout = method.layout(counts, sizes)
    need, total = layout.need, layout.need.sum(axis=1)
    even = np.flatnonzero(~layout.alone)
    variances = balanced(need[even], layout.top[even])
    # what is left of a mask after its share of what is over is given back
    left = variances * (1 - variances / variances.sum(axis=1, keepdims=True))
    assert left == pytest.approx(need[even])
    assert (layout.alone == (2 * need[np.arange(5), layout.top] >= total)).all()
    assert layout.alone.tolist() == [True, False, True, False, True]


def test_a_shared_mask_makes_up_for_what_the_others_lack() -> None:
    method = Masked(Channel(HALF, 5), ASKED)
    counts = np.array([[9000, 3000, 2000, 1000, 0], [90, 3, 2, 1, 0]])
    layout = method.layout(counts, counts.sum(axis=1))
    assert layout.shared.tolist() == [True, False]  # a few records each are not told from the noise
    own = method.deviations(counts[:, 0]) ** 2
    assert layout.missing[0] + layout.need[0, 1:].sum() == pytest.approx(own[0])
    weights = method.weights(counts.astype(float), counts.astype(float), layout)
    assert weights[0] == pytest.approx([0, 1 / 2, 1 / 3, 1 / 6, 0], abs=1e-4)
    assert layout.most[1] == pytest.approx(method.deviations(np.array(96)) ** 2)  # by the public size


@pytest.mark.parametrize("beside", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("equal", [0.05, 1.0])
@pytest.mark.parametrize("larger", [1.2, 2.0, 6.0])
def test_a_value_that_shares_the_mask_of_a_larger_one_is_hidden(beside: float, equal: float, larger: float) -> None:
    """In the limit of large counts: 1 for the value, `beside` for all others, what is largest; by quadrature.

    Given all masks but the shared one, y is normal around u with deviation u * z / X, where X is the sum of all.
    """
    kappa, squares = Masked(Channel(HALF, 5), ASKED).kappa, equal * beside**2
    shared = kappa * np.sqrt((larger**2 - 1) * (1 + squares))
    at = np.linspace(-5, 5, 161)
    weight = norm.pdf(at)[:, None] * norm.pdf(at[::8])
    u = 1 + kappa * at[:, None]
    deviation = np.maximum(abs(shared * u / (u + beside + kappa * np.sqrt(squares) * at[::8])), 1e-6)
    left = np.linspace(0.45, 0.95, 26)
    found = [
        (weight * (norm.cdf((1.3 / 0.7 * one - u) / deviation) - norm.cdf((one - u) / deviation))).sum() for one in left
    ]
    assert max(found) / weight.sum() < 0.7


@pytest.mark.parametrize("values", [2, 6])
def test_predicted_errors_are_measured(values: int) -> None:
    counts = np.array([[30, 70], [5, 3], [200, 100]]) if values == 2 else np.array([[30, 20, 25, 10, 5, 30], [9] * 6])
    method, sizes = Masked(Channel(HALF, values), ASKED), counts.sum(axis=1)
    with tc.noise.replayed(tc.noise.Keystream(key=b"m" * 32)):
        published = method.draw(np.tile(counts, (1500, 1)))
    drawn = method.estimates(published, np.tile(sizes, 1500)).reshape(1500, *counts.shape)
    assert drawn.var(axis=0) == pytest.approx(method.variances(counts.astype(float), sizes), rel=0.3)
    assert (abs(drawn.mean(axis=0) - counts) < 5 * drawn.std(axis=0) / np.sqrt(1500) + 0.02).all()


def test_the_noise_of_the_counts_keeps_epsilon() -> None:
    two, many = Masked(Channel(HALF, 2), ASKED), Masked(Channel(HALF, 3), ASKED)
    assert two.noise.loss(1) == two.epsilon  # one number, which a record changes by one
    assert many.noise.loss(1) * 2 == many.epsilon  # two numbers


def test_masks_follow_the_exact_criterion_alone() -> None:
    asked = {"public": [], "sensitive": "ill", "values": ["a", "b"], "retention": 0.5, "lam": 0.3, "delta": 0.3}
    with pytest.raises(tc.PlanError, match="criterion must be exact for masked counts"):
        tc.publish.reconstruction_private(None, **asked, criterion="chernoff", method="masked")
