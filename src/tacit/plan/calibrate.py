"""The least noise that hides a step: which distribution, at which scale.

Guarantee   Adding a draw of the returned distribution to the answers satisfies, for every edge hidden -> cover whose
            step lies within the given largest step: Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O].
Assumes     Whole-number answers; the step is an upper bound (`plan/sensitivity/steps.py`).
Why         Let an answer fall by d along an edge: the noise must be larger by d at `cover` to give the same output, and
            each unit to the right costs 1/right. A rise by u costs u/left. Independent noise on several answers costs
            sum of falls / right + sum of rises / left, which is at most epsilon for every profile of the step.
            The cube costs max |change| / scale. An answer that cannot rise along any edge needs no noise to the left,
            one that cannot fall none to the right: that side is never used in the sums above.
Reference   Asymmetric differential privacy (one-sided noise); beyond it: two different scales, and the cube.
Checked by  tests/property/test_noise_for.py, tests/property/test_noise_loss.py
"""

from __future__ import annotations

from fractions import Fraction

from tacit.amounts import shown
from tacit.errors import PlanError
from tacit.noise.cube import MOST_DIMENSIONS, Cube, Sides
from tacit.noise.draws import LARGEST_SCALE, SMALLEST_SCALE
from tacit.noise.law import Law
from tacit.noise.two_scale import TwoScale
from tacit.plan.sensitivity.steps import LargestStep


def noise_for(
    step: LargestStep,
    epsilon: Fraction,
    answers: int,
    falling: int | None = None,
    rising: int | None = None,
    *,
    unit: Fraction | int = 1,
) -> tuple[Law | None, str]:
    """Return the noise with the smallest variance that hides the step, and why; None where nothing needs hiding.

    `falling` and `rising` say how many of the answers can fall and can rise at all (by default all of them), `unit`
    what one unit of the step is worth in the data.
    """
    if step.l1 == 0:
        return None, "no secret edge changes the answers, so they are released exactly"
    falling, rising = answers if falling is None else falling, answers if rising is None else rising
    independent = independent_noise(step, epsilon, falling, rising)
    split = falling + rising < 2 * answers
    variance = independent.variance()
    if split:
        right, left = TwoScale(independent.right, Fraction(0)), TwoScale(Fraction(0), independent.left)
        variance = min(variance, (right.variance() * falling + left.variance() * rising) / answers)
    cube = cube_noise(step, epsilon, answers)
    if cube is not None and cube.variance() < variance:
        most = shown(Fraction(step.linf * unit))
        return cube, (
            f"one person moves any of the {answers} answers by at most {most}: noise in the shape of a cube has "
            f"{variance / cube.variance():.1f} times less variance than independent noise"
        )
    if independent.left == 0 or independent.right == 0:
        way = "fall" if independent.left == 0 else "rise"
        return independent, f"along secret edges answers only {way}, so noise in one direction is enough"
    if split:
        return independent, (
            f"{falling:,} of the answers can fall along secret edges and {rising:,} can rise: each has noise only on "
            "the sides that it needs"
        )
    if independent.left != independent.right:
        return independent, "answers rise and fall by different amounts, so each direction has its own scale"
    return independent, "answers rise and fall alike along secret edges, so the noise is symmetric"


def independent_noise(step: LargestStep, epsilon: Fraction, falling: int = 1, rising: int = 1) -> TwoScale:
    """Return the best independent two-scale noise: every profile within epsilon, and the least total error.

    The error is falling * right^2 + rising * left^2: each side counts for the answers that need it.
    """
    fall, rise = step.largest_fall, step.largest_rise
    if rise == 0:
        return TwoScale(drawable(fall / epsilon), Fraction(0))
    if fall == 0:
        return TwoScale(Fraction(0), drawable(rise / epsilon))

    def at(ratio: Fraction) -> tuple[Fraction, Fraction]:
        # right = ratio * left; the tightest profile decides: fall/right + rise/left = (fall/ratio + rise)/left
        left = max((Fraction(f) / ratio + r) / epsilon for f, r in step.profiles)
        return ratio * left, left

    # the error is convex between the corners; simple ratios come within 0.1% of its least value and keep the scales
    # short fractions
    ratios = {Fraction(fall, rise), Fraction(1)}
    for f, r in step.profiles:
        if f and r and falling and rising:
            best = (f * rising / (r * falling)) ** (1 / 3)  # the free minimum on one profile's line
            ratios.add(_simple(best))
    right, left = min(
        (at(ratio) for ratio in sorted(ratios)), key=lambda pair: falling * pair[0] ** 2 + rising * pair[1] ** 2
    )
    return TwoScale(drawable(right), drawable(left))


def _simple(ratio: float) -> Fraction:
    return Fraction(ratio).limit_denominator(32) if ratio > 1 else 1 / Fraction(1 / ratio).limit_denominator(32)


def cube_noise(step: LargestStep, epsilon: Fraction, answers: int) -> Cube | None:
    """Return noise in the shape of a cube, or None where it cannot be used."""
    scale = Fraction(step.linf) / epsilon
    if not 2 <= answers <= MOST_DIMENSIONS or not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        return None
    sides: dict[str | None, Sides] = {"falling": "right", "rising": "left", None: "both"}
    return Cube(scale, answers, sides[step.monotone])


def drawable(scale: Fraction) -> Fraction:
    """Return a scale that can be drawn from: never smaller than asked."""
    if scale > LARGEST_SCALE:
        raise PlanError(
            f"needs noise of scale {float(scale):.3g}, above the largest that can be drawn, {float(LARGEST_SCALE):.0e}",
            key="epsilon",
            fix="Spend more epsilon, or ask a query that one person changes less.",
        )
    return max(scale, SMALLEST_SCALE)
