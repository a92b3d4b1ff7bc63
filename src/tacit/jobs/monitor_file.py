"""Monitor files: which places to watch in which events under which policy, in one YAML file that can be reviewed.

Guarantee   Everything that can be refused is refused before anything is charged or written: the whole file is read, and
            every monitor is made once in memory. If what all new monitors cost together is more than what remains, none
            is begun.
Assumes     The file is trusted as much as the command that runs it: it names files to read and folders to write.
Why         Each monitor charges the ledger for its own place or time; the ledger adds up. One file of events is one
            step of every monitor. A file is known by its name, so a run that broke off goes on where it was.
Checked by  tests/unit/test_monitor_file.py, tests/cli/test_monitor.py.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tacit.amounts import EPSILON_SCHEMA, as_epsilon, shown
from tacit.errors import BudgetExceeded, DataRefused, JobError, Refused
from tacit.ledger.ledger import Ledger
from tacit.monitor.clock import Clock, as_clock, iso_date, ticks_of
from tacit.monitor.history import MapVerdict, PlaceVerdict
from tacit.monitor.monitor import MapMonitor, PlaceMonitor
from tacit.policy.files.policy_file import policy_below
from tacit.policy.files.schema import policy_schema
from tacit.policy.files.table_names import TABLE_NAMES
from tacit.policy.files.yaml_entries import YamlEntry, YamlSource
from tacit.policy.policy import Policy

_SHARED: Final = ("attribute", "item", "person", "event", "time")  # columns: the same for every monitor of a file
_KEYS: Final = (
    "name",
    "policy",
    *_SHARED,
    "start",
    "every",
    "ledger",
    "dataset",
    "analyst",
    "batches",
    "steps",
    "points",
    "state",
    "out",
    "monitors",
)
_MONITOR_KEYS: Final = (
    "name",
    "place",
    "map",
    "at",
    "decide_at",
    "every",
    "threshold",
    "epsilon",
    "window",
    "visits_per_person",
)
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")  # it becomes the name of files
Monitor = PlaceMonitor | MapMonitor


@dataclass(frozen=True)
class MonitorFile:
    """What a monitor file says, with all paths spelled out. `options` has the arguments of each monitor by name."""

    name: str
    policy: Policy
    options: Mapping[str, Mapping[str, Any]]
    state: Path
    out: Path
    batches: str | None = None
    clock: Clock | None = None  # where the step of a file is in its name
    points: Path | None = None
    ledger: str | None = field(default=None, repr=False)  # a URL may hold a password
    dataset: str | None = None
    analyst: str | None = None
    file: str = ""

    @property
    def cost(self) -> Fraction:
        """What all monitors cost together, each for its whole life."""
        return sum((as_epsilon(options["epsilon"]) for options in self.options.values()), Fraction(0))

    def state_of(self, name: str) -> Path:
        """Return the file that a monitor keeps its private state in."""
        return self.state / f"{name}.db"

    def open(self) -> OpenMonitors:
        """Begin the monitors, or go on with them; refuse before anything is charged if not all can be paid."""
        new = {name: said for name, said in self.options.items() if not self.state_of(name).exists()}
        cost = sum((as_epsilon(options["epsilon"]) for options in new.values()), Fraction(0))
        if self.ledger is not None and new:
            with Ledger(self.ledger, create=False) as ledger:
                left = ledger.remaining(dataset=str(self.dataset), analyst=self.analyst)
            if cost > left:
                raise BudgetExceeded(
                    f"must not cost more in all than what remains, {shown(left)}",
                    key="monitors",
                    given=shown(cost),
                    file=self.file,
                    fix="Ask for less, or grant more budget. Nothing was charged.",
                )
            self._check_policies(new)
        self.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened: dict[str, Monitor] = {}
        try:
            for name, options in self.options.items():
                paid = {"ledger": self.ledger, "dataset": self.dataset, "analyst": self.analyst}
                opened[name] = _made(self.policy, {**options, **paid, "state": self.state_of(name)})
        except BaseException as fault:
            for monitor in opened.values():
                monitor.close()
            if isinstance(fault, Refused):
                raise fault.located(file=self.file, key=f"monitor {name!r}: {fault.key}") from None
            raise
        return OpenMonitors(opened, self.clock)

    def _check_policies(self, new: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse monitors that one account cannot take, since they keep different promises, before any is charged."""
        assert self.ledger is not None  # noqa: S101 - the caller looked
        kept: list[Policy] = []
        with Ledger(self.ledger, create=False) as ledger:
            for name, options in new.items():
                try:
                    with _made(self.policy, {**options, "state": None}) as sketch:  # in memory, and charges nothing
                        kept.append(sketch.policy)
                    ledger.check_policies(dataset=str(self.dataset), policies=kept, analyst=self.analyst)
                except Refused as refusal:
                    raise refusal.located(file=self.file, key=f"monitor {name!r}: {refusal.key}") from None


