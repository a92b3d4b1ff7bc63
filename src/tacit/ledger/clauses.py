"""Clauses: what a charge must keep beside its budget. Here are limits on what applications learn, and tables.

Slow work is prepared before the ledger is locked, from what the ledger says then. The locked transaction uses the
result only if nothing that it depends on was written since; otherwise it writes nothing, and the work is done again.
Coins are a clause as well (`ledger/coins.py`).

Guarantee   Limits: `ledger/applications.py`. Tables: where a table of a data set promises the (lambda, delta) criterion
            about a sensitive column, every other table that tells about this column is refused before anything is
            charged, whichever comes first and however many processes ask at once, unless it is requested as one that
            cancels the promise (`again`).
Assumes     All tables of these people are charged to one data set of one ledger. Released counts and histograms are not
            compared with tables.
Why         The criterion bounds how often one estimate of a frequency is wrong by how much. A second table has noise of
            its own, so the mean of both is wrong less often: the promise holds for one table alone. A table counts from
            its charge on, because it is an entry of the chain, written in the locked transaction of the charge. That
            transaction reads for each column the first table that promises something about it and the first that tells
            about it: if any table conflicts, one of these does (`ledger/accounts.py`).
Reference   docs/tables.md, docs/decisions/0015-leakage.md.
Checked by  tests/unit/ledger/test_tables_together.py, tests/unit/ledger/test_applications.py,
            tests/contract/test_application_races.py.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import select

from tacit.errors import LedgerError, PlanError, TacitError
from tacit.ledger.accounts import COLUMN, limits_before, seen_before, shown_of
from tacit.ledger.applications import Applications, Standing
from tacit.ledger.chain import ENTRIES, LIMITS, SHOWN, TABLE, LedgerEntry
from tacit.ledger.database import rows
from tacit.ledger.input import canonical_json
from tacit.ledger.page import Book, Page
from tacit.plan.leakage.shown import Shown, ShownSoFar


class OthersWereFaster(Exception):
    """Others have written since a clause was prepared; leaves the transaction, which writes nothing."""


class Clause(ABC):
    """One thing that a charge must keep. What `check` refuses, nobody is charged for."""

    def prepare(self, book: Book, dataset: str) -> None:  # noqa: B027 - most have nothing to prepare
        """Work out what takes long, while nobody has to wait; called again after `OthersWereFaster`."""

    @abstractmethod
    def check(self, page: Page, dataset: str) -> None:
        """Refuse the charge in the transaction that would make it, before anything is written.

        Raises:
            OthersWereFaster: If what was prepared is no longer so.
        """

    @abstractmethod
    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        """Write down what the charge changes, after `check`; return the entry that says so, if there is one.

        `paid` is the last entry that was paid with it, None where nothing had to be paid.
        """


# ---- limits on what applications learn ------------------------------------------------------------------------------

Before = tuple[str | None, ShownSoFar]  # the limits that hold, and what was shown

PATIENCE = 20  # times that others may be faster; then the work is done while they wait


class Limits(Clause):
    """Limits that hold for a data set from now on; others than those that hold are refused, unless they `replace`."""

    def __init__(self, applications: Applications, *, replace: bool = False) -> None:
        self._applications, self._replace = applications, replace

    def check(self, page: Page, dataset: str) -> None:
        held, wanted = limits_before(page.sums(dataset), dataset), self._applications.fingerprint
        if held not in (None, wanted) and not self._replace:
            rule = f"must be those that hold for dataset {dataset!r} already, {held[:12]}"
            fix = "Use these, or say ledger.limit_leakage(.., replace=True) after a change of the dependence."
            raise LedgerError(rule, key="leakage", given=wanted[:12], file=page.file, fix=fix)

    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        limits = self._applications
        if limits_before(page.sums(dataset), dataset) == limits.fingerprint:
            return None
        words = f"limits on what {', '.join(limits.coalitions)} may learn"
        return page.note(LIMITS, dataset, None, limits.fingerprint, (words, canonical_json(limits.document())))


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
        self._weighed: WeighedRelease | None = None
        self._tries = 0

    def prepare(self, book: Book, dataset: str) -> None:
        self._tries += 1
        if self._tries <= PATIENCE:
            self._weighed = self._weigh(book.read(lambda page: self._before(page, dataset)), dataset, book.file)

    def check(self, page: Page, dataset: str) -> None:
        before = self._before(page, dataset)
        if self._weighed is None or self._weighed.after != before:
            if self._tries <= PATIENCE:
                raise OthersWereFaster
            self._weighed = self._weigh(before, dataset, page.file)
        if self._weighed.refused is not None:
            raise self._weighed.refused

    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        noted = None if self._weighed is None else self._weighed.noted
        return None if noted is None else page.note(SHOWN, dataset, analyst, None, noted)

    def _before(self, page: Page, dataset: str) -> Before:
        """Return the limits that hold, and what was shown so far, as far as this release depends on it."""
        sums, lines = page.sums(dataset), {one.line for one in self.shown if one.line}
        return limits_before(sums, dataset), seen_before(sums, dataset, lines)

    def _weigh(self, before: Before, dataset: str, file: str) -> WeighedRelease:
        try:
            return WeighedRelease(before, noted=self._words(*before, dataset, file))
        except TacitError as refused:  # for the transaction to raise, after budgets and policies
            return WeighedRelease(before, refused=refused)

    def _words(self, held: str | None, before: ShownSoFar, dataset: str, file: str) -> tuple[str, str] | None:
        """Return what the entry of this release says, in words and as a document, or refuse the release.

        None if it shows nothing that was not shown before: then nobody learns anything, and nothing is written.
        `held` is the fingerprint of the limits that hold, `before` what was shown so far.
        """
        limits = self.applications
        if limits is not None:
            limits.check_public()
        if held is not None and (limits is None or limits.fingerprint != held):
            raise LedgerError(
                f"must be given: dataset {dataset!r} has limits on what applications learn, {held[:12]}",
                key="leakage",
                given=None if limits is None else limits.fingerprint[:12],
                file=file,
                fix="Nothing was charged. Open the session with these limits, as in Session(.., leakage=limits).",
            )
        if before.after(self.shown).reached == before.reached:
            return None
        standing = () if limits is None else limits.weigh_after(before, self.shown, file=file)
        document = {
            "shown": [{**asdict(one), "epsilon": str(one.epsilon)} for one in self.shown],
            "standing": [one.document() for one in standing],
        }
        return f"shown: {', '.join(map(str, self.shown))}", canonical_json(document)


def shown_before(page: Page, dataset: str) -> list[Shown]:
    """Return everything that applications were shown of single records of a data set, in order."""
    return [one for document in _showings(page, dataset) for one in shown_of(document)]


def last_standing(page: Page, dataset: str) -> list[Standing]:
    """Return where coalitions stood after the last release that showed single records, as it was written then."""
    last = _showings(page, dataset, last=True)
    return [Standing.from_document(one) for document in last for one in json.loads(document)["standing"]]


def _showings(page: Page, dataset: str, *, last: bool = False) -> list[str]:
    """Return what entries say was shown of a data set, or the last of them; refuse what somebody has changed."""
    mine = (ENTRIES.c.dataset == dataset) & (ENTRIES.c.kind == SHOWN)
    newest_first = select(ENTRIES).where(mine).order_by(ENTRIES.c.number.desc())
    found = rows(page.db, newest_first.limit(1) if last else newest_first)[::-1]
    if any(page.seal.of_entry(row) != row["hash"] for row in found):
        raise page.damaged("what it says of applications was changed")
    return [row["policy_text"] for row in found]


# ---- tables ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableNote(Clause):
    """What a table tells about: its columns, as the rows have them.

    `promises` says whether it keeps a criterion about the sensitive ones, and `again` that it was requested although
    other tables may tell about them.
    """

    public: tuple[str, ...]
    sensitive: tuple[str, ...]
    promises: bool
    again: bool = False

    def undone_by(self, other: TableNote) -> list[str]:
        """Return the columns that this one promises a criterion about, and the other one tells about."""
        told = {*other.public, *other.sensitive}
        return [name for name in self.sensitive if self.promises and name in told]

    def check(self, page: Page, dataset: str) -> None:
        sums, earlier = page.sums(dataset), {}
        for column in dict.fromkeys([*self.sensitive, *self.public]):
            for number, document in (sums.state(COLUMN, dataset, column) or {}).values():
                columns = {key: tuple(document[key]) for key in ("public", "sensitive")}
                earlier[number] = TableNote(**{**document, **columns})
        check_alone(self, [earlier[number] for number in sorted(earlier)], dataset)

    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        words = f"published: {self}" + (", which promises a criterion" if self.promises else "")
        return page.note(TABLE, dataset, analyst, None, (words, canonical_json(asdict(self))))

    def __str__(self) -> str:
        return f"table of {', '.join(self.sensitive)}" + (f" by {', '.join(self.public)}" if self.public else "")


def check_alone(new: TableNote, earlier: Sequence[TableNote], dataset: str) -> None:
    """Refuse a table that cancels what an earlier one promises, or whose own promise an earlier one cancels."""
    for old in [] if new.again else earlier:
        undone, lost = old.undone_by(new), new.undone_by(old)
        if not undone and not lost:
            continue
        why = (
            "which promises that no frequency in a group is estimated too well"
            if undone
            else "and the criterion asked for would not hold"
        )
        raise PlanError(
            f"must not be in two tables: of data set {dataset!r} there is a {old} already, {why}: both together tell "
            "more than one",
            key="sensitive",
            given=(undone or lost)[0],
            fix="Nothing was charged and no row was opened. Use that table; or say again=True: then the criterion is "
            "promised no more, by neither of them, for groups that are in both.",
        )
