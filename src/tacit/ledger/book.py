"""Entries, running sums and the head row of a ledger: what every transaction reads, appends and moves.

What is done here is done inside a transaction that somebody else has begun; what may be charged is decided in `ledger`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, insert, select, update

from tacit.errors import LedgerError
from tacit.ledger.accounts import RunningSum
from tacit.ledger.chain import (
    ACCOUNT_TYPES,
    ENTRY_TYPES,
    NOTHING_BEFORE,
    TOTAL,
    Entry,
    Seal,
    Stored,
    amount_of,
    odd_field,
    unfit_head,
    wrong_key,
)
from tacit.ledger.input import checked_name, checked_note
from tacit.ledger.store import Store, rows
from tacit.ledger.tables import ACCOUNTS, ENTRIES, HEAD

# Charges of 1/3, 1/7, 1/11 .. make a sum that never stops growing, and a charge must stay cheap.
SUM_DIGITS = 1000


class Book:
    """One ledger as its transactions see it."""

    def __init__(self, store: Store, seal: Seal) -> None:
        self.store, self.seal = store, seal
        self.file = store.name

    def sound_head(self, db: Connection) -> Stored:
        """Return the head row, locked; refuse to write behind an entry that it does not fit."""
        head = self.store.locked_head(db)
        if why := wrong_key(head, self.seal):
            raise LedgerError(
                f"cannot be written to: {why}",
                file=self.file,
                fix="Set TACIT_LEDGER_KEY to the key that it was started with, or unset it if there was none.",
            )
        newest = select(ENTRIES).order_by(ENTRIES.c.number.desc()).limit(1)
        last = next(iter(rows(db, newest)), None)
        if problem := unfit_head(head, last, self.seal):
            raise LedgerError(
                f"is damaged ({problem}), so nothing more may be written",
                file=self.file,
                fix="Put the last good copy back; `tacit ledger verify` tells which one is good.",
            )
        return head

    def append(
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
        """Append an entry and move the head, in the transaction that has locked it."""
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
        row["hash"] = self.seal.of_entry(row)
        db.execute(insert(ENTRIES).values(**row))
        seal = self.seal.of_head(count=row["number"], head=row["hash"])
        moved = update(HEAD).where(HEAD.c.id == 1)
        db.execute(moved.values(count=row["number"], head=row["hash"], seal=seal))
        return self.entry(row)

    def move(self, db: Connection, dataset: str, analyst: str | None, new: RunningSum, *, is_new: bool = False) -> None:
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

    def accounts(self, db: Connection, dataset: str, analyst: str | None) -> dict[str, RunningSum]:
        """Return the running sums of a data set's total and, if one is named, of an analyst."""
        mine = (ACCOUNTS.c.dataset == dataset) & ACCOUNTS.c.analyst.in_([TOTAL, analyst or TOTAL])
        return {row["analyst"]: self.running_sum(row) for row in rows(db, select(ACCOUNTS).where(mine))}

    def policy_text(self, db: Connection, account: RunningSum) -> str | None:
        """Return the policy that an account is counted under, None if there is none yet."""
        if account.policy is None:
            return None
        grant = select(ENTRIES.c.policy_text).where(ENTRIES.c.number == account.policy_entry)
        text: str | None = db.execute(grant).scalar_one_or_none()
        return text

    def entry(self, row: Stored) -> Entry:
        """Return an entry as it was stored, or say that it was changed."""
        if odd_field(row, ENTRY_TYPES):
            raise self.damaged("an entry in it cannot be read")
        return Entry(**{**row, "epsilon": self._fraction(row["epsilon"])})

    def running_sum(self, row: Stored) -> RunningSum:
        """Return a running sum as it was stored, or say that it was changed."""
        if odd_field(row, ACCOUNT_TYPES):
            raise self.damaged("a running sum in it cannot be read")
        granted, spent = self._fraction(row["granted"]), self._fraction(row["spent"])
        return RunningSum(granted, spent, row["policy"], row["first_grant"])

    def _fraction(self, text: str) -> Fraction:
        amount = amount_of(text)
        if amount is None:
            raise self.damaged("an amount in it cannot be read", given=text)
        return amount

    def damaged(self, why: str, **given: Any) -> LedgerError:
        """Return the refusal of a ledger that somebody has changed."""
        fix = "Run `tacit ledger verify` and put the last good copy back."
        return LedgerError(f"is damaged: {why}", file=self.file, fix=fix, **given)

    def _sum_text(self, amount: Fraction) -> str:
        if amount.denominator >= 10**SUM_DIGITS:
            raise LedgerError(
                f"epsilon would give the running sum a denominator of more than {SUM_DIGITS} digits",
                file=self.file,
                fix="Nothing was written. Use an epsilon with a few decimals, such as 0.05.",
            )
        return str(amount)

    def dataset(self, dataset: str) -> str:
        """Return the name of a data set in its one spelling, or refuse it."""
        return checked_name(dataset, key="dataset", file=self.file)

    def analyst(self, analyst: str | None) -> str | None:
        """Return the name of an analyst in its one spelling, or refuse it."""
        return None if analyst is None else checked_name(analyst, key="analyst", file=self.file)

    def note(
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
        return self.append(
            db,
            head,
            kind=kind,
            dataset=dataset,
            analyst=analyst,
            epsilon=Fraction(0),
            policy=fingerprint,
            policy_text=document,
            what=checked_note(what, file=self.file),
        )
