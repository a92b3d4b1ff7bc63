"""True records through a session: what is shown, what it costs, what is refused."""

from __future__ import annotations

import itertools
import json
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from tacit.release.results.true_records import ends_of_trials

DOMAIN = tc.Domain(
    {
        "room": tc.Categories(list("ABC")),
        "day": tc.Integers(1, 40),
        "arrival": tc.Categories(["early", "ok", "late"]),
        "leaving": tc.Categories(["early", "ok"]),
    }
)
POLICY = tc.Policy(
    DOMAIN,
    tc.secrets.attributes("arrival", where="arrival == 'late'")
    | tc.secrets.attributes("leaving", where="leaving == 'early'"),
)
ROWS = pd.DataFrame(
    [
        (room, day, ["early", "ok", "late"][(3 * day + place) % 7 % 3], ["early", "ok", "ok"][(day + place) % 3])
        for place, room in enumerate("CAB")
        for day in range(40, 0, -1)
    ],
    columns=["room", "day", "arrival", "leaving"],
)
KEYED = tc.true_records(["room", "arrival"], key=["room", "day"])
RECORDS = tc.Policy(tc.Domain({"age": tc.Integers(0, 9), "ill": tc.Flag()}), tc.secrets.records("ill == True"))
PEOPLE = pd.DataFrame(
    {"id": range(300), "age": [at % 10 for at in range(300)], "ill": [at % 3 == 0 for at in range(300)]}
)


def session(policy=POLICY, rows=ROWS, budget=10, **more):
    return tc.Session(policy, rows, budget=budget, **more)


def test_with_a_key_there_is_a_row_for_each_key_in_order_and_what_is_shown_is_true():
    found = session().release(KEYED, epsilon=1.0).frame
    assert found.columns.tolist() == ["room", "arrival"]  # as asked for, since some of the key is among them
    true = ROWS.sort_values(["room", "day"]).reset_index(drop=True)
    assert found["room"].tolist() == true["room"].tolist()
    whole_key = session().release(tc.true_records("arrival", key=["room", "day"]), epsilon=1.0).frame
    assert whole_key.columns.tolist() == ["room", "day", "arrival"]
    assert whole_key["day"].tolist() == true["day"].tolist()
    shown = found["arrival"].notna()
    assert (found["arrival"][shown] == true["arrival"][shown]).all()
    assert "late" not in set(found["arrival"][shown])
    assert 0 < shown.sum() < (true["arrival"] != "late").sum()


def test_the_same_again_is_the_same_and_costs_nothing_and_more_costs_the_difference():
    asked = session(budget=2)
    first = asked.release(KEYED, epsilon=1.0)
    assert asked.remaining == 1
    assert asked.release(KEYED, epsilon=1.0).frame.equals(first.frame)
    less = asked.release(KEYED, epsilon=0.5).frame
    assert asked.remaining == 1
    more = asked.release(KEYED, epsilon=1.75).frame
    assert asked.remaining == Fraction(1, 4)
    shown = [frame["arrival"].notna() for frame in (less, first.frame, more)]
    for smaller, larger in itertools.pairwise(shown):
        assert (smaller <= larger).all()
        assert smaller.sum() < larger.sum()
    with pytest.raises(tc.BudgetExceeded):
        asked.release(KEYED, epsilon=2.5)


def test_columns_that_share_a_coin_share_what_was_paid():
    asked = session(RECORDS, PEOPLE)
    ages = asked.release(tc.true_records("age", key="id"), epsilon=1).frame
    both = asked.release(tc.true_records(["age", "ill"], key="id"), epsilon=1).frame
    assert asked.remaining == 9
    assert ages["age"].equals(both["age"])
    assert (both["age"].notna() == both["ill"].notna()).all()


def test_each_application_has_coins_of_its_own_and_pays_for_them():
    asked = session()
    lighting, planning = (
        asked.release(tc.true_records("arrival", key=["room", "day"], application=who), epsilon=1).frame["arrival"]
        for who in ("lighting", "planning")
    )
    assert asked.remaining == 8
    open_to_both = (ROWS.sort_values(["room", "day"])["arrival"] != "late").to_numpy()
    assert (lighting.notna() != planning.notna())[open_to_both].any()


def test_without_a_key_records_come_sorted_and_every_asking_costs_all():
    asked = session(RECORDS, PEOPLE)
    question = tc.true_records(["age", "ill"])
    first, second = (asked.release(question, epsilon=1).frame for _ in range(2))
    assert asked.remaining == 8
    assert not first.equals(second)
    assert not first["ill"].any()
    assert first["age"].is_monotonic_increasing
    assert "costs all" in asked.release(question, epsilon=1).certificate["terms"][1]