class OpenMonitors:
    """The monitors of a file, ready to be fed."""

    def __init__(self, monitors: Mapping[str, Monitor], clock: Clock | None = None) -> None:
        self.monitors = monitors
        self._clock = clock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for monitor in self.monitors.values():
            monitor.close()

    def have_taken(self, file: Path) -> bool:
        """Say whether every monitor has taken a file of events; files are known by their names."""
        return all(monitor.has_taken(file.name) for monitor in self.monitors.values())

    def feed(self, file: Path) -> dict[str, PlaceVerdict | MapVerdict]:
        """Take a file as one step of every monitor; one that has taken it before says again what it said then.

        Where names say the step, the clock moves to it; a file that comes after its time is of the next step.
        """
        named = None if self._clock is None else step_in_name(file.name, self._clock)
        return {
            name: monitor.feed(file, batch_id=file.name, step=None if named is None else max(named, monitor.next_step))
            for name, monitor in self.monitors.items()
        }


def step_in_name(name: str, clock: Clock) -> int:
    """Return the step of the date or the number in the name of a file, or refuse a name that has none.

    >>> step_in_name("visits-2024-03-04.csv", as_clock("2024-03-01", "1 day")), step_in_name("day 7.csv", Clock())
    (3, 7)
    """
    if clock.dates:
        found = re.search(r"(\d{4})-?(\d\d)-?(\d\d)(?:[T_ ](\d\d)[-:]?(\d\d))?", name)
        said = None if found is None else "{}-{}-{}T{}:{}".format(*(part or "00" for part in found.groups()))
        tick = None if said is None else ticks_of(iso_date(said))
    else:
        numbers = re.findall(r"\d{1,15}", name)
        tick = int(numbers[0]) if numbers else None
    if tick is None:
        kind = "a date like 2024-03-01" if clock.dates else "a number"
        raise DataRefused(f"file {name!r} must have {kind} in its name, which says its step", fix="Rename it.")
    return (tick - clock.start) // clock.every


def event_files(where: str | Path) -> list[Path]:
    """Return the files of events in a folder, or those that a pattern matches, by name; hidden ones are left out."""
    folder = Path(where)
    found = folder.iterdir() if folder.is_dir() else (Path(match) for match in glob.glob(str(where), recursive=True))
    fit = [file for file in found if file.name.lower().endswith(TABLE_NAMES) and file.name[0] not in "._"]
    return sorted((file for file in fit if file.is_file()), key=lambda file: file.name)


# ---- reading --------------------------------------------------------------------------------------------------------


