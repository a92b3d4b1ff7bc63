"""What a dependence is made from, what it says, and what is refused: by attribute, rule, value and fix."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc

TABLE = {("late", "late"): 0.3, ("late", "early"): 0.1, ("early", "early"): 0.6}
NAMES = ("arrival", "leaving")
NETWORK: dict[str, Any] = {
    "arrival": {"late": 0.5, "early": 0.5},
    "leaving": {"given": ["arrival"], "table": {"late": {"late": 1}, "early": {"late": 0.5, "early": 0.5}}},
}


def table(**options: Any) -> tc.Dependence:
    return tc.Dependence.from_table(TABLE, names=NAMES, **options)


# ---- made and asked -------------------------------------------------------------------------------------------------


def test_marginals_have_the_axes_that_were_asked_for() -> None:
    np.testing.assert_allclose(table().marginal("arrival", "leaving"), [[0.3, 0.1], [0.0, 0.6]], atol=1e-15)
    np.testing.assert_allclose(table().marginal("leaving", "arrival"), [[0.3, 0.0], [0.1, 0.6]], atol=1e-15)
    np.testing.assert_allclose(table().marginal("leaving"), [0.3, 0.7], atol=1e-15)
    assert table().values == {"arrival": ("late", "early"), "leaving": ("late", "early")}


def test_values_can_be_declared_with_some_that_are_impossible() -> None:
    dep = table(values={"leaving": ["early", "never", "late"]})
    np.testing.assert_allclose(dep.marginal("leaving"), [0.7, 0.0, 0.3], atol=1e-15)


def test_an_array_is_the_same_table() -> None:
    values = {"arrival": ["late", "early"], "leaving": ["late", "early"]}
    made = tc.Dependence.from_table(np.array([[0.3, 0.1], [0.0, 0.6]]), NAMES, values=values)
    assert made == table(values=values)
    assert made.fingerprint == table().fingerprint


def test_a_full_table_in_any_order_is_the_same() -> None:
    cells = dict.fromkeys(itertools.product("ab", (1, 2, 3), "xy"), 1 / 12)
    values = {"p": ["a", "b"], "q": [1, 2, 3], "r": ["x", "y"]}
    straight = tc.Dependence.from_table(cells, names=["p", "q", "r"])
    turned = tc.Dependence.from_table(dict(reversed(cells.items())), names=["p", "q", "r"], values=values)
    assert straight == turned
    assert straight.values == turned.values


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_counts_of_any_frame(kind: Any) -> None:
    rows = {"arrival": ["late", "late", "early", "early"], "leaving": ["late", "early", "early", "early"]}
    dep = tc.Dependence.from_counts(kind(rows))
    assert dep.names == NAMES
    np.testing.assert_allclose(dep.marginal("arrival", "leaving"), [[0.5, 0.0], [0.25, 0.25]], atol=1e-15)
    assert dep.values["arrival"] == ("early", "late")
    assert not dep.unprotected
    smooth = tc.Dependence.from_counts(kind(rows), ["leaving"], smoothing=1)
    np.testing.assert_allclose(smooth.marginal("leaving"), [4 / 6, 2 / 6], atol=1e-15)


def test_counts_of_cells_and_the_mark_of_private_rows() -> None:
    dep = tc.Dependence.from_counts({("late", "early"): 3, ("early", "early"): 1}, NAMES, unprotected=True)
    np.testing.assert_allclose(dep.marginal("arrival"), [0.75, 0.25], atol=1e-15)
    assert dep.unprotected
    assert "Unprotected" in str(dep)
    assert "unprotected" in repr(dep)
    assert dep != tc.Dependence.from_counts({("late", "early"): 3, ("early", "early"): 1}, NAMES)


def test_smoothing_makes_every_cell_possible() -> None:
    dep = tc.Dependence.from_counts({("late", "late"): 1, ("early", "early"): 1}, NAMES, smoothing=0.5)
    np.testing.assert_allclose(dep.marginal(*NAMES), np.array([[1.5, 0.5], [0.5, 1.5]]) / 4, atol=1e-15)


def test_a_network_nests_its_cases_or_names_them_by_tuples() -> None:
    late, early = {"late": {"no": 1}}, {"late": {"no": 0.5, "yes": 0.5}, "early": {"no": 0.2, "yes": 0.8}}
    cases = {("late", "late"): late["late"], **{("early", left): early[left] for left in early}}
    nested, flat = (
        tc.Dependence.from_network({**NETWORK, "absent": {"given": ["arrival", "leaving"], "table": written}})
        for written in ({"late": late, "early": early}, cases)
    )
    assert nested == flat
    pair = (NETWORK["leaving"]["given"], NETWORK["leaving"]["table"])
    assert tc.Dependence.from_network({**NETWORK, "leaving": pair}) == tc.Dependence.from_network(NETWORK)
    np.testing.assert_allclose(nested.marginal("absent"), [0.5 + 0.125 + 0.05, 0.125 + 0.2], atol=1e-15)
    assert "leaving given arrival" in str(nested)


def test_total_variation() -> None:
    other = tc.Dependence.from_table({("late", "late"): 0.4, ("early", "gone"): 0.6}, names=NAMES)
    assert table().total_variation(other) == pytest.approx(0.7, abs=1e-14)
    assert other.total_variation(table()) == pytest.approx(0.7, abs=1e-14)
    assert table().total_variation(other, "arrival") == pytest.approx(0, abs=1e-14)
    assert table().total_variation(table()) == pytest.approx(0, abs=1e-15)


def test_fingerprints_tell_numbers_names_and_values_apart() -> None:
    made = [
        table(),
        tc.Dependence.from_table({**TABLE, ("late", "late"): 0.31, ("late", "early"): 0.09}, names=NAMES),
        tc.Dependence.from_table(TABLE, names=("leaving", "arrival")),
        tc.Dependence.from_table({("late", "l"): 0.3, ("late", "e"): 0.1, ("early", "e"): 0.6}, names=NAMES),
        tc.Dependence.from_network(NETWORK),
    ]
    assert len(set(made)) == len(made)
    assert table() in set(made)


# ---- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({("late", "late"): 0.5, ("early", "early"): 0.4}, "table must sum to one; got 0.9"),
        ({("late", "late"): 1.5, ("early", "early"): -0.5}, "not negative; got -0.5"),
        ({("late", "late"): math.nan}, "finite and not negative; got nan"),
        ({("late", "late"): math.inf}, "got inf"),
        ({("late", "late"): "0.5"}, "must hold probabilities as numbers; got '0.5'"),
        ({("late", "late"): True}, "must hold probabilities as numbers; got True"),
        ({("late",): 1.0}, "one value for each of arrival, leaving"),
        ({"late": 1.0}, "one value for each of arrival, leaving"),
        ({("late", None): 1.0}, "leaving must have values that are not missing"),
        ({("late", math.nan): 1.0}, "leaving must have values that are not missing"),
        ({}, "at least one cell"),
        ([0.5, 0.5], "must be a mapping or an array, not a list"),
        (np.array([[0.5, 0.5]]), "values.arrival must be declared where a table is an array"),
    ],
)
def test_tables_that_are_refused(given: Any, says: str) -> None:
    with pytest.raises(tc.PolicyError) as refused:
        tc.Dependence.from_table(given, names=NAMES)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("arrival", "names must be a list of names; got 'arrival'"),
        (["arrival", "arrival"], "names must be different from each other; got 'arrival'"),
        (["arrival", 3], "names must be texts"),
        ([], "names must be texts, at least one"),
    ],
)
def test_names_that_are_refused(names: Any, says: str) -> None:
    with pytest.raises(tc.PolicyError) as refused:
        tc.Dependence.from_table(TABLE, names=names)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"arrival": ["late"]}, "table: arrival must be one of the declared values; got 'early'"),
        ({"leaves": ["late"]}, "values names an attribute that the table does not have; got 'leaves'"),
        ({"arrival": "late"}, "values.arrival must be a list of values"),
        ({"arrival": ["late", "late", "early"]}, "values.arrival must have at least one value, and each once"),
        (3, "values must be a mapping"),
    ],
)
def test_values_that_are_refused(values: Any, says: str) -> None:
    with pytest.raises(tc.PolicyError) as refused:
        table(values=values)
    assert says in str(refused.value)


def changed(name: str, given: Any) -> dict[str, Any]:
    return {**NETWORK, name: given}


def leaving(cases: Any, above: str = "arrival") -> dict[str, Any]:
    return changed("leaving", {"given": [above], "table": cases})


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        (changed("arrival", {"given": ["leaving"], "table": {}}), "arrival must not depend on itself"),
        (changed("arrival", {"given": ["arrival"], "table": {}}), "arrival must not depend on itself"),
        (changed("arrival", {"late": 0.5, "early": 0.4}), "arrival must sum to one; got 0.9"),
        (
            leaving({"late": {"late": 0.9}, "early": {"late": 1}}),
            "leaving: where arrival is late must sum to one; got 0.9",
        ),
        (
            leaving({"late": {"late": 1}}),
            "leaving must have a distribution for every case that can happen; got 'arrival is early'",
        ),
        (
            leaving({"late": {"late": 1}}, "arival"),
            "leaving.given must be attributes with a table; got 'arival'. Did you mean 'arrival'?",
        ),
        (
            leaving({"late": {"late": 1}, "soon": {"late": 1}}),
            "leaving: arrival must be one of the declared values; got 'soon'",
        ),
        (leaving({"late": 1.0}), "leaving must be a mapping with"),
        (changed("leaving", 0.5), "leaving must be a mapping, not a float"),
        ([], "tables must be a mapping"),
        ({}, "tables must be texts, at least one"),
        (changed("arrival", {"late": math.nan, "early": 1}), "arrival must hold probabilities that are finite"),
    ],
)
def test_networks_that_are_refused(tables: Any, says: str) -> None:
    with pytest.raises(tc.PolicyError) as refused:
        tc.Dependence.from_network(tables)
    assert says in str(refused.value)


def test_a_circle_is_named_in_full() -> None:
    row = {"x": {"x": 1}}
    circle = {name: {"given": [above], "table": row} for name, above in (("a", "b"), ("b", "c"), ("c", "a"))}
    with pytest.raises(tc.PolicyError, match="a given b given c given a"):
        tc.Dependence.from_network({"z": {"x": 1}, **circle})


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ({"a": ["canary-1", None]}, "a has missing values"),
        ({"a": ["canary-1", math.nan]}, "a has missing values"),
        ({"a": [["canary-1"]]}, "a has cells that are no single values"),
        (pd.DataFrame({"a": pd.array(["canary-1", pd.NA], dtype="string")}), "a has missing values"),
        (pd.DataFrame([["canary-1", 2]]), "frame must have columns with different names"),
        (pd.DataFrame([[1, 2]], columns=["canary-1", "canary-1"]), "frame must have columns with different names"),
        ({"a": []}, "frame must have at least one row"),
        ({"a": ["canary-1"], "b": []}, "frame must have columns of one length"),
        (3, "frame must be a frame or a mapping of columns, not an int"),
    ],
)
def test_frames_that_are_refused_without_a_word_about_rows(frame: Any, says: str) -> None:
    with pytest.raises(tc.PolicyError) as refused:
        tc.Dependence.from_counts(frame)
    assert says in str(refused.value)
    assert "canary" not in str(refused.value)


def test_rows_with_undeclared_values_are_refused_without_naming_them() -> None:
    with pytest.raises(tc.PolicyError, match=r"values\.a has values that are not declared") as refused:
        tc.Dependence.from_counts({"a": ["canary-1"]}, values={"a": ["x"]})
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("smoothing", [-1, math.nan, "1", True])
def test_smoothing_must_be_a_number(smoothing: Any) -> None:
    with pytest.raises(tc.PolicyError, match=r"smoothing must be a finite number, zero or more.* Write 0\.5"):
        tc.Dependence.from_counts({"a": ["x"]}, smoothing=smoothing)


def test_smoothing_of_very_many_cells_is_refused() -> None:
    rows = {f"a{place}": list(range(10)) for place in range(30)}
    assert tc.Dependence.from_counts(rows).marginal("a3").tolist() == pytest.approx([0.1] * 10)
    with pytest.raises(tc.PolicyError, match="smoothing needs a table"):
        tc.Dependence.from_counts(rows, smoothing=1)


def test_unknown_names_are_refused_when_asked() -> None:
    with pytest.raises(tc.PlanError, match=r"got 'arival'\. Did you mean 'arrival'"):
        table().marginal("arival")
    with pytest.raises(tc.PlanError, match="must have the same attributes"):
        table().total_variation(tc.Dependence.from_table({"a": 1}, names=["a"]))
    with pytest.raises(tc.PlanError, match="must be a dependence"):
        table().total_variation(TABLE)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"given": "a", "table": {"x": {"y": 1}}}, 'Write "given": ["arrival"], a list.'),
        ({"gven": ["a"], "table": {"x": {"y": 1}}}, "Did you mean 'given'?"),
        ({"given": ["a"], "tble": {"x": {"y": 1}}}, "Did you mean 'table'?"),
        ({"x": {"y": 1}}, 'Write {"given": ["arrival"], "table":'),
    ],
)
def test_a_conditional_table_that_is_written_wrong_is_refused_with_how_it_is_written(table: Any, said: str) -> None:
    with pytest.raises(tc.PolicyError) as refused:
        tc.Dependence.from_network({"a": {"x": 1.0}, "b": table})
    assert said in refused.value.fix
    assert refused.value.key.startswith("b")
