"""Whatever is given where a policy, rows, a path, a question or an amount is expected: a refusal that quotes nothing.

Searched are the message, the arguments, what is chained, and every value in every frame of the traceback below the
caller's own: error trackers print these.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from tacit.errors import InternalError, TacitError, bare, sealed
from tacit.rows.draft import draft, draft_policy
from tacit.rows.guard import closed
from tacit.rows.rows import open_rows

CANARY = "CANARY-7f3a"
POLICY = tc.Policy(tc.Domain({"age": tc.Integers(0, 99)}), tc.secrets.within(5, "age"))
FRAME = pd.DataFrame({"age": [1, 2], "who": [CANARY, CANARY]})


class Telling:
    """An object that tells what it holds however it is asked: by failing."""

    def _fail(self, *_: Any) -> Any:
        raise ValueError(CANARY)

    __repr__ = __str__ = __fspath__ = __len__ = __iter__ = __bool__ = __eq__ = __float__ = __getattr__ = _fail
    __hash__ = None  # type: ignore[assignment]


class TellingText(str):
    """A text that fails to be one."""

    __slots__ = ()

    def __str__(self) -> str:
        raise ValueError(CANARY)

    __repr__ = __fspath__ = __str__


def lines() -> Iterator[dict[str, Any]]:
    yield {"age": 1, "who": CANARY}
    raise ValueError(CANARY)


SHAPES: dict[str, Callable[[], Any]] = {
    "csv text": FRAME.to_csv,
    "one line": lambda: f"1,{CANARY}\n",
    "one line without its end": lambda: f"1,{CANARY}",
    "long text": lambda: CANARY * 5000,
    "300 letters": lambda: (CANARY * 30)[:300],
    "300 letters and a suffix": lambda: (CANARY + ",") * 30 + ".csv",
    "sql": lambda: f"SELECT * FROM people WHERE who = '{CANARY}'",
    "nul": lambda: f"{CANARY}\0.csv",
    "surrogate": lambda: f"{CANARY}\ud800",
    "bytes": lambda: CANARY.encode(),
    "bytearray": lambda: bytearray(CANARY.encode()),
    "dict": lambda: {"age": [1], "who": [CANARY]},
    "list of dicts": lambda: [{"age": 1, "who": CANARY}],
    "list of tuples": lambda: [(1, CANARY)],
    "list of lists": lambda: [[1, CANARY]],
    "list of texts": lambda: [f"1,{CANARY}"],
    "tuple of csv": lambda: (FRAME.to_csv(),),
    "list of many texts": lambda: [CANARY] * 3,
    "set": lambda: {CANARY},
    "generator": lines,
    "reader": lambda: csv.DictReader(io.StringIO(FRAME.to_csv())),
    "open file": lambda: io.StringIO(FRAME.to_csv()),
    "array": lambda: np.array([[CANARY]]),
    "records": lambda: FRAME.to_records(),
    "series": lambda: FRAME["who"],
    "groups": lambda: FRAME.groupby("who"),
    "polars series": lambda: pl.Series([CANARY]),
    "arrow array": lambda: pa.array([CANARY]),
    "arrow batch": lambda: pa.record_batch({"who": [CANARY]}),
    "function": lambda: lambda: CANARY,
    "class": lambda: type(CANARY, (), {}),
    "exception": lambda: ValueError(CANARY),
    "telling": Telling,
    "telling text": lambda: TellingText(f"1,{CANARY}"),
    "list of telling": lambda: [Telling()],
}
FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: FRAME,
    "polars": lambda: pl.DataFrame({"who": [CANARY]}),
    "arrow": lambda: pa.table({"who": [CANARY]}),
}


def rows_in_place(given: Any) -> Any:
    return tc.Session(POLICY, given, 1)


def policy_in_place(given: Any) -> Any:
    return tc.Session(given, FRAME, 1)


def budget_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME, given)


def ledger_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME, 1, dataset="people", ledger=given)


def per_person_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME, 1, person="who", per_person=given)


def query_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME, 1).release(given, 0.5)


def epsilon_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME, 1).release(tc.count(), given)


def explained_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME, 1).explain(given, given, show=False)


def reserved_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME[["age"]], 1).reserve(given)


def one_reserved_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME[["age"]], 1).reserve([given])


def asked_in_place(given: Any) -> Any:
    return tc.Session(POLICY, FRAME, 1).asking(given, 0.5)


PLACES = tc.Policy(tc.Domain({"visited": tc.Items(["gym", "cafe"])}), tc.secrets.values({"visited": [1]}))


def on_a_map(**given: Any) -> Any:
    return tc.MapMonitor(**{"policy": PLACES, "threshold": 3, "epsilon": 1, **given})


def at_a_place(**given: Any) -> Any:
    return tc.PlaceMonitor(**{"policy": PLACES, "place": "gym", "threshold": 3, "epsilon": 1, "window": 2, **given})


def ledger_of_a_session(given: Any) -> Any:
    return tc.Session(POLICY, FRAME, 1, dataset="people", ledger=given)


# every public callable that takes rows, a policy, a path or a ledger, by the place in which something else is given
OTHERS: dict[str, Callable[[Any], Any]] = {
    "check_rows: policy": lambda given: tc.check_rows(given, FRAME),
    "check_rows: rows": lambda given: tc.check_rows(POLICY, given),
    "open_rows": lambda given: open_rows(given, POLICY.domain),
    "draft_policy": draft_policy,
    "draft": draft,
    "Policy.load": tc.Policy.load,
    "Policy: domain": lambda given: tc.Policy(given, tc.secrets.everything()),
    "Policy: secrets": lambda given: tc.Policy(POLICY.domain, given),
    "Policy: known": lambda given: tc.Policy(POLICY.domain, tc.secrets.everything(), known=given),
    "Ledger": tc.Ledger,
    "Ledger of a session": ledger_of_a_session,
    "audit.release": lambda given: tc.audit.release(given, tc.count(), 1),
    "explain: policy": lambda given: tc.explain(tc.count(), given, 1),
    "explain: query": lambda given: tc.explain(given, POLICY, 1),
    "largest_step: policy": lambda given: tc.largest_step(tc.count(), given),
    "largest_step: query": lambda given: tc.largest_step(given, POLICY),
    "MapMonitor: policy": lambda given: on_a_map(policy=given),
    "MapMonitor: state": lambda given: on_a_map(state=given),
    "MapMonitor: ledger": lambda given: on_a_map(ledger=given, dataset="town"),
    "MapMonitor: threshold": lambda given: on_a_map(threshold=given),
    "MapMonitor: epsilon": lambda given: on_a_map(epsilon=given),
    "PlaceMonitor: policy": lambda given: at_a_place(policy=given),
    "PlaceMonitor: state": lambda given: at_a_place(state=given),
    "PlaceMonitor: ledger": lambda given: at_a_place(ledger=given, dataset="town"),
    "PlaceMonitor: threshold": lambda given: at_a_place(threshold=given),
    "PlaceMonitor: place": lambda given: at_a_place(place=given),
    "PlaceMonitor: window": lambda given: at_a_place(window=given),
    "feed: step": lambda given: on_a_map().feed([], step=given),
}
# public callables that take none of these, and what is no callable
NO_ROWS = {
    *("ABSENT", "Categories", "Dates", "Decimals", "Domain", "Explanation", "Flag", "Grid", "Integers", "ItemCounts"),
    *("Items", "LargestStep", "ReleaseRecord", "RowsCheck", "__version__", "above", "below", "col", "count"),
    *("cumulative", "histogram", "known", "marginals", "mean", "median", "noise", "quantiles", "ranges", "secrets"),
    *("top_k", "total", "where"),
}


def test_every_public_callable_that_takes_rows_is_tried() -> None:
    tried = {re.split(r"[:. ]", name)[0] for name in OTHERS} | {"Session"}
    errors = {name for name in tc.__all__ if isinstance(getattr(tc, name), type) and "Error" in name}
    errors |= {"BudgetExceeded", "DataRefused", "Refused"}
    assert set(tc.__all__) - NO_ROWS - errors <= tried


ENTRIES = [
    rows_in_place,
    policy_in_place,
    budget_in_place,
    ledger_in_place,
    per_person_in_place,
    query_in_place,
    epsilon_in_place,
    explained_in_place,
    reserved_in_place,
    one_reserved_in_place,
    asked_in_place,
]


def told(raised: BaseException) -> list[str]:
    """Return where an exception tells the canary, or holds something that does."""
    found = [name for name in ("__cause__", "__context__") if getattr(raised, name) is not None]
    for place, value in (("str", str(raised)), ("args", repr(raised.args)), ("vars", repr(vars(raised)))):
        if CANARY in value:
            found.append(place)
    trace = raised.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_filename == __file__:
            continue  # the caller's own
        for name, value in frame.f_locals.items():
            if any(value is made for made in GIVEN) or isinstance(value, pd.DataFrame) or CANARY in safe(value):
                found.append(f"{frame.f_code.co_name}: {name}")
    return found


GIVEN: list[Any] = []


def safe(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return CANARY


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
@pytest.mark.parametrize("shape", [*SHAPES, *FRAMES])
def test_nothing_that_was_given_is_told(
    entry: Callable[[Any], Any], shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shape in FRAMES and entry is rows_in_place:
        return  # there they belong
    monkeypatch.chdir(tmp_path)
    given = (SHAPES | FRAMES)[shape]()
    GIVEN[:] = [given]
    with pytest.raises(TacitError) as caught:
        entry(given)
    assert told(caught.value) == []


RIGHT = {  # there they belong
    *((entry, kind) for entry in ("check_rows: rows", "open_rows", "draft_policy", "draft") for kind in FRAMES),
}


@pytest.mark.parametrize("entry", OTHERS)
def test_nothing_that_was_given_to_another_entry_is_told(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for shape, make in (SHAPES | FRAMES).items():
        if (entry, shape) in RIGHT:
            continue
        given = make()
        GIVEN[:] = [given]
        with pytest.raises(TacitError) as caught:
            OTHERS[entry](given)
        assert told(caught.value) == [], shape
    assert not any(CANARY in file.name for file in tmp_path.rglob("*"))


def test_a_batch_is_not_named_by_rows() -> None:
    for shape in ("dict", "list of dicts", "list of tuples", "array"):
        given = SHAPES[shape]()
        GIVEN[:] = [given]
        with pytest.raises(TacitError) as caught:
            on_a_map().feed([], batch_id=given)
        assert told(caught.value) == [], shape


@pytest.mark.parametrize("shape", ["csv text", "one line", "long text", "list of many texts", "set", "dict"])
def test_a_person_is_not_named_by_rows(shape: str) -> None:
    given = SHAPES[shape]()
    GIVEN[:] = [given]
    with pytest.raises(TacitError) as caught:
        tc.check_rows(POLICY, FRAME, person=given)
    assert told(caught.value) == []


def test_texts_of_any_sort_are_drafted() -> None:
    cells = pd.Series(list(np.array(["flu, mild", "cold"] * 15)), dtype=object)
    assert "flu, mild" in draft_policy(pd.DataFrame({"x": cells}))


class Panic(BaseException):
    """As an engine's own: no Exception."""


