"""One list of laws for every engine: the counts are those of a slow reference that reads cell by cell in Python.

A table is a list of rows of plain Python values. Each engine gets the same table in its own way (typed columns,
columns of Python objects, a CSV in which everything is text), and must answer like the reference.
"""

import contextlib
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engines
from cell_readings import position, text
from rows_that_count import in_order
from tacit.errors import DataRefused, PolicyError
from tacit.policy.attributes import Attribute, Categories, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.where import where
from tacit.rows.rows import open_rows

Table = list[dict[str, Any]]
TYPES = {
    "a b": pa.string(),
    "n.1": pa.int64(),
    "q\"t's": pa.float64(),
    "^truth$": pa.bool_(),
    "small": pa.int8(),
    "x": pa.float64(),
    "y": pa.float64(),
    "who": pa.int64(),
    "when": pa.float64(),
    "item": pa.string(),
    "basket": pa.list_(pa.int64()),
    "names": pa.list_(pa.string()),
    "spelled": pa.list_(pa.string()),
    "reals": pa.list_(pa.float64()),
    "truths": pa.list_(pa.bool_()),
}
CELLS: dict[str, list[Any]] = {
    "a b": [
        *("x", "y", "3", "03", "3.0", "true", "TRUE", "été", "1e1", "X", "it's", "-.5"),
        "1e99",
        " 3",
        "",
        "5\n",
        None,
    ],
    "n.1": [-(2**63), -7, -1, 0, 1, 2, 3, 4, 9, 10, 11, 2**40, 2**63 - 1, None],
    "q\"t's": [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, 2.5, 3.0, 4.0, 9.999, 10.0, 10.5, -1.0, 1e300],
    "^truth$": [True, False, None],
    "small": [-128, -1, 0, 1, 3, 127, None],
    "x": [None, math.nan, math.inf, 0.0, 0.1, 0.7, 0.3 - 1e-17, 1.0, 1.0000001, -0.2],
    "y": [None, -10.0, -9.99, 0.0, 3.3333333333333335, 10.0, 11.0],
    "who": [1, 2, 3, 4, 5, None],
    "when": [None, math.nan, 1.0, 1.0, 2.0, 3.0, -1.0],
    "item": ["0", "1", "2", "3", "4", "7", "2.0", "pear", None],
    "basket": [None, [], [0], [1, 1], [4, 2, 0], [3, None, 9], [2, 3, 4, 0, 1]],
    "names": [None, [], ["pear"], ["fig", "pear", "fig"], ["kiwi", None, "plum", "fig"]],
    "spelled": [
        None,
        ["2", "2.0", "4"],
        ["4", " 2", "02"],
        ["03", "3", "pear"],
        ["2.", "4.", None],
        [],
        ["x", "2.0", "x", "pear"],
        ["4", "4.0", "4.", "2e0", "2.5"],
    ],
    "reals": [None, [1.0, 1.0, 3.0], [math.nan, 2.5, 3.0], [math.inf, 0.0, -0.0, 1.0], [], [9.0, None, 2.0]],
    "truths": [None, [True, False], [False, None, True], [], [True, True]],
}


# ---------------------------------------------------------------------- the reference


