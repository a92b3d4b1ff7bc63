"""Tacit: policy-driven privacy. Say what must stay secret, see the cost, release with a guarantee.

The stages, in the order in which data flows (imports only point left):

    policy -> plan -> mechanism -> ledger -> rows -> release -> monitor -> audit -> report

>>> import pandas as pd
>>> import tacit as tc
>>> domain = tc.Domain({"age": tc.Integers(0, 99), "disease": tc.Categories(["flu", "hiv"])})
>>> policy = tc.Policy(domain, secrets=tc.secrets.within(5, "age") | tc.secrets.attributes("disease"))
>>> tc.largest_step(tc.cumulative("age"), policy).l1
5
>>> people = pd.DataFrame({"age": [31, 32, 47], "disease": ["flu", "hiv", "flu"]})
>>> session = tc.Session(policy, people, budget=1.0)
>>> record = session.release(tc.histogram("disease"), epsilon=0.5)
>>> print(round(record.values.sum(), 6))
3.0
"""

from typing import Any

from tacit import audit
from tacit import report as _report  # noqa: F401 - so that records can draw themselves
from tacit.errors import (
    BudgetExceeded,
    DataRefused,
    InternalError,
    JobError,
    LedgerError,
    PlanError,
    PolicyError,
    Refused,
    TacitError,
)
from tacit.ledger.ledger import Ledger
from tacit.mechanism import noise
from tacit.monitor.monitor import MapMonitor, PlaceMonitor
from tacit.plan.asked import no_such_question
from tacit.plan.explain import Explanation, explain
from tacit.plan.queries import count, cumulative, histogram, marginals, ranges, total
from tacit.plan.selections import above, below, top_k
from tacit.plan.steps import LargestStep, largest_step
from tacit.policy import knowledge as known
from tacit.policy import secrets
from tacit.policy.attributes import Categories, Dates, Decimals, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.where import col, where
from tacit.release.record import ReleaseRecord
from tacit.release.row_check import RowsCheck, check_rows
from tacit.release.session import Session
from tacit.rows.rows import ItemCounts

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here; where it is a question that others have, say how to ask it."""
    said = no_such_question(name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}.{' ' + said if said else ''}")


__all__ = [
    "ABSENT",
    "BudgetExceeded",
    "Categories",
    "DataRefused",
    "Dates",
    "Decimals",
    "Domain",
    "Explanation",
    "Flag",
    "Grid",
    "Integers",
    "InternalError",
    "ItemCounts",
    "Items",
    "JobError",
    "LargestStep",
    "Ledger",
    "LedgerError",
    "MapMonitor",
    "PlaceMonitor",
    "PlanError",
    "Policy",
    "PolicyError",
    "Refused",
    "ReleaseRecord",
    "RowsCheck",
    "Session",
    "TacitError",
    "__version__",
    "above",
    "audit",
    "below",
    "check_rows",
    "col",
    "count",
    "cumulative",
    "explain",
    "histogram",
    "known",
    "largest_step",
    "marginals",
    "noise",
    "ranges",
    "secrets",
    "top_k",
    "total",
    "where",
]
