"""What a ledger hands out: accounts, receipts, runs, and a statement of what all charges promise together.

Guarantee   `Statement`: for every secret edge of the account's policy, all releases that were charged to the account,
            taken together, lose at most what it has spent.
Assumes     Each release keeps its epsilon along the edges of the policy that it was charged under.
Why         Epsilons add up (sequential composition). The ledger lets a charge through only if its policy has all edges
            of the account's policy, so every release protects those. An edge that only some of the policies have is
            protected by the releases under these policies alone.
Checked by  tests/unit/ledger/test_ledger_statement.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.amounts import shown
from tacit.ledger.chain import LedgerEntry


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


@dataclass(frozen=True)
class UnderPolicy:
    """What was charged to a data set under one policy; `policy` is its fingerprint, None for charges without one."""

    policy: str | None
    charges: int
    epsilon: Fraction


@dataclass(frozen=True)
class Statement:
    """What all charges to one data set promise together, along the edges that all of their policies have in common.

    `policy` is the fingerprint of the policy with these edges, and `policy_text` the policy itself; both None where
    nothing was charged or granted under one. `parts` says what was charged under which policy.
    """

    dataset: str
    epsilon: Fraction
    policy: str | None
    policy_text: str | None
    parts: tuple[UnderPolicy, ...]

    @property
    def unknown(self) -> int:
        """How many charges name no policy: the ledger cannot say along which edges these releases promise anything."""
        return sum(part.charges for part in self.parts if part.policy is None)

    @property
    def text(self) -> str:
        """The promise in words."""
        many = sum(part.charges for part in self.parts)
        if not many:
            return f"Nothing was charged to {self.dataset!r}: nothing was released."
        charges = "1 charge" if many == 1 else f"{many:,} charges"
        if self.policy is None:
            return (
                f"{charges} to {self.dataset!r}, without a policy: only certificates say what these releases promise."
            )
        others = [part for part in self.parts if part.policy not in (None, self.policy)]
        said = (
            f"All that was released from {self.dataset!r} so far ({charges}), taken together: for every secret edge "
            f"hidden -> cover of {policy_name(self.policy)}, every data set and every set O of outputs, "
            f"Pr[M(hidden) in O] <= exp({shown(self.epsilon)}) * Pr[M(cover) in O]."
        )
        if others:
            listed = ", ".join(f"{shown(part.epsilon)} under {policy_name(part.policy)}" for part in others)
            said += (
                f" Of this, {listed}: policies with these edges and more. The other edges are protected by these "
                "releases alone, and by no other."
            )
        if self.unknown:
            said += f" {self.unknown:,} of the charges without a policy, counted as if under this one."
        return said

    def __str__(self) -> str:
        return self.text

    def document(self) -> dict[str, Any]:
        """Return the statement as plain data."""
        return {
            "dataset": self.dataset,
            "epsilon": str(self.epsilon),
            "policy": self.policy,
            "statement": self.text,
            "parts": [
                {"policy": part.policy, "charges": part.charges, "epsilon": str(part.epsilon)} for part in self.parts
            ],
        }


def stated(account: Account, entries: Sequence[LedgerEntry]) -> Statement:
    """Return what the charges among these entries of a data set promise together, given its total."""
    charged: dict[str | None, list[Fraction]] = {}
    for entry in entries:
        if entry.kind == "charge":
            charged.setdefault(entry.policy, []).append(entry.epsilon)
    parts = [UnderPolicy(policy, len(found), sum(found, Fraction(0))) for policy, found in charged.items()]
    return Statement(account.dataset, account.spent, account.policy, account.policy_text, tuple(parts))
