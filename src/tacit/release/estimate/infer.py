"""From measurements to estimates: the best values of the answers, and the laws that their intervals are made from.

Nothing here knows true answers other than those that no secret edge changes (`release/estimate/measure.py`). The
estimate of an answer is a fixed linear combination of noisy entries, so its law is known before the release
(`plan/error_laws.py`). Non-negative values and rising counts come after it, as projections that never lead
further away from the truth, and intervals are widened where they would leave such a value out. Counts on a line that
need not be moved to rise follow their neighbours that were, as far as their errors are correlated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.plan.plans.linear import Line, LinearPlan
from tacit.release.estimate.measure import Measurements, measure
from tacit.release.estimate.projections import agreement, following, increasing, nearest, of_groups, with_totals
from tacit.release.estimate.projections import nonnegative as without_negatives
from tacit.release.results.ranges import LineRecord, ListedRangesRecord, RunningCounts
from tacit.release.results.record import LinearRecord, ReleaseRecord, draw_record


def infer(measured: Measurements, *, consistent: bool = False, nonnegative: bool = False) -> LinearRecord | LineRecord:
    """Return the best estimates of the answers, with the laws of their errors.

    `consistent` makes tables agree and cumulative counts never fall, `nonnegative` lets no count be below zero.
    """
    plan = measured.plan
    if plan.line is not None:
        return _infer_line(measured, plan.line, consistent=consistent, nonnegative=nonnegative)
    # about a line, and yet not read off one: ranges that were measured by themselves
    record = LinearRecord if plan.query.about_a_line is None else ListedRangesRecord
    if plan.noise is None:
        values = measured.noisy.astype(np.float64) * _unit(plan)
        return record(plan=plan, values=values, _centre=values)
    entries = _centred(measured)
    values, centre = entries, entries
    ends: tuple[Floats, Floats] | None = None
    if plan.base.tables(plan.policy.domain):
        values, centre, ends = _cells(measured, entries, consistent=consistent, positive=nonnegative)
    # answers without noise are whole numbers, which sums of estimates may miss by a rounding
    exact = plan.spread.exact()
    if exact.any():
        values, centre = np.where(exact, np.rint(values), values), np.where(exact, np.rint(centre), centre)
    is_count = plan.query.counts_people
    if nonnegative and plan.query.never_negative(plan.policy.domain):
        values = without_negatives(values)
    floor = 0.0 if is_count else -np.inf
    low, high = (np.asarray(floor), np.asarray(np.inf)) if ends is None else ends
    unit = _unit(plan)
    if unit != 1:
        values, centre, low, high = values * unit, centre * unit, np.asarray(low * unit), np.asarray(high * unit)
    return record(plan=plan, values=values, _centre=centre, _spread=plan.spread, _unit=unit, _floor=low, _ceiling=high)


def _infer_line(measured: Measurements, line: Line, *, consistent: bool, nonnegative: bool) -> LineRecord:
    """Return counts of runs of values, read off the estimated running counts."""
    plan, domain = measured.plan, measured.plan.policy.domain
    if plan.noise is None:
        running = line.entries.running(measured.noisy.astype(np.float64))
        counts = RunningCounts(plan, running, running, running, running, nonnegative=False)
    else:
        entries = _centred(measured)
        if plan.base.tables(domain):
            entries = _cells(measured, entries, consistent=False, positive=False)[1]
        centre = _with_fixed(measured, line.entries.running(entries))
        floor, ceiling = _between(measured, len(centre))
        published = _rising(measured, centre) if consistent else centre
        counts = RunningCounts(plan, published, centre, floor, ceiling, nonnegative=nonnegative)
    return LineRecord(
        plan=plan,
        values=counts.of(*line.query.runs(domain)),
        _published=counts.published,
        _centre=counts.centre,
        _floor=counts.floor,
        _ceiling=counts.ceiling,
        _nonnegative=counts.nonnegative,
    )


def _rising(measured: Measurements, centre: Floats) -> Floats:
    """Return running counts that never fall, and are near to the noisy ones both as counts and in their steps."""
    plan = measured.plan
    rising = increasing(centre, plan.fixed, measured.fixed)
    if plan.line_errors is None:  # nothing is known of how errors of neighbours go together
        return rising
    counts, steps = (plan.line_errors.mean_variance(kind) for kind in ("prefixes", "cells"))
    alike = 1 - steps / (2 * counts) if counts else 0.0
    return increasing(following(centre, rising, plan.fixed, alike), plan.fixed, measured.fixed)


def _centred(measured: Measurements) -> Floats:
    noisy: Floats = measured.noisy - measured.plan.per_entry(lambda law: law.mean())
    return noisy


def _unit(plan: LinearPlan) -> float:
    return float(plan.query.unit(plan.policy.domain))


def _with_fixed(measured: Measurements, entries: Floats) -> Floats:
    fixed = measured.plan.fixed
    if fixed is None:
        return entries
    out = entries.copy()
    out[fixed] = measured.fixed
    return out


def _between(measured: Measurements, size: int) -> tuple[Floats, Floats]:
    """Return between which exact counts each cumulative count lies."""
    fixed, known = measured.plan.fixed, measured.fixed
    if fixed is None or known is None or not fixed.any():
        return np.broadcast_to(0.0, (size,)), np.broadcast_to(np.inf, (size,))
    at = np.flatnonzero(fixed)
    if len(at) == 1 and at[0] == size - 1:  # the number of people: nothing need be laid out but the last
        floor = np.zeros(size)
        floor[-1] = known[0]
        return floor, np.broadcast_to(known[0], (size,))
    before = np.searchsorted(at, np.arange(size), side="right")
    after = np.searchsorted(at, np.arange(size), side="left")
    return np.concatenate([[0.0], known])[before], np.append(known, np.inf)[after]


def _cells(
    measured: Measurements, entries: Floats, *, consistent: bool, positive: bool
) -> tuple[Floats, Floats, tuple[Floats, Floats] | None]:
    """Return the cells of histograms: the estimates, those whose law is known, and the ends that totals give them."""
    plan, domain = measured.plan, measured.plan.policy.domain
    groups, tables = plan.groups, plan.base.tables(domain)
    sizes = [[domain[name].size for name in names] for names in tables]
    starts = np.cumsum([math.prod(size) for size in sizes])[:-1]
    variances = plan.per_entry(lambda law: law.variance())
    ends = None
    centre = entries
    totals = measured.totals or ()
    if groups is not None:
        largest = _one_after_another([of_groups(total, group) for group, total in zip(groups, totals, strict=True)])
        centre = _one_after_another(
            [
                with_totals(part, group, total, variance)
                for part, group, total, variance in zip(
                    np.split(entries, starts), groups, totals, np.split(variances, starts), strict=True
                )
            ]
        )
        sizes_of_groups = [np.bincount(group) for group in groups]
        if any((many == 1).any() for many in sizes_of_groups):
            alone = np.concatenate([many[group] == 1 for many, group in zip(sizes_of_groups, groups, strict=True)])
            centre = np.where(alone, largest, centre)
            variances = np.where(alone, 0.0, variances)
        ends = np.broadcast_to(0.0, centre.shape), largest
    # sums of cells are made non-negative as sums: cells that were cut at zero would add up to too much
    positive = positive and plan.query is plan.base
    if consistent and len(tables) > 1:
        wanted = agreement(tables, sizes, groups)
        wanted.totals[wanted.shared < 0] = np.concatenate(totals) if totals else 0.0
        start = np.where(variances > 0, entries, centre)
        linear = nearest(start, variances, wanted)
        if not positive:
            return linear, centre, ends
        movable = (variances > 0).astype(np.float64)
        if ends is not None:  # nobody is in the cells of an empty group
            movable[ends[1] == 0] = 0.0
            linear = np.where(ends[1] == 0, 0.0, linear)
        even = np.ptp(variances[variances > 0]) == 0 if movable.any() else True
        # with equal variances both steps are one projection, and whole numbers leave no rounding behind
        origin = np.where(movable > 0, start, linear) if even else linear
        return nearest(origin, movable, wanted, positive=True), centre, ends
    if positive and groups is not None:
        free = variances > 0
        parts = []
        for part, group, total, is_free in zip(
            np.split(centre, starts), groups, totals, np.split(free, starts), strict=True
        ):
            left = total - np.bincount(group, np.where(is_free, 0.0, part), minlength=len(total))
            cut = part.copy()
            if is_free.any():
                cut[is_free] = without_negatives(part[is_free], group[is_free], left)
            parts.append(cut)
        return np.concatenate(parts), centre, ends
    return centre, centre, ends


def _one_after_another(parts: list[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@draw_record.register
def _(plan: LinearPlan, truths: Sequence[Ints], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    return partial(infer, measure(plan, *truths), consistent=plan.consistent, nonnegative=plan.nonnegative)
