"""Charts: every kind of question has one, it is small, says what it shows, and nothing a user wrote becomes markup."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import tacit as tc
from tacit import noise
from tacit.report.charts.chart_parts import TOP, interval_rows
from tacit.report.charts.histogram_charts import PANELS
from tacit.report.charts.release_charts import chart, chart_png, chart_svg, chart_text, comparison_chart
from tacit.report.text import ledger_table, plan_table, release_table

MOST_MARKS = 5_000
EVIL = "<script>alert(1)</script>&\"'"

JAVASCRIPT = [
    "if",
    "datum.value",
    "constructor",
    "__proto__",
    "toString",
    "'+alert(1)+'",
    "\\",
    '"]',
    "</text>",
    "${x}",
    "null",
]
LETTERS = [f"{first}{second}" for first in "abcdefghij" for second in "abcdefghij"][::-1]
DOMAIN = tc.Domain(
    {
        "age": tc.Integers(0, 99),
        "year": tc.Integers(1990, 2020, 10),
        "month": tc.Dates("2023-11", "2024-02", by="month"),
        "money": tc.Integers(0, 3_999),
        "sex": tc.Categories(["f", "m"]),
        "job": tc.Categories(["nurse", "cook", "clerk", "smith", "none of these"]),
        "code": tc.Categories(LETTERS),
        "level": tc.Categories(LETTERS, ordered=True),
        "ill": tc.Flag(),
        "place": tc.Grid(300, 200, of=("lat", "lon"), low=(40, -10), high=(60, 10)),
        "room": tc.Grid(4, 6),
        "a.b c": tc.Categories([1, "1", EVIL, "", "x\x07y", *JAVASCRIPT]),
    }
)
QUERIES = {
    "count": tc.count("age < 30"),
    "everyone": tc.count(),
    "total": tc.total("age"),
    "few numbers": tc.histogram("year"),
    "some numbers": tc.histogram("age"),
    "many numbers": tc.histogram("money"),
    "categories": tc.histogram("job"),
    "many categories": tc.histogram("code"),
    "ordered categories": tc.histogram("level"),
    "flag": tc.histogram("ill"),
    "grid": tc.histogram("place"),
    "small grid": tc.histogram("room"),
    "groups": tc.histogram("job", "sex"),
    "groups, turned": tc.histogram("sex", "job"),
    "lines": tc.histogram("age", "sex"),
    "many lines": tc.histogram("sex", "money"),
    "heat map": tc.histogram("job", "code"),
    "large heat map": tc.histogram("age", "code"),
    "numbers by numbers": tc.histogram("age", "money"),
    "grid by sex": tc.histogram("sex", "room"),
    "three attributes": tc.histogram("sex", "job", "age"),
    "months": tc.histogram("month"),
    "months by sex": tc.histogram("sex", "month"),
    "months by code": tc.histogram("code", "month"),
    "months by three": tc.histogram("ill", "month", "sex", "job"),
    "cumulative": tc.cumulative("age"),
    "long cumulative": tc.cumulative("money"),
    "cumulative levels": tc.cumulative("level"),
    "some ranges": tc.ranges("age", [(0, 17), (18, 64), (65, 99), (18, 18)]),
    "many ranges": tc.ranges("age", [(low, low + 1) for low in range(90)]),
    "all ranges": tc.ranges("age", "all"),
    "ranges of levels": tc.ranges("level", [("jj", "ji")]),
    "single marginals": tc.marginals("age", "sex", "code", "room", ways=1),
    "pairs": tc.marginals("age", "sex", "job", "ill", "year", "code", ways=2),
    "odd names": tc.histogram("a.b c"),
    "odd pairs": tc.histogram("a.b c", "code"),
    "with a condition": tc.histogram("job", where="age < 30 and sex == 'f'"),
    "mean": tc.mean("age"),
    "mean by job": tc.mean("age", by="job"),
    "mean by year": tc.mean("age", by="year"),
    "mean by age": tc.mean("money", by="age"),
    "mean by money": tc.mean("age", by="money"),
    "mean by two": tc.mean("age", by=["sex", "job"]),
    "variance": tc.variance("age"),
    "variance by job": tc.variance("age", by="job"),
    "quartiles": tc.quantiles("age", [0.25, 0.5, 0.75]),
}
LEVELS = {
    "mean": {"point", "rule", "text"},
    "mean by job": {"point", "rule"},
    "mean by year": {"point", "rule"},
    "mean by age": {"area", "line"},
    "mean by money": {"area", "line"},
    "mean by two": {"point", "rule"},
    "variance": {"point", "rule", "text"},
    "variance by job": {"point", "rule"},
    "quartiles": {"point", "rule"},
}


@pytest.fixture(scope="module")
def session() -> tc.Session:
    noise = np.random.default_rng(20240501)
    people = 500
    rows = {
        "age": noise.integers(0, 100, people),
        "year": noise.choice([1990, 2000, 2010, 2020], people),
        "month": noise.choice(["2023-11", "2023-12", "2024-01", "2024-02"], people),
        "money": noise.integers(0, 4_000, people),
        "sex": noise.choice(["f", "m"], people),
        "job": noise.choice(["nurse", "cook", "clerk", "smith"], people),
        "code": noise.choice(LETTERS, people),
        "level": noise.choice(LETTERS, people),
        "ill": noise.choice([True, False], people),
        "lat": noise.uniform(40, 60, people),
        "lon": noise.uniform(-10, 10, people),
        "row": noise.integers(0, 4, people),
        "column": noise.integers(0, 6, people),
        "a.b c": noise.choice(["1", EVIL], people),
    }
    return tc.Session(tc.Policy(DOMAIN, tc.secrets.everything()), pd.DataFrame(rows), budget=1000)


class OnceEach(dict[str, Any]):
    """Makes what is asked for by its name, when it is first asked for."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Any:
        self[name] = self._make(name)
        return self[name]


