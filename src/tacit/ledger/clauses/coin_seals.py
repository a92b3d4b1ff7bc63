"""Names, marks and seals of coins, of their lines, and of what is noted of files; see `ledger/clauses/coins.py`."""

from __future__ import annotations

import hashlib
from typing import Final

from tacit.ledger.store.chain import Seal, Stored

_CONTENT: Final = ("dataset", "line", "state", "stamp", "digest", "sizes")


def at(source: str, line: str) -> str:
    """Return the name of a line of one source."""
    return repr((source, line))


def short(source: str, line: str) -> str:
    """Return the name under which a ledger keeps a line of one source."""
    return hashlib.sha256(at(source, line).encode()).hexdigest()


def mark_of(secret: bytes, source: str = "") -> str:
    """Return what tells coins from those of other secrets and sources, and nothing about them."""
    return hashlib.sha256(b"mark of coins" + secret + source.encode()).hexdigest()[:32]


def shown_name(line: str, mark: str) -> str:
    """Return the name of a line in what is noted of showings: coins of another secret are another line."""
    return hashlib.sha256(f"{mark} {line}".encode()).hexdigest()[:32]


def secret_of(coin: Stored, seal: Seal) -> bytes | None:
    """Return the secret that belongs to what a ledger keeps, or None if somebody has changed that.

    With a key the secret is not in the ledger.
    """
    kept = coin["secret"]
    if coin["seal"] != coin_seal(coin["dataset"], kept, seal):
        return None
    if seal.key is not None:
        kept = seal.of({"ledger": "secret of coins", "dataset": coin["dataset"], "kept": kept})
    try:
        return bytes.fromhex(kept)
    except (ValueError, TypeError):
        return None


def coin_seal(dataset: str, secret: str, seal: Seal) -> str:
    """Return the seal of what is kept of a secret."""
    return seal.of({"ledger": "coins", "dataset": dataset, "secret": secret})


def line_seal(row: Stored, mark: str, seal: Seal) -> str:
    """Return the seal of what a line has reached."""
    fields = {name: row[name] for name in ("dataset", "line", "epsilon", "entry")}
    return seal.of({"ledger": "line", "mark": mark, **fields})


def content_seal(row: Stored, mark: str, seal: Seal) -> str:
    """Return the seal of what is noted of the files of a line."""
    return seal.of({"ledger": "content", "mark": mark, **{name: row[name] for name in _CONTENT}})
