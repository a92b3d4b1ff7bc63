"""Masked private counts of several sensitive columns: each column has its masks, and a combination has all of them.

A combination v of the values of several columns has the private count x_v: its count with noise that keeps epsilon and
a fraction between -1/2 and 1/2, moved so that all add up to the size n. The counts X_i of the values of a column follow
from x, and get masks e_i that add up to zero, as if the column were published alone (`publish/methods/masked.py`). A
value that is clear of the noise gets the factor f_i = 1 + e_i / X_i. Any other value gets f_i = 1 + N, with the mask N
that one record would have, and its own mask is added: E_v = e_i times the shares X_j / n that v's values have in the
other columns. Published is

    y_v = x_v * (product of all f) + sum over columns of E_v * (product of the f of the other columns).

Guarantee   Epsilon for every edge between two records that agree in the public columns, against anybody. And the
            (lambda, delta) criterion for every value of every column, every combination of some or all columns, and
            every set of combinations within one value of one column: the published count, and every multiple of it, is
            wrong by more than lambda times the true count with probability at least delta, however the columns depend
            on each other, and whatever is known about other groups. As for one column, it is the limit of large counts
            for values that share the mask of a far larger one. Published numbers are rounded to 2^-20 of a record.
Assumes     Scales of masks stay secret, sizes are public. Nobody knows some counts of a group, or those of a whole
            column of it, or how they relate to each other, and wants the rest. What is published of a group does not
            add up to its size, and the difference tells whoever knows the counts of one column about another.
Why         Epsilon: all is made of x and of fresh noise. The criterion: let A lie within value i of column k. The sum
            over A is y_A = f_i B + G, where B is made of x and of what the other columns drew, and G is the sum of E_v
            of column k times the factors of the others. Given x and what the other columns drew, B is a number. Let i
            be clear, so that G is 0, and a any multiple. If a B = 0, the error is the whole count. Else |a y_A - c| <=
            lambda c says that f_i, hence X_i + e_i, lies in an interval [l, r l] with r = (1 + lambda) / (1 - lambda),
            or that its negative does: a mask of deviation kappa |X_i| + extra or more does so with probability at most
            1 - delta (`publish/methods/masked.py`). Let i be not clear: N B + G is a sum of coins around B, whose
            deviation is at least that of N B, and which is as nearly normal as the mask of one record: the same bound
            holds. Averaged over x and the other columns this is the claim; nothing was assumed about how columns depend
            on each other. Masks that are added, x_v (1 + u_i + w_j), would not do: of independent columns they make a
            table of rank two, which shows the true counts (`audit/selfcheck/planted/tables.py`). Here such a table has
            rank one, and shows what is published of each column. The fraction in x is needed: without it, ratios of
            published numbers would be those of whole numbers, and show which. No bias: given x, factors have the mean
            1, masks the mean 0, and columns are independent. The price: relative variances multiply, (1 + kappa^2)^d -
            1 for a combination of d columns. With a public size d kappa^2 is the least, since the variances of rows and
            of columns add up in that of the table. One column costs what it costs by itself if columns are independent,
            and as much as a combination if one follows from the other. Where each column has one value that outweighs
            all others, the factors of rare values are wide in both, and their combinations wider than useful.
Reference   Han, Sensitive disclosures under differential privacy guarantees, 2016 (the criterion, of one column).
Checked by  tests/unit/publish/test_masked_columns.py, tests/statistical/test_attacked_tables.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from tacit.amounts import shown
from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.draws import uniform_below
from tacit.noise.thinning import bell
from tacit.noise.two_scale import discrete_laplace
from tacit.publish.methods.criterion import READINGS, Channel
from tacit.publish.methods.masked import PARTS, SHARED_ONLY_IN_THE_LIMIT, Masked, moved

FINE: Final = 1 << 20  # parts of a record: sums of many are rounded by less than a part of a mask
_FRACTIONS: Final = 1 << 32  # of a record: far finer than what is published
_MOST: Final = float(1 << 62)


@dataclass(frozen=True)
class ColumnMasks(Masked):
    """The masks of one of several columns, whose counts are sums of private ones: they have noise of this variance."""

    variance: float

    @property
    def noise_variance(self) -> float:
        return self.variance


@dataclass(frozen=True)
class MaskedColumns(Masked):
    """Private counts of combinations, with the masks of every column."""

    @property
    def columns(self) -> list[ColumnMasks]:
        """How each column is masked."""
        each, several = self.noise_variance, self.channel.values
        return [
            ColumnMasks(Channel(self.channel.retention, size), self.criterion, each * several / size)
            for size in self.channel.shape
        ]

    @property
    def of_one_record(self) -> float:
        """The deviation of the mask of one record."""
        return float(self.deviations(np.ones(())))

    @property
    def noise_variance(self) -> float:
        return self.noise.variance() + 1 / 12

    @property
    def unit(self) -> Fraction:
        return Fraction(1, FINE)

    def check(self) -> None:
        """Refuse also each tail: a product of masks is too high less often than each of them."""
        if self.criterion.each:
            rule = "must be 'together' for masked counts of several sensitive columns, whose masks are multiplied"
            fix = "Take method='sample' or 'retention' of plain rows, or publish one column."
            raise PlanError(rule, key="tails", given="each", fix=fix)
        super().check()

    def draw(self, counts: Ints) -> Ints:
        sizes = counts.sum(axis=1)
        fractions = (uniform_below(_FRACTIONS, counts.shape) + 0.5) / _FRACTIONS - 0.5
        private = moved(counts + discrete_laplace(self.noise.right, counts.shape) + fractions, sizes)
        found = self.combined(private, sizes)
        return np.rint(np.clip(FINE * found, -_MOST, _MOST)).astype(np.int64)

    def combined(self, private: Floats, sizes: Ints) -> Floats:
        """Return private counts of combinations with the masks of all columns."""
        table = self.table(private)
        factors, added = np.ones_like(table), np.zeros_like(table)
        for at, column in enumerate(self.columns):
            counts = self.margins(private, at)
            f, over = self.factors(column, counts, sizes)
            own = self._beside(at, f)
            added = added * own + self._beside(at, over) * self._shares(private, at) * factors
            factors = factors * own
        return np.asarray((table * factors + added).reshape(private.shape))

    def factors(self, column: ColumnMasks, counts: Floats, sizes: Ints) -> tuple[Floats, Floats]:
        """Return by what the counts of a column are multiplied, and what is added to those within the noise."""
        mask = column.masked(counts, sizes) / PARTS - counts
        clear = counts >= column.clear
        factors = 1 + np.divide(mask, counts, out=np.zeros_like(mask), where=clear)
        factors[~clear] += bell(np.full(int((~clear).sum()), FINE * self.of_one_record)) / FINE
        return factors, np.where(clear, 0.0, mask)

    def table(self, counts: Floats) -> Floats:
        """Return counts of combinations with an axis for each column."""
        return counts.reshape(len(counts), *self.channel.shape)

    def margins(self, counts: Floats, at: int) -> Floats:
        """Return the counts of the values of one column."""
        others = tuple(axis + 1 for axis in range(len(self.channel.shape)) if axis != at)
        return np.asarray(self.table(counts).sum(axis=others))

    def _beside(self, at: int, numbers: Floats) -> Floats:
        """Return numbers of the values of one column such that they meet the table."""
        return np.asarray(
            numbers.reshape(len(numbers), *(-1 if axis == at else 1 for axis in range(len(self.channel.shape))))
        )

    def _shares(self, counts: Floats, at: int) -> Floats:
        """Return the product of the shares of the values of all other columns."""
        found = np.ones_like(self.table(counts))
        for other, size in enumerate(self.channel.shape):
            if other != at:
                own = np.maximum(self.margins(counts, other), 1e-9 / size)
                found = found * self._beside(other, own / own.sum(axis=1, keepdims=True))
        return found

    def variances(self, counts: Floats, sizes: Ints) -> Floats:
        have = np.maximum(counts, 0)
        squares = self.table(have**2 + self.noise_variance * (1 - 1 / self.channel.values))
        factors, added = np.ones_like(squares), np.zeros_like(squares)
        for at, column in enumerate(self.columns):
            f, over = self.relative_variances(column, self.margins(have, at), sizes)
            own = 1 + self._beside(at, f)
            added = added * own + self._beside(at, over) * self._shares(have, at) ** 2 * factors
            factors = factors * own
        return np.asarray((squares * factors + added).reshape(have.shape) - have**2)

    def sum_variances(self, counts: Floats, sizes: Ints, chosen: list[int], products: float = 1.0) -> Floats:
        """Return about the variance of a sum of masked counts in each group where these are the true ones.

        Two combinations vary together by the masks of their values, column by column. Published counts may stand for
        the true ones: a factor that is off, even below zero, is in a count and in those of its values alike.
        `products` is the weight of what masks of several columns add by their product.
        """
        values, mine = np.unravel_index(chosen, self.channel.shape), counts[:, chosen]
        noise = self.noise_variance * (np.eye(len(chosen)) - 1 / counts.shape[1])
        columns = []
        for at, column in enumerate(self.columns):
            every, own = self.margins(counts, at), values[at]
            clear = (abs(every) >= column.clear)[:, own]
            carries = np.divide(mine, every[:, own], out=np.zeros_like(mine), where=clear)
            added = np.where(clear, 0.0, self._shares(abs(counts), at).reshape(counts.shape)[:, chosen])
            columns.append((column.mask_covariances(abs(every), sizes), own, every[:, own], clear, carries, added))
        found = np.zeros(len(counts))
        for one in range(len(chosen)):
            squares = mine * mine[:, [one]]
            factors, over, alone = np.ones_like(mine), np.zeros_like(mine), np.broadcast_to(noise[one], mine.shape)
            for masks, own, every, clear, carries, added in columns:
                with_one = masks[:, own[one]][:, own]
                both = clear & clear[:, [one]]
                relative = np.divide(with_one, every * every[:, [one]], out=np.zeros_like(mine), where=both)
                relative += (own == own[one]) * ~clear * self.of_one_record**2
                beside = with_one * (carries * added[:, [one]] + added * (carries + added)[:, [one]])
                alone = alone + squares * relative + beside
                over, factors = over * (1 + relative) + beside * factors, factors * (1 + relative)
            every_part = (squares + noise[one]) * factors - squares + over
            found += (alone + products * (every_part - alone)).sum(axis=1)
        return np.asarray(np.maximum(found, noise.sum() + self.of_one_record**2))

    def sum_variance(self, estimates: Floats, sizes: Ints, columns: list[int]) -> float:
        chosen = np.zeros(estimates.shape[1])
        chosen[columns] = 1
        noise = self.noise_variance * len(columns)
        squares = np.maximum((estimates * chosen).sum(axis=1) ** 2, 1.0 + noise)
        varies = np.ones(len(estimates))
        for at, column in enumerate(self.columns):
            every, mine = self.margins(estimates, at), self.margins(estimates * chosen, at)
            wide = np.sqrt(column.mask_variances(every, sizes))
            part = np.clip(mine / np.where(abs(every) < 1, 1.0, every), 0.0, 1.0)
            alone = column.channel.values == 2 or column.layout(every, sizes).alone
            # masks of a column that are not shared are negatively related; any others move together at most
            alike = np.where(alone, (part * wide).sum(axis=1), np.sqrt(((part * wide) ** 2).sum(axis=1)))
            varies *= 1 + np.minimum(alike, ((1 - part) * wide).sum(axis=1)) ** 2 / squares
        return float(((varies - 1) * squares + noise).sum())

    def column_variances(self, counts: Floats, sizes: Ints, chosen: list[int]) -> Floats:
        """Return which part of that variance is due to each column by itself: a row for each."""
        found, some = [], np.zeros(counts.shape[1])
        some[chosen] = 1
        for at, column in enumerate(self.columns):
            every, mine = self.margins(counts, at), self.margins(counts * some, at)
            clear = abs(every) >= column.clear
            shares = (self._shares(abs(counts), at).reshape(counts.shape)) * some
            part = np.where(clear, mine / np.where(clear, every, 1.0), self.margins(shares, at))
            masks = np.einsum("gi,gij,gj->g", part, column.mask_covariances(abs(every), sizes), part)
            found.append(masks + self.of_one_record**2 * (np.where(clear, 0.0, mine) ** 2).sum(axis=1))
        return np.array(found)

    def relative_variances(self, column: ColumnMasks, counts: Floats, sizes: Ints) -> tuple[Floats, Floats]:
        """Return about the variance of the factors of a column, and of what is added."""
        wide = column.mask_variances(counts, sizes)
        clear = counts >= column.clear
        relative = np.divide(wide, counts**2, out=np.full_like(wide, self.of_one_record**2), where=clear)
        return relative, np.where(clear, 0.0, wide)

    def estimated_variances(self, estimates: Floats, sizes: Ints) -> Floats:
        return self.variances(estimates, sizes)

    @property
    def leaves_open(self) -> list[str]:
        return [
            *super().leaves_open,
            "how the sensitive columns depend on each other in a group (odds ratios) is shown with the noise that "
            "keeps epsilon and without a mask; somebody who knows the counts of one sensitive column of a group may "
            "find those of another from this and from the total, which is not the size of the group",
        ]

    def words(self) -> list[str]:
        return [
            f"counts of each group with noise that keeps epsilon, masked by whole-number noise of {self.kappa:.4g} "
            "times the count of each value of each sensitive column; a combination has the masks of all its values; "
            "scales of masks are secret, masks of groups are independent",
            "the published count of each value of each sensitive column, of each combination, and of each set of "
            "combinations within one value of a column, and every multiple of it: the chance of an error above "
            f"{shown(self.criterion.lam)} times the true count is at least {shown(self.criterion.delta)}, "
            f"{READINGS['together']}, however the columns depend on each other, whatever is known about other groups",
            SHARED_ONLY_IN_THE_LIMIT.format(place="of their column"),
        ]
