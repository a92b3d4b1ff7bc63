"""One draw of whatever a selection's plan says: the output whose probability the plan's `log_probability` states.

Each kind of plan has one mechanism, for releases and audits alike: compare counts with a threshold (one of them, or
many in a public order), or choose the largest counts, then measure them. Nothing is done to what it returns.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every set O of outputs (which
            items were asked or chosen, verdicts, the bar, noisy counts): Pr[M(hidden) in O] <= exp(epsilon) *
            Pr[M(cover) in O]. "Certainly below" is never said of a count that is not below, "certainly above" never of
            one that is.
Assumes     The plan's step bounds how far the counts move along an edge (`plan/sensitivity/steps.py`). Items are asked
            in the order of the domain; thresholds (one for all, or one for each item), the order and the number of
            costly answers are public.
Why         One count: the noisy count satisfies the promise (`plan/calibrate.py`), and verdict and value are read off
            it. Many counts that only fall: a verdict is above iff count + noise >= threshold, with independent noise >=
            0. Along an edge the chance of "below" never falls, so such an answer costs nothing. "Above" has the chance
            exp(-(threshold - count)+ / scale), which falls by at most exp(-d / scale) if the count falls by d. There
            are at most c of these answers, since it stops right after the c-th (not after one more), and the counts of
            c items fall by at most shift(step, c) in all: epsilon_test = shift / scale. How many items were asked is
            decided by these answers, so it is covered. Counts that only rise are the mirror image: noise <= 0, "above"
            is free and certain, "below" costs, and it stops after the c-th "below".
            Counts that do both: with noise >= 0 on the threshold as well, give the threshold u more at cover, where u
            is the largest rise: "below" stays. Each "above" with change s needs u - s more noise. In all u / scale of
            the threshold + shift(step, c) / scale of the tests. Or every count has its own two-scale noise, where one
            person moves few of them: then all noisy counts may be looked at, and stopping is only a choice.
            Values: given "above" the noise of a test says nothing more about a count under the threshold (a geometric
            has no memory), so it is forgotten, and what was found is measured with fresh noise for the step of as many
            counts as were found, which is public by then. Where counts only fall, by one at most, an "above" costs
            exp(1 / scale) only if the count is at most the threshold; a measurement by `noise/tilted_cube.py` with the
            threshold as its floor and rate 1 / scale pays that back, so that both together cost its epsilon.
            The largest counts: ties are broken by the place in the domain, a fixed public order: all arguments compare
            (noisy count, place). In two parts: which items are chosen is hidden with `choosing_epsilon`
            (`plan/plans/selection_plan.py`), and the noisy counts of the choice are forgotten. The chosen counts then
            get fresh noise that hides any step of so many counts, `measuring_epsilon`; that it depends on the choice is
            sequential composition.
            With a bar (counts only fall, by one at most): K items are chosen with noise >= 0 of rate b, and the
            smallest of their noisy counts is kept as the bar. Given which chosen item i0 is at the bar, an item that
            was not chosen has a chance that never falls along an edge; i0 has a chance proportional to exp(-b (bar -
            count)) and needs count <= bar; another chosen one has exp(-b (bar - count)+), or bar + 1 for items after
            i0. So a fall by one costs at most exp(b), and nothing if the count is above bar + 1 (if it equals bar + 1
            and falls, the first kind loses nothing and the second exp(b) at most). That is what the measurement,
            `noise/tilted_cube.py` with floor = bar + 1, recovers: together they cost its epsilon. The sum of the K
            counts falls by at most K; noise of scale K / rest hides it at the rest of epsilon.
Reference   Asymmetric differential privacy: section 5.1.1 and Algorithm 2, which stops one answer too late and so costs
            (c + 1) / c of what it says; Algorithm 1, which releases the noisy counts it chose by: right (where counts
            only fall), but biased upwards, and with about ten times the variance. Dwork, Naor, Reingold, Rothblum,
            Vadhan 2009 and Lyu, Su, Li, Understanding the Sparse Vector Technique, arXiv:1603.01699, for the noisy
            threshold.
Checked by  tests/property/test_selections_loss.py, tests/statistical/test_selections.py
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from tacit import noise
from tacit.arrays import Bools, Ints
from tacit.noise.law import Law
from tacit.noise.tilted_cube import TiltedCube
from tacit.plan.plans.selection_plan import SelectionPlan
from tacit.plan.plans.thresholds import AbovePlan, BelowPlan
from tacit.plan.plans.top_k import BarOutput, BarPlan, TopKPlan, largest_places


def decide(count: int, plan: BelowPlan) -> int | None:
    """Return the noisy count, or None where the certain verdict stands alone."""
    noisy = count + (noise.sample(plan.law) if plan.law is not None else 0)
    return None if plan.hides(noisy) else noisy


def scan(counts: Ints, plan: AbovePlan) -> Bools:
    """Return for each item that is asked, in order, whether it is above; it stops after the last costly answer.

    Noise is drawn for all items, also for those that are not asked: how long it takes does not tell where it stopped.
    """
    thresholds, noisy = plan.thresholds + plan.offset, counts
    if plan.testing is not None:
        noisy = counts + noise.sample(plan.testing, len(counts))
    if plan.moving is not None:
        thresholds = thresholds + noise.sample(plan.moving)  # one draw for all of them
    is_above = noisy >= thresholds
    costly = np.flatnonzero(is_above == plan.costly)
    asked = int(costly[plan.query.at_most - 1]) + 1 if len(costly) >= plan.query.at_most else len(counts)
    return np.asarray(is_above[:asked], dtype=np.bool_)


def choose(counts: Ints, plan: TopKPlan) -> Ints:
    """Return the positions of the items that are measured, in order of position."""
    compared = counts if plan.choosing is None else counts + noise.sample(plan.choosing, len(counts))
    return np.asarray(largest_places(compared, plan.measured), dtype=np.int64)


def measure(counts: Ints, law: Law | TiltedCube | None) -> Ints:
    """Return the counts of what was chosen with fresh noise."""
    if law is None or not len(counts):
        return counts.copy()
    return law.measure(counts)


def choose_over_bar(counts: Ints, plan: BarPlan) -> tuple[Ints, int]:
    """Return the positions of the candidates, in order of position, and the smallest of their noisy counts."""
    compared = counts + noise.sample(plan.choosing, len(counts))
    places = np.asarray(largest_places(compared, plan.candidates), dtype=np.int64)
    return places, int(compared[places].min())


def choose_and_measure(counts: Ints, plan: BarPlan) -> BarOutput:
    """Return the candidates with their noisy counts, the bar, and the noisy sum of their counts."""
    places, bar = choose_over_bar(counts, plan)
    noisy = measure(counts[places], plan.law.at(bar + 1))
    centre = None if plan.centring is None else sum(counts[places].tolist()) + noise.sample(plan.centring)
    return BarOutput(tuple(places.tolist()), bar, tuple(noisy.tolist()), centre)


@singledispatch
def draw_output(plan: SelectionPlan, counts: Ints) -> Any:
    """Return one output for these true counts, as `plan.log_probability` takes it."""
    raise TypeError(type(plan).__name__)


@draw_output.register
def _(plan: BelowPlan, counts: Ints) -> int | None:
    return decide(int(counts[0]), plan)


@draw_output.register
def _(plan: AbovePlan, counts: Ints) -> tuple[tuple[bool, ...], tuple[int, ...]]:
    verdicts = scan(counts, plan)
    found = np.flatnonzero(verdicts == plan.costly)
    noisy = measure(counts[found], plan.measuring(found)).tolist() if plan.query.values else ()
    return tuple(verdicts.tolist()), tuple(noisy)


@draw_output.register
def _(plan: TopKPlan, counts: Ints) -> tuple[tuple[int, int], ...]:
    places = choose(counts, plan)
    return tuple(zip(places.tolist(), measure(counts[places], plan.measuring).tolist(), strict=True))


@draw_output.register
def _(plan: BarPlan, counts: Ints) -> BarOutput:
    return choose_and_measure(counts, plan)
