"""True records, shown as far as the plan lets them: from batches of positions to the record of a release.

Guarantee   That of `plan/records_plan.py`: what is kept of the rows is what was shown of them, whether that was sure or
            up to a coin, and how many rows have a key. All of it is a function of what is shown of each row by itself.
Assumes     Coins as in `mechanism/suppression.py`. With a key, coins are made of the number of the key.
Why         A row that is not shown leaves nothing behind but its key. Whether a shown row was sure to be shown never
            changes along an edge (`plan/showing.py`), so that it tells no more than the row itself. Rows are sorted by
            their key, or without one by what they show, so that no order of the source is left.
            That a key is missing or there twice, or that a person has more rows than the policy says, is refused while
            rows are open: keys are public, and so is that.
Checked by  tests/unit/test_true_records.py, tests/statistical/test_true_records.py,
            tests/contract/test_true_records_engines.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from tacit.amounts import shown as shown_amount
from tacit.errors import DataRefused, PlanError
from tacit.mechanism.suppression import shown
from tacit.noise.kept_coins import Names, name_of_number, name_of_text, remembered, share_kept, tossed
from tacit.noise.keystream import Keystream, current_stream
from tacit.plan.labels import Labels
from tacit.plan.query import check_where, read_where
from tacit.plan.records_plan import RecordsPlan, owner_in
from tacit.plan.showing import OPEN, Rule
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.where import Test, Where
from tacit.release.record import Floats, ReleaseRecord, check_level
from tacit.rows.records import Named, Work

Codes = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Positions = Mapping[str, Codes]
_FEW: Final = 2**12  # values of an attribute that are all made, whether they were shown or not


class Records(Protocol):
    """Rows whose positions can be looked at one by one; see `rows/records.py`."""

    def records(self, names: Sequence[str], key: Sequence[str], work: Work) -> Any:
        """Yield what work returns for each batch of rows."""


class Part(NamedTuple):
    """What is shown of a batch: cells (the size of an attribute stands for none), names of rows, and what was sure.

    `people` is how many rows there were.
    """

    cells: dict[str, Codes]
    named: Mapping[str, Named]
    sure: dict[int, Bools]
    people: int


@dataclass(frozen=True)
class Estimate:
    """How many records without a secret there are: an unbiased estimate, and an interval that holds the true number."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TrueRecordsRecord(ReleaseRecord):
    """Records as they are. `frame` has them; `values` estimate how many have no secret, column by column."""

    plan: RecordsPlan
    rows: int
    _cells: dict[str, Codes] = field(repr=False)  # positions; the size of the attribute stands for a missing cell
    _sure: dict[int, Bools] = field(repr=False)  # by rule: which rows were sure to be shown
    _names_of_rows: dict[str, list[Any]] = field(repr=False)  # of columns that are no attributes

    def __post_init__(self) -> None:
        super().__post_init__()
        for array in (*self._cells.values(), *self._sure.values()):
            array.flags.writeable = False

    def __repr__(self) -> str:
        return f"<release of {self.plan.query}, epsilon {shown_amount(self.plan.epsilon)}: {self.summary()}>"

    def summary(self) -> str:
        """Return how many rows there are."""
        return f"{self.rows:,} row{'s' * (self.rows != 1)}"

    def labels(self) -> dict[str, Any]:
        """Return the columns that were asked for, and in how many rows each is shown."""
        names = self._estimated
        return {"column": list(names), "rows that show it": [int(self._is_shown(name).sum()) for name in names]}

    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return about how many records have no secret in each column, with the ends of intervals."""
        lower, upper = self.interval(level)
        return {"value": self.values, "lower": lower, "upper": upper}

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of intervals for the number of records without a secret, column by column."""
        check_level(level)
        found = [self._estimate(name, None, level) for name in self._estimated]
        return np.array([one.lower for one in found]), np.array([one.upper for one in found])

    def estimate(self, where: Where | str | None = None, level: float = 0.95) -> Estimate:
        """Return about how many records without a secret a predicate picks, from those that are shown.

        The predicate may ask about columns that are shown together, and about public ones. Each record that a coin
        decided about stands for 1 / (1 - exp(-epsilon)) of them; the interval is exact for that probability.
        """
        check_level(level)
        predicate, domain = read_where(where), self.plan.policy.domain
        check_where(predicate, domain)
        asked = frozenset() if predicate is None else predicate.columns()
        for name in sorted(asked - set(self._cells)):
            raise PlanError(
                "must ask about columns that were released",
                key="estimate.where",
                given=name,
                fix=f"Released: {', '.join(self._cells)}.",
            )
        rules = {self._rule_of(name) for name in asked or self._estimated}
        coins = {number for number in rules if number is not None}
        if len(coins) > 1:
            raise PlanError(
                "must ask about columns that share a coin",
                key="estimate.where",
                given=str(predicate),
                fix="Ask about one of them, and about public columns.",
            )
        number = next(iter(coins), None)
        counted = next(name for name in (*self._estimated, *asked) if self._rule_of(name) == number)
        return self._estimate(counted, None if predicate is None else predicate.compile(domain), level)

    def numbers_without_secret(self) -> list[float]:
        """Return about how many records have no secret, column by column."""
        return [self._estimate(name, None, 0.95).value for name in self._estimated]

    @property
    def _estimated(self) -> tuple[str, ...]:
        return self.plan.query.shown

    @property
    def _rules(self) -> tuple[Rule, ...]:
        return () if self.plan.showing is None else self.plan.showing.rules

    def _rule_of(self, name: str) -> int | None:
        return next((number for number, rule in enumerate(self._rules) if name in rule.names), None)

    def _is_shown(self, name: str) -> Bools:
        return np.asarray(self._cells[name] != self.plan.policy.domain[name].size)

    def _estimate(self, name: str, test: Test | None, level: float) -> Estimate:
        """Return about how many records have no secret in a column and are picked."""
        number, picked = self._rule_of(name), self._is_shown(name)
        if test is not None:
            columns = {axis.attribute for axis, _ in test.atoms}
            for other in columns:
                picked = picked & self._is_shown(other)
            picked = picked & _holds(test, self._cells, self.plan.policy.domain)
        if number is None or not self._rules[number].tosses:
            exact = float(picked.sum())
            return Estimate(exact, exact, exact)
        sure = int((picked & self._sure[number]).sum()) if number in self._sure else 0
        by_coin, share = int(picked.sum()) - sure, share_kept(self.plan.each)
        low, high = ends_of_trials(by_coin, share, level)
        if self.plan.query.key:  # how many rows there are is public
            high = min(high, self.rows - sure)
        return Estimate(sure + by_coin / share, float(sure + low), float(max(sure + high, sure + by_coin / share)))

    # ---- the table ----

    @cached_property
    def _columns(self) -> dict[str, Any]:
        domain = self.plan.policy.domain
        return {
            name: Labels(self._names_of_rows[name], cells)
            if name in self._names_of_rows
            else _labels(cells, domain, name)
            for name, cells in self._cells.items()
        }

    def columns(self, level: float = 0.95) -> dict[str, Any]:
        """Return the columns of the table: the key, and what is shown, None where it is missing."""
        return dict(self._columns)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_columns"}

    def write_csv(self, path: Path) -> None:
        """Write the table as CSV."""
        from tacit.release.table_file import write_csv

        write_csv(path, self.columns(), {}, error=0.0)

    def write_values(self, folder: Path, name: str) -> str:
        """Write the table as Parquet, however many rows it has."""
        from tacit.rows.frames import write_parquet

        write_parquet(folder / f"{name}.parquet", self.columns())
        return f"{name}.parquet"


