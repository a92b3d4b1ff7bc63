"""Look, then zoom, by samples: what is drawn has the law that its proof is about. Streams are fixed."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import tacit as tc
from parameters import replaying
from tacit.noise.two_scale import TwoScale
from tacit.plan.choose import choose
from tacit.plan.plans import zoom
from tacit.plan.plans.zoom import LOOK
from tacit.plan.questions.clusters import ClustersPlan

ALPHA = 1e-6
stream = replaying(b"tacit: look, then zoom, samples.")


def fits(seen: Any, law: TwoScale) -> bool:
    """Say whether whole numbers may have come from a law, by a chi-square test at ALPHA."""
    low, high = law.quantile(0.002), law.quantile(0.998)
    inside = np.arange(low, high + 1)
    chances = np.concatenate([[law.cdf(low - 1)], law.pmf(inside), [law.survival(high)]])
    counts = Counter(np.clip(seen, low - 1, high + 1).tolist())
    found = np.array([counts[value] for value in range(low - 1, high + 2)])
    used = chances > 0
    return bool(stats.chisquare(found[used], chances[used] / chances.sum() * len(seen)).pvalue > ALPHA)


@pytest.mark.parametrize(("right", "left"), [("2", "2"), ("1/2", "3"), ("3/2", "0")])
def test_noise_that_is_widened_has_the_wider_law_and_is_independent_of_it(right: str, left: str) -> None:
    law, many = TwoScale(Fraction(right), Fraction(left)), 40_000
    kept, more = law.draw_for((many,)), law.widening(LOOK, (many,))
    wide = law.widened(LOOK)
    assert wide is not None
    assert fits(kept + more, wide)
    assert not fits(kept + law.widening(LOOK - 1, (many,)), wide)  # and that is seen
    assert abs(np.corrcoef(kept, more)[0, 1]) < 5 / many**0.5


def test_a_look_is_as_noisy_as_it_says_and_so_is_the_count_that_follows() -> None:
    """The promise is about these two laws, and about the count being drawn afresh."""
    domain = tc.Domain({"x": tc.Integers(0, 99)})
    plan = choose(tc.clusters("x", k=1), tc.Policy(domain, tc.secrets.everything(), [tc.known.size(1500)]), 2)
    assert isinstance(plan, ClustersPlan)
    table = np.zeros(100, dtype=np.int64)
    table[40] = 1500
    looks, counts = [], []
    for _ in range(150):
        _, (counted, _, look) = zoom.draw_stages(plan, table, np.array([1500]))
        looks.append(look.noisy - look.plan.base.answers([table], domain))
        counts.append(counted.noisy[: len(looks[-1]) - 1])  # cells that are not cut: nobody is there
        assert look.plan.epsilon + counted.plan.epsilon == 2
    empty = np.array([np.delete(one, 20) for one in looks])
    assert fits(np.concatenate(looks), TwoScale(Fraction(5), Fraction(5)))
    assert fits(np.concatenate(counts), TwoScale(Fraction(5, 4), Fraction(5, 4)))
    assert not fits(np.concatenate(counts), TwoScale(Fraction(1), Fraction(1)))  # noise for the whole of epsilon
    assert abs(np.corrcoef(empty.reshape(-1), np.array(counts).reshape(-1))[0, 1]) < 5 / empty.size**0.5


def test_counts_that_are_shown_without_a_zoom_have_noise_for_all_of_epsilon() -> None:
    domain = tc.Domain({"x": tc.Integers(0, 99)})
    plan = choose(tc.clusters("x", k=1), tc.Policy(domain, tc.secrets.everything(), [tc.known.size(1500)]), 2)
    table = np.full(100, 15, dtype=np.int64)
    drawn = []
    for _ in range(150):
        _, parts = zoom.draw_stages(plan, table, np.array([1500]))
        assert len(parts) == 2
        drawn.append(parts[0].noisy - 30)
    assert fits(np.concatenate(drawn), TwoScale(Fraction(1), Fraction(1)))
    assert not fits(np.concatenate(drawn), TwoScale(Fraction(5, 4), Fraction(5, 4)))
