"""The contract of a clause: one thing that a charge must keep beside its budget, and what it writes down when it does.

What takes long is worked out before the ledger is locked, from what it says then. The locked transaction uses that only
if nobody has written anything since that it depends on; otherwise nothing is written, and it is worked out again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from tacit.ledger.store.book import Book
from tacit.ledger.store.chain import LedgerEntry
from tacit.ledger.store.page import Page


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
