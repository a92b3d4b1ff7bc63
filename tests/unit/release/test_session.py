"""A session from the user's side: plan, charge, release, frames, certificates, refusals."""

from __future__ import annotations

import contextlib
import copy
import gc
import json
import os
import pickle
import weakref
from fractions import Fraction
from types import FunctionType, ModuleType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from tacit import noise

DOMAIN = tc.Domain(
    {"age": tc.Integers(0, 9), "sex": tc.Categories(["m", "f"]), "disease": tc.Categories(["flu", "hiv"])}
)
POLICY = tc.Policy(DOMAIN, tc.secrets.within(2, "age") | tc.secrets.attributes("disease"))
PEOPLE = pd.DataFrame({"age": [0, 1, 2, 3, 9, 9], "sex": ["m", "m", "f", "f", "f", "f"], "disease": ["flu", "hiv"] * 3})


def session(policy=POLICY, rows=PEOPLE, budget=1.0, **more):
    return tc.Session(policy, rows, budget=budget, **more)


def test_a_release_spends_and_refuses_when_the_budget_is_gone():
    s = session()
    s.release(tc.count("age < 5"), epsilon=0.75)
    assert s.remaining == Fraction(1, 4)
    with pytest.raises(tc.BudgetExceeded) as refused:
        s.release(tc.count("age < 5"), epsilon=0.3)
    assert str(refused.value) == (
        "epsilon must not exceed what remains, 0.25; got 0.3. Ask for less, or start a session with a larger budget."
    )
    assert s.remaining == Fraction(1, 4)
    s.release(tc.count("age < 5"), epsilon="1/4")
    assert s.remaining == 0


def test_epsilons_add_up_exactly():
    s = session(budget=0.3)
    for _ in range(3):
        s.release(tc.count("age < 5"), epsilon=0.1)
    assert s.remaining == 0


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "much", None, True, 2000])
def test_an_epsilon_that_is_none_is_refused_before_anything_is_charged(epsilon):
    s = session()
    with pytest.raises(tc.PlanError, match="epsilon"):
        s.release(tc.count(), epsilon=epsilon)
    assert s.remaining == 1


def test_what_no_secret_edge_changes_is_exact():
    record = session().release(tc.histogram("sex"), epsilon=0.01)
    assert record.values.tolist() == [2, 4]
    assert record.plan.mechanism == "exact"
    lower, upper = record.interval()
    assert lower.tolist() == upper.tolist() == [2, 4]


def test_exact_margins_are_kept():
    record = session().release(tc.histogram("sex", "disease"), epsilon=0.1)
    assert record.values.reshape(2, 2).sum(1) == pytest.approx([2, 4])


def test_blocks_keep_their_totals_and_one_member_blocks_are_exact():
    policy = tc.Policy(DOMAIN, tc.secrets.partition("age", blocks=["0..3", "4..8"]))
    record = session(policy).release(tc.histogram("age"), epsilon=0.1)
    assert record.values[:4].sum() == pytest.approx(4)
    assert record.values[4:9].sum() == pytest.approx(0)
    assert record.values[9] == 2
    assert [part[9] for part in record.interval()] == [2, 2]


def test_nonnegative_keeps_the_total():
    record = session().release(tc.histogram("age"), epsilon=0.05, nonnegative=True)
    assert (record.values >= 0).all()
    assert record.values.sum() == pytest.approx(6)
    assert record.certificate["post_processing"] == ["nonnegative"]


def test_consistent_marginals_agree():
    s = session(tc.Policy(DOMAIN, tc.secrets.everything(), presence="secret"), budget=10)
    for positive in (False, True):
        record = s.release(tc.marginals(ways=2), epsilon=1, consistent=True, nonnegative=positive)
        table = pd.DataFrame(record.columns())
        by_sex = [
            table[table[other].notna() & table["sex"].notna()].groupby("sex")["value"].sum()
            for other in ("age", "disease")
        ]
        assert by_sex[0].to_numpy() == pytest.approx(by_sex[1].to_numpy(), abs=1e-6)
        assert not positive or (record.values >= -1e-9).all()


def test_consistent_cumulative_counts_never_fall_and_end_at_the_size():
    record = session().release(tc.cumulative("age"), epsilon=0.1, consistent=True)
    assert (np.diff(record.values) >= 0).all()
    assert record.values[-1] == 6


