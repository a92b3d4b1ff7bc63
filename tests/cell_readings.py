"""What a cell means, cell by cell in Python: the definition that every engine is compared with.

Written anew from the words of `rows/cells/readings.py`, without any of its code.
"""

import datetime
import math
import re
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np

from tacit.policy.attributes import Attribute, Categories, Dates, Decimals, Flag, Grid, Integers, Items

NUMBER = r" *-?((\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?|inf(inity)?) *"


def number(cell: Any) -> float | None:
    """Return the number reading."""
    if isinstance(cell, str):
        if cell.lower() in ("true", "false"):
            return int(cell.lower() == "true")
        return float(cell) if re.fullmatch(NUMBER, cell, re.ASCII | re.IGNORECASE) else None
    if isinstance(cell, Decimal | np.floating):
        return None if math.isnan(cell) else float(cell)
    if not isinstance(cell, bool | int | float) or cell != cell:
        return None
    return cell


def text(cell: Any) -> str | None:
    """Return the text reading."""
    if isinstance(cell, np.floating):
        cell = float(cell)
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float | Decimal) and not math.isfinite(cell):
        return None if math.isnan(cell) else "inf" if cell > 0 else "-inf"
    if isinstance(cell, float | Decimal):
        return str(int(cell)) if cell == int(cell) else format(Decimal(str(cell)).normalize(), "f")
    return None if cell is None else str(cell)


def meaning(cell: Any) -> tuple[str, float] | None:
    """Return the number that a cell plainly spells or is, or which of true and false it says."""
    if isinstance(cell, bool) or (isinstance(cell, str) and cell.lower() in ("true", "false")):
        return "truth", bool(number(cell))
    found = number(cell)
    plain = not isinstance(cell, str) or re.fullmatch(r"-?(?!0\d)\S*", cell)
    if found is None or not plain or 2**53 <= abs(found) < math.inf:
        return None
    return "number", found


def category(values: tuple[Any, ...], cell: Any) -> int | None:
    """Return the place of a cell among categories."""
    said, found, meant = text(cell), number(cell), meaning(cell)
    for place, value in enumerate(values):
        if isinstance(value, str) and value == said:
            return place
    for place, value in enumerate(values):
        if not isinstance(value, str) and found == value:
            return place
    for place, value in enumerate(values):
        if isinstance(value, str) and meant is not None and meaning(value) == meant:
            return place
    return None


def lattice(value: float | None, low: int, high: int, step: int, *, clip: bool) -> int | None:
    """Return the whole number of a range that a number stands for."""
    if value is None:
        return None
    if clip:
        inner = low if value <= low else high if value >= high else math.floor(value)
        return inner - (inner - low) % step
    fits = low <= value <= high and value == int(value) and (int(value) - low) % step == 0
    return int(value) if fits else None


DAY = r"\d{4}-\d\d-\d\d([T ]([01]\d|2[0-3]):\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d|:\d\d:[0-5]\d)?)?)?"
SHORT = {"month": (r"\d{4}-\d\d", "-01"), "year": (r"\d{4}", "-01-01")}


def day(cell: Any, by: str) -> datetime.date | None:
    """Return the UTC day of a cell; the first and the last day that there are stand for what lies beyond."""
    if isinstance(cell, str):
        forms = {"month": ["month"], "quarter": ["month"], "year": ["month", "year"]}.get(by, [])
        for pattern, rest in (SHORT[form] for form in forms):
            cell = cell + rest if re.fullmatch(pattern, cell, re.ASCII) else cell
        if not re.fullmatch(DAY, cell, re.ASCII):
            return None
        try:
            cell = datetime.datetime.fromisoformat(cell)
        except ValueError:
            return None
    if isinstance(cell, datetime.datetime):
        try:
            return (cell if cell.tzinfo is None else cell.astimezone(datetime.UTC)).date()
        except OverflowError:
            return datetime.date.min if cell.year == 1 else datetime.date.max
    return cell if isinstance(cell, datetime.date) else None


def period(date: datetime.date, by: str) -> str:
    """Return what the period is called that a day lies in; later ones are called by later texts."""
    year, week, _ = date.isocalendar()
    quarter = f"{date.year:04}-Q{(date.month + 2) // 3}"
    names = {"day": str(date), "week": f"{year:04}-W{week:02}", "month": str(date)[:7], "quarter": quarter}
    return names.get(by, str(date)[:4])


@cache
def date_places(attribute: Dates) -> dict[Any, int]:
    """Return the place of each date."""
    return {value: place for place, value in enumerate(attribute.every_value())}


def date_position(attribute: Dates, cell: Any) -> int | None:
    """Return the place of a cell among dates."""
    found = day(cell, attribute.by)
    places = date_places(attribute)
    if found is not None:
        said = period(found, attribute.by)
        if said in places:
            return places[said]
        if attribute.otherwise == "clip":
            return 0 if said < next(iter(places)) else len(places) - 1
    return None if attribute.otherwise in (None, "clip") else places[attribute.otherwise]


