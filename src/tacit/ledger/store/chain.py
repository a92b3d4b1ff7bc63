"""The chain of entries in a ledger: how an entry is hashed, and what a damaged chain looks like.

Pure functions over stored fields; the database is the business of `store`, the rules of `ledger`.

Guarantee   `examined` finds every entry that was changed, taken out, put in or moved after it was written, unless
            whoever did it also recomputed every later hash and the head row. With a key nobody can do that without
            knowing the key; without one, the chain guards against accidents and hasty edits only. Whatever stands in
            a field, of whatever type and length, it ends with a verdict, in time that is linear in the ledger.
Assumes     SHA-256 has no known collisions; the key (`TACIT_LEDGER_KEY`) is kept away from those who can write to
            the database, and is long enough not to be guessed.
Why         Each hash covers all fields of its entry and the hash before it; the head row holds the last hash and
            the count under a seal of its own, so a cut tail no longer fits the head.
Limits      An old copy of the whole ledger is a good ledger. Keep a receipt's hash elsewhere (a release's
            certificate does) and look for it in `Ledger.entries()`.
Reference   Haber and Stornetta, How to time-stamp a digital document, Journal of Cryptology 3 (1991).
Checked by  tests/unit/ledger/test_ledger.py, tests/unit/ledger/test_ledger_shape.py,
            tests/contract/test_ledger_backends.py.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

NOTHING_BEFORE = "0" * 64
"""What the first entry has as its previous hash."""

TOTAL = ""
"""The analyst under which a data set's total is kept: no analyst's name is empty."""

LIMITS, SHOWN, TABLE, TAKEN_OVER = "limits", "shown", "table", "taken over"
"""Kinds of entries: which limits hold from here on, what a release has shown, what a table tells about, and that the
rows of an older Tacit, which no seal had covered, are sealed from here on as they stood."""

WITHOUT_COST = (LIMITS, SHOWN, TABLE, TAKEN_OVER)
"""Kinds of entries that move no sum."""

Stored = Mapping[str, Any]
"""One row as it stands in the database: text and whole numbers only."""

HASHED = (
    "number",
    "time",
    "kind",
    "dataset",
    "analyst",
    "epsilon",
    "policy",
    "policy_text",
    "what",
    "previous",
)
"""The fields of an entry that its hash covers: all but the hash itself."""

ENTRY_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys((*HASHED, "hash"), (str,)),
    "number": (int,),
    **dict.fromkeys(("analyst", "policy", "policy_text"), (str, type(None))),
}
HEAD_TYPES: Mapping[str, tuple[type, ...]] = {
    "count": (int,),
    "head": (str,),
    "seal": (str,),
    "key_mark": (str,),
}
ACCOUNT_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("dataset", "analyst", "granted", "spent"), (str,)),
    "policy": (str, type(None)),
    "first_grant": (int, type(None)),
}
RUN_STATES = ("reserved", "finished", "lost")
RUN_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("run", "job", "state"), (str,)),
    **dict.fromkeys(("first", "last"), (int,)),
}

LONGEST_AMOUNT = 2200
"""Characters of a sum as it is written: its denominator has at most a thousand digits."""

_AMOUNT = re.compile(r"[0-9]+(/[1-9][0-9]*)?")


def amount_of(text: object) -> Fraction | None:
    """Return the amount that a field holds, or None if Tacit cannot have written it.

    >>> amount_of("1/3"), amount_of("1e999999999"), amount_of(b"1")
    (Fraction(1, 3), None, None)
    """
    # Only what `str` of a fraction gives: Fraction("1e999999999") would write that number out.
    if not isinstance(text, str) or len(text) > LONGEST_AMOUNT or not _AMOUNT.fullmatch(text):
        return None
    amount = Fraction(text)
    return amount if str(amount) == text else None


def odd_field(row: Stored, types: Mapping[str, tuple[type, ...]]) -> str | None:
    """Return the first field that holds another type of value than Tacit writes there, or None."""
    return next((name for name, allowed in types.items() if type(row[name]) not in allowed), None)


@dataclass(frozen=True)
class LedgerEntry:
    """One line of the ledger: a grant of budget or a charge against it.

    `analyst` is None for a grant to the data set as a whole. `policy` is a fingerprint; `policy_text` is the whole
    policy, carried by grants and by the charge that gave its account a policy. Nothing in an entry ever comes from a
    row of data.
    """

    number: int
    time: str
    kind: str
    dataset: str
    analyst: str | None
    epsilon: Fraction
    policy: str | None
    what: str
    previous: str
    hash: str
    policy_text: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Verification:
    """What `Ledger.verify` found. `problem` begins with the kind of damage and names the first bad entry.

    `unknown` says what cannot be known of rows that an older Tacit wrote; nothing where there are none.
    """

    ok: bool
    entries: int
    head: str
    problem: str | None
    unknown: str = ""


@dataclass(frozen=True)
class Seal:
    """Makes hashes: SHA-256, or HMAC-SHA-256 when there is a key."""

    key: bytes | None = field(default=None, repr=False)

    def of(self, fields: Stored) -> str:
        """Return the hash of the canonical JSON of `fields`, in hexadecimal.

        >>> Seal().of({"b": 1, "a": "x"}) == Seal().of({"a": "x", "b": 1})
        True
        >>> Seal(b"key").of({"a": 1}) == Seal().of({"a": 1})
        False
        """
        # ASCII, sorted keys, no blanks: one text per set of fields. A value of a type that we never write can only
        # come from tampering; repr makes it hash to something else instead of raising.
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=repr)
        if self.key is None:
            return hashlib.sha256(text.encode("ascii")).hexdigest()
        return hmac.new(self.key, text.encode("ascii"), hashlib.sha256).hexdigest()

    def of_entry(self, row: Stored) -> str:
        """Return the hash that an entry with these fields must carry."""
        return self.of({name: row[name] for name in HASHED})

    def of_head(self, *, count: int, head: str, rows: str | None) -> str:
        """Return the seal of the head row, over the last entry and all other rows (None in a ledger of an older Tacit).

        With a key, nobody else can move the head back.
        """
        return self.of({"ledger": "head", "count": count, "head": head, **({} if rows is None else {"rows": rows})})

    def of_key(self) -> str:
        """Return a mark by which a wrong key is told from a damaged chain."""
        return self.of({"ledger": "key"})


def wrong_key(head: Stored, seal: Seal) -> str | None:
    """Return why this key is not the one that the ledger was started with, or None if it is."""
    if not isinstance(head["key_mark"], str):
        return None  # no key was ever marked like this: damage, for `unfit_head` to say
    if head["key_mark"] == seal.of_key():
        return None
    if seal.key is None:
        return "the ledger was started with a key and none was given"
    if head["key_mark"] == Seal().of_key():
        return "the ledger was started without a key and one was given"
    return "the key given is not the one the ledger was started with"


def unfit_head(head: Stored, last: Stored | None, rows: str | None, seal: Seal) -> str | None:
    """Return why the head row does not fit the last entry and the root of all other rows, or None if it does.

    Looks at nothing else.
    """
    if name := odd_field(head, HEAD_TYPES):
        return f"changed: {name} of the head row is not what Tacit writes"
    number, found = (last["number"], last["hash"]) if last is not None else (0, NOTHING_BEFORE)
    if number < head["count"]:
        return f"cut off: the head row counts {head['count']} entries, the last one found is entry {number}"
    if number > head["count"]:
        return f"changed: entry {number} stands behind the head row, which counts {head['count']} entries"
    if last is not None and seal.of_entry(last) != found:
        return f"changed: entry {number} does not fit its hash"
    if found != head["head"]:
        return f"changed: the head row holds another hash than entry {number}"
    if head["seal"] != seal.of_head(count=head["count"], head=head["head"], rows=rows):
        return (
            f"changed: the head row was rewritten; entries after entry {number} may have been cut off, or other rows "
            "put back"
        )
    return None


def examined(
    head: Stored | None,
    entries: Callable[[], Iterable[Stored]],
    accounts: Iterable[Stored],
    rows: str | None,
    seal: Seal,
) -> Verification:
    """Walk the whole chain, then add the running sums up again.

    Args:
        head: The head row, or None if it is gone.
        entries: Called for the entries in the order of their numbers; a second time only after damage was found.
        accounts: The running sums as they are stored.
        rows: The root of all rows that are no entries; None in a ledger of an older Tacit.
        seal: The seal that the ledger was written with.
    """
    if head is None:
        return Verification(
            ok=False, entries=sum(1 for _ in entries()), head="", problem="missing: the head row is gone"
        )

    sums, problem, last, seen = AccountSums(), None, None, 0
    for row in entries():
        seen += 1
        if problem is None:
            odd = odd_field(row, ENTRY_TYPES)
            problem = damage(row, last, seal) or sums.add(row)
            if problem is not None and last is None and (why := wrong_key(head, seal)):
                problem = f"wrong key: {why}"
            elif problem is not None and not odd and row["number"] == (last["number"] + 1 if last else 1):
                problem = _moved(row, entries, seal) or problem
            last = row
    if problem is None and (why := wrong_key(head, seal)):
        # With no entry to try the key on, the mark decides; with entries that fit, the mark itself was changed.
        problem = f"wrong key: {why}" if last is None else "changed: the mark of the key in the head row"
    problem = problem or unfit_head(head, last, rows, seal) or sums.differ_from(accounts)
    return Verification(ok=problem is None, entries=seen, head=str(head["head"])[:64], problem=problem)


def with_runs(verdict: Verification, runs: Iterable[Stored]) -> Verification:
    """Return a verdict on sound entries after a look at what is noted of runs: each of entries that are there."""
    if any(odd_run(row) or not 1 <= row["first"] <= row["last"] <= verdict.entries for row in runs):
        return replace(verdict, ok=False, problem="changed: what is noted of a run cannot be read")
    return verdict


def odd_run(row: Stored) -> bool:
    """Say whether what is noted of a run is not what Tacit writes there."""
    return odd_field(row, RUN_TYPES) is not None or row["state"] not in RUN_STATES


def damage(row: Stored, before: Stored | None, seal: Seal) -> str | None:
    """Return why an entry cannot be the one that was written behind the one before it, or None."""
    expected = before["number"] + 1 if before is not None else 1
    if odd_field(row, {"number": (int,)}):
        return f"changed: entry {expected} has a number that is none"
    if row["number"] > expected:
        return f"missing: entry {expected} is gone"
    if row["number"] < expected:
        return f"changed: entry {row['number']} was put in"
    if odd_field(row, ENTRY_TYPES) or seal.of_entry(row) != row["hash"]:
        return f"changed: entry {row['number']} does not fit its hash"
    if before is None:
        return None if row["previous"] == NOTHING_BEFORE else "changed: entry 1 does not begin the chain"
    if row["previous"] != before["hash"]:
        # Its own hash fits, so what was rewritten, hash and all, is the entry that it was chained to.
        return f"changed: entry {before['number']} was rewritten after entry {expected} had been chained to it"
    return None


def _moved(row: Stored, entries: Callable[[], Iterable[Stored]], seal: Seal) -> str | None:
    """Return where a row that does not fit its number came from, or None if it fits no number."""

    def fits(candidate: Stored, number: int) -> bool:
        return bool(seal.of_entry({**candidate, "number": number}) == candidate["hash"])

    place = row["number"]
    if fits(row, place):
        return None
    # A renumbered chain is as long as it was, less what was taken out: look as far again as there are entries. The
    # numbers themselves may be anything by now.
    longest = 2 * sum(1 for _ in entries()) + 1
    origin = next((number for number in range(1, longest) if fits(row, number)), None)
    if origin is None:
        return None
    if any(fits(other, place) for other in entries()):
        return f"reordered: entry {place} was written as entry {origin}"
    return f"missing: entry {place} is gone, what stands in its place was written as entry {origin}"


class AccountSums:
    """What the accounts must hold, added up from the entries."""

    def __init__(self) -> None:
        self._granted: dict[tuple[str, str], Fraction] = {}
        self._spent: dict[tuple[str, str], Fraction] = {}
        self._policy: dict[tuple[str, str], tuple[str | None, int]] = {}

    def add(self, row: Stored) -> str | None:
        """Add one entry; return what is wrong with it, or None."""
        epsilon = amount_of(row["epsilon"])
        if epsilon is None:
            return f"changed: entry {row['number']} holds {_short(row['epsilon'])}, which is no epsilon"
        dataset, analyst = row["dataset"], row["analyst"] or TOTAL
        if row["kind"] in WITHOUT_COST:
            return f"changed: entry {row['number']} spends, and its kind does not" if epsilon else None
        if row["kind"] == "grant":
            account = (dataset, analyst)
            self._granted[account] = self._granted.get(account, Fraction(0)) + epsilon
            self._policy.setdefault(account, (row["policy"], row["number"]))
            return None
        if row["policy_text"] is not None:  # the first charge under a policy to a total that had none
            if self._policy.get((dataset, TOTAL), (None, 0))[0] is not None:
                return f"changed: entry {row['number']} gives dataset {dataset!r} a second policy"
            self._policy[dataset, TOTAL] = (row["policy"], row["number"])
        for account in {(dataset, TOTAL), (dataset, analyst)}:
            self._spent[account] = self._spent.get(account, Fraction(0)) + epsilon
        total = (dataset, TOTAL)
        if self._spent[total] > self._granted.get(total, Fraction(0)):
            return f"changed: entry {row['number']} charges more than dataset {dataset!r} was granted before it"
        return None

    def differ_from(self, accounts: Iterable[Stored]) -> str | None:
        """Return the first account whose running sums are not what the entries add up to, or None."""
        stored = {}
        for row in accounts:
            if name := odd_field(row, ACCOUNT_TYPES):
                return f"changed: the running sums hold {_short(row[name])} as {name}, which Tacit does not write"
            stored[row["dataset"], row["analyst"]] = row
        for account in sorted(self._granted.keys() | self._spent.keys() | stored.keys()):
            dataset, analyst = account
            who = f"dataset {dataset[:200]!r}" + (f", analyst {analyst[:200]!r}" if analyst else "")
            policy, first = self._policy.get(account, (None, None))
            expected = {
                "granted": str(self._granted.get(account, Fraction(0))),
                "spent": str(self._spent.get(account, Fraction(0))),
                "policy": policy,
                "first_grant": first,
            }
            if account not in stored:
                return f"changed: the running sums of {who} are gone"
            for name, value in expected.items():
                if stored[account][name] != value:
                    return (
                        f"changed: the running sums of {who} hold {name} {str(stored[account][name])[:60]}, "
                        f"the entries add up to {value}"
                    )
        return None


def _short(value: object) -> str:
    """Return what somebody has written into a field, as a verdict may repeat it."""
    text = repr(value[:60] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 80 else text[:77] + "..."
