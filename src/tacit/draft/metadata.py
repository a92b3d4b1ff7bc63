"""What a description of a table says of its columns: a data package (Frictionless) or CSV on the Web (CSVW).

What a description says is public, so a domain that is declared from it needs no mark: types with both ends, lists of
values, how numbers and dates are written. What it leaves open is read off the data, with a mark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tacit.errors import DataRefused, PolicyError
from tacit.policy.attributes import Attribute, Categories, Dates, Decimals, Flag, Integers
from tacit.policy.attributes.attribute import CLIP
from tacit.rows.files.table_files import shown_path
from tacit.rows.files.written import UTF_8, Written

_KINDS: Final = {
    **dict.fromkeys(("integer", "int", "long", "short", "nonNegativeInteger", "positiveInteger", "year"), "integers"),
    **dict.fromkeys(("number", "decimal", "double", "float"), "decimals"),
    **dict.fromkeys(("date", "datetime", "dateTime"), "dates"),
    "boolean": "flag",
}
_LETTERS: Final = (("%d", "DD"), ("%m", "MM"), ("%Y", "YYYY"), ("dd", "DD"), ("yyyy", "YYYY"), ("d", "D"))
_LIST: Final = re.compile(r"\^?\(?([\w -]+(?:\|[\w -]+)+)\)?\$?")


@dataclass(frozen=True)
class Description:
    """What is said of one table. `domain` has the declaration of each column as a policy file writes it."""

    file: str
    rows: Path
    written: Written
    domain: Mapping[str, Mapping[str, Any] | str] = field(default_factory=dict)


def read_description(path: Path, table: str | None = None) -> Description:
    """Read a description; `table` names one of several tables."""
    refusal = None
    try:
        said = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        said, refusal = None, "must be a readable JSON file"
    tables = _tables(said) if isinstance(said, Mapping) else []
    if refusal is None and not tables:
        refusal = "must describe a table: a data package with resources, or CSVW with a url or tables"
    if refusal is not None:
        raise DataRefused(f"file {shown_path(path)} {refusal}", fix="Name the table itself, a CSV or Parquet file.")
    names = [_name(one) for one in tables]
    if (table is None and len(tables) > 1) or (table is not None and table not in names):
        raise DataRefused(
            f"file {shown_path(path)} describes {', '.join(map(repr, names))}, of which one must be named",
            fix=f"Say --table {names[0]}.",
        )
    one = tables[0 if table is None else names.index(table)]
    try:
        return _description(path, one)
    except (TypeError, ValueError, AttributeError, KeyError, IndexError):
        refusal = f"file {shown_path(path)} must follow the form of a data package or of CSVW"
    raise DataRefused(refusal, fix="Name the table itself, a CSV or Parquet file.")


def _tables(said: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = said.get("resources") or said.get("tables") or ([said] if "url" in said else [])
    return [one for one in found if isinstance(one, Mapping) and _address(one)] if isinstance(found, list) else []


def _address(one: Mapping[str, Any]) -> str:
    path = one.get("path", one.get("url"))
    return str(path[0] if isinstance(path, list) and path else path or "")


def _name(one: Mapping[str, Any]) -> str:
    return str(one.get("name") or Path(_address(one)).stem)


def _description(path: Path, one: Mapping[str, Any]) -> Description:
    schema = one.get("schema") or one.get("tableSchema") or {}
    fields = schema.get("fields") or schema.get("columns") or []
    signs, forms = set(), set()
    domain: dict[str, Mapping[str, Any] | str] = {}
    for column in fields:
        name, kind, limits = _column(column)
        form = limits.pop("format", "")
        if _KINDS.get(kind) == "dates" and form not in ("", "default", "any"):
            for letters, ours in _LETTERS:
                form = form.replace(letters, ours)
            forms.add(re.split(r"[ T]", form)[0])
        if kind in ("number", "decimal", "double"):
            signs.add(str(limits.pop("decimalChar", ".")))
        if (declared := _declared(_KINDS.get(kind, ""), limits)) is not None:
            domain[name] = declared
    encoding = str(one.get("encoding") or (one.get("dialect") or {}).get("encoding") or UTF_8)
    try:
        form = forms.pop() if len(forms) == 1 else ""
        written = Written(None, "," if signs == {","} else ".", "" if form == "YYYY-MM-DD" else form, encoding)
    except PolicyError as refused:
        raise DataRefused(f"file {shown_path(path)}: {refused}", fix="Mend the description.") from None
    return Description(path.name, path.parent / _address(one), written, domain)


def _column(column: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return the name, the type and the limits of a column, in the words of a data package."""
    titles, kind = column.get("titles"), column.get("datatype", column.get("type", "string"))
    titles = titles[0] if isinstance(titles, list) and titles else titles
    limits = {**column, **(column.get("constraints") or {})}
    if isinstance(kind, Mapping):
        limits |= {"minimum": kind.get("minInclusive"), "maximum": kind.get("maxInclusive"), **kind}
        if isinstance(limits.get("format"), Mapping):
            limits |= limits["format"] | {"format": ""}
        kind = kind.get("base", "string")
    listed = _LIST.fullmatch(str(limits.get("pattern") or (limits.get("format") if kind == "string" else "") or ""))
    if listed and "enum" not in limits:
        limits["enum"] = listed[1].split("|")
    return str(titles if "datatype" in column and titles else column["name"]), str(kind), limits


def _declared(kind: str, limits: Mapping[str, Any]) -> Any:
    """Return the declaration of an attribute, or None if the limits leave its values open."""
    low, high = limits.get("minimum"), limits.get("maximum")
    made: Attribute | None = None
    try:
        if limits.get("enum") and kind in ("", "integers"):
            made = Categories([int(value) if kind == "integers" else str(value) for value in limits["enum"]])
        elif kind == "flag":
            made = Flag()
        elif low is None or high is None:
            return None
        elif kind == "integers":
            made = Integers(int(low), int(high), otherwise=CLIP)
        elif kind == "decimals" and "multipleOf" in limits:
            made = Decimals(low, high, limits["multipleOf"], otherwise=CLIP)
        elif kind == "dates":
            made = Dates(str(low)[:10], str(high)[:10], otherwise=CLIP)
    except (PolicyError, ValueError):  # it is read off the data instead, with a mark
        return None
    return None if made is None else made.document()
