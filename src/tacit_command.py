"""The command `tacit`: loads everything and runs it. An interrupt ends it in order from here on, also while it loads.

It stands beside the package, not in it: importing anything of `tacit` loads all of it, which takes seconds, and an
interrupt in that time would be a traceback or, inside a library, an import that fails for some other reason.
"""

import os
import signal
import sys

INTERRUPTED = 130
_SAID = "interrupted. Nothing was charged."


def _end(number: int, frame: object) -> None:
    """Say that somebody ended the command. Nothing is open yet, so that there is nothing to put in order."""
    if "--json" in sys.argv[1:]:
        keys = '"file": null, "line": null, "key": null, "given": null, "rule": "interrupted."'
        said = f'{{"error": {{"kind": "Interrupted", {keys}, "fix": "Nothing was charged.", "message": "{_SAID}"}}}}'
        os.write(1, f"{said}\n".encode())
    else:
        os.write(2, f"tacit: {_SAID}\n".encode())
    os._exit(INTERRUPTED)


def main() -> int:
    """Run one command and return its exit code."""
    # else somebody wants interrupts ignored (nohup), or has a way of their own
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, _end)
    from tacit.cli import main as run

    try:
        if is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:  # another one, while the first was answered
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