@pytest.fixture(scope="module")
def records(session: tc.Session) -> dict[str, tc.ReleaseRecord]:
    return OnceEach(lambda name: session.release(QUERIES[name], 1))


@pytest.fixture(scope="module")
def charts(records: dict[str, tc.ReleaseRecord]) -> dict[str, Any]:
    return OnceEach(lambda name: chart(records[name]))


@pytest.fixture(scope="module")
def drawn(charts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return OnceEach(lambda name: charts[name].to_dict())


def views(spec: Any) -> Iterator[dict[str, Any]]:
    """Walk through all views of a chart."""
    yield spec
    for key in ("layer", "concat", "hconcat", "vconcat"):
        for inner in spec.get(key, []):
            yield from views(inner)


def data_rows(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found = list(spec.get("datasets", {}).values())
    found += [view["data"]["values"] for view in views(spec) if "values" in view.get("data", {})]
    return [row for rows in found for row in rows]


def marks(spec: dict[str, Any]) -> set[str]:
    return {view["mark"]["type"] for view in views(spec) if "mark" in view}


def titles(spec: dict[str, Any]) -> set[str]:
    """Return the titles of all axes."""
    return {
        channel["title"]
        for view in views(spec)
        for name, channel in view.get("encoding", {}).items()
        if name in ("x", "y") and channel.get("title")
    }


def _sorts_by_list(channel: Any) -> bool:
    """Say whether labels would become part of an expression that Vega runs."""
    return isinstance(channel, dict) and isinstance(channel.get("sort"), list)


def subtitle(spec: dict[str, Any]) -> str:
    return " ".join(spec["title"]["subtitle"])


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", QUERIES)
def test_every_kind_of_question_is_drawn_small_and_well_formed(
    records: dict[str, tc.ReleaseRecord], charts: dict[str, Any], drawn: dict[str, dict[str, Any]], name: str
) -> None:
    spec = drawn[name]
    assert 0 < len(data_rows(spec)) <= MOST_MARKS
    assert not [
        view for view in views(spec) for channel in view.get("encoding", {}).values() if _sorts_by_list(channel)
    ]
    assert spec["title"]["text"][0]
    assert titles(spec)
    assert spec["description"] == chart_text(records[name])
    svg = chart_svg(charts[name])
    top = ElementTree.fromstring(svg)  # noqa: S314 - made here
    assert top.tag.endswith("svg")
    assert float(top.attrib["width"]) <= 540
    assert not [element for element in top.iter() if element.tag.endswith("script")]
    assert "NaN" not in svg
    assert "undefined" not in svg


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("count", {"point", "rule", "text"}),
        ("few numbers", {"bar", "rule"}),
        ("some numbers", {"area", "line"}),
        ("many numbers", {"line"}),
        ("categories", {"bar", "rule"}),
        ("many categories", {"bar", "rule"}),
        ("ordered categories", {"area", "line"}),
        ("flag", {"bar", "rule"}),
        ("grid", {"rect"}),
        ("groups", {"bar", "rule"}),
        ("lines", {"area", "line"}),
        ("heat map", {"rect"}),
        ("three attributes", {"area", "bar", "line", "rule"}),
        ("months", {"area", "line"}),
        ("months by sex", {"area", "line"}),
        ("months by code", {"rect"}),
        ("months by three", {"area", "line"}),
        ("cumulative", {"area", "line"}),
        ("some ranges", {"bar", "rule"}),
        ("all ranges", {"rect"}),
        ("pairs", {"rect"}),
    ],
)
def test_the_view_fits_the_question(drawn: dict[str, dict[str, Any]], name: str, expected: set[str]) -> None:
    assert marks(drawn[name]) == expected


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("count", "Number of people"),
        ("total", "Total of age"),
        ("some numbers", "People by age"),
        ("groups", "People by job and sex"),
        ("three attributes", "People by sex, job and age"),
        ("cumulative", "People with age up to each value"),
        ("some ranges", "People by range of age"),
        ("pairs", "People by pairs of attributes"),
        ("single marginals", "People by single attributes"),
    ],
)
def test_titles_are_words(drawn: dict[str, dict[str, Any]], name: str, title: str) -> None:
    assert " ".join(drawn[name]["title"]["text"]) == title


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("count", "where age is below 30"),
        ("with a condition", "where age is below 30 and sex is f"),
        ("some numbers", "Estimates with 95% intervals, epsilon 1."),
        ("many numbers", "Means over 3 neighbouring values; the table has all 4,000."),
        ("long cumulative", "One point for every 3 values; the table has all 4,000."),
        ("many categories", "The 30 largest released values out of 100 values of code."),
        ("many categories", "Estimates with intervals that hold for all 100 at once (95%), epsilon 1."),
        ("three attributes", "Sums of estimates with 95% intervals, epsilon 1. Sums over the other attributes; the"),
        ("grid", "Blocks of 5 x 3 cells are added up; the table has all 60,000."),
        ("many ranges", "The first 40 of 90 ranges."),
        ("all ranges", "Ranges with ends 3 values apart; the table has all 5,050."),
        ("large heat map", "age: 2 neighbouring values are added up. code: the 50 largest of 100 released values."),
        ("pairs", "The first 12 of 15 tables; the others are in the table of values."),
        ("heat map", "the table has their 95% intervals"),
    ],
)
def test_the_subtitle_says_what_is_left_out(drawn: dict[str, dict[str, Any]], name: str, note: str) -> None:
    assert note in subtitle(drawn[name])


