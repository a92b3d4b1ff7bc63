"""Whole-number noise, and the only door to randomness in Tacit. The law of a noise stands beside its draw.

There are no seeds. Tests replay a stream with `with noise.replayed(noise.Keystream(key=<32 bytes>)):`; while they do,
`noise.is_replayed()` is true, and a release says in its certificate that it promises nothing.

In reading order:

    law              what every law says about itself
    two_scale        independent geometric noise, with a scale for either side or for each group
    cube             noise on many numbers at once
    tilted_cube      noise for counts that were chosen because they are large
    line             noise on all running counts at once
    thinning         how many of many records keep something, by their counts
    sum_bounds       bounds on weighted sums of independent noises
    variance_bounds  bounds on noise of which the variance is known
    cube_radius      the radius of a cube: expectations and exact draws
    kept_coins       coins that are kept with a probability, some for good
    draws            exact draws: uniform integers, coins, permutations, and by tables; scales
    keystream        the stream of random bits behind everything
"""

from typing import Any

from tacit.errors import PlanError, kind_of
from tacit.noise.cube import cube, cube_is_supported
from tacit.noise.draws import Size, bernoulli, permutation, uniform_below
from tacit.noise.keystream import Keystream, is_replayed, replayed
from tacit.noise.law import Law
from tacit.noise.two_scale import discrete_laplace, geometric, two_scale

__all__ = [
    "Keystream",
    "Law",
    "bernoulli",
    "cube",
    "cube_is_supported",
    "discrete_laplace",
    "geometric",
    "is_replayed",
    "permutation",
    "replayed",
    "sample",
    "two_scale",
    "uniform_below",
]


def sample(law: Law, size: Size | None = None) -> Any:
    """Draw from a law: one number or vector without `size`, else an int64 array."""
    if not isinstance(law, Law):
        raise PlanError(
            f"must be a law of noise; there is no sampler for {kind_of(law)}", key="law", fix="Take plan.noise."
        )
    return law.draw(size)
