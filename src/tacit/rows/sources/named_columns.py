"""The columns of a source by name: a name means one column, and a missing one is pointed at without a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from tacit.errors import DataRefused, Unread, nearest
from tacit.policy.domain import Domain
from tacit.rows.cells.readings import DataColumn
from tacit.rows.files.headers import known_columns
from tacit.rows.guard import closed
from tacit.rows.sources.engine import Engine, unreadable


def columns_of(domain: Domain, item: str | None) -> dict[str, tuple[str, ...]]:
    """Return the data columns that each attribute is read from."""
    return {name: attribute.read_from(name, item) for name, attribute in domain.items()}


class NamedColumns:
    """The columns of a source, found by name. A name means one column, or it is refused."""

    def __init__(self, engine: Engine, declared: frozenset[str]) -> None:
        unlisted = Unread("the columns of the source could not be listed")
        self._names = closed(engine.names, unlisted)
        self._schema = closed(engine.schema, unlisted)
        self._declared = declared
        self._engine = engine
        self._is_file = engine.is_file
        self._found: dict[str, DataColumn] = {}

    def read(self, raw: str) -> DataColumn:
        """Return a column under a plain name."""
        if raw not in self._names:
            fix = _pointer(raw, self._declared, self._names, is_file=self._is_file)
            raise DataRefused("must be a column of the data", column=raw, fix=fix)
        if self._names.count(raw) > 1:
            raise DataRefused("must be there only once", column=raw, fix="Rename the second one.")
        alike = [name for name in self._names if name != raw and name.casefold() == raw.casefold()]
        if alike:
            # some engines would read the other one; of a file without a header, its name would be a value
            other = "another column" if self._is_file and alike[0] not in self._declared else repr(alike[0])
            raise DataRefused(f"must differ from {other} in more than case", column=raw, fix="Rename one of them.")
        if raw not in self._found:
            closed(lambda: self._engine.try_column(raw), unreadable())
        return self._found.setdefault(raw, replace(self._schema[raw], raw=raw, name=f"c{len(self._found)}"))


def check_shared(raw_of: Mapping[str, tuple[str, ...]], moved: frozenset[str] | None) -> None:
    """Refuse two attributes that read one column, if an edge moves one of them: it would move both in every row."""
    readers: dict[str, str] = {}
    for name, columns in raw_of.items():
        for column in columns:
            other = readers.setdefault(column, name)
            if other != name and (moved is None or {name, other} & moved):
                raise DataRefused(
                    f"must not be read as {other!r} and as {name!r} if one of them is secret",
                    column=column,
                    fix="Keep one of the two, or make none of them secret.",
                )


def _pointer(raw: str, declared: frozenset[str], known: list[str], *, is_file: bool) -> str:
    """Return the sentence that helps to find a column; a file without a header has a person's values for names."""
    found = sum(name in known for name in declared)
    if not found:
        return "No declared column was found: is there a header?"
    if not is_file:
        return nearest(raw, sorted(known))
    match = get_close_matches(raw, sorted(known), n=1, cutoff=0.6) if 2 * found >= len(declared) else []
    if match:
        return f"Did you mean {match[0]!r}?"
    return known_columns(known, declared) or "Check the name in the header of the file."
