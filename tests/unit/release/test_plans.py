"""One plan per release: the object that is explained is the one that is charged, executed, certified and reported."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import noise
from tacit.cli import main
from tacit.jobs.job_file import Job, read_job
from tacit.jobs.job_run import plan_job, run_job
from tacit.plan import choose as choosing
from tacit.plan.choose import Explanation
from tacit.release.planner import Planner
from tacit.report.job_folder import publish

DOMAIN = tc.Domain({"age": tc.Integers(0, 9), "ill": tc.Flag(), "bought": tc.Items(6, at_most=2)})
POLICY = tc.Policy(DOMAIN, tc.secrets.within(2, "age") | tc.secrets.values({"bought": [1]}))
PEOPLE = pd.DataFrame({"age": [1, 2, 2, 9], "ill": [True, False, True, False], "bought": [[0], [1, 2], [], [5]]})
QUESTIONS = [
    tc.count("age < 5"),
    tc.histogram("age"),
    tc.cumulative("age"),
    tc.ranges("age", "all"),
    tc.rectangles("age", "ill", "all"),
    tc.rectangles("age", "ill", [[0, 4, False, True]]),
    tc.total("age"),
    tc.total("age", by="ill"),
    tc.mean("age"),
    tc.median("age"),
    tc.marginals("age", "ill"),
    tc.top_k("bought", 2),
    tc.above("bought", 1, at_most=2),
    tc.below("age < 5", 3),
]


def session(budget: Any = 100, **options: Any) -> tc.Session:
    return tc.Session(options.pop("policy", POLICY), PEOPLE, budget=budget, **options)


class Counted:
    """Counts the plans that are made, wherever that is, and those of plain privacy that they are compared with."""

    def __init__(self) -> None:
        self.plans, self.comparisons = 0, 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    found = Counted()
    choose, compared = choosing.choose, Explanation._compared.func

    def counting(*given: Any) -> Any:
        found.plans += 1
        return choose(*given)

    def comparing(explanation: Explanation) -> Any:
        found.comparisons += 1
        return compared(explanation)

    for name, module in list(sys.modules.items()):  # wherever it was imported to
        if name.startswith("tacit.") and vars(module).get("choose") is choose:
            monkeypatch.setattr(module, "choose", counting)
    monkeypatch.setattr(Explanation._compared, "func", comparing)
    return found


# ---- one plan per release -------------------------------------------------------------------------------------------


@pytest.mark.one_in(8)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_a_release_is_planned_once(counted: Counted, query: Any) -> None:
    session().release(query, epsilon=1)
    assert (counted.plans, counted.comparisons) == (1, 0)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_a_plan_is_made_once_however_often_it_is_looked_at(counted: Counted, query: Any) -> None:
    made = session()
    plan = made.plan(query, epsilon=1)
    explanation = made.explain(plan, show=False)
    assert all(map(str, (plan, explanation, explanation.document(), plan.document())))
    record = made.release(plan)
    assert record.plan is plan is explanation.plan
    assert (counted.plans, counted.comparisons) == (1, 1)


def test_a_question_that_is_explained_is_planned_once(counted: Counted) -> None:
    assert str(session().explain(QUESTIONS[0], 1, show=False))
    assert (counted.plans, counted.comparisons) == (1, 1)


def test_plans_that_are_paid_for_together_are_made_once_each(counted: Counted) -> None:
    made = session()
    plans = [made.plan(query, 1) for query in QUESTIONS]
    records = [reserved.make() for reserved in made.reserve(plans)]
    assert [record.plan for record in records] == plans
    assert all(record.plan is plan for record, plan in zip(records, plans, strict=True))
    assert counted.plans == len(QUESTIONS)


JOB = """
policy: {domain: {age: {integers: [0, 9]}, ill: flag}, secrets: {within: {age: 2}}}
rows: people.csv
budget: 1
releases:
  - {name: ages, query: {cumulative: age}, epsilon: 0.5, consistent: true}
  - {name: ill, query: {count: "ill"}, epsilon: 0.25, nonnegative: true}
  - {name: most, query: {top_k: {attribute: age, k: 2}}, epsilon: 0.25}
