"""Whether a key names every row once, for whoever holds the rows: `tacit check POLICY --rows DATA --key COLUMN`.

Guarantee   None: true counts of people's rows, for the holder of the data alone, as in `release/curator/row_check.py`.
Assumes     Whoever asks may see the rows anyway.
Why         A release by a key that is missing somewhere, or there twice, is refused while its rows are open, when it
            is paid for. Keys are read here as a release reads them, so that what is found is what it would refuse.
Checked by  tests/unit/release/test_row_check.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import DataRefused, InternalError
from tacit.rows.cells.row_names import Named, in_one_list
from tacit.rows.guard import closed
from tacit.rows.rows import Rows


@dataclass(frozen=True)
class KeyCheck:
    """How often keys are there: `repeated` counts those in several rows. `refused`: what a release would say first."""

    columns: tuple[str, ...]
    rows: int
    repeated: int
    refused: str = ""

    def __str__(self) -> str:
        named = ", ".join(self.columns)
        if self.refused:
            return f"{named}: true records by this key would be refused. {self.refused}"
        if not self.repeated:
            return f"{named}: names each of {self.rows:,} rows once"
        many = "1 key is" if self.repeated == 1 else f"{self.repeated:,} keys are"
        return (
            f"{named}: {many} there more than once in {self.rows:,} rows, so that true records by this key would be "
            "refused. Remove rows, or add what tells them apart to the key"
        )

    def document(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return {
            "columns": list(self.columns),
            "rows": self.rows,
            "repeated": self.repeated,
            "refused": self.refused or None,
        }


def check_key(rows: Rows, attributes: Sequence[str], key: Sequence[str]) -> KeyCheck:
    """Look at the key of every row."""
    numbered = [name for name in key if name in attributes]
    others = [name for name in key if name not in attributes]

    def work(positions: Mapping[str, Any], named: Mapping[str, Named], _: int) -> tuple[list[Any], list[Named]]:
        return [np.array(positions[name]) for name in numbered], [named[name] for name in others]

    def looked_at() -> list[tuple[list[Any], list[Named]]]:
        return list(rows.records(numbered, key, work))

    try:
        rows.check_naming(others)
        parts = closed(looked_at, InternalError("rows were open"))
    except DataRefused as refused:
        # without the fix, which is about what was paid for
        return KeyCheck(tuple(key), 0, 0, f"Column {refused.column!r} {refused.rule}.")
    columns = [np.concatenate([found[at] for found, _ in parts] or [np.zeros(0)]) for at in range(len(numbered))]
    columns += [in_one_list([found[at] for _, found in parts])[1] for at in range(len(others))]
    _, many = np.unique(np.stack(columns), axis=1, return_counts=True)
    return KeyCheck(tuple(key), int(many.sum()), int((many > 1).sum()))
