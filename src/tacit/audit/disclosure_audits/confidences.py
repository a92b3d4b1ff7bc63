"""Groups of people with their sensitive values, and what readers see of them: noisy counts, or what plans publish.

A *group* is everybody with the same values of some attributes that a reader may know of a person. Of a sensitive value
the *confidence* in a group is the share of its people who have it, the *prior* the share among all people, and the
*jump* the one over the other. A reader takes the published count of a group's people with a value, and divides it by
the best size of the group that there is: an exact one, one that another release publishes, or the sum of the group's
own cells, whichever has the least variance.

Assumes     Estimates as they are before `consistent` and `nonnegative`, which bring them nearer to the truth. Where the
            only exact total is one of more than 64 cells, its share in the error of a cell is left out: one over the
            number of cells that it is about.
Checked by  tests/unit/audit/test_published.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, Final

import numpy as np

from tacit.amounts import as_fraction
from tacit.arrays import Bools, Floats, Ints
from tacit.audit.disclosure_audits import whole_ratios as ratios
from tacit.audit.disclosure_audits.ratios import GAUSSIAN, LAPLACE, closeness
from tacit.errors import PlanError, nearest, word_or_kind
from tacit.noise.law import Law
from tacit.noise.sum_bounds import Term
from tacit.noise.two_scale import TwoScale
from tacit.plan.choose import choose
from tacit.plan.plans.linear import CountedTable
from tacit.plan.plans.plan import Plan
from tacit.policy.policy import Policy
from tacit.release.curator.private_counts import PrivateCounts

Names = tuple[str, ...]


@dataclass(frozen=True)
class ConfidenceColumns:
    """Confidences of a sensitive attribute in the groups that the values of some others make."""

    known: Names
    sensitive: str

    @property
    def table(self) -> Names:
        """The attributes of the table that has the counts."""
        return (*self.known, self.sensitive)


@dataclass(frozen=True, eq=False, repr=False)
class Confidences:
    """The true counts of one table: `cells` has a line for each group that there may be, and a column for each value.

    `places` are the lines of the groups that have people, `theta` those lines.
    """

    columns: ConfidenceColumns
    cells: Ints
    theta: Ints
    places: Ints
    prior: Floats
    known_values: tuple[Sequence[Any], ...]
    values: Sequence[Any]

    @classmethod
    def of(cls, columns: ConfidenceColumns, counts: PrivateCounts) -> Confidences:
        """Return the confidences of a table that was counted."""
        table = counts.tables[columns.table]
        cells = table.reshape(math.prod(table.shape[:-1]), table.shape[-1])
        places = np.flatnonzero(cells.any(axis=1))
        everybody = cells.sum(axis=0)
        prior = everybody / max(int(everybody.sum()), 1)
        known = tuple(counts.values[name] for name in columns.known)
        return cls(columns, cells, cells[places], places, prior, known, counts.values[columns.sensitive])

    @cached_property
    def phi(self) -> Ints:
        """How many people each group has."""
        return np.asarray(self.theta.sum(axis=1))

    @cached_property
    def jumps(self) -> Floats:
        """The confidence over the prior; 0 for a value that nobody in the group has, or nobody at all."""
        confidence = self.theta / self.phi[:, None]
        return np.divide(confidence, self.prior, out=np.zeros_like(confidence), where=self.prior > 0)

    def labels(self) -> list[str]:
        """Return the groups in words."""
        shape = tuple(len(values) for values in self.known_values)
        parts = []
        for name, values, at in zip(
            self.columns.known, self.known_values, np.unravel_index(self.places, shape), strict=True
        ):
            texts = np.array([f"{name}={value}" for value in values], dtype=object)
            parts.append(texts[at])
        return [", ".join(words) for words in zip(*parts, strict=True)]


def in_words(left_out: int) -> str:
    """Say how many rows an audit leaves out because they miss a cell."""
    many, verb, be = ("1 row", "misses", "is") if left_out == 1 else (f"{left_out:,} rows", "miss", "are")
    return f"{many} {verb} a cell of a column that is named and {be} left out."


def every_choice_of_columns(public: Names, sensitive: Names, ways: Sequence[int]) -> list[ConfidenceColumns]:
    """Return the confidences of each sensitive attribute by every choice of so many others, as `ways` lists.

    A reader may know one sensitive attribute of somebody and guess another, so the others count as known.
    """
    found = []
    for target in sensitive:
        others = (*public, *(name for name in sensitive if name != target))
        for many in dict.fromkeys(min(way, len(others)) for way in ways):
            found += [ConfidenceColumns(known, target) for known in combinations(others, many)]
    return found


def as_names(given: Any, key: str) -> Names:
    """Return names of attributes, or refuse."""
    listed = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if not listed or not all(isinstance(name, str) and name for name in listed) or len(set(listed)) < len(listed):
        raise PlanError("must be the names of one or more attributes, each once", key=key, fix="For instance ['sex'].")
    return listed


def check_apart(public: Names, sensitive: Names) -> None:
    """Refuse an attribute that is called both public and sensitive."""
    both = sorted(set(public) & set(sensitive))
    if both:
        raise PlanError("must not be sensitive as well", key="public", given=both[0], fix="Name it once.")


def as_ways(given: Any) -> tuple[int, ...]:
    """Return how many known attributes make a group, or refuse."""
    listed = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not listed or not all(isinstance(way, int) and not isinstance(way, bool) and way >= 1 for way in listed):
        raise PlanError("must be a whole number from 1, or a list of them", key="ways", fix="Use 2.")
    return listed


def check_known(names: Names, known: Sequence[str], key: str) -> None:
    """Refuse names that are no attributes."""
    for name in names:
        if name not in known:
            raise PlanError("must be an attribute of the policy", key=key, given=name, fix=nearest(name, list(known)))


EXACT: Final = TwoScale(Fraction(0), Fraction(0))
MOST_LEANING: Final = 64  # cells of an exact total whose share in errors still matters
MEAN_ERROR: Final = {LAPLACE: 1.0, GAUSSIAN: math.sqrt(2 / math.pi)}  # in scales


@dataclass(frozen=True)
class OneScale:
    """Independent noise of one scale in every count, of groups and of values. `step` over epsilon is the scale."""

    scale: float
    noise: str
    step: float

    @classmethod
    def checked(cls, scale: Any, noise: Any, step: Any) -> OneScale:
        """Return the noise, or refuse."""
        for key, given in (("scale", scale), ("step", step)):
            is_number = isinstance(given, int | float | np.number) and not isinstance(given, bool)
            if not is_number or not 0 < given < np.inf:
                raise PlanError(
                    "must be a finite number above 0", key=key, given=word_or_kind(given), fix="For instance 48.0."
                )
        closeness(1, 1, float(scale), 0.5, noise)  # refuses a noise that there is none of
        return cls(float(scale), noise, float(step))

    @property
    def epsilon(self) -> float:
        """What all of it costs."""
        return self.step / self.scale

    def at(self, epsilon: float) -> OneScale:
        """Return the same noise at another scale."""
        scale = self.step / epsilon
        return OneScale(scale if self.noise in MEAN_ERROR else float(f"{scale:.6g}"), self.noise, self.step)

    def closeness(self, of: Confidences, tau: float, picked: tuple[Ints, Ints]) -> Floats:
        """Return how likely each ratio of noisy counts that is picked (lines and columns) is close to the true one."""
        return np.asarray(closeness(of.theta[picked], of.phi[picked[0]], self.scale, tau, self.noise))

    def errors(self, of: Confidences) -> Iterator[tuple[Floats, Ints]]:
        """Yield expected absolute errors of published counts with the true ones: one for all cells, and all groups."""
        if self.noise in MEAN_ERROR:
            error = MEAN_ERROR[self.noise] * self.scale
        else:
            error = _mean_error(ratios.named(self.scale, self.noise))
        for counts in (of.cells.reshape(-1), of.cells.sum(axis=1)):
            yield np.broadcast_to(error, counts.shape), counts


@dataclass(frozen=True, eq=False)
class Planned:
    """The tables that plans publish. `plans` may be those of a whole job."""

    plans: tuple[Plan, ...]

    @property
    def policy(self) -> Policy:
        """The policy of all plans."""
        return self.plans[0].policy.charged

    @property
    def epsilon(self) -> float:
        """What all plans cost together."""
        return float(sum(plan.epsilon for plan in self.plans))

    def at(self, epsilon: float) -> Planned:
        """Return plans of the same questions, each at its share of another cost."""
        factor = as_fraction(f"{epsilon / self.epsilon:.4g}", key="epsilon")
        return Planned(tuple(choose(plan.query, plan.policy.charged, plan.epsilon * factor) for plan in self.plans))

    @cached_property
    def tables(self) -> tuple[CountedTable, ...]:
        """Every table of counts that is published."""
        return tuple(table for plan in self.plans for table in plan.counted_tables())

    @property
    def left_out(self) -> tuple[str, ...]:
        """The releases that this audit says nothing about: no tables of everybody, or noise that depends on places."""
        return tuple(str(plan.query) for plan in self.plans if not any(True for _ in plan.counted_tables()))

    def columns(self, public: Names, sensitive: Names) -> list[ConfidenceColumns]:
        """Return the confidences that follow from the tables."""
        found: dict[ConfidenceColumns, None] = {}
        for table in self.tables:
            for target in sensitive:
                known = tuple(name for name in table.names if name != target)
                if target in table.names and known and set(known) <= {*public, *sensitive}:
                    found[ConfidenceColumns(known, target)] = None
        return list(found)

    def closeness(self, of: Confidences, tau: float, picked: tuple[Ints, Ints]) -> Floats:
        """Return how likely the best guess is close to the truth, of all tables that have the counts."""
        sizes = self._sizes(of.columns.known)
        each = [
            _ConfidenceCells.of(table, of).closeness(of, ratios.as_share(tau), picked, sizes)
            for table in self._with(of)
        ]
        return np.asarray(np.max(each, axis=0))

    def errors(self, of: Confidences) -> Iterator[tuple[Floats, Ints]]:
        """Yield the errors of all cells of the table."""
        for table in self._with(of):
            yield _errors(table)[_laid_out(table, table.which, of)].reshape(-1), of.cells.reshape(-1)

    def _with(self, of: Confidences) -> list[CountedTable]:
        return [table for table in self.tables if set(table.names) == set(of.columns.table)]

    def _sizes(self, known: Names) -> list[Law]:
        """Return the noises of tables that publish the sizes of the groups, where all cells have the same."""
        found = []
        for table in self.tables:
            if set(table.names) == set(known) and len(table.laws) == 1:
                terms = table.laws[0]
                if len(terms) <= 1:
                    found.append(terms[0][0] if terms else EXACT)
        return found


PublishedCounts = OneScale | Planned  # noisy counts that readers see, at some cost


@dataclass(frozen=True, eq=False)
class _ConfidenceCells:
    """The cells of a published table as confidences have them: a line for each group, a column for each value."""

    laws: tuple[tuple[Term, ...], ...]
    which: Ints
    exact: Bools  # whether the size of each group follows from exact sums
    leans: Bools  # whether all cells of each group are part of one exact sum, which is of more cells

    @classmethod
    def of(cls, table: CountedTable, confidences: Confidences) -> _ConfidenceCells:
        which = _laid_out(table, table.which, confidences)[confidences.places]
        exact = leans = np.zeros(len(which), dtype=np.bool_)
        if table.groups is not None:
            # a group's size is exact if every exact sum that one of its cells is in lies in the group
            groups = _laid_out(table, table.groups, confidences)
            lines = np.broadcast_to(np.arange(len(groups))[:, None], groups.shape)
            first, last = np.full(int(groups.max()) + 1, len(groups)), np.full(int(groups.max()) + 1, -1)
            np.minimum.at(first, groups, lines)
            np.maximum.at(last, groups, lines)
            exact = (first == last)[groups].all(axis=1)[confidences.places]
            leans = ~exact & (groups == groups[:, :1]).all(axis=1)[confidences.places]
        return cls(table.laws, which, exact, leans)

    def closeness(self, of: Confidences, tau: Fraction, picked: tuple[Ints, Ints], sizes: Sequence[Law]) -> Floats:
        """Return how likely each guess that is picked is close to the truth."""
        lines = picked[0]
        theta, phi, which = of.theta[picked], of.phi[lines], self.which[picked]
        known = self.exact[lines] | np.array([all(not terms for terms in self.laws)])
        found = np.zeros(len(lines))
        for kind, terms in enumerate(self.laws):
            mine = (which == kind) & known
            if mine.any():
                found[mine] = _fitted(theta[mine], terms, tau)
        # of the others, what the cells of the group have together decides how sure the sum of them is
        own = [(terms[0][0] if terms else EXACT) for terms in self.laws]
        together = np.stack([(self.which == kind).sum(axis=1) for kind in range(len(own))], axis=1)
        alike, groups = np.unique(together, axis=0, return_inverse=True)
        groups = groups.reshape(-1)[lines]
        for number, members in enumerate(alike.tolist()):
            for kind, law in enumerate(own):
                for leans in (False, True):
                    mine = (which == kind) & ~known & (groups == number) & (self.leans[lines] == leans)
                    if mine.any():
                        rest = [
                            (one, many - (at == kind)) for at, (one, many) in enumerate(zip(own, members, strict=True))
                        ]
                        total = 1 + sum(many for _, _, many in self.laws[kind][1:]) if leans else 0
                        found[mine] = _guessed(theta[mine], phi[mine], law, rest, total, sizes, tau)
        return found


def _laid_out(table: CountedTable, cells: Ints, confidences: Confidences) -> Ints:
    """Return something of each cell of a table in the order in which confidences have them."""
    turned = np.transpose(cells.reshape(table.shape), [table.names.index(name) for name in confidences.columns.table])
    return turned.reshape(-1, turned.shape[-1])


def _errors(table: CountedTable) -> Floats:
    """Return the expected absolute error of each kind of cell: that of its own noise at the estimate's variance."""
    return np.array([0.0 if not terms else _mean_error(terms[0][0], _variance(terms)) for terms in table.laws])


