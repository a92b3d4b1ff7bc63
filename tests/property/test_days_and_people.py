"""Chains of days, hidden chains and households against every world they may be in, and bounds against all outcomes."""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tacit as tc
from tacit.dependence import nearby
from tacit.dependence.nearby import Around, around

Floats = npt.NDArray[np.float64]
Key = tuple[str, str, int]  # attribute, person, day; "" for what people share, or where there are none


@dataclass(frozen=True)
class Written:
    """Tables of one day of one person, as somebody writes them; `values` has how many values each attribute has."""

    tables: dict[str, Any]
    first: dict[str, Any]
    shared: tuple[str, ...]
    people: tuple[str, ...]
    days: int
    values: dict[str, int]

    def dependence(self) -> tc.Dependence:
        days = {"days": self.days, "first": self.first} if self.days else {}
        people = {"people": self.people, "shared": self.shared} if self.people else {}
        values = {name: range(size) for name, size in self.values.items()}
        return tc.Dependence.over(self.tables, values=values, **days, **people)

    def keys(self) -> list[Key]:
        on = range(1, self.days + 1) if self.days else [0]
        owners = {name: [""] if name in self.shared else self.people or [""] for name in self.values}
        return [(name, who, day) for day in on for name in self.values for who in owners[name]]

    def joint(self) -> tuple[list[str], Floats]:
        """Return the chance of every world, by the definition: each attribute is drawn given its parents."""
        keys = self.keys()
        found = np.ones([self.values[name] for name, _, _ in keys])
        for world in itertools.product(*(range(self.values[name]) for name, _, _ in keys)):
            value = dict(zip(keys, world, strict=True))
            for name, who, day in keys:
                table = self.first[name] if day == 1 and name in self.first else self.tables[name]
                if "given" in table:
                    above = [self._parent(parent, who, day) for parent in table["given"]]
                    table = table["table"][tuple(value[one] for one in above)]
                found[world] *= table[value[name, who, day]]
        names = ["@".join(str(part) for part in key if part) for key in keys]
        return names, found

    def _parent(self, parent: str, who: str, day: int) -> Key:
        name = parent.removesuffix("@before")
        return name, "" if name in self.shared else who, day - 1 if parent.endswith("@before") else day


def random_tables(rng: np.random.Generator) -> Written:
    kind = int(rng.integers(4))
    people = ("ana", "bob", "cem")[: int(rng.integers(2, 4))] if kind >= 2 else ()
    days = {0: int(rng.integers(2, 6)), 1: int(rng.integers(2, 5)), 2: 0, 3: 2}[kind]
    sizes = {
        0: {"arrival": int(rng.integers(2, 4))},
        1: {"habit": int(rng.integers(2, 4)), "arrival": 2},
        2: {"home": int(rng.integers(2, 4)), "arrival": 2, "leaving": 2},
        3: {"home": 2, "arrival": 2},
    }[kind]
    back = {0: ["arrival"], 1: ["habit"], 2: [], 3: ["home", "arrival"]}[kind]
    above: dict[str, list[str]] = {name: list(sizes)[:at] for at, name in enumerate(sizes)}

    def table(name: str, parents: list[str]) -> Any:
        if not parents:
            return dict(enumerate(rng.dirichlet(np.ones(sizes[name])).tolist()))
        cases = itertools.product(*(range(sizes[parent.removesuffix("@before")]) for parent in parents))
        return {"given": parents, "table": {case: table(name, []) for case in cases}}

    tables = {name: table(name, [*above[name], *([f"{name}@before"] if name in back else [])]) for name in sizes}
    first = {name: table(name, above[name]) for name in back}
    return Written(tables, first, ("home",) if people else (), people, days, sizes)


def channel(size: int, hidden: int, epsilon: float) -> Floats:
    """Return the chance of each outcome (nothing, or a value) for each value; values below `hidden` are sensitive."""
    found = np.zeros((size, size + 1))
    found[:, 0] = [1.0 if value < hidden else math.exp(-epsilon) for value in range(size)]
    found[range(size), range(1, size + 1)] = 1 - found[:, 0]
    return found