"""


@pytest.fixture
def small_job(tmp_path: Path) -> Job:
    PEOPLE[["age", "ill"]].to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "job.yaml").write_text(JOB)
    return read_job(tmp_path / "job.yaml")


def demo(folder: Path) -> Path:
    data = Path(tc.__file__).parent / "data"
    for name in ("adult.policy.yaml", "adult.job.yaml"):
        (folder / name).write_bytes((data / name).read_bytes())
    return folder / "adult.job.yaml"


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "words",
    [["plan", "adult.job.yaml"], ["run", "adult.job.yaml"], ["plan", "-v", "adult.job.yaml", "--json"], ["demo"]],
)
def test_the_commands_plan_each_of_the_eight_releases_once(
    counted: Counted, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    demo(tmp_path)
    assert main(words) == 0
    assert (counted.plans, counted.comparisons) == (8, 8)


def test_a_planned_job_is_executed_as_it_was_planned(counted: Counted, small_job: Job) -> None:
    plan = plan_job(small_job)
    assert [one.post_processing for one in plan.plans] == [["consistent"], ["nonnegative"], []]
    records: dict[str, Any] = {}
    publish(plan, on_release=records.__setitem__)
    assert all(records[name].plan is found.plan for name, found in plan.explanations.items())
    assert counted.plans == len(records) == 3
    small_job.out.rename(small_job.out.with_name("elsewhere"))
    assert all(record.plan is plan.explanations[name].plan for name, record in run_job(plan).items())
    assert counted.plans == 3
    run_job(small_job)  # which is planned anew
    assert counted.plans == 6


def test_a_job_counts_its_rows_in_one_call(small_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.release import execute as drawn

    tally, calls = drawn.count_plans, []
    monkeypatch.setattr(drawn, "count_plans", lambda plans, rows: calls.append(len(plans)) or tally(plans, rows))
    run_job(small_job)
    assert calls == [3]


# ---- the same numbers -----------------------------------------------------------------------------------------------


# what has something to be made consistent, and what is in its declared range anyway
FITTED = ("cumulative", "ranges")
IN_RANGE = ("mean", "quantiles")


@pytest.mark.one_in(16)
@pytest.mark.parametrize(
    ("query", "options"),
    [
        pytest.param(query, options, id=f"{query} {' '.join(options)}")
        for query in QUESTIONS
        for options in ({}, {"consistent": True}, {"nonnegative": True})
        if not (options.get("nonnegative") and query.keyword in IN_RANGE)
    ],
)
def test_a_plan_releases_what_its_question_releases(query: Any, options: dict[str, bool]) -> None:
    def numbers(release: Callable[[tc.Session], tc.ReleaseRecord]) -> Any:
        with noise.replayed(noise.Keystream(key=b"tacit one plan for each release.")):
            record = release(session())
        return record.columns(), {**record.certificate, "made": ""}

    by_question = numbers(lambda made: made.release(query, 1, **options))
    by_plan = numbers(lambda made: made.release(made.plan(query, 1, **options)))
    pd.testing.assert_frame_equal(pd.DataFrame(by_question[0]), pd.DataFrame(by_plan[0]))
    assert by_question[1] == by_plan[1]
    done = [*(["consistent"] if query == tc.median("age") else []), *options]  # quantiles come from rising counts
    is_fitted = query.keyword in FITTED or query == tc.median("age")
    assert by_plan[1]["post_processing"] == [word for word in dict.fromkeys(done) if word != "consistent" or is_fitted]


# ---- whose plan it is -----------------------------------------------------------------------------------------------


def refused(made: tc.Session, plan: Any, *, rule: str, key: str = "plan", **options: Any) -> None:
    """Check that every way to execute a plan refuses it before anything is charged."""
    left = made.remaining
    for execute in (made.release, lambda plan: made.reserve([plan]), lambda plan: made.explain(plan, show=False)):
        with pytest.raises(tc.PlanError) as caught:
            execute(plan)
        assert rule in caught.value.rule
        assert (caught.value.key, caught.value.fix != "") == (key, True)
    assert made.remaining == left


@pytest.mark.one_in(8)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_a_plan_of_another_session_is_refused(query: Any) -> None:
    refused(session(), session().plan(query, 1), rule="must be a plan that this session made")


@pytest.mark.one_in(8)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_a_plan_under_another_policy_is_refused(query: Any) -> None:
    weaker = tc.Policy(DOMAIN, tc.secrets.values({"age": [1]}) | tc.secrets.values({"bought": [1]}))
    refused(session(), session(policy=weaker).plan(query, 1), rule="must be under the policy of this session")


def test_a_changed_plan_is_refused() -> None:
    """Noise that was taken away, a smaller price, a policy with fewer secrets; also what is only equal to a plan."""
    made = session()
    plan: Any = made.plan(tc.histogram("age"), 1)
    for changed in (
        replace(plan, noise=None),
        replace(plan, epsilon=Fraction(1, 1000)),
        replace(plan, nonnegative=True),
        copy.copy(plan),
        copy.deepcopy(plan),
        pickle.loads(pickle.dumps(plan)),  # noqa: S301 - our own
    ):
        refused(made, changed, rule="must be a plan that this session made")
    refused(made, replace(plan, policy=plan.policy.plain()), rule="must be under the policy of this session")
    assert made.release(plan).plan is plan


def test_a_plan_cannot_be_changed_in_place() -> None:
    plan: Any = session().plan(tc.histogram("age"), 1)
    for name in ("noise", "epsilon", "policy", "query", "consistent"):
        with pytest.raises(FrozenInstanceError):
            setattr(plan, name, None)


def arrays_in(thing: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Go through everything that a plan holds, what it has worked out included."""
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, tuple | list):
        for one in thing:
            yield from arrays_in(one)
    elif is_dataclass(thing) and type(thing).__module__.startswith("tacit.plan"):
        for one in vars(thing).values():
            yield from arrays_in(one)


