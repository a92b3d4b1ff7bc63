"""Sums on grids: their changes against every edge, and least squares against dense matrices."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit as tc
from brute_force import edges_of
from parameters import examples
from tacit.plan.measure.grid_search import weighted_at
from tacit.plan.measure.regions import GridStrategy, Region, fit_of, model_of
from tacit.plan.measure.sums import GridSums
from tacit.plan.measure.workload import Asked, Moments, Prediction, rectangle_variances
from tacit.plan.plans.grid_plan import GridPlan
from tacit.plan.sensitivity.moves import grid_moves
from tacit.policy.policy import ABSENT

SECRETS = {
    "l1": lambda far, names: tc.secrets.within(far, *names),
    "l2": lambda far, names: tc.secrets.within(far, *names, metric="l2"),
    "linf": lambda far, names: tc.secrets.within(far, *names, metric="linf"),
    "everything": lambda far, names: tc.secrets.everything(),
    "one at a time": lambda far, names: tc.secrets.attributes(*names),
    "first alone": lambda far, names: tc.secrets.within(far, names[0]),
    "blocks": lambda far, names: tc.secrets.partition(names[0], width=[far + 1] * (3 - len(names))),
    "near or blocks": lambda far, names: tc.secrets.within(1, *names) | tc.secrets.attributes(names[0]),
}


@st.composite
def policies(draw, *, kinds=tuple(SECRETS), presence="public"):
    wide, high = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    if draw(st.booleans()):
        domain, names = tc.Domain({"place": tc.Grid(wide, high)}), ("place",)
    else:
        step = draw(st.integers(1, 2))
        domain = tc.Domain({"x": tc.Integers(0, wide - 1), "y": tc.Integers(0, step * (high - 1), step)})
        names = ("x", "y")
    secrets = SECRETS[draw(st.sampled_from(kinds))](min(draw(st.integers(1, 5)), wide), names)
    return tc.Policy(domain, secrets, presence=presence), names


@st.composite
def strategies(draw):
    first, second = draw(st.integers(2, 4)), draw(st.integers(2, 3))
    sides = draw(st.sampled_from([(1,), (1, first), (1, first, first * second)]))
    return GridStrategy(sides, (draw(st.integers(0, 4)), draw(st.integers(0, 4))))


def brute_force_loss(sums: GridSums, rates: list[Fraction], policy: tc.Policy) -> Fraction | float:
    """The largest sum of changes times rates along any edge; infinite where an exact number changes."""
    names = list(policy.domain)

    def added(record):
        if record is ABSENT:
            return np.zeros(sums.size(policy.domain), dtype=np.int64)
        return sums.added_by(dict(zip(names, record, strict=True)), policy.domain)

    ends = np.cumsum(sums.group_sizes())[:-1]
    worst: Fraction | float = Fraction(0)
    for hidden, cover in edges_of(policy):
        parts = np.split(np.abs(added(cover) - added(hidden)), ends)
        if sums.has_totals and parts[-1].any():
            return float("inf")
        moved = [int(part.sum()) for part in parts[: len(rates)]]
        worst = max(worst, sum((many * rate for many, rate in zip(moved, rates, strict=True)), Fraction(0)))
    return worst


@examples(600, 12)
@given(policies(), strategies(), st.lists(st.integers(1, 40), min_size=5, max_size=5))
def test_the_loss_is_epsilon_along_the_worst_edge(given_policy, strategy, weights) -> None:
    policy, names = given_policy
    moves, step = grid_moves(names, None, policy)
    assert (step.l1 == 0) == (not edges_of(policy))
    if step.l1 == 0:
        return
    epsilon = Fraction(3, 4)
    shares = np.array(weights[: strategy.groups], dtype=np.float64)
    weighted = weighted_at(strategy, shares, strategy.changes(moves), epsilon)
    sums = GridSums.of(names, strategy, moves, None)
    assert weighted.loss(moves) == epsilon
    worst = brute_force_loss(sums, list(weighted.rates), policy)
    assert worst <= epsilon
    if len(policy.secrets.families()) == 1:  # of several families the union of moves is a bound
        assert worst == epsilon


@examples(30)
@given(policies(presence="secret"), strategies(), st.lists(st.integers(1, 40), min_size=5, max_size=5))
def test_whoever_comes_or_leaves_costs_at_most_epsilon(given_policy, strategy, weights) -> None:
    policy, names = given_policy
    moves, _ = grid_moves(names, None, policy)
    assert moves.may_enter_or_leave
    assert not moves.has_totals
    shares = np.array(weights[: strategy.groups], dtype=np.float64)
    weighted = weighted_at(strategy, shares, strategy.changes(moves), Fraction(1))
    sums = GridSums.of(names, strategy, moves, None)
    assert brute_force_loss(sums, list(weighted.rates), policy) == 1


@settings(max_examples=6, deadline=None)
@given(policies(), st.sampled_from([None, "all", "listed"]), st.integers(1, 8))
def test_the_exact_audit_of_the_chosen_plan(given_policy, asked, quarter) -> None:
    policy, names = given_policy
    sizes = [axis.size for name in names for axis in policy.domain.axes_of(name)]
    step = 1 if len(names) == 1 else policy.domain["y"].number(min(1, sizes[1] - 1)) or 1
    listed = [[0, sizes[0] - 1, 0, 0], [0, 0, 0, step * (sizes[1] - 1)]]
    query = tc.rectangles(*names, listed if asked == "listed" else "all")
    found = tc.audit.exact(query, policy, Fraction(quarter, 4))
    assert found.keeps
    assert found.forward <= quarter / 4 + 1e-12


def test_too_little_noise_is_accused() -> None:
    """The planted mistake: ramps whose noise is made for moves of half the length."""
    policy = tc.Policy(tc.Domain({"place": tc.Grid(6, 6)}), tc.secrets.within(4, "place"))
    short = tc.Policy(policy.domain, tc.secrets.within(2, "place"))
    strategy = GridStrategy((1, 3), (2, 2))
    moves, _ = grid_moves(("place",), None, policy)
    wrong, _ = grid_moves(("place",), None, short)
    sums = GridSums.of(("place",), strategy, moves, None)
    right = weighted_at(strategy, np.ones(4), strategy.changes(moves), Fraction(1))
    leaky = weighted_at(strategy, np.ones(4), strategy.changes(wrong), Fraction(1))
    assert brute_force_loss(sums, list(right.rates), policy) == 1
    assert brute_force_loss(sums, list(leaky.rates), policy) == Fraction(8, 6)


@examples(36)
@given(policies())
def test_moves_are_those_of_edges_and_regions_are_never_left(given_policy) -> None:
    policy, names = given_policy
    moves, _ = grid_moves(names, None, policy)
    x_axis, y_axis = (axis for name in names for axis in policy.domain.axes_of(name))
    regions = [np.repeat(np.arange(len(part)), part) for part in moves.segments]
    assert [len(part) for part in regions] == [x_axis.size, y_axis.size]
    seen = set()
    for hidden, cover in edges_of(policy):
        (ax, ay), (bx, by) = (places(policy, end) for end in (hidden, cover))
        assert regions[0][ax] == regions[0][bx]
        assert regions[1][ay] == regions[1][by]
        seen.add((abs(ax - bx), abs(ay - by)))
    for dx, dy in seen:
        assert any(dx <= far_x and dy <= far_y for far_x, far_y in moves.pairs)
    if len(policy.secrets.families()) == 1:
        assert all(pair in seen for pair in moves.pairs)


def places(policy, record) -> tuple[int, int]:
    if len(record) == 1:
        return tuple(record[0])
    return tuple(policy.domain[name].position(value) for name, value in zip(policy.domain, record, strict=True))


# ---- least squares --------------------------------------------------------------------------------------------------


@st.composite
def regions(draw):
    strategy = draw(strategies())
    shape = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    region = strategy.region(shape, has_total=draw(st.booleans()))
    noise = draw(st.lists(st.sampled_from([0.25, 1.0, 3.0, 40.0]), min_size=strategy.groups, max_size=strategy.groups))
    return region, tuple(noise)


def inside_of(region: Region) -> np.ndarray:
    """Which cells are those of the region, and not empty ones that fill it up."""
    whole = np.zeros(region.padded)
    whole[: region.width, : region.height] = 1
    return whole.reshape(-1)


def dense(region: Region, noise: tuple[float, ...]) -> tuple[list[np.ndarray], np.ndarray]:
    """What is measured of the region with its empty cells, as matrices, and the covariance of all cells after it."""
    px, py = region.padded
    unit = np.eye(px * py).reshape(-1, px, py)
    rows = [
        unit.reshape(-1, px // wide, wide, py // high, high).sum(axis=(2, 4)).reshape(px * py, -1).T
        for wide, high in region.sides
    ]
    rows += [(unit.sum(axis=2 - axis) @ region.ramp_rows(axis).T).T for axis in (0, 1) if region.ramps[axis]]
    covariance = np.linalg.inv(sum(part.T @ part / variance for part, variance in zip(rows, noise, strict=True)))
    if region.has_total:
        inside = inside_of(region)
        total = covariance @ inside
        covariance = covariance - np.outer(total, total) / (inside @ total)
    return rows, covariance


@examples(36)
@given(regions(), st.integers(0, 10**6))
def test_least_squares_are_those_of_dense_matrices(given_region, seed) -> None:
    region, noise = given_region
    rows, covariance = dense(region, noise)
    px, py = region.padded
    ranges = [[(a, b) for a in range(size) for b in range(a, size)] for size in (region.width, region.height)]
    ends = np.array([(*x, *y) for x, y in product(*ranges)])
    inside = np.zeros((len(ends), px, py))
    for one, (a, b, c, d) in zip(inside, ends, strict=True):
        one[a : b + 1, c : d + 1] = 1
    flat = inside.reshape(len(ends), -1)
    expected = np.einsum("ni,ij,nj->n", flat, covariance, flat)
    assert fit_of(region, noise).variance(*ends.T) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    both = [Moments.of_runs("ranges", [0], size, size) for size in (region.width, region.height)]
    listed = Asked.of_listed(model_of(region), tuple(ends.T), np.full(len(ends), 1 / len(ends)))
    for asked in (Asked.of_all(model_of(region), *both), listed):
        mean = Prediction(model_of(region), asked).variance(np.array(noise))
        assert mean == pytest.approx(expected.mean(), rel=1e-8, abs=1e-8)
    # the estimates: whole numbers that stand in for noisy ones, the same for both
    cells = np.random.default_rng(seed).integers(0, 50, (2, region.width, region.height))
    sums = [part.astype(np.float64) for part in region.sums(cells)]
    noisy = [np.floor(part * 1.1) + index for index, part in enumerate(sums[: len(noise)])]
    found = fit_of(region, noise).cells([*noisy, *sums[len(noise) :]])
    precision = sum(part.T @ part / variance for part, variance in zip(rows, noise, strict=True))
    pulled = sum(
        part.reshape(2, -1) @ matrix / variance for part, matrix, variance in zip(noisy, rows, noise, strict=True)
    )
    solved = np.linalg.solve(precision, pulled.T).T
    if region.has_total:
        whole = inside_of(region)
        share = np.linalg.solve(precision, whole)
        solved += np.outer(sums[-1] - solved @ whole, share / (whole @ share))
    assert found == pytest.approx(solved.reshape(2, px, py)[:, : region.width, : region.height], rel=1e-6, abs=1e-6)


@settings(max_examples=6, deadline=None)
@given(policies())
def test_the_predicted_error_is_the_mean_over_all_rectangles(given_policy) -> None:
    policy, names = given_policy
    plan = tc.explain(tc.rectangles(*names, "all"), policy, Fraction(1, 2)).plan
    assert isinstance(plan, GridPlan)
    x, y = plan.workload.sizes
    ends = np.array([(a, b, c, d) for a in range(x) for b in range(a, x) for c in range(y) for d in range(c, y)])
    assert plan.variance == pytest.approx(plan.variances(ends).mean(), rel=1e-6, abs=1e-6)
    assert plan.variance == min(plan.tried.values())


def test_regions_add_up() -> None:
    """Of a rectangle over several blocks with exact totals, only those that it cuts have noise."""
    policy = tc.Policy(tc.Domain({"place": tc.Grid(8, 7)}), tc.secrets.partition("place", width=[3, 2]))
    moves, _ = grid_moves(("place",), None, policy)
    assert moves.segments == ((3, 3, 2), (2, 2, 2, 1))
    ends = np.array([[0, 5, 2, 3], [0, 2, 0, 0], [1, 6, 0, 1], [1, 6, 0, 6]])
    found = rectangle_variances(GridStrategy(), (1.0,), moves, ends)
    # k of n cells of a block: k (1 - k/n); the rows that are cut have 4 of 6 cells, then 2 of 4
    assert found == pytest.approx(
        [0.0, 3 * (1 - 3 / 6), 4 * (1 - 4 / 6) + 2 * (1 - 2 / 4), 3 * (4 / 3 + 1) + 2 / 3 + 1 / 2]
    )


@pytest.mark.one_in(16)
@pytest.mark.parametrize("presence", ["public", "secret"])
@pytest.mark.parametrize("where", [None, "x < 3", "s"])
@pytest.mark.parametrize(
    "secrets",
    [
        tc.secrets.within(2, "x", "y"),
        tc.secrets.attributes("s", "x"),
        tc.secrets.partition("x", width=2) | tc.secrets.attributes("s"),
        tc.secrets.values({"x": [0]}),
        tc.secrets.records("x == 1"),
        tc.secrets.pairs([((0, 0, False), (3, 2, True))]),
    ],
    ids=lambda secrets: type(secrets).__name__,
)
def test_every_family_and_every_condition_keeps_epsilon(secrets, where, presence) -> None:
    domain = tc.Domain({"x": tc.Integers(0, 4), "y": tc.Integers(0, 2), "s": tc.Flag()})
    policy = tc.Policy(domain, secrets, presence=presence)
    for asked in ("all", [[0, 2, 0, 1], [1, 3, 1, 2]]):
        found = tc.audit.exact(tc.rectangles("x", "y", asked, where=where), policy, 1)
        assert found.keeps
        assert found.forward.high <= 1 + 1e-9
