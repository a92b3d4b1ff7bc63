"""How many people move together: minimal sets, people who are alike, groups; each against enumeration of its own."""

import math
import random
from collections import Counter
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np
import pytest

import tacit as tc
from brute_force import answers_of, assert_never_above, edges_of, every_record, known_numbers, largest
from tacit.errors import PlanError
from tacit.plan.sensitivity import coupling
from tacit.plan.sensitivity.known_cells import (
    KnownTable,
    changed_tables,
    decomposable,
    known_tables,
    most_in_a_set,
    some_in_a_set,
    together,
)
from tacit.plan.sensitivity.steps import largest_step

COUNT, MARGINAL = tc.known.count, tc.known.marginal


def grid(m, k, **more):
    return tc.Domain({"a": tc.Integers(0, m - 1), "b": tc.Integers(0, k - 1), **more})


def alike(domain, known, secret=None, presence=None):
    secrets = tc.secrets.everything() if secret is None else secret
    return tc.Policy(domain, secrets, known, presence, adversary="alike")


# ---- what is known, as tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "presence", "cells"),
    [
        ([MARGINAL("a")], "public", [4]),
        ([MARGINAL("a")], "secret", [5]),
        ([MARGINAL("a"), MARGINAL("b"), MARGINAL("a", "b"), COUNT("a < 2")], "public", [16]),
        ([COUNT("a == 0"), COUNT("a == 1")], "public", [3]),
        ([COUNT("a < 1"), COUNT("a < 2"), COUNT("a < 3")], "public", [4]),
        ([COUNT("a < 2"), COUNT("a >= 2")], "public", [2]),
        ([COUNT("a < 2"), COUNT("a >= 2"), tc.known.size()], "secret", [3]),
        # sums of neighbours: the first and the third, the second
        ([COUNT("a in [0, 1]"), COUNT("a in [1, 2]"), COUNT("a in [2, 3]")], "public", [2, 2]),
        ([COUNT("a < 1"), COUNT("b < 1"), COUNT("a < 2")], "public", [3, 2]),
        ([COUNT("a < 1"), COUNT("b < 1"), MARGINAL("c")], "public", [2, 2, 2]),
    ],
)
def test_facts_are_few_tables(known, presence, cells):
    policy = alike(grid(4, 4, c=tc.Flag()), known, presence=presence)
    assert sorted(table.cells for table in known_tables(policy)) == sorted(cells)


# ---- minimal sets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(2, 2), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_the_largest_minimal_set_is_what_a_complete_search_finds(monkeypatch, sizes):
    monkeypatch.setattr(coupling, "MOST_CHANGES", 40)
    monkeypatch.setattr(coupling, "MOST_SEARCH", 10**7)
    signatures = [tuple(int(v == x) for v, m in zip(one, sizes, strict=True) for x in range(m)) for one in
                  product(*map(range, sizes))]  # fmt: skip
    found = coupling.longest_primitive(coupling._changes(signatures))
    assert found == most_in_a_set([KnownTable((MARGINAL(str(at)),), m) for at, m in enumerate(sizes)])


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_minimal_sets_of_two_tables_double_with_their_cells(levels):
    """Moves (p_i, q_i) -> (p_i+1, g) and (p_0, g) -> (p_i+1, q_i) between cells p, q and g, 2^i times each."""
    m, k, ground = levels + 1, levels + 2, levels + 1
    p = [*range(m), 0]
    moves = [
        move for i in range(m) for move in (((p[i], i), (p[i + 1], ground), 2**i), ((0, ground), (p[i + 1], i), 2**i))
    ]

    def change(hidden, cover):
        found = [0] * (m + k)
        for (a, b), by in ((hidden, -1), (cover, 1)):
            found[a] += by
            found[m + b] += by
        return np.array(found)

    changes = np.array([change(hidden, cover) for hidden, cover, _ in moves])
    many = np.array([times for _, _, times in moves])
    chosen = np.array(list(product(*(range(times + 1) for times in many))))
    balanced = chosen[~(chosen @ changes).any(axis=1)]
    assert sorted(balanced.sum(axis=1)) == [0, many.sum()]  # no part of the set keeps both tables
    last = next((hidden, cover) for hidden, cover, _ in moves if hidden[0] == cover[0])  # a secret of the larger table
    policy = tc.Policy(grid(m, k), tc.secrets.attributes("b"), [MARGINAL("a"), MARGINAL("b")])
    tables = known_tables(policy)
    assert changed_tables(tables, policy, *last) == [1]
    assert many.sum() == some_in_a_set(policy, tables, [1]) == 2 ** (levels + 2) - 2


