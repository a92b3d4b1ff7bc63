"""One quantile chosen by its rank: the exact loss, a wrong range that is noticed, how far ranks are off, which way."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import tacit as tc
from brute_force import edges_of
from parameters import replaying
from tacit.noise.two_scale import TwoScale
from tacit.plan.choose import choose
from tacit.plan.plans.derived import DerivedPlan
from tacit.plan.plans.rank_plan import FINER, RankPlan, choosing_noises, most_moved, rank_step
from tacit.plan.questions.counts import Marginals
from tacit.policy.domain import positions
from tacit.policy.policy import ABSENT
from tacit.report.charts.chart_parts import say

DOMAIN = tc.Domain({"v": tc.Integers(0, 3), "g": tc.Flag()})
SECRETS = {
    "taking part": tc.secrets.taking_part(),
    "taking part, of some": tc.secrets.taking_part(where="v > 1"),
    "everything": tc.secrets.everything(),
    "near": tc.secrets.within(1, "v"),
    "values": tc.secrets.values({"v": [3]}),
    "records": tc.secrets.records("v == 0"),
}
QUESTIONS = [tc.median("v"), tc.quantiles("v", ["1/3"]), tc.median("v", where="g"), tc.quantiles("v", ["1/4", "1/2"])]
stream = replaying(b"quantiles that are chosen by rank"[:32])


def plan_of(query, policy, epsilon=1):
    """The plan by rank, also where running counts are better."""
    step, epsilon = rank_step(query, policy), Fraction(epsilon)
    return RankPlan(query, policy, epsilon, step, "", choosing_noises(query, policy, epsilon)) if step.l1 else None


def rank_off(query, cells, value, at=0):
    """The definition, word for word."""
    upto, people = np.cumsum(cells), int(sum(cells))
    wanted = query.shares[at] * people
    return max(0, wanted - int(upto[value]), int(upto[value] - cells[value]) - wanted)


def neighbours(query, policy, people) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The people at each value, in every two data sets that differ by an edge."""
    picks = None if query.where is None else query.where.compile(policy.domain)

    def cell(record):
        there = record is not ABSENT and (picks is None or picks.of_record(positions(policy.domain, record)))
        return np.eye(4, dtype=int)[record[0]] if there else np.zeros(4, dtype=int)

    changes = {(tuple(cell(hidden)), tuple(cell(cover))) for hidden, cover in edges_of(policy)}
    for others in combinations_with_replacement(range(4), people):
        counted = np.bincount(others, minlength=4)
        for hidden, cover in changes:
            yield tuple((counted + hidden).tolist()), tuple((counted + cover).tolist())


@cache
def law_of(choosing, shares, cells):
    """The exact law of what is released."""
    plan = plan_of(tc.quantiles("v", list(shares)), tc.Policy(DOMAIN, tc.secrets.everything()))
    plan = replace(plan, choosing=choosing)
    chances = np.array([plan.log_probability(cells, values) for values in product(range(4), repeat=len(shares))])
    assert np.exp(chances).sum() == pytest.approx(1)
    return chances


def worst_loss(plan, people=(0, 1, 4)):
    pairs = {pair for many in people for pair in neighbours(plan.query, plan.policy, many)}
    laws = ([law_of(plan.choosing, plan.query.shares, cells) for cells in pair] for pair in pairs)
    return max(float((hidden - cover).max()) for hidden, cover in laws)


@pytest.mark.parametrize("query", QUESTIONS, ids=str)
@pytest.mark.parametrize("secrets", SECRETS)
def test_no_value_tells_more_than_epsilon(secrets, query):
    for presence in ("secret",) if secrets == "taking part" else ("public", "secret"):
        plan = plan_of(query, tc.Policy(DOMAIN, SECRETS[secrets], presence=presence), 2)
        loss = worst_loss(plan)
        assert loss <= 2 + 1e-9
        wrong = replace(plan, choosing=tuple(TwoScale(law.right / 2, Fraction(0)) for law in plan.choosing))
        assert worst_loss(wrong) > loss * 1.3
        if secrets in ("taking part", "everything") and query == QUESTIONS[0]:
            assert worst_loss(wrong) > 2.2  # half of the range is noticed


