"""Rows grouped by the cells that they have, and how many rows have each combination; the engine groups them once.

Columns may be named whose values are read off the data: for the holder of the rows
(`release/curator/private_counts.py`), or where they are said to be public (`publish/groups.py`). Sensitive columns that
are published have listed values, and their cells mean what they mean everywhere (`rows/cells/readings.py`). A type that
cannot hold the listed values is refused by the type. Every row is a person. What comes out is in an order that follows
from the cells alone.

One rule for missing cells (None, NaN among numbers, and texts in Parquet files that are no UTF-8): a row that misses a
cell of a named column is left out, of tables and of what audits say about them. A sensitive cell that has no position
counts as missing. Under a policy the domain decides, cell by cell, as in every release.

A line is one person, or as many as its cell of a `weight` column says: a whole number, zero or more. Rows with a column
called `count`, as published tables have, are read in neither way until somebody says which.

Of sets of rows that agree in a column, such as households, one row each may be picked: with the same chance as every
row of its set, independent of all other sets. A uniform number below the size of the set says which. It looks at no
cell but that of the column, which is public, so who is picked depends on nobody's values. Rows with the same cells were
counted before: which of them is picked makes no difference.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from tacit.arrays import Ints
from tacit.errors import DataRefused, InternalError, Unread, nearest, sealed
from tacit.noise.draws import uniform_upto
from tacit.noise.keystream import current_stream
from tacit.plan.measure.measured import CellCounts
from tacit.policy.attributes import Attribute, Integers
from tacit.policy.domain import Domain
from tacit.rows.counts.item_counts import ItemCounts
from tacit.rows.guard import blind, closed
from tacit.rows.rows import open_rows
from tacit.rows.sources.duckdb_engine import WIDEST
from tacit.rows.sources.engine import Engine, MakeFrame, unreadable
from tacit.rows.sources.source import engine_for


def one_of_each(sets: Ints, counts: Ints) -> Ints:
    """Return which lines have the row that was picked of each set; `sets` is -1 for lines that have none.

    A line stands for as many rows as are counted.
    """
    order = np.argsort(sets, kind="stable")
    order = order[np.searchsorted(sets[order], 0) :]
    upto = np.cumsum(counts[order])
    ends = upto[np.flatnonzero(np.diff(sets[order], append=-1))]
    starts = np.concatenate([[0], ends])[: len(ends)]
    number = uniform_upto(current_stream(), (ends - starts).astype(np.uint64), wide=True)
    return np.asarray(order[np.searchsorted(upto, starts + number, "right")])


_WHICH: Final = "which cell it is"
_COUNT: Final = "count"  # what the column of a published table is called that says how many people a line stands for
_MOST: Final = 1 << 53  # people: below, counts are whole as floats


@dataclass(frozen=True, eq=False, repr=False)
class GroupedRows:
    """How many rows have each combination of cells that occurs.

    `values` are the different cells of each column, in order; `codes` has for each column the place of every
    combination's cell among them. `left_out` is how many rows miss one of these cells.
    """

    values: tuple[tuple[Any, ...], ...]
    codes: tuple[Ints, ...]
    counts: Ints
    left_out: int


@dataclass(frozen=True, eq=False, repr=False)
class PublicGroups:
    """Groups of people with the same public cells: the values of each public column, and which of them a group has.

    `counts` has one row for each group and one column for each combination of sensitive values. `frame` makes frames of
    the kind that the rows were.
    """

    values: tuple[tuple[Any, ...], ...]
    which: Ints
    counts: Ints
    frame: MakeFrame

    def __repr__(self) -> str:
        return f"PublicGroups({len(self.which)} groups)"


@sealed
def group_counts(source: Any, names: Sequence[str], weight: str | None = None) -> GroupedRows:
    """Count the people of any source by the cells of these columns, in its own engine.

    Each row is a person, or as many as its `weight` says.
    """
    engine = _engine(source, names if weight is None else [*names, weight])
    if weight is None:
        if _COUNT not in names and _COUNT in blind(engine.names, "listing columns"):
            raise DataRefused(
                "may say how many people a line stands for, as in published tables; or each line may be one person",
                column=_COUNT,
                fix=f"Say weight={_COUNT!r} for the first. For the second, leave the column out or rename it.",
            )
        table = _grouped(engine, names)
    else:
        lines = _grouped(engine, [*names, weight])
        found = closed(lambda: _weighted(lines, f"c{len(names)}"), InternalError("weighing rows"))
        if found is None:
            raise DataRefused(
                "must hold whole numbers, zero or more, and not too many people, to be a weight",
                column=weight,
                fix="Masked counts are in parts of a person, and may be negative: they cannot be measured.",
            )
        table = found
    return closed(lambda: _complete(table, len(names)), InternalError("grouping rows"))


def _weighted(lines: pa.Table, weight: str) -> pa.Table | None:
    """Return lines with the people that they stand for as `n`; None if some weight is no whole number, or below 0."""
    values, codes = _encoded(lines.column(weight))
    whole = [_whole(value) for value in values]
    if any(one is None or one < 0 for one in whole):
        return None
    counts = np.array(whole, object)[codes] * _counts(lines).astype(object)
    if sum(counts) >= _MOST:
        return None
    kept = counts > 0  # a line that stands for nobody is no line
    place = lines.column_names.index("n")
    return lines.set_column(place, "n", pa.array(counts.astype(np.int64))).filter(pa.array(kept.astype(np.bool_)))


def _whole(value: Any) -> int | None:
    """Return a cell as a whole number; None if it is none. Cells of files may be texts."""
    if value is None or isinstance(value, bool):
        return None
    try:
        found = int(value)
        return found if isinstance(value, str) or found == value else None
    except (TypeError, ValueError, OverflowError):
        return None


@sealed
def count_groups(
    source: Any, public: Sequence[str], sensitive: Mapping[str, Attribute], one_per: str | None = None
) -> PublicGroups:
    """Count the people of each combination of public cells and sensitive values; of sets, one row each."""
    names = [*public, *sensitive, *([] if one_per is None else [one_per])]
    engine = _engine(source, names)
    table = _grouped(engine, names)
    if one_per is not None:
        every = table
        table = closed(lambda: _picked(every, f"c{len(names) - 1}"), InternalError("picking rows"))
    return closed(lambda: _put_together(table, len(public), sensitive, engine.frame), InternalError("grouping rows"))


def _engine(source: Any, names: Sequence[str]) -> Engine:
    """Return what reads a source, or refuse columns that it cannot group by."""
    if isinstance(source, ItemCounts):
        raise DataRefused("item counts have no cells to group by", fix="Give the rows.")
    engine = engine_for(source, lists=frozenset(), declared=frozenset(names))
    unlisted = Unread("the columns of the rows could not be listed")
    found, readings = closed(engine.names, unlisted), closed(engine.schema, unlisted)
    for name in names:
        alike = [other for other in found if other.casefold() == name.casefold()]
        if name not in alike and len(alike) < 2:
            fix = "Check the name in the header of the file." if engine.is_file else nearest(name, list(found))
            raise DataRefused("must be a column of the rows", column=name, fix=fix)
        if len(alike) > 1:  # some engines would read the other one
            rule = "must be a column of the rows, once, and no other may differ from it in case only"
            raise DataRefused(rule, column=name, fix="Check its name.")
        if readings[name].reading in ("list", "other"):
            raise DataRefused("must hold one value per row", column=name, fix="Convert it to texts or whole numbers.")
    return engine


def _grouped(engine: Engine, names: Sequence[str]) -> pa.Table:
    """Return a line for each combination of cells: columns c0, c1, .. and n, how many rows have it."""
    columns = {f"c{place}": name for place, name in enumerate(names)}

    def counted(reader: Engine) -> pa.Table:
        with reader.quiet():
            frame = nw.from_native(reader.select(columns)).lazy()
            lines = frame.group_by(*columns).agg(nw.len().cast(nw.Int64).alias("n"))
            found = _plain(reader.collected(lines))
            found.validate(full=True)  # texts that Arrow hands to DuckDB are not looked at there
            return found

    legible, found = engine.legible(), None
    if legible is not engine:  # rarely needed, and slower
        with contextlib.suppress(DataRefused):
            found = closed(lambda: counted(engine), unreadable())
    return closed(lambda: counted(legible), unreadable()) if found is None else found


def _plain(lines: pa.Table) -> pa.Table:
    """Return lines whose cells are values, where an engine has coded them (categories)."""
    for place, column in enumerate(lines.columns):
        if pa.types.is_dictionary(column.type):
            name, values = lines.column_names[place], column.cast(column.type.value_type)
            lines = lines.set_column(place, name, values)
    return lines


def _picked(table: pa.Table, key: str) -> pa.Table:
    """Return one row of each set of rows that agree in a cell; rows that miss it are left out."""
    values, sets = _encoded(table.column(key))
    missing = [place for place, value in enumerate(values) if value is None]
    counts = np.asarray(table.column("n").to_numpy(), dtype=np.int64)
    found = table.take(pa.array(one_of_each(np.where(np.isin(sets, missing), -1, sets), counts)))
    return found.set_column(found.column_names.index("n"), "n", pa.array(np.ones(found.num_rows, np.int64)))


def _encoded(column: pa.ChunkedArray) -> tuple[tuple[Any, ...], Ints]:
    """Return the different cells in order, a missing one (also NaN) last, and the place of each cell among them."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    coded = pa.chunked_array(column).combine_chunks().dictionary_encode(null_encoding="encode")
    found = coded.dictionary.to_pylist()
    # None is there at most once, so it is compared with nothing
    order = sorted(range(len(found)), key=lambda at: (found[at] is None, str(type(found[at])), found[at]))
    rank = np.empty(len(found), dtype=np.int64)
    rank[order] = np.arange(len(found))
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    return tuple(found[place] for place in order), rank[codes]


