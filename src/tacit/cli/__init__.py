"""The command line, thin: options and texts; the work is done elsewhere.

    tacit demo | init | check | plan | run | ledger | monitor | publish | audit | reproduce | bench | schema

Exit codes (`errors.Exit`; docs/operations.md): 0 done, 1 refused, 2 wrong usage, 3 budget spent, 4 data changed, 5 rows
or ledger out of reach, 6 done already, 7 a fault, 130 interrupted, 143 ended by SIGTERM. A refusal is one sentence on
stderr, or with `--json` one document on stdout. There is never a traceback: it would quote local values, and these may
be rows.

In reading order:

    jobs       plan, run, publish, demo: what a job would cost, and its results
    policies   init, check, schema: drafts of policies, what they protect, which cells do not fit
    ledger     look at budgets, grant more
    monitor    watch places
    audit      check what a mechanism promises; which epsilons a case can have
    reproduce  the figures of a paper, and the speed of this machine
    screen     what reaches the terminal
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from tacit.cli.audit import app as audit_app
from tacit.cli.jobs import publish_app, run_demo, run_releases, show_plan
from tacit.cli.ledger import ledger_app
from tacit.cli.monitor import monitor_app
from tacit.cli.policies import check_policy, draft, show_schema
from tacit.cli.reproduce import reproduce_paper, run_benchmarks
from tacit.cli.screen import begin_log, complain, misuse, refusal, show, show_json
from tacit.errors import Exit, TacitError, Terminated, nearest, terminated
from tacit_command import INTERRUPTED, TERMINATED, unless_loading

__all__ = ["main"]

# Only these never come near rows (unless an option opens some), so only these may show a traceback with TACIT_DEBUG.
NEVER_OPENS_ROWS = ("audit", "check", "schema", "ledger")
OPENS_ROWS = ("--rows", "--curator")
MAY_CHARGE = ("demo", "run", "monitor", "publish")

# click, or the copy of it that typer carries: in both, the base of BadParameter is what wrong usage raises.
_UsageError: Any = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="tacit",
    help="Policy-driven privacy: say what must stay secret, see the cost, release with a guarantee.",
    epilog="Start with `tacit demo`. Every command takes --json and --help.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", short_help="Run an example on bundled data, from the policy to the report.")(run_demo)
app.command("init", short_help="Draft a policy for a data file.")(draft)
app.command("check", short_help="Say what a policy protects and what it does not, or which rows do not fit.")(
    check_policy
)
app.command("plan", short_help="Show cost and expected error of a job; spends nothing.")(show_plan)
app.command("run", short_help="Make the releases of a job and write the report.")(run_releases)
app.add_typer(audit_app, name="audit", short_help="Check what a mechanism promises.")
app.add_typer(ledger_app, name="ledger", short_help="Show, verify or grant budgets.")
app.add_typer(monitor_app, name="monitor", short_help="Watch places in files of events as they arrive.")
app.add_typer(publish_app, name="publish", short_help="Publish a table whose sensitive values are perturbed.")
app.command("reproduce", short_help="Recompute the figures of a paper and compare them with its claims.")(
    reproduce_paper
)
app.command("schema", short_help="Print the JSON schema of policy, job, case or table files.")(show_schema)
app.command("bench", short_help="Measure noise and counting on this machine.")(run_benchmarks)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
) -> None:
    """Policy-driven privacy: say what must stay secret, see the cost, release with a guarantee."""
    if version:
        from tacit import __version__

        if as_json:
            show_json({"tacit": __version__})
        else:
            show(f"tacit {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        if not as_json:
            show(context.get_help())
            raise typer.Exit(2)
        context.fail("A command is missing.")


def main(args: list[str] | None = None, *, on_start: Callable[[], object] = lambda: None) -> int:
    """Run one command and return its exit code; every error is reported in one sentence.

    `on_start` is called as soon as an interrupt would be reported as well.
    """
    given = list(sys.argv[1:] if args is None else args)
    as_json = "--json" in given
    begin_log(given)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # whether a library warns, and of what, may depend on rows
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal without our letters is no reason to stop
    document: dict[str, Any]
    try:
        on_start()
        with _ended_in_order():
            done = typer.main.get_command(app).main(args=given, prog_name="tacit", standalone_mode=False)
        if done != INTERRUPTED:
            return done if isinstance(done, int) else 0
        document, code = _ended("interrupted", given[:1]), INTERRUPTED  # typer turns Ctrl-C into this exit code
    except TacitError as error:
        document, code = refusal(error), error.exit_code
    except _UsageError as fault:
        document, code = _wrong_usage(fault), Exit.USAGE
    except (KeyboardInterrupt, typer.Abort):
        document, code = _ended("interrupted", given[:1]), INTERRUPTED
    except Terminated:
        document, code = _ended("ended by SIGTERM", given[:1]), TERMINATED
    except OSError as fault:
        document, code = _system_fault(fault, given), Exit.FAULT
    except Exception:
        document, code = _fault(given), Exit.FAULT
    complain(document, as_json=as_json, exit_code=code)
    return code


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Turn SIGTERM into an exception, so that folders with rows in them are removed on the way out."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, unless_loading(terminated))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _ended(how: str, command: list[str]) -> dict[str, Any]:
    """Say that somebody ended the command, and what it had charged by then."""
    from tacit.rows.guard import charges

    spent = charges.in_words() if command and command[0] in MAY_CHARGE else "Nothing was charged."
    return {**misuse(f"{how}.", spent), "kind": "Interrupted"}


def _system_fault(fault: OSError, given: list[str]) -> dict[str, Any]:
    """Return what the system refused: its reason, which is one of a fixed list, and nothing of what it was about."""
    if _here_is_gone():
        return misuse("the folder that you are in no longer exists.", "Change to another one.")
    reasons = {
        errno.ENAMETOOLONG: ("a path or a name is longer than this system allows.", "Names have at most 255 bytes."),
        errno.ENOSPC: ("the disk is full.", "Make room, or name another place."),
        errno.EDQUOT: ("the disk quota is used up.", "Make room, or name another place."),
        errno.EFBIG: ("a file would be larger than this system allows.", "Name another place."),
        errno.EACCES: ("the system does not permit it.", "Check who may read and write there."),
        errno.EROFS: ("the place to write to is read-only.", "Name another place."),
        errno.EMFILE: ("too many files are open.", "Allow more: `ulimit -n`."),
        errno.ENFILE: ("too many files are open.", "Allow more."),
    }
    if fault.errno not in reasons:
        return _fault(given)
    from tacit.rows.guard import charges

    rule, fix = reasons[fault.errno]
    spent = f" {charges.in_words()}" if given and given[0] in MAY_CHARGE else ""
    return {**misuse(rule, fix + spent), "kind": "SystemRefused"}


def _here_is_gone() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _wrong_usage(fault: Any) -> dict[str, Any]:
    """Return what is wrong with the command line, with the nearest name where one was mistyped."""
    rule, context = fault.format_message().strip().replace("Value error, ", ""), fault.ctx
    rule = rule if rule.endswith((".", "?")) else f"{rule}."
    commands = getattr(getattr(context, "command", None), "commands", None)
    if "No such command" in rule and commands and "Did you mean" not in rule:
        rule += f" {nearest(rule.split(chr(39))[1], list(commands))}"
    path = "tacit" if context is None else context.command_path
    return misuse(rule, f"See `{path} --help`.")


def _fault(given: list[str]) -> dict[str, Any]:
    """Return a fault of ours, without its text: that may quote a row."""
    opens_rows = any(argument.split("=")[0] in OPENS_ROWS for argument in given)
    if given and given[0] in NEVER_OPENS_ROWS and not opens_rows:
        if os.environ.get("TACIT_DEBUG"):
            traceback.print_exc()
        document = misuse("internal fault.", "Set TACIT_DEBUG=1 to see where, and please report it.")
    else:
        document = misuse(
            "internal fault; what was charged stays charged.",
            "No detail is shown because rows may have been open: run the same on made-up rows and report what you see.",
        )
    return {**document, "kind": "InternalError"}
