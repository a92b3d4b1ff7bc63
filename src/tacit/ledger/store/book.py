"""A ledger's book: opened for one transaction at a time, and sealed before it ends.

What may be charged is decided in `ledger`. A ledger of an older Tacit is looked at as a whole by the first transaction
that writes, sealed as it stands, and goes on with the coins, sums and names that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, insert, select, update

from tacit.errors import LedgerError
from tacit.ledger.input import checked_name
from tacit.ledger.store.chain import TAKEN_OVER, Seal, unfit_head, wrong_key
from tacit.ledger.store.database import Store, rows
from tacit.ledger.store.page import Page
from tacit.ledger.store.row_seals import listed, whole
from tacit.ledger.store.schema import ENTRIES, HEAD, METADATA, SCHEMA_VERSION, SEALS, STATE
from tacit.ledger.store.verification import sealed_places, verified

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
            if why := wrong_key(page.head, self.seal):
                return f"wrong key: {why}"
            return self._unfit(page)

        return self.read(work)

    def _unfit(self, page: Page) -> str | None:
        newest = select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1)
        return unfit_head(page.head, next(iter(rows(page.db, newest)), None), page.root(), self.seal)

    def _sound(self, db: Connection) -> Page:
        """Return a page with the head row, locked; refuse to write behind an entry that it does not fit."""
        page = Page(db, self.store.locked_head(db), self.seal, self.file)
        if why := wrong_key(page.head, self.seal):
            raise LedgerError(
                f"cannot be written to: {why}",
                file=self.file,
                fix="Set TACIT_LEDGER_KEY to the key that it was started with, or unset it if there was none.",
            )
        if problem := self._unfit(page):
            raise self._unsound(problem)
        return self._taken_over(page) if page.is_older else page

    def _taken_over(self, old: Page) -> Page:
        """Seal the rows of a ledger of an older Tacit as they stand, once; an entry says so."""
        verdict, sums = verified(old.db, self.seal)
        if verdict.problem is not None:
            raise self._unsound(verdict.problem)
        METADATA.create_all(old.db)
        if found := sums.rows():
            old.db.execute(insert(STATE), found)
        tree = whole({place: seal for place, (seal, _) in sealed_places(old.db, self.seal).items()}, self.seal)
        if nodes := listed(tree):
            old.db.execute(insert(SEALS), nodes)
        old.db.execute(update(HEAD).where(HEAD.c.id == 1).values(version=SCHEMA_VERSION))
        page = Page(old.db, {**old.head, "version": SCHEMA_VERSION}, self.seal, self.file)
        page.root()  # which was just written; the head row seals it with the next entry
        # after this entry the head row of the older Tacit fits no more, so that nobody can begin with other rows again
        page.note(TAKEN_OVER, "", None, None, ("rows of an older Tacit, sealed as they stood", ""))
        return page

    def _unsound(self, problem: str) -> LedgerError:
        return LedgerError(
            f"is damaged ({problem}), so nothing more may be written",
            file=self.file,
            fix="Put the last good copy back; `tacit ledger verify` tells which one is good.",
        )

    def dataset(self, dataset: str) -> str:
        """Return the name of a data set in its one spelling, or refuse it."""
        return checked_name(dataset, key="dataset", file=self.file)

    def analyst(self, analyst: str | None) -> str | None:
        """Return the name of an analyst in its one spelling, or refuse it."""
        return None if analyst is None else checked_name(analyst, key="analyst", file=self.file)