def test_rows_in_another_order_are_the_same_rows():
    with tc.noise.replayed(tc.noise.Keystream(key=bytes(32))):
        one = session().release(KEYED, epsilon=1).frame
    with tc.noise.replayed(tc.noise.Keystream(key=bytes(32))):
        other = session(rows=ROWS.sample(frac=1, random_state=3)).release(KEYED, epsilon=1).frame
    assert one.equals(other)


def test_names_of_rows_may_be_columns_that_are_no_attributes():
    texts = PEOPLE.assign(id=[f"{at:04}" for at in PEOPLE["id"]])
    found = []
    for rows in (PEOPLE, texts):
        with tc.noise.replayed(tc.noise.Keystream(key=bytes(32))):
            found.append(session(RECORDS, rows).release(tc.true_records("age", key="id"), epsilon=1).frame)
    assert found[0]["id"].tolist() == list(range(300))
    assert found[0].equals(found[1])  # however a number is written, it is the same name and has the same coin


def test_public_columns_are_shown_as_they_are_and_exact_where_nothing_is_hidden():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("arrival"))
    asked = session(policy)
    record = asked.release(tc.true_records("leaving", key=["room", "day"]), epsilon=0.5)
    assert record.plan.is_exact
    assert record.frame["leaving"].tolist() == ROWS.sort_values(["room", "day"])["leaving"].tolist()
    assert asked.remaining == Fraction(19, 2)
    asked.release(tc.true_records("leaving", key=["room", "day"]), epsilon=0.5)
    assert asked.remaining == Fraction(19, 2)


def test_a_predicate_about_public_attributes_picks_rows():
    found = session().release(
        tc.true_records("arrival", key=["room", "day"], where="day <= 3 and room == 'B'"), epsilon=1
    )
    assert found.frame["day"].tolist() == [1, 2, 3]


def test_people_with_several_rows_share_epsilon_between_them():
    policy = tc.Policy(DOMAIN, POLICY.secrets, person="room", per_person=40)
    record = session(policy).release(KEYED, epsilon=1)
    assert record.plan.each == Fraction(1, 40)
    with pytest.raises(tc.DataRefused, match="at most 39 rows of one person"):
        session(tc.Policy(DOMAIN, POLICY.secrets, person="room", per_person=39)).release(KEYED, epsilon=1)


def test_what_is_asked_about_some_rows_must_hold_for_all():
    """Two rows under one key share a coin; of two questions, each about one of them, the one would tell the other."""
    rows = pd.DataFrame({"id": [1, 1, 2], "arrival": "ok", "leaving": "ok", "room": ["A", "B", "A"], "day": 1})
    with pytest.raises(tc.DataRefused, match="a key is there twice"):
        session(rows=rows).release(tc.true_records("arrival", key="id", where="room == 'A'"), epsilon=1)
    policy = tc.Policy(DOMAIN, POLICY.secrets, person="room", per_person=20)
    with pytest.raises(tc.DataRefused, match="at most 20 rows of one person"):
        session(policy).release(tc.true_records("arrival", key=["room", "day"], where="day <= 20"), epsilon=1)


@pytest.mark.parametrize(
    ("question", "policy", "says"),
    [
        (
            KEYED,
            tc.Policy(DOMAIN, tc.secrets.records("arrival == 'late'"), person="room", per_person=40),
            "says whose row it is, and a secret edge changes it (room A -> room B)",
        ),
        (KEYED, tc.Policy(DOMAIN, tc.secrets.everything()), "no record that may be shown"),
        (KEYED, tc.Policy(DOMAIN, POLICY.secrets, presence="secret"), "would show who takes part"),
        (tc.true_records("arrival"), tc.Policy(DOMAIN, tc.secrets.everything()), "no record that may be shown"),
        (KEYED, tc.Policy(DOMAIN, POLICY.secrets, person="id"), "must name id"),
        (tc.true_records("arrival"), tc.Policy(DOMAIN, POLICY.secrets, person="room"), "must name room"),
        (
            tc.true_records("arrival", where="arrival == 'ok'"),
            POLICY,
            "which a secret edge changes (arrival late -> arrival ok)",
        ),
        (KEYED, tc.Policy(DOMAIN, POLICY.secrets, [tc.known.marginal("arrival")]), "couples people"),
        (
            tc.true_records("age"),
            tc.Policy(tc.Domain({"age": tc.Integers(0, 3), "seen": tc.Items(2)}), tc.secrets.records("age == 1")),
            "without lists of items",
        ),
        (tc.true_records(["age", "age"]), RECORDS, "different attributes"),
        (tc.true_records("aeg"), RECORDS, "Did you mean 'age'"),
    ],
)
def test_what_no_derivation_allows_is_refused_with_what_forbids_it(question, policy, says):
    with pytest.raises(tc.PlanError) as refused:
        tc.explain(question, policy, 1)
    assert says in str(refused.value)