def test_a_refusal_says_how_many_people_must_move_together():
    policy = tc.Policy(grid(9, 7), tc.secrets.attributes("a"), [MARGINAL("a"), MARGINAL("b")])
    with pytest.raises(PlanError, match="there are sets of 254 people, or larger ones, who must move together"):
        largest_step(tc.histogram("a", "b"), policy)
    count = tc.Policy(grid(9, 7), tc.secrets.attributes("a"), [MARGINAL("a"), COUNT("b == 0")])
    assert largest_step(tc.histogram("a", "b"), count).l1 == 2 * 9 * 17


@pytest.mark.parametrize(("secret", "step"), [("age", 34), ("work", 32), (None, 64)])
def test_two_marginals_of_adult_for_people_who_are_alike(secret, step):
    domain = tc.Domain({"age": tc.Integers(17, 90), "work": tc.Integers(1, 16), "rich": tc.Flag()})
    secrets = tc.secrets.everything() if secret is None else tc.secrets.attributes(secret)
    known, query = [MARGINAL("age"), MARGINAL("work")], tc.histogram("age", "work", "rich")
    assert largest_step(query, alike(domain, known, secrets)).l1 == step
    sized = tc.Policy(domain, secrets, [*known, tc.known.size(48_842)])
    assert largest_step(query, sized).l1 == 97_684


# ---- people who are alike: the proof, step by step ------------------------------------------------------------------


def coupled(rng, m, k, others):
    """One graph of the proof: colourings, all pairings of each, and what exchanging colours on the trails leads to."""
    edges = [(rng.randrange(m), rng.randrange(k)) for _ in range(2 * others)]
    x, y = ((rng.randrange(m), rng.randrange(k)) for _ in range(2))

    def ends(some):
        return Counter(end for r, c in some for end in (("r", r), ("c", c)))

    degrees, shift = ends(edges), ends([y])
    shift.subtract(ends([x]))
    wanted = {node: (degrees[node] + shift[node]) / 2 for node in {*degrees, *shift}}  # of the first colour
    if x == y or any(half < 0 or half % 1 for half in wanted.values()):
        return None
    everything = frozenset(range(2 * others))
    colourings = [
        frozenset(some)
        for some in combinations(everything, others)
        if (found := ends([edges[at] for at in some])) is not None and all(found[v] == wanted[v] for v in wanted)
    ]
    pairings = math.prod(math.factorial(int(max(half, degrees[v] - half))) for v, half in wanted.items())
    if len(colourings) < 2 or pairings * len(colourings) > 20_000:
        return None
    reached, most = Counter(), 0
    for first in colourings:
        for mates, loose in all_pairings(edges, first, everything - first, wanted):
            path = set()
            for node, edge in loose:
                if (node[0] == "r") == (edge not in first):
                    path |= loop_erased(edges, mates, node, edge)
            second = (first - path) | (path - first)
            reached[everything - second] += 1
            most = max(most, 1 + len(path - first))
    changed = [at for at in (0, 1) if x[at] != y[at]]
    return reached, colourings, most, changed


def all_pairings(edges, first, second, wanted):
    """Every way to pair, at every node, edges of the two colours; those that are left over are loose."""
    choices = []
    for node in wanted:
        at = 0 if node[0] == "r" else 1
        here = [[edge for edge in some if edges[edge][at] == node[1]] for some in (first, second)]
        few, many = sorted(here, key=len)
        choices.append([(node, order[: len(few)], few, order[len(few) :]) for order in permutations(many)])
    for chosen in product(*choices):
        mates = {}
        for node, some, others, _ in chosen:
            for a, b in zip(some, others, strict=True):
                mates[node, a], mates[node, b] = b, a
        yield mates, [(node, edge) for node, _, _, left in chosen for edge in left]


