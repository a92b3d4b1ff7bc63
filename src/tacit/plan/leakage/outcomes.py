"""What a coalition learns from all outcomes of its lines: information on average, and how sure the surest makes it.

Guarantee   `JointLimit.at(u)` is the mutual information between the targets, all of them together, and everything that
            a coalition sees, in nats, by going through all outcomes. Where `targets_for` has put other targets in the
            place of those asked for, it is never below what was asked for. `safe_terms` are convex terms whose sum is
            never below it. `PosteriorLimit.at(u)` is the largest probability that one of the targets is sensitive,
            given any outcome that the coalition could see (each attribute shown with its value, or not). Both rise
            (weakly) with each release probability.
Assumes     Each line tosses its own coins: given all attributes, what is seen on one line is independent of the others.
            For posteriors the dependence is the true one, and values count, whatever the measure.
Why         Let A be the targets, X what is shown, Y what is seen of it: Y_in of attributes that are targets, Y_out of
            the others. Given A the two are independent, so I(A; Y) = I(A; Y_out) + H(Y_in | Y_out) - H(Y_in | A), and
            the last is a sum over attributes of the entropy of a coin where the value is not sensitive.
            Going through outcomes: the joint of attributes is mapped to that of outcomes, one attribute after the
            other. Lines that show the same attribute hide it with the product of their chances.
            Y is made from X by coins, so I(A; Y) <= I(X; Y), and the two are equal where all that is shown is a
            target: then targets that are not shown need not be looked at.
            In several release probabilities the information is not convex: two copies of one attribute make it
            bend the other way. But let Y_1 .. Y_k be what is seen, in any order. By the chain rule,
            I(A; Y_1 .. Y_k) = sum I(A; Y_t | Y_<t), and I(A; Y_t | Y_<t) <= I(A, Y_<t; Y_t) <= I(A, X_<t; Y_t), since
            Y_<t is made from X_<t by coins of its own; and that is at most I(X_t; Y_t). Each of these is an
            information about what one line shows: convex in its release probability alone. For attributes whose
            exclusive or is the target, the last one counts in full, as it must.
            In each release probability by itself the joint information is convex and rises, since the channel is
            affine in it, and a channel with less noise shows more (data processing).
            Posteriors: fix what is seen of all attributes but one, shown with probability u. Without looking at that
            one, the probability of the target is a mean over its outcomes, so that the largest over them is no less. A
            value that is shown gives a probability that does not depend on u. Nothing shown gives (a - b u) /
            (c - d u), which rises or falls in u throughout, and at u = 0 is that mean. Where it falls, it is below the
            mean, so that some value is above it and decides; where it rises, so does the largest. So it rises in u
            either way, with a jump at 0, where values begin to be shown. Outcomes that cannot happen do not count.
            Networks with more outcomes (days, households): a few attributes are bounded by what is seen around them
            and a border that is known (`dependence/nearby.py`). For many together, let W_t be some of what was shown
            before t. With targets X that are shown, I(X; Y) = sum H(Y_t | Y_<t) - H(Y_t | X_t), and this is at most
            the sum of H(Y_t | Y_W) - H(Y_t | X_t), which are differences of joint informations of W with t, and of W.
Reference   Cover and Thomas, Elements of Information Theory, Theorems 2.5.2 and 2.8.1. Lee and Smith, Privacy Leakage
            over Dependent Attributes in One-Sided Differential Privacy, Theorems 1-4.
Checked by  tests/unit/plan/test_leakage_terms.py, tests/unit/plan/test_leakage_posterior.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Floats
from tacit.errors import PlanError
from tacit.plan.leakage.informations import NOTHING, Mask, MeasuredTables, Term

MOST_OUTCOMES = 2**20  # cells of the joint of targets and outcomes
MOST_AROUND = 2**12  # the same around one target, where there are more: a millisecond
MOST_KNOWN = 2**14  # cells of one convex term
_AT_ONCE = 2**22  # cells of all points that are evaluated together, for information
_AT_ONCE_SURE = 2**20  # the same for posteriors

ShownBy = Sequence[tuple[str, tuple[int, ...]]]
"""Attributes that a coalition sees, each with the lines that show it."""


@dataclass(frozen=True)
class SeenValues:
    """How an attribute is seen: which values never are, and on which lines."""

    sensitive: Mask
    lines: tuple[int, ...]
    known: bool = False  # shown for certain, whatever it is

    @property
    def outcomes(self) -> int:
        """How many outcomes there are: each value that may be shown, and nothing."""
        return int((~self.sensitive).sum()) + 1

    def hidden(self, u: Floats) -> Floats:
        """Return the chance that no line shows a value that is not sensitive, at each row of release probabilities."""
        return np.zeros(len(u)) if self.known else np.asarray(np.prod(1.0 - u[:, self.lines], axis=1))

    def through(self, found: Floats, hidden: Floats, axis: int, *, in_full: bool = False) -> Floats:
        """Return a joint with outcomes, on its last axis, in the place of the attribute's own axis.

        `in_full` leaves out the chance that a value is shown.
        """
        values = np.moveaxis(found, axis, -1)
        shown = values[..., ~self.sensitive]
        chance = hidden.reshape((-1, *(1,) * (values.ndim - 2)))
        after = np.empty((len(hidden), *values.shape[1:-1], self.outcomes))
        after[..., -1] = values[..., self.sensitive].sum(axis=-1) + chance * shown.sum(axis=-1)
        after[..., :-1] = shown if in_full else (1.0 - chance)[..., None] * shown
        return after


@dataclass(frozen=True)
class JointLimit:
    """Targets beside what one coalition sees: an axis for each target, then one for each other attribute it sees."""

    table: Floats
    own: tuple[SeenValues | None, ...]  # how each target is seen itself; None if it is not shown
    others: tuple[SeenValues, ...]
    tells: bool = True

    @property
    def by_lines(self) -> frozenset[int]:
        """The lines that it depends on."""
        return frozenset(line for one in (*self.own, *self.others) if one for line in one.lines)

    @property
    def is_bound(self) -> bool:
        """Whether a border is taken as known."""
        return any(one.known for one in self.others)

    @property
    def cells(self) -> int:
        """How many cells the largest table has that is gone through."""
        return _cells(self.table.shape, [*self.own, *self.others])

    def renumbered(self, places: Mapping[int, int]) -> JointLimit:
        """Return the same where lines have other numbers."""
        own, others = (
            [one and replace(one, lines=tuple(places[line] for line in one.lines)) for one in each]
            for each in (self.own, self.others)
        )
        return replace(self, own=tuple(own), others=tuple(one for one in others if one))

    def at(self, u: Floats) -> Floats:
        """Return the information at each row of release probabilities."""
        return _by_parts(self._at, u, _AT_ONCE // self.cells) if self.tells else np.zeros(len(u))

    def _at(self, u: Floats) -> Floats:
        targets = self.table.shape[: len(self.own)]
        found = self.table.reshape((1, math.prod(targets), *self.table.shape[len(self.own) :]))
        for seen in self.others:
            found = seen.through(found, seen.hidden(u), axis=2)
        found = found.reshape((len(found), math.prod(targets), -1))
        total = _information(found)
        found = found.reshape((len(found), *targets, -1))
        for at, shown in enumerate(self.own):
            if shown is None:
                found = found.sum(axis=1)
                continue
            hidden = shown.hidden(u)
            found = shown.through(found, hidden, axis=1)
            law = self.table.sum(axis=tuple(axis for axis in range(self.table.ndim) if axis != at))
            total = total - law[~shown.sensitive].sum() * (_surprise(hidden) + _surprise(1.0 - hidden))
        found = found.reshape((len(found), found.shape[1], -1))
        beside = _surprise(found).sum(axis=(1, 2)) - _surprise(found.sum(axis=2)).sum(axis=1)
        return np.asarray(np.maximum(total + beside, 0.0))


def targets_for(about: Sequence[str], shown: Sequence[str], size: Callable[[str], int]) -> tuple[str, ...]:
    """Return targets for what is learned about attributes together: it is the same for these, or never less."""
    if all(name in about for name in shown):
        return tuple(name for name in about if name in shown)
    outcomes = math.prod(size(name) + (name in shown) for name in {*about, *shown})
    return tuple(about) if outcomes <= MOST_OUTCOMES else tuple(shown)


@dataclass(frozen=True)
class SummedLimit:
    """What is never below what a coalition learns: joint informations, added up, less others, up to all there is."""

    added: tuple[JointLimit, ...]
    less: tuple[JointLimit, ...]
    most: float

    @property
    def by_lines(self) -> frozenset[int]:
        """The lines that it depends on."""
        return frozenset(line for one in self.added for line in one.by_lines)

    @property
    def is_bound(self) -> bool:
        """It is one."""
        return True

    def at(self, u: Floats) -> Floats:
        """Return the bound at each row of release probabilities."""
        found = sum(one.at(u) for one in self.added) - sum(one.at(u) for one in self.less)
        return np.asarray(np.minimum(found, self.most))


def joint_limit(tables: MeasuredTables, about: Sequence[str], shown: ShownBy) -> JointLimit | SummedLimit:
    """Return attributes, taken together, beside what is shown; of a network, a bound where outcomes are too many."""
    lines, is_network = dict(shown), tables.dependence.is_network
    targets = targets_for(about, list(lines), tables.size)
    cells = _outcomes(tables, {*targets, *lines}, lines)
    is_exact = set(targets) == set(about) or set(lines) <= set(about)
    if cells <= MOST_OUTCOMES and (is_exact or not is_network):
        return _joint(tables, targets, lines)
    if not is_network:
        rule = f"must have at most {MOST_OUTCOMES:,} outcomes together with what they tell about"
        fix = "Assume smaller coalitions, merge rare values, or leave coalitions out for sums over pairs."
        raise PlanError(rule, key="coalitions", given=cells, fix=fix)
    entropy = math.inf
    if math.prod(tables.size(name) + 1 for name in about) <= MOST_AROUND:
        entropy = float(_surprise(tables.table(*about)).sum())
        with suppress(PlanError):  # too much shares a table with them
            place = tables.around(about, list(lines), MOST_AROUND)
            return _joint(tables, about, {name: lines[name] for name in place.near}, place.border)
    added, less, before = [], [], list[str]()
    for name in lines:
        before.append(name)
        place = tables.around([name], before, MOST_AROUND)
        near = {one: lines[one] for one in before if one in (*place.near, *place.border)}
        added.append(_joint(tables, list(near), near))
        near.pop(name)
        less.append(_joint(tables, list(near), near))
    return SummedLimit(tuple(added), tuple(less), entropy)


def _outcomes(tables: MeasuredTables, names: Collection[str], lines: Collection[str]) -> int:
    """Return how many cells some attributes have, as values or as outcomes of what is shown of them."""
    return math.prod(
        max(tables.size(name), int((~tables.sensitive(name)).sum()) + 1 if name in lines else 0) for name in names
    )


def _joint(
    tables: MeasuredTables, targets: Sequence[str], lines: Mapping[str, tuple[int, ...]], known: Iterable[str] = ()
) -> JointLimit:
    seen = _seen(tables, lines, known)
    names = [*targets, *(name for name in seen if name not in targets)]
    table = tables.table(*names) if names else np.ones(())
    own = tuple(seen.get(name) for name in targets)
    found = JointLimit(table, own, tuple(seen[name] for name in names[len(targets) :]))
    most = 1 + max((line for each in lines.values() for line in each), default=-1)
    # what says nothing with everything shown says nothing at all; by rounding it would say a little
    return replace(found, tells=bool(found.at(np.ones((1, most)))[0] > NOTHING))


def _seen(
    tables: MeasuredTables, lines: Mapping[str, tuple[int, ...]], known: Iterable[str] = ()
) -> dict[str, SeenValues]:
    found = {name: SeenValues(tables.sensitive(name), each) for name, each in lines.items()}
    for name in known:
        found[name] = SeenValues(np.zeros(tables.size(name), dtype=np.bool_), (), known=True)
    return found


def safe_terms(tables: MeasuredTables, about: Sequence[str], shown: ShownBy, *, limit: int) -> list[Term]:
    """Return convex terms whose sum is never below what a coalition learns about attributes together."""
    found: list[Term] = []
    before = list(targets_for(about, [name for name, _ in shown], tables.size))  # as `joint_limit` has them
    for name, lines in shown:
        for line in lines:
            # what is known of the attribute itself is all that matters for what one line shows of it
            known = [name] if name in before else list(dict.fromkeys(before))
            if math.prod(tables.size(one) for one in [*known, name]) > MOST_KNOWN:
                known = [name]
            table = tables.table(*known, name)
            found.append(Term(limit, line, table.reshape(-1, table.shape[-1]), tables.sensitive(name)))
            before.append(name)
    return found


def _by_parts(of: Callable[[Floats], Floats], u: Floats, rows: int) -> Floats:
    """Return what a function says of each row, looking at so many rows at once."""
    step = max(1, rows)
    return np.concatenate([of(u[start : start + step]) for start in range(0, len(u), step)] or [np.zeros(0)])


def _cells(sizes: Sequence[int], seen: Sequence[SeenValues | None]) -> int:
    return math.prod(max(size, one.outcomes if one else 0) for size, one in zip(sizes, seen, strict=True))


def _information(cells: Floats) -> Floats:
    """Return the information between the two last axes of joints."""
    rows, columns = cells.sum(axis=2, keepdims=True), cells.sum(axis=1, keepdims=True)
    if cells.shape[2] == 1:
        return np.zeros(len(cells))
    with np.errstate(divide="ignore", invalid="ignore"):
        # logarithms apart: a product of small probabilities would be rounded to zero
        addends = np.where(cells > 0, cells * (np.log(cells) - np.log(rows) - np.log(columns)), 0.0)
    return np.asarray(np.maximum(addends.sum(axis=(1, 2)), 0.0))


def _surprise(chances: Floats) -> Floats:
    return np.asarray(-chances * np.log(np.where(chances > 0, chances, 1.0)))


@dataclass(frozen=True)
class PosteriorLimit:
    """A target beside what one coalition sees: a table of sensitive or not, and an axis for each attribute."""

    table: Floats
    seen: tuple[SeenValues, ...]

    @property
    def by_lines(self) -> frozenset[int]:
        """The lines that it depends on."""
        return frozenset(line for one in self.seen for line in one.lines)

    @property
    def is_bound(self) -> bool:
        """Whether a border is taken as known."""
        return any(one.known for one in self.seen)

    def at(self, u: Floats) -> Floats:
        """Return the largest probability at each row of release probabilities."""
        cells = 2 * int(np.prod([max(one.outcomes, len(one.sensitive)) for one in self.seen], initial=1))
        return _by_parts(self._at, u, _AT_ONCE_SURE // cells)

    def _at(self, u: Floats) -> Floats:
        joint = np.broadcast_to(self.table, (len(u), *self.table.shape))
        for one in self.seen:
            joint = one.through(joint, one.hidden(u), axis=2)
        joint = joint.reshape((len(u), 2, -1))
        total = joint.sum(axis=1)
        return np.asarray(np.where(total > 0, joint[:, 0] / np.where(total > 0, total, 1.0), 0.0).max(axis=1))


def posterior_limits(tables: MeasuredTables, about: Iterable[str], shown: ShownBy) -> list[PosteriorLimit]:
    """Return how sure a coalition could become of each of some attributes; tables must be by value.

    Of a network, a bound where outcomes are too many.
    """
    lines = dict(shown)
    cells = int(np.prod([float(tables.size(name) + 1) for name in lines], initial=2.0))
    if cells > MOST_OUTCOMES and not tables.dependence.is_network:
        rule = f"can be planned for at most {MOST_OUTCOMES:,} outcomes of a coalition"
        fix = "Assume smaller coalitions, merge rare values, or leave posterior out of the plan."
        raise PlanError(rule, key="posterior", given=cells, fix=fix)
    found = []
    for target in about:
        seen = _seen(tables, lines)
        if cells > MOST_OUTCOMES:
            place = tables.around([target], list(lines), MOST_AROUND)
            seen = _seen(tables, {name: lines[name] for name in place.near}, place.border)
        table, hidden = tables.table(target, *seen), tables.sensitive(target)
        both = np.stack([table[hidden].sum(axis=0), table[~hidden].sum(axis=0)])
        found.append(PosteriorLimit(both, tuple(seen.values())))
    return found
