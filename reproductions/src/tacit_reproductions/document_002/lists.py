"""Figures 2 and 3 of document 002, and our own goals: the largest counts, by ranking and by thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from tacit_reproductions.data import ItemSet
from tacit_reproductions.document_002.goals import Cell
from tacit_reproductions.document_002.trials import (
    ADAPTIVE,
    ALGORITHM_1,
    ALGORITHM_2,
    EXPONENTIAL,
    FREE_GAP,
    GENERAL,
    Trials,
    threshold_trials,
    top_k_trials,
)
from tacit_reproductions.measured import OURS, Number
from tacit_reproductions.results import Claim, about, check, spread

RANKED: Final = (OURS, ALGORITHM_1, FREE_GAP, GENERAL, EXPONENTIAL)
TESTED: Final = (OURS, ALGORITHM_2, FREE_GAP, ADAPTIVE)
MIDDLE: Final = Fraction("0.5")
ONE: Final = Fraction(1)
_NEARLY_ONE: Final = 0.95
_ABOUT: Final = 1.25  # a factor
_SHARP: Final = 0.1  # of accuracy
_NEAR_MOST: Final = 0.02  # of the accuracy that the threshold allows


@dataclass(frozen=True)
class Grid:
    """The lists that are made: `epsilons` for the longest list, `lengths` for the middle epsilon; and for the goals."""

    epsilons: tuple[Fraction, ...]
    lengths: tuple[int, ...]
    goal_epsilons: tuple[Fraction, ...]
    goal_lengths: tuple[int, ...]

    @property
    def longest(self) -> int:
        """The longest list."""
        return self.lengths[-1]

    def curve(self, data: str, *, by_rank: bool) -> list[Task]:
        """Return the tasks of one data set's panels: epsilon varies, then k."""
        tasks = [Task(by_rank, data, self.longest, epsilon) for epsilon in self.epsilons]
        return tasks + [Task(by_rank, data, k, MIDDLE) for k in self.lengths]

    def goals(self, data: str) -> list[Task]:
        """Return the tasks in which our own goals are checked."""
        return [Task(True, data, k, epsilon) for k in self.goal_lengths for epsilon in self.goal_epsilons]


def fractions(*texts: str) -> tuple[Fraction, ...]:
    """Return numbers as they are written."""
    return tuple(map(Fraction, texts))


ALL: Final = Grid(
    fractions("0.1", "0.25", "0.5", "0.75", "1"), (10, 25, 50, 100), fractions("0.25", "0.5", "1"), (25, 50, 100)
)
FEW: Final = Grid(fractions("0.1", "0.5", "1"), (10, 50), fractions("0.5", "1"), (25, 50))


@dataclass(frozen=True)
class Task:
    """Many runs of all mechanisms on one data set: lists by rank, or by a threshold."""

    by_rank: bool
    data: str
    k: int
    epsilon: Fraction

    def __str__(self) -> str:
        how = "top-k" if self.by_rank else "above a threshold"
        return f"{self.data}, {how}, k = {self.k}, epsilon {float(self.epsilon):g}"

    def done(self, items: ItemSet, runs: int, baseline_runs: int) -> dict[str, Trials]:
        """Return the trials of every mechanism; ours takes longest."""
        trial, names = (top_k_trials, RANKED) if self.by_rank else (threshold_trials, TESTED)
        many = {name: runs if name == OURS else baseline_runs for name in names}
        return {name: trial(name, items.counts, self.k, self.epsilon, many[name]) for name in names}


Measured: TypeAlias = Mapping[Task, Mapping[str, Trials]]


def goal_cell(task: Task, trials: Mapping[str, Trials]) -> Cell:
    """Return our numbers beside those of the baselines."""
    ours, one, gap = trials[OURS], trials[ALGORITHM_1], trials[FREE_GAP]
    unit = float(task.epsilon / task.k)
    return Cell(
        data=task.data,
        k=task.k,
        epsilon=f"{float(task.epsilon):g}",
        runs=ours.runs,
        accuracy=ours.accuracy,
        off=Number(ours.off.value * unit, ours.off.error * unit),
        over_free_gap=gap.squared.over(ours.squared),
        over_exponential=trials[EXPONENTIAL].squared.over(ours.squared),
        over_algorithm_1=one.squared.over(ours.squared),
        accuracy_over_algorithm_1=ours.accuracy.less(one.accuracy),
        accuracy_over_free_gap=ours.accuracy.less(gap.accuracy),
    )


