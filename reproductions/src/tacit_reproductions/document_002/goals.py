"""Our own goals for the top-k lists of document 002, beside the baselines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit_reproductions.measured import Number
from tacit_reproductions.results import Table

_EXPONENTIAL: Final = "times less than free gap, exponential"


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


def goal_tables(cells: Sequence[Cell]) -> tuple[Table, ...]:
    """Return the worst cell of each data set with the verdicts, and all cells for the page."""
    if not cells:
        return ()
    by_data = "Our top-k beside the baselines: the worst cell of each data set"
    return (
        Table(by_data, *_by_data(cells), notes=tuple(verdicts(cells))),
        Table("All cells", *_all_cells(cells), on_screen=False),
    )


def goal_document(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return goals, cells and verdicts as plain data."""
    return {
        "goals": [{"key": goal.key, "title": goal.title, "at_least": goal.least} for goal in GOALS],
        "cells": [_plain(cell) for cell in cells],
        "verdicts": verdicts(cells),
    }


def verdicts(cells: Sequence[Cell]) -> list[str]:
    """Say for each goal in how many cells it is met, and in which it is not."""
    return [_verdict(goal, cells) for goal in GOALS] if cells else []


def _by_data(cells: Sequence[Cell]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and lines of a table with the worst cell of each data set."""
    headings = ("data set", "cells", *(goal.title for goal in GOALS), _EXPONENTIAL)
    lines = []
    for name in dict.fromkeys(cell.data for cell in cells):
        own = [cell for cell in cells if cell.data == name]
        worst = [min((cell.number(goal) for cell in own), key=lambda found: found.value) for goal in GOALS]
        least = min((cell.over_exponential for cell in own), key=lambda found: found.value)
        said = (_write(found, goal.form) for goal, found in zip(GOALS, worst, strict=True))
        lines.append((name, str(len(own)), *said, _write(least, ".1f")))
    return headings, lines


def _all_cells(cells: Sequence[Cell]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    titles = (*(goal.title for goal in GOALS), _EXPONENTIAL, "accuracy", "mean error, k/epsilon")
    lines = []
    for cell in cells:
        goals = (_write(cell.number(goal), goal.form) for goal in GOALS)
        rest = (_write(cell.over_exponential, ".1f"), _write(cell.accuracy, ".3f"), _write(cell.off, "+.2f"))
        lines.append((cell.data, str(cell.k), cell.epsilon, *goals, *rest))
    return ("data set", "k", "epsilon", *titles), lines


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
