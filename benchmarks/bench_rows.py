"""Counting Parquet rows through Tacit against DuckDB's own GROUP BY on the same file.

    python benchmarks/bench_rows.py [--quick]

Both are run in turns, each three times, and the best time of each counts: what else the machine does at the moment
then hits both alike.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

from tacit.policy.attributes import Categories, Flag, Integers
from tacit.policy.domain import Domain
from tacit.policy.where import where
from tacit.rows.rows import open_rows

REGIONS = [f"region {number:02d}" for number in range(20)]
JOBS = ["farmer", "nurse", "clerk", "driver", "teacher", "cook", "other"]
NAMES = ("region", "job", "age", "hours", "member")
# 20 x 7 x 74 x 25 x 2 = 518,000 cells, nearly all of them filled
DOMAINS = {
    "unexpected rows are dropped": Domain(
        {
            "region": Categories(REGIONS),
            "job": Categories(JOBS),
            "age": Integers(17, 90),
            "hours": Integers(0, 24),
            "member": Flag(),
        }
    ),
    "unexpected values go to `otherwise`": Domain(
        {
            "region": Categories(REGIONS, otherwise=REGIONS[0]),
            "job": Categories(JOBS, otherwise="other"),
            "age": Integers(17, 90, otherwise=17),
            "hours": Integers(0, 24, otherwise="clip"),
            "member": Flag(otherwise=False),
        }
    ),
}


def write_rows(path: Path, rows: int) -> None:
    """Write made-up rows; two draws per column are folded so that the cells are far from equally full."""
    duckdb.sql(
        f"""COPY (SELECT 'region ' || lpad(floor(sqrt(random()) * 20)::INT::VARCHAR, 2, '0') AS region,
                         {JOBS}[1 + floor(random() * 7)::INT] AS job,
                         17 + floor((random() + random()) * 37)::INT AS age,
                         floor(random() * 25)::INT AS hours,
                         random() < 0.3 AS member
                  FROM range({rows})) TO '{path}' (FORMAT parquet)"""
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(rows: int = 50_000_000, *, quick: bool = False) -> dict[str, float]:
    """Print seconds and ratios; return the ratios."""
    rows = min(rows, 2_000_000) if quick else rows
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, rows)
        columns = ", ".join(NAMES)

        def plain() -> object:
            # a connection of its own, as Tacit has, so that neither profits from the other's cached metadata
            with duckdb.connect() as connection:
                query = f"SELECT {columns}, count(*) AS n FROM read_parquet('{path}') GROUP BY {columns}"
                return connection.sql(query).to_arrow_table()

        def counted(domain: Domain, condition: str | None = None) -> Callable[[], object]:
            test = None if condition is None else where(condition).compile(domain)
            return lambda: open_rows(path, domain).counts(NAMES, test)

        print(f"{rows:,} rows, {plain().num_rows:,} groups")  # type: ignore[attr-defined]
        for name, domain in DOMAINS.items():
            assert open_rows(path, domain).counts(NAMES).sum() == rows
            times = np.array([[seconds(plain), seconds(counted(domain))] for _ in range(3)])
            best_plain, best_tacit = times.min(axis=0)
            ratios[name] = best_tacit / best_plain
            print(f"{name:38s} DuckDB {best_plain:6.2f} s   Tacit {best_tacit:6.2f} s   ratio {ratios[name]:.2f}")
        domain = DOMAINS["unexpected rows are dropped"]
        restricted = seconds(counted(domain, "age < 65 and job in ['nurse', 'cook']"))
        print(f"{'with `where`':38s} {'':15s}  Tacit {restricted:6.2f} s")
    return ratios


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
