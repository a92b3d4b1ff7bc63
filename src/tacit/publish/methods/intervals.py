"""Intervals of counts in published tables: the counts under which what was published is likely enough.

A count is in the interval unless, if it were the true one, a published number as far out would be less likely than is
allowed: the mask grows with the count, so a width from the estimate would be too narrow where that is low.

Guarantee   None for people; these are statements about accuracy, from published numbers alone. For one count of one
            group of a masked table, the interval holds the true count at least as often as its level says. Measured in
            400 settings (2 to 46 values, groups of 20 to 20,000, five criteria, four retentions), 400 tables each, at
            0.9, 0.95, 0.99 and 0.999: none is below its level by more than sampling explains. For more than three
            counts together it is a rule of the first order. Measured in 186 settings: above the level on average; one
            is below at 0.99 and three at 0.999, by a hundredth at most. For several columns: 64 settings of sums and 64
            of single groups (2 or 3 columns, groups of 10 to 40,000, half with a value that outweighs its column), 400
            tables each at the four levels: none is below its level by more than sampling explains.
Assumes     The table was made by its method. For tables of perturbed records: the normal law.
Why         Given the true count c and the noise nu, the mask is normal (or in lumps) with a width that follows from x =
            c + nu, so that Pr[Y < y] is a mean over the noise, whose law is known. With two values the width is that of
            the larger one. With more the reader does not know the layout of the masks, so a count is left out only if
            it is too unlikely under each that is possible: with the mask of its own count; with one by the public size,
            if it may be the largest; beside each possible larger one, sharing its mask (both published numbers are off:
            chi-square with two degrees) or with a mask by the public size. The ends of the intervals of up to three
            counts are added, each with its part of the error (Bonferroni). More are a sum: its estimated deviation
            moves with it, which counts to the first order. Several columns: a count times the factors of all columns.
            In the variance of a sum published counts replace the true ones: a factor that is off is in a combination
            and in its values alike. Where the table does not show that (counts within the noise, groups that do not add
            up to about their size), masks are as wide as the public size allows.
Reference   Neyman, Outline of a theory of statistical estimation, 1937 (inverting tests).
Checked by  tests/unit/publish/test_intervals_of_tables.py, tests/statistical/test_masked_intervals.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial, singledispatch
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from tacit.arrays import Floats, Ints
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.masked_columns import MaskedColumns
from tacit.publish.methods.method import Method

_NODES: Final = 30  # on either side of the law of noise, and twice as many in the middle
_RARE: Final = 1e-7  # what lies beyond them
_WIDER: Final = 1.05  # intervals of sums than by the rule, whose widths are estimates
_FEW: Final = 3  # counts whose own intervals are added
_ROOM: Final = 0.9  # of the chance of an error is used: the rest is for what the normal law and nodes leave out
_GRID: Final = 64  # candidates of a count on either side
_FACTORS: Final = 21  # nodes of a factor
_FAR: Final = 4.0  # deviations: no mask is farther off
_HEAVY: Final = 4.0  # times the variance of products of masks: their law has longer tails than the normal one
_TOTAL: Final = 0.5  # masks of the size: published counts that are farther from adding up mislead
_ABOVE: Final = 3.0  # times a count that is clear of the noise: then the table shows the masks of values
_LEFT: Final = 60  # candidates of the sum of all counts but the largest


@singledispatch
def interval_of(method: Method, shown: Floats, sizes: Ints, columns: list[int], level: float) -> tuple[float, float]:
    """Return the ends of an interval for a sum of counts, by the normal law; not cut off."""
    middle = float(shown[:, columns].sum())
    reach = float(ndtri((1 + level) / 2)) * float(np.sqrt(method.sum_variance(shown, sizes, columns)))
    return middle - reach, middle + reach


@interval_of.register
def _(method: Masked, shown: Floats, sizes: Ints, columns: list[int], level: float) -> tuple[float, float]:
    others = [at for at in range(shown.shape[1]) if at not in columns]
    if len(others) < len(columns):  # what is left says the same
        low, high = interval_of(method, shown, sizes, others, level) if others else (0.0, 0.0)
        return float(sizes.sum()) - high, float(sizes.sum()) - low
    alpha, many = _ROOM * (1 - level), len(sizes) * len(columns)
    if many <= _FEW:
        return _added(
            _accepted(
                partial(one_count, method, shown[[row]], sizes[[row]], at), shown[row, at], sizes[row], alpha / many
            )
            for row, at in product(range(len(sizes)), columns)
        )
    middle = float(shown[:, columns].sum())
    return _accepted(partial(sums, method, shown[None], sizes, columns), middle, float(sizes.sum()), alpha)


def _added(ends: Iterable[tuple[float, float]]) -> tuple[float, float]:
    low, high = zip(*ends, strict=True)
    return sum(low), sum(high)


def _accepted(chances: Callable[[Floats], Floats], middle: float, size: float, alpha: float) -> tuple[float, float]:
    """Return the smallest and the largest count on a grid that is likely enough, rounded outwards."""
    at, most = float(np.clip(middle, 0.0, size)), max(float(size), 1.0)
    near = np.concatenate([[0.0], np.geomspace(1e-5 * most, most, _GRID)])
    grid = np.unique(np.clip(np.concatenate([at - near, at + near]), 0.0, size))
    fits = np.flatnonzero(chances(grid[None])[0] >= alpha)
    ends = [at, at]
    for side, inside in enumerate((fits.min(initial=grid.size), fits.max(initial=-1)) if fits.size else ()):
        outside = inside + (1 if side else -1)
        if not 0 <= outside < grid.size:
            ends[side] = float(grid[inside])
            continue
        between = np.linspace(grid[inside], grid[outside], _GRID // 2)
        last = int(np.flatnonzero(chances(between[None])[0] >= alpha).max(initial=0))
        ends[side] = float(between[min(last + 1, between.size - 1)])
    return min(ends[0], at), max(ends[1], at)


def _untold(method: Masked) -> float:
    """Return how many records the values beside a largest one have at most, if their masks follow from the public size.

    For that a fifth of them must be within the noise, which is at most half of `clear` for each value. If masks are
    never shared they always do.
    """
    if method.beside is None:
        return float("inf")
    return 2.6 * method.clear * (method.channel.values - 1)


@lru_cache(maxsize=64)
def noise_nodes(method: Masked, groups: int = 1, cells: int = 1) -> tuple[Floats, Floats]:
    """Return nodes and weights of the law of the noise in a sum over so many groups, and cells of each.

    Counts are moved, so that those of a group add up: its noise is (1 - k/m) times that of k cells, less k/m times that
    of the others. Laws are multiplied as characteristic functions.
    """
    m, scale = method.channel.values, float(method.noise.right)
    q = np.exp(-1 / scale)
    deviation = np.sqrt(method.noise_variance * groups * cells)
    step = max(1 / 32, deviation / 256)
    many = 1 << int(np.ceil(np.log2((24 * deviation + 40 * scale) / step)))
    t = 2 * np.pi * np.fft.fftfreq(many, step)

    def law(weight: float) -> Floats:
        return np.asarray((1 - q) ** 2 / (1 - 2 * q * np.cos(weight * t) + q * q))

    part = 0.0 if m == 2 else cells / m
    one = law(1 - part) ** cells * law(part) ** (m - cells)
    mass = np.real(np.fft.fft(one**groups * np.exp(-0.5 * (1.6 * step * t) ** 2)))
    mass = np.maximum(np.fft.fftshift(mass), 0.0)
    mass /= mass.sum()
    place = (np.arange(many) - many // 2) * step
    rare = np.geomspace(_RARE, 0.02, _NODES)
    ends = np.concatenate([rare, np.linspace(0.02, 0.98, 2 * _NODES)[1:-1], 1 - rare[::-1]])
    cut = np.unique(np.concatenate([[0], np.searchsorted(np.cumsum(mass), ends)]))
    cut = cut[cut < many]
    weight = np.add.reduceat(mass, cut)
    mean = np.add.reduceat(mass * place, cut) / np.maximum(weight, 1e-300)
    return mean[weight > 0], weight[weight > 0]


def _two_sided(below: Floats) -> Floats:
    return np.asarray(2 * np.minimum(below, 1 - below))


def _below(method: Masked, y: Floats, c: Floats, width: Callable[[Floats], Floats]) -> Floats:
    """Return how likely a smaller number is published, if the count is c and a private count x has this width."""
    nu, weight = noise_nodes(method)
    x = c[..., None] + nu
    return np.asarray((ndtr((y[..., None] - x) / width(x)) * weight).sum(axis=-1))


def one_count(method: Masked, shown: Floats, sizes: Ints, at: int, count: Floats) -> Floats:
    """Return how likely what is published is as far out, for candidates of a count: a row for each group."""
    m = method.channel.values
    y, n, c = shown[:, at, None], sizes[:, None].astype(np.float64), np.asarray(count, np.float64)
    if m == 2:
        if method.lumps:
            nu, weight = noise_nodes(method)
            x = c[..., None] + nu
            below = method.lumps.below(y[..., None] - x, np.maximum(x, n[..., None] - x))
            return _two_sided((below * weight).sum(axis=-1))
        return _two_sided(_below(method, y, c, lambda x: method.deviations(np.maximum(x, n[..., None] - x))))
    found = _two_sided(_below(method, y, c, method.deviations))
    noise = np.sqrt(method.noise_variance * (1 - 1 / m))
    few = _untold(method) + 3 * np.sqrt(m) * noise
    # it may be the largest one, and its mask follow from the public size
    may_be = (c + 3 * noise > (n - c) / np.sqrt(m - 1)) & (n - c < few)
    by_size = _two_sided(
        _below(method, y, c, lambda x: np.maximum(method.deviations(n)[..., None], method.deviations(x)))
    )
    found = np.where(may_be, np.maximum(found, by_size), found)
    # or stand beside a larger one: every one is tried, with every sum of the others
    first = np.maximum(c - 3 * noise, 1.0)[..., None]
    left = first * (np.maximum(n[..., None], first) / first) ** np.linspace(0, 1, _LEFT)
    z = n[..., None] - left
    outweighs = (z >= c[..., None] - 3 * noise - 1) & (z**2 * (m - 1) >= left**2 - 6 * noise * left)
    reached = np.zeros(c.shape, np.bool_)
    for other in range(m):
        if other != at:
            larger = shown[:, other, None, None]
            off = _shared(method, y[..., None], c[..., None], n[..., None] - larger, left)
            off = off + ((larger - z) / np.hypot(method.deviations(z), noise)) ** 2
            # two numbers that are off: chi-square
            found = np.maximum(found, np.exp(-np.where(outweighs, off, np.inf).min(axis=-1) / 2))
            by_size = outweighs & (left < few) & (abs(larger - z) < _FAR * method.deviations(n)[..., None])
            reached |= by_size.any(axis=-1)
    least = float(method.deviations(np.ones(()))) ** 2

    def by_public_size(x: Floats) -> Floats:
        need = method.deviations(x) ** 2
        return np.asarray(method.deviations(n)[..., None] * np.sqrt(need / (need + (m - 2) * least)))

    return np.where(reached, np.maximum(found, _two_sided(_below(method, y, c, by_public_size))), found)


def _shared(method: Masked, y: Floats, c: Floats, shown: Floats, left: Floats) -> Floats:
    """Return how far a count is off, squared, if all but the largest share its mask: they have `left`, `shown` instead.

    The shared mask is f times their part that is clear of the noise: at least 0.8 of it, or none would be shared.
    """
    noise = np.sqrt(method.noise_variance * (1 - 1 / method.channel.values))
    tells = c**2 / (c**2 + method.clear**2)
    slope = tells * (3 - 2 * tells)  # of c times tells
    off = np.full(np.broadcast_shapes(left.shape, y.shape), np.inf)
    for told in (0.8, 1.0):
        f = (shown - left) / (told * left)
        own = np.hypot((method.beside or 1.0) * method.deviations(c), noise) * np.maximum(abs(1 + f * slope), 0.1)
        off = np.minimum(off, ((y - c * (1 + f * tells)) / own) ** 2)
    return off


def sums(method: Masked, shown: Floats, sizes: Ints, columns: list[int], count: Floats) -> Floats:
    """Return the same for a sum over groups and values. `shown` has tables of groups, one for each row of `count`."""
    m = method.channel.values
    y, noise = shown[..., columns].sum(axis=-1), method.noise_variance * (1.0 if m == 2 else 1 - 1 / m)
    if m == 2:
        width = wide = method.deviations(np.clip(np.maximum(y, sizes - y), sizes / 2, sizes))
        grows = np.where(y >= sizes - y, 1.0, -1.0)
        return _sum_chances(method.kappa, y, width, wide, grows, noise, 0.0, noise_nodes(method, len(sizes)), count)
    others = [at for at in range(m) if at not in columns]

    def together(each: Floats) -> Floats:
        return np.asarray(np.minimum(each[..., columns].sum(axis=-1), each[..., others].sum(axis=-1)))

    estimated = method.estimated_variances(shown.reshape(-1, m), np.tile(sizes, len(shown))) - noise
    least = float(method.deviations(np.zeros(()))) ** 2
    width = together(np.sqrt(np.maximum(estimated, least)).reshape(shown.shape))
    need = method.deviations(shown) ** 2
    by_size = together(method.deviations(sizes)[:, None] * np.sqrt(need / (need + (m - 2) * least)))
    wide = np.where(sizes < _untold(method), np.maximum(width, by_size), width)
    nodes = noise_nodes(method, len(sizes), len(columns))
    return _sum_chances(method.kappa, y, width, wide, np.sign(y), noise * len(columns), 1.0, nodes, count)


def _sum_chances(
    kappa: Floats | float,
    y: Floats,
    width: Floats,
    wide: Floats,
    grows: Floats,
    noise: float,
    over: float,
    nodes: tuple[Floats, Floats],
    count: Floats,
) -> Floats:
    """Return how likely sums are as far out. The deviation of a sum, as estimated from the table, moves with the sum.

    With widths w, V = sum of w^2 and gamma = sum of w^3 / V^1.5 it is off by the factor 1 + kappa gamma Z, if the sum
    is by Z deviations; and V holds its own variance, unless that moves with the sum (`over`). No interval is narrower
    than that of the normal law with these widths.
    """
    squares = (width**2).sum(axis=1)
    gamma = (grows * width**3).sum(axis=1) / squares**1.5
    own = np.maximum(squares - over * kappa**2 * noise * y.shape[1], 0.3 * squares)
    own /= 1 + over * kappa**2 * (1 - gamma**2)
    deviation, total = _WIDER * np.sqrt(own)[:, None], y.sum(axis=1)[:, None]
    moves, below = (kappa * gamma)[:, None], np.zeros(count.shape)
    for nu, weight in zip(*nodes, strict=True):
        here = np.maximum(deviation + moves * (count - total + nu), 0.02 * deviation)
        below += weight * ndtr((total - count - nu) / here)
    normal = _WIDER * np.sqrt((wide**2).sum(axis=1) + y.shape[1] * noise)[:, None]
    return np.maximum(_two_sided(below), _two_sided(ndtr((total - count) / normal)))


# ---- several columns ------------------------------------------------------------------------------------------------


def _factors(
    method: MaskedColumns, shown: Floats, sizes: Ints, columns: list[int]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the sum of some combinations in each group, and for each column how its factor varies: two parts.

    The first is relative to the sum: masks of values are kappa times their count and, where no value outweighs the
    others, negatively related. The second is in records: where one outweighs the others, they carry its mask, in
    published proportions; these have masks of the other columns, so that the double is taken. The last number says how
    far off, in squared deviations, some count must be for one of the column to outweigh the others.
    """
    chosen = np.zeros(shown.shape[1])
    chosen[columns] = 1
    y = (shown * chosen).sum(axis=1)
    relative, wide, off = [], [], []
    for at, column in enumerate(method.columns):
        every, mine = method.margins(shown, at), method.margins(shown * chosen, at)
        few = sizes < _untold(column)
        shares = np.clip(mine / np.where(abs(y) < 1, 1.0, y)[:, None], 0.0, 1.0)
        relative.append(np.where(few, 1.0, np.sqrt(np.minimum((shares**2).sum(axis=1), 1.0))) * method.of_one_record)
        some = method.margins(chosen[None], at) > 0
        unclear = abs(every) < column.clear  # published numbers do not show the part
        part = np.where(unclear, some, np.clip(mine / np.where(unclear, 1.0, every), 0.0, 1.0))
        apart = part.max(axis=1) - part.min(axis=1)
        wide.append(column.deviations(sizes) * np.where(few, 1.0, np.minimum(2 * apart + 0.05, 1.0)))
        off.append(np.where(few | (column.channel.values == 2), 0.0, _off_to_outweigh(column, every, sizes)))
    return y, np.array(relative), np.array(wide), np.array(off)


