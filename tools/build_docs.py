"""Build the documentation site: collect the pages, write the generated ones, check all links, run zensical.

    python tools/build_docs.py           # build/site/index.html, and all pages as one text: build/site/tacit.txt
    python tools/build_docs.py --pages   # only the pages, in build/docs: no charts, no site

Pages stand in docs/. The README becomes the first page. The reference is written from the docstrings of the public
names, and the gallery from releases of the bundled data.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
from nbclient import NotebookClient

import tacit as tc

ROOT = Path(__file__).resolve().parents[1]
PAGES, SITE = ROOT / "build" / "docs", ROOT / "build" / "site"
# files outside of docs/ that are pages too; links to them are rewritten
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/building/README.md": "building.md",
}
LINK_OR_IMAGE = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]*)(?P<part>#[^)\s]*)?\)")
LINK = re.compile(r"(?<!!)" + LINK_OR_IMAGE.pattern)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
GROUPS = {
    "What is secret": "Domain Policy secrets known where col ABSENT",
    "Attributes": "Categories Dates Decimals Flag Grid Integers Items Times",
    "Questions": "count counts histogram marginals cumulative ranges rectangles total mean variance median quantiles"
    " clusters top_k above below true_records",
    "Planning and releasing": "Session ReleaseRecord Explanation explain largest_step LargestStep ItemCounts Ledger"
    " Application Applications Written check_rows RowsCheck",
    "Tables and monitors": "publish reconstruct local PlaceMonitor MapMonitor",
    "Audits and dependence": "audit Dependence noise plan",
    "Errors": "TacitError Refused PolicyError PlanError JobError LedgerError BudgetExceeded DataRefused InternalError",
}
GALLERY = {
    "Running counts": (lambda: tc.cumulative("age"), "A person moves past at most five of these counts."),
    "A histogram": (lambda: tc.histogram("occupation"), "Bars with 95% intervals."),
    "A table of two attributes": (lambda: tc.histogram("sex", "income"), "Groups side by side."),
    "Quantiles": (lambda: tc.quantiles("age", [0.1, 0.25, 0.5, 0.75, 0.9]), "Quantiles with their intervals."),
    "Means by group": (lambda: tc.mean("hours_per_week", by="sex"), "Means with intervals that hold."),
}


def main() -> int:
    """Write the pages, check their links and build the site; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", action="store_true", help="write and check the pages only")
    only_pages = parser.parse_args().pages
    write_pages(charts=not only_pages)
    if broken := list(broken_links()):
        print(*broken, sep="\n")
        return 1
    if only_pages:
        return 0
    code = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--clean", "--strict"], cwd=ROOT
    ).returncode
    if code == 0:
        (SITE / "tacit.txt").write_text(all_as_text(), encoding="utf-8")
    return code


