"""What a monitor refuses before it is begun: numbers out of range, unknown places, policies that it cannot keep.

Whether counts can only fall along secret edges, so that one-sided noise hides a visit, is derived from the policy
(`plan/steps.py`, `plan/directions.py`), never declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import index
from pathlib import Path
from typing import Any, Final

import numpy as np

from tacit.errors import PlanError, PolicyError
from tacit.plan.amounts import shown
from tacit.plan.directions import directions
from tacit.plan.distributions import LARGEST_SCALE, SMALLEST_SCALE
from tacit.plan.queries import Marginals, count, histogram
from tacit.plan.steps import LargestStep, largest_step
from tacit.policy.domain import Categories, Domain, Flag, Items
from tacit.policy.policy import Policy
from tacit.policy.where import col
from tacit.release.ledger import Ledger
from tacit.release.monitor_events import EventColumns
from tacit.release.monitor_history import Places, position_of, size_of

LARGEST: Final = 10**12  # of thresholds and windows: far beyond use, well within 64 bits
_ONE_WAY: Final = "tc.secrets.values({'visited': [1]})"


def whole_number(value: Any, key: str, *, low: int = 1, fix: str) -> int:
    """Return a whole number in range, or refuse."""
    try:
        found = index(value)
    except TypeError:
        found = low - 1
    if isinstance(value, bool) or not low <= found <= LARGEST:
        raise PlanError(f"must be a whole number from {low} to 10^12", key=key, given=value, fix=fix)
    return found


def checked_threshold(threshold: Any) -> int:
    """Return a threshold, or refuse."""
    return whole_number(threshold, "threshold", fix="With 1, only a place without visits can be called safe.")


def column_name(name: Any, key: str) -> str | None:
    """Return the name of a column, or None, or refuse."""
    if name is not None and (not isinstance(name, str) or not name):
        raise PlanError("must be the name of a column", key=key, given=name, fix="Give its name as a text.")
    return name


def check_policy(policy: Any) -> None:
    """Refuse what is no policy."""
    if not isinstance(policy, Policy):
        raise PolicyError("must be a Policy", key="policy", given=policy, fix="Use tc.Policy.load('policy.yaml').")


def check_scale(step: int, epsilon: Fraction) -> None:
    """Refuse an epsilon for which noise cannot be drawn."""
    if not SMALLEST_SCALE <= step / epsilon <= LARGEST_SCALE:
        lowest, highest = shown(step / LARGEST_SCALE), shown(step / SMALLEST_SCALE)
        raise PlanError(
            f"must lie between {lowest} and {highest} here",
            key="epsilon",
            given=shown(epsilon),
            fix="Below, the noise hides any count; above, there is none.",
        )


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
        raise PlanError("must be a path, a URL or a Ledger", key="ledger", given=ledger, fix='Say ledger="ledger.db".')
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
            raise PlanError(
                "needs a person",
                key="visits_per_person",
                given=visits,
                fix="Name the column that says whose visit it is: person='id'.",
            )
        return who, whole_number(visits, "visits_per_person", fix="Leave it out to protect single visits.")
    if who is not None and who == policy.person:
        return who, policy.per_person
    return who, default if who is not None else None


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
        if isinstance(watched, Flag):
            flags.append(name)
            found += [(name, 1)] if place == name else []
        elif isinstance(watched, Items | Categories):
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
        given=place,
        fix=f"For instance {flags[0]!r}." if flags else "Declare the places as tc.Items([..]).",
    )


def map_attribute(domain: Domain, attribute: str | None) -> tuple[str, Items | Categories]:
    """Return the attribute that has the places: the only set of items, or else the only list of categories."""
    if attribute is not None:
        domain.attribute(attribute, key="attribute")
    items, categories = {}, {}
    for name in domain:
        watched = domain[name]
        if isinstance(watched, Items) and attribute in (None, name):
            items[name] = watched
        elif isinstance(watched, Categories) and attribute in (None, name):
            categories[name] = watched
    found: dict[str, Items | Categories] = {**(items or categories)}
    if len(found) > 1:
        raise PlanError("must say which attribute has the places", key="attribute", given=list(found), fix="Name one.")
    for name, watched_places in found.items():
        return name, watched_places
    raise PlanError(
        "must have the places as items or categories",
        key="attribute",
        given=list(domain) if attribute is None else attribute,
        fix="Declare tc.Items([..]).",
    )


def monitored(attribute: Items | Categories, places: Any) -> Places:
    """Return the places to monitor: all, or those that are listed."""
    if places is None:
        return Places(attribute, range(size_of(attribute)))
    if isinstance(places, str) or not isinstance(places, Sequence | np.ndarray | set | frozenset) or not len(places):
        raise PlanError("must be a list of places", key="places", given=places, fix="Leave it out for all of them.")
    return Places(attribute, sorted({position_of(attribute, place) for place in places}))


def decision_steps(steps: Any) -> list[int] | None:
    """Return the steps at which a map is decided, in order; None for every step."""
    if steps is None:
        return None
    if isinstance(steps, str) or not isinstance(steps, Iterable):
        raise PlanError("must be a list of steps", key="decide_at", given=steps, fix="For instance [5, 6, 7].")
    found = sorted({whole_number(step, "decide_at", low=0, fix="Steps count from 0.") for step in steps})
    if not found:
        raise PlanError("must list a step", key="decide_at", given=[], fix="Leave it out for every step.")
    return found


def place_step(policy: Policy, name: str, place: Any) -> LargestStep:
    """Return the step of the count at one place, or refuse a policy under which it can rise, or cannot move."""
    watched = policy.domain[name]
    here = col(name).has(place) if isinstance(watched, Items) else col(name) == (isinstance(watched, Flag) or place)
    step = largest_step(count(here), policy.owned_by(None, 1))
    _check_direction(step, policy)
    return step


def map_step(policy: Policy, name: str, places: Places) -> LargestStep:
    """Return the step of the counts at all places, or refuse a policy under which a monitored one can rise."""
    about, chosen = policy.owned_by(None, 1), np.asarray(places.positions, dtype=np.int64)
    step = largest_step(histogram(name), about)
    sides = None if isinstance(places.attribute, Items) else directions(Marginals(((name,),)), about)
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
    return PlanError(
        "must protect the visits: no secret edge changes their number",
        key="policy",
        given=policy.name,
        fix=f"Add {_ONE_WAY}, or count without a monitor.",
    )
