"""A whole ledger examined: the chain, all sums, and every row under its seal.

Guarantee   `verified` finds every entry and every row that was changed, removed, inserted, exchanged or put back from
            an earlier time, under the assumptions of `ledger/chain.py`, and sums that the entries do not add up to,
            whoever wrote them. Whatever type and length a field has, it ends with a verdict, in time that is linear in
            the ledger.
Limits      An old copy of the whole ledger is a good ledger: keep a receipt's hash elsewhere. Rows that an older Tacit
            wrote, beside entries and accounts, may have been changed before they were sealed; `unknown` says so.
Checked by  tests/unit/ledger/test_ledger.py, tests/unit/ledger/test_ledger_sealed.py,
            tests/unit/ledger/test_ledger_shape.py, tests/contract/test_ledger_backends.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlalchemy import Connection, Table, inspect, select

from tacit.ledger import chain
from tacit.ledger.accounts import UNREADABLE, InMemory, RunningSum, add_account, add_entry
from tacit.ledger.chain import ACCOUNTS, COINS, CONTENTS, DEPTH, ENTRIES, HEAD, RUNS, SEALS, STATE, TOTAL, Seal, Stored
from tacit.ledger.database import rows, streamed, tolerant

_NOT_SEALED = (
    "an older Tacit wrote it: no seal covers its coins, their lines, what is noted of files and of runs, so it cannot "
    "be known whether rows of these are missing or old; the next charge seals them as they stand"
)


@dataclass(frozen=True)
class Verification:
    """What `Ledger.verify` found. `problem` begins with the kind of damage and names the first bad entry.

    `unknown` says what cannot be known of rows that an older Tacit wrote; empty where there are none.
    """

    ok: bool
    entries: int
    head: str
    problem: str | None
    unknown: str = ""


def verified(db: Connection, seal: Seal) -> tuple[Verification, InMemory]:
    """Return the verdict on a ledger, and what its entries and accounts sum up to."""
    sums = InMemory()
    tolerant(db)
    if found := chain.strange(db):
        made_by_others = f"changed: holds the {found}, which Tacit did not make"
        return Verification(ok=False, entries=0, head="", problem=made_by_others), sums
    heads = rows(db, select(HEAD).order_by(HEAD.c.id))
    head = heads[0] if heads else None
    is_older = head is not None and head["version"] in chain.OLDER_VERSIONS
    tree: chain.Tree = {"": {}}
    if not is_older:
        for row in streamed(db, select(SEALS)):
            tree.setdefault(row["under"], {})[row["place"]] = row["seal"]
    root = None if is_older else chain.node_seal(tree[""], seal)
    verdict = _examined(db, head, root, seal)
    if not verdict.ok:
        return verdict, sums
    versions = (chain.SCHEMA_VERSION, *chain.OLDER_VERSIONS)
    if [(row["id"], row["version"] in versions) for row in heads] != [(1, True)]:
        return replace(verdict, ok=False, problem="changed: the head row is not what Tacit writes"), sums
    problems: tuple[Callable[[], str | None], ...] = (
        lambda: _odd_run(db, verdict.entries),
        lambda: None if is_older else _odd_row(db, tree, seal),
        lambda: _add_up(db, sums),
        lambda: None if is_older else _other_sums(db, sums),
        lambda: _changed_coins(db, seal),
    )
    problem = next((found for look in problems if (found := look())), None)
    return replace(verdict, ok=problem is None, problem=problem, unknown=_unknown(db, is_older=is_older)), sums


def sealed_places(db: Connection, seal: Seal) -> dict[str, tuple[str, str]]:
    """Return the seal that each row should have, and its table, by its place."""
    return {
        chain.place_of(table, chain.key_of(table, row)): (chain.row_seal(table, row, seal), table.name)
        for table in chain.SEALED
        for row in _all_rows(db, table)
    }


def _all_rows(db: Connection, table: Table) -> Iterable[Stored]:
    """Return all rows of a table, none if an older Tacit did not have it."""
    return streamed(db, select(table)) if inspect(db).has_table(table.name) else ()


def _odd_run(db: Connection, entries: int) -> str | None:
    if any(chain.odd_run(row) or not 1 <= row["first"] <= row["last"] <= entries for row in _all_rows(db, RUNS)):
        return "changed: what is noted of a run cannot be read"
    return None


def _odd_row(db: Connection, tree: chain.Tree, seal: Seal) -> str | None:
    rows_now = sealed_places(db, seal)
    written = {place: one for node, under in tree.items() if len(node) == DEPTH for place, one in under.items()}
    for place, (one, table) in rows_now.items():
        if written.get(place) != one:
            return f"changed: a row of {table} was changed, put in or put back"
    if written.keys() != rows_now.keys():
        return "missing: a row that was sealed is gone"
    expected = chain.tree_over({place: one for place, (one, _) in rows_now.items()}, seal)
    return None if tree == expected else f"changed: the seals of rows in {SEALS.name}"


def _add_up(db: Connection, sums: InMemory) -> str | None:
    summed = select(ENTRIES).where(ENTRIES.c.kind.in_([chain.LIMITS, chain.SHOWN, chain.TABLE]))
    for row in streamed(db, summed.order_by(ENTRIES.c.number)):
        try:
            add_entry(sums, row)
        except UNREADABLE:
            return f"changed: entry {row['number']} holds a document that Tacit did not write"
    for row in rows(db, select(ACCOUNTS)):
        add_account(sums, row)
    return None


def _other_sums(db: Connection, sums: InMemory) -> str | None:
    expected, found = (
        {(row["kind"], row["dataset"], row["name"]): row["body"] for row in listed}
        for listed in (sums.rows(), rows(db, select(STATE)))
    )
    odd = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
    if not odd:
        return None
    return f"changed: the sums of {odd[0][0]} of dataset {odd[0][1][:200]!r} are not what the entries add up to"


def _changed_coins(db: Connection, seal: Seal) -> str | None:
    marks = {}
    for coin in _all_rows(db, COINS):
        secret = chain.secret_of(coin, seal)
        if secret is None:
            return f"changed: the coins of dataset {str(coin['dataset'])[:200]!r} do not fit their seal"
        marks[coin["dataset"]] = chain.mark_of(secret)
    for row in _all_rows(db, CONTENTS):
        if row["seal"] != chain.content_seal(row, marks.get(row["dataset"], ""), seal):
            return "changed: what is noted of files does not fit its seal"
    return None


def _unknown(db: Connection, *, is_older: bool) -> str:
    if is_older:
        return _NOT_SEALED
    taken_over = select(ENTRIES.c.number).where(ENTRIES.c.kind == chain.TAKEN_OVER).order_by(ENTRIES.c.number)
    number = db.execute(taken_over).scalars().first()
    if number is None:
        return ""
    return (
        f"an older Tacit wrote it up to entry {number}, where its coins, their lines, what is noted of files and of "
        "runs were sealed as they stood: what was changed of these before cannot be known"
    )


def _examined(db: Connection, head: Stored | None, root: str | None, seal: Seal) -> Verification:
    """Walk the whole chain, then add the running sums up again.

    `root` is the root of all rows that are no entries; None in a ledger of an older Tacit.
    """

    def entries() -> Iterable[Stored]:
        return streamed(db, select(ENTRIES).order_by(ENTRIES.c.number))

    if head is None:
        count = sum(1 for _ in entries())
        return Verification(ok=False, entries=count, head="", problem="missing: the head row is gone")

    sums, problem, last, seen = AccountSums(), None, None, 0
    for row in entries():
        seen += 1
        if problem is None:
            is_odd = chain.odd_field(row, ENTRIES) is not None
            problem = chain.damage(row, last, seal) or sums.add(row)
            if problem is not None and last is None and (why := chain.wrong_key(head, seal)):
                problem = f"wrong key: {why}"
            elif problem is not None and not is_odd and row["number"] == (last["number"] + 1 if last else 1):
                problem = _moved(row, entries, seal) or problem
            last = row
    if problem is None and (why := chain.wrong_key(head, seal)):
        # With no entry to try the key on, the mark decides; with entries that fit, the mark itself was changed.
        problem = f"wrong key: {why}" if last is None else "changed: the mark of the key in the head row"
    problem = problem or chain.unfit_head(head, last, root, seal) or sums.differ_from(rows(db, select(ACCOUNTS)))
    return Verification(ok=problem is None, entries=seen, head=str(head["head"])[:64], problem=problem)


def _moved(row: Stored, entries: Callable[[], Iterable[Stored]], seal: Seal) -> str | None:
    """Return where a row that does not fit its number came from, or None if it fits no number."""

    def fits(candidate: Stored, number: int) -> bool:
        return bool(seal.of_entry({**candidate, "number": number}) == candidate["hash"])

    place = row["number"]
    if fits(row, place):
        return None
    # A renumbered chain is as long as it was, less what was removed: look as far again as there are entries. The
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
        self._sums: dict[tuple[str, str], RunningSum] = {}

    def add(self, row: Stored) -> str | None:
        """Add one entry; return what is wrong with it, or None."""
        epsilon = chain.amount_of(row["epsilon"])
        if epsilon is None:
            return f"changed: entry {row['number']} holds {_short(row['epsilon'])}, which is no epsilon"
        if row["kind"] in chain.WITHOUT_COST:
            return f"changed: entry {row['number']} spends, and its kind does not" if epsilon else None
        dataset, number = row["dataset"], row["number"]
        total, account = (dataset, TOTAL), (dataset, row["analyst"] or TOTAL)
        if row["kind"] == "grant":
            before = self._sum(account)
            after = replace(before, granted=before.granted + epsilon)
            if before.policy_entry is None:
                after = replace(after, policy=row["policy"], policy_entry=number)
            self._sums[account] = after
            return None
        if row["policy_text"] is not None:  # the first charge under a policy to a total that had none
            if self._sum(total).policy is not None:
                return f"changed: entry {number} gives dataset {dataset!r} a second policy"
            self._sums[total] = replace(self._sum(total), policy=row["policy"], policy_entry=number)
        for one in {total, account}:
            self._sums[one] = replace(self._sum(one), spent=self._sum(one).spent + epsilon)
        if self._sums[total].spent > self._sums[total].granted:
            return f"changed: entry {number} charges more than dataset {dataset!r} was granted before it"
        return None

    def _sum(self, account: tuple[str, str]) -> RunningSum:
        return self._sums.get(account, RunningSum())

    def differ_from(self, accounts: Iterable[Stored]) -> str | None:
        """Return the first account whose running sums are not what the entries add up to, or None."""
        stored = {}
        for row in accounts:
            if name := chain.odd_field(row, ACCOUNTS):
                return f"changed: the running sums hold {_short(row[name])} as {name}, which Tacit does not write"
            stored[row["dataset"], row["analyst"]] = row
        for account in sorted(self._sums.keys() | stored.keys()):
            dataset, analyst = account
            who = f"dataset {dataset[:200]!r}" + (f", analyst {analyst[:200]!r}" if analyst else "")
            if account not in stored:
                return f"changed: the running sums of {who} are gone"
            for name, value in self._sum(account).row().items():
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