NO_ARRIVAL = "arrival == 'late' and arrival == 'ok'"


@pytest.mark.parametrize(
    ("secrets", "where"),
    [
        (tc.secrets.attributes("arrival", where=NO_ARRIVAL) | POLICY.secrets, "room == 'A'"),
        (tc.secrets.attributes("room", where="room == 'A' and room == 'B'") | POLICY.secrets, "room == 'A'"),
        (tc.secrets.partition("arrival", blocks=[["early", "late"], ["ok"]]), "arrival != 'ok'"),
        (tc.secrets.taking_part(where=NO_ARRIVAL) | POLICY.secrets, "day < 9"),
    ],
)
def test_a_predicate_or_key_that_no_edge_changes_is_allowed(secrets, where):
    """Edges that never begin change nothing, and others may leave what a predicate picks as it is."""
    question = tc.true_records("leaving", key=["room", "day"], where=where)
    assert session(tc.Policy(DOMAIN, secrets)).release(question, epsilon=1).rows == len(ROWS.query(where))


def test_what_is_known_and_no_edge_changes_does_not_matter():
    policy = tc.Policy(DOMAIN, POLICY.secrets, [tc.known.marginal("room"), tc.known.size(len(ROWS))])
    assert session(policy).release(KEYED, epsilon=1).rows == len(ROWS)
    other = tc.Policy(DOMAIN, POLICY.secrets, [tc.known.size(7)])
    with pytest.raises(tc.DataRefused, match="declared number of people, 7"):
        session(other).release(KEYED, epsilon=1)


@pytest.mark.parametrize(
    ("rows", "question", "column", "says"),
    [
        (pd.concat([ROWS, ROWS[:1]]), KEYED, "room, day", "a key is there twice"),
        (ROWS.assign(room=[None, *ROWS["room"][1:]]), KEYED, "room", "must have a value in every row"),
        (
            ROWS.assign(id=[None, *range(len(ROWS) - 1)]),
            tc.true_records("arrival", key="id"),
            "id",
            "must have a value",
        ),
        (ROWS.assign(id=["x", *["y"] * (len(ROWS) - 1)]), tc.true_records("arrival", key="id"), "id", "there twice"),
    ],
    ids=["twice", "missing", "missing name", "name twice"],
)
def test_keys_that_name_no_row_or_two_are_refused_with_attribute_rule_and_fix(rows, question, column, says):
    with pytest.raises(tc.DataRefused) as refused:
        session(rows=rows).release(question, epsilon=1)
    assert says in str(refused.value)
    assert refused.value.column == column
    assert "taken as known" in str(refused.value)
    assert "ask again: by the same key that costs nothing more" in refused.value.fix


@pytest.mark.parametrize(
    ("key", "says"), [("nobody", "must be a column of the data"), ("x", "must hold whole numbers, texts or dates")]
)
def test_columns_that_cannot_name_rows_are_refused_before_anything_is_charged(key, says):
    asked = session(rows=ROWS.assign(x=True))
    with pytest.raises(tc.DataRefused, match=says):
        asked.release(tc.true_records("arrival", key=key), epsilon=1)
    assert asked.remaining == 10


def test_questions_are_refused_that_name_nothing():
    for given in ({"columns": []}, {"columns": ["day"], "key": ["day"]}):
        with pytest.raises(tc.PlanError, match="must name a column that is no part of the key"):
            tc.true_records(**given)
    with pytest.raises(tc.PlanError, match="must be names of attributes"):
        tc.true_records(3)
    with pytest.raises(tc.PlanError, match="must be a name"):
        tc.true_records("age", application=4)


def test_estimates_are_unbiased_and_their_intervals_hold_the_true_number():
    ages, without, inside = [], (PEOPLE["ill"] == False).sum(), 0  # noqa: E712
    with tc.noise.replayed(tc.noise.Keystream(key=b"estimates of true records, unit.")):
        asked = session(RECORDS, PEOPLE, budget=30)
        for _ in range(25):
            record = asked.release(tc.true_records(["age", "ill"]), epsilon=0.7)
            found = record.estimate("age < 5")
            ages.append(found.value)
            low, high = record.interval(0.95)
            inside += low[0] <= without <= high[0]
    true = ((PEOPLE["age"] < 5) & ~PEOPLE["ill"]).sum()
    assert np.mean(ages) == pytest.approx(true, abs=4 * np.std(ages) / 5)
    assert inside >= 20


