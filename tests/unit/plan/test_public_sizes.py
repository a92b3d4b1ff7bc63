"""Describing and planning are bounded by how much was written, not by how many values a domain has.

Time is not measured: what is counted is how many lines of our own code run, which other work on the machine cannot
change, and each bound is several times what is needed today.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tacit
from tacit.errors import TacitError
from tacit.plan.choose import choose
from tacit.plan.question import resolve
from tacit.plan.questions import count, histogram, marginals, ranges
from tacit.plan.questions.ranges import ListedRangesResponse
from tacit.plan.questions.written import from_document
from tacit.plan.sensitivity.responses import RecordMove
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy.policy_file import read_policy

SOURCE = str(Path(tacit.__file__).parent)


class TooMuch(BaseException):
    """More lines ran than allowed; no Exception, so that nothing takes it for a refusal."""


def lines(work: Callable[[], Any], most: int) -> Any:
    """Do work within so many lines of our code."""
    ran = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal ran
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        ran += event == "line"
        if ran > most:
            raise TooMuch
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work()
    finally:
        sys.settrace(before)


def policy(domain: str, secrets: str, more: str = "") -> Any:
    return read_policy(f"domain: {{{domain}}}\nsecrets: [{secrets}]\n{more}")


AGE = "age: {integers: [0, 99]}"
PUBLIC = [
    "born: {integers: [0, 2000000000]}",
    "at: {grid: {rows: 10000, columns: 10000, of: [a, b]}}",
    "seen: {items: 1000000}",
]
FAMILIES = ["within: {age: 5}", "partition: {attribute: age, width: 5}", "values: {age: [3]}", "attributes: [age]"]


@pytest.mark.parametrize("public", PUBLIC)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("presence", ["public", "secret"])
def test_a_large_attribute_is_described_without_walking_it(public: str, family: str, presence: str) -> None:
    found = policy(f"{AGE}, {public}", f"{{{family}}}", f"presence: {presence}\n")
    lines(found.describe, 60_000)


def listed(many: int) -> str:
    return "x in [" + ", ".join(str(3 * number) for number in range(many)) + "]"


@pytest.mark.one_in(5)
@pytest.mark.parametrize("family", ["within: {x: 5}", "partition: {attribute: x, width: 10}", "attributes: [x]"])
def test_a_long_list_of_values_costs_in_proportion(family: str) -> None:
    found = policy("x: {integers: [0, 1000000]}", f"{{{family}}}")

    def plan(many: int) -> Any:
        return lambda: choose(count(listed(many)), found, 1)

    lines(plan(250), 75_000)
    lines(plan(2000), 600_000)


def test_many_blocks_cost_in_proportion() -> None:
    def described(many: int) -> Any:
        blocks = ", ".join(f"[{3 * number}, {3 * number + 1}]" for number in range(many))
        return lambda: policy(
            "x: {integers: [0, 100000]}", f"{{partition: {{attribute: x, blocks: [{blocks}]}}}}"
        ).describe()

    lines(described(100), 150_000)
    lines(described(800), 1_200_000)


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        (8, "marginals.ways must make at most 20,000 histograms; got 8. 30 attributes have 5,852,925 sets of 8: "),
        (15, "marginals.ways must make at most 20,000 histograms; got 15. 30 attributes have 155,117,520 sets of 15: "),
    ],
)
def test_too_many_marginals_are_refused_before_any_is_listed(ways: int, said: str) -> None:
    flags = policy(", ".join(f"f{number}: flag" for number in range(30)), "everything")
    with pytest.raises(TacitError) as refused:
        lines(lambda: choose(marginals(ways=ways), flags, 1), 20_000)
    assert str(refused.value) == said + "lower it, or name fewer attributes."


def test_too_many_cells_of_marginals_are_refused_before_any_is_listed() -> None:
    wide = policy(", ".join(f"x{number}: {{integers: [0, 9999]}}" for number in range(5)), "everything")
    with pytest.raises(TacitError, match="must have at most 50,000,000 answers in all; got 2"):
        lines(lambda: choose(marginals(ways=2), wide, 1), 2_000)


@pytest.mark.parametrize("presence", ["public", "secret"])
def test_too_many_classes_of_records_are_refused(presence: str) -> None:
    flags = policy(", ".join(f"f{number}: flag" for number in range(30)), "everything", f"presence: {presence}\n")
    every = " and ".join(f"f{number}" for number in range(30))
    with pytest.raises(TacitError, match="must tell fewer classes of records apart"):
        lines(lambda: choose(count(every), flags, 1), 100_000)


CROSSING = [(number % 97, 3 * number % 97 + number % 97) for number in range(200)]


@pytest.mark.parametrize(
    "secrets", ["{within: {x: 7}}", "{partition: {attribute: x, width: 8}}", "{partition: {attribute: x, width: 50}}"]
)
@pytest.mark.parametrize("listed_ranges", [CROSSING, [(8 * number, 8 * number + 11) for number in range(40)]])
def test_many_ranges_are_bounded_by_windows_and_never_below_what_pairs_give(
    secrets: str, listed_ranges: list[tuple[int, int]]
) -> None:
    found = policy("x: {integers: [0, 400]}", secrets)
    query = resolve(ranges("x", listed_ranges), found.domain)
    line = found.domain.axes_of("x")[0]
    response = ListedRangesResponse(tuple(query.positions(found.domain)), line=line)  # type: ignore[union-attr]
    relation = found.shapes[0].relation(line)
    everything = tacit.policy.edges.intervals.Intervals.full(line.size)
    move = RecordMove(relation=relation, hidden=everything, cover=everything)
    exact = {(jump.fall, jump.rise) for jump in response.moved(move)}
    bound = {(jump.fall, jump.rise) for jump in response._moved_by_windows(move)}
    assert all(any(fall <= f and rise <= r for f, r in bound) for fall, rise in exact)
    # and not idle: at most three times as much
    assert max(map(sum, bound)) <= 3 * max(map(sum, exact))


def test_a_bound_by_windows_is_called_one_and_blocks_that_ranges_keep_whole_have_no_step() -> None:
    found = policy("x: {integers: [0, 10999]}", "{partition: {attribute: x, width: 10}}")
    aligned = [(10 * number, 10 * number + 9) for number in range(1100)]
    step = largest_step(ranges("x", aligned), found)
    assert (step.up, step.down, step.l1, step.exact) == (0, 0, 0, True)
    step = largest_step(ranges("x", [*aligned, (5, 14)]), found)
    assert (step.up, step.down, step.exact) == (1, 1, False)
    step = largest_step(ranges("x", [*aligned[:300], (5, 14)]), found)
    assert (step.up, step.down, step.l1, step.exact) == (1, 1, 1, True)


def test_a_question_about_nothing_large_is_still_planned() -> None:
    found = policy(f"{AGE}, {PUBLIC[0]}", "{within: {age: 5}}")
    lines(lambda: choose(histogram("age"), found, 1), 100_000)
    lines(lambda: choose(from_document({"count": "born < 1000000"}), found, 1), 100_000)
