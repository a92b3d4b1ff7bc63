"""Records as people type them for `tacit check --pair`: commas, quotes, lists, and what nobody gave."""

from __future__ import annotations

import pytest

import tacit as tc
from tacit.policy.pair import check_pair

DOMAIN = tc.Domain(
    {
        "age": tc.Integers(0, 99),
        "job": tc.Categories(["cook, chef", "clerk", "a=b", "c: d", "7"]),
        "visited": tc.Items(["park", "pub"]),
        "place": tc.Grid(rows=4, columns=4),
    }
)
POLICY = tc.Policy(DOMAIN, tc.secrets.within(5, "age") | tc.secrets.attributes("job", "visited", "place"))


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        ("job=cook, chef", "job", "cook, chef"),
        ("job=cook, chef,age=3", "job", "cook, chef"),
        ("age=3,job='cook, chef'", "job", "cook, chef"),
        ('job="a=b",age=3', "job", "a=b"),
        ("job=c: d", "job", "c: d"),
        ("job='7'", "job", "7"),
        ("age=3,", "age", 3),
        (" age = 3 , job = clerk ", "age", 3),
        ("visited=[park, pub],age=1", "visited", ["park", "pub"]),
        ("age=1,visited=[]", "visited", []),
        ("place=[1,2],age=1", "place", [1, 2]),
    ],
)
def test_a_value_is_read_as_it_is_typed(written, name, value):
    pair = check_pair(POLICY, written, "age=40")
    assert pair.document()["hidden"][name] == value
    assert pair.document()["cover"]["age"] == 40
    assert pair.document()["cover"][name] == (40 if name == "age" else value)  # what Y leaves out is as in X


@pytest.mark.parametrize(
    ("pair", "assumed", "said"),
    [
        (("age=1", "age=2"), ["job", "visited", "place"], "Assumed for both: job "),
        (("absent", "age=2"), ["job", "visited", "place"], "Assumed: job "),
        (("age=1,job=clerk", "place=[1,1]"), ["visited"], "Assumed for both: visited {}."),
        (("age=1,job=clerk,visited=[],place=[0,0]", "age=2"), [], ""),
        (("absent", "absent"), ["age", "job", "visited", "place"], ""),
    ],
)
def test_values_that_nobody_gave_are_said(pair, assumed, said):
    found = check_pair(POLICY, *pair)
    assert found.document()["assumed"] == assumed
    assert any(line.startswith("Assumed") and said in line for line in found.lines) == bool(said)


@pytest.mark.parametrize("written", ["visited=[..]", "visited=[park", "=3", "age", "", "{age: 3}", "job=cook"])
def test_what_cannot_be_read_is_refused_with_its_name(written):
    with pytest.raises(tc.PolicyError, match=r"^--pair") as refusal:
        check_pair(POLICY, written, "age=2")
    assert refusal.value.fix
