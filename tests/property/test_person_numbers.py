"""One number of each person: what happens to rows is an edge of the policy of numbers, and no release shows more."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import tacit as tc
from tacit.audit.disclosure_audits.confidences import Planned
from tacit.audit.exact_audit import plan_loss
from tacit.plan.choose import choose
from tacit.policy import person_numbers
from tacit.policy.domain import every_record, positions
from tacit.policy.person_numbers import NumberPolicy, PersonNumber
from tacit.policy.policy import ABSENT

DOMAIN = tc.Domain({"ward": tc.Categories(["A", "B"]), "cost": tc.Integers(-2, 4, step=2)})
RECORDS = every_record(DOMAIN)
POLICIES = {
    "taking part": tc.secrets.taking_part(),
    "everything": tc.secrets.everything(),
    "within": tc.secrets.within(2, "cost"),
    "far": tc.secrets.within(4, "cost"),
    "blocks": tc.secrets.partition("cost", width=4),
    "ward": tc.secrets.attributes("ward"),
    "one way": tc.secrets.graph([((("A", 4)), ("A", 0)), (("A", 0), ("A", -2))]),
    "some leave": tc.secrets.taking_part(where="ward == 'A'") | tc.secrets.within(2, "cost"),
    "low ones": tc.secrets.values({"cost": [-2]}),
}
NUMBERS = [
    PersonNumber("rows"),
    PersonNumber("rows", where=tc.where("ward == 'A'")),
    PersonNumber("sum", "cost"),
    PersonNumber("sum", "cost", at_most=Fraction(3), step=Fraction(3, 2)),
    PersonNumber("sum", "cost", where=tc.where("cost > 0")),
    PersonNumber("mean", "cost", step=Fraction(1, 2)),
    PersonNumber("mean", "cost", step=Fraction(3), where=tc.where("ward == 'B'")),
    PersonNumber("max", "cost", at_most=Fraction(2)),
]
ROWS = 3


def number_of(rows: list[Any], number: PersonNumber) -> Fraction | None:
    """The definition, in fractions; without the range."""
    picked = None if number.where is None else number.where.compile(DOMAIN)
    costs = [Fraction(row[1]) for row in rows if picked is None or picked.of_record(positions(DOMAIN, row))]
    if not costs:
        return None
    made = {"rows": len(costs), "sum": sum(costs), "mean": sum(costs) / len(costs), "max": max(costs)}[number.each]
    step = number.step or Fraction({"rows": 1}.get(number.each, 2))
    most = min([ROWS if number.each == "rows" else 4 * (ROWS if number.each == "sum" else 1), number.at_most or 99])
    return min(math.floor(Fraction(made) / step + Fraction(1, 2)), math.floor(most / step)) * step


def slots_of(policy: tc.Policy, many: int) -> list[tuple[list[Any], list[Any]]]:
    """Every change of the rows of one person, each of whose places stays, moves along an edge, empties or fills."""
    places = [*RECORDS, ABSENT]
    moves = [(a, b) for a, b in itertools.product(places, repeat=2) if a == b or policy.has_edge(a, b)]
    found = []
    for chosen in itertools.combinations_with_replacement(moves, many):
        hidden, cover = ([end for end in ends if end is not ABSENT] for ends in zip(*chosen, strict=True))
        found.append((hidden, cover))
    return found


def value_of(made: Fraction | None, numbers: NumberPolicy) -> Any:
    """The number as a value of its attribute."""
    if made is None:
        return ABSENT
    values = numbers.grid.values
    return values.value(int((made - Fraction(values.low)) / Fraction(values.step)))


def missing(policy: tc.Policy, numbers: tc.Policy, number: PersonNumber, many: int) -> set[Any]:
    """Return the changes of a person's number that are no edge."""
    grid = NumberPolicy(policy, number)
    made = {(number_of(hidden, number), number_of(cover, number)) for hidden, cover in slots_of(policy, many)}
    pairs = {(value_of(hidden, grid), value_of(cover, grid)) for hidden, cover in made if hidden != cover}
    return {pair for pair in pairs if not numbers.has_edge(*pair)}


