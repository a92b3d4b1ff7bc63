"""Clusters: what privacy adds to the k-means objective, beside the valid Laplace k-means and plain DP.

Every number is (objective / objective without privacy) - 1, the mean over repeated releases: places of 193,563 tweets
on a grid of 400 x 300 cells, 1% of the pixels of Skin Segmentation (three colours from 0 to 255), and 1,000 made-up
points in four dimensions; k = 4. Without a folder of data sets (see `tacit reproduce`), the first two are made up.

The baseline is the published mechanism with its sensitivity as it is: ten rounds of noisy sizes and sums, where an edge
across a border moves two sums by whole points. It is kind to the baseline: edges are sampled, so that its noise is
rather too small, and of sums around the middle or around the centres the better ones are taken.

A second table is about people who crowd in a small part of the range, and about some who do not: objective / objective
without privacy, from one count of cells planned for the declared number of people (1,000 where none is declared), with
the nearest weights of all cells at once, and as it is done now: people first, then a look, then finer cells where
people are. Sets that are not in the folder are skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd

import tacit as tc
from tacit.plan.choose import choose
from tacit.plan.measure.cluster_grids import grid_of
from tacit.plan.measure.soft_cells import of_totals
from tacit.plan.plans.kmeans import centres_of, nearest, spread_around
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import measure, true_answers
from tacit.release.session import open_for
from tacit_reproductions.data import data_folder

K: Final = 4
ROUNDS: Final = 10
EPSILONS: Final = (0.1, 0.3, 1.0)
SAMPLED_EDGES: Final = 20_000


class Points:
    """People at whole positions of a box, with the thetas that the paper tries (None: everything is secret)."""

    def __init__(self, name: str, points: Any, sizes: tuple[int, ...], thetas: tuple[int | None, ...]) -> None:
        self.name, self.sizes, self.thetas = name, sizes, thetas
        self.columns = [f"x{number}" for number in range(len(sizes))]
        self.points = np.asarray(points, dtype=np.float64)
        self.rows = pd.DataFrame(self.points.astype(np.int64), columns=self.columns)
        self.domain = tc.Domain(
            {name: tc.Integers(0, size - 1) for name, size in zip(self.columns, sizes, strict=True)}
        )
        places, people = np.unique(self.points, axis=0, return_counts=True)
        self.places, self.people = places, people.astype(np.float64)
        self.best = self.best_of(K)

    def best_of(self, k: int) -> float:
        return self.objective(centres_of(self.places, self.people, k))

    def objective(self, centres: Any) -> float:
        return spread_around(self.places, self.people, np.asarray(centres))

    def policy(self, secrets: Any) -> tc.Policy:
        return tc.Policy(self.domain, secrets, [tc.known.size(len(self.rows))])

    def within(self, theta: int | None) -> tc.Policy:
        return self.policy(tc.secrets.everything() if theta is None else tc.secrets.within(theta, *self.columns))


def released(points: Points, policy: tc.Policy, epsilon: float, repeats: int, k: int = K) -> tuple[float, str]:
    """Return what our releases add, on average, and through which cells."""
    session = tc.Session(policy, points.rows, budget=repeats * epsilon)
    plan = session.plan(tc.clusters(*points.columns, k=k), epsilon=epsilon)
    records: list[Any] = [reserved.make() for reserved in session.reserve([plan] * repeats)]
    added = np.mean([points.objective(record.centres) for record in records]) / points.best_of(k) - 1
    return float(added), plan.strategy.removeprefix("through ")


def in_one_count(points: Points, policy: tc.Policy, epsilon: float, repeats: int, k: int) -> float:
    """Return what one count of the cells that are planned adds, with the nearest weights of all cells at once."""
    plan: Any = choose(tc.clusters(*points.columns, k=k), policy, epsilon)
    rows = open_for(policy, points.rows)
    truths = [true_answers(part.base, rows, policy) for part in plan.parts]
    at, added = grid_of(plan.parts[0]).points(), []
    for _ in range(repeats):
        cells, people = (infer(measure(part, truth)) for part, truth in zip(plan.parts, truths, strict=True))
        weights = of_totals(cells.values[np.newaxis], people.values)[0]
        added.append(points.objective(centres_of(at, weights, k)))
    return float(np.mean(added)) / points.best_of(k) - 1


def laplace(points: Points, theta: int | None, epsilon: float, repeats: int, random: Any) -> float:
    """Return what the published mechanism adds, on average, with the sensitivity that it has."""
    top = np.array(points.sizes) - 1.0
    middle, each = top / 2, epsilon / ROUNDS / 2
    places, people = points.places, points.people
    added = []
    for _ in range(repeats):
        centres = random.random((K, len(top))) * top
        for _ in range(ROUNDS):
            own = nearest(places, centres)
            step, origin = (top.sum(), middle) if theta is None else sensitivity(centres, theta, top, random)
            around = np.broadcast_to(origin, centres.shape)
            sums = np.stack(
                [np.bincount(own, people * (places - around[own])[:, axis], K) for axis in range(len(top))], axis=1
            )
            sums += random.laplace(0, step / each, sums.shape)
            sizes = np.maximum(np.bincount(own, people, K) + random.laplace(0, 2 / each, K), 1)
            centres = np.clip(around + sums / sizes[:, np.newaxis], 0, top)
        added.append(points.objective(centres) / points.best - 1)
    return float(np.mean(added))


def sensitivity(centres: Any, theta: int, top: Any, random: Any) -> tuple[float, Any]:
    """Return how far an edge moves the sums around the middle, or around the centres: the smaller, over sampled edges.

    An edge inside of a cluster moves a sum by theta; one across a border takes a whole point out of one sum, and puts
    another into the next.
    """
    start, end = (random.random((SAMPLED_EDGES, len(top))) * top for _ in range(2))
    here, there = nearest(start, centres), nearest(end, centres)
    across = here != there
    start, end, here = start[across], end[across], here[across]
    if not len(start):
        return float(theta), centres
    low, high = np.zeros(len(start)), np.ones(len(start))
    for _ in range(12):  # where the way from one to the other crosses a border
        halfway = (low + high) / 2
        stays = nearest(start + (end - start) * halfway[:, np.newaxis], centres) == here
        low, high = np.where(stays, halfway, low), np.where(stays, high, halfway)
    reach = theta / np.maximum(np.abs(end - start).sum(axis=1), 1e-9)
    worst = [float(theta), float(theta)]
    for before in (0.0, 0.5, 1.0):
        first = np.maximum(low - before * reach, 0)
        last = np.maximum(np.minimum(first + reach, 1), high)
        a, b = (start + (end - start) * at[:, np.newaxis] for at in (first, last))
        from_cluster, to_cluster = nearest(a, centres), nearest(b, centres)
        apart = from_cluster != to_cluster
        for kind, origins in enumerate((np.broadcast_to(top / 2, centres.shape), centres)):
            moved = np.abs(a - origins[from_cluster]).sum(axis=1) + np.abs(b - origins[to_cluster]).sum(axis=1)
            worst[kind] = max(worst[kind], float(moved[apart].max(initial=0.0)))
    return (worst[0], top / 2) if worst[0] <= worst[1] else (worst[1], centres)


# ---- data -----------------------------------------------------------------------------------------------------------


def made_up(sizes: tuple[int, ...], people: int, clusters: int, spread: float, random: Any) -> Any:
    """Return points around random centres; `spread` is a share of the range."""
    top = np.array(sizes) - 1
    centres = random.random((clusters, len(sizes)))
    points = centres[random.integers(0, clusters, people)] + random.normal(0, spread, (people, len(sizes)))
    return np.clip(np.rint(points * top), 0, top)


def sets(random: Any) -> list[Points]:
    """Return the three sets of points."""
    found: list[Points] = []
    folder = data_folder(None)
    tweets = None if folder is None else folder / "twitter_west_us/twitter_points_400x300_dithered.parquet"
    skin = None if folder is None else folder / "skin_segmentation/skin_segmentation.parquet"
    cells = (None, 360, 90, 18, 2)  # about 2,000, 500, 100 and 11 km
    if tweets is not None and tweets.is_file():
        found.append(Points("places", pd.read_parquet(tweets).to_numpy(), (400, 300), cells))
    else:
        found.append(Points("made-up places", made_up((400, 300), 193_563, 12, 0.06, random), (400, 300), cells))
    colours = (None, 256, 128, 64, 32)
    if skin is not None and skin.is_file():
        table = pd.read_parquet(skin)[["B", "G", "R"]].to_numpy()
        some = table[random.choice(len(table), len(table) // 100, replace=False)]
        found.append(Points("skin 1%", some, (256,) * 3, colours))
    else:
        found.append(Points("made-up colours", made_up((256,) * 3, 2450, 6, 0.12, random), (256,) * 3, colours))
    # (0, 1)^4 in steps of 1/50: thetas of 1, 0.5, 0.25 and 0.1
    found.append(Points("1,000 points", made_up((51,) * 4, 1000, 4, 0.2, random), (51,) * 4, (None, 50, 25, 12, 5)))
    return found


BOXES: Final = {  # file, latitudes, longitudes, degrees of a position
    "city": ("foursquare_nyc_trajectories/foursquare_nyc", (40.5, 41.0), (-74.3, -73.65), 0.002),
    "city in its region": ("foursquare_nyc_trajectories/foursquare_nyc", (39.0, 43.0), (-76.0, -72.0), 0.01),
    "other city": ("gowalla_nyc/gowalla_nyc_checkins", (40.48, 40.92), (-74.26, -73.70), 0.001),
    "west of a country": ("lbsn_checkins/foursquare", (30.0, 50.0), (-125.0, -110.0), 0.05),
    "world": ("lbsn_checkins/foursquare", (-90.0, 90.0), (-180.0, 180.0), 0.5),
}


def check_ins(name: str) -> Points | None:
    """Return the check-ins in a box, or None where the data are not there."""
    folder, (file, *box, step) = data_folder(None), BOXES[name]
    path = None if folder is None else folder / f"{file}.parquet"
    if path is None or not path.is_file():
        return None
    table = pd.read_parquet(path)
    sizes = tuple(round((high - low) / step) for low, high in box)
    places = [
        np.floor((table[axis].to_numpy() - low) / step).astype(np.int64)
        for axis, (low, _) in zip(("lat", "lon"), box, strict=True)
    ]
    inside = np.logical_and.reduce([(at >= 0) & (at < size) for at, size in zip(places, sizes, strict=True)])
    return Points(name, np.stack([at[inside] for at in places], axis=1), sizes, ())


def crowded(*, quick: bool, log: Callable[[str], object] = print) -> None:
    """Print the objective over that without privacy, from one count of cells and as it is done now."""
    log(f"\n{'set':20}{'policy':>12}{'epsilon':>8}   " + "   ".join(f"{f'k = {k}':16}" for k in (3, 5, 10)))
    for name in BOXES:
        points = check_ins(name)
        if points is None:
            log(f"{name:20} skipped: there is no such file in the folder of data sets")
            continue
        policies = {
            "everything": points.within(None),
            "within 3": points.within(3),
            "taking part": tc.Policy(points.domain, tc.secrets.taking_part()),
        }
        for said, policy in policies.items():
            for epsilon in (0.5,) if quick else (0.1, 0.5, 1.0):
                repeats = 2 if quick else 12
                pairs = [
                    (
                        in_one_count(points, policy, epsilon, repeats, k),
                        released(points, policy, epsilon, repeats, k)[0],
                    )
                    for k in (3, 5, 10)
                ]
                shown = "   ".join(f"{1 + one:7.3f} {1 + now:7.3f} " for one, now in pairs)
                log(f"{name:20}{said:>12}{epsilon:8}   {shown}")


def main(*, quick: bool = False, log: Callable[[str], object] = print) -> dict[str, float]:
    """Print what privacy adds to the objective; return the worst ratio to each baseline."""
    random = np.random.default_rng(20)  # of the baseline and of made-up data; ours draws its own noise
    worst = {"places_from_eps_0.1": 0.0, "over_valid_laplace": 0.0, "over_plain": 0.0}
    log(f"{'set':16}{'policy':>12}{'epsilon':>8}{'laplace':>10}{'plain':>9}{'ours':>9}  cells")
    for points in sets(random):
        large = len(points.rows) > 10_000
        repeats = 2 if quick else 10 if large else 20
        plain = {epsilon: released(points, points.within(None), epsilon, repeats) for epsilon in EPSILONS}
        for theta in points.thetas[:1] + points.thetas[-1:] if quick else points.thetas:
            for epsilon in EPSILONS:
                ours, cells = released(points, points.within(theta), epsilon, repeats)
                base = laplace(points, theta, epsilon, 2 if quick else 5 if large else 10, random)
                said = "everything" if theta is None else f"within {theta}"
                log(f"{points.name:16}{said:>12}{epsilon:8}{base:10.3f}{plain[epsilon][0]:9.4f}{ours:9.4f}  {cells}")
                if large:
                    worst["places_from_eps_0.1"] = max(worst["places_from_eps_0.1"], ours)
                worst["over_valid_laplace"] = max(worst["over_valid_laplace"], ours / base)
                if cells != plain[epsilon][1]:  # otherwise it is the same mechanism
                    worst["over_plain"] = max(worst["over_plain"], ours / plain[epsilon][0])
        secrets: dict[str, Any] = {"one attribute": tc.secrets.attributes(*points.columns)}
        if large:
            rows, columns = points.columns
            for width in (40, 4):
                blocks = tc.secrets.partition(rows, width=width) | tc.secrets.partition(columns, width=width * 3 // 4)
                secrets[f"{160_000 // width**2:,} blocks"] = blocks
        for said, family in secrets.items():
            for epsilon in EPSILONS:
                ours, cells = released(points, points.policy(family), epsilon, repeats)
                log(f"{points.name:16}{said:>12}{epsilon:8}{'':10}{plain[epsilon][0]:9.4f}{ours:9.4f}  {cells}")
    log(", ".join(f"{name} {number:.4f}" for name, number in worst.items()))
    crowded(quick=quick, log=log)
    return worst


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