def all_outcomes(joint: Floats, channels: dict[int, Floats], target: int) -> Floats:
    """Return P(target, outcome) over every outcome of the attributes that have a channel."""
    copied = np.zeros((joint.shape[target], *joint.shape))
    for value in range(joint.shape[target]):
        at = (slice(None),) * target + (value,)
        copied[value][at] = joint[at]
    for axis in range(joint.ndim):
        last = np.moveaxis(copied, axis + 1, -1)
        passed = last @ channels[axis] if axis in channels else last.sum(axis=-1, keepdims=True)
        copied = np.moveaxis(passed, -1, axis + 1)
    return copied.reshape(len(copied), -1)


@dataclass(frozen=True)
class Truth:
    """A case with what follows from going through all of its worlds."""

    names: list[str]
    joint: Floats
    epsilon: dict[str, float]
    target: str
    suppressed: dict[str, int]
    released: dict[str, int]

    def posterior(self) -> Floats:
        found = self.joint.copy()
        for axis, name in enumerate(self.names):
            rows = channel(self.joint.shape[axis], 1, self.epsilon[name])
            seen = rows[:, 0] ** self.suppressed.get(name, 0)
            if name in self.released:
                seen = seen * rows[:, self.released[name] + 1]
            found = found * seen.reshape([-1 if one == axis else 1 for one in range(found.ndim)])
        at = self.names.index(self.target)
        alone = found.sum(axis=tuple(axis for axis in range(found.ndim) if axis != at))
        return np.asarray(alone / alone.sum())

    def learned(self, seen: list[str]) -> tuple[float, float, float]:
        """Return information, largest posterior of a sensitive value, and freedom, over all outcomes."""
        at = {self.names.index(name): name for name in seen}
        channels = {axis: channel(self.joint.shape[axis], 1, self.epsilon[name]) for axis, name in at.items()}
        law = all_outcomes(self.joint, channels, self.names.index(self.target))
        law = law[:, law.sum(axis=0) > 0]
        prior, chance = law.sum(axis=1, keepdims=True), law.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            told = np.where(law > 0, law * np.log(law / (prior * chance)), 0.0).sum()
            ratios = (law[:1] / prior[0]) / (law[1:] / prior[1:])
        return float(told), float((law[0] / chance).max()), max(0.0, math.log(np.nanmax(ratios)))


def random_truth(number: int) -> tuple[Written, Truth]:
    rng = np.random.default_rng([39, number])
    written = random_tables(rng)
    names, joint = written.joint()
    target = names[int(rng.integers(len(names)))]
    seen = {name: rng.random() for name in names if not name.startswith("habit")}
    suppressed = {name: int(rng.integers(1, 4)) for name, one in seen.items() if one < 0.4}
    released = {name: 1 for name, one in seen.items() if 0.4 <= one < 0.6}
    epsilon = {name: float(rng.uniform(0.1, 3)) for name in names}
    return written, Truth(names, joint, epsilon, target, suppressed, released)


def audit_of(dependence: tc.Dependence, truth: Truth) -> Any:
    return tc.audit.exclusion(dependence, sensitive={name: [0] for name in truth.names}, epsilon=truth.epsilon)


def check_posterior(dependence: tc.Dependence, truth: Truth) -> None:
    found = audit_of(dependence, truth).posterior(truth.target, suppressed=truth.suppressed, released=truth.released)
    np.testing.assert_allclose([found[value] for value in sorted(found)], truth.posterior(), atol=1e-10)


def check_posteriors(made: Callable[[Written], tc.Dependence], cases: Iterable[tuple[Written, Truth]]) -> None:
    for written, truth in cases:
        check_posterior(made(written), truth)


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_posteriors_are_those_of_every_world(start: int) -> None:
    check_posteriors(Written.dependence, map(random_truth, range(start, start + 50)))


