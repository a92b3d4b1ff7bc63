"""What stages before the report stage have it draw: charts, and what notebooks show; it is loaded when it is needed.

Imports point left, so a release, a monitor or an audit cannot import the report stage itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from textwrap import shorten
from typing import Any, Literal


def draw(kind: Literal["release", "monitor", "disclosure"], shown: Any, **options: Any) -> Any:
    """Return the chart of a release's record, of a monitor's history, or of what an audit found."""
    chart = {
        "release": ("release_charts", "chart"),
        "monitor": ("monitor_charts", "monitor_chart"),
        "disclosure": ("audit_charts", "disclosure_chart"),
    }[kind]
    return getattr(import_module(f"tacit.report.charts.{chart[0]}"), chart[1])(shown, **options)


@contextmanager
def watched(what: str, progress: Callable[[float], None] | None) -> Iterator[Callable[[float], None]]:
    """Show who waits a bar, on a terminal or in a notebook, unless they ask to be told the share that is done."""
    if progress is not None:
        yield progress
        return
    with import_module("tacit.report.progress").bar(what) as tell:
        yield lambda share: tell(what, int(100 * share), 100)


def briefly(text: str) -> str:
    """Return a text in one line, cut where it gets too long."""
    return shorten(text, 90, placeholder=" ..")


def as_html(held: Any) -> str:
    """Return what a notebook shows of an object."""
    return str(import_module("tacit.report.notebook").html(held))


class Held:
    """What somebody holds: its `repr` is one line, and a notebook shows what `report/notebook.py` makes of it."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # as its own: a dataclass, or one among its bases, would list every field
        ours = (vars(base)["__repr__"] for base in cls.__mro__ if issubclass(base, Held) and "__repr__" in vars(base))
        cls.__repr__ = next(ours)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {briefly(str(self).partition(chr(10))[0])}>"

    def _repr_html_(self) -> str:
        return as_html(self)
