"""How much the slope of a joint information in one release probability can change with another, on a box.

Guarantee   `largest_mixed(limit, first, second, low, high)` is, for each box, no less than the size of the mixed second
            derivative of the joint information anywhere between `low` and `high`; infinite where that is not known.
Assumes     Each line of the coalition shows an attribute that no other line of it shows.
Why         With A the targets, Y what is seen and Y_out what is seen of attributes that are no targets, the information
            is H(A) + H(Y) - H(A, Y_out) less entropies of single coins, which have no mixed derivative. For one outcome
            of all other attributes let a(v, w) be the mass where two attributes have values v and w that may be shown,
            b(v) and b(w) the masses where one has that value and the other is not shown, P where neither is shown. All
            are sums of products of hiding chances. An entropy has the mixed derivative, added up over outcomes,
                sum a(v, w) log(b(v) b(w) / (a(v, w) P)) + sum a - (sum b(v)) (sum b(w)) / P
            times the release probabilities of what is shown of the others. Each mass falls with every release
            probability, so its values at both corners of a box enclose it, and these enclose the whole.
Reference   docs/decisions/0015-leakage.md.
Checked by  tests/unit/plan/test_leakage_curved.py.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.plan.leakage.measures.joint_terms import JointLimit, SeenValues


def shows_apart(limit: JointLimit) -> bool:
    """Say whether no two lines of a coalition show the same attribute."""
    return all(one is None or len(one.lines) == 1 for one in (*limit.own, *limit.others))


def largest_mixed(limit: JointLimit, first: int, second: int, low: Floats, high: Floats) -> Floats:
    """Return a bound on the size of the mixed derivative by two lines, for each box."""
    axes = [*limit.own, *limit.others]
    hidden = tuple(axis for axis, one in enumerate(limit.own) if one is None)
    seen = [one for one in axes if one is not None]
    bounds = _enclosed(limit.table.sum(axis=hidden), list(seen), first, second, low, high)
    beside = [None] * len(limit.own) + list(limit.others)
    less = _enclosed(limit.table, beside, first, second, low, high)
    found: Floats = np.maximum(np.abs(bounds[0] - less[1]), np.abs(bounds[1] - less[0]))
    return np.where(np.isfinite(found), found, np.inf)


def _enclosed(
    table: Floats, axes: list[SeenValues | None], first: int, second: int, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return two numbers between which the mixed derivative of an entropy is; an axis without `SeenValues` is known."""
    places = [next((at for at, one in enumerate(axes) if one and line in one.lines), None) for line in (first, second)]
    if None in places:
        return np.zeros(len(low)), np.zeros(len(low))
    one, other = (axes[at] for at in places if at is not None)
    assert one is not None and other is not None  # noqa: S101, PT018 - for the type checker
    rest = [axis for at, axis in enumerate(axes) if at not in places]
    moved = np.moveaxis(table, [at for at in places if at is not None], [-2, -1])
    ends = [_masses(moved, rest, one, other, u, (first, second)) for u in (low, high)]
    scales = [_shown(moved, rest, u) for u in (low, high)]
    (a_most, v_most, w_most, p_most), (a_least, v_least, w_least, p_least) = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        log_most = np.log(v_most)[..., None] + np.log(w_most)[..., None, :] - np.log(a_least)
        log_most = log_most - np.log(p_least)[..., None, None]
        log_least = np.log(v_least)[..., None] + np.log(w_least)[..., None, :] - np.log(a_most)
        log_least = log_least - np.log(p_most)[..., None, None]
        most = np.where(a_most > 0, np.where(log_most > 0, a_most, a_least) * log_most, 0.0).sum(axis=(-2, -1))
        least = np.where(a_most > 0, np.where(log_least < 0, a_most, a_least) * log_least, 0.0).sum(axis=(-2, -1))
        none = p_most <= 0  # then nothing is left of the others either
        ratio_most = np.where(none, 0.0, v_most.sum(axis=-1) * w_most.sum(axis=-1) / p_least)
        ratio_least = np.where(none, 0.0, v_least.sum(axis=-1) * w_least.sum(axis=-1) / p_most)
    most = most + a_most.sum(axis=(-2, -1)) - ratio_least
    least = least + a_least.sum(axis=(-2, -1)) - ratio_most
    up = np.where(most > 0, scales[1], scales[0]) * most
    down = np.where(least < 0, scales[1], scales[0]) * least
    axes_left = tuple(range(1, up.ndim))
    return down.sum(axis=axes_left), up.sum(axis=axes_left)


def _masses(
    table: Floats, rest: list[SeenValues | None], one: SeenValues, other: SeenValues, u: Floats, lines: tuple[int, int]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return a, b of the first, b of the second and P, for each outcome of the rest; what is shown counts in full."""
    found = np.broadcast_to(table, (len(u), *table.shape))
    for axis, seen in enumerate(rest, start=1):
        if seen is not None:
            values = np.moveaxis(found, axis, -1)
            chance = seen.hidden(u).reshape((-1, *(1,) * (values.ndim - 2)))
            open_part = values[..., ~seen.sensitive]
            nothing = values[..., seen.sensitive].sum(axis=-1) + chance * open_part.sum(axis=-1)
            found = np.moveaxis(np.concatenate([open_part, nothing[..., None]], axis=-1), -1, axis)
    shape = (-1, *(1,) * (found.ndim - 3))
    hide = [(1.0 - u[:, line]).reshape(shape) for line in lines]
    open_rows, shut_rows = found[..., ~one.sensitive, :], found[..., one.sensitive, :]
    a, sides = open_rows[..., ~other.sensitive], open_rows[..., other.sensitive].sum(axis=-1)
    across, corner = shut_rows[..., ~other.sensitive].sum(axis=-2), shut_rows[..., other.sensitive].sum(axis=(-2, -1))
    first = sides + hide[1][..., None] * a.sum(axis=-1)
    second = across + hide[0][..., None] * a.sum(axis=-2)
    both = corner + hide[0] * first.sum(axis=-1) + hide[1] * across.sum(axis=-1)
    return a, first, second, both


def _shown(table: Floats, rest: list[SeenValues | None], u: Floats) -> Floats:
    """Return the product of the release probabilities of what is shown, for each outcome of the rest."""
    found = np.ones((len(u), *(1,) * len(rest)))
    for axis, seen in enumerate(rest, start=1):
        if seen is not None:
            chance = 1.0 - seen.hidden(u)
            each = np.ones((len(u), seen.outcomes))
            each[:, :-1] = chance[:, None]
            found = found * each.reshape((len(u), *(1,) * (axis - 1), -1, *(1,) * (len(rest) - axis)))
    return found
