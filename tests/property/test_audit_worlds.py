"""The exact audit against definitions that are written down here once more, in the plainest way.

Records, edges, answers and known numbers below use nothing of the package; losses are read off the probabilities of
outputs, one output at a time.
"""

import math
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from line_laws import norm
from parameters import every_two_together, examples
from strategies import facts, linear_queries, policies
from tacit.audit import worlds
from tacit.audit.exact_audit import plan_loss
from tacit.audit.worlds import check_neighbours
from tacit.noise.cube import Cube
from tacit.noise.line.law import LineNoise
from tacit.noise.two_scale import GroupedNoise
from tacit.plan.choose import choose
from tacit.plan.questions import Count, Cumulative, Marginals, Ranges, Total

DOMAIN = tc.Domain({"x": tc.Integers(0, 2), "s": tc.Categories(["m", "f"])})
RECORDS = [(x, s) for x in (0, 1, 2) for s in "mf"]
NOBODY = "nobody"


def sensitive_values(listed):
    """The edges of `values`: only attributes whose value is listed may change."""

    def edge(a, b):
        return a != b and all(a[i] == b[i] or a[i] in listed[i] for i in (0, 1))

    return edge


FAMILIES = {
    "everything": (tc.secrets.everything(), lambda a, b: a != b),
    "one attribute": (tc.secrets.attributes("x"), lambda a, b: a[0] != b[0] and a[1] == b[1]),
    "two attributes": (tc.secrets.attributes("x", "s"), lambda a, b: (a[0] != b[0]) + (a[1] != b[1]) == 1),
    "partition": (tc.secrets.partition("x", blocks=[[0, 1]]), lambda a, b: {a[0], b[0]} == {0, 1} and a[1] == b[1]),
    "within": (tc.secrets.within(1, "x"), lambda a, b: abs(a[0] - b[0]) == 1 and a[1] == b[1]),
    "pairs": (
        tc.secrets.pairs([({"x": 0, "s": "m"}, {"x": 2, "s": "f"})]),
        lambda a, b: (a, b) == ((0, "m"), (2, "f")),
    ),
    "one value": (tc.secrets.values({"s": ["m"]}), sensitive_values([(), ("m",)])),
    "two values": (tc.secrets.values({"x": [0], "s": ["m"]}), sensitive_values([(0,), ("m",)])),
    "records": (tc.secrets.records("x == 0 and s == 'm'"), lambda a, b: a == (0, "m") != b),
    "union": (
        tc.secrets.values({"s": ["m"]}) | tc.secrets.within(1, "x"),
        lambda a, b: sensitive_values([(), ("m",)])(a, b) or (abs(a[0] - b[0]) == 1 and a[1] == b[1]),
    ),
}
KNOWN = {
    "nothing": ([], lambda r: ()),
    "size": ([tc.known.size()], lambda r: (1,)),
    "marginal": ([tc.known.marginal("s")], lambda r: (r[1] == "m", r[1] == "f")),
    "count": ([tc.known.count("x == 0")], lambda r: (r[0] == 0,)),
    "marginal of three": ([tc.known.marginal("x")], lambda r: (r[0] == 0, r[0] == 1, r[0] == 2)),
}
PREDICATES = {
    None: lambda r: True,
    "s == 'm'": lambda r: r[1] == "m",
    "x == 0 or s == 'f'": lambda r: r[0] == 0 or r[1] == "f",
}


def questions(where):
    return [
        tc.count(where) if where else tc.count(),
        tc.histogram("s", where=where),
        tc.histogram("x", where=where),
        tc.histogram("x", "s", where=where),
        tc.marginals(ways=1, where=where),
        tc.cumulative("x", where=where),
        tc.ranges("x", [(0, 1), (1, 2)], where=where),
        tc.total("x", where=where),
    ]


def answers(query, person, picked):
    """What one person adds to the answers."""
    if person == NOBODY:
        person, picked = (0, "m"), lambda r: False
    x, s = person
    match query:
        case Count():
            one = [1]
        case Total():
            one = [x]
        case Cumulative():
            one = [x <= 0, x <= 1, x <= 2]
        case Ranges():
            one = [low <= x <= high for low, high in query.ranges]
        case Marginals():
            cells = {("x",): [x == i for i in range(3)], ("s",): [s == "m", s == "f"], ("x", "s"): None}
            both = [(i, t) == person for i, t in product(range(3), "mf")]
            one = [cell for names in query.sets for cell in (cells[names] or both)]
    return np.array([int(a) * int(picked(person)) for a in one])


