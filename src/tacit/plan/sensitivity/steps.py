"""The largest step: how far one person can move the answers of a query along a secret edge.

Guarantee   For every edge hidden -> cover of the policy and every data set, the answers rise by at most `up` each and
            fall by at most `down` each; all changes together are at most `l1` (sum), `l2` (root of the sum of
            squares), and (sum of falls, sum of rises) lies below the hull of `profiles`. Without knowledge these
            are the exact maxima, except for very many listed ranges; with knowledge they are a proven bound
            (`plan/sensitivity/coupling.py`). `exact` says which.
Assumes     Each person owns one record of the declared domain, or at most `per_person` of them; the policy's edges are
            as written.
Why         Where a person owns several rows, neighbours differ in at most `per_person` of them, each moving along an
            edge, coming or leaving. Change these rows one after the other: each time the answers change by the step of
            one row, whatever the other rows are, so that all changes together are at most as many steps. Where every
            row counts this is attained by equal rows. Every bag of records on the way is one that the step of one row
            is about; where an edge changes what is known, it need not agree with that, and is refused.
            Along an edge a query sees only its predicate's atoms, whether cells differ, and distances on one line. So
            records are gathered into classes that no predicate tells apart, and every combination of classes is
            tried once; within a combination the extremes are attained at the ends of intervals.
Reference   Blowfish privacy (policy-specific global sensitivity); asymmetric differential privacy (P-sensitivity).
Checked by  tests/property/test_steps.py, tests/property/test_coupling.py, tests/golden/test_published_steps.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tacit.amounts import shown
from tacit.drawing import Held
from tacit.errors import PlanError, sealed
from tacit.plan.measure.measured import Responding
from tacit.plan.question import Query, resolve
from tacit.plan.sensitivity.listed import listed_moves, listed_presence
from tacit.plan.sensitivity.responses import CellTables, ItemRoom, Jump, LineMove, RecordMove, Response, Watched
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Same
from tacit.policy.edges.shapes import Absence, EdgeShape, Metric, axes_of, cells, holds
from tacit.policy.knowledge import Known
from tacit.policy.person_numbers import NumberPolicy
from tacit.policy.policy import Policy, as_policy
from tacit.policy.where import Test

MOST_COMBINATIONS: Final = 500_000
Profile = tuple[int, int]


@dataclass(frozen=True, repr=False)
class LargestStep(Held):
    """How far the answers can move along a secret edge. `profiles` are the extreme (sum of falls, sum of rises).

    `why` has a reason for each secret; `unmoved_reasons` lists those of secrets that move nothing.
    """

    up: int
    down: int
    l1: int
    square: int
    profiles: tuple[Profile, ...]
    why: tuple[str, ...] = ()
    exact: bool = True
    unmoved_reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        bound = "" if self.exact else " (proven bound)"
        return "\n  because ".join([f"up {self.up}, down {self.down}, in all {self.l1}{bound}", *self.why])

    @property
    def l2(self) -> float:
        """The largest Euclidean length of a step."""
        return math.sqrt(self.square)

    @property
    def linf(self) -> int:
        """The largest change of a single answer."""
        return max(self.up, self.down)

    @property
    def monotone(self) -> str | None:
        """`falling`, `rising` or `constant` where all answers only move that way along edges, else None."""
        if self.up == 0 and self.down == 0:
            return "constant"
        return "falling" if self.up == 0 else "rising" if self.down == 0 else None

    @property
    def largest_fall(self) -> int:
        """The largest sum of falls along an edge."""
        return max((fall for fall, _ in self.profiles), default=0)

    @property
    def largest_rise(self) -> int:
        """The largest sum of rises along an edge."""
        return max((rise for _, rise in self.profiles), default=0)

    def times(self, people: int) -> LargestStep:
        """Return the bound for that many people moving at once."""
        return replace(
            self,
            up=self.up * people,
            down=self.down * people,
            l1=self.l1 * people,
            square=self.square * people * people,
            profiles=tuple((fall * people, rise * people) for fall, rise in self.profiles),
            exact=False,
        )

    def restricted(self, chosen: int) -> LargestStep:
        """Return the bound on what an edge does to any `chosen` of the answers."""
        falls = min(chosen * self.down, self.largest_fall)
        rises = min(chosen * self.up, self.largest_rise)
        together = min(chosen * self.linf, self.l1)
        # the corners of {falls, rises, falls + rises <= together}: linear costs are largest at one of them
        corners = {(falls, min(rises, together - falls)), (min(falls, together - rises), rises)}
        return replace(
            self,
            l1=together,
            square=min(self.square, chosen * self.linf**2),
            profiles=tuple(sorted(corners)) if together else (),
            exact=False,
        )


@sealed
def largest_step(query: Any, policy: Policy) -> LargestStep:
    """Return how far one person can move the answers of a query along a secret edge of a policy.

    >>> from tacit.policy.attributes import Integers
    >>> from tacit.policy.domain import Domain
    >>> from tacit.policy.secrets import within
    >>> from tacit.plan.questions import cumulative
    >>> largest_step(cumulative("age"), Policy(Domain({"age": Integers(0, 99)}), within(5, "age"))).l1
    5
    """
    asked, policy = asked_under(query, as_policy(policy, fix="Write largest_step(query, policy): the question first."))
    return measured_step(asked.counted, policy)


def asked_under(query: Any, policy: Policy) -> tuple[Query, Policy]:
    """Return a checked question with what it counts, and the policy under which it is planned, or refuse.

    One number of each person is asked about under the policy that follows for such numbers.
    """
    asked = resolve(query, policy.domain)
    if asked.each is None:
        return asked.read_under(policy), policy
    if fact := next(touched_facts(policy), None):
        raise PlanError(
            f"must not be changed by secret edges where one number is made of a person's rows: {fact.words()}",
            key="what is known",
            given=asked.each.name,
            fix="Choose secrets that leave it alone, or leave it out of the policy.",
        )
    of_numbers = NumberPolicy(policy, asked.each)
    asked.check(of_numbers.domain)
    return asked, of_numbers


def measured_step(measured: Responding, policy: Policy) -> LargestStep:
    """Return how far one person can move these numbers along a secret edge of a policy."""
    check_rows_move_alone(policy)
    return of_all_rows(step_of_one_row(measured, policy), measured, policy)


def check_rows_move_alone(policy: Policy) -> None:
    """Refuse people with several rows where an edge changes what is known.

    Rows are changed one after the other, and in between the data might contradict what is known. A fact that no edge
    changes holds all along, whether it counts people or rows: no row leaves the cells that it tells apart.
    """
    fact = next(touched_facts(policy), None) if policy.per_person > 1 else None
    if fact is not None:
        raise PlanError(
            f"must not be changed by secret edges where a person owns several rows: {fact.words()}",
            key="what is known",
            given=f"per_person={policy.per_person}",
            fix="Set per_person to 1, or choose secrets that leave it alone.",
        )


def step_of_one_row(watched: Watched, policy: Policy) -> LargestStep:
    """Return how far a person with one row can move these numbers along a secret edge of a policy."""
    if not policy.known:
        return free_step(watched, policy)
    from tacit.plan.sensitivity.coupling import coupled_step

    return coupled_step(watched, policy)


def of_all_rows(one: LargestStep, measured: Responding, policy: Policy) -> LargestStep:
    """Return the step of a person who owns up to `per_person` rows, each of which may move along an edge.

    Where people are counted once in each cell, no count moves by more than one, however many rows move.
    """
    if policy.per_person == 1:
        return one
    many = one.times(policy.per_person)
    why = (*one.why, f"one person owns up to {policy.per_person} rows, and each may move")
    if measured.counts_rows:
        return replace(many, why=why)
    answers = measured.size(policy.domain)
    l1 = min(many.l1, answers)
    return replace(
        many,
        up=min(many.up, 1),
        down=min(many.down, 1),
        l1=l1,
        square=min(many.square, l1),
        profiles=outermost(_of_single_moves(many.profiles, answers)),
        why=why,
    )


def _of_single_moves(profiles: Sequence[Profile], answers: int) -> set[Profile]:
    """Return corners around all changes of rows that move by these profiles, where no answer moves by more than one.

    Rows may take different edges, so that any mixture of profiles occurs, and costs are linear in falls and rises: the
    dearest change is a corner of what holds all of them. Falls and rises together are at most so many as the answers.
    Where that cuts mixtures off, all that is kept of the profiles is how far they reach.
    """
    if all(fall + rise <= answers for fall, rise in profiles):
        return set(profiles)
    fall, rise = (min(max(reach), answers) for reach in zip(*profiles, strict=True))
    return {(fall, min(rise, answers - fall)), (min(fall, answers - rise), rise)}


def free_step(query: Watched, policy: Policy) -> LargestStep:
    """Return the largest step where nothing is known about the data set: exact but for very many listed ranges."""
    why, unmoved = [], []
    found: list[Jump] = []
    hidden = False  # whether a family has said that taking part is secret
    for family in policy.secrets.families():
        jumps = [jump for shape in family.shapes(policy.domain) for jump in shape_jumps(query, policy.domain, shape)]
        absences = family.absences(policy.domain)
        jumps += [jump for absence in absences for jump in presence_jumps(query, policy.domain, absence)]
        hidden |= Absence() in absences
        found += jumps
        step = gather(jumps)
        down, up, together = (in_data(size, query, policy.domain) for size in (step.down, step.up, step.l1))
        moves = f"falls by up to {down}, rises by up to {up}, {together} in all" if step.l1 else "never moves"
        why.append(f"{family.words(policy.domain)} -> {moves}")
        unmoved += [] if step.l1 else why[-1:]
    if policy.presence == "secret" and not hidden:
        jumps = list(presence_jumps(query, policy.domain, Absence()))
        found += jumps
        step = gather(jumps)
        why.append(f"taking part is secret -> moves by up to {in_data(step.l1, query, policy.domain)} in all")
    return replace(gather(found, tuple(why)), unmoved_reasons=tuple(unmoved))


def is_touched(fact: Known, policy: Policy) -> bool:
    """Say whether some secret edge of a policy changes what is known."""
    if fact.is_size:
        return bool(policy.absences)
    return free_step(CellTables((fact.histogram,), fact.picked), policy).l1 > 0


def touched_facts(policy: Policy) -> Iterator[Known]:
    """Go through what is known and some secret edge changes."""
    return (fact for fact in policy.known if is_touched(fact, policy))


def couples_people(policy: Policy) -> bool:
    """Say whether others must have moved where somebody moves along some secret edge, by what is known."""
    return any(True for _ in touched_facts(policy))


def in_data(size: int, query: Watched, domain: Domain) -> str:
    """Return a size in the units of the data, in words; steps are counted in whole units."""
    return shown(size * query.unit(domain))


def gather(jumps: Iterable[Jump], why: tuple[str, ...] = ()) -> LargestStep:
    """Return the largest of many jumps."""
    unique = set(jumps)
    if not unique:
        return LargestStep(0, 0, 0, 0, (), why, exact=True)
    return LargestStep(
        up=max(jump.up for jump in unique),
        down=max(jump.down for jump in unique),
        l1=max(jump.rise + jump.fall for jump in unique),
        square=max(jump.square for jump in unique),
        profiles=outermost({(jump.fall, jump.rise) for jump in unique}),
        why=why,
        exact=not any(jump.bound for jump in unique),
    )


def outermost(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Keep the pairs that no other one dominates, the largest first; of zeros alone, none."""
    kept: list[tuple[int, int]] = []
    for first, second in sorted(pairs, reverse=True):
        if (first, second) != (0, 0) and (not kept or second > kept[-1][1]):
            kept.append((first, second))
    return tuple(kept)


