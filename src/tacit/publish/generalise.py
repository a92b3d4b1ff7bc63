"""Generalised personal groups: public values that say the same about the sensitive attribute become one value.

If a colour tells nothing about a disease, people of all colours are one group, whether a table says so or not: whoever
adds them up estimates that group's frequencies, and the criterion must hold for it. Two values say the same if a
chi-square test of homogeneity does not separate their counts. Its degrees of freedom are the sensitive values that
occur, less one; the thesis' printed m is one too many, and more where values are missing.

By default each column is tested by itself. Two columns may tell nothing by themselves and everything together:
`joint=True` compares the combinations of all public columns that occur, and merges those.

Complete linkage merges values only if all pairs of them pass. Connected components, as in the thesis, chain: 77 values
that change from 10% to 90% in small steps become one.

The test reads counts. On public data, or on a table that was published already, it costs nothing. On people's rows, or
a table whose groups were made in this way, the result depends on them, no epsilon covers it, and `protected` is False.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from scipy.special import chdtrc

from tacit.amounts import as_fraction
from tacit.arrays import Floats, Ints
from tacit.errors import PlanError, sealed
from tacit.publish.groups import Generalisation, PersonalGroups, as_columns, personal_groups
from tacit.publish.methods.criterion import check_known
from tacit.publish.table import PublishedTable

LINKAGES: Final = ("complete", "components")
DEGREES: Final = ("bins", "values")
OTHERS: Final = "others"
MOST_COMBINATIONS: Final = 4_000  # all pairs of them are compared
_SHOWN: Final = 2  # combinations in the name of a group
_FARTHEST: Final = 1e6  # minus the logarithm of a chance: beyond, two values are as different as can be


@sealed
def generalise(
    source: Any,
    *,
    public: Any = None,
    sensitive: Any = None,
    values: Any = None,
    significance: Any = 0.05,
    linkage: str = "complete",
    joint: bool = False,
    public_data: bool = False,
) -> Generalisation:
    """Merge the values of each public column that say the same about the sensitive one, or combinations of all columns.

    Args:
        source: a published table that is perturbed uniformly, whose shown values are tested; or rows, with the columns
            as for `perturbed`.
        public: the columns whose values are merged.
        sensitive: the column that they may tell about.
        values: every value that it may have.
        significance: how unlikely a difference must be by chance to keep two values apart.
        linkage: `complete`, or `components` (connected components, as in the thesis).
        joint: compare combinations of all public columns, which then become one column; those that do not occur are its
            value `others`.
        public_data: these rows are public, or made up: what is found may be published.
    """
    check_known(linkage, LINKAGES, "linkage")
    level = float(as_fraction(significance, key="significance"))
    if not 0 < level < 1:
        raise PlanError("must lie between 0 and 1", key="significance", given=significance, fix="For instance 0.05.")
    if isinstance(source, PublishedTable):
        groups = replace(source.groups, counts=_shown(source))
    else:
        groups = personal_groups(source, as_columns(public, sensitive, values))
    released = isinstance(source, PublishedTable) and source.merges.protected
    if joint:
        return Generalisation(_combinations(groups, level, linkage), protected=public_data or released)
    maps: dict[str | tuple[str, ...], dict[Any, str]] = {}
    for at, (name, known) in enumerate(zip(groups.columns.public, groups.values, strict=True)):
        counts = np.zeros((len(known), groups.counts.shape[1]), np.int64)
        np.add.at(counts, groups.which[:, at], groups.counts)
        maps[name] = _named(known, same_impact(counts, level, linkage))
    return Generalisation(maps, protected=public_data or released)


def _combinations(groups: PersonalGroups, level: float, how: str) -> dict[str | tuple[str, ...], dict[Any, str]]:
    """Return what each combination of all public columns becomes; those that do not occur become `others`."""
    names = groups.columns.public
    if len(names) < 2:
        rule = "must have at least two public columns"
        raise PlanError(rule, key="joint", given=list(names), fix="Leave joint out.")
    if len(groups.which) > MOST_COMBINATIONS:
        rule = f"must have at most {MOST_COMBINATIONS:,} combinations of public values that occur"
        raise PlanError(rule, key="joint", given=len(groups.which), fix="Generalise one column at a time first.")
    listed = [tuple(known[int(at)] for known, at in zip(groups.values, line, strict=True)) for line in groups.which]
    clusters = same_impact(groups.counts, level, how).tolist()
    members: dict[int, list[tuple[Any, ...]]] = {}
    for value, one in zip(listed, clusters, strict=True):
        members.setdefault(one, []).append(value)
    called = {one: f"{at}: {_few(values)}" for at, (one, values) in enumerate(members.items(), start=1)}
    named = {value: called[one] for value, one in zip(listed, clusters, strict=True)}
    return {names: {**named, None: OTHERS}}


def _few(values: list[tuple[Any, ...]]) -> str:
    shown = " or ".join(", ".join(map(str, value)) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} or {len(values) - _SHOWN} more"


def _shown(table: PublishedTable) -> Ints:
    """Return the counts of shown values, if every record was perturbed by itself and alike; else refuse.

    Then two laws of true values are the same if and only if those of shown values are, and shown records are as
    independent as the test assumes. Estimates of the true counts vary more than it would expect.
    """
    if not table.method.appends:
        rule = "must be perturbed uniformly: for other tables it is not known how far counts differ by chance alone"
        fix = "Make a table with tc.publish.perturbed, or give public data."
        raise PlanError(rule, key="source", given=table.method.name, fix=fix)
    return table.published


def same_impact(counts: Ints, significance: float, how: str, degrees: str = "bins") -> Ints:
    """Return the number of the cluster that each row of counts belongs to.

    `degrees="values"` is the thesis' printed number of degrees of freedom.
    """
    check_known(degrees, DEGREES, "degrees")
    if len(counts) < 2:
        return np.zeros(len(counts), np.int64)
    chances = homogeneity(counts, degrees)
    if how == "components":
        return np.asarray(connected_components(chances > significance, directed=False)[1], np.int64)
    far = np.minimum(-np.log(np.maximum(chances, 1e-300)), _FARTHEST)
    np.fill_diagonal(far, 0.0)
    tree = linkage(squareform(far, checks=False), method="complete")
    return np.asarray(fcluster(tree, -np.log(significance) * (1 - 1e-12), criterion="distance"), np.int64) - 1


def homogeneity(counts: Ints, degrees: str = "bins") -> Floats:
    """Return for each pair of rows the chance of counts at least as different, if both follow one law (Eq 4.3)."""
    sizes = counts.sum(axis=1).astype(np.float64)
    found = np.ones((len(counts), len(counts)))
    for row in range(len(counts)):
        both = counts[row] + counts
        there = both > 0
        ratio = np.sqrt(np.maximum(sizes, 1) / max(sizes[row], 1))
        apart = (ratio[:, None] * counts[row] - counts / ratio[:, None]) ** 2 / np.maximum(both, 1)
        df = np.full(len(counts), counts.shape[1]) if degrees == "values" else there.sum(axis=1) - 1
        # one value alone, or nobody: no test is possible
        tested = (df > 0) & (sizes > 0) & (sizes[row] > 0)
        found[row] = np.where(tested, chdtrc(np.maximum(df, 1), (apart * there).sum(axis=1)), 1.0)
    return np.minimum(found, found.T)


def _named(values: tuple[Any, ...], clusters: Ints) -> dict[Any, str]:
    names = {
        one: " or ".join(str(value) for value, own in zip(values, clusters, strict=True) if own == one)
        for one in set(clusters.tolist())
    }
    return {value: names[int(one)] for value, one in zip(values, clusters, strict=True)}
