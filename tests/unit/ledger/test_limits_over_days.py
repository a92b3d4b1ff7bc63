"""Limits over days and people: what was shown yesterday counts today, against every world; and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multinomial
from tests.joints import Case, information, joint_with_outcomes, learned_together

import tacit as tc
from tacit.ledger import applications
from tacit.plan.leakage import outcomes
from tacit.plan.leakage.shown import Shown, ShownSoFar

STAYS = {"late": {"late": 0.7, "early": 0.3}, "early": {"late": 0.2, "early": 0.8}}
START = {"late": 0.4, "early": 0.6}
DAYS = 4
CHAIN = {"arrival": {"given": ["arrival@before"], "table": STAYS}}
WEEK = tc.Dependence.over(CHAIN, first={"arrival": START}, days=DAYS)
SENSITIVE = WEEK.each({"arrival": ["late"]})
COALITIONS = {"lighting": ["lighting"], "both": ["lighting", "space"]}
HALF = Fraction(1, 2)


def chance(world: tuple[str, ...]) -> float:
    found = START[world[0]]
    for before, now in itertools.pairwise(world):
        found *= STAYS[before][now]
    return found


WORLDS = {world: chance(world) for world in itertools.product(("late", "early"), repeat=DAYS)}


def limits(limit: Any = 5.0, **options: Any) -> tc.Applications:
    return tc.Applications(WEEK, sensitive=SENSITIVE, coalitions=COALITIONS, limit=limit, **{"by": "day", **options})


def random_showing(rng: np.random.Generator) -> tuple[list[Shown], Case]:
    """Return what applications were shown of some days, and what both of them together see, by every world."""
    days = [day for day in range(1, DAYS + 1) if rng.random() < 0.8] or [1]
    amounts = [Fraction(int(rng.integers(10, 200)), 100) for _ in days]
    who = [["lighting", "space"][int(rng.integers(2))] for _ in days]
    shown = [Shown(one, f"arrival@{day}", at) for one, day, at in zip(who, days, amounts, strict=True)]
    epsilon = {one.attribute: float(one.epsilon) for one in shown}
    return shown, Case(WORLDS, WEEK.names, {name: ["late"] for name in WEEK.names}, epsilon)


def surest(case: Case) -> float:
    best = 0.0
    for target in WEEK.names:
        table = joint_with_outcomes(case, target, case.epsilon, target_bit=True)
        for outcome in {outcome for _, outcome in table}:
            hidden, other = (table.get((bit, outcome), 0.0) for bit in (True, False))
            best = max(best, hidden / (hidden + other) if hidden else 0.0)
    return best


def check_standing(shown: list[Shown], case: Case, *, is_exact: bool) -> list[float]:
    """Hold where both applications stand against every world; return by how much bounds are above."""
    above = []
    for limit in ({"both": 5.0}, WEEK.each({"arrival": 5.0})):
        for stands in (one for one in limits(limit).standing(shown) if one.coalition == "both"):
            exact = learned_together(case, stands.about, list(case.epsilon), case.epsilon)
            assert stands.leakage == pytest.approx(exact, abs=1e-10) if is_exact else stands.leakage >= exact - 1e-10
            assert stands.posterior >= surest(case) - 1e-10
            assert not is_exact or stands.posterior == pytest.approx(surest(case), abs=1e-10)
            above.append(stands.leakage - exact)
    return above


def test_a_coalition_knows_what_it_was_shown_on_all_days() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        check_standing(*random_showing(rng), is_exact=True)


def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, size in ((outcomes, "MOST_OUTCOMES", 8), (outcomes, "MOST_AROUND", 30)):
        monkeypatch.setattr(module, name, size)
    monkeypatch.setattr(applications, "MOST_OUTCOMES", 8)
    monkeypatch.setattr(applications, "QUICK", (30,))


def test_what_has_too_many_outcomes_is_never_taken_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    small_tables(monkeypatch)
    above = [one for _ in range(10) for one in check_standing(*random_showing(rng), is_exact=False)]
    assert 1e-6 < max(above) < 0.1


def only_the_last(self: ShownSoFar, shown: Any) -> ShownSoFar:
    found = ShownSoFar()
    found.add(shown)
    return found


def yesterday_and_today(applied: tc.Applications) -> list[float]:
    yesterday, today = ([Shown("lighting", f"arrival@{day}", HALF)] for day in (1, 2))
    return [one.leakage for one in applied.weigh(yesterday, today)]


def test_what_forgets_yesterday_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = limits(WEEK.each({"arrival": 5.0}))
    case = Case(WORLDS, WEEK.names, {name: ["late"] for name in WEEK.names}, {"arrival@1": 0.5, "arrival@2": 0.5})
    exact = [information(joint_with_outcomes(case, name, case.epsilon)) for name in WEEK.names for _ in COALITIONS]
    np.testing.assert_allclose(yesterday_and_today(applied), exact, atol=1e-10)
    monkeypatch.setattr(ShownSoFar, "after", only_the_last)
    assert max(np.array(exact) - yesterday_and_today(applied)) > 0.01


def test_a_team_of_thirty_is_bounded_too() -> None:
    arrival = {"given": ["meeting"], "table": {"yes": {"late": 0.1, "early": 0.9}, "no": {"late": 0.4, "early": 0.6}}}
    tables = {"meeting": {"yes": 0.3, "no": 0.7}, "arrival": arrival}
    team = tc.Dependence.over(tables, people=30, shared=["meeting"])
    about = tc.Applications(team, sensitive={"meeting": ["yes"]}, coalitions=COALITIONS, limit=9, by="who")
    (stands, _) = about.standing([Shown("lighting", f"arrival@{one}", HALF) for one in range(1, 31)])
    # nobody's arrival is sensitive: each is shown with its value, or not
    shown = -math.expm1(-0.5)
    late, early = ([[0.1, 0.4][no] * shown for no in (0, 1)], [[0.9, 0.6][no] * shown for no in (0, 1)])
    law = {
        (no, a, b): (0.3, 0.7)[no] * multinomial.pmf([a, b, 30 - a - b], 30, [late[no], early[no], 1 - shown])
        for no in (0, 1)
        for a in range(31)
        for b in range(31 - a)
    }
    exact = information({(no, (a, b)): one for (no, a, b), one in law.items()})
    assert exact <= stands.leakage == pytest.approx(-0.3 * math.log(0.3) - 0.7 * math.log(0.7))
    assert stands.posterior == 1.0


# ---- in a session ---------------------------------------------------------------------------------------------------

DOMAIN = tc.Domain(
    {"day": tc.Integers(1, DAYS), "floor": tc.Integers(0, 1), "arrival": tc.Categories(["late", "early"])}
)
POLICY = tc.Policy(DOMAIN, tc.secrets.values({"arrival": ["late"]}))
ROWS = pd.DataFrame(
    [(room, day, 1, "late" if (room + day) % 3 == 0 else "early") for room in range(8) for day in range(1, DAYS + 1)],
    columns=["room", "day", "floor", "arrival"],
)


def of_day(where: str | None, key: Any = ("room", "day"), application: str = "lighting") -> Any:
    return tc.true_records(["arrival"], key=list(key), application=application, where=where)


def opened(folder: Path, limit: Any, rows: Any = ROWS, **options: Any) -> tc.Session:
    ledger = folder / "ledger.db"
    return tc.Session(POLICY, rows, 20, ledger=ledger, dataset="rooms", leakage=limits(limit, **options))


def test_what_was_shown_yesterday_counts_today(tmp_path: Path) -> None:
    one_day = limits().standing([Shown("lighting", "arrival@2", HALF)])[0].leakage
    limit = WEEK.each({"arrival": one_day + 0.01})
    (tmp_path / "alone").mkdir()
    assert not opened(tmp_path / "alone", limit).explain(of_day("day == 2"), epsilon=0.5).leakage_refused
    opened(tmp_path, limit).release(of_day("day == 1"), epsilon=0.5)
    session = opened(tmp_path, limit)
    with pytest.raises(tc.BudgetExceeded, match=r"about arrival@1; after this release .*arrival@2 to lighting"):
        session.release(of_day("day == 2"), epsilon=0.5)
    assert session.remaining == 20 - HALF
    assert [str(one) for one in tc.Ledger(tmp_path / "ledger.db").shown(dataset="rooms")] == [
        "day to lighting",
        "arrival@1 to lighting",
    ]


@pytest.mark.parametrize(
    ("where", "days"),
    [
        (None, [1, 2, 3, 4]),
        ("day >= 3", [3, 4]),
        ("day in [1, 4] and not day == 1", [4]),
        ("floor == 1 or day == 3", [1, 2, 3, 4]),
        ("floor == 1 and day == 3", [3]),
    ],
)
def test_a_release_is_about_the_days_that_it_may_pick(where: str | None, days: list[int], tmp_path: Path) -> None:
    session = opened(tmp_path, 9)
    session.release(of_day(where), epsilon=0.5)
    shown = [one for one in tc.Ledger(tmp_path / "ledger.db").shown(dataset="rooms") if not one.is_public]
    assert [one.attribute for one in shown] == [f"arrival@{day}" for day in days]
    assert len({one.line for one in shown}) == len(days)
    assert {one.epsilon for one in shown} == {HALF}


def test_days_that_the_key_does_not_tell_apart_share_their_coins(tmp_path: Path) -> None:
    rows = ROWS.assign(row=range(len(ROWS)))
    opened(tmp_path, 9, rows).release(of_day("day <= 2", key=["row"]), epsilon=0.5)
    (stands, _) = tc.Ledger(tmp_path / "ledger.db").leakage(dataset="rooms")
    assert {round(float(one), 4) for one in stands.sees.values()} == {0.9869}


def test_what_was_shown_before_of_no_day_counts_for_every_day(tmp_path: Path) -> None:
    tc.Session(POLICY, ROWS, 20, ledger=tmp_path / "ledger.db", dataset="rooms").release(of_day(None), epsilon=0.5)
    opened(tmp_path, 9).release(of_day("day == 1"), epsilon=1)
    (stands, _) = tc.Ledger(tmp_path / "ledger.db").leakage(dataset="rooms")
    assert sorted(stands.sees) == list(WEEK.names)
    assert min(stands.sees.values()) >= HALF


def test_people_of_a_household_have_names_of_their_own(tmp_path: Path) -> None:
    home = {"home": {"away": 0.3, "there": 0.7}}
    arrival = {"given": ["home"], "table": {"away": {"late": 1}, "there": {"late": 0.2, "early": 0.8}}}
    tables = {**home, "arrival": arrival}
    weekend = tc.Dependence.over(tables, people=["ana", "bob"], shared=["home"], days=["sat", "sun"])
    assert weekend.names[:3] == ("home@sat", "arrival@ana@sat", "arrival@bob@sat")
    domain = {"who": tc.Categories(["ana", "bob"]), "day": tc.Categories(["sat", "sun"]), "arrival": DOMAIN["arrival"]}
    policy = tc.Policy(tc.Domain(domain), POLICY.secrets)
    sensitive = {**weekend.each({"arrival": ["late"]}), **weekend.each({"home": ["away"]})}
    limit = {**weekend.each({"arrival": 5.0}), "home@sat": 0.15}
    about = tc.Applications(weekend, sensitive=sensitive, coalitions=COALITIONS, limit=limit, by=["who", "day"])
    rows = pd.DataFrame([(1, who, day, "early") for who in ("ana", "bob") for day in ("sat", "sun")])
    rows.columns = pd.Index(["home", "who", "day", "arrival"])
    session = tc.Session(policy, rows, 20, ledger=tmp_path / "ledger.db", dataset="rooms", leakage=about)
    key = ["home", "who", "day"]
    session.release(of_day("who == 'ana' and day == 'sat'", key=key), epsilon=0.5)
    with pytest.raises(tc.BudgetExceeded, match=r"about home@sat; .* arrival@bob@sat to lighting"):
        session.release(of_day("who == 'bob' and day == 'sat'", key=key), epsilon=0.5)
    session.release(of_day("who == 'bob' and day == 'sun'", key=key), epsilon=0.5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "week"}, "by must be an attribute of the domain; got 'week'"),
        ({"by": ["day", "room"]}, "by must say as many columns as names of the dependence have labels"),
        ({"by": 3}, 'Say by=["day"].'),
        (
            {"by": "arrival"},
            "leakage must have names with values of arrival as the policy writes them; got 'arrival@1'",
        ),
        ({"by": ()}, "leakage must be about attributes of the policy; got 'arrival@1'"),
    ],
)
def test_columns_that_say_no_day_are_refused(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises((tc.PlanError, tc.PolicyError)) as refused:
        opened(tmp_path, 9, **options)
    assert said in str(refused.value)


def test_a_day_beyond_the_horizon_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    longer = tc.Policy(tc.Domain({**DOMAIN, "day": tc.Integers(1, DAYS + 1)}), POLICY.secrets)
    session = tc.Session(longer, ROWS, 20, ledger=tmp_path / "ledger.db", dataset="rooms", leakage=limits(9))
    for where in (None, "day == 5"):
        with pytest.raises(
            tc.PlanError, match="must be about days and people that the dependence has arrival of; got '5'"
        ):
            session.release(of_day(where), epsilon=0.5)
    session.release(of_day("day < 5"), epsilon=0.5)
    assert session.remaining == Fraction(39, 2)


# ---- plans over a horizon -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", [None, 0.75])
def test_a_plan_over_days_keeps_its_limits_in_every_world(
    posterior: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_tables(monkeypatch)
    most = WEEK.each({"arrival": 0.35})
    plan = tc.plan.leakage_budget(
        WEEK, sensitive=SENSITIVE, limit=most, coalitions={"all": list(WEEK.names)}, posterior=posterior
    )
    epsilon = dict(plan.epsilon)
    case = Case(WORLDS, WEEK.names, {name: ["late"] for name in WEEK.names}, epsilon)
    for name in WEEK.names:
        assert information(joint_with_outcomes(case, name, WEEK.names)) <= 0.35
    assert posterior is None or surest(case) <= posterior
    # with everything gone through, the best is within the gap
    monkeypatch.undo()
    best = tc.plan.leakage_budget(
        WEEK, sensitive=SENSITIVE, limit=most, coalitions={"all": list(WEEK.names)}, posterior=posterior
    )
    assert best.value <= plan.value + plan.gap + 1e-9
    assert plan.value > 0.2 * best.value


def test_a_limit_below_what_can_be_certified_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small_tables(monkeypatch)
    with pytest.raises(tc.PlanError, match=r"limit must be at least .* what lies beyond the nearest attributes"):
        tc.plan.leakage_budget(
            WEEK, sensitive=SENSITIVE, limit=WEEK.each({"arrival": 0.001}), coalitions={"all": list(WEEK.names)}
        )
