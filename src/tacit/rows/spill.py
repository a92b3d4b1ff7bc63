"""The folder for what does not fit into memory: open to this user alone, and gone with the process that made it.

Guarantee   Rows that were spilled to disk do not outlive their process for longer than until the next one begins: an
            ordinary end and SIGTERM of the command line remove them, and what SIGKILL or a power cut left behind is
            removed when the next process makes a folder of its own.
Assumes     `flock` works in the folder for temporary files; where it does not, dead folders are left alone.
Why         A living process holds a lock on a file in its folder; the system lets go of it however the process ends.
            Unlike a process number, a lock can neither be used again by somebody else nor mean another container.
Checked by  tests/contract/test_spill.py.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
import tempfile
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX: Final = "tacit-rows-"
_LOCK: Final = "in-use"
_made: Final[list[Finalize]] = []  # what removes the folders at an ordinary end
_held: Final[list[int]] = []  # file descriptors; the locks last as long as these are open


@functools.cache
def private_folder(_process: int) -> Path:
    """Make the folder of this process, after removing those of dead ones; a fork makes one of its own."""
    _remove_dead(Path(tempfile.gettempdir()))
    path = tempfile.mkdtemp(prefix=PREFIX)
    try:
        _hold(Path(path))
    except OSError:
        shutil.rmtree(path, ignore_errors=True)  # nobody could tell it from that of a dead process
        raise
    # not atexit, which the processes of multiprocessing skip; of a fork, only the maker removes it
    _made.append(Finalize(None, shutil.rmtree, args=(path, True), exitpriority=0))
    return Path(path)


def remove_folders() -> None:
    """Remove what this process has made, now: for one that ends without an ordinary end."""
    for remove in _made:
        remove()


def _hold(folder: Path) -> None:
    """Lock a file in the folder; it gets its name once it is locked, so that nobody sees it unlocked."""
    if fcntl is None:
        return
    new = folder / f"{_LOCK}.new"
    lock = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks
        os.close(lock)
        return
    try:
        new.rename(folder / _LOCK)
    except OSError:
        os.close(lock)
        raise
    _held.append(lock)


def _remove_dead(place: Path) -> None:
    """Remove the folders of processes of this user that are no longer there."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for found in place.iterdir():
            if found.name.startswith(PREFIX):
                with contextlib.suppress(OSError):  # gone meanwhile, or not ours to look into
                    _remove_if_dead(found)


def _remove_if_dead(folder: Path) -> None:
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        return  # a link, or somebody else's
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW, dir_fd=opened)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its process lives
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
    finally:
        os.close(opened)
