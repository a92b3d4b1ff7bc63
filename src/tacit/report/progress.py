"""A bar for who waits: on a terminal, or in a notebook, with or without widgets; nothing where nobody watches.

It is told a text and how many of how many steps are done. Both follow from what was asked for, never from rows. What is
shown is gone when the work is done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from markupsafe import escape

from tacit.errors import printable
from tacit.plan.choose import notebook_cell

OnProgress: TypeAlias = Callable[[str, int, int], None]


@contextmanager
def bar(first: str) -> Iterator[OnProgress]:
    """Show a bar while work goes on, if somebody is watching."""
    if sys.stderr.isatty():
        with _on_a_terminal(first) as report:
            yield report
    elif notebook_cell() is not None:
        with _in_a_notebook(first) as report:
            yield report
    else:
        yield lambda text, done, total: None


@contextmanager
def _on_a_terminal(first: str) -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(first, total=None)

        def report(text: str, done: int, total: int) -> None:
            shown.update(task, description=text, completed=done, total=total)

        yield report


@contextmanager
def _in_a_notebook(first: str) -> Iterator[OnProgress]:
    from IPython.display import display

    last = first
    place = display({"text/plain": first}, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def report(text: str, done: int, total: int) -> None:
        nonlocal last
        percent = 100 * done // max(total, 1)
        words = f"{printable(text)} {percent}%"
        if words != last:  # a notebook is slower than what it is told
            last = words
            drawn = f'<progress max="100" value="{percent}"></progress> {escape(words)}'
            place.update({"text/plain": words, "text/html": drawn}, raw=True)

    try:
        yield report
    finally:
        place.update({"text/plain": "", "text/html": ""}, raw=True)
