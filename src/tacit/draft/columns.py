"""What a draft declares for each column: read off its cells, with a mark; or the reason why it is left out."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from tacit.draft.way import COMMA, mostly
from tacit.errors import PolicyError
from tacit.policy.attributes import Decimals, Flag
from tacit.policy.attributes.attribute import CLIP
from tacit.policy.domain import Domain
from tacit.policy.yaml_entries import one_line
from tacit.rows.files.headers import is_called_a_person, is_called_an_id
from tacit.rows.files.sample import Sample

REVIEW: Final = "# REVIEW: read from the data; publishing it is a release"
_MOST_CATEGORIES: Final = 50
_LONGEST_CATEGORY: Final = 60
_FEW_ROWS: Final = 20  # with fewer, different texts do not suggest an identifier
_NEARLY_ALL: Final = 0.9
_SEVERAL: Final = 20  # different values; fewer are groups, for any name of the column
_WORDS_OF_A_SENTENCE: Final = 4
LONGEST_NAME: Final = 200
_MOST_DECIMALS: Final = 6  # digits after the point that people write
_PUNCTUATION: Final = re.compile(r"[\s_'\"`’]+|(?<![0-9])[.,;:]|[.,;:](?![0-9])|(?<=[^\W\d_])[-/](?=[^\W\d_])")
CLIP_NOTE: Final = "# rows with a missing or unreadable value are still dropped"
_OTHERWISE_CLIP: Final = f"otherwise: {CLIP}  {CLIP_NOTE}"


@dataclass
class DraftColumn:
    """A column, and what the draft writes for it: lines of the domain, or the reason why it is left out."""

    name: Any
    rows: int = 0  # of the sample
    rows_in_all: int = 0
    lines: list[str] = field(default_factory=list)
    reason: str = ""
    kind: str = ""
    several: int = 0  # of a column that names people: how many values stand in several rows of the sample
    most: int = 0  # and in how many at most

    @property
    def is_attribute(self) -> bool:
        """Whether it is declared."""
        return not self.reason

    def declare(self, kind: str, *lines: str) -> str:
        """Declare the column with these lines below its name; return an empty reason."""
        self.kind, self.lines = kind, [f"{one_line(self.name)}:", *(f"  {line}" for line in lines)]
        return ""

    def declare_flag(self, note: str = "") -> str:
        """Declare a flag; return an empty reason."""
        self.kind, self.lines = "flag", [line_of({self.name: "flag"}) + note]
        return ""

    def is_unique(self, different: int) -> bool:
        """Whether nearly every row has a value of its own."""
        return self.rows >= _FEW_ROWS and different > _NEARLY_ALL * self.rows


def plain(values: list[Any]) -> list[Any]:
    """Return texts of derived classes, such as NumPy's, as plain texts, also inside lists."""
    return [
        str.__str__(value)
        if isinstance(value, str)
        else type(value)(map(_text, value))
        if type(value) in (list, tuple, set, frozenset)
        else value
        for value in values
    ]


def _text(value: Any) -> Any:
    return str.__str__(value) if isinstance(value, str) else value


