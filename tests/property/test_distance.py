"""The distance between two records is that of a search through all records, and its chain is one of secret edges."""

import math
import pickle
import sys
from collections import deque
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from brute_force import every_record
from parameters import examples
from strategies import families, policies
from tacit.errors import PolicyError
from tacit.plan.questions import cumulative
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy import knowledge, secrets
from tacit.policy.attributes import Categories, Decimals, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.edges.shapes import Metric
from tacit.policy.policy import ABSENT, Policy


def by_search(policy, start):
    """How far every record is from one of them, by the definition alone."""
    everybody = [*every_record(policy.domain), ABSENT]
    found, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for there in everybody:
            if there not in found and there is not here and policy.has_edge(here, there):
                found[there] = found[here] + 1
                waiting.append(there)
    return found


def check(policy, start):
    slow = by_search(policy, start)
    for end in [*every_record(policy.domain), ABSENT]:
        quick = policy.distance(start, end)
        assert quick == slow.get(end, math.inf), (start, end)
        chain = list(quick.records())
        if end in slow:
            assert (chain[0], chain[-1], len(chain)) == (start, end, slow[end] + 1)
            assert all(policy.has_edge(a, b) for a, b in pairwise(chain)), chain
        else:
            assert chain == []


@given(st.data())
@examples(100)
def test_the_distance_is_that_of_a_search_through_all_records(data):
    policy = data.draw(policies(most=2, presences=("public", "public", "secret")))
    if data.draw(st.booleans()):
        more = data.draw(families(policy.domain))
        policy = Policy(
            policy.domain, policy.secrets | more, presence="secret" if policy.presence == "secret" else None
        )
    assume(policy.domain.size <= 60)
    records = every_record(policy.domain)
    check(policy, data.draw(st.sampled_from([*records, ABSENT])))


@st.composite
def long_lines(draw):
    """Policies on a long axis and a short one, where boxes grow many edges at once."""
    size, theta = draw(st.integers(40, 70)), draw(st.integers(1, 2))
    domain = Domain({"x": Integers(0, size - 1), "s": Categories(["a", "b"])})
    two = st.lists(st.integers(0, size - 1), min_size=2, max_size=2, unique=True)
    ends = [sorted(draw(two)) for _ in range(2)]
    options = [
        secrets.records(f"x >= {ends[0][0]} and x <= {ends[0][1]} and s == 'a'"),
        secrets.pairs([({"x": ends[1][0]}, {"x": ends[1][1]})]),
        secrets.pairs([({"x": ends[1][1], "s": "a"}, {"x": ends[1][1], "s": "b"})]),
        secrets.partition("x", blocks=[f"{ends[0][0]}..{ends[0][1]}"]),
        secrets.partition("x", width=draw(st.integers(3, 20))),
        secrets.attributes("s"),
        secrets.values({"s": ["a"]}),
        secrets.values({"x": [ends[0][0]], "s": ["b"]}),
    ]
    chosen = secrets.within(theta, "x")
    for more in draw(st.lists(st.sampled_from(options), max_size=3)):
        chosen = chosen | more
    return Policy(domain, chosen)


@given(st.data())
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_boxes_that_grow_many_edges_at_once_miss_nothing(data):
    policy = data.draw(long_lines())
    start = data.draw(st.sampled_from(every_record(policy.domain)))
    slow = by_search(policy, start)
    ends = data.draw(st.lists(st.sampled_from(every_record(policy.domain)), min_size=25, max_size=25))
    for end in ends:
        quick = policy.distance(start, end)
        assert quick == slow.get(end, math.inf), (start, end)
        assert all(policy.has_edge(a, b) for a, b in pairwise(quick.records()))


@pytest.mark.one_in(8)
@pytest.mark.parametrize("metric", ["l1", "l2", "l3", "l5", "linf"])
@pytest.mark.parametrize("theta", [1, 2, 2.5, 3])
def test_a_distance_that_two_axes_share(metric, theta):
    policy = Policy(Domain({"place": Grid(9, 8), "s": Flag()}), secrets.within(theta, "place", metric=metric))
    slow = by_search(policy, ((2, 6), True))
    for end in every_record(policy.domain):
        assert policy.distance(((2, 6), True), end) == slow.get(end, math.inf)


