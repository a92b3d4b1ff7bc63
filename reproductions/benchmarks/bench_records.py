"""How long it takes to show true records, as ratios to copying the file in DuckDB, the engine that reads files.

    python reproductions/benchmarks/bench_records.py [ROWS]

The file has three columns: a key (a whole number, in order), a name of six and a number of a hundred. Copied by DuckDB;
by Arrow, batch by batch; and released to a file with a key, without one, and as whole records whose key is a secret.
Memory is the peak of each in a process of its own, above what it takes to begin. Time is that of the processors, and
beside it that of a clock, which others on the machine lengthen.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 5_000_000
GROUP = 2**20


def write(path: Path, rows: int) -> None:
    kinds = pa.array(["one", "two", "three", "four", "five", "six"])
    writer = None
    for start in range(0, rows, GROUP):
        many = min(GROUP, rows - start)
        number = np.arange(start, start + many)
        table = pa.table(
            {"id": number, "kind": kinds.take(pa.array(number * 7 % 6)), "score": (number * 31 % 100).astype(np.int16)}
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=GROUP)
    if writer is not None:
        writer.close()


def by_arrow(source: Path, target: Path) -> None:
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches(2**18):
            writer.write_batch(batch)


def by_duckdb(source: Path, target: Path) -> None:
    import duckdb

    duckdb.execute(f"COPY (FROM read_parquet('{source}')) TO '{target}' (FORMAT parquet)")


def released(source: Path, target: Path, *, keyed: bool, whole: bool = False) -> None:
    import tacit as tc

    domain = tc.Domain(
        {
            "id": tc.Integers(0, 10**9),
            "kind": tc.Categories(["one", "two", "three", "four", "five", "six"]),
            "score": tc.Integers(0, 99),
        }
    )
    secrets = tc.secrets.attributes("score", where="score < 20") | tc.secrets.attributes("kind", where="kind == 'six'")
    if whole:
        secrets = tc.secrets.records("score < 20")
    session = tc.Session(tc.Policy(domain, secrets), source, budget=5)
    columns = ["id", "kind", "score"] if keyed else ["kind", "score"]
    session.release(tc.true_records(columns, key="id" if keyed else None), epsilon=1).save(target.with_suffix(""))


WAYS: dict[str, Callable[[Path, Path], object]] = {
    "copied by DuckDB": by_duckdb,
    "copied by Arrow": by_arrow,
    "true records with a key": lambda source, target: released(source, target, keyed=True),
    "true records without a key": lambda source, target: released(source, target, keyed=False),
    "whole records with a key": lambda source, target: released(source, target, keyed=True, whole=True),
}


def one(way: str, source: Path, target: Path) -> None:
    """Print seconds of the processors and of a clock, and megabytes, of one way in a process of its own."""
    import duckdb  # noqa: F401 - before the clock starts, as everything else that takes long to load

    import tacit.release.session  # noqa: F401

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    busy, start = time.process_time(), time.perf_counter()
    WAYS[way](source, target)
    busy, seconds = time.process_time() - busy, time.perf_counter() - start
    print(f"{busy} {seconds} {(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}")


def main(rows: int = ROWS, *, quick: bool = False) -> dict[str, float]:
    rows, ratios = rows // 10 if quick else rows, {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "rows.parquet"
        write(source, rows)
        print(f"{rows:,} rows, {source.stat().st_size / 2**20:.0f} MB, {os.cpu_count()} processors")
        first: tuple[float, float] | None = None
        for way in WAYS:
            target = Path(folder) / f"{way.replace(' ', '-')}.parquet"
            made = subprocess.run(  # noqa: S603 - this file
                [sys.executable, __file__, "--one", way, str(source), str(target)],
                capture_output=True,
                text=True,
                check=True,
            )
            busy, seconds, memory = map(float, made.stdout.split())
            first = first or (busy, seconds)
            ratios[way] = busy / first[0]
            print(
                f"{way:28} {busy:7.2f} s of processors, {busy / first[0]:5.2f} times  {seconds:7.2f} s by the clock, "
                f"{seconds / first[1]:5.2f} times  {memory:6.0f} MB",
                flush=True,
            )
    return ratios


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        main(*map(int, sys.argv[1:2]))