def test_bars_show_the_released_numbers_in_the_order_of_the_domain(
    records: dict[str, tc.ReleaseRecord], drawn: dict[str, dict[str, Any]]
) -> None:
    rows = data_rows(drawn["categories"])
    assert [row["label"] for row in rows] == ["nurse", "cook", "clerk", "smith", "none of these"]
    lower, upper = records["categories"].interval(0.95)
    for column, numbers in (("value", records["categories"].values), ("lower", lower), ("upper", upper)):
        assert [row[column] for row in rows] == pytest.approx(numbers, abs=0.01)


def test_long_lists_show_the_largest_released_values(
    records: dict[str, tc.ReleaseRecord], drawn: dict[str, dict[str, Any]]
) -> None:
    rows = data_rows(drawn["many categories"])
    values = np.sort(records["many categories"].values)[::-1]
    assert [row["value"] for row in rows] == pytest.approx(values[:TOP], abs=0.01)


def test_intervals_of_the_largest_values_hold_although_they_were_picked() -> None:
    # nobody is in any cell: whatever is largest was raised by its noise, and an interval for each cell alone misses
    domain = tc.Domain({"code": tc.Categories(range(1_728))})
    policy = tc.Policy(domain, tc.secrets.everything(), presence="secret")
    nobody = pd.DataFrame({"code": np.zeros(0, dtype=np.int64)})
    whole, alone, releases = 0, 0, 40
    with noise.replayed(noise.Keystream(key=b"the largest of many, test stream")):
        session = tc.Session(policy, nobody, budget=releases)
        plan = session.plan(tc.histogram("code"), 1)
        for _ in range(releases):
            record = session.release(plan)
            rows = data_rows(chart(record).to_dict())
            assert len(rows) == TOP
            whole += all(row["lower"] <= 0 <= row["upper"] for row in rows)
            alone += int((record.interval(0.95)[0][np.argsort(-record.values)[:TOP]] <= 0).sum())
    assert whole >= 33  # of 40 at 95%: fewer happens once in 5,000 times
    assert alone < 0.1 * TOP * releases  # what would have been drawn


