"""How the names of files of rows end: one list, for those who read such files and for those who refuse them."""

from __future__ import annotations

from typing import Final

CSV_NAMES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_NAMES: Final = (".parquet", ".pq")
TABLE_NAMES: Final = (*CSV_NAMES, *PARQUET_NAMES)  # that Tacit reads
NAMES_WITH_ROWS: Final = (*TABLE_NAMES, ".xlsx", ".jsonl")  # that hold rows, so nothing of them may be quoted
