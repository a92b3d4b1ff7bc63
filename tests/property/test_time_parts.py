"""Histograms by parts of times: steps against every edge, and answers against the definition, row by row."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from brute_force import assert_step_of_all_edges
from tacit.plan.question import resolve
from tacit.plan.questions.time_parts import PartCounts
from tacit.plan.sensitivity.steps import largest_step

TIMES = tc.Domain({"t": tc.Times("2024-02-29T22:00", "2024-03-01T03:00"), "ward": tc.Categories(["a", "b"])})
DATES = tc.Domain({"t": tc.Dates("2023-11", "2024-02", by="month"), "ward": tc.Categories(["a", "b"])})
POLICIES = [
    tc.Policy(TIMES, tc.secrets.within(2, "t")),
    tc.Policy(TIMES, tc.secrets.partition("t", width=2)),
    tc.Policy(TIMES, tc.secrets.attributes("ward")),
    tc.Policy(TIMES, tc.secrets.taking_part(), presence="secret"),
    tc.Policy(TIMES, tc.secrets.within(1, "t") | tc.secrets.attributes("ward")),
    tc.Policy(DATES, tc.secrets.within(1, "t", where="t.year == 2023")),
]
ASKED = [("t.month",), ("t.year", "ward"), ("t.month", "t"), ("ward", "t.year", "t.month")]
OF_TIMES = [("t.hour",), ("t.weekday", "ward"), ("ward", "t.month", "t.hour"), ("t", "t.hour")]


@pytest.mark.parametrize("policy", POLICIES, ids=range(len(POLICIES)))
def test_the_step_is_what_enumeration_of_all_edges_finds(policy: tc.Policy) -> None:
    for names in ASKED + (OF_TIMES if "hour" in policy.domain["t"].parts else []):
        for where in (None, "ward == 'a'"):
            query = resolve(tc.histogram(*names, where=where), policy.domain)
            assert isinstance(query, PartCounts)
            assert_step_of_all_edges(query, policy)


def test_whoever_moves_within_a_part_moves_nothing_and_the_answers_are_then_exact() -> None:
    policy = tc.Policy(
        TIMES,
        tc.secrets.partition("t", blocks=["2024-02-29T22:00..2024-02-29T23:00", "2024-03-01T00:00..2024-03-01T03:00"]),
    )
    assert largest_step(tc.histogram("t.weekday"), policy).l1 == 0
    assert largest_step(tc.histogram("t.hour"), policy).l1 == 2


@pytest.mark.parametrize("per_person", [1, 2])
@pytest.mark.parametrize("names", OF_TIMES, ids=str)
def test_answers_are_the_sums_of_what_each_record_adds(names: tuple[str, ...], per_person: int) -> None:
    rows = [("2024-02-29T22:00", "a"), ("2024-03-01T00:00", "b"), ("2024-03-01T00:00", "a"), ("2024-03-01T03:00", "b")]
    people = ["x", "y", "z", "z"] if per_person > 1 else ["w", "x", "y", "z"]
    table = pd.DataFrame({"t": [time for time, _ in rows], "ward": [ward for _, ward in rows], "who": people})
    owner = {"person": "who", "per_person": per_person}
    policy = tc.Policy(TIMES, tc.secrets.attributes("ward"), **owner)
    for of in ("people", "rows"):
        query = resolve(tc.histogram(*names, of=of), TIMES)
        record = tc.Session(policy, table, 900).release(query, 400)
        added = [query.added_by(dict(zip(TIMES, row, strict=True)), TIMES) for row in rows]
        each = np.sum(added, axis=0)
        if of == "people" and per_person > 1:
            each = added[0] + added[1] + np.maximum(added[2], added[3])
        assert np.rint(record.values).tolist() == each.tolist()
        assert list(record.labels()) == list(names)


def test_what_is_no_part_is_refused() -> None:
    with pytest.raises(tc.PlanError, match=r"must be a part that a month has; got 'hour'. Ask for t.month or t.year"):
        tc.explain(tc.histogram("t.hour"), tc.Policy(DATES, tc.secrets.everything()), epsilon=1)
    with pytest.raises(tc.PlanError, match=r"must be an attribute of the domain; got 'ward.hour'"):
        tc.explain(tc.histogram("ward.hour"), tc.Policy(DATES, tc.secrets.everything()), epsilon=1)
