"""What a ledger accepts: where it may be, exact epsilons, names, notes, policies and keys.

Every refusal happens before the database is touched and names the key, the rule, the value given and the fix.

Guarantee   A file is only written to under a name that no other name of the same file can bypass: link counts above
            one, files that are mounted by themselves, and addresses that switch locking off are refused.
            No two data sets of a ledger, and no two analysts of a data set, have names that differ only in case,
            width, ligatures, blanks, dashes, or in letters and digits of the table below. No name holds an invisible
            character.
Assumes     Moving a ledger means moving the file while no process writes to it, together with the file
            `..-journal` beside it if a crash has left one.
Why         SQLite's locks belong to the file, whatever it is called, but what it needs to undo a half-written change
            lies beside the name. A process that opens another name would not find it. A folder may have many names
            (links, mounts, containers): its files lie beside each other under all of them.
            A name decides whose budget is charged: a second spelling would be a second budget, or a way around a cap.
            A look-alike is refused, not folded: ledgers and certificates hold what was written, and old ledgers keep
            their names. The spelling that came first holds.
Limits      Letters that look alike beyond the table (there are thousands) and names that only sound alike.
Reference   Unicode Technical Standard 39, section 4: names are compared by a skeleton.
Checked by  tests/unit/ledger/test_ledger.py, tests/unit/ledger/test_ledger_names.py,
            tests/contract/test_ledger_two_names.py.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from tacit.amounts import EPSILON_DIGITS, as_fraction, has_few_digits
from tacit.errors import Exit, LedgerError, PlanError, decimal_comma, is_path, kind_of, leads_to_a_file, path_words

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

    from tacit.policy.policy import Policy

LONGEST_NAME = 200
LONGEST_NOTE = 1000

Amount = int | float | str | Decimal | Fraction


def exact_epsilon(value: Amount, *, file: str = "") -> Fraction:
    """Return an epsilon as the fraction it was written as: a float means its shortest decimal form.

    >>> exact_epsilon(0.1), exact_epsilon("1/3"), exact_epsilon(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(2, 1))
    >>> exact_epsilon(float("nan"))
    Traceback (most recent call last):
    tacit.errors.LedgerError: epsilon must be a number above 0; got nan. For example 0.1 or "1/10".
    """
    try:
        amount: Fraction | None = as_fraction(value, key="epsilon")
    except PlanError:  # a ledger refuses with a LedgerError, raised below
        amount = None
    # Python refuses to print whole numbers of some thousand digits, and nobody would read them.
    is_long = isinstance(value, Rational) and amount is not None and not has_few_digits(amount)
    given = "a number too long to print" if is_long else value
    example = 'For example 0.1 or "1/10".'
    if amount is None or amount <= 0:
        fix = (decimal_comma(value) if type(value) is str else "") or example
        raise LedgerError("must be a number above 0", key="epsilon", given=given, file=file, fix=fix)
    if not has_few_digits(amount):
        rule = f"must be a fraction of whole numbers with at most {EPSILON_DIGITS} digits"
        raise LedgerError(rule, key="epsilon", given=given, file=file, fix=example)
    return amount


def checked_name(name: str, *, key: str, file: str) -> str:
    """Return the name in one spelling; two spellings of one name would be two budgets."""
    name = str.__str__(name) if isinstance(name, str) else name  # whatever a subclass may make of it later
    if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable() or is_unseen(name):
        rule = "must be a name without blanks around it or characters that cannot be printed or seen"
        fix = f'For example {key}="{"ana" if key == "analyst" else "clinic"}".'
        raise LedgerError(rule, key=key, given=name, file=file, fix=fix)
    if len(name) > LONGEST_NAME:
        rule = f"must have at most {LONGEST_NAME} characters"
        raise LedgerError(rule, key=key, given=len(name), file=file, fix="Shorten it.")
    return unicodedata.normalize("NFC", name)


def checked_note(what: str, *, file: str) -> str:
    """Return a note on one line, shortened if it is long: nothing depends on it."""
    note = " ".join(what.split()) if isinstance(what, str) else None
    if note is None or not note.isprintable():
        fix = 'For example what="count of flu".'
        raise LedgerError("must be printable text", key="what", given=what, file=file, fix=fix)
    return note if len(note) <= LONGEST_NOTE else note[: LONGEST_NOTE - 3] + "..."


def checked_policy(policy: Policy | None, *, file: str) -> str | None:
    """Return the fingerprint of a policy, or None if there is none."""
    if policy is None:
        return None
    fingerprint = getattr(policy, "fingerprint", None)
    if not isinstance(fingerprint, str) or not fingerprint or not callable(getattr(policy, "to_yaml", None)):
        fix = 'Load it first: tc.Policy.load("clinic.yaml").'
        raise LedgerError("must be a policy", key="policy", given=policy, file=file, fix=fix)
    return fingerprint


def checked_key(key: str | bytes | None) -> bytes | None:
    """Return the key as bytes, from the environment if none was given."""
    if key is None:
        key = os.environ.get("TACIT_LEDGER_KEY") or None
    if key is None:
        return None
    if not key or not isinstance(key, str | bytes):
        # The value given is not repeated: it is, or was meant to be, a secret.
        raise LedgerError("key must be text or bytes and not empty", fix="Leave it out for a ledger without a key.")
    return key.encode() if isinstance(key, str) else key


def canonical_json(body: Any) -> str:
    """Return the one text of plain data."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


