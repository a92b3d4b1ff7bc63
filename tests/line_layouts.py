"""Small lines with measured sums for Hypothesis, and what follows from them by plain linear algebra."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from tacit.noise.two_scale import GroupedNoise
from tacit.plan.measure.regions import GridStrategy, Weighted
from tacit.plan.measure.sums import LineSums
from tacit.plan.sensitivity.moves import GridMoves


def sums_on(segments, sides, ramps=0, *, may_enter_or_leave=False, scales=None):
    """Return sums of the line of `a` with these scales, or all of them 3."""
    strategy = GridStrategy(tuple(sides), (ramps, 0))
    rates = [1 / Fraction(scale) for scale in scales or [3] * strategy.groups]
    moves = GridMoves.on_line(tuple(segments), 1, may_enter_or_leave=may_enter_or_leave)
    return LineSums.on("a", None, Weighted(strategy, tuple(rates)), moves)


@st.composite
def line_sums(draw, most=24):
    """Return sums with all sorts of sizes and scales."""
    may_enter_or_leave = draw(st.booleans())
    segments = draw(st.lists(st.integers(1, most), min_size=1, max_size=1 if may_enter_or_leave else 3))
    sides = [1]
    for _ in range(draw(st.integers(0, 2))):
        sides.append(sides[-1] * draw(st.integers(2, 6)))
    ramps = draw(st.sampled_from([0, draw(st.integers(1, max(segments)))]))
    groups = len(sides) + bool(ramps)
    scales = [Fraction(draw(st.integers(2, 400)), 7) for _ in range(groups)]
    return sums_on(segments, sides, ramps, may_enter_or_leave=may_enter_or_leave, scales=scales)


def places(sums):
    """Return for each segment, by length and then by place, its start, its length and its length filled up."""
    starts = np.cumsum([0, *sums.segments[0]])[:-1].tolist()
    found = sorted(zip(sums.segments[0], starts, strict=True))
    filled = []
    for length, start in found:
        sides = [1]
        for side in sums.strategy.sides[1:]:
            sides.append(min(side, -(-length // sides[-1]) * sides[-1]))
        filled.append((start, length, sides, -(-length // sides[-1]) * sides[-1]))
    return filled


def matrix(sums, *, filled=False):
    """What a person with each value adds to each entry, straight from the meaning of the sums.

    Segments are filled up with empty values, to whole cells of the largest size; `filled` keeps their columns, at the
    end of each segment, in the order of `places`.
    """
    columns, rows, at = [], [[] for _ in range(sums.strategy.groups + sums.has_totals)], 0
    every = sum(full for *_, full in places(sums))
    for start, length, sides, full in places(sums):
        here = np.full(every, -1)
        here[at : at + full] = np.arange(full)
        columns += [(at + place, start + place) for place in range(length)]
        at += full
        for group, side in enumerate(sides):
            rows[group] += [(low <= here) & (here < low + side) for low in range(0, full, side)]
        width = sums.strategy.ramps[0]
        if width:
            for low in range(0, length, width):
                end = min(low + width, length)
                rows[len(sides)].append(np.where(here >= 0, np.clip(end - here, 0, end - low), 0))
        if sums.has_totals:
            rows[-1].append((here >= 0) & (here < length))
    found = np.array([row for group in rows for row in group], dtype=np.int64)
    real = np.array([column for column, _ in sorted(columns, key=lambda each: each[1])])
    return (found, real) if filled else found[:, real]


def dense(sums):
    """The covariance of the running counts after least squares, and the linear map that makes them of the entries."""
    rows, real = matrix(sums, filled=True)
    variances = np.repeat(np.array(sums.noise.variances()), sums.noise.sizes)
    noisy = variances > 0
    measured = rows[noisy] / variances[noisy, None]
    covariance = np.linalg.inv(rows[noisy].T @ measured)
    solve = np.zeros((rows.shape[1], len(rows)))
    solve[:, noisy] = covariance @ measured.T
    for entry in np.flatnonzero(~noisy):  # an exact total
        pull = covariance @ rows[entry] / (rows[entry] @ covariance @ rows[entry])
        solve += np.outer(pull, np.eye(len(rows))[entry] - rows[entry] @ solve)
        covariance -= np.outer(pull, covariance @ rows[entry])
    running = np.tril(np.ones((len(real), len(real))))
    return running @ covariance[np.ix_(real, real)] @ running.T, running @ solve[real]


def noise_of(sums, scales):
    """Return noise for the same entries with other scales."""
    return GroupedNoise(sums.noise.sizes, tuple(map(Fraction, scales)))
