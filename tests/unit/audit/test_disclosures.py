"""The disclosure audit: definitions against plain loops, defined results for odd tables, refusals, the report."""

from __future__ import annotations

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.release.curator import PRIVATE

RNG = np.random.default_rng(4)
SIZE = 3_000
PEOPLE = pd.DataFrame(
    {
        "sex": RNG.choice(["F", "M"], SIZE),
        "race": RNG.choice(["a", "b", "c"], SIZE, p=[0.8, 0.15, 0.05]),
        "age": RNG.integers(30, 34, SIZE),
    }
)
RARE = np.where((PEOPLE.race == "b") & (PEOPLE.sex == "M"), 0.7, 0.02)
PEOPLE["disease"] = np.where(RNG.random(SIZE) < RARE, "hiv", RNG.choice(["flu", "none"], SIZE))
PUBLIC = ["sex", "race", "age"]


def by_definition(rows: pd.DataFrame, public: list[str], scale: float, ways: int) -> pd.DataFrame:
    """Definitions 3 to 5 of document 004, group by group."""
    prior = rows.disease.value_counts(normalize=True)
    found = []
    for names in combinations(public, ways):
        for key, group in rows.groupby(list(names)):
            label = ", ".join(f"{name}={value}" for name, value in zip(names, key, strict=True))
            for value in sorted(prior.index):
                theta, phi = int((group.disease == value).sum()), len(group)
                close = tc.audit.closeness(theta, phi, scale, 0.2)
                jump = theta / phi / prior[value]
                found.append((label, value, close, jump, close >= 0.7 and jump >= 3))
    return pd.DataFrame(found, columns=["group", "value", "closeness", "jump", "disclosed"])


def test_every_group_and_value_is_judged_by_the_definition() -> None:
    for ways in (2, 3):
        found = tc.audit.disclosure(PEOPLE, public=PUBLIC, sensitive="disease", scale=2.0, ways=ways)
        wanted = by_definition(PEOPLE, PUBLIC, 2.0, ways)
        assert list(found.frame.columns) == list(wanted.columns)
        order = ["group", "value"]
        got = found.frame.sort_values(order).reset_index(drop=True)
        wanted = wanted.sort_values(order).reset_index(drop=True)
        assert (
            got[["group", "value", "disclosed"]]
            .astype(object)
            .equals(wanted[["group", "value", "disclosed"]].astype(object))
        )
        assert np.abs(got.closeness - wanted.closeness).max() < 1e-12
        assert np.abs(got.jump - wanted.jump).max() < 1e-12
        assert found.count == wanted.disclosed.sum() > 0


def test_a_jump_that_is_just_reached_is_a_disclosure() -> None:
    # 3 of 4 people in the first group have it and 4 of all 16: a jump of exactly 3
    rows = pd.DataFrame({"sex": ["F"] * 4 + ["M"] * 12, "disease": ["hiv"] * 3 + ["flu"] * 12 + ["hiv"]})
    for jump, disclosed in ((3, ["hiv"]), (np.nextafter(3, 4), [])):
        found = tc.audit.disclosure(rows, public=["sex"], sensitive="disease", scale=0.01, ways=1, jump=jump)
        assert found.frame[found.frame.disclosed].value.tolist() == disclosed
        assert found.count == len(disclosed)


def test_several_orders_at_once_are_their_sum() -> None:
    given: dict[str, Any] = {"public": PUBLIC, "sensitive": "disease", "scale": 8.0}
    each = [tc.audit.disclosure(PEOPLE, **given, ways=ways) for ways in (1, 2)]
    both = tc.audit.disclosure(PEOPLE, **given, ways=[1, 2])
    assert both.count == sum(one.count for one in each)
    assert both.groups == sum(one.groups for one in each)
    assert tc.audit.disclosure(PEOPLE, **given, ways=9).groups == len(PEOPLE.groupby(PUBLIC))


def test_one_sensitive_attribute_may_tell_another() -> None:
    rows = PEOPLE.assign(drug=np.where(PEOPLE.disease == "hiv", "art", "other"))
    found = tc.audit.disclosure(rows, public=["sex"], sensitive=["disease", "drug"], scale=2.0, ways=1)
    told = found.frame[found.frame.disclosed]
    assert "drug=art" in set(told.group)
    assert "disease=hiv" in set(told.value)
    assert set(found.frame.group) == {"sex=F", "sex=M", *(f"drug={v}" for v in ("art", "other")),
                                      *(f"disease={v}" for v in ("flu", "hiv", "none"))}  # fmt: skip


def test_odd_tables_have_defined_results() -> None:
    one = tc.audit.disclosure(PEOPLE.head(1), public=["sex"], sensitive="disease", scale=1.0)
    assert one.frame.jump.tolist() == [1.0]
    assert 0 < one.frame.closeness[0] < 1
    same = tc.audit.disclosure(PEOPLE.assign(disease="flu"), public=["sex"], sensitive="disease", scale=1.0)
    assert same.count == 0
    assert set(same.frame.jump) == {1.0}
    nobody = tc.audit.disclosure(PEOPLE.head(0), public=["sex"], sensitive="disease", scale=1.0)
    assert nobody.count == len(nobody.frame) == 0
    assert nobody.error == 0.0
    absent = PEOPLE.assign(disease=PEOPLE.disease.where(PEOPLE.index > 0, None))
    gap = tc.audit.disclosure(absent, public=["sex"], sensitive="disease", scale=1.0)
    for found in (one, same, gap):
        assert found.frame[["closeness", "jump"]].notna().all().all()
        json.dumps(found.document(), allow_nan=False)
        assert "nan" not in str(found)


