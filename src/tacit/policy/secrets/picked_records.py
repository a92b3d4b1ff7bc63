"""Records that a predicate picks, for examples: found without going through the domain."""

from __future__ import annotations

from typing import Final

from tacit.errors import PolicyError
from tacit.policy.domain import Domain, positions
from tacit.policy.edges.classes import axes_of, cells, holds
from tacit.policy.secrets.family import Fields
from tacit.policy.where import Test, Where

_MOST_CELLS: Final = 20_000  # combinations tried to find a record that a predicate picks


def record_with(domain: Domain, test: Test, base: Fields | None = None, *, picked: bool = True) -> Fields | None:
    """Return a record that a predicate picks (or does not pick); None if none was found."""
    return _looked_for(domain, test, base, picked=picked)[0]


def why_nobody(domain: Domain, people: Where) -> str:
    """Say that no record satisfies a predicate; the empty text if one does, or may."""
    found, is_sure = _looked_for(domain, people.compile(domain), None, picked=True)
    return f"no record satisfies {people}" if found is None and is_sure else ""


def _looked_for(domain: Domain, test: Test, base: Fields | None, *, picked: bool) -> tuple[Fields | None, bool]:
    """Return a record, or None and whether there surely is none.

    Positions that the predicate cannot tell apart are tried once, so the size of the domain does not matter.
    """
    start = base or {name: attribute.usual() for name, attribute in domain.attributes}
    if is_picked(domain, test, start) == picked:
        return start, True
    split = axes_of([test])
    for tried, cell in enumerate(cells(split)):
        if tried == _MOST_CELLS:
            return None, False
        if holds(test, cell) != picked:
            continue
        record = dict(start)
        for name, attribute in domain.attributes:
            record[name] = attribute.moved_into(name, start[name], {split[axis][0]: cell[axis] for axis in cell})
        try:
            domain.record(record)
        except PolicyError:
            continue  # more items than one person may have
        return record, True
    return None, True


def is_picked(domain: Domain, test: Test, record: Fields) -> bool:
    """Say whether a predicate picks a record."""
    return test.of_record(positions(domain, domain.record(record)))