@dataclass(frozen=True)
class Case:
    """A domain, how rows belong to people, and what is asked."""

    domain: dict[str, Attribute]
    names: tuple[str, ...] = ()
    where: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The data columns that the case needs."""
        needed = [column for name in self.domain for column in self.raw(name)]
        needed += [self.options[key] for key in ("person", "order") if key in self.options]
        return list(dict.fromkeys(needed))

    def raw(self, name: str) -> tuple[str, ...]:
        attribute = self.domain[name]
        if isinstance(attribute, Grid):
            return attribute.of
        return (self.options.get("item", name),) if isinstance(attribute, Items) else (name,)


def records(case: Case, table: Table) -> list[tuple[Any, dict[str, int], dict[str, list[int]]]]:
    """Return (person, positions by attribute, items by attribute) for each row that counts."""
    person, order = case.options.get("person"), case.options.get("order")
    owned: dict[Any, Table] = {}
    for i, row in enumerate(table):
        if person is None or row[person] is not None:
            owned.setdefault(i if person is None else row[person], []).append(row)
    moved = case.options.get("moved")

    def when(row: dict[str, Any]) -> tuple[Any, ...]:
        cell = None if order is None else row[order]
        return (1, 0) if cell is None or math.isnan(cell) else (0, cell)

    def places_of(row: dict[str, Any]) -> dict[str, int]:
        """The places of a row's values; None where there is none."""
        return {
            name: position(attribute, [row[raw] for raw in case.raw(name)])
            for name, attribute in case.domain.items()
            if not isinstance(attribute, Items)
        }

    found = []
    for who, every in owned.items():
        rows = [row for row in every if None not in places_of(row).values()]
        if person is not None:
            rows = in_order(who, rows, places_of, case.domain, moved, when)[: case.options.get("per_person", 1)]
        found += [(who, places_of(row), sets_of(case, owned[who], places_of, when)) for row in rows]
    return found


def sets_of(case: Case, rows: Table, places_of: Any, when: Any) -> dict[str, list[int]]:
    """Return the items of each set that the rows of somebody have, of those rows that fit."""
    sets = {}
    for name, attribute in case.domain.items():
        if not isinstance(attribute, Items):
            continue
        single = Integers(attribute.first, attribute.first + attribute.count - 1)
        one: Attribute = single if isinstance(attribute.items, int) else Categories(attribute.items)
        held: dict[int, tuple[Any, ...]] = {}
        for other in rows:
            cell = other[case.raw(name)[0]]
            if None in places_of(other).values():
                continue
            for nth, item in enumerate((cell or []) if isinstance(cell, list | None) else [cell]):
                place = position(one, [item])
                if place is not None:
                    occurs = (when(other), nth, place)
                    held[place] = min(held.get(place, occurs), occurs)
        sets[name] = sorted(held, key=held.__getitem__)[: attribute.most_items]
    return sets


def expected(case: Case, table: Table) -> dict[str, Any]:
    domain = Domain(case.domain)
    test = None if case.where is None else where(case.where).compile(domain)
    picked = []
    for who, places, sets in records(case, table):
        axes = {}
        for name, place in places.items():
            attribute = case.domain[name]
            if isinstance(attribute, Grid):
                axes[f"{name}.row"], axes[f"{name}.column"] = divmod(place, attribute.columns)
            else:
                axes[name] = place
        for axis, _ in test.atoms if test else ():
            if "[" in axis.name:
                name, number_of = axis.name.rstrip("]").split("[")
                axes[axis.name] = int(int(number_of) in sets[name])
        if test is None or test.of_record(axes):
            picked.append((who, places, sets))
    cells = {
        (who if case.options.get("person") else i, tuple(p[n] for n in case.names))
        for i, (who, p, _) in enumerate(picked)
    }
    counts = np.zeros([case.domain[name].size for name in case.names], dtype=np.int64)
    for _, cell in cells:
        counts[cell] += 1
    answers: dict[str, Any] = {"counts": counts.tolist()}
    for name, attribute in case.domain.items():
        if isinstance(attribute, Integers):
            # every kept row counts: a sum over a person's distinct values would jump by more than a row moves
            answers[f"total {name}"] = sum(attribute.value(places[name]) for _, places, _ in picked)
        if isinstance(attribute, Items):
            items = np.zeros(attribute.count, dtype=np.int64)
            for _, _, sets in picked:
                items[sets[name]] += 1
            answers[f"items {name}"] = items.tolist()
    return answers


