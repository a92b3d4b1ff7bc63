"""`tacit monitor run|show|schema`: watch places in files of events as they arrive, and show their verdicts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.screen import AsJson, LogFormat, SetVariables, from_here, log, note, show, show_json, write_chart
from tacit.errors import DataRefused, PlanError

if TYPE_CHECKING:
    from tacit.jobs.monitor_file import MonitorFile, OpenMonitors
    from tacit.monitor.history import History, MapVerdict, PlaceVerdict

monitor_app = typer.Typer(help="Watch places in files of events, and show their verdicts.", rich_markup_mode=None)
NAMED_ALARMS = 5


@monitor_app.command("run", short_help="Feed files of events to the monitors of a file.")
def run_monitors(
    config: Annotated[Path, typer.Argument(metavar="CONFIG.yaml", help="The monitor file.")],
    *,
    follow: Annotated[
        Path | None, typer.Option("--follow", metavar="FOLDER", help="Read files from this folder as they arrive.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Read the files that are there, and stop.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.05, help="Seconds between two looks at the folder.")
    ] = 2.0,
    variables: SetVariables = None,
    log_format: LogFormat = "text",
    as_json: AsJson = False,
) -> None:
    """Read each new file of events as one step, in the order of names; write verdicts, certificates and charts.

    No file is read twice, even after a crash or a restart. Write each file under a name that begins with a dot or an
    underscore, and rename it when it is complete. With --follow the command runs until it is stopped; with --json it
    then prints one document per line.
    """
    from tacit.jobs.monitor_file import event_files, read_monitor_file
    from tacit.jobs.variables import read_variables
    from tacit.report.charts.monitor_charts import read_points

    found = read_monitor_file(config, read_variables(variables))
    if found.points is not None:
        read_points(found.points)  # what is wrong with it is said before anything is charged
    where = str(follow) if follow is not None else found.batches
    if where is None:
        fix = "Add --follow FOLDER, or `batches: events/*.csv`."
        raise PlanError("must be named", key="batches", file=str(config), fix=fix)
    if follow is not None and not follow.is_dir():
        raise PlanError("must be a folder", key="--follow", given=str(follow), fix="Create it first.")
    endless = follow is not None and not once
    if follow is None and not event_files(where):
        # a typing error must not cost the life's epsilon of every monitor
        raise PlanError("must match a file of events", key="batches", given=where, fix="Check the pattern.")
    steps = []
    with found.open() as opened:
        _publish(found, opened)
        if not as_json:
            show(_begun(found, where))
        try:
            for file in _files(where, opened, interval if endless else None):
                verdicts = _taken(file, opened, patient=endless)
                if verdicts is None:
                    continue
                if endless:
                    _publish(found, opened)
                step = {"file": file.name, "verdicts": {name: _document(verdict) for name, verdict in verdicts.items()}}
                steps.append(step)
                log("taken", file=file.name)
                if as_json and endless:
                    show(json.dumps(step))
                elif not as_json:
                    show(
                        f"{file.name}: " + "; ".join(f"{name} {_words(verdict)}" for name, verdict in verdicts.items())
                    )
        finally:
            if steps:
                _publish(found, opened)  # also what was said before a file that could not be read
    if as_json and not endless:
        show_json({"name": found.name, "cost": str(found.cost), "out": str(found.out), "steps": steps})
    elif not as_json:
        show(f"Taken: {len(steps)} new file{'s' * (len(steps) != 1)}. Verdicts are in {from_here(found.out)}.")


@monitor_app.command("show", short_help="Show what monitors have published.")
def show_monitors(
    states: Annotated[list[Path], typer.Argument(metavar="STATE..", help="States of monitors, or a folder of them.")],
    *,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the verdicts to this file.")] = None,
    chart: Annotated[
        Path | None, typer.Option("--chart", metavar="FILE", help="Write a chart to this .svg or .png file.")
    ] = None,
    points: Annotated[
        Path | None, typer.Option("--points", metavar="CSV", help="A file with place, lat and lon, to draw a map.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show verdicts that were published. Private tables are not read, and a running monitor is not disturbed."""
    from tacit.monitor.history import History

    files = [file for state in states for file in (sorted(state.glob("*.db")) if state.is_dir() else [state])]
    if not files:
        raise PlanError("must hold states of monitors", key="STATE", given=str(states[0]), fix="Check the path.")
    histories = {file: History.read(file) for file in files}
    if len(files) > 1 and (csv is not None or chart is not None):
        raise PlanError("must be one state for --csv and --chart", key="STATE", given=len(files), fix="Name one.")
    for history in histories.values():
        if csv is not None:
            history.write_csv(csv)
        if chart is not None:
            _draw(history, chart, points)
    if as_json:
        show_json({"monitors": [_history(file, history) for file, history in histories.items()]})
        return
    from tacit.report.charts.monitor_charts import history_table

    show(history_table({file.stem: history for file, history in histories.items()}))


