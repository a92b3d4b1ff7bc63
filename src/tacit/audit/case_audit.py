"""What a case lets its applications and coalitions learn, and how that goes with epsilon and with the limit.

Everything is computed from the dependence, whose mark it carries; no row is opened. Applications toss coins of their
own, so that in a coalition the epsilons of one attribute add up; on each line coins are remembered. An audit counts all
that a coalition sees, also what it was shown of the attribute in question: what a case leaves out of its limits (`own:
false`) is known all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Final

from tacit.audit.exclusion_audit import exclusion
from tacit.errors import Refused
from tacit.jobs.case_file import Case

HEADINGS: Final = ("who", "about", "before", "at worst", "after", "nats (value)", "nats (bit)", "free at epsilon")
EPSILONS: Final = tuple(0.05 * 1.3**step for step in range(18))  # 0.05 to 4.3
SHARES: Final = (0.1, 0.25, 0.5, 1.0, 2.0)  # of the limit
OWN_LEFT_OUT: Final = (
    "The limits of this case leave out what the release of an attribute says about that attribute itself "
    "(`own: false`); this audit counts it."
)
CAP: Final = 5.0  # of plans beside the one that the case asks for: 99 of 100 are released


@dataclass(frozen=True)
class CaseRow:
    """What one application or coalition could know about one protected attribute. Information is in nats.

    `worst` is the largest probability of being sensitive that any outcome gives, `after` that outcome. `free_at` is the
    epsilon at which there is freedom from exclusion attacks, infinite where something seen rules a value out.
    """

    who: str
    attribute: str
    prior: float
    worst: float
    after: str
    value: float
    bit: float
    free_at: float

    def cells(self) -> tuple[str, ...]:
        """Return the row as texts, below `HEADINGS`."""
        free = "never" if math.isinf(self.free_at) else f"{self.free_at:.3f}"
        numbers = (f"{self.value:.4f}", f"{self.bit:.4f}", free)
        return (self.who, self.attribute, f"{self.prior:.4f}", f"{self.worst:.4f}", self.after, *numbers)


@dataclass(frozen=True)
class CaseAudit:
    """The audit of a case at its epsilons."""

    case: Case
    epsilon: Mapping[str, Mapping[str, float]]
    rows: tuple[CaseRow, ...]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the rows must know beside them."""
        return () if self.case.options.get("own", True) else (OWN_LEFT_OUT,)

    def document(self) -> dict[str, Any]:
        """Return the audit as plain data."""
        return {
            "case": self.case.name,
            "dependence": self.case.dependence.fingerprint,
            "unprotected": self.case.dependence.unprotected,
            "epsilon": {name: dict(each) for name, each in self.epsilon.items()},
            "remarks": list(self.remarks),
            "rows": [asdict(row) for row in self.rows],
        }


def audit_case(case: Case) -> CaseAudit:
    """Return what everybody could learn at the epsilons of a case: those it gives, or those planned under its limit."""
    epsilon = case.epsilons()
    rows = [row for who, members in case.groups.items() for row in _rows(case, who, _reached(epsilon, members))]
    return CaseAudit(case, epsilon, tuple(rows))


def posterior_curves(case: Case) -> list[dict[str, Any]]:
    """Return the worst posterior of each protected attribute for each coalition, with one epsilon for every line."""
    found = []
    for epsilon in EPSILONS:
        each = {name: dict.fromkeys(asked, epsilon) for name, asked in case.applications.items()}
        for who, members in case.groups.items():
            for row in _rows(case, who, _reached(each, members)):
                found.append({"epsilon": epsilon, "who": who, "attribute": row.attribute, "posterior": row.worst})
    return found


def trade_off(case: Case) -> list[dict[str, float]]:
    """Return what can be reached under several limits around that of the case; nothing if it has none."""
    if case.limit is None:
        return []
    found = []
    for share in SHARES:
        several = isinstance(case.limit, Mapping)
        limit = {name: one * share for name, one in case.limit.items()} if several else case.limit * share
        try:
            plan = case.plan_with(limit, cap=case.options.get("cap", CAP))
        except Refused:  # a drift may leave nothing of a small limit
            continue
        found.append({"share": share, "leakage": plan.leakage, "reached": plan.value, "gap": plan.gap})
    return found


def strengths(case: Case) -> list[tuple[str, str, float]]:
    """Return how much each pair of attributes tells about each other: the share of the smaller entropy."""
    names = list(case.dependence.names)
    leak = exclusion(case.dependence, dict.fromkeys(case.sensitive, ()), dict.fromkeys(names, math.inf))
    entropy = {name: leak.mutual_information(name, [name]) for name in names}
    found = []
    for one, other in combinations(names, 2):
        least = min(entropy[one], entropy[other])
        found.append((one, other, leak.mutual_information(one, [other]) / least if least > 0 else 0.0))
    return found


def _reached(epsilon: Mapping[str, Mapping[str, float]], members: Iterable[str]) -> dict[str, float]:
    """Return the epsilon that a coalition has of each attribute: coins of different applications are independent."""
    found = dict[str, float]()
    for name, one in (each for member in members for each in epsilon[member].items()):
        found[name] = found.get(name, 0.0) + one
    return found


def _rows(case: Case, who: str, epsilon: Mapping[str, float]) -> list[CaseRow]:
    leak = exclusion(case.dependence, case.sensitive, epsilon, coins="remembered")
    found, seen = [], list(epsilon)
    for name in case.sensitive:
        worst = leak.worst(name, seen)
        after = ", ".join(f"{one} {'suppressed' if value is None else value}" for one, value in worst.outcome.items())
        found.append(
            CaseRow(
                who,
                name,
                worst.prior,
                worst.posterior,
                after,
                leak.mutual_information(name, seen),
                leak.mutual_information(name, seen, value=False),
                leak.freedom(name, seen).level,
            )
        )
    return found
