"""The exact worst loss of every selection, over all edges of small policies, and of variants that are wrong."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations, product

import numpy as np
import pytest

import tacit as tc
from brute_force import answers_of, edges_of
from parameters import every_two_together
from tacit.noise.cube import Cube
from tacit.noise.tilted_cube import TiltedCube
from tacit.noise.two_scale import TwoScale
from tacit.plan.choose import choose
from tacit.plan.plans import thresholds, top_k
from tacit.plan.plans.selection_plan import measured_log_probability
from tacit.plan.plans.thresholds import AbovePlan, BelowPlan
from tacit.plan.plans.top_k import BarOutput, BarPlan, TopKPlan
from tacit.plan.sensitivity.steps import largest_step

HIGHEST = 2  # counts go from 0 to this, plus what the moving person adds
BARS = range(-1, HIGHEST + 5)
CENTRES = (0, 1, 5)  # noisy sums, above the true one
POLICIES = {
    "falling": lambda domain, name: tc.secrets.values({name: [1]}),
    "rising": lambda domain, name: tc.secrets.values({name: [0]}),
    "both": lambda domain, name: tc.secrets.attributes(name),
}


def items(many: int, ways: str, **more) -> tc.Policy:
    domain = tc.Domain({"clicked": tc.Items(many, **more)})
    return tc.Policy(domain, POLICIES[ways](domain, "clicked"))


def categories(many: int, secrets=tc.secrets.everything(), **more) -> tc.Policy:  # noqa: B008 - a constant
    domain = tc.Domain({"clicked": tc.Categories([f"c{i}" for i in range(many)])})
    return tc.Policy(domain, secrets, **more)


def worlds(plan):
    """Every pair of counts that one edge connects: hidden first."""
    domain = plan.policy.domain
    seen = set()
    for hidden, cover in edges_of(plan.policy):
        before, after = (answers_of(plan.base, domain, record) for record in (hidden, cover))
        for others in product(range(HIGHEST + 1), repeat=len(before)):
            pair = tuple(before + others), tuple(after + others)
            if pair[0] != pair[1] and pair not in seen:
                seen.add(pair)
                yield pair


def noisy_around(law, counts):
    """Noisy counts near the true ones, enough to see every ratio of this law: ratios do not change further out."""
    width = 3 if len(counts) > 1 else 5
    left = 0 if one_sided(law) == "right" else -width
    right = 0 if one_sided(law) == "left" else width
    return product(*(range(count + left, count + right + 1) for count in counts))


def one_sided(law):
    if isinstance(law, TiltedCube):
        return "right"
    if isinstance(law, Cube):
        return law.sides
    return "right" if law.left == 0 else "left" if law.right == 0 else "both"


def outputs(plan, counts):
    """Every kind of output of a plan; values are tried near the true counts."""
    match plan:
        case BelowPlan():
            yield None
            yield from (noisy for (noisy,) in noisy_around(plan.noise, counts))
        case BarPlan():
            for places in combinations(range(len(counts)), plan.candidates):
                true = [counts[place] for place in places]
                for bar, noisy in product(BARS, noisy_around(plan.law, true)):
                    if plan.centring is None:
                        yield BarOutput(places, bar, noisy, None)
                    else:
                        yield from (BarOutput(places, bar, noisy, sum(true) + more) for more in CENTRES)
        case TopKPlan():
            for places in combinations(range(len(counts)), plan.measured):
                for noisy in noisy_around(plan.measuring, [counts[place] for place in places]):
                    yield tuple(zip(places, noisy, strict=True))
        case AbovePlan():
            for verdicts in verdict_lists(plan, len(counts)):
                places = [place for place, above in enumerate(verdicts) if above == plan.costly]
                found = [counts[place] for place in places]
                if not plan.query.values or not found:
                    yield verdicts, ()
                else:
                    yield from ((verdicts, noisy) for noisy in noisy_around(plan.measuring(places), found))


def verdict_lists(plan, many):
    for length in range(1, many + 1):
        for verdicts in product([False, True], repeat=length):
            costly = sum(one == plan.costly for one in verdicts)
            ends = costly == plan.query.at_most and verdicts[-1] == plan.costly
            if ends if length < many else costly <= plan.query.at_most:
                yield verdicts


cached = lru_cache(maxsize=None)


def law_of(plan):
    """The plan's own law of outputs; parts that many outputs share are computed once."""
    if isinstance(plan, BelowPlan):
        return plan.log_probability
    first = plan.log_probability_of_verdicts if isinstance(plan, AbovePlan) else plan.log_probability_of_choice
    first, measured = cached(first), cached(measured_log_probability)

    def log_probability(counts, output):
        match plan:
            case TopKPlan():
                places, noisy = zip(*output, strict=True)
                chosen, law = (places,), plan.measuring
            case BarPlan():
                places, bar, noisy, centre = output
                chosen, law = (places, bar), plan.law.at(bar + 1)
            case AbovePlan():
                verdicts, noisy = output
                if not plan.query.values:
                    return first(counts, verdicts)
                places = [place for place, above in enumerate(verdicts) if above == plan.costly]
                chosen, law = (verdicts,), plan.measuring(places)
        true = tuple(counts[place] for place in places)
        total = first(counts, *chosen) + measured(law, true, tuple(noisy))
        if isinstance(plan, BarPlan) and plan.centring is not None:
            total += measured(plan.centring, (sum(true),), (centre,))
        return total

    return log_probability


