"""Lemmas 2 and 3, Theorems 1 to 7 and Corollaries 1 and 3 to 5 of document 004: each printed formula beside the law."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
from scipy.stats import binom

from tacit import noise
from tacit.audit.disclosure_audits.ratios import closeness, ratio_cdf
from tacit.audit.exact_audit import exact
from tacit.audit.selfcheck.planted.tables import plain_estimates, planted_tables
from tacit.noise.keystream import Keystream
from tacit.noise.two_scale import TwoScale
from tacit.plan.questions import histogram
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.secrets import everything
from tacit.publish.methods.criterion import Channel, Criterion, chernoff_size, exact_tails
from tacit.publish.methods.perturbation import Uniform, perturb
from tacit_reproductions.document_004.examples import LAW
from tacit_reproductions.document_004.violations import DEFAULT, EACH
from tacit_reproductions.document_004.workload import Floats, Ints
from tacit_reproductions.reproduction import Part, Run
from tacit_reproductions.results import Claim, check, same, spread

ALPHA: Final = 1e-6  # chance that draws lie farther from a law than said (Dvoretzky, Kiefer, Wolfowitz)
CHANNELS: Final = (Channel(Fraction(1, 2), 10), Channel(Fraction(1, 5), 2), Channel(Fraction(9, 10), 3))
GROUPS: Final = ((1, 10), (5, 10), (3, 40), (20, 40), (36, 40), (30, 300), (150, 300))  # people with the value, people
RATIOS: Final = ((420, 501, 20), (420, 501, 200), (30, 100, 20), (5, 8, 10), (90, 100, 40))  # theta, phi, b
ALL_OUTCOMES: Final = "the law of perturbed counts, enumerated; no data"
_LAMBDAS: Final = tuple(Fraction(n, 20) for n in (1, 3, 6, 10, 16, 20))
_RATIO_DRAWS: Final = 200_000
_FINE: Final = 1 << 20


def theorems(run: Run) -> Part:
    """Return every lemma, theorem and corollary that no other part has."""
    return Part(
        claims=(
            _theorem_1(),
            _corollary_1(),
            *_ratio_claims(),
            _theorem_3(200 if run.quick else 2_000),
            _lemma_3(),
            _theorem_4(),
            *_bound_claims(),
            _corollary_4(),
            _theorem_6(300 if run.quick else 5_000),
            _theorem_7(),
            _complexity(),
        )
    )


# ---- chapters 2 and 3: noise and ratios -----------------------------------------------------------------------------


def _theorem_1() -> Claim:
    """Judge the Laplace mechanism by whole-number noise, whose loss is exact."""
    losses = {
        f"{cells} counts, epsilon {epsilon}": float(
            exact(histogram("x"), Policy(Domain({"x": Integers(0, cells - 1)}), everything()), epsilon).forward
            / epsilon
        )
        for cells, epsilon in product((2, 5), (Fraction(1, 10), Fraction(1)))
    }
    return Claim(
        "Theorem 1",
        "noise of scale Delta/epsilon on every answer, Delta = 2 for histograms",
        "Tacit's plan for a histogram under differential privacy, its exact audit; no data",
        "epsilon-differential privacy",
        ", ".join(f"{what}: {loss:.3f} epsilon" for what, loss in losses.items()),
        (check("loss over epsilon", list(losses.values()), "at most", 1 + 1e-9),),
    )


def _corollary_1() -> Claim:
    """Judge the convergence of noisy confidences: in probability, since they have no mean."""
    sizes = np.array([10**2, 10**3, 10**4, 10**5])
    of = 7 * sizes // 10
    whole = TwoScale(Fraction(20), Fraction(20))
    found = {
        **{name: closeness(of, sizes, 20, 0.01, name.lower()) for name in ("Laplace", "Gaussian")},
        "whole numbers": closeness(of, sizes, None, 0.01, whole),
    }
    return Claim(
        "Corollary 1",
        "chance that Y/X is within 1% of .7, noise of scale 20, groups of 100, 1,000, 10,000, 100,000",
        "the laws of three noises; no data",
        "Y/X approaches theta/phi for any noise of mean 0",
        "; ".join(f"{name}: {', '.join(f'{one:.3f}' for one in chances)}" for name, chances in found.items()),
        (
            check("change with the next larger group", [np.diff(one) for one in found.values()], "above", 0),
            check("chance at 100,000", [one[-1] for one in found.values()], "above", 0.99),
        ),
    )


def printed_cdf(z: float, theta: float, phi: float, b: float) -> float:
    """Return F_Z(z) as Lemma 2 prints it (Equations 3.7 to 3.9): not for z = 0, 1, -1."""
    both = math.exp(-(theta + phi) / b) / (2 * (z + 1))
    square = z * z
    if z < 0:
        first = square / (2 * (1 - square)) * math.exp((theta - z * phi) / (z * b))
        last = math.exp((z * phi - theta) / b) / (2 * (square - 1))
        return first - both + math.exp(-phi / b) / 2 - last
    if z <= theta / phi:
        first = square / (2 * (square - 1)) * math.exp((z * phi - theta) / (z * b))
        last = math.exp((z * phi - theta) / b) / (2 * (square - 1))
        return first - both + math.exp(-phi / b) / 2 - last
    first = square / (2 * (1 - square)) * math.exp((theta - z * phi) / (z * b))
    last = math.exp((theta - z * phi) / b) / (2 * (1 - square))
    return first - both + 1 + math.exp(-phi / b) / 2 - last


def _ratio_claims() -> list[Claim]:
    """Judge Lemma 2, Theorem 2 and Corollary 3 by Tacit's own formulas, and Lemma 2 by draws."""
    at = [z for z in np.linspace(-3, 3, 61).round(2).tolist() if z not in (-1.0, 0.0, 1.0)]
    apart = [abs(printed_cdf(z, *one) - ratio_cdf(z, *one)) for one in RATIOS for z in at]
    off = []
    for theta, phi, b in RATIOS:
        errors = noise.discrete_laplace(b * _FINE, (_RATIO_DRAWS, 2)) / _FINE
        drawn = np.sort((theta + errors[:, 1]) / (phi + errors[:, 0]))
        shares = np.searchsorted(drawn, at, side="right") / _RATIO_DRAWS
        off.append(max(abs(share - printed_cdf(z, theta, phi, b)) for share, z in zip(shares, at, strict=True)))
    allowed = math.sqrt(math.log(2 / ALPHA) / (2 * _RATIO_DRAWS))
    # Theorem 2 and Corollary 3: tau' is an absolute error, tau a relative one
    taus = (0.05, 0.2, 0.5, 1.3, 2.5)
    chances = [
        (
            printed_cdf((1 + tau) * theta / phi, theta, phi, b) - printed_cdf((1 - tau) * theta / phi, theta, phi, b),
            float(closeness(theta, phi, b, tau)),
        )
        for (theta, phi, b), tau in product(RATIOS, taus)
    ]
    far = [float(closeness(0.7 * phi, phi, 20, 0.05 / 0.7)) for phi in (10**2, 10**3, 10**4, 10**5)]
    return [
        Claim(
            "Lemma 2",
            f"F(z) of the ratio of two noisy answers, {len(RATIOS)} settings, {len(at)} z from -3 to 3",
            f"Equations 3.7 to 3.9 as printed, Tacit's formula, and {_RATIO_DRAWS:,} draws; no data",
            "a closed form where z is not 0, 1 or -1",
            f"apart by {max(apart):.1g} at most; draws by {max(off):.4f}, of {allowed:.4f} that chance allows at "
            f"alpha {ALPHA:g}; Tacit has the three limits, too",
            (
                check("distance from Tacit's formula", apart, "at most", 1e-12),
                check("distance from the share of draws", off, "at most", allowed),
            ),
        ),
        Claim(
            "Theorem 2",
            "chance that Y/X is within .05 of .7, b = 20, groups of 100, 1,000, 10,000, 100,000",
            LAW,
            "approaches 1",
            ", ".join(f"{one:.4f}" for one in far),
            (check("change", np.diff(far), "at least", 0), same("the last", far[-1], 1, 1e-9)),
        ),
        Claim(
            "Theorem 2, Corollary 3",
            f"CP for {len(taus)} tau from .05 to 2.5, {len(RATIOS)} settings",
            "differences of the printed F, and Tacit's `closeness`; no data",
            "the difference of two F, with another one where tau > 1",
            f"apart by {max(abs(a - b) for a, b in chances):.1g} at most",
            (check("distance", [abs(a - b) for a, b in chances], "at most", 1e-12),),
        ),
    ]