def test_the_frame_is_of_the_users_kind():
    for rows, kind in ((PEOPLE, pd.DataFrame), (pl.from_pandas(PEOPLE), pl.DataFrame)):
        frame = session(rows=rows).release(tc.histogram("disease"), epsilon=0.5).frame
        assert isinstance(frame, kind)
        assert list(frame.columns) == ["disease", "value", "lower", "upper"]


def test_explain_prints_what_release_does_and_charges_nothing(capsys):
    s = session()
    said = s.explain(tc.cumulative("age"), epsilon=0.25)
    assert capsys.readouterr().out == f"{said}\n"
    assert s.explain(tc.cumulative("age"), epsilon=0.25, show=False) == said
    assert capsys.readouterr().out == ""
    assert repr(said).startswith("<explanation of cumulative(age), epsilon 0.25, expected error ")
    assert repr(said.plan).startswith("<plan of cumulative(age), epsilon 0.25, expected error ")
    assert s.remaining == 1
    assert "budget that would remain: 0.75" in str(said)
    record = s.release(tc.cumulative("age"), epsilon=0.25)
    assert record.plan == said.plan
    assert said.plain.rmse > said.plan.rmse


def test_a_certificate_says_what_is_promised_and_nothing_about_rows():
    empty = session(rows=PEOPLE.head(0)).release(tc.histogram("age"), epsilon=0.5).certificate
    full = session().release(tc.histogram("age"), epsilon=0.5).certificate
    assert {k: v for k, v in empty.items() if k != "made"} == {k: v for k, v in full.items() if k != "made"}
    assert json.loads(json.dumps(full)) == full
    assert full["epsilon"] == "1/2"
    assert full["noise"]["right"] == "4"
    assert tc.Policy.from_yaml(json.dumps(full["policy"])) == POLICY


def test_a_replayed_stream_is_marked_in_the_certificate():
    with noise.replayed(noise.Keystream(key=bytes(32))):
        certificate = session().release(tc.count("age < 5"), epsilon=0.5).certificate
    assert "REPLAYED" in certificate["randomness"]


def test_a_pickled_record_carries_no_rows():
    rows = PEOPLE.assign(sex=["CANARY-7f3a", "m", "f", "f", "f", "f"])
    record = session(rows=rows).release(tc.count("age < 5"), epsilon=0.5)
    stored = pickle.dumps(record)
    assert b"CANARY" not in stored
    assert pickle.loads(stored).frame["value"].to_numpy() == pytest.approx(record.values)  # noqa: S301


def test_a_ledger_is_shared_and_its_budget_holds(tmp_path):
    path = tmp_path / "ledger.db"
    first = session(ledger=path, analyst="ana", dataset="clinic")
    second = session(ledger=path, analyst="ben", dataset="clinic", budget=5)
    first.release(tc.count("age < 5"), epsilon=0.6)
    with pytest.raises(tc.BudgetExceeded):
        second.release(tc.count("age < 5"), epsilon=0.6)
    record = second.release(tc.count("age < 5"), epsilon=0.4)
    with tc.Ledger(path) as ledger:
        assert ledger.verify().ok
        assert ledger.remaining(dataset="clinic") == 0
        assert record.certificate["ledger"]["hash"] == ledger.entries()[-1].hash


def test_a_stronger_policy_may_be_charged_to_a_weaker_one_and_not_the_reverse(tmp_path):
    weak, strong = POLICY, tc.Policy(DOMAIN, tc.secrets.everything())
    session(weak, ledger=tmp_path / "a.db", dataset="d")
    session(strong, ledger=tmp_path / "a.db", dataset="d").release(tc.count("age < 5"), epsilon=0.1)
    session(strong, ledger=tmp_path / "b.db", dataset="d")
    with pytest.raises(tc.LedgerError, match="protects less"):
        session(weak, ledger=tmp_path / "b.db", dataset="d").release(tc.count("age < 5"), epsilon=0.1)


def test_the_budget_is_charged_before_rows_are_read_and_stays_charged_if_reading_fails(tmp_path):
    broken = tmp_path / "people.parquet"
    PEOPLE.to_parquet(broken)
    content = bytearray(broken.read_bytes())
    content[4:64] = b"CANARY-7f3a " * 5  # the pages; the columns, at the end of the file, can still be listed
    broken.write_bytes(content)
    s = session(rows=broken, ledger=tmp_path / "ledger.db", dataset="d")
    with pytest.raises(tc.TacitError) as refused:
        s.release(tc.count("age < 5"), epsilon=0.25)
    assert "CANARY" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert s.remaining == Fraction(3, 4)


