"""One payment: charges that are made together or not at all, and the clauses that they must keep.

Guarantee   What `check` refuses is what `pay` would refuse, with the same sentence: it is the same code, in a
            transaction that writes nothing.
Why         In one transaction, everything is looked at before anything is written: who may charge the accounts, their
            policies, their budgets, then each clause. What takes long is worked out before the ledger is locked:
            clauses prepare, and policies are compared when a transaction has found that they must be.
Checked by  tests/unit/ledger/test_ledger.py, tests/unit/ledger/test_applications.py,
            tests/contract/test_application_races.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from tacit.amounts import shown
from tacit.ledger.accounts import NotComparedYet, Receipt, RunningSum, holder_name
from tacit.ledger.clauses.clause import Clause, OthersWereFaster
from tacit.ledger.input import Amount, LedgerPolicy, checked_note, checked_policy, exact_epsilon
from tacit.ledger.rules import LedgerRules
from tacit.ledger.store.book import Book
from tacit.ledger.store.page import Page
from tacit.ledger.store.schema import RUNS

Result = TypeVar("Result")


class Payment:
    """Charges of one analyst to one data set. Without charges, only the clauses are kept and written down.

    `first` is a policy that is charged before this one, where the data set has none yet.
    """

    def __init__(
        self,
        book: Book,
        rules: LedgerRules,
        *,
        dataset: str,
        analyst: str | None,
        policy: LedgerPolicy | None = None,
        charges: Sequence[tuple[Amount, str]] = (),
        clauses: Sequence[Clause] = (),
        first: LedgerPolicy | None = None,
    ) -> None:
        file = book.file
        self._book, self._rules = book, rules
        self._charges = [
            (exact_epsilon(epsilon, file=file), checked_note(what, file=file)) for epsilon, what in charges
        ]
        self._sum = sum((amount for amount, _ in self._charges), Fraction(0))
        self._given: Any = charges[0][0] if len(charges) == 1 else shown(self._sum)
        self._dataset, self._holder = book.dataset(dataset), book.analyst(analyst)
        self._policy, self._first, self._clauses = policy, first, clauses
        self._fingerprint = checked_policy(policy, file=file)
        self._text = None if policy is None else policy.to_yaml()

    def pay(self, run: str | None = None, job: str = "") -> list[Receipt]:
        """Make all charges and write down what the clauses say; refuse before anything is written."""
        return self._settled(self._book.write, partial(self._paid, run=run, job=job))

    def check(self) -> None:
        """Refuse what `pay` would refuse; nothing is written."""
        self._settled(self._book.read, self._checked)

    def check_policy(self) -> None:
        """Refuse a policy, or an analyst, that the accounts would not take; nothing is written."""
        self._settled(self._book.read, self._accounts)

    def _settled(
        self, transaction: Callable[[Callable[[Page], Result]], Result], work: Callable[[Page], Result]
    ) -> Result:
        for clause in self._clauses:
            clause.prepare(self._book, self._dataset)
        while True:
            try:
                return transaction(work)
            except NotComparedYet as asked:
                question = asked
            except OthersWereFaster:
                for clause in self._clauses:
                    clause.prepare(self._book, self._dataset)
                continue
            # Outside the transaction: comparing two policies may take long, and the others should not wait.
            assert self._policy is not None  # noqa: S101 - only a policy raises the question
            self._rules.compare(question, self._policy)

    def _accounts(self, page: Page) -> tuple[RunningSum, RunningSum | None]:
        """Return the total and the analyst's own account; refuse who may not charge them, and policies."""
        found = page.accounts(self._dataset, self._holder)
        total, own = self._rules.total(page, self._dataset, found), found.get(self._holder) if self._holder else None
        if self._holder is None:
            self._rules.refuse_anonymous_charge(page, self._dataset)
        elif own is None:
            self._rules.refuse_look_alikes(page, self._dataset, self._holder)
        for who, account in self._budgets(total, own):
            text: Callable[[], str | None] = partial(page.policy_text, account)
            if account is total and total.policy is None and self._first is not None:
                account, text = replace(total, policy=self._first.fingerprint), self._first.to_yaml
            self._rules.check_policy(who, account, self._fingerprint, text)
        return total, own

    def _budgets(self, total: RunningSum, own: RunningSum | None) -> list[tuple[str, RunningSum]]:
        """Return the total and, if there is one, the analyst's cap, each with its name in words."""
        budgets = [(holder_name(self._dataset, None), total)]
        if own is not None and own.granted:
            budgets.append((holder_name(self._dataset, self._holder), own))
        return budgets

    def _checked(self, page: Page) -> tuple[RunningSum, RunningSum | None]:
        """Return the accounts, as far as they are charged, or refuse the payment; nothing is written."""
        total, own = self._accounts(page) if self._charges else (RunningSum(), None)
        for who, account in self._budgets(total, own) if self._charges else ():
            self._rules.check_budget(who, account, self._sum, given=self._given, dataset=self._dataset)
        for clause in self._clauses:
            clause.check(page, self._dataset)
        return total, own

    def _paid(self, page: Page, run: str | None, job: str) -> list[Receipt]:
        total, own = self._checked(page)
        receipts: list[Receipt] = []
        if self._charges:
            receipts = self._charged(page, total, own)
        last = receipts[-1].entry if receipts else None
        for clause in self._clauses:
            clause.note(page, self._dataset, self._holder, last)
        if run is not None and receipts:
            numbers = {"first": receipts[0].entry, "last": last}
            page.put(RUNS, {"run": run, "job": checked_note(job, file=self._book.file), "state": "reserved", **numbers})
        return receipts

    def _charged(self, page: Page, total: RunningSum, own: RunningSum | None) -> list[Receipt]:
        """Append an entry for each charge, and move the sums; the first charge under a policy gives it to the total."""
        left = min(account.remaining for _, account in self._budgets(total, own))
        receipts: list[Receipt] = []
        for amount, note in self._charges:
            pins = total.policy is None and self._fingerprint is not None
            entry = page.append(
                kind="charge",
                dataset=self._dataset,
                analyst=self._holder,
                epsilon=amount,
                policy=self._fingerprint,
                policy_text=self._text if pins else None,
                what=note,
            )
            if pins:
                total = replace(total, policy=self._fingerprint, policy_entry=entry.number)
            left -= amount
            receipts.append(Receipt(entry=entry.number, hash=entry.hash, remaining=left))
        page.move(self._dataset, None, replace(total, spent=total.spent + self._sum))
        if self._holder is not None:
            before = own or RunningSum()
            page.move(self._dataset, self._holder, replace(before, spent=before.spent + self._sum), is_new=own is None)
        return receipts
