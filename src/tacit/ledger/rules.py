"""What a charge or a grant must keep: budgets, policies and names. Each refusal is made before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from shlex import quote

from sqlalchemy import select

from tacit.amounts import shown
from tacit.errors import BudgetExceeded, LedgerError, nearest
from tacit.ledger.accounts import NotComparedYet, RunningSum, policy_name
from tacit.ledger.input import LONGEST_NAME, Amount, LedgerPolicy
from tacit.ledger.names import look_alike
from tacit.ledger.store.chain import TOTAL
from tacit.ledger.store.page import Page
from tacit.ledger.store.schema import ACCOUNTS
from tacit.ledger.store.summed import CAPPED, known_alike


class LedgerRules:
    """The rules of one ledger. Remembers which policies cover which: comparing them may take long."""

    def __init__(self, file: str) -> None:
        self._file = file
        # (policy of an account, policy of a charge) -> does the second cover the first?
        self._compared: dict[tuple[str, str], bool] = {}

    def check_budget(self, who: str, account: RunningSum, amount: Fraction, *, given: Amount, dataset: str) -> None:
        """Refuse a charge that does not fit."""
        if amount <= account.remaining:
            return
        raise BudgetExceeded(
            f"must fit in what remains of {who}: {shown(account.remaining)} of {shown(account.granted)}",
            key="epsilon",
            given=shown(given) if isinstance(given, Fraction) else given,
            file=self._file,
            fix=f"Nothing was charged. Ask for less, or grant more: {self._grant_command(dataset)}.",
        )

    def check_policy(
        self, who: str, account: RunningSum, fingerprint: str | None, text: Callable[[], str | None]
    ) -> None:
        """Refuse a charge under a policy that protects less than the account's, whose text is `text()`."""
        if account.policy is None:
            return
        if fingerprint is None:
            raise LedgerError(
                f"policy must be given: {who} is counted under {policy_name(account.policy)}",
                file=self._file,
                fix="Nothing was charged. Pass the policy that the release keeps, as in charge(.., policy=policy).",
            )
        if fingerprint == account.policy:
            return
        pair = (account.policy, fingerprint)
        if pair not in self._compared:
            raise NotComparedYet(pair, text() or "")
        if not self._compared[pair]:
            raise LedgerError(
                f"the release's policy protects less than the one {who} is counted under, "
                f"{policy_name(account.policy)}: not every secret edge of that is one of the release's",
                given=policy_name(fingerprint),
                file=self._file,
                fix="Nothing was charged. Release under the account's policy or one that covers it: "
                "a release that protects more than the account asks is allowed, never less.",
            )

    def compare(self, question: NotComparedYet, policy: LedgerPolicy) -> None:
        """Find out whether a policy covers that of an account, outside of any transaction."""
        asked = question.pair[0]
        try:
            granted = type(policy).from_yaml(question.text)
            unchanged = granted.fingerprint == asked
        except Exception:  # whatever a reader of files may raise, the sentence is the same
            unchanged = False
        if not unchanged:
            raise LedgerError(
                f"the stored text of {policy_name(asked)} can no longer be read as that policy",
                file=self._file,
                fix="Run `tacit ledger verify`; if the ledger is sound, charge with the Tacit that wrote it, or give "
                "the data set another name: where a policy names a person, other rows may count since then.",
            )
        self._compared[question.pair] = bool(policy.covers(granted))

    def total(self, page: Page, dataset: str, found: Mapping[str, RunningSum]) -> RunningSum:
        """Return the total among the accounts that were found, or refuse a data set that nothing was granted to."""
        if TOTAL in found:
            return found[TOTAL]
        raise self._no_budget(page, dataset)

    def _no_budget(self, page: Page, dataset: str) -> LedgerError:
        """Return the refusal of a data set that nothing was granted to, with the name that may have been meant."""
        has_total = ACCOUNTS.c.analyst == TOTAL
        known = list(
            page.db.execute(select(ACCOUNTS.c.dataset).where(has_total).order_by(ACCOUNTS.c.dataset)).scalars()
        )
        command = self._grant_command(dataset)
        names = [name for name in known if isinstance(name, str) and len(name) <= LONGEST_NAME]
        if same := look_alike(dataset, names):
            fix = f"Did you mean {same!r}? A name has one spelling."
        else:
            fix = f"{nearest(dataset, names)} Or grant one: {command}." if names else f"Grant one: {command}."
        return LedgerError("dataset has no budget in this ledger", given=dataset, file=self._file, fix=fix)

    def refuse_anonymous_charge(self, page: Page, dataset: str) -> None:
        """Refuse a charge by nobody in particular where single analysts have caps."""
        if page.state(CAPPED, dataset, "") is not None:
            raise LedgerError(
                f"analyst must be given: dataset {dataset!r} has caps for single analysts",
                file=self._file,
                fix='Say who asks, as in charge(.., analyst="ana").',
            )

    def refuse_look_alikes(self, page: Page, dataset: str, analyst: str | None) -> None:
        """Refuse a name that is new here and looks like one that is not."""
        self._refuse_look_alike("dataset", dataset, known_alike(page, "", dataset))
        if analyst is not None:
            self._refuse_look_alike("analyst", analyst, known_alike(page, dataset, analyst))

    def _refuse_look_alike(self, key: str, name: str, other: str | None) -> None:
        if other is not None:
            raise LedgerError(
                f"looks like {other!r}, which is in this ledger, and would be an account of its own",
                key=key,
                given=name,
                file=self._file,
                fix=f"Nothing was written. Write {other!r} if that is meant, or choose a name that nobody mistakes.",
            )

    def _grant_command(self, dataset: str) -> str:
        return f"`tacit ledger grant {quote(self._file)} --dataset {quote(dataset)} --epsilon 1`"