@monitor_app.command("schema", short_help="Print the JSON schema of monitor files.")
def show_monitor_schema(*, as_json: AsJson = False) -> None:
    """Print the JSON schema of monitor files; editors use it to complete and check them."""
    from tacit.jobs.monitor_file import monitor_schema

    show_json(monitor_schema())  # a schema is JSON with or without --json


def _files(where: str, opened: OpenMonitors, interval: float | None) -> Iterator[Path]:
    """Yield files that were not taken yet: those that are there, or with an interval all that ever come.

    A file that comes while we watch is taken when it has not changed between two looks; one that was refused is tried
    again when it has.
    """
    from tacit.jobs.monitor_file import event_files

    before: dict[str, tuple[int, int]] = {}
    tried: dict[str, tuple[int, int]] = {}
    done: set[str] = set()
    while True:
        now: dict[str, tuple[int, int]] = {}
        for file in event_files(where):
            if file.name in done:
                continue
            if opened.have_taken(file):
                done.add(file.name)
                continue
            try:
                seen = file.stat()
            except FileNotFoundError:  # removed since it was listed
                continue
            now[file.name] = (seen.st_size, seen.st_mtime_ns)
            settled = interval is None or before.get(file.name) == now[file.name]
            if settled and tried.get(file.name) != now[file.name]:
                tried[file.name] = now[file.name]
                yield file
        if interval is None:
            return
        before = now
        time.sleep(interval)


def _taken(file: Path, opened: OpenMonitors, *, patient: bool) -> dict[str, PlaceVerdict | MapVerdict] | None:
    """Feed one file; one that cannot be read is left for later where we go on watching."""
    try:
        return opened.feed(file)
    except DataRefused as refusal:
        if not patient:
            raise
        note(f"tacit: {file.name} was not taken, and will be tried again when it changes: {refusal}")
        return None


def _publish(found: MonitorFile, opened: OpenMonitors) -> None:
    from tacit.report.charts.monitor_charts import write_monitor

    for name, monitor in opened.monitors.items():
        write_monitor(monitor.history, monitor.certificate, found.out, name, found.points)


def _draw(history: History, file: Path, points: Path | None) -> None:
    from tacit.report.charts.monitor_charts import monitor_chart

    picture = monitor_chart(history, points=points)
    if file.suffix.lower() not in (".svg", ".png"):
        raise PlanError("must end in .svg or .png", key="--chart", given=str(file), fix="Rename it.")
    write_chart(picture, file)


def _begun(found: MonitorFile, where: str) -> str:
    from tacit.amounts import shown

    many = len(found.options)
    paid = "" if found.ledger is None else f", charged to {found.dataset}"
    return f"{many} monitor{'s' * (many != 1)}, epsilon {shown(found.cost)} in all{paid}; events from {where}."


def _words(verdict: PlaceVerdict | MapVerdict) -> str:
    from tacit.monitor.history import NOT_ASKED, MapVerdict
    from tacit.report.charts.monitor_charts import verdict_text

    if not isinstance(verdict, MapVerdict):
        return f"{verdict_text(verdict)} (at {verdict.time})"  # a late file is no verdict about its own day
    if not verdict.asked:
        return NOT_ASKED
    rung = [str(alarm.place) for alarm in verdict.alarms]
    named = ", ".join(rung[:NAMED_ALARMS]) + (", .." if len(rung) > NAMED_ALARMS else "")
    return f"{len(rung)} new alarm{'s' * (len(rung) != 1)}" + (f" ({named})" if rung else "")


def _document(verdict: PlaceVerdict | MapVerdict) -> dict[str, Any]:
    from dataclasses import asdict

    from tacit.monitor.history import MapVerdict

    if not isinstance(verdict, MapVerdict):
        return asdict(verdict)
    alarms = [asdict(alarm) for alarm in verdict.alarms]
    words = {"step": verdict.step, "time": verdict.time, "asked": verdict.asked}
    return {**words, "places": len(verdict), "new_alarms": alarms}


def _history(file: Path, history: History) -> dict[str, Any]:
    from dataclasses import asdict

    settings = history.settings
    settings_shown = ("kind", "attribute", "place", "at", "threshold", "epsilon", "window", "unit")
    return {
        "state": str(file),
        **{key: settings[key] for key in settings_shown if key in settings},
        "steps": len(history.steps),
        "alarms" if history.is_map else "verdicts": [asdict(verdict) for verdict in history.verdicts],
        "ledger": history.receipt,
    }
