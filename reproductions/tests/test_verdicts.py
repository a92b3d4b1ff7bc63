"""Verdicts of reproductions: they follow from numbers, and nothing without numbers is called true."""

import math

import pytest

from tacit_reproductions.results import Claim, about, check, same, tally


def claim(*checks, **more):
    return Claim("1", "a ratio", "a mechanism; made-up data", "above 1 always", "numbers", checks, **more)


@pytest.mark.parametrize(
    ("checks", "holds"),
    [
        ([check("ratio", [1.2, 12.1], "above", 1)], "yes"),
        ([check("ratio", [0.989, 1.26], "above", 1)], "partly"),  # "above 1 always" beside 0.989
        ([check("ratio", 0.989, "above", 1)], "no"),
        ([about("largest ratio", 608, 100, 2)], "no"),  # "up to 100 times" beside 608
        ([about("largest ratio", [51, 199], 100, 2)], "yes"),
        ([same("chance", [0.95, 0.81], [0.9, 0.81], 0.005)], "partly"),
        ([check("error, beside the next,", [1, 2], "below", [2, 1])], "partly"),
        ([check("ratio", math.nan, "above", 1)], "no"),
        ([check("sizes", (7, 4), "is", (7, 4)), check("groups", 112, "is", 113)], "partly"),
    ],
)
def test_a_verdict_follows_from_its_numbers(checks, holds):
    one = claim(*checks, why="a reason")
    assert one.holds == one.document()["holds"] == holds
    cell = one.cells()[-1]
    assert cell.startswith(f"{holds}: ")
    assert all(str(part) in cell for part in checks)  # criterion and numbers stand beside the verdict
    assert ("a reason" in cell) == (holds != "yes")


def test_criteria_say_their_thresholds():
    assert str(check("ratio", [0.989] * 9 + [1.26], "above", 1)) == "ratio above 1: 1 of 10, found 0.989 to 1.26"
    assert str(about("largest ratio", 608, 100, 2)) == "largest ratio, factor from 100, at most 2: found 6.08"
    assert str(check("step", 6, "is", 4)) == "step is 4: found 6"


@pytest.mark.parametrize(("found", "limit"), [([], 1), ([1, 2, 3], [1, 2]), ([1], [])])
def test_a_check_without_numbers_is_none(found, limit):
    with pytest.raises(ValueError, match="has a number"):
        check("ratio", found, "above", limit)


def test_a_claim_is_judged_or_says_why_not():
    with pytest.raises(ValueError, match="has checks, or a reason"):
        claim()
    with pytest.raises(ValueError, match="has checks, or a reason"):
        claim(check("ratio", 2, "above", 1), unjudged="both")
    with pytest.raises(ValueError, match="what was run on what"):
        Claim("1", "a ratio", "", "above 1", "2", (check("ratio", 2, "above", 1),))
    left_open = claim(unjudged="it gives no number")
    assert left_open.cells()[-1] == "not judged: it gives no number"
    assert "Of 2 claims 1 hold, 0 hold in part, 0 do not, and 1 are not judged." in tally(
        [left_open, claim(check("ratio", 2, "above", 1))]
    )
