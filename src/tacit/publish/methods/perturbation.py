"""Uniform perturbation: each record keeps its sensitive value with probability p, else gets any of the m values.

Guarantee   For every edge between two records that agree in the public columns, every data set and every set O of
            tables: Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O], with epsilon = ln(1 + p m / (1 - p)),
            rounded up. It holds in both directions, and for all versions of a table to which rows are appended
            together.
Assumes     Who is in the data, and everybody's public values, are no secret: sizes of groups are published as they
            are. A record is perturbed once. Records are not correlated: of a set of them that are, one is in the
            table.
Why         A table is a function of independent records, of which one differs. Whatever that record shows, the chance
            is p + (1-p)/m or (1-p)/m; the largest ratio is 1 + p m / (1 - p). Counts are enough: records of one group
            with one value are exchangeable, so how many of them keep it is binomial, and those that do not are shared
            out uniformly. Rows that come later have coins of their own, and old ones keep theirs.
Reference   Warner, Randomized response, 1965; Agrawal, Srikant, Thomas, Privacy-preserving OLAP, SIGMOD 2005;
            Evfimievski, Gehrke, Srikant, Limiting privacy breaches, PODS 2003 (amplification and rho1-rho2).
Checked by  tests/unit/publish/test_perturbation.py, tests/unit/publish/test_published_tables.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tacit.amounts import as_epsilon, as_share, shown
from tacit.arrays import Floats, Ints
from tacit.errors import PlanError, word_or_kind
from tacit.noise.thinning import spread, thin
from tacit.publish.methods.criterion import Channel, as_retention
from tacit.publish.methods.method import Method

_FINE: Final = 10**9  # retentions that follow from a promise are rounded down to a multiple of this part
_FEW: Final = 4  # numbers of a list that a refusal repeats


def retention_for(values: int, *, epsilon: Any = None, rho: Any = None) -> Fraction:
    """Return the largest retention that keeps a promise, rounded down.

    Args:
        values: how many values there are; of several columns, how many combinations.
        epsilon: what one record may lose at most.
        rho: a pair (rho1, rho2): whatever somebody thought less likely than rho1 must stay less likely than rho2
            (upward), and whatever was more likely than rho2 must stay more likely than rho1 (downward).

    >>> retention_for(2, epsilon=1) < Fraction(47, 100), retention_for(10, rho=(0.1, 0.5)) < Fraction(8, 18)
    (True, True)
    """
    if (epsilon is None) == (rho is None):
        raise PlanError("must be given, or rho, and not both", key="epsilon", fix="For instance epsilon=1.")
    if epsilon is not None:
        limit = as_epsilon(epsilon)
        with localcontext() as context:
            context.prec = 60
            # rounded down, in relation to itself; the next step rounds down by far more
            power = (Decimal(limit.numerator) / Decimal(limit.denominator)).exp() * (1 - Decimal("1e-50"))
        ratio = Fraction(power)
    else:
        low, high = _rho(rho)
        # prior odds below rho1 : 1 - rho1 grow by the ratio at most; both breaches need it to reach this
        ratio = high * (1 - low) / (low * (1 - high))
    best = (ratio - 1) / (ratio - 1 + values)
    found = Fraction(floor(best * _FINE), _FINE)
    found -= Fraction(1, _FINE) if found == best else 0
    return as_retention(found)


def _rho(given: Any) -> tuple[Fraction, Fraction]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        several = isinstance(given, list | tuple) and given
        words = ", ".join(str(word_or_kind(one)) for one in given[:_FEW]) if several else word_or_kind(given)
        rule, fix = "must be a pair of probabilities", "For instance rho=(0.1, 0.5)."
        raise PlanError(rule, key="rho", given=words, fix=fix)
    low, high = (as_share(one, key="rho") for one in given)
    if not 0 < low < high < 1:
        rule = "must be two probabilities, the first below the second"
        raise PlanError(rule, key="rho", given=f"{shown(low)}, {shown(high)}", fix="For instance rho=(0.1, 0.5).")
    return low, high


def perturb(counts: npt.ArrayLike, channel: Channel) -> Ints:
    """Return the counts of each group (a row) after each record kept its value or got a random one."""
    true = np.asarray(counts, np.int64)
    kept = thin(true, channel.retention)
    return kept + spread(true.sum(axis=1) - kept.sum(axis=1), channel.values)


@dataclass(frozen=True)
class Uniform(Method):
    """Every record is perturbed alike."""

    channel: Channel

    name: ClassVar[str] = "uniform"

    def draw(self, counts: Ints) -> Ints:
        return perturb(counts, self.channel)

    def estimates(self, published: Ints, sizes: Ints) -> Floats:
        # without bias (Lemma 3)
        spread_, p = float(self.channel.spread), float(self.channel.retention)
        return np.asarray((published - sizes[:, None] * spread_) / p)

    def variances(self, counts: Floats, sizes: Ints) -> Floats:
        coins = self.channel.variance(np.clip(counts, 0, sizes[:, None]), sizes[:, None])
        return np.asarray(coins / float(self.channel.retention) ** 2)

    def nonnegative(self, published: Ints, sizes: Ints) -> Floats:
        """Return the most likely counts of all groups together that are zero or more (one row)."""
        total = int(sizes.sum())
        return total * likeliest(published.sum(axis=0) / max(total, 1), self.channel)[None, :]

    @property
    def appends(self) -> bool:
        return True  # each row is perturbed by itself

    def words(self) -> list[str]:
        channel = self.channel
        return [
            f"each record keeps its value with probability {shown(channel.retention)}, "
            f"else it gets one of {channel.values} values, all equally likely"
        ]


def likeliest(shares: npt.ArrayLike, channel: Channel) -> Floats:
    """Return the most likely frequencies that are zero or more and add up to one, for these shares of shown values.

    The likelihood sum of o log(p f + s) has its maximum where p f + s is proportional to o on the values that occur,
    and f = 0 on the others; a value occurs iff its share lies above the level that the others leave.
    """
    o = np.asarray(shares, np.float64)
    p, s = float(channel.retention), float(channel.spread)
    order = np.argsort(-o, kind="stable")
    sums = np.cumsum(o[order])
    many = np.arange(1, o.size + 1)
    # with the first k values: p f + s = o * (p + k s) / sum of their shares
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = o[order] * (p + many * s) > s * sums
    k = max(int(np.flatnonzero(fits).max(initial=-1)) + 1, 1)
    found = np.zeros(o.size)
    total = sums[k - 1]
    found[order[:k]] = np.maximum((o[order[:k]] * (p + k * s) / total - s) / p, 0) if total else 1 / k
    return np.asarray(found / found.sum())
