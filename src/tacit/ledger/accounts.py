"""What a ledger gives out: accounts, receipts and runs; and the running sums that a charge looks at."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Receipt:
    """Proof of one charge: the number and hash of its entry, and what the analyst may still spend."""

    entry: int
    hash: str
    remaining: Fraction


@dataclass(frozen=True)
class Account:
    """A budget that was granted: a data set's total (`analyst` is None) or one analyst's cap within it.

    `policy` is the fingerprint of the policy that the budget is counted under, `policy_text` the policy itself; both
    None as long as nothing was granted or charged under one. A cap without a policy of its own is counted under that of
    the total. `remaining` of a cap is never more than what remains of the total.
    """

    dataset: str
    analyst: str | None
    policy: str | None
    granted: Fraction
    spent: Fraction
    remaining: Fraction
    policy_text: str | None = None


@dataclass(frozen=True)
class Run:
    """One run of a job, which paid for all its releases at once: the entries from `first` to `last`.

    `state` is "finished", "lost" (it ended before all it had paid for was published), or "reserved": it is still at
    work, or was killed and is lost as well.
    """

    run: str
    job: str
    first: int
    last: int
    state: str


@dataclass(frozen=True)
class RunningSum:
    """The running sums of one account. `policy_entry` is the entry that carries the text of its policy."""

    granted: Fraction = Fraction(0)
    spent: Fraction = Fraction(0)
    policy: str | None = None
    policy_entry: int | None = None

    @property
    def remaining(self) -> Fraction:
        """What may still be charged."""
        # A cap may be granted to someone who has already spent more; nothing remains then, and not less.
        return max(self.granted - self.spent, Fraction(0))


class NotComparedYet(Exception):
    """Two policies whose strength is not known yet; leaves the transaction so that nobody waits for the answer."""

    def __init__(self, pair: tuple[str, str], text: str) -> None:
        super().__init__()
        self.pair = pair  # fingerprints: of the account, of the charge
        self.text = text  # of the account's policy


def holder_name(dataset: str, analyst: str | None) -> str:
    """Return an account in words."""
    return f"the total of dataset {dataset!r}" if analyst is None else f"the cap of {analyst!r} in dataset {dataset!r}"


def policy_name(fingerprint: str | None) -> str:
    """Return a policy in words."""
    return "no policy" if fingerprint is None else f"policy {fingerprint[:12]}"