def read_monitor_file(path: str | Path) -> MonitorFile:
    """Read a monitor file; every refusal names the file, the line, the key, the rule, the value given and the fix."""
    file = Path(path).absolute()
    top = YamlSource.open(
        path,
        file=str(path),
        whole="the monitor file",
        refusal=JobError,
        kind="a monitor file",
        if_table="Name the YAML file.",
        if_missing="Check the path of the monitor file.",
    ).read()
    if not top.is_mapping:
        raise top.refuse("must be a mapping", fix="Start with `policy:`, without a dash.")
    said = top.fields(_KEYS, required=("policy", "monitors"))
    folder = file.parent
    policy = policy_below(said["policy"], folder)
    shared: dict[str, Any] = {key: said[key].text() for key in _SHARED if key in said and not said[key].is_empty}
    if "time" in said and said["time"].is_empty:
        shared["time"] = None  # by batches, whatever columns they have
    texts = {key: said[key].text() for key in ("dataset", "analyst") if key in said}
    paths = {key: said[key].path_in(folder) for key in ("points", "batches", "state", "out") if key in said}
    if "ledger" in said and "dataset" not in said:
        raise said["ledger"].refuse("needs the key dataset", fix="Name the data set whose budget is charged.")
    for key in ("dataset", "analyst"):
        if key in said and "ledger" not in said:
            raise said[key].refuse("needs the key ledger", given=said[key].text(), fix="Add `ledger: ledger.db`.")
    ledger = said["ledger"].text() if "ledger" in said else None
    points, batches = paths.get("points"), paths.get("batches")
    if points is not None and not points.is_file():
        fix = "Check the path; it is relative to the monitor file."
        raise said["points"].refuse("must be a file that exists", given=said["points"].text(), fix=fix)
    state = paths.get("state", folder / f"{file.stem}-state")
    out = paths.get("out", folder / f"{file.stem}-verdicts")
    if state.resolve() == out.resolve():
        fix = "Name another folder: states are private, and `out` is what is published."
        raise said.get("state", said.get("out", top)).refuse("must not be the folder `out`", given=state.name, fix=fix)
    if batches is not None and out.resolve() in (batches.resolve(), batches.parent.resolve()):
        fix = "Name another folder: verdicts would be read as events."
        raise said["batches"].refuse("must not lie in the folder `out`", given=said["batches"].text(), fix=fix)
    return MonitorFile(
        name=said["name"].text() if "name" in said else file.stem,
        policy=policy,
        options=_monitors(said, policy, shared),
        state=state,
        out=out,
        batches=None if batches is None else str(batches),
        clock=_named_steps(said),
        points=points,
        ledger=ledger if ledger is None or "://" in ledger else str(said["ledger"].path_in(folder)),
        file=str(path),
        **texts,
    )


def _monitors(said: Mapping[str, YamlEntry], policy: Policy, shared: dict[str, Any]) -> dict[str, dict[str, Any]]:
    entry = said["monitors"]
    if entry.is_empty or (entry.is_list and not entry.listed()):
        raise entry.refuse("must list a monitor", given=entry.plain(), fix="Add one below, with a dash.")
    found: dict[str, dict[str, Any]] = {}
    for one in entry.listed():
        own = one.fields(_MONITOR_KEYS, required=("name", "threshold", "epsilon"))
        name = own["name"].text()
        if not _SAFE_NAME.fullmatch(name):
            rule = "must start with a letter or digit and have only letters, digits, - and _"
            raise own["name"].refuse(rule, given=name, fix="It becomes the name of files; rename it.")
        if name.casefold() in {known.casefold() for known in found}:
            raise own["name"].refuse("must be the name of one monitor only", given=name, fix="Rename it.")
        options = _options(one, own, said) | shared
        with one.blamed({**said, **own}):
            _made(policy, options).close()
        found[name] = options
    return found


def _options(one: YamlEntry, own: Mapping[str, YamlEntry], top: Mapping[str, YamlEntry]) -> dict[str, Any]:
    """Return the arguments of one monitor as they are written."""
    if ("place" in own) == ("map" in own):
        raise one.refuse(
            "must have the key place or the key map",
            given=sorted(own),
            fix="`place: gym` watches one place over time, `map: all` all places at one time.",
        )
    is_map = "map" in own
    for key in ("window",) if is_map else ("at", "decide_at"):
        if key in own:
            raise own[key].refuse(f"is not for a {'map' if is_map else 'place'}", fix="Remove it.")
    if not is_map and "window" not in own:
        raise one.refuse("must have the key window", given=sorted(own), fix="Add `window: 14`.")
    options: dict[str, Any] = {
        key: own[key].whole() for key in ("threshold", "window", "visits_per_person") if key in own
    }
    options["epsilon"] = own["epsilon"].amount()
    if is_map:
        options["places"] = _map_places(own["map"])
        options |= {key: own[key].value() for key in ("at", "every") if key in own}
        if "decide_at" in own:
            options["decide_at"] = [step.whole() for step in own["decide_at"].one_or_more()]
        return options
    options["place"] = own["place"].value()
    every = own.get("every", top.get("every"))
    options |= {} if every is None else {"every": every.value()}
    return options | ({"start": top["start"].value()} if "start" in top else {})


