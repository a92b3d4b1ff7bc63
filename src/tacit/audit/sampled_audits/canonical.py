"""What a reader sees of an output, as one text: two outputs have the same text iff nobody can tell them apart.

Kinds of numbers, shapes, units, signs of zeros, masks, labels, lengths, the order of what is ordered and trailing
characters all count; where an object lies in memory does not, and a NaN equals a NaN with the same bits. Containers,
arrays, frames, dataclasses and exceptions are taken apart to the last cell, so nothing hides behind an abbreviation. An
object of an unknown kind is taken apart as if it were to be copied; what cannot be copied has no such text and is
refused, since its `repr` may say too much or too little.

Beside the text come *features*: the numbers in it, and of each text in it the length, the ends and the order of its
letters. An audit looks for leaks in these, too, since a text that never comes twice tells nothing as a whole.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import struct
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final
from uuid import UUID

import numpy as np

from tacit.errors import PlanError

MOST_FEATURES: Final = 96
MOST_DEEP: Final = 60
LONGEST_WHOLE: Final = 400  # letters that are written out; of more, some and a digest of all
LONGEST_ORDER: Final = 40  # letters, or names in a list, whose order is looked at
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_NUMBERS_OF_A_TEXT: Final = 8
_PLAIN: Final = (int, bool, type(None), type(...), type(NotImplemented), Decimal, Fraction, UUID, range)
_USUAL_NAN: Final = struct.pack("<d", float("nan"))


@dataclass
class Canonical:
    """The text of an output, its `form` (the text with `#` for each number) and its features by name."""

    pieces: list[str] = field(default_factory=list)
    shape: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    features: list[float] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole output as a text."""
        return "".join(self.pieces)

    @property
    def form(self) -> str:
        """The text without its numbers."""
        return "".join(self.shape)

    @property
    def room(self) -> int:
        """How many more features there may be."""
        return MOST_FEATURES - len(self.features)

    def say(self, piece: str) -> None:
        """Add a piece that stands for itself."""
        self.pieces.append(piece)
        self.shape.append(piece)

    def number(self, piece: str, value: float, path: str) -> None:
        """Add a number, as it is written and as what it is worth."""
        self.pieces.append(piece)
        self.shape.append("#")
        self.feature(path, value)

    def feature(self, name: str, value: float) -> None:
        """Add something that may be telling, unless there are too many already."""
        if self.room:
            self.names.append(name)
            self.features.append(value)

    def joined(self, other: Canonical) -> Canonical:
        """Return this with another behind it."""
        return Canonical(
            self.pieces + other.pieces,
            self.shape + other.shape,
            self.names + other.names,
            self.features + other.features,
        )


def canonical(output: Any) -> str:
    """Return the text that an output shares only with outputs that nobody can tell from it.

    >>> canonical(2) == canonical(2.0), canonical(0.0) == canonical(-0.0), canonical((1, 2)) == canonical([1, 2])
    (False, False, False)
    >>> canonical([float("nan")]) == canonical([float("nan")])
    True
    """
    return taken_apart(output).text


def taken_apart(output: Any) -> Canonical:
    """Return the text of an output with what may be telling about it."""
    found = Canonical()
    _write(output, found, "output", ())
    return found


def inversions(sequence: Iterable[Any]) -> int:
    """Return how many pairs of a sequence are in falling order."""
    before: list[Any] = []
    many = 0
    for one in sequence:
        many += len(before) - bisect_left(before, one)
        insort(before, one)
    return many


