"""Whether an object, and everything in it, is of a class of this package.

Some texts and numbers are of a class derived from Python's own (members of a StrEnum or IntEnum, numpy's texts).
Objects of this package turn them into plain values (`settle`). Anything else of another class is refused.

Guarantee   An object that passes `is_genuine` behaves like this package's code: no method of another class runs.
Assumes     Nobody replaces classes or functions of the package, or writes into frozen objects by force. Whoever runs
            Python in the process that holds the rows can do both, and can read the rows. So this check keeps out
            mistakes and objects from elsewhere, but not that person (`docs/limits.md`).
            `as_plain` calls the methods of Python's own classes, so a derived class cannot change what it returns.
Why         Questions, predicates and policies are used twice: for the plan, and when rows are counted. An object of a
            derived class may answer differently the second time, or claim that nothing is secret. Its release would
            then be exact, and certified.
Checked by  tests/unit/policy/test_genuine.py.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakValueDictionary

_PLAIN: Final = frozenset(
    {type(None), bool, int, float, str, bytes, range, slice, Fraction, Decimal, date, datetime, time, timedelta}
)
_SEVERAL: Final[frozenset[Any]] = frozenset({tuple, list, set, frozenset})
_MAPPINGS: Final = frozenset({dict, MappingProxyType})
_PACKAGE: Final = __name__.partition(".")[0]

# Objects that were checked, by id, because an equal object may be of another class. Frozen ones do not change.
_seen: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()


def as_plain(value: Any) -> Any:
    """Return a text or number of a derived class as a plain one, also inside tuples, lists and sets.

    >>> from enum import IntEnum, StrEnum
    >>> Ward, Stage = StrEnum("Ward", ["A"]), IntEnum("Stage", ["EARLY"])
    >>> as_plain((Ward.A, Stage.EARLY, 2.5, True))
    ('a', 1, 2.5, True)
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__index__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    if kind in _SEVERAL and _PLAIN.issuperset(map(type, value)):
        return value
    several = next((one for one in _SEVERAL if issubclass(kind, one)), None)
    return value if several is None else several(map(as_plain, several.__iter__(value)))


def settle(made: Any) -> None:
    """Replace values of derived classes by plain ones in the fields of a new frozen object."""
    for field in dataclasses.fields(made):
        object.__setattr__(made, field.name, as_plain(getattr(made, field.name)))


def is_genuine(value: Any) -> bool:
    """Say whether a value is plain, or of a class that this package defines, with nothing else in it.

    >>> from tacit.policy.where import Compare, where
    >>> class Changing(Compare): ...
    >>> is_genuine(where("age < 18")), is_genuine(Changing("age", "<", 18)), is_genuine(~Changing("age", "<", 18))
    (True, False, False)
    """
    return not stranger(value)


def stranger(value: Any) -> str:
    """Describe the class of the first part of a value that is not genuine; the empty text if all parts are.

    >>> from tacit.policy.where import Compare
    >>> class Changing(Compare): ...
    >>> stranger(~Changing("age", "<", 18))
    'an object of another class Changing'
    """
    kind = type(value)
    if kind in _PLAIN:
        return ""
    if kind in _SEVERAL:
        return "" if _PLAIN.issuperset(map(type, value)) else _first(value)
    if kind in _MAPPINGS:
        return _first(part for item in value.items() for part in item)
    if not _is_defined_in(kind, "numpy") and not _is_defined_in(kind, _PACKAGE):
        which = "another class" if kind.__module__.partition(".")[0] == _PACKAGE else "the class"
        return f"an object of {which} {kind.__name__}"
    if not dataclasses.is_dataclass(kind) or _seen.get(id(value)) is value:
        return ""
    if found := _first(getattr(value, field.name) for field in dataclasses.fields(kind)):
        return found
    _seen[id(value)] = value
    return ""


def _first(values: Iterable[Any]) -> str:
    return next(filter(None, map(stranger, values)), "")


def _is_defined_in(kind: type, package: str) -> bool:
    """Say whether a module of the package has this very class under its name: a class may claim any module."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__.partition(".")[0] == package and getattr(module, kind.__name__, None) is kind
