"""Sets of positions against Python's own sets, in all three ways of taking differences."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.policy.edges import intervals
from tacit.policy.edges.intervals import Intervals

sets = st.frozensets(st.integers(-30, 30))


def members(found: Intervals) -> set[int]:
    assert found == Intervals.of(found.parts)
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(found))  # sorted, disjoint, joined
    return {position for low, high in found for position in range(low, high + 1)}


@given(sets, sets)
def test_sets_of_positions_are_sets(a: frozenset[int], b: frozenset[int]) -> None:
    here, there = Intervals.points(a), Intervals.points(b)
    assert members(here & there) == a & b
    assert members(here | there) == a | b
    assert members(here.without(there)) == a - b
    assert (here <= there) == (a <= b)
    assert {place for place in range(-32, 33) if place in here} == a


@given(sets, sets, st.integers(-70, 70), st.integers(-70, 70))
def test_differences(a: frozenset[int], b: frozenset[int], one: int, other: int) -> None:
    low, high = sorted((one, other))
    true = {x - y for x in a for y in b if low <= x - y <= high}
    here, there = Intervals.points(a), Intervals.points(b)
    assert members(here.minus(there, low, high)) == true
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "_FEW_PAIRS", -1)
        assert members(here.minus(there, low, high)) == true
        patch.setattr(intervals, "_SHORT", 0)
        held = members(here.minus(there, low, high))
    assert held >= true
    assert key_points(held) == key_points(true)


def key_points(found: set[int]) -> tuple[object, ...]:
    """Return what must be exact however many parts there are: the ends, zero, and what is nearest to it."""
    above, below = [x for x in found if x > 0], [x for x in found if x < 0]
    ends = (min(found), max(found)) if found else ()
    return (*ends, 0 in found, min(above, default=None), max(below, default=None))
