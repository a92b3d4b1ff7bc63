"""The report: one file, no network, no markup from users, everything in it that a reader is owed."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.policy.describe import Section
from tacit.report.charts.release_charts import chart, chart_text
from tacit.report.html import _blocks, html_report, promise_in_words
from tacit.report.shown_tables import MOST_ACROSS, ROWS_SHOWN, shown_tables, whole_numbers

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&{{7*7}}"


@pytest.fixture(scope="module")
def made() -> tuple[tc.Policy, dict[str, tc.ReleaseRecord], list[tc.Explanation]]:
    domain = tc.Domain(
        {
            "age": tc.Integers(0, 99),
            EVIL.replace("[", ""): tc.Categories(["flu", EVIL]),
            "sex": tc.Categories(["f", "m"]),
        }
    )
    policy = tc.Policy(domain, tc.secrets.within(5, "age") | tc.secrets.attributes(EVIL), name=f"policy {EVIL}")
    rows = pd.DataFrame({"age": [30, 31, 60], EVIL: ["flu", EVIL, "flu"], "sex": ["f", "f", "m"]})
    session = tc.Session(policy, rows, budget=2, dataset=f"data {EVIL}", analyst="ana")
    asked = {
        "ages": tc.histogram("age"),
        f"name {EVIL}": tc.histogram(EVIL),
        "up to": tc.cumulative("age"),
        "sexes": tc.histogram("sex"),
        "old": tc.count("age >= 65"),
    }
    explanations, records = [], {}
    for name, query in asked.items():
        explanations.append(session.explain(query, "1/4", show=False))
        records[name] = session.release(query, "1/4", nonnegative=name == "ages")
    return policy, records, explanations


@pytest.fixture(scope="module")
def page(made: tuple[tc.Policy, dict[str, tc.ReleaseRecord], list[tc.Explanation]]) -> str:
    policy, records, explanations = made
    return html_report(f"job {EVIL}", policy, records, explanations, budget=Fraction(2), analyst=f"ana {EVIL}")


class _Page(HTMLParser):
    """All elements and texts of a page; refuses what is not closed."""

    EMPTY = frozenset(["meta", "path", "rect", "line", "stop", "circle"])

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def parsed(page: str) -> _Page:
    found = _Page()
    found.feed(page)
    found.close()
    assert found.open == []
    return found


def test_the_page_needs_no_network(page: str, parsed: _Page) -> None:
    assert re.findall(r"https?://(?!www\.w3\.org/)", page) == []
    assert "@import" not in page
    assert "@font-face" not in page
    for tag, attributes in parsed.elements:
        assert tag not in ("script", "link", "iframe", "object", "embed", "img", "base", "form")
        for key in ("src", "srcset", "action", "data", "xlink:href"):
            assert key not in attributes
        if "href" in attributes:
            assert tag == "a"
            assert attributes["href"].startswith("#") or attributes["href"].endswith(".csv")
    policy = next(a["content"] for tag, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_nothing_a_user_wrote_becomes_markup(page: str, parsed: _Page) -> None:
    assert "<script" not in page
    assert "<img" not in page
    assert "49" not in re.findall(r"\{\{.*?\}\}", page)
    assert "{{7*7}}" in page
    assert not [key for _, attributes in parsed.elements for key in attributes if key.startswith("on")]
    # it is still there, as text: in names, categories, the policy and the data set
    text = "".join(parsed.texts)
    for where in ("job ", "name ", "policy ", "data ", "ana "):
        assert where + EVIL in text


def test_every_release_is_there_with_its_cost_step_mechanism_and_errors(
    made: tuple[tc.Policy, dict[str, tc.ReleaseRecord], list[tc.Explanation]], parsed: _Page
) -> None:
    _, records, explanations = made
    text = "".join(parsed.texts)
    for (name, record), said in zip(records.items(), explanations, strict=True):
        assert f"Certificate of {name}" in text
        assert record.plan.mechanism in text
        for reason in record.plan.step.why:
            assert json.dumps(reason, ensure_ascii=False) in text  # in the certificate; the page has those that move
        assert record.certificate["policy_fingerprint"] in text
        for error in (said.plan.rmse, said.plain.rmse):
            assert ("exact" if error == 0 else f"{error:,.3g}") in text
    assert "No count was left below zero." in text
    assert "exp(0.25)" in text


def article(page: str, name: str) -> str:
    """Return the text of one release, without its certificate and with single spaces."""
    (found,) = re.findall(rf"<h3 id=\"release-\d+\">{name}</h3>(.*?)<summary>Certificate", page, re.DOTALL)
    without_inline = re.sub(r"</?(span|code|em)\b[^>]*>", "", found)
    return " ".join(html.unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", without_inline, flags=re.DOTALL)).split())


def test_only_secrets_that_move_an_answer_are_listed(page: str) -> None:
    assert "-> never moves" not in article(page, "old")
    assert "The other secret never moves them." in article(page, "old")
    assert "rises by up to 1" in article(page, "old")
    assert "No secret of the policy moves these answers." in article(page, "sexes")


def test_secrets_are_counted_by_family_however_many_parts_an_answer_has() -> None:
    policy = tc.Policy(
        DOMAIN, tc.secrets.attributes("hours") | tc.secrets.attributes("sex") | tc.secrets.within(1, "grade")
    )
    text = article(reported(policy, ROWS, tc.mean("hours")), "it")
    assert "The other 2 secrets never move them." in text
    assert (
        "One person can raise a sum by at most 9 and lower a sum by at most 9; over all sums together, the changes "
        "add up to at most 9."
    ) in text


def reported(policy: tc.Policy, rows: pd.DataFrame, query: object, **options: bool) -> str:
    session = tc.Session(policy, rows, budget=1)
    said = session.explain(query, 1, show=False)
    return html_report("job", policy, {"it": session.release(query, 1, **options)}, [said])


DOMAIN = tc.Domain(
    {
        "grade": tc.Categories(["a", "b", "c"], ordered=True),
        "sex": tc.Categories(["f", "m"]),
        "hours": tc.Integers(0, 9),
    }
)
ROWS = pd.DataFrame({"grade": ["a", "c"], "sex": ["f", "m"], "hours": [3, 4], "id": [1, 2]})
EVERYTHING = tc.Policy(DOMAIN, tc.secrets.everything())


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("query", "options", "said", "unsaid"),
    [
        (tc.ranges("grade", [("a", "b"), ("c", "c")]), {}, ["Asked for: grade a to b; c.", " people;"], ["ranges("]),
        (tc.ranges("grade", "all"), {}, ["every range of neighbouring values of grade"], []),
        (tc.ranges("hours", [(0, n % 10) for n in range(30)]), {}, ["; and 18 more."], []),
        (
            tc.marginals(sets=[["sex", "grade"], ["hours"]]),
            {"consistent": True},
            ["Asked for: sex and grade; hours.", "Tables were made to agree with each other."],
            ["not to fall", "marginals of"],
        ),
        (
            tc.cumulative("hours"),
            {"consistent": True},
            ["Cumulative counts were made not to fall."],
            ["agree with each other"],
        ),
        (tc.histogram("sex"), {"consistent": True}, [" people;"], ["Afterwards", "agree with each other"]),
        (tc.total("hours"), {"nonnegative": True}, ["(in units of hours);"], ["No count was left", " people;"]),
    ],
)
def test_a_release_is_told_in_words(
    query: object, options: dict[str, bool], said: list[str], unsaid: list[str]
) -> None:
    text = article(reported(EVERYTHING, ROWS, query, **options), "it")
    for words in said:
        assert words in text
    for words in unsaid:
        assert words not in text


def test_about_whom_the_promise_is(page: str) -> None:
    assert "promise holds for one row" in page or "each row is one person" in page
    named = reported(tc.Policy(DOMAIN, tc.secrets.everything(), person="id"), ROWS, tc.count())
    assert "with the same id" in named
    assert "each row is one person" not in named


def test_a_budget_without_a_ledger_is_called_so(page: str, tmp_path: Path) -> None:
    sentence = "No ledger: this budget holds for this run only."
    assert sentence in page
    session = tc.Session(EVERYTHING, ROWS, budget=1, ledger=tmp_path / "ledger.db", dataset="d")
    said, record = session.explain(tc.count(), 1, show=False), session.release(tc.count(), 1)
    assert sentence not in html_report("job", EVERYTHING, {"it": record}, [said])


def test_replayed_noise_is_no_release(
    made: tuple[tc.Policy, dict[str, tc.ReleaseRecord], list[tc.Explanation]],
) -> None:
    policy, records, explanations = made
    record = records["ages"]
    replayed = replace(record, promise=replace(record.promise, replayed=True))
    assert "This is no release." in html_report("job", policy, {"ages": replayed}, explanations[:1])
    assert "This is no release." not in html_report("job", policy, {"ages": record}, explanations[:1])


def test_a_description_is_shown_whatever_its_headings() -> None:
    sections = [
        Section("Policy x: 2 attributes."),
        Section("Something new", ("one `code` goes on", "two")),
        Section("Protected more weakly (at twice the epsilon).", ("three",), warns=True),
    ]
    first, second, third = _blocks(sections)
    assert (first.heading, first.paragraphs, first.points) == ("", ["Policy x: 2 attributes."], [])
    assert (second.heading, second.points) == ("Something new", ["one <code>code</code> goes on", "two"])
    assert not second.warns
    assert third.heading == "Protected more weakly (at twice the epsilon)."
    assert (third.paragraphs, third.points, third.warns) == ([], ["three"], True)


def test_the_budget_adds_up(parsed: _Page) -> None:
    text = " ".join(" ".join(parsed.texts).split())
    assert "Cost in all (epsilon) 1.25" in text
    assert "Budget 2" in text
    assert "Remains 0.75" in text
    for so_far, left in (("0.25", "1.75"), ("0.5", "1.5"), ("0.75", "1.25"), ("1", "1"), ("1.25", "0.75")):
        assert f"0.25 {so_far} {left}" in text
    assert "3.50 times as likely" in text  # e to the 1.25 is 3.4903, rounded up


def test_the_promise_comes_first_in_two_sentences_and_then_the_results(page: str) -> None:
    promise = re.sub(r"<[^>]+>", "", page[page.index('<div class="promise">') : page.index("What is secret:")])
    assert promise.count(". ") == 2  # after "What is promised", and between two sentences
    assert "at most 3.50 times as likely" in promise
    places = [page.index('<div class="promise">')]
    places += [page.index(f'<h2 id="{part}">') for part in ("overview", "releases", "promise", "budget")]
    assert places == sorted(places)
    for article in re.findall(r"<article.*?</article>", page, re.DOTALL):
        assert article.index("<svg") < article.index('<dl class="facts">')


@pytest.mark.parametrize(
    ("secrets", "replaced", "left"),
    [
        (tc.secrets.everything(), True, False),
        (tc.secrets.taking_part(), False, True),
        (tc.secrets.taking_part(where="age >= 65") | tc.secrets.within(5, "age"), True, True),
    ],
)
def test_the_promise_is_about_the_edges_that_there_are(secrets: tc.secrets.Secrets, replaced: bool, left: bool) -> None:
    policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 99)}), secrets)
    session = tc.Session(policy, pd.DataFrame({"age": [30, 70]}), budget=1)
    explained = session.explain(tc.mean("age"), 1, show=False)
    record = session.release(tc.mean("age"), 1)
    said = promise_in_words({"mean": record})
    assert ("one of their secret details replaced" in said) == replaced
    assert ("without the person" in said) == left
    shown = html_report("means", policy, {"mean": record}, [explained], budget=Fraction(1))
    assert f"it is that of {record.plan.assumption}, and smaller for more" in shown


def test_the_promise_about_numbers_of_people_is_that_of_their_rows() -> None:
    policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 99)}), tc.secrets.taking_part(), person="id", per_person=2)
    session = tc.Session(policy, pd.DataFrame({"age": [30, 70, 8], "id": [1, 1, 2]}), budget=1)
    record = session.release(tc.mean(each="rows"), 1)
    assert "one of their secret details replaced" not in promise_in_words({"visits": record})
    assert record.certificate["policy"] == policy.document()
    assert "their number is how many they are, from 1 to 2" in record.certificate["protects"]
    explained = session.explain(record.plan, show=False)
    shown = html_report("visits", policy, {"visits": record}, [explained], budget=Fraction(1))
    assert "in counts of people, each person once in each cell" in shown


def test_exact_is_said_of_the_rows_that_the_domain_keeps(page: str) -> None:
    kept = "for the rows that fit the domain, with each cell as the domain reads it"
    assert f"exact, {kept}; under plain differential privacy" in article(page, "sexes")
    assert f"Answers, intervals and what is called exact are {kept}" in page
    assert f"exact, {kept}" not in article(page, "ages")


def test_what_is_not_promised_is_said(parsed: _Page) -> None:
    text = " ".join("".join(parsed.texts).split())
    assert "What is promised, and what is not" in text
    assert "age up to a distance of 5" in text
    assert "No secret mentions sex" in text


def test_charts_have_a_text_alternative_and_ids_of_their_own(page: str, parsed: _Page) -> None:
    images = [attributes for _, attributes in parsed.elements if attributes.get("role") == "img"]
    assert len(images) == 6  # five releases, and the comparison
    assert all(len(image["aria-label"]) > 30 for image in images)
    assert page.count("<svg") == 6
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for reference in re.findall(r"url\(#([^)]*)\)", page):
        assert reference in ids


def test_long_tables_are_cut_and_the_file_is_linked(page: str) -> None:
    assert f"The first {ROWS_SHOWN} of 100 numbers." in page
    assert 'href="ages.csv"' in page
    assert 'href="up%20to.csv"' in page
    rows = re.findall(r'<tr><td data-name="age[^"]*">\d+</td>', page)
    assert len(rows) == 2 * ROWS_SHOWN


def test_headings_do_not_skip_a_level(parsed: _Page) -> None:
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_page_is_for_phones_and_for_paper_and_for_the_dark(page: str) -> None:
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "@media print" in page
    assert "@media (prefers-color-scheme: dark)" in page


def test_explanations_may_be_given_by_name(
    made: tuple[tc.Policy, dict[str, tc.ReleaseRecord], list[tc.Explanation]],
) -> None:
    policy, records, explanations = made
    named = dict(zip(records, explanations, strict=True))
    again = html_report("job", policy, dict(list(records.items())[:1]), {"ages": named["ages"]})
    assert "ages" in again
    with pytest.raises(ValueError, match="zip"):
        html_report("job", policy, records, explanations[:1])


def cells(page: str, name: str) -> list[list[str]]:
    """Return the texts of the rows of the tables of a release."""
    (found,) = re.findall(rf"<h3 id=\"release-\d+\">{name}</h3>(.*?)<summary>Certificate", page, re.DOTALL)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", found)
    return [[html.unescape(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows]


def number(text: str) -> int:
    return int(re.sub("<small>.*", "", text).replace(",", ""))


def test_the_table_has_the_numbers_of_the_csv_file_and_counts_as_whole_numbers(
    made: tuple[tc.Policy, dict[str, tc.ReleaseRecord], list[tc.Explanation]], page: str, tmp_path: Path
) -> None:
    _, records, _ = made
    records["up to"].write_csv(tmp_path / "values.csv")
    written = pd.read_csv(tmp_path / "values.csv")[["value", "lower", "upper"]].head(ROWS_SHOWN)
    shown = [[float(cell.replace(",", "")) for cell in row[1:]] for row in cells(page, "up to")[1:]]
    assert shown == written.to_numpy().tolist()
    lower, upper = records["ages"].interval()
    for at, (_, text, ends) in enumerate(cells(page, "ages")[1:]):
        low, high = (number(end) for end in ends.split(" to "))
        assert low <= min(lower[at] + 1e-6, number(text)) <= max(upper[at] - 1e-6, number(text)) <= high
        assert abs(number(text) - records["ages"].values[at]) < 1
    assert cells(page, "sexes")[1:] == [["f", "2", "exact"], ["m", "1", "exact"], ["Sum", "3", "exact"]]
    assert "<table" not in re.findall(r"<h3 id=\"release-\d+\">old</h3>(.*?)<summary>Certificate", page, re.DOTALL)[0]


def test_two_attributes_are_a_cross_table_with_sums_that_add_up_and_have_their_own_intervals() -> None:
    rows = pd.concat([ROWS] * 50, ignore_index=True)
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("grade"))
    page = reported(policy, rows, tc.histogram("sex", "grade"), nonnegative=True)
    heads, *body = cells(page, "it")
    assert heads == ["grade by sex", "f", "m", "Sum"]
    assert [row[0] for row in body] == ["a", "b", "c", "Sum"]
    table = np.array([[number(text) for text in row[1:]] for row in body])
    assert (table[:, :2].sum(axis=1) == table[:, 2]).all()
    assert (table[:3].sum(axis=0) == table[3]).all()
    # how many of each sex there are is no secret; how many have a grade is
    assert [re.sub(".*<small>|</small>", "", text) for text in body[3][1:]] == ["exact"] * 3
    assert table[3].tolist() == [50, 50, 100]
    for row in body[:3]:
        low, high = (number(end) for end in re.sub(".*<small>|</small>", "", row[3]).split(" to "))
        assert low <= number(row[3]) <= high
    assert "taken one at a time" in article(page, "it")


def test_means_of_pairs_are_a_cross_table_of_the_numbers_of_the_record() -> None:
    rows = pd.DataFrame({"age": [30, 60, 50, 20], "sex": ["f", "m", "m", "f"], "ward": ["a", "b", "c", "a"]})
    domain = {"age": tc.Integers(0, 99), "sex": tc.Categories(["f", "m"]), "ward": tc.Categories(["a", "b", "c"])}
    session = tc.Session(tc.Policy(tc.Domain(domain), tc.secrets.everything()), rows, budget=50)
    record = session.release(tc.mean("age", by=["sex", "ward"]), 50)
    (table,) = shown_tables(record)
    assert (table.labels, table.numbers) == (["ward by sex"], ["f", "m"])
    assert [list(row.labels) for row in table.rows] == [["a"], ["b"], ["c"]]
    for (sex, ward), value in zip(zip(*record.labels().values(), strict=True), record.values, strict=True):
        text, ends = table.rows["abc".index(ward)].numbers["fm".index(sex)]
        assert text == record.no_number if np.isnan(value) else float(text) == pytest.approx(value, abs=0.51)
        assert bool(ends) != np.isnan(value)


def test_more_attributes_are_shown_as_sums_that_add_up_to_the_same() -> None:
    rows = pd.concat([ROWS] * 50, ignore_index=True)
    page = reported(tc.Policy(DOMAIN, tc.secrets.taking_part()), rows, tc.histogram("sex", "grade", "hours"))
    tables: dict[str, list[list[str]]] = {}
    for row in cells(page, "it"):
        if row[1] == "Estimate":
            name = row[0]
        tables.setdefault(name, []).append(row)
    assert {name: [row[0] for row in rows[1:]] for name, rows in tables.items()} == {
        "sex": ["f", "m", "Sum"],
        "grade": ["a", "b", "c", "Sum"],
        "hours": [*map(str, range(10)), "Sum"],
    }
    sums = [[number(row[1]) for row in rows[1:]] for rows in tables.values()]
    assert {sum(each[:-1]) for each in sums} == {each[-1] for each in sums}
    assert len({each[-1] for each in sums}) == 1


@pytest.mark.parametrize("seed", range(5))
def test_whole_numbers_are_next_to_the_estimates_and_so_are_their_sums(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    for shape in [(7,), (1, 1), (2, 3), (30, MOST_ACROSS)]:
        estimates = np.where(drawn.random(shape) < 0.3, drawn.integers(-3, 9, shape), drawn.normal(0, 9, shape))
        whole = whole_numbers(estimates)
        sums = [(whole, estimates), (whole.sum(), estimates.sum())]
        sums += [(whole.sum(axis=axis), estimates.sum(axis=axis)) for axis in range(len(shape))]
        for shown, wanted in sums:
            assert (np.floor(wanted - 1e-6) <= shown).all()
            assert (shown <= np.ceil(wanted + 1e-6)).all()
        assert abs(whole.sum() - estimates.sum()) <= 0.5 + 1e-6


def test_no_text_of_an_interval_is_narrower_than_the_interval(
    made: tuple[tc.Policy, dict[str, tc.ReleaseRecord], list[tc.Explanation]],
) -> None:
    """The caption, the chart and the terminal: whatever the digits, the ends are turned outwards."""
    _, records, _ = made
    for shift in (0.0, 0.04, 0.06, 0.4, 0.6, 0.949):
        record = replace(records["old"], values=records["old"].values + shift, _centre=records["old"]._centre + shift)
        lower, upper = record.interval()
        drawn = chart(record).to_dict()
        for said in (chart_text(record), record.summary(), json.dumps(drawn)):
            ends = [float(end.replace(",", "")) for end in re.findall(r"([-\d,.]+) to ([-\d,.]+)\)", said)[0]]
            assert ends[0] <= lower[0] <= upper[0] <= ends[1]


def test_a_noisy_value_is_never_called_exact() -> None:
    """An interval may have no room left between its bounds; the value is noisy all the same."""
    policy = tc.Policy(tc.Domain({"age": tc.Integers(0, 99)}), tc.secrets.within(5, "age"), presence="public")
    record = tc.Session(policy, pd.DataFrame({"age": [1, 2]}), budget=1).release(
        tc.histogram("age"), epsilon=0.1, nonnegative=True
    )
    assert "exact" not in chart_text(record)


def test_a_cost_that_is_no_decimal_has_one_beside() -> None:
    policy = tc.Policy(tc.Domain({"a": tc.Integers(0, 9)}), tc.secrets.everything())
    session = tc.Session(policy, pd.DataFrame({"a": [1, 2, 3]}), budget="35/57")
    explained = session.explain(tc.count("a < 5"), epsilon="35/114", show=False)
    record = session.release(explained.plan)
    text = html_report("job", policy, {"young": record}, [explained], budget=Fraction(35, 57))
    assert "Mechanism, for epsilon 35/114 (about 0.307)" in text
    said = re.sub(r"exp\(35/114\)|&#34;35/114&#34;", "", text)  # certificates are exact
    assert "35/114" not in said.replace("35/114 (about 0.307)", "")
    assert "epsilon 35/114 (about 0.307)." in " ".join(chart(record).to_dict()["title"]["subtitle"])
