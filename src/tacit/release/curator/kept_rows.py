"""How much of all rows counts where only so many rows of a person do, for whoever holds the rows.

Guarantee   None: these are shares of true counts and sums, for the holder of the rows alone. Nothing is charged or
            written, and no release, report or certificate can hold them.
Assumes     Whoever asks may see the rows anyway.
Why         Noise grows with `per_person`, and what is left out shrinks with it. No release may say how much is left
            out, so whoever writes the policy must see it here. Rows are chosen and counted by the code of releases.
Checked by  tests/unit/release/test_kept_rows.py, tests/architecture/test_private_doors.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit.plan.measure.measured import CellCounts, CellSums, Tally
from tacit.policy.policy import Policy
from tacit.release.session import open_for

TRIED: Final = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)  # rows of a person
EVERY: Final = 10**6  # rows of a person, which nobody has more of
NEARLY: Final = 0.995  # of the rows, from which on no more are tried
ENOUGH: Final = 0.95  # of the rows and of each total, for a proposal


@dataclass(frozen=True)
class KeptRows:
    """What counts with so many rows per person: shares of the rows that fit the domain, and of each total of them."""

    per_person: int
    rows: float
    totals: Mapping[str, float]

    def __str__(self) -> str:
        totals = "".join(f", {share:.1%} of {name}" for name, share in self.totals.items())
        return f"per_person {self.per_person}: {self.rows:.1%} of the rows{totals}"

    @property
    def least(self) -> float:
        """The smallest of the shares."""
        return min(self.rows, *self.totals.values(), 1.0)


def kept_rows(policy: Policy, source: Any) -> tuple[KeptRows, ...]:
    """Return what counts for each tried number of rows per person, and for the policy's own."""
    numbers = [name for name, one in policy.domain.items() if one.unit is not None and one.number(0) >= 0]
    tallies: list[Tally] = [CellCounts((), rows=True), *(CellSums(name) for name in numbers)]

    def counted(many: int) -> list[int]:
        one = policy.owned_by(policy.person, many)
        return [int(found[()]) for found in open_for(one, source).tally(tallies)]

    whole = counted(EVERY)

    def kept(many: int) -> KeptRows:
        rows, *totals = (part / all_ if all_ else 1.0 for part, all_ in zip(counted(many), whole, strict=True))
        return KeptRows(many, rows, dict(zip(numbers, totals, strict=True)))

    found: list[KeptRows] = []
    for many in sorted({*TRIED, policy.per_person}):
        if many == policy.per_person or not found or found[-1].rows < NEARLY:
            found.append(kept(many))
    return tuple(found)


def proposed(found: Sequence[KeptRows]) -> KeptRows | None:
    """Return the smallest number of rows per person that keeps enough of the rows and of each total."""
    return next((one for one in found if one.least >= ENOUGH), None)


def kept_lines(found: Sequence[KeptRows]) -> list[str]:
    """Return a table in words, and the proposal."""
    lines = ["Rows per person (shares of the rows that fit, and of each total of them, that count):"]
    lines += [f"  - {one}" for one in found]
    best = proposed(found)
    if best is not None:
        lines.append(
            f"per_person: {best.per_person} is the smallest of these that keeps {ENOUGH:.0%} of the rows"
            f"{' and of each total' if best.totals else ''}. The noise of questions about rows grows with it."
        )
    return lines
