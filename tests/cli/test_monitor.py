"""`tacit monitor`: files of events come, verdicts go; wrong input is one sentence; a stop loses nothing."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.shell import TACIT, files_in, inside
from tacit import Ledger

POLICY = "domain: {visited: {items: [gym, cafe]}}\nsecrets: {values: {visited: [1]}}\n"
FILE = """\
policy: town.policy.yaml
item: place
ledger: ledger.db
dataset: town
points: points.csv
monitors:
  - {name: gym, place: gym, threshold: 5, epsilon: 1, window: 2}
  - {name: noon, map: all, at: 0, threshold: 5, epsilon: 1}
"""


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A folder with a policy, a monitor file, a ledger, and an empty folder for events."""
    (tmp_path / "town.policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "town.yaml").write_text(FILE, encoding="utf-8")
    (tmp_path / "points.csv").write_text("place,lat,lon\ngym,40,-74\ncafe,41,-73\n", encoding="utf-8")
    (tmp_path / "events").mkdir()
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant(dataset="town", epsilon=2)
    return tmp_path


def add(town: Path, name: str, visits: int, *, time_of: int = 0) -> None:
    """Write a file of events under a hidden name, then rename it, as the help says."""
    draft = town / "events" / f".{name}"
    draft.write_text("place,time\n" + f"gym,{time_of}\n" * visits, encoding="utf-8")
    draft.rename(town / "events" / name)


def test_files_are_taken_by_name_and_never_twice(town: Path) -> None:
    add(town, "day1.csv", 60)
    add(town, "day0.csv", 0)
    run = ("monitor", "run", "town.yaml", "--follow", "events", "--once")
    first = inside(town, *run)
    assert (first.code, first.err) == (0, "")
    lines = first.out.splitlines()
    assert lines[0] == "2 monitors, epsilon 2 in all, charged to town; events from events."
    assert lines[1].startswith("day0.csv: gym ")
    assert lines[2].startswith("day1.csv: gym ")
    assert lines[3] == "Taken: 2 new files. Verdicts are in town-verdicts."
    published = files_in(town / "town-verdicts")
    assert sorted(published) == [
        f"{name}.{end}" for name in ("gym", "noon") for end in ("certificate.json", "csv", "svg")
    ]
    assert json.loads(published["gym.certificate.json"])["ledger"]["dataset"] == "town"
    again = inside(town, *run)
    assert again.out.splitlines()[1:] == ["Taken: 0 new files. Verdicts are in town-verdicts."]
    assert files_in(town / "town-verdicts") == published
    with Ledger(town / "ledger.db") as ledger:
        assert ledger.remaining(dataset="town") == 0


def test_json_is_one_document(town: Path) -> None:
    add(town, "day0.csv", 80)
    said = inside(town, "monitor", "run", "town.yaml", "--follow", "events", "--once", "--json").document
    assert said["cost"] == "2"
    (step,) = said["steps"]
    assert step["file"] == "day0.csv"
    assert step["verdicts"]["gym"]["verdict"] == "above"
    assert step["verdicts"]["gym"]["value"] >= 80
    assert [alarm["place"] for alarm in step["verdicts"]["noon"]["new_alarms"]][:1] == ["gym"]
    shown = inside(town, "monitor", "show", "town-state", "--json").document["monitors"]
    assert [one["kind"] for one in shown] == ["place", "map"]
    assert shown[0]["verdicts"] == [step["verdicts"]["gym"]]
    assert shown[1]["alarms"][0]["place"] == "gym"
    assert "policy" not in shown[0]


def test_batches_may_be_named_in_the_file(town: Path) -> None:
    add(town, "day0.csv", 1)
    (town / "town.yaml").write_text(FILE + "batches: events/*.csv\n", encoding="utf-8")
    assert "Taken: 1 new file." in inside(town, "monitor", "run", "town.yaml").out


def wait_for(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_following_goes_on_after_a_kill(town: Path) -> None:
    command = [str(TACIT), "monitor", "run", "town.yaml", "--follow", "events", "--interval", "0.05", "--json"]
    said = town / "said"

    def lines() -> list[str]:
        return [json.loads(line)["file"] for line in said.read_text().splitlines()]

    def follow() -> subprocess.Popen[bytes]:
        with said.open("ab") as out:
            return subprocess.Popen(command, cwd=town, stdout=out, stderr=subprocess.PIPE)

    add(town, "day0.csv", 3)
    following = follow()
    try:
        wait_for(lambda: lines() == ["day0.csv"])
        (town / "events" / "day1.parquet").write_bytes(b"PAR1 not yet")  # not a complete file
        add(town, "day2.csv", 4)
        wait_for(lambda: lines() == ["day0.csv", "day2.csv"])
        second = inside(town, "monitor", "run", "town.yaml", "--follow", "events", "--once")
        assert "is in use by another process" in second.refusal()
        looked = inside(town, "monitor", "show", "town-state")
        assert (looked.code, looked.err) == (0, "")
        assert "gym" in looked.out
    finally:
        following.kill()
        complaint = following.communicate()[1].decode()
    assert complaint.count("day1.parquet was not taken, and will be tried again when it changes") == 1
    (town / "events" / "day1.parquet").unlink()
    add(town, "day3.csv", 5)
    following = follow()
    wait_for(lambda: lines() == ["day0.csv", "day2.csv", "day3.csv"])
    following.send_signal(signal.SIGINT)
    assert following.wait(timeout=60) == 130
    assert following.communicate()[1] == b""


def test_show_draws_and_exports(town: Path) -> None:
    add(town, "day0.csv", 9)
    inside(town, "monitor", "run", "town.yaml", "--follow", "events", "--once")
    outcome = inside(
        town, "monitor", "show", "town-state/noon.db", "--csv", "n.csv", "--chart", "n.svg", "--points", "points.csv"
    )
    assert outcome.code == 0
    assert (town / "n.csv").read_text().startswith("place,verdict,since,value,estimate\ngym,above,0,")
    assert (town / "n.svg").read_text().startswith("<svg")
    assert inside(town, "monitor", "show", "town-state/gym.db", "--chart", "g.png").code == 0
    assert (town / "g.png").read_bytes().startswith(b"\x89PNG")


def test_the_schema_is_json(tmp_path: Path) -> None:
    assert inside(tmp_path, "monitor", "schema").document["title"] == "Tacit monitors"


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["run", "town.yaml"], "town.yaml: batches must be named. Add --follow FOLDER, or `batches: events/*.csv`."),
        (["run", "town.yaml", "--follow", "gone"], "--follow must be a folder; got 'gone'. Create it first."),
        (["run", "gone.yaml"], "gone.yaml must exist. Check the path of the monitor file."),
        (["run", "points.csv"], "points.csv looks like a table, not a monitor file."),
        (["show", "gone.db"], "state must be a state of a monitor; got 'gone.db'. Check the path."),
        (["show", "ledger.db"], "state is no state of a monitor; got 'ledger.db'. Name another file."),
        (["show", "events"], "STATE must hold states of monitors; got 'events'. Check the path."),
    ],
)
def test_wrong_input_is_one_sentence(town: Path, args: list[str], sentence: str) -> None:
    before = files_in(town)
    assert inside(town, "monitor", *args).refusal().startswith(sentence)
    assert sentence in inside(town, "monitor", *args, "--json").error()["message"]
    assert files_in(town) == before


