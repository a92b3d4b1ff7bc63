"""Add whole-number noise to whole-number answers.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every set O of outputs:
            Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O]. Nothing is promised from cover to hidden.
Assumes     The plan's step bounds how far the answers move along an edge (`plan/sensitivity/steps.py`) and its noise
            hides that step (`plan/calibrate.py`). A plan without noise has a step of zero.
Why         Noise on whole numbers has the same support whatever the answer, except that one-sided noise starts at it;
            it is one-sided only where answers never move the other way along edges. The likelihood ratio along an
            edge is the sum of the costs of the moves, at most epsilon.
Reference   Blowfish privacy, Theorem 5.1 (Laplace mechanism); asymmetric differential privacy (aLap), on integers.
Checked by  tests/property/test_noise_for.py, tests/statistical/test_additive.py
"""

from __future__ import annotations

from tacit.arrays import Ints
from tacit.plan.plans.linear import LinearPlan


def blur(truth: Ints, plan: LinearPlan) -> Ints:
    """Return the true answers of a plan's base query with its noise added.

    The last axis holds the answers of one release; with further axes before it, each is a release of its own.
    """
    blurred = truth.copy()
    for law, entries in plan.laws():
        blurred[..., entries] += law.draw_for(blurred[..., entries].shape)
    return blurred