def test_open_records_count_as_they_are():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("arrival", where="room == 'A' and arrival == 'late'"))
    record = session(policy).release(tc.true_records("arrival", key=["room", "day"]), epsilon=1)
    others = ROWS[ROWS["room"] != "A"]
    assert record.estimate("arrival == 'late'").value >= (others["arrival"] == "late").sum()
    exact = record.estimate("arrival == 'late' and room == 'B'")
    assert exact.value == exact.lower == ((ROWS["arrival"] == "late") & (ROWS["room"] == "B")).sum()


def test_an_interval_is_that_of_the_binomial_law():
    from scipy.stats import binom

    for successes, share in ((0, 0.3), (3, 0.5), (40, 0.9)):
        low, high = ends_of_trials(successes, share, 0.9)
        inside = [
            trials
            for trials in range(successes, 100)
            if binom.sf(successes - 1, trials, share) > 0.05 and binom.cdf(successes, trials, share) > 0.05
        ]
        assert (low, high) == (inside[0], inside[-1])


def test_a_record_can_be_pickled_saved_and_drawn(tmp_path):
    record = session().release(KEYED, epsilon=1)
    again = pickle.loads(pickle.dumps(record))  # noqa: S301
    assert again.frame.equals(record.frame)
    folder = record.save(tmp_path / "out")
    written = pd.read_parquet(folder / "values.parquet").astype(object)
    assert written.fillna("-").values.tolist() == record.frame.astype(object).fillna("-").values.tolist()
    said = json.loads((folder / "certificate.json").read_text())
    assert said["noise"]["kept"] == "1 - exp(-1)"
    assert said["mechanism"] == "one-sided randomised response"
    assert "records" in json.dumps(record.chart().to_dict())


def test_nothing_that_a_record_keeps_tells_what_is_hidden():
    with tc.noise.replayed(tc.noise.Keystream(key=bytes(32))):
        one = session().release(KEYED, epsilon=1)
    changed = ROWS.copy()
    changed.loc[changed["arrival"] == "late", "leaving"] = "ok"  # not shown, and of hidden records
    with tc.noise.replayed(tc.noise.Keystream(key=bytes(32))):
        other = session(rows=changed).release(KEYED, epsilon=1)
    states = [
        pickle.dumps({k: v for k, v in r.__getstate__().items() if k not in ("plan", "promise")}) for r in (one, other)
    ]
    assert states[0] == states[1]


@pytest.mark.parametrize("column", ["arrival", "leaving"])
@pytest.mark.parametrize("cell", [None, "LATE "], ids=["nothing", "unlisted"])
@pytest.mark.parametrize("make", [lambda rows: rows, lambda rows: pl.from_pandas(rows).lazy()], ids=["pandas", "lazy"])
def test_with_a_key_a_cell_without_a_value_is_a_gap_like_others(column, cell, make):
    """The row stays, and whatever does not look at that cell is shown as if it were there."""
    rows = ROWS.astype({column: object})
    at = rows.index[(rows["arrival"] != "late") & (rows["leaving"] != "early")][3]
    rows.loc[at, column] = cell
    question = tc.true_records(["arrival", "leaving"], key=["room", "day"])
    found = []
    for given in (ROWS, rows):
        with tc.noise.replayed(tc.noise.Keystream(key=bytes(32))):
            record = session(rows=make(given)).release(question, epsilon=8)
            found.append(pd.DataFrame({name: list(cells) for name, cells in record.columns().items()}))
    place = ROWS.sort_values(["room", "day"]).index.get_loc(at)
    expected = found[0].copy()
    assert expected.loc[place, column] == ROWS.loc[at, column]
    expected.loc[place, column] = None
    assert expected.fillna("-").equals(found[1].fillna("-"))


def test_a_row_without_a_value_is_none_that_a_predicate_picks_and_counts_as_nobody():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("arrival", where="arrival == 'late'"), [tc.known.size(119)])
    rows = ROWS.astype({"leaving": object})
    rows.loc[7, "leaving"] = None
    key = ["room", "day"]
    for where in ("leaving == 'ok'", "leaving == 'early'", "not leaving == 'ok'"):
        found = session(policy, rows).release(tc.true_records("arrival", key=key, where=where), epsilon=1).frame
        assert rows.loc[7, key].tolist() not in found[key].to_numpy().tolist()
    assert len(session(policy, rows).release(tc.true_records("arrival", key=key), epsilon=1).frame) == 120
    exact = session(policy, rows).release(tc.true_records("leaving", key=key), epsilon=1)
    assert exact.plan.is_exact
    assert exact.frame["leaving"].isna().sum() == 1
    assert "no value" in exact.certificate["terms"][0]