def test_the_largest_epsilon_without_a_disclosure() -> None:
    found = tc.audit.disclosure(PEOPLE, public=PUBLIC, sensitive="disease", scale=8.0)
    safe = found.largest_safe_epsilon
    assert safe is not None
    step = 4 * math.comb(3, 2)  # document 004, Equation 3.12

    def at(epsilon: float) -> int:
        return tc.audit.disclosure(PEOPLE, public=PUBLIC, sensitive="disease", scale=step / epsilon).count

    assert at(safe) == 0 < at(safe * 1.003)
    assert found.error_when_safe == pytest.approx(found.error * found.published.epsilon / safe)
    curve = found.curve([0.1, 1.0, 10.0])
    assert curve.disclosures.tolist() == [at(0.1), at(1.0), at(10.0)]
    assert curve.error.is_monotonic_decreasing


def test_the_overall_error_is_the_one_that_is_measured() -> None:
    found = tc.audit.disclosure(PEOPLE, public=PUBLIC, sensitive="disease", scale=8.0)
    noise, total, cells = np.random.default_rng(1).laplace(scale=8.0, size=(2_000, 200)), 0.0, 0
    for names in combinations(PUBLIC, 2):
        for more in ([], ["disease"]):
            counts = pd.crosstab([PEOPLE[name] for name in [*names, *more][:-1]], PEOPLE[[*names, *more][-1]])
            true = counts.to_numpy().reshape(-1)
            total += (np.abs(noise[:, : len(true)]) / np.maximum(true, SIZE / 10_000)).mean(axis=0).sum()
            cells += len(true)
    assert found.error == pytest.approx(total / cells, rel=0.02)


def test_plans_of_a_job_are_audited() -> None:
    domain = tc.Domain(
        {
            "sex": tc.Categories(["F", "M"]),
            "race": tc.Categories(["a", "b", "c"]),
            "disease": tc.Categories(["flu", "hiv", "none"]),
        }
    )
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("disease")), PEOPLE, budget=9)
    plans = [session.plan(tc.histogram("sex", "race", "disease"), 1), session.plan(tc.histogram("sex"), 1)]
    found = tc.audit.disclosure(PEOPLE, plan=plans)
    assert set(found.frame.value) == {"flu", "hiv", "none"}
    assert found.count == 1
    assert found.published.epsilon == 2
    assert 0 < (found.largest_safe_epsilon or 0) < 2
    assert session.remaining == 9
    with pytest.raises(tc.PlanError, match="must publish counts of a sensitive attribute by others"):
        tc.audit.disclosure(PEOPLE, plan=plans[1])
    with pytest.raises(tc.PlanError, match="public must be an attribute of the policy; got 'sexx'"):
        tc.audit.disclosure(PEOPLE, plan=plans[0], public=["sexx"])
    other = tc.Session(tc.Policy(domain, tc.secrets.everything()), PEOPLE, budget=9)
    with pytest.raises(tc.PlanError, match="must be made under one policy"):
        tc.audit.disclosure(PEOPLE, plan=[plans[0], other.plan(tc.histogram("sex"), 1)])


def test_the_report_says_whom_it_is_for() -> None:
    found = tc.audit.disclosure(PEOPLE, public=PUBLIC, sensitive="disease", scale=8.0)
    assert str(found).startswith(PRIVATE)
    assert found.document()["private"] == found.private
    assert repr(found) == "Disclosure(for the curator only)"
    assert "sex=M, race=b -> disease=hiv" in str(found)
    assert [one.groups.columns.known for one in found.yardsticks] == list(combinations(PUBLIC, 2))
    assert f"k-anonymity {PEOPLE.groupby(['race', 'age']).size().min()}" in str(found)
    assert "For the curator only" in json.dumps(found.chart().to_dict())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"public": []}, "public must be the names"),
        ({"public": ["sex", "sex"]}, "public must be the names"),
        ({"sensitive": None}, "sensitive must be the names"),
        ({"public": ["disease"]}, "public must not be sensitive as well; got 'disease'"),
        ({"scale": None}, "scale must be given, or a plan, and not both"),
        ({"scale": -1.0}, "scale must be a finite number above 0"),
        ({"tau": 1.0}, "tau must lie between 0 and 1"),
        ({"closeness": 1.1}, "closeness must lie above 0 and at most at 1"),
        ({"jump": float("nan")}, "jump must be a finite number above 0"),
        ({"ways": 0}, "ways must be a whole number from 1"),
        ({"noise": "normal"}, "noise must be 'laplace'"),
        ({"scale": None, "plan": "histogram"}, "plan must be a plan, not a text"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(tc.PlanError, match=words):
        tc.audit.disclosure(PEOPLE, **{"public": PUBLIC, "sensitive": "disease", "scale": 8.0, **given})


def test_a_refusal_says_nothing_of_the_rows() -> None:
    with pytest.raises(tc.DataRefused) as refused:
        tc.audit.disclosure(PEOPLE.rename(columns={"sex": "sax"}), public=PUBLIC, sensitive="disease", scale=8.0)
    assert "hiv" not in str(refused.value)