def choices(plan, many):
    """Everything that a plan may choose, with the places that it then measures and the law of that noise, if any."""
    match plan:
        case BarPlan():
            for places, bar in product(combinations(range(many), plan.candidates), BARS):
                yield (places, bar), places, plan.law.at(bar + 1)
        case TopKPlan():
            for places in combinations(range(many), plan.measured):
                yield (places,), places, plan.measuring
        case AbovePlan():
            for verdicts in verdict_lists(plan, many):
                places = [place for place, above in enumerate(verdicts) if above == plan.costly]
                measured = plan.query.values and places
                yield (verdicts,), places, plan.measuring(places) if measured else None


def worst_measured(law):
    """The largest log ratio over noisy counts near the hidden ones, as a function of hidden and cover."""
    said = cached(partial(measured_log_probability, law))

    def worst(hidden, cover) -> float:
        possible = [noisy for noisy in noisy_around(law, hidden) if said(hidden, noisy) > -math.inf]
        return max(said(hidden, noisy) - said(cover, noisy) for noisy in possible)

    return cached(worst)


def worst_centred(law, hidden, cover) -> float:
    return max(
        measured_log_probability(law, (hidden,), (hidden + more,))
        - measured_log_probability(law, (cover,), (hidden + more,))
        for more in CENTRES
    )


def loss(plan) -> float:
    """The largest log ratio hidden : cover over all edges and outputs; inf where cover cannot say what hidden says.

    Given what is chosen, the noise of the measurement is independent: its worst ratio adds to that of the choice.
    """
    if isinstance(plan, BelowPlan):
        return loss_by_outputs(plan, plan.log_probability)
    first = plan.log_probability_of_verdicts if isinstance(plan, AbovePlan) else plan.log_probability_of_choice
    first, measured_by = cached(first), cached(worst_measured)
    centred = cached(partial(worst_centred, plan.centring)) if getattr(plan, "centring", None) is not None else None
    listed = [
        (chosen, places, None if law is None else measured_by(law))
        for chosen, places, law in choices(plan, plan.base.size(plan.policy.domain))
    ]
    worst = -math.inf
    for hidden, cover in worlds(plan):
        for chosen, places, measured in listed:
            here = first(hidden, *chosen)
            if here == -math.inf:
                continue
            ratio = here - first(cover, *chosen)
            before, after = (tuple(counts[place] for place in places) for counts in (hidden, cover))
            if measured is not None:
                ratio += measured(before, after)
            if centred is not None:
                ratio += centred(sum(before), sum(after))
            worst = max(worst, ratio)
    return worst