def _coded(table: pa.Table, columns: int) -> tuple[tuple[tuple[Any, ...], ...], list[Ints], npt.NDArray[np.bool_]]:
    """Return the different cells of each column, which of them each line has, and which lines miss none."""
    values, codes, there = [], [], np.ones(table.num_rows, np.bool_)
    for place in range(columns):
        found, own = _encoded(table.column(f"c{place}"))
        values.append(tuple(value for value in found if value is not None))
        codes.append(own)
        there &= own < len(values[-1])  # a missing cell is the last
    return tuple(values), codes, there


def _counts(table: pa.Table) -> Ints:
    return np.asarray(table.column("n").to_numpy(), dtype=np.int64)


def _complete(table: pa.Table, columns: int) -> GroupedRows:
    values, codes, there = _coded(table, columns)
    counts = _counts(table)
    return GroupedRows(values, tuple(own[there] for own in codes), counts[there], int(counts[~there].sum()))


def _positions(cells: pa.ChunkedArray, name: str, attribute: Attribute) -> Ints:
    """Return the position of each cell, and -1 for one that is not in the data."""
    coded = pa.chunked_array(cells).combine_chunks().dictionary_encode()
    distinct, which = coded.dictionary, coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    if pa.types.is_decimal256(distinct.type):  # huge numbers: those that no domain has are alike
        kept = [min(max(number, -WIDEST), WIDEST) for number in distinct.to_pylist()]
        distinct = pa.array(kept, pa.decimal128(38, 0))
    # one more cell, so that there is one: its position is never looked at
    table = pa.table({name: pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])})
    domain = Domain({name: attribute, _WHICH: Integers(0, len(distinct))})
    rows = open_rows(table.append_column(_WHICH, pa.array(np.arange(len(distinct) + 1))), domain)
    (found,) = rows.tally([CellCounts((_WHICH, name))])
    places: Ints = np.where(found.any(axis=1), found.argmax(axis=1), -1)
    return np.asarray(places[which])  # -1 is the missing cell, which is the last


