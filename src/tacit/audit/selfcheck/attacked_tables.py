"""Tables under attack: how often a count of a group is estimated nearly right, against the (lambda, delta) promise.

Both tails together, that is, which each tail implies; where a table promises each tail, how often its estimates are
not too high, or not too low.

Guarantee   With probability at least 1 - alpha the attack is within lambda of the true count at least as often, over
            the groups that it is tried on, as `lower_bound` says. So a table that keeps the criterion is accused with
            probability at most alpha. NONE_FOUND proves nothing: another attack may be better.
Assumes     Groups that are counted are independent. Where an attack looks at several groups at once, one group of each
            publication is counted.
Why         Chances differ between groups. Of independent trials with a mean chance c, c n + 1 successes or more are at
            most as likely as in n trials of chance c each (Hoeffding), so Clopper and Pearson's bound holds for the
            mean. If every group keeps the criterion, it is at most 1 - delta.
Reference   Clopper, Pearson 1934; Hoeffding, On the distribution of the number of successes in independent trials,
            1956; Han, Sensitive disclosures under differential privacy guarantees, 2016 (the criterion).
Checked by  tests/statistical/test_attacked_tables.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.audit.sampled_audits.draws import Progress
from tacit.audit.sampled_audits.sampled_audit import Verdict, check_samples
from tacit.audit.selfcheck.planted.tables import TWO_COLUMNS, planted_tables
from tacit.errors import PlanError
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.groupwise import Groupwise
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.masked_columns import MaskedColumns
from tacit.publish.methods.method import Method
from tacit.publish.methods.sampled import Sampled

LAM: Final = Fraction(3, 10)
DELTA: Final = Fraction(3, 10)
MOST_RIGHT: Final = float(1 - DELTA)  # how often an estimate may be within LAM
_CRITERION: Final = Criterion(LAM, DELTA)
BOTH: Final = "wrong"  # on which side an estimate must be wrong often enough: too high, too low, or both together


@dataclass(frozen=True)
class AttackAudit:
    """The outcome: how often the attack was right, and at least is right, at confidence 1 - alpha."""

    verdict: Verdict
    lower_bound: float
    right: int
    samples: int
    alpha: float
    side: str = BOTH

    def __str__(self) -> str:
        event = (
            f"right within {float(LAM):g}" if self.side == BOTH else f"not too {self.side} by more than {float(LAM):g}"
        )
        allowed = "both tails together" if self.side == BOTH else "each tail"
        seen = f"{event} in {self.right:,} of {self.samples:,} groups"
        if self.verdict == Verdict.LEAK_FOUND:
            return (
                f"LEAK_FOUND: the attack is {seen}, so in at least {self.lower_bound:.1%} of them, more than the "
                f"{MOST_RIGHT:.0%} that the criterion allows for {allowed} (wrong with probability below "
                f"{self.alpha:g})."
            )
        return (
            f"NONE_FOUND at alpha {self.alpha:g}: this attack is {seen}, and the criterion allows {MOST_RIGHT:.0%} for "
            f"{allowed}. Another one may be better."
        )


@dataclass(frozen=True)
class AttackRow:
    """One line of the table of all audits: a way to publish, and what an attack on it finds."""

    headings: ClassVar[tuple[str, ...]] = ("table", "may be right", "was right", "is right at least", "verdict")

    name: str
    what: str
    found: AttackAudit
    expected: Verdict

    @property
    def as_expected(self) -> bool:
        """Whether the audit said what it had to say."""
        return self.found.verdict == self.expected

    def document(self) -> dict[str, Any]:
        """Return the line as plain data."""
        return {
            "table": self.name,
            "what": self.what,
            "lambda": float(LAM),
            "delta": float(DELTA),
            "right": self.found.right,
            "samples": self.found.samples,
            "lower_bound": self.found.lower_bound,
            "alpha": self.found.alpha,
            "verdict": str(self.found.verdict),
            "as_expected": self.as_expected,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the line as texts, in the order of the headings."""
        was = self.found.right / self.found.samples
        return self.name, f"{MOST_RIGHT:.0%}", f"{was:.1%}", f"{self.found.lower_bound:.1%}", str(self.found.verdict)


@dataclass(frozen=True)
class AttackedTable:
    """A way to publish, an attack on it, and groups to try it on.

    `publish(counts)` returns what an adversary sees, `attack(seen, counts)` estimates of what `truth` says; of the true
    counts it uses only what adversaries know. With `one_each` the first group of each publication is counted alone.
    """

    name: str
    what: str
    publish: Callable[[Ints], Any]
    attack: Callable[[Any, Ints], Floats]
    counts: Ints
    publications: int
    one_each: bool
    expected: Verdict
    truth: Callable[[Ints], Ints] = lambda counts: counts[:, 0]
    side: str = BOTH

    def audit(self, alpha: float, progress: Progress | None = None) -> AttackRow:
        """Publish many times, attack each time, and compare with the truth."""
        from scipy.stats import beta

        check_samples(10**6, alpha)
        groups = self.publications * (1 if self.one_each else len(self.counts))
        least = MOST_RIGHT**groups
        if alpha <= least:
            rule = f"must be above {least:.1g}: otherwise {groups:,} groups find nothing, however often it is right"
            raise PlanError(rule, key="alpha", given=alpha, fix="Use 1e-6.")
        right = samples = 0
        for number in range(self.publications):
            estimates = self.attack(self.publish(self.counts), self.counts)
            truth = self.truth(self.counts)
            errors = estimates - truth
            off = {BOTH: abs(errors), "high": errors, "low": -errors}[self.side]
            is_right = (off <= float(LAM) * truth)[: 1 if self.one_each else None]
            right, samples = right + int(is_right.sum()), samples + len(is_right)
            if progress is not None:
                progress((number + 1) / self.publications)
        bound = float(beta.ppf(alpha, right, samples - right + 1)) if right else 0.0
        verdict = Verdict.LEAK_FOUND if bound > MOST_RIGHT else Verdict.NONE_FOUND
        return AttackRow(
            self.name, self.what, AttackAudit(verdict, bound, right, samples, alpha, self.side), self.expected
        )


