"""What document 001 claims, theorem by theorem, and where its scope ends: values, three attributes, optimisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
import numpy.typing as npt

from tacit.dependence.dependence import Dependence
from tacit.dependence.suppression import mutual_information, outcomes, suppression
from tacit_reproductions.document_001.closed_forms import BitPair, bit_pair, own_information
from tacit_reproductions.document_001.theorems import Line, Setting
from tacit_reproductions.results import Claim, check, same

SAME: Final = 1e-12
FORMULA: Final = "the printed formula; no data"
ENUMERATED: Final = "all worlds and coins, enumerated; no data"
Floats = npt.NDArray[np.float64]


def theorem_claims(found: Sequence[Line], grid: Sequence[Setting]) -> list[Claim]:
    """Return whether each theorem is what enumeration and drawing give, over the whole grid."""
    claims = [_lemma(grid)]
    for name in dict.fromkeys(line.statement.name for line in found):
        own = [line for line in found if line.statement.name == name]
        apart, outside = max(line.apart for line in own), sum(not line.fits for line in own)
        checks = [
            check("relative difference", apart, "below", SAME),
            check("intervals of draws that miss it", outside, "is", 0),
        ]
        if name == "Theorem 3":
            value, predicted, _ = value_leak()
            checks.append(check("nats that the released value tells beyond M_i", value - predicted, "below", SAME))
        claims.append(
            Claim(
                name,
                f"odds of X_j = 0, {len(own):,} settings",
                "the printed formula, enumeration, our audit, and draws; no data",
                _PRINTED[name],
                f"apart by {apart:.0e} at most; {len(own) - outside:,} of {len(own):,} intervals of draws hold it",
                tuple(checks),
                "right for the bit; a release also shows its value, see below",
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
        ENUMERATED,
        "the same as given X_i alone",
        f"chances apart by {worst:.0e} at most",
        (check("difference of chances", worst, "below", SAME),),
    )


def text_claims() -> list[Claim]:
    """Return what the text around the theorems says: limits, cancellation and reinforcement."""
    against, along = BitPair(0.4, 0.5, 0.2, 0.6), BitPair(0.5, 0.5, 0.8, 0.2)
    limits = (along.suppressed(0.0), BitPair(0.5, 0.5, 0.5, 0.5).suppressed(2.0), along.suppressed(40.0))
    cancels = against.cancelling_target_epsilon(1.0)
    assert cancels is not None  # noqa: S101 - delta_1 < delta_2
    left = against.both_suppressed(1.0, cancels)
    return [
        Claim(
            "section V.A",
            "f_1 at epsilon 0, for equal deltas, and for large epsilon (delta 0.8 and 0.2)",
            FORMULA,
            "1; 1; delta_1 / delta_2 = 4",
            "; ".join(f"{one:.6g}" for one in limits),
            (same("f_1", limits, (1, 1, 0.8 / 0.2), 1e-9),),
        ),
        Claim(
            "section V.B",
            "two suppressions that cancel, delta 0.2 and 0.6, epsilon_i = 1",
            FORMULA,
            "f_1(epsilon_i) e^epsilon_j can be about 1 where delta_1 < delta_2",
            f"exactly 1 at epsilon_j = {cancels:.4f}: factor {left:.12g}",
            (same("factor", left, 1, SAME),),
        ),
        Claim(
            "section V.B",
            "a release and a suppression that cancel",
            FORMULA,
            "the same for f_2 e^epsilon_j, where delta_1 < delta_2",
            f"f_2 = {against.released():g} for delta 0.2 and 0.6, {along.released():g} for 0.8 and 0.2",
            (check("f_2, which e^epsilon_j must raise to 1, for delta 0.2 and 0.6", against.released(), "below", 1),),
            "f_2 is below 1 where delta_1 is above delta_2",
        ),
        Claim(
            "section V.B",
            "two suppressions that reinforce each other, delta 0.8 and 0.2, epsilons 1",
            FORMULA,
            "delta_1 > delta_2 makes X_j = 0 likelier than either alone",
            f"{along.both_suppressed(1, 1):.3f} against {along.suppressed(1):.3f} and {math.e:.3f}",
            (check("both together", along.both_suppressed(1, 1), "above", max(along.suppressed(1), math.e)),),
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
        "our audit on two made-up pairs of attributes",
        "at epsilon 1 if records are independent",
        f"at {free:.4f} if they are; at {dependent:.4f} for delta 0.8 and 0.2",
        (same("independent records", free, 1, 1e-9), check("dependent records", dependent, "above", 1)),
    )


def coin_claim() -> Claim:
    """Return what asking again tells: nothing, if the coin of a record is tossed once and remembered."""
    joint = {(0, 0): 0.4, (0, 1): 0.1, (1, 0): 0.1, (1, 1): 0.4}
    both = Dependence.from_table(joint, names=("i", "j"))
    odds = [
        math.exp(suppression(both, {"i": [0], "j": [0]}, {"i": 1.0}, coins).log_odds("j", suppressed={"i": 5}))
        for coins in ("fresh", "remembered")
    ]
    stated = BitPair(0.5, 0.5, 0.8, 0.2).suppressed(1.0, 5)
    return Claim(
        "Corollary 1, practice",
        "odds of X_j after 5 suppressions of i, delta 0.8 and 0.2, epsilon 1",
        "our audit on a made-up pair of attributes, coins tossed anew and remembered",
        f"{stated:.3f}: every question costs again",
        f"{odds[0]:.3f} with fresh coins; {odds[1]:.3f} where the coin is remembered, as ours are",
        (same("odds with fresh coins, remembered coins", odds, [stated, stated], 1e-9),),
        "only if a coin is tossed anew each time",
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
            "our audit on made-up attributes",
            "nothing is learned: delta_1 = delta_2",
            f"I(X_j; M_i) = {predicted:.4f}, but what is seen tells {value:.4f} of {whole:.4f} nats",
            (check("nats that are learned", value, "below", SAME),),
            "a release shows its value; measure what is released or nothing, not whether",
        ),
        Claim(
            "section V.B, composition",
            "odds of X_3 after two suppressions, X_1 = X_2 a copy, epsilon 2",
            "our audit on made-up attributes",
            f"product of the pairwise factors: {product_of_copies:.2f}",
            f"{copies:.2f}",
            (same("exact odds over the product", copies / product_of_copies, 1, SAME),),
            "it holds for two attributes, as proved; for three it does not",
        ),
        Claim(
            "section V.B, composition",
            "the same for X_3 = X_1 xor X_2, epsilon 50",
            "our audit on made-up attributes",
            f"product of the pairwise factors: {product_of_parity:.3g}",
            f"{parity:.3g}",
            (same("exact odds over the product", parity / product_of_parity, 1, SAME),),
            "here the product understates, without bound",
        ),
        Claim(
            "section V.C, (21)",
            "leakage as a sum over pairs, X_3 = X_1 xor X_2, epsilon 5",
            "our audit on made-up attributes",
            f"sum of pairs {pairs:.4f} nats",
            f"both together {joint:.4f} nats",
            (check("nats that both together tell beyond the sum", joint - pairs, "below", SAME),),
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
            ENUMERATED,
            "closed forms by binary entropies",
            f"apart by {apart:.0e} nats at most",
            (check("difference in nats", apart, "below", SAME),),
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
    bends = {name: _least_bend(curve) for name, curve in by_epsilon.items()}
    least_bend = min(map(_least_bend, by_share.values()))
    far = leakage(dependence, sensitive, least, 1_000.0)
    run = "our audit of the dependence counted on the stand-in building, measure (21)"
    return [
        Claim(
            "section V.C",
            "maximise the sum of epsilons under a limit T on the sum of leakages",
            run,
            "a threshold T gives the epsilons",
            f"no largest sum for any T from {most[least]:.4f} nats on: {least} may then be released with certainty",
            (
                check(f"leakage of {least} at epsilon 1,000, T = {most[least] / 2:.4f}", far, "above", most[least] / 2),
                check(f"the same, T = {most[least]:.4f}", far, "above", most[least]),
            ),
            "leakage saturates while epsilon grows without bound; a cap is needed, or release probabilities",
        ),
        Claim(
            "section V.C",
            "leakage as a function of epsilon, 41 points from 0 to 6",
            run,
            "not necessarily convex",
            "least second differences: " + ", ".join(f"{name} {bend:.1e}" for name, bend in bends.items()),
            (check("least second difference of any attribute", min(bends.values()), "below", -SAME),),
        ),
        Claim(
            "section V.C",
            "a convex program with a bound on how far from the best it is, as ours",
            run,
            "future work",
            "leakage by the release probability 1 - e^-epsilon, so that the expected number of releases is maximised "
            f"with a certificate; least second difference {least_bend:.1e}",
            (check("least second difference of all attributes, up to rounding", least_bend, "at least", -SAME),),
        ),
    ]


def _least_bend(curve: Floats) -> float:
    return float(np.diff(curve, 2).min())
