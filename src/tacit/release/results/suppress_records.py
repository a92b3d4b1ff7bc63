"""True records, shown as far as the plan lets them: from batches of positions to the record of a release.

Guarantee   That of `plan/plans/records.py`: what is kept of the rows is what was shown of them, whether that was sure
            or
            up to a coin, and how many rows have a public key. All of it is a function of what is shown of each row by
            itself.
Assumes     Coins as in `plan/draws/suppression.py`. With a key, coins are made of the key. That no key is missing or
            there twice is public, or taken as known where a secret edge changes keys (`plan/plans/records.py`).
Why         A row that is not shown leaves nothing behind but its key; where a secret edge changes the key, nothing at
            all: such rows are dropped as soon as keys were found to be unique, with the names that only they have.
            Whether a shown row was sure to be shown never changes along an edge (`plan/plans/visible_records.py`), so
            that it tells
            no more than the row itself. Rows are sorted by their key, or without one by what they show, so that no
            order of the source is left.
            With a key, a row that the domain drops because a cell has no value of its attribute stays: that its key is
            not there would tell. No edge leads from or to it, so that what is shown of it is not bound by one; each
            coin still takes it for hidden if it looks at that cell or would show it, so that among rows with coins
            the gap is like one that a coin made: as likely at any value that the cell might have had, up to the
            exponential of the coin's epsilon. Where a column is always shown, a gap says that there was no value.
            That a key is missing or there twice, or that a person has more rows than the policy says, is refused while
            rows are open: by what is assumed, all possible data sets are alike in that.
Checked by  tests/unit/release/test_true_records.py, tests/unit/release/test_whole_records.py,
            tests/unit/release/test_record_lines.py, tests/property/test_whole_records.py,
            tests/statistical/test_true_records.py, tests/contract/test_true_records_engines.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tacit.arrays import Bools
from tacit.noise.kept_coins import Names, name_of_text, remembered, remembered_by_number, tossed
from tacit.noise.keystream import Keystream, current_stream
from tacit.plan.draws.suppression import shown
from tacit.plan.plans.records import RecordsPlan
from tacit.plan.plans.visible_records import HIDDEN, OPEN, Rule
from tacit.policy.domain import Domain
from tacit.release.results.assemble_records import Numbers, ShownBatch, gathered, numbered, sizes_of
from tacit.release.results.record import ReleaseRecord, draw_record
from tacit.release.results.true_records import Codes, Positions, TrueRecordsRecord, rules_of
from tacit.rows.cells.row_names import Named
from tacit.rows.counts.counting import holds_at, on_axis
from tacit.rows.counts.records import Work


class RecordSource(Protocol):
    """Rows whose positions can be looked at one by one; see `rows/counts/records.py`."""

    def records(self, names: Sequence[str], key: Sequence[str], work: Work) -> Any:
        """Yield what work returns for each batch of rows."""


@draw_record.register
def _(plan: RecordsPlan, truths: Sequence[Any], rows: Any, coins: Any) -> Callable[[], ReleaseRecord]:
    record = show_records(plan, rows, coins.secret_of)
    return lambda: record


def show_records(plan: RecordsPlan, rows: RecordSource, secret_of: Callable[[str], bytes]) -> TrueRecordsRecord:
    """Look at every row once and return what is shown; `secret_of` has the secret of a line of coins."""
    domain, query = plan.policy.domain, plan.query
    test = None if query.where is None else query.where.compile(domain)
    secrets = [secret_of(plan.line(rule.digest)) if query.key and rule.tosses else b"" for rule in rules_of(plan)]
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
        for at, rule in enumerate(rules_of(plan)):
            marks = _marks(rule, positions, absent, domain, rows)
            is_shown = shown(rule, marks, _coins(plan, secrets[at], names, numbers, stream))
            for name in () if plan.is_whole else rule.names:
                cells[name] = _missing_unless(is_shown, cells[name], domain[name].size)
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

    asked = list(dict.fromkeys([*in_domain, *query.shown, *plan.attributes_asked]))
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


def _missing_unless(is_shown: Bools, cells: Codes, size: int) -> Codes:
    return np.where(is_shown, cells, np.asarray(size).astype(cells.dtype))
