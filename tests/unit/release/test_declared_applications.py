"""Declared applications: what they may ask, what they are shown, and what is refused before rows are opened."""

import datetime
import re
from fractions import Fraction
from itertools import product

import jsonschema
import pandas as pd
import pytest
import yaml

import tacit as tc
from tacit import clock
from tacit.audit.sampled_audits.shown_records import law_of
from tacit.errors import PlanError, PolicyError, Refused
from tacit.jobs.job_file import read_job
from tacit.jobs.job_run import plan_job, run_job
from tacit.policy.application import coalitions
from tacit.policy.policy_file import policy_schema
from tacit.release.planner import Planner

FILE = """
domain: {arrival: {categories: [early, ok, late]}, leaving: {categories: [early, ok]}, floor: {integers: [0, 2]}}
secrets: {values: {arrival: [late]}}
applications:
  lighting:
    purpose: to switch lights on in time
    asks: [true_records, histogram]
    sees: [arrival]
    key: [room]
    coalition: space
    until: 2099-12-31
  space:
    purpose: to plan floors
    asks: true_records
    sees: [leaving, floor]
    key: [room]
    secrets: {values: {leaving: [early]}}
  ended: {purpose: was tried, asks: count, sees: [arrival], until: 2020-01-31}
"""
POLICY = tc.Policy.from_yaml(FILE)
BASE = tc.Policy(POLICY.domain, POLICY.secrets)
ROWS = pd.DataFrame(
    [(number, *cells) for number, cells in enumerate(product(["early", "ok", "late"], ["early", "ok"], [0, 1, 2]))],
    columns=["room", "arrival", "leaving", "floor"],
)
LIGHTING = tc.true_records("arrival", key="room", application="lighting")
SPACE = tc.true_records("leaving", key="room", application="space")
REFUSED = [
    (LIGHTING, "space", "must be one application, and the question names lighting"),
    (tc.true_records("arrival", key="room", application="lightning"), None, "Did you mean 'lighting'?"),
    (tc.true_records("arrival", key="room"), None, "must be named: the policy declares who may ask (lighting, space"),
    (tc.histogram("arrival"), "nobody", "must be an application that the policy declares; got 'nobody'"),
    (tc.histogram("leaving"), "lighting", "must be something that lighting may see: arrival and room; got 'leaving'"),
    (tc.histogram("arrival", where="floor == 1"), "lighting", "lighting may see: arrival and room; got 'floor'"),
    (tc.count("arrival == 'ok'"), "lighting", "may ask: true_records or histogram; got 'count'"),
    (tc.true_records("arrival", key="phone"), "lighting", "got 'phone'"),
    (tc.true_records(key="room"), "lighting", "got 'floor'"),
    (tc.count("arrival == 'ok'"), "ended", "must not have expired: the last day of ended is over; got '2020-01-31'"),
]


