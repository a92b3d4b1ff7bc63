"""Maps of places as in document 002: batches of people arrive, and each update says which places are certainly safe.

Of each person the first check-in counts, so that one person is at one place, as Algorithm 4 needs. One run per map goes
through `MapMonitor`; many runs use the decision that it is made of (`monitor/alarm.py`) on the same counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.monitor.alarm import NO_VALUE, chance_certainly_below, decide_all
from tacit.monitor.history import History
from tacit.monitor.monitor import MapMonitor
from tacit.policy.attributes import Items
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import values as secret_values
from tacit_reproductions.data import CheckIns

IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BATCH: Final = 500
UPDATES: Final = 5


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Who arrives with each update, and how many people were first at each place, after each update."""

    users: list[IntArray]
    counts: IntArray


def drawn_arrivals(check_ins: CheckIns) -> Arrivals:
    """Draw people without repetition, in batches; return them and the counts that follow from their first places."""
    everybody = np.unique(check_ins.users)
    order = noise.permutation(len(everybody))
    drawn = [order[at : at + BATCH] for at in range(0, BATCH * UPDATES, BATCH)]
    first = check_ins.first_places()
    arrived = [np.bincount(first[who], minlength=len(check_ins.points)) for who in drawn]
    return Arrivals([everybody[who] for who in drawn], np.cumsum(np.array(arrived, dtype=np.int64), axis=0))


def watched(check_ins: CheckIns, arrivals: Arrivals, threshold: int, epsilon: Fraction) -> History:
    """Return what a `MapMonitor` publishes about these arrivals."""
    import pandas as pd

    policy = Policy(Domain({"place": Items(len(check_ins.points))}), secret_values({"place": [1]}))
    frame = pd.DataFrame({"user": np.unique(check_ins.users), "place": check_ins.first_places()})
    with MapMonitor(policy, threshold=threshold, epsilon=epsilon, person="user") as monitor:
        for users in arrivals.users:
            monitor.feed(frame[frame["user"].isin(users.tolist())])
        return monitor.history


@dataclass(frozen=True)
class FalseAlarms:
    """Wrong alarms as a share of the places that are truly below the threshold, at each update.

    `new`: alarms of this update. `so_far`: places that alarmed at this update or before, and are still truly below.
    """

    new: Floats
    so_far: Floats


def simulated_false_alarms(counts: IntArray, threshold: int, epsilon: Fraction) -> FalseAlarms:
    """Return the shares in one run of the decisions that a map is made of."""
    rung = decide_all(counts, threshold, epsilon) != NO_VALUE
    return _shares(np.cumsum(rung, axis=0) > 0, counts < threshold)


def expected_false_alarms(counts: IntArray, threshold: int, epsilon: Fraction) -> FalseAlarms:
    """Return the expected shares, by the exact chance of each decision."""
    silent = np.cumprod(chance_certainly_below(counts, threshold, epsilon), axis=0)
    return _shares(1.0 - silent, counts < threshold)


def _shares(alarmed: npt.NDArray[Any], is_safe: npt.NDArray[np.bool_]) -> FalseAlarms:
    """Return shares of safe places from whether, or how likely, each place has alarmed up to each update."""
    before = np.vstack([np.zeros_like(alarmed[:1]), alarmed[:-1]])
    safe = np.maximum(is_safe.sum(axis=1), 1)
    new = ((alarmed.astype(np.float64) - before) * is_safe).sum(axis=1) / safe
    return FalseAlarms(new, (alarmed * is_safe).sum(axis=1) / safe)
