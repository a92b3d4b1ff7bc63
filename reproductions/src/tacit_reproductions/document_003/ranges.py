"""Figure 2 of document 003: counts of ranges by the ordered and the ordered hierarchical mechanism, and by ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from tacit_reproductions.data import Line
from tacit_reproductions.document_003.line_trials import Asked, RangeErrors, our_noise, scored
from tacit_reproductions.document_003.ordered import (
    FAN_OUT,
    ConsistentTree,
    OrderedHierarchical,
    best_fan_out,
    equation_15,
)
from tacit_reproductions.measured import OURS, Number
from tacit_reproductions.results import Claim, Table, about, check, said, spread

ONE: Final = Fraction(1)
PRINTED: Final = "as printed (invalid)"
REPAIRED: Final = f"repaired, fan-out {FAN_OUT}"
BEST: Final = "repaired, best fan-out"
TREE: Final = "tree with consistency"
SHOWN: Final = (PRINTED, REPAIRED, BEST, TREE, OURS)
FULL: Final = "full"
DEGREE: Final = 111.1  # km, of latitude
KM: Final = 20 * DEGREE / 400  # a cell of the tweets' grid from south to north, which distances are counted in
_TREES: Final = (8, 9, 12, 16, 17, 20, 24)


@dataclass(frozen=True)
class Setting:
    """One line of a figure: a data set and how far apart values look alike."""

    line: str
    label: str
    theta: int

    def __str__(self) -> str:
        return f"{self.line}, theta {self.label}"


@dataclass(frozen=True)
class Effort:
    """How much is drawn: ranges, runs of ours and of the others, and at which epsilons."""

    epsilons: tuple[Fraction, ...]
    ranges: int
    runs: int
    baseline_runs: int


Measured: TypeAlias = Mapping[Setting, Mapping[Fraction, Mapping[str, RangeErrors]]]


def east_west(latitude: float) -> float:
    """Return how wide a cell of the tweets' grid is from west to east, in km: 15 degrees are 300 cells.

    >>> round(KM, 1), round(east_west(30), 1), round(east_west(40), 1)
    (5.6, 4.8, 4.3)
    """
    return 15 * DEGREE * math.cos(math.radians(latitude)) / 300


def of_adult(values: int, thetas: Sequence[int]) -> list[Setting]:
    """Return the lines of Figure 2(b), from the smallest theta."""
    labelled = [(str(theta), theta) for theta in thetas] + [(FULL, values)]
    return [Setting("Adult, capital loss", label, theta) for label, theta in labelled]


def of_latitudes(line: Line, distances: Sequence[int]) -> list[Setting]:
    """Return the lines of Figure 2(c); distances are in km, and there is one direction, from south to north."""
    labelled = [(f"{km} km", max(1, round(km / KM))) for km in distances] + [(FULL, len(line.counts))]
    return [Setting(line.name, label, theta) for label, theta in labelled]


def measured(line: Line, setting: Setting, effort: Effort) -> dict[Fraction, dict[str, RangeErrors]]:
    """Run all mechanisms on one line of a figure."""
    values, theta = len(line.counts), setting.theta
    running = np.concatenate([[0], np.cumsum(line.counts)])
    asked = Asked.drawn(values, effort.ranges)
    of_paper = {
        PRINTED: OrderedHierarchical(values, theta, printed=True),
        REPAIRED: OrderedHierarchical(values, theta),
        BEST: OrderedHierarchical(values, theta, best_fan_out(values, theta)),
    }
    found = {}
    for epsilon in effort.epsilons:
        drawn = {
            name: scored(asked, running, mechanism.noise(epsilon, effort.baseline_runs))
            for name, mechanism in of_paper.items()
        }
        if setting.label == FULL:
            trees = [ConsistentTree(values, fan_out).noise(epsilon, effort.baseline_runs) for fan_out in _TREES]
            drawn[TREE] = scored(asked, running, min(trees, key=lambda error: float((error**2).mean())))
        drawn[OURS] = scored(asked, running, *our_noise(line.counts, theta, epsilon, effort.runs))
        found[epsilon] = drawn
    return found


def _stand_in(name: str) -> str:
    """Say what a line is made of."""
    if name.startswith("Adult"):
        return "the paper's data"
    return "tweets placed at random in cells of a public histogram" if name.startswith("Twitter") else name


def range_tables(found: Measured) -> list[Table]:
    """Return Figures 2(b) and 2(c) as tables, with our own goals; all epsilons are on the page."""
    tables = []
    for figure, name in _figures(found).items():
        own = {setting: by for setting, by in found.items() if setting.line == name}
        lines, every, ways = [], [], []
        for setting, by_epsilon in own.items():
            for epsilon, by_name in by_epsilon.items():
                cells = (setting.label, f"{float(epsilon):g}", *_cells(by_name))
                every.append(cells)
                if epsilon == max(by_epsilon):
                    lines.append((*cells[:1], *cells[2:]))
                    ways.append(f"{setting.label}: {by_name[OURS].how}")
        headings = [*SHOWN, "ours / best repaired", "the same, rising"]
        title = f"Figure {figure[0]}({figure[1]}): {name}, mean squared error of a range"
        largest = f"{float(max(next(iter(own.values())))):g}"
        notes = (
            "After the arrow: the error once running counts were made to rise.",
            f"Tacit, by theta. {'; '.join(ways)}.",
        )
        tables.append(Table(f"{title}, epsilon {largest}", ("theta", *headings), lines, notes))
        tables.append(Table(f"{title}, every epsilon", ("theta", "epsilon", *headings), every, on_screen=False))
    return tables


def formula_table(values: int, settings: Sequence[Setting]) -> Table:
    """Return Equations 14 and 15 beside exact expectations and losses, for the paper's fan-out."""
    lines = []
    for setting in settings:
        printed, repaired = (OrderedHierarchical(values, setting.theta, printed=one) for one in (True, False))
        best = OrderedHierarchical(values, setting.theta, best_fan_out(values, setting.theta))
        lines.append(
            (
                setting.label,
                f"{equation_15(values, setting.theta, FAN_OUT, whole=False)[0]:,.1f}",
                f"{equation_15(values, setting.theta, FAN_OUT)[0]:,.1f}",
                f"{printed.mean_square(ONE):,.1f}",
                f"{repaired.mean_square(ONE):,.1f}",
                f"{best.mean_square(ONE):,.1f} ({best.fan_out})" if setting.theta > 1 else "the same",
                f"{printed.worst_loss():.3f}",
                f"{repaired.worst_loss():.3f}",
            )
        )
    headings = (
        "theta",
        "Eq 15 as printed",
        "Eq 15 with whole height",
        "exact, as printed",
        "exact, repaired",
        "exact, best fan-out",
        "loss / epsilon, as printed",
        "loss / epsilon, repaired",
    )
    return Table(
        f"Equation 15 and Theorem 7.2: {values:,} values, fan-out {FAN_OUT}, epsilon 1",
        headings,
        lines,
        notes=(
            "Exact: expected squared error over all ranges, from the variances of whole-number noise. Losses are the "
            "largest over all secret edges; more than 1 is more than was promised.",
        ),
    )


