"""Rows, jobs, files and start-up: each number beside what it is compared with, from the same run, and its bound.

    python reproductions/benchmarks/bench_rows.py [--full] [PART ..]

Both sides are run in turns, and the best time of each counts: what else the machine does at the moment then hits both
alike. `--full` takes the sizes that the bounds speak of: 50, 20 and 100 million rows. Parts are frames, files, lists,
people, start, plans, large and memory; without one, all are run.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pandas as pd

from tacit.jobs.job_file import read_job
from tacit.plan.choose import choose
from tacit.plan.measure.measured import CellCounts, CellSums, Tally
from tacit.policy.attributes import Categories, Flag, Integers
from tacit.policy.domain import Domain
from tacit.policy.where import where
from tacit.report.job_folder import publish
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
DROPPED = DOMAINS["unexpected rows are dropped"]
CELLS = CellCounts(NAMES)
JOB: list[Tally] = [
    CELLS,
    *(CellCounts(pair) for pair in itertools.combinations(NAMES, 2)),
    *(CellCounts((name,)) for name in NAMES),
    CellCounts((), where("age < 65 and job in ['nurse', 'cook']")),
    CellCounts(("region",), where("member")),
    CellSums("hours"),
    CellSums("hours", ("job",)),
]
# what a process has in memory at most, in GB, of which the second number is there before anything is read
PEAK = """
from benchmarks.bench_rows import CELLS, DROPPED
from tacit.rows.rows import open_rows
def peak(): return next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line) / 2**20
before, person = peak(), {person}
open_rows({path!r}, DROPPED, **({{"person": "person"}} if person else {{}})).tally([CELLS])
print(f"{{peak():.2f}} {{before:.2f}}")
"""


def write_rows(path: Path, rows: int, people: int = 0) -> None:
    """Write made-up rows; two draws per column are folded so that the cells are far from equally full."""
    owner = f", floor(random() * {people})::BIGINT AS person, floor(random() * 3650)::INT AS day" if people else ""
    duckdb.sql(
        f"""COPY (SELECT 'region ' || lpad(floor(sqrt(random()) * 20)::INT::VARCHAR, 2, '0') AS region,
                         {JOBS}[1 + floor(random() * 7)::INT] AS job,
                         17 + floor((random() + random()) * 37)::INT AS age,
                         floor(random() * 25)::INT AS hours,
                         random() < 0.3 AS member {owner}
                  FROM range({rows})) TO '{path}' (FORMAT parquet)"""
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compared(
    name: str, baseline: str, plain: Callable[[], object], ours: Callable[[], object], *, at_most: float, turns: int = 3
) -> float:
    """Print the best times of both, in turns, with their ratio and its bound; return the ratio."""
    best_plain, best_tacit = np.array([[seconds(plain), seconds(ours)] for _ in range(turns)]).min(axis=0)
    ratio = float(best_tacit / best_plain)
    tell(name, f"{best_tacit:7.2f} s / {baseline} {best_plain:.2f} s", f"{ratio:.2f}", ratio, at_most)
    return ratio


def tell(name: str, measured: str, shown: str, number: float, at_most: float, unit: str = "") -> None:
    """Print one line: what, how it was measured, the number, its bound, and whether it keeps to it."""
    verdict = "" if number <= at_most else "   MISSED"
    print(f"{name:46s} {measured:52s} {shown:>7s}{unit}   at most {at_most:g}{unit}{verdict}", flush=True)


def fetched(query: str) -> Callable[[], object]:
    """Return a query on a connection of its own, as Tacit has, so that neither profits from the other's cache."""

    def fetch() -> object:
        with duckdb.connect() as connection:
            return connection.sql(query).to_arrow_table()

    return fetch


