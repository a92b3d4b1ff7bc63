"""Tacit: policy-driven privacy. Say what must stay secret, see the cost, release with a guarantee.

The stages, in the order in which data flows (imports only point left):

    policy -> dependence -> noise -> plan -> ledger -> rows -> draft
    -> release -> monitor -> publish -> jobs -> audit -> report

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

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tacit import audit as audit
    from tacit import noise as noise
    from tacit import plan as plan
    from tacit import publish as publish
    from tacit.dependence.dependence import Dependence as Dependence
    from tacit.errors import BudgetExceeded as BudgetExceeded
    from tacit.errors import DataRefused as DataRefused
    from tacit.errors import InternalError as InternalError
    from tacit.errors import JobError as JobError
    from tacit.errors import LedgerError as LedgerError
    from tacit.errors import PlanError as PlanError
    from tacit.errors import PolicyError as PolicyError
    from tacit.errors import Refused as Refused
    from tacit.errors import TacitError as TacitError
    from tacit.ledger.applications import Applications as Applications
    from tacit.ledger.ledger import Ledger as Ledger
    from tacit.monitor.monitor import MapMonitor as MapMonitor
    from tacit.monitor.monitor import PlaceMonitor as PlaceMonitor
    from tacit.plan.choose import Explanation as Explanation
    from tacit.plan.choose import explain as explain
    from tacit.plan.questions import above as above
    from tacit.plan.questions import below as below
    from tacit.plan.questions import clusters as clusters
    from tacit.plan.questions import count as count
    from tacit.plan.questions import counts as counts
    from tacit.plan.questions import cumulative as cumulative
    from tacit.plan.questions import histogram as histogram
    from tacit.plan.questions import marginals as marginals
    from tacit.plan.questions import mean as mean
    from tacit.plan.questions import median as median
    from tacit.plan.questions import quantiles as quantiles
    from tacit.plan.questions import ranges as ranges
    from tacit.plan.questions import rectangles as rectangles
    from tacit.plan.questions import top_k as top_k
    from tacit.plan.questions import total as total
    from tacit.plan.questions import true_records as true_records
    from tacit.plan.questions import variance as variance
    from tacit.plan.sensitivity.steps import LargestStep as LargestStep
    from tacit.plan.sensitivity.steps import largest_step as largest_step
    from tacit.policy import knowledge as known  # noqa: F401 - public by this name
    from tacit.policy import secrets as secrets
    from tacit.policy.application import Application as Application
    from tacit.policy.attributes import Categories as Categories
    from tacit.policy.attributes import Dates as Dates
    from tacit.policy.attributes import Decimals as Decimals
    from tacit.policy.attributes import Flag as Flag
    from tacit.policy.attributes import Grid as Grid
    from tacit.policy.attributes import Integers as Integers
    from tacit.policy.attributes import Items as Items
    from tacit.policy.attributes import Times as Times
    from tacit.policy.domain import Domain as Domain
    from tacit.policy.policy import ABSENT as ABSENT
    from tacit.policy.policy import Policy as Policy
    from tacit.policy.where import col as col
    from tacit.policy.where import where as where
    from tacit.publish import local as local
    from tacit.publish.estimates import reconstruct as reconstruct
    from tacit.release.curator.row_check import RowsCheck as RowsCheck
    from tacit.release.curator.row_check import check_rows as check_rows
    from tacit.release.results.record import ReleaseRecord as ReleaseRecord
    from tacit.release.session import Session as Session
    from tacit.rows.counts.item_counts import ItemCounts as ItemCounts
    from tacit.rows.files.written import Written as Written

__version__ = "0.1.0"

# Where each public name lives. It is loaded when it is first used: the engines, charts and statistics behind a release
# take seconds to load, and a look at a policy needs none of them.
_MODULES: Final = {
    "dependence.dependence": ["Dependence"],
    "errors": [
        "BudgetExceeded",
        "DataRefused",
        "InternalError",
        "JobError",
        "LedgerError",
        "PlanError",
        "PolicyError",
        "Refused",
        "TacitError",
    ],
    "ledger.applications": ["Applications"],
    "ledger.ledger": ["Ledger"],
    "monitor.monitor": ["MapMonitor", "PlaceMonitor"],
    "plan.choose": ["Explanation", "explain"],
    "plan.questions": [
        "above",
        "below",
        "clusters",
        "count",
        "counts",
        "cumulative",
        "histogram",
        "marginals",
        "mean",
        "median",
        "quantiles",
        "ranges",
        "rectangles",
        "top_k",
        "total",
        "true_records",
        "variance",
    ],
    "plan.sensitivity.steps": ["LargestStep", "largest_step"],
    "policy.application": ["Application"],
    "policy.attributes": ["Categories", "Dates", "Decimals", "Flag", "Grid", "Integers", "Items", "Times"],
    "policy.domain": ["Domain"],
    "policy.policy": ["ABSENT", "Policy"],
    "policy.where": ["col", "where"],
    "publish.estimates": ["reconstruct"],
    "release.results.record": ["ReleaseRecord"],
    "release.curator.row_check": ["RowsCheck", "check_rows"],
    "release.session": ["Session"],
    "rows.counts.item_counts": ["ItemCounts"],
    "rows.files.written": ["Written"],
}
_PLACES: Final = {name: module for module, names in _MODULES.items() for name in names}
_WHOLE: Final = {
    "audit": "audit",
    "known": "policy.knowledge",
    "local": "publish.local",
    "noise": "noise",
    "plan": "plan",
    "publish": "publish",
    "secrets": "policy.secrets",
}


def __getattr__(name: str) -> Any:
    """Load a public name; refuse any other, and where it is a question that others have, say how to ask it."""
    if name in _WHOLE:
        found = import_module(f"tacit.{_WHOLE[name]}")
    elif name in _PLACES:
        found = getattr(import_module(f"tacit.{_PLACES[name]}"), name)
    else:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}.{_hint(name)}")
    globals()[name] = found
    return found


def _hint(name: str) -> str:
    if name.startswith("_"):
        return ""
    from tacit.plan.questions.written import no_such_question

    hint = no_such_question(name)
    return f" {hint}" if hint else ""


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = sorted([*_PLACES, *_WHOLE, "__version__"])
