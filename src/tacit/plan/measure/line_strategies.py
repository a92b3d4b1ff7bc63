"""Every way to measure a line that is worth trying, for the runs that are asked for.

Which sums are measured, in what sizes and at what share of epsilon follows from how people move
(`plan/sensitivity/moves.py`) and from the runs that are asked for; no row is looked at. Searches are made once for
each line, and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from tacit.noise.line.law import LineNoise
from tacit.plan.errors.line_errors import JointErrors, SumErrors
from tacit.plan.errors.runs import Kind, Runs, mean_over
from tacit.plan.measure.joint_line import best_line_noise
from tacit.plan.measure.strategy import Strategy
from tacit.plan.measure.sums.line_sums import LineSums
from tacit.plan.measure.sums.search import GridCandidate, candidates
from tacit.plan.measure.sums.workload import Workload
from tacit.plan.sensitivity.moves import LineMoves, line_moves

if TYPE_CHECKING:
    from tacit.plan.question import Linear
    from tacit.policy.policy import Policy
    from tacit.policy.where import Where

MOST_SEGMENTS: Final = 50_000  # stretches between exact counts; with more, each is short and cells alone are good
MOST_LENGTHS: Final = 64  # different lengths of these for which sums are searched
MOST_LOOKED_AT: Final = 400  # listed runs that a search looks at


def line_strategies(
    counts: Linear, name: str, where: Where | None, policy: Policy, epsilon: Fraction, runs: Runs
) -> list[Strategy]:
    """Return the ways to measure the line of an attribute; `counts` are its running counts."""
    moves = line_moves(name, where, policy)
    if moves is None or len(moves.segments) > MOST_SEGMENTS or moves.values < 2:
        return []
    kinds: tuple[Kind, ...] = ("ranges", "prefixes", "cells") if runs.kind is None else (runs.kind,)
    joint = [noise for kind in kinds if (noise := best_line_noise(moves, epsilon, kind)) is not None]
    # joint noise is better, but for a hundredth or two: sums are searched for long where there is none to draw
    best = _best_sums(moves, runs, epsilon, thorough=not joint)
    found = [_of_sums(name, where, moves, *each) for each in best]
    if joint:
        found.append(_of_noise(min(joint, key=lambda noise: mean_over(JointErrors(noise), runs)), counts, moves))
    return found


def _best_sums(moves: LineMoves, runs: Runs, epsilon: Fraction, *, thorough: bool) -> list[tuple[str, GridCandidate]]:
    """Return the best cells of several sizes, and the best with ramps; single values alone are tried in any case."""
    if len(set(moves.segments)) > MOST_LENGTHS or not (moves.may_enter_or_leave or moves.grid.pairs):
        return []
    best: dict[str, GridCandidate] = {}
    for one in candidates(moves.grid, _workload(runs), epsilon, thorough=thorough):
        if one.weighted is not None and one.weighted.strategy.groups > 1:
            best.setdefault("ramps and cells" if any(one.weighted.strategy.ramps) else "tree", one)
    return list(best.items())


def _workload(runs: Runs) -> Workload:
    """Return what a search looks at: a kind of runs, or listed ones, of which there are not too many."""
    sizes = (runs.values, 1)
    if runs.kind is not None:
        return Workload(sizes, kind=runs.kind)
    assert runs.low is not None  # noqa: S101 - runs are of a kind or listed
    assert runs.high is not None  # noqa: S101
    every = slice(None, None, -(-len(runs.low) // MOST_LOOKED_AT))
    ends = zip(runs.low[every].tolist(), runs.high[every].tolist(), strict=True)
    return Workload(sizes, tuple((low, high, 0, 0) for low, high in ends))


def _of_sums(name: str, where: Where | None, moves: LineMoves, called: str, found: GridCandidate) -> Strategy:
    assert found.weighted is not None  # noqa: S101 - sums are measured
    rates, rows = found.weighted.rates, found.weighted.strategy.changes(moves.grid)
    sums = LineSums.on(name, where, found.weighted, moves)
    worst = max(rows, key=lambda row: _added(rates, row))
    whole = float(_added(rates, worst))
    levels = [
        (group, many, float(rate * moved) / whole)
        for group, many, rate, moved in zip(sums.group_names, sums.noise.sizes, rates, worst, strict=False)
    ]
    cells = len(found.weighted.strategy.sides)
    return Strategy(
        called,
        sums,
        sums.noise,
        "each group of sums has its own scale, and least squares makes counts of them that fit the exact ones",
        _drawn([*levels[:cells][::-1], *levels[cells:]]),
        SumErrors(sums),
        sums.loss(moves),
    )


def _added(rates: Sequence[Fraction], moved: Sequence[int]) -> Fraction:
    """Return what a step costs that moves the entries of each group by so much."""
    return sum((rate * far for rate, far in zip(rates, moved, strict=True)), Fraction(0))


def _of_noise(noise: LineNoise, counts: Linear, moves: LineMoves) -> Strategy:
    far = min(moves.reach, max(moves.segments) - 1)
    whole = float(noise.loss_of(moves.reach, may_enter_or_leave=moves.may_enter_or_leave))
    blocks = sum(-(-length // noise.block) - 1 for length in moves.segments)
    # shares of what the worst step costs: a move, or coming and going, which changes one cell of each size
    goes = moves.may_enter_or_leave and noise.loss_of(moves.reach, may_enter_or_leave=True) > noise.loss_of(
        moves.reach, may_enter_or_leave=False
    )
    crossed = blocks if goes else min(-(-far // noise.block), -(-max(moves.segments) // noise.block) - 1)
    levels = []
    if goes and noise.end_rate is not None:
        levels.append(("everybody", 1, float(noise.end_rate) / whole))
    if noise.anchor_rate and blocks:
        every = "all running counts" if noise.block == 1 else f"running counts after every {noise.block:,} values"
        levels.append((every, blocks, float(noise.anchor_rate * crossed) / whole))
    for level, rate in enumerate(noise.cell_rates):
        size = noise.block >> level
        if rate and (goes or size < max(moves.segments)):
            many = sum(-(-length // size) for length in moves.segments)
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
