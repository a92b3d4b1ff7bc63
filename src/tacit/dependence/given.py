"""Tables and networks as people write them: mappings of cells to probabilities, arrays, frames of rows, networks.

Everything is checked here, once. A refusal names the attribute, the rule, what was given and the fix. A frame may hold
people's rows, so no refusal repeats its cells. A Bayesian network has a table for each attribute, or one for each case
of its parents:

    {"arrival": {"late": 0.3, "early": 0.7},
     "leaving": {"given": ["arrival"], "table": {"late": {"late": 0.8, "early": 0.2}, "early": {"early": 1}}}}

Several parents nest in the order in which they are named, as in files; `{("late", "yes"): {..}}` means the same, and so
does the pair `(["arrival"], {..})` of parents and table. A case with probability zero may be left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from operator import eq, itemgetter
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats
from tacit.dependence.factor import MOST_CELLS, Codes, Factor, as_codes, eliminated
from tacit.errors import PolicyError, kind_of, nearest, word_or_kind

SUM_TOLERANCE: Final = 1e-9  # rounding of many terms; a table rounded to four digits is refused, not mended
_LISTS: Final = ("to_pylist", "to_list", "tolist")  # how columns of arrow tables, frames and arrays become lists


@dataclass(frozen=True, eq=False)
class Given:
    """Cells that were given: the values of each attribute, the positions of the cells, and a number for each."""

    values: tuple[tuple[Any, ...], ...]
    codes: Codes
    numbers: Floats


def listed(given: Any) -> tuple[Any, ...] | None:
    """Return the members of any iterable; None for a text and anything else."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return None
    try:
        return tuple(given)
    except TypeError:  # an array without an axis has __iter__, but cannot be iterated
        return None


def checked_names(
    names: Any, *, key: str = "names", fix: str = 'Write names=("arrival", "leaving").'
) -> tuple[str, ...]:
    """Return the names of attributes, or refuse."""
    found = listed(names)
    if found is None:
        raise PolicyError("must be a list of names", key=key, given=word_or_kind(names), fix=fix)
    if not found or not all(isinstance(name, str) and name for name in found):
        raise PolicyError("must be texts, at least one", key=key, given=list(found), fix=fix)
    twice = [name for name, times in Counter(found).items() if times > 1]
    if twice:
        raise PolicyError("must be different from each other", key=key, given=twice[0], fix="Name it once.")
    return tuple(str(name) for name in found)


