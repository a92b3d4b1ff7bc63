"""How large the package is, and how many of its files a piece of work walks through.

    python tools/measure_house.py

Prints lines and files of the package and of the tests, class names with more than one meaning, the largest folders,
and, for four pieces of work on five rows, the files of the package in which a function was called.
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "tacit"
PLANNING = ("policy", "dependence", "noise", "plan", "mechanism")

POLICY = """\
domain:
  age: {integers: [0, 99], otherwise: clip}
  ill: flag
  ward: {categories: [A, B]}
secrets: [{within: {age: 5}}, {attributes: [ill]}]
"""
ONE_SIDED = POLICY.partition("secrets")[0] + 'secrets: {records: "ill == True"}\n'
ROWS = "id,age,ill,ward\n" + "".join(f"{n},{20 + n},{n % 2},A\n" for n in range(5))
HISTOGRAM = (
    "{policy: policy.yaml, rows: rows.csv, budget: 1, releases: [{name: a, query: {histogram: age}, epsilon: 1}]}"
)
RECORDS = (
    "{policy: one_sided.yaml, rows: rows.csv, budget: 1, ledger: ledger.db,"
    " releases: [{name: a, query: {true_records: {columns: [age], key: id}}, epsilon: 1}]}"
)
TABLE = "{policy: policy.yaml, rows: rows.csv, budget: 2, table: {public: [ward], sensitive: ill, epsilon: 1}}"


def lines_of(folder: Path) -> tuple[int, int]:
    """Return the lines and the files of the Python below a folder."""
    files = list(folder.rglob("*.py"))
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files), len(files)


def class_names() -> Counter[str]:
    """Count every class name, without leading underscores."""
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in SRC.rglob("*.py"))
    return Counter(node.name.lstrip("_") for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


@contextlib.contextmanager
def walked() -> Iterator[set[str]]:
    """Collect the files of the package in which a function is called; what only loads a module does not count."""
    found: set[str] = set()

    def look(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if (
            event == "call" and code.co_flags & 2 and code.co_filename.startswith(str(SRC))
        ):  # 2: a function's own locals
            found.add(Path(code.co_filename).relative_to(SRC).as_posix())

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def command(*words: str) -> Callable[[], None]:
    """Return what runs a command line, silently."""

    def run() -> None:
        import typer

        from tacit.cli import app

        with contextlib.redirect_stdout(io.StringIO()):
            typer.main.get_command(app).main(args=list(words), prog_name="tacit", standalone_mode=False)

    return run


def all_ranges() -> None:
    """Plan all ranges of an attribute with 4,000 values."""
    import tacit as tc

    domain = tc.Domain({"x": tc.Integers(0, 3_999)})
    tc.explain(tc.ranges("x", "all"), tc.Policy(domain, tc.secrets.within(10, "x")), 1)


def main() -> None:
    """Print everything."""
    for name, folder in (("src/tacit", SRC), ("tests", ROOT / "tests"), ("reproductions", ROOT / "reproductions")):
        if folder.is_dir():
            lines, files = lines_of(folder)
            print(f"{name}: {lines:,} lines in {files} files")
    several = sorted(name for name, count in class_names().items() if count > 1)
    print(f"class names with more than one meaning: {len(several)} {' '.join(several)}")
    folders = Counter(file.parent.relative_to(SRC).as_posix() for file in SRC.rglob("*.py") if file.stem != "__init__")
    print("largest folders:", ", ".join(f"{name} {count}" for name, count in folders.most_common(5)))
    works = {
        "a histogram job": command("run", "histogram.yaml"),
        "true records": command("run", "records.yaml"),
        "publish a table": command("publish", "table", "table.yaml"),
        "all ranges of 4,000 values": all_ranges,
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in {
            "policy.yaml": POLICY,
            "one_sided.yaml": ONE_SIDED,
            "rows.csv": ROWS,
            "histogram.yaml": HISTOGRAM,
            "records.yaml": RECORDS,
            "table.yaml": TABLE,
        }.items():
            Path(name).write_text(text, encoding="utf-8")
        for name, work in works.items():
            with walked() as found:
                work()
            planning = sum(one.split("/")[0] in PLANNING for one in found)
            print(f"{name}: {len(found)} files, {planning} of them from policy to plan")


if __name__ == "__main__":
    main()
