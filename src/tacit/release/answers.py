"""True answers, counted by the rows' own engine. What is returned here must never leave the release stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from tacit.plan.query import Linear
from tacit.plan.tally import CellCounts, CellSums, ItemHolders, Tally
from tacit.policy.domain import Domain
from tacit.policy.intervals import Intervals
from tacit.policy.policy import Policy
from tacit.policy.where import Test, Where

Ints = npt.NDArray[np.int64]
ONE_SCAN: Final = 1_000_000  # cells of a joint table that is counted once instead of once for each marginal


class Countable(Protocol):
    """Rows that can be counted; see `rows/rows.py`."""

    def check(self, names: tuple[str, ...], where: Test | None) -> None:
        """Refuse, without opening a row, what these rows can never answer."""

    def counts(self, names: tuple[str, ...], where: Test | None = None) -> Ints:
        """Return the histogram of some attributes."""

    def item_counts(self, name: str, where: Test | None = None) -> Ints:
        """Return how many people have each item."""

    def total(self, name: str, where: Test | None = None) -> int:
        """Return the sum of an attribute."""


def true_answers(query: Linear, rows: Countable, policy: Policy) -> Ints:
    """Return the true answers of a query, flat, in the order of its labels."""
    domain = policy.domain
    # where a person may be in several cells, marginals are not sums of a joint table
    joint_is_safe = policy.per_person == 1
    tallied = _tallied(query.tallies(policy), rows, domain, joint_is_safe=joint_is_safe)
    return query.answers(tallied, domain)


def check_rows(rows: Countable, query: Linear, policy: Policy) -> None:
    """Refuse, before anything is charged, what these rows can never answer for a public reason."""
    for tally in query.tallies(policy):
        match tally:
            case CellCounts(names, where):
                rows.check(names, _test(where, policy.domain))
            case ItemHolders(name, where):
                rows.check((name,), _test(where, policy.domain))
            case CellSums(name, by, where):
                rows.check((name, *by), _test(where, policy.domain))


def _tallied(tallies: Sequence[Tally], rows: Countable, domain: Domain, *, joint_is_safe: bool) -> list[Any]:
    """Return what was counted for each tally; several histograms of the same people from one joint table."""
    cells = [tally for tally in tallies if isinstance(tally, CellCounts)]
    union = tuple(name for name in domain if any(name in tally.names for tally in cells))
    joint: Ints | None = None
    if (
        len(cells) == len(tallies) > 1
        and joint_is_safe
        and len({tally.where for tally in cells}) == 1
        and math.prod(domain[name].size for name in union) <= ONE_SCAN
    ):
        joint = rows.counts(union, _test(cells[0].where, domain))
    found: list[Any] = []
    for tally in tallies:
        test = _test(tally.where, domain)
        match tally:
            case CellCounts(names) if joint is not None:
                found.append(_marginal(joint, union, names))
            case CellCounts(names):
                found.append(rows.counts(names, test))
            case ItemHolders(name):
                found.append(rows.item_counts(name, test))
            case CellSums(name, ()):
                found.append([rows.total(name, test)])
            case CellSums(name, by) if joint_is_safe and math.prod(domain[n].size for n in (name, *by)) <= ONE_SCAN:
                attribute: Any = domain[name]
                numbers = np.array([attribute.number(place) for place in range(attribute.size)], dtype=object)
                found.append(numbers @ rows.counts((name, *by), test).reshape(attribute.size, -1).astype(object))
            case CellSums(name, by):
                found.append([rows.total(name, cell) for cell in _cells(by, test, domain)])
    return found


def _marginal(joint: Ints, union: tuple[str, ...], names: tuple[str, ...]) -> Ints:
    """Return the histogram of some of the attributes of a joint table."""
    dropped = tuple(place for place, name in enumerate(union) if name not in names)
    kept = [name for name in union if name in names]
    return np.transpose(joint.sum(axis=dropped), [kept.index(name) for name in names])


def _cells(by: tuple[str, ...], test: Test | None, domain: Domain) -> list[Test]:
    """Return for each cell of some attributes the predicate that picks it, beside another one."""
    axes = [axis for name in by for axis in domain.axes_of(name)]
    found = []
    for places in np.ndindex(*(axis.size for axis in axes)):
        atoms = [Test.atom(axis, Intervals.points([place])) for axis, place in zip(axes, places, strict=True)]
        whole = atoms[0] if test is None else test.joined(atoms[0], "and")
        for atom in atoms[1:]:
            whole = whole.joined(atom, "and")
        found.append(whole)
    return found


def _test(where: Where | None, domain: Domain) -> Test | None:
    return None if where is None else where.compile(domain)