def _fitted(theta: Ints, terms: tuple[Term, ...], tau: Fraction) -> Floats:
    """Return closeness where the size is exact: the estimate of the cell may lean on its group."""
    if not terms:
        return np.asarray(theta > 0, dtype=np.float64)
    (law, _, _), *others = terms
    if not others:
        return ratios.exact(theta, ratios.values_of(law), tau)
    cells = 1 + sum(many for _, _, many in others)
    alike = all(one == law for one, _, _ in others)
    weight = Fraction(1, cells) if alike else Fraction(-others[0][1])
    rest = _counted((one, many) for one, _, many in others)
    return _mixed(law, rest, lambda noise, summed: ratios.fitted(theta, noise, weight, summed, tau))


def _guessed(
    theta: Ints, phi: Ints, law: Law, rest: Sequence[tuple[Law, int]], total: int, sizes: Sequence[Law], tau: Fraction
) -> Floats:
    """Return closeness where the size is noisy: the surest of the sizes that are published, or the sum of the cells.

    `total` is how many cells the exact total is about that they lean on; 0 if on none.
    """
    others = _counted(rest)
    of_sum = law.variance() + sum(many * one.variance() for one, many in others.items())
    best = min(sizes, key=lambda size: size.variance(), default=None)
    if best is not None and best.variance() < of_sum:
        return ratios.apart(theta, phi, ratios.values_of(law), ratios.values_of(best), tau)
    inside = 1 + sum(others.values())
    if inside < total <= MOST_LEANING and set(others) <= {law}:

        def close(noise: ratios.WholeLaw, summed: ratios.WholeLaw) -> Floats:
            outside = ratios.sum_of([(noise, total - inside)])
            return ratios.leaning(theta, phi, noise, summed, outside, (inside, total), tau)

        return _mixed(law, others, close)
    return _mixed(law, others, lambda noise, summed: ratios.summed(theta, phi, noise, summed, tau))


def _mixed(law: Law, others: Mapping[Law, int], close: Callable[[ratios.WholeLaw, ratios.WholeLaw], Floats]) -> Floats:
    """Return closeness given what the entries of a release share, mixed; entries that share something have one law."""
    found = []
    for chance, noise in ratios.mixture_of(law):
        rest = [(noise if one == law else ratios.values_of(one), many) for one, many in others.items()]
        found.append(chance * close(noise, ratios.sum_of(rest)))
    return np.asarray(np.sum(found, axis=0))


def _counted(parts: Iterable[tuple[Law, int]]) -> dict[Law, int]:
    found: dict[Law, int] = {}
    for law, many in parts:
        if many:
            found[law] = found.get(law, 0) + many
    return found


def _variance(terms: tuple[Term, ...]) -> float:
    return sum(many * weight**2 * law.variance() for law, weight, many in terms)


def _mean_error(law: Law, variance: float | None = None) -> float:
    """Return E|noise - its mean|; for an estimate of another variance, in proportion."""
    if not law.variance():
        return 0.0
    values = ratios.values_of(law)
    own = float(np.abs(values.points - values.mean) @ values.chances)
    return own if variance is None else own * math.sqrt(variance / law.variance())
