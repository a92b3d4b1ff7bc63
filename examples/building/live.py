"""Live: read new rows as they come, and publish how many rooms started by 9:00, as JSON lines.

    python examples/building/live.py examples/building/days.csv                # what is there, then wait for more
    python examples/building/live.py examples/building/days.csv --once         # what is there, and end

Each line has the day, `value`, `lower` and `upper`: an estimate of how many rooms without a secret started by 9:00,
from the records that were shown. Epsilon, ledger, data set and limits are those of `case.yaml`. Coins are kept in the
ledger: after a restart, when a day is read again, or when `tacit run` makes the releases of the case, the same records
are shown, and nothing more is learned or charged.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

import tacit as tc
from tacit.jobs.job_file import Job, read_job_or_case
from tacit.jobs.job_run import session_of

HERE = Path(__file__).parent
ASKING = "lighting"


def job_of(rows: Path, ledger: Path | None, dataset: str | None = None) -> Job:
    """Return the job of the case, about rows that grow; a file of another name is another data set."""
    job = read_job_or_case(HERE / "case.yaml")
    if dataset is None:
        dataset = job.dataset if rows.name in {Path(one).name for one in job.rows} else rows.stem
    job = replace(job, rows=(str(rows),), dataset=dataset)
    return job if ledger is None else replace(job, ledger=str(ledger))


def new_days(rows: Path, *, once: bool, wait: float) -> Iterator[str]:
    """Yield each day that is complete: when a later day has begun, or at the end."""
    seen: set[str] = set()
    while True:
        days = sorted(pd.read_csv(rows, usecols=["day"])["day"].unique())
        for day in days if once else days[:-1]:
            if day not in seen:
                seen.add(day)
                yield day
        if once:
            return
        time.sleep(wait)


def published(day: str, job: Job) -> dict[str, object]:
    """Release the day's arrivals, at the epsilon of the case, and estimate how many of them are by 9:00."""
    (epsilon,) = (one.epsilon for one in job.releases if one.query.application == ASKING)
    question = tc.true_records("arrival", key=["room", "day"], application=ASKING, where=f"day == '{day}'")
    found = session_of(job).release(question, epsilon=epsilon).estimate("arrival <= 540")
    return {"day": day, "value": found.value, "lower": found.lower, "upper": found.upper}


def main() -> None:
    parser = argparse.ArgumentParser(description="Publish estimates of new days as JSON lines.")
    parser.add_argument("rows", type=Path, help="a CSV that grows: room, day, arrival, leaving, ..")
    parser.add_argument("--ledger", type=Path, help="another ledger than that of the case, for other rows")
    parser.add_argument("--dataset", help="its name in the ledger; by default the case's, or that of another file")
    parser.add_argument("--once", action="store_true", help="end when there are no more rows")
    parser.add_argument("--wait", type=float, default=5.0, help="seconds between two looks at the file")
    given = parser.parse_args()
    try:
        job = job_of(given.rows, given.ledger, given.dataset)
        for day in new_days(given.rows, once=given.once, wait=given.wait):
            sys.stdout.write(json.dumps(published(day, job)) + "\n")
            sys.stdout.flush()
    except (tc.TacitError, FileNotFoundError) as refused:
        sys.exit(f"Refused: {refused}")
    except ValueError:  # of the one column that is read here
        sys.exit(f"Refused: {given.rows} must be a CSV with the column day.")


if __name__ == "__main__":
    main()
