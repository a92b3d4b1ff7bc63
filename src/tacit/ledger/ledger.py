"""The budget ledger: how much may leak about each data set, what has leaked so far, and proof that nobody edited it.

Guarantee   What all charges against a data set add up to never exceeds what was granted to it, nor an analyst's
            charges that analyst's cap, whatever number of processes charge at once and whenever they are killed.
            A charge that was acknowledged is never lost. Sums are exact fractions. What is reserved together is
            charged together or not at all. All charges under a policy, from the first on, cover one policy.
Assumes     Everyone who releases from a data set charges the same ledger. Charges trust the running sums; `verify`
            adds them up again from the entries and walks the hash chain (see `chain` for what that finds).
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
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, insert, inspect, select, update

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
from tacit.ledger.chain import (
    ACCOUNT_TYPES,
    ENTRY_TYPES,
    NOTHING_BEFORE,
    TOTAL,
    Entry,
    Seal,
    Stored,
    Verdict,
    amount_of,
    examined,
    odd_field,
    odd_run,
    unfit_head,
    with_runs,
    wrong_key,
)
from tacit.ledger.coins import CoinState, Reached, begin, raise_lines, read_state
from tacit.ledger.input import (
    Amount,
    LedgerPolicy,
    checked_key,
    checked_name,
    checked_note,
    checked_policy,
    exact_epsilon,
)
from tacit.ledger.rules import Rules
from tacit.ledger.statement import Statement, stated
from tacit.ledger.store import Store, rows, streamed, tolerant
from tacit.ledger.tables import ACCOUNTS, ENTRIES, HEAD, RUNS, strange
from tacit.plan.leakage.shown import Shown

__all__ = ["Account", "Entry", "Ledger", "Receipt", "Run", "Statement", "Verdict", "exact_epsilon"]

# Charges of 1/3, 1/7, 1/11 .. make a sum that never stops growing, and a charge must stay cheap.
SUM_DIGITS = 1000


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
        self._rules = Rules(self._store.name)

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
    ) -> Entry:
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

    def grant_once(self, *, dataset: str, epsilon: Amount, policy: LedgerPolicy | None = None) -> Entry | None:
        """Grant a total unless the data set has one, in one transaction; None if it had one.

        However many processes do this at once, one of them grants.
        """
        return self._grant(dataset, epsilon, None, policy, only_first=True)

    def _grant(
        self, dataset: str, epsilon: Amount, analyst: str | None, policy: LedgerPolicy | None, *, only_first: bool
    ) -> Entry | None:
        amount = exact_epsilon(epsilon, file=self._store.name)
        dataset, holder = self._dataset(dataset), self._analyst(analyst)
        fingerprint = checked_policy(policy, file=self._store.name)
        text = policy.to_yaml() if policy is not None else None

        def work(db: Connection) -> Entry | None:
            head = self._sound_head(db)
            account = self._accounts(db, dataset, holder).get(holder or TOTAL)
            if only_first and account is not None and account.granted:
                return None
            if account is None:
                self._rules.refuse_look_alikes(db, dataset, holder)
            elif (
                account.granted
                and account.policy != fingerprint
                and not self._may_stay_silent(db, account, fingerprint)
            ):
                raise LedgerError(
                    f"policy of a grant must be the one of the earlier grants to {holder_name(dataset, holder)}, "
                    f"which is {policy_name(account.policy)}",
                    given=policy_name(fingerprint),
                    file=self._store.name,
                    fix="Grant under that policy, or give the data set another name in the ledger.",
                )
            entry = self._append(
                db,
                head,
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
            self._move(db, dataset, holder, new, is_new=account is None)
            return entry

        return self._store.write(work)

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
        weighing: Weighing | None = None,
    ) -> list[Receipt]:
        """Charge several epsilons, each with its note, in one transaction: all of them or none.

        With `run`, a text that no other run has, the ledger keeps until `ended` that the run is under way. `coins` are
        what was read of lines of coins, and what they have reached with these charges. `weighing` says what is shown of
        single records, and is held against the limits on what applications learn, also where nothing is charged.

        Raises:
            BudgetExceeded: If less remains than they add up to, or a coalition would learn more than its limit;
                nothing is written.
            LedgerError: As for `charge`; nothing is written.
        """
        if charges:
            return self._pay(dataset, charges, analyst, policy, run=run, job=job, coins=coins, weighing=weighing)
        if weighing is not None:
            self._show(dataset, analyst, weighing)
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
        weighing: Weighing | None = None,
    ) -> list[Receipt]:
        file = self._store.name
        listed = [(exact_epsilon(epsilon, file=file), checked_note(what, file=file)) for epsilon, what in charges]
        dataset, holder = self._dataset(dataset), self._analyst(analyst)
        fingerprint = checked_policy(policy, file=file)
        text = None if policy is None else policy.to_yaml()
        in_all = sum((amount for amount, _ in listed), Fraction(0))
        given: Any = charges[0][0] if len(charges) == 1 else shown(in_all)

        def work(db: Connection) -> list[Receipt]:
            head = self._sound_head(db)
            found = self._accounts(db, dataset, holder)
            total, own = self._total(db, dataset, found), found.get(holder) if holder else None
            if holder is None:
                self._rules.refuse_anonymous_charge(db, dataset)
            elif own is None:
                self._rules.refuse_look_alikes(db, dataset, holder)
            budgets = [(holder_name(dataset, None), total)]
            if own is not None and own.granted:
                budgets.append((holder_name(dataset, holder), own))
            for who, account in budgets:
                self._rules.check_policy(who, account, fingerprint, partial(self._policy_text, db, account))
            for who, account in budgets:
                self._rules.check_budget(who, account, in_all, given=given, dataset=dataset)
            noted = self._weighed(db, dataset, weighing)
            left = min(account.remaining for _, account in budgets)
            receipts: list[Receipt] = []
            for amount, note in listed:
                pins = total.policy is None and fingerprint is not None
                entry = self._append(
                    db,
                    head,
                    kind="charge",
                    dataset=dataset,
                    analyst=holder,
                    epsilon=amount,
                    policy=fingerprint,
                    policy_text=text if pins else None,
                    what=note,
                )
                head = {**head, "count": entry.number, "head": entry.hash}
                if pins:
                    total = replace(total, policy=fingerprint, policy_entry=entry.number)
                left -= amount
                receipts.append(Receipt(entry=entry.number, hash=entry.hash, remaining=left))
            if noted is not None:
                self._note(db, head, SHOWN, dataset, holder, None, noted)
            self._move(db, dataset, None, replace(total, spent=total.spent + in_all))
            if holder is not None:
                before = own or RunningSum()
                self._move(db, dataset, holder, replace(before, spent=before.spent + in_all), is_new=own is None)
            if coins is not None:
                raise_lines(db, dataset, *coins, receipts[-1].entry, self._seal)
            if run is not None:
                numbers = {"first": receipts[0].entry, "last": receipts[-1].entry}
                about = checked_note(job, file=file)
                db.execute(insert(RUNS).values(run=run, job=about, state="reserved", **numbers))
            return receipts

        while True:
            try:
                return self._store.write(work)
            except NotComparedYet as asked:
                question = asked
            # Outside the transaction: comparing two policies may take long, and the others should not wait.
            assert policy is not None  # noqa: S101 - only a policy raises the question
            self._rules.compare(question, policy)

    def coins(self, *, dataset: str, lines: Sequence[str], source: str = "") -> CoinState:
        """Return the secret of a data set's coins, and how far these lines were paid for; begin with a new secret.

        Each `source` has lines of its own; what has no name is the same source.
        """
        name = self._dataset(dataset)
        found = self.coins_begun(dataset=name, lines=lines, source=source)

        def work(db: Connection) -> CoinState | None:
            self._sound_head(db)
            if read_state(db, name, lines, self._seal, source) is None:  # no other process was faster
                self._begin_coins(db, name)
            return read_state(db, name, lines, self._seal, source)

        if found is None:
            found = self._store.write(work)
        assert found is not None  # noqa: S101 - it was begun
        return found

    def coins_begun(self, *, dataset: str, lines: Sequence[str], source: str = "") -> CoinState | None:
        """Return the same of a data set that has such coins already, and write nothing; None if it has none."""
        name = self._dataset(dataset)
        return self._store.read(lambda db: read_state(db, name, lines, self._seal, source))

    def rotate_coins(self, *, dataset: str) -> None:
        """Forget the coins of a data set: from now on true records have new ones, and are charged anew."""
        name = self._dataset(dataset)

        def work(db: Connection) -> None:
            self._sound_head(db)
            self._begin_coins(db, name)

        self._store.write(work)

    def _begin_coins(self, db: Connection, dataset: str) -> None:
        if self._seal.key is None:  # else the secret is not in the file
            self._store.close_to_others()
        begin(db, dataset, self._seal)

    def receipt(self, *, dataset: str, entry: int, analyst: str | None = None) -> Receipt:
        """Return the receipt of an entry that was written before, with what remains now."""
        wanted = select(ENTRIES.c.hash).where(ENTRIES.c.number == entry)
        found: str = self._store.read(lambda db: db.execute(wanted).scalar_one())
        return Receipt(entry=entry, hash=found, remaining=self.remaining(dataset=dataset, analyst=analyst))

    def limit_leakage(self, *, dataset: str, applications: Applications, replace: bool = False) -> Entry | None:
        """Let limits on what applications learn hold for a data set from now on; None if the same hold already.

        What was shown before counts. Other limits than those that hold are refused unless `replace` says that they
        take their place, as after a change of the dependence.

        Raises:
            LedgerError: If others hold.
            PlanError: If their dependence is unprotected.
        """
        applications.check_public()
        name = self._dataset(dataset)

        def work(db: Connection) -> Entry | None:
            head = self._sound_head(db)
            if self._holds_already(db, name, applications, replace=replace):
                return None
            noted = limits_words(applications)
            return self._note(db, head, LIMITS, name, None, applications.fingerprint, noted)

        return self._store.write(work)

    def check_leakage(self, *, dataset: str, applications: Applications | None, weighing: Weighing | None) -> None:
        """Refuse limits, and what would be shown under them, with the sentence that `reserve` would give.

        Nothing is written.
        """
        name = self._dataset(dataset)

        def work(db: Connection) -> None:
            if applications is not None:
                self._holds_already(db, name, applications)
            self._weighed(db, name, weighing)

        self._store.read(work)

    def _holds_already(
        self, db: Connection, dataset: str, applications: Applications, *, replace: bool = False
    ) -> bool:
        """Say whether just these limits hold for a data set; refuse others than those that hold, unless `replace`."""
        held = limits_in(self._application_entries(db, dataset))
        if held not in (None, applications.fingerprint) and not replace:
            raise LedgerError(
                f"must be those that hold for dataset {dataset!r} already, {held[:12]}",
                key="leakage",
                given=applications.fingerprint[:12],
                file=self._store.name,
                fix="Use these, or say ledger.limit_leakage(.., replace=True) after a change of the dependence.",
            )
        return held == applications.fingerprint

    def shown(self, *, dataset: str) -> list[Shown]:
        """Return everything that applications were shown of single records of a data set, in order."""
        name = self._dataset(dataset)
        return self._store.read(lambda db: shown_in(self._application_entries(db, name)))

    def leakage(self, *, dataset: str) -> list[Standing]:
        """Return what coalitions could know after the last release that showed single records."""
        name = self._dataset(dataset)
        return self._store.read(lambda db: standing_in(self._application_entries(db, name)))

    def _show(self, dataset: str, analyst: str | None, weighing: Weighing) -> None:
        """Note what is shown at no cost, because its coins were paid for, or refuse it."""
        name, holder = self._dataset(dataset), self._analyst(analyst)

        def work(db: Connection) -> None:
            head = self._sound_head(db)
            noted = self._weighed(db, name, weighing)
            if noted is not None:
                self._note(db, head, SHOWN, name, holder, None, noted)

        self._store.write(work)

    def _weighed(self, db: Connection, dataset: str, weighing: Weighing | None) -> tuple[str, str] | None:
        """Return what is to be noted of a release that shows single records, or refuse it; None if it shows none."""
        if weighing is None or not weighing.shown:
            return None
        history = self._application_entries(db, dataset)
        return weighing.noted(history, dataset=dataset, file=self._store.name)

    def _application_entries(self, db: Connection, dataset: str) -> list[Stored]:
        mine = (ENTRIES.c.dataset == dataset) & ENTRIES.c.kind.in_([LIMITS, SHOWN])
        found = rows(db, select(ENTRIES).where(mine).order_by(ENTRIES.c.number))
        if any(self._seal.of_entry(row) != row["hash"] for row in found):
            raise self._damaged("what it says of applications was changed")
        return found

    def _note(
        self,
        db: Connection,
        head: Stored,
        kind: str,
        dataset: str,
        analyst: str | None,
        fingerprint: str | None,
        noted: tuple[str, str],
    ) -> Entry:
        """Append an entry that spends nothing: its words, and the document that is read back."""
        what, document = noted
        return self._append(
            db,
            head,
            kind=kind,
            dataset=dataset,
            analyst=analyst,
            epsilon=Fraction(0),
            policy=fingerprint,
            policy_text=document,
            what=checked_note(what, file=self._store.name),
        )

    def check_policies(self, *, dataset: str, policies: Sequence[LedgerPolicy], analyst: str | None = None) -> None:
        """Refuse policies that could not be charged to one account, in this order. Nothing is charged.

        Raises:
            LedgerError: With the sentence that the charge would give.
        """
        dataset, holder = self._dataset(dataset), self._analyst(analyst)
        for policy in policies:
            fingerprint = checked_policy(policy, file=self._store.name)

            def work(db: Connection, fingerprint: str | None = fingerprint) -> None:
                found = self._accounts(db, dataset, holder)
                total, own = self._total(db, dataset, found), found.get(holder) if holder else None
                if total.policy is None:  # the first one will give it its policy
                    text, first = policies[0].to_yaml(), replace(total, policy=policies[0].fingerprint)
                    self._rules.check_policy(holder_name(dataset, None), first, fingerprint, lambda: text)
                else:
                    text_of = partial(self._policy_text, db, total)
                    self._rules.check_policy(holder_name(dataset, None), total, fingerprint, text_of)
                if own is not None and own.granted:
                    text_of = partial(self._policy_text, db, own)
                    self._rules.check_policy(holder_name(dataset, holder), own, fingerprint, text_of)

            while True:
                try:
                    self._store.read(work)
                    break
                except NotComparedYet as asked:
                    question = asked
                self._rules.compare(question, policy)

    def ended(self, run: str, *, lost: bool = False) -> None:
        """Note that a run that has reserved budget has published everything, or that what it did not is lost."""

        def work(db: Connection) -> None:
            self._store.locked_head(db)
            db.execute(update(RUNS).where(RUNS.c.run == run).values(state="lost" if lost else "finished"))

        self._store.write(work)

    def runs(self) -> list[Run]:
        """Return the runs of jobs that have reserved budget, by their first entry."""

        def work(db: Connection) -> list[Run]:
            if not inspect(db).has_table(RUNS.name):  # a ledger of an older Tacit
                return []
            found = rows(db, select(RUNS).order_by(RUNS.c.first))
            if any(odd_run(row) for row in found):
                raise self._damaged("what it says of a run cannot be read")
            return [Run(**row) for row in found]

        return self._store.read(work)

    def remaining(self, *, dataset: str, analyst: str | None = None) -> Fraction:
        """Return what may still be charged to the data set, by `analyst` if given.

        Raises:
            LedgerError: If the data set has no budget.
        """
        dataset, holder = self._dataset(dataset), self._analyst(analyst)

        def work(db: Connection) -> Fraction:
            found = self._accounts(db, dataset, holder)
            left = self._total(db, dataset, found).remaining
            own = found.get(holder) if holder else None
            return min(left, own.remaining) if own is not None and own.granted else left

        return self._store.read(work)

    def accounts(self) -> list[Account]:
        """Return every total and every cap, by data set, the total first.

        Analysts who have charged but have no cap are not accounts; their charges are in `entries`.
        """

        def work(db: Connection) -> list[Account]:
            stored = rows(db, select(ACCOUNTS).order_by(ACCOUNTS.c.dataset, ACCOUNTS.c.analyst))
            sums = {(row["dataset"], row["analyst"]): self._sum(row) for row in stored}
            nothing = RunningSum()
            return [
                Account(
                    dataset=dataset,
                    analyst=analyst or None,
                    policy=account.policy,
                    granted=account.granted,
                    spent=account.spent,
                    remaining=min(account.remaining, sums.get((dataset, TOTAL), nothing).remaining),
                    policy_text=self._policy_text(db, account),
                )
                for (dataset, analyst), account in sums.items()
                if account.granted
            ]

        return self._store.read(work)

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """Return all entries in the order in which they were written, of one data set if given."""
        statement = select(ENTRIES).order_by(ENTRIES.c.number)
        if dataset is not None:
            statement = statement.where(ENTRIES.c.dataset == self._dataset(dataset))
        return self._store.read(lambda db: [self._entry(row) for row in rows(db, statement)])

    def statement(self, *, dataset: str) -> Statement:
        """Return what all charges to a data set promise together: along the edges that all their policies have.

        Raises:
            LedgerError: If the data set has no budget.
        """
        name = self._dataset(dataset)

        def work(db: Connection) -> Statement:
            total = self._total(db, name, self._accounts(db, name, None))
            account = Account(
                dataset=name,
                analyst=None,
                policy=total.policy,
                granted=total.granted,
                spent=total.spent,
                remaining=total.remaining,
                policy_text=self._policy_text(db, total),
            )
            mine = select(ENTRIES).where(ENTRIES.c.dataset == name).order_by(ENTRIES.c.number)
            return stated(account, [self._entry(row) for row in rows(db, mine)])

        return self._store.read(work)

    def verify(self) -> Verdict:
        """Walk the hash chain from the first entry to the head row and add the running sums up again.

        Reads everything; see `tacit.ledger.chain` for what can and cannot be found.
        """

        def work(db: Connection) -> Verdict:
            tolerant(db)
            if found := strange(db):
                problem = f"changed: holds the {found}, which Tacit did not make"
                return Verdict(ok=False, entries=0, head="", problem=problem)
            head = next(iter(rows(db, select(HEAD))), None)
            in_order = select(ENTRIES).order_by(ENTRIES.c.number)
            verdict = examined(head, lambda: streamed(db, in_order), rows(db, select(ACCOUNTS)), self._seal)
            runs = rows(db, select(RUNS)) if inspect(db).has_table(RUNS.name) else []
            return verdict if not verdict.ok else with_runs(verdict, runs)

        return self._store.read(work, anyhow=True)

    def _sound_head(self, db: Connection) -> Stored:
        """Return the head row, locked; refuse to write behind an entry that it does not fit."""
        head = self._store.locked_head(db)
        if why := wrong_key(head, self._seal):
            raise LedgerError(
                f"cannot be written to: {why}",
                file=self._store.name,
                fix="Set TACIT_LEDGER_KEY to the key that it was started with, or unset it if there was none.",
            )
        newest = select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1)
        last = next(iter(rows(db, newest)), None)
        if problem := unfit_head(head, last, self._seal):
            raise LedgerError(
                f"is damaged ({problem}), so nothing more may be written",
                file=self._store.name,
                fix="Put the last good copy back; `tacit ledger verify` tells which one is good.",
            )
        return head

    def _append(
        self,
        db: Connection,
        head: Stored,
        *,
        kind: str,
        dataset: str,
        analyst: str | None,
        epsilon: Fraction,
        policy: str | None,
        policy_text: str | None,
        what: str,
    ) -> Entry:
        row: dict[str, Any] = {
            "number": head["count"] + 1,
            "time": datetime.now(UTC).isoformat(timespec="microseconds"),
            "kind": kind,
            "dataset": dataset,
            "analyst": analyst,
            "epsilon": str(epsilon),
            "policy": policy,
            "policy_text": policy_text,
            "what": what,
            "previous": head["head"] if head["count"] else NOTHING_BEFORE,
        }
        row["hash"] = self._seal.of_entry(row)
        db.execute(insert(ENTRIES).values(**row))
        seal = self._seal.of_head(count=row["number"], head=row["hash"])
        moved = update(HEAD).where(HEAD.c.id == 1)
        db.execute(moved.values(count=row["number"], head=row["hash"], seal=seal))
        return self._entry(row)

    def _move(
        self, db: Connection, dataset: str, analyst: str | None, new: RunningSum, *, is_new: bool = False
    ) -> None:
        """Move the running sums of one account, in the transaction that wrote the entries."""
        fields: dict[str, Any] = {
            "granted": self._sum_text(new.granted),
            "spent": self._sum_text(new.spent),
            "policy": new.policy,
            "first_grant": new.policy_entry,
        }
        if is_new:
            db.execute(insert(ACCOUNTS).values(dataset=dataset, analyst=analyst or TOTAL, **fields))
        else:
            mine = (ACCOUNTS.c.dataset == dataset) & (ACCOUNTS.c.analyst == (analyst or TOTAL))
            db.execute(update(ACCOUNTS).where(mine).values(**fields))

    def _may_stay_silent(self, db: Connection, account: RunningSum, fingerprint: str | None) -> bool:
        """Say whether a grant may leave out the policy, because the account has got it from a charge."""
        kind = select(ENTRIES.c.kind).where(ENTRIES.c.number == account.policy_entry)
        return fingerprint is None and db.execute(kind).scalar_one_or_none() == "charge"

    def _accounts(self, db: Connection, dataset: str, analyst: str | None) -> dict[str, RunningSum]:
        mine = (ACCOUNTS.c.dataset == dataset) & ACCOUNTS.c.analyst.in_([TOTAL, analyst or TOTAL])
        return {row["analyst"]: self._sum(row) for row in rows(db, select(ACCOUNTS).where(mine))}

    def _total(self, db: Connection, dataset: str, found: dict[str, RunningSum]) -> RunningSum:
        total = found.get(TOTAL)
        if total is not None:
            return total
        raise self._rules.no_budget(db, dataset)

    def _policy_text(self, db: Connection, account: RunningSum) -> str | None:
        if account.policy is None:
            return None
        grant = select(ENTRIES.c.policy_text).where(ENTRIES.c.number == account.policy_entry)
        text: str | None = db.execute(grant).scalar_one_or_none()
        return text

    def _entry(self, row: Stored) -> Entry:
        if odd_field(row, ENTRY_TYPES):
            raise self._damaged("an entry in it cannot be read")
        return Entry(**{**row, "epsilon": self._fraction(row["epsilon"])})

    def _sum(self, row: Stored) -> RunningSum:
        if odd_field(row, ACCOUNT_TYPES):
            raise self._damaged("a running sum in it cannot be read")
        granted, spent = self._fraction(row["granted"]), self._fraction(row["spent"])
        return RunningSum(granted, spent, row["policy"], row["first_grant"])

    def _fraction(self, text: str) -> Fraction:
        amount = amount_of(text)
        if amount is None:
            raise self._damaged("an amount in it cannot be read", given=text)
        return amount

    def _damaged(self, why: str, **given: Any) -> LedgerError:
        fix = "Run `tacit ledger verify` and put the last good copy back."
        return LedgerError(f"is damaged: {why}", file=self._store.name, fix=fix, **given)

    def _sum_text(self, amount: Fraction) -> str:
        if amount.denominator >= 10**SUM_DIGITS:
            raise LedgerError(
                f"epsilon would give the running sum a denominator of more than {SUM_DIGITS} digits",
                file=self._store.name,
                fix="Nothing was written. Use an epsilon with a few decimals, such as 0.05.",
            )
        return str(amount)

    def _dataset(self, dataset: str) -> str:
        return checked_name(dataset, key="dataset", file=self._store.name)

    def _analyst(self, analyst: str | None) -> str | None:
        return None if analyst is None else checked_name(analyst, key="analyst", file=self._store.name)
