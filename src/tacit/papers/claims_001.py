"""What document 001 claims, theorem by theorem, and where its scope ends: values, three attributes, optimisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit.dependence.closed_forms import BitPair, bit_pair, own_information
from tacit.dependence.dependence import Dependence
from tacit.dependence.information import mutual_information, outcomes
from tacit.dependence.suppression import suppression
from tacit.papers.results import NO, YES, Claim, judged
from tacit.papers.theorems_001 import Line, Setting

SAME: Final = 1e-12
Floats = npt.NDArray[np.float64]


def theorem_claims(found: Sequence[Line], grid: Sequence[Setting]) -> list[Claim]:
    """Return whether each theorem is what enumeration and drawing give, over the whole grid."""
    claims = [_lemma(grid)]
    for name in dict.fromkeys(line.statement.name for line in found):
        own = [line for line in found if line.statement.name == name]
        apart, fit = max(line.apart for line in own), sum(line.fits for line in own)
        right = [apart < SAME, fit == len(own)]
        claims.append(
            Claim(
                name,
                f"odds of X_j = 0, {len(own):,} settings",
                _PRINTED[name],
                f"apart by {apart:.0e} at most; {fit:,} of {len(own):,} intervals of draws hold it",
                *judged([*right, False] if name in _SCOPE else right, why=_SCOPE.get(name, "it differs")),
            )
        )
    return claims


_PRINTED: Final = {
    "Theorem 1": "grow by e^epsilon with each suppression",
    "Theorem 2": "grow by f_1(epsilon_i) if i is suppressed",
    "Corollary 1": "grow by f_1(n epsilon_i) after n suppressions",
    "Theorem 3": "grow by f_2 if i is released",
    "Theorem 4": "grow by f_1 or f_2 times e^epsilon_j where two applications talk",
}
_SCOPE: Final = {
    "Theorem 3": "for the bit; a release also shows its value, see below",
}


def _lemma(grid: Sequence[Setting]) -> Claim:
    """Lemma 1: M_i says nothing about X_j once X_i is known."""
    worst = 0.0
    for setting in grid:
        joint = setting.joint()
        stays = math.exp(-setting.epsilon_i)
        for x_i, released in ((0, False), (1, False), (1, True)):
            seen = 1.0 if x_i == 0 else 1 - stays if released else stays
            given = [joint[x_i, x_j] * seen for x_j in (0, 1)]
            plain = [joint[x_i, x_j] for x_j in (0, 1)]
            worst = max(worst, abs(given[0] / sum(given) - plain[0] / sum(plain)))
    return Claim(
        "Lemma 1",
        f"X_j given X_i and M_i, {len(grid):,} settings",
        "the same as given X_i alone",
        f"chances apart by {worst:.0e} at most",
        *judged([worst < SAME]),
    )


def text_claims() -> list[Claim]:
    """Return what the text around the theorems says: limits, cancellation and reinforcement."""
    against, along = BitPair(0.4, 0.5, 0.2, 0.6), BitPair(0.5, 0.5, 0.8, 0.2)
    same = BitPair(0.5, 0.5, 0.5, 0.5)
    cancels = against.cancelling_target_epsilon(1.0)
    assert cancels is not None  # noqa: S101 - delta_1 < delta_2
    left = against.both_suppressed(1.0, cancels)
    return [
        Claim(
            "section V.A",
            "f_1 at epsilon 0, for equal deltas, and for large epsilon (delta 0.8 and 0.2)",
            "1; 1; delta_1 / delta_2 = 4",
            f"{along.suppressed(0.0):g}; {same.suppressed(2.0):g}; {along.suppressed(40.0):.6g}",
            *judged([along.suppressed(0) == 1, same.suppressed(2) == 1, abs(along.suppressed(40) - 4) < 1e-9]),
        ),
        Claim(
            "section V.B",
            "two suppressions that cancel, delta 0.2 and 0.6, epsilon_i = 1",
            "f_1(epsilon_i) e^epsilon_j can be about 1 where delta_1 < delta_2",
            f"exactly 1 at epsilon_j = {cancels:.4f}: factor {left:.12g}",
            *judged([abs(left - 1) < SAME]),
        ),
        Claim(
            "section V.B",
            "a release and a suppression that cancel",
            "the same for f_2 e^epsilon_j, where delta_1 < delta_2",
            f"f_2 = {against.released():g} for delta 0.2 and 0.6, {along.released():g} for 0.8 and 0.2",
            NO,
            "f_2 is below 1 where delta_1 is above delta_2",
        ),
        Claim(
            "section V.B",
            "two suppressions that reinforce each other, delta 0.8 and 0.2, epsilons 1",
            "delta_1 > delta_2 makes X_j = 0 likelier than either alone",
            f"{along.both_suppressed(1, 1):.3f} against {along.suppressed(1):.3f} and {math.e:.3f}",
            *judged([along.both_suppressed(1, 1) > max(along.suppressed(1), math.e)]),
        ),
    ]


def freedom_claim() -> Claim:
    """Return at which epsilon there is freedom from exclusion attacks, with and without dependence."""
    alone, joint = (
        suppression(Dependence.from_table(table, names=("i", "j")), {"i": [0], "j": [0]}, {"i": 1.0, "j": 1.0})
        for table in (
            {(0, 0): 0.25, (0, 1): 0.25, (1, 0): 0.25, (1, 1): 0.25},
            {(0, 0): 0.4, (0, 1): 0.1, (1, 0): 0.1, (1, 1): 0.4},
        )
    )
    free, dependent = (outcomes(release, "j", ["i", "j"]).freedom()[0] for release in (alone, joint))
    return Claim(
        "section III",
        "freedom of j from exclusion attacks, both asked for at epsilon 1",
        "at epsilon 1 if records are independent",
        f"at {free:.4f} if they are; at {dependent:.4f} for delta 0.8 and 0.2",
        *judged([math.isclose(free, 1.0), dependent > 1.5]),
    )


def coin_claim() -> Claim:
    """Return what asking again tells: nothing, if the coin of a record is tossed once and remembered."""
    joint = {(0, 0): 0.4, (0, 1): 0.1, (1, 0): 0.1, (1, 1): 0.4}
    both = Dependence.from_table(joint, names=("i", "j"))
    odds = [
        math.exp(suppression(both, {"i": [0], "j": [0]}, {"i": 1.0}, coins).log_odds("j", suppressed={"i": 5}))
        for coins in ("fresh", "remembered")
    ]
    pair = BitPair(0.5, 0.5, 0.8, 0.2)
    return Claim(
        "Corollary 1, practice",
        "odds of X_j after 5 suppressions of i, delta 0.8 and 0.2, epsilon 1",
        f"{pair.suppressed(1.0, 5):.3f}: every question costs again",
        f"{odds[0]:.3f} with fresh coins; {odds[1]:.3f} where the coin is remembered, as ours are",
        *judged([math.isclose(odds[0], pair.suppressed(1.0, 5)), False], why="only if a coin is tossed anew each time"),
    )


def scope_claims() -> list[Claim]:
    """Return what the paper's measures miss: values that a release shows, and more than two attributes."""
    value, predicted, whole = value_leak()
    copies, product_of_copies = three_copies()
    parity, product_of_parity = three_by_parity()
    together = Dependence.from_table(_parity(), names=("1", "2", "3"))
    release = suppression(together, {name: [0] for name in "123"}, {"1": 5.0, "2": 5.0})
    pairs = sum(mutual_information(release, "3", [name]) for name in "12")
    joint = mutual_information(release, "3", ["1", "2"])
    return [
        Claim(
            "Theorem 3, (21)",
            "three values s, a, b of i; a and b decide X_j; epsilon 1",
            "nothing is learned: delta_1 = delta_2",
            f"I(X_j; M_i) = {predicted:.4f}, but what is seen tells {value:.4f} of {whole:.4f} nats",
            NO,
            "a release shows its value; measure what is released or nothing, not whether",
        ),
        Claim(
            "section V.B, composition",
            "odds of X_3 after two suppressions, X_1 = X_2 a copy, epsilon 2",
            f"product of the pairwise factors: {product_of_copies:.2f}",
            f"{copies:.2f}",
            NO,
            "it holds for two attributes, as proved; for three it does not",
        ),
        Claim(
            "section V.B, composition",
            "the same for X_3 = X_1 xor X_2, epsilon 50",
            f"product of the pairwise factors: {product_of_parity:.3g}",
            f"{parity:.3g}",
            NO,
            "here the product understates, without bound",
        ),
        Claim(
            "section V.C, (21)",
            "leakage as a sum over pairs, X_3 = X_1 xor X_2, epsilon 5",
            f"sum of pairs {pairs:.4f} nats",
            f"both together {joint:.4f} nats",
            NO,
            "a sum over pairs misses what only both together tell; use the joint measure for coalitions",
        ),
    ]


