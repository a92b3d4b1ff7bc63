"""Several sensitive columns: the criterion holds for every column, not for combinations alone, whatever the method."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.publish.make_tables import private_choice
from tacit.publish.methods.criterion import Channel, Criterion, is_private
from tacit.publish.methods.groupwise import Groupwise, largest_retention
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.masked_columns import FINE, MaskedColumns
from tacit.publish.methods.sampled import Sampled, error_tails, largest_sample

HALF, THIRD, WHOLE = Fraction(1, 2), Fraction(3, 10), Fraction(1)
ASKED = Criterion(THIRD, THIRD)
MULTIPLES = (0.9, 0.95, 1.0, 1.05)
DRAWS = 6000
# five and a half deviations: of 1,000 sums that are wrong just often enough, one in 50,000 runs is accused
ACCUSED = 0.3 - 5.5 * np.sqrt(0.21 / DRAWS)

TABLES: dict[str, np.ndarray] = {
    "independent": np.outer([30, 90, 180], np.full(10, 1)),
    "dependent": (np.eye(4) * 350 + 38).astype(int),
    "one follows from the other": np.eye(4, dtype=int) * 250,
    "two values each": np.array([[500, 200], [100, 200]]),
    "one outweighs": np.array([[1400, 50, 50, 50], [50, 50, 50, 50], [100, 50, 50, 50]]),
    "one outweighs few others": np.array([[88, 2, 1, 1], [2, 1, 0, 0], [2, 1, 1, 1]]),
    "a dozen people": np.array([[6, 1, 0], [1, 2, 0], [1, 0, 1]]),
    "one person": np.array([[1, 0, 0], [0, 0, 0]]),
    "three columns": np.full((2, 3, 4), 40),
}


@pytest.fixture(autouse=True)
def _replay() -> Iterator[None]:
    with tc.noise.replayed(tc.noise.Keystream(key=b"k" * 32)):
        yield


def method_for(table: np.ndarray, retention: Fraction = HALF) -> MaskedColumns:
    return MaskedColumns(Channel(retention, table.size, table.shape), ASKED)


def drawn(method: Masked, table: np.ndarray, times: int = DRAWS) -> np.ndarray:
    counts = np.tile(table.reshape(1, -1), (times, 1))
    return method.estimates(method.draw(counts), counts.sum(axis=1)).reshape(times, *table.shape)


def promised(table: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """Yield what lies within one value of some column: values of every subset of columns, and half of each value."""
    for many in range(1, table.ndim + 1):
        for axes in combinations(range(table.ndim), many):
            for at in np.ndindex(*(table.shape[axis] for axis in axes)):
                where: list[Any] = [slice(None)] * table.ndim
                for axis, place in zip(axes, at, strict=True):
                    where[axis] = place
                yield tuple(where)
                if many == 1:
                    other = (axes[0] + 1) % table.ndim
                    where[other] = slice(0, -(-table.shape[other] // 2))
                    yield tuple(where)


def least_wrong(shown: np.ndarray, table: np.ndarray) -> float:
    """Return how often the sum that is wrong the least often is wrong by more than 0.3, with the best multiple."""
    found = 1.0
    for where in promised(table):
        true = float(table[where].sum())
        inside = shown[(slice(None), *where)].reshape(len(shown), -1).sum(axis=1)
        if true:
            found = min(found, *(float(np.mean(abs(a * inside - true) > 0.3 * true)) for a in MULTIPLES))
    return found


@pytest.mark.parametrize("name", TABLES)
def test_every_column_and_combination_is_wrong_often_enough(name: str) -> None:
    assert least_wrong(drawn(method_for(TABLES[name]), TABLES[name]), TABLES[name]) > ACCUSED


def test_masks_of_combinations_alone_are_found() -> None:
    table = TABLES["independent"]
    assert least_wrong(drawn(Masked(Channel(HALF, 30), ASKED), table), table) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["0.2", "0.95"])
@pytest.mark.parametrize("name", TABLES)
def test_the_same_with_little_and_much_noise(name: str, kept: str) -> None:
    assert least_wrong(drawn(method_for(TABLES[name], Fraction(kept)), TABLES[name]), TABLES[name]) > ACCUSED


@pytest.mark.parametrize("name", [name for name in TABLES if name != "one outweighs few others"])
def test_predicted_errors_are_measured_and_there_is_no_bias(name: str) -> None:
    table = TABLES[name]
    shown, method = drawn(method_for(table), table), method_for(table)
    predicted = method.variances(table.reshape(1, -1).astype(float), np.array([table.sum()])).reshape(table.shape)
    assert (abs(shown.mean(axis=0) - table) < 5.5 * shown.std(axis=0) / np.sqrt(DRAWS)).all()
    large = table >= 30  # smaller ones may or may not be told from the noise
    assert np.sqrt(predicted[large]) == pytest.approx(shown.std(axis=0)[large], rel=0.15)


def test_one_column_costs_what_it_costs_alone_if_columns_are_independent() -> None:
    table = TABLES["independent"]
    counts = np.tile(table.sum(axis=0), (DRAWS, 1))
    alone = Masked(Channel(HALF, 10), ASKED)
    by_itself = alone.estimates(alone.draw(counts), counts.sum(axis=1)).std(axis=0)
    assert drawn(method_for(table), table).sum(axis=1).std(axis=0) == pytest.approx(by_itself, rel=0.1)


def test_published_numbers_show_no_whole_numbers() -> None:
    """Odds ratios of whole counts would be fractions of small numbers, and tell the masks of small tables."""
    table = np.array([[30, 50], [20, 40]])
    method = method_for(table, Fraction(99, 100))

    def are_whole(shown: np.ndarray) -> float:
        odds = shown[:, 0] * shown[:, 3] / (shown[:, 1] * shown[:, 2])
        # counts that were moved to the size are whole numbers of quarters, and what is published is rounded
        corners = [np.arange(one - 3, one + 3.25, 0.25) for one in table.reshape(-1)]
        top, low = (np.unique(np.multiply.outer(corners[one], corners[other])) for one, other in ((0, 3), (1, 2)))
        near = np.unique(np.divide.outer(top, low))
        return float(np.mean([abs(near - one).min() < 1e-8 for one in odds]))

    whole = np.tile(table.reshape(1, -1), (40, 1)).astype(float)
    assert are_whole(method.combined(whole, whole.sum(axis=1).astype(int))) == 1
    assert are_whole(drawn(method, table, 40).reshape(40, -1)) < 0.1
    assert method.unit == Fraction(1, FINE)


def test_columns_with_one_value_are_no_columns() -> None:
    assert private_choice(Channel(HALF, 3, (1, 3)), THIRD, THIRD, method="masked").method(np.array([9])) == Masked(
        Channel(HALF, 3), ASKED
    )


def test_the_noise_keeps_epsilon() -> None:
    method = method_for(TABLES["independent"])
    assert method.noise.loss(1) * 2 == method.epsilon  # a record moves between two of the combinations


# ---- samples and retentions -----------------------------------------------------------------------------------------

PAIRS = Channel(HALF, 4, (2, 2))


def test_a_column_is_perturbed_as_if_it_were_all_there_is() -> None:
    channel = Channel(HALF, 6, (2, 3))
    chances = np.full((6, 6), float(channel.spread)) + np.eye(6) * float(channel.retention)
    for axis, size in ((1, 2), (0, 3)):
        part = Channel(HALF, size)
        shown = chances.reshape(6, 2, 3).sum(axis=axis + 1)
        own = np.indices((2, 3))[1 - axis]
        expected = np.where(own.ravel()[:, None] == np.arange(size), part.kept, float(part.spread))
        assert shown == pytest.approx(expected)
    assert {part.values for part in channel.parts} == {2, 3, 6}


@pytest.mark.parametrize("size", [8, 10, 11, 16, 40])
def test_samples_and_retentions_hold_for_each_column(size: int) -> None:
    """For combinations alone a sample of 10 of 10 will do; a column's estimate is then wrong in 13% instead of 30%."""
    counts, column = np.arange(1, size + 1), Channel(HALF, 2)
    sample = largest_sample(size, PAIRS, ASKED, WHOLE)
    retention = largest_retention(size, PAIRS, ASKED, WHOLE)
    for part in (column, Channel(HALF, 4)):
        assert (sum(error_tails(counts, size, sample, part, THIRD)) > 0.3).all()
        assert is_private(counts, size, Channel(retention, part.values), ASKED).all()
    if size == 10:
        alone = Channel(HALF, 4)
        many, kept = largest_sample(size, alone, ASKED, WHOLE), largest_retention(size, alone, ASKED, WHOLE)
        assert sum(error_tails(counts, size, many, column, THIRD)).min() < 0.14
        assert not is_private(counts, size, Channel(kept, 2), ASKED).all()


