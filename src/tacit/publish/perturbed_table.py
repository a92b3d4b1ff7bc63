"""Make a perturbed table of rows, or of a session, whose budget then pays for it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tacit.errors import PlanError, sealed
from tacit.publish.groups import Columns
from tacit.publish.methods.criterion import Channel, as_retention
from tacit.publish.methods.perturbation import Uniform, retention_for
from tacit.publish.paid_tables import Choice, columns_for, published
from tacit.publish.table import AGAIN, PublishedTable
from tacit.release.planner import yes_or_no


@sealed
def perturbed(
    rows: Any,
    *,
    public: Any,
    sensitive: Any,
    values: Any = None,
    retention: Any = None,
    epsilon: Any = None,
    rho: Any = None,
    groups: Any = None,
    one_per: Any = None,
    again: bool = False,
) -> PublishedTable:
    """Publish a table in which each record keeps its sensitive value with probability `retention`.

    Args:
        rows: a path or a frame of any kind; or a `Session`, whose policy then must allow it and whose budget pays.
        public: the columns that are published as they are; they make personal groups.
        sensitive: the column that is perturbed; several are perturbed jointly, as one.
        values: every value that it may have; of several columns, a list for each. Of a session, its domain says it.
        retention: the probability that a record keeps its value; or say what is promised instead:
        epsilon: what one record may lose at most.
        rho: a pair (rho1, rho2), see `retention_for`.
        groups: what values of public columns become, so that some make one group: `{column: {value: name}}`, or what
            `generalise` returns.
        one_per: a public column that says which records hang together, such as a household: one record of each is
            picked by a fair coin, so that epsilon holds for all of them together. A session says `person` instead.
        again: publish it although another table about these columns was published; a session refuses it otherwise where
            one of both promises a criterion. The certificate then says that no criterion is promised any more.
    """
    columns = columns_for(rows, public, sensitive, values)
    choice = replace(uniform_choice(columns, retention, epsilon, rho), again=yes_or_no(again, AGAIN))
    return published(rows, columns, choice, groups, one_per)


def uniform_choice(columns: Columns, retention: Any = None, epsilon: Any = None, rho: Any = None) -> Choice:
    """Return uniform perturbation with the retention that was given, or that follows from what is promised."""
    method = Uniform(chosen_channel(columns, retention, epsilon, rho))
    return Choice(method.epsilon, lambda sizes: method, promises=False)


def chosen_channel(columns: Columns, retention: Any, epsilon: Any, rho: Any) -> Channel:
    """Return the perturbation with the retention that was given, or that follows from what is promised."""
    values = math.prod(columns.shape)
    if sum(one is not None for one in (retention, epsilon, rho)) != 1:
        rule = "must be given, or one of epsilon and rho instead"
        raise PlanError(rule, key="retention", fix="For instance retention=0.5.")
    given = retention if retention is not None else retention_for(values, epsilon=epsilon, rho=rho)
    return Channel(as_retention(given), values, columns.shape)
