"""Published tables: perturbation beside the engine's plain group-by, the exact criterion, errors beside a floor.

    python reproductions/benchmarks/bench_tables.py [--quick] [--rows N]

The group-by is DuckDB's, over the same Parquet file and columns, with as many threads; both are run in turns, and the
least time of each counts: that of the clock, and that of all processors, which others on the machine hardly change. A
table by counts is made of groups; by rows, it also lists every perturbed record. The floor is the error of normal masks
that hide each count, with nothing else added.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import tacit as tc
from tacit import noise
from tacit.audit.reconstruction_audit import audit_groups
from tacit.publish.groups import PersonalGroups, as_columns
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.sampled import Sampled
from tacit_reproductions.document_004.reconstruction import groups_of
from tacit_reproductions.document_004.tables import adult_table
from tacit_reproductions.document_004.workload import floor_ratios, workload

ROWS = 50_000_000
VALUES = [f"job {number:02d}" for number in range(46)]
THIRD = Fraction(3, 10)
DECLARED = tc.Domain(
    {
        "region": tc.Categories([f"region {number}" for number in range(21)]),
        "education": tc.Integers(0, 16),
        "sex": tc.Categories(["f", "m"]),
        "job": tc.Categories(VALUES),
    }
)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return how long something takes: by the clock, and on all processors together."""
    clock, processors = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processors


def write_rows(path: Path, rows: int) -> None:
    """Write made-up people: three public columns and a sensitive one."""
    duckdb.sql("SELECT setseed(0.5)")
    duckdb.sql(
        f"COPY (SELECT 'region ' || (random() * 20)::INT AS region, (random() * 16)::INT AS education, "
        f"CASE WHEN random() < 0.5 THEN 'f' ELSE 'm' END AS sex, "
        f"'job ' || lpad((floor(46 * random() * random()))::INT::VARCHAR, 2, '0') AS job FROM range({rows})) "
        f"TO '{path}' (FORMAT parquet)"
    )


def perturbation(rows: int) -> dict[str, float]:
    """Print how long a perturbed table takes beside a group-by."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_rows(path, rows)
        asked: dict[str, Any] = {
            "public": ["region", "education", "sex"],
            "sensitive": "job",
            "values": VALUES,
            "retention": 0.5,
        }
        query = f"SELECT region, education, sex, job, count(*) FROM '{path}' GROUP BY ALL"
        session = tc.Session(tc.Policy(DECLARED, tc.secrets.attributes("job")), str(path), budget=100)
        declared = {**asked, "values": None}
        ways: dict[str, Callable[[], Any]] = {
            "plain group-by": lambda: duckdb.execute(query).fetchall(),
            "by counts": lambda: tc.publish.perturbed(str(path), **asked),
            "of a session, whose domain is declared": lambda: tc.publish.perturbed(session, **declared),
            "by rows": lambda: tc.publish.perturbed(str(path), **asked).rows,
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(3):
            for name, work in ways.items():
                times[name].append(timed(work))
    least = {name: tuple(min(column) for column in zip(*each, strict=True)) for name, each in times.items()}
    plain = least.pop("plain group-by")
    print(f"{rows:,} rows, plain group-by: {plain[0]:.2f} s, {plain[1]:.2f} s on all processors")
    found = {"group_by_seconds": plain[0], "group_by_processor_seconds": plain[1]}
    for name, key in zip(least, ("perturbed", "session", "records"), strict=True):
        ratios = [ours / theirs for ours, theirs in zip(least[name], plain, strict=True)]
        print(f"  perturbed {name}: {least[name][0]:.2f} s, {ratios[0]:.2f} times; {ratios[1]:.2f} on all processors")
        found |= {f"{key}_over_group_by": ratios[0], f"{key}_over_group_by_on_processors": ratios[1]}
    return found


def criterion(groups: int) -> dict[str, float]:
    """Print how long the exact criterion takes for many groups."""
    draw = np.random.default_rng(1)
    found = {}
    for most in (60, 5000):
        sizes = draw.integers(1, most, groups)
        counts = np.rint(draw.dirichlet(np.full(50, 0.5), groups) * sizes[:, None]).astype(np.int64)
        made = PersonalGroups(as_columns([], "x", list(range(50))), (), np.zeros((groups, 0), np.int64), counts, dict)
        for tails in ("each", "together"):
            asked = Criterion(THIRD, THIRD, "exact", tails)
            seconds, _ = timed(partial(audit_groups, made, Channel(Fraction(1, 2), 50), asked))
            print(
                f"exact criterion, {groups:,} groups x 50 values, sizes below {most:,}, tails {tails}: {seconds:.2f} s"
            )
            found[f"criterion_{most}_{tails}"] = seconds
    return found


def errors(*, quick: bool) -> dict[str, float]:
    """Print errors of queries on the Adult data."""
    channel, asked = Channel(Fraction(1, 2), 2), Criterion(THIRD, THIRD)
    found = {}
    with noise.replayed(noise.Keystream(key=b"t" * 32)):
        groups = groups_of(adult_table())
        queries = workload(groups, 200 if quick else 2000)
        for method in (Masked(channel, asked), Sampled(channel, asked, Fraction(1))):
            uniform, least = floor_ratios(method, groups, queries, 20 if quick else 200)
            print(
                f"Adult, {method.name}: {uniform:.2f} times uniform perturbation's error, {least:.2f} times the floor"
            )
            found[f"adult_{method.name}_over_floor"] = least
    return found


def main(*, quick: bool = False, rows: int | None = None) -> dict[str, float]:
    """Print speeds and errors; `quick` takes fewer rows and groups."""
    many = rows or (2_000_000 if quick else ROWS)
    return {**perturbation(many), **criterion(10_000 if quick else 100_000), **errors(quick=quick)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", type=int)
    given = parser.parse_args()
    main(quick=given.quick, rows=given.rows)
