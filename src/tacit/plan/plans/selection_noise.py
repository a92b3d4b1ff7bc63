"""The least noise that hides who was chosen: how far the noise of the chosen counts must move along an edge.

Guarantee   With noise to the right of scale `shift(step, k) / epsilon` on every count, which k counts are the largest
            (ties go to the earlier item) is as likely at `cover` as at `hidden` up to exp(epsilon), along every edge
            whose step lies within the given largest step. `restrict(step, k)` bounds what an edge does to any k
            counts.
Assumes     Whole-number counts; the step is an upper bound (`plan/sensitivity/steps.py`). The order that breaks ties is
            public.
Why         Let no count rise by more than u and none fall by more than d along an edge, and let `chosen` be the k
            winners at hidden. Give the losers the same noise at cover: each is at most u higher. Give each winner i,
            whose count changes by s_i, noise that is larger by u - s_i: it is then exactly u higher. Nobody passes
            anybody
            (comparing noisy counts, then places in a fixed order), so the same k win. Larger noise costs 1/scale per
            unit, and the sum of u - s_i over the winners is at most k u plus what winners fall: `shift`. Noise to the
            left is never needed, whichever way the counts move.
            Where a person moves few counts in all, hiding every count is cheaper: the noise of `independent_noise` on
            all of them costs sum of falls / right + sum of rises / left, whatever is chosen from them afterwards.
Reference   Asymmetric differential privacy, Algorithm 1 (u = 0); its mixed case costs twice as much, as found here.
            McKenna, Sheldon, Permute-and-Flip, arXiv:2010.12603, for one-sided noise where counts move both ways.
Checked by  tests/property/test_selections_loss.py
"""

from __future__ import annotations

from fractions import Fraction

from tacit.noise.two_scale import TwoScale
from tacit.plan.calibrate import drawable, independent_noise
from tacit.plan.sensitivity.steps import LargestStep


def shift(step: LargestStep, chosen: int) -> int:
    """Return how far the noise of so many chosen counts must move in all along an edge, at most."""
    return chosen * step.up + min(chosen * step.down, largest_fall(step))


def selecting_noise(step: LargestStep, chosen: int, epsilon: Fraction) -> TwoScale:
    """Return the least noise on each count that hides which of them are the largest."""
    of_winners = TwoScale(drawable(shift(step, chosen) / epsilon), Fraction(0))
    of_all = independent_noise(step, epsilon)
    return min((of_winners, of_all), key=lambda law: law.variance())


def restrict(step: LargestStep, chosen: int) -> LargestStep:
    """Return the bound on what an edge does to any `chosen` of the counts."""
    falls = min(chosen * step.down, largest_fall(step))
    rises = min(chosen * step.up, max((rise for _, rise in step.profiles), default=0))
    together = min(chosen * step.linf, step.l1)
    # the corners of {falls, rises, falls + rises <= together}: linear costs are largest at one of them
    corners = {(falls, min(rises, together - falls)), (min(falls, together - rises), rises)}
    return LargestStep(
        up=step.up,
        down=step.down,
        l1=together,
        square=min(step.square, chosen * step.linf**2),
        profiles=tuple(sorted(corners)) if together else (),
        why=step.why,
        exact=False,
        unmoved_reasons=step.unmoved_reasons,
    )


def largest_fall(step: LargestStep) -> int:
    """Return the largest sum of falls along an edge."""
    return max((fall for fall, _ in step.profiles), default=0)
