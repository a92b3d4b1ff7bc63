"""Sections 3.2 and 4 of document 003: what knowledge gives away, and what several releases lose together."""

from __future__ import annotations

import math
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.papers.constraints_003 import SmallPolicy, World, attribute_graph, complete, marginal
from tacit.papers.results import Claim, judged
from tacit.plan.queries import histogram
from tacit.plan.steps import largest_step
from tacit.policy import knowledge as known
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import attributes, everything

Floats = npt.NDArray[np.float64]
_MECHANISMS: Final = 2_000


def knowledge_claims() -> list[Claim]:
    """Return what sections 3.2 and 4.2 say about knowledge."""
    variances = {k: averaged_variance(k) for k in (4, 16, 256)}
    steps = {k: _steps_under_sums(k) for k in (3, 4, 5, 6)}
    right = [math.isclose(variance, 1 / k) for k, variance in variances.items()]
    apart = _two_worlds(5)
    return [
        Claim(
            "section 3.2",
            "averaging attack: variance of a count, sums of neighbours known",
            "falls from 2/eps^2 to 2/(k eps^2)",
            ", ".join(f"k = {k}: 1/{1 / variance:.0f}" for k, variance in variances.items()),
            *judged(right, why="another factor"),
        ),
        Claim(
            "section 3.2",
            "the same: what Blowfish has to hide, histogram step",
            "knowledge raises it",
            ", ".join(f"k = {k}: {step}" for k, step in steps.items()) + "; without knowledge 2",
            *judged(
                [step > 2 for k, step in steps.items() if k % 2 == 0] + [steps[3] > 2, steps[5] > 2],
                why="with an odd k nobody can move at all, and all counts follow from the number of people",
            ),
        ),
        Claim(
            "section 4.2",
            "only 0^n and 1^n are possible, n = 5: step of the number of ones",
            "restricted sensitivity 1 does not protect; Blowfish's is n",
            f"restricted {apart // 5}, between neighbours {apart}",
            *judged([apart == 5]),
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
    return [
        Claim(
            "Equation 9",
            "loss between values at distance d, line of 6 values",
            "at most d epsilon",
            f"largest loss over d epsilon: {_loss_by_distance():.3f}",
            *judged([_loss_by_distance() <= 1 + 1e-12]),
        ),
        Claim(
            "Theorem 4.1",
            f"{_MECHANISMS:,} random pairs of mechanisms, the second seeing the first",
            "losses add up to at most the sum",
            f"{violations} above it",
            *judged([violations == 0]),
        ),
        Claim(
            "Theorem 4.2",
            "two people, one mechanism for each: 1/2 and 1",
            "the larger of both, 1",
            f"{max(lone):g} and {joint:.3f} together",
            *judged([abs(joint - 1) < 1e-9]),
        ),
        Claim(
            "section 4.1",
            "known gender counts, everything secret, 2 x 3 values",
            "two people change at once: no parallel composition",
            f"step {coupled} by brute force, Tacit {counted}; without this knowledge 2",
            *judged([coupled == 4, counted == 4], why="another step"),
        ),
        Claim(
            "section 4.1",
            "two components with known sizes",
            "compose as the maximum",
            f"step {separate} by brute force, Tacit {free}: one person changes",
            *judged([separate == 2, free == 2], why="another step"),
        ),
        Claim(
            "Theorem 4.3",
            "x, y, z, w with x - y secret; known: one of (first is y), (second is z)",
            "0, since nothing secret about the second person changes what is known",
            "infinite: whether the second is z tells the first one's secret",
            *(judged([not _parallel_counterexample()], why="people also move along pairs that are not secret")),
        ),
    ]


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


def _two_worlds(people: int) -> int:
    """Return how far apart the number of ones is in the two data sets that are possible."""
    zeros, ones = (0,) * people, (1,) * people
    return abs(sum(ones) - sum(zeros))


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
    first = _random_laws((_MECHANISMS, 2, 3))
    second = _random_laws((_MECHANISMS, 2, 3, 3))
    one, two = (np.abs(np.log(laws[:, 0] / laws[:, 1])) for laws in (first, second))
    both = np.abs(np.log(first[:, 0] / first[:, 1])[:, :, np.newaxis] + np.log(second[:, 0] / second[:, 1]))
    return int((both.max(axis=(1, 2)) > one.max(axis=1) + two.max(axis=(1, 2)) + 1e-12).sum())


def _random_laws(shape: tuple[int, ...]) -> Floats:
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


def _parallel_counterexample() -> bool:
    """Say whether the counterexample to Theorem 4.3 stands.

    Values x, y, z, w are 0, 1, 2, 3, and x - y is the only secret pair. Known is that exactly one of two holds: the
    first person has y, the second has z. The first person's secret changes that, the second's does not; so the theorem
    lets both answer by themselves. But from (x, z) the only way to y leads to a second person who is not at z.
    """
    possible = [data for data in product(range(4), repeat=2) if _holds(data)]
    no_single_change = (1, 2) not in possible and (0, 2) in possible
    second_is_free = not any(
        _holds((first, old)) != _holds((first, new)) for first in range(4) for old, new in ((0, 1), (1, 0))
    )
    told = {data[1] == 2 for data in possible if data[0] == 0}.isdisjoint(
        {data[1] == 2 for data in possible if data[0] == 1}
    )
    return no_single_change and second_is_free and told


def _holds(data: tuple[int, ...]) -> bool:
    first, second = data
    return (first == 1) + (second == 2) == 1
