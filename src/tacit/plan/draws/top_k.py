"""Choose the largest counts, then measure them.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every set O of outputs (the
            chosen items, the bar, the noisy counts): Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
Assumes     The plan's step bounds how far the counts move along an edge (`plan/sensitivity/steps.py`).
Why         Ties are broken by the place in the domain, a fixed public order: all arguments compare (noisy count,
            place). In two parts: which items are chosen is hidden with `choosing_epsilon`
            (`plan/plans/selection_plan.py`),
            and the noisy counts of the choice are forgotten. The chosen counts then get fresh noise that hides any step
            of so many counts, `measuring_epsilon`; that it depends on the choice is sequential composition.
            With a bar (counts only fall, by one at most): K items are chosen with noise >= 0 of rate b, and the
            smallest of their noisy counts is kept as the bar. Given which chosen item i0 is at the bar, an item that
            was not chosen has a chance that never falls along an edge; i0 has a chance proportional to exp(-b (bar -
            count)) and needs count <= bar; another chosen one has exp(-b (bar - count)+), or bar + 1 for items after
            i0. So a fall by one costs at most exp(b), and nothing if the count is above bar + 1 (if it equals bar + 1
            and falls, the first kind loses nothing and the second exp(b) at most). That is what the measurement,
            `noise/cube/tilted.py` with floor = bar + 1, recovers: together they cost its epsilon. The sum of the K
            counts falls by at most K; noise of scale K / rest hides it at the rest of epsilon.
Reference   Asymmetric differential privacy, Algorithm 1, which releases the noisy counts it chose by: right (where
            counts only fall), but biased upwards, and with about ten times the variance.
Checked by  tests/property/test_selections_loss.py, tests/statistical/test_selections.py
"""

from __future__ import annotations

import numpy as np

from tacit import noise
from tacit.arrays import Ints
from tacit.noise.cube.tilted import TiltedCube
from tacit.noise.law import Law
from tacit.plan.plans.top_k import BarOutput, BarPlan, TopKPlan, largest_places


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