def range_claims(found: Measured, effort: Effort) -> list[Claim]:
    """Return what section 7 says, beside what is found."""
    ranges = f"{effort.baseline_runs} runs of {effort.ranges:,} random ranges"
    adult = {setting: by for setting, by in found.items() if setting.line == next(iter(found)).line}
    values = next(setting.theta for setting in adult if setting.label == FULL)
    ordered = next(by for setting, by in adult.items() if setting.theta == 1)
    scaled = [float(epsilon) ** 2 * by[REPAIRED].raw.value for epsilon, by in ordered.items()]
    losses = [OrderedHierarchical(values, setting.theta, printed=True).worst_loss() for setting in adult]
    repaired = [OrderedHierarchical(values, setting.theta).worst_loss() for setting in adult]
    alone = OrderedHierarchical(256, 256).mean_square(ONE)
    mixed = min(OrderedHierarchical(256, 128, share=at / 100).mean_square(ONE) for at in range(2, 90, 4))
    printed = OrderedHierarchical(64, 16, 16, printed=True).worst_loss()
    claims = [
        Claim(
            "Theorem 7.1",
            "squared error of a range, theta 1, times epsilon squared",
            f"repaired mechanism, {ranges}; Adult, {_stand_in('Adult')}",
            "at most 4, on a line of any length",
            f"{spread(scaled, '{:.2f}'.format)}; Tacit {_scaled(ordered, OURS)}",
            (check("times epsilon squared, with 5% for the draws,", scaled, "at most", 4.2),),
        ),
        Claim(
            "Theorem 7.2",
            f"{values:,} values, fan-out {FAN_OUT}: worst loss over all secret edges",
            "the printed budget, exact losses; no data",
            "epsilon",
            f"as printed {spread(losses, '{:.3f}'.format)} epsilon, repaired {spread(repaired, '{:.3f}'.format)}",
            (check("largest loss over epsilon as printed", max(losses), "at most", 1 + 1e-9),),
            "roots of trees are published but not paid for, and the first block takes the whole budget",
        ),
        Claim(
            "Theorem 7.2",
            "the same for 64 values, theta 16, fan-out 16",
            "the printed budget, exact losses; no data",
            "epsilon",
            f"as printed {printed:.3f} epsilon "
            f"({OrderedHierarchical(64, 16, 16, printed=True).worst_loss(roots=False):.3f} without roots), "
            f"repaired {OrderedHierarchical(64, 16, 16).worst_loss():.3f}",
            (check("loss over epsilon as printed", printed, "at most", 1 + 1e-9),),
            "as above",
        ),
        _equation_claim(values, list(adult)),
        Claim(
            "section 7.2",
            "256 values, theta 128, fan-out 16, best share, against one tree",
            "repaired mechanism, exact expectation; no data",
            "never more error than the hierarchical mechanism",
            f"{mixed:.0f} against {alone:.0f}",
            (check("its error over the tree's", mixed / alone, "at most", 1),),
            "take the better of the two, which public numbers tell",
        ),
    ]
    return claims + [claim for name in _figures(found).values() for claim in _figure_claims(found, name, ranges)]