# ---- chapter 4: perturbed counts ------------------------------------------------------------------------------------


def counts_law(count: int, size: int, channel: Channel) -> Floats:
    """Return how likely each perturbed count is, where `count` of `size` people have the value."""
    own = binom.pmf(np.arange(count + 1), count, channel.kept)
    other = binom.pmf(np.arange(size - count + 1), size - count, float(channel.spread))
    return np.convolve(own, other)


def _settings() -> list[tuple[int, int, Channel]]:
    return [(count, size, channel) for (count, size), channel in product(GROUPS, CHANNELS)]


def _theorem_3(tables: int) -> Claim:
    """Judge the MLE: whether other vectors that add up to one make a perturbed table likelier."""
    better, negative, apart = 0, 0, 0.0
    for channel in CHANNELS:
        m, size = channel.values, 30
        matrix = float(channel.retention) * np.eye(m) + float(channel.spread)
        shown = perturb(np.tile(np.bincount(np.arange(size) % m, minlength=m), (tables, 1)), channel)
        shown = shown[(shown > 0).all(axis=1)]
        found = np.linalg.solve(matrix, shown.T / size).T
        apart = max(apart, float(np.abs(found - Uniform(channel).estimates(shown, shown.sum(axis=1)) / size).max()))
        negative += int((found < 0).any(axis=1).sum())
        others = 0.01 + noise.uniform_below(10**6, (500, m)) / 10**6
        others = np.log(others / others.sum(axis=1, keepdims=True))
        most = (shown * np.log(shown / size)).sum(axis=1)
        better += int((shown @ others.T > most[:, np.newaxis] + 1e-9).sum())
    return Claim(
        "Theorem 3",
        f"the estimate P^-1 O*/n, {len(CHANNELS)} channels, {tables:,} tables each, 500 others beside each",
        "perturbed groups of 30 people, drawn; no data",
        "the likeliest of all that add up to 1",
        f"{better} others are likelier; {negative:,} of the estimates have negative frequencies",
        (
            check("others that are likelier", better, "is", 0),
            check("distance of Tacit's estimate", apart, "at most", 1e-12),
        ),
    )


