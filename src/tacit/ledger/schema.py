"""The tables of a ledger, and how anything that Tacit did not make is noticed.

Guarantee   `strange` names every trigger, view, rule, extra table and changed table of a ledger that could make a
            written sum another one than was written.
Assumes     Whoever can change the catalogue itself (SQLite: `writable_schema`) can also rewrite the file; that is what
            keys are for.
Why         A charge reads a sum, compares and writes it back. A trigger that sets it back undoes the charge between
            two looks at the chain, so the shape is looked at in the transaction of every charge. It is a few lines
            of the catalogue, however long the ledger is.
Checked by  tests/unit/ledger/test_ledger_shape.py, tests/contract/test_ledger_backends.py.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import Column, Connection, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

SCHEMA_VERSION = 3
OLDER_VERSIONS = (1, 2)  # read as they are, and sealed as they stand by the first write (`ledger/page.py`)

METADATA = MetaData()

HEAD = Table(
    "tacit_head",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),  # always 1
    Column("version", Integer, nullable=False),
    Column("count", Integer, nullable=False),
    Column("head", Text, nullable=False),
    Column("seal", Text, nullable=False),
    Column("key_mark", Text, nullable=False),
)

ENTRIES = Table(
    "tacit_entries",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("analyst", Text),
    Column("epsilon", Text, nullable=False),  # a fraction as text: "1/10"
    Column("policy", Text),
    Column("policy_text", Text),
    Column("what", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("tacit_entries_by_dataset", "dataset", "number"),
)

ACCOUNTS = Table(
    "tacit_accounts",
    METADATA,
    Column("dataset", Text, primary_key=True),
    Column("analyst", Text, primary_key=True),  # "" is the data set's total
    Column("granted", Text, nullable=False),  # "0": an analyst who has charged and has no cap
    Column("spent", Text, nullable=False),
    Column("policy", Text),
    Column("first_grant", Integer),  # the entry that carries the policy's text: the first grant, or the first charge
)

# Which runs of jobs have reserved budget, and whether they came to their end.
RUNS = Table(
    "tacit_runs",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("job", Text, nullable=False),
    Column("first", Integer, nullable=False),  # its entries, from the first to the last
    Column("last", Integer, nullable=False),
    Column("state", Text, nullable=False),  # "reserved", "finished" or "lost"
)

# The secrets of coins that are remembered, and how far each line of them was paid for (`ledger/coins.py`).
COINS = Table(
    "tacit_coins",
    METADATA,
    Column("dataset", Text, primary_key=True),
    Column("secret", Text, nullable=False),  # with a key of the ledger, what the secret is derived from
    Column("seal", Text, nullable=False),
)

LINES = Table(
    "tacit_lines",
    METADATA,
    Column("dataset", Text, primary_key=True),
    Column("line", Text, primary_key=True),  # the hash of its name
    Column("epsilon", Text, nullable=False),
    Column("entry", Integer, nullable=False),  # the one that paid for it last
    Column("seal", Text, nullable=False),
)

# What the files of a line held when its coins were used (`ledger/coins.py`).
CONTENTS = Table(
    "tacit_contents",
    METADATA,
    Column("dataset", Text, primary_key=True),
    Column("line", Text, primary_key=True),  # the hash of its name
    Column("state", Text, primary_key=True),  # what was shown, or what is being asked for
    Column("stamp", Text, nullable=False),  # all of it keyed with the secret of the coins
    Column("digest", Text, nullable=False),
    Column("sizes", Text, nullable=False),
    Column("seal", Text, nullable=False),
)

# What charges rest on beside their accounts, summed up from the entries (`ledger/summed.py`).
STATE = Table(
    "tacit_state",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("dataset", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("body", Text, nullable=False),  # JSON
)

# One tree of hashes over all rows of the tables below (`ledger/chain.py`); the head row seals its root.
SEALS = Table(
    "tacit_seals",
    METADATA,
    Column("place", Text, primary_key=True),  # of a row: the hash of its table and key; of a node: how these begin
    Column("under", Text, nullable=False),  # the node above
    Column("seal", Text, nullable=False),
    Index("tacit_seals_by_under", "under"),
)

SEALED = (ACCOUNTS, RUNS, COINS, LINES, CONTENTS, STATE)

OURS = frozenset(METADATA.tables)
FROM_THE_START = frozenset({HEAD.name, ENTRIES.name, ACCOUNTS.name})
WANTED = {1: FROM_THE_START, 2: FROM_THE_START | {RUNS.name}, SCHEMA_VERSION: OURS}  # by version

# SQLite keeps the statement that made a table; blanks, quotes and case say nothing.
_UNSAID = str.maketrans("", "", ' \t\r\n"')


def _bare(statement: str) -> str:
    return statement.translate(_UNSAID).casefold()


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
