"""The budget ledger: how much may leak about each data set, what has leaked so far, and proof that nobody edited it.

Guarantee   What all charges against a data set add up to never exceeds what was granted to it, nor an analyst's
            charges that analyst's cap, whatever number of processes charge at once and whenever they are killed.
            A charge that was acknowledged is never lost. Sums are exact fractions.
Assumes     Everyone who releases from a data set charges the same ledger. Charges trust the running sums; `verify`
            adds them up again from the entries and walks the hash chain (see `ledger_chain` for what that finds).
Why         Composition adds epsilons, over analysts too, since analysts may pool what they learn: hence one total
            per data set, with caps inside it. A guarantee under a policy holds under every policy with fewer secret
            edges, so a charge whose policy covers the account's counts in full there, and no other charge does.
            One locked transaction reads the sums, compares, appends the entry and moves the sums and the head.
Reference   design.md, "Guarantee" and "What bad input gets": charged before rows are read.
Checked by  tests/unit/test_ledger.py, tests/contract/test_ledger_backends.py, tests/contract/test_ledger_processes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, insert, select, update

from tacit.errors import BudgetExceeded, LedgerError, nearest
from tacit.plan.explain import shown
from tacit.release.ledger_chain import (
    NOTHING_BEFORE,
    TOTAL,
    Entry,
    Seal,
    Stored,
    Verdict,
    examined,
    unfit_head,
    wrong_key,
)
from tacit.release.ledger_input import (
    Amount,
    LedgerPolicy,
    checked_key,
    checked_name,
    checked_note,
    checked_policy,
    exact_epsilon,
)
from tacit.release.ledger_store import ACCOUNTS, ENTRIES, HEAD, Store, rows, streamed

__all__ = ["Account", "Entry", "Ledger", "Receipt", "Verdict", "exact_epsilon"]

# Charges of 1/3, 1/7, 1/11 .. make a sum that never stops growing, and a charge must stay cheap.
SUM_DIGITS = 1000


@dataclass(frozen=True)
class Receipt:
    """Proof of one charge: the number and hash of its entry, and what the analyst may still spend."""

    entry: int
    hash: str
    remaining: Fraction


@dataclass(frozen=True)
class Account:
    """A budget that was granted: a data set's total (`analyst` is None) or one analyst's cap within it.

    `policy` is the fingerprint of the policy that the budget is counted under, `policy_text` the policy itself;
    both None if the account takes charges under any policy. `remaining` of a cap is never more than what remains
    of the total.
    """

    dataset: str
    analyst: str | None
    policy: str | None
    granted: Fraction
    spent: Fraction
    remaining: Fraction
    policy_text: str | None = None


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

    def __init__(
        self,
        where: str | Path,
        *,
        key: str | bytes | None = None,
        wait_seconds: float = 60.0,
        create: bool = True,
    ) -> None:
        self._seal = Seal(checked_key(key))
        self._store = Store(where, seal=self._seal, wait_seconds=wait_seconds, create=create)
        # (policy of an account, policy of a charge) -> does the second cover the first? Comparing may take long.
        self._compared: dict[tuple[str, str], bool] = {}

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
        or none. An account without a policy takes charges under any policy, and its sum then only says something
        about the secret edges that all those policies share.

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
            if account is not None and account.granted and account.policy != fingerprint:
                raise LedgerError(
                    f"policy of a grant must be the one of the earlier grants to {_who(dataset, holder)}, "
                    f"which is {_policy_name(account.policy)}",
                    given=_policy_name(fingerprint),
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
            self._add(db, dataset, holder, account, granted=amount, policy=fingerprint, first_grant=entry.number)
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
        amount = exact_epsilon(epsilon, file=self._store.name)
        dataset, holder = self._dataset(dataset), self._analyst(analyst)
        note = checked_note(what, file=self._store.name)
        fingerprint = checked_policy(policy, file=self._store.name)

        def work(db: Connection) -> Receipt:
            head = self._sound_head(db)
            found = self._accounts(db, dataset, holder)
            total, own = self._total(db, dataset, found), found.get(holder) if holder else None
            if holder is None:
                self._refuse_anonymous_charge(db, dataset)
            budgets = [(_who(dataset, None), total)]
            if own is not None and own.granted:
                budgets.append((_who(dataset, holder), own))
            for who, account in budgets:
                self._check_policy(db, who, account, fingerprint)
            for who, account in budgets:
                self._check_budget(who, account, amount, given=epsilon, dataset=dataset)
            entry = self._append(
                db,
                head,
                kind="charge",
                dataset=dataset,
                analyst=holder,
                epsilon=amount,
                policy=fingerprint,
                policy_text=None,
                what=note,
            )
            self._add(db, dataset, None, total, spent=amount)
            if holder is not None:
                self._add(db, dataset, holder, own, spent=amount)
            left = min(account.remaining for _, account in budgets) - amount
            return Receipt(entry=entry.number, hash=entry.hash, remaining=left)

        while True:
            try:
                return self._store.write(work)
            except _NotComparedYet as asked:
                question = asked
            # Outside the transaction: comparing two policies may take long, and the others should not wait.
            assert policy is not None  # noqa: S101 - only a policy raises the question
            self._compare(question, policy)

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
            nothing = _Sum(Fraction(0), Fraction(0), None, None)
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

    def verify(self) -> Verdict:
        """Walk the hash chain from the first entry to the head row and add the running sums up again.

        Reads everything; see `tacit.release.ledger_chain` for what can and cannot be found.
        """

        def work(db: Connection) -> Verdict:
            head = next(iter(rows(db, select(HEAD))), None)
            in_order = select(ENTRIES).order_by(ENTRIES.c.number)
            return examined(head, lambda: streamed(db, in_order), rows(db, select(ACCOUNTS)), self._seal)

        return self._store.read(work)

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

    def _add(
        self,
        db: Connection,
        dataset: str,
        analyst: str | None,
        before: _Sum | None,
        *,
        granted: Fraction = Fraction(0),
        spent: Fraction = Fraction(0),
        policy: str | None = None,
        first_grant: int | None = None,
    ) -> None:
        """Move the running sums of one account, in the transaction that wrote the entry."""
        old = before or _Sum(Fraction(0), Fraction(0), None, None)
        fields: dict[str, Any] = {
            "granted": self._sum_text(old.granted + granted),
            "spent": self._sum_text(old.spent + spent),
            "policy": old.policy or policy,
            "first_grant": old.first_grant or first_grant,
        }
        if before is None:
            db.execute(insert(ACCOUNTS).values(dataset=dataset, analyst=analyst or TOTAL, **fields))
        else:
            mine = (ACCOUNTS.c.dataset == dataset) & (ACCOUNTS.c.analyst == (analyst or TOTAL))
            db.execute(update(ACCOUNTS).where(mine).values(**fields))

    def _accounts(self, db: Connection, dataset: str, analyst: str | None) -> dict[str, _Sum]:
        mine = (ACCOUNTS.c.dataset == dataset) & ACCOUNTS.c.analyst.in_([TOTAL, analyst or TOTAL])
        return {row["analyst"]: self._sum(row) for row in rows(db, select(ACCOUNTS).where(mine))}

    def _total(self, db: Connection, dataset: str, found: dict[str, _Sum]) -> _Sum:
        total = found.get(TOTAL)
        if total is not None:
            return total
        has_total = ACCOUNTS.c.analyst == TOTAL
        known = list(db.execute(select(ACCOUNTS.c.dataset).where(has_total).order_by(ACCOUNTS.c.dataset)).scalars())
        command = self._grant_command(dataset)
        raise LedgerError(
            "dataset has no budget in this ledger",
            given=dataset,
            file=self._store.name,
            fix=f"{nearest(dataset, known)} Or grant one: {command}." if known else f"Grant one: {command}.",
        )

    def _refuse_anonymous_charge(self, db: Connection, dataset: str) -> None:
        capped = (ACCOUNTS.c.dataset == dataset) & (ACCOUNTS.c.analyst != TOTAL) & (ACCOUNTS.c.granted != "0")
        if db.execute(select(ACCOUNTS.c.analyst).where(capped).limit(1)).first() is not None:
            raise LedgerError(
                f"analyst must be given: dataset {dataset!r} has caps for single analysts",
                file=self._store.name,
                fix='Say who asks, as in charge(.., analyst="ana").',
            )

    def _check_budget(self, who: str, account: _Sum, amount: Fraction, *, given: Amount, dataset: str) -> None:
        if amount <= account.remaining:
            return
        raise BudgetExceeded(
            f"must fit in what remains of {who}: {shown(account.remaining)} of {shown(account.granted)}",
            key="epsilon",
            given=given,
            file=self._store.name,
            fix=f"Nothing was charged. Ask for less, or grant more: {self._grant_command(dataset)}.",
        )

    def _check_policy(self, db: Connection, who: str, account: _Sum, fingerprint: str | None) -> None:
        if account.policy is None:
            return
        if fingerprint is None:
            raise LedgerError(
                f"policy must be given: {who} is counted under {_policy_name(account.policy)}",
                file=self._store.name,
                fix="Nothing was charged. Pass the policy that the release keeps, as in charge(.., policy=policy).",
            )
        if fingerprint == account.policy:
            return
        pair = (account.policy, fingerprint)
        if pair not in self._compared:
            raise _NotComparedYet(pair, self._policy_text(db, account) or "")
        if not self._compared[pair]:
            raise LedgerError(
                f"the release's policy protects less than the one {who} is counted under, "
                f"{_policy_name(account.policy)}: not every secret edge of that is one of the release's",
                given=_policy_name(fingerprint),
                file=self._store.name,
                fix="Nothing was charged. Release under the account's policy or one that covers it: "
                "a release that protects more than the account asks is allowed, never less.",
            )

    def _compare(self, question: _NotComparedYet, policy: LedgerPolicy) -> None:
        asked = question.pair[0]
        try:
            granted = type(policy).from_yaml(question.text)
            unchanged = granted.fingerprint == asked
        except Exception:  # whatever a reader of files may raise, the sentence is the same
            unchanged = False
        if not unchanged:
            raise LedgerError(
                f"the stored text of {_policy_name(asked)} can no longer be read as that policy",
                file=self._store.name,
                fix="Run `tacit ledger verify`; if the ledger is sound, charge with the Tacit that wrote it.",
            )
        self._compared[question.pair] = bool(policy.covers(granted))

    def _policy_text(self, db: Connection, account: _Sum) -> str | None:
        if account.policy is None:
            return None
        grant = select(ENTRIES.c.policy_text).where(ENTRIES.c.number == account.first_grant)
        text: str | None = db.execute(grant).scalar_one_or_none()
        return text

    def _entry(self, row: Stored) -> Entry:
        return Entry(**{**row, "epsilon": self._fraction(row["epsilon"])})

    def _sum(self, row: Stored) -> _Sum:
        granted, spent = self._fraction(row["granted"]), self._fraction(row["spent"])
        return _Sum(granted, spent, row["policy"], row["first_grant"])

    def _fraction(self, text: str) -> Fraction:
        try:
            return Fraction(text)
        except (TypeError, ValueError, ZeroDivisionError):
            raise LedgerError(
                "is damaged: an amount in it cannot be read",
                given=text,
                file=self._store.name,
                fix="Run `tacit ledger verify` and put the last good copy back.",
            ) from None

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

    def _grant_command(self, dataset: str) -> str:
        return f"`tacit ledger grant {quote(self._store.name)} --dataset {quote(dataset)} --epsilon 1`"


@dataclass(frozen=True)
class _Sum:
    """The running sums of one account."""

    granted: Fraction
    spent: Fraction
    policy: str | None
    first_grant: int | None

    @property
    def remaining(self) -> Fraction:
        # A cap may be granted to someone who has already spent more; nothing remains then, and not less.
        return max(self.granted - self.spent, Fraction(0))


class _NotComparedYet(Exception):
    """Two policies whose strength is not known yet; leaves the transaction so that nobody waits for the answer."""

    def __init__(self, pair: tuple[str, str], text: str) -> None:
        super().__init__()
        self.pair = pair  # fingerprints: of the account, of the charge
        self.text = text  # of the account's policy


def _who(dataset: str, analyst: str | None) -> str:
    return f"the total of dataset {dataset!r}" if analyst is None else f"the cap of {analyst!r} in dataset {dataset!r}"


def _policy_name(fingerprint: str | None) -> str:
    return "no policy" if fingerprint is None else f"policy {fingerprint[:12]}"
