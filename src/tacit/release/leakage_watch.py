"""What a session shows of single records, held against limits on what applications learn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tacit.errors import PlanError, PolicyError, kind_of, nearest, word_or_kind
from tacit.ledger.applications import Applications
from tacit.ledger.chain import shown_name
from tacit.ledger.clauses import Limits, RecordsShown
from tacit.ledger.ledger import Ledger
from tacit.plan.leakage.shown import Shown, ShownSoFar
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.records import RecordsPlan
from tacit.policy.attributes.attribute import Attribute
from tacit.policy.policy import Policy


class LeakageWatch:
    """The limits of one session. With a ledger they are kept there; without one, what was shown is remembered here."""

    def __init__(self, applications: Applications | None, policy: Policy) -> None:
        if applications is not None and not isinstance(applications, Applications):
            raise PlanError(
                f"must be limits on what applications learn, not {kind_of(applications)}",
                key="leakage",
                fix="Say leakage=tc.Applications(dependence, sensitive=.., coalitions=.., limit=..).",
            )
        if applications is not None:
            applications.check_public()
            _check_domain(applications, policy)
        self._applications = applications
        self._seen = ShownSoFar()

    def begin(self, ledger: Ledger, dataset: str) -> None:
        """Let the limits hold in a ledger."""
        if self._applications is not None:
            ledger.limit_leakage(dataset=dataset, applications=self._applications)

    def of(self, plans: Iterable[Plan]) -> tuple[Shown, ...]:
        """Return what plans show of single records."""
        listed = [records for plan in plans if (records := plan.records) is not None]
        if self._applications is not None:
            for records in listed:
                _check_hidden(self._applications, records)
        return tuple(one for records in listed for one in records.shows)

    def showing(self, shows: Iterable[Shown], mark: str) -> RecordsShown | None:
        """Return the clause that holds what is shown against the limits; None if no single record is shown.

        `mark` tells the secret that coins are made from: coins of another secret are other coins.
        """
        found = tuple(one if not one.line else replace(one, line=shown_name(one.line, mark)) for one in shows)
        return RecordsShown(found, self._applications) if found else None

    def check(
        self, plans: Iterable[Plan], ledger: Ledger | None, dataset: str, mark: str, *, opening: bool = False
    ) -> None:
        """Refuse plans that would tell more than limits allow, with the sentence of their charge; write nothing.

        `opening` also refuses limits that could not begin to hold in the ledger.
        """
        showing = self.showing(self.of(plans), mark)
        if ledger is None:
            if showing is not None and self._applications is not None:
                self._applications.weigh_after(self._seen, showing.shown)
            return
        limits = Limits(self._applications) if opening and self._applications is not None else None
        if clauses := [one for one in (limits, showing) if one is not None]:
            ledger.check(dataset=dataset, clauses=clauses)

    def weigh(self, showing: RecordsShown | None) -> None:
        """Hold what is shown against the limits of a session without a ledger, and remember it; or refuse."""
        if showing is None:
            return
        if self._applications is not None:
            self._applications.weigh_after(self._seen, showing.shown)
        self._seen.add(showing.shown)


def _check_hidden(applications: Applications, plan: RecordsPlan) -> None:
    """Refuse a release that hides other values than the limits take for sensitive: it tells something else."""
    for one in plan.shows:
        if one.is_public or one.attribute not in applications.dependence.values:
            continue  # refused where it is weighed, if at all
        known = applications.dependence.values[one.attribute]
        wanted, found = applications.sensitive.get(one.attribute, frozenset()), plan.never_shown(one.attribute)
        if found is None:
            raise PlanError(
                "must be hidden by its own value alone where limits on what applications learn hold",
                key="leakage",
                given=one.attribute,
                fix="Nothing was charged. Name a key, and let the policy protect values of this attribute.",
            )
        if found & set(known) != wanted & set(known):
            raise PlanError(
                f"must take for sensitive what the policy hides of {one.attribute}: "
                f"{', '.join(sorted(map(str, found))[:5]) or 'nothing'}",
                key="leakage",
                given=sorted(map(str, wanted))[:5],
                fix="Nothing was charged. Say the same in both.",
            )


def _check_domain(applications: Applications, policy: Policy) -> None:
    """Refuse limits about attributes that the policy does not have, or values that they do not have there."""
    for name in applications.dependence.names:
        if name not in policy.domain:
            raise PlanError(
                "must be about attributes of the policy",
                key="leakage",
                given=name,
                fix=f"{nearest(name, list(policy.domain))} Or make the dependence of fewer attributes.",
            )
        for value in applications.dependence.values[name]:
            if not _is_value(value, policy.domain[name]):
                raise PlanError(
                    f"must be about values of {name} as the policy writes them",
                    key="leakage",
                    given=word_or_kind(value),
                    fix=f"Make the dependence of such as {policy.domain[name].words(policy.domain[name].value(0))}.",
                )


def _is_value(value: Any, attribute: Attribute) -> bool:
    try:
        return bool(attribute.canonical(value) == value)
    except PolicyError:
        return False
