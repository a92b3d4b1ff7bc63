"""Records that come later to groups of a table that keeps a criterion: masked counts are masked once more.

Planted: versions that are only added up. Samples and retentions refuse, and a test says why.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from parameters import replaying
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.grown import grown
from tacit.publish.methods.intervals import one_count, sums
from tacit.publish.methods.masked import PARTS, Masked
from tacit.publish.methods.sampled import error_tails, largest_sample

THIRD = Fraction(3, 10)
ASKED = Criterion(THIRD, THIRD)
DRAWS = 4000
MOST = 0.7 + 5 * np.sqrt(0.21 / DRAWS)  # a table that keeps the criterion is accused once in 3.5 million
LEVELS = np.array([0.9, 0.95, 0.99, 0.999])
stream = replaying(b"g" * 32)


def versions(method: Masked, *parts: list[int]) -> tuple[list[np.ndarray], list[np.ndarray], Masked]:
    """Return what is published of all rows after each version, what of its own rows is drawn, and the last method."""
    shown, alone, sizes = [], [], np.zeros(DRAWS, np.int64)
    for part in parts:
        many = np.tile(part, (DRAWS, 1))
        alone.append(method.draw(many))
        sizes = sizes + many.sum(axis=1)
        if shown:
            method, found = grown(method, shown[-1] + alone[-1], alone[-1], sizes)
            assert (found.sum(axis=1) == PARTS * sizes).all()
        shown.append(found if len(shown) else alone[0])
    return shown, alone, method


def right(published: np.ndarray, counts: np.ndarray) -> float:
    """Return how often the best multiple is within 30% of some count that is not zero."""
    there = counts > 0
    errors = (abs(a * published[:, there] / PARTS - counts[there]) for a in np.linspace(0.6, 1.6, 26))
    return float(max((one <= 0.3 * counts[there]).mean(axis=0).max() for one in errors))


@pytest.mark.parametrize(
    "parts",
    [
        ([70, 30], [70, 30]),
        ([100] * 10, [100] * 10, [100] * 10),
        ([700, 100, 50, 50, 50], [70, 10, 5, 5, 5]),
        ([300, 100, 50], [50, 100, 300]),
        ([40, 0, 10], [0, 30, 10], [1, 1, 1]),
    ],
)
def test_all_rows_and_those_of_each_version_keep_the_criterion(parts: tuple[list[int], ...]) -> None:
    shown, alone, method = versions(Masked(Channel(Fraction(1, 2), len(parts[0])), ASKED), *parts)
    counts = np.cumsum(parts, axis=0)
    for at, one in enumerate(shown):
        assert right(one, counts[at]) < MOST
        if at:
            assert right(one - shown[at - 1], np.array(parts[at])) < MOST
    # without bias, and about as wrong as is said: where shares change much, by up to a half more
    last, sizes = shown[-1] / PARTS, np.full(1, counts[-1].sum())
    stated = np.sqrt(method.variances(counts[-1:].astype(float), sizes)[0])
    assert (abs(last.mean(axis=0) - counts[-1]) < 5 * last.std(axis=0) / np.sqrt(DRAWS)).all()
    assert (stated > 0.6 * last.std(axis=0)).all()
    if parts[0] == parts[1]:  # planted: both versions added up
        assert right(alone[0] + alone[1], counts[1]) > 0.8


def test_intervals_of_groups_that_grew_hold_at_every_level() -> None:
    """Sixteen settings of 400 tables: two values or several, shares that stay and that change, one count and sums."""
    draw, found = np.random.default_rng(23), []
    for _ in range(16):
        values, many = int(draw.choice([2, 3, 6])), int(draw.choice([1, 5]))
        method = Masked(Channel(Fraction(int(draw.choice([50, 80])), 100), values), ASKED)
        parts = [draw.integers(0, int(draw.choice([30, 300])), (many, values)) + 1 for _ in range(2)]
        old, new = (method.draw(np.tile(part, (400, 1))) for part in parts)
        counts = parts[0] + parts[1]
        sizes = np.tile(counts, (400, 1)).sum(axis=1)
        after, total = grown(method, old + new, new, sizes)
        shown = total / PARTS
        if many == 1:
            chances = one_count(after, shown, sizes, 0, np.full((400, 1), float(counts[0, 0])))
        else:
            true = np.full((400, 1), float(counts[:, 0].sum()))
            chances = sums(after, shown.reshape(400, many, values), counts.sum(axis=1), [0], true)
        found.append((chances.reshape(-1, 1) >= 0.9 * (1 - LEVELS)).mean(axis=0))
    assert (np.array(found) > LEVELS - 4.5 * np.sqrt(LEVELS * (1 - LEVELS) / 400)).all()
    assert (np.mean(found, axis=0) >= LEVELS).all()


def test_a_sample_has_no_room_for_later_records() -> None:
    """Of 1,000 people who all have a value 11 are sampled; with more, of 1,000 later ones too, it is known too well."""
    channel, size = Channel(Fraction(1, 2), 10), 2000
    sample = largest_sample(1000, channel, ASKED, Fraction(1))
    wrong = [sum(error_tails(np.array([size]), size, sample + more, channel, THIRD))[0] for more in range(1, 40)]
    assert sample == 11
    assert max(wrong) < 0.3


VALUES = ["flu", "hiv", "none"]
PROMISE = {"public": ["ward"], "sensitive": "ill", "values": VALUES, "retention": 0.5, "lam": 0.3, "delta": 0.3}
FIRST = pd.DataFrame({"ward": ["a", "b"] * 30, "ill": VALUES * 20})
LATER = pd.DataFrame({"ward": ["b", "c"] * 15, "ill": VALUES * 10})


def test_later_rows_of_old_and_new_groups() -> None:
    table = tc.publish.reconstruction_private(FIRST, **PROMISE, method="masked")
    grew = tc.publish.append(table, LATER)
    again = tc.publish.append(grew, LATER)
    assert [one.sizes.tolist() for one in (table, grew, again)] == [[30, 30], [30, 45, 15], [30, 60, 30]]
    assert [getattr(one.method, "versions", 1) for one in (table, grew, again)] == [1, 2, 3]
    assert (again.published[0] == table.published[0]).all()  # nobody new is in this ward
    assert again.epsilon == table.epsilon
    assert again.certificate["method"] == "masked"
    assert "same is promised of the rows of each version" in again.certificate["terms"][-2]
    assert any("may weigh versions" in line for line in again.certificate["not_prevented"])
    low, high = tc.reconstruct(again, where={"ward": "b"}, value="flu").interval(0.999)
    assert low <= 20 <= high


@pytest.mark.parametrize("changed", [{"method": "sample"}, {"method": "masked", "tails": "each"}])
def test_other_tables_take_new_groups_alone(changed: dict[str, str]) -> None:
    table = tc.publish.reconstruction_private(FIRST, **PROMISE, **changed)
    with pytest.raises(tc.PlanError, match="must have groups that are all old or all new"):
        tc.publish.append(table, LATER)
    assert tc.publish.append(table, LATER[LATER.ward == "c"]).sizes.tolist() == [30, 30, 15]