def _write(value: Any, to: Canonical, path: str, above: tuple[int, ...]) -> None:
    kind = type(value)
    if kind is float:
        to.number(_float(value), value, path)
    elif kind is str:
        _text(value, to, path)
    elif kind in _PLAIN:
        if kind in (int, bool, Fraction):
            to.number(repr(value), _as_double(value), path)
        else:
            to.say(repr(value))
    elif kind in (bytes, bytearray):
        to.say("" if kind is bytes else "bytearray ")
        _text(value.decode("latin-1"), to, path, mark="b")
    elif kind is complex:
        to.say("complex ")
        _all([value.real, value.imag], "()", to, path, above)
    elif kind in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta):
        _moment(value, to, path, above)
    elif isinstance(value, np.generic | np.ndarray):
        _of_numpy(value, to, path, above)
    elif id(value) in above:
        to.say(f"<the same as {len(above) - above.index(id(value))} above>")
    elif len(above) >= MOST_DEEP:
        raise _no_form(value, f"is nested more than {MOST_DEEP} deep")
    else:
        _nested(value, kind, to, path, (*above, id(value)))


def _nested(value: Any, kind: type, to: Canonical, path: str, above: tuple[int, ...]) -> None:
    if kind in (list, tuple):
        _all(value, "[]" if kind is list else "()", to, path, above)
    elif kind is dict:
        to.say("{")
        for place, (key, one) in enumerate(value.items()):  # in their order, which everybody sees
            said = canonical(key)
            to.say(f"{', ' if place else ''}{said}: ")
            _write(one, to, f"{path}[{said}]", above)
        to.say("}")
    elif kind in (set, frozenset):
        to.say(kind.__name__)
        # their order is the machine's own
        _all(sorted(value, key=canonical), "{}", to, path, above)
    elif isinstance(value, type | FunctionType | BuiltinFunctionType):
        if "<" in value.__qualname__:
            raise _no_form(value, "is a function without a name of its own")
        to.say(_name(value))
    elif isinstance(value, BaseException):
        _exception(value, to, path, above)
    elif (frame := _frame(value)) is not None:
        to.say(_name(kind))
        _write(frame, to, path, above)
    else:
        _copied(value, to, path, above)


def _all(values: Iterable[Any], brackets: str, to: Canonical, path: str, above: tuple[int, ...]) -> None:
    values = list(values)
    to.say(brackets[0])
    for place, one in enumerate(values):
        if place:
            to.say(", ")
        _write(one, to, f"{path}[{place}]", above)
    to.say(brackets[1])
    if all(type(one) is str for one in values):
        _order(values, to, f"names of {path}")


def _order(values: Sequence[Any], to: Canonical, path: str) -> None:
    """Add in which order distinct letters or names stand: where each is, and how many pairs are reversed."""
    if to.room and 2 < len(values) <= LONGEST_ORDER and len(set(values)) == len(values):
        to.feature(f"reversed pairs of {path}", inversions(values))
        for place, one in sorted(enumerate(values), key=lambda pair: pair[1]):
            to.feature(f"place of {one!r} in {path}", place)