def show_records(plan: RecordsPlan, rows: Records, secret_of: Callable[[str], bytes]) -> TrueRecordsRecord:
    """Look at every row once and return what is shown; `secret_of` has the secret of a line of coins."""
    domain, query = plan.policy.domain, plan.query
    test = None if query.where is None else query.where.compile(domain)
    secrets = [secret_of(plan.line(rule.digest)) if query.key and rule.tosses else b"" for rule in _rules(plan)]
    numbered = [name for name in query.key if name in domain]
    stream = current_stream()  # also for the threads that work on batches

    def work(positions: Positions, named: Mapping[str, Named], people: int) -> Part:
        rows = people
        if test is not None:
            picked = _holds(test, positions, domain)
            positions = {name: codes[picked] for name, codes in positions.items()}
            named, rows = {name: one.some(picked) for name, one in named.items()}, int(picked.sum())
        cells = {name: np.array(positions[name]) for name in (*numbered, *query.shown)}
        names = _names(plan, positions, named, rows) if any(secrets) else None
        sure, hidden = {}, np.zeros(rows, dtype=np.bool_)
        for at, rule in enumerate(_rules(plan)):
            marks = rule.of_positions(lambda axis: _on_axis(positions, axis, domain), rows)
            is_shown = shown(rule, marks, _coins(plan, secrets[at], names, stream))
            for name in rule.names:
                cells[name] = _missing_unless(is_shown, cells[name], domain[name].size)
            if rule.tosses and (rule.marks == OPEN).any():
                sure[at] = np.asarray(is_shown & (marks == OPEN))
            hidden |= ~is_shown
        if query.key:
            return Part(cells, named, sure, people)
        kept = ~hidden
        some = {name: codes[kept] for name, codes in cells.items()}
        return Part(some, {}, {at: found[kept] for at, found in sure.items()}, people)

    asked = list(dict.fromkeys([*numbered, *query.shown, *plan.attributes_asked]))
    return _gathered(plan, list(rows.records(asked, query.key, work)))


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
            of_values = np.array([_block(value) for value in named[name].values], dtype="<u8").reshape(-1, 2)
            blocks[:, place] = of_values[named[name].which]
        else:
            blocks[:, place, 0] = positions[name]
    return blocks


