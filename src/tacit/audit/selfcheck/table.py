"""The table of all audits: every mechanism of the package, every planted leak, what was claimed and what was found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tacit.audit.exact_audits.loss import Loss
from tacit.audit.reconstruction_audits.attacked_tables import AttackRow, attacked_tables
from tacit.audit.sampled_audits.releases import SECONDS, WholeRelease, audit_pairs
from tacit.audit.sampled_audits.sampled_audit import SampledAudit, Verdict, sampled
from tacit.audit.sampled_audits.subjects import Subject
from tacit.audit.selfcheck.planted import planted
from tacit.audit.selfcheck.registry import MECHANISMS

SAMPLES: Final = 10**6
ALPHA: Final = 1e-6
HEADINGS: Final = ("mechanism", "claimed epsilon", "exact loss", "sampled lower bound", "tightness", "verdict")


@dataclass(frozen=True)
class AuditRow:
    """One line of the table. `expected` is the verdict that a sound mechanism, or a planted leak, must get."""

    headings: ClassVar[tuple[str, ...]] = HEADINGS

    name: str
    what: str
    epsilon: float
    exact_loss: Loss | None
    found: SampledAudit
    expected: Verdict

    @property
    def as_expected(self) -> bool:
        """Whether the audit said what it had to say."""
        sound = self.expected == Verdict.NONE_FOUND
        exact = self.exact_loss is None or (self.exact_loss <= self.epsilon * (1 + 1e-9)) == sound
        return self.found.verdict == self.expected and exact

    def document(self) -> dict[str, Any]:
        """Return the line as plain data."""
        return {
            "mechanism": self.name,
            "what": self.what,
            "claimed_epsilon": self.epsilon,
            "exact_loss": None if self.exact_loss is None else [_finite(end) for end in self.exact_loss],
            "lower_bound": self.found.lower_bound,
            "tightness": self.found.tightness,
            "verdict": str(self.found.verdict),
            "witness": str(self.found.witness),
            "beyond": self.found.beyond,
            "samples": self.found.samples,
            "alpha": self.found.alpha,
            "as_expected": self.as_expected,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the line as texts, in the order of the headings."""
        return (
            self.name,
            f"{self.epsilon:.4g}",
            "" if self.exact_loss is None else str(self.exact_loss),
            f"{self.found.lower_bound:.3f}",
            f"{self.found.tightness:.2f}",
            str(self.found.verdict),
        )


def _finite(number: float) -> float | str:
    """Return a number as JSON can hold it."""
    return number if math.isfinite(number) else "infinite"


def names() -> list[str]:
    """Return everything that can be audited without a policy: mechanisms, planted leaks, and tables under attack."""
    return [*MECHANISMS, *planted, *attacked_tables]


def claimed_by(name: str) -> float | None:
    """Return the epsilon that is claimed by one of them; None for tables under attack, which claim another thing."""
    if name in MECHANISMS:
        return float(MECHANISMS[name].epsilon)
    return planted[name].claimed_epsilon if name in planted else None


def audit_named(
    name: str, samples: int = SAMPLES, alpha: float = ALPHA, progress: Callable[[float], None] | None = None
) -> AuditRow | AttackRow:
    """Audit one mechanism of the package, one planted leak or one table under attack, by its name."""
    if name in attacked_tables:
        return attacked_tables[name].audit(alpha, progress)
    if name in MECHANISMS:
        return audit_subject(MECHANISMS[name].make(), samples, alpha, progress)
    leak = planted[name]
    found = sampled(leak.release, leak.hidden, leak.cover, leak.claimed_epsilon, samples, alpha, progress=progress)
    exact = None if leak.exact_loss is None else Loss(leak.exact_loss, leak.exact_loss)
    return AuditRow(name, leak.mistake, leak.claimed_epsilon, exact, found, Verdict.LEAK_FOUND)


def audit_subject(
    subject: Subject, samples: int = SAMPLES, alpha: float = ALPHA, progress: Callable[[float], None] | None = None
) -> AuditRow:
    """Audit a mechanism with what it claims."""
    exact = None if subject.exact is None else subject.exact().forward
    found = subject.sampled(min(samples, subject.most_samples), alpha, progress)
    return AuditRow(subject.name, subject.mechanism, subject.epsilon, exact, found, Verdict.NONE_FOUND)


def audit_whole(
    name: str,
    whole: WholeRelease,
    samples: int = SAMPLES,
    alpha: float = ALPHA,
    progress: Callable[[float], None] | None = None,
    seconds: float = SECONDS,
) -> AuditRow:
    """Audit a whole release with what it claims, with as many samples as some time allows."""
    found = audit_pairs(whole, samples, alpha, seconds, progress)
    return AuditRow(name, "rows in, record out", float(whole.epsilon), None, found, Verdict.NONE_FOUND)


def as_markdown(rows: Iterable[AuditRow | AttackRow]) -> str:
    """Return the table as a page."""
    rows = list(rows)
    audits = [row for row in rows if row.headings == HEADINGS]
    attacks = [row for row in rows if row.headings != HEADINGS]
    parts = [
        "# Every mechanism and every planted leak, audited",
        "",
        "Made by `tacit audit all --write docs/audit-table.md`. The numbers differ a little from run to run, because "
        "samples are fresh each time.",
        "",
        *_section("Mechanisms of the package", "what", audits, Verdict.NONE_FOUND),
        *_section("Planted leaks", "mistake", audits, Verdict.LEAK_FOUND),
        *_section("Tables under attack", "what", attacks, Verdict.NONE_FOUND),
        *_section("Planted tables", "mistake", attacks, Verdict.LEAK_FOUND),
    ]
    return "\n".join(parts)


def _section(title: str, about: str, rows: Iterable[AuditRow | AttackRow], expected: Verdict) -> list[str]:
    """Return the lines of those that must get one verdict."""
    chosen = [row for row in rows if row.expected == expected]
    if not chosen:
        return []
    headings = (*chosen[0].headings, about)
    many, alpha = max(row.found.samples for row in chosen), chosen[0].found.alpha
    counted = "samples a side" if chosen[0].headings == HEADINGS else "groups"
    return [
        f"## {title}",
        "",
        f"At most {many:,} {counted}, alpha {alpha:g} each.",
        "",
        f"| {' | '.join(headings)} |",
        f"|{'---|' * len(headings)}",
        *(f"| {' | '.join(row.cells())} | {row.what} |" for row in chosen),
        "",
    ]