def loop_erased(edges, mates, node, edge):
    """The trail from a loose edge, without its loops."""
    nodes, path = [node], []
    while edge is not None:
        row, column = edges[edge]
        node = ("c", column) if node[0] == "r" else ("r", row)
        if node in nodes:
            nodes = nodes[: nodes.index(node) + 1]
            path = path[: len(nodes) - 1]
        else:
            nodes.append(node)
            path.append(edge)
        edge = mates.get((node, edge))
    return set(path)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_exchanging_colours_leads_to_the_right_law_and_moves_few(seed):
    rng, done = random.Random(seed), Counter()  # noqa: S311 - of a test
    for _ in range(400 if seed == 1 else 6000):
        m, k = rng.choice([(2, 2), (2, 3), (3, 2), (3, 3)])
        found = coupled(rng, m, k, rng.choice([3, 4]))
        if found is None:
            continue
        reached, colourings, most, changed = found
        assert set(reached) == set(colourings)
        assert len(set(reached.values())) == 1  # uniform, exactly
        policy = alike(grid(m, k), [MARGINAL("a"), MARGINAL("b")])
        assert most <= together(policy, known_tables(policy), changed)
        done[m, k, len(changed)] += 1
    assert sum(done.values()) >= 15


# ---- people who are alike: odds -------------------------------------------------------------------------------------


def odds(policy, people, law, step, hidden, cover):
    """The largest change of the odds of one person, by all outputs of geometric noise of rate 1 / step in every cell.

    The others are `people - 1` independent draws of one law (weights of records). Nothing of the package's own but what
    a fact counts.
    """
    records = list(law)
    seen = [one for one in every_record(policy.domain) if one in {*records, hidden, cover}]
    by_known = {}
    for others in combinations_with_replacement(records, people - 1):
        counts = Counter(others)
        weight = math.factorial(people - 1) * math.prod(law[r] ** n / math.factorial(n) for r, n in counts.items())
        for side in (hidden, cover):
            world = (*others, side)
            histogram = [world.count(one) for one in seen]
            by_known.setdefault(known_numbers(policy, world), {}).setdefault(side, []).append((weight, histogram))
    outputs = np.array(list(product(range(people + 1), repeat=len(seen))))
    worst = 0.0
    for sides in by_known.values():
        if len(sides) < 2:
            continue
        chances = []
        for side in (hidden, cover):
            weights = np.array([weight for weight, _ in sides[side]])
            far = np.abs(outputs[:, None, :] - np.array([h for _, h in sides[side]])[None]).sum(2)
            chances.append(np.exp(-far / float(step)) @ (weights / weights.sum()))
        worst = max(worst, float(np.log(chances[0] / chances[1]).max()))
    return worst


KNOWN_ALIKE = [
    [MARGINAL("a")],
    [MARGINAL("a"), MARGINAL("b")],
    [MARGINAL("a"), COUNT("b == 0")],
    [COUNT("a == 0"), COUNT("b == 0")],
    [COUNT("a == 0 or b == 0"), MARGINAL("a")],
    [COUNT("a > 0 or b > 0"), COUNT("a == 0 and b < 2 or a == 1")],
]


def random_case(rng):
    shared = rng.random() < 0.25
    if shared:
        domain = tc.Domain({"a": tc.Integers(0, 1), "s": tc.Flag(), "b": tc.Integers(0, 1)})
        known = [MARGINAL("a", "s"), MARGINAL("s", "b")]
    else:
        more = rng.choice([{}, {"s": tc.Flag()}])
        domain, known = grid(*rng.choice([(2, 2), (2, 3), (3, 2), (3, 3)]), **more), rng.choice(KNOWN_ALIKE)
    secret = rng.choice([tc.secrets.everything(), tc.secrets.attributes("a"), tc.secrets.attributes("b")])
    presence = rng.choice(["public", "public", "secret"])
    policy = alike(domain, known, secret, presence)
    records = every_record(domain) + ([tc.ABSENT] if presence == "secret" else [])
    kept = rng.sample(records, rng.randint(2, min(5, len(records))))
    law = {record: math.exp(-rng.choice([0, 2, 6]) * rng.random()) for record in kept}
    return policy, law, *rng.choice(edges_of(policy))


