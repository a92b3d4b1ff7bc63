"""What a tally asks of rows, as a table of the domain; what is no table is refused before a row is read."""

from __future__ import annotations

import math
from typing import Final

from tacit.errors import PlanError
from tacit.plan.measure.tally import CellCounts, CellSums, Tally
from tacit.policy.attributes import Attribute
from tacit.policy.domain import Domain
from tacit.policy.where import Test
from tacit.rows.counts.counting import CompiledTally

_MOST_CELLS: Final = 2**31


def where_of(tally: Tally, domain: Domain) -> Test | None:
    """Return the test that picks the people of a tally, if there is one."""
    return None if tally.where is None else tally.where.compile(domain)


def asked_of(tally: CellCounts | CellSums, where: Test | None, domain: Domain) -> CompiledTally:
    """Return what a tally asks for, or refuse what is no table."""
    if isinstance(tally, CellSums) and domain.attribute(tally.name, key="total").unit is None:
        raise no_total(tally.name)
    names = tally.by if isinstance(tally, CellSums) else tally.names
    for name in names:
        domain.attribute(name, key="counts")
    if any(domain[name].is_set for name in names):
        raise no_cells(names)
    if math.prod(domain[name].size for name in names) > _MOST_CELLS:
        raise PlanError("must have at most 2^31 cells", key="histogram", given=list(names), fix="Ask for fewer.")
    return CompiledTally(names, where, tally.name if isinstance(tally, CellSums) else None)


def numbers_of(domain: Domain, name: str) -> tuple[int, int]:
    """Return the number at an attribute's first position, and how far one is from the next, in its unit."""
    return domain[name].number(0), domain[name].spacing


def items_of(domain: Domain, name: str) -> Attribute:
    """Return a set of items, or refuse what is none."""
    attribute = domain.attribute(name, key="item_counts")
    if not attribute.is_set:
        raise PlanError("must be a set of items", key="item_counts", given=name, fix="Ask for a histogram.")
    return attribute


def no_cells(names: tuple[str, ...]) -> PlanError:
    """Say that a set of items has no cells."""
    return PlanError("must not be a set of items", key="counts", given=list(names), fix="Ask for its item counts.")


def no_total(name: str) -> PlanError:
    """Say that an attribute has no numbers."""
    return PlanError("must be declared as integers or decimals", key="total", given=name, fix="Count it instead.")