def test_records_that_changed_under_their_keys_are_another_version_with_coins_of_its_own():
    """With the old coins, a gap that is filled after every secret has gone was one."""
    asked = session(budget=10)
    key = ["room", "day"]
    first = asked.release(tc.true_records("arrival", key=key), epsilon=1)
    other = asked.release(tc.true_records("arrival", key=key, version="May"), epsilon=1)
    assert asked.remaining == 8
    asked.release(tc.true_records("arrival", key=key, version="May"), epsilon=1)
    assert asked.remaining == 8
    assert "another version" in first.certificate["terms"][1]
    open_to_both = (ROWS.sort_values(key)["arrival"] != "late").to_numpy()
    assert (first.frame["arrival"].notna() != other.frame["arrival"].notna())[open_to_both].any()
    assert other.plan.query.document()["true_records"]["version"] == "May"
    assert str(other.plan.query) == "true_records(arrival; key room, day; version May)"


@pytest.mark.parametrize(("more", "says"), [({"version": 3, "key": "id"}, "a text"), ({"version": "x"}, "needs a key")])
def test_a_version_is_a_text_and_needs_a_key(more, says):
    with pytest.raises(tc.PlanError, match=says):
        tc.true_records("age", **more)


@pytest.mark.parametrize("ids", [[2**63 + 1, 5, 7], [2**64 + 5, -1, 3]], ids=["unsigned", "wider"])
@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_names_beyond_64_bits_can_be_shown_and_saved(ids, kind, tmp_path):
    rows = pd.DataFrame({"id": ids, "age": [1, 2, 3], "ill": False})
    if kind == "arrow":
        rows = pa.table({name: pa.array([str(cell) for cell in rows[name]]) for name in rows})
    record = session(RECORDS, rows).release(tc.true_records("age", key="id"), epsilon=1)
    shown = record.frame["id"].to_pylist() if kind == "arrow" else record.frame["id"].tolist()
    assert {int(one) for one in shown} == set(ids)
    saved = pd.read_parquet(record.save(tmp_path / "out") / "values.parquet")
    assert {int(one) for one in saved["id"]} == set(ids)


def test_a_key_that_is_there_twice_stays_paid_for_once_the_rows_are_repaired(tmp_path):
    """What the refusal says: the same again costs nothing more."""
    ledger = tmp_path / "ledger.db"
    with pytest.raises(tc.DataRefused, match="costs nothing more"):
        session(rows=pd.concat([ROWS, ROWS[:1]]), ledger=ledger, dataset="rooms").release(KEYED, epsilon=1)
    asked = session(ledger=ledger, dataset="rooms")
    assert asked.remaining == 9
    asked.release(KEYED, epsilon=1)
    assert asked.remaining == 9


@pytest.mark.parametrize("kept", [True, False])
def test_a_certificate_says_who_remembers_the_coins(kept, tmp_path):
    ledger = {"ledger": str(tmp_path / "ledger.db"), "dataset": "rooms"} if kept else {}
    said = " ".join(session(**ledger).release(KEYED, epsilon=1).certificate["terms"])
    assert "coins are remembered for each key" in said
    assert ("within this run or session only, since no ledger keeps them" in said) is not kept


def test_without_columns_all_attributes_beside_the_key_are_asked_for():
    keyed = tc.true_records(key=["room", "day"])
    assert str(keyed) == "true_records(all columns; key room, day)"
    plan = session().plan(keyed, 1)
    assert plan.query == tc.true_records(["arrival", "leaving"], key=["room", "day"])
    assert session().release(keyed, epsilon=1).frame.columns.tolist() == ["room", "day", "arrival", "leaving"]
    assert session(RECORDS, PEOPLE).release(tc.true_records(), epsilon=1).frame.columns.tolist() == ["age", "ill"]
    with pytest.raises(tc.PlanError, match="must name a column that is no part of the key"):
        session().plan(tc.true_records(key=list(DOMAIN)), 1)
    with pytest.raises(tc.PlanError, match="arrival"):  # no record may show it: refused, not left out
        session(tc.Policy(DOMAIN, tc.secrets.attributes("arrival"))).plan(tc.true_records(key=["room", "day"]), 1)
