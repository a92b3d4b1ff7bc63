"""Which days and people a release of single records is about, where a dependence has attributes of each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tacit.errors import PlanError
from tacit.plan.leakage.shown import Shown
from tacit.policy.domain import Domain, every_record, positions
from tacit.policy.where import Both, Where

Labels = tuple[str, ...]
MOST_PICKED = 10_000  # combinations of days and people


def labels_by(domain: Domain, by: Sequence[str], where: Where | None = None) -> list[Labels]:
    """Return the days and people of a policy that a predicate may pick, as labels of the columns that say them.

    Only what it asks of these columns alone is looked at; whatever else it asks may hold of any of them.
    """
    small = Domain({name: domain.attribute(name, key="by") for name in by})
    if small.size > MOST_PICKED:
        rule = f"must have at most {MOST_PICKED:,} combinations of values"
        fix = "Let the policy have only the days and people that limits are about."
        raise PlanError(rule, key="by", given=small.size, fix=fix)
    tests = [part.compile(small) for part in _parts(where) if part.columns() <= set(by)]
    return [
        tuple(small[name].words(value) for name, value in zip(by, record, strict=True))
        for record in every_record(small)
        if all(test.of_record(positions(small, record)) for test in tests)
    ]


def of_each(
    shown: Iterable[Shown],
    each: Mapping[str, Mapping[Labels, str]],
    picked: Sequence[Labels],
    *,
    has_own_coins: bool,
) -> Iterator[Shown]:
    """Yield what is shown under the names of its days and people; `each` has those names for every attribute.

    `has_own_coins` says that coins of different days and people are different, since they are named in the key.

    Raises:
        PlanError: If it is about a day or a person that there is no name for: what it tells cannot be weighed.
    """
    for one in shown:
        names = each.get(one.attribute)
        if names is None:
            yield one
            continue
        for labels in picked:
            if labels not in names:
                rule = f"must be about days and people that the dependence has {one.attribute} of"
                fix = (
                    "Nothing was charged. Pick others with where, or make a dependence that has them; "
                    "ledger.limit_leakage(.., replace=True) puts its limits in place, and what was shown counts."
                )
                raise PlanError(rule, key="leakage", given=", ".join(labels), fix=fix)
            own = has_own_coins and one.line and not one.is_public
            line = f"{one.line} of {labels!r}" if own else one.line
            yield replace(one, attribute=names[labels], line=line)


def _parts(where: Where | None) -> list[Where]:
    """Return predicates that all hold where this one holds."""
    if isinstance(where, Both):
        return [*_parts(where.left), *_parts(where.right)]
    return [] if where is None else [where]
