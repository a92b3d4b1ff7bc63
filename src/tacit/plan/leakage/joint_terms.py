"""What several lines of release say together about a protected attribute, and a convex function that is never less.

Guarantee   `JointLimit.at(u)` is the sum of the mutual informations between each target and everything that a coalition
            sees, in nats, by going through all outcomes. `safe_terms` are convex terms whose sum is never below it.
Assumes     Each line tosses its own coins: given all attributes, what is seen on one line does not hang on the others.
Why         Going through outcomes: the joint of target and attributes is mapped to that of target and outcomes, one
            attribute after the other. Lines that show the same attribute hide it with the product of their chances.
            In several release probabilities the information is not convex: two copies of one attribute make it
            bend the other way. But let Y_1 .. Y_k be what is seen, in any order. By the chain rule,
            I(T; Y_1 .. Y_k) = sum I(T; Y_t | Y_<t), and I(T; Y_t | Y_<t) <= I(T, Y_<t; Y_t) <= I(T, X_<t; Y_t), since
            Y_<t is made from X_<t by coins of its own. Each of these is an information about what one line shows:
            convex in its release probability alone. For attributes whose exclusive or is the target, the last one
            counts in full, as it must.
            In each release probability by itself the joint information is convex and rises, since the channel is
            affine in it, and a channel with less noise shows more (data processing).
Reference   Cover and Thomas, Elements of Information Theory, Theorems 2.5.2 and 2.8.1.
Checked by  tests/unit/test_leakage_terms.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import PlanError
from tacit.plan.leakage.convex_terms import Floats, Mask, Term
from tacit.plan.leakage.measured_tables import MeasuredTables

MOST_OUTCOMES = 2**20  # cells of the joint of a target and all outcomes
_AT_ONCE = 2**22  # cells of all points that are evaluated together


@dataclass(frozen=True)
class JointPart:
    """One target beside what a coalition sees: axis 0 is the target, each other axis an attribute that is shown."""

    table: Floats
    sensitive: tuple[Mask, ...]
    lines: tuple[tuple[int, ...], ...]  # which lines show the attribute of an axis

    @property
    def cells(self) -> int:
        """How many cells the joint of target and outcomes has."""
        return len(self.table) * math.prod(int((~mask).sum()) + 1 for mask in self.sensitive)

    def at(self, u: Floats) -> Floats:
        """Return the information at each row of release probabilities."""
        found = self.table[None]
        for mask, lines in zip(self.sensitive, self.lines, strict=True):
            hidden = np.prod(1.0 - u[:, lines], axis=1).reshape((-1, *(1,) * (found.ndim - 2)))
            shown = found[:, :, ~mask]
            # the attribute's axis goes to the end: what is shown of it, and last of all nothing
            after = np.empty((len(u), *found.shape[1:2], *found.shape[3:], shown.shape[2] + 1))
            after[..., -1] = found[:, :, mask].sum(axis=2) + hidden * shown.sum(axis=2)
            after[..., :-1] = (1.0 - hidden)[..., None] * np.moveaxis(shown, 2, -1)
            found = after
        cells = found.reshape(len(found), len(self.table), -1)
        prior = self.table.reshape(len(self.table), -1).sum(axis=1)
        expected = prior[None, :, None] * cells.sum(axis=1)[:, None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(cells > 0, cells * np.log(cells / expected), 0.0)
        total: Floats = np.maximum(found.sum(axis=(1, 2)), 0.0)
        return total


@dataclass(frozen=True)
class JointLimit:
    """What one coalition may learn: a sum over targets."""

    parts: tuple[JointPart, ...]

    def at(self, u: Floats) -> Floats:
        """Return the sum of the informations at each row of release probabilities."""
        total = np.zeros(len(u))
        for part in self.parts:
            size = max(1, _AT_ONCE // part.cells)
            for start in range(0, len(u), size):
                total[start : start + size] += part.at(u[start : start + size])
        return total


def joint_part(tables: MeasuredTables, target: str, shown: Sequence[tuple[str, tuple[int, ...]]]) -> JointPart:
    """Return one target beside attributes, each with the lines that show it."""
    masks = tuple(tables.sensitive(name) for name, _ in shown)
    outcomes = math.prod(int((~mask).sum()) + 1 for mask in masks)
    if outcomes * len(tables.table(target)) > MOST_OUTCOMES:
        raise PlanError(
            f"must have at most {MOST_OUTCOMES:,} outcomes together with {target}",
            key="coalitions",
            given=outcomes,
            fix="Assume smaller coalitions, merge rare values, or leave coalitions out for sums over pairs.",
        )
    table = tables.table(target, *(name for name, _ in shown))
    return JointPart(table, masks, tuple(lines for _, lines in shown))


def safe_terms(
    tables: MeasuredTables, target: str, shown: Sequence[tuple[str, tuple[int, ...]]], *, limit: int
) -> list[Term]:
    """Return convex terms whose sum is never below what a coalition learns about a target."""
    found: list[Term] = []
    before: list[str] = [target]
    for name, lines in shown:
        for line in lines:
            # what is known of the attribute itself is all that matters for what one line shows of it
            known = [name] if name in before else list(dict.fromkeys(before))
            table = tables.table(*known, name)
            found.append(Term(limit, line, table.reshape(-1, table.shape[-1]), tables.sensitive(name)))
            before.append(name)
    return found
