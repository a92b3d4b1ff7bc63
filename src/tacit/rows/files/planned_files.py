"""Which files a plan of DuckDB or polars reads by the place of their columns.

A CSV that is written again, its columns in another order, may be read by place: the public column of yesterday is the
secret one of today. So such files are found and looked at (`identity.py`). An engine's plan says that a file is
scanned, but not always which; then its query says it, and the views that this one names. Where neither does (a macro, a
variable, a computed path, an address on the network, several files of one scan in polars), the source is refused when
it is opened. Parquet and Arrow files hold their names and are read by these.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import duckdb

from tacit.errors import DataRefused
from tacit.rows.files.identity import files_named_in

_BY_PLACE: Final = re.compile(r"read[_ ](?!parquet)", re.IGNORECASE)
_SCAN: Final = re.compile(r"^\W*(\w+) SCAN \[(.*)\]$", re.MULTILINE)
_BY_NAME: Final = ("parquet", "ipc", "python")  # of a function in Python nobody knows what it reads
_NO_FILES: Final = ("range", "generate_series", "unnest")
_READS_FILES: Final = re.compile(r"(read_\w+|\w+_scan)\Z")


def hidden() -> DataRefused:
    """Return the refusal of a plan that reads files by place without saying which."""
    return DataRefused(
        "rows must come from files that can be looked at again, and this plan does not say which CSV or JSON it reads",
        fix="Give the paths themselves, or read it first: a table in DuckDB, collect() in polars.",
    )


# ---------------------------------------------------------------------- DuckDB


def files_of_relation(relation: Any) -> list[str]:
    """Return the files that a relation reads, as far as columns may be read by place; looks at no row."""
    text = None
    with contextlib.suppress(Exception):  # not every relation has a text
        text = relation.sql_query()
    if not _BY_PLACE.search(_plan(relation)):
        return [] if text is None else files_named_in(text)
    if text is None:
        raise hidden()
    return sorted(set(_PlannedReads(relation).files(text)))


def reads_arrow(relation: Any) -> bool:
    """Say whether the plan of a relation reads data of Arrow's; looks at no row."""
    return "ARROW_SCAN" in _plan(relation)


def _plan(relation: Any) -> str:
    try:
        return str(relation.explain(format="json"))  # the default is shown, not returned, in a notebook
    except TypeError:
        return str(relation.explain())


class _PlannedReads:
    """What a query reads, by its syntax and by what the catalog says about the names in it."""

    def __init__(self, relation: Any) -> None:
        # a limit of no rows, so that nothing is read
        ((_, views, tables, macros),) = (
            relation.limit(0)
            .aggregate(
                "count(*), (SELECT list([view_name, sql]) FROM duckdb_views() WHERE NOT internal), "
                "(SELECT list(table_name) FROM duckdb_tables()), "
                "(SELECT list(function_name) FROM duckdb_functions() WHERE function_type LIKE '%macro' "
                "AND NOT internal)"
            )
            .fetchall()
        )
        self._views: dict[str, list[str]] = {}
        for name, text in views or ():
            self._views.setdefault(name.casefold(), []).append(text)
        self._tables = {name.casefold() for name in tables or ()}
        self._macros = {name.casefold() for name in macros or ()}
        self._connection = duckdb.connect(":memory:")
        self._seen: set[str] = set()

    def files(self, text: str) -> Iterator[str]:
        """Yield the files of a query, or refuse it."""
        if text in self._seen:
            return
        self._seen.add(text)
        tree = self._tree(text)
        if tree is None:
            raise hidden()
        yield from files_named_in(text)
        shared = {
            str(entry["key"]).casefold() for entry in _nodes(tree, lambda node: "key" in node and "value" in node)
        }
        for node in _nodes(tree, lambda node: "function_name" in node):
            if str(node["function_name"]).casefold() in self._macros:
                raise hidden()
        for node in _nodes(tree, lambda node: node.get("type") == "TABLE_FUNCTION"):
            yield from self._of_function(node["function"])
        for node in _nodes(tree, lambda node: node.get("type") == "BASE_TABLE"):
            name = str(node["table_name"])
            if name.casefold() in self._views:
                for view in self._views[name.casefold()]:
                    yield from self.files(_body(view, self._tree))
            elif name.casefold() not in shared | self._tables:
                yield from _matches(name)

    def _of_function(self, function: dict[str, Any]) -> Iterator[str]:
        name = str(function["function_name"]).casefold()
        if name in _NO_FILES:
            return
        given = function.get("arguments", function.get("children")) or [{}]
        texts = list(_constants(given[0].get("expression", given[0])))
        if not _READS_FILES.match(name) or not texts:
            raise hidden()
        for text in texts:
            yield from _matches(text)

    def _tree(self, text: str) -> Any:
        with contextlib.suppress(duckdb.Error):
            ((found,),) = self._connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
            tree = json.loads(found)
            return None if tree.get("error") else tree
        return None


def _body(view: str, parsed: Callable[[str], Any]) -> str:
    """Return the query of a view: what follows the first AS that a query follows."""
    for found in re.finditer(r"\bAS\b", view, re.IGNORECASE):
        body = view[found.end() :].strip().removesuffix(";")
        if parsed(body) is not None:
            return body
    raise hidden()


def _nodes(tree: Any, wanted: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if wanted(node):
                yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _constants(expression: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a constant or of a list of constants; nothing if it is anything else."""
    if expression.get("class") == "CONSTANT":
        held = expression.get("literal") or expression.get("value") or {}
        text = held.get("text", held.get("value"))
        if isinstance(text, str):
            yield text
    elif expression.get("function_name") == "list_value":
        parts = expression.get("arguments", expression.get("children")) or ()
        found = [list(_constants(part.get("expression", part))) for part in parts]
        if all(found):
            yield from (text for texts in found for text in texts)


def _matches(text: str) -> list[str]:
    """Return the files that a path or a pattern stands for, or refuse one that stands for none that we can see."""
    found = [text] if os.path.isfile(text) else [one for one in glob.glob(text, recursive=True) if os.path.isfile(one)]
    if not found:
        raise hidden()
    return found


# ---------------------------------------------------------------------- polars


def files_of_plan(lazy: Any) -> list[str]:
    """Return the files that a lazy frame of polars may read by place; looks at no row."""
    found = []
    for kind, source in _SCAN.findall(lazy.explain(optimized=False)):
        if kind.casefold() in _BY_NAME:
            continue
        if not os.path.isfile(source):  # several files, which the plan does not list, or none of this machine
            raise hidden()
        found.append(source)
    return sorted(found)