def noted(failure: BaseException) -> BaseException:
    failure.add_note(CANARY)
    return failure


@pytest.mark.parametrize(
    "failure", [Panic, ValueError, tc.DataRefused, KeyboardInterrupt, SystemExit], ids=lambda kind: kind.__name__
)
def test_whatever_is_raised_leaves_without_a_word_of_its_own(failure: type[BaseException]) -> None:
    def work(*_: Any) -> None:
        raise noted(failure("a fault" if issubclass(failure, TacitError) else CANARY))

    for entry in (sealed(work), lambda _: closed(lambda: work(1), InternalError("this was tried"))):
        with pytest.raises((TacitError, KeyboardInterrupt, SystemExit)) as caught:
            entry(CANARY)
        assert told(caught.value) == []
        assert not hasattr(caught.value, "__notes__")


def test_a_call_with_wrong_arguments_says_which() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'presense'") as caught:
        tc.Policy(POLICY.domain, tc.secrets.everything(), presense=CANARY)  # type: ignore[call-arg]
    assert told(caught.value) == []
    assert bare(caught.value).__traceback__ is None


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_a_wrong_shape_are_refused_with_the_forms_that_are_not(shape: str) -> None:
    with pytest.raises(tc.DataRefused) as caught:
        rows_in_place(SHAPES[shape]())
    assert str(caught.value).startswith(
        ("rows must be a path, a pandas, polars, Arrow", "rows given as a text must be the path of a file")
    )


@pytest.mark.parametrize("shape", [lambda: 3, lambda: [tc.count()], lambda: None, Telling, lambda: [Telling()], lines])
def test_what_is_no_list_of_plans_is_refused_and_nothing_is_said_to_be_charged(shape: Callable[[], Any]) -> None:
    session = tc.Session(POLICY, FRAME[["age"]], 1)
    with pytest.raises(tc.PlanError, match=r"plans must be a list of plans, .* Nothing was charged"):
        session.reserve(shape())
    assert session.remaining == 1


def test_a_policy_in_the_place_of_rows_is_refused() -> None:
    with pytest.raises(tc.DataRefused, match="A tacit Policy is none of them"):
        tc.Session(POLICY, POLICY, 1)


def test_a_refusal_by_the_columns_keeps_no_frame() -> None:
    given = FRAME.drop(columns="age")
    GIVEN[:] = [given]
    with pytest.raises(TacitError) as caught:
        tc.Session(POLICY, given, 1)
    assert told(caught.value) == []
