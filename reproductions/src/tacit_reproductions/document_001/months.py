"""What a month of shown arrivals tells about one hidden day of it, beside the share of such days alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np

from tacit import noise
from tacit.audit.exclusion_audit import Exclusion, exclusion
from tacit.dependence.dependence import Dependence
from tacit_reproductions.document_001.building import ARRIVAL, SENSITIVE, classes_of
from tacit_reproductions.document_001.occupancy import Days
from tacit_reproductions.results import Claim, check

MONTH: Final = 30
HIDDEN: Final = 15
APART: Final = 10  # days between the months that are looked at
NAME: Final = f"arrival@{HIDDEN}"


def chain_of(arrivals: list[list[str]]) -> Dependence:
    """Return a month in which each day depends on the day before, as it does in all rooms together."""
    after = {value: Counter[str]() for value in ARRIVAL}
    for room in arrivals:
        for before, now in pairwise(room):
            after[before][now] += 1
    table = {"given": ["arrival@before"], "table": {value: _shares(each) for value, each in after.items()}}
    return Dependence.over(
        {"arrival": table}, first={"arrival": _shares(Counter(chain.from_iterable(arrivals)))}, days=MONTH
    )


def habits_of(arrivals: list[list[str]]) -> Dependence:
    """Return a month in one of the rooms, nobody knows which, whose days are as those of that room."""
    rooms = range(len(arrivals))
    tables = {
        "room": {"given": ["room@before"], "table": {room: {room: 1.0} for room in rooms}},
        "arrival": {"given": ["room"], "table": {room: _shares(Counter(arrivals[room])) for room in rooms}},
    }
    return Dependence.over(tables, first={"room": dict.fromkeys(rooms, 1 / len(rooms))}, days=MONTH)


def _shares(counted: Mapping[str, int]) -> dict[str, float]:
    total = sum(counted.values()) + len(ARRIVAL) / 2  # half a day more of each, as elsewhere here
    return {value: (counted.get(value, 0) + 0.5) / total for value in ARRIVAL}


def _months(arrivals: list[list[str]]) -> Iterator[list[str]]:
    for room in arrivals:
        for start in range(0, len(room) - MONTH, APART):
            yield room[start : start + MONTH]


def month_claim(days: Days, rooms: int, epsilon: float, name: str) -> Claim:
    """Return how much less surprising a hidden day is once the others were shown, on the days themselves."""
    classes = np.array(classes_of(days)["arrival"])
    arrivals = [classes[days.room == room].tolist() for room in range(rooms)]
    alone = _shares(Counter(chain.from_iterable(arrivals)))
    audits = [_audit(chain_of(arrivals), epsilon), _audit(habits_of(arrivals), epsilon)]
    surprise: list[list[float]] = [[], [], []]
    for month in _months(arrivals):
        coins = noise.uniform_below(2**53, MONTH) / 2**53 < -math.expm1(-epsilon)
        shown: dict[str, Any] = {
            f"arrival@{day}": value
            for day, (value, coin) in enumerate(zip(month, coins.tolist(), strict=True), start=1)
            if coin and value not in SENSITIVE["arrival"] and day != HIDDEN
        }
        hidden = [one for one in audits[0].dependence.names if one not in shown and one != NAME]
        beliefs = [alone, *(one.posterior(NAME, suppressed=hidden, released=shown) for one in audits)]
        for each, believed in zip(surprise, beliefs, strict=True):
            late = sum(believed[value] for value in SENSITIVE["arrival"])
            each.append(-math.log(late if month[HIDDEN - 1] in SENSITIVE["arrival"] else 1 - late))
    means = [float(np.mean(each)) for each in surprise]
    told = audits[0].between(NAME, [one for one in audits[0].dependence.names if one != NAME])
    return Claim(
        "sections III, VI",
        f"a hidden day among {MONTH} days, the others shown at epsilon {epsilon:g}",
        f"our audit of days in a chain, and of days by the habits of each room; stand-in for its building: {name}",
        "records are independent of each other, so that other days tell nothing; else future work",
        f"{len(surprise[0]):,} hidden days: whether they are sensitive is {means[0]:.3f} nats of surprise by the share "
        f"of such days alone, {means[1]:.3f} by the chain, {means[2]:.3f} by habits; on average the chain "
        f"tells {told.information[0]:.4f} to {told.information[1]:.4f} nats about the class of the day (bounds)",
        (check("nats that the chain and habits tell", [means[0] - one for one in means[1:]], "at most", 0),),
        "days of one room depend on each other",
    )


def _audit(dependence: Dependence, epsilon: float) -> Exclusion:
    names = dependence.each("arrival")
    return exclusion(dependence, dict.fromkeys(names, SENSITIVE["arrival"]), dict.fromkeys(names, epsilon))
