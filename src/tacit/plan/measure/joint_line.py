"""One noise for all running counts of a line (`noise/line/law.py`): which block and which rates are best.

Public parameters alone decide: how people move, epsilon, and what is asked. Every choice spends exactly epsilon. The
rates that were found best by long searches follow simple rules (`_anchored`, `_whole`): single values get about a
third, each larger size about the same, the largest cells and the ends of blocks what the number of blocks in a move
asks for. From there a short search goes on, with the predicted error of the noise as what is made small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import inf, log
from typing import Final, Protocol

from tacit.errors import PlanError
from tacit.noise.line.law import LineNoise
from tacit.noise.line.variances import Workload

_MOST_LENGTHS: Final = 64  # different segments; each has tables of its own
_FINEST: Final = 1 << 16  # shares are whole multiples of one over this
_FACTORS: Final = (1.3, 1 / 1.3)
_TRIES: Final = 14
_MUCH_WORSE: Final = 1.5  # than the best that was found: then other ways to measure a line are better
_GOOD_ENOUGH: Final = 0.997  # an improvement by less is not looked for any further


class LineMovesLike(Protocol):
    """How people move on a line, as `plan/sensitivity/moves.py` finds it."""

    @property
    def segments(self) -> tuple[int, ...]:
        """The lengths of the stretches between exact running counts."""

    @property
    def reach(self) -> int:
        """How many running counts the longest move changes."""

    @property
    def may_enter_or_leave(self) -> bool:
        """Whether somebody may enter or leave the count."""


@dataclass(frozen=True)
class _Shape:
    """Shares of the loss, up to a factor: of the ends of blocks, of the cells from the block on, and of the end."""

    anchor: float
    cells: tuple[float, ...]
    end: float

    def varied(self) -> Iterator[_Shape]:
        """Yield shapes in which one part is larger or smaller: ends of blocks, blocks, single values, the end."""
        for factor in _FACTORS:
            if self.anchor:
                yield replace(self, anchor=self.anchor * factor)
            yield replace(self, cells=(*self.cells[:-1], self.cells[-1] * factor))
            top = next((at for at, share in enumerate(self.cells) if share), len(self.cells))
            if top < len(self.cells) - 1:
                yield replace(self, cells=(*self.cells[:top], self.cells[top] * factor, *self.cells[top + 1 :]))
            if self.end:
                yield replace(self, end=self.end * factor)


def best_line_noise(moves: LineMovesLike, epsilon: Fraction, workload: Workload) -> LineNoise | None:
    """Return the joint noise with the smallest expected error that costs epsilon; None where there is none to draw.

    >>> from types import SimpleNamespace
    >>> law = best_line_noise(SimpleNamespace(segments=(40,), reach=1, may_enter_or_leave=False), Fraction(1), "ranges")
    >>> law.block, law.anchor_rate, law.cell_rates
    (1, Fraction(1, 1), (Fraction(0, 1),))
    """
    return _best(
        tuple(moves.segments),
        int(moves.reach),
        Fraction(epsilon),
        workload,
        may_enter_or_leave=bool(moves.may_enter_or_leave),
    )


@lru_cache(maxsize=256)
def _best(
    segments: tuple[int, ...], reach: int, epsilon: Fraction, workload: Workload, *, may_enter_or_leave: bool
) -> LineNoise | None:
    if len(set(segments)) > _MOST_LENGTHS:
        return None
    far = min(reach, max(segments) - 1)
    if far < 1 and not may_enter_or_leave:
        return None

    def law_of(shape: _Shape) -> LineNoise | None:
        return _spending(segments, shape, epsilon, reach=reach, may_enter_or_leave=may_enter_or_leave)

    def error_of(law: LineNoise | None) -> float:
        try:
            return inf if law is None else law.mean_variance(workload)
        except PlanError:
            return inf

    def error(shape: _Shape) -> float:
        return error_of(law_of(shape))

    tried = {shape: error(shape) for shape in _starts(segments, far, may_enter_or_leave=may_enter_or_leave)}
    best = min(tried.values(), default=inf)
    for shape in sorted((shape for shape in tried if tried[shape] < _MUCH_WORSE * best), key=lambda one: tried[one]):
        start = law_of(shape)
        if start is None or not start.is_drawable(quickly=True):
            continue
        law = law_of(_improved(shape, tried[shape], error))
        if law is not None and law.is_drawable():
            return law
    return None


def _improved(shape: _Shape, error: float, error_of: _Error) -> _Shape:
    """Go from shape to shape while one of its neighbours is better, for a few steps."""
    left, waiting = _TRIES, list(shape.varied())
    while waiting and left:
        tried = waiting.pop(0)
        left -= 1
        found = error_of(tried)
        if found < error:
            goes_on = found < _GOOD_ENOUGH * error
            shape, error = tried, found
            waiting = list(shape.varied()) if goes_on else waiting
    return shape


class _Error(Protocol):
    """The expected error of a shape."""

    def __call__(self, shape: _Shape) -> float: ...


def _spending(
    segments: tuple[int, ...], shape: _Shape, epsilon: Fraction, *, reach: int, may_enter_or_leave: bool
) -> LineNoise | None:
    """Return the noise of this shape that costs exactly epsilon."""

    def exact(share: float) -> Fraction:
        return Fraction(round(share * _FINEST), _FINEST)

    block = 1 << (len(shape.cells) - 1)
    anchor, cells = exact(shape.anchor), tuple(exact(share) for share in shape.cells)
    end = max(exact(shape.end), Fraction(1, _FINEST)) if may_enter_or_leave else None
    try:
        law = LineNoise(segments, block, anchor, cells, end)
    except PlanError:
        return None
    cost = Fraction(law.loss_of(reach, may_enter_or_leave=may_enter_or_leave))
    if end is not None:
        # where moves cost more than leaving, the end takes what leaving still may cost
        end += cost - Fraction(law.loss_of(0, may_enter_or_leave=True))
    by = epsilon / cost
    return LineNoise(
        segments, block, anchor * by, tuple(rate * by for rate in cells), None if end is None else end * by
    )


def _starts(segments: tuple[int, ...], far: int, *, may_enter_or_leave: bool) -> list[_Shape]:
    """Return shapes to begin with."""
    longest = max(segments)
    found = [_whole(longest, top) for top in (4, 8, 16) if longest >= top // 2]
    if may_enter_or_leave:
        return list(dict.fromkeys(found))
    if far == 1:
        found.append(_Shape(1.0, (0.0,), 0.0))
    depth = 0
    while 1 << depth < longest:
        crossed = -(-far // (1 << depth))
        if 4 <= crossed <= 60 or (depth == 0 and crossed < 4):
            found.append(_anchored(depth, crossed, longest))
        depth += 1
    return list(dict.fromkeys(found))


def _inner(many: int) -> list[float]:
    """Return shares of cells of 2, 4, 8, .. values."""
    return [(0.045, 0.075)[at] if at < 2 else 0.086 for at in range(many)]


def _anchored(depth: int, crossed: int, longest: int) -> _Shape:
    """Return the shape for blocks of 2^depth values, of which a move crosses so many."""
    crossed = min(crossed, -(-longest // (1 << depth)) - 1)
    if depth == 0:
        return _Shape(0.4 / crossed, (0.3,), 0.0)
    single = max(0.265, 0.46 - 0.03 * depth)
    block = max(0.05, 0.11 * log(crossed / 2.2)) if crossed > 2.2 else 0.05
    ends = max(0.08, 0.33 - 0.028 * depth)
    cells = [single, *_inner(depth - 1), block]
    return _Shape(ends / crossed, tuple(share / 2 for share in reversed(cells)), 0.0)


def _whole(longest: int, parts: int) -> _Shape:
    """Return the shape without anchors: one block, whose cells begin at about so many to the line."""
    depth = max(longest - 1, 1).bit_length()
    cells = [0.27, *_inner(depth)]
    kept = [share if at == 0 or (parts << at) <= 2 * longest else 0.0 for at, share in enumerate(cells)]
    return _Shape(0.0, tuple(share / 2 for share in reversed(kept)), 0.2)
