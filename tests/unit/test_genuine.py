"""Objects that lie are refused where they are handed in: nothing is planned, charged or counted by what they say."""

import copy
import dataclasses
import pickle

import pandas as pd
import pytest

import tacit as tc
from tacit.ledger.ledger import Ledger
from tacit.plan.line_moves import _Counted
from tacit.plan.queries.count import Count
from tacit.plan.queries.cumulative import Cumulative
from tacit.plan.queries.marginals import Marginals
from tacit.policy.attributes import Integers
from tacit.policy.genuine import is_genuine
from tacit.policy.secrets.one_attribute import Attributes
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
        return _Counted(domain.axes_of("age")[0])


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


class Named(str):
    """A text that may equal anything."""

    __slots__ = ()


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
    lambda: Marginals(((Named("ill"),),)),
]


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_questions_and_predicates(number):
    made = session()
    for ask in (made.release, made.plan, made.explain, lambda query, _: tc.largest_step(query, POLICY)):
        with pytest.raises((tc.PlanError, tc.PolicyError), match="must be"):
            ask(QUESTIONS[number](), "0.001")
    assert made.remaining == 1


POLICIES = [
    lambda: Edgeless(DOMAIN, tc.secrets.attributes("ill")),
    lambda: tc.Policy(DOMAIN, Silent(("ill",))),
    lambda: tc.Policy(DOMAIN, tc.secrets.attributes("age") | Silent(("ill",))),
    lambda: tc.Policy(DOMAIN, tc.secrets.attributes("ill").only_for(LIES)),
    lambda: tc.Policy(tc.Domain({"ill": tc.Flag(), "age": Vague(0, 9)}), tc.secrets.attributes("ill")),
]


@pytest.mark.parametrize("number", range(len(POLICIES)))
def test_policies(number):
    with pytest.raises(tc.PolicyError, match="Policy itself"):
        session(POLICIES[number]())
    with pytest.raises(tc.PolicyError, match="Policy itself"):
        tc.explain(tc.histogram("ill"), POLICIES[number](), epsilon=1)
    with pytest.raises(tc.PolicyError, match="Policy itself"):
        Planner(POLICIES[number]())


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
