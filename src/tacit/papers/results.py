"""What a reproduction comes to: claims of the paper beside our numbers, goals of our own, and the charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import vl_convert

from tacit.papers.trials import Number
from tacit.report.charts import chart_svg

YES: Final = "yes"
NO: Final = "no"
PARTLY: Final = "partly"
CLAIM_HEADINGS: Final = ("figure", "what", "the paper's claim", "our number", "holds?")


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, what we found, and whether the two agree."""

    figure: str
    what: str
    claim: str
    ours: str
    holds: str
    why: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the claim as cells of a table."""
        return self.figure, self.what, self.claim, self.ours, f"{self.holds}: {self.why}" if self.why else self.holds


@dataclass(frozen=True)
class Goal:
    """A number that our top-k should reach: at least `least`."""

    key: str
    title: str
    least: float
    form: str

    def misses(self, found: Number) -> bool:
        """Say whether a number misses the goal by more than two of its standard errors."""
        return found.value + 2 * found.error < self.least


GOALS: Final = (
    Goal("over_free_gap", "MSE, times less than free gap", 15, ".1f"),
    Goal("over_algorithm_1", "MSE, times less than Algorithm 1", 1, ".1f"),
    Goal("accuracy_over_algorithm_1", "accuracy minus Algorithm 1's", -0.01, "+.3f"),
    Goal("accuracy_over_free_gap", "accuracy minus free gap's", 0, "+.3f"),
)


@dataclass(frozen=True)
class Cell:
    """Our top-k list on one data set for one k and epsilon, beside the baselines."""

    data: str
    k: int
    epsilon: str
    runs: int
    accuracy: Number
    off: Number
    over_free_gap: Number
    over_exponential: Number
    over_algorithm_1: Number
    accuracy_over_algorithm_1: Number
    accuracy_over_free_gap: Number

    def number(self, goal: Goal) -> Number:
        """Return the number that a goal is about."""
        found: Number = getattr(self, goal.key)
        return found


@dataclass(frozen=True)
class Reproduction:
    """Everything that `tacit reproduce` found."""

    paper: str
    title: str
    quick: bool
    how: tuple[str, ...]
    claims: tuple[Claim, ...]
    cells: tuple[Cell, ...]
    charts: dict[str, Callable[[], Any]] = field(repr=False)

    def verdicts(self) -> list[str]:
        """Say for each goal in how many cells it is met, and in which it is not."""
        return [_verdict(goal, self.cells) for goal in GOALS] if self.cells else []

    def by_data(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return headings and lines of a table with the worst cell of each data set."""
        headings = ("data set", "cells", *(goal.title for goal in GOALS), "times less than free gap, exponential")
        lines = []
        for name in dict.fromkeys(cell.data for cell in self.cells):
            own = [cell for cell in self.cells if cell.data == name]
            worst = [min((cell.number(goal) for cell in own), key=lambda found: found.value) for goal in GOALS]
            least = min((cell.over_exponential for cell in own), key=lambda found: found.value)
            said = (_write(found, goal.form) for goal, found in zip(GOALS, worst, strict=True))
            lines.append((name, str(len(own)), *said, _write(least, ".1f")))
        return headings, lines

    def document(self) -> dict[str, Any]:
        """Return everything but the charts as plain data."""
        headings = ("figure", "what", "claim", "ours", "holds", "why")
        return {
            "paper": self.paper,
            "title": self.title,
            "quick": self.quick,
            "how": list(self.how),
            "claims": [{name: getattr(claim, name) for name in headings} for claim in self.claims],
            "goals": [{"key": goal.key, "title": goal.title, "at_least": goal.least} for goal in GOALS],
            "cells": [_plain(cell) for cell in self.cells],
            "verdicts": self.verdicts(),
            "charts": list(self.charts),
        }

    def markdown(self) -> str:
        """Return everything but the charts as a page."""
        lines = [f"# {self.title}", ""]
        for paragraph in self.how:
            lines += [paragraph, ""]
        lines += ["## What the paper claims", ""]
        lines += _table(CLAIM_HEADINGS, [claim.cells() for claim in self.claims])
        if self.cells:
            lines += ["", "## Our top-k beside the baselines: the worst cell of each data set", ""]
            lines += _table(*self.by_data())
            lines += ["", *(f"- {said}" for said in self.verdicts())]
            lines += ["", "## All cells", ""]
            lines += _table(*self._all_cells())
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write the page and the charts; return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        page = folder / f"reproduced-{self.paper}.md"
        page.write_text(self.markdown(), encoding="utf-8")
        files = [page]
        for name, draw in self.charts.items():
            svg = chart_svg(draw())
            (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
            (folder / f"{name}.png").write_bytes(bytes(vl_convert.svg_to_png(svg, scale=2.0)))
            files += [folder / f"{name}.svg", folder / f"{name}.png"]
        return files

    def _all_cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        titles = (
            *(goal.title for goal in GOALS),
            "times less than free gap, exponential",
            "accuracy",
            "mean error, k/epsilon",
        )
        lines = []
        for cell in self.cells:
            goals = (_write(cell.number(goal), goal.form) for goal in GOALS)
            rest = (_write(cell.over_exponential, ".1f"), _write(cell.accuracy, ".3f"), _write(cell.off, "+.2f"))
            lines.append((cell.data, str(cell.k), cell.epsilon, *goals, *rest))
        return ("data set", "k", "epsilon", *titles), lines


def judged(parts: Sequence[bool], *, why: str = "") -> tuple[str, str]:
    """Return yes, no or partly, with the reason if it is not yes."""
    word = YES if all(parts) else PARTLY if any(parts) else NO
    return word, "" if word == YES else why


def spread(numbers: Sequence[float], form: Callable[[float], str]) -> str:
    """Return the least and the largest of some numbers as a text.

    >>> spread([3.61, 4.58, 4.0], "{:.1f}".format)
    '3.6 to 4.6'
    """
    low, high = form(min(numbers)), form(max(numbers))
    return low if low == high else f"{low} to {high}"


def _verdict(goal: Goal, cells: Sequence[Cell]) -> str:
    numbers = {cell: cell.number(goal) for cell in cells}
    missed = [cell for cell in cells if goal.misses(numbers[cell])]
    least = min(number.value for number in numbers.values())
    said = (
        f"{goal.title}: at least {goal.least:g} in {len(cells) - len(missed)} of {len(cells)} cells "
        f"(smallest {least:{goal.form}})"
    )
    if not missed:
        return f"{said}."
    by_data = []
    for name in dict.fromkeys(cell.data for cell in missed):
        own = [cell for cell in missed if cell.data == name]
        listed = ", ".join(f"k {cell.k} epsilon {cell.epsilon} ({_write(numbers[cell], goal.form)})" for cell in own)
        by_data.append(f"{name}: {listed}")
    return f"{said}. Not, by more than two standard errors, in {'; '.join(by_data)}."


def _write(number: Number, form: str) -> str:
    if math.isinf(number.value):
        return "exact"
    return f"{number.value:{form}} ± {number.error:{form.lstrip('+')}}"


def _plain(cell: Cell) -> dict[str, Any]:
    def whole(value: Any) -> Any:
        if isinstance(value, Number):
            return {"value": _finite(value.value), "standard_error": _finite(value.error)}
        return value

    return {name: whole(value) for name, value in vars(cell).items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---"] * len(headings)
    return [f"| {' | '.join(line)} |" for line in (headings, rule, *lines)]
