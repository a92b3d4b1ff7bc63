"""Groups of people that together cost as much as the dearest of them."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from fractions import Fraction

import pandas as pd
import pytest

import tacit as tc

DOMAIN = tc.Domain(
    {"sex": tc.Categories(["F", "M"]), "age": tc.Integers(0, 9), "disease": tc.Categories(["flu", "hiv", "cold"])}
)
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("disease") | tc.secrets.within(1, "age"))
ROWS = pd.DataFrame({"sex": list("FFMMM"), "age": [1, 2, 3, 4, 5], "disease": ["flu", "hiv", "flu", "cold", "flu"]})


def session(policy=POLICY, **options):
    return tc.Session(policy, ROWS, **{"budget": 1, **options})


def test_groups_together_cost_as_much_as_the_dearest():
    whole = session()
    groups = whole.split("sex")
    assert list(groups) == ["F", "M"]
    groups["F"].release(tc.histogram("disease"), 0.25)
    assert whole.remaining == Fraction(3, 4)
    groups["M"].release(tc.histogram("disease"), 0.25)
    assert whole.remaining == Fraction(3, 4)
    groups["M"].release(tc.mean("age"), 0.125)
    assert whole.remaining == Fraction(5, 8)
    assert (groups["F"].remaining, groups["M"].remaining, groups.charged) == (
        Fraction(3, 4),
        Fraction(5, 8),
        Fraction(3, 8),
    )
    whole.release(tc.count("age > 3"), 0.125)  # the session itself adds up with the dearest group
    assert whole.remaining == Fraction(1, 2)


def test_an_answer_is_about_the_people_of_its_group():
    groups = session().split("sex")
    assert groups["F"].release(tc.count(), 0.1).values.tolist() == [2]  # no secret edge changes it
    assert groups["M"].release(tc.count(), 0.1).values.tolist() == [3]
    record = session().split("sex")["M"].release(tc.histogram("disease"), 0.5)
    assert str(record.plan.query) == "histogram(disease where sex == 'M')"
    assert record.values.sum() == pytest.approx(3)
    assert record.certificate["part_of"].startswith("a split by sex: groups that no secret edge connects")


def test_predicates_that_no_edge_changes_are_groups_too():
    components = tc.Policy(
        tc.Domain({"x": tc.Integers(0, 3)}),
        tc.secrets.partition("x", blocks=[[0, 1], [2, 3]]),
        [tc.known.count("x <= 1"), tc.known.count("x >= 2")],
    )
    whole = tc.Session(components, pd.DataFrame({"x": [0, 1, 2, 2]}), budget=1)
    groups = whole.split(["x <= 1", "x >= 2"])
    for name in groups:
        groups[name].release(tc.histogram("x"), 0.5)
    assert whole.remaining == Fraction(1, 2)


@pytest.mark.parametrize(
    ("policy", "by", "why"),
    [
        (tc.Policy(DOMAIN, tc.secrets.everything()), "sex", "the secret edge sex F -> sex M leads from one group"),
        (POLICY, ["age < 5", "age >= 5"], "the secret edge age 4 -> age 5 leads from one group"),
        (POLICY, ["age < 5"], "the secret edge age 4 -> age 5 leads from one group"),
        (
            tc.Policy(DOMAIN, POLICY.secrets, [tc.known.count("disease == 'hiv'")]),
            "sex",
            "disease hiv changes what is known (how many people satisfy disease == 'hiv')",
        ),
        (
            tc.Policy(DOMAIN, tc.secrets.attributes("sex", "disease"), [tc.known.marginal("sex")]),
            ["age < 5", "age >= 5"],
            "the secret edge sex F -> sex M changes what is known (the histogram of sex)",
        ),
        (POLICY, ["sex == 'F'", "age < 5 and sex == 'F'"], "must not overlap"),
        (POLICY, "sexx", "Did you mean 'sex'"),
        (POLICY, ["sexx == 'F'"], "sexx"),
        (POLICY, 3, "must be an attribute or a list of predicates"),
        (POLICY, [], "must be an attribute or a list of predicates"),
    ],
)
def test_what_would_not_compose_is_refused_with_the_edge_or_the_fact(policy, by, why):
    rows = ROWS.assign(id=range(5))
    whole = tc.Session(policy, rows, budget=1)
    with pytest.raises(tc.PlanError) as refusal:
        whole.split(by)
    assert why in str(refusal.value)
    assert whole.remaining == 1


def test_groups_of_people_with_several_rows_are_asked_about_rows():
    policy = tc.Policy(DOMAIN, POLICY.secrets, person="id", per_person=2)
    whole = tc.Session(policy, ROWS.assign(id=[1, 1, 2, 2, 3]), budget=1)
    groups = whole.split("sex")
    for name in groups:
        groups[name].release(tc.histogram("disease", of="rows"), 0.5)
        groups[name].release(tc.mean("age"), 0.25)
    assert whole.remaining == Fraction(1, 4)
    for query in (tc.histogram("disease"), tc.mean("age", each="sum"), tc.count()):
        with pytest.raises(tc.PlanError, match="must be about rows in a group of a split"):
            groups["F"].release(query, 0.25)
    assert whole.remaining == Fraction(1, 4)


def test_a_group_cannot_spend_more_than_the_session_has():
    whole = session()
    groups = whole.split("sex")
    groups["F"].release(tc.histogram("disease"), 0.75)
    groups["M"].release(tc.histogram("disease"), 0.5)
    whole.release(tc.histogram("disease"), 0.125)
    with pytest.raises(tc.BudgetExceeded):
        groups["M"].release(tc.histogram("disease"), 0.5)  # a quarter is paid for, an eighth remains
    assert groups["M"].remaining == Fraction(3, 8)
    groups["M"].release(tc.histogram("disease"), 0.375)
    assert (whole.remaining, groups["M"].remaining, groups["F"].remaining) == (0, 0, Fraction(1, 8))


def test_a_ledger_has_the_largest_sum_and_takes_it_at_once(tmp_path):
    ledger = tc.Ledger(tmp_path / "ledger.db")
    ledger.grant(dataset="clinic", epsilon=1)
    whole = session(budget=None, ledger=ledger, dataset="clinic")
    groups = whole.split("sex")
    first = groups["F"].release(tc.histogram("disease"), 0.25).certificate["ledger"]
    second = groups["M"].release(tc.histogram("disease"), 0.25).certificate["ledger"]
    assert first == second
    groups["M"].release(tc.histogram("disease"), 0.25)
    charges = [(entry.epsilon, entry.what) for entry in ledger.entries() if entry.kind == "charge"]
    assert [epsilon for epsilon, _ in charges] == [Fraction(1, 4), Fraction(1, 4)]
    assert charges[0][1] == "split by sex, each group up to 0.25 in all: histogram(disease where sex == 'F')"
    assert charges[1][1].startswith("split by sex, each group up to 0.5 in all: ")
    # another split, or another session, begins at nothing and adds up
    session(budget=None, ledger=ledger, dataset="clinic").split("sex")["F"].release(tc.histogram("disease"), 0.25)
    assert ledger.remaining(dataset="clinic") == Fraction(1, 4)
    assert ledger.verify().ok


def test_threads_never_spend_more_than_was_charged(tmp_path):
    ledger = tc.Ledger(tmp_path / "ledger.db")
    ledger.grant(dataset="clinic", epsilon=1)
    whole = session(budget=None, ledger=ledger, dataset="clinic")
    groups = whole.split("sex")
    made = {"F": 0, "M": 0}

    def ask(name):
        for _ in range(4):
            try:
                groups[name].release(tc.count("disease == 'hiv'"), 0.25)
                made[name] += 1
            except tc.BudgetExceeded:
                pass

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("F", "M", "F", "M")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == {"F": 4, "M": 4}
    assert ledger.remaining(dataset="clinic") == 0


def test_a_split_is_neither_copied_nor_used_in_another_process():
    groups = session().split("sex")
    for one in (groups, groups["F"]):
        with pytest.raises(tc.PlanError):
            copy.copy(one)
        with pytest.raises(tc.PlanError):
            pickle.dumps(one)
    child = os.fork()
    if child == 0:
        try:
            groups["F"].release(tc.histogram("disease"), 0.25)
        except tc.BudgetExceeded:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_plan_belongs_to_its_group():
    whole = session()
    groups = whole.split("sex")
    plan = groups["F"].plan(tc.histogram("disease"), 0.25)
    for wrong in (groups["M"], whole):
        with pytest.raises(tc.PlanError):
            wrong.release(plan)
    with pytest.raises(tc.PlanError):
        groups["F"].release(whole.plan(tc.histogram("disease"), 0.25))
    with pytest.raises(tc.PlanError):
        groups["F"].release(plan, 0.5)
    assert groups["F"].release(plan).plan is plan
    assert groups["F"].explain(tc.histogram("disease"), 0.25).remaining == Fraction(1, 2)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "query",
    [
        tc.count("age > 3"),
        tc.histogram("disease", "age"),
        tc.marginals(ways=2),
        tc.cumulative("age"),
        tc.ranges("age", [(1, 4)]),
        tc.total("age", by="disease"),
        tc.mean("age"),
        tc.median("age"),
        tc.top_k("disease", 2),
        tc.above("disease", 1, at_most=2),
        tc.below("disease == 'hiv'", 5),
    ],
    ids=str,
)
def test_every_question_can_be_asked_of_a_group(query):
    record = session().split("sex")["F"].release(query, 0.5)
    assert "sex == 'F'" in str(record.plan.query)


def test_values_with_equal_texts_are_different_groups():
    domain = tc.Domain({"code": tc.Categories([1, "1", "x"]), "sick": tc.Flag()})
    policy = tc.Policy(domain, tc.secrets.attributes("sick"))
    rows = pd.DataFrame({"code": ["1", "1", "x"], "sick": [True, False, True]})
    groups = tc.Session(policy, rows, budget=9).split("code")
    assert list(groups) == ["1 (an int)", "1 (a text)", "x"]
    assert [groups[value].name for value in (1, "1", "x", "1 (a text)")] == [
        "1 (an int)", "1 (a text)", "x", "1 (a text)",
    ]  # fmt: skip
    assert str(groups[1].people) != str(groups["1"].people)
    with pytest.raises(KeyError):
        groups[2]


def test_a_flag_is_split_by_its_values_or_their_texts():
    policy = tc.Policy(tc.Domain({"sick": tc.Flag(), "age": tc.Integers(0, 9)}), tc.secrets.attributes("age"))
    groups = tc.Session(policy, pd.DataFrame({"sick": [True], "age": [1]}), budget=1).split("sick")
    assert groups[True] is groups["True"]  # type: ignore[index]
    assert groups[False].name == "False"  # type: ignore[index]
