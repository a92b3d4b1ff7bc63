"""How large the package is, and how many of its files a piece of work walks through.

    python tools/measure_house.py [--list]

Prints lines and files of the package and of the tests, class names with more than one meaning, the largest folders,
and, for four pieces of work on five rows, the files of the package in which a function was called; with `--list`, also
each of these files, with its lines and the functions that were called in it.
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
def walked() -> Iterator[dict[str, Counter[str]]]:
    """Count, by file of the package, the calls of each function; what is called while a module loads does not count."""
    found: dict[str, Counter[str]] = {}
    package = str(SRC)

    def is_loading(frame: Any) -> bool:
        while frame is not None:
            if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(package):
                return True
            frame = frame.f_back
        return False

    def look(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        # 2: the code has locals of its own, so it is a function
        if event != "call" or not code.co_flags & 2 or not code.co_filename.startswith(package):
            return
        if not is_loading(frame):
            found.setdefault(Path(code.co_filename).relative_to(SRC).as_posix(), Counter())[code.co_qualname] += 1

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
            if "--list" in sys.argv:
                for file, functions in sorted(found.items()):
                    length = len((SRC / file).read_text(encoding="utf-8").splitlines())
                    print(f"    {file} ({length}): {', '.join(functions)}")


if __name__ == "__main__":
    main()