def write_pages(*, charts: bool) -> None:
    """Fill build/docs: pages of docs/, pages from elsewhere, and the generated ones."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for source in sorted((ROOT / "docs").rglob("*.md")):
        target = PAGES / source.relative_to(ROOT / "docs")
        target.write_text(relinked(source, target), encoding="utf-8")
    for source in sorted((ROOT / "docs").rglob("*.ipynb")):
        target = PAGES / source.relative_to(ROOT / "docs").with_suffix(".md")
        target.write_text(notebook_page(source, run=charts), encoding="utf-8")
    for name, page in ELSEWHERE.items():
        (PAGES / page).write_text(relinked(ROOT / name, PAGES / page), encoding="utf-8")
    decisions = sorted((PAGES / "decisions").glob("*.md"))
    titles = [file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for file in decisions]
    listed = "".join(f"- [{title}]({file.name})\n" for file, title in zip(decisions, titles, strict=True))
    (PAGES / "decisions" / "index.md").write_text(f"# Decisions\n\n{listed}", encoding="utf-8")
    (PAGES / "reference.md").write_text(reference(), encoding="utf-8")
    (PAGES / "gallery.md").write_text(gallery(draw=charts), encoding="utf-8")


def notebook_page(file: Path, *, run: bool) -> str:
    """Return a notebook as a page: its texts and its code, and what comes out if it is run now, in a kernel."""
    notebook = nbformat.read(file, as_version=4)
    if run:
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=folder)
    parts = []
    for cell in notebook.cells:
        parts.append(cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```")
        for out in cell.get("outputs", []):
            data = out.get("data", {})
            text = out.get("text") or data.get("text/plain") or "\n".join(out.get("traceback", []))
            parts.append(data["text/html"] if "text/html" in data else f"```text\n{text.rstrip()}\n```")
    return "\n\n".join([*parts, f"\nThis page is a notebook: [{file.name}]({file.name}).\n"])


def relinked(source: Path, target: Path) -> str:
    """Return the text of a page with links that hold where it stands in the site; links out of it become plain text."""
    text = source.read_text(encoding="utf-8")

    def new_link(found: re.Match[str]) -> str:
        name, part = found["target"], found["part"] or ""
        if not name or "://" in name:
            return found[0]
        meant = (source.parent / name).resolve()
        if meant == ROOT / "docs" / "decisions":
            place = PAGES / "decisions" / "index.md"
        elif meant.is_relative_to(ROOT) and meant.relative_to(ROOT).as_posix() in ELSEWHERE:
            place = PAGES / ELSEWHERE[meant.relative_to(ROOT).as_posix()]
        elif meant.is_relative_to(ROOT / "docs"):
            place = PAGES / meant.relative_to(ROOT / "docs")
            place = place.with_suffix(".md") if place.suffix == ".ipynb" else place
        elif meant.exists():
            return f"{found['text']} (`{meant.relative_to(ROOT).as_posix()}`)"
        else:
            return found[0]
        return f"[{found['text']}]({Path(os.path.relpath(place, target.parent)).as_posix()}{part})"

    return LINK_OR_IMAGE.sub(new_link, text)


def broken_links() -> Iterator[str]:
    """Find links to pages or headings that are not there, and pages that the navigation leaves out."""
    pages = {file: file.read_text(encoding="utf-8") for file in sorted(PAGES.rglob("*.md"))}
    anchors = {
        file: {anchor(line) for line in text.splitlines() if line.startswith("#")} for file, text in pages.items()
    }
    for file, text in pages.items():
        for found in LINK.finditer(FENCED.sub("", text)):
            if "://" in found["target"]:
                continue
            meant = (file.parent / found["target"]).resolve() if found["target"] else file
            if not meant.exists():
                yield f"{file.relative_to(PAGES)}: there is no page {found['target']}"
            elif found["part"] and meant in anchors and found["part"][1:] not in anchors[meant]:
                yield f"{file.relative_to(PAGES)}: {meant.name} has no heading {found['part']}"
    shown = set(re.findall(r'"([\w-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8")))
    for file in pages:
        if file.parent == PAGES and file.name not in shown:
            yield f"{file.name} is in no menu: add it to nav in zensical.toml"


def anchor(heading: str) -> str:
    """Return the name of a heading in links."""
    words = re.sub(r"[^\w\s-]", "", heading.lstrip("#").strip().lower())
    return re.sub(r"[\s-]+", "-", words)


def reference() -> str:
    """Return the page of all public names, from their docstrings."""
    listed = {name for names in GROUPS.values() for name in names.split()} | {"__version__"}
    if missing := set(tc.__all__) ^ listed:
        raise SystemExit(f"the groups of the reference and the public names differ: {sorted(missing)}")
    parts = ["# Reference\n\nEvery public name, as its docstring describes it. Import the package as `tc`.\n"]
    for group, names in GROUPS.items():
        parts.append(f"\n## {group}\n")
        for name in names.split():
            parts += entry(f"tc.{name}", getattr(tc, name))
    return "\n".join(parts)


def entry(name: str, meant: Any) -> Iterator[str]:
    """Yield the lines about one public name, and about the methods of a class or the functions of a module."""
    yield f"\n### {name}\n"
    if callable(meant):
        yield f"```python\n{signature(name, meant)}\n```\n"
    yield described(meant)
    for child, value in children(meant):
        yield f"\n#### {name}.{child}\n\n```python\n{signature(child, value)}\n```\n\n{described(value)}"


def children(meant: Any) -> Iterable[tuple[str, Any]]:
    """Return the public functions of a module, or the public methods of a class that is not an error."""
    if isinstance(meant, ModuleType):
        names = getattr(meant, "__all__", [name for name in vars(meant) if not name.startswith("_")])
        return [(name, getattr(meant, name)) for name in names if inspect.isfunction(getattr(meant, name, None))]
    if inspect.isclass(meant) and not issubclass(meant, Exception):
        return [(name, value) for name, value in vars(meant).items() if is_shown(name, value)]
    return []


def is_shown(name: str, value: Any) -> bool:
    """Say whether a class's attribute is a method that people call."""
    return inspect.isfunction(value) and not name.startswith("_") and bool(value.__doc__)


def signature(name: str, meant: Any) -> str:
    """Return how something is called."""
    try:
        text = str(inspect.signature(meant))
    except (TypeError, ValueError):
        text = "(..)"
    return f"{name}{text.replace('tacit.', '')}"


def described(meant: Any) -> str:
    """Return a docstring as Markdown: examples and tables in fences, the rest as prose."""
    parts = []
    for block in (inspect.getdoc(meant) or "").split("\n\n"):
        if block.lstrip().startswith(">>>"):
            parts.append(f"```python\n{inspect.cleandoc(block)}\n```")
        elif any(line.startswith("    ") or re.match(r"\w+ {3,}", line) for line in block.splitlines()):
            parts.append(f"```text\n{block}\n```")
        else:
            parts.append(block)
    return "\n\n".join(parts) + "\n"


def gallery(*, draw: bool) -> str:
    """Return the page of charts; draw them from releases of the bundled data."""
    data = Path(tc.__file__).parent / "data"
    session = tc.Session(tc.Policy.load(data / "adult.policy.yaml"), data / "adult.parquet", budget=len(GALLERY))
    text = "# Gallery\n\nReleases of the bundled Adult data, each at epsilon 1, drawn by `record.chart()`.\n"
    for number, (title, (question, words)) in enumerate(GALLERY.items()):
        if draw:
            session.release(question(), epsilon=1).chart().save(str(PAGES / f"gallery-{number}.svg"))
        text += f"\n## {title}\n\n{words}\n\n![{title}](gallery-{number}.svg)\n"
    return text


def all_as_text() -> str:
    """Return all pages in the order of the menu as one text."""
    menu = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]

    def files(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
        for line in entries:
            for place in line.values():
                yield from [place] if isinstance(place, str) else files(place)

    return "\n\n".join((PAGES / file).read_text(encoding="utf-8") for file in files(menu))


if __name__ == "__main__":
    sys.exit(main())
