"""What files hold, told by a digest of their bytes; and whether they hold what they held before, and more at their end.

A CSV file that has grown begins with the bytes that it had, and they end where a line ends. Then its rows are those
that it had, and new ones. In files of other kinds no such part can be told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tacit.rows.files.identity import identities
from tacit.rows.files.kinds import is_csv

_CHUNK: Final = 1 << 20
_LINE_ENDS: Final = (b"\n", b"\r")


class FileContents:
    """What some files hold, whenever it is asked for."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = [Path(path) for path in paths]
        self._known: dict[tuple[str, tuple[int, ...]], str | None] = {}

    @property
    def stamp(self) -> str:
        """What changes whenever one of the files is written or replaced, and sometimes where it is not."""
        return repr(sorted(identities(self._paths).items()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many bytes each file has."""
        return tuple(path.stat().st_size for path in self._paths)

    def digest(self, sizes: Sequence[int]) -> str | None:
        """Return the digest of the files as they were when they had so many bytes; None if they were never so."""
        asked = self.stamp, tuple(sizes)
        if asked not in self._known:
            self._known[asked] = self._digest(sizes)
        return self._known[asked]

    def _digest(self, sizes: Sequence[int]) -> str | None:
        if len(sizes) != len(self._paths):
            return None
        found = hashlib.sha256()
        for path, size in zip(self._paths, sizes, strict=True):
            one = _first_bytes(path, size)
            if one is None:
                return None
            found.update(size.to_bytes(8, "big") + one)
        return found.hexdigest()


def _first_bytes(path: Path, size: int) -> bytes | None:
    """Return the digest of the first bytes of a file; None if there are fewer, or the file is no growth of them."""
    found, left, last = hashlib.sha256(), size, b""
    with path.open("rb") as file:
        while left:
            chunk = file.read(min(_CHUNK, left))
            if not chunk:
                return None
            found.update(chunk)
            left, last = left - len(chunk), chunk[-1:]
        following = file.read(1)
    if following and not (_grows(path) and (last in _LINE_ENDS or following in _LINE_ENDS)):
        return None
    return found.digest()


def _grows(path: Path) -> bool:
    return is_csv(path) and not path.name.lower().endswith(".gz")
