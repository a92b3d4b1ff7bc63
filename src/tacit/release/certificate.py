"""What is promised, and about what: one kind of certificate for releases, for monitors and for whatever comes.

Nothing in a certificate depends on a row or an event, but by what was released. It is public data; `document` is what
stands in files.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tacit.amounts import shown
from tacit.ledger.ledger import Receipt
from tacit.noise.keystream import is_replayed
from tacit.plan.plans.plan import Plan
from tacit.policy.policy import Policy
from tacit.policy.words.describe import rows_in_words


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A promise at one epsilon along the secret edges of one policy, and everything that a reader needs to check it.

    `subject` says what it is about (a data set and a question, a monitor and its place), `details` what else is known
    of it, `ledger` where it was paid. `edges`, `others`, `outputs` and `scope` are words of the promise.
    """

    policy: Policy
    epsilon: Fraction
    subject: Mapping[str, Any]
    protects: str
    step: Mapping[str, Any]
    mechanism: str
    noise: Mapping[str, Any] | None
    replayed: bool
    version: str
    strategy: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    ledger: Mapping[str, Any] | None = None
    edges: str = "the policy"
    others: str = "every data set"
    outputs: str = "outputs"
    scope: str = ""

    @property
    def guarantee(self) -> str:
        """The promise in one sentence; none if the noise was not secret."""
        if self.replayed:
            return "none: the noise was replayed for a test"
        return (
            f"for every secret edge hidden -> cover of {self.edges}, {self.others} and every set O of {self.outputs}: "
            f"Pr[M(hidden) in O] <= exp({shown(self.epsilon)}) * Pr[M(cover) in O]{self.scope}; nothing is promised "
            "from cover to hidden"
        )

    def document(self) -> dict[str, Any]:
        """Return the certificate as plain data, ready for JSON; a copy, whatever is done to it."""
        fresh, replayed = "fresh from the operating system", "REPLAYED FOR A TEST: this is no release"
        found = {
            "tacit": self.version,
            **self.subject,
            "epsilon": str(self.epsilon),
            "guarantee": self.guarantee,
            "protects": self.protects,
            "policy": self.policy.document(),
            "policy_fingerprint": self.policy.fingerprint,
            "step": self.step,
            "mechanism": self.mechanism,
            **({} if self.strategy is None else {"strategy": self.strategy}),
            "noise": self.noise,
            "randomness": replayed if self.replayed else fresh,
            **self.details,
            "ledger": self.ledger,
        }
        return copy.deepcopy(found)


def certify(plan: Plan, *, dataset: str, receipt: Receipt | None, in_ledger: bool, part_of: str = "") -> Certificate:
    """Return what a release promises of which this plan was made, or came; `part_of` names what it was paid for with.

    `in_ledger` says whether a ledger remembers it, also where this release cost nothing and has no receipt of its own.
    """
    from tacit import __version__

    step, terms = plan.step, plan.terms()
    if plan.records is not None:
        terms = [*terms, *plan.records.coin_terms(in_ledger=in_ledger)]
    return Certificate(
        policy=plan.policy,
        epsilon=plan.epsilon,
        subject={
            "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "dataset": dataset,
            "query": plan.query.document(),
        },
        protects=protects_in_words(plan.policy),
        step={
            **plan.step_document(),
            "derivation": list(step.why),
        },
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
        },
        ledger=None if receipt is None else {"entry": receipt.entry, "hash": receipt.hash},
    )


def protects_in_words(policy: Policy) -> str:
    """Say whose record a release protects, and which of their rows count."""
    if policy.person is None:
        return "one row (no person column was named, so every row is taken for a person of its own)"
    return f"one person, all rows with the same {policy.person} ({rows_in_words(policy)})"
