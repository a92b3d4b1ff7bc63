"""Whatever is given where a policy, rows, a path, a question or an amount is expected: a refusal that quotes nothing.

Searched are the message, the arguments, what is chained, and every value in every frame of the traceback below the
caller's own: error trackers print these.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from tacit.draft import draft, draft_policy
from tacit.errors import InternalError, TacitError, bare, sealed
from tacit.rows.guard import closed
from tacit.rows.rows import open_rows

CANARY = "CANARY-7f3a"
POLICY = tc.Policy(tc.Domain({"age": tc.Integers(0, 99)}), tc.secrets.within(5, "age"))
FRAME = pd.DataFrame({"age": [1, 2], "who": [CANARY, CANARY]})
SESSION = tc.Session(POLICY, FRAME, 10)


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


PLACES = tc.Policy(tc.Domain({"visited": tc.Items(["gym", "cafe"])}), tc.secrets.values({"visited": [1]}))


def on_a_map(**given: Any) -> Any:
    return tc.MapMonitor(**{"policy": PLACES, "threshold": 3, "epsilon": 1, **given})


def at_a_place(**given: Any) -> Any:
    return tc.PlaceMonitor(**{"policy": PLACES, "place": "gym", "threshold": 3, "epsilon": 1, "window": 2, **given})


COIN = tc.Dependence.from_table({"heads": 0.5, "tails": 0.5}, ["a"])
ABOUT: dict[str, Any] = {"public": ["age"], "sensitive": "income", "values": ["low", "high"], "retention": 0.5}
PRIVATE: dict[str, Any] = {**ABOUT, "lam": 0.3, "delta": 0.3}
TABLE = tc.publish.perturbed(pd.DataFrame({"age": [1, 2], "income": ["low", "high"]}), **ABOUT)
# every public callable that takes rows, a policy, a path or a ledger, by the place in which something else is given
ENTRIES: dict[str, Callable[[Any], Any]] = {
    "Session: rows": lambda given: tc.Session(POLICY, given, 1),
    "Session: policy": lambda given: tc.Session(given, FRAME, 1),
    "Session: budget": lambda given: tc.Session(POLICY, FRAME, given),
    "Session: ledger": lambda given: tc.Session(POLICY, FRAME, 1, dataset="people", ledger=given),
    "Session: per_person": lambda given: tc.Session(POLICY, FRAME, 1, person="who", per_person=given),
    "Session.release: query": lambda given: SESSION.release(given, 0.5),
    "Session.release: epsilon": lambda given: SESSION.release(tc.count(), given),
    "Session.explain": lambda given: SESSION.explain(given, given, show=False),
    "Session.reserve": lambda given: SESSION.reserve(given),
    "Session.reserve: one": lambda given: SESSION.reserve([given]),
    "Session.asking": lambda given: SESSION.asking(given, 0.5),
    "check_rows: policy": lambda given: tc.check_rows(given, FRAME),
    "check_rows: rows": lambda given: tc.check_rows(POLICY, given),
    "open_rows": lambda given: open_rows(given, POLICY.domain),
    "Written: rows": lambda given: open_rows(tc.Written(given), POLICY.domain),
    "draft_policy": draft_policy,
    "draft": draft,
    "Policy.load": tc.Policy.load,
    "Policy: domain": lambda given: tc.Policy(given, tc.secrets.everything()),
    "Policy: secrets": lambda given: tc.Policy(POLICY.domain, given),
    "Policy: known": lambda given: tc.Policy(POLICY.domain, tc.secrets.everything(), known=given),
    "Ledger": tc.Ledger,
    "Dependence.from_table": lambda given: tc.Dependence.from_table(given, ["age"]),
    "Dependence.from_table: values": lambda given: tc.Dependence.from_table({("x",): 1}, ["a"], values=given),
    "Dependence.from_counts": tc.Dependence.from_counts,
    "Dependence.from_network": tc.Dependence.from_network,
    "audit.exclusion: dependence": lambda given: tc.audit.exclusion(given, {}, {}),
    "audit.exclusion: sensitive": lambda given: tc.audit.exclusion(COIN, given, {}),
    "audit.exclusion: epsilon": lambda given: tc.audit.exclusion(COIN, {}, given),
    "audit.exclusion: released": lambda given: tc.audit.exclusion(COIN, {}, {"a": 1}).odds("a", {}, given),
    "audit.release": lambda given: tc.audit.release(given, tc.count(), 1),
    "audit.disclosure: rows": lambda given: tc.audit.disclosure(given, public=["age"], sensitive="income", scale=1),
    "audit.reconstruction: rows": lambda given: tc.audit.reconstruction(given, **PRIVATE),
    "audit.syntactic: frame": lambda given: tc.audit.syntactic(given, public=["age"], sensitive="income"),
    "publish.perturbed: rows": lambda given: tc.publish.perturbed(given, **ABOUT),
    "publish.perturbed: values": lambda given: tc.publish.perturbed(FRAME, **{**ABOUT, "values": given}),
    "publish.reconstruction_private: rows": lambda given: tc.publish.reconstruction_private(given, **PRIVATE),
    "publish.append: rows": lambda given: tc.publish.append(TABLE, given),
    "reconstruct": tc.reconstruct,
    "Applications": lambda given: tc.Applications(given, sensitive={}, coalitions={}, limit=1),
    "Applications: sensitive": lambda given: tc.Applications(COIN, sensitive=given, coalitions={}, limit=1),
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
    *(
        "ABSENT",
        "Application",
        "Categories",
        "Dates",
        "Decimals",
        "Domain",
        "Explanation",
        "Flag",
        "Grid",
        "Integers",
        "ItemCounts",
    ),
    *("Items", "LargestStep", "ReleaseRecord", "RowsCheck", "__version__", "above", "below", "clusters", "col"),
    *("counts", "cumulative", "histogram", "known", "marginals", "mean", "median", "noise", "quantiles", "ranges"),
    *(
        "rectangles",
        "secrets",
        "count",
        "top_k",
        "total",
        "where",
        "local",
        "plan",
        "true_records",
        "variance",
        "Times",
    ),
}


def test_every_public_callable_that_takes_rows_is_tried() -> None:
    tried = {re.split(r"[:. ]", name)[0] for name in ENTRIES}
    errors = {name for name in tc.__all__ if isinstance(getattr(tc, name), type) and "Error" in name}
    errors |= {"BudgetExceeded", "DataRefused", "Refused"}
    assert set(tc.__all__) - NO_ROWS - errors <= tried


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


RIGHT = {  # there they belong
    *product(("Session: rows", "check_rows: rows", "open_rows", "Written: rows", "draft_policy", "draft"), FRAMES),
    *product(["Dependence.from_counts"], (*FRAMES, "dict", "arrow batch")),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("entry", ENTRIES)
def test_nothing_that_was_given_is_told(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for shape, make in (SHAPES | FRAMES).items():
        if (entry, shape) in RIGHT:
            continue
        given = make()
        GIVEN[:] = [given]
        with pytest.raises(TacitError) as caught:
            ENTRIES[entry](given)
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
        tc.Session(POLICY, SHAPES[shape](), 1)
    assert str(caught.value).startswith(
        ("rows must be a path, a pandas, polars, Arrow", "rows given as a text must be the path of a file")
    )


@pytest.mark.parametrize("shape", [lambda: 3, lambda: [tc.count()], lambda: None, Telling, lambda: [Telling()], lines])
def test_what_is_no_list_of_plans_is_refused_and_nothing_is_said_to_be_charged(shape: Callable[[], Any]) -> None:
    session = tc.Session(POLICY, FRAME[["age"]], 1)
    with pytest.raises(tc.PlanError, match=r"plans must be a list of plans, .* Nothing was charged"):
        session.reserve(shape())
    assert session.remaining == 1


# ---- one thing in the place of another ------------------------------------------------------------------------------


class Odd:
    """Nothing that anybody expects."""


def drawn(data: Any, size: int) -> Any:
    return np.zeros(size, dtype=np.int64)


QUERY = tc.histogram("age")
OF_TWO = tc.Domain({"age": tc.Integers(0, 99), "old": tc.Flag()})
GROUPS = tc.Session(tc.Policy(OF_TWO, tc.secrets.within(5, "age")), pd.DataFrame({"age": [1], "old": [True]}), 1).split(
    "old"
)
RECORD = SESSION.release(tc.count(), 1)
# what there is to be mixed up: what users write, what they get, and what Python and its libraries have
THINGS: dict[str, Any] = {
    **{"nothing": None, "yes": True, "number": 7, "negative": -1, "decimal": 1.5, "nan": float("nan")},
    **{"text": "some text", "sql": "select * from people", "path": "policy.yaml", "bytes": b"x"},
    **{"list": [1, 2], "texts": ["a", "b"], "tuple": (1, 2), "mapping": {"a": 1}, "set": {1}, "nested": [[1, "a"]]},
    **{"function": drawn, "class": Odd, "object": Odd(), "array": np.arange(3), "frame": FRAME},
    **{"policy": POLICY, "domain": POLICY.domain, "attribute": tc.Integers(0, 3), "secrets": tc.secrets.everything()},
    **{"known": tc.known.size(), "where": tc.col("age") < 3, "query": QUERY, "plan": SESSION.plan(QUERY, 1)},
    **{"session": SESSION, "record": RECORD},
}
TEXTS = {"text", "sql", "path"}


def asked(make: Callable[[Any], Any], policy: tc.Policy = POLICY) -> Callable[[Any], Any]:
    return lambda given: tc.explain(make(given), policy, 1)


def declared(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: tc.Policy(POLICY.domain, make(given))


def knowing(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda given: tc.Policy(POLICY.domain, tc.secrets.everything(), known=[make(given)])


# each argument of each public callable: what is called with it, the word by which a refusal names it, and what fits
MIXED_UP: dict[str, tuple[Callable[[Any], Any], str, set[str]]] = {
    "Written: decimal": (lambda x: tc.Written("a.csv", decimal=x), "decimal", set()),
    "Written: format": (lambda x: tc.Written("a.csv", format=x), "format", set()),
    "Written: encoding": (lambda x: tc.Written("a.csv", encoding=x), "encoding", set()),
    "Integers: low": (lambda x: tc.Integers(x, 9), "integers", {"number", "negative"}),
    "Integers: otherwise": (lambda x: tc.Integers(0, 9, otherwise=x), "otherwise", {"nothing", "number"}),
    "Decimals: otherwise": (
        lambda x: tc.Decimals(0, 9, step="0.5", otherwise=x),
        "otherwise",
        {"nothing", "number", "decimal"},
    ),
    "Dates: by": (lambda x: tc.Dates("2020-01-01", "2020-02-01", by=x), "dates.by", set()),
    "Dates: otherwise": (lambda x: tc.Dates("2020-01-01", "2020-02-01", otherwise=x), "otherwise", {"nothing"}),
    "Times: step": (lambda x: tc.Times("2020-01-01", "2020-02-01", step=x), "times.step", set()),
    "Times: zone": (lambda x: tc.Times("2020-01-01", "2020-02-01", zone=x), "times.zone", {"nothing"}),
    "Times: otherwise": (lambda x: tc.Times("2020-01-01", "2020-02-01", otherwise=x), "otherwise", {"nothing"}),
    "Flag: otherwise": (tc.Flag, "otherwise", {"nothing", "yes"}),
    "Categories: ordered": (lambda x: tc.Categories(["a", "b"], ordered=x), "ordered", {"yes"}),
    "Categories: otherwise": (lambda x: tc.Categories(["a", "b"], otherwise=x), "otherwise", {"nothing"}),
    "Items: at_most": (lambda x: tc.Items(["a", "b"], at_most=x), "at_most", {"nothing"}),
    "Grid: rows": (lambda x: tc.Grid(x, 3), "grid", {"number"}),
    "ItemCounts: counts": (lambda x: tc.ItemCounts(x, people=5), "item counts", {"list", "tuple", "array"}),
    "ItemCounts: people": (lambda x: tc.ItemCounts([1], people=x), "people", {"number"}),
    "Domain": (tc.Domain, "domain", {"domain"}),
    "Domain: attribute": (lambda x: tc.Domain({"age": x}), "age", {"attribute"}),
    "Policy: domain": (lambda x: tc.Policy(x, tc.secrets.everything()), "domain", {"domain"}),
    "Policy: secrets": (lambda x: tc.Policy(POLICY.domain, x), "secrets", {"secrets"}),
    "Policy: known": (lambda x: tc.Policy(POLICY.domain, tc.secrets.everything(), known=x), "known", {"known"}),
    "Policy: presence": (
        lambda x: tc.Policy(POLICY.domain, tc.secrets.everything(), presence=x),
        "presence",
        {"nothing"},
    ),
    "Policy.load": (tc.Policy.load, "", set()),
    "Policy.covers": (POLICY.covers, "policy", {"policy"}),
    "Policy.about: person": (POLICY.about, "person", {"nothing", *TEXTS}),
    "Policy.about: per_person": (lambda x: POLICY.about("who", x), "per_person", {"nothing", "number"}),
    "secrets.attributes": (declared(tc.secrets.attributes), "", set()),
    "secrets.pairs": (declared(tc.secrets.pairs), "", set()),
    "secrets.pairs: one": (declared(lambda x: tc.secrets.pairs([x])), "", {"list", "tuple"}),
    "secrets.pairs: records": (declared(lambda x: tc.secrets.pairs([(x, x)])), "", set()),
    "secrets.partition": (declared(tc.secrets.partition), "", set()),
    "secrets.records": (declared(tc.secrets.records), "where", {"where"}),
    "secrets.values": (declared(tc.secrets.values), "values", set()),
    "secrets.values: one": (declared(lambda x: tc.secrets.values({"age": [x]})), "", {"number"}),
    "secrets.within": (declared(lambda x: tc.secrets.within(x, "age")), "within", {"number", "decimal"}),
    "secrets |": (declared(lambda x: tc.secrets.within(3, "age") | x), "secrets", {"secrets"}),
    "known.marginal": (knowing(tc.known.marginal), "", set()),
    "known.count": (knowing(tc.known.count), "", {"where"}),
    "col": (asked(lambda x: tc.count(tc.col(x) < 3)), "", set()),
    "col <": (asked(lambda x: tc.count(tc.col("age") < x)), "", {"number", "negative", "decimal"}),
    "where": (asked(lambda x: tc.count(tc.where(x))), "", {"where"}),
    "count": (asked(tc.count), "where", {"nothing", "where"}),
    "counts": (asked(tc.counts), "counts", set()),
    "histogram": (asked(tc.histogram), "histogram", set()),
    "histogram: where": (asked(lambda x: tc.histogram("age", where=x)), "where", {"nothing", "where"}),
    "marginals": (asked(tc.marginals), "marginals", set()),
    "cumulative": (asked(tc.cumulative), "cumulative", set()),
    "ranges": (asked(lambda x: tc.ranges(x, [[1, 2]])), "ranges", set()),
    "ranges: ranges": (asked(lambda x: tc.ranges("age", x)), "ranges", set()),
    "rectangles": (asked(lambda x: tc.rectangles(x, "all")), "rectangles", set()),
    "rectangles: rectangles": (asked(lambda x: tc.rectangles("age", "age", x)), "rectangles", set()),
    "total": (asked(tc.total), "total", set()),
    "total: by": (asked(lambda x: tc.total("age", by=x)), "", set()),
    "mean": (asked(tc.mean), "mean", set()),
    "variance": (asked(tc.variance), "variance", set()),
    "median": (asked(tc.median), "", set()),
    "quantiles": (asked(lambda x: tc.quantiles("age", x)), "quantiles", set()),
    "clusters": (asked(lambda x: tc.clusters(x, k=2)), "clusters", set()),
    "clusters: k": (asked(lambda x: tc.clusters("age", k=x)), "clusters.k", {"number"}),
    "top_k": (asked(lambda x: tc.top_k(x, 1), PLACES), "top_k", set()),
    "top_k: k": (asked(lambda x: tc.top_k("visited", x), PLACES), "k", {"number"}),
    "above": (asked(lambda x: tc.above(x, 3), PLACES), "above", set()),
    "above: threshold": (
        asked(lambda x: tc.above("visited", x, at_most=1), PLACES),
        "threshold",
        {"number", "list", "tuple"},
    ),
    "true_records": (asked(lambda x: tc.true_records(columns=x)), "", set()),
    "true_records: key": (asked(lambda x: tc.true_records(columns=["age"], key=x)), "", set()),
    "reconstruct": (tc.reconstruct, "table", set()),
    "reconstruct: where": (lambda x: tc.reconstruct(TABLE, where=x), "where", {"nothing", "domain"}),
    "publish.perturbed: public": (lambda x: tc.publish.perturbed(FRAME, **{**ABOUT, "public": x}), "", set()),
    "publish.perturbed: retention": (
        lambda x: tc.publish.perturbed(FRAME, **{**ABOUT, "retention": x}),
        "retention",
        set(),
    ),
    "Application": (lambda x: tc.Application("a", "to count", "count", x), "", {"path", "sql", "text", "texts"}),
    "Applications": (lambda x: tc.Applications(x, sensitive={}, coalitions={}, limit=1), "", set()),
    "local.warner": (tc.local.warner, "", {"number", "decimal"}),
    "local.mangat": (tc.local.mangat, "", {"number", "decimal"}),
    "below": (asked(lambda x: tc.below(x, 3), PLACES), "", set()),
    "below: threshold": (asked(lambda x: tc.below(tc.col("age") < 3, x)), "threshold", {"number"}),
    "explain: query": (lambda x: tc.explain(x, POLICY, 1), "query", {"query", "plan"}),
    "explain: policy": (lambda x: tc.explain(QUERY, x, 1), "policy", {"policy"}),
    "explain: epsilon": (lambda x: tc.explain(QUERY, POLICY, x), "epsilon", {"number", "decimal"}),
    "largest_step: query": (lambda x: tc.largest_step(x, POLICY), "query", {"query"}),
    "largest_step: policy": (lambda x: tc.largest_step(QUERY, x), "policy", {"policy"}),
    "check_rows: policy": (lambda x: tc.check_rows(x, FRAME), "policy", {"policy"}),
    "check_rows: rows": (lambda x: tc.check_rows(POLICY, x), "rows", {"frame"}),
    "Session: policy": (lambda x: tc.Session(x, FRAME, 1), "policy", {"policy"}),
    "Session: rows": (lambda x: tc.Session(POLICY, x, 1), "rows", {"frame"}),
    "Session: budget": (lambda x: tc.Session(POLICY, FRAME, x), "budget", {"number", "decimal"}),
    "plan: query": (lambda x: SESSION.plan(x, 1), "query", {"query"}),
    "plan: epsilon": (lambda x: SESSION.plan(QUERY, x), "epsilon", {"number", "decimal"}),
    "plan: consistent": (lambda x: SESSION.plan(QUERY, 1, consistent=x), "consistent", {"yes"}),
    "release: query": (lambda x: SESSION.release(x, 1e-6), "query", {"query"}),
    "release: epsilon": (lambda x: SESSION.release(QUERY, x), "epsilon", {"number", "decimal"}),
    "release: nonnegative": (lambda x: SESSION.release(QUERY, 1e-6, nonnegative=x), "nonnegative", {"yes"}),
    "session.explain: show": (lambda x: SESSION.explain(QUERY, 1, show=x), "show", {"yes", "nothing"}),
    "asking: at_most": (lambda x: SESSION.asking(x, 1e-6), "asking", {"number"}),
    "interval: level": (RECORD.interval, "level", set()),
    "save: folder": (RECORD.save, "folder", TEXTS),
    "Ledger": (tc.Ledger, "ledger", TEXTS),
    "noise.sample": (tc.noise.sample, "law", set()),
    "noise.replayed": (lambda x: tc.noise.replayed(x).__enter__(), "stream", set()),
    "noise.Keystream": (lambda x: tc.noise.Keystream(key=x), "key", {"nothing"}),
    "noise.geometric": (tc.noise.geometric, "scale", {"number", "decimal"}),
    "noise.geometric: size": (lambda x: tc.noise.geometric(1, x), "size", {"nothing", "number", "tuple", "list"}),
    "noise.discrete_laplace": (tc.noise.discrete_laplace, "scale", {"number", "decimal"}),
    "noise.two_scale": (lambda x: tc.noise.two_scale(1, x), "", {"number", "decimal"}),
    "noise.cube": (lambda x: tc.noise.cube(x, 2), "scale", {"number", "decimal"}),
    "noise.cube: dimensions": (lambda x: tc.noise.cube(1, x), "dimensions", {"number"}),
    "noise.cube: sides": (lambda x: tc.noise.cube(1, 2, sides=x), "sides", set()),
    "noise.cube_is_supported": (lambda x: tc.noise.cube_is_supported(1, x), "dimensions", {"number", "negative"}),
    "noise.bernoulli": (tc.noise.bernoulli, "", set()),
    "noise.permutation": (tc.noise.permutation, "", {"number"}),
    "noise.uniform_below": (tc.noise.uniform_below, "", {"number"}),
    "audit.exact": (lambda x: tc.audit.exact(x, POLICY, 1), "", {"query", "function"}),
    "audit.exact: policy": (lambda x: tc.audit.exact(tc.count(), x, 1), "policy", {"policy"}),
    "audit.exact: epsilon": (lambda x: tc.audit.exact(tc.count(), POLICY, x), "epsilon", {"number", "decimal"}),
    "Dependence: table": (lambda x: tc.Dependence.from_table(x, ["a"]), "table", {"mapping"}),
    "Dependence: counts": (tc.Dependence.from_counts, "frame", {"mapping", "frame"}),
    "Dependence: network": (tc.Dependence.from_network, "tables", {"mapping", "domain"}),
    "Dependence: other": (COIN.total_variation, "other", set()),
    "audit.exclusion": (lambda x: tc.audit.exclusion(x, {}, {}), "dependence", set()),
    "audit.exclusion: epsilon": (lambda x: tc.audit.exclusion(COIN, {}, {"a": x}), "epsilon", {"number", "decimal"}),
    "audit.sampled": (lambda x: tc.audit.sampled(x, 1, 2, 1, 1000), "release", {"function"}),
    "audit.sampled: epsilon": (lambda x: tc.audit.sampled(drawn, 1, 2, x, 1000), "epsilon", {"number", "decimal"}),
    "audit.sampled: samples": (lambda x: tc.audit.sampled(drawn, 1, 2, 1, x), "samples", set()),
    "audit.sampled: policy": (lambda x: tc.audit.sampled(drawn, 1, 2, 1, 1000, policy=x), "", {"nothing"}),
    "audit.sampled: workers": (lambda x: tc.audit.sampled(drawn, 1, 2, 1, 1000, workers=x), "workers", {"number"}),
    "audit.sampled: progress": (
        lambda x: tc.audit.sampled(drawn, 1, 2, 1, 1000, progress=x),
        "progress",
        {"nothing", "function", "class"},
    ),
    "audit.assert_no_leak": (lambda x: tc.audit.assert_no_leak(x, 1, 2, 1, 1000), "release", {"function"}),
    "audit.release: about": (lambda x: tc.audit.release(x, tc.count(), 1), "about", {"policy", "session"}),
    "audit.release: query": (lambda x: tc.audit.release(POLICY, x, 1), "query", {"query"}),
    "MapMonitor: policy": (lambda x: on_a_map(policy=x), "policy", {"policy"}),
    "PlaceMonitor: window": (lambda x: at_a_place(window=x), "window", {"number"}),
}


@pytest.mark.parametrize("entry", MIXED_UP)
def test_one_thing_in_the_place_of_another_is_refused_by_the_name_of_the_place(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, name, fits = MIXED_UP[entry]
    answers = {kind: answer_to(call, thing) for kind, thing in THINGS.items() if kind not in fits}
    assert {kind: said for kind, said in answers.items() if said is None or name not in said} == {}


def answer_to(call: Callable[[Any], Any], thing: Any) -> str | None:
    """Return the sentence with which something is refused; None if it is not, or in no sentence of ours."""
    try:
        call(thing)
    except TacitError as refusal:
        return None if isinstance(refusal, InternalError) else str(refusal)
    except Exception:
        return None
    return None


def test_every_public_callable_is_tried_with_other_things() -> None:
    tried = {re.split(r"[: ]", name)[0] for name in MIXED_UP}
    classes_of_results = {"Explanation", "LargestStep", "ReleaseRecord", "RowsCheck"}
    errors = {
        name for name in tc.__all__ if isinstance(getattr(tc, name), type) and issubclass(getattr(tc, name), TacitError)
    }
    groups = {"secrets", "known", "noise", "audit", "local", "plan", "publish", "ABSENT", "__version__"}
    assert set(tc.__all__) - classes_of_results - errors - groups - {"Categories"} <= tried
    functions = {f"noise.{name}" for name in tc.noise.__all__} - {"noise.Law", "noise.is_replayed"}
    functions |= {f"audit.{name}" for name in ("exact", "exclusion", "sampled", "assert_no_leak", "release")}
    assert functions <= tried


@pytest.mark.parametrize(
    ("swapped", "place"),
    [
        (lambda: tc.largest_step(POLICY, QUERY), "policy|query"),  # type: ignore[arg-type]
        (lambda: tc.explain(POLICY, QUERY, 1), "policy|query"),
        (lambda: SESSION.plan(0.5, QUERY), "query"),
        (lambda: SESSION.release(0.5, QUERY), "query"),
        (lambda: SESSION.release("0.5", QUERY), "query"),
        (lambda: GROUPS[True].plan(0.5, QUERY), "query"),
        (lambda: tc.explain(0.5, POLICY, QUERY), "query"),
        (lambda: tc.Session(FRAME, POLICY, 1), "policy"),  # type: ignore[arg-type]
        (lambda: tc.Session("policy.yaml", FRAME, 1), "policy"),  # type: ignore[arg-type]
        (lambda: tc.check_rows(FRAME, POLICY), "policy"),  # type: ignore[arg-type]
        (lambda: tc.audit.exact(POLICY, tc.count(), 1), "policy"),  # type: ignore[arg-type]
        (lambda: tc.secrets.within("age", 5), "within"),  # type: ignore[arg-type]
        (lambda: tc.Policy(tc.secrets.everything(), POLICY.domain), "domain"),  # type: ignore[arg-type]
    ],
)
def test_two_arguments_that_were_swapped_are_refused_with_the_form(swapped: Callable[[], Any], place: str) -> None:
    with pytest.raises(tc.Refused) as caught:
        swapped()
    assert re.search(place, caught.value.key)
    assert caught.value.fix


def test_a_policy_in_the_place_of_rows_is_refused() -> None:
    with pytest.raises(tc.DataRefused, match="A tacit Policy is none of them"):
        tc.Session(POLICY, POLICY, 1)


def test_a_refusal_by_the_columns_keeps_no_frame() -> None:
    given = FRAME.drop(columns="age")
    GIVEN[:] = [given]
    with pytest.raises(TacitError) as caught:
        tc.Session(POLICY, given, 1)
    assert told(caught.value) == []
