"""A job that a timer starts each night of a month: what its exit code says, and that nobody pays twice."""

import json
import re
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from cli.conftest import POLICY
from cli.shell import Outcome, files_in, inside
from tacit import Ledger

JOB = """\
policy: visits.policy.yaml
rows: arriving/${DATE}.csv
dataset: visits
ledger: ledger.db
out: results/${DATE}
releases:
  - {name: hiv, query: {count: "disease == 'hiv'"}, epsilon: 0.2}
"""
GOOD = "age,disease,ward\n31,hiv,north\n"
BUDGET = 4  # of 0.2 each: twenty nights
CANARY = "CANARY-7391"


@pytest.fixture
def night(tmp_path: Path) -> "Night":
    return Night(tmp_path)


class Night:
    """The clock, the folder where files arrive, and the command that the timer starts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.today = folder, date(2024, 5, 1)
        (folder / "visits.policy.yaml").write_text(POLICY, encoding="utf-8")
        (folder / "visits.job.yaml").write_text(JOB, encoding="utf-8")
        (folder / "arriving").mkdir()
        self.grant()

    def grant(self) -> None:
        words = ("grant", "ledger.db", "--dataset", "visits", "--epsilon", str(BUDGET))
        assert inside(self.folder, "ledger", *words).code == 0

    def arrives(self, text: str = GOOD) -> None:
        (self.folder / "arriving" / f"{self.today}.csv").write_text(text, encoding="utf-8")

    def run(self, *words: str, command: str = "run") -> Outcome:
        done = inside(self.folder, command, "visits.job.yaml", "--set", f"DATE={self.today}", *words)
        assert CANARY not in done.out + done.err
        return done

    def spent(self) -> Fraction:
        with Ledger(self.folder / "ledger.db", create=False) as ledger:
            assert ledger.verify().ok
            return sum((account.spent for account in ledger.accounts()), Fraction(0))


def test_a_month_of_nights(night: Night) -> None:
    codes: dict[int, list[int]] = {}
    for _ in range(31):
        day = night.today.day
        if day == 5:  # the file comes late
            codes[day] = [night.run(command="plan").code, night.run("--skip-if-done").code]
        if day == 9:  # somebody has changed the export
            night.arrives(f"age,diagnosis,ward\n31,{CANARY},north\n")
            refused = night.run()
            assert "domain.disease must be a column of the rows" in refused.refusal()
            codes[day] = [refused.code]
        night.arrives()
        codes.setdefault(day, []).append(night.run("--skip-if-done").code)
        if day == 12:  # the timer fires twice
            before, spent = files_in(night.folder / "results"), night.spent()
            again = night.run("--skip-if-done", "--json")
            assert again.document["done_already"]
            codes[day] += [again.code, night.run().code]
            assert (files_in(night.folder / "results"), night.spent()) == (before, spent)
        if codes[day][-1] == 3:
            assert night.run(command="plan").code == 3
            assert not (night.folder / "results" / str(night.today)).exists()
            night.grant()
            codes[day].append(night.run("--skip-if-done").code)
        night.today += timedelta(days=1)
    unusual = {day: found for day, found in codes.items() if found != [0]}
    assert unusual == {5: [5, 5, 0], 9: [4, 0], 12: [0, 0, 6], 21: [3, 0]}
    assert night.spent() == Fraction("0.2") * 31
    assert len(list((night.folder / "results").iterdir())) == 31
    with Ledger(night.folder / "ledger.db", create=False) as ledger:
        charged = [entry.what for entry in ledger.entries() if entry.kind == "charge"]
        assert charged[3] == "visits.job.yaml DATE=2024-05-04: count(disease == 'hiv')"
        assert len(set(charged)) == 31


def test_results_of_something_else_are_not_called_done(night: Night) -> None:
    night.arrives()
    assert night.run().code == 0
    results = night.folder / "results" / str(night.today)
    job = night.folder / "visits.job.yaml"
    for changed in (JOB.replace("'hiv'", "'flu'"), JOB.replace("arriving/", "./arriving/")):
        job.write_text(changed, encoding="utf-8")
        assert "results of another job" in night.run("--skip-if-done").refusal()
    job.write_text(JOB.replace("ledger: ledger.db", "ledger: ./ledger.db\nanalyst: ana"), encoding="utf-8")
    assert night.run("--skip-if-done").code == 0  # who pays is not what is asked
    (results / "hiv.csv").write_text("changed\n", encoding="utf-8")
    assert night.run("--skip-if-done").code == 1
    assert night.run("--skip-if-done", "--out", "elsewhere").code == 0
    assert night.spent() == Fraction("0.4")


def test_the_log_is_lines_of_json_without_a_value(night: Night) -> None:
    night.arrives(GOOD + f"{CANARY},{CANARY},{CANARY}\n")
    done = night.run("--log", "json", "--json")
    lines = [json.loads(line) for line in done.err.splitlines()]
    assert [line["event"] for line in lines] == ["step", "step", "done"]
    assert lines[-1]["charged"] == "1/5"
    assert lines[-1]["notes"][0].startswith("Each row counts as one person")
    assert all(line["time"].endswith("+00:00") for line in lines)
    shown = night.run("--log", "json", "--out", "elsewhere")  # what notes say is in the last line, not after it
    assert [json.loads(line)["event"] for line in shown.err.splitlines()] == ["step", "step", "done"]
    again = night.run("--log=json")
    (line,) = [json.loads(line) for line in again.err.splitlines()]
    assert (again.code, line["event"], line["exit_code"], line["error"]["key"]) == (6, "refused", 6, "out")
    assert inside(night.folder, "run", "--log", "xml").code == 2


def test_an_old_copy_of_the_ledger_is_told_by_the_certificates(
    night: Night, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(night.folder)
    night.arrives()
    assert night.run().code == 0
    copied = (night.folder / "ledger.db").read_bytes()
    night.today += timedelta(days=1)
    night.arrives()
    assert night.run().code == 0
    exec(code, {})  # noqa: S102 - what the page says
    assert capsys.readouterr().out == ""
    (night.folder / "ledger.db").write_bytes(copied)
    exec(code, {})  # noqa: S102 - what the page says
    assert capsys.readouterr().out == "results/2024-05-02/hiv.certificate.json visits 1/5\n"
