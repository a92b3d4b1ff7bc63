"""Figures 1 and 4 to 7 of document 002: is a place safe, are all places safe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

import numpy as np

from tacit.mechanism.alarm import NO_VALUE, decide_all
from tacit.monitor.history import History
from tacit.papers.data import CheckIns
from tacit.papers.monitoring import (
    BATCH,
    UPDATES,
    Arrivals,
    FalseAlarms,
    IntArray,
    drawn_arrivals,
    expected_false_alarms,
    simulated_false_alarms,
    watched,
)
from tacit.papers.results import Claim, judged, spread
from tacit.papers.trials import Number

EPSILONS: Final = tuple(map(Fraction, ("0.5", "1", "2")))
THRESHOLDS: Final = (5, 10)  # of Figure 4
MAP_THRESHOLD: Final = 10
VARIED: Final = (2, 3, 5, 7, 10, 15, 20)  # of Figure 7
ONE: Final = Fraction(1)


@dataclass(frozen=True)
class Point:
    """False alarms at one count: by the formula and by drawing."""

    threshold: int
    epsilon: Fraction
    count: int
    exact: float
    seen: float
    decisions: int


def one_place(decisions: int) -> list[Point]:
    """Return Figure 4: how often a place that is below the threshold is called above, at one update."""
    found = []
    for threshold in THRESHOLDS:
        for epsilon in EPSILONS:
            for count in range(threshold):
                drawn = decide_all(np.full(decisions, count), threshold, epsilon)
                exact = math.exp(-(threshold - count) * float(epsilon))
                found.append(Point(threshold, epsilon, count, exact, float((drawn != NO_VALUE).mean()), decisions))
    return found


def wrong_certainties(decisions: int) -> int:
    """Return how often a count at or above the threshold is called certainly below."""
    wrong, at_once = 0, 10**6
    for start in range(0, decisions, at_once):
        many = min(at_once, decisions - start)
        wrong += int((decide_all(5 + np.arange(many) % 7, 5, ONE) == NO_VALUE).sum())
    return wrong


def one_place_claims(points: Sequence[Point], decisions: int) -> list[Claim]:
    """Return what the paper says about Algorithm 3 and Figure 4."""
    by = {(point.threshold, point.epsilon, point.count): point for point in points}
    empty = by[5, ONE, 0]
    rises_with_count = all(by[5, e, n].exact < by[5, e, n + 1].exact for e in EPSILONS for n in range(4))
    rises_as_threshold_falls = all(by[10, e, n].exact < by[5, e, n].exact for e in EPSILONS for n in range(5))
    wrong = wrong_certainties(decisions)
    return [
        Claim(
            "4",
            "false alarms, count 0, threshold 5, epsilon 1",
            "less than 0.01",
            f"{empty.exact:.4f} exactly, {empty.seen:.4f} drawn",
            *judged([empty.exact < 0.01, empty.seen < 0.01]),
        ),
        Claim(
            "4",
            "false alarms by count and threshold",
            "more when the count or the threshold is lower",
            "exp(-(threshold - count) epsilon): more for a lower threshold, and for a higher count",
            *judged([rises_as_threshold_falls, not rises_with_count], why="the direction for counts is reversed"),
        ),
        Claim(
            "4",
            "`certainly below` where it is not",
            "never",
            f"{wrong:,} in {decisions:,} decisions",
            *judged([wrong == 0]),
        ),
    ]


@dataclass(frozen=True)
class Shares:
    """Shares of false alarms at each update, as `FalseAlarms` has them: drawn, and expected."""

    new: list[Number]
    so_far: list[Number]
    expected: FalseAlarms


@dataclass(frozen=True, eq=False)
class Maps:
    """All maps of one data set: what monitors published, and shares of false alarms.

    `shares[epsilon, threshold]` are means of many runs with people drawn anew.
    """

    check_ins: CheckIns
    arrivals: Arrivals
    histories: Mapping[Fraction, History]
    shares: Mapping[tuple[Fraction, int], Shares]

    def hot(self) -> int:
        """Return how many places truly reach the threshold after all updates."""
        return int((self.arrivals.counts[-1] >= MAP_THRESHOLD).sum())


def all_maps(check_ins: CheckIns, runs: int) -> Maps:
    """Return everything that Figures 1 and 5 to 7 need."""
    arrivals = [drawn_arrivals(check_ins) for _ in range(runs)]
    tables = [one.counts for one in arrivals]
    shares = {(epsilon, threshold): _shares(tables, threshold, epsilon) for epsilon in EPSILONS for threshold in VARIED}
    histories = {epsilon: watched(check_ins, arrivals[0], MAP_THRESHOLD, epsilon) for epsilon in EPSILONS}
    return Maps(check_ins, arrivals[0], histories, shares)


def _shares(tables: Sequence[IntArray], threshold: int, epsilon: Fraction) -> Shares:
    """Draw once for each table of counts; return means over the tables."""
    drawn = [simulated_false_alarms(counts, threshold, epsilon) for counts in tables]
    expected = [expected_false_alarms(counts, threshold, epsilon) for counts in tables]
    new, so_far = (np.array([getattr(one, name) for one in drawn]) for name in ("new", "so_far"))
    means = FalseAlarms(*(np.mean([getattr(one, name) for one in expected], axis=0) for name in ("new", "so_far")))
    return Shares(list(map(Number.mean, new.T)), list(map(Number.mean, so_far.T)), means)


def map_claims(maps: Maps) -> list[Claim]:
    """Return what the paper says about Algorithm 4 and Figures 1, 5, 6 and 7."""
    name, places = maps.check_ins.name, len(maps.check_ins.points)
    empty = float((maps.arrivals.counts[0] == 0).mean())
    orange = [len(maps.histories[epsilon].verdicts) for epsilon in EPSILONS]
    at = {epsilon: maps.shares[epsilon, MAP_THRESHOLD] for epsilon in EPSILONS}
    new = {epsilon: max(one.value for one in at[epsilon].new) for epsilon in EPSILONS}
    last = {epsilon: at[epsilon].so_far[-1].value for epsilon in EPSILONS}
    lowest, highest = ([maps.shares[e, t].so_far[-1].value for e in EPSILONS] for t in (VARIED[0], VARIED[-1]))
    listed = ", ".join(f"epsilon {float(e):g}: {100 * new[e]:.2f}% ({100 * last[e]:.2f}%)" for e in EPSILONS)
    return [
        Claim(
            "1",
            f"{name}: places by visitors, one batch of {BATCH}",
            "most places are not visited",
            f"{100 * empty:.1f}% of {places:,} have no visitor",
            *judged([empty > 0.5], why="fewer than half"),
        ),
        Claim(
            "5",
            f"{name}: alarms after {UPDATES} updates, threshold {MAP_THRESHOLD}",
            "more orange dots than in truth, the more the smaller epsilon",
            f"truth {maps.hot():,}; "
            + ", ".join(f"epsilon {float(e):g}: {many:,}" for e, many in zip(EPSILONS, orange, strict=True)),
            *judged(
                [many >= maps.hot() for many in orange] + [a >= b for a, b in pairwise(orange)],
                why="by chance of one run",
            ),
        ),
        Claim(
            "6",
            f"{name}: false alarms at an update (all so far), share of safe places",
            "at most 0.01 at each update",
            listed,
            *judged(
                [new[e] <= 0.01 for e in EPSILONS] + [last[e] <= 0.01 for e in EPSILONS],
                why="for the alarms of one update; they add up, since a place that alarmed stays so",
            ),
        ),
        Claim(
            "7",
            f"{name}: false alarms by threshold, so far",
            f"very high for a threshold of {VARIED[0]}, fewer for larger ones",
            f"threshold {VARIED[0]}: {spread([100 * share for share in lowest], '{:.0f}%'.format)} of safe places; "
            f"{VARIED[-1]}: {spread([100 * share for share in highest], '{:.2f}%'.format)}",
            *judged(
                [share > 0.05 for share in lowest] + [b < a for a, b in zip(lowest, highest, strict=True)],
                why="not for every epsilon",
            ),
        ),
    ]