def forgets_a_day(written: Written) -> tc.Dependence:
    """The chain begins anew on the last day."""
    whole = written.dependence()
    last = [name for name in whole.names if name.endswith(f"@{written.days}")]
    return product_of(whole, last, [name for name in whole.names if name not in last])


def days_are_independent(written: Written) -> tc.Dependence:
    whole = written.dependence()
    parts = [[name for name in whole.names if name.endswith(f"@{day}")] for day in range(1, written.days + 1)]
    return product_of(whole, *parts)


def product_of(whole: tc.Dependence, *parts: list[str]) -> tc.Dependence:
    tables = [whole.marginal(*part) for part in parts]
    joint = tables[0]
    for table in tables[1:]:
        joint = np.multiply.outer(joint, table)
    order = [name for part in parts for name in part]
    return tc.Dependence.from_table(joint, order, values={name: whole.values[name] for name in order})


@pytest.mark.parametrize("wrong", [forgets_a_day, days_are_independent])
def test_a_day_that_is_forgotten_is_found(wrong: Callable[[Written], tc.Dependence]) -> None:
    chains = [one for one in map(random_truth, range(40)) if one[0].days > 2]
    with pytest.raises(AssertionError):
        check_posteriors(wrong, chains)


# ---- what all that is seen tells, between two numbers ---------------------------------------------------------------


def check_between(written: Written, truth: Truth) -> bool:
    """Hold what encloses against every outcome; say whether anything was left out."""
    seen = [name for name in truth.names if not name.startswith("habit")]
    found = audit_of(written.dependence(), truth).between(truth.target, seen)
    ends = found.information, found.posterior, found.freedom
    for (least, most), exact in zip(ends, truth.learned(seen), strict=True):
        assert least - 1e-10 <= exact <= most + 1e-10
        assert not found.is_exact or most == least == pytest.approx(exact, abs=1e-10)
    return not found.is_exact


def check_all_between(cases: Iterable[tuple[Written, Truth]]) -> list[bool]:
    return [check_between(*case) for case in cases]


def test_what_is_learned_lies_between_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [one for one in map(random_truth, range(120)) if len(one[1].names) <= 6]
    for most in (12, 60, 2**20):
        monkeypatch.setattr(nearby, "MOST_NEAR", (most,))
        assert any(check_all_between(cases)) is (most < 2**20)


def leaves_the_border_out(*args: Any) -> Around:
    return Around(around(*args).near, ())


def knows_nothing_of_the_border(*args: Any) -> Around:
    found = around(*args)
    return Around(found.near, found.border[:1])


@pytest.mark.parametrize("wrong", [leaves_the_border_out, knows_nothing_of_the_border])
def test_a_bound_that_forgets_what_lies_beyond_is_found(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearby, "MOST_NEAR", (12,))
    cases = [one for one in map(random_truth, range(60)) if len(one[1].names) <= 6]
    monkeypatch.setattr(nearby, "around", wrong)
    with pytest.raises(AssertionError):
        check_all_between(cases)


# ---- a month --------------------------------------------------------------------------------------------------------