def loss_by_outputs(plan, law) -> float:
    """The same, output by output, for any law."""
    worst = -math.inf
    for hidden, cover in worlds(plan):
        for output in outputs(plan, hidden):
            here = law(hidden, output)
            if here > -math.inf:
                worst = max(worst, here - law(cover, output))
    return worst


EPSILON = 0.7


@pytest.mark.parametrize("ways", POLICIES)
def test_the_shortcut_of_these_tests_is_the_law_of_the_plans(ways):
    for query in (tc.top_k("clicked", 1), tc.top_k("clicked", 2), tc.above("clicked", 1, at_most=2)):
        plan = choose(query, items(3, ways), EPSILON)
        law = law_of(plan)
        for output in list(outputs(plan, (2, 0, 1)))[::7]:
            assert plan.log_probability((2, 0, 1), output) == law((2, 0, 1), output)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("ways", POLICIES)
def test_the_worst_choice_and_its_worst_measurement_are_the_worst_output(ways):
    for query in (tc.top_k("clicked", 1), *(tc.above("clicked", 1, at_most=2, values=v) for v in (True, False))):
        plan = choose(query, items(2, ways), EPSILON)
        plans = [plan]
        if isinstance(plan, BarPlan):
            plans = [plan, replace(plan, centring=TwoScale(5, 0)), replace(plan, policy=items(2, "both"))]
        for one in plans:
            assert loss(one) == pytest.approx(loss_by_outputs(one, law_of(one)), abs=1e-12)


TOP_K = [
    *(
        pytest.param(items(many, ways), k, id=f"{many} items {ways} k={k}")
        for many in (2, 3)
        for ways in POLICIES
        for k in (1, 2)
    ),
    pytest.param(items(4, "falling"), 1, id="4 items falling k=1"),
    pytest.param(items(3, "falling", at_most=1), 2, id="3 items falling at most 1"),
    pytest.param(items(3, "both", at_most=1), 2, id="3 items both at most 1"),
    pytest.param(categories(3), 1, id="3 categories k=1"),
    pytest.param(categories(3), 2, id="3 categories k=2"),
    pytest.param(categories(3, presence="secret"), 2, id="3 categories, presence secret"),
    pytest.param(categories(3, tc.secrets.values({"clicked": ["c1"]})), 2, id="3 categories, one sensitive"),
]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("policy", "k"), TOP_K)
def test_top_k_costs_epsilon_and_no_more(policy, k):
    plan = choose(tc.top_k("clicked", k), policy, EPSILON)
    worst = loss(plan)
    assert worst <= EPSILON + 1e-9
    if plan.step.monotone == "falling":
        assert worst == pytest.approx(EPSILON, abs=1e-9)


def test_the_sum_of_the_chosen_counts_costs_its_own_part():
    plan = choose(tc.top_k("clicked", 2), items(3, "falling"), EPSILON)
    centred = replace(plan, centring=TwoScale(2 / Fraction(1, 5), 0))  # two counts fall by two in all
    assert loss(centred) == pytest.approx(EPSILON + 1 / 5, abs=1e-9)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("policy", "k"), TOP_K)
def test_choices_of_top_k_add_up_to_one(policy, k):
    plan = choose(tc.top_k("clicked", k), policy, EPSILON)
    size = plan.base.size(policy.domain)
    for counts in ([0] * size, list(range(size)), [5, *[0] * (size - 1)]):
        if isinstance(plan, BarPlan):
            tried = product(combinations(range(size), plan.candidates), range(300))
        else:
            tried = ((places,) for places in combinations(range(size), plan.measured))
        chances = [plan.log_probability_of_choice(counts, *one) for one in tried]
        assert sum(map(math.exp, chances)) == pytest.approx(1, abs=1e-12)


ABOVE = every_two_together((2, 3), POLICIES, (1, 2), (1, 2), (True, False))


