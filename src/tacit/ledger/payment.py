"""One payment: charges that are made together or not at all, with the rules and clauses that they must keep.

Guarantee   `Payment.check` refuses what `pay` would refuse, with the same sentence: it is the same code, in a
            transaction that writes nothing.
Why         One transaction looks at everything before it writes anything: who may charge the accounts, their policies,
            their budgets, then each clause. Slow work is done while the ledger is not locked: clauses prepare, and
            policies are compared after a transaction has found that they must be.
Checked by  tests/unit/ledger/test_ledger.py, tests/unit/ledger/test_applications.py,
            tests/contract/test_application_races.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TypeVar

from sqlalchemy import select

from tacit.amounts import shown
from tacit.errors import BudgetExceeded, LedgerError, nearest
from tacit.ledger.accounts import CAPPED, Receipt, RunningSum, holder_name, known_alike, policy_name
from tacit.ledger.chain import ACCOUNTS, RUNS, TOTAL
from tacit.ledger.clauses import Clause, OthersWereFaster
from tacit.ledger.input import (
    LONGEST_NAME,
    Amount,
    checked_note,
    checked_policy,
    exact_epsilon,
    grant_command,
    look_alike,
)
from tacit.ledger.page import Book, Page
from tacit.policy.policy import Policy

Result = TypeVar("Result")


class NotComparedYet(Exception):
    """Two policies whose strength is not known yet; leaves the transaction so that nobody waits for the answer."""

    def __init__(self, pair: tuple[str, str], text: str) -> None:
        super().__init__()
        self.pair = pair  # fingerprints: of the account, of the charge
        self.text = text  # of the account's policy


class LedgerRules:
    """The rules of one ledger. Remembers which policies cover which: comparing them may take long."""

    def __init__(self, file: str) -> None:
        self._file = file
        # (policy of an account, policy of a charge) -> does the second cover the first?
        self._compared: dict[tuple[str, str], bool] = {}

    def check_budget(self, who: str, account: RunningSum, amount: Fraction, *, dataset: str) -> None:
        """Refuse a charge that does not fit."""
        if amount <= account.remaining:
            return
        raise BudgetExceeded(
            f"must fit in what remains of {who}: {shown(account.remaining)} of {shown(account.granted)}",
            key="epsilon",
            given=amount,
            file=self._file,
            fix=f"Nothing was charged. Ask for less, or grant more: {grant_command(self._file, dataset)}.",
        )

    def check_policy(
        self, who: str, account: RunningSum, fingerprint: str | None, text: Callable[[], str | None]
    ) -> None:
        """Refuse a charge under a policy that protects less than the account's, whose text is `text()`."""
        if account.policy in (None, fingerprint):
            return
        if fingerprint is None:
            rule = f"policy must be given: {who} is counted under {policy_name(account.policy)}"
            fix = "Nothing was charged. Pass the policy that the release keeps, as in charge(.., policy=policy)."
            raise LedgerError(rule, file=self._file, fix=fix)
        pair = (str(account.policy), fingerprint)
        if pair not in self._compared:
            raise NotComparedYet(pair, text() or "")
        if not self._compared[pair]:
            raise LedgerError(
                f"the release's policy protects less than the one {who} is counted under, "
                f"{policy_name(account.policy)}: some records that must look alike there need not look alike here, "
                "or only to another adversary",
                given=policy_name(fingerprint),
                file=self._file,
                fix="Nothing was charged. Release under the account's policy or one that covers it: "
                "a release that protects more than the account asks is allowed, never less.",
            )

    def compare(self, question: NotComparedYet, policy: Policy) -> None:
        """Find out whether a policy covers that of an account, outside of any transaction."""
        fingerprint = question.pair[0]
        try:
            granted = type(policy).from_yaml(question.text)
            unchanged = granted.fingerprint == fingerprint
        except Exception:  # whatever a reader of files may raise, the sentence is the same
            unchanged = False
        if not unchanged:
            raise LedgerError(
                f"the stored text of {policy_name(fingerprint)} can no longer be read as that policy",
                file=self._file,
                fix="Run `tacit ledger verify`; if the ledger is sound, charge with the Tacit that wrote it, or give "
                "the data set another name: where a policy names a person, other rows may count since then.",
            )
        self._compared[question.pair] = bool(policy.covers(granted))

    def total(self, page: Page, dataset: str, found: Mapping[str, RunningSum]) -> RunningSum:
        """Return the total among the accounts that were found, or refuse a data set without one."""
        if TOTAL in found:
            return found[TOTAL]
        totals = select(ACCOUNTS.c.dataset).where(ACCOUNTS.c.analyst == TOTAL).order_by(ACCOUNTS.c.dataset)
        known = page.db.execute(totals).scalars()
        names = [name for name in known if isinstance(name, str) and len(name) <= LONGEST_NAME]
        command = grant_command(self._file, dataset)
        if same := look_alike(dataset, names):
            fix = f"Did you mean {same!r}? A name has one spelling."
        else:
            fix = f"{nearest(dataset, names)} Or grant one: {command}." if names else f"Grant one: {command}."
        raise LedgerError("dataset has no budget in this ledger", given=dataset, file=self._file, fix=fix)

    def refuse_anonymous_charge(self, page: Page, dataset: str) -> None:
        """Refuse a charge without an analyst where single analysts have caps."""
        if page.state(CAPPED, dataset, "") is not None:
            rule = f"analyst must be given: dataset {dataset!r} has caps for single analysts"
            raise LedgerError(rule, file=self._file, fix='Say who asks, as in charge(.., analyst="ana").')

    def refuse_look_alikes(self, page: Page, dataset: str, analyst: str | None) -> None:
        """Refuse a new name that looks like a known one."""
        for key, whose, name in (("dataset", "", dataset), ("analyst", dataset, analyst)):
            other = None if name is None else known_alike(page, whose, name)
            if other is not None:
                rule = f"looks like {other!r}, which is in this ledger, and would be an account of its own"
                fix = f"Nothing was written. Write {other!r} if you mean it, or choose a name that nobody mistakes."
                raise LedgerError(rule, key=key, given=name, file=self._file, fix=fix)


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
        policy: Policy | None = None,
        charges: Sequence[tuple[Amount, str]] = (),
        clauses: Sequence[Clause] = (),
        first: Policy | None = None,
    ) -> None:
        file = book.file
        self._book, self._rules = book, rules
        self._charges = [
            (exact_epsilon(epsilon, file=file), checked_note(what, file=file)) for epsilon, what in charges
        ]
        self._sum = sum((amount for amount, _ in self._charges), Fraction(0))
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
        self._prepare()
        while True:
            try:
                return transaction(work)
            except NotComparedYet as unknown:
                question = unknown
            except OthersWereFaster:
                self._prepare()
                continue
            # Outside the transaction: comparing two policies may take long, and the others should not wait.
            assert self._policy is not None  # noqa: S101 - only a policy raises the question
            self._rules.compare(question, self._policy)

    def _prepare(self) -> None:
        for clause in self._clauses:
            clause.prepare(self._book, self._dataset)

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
            self._rules.check_budget(who, account, self._sum, dataset=self._dataset)
        for clause in self._clauses:
            clause.check(page, self._dataset)
        return total, own

    def _paid(self, page: Page, run: str | None, job: str) -> list[Receipt]:
        total, own = self._checked(page)
        receipts = self._charged(page, total, own) if self._charges else []
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
            is_first = total.policy is None and self._fingerprint is not None
            entry = page.append(
                kind="charge",
                dataset=self._dataset,
                analyst=self._holder,
                epsilon=amount,
                policy=self._fingerprint,
                policy_text=self._text if is_first else None,
                what=note,
            )
            if is_first:
                total = replace(total, policy=self._fingerprint, policy_entry=entry.number)
            left -= amount
            receipts.append(Receipt(entry=entry.number, hash=entry.hash, remaining=left))
        page.move(self._dataset, None, replace(total, spent=total.spent + self._sum))
        if self._holder is not None:
            before = own or RunningSum()
            page.move(self._dataset, self._holder, replace(before, spent=before.spent + self._sum), is_new=own is None)
        return receipts
