"""Live: read new rows as they come, and publish how many rooms started by 9:00, as JSON lines.

    python examples/building/live.py days.csv --ledger live.db                 # what is there, then wait for more
    python examples/building/live.py days.csv --ledger live.db --once          # what is there, and end

Each line has the day, `value`, `lower` and `upper`: an estimate of how many rooms without a secret started by 9:00,
from the records that were shown. Coins are kept in the ledger: after a restart, or when a day is read again, the same
records are shown, and nothing more is learned or charged.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import tacit as tc

HERE = Path(__file__).parent
QUESTION = tc.true_records(["arrival"], key=["room", "day"], application="lighting")


def new_days(rows: Path, *, once: bool, wait: float) -> Iterator[pd.DataFrame]:
    """Yield the rows of each day that is complete: when a later day has begun, or at the end."""
    seen: set[str] = set()
    while True:
        table = pd.read_csv(rows)
        for day, own in table.groupby("day", sort=True):
            complete = once or day < table["day"].max()
            if complete and day not in seen:
                seen.add(str(day))
                yield own.reset_index(drop=True)
        if once:
            return
        time.sleep(wait)


def published(day: pd.DataFrame, policy: tc.Policy, ledger: Path, epsilon: float) -> dict[str, object]:
    """Release the day's arrivals, and estimate how many of them are by 9:00."""
    session = tc.Session(policy, day, budget=epsilon, ledger=str(ledger), dataset="building, live")
    record = session.release(QUESTION, epsilon=epsilon)
    found = record.estimate("arrival <= 540")
    return {"day": str(day["day"].iloc[0]), "value": found.value, "lower": found.lower, "upper": found.upper}


def main() -> None:
    parser = argparse.ArgumentParser(description="Publish estimates of new days as JSON lines.")
    parser.add_argument("rows", type=Path, help="a CSV that grows: room, day, arrival, leaving, ..")
    parser.add_argument("--ledger", type=Path, required=True, help="where charges and coins are kept")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--once", action="store_true", help="end when there are no more rows")
    parser.add_argument("--wait", type=float, default=5.0, help="seconds between two looks at the file")
    given = parser.parse_args()
    policy = tc.Policy.load(HERE / "policy.yaml")
    for day in new_days(given.rows, once=given.once, wait=given.wait):
        sys.stdout.write(json.dumps(published(day, policy, given.ledger, given.epsilon)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
