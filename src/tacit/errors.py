"""Refusals and faults: one sentence with the place, the rule, the value given and the fix.

There are two families:

* **Rows closed** (`PolicyError`, `PlanError`, `JobError`, `LedgerError`, `BudgetExceeded`): the user wrote everything
  that is mentioned, so the value given may be repeated.
* **Rows open** (`DataRefused`, `Unread`, `InternalError`): only a rule code and column names, both public before the
  rows were opened. No cell, row number, count or text of a reader ever enters these.

A `DataRefused` is a known fact about the data. A failure of unknown cause is `Unread` (while rows were read, so the
message gives no cause) or an `InternalError` (Tacit or the machine).

A user may give rows by mistake, so no message repeats what looks like rows (`_shown`, `path_words`), and no frame of a
traceback from an entry point holds its arguments (`sealed`).
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from enum import IntEnum
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any, ParamSpec, TypeVar

Found = TypeVar("Found")
Given = ParamSpec("Given")

_NOTHING = object()
_PACKAGE = Path(__file__).parent
_LONGEST_PART = 255  # bytes of one part of a path, on nearly every file system
_LONGEST_PATH = 4096
_LONGEST_WORDS = 60
_SEPARATED = re.compile(r"[,;|](?!\s)(?=.)|\t")  # as between the cells of a line, and seldom in a sentence
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]{1,20},[0-9]{1,20}\s*")


class Exit(IntEnum):
    """What the command line returns. It follows from the class of an error and its sentence, never from a cell."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    BUDGET_SPENT = 3
    DATA_CHANGED = 4
    UNREACHABLE = 5
    DONE_ALREADY = 6
    FAULT = 7


class TacitError(Exception):
    """Anything that Tacit refuses. `exit_code` is what the command line returns."""

    exit_code = Exit.REFUSED

    def _render_traceback_(self: BaseException) -> list[str]:
        """Return what IPython shows: the message with its notes, and the user's own line instead of our frames."""
        frames = traceback.extract_tb(self.__traceback__)
        own = [frame for frame in frames if not Path(frame.filename).is_relative_to(_PACKAGE) and frame.line]
        where = [f"line {own[-1].lineno}: {own[-1].line}"] if own else []
        return [*where, f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())]


class WrongArguments(TypeError):
    """An entry point was called with arguments that it does not have; a notebook shows it like a refusal."""

    _render_traceback_ = TacitError._render_traceback_


Retold = TypeVar("Retold", bound="Refused")


class Refused(TacitError):
    """A refusal before any row was opened: names the place, the rule, the value given and the fix."""

    def __init__(
        self,
        rule: str,
        *,
        key: str = "",
        given: Any = _NOTHING,
        fix: str = "",
        file: str = "",
        line: int | None = None,
        exit_code: Exit | None = None,
    ) -> None:
        self.exit_code = exit_code or type(self).exit_code
        self.rule, self.key, self.fix, self.file, self.line = rule, key, fix, file, line
        self._has_given = given is not _NOTHING
        # the exception must not hold a frame that was given by mistake
        self.given = None if not self._has_given else given if _is_plain(given) else _shown(given)
        self._shown = _shown(given) if self._has_given else ""
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """Return the whole message, in the form `file:line: key rule; got value. Fix`."""
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        subject = f"{self.key} " if self.key else ""
        given = f"; got {self._shown}" if self._has_given else ""
        fix = f" {self.fix}" if self.fix else ""
        return f"{place}{subject}{self.rule}{given}.{fix}"

    def located(self, *, file: str = "", line: int | None = None, key: str = "") -> Refused:
        """Return the same refusal, with the place added if it was unknown."""
        place: dict[str, Any] = {"file": self.file or file, "line": self.line or line, "key": key or self.key}
        found = type(self)(self.rule, fix=self.fix, exit_code=self.exit_code, **place)
        found.given, found._has_given, found._shown = self.given, self._has_given, self._shown
        found.args = (found.sentence(),)
        return found

    def retold(self, kind: type[Retold], *, key: str = "") -> Retold:
        """Return the same refusal as another class, and about another key if one is given."""
        given: dict[str, Any] = {"given": self.given} if self._has_given else {}
        return kind(self.rule, key=key or self.key, fix=self.fix, exit_code=self.exit_code, **given)


