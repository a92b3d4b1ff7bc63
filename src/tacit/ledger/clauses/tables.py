"""Which tables were published of a data set, and which further one would undo what a table promises.

Guarantee   Where a table of a data set promises the (lambda, delta) criterion about a sensitive column, any other table
            that tells about this column is refused before anything is charged, whichever of both comes first, however
            many processes ask at once, unless it is asked for as one that undoes the promise (`again`).
Assumes     All tables of these people are charged to one data set of one ledger. Released counts and histograms are not
            held against tables.
Why         The criterion says how often one estimate of a frequency is wrong by how much. A second table has noise of
            its own, so that the mean of both is wrong less often: the promise holds for one table alone. A table counts
            from its charge on: it is an entry of the chain, written in the locked transaction of the charge. That reads
            of each column the first table that promises something about it, and the first that tells about it: if any
            table is in the way, one of these is (`ledger/store/summed.py`).
Reference   docs/tables.md.
Checked by  tests/unit/ledger/test_tables_together.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tacit.errors import PlanError
from tacit.ledger.clauses.clause import Clause
from tacit.ledger.store.chain import TABLE, LedgerEntry
from tacit.ledger.store.page import Page
from tacit.ledger.store.summed import COLUMN, written


@dataclass(frozen=True)
class TableNote(Clause):
    """What a table tells about: its columns, as the rows have them.

    `promises` says whether it keeps a criterion about the sensitive ones, and `again` that it was asked for although
    other tables may tell about them.
    """

    public: tuple[str, ...]
    sensitive: tuple[str, ...]
    promises: bool
    again: bool = False

    def undone_by(self, other: TableNote) -> list[str]:
        """Return the columns that this one promises a criterion about, and the other one tells about."""
        told = {*other.public, *other.sensitive}
        return [name for name in self.sensitive if self.promises and name in told]

    def check(self, page: Page, dataset: str) -> None:
        """Refuse this table where it undoes what an earlier one promises, or an earlier one its own promise."""
        sums, earlier = page.sums(dataset), {}
        for column in dict.fromkeys([*self.sensitive, *self.public]):
            for number, said in (sums.state(COLUMN, dataset, column) or {}).values():
                earlier[number] = _read(said)
        check_alone(self, [earlier[number] for number in sorted(earlier)], dataset)

    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        """Append what this table tells about."""
        words = f"published: {self}" + (", which promises a criterion" if self.promises else "")
        return page.note(TABLE, dataset, analyst, None, (words, written(asdict(self))))

    def __str__(self) -> str:
        return f"table of {', '.join(self.sensitive)}" + (f" by {', '.join(self.public)}" if self.public else "")


def check_alone(new: TableNote, earlier: Sequence[TableNote], dataset: str) -> None:
    """Refuse a table that undoes what an earlier one promises, or whose own promise an earlier one undoes."""
    if new.again:
        return
    for old in earlier:
        undone, lost = old.undone_by(new), new.undone_by(old)
        if not undone and not lost:
            continue
        why = (
            "which promises that no frequency in a group is estimated too well"
            if undone
            else "and the criterion asked for would not hold"
        )
        raise PlanError(
            f"must not be in two tables: of data set {dataset!r} there is a {old} already, {why}: both together tell "
            "more than one",
            key="sensitive",
            given=(undone or lost)[0],
            fix="Nothing was charged and no row was opened. Use that table; or say again=True: then the criterion is "
            "promised no more, by neither of them, for groups that are in both.",
        )


def _read(said: dict[str, Any]) -> TableNote:
    return TableNote(**{**said, "public": tuple(said["public"]), "sensitive": tuple(said["sensitive"])})