def answered(case: Case, source: Any) -> dict[str, Any]:
    domain = Domain(case.domain)
    rows = open_rows(source, domain, **case.options)
    test = None if case.where is None else where(case.where).compile(domain)
    counts = rows.counts(case.names, test)
    assert counts.dtype == np.int64
    answers: dict[str, Any] = {"counts": counts.tolist()}
    for name, attribute in case.domain.items():
        if isinstance(attribute, Integers):
            answers[f"total {name}"] = rows.total(name, test)
        if isinstance(attribute, Items):
            answers[f"items {name}"] = rows.item_counts(name, test).tolist()
    return answers


# ---------------------------------------------------------------------- the engines


def arrow(table: Table, columns: list[str]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in table], type=TYPES[name]) for name in columns})


def objects(table: Table, columns: list[str]) -> pd.DataFrame:
    made = {}
    for name in columns:
        cells = np.empty(len(table), dtype=object)
        cells[:] = [row[name] for row in table]
        made[name] = pd.Series(cells, dtype=object)
    return pd.DataFrame(made)


def csv_file(table: Table, columns: list[str], folder: Path) -> Path:
    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"'

    def shown(cell: Any) -> str:
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return ""
        return quoted(text(cell) or "")

    lines = [",".join(quoted(name) for name in columns)]
    # a leading constant column, because a line of one missing cell would be an empty line
    lines += [",".join(shown(row[name]) for name in columns) for row in table]
    path = engines.new_file(folder, "csv")
    path.write_text("\n".join(f"{'keep' if i == 0 else 1},{line}" for i, line in enumerate(lines)) + "\n", newline="")
    return path


ENGINES: dict[str, Callable[[Table, list[str], Path], Any]] = {
    **{
        name: lambda table, columns, folder, made=made: made(arrow(table, columns), folder)  # type: ignore[misc]
        for name, made in engines.ENGINES.items()
    },
    "pandas-objects": lambda table, columns, _: objects(table, columns),
    "csv": csv_file,
}
QUICK = ("pandas", "polars", "duckdb", "csv")

every_engine = pytest.mark.parametrize("engine", [*ENGINES, engines.SPARK])


@pytest.fixture
def made(request: pytest.FixtureRequest) -> Callable[[str, Table, list[str], Path], Any]:
    """Return what puts a table into an engine."""

    def make(engine: str, table: Table, columns: list[str], folder: Path) -> Any:
        if engine == "spark":
            return request.getfixturevalue("spark").createDataFrame(arrow(table, columns)).coalesce(1)
        return ENGINES[engine](table, columns, folder)

    return make


# ---------------------------------------------------------------------- the laws


def mixed_table(rows: int = 70) -> Table:
    """Every cell of every column, in turns of different lengths so that they meet in many ways."""
    cycles = {name: itertools.cycle(cells) for name, cells in CELLS.items()}
    return [{name: next(cycle) for name, cycle in cycles.items()} for _ in range(rows)]


