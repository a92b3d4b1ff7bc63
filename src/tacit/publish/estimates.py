"""Estimates from a published table: the frequency and the count of a value among many people, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanError, PolicyError, kind_of, nearest, sealed, word_or_kind
from tacit.policy.attributes import Categories
from tacit.policy.domain import Domain
from tacit.policy.where import Where
from tacit.policy.where import where as as_where
from tacit.publish.methods.intervals import interval_of
from tacit.publish.table import PublishedTable


@dataclass(frozen=True)
class Reconstruction:
    """An estimate of how many of `size` people have a value. `count` and `frequency` say the same."""

    count: float
    size: int
    deviation: float
    ends: Callable[[float], tuple[float, float]] = field(compare=False, repr=False)

    @property
    def frequency(self) -> float:
        """The estimated share of the people; of nobody, zero."""
        return self.count / self.size if self.size else 0.0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return an interval that contains the true count with this probability, and the estimate.

        It lies within 0 and the size, unless the estimate does not: then that is its end. For masked tables it follows
        from the law of the masks: one count of one group has at least this probability, and so have sums in nearly all
        settings that were measured (`publish/methods/intervals.py`). For other tables it uses the normal law, with
        about this probability: for a handful of people it is rough.
        """
        if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
            raise PlanError(
                "must lie between 0 and 1", key="level", given=word_or_kind(level), fix="For instance 0.95."
            )
        low, high = self.ends(level)
        return min(max(low, 0.0), self.count), max(min(high, float(self.size)), self.count)

    def frequency_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the same for the frequency."""
        low, high = self.interval(level)
        return (low / self.size, high / self.size) if self.size else (0.0, 0.0)


@sealed
def reconstruct(
    table: PublishedTable, where: Any = None, value: Any = None, *, nonnegative: bool = False
) -> Reconstruction:
    """Estimate how many people among some groups have a sensitive value, from a published table alone.

    Args:
        table: what was published.
        where: which people, by public columns: a predicate as in `tc.count`, or `{column: value}`; None: everybody.
        value: a sensitive value, or a list of them; of several columns, tuples.
        nonnegative: take the most likely counts that are zero or more, instead of the estimate without bias.
    """
    if not isinstance(table, PublishedTable):
        raise PlanError(f"must be a published table, not {kind_of(table)}", key="table", fix="Make one first.")
    rows = np.flatnonzero(chosen_groups(table, where))
    columns = chosen_values(table, value)
    sizes, published = table.sizes[rows], table.published[rows]
    unbiased = table.method.estimates(published, sizes)
    found = table.method.nonnegative(published, sizes) if nonnegative else unbiased
    count = float(found[:, columns].sum())
    deviation = float(np.sqrt(table.method.sum_variance(unbiased, sizes, columns)))

    def ends(level: float) -> tuple[float, float]:
        return interval_of(table.method, unbiased, sizes, columns, level)

    return Reconstruction(count, int(sizes.sum()), deviation, ends)


def chosen_groups(table: PublishedTable, where: Any) -> npt.NDArray[np.bool_]:
    """Return which groups a predicate holds for."""
    public, values = table.groups.columns.public, table.groups.values
    everybody = np.ones(len(table.sizes), np.bool_)
    if where is None:
        return everybody
    if isinstance(where, Mapping):
        for name, value in where.items():
            if name not in public:
                raise PlanError("must name public columns", key="where", given=name, fix=nearest(str(name), public))
            at = public.index(name)
            wanted = value if isinstance(value, list | tuple | set) else [value]
            unknown = [one for one in wanted if one not in values[at]]
            if unknown:  # the values of public columns are published
                fix = nearest(str(word_or_kind(unknown[0])), [str(one) for one in values[at]], most=10)
                rule = "must be a value of this column of the table"
                raise PlanError(rule, key=f"where.{name}", given=word_or_kind(unknown[0]), fix=fix)
            everybody &= np.isin(table.groups.which[:, at], [n for n, v in enumerate(values[at]) if v in wanted])
        return everybody
    if not isinstance(where, str | Where):
        rule = f"must be a predicate or {{column: value}}, not {kind_of(where)}"
        raise PlanError(rule, key="where", fix="For instance {'sex': 'Female'}.")
    domain = Domain({name: _categories(one) for name, one in zip(public, values, strict=True)})
    try:
        test = as_where(where).compile(domain)
    except PolicyError as refusal:
        refused = refusal.retold(PlanError, key="where")
    else:
        used = sorted({axis.name for axis, _ in test.atoms})
        places = table.groups.which[:, [public.index(name) for name in used]]
        distinct, of = np.unique(places, axis=0, return_inverse=True)
        holds = [test.of_record(dict(zip(used, map(int, one), strict=True))) for one in distinct]
        return np.array(holds, np.bool_)[of.ravel()]
    raise refused


def _categories(values: Any) -> Categories:
    plain = all(isinstance(value, str | int | bool) for value in values)
    return Categories(values if plain else [str(value) for value in values], ordered=True)


def chosen_values(table: PublishedTable, value: Any) -> list[int]:
    """Return the columns of the sensitive values that were named."""
    known = table.values
    wanted = value if isinstance(value, list) else [value]
    missing = [one for one in wanted if one not in known]
    if missing or not wanted:
        given = word_or_kind(missing[0]) if missing else []
        fix = nearest(str(given), [str(one) for one in known], most=10)
        raise PlanError("must be a sensitive value of the table", key="value", given=given, fix=fix)
    return sorted({known.index(one) for one in wanted})