def edges(family, presence):
    edge = FAMILIES[family][1]
    found = [(a, b) for a, b in product(RECORDS, repeat=2) if edge(a, b)]
    if presence == "secret":
        found += [(r, NOBODY) for r in RECORDS] + [(NOBODY, r) for r in RECORDS]
    return found


def neighbours(family, presence, known, people):
    """Moves of up to so many people, one of them along an edge, that keep what is known, and no fewer of which do."""
    number = KNOWN[known][1]

    def numbers(person):
        return [int(n) for n in number(person)] if person != NOBODY else [0] * len(number(RECORDS[0]))

    secret = set(edges(family, presence))
    values = RECORDS + ([NOBODY] if presence == "secret" else [])
    moves = [(a, b) for a, b in product(values, repeat=2) if a != b]
    change = {(a, b): tuple(y - x for x, y in zip(numbers(a), numbers(b), strict=True)) for a, b in moves}
    by_change = {}
    for move in moves:
        by_change.setdefault(change[move], []).append(move)

    def together(some):
        return tuple(sum(parts) for parts in zip(*(change[move] for move in some), strict=True))

    def agree(some):
        return not any(together(some))

    for first in secret:
        if agree((first,)):
            yield (first,)
        for others in range(people - 1):
            for rest in product(moves, repeat=others):
                missing = tuple(-moved for moved in together((first, *rest)))
                for last in by_change.get(missing, ()):  # those with which all of them agree
                    found = (first, *rest, last)
                    smaller = (part for size in range(1, len(found)) for part in combinations(found, size))
                    if not any(secret & set(part) and agree(part) for part in smaller):
                        yield found


@cache
def grid(dimensions):
    return np.array(list(product(range(-2, 3), repeat=dimensions)))


def worst_ratio(law, change):
    """The largest log ratio of probabilities over outputs near the true answers, at hidden and at cover."""
    if isinstance(law, Cube):
        outputs = grid(len(change))
        with np.errstate(invalid="ignore"):
            ratio = law.log_weight(outputs) - law.log_weight(outputs - change)
        here = law.log_weight(outputs) > -math.inf
        return float(ratio[here].max())
    if isinstance(law, LineNoise):  # a norm: no output tells more than the step itself
        exact = (np.cumsum(law.segments) - 1)[: None if law.end_rate is None else -1]
        return math.inf if change[exact].any() else float(norm(law, change[np.newaxis])[0])
    if isinstance(law, GroupedNoise):
        scales = np.repeat([float(scale) for scale in law.scales], law.sizes)[change != 0]
        return float((np.abs(change[change != 0]) / scales).sum()) if scales.all() else math.inf
    worst = 0.0
    for one in change.tolist():  # independent: the worst output has the worst entry everywhere
        outputs = np.arange(-12, 13)
        here, there = law.pmf(outputs), law.pmf(outputs - one)
        with np.errstate(divide="ignore"):
            worst += float((np.log(here[here > 0]) - np.log(there[here > 0])).max())
    return worst


def brute_force(plan, sets_of_moves, picked):
    seen, adds = {}, cache(lambda person: answers(plan.base, person, picked))
    for moves in sets_of_moves:
        change = sum(adds(b) - adds(a) for a, b in moves)
        key = tuple(change.tolist())
        if key not in seen:
            seen[key] = sum(worst_ratio(law, change[entries]) for law, entries in plan.laws()) if any(key) else 0.0
            assert plan.noise is not None or not any(key)
    return max(seen.values(), default=0.0)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("presence", ["public", "secret"])
@pytest.mark.parametrize("family", FAMILIES)
def test_without_knowledge_the_audit_finds_the_worst_loss(family, presence):
    policy = tc.Policy(DOMAIN, FAMILIES[family][0], presence=presence)
    pairs = [(edge,) for edge in edges(family, presence)]
    for where, picked in PREDICATES.items():
        for query in questions(where):
            plan = choose(query, policy, 1)
            found = tc.audit.exact(query, policy, 1)
            true = brute_force(plan, pairs, picked)
            assert found.complete
            assert found.neighbours == len(pairs)
            assert (found.forward.low, found.forward.high) == pytest.approx((true, true), abs=1e-12), str(query)
            assert found.forward == pytest.approx(0 if plan.is_exact else 1)  # no additive mechanism wastes any of it


