"""Sections 3.2 and 4 of document 003: what knowledge gives away, and what several releases lose together."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.audit.possible_worlds import steps_among
from tacit.plan.questions import count, histogram
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy import knowledge as known
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import attributes, everything, pairs, partition, within
from tacit_reproductions.document_003.constraints import SmallPolicy, World, attribute_graph, complete, marginal
from tacit_reproductions.results import Claim, check, same

Floats = npt.NDArray[np.float64]
_MECHANISMS: Final = 2_000


def knowledge_claims() -> list[Claim]:
    """Return what sections 3.2 and 4.2 say about knowledge."""
    variances = {k: averaged_variance(k) for k in (4, 16, 256)}
    steps = {k: _steps_under_sums(k) for k in (3, 4, 5, 6)}
    ones = Policy(Domain({"x": Integers(0, 1)}), everything())
    apart, restricted = steps_among(count("x == 1"), ones, [[{"x": value}] * 5 for value in (0, 1)])
    return [
        Claim(
            "section 3.2",
            "averaging attack: variance of a count, sums of neighbours known",
            "least squares on what is known; no data",
            "falls from 2/eps^2 to 2/(k eps^2)",
            ", ".join(f"k = {k}: 1/{1 / variance:.0f}" for k, variance in variances.items()),
            (same("variance over the noise's, times k", [k * one for k, one in variances.items()], [1, 1, 1], 1e-9),),
        ),
        Claim(
            "section 3.2",
            "the same: what Blowfish has to hide, histogram step",
            "brute force over all data sets of up to three people, neighbours by the repaired Definition 4.1",
            "knowledge raises it",
            ", ".join(f"k = {k}: {step}" for k, step in steps.items()) + "; without knowledge 2",
            (check(f"step at k = {', '.join(map(str, steps))}", list(steps.values()), "above", 2),),
            "with an odd k nobody can move at all, and all counts follow from the number of people",
        ),
        Claim(
            "section 4.2",
            "only 0^n and 1^n are possible, n = 5: step of the number of ones",
            "Tacit's audit of the two data sets",
            "restricted sensitivity 1 does not protect; Blowfish's is n",
            f"restricted {restricted:g}, between neighbours {apart}",
            (check("restricted sensitivity, step between the two", (restricted, apart), "is", (1, 5)),),
        ),
    ]


def composition_claims() -> list[Claim]:
    """Return what section 4.1 says about several releases."""
    violations = _sequential_violations()
    lone, joint = _parallel_losses()
    gender = Domain({"gender": Integers(0, 1), "value": Integers(0, 2)})
    counted, free = (
        largest_step(histogram("gender", "value"), Policy(gender, secret, [known.marginal("gender")])).l1
        for secret in (everything(), attributes("value"))
    )
    cells, edges = attribute_graph((2, 3))
    apart = frozenset(edge for edge in edges if len({cells[at][0] for at in edge}) == 1)
    coupled = World(SmallPolicy(6, complete(6), marginal(cells, 0)), 2).sensitivity()
    separate = World(SmallPolicy(6, apart, marginal(cells, 0)), 2).sensitivity()
    told = _values_left()
    return [
        Claim(
            "Equation 9",
            "loss between values at distance d, line of 6 values",
            "an exponential mechanism of one person, enumerated",
            "at most d epsilon",
            f"largest loss over d epsilon: {_loss_by_distance():.3f}",
            (check("largest loss over d epsilon", _loss_by_distance(), "at most", 1 + 1e-12),),
        ),
        Claim(
            "Theorem 4.1",
            f"{_MECHANISMS:,} random pairs of mechanisms, the second seeing the first",
            "mechanisms with three outputs on two data sets, drawn and enumerated",
            "losses add up to at most the sum",
            f"{violations} above it",
            (check("pairs that lose more than the sum", violations, "is", 0),),
        ),
        Claim(
            "Theorem 4.2",
            "two people, one mechanism for each: 1/2 and 1",
            "exponential mechanisms on four values, enumerated",
            "the larger of both, 1",
            f"{max(lone):g} and {joint:.3f} together",
            (same("loss together", joint, 1, 1e-9),),
        ),
        Claim(
            "section 4.1",
            "known gender counts, everything secret, 2 x 3 values",
            "brute force over two people, and Tacit's step",
            "two people change at once: no parallel composition",
            f"step {coupled} by brute force, Tacit {counted}; without this knowledge 2",
            (check("step by brute force, by Tacit", (coupled, int(counted)), "above", 2),),
        ),
        Claim(
            "section 4.1",
            "two components with known sizes",
            "brute force over two people, and Tacit's step",
            "compose as the maximum",
            f"step {separate} by brute force, Tacit {free}: one person changes",
            (check("step by brute force, by Tacit", (separate, int(free)), "is", 2),),
        ),
        Claim(
            "Theorem 4.3",
            "x, y, z, w with x - y secret; known: one of (first is y), (second is z)",
            "all data sets of two people, enumerated",
            "0, since nothing secret about the second person changes what is known",
            f"{told} of 2 values of the first one's secret fit what a release about the second may show, so that it is "
            "told with certainty",
            (check("values of the secret that stay possible", told, "is", 2),),
            "people also move along pairs that are not secret",
        ),
    ]


def lemma_5_2() -> Claim:
    """Return whether differential privacy promises what every Blowfish policy without knowledge does."""
    logs = np.log(random_laws((_MECHANISMS, 4, 3)))
    between = np.abs(logs[:, :, np.newaxis] - logs[:, np.newaxis]).max(axis=3)  # values x values
    graphs = noise.uniform_below(2, between.shape).astype(np.bool_)
    more = int((np.where(graphs, between, 0).max(axis=(1, 2)) > between.max(axis=(1, 2))).sum())
    line = Domain({"x": Integers(0, 5)})
    secrets = (within(1, "x"), partition("x", width=2), pairs([({"x": 0}, {"x": 5})]))
    covered = sum(Policy(line, everything()).covers(Policy(line, one)) for one in secrets)
    return Claim(
        "Lemma 5.2",
        "what an epsilon-differentially private mechanism loses along the edges of a secret graph",
        f"{_MECHANISMS:,} random mechanisms on four values with random graphs, and Tacit's `covers` for three policies",
        "at most epsilon, whatever the graph",
        f"{more} lose more; {covered} of {len(secrets)} policies are covered",
        (
            check("mechanisms that lose more", more, "is", 0),
            check("policies that plain privacy covers", covered, "is", len(secrets)),
        ),
    )


def averaged_variance(values: int) -> float:
    """Return the variance of a count after the averaging attack of section 3.2, over that of a noisy count.

    Counts c_1, .., c_k with independent noise; all c_i + c_(i+1) are known. The best estimate of c_1 is the mean of
    k numbers: noisy counts with alternating signs, and known sums.
    """
    signs = (-1.0) ** np.arange(values)
    known_sums = np.eye(values)[:-1] + np.eye(values, k=1)[:-1]
    # least squares on what is left free: counts move along `signs` alone
    free = signs / np.linalg.norm(signs)
    if np.abs(known_sums @ free).max() > 1e-12:
        raise ValueError("what is known must leave one direction free")
    return float(free[0] ** 2)


def _steps_under_sums(values: int) -> int:
    """Return the step of the histogram when all sums of neighbouring counts are known, for up to three people."""
    sums = tuple(frozenset((at, at + 1)) for at in range(values - 1))
    policy = SmallPolicy(values, complete(values), sums)
    return max(World(policy, people).sensitivity() for people in (1, 2, 3))


def _truncated_geometric(values: int, epsilon: float) -> Floats:
    """Return a mechanism on a line: the chance of each output (columns) at each value, exponential in the distance."""
    at = np.arange(values)
    weights = np.exp(-epsilon / 2 * np.abs(at[:, np.newaxis] - at))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _loss_by_distance(values: int = 6, epsilon: float = 0.7) -> float:
    """Return the largest loss between any two values, over their distance times the largest loss of an edge."""
    logs = np.log(_truncated_geometric(values, epsilon))
    loss = np.abs(logs[:, np.newaxis] - logs).max(axis=2)
    distance = np.abs(np.subtract.outer(np.arange(values), np.arange(values)))
    edge = loss[distance == 1].max()
    apart = distance > 0
    return float((loss[apart] / (distance[apart] * edge)).max())


def _sequential_violations() -> int:
    """Return how often two random mechanisms on two data sets lose more together than both losses in sum."""
    first = random_laws((_MECHANISMS, 2, 3))
    second = random_laws((_MECHANISMS, 2, 3, 3))
    one, two = (np.abs(np.log(laws[:, 0] / laws[:, 1])) for laws in (first, second))
    both = np.abs(np.log(first[:, 0] / first[:, 1])[:, :, np.newaxis] + np.log(second[:, 0] / second[:, 1]))
    return int((both.max(axis=(1, 2)) > one.max(axis=1) + two.max(axis=(1, 2)) + 1e-12).sum())


def random_laws(shape: tuple[int, ...]) -> Floats:
    """Return laws with as many outputs as the last number says, none of them rare."""
    weights = 0.1 + noise.uniform_below(10**6, shape) / 10**6
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _parallel_losses() -> tuple[list[float], float]:
    """Return the losses of two mechanisms, and of both together when one of two people changes along an edge."""
    values, wanted = 4, (0.5, 1.0)
    found = []
    for epsilon in wanted:
        # an exponential mechanism loses less than its epsilon: take the one that loses all of it
        low, high = epsilon, 4 * epsilon
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if _edge_loss(_truncated_geometric(values, middle)) < epsilon else (low, middle)
        found.append(_truncated_geometric(values, high))
    logs = [np.log(laws) for laws in found]
    worst = 0.0
    for old in product(range(values), repeat=2):
        for who in (0, 1):
            for new in (old[who] - 1, old[who] + 1):
                if 0 <= new < values:
                    after = (new, old[1]) if who == 0 else (old[0], new)
                    differs = [logs[at][old[at]] - logs[at][after[at]] for at in (0, 1)]
                    worst = max(worst, float(np.add.outer(*differs).max()))
    return [_edge_loss(laws) for laws in found], worst


def _edge_loss(laws: Floats) -> float:
    return float(np.abs(np.diff(np.log(laws), axis=0)).max())


def _values_left() -> int:
    """Return how many values of the first person's secret stay possible once it is shown whether the second has z.

    Values x, y, z, w are 0, 1, 2, 3, and x - y is the only secret pair. Known is that exactly one of two holds: the
    first person has y, the second has z. The first person's secret changes that, the second's does not; so the theorem
    lets both answer by themselves, and of the second person it may be shown whether it is z.
    """
    possible = [data for data in product(range(4), repeat=2) if _holds(data)]
    if any(_holds((first, 0)) != _holds((first, 1)) for first in range(4)):
        raise ValueError("the second person's secret must not change what is known")
    return max(len({first for first, second in possible if first < 2 and (second == 2) == seen}) for seen in (0, 1))


def _holds(data: tuple[int, ...]) -> bool:
    first, second = data
    return (first == 1) + (second == 2) == 1
