"""Charts of monitors: verdicts over time, and a map whose points say certainly safe or alarm.

Drawn from a `History`, which holds published verdicts and nothing else.
Colours are those of `report/charts/release_charts.py`: blue for what is certainly below, orange for an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import altair as alt

from tacit.amounts import shown
from tacit.errors import PlanError, printable
from tacit.monitor.alarm import ABOVE, CERTAINLY_BELOW
from tacit.monitor.clock import UNITS
from tacit.monitor.history import PAUSED, History, PlaceVerdict
from tacit.report.charts.chart_parts import ALONE, BLUE, LEVEL, LINE, SKY, WIDTH, fitted, styled, tip
from tacit.report.charts.points import read_points

Row = dict[str, Any]

ORANGE: Final = "#E69F00"
GREY: Final = "#dddddd"
COLOURS: Final = {CERTAINLY_BELOW: SKY, ABOVE: ORANGE, PAUSED: GREY}
SAFE: Final = "certainly safe"
ALARM: Final = "alarm"
UNDECIDED: Final = "not decided yet"
MOST_STEPS: Final = 1_000
MOST_POINTS: Final = 10_000
FEWEST_SAFE: Final = 1_000


def monitor_chart(history: History, *, points: Any = None, step: int | None = None) -> Any:
    """Return a chart of what a monitor has said: one place over time, places on a map, or alarms by update.

    `points` says where places are: a mapping from place to (latitude, longitude), a frame, or a CSV file, both with the
    columns place, lat and lon. `step` shows a map as it was then.
    """
    if not history.is_map:
        if points is not None or step is not None:
            raise PlanError("is for monitors of many places", key="points" if step is None else "step", fix="Leave it.")
        return _over_time(history)
    return _by_update(history) if points is None else _on_map(history, read_points(points), step)


def monitor_text(history: History) -> str:
    """Return what a monitor has said in a sentence or two, for readers who cannot see the chart."""
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
    many = {word: sum(verdict.verdict == word for verdict in verdicts) for word in COLOURS}
    said = ", ".join(f"{word} {count:,} times" for word, count in many.items() if count)
    return f"{len(verdicts):,} steps: {said}. Last: {verdict_text(verdicts[-1])}."


def verdict_text(verdict: PlaceVerdict) -> str:
    """Return a verdict in a few words.

    >>> verdict_text(PlaceVerdict(3, 3, "gym", "above", 7, 6.418))
    'above: at most 7, about 6.4'
    """
    if verdict.value is None or verdict.estimate is None:
        return verdict.verdict
    return f"{verdict.verdict}: at most {verdict.value:,}, about {verdict.estimate:,.1f}"


def _over_time(history: History) -> Any:
    """Draw one place: bands up to the threshold where it is certainly below, estimates where it alarmed."""
    verdicts = history.verdicts
    notes = [
        "The number of visits is within the coloured bar, for certain; in grey steps the monitor is silent after an "
        "alarm. A dot is an estimate (of the threshold, if there are fewer visits), with its 95% interval."
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
    domain = list(COLOURS)
    colour = alt.Color(
        "verdict:N",
        title=None,
        scale=alt.Scale(domain=domain, range=[COLOURS[word] for word in domain]),
        legend=alt.Legend(orient="bottom"),
    )
    kind = "T" if history.clock.dates else "Q"
    y = alt.Y("bottom:Q", title="visits that count", scale=alt.Scale(domain=[0, highest], nice=False))
    tips = [tip("said", "time" if history.clock.dates else "step"), tip("verdict", "verdict")]
    bands = (
        alt.Chart(alt.Data(values=rows))
        .mark_rect(stroke="white", strokeWidth=0.3)
        .encode(x=_time_axis(history), x2="until", y=y, y2="top", color=colour, tooltip=tips)
    )
    line = alt.Chart(alt.Data(values=[{"at": history.threshold, "said": f"threshold {history.threshold:,}"}]))
    rule = line.mark_rule(color=LINE, strokeDash=[5, 3]).encode(y="at:Q")
    base = alt.Chart(alt.Data(values=alarms))
    whiskers = base.mark_rule(color=LINE, strokeWidth=1.5).encode(x=f"middle:{kind}", y="lower:Q", y2="upper")
    dots = base.mark_point(filled=True, color=LINE, size=30, opacity=1).encode(
        x=f"middle:{kind}",
        y="value:Q",
        tooltip=[*tips, tip("value:Q", "estimate"), tip("upper:Q", "certainly at most")],
    )
    title = f"Is {printable(str(history.settings['place']))} below {history.threshold:,} visits?"
    said = f"Epsilon {shown(history.epsilon)} for {_unit(history)}; window of {history.settings['window']:,} steps."
    view = alt.layer(bands, rule, *([whiskers, dots] if alarms else []))
    return styled(fitted(view, ALONE), title, [said, *notes]).properties(description=monitor_text(history))


def _band(history: History, verdict: PlaceVerdict, highest: float) -> Row:
    clock = history.clock
    start, end = (_position(history, clock.tick(step)) for step in (verdict.step, verdict.step + 1))
    # a bar that says "none, for certain" has to be seen as well
    tops = {CERTAINLY_BELOW: max(history.threshold - 1, highest / 50), ABOVE: verdict.value, PAUSED: highest}
    return {
        "from": start,
        "until": end,
        "middle": (start + end) / 2,
        "bottom": 0,
        "top": tops[verdict.verdict],
        "verdict": verdict.verdict,
        "said": str(verdict.time),
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
    """Draw how many places are still certainly below, decision after decision."""
    places, alarmed = len(history.places.positions), 0
    by_step: dict[int, int] = {}
    for verdict in history.verdicts:
        by_step[verdict.step] = by_step.get(verdict.step, 0) + 1
    rows: list[Row] = []
    for number, step in enumerate(history.decided, start=1):
        alarmed += by_step.get(step, 0)
        rows.append({"update": number, "kind": SAFE, "places": places - alarmed, "order": 0})
        rows.append({"update": number, "kind": ALARM, "places": alarmed, "order": 1})
    bars = (
        alt.Chart(alt.Data(values=rows[-2 * MOST_STEPS :]))
        .mark_bar()
        .encode(
            x=alt.X("update:O", title="decision", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y("places:Q", title="places", axis=alt.Axis(format=",d")),
            color=_safe_or_alarm(),
            order="order:Q",
            tooltip=[tip("update", "decision"), tip("kind", "verdict"), alt.Tooltip("places:Q", format=",d")],
        )
    )
    drawn = styled(fitted(bars, ALONE), _map_title(history), [_map_subtitle(history)])
    return drawn.properties(description=monitor_text(history))


def _on_map(history: History, points: Mapping[str, tuple[float, float]], step: int | None) -> Any:
    """Draw every place that has a point, safe ones first, so that no alarm is hidden."""
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
    drawn = (
        alt.Chart(alt.Data(values=[*safe, *alarms]))
        .mark_circle(size=22 if len(rows) > 300 else 60, opacity=0.85)
        .encode(
            x=alt.X("lon:Q", title="longitude", **degrees),
            y=alt.Y("lat:Q", title="latitude", **degrees),
            color=_safe_or_alarm(decided=verdict.asked),
            tooltip=[tip("place", "place"), tip("kind", "verdict")],
        )
    )
    title, said = _map_title(history), _map_subtitle(history, verdict.step)
    shaped = fitted(drawn, ALONE, height=_map_height(rows))
    return styled(shaped, title, [said, *notes]).properties(description=monitor_text(history))


def _map_height(rows: list[Row]) -> int:
    """Return the height at which a degree of longitude is as much shorter as it is on the ground."""
    lats, lons = [row["lat"] for row in rows], [row["lon"] for row in rows]
    tall, middle = max(lats) - min(lats), (max(lats) + min(lats)) / 2
    wide = (max(lons) - min(lons)) * max(math.cos(math.radians(min(max(middle, -85), 85))), 0.05)
    ratio = tall / wide if wide > 0 and tall > 0 else 1.0
    return int((WIDTH - 60) * min(max(ratio, 0.4), 1.6))


def _safe_or_alarm(*, decided: bool = True) -> Any:
    scale = alt.Scale(domain=[SAFE, ALARM, UNDECIDED], range=[BLUE, ORANGE, "#999999"])
    legend = alt.Legend(orient="bottom", values=[SAFE, ALARM] if decided else [UNDECIDED])
    return alt.Color("kind:N", title=None, scale=scale, legend=legend)


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