@pytest.mark.parametrize("metric", ["l1", "l2", "l4"])
def test_axes_of_different_spacing_share_a_distance(metric):
    domain = Domain({"x": Integers(0, 21, 3), "y": Decimals("0", "3", "0.5")})
    policy = Policy(domain, secrets.within(5, "x", "y", metric=metric))
    start = (3, 0.5)
    slow = by_search(policy, start)
    for end in every_record(policy.domain):
        assert policy.distance(start, end) == slow.get(end, math.inf)


def test_large_domains_are_not_gone_through():
    domain = Domain(
        {
            "salary": Integers(0, 4_000_000_000),
            "place": Grid(400, 300),
            "sex": Categories(["F", "M"]),
            "clicked": Items(41_270, at_most=3),
        }
    )
    chosen = secrets.within(5000, "salary") | secrets.within(5, "place", metric="l2") | secrets.attributes("clicked")
    policy = Policy(domain, chosen)
    x = {"salary": 0, "place": (0, 0), "sex": "F", "clicked": [1, 2, 3]}
    y = {"salary": 1_000_000_001, "place": (33, 37), "sex": "F", "clicked": [4, 5, 6]}
    assert policy.distance(x, y) == 200_001 + 10 + 1
    assert policy.distance(x, {**y, "sex": "M"}) == math.inf
    assert policy.distance({**x, "sex": "M"}, y) == math.inf
    sensitive = secrets.records("salary > 1000000 and sex == 'M'")
    more = Policy(domain, secrets.within(5000, "salary") | sensitive | secrets.attributes("clicked"))
    far = more.distance({**x, "sex": "M"}, y)
    assert far == 202  # until the salary is that of somebody about whom everything is secret
    assert far.path[-2] == {"salary": 1_005_000, "place": (0, 0), "sex": "M", "clicked": frozenset({1, 2, 3})}
    assert far.path[-1] == {**y, "clicked": frozenset({4, 5, 6})}


def test_a_distance_has_a_direction():
    policy = Policy(Domain({"d": Categories(["flu", "hiv"])}), secrets.values({"d": ["hiv"]}))
    assert (policy.distance("hiv", "flu"), policy.distance("flu", "hiv")) == (1, math.inf)
    assert policy.distance("flu", "flu") == 0
    assert policy.distance("flu", "flu").path == [{"d": "flu"}]


def test_nobody_is_a_record_too():
    domain = Domain({"d": Categories(["flu", "hiv", "cold"])})
    public = Policy(domain, secrets.everything())
    hidden = Policy(domain, secrets.pairs([("hiv", "flu")]), presence="secret")
    assert public.distance(None, "flu") == public.distance("flu", None) == math.inf
    assert hidden.distance(None, "flu") == hidden.distance("flu", None) == 1
    assert hidden.distance("flu", "cold").path == [{"d": "flu"}, None, {"d": "cold"}]


def test_whether_a_chain_keeps_what_is_known():
    domain = Domain({"age": Integers(0, 99), "sex": Categories(["F", "M"])})
    policy = Policy(domain, secrets.within(5, "age") | secrets.attributes("sex"), [knowledge.marginal("sex")])
    x = {"age": 10, "sex": "F"}
    assert policy.distance(x, {"age": 30, "sex": "F"}).keeps_known
    assert not policy.distance(x, {"age": 30, "sex": "M"}).keeps_known


def test_what_would_take_too_long_is_refused():
    names = [f"x{number}" for number in range(6)]
    domain = Domain({name: Integers(0, 999) for name in names})
    policy = Policy(domain, secrets.within(60, *names, metric="l2"))
    with pytest.raises(PolicyError, match="too far to look for"):
        policy.distance(dict.fromkeys(names, 0), {name: 100 + place for place, name in enumerate(names)})


def test_distances_are_copied_with_their_chains():
    policy = Policy(Domain({"age": Integers(0, 99)}), secrets.within(5, "age"))
    copied = pickle.loads(pickle.dumps(policy.distance(0, 12)))  # noqa: S301 - our own
    assert (copied, copied.path) == (3, policy.distance(0, 12).path)


