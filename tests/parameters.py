"""Parameters of tests: which of many combinations every run tries, and which only the slow ones."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest


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
