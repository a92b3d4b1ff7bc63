"""Monitor files: everything that is wrong is said with its line, before anything is begun."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
import yaml

from fuzz.documents import BESIDE_ITS_POLICY as FILE
from fuzz.documents import TOWN
from tacit.errors import BudgetExceeded, DataRefused, Refused
from tacit.jobs.monitor_file import event_files, monitor_schema, read_monitor_file, step_in_name
from tacit.ledger.ledger import Ledger
from tacit.monitor.clock import as_clock
from tacit.monitor.monitor import MapMonitor, PlaceMonitor


@pytest.fixture
def town(tmp_path: Path) -> Callable[..., Path]:
    """Write the file with one piece of text replaced, and return its path."""
    (tmp_path / "town.policy.yaml").write_text(TOWN, encoding="utf-8")

    def write(old: str = "", new: str = "", text: str = FILE) -> Path:
        assert old in text
        path = tmp_path / "town.yaml"
        path.write_text(text.replace(old, new, 1) if old else text, encoding="utf-8")
        return path

    return write


def test_a_file_reads(town: Callable[..., Path]) -> None:
    found = read_monitor_file(town())
    assert (found.name, list(found.options), found.cost) == ("town", ["gym", "noon", "some"], Fraction(11, 6))
    assert found.options["gym"]["start"] == "2024-03-01"
    assert found.options["some"]["places"] == ["gym", "park"]
    assert found.batches == str(town().parent / "events")
    assert [found.state.name, found.out.name] == ["town-state", "town-verdicts"]
    assert not found.state.exists()
    with found.open() as opened:
        kinds = [type(monitor) for monitor in opened.monitors.values()]
        assert kinds == [PlaceMonitor, MapMonitor, MapMonitor]
    assert sorted(file.name for file in found.state.glob("*.db")) == ["gym.db", "noon.db", "some.db"]
    assert found.state.stat().st_mode & 0o777 == 0o700


def test_one_file_of_events_is_one_step_of_every_monitor(town: Callable[..., Path], tmp_path: Path) -> None:
    batch = tmp_path / "day1.csv"
    batch.write_text("place,who,when\ngym,a,2024-03-01\n", encoding="utf-8")
    for _ in range(2):
        with read_monitor_file(town()).open() as opened:
            said = opened.feed(batch)
            assert {name: verdict.step for name, verdict in said.items()} == {"gym": 0, "noon": 0, "some": 0}
            assert opened.have_taken(batch)
            assert not opened.have_taken(tmp_path / "day2.csv")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("monitors:", "monitor:", "town.yaml:9: monitor is not a key that may stand here. Did you mean 'monitors'?"),
        ("policy: town.policy.yaml\n", "", "must have the key policy"),
        ("town.policy.yaml", "gone.yaml", "town.yaml:2: policy must be a policy file; got 'gone.yaml'."),
        ("gym, threshold", "gim, threshold", "town.yaml:10: monitors[0].place must be one of the items; got 'gim'."),
        ("threshold: 5", "threshold: 0", "town.yaml:10: monitors[0].threshold must be a whole number from 1"),
        ("threshold: 5", "threshold: many", "monitors[0].threshold must be a whole number; got 'many'"),
        ("epsilon: 0.5", "epsilon: 0", "town.yaml:10: monitors[0].epsilon must lie above 0"),
        ("epsilon: 0.5", "epsilon: [1]", "monitors[0].epsilon must be a number; got [1]"),
        ("window: 14", "window: -1", "monitors[0].window must be a whole number from 1"),
        (", window: 14", "", "town.yaml:10: monitors[0] must have the key window"),
        ("place: gym,", "", "monitors[0] must have the key place or the key map"),
        ("map: all", "place: gym, map: all", "monitors[1] must have the key place or the key map"),
        ("map: all", "map: everywhere", "monitors[1].map must be a list; got 'everywhere'"),
        ("map: [gym, park]", "map: [gym, bar]", "town.yaml:12: monitors[2] must be one of the items; got 'bar'"),
        ("map: all", "map: all, window: 3", "monitors[1].window is not for a map"),
        ("window: 14", "window: 14, at: 3", "monitors[0].at is not for a place"),
        ("map: all", "map: all, decide_at: -1", "monitors[1].decide_at must be a whole number from 0"),
        ("batches: events", "steps: dates", "town.yaml:8: steps must be files or names; got 'dates'"),
        ("name: noon", "name: ../noon", "monitors[1].name must start with a letter or digit"),
        ("name: noon", "name: Gym", "monitors[1].name must be the name of one monitor only; got 'Gym'"),
        ('"2024-03-01"', "2024-03-01", "town.yaml:6: start must be quoted: YAML reads 2024-03-01 as a date."),
        ('"2024-03-01"', "soon", "town.yaml:6: start must be a whole number or a date; got 'soon'"),
        ("every: 1 day", "every: 1 dya", "town.yaml:7: every must say how long a step lasts"),
        ("person: who\n", "", "monitors[0].visits_per_person needs a person; got 2."),
        ("person: who", "person: place", "town.yaml:4: person must not be the column of item as well"),
        ("name: town\n", "dataset: x\n", "town.yaml:1: dataset needs the key ledger; got 'x'"),
        ("name: town\n", "ledger: x.db\n", "town.yaml:1: ledger needs the key dataset"),
        ("name: town\n", "state: x\nout: x\n", "town.yaml:1: state must not be the folder `out`; got 'x'."),
        ("name: town\n", "out: events\n", "batches must not lie in the folder `out`; got 'events'."),
        ("name: town\n", "points: gone.csv\n", "town.yaml:1: points must be a file that exists; got 'gone.csv'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(town: Callable[..., Path], old: str, new: str, sentence: str) -> None:
    path = town(old, new)
    with pytest.raises(Refused) as refusal:
        read_monitor_file(path)
    assert sentence in str(refusal.value).replace(str(path), "town.yaml")
    assert not (path.parent / "town-state").exists()


@pytest.mark.parametrize("name", ["x" * 300, "ä" * 200, "y/" * 2500 + "z", "a\\0b"])
@pytest.mark.parametrize("key", ["policy", "state", "out", "batches", "points", "ledger"])
def test_a_name_that_no_file_can_have_is_refused_by_its_key(town: Callable[..., Path], key: str, name: str) -> None:
    line = f'{key}: "{name}"\n' + ("dataset: town\n" if key == "ledger" else "")
    old = {"policy": "policy: town.policy.yaml\n", "batches": "batches: events\n"}.get(key, "name: town\n")
    with pytest.raises(Refused, match=f"{key} must be a path, with names of at most 255 bytes and 4,095 in all"):
        read_monitor_file(town(old, line))


@pytest.mark.parametrize("text", ["", "- a\n", "policy: [\n", "monitors: []\npolicy: town.policy.yaml\n", "a,b\n1,2\n"])
def test_what_is_no_monitor_file_is_refused(town: Callable[..., Path], text: str) -> None:
    with pytest.raises(Refused):
        read_monitor_file(town(text=text))


def test_a_table_is_refused_by_its_name(tmp_path: Path) -> None:
    for name in ("rows.csv", "rows.parquet", "gone.yaml"):
        with pytest.raises(Refused, match=r"looks like a table|must exist"):
            read_monitor_file(tmp_path / name)


def test_a_policy_may_stand_in_the_file(town: Callable[..., Path]) -> None:
    inline = "policy:\n  domain: {visited: {items: [gym, cafe, park]}}\n  secrets: {values: {visited: [1]}}\n"
    assert read_monitor_file(town("policy: town.policy.yaml\n", inline)).policy.name == "policy"
    with pytest.raises(Refused, match=r"must protect the visits|must not let the number of visits rise"):
        read_monitor_file(town("policy: town.policy.yaml\n", inline.replace("[1]", "[0]")))


def test_time_may_be_switched_off(town: Callable[..., Path]) -> None:
    text = FILE.replace("time: when", "time: null").replace('start: "2024-03-01"\nevery: 1 day\n', "")
    assert read_monitor_file(town(text=text)).options["gym"]["time"] is None


MAPS = "".join(line for line in FILE.splitlines(keepends=True) if "name: gym" not in line)


def test_nothing_is_begun_if_not_all_can_be_paid(town: Callable[..., Path]) -> None:
    path = town("name: town\n", "ledger: ledger.db\ndataset: town\n", text=MAPS)
    with Ledger(path.parent / "ledger.db") as ledger:
        ledger.grant(dataset="town", epsilon=1)
        with pytest.raises(BudgetExceeded, match="monitors must not cost more in all than what remains, 1"):
            read_monitor_file(path).open()
        assert ledger.remaining(dataset="town") == 1
        assert not (path.parent / "town-state").exists()
        ledger.grant(dataset="town", epsilon=1)
        for _ in range(2):
            read_monitor_file(path).open().__exit__(None, None, None)
            assert ledger.remaining(dataset="town") == Fraction(2, 3)


def test_nothing_is_begun_if_one_account_cannot_take_all_their_promises(town: Callable[..., Path]) -> None:
    # single visits in one, persons in the others: their costs do not add up to anything
    path = town("name: town\n", "ledger: ledger.db\ndataset: town\n", FILE.replace(", visits_per_person: 2", ""))
    with Ledger(path.parent / "ledger.db") as ledger:
        ledger.grant(dataset="town", epsilon=2)
        with pytest.raises(Refused, match=r"monitor 'noon'.*protects less than the one the total of dataset 'town'"):
            read_monitor_file(path).open()
        assert ledger.remaining(dataset="town") == 2
        assert not (path.parent / "town-state").exists()


def test_a_restart_with_another_epsilon_names_the_monitor(town: Callable[..., Path]) -> None:
    read_monitor_file(town()).open().__exit__(None, None, None)
    with pytest.raises(Refused, match="monitor 'gym': epsilon must be as when the state"):
        read_monitor_file(town("epsilon: 0.5", "epsilon: 0.6")).open()
    read_monitor_file(town()).open().__exit__(None, None, None)  # and lets go of what it had opened


def test_names_of_files_may_say_their_step(town: Callable[..., Path], tmp_path: Path) -> None:
    path = town("batches: events", "steps: names")
    with read_monitor_file(path).open() as opened:
        for name, step in (("e-2024-03-03.csv", 2), ("e-2024-03-07.csv", 6), ("e-2024-03-05.csv", 7)):
            (tmp_path / name).write_text("place,who,when\n", encoding="utf-8")
            assert {verdict.step for verdict in opened.feed(tmp_path / name).values()} == {step}
            assert {verdict.step for verdict in opened.feed(tmp_path / name).values()} == {step}
        with pytest.raises(DataRefused, match=r"file 'today.csv' must have a date like 2024-03-01 in its name"):
            opened.feed(tmp_path / "today.csv")


@pytest.mark.parametrize(
    ("name", "step"),
    [("2024-03-01", 0), ("x_20240302.csv", 4), ("2024-03-02T18:00", 7), ("2024-03-02_1800.csv", 7), ("2024-02-29", -4)],
)
def test_dates_in_names(name: str, step: int) -> None:
    assert step_in_name(name, as_clock("2024-03-01", "6 hours")) == step


def test_a_map_may_be_decided_at_chosen_steps(town: Callable[..., Path]) -> None:
    text = FILE.replace("map: all,", "map: all, decide_at: [6, 7],")
    assert read_monitor_file(town(text=text)).options["noon"]["decide_at"] == [6, 7]
    jsonschema.Draft202012Validator(monitor_schema()).validate(yaml.safe_load(text))


def test_files_of_events_come_by_name_and_hidden_ones_are_left_out(tmp_path: Path) -> None:
    for name in ("b.csv", "a.parquet", ".c.csv", "_d.csv", "e.txt", "f.CSV"):
        (tmp_path / name).touch()
    (tmp_path / "g.csv").mkdir()
    assert [file.name for file in event_files(tmp_path)] == ["a.parquet", "b.csv", "f.CSV"]
    assert [file.name for file in event_files(str(tmp_path / "*.csv"))] == ["b.csv"]
    assert event_files(tmp_path / "nothing") == []


def test_the_schema_accepts_what_the_reader_accepts() -> None:
    schema = monitor_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(yaml.safe_load(FILE))
    for old, new in (
        ("threshold: 5", "threshold: 0"),
        ("window: 14", "windows: 14"),
        ("place: gym,", ""),
        ("name: noon", "name: a/b"),
    ):
        assert list(validator.iter_errors(yaml.safe_load(FILE.replace(old, new)))), (old, new)


def test_the_file_in_the_documentation_reads(town: Callable[..., Path]) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "monitors.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (town().parent / "venues.csv").write_text("place,lat,lon\ngym,1,2\n", encoding="utf-8")
    assert list(read_monitor_file(town(text=block)).options) == ["gym", "noon"]
    jsonschema.Draft202012Validator(monitor_schema()).validate(yaml.safe_load(block))
