"""`tacit bench`: measure this machine with the repository's own benchmarks, which stand with the reproductions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tacit.cli.reproduce import reproductions
from tacit.cli.screen import AsJson


class Benchmark(StrEnum):
    """What can be measured."""

    noise = "noise"
    rows = "rows"
    top_k = "top_k"
    monitor = "monitor"
    plan = "plan"
    clusters = "clusters"
    grids = "grids"
    lines = "lines"
    disclosure = "disclosure"
    tables = "tables"
    records = "records"


def run_benchmarks(
    which: Annotated[Benchmark | None, typer.Argument(help="What to measure; everything if not given.")] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes: seconds instead of minutes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure noise, counting, lists, monitors, plans, clusters, ranges, audits, tables, records, beside baselines."""
    with reproductions():
        from tacit_reproductions.command import show_benchmarks
    show_benchmarks([name.value for name in Benchmark if which in (None, name)], quick=quick, as_json=as_json)
