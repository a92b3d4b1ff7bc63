"""Entries of a ledger, the hashes that chain them, and the seals of everything else in it.

Pure functions over stored fields; `ledger/page.py` applies them in a transaction, `ledger/verification.py` to a whole
ledger.

Guarantee   An entry that was changed, taken out, put in or moved after it was written does not fit its hash, the entry
            before it or the head row, unless whoever did it also recomputed every later hash and the head row. Of rows
            that are no entries, a row that was changed, taken out, put in, exchanged or put back from an earlier time
            does not fit the root that the head row seals. With a key nobody can recompute these without knowing the
            key; without one, they guard against accidents and hasty edits only.
Assumes     SHA-256 has no known collisions; the key (`TACIT_LEDGER_KEY`) is kept away from those who can write to
            the database, and is long enough not to be guessed.
Why         Each hash covers all fields of its entry and the hash before it; the head row holds the last hash and the
            count under a seal of its own, so a cut tail no longer fits the head.
            All other rows are under one tree of hashes. The place of a row is the hash of its table and key. Rows whose
            places begin alike are under one node, nodes likewise, and the seal of a node covers what is under it with
            its places: so the root covers which rows are there and which are not. The head row seals the root together
            with the last entry, so an old row beside a newer head does not fit. A charge reads the nodes above its
            rows, at most 16 children each, and no other rows.
Limits      An old copy of the whole ledger is a good ledger. Keep a receipt's hash elsewhere (a release's
            certificate does) and look for it in `Ledger.entries()`.
Reference   Haber and Stornetta, How to time-stamp a digital document, Journal of Cryptology 3 (1991).
            Merkle, A digital signature based on a conventional encryption function, CRYPTO 1987.
Checked by  tests/unit/ledger/test_ledger.py, tests/unit/ledger/test_ledger_shape.py,
            tests/unit/ledger/test_ledger_sealed.py, tests/contract/test_ledger_backends.py.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlalchemy import Table

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


DEPTH: Final = 3  # nodes above a row, without the root: 4,096 of them hold rows

Key = tuple[Any, ...]
Tree = dict[str, dict[str, str]]
"""The seals under each node, by their places. The root is ""; a node without anything under it is not there."""


def key_of(table: Table, row: Stored) -> Key:
    """Return the key of a row."""
    return tuple(row[column.name] for column in table.primary_key)


def place_of(table: Table, key: Key) -> str:
    """Return where a row hangs in the tree, whether it is there or not."""
    text = json.dumps([table.name, *key], separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def nodes_above(place: str) -> list[str]:
    """Return the nodes above a place, the root first."""
    return [place[:length] for length in range(DEPTH + 1)]


def row_seal(table: Table, row: Stored, seal: Seal) -> str:
    """Return the seal of a row."""
    fields = {column.name: row[column.name] for column in table.columns}
    return seal.of({"ledger": "row", "table": table.name, "row": fields})


def node_seal(under: Mapping[str, str], seal: Seal) -> str:
    """Return the seal of a node, from what is under it."""
    return seal.of({"ledger": "rows", "under": dict(under)})


def whole(places: Mapping[str, str], seal: Seal) -> Tree:
    """Return the tree over rows, from the seal of each by its place."""
    tree: Tree = {"": {}}
    for place, one in places.items():
        tree.setdefault(place[:DEPTH], {})[place] = one
    grown(tree, [node for node in tree if node], seal)
    return tree


def listed(tree: Tree) -> list[dict[str, str]]:
    """Return a tree as a ledger keeps it."""
    return [{"place": place, "under": node, "seal": one} for node in tree for place, one in tree[node].items()]


def grown(tree: Tree, nodes: Iterable[str], seal: Seal) -> dict[str, str | None]:
    """Seal nodes that rows hang under anew, and all above them; return what each is now, None if it is gone."""
    changed: dict[str, str | None] = {}
    level = sorted(nodes)
    while level:
        for node in level:
            above = tree.setdefault(node[:-1], {})
            if tree[node]:
                changed[node] = above[node] = node_seal(tree[node], seal)
            else:
                changed[node] = None
                above.pop(node, None)
        level = sorted({node[:-1] for node in level} - {""})
    return changed


_CONTENT: Final = ("dataset", "line", "state", "stamp", "digest", "sizes")


def at(source: str, line: str) -> str:
    """Return the name of a line of one source."""
    return repr((source, line))


def short(source: str, line: str) -> str:
    """Return the name under which a ledger keeps a line of one source."""
    return hashlib.sha256(at(source, line).encode()).hexdigest()


def mark_of(secret: bytes, source: str = "") -> str:
    """Return what tells coins from those of other secrets and sources, and nothing about them."""
    return hashlib.sha256(b"mark of coins" + secret + source.encode()).hexdigest()[:32]


def shown_name(line: str, mark: str) -> str:
    """Return the name of a line in what is noted of showings: coins of another secret are another line."""
    return hashlib.sha256(f"{mark} {line}".encode()).hexdigest()[:32]


def secret_of(coin: Stored, seal: Seal) -> bytes | None:
    """Return the secret that belongs to what a ledger keeps, or None if somebody has changed that.

    With a key the secret is not in the ledger.
    """
    kept = coin["secret"]
    if coin["seal"] != coin_seal(coin["dataset"], kept, seal):
        return None
    if seal.key is not None:
        kept = seal.of({"ledger": "secret of coins", "dataset": coin["dataset"], "kept": kept})
    try:
        return bytes.fromhex(kept)
    except (ValueError, TypeError):
        return None


def coin_seal(dataset: str, secret: str, seal: Seal) -> str:
    """Return the seal of what is kept of a secret."""
    return seal.of({"ledger": "coins", "dataset": dataset, "secret": secret})


def line_seal(row: Stored, mark: str, seal: Seal) -> str:
    """Return the seal of what a line has reached."""
    fields = {name: row[name] for name in ("dataset", "line", "epsilon", "entry")}
    return seal.of({"ledger": "line", "mark": mark, **fields})


def content_seal(row: Stored, mark: str, seal: Seal) -> str:
    """Return the seal of what is noted of the files of a line."""
    return seal.of({"ledger": "content", "mark": mark, **{name: row[name] for name in _CONTENT}})