def typed(values: list[Any]) -> list[Any]:
    """Return the texts of a CSV column as the type that they all look like; 01234 is a code and stays a text."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < sum(value is not None for value in values):
        return values
    for pattern, read in _LOOKS:
        if all(pattern.fullmatch(text) for text in texts):
            return [None if value is None else read(value) for value in values]
    return values


def _moment(value: Any) -> datetime.date | None:
    """Return a date, or what a timestamp or an ISO text is, in UTC if it has a zone; None if there is no such day."""
    try:
        read = datetime.datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        if isinstance(read, datetime.datetime) and read.tzinfo is not None:
            return read.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None
    return read if isinstance(read, datetime.date) else None


_ISO: Final = r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9].*)?\s*"
_LOOKS: Final[list[tuple[re.Pattern[str], Callable[[str], Any]]]] = [
    (re.compile(r"(?i)true|false"), lambda text: text.lower() == "true"),
    (re.compile(r"-?(0|[1-9][0-9]{0,40})"), int),
    (re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"), float),
    (re.compile(_ISO), _moment),
]


def drafted(name: Any, values: list[Any], sample: Sample, said: Any = None, file: str = "") -> DraftColumn:
    """Return what a draft writes for a column; what a description in a file says of it is taken as it stands."""
    column = DraftColumn(name, len(values), sample.rows)
    try:
        Domain({name: Flag()})
    except PolicyError as refusal:
        column.reason = f"its name {refusal.rule}. {refusal.fix}"
        return column
    if len(name) > LONGEST_NAME:
        column.reason = f"its name has more than {LONGEST_NAME} letters. Rename the column first."
        return column
    values = [value for value in values if not _is_missing(value)]
    if said is not None:
        column.kind = said if isinstance(said, str) else next(iter(said))
        column.lines = [f"{line_of({name: said})}  # from {one_line(file)}"]
        return column
    column.reason = _declared(column, values)
    if column.kind == "person":
        many = Counter(values).values()
        column.several, column.most = sum(times > 1 for times in many), max(many, default=0)
    return column


def _declared(column: DraftColumn, values: list[Any]) -> str:
    """Fill in the lines of a column, or return the reason why it cannot be declared."""

    def all_are(*kinds: type) -> bool:
        return all(isinstance(value, kinds) for value in values)

    if not values:
        return "no value to go by. Declare it yourself."
    if all_are(bool):
        return column.declare_flag()
    if all(_is_whole(value) for value in values):
        return _whole_numbers(column, [int(value) for value in values])
    if all_are(int, float, decimal.Decimal):
        return _fractions(column, values)
    if all_are(datetime.date):
        return _dates(column, values)
    if all_are(datetime.time, datetime.timedelta):
        return _TIMES
    if all_are(str):
        return _texts(column, values)
    if all_are(list, tuple, set, frozenset):
        return _lists(column, values)
    return "values of different or unusual types. Turn them into texts, whole numbers or true/false first."


def _whole_numbers(column: DraftColumn, values: list[int]) -> str:
    different = set(values)
    unique = column.is_unique(len(different))
    # 1, 2, 3, .., some of them in the sample
    numbered = unique and max(different) - min(different) < column.rows_in_all / _NEARLY_ALL
    if numbered or _is_called_an_identifier(column.name, len(different), unique=unique):
        return _names_people(column)
    if different <= {0, 1}:
        return column.declare_flag(f"  {REVIEW}")
    if max(map(abs, different)) > 2**62:
        return "numbers beyond 62 bits. If they name people, write the column as `person:` of the policy."
    return column.declare("integers", f"integers: [{min(different)}, {max(different)}]  {REVIEW}", _OTHERWISE_CLIP)


def _fractions(column: DraftColumn, values: list[Any]) -> str:
    """Draft decimals: the range of the cells, and a step with as many digits as they have."""
    numbers = {  # 36.800000000000004 is the result of an addition
        decimal.Decimal(f"{value:.12g}") if isinstance(value, float) else decimal.Decimal(value)
        for value in values
        if math.isfinite(value)
    }
    if _is_called_an_identifier(column.name, len(numbers), unique=column.is_unique(len(numbers))):
        return _names_people(column)
    if not numbers:
        return "no finite number to go by. Declare it yourself."
    low, high = min(numbers), max(numbers)
    digits = max(-int(number.normalize().as_tuple().exponent) for number in numbers)
    is_measured = digits > _MOST_DECIMALS  # as fine as a computer stores it, not as people write it
    if is_measured:
        digits = min(_MOST_DECIMALS, max(0, 3 - (high - low).adjusted())) if high > low else _MOST_DECIMALS
    step = decimal.Decimal(1).scaleb(-max(0, digits))
    ends = [
        (low / step).to_integral_value(decimal.ROUND_FLOOR) * step,
        (high / step).to_integral_value(decimal.ROUND_CEILING) * step,
    ]
    try:
        Decimals(ends[0], ends[1], step)
    except (PolicyError, decimal.InvalidOperation):
        return (
            "numbers of very different sizes. Write {decimals: [low, high], step: 0.01, otherwise: clip} with the "
            "range and the step that you know."
        )
    coarser = "  # coarser than the cells, which are rounded down" if is_measured else ""
    decimals = f"decimals: [{ends[0]:f}, {ends[1]:f}]  {REVIEW}"
    return column.declare("decimals", decimals, f"step: {step:f}{coarser}  {REVIEW}", _OTHERWISE_CLIP)


def _dates(column: DraftColumn, values: list[Any]) -> str:
    moments = [moment for moment in map(_moment, values) if moment is not None]
    if not moments:
        return "no date to go by. Declare it yourself."
    timed = [moment for moment in moments if isinstance(moment, datetime.datetime)]
    days = [moment.date() if isinstance(moment, datetime.datetime) else moment for moment in moments]
    ends = f"[{min(days).isoformat()}, {max(days).isoformat()}]"
    if any(moment.time() != datetime.time() for moment in timed):
        step = "step: hour  # or 15 minutes, 1 day; `dates` have weeks and months: fewer values are more accurate"
        zone = "zone: UTC  # or where the clocks are that tell the time, such as Europe/Berlin"
        zoned = [zone] if any(moment.tzinfo is not None for moment in timed) else []
        return column.declare("times", f"times: {ends}  {REVIEW}", step, *zoned, _OTHERWISE_CLIP)
    dates = f"dates: {ends}  {REVIEW}"
    by = "by: day  # or week, month, quarter, year: fewer values are more accurate"
    return column.declare("dates", dates, by, _OTHERWISE_CLIP)


def _texts(column: DraftColumn, values: list[str]) -> str:
    if mostly(_ISO_DATE, values):
        return _of_some(column, values, lambda text: bool(_ISO_DATE.fullmatch(text) and _moment(text)), _dates, "dates")
    for pattern, reason in _NOT_READ:
        if mostly(pattern, values):
            return reason
    if mostly(_WHOLE, values):
        return _of_some(
            column, values, _WHOLE.fullmatch, lambda column, fitting: _whole_numbers(column, list(map(int, fitting)))
        )
    if mostly(_FRACTION, values):
        return _of_some(
            column, values, _FRACTION.fullmatch, lambda column, fitting: _fractions(column, list(map(float, fitting)))
        )
    return _words(column, values, sorted(set(values)))


def _of_some(
    column: DraftColumn,
    values: list[str],
    fits: Callable[[str], Any],
    declare: Callable[[DraftColumn, list[str]], str],
    what: str = "numbers",
) -> str:
    """Declare a column from the texts that fit, with a note on the others."""
    fitting = [value for value in values if fits(value)]
    reason = declare(column, fitting)
    if column.lines and len(fitting) < len(values):
        note = f"# some cells are no {what}: their rows are dropped unless `otherwise` is a value of the range"
        column.lines.append(note if column.kind == "flag" else f"  {note}")
    return reason


def _words(column: DraftColumn, values: list[str], different: list[str]) -> str:
    unique = column.is_unique(len(different))
    words = sum(len(value.split()) for value in different) / len(different)
    if words >= _WORDS_OF_A_SENTENCE and len(different) > len(values) / 2:
        return _FREE_TEXT
    if unique or _is_called_an_identifier(column.name, len(different), unique=unique):
        return _names_people(column)
    if column.rows >= _FEW_ROWS and len(different) > column.rows / 2:
        return _FREE_TEXT
    if len(different) > _MOST_CATEGORIES or max(map(len, different)) > _LONGEST_CATEGORY:
        return (
            "texts, too many or too long for a list of categories. Group them first, and write "
            "{categories: [a, b, other], otherwise: other}."
        )
    other = next((value for value in different if value.lower() == "other"), "other")
    listed = different if other in different else [*different, other]
    alike = [f"# nearly the same, is it one value? {one_line(same)}  {REVIEW}" for same in _nearly_the_same(different)]
    return column.declare(
        "categories", *alike, f"{line_of({'categories': listed})}  {REVIEW}", line_of({"otherwise": other})
    )


_WHOLE: Final = re.compile(r"\s*[-+]?(0|[1-9][0-9]{0,40})\s*")  # 01234 is a code
_FRACTION: Final = re.compile(r"\s*[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?\s*")
_ISO_DATE: Final = re.compile(_ISO)
_TIME: Final = re.compile(r"\s*[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?(\s*[AaPp]\.?[Mm]\.?)?\s*")
_DAY_OR_MONTH: Final = re.compile(r"\s*[0-9]{1,2}([-/.])[0-9]{1,2}\1[0-9]{2,4}([ T].*)?")
_ANY_DATE: Final = re.compile(
    r"\s*([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4})([ T].*)?"
)
_TIMES: Final = (
    "times of day, or durations. Make whole numbers of them first, for instance minutes, and write "
    "{integers: [0, 1439], otherwise: clip}."
)
_NOT_READ: Final = (
    (_TIME, _TIMES),
    (
        _DAY_OR_MONTH,
        "dates of which day and month could be mixed up. Say how they are written, for instance `--format DD/MM/YYYY`, "
        "and draft again.",
    ),
    (
        _ANY_DATE,
        "dates or times, not all in one form. Write them like 2024-05-01 first, and declare "
        "{dates: [from, to], by: month, otherwise: clip}.",
    ),
    (
        COMMA,
        "numbers with a comma, before decimals or between thousands. If it stands before decimals, say `--decimal ,` "
        "and draft again; else write them without it.",
    ),
)
_FREE_TEXT: Final = (
    "nearly free text: most values occur once, so a list of them would name people. Leave it out, or group the texts "
    "first and write {categories: [a, b, other], otherwise: other}."
)


def _nearly_the_same(values: list[str]) -> list[list[str]]:
    """Return groups of values that differ only in case, spaces or punctuation.

    Signs with a meaning count: <=50K is not >50K, A+ is not A-, and 1.5 is not 15.
    """
    alike: dict[str, list[str]] = {}
    for value in values:
        alike.setdefault(_PUNCTUATION.sub("", value.casefold()), []).append(value)
    return [same for bare, same in alike.items() if bare and len(same) > 1]


def _is_called_an_identifier(name: Any, different: int, *, unique: bool) -> bool:
    """Say whether a column has a name like an identifier, and more values than a few groups."""
    if not isinstance(name, str):
        return False
    if is_called_a_person(name):
        return unique or different > 2  # two values are yes and no
    return is_called_an_id(name) and (unique or different > _SEVERAL)


def _lists(column: DraftColumn, values: Iterable[Iterable[Any]]) -> str:
    items = {item for value in values for item in value if isinstance(item, str | int)}
    if not items or any(isinstance(item, bool) for item in items):
        return "lists. If they are sets of items, write {items: how many there are} or {items: [names]}."
    if len(items) > _MOST_CATEGORIES:
        return (
            "sets of many items. Number them, and write {items: how many there are, at_most: how many one person "
            "may have}."
        )
    listed = sorted(items, key=lambda item: (isinstance(item, str), item))
    return column.declare("items", f"{line_of({'items': listed})}  {REVIEW}")


def _names_people(column: DraftColumn) -> str:
    column.kind = "person"
    return (
        "looks like an identifier: leave it out of the domain and name it as `person:` if one person may own several "
        "rows"
    )


def line_of(entry: dict[Any, Any]) -> str:
    """Return a mapping with one key as one line of YAML."""
    ((key, value),) = entry.items()
    return f"{one_line(key)}: {one_line(value)}"


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)
