"""How sure any single outcome could make a coalition that a protected attribute is sensitive.

Guarantee   `PosteriorLimit.at(u)` is the largest probability that one of the targets is sensitive, given any outcome
            that the coalition could see (each attribute shown with its value, or not), by going through all outcomes.
            It rises (weakly) with each release probability.
Assumes     Each line tosses its own coins, and the dependence is the true one. Values count, whatever the measure.
Why         Fix what is seen of all attributes but one, shown with probability u. Without looking at that one, the
            probability of the target is a mean over its outcomes, so that the largest over them is no less. A value
            that is shown gives a probability that does not hang on u. Nothing shown gives (a - b u) / (c - d u), which
            rises or falls in u throughout, and at u = 0 is that mean. Where it falls, it is below the mean, so that
            some value is above it and decides; where it rises, so does the largest. So it rises in u either way, and
            with a jump at 0, where values begin to be shown. Outcomes that cannot happen do not count.
Reference   Lee and Smith, Privacy Leakage over Dependent Attributes in One-Sided Differential Privacy, Theorems 1-4.
Checked by  tests/unit/plan/test_leakage_posterior.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.errors import PlanError
from tacit.plan.leakage.measures.joint_terms import MOST_OUTCOMES, SeenValues, ShownBy
from tacit.plan.leakage.measures.measured_tables import MeasuredTables

_AT_ONCE = 2**20  # cells of all points that are evaluated together


@dataclass(frozen=True)
class PosteriorLimit:
    """Targets beside what one coalition sees: for each a table of sensitive or not, and an axis for each attribute."""

    tables: tuple[Floats, ...]
    seen: tuple[SeenValues, ...]

    @property
    def lines(self) -> frozenset[int]:
        """All lines that the coalition sees."""
        return frozenset(line for one in self.seen for line in one.lines)

    def at(self, u: Floats) -> Floats:
        """Return the largest probability at each row of release probabilities."""
        cells = 2 * int(np.prod([max(one.outcomes, len(one.sensitive)) for one in self.seen], initial=1))
        size, found = max(1, _AT_ONCE // cells), np.zeros(len(u))
        for start in range(0, len(u), size):
            some = u[start : start + size]
            found[start : start + size] = np.max([self._of(table, some) for table in self.tables], axis=0)
        return found

    def _of(self, table: Floats, u: Floats) -> Floats:
        joint = np.broadcast_to(table, (len(u), *table.shape))
        for one in self.seen:
            joint = one.through(joint, one.hidden(u), axis=2)
        joint = joint.reshape((len(u), 2, -1))
        total = joint.sum(axis=1)
        found: Floats = np.where(total > 0, joint[:, 0] / np.where(total > 0, total, 1.0), 0.0).max(axis=1)
        return found


def posterior_limit(tables: MeasuredTables, about: Sequence[str], shown: ShownBy) -> PosteriorLimit:
    """Return how sure a coalition could become of each of some attributes; tables must be by value."""
    names = [name for name, _ in shown]
    seen = tuple(SeenValues(tables.sensitive(name), lines) for name, lines in shown)
    cells = int(np.prod([float(tables.size(name) + 1) for name in names], initial=2.0))
    if cells > MOST_OUTCOMES:
        raise PlanError(
            f"can be planned for at most {MOST_OUTCOMES:,} outcomes of a coalition",
            key="posterior",
            given=cells,
            fix="Assume smaller coalitions, merge rare values, or leave posterior out of the plan.",
        )
    found = []
    for target in about:
        table, hidden = tables.table(target, *names), tables.sensitive(target)
        found.append(np.stack([table[hidden].sum(axis=0), table[~hidden].sum(axis=0)]))
    return PosteriorLimit(tuple(found), seen)
