"""Files of rows: what they must be, which files a path leads to, and the names of their columns; no row is opened.

Guarantee   Nothing is fetched, and no sentence of `refuse_other_files` or `not_well_formed` quotes a cell or says in
            which line it stands. `broken_line` says the number of a line and how many fields it has, and nothing else
            of it: that is for whoever holds the file (`tacit init`, `tacit check --rows`), never for a release.
Assumes     A file does not change while it is looked at.
Why         "Must be well-formed CSV" is true of an Excel workbook and helps nobody. Names, the first bytes and the
            encoding say what a file is without a look at its rows. A plan asks for the names of columns, and so does
            whoever opens the rows: both refuse the same files with the same words.
Checked by  tests/unit/rows/test_file_kinds.py.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import errno
import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tacit.errors import DataRefused, Exit, Unread, path_words, system_reason
from tacit.policy.yaml_entries import CSV_NAMES, TABLE_NAMES
from tacit.rows.files.identity import each_once
from tacit.rows.files.written import UTF_8, written
from tacit.rows.guard import closed

_ENDINGS: Final = "must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet"
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PIECE: Final = 1 << 20
_LONGEST_SHOWN: Final = 200  # letters of a path that a sentence repeats

_SHEET: Final = "Save the sheet as CSV, in Excel as `CSV UTF-8`; `tacit init` copies one of .xlsx into a CSV file."
_EXPORT: Final = "Export the table as .parquet or .csv; `tacit init` copies one into a CSV file."
_AS_TABLE: Final = "Open it with pandas, polars or DuckDB, and write it as .parquet or .csv."
_BY_NAME: Final = (
    ((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "is a workbook, not a table", _SHEET),
    ((".json", ".jsonl", ".ndjson", ".geojson"), "is JSON, not CSV or Parquet", _AS_TABLE),
    ((".yaml", ".yml"), "is YAML, not a table", "Name the file with the rows."),
    ((".feather", ".arrow", ".ipc", ".orc", ".avro"), "is no CSV or Parquet", _AS_TABLE),
    ((".sav", ".dta", ".sas7bdat", ".rds", ".rdata"), "is a file of a statistics program", _AS_TABLE),
    ((".db", ".sqlite", ".sqlite3", ".duckdb"), "is a database, not a table", _EXPORT),
    ((".zip", ".7z", ".tar", ".tgz", ".bz2", ".xz", ".zst"), "is an archive, not a table", "Unpack it first."),
)
_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BY_FIRST_BYTES: Final = (
    (b"PK\x03\x04", "is a workbook or an archive, whatever it is called", _SHEET),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook, whatever it is called", _SHEET),
    (b"PAR1", "is Parquet, whatever it is called", "Rename it to .parquet."),
    (b"\x1f\x8b", "is packed with gzip", "Rename it to .csv.gz."),
    (b"SQLite format 3", "is a database, whatever it is called", _EXPORT),
    *((mark, "is UTF-16, not UTF-8", "Say so: `encoding: utf-16`.") for mark in _MARKS),
)


def shown_path(path: str | Path) -> str:
    """Return a path as a sentence may repeat it: in quotes, and never longer than a few lines."""
    text = str(path)
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..")


def refuse_no_file(path: str | Path) -> None:
    """Refuse an address or a folder; whether a file exists is not asked here."""
    text = str(path)
    if _ADDRESS.match(text):
        raise DataRefused(
            f"{shown_path(text)} must be a file on this computer; nothing is fetched",
            fix="Download it first, or open it with pandas, polars or DuckDB and give the frame.",
        )
    if _is(text, "is_dir"):
        raise DataRefused(
            f"{shown_path(text)} is a folder",
            fix="Name the files in it, for instance with a pattern: 'folder/*.csv'.",
        )


def is_csv(path: Path) -> bool:
    """Say by its name whether a file is CSV; refuse it if it is called neither CSV nor Parquet."""
    name = path.name.lower()
    if not name.endswith(TABLE_NAMES):
        raise other_file(path)
    return name.endswith(CSV_NAMES)


def other_file(path: Path) -> DataRefused:
    """Return the refusal of a file that is called neither CSV nor Parquet, by what its name says that it is."""
    name = path.name.lower()
    for endings, rule, fix in _BY_NAME:
        if name.endswith(endings):
            return DataRefused(f"file {shown_path(path)} {rule}", fix=fix)
    return DataRefused(
        f"file {shown_path(path)} {_ENDINGS}", fix="Rename it if it is one, or open it with pandas or polars first."
    )


def refuse_other_files(path: Path, encoding: str = UTF_8) -> None:
    """Refuse a file that is called a CSV file and is something else, by its first bytes."""
    first = b""
    with contextlib.suppress(OSError, EOFError, zlib.error), _opened(path) as stream:
        first = stream.read(4096)
    if encoding == "utf-16":
        if first and not first.startswith(_MARKS):
            rule = f"file {shown_path(path)} must begin with a byte order mark, which says how UTF-16 is to be read"
            raise DataRefused(rule, fix="Say another encoding, or save it as UTF-8.")
        first = first[: len(first) // 2 * 2].decode(encoding, "replace").encode()
    for start, rule, fix in _BY_FIRST_BYTES:
        if first.startswith(start):
            raise DataRefused(f"file {shown_path(path)} {rule}", fix=fix)
    if b"\0" in first.partition(b"\n")[0]:  # of the first line alone: below it, a cell may hold what it likes
        raise DataRefused(f"file {shown_path(path)} is no text", fix=f"It {_ENDINGS} and be such a file. {_AS_TABLE}")
    text = first.removeprefix(codecs.BOM_UTF8).lstrip()
    if text[:1] == b"{" or re.match(rb"\[\s*[\[{]", text):
        raise DataRefused(f"file {shown_path(path)} looks like JSON, whatever it is called", fix=_AS_TABLE)
    if re.match(rb"(?i)<(!doctype|html|\?xml)", text):
        raise DataRefused(f"file {shown_path(path)} looks like HTML or XML, whatever it is called", fix=_AS_TABLE)


def not_well_formed(path: Path) -> DataRefused:
    """Return the one refusal of a CSV file that cannot be read to its end, whatever is wrong with which row."""
    return DataRefused(
        f"file {shown_path(path)} must be well-formed CSV in UTF-8: as many fields in every line as in the header, "
        "quotes closed, one kind of line end",
        fix="If its letters are in another encoding, say `encoding: cp1252`. Else write it again with a CSV library; "
        "`tacit init` says what is wrong and where.",
    )


def not_utf8(path: Path) -> DataRefused:
    """Return the refusal of a text in another encoding."""
    return DataRefused(
        f"file {shown_path(path)} must be UTF-8; its letters are in another encoding",
        fix="Say which, for instance `encoding: cp1252` (Windows) or `encoding: latin-1`, or save it as UTF-8.",
    )


def not_in_encoding(path: Path, encoding: str) -> DataRefused:
    """Return the refusal of a file that is no text of the encoding that was declared."""
    return DataRefused(
        f"file {shown_path(path)} must be a text in {encoding}, and is none", fix="Say another encoding."
    )


def text_of_file(path: Path, encoding: str) -> io.TextIOWrapper:
    """Return a CSV file as text, packed or not; line ends are as they are written."""
    return io.TextIOWrapper(_opened(path), encoding=encoding, newline="")


def broken_line(path: Path, delimiter: str, fields: int, encoding: str = UTF_8) -> DataRefused | None:
    """Say in which line a CSV file first has another number of fields than its header, or that it is no UTF-8.

    For whoever holds the file: a line number is no part of any message about a release. It is not found where only the
    kind of line end changes.
    """
    if encoding == UTF_8 and not is_encoded(path, UTF_8):
        return not_utf8(path)
    at = 1
    wrong = ""
    with (
        contextlib.suppress(OSError, EOFError, UnicodeError, zlib.error),
        text_of_file(path, "utf-8-sig" if encoding == UTF_8 else encoding) as lines,
    ):
        records = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            for record in records:
                if record and len(record) != fields:
                    wrong = f"line {at:,} has {_fields(len(record))}, the header has {fields:,}"
                    break
                at = records.line_num + 1
        except csv.Error:
            wrong = f"line {at:,} has a quote that is not closed, or text after a closing quote"
    if not wrong:
        return None
    return DataRefused(
        f"file {shown_path(path)} must have as many fields in every line as in the header, and quotes closed; {wrong}",
        fix="Mend it, or write the file again with a CSV library.",
    )


def _fields(count: int) -> str:
    return f"{count:,} field" if count == 1 else f"{count:,} fields"


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")


def _is(text: str, what: str) -> bool:
    try:
        return bool(getattr(Path(text), what)())
    except (OSError, ValueError):  # a name that no file can have
        return False


def encoding_of(path: Path) -> str:
    """Return an encoding in which a CSV file can be read: that of its first mark, UTF-8, of Windows or Latin-1."""
    if not path.name.lower().endswith(CSV_NAMES) or not is_file(path):
        return UTF_8
    first = b""
    with contextlib.suppress(OSError, EOFError, zlib.error), _opened(path) as stream:
        first = stream.read(2)
    if first.startswith(_MARKS):
        return "utf-16"
    return next((one for one in (UTF_8, "cp1252") if is_encoded(path, one)), "latin-1")


def is_encoded(path: Path, encoding: str) -> bool:
    """Say whether a whole file is a text in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in _pieces(path):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    except (OSError, EOFError, zlib.error):
        return True  # something else is wrong with it
    return True