def most_odds(cases, seed):
    """The largest loss over many cases, as a share of what is promised; and how many of them knew of both ends."""
    rng, worst, told = random.Random(seed), 0.0, 0  # noqa: S311 - of a test
    while told < cases:
        policy, law, hidden, cover = random_case(rng)
        if not changed_tables(known_tables(policy), policy, hidden, cover):
            continue
        step = largest_step(tc.histogram(*policy.domain), policy).l1
        if step == 0:
            continue  # what is known fixes the histogram
        loss = odds(policy, rng.choice([3, 4]), law, step, hidden, cover)
        assert loss <= 1 + 1e-9, (policy.document(), law, hidden, cover)
        told += loss > 0
        worst = max(worst, loss)
    return worst


def test_odds_of_people_who_are_alike_change_no_more_than_is_promised():
    assert 0.5 < most_odds(25, seed=3) <= 1 + 1e-9


@pytest.mark.slow
def test_odds_of_people_who_are_alike_in_500_cases():
    assert 0.5 < most_odds(500, seed=4) <= 1 + 1e-9


@pytest.mark.parametrize(("m", "k"), [(2, 2), (2, 3), (3, 2), (5, 2)])
def test_a_law_on_one_path_loses_all_that_is_promised(m, k):
    """Others are on a path through the cells, so that all of them must move; one mover less would be too few."""
    policy = alike(grid(m, k, s=tc.Integers(0, 2)), [MARGINAL("a"), MARGINAL("b")], tc.secrets.attributes("a"))
    step = largest_step(tc.histogram("a", "b", "s"), policy).l1
    far = min(m - 1, k)
    assert step == 2 * (1 + far)
    law = {(at + side, at, side): 1.0 for at in range(far) for side in (0, 1)}
    ends = (0, 0, 2), (far, 0, 2)
    assert 1 - 1e-9 < odds(policy, far + 1, law, step, *ends) <= 1 + 1e-9
    assert odds(policy, far + 1, law, step - 2, *ends) > 1 + 1e-3  # planted: noise for one mover less


# ---- steps, and audits, over all small data sets --------------------------------------------------------------------


def step_by_pairs(query, policy, people):
    """The largest step over all data sets that agree on what is known, where one person moves along a secret edge."""
    values, tables, secret = every_record(policy.domain), known_tables(policy), set(edges_of(policy))
    if policy.absences:
        values.append(tc.ABSENT)
    most = {edge: together(policy, tables, changed_tables(tables, policy, *edge)) for edge in secret}
    numbers = {value: np.array(known_numbers(policy, (value,))) for value in values}
    adds = {value: answers_of(query, policy.domain, value) for value in values}
    by_move = [(a, b, numbers[b] - numbers[a], adds[b] - adds[a]) for a, b in product(values, repeat=2) if a != b]
    changes = []
    for (a, b), c in most.items():
        start = numbers[b] - numbers[a], adds[b] - adds[a]
        for others in range(min(c, people)):
            for moves in combinations_with_replacement(by_move, others):
                if not (start[0] + sum(move[2] for move in moves)).any():
                    changes.append(start[1] + sum(move[3] for move in moves))
    return largest(changes)


@pytest.mark.parametrize("adversary", ["alike", {"group": 3}])
@pytest.mark.parametrize("presence", ["public", "secret"])
@pytest.mark.parametrize(
    "known",
    [
        [MARGINAL("a")],
        [MARGINAL("a"), MARGINAL("b")],
        [COUNT("a == 0"), MARGINAL("b")],
        [COUNT("a == 0"), COUNT("b == 0")],
    ],
)
def test_steps_of_named_adversaries_are_never_too_small(known, presence, adversary):
    policy = tc.Policy(grid(2, 2), tc.secrets.attributes("a", "b"), known, presence, adversary=adversary)
    for query in (
        tc.histogram("a", "b"),
        tc.count("a == 1 and b == 0"),
        tc.cumulative("a"),
        tc.total("a", where="b == 1"),
    ):
        assert_never_above(largest_step(query, policy), step_by_pairs(query, policy, 3))