def _block(value: Any) -> tuple[int, int]:
    return name_of_text(value) if isinstance(value, str) else (value % 2**64, 0)


def _missing_unless(is_shown: Bools, cells: Codes, size: int) -> Codes:
    return np.where(is_shown, cells, np.asarray(size).astype(cells.dtype))


def _gathered(plan: RecordsPlan, parts: list[Part]) -> TrueRecordsRecord:
    """Put the batches together, in the order of the key or of what is shown."""
    query, domain = plan.query, plan.policy.domain
    declared, people = plan.policy.known_people, sum(part.people for part in parts)
    if declared is not None and people != declared:
        fix = "Correct known.size; rows that the domain drops do not count. What was asked stays charged."
        raise DataRefused(f"must hold the declared number of people, {declared:,}", fix=fix)
    sorted_by = query.key or query.columns
    sizes = _sizes([name for name in dict.fromkeys([*query.key, *query.shown]) if name in domain], domain)
    cells = {name: _joined([part.cells[name] for part in parts], np.int64) for name in sizes}
    values: dict[str, list[Any]] = {}
    for name in plan.naming:
        values[name], cells[name] = _one_list([part.named[name] for part in parts])
        sizes[name] = len(values[name])
    order = _order({name: cells[name] for name in sorted_by}, sizes)
    cells = {name: codes[order] for name, codes in cells.items()}
    if query.key:
        _check_keys(plan, cells)
    sure = {at: _joined([part.sure[at] for part in parts], np.bool_)[order] for at in (parts[0].sure if parts else ())}
    # the columns that were asked for, the key first where it was not among them
    names = [*(name for name in query.key if name not in query.columns), *query.columns]
    asked = {name: cells[name] for name in names}
    blank = TrueRecordsRecord(
        plan=plan, values=np.zeros(0), rows=len(order), _cells=asked, _sure=sure, _names_of_rows=values
    )
    return replace(blank, values=np.array(blank.numbers_without_secret()))


def _joined(arrays: list[Codes], kind: Any) -> Codes:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)


def _one_list(parts: list[Named]) -> tuple[list[Any], Codes]:
    """Return all names of rows in order, numbers before texts, and which of them each row has."""
    values = sorted(
        {value for part in parts for value in part.values}, key=lambda value: (isinstance(value, str), value)
    )
    place = {value: at for at, value in enumerate(values)}
    which = [np.array([place[value] for value in part.values], dtype=np.int64)[part.which] for part in parts]
    return values, _joined(which, np.int64)