def _pieces(path: Path) -> Iterator[bytes]:
    with _opened(path) as stream:
        while piece := stream.read(_PIECE):
            yield piece


Kinds: TypeAlias = list[list[tuple[str, str, int]]]  # of the parts of a column: physical, logical, whether a list
Columns: TypeAlias = list[tuple[str, Kinds]]  # names and types
_NOT_READ: Final = re.compile(r"JSON|Decimal\(precision=(39|[4-9]\d),")
_LONGEST_HEADER: Final = 1 << 24
_DELIMITERS: Final = ",;\t|"
_LONGEST_PATH: Final = 4096


def column_names(source: Any, used: Iterable[str]) -> list[str]:
    """Return the names of the columns of some files, from headers or schemas, or refuse files that differ in `used`.

    No row is opened.
    """
    told = written(source)
    found, are_csv = files_of(told.rows)
    columns = {
        path: csv_columns(csv_header(path, told.encoding)[1]) if are_csv else parquet_columns(path) for path in found
    }
    check_columns(used, columns)
    return [name for name, _ in together(columns) if name]


def check_columns(used: Iterable[str], columns: Mapping[Path, Columns]) -> None:
    """Refuse files of which one lacks a column that is used, or has it in a type that is not read cell by cell.

    Files may differ in columns that nobody uses, in the order of columns, and in how wide whole numbers are. DuckDB
    rounds decimals of more than 38 digits, which makes one person of two, and ends at a cell that is no JSON.
    """
    for path, found in columns.items():
        for name, kinds in found:
            if name in used and any(_NOT_READ.match(logical) for leaves in kinds for _, logical, _ in leaves):
                raise DataRefused(
                    f"file {shown_path(path)} has the column {name!r} in a type that cannot be counted here: "
                    f"{_type_words(kinds)}",
                    fix="Write texts, or decimals of at most 38 digits.",
                )
    (first, known), *others = ((path, dict(listed)) for path, listed in columns.items())
    for path, listed in others:
        for name in sorted(used):
            if (name in known) != (name in listed):
                there, lacking = (first, path) if name in known else (path, first)
                raise DataRefused(
                    f"files must all have the column {name!r}: {shown_path(there)} has it, and {shown_path(lacking)} "
                    "has not",
                    fix="Write the second one again, or leave it out.",
                )
            if name in known and _meaning(known[name]) != _meaning(listed[name]):
                one, other = _type_words(known[name]), _type_words(listed[name])
                raise DataRefused(
                    f"files must have the column {name!r} in one type: it is {one} in {shown_path(first)}, and "
                    f"{other} in {shown_path(path)}",
                    fix="Write one of them again.",
                )


