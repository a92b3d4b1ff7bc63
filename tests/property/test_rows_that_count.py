"""What one row's move along a secret edge does to the rows that count, by brute force on small domains.

The rule is that of `tests/rows_that_count.py`, which other tests compare with every engine. The claims are those of
`tacit/rows/counts/row_choice.py`, and the exceptions that it and the limits name are shown to be ones.
"""

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
import pytest

import tacit as tc
from rows_that_count import in_order, row_key
from tacit.plan.sensitivity.steps import largest_step

Row = tuple[int, ...]
ONE = tc.Domain({"p": tc.Integers(0, 1), "x": tc.Integers(0, 3)})
SETS = tc.Domain({"p": tc.Integers(0, 1), "x": tc.Categories(["a", "b", "c", "d"])})
TWO = tc.Domain({"p": tc.Integers(0, 2), "x": tc.Integers(0, 2), "y": tc.Flag()})
ROWS_ARE_EDGES = {
    "within 1": (ONE, tc.secrets.within(1, "x")),
    "within 2": (ONE, tc.secrets.within(2, "x")),
    "partition into intervals": (ONE, tc.secrets.partition("x", blocks=[[0, 1], [2, 3]])),
    "one attribute": (ONE, tc.secrets.attributes("x")),
    "one attribute without an order": (SETS, tc.secrets.attributes("x")),
    "everything": (ONE, tc.secrets.everything()),
    "everything, two attributes": (TWO, tc.secrets.everything()),
}
ELSE = {
    "two attributes": (TWO, tc.secrets.attributes("x", "y")),
    "two attributes together": (TWO, tc.secrets.within(1, "x", "y")),
    "values": (ONE, tc.secrets.values({"x": [2]})),
    "records": (ONE, tc.secrets.records("x == 1")),
    "pairs": (ONE, tc.secrets.pairs([({"x": 0}, {"x": 3})])),
    "partition into other sets": (ONE, tc.secrets.partition("x", blocks=[[0, 2], [1, 3]])),
    "some people, by what moves": (ONE, tc.secrets.within(2, "x").only_for(tc.where("x <= 1"))),
}
PUBLIC = [name for name in (*ROWS_ARE_EDGES, *ELSE) if "everything" not in name and name != "records"]  # some cells
Ranked = Callable[[tc.Policy, int, list[Row]], list[Row]]


def places(policy: tc.Policy) -> Callable[[Row], dict[str, int]]:
    return lambda row: dict(zip(policy.domain, row, strict=True))


def by_rule(policy: tc.Policy, who: int, rows: list[Row]) -> list[Row]:
    return in_order(who, rows, places(policy), policy.domain, policy.moved_attributes)


def by_whole_row(policy: tc.Policy, who: int, rows: list[Row]) -> list[Row]:
    """The rule that one might think of first: a key of all that is in a row."""
    return sorted(rows, key=lambda row: (row_key(who, [(int("".join(map(str, row))), 26)], 1), row))


def has_edge(policy: tc.Policy) -> Callable[[Row, Row], bool]:
    records = {row: dict(zip(policy.domain, values(policy, row), strict=True)) for row in every_row(policy)}
    found = {(a, b) for a, b in product(records, repeat=2) if a != b and policy.has_edge(records[a], records[b])}
    return lambda a, b: (a, b) in found


def values(policy: tc.Policy, row: Row) -> list[Any]:
    return [one.value(place) for one, place in zip(policy.domain.values(), row, strict=True)]


def every_row(policy: tc.Policy) -> list[Row]:
    return list(product(*(range(one.size) for one in policy.domain.values())))


def moves(policy: tc.Policy, *, owned: int, alike: bool) -> Iterator[tuple[list[Row], list[Row]]]:
    """Yield what somebody owns before and after one row moves along an edge; `alike`: public cells may agree."""
    joined = has_edge(policy)
    rows = every_row(policy)
    public = [place for place, name in enumerate(policy.domain) if name not in policy.moved_attributes]
    for before in combinations_with_replacement(rows, owned):
        if not alike and len({tuple(row[place] for place in public) for row in before}) < owned:
            continue
        for at, row in enumerate(before):
            for other in rows:
                if joined(row, other):
                    yield list(before), [*before[:at], other, *before[at + 1 :]]


