"""Words that people try first are answered with what they are looking for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tacit as tc
from tacit.errors import Refused, nearest
from tacit.jobs.job_file import read_job
from tacit.plan.questions.written import KEYWORDS, from_document, no_such_question
from tacit.policy.policy_file import read_policy


@pytest.mark.parametrize(
    "word", ["percentile", "quartiles", "Quantile", "average", "avg", "max", "std", "sum", "group by"]
)
def test_questions_that_do_not_exist_say_what_to_ask_instead(word: str) -> None:
    with pytest.raises(tc.PlanError) as refused:
        from_document({word: "age"})
    fix = refused.value.fix
    assert "Did you mean" not in fix
    assert any(f"`{keyword}`" in fix for keyword in KEYWORDS)


def test_groups_are_asked_one_by_one() -> None:
    with pytest.raises(tc.PlanError, match=r"Groups are asked one by one: one release for each, with `where`"):
        from_document({"cumulative": {"attribute": "income", "by": "sex"}})


@pytest.mark.parametrize("word", ["by", "group_by", "groups"])
@pytest.mark.parametrize(
    "asked", [{"histogram": {"attributes": ["age"]}}, {"count": {}}, {"count": {"where": "age < 9"}}]
)
def test_counts_of_groups_are_one_release(asked: dict[str, dict[str, object]], word: str) -> None:
    ((keyword, said),) = asked.items()
    with pytest.raises(tc.PlanError, match=r"Release a `histogram` of these attributes") as refused:
        from_document({keyword: {**said, word: "sex"}})
    assert "one release for each" not in str(refused.value)


@pytest.mark.parametrize(("slip", "meant"), [("histgram", "histogram"), ("hist", "histogram"), ("totl", "total")])
def test_slips_are_still_understood(slip: str, meant: str) -> None:
    assert nearest(slip, KEYWORDS) == f"Did you mean {meant!r}?"


@pytest.mark.parametrize("word", ["average", "mode", "data", "mountain"])
def test_another_word_is_no_slip(word: str) -> None:
    assert nearest(word, KEYWORDS).startswith("Known: ")


JOB = """\
policy: {{domain: {{age: {{integers: [0, 9]}}}}, secrets: everything}}
rows: people.csv
budget: {budget}
releases:
  - {{name: a, query: count, epsilon: {epsilon}}}
  - name: b
    query: count
    epsilon: {below}
"""


@pytest.mark.parametrize(
    ("wrong", "line", "key"),
    [
        ({"epsilon": "0,5"}, 5, "releases[0].epsilon"),
        ({"below": "0,25"}, 8, "releases[1].epsilon"),
        ({"budget": "1,5"}, 3, "budget"),
        ({"epsilon": "'0,5'"}, 5, "releases[0].epsilon"),
    ],
)
def test_a_decimal_comma_is_called_one(wrong: dict[str, str], line: int, key: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n1\n")
    (tmp_path / "job.yaml").write_text(JOB.format(**{"budget": 1, "epsilon": 0.5, "below": 0.5, **wrong}))
    with pytest.raises(Refused) as refused:
        read_job(tmp_path / "job.yaml")
    written = next(iter(wrong.values())).strip("'")
    assert refused.value.fix == f"{written} looks like a decimal comma; write {written.replace(',', '.')}."
    assert (refused.value.line, refused.value.key) == (line, key)


@pytest.mark.parametrize(
    "text",
    [
        "{domain: {age: {integers: {low: 0,5, high: 9}}}, secrets: everything}",
        "{domain: {p: {grid: {rows: 2,5, columns: 3}}}, secrets: everything}",
    ],
)
def test_a_decimal_comma_in_a_policy_is_called_one(text: str) -> None:
    with pytest.raises(tc.PolicyError, match="looks like a decimal comma; write"):
        read_policy(text)


def test_a_list_of_two_numbers_is_a_list() -> None:
    assert read_policy("{domain: {age: {integers: [0,5]}}, secrets: everything}").domain["age"] == tc.Integers(0, 5)
    with pytest.raises(tc.PlanError, match=r"0,5 looks like a decimal comma; write 0\.5\."):
        tc.explain(tc.count(), read_policy("{domain: {age: {integers: [0,5]}}, secrets: everything}"), "0,5")


@pytest.mark.parametrize("word", ["average", "percentile", "quantile", "max", "sum"])
def test_a_module_says_the_same_of_a_question_that_it_does_not_have(word: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{word}'") as refused:
        getattr(tc, word)
    assert no_such_question(word) in str(refused.value)
    assert not hasattr(tc, "nothing_of_this_name")


QUESTION = tc.count()
POLICY = tc.Policy(tc.Domain({"x y": tc.Flag(), "a-b": tc.Flag()}), tc.secrets.everything())


@pytest.mark.parametrize(
    ("ask", "fix"),
    [
        (lambda: tc.largest_step(POLICY, QUESTION), "Write largest_step(query, policy): the question first."),
        (lambda: tc.explain(POLICY, QUESTION, 1), "Write explain(query, policy, epsilon): the question first."),
        (lambda: tc.audit.exact(POLICY, QUESTION, 1), "Write audit.exact(query, policy, epsilon): the question first."),
        (lambda: tc.secrets.pairs(lambda a, b: True), 'not a function. Write pairs([("hiv", "flu")])'),
        (lambda: tc.secrets.pairs({"hiv": "flu"}), "not a dict. Write pairs("),
        (lambda: tc.where("'x y' == 1"), "Put a name with spaces or signs in backticks: `x y`."),
        (lambda: tc.where("a-b == 1"), "Put a name with spaces or signs in backticks: `a-b`."),
        (lambda: tc.where("not 'x y' in [1]"), "Put a name with spaces or signs in backticks: `x y`."),
    ],
)
def test_what_is_swapped_or_quoted_is_refused_with_the_form_that_works(ask: Callable[[], object], fix: str) -> None:
    with pytest.raises(tc.PolicyError) as refused:
        ask()
    assert fix in str(refused.value)


@pytest.mark.parametrize("text", ["select * from people", " WITH a AS (SELECT 1) SELECT * FROM a", "FROM people"])
def test_a_query_in_sql_is_no_rows(text: str) -> None:
    with pytest.raises(tc.DataRefused, match=r"not a query. Give the result of the query: duckdb\.sql\('select"):
        tc.Session(POLICY, text, budget=1)


def test_a_grant_with_a_decimal_comma_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(tc.LedgerError, match=r"0,5 looks like a decimal comma; write 0\.5\."):
        tc.Ledger(tmp_path / "ledger.db").grant(dataset="clinic", epsilon="0,5")