def _off_to_outweigh(column: Masked, every: Floats, sizes: Ints) -> Floats:
    """Return how far off, in squared deviations, the count of some value must be if it outweighs the others."""
    n = sizes[:, None, None].astype(np.float64)
    first = np.clip(every, 1.0, None)[..., None]
    z = first + np.linspace(0, 1, _LEFT) * np.maximum(n - first, 0.0)
    others = (every**2).sum(axis=1, keepdims=True) - every**2
    left = np.maximum(sizes[:, None] - every, 1.0)
    squares = others[..., None] * np.clip((n - z) / left[..., None], 0.0, 1.0) ** 2
    noise = np.sqrt(column.noise_variance)
    off = ((every[..., None] - z) / np.hypot(column.deviations(z), noise)) ** 2
    return np.asarray(np.where(z**2 >= squares, off, np.inf).min(axis=(1, 2)))


def _widths(method: MaskedColumns, shown: Floats, sizes: Ints, columns: list[int]) -> tuple[Floats, Floats, Floats]:
    """Return the sum of some combinations in each group, its deviation, and which part of that moves with it."""
    y, relative, wide, off = _factors(method, shown, sizes, columns)
    noise = method.noise_variance * len(columns)
    squares = np.maximum(y**2, 1.0 + noise)
    moves = np.prod(1 + relative**2, axis=0) - 1
    varies = np.prod(1 + np.maximum(relative**2, np.where(off > 0, 0.0, wide**2) / squares), axis=0) - 1
    return y, np.sqrt(varies * squares + noise + method.of_one_record**2), np.sqrt(moves)


