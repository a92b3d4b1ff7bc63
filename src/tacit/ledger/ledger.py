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
Checked by  tests/unit/ledger/test_ledger.py, tests/contract/test_ledger_backends.py,
            tests/contract/test_ledger_processes.py, tests/contract/test_job_races.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import select

from tacit.drawing import Held
from tacit.errors import LedgerError, kind_of, sealed
from tacit.ledger import chain, coins
from tacit.ledger.accounts import Account, Receipt, Run, RunningSum, Statement, holder_name, policy_name, statement_of
from tacit.ledger.applications import Applications, Standing
from tacit.ledger.chain import ACCOUNTS, ENTRIES, RUNS, TOTAL, LedgerEntry, Seal
from tacit.ledger.clauses import Clause, Limits, last_standing, shown_before
from tacit.ledger.coins import CoinState, Contents
from tacit.ledger.database import Store
from tacit.ledger.input import Amount, checked_key, checked_policy, exact_epsilon
from tacit.ledger.page import Book, Page
from tacit.ledger.payment import LedgerRules, Payment
from tacit.ledger.verification import Verification, verified
from tacit.plan.leakage.shown import Shown
from tacit.policy.policy import Policy

__all__ = ["Account", "Ledger", "LedgerEntry", "Receipt", "Run", "Statement", "Verification", "exact_epsilon"]


