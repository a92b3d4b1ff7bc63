"""Every relation on one short axis, word for word: all positions, all pairs of sets, all pairs of relations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Blocks, FromTo, Near, Same
from tacit.policy.edges.shapes import ItemMoves

SIZE = 4
AXIS = range(SIZE)
SETS = [Intervals.points(p for p in AXIS if bits >> p & 1) for bits in range(1, 2**SIZE)]
SOME = [Intervals.of([part]) for part in [(0, 0), (1, 1), (3, 3), (0, 1), (1, 2), (0, 3)]] + [
    Intervals.points([0, 2]),
    Intervals.points([1, 3]),
]
RELATIONS = [
    Same(),
    *(Near(reach) for reach in range(SIZE + 1)),
    *(Blocks(width, SIZE) for width in range(1, SIZE + 2)),
    *(FromTo(a, b, may_stay) for a, b in product(SOME, repeat=2) for may_stay in (False, True)),
]


def pairs(relation):
    return {(a, b) for a in AXIS for b in AXIS if relation.allows(a, b)}


def members(found):
    return {p for low, high in found for p in range(low, high + 1)}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_sets_and_differences_are_those_of_the_pairs(relation):
    allowed = pairs(relation)
    for hidden, cover in product(SETS, repeat=2):
        here = {(a, b) for a, b in allowed if a in hidden and b in cover}
        assert members(relation.differences(hidden, cover)) == {b - a for a, b in here}
        assert members(hidden & relation.sources(cover)) == {a for a, _ in here}
        assert members(cover & relation.targets(hidden)) == {b for _, b in here}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("small", RELATIONS, ids=str)
def test_within_never_claims_too_much(small):
    for large in RELATIONS:
        if small.within(large, SIZE):
            assert pairs(small) <= pairs(large), large


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_pieces_meet_where_some_member_may_move(relation):
    pieces = [(low, high) for low in AXIS for high in range(low, SIZE)]
    found = relation.meets(pieces, pieces)
    allowed = pairs(relation)
    for i, (a, b) in enumerate(pieces):
        for j, (c, d) in enumerate(pieces):
            assert found[i, j] == any(a <= x <= b and c <= y <= d for x, y in allowed)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_corners_are_moves_among_which_every_linear_function_is_largest(relation):
    whole = [Intervals.of([part]) for part in [(0, 3), (0, 1), (1, 3), (2, 2)]]
    for hidden, cover in product(whole, repeat=2):
        here = {(a, b) for a, b in pairs(relation) if a in hidden and b in cover}
        found = relation.corners(hidden, cover)
        assert found <= here
        for x, y in product((-2, -1, 0, 1, 2), repeat=2):
            assert max((x * a + y * b for a, b in found), default=None) == max(
                (x * a + y * b for a, b in here), default=None
            )


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_sides_and_farthest_moves_are_those_of_the_pairs(relation):
    allowed = pairs(relation)
    moved = {(a, b) for a, b in allowed if a != b}
    for found, there in zip(
        relation.sides(SIZE),
        ({a for a, _ in allowed}, {b for _, b in allowed}, {a for a, _ in moved}, {b for _, b in moved}),
        strict=True,
    ):
        assert {place for place in AXIS if found[place]} == there
    full = Intervals.full(SIZE)
    assert relation.farthest(full, full) == max((abs(a - b) for a, b in allowed), default=0)
    assert relation.can_move or allowed == {(place, place) for place in AXIS}


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_no_move_leads_from_one_label_to_another(relation):
    allowed = pairs(relation)
    for starts in [None, *SETS]:
        for before in (np.arange(SIZE), np.array([0, 0, 2, 3])):
            labels = before.copy()
            relation.join(labels, starts)
            assert all(labels[a] == labels[b] for a, b in allowed if starts is None or a in starts)
            assert all(np.ptp(labels[before == label]) == 0 for label in before)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_moves_upwards_end_where_they_may(relation):
    for start, far in product(AXIS, range(SIZE)):
        end = relation.farthest_ends(np.array([start]), np.array([start + far]))[0]
        assert all(b <= end for a, b in pairs(relation) if a == start and a <= b <= start + far)


def test_item_moves_within():
    sets = [frozenset(), frozenset({0}), frozenset({1}), frozenset({0, 1})]
    moves = [ItemMoves(lose, gain) for lose, gain in product((False, True), repeat=2)]
    moves += [ItemMoves(False, False, (a, b)) for a, b in product(sets, repeat=2) if a != b]

    def allowed(m):
        if m.exactly is not None:
            return {m.exactly}
        return {(a, b) for a, b in product(sets, repeat=2) if (m.lose or a <= b) and (m.gain or b <= a)}

    for small, large in product(moves, repeat=2):
        if small.within(large):
            assert allowed(small) <= allowed(large), (small, large)


@pytest.mark.parametrize("width", [2, 3, 4])
def test_blocks_on_a_longer_axis(width):
    """Blocks in the middle of two intervals, next to cut ones: an axis of four is too short to have them."""
    size = 11
    relation = Blocks(width, size)
    spans = [Intervals.of([(low, high)]) for low in range(size) for high in range(low, size)]
    for hidden, cover in product(spans, repeat=2):
        slow = {b - a for a in members(hidden) for b in members(cover) if a // width == b // width}
        assert members(relation.differences(hidden, cover)) == slow
