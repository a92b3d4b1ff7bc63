"""Tables under attack: every planted one is found; no right one is accused, nor any that was mended."""

from dataclasses import replace
from fractions import Fraction

import pytest

from parameters import replaying
from tacit.audit.sampled_audits.sampled_audit import Verdict
from tacit.audit.selfcheck.attacked_tables import MOST_RIGHT, attacked_tables, estimated
from tacit.audit.selfcheck.planted.tables import planted_tables
from tacit.errors import PlanError
from tacit.publish.methods.criterion import Channel
from tacit.publish.methods.perturbation import Uniform

ALPHA = 1e-6
LONG = ("sampled-by-share", "estimates-from-group-wise-retention")  # seconds
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in attacked_tables]
stream = replaying(b"t" * 32)


@pytest.mark.parametrize("name", NAMES)
def test_the_attack_finds_what_is_planted_and_nothing_else(name: str) -> None:
    shares: list[float] = []
    row = attacked_tables[name].audit(ALPHA, shares.append)
    assert row.as_expected, str(row.found)
    assert (row.found.lower_bound > MOST_RIGHT) == (name in planted_tables)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    # the audit is sharp: a right table is right nearly as often as it may be
    assert name in planted_tables or row.found.right / row.found.samples > 0.8 * MOST_RIGHT


@pytest.mark.parametrize("name", planted_tables)
def test_tables_that_were_mended_are_not_accused(name: str) -> None:
    mended = replace(attacked_tables[name], publish=planted_tables[name].repaired)
    assert mended.audit(ALPHA).found.verdict == Verdict.NONE_FOUND


def test_a_table_that_keeps_no_criterion_is_found() -> None:
    plain = estimated("uniform", Uniform(Channel(Fraction(1, 2), 2))).audit(ALPHA)
    assert plain.found.verdict == Verdict.LEAK_FOUND
    assert not plain.as_expected
    assert "more than the 70% that the criterion allows for both tails together" in str(plain.found)


def test_alpha_is_checked() -> None:
    with pytest.raises(PlanError, match="alpha must lie between"):
        attacked_tables["scales-published"].audit(2)
