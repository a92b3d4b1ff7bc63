"""Document 002, asymmetric differential privacy: its figures recomputed, and our own goals for top-k lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tacit.report.charts.monitor_charts import monitor_chart
from tacit_reproductions import data
from tacit_reproductions.document_002 import charts
from tacit_reproductions.document_002.errors import certainty_claims, error_claims, privacy_claims
from tacit_reproductions.document_002.goals import goal_document, goal_tables
from tacit_reproductions.document_002.lists import (
    ALL,
    FEW,
    Grid,
    data_claims,
    goal_cell,
    ranking_claims,
    threshold_claims,
)
from tacit_reproductions.document_002.places import ONE, Maps, all_maps, map_claims, one_place, one_place_claims
from tacit_reproductions.reproduction import Document, Part, Run

OF_THE_PAPER: Final = ("BMS-POS", "Kosarak", "T40I10D100K")
COMPANIONS: Final = ("BMS-WebView-1", "BMS-WebView-2", "T10I4D100K")
MADE_UP: Final = ("zipf", "two levels", "evenly spaced")
MAPS: Final = ("Gowalla, New York", "Foursquare")


@dataclass(frozen=True)
class Effort:
    """How much is done: data sets of the figures and of the goals, runs of each mechanism, decisions, audited draws."""

    sets: tuple[str, ...]
    more: tuple[str, ...]
    made_up: tuple[str, ...]
    maps: tuple[str, ...]
    grid: Grid
    runs: int
    baseline_runs: int
    map_runs: int
    decisions: int
    samples: int


FULL: Final = Effort(OF_THE_PAPER, COMPANIONS, MADE_UP, MAPS, ALL, 60, 300, 50, 10**7, 10**5)
QUICK: Final = Effort(OF_THE_PAPER[:1], (), (), MAPS[:1], FEW, 15, 60, 5, 10**6, 20_000)


@dataclass(frozen=True)
class Data:
    """The data sets: `items` for the figures, `more` for our goals, and check-ins for the maps."""

    items: tuple[data.ItemSet, ...]
    more: tuple[data.ItemSet, ...]
    check_ins: tuple[data.CheckIns, ...]


def _recomputed(run: Run) -> Part:
    effort = QUICK if run.quick else FULL
    with run.noise_of("made-up check-ins"):
        found = _read(run.folder, effort)
    names, all_names = ([one.name for one in sets] for sets in (found.items, (*found.items, *found.more)))
    goals = [task for name in all_names for task in effort.grid.goals(name)]
    curves = [task for by_rank in (True, False) for name in names for task in effort.grid.curve(name, by_rank=by_rank)]
    tasks = list(dict.fromkeys([*goals, *curves]))
    parts = ["privacy", *map(str, tasks), "one place", *(f"maps of {one.name}" for one in found.check_ins)]

    with run.shown("privacy", parts):
        audited = privacy_claims(effort.samples)
    sets, measured = {one.name: one for one in (*found.items, *found.more)}, {}
    for task in tasks:
        with run.shown(str(task), parts):
            measured[task] = task.done(sets[task.data], effort.runs, effort.baseline_runs)
    listed = ", ".join(map(str, found.items))
    run_on = f"free gap for counts that move one way; {listed}; {effort.baseline_runs:,} runs"
    claims = [
        *error_claims(),
        *certainty_claims(),
        *audited,
        *data_claims(found.items),
        *ranking_claims(effort.grid, measured, names, all_names, run_on),
        *threshold_claims(effort.grid, measured, names, run_on),
    ]
    with run.shown("one place", parts):
        points = one_place(effort.decisions // 10)
        claims += one_place_claims(points, effort.decisions)
    drawn: dict[str, Callable[[], Any]] = {
        "figure-2": partial(charts.lists_chart, effort.grid, names, measured, by_rank=True),
        "figure-3": partial(charts.lists_chart, effort.grid, names, measured, by_rank=False),
        "figure-4": partial(charts.one_place_chart, points),
    }
    for one in found.check_ins:
        with run.shown(f"maps of {one.name}", parts):
            maps = all_maps(one, effort.map_runs)
        claims += map_claims(maps)
        drawn |= _map_charts(maps)
    cells = tuple(goal_cell(task, measured[task]) for task in goals)
    return Part(
        claims=claims,
        tables=goal_tables(cells),
        details=goal_document(cells),
        charts=drawn,
        how=_how(run, found, effort),
    )


def _read(folder: Path | None, effort: Effort) -> Data:
    if folder is None:
        return Data((data.made_up_items("zipf"),), (), (data.made_up_check_ins(),))
    items, more = (tuple(data.read_items(folder, name) for name in names) for names in (effort.sets, effort.more))
    made_up = tuple(map(data.made_up_items, effort.made_up))
    return Data(items, more + made_up, tuple(data.read_check_ins(folder, name) for name in effort.maps))


def _map_charts(maps: Maps) -> dict[str, Callable[[], Any]]:
    name = maps.check_ins.name.lower().split(",")[0].replace(" ", "-")
    located = {place: tuple(point) for place, point in enumerate(maps.check_ins.points.tolist())}
    return {
        f"figure-1-{name}": partial(charts.visitors_chart, maps),
        f"figure-5-{name}": partial(charts.maps_chart, maps),
        f"figure-5-{name}-monitor": partial(monitor_chart, maps.histories[ONE], points=located),
        f"figure-6-{name}": partial(charts.updates_chart, maps),
        f"figure-7-{name}": partial(charts.thresholds_chart, maps),
    }


def _how(run: Run, found: Data, effort: Effort) -> tuple[str, ...]:
    """Say how numbers were made."""
    shapes = ("Made-up sets are shapes of counts; two levels and even spacing were made to be hard.",)
    lists = ", ".join(map(str, (*found.items, *found.more)))
    maps = ", ".join(one.name for one in found.check_ins)
    return (
        f"For each data set, k and epsilon ours ran {effort.runs:,} times, the others {effort.baseline_runs:,} times "
        f"(the paper: 10,000); ± is one standard error. Lists: {lists}. Maps: {maps}, people were drawn anew "
        f"{effort.map_runs:,} times. Made by {run.command}.",
        "Error (MSE) is the mean squared error of the released values; accuracy is the share of the k answers whose "
        "count is at least the k-th largest. Free gap is its form for counts that only move one way, unless said "
        "otherwise. Algorithms 1 and 2 are run repaired: each count is added once, and the list stops after k answers. "
        "Algorithms 3 and 4 are run as printed where their promise holds: one decision, one place for each person.",
        "Of BMS-POS, Kosarak and T40I10D100K only the largest counts are exact; the others are estimates that fit "
        "the published sizes. The paper's trajectories are not public: check-ins stand in for them, at the "
        f"{data.MOST_PLACES:,} places that most people visited.",
        *(shapes if effort.made_up else ()),
    )


DOCUMENT: Final = Document(
    "002",
    "Asymmetric differential privacy (document 002), recomputed",
    "No data sets were found, so counts and check-ins are made up.",
    _recomputed,
)
