"""The command `tacit`. An interrupt ends it in order from here on, also while something is loaded.

It stands beside the package, not in it, so that nothing of the package is loaded before interrupts are answered. What
the command line itself needs is loaded first, and an interrupt ends that at once. What one command needs is loaded when
it is needed, perhaps with rows open: there an interrupt waits until the import is done. Inside of it, it would be a
traceback, a module that is half there or, where a library is made in C, an import that fails for some other reason.

A command that somebody has ended does not wait for the threads of an engine. One that still asks Python for rows while
the interpreter is taken apart would abort the process, and a dump of its memory has rows in it. So folders are removed,
what was said is written, and the process ends there; and whatever ends it, its memory is not dumped.
"""

from __future__ import annotations

# nothing that takes time to load: until `main` is called, an interrupt is Python's own
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, TypeAlias

    Handler: TypeAlias = Callable[[int, FrameType | None], Any]

INTERRUPTED = 130
TERMINATED = 143
_SAID = "interrupted. Nothing was charged."
_IMPORTS = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")
_due: set[int] = set()  # signals that have waited for an import, which is done


def main() -> int:
    """Run one command and return its exit code. One that somebody has ended leaves from here."""
    _dump_nothing()
    code = _run()
    if code in (INTERRUPTED, TERMINATED):
        _leave(code)
    return code


def _dump_nothing() -> None:
    """Let no file be written of what is in memory when the process fails."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    # One byte is too small for any dump. Unlike none at all, it also tells Linux to hand none to another program.
    least = 1 if most == resource.RLIM_INFINITY else min(1, most)
    resource.setrlimit(resource.RLIMIT_CORE, (least, most))


def _leave(code: int) -> None:
    """Remove folders with rows in them, write what was said, and end the process with everything else as it is.

    Not even what libraries do at an end is done: a thread that notices would say so, in words of its own.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if "tacit.rows.spill" in sys.modules:  # else there is none
        from tacit.rows.spill import remove_folders

        remove_folders()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # nobody reads it, it is closed, or there is none
            continue
    os._exit(code)


def _run() -> int:
    # else somebody wants interrupts ignored (nohup), or has a way of their own
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _end)
    from tacit.cli import main as run

    if not is_ours:
        return run()
    code = INTERRUPTED
    try:
        code = run(on_start=lambda: signal.signal(signal.SIGINT, unless_loading(signal.default_int_handler)))
    except KeyboardInterrupt:  # another one, while the first was answered
        pass
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # everything is done and said
    return code


def _end(number: int, frame: object) -> None:
    """Say that somebody ended the command. Nothing is open yet, so that there is nothing to put in order."""
    if "--json" in sys.argv[1:]:
        keys = '"file": null, "line": null, "key": null, "given": null, "rule": "interrupted."'
        said = f'{{"error": {{"kind": "Interrupted", {keys}, "fix": "Nothing was charged.", "message": "{_SAID}"}}}}'
        os.write(1, f"{said}\n".encode())
    else:
        os.write(2, f"tacit: {_SAID}\n".encode())
    os._exit(INTERRUPTED)


def unless_loading(handler: Handler) -> Handler:
    """Return a handler that answers a signal as this one does, but never inside an import that begins from now on.

    There the signal waits. It is a `functools.partial` around the handler, by which `rows/guard.py` sees what it does
    in the end.
    """
    from functools import partial

    return partial(_once_loaded, handler, len(_imports_in(sys._getframe())))


def _once_loaded(handler: Handler, already: int, number: int, frame: FrameType | None) -> None:
    imports = _imports_in(frame)
    if number in _due or len(imports) <= already:
        _due.discard(number)
        handler(number, frame)
        return
    first = imports[already]

    def when_done(frame: FrameType, event: str, _: object) -> None:
        if frame is first and event == "return":
            sys.setprofile(None)
            _due.add(number)
            signal.raise_signal(number)  # once more, so that whoever watches signals by now sees it too

    sys.setprofile(when_done)


def _imports_in(frame: FrameType | None) -> list[FrameType]:
    """Return the frames of imports that are under way, the first first."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename in _IMPORTS:
            found.append(frame)
        frame = frame.f_back
    return found[::-1]


if __name__ == "__main__":
    sys.exit(main())