def _equation_claim(values: int, settings: Sequence[Setting]) -> Claim:
    """Judge the expected error that Equation 15 prints: an O() in the theorem, but called exact below it."""
    ratios = [
        OrderedHierarchical(values, setting.theta).mean_square(ONE)
        / equation_15(values, setting.theta, FAN_OUT, whole=False)[0]
        for setting in settings
    ]
    return Claim(
        "Equation 15",
        f"{values:,} values, fan-out {FAN_OUT}: error of a range over the formula's",
        "repaired mechanism, exact expectation, and the formula as printed; no data",
        "the exact form of the expected error",
        f"repaired {spread(ratios, '{:.2f}'.format)} times the formula",
        (about("error over the formula's, for each theta", ratios, 1, 1.1),),
        "trees have a whole number of levels",
    )


def _figure_claims(found: Measured, name: str, ranges: str) -> list[Claim]:
    figure = next(key for key, line in _figures(found).items() if line == name)
    own = [(setting, by) for setting, by in found.items() if setting.line == name]
    at_one = {setting.label: by[max(by)] for setting, by in own}
    errors = [by[REPAIRED].raw.value for by in at_one.values()]
    ours = [by[OURS].raw.value for by in at_one.values()]
    rising = [by[one].rising.over(by[one].raw).value for _, of in own for by in of.values() for one in (BEST, OURS)]
    run = f"repaired mechanism, {ranges}; {_stand_in(name)}"
    return [
        Claim(
            f"2({figure[-1]})",
            f"{name}: error as theta grows",
            run,
            "decreases",
            f"repaired {_listed(errors)}; Tacit {_listed(ours)}",
            (check("error at each theta, beside the next smaller one's,", errors[1:], "below", errors[:-1]),),
            "the text has it reversed",
        ),
        Claim(
            f"2({figure[-1]})",
            f"{name}: full over theta 1",
            run,
            "orders of magnitude",
            f"repaired {errors[-1] / errors[0]:,.0f} times, Tacit {ours[-1] / ours[0]:,.0f} times",
            (check("full over theta 1, two orders", errors[-1] / errors[0], "at least", 100),),
        ),
        Claim(
            "section 7.1",
            f"{name}: running counts made to rise",
            f"repaired mechanism and Tacit, {ranges}; {_stand_in(name)}",
            "less error",
            f"{spread(rising, '{:.2f}'.format)} times; theta 1: {_both(at_one, own[0][0].label)}",
            (check("error after over error before, each theta and epsilon,", rising, "below", 1),),
        ),
    ]