def test_a_text_alternative_gives_the_largest_value_an_interval_that_holds(
    records: dict[str, tc.ReleaseRecord],
) -> None:
    record = records["three attributes"]
    lower, upper = record.interval(1 - 0.05 / len(record.values))
    best = int(record.values.argmax())
    ends = f"{np.floor(round(lower[best], 6)):,.0f} to {np.ceil(round(upper[best], 6)):,.0f}"
    assert f"(95% for all 1,000 at once: {ends})" in chart_text(record)


def test_few_cells_stand_in_the_order_of_the_domain(drawn: dict[str, dict[str, Any]]) -> None:
    jobs = ["nurse", "cook", "clerk", "smith", "none of these"]
    rows = data_rows(drawn["mean by two"])
    assert [row["label"] for row in rows] == [f"{sex}, {job}" for sex in "fm" for job in jobs]


def test_time_is_an_axis_in_its_own_order_with_a_line_for_each_group(
    records: dict[str, tc.ReleaseRecord], drawn: dict[str, dict[str, Any]]
) -> None:
    months = ["2023-11", "2023-12", "2024-01", "2024-02"]
    rows = data_rows(drawn["months by sex"])
    assert [(row["group"], row["at"]) for row in rows] == [(sex, month) for sex in "fm" for month in months]
    assert [row["value"] for row in rows] == pytest.approx(records["months by sex"].values, abs=0.01)
    x = next(view["encoding"]["x"] for view in views(drawn["months by sex"]) if "encoding" in view)
    assert (x["scale"]["domain"], x["sort"]) == (months, None)


@pytest.mark.parametrize(
    ("step", "end", "ticks", "shown"),
    [
        ("hour", "2024-12-31", ["2024-01-01T00:00", "2024-04-01T00:00", "2024-07-01T00:00", "2024-10-01T00:00"], 7),
        ("30 minutes", "2024-01-02", ["2024-01-01T00:00", "2024-01-01T06:00", "2024-01-01T12:00"], 16),
    ],
)
def test_a_line_by_the_clock_has_few_ticks_where_something_begins(
    step: str, end: str, ticks: list[str], shown: int
) -> None:
    when = tc.Times("2024-01-01", end, step=step)
    policy = tc.Policy(tc.Domain({"when": when}), tc.secrets.everything())
    session = tc.Session(policy, pd.DataFrame({"when": ["2024-01-02 10:00"]}), budget=1)
    drawn = json.dumps(session.release(tc.histogram("when"), epsilon=1).chart().to_dict())
    assert json.dumps(ticks)[:-1] in drawn
    assert f"slice(datum.value, 0, {shown})" in drawn
    assert ("Means over 24 neighbouring values" in drawn) == (when.size > 2000)  # the days of a year, not parts of them


def test_more_attributes_are_shown_as_sums_of_all_their_cells(
    records: dict[str, tc.ReleaseRecord], drawn: dict[str, dict[str, Any]]
) -> None:
    by_ill, by_sex, by_job = drawn["months by three"]["concat"]
    table = records["months by three"].frame
    for panel, names in ((by_ill, ["month", "ill"]), (by_sex, ["month", "sex"]), (by_job, ["month", "job"])):
        data = panel["data"]["values"]
        found = {(row["at"], row["group"]): row["value"] for row in data}
        sums = table.groupby(names)["value"].sum()
        words = {False: "no", True: "yes"}
        wanted = {(str(month), words.get(other, other)): total for (month, other), total in sums.items()}
        assert found == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("name", ["grid", "small grid", "numbers by numbers", "heat map", "odd pairs"])
def test_what_is_merged_adds_up(
    records: dict[str, tc.ReleaseRecord], drawn: dict[str, dict[str, Any]], name: str
) -> None:
    rows = data_rows(drawn[name])
    table = records[name].frame
    if "code" in table:  # only the largest fifty are shown
        shown = {row[side] for row in rows for side in ("down", "across")}
        table = table[table["code"].isin(shown)]
    assert sum(row["value"] for row in rows) == pytest.approx(table["value"].sum(), abs=0.005 * len(rows))