TEXTS = Categories(["x", "y", "3", "été", "it's"])
PLACE = Grid(4, 3, of=("x", "y"), low=(0, -10), high=(1, 10), otherwise=(3, 2))
FIXED: dict[str, Case] = {
    "texts": Case({"a b": TEXTS}, ("a b",)),
    "texts or numbers": Case({"a b": Categories(["x", 3, "03", "3", True], otherwise="x")}, ("a b",)),
    "numbers in texts": Case({"a b": Integers(0, 10, otherwise="clip")}, ("a b",), "`a b` != 3"),
    "flags in texts": Case({"a b": Flag(otherwise=False)}, ("a b",)),
    "texts for numbers": Case({"n.1": Categories(["3", "x", "-1"], otherwise="x")}, ("n.1",), "`n.1` in ['3', 'x']"),
    "texts for reals": Case({"q\"t's": Categories(["3.0", "0.5", "no"], otherwise="no")}, ("q\"t's",)),
    "texts for truths": Case({"^truth$": Categories(["true", "no"], otherwise="no")}, ("^truth$",)),
    "steps": Case({"n.1": Integers(-1, 11, 3), "^truth$": Flag()}, ("^truth$", "n.1"), "`n.1` >= 2 or `^truth$`"),
    "clipped": Case(
        {"n.1": Integers(0, 9, 3, otherwise="clip"), "small": Integers(-2, 2, otherwise=0)}, ("small", "n.1")
    ),
    "reals": Case(
        {"q\"t's": Integers(0, 10, 2, otherwise="clip"), "small": Categories([0, 1, 300])}, ("small", "q\"t's")
    ),
    "grid": Case(
        {"place": PLACE, "small": Flag(otherwise=True)}, ("place",), "place.row > 0 and not place.column == 1"
    ),
    "grid of cells": Case({"p": Grid(4, 5, of=("n.1", "small"), otherwise="clip")}, ("p",)),
    "one column twice": Case(
        {
            "p": Grid(2, 2, of=("x", "y")),
            "q": Grid(3, 3, of=("x", "y"), otherwise="clip"),
            "x": Integers(0, 1, otherwise=1),
        },
        ("q", "x"),
        "p.row == 0",
        {"moved": frozenset()},
    ),
    "nothing fits": Case({"n.1": Categories(["77", "y"]), "small": Flag(otherwise=True)}, ("small", "n.1")),
    "nothing fits but otherwise": Case({"n.1": Categories(["77", "y"], otherwise="y")}, ("n.1",), "`n.1` == 'y'"),
    "all in one cell": Case({"a b": TEXTS, "n.1": Integers(0, 10, otherwise=5)}, (), "`n.1` in [1, 5, 9]"),
    "first row": Case({"a b": TEXTS, "n.1": Integers(0, 9, otherwise=0)}, ("n.1",), None, {"person": "who"}),
    "first by order": Case(
        {"n.1": Integers(0, 9, otherwise=0)}, ("n.1",), "`n.1` < 4", {"person": "who", "order": "when"}
    ),
    "first row, the second attribute public": Case(
        {"a b": TEXTS, "n.1": Integers(0, 9, otherwise=0), "place": PLACE},
        ("a b",),
        "`n.1` < 4 or place.column == 1",
        {"person": "who", "moved": frozenset({"a b", "place"})},
    ),
    "two rows by content": Case(
        {"a b": TEXTS, "n.1": Integers(0, 9, otherwise=0), "^truth$": Flag()},
        ("n.1", "^truth$"),
        None,
        {"person": "who", "per_person": 2},
    ),
    "two rows": Case(
        {"a b": Categories(["x", "y"], otherwise="y"), "n.1": Integers(0, 9)},
        ("a b",),
        None,
        {"person": "who", "per_person": 9, "order": "when"},
    ),
    "long items": Case({"item": Items(5), "small": Integers(-1, 3)}, ("small",), None, {"person": "who"}),
    "long items, few": Case(
        {"got": Items(5, at_most=2)},
        (),
        "got.has(3) or not got.has(0)",
        {"person": "who", "order": "when", "item": "item"},
    ),
    "long items by name": Case(
        {"item": Items(["pear", 2, "4"], at_most=2), "a b": Categories(["x", "o"], otherwise="o")},
        ("a b",),
        "`a b` == 'o' and not item.has('pear')",
        {"person": "who"},
    ),
}
WIDE: dict[str, Case] = {
    "lists of spelled numbers": Case({"spelled": Items(5, at_most=2)}, (), "spelled.has(2) or spelled.has(4)"),
    "lists of names and numbers": Case(
        {"spelled": Items(["pear", 2, "4", "03", "4."])}, (), "spelled.has(2) and not spelled.has('4')"
    ),
    "lists of names and numbers, few": Case(
        {"spelled": Items([4, "pear", "2.", 2], at_most=2), "small": Integers(-1, 3)},
        ("small",),
        "spelled.has(2) and small > 0 or spelled.has('2.')",
    ),
    "lists of texts for numbers": Case({"basket": Items(["3", "4", "pear"], at_most=1)}, (), "not basket.has('pear')"),
    "lists of reals": Case({"reals": Items(4, at_most=2)}, (), "reals.has(1) or not reals.has(3)"),
    "lists of truths": Case({"truths": Items(["true", 0], at_most=1)}, (), "truths.has('true')"),
    "two lists": Case(
        {"basket": Items(5, at_most=2), "names": Items(["pear", "fig"], at_most=1), "small": Integers(-1, 3)},
        ("small",),
        "basket.has(4) and small > 0 or names.has('fig') and not basket.has(0)",
    ),
    "lists": Case({"basket": Items(5)}, (), "basket.has(0)"),
    "lists, few": Case({"basket": Items(5, at_most=2), "small": Integers(-1, 3)}, ("small",), "small > 0"),
    "lists of names": Case({"names": Items(["fig", "plum"], at_most=1)}, (), "not names.has('fig')"),
    "lists and persons": Case(
        {"basket": Items(5, at_most=3), "names": Items(["fig", "pear"])},
        (),
        "names.has('fig')",
        {"person": "who", "order": "when"},
    ),
}


