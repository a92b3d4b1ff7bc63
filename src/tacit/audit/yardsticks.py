"""Syntactic yardsticks: how much alike the rows of a table are, group by group.

Rows with the same values of the public attributes are a group. P is the distribution of the sensitive attribute in a
group, Q that in the whole table.

    k-anonymity      the size of the smallest group
    l-diversity      distinct: the fewest different values in a group; entropy: exp(entropy of P), the least; recursive
                     (c, l): every group's most frequent value is less than c times all but its l - 1 most frequent
                     ones together, so c must exceed the number given here
    t-closeness      the largest distance of P from Q: half the sum of differences (equal distance), or the mean
                     difference of running sums (ordered distance: neighbouring values are near)
    beta-likeness    the largest (p - q)/q
    delta-growth     the largest p - q
    rho1-rho2        of values with q <= rho1 the largest p: rho2 must be at least that

Guarantee   None. These are descriptions of a table, not promises about what somebody learns: a table that meets one of
            them may tell everything to whoever knows a little more (document 004, section 2.2.1).
Assumes     Groups are found by values as they are, or as a taxonomy makes them more general.
Why         The definitions, for all groups at once. A table without rows has no groups and is refused; with one
            sensitive value all distances are 0, entropy and distinct diversity 1, and no c is large enough.
Reference   Document 004, section 2.2.1: Sweeney; Machanavajjhala et al.; Li et al.; Cao and Karras; Evfimievski et al.
Checked by  tests/unit/test_yardsticks.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.audit.confidences import Asked, Confidences, as_names, check_apart
from tacit.audit.taxonomies import Taxonomy
from tacit.errors import DataRefused, PlanError, sealed
from tacit.release.curator import PRIVATE
from tacit.release.private_counts import PrivateCounts, counts_of_columns

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Yardsticks:
    """How a table measures up. `l` is the order of recursive diversity, `rho1` what counts as a rare value."""

    groups: Confidences
    l: int
    rho1: float
    private: str = field(default=PRIVATE, init=False)

    @property
    def k(self) -> int:
        """The size of the smallest group."""
        return int(self.groups.phi.min())

    @property
    def distinct(self) -> int:
        """The fewest different values in a group."""
        return int(self.frame["distinct"].min())

    @property
    def entropy(self) -> float:
        """The l of entropy l-diversity."""
        return float(self.frame["entropy"].min())

    @property
    def recursive(self) -> float | None:
        """What c must exceed for recursive (c, l)-diversity; None if no c is large enough."""
        worst = float(self.frame["recursive"].max())
        return None if np.isinf(worst) else worst

    @property
    def t_equal(self) -> float:
        """The t of t-closeness, where all values are equally far apart."""
        return float(self.frame["t_equal"].max())

    @property
    def t_ordered(self) -> float:
        """The t of t-closeness, where values stand in order."""
        return float(self.frame["t_ordered"].max())

    @property
    def beta(self) -> float:
        """The beta of beta-likeness."""
        return float(self.frame["beta"].max())

    @property
    def growth(self) -> float:
        """The delta of delta-growth."""
        return float(self.frame["growth"].max())

    @property
    def rho2(self) -> float:
        """The largest share that a value as rare as rho1 has in a group; 0 if no value is as rare."""
        return float(self.frame["rho2"].max())

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A line for each group: its size and every yardstick. `recursive` is infinite where no c is large enough."""
        groups = self.groups
        p, q = groups.theta / groups.phi[:, None], groups.prior
        logs = np.log(p, out=np.zeros_like(p), where=p > 0)
        gain = np.where(p > q, p - q, 0.0)
        rare = np.where(q <= self.rho1, p, 0.0)
        columns: dict[str, Any] = {
            "group": groups.labels(),
            "size": groups.phi,
            "distinct": (p > 0).sum(axis=1),
            "entropy": np.exp(-(p * logs).sum(axis=1)),
            "recursive": _recursive(groups.theta, self.l),
            "t_equal": np.abs(p - q).sum(axis=1) / 2,
            "t_ordered": np.abs(np.cumsum(p - q, axis=1)[:, :-1]).sum(axis=1) / max(len(q) - 1, 1),
            "beta": np.divide(gain, q, out=np.zeros_like(gain), where=q > 0).max(axis=1),
            "growth": gain.max(axis=1),
            "rho2": rare.max(axis=1),
        }
        return pd.DataFrame(columns)

    def document(self) -> dict[str, Any]:
        """Return the yardsticks as plain data."""
        return {
            "private": self.private,
            "sensitive": self.groups.asked.sensitive,
            "public": list(self.groups.asked.known),
            "groups": len(self.groups.places),
            "k_anonymity": self.k,
            "l_diversity": {
                "distinct": self.distinct,
                "entropy": self.entropy,
                "recursive": {"l": self.l, "c_above": self.recursive},
            },
            "t_closeness": {"equal": self.t_equal, "ordered": self.t_ordered},
            "beta_likeness": self.beta,
            "delta_growth": self.growth,
            "rho1_rho2": {"rho1": self.rho1, "rho2": self.rho2},
        }

    def __repr__(self) -> str:
        return "Yardsticks(for the curator only)"

    def __str__(self) -> str:
        c = "no c" if self.recursive is None else f"every c above {self.recursive:.4g}"
        return "\n".join(
            [
                self.private,
                "",
                f"{len(self.groups.places):,} groups by {', '.join(self.groups.asked.known)}; sensitive: "
                f"{self.groups.asked.sensitive}",
                f"  k-anonymity      k = {self.k}",
                f"  l-diversity      distinct l = {self.distinct}; entropy l = {self.entropy:.4g}; "
                f"recursive (c, {self.l}) for {c}",
                f"  t-closeness      t = {self.t_equal:.4g} (equal distance), {self.t_ordered:.4g} (ordered distance)",
                f"  beta-likeness    beta = {self.beta:.4g}",
                f"  delta-growth     delta = {self.growth:.4g}",
                f"  rho1-rho2        values of a share up to {self.rho1:g} reach {self.rho2:.4g}",
            ]
        )


