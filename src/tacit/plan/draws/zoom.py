"""Look, then zoom: cells are counted once, or looked at and counted anew in finer ones, for one epsilon.

Drawn are the number of people (its own part of epsilon, nothing where no edge changes it) and then, with the rest e:

1. the cells of the grid that the noisy number of people calls for, with noise for e, kept from everybody;
2. if public numbers say so, a look: these noisy counts with more noise (`Law.widening`), which makes theirs LOOK = 5
   times as wide. What follows is a function of it, of the noisy number of people and of public numbers;
3. where the look shows people in few cells: a fresh count in finer cells, with noise for 4/5 e. Look and count are
   released, and what was kept is forgotten. Else what was kept is released.

Guarantee   For every secret edge hidden -> cover of the plan's policy, every data set and every set O of outputs (the
            number of people, the look, which cells are counted, their counts): Pr[M(hidden) in O] <= exp(epsilon) *
            Pr[M(cover) in O], at the epsilon that was reserved as one before rows were read. Nothing is promised from
            cover to hidden.
Assumes     What `plan/draws/additive.py` assumes of every count, for every grid that may be chosen: each is planned by
            its own step under the policy, with the secret presence, `where` of edges and knowledge that this has (what
            others must do when somebody moves is in the step; a policy whose step is refused is refused before).
Why         Let p and p' be the chances of one output (people, look, counts) at hidden and at cover. The number of
            people: at most exp(its part). Given it, the grid is fixed. A look that leads to a fresh count: its law is
            additive noise of 5 times the scale, so each unit of each move costs a fifth: exp(e/5); given the look, the
            fresh count is additive noise on cells that the look has fixed: exp(4/5 e). A look that does not: what is
            released, the kept counts and the look, is the kept counts and noise that knows nothing of the data, so the
            ratio is that of the kept counts: exp(e). Which case holds is part of the output, so the ratio of every
            single output is at most exp(epsilon); sums over O keep that. Ratios are taken from hidden to cover only, so
            that edges of one direction and one-sided noise need no other argument.
Reference   Dwork, Roth, The algorithmic foundations of differential privacy, section 3.5 (adaptive composition);
            Koufogiannis, Han, Pappas, Gradual release of sensitive data under differential privacy (noise that becomes
            smaller), here on whole numbers and for two scales.
Checked by  tests/unit/plan/test_zoom.py, tests/statistical/test_zoom.py
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.arrays import Floats, Ints
from tacit.plan.draws.additive import blur
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.plans.zoom import LOOK, closer
from tacit.plan.questions.clusters import ClustersPlan


class NoisyPart(NamedTuple):
    """A plan, and the noisy answers that are released of it."""

    plan: LinearPlan
    noisy: Ints


def draw_stages(plan: ClustersPlan, table: Ints, people: Ints) -> tuple[ClustersPlan, list[NoisyPart]]:
    """Return the plan for the number of people that was measured, and what is released: cells, people and a look.

    `table` and `people` are true: the people in every cell of the domain, and in all. There is no look where there was
    none, and where it says no more than the cells.
    """
    domain = plan.policy.domain
    everybody = NoisyPart(plan.parts[1], blur(people, plan.parts[1]))
    number = float(_estimates(everybody)[0])
    settled = plan.for_so_many(number)
    cells, look = settled.parts[0], settled.look
    kept = NoisyPart(cells, blur(cells.base.answers([table], domain), cells))
    if look is None or cells.noise is None:
        return settled, [kept, everybody]
    seen = NoisyPart(look, kept.noisy + cells.noise.widening(LOOK, kept.noisy.shape))
    zoomed = closer(look, _estimates(seen), number)
    if zoomed is None:
        return settled, [kept, everybody]
    return settled, [NoisyPart(zoomed, blur(zoomed.base.answers([table], domain), zoomed)), everybody, seen]


def _estimates(part: NoisyPart) -> Floats:
    """Return noisy answers less the mean of their noise, in people."""
    mean = 0.0 if part.plan.noise is None else part.plan.noise.mean()
    unit = float(part.plan.query.unit(part.plan.policy.domain))
    return np.asarray((part.noisy - mean) * unit, dtype=np.float64)