def data_claims(sets: Sequence[ItemSet]) -> list[Claim]:
    """Return what there is of the data of the paper: its Table 3."""
    table = {"BMS-POS": (515_597, 1_657), "Kosarak": (990_002, 41_270), "T40I10D100K": (100_000, 942)}
    claims = []
    for items in sets:
        if items.name not in table:
            continue
        records, many = table[items.name]
        if items.records:
            own = (check("records", items.records, "is", records),)
            counted = f"{items.records:,} records"
            claims.append(
                Claim("Table 3", items.name, "records by their lengths", f"{records:,} records", counted, own)
            )
        claims.append(
            Claim(
                "Table 3",
                items.name,
                "exact counts of the largest items, and a part of the records; the whole is not in the data folder",
                f"{many:,} items" if items.records else f"{records:,} records, {many:,} items",
                f"{items.seen:,} items occur for certain; {items.exact:,} counts are exact, the largest, and "
                f"{len(items.counts) - items.exact:,} are estimates",
                unjudged="the estimates were made to fit the published sizes, so that these cannot be recounted",
            )
        )
    return claims


def ranking_claims(
    grid: Grid, measured: Measured, sets: Sequence[str], all_sets: Sequence[str], run: str
) -> list[Claim]:
    """Return what the paper says about Algorithm 1 and Figure 2."""
    run = f"Algorithm 1 repaired (each count added once) and {run}"
    at = {name: measured[Task(True, name, grid.longest, MIDDLE)] for name in sets}
    at_one = {name: measured[Task(True, name, grid.longest, ONE)] for name in sets}
    by_epsilon = [measured[Task(True, name, grid.longest, epsilon)] for name in sets for epsilon in grid.epsilons]
    accurate = [at[name][ALGORITHM_1].accuracy.value for name in sets]
    of_gap = [at_one[name][FREE_GAP].accuracy.value for name in sets]
    times = {name: [_times(trials, name, ALGORITHM_1) for trials in by_epsilon] for name in (FREE_GAP, GENERAL)}
    ours = [_times(trials, FREE_GAP, OURS) for trials in by_epsilon]
    everywhere = {task: _times(measured[task], FREE_GAP, ALGORITHM_1) for name in all_sets for task in grid.goals(name)}
    worst = min(everywhere, key=lambda task: everywhere[task])
    falls = {name: _fall(grid, measured, sets, name, by_rank=True) for name in (OURS, ALGORITHM_1, FREE_GAP)}
    middle = spread([_times(trials, FREE_GAP, ALGORITHM_1) for trials in at.values()], _one)
    measuring = (
        2 * 2**2 / 1
    )  # variances of Laplace noise of scale 2 k/epsilon and of one-sided noise of scale k/epsilon
    return [
        Claim(
            "2, top",
            f"accuracy, k = {grid.longest}, epsilon 0.5",
            run,
            "Algorithm 1 nearly 1 on every data set",
            f"Algorithm 1 {spread(accurate, _three)}; Tacit {_accuracies(at, OURS)}",
            (check("accuracy of Algorithm 1 on each set", accurate, "at least", _NEARLY_ONE),),
        ),
        Claim(
            "2, top",
            f"accuracy, k = {grid.longest}, epsilon 1",
            run,
            "free gap does not reach 1 even here",
            f"free gap {spread(of_gap, _three)}; Tacit {_accuracies(at_one, OURS)}",
            (check("accuracy of free gap on each set", of_gap, "below", 1 - 5e-4),),
        ),
        Claim(
            "2, top",
            f"mean squared error, k = {grid.longest}",
            run,
            "Algorithm 1 about 10 times less than free gap",
            f"epsilon 0.5: {middle} times; any epsilon: {spread(times[FREE_GAP], _one)} (general form of free gap: "
            f"{spread(times[GENERAL], _one)}); Tacit: {spread(ours, _one)}",
            (about("error of free gap over the algorithm's, each set and epsilon", times[FREE_GAP], 10, _ABOUT),),
            f"measuring k counts without gaps, with half of epsilon, is {measuring:g} times where the choice is clear, "
            "and gaps lower that; why the paper finds 10 is not known",
        ),
        Claim(
            "2, bottom",
            f"accuracy from k = {grid.lengths[0]} to {grid.lengths[-1]}, epsilon 0.5",
            run,
            "free gap falls more sharply",
            f"free gap by {spread(falls[FREE_GAP], _three)}, Algorithm 1 by {spread(falls[ALGORITHM_1], _three)}, "
            f"Tacit by {spread(falls[OURS], _three)}",
            (
                check(
                    "fall of free gap, beside Algorithm 1's on each set,", falls[FREE_GAP], "above", falls[ALGORITHM_1]
                ),
            ),
        ),
        Claim(
            "section 6.2.3",
            "mean squared error, every data set, k and epsilon",
            f"Algorithm 1 repaired and free gap, as above; {', '.join(all_sets)}",
            "Algorithm 1 more accurate than free gap",
            f"worst of {len(everywhere)} cells: {everywhere[worst]:.2f} times less ({worst})",
            (check("error of free gap over Algorithm 1's", list(everywhere.values()), "above", 1),),
            "where counts crowd, its values are biased upwards by the choice",
        ),
    ]


