"""Small lines with measured sums for Hypothesis, and what follows from them by plain linear algebra."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from scipy.linalg import null_space

from tacit.noise.grouped import GroupedNoise
from tacit.plan.measure.lines.layout import LineLayout


@st.composite
def layouts(draw, most=24):
    leaves = draw(st.booleans())
    segments = tuple(draw(st.lists(st.integers(1, most), min_size=1, max_size=1 if leaves else 3)))
    block = draw(st.integers(1, max(segments) + 2))
    cells = [draw(st.integers(1, block))]
    while cells[-1] > 1:
        cells.append(draw(st.integers(1, cells[-1] - 1)))
    ramps, anchors = draw(st.booleans()), draw(st.booleans())
    if block == 1 and (ramps or anchors) and draw(st.booleans()):
        cells = []
    return LineLayout(segments, leaves, block, tuple(cells), ramps, anchors)


@st.composite
def noises(draw, layout):
    """Noise with all sorts of scales on what is not exact."""
    groups = len(layout.sizes) - (not layout.leaves)
    scales = [Fraction(draw(st.integers(2, 400)), 7) for _ in range(groups)]
    return GroupedNoise(layout.sizes, (*scales, *(() if layout.leaves else (Fraction(0),))))


def matrix(layout):
    """What a person with each value adds to each entry, straight from the meaning of the sums."""
    rows, starts = {name: [] for name in ("cells", "ramps", "anchors", "ends")}, np.cumsum([0, *layout.segments])
    everybody = np.arange(layout.values)

    def pieces(spans, size):
        return [(low, min(low + size, end)) for first, end in spans for low in range(first, end, size)]

    spans = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
    nodes = pieces(spans, layout.block)
    for size in layout.cells:
        nodes = pieces(nodes, size)
        rows["cells"] += [(low <= everybody) & (everybody < high) for low, high in nodes]
    for first, end in spans:
        for low, high in pieces([(first, end)], layout.block):
            inside = (first <= everybody) & (everybody < high)
            rows["ramps"].append(inside * np.minimum(high - everybody, high - low))
            if high < end or layout.leaves:
                rows["anchors"].append(inside)
        rows["ends"].append(everybody < end)
    found = [rows["cells"], rows["ramps"] * layout.ramps, rows["anchors"] * layout.anchors]
    return np.array([row for part in [*found, rows["ends"] * (not layout.leaves)] for row in part], dtype=np.int64)


def dense(layout, variances):
    """The covariance of the running counts after least squares, and the linear map that makes them of the entries."""
    sums = matrix(layout).astype(np.float64)
    noise = np.repeat(np.asarray(variances, dtype=np.float64), layout.sizes)
    weights, exact = sums[noise > 0] / np.sqrt(noise[noise > 0])[:, None], sums[noise == 0]
    free = null_space(exact) if len(exact) else np.eye(layout.values)
    inverse = np.linalg.pinv(weights @ free) if free.shape[1] else np.zeros((0, len(weights)))
    covariance = free @ inverse @ inverse.T @ free.T
    particular = np.linalg.pinv(exact) if len(exact) else np.zeros((layout.values, 0))
    solve = np.zeros((layout.values, len(sums)))
    solve[:, noise > 0] = free @ inverse / np.sqrt(noise[noise > 0])
    solve[:, noise == 0] = particular - free @ inverse @ weights @ particular
    running = np.tril(np.ones((layout.values, layout.values)))
    return running @ covariance @ running.T, running @ solve