@sealed
def syntactic(
    frame: Any,
    *,
    public: str | Sequence[str],
    sensitive: str,
    taxonomy: str | Path | None = None,
    levels: Mapping[str, int] | None = None,
    order: Sequence[Any] | None = None,
    l: int = 2,
    rho1: float = 0.1,
) -> Yardsticks:
    """Measure a table by k-anonymity, l-diversity, t-closeness, beta-likeness, delta-growth and rho1-rho2 privacy.

    Args:
        frame: any table that a session takes; each row is a person.
        public: the attributes that make the groups.
        sensitive: the attribute whose distribution is looked at.
        taxonomy: a YAML file of classes (`audit/taxonomies.py`), to make public attributes more general first.
        levels: how general: attribute -> level, 1 for the classes at the top. Without it every public attribute that
            the taxonomy has, at level 1.
        order: the order of the sensitive values for the ordered distance; without it that of numbers or of letters.
        l: the order of recursive diversity.
        rho1: the share up to which a value counts as rare.
    """
    known, (target, *more) = as_names(public, "public"), as_names(sensitive, "sensitive")
    if more:
        raise PlanError("must be one attribute", key="sensitive", given=", ".join((target, *more)), fix="Ask for each.")
    check_apart(known, (target,))
    if isinstance(l, bool) or not isinstance(l, int) or l < 1:
        raise PlanError("must be a whole number from 1", key="l", given=str(l), fix="Use 2.")
    if not isinstance(rho1, int | float) or isinstance(rho1, bool) or not 0 < rho1 < 1:
        raise PlanError("must lie between 0 and 1", key="rho1", given=str(rho1), fix="For instance 0.1.")
    wanted = _levels(known, taxonomy, levels)
    asked = Asked(known, target)
    counts = counts_of_columns(frame, [asked.table])
    if not counts.people:
        raise DataRefused("the table must have rows", fix="Give a table with people in it.")
    for name in asked.table:
        if any(value is None for value in counts.values[name]):
            raise DataRefused(
                "must have a value in every row", column=name, fix="Drop such rows, or name what is missing."
            )
    for name, (tree, level) in wanted.items():
        counts = _generalised(counts, asked, name, tree.general(name, counts.values[name], level))
    return Yardsticks(Confidences.of(asked, _ordered(counts, asked, order)), l, float(rho1))


def _levels(known: Sequence[str], path: Any, levels: Any) -> dict[str, tuple[Taxonomy, int]]:
    """Return the taxonomy and the level of each attribute that is made more general."""
    if path is None:
        if levels:
            raise PlanError("needs a taxonomy", key="levels", fix="Name its file as taxonomy.")
        return {}
    tree = Taxonomy.load(path)
    given = {name: 1 for name in known if name in tree.branches} if levels is None else dict(levels)
    for name, level in given.items():
        if name not in known:
            raise PlanError("must be one of the public attributes", key="levels", given=name, fix="Name it as public.")
        if isinstance(level, bool) or not isinstance(level, int) or level < 0:
            raise PlanError("must be a whole number from 0", key=f"levels.{name}", given=str(level), fix="Use 1.")
    return {name: (tree, level) for name, level in given.items()}


def _generalised(counts: PrivateCounts, asked: Asked, name: str, classes: Sequence[str]) -> PrivateCounts:
    """Add up the cells of values that are in one class."""
    named = sorted(set(classes))
    axis = asked.table.index(name)
    moved = np.moveaxis(counts.tables[asked.table], axis, 0)
    added = np.zeros((len(named), *moved.shape[1:]), dtype=np.int64)
    np.add.at(added, [named.index(one) for one in classes], moved)
    values = {**counts.values, name: named}
    return PrivateCounts(values, counts.people, {asked.table: np.moveaxis(added, 0, axis)})


def _ordered(counts: PrivateCounts, asked: Asked, order: Sequence[Any] | None) -> PrivateCounts:
    """Put the sensitive values in an order; those that do not occur have a place in it all the same."""
    if order is None:
        return counts
    found, listed = list(counts.values[asked.sensitive]), list(order)
    if len(set(map(str, listed))) < len(listed):
        raise PlanError("must list each value once", key="order", fix="Leave out what is there twice.")
    if any(value not in listed for value in found):
        raise DataRefused("has values that the order misses", column=asked.sensitive, fix="List every value.")
    table = counts.tables[asked.table]
    wide = np.zeros((*table.shape[:-1], len(listed)), dtype=np.int64)
    wide[..., [listed.index(value) for value in found]] = table
    return PrivateCounts({**counts.values, asked.sensitive: listed}, counts.people, {asked.table: wide})


def _recursive(theta: Ints, order: int) -> Floats:
    """Return the most frequent value over all but the order - 1 most frequent ones; infinite where those are none."""
    falling = -np.sort(-theta, axis=1)
    rest = falling[:, order - 1 :].sum(axis=1)
    return np.asarray(np.divide(falling[:, 0], rest, out=np.full(len(theta), np.inf), where=rest > 0))
