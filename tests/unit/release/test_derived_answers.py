"""Means and quantiles as they are published: of nobody, with the digits of their intervals, in units of the data."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.errors import PlanError
from tacit.release.results.value_files import rounded, with_interval, write_csv
from tacit.report.csv_tables import write_release
from tacit.report.text import plan_table

DOMAIN = tc.Domain(
    {
        "cost": tc.Decimals(0, 1000, step=0.5),
        "ward": tc.Categories(["a", "b", "c"]),
        "sick": tc.Flag(),
        "frost": tc.Decimals(-30, 30, step=0.1),
    }
)
FRAME = pd.DataFrame(
    {"cost": [1.5, 2.5, 10.0], "ward": ["a", "a", "b"], "sick": [True, False, True], "frost": [-1.5, -2.0, -30.0]}
)
PUBLIC = tc.Policy(DOMAIN, tc.secrets.attributes("sick"))  # nothing about costs and wards is secret
SECRET = tc.Policy(DOMAIN, tc.secrets.everything(), presence="secret")
OF_NOBODY = (
    tc.mean("cost", where="ward == 'c'"),
    tc.median("cost", where="ward == 'c'"),
    tc.quantiles("cost", at=[0.1, 0.9], where="ward == 'c'"),
)


def read(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("query", OF_NOBODY, ids=str)
def test_nobody_has_no_mean_and_no_quantile_where_that_is_exact(query, tmp_path):
    record = tc.Session(PUBLIC, FRAME, budget=1).release(query, 0.1)
    assert np.isnan([record.values, *record.interval()]).all()
    rows = read(record.save(tmp_path / "out") / "values.csv")
    assert all(row[1:] == ["", "", ""] for row in rows[1:])
    assert "NaN" not in json.dumps(record.chart().to_dict())
    assert record.summary() == ("nobody" if len(record.values) == 1 else "in the report")


def test_only_groups_without_people_have_no_mean():
    record = tc.Session(PUBLIC, FRAME, budget=1).release(tc.mean("cost", by="ward"), 0.1)
    assert record.values[:2].tolist() == [2.0, 10.0]
    assert np.isnan(record.values[2])
    assert record.plan.terms() == ["a group without people has no mean: its value and its interval are empty"]
    assert "NaN" not in json.dumps(record.chart().to_dict())


@pytest.mark.one_in(5)
@pytest.mark.parametrize("query", [*OF_NOBODY, tc.mean("cost", by="ward")], ids=str)
def test_where_there_may_be_nobody_the_interval_is_the_whole_range(query):
    # on one stream: an interval may miss, and of fresh noise one in 30 says that somebody is in some ward
    with tc.noise.replayed(tc.noise.Keystream(key=b"nobody in some ward, as it seems")):
        record = tc.Session(SECRET, FRAME, budget=1).release(query, 0.001)
    lower, upper = record.interval()
    assert (lower == 0).all()
    assert (upper == 1000).all()
    assert not np.isnan(record.values).any()


@dataclass
class Measured:
    values: np.ndarray
    ends: tuple[float, float]

    @property
    def exact(self) -> np.ndarray:
        return np.zeros(1, dtype=np.bool_)

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        return np.array([self.ends[0]]), np.array([self.ends[1]])


@pytest.mark.parametrize(("fewest", "ends"), [(0.0, (0.0, 1000.0)), (2.0, (499.5, 500.5))])
def test_a_sum_says_nothing_about_the_mean_of_nobody(fewest, ends):
    sums, counts = Measured(np.array([0.0]), (-1.0, 1.0)), Measured(np.array([3.0]), (fewest, 5.0))
    lower, upper = tc.mean("cost").ends((sums, counts), DOMAIN, 0.95)
    assert (lower[0], upper[0]) == ends


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_where_only_some_counts_are_exact_sums_and_counts_share_the_error(level):
    domain = tc.Domain({"cost": DOMAIN["cost"], "ward": tc.Integers(0, 39)})
    secrets = tc.secrets.partition("ward", blocks=[[0, 1], *([ward] for ward in range(2, 40))])
    frame = pd.DataFrame({"cost": [100.0, 200.0, 300.0] * 500, "ward": [0, 1, 2] * 500})
    policy = tc.Policy(domain, secrets | tc.secrets.attributes("cost"))
    record = tc.Session(policy, frame, budget=9).release(tc.mean("cost", by="ward"), 4)
    sums, counts = record.parts
    assert counts.exact.tolist() == [False, False, *[True] * 38]
    assert not sums.exact.any()
    (least, largest), (fewest, most) = (part.interval((1 + level) / 2) for part in (sums, counts))
    # the sums are counted from the middle and negative here: the fewest people make the lowest mean
    assert (largest < 0)[:3].all()
    lower, upper = record.interval(level)
    middle = tc.mean("cost").sums(domain).origin * 0.5
    assert lower[:2] == pytest.approx(middle + least[:2] / fewest[:2])
    assert upper[:2] == pytest.approx(middle + largest[:2] / most[:2])


@dataclass
class Counts:
    """Cumulative counts whose intervals are given, for whatever level."""

    lower: list[float]
    upper: list[float]
    exact: np.ndarray
    asked: list[float] = field(default_factory=list)

    @property
    def values(self) -> np.ndarray:
        return (np.array(self.lower) + np.array(self.upper)) / 2

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        self.asked.append(level)
        return np.array(self.lower), np.array(self.upper)


NUMBERS = tc.Domain({"n": tc.Integers(0, 4)})


def counts_of(lower: list[float], upper: list[float], *, known: bool) -> Counts:
    return Counts(lower, upper, np.array([False] * 4 + [known]))


@pytest.mark.parametrize(("known", "counts"), [(True, 2), (False, 3)])
def test_quantiles_share_the_error_with_every_count_that_may_fail(known, counts):
    found = counts_of([10, 20, 30, 40, 50], [10, 20, 30, 40, 50], known=known)
    tc.median("n").ends((found,), NUMBERS, 0.94)
    assert found.asked == [pytest.approx(1 - 0.06 / counts)]


def test_a_quantile_may_be_the_value_after_the_last_count_that_may_miss_its_share():
    found = counts_of([5, 15, 25, 45, 60], [15, 25, 35, 55, 60], known=True)
    # 30 people are needed: up to 2 there may be 35, up to 2 there may be but 25, and up to 3 there are 45 at least
    lower, upper = tc.median("n").ends((found,), NUMBERS, 0.95)
    assert (lower.tolist(), upper.tolist()) == ([2], [3])
    lower, upper = tc.quantiles("n", [0.05, 0.99]).ends((found,), NUMBERS, 0.95)
    assert (lower.tolist(), upper.tolist()) == ([0, 4], [0, 4])


# 7 % of 100 in floats is a hair more than 7, and 29 % a hair less than 29
@pytest.mark.parametrize(("share", "people"), [(0.07, 7), (0.29, 29)])
@pytest.mark.parametrize("off", [-1e-12, 0.0, 1e-12])
def test_a_share_that_is_reached_exactly_is_reached_whatever_floats_say(share, people, off):
    sure = [1.0, people + off, people + 40, people + 50, 100.0]
    found = counts_of(sure, sure, known=True)
    asked = tc.quantiles("n", [share])
    assert asked.values((found,), NUMBERS).tolist() == [1]
    lower, upper = asked.ends((found,), NUMBERS, 0.95)
    assert lower.tolist() == [1]
    # a count that is a hair above the share in floats may lie a hair below it
    assert upper.tolist() == [2]


def test_what_is_not_exact_is_said_where_there_are_groups_and_noise():
    said = "a mean is about groups that have people; which groups have none is not said exactly"
    session = tc.Session(SECRET, FRAME, budget=1)
    assert session.plan(tc.mean("cost", by="ward"), 0.1).terms() == [said]
    assert session.plan(tc.mean("cost"), 0.1).terms() == []


def test_expected_errors_say_for_whom_and_are_never_larger_than_the_range():
    groups, alone = tc.mean("cost", by="ward"), tc.quantiles("cost", [0.1, 0.9])
    for query, whom in ((groups, "1,000 people in each group"), (alone, "1,000 people")):
        explained = tc.explain(query, SECRET, 0.1)
        *_, line = explained.plan.predictions()
        assert f"for {whom}" in line
        assert "declare `known: [{size: N}]`" in line
        assert f"are for {whom}" in str(plan_table([explained]).caption)
        assert 400 < tc.explain(query, SECRET, 0.00001).plan.rmse <= 1000
    known = tc.Policy(DOMAIN, tc.secrets.attributes("cost"), known=[tc.known.size(90_000)])
    plan = tc.explain(groups, known, 0.1).plan
    assert plan.people == 30_000
    assert plan.assumption == "30,000 people in each group"
    assert "declare" not in plan.predictions()[0]
    assert tc.explain(tc.histogram("ward"), SECRET, 0.1).plan.assumption == ""


def test_digits_follow_the_published_intervals():
    policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 110)}), tc.secrets.everything())
    frame = pd.DataFrame({"age": np.tile(np.arange(111), 3000)})
    for query in (tc.mean("age"), tc.quantiles("age", [tenth / 10 for tenth in range(1, 10)])):
        record = tc.Session(policy, frame, budget=1).release(query, 0.01)
        lower, upper = record.interval()
        widths = upper - lower
        assert record.digits_for == pytest.approx(widths[widths > 0].min(initial=np.inf) / 4 if widths.any() else 0)
        value, low, high = (
            rounded(
                name, numbers, 0 if record.digits_for == 0 else max(0, int(np.ceil(np.log10(2 / record.digits_for))))
            )
            for name, numbers in (("value", record.values), ("lower", lower), ("upper", upper))
        )
        assert (np.array(high) - np.array(low) <= widths * 1.5 + 1e-9).all()
        assert (np.abs(np.array(value) - record.values) <= np.maximum(widths, 1e-6) / 8).all()


@pytest.mark.parametrize("number", [10200987 * 0.1, 1020098.7, 1 / 3, 2.5, 123456789.1, -1020098.7, 0.0])
def test_an_exact_number_has_both_ends_equal_to_it(number, tmp_path):
    numbers = {name: np.array([number]) for name in ("value", "lower", "upper")}
    write_csv(tmp_path / "one.csv", {"what": ["x"]}, numbers, error=0.0)
    _, (_, value, lower, upper) = read(tmp_path / "one.csv")
    assert value == lower == upper


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e5, 1e9])
def test_ends_of_intervals_are_never_rounded_inwards(size):
    numbers = np.array([0.1234567891, 0.1, 0.7, 0.30000000000000004]) * size
    for decimals in range(7):
        slack = 4 * np.spacing(np.abs(numbers)) + 1e-6 / 10**decimals
        assert (np.array(rounded("lower", numbers, decimals)) <= numbers + slack).all()
        assert (np.array(rounded("upper", numbers, decimals)) >= numbers - slack).all()


def test_what_is_about_nobody_is_said():
    assert with_interval(np.nan, np.nan, np.nan, 0.0) == "nobody"


def test_steps_are_told_in_the_units_of_the_data_or_beside_their_unit():
    policy = tc.Policy(DOMAIN, tc.secrets.within(0.5, "frost"))
    query = tc.total("frost")
    assert tc.largest_step(query, policy).up == 5  # whole units, for the calculus
    said = str(tc.explain(query, policy, 1))
    assert "largest step: up 0.5, down 0.5, in all 0.5 (Euclidean 0.5)" in said
    assert "falls by up to 0.5, rises by up to 0.5, 0.5 in all" in said
    certificate = tc.Session(policy, FRAME, budget=1).release(query, 0.5).certificate
    assert certificate["step"]["unit"] == certificate["noise"]["unit"] == "0.1"
    assert certificate["step"]["up"] == 5
    counts = tc.Session(policy, FRAME, budget=1).release(tc.histogram("frost"), 0.5).certificate
    assert "unit" not in counts["step"]
    assert "unit" not in counts["noise"]


def test_steps_of_derived_answers_are_told_of_what_is_measured():
    assert "largest step of a sum: up" in str(tc.explain(tc.mean("frost"), SECRET, 1))
    near = tc.Policy(DOMAIN, tc.secrets.within(0.5, "frost"))
    assert "largest step of a running count: up" in str(tc.explain(tc.quantiles("frost", [0.1, 0.9]), near, 1))


@pytest.mark.parametrize("query", [tc.total("frost"), tc.mean("cost"), tc.median("cost")], ids=str)
def test_nonnegative_is_refused_where_it_means_nothing(query):
    session = tc.Session(SECRET, FRAME, budget=1)
    with pytest.raises(PlanError, match="is for counts, and for totals of numbers that are never below zero"):
        session.release(query, 0.1, nonnegative=True)
    assert session.remaining == 1


def test_a_total_of_numbers_that_are_never_negative_can_be_kept_from_being_negative():
    session = tc.Session(SECRET, FRAME[:0], budget=50)
    values = [session.release(tc.total("cost", by="ward"), 1, nonnegative=True).values for _ in range(5)]
    assert (np.array(values) >= 0).all()


@pytest.mark.parametrize(
    "query", [tc.total("cost", by=["ward", "sick"]), tc.mean("cost", by=["ward", "sick"])], ids=str
)
def test_answers_by_two_attributes_get_a_cross_table(query, tmp_path):
    record = tc.Session(PUBLIC, FRAME, budget=1).release(query, 0.5)
    assert write_release(tmp_path, "x", record) == ["x.csv", "x.cross.csv"]
    rows = read(tmp_path / "x.cross.csv")
    assert [row[0] for row in rows] == ["ward by sick", "a", "b", "c"]
    assert len(rows[0]) == 3
    assert "share" not in (tmp_path / "x.csv").read_text(encoding="utf-8")


def test_an_exact_quantile_is_one_number():
    """Also where a share is reached exactly: the median of 1, 2, 3, 4 is 2, and nothing else."""
    frame = pd.DataFrame({"cost": [1.0, 2.0, 3.0, 4.0], "ward": "a", "sick": True, "frost": 0.0})
    record = tc.Session(PUBLIC, frame, budget=1).release(tc.quantiles("cost", [0.5, 0.75]), 0.5)
    assert record.plan.is_exact
    lower, upper = record.interval()
    assert record.values.tolist() == lower.tolist() == upper.tolist() == [2, 3]
