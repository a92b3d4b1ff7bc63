"""Document 004: its examples and small tables about noisy answers (chapters 1 to 3), claimed and recomputed."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import gammaincc

from tacit import noise
from tacit.audit.disclosing.ratios import closeness, ratio_cdf
from tacit.audit.disclosing.yardsticks import syntactic
from tacit.papers.parts import Part, Setting
from tacit.papers.results import NO, PARTLY, YES, Claim, Table, judged
from tacit.papers.tables_004 import read_adult

SCALES: Final = (200, 20, 4)
ANSWERS: Final = (501, 420)
# Table 3.1: mean of the noisy confidence and of the two relative errors, over 10 trials
TABLE_3_1: Final = {
    200: (1.34392, 0.614742, 0.570118),
    20: (0.860966, 0.0693353, 0.102247),
    4: (0.832659, 0.0262412, 0.069974),
}
TRIALS: Final = 10
IMPLAUSIBLE: Final = 1e-4
GROUP: Final = {"education": "Prof-school", "occupation": "Prof-specialty", "race": "White", "sex": "Male"}


def examples(_: Setting) -> Part:
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
    wrong = "F(30) - F(-30) = 1 - e^-3; 910/1030 is below 90%"
    return [
        Claim("1.1", "noise within 30, b = 10", "about .9", f"{within:.3f}", NO, wrong),
        Claim("Example 1", "both noises within 30", "about .81", f"{both:.3f}", NO, wrong),
        Claim("Example 1", "share of HIV then, at least", "90%", f"{share:.1%}", NO, wrong),
        Claim(
            "Example 1",
            "confidence that at least 90% have HIV",
            "more than 81%",
            f"{chance:.1%}",
            *judged([chance > 0.81], why="less"),
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
    return Claim(
        "Table 2.1", "k-anonymity; artists with HIV", "k = 3; 75%", ours, *judged([found.k == 3, artists == 0.75])
    )


def _example_2() -> list[Claim]:
    adult = read_adult()
    group = adult[np.logical_and.reduce([adult[name] == value for name, value in GROUP.items()])]
    rich = int((group.income == ">50K").sum())
    share = float((adult.income == ">50K").mean())
    rows = (
        ("people without missing values", "45,222", f"{len(adult):,}"),
        ("the two answers", "501 and 420", f"{len(group)} and {rich}"),
        ("the confidence", ".8383", f"{rich / len(group):.4f}".removeprefix("0")),
        ("income above 50K among all", "24.78%", f"{share:.2%}"),
    )
    return [Claim("Example 2", *row, *judged([row[1] == row[2]], why="other data")) for row in rows]


def _table_3_1() -> tuple[list[Claim], Table]:
    phi, theta = ANSWERS
    lines, claims = [], []
    for scale in SCALES:
        errors = np.asarray(noise.discrete_laplace(scale, (TRIALS, 2)))
        guesses = (theta + errors[:, 1]) / (phi + errors[:, 0])
        relative = np.abs(errors) / np.array(ANSWERS)
        close = closeness(theta, phi, scale, 0.2)
        conf, *off = TABLE_3_1[scale]
        # a mean of ten absolute Laplace errors is a Gamma variable
        chances = [
            float(gammaincc(TRIALS, TRIALS * got * true / scale)) for got, true in zip(off, ANSWERS, strict=True)
        ]
        lines.append(
            (
                str(scale),
                f"{conf:.3f}",
                f"{guesses.mean():.3f} ± {guesses.std(ddof=1) / math.sqrt(TRIALS):.3f}",
                f"{off[0]:.4f}, {off[1]:.4f}",
                ", ".join(f"{number:.4f}" for number in relative.mean(axis=0)),
                ", ".join(f"{scale / true:.4f}" for true in ANSWERS),
                ", ".join(f"{chance:.1g}" for chance in chances),
                f"{close:.4f}",
            )
        )
        fits = min(chances) > IMPLAUSIBLE
        why = "" if fits else "errors so large do not come from this noise in ten trials: no oracle"
        told = f"expected {scale / phi:.3f}, {scale / theta:.3f}; so large with probability {min(chances):.1g}"
        claims.append(
            Claim("Table 3.1", f"errors at b = {scale}", f"{off[0]:.3f}, {off[1]:.3f}", told, YES if fits else NO, why)
        )
    notes = (
        "Ten trials as in the paper; the noisy confidence has no mean, so its average says little where b is large.",
        "The column chance: how likely ten trials have a mean error as large as the printed one. CP is the probability "
        "that the noisy confidence is within 20% of the true one.",
    )
    headings = ("b", "Conf' printed", "Conf' here", "errors printed", "errors here", "errors expected", "chance", "CP")
    return claims, Table(
        "Table 3.1: one group of Adult, 501 people of whom 420 earn more than 50K", headings, lines, notes
    )


def _lemma_1() -> Claim:
    """Return what becomes of the variance as more is drawn: without a variance it grows without end."""
    found = []
    for many in (10**3, 10**5, 10**6):
        noisy = np.asarray(noise.discrete_laplace(20, (many, 2)))
        shares = (80 + noisy[:, 1]) / np.where(100 + noisy[:, 0] == 0, 0.5, 100 + noisy[:, 0])
        found.append(float(shares.var()))
    why = "Y/X has no mean and an infinite variance: the density of X at 0 is positive. CP takes its place"
    ours = "; ".join(f"{value:.2g}" for value in found)
    return Claim(
        "Lemma 1, Corollary 2", "Var[Y/X] at b = 20, phi = 100 (10^3, 10^5, 10^6 draws)", "at most 0.16", ours, NO, why
    )


def _table_3_2() -> Claim:
    value = 2 * (20 / 500) ** 2
    return Claim("Table 3.2", "2 (b/phi)^2 at b = 20, phi = 500", ".0032", f"{value:.4f}".removeprefix("0"), YES)


def _rule() -> Claim:
    found = [closeness(share * 1000, 1000, 50, 0.2) for share in (0.5, 0.7, 0.9)]
    ours = f"CP within 20%: {', '.join(f'{one:.3f}' for one in found)} at shares .5, .7, .9"
    return Claim(
        "section 3.2", "b/phi = 1/20", "a good indicator", ours, PARTLY, "one guess in six to fifteen is further off"
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
    fits = all(tuple(three.loc[cell]) == counts and two[cell] == sum(counts) for cell, counts in printed.items())
    steps = {"EDU, OCC": 4 * math.comb(4, 2), "SALARY": 4 * math.comb(6, 2)}
    ours = "the same counts" if fits else "other counts"
    return [
        Claim("Table 3.6", "the marginals of Example 3", "as printed", ours, *judged([fits], why="miscounted")),
        Claim(
            "Equation 3.12",
            "Delta",
            "24; 60",
            "; ".join(str(step) for step in steps.values()),
            *judged([list(steps.values()) == [24, 60]]),
        ),
    ]