def value_leak() -> tuple[float, float, float]:
    """Return what is truly learned about X_j, what the paper's measure says, and all there is to learn, in nats.

    i has the values s (sensitive), a and b with chances 0.2, 0.4 and 0.4. X_j is 0 at a, 1 at b, and even at s.
    """
    chances = {("s", 0): 0.1, ("s", 1): 0.1, ("a", 0): 0.4, ("b", 1): 0.4}
    release = suppression(
        Dependence.from_table(chances, names=("i", "j")), sensitive={"i": ["s"], "j": [0]}, epsilon={"i": 1.0}
    )
    return (
        mutual_information(release, "j", ["i"]),
        mutual_information(release, "j", ["i"], value=False),
        math.log(2),
    )


def three_copies() -> tuple[float, float]:
    """Return the odds of X_3 = 0 once X_1 and its copy X_2 were suppressed at epsilon 2, and the product of factors."""
    table = {(0, 0, 0): 0.45, (1, 1, 0): 0.05, (0, 0, 1): 0.05, (1, 1, 1): 0.45}
    return _odds_and_product(table, 2.0)


def three_by_parity() -> tuple[float, float]:
    """Return the same for X_3 = X_1 xor X_2 at epsilon 50."""
    return _odds_and_product(_parity(), 50.0)