def threshold_claims(grid: Grid, measured: Measured, sets: Sequence[str], run: str) -> list[Claim]:
    """Return what the paper says about Algorithm 2 and Figure 3."""
    run = f"Algorithm 2 repaired (stopped after k answers) and {run}"
    by_epsilon = {e: [measured[Task(False, name, grid.longest, e)] for name in sets] for e in grid.epsilons}
    flat = [trials for of_all in by_epsilon.values() for trials in of_all]
    times = {name: [_times(trials, FREE_GAP, name) for trials in flat] for name in (OURS, ALGORITHM_2)}
    adaptive = [_times(trials, ADAPTIVE, ALGORITHM_2) for trials in flat]
    apart = [trials[ALGORITHM_2].accuracy.less(trials[FREE_GAP].accuracy) for trials in by_epsilon[ONE]]
    best = best_by_threshold(grid.longest)
    nears = {name: [_near(by_epsilon, at, name, best) for at in range(len(sets))] for name in (ALGORITHM_2, FREE_GAP)}
    apart_by_epsilon = ", ".join(
        f"epsilon {float(e):g} {spread([_ahead(trials) for trials in of_all], _signed)}"
        for e, of_all in by_epsilon.items()
    )
    middle = spread([_times(trials, FREE_GAP, ALGORITHM_2) for trials in by_epsilon[MIDDLE]], _one)
    falls = {name: _fall(grid, measured, sets, name, by_rank=False) for name in (OURS, ALGORITHM_2, FREE_GAP)}
    ranked = [
        measured[Task(True, task.data, task.k, task.epsilon)][ALGORITHM_1].accuracy.value
        - measured[task][ALGORITHM_2].accuracy.value
        for name in sets
        for task in grid.curve(name, by_rank=False)
    ]
    all_tests = [measured[task][OURS] for name in sets for task in dict.fromkeys(grid.curve(name, by_rank=False))]
    wrong = sum(trials.wrong for trials in all_tests)
    return [
        Claim(
            "3, top",
            f"mean squared error, k = {grid.longest}",
            run,
            "Algorithm 2 about 10 times less than free gap",
            f"epsilon 0.5: {middle} times; any epsilon: {spread(times[ALGORITHM_2], _one)} (adaptive form of free "
            f"gap: {spread(adaptive, _one)}); Tacit: {spread(times[OURS], _one)}",
            (about("error of free gap over the algorithm's, each set and epsilon", times[ALGORITHM_2], 10, _ABOUT),),
            "why the paper finds 10 is not known",
        ),
        Claim(
            "3, top",
            f"accuracy, k = {grid.longest}, epsilon 1",
            run,
            "almost the same, near the most that the threshold allows",
            f"Algorithm 2 minus free gap {spread([one.value for one in apart], _signed)}; most possible {best:.3f}",
            (
                check(
                    "distance of the two, with two standard errors off,",
                    [abs(one.value) - 2 * one.error for one in apart],
                    "at most",
                    0.03,
                ),
                check(
                    "Algorithm 2 below the most possible",
                    [best - trials[ALGORITHM_2].accuracy.value for trials in by_epsilon[ONE]],
                    "at most",
                    2 * _NEAR_MOST,
                ),
            ),
        ),
        Claim(
            "3, top",
            f"accuracy, k = {grid.longest}: least epsilon within {_NEAR_MOST} of the most possible, {best:.3f}",
            run,
            "Algorithm 2 nears that most at a lower epsilon",
            f"Algorithm 2 minus free gap: {apart_by_epsilon}; nearest from epsilon "
            f"{_epsilons(nears[ALGORITHM_2])} on, free gap from {_epsilons(nears[FREE_GAP])}",
            (
                check(
                    "least epsilon of Algorithm 2, beside free gap's on each set,",
                    nears[ALGORITHM_2],
                    "below",
                    nears[FREE_GAP],
                ),
            ),
        ),
        Claim(
            "3, bottom",
            f"accuracy from k = {grid.lengths[0]} to {grid.lengths[-1]}, epsilon 0.5",
            run,
            "free gap falls sharply, Algorithm 2 hardly",
            f"free gap by {spread(falls[FREE_GAP], _three)}, Algorithm 2 by {spread(falls[ALGORITHM_2], _three)}, "
            f"Tacit by {spread(falls[OURS], _three)}",
            (
                check("fall of free gap", falls[FREE_GAP], "above", _SHARP),
                check("fall of Algorithm 2", falls[ALGORITHM_2], "at most", _SHARP / 2),
            ),
        ),
        Claim(
            "section 6.2.3",
            "accuracy, every k and epsilon of Figures 2 and 3",
            "both algorithms repaired, as in Figures 2 and 3",
            "ranking (Algorithm 1) beats thresholds (Algorithm 2)",
            f"by {spread(ranked, _three)}",
            (check("accuracy of Algorithm 1 less Algorithm 2's", ranked, "above", 0),),
        ),
        Claim(
            "section 6.2.3",
            "`certainly below` from `above`",
            "Tacit on the sets of Figure 3",
            "always right",
            f"{wrong:,} wrong in {sum(trials.runs for trials in all_tests):,} lists",
            (check("wrong answers", wrong, "is", 0),),
        ),
    ]


