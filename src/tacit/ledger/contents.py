"""What files held when coins were made for their rows: rows that change under their keys are refused.

Guarantee   Coins of a line that were made for some files are used again only where these hold the same bytes, or, of
            CSV files, the same and new lines at the end. Anything else is refused before it is charged.
            Whoever reads the ledger, and has not the secret of its coins, learns nothing about the files.
Assumes     That files have changed between two releases may be said. Bytes are looked at only where a file was touched:
            its size, its times and its place on the disk tell. What is no file (frames, queries, Spark) is not looked
            at: a record under its key must then not change, as `plan/records_plan.py` assumes.
Why         A gap that is filled later, by the same coin, was a secret before. Equal bytes are equal rows. Lines behind
            the end of a file that was whole leave its rows as they were, and since no key may be there twice
            (`release/show_records.py`), they have keys, and so coins, of their own.
            What is kept of a line's files is written in the transaction that charges for it, before rows are opened,
            and only if nobody else has written meanwhile: so no two processes use one line for different bytes. The
            longest content counts, so that lines that were added are held to as well.
            Marks are HMAC-SHA-256, and sizes are added to a pad that SHAKE-256 makes, with a secret of the line that is
            that of no coin; a pad belongs to one digest, and so to one list of sizes.
Reference   RFC 2104 (HMAC); NIST FIPS 202 (SHAKE).
Checked by  tests/unit/test_file_contents.py
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sqlalchemy import Connection, delete, insert, inspect, select

from tacit.errors import DataRefused
from tacit.ledger.chain import Seal
from tacit.ledger.store import rows
from tacit.ledger.tables import CONTENTS
from tacit.noise.kept_coins import secret_for

_SIZE_BYTES: Final = 8
_FIELDS: Final = ("dataset", "line", "stamp", "digest", "sizes")


class Content(Protocol):
    """What files hold; see `rows/file_contents.py`."""

    @property
    def stamp(self) -> str:
        """What changes whenever one of the files is written or replaced."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many bytes each file has."""

    def digest(self, sizes: Sequence[int]) -> str | None:
        """Return the digest of the files as they were when they had so many bytes; None if they were never so."""


@dataclass(frozen=True, repr=False)
class Kept:
    """What is kept of the files of a line: marks of their stamp and their digest, and their sizes, hidden."""

    stamp: str
    digest: str
    sizes: str


def still_kept(content: Content, kept: Kept | None, secret: bytes) -> Kept | None:
    """Return what is to be kept of the files of a line from now on, None if that is what is kept; or refuse them."""
    stamp = _mark(secret, "stamp", content.stamp)
    if kept is not None and stamp == kept.stamp:
        return None
    if kept is not None:
        before = content.digest(_shown(kept.sizes, kept.digest, secret))
        if before is None or _mark(secret, "digest", before) != kept.digest:
            raise DataRefused(
                "the files must hold what they held when these records were last asked for, or CSV files more lines at "
                "the end: coins are remembered for each key, so that a gap that is filled now would have been a secret",
                fix='Nothing was charged. Say version=".." with a new text: it has its own coins, and is charged anew.',
            )
    sizes = content.sizes
    digest = _mark(secret, "digest", content.digest(sizes) or "")
    return Kept(stamp, digest, _hidden(sizes, digest, secret))


def read_contents(db: Connection, dataset: str, lines: Iterable[str], mark: str, seal: Seal) -> dict[str, Kept]:
    """Return what is kept of the files of lines, by their short names."""
    if not inspect(db).has_table(CONTENTS.name):
        return {}
    ours = (CONTENTS.c.dataset == dataset) & CONTENTS.c.line.in_(list(lines))
    found = [row for row in rows(db, select(CONTENTS).where(ours)) if row["seal"] == _seal(row, mark, seal)]
    return {row["line"]: Kept(row["stamp"], row["digest"], row["sizes"]) for row in found}


def write_contents(db: Connection, dataset: str, contents: Mapping[str, Kept], mark: str, seal: Seal) -> None:
    """Keep what files hold, by the short names of lines."""
    CONTENTS.create(db, checkfirst=True)
    for line, kept in contents.items():
        row = {"dataset": dataset, "line": line, "stamp": kept.stamp, "digest": kept.digest, "sizes": kept.sizes}
        db.execute(delete(CONTENTS).where((CONTENTS.c.dataset == dataset) & (CONTENTS.c.line == line)))
        db.execute(insert(CONTENTS).values(**row, seal=_seal(row, mark, seal)))


def _mark(secret: bytes, what: str, text: str) -> str:
    return secret_for(secret, f"{what} {text}").hex()


def _hidden(sizes: Sequence[int], digest: str, secret: bytes) -> str:
    plain = b"".join(size.to_bytes(_SIZE_BYTES, "big") for size in sizes)
    return _padded(plain, digest, secret).hex()


def _shown(sizes: str, digest: str, secret: bytes) -> list[int]:
    plain = _padded(bytes.fromhex(sizes), digest, secret)
    return [int.from_bytes(plain[at : at + _SIZE_BYTES], "big") for at in range(0, len(plain), _SIZE_BYTES)]


def _padded(text: bytes, digest: str, secret: bytes) -> bytes:
    pad = hashlib.shake_256(secret_for(secret, f"pad {digest}")).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, pad, strict=True))


def _seal(row: Mapping[str, Any], mark: str, seal: Seal) -> str:
    return seal.of({"ledger": "content", "mark": mark, **{name: row[name] for name in _FIELDS}})
