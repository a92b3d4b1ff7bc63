"""Where the data sets of the papers are, and what is taken from them. They are public, and not part of the package.

A folder of data sets has a folder for each, with a README that says where it comes from and how exact it is.
"""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.errors import JobError

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

VARIABLE: Final = "TACIT_DATA"
NEARBY: Final = ("data", "../data", "../shared/data")
MOST_PLACES: Final = 5_835  # as many as the trajectories of document 002 have

ITEM_SETS: Final = {
    "BMS-POS": "bms_pos/item_counts.csv",
    "Kosarak": "kosarak/item_counts.csv.gz",
    "T40I10D100K": "t40i10d100k/item_counts.csv",
    "BMS-WebView-1": "transactions_full/bms_webview_1_item_counts.csv",
    "BMS-WebView-2": "transactions_full/bms_webview_2_item_counts.csv",
    "T10I4D100K": "transactions_full/t10i4d100k_item_counts.csv",
}
TWEETS: Final = "twitter_west_us/twitter_points_400x300_dithered.parquet"
SKIN: Final = "skin_segmentation/skin_segmentation.parquet"
SYNTHETIC_STEPS: Final = 40  # of 0.025 from 0 to 1: fine beside a standard deviation of 0.2
CHECK_INS: Final = {
    "Gowalla, New York": "gowalla_nyc/gowalla_nyc_checkins.parquet",
    "Foursquare": "lbsn_checkins/foursquare.parquet",
}


@dataclass(frozen=True, eq=False)
class ItemSet:
    """How many people have each item, in the order of the items' numbers; `exact` counts are no estimates.

    `seen` items occur for certain: their count is exact, or they are in the records that there are. `records` is how
    many records there are in all, where their lengths are known, else 0.
    """

    name: str
    counts: IntArray
    exact: int
    seen: int = 0
    records: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.exact:,} of {len(self.counts):,} counts exact)"