def _text(text: str, to: Canonical, path: str, mark: str = "") -> None:
    written = mark + repr(text[:LONGEST_WHOLE])
    to.pieces.append(written)
    if len(text) > LONGEST_WHOLE:
        to.pieces.append(f" and {len(text)} letters in all, {_digest(text.encode('utf-8', 'surrogatepass'))}")
    if not text:
        to.shape.append(written)
        return
    to.shape.append(_NUMBER.sub("#", written))
    if not to.room:
        return
    to.feature(f"length of {path}", len(text))
    to.feature(f"first letter of {path}", ord(text[0]))
    to.feature(f"last letter of {path}", ord(text[-1]))
    for place, found in zip(range(_NUMBERS_OF_A_TEXT), _NUMBER.finditer(text[:LONGEST_WHOLE]), strict=False):
        to.feature(f"number {place} in {path}", float(found[0]))
    _order(text, to, path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _float(value: float) -> str:
    if value == value:
        return repr(value)
    bits = struct.pack("<d", value)
    return "nan" if bits == _USUAL_NAN else f"nan({bits[::-1].hex()})"


def _as_double(value: int | Fraction) -> float:
    return float(value) if -(2**1000) < value < 2**1000 else float("inf") if value > 0 else float("-inf")


def _moment(value: Any, to: Canonical, path: str, above: tuple[int, ...]) -> None:
    zone = getattr(value, "tzinfo", None)
    to.say(f"{type(value).__name__} ")
    plain = value if zone is None else value.replace(tzinfo=None)
    to.pieces.append(str(plain))
    to.shape.append("#")
    if isinstance(value, datetime.timedelta):
        to.feature(path, value.total_seconds())
    elif isinstance(value, datetime.date):
        whole = datetime.datetime.combine(plain, datetime.time()) if type(value) is datetime.date else plain
        to.feature(path, (whole - datetime.datetime(1970, 1, 1)).total_seconds())
    if getattr(value, "fold", 0):
        to.say(" (second time)")
    if zone is not None:
        to.say(" in ")
        _write(str(zone), to, f"zone of {path}", above)
        _write(value.utcoffset(), to, f"offset of {path}", above)


def _of_numpy(value: Any, to: Canonical, path: str, above: tuple[int, ...]) -> None:
    if value is np.ma.masked:
        to.say("masked")
        return
    kind = type(value)
    name = "" if kind is np.ndarray or isinstance(value, np.generic) else f"{_name(kind)} "
    if isinstance(value, np.ma.MaskedArray):
        to.say(f"{name}of ")
        _write(np.asarray(value.data), to, path, above)
        to.say(" without ")
        _write(np.ma.getmaskarray(value), to, f"mask of {path}", above)
        to.say(" filled by ")
        _write(value.fill_value, to, f"filling of {path}", above)
        return
    scalar = value.ndim == 0 and isinstance(value, np.generic)
    shape = "" if scalar else f" {value.shape}"
    to.say(
        f"{name}{'numpy' if scalar else 'array'} {value.dtype.descr if value.dtype.names else value.dtype.str}{shape}"
    )
    array = np.asarray(value)
    to.say(" ")
    if array.dtype.kind in "mM":
        # the unit stands in the dtype; what is no time is the smallest number
        _cells(np.ascontiguousarray(array).reshape(-1).view(np.int64), to, path)
    elif array.dtype.kind in "fc" and array.dtype.itemsize > (8 if array.dtype.kind == "f" else 16):
        for place, one in enumerate(array.reshape(-1)):  # more digits than a double has
            to.number(f"{one!r} ", float(one.real), f"{path}[{place}]")
    elif array.dtype.kind == "V":
        _write(array.tolist(), to, path, above)
    else:
        if array.dtype.kind in "biuf":
            _cells(array.reshape(-1), to, path)
            return
        listed = array.reshape(-1).tolist()
        if scalar:
            _write(listed[0], to, path, above)
        else:
            _all(listed, "[]", to, path, above)


def _cells(cells: np.ndarray[Any, Any], to: Canonical, path: str) -> None:
    """Write numbers of one kind: those that may be features, and of more a digest of all."""
    values = cells[:MOST_FEATURES].tolist()
    said = [_float(one) if type(one) is float else repr(one) for one in values]
    if len(cells) > len(values):
        said.append(f"{len(cells)} numbers in all, {_digest(cells.tobytes())}")
        with np.errstate(all="ignore"):
            to.feature(f"sum of {path}", float(cells.sum(dtype=np.float64)))
    to.pieces.append(f"[{', '.join(said)}]")
    to.shape.append(f"[{', '.join('#' * len(values))}]")
    alone = len(values) == 1
    for place, one in enumerate(values[: to.room]):
        to.feature(path if alone else f"{path}[{place}]", _as_double(one) if type(one) is int else float(one))


def _exception(error: BaseException, to: Canonical, path: str, above: tuple[int, ...]) -> None:
    """Write what everybody sees who catches an exception: itself, and those that it hangs on."""
    to.say(_name(type(error)))
    _write(error.args, to, path, above)
    state = {key: one for key, one in vars(error).items() if key != "args"}
    if state:
        _write(state, to, f"state of {path}", above)
    for word, other in (("from", error.__cause__), ("after", error.__context__)):
        if other is not None and (word == "from" or other is not error.__cause__):
            to.say(f" {word} ")
            _write(other, to, f"{path}, {word}", above)


def _frame(value: Any) -> Any:
    """Return what a table of another package shows: names, kinds, indexes and cells; None for what is no table."""
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    match package, name:
        case "pandas", "DataFrame":
            columns = [value.iloc[:, place] for place in range(value.shape[1])]
            return [_frame(value.columns), _frame(value.index), [_series(one) for one in columns], dict(value.attrs)]
        case "pandas", "Series":
            return [_plain(value.name), _frame(value.index), _series(value), dict(value.attrs)]
        case "pandas", _ if hasattr(value, "names") and hasattr(value, "nlevels"):
            return [
                name,
                [_plain(one) for one in value.names],
                str(value.dtype),
                [_plain(one) for one in value.tolist()],
            ]
        case "pandas", _ if hasattr(value, "dtype") and hasattr(value, "tolist"):
            return [str(value.dtype), [_plain(one) for one in value.tolist()]]
        case "polars", "DataFrame":
            return [[(one.name, repr(one.dtype)) for one in value.get_columns()], value.rows()]
        case "polars", "Series":
            return [value.name, repr(value.dtype), value.to_list()]
        case "polars", "LazyFrame":
            return _frame(value.collect())
        case "pyarrow", "Table" | "RecordBatch":
            return [_schema(value.schema), [column.to_pylist() for column in value.columns]]
        case "pyarrow", _ if hasattr(value, "to_pylist"):
            return [str(value.type), value.to_pylist()]
        case "pyarrow", _ if hasattr(value, "as_py"):
            return [str(value.type), value.as_py()]
        case _, "DuckDBPyRelation":
            return [list(value.columns), [str(one) for one in value.types], value.fetchall()]
    return None


def _series(column: Any) -> list[Any]:
    extra = [str(one) for one in column.cat.categories.tolist()] if hasattr(column, "cat") else []
    return [str(column.dtype), extra, [_plain(one) for one in column.tolist()]]


def _plain(cell: Any) -> Any:
    """Return a cell of pandas that is missing or a moment as what can be taken apart."""
    if type(cell).__module__.partition(".")[0] != "pandas":
        return cell
    name = type(cell).__name__
    if name in ("NAType", "NaTType"):
        return f"<{name}>"
    if name == "Timestamp":
        return ["Timestamp", cell.unit, int(cell.value), str(cell.tz)]
    return [name, str(cell)]


def _schema(schema: Any) -> list[Any]:
    fields = [(one.name, str(one.type), bool(one.nullable), _bytes(one.metadata)) for one in schema]
    return [fields, _bytes(schema.metadata)]


def _bytes(metadata: Any) -> Any:
    return None if metadata is None else dict(metadata)


def _copied(value: Any, to: Canonical, path: str, above: tuple[int, ...]) -> None:
    """Write an object as what a copy of it would be made from."""
    parts: Any = None
    with suppress(Exception):  # whatever an object does when it is to be copied
        parts = value.__reduce_ex__(4)
    if parts is None:
        raise _no_form(value, "cannot be copied")
    to.say(_name(type(value)))
    if isinstance(parts, str):
        to.say(f" {parts}")
        return
    maker, args, state, items, pairs = (*parts, None, None, None)[:5]
    # what makes every object says nothing; its first argument is the kind
    own = tuple(args)[1:] if getattr(maker, "__name__", "").startswith("__newobj") else (_name(maker), *args)
    for word, part in (
        ("", own or None),
        (" state ", state),
        (" items ", None if items is None else list(items)),
        (" pairs ", None if pairs is None else dict(pairs)),
    ):
        if part is not None:
            to.say(word)
            _write(part, to, path if not word else f"{path}{word.rstrip()}", above)


def _name(thing: Any) -> str:
    said = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"
    return said.removeprefix("builtins.")


def _no_form(value: Any, why: str) -> PlanError:
    return PlanError(
        f"must return what can be compared; an output {why}",
        key="release",
        given=type(value).__name__,
        fix="Return numbers, texts, frames, or lists, dicts and dataclasses of such.",
    )
