"""What a session shows of single records, held against limits on what applications learn."""

from __future__ import annotations

from collections.abc import Iterable

from tacit.errors import PlanError, kind_of, nearest
from tacit.ledger.applications import Applications, Weighing
from tacit.ledger.ledger import Ledger
from tacit.plan.any_plan import AnyPlan
from tacit.plan.leakage.shown import Shown
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
            _check_domain(applications, policy)
        self._applications = applications
        self._shown: list[Shown] = []

    def begin(self, ledger: Ledger, dataset: str) -> None:
        """Let the limits hold in a ledger."""
        if self._applications is not None:
            ledger.limit_leakage(dataset=dataset, applications=self._applications)

    def of(self, plans: Iterable[AnyPlan], *, in_groups: bool) -> Weighing | None:
        """Return what plans show, to be held against the limits; None if they show no single record."""
        shown = tuple(one for plan in plans for one in plan.shows)
        if shown and in_groups and self._applications is not None:
            raise PlanError(
                "must be asked for everybody at once where limits on what applications learn hold",
                key="split",
                given=shown[0].attribute,
                fix="Nothing was charged. Ask the session itself, with a `where` if need be.",
            )
        return Weighing(shown, self._applications) if shown else None

    def weigh(self, weighing: Weighing | None) -> None:
        """Hold what is shown against the limits of a session without a ledger, and remember it; or refuse."""
        if weighing is None:
            return
        if self._applications is not None:
            self._applications.weigh(self._shown, weighing.shown)
        self._shown += weighing.shown


def _check_domain(applications: Applications, policy: Policy) -> None:
    """Refuse limits about attributes that the policy does not have."""
    for name in applications.dependence.names:
        if name not in policy.domain:
            raise PlanError(
                "must be about attributes of the policy",
                key="leakage",
                given=name,
                fix=f"{nearest(name, list(policy.domain))} Or make the dependence of fewer attributes.",
            )