def of_files(folder: Path, rows: int) -> dict[str, float]:
    """A histogram of 518,000 cells, and a job of twenty releases, over Parquet rows."""
    path, columns, ratios = folder / "rows.parquet", ", ".join(NAMES), {}
    write_rows(path, rows)
    plain = fetched(f"SELECT {columns}, count(*) AS n FROM read_parquet('{path}') GROUP BY {columns}")
    for name, domain in DOMAINS.items():
        assert open_rows(path, domain).tally([CELLS])[0].sum() == rows
        ratios[name] = compared(
            f"518,000 cells, {name}",
            "DuckDB's group-by",
            plain,
            lambda: open_rows(path, domain).tally([CELLS]),  # noqa: B023
            at_most=0.6,
        )
    ratios["job"] = compared(
        f"a job of {len(JOB)} releases",
        "its costliest release",
        lambda: open_rows(path, DROPPED).tally(JOB[:1]),
        lambda: open_rows(path, DROPPED).tally(JOB),
        at_most=2,
    )
    return ratios


def of_lists(folder: Path, rows: int) -> dict[str, float]:
    """The counts of 1,000 predicates about four attributes, over Parquet rows."""
    path, about, luck = folder / "rows.parquet", ("region", "job", "age", "member"), np.random.default_rng(5)
    write_rows(path, rows)
    said = [
        f"age >= {low} and age <= {low + wide} and region in {luck.choice(REGIONS, 3).tolist()} "
        f"and job != '{luck.choice(JOBS)}'{' and member' * int(luck.random() < 0.5)}"
        for low, wide in luck.integers((17, 5), (60, 30), (1000, 2))
    ]
    tallies = [CellCounts((), where(one)) for one in said]
    table = [CellCounts(about)]
    return {
        "lists": compared(
            "1,000 predicates about four attributes",
            "one histogram of these",
            lambda: open_rows(path, DROPPED).tally(table),
            lambda: open_rows(path, DROPPED).tally(tallies),
            at_most=1.3,
            turns=6,
        )
    }


def of_frames(rows: int = 200_000) -> dict[str, float]:
    """All two-way tables of twelve columns of a pandas frame."""
    luck = np.random.default_rng(3)
    sizes = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20]
    frame = pd.DataFrame({f"a{place}": luck.integers(0, size, rows) for place, size in enumerate(sizes)})
    domain = Domain({f"a{place}": Integers(0, size - 1) for place, size in enumerate(sizes)})
    pairs = list(itertools.combinations(domain, 2))

    def plain() -> None:
        with duckdb.connect() as connection:
            connection.register("frame", frame)
            for one, other in pairs:
                connection.sql(f"SELECT {one}, {other}, count(*) FROM frame GROUP BY ALL").to_arrow_table()

    def ours() -> Any:
        return open_rows(frame, domain).tally([CellCounts(pair) for pair in pairs])

    name = f"{len(pairs)} two-way tables, {rows:,} pandas rows"
    return {"66 tables": compared(name, "66 DuckDB group-bys", plain, ours, at_most=0.2, turns=6)}