def test_grid_cells_lie_where_the_grid_says(drawn: dict[str, dict[str, Any]]) -> None:
    rows = data_rows(drawn["grid"])
    assert (min(row["top"] for row in rows), max(row["bottom"] for row in rows)) == (40, 60)
    assert (min(row["left"] for row in rows), max(row["right"] for row in rows)) == (-10, 10)
    assert all(row["top"] < row["bottom"] and row["left"] < row["right"] for row in rows)
    assert titles(drawn["grid"]) == {"lat", "lon"}


def test_at_most_a_dozen_panels(drawn: dict[str, dict[str, Any]]) -> None:
    assert len(drawn["pairs"]["concat"]) == PANELS
    assert len(drawn["single marginals"]["concat"]) == 4


def test_different_values_have_different_labels(drawn: dict[str, dict[str, Any]]) -> None:
    labels = [row["label"] for row in data_rows(drawn["odd names"])]
    assert len(set(labels)) == 5 + len(JAVASCRIPT)
    assert all(label.isprintable() for label in labels)
    assert titles(drawn["odd names"]) >= {"a.b c"}


def test_nothing_a_user_wrote_becomes_markup(records: dict[str, tc.ReleaseRecord]) -> None:
    for name in ("odd names", "odd pairs"):
        svg = chart_svg(chart(records[name]))
        assert "<script" not in svg
        assert "alert(1)" in svg


def test_item_counts_show_the_largest_of_thousands() -> None:
    counts = tc.ItemCounts((5_000 / np.arange(1, 4_001)).astype(np.int64), people=6_000)
    policy = tc.Policy(tc.Domain({"clicked": tc.Items(4_000, at_most=5)}), tc.secrets.everything())
    record = tc.Session(policy, counts, budget=10).release(tc.histogram("clicked"), 10)
    spec = chart(record).to_dict()
    rows = data_rows(spec)
    assert len(rows) == TOP
    assert rows[0]["label"] == "0"
    assert "The 30 largest released values out of 4,000 items of clicked." in subtitle(spec)
    assert chart_svg(chart(record)).startswith("<svg")


def test_exact_answers_are_called_exact() -> None:
    policy = tc.Policy(tc.Domain({"a": tc.Flag(), "b": tc.Flag()}), tc.secrets.attributes("a"))
    record = tc.Session(policy, pd.DataFrame({"a": [1, 0, 1], "b": [1, 1, 1]}), budget=1).release(tc.histogram("b"), 1)
    spec = chart(record).to_dict()
    assert "Exact" in subtitle(spec)
    assert (
        "3 (exact, for the rows that fit the domain, with each cell as the domain reads it), for b yes"
        in chart_text(record)
    )
    assert chart_svg(chart(record)).startswith("<svg")


def test_the_text_alternative_says_what_stands_out(records: dict[str, tc.ReleaseRecord]) -> None:
    said = chart_text(records["count"])
    assert said.startswith("Number of people, where age is below 30. Released value: ")
    best = int(records["some numbers"].values.argmax())
    assert chart_text(records["some numbers"]).endswith(f"for age {best}.")


def test_records_draw_themselves(records: dict[str, tc.ReleaseRecord]) -> None:
    assert records["count"].chart().to_dict()["title"]["text"] == ["Number of people"]


def test_a_chart_becomes_a_png(records: dict[str, tc.ReleaseRecord]) -> None:
    assert chart_png(chart(records["categories"])).startswith(b"\x89PNG")


# ---- comparison and tables


@pytest.fixture(scope="module")
def explanations() -> dict[str, tc.Explanation]:
    policy = tc.Policy(DOMAIN, tc.secrets.within(5, "age"))
    asked = {"exact": tc.histogram("sex"), "[b]same[/b]": tc.count("age < 3"), "better": tc.cumulative("age")}
    return {name: tc.explain(query, policy, 0.5, remaining=-1) for name, query in asked.items()}


def test_the_comparison_shows_both_errors_of_each_release(explanations: dict[str, tc.Explanation]) -> None:
    spec = comparison_chart(explanations).to_dict()
    points = [row for row in data_rows(spec) if "kind" in row]
    assert {row["label"] for row in points} == set(explanations)
    better = {row["kind"]: row["error"] for row in points if row["label"] == "better"}
    assert better["this policy"] == pytest.approx(explanations["better"].plan.rmse)
    assert better["plain differential privacy"] == pytest.approx(explanations["better"].plain.rmse)
    exact = [row for row in points if row["label"] == "exact" and row["kind"] == "this policy"]
    assert exact[0]["text"] == "exact"
    assert exact[0]["error"] > 0  # a logarithmic axis has no zero
    assert chart_svg(comparison_chart(list(explanations.values()))).startswith("<svg")