def _parity() -> dict[tuple[int, int, int], float]:
    return {(a, b, a ^ b): 0.25 for a, b in product((0, 1), repeat=2)}


def _odds_and_product(table: dict[tuple[int, int, int], float], epsilon: float) -> tuple[float, float]:
    release = suppression(
        Dependence.from_table(table, names=("1", "2", "3")),
        sensitive={name: [0] for name in "123"},
        epsilon={"1": epsilon, "2": epsilon},
    )
    exact = math.exp(release.log_odds("3", suppressed=["1", "2"]))
    factors = math.prod(bit_pair(release, name, "3").suppressed(epsilon) for name in "12")
    return exact, factors * bit_pair(release, "1", "3").prior_odds


# ---- the optimisation -----------------------------------------------------------------------------------------------


def information_claims(grid: Sequence[Setting]) -> list[Claim]:
    """Return whether the printed formulas of mutual information are right, for bits."""
    apart = 0.0
    for setting in grid:
        release, pair = setting.release(), setting.pair()
        exact = [outcomes(release, name, ["i"], target_bit=True, seen_bits=True).information() for name in "ij"]
        printed = [own_information(pair.seen_share, setting.epsilon_i), pair.information(setting.epsilon_i)]
        apart = max(apart, *(abs(a - b) for a, b in zip(exact, printed, strict=True)))
    return [
        Claim(
            "section V.C",
            f"I(X_i; M_i) and I(X_j; M_i), {len(grid):,} settings",
            "closed forms by binary entropies",
            f"apart by {apart:.0e} nats at most",
            *judged([apart < SAME]),
        )
    ]


def leakage(dependence: Dependence, sensitive: dict[str, list[str]], name: str, epsilon: float) -> float:
    """Return I_i, the paper's (21): what M_i says about every X, added up."""
    release = suppression(dependence, sensitive, {name: epsilon})
    return sum(mutual_information(release, other, [name], value=False) for other in sensitive)


def optimisation_claims(dependence: Dependence, sensitive: dict[str, list[str]]) -> list[Claim]:
    """Return what there is to say about the printed optimisation: it has no solution for ordinary limits."""
    names = list(sensitive)
    most = {name: leakage(dependence, sensitive, name, math.inf) for name in names}
    least = min(most, key=lambda name: most[name])
    shares = np.linspace(0, 1, 41)[:-1]
    by_share = {n: np.array([leakage(dependence, sensitive, n, -math.log1p(-u)) for u in shares]) for n in names}
    by_epsilon = {n: np.array([leakage(dependence, sensitive, n, e) for e in np.linspace(0, 6, 41)]) for n in names}
    convex = all(_bends_up(curve) for curve in by_share.values())
    neither = all(not _bends_up(curve) for curve in by_epsilon.values())
    return [
        Claim(
            "section V.C",
            "maximise the sum of epsilons under a limit T on the sum of leakages",
            "a threshold T gives the epsilons",
            f"no largest sum for any T from {most[least]:.4f} nats on: {least} may then be released with certainty",
            NO,
            "leakage saturates while epsilon grows without bound; a cap is needed, or release probabilities",
        ),
        Claim(
            "section V.C",
            "leakage as a function of epsilon",
            "not necessarily convex",
            "not convex in epsilon for any of the attributes" if neither else "convex in epsilon for some attribute",
            *judged([neither], why="here it is"),
        ),
        Claim(
            "section V.C",
            "a convex program with a bound on how far from the best it is",
            "future work",
            f"leakage is {'convex' if convex else 'not convex'} in the release probability 1 - e^-epsilon, so that the "
            "expected number of releases is maximised with a certificate",
            YES if convex else NO,
            "" if convex else "not here",
        ),
    ]


def _bends_up(curve: Floats) -> bool:
    return all(b - a >= -1e-12 for a, b in pairwise(np.diff(curve).tolist()))
