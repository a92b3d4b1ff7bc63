"""Each tail (Definition 8): too low and too high an estimate are each likely enough, by exact laws, for every count."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import tacit as tc
from parameters import replaying
from tacit.publish.methods.both_tails import beside_ratio, kappa_each, normal_widths
from tacit.publish.methods.criterion import Channel, Criterion, exact_tails
from tacit.publish.methods.groupwise import Groupwise
from tacit.publish.methods.intervals import one_count, sums
from tacit.publish.methods.masked import PARTS, Masked
from tacit.publish.methods.masked_columns import MaskedColumns
from tacit.publish.methods.sampled import Sampled, error_tails

THIRD = Fraction(3, 10)
EACH = Criterion(THIRD, THIRD, "exact", "each")
COUNTS = np.unique(np.concatenate([np.arange(1, 200), np.geomspace(200, 3000, 60).astype(int)])).astype(float)
# how often values are kept, and how many there are: epsilon 1.1, 2.4, 3.85 and 0.5
NOISES = [(Fraction(1, 2), 2), (Fraction(1, 2), 10), (Fraction(1, 2), 46), (Fraction(49, 200), 2)]
stream = replaying(b"e" * 32)


def law_of_noise(scale: float, values: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact law of the noise of one count, of several less their mean: a lattice of 1/m, by convolution."""
    q, steps = np.exp(-1 / scale), 1 if values == 2 else values
    reach = int(40 * scale + 5)
    own = (1 - q) / (1 + q) * q ** abs(np.arange(-reach, reach + 1.0))

    def spread_out(by: int) -> np.ndarray:
        found = np.zeros(by * (own.size - 1) + 1)
        found[::by] = own
        return found

    law = spread_out(1 if values == 2 else values - 1)
    if values > 2:
        length = law.size + (values - 1) * (own.size - 1)
        law = np.fft.irfft(np.fft.rfft(law, length) * np.fft.rfft(own, length) ** (values - 1), length)
    nu = (np.arange(law.size) - law.size // 2) / steps
    return nu[law > 1e-18], law[law > 1e-18]


def tails_of(method: Masked, wider: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return how likely normal masks of the stated widths, or wider ones, make each count too low, and too high."""
    nu, law = law_of_noise(float(method.noise.right), method.channel.values)
    x = COUNTS[:, None] + nu
    if method.lumps:
        around = wider * np.maximum(x, 0)
        above = 1 - method.lumps.below(1.3 * COUNTS[:, None] - x, around)
        return method.lumps.below(0.7 * COUNTS[:, None] - x, around) @ law, above @ law
    width = wider * method.deviations(x)
    return ndtr((0.7 * COUNTS[:, None] - x) / width) @ law, ndtr((x - 1.3 * COUNTS[:, None]) / width) @ law


def test_lumps_are_drawn_as_they_say_and_without_room_for_the_noise_they_fail() -> None:
    lumps = Masked(Channel(Fraction(1, 2), 2), EACH).lumps
    assert lumps is not None
    drawn = lumps.draw(np.full(40_000, 50.0), PARTS) / PARTS
    places = np.linspace(-35, 35, 29)
    assert np.abs((drawn[:, None] < places).mean(axis=0) - lumps.below(places, np.full(29, 50.0))).max() < 0.013
    assert drawn.std() == pytest.approx(float(lumps.deviations(np.array(50.0))), rel=0.02)
    nu, law = law_of_noise(1 / np.log(3), 2)
    x = COUNTS[:, None] + nu
    planted = replace(lumps, t=0.0, q=0.3)  # for the count that is hidden, not for its noise
    above = 1 - planted.below(1.3 * COUNTS[:, None] - x, np.maximum(x, 0)) @ law
    assert above.min() < 0.28


@pytest.mark.parametrize(("kept", "values"), NOISES)
def test_each_tail_of_masked_counts_by_the_exact_law(kept: Fraction, values: int) -> None:
    method = Masked(Channel(kept, values), EACH)
    for wider in (1.0, 1.3, 4.0):
        assert min(one.min() for one in tails_of(method, wider)) > 0.3
    # it is little wider than it must be, and masks of the weaker reading do not do
    assert values == 2 or min(one[COUNTS > 1000].min() for one in tails_of(method)) < 0.303
    assert max(one.min() for one in tails_of(Masked(Channel(kept, values), Criterion(THIRD, THIRD)))) < 0.25


@pytest.mark.parametrize(
    ("lam", "delta", "needed"),
    [("0.3", "0.3", True), ("0.2", "0.4", True), ("0.3", "0.1", False), ("0.5", "0.2", False)],
)
def test_what_is_added_for_the_noise_is_needed_where_delta_is_large(lam: str, delta: str, *, needed: bool) -> None:
    asked = Fraction(lam), Fraction(delta)
    nu, law = law_of_noise(2.0, 2)
    kappa, extra = normal_widths(*asked, float(nu**2 @ law))
    x, least = COUNTS[:, None] + nu, []
    for added in (extra, 0.0):
        width = kappa * np.maximum(x, 0) + added + 1e-9
        above = ndtr((x - (1 + float(asked[0])) * COUNTS[:, None]) / width) @ law
        below = ndtr(((1 - float(asked[0])) * COUNTS[:, None] - x) / width) @ law
        least.append(min(above.min(), below.min()))
    assert least[0] > float(asked[1])
    assert (least[1] < float(asked[1])) == needed


def test_each_tail_by_the_exact_law_of_coins() -> None:
    """Counts of 1 to 5 of three values: every outcome of the noise, and every number of coins."""
    method = Masked(Channel(Fraction(9, 10), 3), EACH)
    nu, law = law_of_noise(float(method.noise.right), 3)
    nu, law = nu[law > 1e-9], law[law > 1e-9]
    for count in range(1, 6):
        above = below = 0.0
        for x, chance in zip(count + nu, law, strict=True):
            halves = int(np.ceil(2 * (PARTS * float(method.deviations(x))) ** 2))
            high = np.floor(PARTS * (1.3 * count - x) + 1e-9) + halves  # up to this it is not too high
            low = np.ceil(PARTS * (0.7 * count - x) - 1e-9) + halves - 1
            above += chance * binom.sf(high, 2 * halves, 0.5)
            below += chance * binom.cdf(low, 2 * halves, 0.5)
        assert min(above, below) > 0.3


def test_counts_that_share_a_mask_have_wider_ones() -> None:
    """One value outweighs the others: without the ratio the others are too high in 29.3% at one width, not in 30%."""
    wide = beside_ratio(THIRD, THIRD) * kappa_each(THIRD, THIRD)  # type: ignore[operator]
    points = np.linspace(-8, 8, 2001)
    weights = np.exp(-(points**2) / 2) / np.exp(-(points**2) / 2).sum()
    for by in (0.1, 0.24, 0.5, 1.0, 5.0):
        shared = 1 + by * points
        high, planted = (
            ndtr(-(1.3 / np.maximum(abs(shared), 1e-9) - np.sign(shared)) / one) @ weights
            for one in (wide, kappa_each(THIRD, THIRD))
        )
        assert high > 0.3
        assert planted < 0.3 or by != 0.24


@pytest.mark.parametrize("counts", [[70, 30], [1, 0], [100] * 10, [350, 60, 40, 30, 10, 5, 3, 2], [5, 3, 2]])
def test_drawn_tables_keep_each_tail(counts: list[int]) -> None:
    """Ten thousand tables of each group: five standard deviations below 0.3."""
    many, there = np.tile(counts, (10_000, 1)), np.array(counts) > 0
    method = Masked(Channel(Fraction(1, 2), len(counts)), EACH)
    found = method.estimates(method.draw(many), many.sum(axis=1))
    for wrong in (found > 1.3 * many, found < 0.7 * many):
        assert wrong.mean(axis=0)[there].min() > 0.3 - 5 * np.sqrt(0.21 / len(many))
    assert min((abs(a * found - many) > 0.3 * many).mean(axis=0)[there].min() for a in np.linspace(0.6, 1.7, 12)) > 0.3


def test_intervals_of_such_tables_hold_at_every_level() -> None:
    """Twenty-four settings of 400 tables: 2 to 10 values, even or not, one count and sums of five groups."""
    draw, found, levels = np.random.default_rng(24), [], np.array([0.5, 0.9, 0.95, 0.99, 0.999])
    for setting in range(24):
        values, groups = int(draw.choice([2, 3, 10])), 1 if setting % 2 else 5
        lam, delta = ((3, 3), (1, 3), (5, 2))[setting % 3]
        asked = Criterion(Fraction(lam, 10), Fraction(delta, 10), "exact", "each")
        method = Masked(Channel(Fraction(int(draw.choice([30, 50, 80])), 100), values), asked)
        shares = draw.dirichlet(np.full(values, 1.0), groups)
        counts = np.floor(shares * draw.choice([50, 500, 5000])).astype(np.int64) + 1
        sizes = counts.sum(axis=1)
        shown = method.estimates(method.draw(np.tile(counts, (400, 1))), np.tile(sizes, 400))
        if groups == 1:
            chances = one_count(method, shown, np.tile(sizes, 400), 0, np.full((400, 1), float(counts[0, 0])))
        else:
            true = np.full((400, 1), float(counts[:, 0].sum()))
            chances = sums(method, shown.reshape(400, groups, values), sizes, [0], true)
        found.append((chances.reshape(-1, 1) >= 0.9 * (1 - levels)).mean(axis=0))
    behind = (np.array(found) < levels - 4.5 * np.sqrt(levels * (1 - levels) / 400)).sum(axis=0)
    assert behind.tolist() in ([0, 0, 0, 0, 0], [0, 0, 0, 0, 1])  # as without `each`: a sum may be, at 0.999
    assert (np.min(found, axis=0) > levels - 0.05).all()
    assert (np.mean(found, axis=0) >= levels).all()


def test_samples_keep_each_tail_for_every_count() -> None:
    for values, kept in ((2, Fraction(1, 3)), (3, Fraction(3, 50)), (4, Fraction(1, 2))):
        channel = Channel(kept, values)
        method = Sampled(channel, EACH, Fraction(1))
        assert method.has_every_size == (values < 4)
        for size in range(1, 40) if values < 4 else (1, 2):
            sample = int(method.samples(np.array([size]))[0])
            assert min(one.min() for one in error_tails(np.arange(1, size + 1), size, sample, channel, THIRD)) >= 0.3
    # a rare value of many is hardly ever seen too often
    with pytest.raises(tc.PlanError, match="tells too much"):
        Sampled(Channel(Fraction(1, 2), 10), EACH, Fraction(1)).samples(np.array([1000]))


def test_retentions_keep_each_tail_or_there_are_none() -> None:
    channel = Channel(Fraction(1, 4), 2)
    method = Groupwise(channel, EACH, Fraction(1))
    for size in (1, 5, 300):
        kept = method.retentions(np.array([size]))[0]
        tails = exact_tails(np.arange(1, size + 1), size, Channel(kept, 2), THIRD)
        assert min(one.min() for one in tails) >= 0.3
    with pytest.raises(tc.PlanError, match="no retention at which groups of some size pass"):
        method.retentions(np.array([2]))
    # of one of two people who has the value: shown by none, or by both, at most a quarter of the time
    assert all(comb(2, 1) * kept * (1 - kept) / 2 <= Fraction(1, 4) for kept in (Fraction(k, 20) for k in range(21)))


ROWS = pd.DataFrame({"ward": ["a"] * 60 + ["b"] * 40, "ill": ["flu", "hiv"] * 50})
ASKED = {"public": ["ward"], "sensitive": "ill", "retention": 0.5, "lam": 0.3, "delta": 0.3}


def session() -> tc.Session:
    domain = tc.Domain({"ward": tc.Categories(["a", "b"]), "ill": tc.Categories(["flu", "hiv"])})
    return tc.Session(tc.Policy(domain, tc.secrets.attributes("ill")), ROWS, budget=5)


def test_tables_and_certificates_say_which_reading_they_keep() -> None:
    each = tc.publish.reconstruction_private(session(), **ASKED, tails="each")
    weaker = tc.publish.reconstruction_private(session(), **ASKED)
    assert (each.method.name, each.method.criterion.tails) == ("masked", "each")
    said, less = " ".join(each.certificate["terms"]), " ".join(weaker.certificate["terms"])
    assert "0.3, both for too low and for too high an estimate (each tail, as Definition 8 asks)" in said
    assert "every multiple of it, which cannot do so on each side" in said
    assert "each tail" not in less
    assert "both tails together, less than Definition 8 asks" in less


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"method": "sample"}, "even a single perturbed record tells too much"),
        ({"method": "retention"}, "tails must be 'together' for 'retention' here: whether a group can keep each tail"),
        ({"delta": 0.5}, "delta must be below 0.5 for tails='each'"),
        ({"tails": "both"}, "tails must be one of each, together"),
    ],
)
def test_what_keeps_no_tail_is_refused_before_the_charge(changed: dict[str, object], sentence: str) -> None:
    opened = session()
    with pytest.raises(tc.PlanError, match=sentence):
        tc.publish.reconstruction_private(opened, **{**ASKED, "tails": "each", "method": "masked", **changed})
    assert opened.remaining == 5


def test_the_widest_masks_have_a_largest_delta() -> None:
    with pytest.raises(tc.PlanError, match="delta must be smaller for tails='each': no mask of at most 10 times"):
        Masked(Channel(Fraction(1, 2), 3), Criterion(THIRD, Fraction(49, 100), "exact", "each")).check()


def test_masks_of_several_columns_keep_the_weaker_reading_alone() -> None:
    with pytest.raises(tc.PlanError, match="tails must be 'together' for masked counts of several sensitive columns"):
        MaskedColumns(Channel(Fraction(1, 2), 6, (2, 3)), EACH).check()