def printed(table: Any) -> str:
    console = Console(width=160, file=io.StringIO(), force_terminal=False)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_plan_table_shows_names_as_they_are_and_what_does_not_fit(explanations: dict[str, tc.Explanation]) -> None:
    text = printed(plan_table(explanations))
    assert "[b]same[/b]" in text
    assert "exceeded" in text
    assert "cumulative(age)" in printed(plan_table(list(explanations.values())))


def test_the_release_table_shows_single_answers(records: dict[str, tc.ReleaseRecord]) -> None:
    text = printed(release_table({"\x1b[31mcount": records["count"], "many": records["some numbers"]}))
    assert f"{records['count'].values[0]:,.0f} (" in text
    assert "\x1b" not in text


def test_the_ledger_table_shows_totals_and_caps(tmp_path: Any) -> None:
    with tc.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant(dataset="clinic", epsilon=1)
        ledger.grant(dataset="clinic", epsilon="1/3", analyst="ana")
        ledger.charge(dataset="clinic", analyst="ana", epsilon="1/3")
        text = printed(ledger_table(ledger.accounts()))
    for word in ("clinic", "everyone", "ana", "1/3", "2/3"):
        assert word in text


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", LEVELS)
def test_means_and_quantiles_are_no_amounts_and_have_no_bars(drawn: dict[str, dict[str, Any]], name: str) -> None:
    """Nothing grows from zero: means of 36.98 and 37.04 must not look the same."""
    assert marks(drawn[name]) == LEVELS[name]
    scales = [
        channel["scale"]
        for view in views(drawn[name])
        for axis, channel in view.get("encoding", {}).items()
        if axis in ("x", "y") and channel.get("field") in ("value", "lower") and "scale" in channel
    ]
    assert scales
    assert all(scale["zero"] is False for scale in scales)


@pytest.mark.one_in(16)
@pytest.mark.parametrize("size", [1e-7, 0.001, 1.0, 1e5])
@pytest.mark.parametrize("query", ["histogram", "mean", "means", "total", "totals", "quantiles", "line"])
def test_charts_show_numbers_of_every_size_as_they_are(size: float, query: str) -> None:
    """What is drawn is the released number, to a hundredth of a percent of what the chart reaches over."""
    noise = np.random.default_rng(7)
    step = Decimal(repr(size)) / 100
    domain = tc.Domain({"x": tc.Decimals(0, step * 100, step), "g": tc.Categories(["a", "b"]), "n": tc.Integers(0, 99)})
    rows = {
        "x": [float(step * int(place)) for place in noise.integers(30, 60, 4000)],
        "g": ["a", "b"] * 2000,
        "n": noise.integers(0, 100, 4000),
    }
    session = tc.Session(tc.Policy(domain, tc.secrets.attributes("x")), pd.DataFrame(rows), budget=10)
    asked = {
        "histogram": tc.histogram("g"),
        "mean": tc.mean("x"),
        "means": tc.mean("x", by="g"),
        "total": tc.total("x"),
        "totals": tc.total("x", by="g"),
        "quantiles": tc.quantiles("x", [tenth / 10 for tenth in range(1, 10)]),
        "line": tc.mean("x", by="n"),
    }[query]
    record = session.release(asked, epsilon=1)
    lower, upper = record.interval(0.95)
    reach = (max(upper) - min(lower)) or max(upper)
    drawn_rows = [row for row in data_rows(chart(record).to_dict()) if "lower" in row]
    assert len(drawn_rows) == len(record.values)
    for row, value, low, high in zip(drawn_rows, record.values, lower, upper, strict=True):
        assert abs(row["value"] - value) <= 1e-4 * reach
        assert 0 <= low - row["lower"] + 1e-9 * reach <= 1e-4 * reach
        assert 0 <= row["upper"] - high + 1e-9 * reach <= 1e-4 * reach


def test_what_is_no_number_is_left_out_and_changes_no_other_one() -> None:
    nothing = float("nan")
    missing, there = interval_rows([nothing, 0.0038], [nothing, 0.0036], [nothing, 0.0041])
    assert missing == {"value": None, "lower": None, "upper": None}
    assert there == {"value": 0.0038, "lower": 0.0036, "upper": 0.0041}
