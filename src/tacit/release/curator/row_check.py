"""Which cells of the rows do not fit the domain, and whether a key names every row once, for whoever holds the rows.

Guarantee   None: `tacit check POLICY --rows DATA` shows true counts of people's cells, to the holder of the data alone.
            They are written nowhere, no record, report or certificate can hold them, and no cell is ever shown.
Assumes     Whoever asks may see the rows anyway.
Why         A release must not say how many rows the domain drops; whoever declares the domain must know it. Cells are
            read by the engine and the codes that releases use (`rows/sources`, `rows/cells/readings.py`), and the
            number of people that remain is counted by the same code. A release refuses a key that is missing or
            repeated only once it is paid for; keys are read here as a release reads them, so that this is found before.
Checked by  tests/unit/release/test_row_check.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import and_
from typing import Any, Final

import narwhals as nw
import numpy as np

from tacit.drawing import Held
from tacit.errors import DataRefused, InternalError, Unread, sealed
from tacit.plan.measure.measured import CellCounts
from tacit.policy.attributes import Attribute
from tacit.policy.policy import Policy, as_policy
from tacit.release.curator import PRIVATE
from tacit.release.curator.kept_rows import KeptRows, kept_lines, kept_rows
from tacit.release.session import check_public_columns, open_for
from tacit.rows.cells.kinds import UNEXPECTED, code_of, unexpected_of
from tacit.rows.cells.readings import Code, DataColumn, Expr
from tacit.rows.cells.row_names import Named, in_one_list
from tacit.rows.counts.item_counts import ItemCounts
from tacit.rows.files.headers import is_called_an_id
from tacit.rows.files.sample import selected
from tacit.rows.files.written import Written, written
from tacit.rows.guard import closed
from tacit.rows.rows import Rows
from tacit.rows.sources.engine import PERSON, Engine, unreadable
from tacit.rows.sources.source import columns_of, engine_for


@dataclass(frozen=True)
class KeyCheck:
    """How often keys are there: `repeated` counts those in several rows. `refused`: what a release would say first."""

    columns: tuple[str, ...]
    rows: int
    repeated: int
    refused: str = ""

    def __str__(self) -> str:
        named = ", ".join(self.columns)
        if self.refused:
            return f"{named}: true records by this key would be refused. {self.refused}"
        if not self.repeated:
            return f"{named}: names each of {self.rows:,} rows once"
        many = "1 key is" if self.repeated == 1 else f"{self.repeated:,} keys are"
        return (
            f"{named}: {many} there more than once in {self.rows:,} rows, so that true records by this key would be "
            "refused. Remove rows, or add what tells them apart to the key"
        )


def check_key(rows: Rows, attributes: Sequence[str], key: Sequence[str]) -> KeyCheck:
    """Look at the key of every row."""
    numbered = [name for name in key if name in attributes]
    others = [name for name in key if name not in attributes]

    def work(positions: Mapping[str, Any], named: Mapping[str, Named], _: int) -> tuple[list[Any], list[Named]]:
        return [np.array(positions[name]) for name in numbered], [named[name] for name in others]

    def looked_at() -> list[tuple[list[Any], list[Named]]]:
        return list(rows.records(numbered, key, work))

    try:
        rows.check_naming(others)
        parts = closed(looked_at, InternalError("rows were open"))
    except DataRefused as refused:
        # without the fix, which is about what was paid for
        return KeyCheck(tuple(key), 0, 0, f"Column {refused.column!r} {refused.rule}.")
    columns = [np.concatenate([found[at] for found, _ in parts] or [np.zeros(0)]) for at in range(len(numbered))]
    columns += [in_one_list([found[at] for _, found in parts])[1] for at in range(len(others))]
    _, many = np.unique(np.stack(columns), axis=1, return_counts=True)
    return KeyCheck(tuple(key), int(many.sum()), int((many > 1).sum()))


_ONE: Final = nw.lit(1, nw.Int64)
_AT_ONCE: Final = 12  # columns in one pass over the rows
_MOST_IDS: Final = 5
_LONG, _SHORT = "DD.MM.YYYY", "D.M.YYYY"


@dataclass(frozen=True)
class ColumnCheck:
    """What does not fit in one attribute: how many cells are unexpected, of which kind, and what becomes of them.

    `unexpected` counts cells by kind. `dropped` is how many rows this attribute drops, whatever the others do.
    `counted_as` says what unexpected cells count as instead. `refused` is why no release could read the column. The
    `remedy` says how to declare in which way cells are written.
    """

    name: str
    cells: int
    unexpected: Mapping[str, int]
    dropped: int
    counted_as: str = ""
    refused: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"{self.name}: a release would be refused. {self.refused}"
        if not self.unexpected:
            return f"{self.name}: all {self.cells:,} cells fit"
        many = sum(self.unexpected.values())
        kinds = ", ".join(f"{count:,} {UNEXPECTED[kind]}" for kind, count in self.unexpected.items())
        effects = [f"{_rows(self.dropped)} dropped"] if self.dropped else []
        if self.counted_as and many > self.dropped:
            effects.append(f"{'the others' if self.dropped else 'they'} {self.counted_as}")
        remedy = f". {self.remedy}" if self.remedy else ""
        return (
            f"{self.name}: {many:,} of {self.cells:,} cells are unexpected ({kinds}); {' and '.join(effects)}{remedy}"
        )


@dataclass(frozen=True)
class PersonCheck:
    """How often the values of a column that names people, or is called so, repeat.

    `surplus` is how many rows that the domain keeps are beyond the `per_person` rows of a person that count; None
    where the policy does not name the column. `counted` is how many do.
    """

    column: str
    people: int
    without: int
    several: int
    surplus: int | None = None
    per_person: int = 1
    counted: int | None = None

    def __str__(self) -> str:
        values = f"{self.column}: {self.people:,} different values, {self.several:,} of them in several rows"
        if self.without:
            values += f", {self.without:,} row{'s' * (self.without != 1)} without one"
        if self.surplus is None:
            return f"{values}. The policy does not name it as `person`, so each row counts as one person"
        if not self.surplus:
            return values
        counted = "1 row of each person is" if self.per_person == 1 else f"{self.per_person} rows of each person are"
        return f"{values}; {_rows(self.surplus)} left out, because only {counted} counted"


@dataclass(frozen=True, repr=False)
class RowsCheck(Held):
    """How well rows fit a policy's domain. For the holder of the data only; nothing of it is part of a release.

    `rows` is how many there are, `kept` how many the domain keeps, `remaining` what an exact count of everybody under
    the policy would be (None where a release would be refused): people, or rows where no person is named. `counted` is
    how many of the rows that are kept releases count: of each person no more than `per_person`, and none of nobody.
    `kept_by` says how many would count with other numbers of rows per person, if somebody owns several.
    """

    rows: int
    kept: int
    remaining: int | None
    columns: tuple[ColumnCheck, ...]
    persons: tuple[PersonCheck, ...] = ()
    key: KeyCheck | None = None
    kept_by: tuple[KeptRows, ...] = ()
    private: str = field(default=PRIVATE, init=False)

    @property
    def counted(self) -> int:
        """How many rows releases count."""
        named = [person.counted for person in self.persons if person.counted is not None]
        return named[0] if named else self.kept

    @property
    def dropping_most(self) -> ColumnCheck | None:
        """The attribute that drops most rows, if any does."""
        worst = max(self.columns, key=lambda column: column.dropped, default=None)
        return worst if worst is not None and worst.dropped else None

    def document(self) -> dict[str, Any]:
        """Return the same as plain data."""
        worst = self.dropping_most
        return {
            "private": self.private,
            "rows": self.rows,
            "kept": self.kept,
            "dropped": self.rows - self.kept,
            "counted": self.counted,
            "remaining": self.remaining,
            "drops_most": None if worst is None else worst.name,
            "columns": [_document(column) for column in self.columns],
            "persons": [_document(person, "per_person", "counted") for person in self.persons],
            "key": None if self.key is None else _document(self.key),
            "kept_by": [asdict(one) for one in self.kept_by],
        }

    def __str__(self) -> str:
        named = any(person.surplus is not None for person in self.persons)
        lines = [self.private, ""]
        share = f" ({(self.rows - self.kept) / self.rows:.1%})" if self.kept < self.rows else ""
        if self.remaining is None:
            lines.append(f"{self.rows:,} rows. A release would be refused because of a column's type.")
        else:
            lines.append(
                f"{self.rows:,} rows; the domain keeps {self.kept:,} and drops {self.rows - self.kept:,}{share}."
            )
        if self.remaining is not None and named:
            people = f"{self.remaining:,} {'person' if self.remaining == 1 else 'people'}"
            lines.append(f"Of those that it keeps, releases read {self.counted:,}, of {people}.")
        if (worst := self.dropping_most) is not None:
            lines.append(f"Most are dropped by {worst.name}: {worst.dropped:,}.")
        lines += ["", "Cells:", *(f"  - {column}" for column in self.columns)]
        if self.persons:
            lines += ["", "People:", *(f"  - {person}" for person in self.persons)]
        if self.kept_by:
            lines += ["", *kept_lines(self.kept_by)]
        if self.key is not None:
            lines += ["", "Key:", f"  - {self.key}"]
        return "\n".join(lines)


@sealed
def check_rows(
    policy: Policy,
    rows: Any,
    *,
    person: str | None = None,
    per_person: int | None = None,
    order: str | None = None,
    item: str | None = None,
    key: Sequence[str] = (),
) -> RowsCheck:
    """Count which cells do not fit the policy's domain, how many rows and people would remain, and keys that repeat.

    For the holder of the data only: the counts are true, and no part of a release. Nothing is charged or written. The
    arguments are those of `Session`; `key` is that of `tc.true_records`.
    """
    policy = as_policy(policy)
    if isinstance(rows, ItemCounts):
        raise DataRefused("item counts have no cells to check", fix="Give the rows.")
    policy = policy.about(person, per_person, order, item)
    found = _Check(policy, rows).done()
    of_rows = policy.person is not None and not any(attribute.is_set for attribute in policy.domain.values())
    if of_rows and found.remaining and found.persons[0].several:
        found = replace(found, kept_by=kept_rows(policy, rows))
    return replace(found, key=check_key(open_for(policy, rows), list(policy.domain), key)) if key else found


class _Check:
    """One look at the rows. True counts live here and in the `RowsCheck` that comes out."""

    def __init__(self, policy: Policy, source: Any) -> None:
        self._policy, self._source = policy, source
        domain = policy.domain
        raw_of = columns_of(domain, policy.item)
        declared = frozenset(raw for names in raw_of.values() for raw in names)
        lists = frozenset(raw_of[name][0] for name, one in domain.items() if one.is_set)
        self._engine: Engine = engine_for(source, lists=lists, declared=declared)
        self._schema = closed(self._engine.columns, Unread("the columns of the source could not be listed"))
        self._refusals: dict[str, str] = {}
        self._read: dict[str, tuple[DataColumn, ...]] = {}
        self._codes: dict[str, Code] = {}
        wanted = declared if policy.person is None else declared | {policy.person}
        if any(raw not in self._schema for raw in wanted):
            self._opened()  # refuses, with the sentence of a release
        names = {raw: f"c{place}" for place, raw in enumerate(sorted(declared))}
        for name, attribute in domain.items():
            columns = tuple(replace(self._schema[raw], raw=raw, name=names[raw]) for raw in raw_of[name])
            try:
                self._codes[name] = code_of(attribute, tuple(_single(column) for column in columns))
                self._read[name] = columns
            except DataRefused as refused:
                self._refusals[name] = str(refused)

    def _opened(self) -> Rows:
        """Return the rows as a session opens them, so that what remains is what a release counts."""
        check_public_columns(self._policy)
        return open_for(self._policy, self._source)

    def done(self) -> RowsCheck:
        """Count everything."""
        # first the counts that a release would make, with all of its refusals
        remaining = None if self._refusals else int(self._opened().tally([CellCounts(())])[0])
        plain = [name for name, columns in self._read.items() if columns[0].reading != "list"]
        totals: dict[str, int] = {}
        for start in range(0, len(plain), _AT_ONCE):
            totals |= self._counted(plain[start : start + _AT_ONCE])
        rows, kept = self._kept()
        columns = []
        for name, attribute in self._policy.domain.items():
            if name in self._refusals:
                columns.append(ColumnCheck(name, rows, {}, 0, refused=self._refusals[name]))
                continue
            if name not in plain:
                totals |= self._counted([name], unrolled=True)
            found = {kind: totals[f"{name}\0{kind}"] for kind in self._kinds(name)}
            columns.append(
                ColumnCheck(
                    name,
                    totals[f"{name}\0cells"],
                    {kind: count for kind, count in found.items() if count},
                    0 if attribute.is_set else rows - totals[f"{name}\0valid"],
                    _counted_as(attribute, found),
                    remedy=_remedy([kind for kind, count in found.items() if count], written(self._source)),
                )
            )
        return RowsCheck(rows, kept, remaining, tuple(columns), tuple(self._persons()))

    def _kinds(self, name: str) -> dict[str, Expr]:
        return dict(unexpected_of(self._policy.domain[name], tuple(_single(column) for column in self._read[name])))

    def _frame(self, names: Sequence[str], *, unrolled: bool = False, person: str | None = None) -> Any:
        """Return the columns of some attributes, with the number readings that their codes and our tests look at.

        With the column that names people beside them, if it is given.
        """
        columns = tuple(dict.fromkeys(column for name in names for column in self._read[name]))
        owner = {} if person is None else {PERSON: person}
        native = selected(self._engine, {**{column.name: column.raw for column in columns}, **owner})
        frame = nw.from_native(native).lazy()
        if unrolled:
            frame = self._engine.dialect.unrolled(frame, columns[0].name, "place")
        texts = [one for column in columns if (one := _single(column)).reading == "text"]
        read = [*texts, *(one for name in names for one in self._codes[name].numbers)]
        return self._engine.dialect.with_readings(frame, read)

    def _counted(self, names: Sequence[str], *, unrolled: bool = False) -> dict[str, int]:
        asked: dict[str, Expr | None] = {}
        for name in names:
            asked[f"{name}\0cells"] = None
            asked[f"{name}\0valid"] = self._codes[name].valid
            asked |= {f"{name}\0{kind}": test for kind, test in self._kinds(name).items()}
        return self._sums(self._frame(names, unrolled=unrolled), asked)

    def _kept(self) -> tuple[int, int]:
        names, every = self._fitting()
        found = self._sums(self._frame(names), {"rows": None, "kept": every})
        return found["rows"], found["kept"]

    def _fitting(self) -> tuple[list[str], Expr | None]:
        """Return the test that a row has a position in every attribute that can be read, and what it looks at."""
        some = {
            name: code
            for name, code in self._codes.items()
            if code.valid is not None and self._read[name][0].reading != "list" and not self._policy.domain[name].is_set
        }
        return list(some), reduce(and_, (code.valid for code in some.values())) if some else None

    def _sums(self, frame: Any, asked: Mapping[str, Expr | None]) -> dict[str, int]:
        """Count the rows that pass each test (None: all of them) in one pass."""
        tests = {f"t{place}": test for place, test in enumerate(asked.values())}
        sums = [
            (nw.len() if test is None else nw.when(test).then(_ONE).sum()).alias(name) for name, test in tests.items()
        ]
        row = self._row(frame, sums)
        return {key: row[name] for key, name in zip(asked, tests, strict=True)}

    def _row(self, frame: Any, sums: Sequence[Expr]) -> dict[str, int]:
        """Return the only row of some sums by their names; those of nothing are 0."""

        def collected() -> dict[str, Any]:
            with self._engine.quiet():
                (row,) = self._engine.collected(frame.select(*sums)).to_pylist()
            return dict(row)

        return {name: int(value or 0) for name, value in closed(collected, unreadable()).items()}

    def _persons(self) -> Iterator[PersonCheck]:
        policy = self._policy
        if policy.person is not None:
            yield self._person(policy.person, policy.per_person)
            return
        columns = {raw for names in columns_of(policy.domain, policy.item).values() for raw in names}
        called = [raw for raw, column in self._schema.items() if is_called_an_id(raw) and column.reading != "list"]
        for raw in [raw for raw in called if raw not in columns][:_MOST_IDS]:
            found = self._person(raw, None)
            if found.several:
                yield found

    def _person(self, raw: str, per_person: int | None) -> PersonCheck:
        reading = self._schema[raw].reading
        names, fits = self._fitting() if per_person is not None else ([], None)
        whose = ~nw.col(PERSON).is_null()
        if reading == "real":
            whose = whose & ~nw.col(PERSON).cast(nw.Float64).is_nan()
        total = self._sums(self._frame(names, person=raw), {"rows": None, "whose": whose})
        # rows of one person are chosen among those that the domain keeps
        kept = _ONE if fits is None else nw.when(fits).then(_ONE).otherwise(nw.lit(0, nw.Int64))
        owned = self._frame(names, person=raw).filter(whose).select(PERSON, kept.alias("kept"))
        people = owned.group_by(PERSON).agg(nw.len().alias("n"), nw.col("kept").sum().alias("kept"))
        surplus = nw.col("kept") - (per_person or 1)
        sums = (
            nw.len().alias("people"),
            nw.when(nw.col("n") > 1).then(_ONE).sum().alias("several"),
            nw.when(surplus > 0).then(surplus).sum().alias("surplus"),
            nw.col("kept").sum().alias("fitting"),
        )
        row = self._row(people, sums)
        if any(attribute.is_set for attribute in self._policy.domain.values()):
            row["surplus"] = 0  # the items of all rows of a person count
        return PersonCheck(
            raw,
            row["people"],
            total["rows"] - total["whose"],
            row["several"],
            None if per_person is None else row["surplus"],
            per_person or 1,
            None if per_person is None else row["fitting"] - row["surplus"],
        )


def _document(check: ColumnCheck | PersonCheck | KeyCheck, *left_out: str) -> dict[str, Any]:
    found = {key: value for key, value in asdict(check).items() if key not in left_out}
    return {
        key: list(value) if isinstance(value, tuple) else None if value == "" else value for key, value in found.items()
    }


def _remedy(kinds: Sequence[str], way: Written) -> str:
    """Return how to declare in which way such cells are written; `way` is what was declared."""
    if "comma" in kinds and way.decimal != ",":
        return f"If the commas stand before decimals, say so: {_said('decimal', ',')}"
    if "offset" in kinds:
        return "Say in the policy whose clocks tell the time, for instance `zone: Europe/Berlin` or `zone: UTC`"
    if "form" not in kinds and "short form" not in kinds:
        return ""
    if not way.format:
        return f"Say how they are written, for instance {_said('format', _SHORT if 'short form' in kinds else _LONG)}"
    short = "short form" in kinds and {"DD", "MM"} & set(re.findall("D+|M+", way.format))
    return f"They do not fit {way.format}, which was given{'; D and M may have one digit or two' if short else ''}"


def _said(key: str, value: str) -> str:
    quoted = f'"{value}"' if value == "," else value
    ways = f"`--{key} {value}` on the command line, tc.Written(rows, {key}={value!r}) in Python"
    return f"`{key}: {quoted}` in a job file, {ways}"


def _single(column: DataColumn) -> DataColumn:
    """Return the column itself, or for a column of lists what a cell of the unrolled one is."""
    return column if column.element is None else replace(column.element, raw=column.raw, name=column.name)


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"


def _counted_as(attribute: Attribute, found: Mapping[str, int]) -> str:
    """Say what becomes of unexpected cells that drop no row, of those kinds that were found."""
    if attribute.is_set:
        return "are ignored"
    if attribute.otherwise is None:
        return ""
    if attribute.clips:
        lower = [UNEXPECTED[kind] for kind in ("decimal", "off step") if found.get(kind)]
        if not lower:
            return "count as the nearest end of the range"
        if not found.get("below") and not found.get("above"):
            return "count as the next lower value"
        return f"count as the nearest end of the range (out of range) or the next lower value ({' or '.join(lower)})"
    value = list(attribute.otherwise) if isinstance(attribute.otherwise, tuple) else attribute.otherwise
    return f"count as {value!r}"