@interval_of.register
def _(method: MaskedColumns, shown: Floats, sizes: Ints, columns: list[int], level: float) -> tuple[float, float]:
    alpha, size = _ROOM * (1 - level), float(sizes.sum())
    if len(columns) == shown.shape[1]:
        return size, size
    if len(sizes) <= _FEW:
        return _added(
            _accepted(
                partial(combinations, method, shown[[row]], sizes[[row]], columns),
                shown[row, columns].sum(),
                sizes[row],
                alpha / len(sizes),
            )
            for row in range(len(sizes))
        )
    middle = float(shown[:, columns].sum())
    return _accepted(partial(column_sums, method, shown[None], sizes, columns), middle, size, alpha)


def combinations(method: MaskedColumns, shown: Floats, sizes: Ints, columns: list[int], count: Floats) -> Floats:
    """Return how likely what is published of some combinations is as far out, if their count is this one."""
    y, relative, wide, off = _factors(method, shown, sizes, columns)
    found = np.zeros(count.shape)
    for outweighs in product((False, True), repeat=len(relative)):  # a value outweighs the others, or none does
        chosen = np.array(outweighs)[:, None]
        carried = np.where(chosen, wide, 0.0)[..., None] / np.maximum(count, 1.0)
        chances = _multiplied(method, y, len(columns), np.maximum(relative[..., None], carried), count)
        far = np.where(chosen, off, 0.0).sum(axis=0)[:, None]
        # counts that are off as well: chi-square
        both = np.exp(-(far + ndtri(np.clip(chances, 1e-300, 1.0) / 2) ** 2) / 2)
        found = np.maximum(found, np.where(far > 0, both, chances))
    # or the table shows how far each column moves it; what it has too much, another one has too little, with its mask
    moved = np.sqrt(method.column_variances(shown, sizes, columns))[..., None]
    told = _WIDER * (moved + method.kappa * np.maximum(y[:, None] - count, 0.0)) / np.maximum(count, 1.0)
    by_table = _multiplied(method, y, len(columns), np.maximum(_WIDER * relative[..., None], told), count)
    return np.where(_told(method, shown, sizes, columns)[:, None], np.minimum(found, by_table), found)


