"""One certificate for everything that is promised: its keys are those of the files that people have."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pandas as pd
import pytest

import tacit as tc
from tacit import noise
from tacit.plan.plans import thresholds as verdicts
from tacit.release.certificate import Certificate
from tacit.release.results import selections as selected

DOMAIN = tc.Domain({"age": tc.Integers(0, 9), "bought": tc.Items(60)})
POLICY = tc.Policy(DOMAIN, tc.secrets.within(2, "age") | tc.secrets.values({"bought": [1]}))
PEOPLE = pd.DataFrame({"age": [1, 2, 2, 9] * 50, "bought": [[0], [1, 2], list(range(60)), [5]] * 50})
PLACES = tc.Policy(tc.Domain({"visited": tc.Items(["gym", "cafe"])}), tc.secrets.values({"visited": [1]}))
SELECTIONS = [tc.below("bought.has(1)", 30), tc.above("bought", 60, at_most=4), tc.top_k("bought", 3)]
OF_A_RELEASE = [
    *("tacit", "made", "dataset", "query", "epsilon", "guarantee", "protects", "policy", "policy_fingerprint", "step"),
    *("mechanism", "strategy", "noise", "randomness", "expected_rmse", "post_processing", "ledger"),
]
OF_A_SELECTION = [*OF_A_RELEASE[:-2], "terms", *OF_A_RELEASE[-2:]]
OF_A_MONITOR = {
    *("tacit", "monitor", "attribute", "threshold", "epsilon", "guarantee", "unit", "protects", "counted", "verdicts"),
    *("chance_certainly_below", "mechanism", "noise", "step", "clock", "columns", "policy", "policy_fingerprint"),
    *("randomness", "ledger"),
}


def released(query: Any, **options: Any) -> Any:
    return tc.Session(POLICY, PEOPLE, budget=10).release(query, 1, **options)


def test_the_keys_of_certificates_stay() -> None:
    assert list(released(tc.histogram("age")).certificate) == OF_A_RELEASE
    for query in SELECTIONS:
        assert list(released(query).certificate) == OF_A_SELECTION
    answer = tc.Session(POLICY, PEOPLE, budget=10).asking(3, 1).above("age < 5", 3)
    assert set(answer.certificate) == {*OF_A_SELECTION, "part_of"}
    with tc.PlaceMonitor(PLACES, place="gym", threshold=3, epsilon=1, window=2) as watched:
        assert set(watched.certificate) == OF_A_MONITOR | {"place", "window"}
        assert isinstance(watched.promise, Certificate)
    with tc.MapMonitor(PLACES, threshold=3, epsilon=1) as watched:
        assert set(watched.certificate) == OF_A_MONITOR | {"places", "at", "decide_at"}


def test_a_certificate_is_data_that_nobody_can_change() -> None:
    record = released(tc.histogram("age"), nonnegative=True)
    document = record.certificate
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    document["policy"]["secrets"] = "none"
    document["step"]["l1"] = 0
    assert record.certificate != document
    assert record.certificate["step"]["l1"] == record.plan.step.l1
    assert pickle.loads(pickle.dumps(record)).certificate == record.certificate  # noqa: S301 - our own
    with pytest.raises(FrozenInstanceError):
        record.promise.epsilon = 0


def test_replayed_noise_promises_nothing_whatever_is_certified() -> None:
    with noise.replayed(noise.Keystream(key=b"tacit certificates of a test....")):
        record = released(tc.histogram("age"))
    assert record.promise.replayed
    assert record.promise.guarantee == record.certificate["guarantee"] == "none: the noise was replayed for a test"
    assert "Pr[M(hidden) in O] <= exp(1) * Pr[M(cover) in O]" in replace(record.promise, replayed=False).guarantee


def test_the_order_of_a_policy_is_named_as_that_of_a_session_is() -> None:
    domain = tc.Domain({"age": tc.Integers(0, 9)})
    rows = pd.DataFrame({"age": [1, 2], "who": ["a", "a"], "day": [1, 2]})
    policy = tc.Policy(domain, tc.secrets.everything(), person="who", order="day")
    for session in (
        tc.Session(policy, rows, budget=1),
        tc.Session(tc.Policy(domain, tc.secrets.everything()), rows, budget=1, person="who", order="day"),
    ):
        said = session.release(tc.count(), 1).certificate["protects"]
        assert said == (
            "one person, all rows with the same who "
            "(one row that fits the domain counts, the first by day; other rows are left out)"
        )


# ---- selections -----------------------------------------------------------------------------------------------------


def test_what_is_certain_does_not_hang_on_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(query: Any) -> Any:
        with noise.replayed(noise.Keystream(key=b"tacit certainty is no word......")):
            record = released(query)
        return record.verdicts, [end.tolist() for end in record.interval()]

    before = [ends(query) for query in SELECTIONS[:2]]
    assert "certainly below" in before[0][0] + before[1][0]
    other = {
        key: replace(
            words, below=words.below.replace("certainly", "surely"), above=words.above.replace("certainly", "x")
        )
        for key, words in verdicts.ONE_SIDED.items()
    }
    monkeypatch.setattr(verdicts, "ONE_SIDED", other)
    after = [ends(query) for query in SELECTIONS[:2]]
    assert "surely below" in after[0][0] + after[1][0]
    assert [found for _, found in after] == [found for _, found in before]
    assert (
        other["falling"].meaning()
        == "'surely below' is never wrong; 'above' is what the noisy count says, and may be wrong"
    )


@pytest.mark.parametrize("query", [*SELECTIONS, tc.top_k("bought", 55)], ids=str)
def test_estimates_are_computed_once(query: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for kind in (selected.Noisy, selected.Tilted):
        estimates = kind.estimates
        monkeypatch.setattr(kind, "estimates", lambda self, of=estimates: calls.append("") or of(self))
    released(query)
    assert len(calls) == 1
