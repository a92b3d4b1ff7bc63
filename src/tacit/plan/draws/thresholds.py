"""Compare counts with a threshold: one of them, many in a public order, or one at a time as they are asked for.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every set O of outputs
            (verdicts, which items were asked, noisy counts): Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
            "Certainly below" is never said of a count that is not below, "certainly above" never of one that is.
Assumes     The plan's step bounds how far the counts move along an edge (`plan/sensitivity/steps.py`). Items are asked
            in the order
            of the domain; thresholds (one for all, or one for each item), the order and the number of costly answers
            are public.
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
            exp(1 / scale) only if the count is at most the threshold; a measurement by `noise/cube/tilted.py` with the
            threshold as its floor and rate 1 / scale pays that back, so that both together cost its epsilon.
Reference   Asymmetric differential privacy, section 5.1.1 and Algorithm 2, which stops one answer too late and so costs
            (c + 1) / c of what it says. Dwork, Naor, Reingold, Rothblum, Vadhan 2009 and Lyu, Su, Li, Understanding the
            Sparse Vector Technique, arXiv:1603.01699, for the noisy threshold.
Checked by  tests/property/test_selections_loss.py, tests/statistical/test_selections.py
"""

from __future__ import annotations

import numpy as np

from tacit import noise
from tacit.arrays import Bools, Ints
from tacit.plan.plans.thresholds import AbovePlan, BelowPlan


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
