"""Look, then zoom: the exact loss of both stages on tiny grids, which cells are cut, and what a release says of it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import noise
from tacit.amounts import rough
from tacit.audit.exact_audit import plan_loss
from tacit.audit.worlds import every_edge
from tacit.noise.two_scale import TwoScale
from tacit.plan.calibrate import independent_noise
from tacit.plan.choose import choose
from tacit.plan.measure.cluster_grids import grid_of
from tacit.plan.measure.soft_cells import AxisCells, SoftCells, of_totals, shared_out
from tacit.plan.plans.zoom import LOOK, Zoomed, closer, draw_stages, look_at
from tacit.plan.questions.clusters import ClustersPlan
from tacit.policy.policy import ABSENT
from tacit.release.results.derived import ClustersRecord
from tacit.report.html import html_report
from tacit.report.text import release_table

KEY = b"tacit: look, then zoom, unit tst"


# ---- noise that becomes smaller -------------------------------------------------------------------------------------


def widening_law(scale: Fraction, times: int, far: int) -> Any:
    """Return the chances of 0, 1, .. of what widens a geometric: zero, or one more than a wider geometric."""
    wide, narrow = math.exp(-1 / (times * scale)), math.exp(-1 / scale)
    none = (1 - wide) / (1 - narrow)
    return np.concatenate([[none], (1 - none) * (1 - wide) * wide ** np.arange(far)])


@pytest.mark.parametrize("times", [2, 5])
@pytest.mark.parametrize(("right", "left"), [("2", "2"), ("1/2", "3"), ("3/2", "0"), ("0", "1")])
def test_noise_and_what_widens_it_are_noise_of_a_larger_scale(right: str, left: str, times: int) -> None:
    law, far = TwoScale(Fraction(right), Fraction(left)), 600
    more = np.ones(1)
    for scale, flip in ((law.right, 1), (law.left, -1)):
        one = widening_law(scale, times, far)[::flip] if scale else np.ones(1)
        more = np.convolve(more, one)
    reach = far if law.left else 0  # where zero stands in `more`
    sums = np.convolve(law.pmf(np.arange(-far, far + 1)), more)
    values = np.arange(len(sums)) - far - reach
    middle = np.abs(values) <= 40
    wide = law.widened(times)
    assert wide == TwoScale(times * law.right, times * law.left)
    assert sums[middle] == pytest.approx(wide.pmf(values[middle]), rel=1e-9, abs=1e-15)


def test_noise_that_is_drawn_together_and_scales_beyond_reach_have_no_widening() -> None:
    policy = tc.Policy(tc.Domain({"x": tc.Flag()}), tc.secrets.everything())
    assert choose(tc.histogram("x"), policy, 1).noise.widened(2) is None
    assert TwoScale(Fraction(10**12), Fraction(1)).widened(2) is None


# ---- the loss, both stages, every look ------------------------------------------------------------------------------

LINE = tc.Domain({"x": tc.Integers(0, 5)})
PEOPLE = 60
TOWN = (40, 12, 1, 2, 0, 3)  # how many stand where, beside the one who moves
POLICIES = {
    "everything": tc.Policy(LINE, tc.secrets.everything(), [tc.known.size(PEOPLE)]),
    "within": tc.Policy(LINE, tc.secrets.within(1, "x"), [tc.known.size(PEOPLE)]),
    "one way": tc.Policy(LINE, tc.secrets.values({"x": [1]}), [tc.known.size(PEOPLE)]),
    "some people": tc.Policy(LINE, tc.secrets.within(3, "x", where="x < 3")),
    "presence": tc.Policy(LINE, tc.secrets.taking_part()),
    "known": tc.Policy(LINE, tc.secrets.attributes("x"), [tc.known.count("x < 2")]),
}


def tiny(policy: tc.Policy, epsilon: Any) -> ClustersPlan:
    """Return a plan that looks at two cells of three places, whatever would be planned for so few people."""
    plan = choose(tc.clusters("x", k=1), policy, epsilon)
    assert isinstance(plan, ClustersPlan)
    (axis,) = LINE.axes_of("x")
    cells = SoftCells(("x",), (AxisCells(axis, (3,), 0.0, 1.0),)).plan(policy, plan.parts[0].epsilon)
    law = independent_noise(cells.step, cells.epsilon)  # of so few cells the noise would be in the shape of a cube
    look = replace(cells, epsilon=cells.epsilon / LOOK, noise=law.widened(LOOK))
    return replace(plan, parts=(replace(cells, noise=law), plan.parts[1]), look=look, known_people=PEOPLE)


def standing(*records: Any) -> Any:
    table = np.array(TOWN, dtype=np.int64)
    for record in records:
        if record is not ABSENT:
            table[record[0]] += 1
    return table


def log_ratio(plan: Any, hidden: Any, cover: Any) -> float:
    """Return the worst log likelihood ratio of noise on answers at the two ends, by going through it."""
    if plan.noise.is_joint:
        return float(plan.noise.loss((cover - hidden).tolist()))
    total = 0.0
    for a, b in zip(hidden.tolist(), cover.tolist(), strict=True):
        at = np.arange(min(a, b) - 4, max(a, b) + 5)
        here, there = plan.noise.pmf(at - a), plan.noise.pmf(at - b)
        total += max(math.log(p / q) if q > 0 else math.inf for p, q in zip(here, there, strict=True) if p > 0)
    return total


def worst_losses(plan: ClustersPlan, pairs: Any, counted: Any = None) -> dict[bool, float]:
    """Return the worst loss over every look near the truth and whatever is counted then: zoomed or not.

    `counted` replaces the plan of the count that follows a look.
    """
    cells, look = plan.parts[0], plan.look
    assert look is not None

    @cache
    def then(*seen: int) -> Any:
        zoomed = closer(look, (np.array(seen) - look.noise.mean()) * float(cells.base.unit(LINE)), PEOPLE)
        return zoomed if zoomed is None or counted is None else counted(zoomed)

    found = {True: -math.inf, False: -math.inf}
    for tables in pairs:
        ends = [cells.base.answers([table], LINE) for table in tables]
        for seen in itertools.product(*(range(min(pair) - 14, max(pair) + 15, 2) for pair in zip(*ends, strict=True))):
            here, there = (look.noise.joint_log_pmf(np.array(seen) - end) for end in ends)
            if here == -math.inf:
                continue
            zoomed = then(*seen)
            if zoomed is None:  # what was kept is shown: the look adds nothing that depends on the data
                loss = log_ratio(cells, *ends)
            else:
                loss = here - there + log_ratio(zoomed, *(zoomed.base.answers([table], LINE) for table in tables))
            found[zoomed is not None] = max(found[zoomed is not None], loss)
    return found


def edges(policy: tc.Policy) -> list[tuple[Any, Any]]:
    """Return moves of people along all edges, as tables; where something is known, of two who move together."""
    moves = every_edge(policy)
    if policy.known and policy is POLICIES["known"]:
        known = {record: record[0] < 2 for record, _ in moves}
        pairs = [((a, c), (b, d)) for a, b in moves for c, d in moves if known[a] + known[c] == known[b] + known[d]]
        return [(standing(*hidden), standing(*cover)) for hidden, cover in pairs[::25]]
    return [(standing(a), standing(b)) for a, b in moves]


@pytest.mark.parametrize("name", POLICIES)
def test_no_look_and_no_count_after_it_lose_more_than_epsilon(name: str) -> None:
    plan = tiny(POLICIES[name], 4)
    cells = float(plan.parts[0].epsilon)
    worst = worst_losses(plan, edges(plan.policy))
    assert min(worst.values()) > 0, "looks that zoom and looks that do not must both be there"
    assert max(worst.values()) <= cells + 1e-9
    assert worst[True] == pytest.approx(cells, rel=1e-9)


def test_a_count_that_spends_epsilon_again_loses_a_fifth_more() -> None:
    plan = tiny(POLICIES["everything"], 4)
    ends = standing((0,)), standing((5,))
    again = worst_losses(plan, [ends], lambda zoomed: zoomed.base.plan(plan.policy, plan.epsilon))
    assert again[True] == pytest.approx(4 * (1 + 1 / LOOK), rel=1e-9)


def test_the_exact_audit_knows_both_outcomes() -> None:
    plan = tiny(POLICIES["everything"], 4)
    assert len(plan.outcomes) == 2
    found = plan_loss(plan)
    assert found.forward == 4
    assert found.keeps
    unpaid = replace(plan, look=replace(plan.look, noise=plan.parts[0].noise))  # a look as sharp as the count
    assert plan_loss(unpaid).forward == pytest.approx(4 * (2 - 1 / LOOK))
    assert not plan_loss(unpaid).keeps


# ---- which cells ----------------------------------------------------------------------------------------------------


def grid(*, chosen: tuple[int, ...], times: int) -> tuple[tc.Domain, Zoomed]:
    domain = tc.Domain({"x": tc.Integers(0, 10), "y": tc.Integers(0, 6)})
    (x,), (y,) = domain.axes_of("x"), domain.axes_of("y")
    axes = AxisCells(x, (4, 8), 0.0, 1.0), AxisCells(y, (3, 5), 0.0, 1.0)
    return domain, Zoomed(("x", "y"), axes, None, chosen, times)


@pytest.mark.parametrize("chosen", [(), (0,), (4, 8), tuple(range(9))])
@pytest.mark.parametrize("times", [1, 2, 3, 4])
def test_every_place_is_counted_in_the_cell_that_it_lies_in(chosen: tuple[int, ...], times: int) -> None:
    domain, cells = grid(chosen=chosen, times=times)
    low, high = cells.boxes()
    assert len(low) == cells.size(domain)
    seen = np.zeros(len(low), dtype=np.int64)
    for x, y in itertools.product(range(11), range(7)):
        (at,) = np.flatnonzero(cells.added_by({"x": x, "y": y}, domain))
        assert (low[at] <= [x - 0.5, y - 0.5]).all()
        assert (high[at] >= [x + 0.5, y + 0.5]).all()
        seen[at] += 1
    assert seen.tolist() == np.prod(high - low, axis=1).tolist()  # every cell holds just the places in its box
    table = np.arange(77).reshape(11, 7)
    one_by_one = sum(
        int(table[x, y]) * cells.added_by({"x": x, "y": y}, domain) for x, y in itertools.product(range(11), range(7))
    )
    assert cells.answers([table], domain).tolist() == one_by_one.tolist()


def concentrated(people: int = 20_000) -> pd.DataFrame:
    """Return people around three places of a town, in a corner of a large country."""
    random = np.random.default_rng(3)
    towns = np.array([[310, 120], [316, 131], [322, 119]])[random.integers(0, 3, people)]
    places = np.clip(np.rint(towns + random.normal(0, 1.5, (people, 2))), 0, 399)
    return pd.DataFrame(places.astype(int), columns=["x", "y"])


COUNTRY = tc.Domain({"x": tc.Integers(0, 399), "y": tc.Integers(0, 399)})
HOW = {
    "everything": (tc.secrets.everything(), True),
    "within": (tc.secrets.within(3, "x", "y"), True),
    "taking part": (tc.secrets.taking_part(), False),
}


@cache
def of_country(how: str, k: int = 3, epsilon: str = "1/2") -> ClustersRecord:
    secrets, known = HOW[how]
    rows = concentrated()
    policy = tc.Policy(COUNTRY, secrets, [tc.known.size(len(rows))] if known else [])
    with noise.replayed(noise.Keystream(key=KEY)):
        session = tc.Session(policy, rows, budget=1)
        found = session.release(tc.clusters("x", "y", k=k), epsilon)
    assert session.remaining == 1 - Fraction(epsilon)  # charged as one
    assert isinstance(found, ClustersRecord)
    return found


@pytest.mark.parametrize("how", HOW)
def test_where_people_are_is_looked_into_and_nothing_else(how: str) -> None:
    found = of_country(how)
    cells, people, look = found.parts
    zoomed = cells.plan.base
    assert isinstance(zoomed, Zoomed)
    assert zoomed.times > 1
    low, high = SoftCells(zoomed.names, zoomed.axes).boxes()
    chosen = list(zoomed.chosen)
    assert low[chosen].min(axis=0).tolist() > [280, 90]
    assert high[chosen].max(axis=0).tolist() < [350, 160]
    # what was counted follows from released numbers alone
    again = closer(look.plan, look.values, float(people.values[0]))
    assert again is not None
    assert again.base == zoomed
    # and the costs add up to what was charged
    assert cells.plan.epsilon + people.plan.epsilon + look.plan.epsilon == Fraction(1, 2)
    points = concentrated()[["x", "y"]].to_numpy(dtype=float)
    for town in ([310, 120], [316, 131], [322, 119]):
        assert np.hypot(*(found.centres - town).T).min() < 1
    assert np.bincount(found.predict(points)) == pytest.approx(found.sizes, rel=0.05)


@pytest.mark.parametrize("how", HOW)
def test_intervals_hold_and_the_objective_is_right_where_cells_are_cut(how: str) -> None:
    found = of_country(how)
    rows = concentrated()
    table = np.zeros((400, 400), dtype=np.int64)
    np.add.at(table, (rows["x"], rows["y"]), 1)
    true = np.bincount(found.own, grid_of(found.parts[0].plan).answers([table], COUNTRY), 3)
    lower, upper = found.interval(0.9)
    assert ((lower <= true) & (true <= upper)).all()
    assert (upper - lower).max() < 20_000
    points = rows.to_numpy(dtype=float)
    apart = np.square(points - found.centres[found.predict(points)]).sum(axis=1).mean()
    assert found.objective == pytest.approx(apart, rel=0.15)


def test_the_number_of_people_is_measured_first_and_the_cells_follow_it() -> None:
    found = of_country("taking part")
    plan, settled = found.plan, found.settled
    measured = float(found.parts[1].values[0])
    assert measured == pytest.approx(20_000, abs=500)
    assert settled.known_people == round(measured)
    assert grid_of(plan.parts[0]).shape < grid_of(settled.parts[0]).shape
    assert (
        [part.epsilon for part in settled.parts]
        == [part.epsilon for part in plan.parts]
        == [Fraction(15, 32), Fraction(1, 32)]
    )
    assert "the number of people is measured first, for epsilon 0.03125" in str(plan)


def test_a_public_number_that_nobody_declared_is_used_as_well() -> None:
    rows = concentrated(3000)
    session = tc.Session(tc.Policy(COUNTRY, tc.secrets.everything()), rows, budget=1)
    found = session.release(tc.clusters("x", "y", k=3), 1)
    assert found.settled.known_people == 3000
    assert found.parts[1].plan.epsilon == 0


def test_plan_and_file_say_what_each_stage_would_cost() -> None:
    plan = of_country("everything").plan
    then = "Where it shows people in few cells, these are cut and all cells counted anew for epsilon 0.4"
    assert f"has epsilon 0.1. {then}" in str(plan)
    law = plan.noise_document()
    assert [law[part]["epsilon"] for part in ("cells", "people", "look", "zoom")] == ["1/2", "0", "1/10", "2/5"]
    assert plan.document()["predicted"]["stages"] == plan.stages()


@pytest.mark.parametrize("how", HOW)
def test_a_certificate_says_what_was_used(how: str) -> None:
    found = of_country(how)
    said, parts = found.certificate, dict(zip(("cells", "people", "look"), found.parts, strict=True))
    assert said["epsilon"] == "1/2"  # one charge
    assert list(said["noise"]) == list(parts)
    assert sum(Fraction(law["epsilon"]) for law in said["noise"].values()) == Fraction(1, 2)
    for role, part in parts.items():
        law = part.plan.noise_document() or {"law": "none"}
        stage = {"counted": part.plan.base.document(), "epsilon": str(part.plan.epsilon), **law}
        assert said["noise"][role] == stage
    zoomed, times = parts["cells"].plan.base, parts["cells"].plan.base.times
    across, down = zoomed.shape
    cells = f"{across} x {down} cells, {len(zoomed.chosen)} of them cut into up to {times} x {times} parts"
    assert said["strategy"] == f"through {cells}"
    assert said["step"]["l1"] == parts["cells"].plan.step.l1
    (stage,) = (term for term in said["terms"] if "look" in term)
    assert stage.startswith(f"a look at {across} x {down} cells")
    assert f"{cells}; {len(parts['cells'].values):,} in all" in stage
    assert said["expected_rmse"] == found.settled.rmse
    assert f"expected error {found.settled.rmse:.3g}" in repr(found)
    assert found.plan.strategy not in said["strategy"]  # which is what was explained


def test_what_is_said_of_a_release_keeps_what_was_charged() -> None:
    done = of_country("taking part").done
    assert plan_loss(done).forward == done.epsilon == Fraction(1, 2)


def test_a_report_is_about_the_people_who_were_measured_and_says_things_once() -> None:
    found = of_country("taking part")
    (said,) = (line for line in found.done.predictions() if line.startswith("the error below"))
    assert said.startswith(f"the error below is for {found.settled.known_people:,} people, as measured, and is about")
    explained = tc.Explanation(found.plan)
    text = html_report("job", found.plan.policy, {"it": found}, [explained])
    facts = text[text.index("What to expect") : text.index("Certificate of it")]
    for line in {*found.done.predictions(), *found.certificate["terms"]}:
        assert facts.count(f"<li>{line}</li>") == 1
    assert "1,000 people" not in text
    assert "Where it shows people in few cells" not in text
    # both errors are for the people who were measured
    plain = explained.after(found.done).plain_rmse
    asked, policy = found.plan.query, found.plan.policy.plain()
    assert plain == asked.plan_for(policy, Fraction(1, 2), found.settled.known_people).rmse
    assert plain < explained.plain_rmse / 2
    shown = release_table({"it": found}, {"it": explained})
    assert next(iter(shown.columns[4].cells)).plain == rough(found.settled.rmse, 3)
    assert next(iter(shown.columns[5].cells)).plain == rough(plain, 3)
    assert f"clusters are for {found.settled.known_people:,} people, as measured" in str(shown.caption)


def test_cells_that_would_be_exact_for_fewer_people_are_not_called_exact() -> None:
    random = np.random.default_rng(8)
    rows = pd.DataFrame({"x": random.integers(0, 400, 50_000)})
    policy = tc.Policy(tc.Domain({"x": tc.Integers(0, 399)}), tc.secrets.partition("x", width=40))
    session = tc.Session(policy, rows, budget=1)
    plan = session.plan(tc.clusters("x", k=2), "1/10")
    assert plan.is_exact
    found = session.release(plan)
    assert found.parts[0].plan.noise is not None
    assert not found.done.is_exact
    assert set(found.certificate["noise"]) >= {"cells", "people"}
    assert "Exact" not in " ".join(found.chart().to_dict()["title"]["subtitle"])


# ---- what is drawn --------------------------------------------------------------------------------------------------


def axes_of(drawn: dict[str, Any]) -> list[list[float]]:
    """Return the ends of both axes, which all layers share."""
    found = [{tuple(layer["encoding"][axis]["scale"]["domain"]) for layer in drawn["layer"]} for axis in ("x", "y")]
    return [list(one) for ends in found for one in ends]


@pytest.mark.parametrize("how", HOW)
def test_a_chart_shows_the_town_and_says_what_lies_outside(how: str) -> None:
    found = of_country(how)
    drawn = found.chart().to_dict()
    (left, right), (bottom, top) = axes_of(drawn)
    assert 290 < left < 310 < 322 < right < 340
    assert 100 < bottom < 119 < 131 < top < 150
    cells = drawn["layer"][0]["data"]["values"]
    assert min(row["left"] for row in cells) >= left
    assert max(row["top"] for row in cells) <= top
    low, high = grid_of(found.parts[0].plan).boxes()
    outside = (high <= [left, bottom]).any(axis=1) | (low >= [right, top]).any(axis=1)
    people = max(float(found.parts[1].values[0] - found.parts[0].values[~outside].sum()), 0)
    assert people < 500  # of 20,000
    said = " ".join(drawn["title"]["subtitle"])
    assert f"{outside.sum():,} cells lie outside, with an estimated {people:,.0f} people in all" in said
    assert max(row["density"] for row in cells) == 1


def test_a_chart_of_people_all_over_shows_all_of_it() -> None:
    random = np.random.default_rng(9)
    town, country = concentrated(10_000), pd.DataFrame(random.integers(0, 400, (2000, 2)), columns=["x", "y"])
    policy = tc.Policy(COUNTRY, tc.secrets.everything(), [tc.known.size(12_000)])
    with noise.replayed(noise.Keystream(key=KEY)):
        found = tc.Session(policy, pd.concat([town, country]), budget=1).release(tc.clusters("x", "y", k=1), "1/2")
    drawn = found.chart().to_dict()
    assert axes_of(drawn) == [[-0.5, 399.5], [-0.5, 399.5]]
    assert "outside" not in " ".join(drawn["title"]["subtitle"])


def test_people_all_over_are_counted_as_without_a_look() -> None:
    random = np.random.default_rng(4)
    rows = pd.DataFrame(random.integers(0, 400, (20_000, 2)), columns=["x", "y"])
    session = tc.Session(tc.Policy(COUNTRY, tc.secrets.everything(), [tc.known.size(20_000)]), rows, budget=1)
    plan = session.plan(tc.clusters("x", "y", k=3), "1/2")
    assert plan.look is not None
    found = session.release(plan)
    assert [part.plan for part in found.parts] == list(plan.parts)  # all of epsilon, and no look
    assert plan.strategy == f"{found.certificate['strategy']} or finer ones"
    assert list(found.certificate["noise"]) == ["cells", "people"]
    assert any("a look, which was a noisier copy" in term for term in found.certificate["terms"])


@pytest.mark.parametrize(("people", "epsilon"), [(900, "1/2"), (20_000, "1/50")])
def test_where_a_look_would_show_nothing_there_is_none(people: int, epsilon: str) -> None:
    policy = tc.Policy(COUNTRY, tc.secrets.everything(), [tc.known.size(people)])
    plan = choose(tc.clusters("x", "y", k=3), policy, epsilon)
    assert plan.look is None
    assert len(plan.outcomes) == 1
    assert "look" not in plan.noise_document()


def test_cells_without_noise_or_of_one_place_have_no_look() -> None:
    blocks = tc.secrets.partition("x", width=4) | tc.secrets.partition("y", width=4)
    policy = tc.Policy(COUNTRY, blocks, [tc.known.size(10**6)])
    exact = choose(tc.clusters("x", "y", k=3), policy, "1/1000")
    assert exact.is_exact
    assert exact.look is None
    finest = choose(tc.clusters("x", k=1), tc.Policy(LINE, tc.secrets.everything(), [tc.known.size(10**6)]), 1)
    assert look_at(finest.parts[0], 1e6) is None


def test_what_is_drawn_depends_on_true_counts_only_through_noisy_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise that undoes the data, nothing is left that tells one data set from another."""
    policy = tc.Policy(COUNTRY, tc.secrets.everything(), [tc.known.size(20_000)])
    plan = choose(tc.clusters("x", "y", k=3), policy, "1/2")
    monkeypatch.setattr(
        "tacit.plan.plans.zoom.blur", lambda truth, part: np.where(np.arange(len(truth)) == 7, 20_000, 0)
    )
    outcomes = []
    for rows in (concentrated(), concentrated()[["y", "x"]].set_axis(["x", "y"], axis=1)):
        table = np.zeros((400, 400), dtype=np.int64)
        np.add.at(table, (rows["x"], rows["y"]), 1)
        with noise.replayed(noise.Keystream(key=KEY)):
            _, parts = draw_stages(plan, table, np.array([20_000]))
        outcomes.append([(part.plan.query, part.noisy.tolist()) for part in parts])
    assert outcomes[0] == outcomes[1]