class Restriction(NamedTuple):
    """The records that moves are restricted to, at both ends. `tests` are the predicates that `accepts` looks at.

    `cell` has the only class that is accepted on some axes.
    """

    accepts: Callable[[dict[str, Intervals]], bool]
    tests: Sequence[Test] = ()
    cell: Mapping[str, Intervals] = MappingProxyType({})


UNRESTRICTED: Final = Restriction(lambda _: True)


def presence_jumps(
    query: Watched, domain: Domain, absence: Absence, only: Restriction = UNRESTRICTED
) -> Iterator[Jump]:
    """Go through what somebody's leaving or joining the data does."""
    if query.listed:
        yield from listed_presence(query, domain, absence, only)
        return
    seen = query.response(domain)
    test = query.where.compile(domain) if query.where is not None else None
    split = _split(seen, domain, [test, absence.only_from, *only.tests])
    _check_combinations((len(parts) for _, parts in split.values()), query)
    axes = [axis for axis, _ in split.values()]
    for cell in cells(split):
        if not (holds(test, cell) and only.accepts(cell)):
            continue
        room = _room(seen, domain, EdgeShape(), axes, cell, cell, [])
        if room is None:
            continue
        ends = cell[seen.line.name] if seen.line is not None else Intervals()
        places = None if seen.weight is None else cell[seen.weight.name]
        weight = None if places is None else LineMove(Same(), places, places)
        move = RecordMove(hidden=ends, cover=ends, items=room, weight=weight)
        if holds(absence.only_from, cell):
            yield from seen.left(move)
        if absence.joins:
            yield from seen.entered(move)


