"""What is promised, and about what: one kind of certificate for releases, monitors and published tables.

Nothing in a certificate depends on a row or an event, but by what was released. It is public data; `document` is what
stands in files.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from tacit.amounts import shown
from tacit.clock import now as right_now
from tacit.drawing import Held
from tacit.ledger.ledger import Receipt
from tacit.noise.keystream import is_replayed
from tacit.plan.plans.plan import Plan
from tacit.policy.policy import Policy

REPLAYED: Final = "none: the noise was replayed for a test"


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Held):
    """A promise at one epsilon, and everything that a reader needs to check it.

    `subject` says what it is about (a data set and a question, a monitor and its place, the columns of a table), and
    `details` what else is known of it. `replayed` says that the noise was not secret: then nothing is promised.
    """

    epsilon: Fraction
    promise: str
    subject: Mapping[str, Any]
    details: Mapping[str, Any]
    replayed: bool

    def __str__(self) -> str:
        return self.guarantee

    @property
    def guarantee(self) -> str:
        """The promise in one sentence; none if the noise was not secret."""
        return REPLAYED if self.replayed else self.promise

    def document(self) -> dict[str, Any]:
        """Return the certificate as plain data, ready for JSON; a copy, whatever is done to it."""
        found = {**self.subject, "epsilon": str(self.epsilon), "guarantee": self.guarantee, **self.details}
        return copy.deepcopy(found)


def along_edges(
    policy: Policy,
    epsilon: Fraction,
    *,
    subject: Mapping[str, Any],
    protects: str,
    step: Mapping[str, Any],
    mechanism: str,
    noise: Mapping[str, Any] | None,
    replayed: bool,
    version: str,
    details: Mapping[str, Any],
    ledger: Mapping[str, Any] | None,
    strategy: str | None = None,
    edges: str = "the policy",
    others: str = "every data set",
    outputs: str = "outputs",
    scope: str = "",
) -> Certificate:
    """Return what is promised along the secret edges of a policy; `edges`, `others`, `outputs`, `scope` word it."""
    fresh = "fresh from the operating system"
    return Certificate(
        epsilon=epsilon,
        promise=(
            f"for every secret edge hidden -> cover of {edges}, {others} and every set O of {outputs}: Pr[M(hidden) in "
            f"O] <= exp({shown(epsilon)}) * Pr[M(cover) in O]{scope}; nothing is promised from cover to hidden"
            + against_in_words(policy)
        ),
        subject={"tacit": version, **subject},
        details={
            "protects": protects,
            **policy_facts(policy),
            "step": step,
            "mechanism": mechanism,
            **({} if strategy is None else {"strategy": strategy}),
            "noise": noise,
            "randomness": "REPLAYED FOR A TEST: this is no release" if replayed else fresh,
            **details,
            "ledger": ledger,
        },
        replayed=replayed,
    )


def policy_facts(policy: Policy) -> dict[str, Any]:
    """Return what a certificate says of a policy."""
    return {"policy": policy.document(), "policy_fingerprint": policy.fingerprint}


def against_in_words(policy: Policy) -> str:
    """Say against whom, where the policy names an adversary weaker than the usual one."""
    against, not_against = policy.adversary.words()
    return f"; against {against}. {not_against}" if against else ""


def receipt_facts(receipt: Receipt | None) -> dict[str, Any] | None:
    """Return what a certificate says of the charge; None if no ledger was charged."""
    return None if receipt is None else {"entry": receipt.entry, "hash": receipt.hash}


def now() -> str:
    """Return the time at which something is made, as certificates write it."""
    return right_now().isoformat(timespec="seconds")


def certify(plan: Plan, *, dataset: str, receipt: Receipt | None, in_ledger: bool, part_of: str = "") -> Certificate:
    """Return what a release promises of which this plan was made, or came; `part_of` names what it was paid for with.

    `in_ledger` says whether a ledger remembers it, also where this release cost nothing and has no receipt of its own.
    """
    from tacit import __version__

    step, terms = plan.step, plan.terms()
    if plan.records is not None:
        terms = [*terms, *plan.records.coin_terms(in_ledger=in_ledger)]
    return along_edges(
        plan.policy,
        plan.epsilon,
        subject={"made": now(), "dataset": dataset, "query": plan.query.document()},
        protects=protects_in_words(plan.policy, plan.query.of),
        step={**plan.step_document(), "derivation": list(step.why)},
        mechanism=plan.mechanism,
        noise=plan.noise_document(),
        replayed=is_replayed(),
        version=__version__,
        strategy=plan.strategy,
        details={
            "expected_rmse": plan.rmse,
            **({"terms": terms} if terms else {}),
            "post_processing": plan.post_processing,
            **({"part_of": part_of} if part_of else {}),
            **plan.asked_document(),
        },
        ledger=receipt_facts(receipt),
    )


def protects_in_words(policy: Policy, of: str | None = None) -> str:
    """Say whose record a release protects, and which of their rows count."""
    if policy.person is None:
        return "one row (no person column was named, so every row is taken for a person of its own)"
    return f"one person, all rows with the same {policy.person} ({policy.counted_in_words(of)})"
