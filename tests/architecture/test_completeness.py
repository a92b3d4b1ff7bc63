"""Every kind is complete from the day it exists: it is audited, files that name it have a schema, the docs a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import tacit as tc
from tacit.audit.selfcheck.registry import MECHANISMS
from tacit.noise.law import Law
from tacit.noise.tilted_cube import TiltedCube
from tacit.plan.plans.plan import Plan
from tacit.plan.questions import QUESTIONS
from tacit.plan.questions.clusters import ClustersPlan
from tacit.plan.questions.written import query_schema
from tacit.policy.attributes import KINDS
from tacit.policy.knowledge import FACTS
from tacit.policy.policy_file import policy_schema
from tacit.policy.secrets import FAMILIES, SomePeople

DOCS = Path(__file__).parents[2] / "docs"
ASKED = {name: case for name, case in MECHANISMS.items() if case.query is not None}


def page(name: str) -> list[str]:
    return (DOCS / name).read_text(encoding="utf-8").splitlines()


@cache
def audited_plans() -> tuple[Plan, ...]:
    return tuple(case.plan() for case in ASKED.values() if case.plan is not None)


def inside(thing: Any) -> Iterator[Any]:
    """Go through a plan and everything that it holds."""
    yield thing
    if is_dataclass(thing) and not isinstance(thing, type):
        for part in fields(thing):
            yield from inside(getattr(thing, part.name))
    elif isinstance(thing, tuple):
        for one in thing:
            yield from inside(one)


def concrete(kind: type) -> set[type]:
    """Return the kinds of a sort that are not only in between."""
    below = kind.__subclasses__()
    own = {kind} if not getattr(kind, "__abstractmethods__", None) else set()
    return own.union(*(concrete(one) for one in below if one.__module__.startswith("tacit.")))


# ---- attributes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_attribute_is_audited(kind: str) -> None:
    examples = list(KINDS[kind].examples())
    assert examples
    for one in examples:
        policy = tc.Policy(tc.Domain({"a": one}), tc.secrets.everything())
        assert tc.audit.exact(tc.histogram("a"), policy, 1).keeps


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_attribute_has_a_schema_and_a_row(kind: str) -> None:
    schema = policy_schema()
    assert all(one in schema["$defs"]["attribute"]["anyOf"] for one in KINDS[kind].schemas())
    for one in KINDS[kind].examples():
        written = {"domain": {"a": one.document()}, "secrets": "everything"}
        jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(written, default=str)))
    assert str(KINDS[kind].row) in page("files.md")


# ---- families of secrets --------------------------------------------------------------------------------------------


def test_every_family_of_secrets_is_audited() -> None:
    audited = [family for case in MECHANISMS.values() for family in case.policy.secrets.families()]
    assert {family.called for family in audited} == set(FAMILIES)
    assert SomePeople.keyword in {family.keyword for family in audited}


def test_secrets_of_some_people_have_a_row() -> None:
    assert all(str(row) in page("files.md") for row in SomePeople.rows)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_secrets_has_a_schema_and_a_row(family: str) -> None:
    schemas = policy_schema()["$defs"]["family"]["anyOf"]
    assert FAMILIES[family].schemas()
    assert all(one in schemas for one in FAMILIES[family].schemas())
    assert FAMILIES[family].rows
    assert all(str(row) in page("files.md") for row in FAMILIES[family].rows)


@pytest.mark.parametrize("fact", FACTS)
def test_every_known_fact_has_a_schema_and_a_row(fact: str) -> None:
    schemas = policy_schema()["$defs"]["fact"]["anyOf"]
    assert FACTS[fact].schemas()
    assert all(one in schemas for one in FACTS[fact].schemas())
    assert FACTS[fact].row() in page("files.md")


def test_every_audited_policy_fits_the_schema() -> None:
    for case in MECHANISMS.values():
        jsonschema.Draft202012Validator(policy_schema()).validate(json.loads(json.dumps(case.policy.document())))


# ---- questions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.keyword)
def test_every_question_is_audited_and_has_a_schema_and_a_row(question: Any) -> None:
    assert question.keyword in {case.keyword for case in MECHANISMS.values()}
    named = {key for one in query_schema()["anyOf"] for key in one.get("properties", ())}
    assert question.keyword in named
    assert question.rows()
    assert all(row in page("files.md") for row in question.rows())


@pytest.mark.parametrize("name", ASKED)
def test_every_audited_question_fits_the_schema(name: str) -> None:
    jsonschema.Draft202012Validator(query_schema()).validate(json.loads(json.dumps(ASKED[name].query.document())))


# ---- laws of noise, plans and mechanisms ----------------------------------------------------------------------------


def test_every_law_of_noise_and_every_kind_of_plan_is_audited() -> None:
    plans = audited_plans()
    came = tuple(one for plan in plans if isinstance(plan, ClustersPlan) for one in plan.outcomes)
    met = {type(part) for part in inside((plans, came))}
    assert concrete(Law) | {TiltedCube} <= met
    assert concrete(Plan) <= met


def test_every_law_is_plain_data_with_a_shape() -> None:
    """Laws stand in certificates and plans, which nothing reads back, so there is no schema to hold them against."""
    for law in {part for plan in audited_plans() for part in inside(plan) if isinstance(part, Law | TiltedCube)}:
        written = json.loads(json.dumps(law.document()))
        assert written == law.document()
        assert written["shape"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_row(name: str) -> None:
    assert any(line.startswith(f"| {name} | ") for line in page("audit-table.md"))