def goal_table(found: Measured) -> Table:
    """Return our own goals on the Adult data, each with the worst number over all epsilons."""
    adult = {setting: by for setting, by in found.items() if setting.line == next(iter(found)).line}
    lines = []
    for setting, by_epsilon in adult.items():
        most = 1.0 if setting.theta == 1 else 0.30 if setting.theta < 50 else 0.27
        ratios = {epsilon: by[OURS].raw.over(by[BEST].raw) for epsilon, by in by_epsilon.items()}
        lines.append(_goal(f"theta {setting.label}: ours over the repaired mechanism", most, ratios))
        if setting.label == FULL:
            ratios = {epsilon: by[OURS].raw.over(by[TREE].raw) for epsilon, by in by_epsilon.items()}
            lines.append(_goal("plain DP: ours over the best tree with consistency", 0.75, ratios))
        if setting.theta in (10, 100) and ONE in by_epsilon:
            after = {ONE: by_epsilon[ONE][OURS].rising}
            lines.append(_goal(f"theta {setting.label}, rising: ours", {10: 10.0, 100: 75.0}[setting.theta], after))
    headings = ("goal", "at most", "largest", "at epsilon", "met, within two standard errors")
    return Table("Our own goals for ranges: Adult, capital loss", headings, lines)


def _goal(what: str, most: float, numbers: Mapping[Fraction, Number]) -> tuple[str, ...]:
    epsilon = max(numbers, key=lambda one: numbers[one].value)
    worst = numbers[epsilon]
    is_met = worst.value - 2 * worst.margin <= most
    return what, f"{most:g}", _written(worst), f"{float(epsilon):g}", said(is_met)


def _cells(by_name: Mapping[str, RangeErrors]) -> list[str]:
    """Return the cells of one line: each mechanism before and after, and how ours compares."""
    cells = [_pair(by_name[name]) if name in by_name else "" for name in SHOWN]
    ratios = [getattr(by_name[OURS], kind).over(getattr(by_name[BEST], kind)) for kind in ("raw", "rising")]
    return cells + [ratio.written(".3f") for ratio in ratios]


def _pair(errors: RangeErrors) -> str:
    return f"{_short(errors.raw.value)} -> {_short(errors.rising.value)}"


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _both(at_one: Mapping[str, Mapping[str, RangeErrors]], label: str) -> str:
    one = at_one[label][REPAIRED]
    return f"{one.raw.value:.2f} to {one.rising.value:.2f}"


def _written(number: Number) -> str:
    digits = max(0, 2 - math.floor(math.log10(number.value))) if number.value > 0 else 0
    return number.written(f",.{digits}f")


def _listed(values: Sequence[float]) -> str:
    return ", ".join(map(_short, values))


def _scaled(by_epsilon: Mapping[Fraction, Mapping[str, RangeErrors]], name: str) -> str:
    values = [float(epsilon) ** 2 * by[name].raw.value for epsilon, by in by_epsilon.items()]
    return spread(values, "{:.2f}".format)


def _figures(found: Measured) -> dict[str, str]:
    """Return which figure each data set is in."""
    return dict(zip(("2b", "2c"), dict.fromkeys(setting.line for setting in found), strict=False))
