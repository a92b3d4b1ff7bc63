"""Bayesian networks as people write them: a table for each attribute, or one for each case of its parents.

    {"arrival": {"late": 0.3, "early": 0.7},
     "leaving": {"given": ["arrival"], "table": {"late": {"late": 0.8, "early": 0.2}, "early": {"early": 1}}}}

Several parents nest in the order in which they are named, as in files; `{("late", "yes"): {..}}` means the same, and so
does the pair `(["arrival"], {..})` of parents and table. A case with probability zero may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.dependence.factor import Factor, eliminated
from tacit.dependence.given_tables import as_distribution, as_numbers, cells_of, checked_names, checked_values
from tacit.errors import PolicyError, kind_of, nearest, word_or_kind

_FIX = 'Write {"given": ["arrival"], "table": {"late": {"early": 0.2, "late": 0.8}, ..}}.'
_SUM_FIX = "Write every possible value, or divide by the sum."


@dataclass(frozen=True, eq=False)
class GivenNetwork:
    """A checked network: for each attribute its values, its parents, and its conditional table."""

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    parents: tuple[tuple[int, ...], ...]
    factors: tuple[Factor, ...]
    probabilities: tuple[Floats, ...]


def read_network(tables: Any, values: Any) -> GivenNetwork:
    """Return the network that the conditional tables make, or refuse."""
    if not isinstance(tables, Mapping):
        raise PolicyError(f"must be a mapping, not {kind_of(tables)}", key="tables", fix="Give a table for each name.")
    names = checked_names(tables, key="tables")
    tables = {name: _as_mapping(table) for name, table in tables.items()}
    parents = {name: _parents(name, table, names) for name, table in tables.items()}
    _refuse_cycles(parents)
    cases = {name: dict(_cases(name, table, len(parents[name]))) for name, table in tables.items()}
    declared = checked_values(values, names)
    met = {name: declared.get(name) or _met(cases[name]) for name in names}
    place = {name: position for position, name in enumerate(names)}
    found: dict[str, tuple[Factor, Floats]] = {}
    for name in _parents_first(parents):
        above = tuple(place[parent] for parent in parents[name])
        factor, numbers, is_whole = _conditional(name, cases[name], parents[name], met, (place[name], *above))
        if not is_whole:
            _refuse_missing_cases(name, factor, above, [one for one, _ in found.values()], parents[name], met)
        found[name] = factor, numbers
    return GivenNetwork(
        names,
        tuple(met[name] for name in names),
        tuple(tuple(place[parent] for parent in parents[name]) for name in names),
        tuple(found[name][0] for name in names),
        tuple(found[name][1] for name in names),
    )


def _as_mapping(table: Any) -> Any:
    if isinstance(table, tuple | list) and len(table) == 2:
        return {"given": table[0], "table": table[1]}
    return table


def _has_parents(table: Any) -> bool:
    return (
        isinstance(table, Mapping)
        and set(table) == {"given", "table"}
        and not any(isinstance(part, Real) for part in table.values())
    )


def _parents(name: str, table: Any, names: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(table, Mapping):
        raise PolicyError(f"must be a mapping, not {kind_of(table)}", key=name, fix=_FIX)
    if not _has_parents(table):
        _refuse_misspelt(name, table)
        return ()
    listed = table["given"]
    is_empty = isinstance(listed, list | tuple) and not listed
    fix = 'Write "given": ["arrival"], a list.'
    found = () if is_empty else checked_names(listed, key=f"{name}.given", fix=fix)
    for parent in found:
        if parent not in names:
            raise PolicyError(
                "must be attributes with a table", key=f"{name}.given", given=parent, fix=nearest(parent, list(names))
            )
    return found


def _refuse_misspelt(name: str, table: Mapping[Any, Any]) -> None:
    """Refuse a table that has something else than probabilities, and is not written with given and table."""
    others = [key for key, part in table.items() if isinstance(part, Mapping | list | tuple | str)]
    if not others:
        return
    wrong = next((key for key in others if key not in ("given", "table")), others[0])
    is_near = isinstance(wrong, str) and ("given" in table or "table" in table)
    raise PolicyError(
        "must have a probability for each value, or the keys given and table",
        key=name,
        given=word_or_kind(wrong),
        fix=f"{nearest(wrong, ['given', 'table'])} {_FIX}" if is_near and wrong not in ("given", "table") else _FIX,
    )


def _refuse_cycles(parents: Mapping[str, tuple[str, ...]]) -> None:
    done: set[str] = set()
    for start in parents:
        path = [start]
        ways = [iter(parents[start])] if start not in done else []
        while ways:
            above = next(ways[-1], None)
            if above is None:
                ways.pop()
                done.add(path.pop())
            elif above in path:
                circle = [*path[path.index(above) :], above]
                raise PolicyError(
                    "must not depend on itself",
                    key=above,
                    given=" given ".join(circle),
                    fix="Turn or drop one of these arrows.",
                )
            elif above not in done:
                path.append(above)
                ways.append(iter(parents[above]))


def _parents_first(parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    found: list[str] = []
    waiting = list(parents)
    while waiting:
        ready = [name for name in waiting if all(parent in found for parent in parents[name])]
        found += ready
        waiting = [name for name in waiting if name not in ready]
    return found


def _cases(name: str, table: Any, depth: int) -> Iterator[tuple[tuple[Any, ...], Mapping[Any, Any]]]:
    """Yield the values of the parents and the distribution in that case, from nested mappings or from tuples."""

    def below(part: Any, case: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Mapping[Any, Any]]]:
        if not isinstance(part, Mapping) or not part:
            said = f" where {', '.join(map(str, case))}" if case else ""
            raise PolicyError(f"must be a mapping with at least one entry{said}", key=name, given=part, fix=_FIX)
        if len(case) == depth:
            yield case, part
            return
        for value, rest in part.items():
            step = value if type(value) is tuple else (value,)
            if len(case) + len(step) > depth:
                raise PolicyError(f"must have {depth} values of parents in each case", key=name, given=value, fix=_FIX)
            yield from below(rest, (*case, *step))

    yield from below(table["table"] if _has_parents(table) else table, ())


def _met(cases: Mapping[tuple[Any, ...], Mapping[Any, Any]]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(value for distribution in cases.values() for value in distribution))


def _conditional(
    name: str,
    cases: Mapping[tuple[Any, ...], Mapping[Any, Any]],
    above: tuple[str, ...],
    values: Mapping[str, tuple[Any, ...]],
    variables: tuple[int, ...],
) -> tuple[Factor, Floats, bool]:
    """Return the table of an attribute and its parents, its probabilities, and whether it has every case."""
    columns: list[list[Any]] = []
    chances: list[Floats] = []
    for case, distribution in cases.items():
        said = f"{name}: where {', '.join(f'{one} is {value}' for one, value in zip(above, case, strict=True))}"
        key = said if above else name
        chances.append(
            as_distribution(
                as_numbers(list(distribution.values()), what="probabilities", key=key), key=key, fix=_SUM_FIX
            )
        )
        columns += [[value, *case] for value in distribution]
    numbers = np.concatenate(chances)
    table = dict(zip(map(tuple, columns), numbers.tolist(), strict=True))
    order = (name, *above)
    given = cells_of(table, order, {one: values[one] for one in order}, what="probabilities", key=name)
    possible = given.numbers > 0
    sizes = tuple(len(each) for each in given.values)
    codes = given.codes[:, possible]
    factor = Factor(variables, sizes, codes, np.log(given.numbers[possible]))
    return factor, given.numbers[possible], len(cases) == int(np.prod(sizes[1:], dtype=object))


def _refuse_missing_cases(
    name: str,
    factor: Factor,
    above: tuple[int, ...],
    known: Sequence[Factor],
    parents: tuple[str, ...],
    values: Mapping[str, tuple[Any, ...]],
) -> None:
    """Refuse a table without a case that can happen."""
    possible = eliminated(known, above)
    there = set(map(tuple, factor.codes[1:].T.tolist()))
    for case in map(tuple, possible.codes.T.tolist()):
        if case not in there:
            said = ", ".join(f"{one} is {values[one][code]}" for one, code in zip(parents, case, strict=True))
            raise PolicyError(
                "must have a distribution for every case that can happen",
                key=name,
                given=word_or_kind(said),
                fix="Add that case; only impossible ones may be left out.",
            )
