"""The table of all audits: every mechanism of the package, every planted leak, what was claimed and what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tacit.audit.loss import Loss
from tacit.audit.sampled_audits.sampled_audit import Verdict, sampled
from tacit.audit.sampled_audits.subjects import ALPHA, HEADINGS, SAMPLES, AuditRow, audit_subject
from tacit.audit.selfcheck.attacked_tables import AttackRow, attacked_tables
from tacit.audit.selfcheck.planted import planted
from tacit.audit.selfcheck.registry import MECHANISMS


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