@pytest.mark.parametrize("family", POLICIES)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{number.name}{number.options_in_words}")
def test_whatever_happens_to_the_rows_of_a_person_is_an_edge_of_their_numbers(number, family):
    many = ROWS if family in ("within", "far", "one way") else 2  # there every move is tried
    policy = tc.Policy(DOMAIN, POLICIES[family], person="id", per_person=ROWS)
    assert not missing(policy, NumberPolicy(policy, number), number, many)


def test_that_is_found_wrong_where_people_only_come_or_go_or_one_row_alone_moves():
    policy = tc.Policy(DOMAIN, tc.secrets.taking_part(), person="id", per_person=ROWS)
    numbers = NumberPolicy(policy, PersonNumber("rows"))
    assert missing(policy, tc.Policy(numbers.domain, tc.secrets.taking_part()), PersonNumber("rows"), 2) == {
        (1, 2),
        (2, 1),
    }
    policy = tc.Policy(DOMAIN, tc.secrets.within(2, "cost"), person="id", per_person=ROWS)
    numbers = NumberPolicy(policy, PersonNumber("sum", "cost"))
    one = tc.Policy(numbers.domain, tc.secrets.within(2, "cost per person"))
    assert missing(policy, one, PersonNumber("sum", "cost"), ROWS)


QUESTIONS = [
    tc.mean(each="rows"),
    tc.histogram(each="rows"),
    tc.median("cost", each="mean", step=2),
    tc.quantiles("cost", [0.25, 0.75], each="max"),
    tc.total("cost", each="sum", at_most=3, step=1),
    tc.mean("cost", each="sum", at_most=4),
    tc.variance("cost", each="sum"),
]


@pytest.mark.parametrize("family", ["taking part", "everything", "within", "blocks"])
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_a_release_of_numbers_shows_what_was_paid_and_no_more(query, family):
    """Exact, over all edges between numbers; a plan for people who only come or go shows more."""
    policy = tc.Policy(DOMAIN, POLICIES[family], person="id", per_person=ROWS)
    plan = choose(query, policy, 1)
    assert plan.policy.charged == policy
    assert plan_loss(plan).forward.high <= 1 + 1e-9
    if family == "taking part" and query.keyword != "variance":  # whose bounds need not be attained
        wrong = replace(query, each=None).plan(tc.Policy(plan.policy.domain, tc.secrets.taking_part()), Fraction(1))
        assert plan_loss(replace(wrong, policy=plan.policy)).forward.low > 1.2


def test_an_audit_of_whole_releases_finds_a_policy_of_numbers_that_forgets_how_many_rows_move(monkeypatch):
    policy = tc.Policy(DOMAIN, POLICIES["within"], person="id", per_person=ROWS)
    query, options = tc.total("cost", each="sum"), {"samples": 1000, "seconds": 60}
    assert tc.audit.release(policy, query, 1, **options).verdict == "NONE_FOUND"
    far = person_numbers._reach
    monkeypatch.setattr(person_numbers, "_reach", lambda number, rows: far(number, rows) / ROWS)
    found = tc.audit.release(policy, query, 1, **options)
    assert found.verdict == "LEAK_FOUND"
    assert "3 rows of one person move" in str(found)


def test_a_table_of_numbers_is_not_taken_for_one_of_attributes():
    policy = tc.Policy(DOMAIN, POLICIES["ward"], person="id", per_person=ROWS)
    queries = tc.histogram(each="rows", where="ward == 'A'"), tc.histogram("ward", "cost", of="rows")
    shown = Planned(tuple(choose(query, policy, 1) for query in queries))
    assert shown.policy == policy
    assert shown.left_out == ("histogram(rows per person where ward == 'A')",)
    assert [table.names for table in shown.at(4).tables] == [("ward", "cost")]
