"""The building of document 001: what two applications see of the days in its rooms, and what they decide.

Days are put into classes, three for each attribute; the one that tells most about a person is sensitive. Dependence is
counted on the stand-in data, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tacit import noise
from tacit.dependence.dependence import Dependence
from tacit.dependence.suppression import mutual_information, suppression
from tacit.plan.leakage.budget import leakage_budget
from tacit_reproductions.document_001.occupancy import DEFAULT_START, Bools, Days, Floats, Ints
from tacit_reproductions.results import Claim, Table, check

ARRIVAL: Final = ("by 9:00", "by 10:30", "later")
LEAVING: Final = ("before 15:30", "by 18:00", "after 18:00")
SHARE: Final = ("up to 25%", "up to 60%", "above 60%")
SENSITIVE: Final = {"arrival": ["later"], "leaving": ["before 15:30"], "share": ["up to 25%"]}
APPLICATIONS: Final = {"lighting": ["arrival"], "space planning": ["share"]}
SMOOTHING: Final = 0.5
CAP: Final = 5.0
LIMITS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
HALF: Final = 0.5  # of the work hours: what a room must be used for to be kept


def classes_of(days: Days) -> dict[str, list[str]]:
    """Return the class of each day by attribute."""
    arrival = np.searchsorted([9 * 60, 10 * 60 + 30], days.arrival)
    leaving = np.searchsorted([15 * 60 + 29, 18 * 60], days.leaving)
    share = np.searchsorted([0.25, 0.6], days.share)
    return {
        name: [labels[place] for place in places.tolist()]
        for name, labels, places in (
            ("arrival", ARRIVAL, arrival),
            ("leaving", LEAVING, leaving),
            ("share", SHARE, share),
        )
    }


def dependence_of(days: Days) -> Dependence:
    """Return how the classes depend on each other, with half a day added to every cell."""
    counted: dict[tuple[str, ...], int] = {}
    for cell in zip(*classes_of(days).values(), strict=True):
        counted[cell] = counted.get(cell, 0) + 1
    values = {"arrival": ARRIVAL, "leaving": LEAVING, "share": SHARE}
    return Dependence.from_counts(counted, names=tuple(values), values=values, smoothing=SMOOTHING)


def told_by_each_other(dependence: Dependence, first: str, second: str) -> float:
    """Return the mutual information of two attributes, in nats."""
    joint = dependence.marginal(first, second)
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / apart[seen])).sum())


@dataclass(frozen=True)
class Point:
    """One plan: the limit, how it was made, its epsilons, what leaks and how many values of a day are released."""

    limit: float
    how: str
    epsilon: Mapping[str, float]
    leakage: float
    releases: float
    gap: float


PLANNED: Final = "planned"
EQUAL: Final = "one epsilon for all"
SUM: Final = "largest sum of epsilons, capped"


def trade_off(dependence: Dependence, limits: Sequence[float] = LIMITS) -> list[Point]:
    """Return what can be released under each limit on what is learned in all: planned, by one epsilon, by their sum."""
    found = []
    for limit in limits:
        for how, objective in ((PLANNED, "releases"), (SUM, "epsilon")):
            plan = leakage_budget(
                dependence, sensitive=SENSITIVE, limit=limit, cap=CAP, objective=objective, measure="bit"
            )
            epsilon = {name: float(one) for name, one in plan.epsilon.items()}
            found.append(Point(limit, how, epsilon, plan.leakage, releases(dependence, epsilon), plan.gap))
        same = dict.fromkeys(SENSITIVE, _largest_equal(dependence, limit))
        found.append(Point(limit, EQUAL, same, leaked(dependence, same), releases(dependence, same), math.nan))
    return found


def releases(dependence: Dependence, epsilon: Mapping[str, float]) -> float:
    """Return how many values of one day are released, on average."""
    total = 0.0
    for name, own in epsilon.items():
        chances = dict(zip(dependence.values[name], dependence.marginal(name).tolist(), strict=True))
        total += -math.expm1(-own) * sum(chance for value, chance in chances.items() if value not in SENSITIVE[name])
    return total


def leaked(dependence: Dependence, epsilon: Mapping[str, float]) -> float:
    """Return the paper's (21) added up over all attributes: what each M_i says about every X, its own too, in nats."""
    release = suppression(dependence, SENSITIVE, epsilon)
    pairs = ((about, seen) for about in SENSITIVE for seen in epsilon)
    return sum(mutual_information(release, about, [seen], value=False) for about, seen in pairs)


def _largest_equal(dependence: Dependence, limit: float) -> float:
    """Return the largest epsilon that all attributes can have, up to the cap."""
    low, high = 0.0, CAP
    if leaked(dependence, dict.fromkeys(SENSITIVE, high)) <= limit:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        fits = leaked(dependence, dict.fromkeys(SENSITIVE, middle)) <= limit
        low, high = (middle, high) if fits else (low, middle)
    return low


