"""`tacit reproduce 002`, `003` and `004`: recompute the figures of a paper beside what it claims."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.screen import AsJson, note, progress, show, show_json, show_wrapped

if TYPE_CHECKING:
    from rich.table import Table

    from tacit.papers.results import Reproduction


class Paper(StrEnum):
    """The documents whose figures can be recomputed."""

    asymmetric = "002"
    blowfish = "003"
    disclosure = "004"


def reproduce_paper(
    paper: Annotated[
        Paper, typer.Argument(help="002: asymmetric differential privacy; 003: Blowfish privacy; 004: disclosure.")
    ],
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few runs and one data set per figure: seconds instead of minutes.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FOLDER", help="The data sets; else $TACIT_DATA, ./data, ../data or ../shared/data."
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
    from tacit.papers import figures_002, figures_003, figures_004
    from tacit.papers.data import data_folder

    reproduce = {
        Paper.asymmetric: figures_002.reproduce,
        Paper.blowfish: figures_003.reproduce,
        Paper.disclosure: figures_004.reproduce,
    }[paper]
    folder = data_folder(data)
    with progress(f"document {paper.value}", as_json=as_json) as on_progress:
        found = reproduce(folder, quick=quick, fresh=fresh, on_progress=on_progress)
        files = [] if output is None else found.write(output)
    if as_json:
        show_json({**found.document(), "files": files})
        return
    _show(found)
    if files:
        show(f"\n{len(files)} files in {output}")
    if found.made_up:
        note(f"{found.made_up} Name the folder with --data.")


def _show(found: Reproduction) -> None:
    from tacit.papers.results import CLAIM_HEADINGS

    show(found.title, "")
    show_wrapped(found.how)
    show("", _table(CLAIM_HEADINGS, [claim.cells() for claim in found.claims], lines=True))
    for table in found.tables:
        if table.on_screen:
            show("", table.title, "", _table(table.headings, table.lines), "")
            show_wrapped(table.notes)


def _table(headings: Sequence[str], rows: Sequence[tuple[str, ...]], *, lines: bool = False) -> Table:
    from rich.table import Table

    table = Table(show_lines=lines)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
