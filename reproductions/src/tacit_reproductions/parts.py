"""A reproduction in parts: each gives claims, tables, numbers and charts; together they are a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit_reproductions.results import Claim, Table


@dataclass(frozen=True)
class Setting:
    """What a part works with: the folder of data sets (None: made-up ones), and whether it must be quick."""

    folder: Path | None
    quick: bool


@dataclass(frozen=True)
class Part:
    """What one part of a paper comes to."""

    claims: tuple[Claim, ...] = ()
    tables: tuple[Table, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    charts: Mapping[str, Callable[[], Any]] = field(default_factory=dict, repr=False)
