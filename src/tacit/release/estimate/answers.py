"""True answers, from one pass over the rows. What is returned here must never leave the release stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt

from tacit.arrays import Ints
from tacit.errors import DataRefused
from tacit.plan.measure.measured import Measured
from tacit.plan.measure.tally import CellCounts, Tally
from tacit.policy.policy import Policy


class Countable(Protocol):
    """Rows that can be counted; see `rows/rows.py`."""

    def check(self, tally: Tally) -> None:
        """Refuse, without opening a row, what these rows can never answer."""

    def tally(self, tallies: Sequence[Tally]) -> list[npt.NDArray[Any]]:
        """Return what each tally asks for."""


def true_answers(query: Measured, rows: Countable, policy: Policy) -> Ints:
    """Return the true answers of a query, flat, in the order of its labels."""
    _, (answers,) = count_once([query], rows, policy)
    return answers


def count_once(
    queries: Sequence[Measured], rows: Countable, policy: Policy, *, people: bool = False
) -> tuple[int | None, list[Ints]]:
    """Return the true answers of each query, and with `people` how many people there are, from one pass over the rows.

    What several queries need is counted once.
    """
    needed = [query.tallies(policy) for query in queries]
    everybody = [CellCounts(())] if people else []
    asked = list(dict.fromkeys([*everybody, *(tally for tallies in needed for tally in tallies)]))
    found = dict(zip(asked, rows.tally(asked), strict=True))
    answers = [
        query.answers([found[tally] for tally in tallies], policy.domain)
        for query, tallies in zip(queries, needed, strict=True)
    ]
    return (int(found[CellCounts(())]) if people else None), answers


def check_people(people: int | None, declared: int | None) -> None:
    """Refuse rows of another number of people than is declared, if one is: it is public, and bounds rest on it."""
    if declared is not None and people != declared:
        fix = "Correct known.size; rows that the domain drops do not count. What was asked stays charged."
        raise DataRefused(f"must hold the declared number of people, {declared:,}", fix=fix)


def counts_of(tallies: Sequence[Tally], rows: Countable, policy: Policy) -> list[Ints]:
    """Return what is counted for a table, from one pass; rows of another number of people than declared are refused."""
    declared = policy.known_people
    everybody = [] if declared is None else [CellCounts(())]
    found = rows.tally([*everybody, *tallies])
    if everybody:
        check_people(int(found[0]), declared)
    return found[len(everybody) :]


def check_answerable(rows: Countable, query: Measured, policy: Policy) -> None:
    """Refuse, before anything is charged, what these rows can never answer for a public reason."""
    for tally in query.tallies(policy):
        rows.check(tally)