class Exploding:
    """A stand-in for an engine that fails with a row in its message."""

    def check(self, tally):
        pass

    def tally(self, tallies):
        try:
            raise KeyError("inner CANARY-7f3a")
        except KeyError as inner:
            raise ValueError("could not convert 'CANARY-7f3a'") from inner


def test_a_foreign_error_while_rows_are_open_says_nothing_about_them(capfd, caplog):
    s = session()
    s._rows = Exploding()
    with pytest.raises(tc.InternalError) as refused:
        s.release(tc.count("age < 5"), epsilon=0.25)
    texts = [str(refused.value), repr(refused.value.args), repr(vars(refused.value)), caplog.text, *capfd.readouterr()]
    assert not any("CANARY" in text for text in texts)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_save_writes_all_or_nothing(tmp_path):
    record = session().release(tc.histogram("disease"), epsilon=0.5)
    folder = record.save(tmp_path / "out")
    assert sorted(p.name for p in folder.iterdir()) == ["certificate.json", "values.csv"]
    written = pd.read_csv(folder / "values.csv")["value"].to_numpy()
    assert written == pytest.approx(record.values, abs=record.plan.rmse / 4)  # rounded to half of the error
    with pytest.raises(tc.Refused, match="must not exist yet"):
        record.save(tmp_path / "out")
    (folder / "certificate.json").unlink()
    with pytest.raises(tc.Refused, match="half-written"):
        record.save(tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_person_with_several_rows_is_kept_to_the_bound():
    rows = pd.DataFrame({"who": [1, 1, 1, 2], "age": [0, 1, 2, 0], "sex": "m", "disease": "flu"})
    policy = tc.Policy(DOMAIN, tc.secrets.everything())
    two = session(policy, rows, budget=1000, person="who", per_person=2).release(tc.histogram("age"), epsilon=900)
    assert np.round(two.values)[:3].sum() == 3
    assert np.round(two.values).max() <= 2
    assert two.certificate["protects"].startswith("one person, all rows with the same who (up to 2 rows that fit")
    one = session(policy, rows, budget=1000, person="who").release(tc.histogram("age"), epsilon=900)
    assert np.round(one.values)[:3].sum() == 2
    visits = rows.assign(visit=[1, 2, 3, 1])
    first = session(policy, visits, budget=1000, person="who", order="visit").release(tc.histogram("age"), epsilon=900)
    assert np.round(first.values)[:3].tolist() == [2, 0, 0]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"per_person": 2}, "per_person needs a person column"),
        ({"per_person": -1, "person": "who"}, "per_person must be a whole number from 1"),
        ({"budget": None}, "budget must be given"),
        ({"budget": -1}, "budget must lie above 0"),
        ({"person": "age"}, "person must not be a column that the policy keeps secret; got 'age'"),
        ({"person": "sex", "order": "disease"}, "order must not be a column that the policy keeps secret"),
        ({"ledger": "ledger.db"}, "dataset must be named, because the ledger keeps the budget under this name"),
    ],
)
def test_wrong_sessions_are_refused(more, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tc.Refused, match=message):
        session(**more)


def test_rows_given_in_the_wrong_place_are_not_repeated():
    rows = PEOPLE.assign(sex="CANARY-7f3a")
    for wrong in (
        lambda: tc.Session(rows, POLICY, budget=1),
        lambda: session().release(rows, epsilon=0.1),
        lambda: session().release(tc.count(), epsilon=rows),
        lambda: session(budget=rows),
        lambda: tc.count(rows["sex"]),
        lambda: session().release(tc.count(tc.col("sex") == rows["sex"]), epsilon=0.1),
        lambda: tc.Domain({"sex": rows["sex"]}),
        lambda: tc.Policy(rows, tc.secrets.everything()),
        lambda: tc.largest_step(rows, POLICY),
    ):
        with pytest.raises(tc.Refused) as refused:
            wrong()
        assert "CANARY" not in f"{refused.value} {refused.value.args} {vars(refused.value)}"