@given(st.data())
@examples(60)
def test_graphs_of_listed_pairs(data):
    size, other = data.draw(st.integers(2, 12)), data.draw(st.sampled_from([None, Flag(), Integers(0, 3)]))
    domain = Domain({"v": Integers(0, size - 1)} | ({} if other is None else {"w": other}))
    records = every_record(domain)
    sides = st.sampled_from(
        [dict(zip(domain, record, strict=True)) for record in records] + [{"v": at} for at in range(size)]
    )
    edges = data.draw(st.lists(st.tuples(sides, sides), min_size=1, max_size=40))
    edges = [(a, b) for a, b in edges if a != {**a, **b} and b.keys() <= a.keys()]
    assume(edges)
    family = secrets.pairs(edges)
    if data.draw(st.booleans()):
        family |= data.draw(st.sampled_from([secrets.within(1, "v", where="v <= 3"), secrets.values({"v": [0]})]))
    policy = Policy(domain, family, presence=data.draw(st.sampled_from(["public", "secret"])))
    check(policy, data.draw(st.sampled_from(records)))
    listed = {tuple(tuple(sorted(side.items())) for side in (a, {**a, **b})) for a, b in edges}
    a, b = data.draw(st.tuples(st.sampled_from(records), st.sampled_from(records)))
    x, y = (dict(zip(domain, side, strict=True)) for side in (a, b))
    # the definition, word for word: some pair says where both begin and end, and the rest stays
    expected = any(
        all(x[name] == at for name, at in hidden)
        and all(y[name] == at for name, at in cover)
        and all(x[name] == y[name] for name in domain if name not in dict(hidden))
        for hidden, cover in listed
    )
    assert Policy(domain, secrets.pairs(edges)).has_edge(a, b) == expected


def test_a_graph_of_thousands_of_pairs_is_searched_and_described():
    nodes = 1000
    edges = [(a, b) for a, b in np.random.default_rng(5).integers(0, nodes, (2 * nodes, 2)).tolist() if a != b]
    policy = Policy(Domain({"v": Integers(0, nodes - 1)}), secrets.pairs([*edges, *((b, a) for a, b in edges)]))
    near = {at: set() for at in range(nodes)}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    found, waiting = {0: 0}, deque([0])
    while waiting:
        here = waiting.popleft()
        for there in near[here] - found.keys():
            found[there] = found[here] + 1
            waiting.append(there)
    # counted, not timed: a search that compares all with all would make millions of calls
    calls = 0

    def counted(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(counted)
    try:
        far = [policy.distance({"v": 0}, {"v": end}) for end in (1, nodes // 2, nodes - 1)]
        said = str(policy)
        step = largest_step(cumulative("v"), policy)
    finally:
        sys.setprofile(None)
    read = Policy.from_yaml(policy.to_yaml())
    assert far == [found.get(end, math.inf) for end in (1, nodes // 2, nodes - 1)]
    assert "listed pairs" in said
    assert read == policy
    assert policy.covers(read)
    assert step.l1 == max(abs(a - b) for a, b in edges)
    assert calls < 750 * nodes, calls


@given(
    power=st.integers(1, 64),
    theta=st.fractions(0, 60, max_denominator=12),
    others=st.lists(st.fractions(0, 20, max_denominator=12), max_size=3),
    spacing=st.fractions(Fraction(1, 12), 4, max_denominator=12),
)
def test_powers_are_compared_as_fractions(power, theta, others, spacing):
    metric = Metric(theta, f"l{power}")
    left = metric.steps_left(others, spacing)
    powers = [sum(d**power for d in [*others, far * spacing]) for far in (max(left, 0), left + 1)]
    assert (powers[0] <= theta**power) == (left >= 0)
    assert powers[1] > theta**power


def test_a_distance_on_the_border_is_within_and_one_beyond_is_not():
    parts = [Fraction(3), Fraction(4), Fraction(5)]  # 27 + 64 + 125 = 216
    assert Metric(Fraction(6), "l3").allows(parts)
    assert not Metric(6 - Fraction(1, 10**30), "l3").allows(parts)
