"""Noise and choice among a million items, and whole releases of `top_k` and `above`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import tacit as tc
from tacit.plan.choose import choose
from tacit.plan.plans.thresholds import AbovePlan
from tacit.plan.plans.top_k import BarPlan
from tacit.release.results.selections import select

ITEMS = 10**6
POLICY = tc.Policy(tc.Domain({"clicked": tc.Items(ITEMS)}), tc.secrets.values({"clicked": [1]}))


def best_of(runs: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def main(*, quick: bool = False) -> dict[str, float]:
    runs, found = 1 if quick else 5, {}
    counts = (3_000_000 / np.arange(1, ITEMS + 1)).astype(np.int64)[np.random.default_rng(0).permutation(ITEMS)]
    print(f"{ITEMS:,} items; milliseconds, best of {runs}")
    for k in (10, 100, 1000):
        plan = choose(tc.top_k("clicked", k), POLICY, "0.5")
        assert isinstance(plan, BarPlan)
        chosen = best_of(runs, lambda plan=plan: plan.draw_choice(counts))  # type: ignore[misc]
        whole = found[f"top {k}"] = best_of(runs, lambda plan=plan: select(plan, counts))  # type: ignore[misc]
        print(f"  top_k, k = {k:5,}: noise and choice {chosen:6.1f}   with measurement and estimates {whole:7.1f}")
    plan = choose(tc.above("clicked", 20_000, at_most=200), POLICY, "0.5")
    assert isinstance(plan, AbovePlan)
    found["above"] = best_of(runs, lambda: plan.draw_verdicts(counts))
    print(f"  above, at most 200: noise and tests {found['above']:6.1f}")
    return found


if __name__ == "__main__":
    main()
