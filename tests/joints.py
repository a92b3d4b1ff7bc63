"""Joint distributions for tests, and what follows from them by going through every world."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tacit as tc

World = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A joint by its worlds, the sensitive values and the epsilons of its attributes."""

    worlds: dict[World, float]
    names: tuple[str, ...]
    sensitive: dict[str, list[Any]]
    epsilon: dict[str, float]

    @property
    def dependence(self) -> tc.Dependence:
        return tc.Dependence.from_table(self.worlds, names=self.names)

    def is_hidden(self, name: str, value: Any) -> bool:
        return value in self.sensitive.get(name, ())


def random_case(rng: np.random.Generator, *, most: int = 4, sizes: Iterable[int] = (2, 3, 4)) -> Case:
    """Return a joint of a few attributes with several values, some cells impossible."""
    count = int(rng.integers(2, most + 1))
    sides = rng.choice(list(sizes), count).tolist()
    worlds = list(itertools.product(*(range(side) for side in sides)))
    chances = rng.dirichlet(np.full(len(worlds), 0.7)) * (rng.random(len(worlds)) < 0.8)
    chances[int(rng.integers(len(worlds)))] += 0.1
    names = tuple(f"a{place}" for place in range(count))
    sensitive = {
        name: [value for value in range(side) if rng.random() < 0.5] or [0]
        for name, side in zip(names, sides, strict=True)
    }
    epsilon = {name: float(rng.uniform(0.05, 3)) for name in names}
    return Case(
        {world: float(one) for world, one in zip(worlds, chances / chances.sum(), strict=True)},
        names,
        sensitive,
        epsilon,
    )


def a_network(lines: int, *, seed: int) -> tuple[list[str], tc.Dependence]:
    """Return attributes of two values, each of which depends on one of the five before it."""
    rng = np.random.default_rng(seed)
    names = [f"a{number}" for number in range(lines)]
    tables: dict[str, Any] = {names[0]: {"s": 0.4, "t": 0.6}}
    for number in range(1, lines):
        above = names[int(rng.integers(max(0, number - 5), number))]
        rows = {value: dict(zip("st", map(float, rng.dirichlet(np.ones(2))), strict=True)) for value in "st"}
        tables[names[number]] = {"given": [above], "table": rows}
    return names, tc.Dependence.from_network(tables)


def weights(case: Case, suppressed: Mapping[str, int], released: Mapping[str, Any]) -> dict[World, float]:
    """Return P(world and what was seen) for every world, coin by coin as the definition has it."""
    found = {}
    for world, chance in case.worlds.items():
        for name, value in zip(case.names, world, strict=True):
            hidden = case.is_hidden(name, value)
            stays_in = 1.0 if hidden else math.exp(-case.epsilon[name])
            chance *= stays_in ** suppressed.get(name, 0)
            if name in released:
                chance *= (1 - stays_in) if value == released[name] else 0.0
        found[world] = chance
    return found


def joint_with_outcomes(
    case: Case, target: str, seen: Iterable[str], *, target_bit: bool = False, seen_bits: bool = False
) -> dict[tuple[Any, World], float]:
    """Return P(target, outcome), by every world and every way the coins may fall."""
    order = tuple(seen)
    found: dict[tuple[Any, World], float] = {}
    for world, chance in case.worlds.items():
        value = dict(zip(case.names, world, strict=True))
        about = case.is_hidden(target, value[target]) if target_bit else value[target]
        for coins in itertools.product((False, True), repeat=len(order)):
            likely, outcome = chance, []
            for name, shown in zip(order, coins, strict=True):
                release = 0.0 if case.is_hidden(name, value[name]) else 1 - math.exp(-case.epsilon[name])
                likely *= release if shown else 1 - release
                outcome.append(None if not shown else "shown" if seen_bits else value[name])
            cell = about, tuple(outcome)
            found[cell] = found.get(cell, 0.0) + likely
    return found


def information(table: Mapping[tuple[Any, Any], float]) -> float:
    """Return the mutual information of a table of pairs, in nats."""
    left: dict[Any, float] = {}
    right: dict[Any, float] = {}
    for (a, b), chance in table.items():
        left[a], right[b] = left.get(a, 0.0) + chance, right.get(b, 0.0) + chance
    return math.fsum(chance * math.log(chance / left[a] / right[b]) for (a, b), chance in table.items() if chance > 0)


def learned_together(
    case: Case, about: Iterable[str], seen: Sequence[str], epsilon: Mapping[str, float], *, measure: str = "value"
) -> float:
    """Return what is learned about attributes together, from every world and every outcome of every coin."""
    law: dict[tuple[object, object], float] = {}
    targets = list(about)
    for world, chance in case.worlds.items():
        value = dict(zip(case.names, world, strict=True))
        target = tuple(case.is_hidden(name, value[name]) if measure == "bit" else value[name] for name in targets)
        for shows in itertools.product((False, True), repeat=len(seen)):
            outcome, mass = [], chance
            for name, is_shown in zip(seen, shows, strict=True):
                rate = 0.0 if case.is_hidden(name, value[name]) else -math.expm1(-epsilon[name])
                mass *= rate if is_shown else 1 - rate
                outcome.append(None if not is_shown else True if measure == "bit" else value[name])
            law[target, tuple(outcome)] = law.get((target, tuple(outcome)), 0.0) + mass
    sides: list[dict[object, float]] = [{}, {}]
    for key, mass in law.items():
        for side, part in zip(sides, key, strict=True):
            side[part] = side.get(part, 0.0) + mass
    return sum(m * math.log(m / (sides[0][target] * sides[1][y])) for (target, y), m in law.items() if m > 0)
