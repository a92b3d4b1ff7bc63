"""Lists of predicates count alike on every engine, over few cells and over many, for rows, people and items."""

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from engines import ENGINES, SPARK, in_engine
from tacit.release.estimate.measure import count_once
from tacit.release.session import open_for
from tacit.rows import rows as rows_module
from tacit.rows.counts import engine_tables

DOMAIN = tc.Domain({"age": tc.Integers(0, 9), "place": tc.Grid(3, 4, of=("r", "c")), "ward": tc.Categories(["A", "B"])})
LISTED = {
    "young": "age < 4",
    "young in B": "age < 4 and ward == 'B'",
    "far": "place.row >= 1 or not (place.column == 2)",
    "none here": "age == 9 and ward == 'A' and place.row == 2",
}
LUCK = np.random.default_rng(4)
TABLE = pa.table(
    {
        "id": LUCK.integers(0, 25, 60),
        "age": LUCK.integers(0, 10, 60),
        "r": LUCK.integers(0, 3, 60),
        "c": LUCK.integers(0, 4, 60),
        "ward": LUCK.choice(["A", "B", "C"], 60),  # C is not in the domain: such rows are dropped
    }
)
FRAME = TABLE.to_pandas().query("ward != 'C'")
IN_PANDAS = {
    "young": FRAME.age < 4,
    "young in B": (FRAME.age < 4) & (FRAME.ward == "B"),
    "far": (FRAME.r >= 1) | (FRAME.c != 2),
    "none here": (FRAME.age == 9) & (FRAME.ward == "A") & (FRAME.r == 2),
}


def counted(query, policy, source) -> list[int]:
    ((base,),) = (query.resolved(policy.domain).read_under(policy).plan(policy, 1).tallied,)
    _, (found,) = count_once([(base, policy)], open_for(policy, source))
    return found.tolist()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("joint", [2**20, 0])
@pytest.mark.parametrize("of", ["each row", "people", "rows"])
@pytest.mark.parametrize("engine", [*ENGINES, SPARK])
def test_every_predicate_counts_whom_it_picks(engine, of, joint, tmp_path, request, monkeypatch):
    """As pandas does: each row, or each person who has a row that it picks, or each row of a person."""
    monkeypatch.setattr(rows_module, "JOINT", joint)
    monkeypatch.setattr(engine_tables, "MOST_PILED", 0)
    source = in_engine(engine, TABLE, tmp_path, request)
    policy = tc.Policy(DOMAIN, tc.secrets.everything())
    expected = [int(picked.sum()) for picked in IN_PANDAS.values()]
    query = tc.counts(LISTED)
    if of != "each row":
        policy = tc.Policy(DOMAIN, tc.secrets.everything(), person="id", per_person=60)
        query = tc.counts(LISTED, of=of)
    if of == "people":
        expected = [FRAME.id[picked].nunique() for picked in IN_PANDAS.values()]
    assert counted(query, policy, source) == expected
    assert counted(tc.top_k(LISTED, 2, of=query.of), policy, source) == expected
    where = tc.counts(LISTED, where="ward == 'B'", of=query.of)
    in_b = [picked & (FRAME.ward == "B") for picked in IN_PANDAS.values()]
    assert counted(where, policy, source) == [FRAME.id[b].nunique() if of == "people" else int(b.sum()) for b in in_b]


@pytest.mark.parametrize("engine", [*ENGINES, SPARK])
def test_predicates_ask_for_items_as_well(engine, tmp_path, request):
    domain = tc.Domain({"clicked": tc.Items(3), "old": tc.Flag()})
    table = pa.table({"user": [1, 1, 2, 2, 3, 4], "clicked": [0, 1, 1, 7, 2, 1], "old": [True, True, *[False] * 4]})
    policy = tc.Policy(domain, tc.secrets.values({"clicked": [1]}), person="user", item="clicked")
    listed = ["clicked.has(1)", "clicked.has(0) and clicked.has(1)", "old and clicked.has(1)", "not clicked.has(1)"]
    found = counted(tc.above(listed, 2, at_most=1), policy, in_engine(engine, table, tmp_path, request))
    assert found == [3, 1, 1, 1]
