"""Every way to measure a line that is worth trying for given runs: sums of its cells, and one joint noise.

Which sums are measured, in what sizes and at what share of epsilon, and which block and rates joint noise has
(`noise/line/law.py`), follows from public parameters alone: how people move (`plan/sensitivity/moves.py`), epsilon
and the runs that are asked for. Searches are made once for each line, and kept. The rates of joint noise that long
searches found best follow simple rules (`_anchored`, `_whole`): single values get about a third, each larger size about
the same, the largest cells and the ends of blocks what the number of blocks in a move asks for. From there a short
search goes on, which makes the predicted error of the noise small. Every choice spends exactly epsilon.

Guarantee   The bounds of `JointErrors.spread` hold the error of each run at least at the stated level.
Assumes     What the law of the noise says about itself (`noise/line/law.py`).
Why         The law of a run is symmetric and log-concave on whole numbers, and its variance bounds its quantiles
            (`noise/variance_bounds.py`).
Reference   Saumard, Wellner, Log-concavity and strong log-concavity: a review, arXiv:1404.5886.
Checked by  tests/statistical/test_line_strategies.py, tests/unit/noise/test_variance_bounds.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import inf, log
from typing import TYPE_CHECKING, Final, get_args

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.law import Kind
from tacit.noise.line.law import LineNoise
from tacit.noise.variance_bounds import run_bound
from tacit.plan.error_laws import AnySpread, LineErrors, ShapedSpread, mean_over
from tacit.plan.measure.grid_search import GridCandidate, candidates
from tacit.plan.measure.measured import Strategy
from tacit.plan.measure.sums import LineSums
from tacit.plan.measure.workload import Workload
from tacit.plan.sensitivity.moves import GridMoves, line_moves

if TYPE_CHECKING:
    from tacit.plan.question import Linear
    from tacit.policy.policy import Policy
    from tacit.policy.where import Where


MOST_SEGMENTS: Final = 50_000  # stretches between exact counts; with more, each is short and cells alone are good
MOST_LENGTHS: Final = 64  # different lengths of these for which noise or sums are searched: each has its own tables
MOST_LOOKED_AT: Final = 400  # listed runs that a search looks at
_ROUNDED_UP: Final = 1.001  # variances of joint noise are right to a thousandth
_FINEST: Final = 1 << 16  # shares are whole multiples of one over this
_FACTORS: Final = (1.3, 1 / 1.3)
_TRIES: Final = 14
_MUCH_WORSE: Final = 1.5  # than the best that was found: then other ways to measure a line are better
_GOOD_ENOUGH: Final = 0.997  # an improvement by less is not looked for any further


@dataclass(frozen=True, eq=False)
class JointErrors(LineErrors):
    """Running counts with noise that was drawn for all of them together."""

    noise: LineNoise

    def run_variance(self, low: Ints, high: Ints) -> Floats:
        return self.noise.run_variance(low, high)

    def mean_variance(self, kind: Kind) -> float:
        return self.noise.mean_variance(kind)

    def spread(self, low: Ints, high: Ints) -> AnySpread:
        """Return what is known of the law of each run: symmetric, log-concave, of this variance."""
        return ShapedSpread(self.run_variance(low, high), bound_of_noise)


def bound_of_noise(level: float, variance: Floats) -> Floats:
    """Return what a run of joint noise of this variance exceeds with at most 1 - level."""
    return run_bound(level, variance * _ROUNDED_UP)


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


@lru_cache(maxsize=256)
def best_line_noise(moves: GridMoves, epsilon: Fraction, kind: Kind) -> LineNoise | None:
    """Return the joint noise with the smallest expected error that costs epsilon; None where there is none to draw.

    >>> law = best_line_noise(GridMoves.on_line((40,), reach=1, may_enter_or_leave=False), Fraction(1), "ranges")
    >>> law.block, law.anchor_rate, law.cell_rates
    (1, Fraction(1, 1), (Fraction(0, 1),))
    """
    if len(set(moves.segments[0])) > MOST_LENGTHS or not (moves.pairs or moves.may_enter_or_leave):
        return None

    def law_of(shape: _Shape) -> LineNoise | None:
        return _spending(moves, shape, epsilon)

    def error(shape: _Shape) -> float:
        law = law_of(shape)
        try:
            return inf if law is None else law.mean_variance(kind)
        except PlanError:
            return inf

    tried = {shape: error(shape) for shape in _starts(moves)}
    best = min(tried.values(), default=inf)
    for shape in sorted((shape for shape in tried if tried[shape] < _MUCH_WORSE * best), key=lambda one: tried[one]):
        start = law_of(shape)
        if start is None or not start.is_drawable(quickly=True):
            continue
        law = law_of(_improved(shape, tried[shape], error))
        if law is not None and law.is_drawable():
            return law
    return None


def _improved(shape: _Shape, error: float, error_of: Callable[[_Shape], float]) -> _Shape:
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


def _spending(moves: GridMoves, shape: _Shape, epsilon: Fraction) -> LineNoise | None:
    """Return the noise of this shape that costs exactly epsilon."""

    def exact(share: float) -> Fraction:
        return Fraction(round(share * _FINEST), _FINEST)

    block = 1 << (len(shape.cells) - 1)
    anchor, cells = exact(shape.anchor), tuple(exact(share) for share in shape.cells)
    end = max(exact(shape.end), Fraction(1, _FINEST)) if moves.may_enter_or_leave else None
    try:
        law = LineNoise(moves.segments[0], block, anchor, cells, end)
    except PlanError:
        return None
    cost = Fraction(law.loss_of(moves.reach, may_enter_or_leave=moves.may_enter_or_leave))
    if end is not None:
        # where moves cost more than leaving, the end takes what leaving still may cost
        end += cost - Fraction(law.loss_of(0, may_enter_or_leave=True))
    by = epsilon / cost
    return LineNoise(
        moves.segments[0], block, anchor * by, tuple(rate * by for rate in cells), None if end is None else end * by
    )


def _starts(moves: GridMoves) -> list[_Shape]:
    longest, far = max(moves.segments[0]), moves.reach
    found = [_whole(longest, top) for top in (4, 8, 16) if longest >= top // 2]
    if moves.may_enter_or_leave:
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


def line_strategies(
    counts: Linear, name: str, where: Where | None, policy: Policy, epsilon: Fraction, asked: Workload
) -> list[Strategy]:
    """Return the ways to measure the line of an attribute; `counts` are its running counts."""
    moves = line_moves(name, where, policy)
    if moves is None or len(moves.segments[0]) > MOST_SEGMENTS or moves.sizes[0] < 2:
        return []
    kinds = get_args(Kind) if asked.listed is not None else (asked.kind,)
    joint = [noise for kind in kinds if (noise := best_line_noise(moves, epsilon, kind)) is not None]
    # joint noise is better, but for a hundredth or two: sums are searched for long where there is none to draw
    best = _best_sums(moves, asked, epsilon, thorough=not joint)
    found = [_of_sums(name, where, moves, *each) for each in best]
    if joint:
        found.append(_of_noise(min(joint, key=lambda noise: mean_over(JointErrors(noise), asked)), counts, moves))
    return found


def _best_sums(
    moves: GridMoves, asked: Workload, epsilon: Fraction, *, thorough: bool
) -> list[tuple[str, GridCandidate]]:
    """Return the best cells of several sizes, and the best with ramps; single values alone are tried in any case."""
    if len(set(moves.segments[0])) > MOST_LENGTHS or not (moves.pairs or moves.may_enter_or_leave):
        return []
    best: dict[str, GridCandidate] = {}
    for one in candidates(moves, asked.some(MOST_LOOKED_AT), epsilon, thorough=thorough):
        if one.weighted is not None and one.weighted.strategy.groups > 1:
            best.setdefault("ramps and cells" if any(one.weighted.strategy.ramps) else "tree", one)
    return list(best.items())


def _of_sums(name: str, where: Where | None, moves: GridMoves, called: str, found: GridCandidate) -> Strategy:
    assert found.weighted is not None  # noqa: S101 - sums are measured
    weighted = found.weighted
    sums = LineSums.on(name, where, weighted, moves)
    worst = max(weighted.strategy.changes(moves), key=weighted.cost_of)
    whole = float(weighted.cost_of(worst))
    levels = [
        (group, many, float(rate * moved) / whole)
        for group, many, rate, moved in zip(sums.group_names, sums.noise.sizes, weighted.rates, worst, strict=False)
    ]
    cells = len(weighted.strategy.sides)
    return Strategy(
        called,
        sums,
        sums.noise,
        "each group of sums has its own scale, and least squares makes counts of them that fit the exact ones",
        _drawn([*levels[:cells][::-1], *levels[cells:]]),
        sums,
        sums.loss(moves),
    )


def _of_noise(noise: LineNoise, counts: Linear, moves: GridMoves) -> Strategy:
    segments, longest = moves.segments[0], max(moves.segments[0])
    whole = float(noise.loss_of(moves.reach, may_enter_or_leave=moves.may_enter_or_leave))
    blocks = sum(-(-length // noise.block) - 1 for length in segments)
    # shares of what the worst step costs: a move, or coming and going, which changes one cell of each size
    goes = moves.may_enter_or_leave and noise.loss_of(moves.reach, may_enter_or_leave=True) > noise.loss_of(
        moves.reach, may_enter_or_leave=False
    )
    crossed = blocks if goes else min(-(-moves.reach // noise.block), -(-longest // noise.block) - 1)
    levels = []
    if goes and noise.end_rate is not None:
        levels.append(("everybody", 1, float(noise.end_rate) / whole))
    if noise.anchor_rate and blocks:
        every = "all running counts" if noise.block == 1 else f"running counts after every {noise.block:,} values"
        levels.append((every, blocks, float(noise.anchor_rate * crossed) / whole))
    for level, rate in enumerate(noise.cell_rates):
        size = noise.block >> level
        if rate and (goes or size < longest):
            many = sum(-(-length // size) for length in segments)
            named = "single values" if size == 1 else f"cells of {size:,} values"
            levels.append((named, many, float((1 if goes else 2) * rate) / whole))
    return Strategy(
        noise.name,
        counts,
        noise,
        "one noise is drawn for all running counts together, in the shape of what one person can change; in a tree "
        "every level would have noise of its own, and the levels would have to be reconciled",
        _drawn(levels),
        JointErrors(noise),
        noise.loss_of(moves.reach, may_enter_or_leave=moves.may_enter_or_leave),
    )


def _drawn(levels: Sequence[tuple[str, int, float]]) -> tuple[str, ...]:
    """Draw what is measured as a tree, from the largest parts to single values, with the share of epsilon of each."""
    lines = [
        f"{'   ' * depth}{'└─ ' if depth else ''}{name} ({many:,})" for depth, (name, many, _) in enumerate(levels)
    ]
    wide = max((len(line) for line in lines), default=0)
    shares = [share for _, _, share in levels]
    return tuple(f"{line:<{wide}}  {share:4.0%} of epsilon" for line, share in zip(lines, shares, strict=True))
