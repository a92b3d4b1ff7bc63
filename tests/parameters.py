"""Parameters of tests: which of many combinations every run tries, and which only the slow ones."""

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import settings


def examples(many: int, few: int = 0) -> settings:
    """Draw many examples where they are fresh (`make audit`); other runs take few or a third, always the same ones."""
    fresh = os.environ.get("TACIT_EXAMPLES") == "fresh"
    return settings(max_examples=many if fresh else few or many // 3, deadline=None)


def replaying(key: bytes) -> Any:
    """Return a fixture that gives every test of its module the same stream of noise."""

    @pytest.fixture(autouse=True)
    def stream() -> Iterator[None]:
        from tacit import noise

        with noise.replayed(noise.Keystream(key=key)):
            yield

    return stream


def one_in(share: int, *lists: Iterable[Any]) -> list[Any]:
    """All combinations of the lists, of which one in so many is quick: each value of each list comes often enough."""
    found = []
    for chosen in product(*(list(enumerate(values)) for values in lists)):
        slow = sum(place for place, _ in chosen) % share > 0
        found.append(pytest.param(*(value for _, value in chosen), marks=[pytest.mark.slow] * slow))
    return found


def every_two_together(*lists: Iterable[Any]) -> list[Any]:
    """All combinations of three or more lists of two or more values each.

    Half of them are slow: the others have, for any values of all lists but one, a value of that one.
    """
    found = []
    for chosen in product(*(list(enumerate(values)) for values in lists)):
        slow = sum(place for place, _ in chosen) % 2
        found.append(pytest.param(*(value for _, value in chosen), marks=[pytest.mark.slow] * slow))
    return found


def mark_all_but_one_in_so_many_as_slow(items: list[pytest.Item]) -> None:
    """Of the cases of a test that is marked `one_in(n)` leave about one in n quick, the same in every run.

    A value that several cases share, such as an engine, stays in a quick one. `make audit` runs all cases.
    """
    cases: dict[tuple[Any, str], list[Any]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("one_in") and not item.get_closest_marker("slow"):
            cases[item.path, item.originalname].append(item)
    for of_one_test in cases.values():
        quick = _quick_ones(of_one_test, of_one_test[0].get_closest_marker("one_in").args[0])
        for item in of_one_test:
            if item not in quick:
                item.add_marker(pytest.mark.slow)


def _quick_ones(cases: list[Any], share: int) -> list[Any]:
    # a value that comes from one list is one object in all of its cases
    values = {case: {(name, id(value)) for name, value in case.callspec.params.items()} for case in cases}
    common = Counter(value for case in cases for value in values[case])
    missing = {value for value, many in common.items() if 1 < many < len(cases)}
    quick, others = [], []
    for case in sorted(cases, key=lambda case: hashlib.sha256(case.name.encode()).digest()):
        if values[case] & missing:
            missing -= values[case]
            quick.append(case)
        else:
            others.append(case)
    return quick + others[: max(-(-len(cases) // share) - len(quick), 0)]
