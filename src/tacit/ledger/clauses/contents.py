"""What files held when coins were made for their rows: rows that change under their keys are refused.

Guarantee   Coins of a line that were made for some files are used again only where these hold the same bytes, or, of
            CSV files, the same and new lines at the end. Anything else is refused before it is charged, and so is a
            line that was paid for or shown where the ledger does not say what its files held.
            Files that ended in a refusal, so that nothing was shown of them, may be repaired.
            Whoever reads the ledger, and has not the secret of its coins, learns nothing about the files.
Assumes     That files have changed between two releases may be said. Bytes are looked at only where a file was touched:
            its size, its times and its place on the disk tell. What is no file (frames, queries, Spark) is not looked
            at: a record under its key must then not change, as `plan/plans/records.py` assumes. Rows of a ledger are
            what was written (`ledger/store/row_seals.py`): one that is gone or was put back is refused.
Why         A gap that is filled later, by the same coin, was a secret before. Equal bytes are equal rows. Lines behind
            the end of a file that was whole leave its rows as they were, and since no key may be there twice
            (`release/results/suppress_records.py`), they have keys, and so coins, of their own.
            What is kept of a line's files is written in the transaction that charges for it, before rows are opened,
            and only if nobody else has written meanwhile: so no two processes use one line for different bytes. The
            longest content counts, so that lines that were added are held to as well.
            It is first noted as asked for, and as shown in a transaction of its own before anything is handed out,
            which is refused if somebody has taken it back meanwhile. Only what nobody was shown is taken back, after
            a refusal; whoever dies in between leaves it, and files are held to it.
            Marks are HMAC-SHA-256, and sizes are added to a pad that SHAKE-256 makes, with a secret of the line that is
            that of no coin; a pad belongs to one digest, and so to one list of sizes.
Reference   RFC 2104 (HMAC); NIST FIPS 202 (SHAKE).
Checked by  tests/unit/rows/test_file_contents.py
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sqlalchemy import inspect

from tacit.errors import DataRefused
from tacit.ledger.clauses.coin_seals import content_seal
from tacit.ledger.store.page import Page
from tacit.ledger.store.schema import CONTENTS
from tacit.noise.kept_coins import secret_for

_SIZE_BYTES: Final = 8
_ASKED: Final = "asked"
_SHOWN: Final = "shown"
_ANEW: Final = 'Nothing was charged. Say version=".." with a new text: it has its own coins, and is charged anew.'


class Content(Protocol):
    """What files hold; see `rows/files/contents.py`."""

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


NOTHING: Final = Kept("", "", "")  # nothing was shown yet


@dataclass(frozen=True, repr=False)
class ShownContents:
    """What the files of a line held when it was last shown, and what they hold for whoever is being shown it now."""

    shown: Kept
    asked: Kept | None = None


def noted_now(content: Content, held: ShownContents, secret: bytes) -> Kept | None:
    """Return what is to be noted of the files of a line, None if they hold what was shown; or refuse them."""
    stamp = _mark(secret, "stamp", content.stamp)
    last = held.asked or held.shown
    if stamp == last.stamp:
        return held.asked
    if last != NOTHING:
        before = content.digest(_sizes(last.sizes, last.digest, secret))
        if before is None or _mark(secret, "digest", before) != last.digest:
            raise DataRefused(
                "the files must hold what they held when these records were last asked for, or CSV files more lines at "
                "the end: coins are remembered for each key, so that a gap that is filled now would have been a secret",
                fix=_ANEW,
            )
    sizes = content.sizes
    digest = _mark(secret, "digest", content.digest(sizes) or "")
    return Kept(stamp, digest, _hidden(sizes, digest, secret))


def unknown_before() -> DataRefused:
    """Return the refusal of files whose coins were used before, where nobody knows what they held then."""
    return DataRefused(
        "the files must be known to hold what they held when these records were last asked for, but the ledger does "
        "not say what that was: an older Tacit wrote it, or it was taken out",
        fix=_ANEW,
    )


def taken_back() -> DataRefused:
    """Return the refusal to show what was asked of files that somebody else has asked for differently meanwhile."""
    return DataRefused(
        "the files must hold the same for everybody who asks for these records: others have asked meanwhile, when they "
        "held something else",
        fix="Ask again: what was paid for costs nothing more.",
    )


def read_contents(page: Page, dataset: str, lines: Iterable[str], mark: str) -> dict[str, ShownContents]:
    """Return what is noted of the files of lines, by their short names; refuse what somebody has changed."""
    if page.is_older and not inspect(page.db).has_table(CONTENTS.name):
        return {}
    found: dict[str, dict[str, Kept]] = {}
    for row in page.rows(CONTENTS, [(dataset, line, state) for line in lines for state in (_SHOWN, _ASKED)]).values():
        if row["seal"] != content_seal(row, mark, page.seal):
            raise page.damaged("what it says of files was changed")
        found.setdefault(row["line"], {})[row["state"]] = Kept(row["stamp"], row["digest"], row["sizes"])
    # what is asked for was never noted alone: a row is gone
    if any(_SHOWN not in states for states in found.values()):
        raise page.damaged("what it says of files was changed")
    return {line: ShownContents(states[_SHOWN], states.get(_ASKED)) for line, states in found.items()}


def write_contents(page: Page, dataset: str, line: str, held: ShownContents, mark: str) -> None:
    """Note what the files of a line held and hold."""
    for state, kept in ((_SHOWN, held.shown), (_ASKED, held.asked)):
        if kept is None:
            page.drop(CONTENTS, (dataset, line, state))
            continue
        row = {"dataset": dataset, "line": line, "state": state}
        row |= {"stamp": kept.stamp, "digest": kept.digest, "sizes": kept.sizes}
        page.put(CONTENTS, {**row, "seal": content_seal(row, mark, page.seal)})


def _mark(secret: bytes, what: str, text: str) -> str:
    return secret_for(secret, f"{what} {text}").hex()


def _hidden(sizes: Sequence[int], digest: str, secret: bytes) -> str:
    plain = b"".join(size.to_bytes(_SIZE_BYTES, "big") for size in sizes)
    return _padded(plain, digest, secret).hex()


def _sizes(sizes: str, digest: str, secret: bytes) -> list[int]:
    plain = _padded(bytes.fromhex(sizes), digest, secret)
    return [int.from_bytes(plain[at : at + _SIZE_BYTES], "big") for at in range(0, len(plain), _SIZE_BYTES)]


def _padded(text: bytes, digest: str, secret: bytes) -> bytes:
    pad = hashlib.shake_256(secret_for(secret, f"pad {digest}")).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, pad, strict=True))