@dataclass(frozen=True, eq=False)
class CheckIns:
    """Who was where and when; places are numbered 0, 1, .. and lie at `points` (latitude, longitude).

    They are those of `all_places` that most users have visited.
    """

    name: str
    users: IntArray
    times: npt.NDArray[np.datetime64]
    places: IntArray
    points: Floats
    all_places: int

    def first_places(self) -> IntArray:
        """Return where each user was first: by time, then by place. Users are in order of their numbers."""
        order = np.lexsort((self.places, self.times, self.users))
        _, first = np.unique(self.users[order], return_index=True)
        return self.places[order][first]

    def visitors(self, users: IntArray) -> IntArray:
        """Return how many of these users were at each place, at any time."""
        here = np.isin(self.users, users)
        visits = np.unique(np.stack([self.users[here], self.places[here]]), axis=1)
        return np.bincount(visits[1], minlength=len(self.points)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Line:
    """How many people have each value of an ordered attribute: 0, 1, .."""

    name: str
    counts: IntArray


@dataclass(frozen=True, eq=False)
class Points:
    """People at points with whole coordinates from 0 to `highest`: the points that occur, and how many are at each."""

    name: str
    at: IntArray
    counts: IntArray
    highest: tuple[int, ...]

    @classmethod
    def of(cls, name: str, everybody: IntArray, highest: tuple[int, ...]) -> Points:
        """Count people who are given one by one."""
        at, counts = np.unique(everybody, axis=0, return_counts=True)
        return cls(name, at.astype(np.int64), counts.astype(np.int64), highest)

    @property
    def people(self) -> int:
        """How many people there are."""
        return int(self.counts.sum())

    def everybody(self) -> IntArray:
        """Return a line for each person."""
        return np.repeat(self.at, self.counts, axis=0)

    def sampled(self, name: str, share: int) -> Points:
        """Return one in so many people, drawn without replacement."""
        everybody = self.everybody()
        kept = noise.permutation(len(everybody))[: len(everybody) // share]
        return Points.of(name, everybody[kept], self.highest)


def data_folder(given: Path | None) -> Path | None:
    """Return the folder with the data sets: as given, as the environment says, or nearby; None if there is none.

    A folder that somebody names must be one.
    """
    said = {"--data": str(given) if given is not None else None, VARIABLE: os.environ.get(VARIABLE)}
    for key, folder in said.items():
        if folder:
            if not Path(folder).is_dir():
                raise JobError("must be a folder with data sets", key=key, given=folder, fix="Check the path.")
            return Path(folder)
    return next((Path(name) for name in NEARBY if Path(name).is_dir()), None)


def no_data() -> JobError:
    """Return the refusal where no folder was found."""
    return JobError(
        f"must be named, since there is none at {', '.join(NEARBY)}",
        key="--data",
        fix=f"Name the folder with the data sets, or set {VARIABLE}; --quick does without.",
    )


def read_items(folder: Path, name: str) -> ItemSet:
    """Return one of the item sets."""
    file = present(folder / ITEM_SETS[name])
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    exact = sum(row.get("kind", "exact") == "exact" for row in rows)  # complete sets have no such column
    seen = sum(row.get("kind", "exact") == "exact" or int(row["prefix_count"]) > 0 for row in rows)
    counts = sorted((int(row["item"]), int(row["count"])) for row in rows)
    lengths = file.with_name("transaction_lengths.csv")
    records = 0
    if lengths.is_file():
        with lengths.open(encoding="utf-8") as text:
            records = sum(int(row["transactions"]) for row in csv.DictReader(text))
    return ItemSet(name, np.array([count for _, count in counts], dtype=np.int64), exact, seen, records)


def read_check_ins(folder: Path, name: str) -> CheckIns:
    """Return the check-ins at the places that most users have visited."""
    import pandas as pd

    frame: Any = pd.read_parquet(present(folder / CHECK_INS[name]))
    visitors = frame.groupby("venue")["user"].nunique()
    listed = visitors.sort_index().sort_values(ascending=False, kind="stable").index[:MOST_PLACES]
    kept = frame[frame["venue"].isin(listed)]
    venues = np.sort(listed.to_numpy())
    at = kept.drop_duplicates("venue").set_index("venue").loc[venues]
    return CheckIns(
        name,
        kept["user"].to_numpy(np.int64),
        kept["time"].to_numpy("datetime64[ms]"),
        np.searchsorted(venues, kept["venue"].to_numpy()).astype(np.int64),
        at[["lat", "lon"]].to_numpy(np.float64),
        len(visitors),
    )


def read_losses() -> Line:
    """Return how many people of the Adult data, which are part of the package, have each capital loss."""
    with resources.as_file(resources.files("tacit") / "data" / "adult.parquet") as bundled:
        (losses,) = _columns(bundled, ["capital_loss"]).T
    return Line("Adult, capital loss", np.bincount(losses).astype(np.int64))


def read_tweets(folder: Path) -> Points:
    """Return tweets of the western United States on a grid of 400 x 300 cells of 0.05 degrees, latitude first."""
    return Points.of("Twitter", _columns(folder / TWEETS, ["lat_bin", "lon_bin"]), (399, 299))


def read_skin(folder: Path) -> Points:
    """Return the colours of pixels."""
    return Points.of("Skin", _columns(folder / SKIN, ["B", "G", "R"]), (255, 255, 255))


def made_up_tweets(people: int = 20_000) -> Points:
    """Return points in towns of very different sizes."""
    towns = noise.uniform_below(10**6, (40, 2)) / 10**6 * (399, 299)
    at = towns[(40 * _uniform((people,)) ** 3).astype(np.int64)] + 5 * _normal((people, 2))
    return Points.of("made-up places", np.clip(np.rint(at), 0, (399, 299)).astype(np.int64), (399, 299))


def made_up_skin(people: int = 24_500) -> Points:
    """Return colours around four others."""
    colours = np.array([[100, 130, 190], [200, 200, 200], [60, 60, 50], [160, 120, 60]])
    at = colours[noise.uniform_below(4, people)] + 25 * _normal((people, 3))
    return Points.of("made-up colours", np.clip(np.rint(at), 0, 255).astype(np.int64), (255, 255, 255))


def synthetic_points(k: int = 4, people: int = 1_000) -> Points:
    """Return the synthetic set of document 003: points around k centres in the unit cube of four dimensions.

    The noise has a standard deviation of 0.2 in each direction; points are kept in the cube, in steps of 0.025.
    """
    centres = _uniform((k, 4))
    at = np.clip(centres[noise.uniform_below(k, people)] + 0.2 * _normal((people, 4)), 0, 1)
    return Points.of("synthetic", np.rint(SYNTHETIC_STEPS * at).astype(np.int64), (SYNTHETIC_STEPS,) * 4)


def made_up_items(name: str, items: int = 1_657) -> ItemSet:
    """Return made-up counts of a shape that is hard, or (`zipf`) like real ones; always the same."""
    rank = np.arange(1, items + 1)
    shapes = {
        "zipf": 300_000 / rank**0.9,
        "two levels": np.where(rank <= 100, 2_000, 1_000),
        "evenly spaced": 5_000 - 3 * (rank - 1),
    }
    return ItemSet(f"made up: {name}", np.sort(np.maximum(shapes[name], 0).astype(np.int64)), items)


def made_up_check_ins(people: int = 3_000, places: int = 2_000) -> CheckIns:
    """Return check-ins as made up as their map: one for each user, places far from equally busy."""
    users = np.arange(people, dtype=np.int64)
    where = (places * (noise.uniform_below(10**6, people) / 10**6) ** 4).astype(np.int64)
    side = int(np.ceil(np.sqrt(places)))
    grid = np.stack(np.divmod(np.arange(places), side), axis=1)
    times = np.full(people, np.datetime64("2020-03-01", "ms"))
    return CheckIns("made up", users, times, where, grid / side, places)


def _uniform(shape: tuple[int, ...]) -> Floats:
    return np.asarray(noise.uniform_below(2**53, shape) / 2**53)


def _normal(shape: tuple[int, ...]) -> Floats:
    """Draw from the standard normal distribution (Box and Muller)."""
    return np.asarray(np.sqrt(-2 * np.log1p(-_uniform(shape))) * np.cos(2 * np.pi * _uniform(shape)))


def _columns(file: Path, names: list[str]) -> IntArray:
    import pandas as pd

    frame: Any = pd.read_parquet(present(file), columns=names)
    return np.asarray(frame[names].to_numpy(), dtype=np.int64)


def present(file: Path) -> Path:
    """Return a file of the data sets, or refuse where it is not there."""
    if not file.is_file():
        raise JobError(
            "is not there", key=f"{file.parent.name}/{file.name}", fix="See the README of the data sets for its source."
        )
    return file
