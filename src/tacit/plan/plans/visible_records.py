"""Which records may be shown as they are: derived from the secret edges of a policy, exactly, before any row is opened.

`shown` draws: one-sided randomised response, which shows columns where they are no secret and their coin is kept.

Guarantee   Let a coin of a record be kept with probability 1 - exp(-e), and let columns be shown of a record where its
            mark is OPEN, or where it is COIN and the coin is kept. Then along every secret edge hidden -> cover, for
            every set O of outputs about one record, Pr[M(hidden) in O] <= exp(k e) * Pr[M(cover) in O], where k is how
            many of the rules go from HIDDEN to COIN along the edge (`patterns` has all combinations that an edge has),
            at most `Showing.together`. A plan's coins have its epsilon over that and over the records that a person
            moves, so that everything shown of a person costs epsilon. Nothing is promised from cover to hidden.
Assumes     A rule has one coin for each record, the coins of different rules and records are independent, and nothing
            else about a record is shown.
Why         Shown columns of a record must never become impossible along an edge: so of a record that shows them, every
            edge must leave them as they are, and lead to a record that may show them too. HIDDEN are the records from
            which some chain of edges leads to other values of the columns: the others are closed under edges. COIN are
            those that edges connect with a hidden one, in whatever direction; OPEN is the rest.
            Along an edge, a rule goes from HIDDEN to HIDDEN (nothing is shown: no loss), from HIDDEN to COIN (nothing
            is shown at hidden, and at cover with probability exp(-e): loss e), from COIN to COIN or from OPEN to OPEN
            (the same columns with the same probability: no loss). It never leaves COIN for HIDDEN, or the chain would
            go on from there, and never goes from or to OPEN, since an edge connects. Losses of independent coins add
            up. Columns that are hidden in the very same records share a rule, and with it a coin: they are shown
            together or not at all.
            Where a hidden record leaves nothing (no public key names its row), not being in the data is one more record
            that is HIDDEN: whoever must look like somebody absent is never shown.
            Records are gathered into classes that no relation and no predicate of the policy tells apart. Between
            values that are near, or in one block, an edge may begin at some of a class and not at others; the class is
            then taken as a whole, which hides more records and never fewer. All other families are exact.
            Coins are looked at for every record, whatever its mark, so that the time does not tell.
Reference   One-sided differential privacy, arXiv:1712.05888 (one-sided randomised response: the policy `records`, one
            rule); document 001 of the design, whose attributes each have a coin of their own.
Checked by  tests/property/test_showing.py, tests/statistical/test_true_records.py
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools
from tacit.errors import PlanError
from tacit.policy.attributes.attribute import Axis
from tacit.policy.describe import record_words
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Relation
from tacit.policy.edges.shapes import Absence, EdgeShape, classes
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.where import Test

OPEN: Final = 0
COIN: Final = 1
HIDDEN: Final = 2
MOST_CLASSES: Final = 2_000_000  # combinations of one class for each axis
MOST_WORK: Final = 200_000_000  # the same, times shapes of edges
Marks = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Rule:
    """In which records some columns are hidden, in which a coin decides, and in which they are open.

    `marks` has an axis for each of `axes`, and on it a place for each of the classes of its positions.
    """

    names: tuple[str, ...]
    axes: tuple[Axis, ...]
    classes: tuple[tuple[Intervals, ...], ...]
    marks: Marks

    @property
    def tosses(self) -> bool:
        """Whether a coin decides about some records; else every record is open, or hidden, for everybody to know."""
        return bool((self.marks == COIN).any())

    @property
    def shows(self) -> bool:
        """Whether some record may be shown."""
        return bool((self.marks != HIDDEN).any())

    def hidden_positions(self) -> frozenset[int] | None:
        """Return the positions that are hidden, if one axis decides and all others have the same chance; else None."""
        is_mixed = self.tosses and bool((self.marks == OPEN).any())
        if len(self.axes) != 1 or is_mixed:
            return None
        hidden = [part for part, mark in zip(self.classes[0], self.marks.tolist(), strict=True) if mark == HIDDEN]
        return frozenset(at for part in hidden for low, high in part.parts for at in range(low, high + 1))

    @cached_property
    def digest(self) -> str:
        """A short name for what is hidden, whatever the columns are called that share it."""
        said = [(axis.name, axis.size, [part.parts for part in parts]) for axis, parts in self._split]
        return hashlib.sha256(repr((said, self.marks.shape)).encode() + self.marks.tobytes()).hexdigest()[:32]

    @property
    def _split(self) -> list[tuple[Axis, tuple[Intervals, ...]]]:
        return list(zip(self.axes, self.classes, strict=True))

    def of_positions(self, positions: Callable[[Axis], npt.NDArray[Any]], rows: int) -> Marks:
        """Return the mark of each row, from the positions of its cells on an axis."""
        at: tuple[Any, ...] = tuple(_class_numbers(parts, axis.size, positions(axis)) for axis, parts in self._split)
        return np.asarray(self.marks[at]) if at else np.full(rows, self.marks[()], dtype=np.uint8)

    def of_record(self, places: dict[str, int]) -> int:
        """Return the mark of one record, by its positions on the axes."""
        at = [
            next(number for number, part in enumerate(parts) if places[axis.name] in part)
            for axis, parts in self._split
        ]
        return int(self.marks[tuple(at)])


def _class_numbers(parts: Sequence[Intervals], size: int, positions: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return which class each position is in: by a table, or where the axis is long by its intervals."""
    if size <= 2**16:
        table = np.zeros(size, dtype=np.min_scalar_type(len(parts)))
        for number, part in enumerate(parts):
            for low, high in part:
                table[low : high + 1] = number
        return np.asarray(table[positions])
    runs = sorted((low, number) for number, part in enumerate(parts) for low, _ in part)
    starts, numbers = (np.array(column, dtype=np.int64) for column in zip(*runs, strict=True))
    return np.asarray(numbers[np.searchsorted(starts, positions.astype(np.int64), side="right") - 1])


