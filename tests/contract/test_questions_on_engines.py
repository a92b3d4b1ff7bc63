"""Questions on lines, rectangles, clusters and weighted sums count alike on every engine: as their definitions say.

What a question adds noise to is counted from the rows in one pass, and compared with the sum over people of what one
person adds. Cells that do not fit, and their replacements, are among them.
"""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import tacit as tc
from engines import ENGINES, SPARK, in_engine
from tacit.policy.domain import positions
from tacit.release.estimate.measure import count_once
from tacit.release.session import open_for

DOMAIN = tc.Domain(
    {
        "age": tc.Integers(0, 7, otherwise="clip"),
        "dose": tc.Decimals(0, 1, step=0.5, otherwise=0),
        "place": tc.Grid(3, 4, of=("lat", "lon"), low=(0, 0), high=(3, 4), otherwise=(2, 3)),
        "sick": tc.Flag(otherwise=False),
    }
)
POLICY = tc.Policy(DOMAIN, tc.secrets.within(2, "age") | tc.secrets.within(1, "place") | tc.secrets.attributes("dose"))
QUERIES = [
    tc.ranges("age", "all"),
    tc.ranges("age", [[0, 3], [2, 7]], where="sick == False"),
    tc.rectangles("age", "dose", "all"),
    tc.rectangles("place", [[0, 1, 0, 2], [1, 2, 1, 3]], where="sick == True"),
    tc.clusters("age", "place", k=2),
    tc.total("age", weight="dose"),
    tc.total("age", weight="dose", by="sick"),
    tc.quantiles("age", [0.25, 0.5], where="age >= 1"),
]
# what a cell says, and what it counts as
AGES = {0.0: 0, 1.0: 1, 3.0: 3, 6.0: 6, 12.0: 7, -4.0: 0}
DOSES = {0.0: 0, 0.5: 0.5, 1.0: 1, None: 0, 0.3: 0}
PLACES = {(0.5, 0.5): (0, 0), (1.0, 3.5): (1, 3), (2.9, 1.2): (2, 1), (9.0, 0.0): (2, 3), (None, 1.0): (2, 3)}
SICK = {True: True, False: False, None: False}


def rows(many: int = 40) -> tuple[pa.Table, list[tuple[Any, ...]]]:
    """Return a table, and the record that each of its rows counts as."""
    picked = [
        tuple(list(cells)[(turn * (at + 1)) % len(cells)] for at, cells in enumerate((AGES, DOSES, PLACES, SICK)))
        for turn in range(many)
    ]
    ages, doses, places, sick = zip(*picked, strict=True)
    columns = {"age": ages, "dose": doses, "lat": [p[0] for p in places], "lon": [p[1] for p in places]}
    table = pa.table(
        {**{name: pa.array(cells, pa.float64()) for name, cells in columns.items()}, "sick": pa.array(sick)}
    )
    return table, [(AGES[a], DOSES[b], PLACES[c], SICK[d]) for a, b, c, d in picked]


TABLE, RECORDS = rows()


@cache
def measured(query: Any) -> tuple[list[Any], list[list[int]]]:
    """Return what noise is added to for a question, and what that is by its definition."""
    bases = [part.base for part in query.resolved(DOMAIN).plan(POLICY, Fraction(1)).parts]
    return bases, [definition(base) for base in bases]


def definition(base: Any) -> list[int]:
    """The sum over all people whom the question is about of what one of them adds."""
    picks = None if base.where is None else base.where.compile(DOMAIN)
    found = np.zeros(base.size(DOMAIN), dtype=np.int64)
    for record in RECORDS:
        if picks is None or picks.of_record(positions(DOMAIN, DOMAIN.record(dict(zip(DOMAIN, record, strict=True))))):
            found += base.added_by(dict(zip(DOMAIN, record, strict=True)), DOMAIN)
    return found.tolist()


@pytest.mark.one_in(8)
@pytest.mark.parametrize("engine", [*ENGINES, SPARK])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_question_counts_what_its_definition_says(query, engine, tmp_path, request):
    source = in_engine(engine, TABLE, tmp_path, request)
    bases, expected = measured(query)
    _, counted = count_once([(base, POLICY) for base in bases], open_for(POLICY, source))
    assert [found.tolist() for found in counted] == expected
    assert all(any(numbers) for numbers in expected)  # nobody at all would be no test
