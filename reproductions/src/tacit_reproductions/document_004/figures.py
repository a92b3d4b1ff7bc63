"""Document 004, disclosure and reconstruction privacy: its examples, tables and figures recomputed, part by part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tacit_reproductions import data
from tacit_reproductions.document_004.charts import density_chart
from tacit_reproductions.document_004.disclosures import figures
from tacit_reproductions.document_004.examples import examples
from tacit_reproductions.document_004.reconstruction import reconstruction
from tacit_reproductions.document_004.violations import EACH, TOGETHER
from tacit_reproductions.parts import Part, Setting
from tacit_reproductions.results import Reproduction, tally
from tacit_reproductions.streams import OnProgress, Streams

TITLE: Final = "Disclosure and reconstruction privacy (document 004), recomputed"
MADE_UP: Final = "No data sets were found, so the census tables are made up; the Adult data are part of the package."
# every part by name, in the order of the document; each has a stream of noise of its own
PARTS: Final[dict[str, Callable[[Setting], Part]]] = {
    "examples and small tables": examples,
    "disclosures": figures,
    "reconstruction": reconstruction,
}


def reproduce(
    folder: Path | None, *, quick: bool = False, fresh: bool = False, on_progress: OnProgress = lambda *_: None
) -> Reproduction:
    """Recompute every part. Without a folder of data sets, `quick` goes by made-up ones.

    Noise is replayed, so that everybody gets the same numbers; `fresh` draws it anew.
    """
    if folder is None and not quick:
        raise data.no_data()
    streams, setting = Streams("004", fresh), Setting(folder, quick)
    made = []
    for name, make in PARTS.items():
        with streams.shown(name, list(PARTS), on_progress):
            made.append(make(setting))
    claims = [claim for part in made for claim in part.claims]
    details: dict[str, Any] = {}
    charts: dict[str, Callable[[], Any]] = {"figure-1.1": density_chart}
    for part in made:
        details |= part.details
        charts |= part.charts
    return Reproduction(
        paper="004",
        title=TITLE,
        quick=quick,
        how=(*_how(folder, quick=quick), tally(claims)),
        claims=tuple(claims),
        tables=tuple(table for part in made for table in part.tables),
        details=details,
        charts=charts,
        made_up="" if folder is not None else MADE_UP,
    )


def _how(folder: Path | None, *, quick: bool) -> tuple[str, ...]:
    """Say how numbers were made."""
    return (
        *(() if folder is not None else (MADE_UP,)),
        f"Made by `tacit reproduce 004{' --quick' * quick}`. ± is one standard error. The tables OCC, EDU and SALARY "
        "of the document are not public: workers of the census survey stand in for them, drawn by their weights, as "
        "many as each claim says.",
        "Reconstruction privacy is meant in three ways, and every number says which. Eq 4.9: Chernoff's bound on each "
        f'tail, as the thesis judges groups. "{EACH}": what it defines. "{TOGETHER}": less than that, and what '
        "Tacit's publications promise.",
        "Lemmas 2 and 3, Theorems 1 to 7 and Corollaries 1 and 3 to 5 are not among the claims.",
    )
