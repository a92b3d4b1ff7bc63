"""The folder that results are written to before it gets its name, and what a run that broke off has left in one.

Guarantee   Two runs never write to one draft. A draft says whether its run is at work, was never paid for (then it
            is removed and nothing is said), was paid for and is lost, or was written to the end and is complete.
Why         The draft holds a mark with the name of the run, written before anything is charged and locked while the
            process lives; the ledger knows the run if it was paid for.
Checked by  tests/unit/report/test_publish.py, tests/contract/test_job_races.py.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tacit.amounts import shown
from tacit.errors import JobError, LedgerError, system_reason
from tacit.jobs.job_file import Job
from tacit.jobs.results_folder import MARK, finished
from tacit.ledger.ledger import Ledger, Run

PART = ".part"
# what the system says where another run came first: it has made the folder or the mark, locked it, or removed them
_BY_OTHERS = (errno.EEXIST, errno.ENOENT, errno.EBUSY)


@dataclass
class UnfinishedFolder:
    """A draft of this process: its folder and the name of the run. Its mark is locked while `_handle` is open."""

    folder: Path
    run: str
    _handle: int | None

    def unmark(self) -> None:
        """Take the mark away: what is left is the results alone."""
        with contextlib.suppress(FileNotFoundError):
            (self.folder / MARK).unlink()
        self._let_go()

    def give_up(self, *, keep: bool) -> None:
        """End without a result; a folder in which nothing is worth keeping is removed."""
        if not keep:
            with contextlib.suppress(OSError):
                _removed(self.folder)
        self._let_go()

    def _let_go(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
        self._handle = None


def begin_draft(job: Job) -> UnfinishedFolder:
    """Begin the folder that results are written to first. Its name is fixed, so that two runs cannot both begin."""
    _check_replaceable(job)
    folder = job.out.with_name(job.out.name + PART)
    for attempt in (1, 2):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            return _marked(folder)
        except OSError as fault:
            why, by_others = system_reason(fault), fault.errno in _BY_OTHERS
        if not by_others or not os.path.lexists(folder):
            break
        try:
            with _looked_at(folder) as left:
                if refusal := _refusal(job, folder, left):
                    raise refusal
                if attempt == 2 or not _removed(folder):
                    raise _in_use(job, folder)
        except OSError as fault:
            rule = f"has {folder.name} beside it, and the system does not say whose it is ({system_reason(fault)})"
            fix = "Nothing was charged. Look at it as whoever made it, or name another folder."
            raise job.refuse("out", rule, given=str(job.out), fix=fix) from None
    raise job.refuse("out", f"must be a folder that can be made ({why})", given=str(job.out), fix="Name another.")


def _check_replaceable(job: Job) -> None:
    """Refuse an empty folder that the results could not replace in the end: it is a mounted disk, or open elsewhere."""
    if not job.out.exists():
        return
    try:
        mode = job.out.stat().st_mode
        job.out.rmdir()
        job.out.mkdir()
        job.out.chmod(mode)
    except OSError as fault:
        why = system_reason(fault)
    else:
        return
    rule = f"must be a folder that nothing else uses, since the results will take its place ({why})"
    fix = "Nothing was charged. Close what has it open; if a disk is mounted there, name a new folder inside it."
    raise job.refuse("out", rule, given=str(job.out), fix=fix)


def _marked(folder: Path) -> UnfinishedFolder:
    # unlike that of any other run of this machine; whoever could guess it could not do anything with it
    run = hashlib.sha256(f"{folder} {time.time_ns()} {os.getpid()}".encode("utf-8", "replace")).hexdigest()[:16]
    mark = folder / MARK
    try:
        handle = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except BaseException:
        with contextlib.suppress(OSError):
            folder.rmdir()  # refused if another run has put its mark there
        raise
    is_mine = None
    try:
        is_mine = _lock(handle)
        os.write(handle, json.dumps({"run": run}).encode())
        os.fsync(handle)
        synced(folder)
        # another run may have taken the mark for that of a dead one before it was locked
        if is_mine is False or not os.path.samestat(os.fstat(handle), os.stat(mark)):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    except BaseException:
        with contextlib.suppress(OSError):
            if is_mine and os.path.samestat(os.fstat(handle), os.stat(mark)):
                _removed(folder)  # while it is locked, so that nobody else has it
        os.close(handle)
        raise
    return UnfinishedFolder(folder, run, handle)


@dataclass(frozen=True)
class _Left:
    """What is known of a draft that was there before: is its process alive, which run was it, what else is in it.

    It is complete if it has everything that the folder of results has, so that only its name is missing.
    """

    is_alive: bool
    run: str | None
    has_files: bool
    is_complete: bool = False


@contextlib.contextmanager
def _looked_at(folder: Path) -> Iterator[_Left]:
    """Look into a draft; if its process is dead, nobody else takes it for theirs meanwhile."""
    if folder.is_symlink() or not folder.is_dir():
        yield _Left(is_alive=False, run=None, has_files=True)
        return
    has_files, complete = any(file.name != MARK for file in folder.iterdir()), is_complete(folder)
    try:
        handle = os.open(folder / MARK, os.O_RDWR)
    except FileNotFoundError:
        yield _Left(is_alive=False, run=None, has_files=has_files, is_complete=complete)
        return
    try:
        is_alive = _lock(handle) is not True
        try:
            said = json.loads(os.read(handle, 1000))
        except ValueError:  # killed before the mark was written
            said = None
        run = said.get("run") if isinstance(said, dict) else None
        yield _Left(is_alive, run if isinstance(run, str) else None, has_files, complete)
    finally:
        os.close(handle)


def _refusal(job: Job, folder: Path, left: _Left) -> JobError | None:
    """Return why this draft stands in the way, or None if it was never paid for and may go."""
    if left.is_alive:
        return _in_use(job, folder)
    paid = _paid(job, left.run, lost=not left.is_complete)
    if left.is_complete:
        with contextlib.suppress(OSError):
            (folder / MARK).unlink()  # the ledger has been told, and the folder is the results alone
        return job.refuse(
            "out",
            f"has {folder.name} beside it, which a run has written to the end and could not give its name any more: it "
            "is complete, its finished.json names all of its files",
            given=str(job.out),
            fix=f"Nothing was charged now. Rename {str(folder)!r} to {job.out.name!r}: these are the results.",
        )
    if paid is None and not left.has_files:
        return None
    look = f"look at {str(folder)!r}, keep what you need, and remove it; then the job can run again"
    if paid is None:
        rule = f"has {folder.name} beside it, left by a run that broke off before its report was written"
        fix = f"What is in it may have been paid for: {look}, and is charged again."
        return job.refuse("out", rule, given=str(job.out), fix=fix)
    kept = "what it had not written yet is lost" if left.has_files else "nothing was written, so that is lost"
    return job.refuse(
        "out",
        f"has {folder.name} beside it, left by run {paid.run}, which was paid for (entries {paid.first} to {paid.last} "
        f"of the ledger) and broke off: {kept}, since drawing it again would tell more than was paid for",
        given=str(job.out),
        fix=f"Nothing was charged now. To go on, {look}, and costs {shown(job.cost)} again.",
    )


def _in_use(job: Job, folder: Path) -> JobError:
    rule = f"has {folder.name} beside it, where another run of this job is at work"
    return job.refuse("out", rule, given=str(job.out), fix="Nothing was charged. Wait for it, or name another folder.")


def is_complete(folder: Path) -> bool:
    """Say whether a folder holds all files that its `finished.json` names, as it names them, and no others."""
    return bool(finished(folder))


def _paid(job: Job, run: str | None, *, lost: bool) -> Run | None:
    """Return what the ledger knows of a run; what it reserved is lost from now on, or finished."""
    if run is None or job.ledger is None:
        return None
    try:
        with Ledger(job.ledger, create=False) as ledger:
            found = next((known for known in ledger.runs() if known.run == run), None)
            if found is not None and found.state == "reserved":
                ledger.ended(run, lost=lost)
            return found
    except LedgerError:
        return None  # planning has opened it; what is wrong with it now is said where it is charged


def _removed(folder: Path) -> bool:
    """Remove a folder with nothing but a mark in it; say whether it is gone."""
    with contextlib.suppress(FileNotFoundError):
        (folder / MARK).unlink()
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def _lock(handle: int) -> bool | None:
    """Lock a file until it is closed or the process ends; False if somebody else has it, None if nobody can tell."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def synced(path: Path) -> None:
    """Return when a file or folder is on the disk; folders cannot be asked everywhere."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