@dataclass(frozen=True)
class _Option:
    """One way an axis may take part in a move: from class to class, whether it changes, and at what distance."""

    hidden: Intervals
    cover: Intervals
    changes: bool
    distance: Fraction


def shape_jumps(query: Watched, domain: Domain, shape: EdgeShape, only: Restriction = UNRESTRICTED) -> Iterator[Jump]:
    """Go through what the edges of one shape do."""
    if query.listed:
        yield from listed_moves(query, domain, shape, only)
        return
    seen = query.response(domain)
    test = query.where.compile(domain) if query.where is not None else None
    split = _split(seen, domain, [test, shape.only_from, *only.tests])
    axes = [axis for axis, _ in split.values()]
    choices = [_options(axis, parts, shape, seen, domain) for axis, parts in split.values()]
    _check_combinations((len(options) for options in choices), query)
    for combination in product(*choices):
        hidden = {name: option.hidden for name, option in zip(split, combination, strict=True)}
        cover = {name: option.cover for name, option in zip(split, combination, strict=True)}
        if not (holds(shape.only_from, hidden) and only.accepts(hidden) and only.accepts(cover)):
            continue
        before, after = holds(test, hidden), holds(test, cover)
        if not before and not after:
            continue
        move = _move(seen, domain, shape, dict(zip(axes, combination, strict=True)), hidden, cover)
        if move is None:
            continue
        if before and after:
            yield from seen.moved(move)
        elif before:
            yield from seen.left(move)
        else:
            yield from seen.entered(move)