@pytest.mark.one_in(16)
@pytest.mark.parametrize(("many", "ways", "at_most", "threshold", "values"), ABOVE)
def test_above_costs_epsilon_and_no_more(many, ways, at_most, threshold, values):
    plan = choose(tc.above("clicked", threshold, at_most=at_most, values=values), items(many, ways), EPSILON)
    worst = loss(plan)
    assert worst <= EPSILON + 1e-9
    if plan.step.monotone is not None:
        assert worst == pytest.approx(EPSILON, abs=1e-9)


@pytest.mark.parametrize("secrets", [tc.secrets.everything(), tc.secrets.values({"clicked": ["c0"]})])
@pytest.mark.parametrize("at_most", [1, 2])
def test_above_costs_epsilon_and_no_more_among_categories(secrets, at_most):
    plan = choose(tc.above("clicked", 2, at_most=at_most), categories(3, secrets), EPSILON)
    assert loss(plan) <= EPSILON + 1e-9


@pytest.mark.parametrize(("many", "ways", "at_most", "threshold", "values"), ABOVE[::3])
def test_verdicts_of_above_add_up_to_one(many, ways, at_most, threshold, values):
    plan = choose(tc.above("clicked", threshold, at_most=at_most, values=False), items(many, ways), EPSILON)
    for counts in product(range(3), repeat=many):
        chances = [plan.log_probability(counts, (verdicts, ())) for verdicts in verdict_lists(plan, many)]
        assert sum(map(math.exp, chances)) == pytest.approx(1, abs=1e-12)


# three predicates, of which an edge moves one, two or all: the way in which they move
LISTS = {
    "falling": (["v >= 1", "v >= 2", "v >= 3"], tc.secrets.pairs([(3, 0), (2, 0), (1, 0)])),
    "rising": (["v <= 0", "v <= 1", "v <= 2"], tc.secrets.pairs([(3, 0)])),
    "two fall and one rises": (["v >= 2", "v >= 3", "v == 0"], tc.secrets.pairs([(3, 0)])),
    "both": (["v >= 1", "v >= 2", "v != 1"], tc.secrets.everything()),
}
ASKED = {
    "top 1": lambda listed: tc.top_k(listed, 1),
    "top 2": lambda listed: tc.top_k(listed, 2),
    "above, one": lambda listed: tc.above(listed, [1, 2, 1], at_most=1),
    "above, two": lambda listed: tc.above(listed, [1, 2, 1], at_most=2),
    "below, two": lambda listed: tc.below(listed, 2, at_most=2),
}


def among(ways, ask):
    listed, secrets = LISTS[ways]
    return ASKED[ask](listed), tc.Policy(tc.Domain({"v": tc.Integers(0, 3)}), secrets)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("ways", "ask"), list(product(LISTS, ASKED)))
def test_choosing_among_predicates_costs_epsilon_and_no_more(ways, ask):
    plan = choose(*among(ways, ask), EPSILON)
    assert plan.step.monotone == (ways if ways in ("falling", "rising") else None)
    worst = loss(plan)
    assert worst <= EPSILON + 1e-9
    if plan.step.monotone == "falling":
        assert worst == pytest.approx(EPSILON, abs=1e-9)


@pytest.mark.parametrize(("ways", "ask"), [("falling", "below, two"), ("rising", "below, two"), ("both", "top 2")])
def test_the_step_of_one_predicate_is_not_that_of_the_list(ways, ask, monkeypatch):
    query, policy = among(ways, ask)
    steps = [largest_step(tc.count(one), policy) for one in LISTS[ways][0]]
    one = max(steps, key=lambda step: step.l1)
    monkeypatch.setattr(thresholds, "largest_step", lambda *_: one)
    monkeypatch.setattr(top_k, "largest_step", lambda *_: one)
    assert loss(choose(query, policy, EPSILON)) > EPSILON + 0.1


