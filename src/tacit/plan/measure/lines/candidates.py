"""All ways to measure a line with independent noise and least squares, for people who move so and a workload.

They follow from public parameters alone, are found once and kept: the same for every epsilon.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from tacit.plan.measure.lines.ordered import ordered, ordered_hierarchical
from tacit.plan.measure.lines.ramps import best_ramps
from tacit.plan.measure.lines.scheme import Scheme
from tacit.plan.measure.lines.trees import best_tree, single_values, uniform_tree
from tacit.plan.measure.lines.weights import RateSearch, Workload
from tacit.plan.sensitivity.line_moves import LineMoves

_FAN_OUTS: Final = (2, 4, 8, 16)  # of the published strategy
_USUAL_FAN_OUT: Final = 16
_FAR: Final = 3  # times the error of another scheme: too far for better fan-outs and weights to make up for


@lru_cache(maxsize=512)
def line_schemes(moves: LineMoves, workload: Workload) -> tuple[Scheme, ...]:
    """Return the best scheme of each kind, of which no two measure the same; none where nothing needs noise.

    >>> moves = LineMoves((100,), reach=5, leaves=False)
    >>> for scheme in line_schemes(moves, "ranges"):
    ...     print(f"{scheme.name}: {scheme.error('ranges'):.1f}")
    single values: 134.6
    ordered: 98.0
    ordered hierarchical, fan-out 8: 45.0
    ramps and cells: 40.9
    uniform tree of fan-out 16: 177.2
    """
    if not moves.leaves and (moves.reach < 1 or max(moves.segments) < 2):
        return ()
    weighing = RateSearch(moves, workload)

    def about(scheme: Scheme) -> float:
        return weighing.error(scheme.layout, scheme.rates)

    found = [single_values(moves)]
    if not moves.leaves:  # the published ones take the number of people for known
        published = [ordered_hierarchical(moves, fan_out) for fan_out in _FAN_OUTS]
        found += [ordered(moves), min(published, key=about)]
    found += [ramps] if (ramps := best_ramps(moves, workload)) is not None else []
    tree = uniform_tree(moves, _USUAL_FAN_OUT)
    if about(tree) < _FAR * min(map(about, found)):
        tree = best_tree(moves, workload)
    return tuple({(scheme.layout, scheme.rates): scheme for scheme in (tree, *reversed(found))}.values())[::-1]
