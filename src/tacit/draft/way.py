"""How a table writes its numbers, dates and letters, as far as its cells leave no doubt.

What is found goes into a draft, for review; a release reads what is declared and nothing else.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from tacit.rows.cells.readings import DataColumn
from tacit.rows.files.written import Written, date_form

Cells: TypeAlias = Sequence[tuple[Any, list[Any]]]  # the name of each column, and its cells
COMMA: Final = re.compile(r"\s*[-+]?[0-9]+,[0-9]+\s*")
OTHER_DATE: Final = re.compile(r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}([ T].*)?")
_POINT: Final = re.compile(r"\s*[-+]?[0-9]+\.[0-9]+\s*")
_THOUSANDS: Final = re.compile(r"\s*[-+]?[1-9][0-9]{0,2},[0-9]{3}\s*")
_ISO: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_ORDERS: Final[tuple[tuple[str, str, str], ...]] = (("D", "M", "YYYY"), ("M", "D", "YYYY"), ("YYYY", "M", "D"))


def mostly(pattern: re.Pattern[str], values: Sequence[str]) -> bool:
    """Say whether most texts, and most different texts, have this form; otherwise they are codes."""
    alike = [value for value in values if pattern.fullmatch(value)]
    return len(alike) > len(values) / 2 and len(set(alike)) > len(set(values)) / 2


def found_way(columns: Cells, told: Written) -> Written:
    """Return how the cells are written; what was told stands, and in doubt nothing is found."""
    texts = [found for _, cells in columns if (found := [cell for cell in cells if isinstance(cell, str)])]
    decimal, form = told.decimal, told.format
    if decimal == "." and not any(mostly(_POINT, cells) for cells in texts):
        decimal = "," if any(mostly(COMMA, cells) and not all(map(_is_grouped, cells)) for cells in texts) else "."
    if not form:
        dated = [_forms(cells) for cells in texts if mostly(OTHER_DATE, cells) and not mostly(_ISO, cells)]
        common = [form for form in (dated[0] if dated else []) if all(form in forms for forms in dated)]
        form = common[0] if len(common) == 1 else ""
    return Written(None, decimal, form, told.encoding)


def plainly(columns: Cells, way: Written) -> list[tuple[Any, list[Any]]]:
    """Return the cells of columns of such numbers and dates as Tacit itself writes them."""
    column, found = DataColumn("text", comma=way.decimal == ",", form=way.form), []
    for name, cells in columns:
        texts = [cell for cell in cells if isinstance(cell, str)]
        is_other = bool(texts) and (mostly(COMMA, texts) or mostly(OTHER_DATE, texts))
        found.append((name, [column.plain(cell) for cell in cells] if is_other or way.format == "YYYYMMDD" else cells))
    return found


def _is_grouped(text: str) -> bool:
    """Say whether a comma may stand between thousands."""
    return not COMMA.fullmatch(text) or _THOUSANDS.fullmatch(text) is not None


def _forms(cells: Sequence[str]) -> list[str]:
    """Return the forms in which all dates of a column are days; with points, the day comes first."""
    dates = [cell for cell in cells if OTHER_DATE.fullmatch(cell)]
    separators = {found[1] for cell in dates if (found := OTHER_DATE.fullmatch(cell))}
    if len(separators) != 1:
        return []
    (separator,) = separators
    short = any(len(part) == 1 for cell in dates for part in re.split(r"[ T]", cell)[0].split(separator))
    forms = []
    for order in _ORDERS:
        form = separator.join(part if short or part == "YYYY" else 2 * part for part in order)
        read = [date_form(form).as_iso(cell) for cell in dates]
        if not (separator == "." and order[0] == "M") and all(map(_is_day, read)):
            forms.append(form)
    return forms


def _is_day(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True
