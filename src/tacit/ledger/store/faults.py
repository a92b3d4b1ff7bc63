"""What a database says when it cannot go on, as one sentence each: locked, full, read-only, damaged, gone.

No text of a database ever holds a row of data: a ledger has none.
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from tacit.errors import LedgerError
from tacit.ledger.store.address import Address

_SQLITE_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_POSTGRES_BUSY = ("40001", "40P01")  # serialization failure, deadlock: nothing was written, try again
_NO_ROOM = 1 << 16  # bytes; SQLite needs a few pages for a change and for what undoes it


def _cause(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _code(error: Exception) -> str:
    """Return SQLite's name or PostgreSQL's number of the error, or nothing."""
    cause = _cause(error)
    return str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")


def is_busy(error: Exception) -> bool:
    """Say whether trying again may help."""
    return _code(error).startswith(_SQLITE_BUSY) or _code(error) in _POSTGRES_BUSY


def refusal(error: Exception, address: Address, *, waited: float) -> LedgerError:
    """Return the sentence for an error of the database."""
    code, name = _code(error), address.name
    if is_busy(error) or code == "55P03":
        return LedgerError(
            f"was locked by another process for {waited:g} seconds; nothing was written",
            file=name,
            fix="Try again, or find the process that keeps a transaction open.",
        )
    if code == "SQLITE_FULL" or code == "53100" or (code.startswith("SQLITE_IOERR") and _is_full(address.file)):
        return LedgerError("cannot be written to: the disk is full; nothing was changed", file=name, fix="Make room.")
    if isinstance(_cause(error), sqlite3.Error):
        return _sqlite_refusal(error, code, address)
    if code in ("25006", "42501"):
        return LedgerError("may not be written to; nothing was changed", file=name, fix="Ask for write permission.")
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if lost:
        return LedgerError(
            f"the database went away ({_words(error)}); what was under way was either written as a whole or not at all",
            file=name,
            fix="Look at the last entries before trying again.",
        )
    return LedgerError(
        f"the database refused ({_words(error)})",
        file=name,
        fix="Check the address, that the server is running and that this user may read and write there.",
    )


def _sqlite_refusal(error: Exception, code: str, address: Address) -> LedgerError:
    name = address.name
    if code == "SQLITE_NOTADB":
        return LedgerError(
            "is not an SQLite database, so it is no ledger",
            file=name,
            fix="Name another file: Tacit will not write into this one.",
        )
    if code.startswith("SQLITE_CORRUPT") or "decode to UTF-8" in str(_cause(error)):
        return LedgerError("is a damaged SQLite database", file=name, fix="Put the last good copy back.")
    if code in ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY", "SQLITE_READONLY_CANTINIT"):
        return LedgerError(
            "cannot be read yet: a change to it broke off, and undoing that needs somebody who may write",
            file=name,
            fix="Let somebody with write permission run `tacit ledger verify` on it once.",
        )
    if code.startswith("SQLITE_READONLY"):
        return LedgerError("may not be written to; nothing was changed", file=name, fix="Ask for write permission.")
    if code.startswith("SQLITE_CANTOPEN"):
        return LedgerError(
            "cannot be opened: the file must be readable, and for a charge its folder writable",
            file=name,
            fix="Check the permissions of both. A ledger of an older Tacit must be opened once by somebody who may "
            "write before others can look at it.",
        )
    if code.startswith(("SQLITE_IOERR", "SQLITE_NOLFS")):
        return LedgerError(
            f"the disk refused ({_words(error)}); what was under way was not written",
            file=name,
            fix="Check that there is room, that no limit on file sizes or quota is reached, and the disk itself.",
        )
    return LedgerError(
        f"SQLite refused ({_words(error)}); nothing was written",
        file=name,
        fix="Run `tacit ledger verify`; if the ledger is not sound, put the last good copy back.",
    )


def _words(error: Exception) -> str:
    return next(iter(str(_cause(error)).splitlines()), "").strip().rstrip(".")


def _is_full(file: Path | None) -> bool:
    try:
        return file is not None and shutil.disk_usage(file.absolute().parent).free < _NO_ROOM
    except OSError:
        return False
