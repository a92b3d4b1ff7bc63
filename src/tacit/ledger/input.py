"""What may be written into a ledger: exact epsilons, names, notes, policies and keys.

Every refusal happens before the database is touched and names the key, the rule, the value given and the fix.

Guarantee   No two data sets of a ledger, and no two analysts of a data set, have names that differ only in case,
            width, ligatures, blanks, dashes, or in letters and digits of the table below. No name holds an invisible
            character.
Why         A name decides whose budget is charged: a second spelling would be a second budget, or a way around a cap.
            A look-alike is refused, not folded: ledgers and certificates hold what was written, and old ledgers keep
            their names. The spelling that came first holds.
Limits      Letters that look alike beyond the table (there are thousands) and names that only sound alike.
Reference   Unicode Technical Standard 39, section 4: names are compared by a skeleton.
Checked by  tests/unit/ledger/test_ledger.py, tests/unit/ledger/test_ledger_names.py.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, Final, Protocol

from tacit.amounts import EPSILON_DIGITS, as_fraction, has_few_digits
from tacit.errors import LedgerError, PlanError, decimal_comma

LONGEST_NAME = 200
LONGEST_NOTE = 1000

Amount = int | float | str | Decimal | Fraction


class LedgerPolicy(Protocol):
    """What the ledger needs of a policy; `tacit.Policy` has it."""

    @property
    def fingerprint(self) -> str:
        """The same for equal policies, different for others."""
        ...

    def to_yaml(self) -> str:
        """Return the whole policy as text."""
        ...

    def covers(self, other: Any) -> bool:
        """Return whether every secret edge of `other` is one of this policy's."""
        ...

    @classmethod
    def from_yaml(cls, text: str) -> Any:
        """Return the policy that `to_yaml` wrote."""
        ...


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
    except PlanError:  # says the same in other words; what a ledger refuses is a LedgerError, raised below
        amount = None
    # Python refuses to print whole numbers of some thousand digits, and nobody would read them.
    is_long = isinstance(value, Rational) and amount is not None and not has_few_digits(amount)
    given = "a number too long to print" if is_long else value
    if amount is None or amount <= 0:
        raise LedgerError(
            "must be a number above 0",
            key="epsilon",
            given=given,
            file=file,
            fix=(decimal_comma(value) if type(value) is str else "") or 'For example 0.1 or "1/10".',
        )
    if not has_few_digits(amount):
        raise LedgerError(
            f"must be a fraction of whole numbers with at most {EPSILON_DIGITS} digits",
            key="epsilon",
            given=given,
            file=file,
            fix='For example 0.1 or "1/10".',
        )
    return amount


def checked_name(name: str, *, key: str, file: str) -> str:
    """Return the name in one spelling; two spellings of one name would be two budgets."""
    name = str.__str__(name) if isinstance(name, str) else name  # whatever a subclass may make of it later
    if not isinstance(name, str) or not name or name != name.strip() or not name.isprintable() or is_unseen(name):
        raise LedgerError(
            "must be a name without blanks around it or characters that cannot be printed or seen",
            key=key,
            given=name,
            file=file,
            fix=f'For example {key}="{"ana" if key == "analyst" else "clinic"}".',
        )
    if len(name) > LONGEST_NAME:
        raise LedgerError(
            f"must have at most {LONGEST_NAME} characters",
            key=key,
            given=len(name),
            file=file,
            fix="Shorten it.",
        )
    return unicodedata.normalize("NFC", name)


def checked_note(what: str, *, file: str) -> str:
    """Return a note on one line, shortened if it is long: nothing depends on it."""
    note = " ".join(what.split()) if isinstance(what, str) else None
    if note is None or not note.isprintable():
        raise LedgerError(
            "must be printable text",
            key="what",
            given=what,
            file=file,
            fix='For example what="count of flu".',
        )
    return note if len(note) <= LONGEST_NOTE else note[: LONGEST_NOTE - 3] + "..."


def checked_policy(policy: LedgerPolicy | None, *, file: str) -> str | None:
    """Return the fingerprint of a policy, or None if there is none."""
    if policy is None:
        return None
    fingerprint = getattr(policy, "fingerprint", None)
    if not isinstance(fingerprint, str) or not fingerprint or not callable(getattr(policy, "to_yaml", None)):
        raise LedgerError(
            "must be a policy",
            key="policy",
            given=policy,
            file=file,
            fix='Load it first: tc.Policy.load("clinic.yaml").',
        )
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


# Unicode's Default_Ignorable_Code_Point, and the blank pattern of braille. Python calls some of them printable.
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)

# After folding of case and width. Cyrillic, Greek and Armenian letters that are drawn like Latin ones; digits that
# are drawn like letters; the dashes, quotes and dots of typesetting.
_DRAWN_LIKE: Final = {
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
}
_LETTERS: Final = str.maketrans({other: letter for letter, others in _DRAWN_LIKE.items() for other in others})
# Before folding: what Unicode calls another form of something that looks different (a lunate sigma is drawn like c).
_BEFORE: Final = str.maketrans(
    {
        **{
            other: letter
            for letter, others in _DRAWN_LIKE.items()
            for other in others
            if unicodedata.normalize("NFKC", other) != other
        },
        "\u03f9": "C",
    }
)
# With case kept: capitals of the same letters, a capital I that is drawn like l, and a small nu that is drawn like v.
_CAPITALS: Final = str.maketrans(
    {
        **{other: letter for letter, others in _DRAWN_LIKE.items() for other in others},
        **{
            other.upper(): letter.upper()
            for letter, others in _DRAWN_LIKE.items()
            for other in others
            if len(other.upper()) == 1 and other.upper() != other and not other.upper().isascii()
        },
        "I": "l",
        "0": "O",
        "\u03bd": "v",
    }
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
    r"""Return what may be left of a name when what a reader may miss is taken away, without case and with it.

    A capital I is read as an i or as an l. Two names look alike if one of these is the same.

    >>> skeletons("Clinic") & skeletons("\u0441linic"), skeletons("CIinic") & skeletons("clinic")
    (frozenset({'clinic'}), frozenset({'clinic'}))
    """
    # letters that Unicode would make others of, which are not drawn so, come first
    drawn = without_unseen(name).translate(_BEFORE)
    seen = _undotted(unicodedata.normalize("NFKC", without_unseen(unicodedata.normalize("NFKC", drawn))))
    kept = seen.translate(_CAPITALS)
    return frozenset(map(_spaced, (_folded(seen), kept, _folded(kept))))


def _folded(text: str) -> str:
    return _undotted(unicodedata.normalize("NFKC", text.casefold())).translate(_LETTERS)


def _undotted(text: str) -> str:
    """Leave out dots above letters that have one anyway."""
    return re.sub("(?<=[ij\u0131\u0237])\u0307+", "", text)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def look_alike(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` may be mistaken for without being it, or None.

    >>> look_alike("Clinic", ["lab", "clinic"])
    'clinic'
    """
    mine = skeletons(name)
    return next(
        (other for other in known if other != name and not mine.isdisjoint(skeletons(other))),
        None,
    )
