"""Bayesian networks against another implementation, and sparse tables that no dense one could hold."""

import itertools
import math
import time
import warnings
from typing import Any

import numpy as np
import pytest

import tacit as tc
from tacit.dependence.suppression import mutual_information, suppression

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its compiled types have no module, which Python calls deprecated
    import pyagrum


def random_network(number: int) -> dict[str, Any]:
    """Return conditional tables of a few attributes, with arrows from earlier to later ones, in a shuffled order."""
    rng = np.random.default_rng([21, number])
    count = int(rng.integers(3, 9))
    sizes = rng.integers(2, 4, count).tolist()
    tables: dict[str, Any] = {}
    for place in range(count):
        above = [one for one in range(place) if rng.random() < 0.45][-3:]
        cases = itertools.product(*(range(sizes[one]) for one in above))
        rows = {case: dict(enumerate(rng.dirichlet(np.ones(sizes[place])).tolist())) for case in cases}
        tables[f"n{place}"] = {"given": [f"n{one}" for one in above], "table": rows} if above else rows[()]
    names = list(tables)
    rng.shuffle(names)
    return {name: tables[name] for name in names}


def as_pyagrum(tables: dict[str, Any]) -> Any:
    network = pyagrum.BayesNet()
    parents = {name: table.get("given", []) for name, table in tables.items()}
    cases = {name: table["table"] if "given" in table else {(): table} for name, table in tables.items()}
    for name in tables:
        network.add(pyagrum.LabelizedVariable(name, "", len(next(iter(cases[name].values())))))
    for name, above in parents.items():
        for parent in above:
            network.addArc(parent, name)
    for name, rows in cases.items():
        for case, row in rows.items():
            table = network.cpt(name)
            table[dict(zip(parents[name], case, strict=True))] = list(row.values())
    return network


@pytest.mark.parametrize("start", range(0, 100, 25))
def test_posteriors_are_those_of_another_implementation(start: int) -> None:
    for number in range(start, start + 25):
        check_network(number)


def check_network(number: int) -> None:
    tables = random_network(number)
    names = list(tables)
    rng = np.random.default_rng([22, number])
    dep = tc.Dependence.from_network(tables)
    sensitive = {name: [0] for name in names}
    epsilon = {name: float(rng.uniform(0.1, 3)) for name in names}
    suppressed = {name: int(rng.integers(1, 4)) for name in names if rng.random() < 0.4}
    released = {name: 1 for name in names if name not in suppressed and rng.random() < 0.2}
    evidence: dict[str, Any] = dict(released)
    for name, times in suppressed.items():
        weight = math.exp(-times * epsilon[name])
        evidence[name] = [1.0 if value == 0 else weight for value in sorted(dep.values[name])]
    other = pyagrum.LazyPropagation(as_pyagrum(tables))
    other.setEvidence(evidence)
    target = names[int(rng.integers(len(names)))]
    mine = suppression(dep, sensitive, epsilon).posterior([target], suppressed=suppressed, released=released)
    by_value = dict(zip(dep.values[target], mine, strict=True))
    np.testing.assert_allclose(
        [by_value[value] for value in sorted(by_value)], other.posterior(target).tolist(), atol=1e-10
    )


def test_a_network_and_its_table_are_the_same_distribution() -> None:
    for number in range(5):
        dep = tc.Dependence.from_network(random_network(number))
        table = tc.Dependence.from_table(dep.marginal(*dep.names), dep.names, values=dep.values)
        assert dep.total_variation(table) == pytest.approx(0, abs=1e-14)
        assert dep != table  # given in another way


