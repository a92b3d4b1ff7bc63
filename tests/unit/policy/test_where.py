"""Predicates: what texts mean, that they read back, and that nothing in them is ever run."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force import every_record
from parameters import examples
from strategies import domains, predicates
from tacit.errors import PlanError, PolicyError
from tacit.plan.question import resolve
from tacit.plan.questions import count, cumulative, histogram, marginals
from tacit.policy.attributes import Categories, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain, positions
from tacit.policy.where import Both, Compare, Either, Not, col, where

DOMAIN = Domain(
    {
        "age": Integers(0, 20, 5),
        "sex": Categories(["f", "m"]),
        "stage": Categories(["early", "mid", "late"], ordered=True),
        "smoker": Flag(),
        "place": Grid(3, 2),
        "clicked": Items(3),
        "two words": Flag(),
    }
)


def picked(predicate, name):
    """The values of one attribute for which a predicate holds, the others being fixed."""
    test = where(predicate).compile(DOMAIN)
    attribute = DOMAIN[name]
    base = (0, "f", "early", False, (0, 0), (), False)
    place = list(DOMAIN).index(name)
    found = []
    for at in range(attribute.size):
        record = DOMAIN.record([*base[:place], attribute.value(at), *base[place + 1 :]])
        if test.of_record(positions(DOMAIN, record)):
            found.append(attribute.value(at))
    return found


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("age < 10", "age", [0, 5]),
        ("age <= 10", "age", [0, 5, 10]),
        ("10 < age", "age", [15, 20]),
        ("age >= 7.5", "age", [10, 15, 20]),
        ("age < 7", "age", [0, 5]),
        ("5 <= age < 15", "age", [5, 10]),
        ("age != 5", "age", [0, 10, 15, 20]),
        ("age in [0, 20]", "age", [0, 20]),
        ("age not in (0, 20)", "age", [5, 10, 15]),
        ("age < -1", "age", []),
        ("age < 1e999", "age", [0, 5, 10, 15, 20]),
        ("not age < 10 and not age == 20", "age", [10, 15]),
        ("age == 0 or age == 20", "age", [0, 20]),
        ("sex == 'm'", "sex", ["m"]),
        ("stage < 'late'", "stage", ["early", "mid"]),
        ("stage >= 'mid'", "stage", ["mid", "late"]),
        ("smoker", "smoker", [True]),
        ("smoker == False", "smoker", [False]),
        ("not smoker", "smoker", [False]),
        ("`two words`", "two words", [True]),
        ("place.row >= 1 and place.column == 0", "place", [(1, 0), (2, 0)]),
    ],
)
def test_what_texts_mean(text, name, expected):
    assert picked(text, name) == expected


@pytest.mark.parametrize("name", ["age", "smoker"])
def test_numbers_longer_than_any_float_are_compared_exactly(name):
    huge = 9 * 10**400
    everybody = picked(f"{name} > -1", name)
    assert picked(f"{name} < {huge}", name) == everybody
    assert picked(f"{name} > {huge}", name) == []


def test_items_are_asked_one_by_one():
    test = where("clicked.has(1) and not clicked.has(2)").compile(DOMAIN)
    for items, expected in (({1}, True), ({1, 2}, False), (set(), False)):
        record = DOMAIN.record((0, "f", "early", False, (0, 0), items, False))
        assert test.of_record(positions(DOMAIN, record)) is expected


def test_objects_and_texts_are_the_same():
    assert (col("age") < 18) & ~(col("sex") == "f") == where("age < 18 and not sex == 'f'")
    assert col("age").is_between(1, 5) == where("age >= 1 and age <= 5")
    assert col("clicked").has(3) | (col("place").row > 1) == where("clicked.has(3) or place.row > 1")
    assert where(col("smoker")) == where("smoker")


HOSTILE = {
    "calls": ["__import__('os')", "__import__('os').system('ls')", "age < __import__('os').getpid()"],
    "functions": ["age < (lambda: 1)()", "age < [x for x in (1, 2)][0]", "(age := 5) < 6", "age < f'{1}'"],
    "statements": ["await age", "yield", "import os", "age < 5; import os", "age < 5\nimport os"],
    "other Python": ["age if smoker else sex", "age is 5", "age.__class__ == 1", "clicked.has(open('x'))"],
    "arguments": ["clicked.has(1, 2)", "clicked.has(*[1])", "clicked.has(item=1)", "clicked.had(1)", "place.depth > 1"],
    "no constant": ["age < other", "age", "1 < 2", "age < 1 + 1", "'age' < 5", "b'x' == sex"],  # age means age == True
    "unfinished": ["", "   ", "()", "age <", "age < 5)", "((age < 5)", "age < `5", "``", "age < 5\0", "\ud800 < 5"],
    "stand-ins": ["_tacit_quoted_zz < 5", "_tacit_quoted_ff < 5"],
    "long": ["(" * 5000 + "age < 5" + ")" * 5000, "not " * 5000 + "smoker", " or ".join(["age < 5"] * 5000)],
    "lists": ["age in 'abc'", "age in 5", "age in [[1]]"],
    "numbers": ["age < '5'", "age < True", "age < " + "9" * 5000, "age == 1e400"],
    "values": ["sex < 'm'", "sex == 'x'", "stage > 'x'", "agee < 5"],
    "kinds": ["clicked == 1", "age.has(1)", "age.row == 1", "place == 1", "place.row == 9"],
}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("text", [*chain(*HOSTILE.values())], ids=lambda text: text[:30])
def test_nothing_is_run_and_what_is_no_predicate_is_refused(text):
    with pytest.raises(PolicyError) as refused:
        where(text).compile(DOMAIN)
    assert len(str(refused.value)) < 500


FOR_INSTANCE = "For instance: age < 18 and disease in ['flu', 'hiv'], or clicked.has(7)."
UNORDERED = "must not compare unordered categories. Declare ordered=True (in a file: `ordered: true`), or use `in`."


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: where("__import__('os')"),
            " must compare attributes with constants, joined by and, or, not; got \"__import__('os')\". "
            + FOR_INSTANCE,
        ),
        (lambda: where("age <"), " must read like `age < 18 and disease == 'flu'`; got 'age <'. " + FOR_INSTANCE),
        (lambda: where("`age < 5"), " must close every backtick; got '`age < 5'. Add the second backtick."),
        (lambda: where(5), " must be a predicate; got 5. For instance tc.col('age') < 18."),
        (lambda: bool(col("age") < 5), " must be combined with & and |, not `and` and `or`. Add parentheses."),
        (lambda: col("age") < col("sex"), " must compare an attribute with a constant. Write the number or text."),
        (lambda: col("age").is_in("abc"), " must be followed by a list; got 'abc'. Write in [a, b]."),
        ("agee < 5", " must be an attribute of the domain; got 'agee'. Did you mean 'age'?"),
        ("sex < 'm'", f": sex < 'm' {UNORDERED}"),
        ("age < '5'", ": age < '5' must compare with a number; got '5'. Remove the quotes."),
        ("clicked == 1", ": clicked == 1 must ask for one item. Write clicked.has(item)."),
        ("place == 1", ": place == 1 must say row or column. Write place.row or place.column."),
    ],
)
def test_refusals_word_for_word(make, sentence):
    with pytest.raises(PolicyError) as refused:
        where(make).compile(DOMAIN) if isinstance(make, str) else make()
    assert str(refused.value) == f"where{sentence}"


def test_backticks_in_quoted_texts_mean_nothing():
    assert where("sex == 'a`b`c'") == Compare("sex", "==", "a`b`c")
    assert where('`a "b` == "c`d"') == Compare('a "b', "==", "c`d")


@pytest.mark.parametrize("name", ["and", "None", "a b", "ﬁ", "_tacit_quoted_61", "a.b", "1", "'", "é", "match", " "])
def test_any_name_reads_back(name):
    for predicate in (col(name) < 5, ~(col(name).row == 1), col(name).has("x") | (col(name) == "`")):
        assert where(str(predicate)) == predicate


def test_numbers_of_numpy_and_sets_read_back_in_one_order():
    assert str(col("age") < np.int64(5)) == "age < 5"
    assert str(col("age") < np.float64("inf")) == "age < 1e999"
    assert str(col("age").is_in({"b", "a", "c"})) == "age in ['a', 'b', 'c']"
    assert where("age < 1e999") == (col("age") < float("inf"))


def test_chains_are_written_without_brackets():
    text = "age < 5 and smoker == True and sex == 'f' or age > 15"
    assert str(where(text)) == "(age < 5 and smoker == True and sex == 'f') or age > 15"
    long = " or ".join(f"age == {n}" for n in range(200))
    assert str(where(long)) == long
    assert where(long) == where(str(where(long)))


OPERANDS = st.integers() | st.text(max_size=8) | st.booleans() | st.floats(allow_nan=False)
ATOMS = st.builds(
    Compare,
    st.text(min_size=1, max_size=8).filter(lambda name: "`" not in name),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    OPERANDS,
    st.sampled_from(["", "row", "column"]),
) | st.builds(Compare, st.sampled_from(["a", "not", "x y"]), st.just("in"), st.lists(OPERANDS, max_size=3).map(tuple))
PREDICATES = st.recursive(
    ATOMS | st.builds(Compare, st.just("c"), st.just("has"), OPERANDS),
    lambda inner: st.builds(Both, inner, inner) | st.builds(Either, inner, inner) | st.builds(Not, inner),
    max_leaves=8,
)


@examples(300)
@given(PREDICATES)
def test_every_predicate_reads_back_as_itself(predicate):
    assert where(str(predicate)) == predicate


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_text_and_its_object_pick_the_same_records(data):
    domain = data.draw(domains())
    predicate = data.draw(predicates(domain))
    test, again = predicate.compile(domain), where(str(predicate)).compile(domain)
    for record in every_record(domain):
        at = positions(domain, record)
        assert test.of_record(at) == again.of_record(at)
        assert (~predicate).compile(domain).of_record(at) != test.of_record(at)


@examples(300)
@given(st.text(max_size=30))
def test_any_text_is_a_predicate_or_refused(text):
    try:
        where(text)
    except PolicyError:
        return


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("sex = 'm'", "Write == instead of =."),
        ("smoker && age < 5", "Write and instead of &."),
        ("smoker & (age < 5)", "Write and instead of &."),
        ("smoker || age < 5", "Write or instead of |."),
        ("!smoker", "Write not instead of !."),
        ("age <> 5", "Write != instead of <>."),
        ("smoker AND age < 5", "Write and, or, not and in with small letters."),
        ("age between 3 and 5", "Write 3 <= age <= 5."),
        ("smoker and age BETWEEN 3 AND 5", "Write 3 <= age <= 5."),
        ("two words == True", "Put a name with spaces in backticks: `two words`."),
        ("smoker and two words", "Put a name with spaces in backticks: `two words`."),
        ("(smoker and age < 5", "Check the brackets."),
        ("sex == 'm", "Close the quotes."),
        ("", "where must not be empty. Leave it out to ask about everybody."),
        ("sex == m", "put quotes around m if it is a text: 'm'."),
        ("sex in [f, m]", "put quotes around f if it is a text: 'f'."),
        ("sex in 'm'", "Write in [a, b]."),
    ],
)
def test_other_languages_are_understood_well_enough_to_say_the_fix(text, fix):
    with pytest.raises(PolicyError) as refused:
        where(text)
    assert str(refused.value).endswith(fix)


def test_text_inside_quotes_is_not_taken_for_a_mistake():
    with pytest.raises(PolicyError) as refused:
        where("sex == 'a = b && two words' or or")
    assert str(refused.value).endswith("or clicked.has(7).")


def test_between_is_is_between():
    assert str(col("age").between(5, 10)) == str(col("age").is_between(5, 10)) == "age >= 5 and age <= 10"


def test_a_query_says_the_same_about_its_predicate():
    with pytest.raises(PlanError) as refused:
        resolve(count("sex > 'm'"), DOMAIN)
    assert str(refused.value) == f"where: sex > 'm' {UNORDERED}"


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda: histogram(["age", "sex"]),
            "histogram must name attributes one by one; got ['age', 'sex']. Write histogram('age', 'sex').",
        ),
        (lambda: marginals(["age", "sex"]), "marginals must name attributes one by one; got ['age', 'sex']."),
        (
            lambda: resolve(histogram("AGE"), DOMAIN),
            "histogram must be an attribute of the domain; got 'AGE'. Did you mean 'age'?",
        ),
        (
            lambda: resolve(cumulative("sex"), DOMAIN),
            "cumulative must have an order; got 'sex'. Declare ordered=True (in a file: `ordered: true`).",
        ),
    ],
)
def test_a_query_is_refused_in_the_words_of_the_one_who_asked(ask, sentence):
    with pytest.raises(PlanError) as refused:
        ask()
    assert str(refused.value).startswith(sentence)
