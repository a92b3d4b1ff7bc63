"""What a record about a line can tell: any range, running counts, quantiles; and what it refuses."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import noise
from tacit.plan.questions.ranges import MOST_LISTED

SMALL = tc.Domain({"x": tc.Integers(10, 33), "sick": tc.Flag()})
LARGE = tc.Domain({"x": tc.Integers(0, 1999)})
RNG = np.random.default_rng(7)
PEOPLE = pd.DataFrame({"x": RNG.integers(10, 34, 400), "sick": RNG.random(400) < 0.5})
MANY = pd.DataFrame({"x": np.minimum(RNG.geometric(0.005, 3000), 1999)})


def session(secrets: Any = None, *, large: bool = False, **options: Any) -> tc.Session:
    secrets = tc.secrets.within(4, "x") if secrets is None else secrets
    return tc.Session(tc.Policy(LARGE if large else SMALL, secrets, **options), MANY if large else PEOPLE, budget=1000)


QUARTILES = tc.quantiles("x", [0.25, 0.75])


@pytest.mark.one_in(8)
@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("query", [tc.ranges("x", "all"), tc.cumulative("x"), QUARTILES], ids=str)
def test_any_range_is_a_difference_of_running_counts(query, consistent):
    record = session().release(query, epsilon=1, consistent=consistent)
    running = record.running
    assert running[-1] == len(PEOPLE)  # the number of people is public
    for low, high in ((10, 33), (10, 10), (11, 20), (33, 33)):
        before = running[low - 11] if low > 10 else 0.0
        assert record.range(low, high) == pytest.approx(running[high - 10] - before)
        lower, upper = record.interval(0.9, low, high)
        assert lower <= record.range(low, high) <= upper
    assert record.range(10, 33) == len(PEOPLE)
    assert record.interval(0.9, 10, 33) == (400.0, 400.0)
    assert record.range([10, 12], [10, 15]).tolist() == [record.range(10, 10), record.range(12, 15)]
    if consistent or query == QUARTILES:
        assert (np.diff(running) >= 0).all()
        assert running[0] >= 0


def test_all_ranges_of_a_small_line_are_listed_and_read_off_alike():
    record = session().release(tc.ranges("x", "all"), epsilon=1)
    assert len(record.values) == 24 * 25 // 2
    frame, (lower, upper) = record.frame, record.interval(0.8)
    for row in (0, 1, 57, 299):
        ends = frame["x from"][row], frame["x to"][row]
        assert record.values[row] == record.range(*ends)
        assert (lower[row], upper[row]) == pytest.approx(record.interval(0.8, *ends))


def test_a_line_with_too_many_ranges_lists_its_values(tmp_path: Path):
    ranges = 2000 * 2001 // 2
    assert ranges > MOST_LISTED
    made = session(large=True)
    explained = made.explain(tc.ranges("x", "all"), epsilon=1, show=False)
    assert f"{ranges:,} ranges of 2,000 values" in str(explained)
    record = made.release(tc.ranges("x", "all"), epsilon=1)
    assert record.frame.columns.tolist() == ["x", "value", "lower", "upper", "up to"]
    assert len(record.frame) == len(record.values) == 2000
    assert record.values[17] == record.range(17, 17)
    assert record.range(3, 1500) == pytest.approx(record.running[1500] - record.running[2])
    lower, upper = record.running_interval(0.9)
    assert ((lower <= record.running) & (record.running <= upper)).all()
    record.save(tmp_path / "saved")
    assert len(pd.read_csv(tmp_path / "saved" / "values.csv")) == 2000
    assert record.chart() is not None


def test_quantiles_are_read_off_any_record_about_a_line():
    for query in (tc.ranges("x", "all"), tc.cumulative("x"), tc.quantiles("x", [0.5])):
        record = session().release(query, epsilon=20)
        shares = [0.1, 0.5, 0.9]
        true = np.quantile(PEOPLE["x"], shares, method="inverted_cdf")
        lower, upper = record.quantile_interval(0.999, shares)
        assert ((lower <= true) & (true <= upper)).all()
        found = record.quantiles(shares)
        assert ((lower <= found) & (found <= upper)).all()
        assert record.median() == found[1]


def test_quantiles_of_a_record_are_those_of_the_question():
    stream = b"tacit: one line, many questions."
    with noise.replayed(noise.Keystream(key=stream)):
        asked = session().release(tc.quantiles("x", [0.25, 0.75]), epsilon=1)
    with noise.replayed(noise.Keystream(key=stream)):
        counts = session().release(tc.cumulative("x"), epsilon=1)
    assert counts.quantiles([0.25, 0.75]).tolist() == asked.values.tolist()
    assert [ends.tolist() for ends in counts.quantile_interval(0.9, [0.25, 0.75])] == [
        ends.tolist() for ends in asked.interval(0.9)
    ]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("ask", "key", "rule"),
    [
        (lambda r: r.range(9, 12), "range", "must be"),
        (lambda r: r.range(10, 34), "range", "must be"),
        (lambda r: r.range("ten", 34), "range", "must be"),
        (lambda r: r.range(12, 11), "range", "must not end before it starts"),
        (lambda r: r.range([10, 12], [11]), "range", "must have as many lower as upper ends"),
        (lambda r: r.range([10, 12], 11), "range", "must have as many lower as upper ends"),
        (lambda r: r.interval(1.5, 10, 12), "level", "must lie strictly between 0 and 1"),
        (lambda r: r.interval(0.9, 12, 11), "range", "must not end before it starts"),
        (lambda r: r.interval(0.9, 12), "range", "must be"),
        (lambda r: r.quantiles([0.5, 1.0]), "quantiles.at", "must lie strictly between 0 and 1"),
        (lambda r: r.quantiles([]), "quantiles.at", "must list 1 to 1,000 shares"),
    ],
)
def test_what_is_no_range_is_refused(ask, key, rule):
    record = session().release(tc.ranges("x", "all"), epsilon=1)
    with pytest.raises(tc.PlanError) as refusal:
        ask(record)
    assert refusal.value.key.startswith(key)
    assert rule in refusal.value.rule
    assert refusal.value.fix


def test_ends_of_exact_counts_bound_every_range():
    """Blocks of six: their totals are exact, and no interval of a part goes beyond its block."""
    made = session(tc.secrets.partition("x", width=6))
    record = made.release(tc.ranges("x", "all"), epsilon="1/100", consistent=True)
    true = PEOPLE["x"].value_counts().sort_index().reindex(range(10, 34), fill_value=0).to_numpy()
    for start in range(0, 24, 6):
        block = int(true[start : start + 6].sum())
        assert record.range(10 + start, 15 + start) == block
        assert record.interval(0.95, 10 + start, 15 + start) == (block, block)
        lower, upper = record.interval(0.95, 11 + start, 14 + start)
        assert 0 <= lower <= upper <= block
    assert (np.diff(record.running) >= 0).all()


def test_no_range_is_negative_where_that_is_asked_for():
    record = session().release(tc.ranges("x", "all"), epsilon="1/100", nonnegative=True)
    assert record.values.min() == 0
    assert min(record.range(value, value) for value in range(10, 34)) == 0


def test_people_whom_a_predicate_picks_have_a_line_of_their_own():
    made = session()
    record = made.release(tc.ranges("x", "all", where="sick == True"), epsilon=1)
    assert record.range(10, 33) == int(PEOPLE["sick"].sum())  # no secret edge changes who is sick
    secret = session(tc.secrets.within(4, "x") | tc.secrets.attributes("sick"))
    record = secret.release(tc.ranges("x", "all", where="sick == True"), epsilon=1)
    lower, upper = record.interval(0.95, 10, 33)
    assert lower < upper


def test_a_record_about_a_line_travels_without_its_rows():
    record = session().release(tc.ranges("x", "all"), epsilon=1)
    twin = pickle.loads(pickle.dumps(record))  # noqa: S301 - our own
    assert twin.range(11, 20) == record.range(11, 20)
    assert twin.interval(0.9, 11, 20) == record.interval(0.9, 11, 20)


def test_explanations_say_what_was_compared():
    explained = session().explain(tc.ranges("x", "all"), epsilon=1, show=False)
    assert explained.candidates[explained.chosen] == pytest.approx(explained.expected_mse)
    assert min(explained.candidates.values()) == pytest.approx(explained.expected_mse)
    assert list(explained.candidates.values()) == sorted(explained.candidates.values())
    text = str(explained)
    for name in explained.candidates:
        assert name in text
    assert explained.document()["candidates"] == explained.candidates
    one = session().explain(tc.count("sick == True"), epsilon=1, show=False)
    assert one.candidates == {one.chosen: one.expected_mse}


LISTED = [[10, 19], [20, 33], [10, 19], [15, 15]]


@pytest.mark.parametrize("secrets", [tc.secrets.everything(), tc.secrets.attributes("sick")], ids=["noisy", "exact"])
def test_ranges_that_were_measured_by_themselves_are_told_and_no_others(secrets):
    record = session(secrets).release(tc.ranges("x", LISTED[:2]), epsilon=1)
    assert record.plan.strategy == "direct"
    lower, upper = record.interval(0.9)
    for at, ends in enumerate(LISTED[:2]):
        assert record.range(*ends) == record.values[at]
        assert record.interval(0.9, *ends) == (lower[at], upper[at]) == record.range_ends(0.9, *ends)
    assert record.range([20, 10], [33, 19]).tolist() == record.values[[1, 0]].tolist()
    assert record.interval(0.9, [20], [33])[1].tolist() == [upper[1]]
    with pytest.raises(tc.PlanError) as refusal:
        record.range(10, 20)
    assert str(refusal.value) == (
        "range cannot be told: only the listed ranges of x were measured, each by itself; got [10, 20]. "
        "List it too, or ask for ranges('x', 'all')."
    )
    for ask in (
        lambda: record.interval(0.9, 11, 19),
        lambda: record.running,
        lambda: record.running_interval(),
        lambda: record.quantiles([0.5]),
        lambda: record.quantile_interval(0.9, [0.5]),
        lambda: record.median(),
    ):
        with pytest.raises(tc.PlanError, match=r"only the listed ranges of x were measured"):
            ask()


def test_a_range_that_is_listed_twice_is_told_by_its_first_answer():
    record = session(tc.secrets.everything()).release(tc.ranges("x", LISTED), epsilon=1)
    assert record.plan.strategy == "direct"
    assert record.range(10, 19) == record.values[0]


@pytest.mark.parametrize("query", [tc.ranges("x", "all"), tc.ranges("x", LISTED[:2])], ids=str)
def test_a_refused_end_of_a_range_is_named(query):
    record = session(tc.secrets.everything()).release(query, epsilon=1)
    for low, high, words in (
        (9, 12, "range of x (lower end) must"),
        (10, "b", "range of x (upper end) must"),
        (10, [12], "range of x must have as many lower as upper ends"),
        (19, 10, "range of x must not end before it starts; got [19, 10]. Swap the ends."),
        (10, None, "range of x (upper end) must be given. Give both ends: low, high."),
    ):
        with pytest.raises(tc.PlanError) as refusal:
            record.interval(0.9, low, high)
        assert words in str(refusal.value)


@pytest.mark.parametrize("share", [0, 1])
def test_the_ends_of_the_people_are_no_quantiles(share):
    with pytest.raises(tc.PlanError, match=r"must lie strictly between 0 and 1; got"):
        tc.quantiles("x", [share])