@cache
def decimal_values(attribute: Decimals, width: Any) -> tuple[list[float], dict[float, list[int]]]:
    """Return the values of a lattice, and the places of those that a float of this width stands for."""
    many = int((attribute.high - attribute.low) / attribute.step)
    values = [float(attribute.low + place * attribute.step) for place in range(many + 1)]
    meant: dict[float, list[int]] = {}
    for place, value in enumerate(values):
        meant.setdefault(float(width(value)), []).append(place)
    return values, meant


def decimal_position(attribute: Decimals, cell: Any) -> int | None:
    """Return the place of a cell among decimals: a cell is a value if it is the float of its own width next to it."""
    found = number(cell)
    values, meant = decimal_values(attribute, type(cell) if isinstance(cell, np.floating) else float)
    if found is not None and found in meant:
        return min(meant[found], key=lambda place: abs(values[place] - found))
    if found is not None and attribute.otherwise == "clip":
        return max(0, sum(value <= found for value in values) - 1)
    return None if attribute.otherwise in (None, "clip") else values.index(attribute.otherwise)


def position(attribute: Attribute, cells: list[Any]) -> int | None:
    """Return the position of a row's cells (two for a grid), or None if the row is not in the data."""
    otherwise: Any = getattr(attribute, "otherwise", None)
    if isinstance(attribute, Dates):
        return date_position(attribute, cells[0])
    if isinstance(attribute, Decimals):
        return decimal_position(attribute, cells[0])
    if isinstance(attribute, Items):
        last = attribute.first + attribute.count - 1
        by_number = isinstance(attribute.items, int)
        attribute = Integers(attribute.first, last) if by_number else Categories(attribute.items)  # type: ignore[arg-type]
    if isinstance(attribute, Categories):
        place = category(attribute.values, cells[0])
        return attribute.values.index(otherwise) if place is None and otherwise is not None else place
    if isinstance(attribute, Flag):
        found = number(cells[0])
        return int(found) if found in (0, 1) else None if otherwise is None else int(otherwise)
    if isinstance(attribute, Integers):
        found = lattice(number(cells[0]), attribute.low, attribute.high, attribute.step, clip=otherwise == "clip")
        value = otherwise if found is None and otherwise != "clip" else found
        return None if value is None else (value - attribute.low) // attribute.step
    assert isinstance(attribute, Grid)
    parts: list[int | None] = []
    for part, size in enumerate((attribute.rows, attribute.columns)):
        value = number(cells[part])
        if attribute.low is None or attribute.high is None:
            parts.append(lattice(value, 0, size - 1, 1, clip=otherwise == "clip"))
            continue
        low, high = attribute.low[part], attribute.high[part]
        if value is not None and otherwise == "clip":
            value = min(max(value, low), high)
        inside = value is not None and low <= value <= high
        parts.append(min(math.floor((value - low) / (high - low) * size), size - 1) if inside else None)
    row, column = parts
    if row is None or column is None:
        return otherwise[0] * attribute.columns + otherwise[1] if isinstance(otherwise, tuple) else None
    return row * attribute.columns + column


def is_refused(attribute: Attribute, kind: str, decimals: int = 0) -> bool:
    """Say whether an attribute is refused by the type of a column: `text`, `whole`, `real`, `truth`, `date`, `time`, ..

    Whole numbers beyond what a type holds exactly are another matter, which has a test of its own.
    """
    if kind == "text":
        return False
    if isinstance(attribute, Items):
        last = attribute.first + attribute.count - 1
        by_number = isinstance(attribute.items, int)
        attribute = Integers(attribute.first, last) if by_number else Categories(attribute.items)  # type: ignore[arg-type]
    if isinstance(attribute, Dates):
        return kind not in ("date", "time")
    if kind in ("time", "other"):
        return True
    if isinstance(attribute, Decimals):
        clips, digits = attribute.otherwise == "clip", -attribute.step.as_tuple().exponent
        outside = not (attribute.low <= 1 and attribute.high >= 0)
        return kind == "date" or (not clips and (decimals > digits or (kind == "truth" and outside)))
    if not isinstance(attribute, Categories):
        whole = isinstance(attribute, Integers) or (isinstance(attribute, Grid) and attribute.low is None)
        rounds = getattr(attribute, "otherwise", None) == "clip"
        outside = isinstance(attribute, Integers) and not (attribute.low <= 1 and attribute.high >= 0)
        return kind == "date" or (whole and not rounds and (decimals > 0 or (kind == "truth" and outside)))
    texts = [value for value in attribute.values if isinstance(value, str)]
    if kind == "date":
        return not texts
    if kind != "truth" and any(re.fullmatch(r"nan|[ +].*\d|-?0\d.*|\d.* ", text, re.IGNORECASE) for text in texts):
        return True
    possible = []
    for value in attribute.values:
        meant = meaning(value)
        if kind == "truth":
            meant = meant if meant is not None and (meant[0] == "truth" or not isinstance(value, str)) else None
            possible += [meant[1]] if meant is not None and meant[1] in (0, 1) else []
        elif not isinstance(value, str):
            possible.append(float(value))
        elif meant is not None and meant[0] == "number" and (kind == "real" or float(meant[1]).is_integer()):
            possible.append(meant[1])
    return not possible or len(set(possible)) < len(possible)


def spelled(cell: Any) -> str | None:
    """Return a cell as a CSV would have it."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell.isoformat() if isinstance(cell, datetime.date) else str(cell)
