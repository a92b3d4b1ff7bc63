"""What reaches the terminal: results on stdout, refusals and progress on stderr, or one JSON document on stdout."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from tacit.errors import DataRefused, Refused, TacitError, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
SetVariables: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="What ${NAME} in the file stands for; else the environment says."),
]
LogFormat: TypeAlias = Annotated[
    Literal["text", "json"],
    typer.Option("--log", help="What stderr is for: people, or programs that read one JSON document per line."),
]
OnProgress: TypeAlias = Callable[[str, int, int], None]

_logs_json = False
# first what is said elsewhere, too
LEFT_OUT = ("policy", "question", "answers", "times better", "remains", "plain DP", "95% within")
LEAST_TEXT = 12  # columns in which a text can still be read
WIDTH_OF_A_PIPE = 120  # a file or a pipe has no width of its own, and 80 columns would cut our tables


def show(*parts: RenderableType) -> None:
    """Print texts and tables to stdout. Texts are taken word for word: a `[` in a policy is no markup."""
    for part in parts:
        if isinstance(part, str):
            sys.stdout.write(f"{part}\n")  # never broken into lines: it may hold a path to be copied
        else:
            from rich.console import Console
            from rich.table import Table

            if isinstance(part, Table):
                leave_out(part, width())
            Console(width=width(), highlight=False).print(part)


def leave_out(table: Table, columns: int) -> None:
    """Take columns out of a table, the least important first, until no number in it would have to be cut."""
    for name in LEFT_OUT:
        needed = 1 + sum(3 + (LEAST_TEXT if column.width is None else column.width) for column in table.columns)
        if needed <= columns:
            return
        table.columns = [column for column in table.columns if column.header != name]


def note(*sentences: str, logged: bool = False) -> None:
    """Say on stderr, after the results, what a reader of them should know; `logged`: the log has it already."""
    sys.stdout.flush()
    for sentence in sentences:
        if not _logs_json:
            sys.stderr.write(f"{sentence}\n")
        elif not logged:
            log("note", message=sentence)


def begin_log(given: Sequence[str]) -> None:
    """Log as the words of a command line ask for it, before they are understood: also wrong ones are logged."""
    global _logs_json
    _logs_json = "--log=json" in given or ("--log", "json") in itertools.pairwise(given)


def log(event: str, **said: Any) -> bool:
    """Write a line of the log, if there is one; say whether there is. Nothing that comes from rows is logged."""
    if _logs_json:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps(plain_document({"time": now, "event": event, **said}), default=_plain, allow_nan=False)
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    return _logs_json


def command(*words: str | os.PathLike[str]) -> str:
    """Return a command of ours as somebody can type it here: with the path of `tacit` where it is not on the PATH."""
    return " ".join([_started_as(), *(shlex.quote(os.fspath(word)) for word in words)])


def _started_as() -> str:
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{shlex.quote(Path(sys.executable).name)} -m tacit"
    if started.stem != "tacit" or not started.is_file():
        return "tacit"  # called from Python, or found on the PATH by the shell
    found = shutil.which("tacit")
    if found is not None and os.path.samefile(found, started):
        return "tacit"
    here = Path.cwd()
    return shlex.quote(str(started.relative_to(here) if started.is_relative_to(here) else started))


def show_wrapped(lines: Iterable[str]) -> None:
    """Print paragraphs and points (`  - ..`), each a line of any length, so that they fit this terminal."""
    for line in lines:
        dash = "    " if line.startswith("  - ") else ""
        wrapped = textwrap.wrap(line, min(width(), 100), subsequent_indent=dash, break_on_hyphens=False)
        show(*(wrapped or [""]))


def width() -> int:
    """Return how many columns stdout has."""
    # rich asks the environment and the terminal itself; it only needs help where there is neither
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        from rich.console import Console

        return Console().width
    return WIDTH_OF_A_PIPE


def show_json(document: Any) -> None:
    """Print one JSON document to stdout, in ASCII so that any terminal and pipe can take it."""
    sys.stdout.write(json.dumps(plain_document(document), indent=2, default=_plain, allow_nan=False) + "\n")


def complain(error: dict[str, Any], *, as_json: bool, exit_code: int) -> None:
    """Say why something was refused: one sentence on stderr, or `{"error": ..}` on stdout."""
    is_logged = log("refused", exit_code=exit_code, error=error)
    if as_json:
        show_json({"error": error})
    elif not is_logged:
        sys.stderr.write(f"tacit: {_one_line(error['message'])}\n")


def refusal(error: TacitError) -> dict[str, Any]:
    """Return an error as plain data; the same keys whatever it was."""
    document: dict[str, Any] = {"kind": type(error).__name__, "file": None, "line": None, "key": None, "given": None}
    if isinstance(error, Refused):
        place = {"file": error.file or None, "line": error.line, "key": error.key or None}
        document |= {**place, "rule": error.rule, "given": error.given, "fix": error.fix or None}
    elif isinstance(error, DataRefused):
        document |= {"key": error.column or None, "rule": error.rule, "fix": error.fix or None}
    else:
        document |= {"rule": str(error), "fix": None}
    return {**document, "message": str(error)}


def misuse(rule: str, fix: str) -> dict[str, Any]:
    """Return wrong usage of the command line in the same shape as a refusal."""
    nowhere = {"file": None, "line": None, "key": None, "given": None}
    return {"kind": "UsageError", **nowhere, "rule": rule, "fix": fix, "message": f"{rule} {fix}".strip()}


@contextmanager
def progress(first: str, *, as_json: bool) -> Iterator[OnProgress]:
    """Show a bar on stderr while work goes on, if somebody is watching; it is gone afterwards.

    Takes what the stages report: a text and how many of how many steps are done. Both are public: they come from the
    job, never from rows.
    """
    if _logs_json or as_json or not sys.stderr.isatty():

        def step(text: str, done: int, total: int) -> None:
            if done < total:
                log("step", step=text, done=done, of=total)

        yield step
        return
    from tacit.report.progress import bar

    with bar(first) as report:
        yield report


def write_chart(chart: Any, file: Path) -> None:
    """Write a chart to a .png file, or to one of another name as SVG."""
    from tacit.report.charts.release_charts import chart_png, chart_svg

    if file.suffix.lower() == ".png":
        file.write_bytes(chart_png(chart))
    else:
        file.write_text(chart_svg(chart), encoding="utf-8")


def from_here(folder: Path) -> Path:
    """Return the path as a user would type it, where it lies below this folder."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def plain_text(text: str, *, longest: int = 60) -> str:
    """Return what somebody else wrote, on one line, without control characters, and cut where it gets too long."""
    line = _one_line(text)
    return line if len(line) <= longest else f"{line[: longest - 2]}.."


def _one_line(text: str) -> str:
    """Return the text without line breaks and control characters, which could redraw the terminal."""
    return printable(" ".join(text.split()))


def plain_document(value: Any) -> Any:
    """Return plain data with `nan` and `inf`, which JSON does not have, as texts."""
    if isinstance(value, float) and str(value) in ("nan", "inf", "-inf"):
        return str(value)
    if isinstance(value, dict):
        return {key: plain_document(part) for key, part in value.items()}
    return [plain_document(part) for part in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    return str(value) if isinstance(value, Fraction | os.PathLike) else repr(value)