@dataclass(frozen=True, eq=False)
class Showing:
    """What may be shown of records: the rules of their columns, and which of them an edge changes together.

    `rules` are about the columns that some edge changes; all others are `public`. A pattern is a set of rules, by
    number, that go from hidden to shown along one edge; those within another are left out. Where it `is_whole`, a
    record shows all of its columns or leaves nothing at all.
    """

    rules: tuple[Rule, ...]
    public: tuple[str, ...]
    patterns: tuple[frozenset[int], ...]
    is_whole: bool

    @classmethod
    def nothing(cls, names: tuple[str, ...]) -> Showing:
        """Return that no record shows any of these columns."""
        return cls((Rule(names, (), (), np.array(HIDDEN, dtype=np.uint8)),), (), (), is_whole=True)

    @property
    def together(self) -> int:
        """How many coins at most tell one edge: what a cost is shared between."""
        return max((len(pattern) for pattern in self.patterns), default=0)


def shown(rule: Rule, marks: Marks, coins: Callable[[int], Bools]) -> Bools:
    """Return which rows show the columns of a rule; `coins` returns so many of them, one for each row."""
    if not rule.tosses:
        return np.asarray(marks == OPEN)
    kept = coins(len(marks))
    return np.asarray((marks == OPEN) | ((marks == COIN) & kept))


@lru_cache(maxsize=64)
def showing(columns: tuple[str, ...], policy: Policy, *, keyed: bool) -> Showing:
    """Return what may be shown: each column by itself where a public key names the row, else all of them at once.

    Raises:
        PlanError: If no record may show a column, with an edge that forbids it.
    """
    edges = _edges_of(policy)
    gone, joins = edges.absent(policy.absences) if not keyed else (edges.nobody(), False)
    hidden = {name: edges.closed(edges.changing(name) | gone) for name in columns}
    if not keyed:
        everything: Bools = np.asarray(np.logical_or.reduce(list(hidden.values())))
        hidden = dict.fromkeys(columns, everything)
    groups: dict[bytes, list[str]] = {}
    for name, marks in hidden.items():
        if marks.any():
            groups.setdefault(marks.tobytes(), []).append(name)
    rules, found = [], []
    for names in groups.values():
        marks = hidden[names[0]]
        if marks.all():
            raise _nothing_to_show(names, policy, edges, keyed=keyed)
        connected = np.ones_like(marks) if joins else edges.connected(marks)
        rules.append(edges.rule(tuple(names), np.where(marks, HIDDEN, np.where(connected, COIN, OPEN))))
        found.append(marks)
    patterns = edges.patterns(found)
    if joins:  # whoever is not there may look like anybody who is shown
        patterns |= {frozenset(range(len(rules)))}
    largest = [one for one in patterns if one and not any(one < other for other in patterns)]
    in_order = sorted(largest, key=sorted)
    public = tuple(name for name in columns if not hidden[name].any())
    return Showing(tuple(rules), public, tuple(in_order), is_whole=not keyed)