def test_a_missing_column_names_it_and_nothing_of_the_file(town: Path) -> None:
    (town / "events" / "day0.csv").write_text("venue\nCANARY\n", encoding="utf-8")
    said = inside(town, "monitor", "run", "town.yaml", "--follow", "events", "--once")
    assert said.code == 4
    assert (
        said.err == "tacit: column 'place' must be a column of the batch. Check the name in the header of the file.\n"
    )
    assert "CANARY" not in said.out + said.err


def test_points_that_are_none_are_refused_before_anything_is_charged(town: Path) -> None:
    (town / "points.csv").write_text("place,where\ngym,here\n", encoding="utf-8")
    said = inside(town, "monitor", "run", "town.yaml", "--follow", "events", "--once")
    assert said.refusal().startswith("points must have the columns place, lat and lon; got ['place', 'where'].")
    with Ledger(town / "ledger.db") as ledger:
        assert ledger.remaining(dataset="town") == 2
    assert not (town / "town-state").exists()


def test_several_states_cannot_share_a_chart(town: Path) -> None:
    inside(town, "monitor", "run", "town.yaml", "--follow", "events", "--once")
    said = inside(town, "monitor", "show", "town-state", "--chart", "all.svg")
    assert said.refusal() == "STATE must be one state for --csv and --chart; got 2. Name one."
    said = inside(town, "monitor", "show", "town-state/gym.db", "--chart", "gym.gif")
    assert said.refusal() == "--chart must end in .svg or .png; got 'gym.gif'. Rename it."


def test_a_file_that_is_removed_while_the_folder_is_looked_at_is_passed_over(
    town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(town, "day0.csv", 1)
    gone = town / "events" / "day1.csv"
    monkeypatch.setattr("tacit.jobs.monitor_file.event_files", lambda where: [gone, *Path(where).glob("*.csv")])
    done = inside(town, "monitor", "run", "town.yaml", "--follow", "events", "--once")
    assert (done.code, "Taken: 1 new file." in done.out) == (0, True)