def best_by_threshold(k: int) -> float:
    """Return the accuracy without noise: of i items above the threshold the first k are a share k / i of the top k.

    >>> round(best_by_threshold(100), 3)
    0.694
    """
    return float(np.mean([k / rank for rank in range(k, 2 * k + 1)]))


def _near(by_epsilon: Mapping[Fraction, Sequence[Mapping[str, Trials]]], at: int, name: str, best: float) -> float:
    """Return the least epsilon at which a mechanism is nearly as accurate as the threshold allows, on one set."""
    near = [e for e, of_all in by_epsilon.items() if of_all[at][name].accuracy.value >= best - _NEAR_MOST]
    return float(min(near)) if near else math.inf


def _ahead(trials: Mapping[str, Trials]) -> float:
    return trials[ALGORITHM_2].accuracy.less(trials[FREE_GAP].accuracy).value


def _epsilons(found: Sequence[float]) -> str:
    return ", ".join(f"{one:g}" if math.isfinite(one) else "none" for one in found)


def _times(trials: Mapping[str, Trials], other: str, name: str) -> float:
    return trials[other].squared.over(trials[name].squared).value


def _fall(grid: Grid, measured: Measured, sets: Sequence[str], name: str, *, by_rank: bool) -> list[float]:
    """Return on each data set how much accuracy a long list loses against a short one."""
    ends = (grid.lengths[0], grid.lengths[-1])
    short, long = ([measured[Task(by_rank, one, k, MIDDLE)][name].accuracy.value for one in sets] for k in ends)
    return [a - b for a, b in zip(short, long, strict=True)]


def _accuracies(at: Mapping[str, Mapping[str, Trials]], name: str) -> str:
    return spread([trials[name].accuracy.value for trials in at.values()], _three)


def _one(value: float) -> str:
    return f"{value:.1f}"


def _three(value: float) -> str:
    return f"{value:.3f}"


def _signed(value: float) -> str:
    return f"{value:+.3f}"
