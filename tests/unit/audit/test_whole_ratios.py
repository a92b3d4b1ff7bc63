"""Closeness with whole-number noise, against sums over every pair of noises, in exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import tacit as tc
from tacit.audit.disclosure_audits import whole_ratios as ratios
from tacit.noise.cube import Cube
from tacit.noise.law import Law
from tacit.noise.two_scale import TwoScale

ONE, HALF = Fraction(1), Fraction(1, 2)
LAWS = {
    "two-sided": TwoScale(HALF, HALF),
    "one-sided": TwoScale(ONE, Fraction(0)),
    "two-scale": TwoScale(ONE, HALF),
    "left": TwoScale(Fraction(0), HALF),
}
COUNTS = [(5, 6), (1, 1), (3, 10), (4, 5), (2, 2), (10, 12), (1, 4)]  # (4, 5) and (10, 12) have ends of exactly one
TAU = Fraction(1, 5)


@cache
def chances(law: Law) -> dict[int, float]:
    reach = range(law.quantile(1e-14), law.quantile(1 - 1e-14) + 1)
    return {k: float(law.pmf(k)) for k in reach}


def mean(law: Law) -> Fraction:
    return Fraction(law.mean())


def is_close(y: Fraction, x: Fraction, theta: int, phi: int) -> bool:
    return x != 0 and abs(y / x - Fraction(theta, phi)) <= TAU * Fraction(theta, phi)


def expected(law: Law, close: Callable[[Fraction, Fraction], bool]) -> float:
    """Return how likely two independent noises, less their means, are close."""
    listed = [(k - mean(law), chance) for k, chance in chances(law).items()]
    return sum(p * q for a, p in listed for r, q in listed if close(a, r))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("theta", "phi"), COUNTS)
def test_every_way_to_know_the_size_is_what_enumeration_finds(name: str, theta: int, phi: int) -> None:
    law = LAWS[name]
    part, whole, noise = np.array([theta]), np.array([phi]), ratios.values_of(law)
    other = ratios.sum_of([(noise, 1)])
    found = {
        "exact": ratios.exact(part, noise, TAU),
        "beside": ratios.beside(part, whole, law, TAU),
        "apart": ratios.apart(part, whole, noise, other, TAU),
        "summed": ratios.summed(part, whole, noise, other, TAU),
        "fitted": ratios.fitted(part, noise, HALF, other, TAU),
    }
    independent = expected(law, lambda a, r: is_close(theta + a, phi + r, theta, phi))
    wanted = {
        "exact": sum(p for k, p in chances(law).items() if abs(k - mean(law)) <= TAU * theta),
        "beside": independent,
        "apart": independent,
        "summed": expected(law, lambda a, r: is_close(theta + a, phi + a + r, theta, phi)),
        "fitted": expected(law, lambda a, r: abs((a - r) / 2) <= TAU * theta),
    }
    for way, chance in wanted.items():
        assert found[way][0] == pytest.approx(chance, abs=1e-12), way


@pytest.mark.parametrize("name", ["two-sided", "one-sided"])
def test_leaning_on_a_total_of_more_cells_is_what_enumeration_finds(name: str) -> None:
    law = TwoScale(Fraction(1, 4), Fraction(1, 4) if name == "two-sided" else Fraction(0))
    noise, centre = ratios.values_of(law), mean(law)
    listed = [(k - centre, chance) for k, chance in chances(law).items() if chance > 1e-12]
    for theta, phi in COUNTS:
        wanted = 0.0
        for a, p in listed:
            for r, q in listed:
                for o, chance in listed:
                    off = (a + r + o) / 3  # a group of two cells, and one cell beyond it
                    if is_close(theta + a - off, phi + a + r - 2 * off, theta, phi):
                        wanted += p * q * chance
        found = ratios.leaning(np.array([theta]), np.array([phi]), noise, noise, noise, (2, 3), TAU)
        assert found[0] == pytest.approx(wanted, abs=1e-10), (theta, phi)


@pytest.mark.parametrize("sides", ["both", "right", "left"])
def test_two_coordinates_of_a_cube_go_together(sides: str) -> None:
    law = Cube(HALF, 3, sides)  # type: ignore[arg-type]
    line = np.arange(-30, 31)
    weight = np.exp(law.log_weight(np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1)))
    both = weight.sum(axis=2) / weight.sum()
    assert np.abs(law.beside(line[:, None], line[None, :], line[None, :]) - both).max() < 1e-12
    ends = np.array([-2]), np.array([5])
    assert np.abs(law.beside(line, *ends) - both[:, 28:36].sum(axis=1)).max() < 1e-12
    centre = mean(law)
    for theta, phi in COUNTS[::3]:
        wanted = sum(
            both[i, j]
            for i, k in enumerate(line.tolist())
            for j, other in enumerate(line.tolist())
            if both[i, j] > 1e-15 and is_close(theta + k - centre, phi + other - centre, theta, phi)
        )
        assert tc.audit.closeness(theta, phi, None, 0.2, noise=law) == pytest.approx(wanted, abs=1e-11)


@pytest.mark.parametrize("sides", ["both", "right", "left"])
def test_a_cube_is_a_mixture_of_independent_coordinates(sides: str) -> None:
    law = Cube(HALF, 3, sides)  # type: ignore[arg-type]
    line = np.arange(-12, 13)
    wanted = law.beside(line[:, None], line[None, :], line[None, :])
    found = np.zeros_like(wanted)
    for chance, noise in ratios.mixture_of(law):
        one = noise.between(line, line)
        found += chance * one[:, None] * one[None, :]
    assert np.abs(found - wanted).max() < 1e-13


def test_of_many_radii_some_stand_for_all() -> None:
    many = list(ratios.mixture_of(Cube(Fraction(100), 4, "both")))
    assert len(many) == 512
    assert sum(chance for chance, _ in many) == pytest.approx(1)


def test_a_large_cube_has_pairs_too() -> None:
    law = Cube(Fraction(2000), 4000, "both")  # so many radii that they are integrated
    edge = np.array(law.radius().highest())
    k = np.array([0, 1_000_000, 7_000_000])
    assert law.beside(k, -edge, edge) == pytest.approx(law.pmf(k), rel=1e-7)


def test_many_values_approach_the_closed_form() -> None:
    whole = tc.audit.closeness(700, 1000, 50, 0.2, noise="two-sided")
    assert whole == pytest.approx(tc.audit.closeness(700, 1000, 50, 0.2), abs=1e-4)
    assert whole != tc.audit.closeness(700, 1000, 50, 0.2)


def test_sums_of_many_noises() -> None:
    law = LAWS["two-scale"]
    found = ratios.sum_of([(ratios.values_of(law), 3), (ratios.values_of(LAWS["left"]), 2)])
    parts = [np.array(list(chances(one).values())) for one in (law, law, law, LAWS["left"], LAWS["left"])]
    wanted, first = np.ones(1), 0
    for part, one in zip(parts, (law, law, law, LAWS["left"], LAWS["left"]), strict=True):
        wanted, first = np.convolve(wanted, part), first + min(chances(one))
    at = found.first - first
    assert np.abs(found.chances - wanted[at : at + len(found.chances)]).max() < 1e-13
    assert found.mean == pytest.approx(3 * law.mean() + 2 * LAWS["left"].mean())
    assert ratios.sum_of([]).chances.tolist() == [1.0]


def test_shares_that_do_not_fit_into_64_bits_are_rounded() -> None:
    odd = 0.2000000000000001
    found = tc.audit.closeness(700_001, 1_000_003, 50, odd, noise="two-sided")
    assert found == pytest.approx(tc.audit.closeness(700_001, 1_000_003, 50, odd), abs=1e-9)


def test_noise_with_too_many_values_is_refused() -> None:
    with pytest.raises(tc.PlanError, match="must have fewer than"):
        tc.audit.closeness(1, 2, 10**6, 0.2, noise="two-sided")


def test_noises_have_the_names_of_their_draws() -> None:
    by_name = {
        ("two-sided", 2): TwoScale(Fraction(2), Fraction(2)),
        ("discrete_laplace", 2): TwoScale(Fraction(2), Fraction(2)),
        ("geometric", 2): TwoScale(Fraction(2), Fraction(0)),
        ("two_scale", (2, 1)): TwoScale(Fraction(2), Fraction(1)),
        ("cube", 2): Cube(Fraction(2), 2, "both"),
    }
    for (name, scale), law in by_name.items():
        found = tc.audit.closeness([3, 4], [5, 5], scale, 0.2, noise=name)
        assert found.tolist() == tc.audit.closeness([3, 4], [5, 5], None, 0.2, noise=law).tolist()
    with pytest.raises(tc.PlanError, match="scale must be two numbers for two-scale noise"):
        tc.audit.closeness(3, 5, 2, 0.2, noise="two-scale")


def test_a_law_has_a_scale_of_its_own() -> None:
    with pytest.raises(tc.PlanError, match="scale must be None beside a law"):
        tc.audit.closeness(1, 2, 3, 0.2, noise=LAWS["two-sided"])
    with pytest.raises(tc.PlanError, match=r"noise must be .* or a law of noise, not a list"):
        tc.audit.closeness(1, 2, 3, 0.2, noise=[])  # type: ignore[arg-type]
