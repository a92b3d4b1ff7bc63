"""Document 004: its examples and small tables about noisy answers (chapters 1 to 3), claimed and recomputed."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.special import gammaincc

from tacit import noise
from tacit.audit.disclosure_audits.ratios import closeness, ratio_cdf
from tacit.audit.disclosure_audits.yardsticks import syntactic
from tacit_reproductions.document_004.tables import read_adult
from tacit_reproductions.reproduction import Part, Run
from tacit_reproductions.results import Claim, Table, check, same

SCALES: Final = (200, 20, 4)
ANSWERS: Final = (501, 420)
# Table 3.1, over 10 trials: the mean of the noisy confidence, and mean and standard error of the two relative errors
TABLE_3_1: Final = {
    200: (1.34392, (0.614742, 0.570118), (0.533185, 0.983959)),
    20: (0.860966, (0.0693353, 0.102247), (0.0272098, 0.0820627)),
    4: (0.832659, (0.0262412, 0.069974), (0.0144438, 0.0636316)),
}
TRIALS: Final = 10
IMPLAUSIBLE: Final = 0.01  # chance, of each of two checks at each of three scales
_DRAWN: Final = 10**5
# Table 3.2: 2 (b/phi)^2 at phi = 5000, 1000, 500, 200, 100
TABLE_3_2: Final = {
    10: (0.000008, 0.0002, 0.0008, 0.005, 0.02),
    20: (0.000032, 0.0008, 0.0032, 0.02, 0.08),
    40: (0.000128, 0.0032, 0.0128, 0.08, 0.32),
    200: (0.0032, 0.08, 0.32, 2, 8),
}
LAW: Final = "the law of Laplace noise; no data"
GROUP: Final = {"education": "Prof-school", "occupation": "Prof-specialty", "race": "White", "sex": "Male"}


def examples(_: Run) -> Part:
    """Return Examples 1 to 3 and Tables 2.1, 3.1, 3.2 and 3.6."""
    claims_3_1, table_3_1 = _table_3_1()
    return Part(
        claims=(
            *_example_1(),
            _table_2_1(),
            *_example_2(),
            *claims_3_1,
            _lemma_1(),
            _table_3_2(),
            _rule(),
            *_example_3(),
        ),
        tables=(table_3_1,),
    )


def chance_of_share(noisy: tuple[float, float], share: float, scale: float) -> float:
    """Return how likely the true share is at least so large, given two noisy answers and no other knowledge.

    It is P(xi_2 - share xi_1 <= noisy_2 - share noisy_1) for the two noises: that Y - share X lies below its mean by
    less, which is a matter of the upper tail of a sum of two Laplace variables.
    """
    far = noisy[1] - share * noisy[0]
    # the law of the sum, from the ratio of two counts so large that neither is ever negative
    large = 1e6 * scale
    return 1 - float(ratio_cdf(share, share * large + far, large, scale))


def _example_1() -> list[Claim]:
    within = -math.expm1(-3)
    both, share = within**2, 910 / 1030
    chance = chance_of_share((1000, 940), 0.9, 10)
    return [
        Claim(
            "1.1",
            "noise within 30, b = 10",
            LAW,
            "about .9",
            f"{within:.3f}",
            (same("chance", within, 0.9, 0.005),),
            "F(30) - F(-30) = 1 - e^-3",
        ),
        Claim(
            "Example 1",
            "both noises within 30",
            LAW,
            "about .81",
            f"{both:.3f}",
            (same("chance", both, 0.81, 0.005),),
            "the square of the chance before",
        ),
        Claim(
            "Example 1",
            "share of HIV then, at least",
            "the example's own numbers",
            "90%",
            f"{share:.1%}",
            (check("910 / 1030", share, "at least", 0.9),),
        ),
        Claim(
            "Example 1",
            "confidence that at least 90% have HIV",
            LAW,
            "more than 81%",
            f"{chance:.1%}",
            (check("chance", chance, "above", 0.81),),
        ),
    ]


def _table_2_1() -> Claim:
    rows = pd.DataFrame(
        {
            "job": ["Professional"] * 3 + ["Artist"] * 4,
            "sex": ["Male"] * 3 + ["Female"] * 4,
            "age": ["[35-40)"] * 3 + ["[30-35)"] * 4,
            "disease": ["Hepatitis", "Hepatitis", "HIV", "Flu", "HIV", "HIV", "HIV"],
        }
    )
    found = syntactic(rows, public=["job", "sex", "age"], sensitive="disease")
    artists = (rows.disease[rows.job == "Artist"] == "HIV").mean()
    ours = f"k = {found.k}; {artists:.0%}; l = {found.distinct}, t = {found.t_equal:.3f}, beta = {found.beta:.2f}"
    checks = (check("k", found.k, "is", 3), check("share of artists", float(artists), "is", 0.75))
    return Claim("Table 2.1", "k-anonymity; artists with HIV", "the table's own rows", "k = 3; 75%", ours, checks)


def _example_2() -> list[Claim]:
    adult = read_adult()
    group = adult[np.logical_and.reduce([adult[name] == value for name, value in GROUP.items()])]
    rich = int((group.income == ">50K").sum())
    share = float((adult.income == ">50K").mean())
    rows = (
        ("people without missing values", "{:,}", (45_222,), (len(adult),)),
        ("the two answers", "{} and {}", ANSWERS, (len(group), rich)),
        ("the confidence", "{:.4f}", (0.8383,), (round(rich / len(group), 4),)),
        ("income above 50K among all", "{:.2%}", (0.2478,), (round(share, 4),)),
    )
    data = "Adult, the paper's data, part of the package"
    return [
        Claim("Example 2", what, data, form.format(*said), form.format(*ours), (check(what, ours, "is", said),))
        for what, form, said, ours in rows
    ]


def _table_3_1() -> tuple[list[Claim], Table]:
    phi, theta = ANSWERS
    lines, claims = [], []
    drawn = np.abs(noise.discrete_laplace(1 << 20, (_DRAWN, TRIALS))) / (1 << 20)
    usual = drawn.std(axis=1, ddof=1) / math.sqrt(TRIALS)  # in units of the scale
    for scale in SCALES:
        errors = np.asarray(noise.discrete_laplace(scale, (TRIALS, 2)))
        guesses = (theta + errors[:, 1]) / (phi + errors[:, 0])
        relative = np.abs(errors) / np.array(ANSWERS)
        close = closeness(theta, phi, scale, 0.2)
        conf, means, spreads = TABLE_3_1[scale]
        # a mean of ten absolute Laplace errors is a Gamma variable; their standard error is drawn
        chances = [
            float(gammaincc(TRIALS, TRIALS * got * true / scale)) for got, true in zip(means, ANSWERS, strict=True)
        ]
        of_spreads = [
            float((1 + (usual >= got * true / scale).sum()) / (1 + _DRAWN))
            for got, true in zip(spreads, ANSWERS, strict=True)
        ]
        lines.append(
            (
                str(scale),
                f"{conf:.3f}",
                f"{guesses.mean():.3f} ± {guesses.std(ddof=1) / math.sqrt(TRIALS):.3f}",
                ", ".join(f"{number:.4f}" for number in means),
                ", ".join(f"{number:.4f}" for number in relative.mean(axis=0)),
                ", ".join(f"{scale / true:.4f}" for true in ANSWERS),
                ", ".join(f"{chance:.1g}" for chance in chances),
                ", ".join(f"{number:.4f}" for number in spreads),
                ", ".join(f"{scale / true / math.sqrt(TRIALS):.4f}" for true in ANSWERS),
                ", ".join(f"{chance:.1g}" for chance in of_spreads),
                f"{close:.4f}",
            )
        )
        told = ", ".join(f"{scale / true:.3f} ± {scale / true / math.sqrt(TRIALS):.3f}" for true in ANSWERS)
        claims.append(
            Claim(
                "Table 3.1",
                f"the two errors and their standard errors at b = {scale}",
                f"{LAW}; {_DRAWN:,} draws for standard errors",
                ", ".join(f"{one:.3f} ± {off:.3f}" for one, off in zip(means, spreads, strict=True)),
                f"expected {told}",
                (
                    check("chance that both means are so large", _both(chances), "at least", IMPLAUSIBLE),
                    check("chance that both standard errors are so large", _both(of_spreads), "at least", IMPLAUSIBLE),
                ),
                "numbers so large do not come from this noise in ten trials: no oracle",
            )
        )
    notes = (
        "Ten trials as in the paper; the noisy confidence has no mean, so its average says little where b is large.",
        "Chance: how likely ten trials have a number as large as the printed one; claims go by both together (Fisher). "
        "Conf' is not judged. CP is the probability that the noisy confidence is within 20% of the true one.",
    )
    headings = (
        "b",
        "Conf' printed",
        "Conf' here",
        "errors printed",
        "errors here",
        "errors expected",
        "chance",
        "SE printed",
        "SE expected",
        "chance of SE",
        "CP",
    )
    return claims, Table(
        "Table 3.1: one group of Adult, 501 people of whom 420 earn more than 50K", headings, lines, notes
    )


def _both(chances: list[float]) -> float:
    """Return how likely two independent chances have a product as small as these (Fisher)."""
    small = math.prod(chances)
    return small * (1 - math.log(small))


def second_moment(theta: float, phi: float, scale: float, least: float) -> float:
    """Return E[(Y/X)^2] over X at least so far from 0, for Laplace noise: it grows without end as `least` falls."""

    def weight(x: float) -> float:
        return math.exp(-abs(x - phi) / scale) / (2 * scale) / x**2

    far = phi + 60 * scale
    ends = [*np.geomspace(least, phi, 40).tolist(), *np.linspace(phi, far, 8)[1:].tolist()]
    parts = [quad(weight, sign * a, sign * b)[0] * sign for a, b in pairwise(ends) for sign in (1, -1)]
    return (theta**2 + 2 * scale**2) * math.fsum(parts)


def _lemma_1() -> Claim:
    """Judge Corollary 2: a mean within 2 (b/phi)^2 of theta/phi and a variance of at most 4 (b/phi)^2."""
    theta, phi, scale = 80, 100, 20
    bound = 4 * (scale / phi) ** 2 + (theta / phi + 2 * (scale / phi) ** 2) ** 2
    cuts = (1.0, 1e-2, 1e-4)
    found = [second_moment(theta, phi, scale, cut) for cut in cuts]
    return Claim(
        "Lemma 1, Corollary 2",
        f"E[(Y/X)^2] at b = {scale}, phi = {phi}, theta = {theta}, over X at least 1, .01, .0001 from 0",
        "real-valued Laplace noise, by quadrature; no data",
        f"a variance of at most 0.16 and a mean of at most 0.88, so at most {bound:.3g}",
        "; ".join(f"{value:.3g}" for value in found),
        (check("second moment over X so far from 0", found, "at most", bound),),
        "the density of X at 0 is positive, so that Y/X has no mean and an infinite variance; CP takes its place",
    )


def _table_3_2() -> Claim:
    sizes = (5000, 1000, 500, 200, 100)
    printed = [one for row in TABLE_3_2.values() for one in row]
    ours = [2 * (scale / size) ** 2 for scale in TABLE_3_2 for size in sizes]
    ratios = [a / b for a, b in zip(ours, printed, strict=True)]
    return Claim(
        "Table 3.2",
        f"2 (b/phi)^2, all {len(printed)} cells",
        "the formula; no data",
        "as printed, .0032 at b = 20, phi = 500",
        f"{2 * (20 / 500) ** 2:.4f} there; the formula over the printed cells {min(ratios):.3f} to {max(ratios):.3f}",
        (check("distance of that ratio from 1", [abs(one - 1) for one in ratios], "at most", 1e-9),),
    )


def _rule() -> Claim:
    found = [closeness(share * 1000, 1000, 50, 0.2) for share in (0.5, 0.7, 0.9)]
    ours = f"CP within 20%: {', '.join(f'{one:.3f}' for one in found)} at shares .5, .7, .9"
    return Claim(
        "section 3.2",
        "b/phi = 1/20",
        LAW,
        "a good indicator",
        ours,
        (check("chance of a guess within 20%", found, "at least", 0.9),),
    )


def _example_3() -> list[Claim]:
    rows = pd.DataFrame(
        {
            "Gender": list("FFMMMF"),
            "Occupation": ["Lawyer", "Engineer", "Engineer", "Lawyer", "Engineer", "Lawyer"],
            "Disease": ["Flu", "HIV", "Flu", "HIV", "Flu", "HIV"],
        }
    )
    two = rows.groupby(["Gender", "Occupation"]).size()
    three: Any = pd.crosstab([rows.Gender, rows.Occupation], rows.Disease)
    printed = {("M", "Lawyer"): (0, 1), ("M", "Engineer"): (2, 0), ("F", "Lawyer"): (1, 1), ("F", "Engineer"): (0, 1)}
    same_cells = sum(tuple(three.loc[cell]) == counts and two[cell] == sum(counts) for cell, counts in printed.items())
    steps = {"EDU, OCC": 4 * math.comb(4, 2), "SALARY": 4 * math.comb(6, 2)}
    return [
        Claim(
            "Table 3.6",
            "the marginals of Example 3",
            "the example's own rows",
            "as printed",
            f"{same_cells} of {len(printed)} cells are the same",
            (check("cells that are the same", same_cells, "is", len(printed)),),
        ),
        Claim(
            "Equation 3.12",
            "Delta for four and for six public attributes",
            "the formula; no data",
            "24; 60",
            "; ".join(str(step) for step in steps.values()),
            (check("Delta", list(steps.values()), "is", (24, 60)),),
        ),
    ]
