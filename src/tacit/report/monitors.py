"""What monitors have said: a table for the terminal, and the files that are published of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from tacit.amounts import shown
from tacit.errors import printable
from tacit.monitor.alarm import ABOVE
from tacit.monitor.history import History
from tacit.release.results.value_files import whole_file
from tacit.report.charts.monitor_chart import monitor_chart, verdict_text
from tacit.report.charts.release_charts import chart_svg


def history_table(histories: Mapping[str, History]) -> Table:
    """Return what monitors have said last, one line each, for the terminal."""
    table = Table(title="Monitors")
    for name in ("monitor", "of"):
        table.add_column(name, overflow="fold")
    for name in ("threshold", "epsilon", "steps", "alarms"):
        table.add_column(name, justify="right")
    table.add_column("last said")
    for name, history in histories.items():
        verdicts = history.verdicts
        alarms = sum(verdict.verdict == ABOVE for verdict in verdicts)
        places = len(history.places.positions) if history.is_map else 0
        of = f"{places:,} places" if history.is_map else str(history.settings["place"])
        last = f"{places - alarms:,} certainly below" if history.is_map and history.decided else "nothing yet"
        if verdicts and not history.is_map:
            last = f"step {verdicts[-1].step}: {verdict_text(verdicts[-1])}"
        said = (name, of, f"{history.threshold:,}", shown(history.epsilon), f"{len(history.steps):,}", f"{alarms:,}")
        table.add_row(*(Text(printable(part)) for part in (*said, last)))
    return table


def write_monitor(
    history: History, certificate: Mapping[str, Any], folder: Path, name: str, points: Any = None
) -> None:
    """Write what was published about one monitor: NAME.csv, NAME.certificate.json and NAME.svg, each all or nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    history.write_csv(folder / f"{name}.csv")
    with whole_file(folder / f"{name}.certificate.json") as file:
        file.write(json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")
    located = points if history.is_map else None
    drawn = chart_svg(monitor_chart(history, points=located))
    with whole_file(folder / f"{name}.svg") as file:
        file.write(drawn)
