"""`tacit bench`: measure this machine with the repository's own benchmarks."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from tacit.cli.screen import AsJson, show, show_json
from tacit.errors import Refused

# Beside src/ in a clone; the installed package has none. Never looked for elsewhere: that would run a stranger's file.
REPOSITORY = Path(__file__).resolve().parents[3]


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
    found: dict[str, Any] = {}
    for name in Benchmark if which is None else (which,):
        module = _load(name)
        if not as_json:
            show(f"{name}: {(module.__doc__ or '').strip().splitlines()[0]}")
        # stdout is for the document alone
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            found[name.value] = module.main(quick=quick)
    if as_json:
        show_json(found)


def _load(name: Benchmark) -> ModuleType:
    path = REPOSITORY / "benchmarks" / f"bench_{name.value}.py"
    if not (path.is_file() and (REPOSITORY / "pyproject.toml").is_file()):
        raise Refused(
            "are not part of the installed package",
            key="benchmarks",
            fix="Clone the repository and run `make bench` there.",
        )
    spec = importlib.util.spec_from_file_location(f"bench_{name.value}", path)
    if spec is None or spec.loader is None:
        raise AssertionError(path.name)  # cannot be: the file exists and ends with .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module