def of_people(folder: Path, rows: int) -> dict[str, float]:
    """The first five rows of each person."""
    path = folder / "people.parquet"
    write_rows(path, rows, people=rows // 5)
    ranked = (
        f"SELECT region, job, row_number() OVER (PARTITION BY person ORDER BY day) AS nth FROM read_parquet('{path}')"
    )
    plain = fetched(f"SELECT region, job, count(*) AS n FROM ({ranked}) WHERE nth <= 5 GROUP BY region, job")
    options: dict[str, Any] = {"person": "person", "per_person": 5, "order": "day"}

    def ours() -> Any:
        return open_rows(path, DROPPED, **options).tally([CellCounts(("region", "job"))])

    name = f"per_person=5 by order, {rows:,} rows"
    return {"people": compared(name, "DuckDB's window query", plain, ours, at_most=1.3, turns=2)}


def of_start() -> dict[str, float]:
    """A command that needs no rows, beside a Python that imports numpy."""

    def run(*command: str) -> Callable[[], object]:
        return lambda: subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own code

    numpy = run(sys.executable, "-c", "import numpy")
    tacit = run(sys.executable, "-m", "tacit_command", "--version")
    return {"start": compared("tacit --version", "import numpy", numpy, tacit, at_most=2.5, turns=5)}


def of_plans() -> dict[str, float]:
    """How often a plan is chosen while the demo job is planned."""
    from tacit.jobs.job_run import plan_job

    job = read_job(Path(str(resources.files("tacit") / "data" / "adult.job.yaml")))
    with patch("tacit.release.planner.choose", side_effect=choose) as counted:
        plan_job(job)
    name = f"planning {len(job.releases)} releases of the demo job"
    tell(name, "calls of `choose`", str(counted.call_count), counted.call_count, len(job.releases))
    return {"plans": counted.call_count}


def of_large(folder: Path, rows: int = 1_000_000) -> dict[str, float]:
    """A job with a histogram of ten million cells, and all of its files."""
    sizes = {"region": 50, "job": 20, "age": 100, "hours": 50, "member": 2}
    chosen = ", ".join(f"floor(random() * {size})::INT AS {name}" for name, size in sizes.items())
    duckdb.sql(f"COPY (SELECT {chosen} FROM range({rows})) TO '{folder / 'large.parquet'}' (FORMAT parquet)")
    domain = "".join(f"  {name}: {{integers: [0, {size - 1}]}}\n" for name, size in sizes.items())
    policy = f"policy:\n  name: large\n  domain:\n{textwrap.indent(domain, '  ')}  secrets: everything\n"
    release = f"releases:\n- {{name: it, query: {{histogram: [{', '.join(sizes)}]}}, epsilon: 1}}\n"
    (folder / "job.yaml").write_text(f"{policy}rows: large.parquet\nbudget: 1\n{release}")
    times = []
    for _ in range(3):
        times.append(seconds(lambda: publish(read_job(folder / "job.yaml"))))
        files = {file.name: file.stat().st_size for file in (folder / "job-release").iterdir()}
        shutil.rmtree(folder / "job-release")
    size = f"{sum(files.values()) / 1e6:.0f} MB in {len(files)} files"
    tell("histogram of 10,000,000 cells, a job", f"release and {size}", f"{min(times):.1f}", min(times), 5, " s")
    return {"large": min(times)}


def memory(folder: Path, rows: int) -> None:
    """Print the peak of a process of its own."""
    path = folder / "many.parquet"
    write_rows(path, rows, people=rows // 5)
    for person in (False, True):
        code = PEAK.format(path=str(path), person=person)
        root = Path(__file__).parent.parent
        done = subprocess.run(  # noqa: S603 - our own code
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
        )
        peak, before = done.stdout.split()
        said, bound = ("with", 1.5) if person else ("without", 0.5)
        name = f"peak memory, {rows:,} rows, {said} person"
        tell(name, f"of which {before} GB before reading", peak, float(peak), bound, " GB")


def main(parts: Sequence[str] = (), *, quick: bool = False, full: bool = False) -> dict[str, float]:
    """Print every number; return the ratios."""
    many = (50_000_000, 20_000_000, 100_000_000) if full else (5_000_000, 1_000_000, 5_000_000)
    files, people, rows = (size // 10 if quick else size for size in many)
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work: dict[str, Callable[[], dict[str, float] | None]] = {
            "frames": of_frames,
            "files": lambda: of_files(folder, files),
            "lists": lambda: of_lists(folder, 2 * files if not full else files // 5),
            "people": lambda: of_people(folder, people),
            "start": of_start,
            "plans": of_plans,
            "large": lambda: of_large(folder),
            "memory": lambda: memory(folder, rows),
        }
        for part in parts or work:
            ratios |= work[part]() or {}
            for file in folder.glob("*.parquet"):
                file.unlink()
    return ratios


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if word != "--full"], full="--full" in sys.argv)
