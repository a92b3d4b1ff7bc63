"""What a monitor has published: verdicts on places, and nothing else. A history may be shown and sent anywhere.

Verdicts are derived from three public things alone: the settings of the monitor, which steps were taken, and the alarms
with their noisy counts. A place that did not alarm and was not silenced by an earlier alarm is certainly below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from tacit.amounts import shown
from tacit.drawing import Held
from tacit.errors import PlanError, PolicyError, word_or_kind
from tacit.monitor.alarm import ABOVE, CERTAINLY_BELOW, alarm_noise
from tacit.monitor.clock import Clock
from tacit.monitor.journal import Alarm, PublishedHistory, read_published
from tacit.noise.two_scale import TwoScale
from tacit.policy.attributes import Attribute, Categories, Items
from tacit.release.results.value_files import whole_file, write_frame

PAUSED: Final = "paused"
ALREADY_ALARMED: Final = "already alarmed"
NOT_ASKED: Final = "not asked"


@dataclass(frozen=True)
class PlaceVerdict:
    """What was said about one place at one step.

    `value` is the noisy count, which the count never exceeds; `estimate` is without the mean of the noise: an unbiased
    estimate of the count, or of the threshold if the count is less. Both only with the verdict "above".
    """

    step: int
    time: int | str
    place: Any
    verdict: str
    value: int | None = None
    estimate: float | None = None


@dataclass(frozen=True)
class Places:
    """The monitored places: their names by position in the domain, without a copy of a million names."""

    attribute: Attribute
    positions: Sequence[int]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Places:
        """Return the places that settings describe."""
        named = document.get("names")
        attribute: Attribute = (
            Categories(named) if named is not None else Items(document["count"], first=document["first"])
        )
        return cls(attribute, document.get("positions") or range(attribute.cells))

    def document(self) -> dict[str, Any]:
        """Return the places as plain data."""
        numbers = self.attribute.item_numbers
        if numbers is not None:
            said: dict[str, Any] = {"count": self.attribute.cells, "first": numbers.start}
        else:
            said = {"names": [self.label(place) for place in range(self.attribute.cells)]}
        return said if isinstance(self.positions, range) else {**said, "positions": list(self.positions)}

    def label(self, position: int) -> Any:
        """Return the name of a place."""
        return self.attribute.cell(position)

    def position(self, place: Any) -> int:
        """Return the position of a monitored place, or refuse."""
        found = position_of(self.attribute, place)
        if not isinstance(self.positions, range) and found not in self.positions:
            raise PlanError("must be one of the monitored places", key="place", given=place, fix="Change it.")
        return found


class MapVerdict(Mapping[Any, PlaceVerdict]):
    """What was said about all places at one step: `verdicts[place]`, `.alarms` (the new ones), `.frame`.

    `asked` is whether this was a step at which places are decided.
    """

    def __init__(
        self, step: int, time: int | str, places: Places, alarms: Sequence[Alarm], law: TwoScale, *, asked: bool
    ) -> None:
        self.step, self.time, self.places, self.asked = step, time, places, asked
        self._mean = law.mean()
        self._alarms = {alarm.place: alarm for alarm in alarms}

    def __getitem__(self, place: Any) -> PlaceVerdict:
        return self._verdict(self.places.position(place))

    def __iter__(self) -> Iterator[Any]:
        return (self.places.label(position) for position in self.places.positions)

    def __len__(self) -> int:
        return len(self.places.positions)

    def __repr__(self) -> str:
        new, all_of_them = len(self.alarms), len(self._alarms)
        return f"<step {self.step}: {len(self):,} places, {new:,} new alarms, {all_of_them:,} in all>"

    @property
    def alarms(self) -> list[PlaceVerdict]:
        """The places that alarmed at this step."""
        return [self._verdict(place) for place, alarm in self._alarms.items() if alarm.step == self.step]

    @property
    def frame(self) -> Any:
        """One row for each place: `place`, `verdict`, `since` (the step of its alarm), `value`, `estimate` of then."""
        import pandas as pd

        line_of = {position: line for line, position in enumerate(self.places.positions)}
        words = np.full(len(self), CERTAINLY_BELOW if self.asked else NOT_ASKED, dtype=object)
        since, value = np.full(len(self), -1, dtype=np.int64), np.full(len(self), -1, dtype=np.int64)
        for place, alarm in self._alarms.items():
            line = line_of[place]
            words[line] = ABOVE if alarm.step == self.step else ALREADY_ALARMED
            since[line], value[line] = alarm.step, alarm.value
        whole = [pd.arrays.IntegerArray(column, column < 0) for column in (since, value)]
        estimate = pd.arrays.FloatingArray(value - self._mean, value < 0)
        columns = {"since": whole[0], "value": whole[1], "estimate": estimate}
        return pd.DataFrame({"place": list(self), "verdict": words, **columns})

    def _verdict(self, position: int) -> PlaceVerdict:
        said = (self.time, self.places.label(position))
        alarm = self._alarms.get(position)
        if alarm is None:
            return PlaceVerdict(self.step, *said, CERTAINLY_BELOW if self.asked else NOT_ASKED)
        if alarm.step < self.step:
            return PlaceVerdict(self.step, *said, ALREADY_ALARMED)
        return _above(alarm, *said, self._mean)


class History(Held):
    """Everything that a monitor has published: settings, steps and verdicts.

    Read one from a state with `History.read("monitor.db")`: that needs no lock and looks at no private table.
    """

    def __init__(self, published: PublishedHistory) -> None:
        self.settings, self.steps, self.receipt = published.settings, published.steps, published.receipt
        self.replayed = published.replayed
        self.clock = Clock(**self.settings["clock"])
        self.threshold, self.epsilon = int(self.settings["threshold"]), Fraction(self.settings["epsilon"])
        self._alarms = published.alarms

    @classmethod
    def read(cls, state: str | Path) -> History:
        """Return what the monitor of a state has published."""
        return cls(read_published(state))

    def __str__(self) -> str:
        of = f"{len(self.places.positions):,} places" if self.is_map else "one place"
        steps = f"{len(self.steps):,} step{'s' * (len(self.steps) != 1)}"
        return f"{steps} of {of}, threshold {self.threshold:,}, epsilon {shown(self.epsilon)}"

    @property
    def is_map(self) -> bool:
        """Whether this is about many places at one time, not about one place over time."""
        return bool(self.settings["kind"] == "map")

    @cached_property
    def law(self) -> TwoScale:
        """The law of the noise in every count."""
        return alarm_noise(self.epsilon, step=self.settings["step"] * (self.settings["unit"]["visits"] or 1))

    @cached_property
    def places(self) -> Places:
        """The monitored places of a map."""
        return Places.of(self.settings["places"])

    @property
    def verdicts(self) -> list[PlaceVerdict]:
        """The verdicts on one place, step by step; of a map, the alarms in order."""
        if self.is_map:
            return [
                _above(alarm, map_time(self.settings, alarm.step), self.places.label(alarm.place), self.law.mean())
                for alarm in self._alarms
            ]
        rung = {alarm.step: alarm for alarm in self._alarms}
        place, window, last, found = self.settings["place"], int(self.settings["window"]), None, []
        for step in self.steps:
            last = rung.get(step, last)
            found.append(place_verdict(step, self.clock.shown(step), place, last, window, self.law))
        return found

    @cached_property
    def decided(self) -> tuple[int, ...]:
        """The steps at which places of a map were decided."""
        asked = self.settings["decide_at"]
        chosen = None if asked is None else set(asked)
        return tuple(step for step in self.steps if chosen is None or step in chosen)

    def at(self, step: int | None = None) -> MapVerdict:
        """Return what was last decided about all places, up to a step if one is named."""
        found = [taken for taken in self.decided if step is None or taken <= step]
        last = found[-1] if found else -1
        until = [alarm for alarm in self._alarms if alarm.step <= last]
        return MapVerdict(last, map_time(self.settings, last), self.places, until, self.law, asked=bool(found))

    @property
    def frame(self) -> Any:
        """The verdicts as a pandas frame: of one place by step, of a map by place after the last step."""
        import pandas as pd

        if self.is_map:
            return self.at().frame
        rows = [asdict(verdict) for verdict in self.verdicts]
        frame = pd.DataFrame(rows, columns=list(PlaceVerdict.__dataclass_fields__))
        return frame.astype({"value": "Int64", "estimate": "Float64"})

    def write_csv(self, path: str | Path) -> Path:
        """Write the frame as CSV, all or nothing, over an earlier one."""
        target = Path(path)
        with whole_file(target) as file:
            write_frame(self.frame, file)
        return target


def is_paused(step: int, last: Alarm | None, window: int) -> bool:
    """Say whether the public timer of the last alarm, before a step, still runs then: the place is silent."""
    return last is not None and step < last.step + window


def place_verdict(
    step: int, time: int | str, place: Any, last: Alarm | None, window: int, law: TwoScale
) -> PlaceVerdict:
    """Return what is said about one place at a step, whose last alarm up to this step is given."""
    if last is not None and last.step == step:
        return _above(last, time, place, law.mean())
    return PlaceVerdict(step, time, place, PAUSED if is_paused(step, last, window) else CERTAINLY_BELOW)


def _above(alarm: Alarm, time: int | str, place: Any, mean: float) -> PlaceVerdict:
    return PlaceVerdict(alarm.step, time, place, ABOVE, alarm.value, alarm.value - mean)


def map_time(settings: Mapping[str, Any], step: int) -> int | str:
    """Return the time that a map is about: the designated one, or the number of the update if there is none."""
    return step if settings["at"] is None else str(settings["at"])


def position_of(attribute: Attribute, place: Any) -> int:
    """Return the position of a place, or refuse as a plan does."""
    place = place.item() if isinstance(place, np.generic) else place
    try:
        return int(attribute.cell_position(place))
    except PolicyError as refusal:
        found = PlanError(refusal.rule, key="place", given=word_or_kind(place), fix=refusal.fix)
    raise found
