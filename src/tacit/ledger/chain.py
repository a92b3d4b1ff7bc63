"""The tables of a ledger, the hashes that chain its entries, and the seals of all other rows.

`ledger/page.py` applies these functions in a transaction, `ledger/verification.py` to a whole ledger.

Guarantee   An entry that was changed, removed, inserted or moved after it was written does not fit its hash, the entry
            before it or the head row, unless whoever did it also recomputed every later hash and the head row. A row of
            another table that was changed, removed, inserted, exchanged or put back from an earlier time does not fit
            the root that the head row seals. With a key nobody can recompute these without knowing the key; without
            one, they guard against accidents and hasty edits only.
            `strange` names every trigger, view, rule, extra table and changed table of a ledger that could make a
            written sum differ from what was written.
Assumes     SHA-256 has no known collisions; the key (`TACIT_LEDGER_KEY`) is kept away from those who can write to
            the database, and is long enough not to be guessed. Whoever can change the database's catalogue itself
            (SQLite: `writable_schema`) can also rewrite the file; keys protect against that.
Why         Each hash covers all fields of its entry and the hash before it; the head row holds the last hash and the
            count under a seal of its own, so a truncated chain does not fit the head.
            All other rows are under one tree of hashes. The place of a row is the hash of its table and key. Rows whose
            places begin alike are under one node, nodes likewise, and the seal of a node covers what is under it with
            its places: so the root covers which rows are there and which are not. The head row seals the root together
            with the last entry, so an old row beside a newer head does not fit. A charge reads the nodes above its
            rows, at most 16 children each, and no other rows.
            A charge reads a sum, compares and writes it back. A trigger that restores the old sum undoes the charge
            between two looks at the chain, so every charge checks the shape in its own transaction.
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
from functools import cache
from typing import Any, Final

from sqlalchemy import Column, Connection, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from tacit.amounts import shown
from tacit.drawing import Held

Stored = Mapping[str, Any]  # one row as it stands in the database: text and whole numbers only

# ---- tables ---------------------------------------------------------------------------------------------------------

SCHEMA_VERSION = 3
OLDER_VERSIONS = (1, 2)  # read as they are; the first write seals their rows as they stand (`ledger/page.py`)
METADATA = MetaData()


def _key(*names: str) -> list[Column[str]]:
    return [Column(name, Text, primary_key=True) for name in names]


def _texts(*names: str, nullable: bool = False) -> list[Column[str]]:
    return [Column(name, Text, nullable=nullable) for name in names]


def _whole_number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


HEAD = Table(
    "tacit_head",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),  # always 1
    _whole_number("version"),
    _whole_number("count"),
    *_texts("head", "seal", "key_mark"),
)

ENTRIES = Table(
    "tacit_entries",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    *_texts("time", "kind", "dataset"),
    *_texts("analyst", nullable=True),
    *_texts("epsilon"),  # a fraction: "1/10"
    *_texts("policy", "policy_text", nullable=True),
    *_texts("what", "previous", "hash"),
    Index("tacit_entries_by_dataset", "dataset", "number"),
)

ACCOUNTS = Table(
    "tacit_accounts",
    METADATA,
    *_key("dataset", "analyst"),  # the analyst "" is the data set's total
    *_texts("granted", "spent"),  # "0" granted: an analyst who has charged and has no cap
    *_texts("policy", nullable=True),
    Column("first_grant", Integer),  # the entry that carries the policy's text: the first grant, or the first charge
)

# Runs of jobs that have reserved budget; `state` says whether they have ended.
RUNS = Table(
    "tacit_runs",
    METADATA,
    *_key("run"),
    *_texts("job"),
    _whole_number("first"),  # its entries, from the first to the last
    _whole_number("last"),
    *_texts("state"),  # one of RUN_STATES
)

# The secrets of coins that are remembered: with a key of the ledger, what the secret is derived from (`coins.py`).
COINS = Table("tacit_coins", METADATA, *_key("dataset"), *_texts("secret", "seal"))

# How far each line of coins was paid for, by the hash of its name, and the entry that paid for it last.
LINES = Table(
    "tacit_lines", METADATA, *_key("dataset", "line"), *_texts("epsilon"), _whole_number("entry"), *_texts("seal")
)

# What the files of a line held when it was shown, or hold for whoever is being shown it, keyed with the coins' secret.
CONTENTS = Table(
    "tacit_contents", METADATA, *_key("dataset", "line", "state"), *_texts("stamp", "digest", "sizes", "seal")
)

# What charges depend on beside their accounts, as JSON, summed up from the entries (`ledger/accounts.py`).
STATE = Table("tacit_state", METADATA, *_key("kind", "dataset", "name"), *_texts("body"))

# The tree of hashes over all rows of the tables above but HEAD and ENTRIES; the head row seals its root. The place of a
# row is the hash of its table and key, that of a node is how these begin; `under` is the node above.
SEALS = Table("tacit_seals", METADATA, *_key("place"), *_texts("under", "seal"), Index("tacit_seals_by_under", "under"))

SEALED = (ACCOUNTS, RUNS, COINS, LINES, CONTENTS, STATE)

OURS = frozenset(METADATA.tables)
FROM_THE_START = frozenset({HEAD.name, ENTRIES.name, ACCOUNTS.name})
WANTED = {1: FROM_THE_START, 2: FROM_THE_START | {RUNS.name}, SCHEMA_VERSION: OURS}  # by version

# SQLite keeps the statement that made a table; blanks, quotes and case make no difference.
_NO_DIFFERENCE = str.maketrans("", "", ' \t\r\n"')


def _bare(statement: str) -> str:
    return statement.translate(_NO_DIFFERENCE).casefold()


@cache
def _statements() -> dict[str, str]:
    """Return the statement that makes each table and index of a ledger in SQLite, bare."""
    dialect = sqlite.dialect()
    found = {table.name: str(CreateTable(table).compile(dialect=dialect)) for table in METADATA.sorted_tables}
    for table in METADATA.sorted_tables:
        found |= {str(index.name): str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes}
    return {name: _bare(statement) for name, statement in found.items()}


_STRANGE_IN_POSTGRESQL = text("""
WITH ours AS (
    SELECT oid, relname, relkind, relrowsecurity FROM pg_class
    WHERE oid IN (to_regclass('tacit_head'), to_regclass('tacit_entries'), to_regclass('tacit_accounts'),
                  to_regclass('tacit_runs'), to_regclass('tacit_coins'), to_regclass('tacit_lines'),
                  to_regclass('tacit_contents'), to_regclass('tacit_state'), to_regclass('tacit_seals'))
)
SELECT 'trigger', tgname::text FROM pg_trigger JOIN ours ON tgrelid = ours.oid WHERE NOT tgisinternal
UNION ALL SELECT 'rule', rulename::text FROM pg_rewrite JOIN ours ON ev_class = ours.oid WHERE relkind = 'r'
UNION ALL SELECT 'view or table', relname::text FROM ours WHERE relkind <> 'r' OR relrowsecurity
UNION ALL SELECT 'computed column', attname::text FROM pg_attribute JOIN ours ON attrelid = ours.oid
    WHERE attnum > 0 AND attgenerated <> ''
