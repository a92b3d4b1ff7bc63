"""Objects that lie are refused where they are handed in: nothing is planned, charged or counted by what they say."""

import copy
import dataclasses
import enum
import pickle

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.ledger.ledger import Ledger
from tacit.plan.questions.counts import Count, Marginals
from tacit.plan.questions.cumulative import Cumulative
from tacit.plan.sensitivity.responses import everybody
from tacit.policy.attributes import Integers
from tacit.policy.genuine import is_genuine
from tacit.policy.secrets.anything import Attributes
from tacit.policy.where import Compare
from tacit.release.planner import Planner

DOMAIN = tc.Domain({"ward": tc.Categories(["A", "B"]), "ill": tc.Flag(), "age": tc.Integers(0, 9)})
POLICY = tc.Policy(DOMAIN, tc.secrets.attributes("ill", "age"))
ROWS = pd.DataFrame({"ward": list("AABB"), "ill": [True, False, True, True], "age": [1, 2, 3, 3]})


class Lenient(Planner):  # type: ignore[misc]
    """Takes every plan for its own."""

    def has_made(self, plan):
        return True


class Duck:
    """Is no planner at all."""

    policy = POLICY

    def has_made(self, plan):
        return True


class Exact(Cumulative):
    """Says that only who is counted matters, so that nothing needs noise."""

    def bases(self, policy):
        return [(self, "direct")]

    def response(self, domain):
        return everybody().response(domain)


class Changing(Compare):
    """Public when it is planned, secret when it is counted."""

    asked = 0

    def compile(self, domain):
        Changing.asked += 1
        return (Compare("ward", "==", "A") if Changing.asked < 4 else Compare("ill", "==", True)).compile(domain)

    def columns(self):
        return frozenset({"ward", "ill"})


class Edgeless(tc.Policy):
    """Has secrets, and no edges."""

    shapes = ()


class Silent(Attributes):
    """Secrets without edges."""

    def shapes(self, domain):
        return []


class Vague(Integers):
    """An attribute of another class."""


def always(answer):
    """Return a method that ignores what it is given."""
    return lambda *_: answer


class Named(str):
    """A text that equals everything, and says something else whenever it is asked."""

    __slots__ = ()
    __eq__ = always(True)
    __ne__ = always(False)
    __hash__ = always(hash("ill"))
    __str__ = __repr__ = __format__ = lower = always("ill")

    def __iter__(self):
        return iter("ill")


class Number(int):
    """A number that equals everything, and is smaller than all others."""

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = always(True)
    __hash__ = __index__ = __int__ = __sub__ = always(0)
    __str__ = __repr__ = always("0")


class Mixed(str, enum.Enum):  # noqa: UP042 - as many still write them
    """Texts as enumerations were written before there was StrEnum."""

    A = "A"
    B = "B"


Member = enum.StrEnum("Member", [("A", "A"), ("B", "B")])
Stage = enum.IntEnum("Stage", [("LOW", 0), ("MIDDLE", 3), ("HIGH", 9)])


class Free(Ledger):
    """Charges nothing."""

    def charge(self, *args, **kwargs):
        return None


def session(policy=POLICY, **options):
    return tc.Session(policy, ROWS, budget=1, **options)


@pytest.mark.parametrize("planner", [Lenient, lambda _: Duck()], ids=["derived", "duck"])
def test_planners(planner):
    made = session()
    plan = made.plan(tc.histogram("ill"), "0.001")
    with pytest.raises(tc.PlanError, match="must be a Planner itself"):
        made.adopt(planner(POLICY))
    with pytest.raises(tc.PlanError, match="must be a plan that this session made"):
        made.release(dataclasses.replace(plan, noise=None))
    assert made.remaining == 1


