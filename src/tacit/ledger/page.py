"""One transaction on a ledger (`Page`): its head, what it appends, the rows that it reads and writes under one seal.

`Book` opens one page after the other and seals it before its transaction ends. The first transaction that writes to a
ledger of an older Tacit looks at all of it, seals it as it stands, and goes on with the coins, sums and names in it.

Guarantee   `rows`, `found` and `state` return what the last transaction left, or refuse (`ledger/chain.py`). So does
            `entries`, which walks the whole chain. `close` seals what was written together with the last entry, once,
            at the end of the transaction.
Assumes     A page that writes has locked the head row, and nobody writes in another way. A page of a ledger of an older
            Tacit, or one that reads with another key, has nothing to check rows by and believes them (with another key,
            entries too): such a page serves reports, and nothing is charged by it.
Limits      `found` does not miss a row that somebody has taken out; `rows`, which is asked by keys, and `verify` do.
Checked by  tests/unit/ledger/test_ledger_sealed.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, delete, insert, inspect, or_, select, update

from tacit.clock import now
from tacit.errors import LedgerError
from tacit.ledger import chain
from tacit.ledger.accounts import UNREADABLE, InMemory, RunningSum, State, add_account, add_entry
from tacit.ledger.chain import ACCOUNTS, DEPTH, ENTRIES, HEAD, SEALS, STATE, TOTAL, Key, LedgerEntry, Seal, Stored, Tree
from tacit.ledger.database import Store, rows, streamed
from tacit.ledger.input import canonical_json, checked_name, checked_note
from tacit.ledger.verification import sealed_places, verified

# Charges of 1/3, 1/7, 1/11 .. make a sum that never stops growing, and a charge must stay cheap.
SUM_DIGITS: Final = 1000
_AT_ONCE: Final = 400  # places in one statement


class Page:
    """One ledger as one transaction sees it; `head` is the head row, None if it is gone."""

    def __init__(self, db: Connection, head: Stored | None, seal: Seal, file: str) -> None:
        self.db, self.seal, self.file = db, seal, file
        self.head: dict[str, Any] = dict(head or {})
        self._read: dict[str, dict[Key, Stored | None]] = {}  # rows by table and key; None if there is none
        self._tree: Tree = {}
        self._written: dict[str, str | None] = {}  # seals of rows, by their places; None if they are gone
        self._is_moved = False

    @property
    def is_older(self) -> bool:
        """Whether an older Tacit wrote this ledger, and no seal covers its rows yet."""
        return self.head.get("version") in chain.OLDER_VERSIONS

    @cached_property
    def _can_check(self) -> bool:
        """Whether there are seals to hold rows against; refuse a ledger that was made to look like an older one."""
        if not self.is_older or not self._has_key:
            return self._has_key
        if self.head["seal"] != self.seal.of_head(count=self.head["count"], head=self.head["head"], rows=None):
            raise self.damaged("the head row was rewritten")
        return False

    @cached_property
    def _has_key(self) -> bool:
        """Whether this ledger was written with the key given; refuse a mark that denies a key that fits."""
        if not self.head or not chain.wrong_key(self.head, self.seal):
            return True
        newest = rows(self.db, select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1))
        if any(self.seal.of_entry(row) == row["hash"] for row in newest):
            raise self.damaged("the mark of the key in the head row was changed")
        return False

    def root(self) -> str | None:
        """Return the seal of all rows that are no entries, as the tree has it; None where an older Tacit wrote them."""
        if self.is_older:
            return None
        if "" not in self._tree:
            self._tree[""] = {}
            for row in rows(self.db, select(SEALS).where(SEALS.c.under == "")):
                self._tree[""][row["place"]] = row["seal"]
        return chain.node_seal(self._tree[""], self.seal)

    def rows(self, table: Table, keys: Iterable[Key]) -> dict[Key, Stored]:
        """Return the rows with these keys, those that are there; refuse what somebody has changed."""
        wanted, known = list(dict.fromkeys(keys)), self._read.setdefault(table.name, {})
        if unread := [key for key in wanted if key not in known]:
            there = {chain.key_of(table, row): row for row in rows(self.db, select(table).where(_are(table, unread)))}
            found = {key: there.get(key) for key in unread}
            self._compare(table, found)
            known |= found
        return {key: row for key in wanted if (row := known[key]) is not None}

    def found(self, table: Table, statement: Select[Any]) -> list[Stored]:
        """Return the rows of a table that a select finds, for a report; refuse what somebody has changed or put in."""
        if self.is_older and not inspect(self.db).has_table(table.name):
            return []
        there = rows(self.db, statement)
        self._compare(table, {chain.key_of(table, row): row for row in there})
        return there

    def _compare(self, table: Table, found: Mapping[Key, Stored | None]) -> None:
        """Hold what was found under each key against its seal."""
        places = {key: chain.place_of(table, key) for key in found}
        self._load(places.values())
        for key, place in places.items() if self._can_check else ():
            row = found[key]
            if self._tree[place[:DEPTH]].get(place) != (None if row is None else chain.row_seal(table, row, self.seal)):
                raise self.damaged(f"a row of {table.name} was changed, taken out or put in")

    def entries(self, dataset: str | None = None) -> list[LedgerEntry]:
        """Return all entries in order, of one data set if given; refuse where the whole chain is not as it was written.

        Entries of others are looked at too: of one that is gone, nobody knows whose it was.
        """
        last, listed = None, []
        for row in streamed(self.db, select(ENTRIES).order_by(ENTRIES.c.number)):
            self._refuse(chain.damage(row, last, self.seal) if self._has_key else None)
            last = row
            if dataset in (None, row["dataset"]):
                listed.append(self.entry(row))
        if self._has_key:
            self._refuse(
                chain.unfit_head(self.head, last, self.root(), self.seal) if self.head else ": the head row is gone"
            )
        return listed

    def _refuse(self, problem: str | None) -> None:
        if problem is not None:
            raise self.damaged(problem.partition(": ")[2])  # without the kind of chain.damage

    def put(self, table: Table, row: dict[str, Any]) -> None:
        """Write a row, in the place of what was there under its key."""
        self._take(table, chain.key_of(table, row), row)
        self.db.execute(insert(table).values(**row))

    def drop(self, table: Table, key: Key) -> None:
        """Take a row out, if it is there."""
        if self.rows(table, [key]):
            self._take(table, key, None)

    def drop_all(self, table: Table, dataset: str) -> None:
        """Take all rows of a data set out."""
        for row in rows(self.db, select(table).where(table.c.dataset == dataset)):
            self.drop(table, chain.key_of(table, row))

    def _take(self, table: Table, key: Key, new: Stored | None) -> None:
        """Take out what is there under a key, which must be what was written, for a new row or for none."""
        if self.rows(table, [key]):
            self.db.execute(delete(table).where(_are(table, [key])))
        place = chain.place_of(table, key)
        under = self._tree[place[:DEPTH]]
        under.pop(place, None)
        self._written[place] = None
        if new is not None:
            under[place] = self._written[place] = chain.row_seal(table, new, self.seal)
        self._read[table.name][key] = new

    def _load(self, places: Iterable[str]) -> None:
        """Read the nodes above places, and hold each against the one above it."""
        if not self._can_check:
            return
        above = {place[:length] for place in places for length in range(DEPTH + 1)}  # the root has no digit
        wanted = sorted(above - self._tree.keys(), key=len)
        if not wanted:
            return
        found: Tree = {node: {} for node in wanted}
        for some in _some(wanted):
            for row in rows(self.db, select(SEALS).where(SEALS.c.under.in_(some))):
                found[row["under"]][row["place"]] = row["seal"]
        for node in wanted:
            under = self._tree[node] = found[node]
            sealed = chain.node_seal(under, self.seal)
            if node == "":
                fits = self.head.get("seal") == self.seal.of_head(
                    count=self.head.get("count", 0), head=self.head.get("head", ""), rows=sealed
                )
            else:
                fits = self._tree[node[:-1]].get(node) == (sealed if under else None)
            if not fits:
                raise self.damaged("rows of its tables were changed, taken out or put in")

    def state(self, kind: str, dataset: str, name: str) -> Any:
        """Return a sum as plain data, None if there is none."""
        row = self.rows(STATE, [(kind, dataset, name)]).get((kind, dataset, name))
        try:
            return None if row is None else json.loads(row["body"])
        except UNREADABLE:
            raise self.damaged("a sum in it cannot be read") from None

    def sums(self, dataset: str) -> State:
        """Return where the sums of a data set are; a ledger of an older Tacit has none, so they are added up."""
        if not self.is_older:
            return self
        sums = InMemory()
        mine = (ENTRIES.c.dataset == dataset) & ENTRIES.c.kind.in_([chain.LIMITS, chain.SHOWN, chain.TABLE])
        try:
            for row in rows(self.db, select(ENTRIES).where(mine).order_by(ENTRIES.c.number)):
                add_entry(sums, row)
        except UNREADABLE:
            raise self.damaged("an entry in it cannot be read") from None
        return sums

    def set_state(self, kind: str, dataset: str, name: str, body: Any) -> None:
        """Store a sum."""
        self.put(STATE, {"kind": kind, "dataset": dataset, "name": name, "body": canonical_json(body)})

    def close(self) -> None:
        """Seal all that was written, in the tree and in the head row."""
        if not self._written and not self._is_moved:
            return
        touched = {place[:DEPTH] for place in self._written}
        changed = self._written | chain.reseal(self._tree, touched, self.seal)
        for some in _some(sorted(changed)):
            self.db.execute(delete(SEALS).where(SEALS.c.place.in_(some)))
        # a node hangs under the one with a digit less, a row under the last of them
        added = [
            {"place": place, "under": place[: min(DEPTH, len(place) - 1)], "seal": seal}
            for place, seal in changed.items()
            if seal is not None
        ]
        if added:
            self.db.execute(insert(SEALS), added)
        count, head = self.head["count"], self.head["head"]
        seal = self.seal.of_head(count=count, head=head, rows=self.root())
        self.db.execute(update(HEAD).where(HEAD.c.id == 1).values(count=count, head=head, seal=seal))
        self._written, self._is_moved = {}, False

    def append(self, *, epsilon: Fraction, **fields: str | None) -> LedgerEntry:
        """Append an entry, and add it to the sums; `fields` are all but its number, time and hashes."""
        row: dict[str, Any] = {
            **fields,
            "epsilon": str(epsilon),
            "number": self.head["count"] + 1,
            "time": now().isoformat(timespec="microseconds"),
            "previous": self.head["head"] if self.head["count"] else chain.NOTHING_BEFORE,
        }
        row["hash"] = self.seal.of_entry(row)
        self.db.execute(insert(ENTRIES).values(**row))
        self.head |= {"count": row["number"], "head": row["hash"]}
        self._is_moved = True
        add_entry(self, row)
        return self.entry(row)

    def note(
        self, kind: str, dataset: str, analyst: str | None, fingerprint: str | None, noted: tuple[str, str]
    ) -> LedgerEntry:
        """Append an entry that spends nothing: its words, and the document that is read back."""
        what, document = noted
        whose = {"kind": kind, "dataset": dataset, "analyst": analyst, "policy": fingerprint}
        words = checked_note(what, file=self.file)
        return self.append(**whose, epsilon=Fraction(0), policy_text=document, what=words)

    def move(self, dataset: str, analyst: str | None, new: RunningSum, *, is_new: bool = False) -> None:
        """Move the running sums of one account, in the transaction that wrote the entries."""
        if any(amount.denominator >= 10**SUM_DIGITS for amount in (new.granted, new.spent)):
            rule = f"epsilon would give the running sum a denominator of more than {SUM_DIGITS} digits"
            fix = "Nothing was written. Use an epsilon with a few decimals, such as 0.05."
            raise LedgerError(rule, file=self.file, fix=fix)
        row = {"dataset": dataset, "analyst": analyst or TOTAL, **new.row()}
        self.put(ACCOUNTS, row)
        if is_new or (analyst and new.granted):
            add_account(self, row)

    def accounts(self, dataset: str, analyst: str | None) -> dict[str, RunningSum]:
        """Return the running sums of a data set's total and, if one is named, of an analyst."""
        found = self.rows(ACCOUNTS, [(dataset, TOTAL), (dataset, analyst or TOTAL)])
        return {row["analyst"]: self.running_sum(row) for row in found.values()}

    def entry_at(self, number: int | None) -> LedgerEntry | None:
        """Return the entry with a number, None if there is none; refuse one that somebody has changed."""
        found = rows(self.db, select(ENTRIES).where(ENTRIES.c.number == number))
        if found and self._has_key and self.seal.of_entry(found[0]) != found[0]["hash"]:
            raise self.damaged(f"entry {number} does not fit its hash")
        return self.entry(found[0]) if found else None

    def policy_text(self, account: RunningSum) -> str | None:
        """Return the policy that an account is counted under, None if there is none yet."""
        entry = None if account.policy is None else self.entry_at(account.policy_entry)
        return None if entry is None else entry.policy_text

    def entry(self, row: Stored) -> LedgerEntry:
        """Return an entry as it was stored, or say that it was changed."""
        if chain.odd_field(row, ENTRIES):
            raise self.damaged("an entry in it cannot be read")
        return LedgerEntry(**{**row, "epsilon": self._fraction(row["epsilon"])})

    def running_sum(self, row: Stored) -> RunningSum:
        """Return a running sum as it was stored, or say that it was changed."""
        if chain.odd_field(row, ACCOUNTS):
            raise self.damaged("a running sum in it cannot be read")
        granted, spent = self._fraction(row["granted"]), self._fraction(row["spent"])
        return RunningSum(granted, spent, row["policy"], row["first_grant"])

    def _fraction(self, text: str) -> Fraction:
        amount = chain.amount_of(text)
        if amount is None:
            raise self.damaged("an amount in it cannot be read", given=text)
        return amount

    def damaged(self, why: str, **given: Any) -> LedgerError:
        """Return the refusal of a ledger that somebody has changed."""
        fix = "Run `tacit ledger verify` and put the last good copy back."
        return LedgerError(f"is damaged: {why}", file=self.file, fix=fix, **given)


