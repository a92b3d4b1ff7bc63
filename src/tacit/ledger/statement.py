"""What everything that was charged to a data set promises together: sequential composition, over policies too.

Guarantee   For every secret edge of the account's policy, all releases that were charged to the account, taken
            together, lose at most what it has spent.
Assumes     Each release keeps its epsilon along the edges of the policy that it was charged under.
Why         Epsilons add up. Every charge to an account is under the account's policy or one that covers it (the ledger
            refuses any other), so that each edge of the account's policy is an edge of all of them: these are the edges
            that the sum is about. An edge of some of the policies alone is protected by those releases and by no other.
Checked by  tests/unit/ledger/test_ledger_statement.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.amounts import shown
from tacit.ledger.accounts import Account, policy_name
from tacit.ledger.store.chain import LedgerEntry


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