def test_the_best_of_several_methods_keeps_the_promise_for_columns() -> None:
    for name, kind in (("masked", MaskedColumns), ("sample", Sampled), ("retention", Groupwise), ("best", None)):
        method = private_choice(PAIRS, THIRD, THIRD, method=name).method(np.array([10, 200]))
        assert method.channel.shape == (2, 2)
        assert kind is None or isinstance(method, kind)
        assert any("each value of each" in line for line in method.words())


def test_the_audit_looks_at_columns() -> None:
    """Ten people with one value of a column, and two of another: no combination is told too well, the one value is."""
    rows = pd.DataFrame({"a": ["x"] * 10, "b": ["u", "v"] * 5})
    asked = {"public": [], "retention": 0.5, "lam": 0.3, "delta": 0.3, "tails": "together"}
    several = {"sensitive": ["a", "b"], "values": [["x", "y"], ["u", "v"]], **asked}
    both = tc.audit.reconstruction(rows, **several)
    one = tc.audit.reconstruction(rows, sensitive="a", values=["x", "y"], **asked)
    assert is_private(np.array([5, 5, 0, 0]), 10, Channel(HALF, 4), ASKED).all()
    assert (both.count, one.count) == (1, 1)
    bound = tc.audit.reconstruction(
        rows, **several, criterion="chernoff"
    )  # 2 (f p + (1-p)/m) ln(1/delta) / (lam p f)^2
    assert bound.largest[0] == np.floor(2 * 0.75 * np.log(1 / 0.3) / 0.15**2)  # of ten x of ten, with two values


