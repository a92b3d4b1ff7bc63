"""What may be written into a ledger: exact epsilons, names in one spelling, notes, policies and keys.

Every refusal happens before the database is touched and names the key, the rule, the value given and the fix.
"""

from __future__ import annotations

import os
import unicodedata
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, Protocol

from tacit.amounts import EPSILON_DIGITS, as_fraction, has_few_digits
from tacit.errors import LedgerError, PlanError, decimal_comma
from tacit.ledger.names import is_unseen

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