@pytest.mark.parametrize("ask", ["top 1", "top 2", "above, two", "below, two"])
def test_the_direction_of_one_predicate_is_not_that_of_the_list(ask):
    """Where two fall and one rises, one-sided noise on all of them shows who is where."""
    falling, policy = among("falling", ask)[1], among("two fall and one rises", ask)[1]
    query = ASKED[ask](LISTS["falling"][0])
    wrong = choose(query, falling, EPSILON)
    right = ASKED[ask](LISTS["two fall and one rises"][0])
    assert loss(replace(wrong, query=right, policy=policy)) > EPSILON + 0.1


EACH = every_two_together(((1, 2), (2, 1), (3, 1), (1, 3, 2), (2, 1, 3)), POLICIES, (1, 2), (True, False))


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("thresholds", "ways", "at_most", "values"), EACH)
def test_a_threshold_for_each_item_costs_epsilon_and_no_more(thresholds, ways, at_most, values):
    query = tc.above("clicked", thresholds, at_most=at_most, values=values)
    plan = choose(query, items(len(thresholds), ways), EPSILON)
    worst = loss(plan)
    assert worst <= EPSILON + 1e-9
    if plan.step.monotone is not None:
        assert worst == pytest.approx(EPSILON, abs=1e-9)
    alone = replace(plan, query=replace(query, values=False))
    for counts in product(range(4), repeat=len(thresholds)):
        chances = [alone.log_probability(counts, (verdicts, ())) for verdicts in verdict_lists(plan, len(thresholds))]
        assert sum(map(math.exp, chances)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("ways", POLICIES)
@pytest.mark.parametrize("threshold", [1, 2, 4])
def test_below_costs_epsilon(ways, threshold):
    plan = choose(tc.below(item=("clicked", 0), threshold=threshold), items(2, ways), EPSILON)
    assert loss(plan) == pytest.approx(EPSILON, abs=1e-9)


@pytest.mark.parametrize("gap", [1, 2, 5, 10])
def test_the_chance_of_the_certain_verdict_attains_the_bound(gap):
    plan = choose(tc.below(item=("clicked", 0), threshold=20), items(2, "falling"), EPSILON)
    # no one-sided mechanism can be right more often: each of the `gap` steps costs a factor of exp(epsilon)
    assert plan.chance(gap) == pytest.approx(1 - math.exp(-gap * EPSILON), rel=1e-12)
    assert math.exp(plan.log_probability([20 - gap], None)) == pytest.approx(plan.chance(gap), rel=1e-12)
    mirrored = choose(tc.below(item=("clicked", 0), threshold=20), items(2, "rising"), EPSILON)
    assert mirrored.chance(gap) == pytest.approx(1 - math.exp(-gap * EPSILON), rel=1e-12)
    assert math.exp(mirrored.log_probability([19 + gap], None)) == pytest.approx(mirrored.chance(gap), rel=1e-12)


def test_certain_verdicts_are_never_wrong():
    for ways, wrong in (("falling", range(5, 9)), ("rising", range(5))):
        plan = choose(tc.below(item=("clicked", 0), threshold=5), items(2, ways), EPSILON)
        assert all(plan.log_probability([count], None) == -math.inf for count in wrong)


# ---- wrong on purpose: each of these must be seen to cost more ------------------------------------------------------


def test_one_answer_too_many_costs_more():
    for at_most in (1, 2):
        plan = choose(tc.above("clicked", 2, at_most=at_most, values=False), items(3, "falling"), EPSILON)
        late = replace(plan, query=replace(plan.query, at_most=at_most + 1))
        assert loss(late) == pytest.approx(EPSILON * (at_most + 1) / at_most, abs=1e-9)


def test_measuring_again_without_paying_costs_more():
    """Chosen with a part of the budget, then measured with all of it by noise that pays nothing back."""
    plan = choose(tc.top_k("clicked", 2), items(3, "falling"), EPSILON)
    assert isinstance(plan, BarPlan)
    untilted = Cube(1 / plan.law.epsilon, 2, "right")

    choice, measured = cached(plan.log_probability_of_choice), cached(measured_log_probability)

    def law(counts, output):
        true = tuple(counts[place] for place in output.places)
        return choice(counts, output.places, output.bar) + measured(untilted, true, output.noisy)

    assert loss_by_outputs(plan, law) == pytest.approx(EPSILON + 2 * float(plan.law.rate), abs=1e-9)


def test_a_tilt_that_pays_back_less_than_the_choice_cost_is_not_enough():
    plan = choose(tc.above("clicked", 2, at_most=2), items(3, "falling"), EPSILON)
    assert plan.is_shared
    faster = replace(plan, testing=TwoScale(plan.testing.right / 2, 0))  # tests twice as sharp, the old measurement

    tests, measured = cached(faster.log_probability_of_verdicts), cached(measured_log_probability)

    def law(counts, output):
        verdicts, noisy = output
        found = [place for place, above in enumerate(verdicts) if above]
        true = tuple(counts[place] for place in found)
        return tests(counts, verdicts) + measured(plan.measuring(found), true, noisy)

    assert loss_by_outputs(plan, law) == pytest.approx(EPSILON + 2 * float(1 / plan.testing.right), abs=1e-9)


def test_a_tilt_at_the_threshold_of_another_item_is_not_enough():
    """What the tests cost is paid back only near the floor of each: here the second count lies far over the first's."""
    plan = choose(tc.above("clicked", [1, 400], at_most=2), items(2, "falling"), EPSILON)
    assert plan.is_shared
    hidden, cover, verdicts = (1, 400), (0, 399), (True, True)
    tests = plan.log_probability_of_verdicts(hidden, verdicts) - plan.log_probability_of_verdicts(cover, verdicts)

    def worst(law) -> float:
        return tests + max(
            measured_log_probability(law, hidden, noisy) - measured_log_probability(law, cover, noisy)
            for noisy in noisy_around(law, hidden)
        )

    assert worst(plan.measuring([0, 1])) <= EPSILON + 1e-9
    assert worst(plan.measuring([0, 0])) == pytest.approx(EPSILON + float(1 / plan.testing.right), abs=1e-3)


def test_values_of_the_test_itself_and_of_a_measurement_cost_twice():
    """Two-part plans: both the noisy counts of the choice and fresh ones, each at the whole budget."""
    plan = choose(tc.top_k("clicked", 1), items(2, "both"), EPSILON)
    whole = replace(
        plan, choosing=TwoScale(2 / plan.epsilon, 0), measuring=TwoScale(1 / plan.epsilon, 1 / plan.epsilon)
    )
    assert loss(whole) == pytest.approx(2 * EPSILON, abs=1e-9)


def test_one_sided_noise_on_counts_that_do_both_costs_more():
    falling, both = items(3, "falling"), items(3, "both")
    for query in (tc.top_k("clicked", 1), tc.above("clicked", 2, at_most=1), tc.below("clicked.has(0)", 2)):
        wrong = replace(choose(query, falling, EPSILON), policy=both)
        assert loss(wrong) > EPSILON + 0.1


def test_a_shift_of_the_winners_alone_is_not_enough_where_losers_rise():
    policy = items(3, "both")
    plan = choose(tc.top_k("clicked", 1), policy, EPSILON)
    assert plan.choosing.right == 2 / plan.choosing_epsilon
    halved = replace(plan, choosing=TwoScale(plan.choosing.right / 2, 0))
    assert loss(halved) > EPSILON + 0.1


def test_laws_of_values_are_probabilities():
    for law in (Cube(3, 2, "right"), Cube(3, 2, "left"), Cube(2, 2, "both")):
        reach = range(-5 if law.sides == "right" else -70, 6 if law.sides == "left" else 71)
        total = np.logaddexp.reduce([law.joint_log_pmf(point) for point in product(reach, repeat=2)])
        assert total == pytest.approx(0, abs=1e-8)
