"""Publications: paid outputs that are not answers to questions. Published tables are the only ones.

Guarantee   A session hands true counts only to a publication that was announced here and that nobody changed since: the
            very object, of this very class. Any other thing is refused before anything is charged, without asking it.
Assumes     Whoever announces a publication keeps its promise: of modules of this package `publish/paid_tables.py` alone
            may. Nobody writes into the fields of a frozen object by force.
Why         What sees true counts decides what leaves. An object that only looks like a publication could return them,
            for any price. So one counts only as the very object that was announced, as a plan does
            (`release/planner.py`): a copy, one that was changed and one of a derived class are none.
Checked by  tests/unit/release/test_publications.py, tests/architecture/test_private_doors.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final
from weakref import WeakValueDictionary

import numpy.typing as npt

from tacit.amounts import as_epsilon
from tacit.errors import PlanError, kind_of
from tacit.ledger.clauses import TableNote
from tacit.ledger.ledger import Receipt
from tacit.plan.measure.measured import Tally
from tacit.policy.policy import Policy
from tacit.rows.sources.engine import MakeFrame

Make = Callable[[Sequence[npt.NDArray[Any]], MakeFrame, str, Receipt | None], object]


@final
@dataclass(frozen=True, eq=False)
class Publication:
    """A paid output that is made of counts and answers no question: a table. It keeps its own promise.

    It is public, as a plan is: `make` alone sees true counts, once, and returns what may be seen of them. It promises
    `epsilon` along the edges of `policy`; `tallies` are counted for it, `title` is what a ledger says about it, and
    `table` is held against the tables before it.
    """

    policy: Policy
    epsilon: Fraction
    tallies: tuple[Tally, ...]
    title: str
    table: TableNote
    make: Make


_announced: Final[WeakValueDictionary[int, Publication]] = WeakValueDictionary()  # by id: the object, no equal one


def announced(
    policy: Policy, epsilon: Any, tallies: Sequence[Tally], title: str, table: TableNote, make: Make
) -> Publication:
    """Return a publication that sessions accept. Whoever calls this has proved that `make` loses epsilon at most."""
    found = Publication(policy, as_epsilon(epsilon), tuple(tallies), title, table, make)
    _announced[id(found)] = found
    return found


def check_announced(given: Any) -> Publication:
    """Return a publication that was announced, or refuse."""
    if type(given) is Publication and _announced.get(id(given)) is given:
        return given
    rule = f"must be one that `tc.publish` made, and unchanged, not {kind_of(given)}"
    fix = "Nothing was charged. Write tc.publish.perturbed(session, public=.., sensitive=.., epsilon=..)."
    raise PlanError(rule, key="publication", fix=fix)
