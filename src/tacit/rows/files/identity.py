"""Whether files are still those that were opened, which paths are one file, and what files hold.

Columns are found when a session is opened and read when something is asked. In between, somebody may write the file
again, with its columns in another order. So files are looked at before anything is charged, and before and after they
are read; one that has changed is refused, whatever the change.

What files hold is told by a digest of their bytes. A CSV file that has grown begins with the bytes that it had, and
they end where a line ends. Then its rows are those that it had, and new ones. In files of other kinds no such part can
be told.
"""

from __future__ import annotations

import codecs
import errno
import glob
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from tacit.policy.yaml_entries import CSV_NAMES

Identity: TypeAlias = tuple[int, ...]
Identities: TypeAlias = dict[str, Identity | None]
_MOST_LITERALS: Final = 10_000


def identity(path: str | Path) -> Identity | None:
    """Return what changes whenever a file is replaced or written: device, inode, size, times. None: there is none."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as refused:
        if refused.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            return None
        raise  # whether there is a file, nobody knows
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def identities(paths: Iterable[str | Path]) -> Identities:
    """Return the identity of each file."""
    return {str(path): identity(path) for path in paths}


def each_once(paths: Sequence[Path]) -> list[Path]:
    """Return the paths without those that lead to a file that is there already: links of both kinds, `a/../b`."""
    found: dict[object, Path] = {}
    for path in paths:
        known = identity(path)
        found.setdefault(known[:2] if known is not None else str(path), path)
    return list(found.values())


def files_below(path: str | Path) -> list[Path]:
    """Return every file that a path, a pattern or a folder leads to; none if it leads nowhere.

    Also those that are no tables: whoever asks wants to know whether a file is among them.

    Raises:
        OSError: If a folder cannot be looked into, or this is no path.
        ValueError: The same.
    """
    named = Path(path)
    matches = [named] if named.exists() else [Path(match) for match in glob.glob(str(path), recursive=True)]
    found: list[Path] = []
    for match in matches:
        if match.is_dir():
            inside = os.walk(match, onerror=_raised)
            found += [Path(folder) / name for folder, _, names in inside for name in names]
        else:
            found.append(match)
    return sorted(each_once([one for one in found if one.is_file()]))


def _raised(error: OSError) -> None:
    raise error


def files_named_in(sql: str) -> list[str]:
    """Return the files that the literals of a query name; a folder or a pattern stands for what is in it."""
    found: set[str] = set()
    for literal in re.findall(r"'((?:[^']|'')*)'", sql)[:_MOST_LITERALS]:
        text = literal.replace("''", "'")
        if "\0" in text or len(text) > 4096:
            continue
        if os.path.isfile(text):
            found.add(text)
        elif glob.has_magic(text) and ("/" in text or "." in text):
            found.update(match for match in glob.glob(text, recursive=True) if os.path.isfile(match))
    return sorted(found)


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
        mark = file.read(2)
        file.seek(0)
        while left:
            chunk = file.read(min(_CHUNK, left))
            if not chunk:
                return None
            found.update(chunk)
            left, last = left - len(chunk), chunk[-1:]
        following = file.read(1)
    # of UTF-16 the last byte does not tell whether a line ends
    is_csv = _is_plain_csv(path) and mark not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if following and not (is_csv and (last in _LINE_ENDS or following in _LINE_ENDS)):
        return None
    return found.digest()


def _is_plain_csv(path: Path) -> bool:
    name = path.name.lower()
    return name.endswith(CSV_NAMES) and not name.endswith(".gz")