# Every case on engines that read in ways of their own; on those that share a way, and on Spark, which takes a second
# for each, one case for every branch. `make audit` runs all of them on all.
WHOLE_GRID = ("polars", "duckdb", "csv")
BRANCHES = {
    *("texts or numbers", "numbers in texts", "texts for reals", "grid", "first by order"),
    *("first row, the second attribute public", "two rows by content", "long items, few", "long items by name"),
    *("lists of names and numbers, few", "lists of reals", "lists of truths", "two lists", "lists and persons"),
}
# what other tests on Spark have too: of this file, of test_cells.py and of tests/property/test_rows_people.py
ELSEWHERE_ON_SPARK = {"texts or numbers", "texts for reals", "grid", "first by order", "long items, few", "two lists"}


def grid(cases: dict[str, Case], engines: list[str]) -> pytest.MarkDecorator:
    """Return each case on each engine; what shows no branch of its own is slow."""
    params = []
    for name, engine in itertools.product(cases, engines):
        marks = [pytest.mark.spark] if engine == "spark" else []
        shown = BRANCHES - ELSEWHERE_ON_SPARK if engine == "spark" else BRANCHES
        if engine not in WHOLE_GRID and name not in shown:
            marks.append(pytest.mark.slow)
        params.append(pytest.param(name, engine, marks=marks, id=f"{name}-{engine.replace(' ', '-')}"))
    return pytest.mark.parametrize(("name", "engine"), params)


def test_every_branch_is_a_case() -> None:
    assert {*FIXED, *WIDE} >= BRANCHES >= ELSEWHERE_ON_SPARK


@pytest.mark.one_in(16)
@grid(FIXED, [*ENGINES, "spark"])
def test_every_engine_counts_like_the_reference(made: Any, engine: str, name: str, tmp_path: Path) -> None:
    case, table = FIXED[name], mixed_table()
    assert answered(case, made(engine, table, case.columns, tmp_path)) == expected(case, table)


@pytest.mark.one_in(16)
@grid(WIDE, [*(engine for engine in ENGINES if engine != "csv"), "spark"])  # a CSV has no lists
def test_every_engine_with_lists_counts_items_like_the_reference(
    made: Any, engine: str, name: str, tmp_path: Path
) -> None:
    case, table = WIDE[name], mixed_table()
    assert answered(case, made(engine, table, case.columns, tmp_path)) == expected(case, table)


@pytest.mark.one_in(8)
@every_engine
def test_whole_numbers_beyond_a_float_are_exact_or_refused_by_type(made: Any, engine: str, tmp_path: Path) -> None:
    case = Case({"n.1": Integers(-(2**61), 2**62, 2**60, otherwise="clip")}, ("n.1",), "`n.1` > 0")
    table = [*mixed_table(), {"n.1": 2**61 - 1}, {"n.1": 2**61}]
    source = made(engine, table, case.columns, tmp_path)
    if engine in ("csv", "pandas", "pandas-objects"):  # texts, floats because of the missing cells, objects
        with pytest.raises(DataRefused, match="must have a whole-number type because its domain goes beyond 2"):
            answered(case, source)
    else:
        assert answered(case, source) == expected(case, table)


