"""The exclusion audit as people call it: what it returns and prints, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tacit as tc

DAY = tc.Dependence.from_table(
    {
        ("late", "early"): 0.05,
        ("late", "late"): 0.15,
        ("nine", "early"): 0.2,
        ("nine", "late"): 0.2,
        ("eight", "early"): 0.3,
        ("eight", "late"): 0.1,
    },
    names=("arrival", "leaving"),
)
SENSITIVE = {"arrival": ["late"], "leaving": ["early"]}
EPSILON = {"arrival": 1.0, "leaving": 0.5}
SEEN_BY = {"lighting": ["arrival"], "space": ["leaving"]}


def audit(**options: Any) -> tc.audit.Exclusion:
    return tc.audit.exclusion(DAY, **{"sensitive": SENSITIVE, "epsilon": EPSILON, **options})


def test_posteriors_odds_and_chances() -> None:
    leak = audit()
    kept = math.exp(-3)
    early, late = 0.05 + 0.5 * kept, 0.15 + 0.3 * kept
    found = leak.posterior("leaving", suppressed={"arrival": 3}, released={})
    assert found == pytest.approx({"early": early / (early + late), "late": late / (early + late)}, rel=1e-12)
    assert leak.odds("leaving", suppressed={"arrival": 3}) == pytest.approx(early / late, rel=1e-12)
    assert leak.factor("leaving", suppressed={"arrival": 3}) == pytest.approx(early / late / (0.55 / 0.45), rel=1e-12)
    assert leak.factor("leaving") == 1
    assert leak.chance(suppressed={"arrival": 3}) == pytest.approx(early + late, rel=1e-12)
    assert leak.posterior("leaving", released={"arrival": "nine"}) == pytest.approx({"early": 0.5, "late": 0.5})
    both = leak.posterior(["leaving", "arrival"], suppressed=["arrival"])
    assert sum(both.values()) == pytest.approx(1)
    assert set(both) == {(b, a) for a in ("late", "nine", "eight") for b in ("early", "late")}


def test_an_empty_pattern_leaves_everything_as_it_was() -> None:
    assert audit().posterior("arrival", {}, {}) == pytest.approx({"late": 0.2, "nine": 0.4, "eight": 0.4})
    assert audit().posterior("arrival", {"leaving": 0}) == pytest.approx({"late": 0.2, "nine": 0.4, "eight": 0.4})


def test_information_of_the_value_is_never_below_that_of_the_bit() -> None:
    leak = audit()
    for name in DAY.names:
        for seen in (["arrival"], ["leaving"], ["arrival", "leaving"]):
            assert leak.mutual_information(name, seen=seen) >= leak.mutual_information(name, seen=seen, value=False)
    assert leak.mutual_information("leaving", seen=[]) == pytest.approx(0, abs=1e-15)
    assert leak.mutual_information("leaving") == leak.mutual_information("leaving", seen=["arrival", "leaving"])


def test_the_worst_outcome() -> None:
    found = audit().worst("leaving", seen=["arrival"])
    assert found.outcome == {"arrival": "eight"}
    assert found.posterior == pytest.approx(0.75)
    assert found.prior == pytest.approx(0.55)
    assert found.chance == pytest.approx(0.4 * (1 - math.exp(-1)))
    assert found.factor == pytest.approx(3 / (0.55 / 0.45))
    assert "0.75 instead of 0.55" in str(found)
    assert "after arrival eight" in str(found)


def test_one_attribute_alone_is_free_at_its_own_epsilon() -> None:
    alone = audit().freedom("arrival", seen=["arrival"])
    assert alone.level == pytest.approx(1.0, rel=1e-12)
    assert (alone.hidden, alone.outcome) == ("late", {"arrival": None})
    assert audit().freedom("arrival", ["arrival"], questions={"arrival": 3}).level == pytest.approx(3.0, rel=1e-12)
    kept = audit(coins="remembered").freedom("arrival", ["arrival"], questions={"arrival": 3})
    assert kept.level == pytest.approx(1.0, rel=1e-12)


def test_together_they_need_more_or_are_not_free_at_all() -> None:
    leak = audit()
    whole = leak.freedom()
    assert whole.is_free
    assert whole.level > 1
    assert not leak.free(1.0)
    assert leak.free(whole.level)
    assert leak.free(1.0, seen=["arrival"]) == (leak.freedom(seen=["arrival"]).level <= 1)
    sure = tc.Dependence.from_table({("s", 0): 0.2, ("a", 0): 0.4, ("b", 1): 0.4}, names=("i", "j"))
    told = tc.audit.exclusion(sure, {"j": [0]}, {"i": 0.01})
    assert told.freedom("j").level == math.inf
    assert not told.freedom().is_free
    assert "rules 1 out" in str(told.freedom())
    assert str(tc.audit.exclusion(sure, {}, {"i": 1}).freedom()).startswith("nothing that can be seen")


def test_applications_and_coalitions() -> None:
    leak = audit(applications=SEEN_BY, coalitions=[["lighting", "space"]])
    assert leak.sees("lighting") == ("arrival",)
    assert leak.sees("space", "lighting") == ("leaving", "arrival")
    frame = leak.report().frame
    assert frame["who"].tolist() == ["lighting"] * 2 + ["space"] * 2 + ["lighting + space"] * 2
    by = {(row.who, row.attribute): row for row in leak.report().rows}
    for name in DAY.names:
        alone = max(by[(who,), name].value for who in SEEN_BY)
        assert by[("lighting", "space"), name].value > alone
    assert str(leak).count("\n") == 6
    assert "not show" not in str(leak)
    assert audit().report().rows[0].who == ("everybody",)


def test_two_applications_that_see_the_same_attribute_have_two_coins() -> None:
    leak = audit(
        applications={"lighting": {"arrival": 1.0}, "heating": {"arrival": 0.25, "leaving": 0.5}, "lift": ["arrival"]},
        coalitions=[["lighting", "heating"]],
    )
    assert leak.together("heating").release.epsilon == {"arrival": 0.25, "leaving": 0.5}
    assert leak.together("lighting", "lift").release.epsilon == {"arrival": 2.0}
    both = leak.together("lighting", "heating")
    # nothing is seen of an arrival that is not sensitive only if both coins say so
    assert both.odds("arrival", suppressed=["arrival"]) == pytest.approx(0.25 * math.exp(1.25), rel=1e-12)
    assert both.freedom("arrival", ["arrival"]).level == pytest.approx(1.25, rel=1e-12)
    row = next(row for row in leak.report().rows if row.who == ("lighting", "heating") and row.attribute == "arrival")
    assert row.value == both.mutual_information("arrival")
    assert row.value > leak.together("lighting").mutual_information("arrival")
    kept = audit(coins="remembered", applications={"a": ["arrival"], "b": ["arrival"]}).together("a", "b")
    assert kept.odds("arrival", suppressed={"arrival": 9}) == pytest.approx(0.25 * math.exp(2), rel=1e-12)
    with pytest.raises(tc.PlanError, match="must be an application; got 'lihgting'"):
        leak.together("lihgting")


def test_what_has_too_many_outcomes_can_still_be_printed() -> None:
    names = [f"a{place}" for place in range(30)]
    wide = tc.Dependence.from_network({name: {0: 0.5, 1: 0.5} for name in names})
    leak = tc.audit.exclusion(wide, dict.fromkeys(names, (0,)), dict.fromkeys(names, 1))
    assert "Ask about fewer attributes at once" in str(leak)
    assert leak.worst("a0", seen=names[:4]).posterior == pytest.approx(math.e / (1 + math.e))


def test_an_unprotected_dependence_is_marked_wherever_it_is_printed() -> None:
    dep = tc.Dependence.from_counts({("x", "y"): 1, ("x", "z"): 2}, ["a", "b"], unprotected=True)
    leak = tc.audit.exclusion(dep, {"b": ["y"]}, {"b": 1})
    plan = tc.plan.leakage_budget(dep, sensitive={"b": ["y"]}, limit=0.1)
    mark = "The dependence is unprotected: it was counted on the private rows. Show this to nobody."
    for printed in (leak, leak.report(), plan):
        assert str(printed).splitlines()[0] == mark
        assert "unprotected" in repr(printed)
    assert leak.report().unprotected
    assert leak.report().frame["unprotected"].all()
    assert plan.unprotected
    assert plan.document()["unprotected"] is True
    assert plan.holds_for(dep).why.startswith(mark)
    public = audit()
    assert "unprotected" not in f"{public}{public!r}{public.report().frame.columns.tolist()}"
    assert tc.plan.leakage_budget(public.dependence, sensitive={"leaving": ["early"]}, limit=0.1).unprotected is False


def test_cancellations_are_reported_both_ways() -> None:
    found = {(one.seen, one.target): one for one in audit().cancellations()}
    assert set(found) == {("leaving", "arrival"), ("arrival", "leaving")}
    one = found["arrival", "leaving"]
    assert one.effect == "cancel"
    assert f"cancel at epsilon {one.target_epsilon:.4g} of leaving" in str(one)
    leak = audit(epsilon={"arrival": 1.0, "leaving": one.target_epsilon})
    assert leak.factor("leaving", suppressed=["arrival", "leaving"]) == pytest.approx(1, abs=1e-12)
    solved = audit().cancelling_epsilon("leaving", "leaving", suppressed=["arrival", "leaving"])
    assert solved == pytest.approx(one.target_epsilon, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sensitive": {"arival": ["late"]}}, "sensitive must be an attribute of the dependence; got 'arival'"),
        ({"sensitive": {"arrival": ["soon"]}}, "sensitive.arrival must be a value of arrival; got 'soon'"),
        ({"sensitive": {"arrival": "late"}}, "sensitive.arrival must be a list of values; got 'late'"),
        ({"sensitive": ["arrival"]}, "sensitive must be a mapping, not a list"),
        ({"epsilon": {"arival": 1}}, "epsilon must be an attribute of the dependence; got 'arival'"),
        ({"epsilon": {"arrival": -1}}, "epsilon.arrival must be a number from 0; got -1"),
        ({"epsilon": {"arrival": math.nan}}, "epsilon.arrival must be a number from 0; got nan"),
        ({"epsilon": {"arrival": True}}, "epsilon.arrival must be a number from 0; got True"),
        ({"epsilon": {"arrival": "1"}}, "epsilon.arrival must be a number from 0; got '1'"),
        ({"epsilon": 1.0}, "epsilon must be a mapping, not a float"),
        ({"coins": "new"}, 'coins must be "fresh" or "remembered"; got \'new\''),
        ({"applications": ["lighting"]}, "applications must be a mapping, not a list"),
        ({"applications": {"lighting": ["room"]}}, "seen must be an attribute of the dependence; got 'room'"),
        ({"applications": {"lighting": {"arrival": -1}}}, "applications.lighting.arrival must be a number from 0"),
        ({"applications": {"lighting": "arrival"}}, "seen must be a list of attributes; got 'arrival'"),
        ({"applications": SEEN_BY, "coalitions": [["lighting", "heating"]]}, "coalitions must name applications"),
        ({"applications": SEEN_BY, "coalitions": ["lighting"]}, "coalitions must be a list of lists"),
        ({"policy": 3}, "policy"),
    ],
)
def test_audits_that_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(tc.Refused) as refused:
        audit(**options)
    assert says in str(refused.value)


def test_a_dependence_must_be_about_the_policys_attributes() -> None:
    whole = tc.Domain(
        {"arrival": tc.Categories(["late", "nine", "eight"]), "leaving": tc.Categories(["early", "late"])}
    )
    secret = tc.secrets.everything()
    assert audit(policy=tc.Policy(whole, secret)).odds("arrival") == pytest.approx(0.25)
    lacks = tc.Policy(tc.Domain({"arrival": tc.Categories(["late", "nine", "eight"])}), secret)
    with pytest.raises(tc.PolicyError, match="dependence must be an attribute of the domain; got 'leaving'"):
        audit(policy=lacks)
    fewer = tc.Policy(tc.Domain({**whole, "leaving": tc.Categories(["early", "noon"])}), secret)
    with pytest.raises(tc.PolicyError, match="dependence: leaving must be one of the categories; got 'late'"):
        audit(policy=fewer)


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        ({"released": {"arrival": "late"}}, "released.arrival is sensitive and never released; got 'late'"),
        ({"released": {"arrival": "soon"}}, "released.arrival must be a value of arrival; got 'soon'"),
        ({"released": {"arival": "nine"}}, "released must be an attribute of the dependence; got 'arival'"),
        ({"suppressed": {"arival": 1}}, "suppressed must be an attribute of the dependence; got 'arival'"),
        (
            {"suppressed": {"arrival": 0.5}},
            "suppressed.arrival must be a whole number from 0 to 1,000,000,000; got 0.5",
        ),
        ({"suppressed": {"arrival": -1}}, "suppressed.arrival must be a whole number from 0 to 1,000,000,000; got -1"),
        (
            {"suppressed": {"arrival": True}},
            "suppressed.arrival must be a whole number from 0 to 1,000,000,000; got True",
        ),
        ({"suppressed": "arrival"}, "suppressed must be a mapping of names to numbers; got 'arrival'"),
        ({"released": ["arrival"]}, "released must be a mapping, not a list"),
    ],
)
def test_patterns_that_are_refused(seen: dict[str, Any], says: str) -> None:
    with pytest.raises(tc.PlanError) as refused:
        audit().posterior("leaving", **seen)
    assert says in str(refused.value)


def test_what_cannot_be_seen_is_refused_by_its_attribute() -> None:
    sure = tc.Dependence.from_table({("s", 0): 0.2, ("a", 0): 0.4, ("b", 1): 0.4}, names=("i", "j"))
    leak = tc.audit.exclusion(sure, {"i": ["s"], "j": []}, {"i": 1, "j": math.inf})
    with pytest.raises(tc.PlanError, match=r"released\.j has probability 0 .* together with what was seen of i; got 1"):
        leak.posterior("i", released={"i": "a", "j": 1})
    with pytest.raises(tc.PlanError, match=r"suppressed\.j has probability 0 under the dependence; got 1"):
        leak.odds("i", suppressed={"j": 1})
    with pytest.raises(tc.PlanError, match="released names an attribute that is not released; got 'j'"):
        tc.audit.exclusion(sure, {}, {"i": 1}).odds("i", released={"j": 1})
    with pytest.raises(tc.PlanError, match="i cannot be both suppressed and released where its coin is remembered"):
        tc.audit.exclusion(sure, {}, {"i": 1}, coins="remembered").odds("j", {"i": 1}, {"i": "a"})
    with pytest.raises(tc.PlanError, match="questions names an attribute that is not seen; got 'j'"):
        leak.mutual_information("i", seen=["i"], questions={"j": 2})
