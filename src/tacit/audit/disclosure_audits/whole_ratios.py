"""The noisy confidence of what Tacit publishes: whole-number noise, and sizes that are exact, noisy or added up.

What counts is where the size of a group comes from (`ratios.py` has two independent Laplace counts):

    exact     no secret edge changes it, as under `attributes`: only the numerator is noisy
    fitted    exact as well, and the cells of the group were made to add up to it (least squares)
    beside    another entry of the same release, drawn with the numerator
    apart     an entry of another release, independent of the numerator
    summed    the sum of the group's own cells: the numerator is a part of it
    leaning   the same, and all cells of more groups were made to add up to an exact total

Guarantee   None: these numbers say what a reader of noisy answers learns. They are sums over all values of the noise
            except some with a probability below 1e-15 in all; they are off by less than 1e-12.
Assumes     Noise is published less its mean, as Tacit does. True counts are whole numbers.
Why         Let r be the noise of the size, or of the other cells, and p(r) its law. Given r, the guess is close for
            noise of the numerator between two ends, so the probability is the sum of p(r) P(low <= noise <= high).
            Where the entries of a release share something (the radius of a cube), this is so given what they share,
            and the result is the mixture; where there are more than 512 radii, 512 of equal weight stand for all.
            Ends are compared exactly, as fractions of whole numbers, since with whole noise a tie has a probability.
            Negative sizes exchange the ends; with a size of zero there is no guess, which counts as not close.
            Summed: with R = the rest of the group and Y = the numerator, Y/(Y+R) is between z1 < 1 and z2 for Y between
            z1 R/(1-z1) and z2 R/(1-z2) where R > 0; if z2 > 1, for all Y above the first, and also for those that are
            so far below zero that Y/(Y+R) falls below z2 again. R < 0 is its mirror image.
            Leaning: of the noise beyond the group at most 129 values of equal weight stand for all, and of the
            others in it 1,025, so this is not exact; it is off by less than 0.002.
            Fitted: of n cells with the variances v the estimate is off by (1-w) a - w (sum of the others' noise), with
            w = v_a / (sum of v).
Checked by  tests/unit/audit/test_whole_ratios.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.amounts import as_fraction
from tacit.arrays import Floats, Ints
from tacit.audit.disclosure_audits.ratios import CUBE, ONE_SIDED, TWO_SCALE, TWO_SIDED, no_such_noise
from tacit.errors import PlanError, word_or_kind
from tacit.noise.cube import Cube
from tacit.noise.law import MOST_VALUES, RAREST, Law
from tacit.noise.two_scale import TwoScale

# names of noises here, and of the functions that draw them
NAMED: Final = {
    TWO_SIDED: TWO_SIDED,
    "discrete-laplace": TWO_SIDED,
    ONE_SIDED: ONE_SIDED,
    "geometric": ONE_SIDED,
    TWO_SCALE: TWO_SCALE,
    CUBE: CUBE,
}
AT_ONCE: Final = 1 << 18
LARGEST: Final = 2**62
TIE: Final = 1e-9
MOST_OUTSIDE: Final = 129  # values of the noise beyond a group that stand for all
MOST_INSIDE: Final = 1025  # and of that of its other cells
BEYOND: Final = 2**40  # an end that no noise reaches


@dataclass(frozen=True, eq=False)
class WholeLaw:
    """The law of a whole number as a table: how likely `first`, `first + 1` .. are; its mean is `mean`."""

    first: int
    chances: Floats
    mean: float

    def between(self, low: Any, high: Any) -> Floats:
        """Return P(low <= noise <= high); arrays are broadcast."""
        last = len(self.chances)
        ends = [np.clip(end - self.first + 1, 0, last) for end in (low - 1, high)]
        return np.asarray(np.maximum(self._upto[ends[1]] - self._upto[ends[0]], 0.0))

    @cached_property
    def _upto(self) -> Floats:
        """How likely noise is below each point; all of it beyond the last."""
        found = np.concatenate([[0.0], np.cumsum(self.chances)])
        return np.asarray(found / found[-1])

    @property
    def points(self) -> Ints:
        """The whole numbers of the table."""
        return self.first + np.arange(len(self.chances), dtype=np.int64)

    def thinned(self, most: int) -> tuple[Ints, Floats]:
        """Return points and their probabilities; of more than `most` points, `most` that are equally likely."""
        if len(self.chances) <= most:
            return self.points, self.chances
        middles = (np.arange(most) + 0.5) / most
        return self.first + np.searchsorted(self._upto[1:], middles), np.full(most, 1 / most)

    def trimmed(self) -> WholeLaw:
        """Return the table without the ends that are too rare to matter."""
        below, above = np.cumsum(self.chances), np.cumsum(self.chances[::-1])[::-1]
        there = np.flatnonzero((below > RAREST) & (above > RAREST))
        start, end = int(there[0]), int(there[-1]) + 1
        return WholeLaw(self.first + start, self.chances[start:end], self.mean)


NOTHING: Final = WholeLaw(0, np.ones(1), 0.0)


def whole_closeness(theta: Any, phi: Any, scale: Any, tau: Any, noise: str | Law) -> Any:
    """Return closeness probabilities where both counts are entries of one release with whole-number noise."""
    law = named(scale, noise)
    share = as_share(tau)
    counts = []
    for key, given in (("theta", theta), ("phi", phi)):
        array = np.asarray(given)
        if array.dtype.kind not in "iuf" or (array != np.floor(array)).any() or (array < 0).any():
            raise PlanError("must be counts: whole numbers from 0", key=key, fix="Give true counts, not noisy ones.")
        counts.append(array.astype(np.int64))
    shape = np.broadcast_shapes(counts[0].shape, counts[1].shape)
    part, whole = (np.broadcast_to(array, shape).reshape(-1) for array in counts)
    found = beside(part, whole, law, share)
    return float(found[0]) if not shape else found.reshape(shape)


def as_share(tau: Any) -> Fraction:
    """Return `tau` as an exact number, or refuse."""
    share = as_fraction(tau if np.ndim(tau) else np.asarray(tau).item(), key="tau")
    if not 0 < share < 1:
        raise PlanError("must lie between 0 and 1", key="tau", given=share, fix="For instance 0.2, for a fifth.")
    return share


def named(scale: Any, noise: str | Law) -> Law:
    """Return the law of a noise that has a name, or the law itself."""
    if isinstance(noise, Law):
        if scale is not None:
            raise PlanError(
                "must be None beside a law of noise, which has its own", key="scale", given=word_or_kind(scale)
            )
        return noise
    name = noise.replace("_", "-") if isinstance(noise, str) else ""
    if name not in NAMED:
        raise no_such_noise(noise)
    if NAMED[name] == TWO_SCALE:
        if not isinstance(scale, list | tuple) or len(scale) != 2:
            raise PlanError("must be two numbers for two-scale noise: right, left", key="scale", fix="Say (4, 2).")
        return TwoScale(_scale(scale[0]), _scale(scale[1]))
    unit = _scale(scale)
    if NAMED[name] == CUBE:
        return Cube(unit, 2, "both")
    return TwoScale(unit, unit if NAMED[name] == TWO_SIDED else Fraction(0))


def _scale(given: Any) -> Fraction:
    unit = as_fraction(given if np.ndim(given) else np.asarray(given).item(), key="scale")
    if unit <= 0:
        raise PlanError("must be a finite number above 0", key="scale", given=unit)
    return unit


# ---- where the size comes from --------------------------------------------------------------------------------------


def exact(theta: Ints, noise: WholeLaw, tau: Fraction) -> Floats:
    """Return how likely the noise of the numerator alone is at most tau theta."""
    return fitted(theta, noise, Fraction(0), NOTHING, tau)


def beside(theta: Ints, phi: Ints, law: Law, tau: Fraction) -> Floats:
    """Return the same where the size is another entry of the release."""
    noise = values_of(law)

    def close(part: Ints, whole: Ints) -> Floats:
        ends = _ends_of_ratio(part, whole, noise, law.mean(), tau)
        return np.asarray(law.beside(noise.points, *ends).sum(axis=1))

    return _each(theta, phi, len(noise.chances), close)


def apart(theta: Ints, phi: Ints, noise: WholeLaw, size: WholeLaw, tau: Fraction) -> Floats:
    """Return the same where the size has noise of its own."""

    def close(part: Ints, whole: Ints) -> Floats:
        return np.asarray(noise.between(*_ends_of_ratio(part, whole, size, noise.mean, tau)) @ size.chances)

    return _each(theta, phi, len(size.chances), close)


def summed(theta: Ints, phi: Ints, noise: WholeLaw, others: WholeLaw, tau: Fraction) -> Floats:
    """Return the same where the size is the sum of the numerator and of the other cells of the group."""
    p, q = tau.numerator, tau.denominator

    def close(part: Ints, whole: Ints) -> Floats:
        rest = (whole - part)[:, None] + others.points - _whole_mean(others.mean)
        size, sign = np.abs(rest), np.sign(rest)
        low_top, low_bottom = (q - p) * part[:, None], q * whole[:, None] - (q - p) * part[:, None]
        high_top, high_bottom = (q + p) * part[:, None], q * whole[:, None] - (q + p) * part[:, None]
        bounded = high_bottom > 0
        first = _Ratio(low_top, size, low_bottom)
        last = _Ratio(high_top, size, np.where(high_bottom == 0, 1, np.abs(high_bottom)))
        moved = noise.mean - part[:, None]
        # where the rest is positive; the mirror image has the ends of -Y
        right = noise.between(first.up(1, moved), np.where(bounded, last.down(1, moved), BEYOND))
        left = noise.between(np.where(bounded, last.up(-1, moved), -BEYOND), first.down(-1, moved))
        again = noise.between(-BEYOND, last.down(-1, moved))
        mirrored = noise.between(last.up(1, moved), BEYOND)
        turned = high_bottom < 0
        above = right + np.where(turned, again, 0.0)
        below = left + np.where(turned, mirrored, 0.0)
        # no rest at all: the guess is one, if there is any
        nobody = _at_least(np.zeros_like(part), 1, moved[:, 0])
        is_whole = np.isclose(moved[:, 0], nobody)
        alone = 1.0 - np.where(is_whole, noise.between(nobody, nobody), 0.0)
        full = np.where(high_bottom[:, 0] <= 0, alone, 0.0)
        chance = np.where(sign > 0, above, np.where(sign < 0, below, full[:, None]))
        return np.asarray(chance @ others.chances)

    return _each(theta, phi, len(others.chances), close)


def fitted(theta: Ints, noise: WholeLaw, weight: Fraction, others: WholeLaw, tau: Fraction) -> Floats:
    """Return the same where the cells of the group were made to add up to its exact size.

    `weight` is the part of the group's error that this cell takes.
    """
    if weight == 1:
        return np.asarray(theta > 0, dtype=np.float64)  # a cell that makes up the whole group is exact
    of_others, of_part = weight / (1 - weight), tau / (1 - weight)
    bottom = of_others.denominator * of_part.denominator
    centre = noise.mean - float(of_others) * others.mean
    reach = float(max(of_others, of_part)) * bottom * (np.abs(others.points).max() + theta.max(initial=0))

    def close(part: Ints, _: Ints) -> Floats:
        whole = reach < LARGEST
        units = (
            (int(of_others * bottom), int(of_part * bottom), bottom) if whole else (float(of_others), float(of_part), 1)
        )
        middle, far = units[0] * others.points, units[1] * part[:, None]
        ends = _at_least(middle - far, units[2], centre), _at_most(middle + far, units[2], centre)
        return np.asarray(noise.between(*ends) @ others.chances)

    return _each(theta, theta, len(others.chances), close)


def leaning(
    theta: Ints, phi: Ints, noise: WholeLaw, others: WholeLaw, outside: WholeLaw, cells: tuple[int, int], tau: Fraction
) -> Floats:
    """Return the same where size and numerator lean on an exact total of more cells than the group has.

    `cells` are how many the group has, and how many the total is about; `outside` is the noise of those beyond the
    group. All have one variance, so each takes an equal share of the total's error. Given the other noises, numerator
    and size are lines in the noise of the numerator, and closeness is two inequalities and a sign.
    """
    of_group, of_total = cells
    slope, slope_of_size = 1 - 1 / of_total, 1 - of_group / of_total
    (points, weights), beyond = others.thinned(MOST_INSIDE), outside.thinned(MOST_OUTSIDE)
    rest = points - others.mean

    def close(part: Ints, whole: Ints) -> Floats:
        share = (part / whole)[:, None]
        low, high = (1 - float(tau)) * share, (1 + float(tau)) * share
        found = np.zeros(len(part))
        for value, chance in zip(*beyond, strict=True):
            out = float(value) - outside.mean
            at_zero = part[:, None] - (rest + out) / of_total - slope * noise.mean
            size = whole[:, None] + slope_of_size * (rest - noise.mean) - of_group * out / of_total
            chances = np.zeros(size.shape)
            for sign in (1.0, -1.0):
                # sign X > 0, sign (Y - low X) >= 0 and sign (high X - Y) >= 0, as slope * noise >= need
                chances += _where_all(
                    [
                        (sign * slope_of_size, -sign * size + 2 * TIE),
                        (sign * (slope - low * slope_of_size), sign * (low * size - at_zero)),
                        (sign * (high * slope_of_size - slope), sign * (at_zero - high * size)),
                    ],
                    noise,
                )
            found += float(chance) * (chances @ weights)
        return found

    return _each(theta, phi, len(points), close)


def _where_all(needs: Sequence[tuple[Any, Floats]], noise: WholeLaw) -> Floats:
    """Return how likely slope * noise >= need for all of these."""
    shape = needs[0][1].shape
    low, high = np.full(shape, -BEYOND, dtype=np.int64), np.full(shape, BEYOND, dtype=np.int64)
    for slope, need in needs:
        slope = np.broadcast_to(slope, shape)
        flat = np.abs(slope) < TIE
        end = need / np.where(flat, 1.0, slope)
        low = np.where(~flat & (slope > 0), np.maximum(low, _at_least(end, 1, 0.0)), low)
        high = np.where(~flat & (slope < 0), np.minimum(high, _at_most(end, 1, 0.0)), high)
        high = np.where(flat & (need > TIE), -BEYOND, high)
    return noise.between(low, high)


# ---- laws as tables -------------------------------------------------------------------------------------------------


def values_of(law: Law) -> WholeLaw:
    """Return the law of one entry as a table, without what is too rare to matter."""
    first, last = law.quantile(RAREST), law.quantile(1 - RAREST)
    if last - first >= MOST_VALUES:
        raise PlanError(
            f"must have fewer than {MOST_VALUES:,} values that matter",
            key="noise",
            given=last - first + 1,
            fix='At such a scale noise="laplace" says the same.',
        )
    return WholeLaw(first, np.asarray(law.pmf(np.arange(first, last + 1))), law.mean())


def mixture_of(law: Law) -> Iterator[tuple[float, WholeLaw]]:
    """Yield the laws of independent entries, with their probabilities, that the law of all entries is a mixture of.

    All have the mean of the mixture, which is what published counts are corrected by.
    """
    for chance, first, chances in law.given_shared():
        yield chance, WholeLaw(first, np.asarray(chances, dtype=np.float64), law.mean())


def sum_of(parts: Sequence[tuple[WholeLaw, int]]) -> WholeLaw:
    """Return the law of a sum of independent noises: so many of each law."""
    parts = [(part, many) for part, many in parts if many]
    if not parts:
        return NOTHING
    size = 1 + sum(many * (len(part.chances) - 1) for part, many in parts)
    if size >= MOST_VALUES * 4:
        raise PlanError("must have a sum with fewer values", key="noise", given=size, fix="Ask for less noise.")
    points = 1 << (size - 1).bit_length()
    transformed = np.ones(points // 2 + 1, dtype=np.complex128)
    for part, many in parts:
        transformed *= np.fft.rfft(part.chances, points) ** many
    chances = np.clip(np.fft.irfft(transformed, points)[:size], 0.0, None)
    first, mean = sum(many * part.first for part, many in parts), sum(many * part.mean for part, many in parts)
    return WholeLaw(first, chances, mean).trimmed()


# ---- ends that are compared exactly ---------------------------------------------------------------------------------


def _ends_of_ratio(part: Ints, whole: Ints, size: WholeLaw, mean: float, tau: Fraction) -> tuple[Ints, Ints]:
    """Return between which noise of the numerator the guess is close, for each noise of the size."""
    p, q = tau.numerator, tau.denominator
    noisy = whole[:, None] + size.points - _whole_mean(size.mean)
    bottom = q * whole[:, None]
    near = _Ratio((q - p) * part[:, None], noisy, bottom), _Ratio((q + p) * part[:, None], noisy, bottom)
    moved = mean - part[:, None]
    low = np.where(noisy > 0, near[0].up(1, moved), near[1].up(1, moved))
    high = np.where(noisy > 0, near[1].down(1, moved), near[0].down(1, moved))
    return low, np.where(noisy == 0, low - 1, high)


class _Ratio:
    """top * factor / bottom, for whole numbers as long as they fit into 64 bits, and else as the nearest floats."""

    def __init__(self, top: Ints, factor: npt.NDArray[Any], bottom: Ints) -> None:
        largest = int(np.abs(top).max(initial=0)) * float(np.abs(factor).max(initial=0))
        whole = factor.dtype.kind == "i" and max(largest, int(np.abs(bottom).max(initial=0))) < LARGEST
        self._top = top * factor if whole else top.astype(np.float64) * factor
        self._bottom = bottom

    def up(self, sign: int, moved: Any) -> Ints:
        """Return the least whole number that is at least sign * ratio + moved."""
        return _at_least(sign * self._top, self._bottom, moved)

    def down(self, sign: int, moved: Any) -> Ints:
        """Return the largest whole number that is at most sign * ratio + moved."""
        return _at_most(sign * self._top, self._bottom, moved)


def _at_most(top: npt.NDArray[Any], bottom: Any, moved: Any) -> Ints:
    """Return the floor of top / bottom + moved: exact where all three are whole numbers.

    With a mean that is not whole, ties are rare, and floats miss them by less than `TIE`.
    """
    floor = np.floor(moved)
    if top.dtype.kind == "i" and bool((floor == moved).all()):
        return np.asarray(top // bottom + np.asarray(floor, dtype=np.int64), dtype=np.int64)
    return np.asarray(np.floor(np.clip(top / bottom + moved + TIE, -BEYOND, BEYOND)), dtype=np.int64)


def _at_least(top: npt.NDArray[Any], bottom: Any, moved: Any) -> Ints:
    """Return the ceiling of top / bottom + moved."""
    return -_at_most(-top, bottom, -np.asarray(moved))


def _whole_mean(mean: float) -> Any:
    """Return a mean, as a whole number if it is one, so that what it is taken from stays whole."""
    return int(mean) if mean == int(mean) else mean


def _each(theta: Ints, phi: Ints, values: int, close: Callable[[Ints, Ints], Floats]) -> Floats:
    """Return `close` of each pair of counts, computed once for equal pairs; 0 where a count is 0."""
    there = np.flatnonzero((theta > 0) & (phi > 0))
    found = np.zeros(len(theta))
    if not len(there):
        return found
    pairs, which = np.unique(np.stack([theta[there], phi[there]]), axis=1, return_inverse=True)
    chances = np.empty(pairs.shape[1])
    step = max(1, AT_ONCE // values)
    for start in range(0, len(chances), step):
        piece = slice(start, start + step)
        chances[piece] = close(pairs[0, piece], pairs[1, piece])
    found[there] = np.clip(chances, 0.0, 1.0)[which.reshape(-1)]
    return found
