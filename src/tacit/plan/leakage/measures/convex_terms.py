"""What every release says about every protected attribute, as convex functions of the release probabilities.

Guarantee   `Terms.at(u)` is, for each limit, the sum of the mutual informations that it bounds, in nats; each line of
            release adds a function of its own release probability that is convex, rises, and is 0 at 0. Less than
            `NOTHING` with everything shown counts as nothing: it cannot be told from rounding.
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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.arrays import Floats

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
        value, _, _ = self._parts(u)
        return value

    def at(self, u: Floats) -> Floats:
        """Return the sum that each limit bounds."""
        found: Floats = self.each(u).sum(axis=1)
        return found

    def with_slopes(self, u: Floats) -> tuple[Floats, Floats]:
        """Return what each line adds to each limit, and how fast that rises."""
        value, slope, _ = self._parts(u)
        return value, slope

    def with_curvatures(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the same, and how fast the slopes rise."""
        return self._parts(u)

    def rounding(self, u: Floats) -> Floats:
        """Return a bound on the error of `at` from floating-point numbers."""
        rest, ratio, _ = self._logs(u)
        size = np.abs(u * self.slope).sum(axis=1) + np.abs(self.prior * rest * ratio).sum(axis=(1, 2))
        found: Floats = ROUNDING * (self.prior.shape[1] + self.prior.shape[2] + 8) * size
        return found

    def kept(self, limits: Mask, lines: Mask) -> Terms:
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

    def _parts(self, u: Floats) -> tuple[Floats, Floats, Floats]:
        rest, ratio, total = self._logs(u)
        mass = self.prior * self.share
        value = u * self.slope + (self.prior * rest * ratio).sum(axis=2)
        slope = self.slope - (mass * ratio).sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            curvature = np.where(rest > 0, mass * self.share / rest, 0.0).sum(axis=2)
            curvature -= np.where(total > 0, self.released / total, 0.0) * mass.sum(axis=2)
        # both are differences of nearly equal numbers where nothing is learned
        return np.maximum(value, 0.0), np.maximum(slope, 0.0), np.maximum(curvature, 0.0)


def gathered(terms: Sequence[Term], *, limits: int, lines: int, released: Floats) -> Terms:
    """Return terms in one array; the targets of one limit and line stand one after the other."""
    rows: dict[tuple[int, int], list[tuple[Floats, Floats]]] = {}
    slope = np.zeros((limits, lines))
    for term in terms:
        prior = term.table.sum(axis=1)
        open_part = term.table[:, ~term.sensitive]
        rows.setdefault((term.limit, term.line), []).append((prior, open_part.sum(axis=1)))
        slope[term.limit, term.line] += _straight_part(open_part, prior)
    width = max((sum(len(prior) for prior, _ in found) for found in rows.values()), default=1)
    prior_cells, share = np.zeros((limits, lines, width)), np.zeros((limits, lines, width))
    for place, found in rows.items():
        prior = np.concatenate([part for part, _ in found])
        mass = np.concatenate([part for _, part in found])
        prior_cells[place][: len(prior)] = prior
        share[place][: len(prior)] = np.where(prior > 0, np.minimum(mass / np.where(prior > 0, prior, 1.0), 1.0), 0.0)
    whole = Terms(prior_cells, share, slope, released)
    # what says nothing even if it is always shown says nothing at all: rounding would make a little of it
    tells = whole.each(np.ones(lines)) > NOTHING
    return Terms(prior_cells * tells[:, :, None], share * tells[:, :, None], slope * tells, released)


def _straight_part(open_part: Floats, prior: Floats) -> float:
    """Return what released values say for each unit of u: p log(p / (p(x) p(v))) over values that may be released."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # logarithms apart: a product of small probabilities would be rounded to zero
        told = np.log(open_part) - np.log(prior)[:, None] - np.log(open_part.sum(axis=0))[None, :]
        cells = np.where(open_part > 0, open_part * told, 0.0)
    return float(cells.sum())