def month_of_five(rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return tables in which each attribute depends on the one before it, and on itself on the day before."""
    first: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for at in range(5):
        above = [f"a{at - 1}"] if at else []
        for into, parents in ((first, above), (tables, [*above, f"a{at}@before"])):
            cases = itertools.product((0, 1), repeat=len(parents))
            rows = {case: dict(enumerate(rng.dirichlet([1, 1]).tolist())) for case in cases}
            into[f"a{at}"] = {"given": parents, "table": rows} if parents else rows[()]
    return tables, first


def test_thirty_days_of_five_attributes() -> None:
    rng = np.random.default_rng(40)
    tables, first = month_of_five(rng)
    month = tc.Dependence.over(tables, days=30, first=first)
    leak = tc.audit.exclusion(month, {name: [0] for name in month.names}, dict.fromkeys(month.names, 0.7))
    suppressed = {name: 1 for name in month.names if rng.random() < 0.5 and not name.endswith("@15")}
    found = leak.posterior("a2@15", suppressed=suppressed)
    # forward and backward over the 32 states of a day
    states = list(itertools.product((0, 1), repeat=5))

    def chance(tables: dict[str, Any], now: tuple[int, ...], before: tuple[int, ...]) -> float:
        likely = 1.0
        for at in range(5):
            table = tables[f"a{at}"]
            own = {f"a{at - 1}": now[at - 1], f"a{at}@before": before[at]}
            case = tuple(own[parent] for parent in table["given"]) if "given" in table else None
            likely *= (table if case is None else table["table"][case])[now[at]]
        return likely

    step = np.array([[chance(tables, now, before) for now in states] for before in states])
    seen = np.array(
        [
            [math.exp(-0.7 * sum(suppressed.get(f"a{at}@{day}", 0) * one[at] for at in range(5))) for one in states]
            for day in range(1, 31)
        ]
    )
    forward = np.array([chance(first, now, now) for now in states]) * seen[0]
    for day in range(1, 15):
        forward = forward @ step * seen[day]
    backward = np.ones(32)
    for day in range(29, 14, -1):
        backward = step @ (seen[day] * backward)
    both = forward * backward
    exact = sum(one for one, state in zip(both, states, strict=True) if state[2] == 0) / both.sum()
    assert found[0] == pytest.approx(exact, abs=1e-12)
    learned = leak.between("a2@15")
    assert 0 < learned.information[0] <= learned.information[1] <= learned.entropy
    assert "These are bounds" in str(learned)


LATE = {"late": {"late": 0.8, "early": 0.2}, "early": {"late": 0.1, "early": 0.9}}
CHAIN = {"arrival": {"given": ["arrival@before"], "table": LATE}}
START = {"arrival": {"late": 0.5, "early": 0.5}}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"days": 0}, "days must be at least 1; got 0"),
        ({}, "days must be given, or people"),
        ({"days": ["mon", "mon"]}, "different labels"),
        ({"days": 30, "first": None}, "arrival must have a table for the first day"),
        ({"people": ["ana"], "first": None}, "looks at the day before, and there are no days"),
        ({"days": 30, "first": {"arival": {}}}, "first must be attributes with a table; got 'arival'"),
        ({"days": 30, "shared": ["arrival"]}, "shared needs people"),
        ({"days": 10**9}, "10,000 is the most"),
        ({"days": 3, "tables": {"arrival": {"given": ["arival@before"], "table": LATE}}}, "mean 'arrival@before'"),
        (
            {"days": 3, "tables": {"arrival": {"given": ["arrival@before"], "table": {**LATE, "late": {"late": 0.8}}}}},
            "arrival@2: where arrival@1 is late must sum to one",
        ),
        (
            {
                "people": ["a", "b"],
                "shared": ["home"],
                "first": None,
                "tables": {"arrival": START["arrival"], "home": {"given": ["arrival"], "table": LATE}},
            },
            "home is shared by people and must not depend on what each has",
        ),
    ],
)
def test_what_makes_no_chain_is_refused(options: dict[str, Any], said: str) -> None:
    tables = options.pop("tables", CHAIN)
    with pytest.raises((tc.PolicyError, tc.PlanError)) as refused:
        tc.Dependence.over(tables, **{"first": START, **options})
    assert said in str(refused.value)


def test_a_chain_that_grows_too_wide_is_refused_with_the_bound() -> None:
    rng = np.random.default_rng(41)

    def leaning(values: int) -> Any:
        cases = itertools.product(range(values), repeat=4)
        return {case: dict(enumerate(rng.dirichlet(np.ones(values)).tolist())) for case in cases}

    above = [[f"a{(at + by) % 8}@before" for by in range(4)] for at in range(8)]
    tables = {f"a{at}": {"given": above[at], "table": leaning(6)} for at in range(8)}
    first = {f"a{at}": dict.fromkeys(range(6), 1 / 6) for at in range(8)}
    with pytest.raises(tc.PlanError, match="cells, and 4,194,304 is the most"):
        tc.Dependence.over(tables, first=first, days=3)
