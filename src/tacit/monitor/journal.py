"""What a monitor remembers: one SQLite file, half private and half public, changed in whole steps only.

Guarantee   A step (what its batch adds, the noisy verdict, and that the batch was taken) is written in one transaction:
            killed at any point, it is there as a whole or not at all. A verdict that was returned is never lost and
            never drawn again. One process at a time has a state; another one is refused. A state is only ever continued
            with the policy, place, threshold, epsilon, window and unit that it was begun with.
Assumes     The file system keeps its word about fsync and locks. Nobody reads the file who may not see the visits: it
            holds them, is made for its owner alone (0600), and its size depends on them.
Why         BEGIN IMMEDIATE takes the write lock before the first read. synchronous=EXTRA also syncs the folder when the
            rollback journal goes, so that a commit survives a power cut. secure_delete overwrites expired visits. The
            lock between processes is an exclusive transaction on an empty database beside the state; the operating
            system ends it with the process.
Checked by  tests/unit/monitor/test_monitor_journal.py, tests/contract/test_monitor_crash.py.

Tables called `public_..` hold what was published, and nothing else: they may be exported. Tables called `private_..`
hold visits that still count, who was counted, and which batches were taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.errors import PlanError, kind_of, leads_to_a_file, path_words, system_reason

VERSION: Final = 2
_APPLICATION: Final = 0x7461636D  # "tacm": how SQLite files say whose they are
_HEADER: Final = 100  # bytes
_WAIT_SECONDS: Final = 30.0  # for somebody who looks at the state just now
_SCHEMA: Final = """
CREATE TABLE public_monitor (
    id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, number TEXT NOT NULL, settings TEXT NOT NULL
);
CREATE TABLE public_steps (step INTEGER PRIMARY KEY, replayed INTEGER NOT NULL);
CREATE TABLE public_alarms (
    step INTEGER NOT NULL, place INTEGER NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (step, place)
) WITHOUT ROWID;
CREATE TABLE public_charge (id INTEGER PRIMARY KEY CHECK (id = 1), receipt TEXT);
CREATE TABLE private_batches (name TEXT PRIMARY KEY, step INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE private_visits (
    first INTEGER NOT NULL, last INTEGER NOT NULL, visits INTEGER NOT NULL, PRIMARY KEY (first, last)
) WITHOUT ROWID;
CREATE TABLE private_places (place INTEGER PRIMARY KEY, visits INTEGER NOT NULL);
CREATE TABLE private_seen (
    person TEXT NOT NULL, event TEXT NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (person, event)
) WITHOUT ROWID;
CREATE TABLE private_covered (
    person TEXT NOT NULL, event TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY (person, event, first)
) WITHOUT ROWID;
CREATE TABLE private_people (person TEXT PRIMARY KEY, kept INTEGER NOT NULL) WITHOUT ROWID;
"""
_SETTINGS: Final = (
    "synchronous = EXTRA",
    "fullfsync = ON",  # macOS: fsync alone does not reach the disk there
    "secure_delete = ON",
    "temp_store = MEMORY",
    "cache_size = -65536",  # KiB: a million people at once
)
_HOW_IT_IS_READ: Final = ("columns", "clock")  # may still be put right as long as nothing was read


@dataclass(frozen=True)
class Alarm:
    """One published alarm: at which step, at which position of the places, with which noisy count."""

    step: int
    place: int
    value: int


@dataclass(frozen=True)
class PublishedHistory:
    """Everything that a monitor has published so far; holds nothing else."""

    settings: dict[str, Any]
    steps: tuple[int, ...]
    alarms: tuple[Alarm, ...]
    receipt: dict[str, Any] | None
    replayed: bool


class Journal:
    """The state of one monitor. Every method may be called from any thread of the process that made it."""

    def __init__(self, state: str | Path | None, settings: Mapping[str, Any]) -> None:
        self._file = None if state is None else _checked_place(state)
        self.name = "memory" if state is None else path_words(state)
        self.is_new = True
        self._process = os.getpid()
        self._guard = threading.RLock()
        self._let_go = _nothing_held if self._file is None else _locked(self._file, self.name)
        try:
            made = self._file is not None and _made(self._file)
            self._db = _connected(":memory:" if self._file is None else str(self._file))
        except BaseException:
            self._let_go()
            raise
        self._close = weakref.finalize(self, _closed, self._db, self._let_go)
        try:
            self._begin(settings)
        except BaseException:
            if made:
                self.forget()
            self.close()
            raise

    def close(self) -> None:
        """Let go of the state, so that another process may go on with it. Closing twice is harmless."""
        self._close()

    def _begin(self, settings: Mapping[str, Any]) -> None:
        text = json.dumps(settings, ensure_ascii=False)
        with self.transaction() as db:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            self.is_new = not tables
            if tables and _application(db) != _APPLICATION:
                raise PlanError("is no state of a monitor", key="state", given=self.name, fix="Name another file.")
            if self.is_new:
                for statement in _SCHEMA.split(";")[:-1]:
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {_APPLICATION}")
                number = hashlib.sha256(f"{self.name} {time.time_ns()} {os.getpid()}".encode()).hexdigest()[:16]
                db.execute("INSERT INTO public_monitor VALUES (1, ?, ?, ?)", (VERSION, number, text))
            version, self.number, stored = db.execute("SELECT version, number, settings FROM public_monitor").fetchone()
            if version != VERSION:
                rule = f"was written by a newer Tacit: this one knows version {VERSION}"
                fix = "Upgrade Tacit."
                if version < VERSION:
                    rule = (
                        f"was begun by an older Tacit, which let other visits count: this one knows version {VERSION}"
                    )
                    fix = "Begin a new state; what the old one published stays readable."
                raise PlanError(rule, key="state", given=version, fix=fix)
            is_unused = last_step(db) is None
            begun = json.loads(stored)
            _same_monitor(begun, json.loads(text), self.name, _HOW_IT_IS_READ if is_unused else ())
            # people whom an older Tacit has noted go on by its rule
            self.names = str((settings if is_unused else begun).get("names", ""))
            if is_unused:
                db.execute("UPDATE public_monitor SET settings = ?", (text,))

    def forget(self) -> None:
        """Close and remove a state that was never used, so that a refused beginning leaves nothing behind."""
        self._db.close()
        if self._file is not None:
            for file in (self._file, *(self._file.with_name(self._file.name + end) for end in ("-journal", "-lock"))):
                file.unlink(missing_ok=True)  # the lock last, and while it is still held
        self.close()

    # ---- one step, in one transaction -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the only write lock; what is done inside is there as a whole when this ends, or not at all."""
        if os.getpid() != self._process:
            raise PlanError(
                "belongs to the process that opened it", key="state", given=self.name, fix="Open it in one process."
            )
        if not self._close.alive:
            raise PlanError("is closed", key="state", given=self.name, fix="Make the monitor again.")
        with self._guard:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                refusal = _refusal(error, self.name)
            else:
                return
            finally:
                with contextlib.suppress(sqlite3.Error):
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
        raise refusal

    def published(self) -> PublishedHistory:
        """Return all that was published."""
        with self.transaction() as db:
            return _published(db)


def step_of_batch(db: sqlite3.Connection, name: str | None) -> int | None:
    """Return the step at which a batch was taken, or None."""
    found = None if name is None else db.execute("SELECT step FROM private_batches WHERE name = ?", (name,)).fetchone()
    return None if found is None else int(found[0])


def last_step(db: sqlite3.Connection) -> int | None:
    """Return the last step that was taken, or None."""
    found = db.execute("SELECT max(step) FROM public_steps").fetchone()[0]
    return None if found is None else int(found)


def take_step(db: sqlite3.Connection, step: int, batch: str | None, *, replayed: bool) -> None:
    """Note that a step was taken, and with which batch."""
    db.execute("INSERT INTO public_steps VALUES (?, ?)", (step, int(replayed)))
    if batch is not None:
        db.execute("INSERT INTO private_batches VALUES (?, ?)", (batch, step))


def add_alarms(db: sqlite3.Connection, alarms: Iterable[Alarm]) -> None:
    """Note alarms, in the transaction of their step."""
    db.executemany("INSERT INTO public_alarms VALUES (?, ?, ?)", ((a.step, a.place, a.value) for a in alarms))


def last_alarm(db: sqlite3.Connection, step: int) -> Alarm | None:
    """Return the last alarm up to a step, or None."""
    last = "SELECT step, place, value FROM public_alarms WHERE step <= ? ORDER BY step DESC LIMIT 1"
    found = db.execute(last, (step,)).fetchone()
    return None if found is None else Alarm(*found)


def alarms_until(db: sqlite3.Connection, step: int) -> list[Alarm]:
    """Return the alarms up to a step, in order."""
    found = db.execute("SELECT step, place, value FROM public_alarms WHERE step <= ? ORDER BY step, place", (step,))
    return [Alarm(*row) for row in found]


def alarmed_places(db: sqlite3.Connection) -> list[int]:
    """Return the positions that have alarmed."""
    return [place for (place,) in db.execute("SELECT DISTINCT place FROM public_alarms")]


# ---- charging once --------------------------------------------------------------------------------------------------


def owed(db: sqlite3.Connection) -> bool:
    """Say whether a charge was announced and is not yet known to be paid."""
    return db.execute("SELECT 1 FROM public_charge WHERE receipt IS NULL").fetchone() is not None


def receipt_of(db: sqlite3.Connection) -> dict[str, Any] | None:
    """Return what the ledger said when the monitor was charged, or None."""
    found = db.execute("SELECT receipt FROM public_charge").fetchone()
    return None if found is None or found[0] is None else dict(json.loads(found[0]))


def announce_charge(db: sqlite3.Connection) -> None:
    """Note that a ledger is about to be charged."""
    db.execute("INSERT INTO public_charge VALUES (1, NULL) ON CONFLICT DO NOTHING")


def withdraw_charge(db: sqlite3.Connection) -> None:
    """Note that the ledger refused."""
    db.execute("DELETE FROM public_charge WHERE receipt IS NULL")


def note_charge(db: sqlite3.Connection, receipt: Mapping[str, Any]) -> None:
    """Note that the ledger was charged."""
    db.execute("UPDATE public_charge SET receipt = ?", (json.dumps(receipt),))


# ---- the file -------------------------------------------------------------------------------------------------------


def read_published(state: str | Path) -> PublishedHistory:
    """Return what the monitor of a state has published. Needs no lock and looks at no private table."""
    path = Path(state).expanduser()
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        header = b""
    except OSError as fault:
        rule = f"must be a state of a monitor that can be read ({system_reason(fault)})"
        raise PlanError(rule, key="state", given=path_words(state), fix="Check the path.") from None
    if not header:
        raise PlanError("must be a state of a monitor", key="state", given=str(state), fix="Check the path.")
    # the header says whose file it is; SQLite itself would leave files of its own beside somebody else's
    if not header.startswith(b"SQLite format 3") or int.from_bytes(header[68:72]) != _APPLICATION:
        raise PlanError("is no state of a monitor", key="state", given=str(state), fix="Name another file.")
    refusal: PlanError
    for mode in ("ro", "rw"):  # to write is needed where a process was killed inside a commit: that is undone first
        try:
            address = f"{path.absolute().as_uri()}?mode={mode}"
            db = sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
            try:
                db.execute("BEGIN")
                return _published(db)
            finally:
                db.close()
        except sqlite3.Error as error:
            refusal = _refusal(error, str(state))
    raise refusal


def _published(db: sqlite3.Connection) -> PublishedHistory:
    (settings,) = db.execute("SELECT settings FROM public_monitor").fetchone()
    steps = db.execute("SELECT step, replayed FROM public_steps ORDER BY step").fetchall()
    alarms = db.execute("SELECT step, place, value FROM public_alarms ORDER BY step, place")
    return PublishedHistory(
        json.loads(settings),
        tuple(step for step, _ in steps),
        tuple(Alarm(*row) for row in alarms),
        receipt_of(db),
        any(replayed for _, replayed in steps),
    )


def _connected(name: str) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(name, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        refusal = _refusal(error, name)
    else:
        try:
            for setting in _SETTINGS:
                db.execute(f"PRAGMA {setting}").close()
        except sqlite3.Error as error:
            db.close()
            refusal = _refusal(error, name)
        else:
            return db
    raise refusal


def _application(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA application_id").fetchone()[0])


def _checked_place(state: str | Path) -> Path:
    if not leads_to_a_file(state) or "://" in str(state):
        rule = f"must be a path, not {kind_of(state)}"
        raise PlanError(rule, key="state", fix='For instance state="monitor.db".')
    named = path_words(state)
    path = Path(state).expanduser()
    if path.is_dir():
        fix = f"Name a file in it: {Path(named) / 'monitor.db'}."
        raise PlanError("must be a file, not a folder", key="state", given=named, fix=fix)
    if not path.parent.is_dir():
        raise PlanError("must be in a folder that exists", key="state", given=named, fix="Create it first.")
    return path


def _made(path: Path) -> bool:
    """Make the file, open to its owner alone, unless there is one; say whether it is new."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        with contextlib.suppress(OSError):
            path.chmod(0o600)  # also one that a backup left open to others
        if path.stat().st_size:
            return False
    except OSError as fault:
        why = (fault.strerror or "refused").lower()
        refusal = PlanError(
            f"must be a file that can be made ({why})", key="state", given=path_words(path), fix="Name another."
        )
    else:
        return True
    if path.stat().st_size == 0:
        return True
    raise refusal


def _closed(db: sqlite3.Connection, let_go: Callable[[], None]) -> None:
    db.close()
    let_go()


def _nothing_held() -> None:
    """Let go of no file: the state is in memory."""


class _Locks:
    """The states that this process has; several monitors of one process may share one."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.held: dict[str, tuple[sqlite3.Connection, int]] = {}
        self.process = os.getpid()
        self.of_parents: list[Any] = []


_locks: Final = _Locks()


def _locked(path: Path, name: str) -> Callable[[], None]:
    """Take the state for this process, or refuse; return how to let it go."""
    key = os.path.realpath(path)
    with _locks.guard:
        if _locks.process != os.getpid():  # after a fork: the locks are the parent's, and must not be closed here
            _locks.of_parents.append(_locks.held)
            _locks.held, _locks.process = {}, os.getpid()
        if key in _locks.held:
            db, count = _locks.held[key]
            _locks.held[key] = (db, count + 1)
        else:
            _locks.held[key] = (_exclusive(Path(f"{key}-lock"), name), 1)
    return lambda: _unlocked(key)


def _exclusive(file: Path, name: str) -> sqlite3.Connection:
    refusal: PlanError
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        db = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
    except OSError as fault:
        why = (fault.strerror or "refused").lower()
        refusal = PlanError(f"must be in a folder that can be written to ({why})", key="state", given=name)
    except sqlite3.Error as error:
        refusal = _refusal(error, name)
    else:
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            db.close()
            refusal = _refusal(error, name)
            if "LOCKED" in _code(error) or "BUSY" in _code(error):
                refusal = PlanError(
                    "is in use by another process",
                    key="state",
                    given=name,
                    fix="A state belongs to one process at a time: stop the other one, or wait until it ends.",
                )
        else:
            return db
    raise refusal


def _unlocked(key: str) -> None:
    with _locks.guard:
        if _locks.process != os.getpid() or key not in _locks.held:
            return
        db, count = _locks.held.pop(key)
        if count > 1:
            _locks.held[key] = (db, count - 1)
        else:
            db.close()


def _code(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", None) or "")


def _refusal(error: sqlite3.Error, name: str) -> PlanError:
    """Return the refusal for what SQLite said; its own words are not repeated, since rows may be open."""
    code = _code(error)
    known = {
        "SQLITE_NOTADB": ("is no SQLite file, so it is no state of a monitor", "Name another file."),
        "SQLITE_CORRUPT": ("is damaged", "Put the last good copy back; verdicts after it must not be drawn again."),
        "SQLITE_READONLY": ("may not be written to", "Ask for write permission."),
        "SQLITE_CANTOPEN": ("cannot be opened", "Check the permissions of the file and its folder."),
        "SQLITE_FULL": ("cannot be written to: the disk is full", "Make room."),
        "SQLITE_BUSY": ("was locked for too long by another process", "Try again."),
    }
    rule, fix = next((said for start, said in known.items() if code.startswith(start)), ("could not be used", ""))
    return PlanError(f"{rule}; nothing was changed", key="state", given=name, fix=fix)


def _same_monitor(stored: Mapping[str, Any], now: Mapping[str, Any], name: str, free: Sequence[str]) -> None:
    """Refuse to go on with a state under other settings than it was begun with."""
    for key in [*stored, *(key for key in now if key not in stored)]:
        was, is_now = stored.get(key), now.get(key)
        if was == is_now or key in ("tacit", "policy", *free):  # the policy is compared by its fingerprint
            continue
        if key == "names" and was is None:
            continue
        raise PlanError(
            f"must be as when the state {name!r} was begun: {_short(was)}",
            key=key.removesuffix("_fingerprint"),
            given=_short(is_now) if isinstance(is_now, dict | list) else is_now,
            fix="Use it again, or name another state: that is another monitor, with a cost of its own.",
        )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    return text if len(text) <= 80 else text[:77] + "..."