def changing_edge(name: str, policy: Policy) -> str:
    """Return in words a secret edge that changes an attribute; nothing if there is none."""
    edges = _edges_of(policy)
    return edges.witness(name) if edges.changing(name).any() else ""


def changes(test: Test, policy: Policy) -> bool:
    """Say whether a secret edge may lead from a record that a predicate picks to one that it does not, or back."""
    return _Edges(policy, test).crossing(test)


def tells_presence(policy: Policy) -> bool:
    """Say whether somebody must look as if they were not there, or the other way round."""
    gone, joins = _edges_of(policy).absent(policy.absences)
    return joins or bool(gone.any())


@lru_cache(maxsize=16)
def _edges_of(policy: Policy) -> _Edges:
    return _Edges(policy)


def _nothing_to_show(names: Sequence[str], policy: Policy, edges: _Edges, *, keyed: bool) -> PlanError:
    edge = next(filter(None, map(edges.witness, names)), "")
    if not edge and not keyed and (record := edges.leaver(policy.absences)) is not None:
        edge = " -> ".join(record_words(policy.domain, side) for side in (record, ABSENT))
    return PlanError(
        f"has no record that may be shown: a chain of secret edges leads from each to another value ({edge})",
        key=f"true_records: {', '.join(names)}",
        fix="Leave the column out, or let the policy say whose value is no secret: records(where), or `where` beside "
        "a family.",
    )