class PolicyError(Refused):
    """The policy has no meaning, or not the one that its words suggest."""


class PlanError(Refused):
    """The query cannot be answered under this policy, or its cost cannot be proved."""


class JobError(Refused):
    """The job file asks for something that does not exist."""


class LedgerError(Refused):
    """The ledger is damaged, incomplete, or another one than expected."""


class BudgetExceeded(Refused):
    """The release would cost more than what remains. Nothing was charged and no row was opened."""

    exit_code = Exit.BUDGET_SPENT


class DataRefused(TacitError):
    """The rows cannot be used. The message names a rule and a column, and nothing about any row."""

    exit_code = Exit.DATA_CHANGED

    def __init__(self, rule: str, *, column: str = "", fix: str = "", exit_code: Exit | None = None) -> None:
        self.exit_code = exit_code or type(self).exit_code
        column = column if _may_be_a_column(column) else ""  # it may be rows, given by mistake
        self.rule, self.column, self.fix = rule, column, fix
        subject = f"column {column!r} " if column else ""
        super().__init__(f"{subject}{rule}.{' ' + fix if fix else ''}")


class Unread(DataRefused):
    """Rows could not be read. A cell may be the cause, so a full disk or a failed engine has the same message."""

    def __init__(self, rule: str, *, fix: str = "") -> None:
        why = (
            "No detail is shown because rows were open: the file or table may be incomplete (read it outside Tacit), "
            "or memory, disk space or the engine failed (count made-up rows of the same types)."
        )
        super().__init__(rule, fix=f"{why} {fix}".rstrip())


class InternalError(TacitError):
    """A fault of Tacit itself or of the machine, never of the data. The message says where, and never shows values.

    `cause` is the reason if no cell can have caused it (`safe_cause`), and otherwise empty. Objects that hold rows may
    have methods that fail, which looks like a fault of the machine. `paid` adds that the charge stays.
    """

    exit_code = Exit.FAULT

    exit_code = Exit.FAULT

    def __init__(self, stage: str, cause: str = "", *, paid: bool = True) -> None:
        self.stage, self.cause = stage, cause
        charge = "; what was charged stays charged" if paid else ""
        more = (
            f"The reason is {cause}. Please report it if neither this machine nor what was given is to blame."
            if cause
            else "No detail is shown because rows were open: run the same job on made-up rows to see the full error."
        )
        super().__init__(f"internal fault while {stage}{charge}. {more}")


def system_reason(fault: OSError) -> str:
    """Return the system's reason: one of a fixed list, without any name or value."""
    return os.strerror(fault.errno).lower() if fault.errno in errno.errorcode and fault.errno else "refused"


def safe_cause(failure: BaseException) -> str:
    """Describe a failure that no cell can have caused: its type, the system's reason and our line.

    Its text is left out, and so is a type that no module defines, since its name may be made of anything.

    >>> safe_cause(OSError(28, "patient 0"))
    'OSError (no space left on device)'
    >>> safe_cause(type("Patient0", (Exception,), {})("patient 0"))
    'an exception'
    """
    kind, name = type(failure), "an exception"
    if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind:
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.lstrip('_')}.{kind.__name__}"
    if isinstance(failure, OSError):
        name += f" ({system_reason(failure)})"
    ours = [
        f"{Path(frame.f_code.co_filename).relative_to(_PACKAGE.parent).as_posix()}:{line}"
        for frame, line in traceback.walk_tb(failure.__traceback__)
        if Path(frame.f_code.co_filename).is_relative_to(_PACKAGE)
    ]
    return f"{name} in {ours[-1]}" if ours else name


def nearest(name: str, known: list[str] | tuple[str, ...], *, most: int | None = None) -> str:
    """Return the sentence that points to the nearest known name, or lists them, `most` at most.

    >>> nearest("epsilom", ["epsilon", "query"])
    "Did you mean 'epsilon'?"
    >>> nearest("zzz", ["epsilon", "query"])
    'Known: epsilon, query.'
    >>> nearest("average", ["ranges", "total"])
    'Known: ranges, total.'
    """
    match = get_close_matches(name, known, n=1, cutoff=0.6)
    # a typing error keeps the first letter or most of the others; with half the letters in common it is another word
    is_slip = match and (name[:1].lower() == match[0][:1].lower() or bool(get_close_matches(name, match, cutoff=0.75)))
    if is_slip:
        return f"Did you mean {match[0]!r}?"
    is_short = most is None or len(known) <= most
    return f"Known: {', '.join(known)}." if is_short else f"Known: {', '.join(known[:most])}, .."


