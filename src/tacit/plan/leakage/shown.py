"""What a release shows of single records, of which days and people, and to whom: what leakage is counted on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from tacit.errors import PlanError
from tacit.policy.domain import Domain, every_record, positions
from tacit.policy.where import Both, Where

CERTAIN: Final = Fraction(1000)  # an epsilon at which a coin never hides anything
_FINE: Final = 10**12
MOST_PICKED: Final = 10_000  # combinations of days and people

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Shown:
    """An attribute that an application is shown, unchanged or not at all, at the epsilon of its coin.

    `line` names coins that are remembered: repeated questions on the same line show what the largest epsilon shows, and
    attributes on one line share their coins. If it is empty, each question tosses a new coin. An empty `application`
    is everybody. What no secret edge changes `is_public`, and is certainly shown.
    """

    application: str
    attribute: str
    epsilon: Fraction
    line: str = ""
    is_public: bool = False

    def __str__(self) -> str:
        return f"{self.attribute} to {self.application or 'everybody'}"


@dataclass
class ShownSoFar:
    """What was shown so far: the epsilon that each application has reached for each attribute, in order of questions.

    `lines` is what was shown along each line of an application, `public` what was shown only as public.

    Coins of different lines are independent, so that a value is hidden on all of them with the product of the chances:
    epsilons add up. On one line the largest counts, since its coins are remembered.

    >>> first = Shown("lighting", "arrival", Fraction(1, 2), "a")
    >>> again = Shown("lighting", "arrival", Fraction(3, 4), "a")
    >>> other = Shown("lighting", "arrival", Fraction(1, 4))
    >>> ShownSoFar().after([first, again, other]).reached
    {('lighting', 'arrival'): Fraction(1, 1)}
    """

    reached: dict[tuple[str, str], Fraction] = field(default_factory=dict)
    lines: dict[tuple[str, str], dict[str, Fraction]] = field(default_factory=dict)
    public: set[tuple[str, str]] = field(default_factory=set)

    def add(self, shown: Iterable[Shown]) -> None:
        """Add what is shown; `lines` must have what was shown before along the same lines."""
        for one in shown:
            whom = (one.application, one.attribute)
            if one.is_public and whom not in self.reached:
                self.public.add(whom)
            elif not one.is_public:
                self.public.discard(whom)
            self.reached.setdefault(whom, Fraction(0))
            if not one.line:
                self.reached[whom] += one.epsilon
                continue
            before = self.lines.get((one.application, one.line), {})
            after = {**before, one.attribute: max(before.get(one.attribute, Fraction(0)), one.epsilon)}
            for attribute, epsilon in after.items():
                old = apart(before[attribute], len(before)) if attribute in before else Fraction(0)
                self.reached[one.application, attribute] += apart(epsilon, len(after)) - old
            self.lines[one.application, one.line] = after

    def after(self, shown: Iterable[Shown]) -> ShownSoFar:
        """Return what was shown after this as well."""
        more = ShownSoFar(dict(self.reached), dict(self.lines), set(self.public))
        more.add(shown)
        return more


def apart(epsilon: Fraction, attributes: int) -> Fraction:
    """Return an epsilon at which separate coins show no less of some attributes than one coin for all of them.

    One coin shows all of them with probability u, or none. Separate coins that each show with the root of u show all of
    them together with probability u, and who sees more can ignore it. So they show no less. Rounded up.

    >>> apart(Fraction(1, 2), 1), round(float(apart(Fraction(1, 2), 2)), 6)
    (Fraction(1, 2), 0.986905)
    """
    if attributes <= 1 or epsilon >= CERTAIN:
        return epsilon
    root = (-math.expm1(-float(epsilon))) ** (1 / attributes)
    if root >= 1:
        return CERTAIN
    return min(CERTAIN, Fraction(math.ceil(-math.log1p(-root) * _FINE * (1 + 1e-12)) + 1, _FINE))


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