def test_audits_compare_the_data_sets_that_the_adversary_is_about():
    spare = grid(2, 2, s=tc.Flag())
    found = tc.audit.exact(tc.histogram("a", "b", "s"), alike(spare, [MARGINAL("a")]), 1)
    assert 1 - 1e-9 < found.forward.low <= 1 + 1e-9
    both = tc.Policy(grid(2, 2), tc.secrets.everything(), [MARGINAL("a"), MARGINAL("b")], adversary={"group": 3})
    assert 0.6 < tc.audit.exact(tc.histogram("a", "b"), both, 1).forward.low <= 1 + 1e-9
    three = [(0, 0), (1, 0), (2, 0)], [(1, 1), (2, 1), (0, 1)]
    policy = alike(grid(3, 2), [MARGINAL("a")])
    with pytest.raises(tc.PolicyError, match="at most 2 people"):
        tc.audit.worlds.check_neighbours(policy, *three)


# ---- groups ---------------------------------------------------------------------------------------------------------


def fewest(policy, people):
    """How many people must move for the hardest secret move, where some data set agrees: by the tables it changes."""
    tables, worst = known_tables(policy), Counter()
    records = every_record(policy.domain)
    by_known = {}
    for world in combinations_with_replacement(records, people):
        by_known.setdefault(known_numbers(policy, world), []).append(Counter(world))
    for worlds in by_known.values():
        for world in worlds:
            for x, y in product(world, records):
                rest = world - Counter([x])
                moved = [1 + sum((rest - (other - Counter([y]))).values()) for other in worlds if other[y]]
                if x != y and moved:
                    many = len(changed_tables(tables, policy, x, y))
                    worst[many] = max(worst[many], min(moved))
    return worst


THREE = tc.Domain({"a": tc.Flag(), "b": tc.Flag(), "c": tc.Flag()})


@pytest.mark.parametrize(
    "known",
    [
        [MARGINAL("a", "b"), MARGINAL("b", "c")],
        [MARGINAL("a"), MARGINAL("b"), MARGINAL("c")],
        [COUNT("a == True"), MARGINAL("b", "c")],
    ],
)
def test_one_person_more_than_tables_is_enough_where_they_are_a_tree(known):
    policy = tc.Policy(THREE, tc.secrets.everything(), known, adversary={"group": 4})
    assert decomposable(known_tables(policy))
    for many, people in fewest(policy, 4).items():
        assert people <= 1 + many
    largest_step(tc.histogram("a", "b", "c"), policy)


def test_three_tables_in_a_ring_need_more_and_are_refused():
    ring = [MARGINAL("a", "b"), MARGINAL("b", "c"), MARGINAL("a", "c")]
    policy = tc.Policy(THREE, tc.secrets.everything(), ring, adversary={"group": 4})
    assert fewest(policy, 4)[2] > 3
    with pytest.raises(PlanError, match="form a tree, or have no attribute in common"):
        largest_step(tc.histogram("a", "b", "c"), policy)


def test_a_group_too_small_to_make_up_for_an_edge_is_refused():
    everything, only_a = tc.secrets.everything(), tc.secrets.attributes("a")

    def step(secrets, people):
        policy = tc.Policy(grid(9, 7), secrets, [MARGINAL("a"), MARGINAL("b")], adversary={"group": people})
        return largest_step(tc.histogram("a", "b"), policy).l1

    assert (step(only_a, 2), step(only_a, 3), step(everything, 3)) == (4, 6, 6)
    with pytest.raises(PlanError, match="a group needs at least 3 people"):
        step(everything, 2)


def test_three_tables_are_refused_for_people_who_are_alike():
    known = [MARGINAL("a"), MARGINAL("b"), MARGINAL("c")]
    with pytest.raises(PlanError, match="for people who are alike two tables at most, and these are 3"):
        largest_step(tc.histogram("a", "b", "c"), alike(THREE, known))
    assert largest_step(tc.histogram("a", "b", "c"), alike(THREE, [*known, tc.known.size(9)])).l1 == 18
