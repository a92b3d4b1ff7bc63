"""Whole releases under audit: mistakes that are planted into the real path, from rows to record, are found.

Each mistake replaces one function of the package; the audit is told nothing about it. The keys are fixed.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tacit as tc
from parameters import replaying
from tacit.audit import Verdict
from tacit.audit.sampled_audits.canonical import canonical
from tacit.audit.sampled_audits.made_up import made_up
from tacit.audit.sampled_audits.releases import READ_FIRST, Remembered, WholeRelease, list_published
from tacit.plan.choose import choose
from tacit.plan.measure.measured import CellCounts
from tacit.plan.plans.linear import blur
from tacit.release import planner
from tacit.release import session as sessions
from tacit.release.estimate import infer as inferring
from tacit.release.estimate import measure as measuring
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import measure
from tacit.release.results import derived, selections
from tacit.release.results.selections import select
from tacit.rows.rows import open_rows

KEY = b"tacit audits of whole releases.."
FEW = 1_000
NO_LIMIT = 1e6  # seconds: the number of samples must not hang on how busy a machine is
LEAK, NONE = Verdict.LEAK_FOUND, Verdict.NONE_FOUND
PEOPLE = tc.Domain({"age": tc.Integers(0, 9), "disease": tc.Categories(["flu", "hiv", "none"])})
OWNED = tc.Policy(PEOPLE, tc.secrets.attributes("age"), person="id", per_person=3)
ALONE = tc.Policy(PEOPLE, tc.secrets.attributes("age"), person="id")
COMING = tc.Policy(PEOPLE, tc.secrets.taking_part(), person="id", per_person=2)
MAY_LEAVE = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.everything(), presence="secret")
PLAIN = tc.Policy(PEOPLE, tc.secrets.attributes("disease"))
ONE_WAY = tc.Policy(PEOPLE, tc.secrets.values({"disease": ["hiv"]}))
BOUGHT = tc.Policy(tc.Domain({"item": tc.Items(8, at_most=2)}), tc.secrets.values({"item": [1]}), person="id")
NEAR = tc.Policy(PEOPLE, tc.secrets.within(2, "age"), person="id")
SMALL = tc.Domain({"age": tc.Integers(4, 5), "disease": tc.Categories(["flu", "hiv", "none"])})
KNOWN = tc.Policy(SMALL, tc.secrets.attributes("disease"), [tc.known.marginal("disease")])
SIZED = tc.Policy(PEOPLE, tc.secrets.attributes("disease"), [tc.known.size(40)])
MAP = tc.Policy(
    tc.Domain({"at": tc.Grid(3, 3, of=("lat", "lon"), low=(10, 20), high=(13, 26))}), tc.secrets.everything()
)
stream = replaying(KEY)


def noise_for_one_row(monkeypatch):
    def careless(query, policy, epsilon):
        return replace(choose(query, policy.owned_by(policy.person, 1), epsilon), policy=policy)

    monkeypatch.setattr(planner, "choose", careless)


def all_rows_kept(monkeypatch):
    def careless(*asked, **more):
        return open_rows(*asked, **{**more, "per_person": 100})

    monkeypatch.setattr(sessions, "open_rows", careless)


def all_items_kept(monkeypatch):
    def careless(rows, domain, **more):
        return open_rows(rows, tc.Domain({"item": tc.Items(8)}), **more)

    monkeypatch.setattr(sessions, "open_rows", careless)


def _inferred_with_the_truth(monkeypatch, changed):
    """Measurements hold no true answers, so a careless inference has to carry them past."""
    seen = []

    def careless_measure(plan, truth):
        seen.append(truth)
        return measure(plan, truth)

    for module in (inferring, derived):
        monkeypatch.setattr(module, "measure", careless_measure)
        monkeypatch.setattr(module, "infer", lambda measured, **more: changed(infer(measured, **more), seen[-1]))


def truth_in_post_processing(monkeypatch):
    _inferred_with_the_truth(
        monkeypatch, lambda record, truth: replace(record, values=np.where(truth == 0, 0.0, record.values))
    )


def truth_in_rounding(monkeypatch):
    _inferred_with_the_truth(
        monkeypatch, lambda record, truth: replace(record, values=record.values + 1e-9 * (truth[-1] % 2))
    )


def order_by_parity(monkeypatch):
    def careless(plan, truth, **more):
        record = select(plan, truth, **more)
        turn = slice(None, None, -1 if truth[0] % 2 else 1)
        return replace(record, places=record.places[turn].copy(), values=record.values[turn].copy())

    monkeypatch.setattr(selections, "select", careless)


def mean_over_the_true_count(monkeypatch):
    def careless(truth, plan):
        noisy = blur(truth, plan)
        noisy[1] = truth.sum() - noisy[0]  # the two sums of a mean: together they tell how many people there are
        return noisy

    monkeypatch.setattr(measuring, "blur", careless)


MISTAKES = {
    "noise for one row": (noise_for_one_row, OWNED, tc.histogram("age"), {}),
    "noise for one row, summed": (noise_for_one_row, OWNED, tc.total("age"), {"order": "day"}),
    "all rows kept": (all_rows_kept, ALONE, tc.total("age"), {"order": "day"}),
    "all rows kept, without order": (all_rows_kept, ALONE, tc.total("age"), {}),
    "all rows of somebody who leaves": (all_rows_kept, COMING, tc.total("age"), {"order": "day"}),
    "all items kept": (all_items_kept, BOUGHT, tc.histogram("item"), {}),
    "truth in post-processing": (truth_in_post_processing, PLAIN, tc.histogram("disease"), {"nonnegative": True}),
    "truth in the last digits": (truth_in_rounding, PLAIN, tc.histogram("disease"), {}),
    "mean over the true count": (mean_over_the_true_count, MAY_LEAVE, tc.mean("age"), {}),
    "order by parity": (order_by_parity, PLAIN, tc.top_k("disease", 2), {}),
}
# a loss of 3 in place of 1 that is spread over six noisy answers, or of 2 in one
SAMPLES = {"noise for one row": 6 * FEW, "all rows of somebody who leaves": 3 * FEW}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_anywhere_between_rows_and_record_is_found(mistake, monkeypatch):
    plant, policy, query, options = MISTAKES[mistake]
    plant(monkeypatch)
    samples = SAMPLES.get(mistake, FEW)
    found = tc.audit.release(policy, query, 1, samples=samples, seconds=NO_LIMIT, **options)
    assert found.verdict == LEAK, str(found)


RIGHT = {name: (policy, query, options) for name, (_, policy, query, options) in MISTAKES.items()} | {
    "consistent": (PLAIN, tc.marginals("age", "disease", ways=1), {"consistent": True, "nonnegative": True}),
    "cumulative": (NEAR, tc.cumulative("age"), {"consistent": True, "order": "day"}),
    "one way": (ONE_WAY, tc.histogram("disease"), {"nonnegative": True}),
    "known": (KNOWN, tc.count("disease == 'flu' and age < 5"), {}),
    "a declared size": (SIZED, tc.histogram("disease"), {}),
    "a map": (MAP, tc.histogram("at"), {}),
    "above": (BOUGHT, tc.above("item", 3, at_most=2), {}),
    "below": (BOUGHT, tc.below(item=("item", 0), threshold=3), {}),
    "top": (BOUGHT, tc.top_k("item", 2), {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", RIGHT)
def test_a_release_that_keeps_its_promise_is_not_accused(case):
    policy, query, options = RIGHT[case]
    found = tc.audit.release(policy, query, 1, samples=FEW, seconds=NO_LIMIT, **options)
    assert found.verdict == NONE, str(found)
    assert "beyond so many samples" in str(found)


@pytest.mark.slow
def test_a_chart_shows_no_more_than_the_record():
    """The specification of the chart as the only output: its data, titles and scales."""
    plan = choose(tc.histogram("disease"), PLAIN, 1)
    (pair,) = made_up(plan)

    def release(rows, size):
        opened = tc.Session(PLAIN, rows, 1000)
        return [opened.release(tc.histogram("disease"), 1).chart().to_dict(validate=False) for _ in range(size)]

    found = tc.audit.sampled(release, pair.hidden, pair.cover, 1, FEW, workers=1)
    assert found.verdict == NONE, str(found)


# --- made-up rows


def kept(frame, policy):
    """Return what a session counts of these rows."""
    rows = open_rows(frame, policy.domain, person=policy.person, per_person=policy.per_person)
    return int(rows.counts(()))


@pytest.mark.one_in(8)
@pytest.mark.parametrize("case", RIGHT)
def test_made_up_rows_can_be_opened_and_are_neighbours(case):
    policy, query, options = RIGHT[case]
    order = options.get("order")
    for pair in made_up(choose(query, policy.about(order=order), 1)):
        people = [kept(side, policy) for side in (pair.hidden, pair.cover)]
        assert min(people) >= 0
        assert abs(people[0] - people[1]) <= (policy.presence == "secret")
        assert canonical(pair.hidden) != canonical(pair.cover)
        if policy is SIZED:
            assert people == [40, 40]


def test_somebody_moves_with_all_rows_that_count_and_more():
    (pair,) = made_up(choose(tc.histogram("age"), OWNED.about(order="day"), 1))
    changed = (pair.hidden != pair.cover).any(axis=1)
    assert changed.sum() == 5
    assert pair.hidden[changed]["id"].nunique() == 1
    assert pair.hidden[changed]["day"].tolist() == [0, 1, 2, 3, 4]
    # one way only, and no order: which rows count would decide about the step
    one_way = tc.Policy(PEOPLE, tc.secrets.within(1, "age"), person="id", per_person=3)
    (pair,) = made_up(choose(tc.histogram("age"), one_way, 1))
    assert (pair.hidden != pair.cover).any(axis=1).sum() == 3


def test_a_person_column_that_is_an_attribute_is_refused():
    policy = tc.Policy(PEOPLE, tc.secrets.attributes("age"), person="disease")
    with pytest.raises(tc.PlanError, match="person must not be an attribute"):
        tc.audit.release(policy, tc.histogram("age"), 1, samples=FEW)


def test_rows_are_read_until_they_agree():
    class Rows:
        kind = "frame"
        reads = 0

        def __init__(self, drifts):
            self.drifts = drifts

        def tally(self, tallies):
            self.reads += 1
            return [np.array([5 + (self.drifts and self.reads == 2)]) for _ in tallies]

    steady, drifting = Rows(False), Rows(True)
    for rows, reads in ((steady, READ_FIRST), (drifting, 10)):
        seen = [Remembered(rows)] * 10
        answers = [one.tally([CellCounts(("age",))])[0].tolist() for one in seen]
        assert rows.reads == reads
        assert answers == [[6 if rows.drifts and at == 1 else 5] for at in range(10)]


@pytest.mark.parametrize("query", [tc.histogram("disease"), tc.true_records("age", key="row")], ids=str)
def test_plans_are_made_and_rows_opened_once_for_many_releases(query, monkeypatch):
    policy = tc.Policy(PEOPLE, tc.secrets.records("disease == 'hiv'"))
    planned, opened = [], []
    monkeypatch.setattr(planner, "choose", lambda *asked: planned.append(asked) or choose(*asked))
    monkeypatch.setattr(sessions, "open_rows", lambda *asked, **more: opened.append(asked) or open_rows(*asked, **more))
    whole = WholeRelease(policy, query, Fraction(3))
    (pair,) = whole.pairs()
    texts = {canonical(one) for side in (pair.hidden, pair.cover) for one in whole.release(side, 15)}
    assert len(planned) == 1
    assert len(opened) == 2
    assert len(texts) > 2  # and noise, or coins, are drawn anew


def recertified(record, **changes):
    promise = replace(record.promise, subject={**record.promise.subject, **changes})
    return replace(record, promise=promise)


def test_everything_that_is_published_is_compared():
    frame = made_up(choose(tc.histogram("disease"), PLAIN, 1))[0].hidden
    record = tc.Session(PLAIN, frame, 10).release(tc.histogram("disease"), 1)
    plain = canonical(list_published(record))
    assert plain == canonical(list_published(recertified(record, made="another day")))
    for changed in (
        replace(record, values=record.values + 1e-9),
        recertified(record, dataset="other"),
        replace(record, _make_frame=lambda columns: __import__("pandas").DataFrame({**columns, "true": 1})),
    ):
        assert canonical(list_published(changed)) != plain


@pytest.mark.slow
def test_a_session_is_audited_without_its_rows_and_in_the_direction_of_its_secrets():
    """One-sided noise is right along the edges; nothing is asked about the way back."""

    class Broken:
        def __getattr__(self, name):
            raise AssertionError(name)

    frame = made_up(choose(tc.histogram("disease"), ONE_WAY, 1))[0].hidden
    session = tc.Session(ONE_WAY, frame, 1)
    session._rows = Broken()
    assert tc.audit.release(session, tc.count("disease == 'hiv'"), 1, samples=FEW).verdict == NONE
    assert session.remaining == 1
    with pytest.raises(tc.PolicyError, match="about must be a policy or a session"):
        tc.audit.release("policy.yaml", tc.count(), 1)