@pytest.mark.parametrize(("sizes", "people"), [((), None), ((None,), None), ((5,), 5), ((5, None), 5), ((None, 5), 5)])
def test_a_policy_says_how_many_people_there_are(sizes, people):
    known = [tc.known.size(size) for size in sizes]
    assert tc.Policy(DOMAIN, tc.secrets.everything(), known).known_people == people


@pytest.mark.parametrize("known", [[tc.known.size(5)], [tc.known.size(), tc.known.size(5)]], ids=["once", "twice"])
def test_a_declared_size_must_be_the_size(known):
    policy = tc.Policy(DOMAIN, tc.secrets.everything(), known)
    made = session(policy)
    before = made.remaining
    with pytest.raises(tc.DataRefused, match="must hold the declared number of people, 5") as refused:
        made.release(tc.count("age < 5"), epsilon=0.5)
    assert str(refused.value).endswith("What was asked stays charged.")
    assert before - made.remaining == Fraction(1, 2)


def test_nonnegative_leaves_exact_cells_alone():
    domain = tc.Domain({"a": tc.Integers(0, 1), "b": tc.Integers(0, 1)})
    policy = tc.Policy(domain, tc.secrets.pairs([({"a": 0, "b": 0}, {"a": 1, "b": 1})]))
    rows = pd.DataFrame({"a": [0] * 6 + [1] * 8, "b": [0] + [1] * 5 + [0] * 7 + [1]})
    for _ in range(20):
        record = tc.Session(policy, rows, budget=9).release(tc.histogram("a", "b"), "0.2", nonnegative=True)
        assert record.values[[1, 2]].tolist() == [5, 7]
        assert record.values.sum() == pytest.approx(14)
        assert (record.values >= 0).all()


def test_a_session_and_its_budget_cannot_be_doubled():
    import copy

    s = session()
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(tc.PlanError, match="must not be"):
            double(s)
    assert exit_code_of_a_forked_release(s) == 7


def test_a_forked_session_does_not_have_its_own_budget_again_although_a_ledger_is_shared(tmp_path):
    ledger = tc.Ledger(tmp_path / "ledger.db")
    ledger.grant(dataset="d", epsilon=100)
    capped = session(ledger=ledger, dataset="d")
    assert exit_code_of_a_forked_release(capped) == 7
    assert ledger.remaining(dataset="d") == 100


def exit_code_of_a_forked_release(s):
    """Return 7 if a forked process is refused the budget."""
    child = os.fork()
    if not child:
        try:
            s.release(tc.count("age < 5"), epsilon=0.5)
        except tc.BudgetExceeded:
            os._exit(7)
        finally:
            os._exit(0)  # whatever happens, the child must not go on with the tests
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_no_true_answer_hangs_on_an_exception(monkeypatch):
    from tacit.release.estimate import infer as module

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for fault, expected in ((interrupted, KeyboardInterrupt), (lambda *_, **__: 1 / 0, tc.InternalError)):
        monkeypatch.setattr(module, "infer", fault)
        with pytest.raises(expected) as caught:
            session().release(tc.count("age < 5"), epsilon=0.5)
        trace, names = caught.value.__traceback__, set()
        while trace is not None:
            names |= set(trace.tb_frame.f_locals)
            trace = trace.tb_next
        assert not names & {"truth", "noisy", "counted", "entries"}
        assert caught.value.__context__ is None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("presence", ["public", "secret"])
@pytest.mark.parametrize("query", [tc.cumulative("x"), tc.ranges("x", "all")], ids=str)
def test_cumulative_counts_never_fall_whatever_the_strategy(query, presence):
    from tacit.plan.plans.linear import every_plan
    from tacit.plan.question import resolve
    from tacit.release.estimate.infer import infer
    from tacit.release.estimate.measure import measure

    policy = tc.Policy(tc.Domain({"x": tc.Integers(0, 39)}), tc.secrets.within(6, "x"), presence=presence)
    true = np.bincount(np.random.default_rng(3).integers(0, 40, 60), minlength=40)
    plans = [
        plan for plan in every_plan(resolve(query, policy.domain), policy, Fraction(1, 5)) if plan.line is not None
    ]
    assert {"by adding up noisy cells", "joint noise on running counts", "ramps and cells"} <= {
        p.strategy for p in plans
    }
    for plan in plans:
        record = infer(measure(plan, plan.base.answers([true], policy.domain)), consistent=True)
        assert (np.diff(record.running) >= 0).all(), plan.strategy
        assert record.running[0] >= 0
        if presence == "public":
            assert record.running[-1] == 60
        assert record.values.min() >= -1e-9


