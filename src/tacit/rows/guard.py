"""What leaves when work on rows fails or is interrupted: one fixed sentence, or the interrupt, and nothing else.

The sentence never blames the data for what nobody has found in the data. Work that sees cells (`closed`) fails with one
sentence that is true whatever the reason, or with one about the data where the class of the failure is known to mean
just that. Work that sees none (`blind`) fails with the type of the failure and our line, and blames no cell.

Guarantee   An exception that passes `closed` (or `errors.sealed`) has no cause, no context, no foreign note and no
            frame below it: neither a cell nor an object that was given where rows were expected hangs on it. Work that
            a signal has interrupted never counts as failed or done: what the signal's handler raised is raised again.
            Which of our lines failed, and on what, is said only of work in which no cell has a part.
Assumes     Signal handlers are set in the main thread of the main interpreter: Python allows no other, and asks for
            them here too. Elsewhere nothing is watched and nothing fails.
Why         Engines turn an interrupt into errors of their own (DuckDB into a RuntimeError), or swallow it. What a
            handler raised is therefore noted where it was raised, not guessed from what arrives. And they look for
            signals only between their tasks, which may be a minute apart: `cancelled_by_interrupt` tells them at once.
Checked by  tests/unit/rows/test_rows_canary.py, tests/contract/test_wrong_shapes.py, tests/contract/test_interrupts.py,
            tests/contract/test_environments.py.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from types import FrameType, MappingProxyType
from typing import Any, Final, TypeVar

from tacit.amounts import shown
from tacit.errors import (
    FROM_A_HANDLER,
    ChargeNote,
    InternalError,
    TacitError,
    Unread,
    bare,
    safe_cause,
    terminated,
)

Found = TypeVar("Found")

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP") if hasattr(signal, name)
)


class _Watch:
    """Notes what the handlers of signals raise while rows are open, and lets nothing through once `over`."""

    def __init__(self) -> None:
        self.ended: BaseException | None = None
        self.over = False
        self._before: dict[int, Any] = {}
        self._ours: dict[int, Any] = {}

    def start(self) -> None:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if callable(before):  # not one that is ignored, ends the process or was set outside Python
                self._ours[number] = functools.partial(self._noted, before)
                self._before[number] = before
                try:
                    signal.signal(number, self._ours[number])
                except ValueError:  # only Python knows where it handles signals: `threading` may take another for main
                    return

    def stop(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) is self._ours[number]:  # an engine may have set its own meanwhile
                signal.signal(number, before)

    def _noted(self, before: Callable[[int, FrameType | None], Any], number: int, frame: FrameType | None) -> None:
        try:
            before(number, None if self.over else frame)
        except BaseException as ended:
            self.ended = bare(ended)
            if not self.over:
                raise


def closed(
    work: Callable[[], Found],
    refusal: Unread | InternalError,
    means: Mapping[type[BaseException], TacitError] = MappingProxyType({}),
) -> Found:
    """Do work on open rows; whatever goes wrong becomes `refusal`, raised where no handler is active.

    `means` has the exceptions that can have one reason only, and the refusal that names it.
    """
    return _done(work, lambda raised: next((said for kind, said in means.items() if isinstance(raised, kind)), refusal))


def blind(work: Callable[[], Found], stage: str, *, paid: bool = False) -> Found:
    """Do work that looks at no cell; what goes wrong is a fault of ours, of the machine or of an object that was given.

    It is said which class of exception it was, and where; `paid` if it may come after a charge and nothing else.
    """
    return _done(work, lambda raised: InternalError(stage, safe_cause(raised), paid=paid))


def _done(work: Callable[[], Found], told: Callable[[BaseException], TacitError]) -> Found:
    """Do work; what goes wrong becomes what is `told` of it.

    Inside a handler, even `raise .. from None` would keep the engine's exception, cell included, as `__context__`. The
    traceback goes too: its frames hold true answers, which debuggers and error trackers print.
    """
    watch = _Watch()
    failure: BaseException | None = None
    try:
        watch.start()
        found = work()
        watch.over = True
    except BaseException as raised:  # not Exception: a panic inside polars is none
        watch.over = True  # first, and no call: from here on no handler can add this exception to another's history
        if isinstance(raised, TacitError | KeyboardInterrupt | SystemExit) or _is_interrupt(raised):
            failure = bare(raised if not _is_interrupt(raised) else KeyboardInterrupt())
        else:
            failure = bare(told(raised))
    watch.stop()
    if watch.ended is not None:
        failure = bare(watch.ended)
        with contextlib.suppress(Exception):  # a class may allow no marks
            setattr(failure, FROM_A_HANDLER, True)
    del work, watch, told
    if failure is not None:
        raise failure
    return found


def _is_interrupt(failure: BaseException) -> bool:
    # in a thread where no handler runs, DuckDB has only this name for it
    return type(failure).__name__ == "InterruptException"


@contextlib.contextmanager
def cancelled_by_interrupt(cancel: Callable[[], object]) -> Iterator[None]:
    """Call `cancel` in the moment of a Ctrl-C, from a thread: Python's own handler waits until the engine returns.

    Also at a SIGTERM, where the command line answers it. Only where a signal ends the work anyhow: a handler of the
    user's may survive it, an event loop may already listen for signals, and outside of the main thread there are none.
    """
    ends = {number for number in (signal.SIGINT, signal.SIGTERM) if _is_the_end(signal.getsignal(number))}
    sockets = _sockets() if ends else None
    if sockets is None:
        yield
        return
    hears, tells = sockets
    listening = threading.Thread(target=_listen, args=(hears, ends, cancel), daemon=True)
    with hears:
        try:
            with tells:
                tells.setblocking(False)
                if not _told_of_signals(tells):
                    yield
                    return
                try:
                    with contextlib.suppress(RuntimeError):  # no thread is left: an interrupt waits for the engine
                        listening.start()
                    yield
                finally:
                    signal.set_wakeup_fd(-1)
        finally:  # also of work that failed: it listens until there is nobody to tell it anything
            if listening.ident is not None:
                listening.join()


def _sockets() -> tuple[socket.socket, socket.socket] | None:
    """Return two sockets that are connected; None if the machine has none left, and then an interrupt waits, too."""
    try:
        return socket.socketpair()
    except OSError:
        return None


def _told_of_signals(tells: socket.socket) -> bool:
    """Let Python write every signal to a socket, unless somebody else is told already; say whether it does."""
    try:
        before = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    except ValueError:  # in a thread or an interpreter beside the main one, as Python sees it
        return False
    if before != -1:
        signal.set_wakeup_fd(before)
    return before == -1


def _is_the_end(handler: Any) -> bool:
    while isinstance(handler, functools.partial) and handler.args:  # a watch of ours around it; asyncio's has none
        handler = handler.args[0]
    return handler is signal.default_int_handler or handler is terminated


def _listen(hears: socket.socket, ends: set[signal.Signals], cancel: Callable[[], object]) -> None:
    while number := hears.recv(1):
        if number[0] in ends:
            with contextlib.suppress(Exception):  # nothing to cancel any more
                cancel()


# ---- what was charged -----------------------------------------------------------------------------------------------


class Charges:
    """What this process has charged: so that somebody who interrupts it can be told."""

    def __init__(self) -> None:
        self.total = Fraction(0)
        self.is_uncertain = False
        self.kept = ""  # where what was paid for is, if a run broke off
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def charging(self, epsilon: Fraction) -> Iterator[None]:
        """Remember a charge: as uncertain until it is known to be done, or refused."""
        self.is_uncertain = True
        try:
            yield
        except Exception:
            self.is_uncertain = False  # refused; an interrupt, which is no Exception, leaves it open
            raise
        with self._lock:
            self.total += epsilon
        self.is_uncertain = False

    def in_words(self) -> str:
        """Say what was charged."""
        if self.is_uncertain:
            return "The interrupt arrived during a charge, which may have gone through: check what remains."
        if not self.total:
            return "Nothing was charged."
        return f"Budget was spent: epsilon {shown(self.total)} was charged and stays charged. {self.kept}".rstrip()


charges: Final = Charges()


@contextlib.contextmanager
def paid_for(epsilon: Fraction) -> Iterator[None]:
    """Say on an interrupt that this release was already paid for."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(
            ChargeNote(
                f"epsilon {shown(epsilon)} was charged for this release and stays charged; nothing was released."
            )
        )
        raise