def checked_values(values: Any, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the declared values of attributes by name, or refuse."""
    if values is None:
        return {}
    fix = 'Write values={"arrival": ["early", "late"]}.'
    if not isinstance(values, Mapping):
        raise PolicyError(f"must be a mapping, not {kind_of(values)}", key="values", fix=fix)
    found = {}
    for name, given in values.items():
        if name not in names:
            rule = "names an attribute that the table does not have"
            raise PolicyError(rule, key="values", given=word_or_kind(name), fix=fix)
        each = listed(given)
        if each is None or not all(isinstance(value, Hashable) for value in each):
            raise PolicyError("must be a list of values", key=f"values.{name}", given=word_or_kind(given), fix=fix)
        found[name] = each
        _check_labels(name, each)
        if len(set(each)) != len(each) or not each:
            rule = "must have at least one value, and each once"
            raise PolicyError(rule, key=f"values.{name}", given=list(each), fix=fix)
    return found


def cells_of(table: Any, names: tuple[str, ...], values: Any, *, what: str, key: str = "table") -> Given:
    """Return the cells of a mapping {(value, ..): number} or of an array with one axis for each name."""
    declared = checked_values(values, names)
    if isinstance(table, Mapping):
        return _of_mapping(table, names, declared, what=what, key=key)
    if isinstance(table, np.ndarray):
        return _of_array(table, names, declared, what=what, key=key)
    fix = 'Write {("late", "early"): 0.2, ..}, or an array and values={"arrival": [..], ..}.'
    raise PolicyError(f"must be a mapping or an array, not {kind_of(table)}", key=key, fix=fix)


def counted_rows(frame: Any, names: Any, values: Any) -> tuple[tuple[str, ...], Given]:
    """Return the cells of a frame of rows with their counts; no refusal repeats a row."""
    if isinstance(frame, Mapping) and frame and all(isinstance(one, Real) for one in frame.values()):
        order = checked_names(names)
        return order, cells_of(frame, order, values, what="counts", key="frame")
    present = _columns_of(frame)
    if names is None and (len(set(present)) < len(present) or not all(isinstance(name, str) for name in present)):
        # without a header, a name may be a cell
        raise PolicyError("must have columns with different names", key="frame", fix='Write names=["arrival", ..].')
    order = checked_names(present if names is None else names)
    missing = [name for name in order if name not in present]
    if missing:
        raise PolicyError("must be a column of the frame", key="names", given=missing[0], fix="Name columns it has.")
    columns = {name: _listed(frame[name], name) for name in order}
    declared = checked_values(values, order)
    if len({len(column) for column in columns.values()}) > 1:
        raise PolicyError("must have columns of one length", key="frame", fix="Give one value for each row.")
    for name, column in columns.items():
        if not all(isinstance(value, Hashable) for value in column):
            raise PolicyError("has cells that are no single values", key=name, fix="Leave this column out.")
        if any(map(_is_missing, column)):
            raise PolicyError("has missing values", key=name, fix="Drop such rows, or give them a value of their own.")
        if name in declared and not set(column) <= set(declared[name]):
            raise PolicyError("has values that are not declared", key=f"values.{name}", fix="Declare or merge them.")
    counts = Counter(zip(*columns.values(), strict=True))
    if not counts:
        raise PolicyError("must have at least one row", key="frame", fix="Give a table of probabilities instead.")
    # sorted, because the order of values must not reveal the order of rows
    found = {name: declared.get(name) or _ordered(set(column)) for name, column in columns.items()}
    return order, _of_mapping(counts, order, found, what="counts", key="frame")


def as_distribution(numbers: Floats, *, key: str, fix: str) -> Floats:
    """Return probabilities that sum to one, up to rounding; refuse others."""
    total = math.fsum(numbers)
    if abs(total - 1) > SUM_TOLERANCE:
        raise PolicyError("must sum to one", key=key, given=float(f"{total:.12g}"), fix=fix)
    return numbers / total


def _of_mapping(
    table: Mapping[Any, Any], names: tuple[str, ...], declared: Mapping[str, tuple[Any, ...]], *, what: str, key: str
) -> Given:
    cells = list(table)
    if not cells:
        raise PolicyError("must have at least one cell", key=key, given={}, fix="Write every possible cell.")
    if len(names) == 1:
        cells = [cell if type(cell) is tuple else (cell,) for cell in cells]
    if set(map(type, cells)) != {tuple} or set(map(len, cells)) != {len(names)}:
        wrong = next(cell for cell in cells if type(cell) is not tuple or len(cell) != len(names))
        rule = f"must have cells with one value for each of {', '.join(names)}"
        raise PolicyError(rule, key=key, given=wrong, fix="Write each cell as a tuple, in the order of the names.")
    numbers = as_numbers(list(table.values()), what=what, key=key)
    whole = _whole_product(cells) if not declared else None
    if whole is not None:
        for name, own in zip(names, whole, strict=True):
            _check_labels(name, own)
        return Given(whole, every_cell([len(own) for own in whole]), numbers)
    values, columns = [], []
    for row, name in enumerate(names):
        met = tuple(dict.fromkeys(map(itemgetter(row), cells)))
        _check_labels(name, met)
        own = declared.get(name, met)
        unknown = set(met) - set(own)
        if unknown:
            raise PolicyError(
                "must be one of the declared values",
                key=f"{key}: {name}",
                given=word_or_kind(next(value for value in met if value in unknown)),
                fix=f"Declared: {', '.join(map(str, own[:10]))}.",
            )
        place = {value: position for position, value in enumerate(own)}
        values.append(own)
        columns.append(np.fromiter(map(place.__getitem__, map(itemgetter(row), cells)), np.int64, len(cells)))
    codes = as_codes(columns, [len(each) for each in values], len(cells))
    return Given(tuple(values), codes, numbers)


def _whole_product(cells: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...] | None:
    """Return the values of each attribute if the cells are all of their combinations, the last one moving fastest.

    A full table of twenty attributes has a million cells; looking at each value of each cell would take seconds.
    """
    values: list[tuple[Any, ...]] = []
    stride = 1
    for row in range(len(cells[0]) - 1, -1, -1):
        own: dict[Any, None] = {}
        for at in range(0, len(cells), stride):
            if cells[at][row] in own:
                break
            own[cells[at][row]] = None
        values.append(tuple(own))
        stride *= len(own)
    values.reverse()
    if stride != len(cells) or not all(map(eq, cells, product(*values))):
        return None
    return tuple(values)


def every_cell(sizes: Sequence[int]) -> Codes:
    """Return all cells of a table, the last variable moving fastest."""
    cells, stride = math.prod(sizes), math.prod(sizes)
    columns = []
    for size in sizes:
        stride //= size
        columns.append(np.tile(np.repeat(np.arange(size, dtype=np.uint32), stride), cells // (size * stride)))
    return as_codes(columns, sizes, cells)


def _of_array(
    table: Any, names: tuple[str, ...], declared: Mapping[str, tuple[Any, ...]], *, what: str, key: str
) -> Given:
    missing = [name for name in names if name not in declared]
    if missing:
        fix = "List what its axis means."
        raise PolicyError("must be declared where a table is an array", key=f"values.{missing[0]}", fix=fix)
    values = tuple(declared[name] for name in names)
    shape = tuple(len(each) for each in values)
    if table.shape != shape:
        fix = "One axis for each name."
        raise PolicyError(f"must have the shape {shape} of its values", key=key, given=list(table.shape), fix=fix)
    if table.size > MOST_CELLS:
        fix = "Give possible cells as a mapping."
        raise PolicyError(f"must have at most {MOST_CELLS:,} cells", key=key, given=table.size, fix=fix)
    plain = table.dtype.kind in "fiu"
    numbers = _finite(table.ravel(), what, key) if plain else as_numbers(table.ravel().tolist(), what=what, key=key)
    return Given(values, every_cell(shape), numbers)


def as_numbers(given: list[Any], *, what: str, key: str) -> Floats:
    """Return probabilities or counts as numbers, or refuse the first that is none, infinite, or below zero."""
    wrong = {kind for kind in set(map(type, given)) if kind is bool or not issubclass(kind, Real)}
    if wrong:
        first = next(number for number in given if type(number) in wrong)
        raise PolicyError(f"must hold {what} as numbers", key=key, given=word_or_kind(first), fix="Write 0.25.")
    try:
        numbers = np.array(given, dtype=np.float64)
    except OverflowError:  # a whole number of more than three hundred digits
        numbers = np.array([math.inf])
    return _finite(numbers, what, key)


def _finite(given: Any, what: str, key: str) -> Floats:
    found: Floats = given.astype(np.float64)
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        rule = f"must hold {what} that are finite and not negative"
        fix = "Leave impossible cells out, or write 0."
        raise PolicyError(rule, key=key, given=float(found[np.argmax(bad)]), fix=fix)
    return found


def _check_labels(name: str, values: Sequence[Any]) -> None:
    for value in values:
        if _is_missing(value):
            fix = "Give it a name."
            raise PolicyError("must have values that are not missing", key=name, given=word_or_kind(value), fix=fix)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # a missing value that cannot be compared, or not a single value
        return True


def _columns_of(frame: Any) -> list[str]:
    """Return the names of a frame's columns: a mapping of columns, a pandas or polars frame, an arrow table."""
    if isinstance(frame, Mapping):
        return list(frame)
    names = getattr(frame, "column_names", None)
    names = getattr(frame, "columns", None) if names is None else names
    if names is None or not hasattr(frame, "__getitem__"):
        fix = 'Write from_counts(frame), or from_counts({"arrival": [..], "leaving": [..]}).'
        raise PolicyError(f"must be a frame or a mapping of columns, not {kind_of(frame)}", key="frame", fix=fix)
    return list(names)


def _listed(column: Any, name: str) -> list[Any]:
    if isinstance(column, list | tuple):
        return list(column)
    way = next((getattr(column, method) for method in _LISTS if hasattr(column, method)), None)
    if way is None:
        raise PolicyError(f"must be a column, not {kind_of(column)}", key=name, fix="Collect the frame first.")
    return list(way())


def _ordered(values: set[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(values))
    except TypeError:  # values of several types
        return tuple(sorted(values, key=lambda value: (type(value).__name__, str(value))))


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
    tables = {name: as_mapping(table) for name, table in tables.items()}
    parents = {name: parents_of(name, table, names) for name, table in tables.items()}
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


def as_mapping(table: Any) -> Any:
    """Return a table in its usual form, if it was given as a pair of parents and table."""
    if isinstance(table, tuple | list) and len(table) == 2:
        return {"given": table[0], "table": table[1]}
    return table


def _has_parents(table: Any) -> bool:
    return (
        isinstance(table, Mapping)
        and set(table) == {"given", "table"}
        and not any(isinstance(part, Real) for part in table.values())
    )


def parents_of(name: str, table: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return the parents in the order of a table's cases, or refuse one that is not among the names."""
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
            fix = nearest(parent, list(names))
            raise PolicyError("must be attributes with a table", key=f"{name}.given", given=parent, fix=fix)
    return found


def _refuse_misspelt(name: str, table: Mapping[Any, Any]) -> None:
    """Refuse a table that has something else than probabilities, and is not written with given and table."""
    others = [key for key, part in table.items() if isinstance(part, Mapping | list | tuple | str)]
    if not others:
        return
    wrong = next((key for key in others if key not in ("given", "table")), others[0])
    is_near = isinstance(wrong, str) and ("given" in table or "table" in table)
    rule = "must have a probability for each value, or the keys given and table"
    fix = f"{nearest(wrong, ['given', 'table'])} {_FIX}" if is_near and wrong not in ("given", "table") else _FIX
    raise PolicyError(rule, key=name, given=word_or_kind(wrong), fix=fix)


def _refuse_cycles(parents: Mapping[str, tuple[str, ...]]) -> None:
    done: set[str] = set()
    for start in parents:
        path = [start]
        iterators = [iter(parents[start])] if start not in done else []
        while iterators:
            above = next(iterators[-1], None)
            if above is None:
                iterators.pop()
                done.add(path.pop())
            elif above in path:
                circle = [*path[path.index(above) :], above]
                fix = "Turn or drop one of these arrows."
                raise PolicyError("must not depend on itself", key=above, given=" given ".join(circle), fix=fix)
            elif above not in done:
                path.append(above)
                iterators.append(iter(parents[above]))


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
            where = f" where {', '.join(map(str, case))}" if case else ""
            raise PolicyError(f"must be a mapping with at least one entry{where}", key=name, given=part, fix=_FIX)
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
        case_words = f"{name}: where {', '.join(f'{one} is {value}' for one, value in zip(above, case, strict=True))}"
        key = case_words if above else name
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
    possible = eliminated(known, above)
    there = set(map(tuple, factor.codes[1:].T.tolist()))
    for case in map(tuple, possible.codes.T.tolist()):
        if case not in there:
            case_words = ", ".join(f"{one} is {values[one][code]}" for one, code in zip(parents, case, strict=True))
            rule = "must have a distribution for every case that can happen"
            fix = "Add that case; only impossible ones may be left out."
            raise PolicyError(rule, key=name, given=word_or_kind(case_words), fix=fix)
