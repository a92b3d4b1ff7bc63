"""What a ledger keeps about applications: the limits that hold for a data set, and what releases have shown of it.

What coalitions would learn from a release is worked out before the ledger is locked, from what was shown until then.
In the locked transaction it is used only if nothing was shown since; otherwise nothing is written, and it is worked out
again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection, select

from tacit.errors import LedgerError, TacitError
from tacit.ledger.applications import (
    Applications,
    Standing,
    Weighing,
    limits_in,
    limits_words,
    shown_in,
    standing_in,
)
from tacit.ledger.book import Book
from tacit.ledger.chain import LIMITS, SHOWN, Entry, Stored
from tacit.ledger.store import rows
from tacit.ledger.tables import ENTRIES
from tacit.plan.leakage.shown import Shown

PATIENCE = 20  # times that others may be faster; then it is worked out while they wait


@dataclass(frozen=True)
class Weighed:
    """What is to be noted of a release (None if it shows nothing new), or why it is refused, after some entries."""

    after: list[str]  # the hashes of the entries
    noted: tuple[str, str] | None = None
    refused: TacitError | None = None


class NotWeighedYet(Exception):
    """Others have shown something since a release was weighed; leaves the transaction, which writes nothing."""


class Scales:
    """One release that shows single records (None: that shows none), weighed as often as others are faster."""

    def __init__(self, book: LeakageBook, dataset: str, weighing: Weighing | None) -> None:
        self._book, self._dataset, self._weighing = book, dataset, weighing
        self._found: Weighed | None = None
        self._tries = 0

    def weigh(self) -> None:
        """Work out what everybody would learn, as things stand now, while nobody is kept waiting."""
        self._tries += 1
        if self._weighing is not None and self._tries <= PATIENCE:
            self._found = self._weighed(self._book.entries(self._dataset))

    def noted(self, db: Connection) -> tuple[str, str] | None:
        """Return what is to be noted of the release, in the locked transaction, or refuse it.

        Raises:
            NotWeighedYet: If others were faster.
        """
        if self._weighing is None:
            return None
        history = self._book.entries_in(db, self._dataset)
        found = self._found
        if found is None or found.after != [entry["hash"] for entry in history]:
            if self._tries <= PATIENCE:
                raise NotWeighedYet
            found = self._weighed(history)
        if found.refused is not None:
            raise found.refused
        return found.noted

    def _weighed(self, history: list[Stored]) -> Weighed:
        assert self._weighing is not None  # noqa: S101 - asked before
        after = [entry["hash"] for entry in history]
        try:
            return Weighed(after, noted=self._weighing.noted(history, dataset=self._dataset, file=self._book.file))
        except TacitError as refused:  # for the transaction to say, if the budget lets it come so far
            return Weighed(after, refused=refused)


class LeakageBook:
    """Limits and showings of all data sets of a ledger."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.file = book.file

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
        if applications is not None:
            wanted = applications
            self._book.store.read(lambda db: self._holds_already(db, dataset, wanted))
        if weighing is not None and weighing.shown:
            weighing.noted(self.entries(dataset), dataset=dataset, file=self.file)

    def shown(self, dataset: str) -> list[Shown]:
        """Return everything that applications were shown of single records of a data set, in order."""
        return self._book.store.read(lambda db: shown_in(self.entries_in(db, dataset)))

    def standing(self, dataset: str) -> list[Standing]:
        """Return what coalitions could know after the last release that showed single records."""
        return self._book.store.read(lambda db: standing_in(self.entries_in(db, dataset)))

    def show(
        self, dataset: str, analyst: str | None, weighing: Weighing | None, also: Callable[[Connection], None]
    ) -> None:
        """Note what is shown at no cost, because its coins were paid for, or refuse it; `also` in one transaction."""
        scales = self.scales(dataset, weighing)

        def work(db: Connection) -> None:
            head = self._book.sound_head(db)
            self.note(db, head, dataset, analyst, scales.noted(db))
            also(db)

        while True:
            scales.weigh()
            with suppress(NotWeighedYet):
                return self._book.store.write(work)

    def scales(self, dataset: str, weighing: Weighing | None) -> Scales:
        """Return what weighs a release; one that shows no single record weighs nothing."""
        return Scales(self, dataset, weighing if weighing is not None and weighing.shown else None)

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
        held = limits_in(self.entries_in(db, dataset))
        if held not in (None, applications.fingerprint) and not replace:
            raise LedgerError(
                f"must be those that hold for dataset {dataset!r} already, {held[:12]}",
                key="leakage",
                given=applications.fingerprint[:12],
                file=self._book.file,
                fix="Use these, or say ledger.limit_leakage(.., replace=True) after a change of the dependence.",
            )
        return held == applications.fingerprint

    def entries(self, dataset: str) -> list[Stored]:
        """Return what the ledger says of applications now."""
        return self._book.store.read(lambda db: self.entries_in(db, dataset))

    def entries_in(self, db: Connection, dataset: str) -> list[Stored]:
        """Return the same in a transaction; refuse what somebody has changed."""
        mine = (ENTRIES.c.dataset == dataset) & ENTRIES.c.kind.in_([LIMITS, SHOWN])
        found = rows(db, select(ENTRIES).where(mine).order_by(ENTRIES.c.number))
        if any(self._book.seal.of_entry(row) != row["hash"] for row in found):
            raise self._book.damaged("what it says of applications was changed")
        return found