def _lemma_3() -> Claim:
    means, biases = [], []
    for count, size, channel in _settings():
        law, f = counts_law(count, size, channel), count / size
        p, rest, at = float(channel.retention), float(channel.spread), np.arange(size + 1)
        means.append(abs(float(law @ at) / size - (f * p + rest)))
        estimates = Uniform(channel).estimates(at[:, np.newaxis], np.full(size + 1, size))[:, 0] / size
        biases.append(abs(float(law @ estimates) - f))
    return Claim(
        "Lemma 3",
        f"E[O*] = n (f p + (1-p)/m) and E[F'] = f, {len(means)} settings",
        ALL_OUTCOMES,
        "exactly",
        f"shares apart by {max(means):.1g} and {max(biases):.1g} at most",
        (
            check("distance of E[O*]/n", means, "at most", 1e-12),
            check("distance of E[F'] from f", biases, "at most", 1e-12),
        ),
    )


def _theorem_4() -> Claim:
    """Judge the bound conversion: both sides are chances of one event, so that any bound carries over."""
    apart, own = [], []
    for (count, size, channel), lam in product(_settings(), _LAMBDAS):
        law, p, rest, f = counts_law(count, size, channel), channel.retention, channel.spread, Fraction(count, size)
        mean = size * (f * p + rest)
        omega = lam * size * p * f / mean
        outcomes = range(size + 1)
        of_count = [(at - mean) / mean for at in outcomes]
        of_estimate = [((Fraction(at, size) - rest) / p - f) / f for at in outcomes]
        tails = [
            (_chance(law, counted), _chance(law, estimated))
            for counted, estimated in (
                ([one < -omega for one in of_count], [one < -lam for one in of_estimate]),
                ([one > omega for one in of_count], [one > lam for one in of_estimate]),
            )
        ]
        apart += [abs(a - b) for a, b in tails]
        ours = [float(one) for one in exact_tails(count, size, channel, lam)]
        own += [abs(a - b) for (_, a), b in zip(tails, ours, strict=True)]
    return Claim(
        "Theorem 4",
        f"tails of O* beyond omega and of F' beyond lambda = omega mu/(n p f), {len(apart)} tails",
        f"{ALL_OUTCOMES}, compared as fractions",
        "the same chances, so that any bound on one is a bound on the other",
        f"apart by {max(apart):.1g}; Tacit's exact tails by {max(own):.1g}",
        (
            check("distance of the two", apart, "is", 0.0),
            check("distance of Tacit's tails", own, "at most", 1e-10),
        ),
    )


