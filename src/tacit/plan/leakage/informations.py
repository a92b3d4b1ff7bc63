"""What each release says about each protected attribute, as convex functions of the release probabilities.

`MeasuredTables` are the joint tables of attributes, by value or only as sensitive or not; `Terms` what they say.

Guarantee   `Terms.at(u)` is, for each limit, the sum of the mutual informations that it bounds, in nats; each line of
            release adds a function of its own release probability that is convex, rises, and is 0 at 0. Less than
            `NOTHING` with everything shown counts as nothing: rounding could be the cause.
Assumes     One-sided randomised response: a value that is not sensitive is released with probability u = 1 - exp(-eps),
            and else nothing is shown. Tables are probabilities.
Why         Let p(x) be the law of the target, r(x) its mass where the released attribute is not sensitive, R the sum
            of r. The outcome "value v" has mass u p(x, v), so that it adds u p(x, v) log(p(x, v) / (p(x) p(v))): a
            straight line in u. The outcome "nothing" has mass q(x) = p(x) - u r(x) and Q = 1 - u R, and adds
            sum q log(q / (p Q)), whose slope is - sum r log(q / (p Q)) and whose curvature is
            sum r^2 / q - R^2 / Q >= 0 (Cauchy and Schwarz). At u = 0 value and slope of the second part are 0, and an
            information is never negative, so the slope of the whole at 0 is not negative either: it rises.
Reference   Cover and Thomas, Elements of Information Theory, Theorem 2.7.4: convex in the channel, and that is affine
            in u.
Checked by  tests/unit/plan/test_leakage_terms.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.dependence.nearby import Around, around

Mask = npt.NDArray[np.bool_]

ROUNDING = 2.0**-50  # of one operation, with room: an addend has a few of them
NOTHING = 1e-15  # nats: what rounding makes of no information


@dataclass(frozen=True)
class Term:
    """One information: a limit, a line of release, and the joint table of target (rows) and released attribute."""

    limit: int
    line: int
    table: Floats
    sensitive: Mask  # of the columns


@dataclass(frozen=True)
class Terms:
    """All informations of a program: cells are (limit, line, value of a target), and what is not there has mass 0."""

    prior: Floats
    share: Floats  # how much of the prior of a value lies where the released attribute is not sensitive
    slope: Floats  # (limit, line): what released values add, for each unit of u
    released: Floats  # (line): how likely the attribute is not sensitive

    @property
    def limits(self) -> int:
        """How many sums there are."""
        return len(self.slope)

    def each(self, u: Floats) -> Floats:
        """Return what each line adds to each limit."""
        return self.with_curvatures(u)[0]

    def at(self, u: Floats) -> Floats:
        """Return the sum that each limit bounds."""
        return np.asarray(self.each(u).sum(axis=1))

    def with_slopes(self, u: Floats) -> tuple[Floats, Floats]:
        """Return what each line adds to each limit, and its slope in the line's release probability."""
        return self.with_curvatures(u)[:2]

    def with_curvatures(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the same with the second derivatives."""
        rest, ratio, total = self._logs(u)
        mass = self.prior * self.share
        value = u * self.slope + (self.prior * rest * ratio).sum(axis=2)
        slope = self.slope - (mass * ratio).sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            curvature = np.where(rest > 0, mass * self.share / rest, 0.0).sum(axis=2)
            curvature -= np.where(total > 0, self.released / total, 0.0) * mass.sum(axis=2)
        # value and slope are differences of nearly equal numbers where nothing is learned
        return np.maximum(value, 0.0), np.maximum(slope, 0.0), np.maximum(curvature, 0.0)

    def rounding(self, u: Floats) -> Floats:
        """Return a bound on the error of `at` from floating-point numbers."""
        rest, ratio, _ = self._logs(u)
        size = np.abs(u * self.slope).sum(axis=1) + np.abs(self.prior * rest * ratio).sum(axis=(1, 2))
        return np.asarray(ROUNDING * (self.prior.shape[1] + self.prior.shape[2] + 8) * size)

    def part(self, limits: Mask, lines: Mask) -> Terms:
        """Return the terms of some limits and lines."""
        both = np.ix_(limits, lines)
        return Terms(self.prior[both], self.share[both], self.slope[both], self.released[lines])

    def _logs(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Return q / p, log(q / (p Q)) and Q; where nothing is left of a value, the logarithm does not matter."""
        rest = 1.0 - u[:, None] * self.share
        total = 1.0 - u * self.released
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log1p(-u[:, None] * self.share) - np.log1p(-u * self.released)[:, None]
        return rest, np.where((rest > 0) & (total > 0)[:, None], ratio, 0.0), total


def gathered(terms: Sequence[Term], *, limits: int, lines: int, released: Floats) -> Terms:
    """Return terms in arrays; the targets of one limit and line stand one after the other."""
    rows: dict[tuple[int, int], list[tuple[Floats, Floats]]] = {}
    slope = np.zeros((limits, lines))
    for term in terms:
        prior = term.table.sum(axis=1)
        open_part = term.table[:, ~term.sensitive]
        rows.setdefault((term.limit, term.line), []).append((prior, open_part.sum(axis=1)))
        with np.errstate(divide="ignore", invalid="ignore"):
            # logarithms apart: a product of small probabilities would be rounded to zero
            logs = np.log(open_part) - np.log(prior)[:, None] - np.log(open_part.sum(axis=0))
            slope[term.limit, term.line] += np.where(open_part > 0, open_part * logs, 0.0).sum()
    width = max((sum(len(prior) for prior, _ in found) for found in rows.values()), default=1)
    prior_cells, share = np.zeros((limits, lines, width)), np.zeros((limits, lines, width))
    for place, found in rows.items():
        prior, mass = (np.concatenate(parts) for parts in zip(*found, strict=True))
        prior_cells[place][: len(prior)] = prior
        share[place][: len(prior)] = np.where(prior > 0, np.minimum(mass / np.where(prior > 0, prior, 1.0), 1.0), 0.0)
    whole = Terms(prior_cells, share, slope, released)
    # what says nothing even if it is always shown says nothing at all; by rounding it would say a little
    tells = whole.each(np.ones(lines)) > NOTHING
    return Terms(prior_cells * tells[:, :, None], share * tells[:, :, None], slope * tells, released)


BLOCK = 128  # cells of a group of attributes that are inferred together
MEASURES = {
    "value": "what is seen (the value, or nothing) tells about the value of the protected attribute",
    "bit": "whether something is seen tells about whether the protected attribute is sensitive",
}


class MeasuredTables:
    """The tables of one dependence, under one measure; each is made once.

    Under `bit` every attribute has two values, sensitive and not: then both what is protected and what is seen is one
    bit, as in the paper. Under `value` both are whole values, and a released one shows itself.
    """

    def __init__(
        self, dependence: Dependence, sensitive: Mapping[str, frozenset[int]], names: Sequence[str], measure: str
    ) -> None:
        self.dependence = dependence
        self._sensitive = sensitive
        self._is_bit = measure == "bit"
        self._block = _blocks({name: len(dependence.values[name]) for name in names})
        self._joint = cache(dependence.marginal)
        self.table = cache(self._table)

    def sensitive(self, name: str) -> Mask:
        """Say which values of an attribute are never shown."""
        if self._is_bit:
            return np.array([True, False])
        return self._by_value(name)

    def size(self, name: str) -> int:
        """Return how many values an attribute has."""
        return 2 if self._is_bit else len(self.dependence.values[name])

    def around(self, targets: Sequence[str], seen: Sequence[str], most: int) -> Around:
        """Return what is seen around targets, and the border."""
        return around(self.dependence, targets, seen, lambda name: len(self.dependence.values[name]) + 1, most)

    def released(self, name: str) -> float:
        """Return how likely an attribute is not sensitive."""
        return float(self.table(name)[~self.sensitive(name)].sum())

    def _pair(self, first: str, second: str) -> Floats:
        """Return the joint of two attributes from the joint of their blocks: one inference is enough for many pairs."""
        together = sorted({self._block[first], self._block[second]})
        names = [name for block in together for name in block]
        axes = [names.index(first), names.index(second)]
        joint = self._joint(*names)
        found = np.asarray(joint.sum(axis=tuple(axis for axis in range(len(names)) if axis not in axes)))
        return found if axes[0] < axes[1] else found.T

    def _by_value(self, name: str) -> Mask:
        hidden = self._sensitive.get(name, frozenset())
        return np.array([at in hidden for at in range(len(self.dependence.values[name]))])

    def _table(self, *names: str) -> Floats:
        """Return the joint of attributes, one axis for each; an attribute that is named twice agrees with itself."""
        once = list(dict.fromkeys(names))
        found = self._pair(*once) if len(once) == 2 else self._joint(*once)
        if self._is_bit:
            for axis, name in enumerate(once):
                hidden = self._by_value(name)
                halves = [found.compress(side, axis=axis).sum(axis=axis) for side in (hidden, ~hidden)]
                found = np.stack(halves, axis=axis)
        found = found / found.sum()
        for axis, name in enumerate(names):
            if name in names[:axis]:
                found = _repeated(found, names.index(name), axis)
        return found


def _blocks(sizes: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return small groups of attributes, by attribute, whose joint tables have few cells."""
    groups: list[list[str]] = [[]]
    for name, size in sizes.items():
        if math.prod(sizes[one] for one in groups[-1]) * size > BLOCK:
            groups.append([])
        groups[-1].append(name)
    return {name: tuple(group) for group in groups for name in group}


def _repeated(table: Floats, axis: int, at: int) -> Floats:
    """Return a table with an axis put in that always agrees with an earlier one."""
    size = table.shape[axis]
    moved = np.moveaxis(table, axis, 0)
    found = np.zeros((size, size, *moved.shape[1:]))
    found[np.arange(size), np.arange(size)] = moved
    return np.moveaxis(found, [0, 1], [axis, at])