LIES = Changing("ward", "==", "A")
QUESTIONS = [
    lambda: Exact("age"),
    lambda: Count(where=LIES),
    lambda: Count(where=~LIES & (tc.col("age") < 3)),
    lambda: Count(where=Duck()),
    lambda: tc.count(LIES),
    lambda: Marginals((("ill",),), where=~LIES),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_and_predicates(question):
    made = session()
    for ask in (made.release, made.plan, made.explain, lambda query, _: tc.largest_step(query, POLICY)):
        with pytest.raises((tc.PlanError, tc.PolicyError), match="must be"):
            ask(question(), "0.001")
    assert made.remaining == 1


POLICIES = [
    lambda: Edgeless(DOMAIN, tc.secrets.attributes("ill")),
    lambda: tc.Policy(DOMAIN, Silent(("ill",))),
    lambda: tc.Policy(DOMAIN, tc.secrets.attributes("age") | Silent(("ill",))),
    lambda: tc.Policy(DOMAIN, tc.secrets.attributes("ill").only_for(LIES)),
    lambda: tc.Policy(tc.Domain({"ill": tc.Flag(), "age": Vague(0, 9)}), tc.secrets.attributes("ill")),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_policies(policy):
    for take in (session, lambda policy: tc.explain(tc.histogram("ill"), policy, epsilon=1), Planner):
        with pytest.raises(tc.PolicyError, match="Policy itself"):
            take(policy())


def test_predicates_of_groups_and_of_askings():
    made = session(tc.Policy(DOMAIN, tc.secrets.attributes("ill")))
    with pytest.raises(tc.TacitError, match="must be built of"):
        made.split([LIES, ~LIES])
    with pytest.raises(tc.TacitError, match="must be built of"):
        made.asking(2, "0.5").above(LIES, threshold=1)


def test_ledgers(tmp_path):
    with pytest.raises(tc.LedgerError, match="must be a path"):
        session(ledger=Free(tmp_path / "ledger.db"), dataset="d")


def test_a_class_that_claims_to_be_ours_is_not():
    Fake = type("Compare", (Compare,), {"__module__": "tacit.policy.where"})  # noqa: N806
    assert not is_genuine(Fake("ward", "==", "A"))
    assert is_genuine(Compare("ward", "==", "A"))


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_copies_of_what_is_ours_are_ours(made):
    policy = made(POLICY)
    assert policy == POLICY
    assert session(policy).release(made(tc.count(tc.col("age") < 3)), 1).values.shape == (1,)
    assert is_genuine(made(tc.histogram("ill", "ward")))
    assert is_genuine(dataclasses.replace(Compare("ward", "==", "A"), operand="B"))


# ---- texts and numbers of derived classes are read as the plain ones that they are


def every_class(value):
    """Return the classes of a value, of the fields of what is ours, and of all in them."""
    found = {type(value)}
    parts = value if isinstance(value, tuple | list) else ()
    if dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    return found.union(*map(every_class, parts))


def assert_plain(derived, plain, kind):
    assert str(derived) == str(plain)
    assert derived == plain
    assert kind not in every_class(derived)
    assert is_genuine(derived)


TEXTS = {"StrEnum": Member, "Enum of texts": Mixed, "hostile": Named, "numpy": np.str_}
NUMBERS = {"IntEnum": Stage, "hostile": Number}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_values_of_derived_texts_are_their_plain_values(text):
    a, b = text("A"), text("B")
    for derived, plain in [
        (tc.Categories([a, b], otherwise=b), tc.Categories(["A", "B"], otherwise="B")),
        (tc.Items([a, b]), tc.Items(["A", "B"])),
        (tc.col("ward") == a, tc.col("ward") == "A"),
        (tc.col("ward").is_in([a, b]), tc.col("ward").is_in(["A", "B"])),
        (tc.secrets.values({"ward": [a]}), tc.secrets.values({"ward": ["A"]})),
        (tc.secrets.partition("ward", blocks=[[a, b]]), tc.secrets.partition("ward", blocks=[["A", "B"]])),
        (tc.secrets.pairs([({"ward": a}, {"ward": b})]), tc.secrets.pairs([({"ward": "A"}, {"ward": "B"})])),
    ]:
        assert_plain(derived, plain, text)
    policy = tc.Policy(tc.Domain({"ward": tc.Categories([a, b])}), tc.secrets.values({"ward": [a]}))
    exact = tc.Policy(tc.Domain({"ward": tc.Categories(["A", "B"])}), tc.secrets.everything())
    assert policy.fingerprint == tc.Policy(exact.domain, tc.secrets.values({"ward": ["A"]})).fingerprint
    assert session(policy).release(tc.count(tc.col("ward") == a), 1).values.shape == (1,)
    # where nothing is secret the numbers are those of the plain value
    public = tc.Policy(DOMAIN, tc.secrets.attributes("ill"))
    assert session(public).release(tc.count(tc.col("ward") == a), 1).values.tolist() == [2]


@pytest.mark.parametrize("text", [Named, np.str_], ids=["hostile", "numpy"])
def test_names_of_derived_texts_are_plain_names(text):
    ward, age, ill = text("ward"), text("age"), text("ill")
    for derived, plain in [
        (tc.Domain({ward: tc.Flag()}), tc.Domain({"ward": tc.Flag()})),
        (tc.count(tc.col(age) < 5), tc.count(tc.col("age") < 5)),
        (tc.histogram(ward, age), tc.histogram("ward", "age")),
        (tc.marginals(ward, age, ways=1), tc.marginals("ward", "age", ways=1)),
        (tc.marginals(sets=[[ward], [age]]), tc.marginals(sets=[["ward"], ["age"]])),
        (tc.cumulative(age), tc.cumulative("age")),
        (tc.ranges(age, [(1, 2)]), tc.ranges("age", [(1, 2)])),
        (tc.rectangles(age, ill, [[1, 2, 0, 1]]), tc.rectangles("age", "ill", [[1, 2, 0, 1]])),
        (tc.total(age, by=(ward,), weight=ill), tc.total("age", by=("ward",), weight="ill")),
        (tc.mean(age, by=[ward]), tc.mean("age", by=["ward"])),
        (tc.median(age), tc.median("age")),
        (tc.quantiles(age, [0.5]), tc.quantiles("age", [0.5])),
        (tc.clusters(age, k=2), tc.clusters("age", k=2)),
        (tc.top_k(ward, 1), tc.top_k("ward", 1)),
        (tc.above(ward, 3, at_most=1), tc.above("ward", 3, at_most=1)),
        (tc.true_records([age], key=ward, application=ill), tc.true_records(["age"], key="ward", application="ill")),
        (tc.secrets.attributes(ward, age), tc.secrets.attributes("ward", "age")),
        (tc.secrets.within(2, age), tc.secrets.within(2, "age")),
        (tc.secrets.partition(age, width=2), tc.secrets.partition("age", width=2)),
        (tc.secrets.values({ward: ["A"]}), tc.secrets.values({"ward": ["A"]})),
        (tc.known.marginal(ward), tc.known.marginal("ward")),
        (tc.Grid(3, 3, of=(age, ward)), tc.Grid(3, 3, of=("age", "ward"))),
    ]:
        assert_plain(derived, plain, text)
    known = [tc.known.marginal(ward)]
    policy = tc.Policy(
        DOMAIN, tc.secrets.attributes(age), known, name=text("town"), person=text("who"), order=age, item=text("it")
    )
    assert (policy.name, policy.person, policy.order, policy.item) == ("town", "who", "age", "it")
    assert every_class(policy) <= every_class(tc.Policy(DOMAIN, tc.secrets.attributes("age"), known, person="who"))
    public = tc.Policy(DOMAIN, tc.secrets.attributes("ill"))
    assert session(public).release(tc.histogram(ward), 1).values.tolist() == [2, 2]


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_derived_numbers_are_their_plain_values(number):
    low, middle, high = number(0), number(3), number(9)
    for derived, plain in [
        (tc.Integers(low, high, otherwise=middle), tc.Integers(0, 9, otherwise=3)),
        (tc.Decimals(low, high, step=middle), tc.Decimals(0, 9, step=3)),
        (tc.Categories([low, high]), tc.Categories([0, 9])),
        (tc.Grid(middle, high), tc.Grid(3, 9)),
        (tc.Items(high, first=middle, at_most=middle), tc.Items(9, first=3, at_most=3)),
        (tc.col("age") < middle, tc.col("age") < 3),
        (tc.col("age").is_between(low, middle), tc.col("age").is_between(0, 3)),
        (tc.known.size(high), tc.known.size(9)),
        (tc.ranges("age", [(low, middle)]), tc.ranges("age", [(0, 3)])),
        (tc.secrets.values({"age": [middle]}), tc.secrets.values({"age": [3]})),
    ]:
        assert_plain(derived, plain, number)
    assert tc.Policy(DOMAIN, tc.secrets.everything(), person="who", per_person=middle).per_person == 3
    public = tc.Policy(DOMAIN, tc.secrets.attributes("ill"))
    assert session(public).release(tc.count(tc.col("age") < middle), 1).values.tolist() == [2]


def test_a_refusal_names_the_class_that_is_not_ours():
    for door, inner in [
        (lambda: session().release(Count(where=~LIES), "0.001"), "Changing"),
        (lambda: tc.count(~LIES & (tc.col("age") < 3)), "Changing"),
        (lambda: session().release(Exact("age"), "0.001"), "Exact"),
        (lambda: session(POLICIES[0]()), "Edgeless"),
        (lambda: session(POLICIES[2]()), "Silent"),
        (lambda: session(POLICIES[4]()), "Vague"),
    ]:
        with pytest.raises(tc.TacitError, match=f"found an object of the class {inner}"):
            door()
