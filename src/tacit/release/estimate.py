"""From noisy counts to the best estimates: post-processing, which costs no privacy.

Nothing here sees true answers other than totals that no secret edge changes (`plan/totals.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Names = tuple[str, ...]


def with_totals(values: Floats, groups: Ints, totals: Floats, variances: Floats) -> Floats:
    """Return the nearest values whose sums over groups are the exact totals (weighted least squares).

    What is missing in a group is shared out in proportion to how uncertain each value is.
    """
    missing = totals - np.bincount(groups, values, minlength=len(totals))
    doubt = np.bincount(groups, variances, minlength=len(totals))
    rate = np.divide(missing, doubt, out=np.zeros_like(missing), where=doubt > 0)
    return values + variances * rate[groups]


def nonnegative(values: Floats, groups: Ints | None = None, totals: Floats | None = None) -> Floats:
    """Return the nearest values that are not negative and, if given, keep the groups' exact totals.

    Within a group this is the projection on a simplex: subtract what makes the positive parts add up.
    """
    if groups is None or totals is None:
        return np.asarray(np.maximum(values, 0.0))
    order = np.lexsort((-values, groups))
    ranked, labels = values[order], groups[order]
    starts = np.searchsorted(labels, np.arange(len(totals)))
    rank = np.arange(len(values)) - starts[labels] + 1
    running = np.cumsum(ranked)
    before = np.concatenate([[0.0], running])[starts]
    shift = (running - before[labels] - totals[labels]) / rank
    keeps = ranked > shift
    counts = np.maximum(np.bincount(labels, keeps, minlength=len(totals)).astype(np.int64), 1)
    chosen = shift[np.minimum(starts + counts - 1, len(values) - 1)]
    return np.asarray(np.maximum(values - chosen[groups], 0.0))


def increasing(values: Floats, exact: npt.NDArray[np.bool_] | None, truth_at_exact: Floats | None) -> Floats:
    """Return the nearest cumulative counts that never fall, between 0 and the exact ones."""
    if exact is None or truth_at_exact is None or not exact.any():
        return np.maximum(np.asarray(isotonic_regression(values).x), 0.0)
    out = np.empty_like(values)
    start, floor = 0, 0.0
    for end, known in zip(np.flatnonzero(exact), truth_at_exact, strict=True):
        inner = values[start:end]
        if inner.size:
            out[start:end] = np.clip(np.asarray(isotonic_regression(inner).x), floor, known)
        out[end] = known
        start, floor = int(end) + 1, float(known)
    if start < len(values):
        out[start:] = np.maximum(np.asarray(isotonic_regression(values[start:]).x), floor)
    return out


def consistent(
    tables: Mapping[Names, Floats], sizes: Mapping[str, int], exact: Mapping[Names, Floats]
) -> dict[Names, Floats]:
    """Return the least-squares tables that agree on every marginal they share, and with the exact ones.

    A table splits into orthogonal effects, one for each subset of its attributes. An effect that several tables
    contain is estimated by each of them with a variance proportional to how many cells are added up for it, so the
    best estimate weighs by the inverse; an effect that is known exactly replaces the estimate.
    """
    effects: dict[Names, Floats] = {}
    for names in {tuple(sorted(part)) for table in tables for part in _subsets(table)}:
        known = next((table for table in exact if set(names) <= set(table)), None)
        if known is not None:
            effects[names] = _effect(_collapsed(exact[known], known, names), names)
            continue
        weighted, weights = np.zeros([sizes[name] for name in names]), 0.0
        for table, values in tables.items():
            if set(names) <= set(table):
                weight = 1 / math.prod(sizes[name] for name in table if name not in names)
                weighted = weighted + weight * _effect(_collapsed(values, table, names), names)
                weights += weight
        effects[names] = weighted / weights
    fitted = {}
    for table in tables:
        total = np.zeros([sizes[name] for name in table])
        for part in _subsets(table):
            names = tuple(sorted(part))
            share = math.prod(sizes[name] for name in table if name not in names)
            axes = [names.index(name) for name in table if name in names]
            shape = [sizes[name] if name in names else 1 for name in table]
            total = total + np.transpose(effects[names], axes).reshape(shape) / share
        fitted[table] = total
    return fitted


def consistent_and_nonnegative(
    tables: Mapping[Names, Floats], sizes: Mapping[str, int], exact: Mapping[Names, Floats], rounds: int = 400
) -> dict[Names, Floats]:
    """Return tables that are marginals of one non-negative joint table, near the noisy ones (accelerated gradient)."""
    order = tuple(sizes)
    wanted = {**consistent(tables, sizes, exact)}
    shape = [sizes[name] for name in order]
    total = max(float(np.mean([table.sum() for table in wanted.values()])), 0.0)
    joint = np.full(shape, total / math.prod(shape))
    steepest = sum(math.prod(sizes[name] for name in order if name not in table) for table in wanted)
    ahead, momentum = joint, 1.0
    for _ in range(rounds):
        slope = np.zeros(shape)
        for table, values in wanted.items():
            missing = _spread(_collapsed(ahead, order, table) - values, table, order, sizes)
            slope = slope + missing
        following = np.maximum(ahead - slope / steepest, 0.0)
        following *= total / following.sum() if following.sum() > 0 else 1.0
        next_momentum = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = following + (momentum - 1) / next_momentum * (following - joint)
        joint, momentum = following, next_momentum
    return {table: _collapsed(joint, order, table) for table in wanted}


def _subsets(names: Sequence[str]) -> list[Names]:
    return [part for many in range(len(names) + 1) for part in combinations(names, many)]


def _collapsed(values: Floats, table: Sequence[str], names: Sequence[str]) -> Floats:
    """Add up over the attributes that are not wanted and put the rest in the order of `names`."""
    away = tuple(place for place, name in enumerate(table) if name not in names)
    kept = [name for name in table if name in names]
    return np.asarray(np.transpose(values.sum(axis=away), [kept.index(name) for name in names]), dtype=np.float64)


def _spread(values: Floats, table: Sequence[str], order: Sequence[str], sizes: Mapping[str, int]) -> Floats:
    axes = [list(table).index(name) for name in order if name in table]
    return np.transpose(values, axes).reshape([sizes[name] if name in table else 1 for name in order])


def _effect(values: Floats, names: Sequence[str]) -> Floats:
    for axis in range(len(names)):
        values = values - values.mean(axis=axis, keepdims=True)
    return values
