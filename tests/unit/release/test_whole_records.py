"""True records whose key is itself a secret: shown as a whole, or nothing is left of them."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pandas as pd
import pytest

import tacit as tc

DOMAIN = tc.Domain(
    {
        "room": tc.Categories(list("ABC")),
        "day": tc.Integers(1, 200),
        "arrival": tc.Categories(["early", "ok", "late"]),
        "leaving": tc.Categories(["early", "ok"]),
    }
)
POLICY = tc.Policy(DOMAIN, tc.secrets.records("arrival == 'late'"))
ROWS = pd.DataFrame(
    [
        (room, day, ["early", "ok", "late"][(3 * day + place) % 7 % 3], ["early", "ok", "ok"][(day + place) % 3])
        for place, room in enumerate("CAB")
        for day in range(200, 0, -1)
    ],
    columns=["room", "day", "arrival", "leaving"],
)
OPEN = ROWS[ROWS["arrival"] != "late"]
ASKED = tc.true_records(columns=["room", "arrival"], key=["room", "day"])
WITH_KEY = tc.true_records("arrival", key=["room", "day"])
STREAM = b"tacit whole records, unit tests."


def session(rows=ROWS, policy=POLICY, budget=10):
    return tc.Session(policy, rows, budget=budget, dataset="rooms")


def lines(frame):
    return set(frame.itertuples(index=False, name=None))


@pytest.fixture(autouse=True)
def same_stream():
    with tc.noise.replayed(tc.noise.Keystream(key=STREAM)):
        yield


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_records_are_shown_as_they_are_in_the_asked_columns_and_leave_no_gaps(kind, tmp_path):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    asked = session(ROWS if kind == "frame" else tmp_path / "rows.parquet")
    found = asked.release(ASKED, epsilon=1.0)
    assert found.frame.columns.tolist() == ["room", "arrival"]
    assert not found.frame.isna().any().any()
    assert found.frame["room"].is_monotonic_increasing
    with_key = asked.release(WITH_KEY, epsilon=1.0).frame  # the same coins, for nothing
    assert asked.remaining == 9
    assert with_key.columns.tolist() == ["room", "day", "arrival"]
    assert lines(with_key) < lines(OPEN[["room", "day", "arrival"]])
    assert with_key[["room", "arrival"]].equals(found.frame)
    # 1 - 1/e of those without a secret, within five standard deviations
    assert found.rows / len(OPEN) == pytest.approx(0.6321, abs=5 * (0.2325 / len(OPEN)) ** 0.5)


def test_the_same_again_is_free_and_more_shows_more_for_the_difference():
    asked = session(budget=2)
    first = asked.release(WITH_KEY, epsilon=1.0).frame
    assert asked.release(WITH_KEY, epsilon=1.0).frame.equals(first)
    less = asked.release(WITH_KEY, epsilon=0.5).frame
    assert asked.remaining == 1
    more = asked.release(WITH_KEY, epsilon=1.75).frame
    assert asked.remaining == Fraction(1, 4)
    assert lines(less) < lines(first) < lines(more) < lines(OPEN[["room", "day", "arrival"]])
    with pytest.raises(tc.BudgetExceeded):
        asked.release(WITH_KEY, epsilon=2.5)


def test_other_columns_of_the_same_records_have_the_same_coins():
    asked = session()
    arrivals, leavings = (
        asked.release(tc.true_records(name, key=["room", "day"]), epsilon=1).frame[["room", "day"]]
        for name in ("arrival", "leaving")
    )
    assert arrivals.equals(leavings)
    assert asked.remaining == 9
    other = asked.release(tc.true_records("arrival", key=["room", "day"], application="lighting"), epsilon=1).frame
    assert not other[["room", "day"]].equals(arrivals)
    assert asked.remaining == 8


def test_rows_in_another_order_show_the_same():
    one = session().release(ASKED, epsilon=1)
    with tc.noise.replayed(tc.noise.Keystream(key=STREAM)):
        other = session(ROWS.sample(frac=1, random_state=3)).release(ASKED, epsilon=1)
    with tc.noise.replayed(tc.noise.Keystream(key=STREAM)):
        first = session().release(ASKED, epsilon=1)
    assert other.frame.equals(first.frame)
    assert one.plan.is_whole


def test_nothing_that_a_record_keeps_tells_what_is_hidden():
    """Hidden records move to other keys, and to other names of rows: what is kept is the same to the last byte."""
    rows = ROWS.assign(id=[f"id {at}" for at in range(len(ROWS))])
    moved = rows.copy()
    late = moved["arrival"] == "late"
    moved.loc[late, "leaving"] = "ok"
    moved.loc[late, "day"] = moved.loc[late, "day"].to_numpy()[::-1]
    moved.loc[late, "room"] = moved.loc[late, "room"].to_numpy()[::-1]
    for key in (["room", "day"], ["room", "id"]):
        states = []
        for some in (rows, moved.assign(id=rows["id"].where(~late, "gone " + rows["id"]))):
            with tc.noise.replayed(tc.noise.Keystream(key=STREAM)):
                found = session(some).release(tc.true_records("leaving", key=key), epsilon=1)
            kept = {name: value for name, value in found.__getstate__().items() if name not in ("plan", "promise")}
            states.append(pickle.dumps(kept))
        assert states[0] == states[1]


def test_a_predicate_about_what_no_edge_changes_picks_among_the_shown():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("room", "arrival", where="arrival == 'late'"))
    assert "day" not in policy.moved_attributes
    asked = session(policy=policy)
    some = asked.release(tc.true_records("arrival", key=["room", "day"], where="day <= 50"), epsilon=1).frame
    everything = asked.release(WITH_KEY, epsilon=1).frame
    assert lines(some) == lines(everything[everything["day"] <= 50])
    assert asked.remaining == 9


def test_people_with_several_rows_share_epsilon_between_them():
    rows = ROWS.assign(id=ROWS.index // 2)
    policy = tc.Policy(DOMAIN, POLICY.secrets, person="id", per_person=2)
    record = session(rows, policy).release(tc.true_records("arrival", key=["id", "day"]), epsilon=1)
    assert record.plan.is_whole
    assert record.plan.each == Fraction(1, 2)
    assert set(record.frame["arrival"]) == {"early", "ok"}
    with pytest.raises(tc.DataRefused, match="at most 1 rows of one person"):
        session(rows, tc.Policy(DOMAIN, POLICY.secrets, person="id")).release(
            tc.true_records("arrival", key=["id", "day"]), epsilon=1
        )


def test_estimates_do_not_take_the_number_of_rows_for_public():
    record = session().release(ASKED, epsilon=1)
    low, high = record.interval(0.99)
    assert low[0] <= len(OPEN) <= high[0]
    assert high[0] > record.rows
    found = record.estimate("room == 'A'", level=0.99)
    assert found.lower <= (OPEN["room"] == "A").sum() <= found.upper


def test_who_may_be_absent_is_never_shown():
    policy = tc.Policy(DOMAIN, POLICY.secrets | tc.secrets.taking_part(where="leaving == 'early'"))
    found = session(policy=policy).release(tc.true_records(["arrival", "leaving"], key=["room", "day"]), epsilon=1)
    assert set(found.frame["leaving"]) == {"ok"}
    assert set(found.frame["arrival"]) == {"early", "ok"}
    with pytest.raises(tc.PlanError, match="no record that may be shown"):
        tc.explain(ASKED, tc.Policy(DOMAIN, POLICY.secrets, presence="secret"), 1)


@pytest.mark.parametrize(
    ("rows", "column", "says"),
    [
        (pd.concat([ROWS, ROWS[:1]]), "room, day", "a key is there twice"),
        (pd.concat([ROWS, ROWS[ROWS["arrival"] == "late"][:1]]), "room, day", "a key is there twice"),
        (ROWS.assign(room=[None, *ROWS["room"][1:]]), "room", "must have a value in every row"),
    ],
    ids=["twice", "a hidden one twice", "missing"],
)
def test_keys_that_name_no_record_or_two_are_refused_with_attribute_rule_and_fix(rows, column, says):
    with pytest.raises(tc.DataRefused) as refused:
        session(rows).release(ASKED, epsilon=1)
    assert says in str(refused.value)
    assert refused.value.column == column
    assert refused.value.fix


def test_a_certificate_says_what_is_taken_as_known():
    record = session().release(ASKED, epsilon=1)
    assert any("no two the same, is taken as known" in term for term in record.certificate["terms"])
    assert record.certificate["mechanism"] == "one-sided randomised response"
    public = tc.Policy(DOMAIN, tc.secrets.attributes("arrival", where="arrival == 'late'"))
    plan = tc.explain(ASKED, public, 1).plan
    assert not plan.is_whole
    assert not any("taken as known" in term for term in plan.terms())


def test_limits_on_leakage_refuse_a_key_that_the_dependence_lacks():
    dependence = tc.Dependence.from_table(
        {("early", "early"): 0.3, ("ok", "ok"): 0.3, ("late", "ok"): 0.4}, names=("arrival", "leaving")
    )
    limits = tc.Applications(
        dependence, sensitive={"arrival": ["late"]}, coalitions={"lighting": ["lighting"]}, limit={"lighting": 0.5}
    )
    asked = tc.Session(POLICY, ROWS, budget=5, leakage=limits)
    with pytest.raises(tc.TacitError, match="room"):
        asked.release(tc.true_records("arrival", key=["room", "day"], application="lighting"), epsilon=0.1)
    assert asked.remaining == 5
