"""Files of rows by name, and the names of their columns: from a header or a schema, without an engine and a row.

A plan asks for them, and so does whoever opens the rows: both refuse the same files with the same words.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import errno
import glob
import gzip
import os
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tacit.errors import DataRefused, Unread, path_words, system_reason
from tacit.policy.yaml_entries import TABLE_NAMES
from tacit.rows.files.identity import each_once
from tacit.rows.files.kinds import is_csv, not_utf8, refuse_other_files, shown_path
from tacit.rows.guard import closed

Columns: TypeAlias = list[tuple[str, Any]]  # names and types
_LONGEST_HEADER: Final = 1 << 24
_DELIMITERS: Final = ",;\t|"
_LONGEST_PATH: Final = 4096


def column_names(paths: Sequence[str | Path]) -> list[str]:
    """Return the names of the columns of some files, from a header or a schema; no row is opened."""
    first = Path(next(iter(sorted(glob.glob(str(paths[0]), recursive=True))), paths[0]))
    if is_csv(first):
        return [name for name in csv_header(first)[1] if name]
    return [name for name, _ in parquet_columns(files_of(paths)[0])]


def files_of(paths: Sequence[str | Path]) -> tuple[list[Path], bool]:
    """Return the files that paths and patterns lead to, each once, and whether they are CSV; else Parquet."""
    found: list[Path] = []
    for path in paths:
        text = str(path)
        if is_file(path):
            found.append(Path(path))
            continue
        matches = [] if _is_no_path(text) else sorted(Path(match) for match in _matching(text) if is_file(match))
        if not matches:
            raise not_there(text)
        found.extend(matches)
    found = each_once(found)  # a person whose file is read twice would count twice
    kinds = {is_csv(path) for path in found}
    if len(kinds) > 1:
        raise DataRefused("files must all be CSV or all be Parquet", fix="Open them one kind at a time.")
    return found, kinds == {True}


def source_name(source: Any) -> str:
    """Return what tells a source from others wherever it is opened: where its files are. Nothing for a frame or query.

    A folder that has got another file is another source. What files hold is up to `rows/files/contents.py`.
    """
    found = source_files(source)
    return repr(found) if found else ""


def source_files(source: Any) -> list[str]:
    """Return where the files of a source are, in order; none for a frame. A link stands for what it leads to."""
    paths = source if isinstance(source, list | tuple) else [source]
    if not all(isinstance(path, str | Path) for path in paths):
        return []
    try:
        found, _ = files_of(paths)
    except DataRefused:
        found = list(map(Path, paths))  # whoever opens them is told why not
    return sorted({os.path.realpath(path) for path in found})


def is_file(path: str | Path) -> bool:
    """Say whether this is a file; no if it is no path at all."""
    try:
        return Path(path).is_file()
    except ValueError:
        return False
    except OSError as fault:
        if fault.errno not in (errno.EACCES, errno.EPERM, errno.EIO):  # a name that no file can have
            return False
        refusal = cannot_be_read(path, fault)
    raise refusal


def _is_no_path(text: str) -> bool:
    # PATH_MAX is in bytes, and a text of several lines is the rows themselves
    return not text or not text.isprintable() or len(os.fsencode(text)) > _LONGEST_PATH


def _matching(pattern: str) -> list[str]:
    try:
        return glob.glob(pattern, recursive=True)
    except (OSError, ValueError, re.error, RecursionError):
        return []


def not_there(text: str) -> DataRefused:
    """Return the refusal of a text that leads to no file; it is repeated only if it can be nothing but a path."""
    name = re.split(r"[/\\]", text)[-1].lower()
    if re.match(r"\s*(select|with|from)\s", text, re.IGNORECASE):
        return DataRefused(
            "rows given as a text must be the path of a file, not a query",
            fix="Give the result of the query: duckdb.sql('select ..'), or a frame.",
        )
    if _is_no_path(text) or not name.endswith(TABLE_NAMES) or re.search(r"[,;=|'\"<>]", text):
        return DataRefused(
            "rows given as a text must be the path of a file that exists, or a pattern such as data/*.parquet",
            fix="Write them to a file that ends in .csv or .parquet, or open a frame.",
        )
    is_pattern = glob.has_magic(text)
    return DataRefused(
        f"file {text!r} must exist" if not is_pattern else f"pattern {text!r} must match a file",
        fix="" if Path(text).is_absolute() else "Check the path; it is relative to the folder you started in.",
    )


def parquet_columns(paths: Sequence[Path]) -> Columns:
    """Return the columns of Parquet files, which must have the same: names, and types whatever may be missing."""
    first, *others = [_columns_of_one(path) for path in paths]
    for path, columns in zip(paths[1:], others, strict=True):
        if dict(columns) != dict(first) or len(columns) != len(first):
            raise DataRefused(
                f"file {str(path)!r} must have the same columns, of the same types, as {str(paths[0])!r}",
                fix="Write it again.",
            )
    return first


def _columns_of_one(path: Path) -> Columns:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def read() -> Columns:
        with pq.ParquetFile(path) as file:
            leaves: dict[str, list[tuple[str, str, int]]] = {}
            for place in range(len(file.schema)):
                leaf = file.schema.column(place)
                kind = (leaf.physical_type, str(leaf.logical_type), leaf.max_repetition_level)
                leaves.setdefault(leaf.path, []).append(kind)
            return [
                (name, [kind for path, kind in leaves.items() if path == name or path.startswith(f"{name}.")])
                for name in file.schema_arrow.names
            ]

    def told() -> Columns:
        try:
            return read()
        except OSError as fault:  # without a number it is Arrow's own, of bytes that are no Parquet
            raise broken if fault.errno is None else cannot_be_read(path, fault) from None

    broken = DataRefused(f"file {str(path)!r} must be readable as Parquet", fix="Write it again.")
    return closed(told, Unread(f"file {str(path)!r} could not be read"), {pa.ArrowInvalid: broken})


def cannot_be_read(path: str | Path, fault: OSError) -> DataRefused:
    """Return the refusal of a file that the system does not let us read, with the system's reason."""
    rule = f"file {path_words(path)!r} could not be read ({system_reason(fault)})"
    return DataRefused(rule, fix="Ask for permission, or check the disk.")


