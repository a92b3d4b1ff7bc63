"""What a reproduction comes to: claims of the paper beside our numbers, tables of our own, and the charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import vl_convert

from tacit.report.charts import chart_svg

YES: Final = "yes"
NO: Final = "no"
PARTLY: Final = "partly"
CLAIM_HEADINGS: Final = ("figure", "what", "the paper's claim", "our number", "holds?")


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, what we found, and whether the two agree."""

    figure: str
    what: str
    claim: str
    ours: str
    holds: str
    why: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the claim as cells of a table."""
        return self.figure, self.what, self.claim, self.ours, f"{self.holds}: {self.why}" if self.why else self.holds


@dataclass(frozen=True)
class Table:
    """Numbers of our own under a title, with notes; a long one is on the page, but not on the screen."""

    title: str
    headings: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]
    notes: tuple[str, ...] = ()
    on_screen: bool = True

    def markdown(self) -> list[str]:
        """Return the table as lines of a page."""
        noted = ["", *(f"- {said}" for said in self.notes)] if self.notes else []
        return ["", f"## {self.title}", "", *_table(self.headings, self.lines), *noted]

    def document(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {
            "title": self.title,
            "headings": list(self.headings),
            "lines": [list(line) for line in self.lines],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Reproduction:
    """Everything that `tacit reproduce` found. `details` are the numbers of tables as plain data."""

    paper: str
    title: str
    quick: bool
    how: tuple[str, ...]
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    details: Mapping[str, Any]
    charts: dict[str, Callable[[], Any]] = field(repr=False)
    made_up: str = ""  # what is made up because no data sets were found, as a sentence

    def document(self) -> dict[str, Any]:
        """Return everything but the charts as plain data."""
        headings = ("figure", "what", "claim", "ours", "holds", "why")
        return {
            "paper": self.paper,
            "title": self.title,
            "quick": self.quick,
            "how": list(self.how),
            "claims": [{name: getattr(claim, name) for name in headings} for claim in self.claims],
            **self.details,
            "tables": [table.document() for table in self.tables],
            "charts": list(self.charts),
        }

    def markdown(self) -> str:
        """Return everything but the charts as a page."""
        lines = [f"# {self.title}", ""]
        for paragraph in self.how:
            lines += [paragraph, ""]
        lines += ["## What the paper claims", ""]
        lines += _table(CLAIM_HEADINGS, [claim.cells() for claim in self.claims])
        for table in self.tables:
            lines += table.markdown()
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write the page and the charts; return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        page = folder / f"reproduced-{self.paper}.md"
        page.write_text(self.markdown(), encoding="utf-8")
        files = [page]
        for name, draw in self.charts.items():
            svg = chart_svg(draw())
            (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
            (folder / f"{name}.png").write_bytes(bytes(vl_convert.svg_to_png(svg, scale=2.0)))
            files += [folder / f"{name}.svg", folder / f"{name}.png"]
        return files


def judged(parts: Sequence[bool], *, why: str = "") -> tuple[str, str]:
    """Return yes, no or partly, with the reason if it is not yes."""
    word = YES if all(parts) else PARTLY if any(parts) else NO
    return word, "" if word == YES else why


def spread(numbers: Sequence[float], form: Callable[[float], str]) -> str:
    """Return the least and the largest of some numbers as a text.

    >>> spread([3.61, 4.58, 4.0], "{:.1f}".format)
    '3.6 to 4.6'
    """
    low, high = form(min(numbers)), form(max(numbers))
    return low if low == high else f"{low} to {high}"


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---"] * len(headings)
    return [f"| {' | '.join(line)} |" for line in (headings, rule, *lines)]
