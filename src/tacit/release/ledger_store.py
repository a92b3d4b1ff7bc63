"""Where a ledger is kept: an SQLite file or a PostgreSQL database, opened, checked and locked.

Guarantee   `Store.write` runs its work in one transaction that no other process can interleave with; what it
            returned from is on disk. Killed at any point, the work is there as a whole or not at all.
Assumes     The file system keeps its word about fsync and locks (network file systems often do not: use
            PostgreSQL there). PostgreSQL runs with fsync on.
Why         SQLite: BEGIN IMMEDIATE takes the only write lock before the first read; synchronous=FULL. PostgreSQL:
            READ COMMITTED, and the head row is read FOR UPDATE first, so every later read sees what the one
            before has committed. No connection outlives an operation, so a forked child never shares one.
Checked by  tests/contract/test_ledger_backends.py, tests/contract/test_ledger_processes.py.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from tacit.errors import LedgerError
from tacit.release.ledger_chain import NOTHING_BEFORE, Seal, Stored

SCHEMA_VERSION = 1

Result = TypeVar("Result")

_metadata = MetaData()

HEAD = Table(
    "tacit_head",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # always 1
    Column("version", Integer, nullable=False),
    Column("count", Integer, nullable=False),
    Column("head", Text, nullable=False),
    Column("seal", Text, nullable=False),
    Column("key_mark", Text, nullable=False),
)

ENTRIES = Table(
    "tacit_entries",
    _metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("analyst", Text),
    Column("epsilon", Text, nullable=False),  # a fraction as text: "1/10"
    Column("policy", Text),
    Column("policy_text", Text),
    Column("what", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("tacit_entries_by_dataset", "dataset", "number"),
)

ACCOUNTS = Table(
    "tacit_accounts",
    _metadata,
    Column("dataset", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),  # "" is the data set's total
    Column("granted", Text, nullable=False),  # "0": an analyst who has charged and has no cap
    Column("spent", Text, nullable=False),
    Column("policy", Text),
    Column("first_grant", Integer),  # the entry that carries the policy's text
)

_OURS = frozenset(_metadata.tables)

# Any number will do, as long as every process takes the same one: "tacit" in ASCII.
_CREATION_LOCK = 0x7461636974

_SQLITE_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
_POSTGRES_BUSY = ("40001", "40P01")  # serialization failure, deadlock: nothing was written, try again

_PAUSE_SECONDS = 0.005


class Store:
    """One opened ledger database. Holds no connection between operations."""

    def __init__(self, where: str | Path, *, seal: Seal, wait_seconds: float, create: bool) -> None:
        self._url = _url(where)
        self._is_sqlite = self._url.get_backend_name() == "sqlite"
        self.name = str(where) if self._is_sqlite else self._url.render_as_string(hide_password=True)
        self._wait_seconds = wait_seconds
        self._engine: Engine | None = None
        if self._is_sqlite:
            try:
                _check_place(self._url, name=self.name, create=create)
            except OSError as error:
                why = error.strerror or type(error).__name__
                raise LedgerError(f"cannot be opened ({why})", file=self.name, fix="Name another file.") from None
        self._engine = _engine(self._url, name=self.name, wait_seconds=wait_seconds)
        try:
            if self.read(self._is_new):
                if not create:
                    raise _no_ledger(self.name)
                self._create(seal)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the database. Closing twice is harmless."""
        if self._engine is not None:
            self._engine.dispose()
        self._engine = None

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Return what `work` reads; all its reads see the ledger at one moment, and nobody is kept waiting."""
        if self._is_sqlite:
            return self._attempt(work, {"tacit_begin": "BEGIN"})
        return self._attempt(work, {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True})

    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` alone in one transaction. It may be run again if the database asks for it.

        On PostgreSQL `work` must begin with `locked_head`, which is what keeps the others out.
        """
        if self._is_sqlite:
            return self._attempt(work, {"tacit_begin": "BEGIN IMMEDIATE"})

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
            raise LedgerError(
                "has lost its head row, so nothing may be charged",
                file=self.name,
                fix="Put the last good copy back; `tacit ledger verify` tells which one is good.",
            )
        self._check_version(row["version"])
        return dict(row)

    def _attempt(self, work: Callable[[Connection], Result], options: dict[str, Any]) -> Result:
        if self._engine is None:
            raise LedgerError("is closed", file=self.name, fix="Open it again with Ledger(...).")
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                with self._engine.connect() as db, db.execution_options(**options).begin():
                    return work(db)
            except (SQLAlchemyError, sqlite3.Error) as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise _refusal(error, name=self.name, waited=self._wait_seconds) from None
            # SQLite waits by itself in most cases, but not while a journal is being switched or recovered.
            time.sleep(_PAUSE_SECONDS)

    def _is_new(self, db: Connection) -> bool:
        """Return whether there is nothing here yet; refuse what is there and is no ledger that we know."""
        present = set(inspect(db).get_table_names())
        if not present & _OURS:
            # A PostgreSQL database is usually shared with other tables; a file was meant for the ledger alone.
            if present and self._is_sqlite:
                raise LedgerError(
                    f"is an SQLite database but no Tacit ledger; it holds {', '.join(sorted(present)[:5])}",
                    file=self.name,
                    fix="Name another file: Tacit will not write into this one.",
                )
            return True
        if missing := sorted(_OURS - present):
            raise LedgerError(
                f"is a half-written or damaged ledger: {', '.join(missing)} missing",
                file=self.name,
                fix="Put the last good copy back, or name a new file and grant the budget that is left.",
            )
        version = db.execute(select(HEAD.c.version).where(HEAD.c.id == 1)).scalar_one_or_none()
        if version is not None:  # a lost head row is for `verify` to report
            self._check_version(version)
        return False

    def _check_version(self, version: int) -> None:
        if version != SCHEMA_VERSION:
            raise LedgerError(
                f"was written by a newer Tacit: this one knows ledger version {SCHEMA_VERSION}",
                given=version,
                file=self.name,
                fix="Upgrade with `pip install -U tacit`.",
            )

    def _create(self, seal: Seal) -> None:
        if self._is_sqlite:
            self._use_write_ahead_log()

        def build(db: Connection) -> None:
            if not self._is_sqlite:
                db.execute(select(func.pg_advisory_xact_lock(_CREATION_LOCK)))
            if not self._is_new(db):  # another process was faster
                return
            _metadata.create_all(db)
            start = {"count": 0, "head": NOTHING_BEFORE, "seal": seal.of_head(count=0, head=NOTHING_BEFORE)}
            db.execute(insert(HEAD).values(id=1, version=SCHEMA_VERSION, key_mark=seal.of_key(), **start))

        self.write(build)

    def _use_write_ahead_log(self) -> None:
        """Let readers and the writer not wait for each other. The mode stays with the file.

        Outside `_attempt`, since the mode cannot be changed inside a transaction. Where it cannot be had at all,
        SQLite keeps its rollback journal, which is slower and just as safe.
        """
        assert self._engine is not None  # noqa: S101 - for the type checker
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                raw = self._engine.raw_connection()
                try:
                    raw.cursor().execute("PRAGMA journal_mode=WAL").close()
                finally:
                    raw.close()
            except (SQLAlchemyError, sqlite3.Error) as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise _refusal(error, name=self.name, waited=self._wait_seconds) from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return


