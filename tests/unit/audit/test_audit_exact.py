"""The exact audit: losses that are known, functions with tables, plans that are wrong, and what it refuses."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

import tacit as tc
from tacit.audit import Loss
from tacit.audit.exact_audit import plan_loss
from tacit.audit.selfcheck.registry import MECHANISMS
from tacit.noise.cube import Cube
from tacit.noise.two_scale import TwoScale
from tacit.plan.choose import choose
from tacit.plan.plans.linear import every_plan
from tacit.plan.question import resolve

FLAG = tc.Domain({"sick": tc.Flag()})
ONE_WAY = tc.Policy(FLAG, tc.secrets.values({"sick": [True]}))
BOTH_WAYS = tc.Policy(FLAG, tc.secrets.everything())
PEOPLE = tc.Domain({"age": tc.Integers(0, 5), "sick": tc.Flag()})
IN_PARTS = ["variance"]  # no pair of neighbours is the worst for each of its parts
ADDITIVE = [name for name, case in MECHANISMS.items() if case.modules == ("linear",) and name not in IN_PARTS]
ENDLESS = [
    name for name, case in MECHANISMS.items() if {"masked", "masked_columns", "grown"} & {*case.modules}
]  # no last output
OTHERS = [name for name in MECHANISMS if name not in (*ADDITIVE, *ENDLESS)]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", ADDITIVE)
def test_additive_mechanisms_use_all_of_epsilon_and_no_more(name):
    case = MECHANISMS[name]
    found = case.make().exact
    assert (found.forward.low, found.forward.high) == (case.epsilon, case.epsilon)
    assert found.keeps


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", OTHERS)
def test_other_mechanisms_keep_epsilon_and_waste_little_of_it(name):
    case = MECHANISMS[name]
    found = case.make().exact
    assert found.keeps
    assert 0.5 * case.epsilon <= found.forward.low <= found.forward.high <= case.epsilon * (1 + 1e-9)


def test_masked_counts_have_no_exact_audit():
    assert ENDLESS
    assert all(MECHANISMS[name].make().exact is None for name in ENDLESS)


# --- outward rounding


@pytest.mark.parametrize("over", [3, 7, 10, 49, 1_000_003])
@pytest.mark.parametrize("part", [1, 2, 5])
def test_a_loss_is_rounded_outward(part, over):
    true = Fraction(part, over)
    loss = Loss.between(true, true)
    assert Fraction(loss.low) <= true <= Fraction(loss.high)
    assert loss.high in (loss.low, math.nextafter(loss.low, math.inf))
    assert float(loss) == loss.high
    assert tuple(loss) == (loss.low, loss.high)


def test_what_a_float_can_hold_is_not_rounded():
    assert tuple(Loss.between(Fraction(3, 8), Fraction(1, 2))) == (0.375, 0.5)
    assert tuple(Loss.between(0.25, math.inf)) == (0.25, math.inf)


@pytest.mark.parametrize("loss", [Loss(0.25, 0.5), Loss(1.0, math.inf)])
def test_a_loss_can_be_copied_and_sent_to_another_process(loss):
    for made in (copy.copy(loss), copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):  # noqa: S301 - made here
        assert tuple(made) == tuple(loss)
    assert str(loss) == f"{loss.low:g} to {loss.high:g}"


@pytest.mark.parametrize("epsilon", ["1/3", "1/7", 0.1, "2/3"])
def test_thirds_are_between_the_two_ends(epsilon):
    found = tc.audit.exact(tc.count("sick == True"), ONE_WAY, epsilon)
    assert Fraction(found.forward.low) <= choose(tc.count(), ONE_WAY, epsilon).epsilon <= Fraction(found.forward.high)
    assert found.keeps
    assert (found.backward.low, found.backward.high) == (math.inf, math.inf)


# --- functions that return {output: probability}


def randomised_response(world):
    ((sick,),) = world
    return {"yes": 0.75, "no": 0.25} if sick else {"yes": 0.25, "no": 0.75}


def one_sided_response(world):
    """Whoever is healthy says so with probability 1/2; whoever is sick never does."""
    ((sick,),) = world
    return {"nothing": 1.0} if sick else {"healthy": 0.5, "nothing": 0.5}


def decision(world):
    """Whether at least two people are sick, after one-sided noise of scale 1 on the count."""
    count = sum(sick for (sick,) in world)
    above = math.exp(-max(0, 2 - count))
    return {"above": above, "below": 1 - above}


def test_randomised_response():
    true = Decimal(3).ln()
    for policy in (ONE_WAY, BOTH_WAYS):
        found = tc.audit.exact(randomised_response, policy, 1.1)
        for loss in (found.forward, found.backward):
            assert Decimal(loss.low) <= true <= Decimal(loss.high)
            assert loss.high - loss.low < 1e-10
        assert found.keeps
        assert found.complete
        assert not tc.audit.exact(randomised_response, policy, 1.098).keeps
    assert str(found).startswith("randomised_response: loss 1.09861 along secret edges")


def test_one_sided_randomised_response_loses_nothing_more_than_it_says_and_everything_backward():
    found = tc.audit.exact(one_sided_response, ONE_WAY, 0.7)
    assert found.forward.low <= math.log(2) <= found.forward.high
    assert found.backward == math.inf
    assert found.keeps
    assert (found.witness.hidden, found.witness.cover, found.witness.output) == (((True,),), ((False,),), "nothing")


def test_a_table_of_exact_fractions():
    small = Fraction(1, 10**400)  # too small for a float

    def response(world):
        ((sick,),) = world
        return {1: 3 * small, 0: 1 - 3 * small} if sick else {1: small, 0: 1 - small}

    found = tc.audit.exact(response, ONE_WAY)
    assert found.forward.low <= math.log(3) <= found.forward.high
    assert found.epsilon is None
    assert not found.keeps


def test_a_decision_among_several_people():
    for people, loss in ((1, 1.0), (2, 1.0), (4, 1.0)):
        found = tc.audit.exact(decision, ONE_WAY, 1, people=people)
        assert found.forward.low <= loss <= found.forward.high
    assert tc.audit.exact(decision, ONE_WAY, 1, people=4).backward == math.inf  # at two, "below" cannot come out
    # nobody sick, or one of two: two of one person are not there, so "below" is always possible
    assert tc.audit.exact(decision, ONE_WAY, 1).backward.high == pytest.approx(
        math.log((1 - math.exp(-2)) / (1 - math.exp(-1)))
    )


def test_an_output_that_is_impossible_at_cover_is_an_infinite_loss():
    found = tc.audit.exact(lambda world: {world[0][0]: 1.0}, ONE_WAY, 1)
    assert (found.forward.low, found.forward.high) == (math.inf, math.inf)
    assert found.witness.output is True


def test_a_function_that_does_not_look_at_the_data_loses_nothing():
    found = tc.audit.exact(lambda world: {"same": 1.0}, BOTH_WAYS, 1, people=2)
    assert (tuple(found.forward), tuple(found.backward)) == ((0.0, 0.0), (0.0, 0.0))


def test_presence_and_knowledge_change_which_data_sets_are_neighbours():
    seen = []

    def size(world):
        seen.append(len(world))
        return {len(world): 1.0}

    assert tc.audit.exact(size, BOTH_WAYS, 1, people=2).forward == 0
    secret = tc.Policy(FLAG, tc.secrets.everything(), presence="secret")
    assert tc.audit.exact(size, secret, 1, people=2).forward == math.inf
    known = tc.Policy(FLAG, tc.secrets.everything(), [tc.known.count("sick == True")])

    def sick(world):
        return {sum(sick for (sick,) in world): 1.0}

    found = tc.audit.exact(sick, known, 1)
    assert found.forward.low == 0  # everybody agrees on the number
    assert found.forward.high == math.inf  # but not every such pair of data sets was tried
    assert not found.complete
    assert not found.keeps


@pytest.mark.parametrize(
    ("table", "given"),
    [
        ({"a": 0.5, "b": 0.4}, 0.9),
        ({"a": 0.7, "b": 0.7}, 1.4),
        ({"a": -0.5, "b": 1.5}, 1.0),
        ({"a": math.nan}, math.nan),
        ({}, 0.0),
    ],
)
def test_tables_that_do_not_add_up_are_refused(table, given):
    with pytest.raises(tc.PlanError, match="must be probabilities that add up to 1") as refusal:
        tc.audit.exact(lambda world: table, ONE_WAY, 1)
    assert refusal.value.given == pytest.approx(given, nan_ok=True)
    assert "infinite tail as one output" in refusal.value.fix


@pytest.mark.parametrize("table", [[0.5, 0.5], 1.0, None, "half"])
def test_functions_that_return_no_table_are_refused(table):
    with pytest.raises(tc.PlanError, match=r"must return \{output: probability\} .* tc.audit.sampled"):
        tc.audit.exact(lambda world: table, ONE_WAY, 1)


@pytest.mark.parametrize("people", [0, -1, 1.5, True, "2"])
def test_a_number_of_people_that_is_none_is_refused(people):
    with pytest.raises(tc.PlanError, match="people must be a whole number from 1"):
        tc.audit.exact(randomised_response, ONE_WAY, 1, people=people)


def test_domains_that_are_too_large_for_tables_are_refused_at_once():
    large = tc.Policy(tc.Domain({"x": tc.Integers(0, 10**6)}), tc.secrets.everything())
    with pytest.raises(tc.PlanError, match="domain must have at most 400 records"):
        tc.audit.exact(lambda world: {0: 1.0}, large, 1)
    items = tc.Policy(tc.Domain({"x": tc.Items(5_000)}), tc.secrets.everything())
    with pytest.raises(tc.PlanError, match=r"domain must have at most 400 records.*more than 10\^18"):
        tc.audit.exact(lambda world: {0: 1.0}, items, 1)
    some = tc.Policy(tc.Domain({"x": tc.Integers(0, 49)}), tc.secrets.everything())
    with pytest.raises(tc.PlanError, match="people needs more than 20,000 pairs of data sets"):
        tc.audit.exact(lambda world: {0: 1.0}, some, 1, people=2)


def test_an_epsilon_that_is_none_is_refused():
    for epsilon in (0, -1, math.nan, math.inf, "much", True):
        for mechanism in (tc.count(), randomised_response):
            with pytest.raises(tc.PlanError, match="epsilon must"):
                tc.audit.exact(mechanism, ONE_WAY, epsilon)
    with pytest.raises(tc.PlanError, match="epsilon must be a number"):
        tc.audit.exact(tc.count(), ONE_WAY)
    with pytest.raises(tc.PlanError, match="must be a query"):
        tc.audit.exact(5, ONE_WAY, 1)


# --- plans that are wrong


def plan_for(query, secrets, **more):
    return choose(query, tc.Policy(PEOPLE, secrets, **more), 1)


@pytest.mark.parametrize(
    ("query", "secrets"),
    [
        (tc.count("sick == True"), tc.secrets.everything()),
        (tc.count("sick == True"), tc.secrets.values({"sick": [True]})),
        (tc.histogram("age"), tc.secrets.within(1, "age")),
        (tc.cumulative("age"), tc.secrets.within(2, "age")),
        (tc.ranges("age", "all"), tc.secrets.within(2, "age")),
        (tc.total("age"), tc.secrets.everything()),
        (tc.histogram("sick"), tc.secrets.everything()),
    ],
)
def test_a_plan_with_too_little_noise_is_found(query, secrets):
    plans = every_plan(resolve(query, PEOPLE), tc.Policy(PEOPLE, secrets), Fraction(1))
    plan = next(plan for plan in plans if plan.own_errors is None and plan.variance < math.inf)
    law = plan.noise
    shrunk = (
        replace(law, scale=law.scale * Fraction(4, 5))
        if isinstance(law, Cube)
        else TwoScale(law.right * Fraction(4, 5), law.left * Fraction(4, 5))
    )
    found = plan_loss(replace(plan, noise=shrunk))
    assert tuple(found.forward) == (1.25, 1.25)
    assert not found.keeps
    assert plan_loss(plan).keeps


def test_a_plan_with_noise_on_one_side_only_is_found():
    plan = plan_for(tc.count("sick == True"), tc.secrets.everything())
    found = plan_loss(replace(plan, noise=TwoScale(plan.noise.right, Fraction(0))))
    assert found.forward == math.inf
    # and the other way round, where one side is enough
    falling = plan_for(tc.count("sick == True"), tc.secrets.values({"sick": [True]}))
    assert plan_loss(replace(falling, noise=TwoScale(Fraction(0), falling.noise.right))).forward == math.inf


def test_a_plan_that_releases_exactly_what_moves_is_found():
    for query in (tc.count("sick == True"), tc.histogram("age"), tc.total("age")):
        found = plan_loss(replace(plan_for(query, tc.secrets.everything()), noise=None))
        assert tuple(found.forward) == (math.inf, math.inf)
        assert found.witness is not None


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        # exact totals of blocks, and the exact last entry of each block, where edges cross them
        (tc.histogram("age"), tc.secrets.partition("age", width=2), tc.secrets.partition("age", width=3)),
        (tc.cumulative("age"), tc.secrets.partition("age", width=2), tc.secrets.partition("age", width=3)),
        (
            tc.marginals(sets=[["age", "sick"], ["sick"]]),
            tc.secrets.attributes("age"),
            tc.secrets.attributes("age", "sick"),
        ),
    ],
)
def test_a_total_that_is_taken_for_exact_and_moves_is_found(query, right, wrong):
    """The plan believes in one policy, the data sets obey another: noise is right for both, exact totals are not."""

    class Both(type(tc.secrets.everything())):
        def shapes(self, domain):
            return right.canonical(domain).shapes(domain)

        def has_edge(self, domain, hidden, cover):
            return wrong.canonical(domain).has_edge(domain, hidden, cover)

    honest = plan_for(query, right)
    assert plan_loss(honest).keeps
    found = plan_loss(replace(honest, policy=tc.Policy(PEOPLE, Both())))
    assert found.forward == math.inf


# --- selections


ALL, ONE = tc.secrets.everything(), tc.secrets.values({"d": ["a"]})
SEARCHED = [
    (tc.top_k("d", 1), ALL),
    (tc.above("d", 3, at_most=1), ONE),
    (tc.below("d == 'a'", 3), ALL),
    (tc.below("d == 'a'", 3), ONE),
    pytest.param(tc.top_k("d", 1), ONE, marks=pytest.mark.slow),
    pytest.param(tc.top_k("d", 2), ALL, marks=pytest.mark.slow),
    pytest.param(tc.top_k("d", 2), ONE, marks=pytest.mark.slow),
    pytest.param(tc.above("d", 3, at_most=1), ALL, marks=pytest.mark.slow),
]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("query", "secrets"), SEARCHED)
def test_the_upper_end_of_a_selection_is_never_below_what_a_wider_search_finds(query, secrets, monkeypatch):
    """Losses of selections may grow with the distance of the counts for ever."""
    policy = tc.Policy(tc.Domain({"d": tc.Categories(["a", "b", "c"])}), secrets)
    found = tc.audit.exact(query, policy, 1)
    monkeypatch.setattr("tacit.audit.exact_audit.FAR", 40)
    wider = tc.audit.exact(query, policy, 1)
    assert wider.forward.low <= found.forward.high
    assert 0.5 <= found.forward.low <= found.forward.high <= 1 + 1e-9
    assert not found.complete


@pytest.mark.one_in(5)
@pytest.mark.parametrize("query", [tc.top_k("d", 1), tc.below("d == 'a'", 3)])
def test_a_selection_that_claims_half_of_what_it_spends_is_found(query):
    policy = tc.Policy(tc.Domain({"d": tc.Categories(["a", "b", "c"])}), tc.secrets.everything())
    found = plan_loss(replace(choose(query, policy, 2), epsilon=Fraction(1)))
    assert 1.5 < found.forward.low <= found.forward.high < 2 + 1e-9
    assert not found.keeps


def test_selections_among_many_counts_are_left_to_samples():
    policy = tc.Policy(tc.Domain({"clicked": tc.Items(20)}), tc.secrets.attributes("clicked"))
    with pytest.raises(tc.PlanError, match=r"looks at 20 counts; .* Audit it by samples"):
        tc.audit.exact(tc.top_k("clicked", 3), policy, 1)


# --- large domains


def test_several_rows_of_a_person_leave_the_upper_end_to_the_proof():
    policy = tc.Policy(PEOPLE, tc.secrets.everything(), person="id", per_person=3)
    found = tc.audit.exact(tc.histogram("age"), policy, 1)
    assert 1 / 3 <= found.forward.low <= found.forward.high <= 1
    assert not found.complete


def test_a_long_witness_is_cut():
    policy = tc.Policy(tc.Domain({"clicked": tc.Items(2_000)}), tc.secrets.values({"clicked": [1]}))
    found = tc.audit.exact(tc.histogram("clicked"), policy, 1)
    assert tuple(found.forward) == (1, 1)
    assert len(str(found)) < 600
    assert "2,000 items" in str(found.witness)


@pytest.mark.parametrize(
    ("hidden", "cover", "loss"),
    [
        (True, 1, math.inf),
        (1, 1.0, math.inf),
        (0.0, -0.0, math.inf),
        ((1,), (1.0,), math.inf),
        (frozenset({1}), frozenset({True}), math.inf),
        ("a", "a\0", math.inf),
        (math.nan, float("nan"), 0),
        ((1, math.nan), (1, float("nan")), 0),
    ],
)
def test_outputs_are_compared_as_a_reader_sees_them(hidden, cover, loss):
    policy = tc.Policy(tc.Domain({"sick": tc.Flag()}), tc.secrets.everything())

    def law(people):
        return {hidden if people[0][0] else cover: 0.75, "other": 0.25}

    assert tc.audit.exact(law, policy, 1).forward == loss


def test_outputs_that_are_the_same_are_added_up():
    """Two keys of one table may be NaN, since a NaN equals nothing in Python."""
    policy = tc.Policy(tc.Domain({"sick": tc.Flag()}), tc.secrets.everything())

    def law(people):
        halves = {float("nan"): 0.25, float("nan"): 0.5, "other": 0.25}
        return halves if people[0][0] else {math.nan: 0.75, "other": 0.25}

    assert tc.audit.exact(law, policy, 1).forward == 0


def test_true_records_of_a_domain_that_is_too_large_to_go_through():
    """Some records are tried, and the loss along their edges is all of epsilon; the rest is what was proved."""
    domain = tc.Domain({"age": tc.Integers(0, 9_999), "disease": tc.Categories(["flu", "hiv"])})
    policy = tc.Policy(domain, tc.secrets.records("disease == 'hiv'"))
    found = tc.audit.exact(tc.true_records(["age", "disease"], key="id"), policy, 1)
    assert not found.complete
    assert found.forward.low == pytest.approx(1, abs=1e-9)
    assert found.forward.high == pytest.approx(1, abs=1e-9)
    assert found.keeps
