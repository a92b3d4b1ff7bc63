"""Monitors fed from a Parquet file: events per second, against DuckDB's own GROUP BY of the same file.

    python reproductions/benchmarks/bench_monitor.py [--quick]

Each is run in turns with plain DuckDB, three times, and the best time of each counts: what else the machine does at the
moment then hits both alike. The state is a file, so that every step is written and synced.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import tacit as tc

PLACES = 100_000
DAYS = 7


def write_events(path: Path, events: int) -> None:
    """Write made-up events of a week: places and people are far from equally busy."""
    duckdb.sql(
        f"""COPY (SELECT floor({PLACES} * pow(random(), 3))::INT AS place,
                         floor({max(events // 10, 1)} * sqrt(random()))::INT AS person,
                         TIMESTAMP '2024-01-01' + to_microseconds((random() * {DAYS} * 86400e6)::BIGINT) AS time
                  FROM range({events})) TO '{path}' (FORMAT parquet)"""
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(events: int = 20_000_000, *, quick: bool = False) -> dict[str, dict[str, float]]:
    """Print and return events per second and the ratio to plain DuckDB."""
    events = min(events, 2_000_000) if quick else events
    policy = tc.Policy(tc.Domain({"place": tc.Items(PLACES)}), secrets=tc.secrets.values({"place": [1]}))
    week = {"start": "2024-01-01", "every": "1 day", "window": DAYS}
    noon = {"at": "2024-01-03", "every": "1 day"}
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "one place, single visits": ("place", {"place": 0, **week}),
        "one place, people": ("place", {"place": 0, **week, "person": "person", "visits_per_person": 3}),
        "all places, whole week": ("map", {}),
        "all places, one day": ("map", noon),
        "all places, one day, people": ("map", {**noon, "person": "person"}),
    }
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        write_events(path, events)
        print(f"{events:,} events, {PLACES:,} places, {path.stat().st_size / 1e6:,.0f} MB")

        def plain() -> object:
            # a connection of its own, as a monitor has, so that neither profits from the other's cached metadata
            with duckdb.connect() as connection:
                query = f"SELECT place, time_bucket(INTERVAL 1 DAY, time) AS day, count(*) FROM '{path}' GROUP BY ALL"
                return connection.sql(query).to_arrow_table()

        for name, (kind, options) in cases.items():
            times = []
            for run in range(3):
                shared = {"threshold": 1000, "epsilon": 1, "state": Path(folder) / f"{len(found)}-{run}.db", **options}
                make: Any = tc.PlaceMonitor if kind == "place" else tc.MapMonitor
                with make(policy, **shared) as monitor:
                    step = DAYS - 1 if kind == "place" else None  # all events of the week are within the window
                    times.append((seconds(plain), seconds(lambda: monitor.feed(path, step=step))))  # noqa: B023
            best_plain, best = (min(column) for column in zip(*times, strict=True))
            found[name] = {"events_per_second": events / best, "ratio": best / best_plain}
            print(
                f"{name:30s} DuckDB {best_plain:6.2f} s   Tacit {best:6.2f} s   ratio {best / best_plain:5.2f}   "
                f"{events / best / 1e6:7.1f} million events/s"
            )
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
