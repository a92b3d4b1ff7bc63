"""Whatever kind of number is given, a plain one goes on: none is one value in the ledger and another in the noise."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit as tc
from tacit.amounts import as_epsilon
from tacit.errors import BudgetExceeded
from tacit.ledger.ledger import Ledger, exact_epsilon
from tacit.monitor.checks import checked_threshold
from tacit.plan.choose import choose

POLICY = tc.Policy(tc.Domain({"s": tc.Flag(), "n": tc.Integers(0, 9)}), tc.secrets.everything())


class FreeFraction(Fraction):
    """Adds up to nothing, and is never too much."""

    def __add__(self, other: Any) -> Any:
        return Fraction(0)

    __radd__ = __add__

    def __gt__(self, other: Any) -> bool:
        return False


class ShrinkingFraction(Fraction):
    """Another number each time it is looked at."""

    looks = 0

    @property
    def numerator(self) -> int:
        type(self).looks += 1
        return 1 if type(self).looks > 1 else 5

    @property
    def denominator(self) -> int:
        return 1


class FreeInt(int):
    def __add__(self, other: Any) -> Any:
        return 0

    __radd__ = __add__

    def __lt__(self, other: Any) -> bool:
        return False

    def __mul__(self, other: Any) -> Any:
        return 0


class FreeFloat(float):
    def __str__(self) -> str:
        return "0.001"


class FreeText(str):
    def split(self, *args: Any) -> Any:
        return ["0.001"]

    def strip(self, *args: Any) -> Any:
        return "1"


class FreeDecimal(Decimal):
    def __str__(self) -> str:
        return "5"

    def is_finite(self) -> bool:
        return True


NUMBERS = [FreeFraction(5), FreeInt(5), FreeFloat(5), FreeText("5"), FreeDecimal(5)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: type(number).__name__)
def test_an_epsilon_or_distance_is_a_plain_fraction(number: Any) -> None:
    for read in (as_epsilon, exact_epsilon):
        found = read(number)
        assert type(found) is Fraction
        assert {type(found.numerator), type(found.denominator)} == {int}
        assert found == 5
    theta = tc.secrets.within(number, "n").theta  # type: ignore[attr-defined]
    assert (type(theta), type(theta.numerator), theta) == (Fraction, int, 5)


@pytest.mark.parametrize(
    "read",
    [
        checked_threshold,
        lambda n: tc.below("s == True", n).threshold,
        lambda n: tc.above("n", n, at_most=1).threshold,
        lambda n: tc.above("n", 1, at_most=n).at_most,
        lambda n: tc.top_k("n", n).k,
        lambda n: tc.Policy(POLICY.domain, tc.secrets.everything(), person="id", per_person=n).per_person,
        lambda n: tc.known.size(n).people,  # type: ignore[attr-defined]
    ],
)
def test_a_whole_number_is_a_plain_one(read: Callable[[Any], Any]) -> None:
    assert type(read(FreeInt(3))) is int
    assert read(FreeInt(3)) == 3


@pytest.mark.one_in(5)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: type(number).__name__)
def test_no_number_gets_past_a_budget(number: Any, tmp_path: Path) -> None:
    people = pd.DataFrame({"s": [True, False], "n": [1, 2]})
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant(dataset="d", epsilon=1, policy=POLICY)
        sessions = [tc.Session(POLICY, people, 1), tc.Session(POLICY, people, ledger=ledger, dataset="d")]
        for session in sessions:
            with pytest.raises(BudgetExceeded):
                session.release(tc.count("s == True"), number)
            assert session.remaining == 1
    assert type(tc.Session(POLICY, people, number).remaining) is Fraction


def test_what_is_charged_is_what_noise_is_made_from(tmp_path: Path) -> None:
    people = pd.DataFrame({"s": [True, False], "n": [1, 2]})
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant(dataset="d", epsilon=10, policy=POLICY)
        session = tc.Session(POLICY, people, ledger=ledger, dataset="d")
        record = session.release(tc.count("s == True"), ShrinkingFraction(5))
        assert ledger.entries()[-1].epsilon == record.plan.epsilon == Fraction(record.certificate["epsilon"])
    assert type(choose(tc.count("s == True"), POLICY, ShrinkingFraction(5)).epsilon) is Fraction