# ---- names that look alike ------------------------------------------------------------------------------------------

# Unicode's Default_Ignorable_Code_Point, and the blank pattern of braille. Python calls some of them printable.
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# After folding of case and width. Cyrillic, Greek and Armenian letters that are drawn like Latin ones; digits that
# are drawn like letters; the dashes, quotes and dots of typesetting.
_LOOK_LIKE: Final = {
    other: letter
    for letter, others in {
        "a": "\u0430\u03b1\u0251",
        "b": "\u0432\u03b2\u044c",
        "c": "\u0441\u03f2\u1d04",
        "d": "\u0501",
        "e": "\u0435\u03b5",
        "g": "\u0261\u0581",
        "h": "\u043d\u04bb\u03b7\u0570",
        "i": "\u0131\u0456\u03b9\u0269\u04cf",
        "j": "\u0458\u03f3\u0237",
        "k": "\u043a\u03ba",
        "l": "1|\u01c0",
        "m": "\u043c\u03bc\u00b5",
        "n": "\u03bd\u0578",
        "o": "0\u043e\u03bf\u0585\u03c3\u0ed0\u0d20",
        "p": "\u0440\u03c1",
        "q": "\u051b\u0566",
        "s": "\u0455\u0282",
        "t": "\u0442\u03c4",
        "u": "\u057d\u03c5\u028b",
        "v": "\u0475",
        "w": "\u051d\u0461\u03c9",
        "x": "\u0445\u03c7",
        "y": "\u0443\u04af\u0263",
        "z": "\u03b6",
        "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u00ad\u30fc\u2043",
        "'": "\u2018\u2019\u02bc\u2032\u00b4`",
        ".": "\u2024\u00b7\u30fb",
    }.items()
    for other in others
}
_LETTERS: Final = str.maketrans(_LOOK_LIKE)
# Before folding: what Unicode calls another form of something that looks different (a lunate sigma looks like c).
_BEFORE: Final = str.maketrans(
    {other: letter for other, letter in _LOOK_LIKE.items() if unicodedata.normalize("NFKC", other) != other}
    | {"\u03f9": "C"}
)
# With case preserved: capitals of the same letters, a capital I that looks like l, and a small nu that looks like v.
_CAPITALS: Final = str.maketrans(
    _LOOK_LIKE
    | {
        other.upper(): letter.upper()
        for other, letter in _LOOK_LIKE.items()
        if len(other.upper()) == 1 and other.upper() != other and not other.upper().isascii()
    }
    | {"I": "l", "0": "O", "\u03bd": "v"}
)


def is_unseen(name: str) -> bool:
    r"""Say whether a name holds a character that nobody can see.

    >>> is_unseen("clinic"), is_unseen("clin\ufe0fic")
    (False, True)
    """
    return _UNSEEN.search(name) is not None


