"""Draws per second of exact discrete Laplace noise, beside OpenDP's (exact) and numpy's (not exact), in one run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from tacit import noise

SCALES = (0.5, 1.0, 10.0, 100.0, 1000.0, 1e6, 1e12)


def draws_per_second(draw: Callable[[], object], draws: int, *, repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        best = min(best, time.perf_counter() - start)
    return draws / best


def opendp_speed(scale: float, draws: int) -> float:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=draws), dp.l1_distance(T="i64")
    measurement, zeros = dp.m.make_laplace(*space, scale=scale), [0] * draws
    return draws_per_second(lambda: measurement(zeros), draws, repeats=1)


def measure(scale: float, *, quick: bool) -> dict[str, float]:
    """Return draws per second of each sampler, at a million and ten million draws."""
    million, many, repeats = (10**5, 10**6, 2) if quick else (10**6, 10**7, 3)
    generator = np.random.default_rng()
    start = time.perf_counter()
    noise.discrete_laplace(scale, 1)
    first_draw = time.perf_counter() - start
    return {
        "first_draw_ms": 1000 * first_draw,
        "tacit_1e6": draws_per_second(lambda: noise.discrete_laplace(scale, million), million, repeats=repeats),
        "tacit_1e7": draws_per_second(lambda: noise.discrete_laplace(scale, many), many, repeats=repeats),
        "numpy_1e7": draws_per_second(lambda: generator.laplace(0.0, scale, many), many, repeats=repeats),
        # OpenDP draws one by one: its speed does not depend on the number of draws.
        "opendp": opendp_speed(scale, 2_000 if quick else 50_000),
    }


def main(quick: bool = False) -> list[dict[str, float]]:  # noqa: FBT001 - every benchmark is called as main(quick)
    """Print the table; `quick` takes a tenth of the draws."""
    noise.discrete_laplace(2, 1000)  # imports and first keys are not part of any row
    titles = ("scale", "Tacit 1e6", "Tacit 1e7", "numpy 1e7", "OpenDP", "x OpenDP", "x numpy", "first draw")
    print(" ".join(f"{title:>10}" for title in titles))
    rows = []
    for scale in SCALES:
        row = {"scale": scale, **measure(scale, quick=quick)}
        row["over_opendp"] = row["tacit_1e6"] / row["opendp"]
        row["over_numpy"] = row["tacit_1e7"] / row["numpy_1e7"]
        rows.append(row)
        names = ("scale", "tacit_1e6", "tacit_1e7", "numpy_1e7", "opendp", "over_opendp", "over_numpy", "first_draw_ms")
        print(" ".join(f"{row[name]:>10.3g}" for name in names), "ms")
    print("draws per second, one core, best of the repeats; numpy's Laplace is a rounded float and not exact")
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    main(quick=parser.parse_args().quick)
