"""`tacit reproduce 001..004` and `tacit bench`: figures of a paper and what it claims, and the speed of this machine.

The work is done by `tacit_reproductions`, a distribution of its own in the folder `reproductions/` of the repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.screen import AsJson
from tacit.errors import Refused


class Paper(StrEnum):
    """The documents whose figures can be recomputed."""

    dependence = "001"
    asymmetric = "002"
    blowfish = "003"
    disclosure = "004"


@contextmanager
def reproductions() -> Iterator[None]:
    """Refuse if the reproductions, which are imported inside, are not installed."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name != "tacit_reproductions":
            raise
        fix = "Say `pip install -e reproductions` in a clone of the repository."
        raise Refused("are not installed", key="reproductions", fix=fix) from None


def reproduce_paper(
    paper: Annotated[
        Paper,
        typer.Argument(
            help="001: one-sided privacy of dependent attributes; 002: asymmetric differential privacy; 003: Blowfish; "
            "004: disclosure and reconstruction."
        ),
    ],
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few runs and one data set per figure: seconds instead of minutes.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FOLDER", help="The data sets; by default $TACIT_DATA, ./data, ../data or ../shared/data."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FOLDER", help="Also write the tables and the charts here.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Draw new noise; without it everybody gets the same numbers.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute the figures of a paper, and say for each claim what we find and whether it holds."""
    with reproductions():
        from tacit_reproductions.command import show_reproduction
    show_reproduction(paper.value, data, quick=quick, fresh=fresh, output=output, as_json=as_json)


Benchmark = StrEnum(
    "Benchmark",
    ["noise", "rows", "top_k", "monitor", "plan", "clusters", "grids", "lines", "disclosure", "tables", "records"],
)


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
