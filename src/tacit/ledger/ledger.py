"""The budget ledger: how much may leak about each data set, what has leaked so far, and proof that nobody edited it.

Guarantee   What all charges against a data set add up to never exceeds what was granted to it, nor an analyst's
            charges that analyst's cap, whatever number of processes charge at once and whenever they are killed.
            A charge that was acknowledged is never lost. Sums are exact fractions. What is reserved together is
            charged together or not at all. All charges under a policy, from the first on, cover one policy.
Assumes     Everyone who releases from a data set charges the same ledger. Charges trust the rows that they look at,
            which one seal covers (`row_seals`); `verify` looks at all rows, adds sums up again from the entries and
            walks the hash chain (see `chain` and `verification` for what that finds).
Why         Composition adds epsilons, over analysts too, since analysts may pool what they learn: hence one total
            per data set, with caps inside it. A guarantee under a policy holds under every policy with fewer secret
            edges, so a charge whose policy covers the account's counts in full there, and no other charge does.
            One locked transaction reads the sums, compares, appends the entry and moves the sums and the head.
Reference   docs/decisions/0005-ledger.md: charged before rows are read.
Checked by  tests/unit/test_ledger.py, tests/contract/test_ledger_backends.py, tests/contract/test_ledger_processes.py,
            tests/contract/test_job_races.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import select

from tacit.amounts import shown
from tacit.errors import LedgerError, kind_of, sealed
from tacit.ledger.accounts import (
    Account,
    NotComparedYet,
    Receipt,
    Run,
    RunningSum,
    holder_name,
    policy_name,
)
from tacit.ledger.clauses.applications import Applications, Standing, WeighingRequest
from tacit.ledger.clauses.coins import CoinState, Contents, KeptCoins, Reached, keep_contents, raise_lines
from tacit.ledger.clauses.leakage import LeakageBook, NotWeighedYet
from tacit.ledger.clauses.tables import TableBook, TableNote
from tacit.ledger.input import (
    Amount,
    LedgerPolicy,
    checked_key,
    checked_note,
    checked_policy,
    exact_epsilon,
)
from tacit.ledger.rules import LedgerRules
from tacit.ledger.statement import Statement, stated
from tacit.ledger.store.book import Book
from tacit.ledger.store.chain import TOTAL, LedgerEntry, Seal, Verification, odd_run
from tacit.ledger.store.database import Store
from tacit.ledger.store.page import Page
from tacit.ledger.store.schema import ACCOUNTS, ENTRIES, RUNS
from tacit.ledger.store.verification import verified
from tacit.plan.leakage.shown import Shown

__all__ = ["Account", "Ledger", "LedgerEntry", "Receipt", "Run", "Statement", "Verification", "exact_epsilon"]


class Ledger:
    """The budget ledger of one or many data sets, in an SQLite file or a PostgreSQL database.

    A file that does not exist yet (or is empty) becomes a new ledger. Every operation opens its own connection and
    runs in one transaction, so a Ledger may be used from threads and forked children, and may be dropped unclosed.

    Args:
        where: A path, or a URL: `sqlite:///ledger.db`, `postgresql+psycopg://user@host/database`.
        key: Makes hashes HMAC-SHA-256 instead of SHA-256, so that nobody without the key can rewrite the ledger
            unnoticed. Taken from the environment variable TACIT_LEDGER_KEY if not given. A ledger keeps the key it
            was started with; grants and charges with another one are refused.
        wait_seconds: How long to wait while other processes write.
        create: False refuses to begin a new ledger, for commands that only look at one.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger(folder.name + "/ledger.db") as ledger:
    ...     _ = ledger.grant(dataset="clinic", epsilon=1)
    ...     receipt = ledger.charge(dataset="clinic", analyst="ana", epsilon=0.2, what="count")
    ...     print(receipt.entry, receipt.remaining, ledger.verify().ok)
    2 4/5 True
    >>> folder.cleanup()
    """

    @sealed
    def __init__(
        self,
        where: str | Path,
        *,
        key: str | bytes | None = None,
        wait_seconds: float = 60.0,
        create: bool = True,
    ) -> None:
        if not isinstance(where, str | Path):
            raise LedgerError(
                f"must be a path or a database URL, not {kind_of(where)}", key="ledger", fix="Name its file."
            )
        self._seal = Seal(checked_key(key))
        self._store = Store(where, seal=self._seal, wait_seconds=wait_seconds, create=create)
        self._rules = LedgerRules(self._store.name)
        self._book = Book(self._store, self._seal)
        self._coins, self._leakage = KeptCoins(self._book), LeakageBook(self._book)
        self._tables = TableBook(self._book)

    def __repr__(self) -> str:
        return f"Ledger({self._store.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database; every later call is refused."""
        self._store.close()

    def grant(
        self,
        *,
        dataset: str,
        epsilon: Amount,
        analyst: str | None = None,
        policy: LedgerPolicy | None = None,
    ) -> LedgerEntry:
        """Add budget: to the data set's total, or with `analyst` to that analyst's cap within the total.

        Grants add up. A cap limits everything that the analyst has charged to the data set, also before the cap was
        granted; an analyst without a cap may spend the whole total. All grants to one account carry the same policy
        or none. A total without a policy takes that of the first charge under one, for good; a cap without a policy
        is counted under that of the total.

        Raises:
            LedgerError: If the input, the policy or the ledger is not in order; nothing is written.
        """
        entry = self._grant(dataset, epsilon, analyst, policy, only_first=False)
        assert entry is not None  # noqa: S101 - only `only_first` grants nothing
        return entry

    def grant_once(self, *, dataset: str, epsilon: Amount, policy: LedgerPolicy | None = None) -> LedgerEntry | None:
        """Grant a total unless the data set has one, in one transaction; None if it had one.

        However many processes do this at once, one of them grants.
        """
        return self._grant(dataset, epsilon, None, policy, only_first=True)

    def _grant(
        self, dataset: str, epsilon: Amount, analyst: str | None, policy: LedgerPolicy | None, *, only_first: bool
    ) -> LedgerEntry | None:
        amount = exact_epsilon(epsilon, file=self._store.name)
        dataset, holder = self._book.dataset(dataset), self._book.analyst(analyst)
        fingerprint = checked_policy(policy, file=self._store.name)
        text = policy.to_yaml() if policy is not None else None

        def work(page: Page) -> LedgerEntry | None:
            account = page.accounts(dataset, holder).get(holder or TOTAL)
            if only_first and account is not None and account.granted:
                return None
            if account is None:
                self._rules.refuse_look_alikes(page, dataset, holder)
            elif (
                account.granted
                and account.policy != fingerprint
                and not self._may_stay_silent(page, account, fingerprint)
            ):
                raise LedgerError(
                    f"policy of a grant must be the one of the earlier grants to {holder_name(dataset, holder)}, "
                    f"which is {policy_name(account.policy)}",
                    given=policy_name(fingerprint),
                    file=self._store.name,
                    fix="Grant under that policy, or give the data set another name in the ledger.",
                )
            entry = page.append(
                kind="grant",
                dataset=dataset,
                analyst=holder,
                epsilon=amount,
                policy=fingerprint,
                policy_text=text,
                what="",
            )
            old = account or RunningSum()
            new = replace(old, granted=old.granted + amount)
            if old.policy_entry is None:
                new = replace(new, policy=fingerprint, policy_entry=entry.number)
            page.move(dataset, holder, new, is_new=account is None)
            return entry

        return self._book.write(work)

    def charge(
        self,
        *,
        dataset: str,
        epsilon: Amount,
        analyst: str | None = None,
        policy: LedgerPolicy | None = None,
        what: str = "",
    ) -> Receipt:
        """Take `epsilon` from the data set's total and from the analyst's cap, if there is one; both or neither.

        A charge under a policy counts against an account under a weaker one (`policy.covers(the account's)`) and
        never the other way round. Without `analyst`, only data sets without caps can be charged. `what` is a note
        on what was released; it is kept in the open, shortened if long.

        Raises:
            BudgetExceeded: If less than `epsilon` remains; nothing is written.
            LedgerError: If the data set has no budget, or the input, the policy or the ledger is not in order;
                nothing is written.
        """
        return self._pay(dataset, [(epsilon, what)], analyst, policy)[0]

    def reserve(
        self,
        *,
        dataset: str,
        charges: Sequence[tuple[Amount, str]],
        analyst: str | None = None,
        policy: LedgerPolicy | None = None,
        run: str | None = None,
        job: str = "",
        coins: tuple[CoinState, Reached] | None = None,
        kept: tuple[CoinState, Contents] | None = None,
        weighing: WeighingRequest | None = None,
        table: TableNote | None = None,
    ) -> list[Receipt]:
        """Charge several epsilons, each with its note, in one transaction: all of them or none.

        With `run`, a text that no other run has, the ledger keeps until `ended` that the run is under way. `coins` are
        what was read of lines of coins, and what they have reached with these charges; `kept` is what their files hold,
        where that is to be written; see `were_shown`. `weighing` says what is shown of single records, and is held
        against the limits on what applications learn, also where nothing is charged.
        `table` says what a table tells about, and is held against the tables before it.

        Raises:
            BudgetExceeded: If less remains than they add up to, or a coalition would learn more than its limit;
                nothing is written.
            LedgerError: As for `charge`; nothing is written.
            PlanError: If a table would undo what another one promises; nothing is written.
        """
        if charges:
            more: Any = {"coins": coins, "kept": kept, "weighing": weighing, "table": table}
            return self._pay(dataset, charges, analyst, policy, run=run, job=job, **more)
        if kept is not None or weighing is not None:
            name = self._book.dataset(dataset)

            def also(page: Page) -> None:
                if kept is not None:
                    keep_contents(page, name, *kept)

            self._leakage.show(name, self._book.analyst(analyst), weighing, also)
        return []

    def _pay(
        self,
        dataset: str,
        charges: Sequence[tuple[Amount, str]],
        analyst: str | None,
        policy: LedgerPolicy | None,
        *,
        run: str | None = None,
        job: str = "",
        coins: tuple[CoinState, Reached] | None = None,
        kept: tuple[CoinState, Contents] | None = None,
        weighing: WeighingRequest | None = None,
        table: TableNote | None = None,
    ) -> list[Receipt]:
        file = self._store.name
        listed = [(exact_epsilon(epsilon, file=file), checked_note(what, file=file)) for epsilon, what in charges]
        dataset, holder = self._book.dataset(dataset), self._book.analyst(analyst)
        fingerprint = checked_policy(policy, file=file)
        text = None if policy is None else policy.to_yaml()
        in_all = sum((amount for amount, _ in listed), Fraction(0))
        given: Any = charges[0][0] if len(charges) == 1 else shown(in_all)
        scales = self._leakage.scales(dataset, weighing)
        scales.weigh()

        def work(page: Page) -> list[Receipt]:
            found = page.accounts(dataset, holder)
            total, own = self._total(page, dataset, found), found.get(holder) if holder else None
            if holder is None:
                self._rules.refuse_anonymous_charge(page, dataset)
            elif own is None:
                self._rules.refuse_look_alikes(page, dataset, holder)
            budgets = [(holder_name(dataset, None), total)]
            if own is not None and own.granted:
                budgets.append((holder_name(dataset, holder), own))
            for who, account in budgets:
                self._rules.check_policy(who, account, fingerprint, partial(page.policy_text, account))
            for who, account in budgets:
                self._rules.check_budget(who, account, in_all, given=given, dataset=dataset)
            if table is not None:
                self._tables.check_in(page, dataset, table)
            noted = scales.noted(page)
            left = min(account.remaining for _, account in budgets)
            receipts: list[Receipt] = []
            for amount, note in listed:
                pins = total.policy is None and fingerprint is not None
                entry = page.append(
                    kind="charge",
                    dataset=dataset,
                    analyst=holder,
                    epsilon=amount,
                    policy=fingerprint,
                    policy_text=text if pins else None,
                    what=note,
                )
                if pins:
                    total = replace(total, policy=fingerprint, policy_entry=entry.number)
                left -= amount
                receipts.append(Receipt(entry=entry.number, hash=entry.hash, remaining=left))
            if table is not None:
                self._tables.note(page, dataset, holder, table)
            self._leakage.note(page, dataset, holder, noted)
            page.move(dataset, None, replace(total, spent=total.spent + in_all))
            if holder is not None:
                before = own or RunningSum()
                page.move(dataset, holder, replace(before, spent=before.spent + in_all), is_new=own is None)
            if coins is not None:
                raise_lines(page, dataset, *coins, receipts[-1].entry)
            if kept is not None:
                keep_contents(page, dataset, *kept)
            if run is not None:
                numbers = {"first": receipts[0].entry, "last": receipts[-1].entry}
                about = checked_note(job, file=file)
                page.put(RUNS, {"run": run, "job": about, "state": "reserved", **numbers})
            return receipts

        while True:
            try:
                return self._book.write(work)
            except NotComparedYet as asked:
                question = asked
            except NotWeighedYet:
                scales.weigh()
                continue
            # Outside the transaction: comparing two policies may take long, and the others should not wait.
            assert policy is not None  # noqa: S101 - only a policy raises the question
            self._rules.compare(question, policy)

    def coins(self, *, dataset: str, lines: Sequence[str], source: str = "") -> CoinState:
        """Return the secret of a data set's coins, and how far these lines were paid for; begin with a new secret.

        Each `source` has lines of its own; what has no name is the same source.
        """
        return self._coins.state(self._book.dataset(dataset), lines, source)

    def coins_begun(self, *, dataset: str, lines: Sequence[str], source: str = "") -> CoinState | None:
        """Return the same of a data set that has such coins already, and write nothing; None if it has none."""
        return self._coins.begun(self._book.dataset(dataset), lines, source)

    def were_shown(self, *, dataset: str, kept: tuple[CoinState, Contents]) -> None:
        """Note that what was reserved is shown with what its files held, before it is handed out.

        Raises:
            DataRefused: If somebody else has taken that back meanwhile; nothing may be shown then.
        """
        self._coins.were_shown(self._book.dataset(dataset), *kept)

    def were_not_shown(self, *, dataset: str, kept: tuple[CoinState, Contents]) -> None:
        """Take back what files held, after a refusal that showed nothing of them: they may be repaired."""
        self._coins.were_not_shown(self._book.dataset(dataset), *kept)

    def coin_lines(self, *, dataset: str) -> list[Fraction]:
        """Return the epsilon that each line of coins of a data set was paid for; a rotation forgets all of them."""
        return self._coins.paid_lines(self._book.dataset(dataset))

    def rotate_coins(self, *, dataset: str) -> None:
        """Forget the coins of a data set: from now on true records have new ones, and are charged anew."""
        self._coins.rotate(self._book.dataset(dataset))

    def limit_leakage(self, *, dataset: str, applications: Applications, replace: bool = False) -> LedgerEntry | None:
        """Let limits on what applications learn hold for a data set from now on; None if the same hold already.

        What was shown before counts. Other limits than those that hold are refused unless `replace` says that they
        take their place, as after a change of the dependence.

        Raises:
            LedgerError: If others hold.
            PlanError: If their dependence is unprotected.
        """
        return self._leakage.limit(self._book.dataset(dataset), applications, replace=replace)

    def check_leakage(
        self, *, dataset: str, applications: Applications | None, weighing: WeighingRequest | None
    ) -> None:
        """Refuse limits, and what would be shown under them, with the sentence that `reserve` would give.

        Nothing is written.
        """
        self._leakage.check(self._book.dataset(dataset), applications, weighing)

    def check_table(self, *, dataset: str, table: TableNote) -> None:
        """Refuse a table that would undo what another one promises, as `reserve` would. Nothing is written."""
        self._tables.check(self._book.dataset(dataset), table)

    def shown(self, *, dataset: str) -> list[Shown]:
        """Return everything that applications were shown of single records of a data set, in order."""
        return self._leakage.shown(self._book.dataset(dataset))

    def leakage(self, *, dataset: str) -> list[Standing]:
        """Return what coalitions could know after the last release that showed single records."""
        return self._leakage.standing(self._book.dataset(dataset))

    def receipt(self, *, dataset: str, entry: int, analyst: str | None = None) -> Receipt:
        """Return the receipt of an entry that was written before, with what remains now."""

        def work(page: Page) -> LedgerEntry:
            found = page.entry_at(entry)
            if found is None:
                raise page.damaged(f"entry {entry} is gone")
            return found

        left = self.remaining(dataset=dataset, analyst=analyst)
        return Receipt(entry=entry, hash=self._book.read(work).hash, remaining=left)

    def check_policies(self, *, dataset: str, policies: Sequence[LedgerPolicy], analyst: str | None = None) -> None:
        """Refuse policies that could not be charged to one account, in this order. Nothing is charged.

        Raises:
            LedgerError: With the sentence that the charge would give.
        """
        dataset, holder = self._book.dataset(dataset), self._book.analyst(analyst)
        for policy in policies:
            fingerprint = checked_policy(policy, file=self._store.name)

            def work(page: Page, fingerprint: str | None = fingerprint) -> None:
                found = page.accounts(dataset, holder)
                total, own = self._total(page, dataset, found), found.get(holder) if holder else None
                if total.policy is None:  # the first one will give it its policy
                    text, first = policies[0].to_yaml(), replace(total, policy=policies[0].fingerprint)
                    self._rules.check_policy(holder_name(dataset, None), first, fingerprint, lambda: text)
                else:
                    text_of = partial(page.policy_text, total)
                    self._rules.check_policy(holder_name(dataset, None), total, fingerprint, text_of)
                if own is not None and own.granted:
                    text_of = partial(page.policy_text, own)
                    self._rules.check_policy(holder_name(dataset, holder), own, fingerprint, text_of)

            while True:
                try:
                    self._book.read(work)
                    break
                except NotComparedYet as asked:
                    question = asked
                self._rules.compare(question, policy)

    def ended(self, run: str, *, lost: bool = False) -> None:
        """Note that a run that has reserved budget has published everything, or that what it did not is lost."""

        def work(page: Page) -> None:
            for row in page.rows(RUNS, [(run,)]).values():
                page.put(RUNS, {**row, "state": "lost" if lost else "finished"})

        self._book.write(work)

    def runs(self) -> list[Run]:
        """Return the runs of jobs that have reserved budget, by their first entry."""

        def work(page: Page) -> list[Run]:
            found = page.found(RUNS, select(RUNS).order_by(RUNS.c.first))
            if any(odd_run(row) for row in found):
                raise page.damaged("what it says of a run cannot be read")
            return [Run(**row) for row in found]

        return self._book.read(work)

    def remaining(self, *, dataset: str, analyst: str | None = None) -> Fraction:
        """Return what may still be charged to the data set, by `analyst` if given.

        Raises:
            LedgerError: If the data set has no budget.
        """
        dataset, holder = self._book.dataset(dataset), self._book.analyst(analyst)

        def work(page: Page) -> Fraction:
            found = page.accounts(dataset, holder)
            left = self._total(page, dataset, found).remaining
            own = found.get(holder) if holder else None
            return min(left, own.remaining) if own is not None and own.granted else left

        return self._book.read(work)

    def accounts(self) -> list[Account]:
        """Return every total and every cap, by data set, the total first.

        Analysts who have charged but have no cap are not accounts; their charges are in `entries`.
        """

        def work(page: Page) -> list[Account]:
            stored = page.found(ACCOUNTS, select(ACCOUNTS).order_by(ACCOUNTS.c.dataset, ACCOUNTS.c.analyst))
            sums = {(row["dataset"], row["analyst"]): page.running_sum(row) for row in stored}
            granted = select(ENTRIES.c.dataset, ENTRIES.c.analyst).where(ENTRIES.c.kind == "grant").distinct()
            for dataset, analyst in page.db.execute(granted):
                if (dataset, analyst or TOTAL) not in sums:
                    raise page.damaged(f"the running sums of {holder_name(dataset, analyst)} are gone")
            nothing = RunningSum()
            return [
                Account(
                    dataset=dataset,
                    analyst=analyst or None,
                    policy=account.policy,
                    granted=account.granted,
                    spent=account.spent,
                    remaining=min(account.remaining, sums.get((dataset, TOTAL), nothing).remaining),
                    policy_text=page.policy_text(account),
                )
                for (dataset, analyst), account in sums.items()
                if account.granted
            ]

        return self._book.read(work)

    def entries(self, dataset: str | None = None) -> list[LedgerEntry]:
        """Return all entries in the order in which they were written, of one data set if given.

        Raises:
            LedgerError: If somebody has changed an entry, taken one out or put one in, of whichever data set.
        """
        name = None if dataset is None else self._book.dataset(dataset)
        return self._book.read(lambda page: page.entries(name))

    def statement(self, *, dataset: str) -> Statement:
        """Return what all charges to a data set promise together: along the edges that all their policies have.

        Raises:
            LedgerError: If the data set has no budget, or somebody has changed what the promise rests on.
        """
        name = self._book.dataset(dataset)

        def work(page: Page) -> Statement:
            total = self._total(page, name, page.accounts(name, None))
            account = Account(
                dataset=name,
                analyst=None,
                policy=total.policy,
                granted=total.granted,
                spent=total.spent,
                remaining=total.remaining,
                policy_text=page.policy_text(total),
            )
            said = stated(account, page.entries(name))
            if sum(part.epsilon for part in said.parts) != total.spent:
                raise page.damaged(f"the charges to dataset {name!r} do not add up to what was spent of its total")
            return said

        return self._book.read(work)

    def verify(self) -> Verification:
        """Walk the hash chain from the first entry to the head row, add all sums up again, and look at every seal.

        Reads everything; see `tacit.ledger.store.verification` for what can and cannot be found.
        """
        return self._store.read(lambda db: verified(db, self._seal)[0], anyhow=True)

    def problem(self) -> str | None:
        """Return why nothing may be charged here as it stands, None if all is well at the end of the ledger.

        That is quick however long the ledger is: what a charge rests on is looked at when it is read. `verify` reads
        everything.
        """
        return self._book.problem()

    def _may_stay_silent(self, page: Page, account: RunningSum, fingerprint: str | None) -> bool:
        """Say whether a grant may leave out the policy, because the account has got it from a charge."""
        entry = page.policy_entry(account)
        return fingerprint is None and entry is not None and entry.kind == "charge"

    def _total(self, page: Page, dataset: str, found: dict[str, RunningSum]) -> RunningSum:
        total = found.get(TOTAL)
        if total is not None:
            return total
        raise self._rules.no_budget(page, dataset)
