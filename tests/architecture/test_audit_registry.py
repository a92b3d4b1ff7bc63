"""Every question and every mechanism is audited from the day it exists, and every planted leak is looked for."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tacit
from architecture.syntax import imports_of
from architecture.test_docstrings import PLANS_THAT_DRAW
from tacit.audit.sampled_audits.sampled_audit import Verdict
from tacit.audit.selfcheck.attacked_tables import attacked_tables
from tacit.audit.selfcheck.planted import planted
from tacit.audit.selfcheck.planted.tables import planted_tables
from tacit.audit.selfcheck.registry import MECHANISMS, TABLE, names
from tacit.plan.questions.written import KEYWORDS
from tacit.publish.methods.method import Method, PromisingMethod

SRC = Path(tacit.__file__).parent
TESTS = Path(__file__).parents[1]


def promising_modules(folder: str) -> list[str]:
    """Return the modules of a folder that state a guarantee."""
    found = []
    for file in sorted((SRC / folder).rglob("*.py")):
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        if re.search(r"^Guarantee ", text, re.MULTILINE):
            found.append(file.relative_to(SRC / folder).with_suffix("").as_posix())
    return found


def every_kind_of(base: type) -> list[type]:
    """Return the classes of the package's ways to publish that can be made."""
    below = [kind for one in base.__subclasses__() for kind in (one, *every_kind_of(one))]
    return [kind for kind in below if kind.__module__.startswith("tacit.publish.") and hasattr(kind, "name")]


def test_what_draws_for_a_plan_is_a_mechanism() -> None:
    drawing = re.compile(r"\.(draw|draw_for|sample|measure|widening)\(|\bcoins\(")
    modules = sorted((SRC / "plan").rglob("*.py"))
    found = [file.relative_to(SRC / "plan") for file in modules if drawing.search(file.read_text(encoding="utf-8"))]
    assert [file.as_posix() for file in found] == [f"plans/{name}.py" for name in PLANS_THAT_DRAW]


@pytest.mark.parametrize("module", [*PLANS_THAT_DRAW, "alarm", "local"])
def test_every_mechanism_is_audited(module: str) -> None:
    cases = [name for name, case in MECHANISMS.items() if module in case.modules]
    assert cases, f"name a case in audit/selfcheck/registry.py that goes through {module}.py"


def test_noise_promises_something_about_draws_and_not_about_data() -> None:
    modules = promising_modules("noise")
    assert {"keystream", "draws", "two_scale", "cube", "cube_radius", "tilted_cube"} <= set(modules)
    for module in modules:
        text = import_module(f"tacit.noise.{module.replace('/', '.')}").__doc__ or ""
        assert "hidden" not in text.partition("Guarantee")[2].partition("Assumes")[0]


def test_every_kind_of_question_is_audited() -> None:
    asked = {case.keyword for case in MECHANISMS.values()}
    assert set(KEYWORDS) - asked == set()


def test_cases_name_modules_that_exist() -> None:
    of_plans, to_publish = (*PLANS_THAT_DRAW, "alarm", "local"), promising_modules("publish/methods")
    for modules, of_tables in ((of_plans, False), (to_publish, True)):
        cases = [case for case in MECHANISMS.values() if (case.keyword == TABLE) == of_tables]
        assert {module for case in cases for module in case.modules} <= set(modules)


def test_every_way_to_publish_a_table_is_audited_and_attacked() -> None:
    """What a record loses; and, where a criterion is promised, how often the estimate is nearly right."""
    ways = {import_module(kind.__module__).__name__.rpartition(".")[2]: kind for kind in every_kind_of(Method)}
    audited = {module for case in MECHANISMS.values() if case.keyword == TABLE for module in case.modules}
    assert set(ways) == audited
    promising = [kind for kind in ways.values() if issubclass(kind, PromisingMethod)]
    sound = [table for table in attacked_tables.values() if table.expected == Verdict.NONE_FOUND]
    assert len(sound) == len(promising)


def test_every_planted_table_is_attacked() -> None:
    found = {name for name, table in attacked_tables.items() if table.expected == Verdict.LEAK_FOUND}
    assert found == set(planted_tables)


def test_a_selection_is_audited_for_every_direction_in_which_counts_move() -> None:
    for keyword in ("top_k", "above"):
        own = [name for name, case in MECHANISMS.items() if case.keyword == keyword]
        for direction in ("falling", "rising", "both"):
            assert any(name.endswith(direction) for name in own), (keyword, direction)


def test_names_are_unique_and_can_be_typed() -> None:
    assert len(set(names())) == len(names()) == len(MECHANISMS) + len(planted) + len(attacked_tables)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names())


def test_every_planted_leak_is_looked_for_by_name() -> None:
    """The search of the audit goes through all of them; an event of its own is written down for each."""
    text = (TESTS / "statistical" / "test_planted.py").read_text(encoding="utf-8")
    assert '@pytest.mark.parametrize("name", planted)' in text
    assert [name for name in planted if f'"{name}"' not in text] == []


def test_planted_mistakes_are_loaded_when_somebody_asks_for_them() -> None:
    """They are broken on purpose: who audits a mechanism of their own has none of them in the process."""
    program = """
import sys
import tacit.audit
assert not [name for name in sys.modules if name.startswith("tacit.audit.selfcheck")]
assert {"planted", "PlantedLeak"} <= set(tacit.audit.__all__)
assert all(isinstance(leak, tacit.audit.PlantedLeak) for leak in tacit.audit.planted.values())
assert tacit.audit.planted is sys.modules["tacit.audit.selfcheck.planted"].planted
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert made.returncode == 0, made.stderr


def test_only_the_self_check_and_its_command_load_planted_mistakes() -> None:
    planting = "tacit.audit.selfcheck.planted"
    asking = {
        file.relative_to(SRC).as_posix()
        for file in SRC.rglob("*.py")
        if any(name.startswith(planting) for name, _ in imports_of(file.read_text(encoding="utf-8")))
    }
    others = {name for name in asking if not name.startswith("audit/selfcheck/")}
    assert others == {"audit/__init__.py", "cli/audit.py"}  # the first for type checkers alone