class Ledger(Held):
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
        self, where: str | Path, *, key: str | bytes | None = None, wait_seconds: float = 60.0, create: bool = True
    ) -> None:
        if not isinstance(where, str | Path):
            fix = "Name its file."
            raise LedgerError(f"must be a path or a database URL, not {kind_of(where)}", key="ledger", fix=fix)
        self._seal = Seal(checked_key(key))
        self._store = Store(where, seal=self._seal, wait_seconds=wait_seconds, create=create)
        self._rules = LedgerRules(self._store.name)
        self._book = Book(self._store, self._seal)

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
        self, *, dataset: str, epsilon: Amount, analyst: str | None = None, policy: Policy | None = None
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

    def grant_once(self, *, dataset: str, epsilon: Amount, policy: Policy | None = None) -> LedgerEntry | None:
        """Grant a total unless the data set has one, in one transaction; None if it had one.

        However many processes do this at once, one of them grants.
        """
        return self._grant(dataset, epsilon, None, policy, only_first=True)

    def _grant(
        self, dataset: str, epsilon: Amount, analyst: str | None, policy: Policy | None, *, only_first: bool
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
            elif account.granted and account.policy != fingerprint and not _may_omit(page, account, fingerprint):
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
        self, *, dataset: str, epsilon: Amount, analyst: str | None = None, policy: Policy | None = None, what: str = ""
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
        return self._payment(dataset, analyst, policy=policy, charges=[(epsilon, what)]).pay()[0]

    def reserve(
        self,
        *,
        dataset: str,
        charges: Sequence[tuple[Amount, str]],
        analyst: str | None = None,
        policy: Policy | None = None,
        run: str | None = None,
        job: str = "",
        clauses: Sequence[Clause] = (),
    ) -> list[Receipt]:
        """Charge several epsilons, each with its note, in one transaction: all of them or none.

        With `run`, a text that no other run has, the ledger keeps until `ended` that the run is under way. `clauses`
        are what must be kept besides: coins that are raised, what is shown of single records, what a table tells about.
        They are held against what the ledger says, also where nothing is charged; see `were_shown`.

        Raises:
            BudgetExceeded: If less remains than they add up to, or a coalition would learn more than its limit;
                nothing is written.
            LedgerError: As for `charge`; nothing is written.
            PlanError: If a table would undo what another one promises; nothing is written.
        """
        if not charges and not clauses:
            return []
        return self._payment(dataset, analyst, policy=policy, charges=charges, clauses=clauses).pay(run, job)

    def check(self, *, dataset: str, clauses: Sequence[Clause]) -> None:
        """Refuse what clauses would refuse where they are charged, with the same sentence; nothing is written."""
        self._payment(dataset, None, clauses=clauses).check()

    def check_policies(self, *, dataset: str, policies: Sequence[Policy], analyst: str | None = None) -> None:
        """Refuse policies that could not be charged to one account, in this order. Nothing is charged.

        Raises:
            LedgerError: With the sentence that the charge would give.
        """
        for policy in policies:
            self._payment(dataset, analyst, policy=policy, first=policies[0]).check_policy()

    def _payment(self, dataset: str, analyst: str | None, **more: Any) -> Payment:
        return Payment(self._book, self._rules, dataset=dataset, analyst=analyst, **more)

    def coins(self, *, dataset: str, lines: Sequence[str], source: str = "") -> CoinState:
        """Return the secret of a data set's coins, and how far these lines were paid for; begin with a new secret.

        Each `source` has lines of its own; sources without a name are one source.
        """
        return coins.begun_state(self._book, self._book.dataset(dataset), lines, source)

    def coins_begun(self, *, dataset: str, lines: Sequence[str], source: str = "") -> CoinState | None:
        """Return the same of a data set that has such coins already, and write nothing; None if it has none."""
        name = self._book.dataset(dataset)
        return self._book.read(lambda page: coins.read_state(page, name, lines, source))

    def were_shown(self, *, dataset: str, kept: tuple[CoinState, Contents]) -> None:
        """Note that what was reserved is shown with what its files held, before it is handed out.

        Raises:
            DataRefused: If somebody else has taken that back meanwhile; nothing may be shown then.
        """
        name = self._book.dataset(dataset)
        self._book.write(lambda page: coins.settle_contents(page, name, *kept, shown=True))

    def were_not_shown(self, *, dataset: str, kept: tuple[CoinState, Contents]) -> None:
        """Take back what files held, after a refusal that showed nothing of them: they may be repaired."""
        name = self._book.dataset(dataset)
        self._book.write(lambda page: coins.settle_contents(page, name, *kept, shown=False))

    def coin_lines(self, *, dataset: str) -> list[Fraction]:
        """Return the epsilon that each line of coins of a data set was paid for; a rotation forgets all of them."""
        name = self._book.dataset(dataset)
        return self._book.read(lambda page: coins.paid_lines(page, name))

    def rotate_coins(self, *, dataset: str) -> None:
        """Forget the coins of a data set: from now on true records have new ones, and are charged anew."""
        name = self._book.dataset(dataset)
        self._book.write(lambda page: coins.new_coins(self._book, page, name))

    def limit_leakage(self, *, dataset: str, applications: Applications, replace: bool = False) -> LedgerEntry | None:
        """Let limits on what applications learn hold for a data set from now on; None if the same hold already.

        What was shown before counts. Other limits than those that hold are refused unless `replace` says that they
        take their place, as after a change of the dependence.

        Raises:
            LedgerError: If others hold.
            PlanError: If their dependence is unprotected.
        """
        applications.check_public()
        name, limits = self._book.dataset(dataset), Limits(applications, replace=replace)

        def work(page: Page) -> LedgerEntry | None:
            limits.check(page, name)
            return limits.note(page, name, None, None)

        return self._book.write(work)

    def shown(self, *, dataset: str) -> list[Shown]:
        """Return everything that applications were shown of single records of a data set, in order."""
        name = self._book.dataset(dataset)
        return self._book.read(lambda page: shown_before(page, name))

    def leakage(self, *, dataset: str) -> list[Standing]:
        """Return what coalitions could know after the last release that showed single records."""
        name = self._book.dataset(dataset)
        return self._book.read(lambda page: last_standing(page, name))

    def receipt(self, *, dataset: str, entry: int, analyst: str | None = None) -> Receipt:
        """Return the receipt of an entry that was written before, with what remains now."""

        def work(page: Page) -> LedgerEntry:
            found = page.entry_at(entry)
            if found is None:
                raise page.damaged(f"entry {entry} is gone")
            return found

        left = self.remaining(dataset=dataset, analyst=analyst)
        return Receipt(entry=entry, hash=self._book.read(work).hash, remaining=left)

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
            if any(chain.odd_run(row) for row in found):
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
            left = self._rules.total(page, dataset, found).remaining
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
            return [
                _account(page, dataset, analyst or None, account, sums.get((dataset, TOTAL), RunningSum()))
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
            total = self._rules.total(page, name, page.accounts(name, None))
            statement = statement_of(_account(page, name, None, total, total), page.entries(name))
            if sum(part.epsilon for part in statement.parts) != total.spent:
                raise page.damaged(f"the charges to dataset {name!r} do not add up to what was spent of its total")
            return statement

        return self._book.read(work)

    def verify(self) -> Verification:
        """Walk the hash chain from the first entry to the head row, add all sums up again, and look at every seal.

        Reads everything; see `tacit.ledger.verification` for what can and cannot be found.
        """
        return self._store.read(lambda db: verified(db, self._seal)[0], anyhow=True)

    def problem(self) -> str | None:
        """Return why nothing may be charged here as it stands, None if all is well at the end of the ledger.

        That is quick however long the ledger is: what a charge rests on is looked at when it is read. `verify` reads
        everything.
        """
        return self._book.problem()


def _may_omit(page: Page, account: RunningSum, fingerprint: str | None) -> bool:
    """Say whether a grant may leave out the policy, because the account has got it from a charge."""
    entry = page.entry_at(account.policy_entry)
    return fingerprint is None and entry is not None and entry.kind == "charge"


def _account(page: Page, dataset: str, analyst: str | None, sums: RunningSum, total: RunningSum) -> Account:
    return Account(
        dataset=dataset,
        analyst=analyst,
        policy=sums.policy,
        granted=sums.granted,
        spent=sums.spent,
        remaining=min(sums.remaining, total.remaining),
        policy_text=page.policy_text(sums),
    )