class _Edges:
    """The secret edges between classes of records, an array axis for each axis of the domain that matters.

    Classes are told apart by the policy, and by what a predicate has `asked`.
    """

    def __init__(self, policy: Policy, asked: Test | None = None) -> None:
        self._policy, self._domain = policy, policy.domain
        shapes = policy.shapes
        axes = [axis for name in self._domain for axis in self._domain.axes_of(name)]
        sets = {axis.name: [*_told_apart(axis, shapes, policy.absences), *_atoms(asked, axis)] for axis in axes}
        self._axes = tuple(
            axis for axis in axes if any(shape.relation(axis).can_move for shape in shapes) or sets[axis.name]
        )
        self._classes = tuple(tuple(classes(axis.size, sets[axis.name])) for axis in self._axes)
        self._shape = tuple(len(parts) for parts in self._classes)
        many = math.prod(self._shape)
        if many > MOST_CLASSES or many * max(1, len(shapes)) > MOST_WORK:
            rule = f"tells more than {MOST_CLASSES:,} classes of records apart, or has too many edges for them"
            fix = "Declare fewer attributes, or write its secrets with fewer values."
            raise PlanError(rule, key="true_records: policy", fix=fix)
        self._moves = [_ClassMoves(shape, self._axes, self._classes) for shape in shapes]

    def nobody(self) -> Bools:
        """Return no record."""
        return np.zeros(self._shape, dtype=np.bool_)

    def changing(self, name: str) -> Bools:
        """Return the records from which an edge leads to another value of an attribute."""
        own = {axis.name for axis in self._domain.axes_of(name)}
        found = self.nobody()
        for moves in self._moves:
            found |= moves.changing(own)
        return found

    def crossing(self, test: Test) -> bool:
        """Say whether an edge leads into what a predicate picks, or out of it; its sets must tell classes apart."""
        picked = _holding(test, self._axes, self._classes)
        return any(
            bool(((moves.after(picked) & ~picked) | (moves.after(~picked) & picked)).any()) for moves in self._moves
        )

    def absent(self, absences: Iterable[Absence]) -> tuple[Bools, bool]:
        """Return the records of those who must look absent, and whether somebody absent must look like anybody."""
        gone, joins = self.nobody(), False
        for absence in absences:
            gone |= _holding(absence.only_from, self._axes, self._classes)
            joins |= absence.joins
        return gone, joins

    def leaver(self, absences: Iterable[Absence]) -> Any:
        """Return a record of somebody who must look as if they were not there; None if there is none."""
        gone, _ = self.absent(absences)
        return self._record(self._lowest(gone)) if gone.any() else None

    def closed(self, marked: Bools) -> Bools:
        """Return the records from which a chain of edges leads to one of these."""
        return _until_it_stays(marked, lambda found: [moves.before(found) for moves in self._moves])

    def connected(self, marked: Bools) -> Bools:
        """Return the records that edges connect with one of these, in whatever direction."""
        return _until_it_stays(
            marked, lambda found: [one for moves in self._moves for one in (moves.before(found), moves.after(found))]
        )

    def patterns(self, hidden: Sequence[Bools]) -> set[frozenset[int]]:
        """Return which of these go from hidden to not hidden along an edge, for all edges."""
        if not hidden:
            return set()
        state = np.zeros(self._shape, dtype=np.int64)
        for number, marks in enumerate(hidden):
            state |= marks.astype(np.int64) << number
        found = set()
        for start in np.unique(state).tolist():
            reached = self.nobody()
            for moves in self._moves:
                reached |= moves.after(state == start)
            for end in np.unique(state[reached]).tolist():
                found.add(frozenset(number for number in range(len(hidden)) if start & ~end & (1 << number)))
        return found

    def rule(self, names: tuple[str, ...], marks: npt.NDArray[Any]) -> Rule:
        """Return a rule, without the axes that it does not look at."""
        told = [at for at in range(marks.ndim) if marks.shape[at] > 1 and (marks != marks.take([0], axis=at)).any()]
        kept = marks[tuple(slice(None) if at in told else 0 for at in range(marks.ndim))].astype(np.uint8)
        kept.flags.writeable = False
        return Rule(names, tuple(self._axes[at] for at in told), tuple(self._classes[at] for at in told), kept)

    # ---- an edge, to be shown ----

    def witness(self, name: str) -> str:
        """Return in words an edge that changes an attribute; nothing if there is none."""
        own = {axis.name for axis in self._domain.axes_of(name)}
        for moves in self._moves:
            found = moves.changing(own)
            if found.any():
                hidden = self._lowest(found)
                sides = [self._record(hidden), self._record(moves.moved(hidden, own))]
                names = [one for one, a, b in zip(self._domain, *sides, strict=True) if a != b]
                return " -> ".join(record_words(self._domain, side, names) for side in sides)
        return ""

    def _lowest(self, marked: Bools) -> dict[str, int]:
        first = np.unravel_index(int(np.argmax(marked)), marked.shape) if marked.ndim else ()
        return {axis.name: parts[at].lowest for axis, parts, at in zip(self._axes, self._classes, first, strict=True)}

    def _record(self, places: dict[str, int]) -> Any:
        values = {}
        for name, attribute in self._domain.items():
            parts = {axis: Intervals.points([places.get(axis.name, 0)]) for axis in self._domain.axes_of(name)}
            values[name] = attribute.moved_into(name, attribute.usual(), parts) if parts else attribute.usual()
        return self._domain.record(values)


