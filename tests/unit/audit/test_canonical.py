"""The canonical form of outputs: one text for what nobody can tell apart, two for everything else."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import enum
import itertools
import math
import pickle
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from tacit.audit.sampled_audits.canonical import MOST_FEATURES, canonical, inversions, taken_apart


@dataclass
class Answer:
    value: object

    def __repr__(self) -> str:
        return "the same for all"


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


Pair = namedtuple("Pair", "a b")


def chained(inner: Exception) -> Exception:
    outer = ValueError("outer")
    outer.__context__ = inner
    return outer


# Nobody could take any of these for another one of its line.
DIFFERENT = {
    "kinds of one": [
        1,
        1.0,
        True,
        "1",
        b"1",
        bytearray(b"1"),
        1 + 0j,
        Fraction(1),
        decimal.Decimal(1),
        None,
        [1],
        (1,),
    ],
    "numpy's kinds of one": [
        1,
        *(np.array(1).astype(kind)[()] for kind in ("i1", "i4", "i8", "u8", "f4", "f8", "f16", "?", "c16")),
        np.array(1),
        np.array([1]),
        np.array([[1]]),
        np.array([1], dtype=">i8"),
        np.array([1], dtype=object),
        np.array([1.0], dtype=object),
    ],
    "zeros": [0.0, -0.0, 0, False, complex(0, 0.0), complex(0, -0.0), complex(-0.0, 0), [0.0], [-0.0]],
    "what is no number": [math.nan, math.inf, -math.inf, None, "nan", np.float64("nan"), pd.NA, pd.NaT],
    "texts": ["a", "a ", "a\0", " a", "A", "ａ", "a\n", "'a'", b"a", "á", "a\u0301", "\ud800"],
    "long texts": ["x" * 10**4, "x" * 10**4 + "y", "x" * 10**4 + "\0", "x" * 5_000 + "y" + "x" * 4_999],
    "addresses": [
        "row at 0x11",
        "row at 0x12",
        "<object object at 0x7f0000000011>",
        "<object object at 0x7f0000000012>",
    ],
    "containers": [[], (), {}, set(), frozenset(), "", [()], ([],), [[]], Pair(1, 2), (1, 2), [1, 2], {1, 2}, {1: 2}],
    "dicts": [{"a": 1, "b": 2}, {"b": 2, "a": 1}, OrderedDict(a=1, b=2), {"a": 1}, {"a": 1.0}, {1: 1}, {True: 1}],
    "sets": [{1, 2}, {1.0, 2}, {1, 2, 3}, frozenset({1, 2}), {"1", "2"}],
    "times": [
        dt.date(2020, 1, 1),
        dt.datetime(2020, 1, 1),
        dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2020, 1, 1, fold=1),
        dt.time(0),
        dt.timedelta(0),
        *(np.datetime64("2020-01-01", unit) for unit in ("D", "h", "s", "ns")),
        np.timedelta64(0, "D"),
        np.datetime64("NaT"),
        pd.Timestamp("2020-01-01"),
    ],
    "masks": [
        np.array([1, 2]),
        *(np.ma.array([1, 2], mask=mask) for mask in ([0, 0], [0, 1], [1, 1])),
        np.ma.array([1, 3], mask=[0, 1]),
        np.ma.array([1, 2], mask=[0, 1], fill_value=7),
        np.ma.masked,
    ],
    "large arrays": [
        np.arange(9_999),
        np.arange(9_999)[::-1],
        np.arange(9_999.0),
        *(np.where(np.arange(9_999) == place, 1, 0) for place in (5_000, 5_001, 9_998)),
    ],
    "large arrays in dicts": [{"a": np.zeros(9_999)}, {"a": -np.zeros(9_999)}, {"a": np.zeros((9_999, 1))}],
    "structures": [
        np.array([(1, 2)], dtype=[("a", "i4"), ("b", "i4")]),
        np.array([(1, 2)], dtype=[("a", "i4"), ("c", "i4")]),
    ],
    "pandas": [
        pd.DataFrame({"a": [1]}),
        pd.DataFrame({"b": [1]}),
        pd.DataFrame({"a": [1.0]}),
        pd.DataFrame({"a": [1]}, index=[5]),
        pd.DataFrame({"a": [1]}, index=pd.Index([0], name="n")),
        pd.DataFrame({"a": [1], "b": [2]}),
        pd.DataFrame({"b": [2], "a": [1]}),
        pd.DataFrame([[1]], columns=pd.Index(["a"], name="n")),
        pd.Series([1]),
        pd.Series([1], name="a"),
        pd.Series([1], dtype="Int64"),
        pd.Series(["a"], dtype="category"),
        pd.Series(["a"], dtype=pd.CategoricalDtype(["a", "b"])),
        pd.Series(["a"], dtype=object),
        pd.Index([1]),
    ],
    "polars": [
        pl.DataFrame({"a": [1]}),
        pl.DataFrame({"b": [1]}),
        pl.DataFrame({"a": [1]}, schema={"a": pl.Int32}),
        pl.Series("a", [1]),
        pl.Series("b", [1]),
    ],
    "Arrow": [
        pa.table({"a": [1]}),
        pa.table({"b": [1]}),
        pa.table({"a": pa.array([1], pa.int32())}),
        pa.table({"a": [1]}, metadata={"true": "1"}),
        pa.array([1]),
        pa.array([1], pa.int8()),
        pa.scalar(1),
    ],
    "objects": [
        Answer(1),
        Answer(2),
        Answer(1.0),
        Slotted(1),
        Slotted(2),
        object(),
        Colour.RED,
        Colour.BLUE,
        Answer,
        int,
    ],
    "errors": [
        ValueError("a"),
        ValueError("b"),
        ValueError(),
        ValueError("a", 1),
        KeyError("a"),
        chained(KeyError("a")),
        chained(KeyError("b")),
        tc.PlanError("must not", key="a"),
        tc.PlanError("must not", key="b"),
    ],
}


@pytest.mark.parametrize("line", DIFFERENT)
def test_what_can_be_told_apart_has_another_text(line):
    said = [canonical(output) for output in DIFFERENT[line]]
    for (a, one), (b, other) in itertools.combinations(zip(DIFFERENT[line], said, strict=True), 2):
        assert one != other, (a, b)
    nested = [canonical([{"in": (output,)}]) for output in DIFFERENT[line]]
    assert len(set(nested)) == len(nested)


def test_relations_of_duckdb_are_told_apart():
    with duckdb.connect() as engine:
        asked = ("1 AS a", "1 AS b", "1::BIGINT AS a", "2 AS a", "NULL AS a")
        said = [canonical(engine.sql(f"SELECT {one}")) for one in asked]
        assert len(set(said)) == len(said)
        assert said == [canonical(engine.sql(f"SELECT {one}")) for one in asked]


@pytest.mark.parametrize("line", DIFFERENT)
def test_a_copy_has_the_same_text(line):
    for output in DIFFERENT[line]:
        if not isinstance(output, Exception):  # a copy of one does not hang on the others
            assert canonical(copy.deepcopy(output)) == canonical(output)


def test_equal_nans_are_equal_and_others_by_their_bits():
    assert canonical(float("nan")) == canonical(math.nan) == canonical(np.array([math.nan]).tolist()[0])
    assert canonical({"a": [math.nan]}) == canonical({"a": [float("nan")]})
    assert canonical(math.nan) != canonical(math.copysign(math.nan, -1))


def test_where_objects_lie_and_how_sets_are_stored_is_no_part_of_it():
    assert canonical(object()) == canonical(object())
    kept = [Answer(1) for _ in range(100)]
    assert len({canonical(one) for one in kept}) == 1
    assert canonical({"a", "b", "c"}) == canonical({"c", "b", "a"})
    assert canonical({8, 0}) == canonical({0, 8})


def test_what_holds_itself_ends():
    loop: list[object] = [1]
    loop.append(loop)
    assert canonical(loop) == "[1, <the same as 1 above>]"
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    with pytest.raises(tc.PlanError, match="nested more than 60 deep"):
        canonical(deep)


def test_what_cannot_be_copied_is_refused():
    for output in (lambda: 1, (one for one in ()), open(__file__, encoding="utf-8")):  # noqa: SIM115 - not read
        with pytest.raises(tc.PlanError, match="must return what can be compared"):
            canonical([output])
        getattr(output, "close", lambda: None)()


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.complex_numbers(),
)
outputs = st.recursive(
    cells,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(Answer, inner),
    ),
    max_leaves=12,
)


@given(outputs)
def test_the_text_depends_on_the_output_alone(output):
    found = taken_apart(output)
    assert found.text == canonical(copy.deepcopy(output))
    assert len(found.names) == len(found.features) <= MOST_FEATURES


@given(outputs, outputs)
def test_two_outputs_share_a_text_only_if_their_pickles_agree(one, other):
    """Pickles of trees keep type, value, order and bytes; only a shared part or a -nan may differ beyond that."""
    if canonical(one) == canonical(other):
        assert repr(one) == repr(other)
        assert type(one) is type(other)
    elif pickle.dumps(one) == pickle.dumps(other):
        raise AssertionError((one, other))


@given(st.lists(st.integers(0, 9), max_size=12))
def test_reversed_pairs_are_counted(values):
    slow = sum(a > b for a, b in itertools.combinations(values, 2))
    assert inversions(values) in (slow, sum(a >= b for a, b in itertools.combinations(values, 2)))
    if len(set(values)) == len(values):
        assert inversions(values) == slow


def test_features_of_a_text():
    found = taken_apart("dbca")
    features = dict(zip(found.names, found.features, strict=True))
    assert features["length of output"] == 4
    assert features["last letter of output"] == ord("a")
    assert features["reversed pairs of output"] == 5
    assert features["place of 'a' in output"] == 3
    assert taken_apart("about -3.5").form == "'about #'"
