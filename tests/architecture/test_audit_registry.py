"""Every question and every mechanism is audited from the day it exists, and every planted leak is looked for."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import tacit
from tacit.audit.planted import planted
from tacit.audit.registry import MECHANISMS
from tacit.audit.table import names
from tacit.plan.questions import KEYWORDS

SRC = Path(tacit.__file__).parent
TESTS = Path(__file__).parents[1]


def promising_modules(folder: str = "mechanism") -> list[str]:
    """Return the modules of a folder that state a guarantee."""
    found = []
    for file in sorted((SRC / folder).rglob("*.py")):
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        if re.search(r"^Guarantee ", text, re.MULTILINE):
            found.append(file.stem)
    return found


@pytest.mark.parametrize("module", promising_modules())
def test_every_mechanism_is_audited(module: str) -> None:
    cases = [name for name, case in MECHANISMS.items() if module in case.modules]
    assert cases, f"name a case in audit/registry.py that goes through mechanism/{module}.py"


def test_noise_promises_something_about_draws_and_not_about_data() -> None:
    modules = promising_modules("noise")
    assert {"keystream", "tables", "draws", "two_scale", "cube", "radius_draws", "tilted_cube"} <= set(modules)
    for module in modules:
        text = import_module(f"tacit.noise.{module}").__doc__ or ""
        assert "hidden" not in text.partition("Guarantee")[2].partition("Assumes")[0]


def test_every_kind_of_question_is_audited() -> None:
    asked = {case.keyword for case in MECHANISMS.values()}
    assert set(KEYWORDS) - asked == set()


def test_cases_name_modules_that_exist() -> None:
    named = {module for case in MECHANISMS.values() for module in case.modules}
    assert named <= set(promising_modules())


def test_a_selection_is_audited_for_every_direction_in_which_counts_move() -> None:
    for keyword in ("top_k", "above"):
        own = [name for name, case in MECHANISMS.items() if case.keyword == keyword]
        for direction in ("falling", "rising", "both"):
            assert any(name.endswith(direction) for name in own), (keyword, direction)


def test_names_are_unique_and_can_be_typed() -> None:
    assert len(set(names())) == len(names()) == len(MECHANISMS) + len(planted)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names())


def test_every_planted_leak_is_looked_for_by_name() -> None:
    """The search of the audit goes through all of them; an event of its own is written down for each."""
    text = (TESTS / "statistical" / "test_planted.py").read_text(encoding="utf-8")
    assert '@pytest.mark.parametrize("name", planted)' in text
    assert [name for name in planted if f'"{name}"' not in text] == []
