"""A first draft of a policy file from column names and types: `tacit init DATA`.

A domain must be declared, not read off the data: a category that only one person has, or the largest income, is
itself a disclosure. So a draft is for the publisher's eyes. Every line that holds values from the data is marked with
`REVIEW`, everything is secret until somebody says otherwise, and what cannot be declared is a comment with the reason.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import narwhals as nw

from tacit.errors import DataRefused, PolicyError
from tacit.policy.domain import CLIP, Domain, Flag
from tacit.policy.yaml_entries import quoted, write_yaml

REVIEW: Final = "# REVIEW: read from the data; publishing it is a release"
_MOST_CATEGORIES: Final = 50
_LONGEST_CATEGORY: Final = 60
_FEW_ROWS: Final = 20  # below that, different texts are no sign of an identifier
_NEARLY_ALL: Final = 0.9
_SEVERAL: Final = 20  # different values; fewer are groups, whatever the column is called
_WORDS_OF_A_SENTENCE: Final = 4
_IDENTIFIER: Final = re.compile(r"(?:^|.*[_\W])(?:id|key|uuid|guid|ssn|index|number|nr|no)|.*[a-z](?:Id|ID)", re.DOTALL)
# what names a person says so by itself, also where the values repeat
_PERSON: Final = re.compile(
    r"(?i)(?:id|uuid|guid|ssn|e?mail|name|(?:(?:user|person|people|patient|customer|client|member|subject|employee|"
    r"student|household|respondent)s?[_\W]?(?:id|uuid|key|number|nr|no|name)?))"
)
_CLIP_NOTE: Final = "# rows with a missing or unreadable value are still dropped"

_TITLE: Final = """\
# A draft of a Tacit policy, made from column names and types{looked}.
# It is not a policy yet, and not public yet. Before you use it:
#   1. Go through the lines marked REVIEW and write what you know to be possible, not what happens to occur.
#   2. Delete the columns that nobody will ask about.
#   3. Choose the secrets, then read what `tacit check` says about them.
"""

_AFTER: Final = """
# What a release must not give away. Everything is the safe start: differential privacy.
secrets: everything
# Weaker secrets give more accurate releases. Instead of the line above, for instance:
# secrets:
{alternatives}
# What is public about the data set anyway: size, {{marginal: [..]}}, {{count: ".."}}. It raises the noise.
known: []

# Whether it is secret who is in the data. public: who takes part, and how many, may be published.
presence: secret
"""

_PERSON_NOTE: Final = """
# Each row counts as one person. If a person may own several rows, name the column that says whose row it is, and how
# many rows of one person count:
"""


@dataclass
class _Column:
    """What the draft says about one column: lines of the domain, or comments."""

    name: Any
    lines: list[str] = field(default_factory=list)
    is_attribute: bool = False
    kind: str = ""


def draft_policy(path_or_frame: Any, *, rows_to_look_at: int = 10_000) -> str:
    """Return the text of a draft policy file for a CSV or parquet file or a frame; it reads back as a policy."""
    is_path = isinstance(path_or_frame, str | Path)
    columns = _columns(_opened(path_or_frame) if is_path else path_or_frame, rows_to_look_at)
    if is_path:
        columns = [(name, _typed(values)) for name, values in columns]
    drafted = [_drafted(name, values) for name, values in columns]
    name = re.sub(r"[^\w-]+", "_", Path(path_or_frame).stem) if is_path else "draft"
    looked = f" and the first {rows_to_look_at:,} rows at most" if rows_to_look_at else ""
    parts = [_TITLE.format(looked=looked), write_yaml({"name": name or "draft"})]
    parts.append(
        "\n# The values that a person's record may have. Unexpected ones go to `otherwise`, or the row is dropped.\n"
    )
    parts.append("domain:\n")
    for column in drafted:
        parts.extend(f"  {line}\n" for line in column.lines)
    parts.extend(f"  # {line}\n" for line in _map_of(drafted))
    if not any(column.is_attribute for column in drafted):
        parts.append("  # No column can be declared as it is. Replace this line:\n")
        parts.append("  replace_me: flag\n")
    parts.append(_AFTER.format(alternatives=_alternatives(drafted)))
    parts.append(_PERSON_NOTE)
    people = next((column.name for column in drafted if column.kind == "person"), "patient_id")
    parts.append(f"# {_line({'person': people})}\n# per_person: 1\n")
    return "".join(parts)


def _opened(path: str | Path) -> Any:
    """Return a file as a relation that reads nothing yet."""
    text = str(path)
    kind = "".join(Path(text).suffixes).lower()
    relation = None
    try:
        reader = duckdb.connect()
        relation = (
            reader.read_parquet(text)
            if ".parquet" in kind or ".pq" in kind
            else reader.read_csv(text, all_varchar=True)
        )
    except (duckdb.Error, OSError, ValueError):
        relation = None
    if relation is None:
        # outside the handler: the reader's own text may quote a row
        raise DataRefused(
            f"the file {Path(text).name!r} must exist and be a CSV or parquet file",
            fix="Check the path and the format.",
        )
    return relation


def _columns(frame: Any, rows: int) -> list[tuple[Any, list[Any]]]:
    """Return the names and the first values of every column."""
    found: list[tuple[Any, list[Any]]] | None = None
    try:
        if isinstance(frame, duckdb.DuckDBPyRelation):
            frame = frame.limit(rows).to_arrow_table()
        table = nw.from_native(frame).head(rows)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        found = [(name, column.to_list()) for name, column in zip(table.columns, table.iter_columns(), strict=True)]
    except Exception:  # whatever an engine raises may quote a row
        found = None
    if found is None:
        raise DataRefused(
            "the data must be a CSV or parquet file or a frame with one name for each column",
            fix="Give a path, or a pandas, polars, pyarrow or DuckDB frame.",
        )
    if not found:
        raise DataRefused("the data must have at least one column", fix="Check the file.")
    return found


def _typed(values: list[Any]) -> list[Any]:
    """Return the texts of a CSV column as what they all look like; 01234 is a code and stays a text."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < sum(value is not None for value in values):
        return values
    for pattern, read in _LOOKS:
        if all(pattern.fullmatch(text) for text in texts):
            return [None if value is None else read(value) for value in values]
    return values


