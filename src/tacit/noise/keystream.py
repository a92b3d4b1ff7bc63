"""The stream of random bits behind all noise: AES-256 in counter mode, keyed by the operating system.

Guarantee   Bytes that nobody without the key can tell from uniform ones. No byte is handed out twice: not to two
            threads, not to a parent and its forked child, not before and after a change of key.
Assumes     `os.urandom` is unpredictable; AES-256 is a pseudorandom permutation; the memory of the process is
            private. A machine restored twice from one snapshot repeats its bytes until the next change of key.
Why         One key serves REKEY_AFTER = 2^24 bytes, that is 2^20 blocks: blocks of a counter never collide where
            uniform ones would, which gives an observer at most 2^40 / 2^129 = 2^-89 per key. Then a fresh key comes
            from the operating system, so that a stolen key opens its own 16 MB and nothing before or after. Every
            thread owns a stream. Every read compares the process id and a counter that the fork hook raises; either
            one sees a fork.
Reference   NIST SP 800-38A (counter mode); NIST SP 800-90A, section 10.2.1 (why to change keys).
Checked by  tests/unit/noise/test_noise.py.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from tacit.errors import PlanError, kind_of

REKEY_AFTER = 1 << 24
_ZEROS = bytes(1 << 18)
# AES-CTR adds its bytes to the input; older releases of `cryptography` want room for one more block behind them.
_SLACK = 16

_Word = TypeVar("_Word", np.uint8, np.uint16, np.uint32, np.uint64)


class Keystream:
    """A stream of random words.

    Without arguments it is keyed by the operating system and changes its key by itself. `key` makes it repeatable, for
    tests only: it wants exactly 32 bytes and no number will do, so that no seed can slip into a release; it refuses to
    go on in a forked process; and while one is in use `noise.is_replayed()` says so, and certificates promise nothing.
    """

    def __init__(self, *, key: bytes | None = None) -> None:
        if key is not None and (not isinstance(key, bytes) or len(key) != 32):
            raise PlanError(
                "must be exactly 32 bytes, and is for tests alone: releases take no seed",
                key="key",
                given=key,
                fix="Write Keystream(key=bytes(32)), or Keystream().",
            )
        self._fixed = key
        # Reentrant: a signal handler or finaliser of the same thread may draw in the middle of a read.
        self._lock = threading.RLock()
        self._fork_seen = _forks, os.getpid()
        self._start()

    def words(self, kind: type[_Word], count: int) -> NDArray[_Word]:
        """Return `count` fresh uniform words of an unsigned integer type."""
        size = count * np.dtype(kind).itemsize
        room = np.empty(size + _SLACK, np.uint8)
        done = 0
        with self._lock:
            if self._fork_seen != (_forks, os.getpid()):
                self._after_fork()
            while done < size:
                if self._left <= 0:
                    self._start()
                part = min(size - done, self._left, len(_ZEROS))
                self._cipher.update_into(memoryview(_ZEROS)[:part], room[done : done + part + _SLACK].data)
                done += part
                self._left -= part
        return room[:size].view(kind)

    def bits(self, count: int) -> int:
        """Return a uniform integer of `count` bits, a multiple of 64."""
        return int.from_bytes(self.words(np.uint64, count // 64).tobytes(), "little")

    def _start(self) -> None:
        if self._fixed is None:
            key = os.urandom(32)
        else:
            # The next test key follows from the one before, so that a replay crosses a change of key like a release.
            key = self._fixed
            self._fixed = hashlib.sha256(b"tacit test keystream" + key).digest()
        self._cipher: Any = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._left = REKEY_AFTER

    def _after_fork(self) -> None:
        if self._fixed is not None:
            message = "a repeatable keystream must not cross a fork: parent and child would draw the same noise"
            raise RuntimeError(message)
        self._fork_seen = _forks, os.getpid()
        self._start()

    def __reduce__(self) -> NoReturn:
        message = "a keystream is never copied, pickled or sent: its noise would repeat"
        raise TypeError(message)


class _ThreadStreams(threading.local):
    """One operating-system keyed stream per thread, so that threads neither share bytes nor wait for each other."""

    def __init__(self) -> None:
        self.stream = Keystream()


_forks = 0
_streams = _ThreadStreams()
_replayed: ContextVar[Keystream | None] = ContextVar("tacit_replayed_keystream", default=None)


def _forget_after_fork() -> None:
    # Dropping the streams, and not only changing keys, also drops any lock that another thread held during the fork.
    global _forks, _streams
    _forks += 1
    _streams = _ThreadStreams()


# Not on Windows, which has no fork. The process id catches a fork by foreign code that skips Python's hooks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def current_stream() -> Keystream:
    """Return the stream to draw from: this thread's own, or the one that a test replays."""
    return _replayed.get() or _streams.stream


@contextmanager
def replayed(stream: Keystream) -> Iterator[Keystream]:
    """Draw from `stream` inside the `with` block, in this thread or task only. For tests and never for a release.

    >>> from tacit import noise
    >>> with replayed(Keystream(key=bytes(32))):
    ...     first = noise.geometric(10, 5)
    >>> with replayed(Keystream(key=bytes(32))):
    ...     bool((noise.geometric(10, 5) == first).all())
    True
    """
    if not isinstance(stream, Keystream):
        raise PlanError(
            f"must be a Keystream, not {kind_of(stream)}; there are no seeds",
            key="stream",
            fix="Write noise.replayed(noise.Keystream(key=bytes(32))).",
        )
    token = _replayed.set(stream)
    try:
        yield stream
    finally:
        _replayed.reset(token)


def is_replayed() -> bool:
    """Return whether noise is being replayed for a test, so that a release can refuse to call it private."""
    return _replayed.get() is not None
