"""The noisy confidence: the ratio of two noisy counts, and how likely it is to be close to the true one.

Of a group of `phi` people `theta` have a sensitive value. Whoever reads the two noisy counts X and Y takes Y/X for the
true confidence theta/phi. The closeness probability is P(|Y/X - theta/phi| <= tau theta/phi): how likely the guess is
off by at most the share tau.

Guarantee   None: these numbers say what a reader of noisy answers learns. They are off by less than 1e-12.
Assumes     The two noises are independent of each other, with one scale. `whole_ratios.py` has the noises that
            Tacit draws, where the two counts may also depend on each other, or one of them may be exact.
Why         In units of the scale, with t = theta, f = phi and W = Y - zX:  Y/X <= z is W <= 0 where X > 0 and W >= 0
            where X < 0, so F(z) = P(W <= 0) + P(X < 0) - 2 P(W <= 0, X < 0).
            W - t + zf is a sum of two Laplace variables with scales 1 and c = |z|. Its upper tail at x >= 0 is
            G(x, c) = (e^-x - c^2 e^(-x/c)) / (2 (1 - c^2)) = G(x/c, 1/c), which for c <= 1 is also
            e^-x (1 + x c/(1+c) r((1-c) x/c)) / 2  with  r(u) = (1 - e^-u)/u:  a sum of positive terms, without a gap
            at c = 1. Given X < 0, -X is exponential with mean 1 (no memory), which gives P(W <= 0, X < 0) as one
            integral: e^(-f-t) / (4 (1+z)) for z >= 0, and for z = -c another with r. These formulas also hold at
            0, 1 and -1. Of the closeness probability, (1 +- tau) theta/phi are the two z, and W there has the mean
            -+ tau t: so both tails are taken at the same x = tau t, and no nearly equal numbers are subtracted.
            Gaussian: (W, X) are jointly normal, and P(W <= 0, X < 0) is Owen's function twice (Hinkley).
Reference   The thesis on disclosure and reconstruction privacy (document 004), Lemma 2, Theorem 2, Corollary 3; its
            Lemma 1 and Corollary 2 fail: Y/X has no mean and no variance. Hinkley, On the ratio of two correlated
            normal random variables, Biometrika 56 (1969). Owen, Tables for computing bivariate normal probabilities
            (1956).
Checked by  tests/unit/audit/test_ratios.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import owens_t

from tacit.arrays import Floats
from tacit.errors import PlanError, kind_of, nearest
from tacit.noise.law import Law

LAPLACE: Final = "laplace"
GAUSSIAN: Final = "gaussian"
TWO_SIDED: Final = "two-sided"
ONE_SIDED: Final = "one-sided"
TWO_SCALE: Final = "two-scale"
CUBE: Final = "cube"
AT_ONCE: Final = 1 << 14  # numbers that stay in the cache of a core, with all that is made of them
LARGE: Final = 1e300  # beyond which nothing is left of an exponential, and products still are finite
LARGEST_RATIO: Final = 1e150  # larger than that of any two counts
NEVER: Final = 45.0  # scales below zero, where no count ever is: e^-45 < 3e-20
NEAR_ONE: Final = 0.02  # how near to one a scale is before the tail is taken from its other form


def ratio_cdf(z: npt.ArrayLike, theta: npt.ArrayLike, phi: npt.ArrayLike, scale: npt.ArrayLike) -> Any:
    """Return P(Y/X <= z) for Y = theta + noise and X = phi + noise, with independent Laplace noise of this scale.

    Arrays are broadcast; numbers give a number. At z = 0, 1 and -1 the closed form of the thesis has gaps; here they
    are filled by its limits.

    >>> round(ratio_cdf(0.8, theta=420, phi=501, scale=20), 4)
    0.2641
    """
    shape, (at, part, whole, unit) = _broadcast(z=z, theta=theta, phi=phi, scale=scale)
    _check_counts(part, whole)
    _check_positive(unit, "scale")
    if np.isnan(at).any():
        raise PlanError("must be a number", key="z", fix="Leave out what is no number.")
    at = np.clip(at, -LARGEST_RATIO, LARGEST_RATIO)
    t, f = part / unit, whole / unit
    found = np.empty(len(at))
    rising = at >= 0
    mean = _difference(part[rising], at[rising], whole[rising]) / unit[rising]
    found[rising] = _up_to(at[rising], mean, t[rising], f[rising])
    found[~rising] = _up_to_negative(-at[~rising], t[~rising], f[~rising])
    return _shaped(np.clip(found, 0.0, 1.0), shape)


def closeness(theta: npt.ArrayLike, phi: npt.ArrayLike, scale: Any, tau: Any, noise: str | Law = LAPLACE) -> Any:
    """Return how likely the noisy confidence is to be within the share `tau` of the true one.

    Args:
        theta: how many people of the group have the sensitive value.
        phi: how many people the group has.
        scale: the scale of the noise in both counts; of Gaussian noise the standard deviation. None beside a law.
        tau: how far off a guess may be and still count as close, as a share of the true confidence.
        noise: "laplace" or "gaussian"; one of the whole-number noises that Tacit draws, "two-sided", "one-sided",
            "two-scale" (the scale is a pair: right, left) or "cube" (both counts drawn together), which are published
            less their means; or a law of noise such as `plan.noise`.

    Arrays are broadcast; numbers give a number. Where theta is 0 no noisy confidence is close but 0 itself; of an empty
    group nothing is said, so the probability is 0.

    >>> [round(closeness(share * 1000, 1000, 50, 0.2), 3) for share in (0.5, 0.7, 0.9)]
    [0.824, 0.897, 0.932]
    """
    if noise not in (LAPLACE, GAUSSIAN):
        from tacit.audit.disclosure_audits.whole_ratios import whole_closeness

        return whole_closeness(theta, phi, scale, tau, noise)
    shape, (part, whole, unit, share) = _broadcast(theta=theta, phi=phi, scale=scale, tau=tau)
    _check_counts(part, whole)
    _check_positive(unit, "scale")
    _check_positive(share, "tau", "For instance 0.2, for a fifth.")
    work = _close if noise == LAPLACE else _close_gaussian
    found = np.empty(len(part))
    for piece in _pieces(len(part)):
        # a number for all stays one number
        found[piece] = work(part[piece], whole[piece], _part(unit, scale, piece), _part(share, tau, piece))
    return _shaped(found, shape)


# ---- Laplace --------------------------------------------------------------------------------------------------------


def _close(theta: Floats, phi: Floats, scale: Floats, tau: Floats) -> Floats:
    """Return the closeness probabilities of one piece, for Laplace noise."""
    if (tau >= 1).any():
        confidence = np.divide(theta, phi, out=np.zeros_like(theta), where=phi > 0)
        ends = [np.asarray(ratio_cdf((1 + sign * tau) * confidence, theta, phi, scale)) for sign in (1, -1)]
        return np.where((theta > 0) & (phi > 0), np.clip(ends[0] - ends[1], 0.0, 1.0), 0.0)
    counts = (theta > 0) & (phi > 0)
    t, f = theta / scale, phi / scale
    if not (every := bool(counts.all())):
        t[~counts] = f[~counts] = 1.0
    x = tau * t
    tail = np.exp(-x)
    ratio = t / f
    high, low = (1 + tau) * ratio, (1 - tau) * ratio
    # x / c is tau f / (1 +- tau)
    found = 1.0 - _tail(x, tail, tau / (1 + tau) * f, high) - _tail(x, tail, tau / (1 - tau) * f, low)
    # both counts negative: that matters only where both are small
    small = np.flatnonzero(t + f < NEVER)
    if len(small):
        both, above, below = np.exp(-(t[small] + f[small])), high[small], low[small]
        found[small] += both * (above - below) / (2 * (1 + above) * (1 + below))
    np.clip(found, 0.0, 1.0, out=found)
    return found if every else np.where(counts, found, 0.0)


def _tail(x: Floats, tail: Floats, other: Floats, c: Floats) -> Floats:
    """Return G(x, c), given e^-x and x/c."""
    square = c * c
    gap = 1.0 - square
    near = np.flatnonzero(np.abs(gap) < NEAR_ONE)
    if len(near):
        gap[near] = 1.0
    found = np.asarray((tail - square * np.exp(-other)) / (gap + gap))
    if len(near):
        found[near] = _tail_near_one(x[near], other[near], c[near])
    return found


def _tail_near_one(x: Floats, other: Floats, c: Floats) -> Floats:
    """Return G(x, c) as a sum of positive terms: G(x/c, 1/c) where c is above one."""
    above = c > 1
    x, other, c = np.where(above, other, x), np.where(above, x, other), np.where(above, 1 / c, c)
    return np.asarray(0.5 * np.exp(-x) * (1 + x * c / (1 + c) * _mean_decay(other - x)))


def _mean_decay(u: Floats) -> Floats:
    """Return (1 - e^-u)/u for u >= 0, the mean of e^-s for s between 0 and u."""
    tiny = u < 1e-300
    return np.where(tiny, 1.0, -np.expm1(-u) / np.where(tiny, 1.0, u))


def _sum_tail(x: Floats, c: Floats) -> Floats:
    """Return G(x, c) for x >= 0 and c >= 0: how likely a sum of Laplace variables of scales 1 and c exceeds x."""
    x = np.minimum(x, LARGE)
    # the quotient overflows to infinity only where its exponential is zero anyway
    with np.errstate(over="ignore"):
        other = np.divide(x, c, out=np.full_like(x, np.inf), where=c > 0)
    large = c > 1  # as scales 1/c and 1, so that no square overflows
    first, second = np.where(large, other, x), np.where(large, x, other)
    inverse = np.divide(1.0, c, out=np.ones_like(c), where=large)
    return _tail(first, np.exp(-first), second, np.where(large, inverse, c))


def _up_to(z: Floats, mean: Floats, t: Floats, f: Floats) -> Floats:
    """Return F(z) for z >= 0, where Y - zX has this mean."""
    tail = _sum_tail(np.abs(mean), z)
    return np.where(mean > 0, tail, 1 - tail) + np.exp(-f) / 2 - np.exp(-(t + f)) / (2 * (1 + z))


def _up_to_negative(c: Floats, t: Floats, f: Floats) -> Floats:
    """Return F(-c) for c > 0."""
    with np.errstate(over="ignore"):
        beside, far = t / c, t + c * f
    # P(Y <= cE) for E exponential: e^-t/2 E[e^(cE); cE <= t] + P(cE > t) - e^t/2 E[e^(-cE); cE > t]. Of the two
    # exponentials in the first part the larger stands outside, so that the mean of the rest is between 0 and 1.
    slow, fast = np.minimum(t, beside), np.maximum(t, beside)
    finite = np.where(np.isinf(beside), 1.0, beside)
    part = np.where(np.isinf(beside), np.exp(-t), np.exp(-slow) * finite * _mean_decay(np.minimum(fast, LARGE) - slow))
    below = part / 2 + np.exp(-beside) * (1 - 1 / (2 * (1 + c)))
    return np.asarray(_sum_tail(far, c) + np.exp(-f) * (0.5 - below))


def _difference(theta: Floats, z: Floats, phi: Floats) -> Floats:
    """Return theta - z phi with all its digits, also where the two are nearly equal (Dekker's product)."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = z * phi
        (z_high, z_low), (phi_high, phi_low) = _halves(z), _halves(phi)
        rest = z_low * phi_low - (((product - z_high * phi_high) - z_low * phi_high) - z_high * phi_low)
        return np.asarray((theta - product) - np.where(np.isfinite(rest), rest, 0.0))


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """Return two numbers of half as many digits that add up to x."""
    wide = x * 134_217_729.0  # 2^27 + 1
    high = wide - (wide - x)
    return high, x - high


# ---- Gaussian -------------------------------------------------------------------------------------------------------


def _close_gaussian(theta: Floats, phi: Floats, scale: Floats, tau: Floats) -> Floats:
    """Return the closeness probabilities of one piece, for Gaussian noise."""
    counts = (theta > 0) & (phi > 0)
    t, f = np.where(counts, theta / scale, 1.0), np.where(counts, phi / scale, 1.0)
    ends = [_gaussian_up_to((1 + sign * tau) * t / f, -sign * tau * t, f) for sign in (1, -1)]
    return np.where(counts, np.clip(ends[0] - ends[1], 0.0, 1.0), 0.0)


def _gaussian_up_to(z: Floats, mean: Floats, f: Floats) -> Floats:
    """Return P(Y/X <= z) where Y - zX has this mean and X the mean f, in standard deviations of one count."""
    root = np.sqrt(1 + z * z)
    h, k, rho = -mean / root, -f, -z / root
    # Phi(h) + Phi(k) - 2 Phi2(h, k; rho) is 2 T(h, a) + 2 T(k, b), and one where h and k have different signs
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = (k - rho * h) / h * root, (h - rho * k) / k * root
    first = np.where(h == 0, np.copysign(np.inf, k), first)
    apart = (h * k < 0) | ((h == 0) & (k < 0))
    return np.asarray(2 * owens_t(h, first) + 2 * owens_t(k, second) + apart, dtype=np.float64)


# ---- arguments ------------------------------------------------------------------------------------------------------


def _broadcast(**given: Any) -> tuple[tuple[int, ...], list[Floats]]:
    """Return the common shape of some arguments, and each of them laid out in a line."""
    arrays = []
    for key, value in given.items():
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            array = None
        if array is None:
            raise PlanError(f"must be a number or an array of numbers, not {kind_of(value)}", key=key)
        arrays.append(array)
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shape = None
    if shape is None:
        sizes = ", ".join(f"{key} {array.shape}" for key, array in zip(given, arrays, strict=True))
        raise PlanError("must have shapes that fit each other", key=" and ".join(given), given=sizes)
    return shape, [np.broadcast_to(array, shape).reshape(-1) for array in arrays]


def _check_counts(theta: Floats, phi: Floats) -> None:
    for key, counts in (("theta", theta), ("phi", phi)):
        if not (np.isfinite(counts) & (counts >= 0)).all():
            raise PlanError("must be counts: finite numbers from 0", key=key, fix="Give true counts, not noisy ones.")


def _check_positive(given: Floats, key: str, fix: str = "It is the step divided by epsilon.") -> None:
    if not (np.isfinite(given) & (given > 0)).all():
        raise PlanError("must be a finite number above 0", key=key, fix=fix)


def no_such_noise(noise: Any) -> PlanError:
    """Return the refusal of a noise that there is none of."""
    names = [LAPLACE, GAUSSIAN, TWO_SIDED, ONE_SIDED, TWO_SCALE, CUBE]
    rule = f"must be {', '.join(repr(name) for name in names)} or a law of noise"
    if not isinstance(noise, str):
        return PlanError(f"{rule}, not {kind_of(noise)}", key="noise")
    return PlanError(rule, key="noise", given=noise, fix=nearest(noise, names))


def _part(laid_out: Floats, given: Any, piece: slice) -> Floats:
    return laid_out[:1] if np.ndim(given) == 0 else laid_out[piece]


def _pieces(size: int) -> Iterator[slice]:
    for start in range(0, size, AT_ONCE):
        yield slice(start, min(start + AT_ONCE, size))


def _shaped(found: Floats, shape: tuple[int, ...]) -> Any:
    return float(found[0]) if not shape else found.reshape(shape)
