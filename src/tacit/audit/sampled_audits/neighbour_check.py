"""Two data sets that somebody gives for an audit: refused with the reason unless one secret edge separates them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, Final

from tacit.audit.exact_audits.worlds import known_numbers, minus
from tacit.errors import PolicyError
from tacit.policy.policy import ABSENT, Policy

MOST_MOVED: Final = 16  # people in whose moves a smaller set of moves is looked for


def check_neighbours(policy: Policy, hidden: Any, cover: Any) -> None:
    """Refuse two data sets that no secret edge separates, with the reason."""
    a, b = _people(policy, hidden, "hidden"), _people(policy, cover, "cover")
    if policy.absences and abs(len(a) - len(b)) <= policy.per_person:
        for _ in range(abs(len(a) - len(b))):
            _align(*sorted((a, b), key=len))
    if len(a) != len(b):
        raise PolicyError(
            f"must have as many people as `hidden`, {len(a):,}, since taking part is not secret in this policy"
            if not policy.absences
            else f"must differ from `hidden`, which has {len(a):,} people, in one person",
            key="cover",
            given=len(b),
            fix="Move one person along an edge.",
        )
    moved = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    if not moved:
        raise PolicyError("must differ from `hidden` in one person", key="cover", fix="Move one person along an edge.")
    if policy.known and known_numbers(policy, a) != known_numbers(policy, b):
        raise PolicyError(
            "must agree with `hidden` on everything that is known", key="cover", fix="Let others restore it."
        )
    if len(moved) > policy.per_person and not policy.known:
        rows = "one person" if policy.per_person == 1 else f"{policy.per_person} rows of one person"
        raise PolicyError(
            f"must differ from `hidden` in {rows}, not in {len(moved)}",
            key="cover",
            fix="Keep the others as they are; each further person costs epsilon once more.",
        )
    along = [policy.has_edge(x, y) for x, y in moved]
    if not (any(along) if policy.known else all(along)):
        x, y = moved[along.index(False)]
        back = policy.has_edge(y, x)
        raise PolicyError(
            f"must be reached along a secret edge: {_describe(policy, x)} -> {_describe(policy, y)} is none"
            + (", only the way back is" if back else ""),
            key="cover",
            fix="Swap the two." if back else "Look at `tacit check` for the edges.",
        )
    if policy.known:
        _check_smallest(policy, moved, along)


def _check_smallest(policy: Policy, moved: list[tuple[Any, Any]], along: list[bool]) -> None:
    """Refuse moves of which some alone, a secret one among them, agree with what is known: that is a nearer pair."""
    if len(moved) > MOST_MOVED:
        raise PolicyError(
            f"must not move more than {MOST_MOVED} people, or it cannot be checked that all of them are needed",
            key="cover",
            given=len(moved),
            fix="Move fewer people.",
        )
    changes = [minus(known_numbers(policy, (y,)), known_numbers(policy, (x,))) for x, y in moved]
    for many in range(1, len(moved)):
        for some in combinations(range(len(moved)), many):
            if any(along[at] for at in some) and not any(map(sum, zip(*(changes[at] for at in some), strict=True))):
                raise PolicyError(
                    f"must be a nearest neighbour of `hidden`: {many} of the {len(moved)} moves already agree with "
                    "everything that is known",
                    key="cover",
                    fix="Keep the others as they are; each further step costs epsilon once more.",
                )


def _people(policy: Policy, people: Any, key: str) -> list[Any]:
    if isinstance(people, str | Mapping) or not isinstance(people, Iterable):
        raise PolicyError(
            "must be a list of records where a policy is given", key=key, fix="For instance [{'age': 30}, {'age': 41}]."
        )
    return [ABSENT if record is ABSENT else policy.domain.record(record) for record in people]


def _align(shorter: list[Any], longer: list[Any]) -> None:
    """Put ABSENT where the person is missing."""
    pairs = enumerate(zip(shorter, longer, strict=False))
    at = next((i for i, (x, y) in pairs if x is not ABSENT and x != y), len(shorter))
    shorter.insert(at, ABSENT)


def _describe(policy: Policy, record: Any) -> str:
    if record is ABSENT:
        return "absent"
    return ", ".join(f"{name}={value}" for name, value in zip(policy.domain, record, strict=True))
