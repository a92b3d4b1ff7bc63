"""Shares of people in cells: how far they move, against brute force over all edges, and what they add up to."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from parameters import examples
from tacit.plan.measure.soft_cells import AxisCells, SoftCells
from tacit.plan.plans.zoom import Zoomed
from tacit.plan.sensitivity.steps import largest_step


@st.composite
def cut_axes(draw: st.DrawFn, domain: tc.Domain, *, ramps: bool | None = None) -> tuple[AxisCells, ...]:
    """Cut every axis of a domain at borders that leave room for a ramp."""
    found = []
    for name in domain:
        (axis,) = domain.axes_of(name)
        ramp = draw(st.integers(1, 1 if ramps is False else 6))
        borders, at = [], draw(st.integers(1, max(axis.size - 1, 1)))
        while at < axis.size:
            borders.append(at)
            at += draw(st.integers(ramp, ramp + 4))
        found.append(AxisCells(axis, tuple(borders), 0.0, 1.0, ramp))
    return tuple(found)


def moved(grid: SoftCells, policy: tc.Policy) -> tuple[int, int, int]:
    """Return the most that leaves cells, that comes to others and that one cell changes by, over all edges."""
    domain = policy.domain
    records = list(product(*(attribute.every_value() for attribute in domain.values())))
    adds = {record: grid.added_by(dict(zip(domain, record, strict=True)), domain) for record in records}
    picked = grid.where.compile(domain) if grid.where is not None else None
    for record in records:
        places = {name: domain[name].position(value) for name, value in zip(domain, record, strict=True)}
        if picked is not None and not picked.of_record(places):
            adds[record] = np.zeros_like(adds[record])
    worst = [0, 0, 0]
    for a, b in product(records, repeat=2):
        if a != b and policy.secrets.has_edge(domain, a, b):
            change = adds[b] - adds[a]
            sizes = -change[change < 0].sum(), change[change > 0].sum(), np.abs(change).max()
            worst = [max(old, int(new)) for old, new in zip(worst, sizes, strict=True)]
    return worst[0], worst[1], worst[2]


FAMILIES = {
    "everything": lambda: st.just(tc.secrets.everything()),
    "attributes": lambda: st.just(tc.secrets.attributes("x", "y")),
    "one attribute": lambda: st.just(tc.secrets.attributes("y")),
    "within l1": lambda: st.integers(1, 4).map(lambda theta: tc.secrets.within(theta, "x", "y")),
    "within l2": lambda: st.integers(1, 4).map(lambda theta: tc.secrets.within(theta, "x", "y", metric="l2")),
    "within linf": lambda: st.integers(1, 3).map(lambda theta: tc.secrets.within(theta, "x", "y", metric="linf")),
    "within one": lambda: st.integers(1, 5).map(lambda theta: tc.secrets.within(theta, "x")),
    "blocks": lambda: st.integers(1, 5).map(lambda width: tc.secrets.partition("x", width=width)),
    "values": lambda: st.integers(0, 4).map(lambda value: tc.secrets.values({"x": [value]})),
    "records": lambda: st.just(tc.secrets.records("x > 2")),
    "two": lambda: st.integers(1, 3).map(lambda t: tc.secrets.within(t, "x") | tc.secrets.partition("y", width=2)),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("family", FAMILIES)
@examples(36)
@given(data=st.data())
def test_the_step_is_never_below_what_all_edges_do(family: str, data: st.DataObject) -> None:
    sizes = data.draw(st.integers(5, 8)), data.draw(st.integers(1, 3))
    domain = tc.Domain({"x": tc.Integers(0, sizes[0] - 1), "y": tc.Integers(0, sizes[1] - 1)})
    policy = tc.Policy(domain, data.draw(FAMILIES[family]()))
    grid = SoftCells(("x", "y"), data.draw(cut_axes(domain)))
    step = largest_step(grid, policy)
    fall, rise, one = moved(grid, policy)
    assert step.l1 >= fall + rise
    assert step.down >= one * (fall > 0)
    assert step.up >= one * (rise > 0)
    if fall and rise:  # one shape of moves here: one profile covers them all
        assert any(f >= fall and r >= rise for f, r in step.profiles)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("family", FAMILIES)
@examples(36)
@given(data=st.data())
def test_the_step_of_cells_that_are_cut_is_never_below_what_all_edges_do(family: str, data: st.DataObject) -> None:
    domain = tc.Domain({"x": tc.Integers(0, data.draw(st.integers(5, 8))), "y": tc.Integers(0, 2)})
    policy = tc.Policy(domain, data.draw(FAMILIES[family]()))
    axes = data.draw(cut_axes(domain, ramps=False))
    cells = math.prod(one.many for one in axes)
    chosen = tuple(sorted(data.draw(st.sets(st.integers(0, cells - 1)))))
    grid = Zoomed(("x", "y"), axes, None, chosen, data.draw(st.integers(1, 3)))
    step, (fall, rise, one) = largest_step(grid, policy), moved(grid, policy)
    assert step.l1 >= fall + rise
    assert step.down >= one * (fall > 0)
    assert step.up >= one * (rise > 0)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("family", ["everything", "attributes", "within l1", "within linf", "blocks", "records"])
@examples(36)
@given(data=st.data())
def test_without_ramps_the_step_is_exactly_that(family: str, data: st.DataObject) -> None:
    domain = tc.Domain({"x": tc.Integers(0, 5), "y": tc.Integers(0, 2)})
    policy = tc.Policy(domain, data.draw(FAMILIES[family]()))
    grid = SoftCells(("x", "y"), data.draw(cut_axes(domain, ramps=False)))
    step, (fall, rise, _) = largest_step(grid, policy), moved(grid, policy)
    assert (step.l1, step.exact) == (fall + rise, True)


@examples(36)
@given(theta=st.integers(1, 9), ramp=st.integers(2, 7))
def test_on_one_axis_a_ramp_moves_by_theta_over_its_width_and_no_less(theta: int, ramp: int) -> None:
    domain = tc.Domain({"x": tc.Integers(0, 29)})
    (axis,) = domain.axes_of("x")
    grid = SoftCells(("x",), (AxisCells(axis, (10, 10 + ramp, 10 + 2 * ramp), 0.0, 1.0, ramp),))
    policy = tc.Policy(domain, tc.secrets.within(theta, "x"))
    share = min(theta / ramp, 1)
    found = sum(moved(grid, policy)[:2])
    assert largest_step(grid, policy).l1 == round(2 * share * grid.parts) >= found
    if ramp % 2:  # an even ramp begins between two positions, so that its whole width is never crossed
        assert found == round(2 * share * grid.parts)


def test_decimals_and_grids_are_as_far_apart_as_they_say() -> None:
    decimals = tc.Domain({"x": tc.Decimals(0, 2, step="0.1")})
    (axis,) = decimals.axes_of("x")
    grid = SoftCells(("x",), (AxisCells(axis, (8, 13), 0.0, 0.1, 5),))
    step = largest_step(grid, tc.Policy(decimals, tc.secrets.within(0.3, "x")))
    assert step.l1 == 2 * 3 * grid.parts // 5
    places = tc.Domain({"place": tc.Grid(6, 8)})
    cut = tuple(AxisCells(axis, (3,), 0.0, 1.0, 2) for axis in places.axes_of("place"))
    both = SoftCells(("place",), cut)
    assert largest_step(both, tc.Policy(places, tc.secrets.within(1, "place"))).l1 == both.parts
    policy = tc.Policy(places, tc.secrets.within(1, "place", metric="linf"))
    # three quarters of a person leave at most; between two positions no more than 9 of 16 parts do
    assert (largest_step(both, policy).l1, sum(moved(both, policy)[:2])) == (2 * 12, 2 * 9)


@examples(36)
@given(data=st.data())
def test_everybody_is_shared_out_whole_and_where_they_are(data: st.DataObject) -> None:
    domain = tc.Domain({"x": tc.Integers(0, 8), "y": tc.Integers(0, 5)})
    grid = SoftCells(("x", "y"), data.draw(cut_axes(domain)))
    table = np.array(data.draw(st.lists(st.integers(0, 3), min_size=54, max_size=54))).reshape(9, 6)
    found = grid.answers([table], domain)
    one_by_one = sum(int(table[x, y]) * grid.added_by({"x": x, "y": y}, domain) for x, y in product(range(9), range(6)))
    assert found.tolist() == one_by_one.tolist()
    assert found.sum() == table.sum() * grid.parts
    assert found.min() >= 0


def test_people_who_come_and_go_move_whole() -> None:
    domain = tc.Domain({"x": tc.Integers(0, 9)})
    (axis,) = domain.axes_of("x")
    grid = SoftCells(("x",), (AxisCells(axis, (5,), 0.0, 1.0, 4),))
    policy = tc.Policy(domain, tc.secrets.within(1, "x"), presence="secret")
    assert (largest_step(grid, policy).up, largest_step(grid, policy).l1) == (8, 8)
    half = SoftCells(("x",), grid.axes, tc.where("x < 5"))
    policy = tc.Policy(domain, tc.secrets.within(1, "x"))
    fall, rise, _ = moved(half, policy)
    step = largest_step(half, policy)
    assert step.l1 >= max(fall, rise) > 0
    assert math.isclose(largest_step(grid, policy).l1 * float(grid.unit(domain)), 0.5)
