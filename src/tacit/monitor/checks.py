"""What a monitor refuses before it is begun: numbers out of range, unknown places, policies that it cannot keep.

Whether counts can only fall along secret edges, so that one-sided noise hides a visit, is derived from the policy
(`plan/sensitivity/steps.py`, `plan/sensitivity/moves.py`), never declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from operator import index
from pathlib import Path
from typing import Any, Final

import numpy as np

from tacit.amounts import shown
from tacit.errors import PlanError, PolicyError, word_or_kind
from tacit.ledger.ledger import Ledger
from tacit.monitor.events import EventColumns
from tacit.monitor.history import Places, position_of
from tacit.noise.draws import LARGEST_SCALE, SMALLEST_SCALE
from tacit.plan.questions import Marginals, count, histogram
from tacit.plan.sensitivity.moves import directions
from tacit.plan.sensitivity.steps import LargestStep, largest_step, touched_facts
from tacit.policy.attributes import Attribute
from tacit.policy.domain import Domain
from tacit.policy.edges.relations import Same
from tacit.policy.edges.shapes import STAY_ITEMS, EdgeShape
from tacit.policy.policy import Policy, as_policy
from tacit.policy.where import col

LARGEST: Final = 10**12  # of thresholds and windows: far beyond use, well within 64 bits
_ONE_WAY: Final = "tc.secrets.values({'visited': [1]})"


def whole_number(value: Any, key: str, *, low: int = 1, fix: str) -> int:
    """Return a whole number in range, or refuse."""
    try:
        found = int(index(value))  # a plain one, whatever subclass it was
    except TypeError:
        found = low - 1
    if isinstance(value, bool) or not low <= found <= LARGEST:
        raise PlanError(f"must be a whole number from {low} to 10^12", key=key, given=word_or_kind(value), fix=fix)
    return found


def checked_threshold(threshold: Any) -> int:
    """Return a threshold, or refuse."""
    return whole_number(threshold, "threshold", fix="With 1, only a place without visits can be called safe.")


def column_name(name: Any, key: str) -> str | None:
    """Return the name of a column, or None, or refuse."""
    if name is not None and (not isinstance(name, str) or not name):
        given = word_or_kind(name)
        raise PlanError("must be the name of a column", key=key, given=given, fix="Give its name as a text.")
    return name


def check_policy(policy: Any) -> None:
    """Refuse what is no policy, and edges that change what is known: whoever makes up for it moves in any way."""
    policy = as_policy(policy)
    policy.check_open("a monitor")
    for fact in touched_facts(policy):
        rule = "must not be what a secret edge changes: visits of others would come and go with it, at any step"
        raise PlanError(rule, key="known", given=fact.words(), fix="Leave it out of the policy of a monitor.")


def check_scale(step: int, epsilon: Fraction) -> None:
    """Refuse an epsilon for which noise cannot be drawn."""
    if not SMALLEST_SCALE <= step / epsilon <= LARGEST_SCALE:
        lowest, highest = shown(step / LARGEST_SCALE), shown(step / SMALLEST_SCALE)
        rule = f"must lie between {lowest} and {highest} here"
        fix = "Below, the noise hides any count; above, there is none."
        raise PlanError(rule, key="epsilon", given=epsilon, fix=fix)


def check_columns(columns: EventColumns, policy: Policy) -> None:
    """Refuse one column in two roles, and persons, times and ids that a secret edge changes."""
    named = {"item": columns.place, "person": columns.person, "event": columns.event, "time": columns.time}
    taken: dict[str, str] = {}
    for key, name in named.items():
        if name is None:
            continue
        if name in taken:
            raise PlanError(f"must not be the column of {taken[name]} as well", key=key, given=name, fix="Change it.")
        taken[name] = key
        if key != "item" and name in policy.moved_attributes:
            raise PlanError(
                "must not be a column that the policy keeps secret", key=key, given=name, fix="Name another."
            )


def check_ledger(ledger: Any, dataset: Any, analyst: Any) -> None:
    """Refuse a ledger without a data set, and the other way round."""
    if ledger is not None and not isinstance(ledger, str | Path | Ledger):
        rule, given = "must be a path, a URL or a Ledger", word_or_kind(ledger)
        raise PlanError(rule, key="ledger", given=given, fix='Say ledger="ledger.db".')
    if ledger is not None and dataset is None:
        raise PlanError(
            "must be named, because the ledger keeps the budget under this name",
            key="dataset",
            fix="Say dataset='town', and always the same for the same people.",
        )
    for key, value in (("dataset", dataset), ("analyst", analyst)):
        if ledger is None and value is not None:
            raise PlanError("needs a ledger", key=key, given=value, fix='Say ledger="ledger.db".')


def unit_of(policy: Policy, person: Any, visits: Any, *, default: int | None) -> tuple[str | None, int | None]:
    """Return the column of persons, and how many visits of a person count; None where the unit is one visit.

    A policy that names a person has people as its unit, and its `per_person` as the bound.
    """
    who = column_name(person, "person") or policy.person
    if visits is not None:
        if who is None:
            rule = "needs a person"
            fix = "Name the column that says whose visit it is: person='id'."
            raise PlanError(rule, key="visits_per_person", given=visits, fix=fix)
        return who, whole_number(visits, "visits_per_person", fix="Leave it out to protect single visits.")
    if who is not None and who == policy.person:
        return who, policy.per_person
    return who, default if who is not None else None


def place_column(policy: Policy, name: str, item: Any) -> str:
    """Return the column with the places; where the policy says in which column its items are, it is that one."""
    given = column_name(item, "item")
    said = policy.item if policy.domain[name].is_set else None
    if said is not None and given not in (None, said):
        raise PlanError("must be the column that the policy names", key="item", given=given, fix="Leave it out.")
    return given or said or name


def kept_policy(policy: Policy, name: str, unit: Mapping[str, Any], positions: Sequence[int]) -> Policy:
    """Return the policy of which a monitor keeps every edge, between whole streams; it is charged under this one.

    What counts of a stream, and which streams are neighbours, is defined in `policy/inclusion.py`:

    * Single visits: each row is a record. Along an edge one row moves; its time, person and id stay, and all other rows
      do. So the given policy is kept, about rows.
    * Persons with a bound on their visits: a person is one record, the set of places of all their rows, cut down to
      `at_most`. How often and when they were there, and places that were cut off, are no part of it. So along an edge
      the rows of one person may become any others with the new set. If a monitored place is in that set, or may have
      been cut off, its visits may come at any step, also where there were none before: no noise hides that. If none is
      and none may, the person has no counted visit afterwards, and at most the bound before: that is what is paid for.
      So exactly the edges to sets that surely lack every monitored place are kept.

    The given policy is kept about persons if all its edges are such. Otherwise it is kept with `at_most: 1`, if all its
    edges are then: whoever may lose any place then loses all of them. Any other policy is refused.
    """
    if unit["visits"] is None:
        return policy.owned_by(None, 1)
    places = policy.domain[name]
    if not places.is_set:
        raise PlanError(
            "must have the places as a set of items, where the visits of a person are bounded: if one visit were at "
            "another value, the person's next one would count in its place",
            key="policy",
            given=name,
            fix="Declare tc.Items([..]), or leave out the bound (a map: the person) to protect single visits.",
        )
    if _clears(policy, name, places, positions):
        return policy.owned_by(unit["person"], 1)
    single = places.with_at_most(1)
    domain = Domain({**policy.domain, name: single})
    try:
        kept = Policy(
            domain,
            policy.secrets,
            policy.known,
            policy.presence,
            policy.name,
            person=unit["person"],
            order=policy.order,
            item=policy.item,
            adversary=policy.adversary,
        )
    except PolicyError:  # it lists sets of several places
        kept = None
    if kept is None or not _clears(kept, name, single, positions):
        raise PlanError(
            "must have only edges that surely take away all monitored visits of a person: where a place may stay, how "
            "often and when the person was there may change with the edge",
            key="policy",
            given=policy.name,
            fix=f"Use {_ONE_WAY} alone, or leave out the person to protect single visits.",
        )
    return kept


def _clears(policy: Policy, name: str, places: Attribute, positions: Sequence[int]) -> bool:
    """Say whether every edge surely leads to a set of places that has no monitored one, and hides none."""
    for shape in policy.shapes:
        moves = shape.item_moves(name)
        if moves.exactly is not None:
            cover = moves.exactly[1]
            if any(place in positions for place in cover) or (len(cover) == places.most_items < places.cells):
                return False  # a full set may have lost a monitored place to `at_most`
        elif _moves_elsewhere(shape, policy.domain, name) or moves.gain or (moves.lose and places.most_items > 1):
            return False  # any set may stay, be reached, or be what is left of a larger one
    return True


def _moves_elsewhere(shape: EdgeShape, domain: Domain, name: str) -> bool:
    """Say whether edges of a shape may change another attribute than this one."""
    axes = [axis for other in domain if other != name for axis in domain.axes_of(other)]
    sets = [other for other in domain if other != name and domain[other].is_set]
    return any(not shape.relation(axis).within(Same(), axis.size) for axis in axes) or any(
        shape.item_moves(other) != STAY_ITEMS for other in sets
    )


def place_in(domain: Domain, place: Any, attribute: str | None) -> tuple[str, int]:
    """Return the attribute that a place belongs to and its position there; the place of a flag is its name."""
    if attribute is not None:
        domain.attribute(attribute, key="attribute")
    found: list[tuple[str, int]] = []
    refusals: list[PlanError] = []
    flags = []
    for name in domain:
        watched = domain[name]
        if attribute not in (None, name):
            continue
        if watched.watched == "itself":
            flags.append(name)
            found += [(name, 1)] if place == name else []
        elif watched.watched == "cells":
            try:
                found.append((name, position_of(watched, place)))
            except PlanError as refusal:
                refusals.append(refusal)
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        fix = f"Say attribute={found[0][0]!r}, for instance."
        raise PlanError("must belong to one attribute of the domain", key="place", given=place, fix=fix)
    if len(refusals) == 1 and not flags:
        raise refusals[0]
    raise PlanError(
        "must be an item, a category or the name of a flag of the domain",
        key="place",
        given=word_or_kind(place),
        fix=f"For instance {flags[0]!r}." if flags else "Declare the places as tc.Items([..]).",
    )


def map_attribute(domain: Domain, attribute: str | None) -> tuple[str, Attribute]:
    """Return the attribute that has the places: the only set of items, or else the only list of categories."""
    if attribute is not None:
        domain.attribute(attribute, key="attribute")
    listed = {name: domain[name] for name in domain if domain[name].watched == "cells" and attribute in (None, name)}
    sets = {name: watched for name, watched in listed.items() if watched.is_set}
    found = sets or listed
    if len(found) > 1:
        raise PlanError("must say which attribute has the places", key="attribute", given=list(found), fix="Name one.")
    for name, watched_places in found.items():
        return name, watched_places
    rule = "must have the places as items or categories"
    fix = "Declare tc.Items([..])."
    raise PlanError(rule, key="attribute", given=list(domain) if attribute is None else attribute, fix=fix)


def monitored(attribute: Attribute, places: Any) -> Places:
    """Return the places to monitor: all, or those that are listed."""
    if places is None:
        return Places(attribute, range(attribute.cells))
    if isinstance(places, str) or not isinstance(places, Sequence | np.ndarray | set | frozenset) or not len(places):
        raise PlanError(
            "must be a list of places", key="places", given=word_or_kind(places), fix="Leave it out for all of them."
        )
    return Places(attribute, sorted({position_of(attribute, place) for place in places}))


def decision_steps(steps: Any) -> list[int] | None:
    """Return the steps at which a map is decided, in order; None for every step."""
    if steps is None:
        return None
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise PlanError(
            "must be a list of steps", key="decide_at", given=word_or_kind(steps), fix="For instance [5, 6, 7]."
        )
    found = sorted({whole_number(step, "decide_at", low=0, fix="Steps count from 0.") for step in steps})
    if not found:
        raise PlanError("must list a step", key="decide_at", given=[], fix="Leave it out for every step.")
    return found


def place_step(policy: Policy, name: str, place: Any) -> LargestStep:
    """Return the step of the count at one place, or refuse a policy under which it can rise, or cannot move."""
    watched = policy.domain[name]
    here = col(name).has(place) if watched.is_set else col(name) == (watched.watched == "itself" or place)
    step = largest_step(count(here), policy.owned_by(None, 1))
    _check_direction(step, policy)
    return step


def map_step(policy: Policy, name: str, places: Places) -> LargestStep:
    """Return the step of the counts at all places, or refuse a policy under which a monitored one can rise."""
    about, chosen = policy.owned_by(None, 1), np.asarray(places.positions, dtype=np.int64)
    step = largest_step(histogram(name), about)
    sides = None if places.attribute.is_set else directions(Marginals(((name,),)), about)
    if sides is None:
        _check_direction(step, policy)
        return step
    falls, rises = (side[chosen] for side in sides)
    if rises.any():
        raise PlanError(
            "must be places that no secret edge leads to: the monitor hides being at a place, not being at another one",
            key="places",
            given=[places.label(place) for place in chosen[rises].tolist()[:20]],
            fix="Let secrets lead only to a value that is no place, as in tc.secrets.pairs([(place, 'nowhere'), ..]), "
            "and leave that value out with places=[..].",
        )
    if not falls.any():
        raise _unprotected(policy)
    return step


def _check_direction(step: LargestStep, policy: Policy) -> None:
    """Refuse a policy under which one-sided noise would hide nothing, or has nothing to hide."""
    if step.up > 0:
        raise PlanError(
            "must not let the number of visits rise along a secret edge, or a certain verdict would give somebody away",
            key="policy",
            given="; ".join(step.why),
            fix=f"Protect having been there, not having been elsewhere or away: {_ONE_WAY}, presence='public'.",
        )
    if step.down == 0:
        raise _unprotected(policy)


def _unprotected(policy: Policy) -> PlanError:
    rule = "must protect the visits: no secret edge changes their number"
    return PlanError(rule, key="policy", given=policy.name, fix=f"Add {_ONE_WAY}, or count without a monitor.")