class _ClassMoves:
    """The edges of one shape: for each axis which class may move to which, and at which records an edge may begin."""

    def __init__(self, shape: EdgeShape, axes: Sequence[Axis], split: Sequence[tuple[Intervals, ...]]) -> None:
        self._axes, self._classes = axes, split
        self._relations = [shape.relation(axis) for axis in axes]
        self._tables = [
            _allowed(relation, parts, axis.size)
            for relation, parts, axis in zip(self._relations, split, axes, strict=True)
        ]
        begins = _holding(shape.only_from, axes, split)
        for at, table in enumerate(self._tables):
            begins = begins & _along(np.asarray(table.any(axis=1)), at, begins.ndim)
        self._begins = begins

    def changing(self, own: set[str]) -> Bools:
        """Return the records at which an edge begins that changes one of these axes."""
        found = np.zeros_like(self._begins)
        for at, (axis, relation, parts) in enumerate(zip(self._axes, self._relations, self._classes, strict=True)):
            if axis.name in own:
                moves = np.array([_other(relation, part.lowest, axis.size) is not None for part in parts])
                found |= self._begins & _along(moves, at, found.ndim)
        return found

    def before(self, cover: Bools) -> Bools:
        """Return the records from which an edge leads to one of these."""
        for at, table in enumerate(self._tables):
            cover = _through(table, cover, at)
        return np.asarray(self._begins & cover)

    def after(self, hidden: Bools) -> Bools:
        """Return the records to which an edge leads from one of these."""
        reached = self._begins & hidden
        for at, table in enumerate(self._tables):
            reached = _through(table.T, reached, at)
        return reached

    def moved(self, hidden: dict[str, int], own: set[str]) -> dict[str, int]:
        """Return where an edge leads that changes one of these axes, and others as little as it can."""
        found, is_changed = dict(hidden), False
        for axis, relation in zip(self._axes, self._relations, strict=True):
            here = hidden[axis.name]
            other = _other(relation, here, axis.size)
            if axis.name in own and other is not None and not is_changed:
                found[axis.name], is_changed = other, True
            elif not relation.allows(here, here):
                found[axis.name] = here if other is None else other
        return found


def _told_apart(axis: Axis, shapes: Iterable[EdgeShape], absences: Iterable[Absence]) -> Iterable[Intervals]:
    """Yield the sets of positions that make a difference to where edges begin and where they lead."""
    for shape in shapes:
        yield from _atoms(shape.only_from, axis)
        yield from shape.relation(axis).told_apart(axis.size)
    for absence in absences:
        yield from _atoms(absence.only_from, axis)


def _atoms(test: Test | None, axis: Axis) -> Iterable[Intervals]:
    return (positions for asked, positions in (() if test is None else test.atoms) if asked.name == axis.name)


def _holding(test: Test | None, axes: Sequence[Axis], split: Sequence[tuple[Intervals, ...]]) -> Bools:
    """Return the classes of records that a predicate picks."""
    shape = tuple(len(parts) for parts in split)
    if test is None:
        return np.ones(shape, dtype=np.bool_)
    places = {axis.name: at for at, axis in enumerate(axes)}

    def atom(axis: Axis, positions: Intervals) -> Bools:
        at = places[axis.name]
        inside = np.array([part.lowest in positions for part in split[at]])
        return np.broadcast_to(_along(inside, at, len(shape)), shape)

    return np.asarray(test.holds(atom, np.logical_not), dtype=np.bool_)


def _allowed(relation: Relation, parts: Sequence[Intervals], size: int) -> Bools:
    """Return which class may move to which: some position of the one to some of the other."""
    whole = Intervals.full(size)
    targets = [relation.targets(part) & whole for part in parts]
    return np.array([[bool(found & part) for part in parts] for found in targets], dtype=np.bool_)


def _other(relation: Relation, here: int, size: int) -> int | None:
    """Return another position that one may move to, the nearest of them; None if there is none."""
    others = (relation.targets(Intervals.points([here])) & Intervals.full(size)).without(Intervals.points([here]))
    return others.closest_to(here) if others else None


def _along(line: npt.NDArray[Any], at: int, axes: int) -> Bools:
    """Return a line of answers as an array of so many axes, of which it is the one with this number."""
    return np.asarray(line.reshape(tuple(-1 if axis == at else 1 for axis in range(axes))), dtype=np.bool_)


def _through(table: Bools, marked: Bools, at: int) -> Bools:
    """Return the classes of an axis from which the table leads to something that is marked."""
    if table.all():
        return np.broadcast_to(marked.any(axis=at, keepdims=True), marked.shape)
    if (table == np.eye(len(table), dtype=np.bool_)).all():
        return marked
    reached = np.tensordot(table.astype(np.float32), marked.astype(np.float32), axes=(1, at)) > 0
    return np.moveaxis(reached, 0, at)


def _until_it_stays(marked: Bools, more: Callable[[Bools], list[Bools]]) -> Bools:
    found = marked
    while True:
        larger = np.logical_or.reduce([found, *more(found)])
        if (larger == found).all():
            return np.asarray(found)
        found = larger
