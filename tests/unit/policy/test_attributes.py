"""Every kind of attribute keeps one list of laws; dates and decimals do what they say."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import yaml

import tacit as tc
from tacit.policy.attributes import KINDS, Attribute, Dates, Decimals
from tacit.policy.domain import positions
from tacit.policy.policy_file import policy_schema, read_policy, write_policy
from tacit.policy.secrets import FAMILIES
from tacit.rows.cells.kinds import CELLS

DOCS = Path(__file__).resolve().parents[3] / "docs"
EXAMPLES = [
    pytest.param(one, id=f"{kind}-{number}")
    for kind, made in KINDS.items()
    for number, one in enumerate(made.examples())
]


# ---- laws that every kind keeps ----


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_complete(kind: str) -> None:
    made = KINDS[kind]
    assert list(made.examples()), "audits and property tests need an example"
    assert made.schemas()
    assert made in CELLS, "rows cannot read it"
    assert str(made.row) in (DOCS / "files.md").read_text(encoding="utf-8"), "the docs do not name it"
    for key in made.keys:
        assert any(key.name in str(schema) for schema in made.schemas())
        assert key.name in f"{made.row}", "the docs do not name its key"


@pytest.mark.parametrize("keyword", FAMILIES)
def test_a_family_is_complete(keyword: str) -> None:
    family = FAMILIES[keyword]
    assert family.schemas()
    page = (DOCS / "files.md").read_text(encoding="utf-8")
    for row in family.rows:
        assert str(row) in page, "the docs do not name it"
    said = family.example or keyword
    domain = "{age: {integers: [0, 99]}, disease: {categories: [flu, hiv]}, consent: {categories: [given, refused]}}"
    text = f"{{domain: {domain}, secrets: {said}}}"
    assert isinstance(read_policy(text).secrets, family)
    jsonschema.Draft202012Validator(policy_schema()).validate(yaml.safe_load(text))


@pytest.mark.parametrize("one", EXAMPLES)
def test_values_and_positions_are_one_to_one(one: Attribute) -> None:
    values = one.every_value()
    assert len(values) == one.size
    assert [one.canonical(value) for value in values] == values
    assert len({str(one.cell(place)) for place in range(one.cells)}) == one.cells
    if not one.is_set:
        assert [one.position(value) for value in values] == list(range(one.size))


def test_numbers_of_numpy_are_the_same_values() -> None:
    grid, flag, whole = tc.Grid(3, 4), tc.Flag(), tc.Integers(0, 9)
    assert grid.position(tuple(np.array([2, 1]))) == grid.position((2, 1))
    assert flag.position(np.True_) == flag.position(True) == 1
    assert whole.position(np.int64(7)) == 7
    for one, given in ((grid, (True, 1)), (grid, (1.0, 1)), (whole, True), (flag, 2)):
        with pytest.raises(tc.PolicyError):
            one.position(given)


@pytest.mark.parametrize("one", EXAMPLES)
def test_a_policy_file_keeps_it(one: Attribute) -> None:
    policy = tc.Policy(tc.Domain({"x": one}), tc.secrets.everything())
    text = write_policy(policy)
    assert read_policy(text) == policy
    jsonschema.Draft202012Validator(policy_schema()).validate(yaml.safe_load(text))
    assert policy.describe()


@pytest.mark.parametrize("one", EXAMPLES)
def test_two_values_share_a_place_on_all_axes_only_if_they_are_the_same(one: Attribute) -> None:
    domain = tc.Domain({"x": one})
    places = [tuple(sorted(positions(domain, (value,)).items())) for value in one.every_value()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("one", EXAMPLES)
def test_values_for_descriptions_are_values(one: Attribute) -> None:
    start = one.usual()
    one.canonical(start)
    for other in one.others(start):
        assert one.canonical(other) != one.canonical(start)
        assert one.words(other)
    first, second = one.apart(start, 1)
    assert second is None or sum(one.distances(one.canonical(first), one.canonical(second))) > 0


@pytest.mark.parametrize("one", [one for one in EXAMPLES if one.values[0].unit is not None])
def test_numbers_are_whole_units(one: Attribute) -> None:
    assert one.unit is not None
    for place in range(one.size):
        exact = Fraction(str(one.value(place)))
        assert one.number(place) * one.unit == exact
        assert one.number(place) - one.number(0) == place * one.spacing


@pytest.mark.parametrize("one", [one for one in EXAMPLES if one.values[0].ordered])
@pytest.mark.parametrize("symbol", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_are_those_of_the_values(one: Attribute, symbol: str) -> None:
    domain = tc.Domain({"x": one})
    values = one.every_value()
    compare = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
    compare |= {"==": int.__eq__, "!=": int.__ne__}
    for place, value in enumerate(values):
        test = tc.where(f"x {symbol} {int(value) if value in (True, False) else value!r}").compile(domain)
        found = [test.of_record(positions(domain, (other,))) for other in values]
        assert found == [compare[symbol](other, place) for other in range(len(values))]


# ---- dates ----


@pytest.mark.parametrize(
    ("by", "first", "last", "size"),
    [
        ("day", "2023-12-30", "2025-01-01", 369),
        ("week", "2023-W52", "2025-W01", 54),
        ("month", "2023-12", "2025-01", 14),
        ("quarter", "2023-Q4", "2025-Q1", 6),
        ("year", "2023", "2025", 3),
    ],
)
def test_days_are_gathered_into_periods(by: str, first: str, last: str, size: int) -> None:
    one = Dates("2023-12-30", datetime.date(2025, 1, 1), by=by)
    assert (one.start, one.end, one.size) == (first, last, size)
    assert one == Dates(first, last, by=by)
    assert one.position(datetime.datetime(2024, 5, 1, 23)) == one.position(
        one.value(one.position(datetime.date(2024, 5, 1)))
    )
    day = datetime.date(2023, 12, 30)
    labels = {one.canonical(day + datetime.timedelta(days)) for days in range(369)}
    assert sorted(labels) == one.every_value()


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: Dates("2024-02-30", "2024-03-01"), "dates.start must be a date such as 2024-03-01; got '2024-02-30'"),
        (lambda: Dates("2024-03-01", "2024-02-01"), "dates must not end before it starts"),
        (lambda: Dates("2024", "2025"), "dates.start must be a date such as 2024-03-01"),
        (lambda: Dates("2024-W54", "2025-W01", by="week"), "or a week such as 2024-W10; got '2024-W54'"),
        (lambda: Dates("2024-01-01", "2024-12-31", by="decade"), "dates.by must be day, week, month, quarter or year"),
        (lambda: Dates("2024-01", "2024-12", "month", "2025-01"), "otherwise must be a month from 2024-01"),
        (lambda: Dates("2024-01", "2024-12", by="month").position("2024-03-01"), "Write it like '2024-03'"),
        (lambda: Decimals(0, 1, 0.3), "decimals.high must be a whole number of steps above low; got 1. Use 0.9"),
        (lambda: Decimals(1, 0, 0.1), "decimals.low must not be above high"),
        (lambda: Decimals(0, 1, 0), "decimals.step must be positive"),
        (lambda: Decimals(0, 1, "a tenth"), "decimals.step must be a decimal number; got 'a tenth'"),
        (lambda: Decimals(0, float("inf"), 1), "decimals.high must be a decimal number"),
        (lambda: Decimals(0, 10**12, "0.0001"), "must have at most 15 digits"),
        (lambda: Decimals(0, 1, 0.1, otherwise="clop"), "otherwise must be a value of the range or 'clip'"),
        (lambda: Decimals(0, 1, 0.1).position(0.1 + 0.2), "must be a number from 0 to 1 in steps of 0.1"),
        (lambda: tc.Domain({"age": tc.Integers(0, 9)}).axis("agee"), "must be an axis of the domain; got 'agee'"),
    ],
)
def test_refusals_say_what_to_do(made: Any, sentence: str) -> None:
    with pytest.raises(tc.PolicyError, match=re.escape(sentence)):
        made()


FEVER = tc.Domain({"fever": Decimals(35, 42, 0.1), "day": Dates("2024-01-01", "2024-03-31")})


JANUARY = "2024-01-01"


@pytest.mark.parametrize(
    ("family", "hidden", "cover", "edge"),
    [
        (tc.secrets.within(0.3, "fever"), (36.6, JANUARY), (36.9, JANUARY), True),  # 36.9 - 36.6 > 0.3
        (tc.secrets.within(0.3, "fever"), (36.6, JANUARY), (37.0, JANUARY), False),
        (tc.secrets.within("0.25", "fever"), (36.6, JANUARY), (36.8, JANUARY), True),
        (tc.secrets.within(7, "day"), (36.6, "2024-02-25"), (36.6, "2024-03-03"), True),
        (tc.secrets.within(7, "day"), (36.6, "2024-02-25"), (36.6, "2024-03-04"), False),
        (tc.secrets.within(2, "day", "fever", metric="l2"), (36.6, "2024-02-28"), (38.3, "2024-02-29"), True),
        (tc.secrets.within(2, "day", "fever", metric="l2"), (36.6, "2024-02-28"), (38.4, "2024-02-29"), False),
        (tc.secrets.partition("fever", width=0.5), (35.0, JANUARY), (35.4, JANUARY), True),
        (tc.secrets.partition("fever", width=0.5), (35.4, JANUARY), (35.5, JANUARY), False),
        (tc.secrets.partition("day", blocks=["2024-01-01..2024-01-31"]), (36.6, JANUARY), (36.6, "2024-01-31"), True),
    ],
)
def test_distances_and_blocks_are_exact(family: Any, hidden: Any, cover: Any, edge: bool) -> None:
    policy = tc.Policy(FEVER, family)
    assert policy.has_edge(hidden, cover) is edge
    start, end = (positions(FEVER, FEVER.record(side)) for side in (hidden, cover))
    axes = [axis for name in FEVER for axis in FEVER.axes_of(name)]
    apart = [d for a, b, one in zip(hidden, cover, FEVER.values(), strict=True) for d in one.distances(a, b)]
    by_shape = any(
        all(shape.relation(axis).allows(start[axis.name], end[axis.name]) for axis in axes)
        and (shape.metric is None or shape.metric.allows(apart))
        for shape in policy.shapes
    )
    assert by_shape is edge
    assert read_policy(write_policy(policy)) == policy


def test_a_step_counts_in_the_units_of_the_attribute() -> None:
    policy = tc.Policy(FEVER, tc.secrets.within(2, "day", "fever", metric="l2"))
    # along fever alone 20 tenths, and so 20 cumulative counts change by one
    assert tc.largest_step(tc.cumulative("fever"), policy).l1 == 20
    assert tc.largest_step(tc.cumulative("day"), policy).l1 == 2
    # on another day only sqrt(4 - 1) is left, 17 tenths
    moved = tc.cumulative("fever", where="day == '2024-01-02'")
    assert tc.largest_step(moved, policy).l1 >= 20


def test_dates_and_decimals_may_be_python_objects() -> None:
    march = tc.where(tc.col("day") >= datetime.date(2024, 3, 1))
    assert str(march) == "day >= '2024-03-01'"
    assert str(tc.col("fever") < Decimal("38.5")) == "fever < 38.5"
    assert FEVER.record([Decimal("36.6"), datetime.date(2024, 3, 1)]) == (36.6, "2024-03-01")