def test_thirty_attributes_in_a_row() -> None:
    rows = {value: dict(enumerate(np.roll([0.8, 0.15, 0.05], value).tolist())) for value in range(3)}
    tables: dict[str, Any] = {"n0": {0: 0.5, 1: 0.3, 2: 0.2}}
    tables |= {f"n{at}": {"given": [f"n{at - 1}"], "table": rows} for at in range(1, 30)}
    dep = tc.Dependence.from_network(tables)
    seen = suppression(dep, {name: [0] for name in dep.names}, dict.fromkeys(dep.names, 1.0))
    found = seen.posterior(["n15"], suppressed={f"n{at}": 2 for at in range(30) if at != 15})
    # forward and backward along the row
    step = np.array([list(row.values()) for row in rows.values()])
    weight = np.array([1.0, math.exp(-2), math.exp(-2)])
    forward = np.array([0.5, 0.3, 0.2])
    for _ in range(15):
        forward = (forward * weight) @ step
    backward = np.ones(3)
    for _ in range(14):
        backward = step @ (weight * backward)
    np.testing.assert_allclose(found, forward * backward / (forward @ backward), atol=1e-12)


def test_thirty_attributes_in_a_sparse_table() -> None:
    rng = np.random.default_rng(23)
    cells = {tuple(row): float(rng.random()) for row in rng.integers(0, 12, (400, 30)).tolist()}
    total = math.fsum(cells.values())
    names = [f"a{place}" for place in range(30)]
    dep = tc.Dependence.from_table({cell: chance / total for cell, chance in cells.items()}, names)
    seen = suppression(dep, {name: [0, 1, 2] for name in names}, dict.fromkeys(names, 0.3))
    found = seen.posterior(["a7"], suppressed={name: 1 for name in names if name != "a7"})
    slow = np.zeros(12)
    for cell, chance in cells.items():
        open_ones = sum(value > 2 for place, value in enumerate(cell) if place != 7)
        slow[cell[7]] += chance * math.exp(-0.3 * open_ones)
    by_value = dict(zip(dep.values["a7"], found, strict=True))
    np.testing.assert_allclose([by_value.get(value, 0.0) for value in range(12)], slow / slow.sum(), atol=1e-12)
    assert dep.marginal("a3", "a29").sum() == pytest.approx(1, abs=1e-12)
    # more combinations than a number of 62 bits could tell apart
    turned = tc.Dependence.from_table(
        {cell: chance / total for cell, chance in reversed(cells.items())}, names, values=dep.values
    )
    assert turned == dep
    assert turned.total_variation(dep) == pytest.approx(0, abs=1e-14)
    several = dep.weighed({}, range(25))
    assert several.cells == len({cell[:25] for cell in cells})


def test_twenty_attributes_in_a_full_table_take_less_than_a_second() -> None:
    rng = np.random.default_rng(24)
    names = [f"a{place}" for place in range(20)]
    joint = rng.random((2,) * 20)
    joint /= joint.sum()
    dep = tc.Dependence.from_table(joint, names, values=dict.fromkeys(names, (0, 1)))
    seen = suppression(dep, {name: [0] for name in names}, dict.fromkeys(names, 0.7))
    start = time.process_time()
    found = seen.posterior(["a3"], suppressed=dict.fromkeys(names[4:], 2), released={"a0": 1})
    assert time.process_time() - start < 1
    slow = joint.copy()
    for axis in range(4, 20):
        slow *= np.array([1.0, math.exp(-1.4)]).reshape([2 if one == axis else 1 for one in range(20)])
    slow = slow[1].sum(axis=tuple(axis for axis in range(19) if axis != 2))
    np.testing.assert_allclose(found, slow / slow.sum(), atol=1e-12)


def test_what_grows_too_large_is_refused() -> None:
    names = [f"a{place}" for place in range(30)]
    dep = tc.Dependence.from_network({name: {0: 0.5, 1: 0.5} for name in names})
    seen = suppression(dep, {name: [0] for name in names}, dict.fromkeys(names, 1.0))
    with pytest.raises(tc.PlanError, match="4,194,304 is the most"):
        dep.marginal(*names)
    with pytest.raises(tc.PlanError, match="4,194,304 is the most"):
        mutual_information(seen, "a0", names)
    assert mutual_information(seen, "a0", names[1:15]) == pytest.approx(0, abs=1e-12)