ORDER BY 1, 2
""")


def strange(db: Connection) -> str | None:
    """Return what in a ledger Tacit did not make, as in "trigger 'x'", or None."""
    if db.dialect.name == "postgresql":
        found = db.execute(_STRANGE_IN_POSTGRESQL).first()
        return None if found is None else f"{found[0]} {found[1]!r}"
    for kind, name, statement in db.exec_driver_sql("SELECT type, name, sql FROM sqlite_master ORDER BY type, name"):
        # such names are SQLite's own: statistics, and the indexes of primary keys
        if str(name).startswith("sqlite_") and kind in ("table", "index"):
            continue
        if not isinstance(statement, str) or _statements().get(str(name)) != _bare(statement):
            return f"{kind} {str(name)!r}"
    return None


# ---- fields ---------------------------------------------------------------------------------------------------------

NOTHING_BEFORE = "0" * 64  # what the first entry has as its previous hash
TOTAL = ""  # the analyst under which a data set's total is kept: no analyst's name is empty
RUN_STATES = ("reserved", "finished", "lost")

LIMITS, SHOWN, TABLE, TAKEN_OVER = "limits", "shown", "table", "taken over"
"""Kinds of entries: which limits hold from here on, what a release has shown, what a table tells about, and that the
rows of an older Tacit, which no seal had covered, are sealed from here on as they stood."""

WITHOUT_COST = (LIMITS, SHOWN, TABLE, TAKEN_OVER)
"""Kinds of entries that move no sum."""

HASHED = tuple(column.name for column in ENTRIES.columns if column.name != "hash")
"""The fields of an entry that its hash covers: all but the hash itself."""

LONGEST_AMOUNT = 2200
"""Characters of a sum as it is written: its denominator has at most a thousand digits."""

_AMOUNT = re.compile(r"[0-9]+(/[1-9][0-9]*)?")


def amount_of(written: object) -> Fraction | None:
    """Return the amount that a field holds, or None if Tacit cannot have written it.

    >>> amount_of("1/3"), amount_of("1e999999999"), amount_of(b"1")
    (Fraction(1, 3), None, None)
    """
    # Only what `str` of a fraction gives: Fraction("1e999999999") would write that number out.
    if not isinstance(written, str) or len(written) > LONGEST_AMOUNT or not _AMOUNT.fullmatch(written):
        return None
    amount = Fraction(written)
    return amount if str(amount) == written else None


@cache
def _types(table: Table) -> dict[str, tuple[type, ...]]:
    return {
        column.name: (column.type.python_type, *([type(None)] if column.nullable else [])) for column in table.columns
    }


def odd_field(row: Stored, table: Table) -> str | None:
    """Return the first field that holds another type of value than Tacit writes there, or None."""
    return next((name for name, allowed in _types(table).items() if type(row[name]) not in allowed), None)


def odd_run(row: Stored) -> bool:
    """Say whether a row of RUNS is not what Tacit writes there."""
    return odd_field(row, RUNS) is not None or row["state"] not in RUN_STATES


# ---- the chain of entries -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LedgerEntry(Held):
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

    def __str__(self) -> str:
        who = "" if self.analyst is None else f" by {self.analyst!r}"
        what = f": {self.what}" if self.what else ""
        return f"{self.number}, {self.time[:16]}, {self.kind} of {shown(self.epsilon)} to {self.dataset!r}{who}{what}"


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
        return None  # damage, which `unfit_head` reports
    if head["key_mark"] == seal.of_key():
        return None
    if seal.key is None:
        return "the ledger was started with a key and none was given"
    if head["key_mark"] == Seal().of_key():
        return "the ledger was started without a key and one was given"
    return "the key given is not the one the ledger was started with"


def unfit_head(head: Stored, last: Stored | None, rows: str | None, seal: Seal) -> str | None:
    """Return why the head row does not fit the last entry and the root of all other rows, or None if it does."""
    if name := odd_field(head, HEAD):
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


def damage(row: Stored, before: Stored | None, seal: Seal) -> str | None:
    """Return why an entry cannot be the one that was written behind the one before it, or None."""
    expected = before["number"] + 1 if before is not None else 1
    if type(row["number"]) is not int:
        return f"changed: entry {expected} has a number that is none"
    if row["number"] > expected:
        return f"missing: entry {expected} is gone"
    if row["number"] < expected:
        return f"changed: entry {row['number']} was put in"
    if odd_field(row, ENTRIES) or seal.of_entry(row) != row["hash"]:
        return f"changed: entry {row['number']} does not fit its hash"
    if before is None:
        return None if row["previous"] == NOTHING_BEFORE else "changed: entry 1 does not begin the chain"
    if row["previous"] != before["hash"]:
        # Its own hash fits, so what was rewritten, hash and all, is the entry that it was chained to.
        return f"changed: entry {before['number']} was rewritten after entry {expected} had been chained to it"
    return None


# ---- the tree over all other rows -----------------------------------------------------------------------------------

DEPTH: Final = 3  # nodes above a row, without the root: 4,096 of them hold rows

Key = tuple[Any, ...]
Tree = dict[str, dict[str, str]]
"""The seals under each node, by their places. The root is ""; a node without anything under it is not there."""


def key_of(table: Table, row: Stored) -> Key:
    """Return the key of a row."""
    return tuple(row[column.name] for column in table.primary_key)


def place_of(table: Table, key: Key) -> str:
    """Return the place of a row in the tree, whether the row exists or not."""
    text = json.dumps([table.name, *key], separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def row_seal(table: Table, row: Stored, seal: Seal) -> str:
    """Return the seal of a row."""
    fields = {column.name: row[column.name] for column in table.columns}
    return seal.of({"ledger": "row", "table": table.name, "row": fields})


def node_seal(under: Mapping[str, str], seal: Seal) -> str:
    """Return the seal of a node, from what is under it."""
    return seal.of({"ledger": "rows", "under": dict(under)})


def tree_over(seals: Mapping[str, str], seal: Seal) -> Tree:
    """Return the tree over rows, from the seal of each by its place."""
    tree: Tree = {"": {}}
    for place, one in seals.items():
        tree.setdefault(place[:DEPTH], {})[place] = one
    reseal(tree, [node for node in tree if node], seal)
    return tree


def reseal(tree: Tree, nodes: Iterable[str], seal: Seal) -> dict[str, str | None]:
    """Seal nodes whose rows have changed, and all nodes above them; return their new seals, None for empty nodes."""
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


# ---- seals of coins -------------------------------------------------------------------------------------------------


def line_name(source: str, line: str) -> str:
    """Return the name of a line of one source."""
    return repr((source, line))


def line_key(source: str, line: str) -> str:
    """Return the key under which a ledger keeps a line of one source."""
    return hashlib.sha256(line_name(source, line).encode()).hexdigest()


def mark_of(secret: bytes, source: str = "") -> str:
    """Return what tells coins from those of other secrets and sources, and nothing about them."""
    return hashlib.sha256(b"mark of coins" + secret + source.encode()).hexdigest()[:32]


def shown_name(line: str, mark: str) -> str:
    """Return the name of a line in entries of what was shown: coins of another secret are another line."""
    return hashlib.sha256(f"{mark} {line}".encode()).hexdigest()[:32]


def secret_of(coin: Stored, seal: Seal) -> bytes | None:
    """Return the secret of a row of COINS, or None if somebody has changed it. With a key it is not in the ledger."""
    stored = coin["secret"]
    if coin["seal"] != coin_seal(coin["dataset"], stored, seal):
        return None
    if seal.key is not None:
        stored = seal.of({"ledger": "secret of coins", "dataset": coin["dataset"], "kept": stored})
    try:
        return bytes.fromhex(stored)
    except (ValueError, TypeError):
        return None


def coin_seal(dataset: str, secret: str, seal: Seal) -> str:
    """Return the seal of a row of COINS."""
    return seal.of({"ledger": "coins", "dataset": dataset, "secret": secret})


def line_seal(row: Stored, mark: str, seal: Seal) -> str:
    """Return the seal of a row of LINES."""
    return seal.of({"ledger": "line", "mark": mark, **{name: row[name] for name in row if name != "seal"}})


def content_seal(row: Stored, mark: str, seal: Seal) -> str:
    """Return the seal of a row of CONTENTS."""
    return seal.of({"ledger": "content", "mark": mark, **{name: row[name] for name in row if name != "seal"}})
