"""Noise on short lines, taken apart: all outputs, their weights by the definition, and by the tables of the draws."""

from fractions import Fraction
from itertools import product

import numpy as np

from tacit.noise.line.law import DRAWN, LineNoise
from tacit.noise.line.messages import Rates
from tacit.noise.line.tables import LineTables, make_tables


def drawn_rates(law: LineNoise) -> Rates:
    anchor, *cells = (float(DRAWN * rate) for rate in (law.anchor_rate, *law.cell_rates))
    return Rates(anchor, tuple(cells), None if law.end_rate is None else float(DRAWN * law.end_rate))


def tables_of(law: LineNoise) -> LineTables:
    return make_tables(law.segments, drawn_rates(law))


def ends(law: LineNoise) -> list[tuple[int, int, bool]]:
    """Where each segment begins and stops, and whether its end has noise."""
    stops = np.cumsum(law.segments)
    free = law.end_rate is not None
    return [
        (int(stop - length), int(stop), free and stop == stops[-1])
        for stop, length in zip(stops, law.segments, strict=True)
    ]


def outputs(law: LineNoise, reach: int) -> np.ndarray:
    """All noise with entries up to the reach."""
    exact = {stop - 1 for _, stop, free in ends(law) if not free}
    each = [[0] if at in exact else range(-reach, reach + 1) for at in range(sum(law.segments))]
    return np.array(list(product(*each)))


def steps(law: LineNoise, reach: int, *, may_enter_or_leave: bool) -> list[np.ndarray]:
    """All ways in which one person can change the running counts: by moving, or by leaving the last segment."""
    values, found = sum(law.segments), []
    for begin, stop, free in ends(law):
        for low in range(begin, stop):
            for high in range(low + 1, min(low + reach, stop - 1) + 1):
                step = np.zeros(values, np.int64)
                step[low:high] = 1
                found.append(step)
            if may_enter_or_leave and free:
                step = np.zeros(values, np.int64)
                step[low:] = 1
                found.append(step)
    return [sign * step for step in found for sign in (1, -1)]


def norm(law: LineNoise, points: np.ndarray) -> np.ndarray:
    """g(z) as the definition says it, cell by cell, in floats."""
    found = np.zeros(len(points))
    for begin, stop, free in ends(law):
        z = np.concatenate([np.zeros((len(points), 1)), points[:, begin:stop]], axis=1)
        length = stop - begin
        for place in range(law.block, length, law.block):
            found += float(law.anchor_rate) * np.abs(z[:, place])
        for level, rate in enumerate(law.cell_rates):
            size = law.block >> level
            for first in range(0, length, size):
                found += float(rate) * np.abs(z[:, min(first + size, length)] - z[:, first])
        if free:
            found += float(law.end_rate) * np.abs(z[:, -1])
    return found


def drawn_logs(law: LineNoise, points: np.ndarray) -> np.ndarray:
    """Log probabilities as the tables of the draws have them, draw by draw."""
    tables, found, reach = tables_of(law), np.zeros(len(points)), int(np.abs(points).max(initial=0))
    known: dict[object, np.ndarray] = {}

    def share(key, split, whole, value):
        # every cell is a difference of two entries
        if key not in known:
            near = range(-2 * reach, 2 * reach + 1)
            known[key] = np.array([[split.log_share(a, b) for b in near] for a in near])
        return known[key][whole + 2 * reach, value + 2 * reach]

    for begin, stop, free in ends(law):
        chain = tables.chains[begin - stop if free else stop - begin]
        z = np.concatenate([np.zeros((len(points), 1), np.int64), points[:, begin:stop]], axis=1)
        block, length = law.block, stop - begin
        anchors = [z[:, place] for place in range(0, length, block)]
        for k in range(1, len(anchors)):
            found += share((stop, k), chain.split(k), anchors[k - 1], anchors[k])
        if chain.end is not None:
            found += share("end", chain.end, anchors[-1], z[:, -1])
        place = length // block * block
        for level, behind in chain.parts:
            after = place + (block >> level)
            if behind is not None:
                found += share((stop, "rest", level), behind, z[:, -1] - z[:, place], z[:, -1] - z[:, after])
            place = after
        for level, half in enumerate(tables.halves, start=1):
            size = block >> level
            for first in range(0, length - 2 * size + 1, 2 * size):
                whole = z[:, first + 2 * size] - z[:, first]
                found += share(level, half, whole, z[:, first + size] - z[:, first])
    return found


def random_law(rng: np.random.Generator, most: int) -> tuple[LineNoise, int, bool]:
    """A law on a few values that spends one at its reach, its reach, and whether people may leave."""
    values = int(rng.integers(2, most + 1))
    may_enter_or_leave = bool(rng.integers(2))
    cut = sorted({int(at) for at in rng.integers(1, values, int(rng.integers(0, 2)))})
    segments = tuple(int(part) for part in np.diff([0, *cut, values]))
    block = 1 << int(rng.integers(0, 4))
    reach = int(rng.integers(1, values))
    parts = [Fraction(int(part), 16) for part in rng.integers(0, 12, block.bit_length() + 2)]
    parts[-2] += Fraction(1, 4)
    parts[-1] += Fraction(1, 4)
    anchor, *cells, end = parts
    law = LineNoise(segments, block, anchor, tuple(cells), end if may_enter_or_leave else None)
    total = law.loss_of(reach, may_enter_or_leave=may_enter_or_leave)
    if not total:
        return random_law(rng, most)
    scaled = [rate / total for rate in (anchor, *cells, end)]
    return (
        LineNoise(segments, block, scaled[0], tuple(scaled[1:-1]), scaled[-1] if may_enter_or_leave else None),
        reach,
        may_enter_or_leave,
    )