def _check_combinations(choices: Iterable[int], query: Watched) -> None:
    if math.prod(choices) > MOST_COMBINATIONS:
        raise PlanError(
            "must tell fewer classes of records apart", key="where", given=str(query), fix="Split it into two queries."
        )


def _split(seen: Response, domain: Domain, tests: list[Test | None]) -> dict[str, tuple[Axis, list[Intervals]]]:
    """Return the axes that matter, each with the classes that must be told apart."""
    split = axes_of(tests)
    watched = [axis for name in seen.cells for axis in domain.axes_of(name)]
    for axis in [*watched, *_lines(seen)]:
        split.setdefault(axis.name, (axis, [Intervals.full(axis.size)]))
    return split


def _lines(seen: Response) -> list[Axis]:
    """Return the axes whose positions are seen: one, or two, or none."""
    return [axis for axis in (seen.line, seen.weight) if axis is not None]


def _options(axis: Axis, parts: list[Intervals], shape: EdgeShape, seen: Response, domain: Domain) -> list[_Option]:
    relation = shape.relation(axis)
    is_cell = any(axis in domain.axes_of(name) for name in seen.cells)
    is_line = any(axis.name == line.name for line in _lines(seen))
    shared = shape.shares_distance(relation)
    found = []
    for hidden, cover in product(parts, repeat=2):
        differences = relation.differences(hidden, cover)
        if not differences:
            continue
        changes = differences.without(Intervals.points([0]))
        stays = 0 in differences
        least = Fraction(abs(changes.closest_to(0)) * axis.spacing) if changes and shared else Fraction(0)
        if is_line:
            # its own distance is settled last, from what the other axes leave of the budget
            found.append(_Option(hidden, cover, bool(changes), Fraction(0)))
        elif is_cell:
            # without a shared budget a change is hardly ever less visible than none, so only the change is tried
            if changes:
                found.append(_Option(hidden, cover, changes=True, distance=least))
            if stays and (shared or not changes or seen.staying_may_show_more):
                found.append(_Option(hidden, cover, changes=False, distance=Fraction(0)))
        else:
            found.append(_Option(hidden, cover, not stays, Fraction(0) if stays else least))
    return found