def _multiplied(method: MaskedColumns, y: Floats, cells: int, deviations: Floats, count: Floats) -> Floats:
    """Return how likely y is as far out, as a private count times factors around 1 with these deviations."""
    deviations = np.sort(deviations, axis=0)
    if len(deviations) > 2:  # of three columns and more the narrower factors are taken as one
        narrow = np.sqrt(np.prod(1 + deviations[:-1] ** 2, axis=0) - 1)
        deviations = np.stack([narrow, deviations[-1]])
    nu, weight = noise_nodes(method, 1, cells)
    x, least = count[..., None] + nu, method.of_one_record**2 + cells / 12
    below = np.zeros(count.shape)
    for z, chance in zip(*np.polynomial.hermite_e.hermegauss(_FACTORS), strict=True):
        middle = x * (1 + z * deviations[0])[..., None]
        width = np.sqrt((deviations[1][..., None] * middle) ** 2 + least)
        below += chance / np.sqrt(2 * np.pi) * (ndtr((y[:, None, None] - middle) / width) * weight).sum(axis=-1)
    return _two_sided(below)


def column_sums(method: MaskedColumns, shown: Floats, sizes: Ints, columns: list[int], count: Floats) -> Floats:
    """Return the same for a sum over groups. `shown` has tables of groups, one for each row of `count`."""
    every, many = shown.reshape(-1, shown.shape[-1]), np.tile(sizes, len(shown))
    y, bound, moves = _widths(method, every, many, columns)
    width = np.sqrt(method.sum_variances(every, many, columns, products=_HEAVY))
    # a sum within the noise tells nothing about its masks
    within = abs(y.reshape(shown.shape[:2]).sum(axis=1)) < len(sizes) * method.clear
    sure = _adds_up(method, every, many) & ~np.repeat(within, len(sizes))
    width = np.where(sure, width, np.maximum(width, bound))
    y, width, moves = (one.reshape(shown.shape[:2]) for one in (y, width, moves))
    kappa = np.sqrt((width * moves**2).sum(axis=1) / width.sum(axis=1))
    nodes = noise_nodes(method, len(sizes), len(columns))
    return _sum_chances(kappa, y, width, width, np.sign(y), 0.0, 0.0, nodes, count)


def _adds_up(method: MaskedColumns, shown: Floats, sizes: Ints) -> npt.NDArray[np.bool_]:
    """Return which groups add up to about their size; in others, masks that are wider than their counts met."""
    return np.asarray(abs(shown.sum(axis=1) - sizes) <= _TOTAL * method.kappa * sizes + method.clear)


def _told(method: MaskedColumns, shown: Floats, sizes: Ints, columns: list[int]) -> npt.NDArray[np.bool_]:
    """Return in which groups the table shows the layout of masks around some combinations."""
    found, chosen = _adds_up(method, shown, sizes), np.zeros((1, shown.shape[1]))
    chosen[:, columns] = 1
    for at, column in enumerate(method.columns):
        some = method.margins(chosen, at)[0] > 0
        clear = (abs(method.margins(shown, at)[:, some]) >= _ABOVE * column.clear).all(axis=1)
        found &= clear & (sizes >= _untold(column))
    return found