# ---- through the door -----------------------------------------------------------------------------------------------


def people(groups: int) -> pd.DataFrame:
    table = np.outer([1, 3, 6], np.full(5, 20))
    cells = np.repeat(np.arange(15), table.ravel())
    one = pd.DataFrame({"ill": np.array(["flu", "hiv", "none"])[cells // 5], "work": [f"w{at % 5}" for at in cells]})
    return pd.concat([one.assign(ward=f"g{number:03}") for number in range(groups)])


ABOUT: dict[str, Any] = {"public": ["ward"], "sensitive": ["ill", "work"], "lam": 0.3, "delta": 0.3, "retention": 0.5}
VALUES = {"ill": ["flu", "hiv", "none"], "work": [f"w{at}" for at in range(5)]}


def test_no_column_of_a_published_table_is_estimated_too_well() -> None:
    table = tc.publish.reconstruction_private(people(200), **ABOUT, values=VALUES)
    assert table.method.name == "masked"
    none = [("none", work) for work in VALUES["work"]]
    wrong = [
        abs(tc.reconstruct(table, {"ward": f"g{number:03}"}, none).count - 600) > 0.3 * 600 for number in range(200)
    ]
    assert np.mean(wrong) > 0.3 - 4.5 * np.sqrt(0.21 / 200)
    said = " ".join(table.certificate["not_prevented"])
    for words in ("several values of a column together", "counts of one sensitive column", "several groups"):
        assert words in said


def test_a_session_refuses_another_table_of_one_of_the_columns() -> None:
    domain = tc.Domain(
        {"ward": tc.Categories(["g000", "g001"]), **{name: tc.Categories(values) for name, values in VALUES.items()}}
    )
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("ill", "work")), people(2), budget=9)
    first = tc.publish.reconstruction_private(session, **ABOUT)
    assert isinstance(first.method, MaskedColumns)
    with pytest.raises(tc.PlanError, match="sensitive must not be in two tables"):
        tc.publish.perturbed(session, public=["ward"], sensitive="work", retention=0.5)


def test_groups_that_come_later_are_masked_in_the_same_way() -> None:
    rows = people(3)
    table = tc.publish.reconstruction_private(rows[rows.ward < "g002"], **ABOUT, values=VALUES, method="masked")
    grown = tc.publish.append(table, rows[rows.ward == "g002"])
    assert grown.version == 2
    assert grown.sizes.tolist() == [1000, 1000, 1000]
    assert isinstance(grown.method, MaskedColumns)