def broken(policy: tc.Policy, ranked: Ranked, *, owned: int, alike: bool = True) -> tuple[int, int]:
    """Count moves after which what counts has not moved along edges, and all moves."""
    joined, wrong, tried = has_edge(policy), 0, 0
    for before, after in moves(policy, owned=owned, alike=alike):
        for who, many in product((1, 2), range(1, owned)):
            a, b = (sorted(ranked(policy, who, list(rows))[:many]) for rows in (before, after))
            tried += 1
            wrong += not any(all(x == y or joined(x, y) for x, y in zip(a, to, strict=True)) for to in permutations(b))
    return wrong, tried


@pytest.mark.parametrize("name", ROWS_ARE_EDGES)
def test_what_counts_moves_along_edges_where_one_ordered_attribute_moves_or_everything_does(name: str) -> None:
    domain, secrets = ROWS_ARE_EDGES[name]
    owned = 2 if "everything" in name else 3
    wrong, tried = broken(tc.Policy(domain, secrets, person="id"), by_rule, owned=owned)
    assert (wrong, tried > 200) == (0, True)


@pytest.mark.parametrize("name", PUBLIC)
def test_what_counts_moves_along_edges_where_no_two_rows_have_the_same_public_cells(name: str) -> None:
    domain, secrets = {**ROWS_ARE_EDGES, **ELSE}[name]
    wrong, tried = broken(tc.Policy(domain, secrets, person="id"), by_rule, owned=2, alike=False)
    assert (wrong, tried > 5) == (0, True)


@pytest.mark.parametrize("name", ELSE)
def test_the_limits_name_where_it_may_not(name: str) -> None:
    """Otherwise the exceptions would be longer than they need to be."""
    domain, secrets = ELSE[name]
    wrong, _ = broken(tc.Policy(domain, secrets, person="id"), by_rule, owned=3 if domain is ONE else 2)
    assert wrong


def test_a_key_of_the_whole_row_would_let_any_other_row_count() -> None:
    domain, secrets = ROWS_ARE_EDGES["within 1"]
    wrong, tried = broken(tc.Policy(domain, secrets, person="id"), by_whole_row, owned=2)
    assert wrong > tried / 10


# ---------------------------------------------------------------------- slots, and what is paid for them


def slots(policy: tc.Policy, many: int) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield what is in the slots of one owner, before and after at least one changes, each once."""
    joined = has_edge(policy)
    states: list[Any] = [*every_row(policy), None]

    def may(a: Any, b: Any) -> bool:
        return a == b or (bool(policy.absences) if None in (a, b) else joined(a, b))

    changes = [(a, b) for a, b in product(states, repeat=2) if may(a, b)]
    for some in combinations_with_replacement(changes, many):
        if any(a != b for a, b in some):
            yield [a for a, _ in some], [b for _, b in some]


@pytest.mark.parametrize("many", [1, 2, 3])
@pytest.mark.parametrize(
    ("secrets", "presence"),
    [
        (tc.secrets.taking_part(), "secret"),
        *product((tc.secrets.within(1, "x"), tc.secrets.everything()), ("public", "secret")),
    ],
    ids=lambda one: getattr(one, "keyword", one),
)
def test_steps_pay_for_so_many_slots_and_for_no_more(many: int, secrets: Any, presence: str) -> None:
    domain = tc.Domain({"x": tc.Integers(0, 2)})
    policy = tc.Policy(domain, secrets, presence=presence, person="id", per_person=many)
    table, total = largest_step(tc.histogram("x"), policy), largest_step(tc.total("x"), policy)
    most = {"l1": 0, "total": 0}
    for before, after in slots(policy, many):
        a, b = (np.bincount([row[0] for row in state if row], minlength=3) for state in (before, after))
        people = np.minimum(b, 1) - np.minimum(a, 1)  # a person counts once in each cell
        fall, rise = int(-people[people < 0].sum()), int(people[people > 0].sum())
        most["l1"] = max(most["l1"], fall + rise)
        most["total"] = max(most["total"], abs(int((b - a) @ np.arange(3))))
        for right, left in ((1, 1), (1, 0), (0, 1), (3, 1), (1, 3)):
            assert right * fall + left * rise <= max(right * f + left * r for f, r in table.profiles)
    assert (table.l1, total.l1) == (most["l1"], most["total"])