def _chance(law: Floats, happens: list[bool]) -> float:
    return float(law[np.array(happens)].sum())


def _bound_claims() -> list[Claim]:
    """Judge Theorem 5 and Corollary 5, and the assumption that nobody has smaller bounds."""
    below, above = [], []  # each: the chance, and its bound
    for (count, size, channel), lam in product(_settings(), _LAMBDAS):
        mean = count * float(channel.retention) + size * float(channel.spread)
        omega = float(lam) * float(channel.retention) * count / mean
        low, high = (float(one) for one in exact_tails(count, size, channel, lam))
        above.append((high, math.exp(-(omega**2) * mean / (2 + omega))))
        below += [(low, math.exp(-(omega**2) * mean / 2))] if omega <= 1 else []
    ratios = [chance / bound for chance, bound in below + above]
    wide = [bound / chance for chance, bound in below + above if chance > 1e-12]
    return [
        Claim(
            "Theorem 5, Corollary 5",
            f"tails of O* and F' over the bounds U and L, {len(ratios)} tails",
            ALL_OUTCOMES,
            "each chance is below its bound",
            f"{spread(ratios, '{:.2g}'.format)} times the bound",
            (check("chance over bound", ratios, "below", 1),),
        ),
        Claim(
            "section 4.2.2",
            "U and L over the chances that they bound, the same tails",
            ALL_OUTCOMES,
            "the best bounds that an adversary has, since none better was found in 60 years",
            f"{spread(wide, '{:.3g}'.format)} times; in the middle {np.median(wide):.3g} times",
            (check("bound over chance", wide, "at most", 1.01),),
            "whoever knows n, p and m adds up two binomials and has the chance itself",
        ),
    ]


def _allowed() -> tuple[int, int, Channel, Criterion]:
    """Return the largest group that Corollary 6 calls private at its default: m = 10, f = .5."""
    channel = CHANNELS[0]
    wanted = Criterion(DEFAULT["lam"], DEFAULT["delta"], "chernoff", "each")
    size = int(chernoff_size(0.5, channel, wanted))
    return size // 2, size, channel, wanted


def _corollary_4() -> Claim:
    count, size, channel, wanted = _allowed()
    tails = [float(one) for one in exact_tails(count, size, channel, wanted.lam)]
    return Claim(
        "Corollary 4",
        f"{count} of {size} people, which Eq 4.8 calls (.3, .3)-private: chance of an error above .3 f, each tail",
        f"the law of perturbed counts, {EACH}; no data",
        "nobody can prove that it is below .3",
        f"{tails[0]:.3f} below, {tails[1]:.3f} above",
        (check("chance of each tail", tails, "at least", float(wanted.delta)),),
        "adding up the law proves it; Eq 4.8 goes by a bound that is too large",
    )


