"""What a ledger keeps about applications: the limits that hold for a data set, and what releases have shown of it.

What coalitions would learn from a release is worked out before the ledger is locked, from what was shown until then.
In the locked transaction it is used only if nothing was shown since; otherwise nothing is written, and it is worked out
again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import select

from tacit.errors import LedgerError, TacitError
from tacit.ledger.clauses.applications import (
    Applications,
    Standing,
    WeighingRequest,
    limits_words,
    shown_in,
    standing_in,
)
from tacit.ledger.store.book import Book
from tacit.ledger.store.chain import LIMITS, SHOWN, LedgerEntry, Stored
from tacit.ledger.store.database import rows
from tacit.ledger.store.page import Page
from tacit.ledger.store.schema import ENTRIES
from tacit.ledger.store.summed import limits_before, seen_before
from tacit.plan.leakage.shown import Shown, ShownSoFar

Before = tuple[str | None, ShownSoFar]  # the limits that hold, and what was shown

PATIENCE = 20  # times that others may be faster; then it is worked out while they wait


@dataclass(frozen=True)
class WeighedRelease:
    """What is to be noted of a release (None if it shows nothing new), or why it is refused, after some showings."""

    after: Before
    noted: tuple[str, str] | None = None
    refused: TacitError | None = None


class NotWeighedYet(Exception):
    """Others have shown something since a release was weighed; leaves the transaction, which writes nothing."""


class WeighedShowing:
    """One release that shows single records (None: that shows none), weighed as often as others are faster."""

    def __init__(self, book: LeakageBook, dataset: str, weighing: WeighingRequest | None) -> None:
        self._book, self._dataset, self._weighing = book, dataset, weighing
        self._found: WeighedRelease | None = None
        self._tries = 0

    def weigh(self) -> None:
        """Work out what everybody would learn, as things stand now, while nobody is kept waiting."""
        self._tries += 1
        if self._weighing is not None and self._tries <= PATIENCE:
            self._found = self._weighed(self._book.before(self._dataset, self._weighing))

    def noted(self, page: Page) -> tuple[str, str] | None:
        """Return what is to be noted of the release, in the locked transaction, or refuse it.

        Raises:
            NotWeighedYet: If others were faster.
        """
        if self._weighing is None:
            return None
        before = self._book.before_in(page, self._dataset, self._weighing)
        found = self._found
        if found is None or found.after != before:
            if self._tries <= PATIENCE:
                raise NotWeighedYet
            found = self._weighed(before)
        if found.refused is not None:
            raise found.refused
        return found.noted

    def _weighed(self, before: Before) -> WeighedRelease:
        assert self._weighing is not None  # noqa: S101 - asked before
        try:
            return WeighedRelease(
                before, noted=self._weighing.noted(*before, dataset=self._dataset, file=self._book.file)
            )
        except TacitError as refused:  # for the transaction to say, if the budget lets it come so far
            return WeighedRelease(before, refused=refused)


class LeakageBook:
    """Limits and showings of all data sets of a ledger."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.file = book.file

    def limit(self, dataset: str, applications: Applications, *, replace: bool) -> LedgerEntry | None:
        """Let limits hold for a data set from now on; None if the same hold already, refused if others do."""
        applications.check_public()

        def work(page: Page) -> LedgerEntry | None:
            if self._holds_already(page, dataset, applications, replace=replace):
                return None
            return page.note(LIMITS, dataset, None, applications.fingerprint, limits_words(applications))

        return self._book.write(work)

    def check(self, dataset: str, applications: Applications | None, weighing: WeighingRequest | None) -> None:
        """Refuse limits, and what would be shown under them; nothing is written."""
        if applications is not None:
            wanted = applications
            self._book.read(lambda page: self._holds_already(page, dataset, wanted))
        if weighing is not None and weighing.shown:
            weighing.noted(*self.before(dataset, weighing), dataset=dataset, file=self.file)

    def shown(self, dataset: str) -> list[Shown]:
        """Return everything that applications were shown of single records of a data set, in order."""
        return self._book.read(lambda page: shown_in(self._entries(page, dataset)))

    def standing(self, dataset: str) -> list[Standing]:
        """Return what coalitions could know after the last release that showed single records."""
        return self._book.read(lambda page: standing_in(self._entries(page, dataset, last=True)))

    def show(
        self, dataset: str, analyst: str | None, weighing: WeighingRequest | None, also: Callable[[Page], None]
    ) -> None:
        """Note what is shown at no cost, because its coins were paid for, or refuse it; `also` in one transaction."""
        scales = self.scales(dataset, weighing)

        def work(page: Page) -> None:
            self.note(page, dataset, analyst, scales.noted(page))
            also(page)

        while True:
            scales.weigh()
            with suppress(NotWeighedYet):
                return self._book.write(work)

    def scales(self, dataset: str, weighing: WeighingRequest | None) -> WeighedShowing:
        """Return what weighs a release; one that shows no single record weighs nothing."""
        return WeighedShowing(self, dataset, weighing if weighing is not None and weighing.shown else None)

    def note(self, page: Page, dataset: str, analyst: str | None, noted: tuple[str, str] | None) -> None:
        """Append what a release has shown, if it has shown anything."""
        if noted is not None:
            page.note(SHOWN, dataset, analyst, None, noted)

    def _holds_already(self, page: Page, dataset: str, applications: Applications, *, replace: bool = False) -> bool:
        """Say whether just these limits hold for a data set; refuse others than those that hold, unless `replace`."""
        held = limits_before(page.sums(dataset), dataset)
        if held not in (None, applications.fingerprint) and not replace:
            raise LedgerError(
                f"must be those that hold for dataset {dataset!r} already, {held[:12]}",
                key="leakage",
                given=applications.fingerprint[:12],
                file=self._book.file,
                fix="Use these, or say ledger.limit_leakage(.., replace=True) after a change of the dependence.",
            )
        return held == applications.fingerprint

    def before(self, dataset: str, weighing: WeighingRequest) -> Before:
        """Return the limits that hold now, and what was shown so far, as far as a release hangs on it."""
        return self._book.read(lambda page: self.before_in(page, dataset, weighing))

    def before_in(self, page: Page, dataset: str, weighing: WeighingRequest) -> Before:
        """Return the same in a transaction."""
        sums = page.sums(dataset)
        lines = {one.line for one in weighing.shown if one.line}
        return limits_before(sums, dataset), seen_before(sums, dataset, lines)

    def _entries(self, page: Page, dataset: str, *, last: bool = False) -> list[Stored]:
        """Return what was shown of a data set, or its last showing; refuse what somebody has changed."""
        mine = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.kind == SHOWN)
        asked = select(ENTRIES).where(mine).order_by(ENTRIES.c.number.desc())
        found = rows(page.db, asked.limit(1) if last else asked)[::-1]
        if any(page.seal.of_entry(row) != row["hash"] for row in found):
            raise page.damaged("what it says of applications was changed")
        return found