def rows(db: Connection, statement: Select[Any]) -> list[Stored]:
    """Return the rows of a select as dictionaries."""
    return [dict(row) for row in db.execute(statement).mappings()]


def streamed(db: Connection, statement: Select[Any]) -> Iterable[Stored]:
    """Yield the rows of a select as dictionaries, without holding all of them."""
    with db.execute(statement.execution_options(yield_per=1000)) as result:
        for row in result.mappings():
            yield dict(row)


def _url(where: str | Path) -> URL:
    text = str(where)
    if not text or "\0" in text or not isinstance(where, str | Path):
        raise LedgerError("ledger must be a path or a database URL", given=where, fix='For example "ledger.db".')
    if "://" not in text:
        return URL.create("sqlite+pysqlite", database=str(Path(text).expanduser()))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text is not repeated: what cannot be parsed may still hold a password.
        raise LedgerError(
            "ledger must be a path or a database URL that can be read",
            fix='For example "postgresql+psycopg://user@host/database".',
        ) from None
    known = {
        "sqlite": "sqlite+pysqlite",
        "postgres": "postgresql+psycopg",
        "postgresql": "postgresql+psycopg",
    }
    driver = known.get(url.drivername, url.drivername)
    if driver not in known.values():
        raise LedgerError(
            "ledger must be kept in SQLite (sqlite:///) or PostgreSQL (postgresql+psycopg://)",
            given=url.drivername,
            fix='Name a file, as in "ledger.db", or such a URL.',
        )
    return url.set(drivername=driver)


