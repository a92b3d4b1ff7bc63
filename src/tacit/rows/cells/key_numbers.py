"""Numbers of keys, of which none may be there twice: in a file, since there may be more than memory should hold.

Guarantee   Says whether a number was given twice, and nothing else. The file lies in a folder of this user alone and is
            gone once that was said, or with the object.
Assumes     Numbers are below 2^63. Whether a key is there twice may be said (`plan/plans/records.py`).
Why         Rows that are not shown leave nothing behind, but two of them, or one that is shown and one that is not,
            must not share a key either. Numbers that rise from row to row are all different. Others are sorted by an
            embedded DuckDB with a bound on memory, which spills the rest, and compared with the one before.
Checked by  tests/unit/rows/test_shown_files.py, tests/contract/test_true_records_engines.py
"""

from __future__ import annotations

import itertools
import os
import weakref
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit.rows.sources.duckdb_engine import embedded
from tacit.rows.sources.frames import TableWriter, cells_like
from tacit.rows.spill import private_folder

_MEMORY: Final = "1GB"  # for sorting
_AT_A_TIME: Final = 2**17  # sorted numbers that are read
_numbers: Final = itertools.count()


class KeyNumbers:
    """Numbers that are given some at a time."""

    def __init__(self) -> None:
        self.path = private_folder(os.getpid()) / f"keys-{next(_numbers)}.parquet"
        self._writer = TableWriter(self.path, {"n": cells_like([0], every=False)})
        self._remove = weakref.finalize(self, _remove, self.path)
        self._rises = RisingNumbers()

    def add(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Take some numbers."""
        self._rises.add(numbers)
        self._writer.write({"n": numbers.view(np.int64)})

    def are_unique(self) -> bool:
        """Say whether no number was given twice, and forget them."""
        self._writer.close()
        try:
            return self._rises.so_far or self._none_follows_itself()
        finally:
            self._remove()

    def _none_follows_itself(self) -> bool:
        connection = embedded()
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        rising = RisingNumbers()
        relation = connection.read_parquet(str(self.path)).order("n")
        for batch in relation.to_arrow_reader(_AT_A_TIME):
            rising.add(batch.column(0).to_numpy().view(np.uint64))
            if not rising.so_far:
                return False
        return True


class RisingNumbers:
    """Whether numbers that come some at a time rise from one to the next."""

    def __init__(self) -> None:
        self.so_far = True
        self._last: int | None = None

    def add(self, numbers: npt.NDArray[np.uint64]) -> None:
        """Take some numbers."""
        if not len(numbers):
            return
        follows = self._last is None or int(numbers[0]) > self._last
        self.so_far &= bool(follows and (numbers[1:] > numbers[:-1]).all())
        self._last = int(numbers[-1])


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
