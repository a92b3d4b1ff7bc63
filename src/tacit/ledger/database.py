"""A ledger's database, SQLite or PostgreSQL: opened, checked and locked; and its errors, as one sentence each.

Guarantee   `Store.write` runs its work in one transaction that no other process can interleave with; what it
            returned from is on disk. Killed at any point, the work is there as a whole or not at all.
Assumes     The file system keeps its word about fsync and locks (network file systems often do not: use
            PostgreSQL there). PostgreSQL runs with fsync on.
Why         SQLite: BEGIN IMMEDIATE takes the only write lock before the first read; synchronous=FULL; a rollback
            journal, whose locks belong to the file itself and not to files beside one of its names. PostgreSQL:
            READ COMMITTED, and the head row is read FOR UPDATE first, so every later read sees what the transaction
            before has committed. No connection outlives an operation, so a forked child never shares one. A ledger has
            no rows of data, so no text of a database holds one.
Checked by  tests/contract/test_ledger_backends.py, tests/contract/test_ledger_processes.py,
            tests/contract/test_ledger_two_names.py, tests/contract/test_faults.py.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, Select, create_engine, event, func, insert, inspect, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from tacit.errors import Exit, LedgerError
from tacit.ledger import chain
from tacit.ledger.chain import HEAD, OURS, SCHEMA_VERSION, Seal, Stored
from tacit.ledger.input import Address, address_of, check_only_name, check_place, no_ledger

Result = TypeVar("Result")

# Any number will do, as long as every process takes the same one: "tacit" in ASCII.
_CREATION_LOCK = 0x7461636974

_PAUSE_SECONDS = 0.005


class Store:
    """One opened ledger database. Holds no connection between operations."""

    def __init__(self, where: str | Path, *, seal: Seal, wait_seconds: float, create: bool) -> None:
        self._address = address_of(where)
        self._is_sqlite = self._address.file is not None
        self.name = self._address.name
        self._wait_seconds = wait_seconds
        self._engine: Engine | None = None
        if self._is_sqlite:
            self._address = check_place(self._address, create=create)
        if create:
            check_only_name(self._address)
            self._begin_file()
        self._engine = _engine(self._address, wait_seconds=wait_seconds, create=create)
        try:
            self._leave_write_ahead_log()
            if self.read(self._is_new, anyhow=True):
                if not create:
                    raise no_ledger(self.name)
                self._create(seal)
            elif create:
                self.read(lambda db: None)
            if create:
                # from now on a file that is gone stays gone: a new one would be a new budget
                self._engine = _engine(self._address, wait_seconds=wait_seconds, create=False)
        except BaseException:
            self.close()
            raise

    def _begin_file(self) -> None:
        """Make a new file that only its owner may read; what SQLite writes beside it is like it."""
        if self._address.file is not None and self._address.mode == "rwc":
            with suppress(OSError):  # it exists, or SQLite will say why it cannot be made
                os.close(os.open(self._address.file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def close_to_others(self) -> None:
        """Let nobody but its owner read or write the file from now on, if it is ours: it will hold a secret."""
        if self._address.file is not None and os.name == "posix":
            with suppress(OSError):  # it belongs to somebody else, who decides
                if stat.S_IMODE(self._address.file.stat().st_mode) & 0o077:
                    self._address.file.chmod(0o600)

    def close(self) -> None:
        """Let go of the database. Closing twice is harmless."""
        if self._engine is not None:
            self._engine.dispose()
        self._engine = None

    def read(self, work: Callable[[Connection], Result], *, anyhow: bool = False) -> Result:
        """Return what `work` reads; all its reads see the ledger at one moment, and nobody is kept waiting.

        A ledger that holds something that Tacit did not make is refused, unless `anyhow`.
        """

        def looked(db: Connection) -> Result:
            if not anyhow:
                self._refuse_strange(db)
            return work(db)

        if self._is_sqlite:
            return self._attempt(looked, {"tacit_begin": "BEGIN"})
        return self._attempt(looked, {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True})

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` alone in one transaction. It may be run again if the database asks for it.

        On PostgreSQL `work` must begin with `locked_head`, which is what keeps the others out.
        """
        if self._is_sqlite:

            def alone(db: Connection) -> Result:
                # after the lock was taken: whoever has given the file a second name before it is seen
                check_only_name(self._address)
                if db.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal":
                    raise self._held_by_older()
                return work(db)

            return self._attempt(alone, {"tacit_begin": "BEGIN IMMEDIATE"})

        def durably(db: Connection) -> Result:
            # The name has to be text in the statement: SET takes no parameters; the number is ours.
            db.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, int(self._wait_seconds * 1000))}")
            # An acknowledged charge must survive a crash of the server, also where the default says otherwise.
            db.exec_driver_sql(
                "SELECT set_config('synchronous_commit', 'on', true) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )
            return work(db)

        return self._attempt(durably, {})

    def locked_head(self, db: Connection) -> Stored:
        """Return the head row and keep every other writer waiting until the transaction ends."""
        row = db.execute(select(HEAD).where(HEAD.c.id == 1).with_for_update()).mappings().one_or_none()
        if row is None:
            fix = "Put the last good copy back; `tacit ledger verify` tells which one is good."
            raise LedgerError("has lost its head row, so nothing may be charged", file=self.name, fix=fix)
        self._check_version(row["version"])
        self._refuse_strange(db)
        return dict(row)

    def _refuse_strange(self, db: Connection) -> None:
        if found := chain.strange(db):
            rule = f"holds the {found}, which Tacit did not make and which could change sums, so nothing may be charged"
            fix = "Put the last good copy back, or look at it, drop it and run `tacit ledger verify`."
            raise LedgerError(rule, file=self.name, fix=fix)

    def _held_by_older(self) -> LedgerError:
        rule = "is still open in a process of an older Tacit, which writes beside the file; nothing was written"
        return LedgerError(rule, file=self.name, fix="End that process and try again.")

    def _attempt(self, work: Callable[[Connection], Result], options: dict[str, Any]) -> Result:
        if self._engine is None:
            raise LedgerError("is closed", file=self.name, fix="Open it again with Ledger(...).")
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                with self._engine.connect() as db, db.execution_options(**options).begin():
                    return work(db)
            except (SQLAlchemyError, sqlite3.Error) as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise refusal(error, self._address, waited=self._wait_seconds) from None
            # SQLite waits by itself in most cases, but not while a journal is being switched or recovered.
            time.sleep(_PAUSE_SECONDS)

    def _is_new(self, db: Connection) -> bool:
        """Return whether there is nothing here yet; refuse what is there and is no ledger that we know."""
        present = set(inspect(db).get_table_names())
        if not present & OURS:
            # A PostgreSQL database is usually shared with other tables; a file was meant for the ledger alone.
            if present and self._is_sqlite:
                rule = f"is an SQLite database but no Tacit ledger; it holds {', '.join(sorted(present)[:5])}"
                raise LedgerError(rule, file=self.name, fix="Name another file: Tacit will not write into this one.")
            return True
        version = None
        if HEAD.name in present:
            version = db.execute(select(HEAD.c.version).where(HEAD.c.id == 1)).scalar_one_or_none()
        # an older ledger lacks what came later; a lost head row is for `verify` to report
        if missing := sorted(chain.WANTED.get(version or 0, chain.FROM_THE_START) - present):
            rule = f"is a half-written or damaged ledger: {', '.join(missing)} missing"
            fix = "Put the last good copy back, or name a new file and grant the budget that is left."
            raise LedgerError(rule, file=self.name, fix=fix)
        if version is not None:
            self._check_version(version)
        return False

    def _check_version(self, version: object) -> None:
        if version != SCHEMA_VERSION and version not in chain.OLDER_VERSIONS:
            rule = f"was written by a newer Tacit: this one knows ledger version {SCHEMA_VERSION}"
            raise LedgerError(rule, given=version, file=self.name, fix="Upgrade with `pip install -U tacit`.")

    def _create(self, seal: Seal) -> None:
        def build(db: Connection) -> None:
            if not self._is_sqlite:
                db.execute(select(func.pg_advisory_xact_lock(_CREATION_LOCK)))
            if not self._is_new(db):  # another process was faster
                return
            chain.METADATA.create_all(db)
            head = {"count": 0, "head": chain.NOTHING_BEFORE}
            head_seal = seal.of_head(**head, rows=chain.node_seal({}, seal))  # type: ignore[arg-type]
            db.execute(
                insert(HEAD).values(id=1, version=SCHEMA_VERSION, key_mark=seal.of_key(), seal=head_seal, **head)
            )

        self.write(build)

    def _leave_write_ahead_log(self) -> None:
        """Change a ledger of an older Tacit from a write-ahead log to a rollback journal; the file remembers the mode.

        A write-ahead log and its locks lie beside one name of the file, and it cannot be read where nothing may be
        written. Outside `_attempt`, since the mode cannot be changed inside a transaction. A process that may only read
        goes on as well as the file lets it.
        """
        file = self._address.file
        if file is None or self._address.mode == "ro" or not _has_write_ahead_log(file):
            return
        assert self._engine is not None  # noqa: S101 - for the type checker
        check_only_name(self._address)
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                raw = self._engine.raw_connection()
                try:
                    raw.cursor().execute("PRAGMA journal_mode=DELETE").close()
                finally:
                    raw.close()
            except (SQLAlchemyError, sqlite3.Error) as error:
                if not is_busy(error):
                    return
                if time.monotonic() > deadline:
                    raise self._held_by_older() from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return


def _has_write_ahead_log(file: Path) -> bool:
    """Say whether an SQLite file is in that mode: bytes 18 and 19 of its header are 2."""
    try:
        with file.open("rb") as stream:
            return stream.read(20)[18:] == b"\2\2"
    except OSError:
        return False


def rows(db: Connection, statement: Select[Any]) -> list[Stored]:
    """Return the rows of a select as dictionaries."""
    return [dict(row) for row in db.execute(statement).mappings()]


def tolerant(db: Connection) -> None:
    """Let this connection read texts that are not UTF-8, so that what somebody wrote into a ledger can be reported."""
    driver = db.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        driver.text_factory = lambda text: text.decode("utf-8", "backslashreplace")


def streamed(db: Connection, statement: Select[Any]) -> Iterable[Stored]:
    """Yield the rows of a select as dictionaries, without holding all of them."""
    with db.execute(statement.execution_options(yield_per=1000)) as result:
        for row in result.mappings():
            yield dict(row)


def _engine(address: Address, *, wait_seconds: float, create: bool) -> Engine:
    # NullPool: every operation opens and closes its own connection, so nothing is shared across a fork or between
    # threads and nothing is left open when a Ledger is dropped without close(). That costs about 2 ms per operation on
    # PostgreSQL over a socket; releases are rare.
    if address.url is not None:
        try:
            # Ten seconds to answer the phone, unless the URL says otherwise; the default is to wait for ever.
            patience = {} if "connect_timeout" in address.url.query else {"connect_timeout": 10}
            return create_engine(
                address.url, poolclass=NullPool, isolation_level="READ COMMITTED", connect_args=patience
            )
        except ImportError:
            fix = "Run `pip install 'tacit[postgres]'`."
            raise LedgerError("PostgreSQL needs the package psycopg", file=address.name, fix=fix) from None
    uri = address.sqlite_uri(create=create)

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(uri, uri=True, timeout=wait_seconds, check_same_thread=False)
        connection.isolation_level = None  # Python must not begin transactions by itself: `begin` below does
        connection.execute("PRAGMA synchronous=FULL").close()
        connection.execute("PRAGMA fullfsync=ON").close()  # macOS: fsync alone does not reach the disk there
        return connection

    def begin(db: Connection) -> None:
        db.exec_driver_sql(db.get_execution_options().get("tacit_begin", "BEGIN"))

    engine = create_engine("sqlite+pysqlite://", poolclass=NullPool, creator=connect)
    event.listen(engine, "begin", begin)
    return engine


_SQLITE_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_POSTGRES_BUSY = ("40001", "40P01")  # serialization failure, deadlock: nothing was written, try again
_NO_LEDGER = ("SQLITE_NOTADB", "SQLITE_CORRUPT")  # trying again cannot help
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


_REFUSALS: Final = (
    (
        "was locked by another process for {waited:g} seconds; nothing was written",
        "Try again, or find the process that keeps a transaction open.",
        ("busy", "55P03"),
    ),
    ("cannot be written to: the disk is full; nothing was changed", "Make room.", ("SQLITE_FULL", "53100")),
    (
        "is not an SQLite database, so it is no ledger",
        "Name another file: Tacit will not write into this one.",
        ("SQLITE_NOTADB",),
    ),
    ("is a damaged SQLite database", "Put the last good copy back.", ("SQLITE_CORRUPT",)),
    (
        "cannot be read yet: a change to it broke off, and undoing that needs somebody who may write",
        "Let somebody with write permission run `tacit ledger verify` on it once.",
        ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY", "SQLITE_READONLY_CANTINIT"),
    ),
    ("may not be written to; nothing was changed", "Ask for write permission.", ("SQLITE_READONLY", "25006")),
    (
        "may not be read, or may not be written to; nothing was changed",
        "Ask for SELECT on its tables to look, and for INSERT, UPDATE and DELETE as well to charge.",
        ("42501",),
    ),
    (
        "cannot be opened: the file must be readable, and for a charge its folder writable",
        "Check the permissions of both. A ledger of an older Tacit must be opened once by somebody who may write "
        "before others can look at it.",
        ("SQLITE_CANTOPEN",),
    ),
    (
        "the disk refused ({words}); what was under way was not written",
        "Check that there is room, that no limit on file sizes or quota is reached, and the disk itself.",
        ("SQLITE_IOERR", "SQLITE_NOLFS"),
    ),
    (
        "SQLite refused ({words}); nothing was written",
        "Run `tacit ledger verify`; if the ledger is not sound, put the last good copy back.",
        ("SQLITE",),
    ),
    (
        "the database went away ({words}); what was under way was either written as a whole or not at all",
        "Look at the last entries before trying again.",
        ("lost",),
    ),
    (
        "the database refused ({words})",
        "Check the address, that the server is running and that this user may read and write there.",
        ("",),
    ),
)  # rule and fix, by how the code of an error begins; the first that fits


def refusal(error: Exception, address: Address, *, waited: float) -> LedgerError:
    """Return the sentence for an error of the database."""
    code = _code(error)
    if is_busy(error):
        code = "busy"
    elif code.startswith("SQLITE_IOERR") and _is_full(address.file):
        code = "SQLITE_FULL"
    elif isinstance(_cause(error), sqlite3.Error):
        code = "SQLITE_CORRUPT" if "decode to UTF-8" in str(_cause(error)) else code or "SQLITE"
    elif isinstance(error, DBAPIError) and error.connection_invalidated:
        code = code if code in ("25006", "42501", "53100", "55P03") else "lost"
    rule, fix = next((rule, fix) for rule, fix, codes in _REFUSALS if code.startswith(codes))
    exit_code = Exit.FAULT if code == "lost" else Exit.REFUSED if code.startswith(_NO_LEDGER) else Exit.UNREACHABLE
    return LedgerError(rule.format(waited=waited, words=_words(error)), file=address.name, fix=fix, exit_code=exit_code)


def _words(error: Exception) -> str:
    return next(iter(str(_cause(error)).splitlines()), "").strip().rstrip(".")


def _is_full(file: Path | None) -> bool:
    try:
        return file is not None and shutil.disk_usage(file.absolute().parent).free < _NO_ROOM
    except OSError:
        return False
