"""Every family, query, predicate, presence and kind of knowledge on one small domain, each exactly.

Random examples reach a given combination rarely; this grid reaches all of them: every family with each presence and
every family with each kind of knowledge every time, and all three in all combinations with the slow tests.
"""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

import tacit as tc
from brute_force import answers_of, edges_of, every_record, known_numbers
from parameters import every_two_together
from tacit.plan.choose import choose
from tacit.plan.question import resolve
from tacit.plan.questions import Cumulative, Marginals
from tacit.plan.sensitivity.moves import exact_attributes, exact_groups

DOMAIN = tc.Domain({"x": tc.Integers(0, 2), "s": tc.Categories(["m", "f"])})
FAMILIES = {
    "everything": tc.secrets.everything(),
    "attributes": tc.secrets.attributes("x"),
    "both attributes": tc.secrets.attributes("x", "s"),
    "partition": tc.secrets.partition("x", blocks=[[0, 1]]),
    "within": tc.secrets.within(1, "x"),
    "pairs": tc.secrets.pairs([({"x": 0, "s": "m"}, {"x": 2, "s": "f"})]),
    "one value": tc.secrets.values({"s": ["m"]}),
    "two values": tc.secrets.values({"x": [0], "s": ["m"]}),
    "records": tc.secrets.records("x == 0 and s == 'm'"),
    "union": tc.secrets.values({"s": ["m"]}) | tc.secrets.within(1, "x"),
}
PREDICATES = [None, "s == 'm'", "x >= 1", "x == 0 or s == 'f'"]
KNOWN = {
    "nothing": [],
    "size": [tc.known.size()],
    "marginal": [tc.known.marginal("s")],
    "count": [tc.known.count("x == 0")],
    "both": [tc.known.marginal("x"), tc.known.count("s == 'm'")],
}


def queries(where):
    return [
        tc.count(where) if where else tc.count(),
        tc.histogram("x", where=where),
        tc.histogram("s", where=where),
        tc.histogram("x", "s", where=where),
        tc.marginals(ways=1, where=where),
        tc.cumulative("x", where=where),
        tc.ranges("x", "all", where=where),
        tc.total("x", where=where),
    ]


def neighbours(policy, people=3):
    """Changes that minimal neighbours make, as pairs of data sets; single edges where nothing is coupled."""
    secret = set(edges_of(policy))
    if not any(known_numbers(policy, (a,)) != known_numbers(policy, (b,)) for a, b in secret):
        return [((a,), (b,)) for a, b in secret]
    values = every_record(DOMAIN) + ([tc.ABSENT] if policy.presence == "secret" else [])
    found = []
    # primitive sets of moves with at least one secret edge: a superset of the minimal neighbours
    moves = [(a, b) for a, b in product(values, repeat=2) if a != b]
    change = {(a, b): tuple(np.subtract(known_numbers(policy, (b,)), known_numbers(policy, (a,)))) for a, b in moves}
    zero = tuple([0] * len(next(iter(change.values()))))
    by_change: dict = {}
    for move in moves:
        by_change.setdefault(change[move], []).append(move)
    for first in secret:
        if change[first] == zero:
            found.append(((first[0],), (first[1],)))
            continue
        back = tuple(-c for c in change[first])
        found += [((first[0], a), (first[1], b)) for a, b in by_change.get(back, [])]
        if people > 2:
            for c, some in by_change.items():
                rest = tuple(z - f - s for z, f, s in zip(zero, change[first], c, strict=True))
                if c != zero and c != back and rest != zero and rest in by_change:
                    a, b = some[0], by_change[rest][0]
                    found.append(((first[0], a[0], b[0]), (first[1], a[1], b[1])))
    return found


VALUES = [*every_record(DOMAIN), tc.ABSENT]


def moved_people(pairs):
    """How many people each pair of data sets has more of each value in its cover, every such change once."""
    found = {tuple(cover.count(value) - hidden.count(value) for value in VALUES) for hidden, cover in pairs}
    return np.array(sorted(found), dtype=np.int64).reshape(-1, len(VALUES))


@cache
def adds(query):
    """What a person of each value adds to the answers."""
    return np.array([answers_of(query, DOMAIN, value) for value in VALUES])


def each_once(changes):
    return np.unique(changes, axis=0) if len(changes) else changes


@pytest.mark.one_in(16)
@pytest.mark.parametrize(("family", "presence", "known"), every_two_together(FAMILIES, ["public", "secret"], KNOWN))
def test_every_plan_hides_every_neighbour_and_uses_nothing_that_moves(family, presence, known):
    policy = tc.Policy(DOMAIN, FAMILIES[family], KNOWN[known], presence)
    moved = moved_people(neighbours(policy))
    for where in PREDICATES:
        for asked in queries(where):
            query = resolve(asked, DOMAIN)
            try:
                plan = choose(query, policy, 1)
            except tc.PlanError as refusal:
                assert "no proven bound" in str(refusal)  # noqa: PT017
                continue
            groups = query.exact_groups(policy)
            for change in each_once(moved @ adds(plan.base)):
                loss = Fraction(0)
                for law, entries in plan.laws():
                    steps = [int(x) for x in change[entries]]
                    loss += law.loss(steps) if law.is_joint else sum((law.loss(x) for x in steps if x), Fraction(0))
                assert loss <= 1, (str(query), change)
                assert plan.noise is not None or not change.any()
            for asked_change in each_once(moved @ adds(query)):
                if groups is not None:
                    start = 0
                    for group in groups:
                        assert not np.bincount(group, asked_change[start : start + len(group)]).any()
                        start += len(group)
            if plan.fixed is not None:
                assert not (moved @ adds(Cumulative(query.name, query.where)))[:, plan.fixed].any()
            if isinstance(query, Marginals) and where is None and presence == "public":
                for names in query.sets:
                    kept = exact_attributes(policy, names)
                    table = resolve(tc.histogram(*kept), DOMAIN) if kept else resolve(tc.count(), DOMAIN)
                    assert not (moved @ adds(table)).any()


def test_labels_join_across_families():
    """Two families that share a value make one group of what either of them connects."""
    domain = tc.Domain({"x": tc.Integers(0, 6)})
    policy = tc.Policy(
        domain,
        tc.secrets.partition("x", blocks=[[0, 1], [2, 3]]) | tc.secrets.pairs([(1, 2)]) | tc.secrets.pairs([(5, 6)]),
    )
    (groups,) = exact_groups(resolve(tc.histogram("x"), domain), policy)
    assert groups.tolist() == [0, 0, 0, 0, 1, 2, 2]
    policy = tc.Policy(domain, tc.secrets.pairs([(1, 4)]) | tc.secrets.partition("x", width=3))
    (groups,) = exact_groups(resolve(tc.histogram("x"), domain), policy)
    assert groups.tolist() == [0, 0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("known", KNOWN)
def test_a_policy_with_other_knowledge_or_less_presence_covers_nothing(known):
    plain = tc.Policy(DOMAIN, tc.secrets.everything())
    other = tc.Policy(DOMAIN, tc.secrets.everything(), KNOWN[known])
    assert plain.covers(other) == (known == "nothing")
    assert other.covers(plain) == (known == "nothing")
    assert not plain.covers(tc.Policy(DOMAIN, tc.secrets.attributes("x"), presence="secret"))
    assert tc.Policy(DOMAIN, tc.secrets.everything(), presence="secret").covers(plain)
