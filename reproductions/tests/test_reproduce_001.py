"""Document 001 recomputed: theorems to rounding and within intervals of draws, known counterexamples, the building."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parameters import replaying
from tacit import noise
from tacit_reproductions import data
from tacit_reproductions.document_001.building import (
    EQUAL,
    PLANNED,
    SENSITIVE,
    SUM,
    decisions,
    dependence_of,
    leaked,
    releases,
    trade_off,
)
from tacit_reproductions.document_001.claims import (
    coin_claim,
    freedom_claim,
    information_claims,
    leakage,
    optimisation_claims,
    scope_claims,
    text_claims,
    theorem_claims,
    three_by_parity,
    three_copies,
    value_leak,
)
from tacit_reproductions.document_001.months import month_claim
from tacit_reproductions.document_001.occupancy import Occupancy, days_of, made_up_occupancy, read_occupancy
from tacit_reproductions.document_001.theorems import Drawn, lines, settings

ROOT = Path(__file__).parents[2]
FOLDER = next((ROOT / name for name in data.NEARBY if (ROOT / name).is_dir()), None)
needs_data = pytest.mark.skipif(FOLDER is None, reason="the data sets are not beside the repository")
stream = replaying(b"golden numbers of document 001..")


@pytest.fixture(scope="module")
def found():
    with noise.replayed(noise.Keystream(key=b"golden lines of document 001....")):
        return lines(settings(few=True), 40_000)


def test_every_theorem_is_what_is_enumerated_computed_and_drawn(found):
    names = {line.statement.name for line in found}
    assert names == {"Theorem 1", "Theorem 2", "Theorem 3", "Theorem 4", "Corollary 1"}
    assert all(line.apart < 1e-12 for line in found)
    assert all(line.fits for line in found)  # each misses with probability 1e-6


def test_draws_would_tell_a_wrong_formula(found):
    """The odds of the next smaller number of questions, or of half the epsilon, lie outside of the intervals."""
    for line in found:
        if line.statement.name in ("Corollary 1", "Theorem 2") and line.setting.delta1 != line.setting.delta2:
            _, low, high = line.drawn.odds()
            wrong = line.setting.pair().suppressed(line.setting.epsilon_i / 2) * line.setting.pair().prior_odds
            assert not low <= wrong <= high


def test_intervals_hold_their_share():
    low, high = Drawn(0, 50).odds()[1:]
    assert low == 0
    assert high == pytest.approx((1 - (5e-7) ** (1 / 50)) / (5e-7) ** (1 / 50), rel=1e-6)  # none of 50


def test_counterexamples_are_those_that_are_known():
    value, predicted, whole = value_leak()
    assert (value, predicted, whole) == (pytest.approx(0.3505, abs=5e-5), pytest.approx(0, abs=1e-12), math.log(2))
    assert three_copies() == (pytest.approx(7.74, abs=5e-3), pytest.approx(16.96, abs=5e-3))
    exact, product = three_by_parity()
    assert exact == pytest.approx((math.exp(50) + math.exp(-50)) / 2, rel=1e-9)
    assert product == pytest.approx(1)


def test_verdicts_on_what_is_claimed(found):
    claims = [
        *theorem_claims(found, settings(few=True)),
        freedom_claim(),
        *text_claims(),
        coin_claim(),
        *scope_claims(),
        *information_claims(settings(few=True)),
    ]
    verdicts = [(claim.figure, claim.holds) for claim in claims]
    assert verdicts == [
        ("Lemma 1", "yes"),
        ("Theorem 1", "yes"),
        ("Theorem 2", "yes"),
        ("Theorem 3", "partly"),
        ("Theorem 4", "yes"),
        ("Corollary 1", "yes"),
        ("section III", "yes"),
        ("section V.A", "yes"),
        ("section V.B", "yes"),
        ("section V.B", "no"),
        ("section V.B", "yes"),
        ("Corollary 1, practice", "partly"),
        ("Theorem 3, (21)", "no"),
        ("section V.B, composition", "no"),
        ("section V.B, composition", "no"),
        ("section V.C, (21)", "no"),
        ("section V.C", "yes"),
    ]


# ---- the building ---------------------------------------------------------------------------------------------------


def test_a_day_is_read_off_its_steps():
    """Monday: there from 9:00, away from 10:00 to 11:00 and at 12:00, gone at 14:00. Saturday does not count."""
    table = np.zeros((1, 2, 24), dtype=bool)
    table[0, 0, [9, 11, 13]] = True
    table[0, 1, 9] = True
    days = days_of(Occupancy("one", ("a",), np.array(["2024-01-01", "2024-01-06"], "datetime64[D]"), 60, table))
    assert len(days) == 1
    assert (days.arrival[0], days.leaving[0], days.absences[0], days.mean_absence[0]) == (540, 840, 2, 60)
    assert days.share[0] == pytest.approx(3 / 9)


@needs_data
def test_the_work_places_are_what_their_readme_says():
    days = days_of(read_occupancy(FOLDER))
    assert len(days) == 3_766
    assert np.median(days.arrival) == 9 * 60 + 15
    by_place = [np.median(days.arrival[days.room == room]) for room in range(19)]
    assert (min(by_place), max(by_place)) == (8 * 60 + 30, 11 * 60 + 45)


def test_the_trade_off_keeps_its_limits_and_planning_releases_most():
    dependence = dependence_of(days_of(made_up_occupancy()))
    points = trade_off(dependence, (0.02, 0.08))
    by = {(point.limit, point.how): point for point in points}
    for limit in (0.02, 0.08):
        planned = by[limit, PLANNED]
        assert planned.leakage <= limit + 1e-9
        assert leaked(dependence, planned.epsilon) == pytest.approx(planned.leakage, abs=1e-9)
        assert planned.gap < 1e-6
        for other in (EQUAL, SUM):
            assert planned.releases >= by[limit, other].releases - 1e-6
    assert releases(dependence, dict.fromkeys(SENSITIVE, 0.0)) == 0


def test_the_printed_optimisation_has_no_solution():
    claims = optimisation_claims(dependence_of(days_of(made_up_occupancy())), SENSITIVE)
    assert [claim.holds for claim in claims] == ["partly", "yes", "yes"]  # below some limit it has one


def test_the_trade_off_is_in_the_measure_of_the_printed_optimisation():
    """Equation 21 of all attributes, own terms included: limits of the table are those that the claims speak of."""
    dependence = dependence_of(days_of(made_up_occupancy()))
    epsilon = {"arrival": 0.3, "leaving": 1.0, "share": 2.0}
    single = [leakage(dependence, SENSITIVE, name, own) for name, own in epsilon.items()]
    assert leaked(dependence, epsilon) == pytest.approx(sum(single), rel=1e-12)


def test_decisions_without_sensitive_days_are_those_of_the_released_days():
    rooms = made_up_occupancy()
    lighting, space = decisions(days_of(rooms), len(rooms.rooms), 40.0)  # every coin falls
    assert 0.5 < lighting.seen < 1
    assert np.nanmean(lighting.shown - lighting.true) < -5  # late days are missing
    assert np.nanmean(space.shown - space.true) >= 0
    # filled by what is expected in a gap, the mean over all rooms and days is right
    assert abs(np.nanmean(lighting.filled - lighting.true)) < 1


def test_other_days_tell_about_a_hidden_day(stream):
    days = days_of(made_up_occupancy(rooms=4))
    always = replace(days, arrival=np.where(days.room % 2 == 0, 11 * 60, 8 * 60))  # one habit in each room
    (told,) = month_claim(always, 4, 1.0, "made up").checks
    assert min(told.found) > 0.6  # of log 2
