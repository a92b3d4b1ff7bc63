"""What `tacit reproduce` and `tacit bench` do: recompute a document and show it, or run benchmarks and show them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.table import Table as RichTable

from tacit.cli.screen import note, progress, show, show_json, show_wrapped
from tacit.errors import Refused
from tacit_reproductions.data import data_folder
from tacit_reproductions.reproduction import Document
from tacit_reproductions.results import Table

# Beside src/ in a clone; an installed package has none. Never looked for elsewhere: that would run a stranger's file.
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def show_reproduction(
    paper: str, data: Path | None, *, quick: bool, fresh: bool, output: Path | None, as_json: bool
) -> None:
    """Recompute a document, write its page and charts if there is an output folder, and print what was found."""
    folder = data_folder(data)
    with progress(f"document {paper}", as_json=as_json) as on_progress:
        document: Document = importlib.import_module(f"tacit_reproductions.document_{paper}.figures").DOCUMENT
        found = document.reproduce(folder, quick=quick, fresh=fresh, on_progress=on_progress)
        files = [] if output is None else found.write(output)
    if as_json:
        show_json({**found.document(), "files": files})
        return
    show(found.title, "")
    show_wrapped(found.how)
    claims, *tables = found.tables
    show("", _on_screen(claims, lines=True))
    for table in tables:
        if table.on_screen:
            show("", table.title, "", _on_screen(table), "")
            show_wrapped(table.notes)
    if files:
        show(f"\n{len(files)} files in {output}")
    if found.made_up:
        note(f"{found.made_up} Name the folder with --data.")


def show_benchmarks(names: Sequence[str], *, quick: bool, as_json: bool) -> None:
    """Run these benchmarks and print what they measure."""
    found: dict[str, Any] = {}
    for name in names:
        module = _benchmark(name)
        if not as_json:
            show(f"{name}: {(module.__doc__ or '').strip().splitlines()[0]}")
        # stdout is for the document alone
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            found[name] = module.main(quick=quick)
    if as_json:
        show_json(found)


def _benchmark(name: str) -> ModuleType:
    path = BENCHMARKS / f"bench_{name}.py"
    if not (path.is_file() and (BENCHMARKS.parent / "pyproject.toml").is_file()):
        raise Refused(
            "are not part of the installed package",
            key="benchmarks",
            fix="Clone the repository and run `make bench` there.",
        )
    spec = importlib.util.spec_from_file_location(f"bench_{name}", path)
    if spec is None or spec.loader is None:
        raise AssertionError(path.name)  # cannot be: the file exists and ends with .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def _on_screen(found: Table, *, lines: bool = False) -> RichTable:
    table = RichTable(show_lines=lines)
    for heading in found.headings:
        table.add_column(heading, overflow="fold")
    for row in found.lines:
        table.add_row(*row)
    return table
