"""Document 003, Blowfish privacy: its figures, theorems and examples recomputed, and our own goals beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from tacit_reproductions import data
from tacit_reproductions.document_003 import charts, clusters
from tacit_reproductions.document_003 import ranges as lines
from tacit_reproductions.document_003.adversaries import adversary_claims
from tacit_reproductions.document_003.ordered import OrderedHierarchical
from tacit_reproductions.document_003.orders import order_claims
from tacit_reproductions.document_003.theorems import example_graph, example_table, theorem_claims
from tacit_reproductions.measured import Number, Runs
from tacit_reproductions.reproduction import Document, Part, Run
from tacit_reproductions.results import Claim, Table, check

_TENTHS: Final = tuple(Fraction(tenth, 10) for tenth in range(1, 11))
_FEW: Final = (Fraction(1, 10), Fraction(1, 2), Fraction(1))


@dataclass(frozen=True)
class Effort:
    """How much is done: runs and epsilons of both figures, thetas of Figure 2, and whether every line is drawn."""

    ranges: lines.Effort
    thetas: tuple[int, ...]
    distances: tuple[int, ...]
    clusters: clusters.Effort
    few: bool
    beliefs: int  # that are tried of each policy
    runs_of_lines: int  # of made-up counts


FULL: Final = Effort(
    lines.Effort(_TENTHS, ranges=10_000, runs=50, baseline_runs=100),
    thetas=(1, 10, 50, 100, 500, 1000),
    distances=(5, 50, 500),
    clusters=clusters.Effort(_TENTHS, runs=50, runs_on_many=10, our_epsilons=_FEW, our_runs=10),
    few=False,
    beliefs=500,
    runs_of_lines=1_000,
)
QUICK: Final = Effort(
    lines.Effort((Fraction(1, 2), Fraction(1)), ranges=10_000, runs=5, baseline_runs=20),
    thetas=(1, 10, 100),
    distances=(5, 50),
    clusters=clusters.Effort((Fraction(1, 10), Fraction(1)), 8, 4, our_epsilons=(Fraction(1),), our_runs=3),
    few=True,
    beliefs=10,
    runs_of_lines=50,
)


@dataclass(frozen=True)
class Data:
    """The data sets: a line for Figure 2(b), and points for Figure 1 (the tweets' latitudes are Figure 2(c))."""

    losses: data.Line
    tweets: data.Points
    skin: data.Points
    skin_10: data.Points
    skin_01: data.Points
    synthetic: data.Points

    def latitudes(self) -> data.Line:
        """Return how many tweets have each latitude."""
        counts = np.bincount(self.tweets.at[:, 0], self.tweets.counts, self.tweets.highest[0] + 1)
        return data.Line(f"{self.tweets.name}, latitude", counts.astype(np.int64))

    def figures(self, *, few: bool) -> clusters.Figures:
        """Return the lines of Figure 1; `few` leaves out the largest set and half of the thetas."""
        skin = [self.skin_10, self.skin_01] if few else [self.skin, self.skin_10, self.skin_01]
        return clusters.figures(self.tweets, skin, self.synthetic, few=few)

    def by_name(self) -> dict[str, data.Points]:
        """Return the sets of points by name."""
        return {one.name: one for one in (self.tweets, self.skin, self.skin_10, self.skin_01, self.synthetic)}


def _recomputed(run: Run) -> Part:
    effort = QUICK if run.quick else FULL
    with run.noise_of("data"):
        found = _read(run.folder)
    latitudes = found.latitudes()
    of_lines = {
        **dict.fromkeys(lines.of_adult(len(found.losses.counts), effort.thetas), found.losses),
        **dict.fromkeys(lines.of_latitudes(latitudes, effort.distances), latitudes),
    }
    drawn, by_name = found.figures(few=effort.few), found.by_name()
    settings = list(dict.fromkeys(setting for listed in drawn.values() for setting in listed))
    parts = [
        "theorems",
        "adversaries",
        *(f"ranges: {one}" for one in of_lines),
        *(f"clusters: {one}" for one in settings),
    ]
    with run.shown("theorems", parts):
        claims, example = theorem_claims(), example_table()
    with run.shown("adversaries", parts):
        claims += [*adversary_claims(effort.beliefs), *order_claims(effort.runs_of_lines)]
    ranges: dict[lines.Setting, Any] = {}
    for setting, line in of_lines.items():
        with run.shown(f"ranges: {setting}", parts):
            ranges[setting] = lines.measured(line, setting, effort.ranges)
    starts: dict[str, clusters.Starts] = {}
    clustered: dict[clusters.Setting, Any] = {}
    for one in settings:
        with run.noise_of(f"starts: {one.data}"):
            if one.data not in starts:
                starts[one.data] = clusters.Starts.drawn(by_name[one.data], effort.clusters)
        with run.shown(f"clusters: {one}", parts):
            clustered[one] = clusters.measured(starts[one.data], one, effort.clusters)
    claims += [*_data_claims(found), *clusters.cluster_claims(clustered, drawn, effort.clusters)]
    claims += lines.range_claims(ranges, effort.ranges)
    return Part(
        claims=sorted(claims, key=_place),
        tables=_tables(found, ranges, clustered, drawn, example),
        details={"ranges": _plain(ranges), "clusters": _plain(clustered)},
        charts=_charts(ranges, clustered, drawn),
        how=_how(run, found, effort),
    )


def _read(folder: Path | None) -> Data:
    losses = data.read_losses()
    tweets = data.made_up_tweets() if folder is None else data.read_tweets(folder)
    skin = data.made_up_skin() if folder is None else data.read_skin(folder)
    return Data(
        losses,
        tweets,
        skin,
        skin.sampled(f"{skin.name} 10%", 10),
        skin.sampled(f"{skin.name} 1%", 100),
        data.synthetic_points(),
    )


def _data_claims(found: Data) -> list[Claim]:
    """Return whether the data are those of the paper, where they are not made up."""
    tweets, skin, losses = found.tweets, found.skin, found.losses
    grid = [highest + 1 for highest in tweets.highest]
    adult = (int(losses.counts.sum()), len(losses.counts))
    rows = (
        ("7.3", losses.name, "part of the package", "{:,} people, {:,} values", (48_842, 4_357), adult),
        (
            "6.1",
            "Twitter",
            "stand-in: a public histogram of 256 x 256 cells, each tweet anywhere in its cell",
            "{:,} tweets, {} x {} cells",
            (193_563, 400, 300),
            (tweets.people, *grid),
        ),
        (
            "6.1",
            "Skin",
            "the public data set",
            "{:,} pixels, {} colours",
            (245_057, 3),
            (skin.people, len(skin.highest)),
        ),
    )
    real = (losses.name, tweets.name, skin.name)
    return [
        Claim(f"section {at}", name, run, form.format(*said), form.format(*ours), (check("sizes", ours, "is", said),))
        for at, name, run, form, said, ours in rows
        if name in real
    ]


def _tables(
    found: Data, ranges: lines.Measured, clustered: clusters.Measured, drawn: clusters.Figures, example: Table
) -> tuple[Table, ...]:
    adult = [setting for setting in ranges if setting.line == found.losses.name]
    return (
        *clusters.cluster_tables(clustered, drawn),
        lines.formula_table(len(found.losses.counts), adult),
        *lines.range_tables(ranges),
        example,
        lines.goal_table(ranges),
        *clusters.cluster_goals(clustered, drawn),
    )


def _charts(
    ranges: lines.Measured, clustered: clusters.Measured, figures: clusters.Figures
) -> dict[str, Callable[[], Any]]:
    drawn: dict[str, Callable[[], Any]] = {
        f"figure-{figure}": partial(charts.clusters_chart, clustered, figure, settings)
        for figure, settings in figures.items()
    }
    drawn["figure-1d"] = partial(charts.sizes_chart, clustered, figures["1d"])
    drawn["figure-2a"] = partial(charts.structure_chart, OrderedHierarchical(16, 4, 2))
    for figure, name in zip(("2b", "2c"), dict.fromkeys(setting.line for setting in ranges), strict=True):
        drawn[f"figure-{figure}"] = partial(charts.ranges_chart, ranges, figure, name)
    drawn["figure-3"] = partial(charts.graph_chart, example_graph())
    return drawn


def _place(claim: Claim) -> int:
    """Return where a claim stands: by sections, figures with the section that shows them."""
    at = claim.figure
    number = {"1": "6", "2": "7", "3": "8", "E": "7" if at.endswith("15") else "4"}.get(at[0])
    digits = [sign for sign in at if sign.isdigit()]
    return int(number if number is not None else digits[0])


def _plain(found: Mapping[Any, Mapping[Fraction, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return measured numbers as plain data, a line for each setting and epsilon."""
    return [
        {
            "setting": str(setting),
            "epsilon": float(epsilon),
            **{name: _number(one) for name, one in by.items()},
        }
        for setting, by_epsilon in found.items()
        for epsilon, by in by_epsilon.items()
    ]


def _number(found: Any) -> dict[str, Any]:
    if isinstance(found, Number):
        quartiles = {"quartiles": [found.lower, found.upper]} if isinstance(found, Runs) else {}
        return {"value": found.value, "standard_error": found.error, **quartiles}
    return {"raw": _number(found.raw), "rising": _number(found.rising), "how": found.how}


def _how(run: Run, found: Data, effort: Effort) -> tuple[str, ...]:
    """Say how numbers were made."""
    of_clusters, of_ranges = effort.clusters, effort.ranges
    sets = ", ".join(dict.fromkeys(one.data for listed in found.figures(few=effort.few).values() for one in listed))
    return (
        f"Ranges: {of_ranges.ranges:,} random ranges, {of_ranges.baseline_runs} runs of the paper's mechanisms and of "
        f"trees, {of_ranges.runs} of ours, on {found.losses.name}, and {found.latitudes().name}. Clusters: "
        f"{of_clusters.runs} runs ({of_clusters.runs_on_many} on data with many different points), "
        f"{of_clusters.our_runs} of ours, on {sets}. ± is one standard error. Made by {run.command}.",
        "Mechanisms of the paper are shown as printed and repaired. As printed they break their promise where a claim "
        "about Lemma 6.1 or Theorem 7.2 says so; such columns are marked invalid, and no session of Tacit can use "
        "them. Noise is whole-number noise, which at epsilon 1 has a little less variance than the paper's. Theorem "
        "8.1 says that a problem is hard and has no number.",
        "Of the paper's tweets only a histogram of 256 x 256 cells is public; here each is anywhere in its cell, on "
        f"the paper's grid of 400 x 300. Distances on it are in cells, of {lines.KM:.1f} km each from south to north. "
        f"From west to east a cell is {lines.east_west(30):.1f} km at 30 degrees north, as the paper's 1,442 km have "
        f"it, and {lines.east_west(50):.1f} km at 50 degrees: a theta in km is shorter there by as much.",
    )


DOCUMENT: Final = Document(
    "003",
    "Blowfish privacy (document 003), recomputed",
    "No data sets were found, so tweets and colours are made up; the Adult data are part of the package.",
    _recomputed,
)