LAID_OUT = {
    "groups with exact totals": (tc.histogram("age"), tc.secrets.partition("age", width=5)),
    "exact cumulative counts": (tc.cumulative("age"), tc.secrets.partition("age", width=5)),
    "sides of each cell": (tc.histogram("ill", "age"), tc.secrets.values({"ill": [True]})),
    "several tables": (tc.marginals("age", "ill", ways=1), tc.secrets.partition("age", width=5)),
    "listed rectangles": (tc.rectangles("age", "ill", [[0, 4, True, True]]), tc.secrets.within(1, "age")),
    "parts": (tc.mean("age", by="ill"), tc.secrets.attributes("ill")),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("case", LAID_OUT)
def test_nothing_that_a_plan_has_worked_out_can_be_written_to(case: str) -> None:
    query, secrets = LAID_OUT[case]
    made = session(policy=tc.Policy(POLICY.domain, secrets))
    plan: Any = made.plan(query, 1)
    for part in plan.parts:
        assert isinstance(part.groups, tuple | None)
        assert part.spread is not None
        assert part.fixed is None or part.fixed.any()
    found = list(arrays_in(plan))
    assert found
    for array in found:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert made.release(plan).plan is plan


def held_by(thing: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Go through everything that an object holds, what it has worked out for itself included."""
    if id(thing) in seen or isinstance(thing, type | ModuleType | str | bytes | int | Fraction):
        return
    seen[id(thing)] = thing  # kept, so that no other object gets its id
    yield thing
    if isinstance(thing, dict | MappingProxyType):
        parts = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        parts = list(thing)
    else:
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        parts = [*getattr(thing, "__dict__", {}).values(), *(getattr(thing, name, None) for name in slots)]
    for part in parts:
        yield from held_by(part, seen)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_nothing_that_a_plan_holds_can_be_written(query: Any) -> None:
    """Also not what a plan finds out while it is explained, executed and reported."""
    made = session()
    plan: Any = made.plan(query, 1)
    made.release(plan).frame  # noqa: B018 - made now
    str(made.explain(plan, show=False))
    for part in plan.parts:
        for name in ("groups", "fixed", "spread", "variance"):
            getattr(part, name, None)
    writable = [
        thing
        for thing in held_by(plan, {})
        if (isinstance(thing, np.ndarray) and thing.flags.writeable) or isinstance(thing, list | dict | set)
    ]
    assert writable == []


def test_what_no_edge_changes_cannot_be_enlarged() -> None:
    made = session()
    plan: Any = made.plan(tc.histogram("age"), Fraction(1, 100))
    with pytest.raises(ValueError, match="read-only"):
        plan.groups[0][:] = np.arange(10)
    line: Any = made.plan(tc.cumulative("age"), Fraction(1, 100))
    with pytest.raises(ValueError, match="read-only"):
        line.fixed[:] = True
    with pytest.raises(AttributeError):
        made.policy.shapes[0].relations.clear()  # type: ignore[attr-defined]


def test_options_belong_to_the_plan() -> None:
    made = session()
    plan = made.plan(tc.histogram("age"), 1)
    for options in ({"epsilon": 2}, {"consistent": True}, {"nonnegative": True}):
        with pytest.raises(tc.PlanError, match="is part of the plan already"):
            made.release(plan, **options)
    for call in (lambda: made.explain(plan, 1), lambda: tc.explain(plan, POLICY), lambda: tc.explain(plan, epsilon=1)):
        with pytest.raises(tc.PlanError, match="is part of the plan already"):
            call()
    assert made.remaining == 100
    with pytest.raises(tc.PlanError, match="epsilon must be given"):
        made.release(tc.histogram("age"))


def test_plans_made_before_the_rows_are_open_are_taken_over_under_one_policy_only() -> None:
    planner = Planner(POLICY)
    plan = planner.plan(tc.histogram("age"), 1)
    made = session()
    made.adopt(planner)
    assert made.release(plan).plan is plan
    with pytest.raises(tc.PlanError, match="must be under the policy of this session"):
        made.adopt(Planner(POLICY.plain()))
    with pytest.raises(AttributeError):
        planner.policy = POLICY.plain()  # type: ignore[misc]


def test_a_plan_can_be_released_again_and_costs_again() -> None:
    made = session(budget=2)
    plan = made.plan(tc.histogram("age"), 1)
    made.release(plan)
    made.release(plan)
    with pytest.raises(tc.BudgetExceeded):
        made.release(plan)


# ---- printed and saved ----------------------------------------------------------------------------------------------


@pytest.mark.one_in(8)
@pytest.mark.parametrize("query", QUESTIONS, ids=str)
def test_a_plan_can_be_printed_and_saved(query: Any, tmp_path: Path) -> None:
    made = session()
    clips = query.keyword not in IN_RANGE
    plan = made.plan(query, "1/3", nonnegative=clips)
    text = str(plan)
    afterwards = ["afterwards: nonnegative"] if clips else []
    for words in (str(plan.query), "1/3", plan.mechanism, f"{plan.rmse:.4g}", *afterwards):
        assert words in text
    assert set(text.splitlines()[:-1]) <= set(str(tc.explain(plan)).splitlines())
    saved = json.loads(plan.save(tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert saved == {**plan.document(), "policy": POLICY.document()}
    assert Fraction(saved["epsilon"]) == Fraction(1, 3)
    assert tc.Policy.from_yaml(json.dumps(saved["policy"])).fingerprint == saved["policy_fingerprint"]
    explained = tc.explain(plan, remaining=1).document()
    compared = {key: explained[key] for key in ("plain_dp_rmse", "plain_dp_refused", "plain_dp_form", "knowledge")}
    compared |= {"remaining": "1", "leakage_refused": None, "files_refused": None}
    assert {**plan.document(), **compared} == explained
    with pytest.raises(tc.PlanError, match="must not exist yet"):
        plan.save(tmp_path / "plan.json")
    with pytest.raises(tc.PlanError, match="must be a file that can be written"):
        plan.save(tmp_path / "nowhere" / "plan.json")
    with pytest.raises(tc.PlanError, match="must be the path of a new file"):
        plan.save(3)  # type: ignore[arg-type]
