"""Document 001, one-sided privacy of attributes that depend on each other: figures, theorems, trade-off recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from tacit_reproductions.document_001 import charts
from tacit_reproductions.document_001.building import (
    LIMITS,
    SENSITIVE,
    decision_claims,
    dependence_of,
    told_by_each_other,
    trade_off,
    trade_off_claim,
    trade_off_table,
)
from tacit_reproductions.document_001.claims import (
    coin_claim,
    freedom_claim,
    information_claims,
    optimisation_claims,
    scope_claims,
    text_claims,
    theorem_claims,
)
from tacit_reproductions.document_001.months import month_claim
from tacit_reproductions.document_001.occupancy import (
    Days,
    Occupancy,
    clock,
    days_of,
    made_up_occupancy,
    read_occupancy,
)
from tacit_reproductions.document_001.theorems import ALPHA, lines, settings, theorem_table
from tacit_reproductions.reproduction import Document, Part, Run
from tacit_reproductions.results import Claim

EPSILON: Final = 1.0  # at which applications decide


@dataclass(frozen=True)
class Effort:
    """How much is done: whether the grid is small, records drawn for each line, and limits of the trade-off."""

    few: bool
    records: int
    limits: tuple[float, ...]


FULL: Final = Effort(False, 1_000_000, LIMITS)
QUICK: Final = Effort(True, 50_000, LIMITS[1::3])


def _recomputed(run: Run) -> Part:
    effort = QUICK if run.quick else FULL
    parts = ["rooms", "theorems", "trade-off", "decisions"]
    with run.shown("rooms", parts):
        rooms = made_up_occupancy() if run.folder is None else read_occupancy(run.folder)
        days = days_of(rooms)
        dependence = dependence_of(days)
    with run.shown("theorems", parts):
        grid = settings(few=effort.few)
        found = lines(grid, effort.records)
    with run.shown("trade-off", parts):
        points = trade_off(dependence, effort.limits)
    with run.shown("decisions", parts):
        decided = decision_claims(days, len(rooms.rooms), EPSILON, rooms.name)
        decided.append(month_claim(days, len(rooms.rooms), EPSILON, rooms.name))
    claims = [
        _pattern_claim(rooms, days),
        *theorem_claims(found, grid),
        freedom_claim(),
        *text_claims(),
        coin_claim(),
        *scope_claims(),
        *information_claims(grid),
        *optimisation_claims(dependence, SENSITIVE),
        trade_off_claim(points),
        *decided,
    ]
    strengths = {
        (first, second): told_by_each_other(dependence, first, second)
        for first, second in (("arrival", "leaving"), ("leaving", "share"), ("arrival", "share"))
    }
    return Part(
        claims=claims,
        tables=(trade_off_table(points), theorem_table(found, effort.records)),
        details={
            "lines": [
                {
                    "statement": str(line.statement),
                    "setting": str(line.setting),
                    "printed": line.printed,
                    "enumerated": line.enumerated,
                    "tacit": line.computed,
                    "drawn": {"hits": line.drawn.hits, "among": line.drawn.among},
                }
                for line in found
            ],
            "trade_off": [
                {
                    "limit": point.limit,
                    "how": point.how,
                    "epsilon": dict(point.epsilon),
                    "leakage": point.leakage,
                    "releases": point.releases,
                }
                for point in points
            ],
        },
        charts={
            "figure-1": partial(charts.pattern_chart, rooms, days),
            "figure-2": partial(charts.applications_chart, strengths),
            "theorem-2": charts.factors_chart,
            "trade-off": partial(charts.trade_off_chart, points),
        },
        how=(
            "The theorems are about two attributes that are sensitive or not. Each line of the grid is computed three "
            f"times and drawn once, {effort.records:,} records, with intervals at alpha {ALPHA:g}. Made by "
            f"{run.command}.",
            f"The paper's building is not public. In its place: {rooms.name}, {len(days):,} work days with somebody "
            "there. Of a day, arrival after 10:30, leaving before 15:30 and at most 25% of the work hours are "
            "sensitive.",
        ),
    )


def _pattern_claim(rooms: Occupancy, days: Days) -> Claim:
    middle = sorted(days.arrival.tolist())[len(days) // 2]
    return Claim(
        "1",
        "what a pattern shows",
        f"stand-in for the paper's building: {rooms.name}, {len(days):,} work days",
        "a pattern of one space shows arrival, leaving, absences and their length",
        f"all four for every day; the middle arrival is {clock(middle)}, the middle day has "
        f"{sorted(days.absences.tolist())[len(days) // 2]} absences",
        unjudged="it describes what can be read off a day, and gives no number",
    )


DOCUMENT: Final = Document(
    "001",
    "One-sided privacy of attributes that depend on each other (document 001), recomputed",
    "No data sets were found, so the days in the rooms are made up.",
    _recomputed,
)
