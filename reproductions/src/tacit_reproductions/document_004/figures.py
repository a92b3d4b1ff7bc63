"""Document 004, disclosure and reconstruction privacy: its examples, tables and figures recomputed, part by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tacit_reproductions.document_004.charts import densities_chart, density_chart
from tacit_reproductions.document_004.disclosures import figures
from tacit_reproductions.document_004.examples import examples
from tacit_reproductions.document_004.reconstruction import reconstruction
from tacit_reproductions.document_004.theorems import theorems
from tacit_reproductions.document_004.violations import EACH, TOGETHER
from tacit_reproductions.reproduction import Document, Part, Run

# every part by name, in the order of the document; each has a stream of noise of its own
PARTS: Final[dict[str, Callable[[Run], Part]]] = {
    "examples and small tables": examples,
    "theorems": theorems,
    "disclosures": figures,
    "reconstruction": reconstruction,
}


def _recomputed(run: Run) -> Part:
    made = []
    for name, make in PARTS.items():
        with run.shown(name, list(PARTS)):
            made.append(make(run))
    details: dict[str, Any] = {}
    charts: dict[str, Callable[[], Any]] = {"figure-1.1": density_chart, "figure-2.2": densities_chart}
    for part in made:
        details |= part.details
        charts |= part.charts
    return Part(
        claims=[claim for part in made for claim in part.claims],
        tables=[table for part in made for table in part.tables],
        details=details,
        charts=charts,
        how=(
            f"Made by {run.command}. ± is one standard error. The tables OCC, EDU and SALARY of the document are not "
            "public: workers of the census survey stand in for them, drawn by their weights, as many as each claim "
            "says.",
            "Reconstruction privacy is meant in three ways, and every number says which. Eq 4.9: Chernoff's bound on "
            f'each tail, as the thesis judges groups. "{EACH}": what it defines. "{TOGETHER}": less than that, and '
            "what Tacit's publications promise, unless they say each tail.",
        ),
    )


DOCUMENT: Final = Document(
    "004",
    "Disclosure and reconstruction privacy (document 004), recomputed",
    "No data sets were found, so the census tables are made up; the Adult data are part of the package.",
    _recomputed,
)
