"""How a document is recomputed: from its data sets, part by part, into claims, tables, numbers and charts on one page.

The noise is the same for everybody, part by part, so that a page can be made again to the digit. Nothing here is a
release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import vl_convert

from tacit import noise
from tacit.report.charts.release_charts import chart_svg
from tacit_reproductions.data import no_data
from tacit_reproductions.results import CLAIM_HEADINGS, Claim, Table, tally

OnProgress: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Run:
    """What a document is recomputed with: the folder of data sets (None: made-up ones), and whether it must be quick.

    Noise is replayed, so that everybody gets the same numbers; `fresh` draws it anew.
    """

    folder: Path | None
    quick: bool
    paper: str = ""
    fresh: bool = False
    on_progress: OnProgress = field(default=lambda *_: None, repr=False)

    @property
    def command(self) -> str:
        """The command that makes the page."""
        return f"`tacit reproduce {self.paper}{' --quick' * self.quick}`"

    def noise_of(self, part: str) -> AbstractContextManager[Any]:
        """Replay the noise of one part by itself: parts may be left out or change places."""
        if self.fresh:
            return nullcontext()
        key = hashlib.sha256(f"tacit reproduce {self.paper}: {part}".encode()).digest()
        return noise.replayed(noise.Keystream(key=key))

    @contextmanager
    def shown(self, part: str, parts: Sequence[str]) -> Iterator[None]:
        """Say how far the work has come, and replay the noise of this part."""
        self.on_progress(part, parts.index(part), len(parts))
        with self.noise_of(part):
            yield


@dataclass(frozen=True)
class Part:
    """What a document, or one part of it, comes to. `details` are the numbers of tables as plain data."""

    claims: Sequence[Claim] = ()
    tables: Sequence[Table] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    charts: Mapping[str, Callable[[], Any]] = field(default_factory=dict, repr=False)
    how: tuple[str, ...] = ()  # how the numbers were made, in paragraphs


@dataclass(frozen=True)
class Document:
    """A document by its number; `made_up` says what is made up where there are no data sets."""

    paper: str
    title: str
    made_up: str
    recomputed: Callable[[Run], Part] = field(repr=False)

    def reproduce(
        self,
        folder: Path | None,
        *,
        quick: bool = False,
        fresh: bool = False,
        on_progress: OnProgress = lambda *_: None,
    ) -> Reproduction:
        """Recompute everything. Without a folder of data sets, `quick` goes by made-up ones."""
        if folder is None and not quick:
            raise no_data()
        made_up = self.made_up if folder is None else ""
        found = self.recomputed(Run(folder, quick, self.paper, fresh, on_progress))
        how = (*([made_up] if made_up else []), *found.how, tally(found.claims))
        return Reproduction(self.paper, self.title, quick, made_up, how, found)


@dataclass(frozen=True)
class Reproduction:
    """Everything that `tacit reproduce` found."""

    paper: str
    title: str
    quick: bool
    made_up: str
    how: tuple[str, ...]
    part: Part

    @property
    def tables(self) -> list[Table]:
        """The claims as a table, and all others."""
        claims = [claim.cells() for claim in self.part.claims]
        return [Table("What the paper claims", CLAIM_HEADINGS, claims), *self.part.tables]

    def document(self) -> dict[str, Any]:
        """Return everything but the charts as plain data."""
        return {
            "paper": self.paper,
            "title": self.title,
            "quick": self.quick,
            "how": list(self.how),
            "claims": [claim.document() for claim in self.part.claims],
            **self.part.details,
            "tables": [table.document() for table in self.part.tables],
            "charts": list(self.part.charts),
        }

    def markdown(self) -> str:
        """Return everything but the charts as a page."""
        lines = [f"# {self.title}"]
        for paragraph in self.how:
            lines += ["", paragraph]
        for table in self.tables:
            lines += table.markdown()
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write the page and the charts; return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        page = folder / f"reproduced-{self.paper}.md"
        page.write_text(self.markdown(), encoding="utf-8")
        files = [page]
        for name, draw in self.part.charts.items():
            svg = chart_svg(draw())
            (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
            (folder / f"{name}.png").write_bytes(bytes(vl_convert.svg_to_png(svg, scale=2.0)))
            files += [folder / f"{name}.svg", folder / f"{name}.png"]
        return files
