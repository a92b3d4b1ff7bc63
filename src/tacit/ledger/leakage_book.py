"""What a ledger keeps about applications: the limits that hold for a data set, and what releases have shown of it."""

from __future__ import annotations

from sqlalchemy import Connection, select

from tacit.errors import LedgerError
from tacit.ledger.applications import (
    LIMITS,
    SHOWN,
    Applications,
    Standing,
    Weighing,
    limits_in,
    limits_words,
    shown_in,
    standing_in,
)
from tacit.ledger.book import Book
from tacit.ledger.chain import Entry, Stored
from tacit.ledger.store import rows
from tacit.ledger.tables import ENTRIES
from tacit.plan.leakage.shown import Shown


class LeakageBook:
    """Limits and showings of all data sets of a ledger."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def limit(self, dataset: str, applications: Applications, *, replace: bool) -> Entry | None:
        """Let limits hold for a data set from now on; None if the same hold already, refused if others do."""
        applications.check_public()

        def work(db: Connection) -> Entry | None:
            head = self._book.sound_head(db)
            if self._holds_already(db, dataset, applications, replace=replace):
                return None
            noted = limits_words(applications)
            return self._book.note(db, head, LIMITS, dataset, None, applications.fingerprint, noted)

        return self._book.store.write(work)

    def check(self, dataset: str, applications: Applications | None, weighing: Weighing | None) -> None:
        """Refuse limits, and what would be shown under them; nothing is written."""

        def work(db: Connection) -> None:
            if applications is not None:
                self._holds_already(db, dataset, applications)
            self.weighed(db, dataset, weighing)

        self._book.store.read(work)

    def shown(self, dataset: str) -> list[Shown]:
        """Return everything that applications were shown of single records of a data set, in order."""
        return self._book.store.read(lambda db: shown_in(self._entries(db, dataset)))

    def standing(self, dataset: str) -> list[Standing]:
        """Return what coalitions could know after the last release that showed single records."""
        return self._book.store.read(lambda db: standing_in(self._entries(db, dataset)))

    def show(self, dataset: str, analyst: str | None, weighing: Weighing) -> None:
        """Note what is shown at no cost, because its coins were paid for, or refuse it."""

        def work(db: Connection) -> None:
            head = self._book.sound_head(db)
            self.note(db, head, dataset, analyst, self.weighed(db, dataset, weighing))

        self._book.store.write(work)

    def weighed(self, db: Connection, dataset: str, weighing: Weighing | None) -> tuple[str, str] | None:
        """Return what is to be noted of a release that shows single records, or refuse it; None if it shows none."""
        if weighing is None or not weighing.shown:
            return None
        return weighing.noted(self._entries(db, dataset), dataset=dataset, file=self._book.file)

    def note(
        self, db: Connection, head: Stored, dataset: str, analyst: str | None, noted: tuple[str, str] | None
    ) -> None:
        """Append what a release has shown, if it has shown anything."""
        if noted is not None:
            self._book.note(db, head, SHOWN, dataset, analyst, None, noted)

    def _holds_already(
        self, db: Connection, dataset: str, applications: Applications, *, replace: bool = False
    ) -> bool:
        """Say whether just these limits hold for a data set; refuse others than those that hold, unless `replace`."""
        held = limits_in(self._entries(db, dataset))
        if held not in (None, applications.fingerprint) and not replace:
            raise LedgerError(
                f"must be those that hold for dataset {dataset!r} already, {held[:12]}",
                key="leakage",
                given=applications.fingerprint[:12],
                file=self._book.file,
                fix="Use these, or say ledger.limit_leakage(.., replace=True) after a change of the dependence.",
            )
        return held == applications.fingerprint

    def _entries(self, db: Connection, dataset: str) -> list[Stored]:
        mine = (ENTRIES.c.dataset == dataset) & ENTRIES.c.kind.in_([LIMITS, SHOWN])
        found = rows(db, select(ENTRIES).where(mine).order_by(ENTRIES.c.number))
        if any(self._book.seal.of_entry(row) != row["hash"] for row in found):
            raise self._book.damaged("what it says of applications was changed")
        return found
