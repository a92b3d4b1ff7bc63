"""Ranges on lines: error beside the repaired published mechanism and OpenDP's tree; speed on four million values."""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

import tacit as tc

sys.path.insert(0, str(Path(__file__).parent))
from opendp_tree import opendp_range_variance

VALUES: Final = 4357  # of capital losses in the Adult data, 0 to 4,356
THETAS: Final = (1, 10, 50, 100, 500, 1000, VALUES)
FAN_OUTS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
LONG: Final = 4_000_000
RANGES: Final = 10_000


def published_error(values: int, theta: int, fan_out: int) -> float:
    """Return the mean squared error of a range at epsilon 1: the ordered hierarchical mechanism, repaired, as it is.

    Counts at the ends of blocks of theta values, a tree in each block without its root, shares by equation 14. A node
    that c of the values + 1 running counts use is in the differences of c (values + 1 - c) pairs of them.
    """
    height, width = 0, min(theta, values)
    while width > 1:
        width, height = -(-width // fan_out), height + 1
    ordered = (4 * (values - min(theta, values)) / (values + 1)) ** (1 / 3)
    trees = (8 * (fan_out - 1) * height**3 * values / (values + 1)) ** (1 / 3)
    total = 0.0
    for start in range(0, values, theta):
        end = min(start + theta, values)
        if end < values:  # the counts up to the next end use this one
            uses = min(theta, values - end)
            total += 2 * ((ordered + trees) / ordered) ** 2 * uses * (values + 1 - uses)
        nodes = [(start, end)]
        while nodes:
            low, high = nodes.pop()
            part = -(-(high - low) // fan_out)
            parts = [(at, min(at + part, high)) for at in range(low, high, part)] if high - low > 1 else []
            for _, last in parts:
                uses = high - last  # the running counts behind it that end within its parent
                total += 2 * (2 * height * (ordered + trees) / trees) ** 2 * uses * (values + 1 - uses)
            nodes += [node for node in parts if node[1] - node[0] > 1]
    return total / (values * (values + 1) / 2)


def policy_for(theta: int) -> tc.Policy:
    """Return the policy under which losses up to theta apart look alike."""
    domain = tc.Domain({"loss": tc.Integers(0, VALUES - 1)})
    secrets = tc.secrets.everything() if theta >= VALUES else tc.secrets.within(theta, "loss")
    return tc.Policy(domain, secrets, known=[tc.known.size()])


def measured(record: Any, truth: npt.NDArray[np.int64], low: Any, high: Any) -> float:
    """Return the mean squared error of a release over ranges."""
    below = np.append(0, np.cumsum(truth))
    return float(np.mean((record.range(low, high) - (below[np.array(high) + 1] - below[np.array(low)])) ** 2))


def errors(*, quick: bool) -> dict[str, float]:
    """Print expected and measured errors on the losses of the Adult data."""
    people = pd.DataFrame({"loss": adult_losses()})
    truth = np.bincount(people["loss"], minlength=VALUES)
    ends = np.sort(np.random.default_rng(1).integers(0, VALUES, (RANGES, 2)), axis=1)
    low, high = ends[:, 0].tolist(), ends[:, 1].tolist()
    repeats = 2 if quick else 50
    found: dict[str, float] = {}
    print(f"mean squared error of a range, {VALUES:,} values; measured over {RANGES:,} ranges, {repeats} releases")
    print("epsilon  theta  published  expected  measured  ratio  isotonic  chosen")
    for epsilon in (Fraction(1), Fraction(1, 10)):
        for theta in (10, 100) if quick else THETAS:
            published = min(published_error(VALUES, theta, fan_out) for fan_out in FAN_OUTS) / float(epsilon) ** 2
            session = tc.Session(policy_for(theta), people, budget=1000)
            plain, rising = (
                session.plan(tc.ranges("loss", "all"), epsilon, consistent=consistent) for consistent in (False, True)
            )
            plainly, fitted = (
                float(np.mean([measured(session.release(plan), truth, low, high) for _ in range(repeats)]))
                for plan in (plain, rising)
            )
            found[f"over_published_{theta}_{float(epsilon):g}"] = plain.mse / published
            found[f"isotonic_{theta}_{float(epsilon):g}"] = fitted
            shown = "all" if theta >= VALUES else str(theta)
            print(
                f"{float(epsilon):7g}  {shown:>5}  {published:9.0f}  {plain.mse:8.1f}  {plainly:8.1f}"
                f"  {plain.mse / published:5.2f}  {fitted:8.1f}  {plain.strategy}"
            )
    theirs = opendp_range_variance(VALUES, 1.0, releases=5 if quick else 200)
    ours = tc.explain(tc.ranges("loss", "all"), policy_for(VALUES), 1).expected_mse
    found["over_opendp"] = ours / theirs
    print(f"plain differential privacy, epsilon 1: {ours:.0f}, OpenDP's tree {theirs:.0f}, ratio {ours / theirs:.2f}")
    return found


def adult_losses() -> npt.NDArray[np.int64]:
    """Return the capital losses of the Adult data that come with the package, or made-up ones like them."""
    frame = pd.read_parquet(Path(tc.__file__).parent / "data" / "adult.parquet")
    return frame["capital_loss"].to_numpy(dtype=np.int64)


def timed(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(*given), time.perf_counter() - start


def speeds(*, quick: bool) -> dict[str, float]:
    """Print how long plans and releases on a long line take."""
    values = LONG // 10 if quick else LONG
    domain = tc.Domain({"x": tc.Integers(0, values - 1)})
    people = pd.DataFrame({"x": np.random.default_rng(2).integers(0, values, 1_000_000)})
    found: dict[str, float] = {}
    for name, secrets in (("within 1,000", tc.secrets.within(1000, "x")), ("everything", tc.secrets.everything())):
        session = tc.Session(tc.Policy(domain, secrets), people, budget=10)
        plan, planning = timed(session.plan, tc.ranges("x", "all"), "1/2")
        record, releasing = timed(session.release, plan)
        again, predicting = timed(lambda given: tc.explain(given).expected_mse, plan)
        ends, reading = timed(record.interval, 0.95, 5, values // 2)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{values:,} values, {name}: plan {planning:.2f} s, release {releasing:.2f} s,"
            f" prediction {predicting:.3f} s, a range with its interval {reading:.3f} s, at most {memory:.2f} GB;"
            f" expected error {math.sqrt(again):.1f},"
            f" interval {ends[1] - ends[0]:.0f} wide; {plan.strategy}"
        )
        found |= {f"{name}_seconds": planning + releasing, f"{name}_prediction": predicting, f"{name}_gb": memory}
    return found


def main(*, quick: bool = False) -> dict[str, float]:
    """Print errors and speeds; `quick` takes fewer releases and a shorter line."""
    return {**speeds(quick=quick), **errors(quick=quick)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    main(quick=parser.parse_args().quick)