def _named_steps(said: Mapping[str, YamlEntry]) -> Clock | None:
    """Return the clock by which the names of files say their step, if the file says that they do."""
    if "steps" not in said:
        return None
    word = said["steps"].text()
    if word not in ("files", "names"):
        fix = "`files`: one step for each. `names`: the date or number in the name."
        raise said["steps"].refuse("must be files or names", given=word, fix=fix)
    if word == "files":
        return None
    with said["steps"].blamed(said):
        start, every = (said[key].value() if key in said else None for key in ("start", "every"))
        return as_clock(start, every)


def _map_places(entry: YamlEntry) -> list[Any] | None:
    if not entry.is_list and not entry.is_mapping and not entry.is_empty and entry.node.value == "all":
        return None
    return [place.value() for place in entry.listed()]


def _made(policy: Policy, options: Mapping[str, Any]) -> Monitor:
    return PlaceMonitor(policy, **options) if "place" in options else MapMonitor(policy, **options)


def monitor_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of monitor files, for editors that complete and check while typing.

    A schema cannot know the policy's places, so the reader refuses more.
    """
    policy = policy_schema()
    shared = policy.pop("$defs", {})
    policy.pop("$schema", None)
    text, whole = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 1}
    value = {"type": ["string", "integer"]}
    step = {"type": "integer", "minimum": 0}
    every = {**value, "description": "How long a step, or the designated time of a map, lasts: 1, or '1 day'."}
    monitor = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "threshold", "epsilon"],
        "oneOf": [{"required": ["place", "window"]}, {"required": ["map"]}],
        "properties": {
            "name": {
                "type": "string",
                "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$",
                "description": "Names its files.",
            },
            "place": {"type": ["string", "integer", "boolean"], "description": "One place, watched over time."},
            "map": {
                "anyOf": [{"const": "all"}, {"type": "array", "minItems": 1, "items": value}],
                "description": "All places, or these, at one designated time.",
            },
            "at": {**value, "description": "When the designated time of a map begins."},
            "decide_at": {
                "anyOf": [step, {"type": "array", "minItems": 1, "items": step}],
                "description": "The steps at which a map is decided, from 0; every one if left out.",
            },
            "every": every,
            "threshold": {**whole, "description": "Fewer visits than this are safe."},
            "epsilon": {**EPSILON_SCHEMA, "description": "What the whole life of the monitor costs."},
            "window": {**whole, "description": "For how many steps a visit counts and an alarm silences."},
            "visits_per_person": {**whole, "description": "How many visits of one person ever count."},
        },
    }
    columns: dict[str, Any] = {key: {**text, "description": f"The column, or attribute: {key}."} for key in _SHARED}
    columns["time"] = {"type": ["string", "null"], "description": "The column of times; null to go by batches."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tacit monitors",
        "description": "Which places to watch in which events under which policy.",
        "type": "object",
        "additionalProperties": False,
        "required": ["policy", "monitors"],
        "properties": {
            "name": text,
            "policy": {"anyOf": [text, {"$ref": "#/$defs/policy"}], "description": "A policy file, or the policy."},
            **columns,
            "start": {**value, "description": "When the first step begins: a whole number or a quoted date."},
            "every": every,
            "ledger": {**text, "description": "A file, relative to the monitor file, or a database URL."},
            "dataset": {**text, "description": "The name in the ledger."},
            "analyst": {**text, "description": "Who asks."},
            "batches": {**text, "description": "Files of events: a pattern, or a folder. One file is one step."},
            "steps": {
                "enum": ["files", "names"],
                "description": "The step of a file: one more than the last, or the date or number in its name.",
            },
            "points": {**text, "description": "A CSV file with the columns place, lat and lon, for the map."},
            "state": {**text, "description": "The folder for the private states."},
            "out": {**text, "description": "The folder for the published verdicts, certificates and charts."},
            "monitors": {"type": "array", "minItems": 1, "items": monitor},
        },
        "$defs": {**shared, "policy": policy},
    }