@pytest.mark.parametrize(("query", "application", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_an_application_may_not_ask_is_refused_before_rows_are_opened(query, application, words, tmp_path):
    file = tmp_path / "rooms.csv"
    ROWS.to_csv(file, index=False)
    ledger = tc.Ledger(tmp_path / "ledger.db")
    session = tc.Session(POLICY, file, 1, ledger=ledger)
    file.unlink()  # so that rows cannot be opened any more
    for ask in (session.plan, session.release, session.explain):
        with pytest.raises(Refused, match=re.escape(words)) as refused:
            ask(query, epsilon=1, application=application)
        assert refused.value.key == "application"
        assert "Nothing was charged" in refused.value.fix
    with pytest.raises(tc.DataRefused):
        session.release(tc.histogram("arrival"), epsilon=1, application="lighting")
    assert [entry.kind for entry in ledger.entries(dataset="rooms")] == ["grant"]


def test_tables_askings_groups_and_monitors_name_nobody_and_are_refused():
    session = tc.Session(POLICY, ROWS, 1)
    with pytest.raises(PlanError, match="must not be declared for an asking"):
        session.asking(at_most=1, epsilon=1)
    with pytest.raises(PlanError, match="must be named"):
        session.split("floor")["1"].release(tc.histogram("arrival"), epsilon=1)
    with pytest.raises(PlanError, match="must not be declared for a table"):
        session.publish(None)
    with pytest.raises(PlanError, match="must not be declared for a monitor"):
        tc.PlaceMonitor(POLICY, place="late", threshold=5, epsilon=1, window=2)
    with pytest.raises(PlanError, match="the policy declares no applications"):
        tc.Session(BASE, ROWS, 1).release(tc.histogram("arrival"), epsilon=1, application="lighting")


def test_who_ended_after_the_plan_was_made_is_refused_where_it_is_paid(monkeypatch):
    session = tc.Session(POLICY, ROWS, 2)
    plan = session.plan(tc.histogram("arrival"), epsilon=1, application="lighting")
    session.release(tc.histogram("arrival"), epsilon=1, application="lighting")
    late = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
    monkeypatch.setattr("tacit.policy.application.now", lambda: late)
    with pytest.raises(PlanError, match="the last day of lighting is over"):
        session.release(plan)
    assert session.remaining == 1
    monkeypatch.setattr("tacit.policy.application.now", lambda: late - datetime.timedelta(seconds=1))
    session.release(plan)
    assert abs(clock.now() - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=1)


def test_the_declaration_is_in_the_digest_and_ledger_and_certificate_name_it(tmp_path):
    assert POLICY.fingerprint != BASE.fingerprint
    assert POLICY.fingerprint != tc.Policy.from_yaml(FILE.replace("floors", "rooms")).fingerprint
    assert tc.Policy.from_yaml(POLICY.to_yaml()) == POLICY
    jsonschema.validate(POLICY.document(), policy_schema())
    jsonschema.validate(
        yaml.safe_load(FILE.replace("2099-12-31", "'2099-12-31'").replace("2020-01-31", "'2020-01-31'")),
        policy_schema(),
    )
    ledger = tc.Ledger(tmp_path / "ledger.db")
    session = tc.Session(POLICY, ROWS, 3, ledger=ledger, dataset="rooms")
    record = session.release(tc.histogram("arrival"), epsilon=1, application="lighting")
    said = record.promise.document()["application"]
    assert (said["name"], said["purpose"]) == ("lighting", "to switch lights on in time")
    notes = [entry.what for entry in ledger.entries(dataset="rooms")]
    assert notes[-1] == "histogram(arrival), asked by lighting (to switch lights on in time)"
    words = " ".join(POLICY.describe().split())
    assert (
        "lighting, for: to switch lights on in time. It may ask for true_records and histogram about arrival" in words
    )
    assert "until 2020-01-31, which is over" in words
    assert "what it is shown also keeps: leaving being early" in words
    assert "lighting and space pool what they see" in words
    assert "what space alone must not be shown, the others may show them" in words


def test_each_application_keeps_its_own_secrets_and_together_they_keep_those_of_all():
    """By enumeration: alone each keeps its own edges; the coalition keeps the policy's, at the sum; and no others."""
    one, other = Planner(POLICY).plan(LIGHTING, 1), Planner(POLICY).plan(SPACE, Fraction(1, 2))
    both = law_of(one, other)
    own = POLICY.promised_to(POLICY.application("space"))
    assert tc.audit.exact(law_of(other), own, Fraction(1, 2)).keeps
    assert tc.audit.exact(law_of(one), BASE, 1).keeps
    assert tc.audit.exact(both, BASE, Fraction(3, 2)).keeps
    leaving = tc.true_records(["arrival", "leaving"], key="room", application="lighting")
    sees_more = tc.Policy.from_yaml(FILE.replace("sees: [arrival]", "sees: [arrival, leaving]", 1))
    alone = Planner(sees_more).plan(leaving, 1)
    assert tc.audit.exact(law_of(alone, other), BASE, Fraction(3, 2)).keeps
    assert not tc.audit.exact(law_of(alone, other), own, Fraction(3, 2)).keeps  # as `check` says
    assert one.common == other.common == POLICY  # what a report says of both together
    assert {one.policy.fingerprint, other.policy.fingerprint} == {BASE.fingerprint, own.fingerprint}


def test_coins_are_each_applications_own_and_the_account_adds_up_what_all_are_shown(tmp_path):
    ledger = tc.Ledger(tmp_path / "ledger.db")
    asked = {"ledger": ledger, "dataset": "rooms"}
    session = tc.Session(POLICY, ROWS, 3, **asked)
    first = session.release(LIGHTING, epsilon=1)
    session.release(SPACE, epsilon=1)
    assert session.remaining == 1
    longer = tc.Policy.from_yaml(FILE.replace("2099", "2199"))  # the declaration changed, not what is promised
    again = tc.Session(longer, ROWS, **asked).release(LIGHTING, epsilon=1)
    assert again.frame.equals(first.frame)
    assert session.remaining == 1
    with pytest.raises(tc.BudgetExceeded):
        session.release(tc.true_records("leaving", key="room", application="space", version="new"), epsilon=2)


def test_limits_weigh_those_together_who_collude_by_the_policy(tmp_path):
    day = tc.Dependence.from_table(
        {("late", "early"): 0.2, ("late", "ok"): 0.1, ("ok", "early"): 0.2, ("ok", "ok"): 0.5},
        names=("arrival", "leaving"),
    )
    sensitive = {"arrival": ["late"], "leaving": ["early"]}

    def session(**coalitions):
        limits = tc.Applications(day, sensitive=sensitive, coalitions=coalitions, limit=0.2)
        policy = tc.Policy.from_yaml(FILE.replace("arrival: [late]}}", "arrival: [late], leaving: [early]}}"))
        return tc.Session(policy, ROWS, 5, leakage=limits)

    with pytest.raises(PlanError, match="must have a coalition of all who pool what they see"):
        session(lighting=["lighting"], space=["space"])
    together = session(both=["lighting", "space"])
    together.release(LIGHTING, epsilon=0.3)
    with pytest.raises(tc.BudgetExceeded, match=r"of both must stay at most 0\.2 nats"):
        together.release(SPACE, epsilon=2)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("coalition: space", "coalition: spaces", "applications.lighting.coalition must be another application"),
        ("coalition: space", "coalition: lighting", "must be another application of the policy; got 'lighting'"),
        ("until: 2099-12-31", "until: 2099", "applications.lighting.until must be a day; got 2099"),
        ("sees: [arrival]", "sees: [arival]", "Did you mean 'arrival'?"),
        ("sees: [leaving, floor]", "sees: []", "must not be empty"),
        ("    purpose: to plan floors\n", "", "must have the key purpose"),
        ("{values: {leaving: [early]}}", "{values: {leaving: [late]}}", "'late'"),
    ],
)
def test_declarations_that_mean_nothing_are_refused(old, new, words):
    assert old in FILE
    with pytest.raises(PolicyError, match=re.escape(words)):
        tc.Policy.from_yaml(FILE.replace(old, new, 1))


def test_collusion_is_passed_on():
    one, two, three, four = (
        tc.Application(name, "p", "count", "arrival", coalition=others)
        for name, others in (("a", ["b"]), ("b", []), ("c", ["b"]), ("d", []))
    )
    assert coalitions([one, two, three, four]) == [("a", "b", "c")]


def test_a_job_says_who_asks(tmp_path):
    ROWS.to_csv(tmp_path / "rooms.csv", index=False)
    (tmp_path / "policy.yaml").write_text(FILE)
    job = "policy: policy.yaml\nrows: rooms.csv\nbudget: 2\n"
    job += "releases:\n  - {name: one, query: {histogram: arrival}, epsilon: 1"
    (tmp_path / "job.yaml").write_text(job + ", application: lighting}\n")
    found = run_job(read_job(tmp_path / "job.yaml"))["one"]
    assert found.promise.document()["application"]["name"] == "lighting"
    (tmp_path / "job.yaml").write_text(job + "}\n")
    (tmp_path / "rooms.csv").unlink()
    with pytest.raises(PlanError, match="release 'one': application must be named"):
        plan_job(read_job(tmp_path / "job.yaml"))