_LOOKS: Final[list[tuple[re.Pattern[str], Callable[[str], Any]]]] = [
    (re.compile(r"(?i)true|false"), lambda text: text.lower() == "true"),
    (re.compile(r"-?(0|[1-9][0-9]{0,40})"), int),
    (re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?"), lambda _: datetime.date.min),
]


def _drafted(name: Any, values: list[Any]) -> _Column:
    column = _Column(name)
    shown = quoted(str(name))
    try:
        Domain({name: Flag()})
    except PolicyError as refusal:
        column.lines = _comment(f"{shown} {refusal.rule}. {refusal.fix}")
        return column
    present = [value for value in values if not _is_missing(value)]
    reason = _declared(column, present, len(values))
    if reason:
        column.lines = _comment(f"{shown}: {reason}")
    else:
        column.is_attribute = True
    return column


def _declared(column: _Column, values: list[Any], rows: int) -> str:
    """Fill in the lines of a column, or return the reason why it cannot be declared."""
    name = column.name
    if not values:
        return "no value to go by. Declare it yourself."
    if all(isinstance(value, bool) for value in values):
        column.lines, column.kind = [_line({name: "flag"})], "flag"
        return ""
    if all(_is_whole(value) for value in values):
        return _whole_numbers(column, [int(value) for value in values], rows)
    if all(isinstance(value, int | float | decimal.Decimal) for value in values):
        column.kind = "fraction"
        return (
            "fractions. Round them to whole numbers first, for instance to thousands or to hundredths, and write "
            "{integers: [low, high], otherwise: clip}."
        )
    if all(isinstance(value, datetime.date | datetime.time | datetime.timedelta) for value in values):
        return (
            "dates or times. Make whole numbers of them first, for instance the year, or days since a fixed day, and "
            "write {integers: [low, high], otherwise: clip}."
        )
    if all(isinstance(value, str) for value in values):
        return _texts(column, values, rows)
    if all(isinstance(value, list | tuple | set | frozenset) for value in values):
        return _lists(column, values)
    return "values of different or unusual types. Turn them into texts, whole numbers or true/false first."


def _whole_numbers(column: _Column, values: list[int], rows: int) -> str:
    different = set(values)
    unique = rows >= _FEW_ROWS and len(different) > _NEARLY_ALL * rows
    numbered = unique and max(different) - min(different) < len(different) / _NEARLY_ALL  # 1, 2, 3, ..
    if numbered or _is_called_an_identifier(column.name, len(different), unique=unique):
        return _names_people(column)
    if different <= {0, 1}:
        column.kind = "flag"
        column.lines = [f"{_line({column.name: 'flag'})}  {REVIEW}"]
        return ""
    if max(map(abs, different)) > 2**62:
        return "numbers beyond 62 bits. If they name people, write the column as `person:` of the policy."
    column.kind = "integers"
    column.lines = [
        _line({column.name: None}, bare=True),
        f"  integers: [{min(different)}, {max(different)}]  {REVIEW}",
        f"  otherwise: {CLIP}  {_CLIP_NOTE}",
    ]
    return ""


def _texts(column: _Column, values: list[str], rows: int) -> str:
    different = sorted(set(values))
    unique = rows >= _FEW_ROWS and len(different) > _NEARLY_ALL * rows
    words = sum(len(value.split()) for value in different) / len(different)
    if words >= _WORDS_OF_A_SENTENCE and len(different) > len(values) / 2:
        return _FREE_TEXT
    if unique or _is_called_an_identifier(column.name, len(different), unique=unique):
        return _names_people(column)
    if rows >= _FEW_ROWS and len(different) > rows / 2:
        return _FREE_TEXT
    if len(different) > _MOST_CATEGORIES or max(map(len, different)) > _LONGEST_CATEGORY:
        return (
            "texts, too many or too long for a list of categories. Group them first, and write "
            "{categories: [a, b, other], otherwise: other}."
        )
    other = next((value for value in different if value.lower() == "other"), "other")
    listed = different if other in different else [*different, other]
    column.kind = "categories"
    column.lines = [
        _line({column.name: None}, bare=True),
        *(f"  # nearly the same, is it one value? {_one_line(same)}  {REVIEW}" for same in _nearly_the_same(different)),
        f"  {_line({'categories': listed})}  {REVIEW}",
        f"  {_line({'otherwise': other})}",
    ]
    return ""


_FREE_TEXT: Final = (
    "nearly free text: most values occur once, so a list of them would name people. Leave it out, or group the texts "
    "first and write {categories: [a, b, other], otherwise: other}."
)


def _nearly_the_same(values: list[str]) -> list[list[str]]:
    """Return the values that differ by case, spaces or punctuation alone, together."""
    alike: dict[str, list[str]] = {}
    for value in values:
        alike.setdefault(re.sub(r"[\W_]+", "", value.casefold()), []).append(value)
    return [same for bare, same in alike.items() if bare and len(same) > 1]


def _is_called_an_identifier(name: Any, different: int, *, unique: bool) -> bool:
    """Say whether a column is named like an identifier and does not look like a few groups."""
    if not isinstance(name, str):
        return False
    if _PERSON.fullmatch(name):
        return unique or different > 2  # two values are a yes and a no
    return bool(_IDENTIFIER.fullmatch(name) or _IDENTIFIER.fullmatch(name.lower())) and (unique or different > _SEVERAL)


def _lists(column: _Column, values: Iterable[Iterable[Any]]) -> str:
    items = {item for value in values for item in value if isinstance(item, str | int)}
    if not items or any(isinstance(item, bool) for item in items):
        return "lists. If they are sets of items, write {items: how many there are} or {items: [names]}."
    if len(items) > _MOST_CATEGORIES:
        return (
            "sets of many items. Number them, and write {items: how many there are, at_most: how many one person "
            "may have}."
        )
    column.kind = "items"
    listed = sorted(items, key=lambda item: (isinstance(item, str), item))
    column.lines = [
        _line({column.name: None}, bare=True),
        f"  {_line({'items': listed})}  {REVIEW}",
    ]
    return ""


def _names_people(column: _Column) -> str:
    column.kind = "person"
    return (
        "looks like an identifier: leave it out of the domain and name it as `person:` if one person may own several "
        f"rows, person: {quoted(column.name)}"
    )


def _map_of(columns: list[_Column]) -> list[str]:
    """Suggest a grid where two columns of fractions are called like coordinates."""
    fractions = [column.name for column in columns if column.kind == "fraction"]
    rows = [name for name in fractions if re.match(r"(?i)lat", name)]
    across = [name for name in fractions if re.match(r"(?i)(lon|lng)", name)]
    if not rows or not across:
        return []
    of = f"of: [{quoted(rows[0])}, {quoted(across[0])}]"
    return [
        "Coordinates can be cells of a map; write the corners of the area that you serve:",
        f"place: {{grid: {{rows: 100, columns: 100, {of}, low: [-90, -180], high: [90, 180], otherwise: {CLIP}}}}}",
        f"({_CLIP_NOTE.removeprefix('# ')})",
    ]


def _alternatives(columns: list[_Column]) -> str:
    """Return commented examples of weaker secrets, with the columns at hand."""
    by_kind = {column.kind: column.name for column in reversed(columns) if column.is_attribute}
    numbers, texts = by_kind.get("integers", "age"), by_kind.get("categories", "disease")
    examples: list[tuple[dict[str, Any], str]] = [
        ({"attributes": [texts]}, "one attribute at a time, the others may be released exactly"),
        ({"within": {"theta": 5, "attributes": [numbers]}}, "the rough value stays public"),
        ({"partition": {"attribute": numbers, "width": 10}}, "the block stays public"),
        ({"values": {texts: ["a category"]}}, "this value looks like any other; the others are not secret"),
        ({"records": ".. < .."}, "everything about these people, nothing about the others"),
    ]
    return "\n".join(f"#   - {_line(said)}  # {meaning}" for said, meaning in examples)


def _line(said: dict[Any, Any], *, bare: bool = False) -> str:
    """Return one `key: value` as YAML on one line; `bare`: the key and its colon alone."""
    (key, value), *_ = said.items()
    written = _one_line(key)
    if bare:
        return f"{written}:"
    return f"{written}: {_one_line(value)}"


def _one_line(value: Any) -> str:
    """Return a value as YAML that stays on one line however long it is."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_one_line(key)}: {_one_line(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_one_line(part) for part in value) + "]"
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", value):
        return quoted(value)
    return write_yaml({"x": value}).removeprefix("x: ").strip()


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text, 110, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
    )


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)