EARLIER_AND_LATER = [
    ("1700000000000000001", "1700000000000000002"),
    ("-1700000000000000002", "-1700000000000000001"),
    ("0012345678901234566", "0012345678901234567"),
    ("9999999999999999999", "10000000000000000000"),
    ("-10000000000000000000", "-9999999999999999999"),
    ("170000000000000000000000000000000000001", "170000000000000000000000000000000000002"),
    ("9" * 53 + "8", "9" * 54),
    ("2", "10"),
    ("-10", "-9.5"),
    ("12345678901234566.5", "1e18"),
    ("9", "1234567890123456\n"),
    ("1234567890123455x", "1234567890123456\n"),
    ("1234567890123456", "1234567890123456\n"),
    ("a", "b"),
]


@pytest.mark.one_in(8)
@every_engine
def test_texts_that_spell_numbers_of_any_length_are_ordered_as_numbers(made: Any, engine: str, tmp_path: Path) -> None:
    table = [
        {"who": who, "item": text, "small": 1 - place}  # of rows that tie, the other one would count
        for who, pair in enumerate(EARLIER_AND_LATER)
        for place, text in reversed(list(enumerate(pair)))
    ]
    source = made(engine, table, ["who", "item", "small"], tmp_path)
    rows = open_rows(source, Domain({"small": Integers(0, 1)}), person="who", order="item")
    assert rows.counts(("small",)).tolist() == [0, len(EARLIER_AND_LATER)]


@pytest.mark.one_in(8)
@every_engine
def test_rows_with_several_words_of_secrets_and_of_public_cells_are_ordered_by_all(
    made: Any, engine: str, tmp_path: Path
) -> None:
    # 41 and 31 bits, which do not fit into one word
    domain: dict[str, Attribute] = {"small": Integers(0, 2**40), "n.1": Integers(0, 2**30)}
    orders = list(itertools.permutations([0, 5, 9]))
    table = [{"who": who, "small": cell % 2, "n.1": cell} for who, cells in enumerate(orders * 4) for cell in cells]
    for moved in (frozenset({"n.1"}), frozenset({"n.1", "small"}), frozenset[str]()):
        case = Case(domain, (), "`n.1` == 0", {"person": "who", "moved": moved})
        found = answered(case, made(engine, table, case.columns, tmp_path))
        assert found == expected(case, table)
        assert 1 <= found["counts"] <= 20  # 8 of 24 by chance, and not all or none


@pytest.mark.one_in(8)
@every_engine
def test_an_empty_table_has_no_people(made: Any, engine: str, tmp_path: Path) -> None:
    case = FIXED["steps"]
    assert answered(case, made(engine, [], case.columns, tmp_path)) == expected(case, [])


@pytest.mark.one_in(8)
@every_engine
def test_a_column_without_any_value_is_missing_everywhere(made: Any, engine: str, tmp_path: Path) -> None:
    case = Case({"a b": Categories(["x", "o"], otherwise="o"), "n.1": Integers(0, 3, otherwise=2)}, ("a b", "n.1"))
    table = [{"a b": None, "n.1": None}] * 3
    assert answered(case, made(engine, table, case.columns, tmp_path)) == expected(case, table)


@pytest.mark.spark
def test_a_spark_frame_goes_out_where_one_came_in(made: Any, tmp_path: Path) -> None:
    case = FIXED["texts"]
    rows = open_rows(made("spark", mixed_table(), case.columns, tmp_path), Domain(case.domain))
    frame = rows.frame({"cell": [(0, 1), (2, 3)], "kind": ["a", 3], "count": np.array([1, 2])})
    assert rows.kind == "pyspark"
    assert [(row.cell, row.kind, row["count"]) for row in frame.collect()] == [([0, 1], "a", 1), ([2, 3], "3", 2)]