def _order(cells: Positions, sizes: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Return the rows in the order of some columns."""
    rows = len(next(iter(cells.values())))
    if math.prod(sizes[name] for name in cells) < 2**63:
        return np.argsort(_numbered(cells, sizes, rows), kind="stable")
    return np.lexsort(list(cells.values())[::-1])


def _check_keys(plan: RecordsPlan, cells: Positions) -> None:
    """Refuse keys that are there twice, and people with more rows than the policy says: both are public."""
    key = plan.query.key
    same = [cells[name][1:] == cells[name][:-1] for name in key]
    if np.logical_and.reduce(same).any():
        raise DataRefused(
            "must name every row once: a key is there twice (keys are public, so that this may be said)",
            column=", ".join(key),
            fix="Add an attribute to the key that tells them apart. What was asked stays charged.",
        )
    owner = owner_in(key, plan.policy) if plan.policy.person is not None else None
    if owner is not None:
        _, many = np.unique(cells[owner], return_counts=True)
        if many.max(initial=0) > plan.rows_each:
            raise DataRefused(
                f"must have at most {plan.rows_each:,} rows of one person, as per_person says (keys are public)",
                column=owner,
                fix="Raise per_person. What was asked stays charged.",
            )


def _rules(plan: RecordsPlan) -> tuple[Rule, ...]:
    return () if plan.showing is None else plan.showing.rules


def _sizes(names: Sequence[str], domain: Domain) -> dict[str, int]:
    return {name: domain[name].size for name in names}


def _numbered(cells: Positions, sizes: Mapping[str, int], rows: int) -> npt.NDArray[np.uint64]:
    """Return the number of each row's cells: positions as the digits of one number."""
    numbers = np.zeros(rows, dtype=np.uint64)
    for name, codes in cells.items():
        numbers = numbers * np.uint64(sizes[name]) + codes.astype(np.uint64)
    return numbers


def _on_axis(positions: Positions, axis: Axis, domain: Domain) -> Codes:
    """Return the positions on one axis of an attribute, which may have two."""
    axes = domain.axes_of(axis.attribute)
    inner = math.prod(one.size for one in axes[[one.name for one in axes].index(axis.name) + 1 :])
    codes = positions[axis.attribute]
    return codes if len(axes) == 1 else np.asarray(codes // inner % axis.size)


def _holds(test: Test, positions: Positions, domain: Domain) -> Bools:
    """Return which rows a predicate picks."""
    return np.asarray(
        test.holds(lambda axis, found: found.marks(_on_axis(positions, axis, domain).astype(np.int64)), np.logical_not),
        dtype=np.bool_,
    )


def _labels(cells: Codes, domain: Domain, name: str) -> Labels:
    """Return a column of values, each of them once; the last one is None, for what is missing."""
    attribute = domain[name]
    size = attribute.size
    used = np.arange(size) if size <= _FEW else np.unique(cells[cells != size])
    which = np.where(cells == size, len(used), np.searchsorted(used, cells))
    values = [attribute.value(int(place)) for place in used]
    return Labels([*values, None] if (cells == size).any() else values, which)


def ends_of_trials(successes: int, share: float, level: float) -> tuple[int, int]:
    """Return between which numbers of trials so many successes have not too small a chance, at most 1 - level outside.

    Exact for a binomial law with a known probability: a number of trials is left out if so many successes or more, or
    so many or fewer, have a probability of at most (1 - level) / 2.

    >>> ends_of_trials(0, 0.5, 0.95)
    (0, 5)
    """
    tail = (1 - level) / 2

    def at_least(trials: int) -> float:
        """The probability of so many successes or more."""
        return 1.0 if not successes else float(betainc(successes, trials - successes + 1, share))

    def at_most(trials: int) -> float:
        """The probability of so many successes or fewer."""
        return 1.0 if trials == successes else float(betainc(trials - successes, successes + 1, 1 - share))

    far = successes + 10
    while at_most(far) > tail:
        far *= 2
    low = _first(successes, far, lambda trials: at_least(trials) > tail)
    return low, _first(successes, far, lambda trials: at_most(trials) <= tail) - 1


def _first(start: int, end: int, holds: Callable[[int], bool]) -> int:
    """Return the first number at which something holds that goes on to hold; `end` where it does."""
    while start < end:
        middle = (start + end) // 2
        start, end = (start, middle) if holds(middle) else (middle + 1, end)
    return start