@pytest.mark.one_in(16)
@pytest.mark.parametrize(
    ("family", "presence", "known"), every_two_together(FAMILIES, ["public", "secret"], list(KNOWN)[1:])
)
def test_with_knowledge_the_truth_is_between_the_two_ends(family, presence, known):
    policy = tc.Policy(DOMAIN, FAMILIES[family][0], KNOWN[known][0], presence)
    pairs = list(neighbours(family, presence, known, people=2))
    for where, picked in list(PREDICATES.items())[::2]:
        for query in questions(where)[::2] if where else questions(where)[3::2]:
            plan = choose(query, policy, 1)
            found, true = plan_loss(plan), brute_force(plan, pairs, picked)
            assert true - 1e-12 <= found.forward.low, str(query)  # every pair of moves was tried, and some of three
            assert found.forward.low <= found.forward.high <= 1, str(query)
            if found.complete:
                assert found.forward.high == pytest.approx(true, abs=1e-12), str(query)


@pytest.mark.parametrize("presence", ["public", "secret"])
@pytest.mark.parametrize("family", ["pairs", "records", "within"])
def test_three_people_may_have_to_move(family, presence):
    """What is known is a ring: whoever leaves a value is replaced by one whom another replaces."""
    policy = tc.Policy(DOMAIN, FAMILIES[family][0], KNOWN["marginal of three"][0], presence)
    two, three = (list(neighbours(family, presence, "marginal of three", people)) for people in (2, 3))
    query = tc.histogram("x", "s")
    plan, found = choose(query, policy, 1), tc.audit.exact(query, policy, 1)
    true = brute_force(plan, three, PREDICATES[None])
    assert found.forward.low == pytest.approx(true) == pytest.approx(1)
    assert brute_force(plan, two, PREDICATES[None]) < 0.7
    assert not found.complete


ITEMS = tc.Domain({"c": tc.Items(2)})
BASKETS = [frozenset(), frozenset({0}), frozenset({1}), frozenset({0, 1})]
ITEM_FAMILIES = {
    "falling": (tc.secrets.values({"c": [1]}), lambda a, b: b < a),
    "rising": (tc.secrets.values({"c": [0]}), lambda a, b: b > a),
    "both": (tc.secrets.attributes("c"), lambda a, b: a != b),
}


@pytest.mark.parametrize("presence", ["public", "secret"])
@pytest.mark.parametrize("family", ITEM_FAMILIES)
def test_sets_of_items(family, presence):
    secrets, edge = ITEM_FAMILIES[family]
    policy = tc.Policy(ITEMS, secrets, presence=presence)
    moves = [(a, b) for a, b in product(BASKETS, repeat=2) if edge(a, b)]
    if presence == "secret":
        moves += [(a, b) for basket in BASKETS for a, b in ((basket, frozenset()), (frozenset(), basket))]
    for query, said in (
        (tc.histogram("c"), lambda basket: [0 in basket, 1 in basket]),
        (tc.count("c.has(1)"), lambda basket: [1 in basket]),
        (tc.histogram("c", where="c.has(0)"), lambda basket: [0 in basket, 0 in basket and 1 in basket]),
    ):
        plan, found = choose(query, policy, 1), tc.audit.exact(query, policy, 1)
        changes = [np.array(said(b), int) - np.array(said(a), int) for a, b in moves]
        true = max(sum(worst_ratio(law, change[entries]) for law, entries in plan.laws()) for change in changes)
        back = max(sum(worst_ratio(law, -change[entries]) for law, entries in plan.laws()) for change in changes)
        assert (found.forward.low, found.forward.high) == pytest.approx((true, true), abs=1e-12), str(query)
        assert found.backward == pytest.approx(back, abs=1e-12), str(query)


def attained(plan, witness):
    """The log likelihood ratio of the witness' output."""
    domain = plan.policy.domain
    truths = [
        sum(worlds.added(plan.base, domain, r if r is tc.ABSENT else domain.record(r)) for r in people)
        for people in (witness.hidden, witness.cover)
    ]
    output = np.array(witness.output)
    total = 0.0
    for law, entries in plan.laws():
        away = [(output - truth)[entries] for truth in truths]
        if isinstance(law, Cube):
            total += float(law.log_weight(away[0]) - law.log_weight(away[1]))
        elif isinstance(law, LineNoise):
            total += float(norm(law, away[1][np.newaxis])[0] - norm(law, away[0][np.newaxis])[0])
        else:
            with np.errstate(divide="ignore"):
                total += float(np.sum(np.log(law.pmf(away[0])) - np.log(law.pmf(away[1]))))
    return total


@pytest.mark.one_in(16)
@pytest.mark.parametrize(("family", "presence", "known"), every_two_together(FAMILIES, ["public", "secret"], KNOWN))
def test_the_witness_is_an_edge_and_attains_the_loss(family, presence, known):
    policy = tc.Policy(DOMAIN, FAMILIES[family][0], KNOWN[known][0], presence)
    for query in questions("s == 'm'")[::3]:
        plan, found = choose(query, policy, 1), tc.audit.exact(query, policy, 1)
        if found.witness is None:  # no edge at all can be walked: three others would have to move
            assert found.neighbours == 0
            continue
        check_neighbours(policy, found.witness.hidden, found.witness.cover)
        if not plan.is_exact:
            assert attained(plan, found.witness) == pytest.approx(found.forward.low, abs=1e-9), str(query)