@pytest.mark.spark
def test_spark_counts_partitions_together(made: Any, tmp_path: Path) -> None:
    case = Case({"a b": TEXTS, "small": Flag(otherwise=True)}, ("a b", "small"), "small == True")
    table = mixed_table(300)
    source = made("spark", table, case.columns, tmp_path).repartition(5)
    assert answered(case, source) == expected(case, table)


ATTRIBUTES: dict[str, list[Attribute]] = {
    "a b": [
        TEXTS,
        Categories(["3", 3, "x", False], otherwise=3),
        Categories([True, 3, "x", "03"]),
        Integers(0, 12, 3, otherwise=6),
        Flag(),
    ],
    "n.1": [Integers(0, 10), Integers(-1, 11, 4, otherwise="clip"), Categories([3, "4", True]), Flag(otherwise=True)],
    "q\"t's": [Integers(0, 10, 5, otherwise=0), Integers(-1, 11), Categories(["0.5", 3, "x"], otherwise="x")],
    "^truth$": [Flag(), Categories(["false", "true"]), Integers(0, 1, otherwise=0), Categories([True, 0])],
    "place": [
        PLACE,
        Grid(2, 5, of=("x", "y"), low=(0, -10), high=(1, 10)),
        Grid(2, 3, of=("x", "y"), otherwise="clip"),
    ],
}
QUESTIONS = {
    "place": ["place.row == 1", "place.column in [0, 1]"],
    "a b": ["`a b` == 3", "`a b` in ['x', '03']", "not `a b` == False"],
    "n.1": ["`n.1` == 3", "`n.1` != 1"],
    "q\"t's": ["`q\"t's` > 2", "`q\"t's` == 3"],
    "^truth$": ["`^truth$` == True", "not `^truth$` == 'true'"],
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, Table]:
    chosen = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), min_size=1, max_size=3, unique=True))
    domain = {name: draw(st.sampled_from(ATTRIBUTES[name])) for name in chosen}
    names = tuple(draw(st.lists(st.sampled_from(chosen), unique=True)))
    askable = []
    for name in chosen:
        for question in QUESTIONS[name]:
            with contextlib.suppress(PolicyError):  # not a question about this attribute of the column
                where(question).compile(Domain(domain))
                askable.append(question)
    asked = draw(st.lists(st.sampled_from(askable), max_size=2)) if askable else []
    question = draw(st.sampled_from([" and ", " or "])).join(asked) or None
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options = {"person": "who", "per_person": draw(st.integers(1, 3))}
        if draw(st.booleans()):
            options["order"] = "when"
        options["moved"] = draw(st.none() | st.sets(st.sampled_from(chosen)).map(frozenset))
    case = Case(domain, names, question, options)
    row = st.fixed_dictionaries({name: st.sampled_from(CELLS[name]) for name in case.columns})
    return case, draw(st.lists(row, max_size=12))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("engine", QUICK)
@given(drawn=cases())
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_drawn_tables_are_counted_like_the_reference(
    engine: str, drawn: tuple[Case, Table], tmp_path_factory: pytest.TempPathFactory
) -> None:
    case, table = drawn
    source = ENGINES[engine](table, case.columns, tmp_path_factory.mktemp("drawn"))
    assert answered(case, source) == expected(case, table)


@pytest.mark.slow
@pytest.mark.parametrize("engine", QUICK)
@given(drawn=cases())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_drawn_tables_are_counted_like_the_reference(
    engine: str, drawn: tuple[Case, Table], tmp_path_factory: pytest.TempPathFactory
) -> None:
    case, table = drawn
    source = ENGINES[engine](table, case.columns, tmp_path_factory.mktemp("drawn"))
    assert answered(case, source) == expected(case, table)