def _pairs() -> Ints:
    """Return groups of two values, of 50 to 200 people each."""
    first = 50 + 4 * np.arange(40)
    return np.stack([first, first[::-1] + 7], axis=1)


def _nearly_all_alike() -> Ints:
    """Return groups in which nearly everybody has the first value, where the criterion is hardest to keep."""
    first = 40 + 20 * np.arange(10)
    return np.stack([first, first // 20], axis=1)


def _many_values() -> Ints:
    """Return groups of 46 values, of which the largest has up to half of the people."""
    size, largest = 20_000, np.linspace(0.3, 0.49, 40)
    others = np.repeat(np.floor((1 - largest) * size / 45).astype(np.int64)[:, None], 45, axis=1)
    return np.concatenate([size - others.sum(axis=1, keepdims=True), others], axis=1)


def _ten_values() -> Ints:
    """Return groups of ten values, of which one has about half of the people."""
    counts = np.tile([2500, *[278] * 9], (12, 1))
    counts[:, 0] += 40 * np.arange(12)
    return counts


def _even_values() -> Ints:
    """Return groups of ten equally frequent values."""
    return np.tile(100 + 10 * np.arange(40)[:, None], (1, 10))


def _two_columns() -> Ints:
    """Return groups of 20,000 people in which two columns are independent, and have values of 4 to 25%."""
    rows, columns = (np.linspace(1, 3, size) for size in TWO_COLUMNS)
    turned = [np.roll(rows, place) for place in range(len(rows))] * 2
    shares = [np.outer(row / rows.sum(), columns / columns.sum()).ravel() for row in turned]
    return np.asarray(np.rint(20_000 * np.array(shares)), np.int64)


def _planted(name: str, counts: Ints, publications: int, *, one_each: bool = False) -> AttackedTable:
    wrong, found = planted_tables[name], Verdict.LEAK_FOUND
    return AttackedTable(
        name, wrong.mistake, wrong.publish, wrong.attack, counts, publications, one_each, found, wrong.truth, wrong.side
    )


def estimated(name: str, method: Method) -> AttackedTable:
    """Return a method under the attack that anybody would make: the estimate itself."""

    def attack(seen: Ints, counts: Ints) -> Floats:
        return method.estimates(seen, counts.sum(axis=1))[:, 0]

    counts, sound = _nearly_all_alike(), Verdict.NONE_FOUND
    return AttackedTable(name, method.words()[0], method.draw, attack, counts, 200, one_each=False, expected=sound)


_PLANTED: Final = (
    _planted("masks-that-add-up", _pairs(), 400, one_each=True),  # the attack looks at the total of all groups
    _planted("scales-published", _pairs(), 40),
    _planted("widths-by-count", _many_values(), 10),
    _planted("sampled-by-share", _ten_values(), 10),
    _planted("masks-by-combination", _two_columns(), 40),
    _planted("masks-added-up", _two_columns(), 5),
    _planted("versions-added-up", _even_values(), 100),
    _planted("too-low-for-too-high", _even_values(), 100),
)
_TWO: Final = Channel(Fraction(1, 2), 2)
_COLUMNS: Final = MaskedColumns(Channel(Fraction(1, 2), TWO_COLUMNS[0] * TWO_COLUMNS[1], TWO_COLUMNS), _CRITERION)
_SOUND: Final = (
    estimated("estimates-from-samples", Sampled(_TWO, _CRITERION, Fraction(1))),
    estimated("estimates-from-group-wise-retention", Groupwise(_TWO, _CRITERION, Fraction(1))),
    estimated("estimates-from-masked-counts", Masked(_TWO, _CRITERION)),
    replace(  # counts of one of two masked columns: combinations are added up
        _planted("masks-by-combination", np.tile(_two_columns(), (20, 1)), 10),
        name="estimates-of-masked-columns",
        what=_COLUMNS.words()[0],
        publish=planted_tables["masks-by-combination"].repaired,
        expected=Verdict.NONE_FOUND,
    ),
    replace(
        _planted("versions-added-up", _even_values(), 100),
        name="estimates-of-groups-that-grew",
        what="groups to which rows came later, masked once more",
        publish=planted_tables["versions-added-up"].repaired,
        expected=Verdict.NONE_FOUND,
    ),
)
attacked_tables: Final[Mapping[str, AttackedTable]] = MappingProxyType({one.name: one for one in (*_SOUND, *_PLANTED)})