def _move(
    seen: Response,
    domain: Domain,
    shape: EdgeShape,
    options: dict[Axis, _Option],
    hidden: dict[str, Intervals],
    cover: dict[str, Intervals],
) -> RecordMove | None:
    """Return the move that these options make, or None if they go too far or do not fit into the set of items."""
    distances = [option.distance for option in options.values()]
    if shape.metric is not None and not shape.metric.allows(distances):
        return None
    room = _room(seen, domain, shape, list(options), hidden, cover, distances)
    if room is None:
        return None
    changed = frozenset(name for name in seen.cells for axis in domain.axes_of(name) if options[axis].changes)
    if seen.line is None:
        return RecordMove(changed=changed, items=room, shape=shape)
    found = [_line(axis, shape, distances, hidden, cover) for axis in _lines(seen)]
    if not all(line.relation.differences(line.hidden, line.cover) for line in found):
        return None
    line, *others = found
    weight = others[0] if others else None
    metric = shape.metric
    shared = metric is not None and metric.kind != "linf" and all(one.relation.shares_distance for one in found)
    if weight is not None and metric is not None and shared:
        weight = replace(weight, left=_sharing(metric, distances, *_lines(seen)))
    return RecordMove(changed, line.relation, line.hidden, line.cover, room, weight)


def _line(
    axis: Axis,
    shape: EdgeShape,
    distances: list[Fraction],
    hidden: dict[str, Intervals],
    cover: dict[str, Intervals],
) -> LineMove:
    """Return how a line may move, with what the other axes leave of a shared distance."""
    relation = shape.relation(axis)
    if shape.metric is not None:
        relation = relation.limited(shape.metric.steps_left(distances, axis.spacing))
    return LineMove(relation, hidden[axis.name], cover[axis.name])


def _sharing(metric: Metric, distances: list[Fraction], line: Axis, weight: Axis) -> Callable[[int], int]:
    """Return how far the weight's line may move where the other line moves by so many positions."""
    return lambda moved: metric.steps_left([*distances, Fraction(moved * line.spacing)], weight.spacing)


def _flags(axes: Iterable[Axis], cell: dict[str, Intervals], name: str) -> dict[int, int]:
    """Return the mentioned items of a set of items and whether each is in it."""
    return {axis.item: cell[axis.name].lowest for axis in axes if axis.attribute == name and axis.item is not None}


def _room(
    seen: Response,
    domain: Domain,
    shape: EdgeShape,
    axes: Sequence[Axis],
    hidden: dict[str, Intervals],
    cover: dict[str, Intervals],
    distances: list[Fraction],
) -> ItemRoom | None:
    """Return the room for items, or None where a record has more of the mentioned ones than it may have."""
    found = ItemRoom()
    for name in domain:
        attribute = domain[name]
        if not attribute.is_set:
            continue
        before, after = _flags(axes, hidden, name), _flags(axes, cover, name)
        if sum(before.values()) > attribute.most_items or sum(after.values()) > attribute.most_items:
            return None
        if seen.items != name:
            continue
        moves = shape.item_moves(name)
        budget = _items_left(shape.metric, distances) if shape.metric is not None else attribute.cells
        found = ItemRoom(
            flags_lost=sum(before[place] > after[place] for place in before),
            flags_gained=sum(before[place] < after[place] for place in before),
            flags_hidden=sum(before.values()),
            flags_cover=sum(after.values()),
            rest=attribute.cells - len(before),
            most=attribute.most_items,
            may_lose=attribute.cells if moves.lose else 0,
            may_gain=attribute.cells if moves.gain else 0,
            budget=budget,
            exactly=moves.exactly,
        )
    return found


def _items_left(metric: Metric, distances: list[Fraction]) -> int:
    """Return how many more items may change when the other parts of a move have these distances."""
    if metric.kind == "linf":
        return 2**62 if metric.theta >= 1 else 0
    return int((metric.limit - metric.spent(distances)) // 1)  # each item that changes adds one
