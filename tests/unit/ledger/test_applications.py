"""Applications in a ledger: what was shown to whom, what coalitions could know, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import create_engine, text
from tests.joints import Case, joint_with_outcomes, learned_together

import tacit as tc
from tacit.dependence.suppression import outcomes, suppression
from tacit.ledger.clauses import RecordsShown
from tacit.ledger.coins import RaisedCoins
from tacit.plan.leakage.shown import Shown
from tacit.rows.files.identity import FileContents

WORLDS = {("late", "early"): 0.2, ("late", "late"): 0.1, ("early", "early"): 0.2, ("early", "late"): 0.5}
DAY = tc.Dependence.from_table(WORLDS, names=("arrival", "leaving"))
SENSITIVE = {"arrival": ["late"], "leaving": ["early"]}
COALITIONS = {"lighting": ["lighting"], "both": ["lighting", "space"]}
THIRD = Fraction(1, 3)


def limits(limit: Any = 0.2, **options: Any) -> tc.Applications:
    return tc.Applications(DAY, sensitive=SENSITIVE, coalitions=COALITIONS, limit=limit, **options)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tc.Ledger:
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)
    opened = tc.Ledger(tmp_path / "ledger.db")
    opened.grant(dataset="rooms", epsilon=10)
    return opened


def show(ledger: tc.Ledger, applications: tc.Applications | None, *shown: Shown) -> None:
    cost = sum((one.epsilon for one in shown), Fraction(0))
    ledger.reserve(dataset="rooms", charges=[(cost, "records")], clauses=[RecordsShown(shown, applications)])


# ---- what coalitions could know -------------------------------------------------------------------------------------


def test_a_coalition_knows_what_all_its_members_were_shown() -> None:
    shown = [Shown("lighting", "arrival", THIRD), Shown("space", "leaving", Fraction(1, 5))]
    alone, both = limits().standing(shown)
    day = Case(WORLDS, DAY.names, SENSITIVE, {"arrival": 1 / 3, "leaving": 0.2})
    release = suppression(DAY, SENSITIVE, {"arrival": 1 / 3, "leaving": 0.2})
    for stands, seen in ((alone, ["arrival"]), (both, ["arrival", "leaving"])):
        found = [outcomes(release, target, seen) for target in SENSITIVE]
        together = learned_together(day, SENSITIVE, seen, day.epsilon)
        assert stands.leakage == pytest.approx(together, abs=1e-12)
        assert together > max(one.information() for one in found) - 1e-12
        odds = max(float(one.log_odds().max()) for one in found)
        assert stands.posterior == pytest.approx(1 / (1 + math.exp(-odds)), abs=1e-12)
    assert "leaving is sensitive with probability 0.4778 given arrival suppressed, leaving suppressed" in str(both)


def test_remembered_coins_count_once_and_others_add_up() -> None:
    once = limits().standing([Shown("lighting", "arrival", THIRD, "a")])
    again = limits().standing([Shown("lighting", "arrival", THIRD / 2, "a"), Shown("lighting", "arrival", THIRD, "a")])
    fresh = limits().standing([Shown("lighting", "arrival", THIRD), Shown("lighting", "arrival", THIRD)])
    double = limits().standing([Shown("lighting", "arrival", 2 * THIRD)])
    assert [one.leakage for one in again] == [one.leakage for one in once]
    assert [one.leakage for one in fresh] == [one.leakage for one in double]
    assert fresh[0].leakage > 1.5 * once[0].leakage


def test_what_everybody_sees_every_coalition_sees() -> None:
    alone, both = limits().standing([Shown("", "leaving", THIRD)])
    assert alone.leakage == both.leakage > 0


# ---- in a ledger ----------------------------------------------------------------------------------------------------


def test_a_release_that_would_tell_too_much_is_refused_before_it_is_charged(ledger: tc.Ledger) -> None:
    wanted = limits({"lighting": 0.1, "both": 0.2})
    ledger.limit_leakage(dataset="rooms", applications=wanted)
    show(ledger, wanted, Shown("lighting", "arrival", THIRD))
    before = (ledger.remaining(dataset="rooms"), len(ledger.entries()))
    for refused, said in (
        (Shown("lighting", "arrival", THIRD), "leakage of lighting must stay at most 0.1 nats"),
        (Shown("space", "leaving", Fraction(4, 5)), "leakage of both must stay at most 0.2 nats"),
    ):
        with pytest.raises(tc.BudgetExceeded, match=said):
            show(ledger, wanted, refused)
    assert (ledger.remaining(dataset="rooms"), len(ledger.entries())) == before
    show(ledger, wanted, Shown("space", "leaving", Fraction(1, 5)))
    assert [str(one) for one in ledger.shown(dataset="rooms")] == ["arrival to lighting", "leaving to space"]
    (alone, both) = ledger.leakage(dataset="rooms")
    assert (alone.coalition, both.coalition) == ("lighting", "both")
    assert both == wanted.standing(ledger.shown(dataset="rooms"))[1]
    assert ledger.verify().ok


def test_what_is_refused_at_no_cost_notes_nothing_of_its_files_either(ledger: tc.Ledger, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    before = ledger.coins(dataset="rooms", lines=["line"], source="a")
    kept = RaisedCoins(before, {}, before.contents_now(FileContents([str(tmp_path / "a.csv")]), ["line"]))
    for epsilon in (Fraction(4), THIRD):
        showing = RecordsShown((Shown("lighting", "arrival", epsilon),), limits())
        if epsilon > 1:
            with pytest.raises(tc.BudgetExceeded):
                ledger.reserve(dataset="rooms", charges=[], clauses=[kept, showing])
        else:
            ledger.reserve(dataset="rooms", charges=[], clauses=[kept, showing])
        noted = ledger.coins(dataset="rooms", lines=["line"], source="a").contents
        assert bool(noted) is (epsilon < 1)


def test_a_posterior_can_be_limited_too(ledger: tc.Ledger) -> None:
    wanted = limits(5, posterior=0.45)
    show(ledger, wanted, Shown("lighting", "arrival", THIRD))
    with pytest.raises(tc.BudgetExceeded, match=r"posterior of both must stay at most 0\.45 in every outcome"):
        show(ledger, wanted, Shown("space", "leaving", THIRD))


@pytest.mark.parametrize(
    "given",
    [
        {"limit": 5},
        {"limit": {"arrival": 5}},
        {"limit": {"leaving": 5}},
        {"limit": {"both": 5}},
        {"limit": {"arrival": 5}, "own": False},
        {"limit": {"arrival": 5, "leaving": 5}, "own": False},
        {"limit": {"leaving": 5}, "measure": "bit"},
    ],
)
def test_a_posterior_holds_for_every_coalition_and_attribute(given: dict[str, Any]) -> None:
    rng = np.random.default_rng(11)
    for _ in range(4):
        first, second, third = (Fraction(int(one), 100) for one in rng.integers(5, 160, 3))
        shown = [Shown("lighting", "arrival", first), Shown("space", "leaving", second), Shown("", "arrival", third)]
        views = {"lighting": {"arrival": first + third}, "both": {"arrival": first + third, "leaving": second}}
        worst = max(_surest({name: float(one) for name, one in sees.items()}) for sees in views.values())
        assert max(one.posterior for one in limits(**given).standing(shown)) <= worst + 1e-12
        limits(**given, posterior=worst + 1e-9).weigh([], shown)
        with pytest.raises(tc.BudgetExceeded, match="in every outcome"):
            limits(**given, posterior=worst - 1e-9).weigh([], shown)


def _surest(epsilon: dict[str, float]) -> float:
    """Return the largest probability of a secret given any outcome, by every world and every coin."""
    case = Case(WORLDS, DAY.names, SENSITIVE, epsilon)
    best = 0.0
    for target in SENSITIVE:
        table = joint_with_outcomes(case, target, epsilon, target_bit=True)
        for _, outcome in table:
            hidden, other = table.get((True, outcome), 0.0), table.get((False, outcome), 0.0)
            best = max(best, hidden / (hidden + other) if hidden else 0.0)
    return best


def test_a_coalition_without_a_limit_may_not_be_too_sure_either(ledger: tc.Ledger) -> None:
    apart = {"lighting": ["lighting"], "space": ["space"]}
    for limit in ({"lighting": 5}, {"arrival": 5}):
        wanted = tc.Applications(DAY, sensitive=SENSITIVE, coalitions=apart, limit=limit, posterior=0.5)
        ledger.limit_leakage(dataset="rooms", applications=wanted, replace=True)
        before = (ledger.remaining(dataset="rooms"), len(ledger.entries()))
        with pytest.raises(tc.BudgetExceeded, match=r"posterior of space must .* leaving is sensitive with prob"):
            show(ledger, wanted, Shown("space", "leaving", Fraction(2)))
        assert (ledger.remaining(dataset="rooms"), len(ledger.entries())) == before


def test_limits_hold_for_whoever_charges_the_ledger(ledger: tc.Ledger) -> None:
    ledger.limit_leakage(dataset="rooms", applications=limits())
    assert ledger.limit_leakage(dataset="rooms", applications=limits()) is None
    for other in (None, limits(0.3)):
        with pytest.raises(tc.LedgerError, match="leakage must be given: dataset 'rooms' has limits"):
            show(ledger, other, Shown("lighting", "arrival", THIRD))
    with pytest.raises(tc.LedgerError, match="must be those that hold for dataset 'rooms' already"):
        ledger.limit_leakage(dataset="rooms", applications=limits(0.3))
    ledger.limit_leakage(dataset="rooms", applications=limits(0.3), replace=True)
    show(ledger, limits(0.3), Shown("lighting", "arrival", THIRD))
    assert ledger.verify().ok


def test_what_was_shown_before_there_were_limits_counts(ledger: tc.Ledger) -> None:
    show(ledger, None, Shown("lighting", "arrival", Fraction(2, 3)))
    ledger.limit_leakage(dataset="rooms", applications=limits())
    with pytest.raises(tc.BudgetExceeded):
        show(ledger, limits(), Shown("space", "leaving", Fraction(1, 5)))


def test_data_sets_are_apart(ledger: tc.Ledger) -> None:
    ledger.grant(dataset="halls", epsilon=1)
    ledger.limit_leakage(dataset="halls", applications=limits())
    show(ledger, None, Shown("lighting", "arrival", THIRD))
    assert ledger.shown(dataset="halls") == []


def test_whoever_changes_what_was_shown_is_found(ledger: tc.Ledger, tmp_path: Path) -> None:
    show(ledger, limits(), Shown("lighting", "arrival", THIRD))
    with create_engine(f"sqlite:///{tmp_path / 'ledger.db'}").begin() as db:
        db.execute(text("UPDATE tacit_entries SET policy_text = replace(policy_text, '1/3', '1/9') WHERE kind='shown'"))
    assert not ledger.verify().ok
    with pytest.raises(tc.LedgerError, match="damaged"):
        show(ledger, limits(), Shown("space", "leaving", Fraction(1, 5)))


@pytest.mark.parametrize(("kind", "column"), [("shown", "policy_text"), ("shown", "analyst"), ("limits", "policy")])
def test_whoever_changes_what_is_not_the_last_entry_is_found_where_it_is_used(
    kind: str, column: str, ledger: tc.Ledger, tmp_path: Path
) -> None:
    ledger.limit_leakage(dataset="rooms", applications=limits())
    show(ledger, limits(), Shown("lighting", "arrival", THIRD))
    ledger.charge(dataset="rooms", epsilon=1)  # the head fits this one
    new = {
        "policy_text": "replace(policy_text, '1/3', '1/9')",
        "analyst": "'ana'",
        "policy": f"'{limits(5).fingerprint}'",
    }
    with create_engine(f"sqlite:///{tmp_path / 'ledger.db'}").begin() as db:
        db.execute(text(f"UPDATE tacit_entries SET {column} = {new[column]} WHERE kind = '{kind}'"))
    assert not ledger.verify().ok
    for read in (ledger.shown, ledger.leakage) if kind == "shown" else ():
        with pytest.raises(tc.LedgerError, match="what it says of applications was changed"):
            read(dataset="rooms")
    # charges rest on sums that are sealed by themselves, and these are as they were
    with pytest.raises(tc.LedgerError, match="must be those that hold"):
        ledger.limit_leakage(dataset="rooms", applications=limits(5))
    with pytest.raises(tc.LedgerError, match="has limits on what applications learn"):
        show(ledger, limits(5), Shown("space", "leaving", Fraction(4, 5)))
    with pytest.raises(tc.BudgetExceeded):
        show(ledger, limits(), Shown("lighting", "arrival", Fraction(4)))
    assert ledger.remaining(dataset="rooms") == 9 - THIRD


def test_an_entry_that_spends_nothing_cannot_be_made_to(ledger: tc.Ledger, tmp_path: Path) -> None:
    show(ledger, limits(), Shown("lighting", "arrival", THIRD))
    with create_engine(f"sqlite:///{tmp_path / 'ledger.db'}").begin() as db:
        db.execute(text("UPDATE tacit_entries SET kind = 'limits' WHERE kind = 'charge'"))
    assert not ledger.verify().ok


# ---- what is refused ------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no coalition": ({"coalitions": {}}, "coalitions must map names to applications"),
    "empty coalition": ({"coalitions": {"both": []}}, "coalitions must name applications; got 'both'"),
    "limit": ({"limit": -0.1}, "limit must be a finite number, zero or more; got -0.1"),
    "limit name": ({"limit": {"bth": 0.1}}, "Did you mean 'both'?"),
    "posterior": ({"posterior": 2}, "posterior must be a probability; got 2"),
    "sensitive": ({"sensitive": {"arrival": ["never"]}}, "must be a value of arrival; got 'never'"),
    "measure": ({"measure": "bits"}, "measure must be value or bit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_limits_that_mean_nothing_are_refused(name: str) -> None:
    given, said = WRONG[name]
    options = {"sensitive": SENSITIVE, "coalitions": COALITIONS, "limit": 0.1, **given}
    with pytest.raises(tc.PlanError) as refused:
        tc.Applications(DAY, **options)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (Shown("lightning", "arrival", THIRD), "Did you mean 'lighting'?"),
        (Shown("lighting", "arival", THIRD), "Did you mean 'arrival'?"),
    ],
)
def test_what_the_limits_do_not_know_is_refused(ledger: tc.Ledger, shown: Shown, said: str) -> None:
    with pytest.raises(tc.LedgerError) as refused:
        show(ledger, limits(), shown)
    assert said in str(refused.value)
    assert len(ledger.entries()) == 1


def test_limits_are_about_attributes_of_the_policy() -> None:
    domain = tc.Domain({"arrival": tc.Categories(["late", "early"])})
    policy = tc.Policy(domain, tc.secrets.everything())
    rows = pd.DataFrame({"arrival": ["late"]})
    with pytest.raises(tc.PlanError, match="leakage must be about attributes of the policy; got 'leaving'"):
        tc.Session(policy, rows, 1.0, leakage=limits())
    with pytest.raises(tc.PlanError, match="leakage must be limits on what applications learn, not a dict"):
        tc.Session(policy, rows, 1.0, leakage={"both": 0.1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attribute", "values", "given"),
    [
        (tc.Categories(["late", "early"]), ("late", "Early"), "'Early'"),
        (tc.Integers(0, 1), ("0", "1"), "'0'"),
        (tc.Dates("2024-01-01", "2024-01-02"), ("2024-01-01", "2024-01-03"), "'2024-01-03'"),
    ],
)
def test_limits_are_about_values_of_the_policy(attribute: Any, values: tuple[Any, ...], given: str) -> None:
    policy = tc.Policy(tc.Domain({"arrival": attribute}), tc.secrets.everything())
    dependence = tc.Dependence.from_table(dict.fromkeys(values, 0.5), names=["arrival"])
    about = tc.Applications(dependence, sensitive={"arrival": values[:1]}, coalitions=COALITIONS, limit=0.1)
    with pytest.raises(tc.PlanError, match=f"leakage must be about values of arrival as the policy .* got {given}"):
        tc.Session(policy, pd.DataFrame({"arrival": []}), 1.0, leakage=about)


def test_what_attributes_say_about_themselves_is_left_out_only_where_each_has_a_limit() -> None:
    with pytest.raises(tc.PlanError, match="own must be left out where what lighting learns is limited about several"):
        limits(0.2, own=False)
    alone, _ = limits({"leaving": 0.2}, own=False).standing([Shown("lighting", "leaving", THIRD)])
    assert alone.leakage == 0.0


# ---- in a session ---------------------------------------------------------------------------------------------------

DOMAIN = tc.Domain({"arrival": tc.Categories(["late", "early"]), "leaving": tc.Categories(["late", "early"])})
ROOMS = pd.DataFrame(
    {
        "room": range(40),
        "arrival": ["late" if number % 3 == 0 else "early" for number in range(40)],
        "leaving": ["early" if number % 4 == 0 else "late" for number in range(40)],
    }
)


def asked(attribute: str, application: str | None = None, **options: Any) -> Any:
    return tc.true_records([attribute], **{"key": "room", "application": application, **options})


@pytest.mark.parametrize("shared", [False, True])
def test_a_session_refuses_what_would_tell_too_much_and_charges_nothing(tmp_path: Path, shared: bool) -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.values(SENSITIVE))
    where = tmp_path / "ledger.db" if shared else None
    session = tc.Session(
        policy, ROOMS, 5, ledger=where, dataset="rooms", leakage=limits({"lighting": 0.1, "both": 0.2})
    )
    first = session.release(asked("arrival", "lighting"), epsilon=0.3)
    again = session.release(asked("arrival", "lighting"), epsilon=0.3)
    assert first.frame["arrival"].tolist() == again.frame["arrival"].tolist()
    left = session.remaining
    for attribute, application in (("arrival", "lighting"), ("leaving", "space"), ("leaving", None)):
        said = session.explain(asked(attribute, application), epsilon=0.9, show=False)
        with pytest.raises(tc.BudgetExceeded, match="leakage of") as refused:
            session.release(asked(attribute, application), epsilon=0.9)
        assert said.leakage_refused == said.document()["leakage_refused"] == str(refused.value)
        assert f"would be refused: {refused.value}" in str(said)
        assert "would remain" not in str(said)
    assert session.remaining == left
    fits = session.explain(asked("leaving", "space"), epsilon=0.2, show=False)
    assert fits.leakage_refused == ""
    assert "budget that would remain: 4.5" in str(fits)
    session.release(tc.histogram("arrival"), epsilon=1)  # what is blurred shows no record
    session.release(asked("leaving", "space"), epsilon=0.2)
    if where is not None:
        ledger = tc.Ledger(where)
        assert [str(one) for one in ledger.shown(dataset="rooms")] == ["arrival to lighting", "leaving to space"]
        assert ledger.verify().ok
        other = tc.Session(policy, ROOMS, ledger=where, dataset="rooms")
        with pytest.raises(tc.LedgerError, match="leakage must be given: dataset 'rooms' has limits"):
            other.release(asked("arrival", "lighting"), epsilon=0.4)


def test_new_coins_count_anew(tmp_path: Path) -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.values(SENSITIVE))
    where = tmp_path / "ledger.db"
    session = tc.Session(policy, ROOMS, 5, ledger=where, dataset="rooms", leakage=limits({"lighting": 0.1}))
    session.release(asked("arrival", "lighting"), epsilon=0.3)
    tc.Ledger(where).rotate_coins(dataset="rooms")
    with pytest.raises(tc.BudgetExceeded, match="leakage of lighting"):
        session.release(asked("arrival", "lighting"), epsilon=0.3)


def test_the_policy_hides_what_the_limits_take_for_sensitive() -> None:
    other = tc.Policy(DOMAIN, tc.secrets.values({"arrival": ["early"], "leaving": ["early"]}))
    session = tc.Session(other, ROOMS, 5, leakage=limits())
    with pytest.raises(tc.PlanError, match="must take for sensitive what the policy hides of arrival: early"):
        session.release(asked("arrival", "lighting"), epsilon=0.1)
    whole = tc.Policy(DOMAIN, tc.secrets.records("arrival == 'late'"))
    session = tc.Session(whole, ROOMS, 5, leakage=limits())
    with pytest.raises(tc.PlanError, match="must be hidden by its own value alone"):
        session.release(asked("leaving", "space"), epsilon=0.1)
    assert session.remaining == 5


# ---- everything that is told ----------------------------------------------------------------------------------------

FLOORS = ROOMS.assign(floor=["up" if number % 3 == 0 else "down" for number in range(40)])
WITH_FLOOR = tc.Domain({"floor": tc.Categories(["up", "down"]), **DOMAIN})
BY_FLOOR = tc.Dependence.from_table(
    {
        (floor, arrival, leaving): 0.25 * (0.9 if (floor == "up") == (arrival == "late") else 0.1)
        for floor in ("up", "down")
        for arrival in ("late", "early")
        for leaving in ("late", "early")
    },
    names=("floor", "arrival", "leaving"),
)


def floor_limits(limit: float = 0.05) -> tc.Applications:
    return tc.Applications(BY_FLOOR, sensitive={"arrival": ["late"]}, coalitions=COALITIONS, limit=limit)


def floor_policy() -> tc.Policy:
    return tc.Policy(WITH_FLOOR, tc.secrets.values({"arrival": ["late"]}))


@pytest.mark.parametrize("bring", [False, True])
def test_a_group_of_a_split_is_held_against_the_limits_of_the_ledger(tmp_path: Path, bring: bool) -> None:
    where = tmp_path / "ledger.db"
    ledger = tc.Ledger(where)
    ledger.grant(dataset="rooms", epsilon=10)
    ledger.limit_leakage(dataset="rooms", applications=floor_limits())
    own = floor_limits() if bring else None
    groups = tc.Session(floor_policy(), FLOORS, ledger=where, dataset="rooms", leakage=own).split("floor")
    groups["down"].release(tc.count(), epsilon=3)  # from here on the other group pays nothing
    entries = len(ledger.entries())
    with pytest.raises(tc.BudgetExceeded if bring else tc.LedgerError, match="leakage"):
        groups["up"].release(asked("arrival", "lighting"), epsilon=1)
    assert len(ledger.entries()) == entries
    assert ledger.shown(dataset="rooms") == []


def test_what_groups_are_shown_is_written_down_also_where_it_costs_nothing(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    whole = tc.Session(floor_policy(), FLOORS, 9, ledger=where, dataset="rooms")
    groups = whole.split("floor")
    for group in ("up", "down"):
        groups[group].release(asked("arrival", "lighting"), epsilon=1)
    assert whole.remaining == 8
    ledger = tc.Ledger(where)
    # both groups are one line of coins, and so is everybody
    assert [str(one) for one in ledger.shown(dataset="rooms")] == ["floor to lighting", "arrival to lighting"]
    whole.release(asked("arrival", "lighting"), epsilon=1)
    assert len(ledger.shown(dataset="rooms")) == 2
    # and it counts once there are limits
    limited = tc.Session(floor_policy(), FLOORS, ledger=where, dataset="rooms", leakage=floor_limits())
    with pytest.raises(tc.BudgetExceeded, match="leakage of lighting must stay"):
        limited.release(asked("leaving", "space"), epsilon=0.01)


def test_a_split_without_a_ledger_is_held_against_the_limits_of_its_session() -> None:
    groups = tc.Session(floor_policy(), FLOORS, 9, leakage=floor_limits()).split("floor")
    groups["down"].release(tc.count(), epsilon=3)
    with pytest.raises(tc.BudgetExceeded, match="leakage of lighting must stay at most"):
        groups["up"].release(asked("arrival", "lighting"), epsilon=0.1)


@pytest.mark.parametrize(
    "options", [{"key": ["room", "floor"]}, {"where": "floor == 'up'"}, {"where": "floor == 'up'", "key": ()}]
)
def test_keys_and_predicates_tell_what_a_column_tells(options: dict[str, Any]) -> None:
    session = tc.Session(floor_policy(), FLOORS, 9, leakage=floor_limits())
    told = []
    for query in (
        tc.true_records(["leaving", "floor"], key="room", application="lighting"),
        asked("leaving", "lighting", **options),
    ):
        with pytest.raises(tc.BudgetExceeded, match=r"after this release .*floor to lighting.* it would be") as refused:
            session.release(query, epsilon=0.1)
        told.append(refused.value.rule.rpartition(" ")[2])
    assert told[0] == told[1]
    assert session.remaining == 9
    session.release(asked("leaving", "lighting"), epsilon=0.1)


@pytest.mark.parametrize("key", [["day", "x", "y"], ["day", "y"], ["day", "place"]], ids="-".join)
def test_the_columns_of_a_grid_in_a_key_tell_the_grid(key: list[str]) -> None:
    place = tc.Grid(2, 2, of=("x", "y"))
    domain = tc.Domain({"day": tc.Integers(1, 8), "ill": tc.Categories(["no", "yes"]), "place": place})
    table = {
        (ill, place.value(at)): (0.2 if (ill == "yes") == (at < 2) else 0.05)
        for ill in ("no", "yes")
        for at in range(4)
    }
    applications = tc.Applications(
        tc.Dependence.from_table(table, names=("ill", "place")),
        sensitive={"ill": ["yes"]},
        coalitions={"app": ["app"]},
        limit=0.02,
    )
    rows = pd.DataFrame({"day": range(1, 9), "ill": ["yes", "no"] * 4, "x": [0, 1] * 4, "y": [0, 0, 1, 1] * 2})
    policy = tc.Policy(domain, tc.secrets.attributes("ill", where="ill == 'yes'"))
    session = tc.Session(policy, rows, 9, leakage=applications)
    with pytest.raises(tc.BudgetExceeded, match=r"after this release .*place to app.* it would be"):
        session.release(tc.true_records("ill", key=key, application="app"), epsilon=0.001)
    assert session.remaining == 9
    session.release(tc.true_records("ill", key="day", application="app"), epsilon=0.001)


def test_a_key_with_sensitive_values_is_refused() -> None:
    both = tc.Applications(BY_FLOOR, sensitive={"floor": ["up"], "arrival": ["late"]}, coalitions=COALITIONS, limit=9)
    session = tc.Session(floor_policy(), FLOORS, 9, leakage=both)
    with pytest.raises(tc.LedgerError, match="is shown for certain, and has sensitive values"):
        session.release(asked("leaving", "lighting", key=["room", "floor"]), epsilon=0.1)


# ---- a dependence that nobody paid for -------------------------------------------------------------------------------


def test_limits_that_rest_on_private_counts_hold_nowhere(ledger: tc.Ledger) -> None:
    cells = {("late", "early"): 2, ("late", "late"): 1, ("early", "early"): 2, ("early", "late"): 5}
    private, public = (
        tc.Applications(
            tc.Dependence.from_counts(cells, ("arrival", "leaving"), unprotected=mark),
            sensitive=SENSITIVE,
            coalitions=COALITIONS,
            limit=0.2,
        )
        for mark in (True, False)
    )
    before = ledger.entries(dataset="rooms")
    domain = tc.Domain({name: tc.Categories(["late", "early"]) for name in ("arrival", "leaving")})
    policy = tc.Policy(domain, tc.secrets.attributes("arrival"))
    rows = pd.DataFrame({"arrival": ["late"], "leaving": ["early"]})
    attempts = [
        lambda: tc.Session(policy, rows, 1, leakage=private),
        lambda: tc.Session(policy, rows, ledger=ledger, dataset="rooms", leakage=private),
        lambda: ledger.limit_leakage(dataset="rooms", applications=private),
        lambda: show(ledger, private, Shown("lighting", "arrival", Fraction(1, 10))),
    ]
    for attempt in attempts:
        with pytest.raises(tc.PlanError, match="leakage must rest on a public dependence") as refused:
            attempt()
        assert private.fingerprint[:12] not in str(refused.value)
    assert ledger.entries(dataset="rooms") == before
    assert private.standing([Shown("lighting", "arrival", THIRD)])  # whoever holds the rows may look
    assert tc.Session(policy, rows, 1, leakage=public).remaining == 1