TWO = tc.Domain({"x": tc.Integers(0, 1), "s": tc.Categories(["m", "f"])})


@pytest.mark.one_in(16)
@pytest.mark.parametrize(
    ("family", "presence", "known"),
    every_two_together(
        ["everything", "one attribute", "two attributes", "one value", "records"], ["public", "secret"], KNOWN
    ),
)
def test_exactly_the_neighbours_are_accepted(family, presence, known):
    """All pairs of data sets of two people; with secret presence one of them may be missing on either side."""
    policy = tc.Policy(TWO, FAMILIES[family][0], KNOWN[known][0], presence)
    four = [r for r in RECORDS if r[0] < 2]
    values = four + ([NOBODY] if presence == "secret" else [])
    right = {in_any_order(moves) for moves in neighbours(family, presence, known, people=2)}
    accepted = 0
    for hidden, cover in product(product(values, repeat=2), repeat=2):
        moves = [(a, b) for a, b in zip(hidden, cover, strict=True) if a != b]
        refusal = refused(policy, *([tc.ABSENT if r == NOBODY else r for r in people] for people in (hidden, cover)))
        assert (refusal is None) == (in_any_order(moves) in right), (hidden, cover, refusal)
        accepted += refusal is None
    assert accepted


def in_any_order(moves):
    return tuple(sorted(moves, key=repr))


def refused(policy, hidden, cover):
    """The refusal of two data sets, or None."""
    try:
        check_neighbours(policy, hidden, cover)
    except tc.PolicyError as refusal:
        return refusal if refusal.key == "cover" and refusal.fix else "without a reason"
    return None


@given(policies(largest=3), st.data())
@examples(100)
def test_no_plan_loses_more_than_epsilon(policy, data):
    known = data.draw(st.lists(facts(policy.domain), max_size=2))
    policy = tc.Policy(policy.domain, policy.secrets, known, policy.presence)
    try:
        found = tc.audit.exact(data.draw(linear_queries(policy.domain)), policy, 1)
    except tc.PlanError as refusal:
        assert "no proven bound" in str(refusal)  # noqa: PT017
        return
    assert 0 <= found.forward.low <= found.forward.high <= 1
    assert found.backward.low <= found.backward.high


@given(policies(), st.data())
@examples(100)
def test_a_few_telling_records_never_show_more_than_all_of_them(policy, data):
    """As in a large domain, of which only a few records are tried."""
    plan = choose(data.draw(linear_queries(policy.domain)), policy, 1)
    all_of_them = plan_loss(plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worlds, "MOST_RECORDS", 4)
        some = plan_loss(plan)
    assert all_of_them.complete
    assert some.forward.low <= all_of_them.forward.low
    assert all_of_them.forward.high <= some.forward.high <= 1


LARGE = tc.Domain(
    {
        "age": tc.Integers(0, 120),
        "income": tc.Integers(0, 10**6, 100),
        "place": tc.Grid(300, 400),
        "disease": tc.Categories([f"d{i}" for i in range(50)]),
        "clicked": tc.Items(2_000, at_most=20),
    }
)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("query", "secrets"),
    [
        (tc.cumulative("income"), tc.secrets.within(5_000, "income")),
        (tc.histogram("age", "disease"), tc.secrets.attributes("disease")),
        (tc.histogram("disease", where="age >= 65"), tc.secrets.values({"disease": ["d7", "d31"]})),
        (tc.total("income", where="age < 18"), tc.secrets.within(700, "income")),
        (tc.ranges("age", "all"), tc.secrets.within(3, "age")),
        (tc.histogram("place"), tc.secrets.partition("place", width=[10, 20])),
        (tc.histogram("clicked"), tc.secrets.values({"clicked": [1]})),
        (tc.count("clicked.has(17) and age > 40"), tc.secrets.attributes("clicked")),
        (tc.count("income < 20000"), tc.secrets.everything()),
        (tc.marginals("age", "disease", ways=1), tc.secrets.everything()),
        (tc.count("disease == 'd3'"), tc.secrets.records("disease == 'd3' and age < 30")),
    ],
)
def test_large_domains(query, secrets):
    found = tc.audit.exact(query, tc.Policy(LARGE, secrets), 1)
    assert not found.complete
    assert found.forward.low <= found.forward.high <= 1
    assert found.forward.low == 1  # the few records that are tried show all of it
