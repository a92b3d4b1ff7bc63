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
from tacit_reproductions.document_003.ordered import OrderedHierarchical, best_fan_out

sys.path.insert(0, str(Path(__file__).parent))
from opendp_tree import opendp_range_variance

VALUES: Final = 4357  # of capital losses in the Adult data, 0 to 4,356
THETAS: Final = (1, 10, 50, 100, 500, 1000, VALUES)
LONG: Final = 4_000_000
RANGES: Final = 10_000


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
            published = OrderedHierarchical(VALUES, theta, best_fan_out(VALUES, theta)).mean_square(epsilon)
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
