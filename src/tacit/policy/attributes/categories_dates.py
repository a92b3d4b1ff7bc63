"""A value out of a list, yes and no, and dates: days, or the weeks, months, quarters or years that they lie in.

Dates are texts: 2024-03-01, 2024-W10, 2024-03, 2024-Q1, 2024. Weeks are those of ISO 8601: they start on Monday, and
the first one of a year is the one with its first Thursday.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from tacit.errors import PolicyError, nearest
from tacit.policy.attributes.attribute import Attribute, OrderedAttribute, Value, alike, rank_of_number
from tacit.policy.genuine import as_plain, settle
from tacit.policy.keys import BOOLEAN, VALUE, Key, Keys, Row, otherwise_key, read_two, two
from tacit.policy.yaml_entries import YamlEntry


@dataclass(frozen=True)
class Categories(OrderedAttribute):
    """A value out of a list. `otherwise` is the category of unexpected values (None: row dropped).

    >>> Categories(["flu", "hiv", "other"], otherwise="other").position("hiv")
    1
    """

    values: tuple[Value, ...]
    ordered: bool = False
    otherwise: Value | None = None

    kind = "categories"
    keys = Keys(
        Key("ordered", {**BOOLEAN, "default": False}, "Whether their order means anything."),
        Key("otherwise", VALUE, "What unexpected values count as.", "the row is dropped", read=YamlEntry.value),
    )
    row = Row("`categories: [..]`", "`ordered`, `otherwise`: one of them", "texts, whole numbers or true/false")
    example = "{categories: [a, b]}"
    measured = "names"
    watched = "cells"

    def __init__(
        self, values: Iterable[Value], *more: Value, ordered: bool = False, otherwise: Value | None = None
    ) -> None:
        if more or isinstance(values, str) or not isinstance(values, Iterable):
            given = [values, *more] if more else values
            example = given if more and all(isinstance(value, str | int) for value in given) else "[a, b, ..]"
            fix = f"Write Categories({example})."
            raise PolicyError("must be one list of values", key="categories", given=given, fix=fix)
        otherwise = as_plain(otherwise)
        for key, field in (("values", as_plain(tuple(values))), ("ordered", ordered), ("otherwise", otherwise)):
            object.__setattr__(self, key, field)
        if not self.values:
            raise PolicyError("must not be empty", key="categories", given=[], fix="List at least one value.")
        for value in self.values:
            if not isinstance(value, str | int | bool):
                fix = "Quote it."
                raise PolicyError("must be texts, whole numbers or true/false", key="categories", given=value, fix=fix)
        if len(set(self.values)) != len(self.values):  # 1 and true are one value to every engine
            twice = next(v for i, v in enumerate(self.values) if v in self.values[:i])
            raise PolicyError("must not repeat a value", key="categories", given=twice, fix="Remove one of them.")
        if not isinstance(ordered, bool):
            raise PolicyError("must be true or false", key="ordered", given=ordered, fix="Leave it out.")
        if otherwise is not None and not (isinstance(otherwise, Hashable) and otherwise in self.values):
            fix = "Leave it out to drop rows with unexpected values."
            if isinstance(otherwise, str | int):
                fix = f"Add {otherwise!r} to the list, or leave `otherwise` out to drop rows with unexpected values."
            raise PolicyError("must be one of the categories", key="otherwise", given=otherwise, fix=fix)

    @property
    def size(self) -> int:
        return len(self.values)

    def position(self, value: Value) -> int:
        try:
            return self.values.index(value)
        except ValueError:
            raise PolicyError("must be one of the categories", given=value, fix=alike(value, self.values)) from None

    def value(self, position: int) -> Value:
        return self.values[position]

    def every_cell(self) -> Sequence[Value]:
        return self.values

    def rank(self, operand: Value) -> Fraction:
        if not self.ordered:
            fix = "Declare ordered=True (in a file: `ordered: true`), or use `in`."
            raise PolicyError("must not compare unordered categories", fix=fix)
        return Fraction(self.position(operand))

    @property
    def clips(self) -> bool:
        """Never: `clip` is a category like any other."""
        return False

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        assert main is not None  # noqa: S101 - there is no other way to write it
        values = [value.value() for value in main.listed()]
        with main.blamed(places):
            return cls(values, **cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        listed = {"type": "array", "items": VALUE, "minItems": 1, "uniqueItems": True}
        return [cls.keys.schema("A value out of a list.", first={cls.kind: listed})]

    def document(self) -> Any:
        return {self.kind: list(self.values), **self.not_default("ordered", "otherwise")}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.value()

    def words(self, value: Value) -> str:
        text = str(value)
        return text if text and len(text) <= 40 and text.isprintable() else repr(text[:40])

    def usual(self) -> Value:
        return self.values[0]

    def others(self, value: Value) -> list[Value]:
        """Return other values in their order."""
        return [other for other in self.values[:_MOST_OTHERS] if other != value]

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls(["flu", "hiv", "none"])
        yield cls(["early", "late", "end"], ordered=True)


@dataclass(frozen=True)
class Flag(OrderedAttribute):
    """Yes or no: True/False or 1/0 in the data. `otherwise` is True, False, or None (row dropped)."""

    otherwise: bool | None = None

    kind = "flag"
    keys = Keys(Key("otherwise", BOOLEAN, "What unexpected values count as.", "the row is dropped"))
    nested = True
    row = Row("`flag`", "`{flag: {otherwise: false}}`", "true and false, 1 and 0")
    example = "flag"
    measured = "truth"
    watched = "itself"
    ordered = True

    def __post_init__(self) -> None:
        settle(self)
        is_value = isinstance(self.otherwise, Hashable) and self.otherwise in (True, False)
        if self.otherwise is not None and not is_value:
            raise PolicyError("must be true or false", key="otherwise", given=self.otherwise, fix="Leave it out.")

    @property
    def size(self) -> int:
        return 2

    def position(self, value: Value) -> int:
        if isinstance(value, bool | int) and value in (0, 1):
            return int(value)
        raise PolicyError("must be true or false", given=value, fix="Write true or false.")

    def value(self, position: int) -> bool:
        return bool(position)

    def rank(self, operand: Value) -> Fraction | float:
        """Return the number itself: no is 0, and yes is 1."""
        return rank_of_number(operand)

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        if main is not None and not main.is_empty:
            fix = "Write `flag` alone, or {flag: {otherwise: ..}}."
            raise main.refuse("must be a mapping", given=main.plain(), fix=fix)
        return cls(**cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        return [
            {"const": cls.kind, "description": "Yes or no."},
            cls.keys.schema("Yes or no.", first={cls.kind: {"type": "null"}}),
            Keys().schema("Yes or no.", first={cls.kind: cls.keys.schema()}),
        ]

    def document(self) -> Any:
        return self.kind if self.otherwise is None else {self.kind: {"otherwise": bool(self.otherwise)}}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.yes_or_no() if entry.tag == "bool" else entry.value()

    def words(self, value: Value) -> str:
        return "yes" if value else "no"

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls()


_MOST_OTHERS: Final = 100
PERIODS: Final = ("day", "week", "month", "quarter", "year")
_EXAMPLES: Final = dict(zip(PERIODS, ("2024-03-01", "2024-W10", "2024-03", "2024-Q1", "2024"), strict=True))
_DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_FORMS: Final = {
    "day": _DAY,
    "week": re.compile(r"([0-9]{4})-W([0-9]{2})"),
    "month": re.compile(r"([0-9]{4})-([0-9]{2})"),
    "quarter": re.compile(r"([0-9]{4})-Q([1-4])"),
    "year": re.compile(r"([0-9]{4})"),
}
_TEXT: Final[dict[str, Any]] = {"type": ["string", "integer"]}


def _read_date(entry: YamlEntry) -> str:
    """Return the text of a date, quoted or not, whatever type YAML gives it."""
    if entry.is_list or entry.is_mapping or entry.is_empty:
        raise entry.refuse("must be a date", given=entry.plain(), fix="For instance 2024-03-01.")
    return str(entry.node.value)


@dataclass(frozen=True)
class Dates(OrderedAttribute):
    """A date from `start` to `end`, both included, `by` day, week, month, quarter or year.

    The ends are texts or `datetime.date`s; a day stands for the period that it lies in. `otherwise` is a value of the
    range for all unexpected cells, `"clip"` (dates out of range count as the nearest end; rows without a date are
    dropped), or None (row dropped).

    >>> Dates("2024-01-01", "2024-12-31", by="month").value(2)
    '2024-03'
    """

    start: str
    end: str
    by: str = "day"
    otherwise: str | None = None

    kind = "dates"
    keys = Keys(
        Key("by", {"enum": list(PERIODS), "default": "day"}, "What days are gathered into.", read=YamlEntry.text),
        otherwise_key(_TEXT, _read_date),
    )
    row = Row(
        "`dates: [from, to]`",
        "`by`: `day`, `week`, `month`, `quarter` or `year`; `otherwise`: a value or `clip`",
        "`2024-03-01`, `2024-W10`, `2024-03`, `2024-Q1`, `2024`, both ends included",
    )
    example = "{dates: [2024-01-01, 2024-12-31]}"
    other_words = ("date", "datetime", "datetimes", "time", "times", "timestamp", "timestamps")
    measured = "times"
    ordered = True

    def __init__(self, start: Any, end: Any, by: str = "day", otherwise: Any = None) -> None:
        start, end, by, otherwise = as_plain((start, end, by, otherwise))
        if not isinstance(by, str) or by not in PERIODS:
            fix = nearest(by, PERIODS) if isinstance(by, str) else "Say by='month'."
            raise PolicyError("must be day, week, month, quarter or year", key="dates.by", given=by, fix=fix)
        object.__setattr__(self, "by", by)
        ticks = []
        for key, given in (("start", start), ("end", end)):
            found = _tick(given, by, days=True)
            if found is None:
                raise PolicyError(
                    f"must be a date such as 2024-03-01, or a {by} such as {_EXAMPLES[by]}"
                    if by != "day"
                    else "must be a date such as 2024-03-01",
                    key=f"dates.{key}",
                    given=str(given),
                    fix=_no_such(given, by, days=True) or "Write year, month and day.",
                )
            ticks.append(found)
            object.__setattr__(self, key, _label(found, by))
        if ticks[0] > ticks[1]:
            raise PolicyError("must not end before it starts", key="dates", given=[start, end], fix="Swap the two.")
        object.__setattr__(self, "otherwise", otherwise)
        self.settle_otherwise()

    @cached_property
    def ticks(self) -> tuple[int, int]:
        """The numbers of the first and the last period, counted from the year 1."""
        first, last = (_tick(text, self.by) for text in (self.start, self.end))
        assert first is not None  # noqa: S101 - they were read when this was made
        assert last is not None  # noqa: S101 - the same
        return first, last

    @property
    def size(self) -> int:
        first, last = self.ticks
        return last - first + 1

    def position(self, value: Value) -> int:
        tick, (first, last) = _tick(value, self.by), self.ticks
        if tick is None or not first <= tick <= last:
            rule = f"must be a {self.by} from {self.start} to {self.end}"
            fix = "Change it." if tick is not None else _no_such(value, self.by) or self._like("Write it like")
            raise PolicyError(rule, given=str(value) if isinstance(value, datetime.date) else value, fix=fix)
        return tick - first

    def value(self, position: int) -> str:
        return _label(self.ticks[0] + position, self.by)

    def rank(self, operand: Value) -> Fraction:
        tick = _tick(operand, self.by)
        if tick is None:
            fix = _no_such(operand, self.by) or self._like("In quotes, for instance")
            raise PolicyError(f"must compare with a {self.by}", given=operand, fix=fix)
        return Fraction(tick - self.ticks[0])

    def _like(self, start: str) -> str:
        return f"{start} {_EXAMPLES[self.by]!r}."

    @property
    def distance_unit(self) -> str:  # type: ignore[override]
        """What distances are counted in."""
        return self.by

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        assert main is not None  # noqa: S101 - there is no other way to write it
        if not main.is_list:
            raise main.refuse("must be [from, to]", given=main.plain(), fix="For instance [2024-01-01, 2024-12-31].")
        start, end = (_read_date(date) for date in read_two(main))
        with main.blamed(places):
            return cls(start, end, **cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        ends = two(_TEXT, "[from, to], both included: dates, or periods as `by` says.")
        return [cls.keys.schema("Dates.", first={cls.kind: ends})]

    def document(self) -> Any:
        return {self.kind: [self.start, self.end], **self.not_default("by", "otherwise")}

    def read_value(self, entry: YamlEntry) -> Value:
        return _read_date(entry)

    def read_end(self, text: str) -> Value:
        if _tick(text.strip(), self.by) is None:
            raise ValueError
        return text.strip()

    def read_width(self, entry: YamlEntry) -> int:
        """Read the width of a block: a number of days, weeks, and so on."""
        if entry.tag == "int":
            return entry.whole()
        half = self.size // 2
        fix = f"Write the number alone, for instance {7 if self.by == 'day' else 2}."
        if half:
            ends = self.start, self.value(half - 1), self.value(half), self.end
            fix += " Blocks of different lengths, such as months, are listed: blocks: [{}..{}, {}..{}].".format(*ends)
        raise entry.refuse(f"must be a number of {self.by}s", given=entry.plain(), fix=fix)

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls("2024-02-28", "2024-03-02")
        yield cls("2023-11", "2024-02", by="month")


def tick_of(day: datetime.date, by: str) -> int:
    """Return the number of the period that a day lies in; the year 1 has the lowest ones."""
    match by:
        case "day":
            return day.toordinal()
        case "week":
            return (day.toordinal() - 1) // 7
        case "month":
            return day.year * 12 + day.month - 1
        case "quarter":
            return day.year * 4 + (day.month - 1) // 3
        case _:
            return day.year


def _tick(value: Value, by: str, *, days: bool = False) -> int | None:
    """Return the number of a period, given as a text or by one of its days (a text of a day only with `days`)."""
    if isinstance(value, datetime.date):
        return tick_of(value, by)
    if isinstance(value, int) and not isinstance(value, bool) and by == "year":
        value = f"{value:04}"
    if not isinstance(value, str):
        return None
    form = _FORMS[by].fullmatch(value) or (_DAY.fullmatch(value) if days else None)
    if form is None:
        return None
    parts = [int(part) for part in form.groups()]
    try:
        if len(parts) == 3:
            return tick_of(datetime.date(*parts), by)
        match by:
            case "week":
                return tick_of(datetime.date.fromisocalendar(parts[0], parts[1], 1), by)
            case "month":
                return tick_of(datetime.date(parts[0], parts[1], 1), by)
            case "quarter":
                return tick_of(datetime.date(parts[0], 3 * parts[1], 1), by)
            case _:
                return tick_of(datetime.date(parts[0], 1, 1), by)
    except ValueError:
        return None  # no such day


def _no_such(value: Value, by: str, *, days: bool = False) -> str:
    """Return the sentence about a date in the right form that does not exist, or the empty text."""
    if not isinstance(value, str):
        return ""
    if days and by != "day" and _DAY.fullmatch(value):
        by = "day"
    form = _FORMS[by].fullmatch(value)
    if form is None or _tick(value, by) is not None:
        return ""
    year, part = int(form[1]), int(form.groups()[1:2][0]) if by in ("day", "week", "month") else 0
    many = ""
    if by == "week" and year and part:
        many = f": {form[1]} has {datetime.date(year, 12, 28).isocalendar().week}"
    elif by == "day" and year and 1 <= part <= 12 and int(form[3]):
        many = f": {form[1]}-{form[2]} has {calendar.monthrange(year, part)[1]}"
    return f"There is no such {by}{many}."


def _label(tick: int, by: str) -> str:
    match by:
        case "day":
            return datetime.date.fromordinal(tick).isoformat()
        case "week":
            year, week, _ = datetime.date.fromordinal(7 * tick + 1).isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return f"{tick // 12:04}-{tick % 12 + 1:02}"
        case "quarter":
            return f"{tick // 4:04}-Q{tick % 4 + 1}"
        case _:
            return f"{tick:04}"
