"""Where places are on a map, as somebody gives it: a mapping, a frame or a CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tacit.errors import PlanError, system_reason

_LATITUDE: Final = ("lat", "latitude", "y")
_LONGITUDE: Final = ("lon", "lng", "long", "longitude", "x")


def read_points(points: Any) -> dict[str, tuple[float, float]]:
    """Return where places are, by the text of their name; refuse what has no places or no coordinates."""
    if isinstance(points, Mapping):
        pairs = [(place, *at) for place, at in points.items() if isinstance(at, tuple | list) and len(at) == 2]
        return _located(pairs, len(points))
    if isinstance(points, str | Path):
        table = _table(Path(points))
    elif hasattr(points, "columns") and hasattr(points, "__getitem__"):
        table = {str(name): list(points[name]) for name in points.columns}
    else:
        raise _no_points(points)
    place = next(iter(table), "") if "place" not in table else "place"
    columns = [next((name for name in table if name.lower() in known), None) for known in (_LATITUDE, _LONGITUDE)]
    if columns[0] is None or columns[1] is None or place in columns:
        raise _no_points(list(table))
    return _located(list(zip(table[place], table[columns[0]], table[columns[1]], strict=True)), len(table[place]))


def _located(rows: list[Any], expected: int) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for place, lat, lon in rows:
        try:
            at = float(lat), float(lon)
        except (TypeError, ValueError):
            continue
        if all(map(math.isfinite, at)):
            found.setdefault(str(place), at)
    if expected and not found:
        raise _no_points("no number among the coordinates")
    return found


def _table(path: Path) -> dict[str, list[Any]]:
    why = ""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as fault:
        rows, why = [], f" that can be read ({system_reason(fault)})"
    except (UnicodeDecodeError, csv.Error):
        rows = []
    if not rows:
        raise PlanError(f"must be a CSV file with rows{why}", key="points", given=str(path), fix="Check the path.")
    return {name: [row[name] for row in rows] for name in rows[0] if name}


def _no_points(given: Any) -> PlanError:
    return PlanError(
        "must have the columns place, lat and lon",
        key="points",
        given=given,
        fix="Give a CSV file, a frame, or {place: (latitude, longitude)}.",
    )
