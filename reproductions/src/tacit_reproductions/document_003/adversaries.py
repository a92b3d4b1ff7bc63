"""Section 4.2 of document 003: Blowfish beside Pufferfish (Theorems 4.4 and 4.5), and the two axioms of privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.audit.exact_audit import exact
from tacit.audit.possible_worlds import posterior_odds
from tacit.plan.questions import histogram
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy import knowledge as known
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import everything, pairs, partition, values, within
from tacit_reproductions.document_003.composition import random_laws
from tacit_reproductions.results import Claim, check, same, spread

Belief = Mapping[tuple[int], float]
_EPSILON: Final = Fraction(1)
_LINE: Final = Domain({"x": Integers(0, 3)})
_PEOPLE: Final = 3
_NEAR: Final = 1e-9
_FREE: Final = {
    "everything secret": everything(),
    "theta 1": within(1, "x"),
    "blocks of 2": partition("x", width=2),
    "one value secret": values({"x": [3]}),
}
# what is known, and for each person the two values of neighbouring data sets (the same one twice: nobody moves)
_COUPLED: Final = {
    "everything secret, the count of {2, 3} known": (everything(), [known.count("x >= 2")], ((0, 2), (3, 1), (1, 1))),
    "sums of neighbours known": (
        everything(),
        [known.count(f"x in [{at}, {at + 1}]") for at in range(3)],
        ((0, 1), (3, 2), (0, 0)),
    ),
    "3-2 secret, the count of {0, 3} known": (
        pairs([({"x": 3}, {"x": 2}), ({"x": 2}, {"x": 3})]),
        [known.count("x in [0, 3]")],
        ((3, 2), (1, 0), (1, 1)),
    ),
}


def adversary_claims(beliefs: int) -> list[Claim]:
    """Return what the paper says about adversaries with beliefs; so many random beliefs are tried of each policy."""
    return [_theorem_4_4(beliefs), *_theorem_4_5(beliefs), *_axioms()]


def _theorem_4_4(beliefs: int) -> Claim:
    """Judge both directions: beliefs move the odds by no more than the loss, and two-valued ones by all of it."""
    asked = histogram("x")
    policies = {name: Policy(_LINE, secret) for name, secret in _FREE.items()}
    blowfish = {name: float(exact(asked, policy, _EPSILON).forward) for name, policy in policies.items()}
    most = {name: max(_moved(policy, prior) for prior in _beliefs(beliefs)) for name, policy in policies.items()}
    sharp = {name: max(_moved(policy, prior) for prior in _two_valued(policy)) for name, policy in policies.items()}
    return Claim(
        "Theorem 4.4",
        f"largest change of the odds, histogram of {_PEOPLE} people on 4 values, epsilon 1: {', '.join(policies)}",
        f"{beliefs} random beliefs about independent people, and beliefs in two values each, all data sets enumerated",
        "with nothing known, no more than Blowfish's loss; and all of it for some belief",
        f"random beliefs {spread(list(most.values()), '{:.3f}'.format)}, two values each "
        f"{spread(list(sharp.values()), '{:.3f}'.format)}; loss {spread(list(blowfish.values()), '{:.3f}'.format)}",
        (
            check("change over the loss", [most[name] / blowfish[name] for name in most], "at most", 1 + _NEAR),
            same(
                "change for two values over the loss", [sharp[n] / blowfish[n] for n in sharp], [1] * len(sharp), _NEAR
            ),
        ),
    )


def _theorem_4_5(beliefs: int) -> list[Claim]:
    """Judge the theorem (some belief finds all that Blowfish counts as loss), and the conjecture after it."""
    sharp, most = [], []
    for secret, facts, moves in _COUPLED.values():
        policy = Policy(_LINE, secret, facts)
        prior = [dict.fromkeys(((a,), (b,)), 1 / len({a, b})) for a, b in moves]
        changed = np.bincount([a for a, _ in moves], minlength=4) - np.bincount([b for _, b in moves], minlength=4)
        sharp.append((_moved(policy, prior), float(np.abs(changed).sum())))
        most.append(max(_moved(policy, one) for one in _beliefs(beliefs)))
    loss = [step / largest for (_, step), largest in zip(sharp, (_step(one) for one in _COUPLED.values()), strict=True)]
    return [
        Claim(
            "Theorem 4.5",
            f"the same where something is known: {'; '.join(_COUPLED)}",
            "beliefs in the two values of each person in two neighbouring data sets, all data sets enumerated",
            "whoever keeps beliefs from moving by more than epsilon keeps Blowfish's epsilon",
            f"odds move by {', '.join(f'{moved:.3f}' for moved, _ in sharp)}; loss between these two data sets "
            f"{', '.join(f'{one:.3f}' for one in loss)}",
            (check("change of the odds", [moved for moved, _ in sharp], "at least", [one - _NEAR for one in loss]),),
        ),
        Claim(
            "Theorem 4.5, conjecture",
            f"the same policies, {beliefs} random beliefs of each",
            "beliefs about independent people, all data sets enumerated; a search, no proof",
            "Blowfish is enough, too",
            f"odds move by {spread(most, '{:.3f}'.format)} at most",
            (check("largest change of the odds", most, "at most", 1 + _NEAR),),
        ),
    ]


def _axioms() -> list[Claim]:
    """Judge transformation invariance and convexity by exact audits of processed and mixed mechanisms."""
    settings = [Policy(_LINE, secret) for secret in _FREE.values()]
    settings += [Policy(_LINE, secret, facts) for secret, facts, _ in _COUPLED.values()]
    processed, mixed = [], []
    for policy in settings:
        one, other = _Mechanism(), _Mechanism()
        (channel,), (share,) = random_laws((1, 9, 4)), random_laws((1, 2))
        loss, second = _loss(one, policy), _loss(other, policy)
        processed.append(_loss(lambda data, m=one, c=channel: _listed(m.law(data) @ c), policy) / loss)
        both = _loss(lambda data, a=one, b=other, s=share: _listed(s[0] * a.law(data) + s[1] * b.law(data)), policy)
        mixed.append(both / max(loss, second))
    run = f"our exact audit of random mechanisms of two people under {len(settings)} policies"
    return [
        Claim(
            "section 4.2, axioms",
            what,
            run,
            f"Blowfish has {axiom}",
            f"{spread(found, '{:.3f}'.format)} times what the mechanism{'s' * plural} lost",
            (check("loss over the loss before", found, "at most", 1 + _NEAR),),
        )
        for what, axiom, found, plural in (
            ("outputs that are changed at random afterwards", "transformation invariance", processed, False),
            ("one of two mechanisms is run, chosen by a coin that nobody sees", "convexity", mixed, True),
        )
    ]


class _Mechanism:
    """A mechanism with nine outputs, whose chances are drawn for each data set by itself."""

    def __init__(self) -> None:
        self.laws: dict[Any, Any] = {}

    def law(self, data: Sequence[Any]) -> Any:
        """Return how likely each output is."""
        if tuple(data) not in self.laws:
            self.laws[tuple(data)] = random_laws((9,))
        return self.laws[tuple(data)]

    def __call__(self, data: Sequence[Any]) -> dict[int, float]:
        return _listed(self.law(data))


def _listed(law: Any) -> dict[int, float]:
    return dict(enumerate((law / law.sum()).tolist()))


def _loss(mechanism: Any, policy: Policy) -> float:
    return float(exact(mechanism, policy, people=2).forward.low)


def _moved(policy: Policy, priors: Sequence[Belief]) -> float:
    return posterior_odds(histogram("x"), policy, _EPSILON, people=_PEOPLE, priors=priors).loss


def _beliefs(many: int) -> list[list[Belief]]:
    """Draw beliefs about independent people."""
    return [
        [{(at,): chance for at, chance in enumerate(one)} for one in law]
        for law in random_laws((many, _PEOPLE, 4)).tolist()
    ]


def _two_valued(policy: Policy) -> list[list[Belief]]:
    """Return beliefs that leave one person two values, and nobody else a choice."""
    edges = [(a, b) for a in range(4) for b in range(4) if policy.has_edge((a,), (b,))]
    return [[{(a,): 0.5, (b,): 0.5}, {(0,): 1.0}, {(0,): 1.0}] for a, b in edges]


def _step(setting: tuple[Any, Any, Any]) -> int:
    secret, facts, _ = setting
    return int(largest_step(histogram("x"), Policy(_LINE, secret, facts)).l1)