@pytest.mark.parametrize("query", QUESTIONS[:2], ids=str)
def test_scores_move_by_no_more_than_the_step(query):
    for secrets in SECRETS.values():
        for presence in ("public", "secret"):
            try:
                policy = tc.Policy(DOMAIN, secrets, presence=presence)
            except tc.PolicyError:
                continue
            step, scores = rank_step(query, policy), most_moved(query)
            for people in (0, 2, 4):
                for hidden, cover in neighbours(query, policy, people):
                    before, after = (scores.of(np.array(cells)) for cells in (hidden, cover))
                    assert -step.down <= (after - before).min()
                    assert (after - before).max() <= step.up
                    assert [-one for one in before] == [
                        FINER * query.shares[0].denominator * rank_off(query, hidden, at) for at in range(4)
                    ]


def test_what_is_drawn_has_the_law_that_is_stated_and_ranks_are_off_by_no_more_than_is_said():
    for query in QUESTIONS[:2]:
        plan = plan_of(query, tc.Policy(DOMAIN, SECRETS["taking part"]), Fraction(1, 3))
        for cells in ((3, 1, 0, 4), (0, 0, 7, 1), (9, 2, 2, 2), (40, 0, 0, 40)):
            chances = np.exp([plan.log_probability(cells, [value]) for value in range(4)])
            drawn = np.bincount([plan.draw(np.array(cells))[0] for _ in range(2000)], minlength=4)
            assert chisquare(drawn, chances * 2000).pvalue > 1e-6
            off = [float(rank_off(query, cells, value)) for value in range(4)]
            for level in (0.5, 0.8, 0.95, 0.99):
                beyond = sum(
                    chance for chance, far in zip(chances, off, strict=True) if far > plan.rank_bounds(level)[0]
                )
                assert beyond <= 1 - level


def test_it_is_never_worse_than_the_exponential_mechanism():
    """That has weights exp(-epsilon d / range); ranges are 1 for a median where people come or leave."""
    domain = tc.Domain({"v": tc.Integers(0, 7)})
    spread = np.random.default_rng(5)
    for epsilon in (Fraction(1, 10), Fraction(1)):
        plan = choose(tc.median("v"), tc.Policy(domain, tc.secrets.taking_part()), epsilon)
        assert isinstance(plan, RankPlan)
        for people in (10, 100, 1000):
            cells = spread.multinomial(people, spread.dirichlet(np.full(8, 0.5)))
            off = np.array([float(rank_off(plan.query, cells, value)) for value in range(8)])
            weights = np.exp(-float(epsilon) * off)
            chances = np.exp([plan.log_probability(cells.tolist(), [value]) for value in range(8)])
            assert chances @ off <= (weights @ off) / weights.sum() + 1e-9


def test_few_quantiles_are_nearer_than_running_counts_tell_on_a_long_line():
    query, cells = tc.quantiles("v", [0.25, 0.5, 0.75]), np.full(300, 20)
    policy = tc.Policy(tc.Domain({"v": tc.Integers(0, 299)}), tc.secrets.taking_part())
    plan = choose(query, policy, Fraction(1, 10))
    assert isinstance(plan, RankPlan)
    session = tc.Session(policy, pd.DataFrame({"v": np.repeat(np.arange(300), 20)}), budget=2)
    chosen, read = [], []
    for _ in range(20):
        counts = session.release(tc.cumulative("v"), Fraction(1, 10)).values
        first = [int(np.argmax(counts >= float(share) * counts[-1])) for share in query.shares]
        for values, off in ((plan.draw(cells), chosen), (first, read)):
            off += [float(rank_off(query, cells, value, at)) for at, value in enumerate(values)]
    assert np.mean(chosen) < np.mean(read) * 0.9