def _are(table: Table, keys: Sequence[Key]) -> ColumnElement[bool]:
    columns = list(table.primary_key)
    if len(columns) == 1:
        return columns[0].in_([key[0] for key in keys])
    return or_(*(and_(*(column == part for column, part in zip(columns, key, strict=True))) for key in keys))


def _some(places: Sequence[str]) -> list[Sequence[str]]:
    return [places[start : start + _AT_ONCE] for start in range(0, len(places), _AT_ONCE)]


Result = TypeVar("Result")


class Book:
    """One ledger as its transactions see it."""

    def __init__(self, store: Store, seal: Seal) -> None:
        self.store, self.seal = store, seal
        self.file = store.name

    def read(self, work: Callable[[Page], Result]) -> Result:
        """Return what `work` reads; all its reads see the ledger at one moment, and nobody is kept waiting."""

        def opened(db: Connection) -> Result:
            head = next(iter(rows(db, select(HEAD).where(HEAD.c.id == 1))), None)
            return work(Page(db, head, self.seal, self.file))

        return self.store.read(opened)

    def write(self, work: Callable[[Page], Result]) -> Result:
        """Run `work` alone in one transaction, and seal what it wrote; refuse to write into a damaged ledger."""

        def alone(db: Connection) -> Result:
            page = self._sound(db)
            result = work(page)
            page.close()
            return result

        return self.store.write(alone)

    def problem(self) -> str | None:
        """Return why nothing may be written behind the last entry, or None; however long the ledger is, as quickly.

        A ledger of an older Tacit, whose rows no seal covers, is looked at as a whole.
        """

        def work(page: Page) -> str | None:
            if page.is_older or not page.head:
                return verified(page.db, self.seal)[0].problem
            if why := chain.wrong_key(page.head, self.seal):
                return f"wrong key: {why}"
            return self._unfit(page)

        return self.read(work)

    def _unfit(self, page: Page) -> str | None:
        newest = select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1)
        return chain.unfit_head(page.head, next(iter(rows(page.db, newest)), None), page.root(), self.seal)

    def _sound(self, db: Connection) -> Page:
        """Return a page with the head row, locked; refuse to write behind an entry that it does not fit."""
        page = Page(db, self.store.locked_head(db), self.seal, self.file)
        if why := chain.wrong_key(page.head, self.seal):
            fix = "Set TACIT_LEDGER_KEY to the key that it was started with, or unset it if there was none."
            raise LedgerError(f"cannot be written to: {why}", file=self.file, fix=fix)
        if problem := self._unfit(page):
            raise self._unsound(problem)
        return self._taken_over(page) if page.is_older else page

    def _taken_over(self, old: Page) -> Page:
        """Seal the rows of a ledger of an older Tacit as they stand, once; an entry says so."""
        verdict, sums = verified(old.db, self.seal)
        if verdict.problem is not None:
            raise self._unsound(verdict.problem)
        chain.METADATA.create_all(old.db)
        if found := sums.rows():
            old.db.execute(insert(STATE), found)
        tree = chain.tree_over(
            {place: seal for place, (seal, _) in sealed_places(old.db, self.seal).items()}, self.seal
        )
        nodes = [{"place": place, "under": node, "seal": one} for node in tree for place, one in tree[node].items()]
        if nodes:
            old.db.execute(insert(SEALS), nodes)
        old.db.execute(update(HEAD).where(HEAD.c.id == 1).values(version=chain.SCHEMA_VERSION))
        page = Page(old.db, {**old.head, "version": chain.SCHEMA_VERSION}, self.seal, self.file)
        page.root()  # which was just written; the head row seals it with the next entry
        # after this entry the head row of the older Tacit fits no more, so that nobody can begin with other rows again
        page.note(chain.TAKEN_OVER, "", None, None, ("rows of an older Tacit, sealed as they stood", ""))
        return page

    def _unsound(self, problem: str) -> LedgerError:
        fix = "Put the last good copy back; `tacit ledger verify` tells which one is good."
        return LedgerError(f"is damaged ({problem}), so nothing more may be written", file=self.file, fix=fix)

    def dataset(self, dataset: str) -> str:
        """Return the name of a data set in its one spelling, or refuse it."""
        return checked_name(dataset, key="dataset", file=self.file)

    def analyst(self, analyst: str | None) -> str | None:
        """Return the name of an analyst in its one spelling, or refuse it."""
        return None if analyst is None else checked_name(analyst, key="analyst", file=self.file)