def _check_place(url: URL, *, name: str, create: bool) -> None:
    database = url.database or ":memory:"
    if ":memory:" in database or url.query.get("mode") == "memory":
        raise LedgerError(
            "a ledger must outlive the process, so it cannot be kept in memory", file=name, fix="Name a file."
        )
    if database.startswith("file:"):  # an SQLite URI: SQLite itself says what is wrong with it
        return
    path = Path(database)
    if path.is_dir():
        raise LedgerError("is a folder", file=name, fix=f"Name a file in it: {Path(name) / 'ledger.db'}.")
    if not path.parent.is_dir():
        raise LedgerError(
            "the ledger's folder does not exist", file=name, given=str(path.parent), fix="Create it first."
        )
    if not create and (not path.exists() or path.stat().st_size == 0):
        raise _no_ledger(name)


def _no_ledger(name: str) -> LedgerError:
    return LedgerError("there is no ledger here", file=name, fix="Check the name, or begin one with a grant.")


def _engine(url: URL, *, name: str, wait_seconds: float) -> Engine:
    # NullPool: every operation opens and closes its own connection, so nothing is shared across a fork or between
    # threads and nothing is left open when a Ledger is dropped without close(). The price
    # is about 2 ms per operation on PostgreSQL over a socket; releases are rare.
    if url.get_backend_name() == "postgresql":
        try:
            # Ten seconds to answer the phone, unless the URL says otherwise; the default is to wait for ever.
            patience = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
            return create_engine(url, poolclass=NullPool, isolation_level="READ COMMITTED", connect_args=patience)
        except ImportError:
            raise LedgerError(
                "PostgreSQL needs the package psycopg", file=name, fix="Run `pip install 'tacit[postgres]'`."
            ) from None
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": wait_seconds})

    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # Python must not begin transactions by itself: `begin` below does
        connection.execute("PRAGMA synchronous=FULL").close()
        connection.execute("PRAGMA fullfsync=ON").close()  # macOS: fsync alone does not reach the disk there

    def begin(db: Connection) -> None:
        db.exec_driver_sql(db.get_execution_options().get("tacit_begin", "BEGIN"))

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)
    return engine


def _cause(error: Exception) -> BaseException:
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _code(error: Exception) -> str:
    """Return SQLite's name or PostgreSQL's number of the error, or nothing."""
    cause = _cause(error)
    return str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")


def _is_busy(error: Exception) -> bool:
    return _code(error).startswith(_SQLITE_BUSY) or _code(error) in _POSTGRES_BUSY


def _refusal(error: Exception, *, name: str, waited: float) -> LedgerError:
    code = _code(error)
    if _is_busy(error) or code == "55P03":
        return LedgerError(
            f"was locked by another process for {waited:g} seconds; nothing was written",
            file=name,
            fix="Try again, or find the process that keeps a transaction open.",
        )
    if code == "SQLITE_NOTADB":
        return LedgerError(
            "is not an SQLite database, so it is no ledger",
            file=name,
            fix="Name another file: Tacit will not write into this one.",
        )
    if code.startswith("SQLITE_CORRUPT"):
        return LedgerError("is a damaged SQLite database", file=name, fix="Put the last good copy back.")
    if code.startswith("SQLITE_READONLY") or code in ("25006", "42501"):
        return LedgerError("may not be written to; nothing was changed", file=name, fix="Ask for write permission.")
    if code.startswith("SQLITE_CANTOPEN"):
        return LedgerError(
            "cannot be opened: the file and its folder must both be readable and writable",
            file=name,
            fix="Check the permissions; a file on read-only media opens as "
            '"sqlite:///file:ledger.db?mode=ro&immutable=1&uri=true".',
        )
    if code == "SQLITE_FULL":
        return LedgerError("cannot be written to: the disk is full; nothing was changed", file=name, fix="Make room.")
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    said = next(iter(str(_cause(error)).splitlines()), "").strip().rstrip(".")
    if lost:
        return LedgerError(
            f"the database went away ({said}); what was under way was either written as a whole or not at all",
            file=name,
            fix="Look at the last entries before trying again.",
        )
    return LedgerError(
        f"the database refused ({said})",
        file=name,
        fix="Check the address, that the server is running and that this user may read and write there.",
    )
