"""Repaired sampling and group-wise retention: exact sizes, against sums over every outcome."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.publish.methods.criterion import Channel, Criterion, exact_tails
from tacit.publish.methods.groupwise import Groupwise, largest_retention
from tacit.publish.methods.sampled import Sampled, error_tails, largest_sample

HALF, THIRD, WHOLE = Fraction(1, 2), Fraction(3, 10), Fraction(1)
ASKED = Criterion(THIRD, THIRD)


def error_chances(*asked: object) -> np.ndarray:
    return np.sum(error_tails(*asked), axis=0)  # type: ignore[arg-type]


def brute_chance(count: int, size: int, sample: int, channel: Channel) -> Fraction:
    """Add up, over every sample and every coin, how likely the estimate is wrong by more than lambda f."""
    kept, spread = channel.retention + channel.spread, channel.spread
    f, wrong = Fraction(count, size), Fraction(0)
    for k in range(max(0, sample - size + count), min(count, sample) + 1):
        drawn = Fraction(comb(count, k) * comb(size - count, sample - k), comb(size, sample))
        for i in range(k + 1):
            for j in range(sample - k + 1):
                weight = comb(k, i) * kept**i * (1 - kept) ** (k - i)
                weight *= comb(sample - k, j) * spread**j * (1 - spread) ** (sample - k - j)
                estimate = (Fraction(i + j, sample) - spread) / channel.retention
                wrong += drawn * weight if abs(estimate - f) > THIRD * f else 0
    return wrong


@pytest.mark.parametrize(("size", "sample", "values"), [(13, 11, 2), (9, 9, 2), (14, 6, 5)])
def test_chances_are_sums_over_every_sample(size: int, sample: int, values: int) -> None:
    channel = Channel(HALF, values)
    counts = np.array([1, size // 2, size - 1, size])
    brute = [float(brute_chance(int(c), size, sample, channel)) for c in counts]
    assert error_chances(counts, size, sample, channel, THIRD) == pytest.approx(brute, abs=1e-12)


@pytest.mark.parametrize(("values", "unsampled", "sizes"), [(2, 7, (11, 48)), (14, 11, (10, 36)), (46, 7, (10, 35))])
def test_samples_of_known_sizes(values: int, unsampled: int, sizes: tuple[int, int]) -> None:
    """Groups that need no sampling, and samples of a large group where no frequency is above 1, and above 1/2."""
    channel = Channel(HALF, values)
    whole = [size for size in range(1, 12) if largest_sample(size, channel, ASKED, WHOLE) == size]
    assert whole[:unsampled] == list(range(1, unsampled + 1))
    assert unsampled == 11 or whole[-1] == unsampled
    assert (largest_sample(5000, channel, ASKED, WHOLE), largest_sample(5000, channel, ASKED, HALF)) == sizes


def test_a_size_that_holds_for_large_groups_fails_for_some() -> None:
    channel = Channel(HALF, 2)
    assert largest_sample(1000, channel, ASKED, WHOLE) == 11
    assert brute_chance(12, 13, 11, channel) < THIRD < brute_chance(13, 13, 11, channel)
    assert largest_sample(13, channel, ASKED, WHOLE) == 7


def test_every_count_of_every_size_holds() -> None:
    channel = Channel(HALF, 3)
    method = Sampled(channel, ASKED, WHOLE)
    for size, sample in zip(range(1, 40), method.samples(np.arange(1, 40)), strict=True):
        assert (error_chances(np.arange(1, size + 1), size, int(sample), channel, THIRD) > 0.3).all()


def test_every_retention_holds_for_every_count() -> None:
    channel = Channel(HALF, 2)
    for size in (5, 12, 61, 300):
        own = Channel(largest_retention(size, channel, ASKED, WHOLE), 2)
        below, above = exact_tails(np.arange(1, size + 1), size, own, THIRD)
        assert (below + above > 0.3).all()
        assert own.retention <= HALF


@pytest.mark.parametrize("kind", [Sampled, Groupwise])
def test_predicted_errors_are_measured(kind: type) -> None:
    counts = np.array([[30, 10, 20], [3, 2, 1], [0, 200, 100]])
    method, sizes = kind(Channel(HALF, 3), ASKED, WHOLE), counts.sum(axis=1)
    with tc.noise.replayed(tc.noise.Keystream(key=b"m" * 32)):
        published = method.draw(np.tile(counts, (600, 1)))
    drawn = method.estimates(published, np.tile(sizes, 600)).reshape(600, 3, 3)
    predicted = method.variances(counts.astype(float), sizes)
    assert (abs(drawn.mean(axis=0) - counts) < 5 * np.sqrt(predicted / 600)).all()
    assert drawn.var(axis=0) == pytest.approx(predicted, rel=0.35)


def test_what_cannot_be_published_is_refused_before_rows_are_looked_at() -> None:
    asked = {"public": [], "sensitive": "ill", "values": ["a", "b"], "lam": 0.3, "delta": 0.3, "method": "sample"}
    with pytest.raises(tc.PlanError, match="even a single perturbed record tells too much"):
        tc.publish.reconstruction_private(None, **asked, retention=0.9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("method", "asked", "sentence"),
    [
        ("sample", {"retention": 0.9, "delta": 0.3}, "even a single perturbed record tells too much"),
        ("retention", {"retention": 0.9, "delta": 0.6}, "no retention at which groups of some size pass"),
    ],
)
@pytest.mark.parametrize("bound", [0.5, 0.9, 1])
def test_a_bound_on_frequencies_does_not_hide_what_cannot_be_published(
    method: str, asked: dict[str, float], sentence: str, bound: float
) -> None:
    """Sizes are seen after the charge; what cannot be published at some size is refused before it."""
    domain = tc.Domain({"ward": tc.Categories(["a", "b"]), "ill": tc.Categories(["flu", "hiv"])})
    rows = pd.DataFrame({"ward": ["a"] * 20 + ["b"] * 2, "ill": ["flu"] * 18 + ["hiv"] * 2 + ["flu", "hiv"]})
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("ill")), rows, budget=5)
    with pytest.raises(tc.PlanError, match=sentence):
        tc.publish.reconstruction_private(
            session, public=["ward"], sensitive="ill", lam=0.3, **asked, method=method, largest_frequency=bound
        )
    assert session.remaining == 5


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", [2, 5])
@pytest.mark.parametrize(
    ("kind", "retentions", "deltas"),
    [(Sampled, (0.1, 0.5, 0.65, 0.69, 0.9), (0.05, 0.3, 0.34)), (Groupwise, (0.9,), (0.3, 0.49, 0.55, 0.595))],
)
def test_what_passes_the_check_can_be_published_at_every_size(
    kind: type, retentions: tuple[float, ...], deltas: tuple[float, ...], values: int
) -> None:
    """On both sides of the limits of the checks."""
    passed = []
    for delta, retention in itertools.product(deltas, retentions):
        channel = Channel(Fraction(str(retention)), values)
        method = kind(channel, Criterion(THIRD, Fraction(str(delta))), Fraction(4, 5))
        try:
            method.check()
        except tc.PlanError:
            passed.append(False)
            continue
        passed.append(True)
        sizes = np.array([*range(1, values + 4), 2 * values, 29])
        assert (method.variances(np.ones((len(sizes), values)), sizes) > 0).all()
    assert set(passed) == {True, False}


def test_a_group_of_one_has_a_frequency_of_one_whatever_the_bound_says() -> None:
    channel = Channel(Fraction(3, 5), 2)
    for size in (1, 2, 3):
        most = -(-size // 2)
        sample = largest_sample(size, channel, ASKED, Fraction(1, 10))
        assert (error_chances(np.arange(1, most + 1), size, sample, channel, THIRD) > 0.3).all()


def test_chances_hold_for_retentions_with_many_digits() -> None:
    """A retention that follows from epsilon has nine digits: products of it do not fit into 64 bits."""
    channel = Channel(tc.publish.retention_for(46, epsilon=Fraction("1.2345")), 46)
    near = Channel(Fraction(round(float(channel.retention) * 10**4), 10**4), 46)
    counts, lam = np.array([1000, 100_000, 400_000]), Fraction("0.2999")
    exact = error_chances(counts, 1_000_003, 30, channel, lam)
    assert exact == pytest.approx(error_chances(counts, 1_000_003, 30, near, Fraction(3, 10)), abs=1e-3)