def test_the_unit_of_protection_is_part_of_the_account(tmp_path):
    rows = pd.DataFrame({"who": [1] * 5, "age": [1] * 5, "sex": "m", "disease": "flu"})
    strong = tc.Policy(DOMAIN, tc.secrets.everything(), presence="secret")
    session(strong, rows, ledger=tmp_path / "l.db", dataset="d", person="who").release(tc.count(), epsilon=0.1)
    with pytest.raises(tc.LedgerError, match="protects less"):
        session(strong, rows, ledger=tmp_path / "l.db", dataset="d").release(tc.count(), epsilon=0.1)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("in_policy", [False, True])
@pytest.mark.parametrize(
    ("domain", "secrets", "key", "columns"),
    [
        ({"age": tc.Integers(0, 90)}, tc.secrets.within(1, "age"), "order", ("first", "last")),
        ({"c": tc.Items(["x", "y"])}, tc.secrets.values({"c": [1]}), "item", ("bought", "seen")),
        ({"c": tc.Items(["x", "y"], at_most=1)}, tc.secrets.values({"c": [1]}), "order", ("first", "last")),
    ],
)
def test_an_account_takes_no_release_about_other_rows_of_the_same_people(
    tmp_path, in_policy, domain, secrets, key, columns
):
    """Under the one policy the second row may be anything, and under the other it is the one that counts."""
    policy = tc.Policy(tc.Domain(domain), secrets, person="id")
    rows = pd.DataFrame({"id": ["ann", "ann", "bob"], "age": [30, 80, 50], "first": [1, 2, 0], "last": [2, 1, 0]})
    rows = rows.assign(c=["x", "y", "x"], bought=["x", "x", "y"], seen=["y", "x", "x"])

    def opened(column):
        said = policy.about(**{key: column}) if in_policy else policy
        given = {} if in_policy else {key: column}
        return tc.Session(said, rows, budget=5, ledger=tmp_path / "l.db", dataset="d", **given)

    record = opened(columns[0]).release(tc.count(), epsilon=1)
    assert record.certificate["policy"][key] == columns[0]
    assert record.certificate["policy_fingerprint"] == policy.about(**{key: columns[0]}).fingerprint
    for other in (columns[1], None):
        with pytest.raises(tc.LedgerError, match="protects less"):
            opened(other).release(tc.count(), epsilon=1)
    opened(columns[0]).release(tc.count(), epsilon=1)
    with tc.Ledger(tmp_path / "l.db") as ledger:
        assert ledger.remaining(dataset="d") == 3


def test_differential_privacy_for_people_is_charged_whatever_rows_of_theirs_count(tmp_path):
    rows = pd.DataFrame({"id": [1, 1, 2], "age": [3, 8, 5], "first": [1, 2, 0], "last": [2, 1, 0]})
    weak = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.within(1, "age"), person="id", order="first")
    strong = tc.Policy(weak.domain, tc.secrets.everything(), presence="secret", person="id", order="last")
    for policy in (weak, strong):
        session(policy, rows, ledger=tmp_path / "l.db", dataset="d").release(tc.count(), epsilon="0.1")
    with tc.Ledger(tmp_path / "l.db") as ledger:
        assert ledger.remaining(dataset="d") == Fraction(4, 5)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("key", ["order", "item"])
def test_rows_are_read_by_the_columns_of_the_policy_and_the_session_comes_first(key):
    rows = pd.DataFrame({"id": [1, 1], "age": [3, 8], "first": [1, 2], "last": [2, 1]})
    domain, asked = tc.Domain({"age": tc.Integers(0, 9)}), tc.histogram("age")
    if key == "item":
        rows = pd.DataFrame({"id": [1, 1], "first": [3, 3], "last": [8, 8]})
        domain = tc.Domain({"age": tc.Items(10)})
    policy = tc.Policy(domain, tc.secrets.attributes("age"), person="id").about(**{key: "first"})
    for given, age in (({}, 3), ({key: "last"}, 8)):
        opened = session(policy, rows, budget=1000, **given)
        assert np.round(opened.release(asked, epsilon=900).values).tolist() == [float(n == age) for n in range(10)]
        assert opened.policy == policy.about(**given)
        assert tc.check_rows(policy, rows, **given).rows == 2


