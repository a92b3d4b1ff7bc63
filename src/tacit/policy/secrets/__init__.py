"""What must stay secret: families of directed edges `hidden -> cover` between records.

In reading order:

    family          every behaviour of a family; several together; the edges of some people only: `where`
    anything        everything; records: these people look like anybody; attributes: records that differ in one of
                    them; values: these look like any other
    blocks          partition: values in one block
    distance        within: values up to a distance
    chosen          policies: each person has the secrets of the policy that they chose
    presence_pairs  taking_part: being in the data; pairs: a list; graph: the same, from a graph

A new family is a class and a line of `FAMILIES` below. Each takes `where`: only people with this have the secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Value
from tacit.policy.secrets.anything import Attributes, Everything, SensitiveRecords, SensitiveValues, values
from tacit.policy.secrets.blocks import Partition, exact_width
from tacit.policy.secrets.chosen import Policies, policies
from tacit.policy.secrets.distance import Within, within
from tacit.policy.secrets.family import Secrets, SomePeople, Union, restricted_to
from tacit.policy.secrets.presence_pairs import Pairs, TakingPart, graph, pairs
from tacit.policy.where import Where
from tacit.policy.where import where as read_predicate

FAMILIES: Final[dict[str, type[Secrets]]] = {
    one.keyword: one
    for one in (
        Everything,
        Attributes,
        Partition,
        Within,
        Pairs,
        SensitiveValues,
        SensitiveRecords,
        TakingPart,
        Policies,
    )
}


def everything(*, where: Where | str | None = None) -> Secrets:
    """Protect every value against every other: differential privacy."""
    return restricted_to(Everything(), where)


def attributes(*names: str, where: Where | str | None = None) -> Secrets:
    """Protect each of these attributes, one at a time (Blowfish's attribute graph)."""
    return restricted_to(Attributes(tuple(names)), where)


def partition(
    name: str,
    *,
    blocks: Iterable[Iterable[Value] | str] | None = None,
    width: float | Fraction | Sequence[float | Fraction] | None = None,
    where: Where | str | None = None,
) -> Secrets:
    """Protect the value within its block; the block stays public (Blowfish's partition graph).

    `blocks` lists values, or ranges as texts: [["flu", "cold"], ["hiv", "hepatitis"]] or ["0..17", "18..64"].
    """
    if width is not None and (isinstance(width, str) or not isinstance(width, int | float | Fraction | Iterable)):
        raise PolicyError("must be a whole number", key=f"secrets.partition.{name}.width", given=width, fix="Round it.")
    for block in blocks or ():
        if not isinstance(block, Iterable):
            rule = "must be a list of values or a range like '0..17'"
            raise PolicyError(rule, key=f"secrets.partition.{name}.blocks", given=block, fix="Write [[a, b], ..].")
    widths = None
    if width is not None:
        widths = tuple(exact_width(one) for one in (width if isinstance(width, Iterable) else (width,)))
    listed = None if blocks is None else tuple(b if isinstance(b, str) else tuple(b) for b in blocks)
    return restricted_to(Partition(name, widths, listed), where)


def records(where_sensitive: Where | str, *, where: Where | str | None = None) -> Secrets:
    """Protect everything about the people that a predicate calls sensitive (one-sided differential privacy)."""
    return restricted_to(SensitiveRecords(read_predicate(where_sensitive)), where)


def taking_part(*, where: Where | str | None = None) -> Secrets:
    """Protect being in the data, and nothing else (differential privacy of adding or removing one person)."""
    return restricted_to(TakingPart(), where)


__all__ = [
    "FAMILIES",
    "Attributes",
    "Everything",
    "Pairs",
    "Partition",
    "Policies",
    "Secrets",
    "SensitiveRecords",
    "SensitiveValues",
    "SomePeople",
    "TakingPart",
    "Union",
    "Within",
    "attributes",
    "everything",
    "graph",
    "pairs",
    "partition",
    "policies",
    "records",
    "taking_part",
    "values",
    "within",
]


def __dir__() -> list[str]:
    """Return what a user may want to complete: the families."""
    return [name for name in __all__ if name.islower()]
