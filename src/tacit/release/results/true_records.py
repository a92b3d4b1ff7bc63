"""The record of a release of true records: the table, and what can be estimated from it.

Guarantee   A record holds what was shown, whether that was sure or up to a coin, and how many rows have a key; nothing
            of what was not shown. Estimates follow from these.
Assumes     `release/results/shown_records.py`.
Why         Every record that a coin let through stands for 1 / share of them, where share is the known probability: the
            number of those that were shown is binomial, and its inverse is exact (`ends_of_trials`).
Checked by  tests/unit/release/test_true_records.py, tests/unit/release/test_record_lines.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools, Floats
from tacit.errors import PlanError
from tacit.noise.kept_coins import share_kept
from tacit.plan.plans.records import RecordsPlan
from tacit.plan.question import Labels, check_where, read_where
from tacit.policy.attributes.attribute import Attribute
from tacit.policy.where import Test, Where
from tacit.release.results.record import ReleaseRecord, check_level
from tacit.release.results.value_files import write_csv
from tacit.rows.counts.counting import holds_at
from tacit.rows.files.shown_files import ShownFile

Codes = npt.NDArray[Any]
Positions = Mapping[str, Codes]
MOST_IN_MEMORY: Final = 2**22  # rows
FEW: Final = 2**12  # values of an attribute that are all made, whether they were shown or not


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

    def summary(self) -> str:
        return f"{self.rows:,} row{'s' * (self.rows != 1)}"

    def labels(self) -> dict[str, Any]:
        names = self._estimated
        return {"column": list(names), "rows that show it": [int(self._is_shown(name).sum()) for name in names]}

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
            fix = f"Released: {', '.join(self._cells)}."
            raise PlanError("must ask about columns that were released", key="estimate.where", given=name, fix=fix)
        rules = {rule_of(self.plan, name) for name in asked or self._estimated}
        coins = {number for number in rules if number is not None}
        if len(coins) > 1:
            rule = "must ask about columns that share a coin"
            fix = "Ask about one of them, and about public columns."
            raise PlanError(rule, key="estimate.where", given=str(predicate), fix=fix)
        number = next(iter(coins), None)
        counted = next(name for name in (*self._estimated, *asked) if rule_of(self.plan, name) == number)
        return self._estimate(counted, None if predicate is None else predicate.compile(domain), level)

    def numbers_without_secret(self) -> list[float]:
        """Return about how many records have no secret, column by column."""
        return [self._estimate(name, None, 0.95).value for name in self._estimated]

    @property
    def _estimated(self) -> tuple[str, ...]:
        return self.plan.query.shown

    def _is_shown(self, name: str) -> Bools:
        return np.asarray(self._cells[name] != self.plan.policy.domain[name].size)

    def _estimate(self, name: str, test: Test | None, level: float) -> Estimate:
        number, picked = rule_of(self.plan, name), self._is_shown(name)
        if test is not None:
            for other in {axis.attribute for axis, _ in test.atoms}:
                picked = picked & self._is_shown(other)
            picked = picked & holds_at(test, self.plan.policy.domain, self._cells.__getitem__)
        sure = int((picked & self._sure[number]).sum()) if number in self._sure else 0
        return self._estimated_from(int(picked.sum()), sure, number, level)

    def _estimated_from(self, many: int, sure: int, number: int | None, level: float) -> Estimate:
        """Return what so many shown records say, so many of which were sure to be shown."""
        if number is None or not self.plan.showing.rules[number].tosses:
            return Estimate(float(many), float(many), float(many))
        value = sure + (many - sure) / share_kept(self.plan.each)
        low, high = ends_of_trials(many - sure, share_kept(self.plan.each), level)
        if not self.plan.is_whole:  # how many rows there are is public
            high = min(high, self.rows - sure)
        return Estimate(value, float(sure + low), max(float(sure + high), value))

    # ---- the table ----

    @cached_property
    def _columns(self) -> dict[str, Any]:
        domain = self.plan.policy.domain
        return {
            name: Labels(self._names_of_rows[name], cells)
            if name in self._names_of_rows
            else labels_of(cells, domain, name)
            for name, cells in self._cells.items()
        }

    def columns(self, level: float = 0.95) -> dict[str, Any]:
        """Return the columns of the table, None where a cell is missing: those asked for, after a key that is not."""
        return dict(self._columns)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_columns"}

    def write_csv(self, path: Path) -> None:
        write_csv(path, self.columns(), {}, error=0.0)

    def write_values(self, folder: Path, name: str) -> str:
        """Write the table as Parquet, however many rows it has."""
        from tacit.rows.sources.frames import write_parquet

        write_parquet(folder / f"{name}.parquet", self.columns())
        return f"{name}.parquet"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FiledRecords(TrueRecordsRecord):
    """The same, in a file, for more rows than memory should hold. `frame` reads them all."""

    _file: ShownFile = field(repr=False)
    _shown_cells: dict[str, int] = field(repr=False)  # in how many rows each column is shown
    _sure_cells: dict[int, int] = field(repr=False)  # by rule: how many rows were sure to be shown

    def __reduce__(self) -> NoReturn:
        raise PlanError("is stored in a file and cannot be pickled", key="record", fix="Call record.save(folder).")

    def labels(self) -> dict[str, Any]:
        return {"column": list(self._shown_cells), "rows that show it": list(self._shown_cells.values())}

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        check_level(level)
        found = []
        for name, many in self._shown_cells.items():
            number = rule_of(self.plan, name)
            found.append(self._estimated_from(many, self._sure_cells.get(number or 0, 0), number, level))
        return np.array([one.lower for one in found]), np.array([one.upper for one in found])

    def estimate(self, where: Where | str | None = None, level: float = 0.95) -> Estimate:
        fix = "Save the records, and count there."
        raise PlanError(f"must be about at most {MOST_IN_MEMORY:,} rows", key="estimate", fix=fix)

    def columns(self, level: float = 0.95) -> dict[str, Any]:
        return dict(self._file.columns())

    def write_values(self, folder: Path, name: str) -> str:
        self._file.copy(folder / f"{name}.parquet")
        return f"{name}.parquet"


def estimated(plan: RecordsPlan, many: int, sure: Mapping[int, int], name: str) -> float:
    """Return about how many records have no secret in a column, from how many show it."""
    number = rule_of(plan, name)
    if number is None or not plan.showing.rules[number].tosses:
        return float(many)
    certain = sure.get(number, 0)
    return certain + (many - certain) / share_kept(plan.each)


def rule_of(plan: RecordsPlan, name: str) -> int | None:
    """Return the number of the rule that decides on a column; None if it is always shown."""
    return next((number for number, rule in enumerate(plan.showing.rules) if name in rule.names), None)


def labels_of(cells: Codes, domain: Mapping[str, Attribute], name: str) -> Labels:
    """Return a column of values, each of them once; the last one is None, for what is missing."""
    attribute = domain[name]
    size = attribute.size
    used = np.arange(size) if size <= FEW else np.unique(cells[cells != size])
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
    from scipy.special import betainc  # takes longer to load than most releases

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
