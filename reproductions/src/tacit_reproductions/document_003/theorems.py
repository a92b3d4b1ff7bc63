"""Theorems and examples of document 003: the number that is claimed, the true one by brute force, and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanError
from tacit.noise.two_scale import TwoScale
from tacit.plan.questions import histogram, ranges, total
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy import knowledge as known
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import attributes, everything, pairs, partition, within
from tacit_reproductions.document_003.composition import composition_claims, knowledge_claims, lemma_5_2
from tacit_reproductions.document_003.constraints import (
    SmallPolicy,
    Values,
    World,
    attribute_graph,
    complete,
    histogram_change,
    line,
    longest_cycle,
    longest_path,
    marginal,
    policy_graph,
    theorem_8_2,
)
from tacit_reproductions.document_003.kmeans import exact_sensitivity, printed_sensitivity
from tacit_reproductions.results import Claim, Table, check, said, same

Floats = npt.NDArray[np.float64]
_BRUTE: Final = "brute force over data sets, neighbours by the repaired Definition 4.1"


def theorem_claims() -> list[Claim]:
    """Return every theorem and example with a number, in the order of the paper."""
    return [
        *knowledge_claims(),
        *composition_claims(),
        *_sensitivity_claims(),
        *_cluster_claims(),
        *_constraint_claims(),
    ]


def example_table() -> Table:
    """Return Figure 3 and Examples 8.1 to 8.3: 2 x 2 x 3 values, the marginal of the first two attributes known."""
    policy, cells = _example()
    graph = policy_graph(policy)
    touched = [policy.lifted_and_lowered(a, b) for a, b in product(range(12), repeat=2) if a != b]
    exactly_one = sum(len(lifted) == len(lowered) == 1 for lifted, lowered in touched)
    none = sum(not lifted and not lowered for lifted, lowered in touched)
    between = sum(len(graph[at]) for at in range(4))
    start, end = _example_databases(cells)
    near = {one.values for one in World(policy, 4).neighbours(start)}
    lines = [
        ("8.1", "pairs that lift one count and lower one", "all that touch any", f"{exactly_one}; {none} touch none"),
        ("8.1", "the knowledge is sparse", said(True), said(policy.is_sparse())),
        ("8.2, 3(b)", "edges between the four counts", "between any two", f"{between} of 12"),
        ("8.2, 3(b)", "edges from v+ or to v-", "v+ to v- alone", f"{_special_edges(graph)}"),
        ("8.2", "longest cycle, alpha", "4", str(longest_cycle(graph))),
        ("8.2", "longest path, xi", "1", str(longest_path(graph))),
        ("8.3", "S(h, P)", "8", f"{theorem_8_2(policy)} by Theorem 8.2; Tacit {_our_step(_example_policy())}"),
        ("8.3", "the two data sets are neighbours", said(True), said(end in near)),
        ("8.3", "their histograms differ by", "8", str(histogram_change(start, end, 12))),
    ]
    title = "Figure 3 and Examples 8.1 to 8.3: 2 x 2 x 3 values, the marginal of the first two attributes known"
    return Table(title, ("example", "what", "the paper", "found"), lines)


def example_graph() -> dict[int, set[int]]:
    """Return the policy graph of Figure 3(b)."""
    return policy_graph(_example()[0])


def _sensitivity_claims() -> list[Claim]:
    on_line, graph = SmallPolicy(6, line(6, 1)), frozenset({frozenset((0, 1)), frozenset((2, 3))})
    blocks = partition("x", width=2)
    free, coupled = (
        World(SmallPolicy(4, graph, facts), 3).sensitivity(_block_change) for facts in ((), (frozenset((1, 2)),))
    )
    asked = ranges("x", [(0, 1), (2, 3)])
    ours = [largest_step(asked, Policy(_line(4), blocks, facts)).l1 for facts in ([], [known.count("x in [1, 2]")])]
    weights, theta = (-5, 1), 2
    sums = max(abs(weight) * theta for weight in weights)
    plain = largest_step(total("x"), Policy(_line(6), within(2, "x"))).l1
    loss = _laplace_loss(3)
    counted = World(on_line, 2).sensitivity(), _our_step(Policy(_line(6), within(1, "x")))
    return [
        Claim(
            "Theorem 5.1",
            "a count that moves by 3, whole-number noise of scale 3/eps",
            "the law of the noise; no data",
            "epsilon",
            f"{loss:.3f} epsilon",
            (same("loss over epsilon", loss, 1, 1e-9),),
        ),
        lemma_5_2(),
        Claim(
            "section 5",
            "histogram on a line, theta 1, nothing known",
            f"{_BRUTE}, two people; and Tacit's step",
            "2, as under differential privacy",
            f"{counted[0]} by brute force, Tacit {counted[1]}",
            (check("step by brute force, by Tacit", counted, "is", 2),),
        ),
        Claim(
            "section 5",
            "linear sum, theta 2, weights -5 and 1",
            "the formula on two weights, and Tacit's step for weights of 1",
            "theta max w = 2",
            f"{sums}: the largest size counts; weights 1: Tacit {plain}",
            (check("step", sums, "is", theta * max(weights)),),
            "weights may be negative",
        ),
        Claim(
            "section 5",
            "histogram of the blocks of a partition",
            f"{_BRUTE}, three people; and Tacit's step",
            "0",
            f"{free}, Tacit {ours[0]}; with the count of {{1, 2}} known {coupled}, Tacit {ours[1]}",
            (check("step without knowledge, with it", (free, coupled), "is", 0),),
            "only without knowledge that cuts across blocks",
        ),
    ]


def _cluster_claims() -> list[Claim]:
    thousand = np.arange(1001.0)[:, np.newaxis]
    two = np.array([[250.0], [750.0]])
    near = np.abs(thousand - thousand.T) <= 10
    cube = np.array(list(product(range(8), repeat=3)), dtype=np.float64)
    high = np.array([[7.0, 7.0, 1.0], [7.0, 7.0, 6.0]])
    one_apart = (cube[:, np.newaxis] != cube).sum(axis=2) == 1
    plane = np.array(list(product(range(30), range(20))), dtype=np.float64)
    four = np.array([[6.0, 4.0], [21.0, 5.0], [9.0, 14.0], [24.0, 16.0]])
    block = plane // 5
    same_block = (block[:, np.newaxis] == block).all(axis=2)
    rows: tuple[tuple[str, float, Floats, Floats, npt.NDArray[np.bool_]], ...] = (
        ("0..1000, theta 10, centres 250 and 750", 10, thousand, two, near),
        ("8 x 8 x 8, one attribute, two centres", 7, cube, high, one_apart),
        ("30 x 20, blocks of 5 x 5, four centres", 8, plane, four, same_block),
    )
    claims = []
    for what, reach, values, centres, is_edge in rows:
        raw, offset = (
            exact_sensitivity(values, centres, is_edge, origin) for origin in (np.zeros_like(centres), centres)
        )
        printed = printed_sensitivity(reach)
        claims.append(
            Claim(
                "Lemma 6.1",
                f"sums of clusters: {what}",
                "all secret edges, enumerated",
                f"{printed:g}",
                f"{raw:g}; {offset:g} for offsets from the centres",
                (check("largest change", raw, "at most", printed),),
                "an edge may cross the border of two clusters",
            )
        )
    return claims


def _constraint_claims() -> list[Claim]:
    cells, edges = attribute_graph((2, 2, 2))
    table, _ = attribute_graph((3, 2))
    one_count, marginals = (frozenset((2, 3)),), marginal(cells, 0) + marginal(cells, 1)
    apart = (frozenset((0, 1)), frozenset((3, 4)), frozenset((6, 7)))
    sparse = SmallPolicy(5, frozenset({frozenset((3, 4)), frozenset((1, 2))}), (frozenset((0, 1)), frozenset((0, 4))))
    tiles = SmallPolicy(4, line(4, 1), (frozenset((0, 1)), frozenset((2, 3))))
    literal = sum(1 for _ in World(SmallPolicy(4, complete(4)), 2).neighbours((0, 1), literal=True))
    far = World(SmallPolicy(9, line(9, 1), apart), 4)
    ranged = max(histogram_change((0, 2, 4, 7), near.values, 9) for near in far.neighbours((0, 2, 4, 7)))
    eight = World(SmallPolicy(8, edges, marginals), 4)
    start = (0, 2, 4, 7)
    four = max((histogram_change(start, near.values, 8) for near in eight.neighbours(start)), default=0)
    listed = pairs([({"x": a}, {"x": b}) for one, other in ((3, 4), (1, 2)) for a, b in ((one, other), (other, one))])
    two_counts = [known.count("x in [0, 1]"), known.count("x in [0, 4]")]
    cube, larger = (
        Domain({f"A{at}": Integers(0, many - 1) for at, many in enumerate(sizes)}) for sizes in ((2, 2, 2), (3, 2, 2))
    )
    two_marginals = [known.marginal("A0"), known.marginal("A1")]
    return [
        Claim(
            "Definition 4.1",
            "neighbours of (0, 1) on four values, everything secret",
            "all data sets of two people, by the letter and repaired",
            "data sets that differ in one person",
            f"{literal} by the letter; {_neighbours()} once the smaller data set has to differ in a secret pair",
            (check("neighbours by the letter", literal, "above", 0),),
            "condition 3 is met by the data set itself",
        ),
        _step_claim(
            "Theorem 8.2",
            "secret 3-4 and 1-2, known {0, 1} and {0, 4}",
            theorem_8_2(sparse),
            World(sparse, 3).sensitivity(),
            "three people",
            {
                "three people declared": Policy(_line(5), listed, [*two_counts, known.size(3)]),
                "no number of people declared": Policy(_line(5), listed, two_counts),
            },
            "people also move along pairs that are not secret",
        ),
        _step_claim(
            "Corollary 8.3",
            "0..3, everything secret, known {2, 3}",
            2 * len(one_count),
            World(SmallPolicy(4, complete(4), one_count), 3).sensitivity(),
            "three people",
            {"": Policy(_line(4), everything(), [known.count("x >= 2")])},
            "right is 2 for each known count, and 2 more",
        ),
        _step_claim(
            "Theorem 8.4",
            "3 x 2, everything secret, the marginal of 3 known",
            2 * 3,
            World(SmallPolicy(6, complete(6), marginal(table, 0)), 3).sensitivity(),
            "three people",
            {"": Policy(Domain({"A0": Integers(0, 2), "A1": Integers(0, 1)}), everything(), [known.marginal("A0")])},
        ),
        _step_claim(
            "Theorem 8.5",
            "2 x 2 x 2, one attribute secret, two marginals known",
            2 * 2,
            max(World(SmallPolicy(8, edges, marginals), 3).sensitivity(), four),
            "three people, and from one data set of four",
            {
                "": Policy(cube, attributes(*cube), two_marginals),
                "3 x 2 x 2": Policy(larger, attributes(*larger), two_marginals),
                "3 x 2 x 2, people alike": Policy(larger, attributes(*larger), two_marginals, adversary="alike"),
            },
            "knowledge is not sparse for all pairs; with more values the step at least doubles with each",
        ),
        _step_claim(
            "Theorem 8.6",
            "0..8, theta 1, known {0, 1}, {3, 4}, {6, 7}",
            2 * (1 + 1),
            ranged,
            "from one data set of four people",
            {
                "": Policy(
                    _line(9),
                    within(1, "x"),
                    [known.count("x <= 1"), known.count("x in [3, 4]"), known.count("x in [6, 7]")],
                )
            },
            "right is 2 (p + 1) with all p ranges",
        ),
        _step_claim(
            "Theorem 8.6",
            "0..3, theta 1, known {0, 1} and {2, 3}, which tile the line",
            2 * (2 + 1),
            World(tiles, 3).sensitivity(),
            "three people",
            {"": Policy(_line(4), within(1, "x"), [known.count("x <= 1"), known.count("x >= 2")])},
            "an equality in the paper; too much here, 2 p",
        ),
    ]


def _step_claim(
    where: str, what: str, claimed: int, true: int, over: str, policies: Mapping[str, Policy], why: str = ""
) -> Claim:
    """Judge an equality; a claim that is too large is at least safe."""
    ours = ", ".join(f"Tacit {_step_or_refusal(one)}{f' ({name})' * bool(name)}" for name, one in policies.items())
    return Claim(
        where,
        f"step of the histogram: {what}",
        f"{_BRUTE}, {over}; and Tacit's step",
        str(claimed),
        f"{true}; {ours}",
        (check("true step", true, "is", claimed), check("the same", true, "at most", claimed)),
        why,
    )


def _step_or_refusal(policy: Policy) -> str:
    try:
        return str(_our_step(policy))
    except PlanError:
        return "refuses"


def _our_step(policy: Policy) -> int:
    return int(largest_step(histogram(*policy.domain), policy).l1)


def _line(values: int) -> Domain:
    return Domain({"x": Integers(0, values - 1)})


def _example() -> tuple[SmallPolicy, list[Values]]:
    cells, _ = attribute_graph((2, 2, 3))
    return SmallPolicy(12, complete(12), marginal(cells, 0, 1)), cells


def _example_policy() -> Policy:
    sizes = {"A1": 2, "A2": 2, "A3": 3}
    domain = Domain({name: Integers(0, many - 1) for name, many in sizes.items()})
    return Policy(domain, everything(), [known.marginal("A1", "A2")])


def _example_databases(cells: Sequence[Values]) -> tuple[Values, Values]:
    """Return the data sets of Example 8.3."""
    old, new = ((0, 0), (0, 1), (1, 0), (1, 1)), ((0, 1), (1, 0), (1, 1), (0, 0))
    return tuple(cells.index((*cell, 0)) for cell in old), tuple(cells.index((*cell, 1)) for cell in new)


def _special_edges(graph: dict[int, set[int]]) -> int:
    """Return how many edges start in v+ or end in v-."""
    return sum(1 for start, ends in graph.items() for end in ends if start < 0 or end < 0)


def _block_change(old: Values, new: Values) -> int:
    before, after = (np.bincount(np.array(one) // 2, minlength=2) for one in (old, new))
    return int(np.abs(before - after).sum())


def _neighbours() -> int:
    return sum(1 for _ in World(SmallPolicy(4, complete(4)), 2).neighbours((0, 1)))


def _laplace_loss(step: int) -> float:
    """Return the loss of whole-number noise of scale step / epsilon between counts that are `step` apart, epsilon 1."""
    return float(TwoScale(Fraction(step), Fraction(step)).loss(step))