def _put_together(table: pa.Table, public: int, sensitive: Mapping[str, Attribute], frame: MakeFrame) -> PublicGroups:
    values, codes, kept = _coded(table, public)
    place = np.zeros(table.num_rows, np.int64)
    for number, (name, attribute) in enumerate(sensitive.items(), start=public):
        own = _positions(table.column(f"c{number}"), name, attribute)
        kept &= own >= 0
        place = place * attribute.size + own
    # a value that only rows have which are left out is in no group, and nobody hears of it
    there = [np.unique(own[kept], return_inverse=True) for own in codes]
    values = tuple(tuple(all_of[at] for at in used) for all_of, (used, _) in zip(values, there, strict=True))
    groups, of = _distinct([own for _, own in there], int(kept.sum()))
    size = int(np.prod([attribute.size for attribute in sensitive.values()]))
    counts = np.zeros((len(groups), size), np.int64)
    np.add.at(counts, (of, place[kept]), _counts(table)[kept])
    return PublicGroups(values, groups, counts, frame)


def _distinct(codes: Sequence[Ints], lines: int) -> tuple[Ints, Ints]:
    """Return the different lines of some columns of whole numbers, in order, and which of them each line is.

    Columns are put together one by one, as numbers below the lines there are, so that none gets too large.
    """
    of = np.zeros(lines, np.int64)
    for column in codes:
        of = np.unique(of * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    first = np.zeros(int(of.max(initial=-1)) + 1, np.int64)
    first[of] = np.arange(lines)
    return np.stack([column[first] for column in codes], axis=1) if codes else np.zeros((len(first), 0), np.int64), of
