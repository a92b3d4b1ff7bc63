"""Whether one policy covers another, against the definition: small data sets of owners with several rows, all pairs.

The oracle is written here from the definition in `tacit/policy/inclusion.py`. It knows of a policy only which record
has an edge to which. Rows have an owner, a place in a public order, and cells, some of which the domain drops. Which
rows of an owner count is decided by several rules, since inclusion must hold for each of them.
"""

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations, combinations_with_replacement, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit as tc
from rows_that_count import in_order

UNREADABLE = "?"
OWNERS: tuple[dict[str, Any], ...] = (
    {},
    {"person": "id"},
    {"person": "id", "per_person": 2},
    {"person": "id", "per_person": 3},
    {"person": "household"},
)
PRESENCES = ("public", "secret")

ONE = tc.Domain({"x": tc.Integers(0, 2)})
KEPT = tc.Domain({"x": tc.Integers(0, 2, otherwise=0)})
CLIPPED = tc.Domain({"x": tc.Integers(0, 2, otherwise="clip")})  # numbers are kept, other cells drop their row
TWO = tc.Domain({"a": tc.Integers(0, 2), "b": tc.Flag()})
BOUGHT = tc.Domain({"c": tc.Items(["x", "y", "z"])})
AT_MOST = {many: tc.Domain({"c": tc.Items(["x", "y", "z"], at_most=many)}) for many in (1, 2)}
WARDS = tc.Domain({"ward": tc.Categories(["A", "B"]), "c": tc.Items(["x", "y"])})