def _theorem_6(groups: int) -> Claim:
    """Judge SPS as printed, copies included, in groups far larger than the sample."""
    delta = float(DEFAULT["delta"])
    counts = np.tile([2_500, *[278] * 9], (groups, 1))
    scaled, _ = planted_tables["sampled-by-share"].publish(counts)
    errors = plain_estimates(scaled, counts.sum(axis=1)) / counts[:, 0] - 1
    lam = float(DEFAULT["lam"])
    tails = [float(np.mean(errors < -lam)), float(np.mean(errors > lam))]
    return Claim(
        "Theorem 6",
        "groups of 5,002, half of them with one of ten values: chance of an error above .3 f, each tail",
        f"SPS as printed, {groups:,} made-up groups; {EACH}",
        "(.3, .3)-reconstruction-private",
        f"{tails[0]:.3f} below, {tails[1]:.3f} above, for the plain estimate; copies give f away besides",
        (check("chance of each tail", tails, "at least", delta),),
        "it rests on Corollary 6; see also section 4.3",
    )


def sampling_bias(counts: Ints, sample: float) -> Floats:
    """Return E[sampled share of each value] over its share, less one: shares are rounded at random, value by value.

    Perturbing and scaling to |g|/|g_1| leave that share as it is on average, so this is the bias of F' in Theorem 7.
    """
    shares = counts * (sample / counts.sum())
    certain = np.floor(shares)
    part = shares - certain
    found = []
    for at in range(len(counts)):
        more = np.array([1.0])  # how many of the others get one record more
        for other in np.delete(part, at):
            more = np.convolve(more, [1 - other, other])
        total = certain.sum() + np.arange(len(more))
        mean = part[at] * (more @ ((certain[at] + 1) / (total + 1)))
        if certain[at]:
            mean += (1 - part[at]) * (more @ (certain[at] / total))
        found.append(mean / counts[at] * counts.sum() - 1)
    return np.array(found)


def _theorem_7() -> Claim:
    counts, channel = np.array([91, *[1] * 9]), Channel(Fraction(9, 10), 10)
    biases = {}
    for lam in (DEFAULT["lam"], Fraction(1, 2)):
        sample = float(chernoff_size(0.91, channel, Criterion(lam, DEFAULT["delta"], "chernoff", "each")))
        biases[f"lambda {float(lam):g}, s_g = {sample:.1f}"] = float(sampling_bias(counts, sample)[-1])
    return Claim(
        "Theorem 7",
        "bias of F' over f after SPS, 100 people of whom 91 have one of ten values and one has each other, p = .9",
        "the law of the sample, enumerated; scaled up from the sample's own size, as printed",
        "none but for rounding",
        "; ".join(f"{where}: {one:+.1%} for the rare values" for where, one in biases.items())
        + "; scaled up from s_g there is none",
        (check("size of the bias over f", [abs(one) for one in biases.values()], "at most", 0.001),),
        "a sample that happens to have a rare value is larger, and is scaled by less",
    )


class _Counted(Keystream):
    """A stream that counts the words that are drawn."""

    drawn = 0

    def words(self, kind: Any, count: int) -> Any:
        self.drawn += count
        return super().words(kind, count)


def _complexity() -> Claim:
    """Judge section 4.3: what Tacit draws for a table does not grow with its people once they are in groups."""
    counts, drawn = np.tile([50, 30, 15, 5], (100, 1)), []
    for times in (1, 10, 100):
        stream = _Counted(key=bytes(32))
        with noise.replayed(stream):
            perturb(times * counts, Channel(Fraction(1, 2), 4))
        drawn.append(stream.drawn)
    return Claim(
        "section 4.3",
        "random words for a perturbed table of 100 groups and 4 values, 10,000 to 1,000,000 people",
        "Tacit's uniform perturbation, its draws counted",
        "O(n log n): records are sorted, and each is perturbed once",
        ", ".join(f"{one:,}" for one in drawn) + " words; groups are counted by one group-by of the engine",
        (check("words beside n log n", drawn, "at most", [n * math.log(n) for n in (10**4, 10**5, 10**6)]),),
    )
