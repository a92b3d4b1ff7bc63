"""The loss that a plan promises is the worst log ratio of the noise, found by enumeration."""

from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parameters import examples
from tacit.noise.cube import Cube
from tacit.noise.two_scale import TwoScale

SCALES = st.fractions(min_value="1/2", max_value=20, max_denominator=30)


def worst_log_ratio(hidden, cover):
    """The largest log hidden/cover over all outputs that hidden can make; inf if cover cannot make one of them."""
    possible = hidden > -inf
    with np.errstate(invalid="ignore"):
        return np.max((hidden - cover)[possible])


def log_pmf(law, z):
    with np.errstate(divide="ignore"):
        return np.log(law.pmf(z))


@examples(60)
@given(right=SCALES, left=SCALES, height=st.integers(1, 6))
def test_a_fall_costs_its_height_over_right_and_a_rise_over_left(right, left, height):
    law, z = TwoScale(right, left), np.arange(-40, 41)
    fall = worst_log_ratio(log_pmf(law, z), log_pmf(law, z + height))  # q(cover) = q(hidden) - height
    rise = worst_log_ratio(log_pmf(law, z), log_pmf(law, z - height))
    assert law.loss(-height) == height / right
    assert law.loss(height) == height / left
    assert fall == pytest.approx(float(height / right), rel=1e-9)
    assert rise == pytest.approx(float(height / left), rel=1e-9)


@pytest.mark.parametrize(
    ("law", "free", "ruinous"),
    [(TwoScale(Fraction(3), Fraction(0)), -2, 1), (TwoScale(Fraction(0), Fraction(3)), 2, -1)],
)
def test_one_sided_noise_protects_one_direction_only(law, free, ruinous):
    z = np.arange(-60, 61)
    assert law.loss(free) == Fraction(2, 3)
    assert worst_log_ratio(log_pmf(law, z), log_pmf(law, z - free)) == pytest.approx(2 / 3, rel=1e-9)
    assert law.loss(ruinous) == inf
    assert worst_log_ratio(log_pmf(law, z), log_pmf(law, z - ruinous)) == inf
    assert law.loss(0) == 0


GRID = np.array(list(product(range(-12, 13), repeat=2)))


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(15, 2)])
@pytest.mark.parametrize(
    ("sides", "steps"),
    [
        ("right", [(-a, -b) for a, b in product((0, 1), repeat=2)]),
        ("left", list(product((0, 1), repeat=2))),
        ("both", list(product((-1, 0, 1), repeat=2))),
    ],
)
def test_a_cube_costs_one_over_scale_along_every_step(scale, sides, steps):
    law = Cube(scale, 2, sides)
    hidden = law.log_weight(GRID)
    for step in steps:
        found = worst_log_ratio(hidden, law.log_weight(GRID - np.array(step)))
        expected = 0 if step == (0, 0) else 1 / scale
        assert law.loss(step) == expected
        # The grid holds whole numbers over one scale: the ratio is right to the last digits of a float.
        assert found == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("sides", "step"), [("right", (1, -1)), ("right", (0, 1)), ("left", (-1, 1))])
def test_a_one_sided_cube_protects_no_step_the_other_way(sides, step):
    law = Cube(Fraction(2), 2, sides)
    assert law.loss(step) == inf
    assert worst_log_ratio(law.log_weight(GRID), law.log_weight(GRID - np.array(step))) == inf


@examples(40)
@given(step=st.tuples(*[st.integers(-3, 3)] * 2), scale=SCALES)
def test_a_cube_pays_for_the_largest_part_of_a_step(step, scale):
    law = Cube(scale, 2, "both")
    found = worst_log_ratio(law.log_weight(GRID), law.log_weight(GRID - np.array(step)))
    assert found == pytest.approx(float(law.loss(step)), rel=1e-12, abs=1e-12)