def test_the_expected_error_is_what_is_found_for_people_who_are_spread_evenly():
    domain = tc.Domain({"v": tc.Integers(0, 249)})
    for epsilon in (Fraction(1, 50), Fraction(1, 10)):
        for query in (tc.median("v"), tc.quantiles("v", [0.9])):
            plan = choose(query, tc.Policy(domain, tc.secrets.taking_part()), epsilon)
            for each, stated in ((4, plan), (16, plan.stated_for(16 * 250))):
                wanted = np.quantile(np.arange(each * 250) // each, float(query.shares[0]), method="inverted_cdf")
                drawn = np.array([plan.draw(np.full(250, each))[0] for _ in range(800)])
                assert math.sqrt(np.mean((drawn - wanted) ** 2)) == pytest.approx(stated.rmse, rel=0.15)


def test_the_better_way_is_taken_from_public_numbers_alone():
    ages = tc.Domain({"age": tc.Integers(17, 90)})

    def way(secrets, epsilon, shares=(0.5,), **options):
        return type(choose(tc.quantiles("age", shares), tc.Policy(ages, secrets, **options), epsilon))

    for epsilon in (Fraction(1, 100), 1):
        assert way(tc.secrets.taking_part(), epsilon) is RankPlan
        assert way(tc.secrets.everything(), epsilon) is RankPlan
        assert way(tc.secrets.within(1, "age"), epsilon) is DerivedPlan  # few running counts move
        assert way(tc.secrets.taking_part(), epsilon, [0.25, 0.75]) is RankPlan
        assert way(tc.secrets.taking_part(), epsilon, [0.25, 0.5, 0.75]) is DerivedPlan  # as good, with intervals
        assert way(tc.secrets.everything(), epsilon, [0.25, 0.5, 0.75]) is DerivedPlan
    size = [tc.known.size(48_842)]
    assert way(tc.secrets.everything(), Fraction(1, 100), known=size) is RankPlan
    assert way(tc.secrets.everything(), 1, known=size) is DerivedPlan  # finds the same value, with an interval


def test_a_chosen_quantile_says_how_far_its_rank_may_be_off_and_has_no_interval():
    frame = pd.DataFrame({"age": np.tile(np.arange(17, 91), 100)})
    policy = tc.Policy(tc.Domain({"age": tc.Integers(17, 90)}), tc.secrets.taking_part())
    record = tc.Session(policy, frame, budget=1).release(tc.median("age"), 1)
    assert record.frame.columns.tolist() == ["share of people up to age", "value", "rank off by at most"]
    assert record.frame["rank off by at most"].tolist() == [7]
    assert [end.tolist() for end in record.interval()] == [[17], [90]]
    assert abs(record.values[0] - 53) <= 1
    assert record.summary().endswith("(95%: its rank is off by at most 7 people)")
    assert record.certificate["terms"][1].endswith(
        "of n people at most 0.5 n + 7 have less than this value and at least 0.5 n - 7 have at most this value, with "
        "probability 95%"
    )
    chart = str(record.chart().to_dict())
    assert "off by at most 7 people" in chart
    assert "95% intervals" not in chart
    assert Marginals((("age",),)) == record.plan.base
    few = tc.Session(policy, frame, budget=1).release(tc.quantiles("age", [0.25, 0.75]), 1)
    assert few.frame["rank off by at most"].tolist() == [20, 20]
    assert few.summary() == "in the report"
    assert say(few.plan.query, few) == "2 values, each chosen by its rank."
    chart = str(few.chart().to_dict())
    assert "Chosen by their ranks" in chart
    assert "95% intervals" not in chart


@pytest.mark.parametrize("secrets", ["taking part", "everything"])
def test_two_rows_of_a_person_that_move_cost_epsilon_together(secrets):
    two = tc.Policy(DOMAIN, SECRETS[secrets], person="id", per_person=2)
    query = tc.median("v", of="rows")
    step, one = rank_step(query, two), rank_step(query, two.of_one_row)
    assert (step.up, step.down) == (2 * one.up, 2 * one.down)
    law = choosing_noises(query, two, Fraction(1))
    rows = {pair for many in (0, 2, 4) for pair in neighbours(query, two.of_one_row, many)}
    after = {}
    for hidden, cover in rows:
        after.setdefault(hidden, set()).add(cover)
    losses = [
        float((law_of(law, query.shares, hidden) - law_of(law, query.shares, cover)).max())
        for hidden, between in after.items()
        for cover in {cover for one_moved in between for cover in after.get(one_moved, ())}
    ]
    assert 0.4 < max(losses) <= 1 + 1e-9
