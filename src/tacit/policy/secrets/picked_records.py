"""Records that a predicate picks, for examples: found without going through the domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, positions
from tacit.policy.edges.classes import axes_of, cells, holds
from tacit.policy.secrets.family import Fields
from tacit.policy.where import Test

_MOST_CELLS: Final = 20_000  # combinations tried to find a record that a predicate picks


def record_with(domain: Domain, test: Test, wanted: Callable[[bool], bool], base: Fields | None = None) -> Fields | str:
    """Return a record that a predicate picks (or does not), else "nobody" if there is none, else "unknown".

    Positions that the predicate cannot tell apart are tried once, so the size of the domain does not matter.
    """
    start = base or {name: attribute.usual() for name, attribute in domain.attributes}
    if wanted(is_picked(domain, test, start)):
        return start
    split = axes_of([test])
    tried = 0
    for cell in cells(split):
        tried += 1
        if tried > _MOST_CELLS:
            return "unknown"
        if not wanted(holds(test, cell)):
            continue
        record = dict(start)
        for name, attribute in domain.attributes:
            record[name] = attribute.moved_into(name, start[name], {split[axis][0]: cell[axis] for axis in cell})
        try:
            domain.record(record)
        except PolicyError:
            continue  # more items than one person may have
        return record
    return "nobody"


def is_picked(domain: Domain, test: Test, record: Fields) -> bool:
    """Say whether a predicate picks a record."""
    return test.of_record(positions(domain, domain.record(record)))
