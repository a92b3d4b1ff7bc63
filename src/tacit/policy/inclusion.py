"""Whether one policy protects all that another one protects, as relations between whole data sets.

Guarantee   If `includes(stronger, weaker)`, every two data sets that are neighbours under the weaker policy are
            neighbours under the stronger one, or look the same to it. So a release under the stronger policy may be
            charged to a budget of the weaker one. If that is not proved, the answer is no.
Assumes     A data set is a multiset of rows, each with an owner: the value of the column `person`, which no secret edge
            changes. Which rows of an owner count follows from that owner's rows alone. Rows have further columns, among
            which a policy names the one by which rows are ordered (`order`) and the one that holds items (`item`).
Why         What counts of a data set under a policy, and which of these are neighbours:
            * Without `person`: of each row one record (a set of items cut down to `at_most`), or none where the domain
              drops it. Neighbours: one record moves along an edge, its owner and all other rows stay as they are;
              with presence secret, one row may also come or go (or of some people, `taking_part` with `where`: go).
            * With `person`: an owner has `per_person` slots, each with a record that counts or with nothing; with a
              set of items one slot, whose record has the items of all rows that fit, cut down to `at_most`. Neighbours:
              the rows of one owner differ, and of that owner's slots at least one changes, each of them once: its
              record moves along an edge; with presence secret, it may also empty or fill (of some people,
              `taking_part` with `where`: empty). So no more than `per_person` things happen in all: where three rows
              count, three may go or three may come, but not three go while three others come. Rows that do not count
              may differ in any way.
            * With knowledge: both data sets agree on it, and further owners (without `person`: further rows) may move
              in any way, as long as no smaller set of these moves, with an edge among them, agrees as well.
            Hence three proofs:
            (1) Same owners, same rows that count, read from the same columns, same knowledge, every edge an edge: the
            neighbours are the same pairs of what counts. With knowledge, a set of moves that cannot be split stays one
            when more moves are edges.
            (2) Without knowledge, a policy about owners under which whatever counts of one owner may become anything
            else protects whatever one owner's rows do, and so every row-level policy and every other one about the same
            owners, whatever the columns by which either chooses among these rows and from which it reads items. Where
            presence is public the number of records that count must not change either: it is the smaller one of
            `per_person` and the number of rows that fit, whichever of them count, and no edge changes that number.
            (3) Otherwise no. A row's edge is not its owner's: a row that moves lets another one of the owner count, an
            item that goes lets the next one in, and what is known of rows is not known of people. More rows that count
            (`per_person`, `at_most`) are rows about which the weaker policy promises nothing, and so are those that
            count by another `order` or are read from another `item`.
            Which rows of an owner count follows from the column `order` and from the attributes that no secret edge
            moves, by the rule of `rows/counts/row_choice.py`. So only policies with the same such column and the same
            such attributes surely let the same rows count. Under another rule other rows count, so the rule has a name,
            `CHOICE`. It is part of the fingerprint of every policy that depends on it: an account that was charged
            under another rule takes no release under this one.
Checked by  tests/property/test_inclusion.py, tests/property/test_steps.py.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Final

from tacit.policy.domain import Domain, Record, every_record
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.shapes import Absence, EdgeShape, axes_of, cells, holds
from tacit.policy.where import Test

if TYPE_CHECKING:
    from tacit.policy.policy import Policy

CHOICE: Final = "rows that fit, by order, by a key of person, public attributes and number"
SMALL: Final = 64  # records; pairs of these are looked at one by one


def includes(stronger: Policy, weaker: Policy) -> bool:
    """Say whether all neighbours under `weaker` are surely neighbours under `stronger`, or look the same to it."""
    if dict(stronger.domain) != dict(weaker.domain):  # the order of attributes does not matter
        return False
    return protects_whole_owners(stronger, weaker) or (
        _same_records_count(stronger, weaker)
        and (set(stronger.known), stronger.adversary) == (set(weaker.known), weaker.adversary)
        and _absences_within(stronger, weaker)
        and _edges_within(stronger, weaker)
    )


def protects_whole_owners(stronger: Policy, weaker: Policy) -> bool:
    """Say whether the stronger policy protects any change of all rows of one owner."""
    if stronger.person is None or weaker.person not in (None, stronger.person) or stronger.known or weaker.known:
        return False
    domain = stronger.domain
    if any(stronger.person in _columns(policy) for policy in (stronger, weaker)):  # a row might change its owner
        return False
    anything = EdgeShape(any_elsewhere=True)
    if not any(_shape_within(anything, shape, domain) for shape in stronger.shapes):
        return False
    if Absence() in stronger.absences:
        return True
    # the number of records that count stays the same
    as_many = weaker.person is None or stronger.per_person <= weaker.per_person
    return not weaker.absences and as_many


def _same_records_count(stronger: Policy, weaker: Policy) -> bool:
    if (stronger.person, stronger.per_person) != (weaker.person, weaker.per_person):
        return False
    if (stronger.order, stronger.item) != (weaker.order, weaker.item):
        return False
    return stronger.person is None or _chosen_by(stronger) == _chosen_by(weaker)


def _chosen_by(policy: Policy) -> frozenset[str]:
    """Return the public attributes, which decide which rows of an owner count; items come from all rows."""
    plain = {name for name, attribute in policy.domain.items() if not attribute.is_set}
    return frozenset(plain - policy.moved_attributes)


def _columns(policy: Policy) -> set[str]:
    found = {column for name, one in policy.domain.items() for column in one.read_from(name)}
    return found if policy.item is None else found | {policy.item}


def _absences_within(stronger: Policy, weaker: Policy) -> bool:
    if any(small.joins for small in weaker.absences) > any(large.joins for large in stronger.absences):
        return False
    leaving = [large.only_from for large in stronger.absences]
    if all(any(_is_implied(small.only_from, large) for large in leaving) for small in weaker.absences):
        return True
    if stronger.domain.size > SMALL:
        return False
    records = [dict(zip(stronger.domain, record, strict=True)) for record in every_record(stronger.domain)]
    return all(stronger.may_leave(record) for record in records if weaker.may_leave(record))


def _edges_within(stronger: Policy, weaker: Policy) -> bool:
    domain = stronger.domain
    if stronger.secrets == weaker.secrets:
        return True
    large = stronger.shapes
    # a graph has thousands of shapes; a slightly larger graph has most of them at the same index
    if all(
        any(_shape_within(small, one, domain) for one in (*large[at : at + 1], *large))
        for at, small in enumerate(weaker.shapes)
    ):
        return True
    if domain.size > SMALL:
        return False
    records = every_record(domain)
    places = [list(domain).index(name) for name in weaker.domain]

    def there(record: Record) -> Record:
        return tuple(record[place] for place in places)

    return all(
        stronger.secrets.has_edge(domain, a, b)
        for a, b in product(records, repeat=2)
        if a != b and weaker.secrets.has_edge(weaker.domain, there(a), there(b))
    )


def _shape_within(small: EdgeShape, large: EdgeShape, domain: Domain) -> bool:
    axes = [axis for name in domain for axis in domain.axes_of(name)]
    for axis in axes:
        if not small.relation(axis).within(large.relation(axis), axis.size):
            return False
    item_names = [name for name in domain if domain[name].is_set]
    if not all(small.item_moves(name).within(large.item_moves(name)) for name in item_names):
        return False
    return _distance_within(small, large, domain) and _is_implied(small.only_from, large.only_from, small)


def _distance_within(small: EdgeShape, large: EdgeShape, domain: Domain) -> bool:
    if large.metric is None:
        return True
    if small.metric is not None and small.metric.theta <= large.metric.theta:
        powers = [math.inf if metric.power is None else metric.power for metric in (small.metric, large.metric)]
        if powers[0] <= powers[1]:  # the higher the power, the shorter a distance
            return True
    farthest: list[Fraction] = []
    for name in domain:
        for axis in domain.axes_of(name):
            full = Intervals.full(axis.size)
            farthest.append(Fraction(small.relation(axis).farthest(full, full) * axis.spacing))
        attribute = domain[name]
        if attribute.is_set:
            changed = small.item_moves(name).most_changed(attribute.cells, attribute.most_items)
            farthest.extend([Fraction(changed)] if large.metric.power in (1, None) else [Fraction(1)] * changed)
    return large.metric.allows(farthest)


def _is_implied(small: Test | None, large: Test | None, start: EdgeShape | None = None) -> bool:
    """Say whether every record that satisfies `small`, and where an edge of `start` may start, satisfies `large`."""
    if large is None:
        return True
    split = axes_of([small, large])
    for cell in cells(split):
        reachable = start is None or all(
            start.relation(axis).sources(Intervals.full(axis.size)) & cell[name]
            for name, (axis, _) in split.items()
            if axis.item is None  # a set of items may hold any item before it moves
        )
        if reachable and holds(small, cell) and not holds(large, cell):
            return False
    return True
