"""A whole ledger looked at: the chain, all sums, and every row under its seal.

Guarantee   `verified` finds every row of every table that was changed, taken out, put in, exchanged or put back from an
            earlier time, under the assumptions of `ledger/store/chain.py`. It also finds sums that entries do not add
            up to, whoever wrote them.
Limits      An old copy of the whole ledger is a good ledger: keep a receipt's hash elsewhere. Of rows that an older
            Tacit wrote, beside entries and accounts, it cannot be known whether somebody changed them before they were
            sealed; `unknown` says so.
Checked by  tests/unit/ledger/test_ledger_sealed.py, tests/unit/ledger/test_ledger_shape.py,
            tests/contract/test_ledger_backends.py.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, inspect, select

from tacit.ledger.clauses.coin_seals import content_seal, mark_of, secret_of
from tacit.ledger.store.chain import LIMITS, SHOWN, TABLE, TAKEN_OVER, Seal, Verification, examined, with_runs
from tacit.ledger.store.database import rows, streamed, tolerant
from tacit.ledger.store.row_seals import DEPTH, Tree, key_of, node_seal, place_of, row_seal, whole
from tacit.ledger.store.schema import (
    ACCOUNTS,
    COINS,
    CONTENTS,
    ENTRIES,
    HEAD,
    OLDER_VERSIONS,
    RUNS,
    SCHEMA_VERSION,
    SEALED,
    SEALS,
    STATE,
    strange,
)
from tacit.ledger.store.summed import UNREADABLE, InMemory, add_account, add_entry

_NOT_SEALED = (
    "an older Tacit wrote it: no seal covers its coins, their lines, what is noted of files and of runs, so it cannot "
    "be known whether rows of these are missing or old; the next charge seals them as they stand"
)


def verified(db: Connection, seal: Seal) -> tuple[Verification, InMemory]:
    """Return the verdict on a ledger, and what its entries and accounts sum up to."""
    sums = InMemory()
    tolerant(db)
    if found := strange(db):
        return _unsound(f"changed: holds the {found}, which Tacit did not make"), sums
    heads = rows(db, select(HEAD).order_by(HEAD.c.id))
    head = heads[0] if heads else None
    is_older = head is not None and head["version"] in OLDER_VERSIONS
    tree: Tree = {"": {}}
    if not is_older:
        for row in streamed(db, select(SEALS)):
            tree.setdefault(row["under"], {})[row["place"]] = row["seal"]
    in_order = select(ENTRIES).order_by(ENTRIES.c.number)
    root = None if is_older else node_seal(tree[""], seal)
    verdict = examined(head, lambda: streamed(db, in_order), rows(db, select(ACCOUNTS)), root, seal)
    if not verdict.ok:
        return verdict, sums
    if [(row["id"], row["version"] in (SCHEMA_VERSION, *OLDER_VERSIONS)) for row in heads] != [(1, True)]:
        return replace(verdict, ok=False, problem="changed: the head row is not what Tacit writes"), sums
    verdict = with_runs(verdict, rows(db, select(RUNS)) if inspect(db).has_table(RUNS.name) else [])
    problem = verdict.problem or (None if is_older else _odd_row(db, tree, seal)) or _summed(db, sums)
    if problem is None and not is_older:
        problem = _other_sums(db, sums)
    problem = problem or _changed_coins(db, seal)
    return replace(verdict, ok=problem is None, problem=problem, unknown=_unknown(db, is_older=is_older)), sums


def sealed_places(db: Connection, seal: Seal) -> dict[str, tuple[str, str]]:
    """Return the seal that each row should have, and its table, by its place."""
    found = {}
    for table in SEALED:
        if inspect(db).has_table(table.name):
            for row in streamed(db, select(table)):
                found[place_of(table, key_of(table, row))] = (row_seal(table, row, seal), table.name)
    return found


def _odd_row(db: Connection, tree: Tree, seal: Seal) -> str | None:
    """Return what of the sealed rows is not as it was written, or None."""
    rows_now = sealed_places(db, seal)
    written = {place: one for node, under in tree.items() if len(node) == DEPTH for place, one in under.items()}
    for place, (one, table) in rows_now.items():
        if written.get(place) != one:
            return f"changed: a row of {table} was changed, put in or put back"
    if written.keys() != rows_now.keys():
        return "missing: a row that was sealed is gone"
    expected = whole({place: one for place, (one, _) in rows_now.items()}, seal)
    return None if tree == expected else f"changed: the seals of rows in {SEALS.name}"


def _summed(db: Connection, sums: InMemory) -> str | None:
    """Sum everything up again; return what cannot be read, or None."""
    summed = select(ENTRIES).where(ENTRIES.c.kind.in_([LIMITS, SHOWN, TABLE])).order_by(ENTRIES.c.number)
    for row in streamed(db, summed):
        try:
            add_entry(sums, row)
        except UNREADABLE:
            return f"changed: entry {row['number']} holds a document that Tacit did not write"
    for row in rows(db, select(ACCOUNTS)):
        add_account(sums, row)
    return None


def _other_sums(db: Connection, sums: InMemory) -> str | None:
    """Return which sums of the ledger are not what its entries add up to, or None."""
    expected = {(row["kind"], row["dataset"], row["name"]): row["body"] for row in sums.rows()}
    found = {(row["kind"], row["dataset"], row["name"]): row["body"] for row in rows(db, select(STATE))}
    if expected == found:
        return None
    odd = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
    return f"changed: the sums of {odd[0][0]} of dataset {odd[0][1][:200]!r} are not what the entries add up to"


def _changed_coins(db: Connection, seal: Seal) -> str | None:
    """Return what of coins and files does not fit its own seal, or None."""
    if not inspect(db).has_table(COINS.name):
        return None
    marks = {}
    for coin in rows(db, select(COINS)):
        secret = secret_of(coin, seal)
        if secret is None:
            return f"changed: the coins of dataset {str(coin['dataset'])[:200]!r} do not fit their seal"
        marks[coin["dataset"]] = mark_of(secret)
    for row in rows(db, select(CONTENTS)) if inspect(db).has_table(CONTENTS.name) else ():
        if row["seal"] != content_seal(row, marks.get(row["dataset"], ""), seal):
            return "changed: what is noted of files does not fit its seal"
    return None


def _unknown(db: Connection, *, is_older: bool) -> str:
    if is_older:
        return _NOT_SEALED
    taken_over = select(ENTRIES.c.number).where(ENTRIES.c.kind == TAKEN_OVER).order_by(ENTRIES.c.number)
    number = db.execute(taken_over).scalars().first()
    if number is None:
        return ""
    return (
        f"an older Tacit wrote it up to entry {number}, where its coins, their lines, what is noted of files and of "
        "runs were sealed as they stood: what was changed of these before cannot be known"
    )


def _unsound(problem: str) -> Verification:
    return Verification(ok=False, entries=0, head="", problem=problem)
