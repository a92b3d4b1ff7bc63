"""The lines that an engine counts, one for a row or a person: what both ways to make them must say, and share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from tacit.policy.edges.intervals import Intervals
from tacit.policy.where import Test
from tacit.rows.cells.readings import Expr, Positions


@dataclass(frozen=True, eq=False)
class HeldItems:
    """Items and who has them: a frame, the expressions that tell items apart, and one that asks for an item."""

    frame: Any
    keys: Sequence[Expr]
    has: Callable[[int], Expr] = lambda _: nw.lit(value=False)


class Addition(NamedTuple):
    """Lines to add up: a frame, the expressions to group by, and how far a number is above the lowest one."""

    frame: Any
    keys: Sequence[Expr]
    above: Expr


class LineCounting(Protocol):
    """How an engine gets from rows to groups of people: see `row_lines` and `people_lines`."""

    owner: tuple[str, ...]  # the column that says whose line it is, where a person may have several

    def grouped(self, names: tuple[str, ...], where: Test | None) -> Any:
        """Return the people that `where` picks, as groups of the cells of attributes with their number "n"."""

    def slots(self, names: frozenset[str]) -> Any:
        """Return one line for each row that counts: the slots of attributes, and whose it is."""

    def added(self, name: str, names: tuple[str, ...], where: Test | None) -> Addition:
        """Return one line for each row that counts and that `where` picks, ready to be added up."""

    def held(self, name: str, where: Test | None) -> HeldItems:
        """Return the items of a set, a line for each that one of the people whom `where` picks has."""

    def positions(self, table: pa.Table, names: tuple[str, ...]) -> list[Positions]:
        """Return the positions of groups: of each attribute."""

    def item_positions(self, name: str, keys: Sequence[pa.ChunkedArray]) -> Positions:
        """Return the positions of groups of items."""


def grouped(frame: Any, keys: Sequence[Expr], *, distinct: tuple[str, ...] = (), lines: Expr | None = None) -> Any:
    """Count the lines in each group of keys as "n"; lines that agree in `distinct` and the keys count once.

    `lines` is the expression that counts, for lines that already stand for several.
    """
    names = [f"k{place}" for place in range(len(keys))]
    aliased = [key.alias(name) for key, name in zip(keys, names, strict=True)]
    counted = nw.len() if lines is None else lines
    if distinct:
        frame = frame.select(*distinct, *aliased).unique()
    elif aliased:
        frame = frame.select(*aliased, *(() if lines is None else ("n",)))
    if not names:
        return frame.select(counted.alias("n"))
    return frame.group_by(*names).agg(counted.alias("n"))


def asked_in(where: Test | None) -> tuple[set[str], dict[str, tuple[str, int, str]]]:
    """Return the attributes that a test asks for, and its items: axis -> set, place, and the name of a mark."""
    axes = sorted({axis for axis, _ in where.atoms} if where is not None else [], key=lambda axis: axis.name)
    items = {}
    for number, axis in enumerate(axis for axis in axes if axis.item is not None):
        assert axis.item is not None  # noqa: S101 - chosen above
        items[axis.name] = (axis.attribute, axis.item, f"h{number}")
    return {axis.attribute for axis in axes if axis.item is None}, items


def holds(where: Test, atom: Callable[[str, Intervals], Expr]) -> Expr:
    """Say on each line whether a test holds, where `atom` says whether the position on an axis lies in a set."""
    return where.holds(lambda axis, found: atom(axis.name, found), lambda e: ~e)


def either(has: Expr, positions: Intervals) -> Expr:
    """Say whether having an item (1) or being without it (0) lies in a set."""
    yes, no = 1 in positions, 0 in positions
    if yes and no:
        return has | ~has
    return has if yes else ~has if no else has & ~has


def key_columns(table: pa.Table) -> list[pa.ChunkedArray]:
    """Return what groups are told apart by."""
    return [table.column(name) for name in table.column_names if name != "n"]


def whole(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return a column of whole numbers; the sum of no lines is missing, which is 0."""
    return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(), dtype=np.int64)
