"""What a group's own row adds, by the way in which a table was published."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import tacit as tc
from tacit.publish.groups import PersonalGroups, as_columns
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.perturbation import Uniform
from tacit.publish.methods.sampled import Sampled
from tacit_reproductions.document_004.own_rows import others_say, own_row_gain

ASKED = Criterion(Fraction(3, 10), Fraction(3, 10))


def test_a_groups_own_row_adds_little_to_what_the_others_say() -> None:
    """Two groups stand out from what their columns say: uniform perturbation shows them, samples and masks hardly."""
    which = np.array([(a, b) for a in range(6) for b in range(5)])
    counts = np.tile([300, 700], (30, 1))
    counts[[3, 17]] = [[900, 100], [100, 900]]
    columns = as_columns(["a", "b"], "ill", ["x", "y"])
    groups = PersonalGroups(columns, (tuple(range(6)), tuple(range(5))), which, counts, dict)
    channel = Channel(Fraction(1, 2), 2)
    methods = Uniform(channel), Sampled(channel, ASKED, Fraction(1)), Masked(channel, ASKED)
    with tc.noise.replayed(tc.noise.Keystream(key=b"g" * 32)):
        uniform, sampled, masked = (own_row_gain(groups, one, 0.3, 20) for one in methods)
    assert uniform[3] > 0.9
    assert max(sampled[3], masked[3]) < 0.6
    assert others_say(groups, counts.astype(float))[0, 0] < 0.5
