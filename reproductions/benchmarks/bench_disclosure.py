"""Disclosure audits: closeness probabilities per second, and all two-way marginals of many people.

The baseline of the first is the exponential function of numpy on as many numbers, since that is what closeness is made
of (three for each); of the second a plain group-by of the same columns by pandas.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

import tacit as tc

GOALS = {"closeness_per_second": 10_000_000, "audit_seconds": 2.0}


def best(work: Callable[[], Any], runs: int = 5) -> float:
    """Return the least processor time of some runs: others may use the machine meanwhile."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def closeness_rate(size: int) -> dict[str, float]:
    """Return closeness probabilities per second on one core, and the share of that in the speed of three exp."""
    rng = np.random.default_rng(0)
    phi = rng.integers(1, 5_000, size).astype(np.float64)
    theta = np.floor(phi * rng.random(size)) + 1.0
    theta = np.minimum(theta, phi)
    ours = best(lambda: tc.audit.closeness(theta, phi, 48.0, 0.2))
    small = phi[: 1 << 14] / -5_000
    plain = best(lambda: [np.exp(small) for _ in range(3 * (size >> 14))])
    return {"closeness_per_second": size / ours, "of_three_exp": plain / ours}


def people(rows: int) -> pd.DataFrame:
    """Return made-up people with six public attributes and fifty occupations."""
    rng = np.random.default_rng(1)
    sizes = {"gender": 2, "education": 14, "marital": 6, "race": 9, "work": 7, "country": 69, "occupation": 50}
    return pd.DataFrame(
        {name: np.array([f"{name} {place}" for place in range(size)])[rng.integers(0, size, rows)]
         for name, size in sizes.items()}
    )  # fmt: skip


def audit_seconds(rows: int) -> dict[str, float]:
    """Return how long the audit of all two-way marginals takes, and the same in group-bys."""
    frame = people(rows)
    public = [str(name) for name in frame if name != "occupation"]

    def audited() -> Any:
        return tc.audit.disclosure(frame, public=public, sensitive="occupation", scale=48.0).frame

    def grouped() -> Any:
        return [frame.groupby([*pair, "occupation"]).size() for pair in combinations(public, 2)]

    audited()
    ours, plain = best(audited, 3), best(grouped, 1)
    return {"rows": rows, "audit_seconds": ours, "of_group_bys": ours / plain}


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measure and print; return the numbers."""
    found: dict[str, Any] = {
        **closeness_rate(1 << (20 if quick else 23)),
        **audit_seconds(100_000 if quick else 500_000),
    }
    print(f"closeness: {found['closeness_per_second'] / 1e6:.1f} million a second on one core", end=" ")
    print(f"({found['of_three_exp']:.2f} of the speed of three exp; goal: 10 million)")
    print(f"audit of 15 two-way marginals, 50 values, {found['rows']:,} rows: {found['audit_seconds']:.2f} s", end=" ")
    print(f"({found['of_group_bys']:.2f} of 15 group-bys by pandas; goal: below 2 s)")
    return {**found, "goals": GOALS}


if __name__ == "__main__":
    main()
