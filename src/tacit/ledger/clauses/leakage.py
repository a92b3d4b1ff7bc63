"""What a ledger keeps about applications: the limits that hold for a data set, and what releases have shown of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from sqlalchemy import select

from tacit.errors import LedgerError, TacitError
from tacit.ledger.clauses.applications import Applications, Standing
from tacit.ledger.clauses.clause import Clause, OthersWereFaster
from tacit.ledger.store.book import Book
from tacit.ledger.store.chain import LIMITS, SHOWN, LedgerEntry
from tacit.ledger.store.database import rows
from tacit.ledger.store.page import Page
from tacit.ledger.store.schema import ENTRIES
from tacit.ledger.store.summed import limits_before, seen_before, shown_of, written
from tacit.plan.leakage.shown import Shown, ShownSoFar

Before = tuple[str | None, ShownSoFar]  # the limits that hold, and what was shown

PATIENCE = 20  # times that others may be faster; then it is worked out while they wait


class Limits(Clause):
    """Limits that hold for a data set from now on; others than those that hold are refused, unless they `replace`."""

    def __init__(self, applications: Applications, *, replace: bool = False) -> None:
        self._applications, self._replace = applications, replace

    def check(self, page: Page, dataset: str) -> None:
        """Refuse other limits than those that hold."""
        held, wanted = limits_before(page.sums(dataset), dataset), self._applications.fingerprint
        if held not in (None, wanted) and not self._replace:
            raise LedgerError(
                f"must be those that hold for dataset {dataset!r} already, {held[:12]}",
                key="leakage",
                given=wanted[:12],
                file=page.file,
                fix="Use these, or say ledger.limit_leakage(.., replace=True) after a change of the dependence.",
            )

    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        """Append the limits, unless they hold already."""
        one = self._applications
        if limits_before(page.sums(dataset), dataset) == one.fingerprint:
            return None
        words = f"limits on what {', '.join(one.coalitions)} may learn"
        return page.note(LIMITS, dataset, None, one.fingerprint, (words, written(one.document())))


@dataclass(frozen=True)
class WeighedRelease:
    """What is to be noted of a release (None if it shows nothing new), or why it is refused, after some showings."""

    after: Before
    noted: tuple[str, str] | None = None
    refused: TacitError | None = None


class RecordsShown(Clause):
    """A release that shows single records, and the limits that whoever charges it knows; None if they know none.

    What coalitions would learn takes long to work out, so it is prepared; whoever loses too often does it while others
    wait.
    """

    def __init__(self, shown: tuple[Shown, ...], applications: Applications | None) -> None:
        self.shown, self.applications = shown, applications
        self._found: WeighedRelease | None = None
        self._tries = 0

    def prepare(self, book: Book, dataset: str) -> None:
        """Work out what everybody would learn, as things stand now."""
        self._tries += 1
        if self._tries <= PATIENCE:
            self._found = self._weighed(book.read(lambda page: self._before(page, dataset)), dataset, book.file)

    def check(self, page: Page, dataset: str) -> None:
        """Refuse what would tell a coalition more than its limit, after all that was shown until now."""
        before = self._before(page, dataset)
        if self._found is None or self._found.after != before:
            if self._tries <= PATIENCE:
                raise OthersWereFaster
            self._found = self._weighed(before, dataset, page.file)
        if self._found.refused is not None:
            raise self._found.refused

    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        """Append what the release shows, if it is new."""
        noted = None if self._found is None else self._found.noted
        return None if noted is None else page.note(SHOWN, dataset, analyst, None, noted)

    def _before(self, page: Page, dataset: str) -> Before:
        """Return the limits that hold, and what was shown so far, as far as this release depends on it."""
        sums, lines = page.sums(dataset), {one.line for one in self.shown if one.line}
        return limits_before(sums, dataset), seen_before(sums, dataset, lines)

    def _weighed(self, before: Before, dataset: str, file: str) -> WeighedRelease:
        try:
            return WeighedRelease(before, noted=self._words(*before, dataset, file))
        except TacitError as refused:  # for the transaction to say, after budgets and policies
            return WeighedRelease(before, refused=refused)

    def _words(self, wanted: str | None, before: ShownSoFar, dataset: str, file: str) -> tuple[str, str] | None:
        """Return what the entry of this release says, in words and as a document, or refuse the release.

        None if it shows nothing that was not shown before: then nobody learns anything, and nothing is written.
        `wanted` is the fingerprint of the limits that hold, `before` what was shown so far.
        """
        if self.applications is not None:
            self.applications.check_public()
        if wanted is not None and (self.applications is None or self.applications.fingerprint != wanted):
            raise LedgerError(
                f"must be given: dataset {dataset!r} has limits on what applications learn, {wanted[:12]}",
                key="leakage",
                given=None if self.applications is None else self.applications.fingerprint[:12],
                file=file,
                fix="Nothing was charged. Open the session with these limits, as in Session(.., leakage=limits).",
            )
        if before.after(self.shown).reached == before.reached:
            return None
        standing: tuple[Standing, ...] = ()
        if self.applications is not None:
            standing = self.applications.weigh_after(before, self.shown, file=file)
        said = {
            "shown": [{**asdict(one), "epsilon": str(one.epsilon)} for one in self.shown],
            "standing": [one.document() for one in standing],
        }
        return f"shown: {', '.join(map(str, self.shown))}", written(said)


def shown_before(page: Page, dataset: str) -> list[Shown]:
    """Return everything that applications were shown of single records of a data set, in order."""
    return [one for said in _showings(page, dataset) for one in shown_of(said)]


def last_standing(page: Page, dataset: str) -> list[Standing]:
    """Return where coalitions stood after the last release that showed single records, as it was written then."""
    last = _showings(page, dataset, last=True)
    return [Standing.from_document(one) for said in last for one in json.loads(said)["standing"]]


def _showings(page: Page, dataset: str, *, last: bool = False) -> list[str]:
    """Return what entries say was shown of a data set, or the last of them; refuse what somebody has changed."""
    mine = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.kind == SHOWN)
    asked = select(ENTRIES).where(mine).order_by(ENTRIES.c.number.desc())
    found = rows(page.db, asked.limit(1) if last else asked)[::-1]
    if any(page.seal.of_entry(row) != row["hash"] for row in found):
        raise page.damaged("what it says of applications was changed")
    return [row["policy_text"] for row in found]