def without_unseen(name: str) -> str:
    """Return a name without the characters that nobody can see."""
    return _UNSEEN.sub("", name)


def skeletons(name: str) -> frozenset[str]:
    r"""Return what remains of a name without the differences that a reader may miss, with and without case.

    A capital I is read as an i or as an l. Two names look alike if they share a skeleton.

    >>> skeletons("Clinic") & skeletons("\u0441linic"), skeletons("CIinic") & skeletons("clinic")
    (frozenset({'clinic'}), frozenset({'clinic'}))
    """
    # letters that Unicode would replace by others that look different come first
    replaced = without_unseen(name).translate(_BEFORE)
    seen = _undotted(unicodedata.normalize("NFKC", without_unseen(unicodedata.normalize("NFKC", replaced))))
    with_case = seen.translate(_CAPITALS)
    return frozenset(" ".join(text.split()) for text in (_folded(seen), with_case, _folded(with_case)))


def _folded(text: str) -> str:
    return _undotted(unicodedata.normalize("NFKC", text.casefold())).translate(_LETTERS)


def _undotted(text: str) -> str:
    """Leave out dots above letters that have one anyway."""
    return re.sub("(?<=[ij\u0131\u0237])\u0307+", "", text)


def look_alike(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` may be mistaken for without being it, or None.

    >>> look_alike("Clinic", ["lab", "clinic"])
    'clinic'
    """
    mine = skeletons(name)
    return next((other for other in known if other != name and not mine.isdisjoint(skeletons(other))), None)


# ---- where a ledger is ----------------------------------------------------------------------------------------------

_MODES = ("ro", "rw", "rwc")
_MOUNTS = Path("/proc/self/mountinfo")  # Linux; other systems cannot mount a file by itself


@dataclass(frozen=True)
class Address:
    """A checked address: of a `file`, or of a database server, whose `url` says where it is."""

    name: str
    url: URL | None = None
    file: Path | None = None
    mode: str = "rwc"

    def sqlite_uri(self, *, create: bool) -> str:
        """Return what SQLite opens: this file, never one that is made by looking at it."""
        assert self.file is not None  # noqa: S101 - for the type checker
        mode = "rw" if self.mode == "rwc" and not create else self.mode
        return f"{self.file.absolute().as_uri()}?mode={mode}"


def address_of(where: str | Path) -> Address:
    """Return a checked address; nothing is opened."""
    if not isinstance(where, str | Path):
        raise _no_address(where)
    text = str.__str__(where) if isinstance(where, str) else str(where)
    if not text or "\0" in text:
        raise _no_address(where)
    if "://" not in text:
        return _file_address(text, Path(text).expanduser())

    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text is not repeated: what cannot be parsed may still hold a password.
        fix = 'For example "postgresql+psycopg://user@host/database".'
        raise LedgerError("ledger must be a path or a database URL that can be read", fix=fix) from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return _sqlite_address(text, url)
    if url.drivername not in ("postgres", "postgresql", "postgresql+psycopg"):
        rule = "ledger must be kept in SQLite (sqlite:///) or PostgreSQL (postgresql+psycopg://)"
        raise LedgerError(rule, given=url.drivername, fix='Name a file, as in "ledger.db", or such a URL.')
    url = url.set(drivername="postgresql+psycopg")
    return Address(url.render_as_string(hide_password=True), url)


def _sqlite_address(text: str, url: URL) -> Address:
    database = url.database or ":memory:"
    if ":memory:" in database or url.query.get("mode") == "memory":
        return _file_address(text, Path(":memory:"))
    for key, value in url.query.items():
        # Locks keep two processes apart. Other settings are refused unseen: a ledger needs none of them.
        if (key, value) != ("uri", "true") and not (key == "mode" and value in _MODES):
            rule = f"the address of a ledger must not set {key}: no setting may switch its locks off"
            fix = "Leave it out; only mode=ro is known, for looking."
            raise LedgerError(rule, given=f"{key}={value}", file=text.partition("?")[0], fix=fix)
    if database.startswith("file:"):
        path = database.removeprefix("file:")
        database = unquote(re.sub(r"^//(localhost)?(?=/)", "", path))
    return _file_address(text, Path(database).expanduser(), mode=str(url.query.get("mode", "rwc")))


def _file_address(name: str, file: Path, *, mode: str = "rwc") -> Address:
    if ":memory:" in str(file):
        rule = "a ledger must outlive the process, so it cannot be kept in memory"
        raise LedgerError(rule, file=name, fix="Name a file.")
    if not leads_to_a_file(file):
        raise _no_address(name)
    return Address(name if is_path(file) else path_words(file), file=file, mode=mode)


def _no_address(given: object) -> LedgerError:
    rule = f"ledger must be a path or a database URL, not {kind_of(given) if given != '' else 'an empty text'}"
    return LedgerError(rule, fix='For example "ledger.db".')


def _cannot_open(error: OSError, name: str) -> LedgerError:
    why = error.strerror or type(error).__name__
    return LedgerError(f"cannot be opened ({why})", file=name, fix="Name another file.", exit_code=Exit.UNREACHABLE)


def check_place(address: Address, *, create: bool) -> Address:
    """Refuse a file that cannot be a ledger, before SQLite makes one of it; return it with its absolute path."""
    file, name = address.file, address.name
    assert file is not None  # noqa: S101 - for the type checker
    try:
        if file.is_dir():
            raise LedgerError("is a folder", file=name, fix=f"Name a file in it: {Path(name) / 'ledger.db'}.")
        if not file.parent.is_dir():
            rule, folder = "the ledger's folder does not exist", str(file.parent)
            fix = "Create it first."
            raise LedgerError(rule, file=name, given=folder, fix=fix, exit_code=Exit.UNREACHABLE)
        if not create and (not file.exists() or file.stat().st_size == 0):
            raise no_ledger(name)
        # By name alone, before anything is read: opening a pipe would wait for somebody to write to it.
        if file.exists() and not file.is_file():
            raise LedgerError("is not a file", file=name, fix="Name another.")
        return replace(address, file=file.absolute())
    except OSError as error:
        raise _cannot_open(error, name) from None


def grant_command(ledger: str, dataset: str, epsilon: str = "1") -> str:
    """Return the command that grants a budget, as somebody can type it."""
    return f"`tacit ledger grant {shlex.quote(ledger)} --dataset {shlex.quote(dataset)} --epsilon {epsilon}`"


def no_ledger(name: str) -> LedgerError:
    """Return the refusal to look at a ledger that is not there."""
    fix = f"Check the name, or begin one: {grant_command(name, 'NAME', '4')}."
    return LedgerError("there is no ledger here", file=name, fix=fix, exit_code=Exit.UNREACHABLE)


def check_only_name(address: Address) -> None:
    """Refuse to write to a file that others may be writing to under another name."""
    file = address.file
    if file is None:
        return
    try:
        links, real = file.stat().st_nlink, Path(os.path.realpath(file))
    except FileNotFoundError:
        return  # it will be made, with one name
    except OSError as error:
        raise _cannot_open(error, address.name) from None
    if links > 1:
        rule = f"must have one name, and this file has {links} (hard links): charges under two names can be lost"
        fix = "Remove the other names (`find . -samefile ..` shows them), or make them symbolic links."
        raise LedgerError(rule, file=address.name, fix=fix)
    if _is_mounted(real):
        rule = "is mounted by itself, so the same file has another name elsewhere: charges under two names can be lost"
        fix = "Mount the folder that it lies in instead of the file, as in `docker run -v ledgers:/ledgers`."
        raise LedgerError(rule, file=address.name, fix=fix)


def _is_mounted(file: Path) -> bool:
    """Say whether a file is a mount point of its own, as `docker run -v ledger.db:/ledger.db` makes it."""
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return False
    sought = os.fsencode(file)
    # blanks and backslashes in the fifth field are written in octal
    return any(
        re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), fields[4]) == sought
        for fields in map(bytes.split, lines)
        if len(fields) > 4
    )
