"""True records, shown as far as the plan lets them: from batches of positions to the record of a release.

Guarantee   That of `plan/records_plan.py`: what is kept of the rows is what was shown of them, whether that was sure or
            up to a coin, and how many rows have a public key. All of it is a function of what is shown of each row by
            itself.
Assumes     Coins as in `mechanism/suppression.py`. With a key, coins are made of the key. That no key is missing or
            there twice is public, or taken as known where a secret edge changes keys (`plan/records_plan.py`).
Why         A row that is not shown leaves nothing behind but its key; where a secret edge changes the key, nothing at
            all: such rows are dropped as soon as keys were found to be unique, with the names that only they have.
            Whether a shown row was sure to be shown never changes along an edge (`plan/showing.py`), so that it tells
            no more than the row itself. Rows are sorted by their key, or without one by what they show, so that no
            order of the source is left.
            With a key, a row that the domain drops because a cell has no value of its attribute stays: that its key is
            not there would tell. No edge leads from or to it, so that what is shown of it is not bound by one; each
            coin still takes it for hidden if it looks at that cell or would show it, so that among rows with coins
            the gap is like one that a coin made: as likely at any value that the cell might have had, up to the
            exponential of the coin's epsilon. Where a column is always shown, a gap says that there was no value.
            That a key is missing or there twice, or that a person has more rows than the policy says, is refused while
            rows are open: by what is assumed, all possible data sets are alike in that.
Checked by  tests/unit/test_true_records.py, tests/unit/test_whole_records.py, tests/property/test_whole_records.py,
            tests/statistical/test_true_records.py, tests/contract/test_true_records_engines.py
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tacit.errors import DataRefused
from tacit.mechanism.suppression import shown
from tacit.noise.kept_coins import Names, name_of_number, name_of_text, remembered, tossed
from tacit.noise.keystream import Keystream, current_stream
from tacit.plan.labels import Labels
from tacit.plan.records_plan import RecordsPlan, owner_in
from tacit.plan.showing import HIDDEN, OPEN, Rule
from tacit.policy.domain import Domain
from tacit.release.true_records import (
    FEW,
    MOST_IN_MEMORY,
    Bools,
    Codes,
    FiledRecords,
    Positions,
    TrueRecordsRecord,
    estimated,
    holding,
    labels_of,
    on_axis,
    rules_of,
)
from tacit.rows.frames import Cells, cells_like
from tacit.rows.records import Work
from tacit.rows.row_names import Name, Named, in_one_list
from tacit.rows.shown_files import ShownFile

MOST_OWNERS: Final = 2**24  # different people of a policy with owners, whose rows are counted


class Records(Protocol):
    """Rows whose positions can be looked at one by one; see `rows/records.py`."""

    def records(self, names: Sequence[str], key: Sequence[str], work: Work) -> Any:
        """Yield what work returns for each batch of rows."""


class Part(NamedTuple):
    """What is shown of a batch: cells (the size of an attribute stands for none), names of rows, and what was sure.

    `people` is how many rows the domain keeps; `picked` are those of the rows here that are kept once keys were found
    to be unique: those that were asked for, and of whole records those that are shown. None: all of them.
    """

    cells: dict[str, Codes]
    named: Mapping[str, Named]
    sure: dict[int, Bools]
    people: int
    picked: Bools | None = None


def show_records(plan: RecordsPlan, rows: Records, secret_of: Callable[[str], bytes]) -> TrueRecordsRecord:
    """Look at every row once and return what is shown; `secret_of` has the secret of a line of coins."""
    domain, query = plan.policy.domain, plan.query
    test = None if query.where is None else query.where.compile(domain)
    secrets = [secret_of(plan.line(rule.digest)) if query.key and rule.tosses else b"" for rule in rules_of(plan)]
    asked_about = frozenset() if query.where is None else query.where.columns()
    numbered = [name for name in query.key if name in domain]
    stream = current_stream()  # also for the threads that work on batches

    def work(positions: Positions, named: Mapping[str, Named], people: int) -> Part:
        absent = {name: found for name, codes in positions.items() if (found := codes == domain[name].size).any()}
        rows = len(next(iter(positions.values())))
        picked = None if test is None else holding(test, positions, domain)
        for name in absent.keys() & asked_about:  # whatever is asked of a cell without a value, the answer is no
            picked = picked & ~absent[name]
        if picked is not None and not query.key:
            positions = {name: codes[picked] for name, codes in positions.items()}
            rows = int(picked.sum())
        cells = {name: np.array(positions[name]) for name in (*numbered, *query.shown)}
        names = _names(plan, positions, named, rows) if any(secrets) else None
        sure, hidden = {}, np.zeros(rows, dtype=np.bool_)
        for at, rule in enumerate(rules_of(plan)):
            marks = _marks(rule, positions, absent, domain, rows)
            is_shown = shown(rule, marks, _coins(plan, secrets[at], names, stream))
            for name in () if plan.is_whole else rule.names:
                cells[name] = _missing_unless(is_shown, cells[name], domain[name].size)
            if rule.tosses and (rule.marks == OPEN).any():
                sure[at] = np.asarray(is_shown & (marks == OPEN))
            hidden |= ~is_shown
        if query.key:
            # that keys are unique must hold for all rows: two that share a coin would tell each other
            if plan.is_whole:
                picked = ~hidden if picked is None else picked & ~hidden
            return Part(cells, named, sure, people, picked)
        kept = ~hidden
        some = {name: codes[kept] for name, codes in cells.items()}
        return Part(some, {}, {at: found[kept] for at, found in sure.items()}, people)

    asked = list(dict.fromkeys([*numbered, *query.shown, *plan.attributes_asked]))
    return _gathered(plan, iter(rows.records(asked, query.key, work)))


def _marks(rule: Rule, positions: Positions, absent: Mapping[str, Bools], domain: Domain, rows: int) -> Codes:
    """Return the mark of each row; one without a value that the rule looks at, or would show, is hidden."""
    looked_at = {axis.attribute for axis in rule.axes}
    without = [absent[name] for name in sorted(absent.keys() & (looked_at | set(rule.names)))]
    if not without:
        return rule.of_positions(lambda axis: on_axis(positions, axis, domain), rows)
    there = ~np.logical_or.reduce(without)
    some = {name: positions[name][there] for name in looked_at}
    marks = np.full(rows, HIDDEN, dtype=np.uint8)
    marks[there] = rule.of_positions(lambda axis: on_axis(some, axis, domain), int(there.sum()))
    return marks


def _coins(plan: RecordsPlan, secret: bytes, names: Names | None, stream: Keystream) -> Callable[[int], Bools]:
    if names is None:
        return lambda many: tossed(plan.each, many, stream)
    return lambda _: remembered(secret, names, plan.each)


def _names(plan: RecordsPlan, positions: Positions, named: Mapping[str, Named], rows: int) -> Names:
    """Return what coins are remembered by: the number of the key, or a block for each part of it."""
    key, domain = plan.query.key, plan.policy.domain
    if not named:
        return name_of_number(_numbered({name: positions[name] for name in key}, _sizes(key, domain), rows))
    blocks = np.zeros((rows, len(key), 2), dtype="<u8")
    for place, name in enumerate(key):
        if name in named:
            of_values = np.array([name_of_text(str(value)) for value in named[name].values], dtype="<u8").reshape(-1, 2)
            blocks[:, place] = of_values[named[name].which]
        else:
            blocks[:, place, 0] = positions[name]
    return blocks


def _missing_unless(is_shown: Bools, cells: Codes, size: int) -> Codes:
    return np.where(is_shown, cells, np.asarray(size).astype(cells.dtype))


def _gathered(plan: RecordsPlan, found: Iterator[Part]) -> TrueRecordsRecord:
    """Put the batches together, in the order of the key or of what is shown; in a file if they are many."""
    parts, rows = [], 0
    for part in found:
        parts.append(part)
        rows += len(next(iter(part.cells.values())))
        if rows > MOST_IN_MEMORY and _can_be_filed(plan):
            return _filed(plan, parts, found)
    return _in_memory(plan, parts)


def _check_people(plan: RecordsPlan, people: int) -> None:
    declared = plan.policy.known_people
    if declared is not None and people != declared:
        fix = "Correct known.size; rows that the domain drops do not count. What was asked stays charged."
        raise DataRefused(f"must hold the declared number of people, {declared:,}", fix=fix)


def _in_memory(plan: RecordsPlan, parts: list[Part]) -> TrueRecordsRecord:
    query, domain = plan.query, plan.policy.domain
    _check_people(plan, sum(part.people for part in parts))
    sorted_by = query.key or query.columns
    sizes = _sizes([name for name in dict.fromkeys([*query.key, *query.shown]) if name in domain], domain)
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
    for name in [name for name in asked if name in values and plan.is_whole]:
        values[name], asked[name] = _only_used(values[name], asked[name])
    values = {name: listed for name, listed in values.items() if name in asked}
    rows = len(next(iter(asked.values())))
    blank = TrueRecordsRecord(plan=plan, values=np.zeros(0), rows=rows, _cells=asked, _sure=sure, _names_of_rows=values)
    return replace(blank, values=np.array(blank.numbers_without_secret()))


def _table_columns(plan: RecordsPlan) -> list[str]:
    """Return the columns that were asked for, after the key where nothing of it is among them."""
    query = plan.query
    return list(query.columns if set(query.key) & set(query.columns) else (*query.key, *query.columns))


def _picks(plan: RecordsPlan) -> bool:
    """Say whether rows are looked at for their keys alone, and dropped then."""
    return bool(plan.query.key) and (plan.is_whole or plan.query.where is not None)


def _only_used(values: list[Any], which: Codes) -> tuple[list[Any], Codes]:
    """Return the names of some rows without those that only other rows have."""
    used, places = np.unique(which, return_inverse=True)
    return [values[at] for at in used.tolist()], places.reshape(-1)


def _can_be_filed(plan: RecordsPlan) -> bool:
    """Say whether rows can be written as they come: all of them, and without names that have no order of their own."""
    owner = owner_in(plan.query.key, plan.policy) if plan.policy.person is not None else None
    return not plan.naming and not _picks(plan) and (owner is None or plan.policy.domain[owner].size <= MOST_OWNERS)


def _filed(plan: RecordsPlan, parts: list[Part], others: Iterator[Part]) -> TrueRecordsRecord:
    """Write batches as they come, and sort the file if they were not in order."""
    query, domain = plan.query, plan.policy.domain
    people, shown_cells = 0, dict.fromkeys(query.shown, 0)
    sure = dict.fromkeys(parts[0].sure, 0)
    owner = owner_in(query.key, plan.policy) if plan.policy.person is not None else None
    owned = np.zeros(0 if owner is None else domain[owner].size, dtype=np.int64)
    asked, sorted_by = _table_columns(plan), query.key or query.columns
    names = list(dict.fromkeys([*asked, *sorted_by]))
    tables = {name: _Values(domain, name) for name in names}
    file = ShownFile({name: table.cells for name, table in tables.items()})
    for part in itertools.chain(parts, others):
        people += part.people
        rows = len(next(iter(part.cells.values())))
        numbers = _numbered({name: part.cells[name] for name in sorted_by}, _sizes(sorted_by, domain), rows)
        file.add(numbers, {name: tables[name].column(part.cells[name]) for name in names})
        for name in query.shown:
            shown_cells[name] += int((part.cells[name] != domain[name].size).sum())
        for at, found in part.sure.items():
            sure[at] += int(found.sum())
        if owner is not None:
            owned += np.bincount(part.cells[owner].astype(np.int64), minlength=len(owned))
    parts.clear()
    _check_people(plan, people)
    if not file.finish({name: tables[name].in_order for name in sorted_by}, asked, unique=bool(query.key)):
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


def _joined(arrays: list[Codes], kind: Any) -> Codes:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)


def _order(cells: Positions, sizes: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Return the rows in the order of some columns."""
    rows = len(next(iter(cells.values())))
    if math.prod(sizes[name] for name in cells) < 2**63:
        return np.argsort(_numbered(cells, sizes, rows), kind="stable")
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
        "must name every row once: a key is there twice (that keys are unique is taken as known, and may be said)",
        column=", ".join(plan.query.key),
        fix="Remove one of the rows, and ask again: by the same key that costs nothing more. Or add what tells them "
        "apart to the key, which is charged anew; 7 and 7.0, or two times of one day, are one name.",
    )


def _too_many_rows(plan: RecordsPlan, owner: str) -> DataRefused:
    return DataRefused(
        f"must have at most {plan.rows_each:,} rows of one person, as per_person says (keys are public)",
        column=owner,
        fix="Raise per_person, which is charged anew; what was asked stays charged.",
    )


class _Values:
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
    def cells(self) -> Cells:
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


def _sizes(names: Sequence[str], domain: Domain) -> dict[str, int]:
    return {name: domain[name].size for name in names}


def _numbered(cells: Positions, sizes: Mapping[str, int], rows: int) -> npt.NDArray[np.uint64]:
    """Return the number of each row's cells: positions as the digits of one number."""
    numbers = np.zeros(rows, dtype=np.uint64)
    for name, codes in cells.items():
        numbers = numbers * np.uint64(sizes[name]) + codes.astype(np.uint64)
    return numbers
