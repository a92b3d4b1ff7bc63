"""Where a ledger may be: a file with one name, or a PostgreSQL database.

Guarantee   A file is only written to under a name that no other name of the same file can go past: link counts above
            one, files that are mounted by themselves, and addresses that switch locking off are refused.
Assumes     Moving a ledger means moving the file while no process writes to it, together with the file
            `..-journal` beside it if a crash has left one.
Why         SQLite's locks belong to the file, whatever it is called, but what it needs to undo a half-written change
            lies beside the name. Whoever comes by another name would not find it. A folder may have many names
            (links, mounts, containers): its files lie beside each other under all of them.
Checked by  tests/contract/test_ledger_two_names.py.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from tacit.errors import LedgerError, is_path, kind_of, leads_to_a_file, path_words

_MODES = ("ro", "rw", "rwc")
_MOUNTS = Path("/proc/self/mountinfo")  # Linux; other systems cannot mount a file by itself


@dataclass(frozen=True)
class Address:
    """A checked address. `file` is None for a database server, and then `url` says where it is."""

    name: str
    url: URL
    file: Path | None = None
    mode: str = "rwc"

    def sqlite_uri(self, *, create: bool) -> str:
        """Return what SQLite opens: this file, never one that is made by looking at it."""
        assert self.file is not None  # noqa: S101 - for the type checker
        mode = "rw" if self.mode == "rwc" and not create else self.mode
        return f"{self.file.absolute().as_uri()}?mode={mode}"


def address_of(where: str | Path) -> Address:
    """Return a checked address; nothing is opened."""
    if not isinstance(where, str | Path):
        raise _no_address(where)
    text = str.__str__(where) if isinstance(where, str) else str(where)
    if not text or "\0" in text:
        raise _no_address(where)
    if "://" not in text:
        return _file(text, URL.create("sqlite"), Path(text).expanduser())
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text is not repeated: what cannot be parsed may still hold a password.
        raise LedgerError(
            "ledger must be a path or a database URL that can be read",
            fix='For example "postgresql+psycopg://user@host/database".',
        ) from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite_address(text, url)
    if url.drivername not in ("postgres", "postgresql", "postgresql+psycopg"):
        raise LedgerError(
            "ledger must be kept in SQLite (sqlite:///) or PostgreSQL (postgresql+psycopg://)",
            given=url.drivername,
            fix='Name a file, as in "ledger.db", or such a URL.',
        )
    url = url.set(drivername="postgresql+psycopg")
    return Address(url.render_as_string(hide_password=True), url)


def _sqlite_address(text: str, url: URL) -> Address:
    database = url.database or ":memory:"
    if ":memory:" in database or url.query.get("mode") == "memory":
        return _file(text, url, Path(":memory:"))
    for key, value in url.query.items():
        # Locks are what keeps two processes apart. Other settings are refused unseen: a ledger needs none of them.
        if (key, value) != ("uri", "true") and not (key == "mode" and value in _MODES):
            raise LedgerError(
                f"the address of a ledger must not set {key}: no setting may switch its locks off",
                given=f"{key}={value}",
                file=text.partition("?")[0],
                fix="Leave it out; only mode=ro is known, for looking.",
            )
    if database.startswith("file:"):
        path = database.removeprefix("file:")
        database = unquote(re.sub(r"^//(localhost)?(?=/)", "", path))
    return _file(text, url, Path(database).expanduser(), mode=str(url.query.get("mode", "rwc")))


def _file(name: str, url: URL, file: Path, *, mode: str = "rwc") -> Address:
    if ":memory:" in str(file):
        raise LedgerError(
            "a ledger must outlive the process, so it cannot be kept in memory", file=name, fix="Name a file."
        )
    if not leads_to_a_file(file):
        raise _no_address(name)
    return Address(name if is_path(file) else path_words(file), url, file, mode)


def _no_address(given: object) -> LedgerError:
    rule = f"ledger must be a path or a database URL, not {kind_of(given) if given != '' else 'an empty text'}"
    return LedgerError(rule, fix='For example "ledger.db".')


def check_place(address: Address, *, create: bool) -> Address:
    """Refuse a file that cannot be a ledger, before SQLite makes one of it; return it wherever the process goes."""
    file, name = address.file, address.name
    assert file is not None  # noqa: S101 - for the type checker
    try:
        if file.is_dir():
            raise LedgerError("is a folder", file=name, fix=f"Name a file in it: {Path(name) / 'ledger.db'}.")
        if not file.parent.is_dir():
            raise LedgerError(
                "the ledger's folder does not exist", file=name, given=str(file.parent), fix="Create it first."
            )
        if not create and (not file.exists() or file.stat().st_size == 0):
            raise no_ledger(name)
        # By name alone, before anything is read: opening a pipe would wait for somebody to write to it.
        if file.exists() and not file.is_file():
            raise LedgerError("is not a file", file=name, fix="Name another.")
        return replace(address, file=file.absolute())
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise LedgerError(f"cannot be opened ({why})", file=name, fix="Name another file.") from None


def no_ledger(name: str) -> LedgerError:
    """Return the refusal to look at a ledger that is not there."""
    return LedgerError("there is no ledger here", file=name, fix="Check the name, or begin one with a grant.")


def check_only_name(address: Address) -> None:
    """Refuse to write to a file that others may be writing to under another name."""
    file = address.file
    if file is None:
        return
    try:
        links, real = file.stat().st_nlink, Path(os.path.realpath(file))
    except FileNotFoundError:
        return  # it will be made, with one name
    except OSError as error:
        raise LedgerError(
            f"cannot be opened ({error.strerror or type(error).__name__})", file=address.name, fix="Name another file."
        ) from None
    if links > 1:
        raise LedgerError(
            f"must have one name, and this file has {links} (hard links): charges under two names can be lost",
            file=address.name,
            fix="Remove the other names (`find . -samefile ..` shows them), or make them symbolic links.",
        )
    if _is_mounted(real):
        raise LedgerError(
            "is mounted by itself, so the same file has another name elsewhere: charges under two names can be lost",
            file=address.name,
            fix="Mount the folder that it lies in instead of the file, as in `docker run -v ledgers:/ledgers`.",
        )


def _is_mounted(file: Path) -> bool:
    """Say whether a file is a mount point of its own, as `docker run -v ledger.db:/ledger.db` makes it."""
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return False
    sought = os.fsencode(file)
    # blanks and backslashes in the fifth field are written in octal
    return any(
        re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), fields[4]) == sought
        for fields in map(bytes.split, lines)
        if len(fields) > 4
    )
