"""Wrong usage, help, versions, interrupts and faults: whatever happens, one sentence and the right exit code."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.shell import ERROR_KEYS, inside, tacit
from tacit import __version__
from tacit.cli import main
from tacit.cli.screen import show_json
from tacit.errors import Exit
from tacit.rows import guard

COMMANDS = ("demo", "init", "check", "plan", "run", "ledger show", "ledger verify", "ledger grant", "schema", "bench")


def test_the_version_is_the_same_by_either_door(tmp_path: Path) -> None:
    installed = tacit(tmp_path, "--version")
    module = tacit(tmp_path, "--version", command=(sys.executable, "-m", "tacit"))
    assert (installed.code, installed.out, installed.err) == (0, f"tacit {__version__}\n", "")
    assert module == installed


def test_an_unknown_command_gets_the_nearest_one(tmp_path: Path) -> None:
    outcome = inside(tmp_path, "plna")
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err == "tacit: No such command 'plna'. Did you mean 'plan'? See `tacit --help`.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ["zzz"],
            "No such command 'zzz'. Known: demo, init, check, plan, run, reproduce, schema, bench, audit, ledger, "
            "monitor, publish.",
        ),
        (["ledger", "verfy", "x"], "No such command 'verfy'. Did you mean 'verify'?"),
        (["ledger"], "Missing command."),
        (["check"], "Missing argument 'POLICY.yaml'."),
        (["check", "a.yaml", "--jsn"], "No such option: --jsn"),
        (["schema", "polcy"], "'polcy' is not one of 'policy', 'job', 'case', 'table'."),
        (["ledger", "grant", "x.db", "--dataset", "d"], "Missing option '--epsilon'."),
        (["run", "a.yaml", "b.yaml"], "Got unexpected extra argument"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    args: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("tacit: ")
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert main([*args, "--json"]) == 2
    said = capsys.readouterr()
    assert said.err == ""
    assert set(json.loads(said.out)["error"]) == ERROR_KEYS


def test_no_arguments_show_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr().out
    assert all(command.split()[0] in said for command in COMMANDS)


def test_the_page_for_operators_has_every_exit_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d) \|", page, re.MULTILINE) == [str(int(code)) for code in Exit]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "--help"]) == 0
    said = capsys.readouterr()
    assert "--json" in said.out
    assert said.err == ""


@pytest.mark.parametrize("file", ["policy", "job"])
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_schemas_are_json(file: str, option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", file, *option]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["type"] == "object"
    assert "$schema" in schema


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let reading a job or a policy fail in a way that nobody foresaw."""

    def fail_with(fault: BaseException) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise fault

        monkeypatch.setattr("tacit.jobs.job_file.read_job_or_case", fail)
        monkeypatch.setattr("tacit.policy.policy_file.load_policy", fail)

    return fail_with


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_fault_is_named_but_never_quoted(
    command: str, option: list[str], failing: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TACIT_DEBUG", "1")  # not even then: rows may be open
    failing(ValueError("CANARY-7391"))
    assert main([command, "job.yaml", *option]) == 7
    said = capsys.readouterr()
    assert "internal fault" in said.out + said.err
    assert "CANARY" not in said.out + said.err
    assert "Traceback" not in said.out + said.err


def test_a_fault_of_a_command_without_rows_can_be_looked_into(
    failing: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(ValueError("detail"))
    assert main(["check", "policy.yaml"]) == 7
    assert capsys.readouterr().err == "tacit: internal fault. Set TACIT_DEBUG=1 to see where, and please report it.\n"
    monkeypatch.setenv("TACIT_DEBUG", "1")
    assert main(["check", "policy.yaml"]) == 7
    assert "ValueError: detail" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [ValueError, OSError])
def test_a_fault_of_a_command_that_an_option_lets_open_rows_is_never_quoted(
    kind: type[Exception], failing: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TACIT_DEBUG", "1")
    failing(kind("CANARY-7391"))
    assert main(["check", "policy.yaml", "--rows", "people.csv"]) == 7
    said = capsys.readouterr().err
    assert said.startswith("tacit: internal fault; what was charged stays charged.")
    assert "CANARY" not in said


def test_an_interrupt_says_what_was_charged_and_nothing_else(
    failing: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "charges", guard.Charges())
    failing(KeyboardInterrupt())
    assert main(["run", "job.yaml"]) == 130
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "tacit: interrupted. Nothing was charged.\n")


def test_a_name_cannot_redraw_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "a\x1b[2Jb\nc.yaml")]) == 1
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("words", [["reproduce", "002", "--quick"], ["bench", "noise", "--quick"]])
def test_reproductions_that_are_not_installed_are_refused(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("tacit_reproductions")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if not (Path(one) / "tacit_reproductions").is_dir()])
    said = "Say `pip install -e reproductions` in a clone of the repository."
    assert inside(tmp_path, *words).refusal() == f"reproductions are not installed. {said}"
    error = inside(tmp_path, *words, "--json").error()
    assert (error["key"], error["fix"]) == ("reproductions", said)


def test_a_number_that_json_does_not_have_is_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"given": float("nan"), "all": [float("inf"), 1.5]})
    assert json.loads(capsys.readouterr().out) == {"given": "nan", "all": ["inf", 1.5]}
