"""Every question: what job files may write for it, what the schema refuses, and that its parts fit together."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import duckdb
import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit as tc
from brute_force import answers_of, every_record
from tacit import noise
from tacit.errors import PlanError
from tacit.plan.choose import choose
from tacit.plan.measure.measured import CellCounts, CellSums, ItemHolders
from tacit.plan.question import resolve
from tacit.plan.questions import QUESTIONS
from tacit.plan.questions.written import KEYWORDS, example, from_document, query_schema
from tacit.release.estimate.measure import true_answers
from tacit.report.charts.release_charts import chart, chart_text
from tacit.rows.rows import open_rows

DOMAIN = tc.Domain(
    {
        "age": tc.Integers(-1, 5),
        "sex": tc.Categories(["m", "f"]),
        "place": tc.Grid(2, 2),
        "sick": tc.Flag(),
        "clicked": tc.Items(3),
    }
)
PLAIN = tc.Domain({name: DOMAIN[name] for name in ("age", "sex", "sick")})
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("age", "sex", "clicked"))
# what only some policies allow: no record is shown where every one has a secret, or where it may be a list of items
SHOWN = tc.Policy(PLAIN, tc.secrets.attributes("age", where="age == 1"))
SCHEMA = jsonschema.Draft202012Validator(query_schema())
WRITTEN = {
    "count": ["count", {"count": "age < 3"}, {"count": {"where": "sick"}}, {"count": None}],
    "histogram": [{"histogram": "age"}, {"histogram": ["age", "sex"]}, {"histogram": {"attributes": ["age"]}}],
    "marginals": ["marginals", {"marginals": ["age", "sex", "sick"]}, {"marginals": {"sets": [["age"], ["sex"]]}}],
    "counts": [
        {"counts": {"predicates": {"small": "age < 3", "sick": "sick and sex == 'f'"}}},
        {"counts": {"predicates": ["age < 3", "sick"], "where": "sex == 'm'"}},
        {"counts": ["age < 3", "sick"]},
    ],
    "cumulative": [{"cumulative": "age"}, {"cumulative": {"attribute": "age", "where": "sick"}}],
    "ranges": [{"ranges": "age"}, {"ranges": {"attribute": "age", "ranges": [[0, 2], [3, 5]]}}],
    "rectangles": [
        {"rectangles": ["age", "sick"]},
        {"rectangles": {"attributes": ["age", "sick"], "rectangles": [[0, 2, False, True], [3, 5, True, True]]}},
    ],
    "total": [
        {"total": "age"},
        {"total": {"attribute": "age", "by": "sex"}},
        {"total": {"attribute": "age", "by": ["sex", "sick"]}},
    ],
    "mean": [{"mean": "age"}, {"mean": {"attribute": "age", "by": ["sex"], "where": "sick"}}],
    "variance": [{"variance": "age"}, {"variance": {"attribute": "age", "by": ["sex"], "where": "sick"}}],
    "median": [{"median": "age"}, {"median": {"attribute": "age", "where": "sick"}}],
    "quantiles": [
        {"quantiles": {"attribute": "age", "at": [0.25, "1/3"]}},
        {"quantiles": {"attribute": "age", "at": 0.1}},
    ],
    "clusters": [
        {"clusters": {"attributes": ["age"], "k": 2}},
        {"clusters": {"attributes": "age", "k": 1, "where": "sick"}},
    ],
    "true_records": [
        {"true_records": ["age", "sick"]},
        {"true_records": {"columns": "age", "key": ["sex", "id"], "application": "lights", "where": "sex == 'm'"}},
        {"true_records": {"columns": "age", "key": ["id"], "version": "May"}},
    ],
    "top_k": [
        {"top_k": {"attribute": "clicked", "k": 2}},
        {"top_k": {"predicates": {"one": "clicked.has(1)", "small": "age < 3"}, "k": 1, "where": "sick"}},
    ],
    "above": [
        {"above": {"attribute": "clicked", "threshold": 3, "at_most": 1, "values": False}},
        {"above": {"predicates": ["clicked.has(1)", "age < 3"], "threshold": [3, 5], "at_most": 1}},
    ],
    "below": [
        {"below": {"where": "sick", "threshold": 3}},
        {"below": {"item": ["clicked", 1], "threshold": 3}},
        {"below": {"predicates": ["clicked.has(1)", "age < 3"], "threshold": 3, "at_most": 1}},
    ],
}


def test_every_question_is_written_here():
    assert set(WRITTEN) == set(KEYWORDS)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("keyword", WRITTEN)
def test_a_question_reads_fits_the_schema_and_is_written_as_it_reads(keyword):
    policy = SHOWN if keyword == "true_records" else POLICY
    for document in WRITTEN[keyword]:
        SCHEMA.validate(document)
        query = resolve(from_document(document), policy.domain)
        again = query.document()
        SCHEMA.validate(again)
        assert resolve(from_document(again), policy.domain) == query
        assert choose(query, policy, 1).query.words(policy.domain)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.keyword)
def test_no_question_takes_a_key_that_it_does_not_know(question):
    for document in WRITTEN[question.keyword]:
        given = document[question.keyword] if isinstance(document, dict) else {}
        if not isinstance(given, dict):
            continue
        wrong = {question.keyword: {**given, "colour": "red"}}
        assert not SCHEMA.is_valid(wrong)
        with pytest.raises(PlanError, match=rf"query\.{question.keyword} must be a known key; got 'colour'"):
            from_document(wrong)
        for key in question.required:
            less = {question.keyword: {name: value for name, value in given.items() if name != key}}
            assert not SCHEMA.is_valid(less)
            with pytest.raises(PlanError, match=f"must say {key}"):
                from_document(less)
    assert not SCHEMA.is_valid({question.keyword: {"colour": "red"}})
    assert not SCHEMA.is_valid({"colour": {}})


@pytest.mark.one_in(8)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_every_question_has_an_example_that_can_be_audited(keyword):
    domain = tc.Domain({"age": tc.Integers(0, 2), "sex": tc.Categories(["m", "f"]), "stage": tc.Integers(0, 1)})
    shows = tc.secrets.records("age == 1 and sex == 'm'")
    policy = tc.Policy(domain, shows if keyword == "true_records" else tc.secrets.everything())
    query = resolve(example(keyword, policy), domain)
    found = tc.audit.exact(query, policy, 1)
    assert found.forward.low <= 1
    assert found.forward.high <= 1 + 1e-9


@pytest.mark.one_in(8)
@pytest.mark.parametrize("keyword", [k for k in KEYWORDS if k not in ("top_k", "above", "below", "true_records")])
def test_what_is_counted_gives_the_answers_of_the_definition(keyword):
    """Rows are counted for the tallies of a question; added up person by person it is the same."""
    people = every_record(PLAIN)[::3]
    frame = pd.DataFrame(people, columns=list(PLAIN))
    policy = tc.Policy(PLAIN, tc.secrets.everything())
    for document in WRITTEN[keyword]:
        query = resolve(from_document(document), PLAIN).counted
        assert all(isinstance(tally, CellCounts | CellSums | ItemHolders) for tally in query.tallies(policy))
        slow = sum(answers_of(query, PLAIN, person) for person in people)
        assert true_answers(query, open_rows(frame, PLAIN), policy).tolist() == slow.tolist()
        assert query.size(PLAIN) == len(slow) == len(next(iter(query.labels(PLAIN).values())))
        by_audit = sum(
            query.added_by(dict(zip(PLAIN, person, strict=True)), PLAIN)
            for person in people
            if query.where is None or answers_of(tc.count(query.where), PLAIN, person)[0]
        )
        assert np.asarray(by_audit).tolist() == slow.tolist()


def test_sums_by_cell_are_the_same_however_they_are_counted():
    people = every_record(PLAIN)[::2]
    frame = pd.DataFrame(people, columns=list(PLAIN))
    policy = tc.Policy(PLAIN, tc.secrets.everything())
    query = tc.total("age", by=["sex", "sick"], where="age > 0")
    wanted = sum(answers_of(query, PLAIN, record) for record in people).tolist()
    for rows in (frame, pl.from_pandas(frame).lazy(), duckdb.from_df(frame)):
        assert true_answers(query, open_rows(rows, PLAIN), policy).tolist() == wanted


NO_NUMBER = "must be declared as integers or decimals"
SHARES = "For instance [0.25"


@pytest.mark.parametrize(
    ("ask", "key", "rule", "fix"),
    [
        (lambda: tc.mean("sex"), "mean", NO_NUMBER, "Count it instead."),
        (lambda: tc.median("sex"), "median", NO_NUMBER, "Ask for `cumulative`."),
        (lambda: tc.quantiles("place", [0.5, 0.9]), "quantiles", NO_NUMBER, "Ask for `cumulative`."),
        (lambda: tc.total("age", by="clicked"), "total.by", "must not be a set of items", "Use `where`"),
        (lambda: tc.mean("age", by="age"), "mean.by", "must not be what is added up", "Ask for histogram('age')."),
        (lambda: tc.mean("age", by=["sex", "sex"]), "mean.by", "must name different attributes", "Remove one."),
        (lambda: tc.mean("age", by="sexx"), "mean.by", "must be an attribute of the domain", "Did you mean 'sex'?"),
        (lambda: tc.mean("agee"), "mean", "must be an attribute of the domain", "Did you mean 'age'?"),
        (lambda: tc.mean("age", where="sex > 1"), "where", "must", ""),
        (lambda: tc.total("age", by=3), "total.by", "must name attributes", "Write by=('sex',)."),
        (lambda: tc.quantiles("age", [0.5, 1]), "quantiles.at", "must lie strictly between 0 and 1", SHARES),
        (lambda: tc.quantiles("age", [0]), "quantiles.at", "must lie strictly between 0 and 1", SHARES),
        (lambda: tc.quantiles("age", [True]), "quantiles.at", "must be shares of the people", SHARES),
        (lambda: tc.quantiles("age"), "quantiles.at", "must list 1 to 1,000 shares", SHARES),
        (lambda: tc.ranges("age", 5), "ranges", "must be 'all' or a list", "Write [[low, high], ..]."),
        (lambda: tc.mean("age", "age < 3"), "mean.by", "must be an attribute of the domain", "Did you mean 'age'?"),
        (lambda: tc.quantiles("age", "half"), "quantiles.at", "must", ""),
        (lambda: tc.quantiles("age", []), "quantiles.at", "must list 1 to 1,000 shares", SHARES),
    ],
)
def test_what_cannot_be_asked_is_refused_with_key_rule_and_fix(ask, key, rule, fix):
    with pytest.raises(tc.PlanError) as refused:
        choose(ask(), POLICY, 1)
    assert refused.value.key.startswith(key), str(refused.value)
    assert refused.value.rule.startswith(rule)
    assert refused.value.fix.startswith(fix)


@pytest.mark.parametrize(
    "query",
    [tc.mean("age"), tc.median("age"), tc.cumulative("age"), tc.clusters("age", k=2), tc.total("age", by="sex")],
    ids=lambda query: query.keyword,
)
def test_numbers_of_people_with_several_rows_are_of_rows_and_say_so(query):
    policy = tc.Policy(PLAIN, tc.secrets.everything(), person="id", per_person=2)
    plan = choose(query, policy, 1)
    assert "of rows" in str(plan.query)
    assert plan.document()["query"][plan.query.word]["of"] == "rows"
    assert choose(query, policy.of_one_row, 1).query == query
    with pytest.raises(tc.PlanError, match=r"of must be rows, since .* per_person=2; got 'people'"):
        choose(replace(query, of="people"), policy, 1)


def test_counts_are_of_people_unless_rows_are_asked_for():
    policy = tc.Policy(PLAIN, tc.secrets.everything(), person="id", per_person=2)
    for query in (tc.count("sick"), tc.histogram("sex"), tc.top_k("sex", 1), tc.below("sick", 5)):
        rows = replace(query, of="rows")
        assert choose(query, policy, 1).query == query
        assert choose(rows, policy, 1).query == from_document(rows.document()).resolved(PLAIN)
        assert choose(query, policy, 1).rmse < choose(rows, policy, 1).rmse
    with pytest.raises(tc.PlanError, match=r"count\.of must be people or rows; got 'visits'"):
        tc.count(of="visits")
    items = tc.Policy(tc.Domain({"got": tc.Items(3)}), tc.secrets.everything(), person="id")
    with pytest.raises(tc.PlanError, match="must not be rows where a person's items come from several rows"):
        choose(tc.histogram("got", of="rows"), items, 1)


def test_a_sum_by_cell_of_somebody_who_changes_cells():
    """From 5 in one cell to 5 in the other: one falls by 5, the other rises by 5; in one cell from -1 to 5 by 6."""
    step = tc.largest_step(tc.total("age", by="sex"), tc.Policy(PLAIN, tc.secrets.everything()))
    assert (step.up, step.down, step.l1, step.square) == (6, 6, 10, 50)
    step = tc.largest_step(tc.total("age", by="sex"), tc.Policy(PLAIN, tc.secrets.within(2, "age")))
    assert (step.up, step.down, step.l1) == (2, 2, 2)
    assert tc.largest_step(tc.mean("age", by="sex"), tc.Policy(PLAIN, tc.secrets.everything())).l1 == 10


def test_the_parts_of_a_mean_cost_epsilon_together():
    for policy in (
        tc.Policy(PLAIN, tc.secrets.everything()),
        tc.Policy(PLAIN, tc.secrets.within(1, "age")),
        tc.Policy(PLAIN, tc.secrets.attributes("sick")),
        tc.Policy(PLAIN, tc.secrets.attributes("age"), presence="secret"),
    ):
        for query in (tc.mean("age"), tc.mean("age", by="sex"), tc.mean("age", by="sex", where="sick")):
            plan = choose(query, policy, "1/3")
            assert sum(part.epsilon for part in plan.parts) == plan.epsilon == Fraction(1, 3)
            assert all(part.epsilon > 0 or part.is_exact for part in plan.parts)
            assert tc.audit.exact(query, policy, "1/3").forward.high <= 1 / 3 + 1e-9


def test_what_is_exact_stays_exact():
    frame = pd.DataFrame({"age": [0, 1, 5, 5], "sex": ["m", "m", "f", "f"], "sick": [True, False, True, True]})
    session = tc.Session(tc.Policy(PLAIN, tc.secrets.attributes("sick")), frame, budget=10)
    mean = session.release(tc.mean("age", by="sex"), 1)
    assert mean.plan.is_exact
    assert mean.values.tolist() == [0.5, 5.0]
    assert all((end == mean.values).all() for end in mean.interval())
    assert session.release(tc.median("age"), 1).values.tolist() == [1.0]
    assert session.release(tc.quantiles("age", [0.1, 0.5, 0.51]), 1).values.tolist() == [0.0, 1.0, 5.0]
    assert session.release(tc.total("age", by=["sex"]), 1).values.tolist() == [1.0, 10.0]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "query",
    [
        tc.total("age", by="sex"),
        tc.total("age", by=["sex", "sick"]),
        tc.mean("age"),
        tc.mean("age", by="sick"),
        tc.median("age"),
        tc.quantiles("age", [0.25, 0.75]),
    ],
    ids=str,
)
def test_a_release_has_a_frame_a_certificate_files_and_a_chart(query, tmp_path):
    frame = pd.DataFrame(every_record(PLAIN) * 5, columns=list(PLAIN))
    session = tc.Session(tc.Policy(PLAIN, tc.secrets.everything(), presence="secret"), frame, budget=10)
    assert "mechanism" in str(session.explain(query, 1, show=False))
    record = session.release(query, 1, consistent=True, nonnegative=query.never_negative(PLAIN))
    assert len(record.frame) == len(record.values) == record.plan.answers
    lower, upper = record.interval(0.9)
    assert ((lower <= record.values) & (record.values <= upper)).all()
    assert record.certificate["query"] == query.document()
    assert (record.save(tmp_path / "out") / "values.csv").read_text().count("\n") == len(record.values) + 1
    assert chart(record).to_dict()["title"]["text"]
    assert "age" in chart_text(record)


def test_numbers_that_are_counted_in_tenths_are_published_as_they_are(monkeypatch):
    """Sums are whole numbers of units; values, intervals and errors are not."""
    frame = pd.DataFrame({"age": [0, 1, 5, 5], "sex": ["m", "m", "f", "f"], "sick": [True, False, True, True]})
    policy = tc.Policy(PLAIN, tc.secrets.everything(), presence="secret")
    found = {}
    for unit in (Fraction(1), Fraction(1, 10)):
        monkeypatch.setattr(tc.Integers, "unit", unit)
        with noise.replayed(noise.Keystream(key=b"the same noise, in another unit!")):
            session = tc.Session(policy, frame, budget=10)
            asked = (tc.total("age"), tc.total("age", by="sex"), tc.mean("age", by="sex"), tc.median("age"))
            records = [session.release(query, 1) for query in asked]
            found[unit] = [np.array([record.values, *record.interval()]) for record in records]
            found[unit] += [np.array(record.plan.rmse) for record in records]
    for whole, tenth in zip(*found.values(), strict=True):
        assert tenth == pytest.approx(whole / 10)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (tc.marginals("age", "sick"), "marginals(age, sick)"),
        (tc.marginals("age", "sick", ways=1), "marginals(age, sick, ways=1)"),
        (tc.marginals(), "marginals()"),
        (tc.marginals("age", "sex", where="sick"), "marginals(age, sex where sick == True)"),
        (tc.marginals(where="sick"), "marginals(where sick == True)"),
    ],
)
def test_marginals_are_written_as_they_are_asked(query: object, text: str) -> None:
    assert str(query) == text
