"""What monitors have published: a table, charts of verdicts over time and on a map, and the files of each monitor.

Drawn from a `History`, which holds published verdicts and nothing else. Blue is for what is certainly below, orange for
an alarm.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import altair as alt
from rich.table import Table
from rich.text import Text

from tacit.amounts import shown
from tacit.errors import PlanError, printable, system_reason
from tacit.monitor.alarm import ABOVE, CERTAINLY_BELOW
from tacit.monitor.clock import UNITS
from tacit.monitor.history import PAUSED, History, PlaceVerdict
from tacit.release.results.value_files import whole_file
from tacit.report.charts.chart_parts import (
    ALONE,
    BLUE,
    LEVEL,
    LINE,
    ORANGE,
    SKY,
    WIDTH,
    Row,
    chart_of,
    coloured,
    fitted,
    styled,
    tip,
)
from tacit.report.charts.release_charts import chart_svg

GREY: Final = "#dddddd"
COLOURS: Final = {CERTAINLY_BELOW: SKY, ABOVE: ORANGE, PAUSED: GREY}
SAFE: Final = "certainly safe"
ALARM: Final = "alarm"
UNDECIDED: Final = "not decided yet"
MOST_STEPS: Final = 1_000
MOST_POINTS: Final = 10_000
FEWEST_SAFE: Final = 1_000
_LATITUDE: Final = ("lat", "latitude", "y")
_LONGITUDE: Final = ("lon", "lng", "long", "longitude", "x")


def history_table(histories: Mapping[str, History]) -> Table:
    """Return the last verdict of each monitor as a table for the terminal."""
    table = Table(title="Monitors")
    for name in ("monitor", "of"):
        table.add_column(name, overflow="fold")
    for name in ("threshold", "epsilon", "steps", "alarms"):
        table.add_column(name, justify="right")
    table.add_column("last verdict")
    for name, history in histories.items():
        verdicts = history.verdicts
        alarms = sum(verdict.verdict == ABOVE for verdict in verdicts)
        places = len(history.places.positions) if history.is_map else 0
        of = f"{places:,} places" if history.is_map else str(history.settings["place"])
        last = f"{places - alarms:,} certainly below" if history.is_map and history.decided else "nothing yet"
        if verdicts and not history.is_map:
            last = f"step {verdicts[-1].step}: {verdict_text(verdicts[-1])}"
        numbers = (f"{history.threshold:,}", shown(history.epsilon), f"{len(history.steps):,}", f"{alarms:,}")
        table.add_row(*(Text(printable(part)) for part in (name, of, *numbers, last)))
    return table


def write_monitor(
    history: History, certificate: Mapping[str, Any], folder: Path, name: str, points: Any = None
) -> None:
    """Write NAME.csv, NAME.certificate.json and NAME.svg, each of them completely or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    history.write_csv(folder / f"{name}.csv")
    with whole_file(folder / f"{name}.certificate.json") as file:
        file.write(json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
    chart = chart_svg(monitor_chart(history, points=points if history.is_map else None))
    with whole_file(folder / f"{name}.svg") as file:
        file.write(chart)


def monitor_chart(history: History, *, points: Any = None, step: int | None = None) -> Any:
    """Return a chart of verdicts: of one place over time, of places on a map, or of the number of alarms.

    `points` says where places are: a mapping from place to (latitude, longitude), a frame, or a CSV file, both with the
    columns place, lat and lon. `step` shows a map as it was then.
    """
    if not history.is_map:
        if points is not None or step is not None:
            raise PlanError("is for monitors of many places", key="points" if step is None else "step", fix="Leave it.")
        return _over_time(history)
    return _by_update(history) if points is None else _on_map(history, read_points(points), step)


def monitor_text(history: History) -> str:
    """Return the verdicts of a monitor in a sentence or two, for readers who cannot see the chart."""
    verdicts = history.verdicts
    if history.is_map:
        if not history.decided:
            return "Nothing was decided yet."
        places, alarms, updates = len(history.places.positions), len(verdicts), len(history.decided)
        return (
            f"{places:,} places after {updates:,} decision{'s' * (updates != 1)}: {places - alarms:,} certainly below "
            f"{history.threshold:,}, {alarms:,} alarmed."
        )
    if not verdicts:
        return "No step was taken yet."
    counts = Counter(verdict.verdict for verdict in verdicts)
    times = ", ".join(f"{word} {counts[word]:,} times" for word in COLOURS if counts[word])
    return f"{len(verdicts):,} steps: {times}. Last: {verdict_text(verdicts[-1])}."


def verdict_text(verdict: PlaceVerdict) -> str:
    """Return a verdict in a few words.

    >>> verdict_text(PlaceVerdict(3, 3, "gym", "above", 7, 6.418))
    'above: at most 7, about 6.4'
    """
    if verdict.value is None or verdict.estimate is None:
        return verdict.verdict
    return f"{verdict.verdict}: at most {verdict.value:,}, about {verdict.estimate:,.1f}"


def _over_time(history: History) -> Any:
    """Draw one place: a band up to the threshold where it is certainly below, an estimate where it alarmed."""
    verdicts = history.verdicts
    notes = [
        "The number of visits is certainly within the coloured bar; in grey steps the monitor pauses after an alarm. "
        "A dot is an estimate (of the threshold, if there are fewer visits), with its 95% interval."
    ]
    if len(verdicts) > MOST_STEPS:
        notes.append(f"The last {MOST_STEPS:,} of {len(verdicts):,} steps.")
        verdicts = verdicts[-MOST_STEPS:]
    reach = history.law.quantile(LEVEL)
    highest = 1.1 * max([history.threshold * 1.2, *(verdict.value or 0 for verdict in verdicts)])
    rows = [_band(history, verdict, highest) for verdict in verdicts]
    alarms = [
        {
            **row,
            "value": round(max(float(verdict.estimate or 0), history.threshold), 2),
            "lower": max(history.threshold, (verdict.value or 0) - reach),
            "upper": verdict.value,
        }
        for row, verdict in zip(rows, verdicts, strict=True)
        if verdict.verdict == ABOVE
    ]
    colour = coloured("verdict:N", list(COLOURS), list(COLOURS.values()), orient="bottom")
    kind = "T" if history.clock.dates else "Q"
    y = alt.Y("bottom:Q", title="visits that count", scale=alt.Scale(domain=[0, highest], nice=False))
    tips = [tip("text", "time" if history.clock.dates else "step"), tip("verdict", "verdict")]
    bands = chart_of(rows).mark_rect(stroke="white", strokeWidth=0.3)
    bands = bands.encode(x=_time_axis(history), x2="until", y=y, y2="top", color=colour, tooltip=tips)
    rule = chart_of([{"at": history.threshold}]).mark_rule(color=LINE, strokeDash=[5, 3]).encode(y="at:Q")
    base = chart_of(alarms)
    whiskers = base.mark_rule(color=LINE, strokeWidth=1.5).encode(x=f"middle:{kind}", y="lower:Q", y2="upper")
    dots = base.mark_point(filled=True, color=LINE, size=30, opacity=1).encode(
        x=f"middle:{kind}",
        y="value:Q",
        tooltip=[*tips, tip("value:Q", "estimate"), tip("upper:Q", "certainly at most")],
    )
    title = f"Is {printable(str(history.settings['place']))} below {history.threshold:,} visits?"
    cost = f"Epsilon {shown(history.epsilon)} for {_unit(history)}; window of {history.settings['window']:,} steps."
    view = alt.layer(bands, rule, *([whiskers, dots] if alarms else []))
    return styled(fitted(view, ALONE), title, [cost, *notes]).properties(description=monitor_text(history))


def _band(history: History, verdict: PlaceVerdict, highest: float) -> Row:
    clock = history.clock
    start, end = (_position(history, clock.tick(step)) for step in (verdict.step, verdict.step + 1))
    # a bar for "certainly none" must be visible too
    tops = {CERTAINLY_BELOW: max(history.threshold - 1, highest / 50), ABOVE: verdict.value, PAUSED: highest}
    return {
        "from": start,
        "until": end,
        "middle": (start + end) / 2,
        "bottom": 0,
        "top": tops[verdict.verdict],
        "verdict": verdict.verdict,
        "text": str(verdict.time),
    }


def _position(history: History, tick: int) -> float:
    return tick / 1000 if history.clock.dates else float(tick)  # a chart's dates are milliseconds


def _time_axis(history: History) -> Any:
    if history.clock.dates:
        days = "%Y-%m-%d" if history.clock.every >= UNITS["day"] else "%m-%d %H:%M"
        axis = alt.Axis(format=days, labelOverlap=True, tickCount=6)
        return alt.X("from:T", title=None, scale=alt.Scale(type="utc", nice=False), axis=axis)
    axis = alt.Axis(format=",d", tickMinStep=history.clock.every, tickCount=8)
    return alt.X("from:Q", title="step", axis=axis, scale=alt.Scale(nice=False, zero=False))


def _by_update(history: History) -> Any:
    """Draw the number of places that are still certainly below after each decision."""
    places, alarmed = len(history.places.positions), 0
    by_step = Counter(verdict.step for verdict in history.verdicts)
    rows: list[Row] = []
    for number, step in enumerate(history.decided, start=1):
        alarmed += by_step[step]
        rows.append({"update": number, "kind": SAFE, "places": places - alarmed, "order": 0})
        rows.append({"update": number, "kind": ALARM, "places": alarmed, "order": 1})
    bars = chart_of(rows[-2 * MOST_STEPS :]).mark_bar()
    chart = bars.encode(
        x=alt.X("update:O", title="decision", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        y=alt.Y("places:Q", title="places", axis=alt.Axis(format=",d")),
        color=_safe_or_alarm(),
        order="order:Q",
        tooltip=[tip("update", "decision"), tip("kind", "verdict"), alt.Tooltip("places:Q", format=",d")],
    )
    titled = styled(fitted(chart, ALONE), _map_title(history), [_map_subtitle(history)])
    return titled.properties(description=monitor_text(history))


def _on_map(history: History, points: Mapping[str, tuple[float, float]], step: int | None) -> Any:
    """Draw every place that has a point, alarms last and so on top."""
    verdict = history.at(step)
    alarmed = {str(one.place) for one in history.verdicts if one.step <= verdict.step}
    rows: list[Row] = []
    without = 0
    for place in verdict:
        name = str(place)
        if name not in points:
            without += 1
            continue
        lat, lon = points[name]
        kind = ALARM if name in alarmed else SAFE if verdict.asked else UNDECIDED
        rows.append({"place": printable(name), "lat": lat, "lon": lon, "kind": kind})
    notes = []
    if not rows:
        raise PlanError("must have a point for a monitored place", key="points", fix="Use the names of the domain.")
    if without:
        notes.append(f"{without:,} places without a point are left out.")
    safe, alarms = ([row for row in rows if (row["kind"] == ALARM) == is_alarm] for is_alarm in (False, True))
    if len(safe) + len(alarms) > MOST_POINTS and len(safe) > 1:
        every = math.ceil(len(safe) / max(MOST_POINTS - len(alarms), FEWEST_SAFE))
        notes.append(f"Of {len(safe):,} safe places one in {every} is shown, and all alarms.")
        safe = safe[::every]
    degrees = {"scale": alt.Scale(zero=False, padding=8), "axis": alt.Axis(format="~f", tickCount=5)}
    circles = chart_of([*safe, *alarms]).mark_circle(size=22 if len(rows) > 300 else 60, opacity=0.85)
    chart = circles.encode(
        x=alt.X("lon:Q", title="longitude", **degrees),
        y=alt.Y("lat:Q", title="latitude", **degrees),
        color=_safe_or_alarm(decided=verdict.asked),
        tooltip=[tip("place", "place"), tip("kind", "verdict")],
    )
    shaped = fitted(chart, ALONE, height=_map_height(rows))
    titled = styled(shaped, _map_title(history), [_map_subtitle(history, verdict.step), *notes])
    return titled.properties(description=monitor_text(history))


def _map_height(rows: list[Row]) -> int:
    """Return the height of the map, at which its degrees have the proportions that they have on the ground."""
    lats, lons = [row["lat"] for row in rows], [row["lon"] for row in rows]
    tall, middle = max(lats) - min(lats), (max(lats) + min(lats)) / 2
    wide = (max(lons) - min(lons)) * max(math.cos(math.radians(min(max(middle, -85), 85))), 0.05)
    ratio = tall / wide if wide > 0 and tall > 0 else 1.0
    return int((WIDTH - 60) * min(max(ratio, 0.4), 1.6))


def _safe_or_alarm(*, decided: bool = True) -> Any:
    values = [SAFE, ALARM] if decided else [UNDECIDED]
    return coloured("kind:N", [SAFE, ALARM, UNDECIDED], [BLUE, ORANGE, "#999999"], orient="bottom", values=values)


def _map_title(history: History) -> str:
    at = history.settings["at"]
    when = "" if at is None else f" at {printable(at)}"
    return f"Places below {history.threshold:,} visits{when}"


def _map_subtitle(history: History, step: int | None = None) -> str:
    last = step if step is not None else (history.decided[-1] if history.decided else -1)
    updates = sum(taken <= last for taken in history.decided)
    alarms = sum(verdict.step <= last for verdict in history.verdicts)
    if not updates:
        return f"Nothing was decided yet. Epsilon {shown(history.epsilon)} for {_unit(history)}."
    return (
        f"After {updates:,} decision{'s' * (updates != 1)}: {len(history.places.positions) - alarms:,} certainly safe, "
        f"{alarms:,} alarmed (which may be noise). Epsilon {shown(history.epsilon)} for "
        f"{_unit(history)}."
    )


def _unit(history: History) -> str:
    visits = history.settings["unit"]["visits"]
    return "one visit" if visits is None else f"one person ({visits} visit{'s' * (visits != 1)})"


# ---- where places are ----------------------------------------------------------------------------------------------


def read_points(points: Any) -> dict[str, tuple[float, float]]:
    """Return the point of each place by the text of its name, from a mapping, a frame or a CSV file."""
    if isinstance(points, Mapping):
        pairs = [(place, *at) for place, at in points.items() if isinstance(at, tuple | list) and len(at) == 2]
        return _located(pairs, len(points))
    if isinstance(points, str | Path):
        table = _table(Path(points))
    elif hasattr(points, "columns") and hasattr(points, "__getitem__"):
        table = {str(name): list(points[name]) for name in points.columns}
    else:
        raise _no_points(points)
    place = next(iter(table), "") if "place" not in table else "place"
    columns = [next((name for name in table if name.lower() in known), None) for known in (_LATITUDE, _LONGITUDE)]
    if columns[0] is None or columns[1] is None or place in columns:
        raise _no_points(list(table))
    return _located(list(zip(table[place], table[columns[0]], table[columns[1]], strict=True)), len(table[place]))


def _located(rows: list[Any], expected: int) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for place, lat, lon in rows:
        try:
            at = float(lat), float(lon)
        except (TypeError, ValueError):
            continue
        if all(map(math.isfinite, at)):
            found.setdefault(str(place), at)
    if expected and not found:
        raise _no_points("no number among the coordinates")
    return found


def _table(path: Path) -> dict[str, list[Any]]:
    why = ""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as fault:
        rows, why = [], f" that can be read ({system_reason(fault)})"
    except (UnicodeDecodeError, csv.Error):
        rows = []
    if not rows:
        raise PlanError(f"must be a CSV file with rows{why}", key="points", given=str(path), fix="Check the path.")
    return {name: [row[name] for row in rows] for name in rows[0] if name}


def _no_points(given: Any) -> PlanError:
    rule = "must have the columns place, lat and lon"
    fix = "Give a CSV file, a frame, or {place: (latitude, longitude)}."
    return PlanError(rule, key="points", given=given, fix=fix)