def test_the_order_of_a_policy_must_be_public():
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("age"), person="who", order="age")
    with pytest.raises(tc.PlanError, match="order must not be a column that the policy keeps secret"):
        session(policy, PEOPLE.assign(who=1))


def test_a_damaged_ledger_is_noticed_before_anything_is_spent(tmp_path):
    import sqlite3

    session(ledger=tmp_path / "l.db", dataset="d")
    with sqlite3.connect(tmp_path / "l.db") as db:
        db.execute("update tacit_accounts set granted = '1000000'")
    db.close()
    with pytest.raises(tc.LedgerError, match="is damaged"):
        session(ledger=tmp_path / "l.db", dataset="d", budget=500)


def test_item_counts_can_be_all_there_is():
    policy = tc.Policy(tc.Domain({"clicked": tc.Items(3)}), tc.secrets.values({"clicked": [1]}))
    s = tc.Session(policy, tc.ItemCounts([5, 0, 9], people=10), budget=1000)
    record = s.release(tc.histogram("clicked"), epsilon=900)
    assert np.round(record.values).tolist() == [5, 0, 9]
    assert list(record.frame.columns) == ["clicked", "value", "lower", "upper"]


def test_intervals_refuse_a_level_that_is_none():
    with pytest.raises(tc.PlanError, match="level must lie strictly between 0 and 1"):
        session().release(tc.count("age < 5"), epsilon=0.5).interval(95)


def test_the_analyst_is_charged_and_held_to_the_cap(tmp_path):
    with tc.Ledger(tmp_path / "l.db") as ledger:
        ledger.grant(dataset="d", epsilon=5, policy=POLICY)
        ledger.grant(dataset="d", epsilon="0.5", analyst="ana", policy=POLICY)
        s = session(ledger=ledger, dataset="d", analyst="ana", budget=None)
        s.release(tc.count("age < 5"), epsilon="0.4")
        assert ledger.entries()[-1].analyst == "ana"
        assert s.remaining == Fraction(1, 10)
        with pytest.raises(tc.BudgetExceeded):
            s.release(tc.count("age < 5"), epsilon="0.2")


def test_marginals_of_people_with_several_rows_are_not_sums_of_a_joint_table():
    """One person in the cells (0, m) and (0, f) counts once at age 0."""
    rows = pd.DataFrame({"who": [1, 1], "age": [0, 0], "sex": ["m", "f"], "disease": "flu"})
    policy = tc.Policy(DOMAIN, tc.secrets.everything(), person="who", per_person=2)
    record = session(policy, rows, budget=1000).release(tc.marginals("age", "sex", ways=1), epsilon=1000)
    assert np.round(record.values).tolist() == [1, *[0] * 9, 1, 1]


def test_consistent_marginals_see_nothing_but_noisy_counts():
    """Two data sets, one secret edge apart, with noise that makes them equal, give equal results."""
    from tacit.plan.choose import choose
    from tacit.release.estimate.infer import infer
    from tacit.release.estimate.measure import Measurements

    plan = choose(tc.marginals(ways=2), POLICY, 1)
    rng = np.random.default_rng(5)
    joint = rng.integers(0, 9, (10, 2, 2))
    other = joint.copy()
    other[3, 1, 0] -= 1
    other[4, 1, 0] += 1  # age 3 -> age 4
    tables = [np.concatenate([j.sum(2).ravel(), j.sum(1).ravel(), j.sum(0).ravel()]) for j in (joint, other)]
    noisy = tables[0] + rng.integers(-9, 9, len(tables[0]))
    for fit, positive in ((True, False), (True, True), (False, True), (False, False)):
        a, b = (infer(Measurements.of(plan, truth, noisy), consistent=fit, nonnegative=positive) for truth in tables)
        assert a.values == pytest.approx(b.values, abs=1e-9)
        assert a.interval()[0] == pytest.approx(b.interval()[0])


def test_ranges_on_a_line_that_is_too_long_are_refused_before_the_charge():
    policy = tc.Policy(tc.Domain({"x": tc.Integers(0, 10**12)}), tc.secrets.within(5, "x"))
    s = tc.Session(policy, pd.DataFrame({"x": [1]}), budget=1)
    with pytest.raises(tc.PlanError, match="values, more than"):
        s.release(tc.ranges("x", [(0, 5)]), epsilon=0.1)
    assert s.remaining == 1