def trade_off_table(points: Sequence[Point]) -> Table:
    """Return the trade-off as a table."""
    return Table(
        "The trade-off: what is learned against what is released",
        ("limit, nats", "how", *(f"epsilon, {name}" for name in SENSITIVE), "learned, nats", "values a day", "gap"),
        [
            (
                f"{point.limit:g}",
                point.how,
                *(f"{point.epsilon[name]:.3f}" for name in SENSITIVE),
                f"{point.leakage:.4f}",
                f"{point.releases:.4f}",
                "" if math.isnan(point.gap) else f"{point.gap:.0e}",
            )
            for point in points
        ],
        (
            "Learned: the paper's (21), what M_i says about X_i and every other X_j, added up over i, as in the claims "
            "about section V.C. Gap: how much better, in its own objective, anything allowed could be, at most. "
            f"Epsilons go up to {CAP:g}.",
        ),
    )


def trade_off_claim(points: Sequence[Point]) -> Claim:
    """Return how the paper's objective compares with planning releases."""
    by = {(point.limit, point.how): point for point in points}
    limits = sorted({point.limit for point in points})
    lost = [1 - by[limit, SUM].releases / by[limit, PLANNED].releases for limit in limits]
    worst = limits[int(np.argmax(lost))]
    return Claim(
        "section V.C",
        f"releases under a limit on (21): the largest sum of epsilons, capped at {CAP:g}",
        "the printed optimisation, and our plan under the same limit; dependence counted on the stand-in building",
        "trades utility for privacy efficiently",
        f"up to {100 * max(lost):.0f}% fewer values released than planned (at {worst:g} nats), {len(limits)} limits",
        (check("share of the planned values that is lost", lost, "at most", 0.01),),
        "epsilon is no utility: one attribute gets nearly all",
    )


@dataclass(frozen=True)
class Decision:
    """What an application finds for each room: from everything, from what was shown to it, and with its gaps filled."""

    application: str
    what: str
    limit: float
    true: Floats
    shown: Floats
    filled: Floats
    seen: float  # share of the days whose value was released

    def same(self, found: Floats) -> int:
        """Return in how many rooms the decision is the true one."""
        return int(((self.true > self.limit) == (found > self.limit)).sum())


def decisions(days: Days, rooms: int, epsilon: float) -> list[Decision]:
    """Return what is found for each room, where every non-sensitive value is released by its coin.

    A gap is filled with what is expected there, over all rooms: the mean given that a value is suppressed.
    """
    classes = classes_of(days)
    found = []
    for application, name, numbers, limit, what in (
        ("lighting", "arrival", days.arrival.astype(np.float64), float(DEFAULT_START), "lights later than 9:00"),
        ("space planning", "share", days.share, HALF, "room is kept"),
    ):
        open_ = np.array([one not in SENSITIVE[name] for one in classes[name]])
        coin = noise.uniform_below(2**53, len(days)) / 2**53 < -math.expm1(-epsilon)
        shown = open_ & coin
        in_gaps = float(np.average(numbers, weights=np.where(open_, math.exp(-epsilon), 1.0)))
        true, private = (_means(numbers, days.room, picked, rooms) for picked in (np.ones_like(shown), shown))
        filled = _means(np.where(shown, numbers, in_gaps), days.room, np.ones_like(shown), rooms)
        found.append(Decision(application, what, limit, true, private, filled, float(shown.mean())))
    return found


def decision_claims(days: Days, rooms: int, epsilon: float, name: str) -> list[Claim]:
    """Return how often the applications decide as they would have from everything."""
    claims = []
    for one in decisions(days, rooms, epsilon):
        unit, times = ("minutes", 1) if one.application == "lighting" else ("points", 100)
        off, left = (times * float(np.nanmean(found - one.true)) for found in (one.shown, one.filled))
        same = one.same(one.shown)
        claims.append(
            Claim(
                "section IV",
                f"{one.application}: {one.what}, epsilon {epsilon:g}",
                f"the paper's release of one attribute; stand-in for its building: {name}",
                "applications still work from what is released",
                f"the same decision for {same} of {rooms} rooms from {100 * one.seen:.0f}% of the days, averages off "
                f"by {round(off):+d} {unit}; for {one.same(one.filled)} with gaps filled by what is expected there, "
                f"off by {round(left):+d}",
                (
                    check("rooms with the same decision", same, "is", rooms),
                    check("the same", same, "above", rooms / 2),
                ),
                _BIASED,
            )
        )
    return claims


_BIASED: Final = "sensitive days are never shown, a bias that more days do not cure"


def _means(numbers: Floats, room: Ints, picked: Bools, rooms: int) -> Floats:
    total = np.bincount(room[picked], numbers[picked], rooms)
    many = np.bincount(room[picked], minlength=rooms)
    return np.asarray(np.divide(total, many, out=np.full(rooms, np.nan), where=many > 0), dtype=np.float64)