def together(columns: Mapping[Path, Columns]) -> Columns:
    """Return the columns of several files together; one that a file has twice is there twice."""
    found: Columns = []
    for listed in columns.values():
        for place, (name, kinds) in enumerate(listed):
            if sum(known == name for known, _ in found) <= sum(known == name for known, _ in listed[:place]):
                found.append((name, kinds))
    return found


def csv_columns(header: Sequence[str]) -> Columns:
    """Return the columns of a CSV file: every one is text."""
    return [(name, [[("text", "None", 0)]]) for name in header]


def _meaning(kinds: Kinds) -> list[tuple[str, str, int]]:
    """Return types such that equal ones mean the same: how wide a whole number is says nothing of what it is."""
    return [("whole number", "", leaf[2]) if _is_whole(*leaf[:2]) else leaf for leaves in kinds for leaf in leaves]


def _is_whole(physical: str, logical: str) -> bool:
    """Say whether a type holds whole numbers that all fit into 64 bits with a sign."""
    is_plain = logical == "None" or (logical.startswith("Int(") and "bitWidth=64, isSigned=false" not in logical)
    return physical in ("INT32", "INT64") and is_plain


def _type_words(kinds: Kinds) -> str:
    words = [
        f"{'a list of ' * bool(repeated)}{physical if logical == 'None' else logical}"
        for leaves in kinds
        for physical, logical, repeated in leaves
    ]
    return words[0] if len(words) == 1 else f"a structure of {', '.join(words)}"


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

    A folder that has got another file is another source. What files hold is up to `rows/files/identity.py`.
    """
    found = source_files(source)
    return repr(found) if found else ""


def source_files(source: Any) -> list[str]:
    """Return where the files of a source are, in order; none for a frame. A link stands for what it leads to."""
    source = written(source).rows
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
        exit_code=Exit.UNREACHABLE,
    )


def parquet_columns(path: Path) -> Columns:
    """Return the columns of a Parquet file: names, and types whatever may be missing."""
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
    return DataRefused(rule, fix="Ask for permission, or check the disk.", exit_code=Exit.UNREACHABLE)


def csv_header(path: Path, encoding: str = UTF_8) -> tuple[str, list[str]]:
    """Return the delimiter of a CSV file and the cells of its first line, or refuse what is no CSV."""
    refuse_other_files(path, encoding)
    raw: bytes | None = b""
    refusal = DataRefused(f"file {shown_path(path)} must be packed with gzip, to its end", fix="Write it again.")
    try:
        if encoding == UTF_8:
            with _opened(path) as lines:
                raw = lines.readline(_LONGEST_HEADER + 1)
        else:
            raw = None
            with contextlib.suppress(UnicodeError), text_of_file(path, encoding) as text:
                raw = text.readline(_LONGEST_HEADER + 1).encode()
    except (EOFError, zlib.error):
        raise refusal from None
    except OSError as fault:
        raise refusal if fault.errno is None else cannot_be_read(path, fault) from None
    if raw is None:
        raise not_in_encoding(path, encoding)
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