ONE_SECRETS = (
    tc.secrets.everything(),
    tc.secrets.within(1, "x"),
    tc.secrets.partition("x", blocks=[[0, 1]]),
    tc.secrets.pairs([(0, 2)]),
    tc.secrets.pairs([(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]),
    tc.secrets.values({"x": [2]}),
    tc.secrets.records("x == 1"),
    tc.secrets.values({"x": [2]}) | tc.secrets.within(1, "x"),
)
TWO_SECRETS = (
    tc.secrets.everything(),
    tc.secrets.attributes("a"),
    tc.secrets.attributes("b"),
    tc.secrets.attributes("a", "b"),
    tc.secrets.within(1, "a"),
    tc.secrets.within(1, "a", "b", metric="linf"),
    tc.secrets.within("5/4", "a", "b", metric="l2"),
    tc.secrets.within("5/4", "a", "b", metric="l4"),  # 2 ** (1/4) < 5/4 < 2 ** (1/2)
    tc.secrets.pairs([({"a": 0}, {"a": 2})]),
    tc.secrets.values({"a": [2], "b": [True]}),
    tc.secrets.records("b == 1"),
)
ITEM_SECRETS = (
    tc.secrets.everything(),
    tc.secrets.attributes("c"),
    tc.secrets.values({"c": [1]}),
    tc.secrets.values({"c": [0]}),
    tc.secrets.within(1, "c"),
    tc.secrets.pairs([({"c": ["x"]}, {"c": ["y"]})]),
    tc.secrets.records("c.has('x')"),
)
WARD_SECRETS = (
    tc.secrets.everything(),
    tc.secrets.attributes("ward"),
    tc.secrets.attributes("ward", "c"),
    tc.secrets.values({"c": [1]}),
    tc.secrets.records("ward == 'A'"),
)

# ---- the definition -------------------------------------------------------------------------------------------------

Row = tuple[int, tuple[Any, ...]]  # its place in the public order, its cells
OwnersRows = tuple[Row, ...]


@cache
def moved(policy: tc.Policy) -> frozenset[str]:
    """The attributes that some edge changes."""
    names = list(policy.domain)
    return frozenset(
        name
        for a, b in product(records(policy.domain), repeat=2)
        for place, name in enumerate(names)
        if a[place] != b[place] and edge(policy, a, b)
    )


@cache
def records(domain: tc.Domain) -> tuple[tuple[Any, ...], ...]:
    def values(one: Any) -> list[Any]:
        if isinstance(one, tc.Items):
            return [frozenset(some) for many in range(one.most_items + 1) for some in combinations(one.items, many)]
        return [one.value(place) for place in range(one.size)]

    return tuple(product(*map(values, domain.values())))


@cache
def edge(policy: tc.Policy, hidden: Any, cover: Any) -> bool:
    """Whether one record may look like another; None is no record at all."""
    if hidden is None or cover is None:
        return policy.presence == "secret" and hidden is not cover
    return hidden != cover and policy.secrets.has_edge(policy.domain, hidden, cover)


def record_of(domain: tc.Domain, cells: tuple[Any, ...]) -> Any:
    """The record of one row: None where the domain drops it."""
    found = []
    for (_, attribute), cell in zip(domain.attributes, cells, strict=True):
        if isinstance(attribute, tc.Items):
            found.append(frozenset(cell[: attribute.most_items]))
        elif cell == UNREADABLE and attribute.otherwise in (None, "clip"):
            return None
        else:
            found.append(attribute.otherwise if cell == UNREADABLE else cell)
    return tuple(found)


def places_of(policy: tc.Policy, row: Row) -> dict[str, int]:
    """The places of a row's cells that are no items; those that the domain drops are not asked for."""
    record = record_of(policy.domain, row[1])
    named = zip(policy.domain.attributes, record, strict=True)
    return {name: one.position(cell) for (name, one), cell in named if not isinstance(one, tc.Items)}


def by_key(who: int, policy: tc.Policy, rows: list[Row]) -> list[Row]:
    """By the order, then as at random: the rule that Tacit has, for one of the owners."""
    return in_order(who, rows, partial(places_of, policy), policy.domain, moved(policy), lambda row: row[0])


def by_order_backwards(policy: tc.Policy, rows: list[Row]) -> list[Row]:
    """By the order, then cells from the largest down: another rule that one might have."""
    return sorted(rows, key=lambda row: (row[0], [[-ord(letter) for letter in str(cell)] for cell in row[1]]))


RULES = (*(partial(by_key, who) for who in (1, 2, 3)), by_order_backwards)


@cache
def counted(policy: tc.Policy, rule: Any, rows: OwnersRows) -> tuple[Any, ...]:
    """What counts of one owner, of the rows that fit: a multiset of at most `per_person` records."""
    first = rule(policy, [row for row in rows if record_of(policy.domain, row[1]) is not None])
    sets = [place for place, one in enumerate(policy.domain.values()) if isinstance(one, tc.Items)]
    if not sets:
        return tuple(sorted((record_of(policy.domain, cells) for _, cells in first[: policy.per_person]), key=str))
    if not first:
        return ()
    record = list(first[0][1])
    for place in sets:
        in_turn = dict.fromkeys(item for _, cells in sorted(first) for item in cells[place])
        record[place] = tuple(in_turn)
    return (record_of(policy.domain, tuple(record)),)


@cache
def owner_moves(policy: tc.Policy, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """Whether what counts of one owner moves: some slots along edges, each once, the others not at all."""
    return moves_along(partial(edge, policy), policy.per_person, before, after)


def moves_along(joined: Any, slots: int, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    if before == after:
        return False
    a, b = (list(state) + [None] * (slots - len(state)) for state in (before, after))
    return any(all(x == y or joined(x, y) for x, y in zip(a, chosen, strict=True)) for chosen in set(permutations(b)))


@cache
def changes_of_one_row(data: tuple[OwnersRows, ...]) -> list[tuple[int, int, Any, Any]]:
    """Which data sets differ in one row, and its cells in either; None: it comes or goes. All others stay."""
    found = []
    for (i, before), (j, after) in product(enumerate(data), repeat=2):
        gone, come = list(before), list(after)
        for row in before:
            if row in come:
                gone.remove(row)
                come.remove(row)
        if len(gone) <= 1 and len(come) <= 1 and not (gone and come and gone[0][0] != come[0][0]):
            found.append((i, j, *(some[0][1] if some else None for some in (gone, come))))
    return found


def neighbours(policy: tc.Policy, rule: Any, data: tuple[OwnersRows, ...]) -> tuple[Any, Any]:
    """Which pairs of one owner's rows are neighbours, and which look the same, as two matrices."""
    joined = cache(partial(edge, policy))
    if policy.person is None:
        near = np.zeros((len(data), len(data)), dtype=np.bool_)
        record = cache(lambda cells: None if cells is None else record_of(policy.domain, cells))
        for i, j, gone, come in changes_of_one_row(data):
            near[i, j] = joined(record(gone), record(come))
        seen = [tuple(sorted((record(cells) for _, cells in rows), key=str)) for rows in data]
    else:
        seen = [counted(policy, rule, rows) for rows in data]
        states = list(dict.fromkeys(seen))
        table = np.array([[moves_along(joined, policy.per_person, a, b) for b in states] for a in states])
        at = np.array([states.index(state) for state in seen])
        near = table[np.ix_(at, at)]
    numbers = {state: number for number, state in enumerate(dict.fromkeys(seen))}
    which = np.array([numbers[state] for state in seen])
    return near, which[:, None] == which[None, :]


def kept_by(listed: list[tc.Policy], data: Any) -> Any:
    """Which policies (rows) have all neighbours of which others (columns), or see them alike, whatever the rule."""
    kept = np.ones((len(listed), len(listed)), dtype=np.bool_)
    for rule in RULES:
        found = [neighbours(policy, rule, data(policy)) for policy in listed]
        broken = np.array([~(near | alike).ravel() for near, alike in found], dtype=np.float32)
        kept &= broken @ np.array([near.ravel() for near, _ in found], dtype=np.float32).T == 0
    return kept


def data_sets(rows: list[Row], most: int) -> tuple[OwnersRows, ...]:
    return tuple(some for many in range(most + 1) for some in combinations_with_replacement(rows, many))


def of_one(cells: Any, *, orders: int = 2) -> list[Row]:
    return [(order, (cell,)) for order in range(orders) for cell in cells]


LISTS = ((), ("x",), ("y",), ("x", "y"), ("z",))
CASES: dict[str, tuple[tc.Domain, tuple[Any, ...], tuple[OwnersRows, ...]]] = {
    "one attribute": (
        ONE,
        ONE_SECRETS,
        data_sets(of_one([0, 1, UNREADABLE]), 2) + data_sets(of_one([0, 1, 2], orders=1), 4),
    ),
    "nothing dropped": (KEPT, ONE_SECRETS, data_sets(of_one([0, 1, 2, UNREADABLE]), 2)),
    "nothing dropped, several rows count": (
        KEPT,
        ONE_SECRETS[:3],
        data_sets(of_one([0, 1, 2, UNREADABLE], orders=1), 3),
    ),
    "two attributes": (
        TWO,
        TWO_SECRETS,
        data_sets([(0, cells) for cells in (*product((0, 1, 2), (False, True)), (0, UNREADABLE))], 3),
    ),
    "items": (BOUGHT, ITEM_SECRETS, data_sets(of_one(LISTS), 2)),
    "one item": (AT_MOST[1], ITEM_SECRETS, data_sets(of_one(LISTS), 2)),
    "two items": (AT_MOST[2], ITEM_SECRETS, data_sets(of_one(LISTS), 2)),
    "items and wards": (
        WARDS,
        WARD_SECRETS,
        data_sets([(n, (ward, some)) for n in (0, 1) for ward in "AB" for some in ((), ("x",))], 2),
    ),
}


def policies(domain: tc.Domain, secrets: tuple[Any, ...], most: int) -> list[tc.Policy]:
    """All of them under which some owner of so many rows has more than count; with items one record counts."""
    if any(isinstance(one, tc.Items) for one in domain.values()):
        most = 2
    owners = [owner for owner in OWNERS if owner.get("per_person", 1) < most]
    return [
        tc.Policy(domain, secret, presence=presence, **owner)
        for secret, presence, owner in product(secrets, PRESENCES, owners)
    ]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("case", CASES)
def test_a_policy_that_covers_another_protects_all_its_neighbours(case: str) -> None:
    """For all owners, presences and families; for the same owners nothing is missed either."""
    domain, secrets, data = CASES[case]
    most = max(map(len, data))
    listed = policies(domain, secrets, most)
    kept = kept_by(listed, lambda _: data)
    claims = 0
    for (i, stronger), (j, weaker) in product(enumerate(listed), repeat=2):
        claimed = stronger.covers(weaker)
        same = (stronger.person, stronger.per_person) == (weaker.person, weaker.per_person)
        if claimed or same:
            claims += claimed
            assert kept[i, j] == claimed, (stronger.to_yaml(), weaker.to_yaml())
    assert claims > len(secrets)  # at least each policy itself


# ---- columns by which rows are chosen and from which items are read --------------------------------------------------

ORDERS = ("day", "week")
WideRow = tuple[tuple[int, int], tuple[Any, Any]]  # its places by `day` and by `week`; the attribute, another column
EITHER_WAY = ((0, 1), (1, 0))  # what comes first by one of them comes last by the other
ONE_SET = tuple(
    {**owner, **columns}
    for owner, columns in product(({}, {"person": "id"}), ({}, {"item": "link"}, {"order": "day"}, {"order": "week"}))
    if "person" in owner or "order" not in columns
)
ROWS = (
    {},
    *({"person": "id", **columns} for columns in ({}, {"order": "day"}, {"order": "week"})),
    *({"person": "id", "per_person": 2, "order": order} for order in ORDERS),
)
WIDE: dict[str, tuple[tc.Domain, tuple[Any, ...], tuple[dict[str, Any], ...], list[WideRow]]] = {
    "one attribute": (ONE, ONE_SECRETS, ROWS, [(n, (x, None)) for n in EITHER_WAY for x in (0, 1, 2)]),
    "nothing dropped": (KEPT, ONE_SECRETS, ROWS, [(n, (x, None)) for n in EITHER_WAY for x in (0, 2, UNREADABLE)]),
    "numbers clipped": (
        CLIPPED,
        ONE_SECRETS[:2],
        ROWS,
        [(n, (x, None)) for n in EITHER_WAY for x in (0, 2, UNREADABLE)],
    ),
    "one item": (
        AT_MOST[1],
        ITEM_SECRETS,
        ONE_SET,
        [(n, both) for n in EITHER_WAY for both in ((("x",), ("y",)), (("y",), ("x",)), ((), ("x",)))],
    ),
    "items": (
        BOUGHT,
        ITEM_SECRETS,
        ONE_SET,
        [((0, 0), both) for both in ((("x",), ("y",)), (("y",), ("x",)), ((), ("x",)), (("x", "y"), ()), ((), ()))],
    ),
}


def as_read(policy: tc.Policy, rows: tuple[WideRow, ...]) -> OwnersRows:
    """The rows of one owner, with the columns that the policy names."""
    return tuple(
        (0 if policy.order is None else places[ORDERS.index(policy.order)], (cells[policy.item is not None],))
        for places, cells in rows
    )


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", WIDE)
def test_a_policy_covers_none_by_other_columns_unless_it_protects_whole_owners(case: str) -> None:
    domain, secrets, owners, rows = WIDE[case]
    data = [some for many in range(4) for some in combinations_with_replacement(rows, many)]
    listed = [tc.Policy(domain, s, presence=p, **owner) for s, p, owner in product(secrets, PRESENCES, owners)]
    all_kept = kept_by(listed, lambda policy: tuple(as_read(policy, one) for one in data))
    claims = others = told_apart = 0
    for (i, stronger), (j, weaker) in product(enumerate(listed), repeat=2):
        claimed, kept = stronger.covers(weaker), all_kept[i, j]
        columns = [(policy.order, policy.item) for policy in (stronger, weaker)]
        assert kept or not claimed, (stronger.to_yaml(), weaker.to_yaml())
        claims += claimed
        others += claimed and columns[0] != columns[1]
        alike = (stronger.person, stronger.per_person, stronger.secrets) == (
            weaker.person,
            weaker.per_person,
            weaker.secrets,
        )
        told_apart += alike and columns[0] != columns[1] and not kept
    assert claims > len(listed)
    assert others  # differential privacy for owners covers whatever their rows do
    assert told_apart  # and these data sets show what goes wrong elsewhere


@pytest.mark.parametrize("secrets", ITEM_SECRETS, ids=lambda family: family.keyword)
@pytest.mark.parametrize("presence", PRESENCES)
def test_items_that_say_whose_row_it_is_are_no_part_of_a_whole_owner(secrets: Any, presence: str) -> None:
    people = tc.Policy(BOUGHT, tc.secrets.everything(), presence="secret", person="id")
    assert people.covers(tc.Policy(BOUGHT, secrets, presence=presence, item="link"))
    assert not people.covers(tc.Policy(BOUGHT, secrets, presence=presence, item="id"))


# ---- what is known --------------------------------------------------------------------------------------------------

TOLD = {
    "count": [tc.known.count("x == 1")],
    "marginal": [tc.known.marginal("x")],
    "size": [tc.known.size()],
    "size and count": [tc.known.size(), tc.known.count("x == 1")],
}
FLAGS = tc.Domain({"x": tc.Flag()})
FLAG_SECRETS = (tc.secrets.attributes("x"), tc.secrets.values({"x": [True]}), tc.secrets.values({"x": [False]}))
Units = tuple[tuple[Any, ...], ...]


def told(policy: tc.Policy, units: Units) -> list[int]:
    """What the policy's facts say about the records of all units."""
    everybody = [record for unit in units for record in unit]
    said = []
    for fact in policy.known:
        match fact.key.name:
            case "size":
                said.append(len(everybody))
            case "count":
                said.append(sum(record == (True,) for record in everybody))
            case "marginal":
                said += [sum(record == (value,) for record in everybody) for value in (False, True)]
    return said


def coupled(policy: tc.Policy, before: Units, after: Units) -> bool:
    """Whether some units move, at least one along an edge, both sides agree, and no smaller such moves do."""
    changed = [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    along = {n for n in changed if owner_moves(policy, before[n], after[n])}

    def agrees(moving: tuple[int, ...]) -> bool:
        here = tuple(after[n] if n in moving else unit for n, unit in enumerate(before))
        return told(policy, here) == told(policy, before)

    possible = [some for many in range(1, len(changed) + 1) for some in combinations(changed, many)]
    fitting = [some for some in possible if along & set(some) and agrees(some)]
    return tuple(changed) in fitting and len(fitting) == 1


@cache
def coupled_neighbours(policy: tc.Policy, before: tuple[OwnersRows, ...], after: tuple[OwnersRows, ...]) -> bool:
    """Whether two data sets of several owners are neighbours. Without `person`, a row moves but keeps its owner."""
    if policy.person is not None:
        a, b = (tuple(counted(policy, RULES[0], rows) for rows in data) for data in (before, after))
        if policy.presence == "public" and list(map(len, a)) != list(map(len, b)):
            return False
        return coupled(policy, a, b)
    slots = [max(len(x), len(y)) for x, y in zip(before, after, strict=True)]
    if policy.presence == "public" and any(len(x) != len(y) for x, y in zip(before, after, strict=True)):
        return False

    def filled(data: tuple[OwnersRows, ...]) -> Iterator[Units]:
        ways = []
        for rows, many in zip(data, slots, strict=True):
            units = [(record_of(policy.domain, cells),) for _, cells in rows] + [()] * (many - len(rows))
            ways.append(sorted(set(permutations(units))))
        for chosen in product(*ways):
            yield tuple(unit for units in chosen for unit in units)

    return any(coupled(policy, next(filled(before)), units) for units in filled(after))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("facts", TOLD)
def test_what_is_known_of_rows_is_not_known_of_people(facts: str) -> None:
    mine, yours = (data_sets([(0, (False,)), (0, (True,))], most) for most in (2, 1))
    worlds = list(product(mine, yours))
    known = TOLD[facts]
    settings = product(FLAG_SECRETS, PRESENCES, OWNERS[:3], ([], known))
    listed = [tc.Policy(FLAGS, s, facts_, presence=p, **owner) for s, p, owner, facts_ in settings]

    @cache
    def looks(policy: tc.Policy, data: tuple[OwnersRows, ...]) -> Any:
        if policy.person is not None:
            return tuple(counted(policy, RULES[0], rows) for rows in data)
        return tuple(sorted((record_of(policy.domain, cells) for rows in data for _, cells in rows), key=str))

    claims = 0
    for stronger, weaker in product(listed, repeat=2):
        if not (weaker.known and stronger.covers(weaker)):
            continue
        claims += 1
        assert stronger.known
        for before, after in product(worlds, repeat=2):
            if coupled_neighbours(weaker, before, after):
                fits = coupled_neighbours(stronger, before, after)
                assert fits or looks(stronger, before) == looks(stronger, after)
    assert claims >= len(FLAG_SECRETS) * len(PRESENCES) * 3  # each policy itself


# ---- single cases ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "secrets", "known"),
    [
        (AT_MOST[2], tc.secrets.values({"c": [1]}), []),  # an item that goes lets the owner's next one in
        (WARDS, tc.secrets.records("ward == 'A'"), []),  # the sensitive row need not be the one that counts
        (BOUGHT, tc.secrets.pairs([({"c": ["x"]}, {"c": ["y"]})]), []),  # the set of a row is not that of its owner
        (ONE, tc.secrets.attributes("x"), [tc.known.count("x == 1")]),  # rows that are 1 are not people who are
        (ONE, tc.secrets.pairs([(0, 2)]), []),  # another row of the owner may count then, with the value 1
    ],
)
def test_an_edge_between_rows_is_not_one_between_their_owners(domain: tc.Domain, secrets: Any, known: Any) -> None:
    rows = tc.Policy(domain, secrets, known)
    people = tc.Policy(domain, secrets, known, person="id")
    assert not people.covers(rows)
    assert not rows.covers(people)
    assert people.covers(tc.Policy(domain, secrets, known, person="id"))
    assert not people.covers(tc.Policy(domain, secrets, known, person="household"))


def test_differential_privacy_for_owners_covers_everything_about_their_rows() -> None:
    people = tc.Policy(TWO, tc.secrets.everything(), presence="secret", person="id")
    for secrets, presence, owner in product(TWO_SECRETS, PRESENCES, OWNERS[:4]):
        assert people.covers(tc.Policy(TWO, secrets, presence=presence, **owner))
    assert not people.covers(tc.Policy(TWO, tc.secrets.attributes("a"), person="household"))
    assert not people.covers(tc.Policy(TWO, tc.secrets.attributes("a"), [tc.known.count("b == 1")]))
    owner_inside = tc.Policy(TWO, tc.secrets.everything(), presence="secret", person="a")
    assert not owner_inside.covers(tc.Policy(TWO, tc.secrets.attributes("a")))  # such an edge changes the owner


@pytest.mark.parametrize("owner", OWNERS[:2], ids=str)
@pytest.mark.parametrize(
    "secrets",
    [
        tc.secrets.attributes("ward", "c"),
        tc.secrets.pairs([({"ward": "A", "c": ["x"]}, {"ward": "B", "c": []})]),
        tc.secrets.records("ward == 'A' and c.has('x')"),
    ],
    ids=lambda family: family.keyword,
)
def test_the_order_in_which_attributes_are_declared_does_not_matter(secrets: Any, owner: dict[str, Any]) -> None:
    backwards = tc.Domain(dict(reversed(WARDS.attributes)))
    one, other = tc.Policy(WARDS, secrets, **owner), tc.Policy(backwards, secrets, **owner)
    assert one.covers(other)
    assert other.covers(one)
    weaker = tc.Policy(backwards, tc.secrets.pairs([({"ward": "A", "c": ["x"]}, {"ward": "B", "c": []})]), **owner)
    assert one.covers(weaker) == (secrets.keyword != "attributes")


def test_the_order_of_attributes_does_not_choose_rows_and_which_are_public_does() -> None:
    backwards = tc.Domain(dict(reversed(TWO.attributes)))
    for secrets in (tc.secrets.attributes("a"), tc.secrets.attributes("a", "b"), tc.secrets.within(1, "a")):
        one, other = (tc.Policy(domain, secrets, person="id") for domain in (TWO, backwards))
        assert one.covers(other)
    more, less = (tc.Policy(TWO, tc.secrets.attributes(*names), person="id") for names in (("a", "b"), ("a",)))
    assert not more.covers(less)  # other rows may count: keys do not look at b where it may be a secret
    assert tc.Policy(TWO, more.secrets).covers(tc.Policy(TWO, less.secrets))


def test_the_rule_by_which_rows_are_chosen_is_part_of_a_policy_that_depends_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An account that was charged when other rows counted takes no release, unless the promise is about all rows."""

    def policies() -> dict[str, tc.Policy]:
        return {
            "some": tc.Policy(TWO, tc.secrets.within(1, "a"), person="id"),
            "presence": tc.Policy(TWO, tc.secrets.taking_part(), person="id", per_person=2),
            "all": tc.Policy(TWO, tc.secrets.everything(), presence="secret", person="id"),
            "rows": tc.Policy(TWO, tc.secrets.within(1, "a")),
        }

    now = {name: policy.fingerprint for name, policy in policies().items()}
    with tempfile.TemporaryDirectory() as folder:
        ledger = tc.Ledger(Path(folder) / "ledger.db")
        with monkeypatch.context() as patched:
            patched.setattr("tacit.policy.inclusion.CHOICE", "the smallest by content")
            before = {name: policy.fingerprint for name, policy in policies().items()}
            for name, policy in policies().items():
                ledger.grant(dataset=name, epsilon=2, policy=policy)
                ledger.charge(dataset=name, epsilon=1, policy=policy)
        assert {name for name in now if now[name] != before[name]} == {"some", "presence"}
        for name, policy in policies().items():
            if name in ("all", "rows"):
                ledger.charge(dataset=name, epsilon=1, policy=policy)
                continue
            with pytest.raises(tc.LedgerError, match="can no longer be read as that policy"):
                ledger.charge(dataset=name, epsilon=1, policy=policy)
            assert ledger.remaining(dataset=name) == 1
