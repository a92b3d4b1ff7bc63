"""Monitor files: which places to watch in which events under which policy, in one YAML file that can be reviewed.

Guarantee   Everything that can be refused is refused before anything is charged or written: the whole file is read, and
            every monitor is made once in memory. If what all new monitors cost together is more than what remains, none
            is begun.
Assumes     The file is trusted as much as the command that runs it: it names files to read and folders to write.
Why         Each monitor charges the ledger for its own place or time; the ledger adds up. One file of events is one
            step of every monitor. A file is known by its name, so a run that broke off goes on where it was.
Checked by  tests/unit/jobs/test_monitor_file.py, tests/cli/test_monitor.py.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Self

from tacit.amounts import EPSILON_SCHEMA, as_epsilon, shown
from tacit.errors import BudgetExceeded, DataRefused, Refused
from tacit.jobs.job_file import ANALYST, DATASET, LEDGER, open_job
from tacit.jobs.variables import NONE_SET, Variables
from tacit.ledger.ledger import Ledger
from tacit.monitor.clock import Clock, as_clock, iso_date, ticks_of
from tacit.monitor.history import MapVerdict, PlaceVerdict
from tacit.monitor.monitor import MapMonitor, PlaceMonitor
from tacit.policy.keys import POSITIVE, TEXT, Key, Keys, Schema, together
from tacit.policy.policy import Policy
from tacit.policy.policy_file import POLICY, schema_with_policy
from tacit.policy.yaml_entries import TABLE_NAMES, YamlEntry

_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")  # it becomes the name of files
Monitor = PlaceMonitor | MapMonitor


# ---- keys -----------------------------------------------------------------------------------------------------------

_MOMENT: Final[Schema] = {"type": ["string", "integer"]}
_STEP: Final[Schema] = {"type": "integer", "minimum": 0}


def _path(entry: YamlEntry) -> Path:
    return entry.file_path().absolute()


def _pattern(entry: YamlEntry) -> str:
    return str(_path(entry))


def _name_or_none(entry: YamlEntry) -> str | None:
    return None if entry.is_empty else entry.text()


def _monitor_name(entry: YamlEntry) -> str:
    name = entry.text()
    if not _SAFE_NAME.fullmatch(name):
        rule = "must start with a letter or digit and have only letters, digits, - and _"
        raise entry.refuse(rule, given=name, fix="It becomes the name of files; rename it.")
    return name


def _places(entry: YamlEntry) -> list[Any] | None:
    """Return the places of a map, or None for all of them."""
    if not entry.is_list and not entry.is_mapping and not entry.is_empty and entry.node.value == "all":
        return None
    return [place.value() for place in entry.listed()]


_BOTH: Final = ("place", "map")
_EVERY: Final = Key(
    "every",
    _MOMENT,
    "How long a step, or the designated time of a map, lasts: 1, or '1 day'.",
    "1",
    read=YamlEntry.value,
    to=_BOTH,
)
_SHARED: Final = Keys(  # the same for every monitor of a file
    Key(
        "attribute",
        TEXT,
        "The attribute whose values are places.",
        "the one that has the place",
        read=_name_or_none,
        to=_BOTH,
    ),
    Key("item", TEXT, "The column with the place.", "the one called like the attribute", read=_name_or_none, to=_BOTH),
    Key("person", TEXT, "The column that says whose visit it is.", "as the policy says", read=_name_or_none, to=_BOTH),
    Key(
        "event", TEXT, "The column with an id of the event, by which duplicates are told.", read=_name_or_none, to=_BOTH
    ),
    Key(
        "time",
        {"type": ["string", "null"]},
        "The column of times; null to go by batches.",
        "`time`, if there is one",
        read=_name_or_none,
        to=_BOTH,
    ),
    Key(
        "start",
        _MOMENT,
        "When the first step begins: a whole number or a quoted date.",
        "0",
        read=YamlEntry.value,
        to=("place",),
    ),
    replace(_EVERY, to=("place",)),
)
MONITOR_KEYS: Final = Keys(
    Key(
        "name",
        {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$"},
        "Names its files.",
        read=_monitor_name,
        required=True,
    ),
    Key(
        "place",
        {"type": ["string", "integer", "boolean"]},
        "One place, watched over time.",
        "`map` must be given",
        read=YamlEntry.value,
        to=("place",),
    ),
    Key(
        "map",
        {"anyOf": [{"const": "all"}, {"type": "array", "minItems": 1, "items": _MOMENT}]},
        "All places, or these, at one designated time.",
        "`place` must be given",
        read=_places,
    ),
    Key(
        "at",
        _MOMENT,
        "When the designated time of a map begins.",
        "all events count",
        read=YamlEntry.value,
        to=("map",),
    ),
    Key(
        "decide_at",
        {"anyOf": [_STEP, {"type": "array", "minItems": 1, "items": _STEP}]},
        "The steps at which a map is decided, from 0.",
        "every one",
        read=lambda entry: [step.whole() for step in entry.one_or_more()],
        to=("map",),
    ),
    _EVERY,
    Key("threshold", POSITIVE, "Fewer visits than this are safe.", required=True, to=_BOTH),
    Key(
        "epsilon",
        EPSILON_SCHEMA,
        "What the whole life of the monitor costs.",
        read=YamlEntry.amount,
        required=True,
        to=_BOTH,
    ),
    Key(
        "window",
        POSITIVE,
        "For how many steps a visit counts and an alarm silences.",
        "must be given with `place`",
        to=("place",),
    ),
    Key(
        "visits_per_person",
        POSITIVE,
        "How many visits of one person ever count.",
        "of a place all; of a map with `person` 1",
        to=_BOTH,
    ),
)


@dataclass(frozen=True)
class MonitorFile:
    """What a monitor file says, with all paths spelled out. `options` has the arguments of each monitor by name.

    `clock` is there where the names of files say their step.
    """

    name: Annotated[str, Key("name", TEXT, "What the file is called.", "the name of the file")]
    policy: Annotated[Policy, POLICY]
    options: Annotated[
        Mapping[str, Mapping[str, Any]],
        Key(
            "monitors",
            {
                "type": "array",
                "minItems": 1,
                "items": {**MONITOR_KEYS.schema(), "oneOf": [{"required": ["place", "window"]}, {"required": ["map"]}]},
            },
            "A list of monitors.",
            read=together,
            required=True,
        ),
    ]
    state: Annotated[
        Path,
        Key("state", TEXT, "The folder for the private states.", "the name of the file, with `-state`", read=_path),
    ]
    out: Annotated[
        Path,
        Key(
            "out",
            TEXT,
            "The folder for the published verdicts, certificates and charts.",
            "the name of the file, with `-verdicts`",
            read=_path,
        ),
    ]
    batches: Annotated[
        str | None,
        Key(
            "batches",
            TEXT,
            "Files of events: a pattern, or a folder. One file is one step.",
            "`--follow` names a folder",
            read=_pattern,
        ),
    ] = None
    clock: Annotated[
        Clock | None,
        Key(
            "steps",
            {"enum": ["files", "names"]},
            "`files`: a file is one step more than the last. `names`: its name has the date or number of its step.",
            "`files`",
            read=together,
        ),
    ] = None
    points: Annotated[
        Path | None, Key("points", TEXT, "A CSV file with the columns place, lat and lon, for the map.", read=_path)
    ] = None
    # a URL may hold a password
    ledger: Annotated[str | None, replace(LEDGER, left_out="nothing is charged")] = field(default=None, repr=False)
    dataset: Annotated[str | None, replace(DATASET, read=YamlEntry.text, left_out="must be given with `ledger`")] = None
    analyst: Annotated[str | None, replace(ANALYST, read=YamlEntry.text)] = None
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
        new = {name: options for name, options in self.options.items() if not self.state_of(name).exists()}
        cost = sum((as_epsilon(options["epsilon"]) for options in new.values()), Fraction(0))
        if self.ledger is not None and new:
            with Ledger(self.ledger, create=False) as ledger:
                left = ledger.remaining(dataset=str(self.dataset), analyst=self.analyst)
            if cost > left:
                rule = f"must not cost more in all than what remains, {shown(left)}"
                fix = "Ask for less, or grant more budget. Nothing was charged."
                raise BudgetExceeded(rule, key="monitors", given=cost, file=self.file, fix=fix)
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
        policies: list[Policy] = []
        with Ledger(self.ledger, create=False) as ledger:
            for name, options in new.items():
                try:
                    with _made(self.policy, {**options, "state": None}) as sketch:  # in memory, and charges nothing
                        policies.append(sketch.policy)
                    ledger.check_policies(dataset=str(self.dataset), policies=policies, analyst=self.analyst)
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
        """Take a file as one step of every monitor; one that has taken it before repeats its verdict.

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
        tick = None
        if found is not None:
            tick = ticks_of(iso_date("{}-{}-{}T{}:{}".format(*(part or "00" for part in found.groups()))))
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