def decimal_comma(written: str) -> str:
    """Return the sentence that points out a decimal comma, or nothing.

    >>> decimal_comma("0,5")
    '0,5 looks like a decimal comma; write 0.5.'
    """
    found = re.fullmatch(r"\s*([-+]?[0-9]{1,20}),([0-9]{1,20})\s*", written)
    return f"{found[0].strip()} looks like a decimal comma; write {found[1]}.{found[2]}." if found else ""


def kind_of(value: Any) -> str:
    """Return the type of a value in words, and nothing of its content, because it may be rows.

    >>> kind_of("3,patient 0"), kind_of([{"who": "patient 0"}])
    ('a text', 'a list')
    """
    kind = type(value)
    if issubclass(kind, str):
        return "a text"
    if value is None:
        return "None"
    module = str(kind.__module__).split(".")[0]
    name = kind.__name__ if module == "builtins" else f"{module} {kind.__name__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def printable(text: str) -> str:
    """Return a text without control characters, which could move a cursor or be refused by an image file."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def is_word(value: Any) -> bool:
    """Say whether this is a number or a single word; anything else may be rows."""
    return type(value) in (int, float, bool) or (
        type(value) is str and len(value) <= 40 and re.fullmatch(r"[\w.+/%-]*", value) is not None
    )


class GivenKind(str):
    """The type of a value in words, given instead of the value."""

    __slots__ = ()


def word_or_kind(value: Any) -> Any:
    """Return the value if it is a number or a few plain words, which a message may repeat; otherwise its type."""
    if type(value) is str and len(value) <= _LONGEST_WORDS and is_path(value):
        return value
    if value is None or (type(value) in (list, tuple, dict, set) and not value):
        return value
    return value if is_word(value) else GivenKind(kind_of(value))


def _may_be_a_column(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= _LONGEST_PART and name.isprintable() and not _SEPARATED.search(name)


def is_path(value: Any) -> bool:
    r"""Say whether this is surely the name of a file: one line without the separators of cells.

    >>> is_path("data/people.csv"), is_path("3,patient 0"), is_path("age\n3"), is_path("x" * 300)
    (True, False, False, False)
    """
    if type(value) is not str and not isinstance(value, PurePath):
        return False
    text = str(value)
    parts = re.split(r"[/\\]", text)
    return bool(text) and not re.search(r"[=|'\"<>]", text) and len(text) <= _LONGEST_PATH and all(map(_is_part, parts))


def _is_part(text: str) -> bool:
    return text.isprintable() and not re.search("[,;]", text) and len(os.fsencode(text)) <= _LONGEST_PART


def is_possible_path(path: PurePath) -> bool:
    r"""Say whether the system allows a file of this name, by its length and letters.

    >>> is_possible_path(Path("a, b/c.csv")), is_possible_path(Path("x" * 256)), is_possible_path(Path("a\0b"))
    (True, False, False)
    """
    try:
        parts = [len(os.fsencode(part)) for part in path.parts]
    except UnicodeEncodeError:
        return False
    return max(parts, default=0) <= _LONGEST_PART and sum(parts) + len(parts) < _LONGEST_PATH and "\0" not in str(path)


def leads_to_a_file(value: Any) -> bool:
    """Say whether this names a file: it looks like a path, or it is in a folder that exists."""
    if is_path(value):
        return True
    if not isinstance(value, str | PurePath):
        return False
    try:
        path = Path(str.__str__(value) if isinstance(value, str) else value)
        return path.is_file() or (path.parent.is_dir() and is_path(path.name))
    except (OSError, ValueError):  # a name that no file can have
        return False


def path_words(value: str | PurePath) -> str:
    """Return a path as a message may repeat it.

    >>> path_words("town/ledger.db"), path_words("my, town/ledger.db"), path_words("a=b,c")
    ('town/ledger.db', '../ledger.db', 'the file')
    """
    if is_path(value):
        return str(value)
    last = PurePath(value).name
    return f"../{last}" if is_path(last) else "the file"


def _shown(value: Any) -> str:
    """Return a value as a message may repeat it: words, numbers and flat lists; anything else may be people's rows.

    >>> _shown("epsilom"), _shown([1, "age"]), _shown("3,patient 0"), _shown([{"who": "patient 0"}])
    ("'epsilom'", "[1, 'age']", 'a text', 'a list')
    """
    if type(value) is GivenKind:
        return str(value)
    if type(value) is str and "\n" in value:
        return "a text of several lines"
    if type(value) in (Fraction, Decimal):
        from tacit.amounts import shown  # here, not above: it is built on this module

        value = GivenKind(shown(Fraction(value)) if type(value) is Fraction else value)
        return str(value) if len(value) <= 120 else value[:117] + "..."
    text = repr(value) if _is_plain(value) else kind_of(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _is_plain(value: Any) -> bool:
    if type(value) is dict:
        return not value
    if type(value) in (list, tuple, set, frozenset):
        return len(value) <= 20 and all(map(_is_scalar, value))
    return _is_scalar(value)


def _is_scalar(value: Any) -> bool:
    if type(value) is str:
        return "\n" not in value and (not _SEPARATED.search(value) or bool(_DECIMAL_COMMA.fullmatch(value)))
    return value is None or type(value) in (int, float, bool, Fraction, Decimal) or isinstance(value, date)


# ---- what an exception holds ----------------------------------------------------------------------------------------


class ChargeNote(str):
    """A note on an exception about what was charged: the only kind of note that stays."""

    __slots__ = ()


def bare(failure: BaseException) -> BaseException:
    """Return an exception without its context and other notes; an interrupt or an exit also without its arguments."""
    notes = [note for note in getattr(failure, "__notes__", ()) if type(note) is ChargeNote]
    if isinstance(failure, KeyboardInterrupt):
        failure = KeyboardInterrupt()
    elif isinstance(failure, SystemExit):
        failure = SystemExit(failure.code if isinstance(failure.code, int) else 1)
    failure.__context__ = failure.__cause__ = None
    if hasattr(failure, "__notes__"):
        del failure.__notes__
    for note in notes:
        failure.add_note(note)
    return failure.with_traceback(None)


class Terminated(BaseException):
    """A request to end this process; like Ctrl-C, it is not a failure."""


def terminated(number: int, frame: object) -> None:
    """Handle SIGTERM as Python handles Ctrl-C: raise an exception."""
    raise Terminated


FROM_A_HANDLER = "_tacit_from_a_handler"  # marks an exception of the user's own signal handler, which is passed on


def sealed(entry: Callable[Given, Found]) -> Callable[Given, Found]:
    """Keep the arguments of an entry point out of every exception that it raises, because they may be rows.

    A refusal keeps its sentence, and an interrupt stays an interrupt. A call with wrong arguments names them. Any other
    exception becomes an `InternalError`, because its text may quote the arguments.
    """

    @functools.wraps(entry)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        failure: BaseException
        try:
            return entry(*args, **kwargs)
        except (TacitError, KeyboardInterrupt, SystemExit, Terminated) as raised:
            failure = bare(raised)
        except BaseException as raised:  # not Exception: a panic inside polars is not one
            if getattr(raised, FROM_A_HANDLER, False):
                failure = bare(raised)
            else:
                failure = _not_called_so(entry, args, kwargs) or InternalError("what was given was looked at")
        del args, kwargs
        raise failure

    return call


_NOT_TAKEN = {
    "delta": "There is no delta: what is promised holds without exceptions.",
    "seed": "Noise has no seed: whoever knew it would know the true answers.",
}


def _not_called_so(entry: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> WrongArguments | None:
    try:
        inspect.signature(entry).bind(*args, **kwargs)
    except TypeError as unfit:
        why = "".join(f". {why}" for name, why in _NOT_TAKEN.items() if f"argument '{name}'" in str(unfit))
        return WrongArguments(f"{entry.__qualname__}: {unfit}{why}")  # names of arguments, no values
    return None
