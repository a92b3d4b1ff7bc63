"""From rows to the record of true records: what the plan lets be shown of each row, put together.

Guarantee   That of `plan/plans/records.py`: what is kept of the rows is what was shown of them, whether that was
            certain or depended on a coin, and how many rows have a public key. The record is a function of what is
            shown of each row by itself, as a bag: it depends neither on batches nor on the order of the source.
Assumes     Coins as in `plan/plans/visible_records.py`. With a key, coins are made of the key. That no key is missing
            or there twice is public, or taken as known where a secret edge changes keys (`plan/plans/records.py`). How
            many rows a person has and how many people there are is public or taken as known, too.
Why         A row that is not shown leaves nothing behind but its key; where a secret edge changes the key, nothing at
            all: such rows are dropped as soon as keys were found to be unique, with the names that only they have.
            Whether a shown row was certain to be shown never changes along an edge (`plan/plans/visible_records.py`),
            so that it tells no more than the row itself.
            Rows are sorted by their key, or without one by all that they show, so that no order of the source is left.
            More rows than memory should hold are written to a file (`rows/files/shown_files.py`).
            With a key, a row that the domain drops because a cell has no value of its attribute stays: that its key is
            not there would tell. No edge leads from or to it, so that no edge bounds what is shown of it. Each coin
            still takes it for hidden if it looks at that cell or would show it, so that among rows with coins the gap
            is like one that a coin made: as likely at any value that the cell might have had, up to the exponential of
            the coin's epsilon. Where a column is always shown, a gap says that there was no value.
            A missing or repeated key, or a person with more rows than the policy says, is refused while rows are open:
            by what is assumed, all possible data sets are alike in that.
Checked by  tests/unit/release/test_true_records.py, tests/unit/release/test_whole_records.py,
            tests/unit/release/test_record_lines.py, tests/unit/rows/test_shown_files.py,
            tests/property/test_whole_records.py, tests/statistical/test_true_records.py,
            tests/contract/test_true_records_engines.py
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools
from tacit.errors import DataRefused
from tacit.noise.kept_coins import Names, name_of_text, remembered, remembered_by_number, tossed
from tacit.noise.keystream import Keystream, current_stream
from tacit.plan.plans.records import RecordsPlan, owner_in
from tacit.plan.plans.visible_records import HIDDEN, OPEN, Rule, shown
from tacit.plan.question import Labels
from tacit.policy.domain import Domain
from tacit.release.estimate.measure import check_people
from tacit.release.results.record import ReleaseRecord, draw_record
from tacit.release.results.true_records import (
    FEW,
    MOST_IN_MEMORY,
    Codes,
    FiledRecords,
    Positions,
    TrueRecordsRecord,
    estimated,
    labels_of,
)
from tacit.rows.cells.row_names import Name, Named, as_written, in_one_list
from tacit.rows.counts.counting import holds_at, on_axis
from tacit.rows.files.shown_files import KeyNumbers, ShownFile
from tacit.rows.rows import Rows
from tacit.rows.sources.frames import CellTypes, cells_like


@draw_record.register
def _(plan: RecordsPlan, truths: Sequence[Any], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    record = show_records(plan, rows, coins.secret_of)
    return lambda: record


def show_records(plan: RecordsPlan, rows: Rows, secret_of: Callable[[str], bytes]) -> TrueRecordsRecord:
    """Look at every row once and return what is shown; `secret_of` has the secret of a line of coins."""
    domain, query = plan.policy.domain, plan.query
    test = None if query.where is None else query.where.compile(domain)
    secrets = [secret_of(plan.line(rule.digest)) if query.key and rule.tosses else b"" for rule in plan.showing.rules]
    asked_about = frozenset() if query.where is None else query.where.columns()
    in_domain = [name for name in query.key if name in domain]
    stream = current_stream()  # also for the threads that work on batches

    def work(positions: Positions, named: Mapping[str, Named], people: int) -> ShownBatch:
        absent = {name: found for name, codes in positions.items() if (found := codes == domain[name].size).any()}
        rows = len(next(iter(positions.values())))
        picked = None if test is None else holds_at(test, domain, positions.__getitem__)
        for name in absent.keys() & asked_about:  # whatever is asked of a cell without a value, the answer is no
            picked = picked & ~absent[name]
        if picked is not None and not query.key:
            positions = {name: codes[picked] for name, codes in positions.items()}
            rows = int(picked.sum())
        cells = {name: np.array(positions[name]) for name in (*in_domain, *query.shown)}
        numbers = _numbers(plan, positions, rows) if query.key else np.zeros(0, dtype=np.uint64)
        names = _names(plan, positions, named, rows) if named and any(secrets) else None
        sure, hidden = {}, np.zeros(rows, dtype=np.bool_)
        for at, rule in enumerate(plan.showing.rules):
            marks = _marks(rule, positions, absent, domain, rows)
            is_shown = shown(rule, marks, _coins(plan, secrets[at], names, numbers, stream))
            for name in () if plan.is_whole else rule.names:
                missing = np.asarray(domain[name].size).astype(cells[name].dtype)
                cells[name] = np.where(is_shown, cells[name], missing)
            if rule.tosses and (rule.marks == OPEN).any():
                sure[at] = np.asarray(is_shown & (marks == OPEN))
            hidden |= ~is_shown
        if query.key:
            # that keys are unique must hold for all rows: two that share a coin would tell each other
            if plan.is_whole:
                picked = ~hidden if picked is None else picked & ~hidden
            return ShownBatch(cells, named, sure, people, numbers, picked)
        kept = ~hidden
        some = {name: codes[kept] for name, codes in cells.items()}
        numbers = _numbers(plan, some, int(kept.sum()))
        return ShownBatch(some, {}, {at: found[kept] for at, found in sure.items()}, people, numbers)

    asked = list(dict.fromkeys([*in_domain, *query.shown, *plan.deciding_attributes]))
    return gathered(plan, iter(rows.records(asked, query.key, work)))


def _marks(rule: Rule, positions: Positions, absent: Mapping[str, Bools], domain: Domain, rows: int) -> Codes:
    """Return the mark of each row; one without a value that the rule looks at, or would show, is hidden."""
    looked_at = {axis.attribute for axis in rule.axes}
    without = [absent[name] for name in sorted(absent.keys() & (looked_at | set(rule.names)))]
    if not without:
        return rule.of_positions(lambda axis: on_axis(axis, domain, positions[axis.attribute]), rows)
    there = ~np.logical_or.reduce(without)
    some = {name: positions[name][there] for name in looked_at}
    marks = np.full(rows, HIDDEN, dtype=np.uint8)
    marks[there] = rule.of_positions(lambda axis: on_axis(axis, domain, some[axis.attribute]), int(there.sum()))
    return marks


def _coins(
    plan: RecordsPlan, secret: bytes, names: Names | None, numbers: Numbers, stream: Keystream
) -> Callable[[int], Bools]:
    """Return what has the coins of a rule: new ones without a key, else those of the numbers or the blocks of it."""
    if not plan.query.key:
        return lambda many: tossed(plan.each, many, stream)
    if names is None:
        return lambda _: remembered_by_number(secret, numbers, plan.each)
    return lambda _: remembered(secret, names, plan.each)


def _numbers(plan: RecordsPlan, cells: Positions, rows: int) -> Numbers:
    """Return the number of what rows are sorted by, which has at most 2^62 values; none for a key of other columns."""
    names = () if plan.naming else plan.query.key or plan.query.columns
    return numbered({name: cells[name] for name in names}, sizes_of(names, plan.policy.domain), rows)


def _names(plan: RecordsPlan, positions: Positions, named: Mapping[str, Named], rows: int) -> Names:
    """Return what coins are remembered by where a key has columns that are no attributes: a block for each part."""
    key = plan.query.key
    blocks = np.zeros((rows, len(key), 2), dtype="<u8")
    for place, name in enumerate(key):
        if name in named:
            of_values = np.array([name_of_text(str(value)) for value in named[name].values], dtype="<u8").reshape(-1, 2)
            blocks[:, place] = of_values[named[name].which]
        else:
            blocks[:, place, 0] = positions[name]
    return blocks


MOST_COUNTED: Final = 2**20  # different rows without a key, which are counted
MOST_OWNERS: Final = 2**24  # different people of a policy with owners, whose rows are counted
AT_A_TIME: Final = 2**18  # rows that are written
Numbers = npt.NDArray[np.uint64]


class ShownBatch(NamedTuple):
    """What is shown of a batch: cells (the size of an attribute stands for none), names of rows, and what was sure.

    `people` is how many rows the domain keeps; `picked` are those of the rows here that are kept once keys were found
    to be unique: those that were asked for, and of whole records those that are shown. None: all of them. `numbers`
    say in which order rows should be: those of their keys, or of what they show; none where the key has other columns.
    """

    cells: dict[str, Codes]
    named: Mapping[str, Named]
    sure: dict[int, Bools]
    people: int
    numbers: Numbers
    picked: Bools | None = None

    @property
    def rows(self) -> int:
        """How many rows these are."""
        return len(next(iter(self.cells.values())))


def gathered(plan: RecordsPlan, found: Iterator[ShownBatch]) -> TrueRecordsRecord:
    """Put the batches together, in the order of the key or of what is shown; in a file if they are many."""
    parts, rows = [], 0
    for part in found:
        parts.append(part)
        rows += part.rows
        if rows > MOST_IN_MEMORY and _can_be_filed(plan):
            return _filed(plan, parts, found)
    return _in_memory(plan, parts)


def _in_memory(plan: RecordsPlan, parts: list[ShownBatch]) -> TrueRecordsRecord:
    query, domain = plan.query, plan.policy.domain
    check_people(sum(part.people for part in parts), plan.policy.known_people)
    sorted_by = query.key or query.columns
    sizes = sizes_of([name for name in dict.fromkeys([*query.key, *query.shown]) if name in domain], domain)
    cells = {name: _joined([part.cells[name] for part in parts], np.int64) for name in sizes}
    values: dict[str, list[Name]] = {}
    for name in plan.naming:
        values[name], cells[name] = in_one_list([part.named[name] for part in parts])
        sizes[name] = len(values[name])
    order = _order({name: cells[name] for name in sorted_by}, sizes)
    cells = {name: codes[order] for name, codes in cells.items()}
    if query.key:
        _check_keys(plan, cells)
    sure = {at: _joined([part.sure[at] for part in parts], np.bool_)[order] for at in (parts[0].sure if parts else ())}
    kept: Any = slice(None)
    if _picks(plan):
        kept = _joined([part.picked for part in parts if part.picked is not None], np.bool_)[order]
    sure = {at: found[kept] for at, found in sure.items()}
    asked = {name: cells[name][kept] for name in _table_columns(plan)}
    values = {name: listed for name, listed in values.items() if name in asked}
    for name in values:
        values[name] = as_written(values[name], [_kept_names(part, name) for part in parts])
        if _picks(plan):
            values[name], asked[name] = _only_used(values[name], asked[name])
    rows = len(next(iter(asked.values())))
    blank = TrueRecordsRecord(plan=plan, values=np.zeros(0), rows=rows, _cells=asked, _sure=sure, _names_of_rows=values)
    return replace(blank, values=np.array(blank.numbers_without_secret()))


def _table_columns(plan: RecordsPlan) -> list[str]:
    query = plan.query
    return list(query.columns if set(query.key) & set(query.columns) else (*query.key, *query.columns))


def _picks(plan: RecordsPlan) -> bool:
    """Say whether rows are looked at for their keys alone, and dropped then."""
    return bool(plan.query.key) and (plan.is_whole or plan.query.where is not None)


def _kept_names(part: ShownBatch, name: str) -> Named:
    """Return what names the rows of a batch that are kept: others leave nothing, not even how they write a name."""
    return part.named[name] if part.picked is None else part.named[name].some(part.picked)


def _only_used(values: list[Any], which: Codes) -> tuple[list[Any], Codes]:
    used, places = np.unique(which, return_inverse=True)
    return [values[at] for at in used.tolist()], places.reshape(-1)


def _can_be_filed(plan: RecordsPlan) -> bool:
    """Say whether rows can be written as they come: not by names that have no order of their own."""
    owner = owner_in(plan.query.key, plan.policy) if plan.policy.person is not None else None
    return not plan.naming and (owner is None or plan.policy.domain[owner].size <= MOST_OWNERS)


def _filed(plan: RecordsPlan, parts: list[ShownBatch], others: Iterator[ShownBatch]) -> TrueRecordsRecord:
    """Write batches as they come, and sort the file if they were not in order."""
    query, domain = plan.query, plan.policy.domain
    people, shown_cells = 0, dict.fromkeys(query.shown, 0)
    sure = dict.fromkeys(parts[0].sure, 0)
    owner = owner_in(query.key, plan.policy) if plan.policy.person is not None else None
    owned = np.zeros(0 if owner is None else domain[owner].size, dtype=np.int64)
    table, every_key = _table(plan), KeyNumbers() if _picks(plan) else None  # else the table has all keys
    for part in itertools.chain(_taken(parts), others):
        people += part.people
        if owner is not None:
            owned += np.bincount(part.cells[owner].astype(np.int64), minlength=len(owned))
        if every_key is not None:
            every_key.add(part.numbers)
        kept = _picked(part)
        table.add(kept)
        for name in query.shown:
            shown_cells[name] += int((kept.cells[name] != domain[name].size).sum())
        for at, found in kept.sure.items():
            sure[at] += int(found.sum())
    check_people(people, plan.policy.known_people)
    file = table.finish() if every_key is None or every_key.are_unique() else None
    if file is None:
        raise _key_twice(plan)
    if owned.max(initial=0) > plan.rows_each:
        raise _too_many_rows(plan, owner or "")
    return FiledRecords(
        plan=plan,
        values=np.array([estimated(plan, shown_cells[name], sure, name) for name in query.shown]),
        rows=file.rows,
        _cells={},
        _sure={},
        _names_of_rows={},
        _file=file,
        _shown_cells=shown_cells,
        _sure_cells=sure,
    )


class _FileOfRows:
    """Rows in a file, as they come; sorted at the end, if they must be."""

    def __init__(self, plan: RecordsPlan) -> None:
        self._plan = plan
        self._sorted_by = plan.query.key or plan.query.columns
        self._asked = _table_columns(plan)
        self._values = {name: _AttributeValues(plan.policy.domain, name) for name in (*self._asked, *self._sorted_by)}
        self._file = ShownFile({name: values.cells for name, values in self._values.items()})

    def add(self, part: ShownBatch) -> None:
        """Take some rows."""
        self.write(part.numbers, part.cells)

    def write(self, numbers: Numbers, cells: Positions) -> None:
        """Write some rows; the numbers say in which order they should be."""
        self._file.add(numbers, {name: values.column(cells[name]) for name, values in self._values.items()})

    def finish(self) -> ShownFile | None:
        """Return the file; None if a key is there twice."""
        unique = bool(self._plan.query.key) and not _picks(self._plan)
        by = {name: self._values[name].in_order for name in self._sorted_by}
        return self._file if self._file.finish(by, self._asked, unique=unique) else None


class _Bag(_FileOfRows):
    """Rows without a key, which are sorted by all that they show: where that is little, it is counted, and written."""

    def __init__(self, plan: RecordsPlan, kinds: int) -> None:
        super().__init__(plan)
        self._counts = np.zeros(kinds, dtype=np.int64)

    def add(self, part: ShownBatch) -> None:
        self._counts += np.bincount(part.numbers.astype(np.int64), minlength=len(self._counts))

    def finish(self) -> ShownFile | None:
        ends = np.cumsum(self._counts)
        for start in range(0, int(ends[-1]), AT_A_TIME):
            rows = np.arange(start, min(start + AT_A_TIME, int(ends[-1])))
            numbers, cells = np.searchsorted(ends, rows, side="right"), {}
            rest = numbers
            for name in reversed(self._sorted_by):
                rest, cells[name] = np.divmod(rest, self._plan.policy.domain[name].size)
            self.write(numbers.astype(np.uint64), cells)
        return self._file.finished()


def _table(plan: RecordsPlan) -> _FileOfRows:
    kinds = math.prod(sizes_of(plan.query.columns, plan.policy.domain).values()) if not plan.query.key else 0
    return _Bag(plan, kinds) if 0 < kinds <= MOST_COUNTED else _FileOfRows(plan)


def _picked(part: ShownBatch) -> ShownBatch:
    if part.picked is None:
        return part
    cells = {name: codes[part.picked] for name, codes in part.cells.items()}
    sure = {at: found[part.picked] for at, found in part.sure.items()}
    return ShownBatch(cells, {}, sure, part.people, part.numbers[part.picked])


def _taken(parts: list[ShownBatch]) -> Iterator[ShownBatch]:
    while parts:
        yield parts.pop(0)


def _joined(arrays: list[Codes], kind: Any) -> Codes:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)


def _order(cells: Positions, sizes: Mapping[str, int]) -> npt.NDArray[np.int64]:
    rows = len(next(iter(cells.values())))
    if math.prod(sizes[name] for name in cells) < 2**63:
        return np.argsort(numbered(cells, sizes, rows), kind="stable")
    return np.lexsort(list(cells.values())[::-1])


def _check_keys(plan: RecordsPlan, cells: Positions) -> None:
    """Refuse keys that are there twice, and people with more rows than the policy says: neither is possible."""
    key = plan.query.key
    same = [cells[name][1:] == cells[name][:-1] for name in key]
    if np.logical_and.reduce(same).any():
        raise _key_twice(plan)
    owner = owner_in(key, plan.policy) if plan.policy.person is not None else None
    if owner is not None:
        _, many = np.unique(cells[owner], return_counts=True)
        if many.max(initial=0) > plan.rows_each:
            raise _too_many_rows(plan, owner)


def _key_twice(plan: RecordsPlan) -> DataRefused:
    return DataRefused(
        "must be unique: a key is there twice (that keys are unique is taken as known, so this reveals nothing)",
        column=", ".join(plan.query.key),
        fix="Remove one of the rows, and ask again: by the same key that costs nothing more. Or add what tells them "
        "apart to the key, which is charged anew; 7 and 7.0, or two times of one day, are one name.",
    )


def _too_many_rows(plan: RecordsPlan, owner: str) -> DataRefused:
    rule = f"must have at most {plan.rows_each:,} rows of one person, as per_person says (this is taken as known)"
    return DataRefused(rule, column=owner, fix="Raise per_person, which is charged anew; what was asked stays charged.")


class _AttributeValues:
    """The values of an attribute, made once for many batches of positions."""

    def __init__(self, domain: Domain, name: str) -> None:
        attribute = domain[name]
        self._size, self._attribute = attribute.size, attribute
        self._few = [*attribute.every_value(), None] if attribute.size <= FEW else None

    @property
    def in_order(self) -> Sequence[Any] | None:
        """The values in their order, where they do not compare by themselves."""
        return self._attribute.every_value() if self._attribute.measured == "names" else None

    @property
    def cells(self) -> CellTypes:
        """What cells of the attribute may be, which the policy alone says."""
        if self._few is not None:
            return cells_like(self._few[:-1], every=True)
        return cells_like(self.in_order or [self._attribute.value(0)], every=False)

    def column(self, cells: Codes) -> Any:
        """Return the values at these positions."""
        if self._few is not None:
            return Labels(self._few, cells)
        if self._attribute.unit == 1 and not (cells == self._size).any():
            return self._attribute.number(0) + self._attribute.spacing * cells.astype(np.int64)
        return labels_of(cells, {self._attribute.kind: self._attribute}, self._attribute.kind)


def sizes_of(names: Sequence[str], domain: Domain) -> dict[str, int]:
    """Return how many values each attribute has."""
    return {name: domain[name].size for name in names}


def numbered(cells: Positions, sizes: Mapping[str, int], rows: int) -> Numbers:
    """Return the number of each row's cells: positions as the digits of one number."""
    numbers: Numbers | None = None
    for name, codes in cells.items():
        digits = codes.astype(np.uint64)
        numbers = digits if numbers is None else numbers * np.uint64(sizes[name]) + digits
    return np.zeros(rows, dtype=np.uint64) if numbers is None else numbers
