"""One line of what an audit of a mechanism or of a whole release comes to: what was claimed and what was found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tacit.audit.exact_audits.loss import Loss
from tacit.audit.sampled_audits.releases import SECONDS, WholeRelease, audit_pairs
from tacit.audit.sampled_audits.sampled_audit import SampledAudit, Verdict
from tacit.audit.sampled_audits.subjects import Subject

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