def read_monitor_file(path: str | Path, variables: Variables = NONE_SET) -> MonitorFile:
    """Read a monitor file; every refusal names the file, the line, the key, the rule, the value given and the fix."""
    file = Path(path).absolute()
    top = open_job(path, "the monitor file", "monitor file", "Name the YAML file.", variables)
    fields = file_keys().entries(top)
    values = Keys.of(MonitorFile).read(fields)
    if "ledger" in values and "dataset" not in values:
        raise fields["ledger"].refuse("needs the key dataset", fix="Name the data set whose budget is charged.")
    for key in ("dataset", "analyst"):
        if key in values and "ledger" not in values:
            raise fields[key].refuse("needs the key ledger", given=values[key], fix="Add `ledger: ledger.db`.")
    if "points" in values and not values["points"].is_file():
        fix = "Check the path; it is relative to the monitor file."
        raise fields["points"].refuse("must be a file that exists", given=fields["points"].text(), fix=fix)
    defaults = {"name": file.stem, **{key: file.parent / f"{file.stem}-{word}" for key, word in _FOLDERS.items()}}
    found = {**defaults, **values}
    _check_folders(top, fields, found["state"], found["out"], found.get("batches"))
    return MonitorFile(**found, options=_monitors(fields, found["policy"]), clock=_named_steps(fields), file=str(path))