# ---- weights --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1,), (7,), (5, 8), (3, 4, 5)])
def test_weights_add_up_and_none_is_negative(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(6)
    for total in (0.0, 3.0, 500.0):
        found = shared_out(random.normal(2, 5, shape), total)
        assert found.shape == shape
        assert found.min() >= 0
        assert found.sum() == pytest.approx(total)


def test_weights_of_one_block_are_the_nearest_ones() -> None:
    noisy = np.array([[5.0, -2.0], [3.0, 1.0]])
    nearest = of_totals(noisy.reshape(1, -1), np.array([6.0]))[0]
    assert shared_out(noisy, 6.0).reshape(-1).tolist() == nearest.tolist()
    tried = [np.array(w) for w in itertools.product(np.linspace(0, 6, 25), repeat=4) if abs(sum(w) - 6) < 1e-9]
    apart = [np.square(one - noisy.reshape(-1)).sum() for one in (nearest, *tried)]
    assert apart[0] <= min(apart[1:]) + 1e-9


def test_noise_of_empty_cells_stays_near_the_people() -> None:
    random = np.random.default_rng(7)
    noisy = random.laplace(0, 4, (64, 64))
    town = slice(32, 48), slice(16, 32)
    noisy[town] += 60
    flat = of_totals(noisy.reshape(1, -1), np.array([60.0 * 256]))[0].reshape(64, 64)
    missing, missing_flat = (60 * 256 - weights[town].sum() for weights in (shared_out(noisy, 60 * 256), flat))
    assert missing < missing_flat / 5
