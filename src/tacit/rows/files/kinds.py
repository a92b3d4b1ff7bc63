"""What a file of rows must be, said in one true sentence for each thing that it can be instead.

Guarantee   Nothing is fetched, and no sentence of `refuse_other_files` or `not_well_formed` quotes a cell or says in
            which line it stands. `broken_line` says the number of a line and how many fields it has, and nothing else
            of it: that is for whoever holds the file (`tacit init`, `tacit check --rows`), never for a release.
Assumes     A file does not change while it is looked at.
Why         "Must be well-formed CSV" is true of an Excel workbook and helps nobody. Names, the first bytes and the
            encoding say what a file is without a look at its rows.
Checked by  tests/unit/rows/test_file_kinds.py.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tacit.errors import DataRefused
from tacit.policy.yaml_entries import CSV_NAMES, TABLE_NAMES

_ENDINGS: Final = "must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet"
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PIECE: Final = 1 << 20
_LONGEST_SHOWN: Final = 200  # letters of a path that a sentence repeats

_SHEET: Final = "Save the sheet as CSV, in Excel as `CSV UTF-8`."
_AS_TABLE: Final = "Open it with pandas, polars or DuckDB, and write it as .parquet or .csv."
_BY_NAME: Final = (
    ((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "is a workbook, not a table", _SHEET),
    ((".json", ".jsonl", ".ndjson", ".geojson"), "is JSON, not CSV or Parquet", _AS_TABLE),
    ((".yaml", ".yml"), "is YAML, not a table", "Name the file with the rows."),
    ((".feather", ".arrow", ".ipc", ".orc", ".avro"), "is no CSV or Parquet", _AS_TABLE),
    ((".sav", ".dta", ".sas7bdat", ".rds", ".rdata"), "is a file of a statistics program", _AS_TABLE),
    ((".db", ".sqlite", ".sqlite3", ".duckdb"), "is a database, not a table", "Export the table as .parquet or .csv."),
    ((".zip", ".7z", ".tar", ".tgz", ".bz2", ".xz", ".zst"), "is an archive, not a table", "Unpack it first."),
)
_BY_FIRST_BYTES: Final = (
    (b"PK\x03\x04", "is a workbook or an archive, whatever it is called", _SHEET),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook, whatever it is called", _SHEET),
    (b"PAR1", "is Parquet, whatever it is called", "Rename it to .parquet."),
    (b"\x1f\x8b", "is packed with gzip", "Rename it to .csv.gz."),
    (b"SQLite format 3", "is a database, whatever it is called", "Export the table as .parquet or .csv."),
    (codecs.BOM_UTF16_LE, "is UTF-16, not UTF-8", "Save it as UTF-8."),
    (codecs.BOM_UTF16_BE, "is UTF-16, not UTF-8", "Save it as UTF-8."),
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


def refuse_other_files(path: Path) -> None:
    """Refuse a file that is called a CSV file and is something else, by its first bytes."""
    first = b""
    with contextlib.suppress(OSError, EOFError, zlib.error), _opened(path) as stream:
        first = stream.read(4096)
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
        fix="Write it again with a CSV library (in Excel: `CSV UTF-8`); `tacit init` says what is wrong and where.",
    )


def not_utf8(path: Path) -> DataRefused:
    """Return the refusal of a text in another encoding."""
    return DataRefused(
        f"file {shown_path(path)} must be UTF-8; its letters are in another encoding, such as Latin-1",
        fix="Save it as UTF-8 (in Excel: `CSV UTF-8`), or open it with pandas and its encoding.",
    )


def broken_line(path: Path, delimiter: str, fields: int) -> DataRefused | None:
    """Say in which line a CSV file first has another number of fields than its header, or that it is no UTF-8.

    For whoever holds the file: a line number is no part of any message about a release. It is not found where only the
    kind of line end changes.
    """
    if not _is_utf8(path):
        return not_utf8(path)
    at = 1
    wrong = ""
    with contextlib.suppress(OSError, EOFError, UnicodeDecodeError, zlib.error), _opened(path) as stream:
        lines = (line.decode("utf-8-sig") for line in stream)
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


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in _pieces(path):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except (OSError, EOFError, zlib.error):
        return True  # something else is wrong with it
    return True


def _pieces(path: Path) -> Iterator[bytes]:
    with _opened(path) as stream:
        while piece := stream.read(_PIECE):
            yield piece