_FOLDERS: Final = {"state": "state", "out": "verdicts"}


def file_keys() -> Keys:
    """Return the keys of a monitor file: of the file itself, and those that all its monitors share."""
    return Keys(*Keys.of(MonitorFile), *_SHARED)


def _check_folders(
    top: YamlEntry, fields: Mapping[str, YamlEntry], state: Path, out: Path, batches: str | None
) -> None:
    """Refuse folders that would mix private states, published verdicts and events."""
    if state.resolve() == out.resolve():
        fix = "Name another folder: states are private, and `out` is what is published."
        blamed = fields.get("state", fields.get("out", top))
        raise blamed.refuse("must not be the folder `out`", given=state.name, fix=fix)
    if batches is not None and out.resolve() in (Path(batches).resolve(), Path(batches).parent.resolve()):
        fix = "Name another folder: verdicts would be read as events."
        raise fields["batches"].refuse("must not lie in the folder `out`", given=fields["batches"].text(), fix=fix)


def _monitors(fields: Mapping[str, YamlEntry], policy: Policy) -> dict[str, dict[str, Any]]:
    entry = fields["monitors"]
    if entry.is_empty or (entry.is_list and not entry.listed()):
        raise entry.refuse("must list a monitor", given=entry.plain(), fix="Add one below, with a dash.")
    found: dict[str, dict[str, Any]] = {}
    for one in entry.listed():
        own = MONITOR_KEYS.entries(one)
        values = MONITOR_KEYS.read(own)
        name = values["name"]
        if name.casefold() in {known.casefold() for known in found}:
            raise own["name"].refuse("must be the name of one monitor only", given=name, fix="Rename it.")
        options = _options(one, own, values, fields)
        with one.blamed({**fields, **own}):
            _made(policy, options).close()
        found[name] = options
    return found


def _options(
    one: YamlEntry, own: Mapping[str, YamlEntry], values: Mapping[str, Any], fields: Mapping[str, YamlEntry]
) -> dict[str, Any]:
    """Return the arguments of one monitor; what it says itself comes before what the file says for all."""
    if ("place" in own) == ("map" in own):
        fix = "`place: gym` watches one place over time, `map: all` all places at one time."
        raise one.refuse("must have the key place or the key map", given=sorted(own), fix=fix)
    kind = "map" if "map" in own else "place"
    for key in MONITOR_KEYS:
        if key.to and kind not in key.to and key.name in own:
            raise own[key.name].refuse(f"is not for a {kind}", fix="Remove it.")
    if kind == "place" and "window" not in own:
        raise one.refuse("must have the key window", given=sorted(own), fix="Add `window: 14`.")
    places = {"places": values["map"]} if kind == "map" else {}
    shared = Keys(*(key for key in _SHARED if kind in key.to)).read(fields)  # a map does not go by the file's clock
    return {**shared, **MONITOR_KEYS.handed_to(kind, values), **places}


def _named_steps(fields: Mapping[str, YamlEntry]) -> Clock | None:
    """Return the clock by which the names of files say their step, if the file says that they do."""
    if "steps" not in fields:
        return None
    word = fields["steps"].text()
    if word not in ("files", "names"):
        fix = "`files`: one step for each. `names`: the date or number in the name."
        raise fields["steps"].refuse("must be files or names", given=word, fix=fix)
    if word == "files":
        return None
    with fields["steps"].blamed(fields):
        start, every = (fields[key].value() if key in fields else None for key in ("start", "every"))
        return as_clock(start, every)


def _made(policy: Policy, options: Mapping[str, Any]) -> Monitor:
    return PlaceMonitor(policy, **options) if "place" in options else MapMonitor(policy, **options)


def monitor_schema() -> Schema:
    """Return the JSON schema (draft 2020-12) of monitor files, for editors that complete and check while typing.

    A schema cannot know the policy's places, so the reader refuses more.
    """
    description = "Which places to watch in which events under which policy."
    return schema_with_policy("Tacit monitors", description, file_keys(), {})
