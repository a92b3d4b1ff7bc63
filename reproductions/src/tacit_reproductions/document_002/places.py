"""Figures 1 and 4 to 7 of document 002: is a place safe, are all places safe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from tacit.monitor.alarm import NO_VALUE, decide_all
from tacit.monitor.history import History
from tacit_reproductions.data import CheckIns
from tacit_reproductions.document_002.monitoring import (
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
from tacit_reproductions.measured import Number
from tacit_reproductions.results import Claim, check, spread

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
    counts = [(by[5, e, n].exact, by[5, e, n + 1].exact) for e in EPSILONS for n in range(4)]
    thresholds = [(by[5, e, n].exact, by[10, e, n].exact) for e in EPSILONS for n in range(5)]
    wrong = wrong_certainties(decisions)
    run = "one decision of Algorithm 3, as printed; made-up counts"
    return [
        Claim(
            "4",
            "false alarms, count 0, threshold 5, epsilon 1",
            run,
            "less than 0.01",
            f"{empty.exact:.4f} exactly, {empty.seen:.4f} drawn",
            (check("exact and drawn share", (empty.exact, empty.seen), "below", 0.01),),
        ),
        Claim(
            "4",
            "false alarms by count and threshold",
            run,
            "more when the count or the threshold is lower",
            "exp(-(threshold - count) epsilon): more for a lower threshold, and for a higher count",
            (
                check("share at threshold 5 over that at 10", [a / b for a, b in thresholds], "above", 1),
                check("share at a count over that at one more", [a / b for a, b in counts], "above", 1),
            ),
            "the direction for counts is reversed",
        ),
        Claim(
            "4",
            "`certainly below` where it is not",
            run,
            "never",
            f"{wrong:,} in {decisions:,} decisions",
            (check("wrong answers", wrong, "is", 0),),
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

    `shares[epsilon, threshold]` are means of many runs with people drawn anew. `visitors` is Figure 1: how many people
    of one batch were at each place, at any time. `empty` is the share of places without a visitor, for each batch.
    """

    check_ins: CheckIns
    arrivals: Arrivals
    visitors: IntArray
    empty: list[float]
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
    visitors = [check_ins.visitors(one.users[0]) for one in arrivals]
    empty = [float((one == 0).mean()) for one in visitors]
    return Maps(check_ins, arrivals[0], visitors[0], empty, histories, shares)


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
    empty = Number.mean(np.array(maps.empty))
    stand_in = (
        f"stand-in for the paper's trajectories: check-ins at the {places:,} most visited of "
        f"{maps.check_ins.all_places:,} places, people drawn in batches of {BATCH}"
    )
    run = (
        f"Algorithm 4 by Tacit's map monitor; {stand_in}, of each person the first check-in alone, as its promise needs"
    )
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
            f"{stand_in}, all their check-ins",
            "most places are not visited",
            f"{100 * empty.value:.1f}% of {places:,} have no visitor, mean of {len(maps.empty):,} batches",
            (check("share of places without a visitor", empty.value, "above", 0.5),),
        ),
        Claim(
            "5",
            f"{name}: alarms after {UPDATES} updates, threshold {MAP_THRESHOLD}, one run",
            run,
            "more orange dots than in truth, the more the smaller epsilon",
            f"truth {maps.hot():,}; "
            + ", ".join(f"epsilon {float(e):g}: {many:,}" for e, many in zip(EPSILONS, orange, strict=True)),
            (
                check("alarms, by epsilon,", orange, "at least", maps.hot()),
                check("alarms, each beside the next larger epsilon's,", orange[:-1], "above", orange[1:]),
            ),
        ),
        Claim(
            "6",
            f"{name}: false alarms at an update (all so far), share of safe places",
            run,
            "at most 0.01 at each update",
            listed,
            (
                check("alarms of one update, by epsilon,", [new[e] for e in EPSILONS], "at most", 0.01),
                check("wrong alarms so far, as Figure 5 shows them,", [last[e] for e in EPSILONS], "at most", 0.01),
            ),
            "alarms add up, since a place that alarmed stays so",
        ),
        Claim(
            "7",
            f"{name}: false alarms by threshold, so far",
            run,
            f"very high for a threshold of {VARIED[0]}, fewer for larger ones",
            f"threshold {VARIED[0]}: {spread([100 * share for share in lowest], '{:.0f}%'.format)} of safe places; "
            f"{VARIED[-1]}: {spread([100 * share for share in highest], '{:.2f}%'.format)}",
            (
                check(f"share at threshold {VARIED[0]}, by epsilon,", lowest, "above", 0.5),
                check(f"share at threshold {VARIED[-1]}, beside threshold {VARIED[0]}'s,", highest, "below", lowest),
            ),
        ),
    ]