def csv_header(path: Path) -> tuple[str, list[str]]:
    """Return the delimiter of a CSV file and the cells of its first line, or refuse what is no CSV."""
    refuse_other_files(path)
    packed = path.name.lower().endswith(".gz")
    opened = gzip.open if packed else open
    raw = b""
    refusal = DataRefused(f"file {shown_path(path)} must be packed with gzip, to its end", fix="Write it again.")
    try:
        with opened(path, "rb") as lines:
            raw = lines.readline(_LONGEST_HEADER + 1)
    except (EOFError, zlib.error):
        raise refusal from None
    except OSError as fault:
        raise refusal if fault.errno is None else cannot_be_read(path, fault) from None
    if len(raw) > _LONGEST_HEADER:
        rule = f"file {shown_path(path)} must begin with a line of column names of at most {_LONGEST_HEADER >> 20} MB"
        raise DataRefused(rule, fix="Leave columns out.")
    raw = raw.partition(b"\r")[0].rstrip(b"\n")
    first = None
    with contextlib.suppress(UnicodeDecodeError):
        first = raw.removeprefix(codecs.BOM_UTF8).decode()
    if first is None:  # raised where no handler is active: its exception holds the line
        raise not_utf8(path)
    names: list[str] | None = None
    delimiter = max(_DELIMITERS, key=_outside_quotes(first).count)
    with contextlib.suppress(StopIteration, csv.Error):
        names = next(csv.reader([first], delimiter=delimiter))
    if not names or not any(names):
        raise DataRefused(f"file {str(path)!r} must begin with a line of column names", fix="Add the header.")
    return delimiter, names


def refuse_one_name_twice(names: Sequence[str]) -> None:
    """Refuse a first line that calls two columns the same; it is not said how."""
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise DataRefused("a column name is there twice", fix="Is there a header? Rename the second one.")


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])
