"""A whole ledger looked at: the chain, all sums, and every row under its seal.

Guarantee   `verified` finds every entry and every row that was changed, taken out, put in, exchanged or put back from
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
from fractions import Fraction

from sqlalchemy import Connection, inspect, select

from tacit.ledger.chain import (
    ACCOUNT_TYPES,
    DEPTH,
    ENTRY_TYPES,
    LIMITS,
    SHOWN,
    TABLE,
    TAKEN_OVER,
    TOTAL,
    WITHOUT_COST,
    Seal,
    Stored,
    Tree,
    amount_of,
    content_seal,
    damage,
    key_of,
    mark_of,
    node_seal,
    odd_field,
    odd_run,
    place_of,
    row_seal,
    secret_of,
    unfit_head,
    whole,
    wrong_key,
)
from tacit.ledger.database import rows, streamed, tolerant
from tacit.ledger.schema import (
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
from tacit.ledger.summed import UNREADABLE, InMemory, add_account, add_entry

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
