"""One number of each person is counted alike on every engine: as its definition says, of rows in any order."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from engines import ENGINES, SPARK, in_engine
from tacit.plan.choose import choose
from tacit.release.estimate.measure import count_once
from tacit.release.session import open_for

DOMAIN = tc.Domain(
    {"ward": tc.Categories(["A", "B"]), "stay": tc.Integers(3, 9, step=2), "dose": tc.Decimals(0, 2, step=0.5)}
)
POLICY = tc.Policy(DOMAIN, tc.secrets.taking_part(), person="patient", per_person=4)
QUERIES = [
    tc.histogram(each="rows"),
    tc.histogram(each="rows", where="ward == 'A'"),
    tc.histogram("stay", each="sum", at_most=20, step=5),
    tc.histogram("dose", each="mean", step=0.25),
    tc.histogram("stay", each="max", where="dose > 0.5"),
    tc.mean("dose", each="sum"),
    tc.quantiles("stay", [0.25, 0.5], each="mean", step=0.1),
]


def visits() -> list[tuple[int, str, int, float]]:
    """Up to four visits of 30 patients, which do not stand together, and one whose stay does not fit."""
    rng = np.random.default_rng(7)
    rows = [
        (patient, str(rng.choice(["A", "B"])), int(rng.choice([3, 5, 7, 9])), float(rng.choice([0, 0.5, 1, 2])))
        for patient in range(30)
        for _ in range(rng.integers(1, 5))
    ]
    order = rng.permutation(len(rows))
    return [*(rows[at] for at in order), (99, "A", 4, 0.5)]


def defined(query: Any, rows: list[tuple[int, str, int, float]]) -> dict[Fraction, int]:
    """How many people have each number, by the definition."""
    number, found = query.each, dict[int, list[Fraction]]()
    for patient, ward, stay, dose in rows:
        picked = {"None": True, "ward == 'A'": ward == "A", "dose > 0.5": dose > 0.5}[str(number.where)]
        if picked and stay != 4:
            found.setdefault(patient, []).append(Fraction(dose if number.attribute == "dose" else stay))
    made: dict[str, Any] = {"rows": len, "sum": sum, "max": max, "mean": lambda cells: sum(cells) / len(cells)}
    step = number.step or {"rows": Fraction(1), "dose": Fraction(1, 2)}.get(number.attribute or "rows", Fraction(1))
    counts: dict[Fraction, int] = {}
    for cells in found.values():
        one = min(Fraction(made[number.each](cells)), number.at_most or Fraction(99))
        rounded = (one / step + Fraction(1, 2)).__floor__() * step
        counts[rounded] = counts.get(rounded, 0) + 1
    return counts


@pytest.mark.one_in(8)
@pytest.mark.parametrize("engine", [*ENGINES, SPARK])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_numbers_of_people_are_counted_as_defined(query, engine, tmp_path, request):
    rows = visits()
    columns = zip(("patient", "ward", "stay", "dose"), zip(*rows, strict=True), strict=True)
    source = in_engine(engine, pa.table({name: pa.array(cells) for name, cells in columns}), tmp_path, request)
    plan = choose(query, POLICY, 1)
    _, (found,) = count_once([(tc.histogram(query.each.name), plan.policy)], open_for(POLICY, source))
    values = [Fraction(str(value)) for value in plan.policy.domain[query.each.name].every_value()]
    assert {value: count for value, count in zip(values, found.tolist(), strict=True) if count} == defined(query, rows)
    _, bases = count_once([(part.base, plan.policy) for part in plan.parts], open_for(POLICY, source))
    if query.keyword == "mean":
        by_hand = sum(value * count for value, count in defined(query, rows).items())
        assert bases[0][0] * plan.parts[0].base.unit(plan.policy.domain) == by_hand
