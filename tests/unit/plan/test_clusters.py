"""Clusters: what is asked and refused, which cells are counted, and what follows from the counts."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import noise
from tacit.plan.choose import choose
from tacit.plan.measure.cluster_grids import grid_of, grids
from tacit.plan.plans.kmeans import FEW_POINTS, centres_of, nearest, spread_around
from tacit.plan.questions.clusters import ClustersPlan
from tacit.release.results.derived import ClustersRecord

PLANE = tc.Domain({"x": tc.Integers(0, 99), "y": tc.Integers(0, 99), "sex": tc.Categories(["f", "m"])})
TOWNS = np.array([[20, 30], [75, 25], [50, 80]])


def three_towns(people: int = 900) -> pd.DataFrame:
    turn = np.arange(people)
    far = np.sqrt(turn / people)[:, np.newaxis] * 12
    places = np.rint(TOWNS[turn % 3] + far * np.stack([np.cos(2.4 * turn), np.sin(2.4 * turn)], axis=1))
    return pd.DataFrame(
        {"x": places[:, 0].astype(int), "y": places[:, 1].astype(int), "sex": ["f", "m"] * (people // 2)}
    )


def released(secrets: Any, query: Any, epsilon: Any = 1, rows: Any = None, **policy: Any) -> ClustersRecord:
    rows = three_towns() if rows is None else rows
    made = tc.Policy(policy.pop("domain", PLANE), secrets, policy.pop("known", [tc.known.size(len(rows))]), **policy)
    with noise.replayed(noise.Keystream(key=bytes(range(32)))):
        found = tc.Session(made, rows, budget=10).release(query, epsilon)
    assert isinstance(found, ClustersRecord)
    return found


@cache
def of_towns() -> ClustersRecord:
    return released(tc.secrets.everything(), tc.clusters("x", "y", k=3))


def planned(secrets: Any, k: int = 3, epsilon: Any = 1, people: int | None = 900) -> ClustersPlan:
    known = [] if people is None else [tc.known.size(people)]
    plan = choose(tc.clusters("x", "y", k=k), tc.Policy(PLANE, secrets, known), epsilon)
    assert isinstance(plan, ClustersPlan)
    return plan


def misses(found: ClustersRecord) -> float:
    """Return how far the farthest town is from its nearest centre."""
    return max(float(np.hypot(*(found.centres - town).T).min()) for town in TOWNS)


# ---- asked and refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "key", "rule", "fix"),
    [
        (lambda: tc.clusters(k=3), "clusters", "must name an attribute", "For instance"),
        (lambda: tc.clusters("x", k=0), "clusters.k", "must be a whole number from 1", "For instance k=4"),
        (lambda: tc.clusters("x", k=-2), "clusters.k", "must be a whole number from 1", "For instance k=4"),
        (lambda: tc.clusters("x", k=True), "clusters.k", "must be a whole number from 1", "For instance k=4"),
        (lambda: tc.clusters("x", k=2.5), "clusters.k", "must be a whole number from 1", "For instance k=4"),
        (lambda: tc.clusters("x", k=1001), "clusters.k", "to 1,000", "For instance k=4"),
        (lambda: tc.clusters(["x", "y"], k=3), "clusters", "one by one", "Write clusters('x', 'y')."),
        (lambda: tc.clusters("x", "x", k=3), "clusters", "must name different attributes", "Remove one."),
        (lambda: tc.clusters("sex", k=2), "clusters", "integers, decimals or a grid", "histogram"),
        (lambda: tc.clusters("z", k=2), "clusters", "must be", ""),
        (lambda: tc.clusters("x", k=101), "clusters.k", "must be at most 100, the number of different", "Lower it."),
        (lambda: tc.clusters("x", k=2, where="z < 3"), "", "must", ""),
    ],
)
def test_what_cannot_be_asked_is_refused(ask: Any, key: str, rule: str, fix: str) -> None:
    with pytest.raises(tc.PlanError) as refusal:
        choose(ask(), tc.Policy(PLANE, tc.secrets.everything()), 1)
    assert key in str(refusal.value)
    assert rule in str(refusal.value)
    assert fix in str(refusal.value)


def test_dates_have_no_distance_in_numbers() -> None:
    domain = tc.Domain({"day": tc.Dates("2024-01-01", "2024-02-01")})
    with pytest.raises(tc.PlanError, match="integers, decimals or a grid"):
        choose(tc.clusters("day", k=2), tc.Policy(domain, tc.secrets.everything()), 1)


def test_a_domain_with_too_many_places_is_refused() -> None:
    domain = tc.Domain({name: tc.Integers(0, 999) for name in "abc"})
    with pytest.raises(tc.PlanError, match="more than 50,000,000"):
        choose(tc.clusters("a", "b", "c", k=2), tc.Policy(domain, tc.secrets.everything()), 1)


# ---- which cells ----------------------------------------------------------------------------------------------------


def test_a_distance_well_below_the_width_of_a_cell_has_ramps_and_less_noise() -> None:
    plain, near = planned(tc.secrets.everything(), epsilon=0.2), planned(tc.secrets.within(1, "x", "y"), epsilon=0.2)
    assert {one.ramp for one in grid_of(plain.parts[0]).axes} == {1}
    assert min(one.ramp for one in grid_of(near.parts[0]).axes) > 1
    assert near.rmse < 0.7 * plain.rmse


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "secrets",
    [
        tc.secrets.within(1, "x", "y"),
        tc.secrets.within(30, "x", "y"),
        tc.secrets.attributes("x", "y"),
        tc.secrets.partition("x", width=25) | tc.secrets.partition("y", width=25),
        tc.secrets.values({"x": [1]}),
        tc.secrets.records("x > 50"),
        tc.secrets.pairs([({"x": 1}, {"x": 2})]),
    ],
)
@pytest.mark.parametrize("epsilon", [0.2])
def test_no_policy_is_expected_to_lose_more_than_plain_differential_privacy(secrets: Any, epsilon: float) -> None:
    said = tc.explain(planned(secrets, epsilon=epsilon))
    assert said.plan.rmse <= said.plain.rmse
    assert said.plain.known_people == 900


def test_cells_are_narrower_where_more_people_are_known() -> None:
    few, many = (planned(tc.secrets.everything(), people=people) for people in (300, 300_000))
    assert grid_of(few.parts[0]).shape < grid_of(many.parts[0]).shape
    nobody_said, thousand = (planned(tc.secrets.everything(), people=people) for people in (None, 1000))
    assert (nobody_said.strategy, nobody_said.rmse) == (thousand.strategy, thousand.rmse)


def test_cells_that_no_edge_leaves_are_exact() -> None:
    blocks = tc.secrets.partition("x", width=4) | tc.secrets.partition("y", width=5)
    found = released(blocks, tc.clusters("x", "y", k=3), "1/100")
    assert found.plan.strategy == "through 25 x 20 cells"
    assert found.plan.is_exact
    assert misses(found) < 0.5
    lower, upper = found.interval()
    assert lower.tolist() == found.sizes.tolist() == upper.tolist() == [300, 300, 300]
    assert found.plan.rmse > 0  # cells are coarse, noise or not


def test_everything_that_is_tried_has_room_for_all_centres() -> None:
    for k in (1, 3, 40):
        policy = tc.Policy(PLANE, tc.secrets.within(3, "x", "y"))
        shapes = [grid.shape for grid in grids(("x", "y"), None, k, policy)]
        assert min(math.prod(shape) for shape in shapes) >= min(4 * k, 10_000)
        assert max(math.prod(shape) for shape in shapes) == 10_000


def test_parts_cost_epsilon_together_and_people_nothing_where_they_are_public() -> None:
    public = planned(tc.secrets.everything())
    assert [part.epsilon for part in public.parts] == [1, 0]
    hidden = choose(tc.clusters("x", k=2), tc.Policy(PLANE, tc.secrets.within(3, "x"), presence="secret"), 1)
    assert sum(part.epsilon for part in hidden.parts) == 1
    assert min(part.epsilon for part in hidden.parts) > 0


# ---- what comes out -------------------------------------------------------------------------------------------------


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("secrets", "most"),
    [(tc.secrets.everything(), 4), (tc.secrets.within(2, "x", "y"), 2), (tc.secrets.attributes("x"), 4)],
)
def test_centres_lie_at_the_towns(secrets: Any, most: float) -> None:
    found = released(secrets, tc.clusters("x", "y", k=3))
    assert misses(found) < most
    assert found.centres.shape == (3, 2)
    people = three_towns()[["x", "y"]].to_numpy(dtype=float)
    assert np.bincount(found.predict(people)).tolist() == pytest.approx([300] * 3, abs=20)
    assert found.sizes.sum() == pytest.approx(900)
    assert sorted(found.sizes, reverse=True) == found.sizes.tolist()
    lower, upper = found.interval()
    assert (lower <= found.sizes).all()
    assert (found.sizes <= upper).all()


def test_the_objective_is_about_that_of_the_people() -> None:
    people = three_towns(30_000)
    for secrets in (tc.secrets.everything(), tc.secrets.within(1, "x", "y")):
        found = released(secrets, tc.clusters("x", "y", k=3), "1/3", people)
        points = people[["x", "y"]].to_numpy(dtype=float)
        true = spread_around(points, np.ones(30_000), found.centres) / 30_000
        assert found.objective == pytest.approx(true, rel=0.15)


def test_the_same_numbers_give_the_same_centres() -> None:
    first, again = of_towns(), released(tc.secrets.everything(), tc.clusters("x", "y", k=3))
    assert first.centres.tolist() == again.centres.tolist()
    assert first.sizes.tolist() == again.sizes.tolist()


def test_the_frame_has_a_row_for_each_cluster() -> None:
    found = released(tc.secrets.everything(), tc.clusters("y", "x", k=3))
    assert found.frame.columns.tolist() == ["cluster", "y", "x", "value", "lower", "upper"]
    assert found.frame["cluster"].tolist() == [1, 2, 3]
    assert found.frame["y"].to_numpy() == pytest.approx(found.centres[:, 0], abs=0.2)
    assert found.certificate["query"] == {"clusters": {"attributes": ["y", "x"], "k": 3}}


def test_an_attribute_may_be_called_cluster() -> None:
    domain = tc.Domain({"cluster": tc.Integers(0, 9)})
    rows = pd.DataFrame({"cluster": [1, 2, 8, 9]})
    found = released(tc.secrets.everything(), tc.clusters("cluster", k=2), 10, rows, domain=domain)
    assert found.frame.columns.tolist() == ["cluster number", "cluster", "value", "lower", "upper"]


def test_decimals_and_places_keep_their_numbers() -> None:
    domain = tc.Domain({"fever": tc.Decimals(35, 42, step="0.1")})
    rows = pd.DataFrame({"fever": [36.5, 36.6, 36.7] * 200 + [39.9, 40.0, 40.1] * 200})
    found = released(tc.secrets.everything(), tc.clusters("fever", k=2), 2, rows, domain=domain)
    assert sorted(found.centres[:, 0]) == pytest.approx([36.6, 40.0], abs=0.2)
    assert found.predict([36.0, 41.5]).tolist() == found.predict([[36.0], [41.5]]).tolist()
    assert set(found.predict([36.0, 41.5])) == {0, 1}
    grid = tc.Grid(40, 30, of=("lat", "lon"), low=(30, -125), high=(50, -110))
    rows = pd.DataFrame({"lat": [34.05, 47.6] * 500, "lon": [-118.25, -122.3] * 500})
    found = released(
        tc.secrets.within(2, "place"), tc.clusters("place", k=2), 2, rows, domain=tc.Domain({"place": grid})
    )
    assert found.frame.columns.tolist()[1:3] == ["lat", "lon"]
    order = np.argsort(found.centres[:, 0])
    assert found.centres[order] == pytest.approx(np.array([[34.05, -118.25], [47.6, -122.3]]), abs=1)


def test_only_those_are_looked_at_whom_a_predicate_picks() -> None:
    rows = three_towns()
    rows["sex"] = np.where(rows["x"] < 35, "f", "m")
    found = released(tc.secrets.within(2, "x", "y"), tc.clusters("x", "y", k=1, where="sex == 'f'"), 1, rows)
    assert found.centres[0] == pytest.approx(TOWNS[0], abs=3)
    assert found.sizes[0] == pytest.approx(300, abs=20)


def test_nobody_has_no_objective_and_still_has_centres() -> None:
    rows = three_towns().iloc[:0]
    found = released(tc.secrets.everything(), tc.clusters("x", "y", k=3), rows=rows, known=())
    assert found.sizes.tolist() == [0, 0, 0]
    assert math.isnan(found.objective)
    assert np.isfinite(found.centres).all()


def test_secret_presence_and_knowledge_are_kept() -> None:
    found = released(tc.secrets.within(2, "x", "y"), tc.clusters("x", "y", k=3), 2, known=(), presence="secret")
    assert misses(found) < 6
    cells = found.plan.parts[0]
    assert cells.step.l1 == grid_of(cells).parts  # somebody who leaves takes all parts along
    known = tc.Policy(PLANE, tc.secrets.attributes("x"), [tc.known.count("x < 50")])
    assert choose(tc.clusters("x", k=2), known, 1).parts[0].step.l1 == 4


@pytest.mark.parametrize(
    "points", [[1, 2], [[1, 2, 3]], [[1, "a"]], [[1, math.nan]], "far", None, [[[1, 2]]], {"x": 1}]
)
def test_what_is_no_table_of_points_is_refused_without_a_word_of_it(points: Any) -> None:
    found = of_towns()
    with pytest.raises(tc.PlanError, match="must be a table of finite numbers with 2 columns") as refusal:
        found.predict(points)
    assert "in the order of x, y" in str(refusal.value)


def test_a_release_cannot_be_written_to() -> None:
    found = of_towns()
    for array in (found.centres, found.sizes, found.own):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("names", [("x",), ("x", "y"), ("x", "y", "z")])
def test_every_number_of_attributes_is_drawn(names: tuple[str, ...]) -> None:
    domain = tc.Domain({name: tc.Integers(0, 19) for name in "xyz"})
    rows = pd.DataFrame({name: np.arange(200) % 20 for name in "xyz"})
    found = released(tc.secrets.everything(), tc.clusters(*names, k=2), rows=rows, domain=domain)
    drawn = found.chart().to_dict()
    assert "2 clusters of x" in " ".join(drawn["title"]["text"])


# ---- k-means on released numbers ------------------------------------------------------------------------------------


def test_centres_are_as_good_as_the_best_of_many_starts() -> None:
    points, one_each = three_towns()[["x", "y"]].to_numpy(dtype=float), np.ones(900)
    towns = np.array([points[nearest(points, TOWNS * 1.0) == town].mean(axis=0) for town in range(3)])
    found = centres_of(points, one_each, 3)
    assert spread_around(points, one_each, found) <= 1.001 * spread_around(points, one_each, towns)


def test_weights_count_like_people() -> None:
    places, people = np.unique(three_towns()[["x", "y"]].to_numpy(dtype=float), axis=0, return_counts=True)
    each = centres_of(np.repeat(places, people, axis=0), np.ones(900), 3)
    assert centres_of(places, people.astype(float), 3) == pytest.approx(each, abs=0.5)


def test_many_points_are_thinned_out_first_and_looked_at_all_in_the_end() -> None:
    side = 2 * int(FEW_POINTS**0.5)
    points = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2).astype(float)
    weights = np.where(np.hypot(*(points - [40, 40]).T) < 20, 1.0, 0.0) + np.where(points.min(axis=1) > 150, 1.0, 1e-9)
    found = centres_of(points, weights, 2)
    assert sorted(found[:, 0]) == pytest.approx([40, 175], abs=1)


def test_fewer_points_than_centres_are_enough() -> None:
    points = np.arange(5.0)[:, np.newaxis]
    assert centres_of(points, np.array([0, 0, 1.0, 0, 0]), 3).shape == (3, 1)
    assert nearest(points, np.array([[0.0], [4.0]])).tolist() == [0, 0, 0, 1, 1]
