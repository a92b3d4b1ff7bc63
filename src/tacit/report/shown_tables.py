"""The tables of a report: estimates with intervals, cross tables with sums, in whole numbers that add up.

Counts are shown as whole numbers, each next to its estimate above or below, so that sums are those of the shown
numbers and are whole numbers next to the sums of the estimates: of one attribute by largest remainders, of two by the
same rule for rows, columns and all at once. Intervals are rounded outwards, so that they contain the number that is
shown. The files beside a report have the estimates themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tacit.arrays import Bools, Floats, Ints
from tacit.release.results.ranges import LineRecord
from tacit.release.results.record import LinearRecord, ReleaseRecord
from tacit.release.results.value_files import number_texts

ROWS_SHOWN: Final = 50
MOST_TABLES: Final = 15  # of several; all of them are in the files
MOST_DOWN: Final = 100  # rows and
MOST_ACROSS: Final = 12  # columns of a cross table
MOST_WHOLE: Final = 100_000  # numbers that are made to add up; of more than that nobody adds up what is shown
MOST_ABREAST: Final = 5  # columns that fit on a phone
SUM: Final = "Sum"
_HEADINGS: Final = {"value": "Estimate", "lower": "From", "upper": "To"}  # others have their own name
_FUZZ: Final = 6  # decimals after which an estimate is a whole number


@dataclass(frozen=True)
class ShownRow:
    """The labels of a row, and its numbers as texts, each with its interval where that stands below it."""

    labels: Sequence[str]
    numbers: Sequence[tuple[str, str]]
    is_sum: bool = False


@dataclass(frozen=True)
class ShownTable:
    """A table as texts, with the headings of its columns and what is to be said of it."""

    labels: Sequence[str]
    numbers: Sequence[str]
    rows: Sequence[ShownRow]
    notes: Sequence[str]
    adds_up: bool = False
    is_crossed: bool = False

    @property
    def is_stacked(self) -> bool:
        """Whether a phone is too narrow for it, and shows the cells of a row below each other."""
        return len(self.labels) + len(self.numbers) > MOST_ABREAST


def shown_tables(record: ReleaseRecord) -> list[ShownTable]:
    """Return the tables of a release, as a report shows them; none for one number, which needs no table."""
    query, domain = record.plan.query, record.plan.policy.domain
    if len(record.values) == 1 and list(record.numbers()) == ["value", "lower", "upper"] and len(record.labels()) == 1:
        return []
    tables = query.tables(domain)
    # people with several rows may be in several cells: sums of cells are no numbers of people
    adds_up = record.plan.policy.per_person == 1 or query.of == "rows"
    counted = bool(tables) and adds_up and query.counted.counts_people and record.plan.answers <= MOST_WHOLE
    if not counted or any(domain[name].is_set for names in tables for name in names):
        return [_listed(record)]
    shapes = [tuple(domain[name].cells for name in names) for names in tables]
    starts = np.cumsum([0, *map(math.prod, shapes)])
    found: list[ShownTable] = []
    for number, (names, shape) in enumerate(zip(tables[:MOST_TABLES], shapes, strict=False)):
        part = _Part(record, number, names, shape, slice(starts[number], starts[number + 1]))
        if len(shape) == 2 and min(shape) <= MOST_ACROSS and max(shape) <= MOST_DOWN:
            found.append(part.crossed())
        elif len(shape) > 2 and math.prod(shape) > ROWS_SHOWN:
            found += (part.summed(at) for at in range(len(shape)))
        else:
            found.append(part.listed())
    return found


def whole_numbers(estimates: Floats) -> Ints:
    """Return whole numbers that add up to those next to the sums: of a table of two attributes along both.

    >>> whole_numbers(np.array([0.4, 1.6, 0.2, 7.0])).tolist()
    [0, 2, 0, 7]
    >>> whole_numbers(np.array([[1.5, 0.5], [0.5, 2.5]])).sum(axis=0).tolist()
    [2, 3]
    """
    exact = np.round(estimates, _FUZZ)
    low = np.floor(exact)
    missing = int(np.rint(np.round(exact.sum(), _FUZZ)) - low.sum())
    remainders = exact - low
    added = _along_both(remainders, missing) if exact.ndim == 2 else None
    if added is None:  # the largest remainders; of equal ones the first
        added = np.zeros(exact.size)
        added[np.argsort(-remainders.ravel(), kind="stable")[:missing]] = 1
    return (low + added.reshape(exact.shape)).astype(np.int64)


def _along_both(remainders: Floats, missing: int) -> Floats | None:
    """Return which cells are rounded up: rows, columns and all come next to what they are, and remainders are large.

    The corners of what linear constraints on rows and columns allow are whole numbers, and a simplex method ends there.
    """
    from scipy.optimize import linprog

    rows, columns = remainders.shape
    each = np.arange(rows * columns)
    lines = np.concatenate(
        [each // columns == np.arange(rows)[:, None], each % columns == np.arange(columns)[:, None]]
    ).astype(np.float64)
    sums = np.round(lines @ remainders.ravel(), _FUZZ)
    found = linprog(
        -remainders.ravel(),
        A_ub=np.concatenate([lines, -lines]),
        b_ub=np.concatenate([np.ceil(sums), -np.floor(sums)]),
        A_eq=np.ones((1, len(each))),
        b_eq=[missing],
        bounds=[(0, float(one > 0)) for one in remainders.ravel()],
        method="highs-ds",
    )
    return None if found.x is None else np.rint(found.x)


@dataclass(frozen=True)
class _Part:
    """One table of a release: its attributes, and where its cells are among the answers."""

    record: ReleaseRecord
    number: int
    names: tuple[str, ...]
    shape: tuple[int, ...]
    cells: slice

    def inside(self) -> tuple[Floats, Floats, Floats, Bools]:
        """Return the numbers that are shown, the ends of their intervals as whole numbers, and which are exact."""
        values = self.record.values[self.cells]
        lower, upper = (end[self.cells] for end in self.record.interval())
        whole = whole_numbers(values.reshape(self.shape) if len(self.shape) == 2 else values).ravel()
        exact = isinstance(self.record, LinearRecord | LineRecord) and self.record.exact[self.cells]
        return whole.astype(np.float64), *_outwards(lower, upper), np.broadcast_to(exact, whole.shape)

    def sums(self, which: Ints) -> tuple[Floats, Floats, Bools]:
        """Return the ends of the intervals of sums, and which sums are exact."""
        if isinstance(self.record, LinearRecord):
            _, lower, upper, exact = self.record.sums(self.number, which)
            return *_outwards(lower, upper), exact
        unknown = np.full(int(which.max()) + 1, np.nan)
        return unknown, unknown, np.isfinite(unknown)

    def labels(self, names: tuple[str, ...]) -> list[list[str]]:
        """Return the texts of the values of these attributes."""
        domain, each = self.record.plan.policy.domain, self.record.plan.query.each
        named = [domain[name].every_cell() if each is None else each.cells(domain[name]) for name in names]
        return [[str(cell) for cell in cells] for cells in named]

    def listed(self) -> ShownTable:
        """Return a line for each cell, or for the first of many."""
        return self._lines(self.names, self.shape, *self.inside())

    def summed(self, at: int) -> ShownTable:
        """Return a line for each value of one of many attributes: the sum of its cells, or the first of many sums."""
        which = np.indices(self.shape)[at].ravel()
        whole = whole_numbers(np.bincount(which, self.record.values[self.cells]).astype(np.float64))
        table = self._lines((self.names[at],), (self.shape[at],), whole.astype(np.float64), *self.sums(which))
        return replace(table, notes=[*table.notes, f"Sums over the other attributes, of {len(which):,} numbers."])

    def _lines(
        self, names: tuple[str, ...], shape: tuple[int, ...], whole: Floats, lower: Floats, upper: Floats, exact: Bools
    ) -> ShownTable:
        texts = self.labels(names)
        shows = min(len(whole), ROWS_SHOWN)
        places = zip(*np.unravel_index(np.arange(shows), shape), strict=True)
        rows = [
            ShownRow([labels[at] for labels, at in zip(texts, place, strict=True)], [(number, ""), (reach, "")])
            for place, (number, reach) in zip(places, _with_ends(whole, lower, upper, exact), strict=False)
        ]
        if 1 < len(whole) == shows:
            everything = np.zeros(math.prod(self.shape), dtype=np.int64)
            ((number, reach),) = _with_ends(whole.sum(keepdims=True), *self.sums(everything))
            rows.append(ShownRow([SUM, *[""] * (len(names) - 1)], [(number, ""), (reach, "")], is_sum=True))
        cut = [f"The first {ROWS_SHOWN} of {len(whole):,} numbers."] if len(whole) > ROWS_SHOWN else []
        return ShownTable(names, ("Estimate", "95% interval"), rows, cut, adds_up=True)

    def crossed(self) -> ShownTable:
        """Return the longer attribute down and the other across, with sums at both margins."""
        along, across = (0, 1) if self.shape[0] >= self.shape[1] else (1, 0)
        whole, lower, upper, _ = self.inside()
        table = whole.reshape(self.shape) if along == 0 else whole.reshape(self.shape).T
        places = np.indices(self.shape)
        right, bottom, corner = (
            _with_ends(shown, *self.sums(which.ravel()))
            for shown, which in (
                (table.sum(axis=1), places[along]),
                (table.sum(axis=0), places[across]),
                (table.sum(keepdims=True).ravel(), 0 * places[0]),
            )
        )
        down, heads = self.labels((self.names[along], self.names[across]))
        rows = [
            ShownRow([label], [*((_whole(cell), "") for cell in cells), last])
            for label, cells, last in zip(down, table, right, strict=True)
        ]
        rows.append(ShownRow([SUM], [*bottom, *corner], is_sum=True))
        heading = f"{self.names[along]} by {self.names[across]}"
        notes = [_reach(whole, lower, upper)]
        return ShownTable([heading], [*heads, SUM], rows, notes, adds_up=True, is_crossed=True)


def _outwards(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    return np.floor(np.round(lower, _FUZZ)), np.ceil(np.round(upper, _FUZZ))


def _reach(whole: Floats, lower: Floats, upper: Floats) -> str:
    """Say how far the intervals of all cells reach from the numbers that are shown."""
    below, above = (int(max(end.max(), 0)) for end in (whole - lower, upper - whole))
    if not below and not above:
        return "Every number is exact."
    if below == above:
        reach = f"Every number inside is at most {below:,} off"
    else:
        reach = f"The true number is at most {below:,} below and {above:,} above the one that is shown inside"
    return f"{reach}, with a probability of at least 95%, taken one at a time."


def _whole(number: Any) -> str:
    return f"{int(number):,}"


def _with_ends(whole: Floats, lower: Floats, upper: Floats, exact: Bools) -> list[tuple[str, str]]:
    """Return numbers and their intervals as texts."""
    return [
        (_whole(number), "exact" if sure else "" if math.isnan(low) else f"{_whole(low)} to {_whole(high)}")
        for number, low, high, sure in zip(whole, lower, upper, exact, strict=True)
    ]


def _listed(record: ReleaseRecord) -> ShownTable:
    """Return a line for each answer, or for the first of many, with the digits that its file has."""
    labels, numbers = record.labels(), record.numbers()
    order = record.reading_order()
    shows = order[:ROWS_SHOWN].tolist()
    columns = {name: number_texts(name, column[shows], record.digits_for) for name, column in numbers.items()}
    first = next(iter(columns))
    columns[first] = [text or record.no_number for text in columns[first]]
    heads = [_HEADINGS.get(name, name.capitalize()) for name in columns]
    rows = [
        ShownRow(
            ["" if label[place] is None else str(label[place]) for label in labels.values()],
            [(text, "") for text in texts],
        )
        for place, texts in zip(shows, zip(*columns.values(), strict=True), strict=True)
    ]
    if list(numbers) == ["value", "lower", "upper"] and (crossed := _crossed(record)):
        return crossed
    sorted_first = (np.diff(order) < 0).any()
    if len(order) > ROWS_SHOWN:
        what = record.plan.query.listed_words(record.plan.policy.domain)
        first_ones = ", those with a value first" if sorted_first else ""
        return ShownTable(list(labels), heads, rows, [f"The first {ROWS_SHOWN} of {len(order):,} {what}{first_ones}."])
    return ShownTable(list(labels), heads, rows, ["Those with a value stand on top."] if sorted_first else [])


def _crossed(record: ReleaseRecord) -> ShownTable | None:
    """Return answers for each pair of two labels as a cross table, if they are few enough: they have no sums."""
    if len(labels := record.labels()) != 2:
        return None
    heads = [list(dict.fromkeys(column)) for column in labels.values()]
    along, across = (0, 1) if len(heads[0]) >= len(heads[1]) else (1, 0)
    fits = 1 < len(heads[across]) <= MOST_ACROSS and len(heads[along]) <= MOST_DOWN
    pairs = list(zip(*labels.values(), strict=True))
    if not fits or len(set(pairs)) != len(pairs) or len(pairs) != len(heads[0]) * len(heads[1]):
        return None
    texts = [number_texts(name, column, record.digits_for) for name, column in record.numbers().items()]
    cells = {
        (pair[along], pair[across]): (value or record.no_number, f"{low} to {high}" if low and high else "")
        for pair, value, low, high in zip(pairs, *texts, strict=True)
    }
    rows = [ShownRow([str(down)], [cells[down, over] for over in heads[across]]) for down in heads[along]]
    names = list(labels)
    return ShownTable(
        [f"{names[along]} by {names[across]}"],
        [str(over) for over in heads[across]],
        rows,
        ["Below each number stands its 95% interval."],
        is_crossed=True,
    )