def test_tables_of_people_with_several_rows_are_not_made_to_agree():
    """One person in the cells (0, m) and (0, f) counts once at age 0: the true tables do not agree."""
    rows = pd.DataFrame({"who": [1, 1], "age": [0, 0], "sex": ["m", "f"], "disease": "flu"})
    policy = tc.Policy(DOMAIN, tc.secrets.everything(), person="who", per_person=2)
    s = session(policy, rows, budget=1)
    with pytest.raises(tc.PlanError, match="consistent must not be asked for where a person counts in several cells"):
        s.release(tc.marginals(sets=[["age"], ["age", "sex"]]), epsilon=1, consistent=True)
    assert s.remaining == 1


@pytest.mark.parametrize("order", [None, "visit"])
@pytest.mark.parametrize("per_person", [1, 2])
def test_a_certificate_says_which_rows_of_a_person_count(order: str | None, per_person: int) -> None:
    policy = tc.Policy(tc.Domain({"x": tc.Flag()}), tc.secrets.everything(), person="who", per_person=per_person)
    rows = pd.DataFrame({"who": [1, 1], "visit": [2, 1], "x": [0, 1]})
    said = tc.Session(policy, rows, budget=1, order=order).release(tc.count(), epsilon=1).certificate["protects"]
    many = "one row that fits the domain counts" if per_person == 1 else "up to 2 rows that fit the domain count"
    once = "" if per_person == 1 else "; in counts, each person once in each cell"
    how = "the first by visit" if order else "chosen as at random"
    assert said == f"one person, all rows with the same who ({many}, {how}; other rows are left out{once})"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_what_was_paid_for_is_made_by_the_process_that_paid():
    made = tc.Session(tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.everything()), PEOPLE, budget=1)
    (reserved,) = made.reserve([made.plan(tc.count("age < 5"), 1)])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            try:
                reserved.make()
            except tc.PlanError as refusal:
                os.write(write, str(refusal).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as told:
        assert told.read().startswith("release belongs to the process that paid for it")
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(tc.PlanError, match="must not be copied"):
            copied(reserved)
    assert len(reserved.make().values) == 1


def test_what_waits_for_its_turn_is_noisy_already():
    """A release that fails leaves no true answer of another one behind, wherever its exception goes."""
    domain = tc.Domain({"age": tc.Integers(0, 9), "ill": tc.Flag()})
    people = 7919  # a number that no table of anything else holds
    rows = pd.DataFrame({"age": [7] * people, "ill": [True] * people})
    made = tc.Session(tc.Policy(domain, tc.secrets.everything()), rows, budget=1)
    questions = (tc.count("age < 5"), tc.histogram("age"), tc.mean("age"), tc.histogram("ill"))
    first, *others = made.reserve([made.plan(query, "0.001") for query in questions])
    first.make()
    seen, waiting, arrays = set(), list(others), []
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | tc.Session):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            arrays.append(one)
        if isinstance(one, FunctionType) and not one.__module__.startswith("tacit"):
            waiting += [one.__closure__, one.__defaults__, one.__kwdefaults__]  # not all that its library has
            continue
        waiting += gc.get_referents(one)
    truths = [[0] * 7 + [people] + [0] * 2, [0, people], [people, 0]]
    assert not [array for array in arrays if array.tolist() in truths]
    assert [len(other.make().values) for other in others] == [10, 1, 2]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv"])
def test_a_record_does_not_keep_the_rows(kind, tmp_path):
    pd.DataFrame({"age": PEOPLE["age"]}).to_csv(tmp_path / "ages.csv", index=False)
    frame = pd.DataFrame({"age": PEOPLE["age"]})
    rows = {
        "pandas": lambda: frame,
        "polars": lambda: pl.DataFrame({"age": frame["age"].to_numpy()}),
        "arrow": lambda: pa.Table.from_pandas(frame),
        "csv": lambda: tmp_path / "ages.csv",
    }[kind]()
    made = tc.Session(tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.everything()), rows, budget=1)
    record = made.release(tc.histogram("age"), 1)
    opened = weakref.ref(made._rows)
    del made
    gc.collect()
    assert opened() is None
    assert len(record.frame) == 10
