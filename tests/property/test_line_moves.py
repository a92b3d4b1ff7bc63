"""How people move on a line is what enumeration of all edges finds: nobody further, somebody as far."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from brute_force import answers_of, edges_of, every_record
from parameters import examples
from strategies import policies, predicates
from tacit.plan.questions import Count, Cumulative
from tacit.plan.sensitivity.moves import GridMoves, line_moves
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.knowledge import count as known_count
from tacit.policy.knowledge import size
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets import everything, partition, values, within


@examples(1000, 40)
@given(data=st.data(), policy=policies(presences=("public", "public", "secret")))
def test_moves_on_a_line_are_what_enumeration_of_all_edges_finds(data, policy):
    lines = [n for n in policy.domain if len(policy.domain.axes_of(n)) == 1 and policy.domain.axes_of(n)[0].ordered]
    assume(lines)
    name, where = data.draw(st.sampled_from(lines)), data.draw(st.none() | predicates(policy.domain))
    moves = line_moves(name, where, policy)
    assert moves is not None
    assert moves.sizes[0] == policy.domain[name].size
    records = [*every_record(policy.domain), ABSENT]
    counts = {one: answers_of(Cumulative(name, where), policy.domain, one) for one in records}
    picked = {one: int(answers_of(Count(where), policy.domain, one)[0]) for one in records}
    ends = np.cumsum(moves.segments[0]) - 1
    segment = np.searchsorted(ends, np.arange(moves.sizes[0]))
    farthest, may_enter_or_leave = 0, False
    for hidden, cover in edges_of(policy):
        moved = np.flatnonzero(counts[cover] - counts[hidden])
        if picked[hidden] != picked[cover]:
            may_enter_or_leave = True
        elif len(moved):
            farthest = max(farthest, len(moved))
            assert len(set(segment[moved].tolist())) == 1
            if not moves.may_enter_or_leave:
                assert not np.isin(moved, ends).any()
    assert (moves.reach, moves.may_enter_or_leave) == (farthest, may_enter_or_leave)
    if may_enter_or_leave:
        assert moves.segments[0] == (moves.sizes[0],)


def test_moves_of_lines_too_long_to_enumerate():
    domain = Domain({"x": Integers(0, 3_999_999)})
    assert line_moves("x", None, Policy(domain, within(500, "x"))) == GridMoves.on_line(
        (4_000_000,), 500, may_enter_or_leave=False
    )
    assert line_moves("x", None, Policy(domain, everything())) == GridMoves.on_line(
        (4_000_000,), 3_999_999, may_enter_or_leave=False
    )
    blocks = line_moves("x", None, Policy(domain, partition("x", width=1_000_000)))
    assert blocks == GridMoves.on_line((1_000_000,) * 4, 999_999, may_enter_or_leave=False)
    joining = line_moves("x", None, Policy(domain, within(500, "x"), presence="secret"))
    assert joining == GridMoves.on_line((4_000_000,), 500, may_enter_or_leave=True)


def test_knowledge_that_couples_people_has_no_moves_of_one():
    domain = Domain({"x": Integers(0, 9)})
    assert line_moves("x", None, Policy(domain, within(2, "x"), [size(7)])) is not None
    assert line_moves("x", None, Policy(domain, within(2, "x"), [known_count("x < 5")])) is None
    assert line_moves("x", None, Policy(domain, values({"x": [3]}), person="id", per_person=2)) is None
