"""Whether an object is what it says it is: of a class of this package, and so is everything in it.

Guarantee   What passes `is_genuine` behaves as the code of this package says: no method of another class is ever asked.
Assumes     Nobody replaces classes or functions of the package, or writes into frozen objects by force. Whoever runs
            Python in the process that holds the rows can do both, and can read the rows: this keeps out mistakes and
            objects that were handed on, not that person (`docs/limits.md`).
Why         A plan follows from what a question, a predicate and a policy say when they are asked, and rows are counted
            by what they say when they are asked again. An object of a derived class may say something else the second
            time, or that nothing needs hiding; what it then releases is exact, and certified.
Checked by  tests/unit/test_genuine.py.
"""

from __future__ import annotations

import dataclasses
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakValueDictionary

_PLAIN: Final = frozenset(
    {type(None), bool, int, float, str, bytes, range, slice, Fraction, Decimal, date, datetime, time, timedelta}
)
_SEVERAL: Final = frozenset({tuple, list, set, frozenset})
_MAPPINGS: Final = frozenset({dict, MappingProxyType})
_PACKAGE: Final = __name__.partition(".")[0]

# Objects that were looked at, by id: the object itself, no equal one. Frozen ones do not change.
_seen: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()


def is_genuine(value: Any) -> bool:
    """Say whether a value is plain, or of a class that this package defines, with nothing else in it.

    >>> from tacit.policy.where import Compare, where
    >>> class Changing(Compare): ...
    >>> is_genuine(where("age < 18")), is_genuine(Changing("age", "<", 18)), is_genuine(~Changing("age", "<", 18))
    (True, False, False)
    """
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind in _SEVERAL:
        return all(map(is_genuine, value))
    if kind in _MAPPINGS:
        return all(is_genuine(key) and is_genuine(one) for key, one in value.items())
    if not _is_defined_in(kind, "numpy") and not _is_defined_in(kind, _PACKAGE):
        return False
    if not dataclasses.is_dataclass(kind) or _seen.get(id(value)) is value:
        return True
    if not all(is_genuine(getattr(value, field.name)) for field in dataclasses.fields(kind)):
        return False
    _seen[id(value)] = value
    return True


def _is_defined_in(kind: type, package: str) -> bool:
    """Say whether a package has this very class under its name: a class may claim any module for its own."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__.partition(".")[0] == package and getattr(module, kind.__name__, None) is kind
