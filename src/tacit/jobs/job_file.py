"""Job files: which releases to make of which rows under which policy, in one YAML file that can be reviewed.

Guarantee   The whole file is read and every query checked against the policy's domain before anything else happens.
            Nothing is opened but the job file and its policy.
Assumes     The job file is trusted as much as the command that runs it: it names files to read and a folder to write.
Why         What a job says is what somebody reviewed: a key that is misspelled or left out is refused, never guessed.
Checked by  tests/unit/test_job.py, tests/fuzz/test_fuzz.py.
"""

from __future__ import annotations

import glob
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Final

from tacit.amounts import EPSILON_SCHEMA, as_epsilon
from tacit.errors import JobError, nearest
from tacit.ledger.clauses.applications import Applications
from tacit.ledger.input import checked_name
from tacit.plan.question import Query, resolve
from tacit.plan.questions.written import from_document, keys_of, query_schema
from tacit.policy.domain import Domain
from tacit.policy.files.policy_file import policy_below
from tacit.policy.files.schema import policy_schema
from tacit.policy.files.yaml_entries import YamlEntry, YamlSource
from tacit.policy.policy import Policy

DEMO: Final = "demo:"
PLANNED: Final = "planned"
RELEASES: Final = "releases"

JOB_KEYS: Final = (
    "name",
    "policy",
    "rows",
    "person",
    "per_person",
    "order",
    "item",
    "dataset",
    "analyst",
    "budget",
    "ledger",
    "out",
    RELEASES,
)
_RELEASE_KEYS: Final = ("name", "query", "epsilon", "consistent", "nonnegative")
# a release's name becomes the name of files: no separators, no dots, nothing that hides or climbs
_SAFE_NAME: Final = re.compile(r"[^\W_][\w \-]*")
_LONGEST_NAME: Final = 100  # bytes; file systems stop at 255, and ".certificate.json" comes after it
_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))]
)


@dataclass(frozen=True)
class JobRelease:
    """One release of a job: a checked question, its cost, and how the answers are made to fit."""

    name: str
    query: Query
    epsilon: Fraction
    consistent: bool = False
    nonnegative: bool = False


@dataclass(frozen=True)
class Job:
    """What a job file says, with all paths spelled out. `ledger` is a path or a URL, `file` the job file itself.

    `person`, `per_person`, `order` and `item` are None where the job leaves them out: then the policy's hold. `places`
    has the line of a key, or of one path of the rows, and what was written there.
    """

    name: str
    policy: Policy
    rows: tuple[str, ...]
    releases: tuple[JobRelease, ...]
    dataset: str
    out: Path
    budget: Fraction | None = None
    ledger: str | None = field(default=None, repr=False)  # a URL may hold a password
    analyst: str | None = None
    person: str | None = None
    per_person: int | None = None
    order: str | None = None
    item: str | None = None
    file: str = ""
    leakage: Applications | None = None
    beside: Fraction = Fraction(0)  # what else the file asks for costs: a table
    places: Mapping[str, tuple[int, str]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def cost(self) -> Fraction:
        """What all that is asked for costs together."""
        return sum((release.epsilon for release in self.releases), self.beside)

    def about(self) -> Policy:
        """Return the policy about the people whom the job names, or else about those whom the policy names."""
        return self._about

    @cached_property
    def _about(self) -> Policy:
        return self.policy.about(self.person, self.per_person, self.order, self.item)

    def refuse(self, key: str, rule: str, *, given: str, fix: str, place: str = "") -> JobError:
        """Return the refusal of what stands below a key, with the line where it was written."""
        line, written = self.places.get(place or key, (None, given))
        return JobError(rule, key=key, given=written, file=self.file, line=line, fix=fix)


# ---- reading --------------------------------------------------------------------------------------------------------


def read_job(path: str | Path) -> Job:
    """Read a job file; every refusal names the file, the line, the key, the rule, the value given and the fix."""
    return job_below(open_job(path), path)


def open_job(path: str | Path, *, whole: str = "the job", kind: str = "a job file") -> YamlEntry:
    """Return the top of a job file, or of a case file."""
    Path(path).absolute()  # where the folder that we are in is gone, that is said, and not that the file is
    return YamlSource.open(
        path,
        file=str(path),
        whole=whole,
        refusal=JobError,
        kind=kind,
        if_table=f"Name {kind.replace('a ', 'the ', 1)}; the table belongs into it, below `rows:`.",
        if_missing=f"Check the path of {kind.replace('a ', 'the ', 1)}.",
    ).read()


def job_below(
    top: YamlEntry,
    path: str | Path,
    *,
    also: Sequence[str] = (),
    planned: Callable[[Query], Fraction] | None = None,
    instead: str = "",
) -> Job:
    """Read a job from the top of its file; `also` are keys that others read, `instead` one in the place of releases.

    A release whose epsilon is the word `planned` has what `planned` gives for its question.
    """
    file = Path(path).absolute()
    if not top.is_mapping:
        raise top.refuse("must be a mapping", fix="Start with `policy:`, without a dash.")  # repeats nothing of it
    known = [instead if instead and key == RELEASES else key for key in (*JOB_KEYS, *also)]
    fields = top.fields(known, required=("policy", "rows", instead or RELEASES))
    folder = file.parent
    policy = policy_below(fields["policy"], Path(path).parent)
    listed = rows_below(fields["rows"], folder)
    rows = tuple(listed)
    per_person = _per_person(fields, policy)
    if "budget" not in fields and "ledger" not in fields:
        raise top.refuse("must have the key budget or the key ledger", given=sorted(fields), fix="Add `budget: 1.0`.")
    texts = {key: fields[key].text() for key in ("person", "order", "item") if key in fields}
    with top.blamed(fields):
        policy.about(per_person=per_person, **texts)
    return Job(
        name=fields["name"].text() if "name" in fields else file.stem,
        policy=policy,
        rows=rows,
        releases=() if instead else _releases(fields[RELEASES], policy, planned),
        dataset=_dataset(fields, rows),
        out=_out(fields.get("out"), file, instead or "release"),
        budget=_epsilon(fields["budget"]) if "budget" in fields else None,
        ledger=_ledger(fields["ledger"], folder) if "ledger" in fields else None,
        analyst=_ledger_name(fields["analyst"], "analyst") if "analyst" in fields else None,
        per_person=per_person,
        file=str(path),
        places={
            **{found: (entry.line, entry.text()) for found, entry in listed.items()},
            **({"out": (fields["out"].line, fields["out"].text())} if "out" in fields else {}),
            "policy": (fields["policy"].line, "" if fields["policy"].is_mapping else fields["policy"].text()),
            **{key: (fields[key].line, fields[key].text()) for key in ("person", "order", "item") if key in fields},
        },
        person=texts.get("person"),
        order=texts.get("order"),
        item=texts.get("item"),
    )


def _per_person(fields: Mapping[str, YamlEntry], policy: Policy) -> int | None:
    """Return how many rows of a person count, if the job says so; refuse what has no person to be about."""
    per_person = fields["per_person"].whole() if "per_person" in fields else None
    if per_person is not None and per_person < 1:
        raise fields["per_person"].refuse("must be at least 1", given=per_person, fix="Leave it out for 1.")
    has_person = "person" in fields or policy.person is not None
    for key in ("per_person", "order"):
        if key in fields and not has_person and (key != "per_person" or per_person != 1):
            raise fields[key].refuse("needs the key person", fix="Name the column that says whose row it is.")
    if "person" in fields and not fields["person"].text():
        raise fields["person"].refuse("must be the name of a column", given="", fix="Name it, or leave it out.")
    return per_person


def rows_below(entry: YamlEntry, folder: Path) -> dict[str, YamlEntry]:
    """Return the paths and patterns of the rows, each with the place where it was written."""
    listed = entry.one_or_more()
    if not listed:
        raise entry.refuse("must name a file", given=[], fix="For instance people.csv, or demo:adult.")
    found: dict[str, YamlEntry] = {}
    for entered in listed:
        path = _row_path(entered, folder)
        if path in found:
            raise entered.refuse(
                "must not be given twice", given=entered.text(), fix="Everybody in it would count twice."
            )
        found[path] = entered
    return found


def _row_path(entry: YamlEntry, folder: Path) -> str:
    written = entry.text()
    if not written or "\0" in written:
        raise entry.refuse("must name a file", given=written, fix="For instance people.csv, or demo:adult.")
    if written.startswith(DEMO):
        return _path_of_bundled(entry, written.removeprefix(DEMO))
    path = entry.path_in(folder)
    if glob.has_magic(written) and not Path(written).is_absolute() and not path.exists():
        # the folder's own name is no pattern, even if it looks like one
        return str(Path(glob.escape(str(folder))) / written)
    return str(path)


def _path_of_bundled(entry: YamlEntry, name: str) -> str:
    data = resources.files("tacit") / "data"
    known = sorted(Path(one.name).stem for one in data.iterdir() if one.name.endswith(".parquet"))
    if name not in known:
        fix = nearest(name, known) if known else "Name a file instead."
        raise entry.refuse("must be data that come with Tacit", given=f"{DEMO}{name}", fix=fix)
    return str(data / f"{name}.parquet")


def _dataset(fields: dict[str, YamlEntry], rows: tuple[str, ...]) -> str:
    if "dataset" in fields:
        return _ledger_name(fields["dataset"], "dataset")
    stem = Path(rows[0]).stem
    # the name decides whose budget is charged, so it is never made up from a pattern or from one file of several
    if len(rows) > 1 or glob.has_magic(stem):
        raise fields["rows"].refuse(
            "has several files, so the data set needs a name", given=fields["rows"].plain(), fix="Add `dataset: ..`."
        )
    with fields["rows"].blamed():
        return checked_name(stem, key="dataset", file="")


def _ledger_name(entry: YamlEntry, key: str) -> str:
    with entry.blamed():
        return checked_name(entry.text(), key=key, file="")


def _ledger(entry: YamlEntry, folder: Path) -> str:
    written = entry.text()
    return written if "://" in written else str(entry.path_in(folder))


def _out(entry: YamlEntry | None, file: Path, what: str) -> Path:
    if entry is None:
        return file.with_name(f"{file.stem}-{what}")
    written = entry.text()
    out = file.parent / written
    if not out.name or "\0" in written or out.name == "..":
        raise entry.refuse("must name a folder", given=written, fix="For instance results.")
    return entry.path_in(file.parent)


def _epsilon(entry: YamlEntry) -> Fraction:
    with entry.blamed():
        return as_epsilon(entry.amount())


def _epsilon_of(fields: Mapping[str, YamlEntry], query: Query, planned: Callable[[Query], Fraction]) -> Fraction:
    entry = fields["epsilon"]
    if entry.is_list or entry.is_mapping or entry.node.value != PLANNED:
        return _epsilon(entry)
    with entry.blamed(_below_keyword(fields["query"])):
        return planned(query)


def _below_keyword(entry: YamlEntry) -> Mapping[str, YamlEntry]:
    """Return what stands below the one word that a question begins with, by key."""
    below = list(entry.mapping().values()) if entry.is_mapping else []
    return below[0].mapping() if len(below) == 1 and below[0].is_mapping else {}


def _releases(entry: YamlEntry, policy: Policy, planned: Callable[[Query], Fraction] | None) -> tuple[JobRelease, ...]:
    if entry.is_empty or (entry.is_list and not entry.listed()):
        raise entry.refuse("must list a release", given=entry.plain(), fix="Add one below, with a dash.")
    found: list[JobRelease] = []
    taken: dict[str, int] = {}
    for one in entry.listed():
        fields = one.fields(_RELEASE_KEYS, required=("name", "query", "epsilon"))
        name = _release_name(fields["name"])
        # also names that differ by case alone: many file systems do not tell them apart
        if name.casefold() in taken:
            raise fields["name"].refuse(
                "must be the name of one release only",
                given=name,
                fix=f"Rename it; the first is in line {taken[name.casefold()]}.",
            )
        taken[name.casefold()] = fields["name"].line
        query = _query(fields["query"], policy)
        release = JobRelease(
            name=name,
            query=query,
            epsilon=_epsilon(fields["epsilon"]) if planned is None else _epsilon_of(fields, query, planned),
            consistent=fields["consistent"].yes_or_no() if "consistent" in fields else False,
            nonnegative=fields["nonnegative"].yes_or_no() if "nonnegative" in fields else False,
        )
        found.append(release)
    return tuple(found)


def _release_name(entry: YamlEntry) -> str:
    # a name like 2024 is a number to YAML, but it can only mean one thing here
    written = str(entry.whole()) if entry.node.tag.endswith(":int") else entry.text()
    name = unicodedata.normalize("NFC", written)
    if not _SAFE_NAME.fullmatch(name) or name.endswith(" "):
        raise entry.refuse(
            "must start with a letter or digit and have only letters, digits, spaces, - and _",
            given=written,
            fix="It becomes the name of files; rename it.",
        )
    if len(name.encode()) > _LONGEST_NAME or name.casefold() in _DEVICES:
        raise entry.refuse("must be usable as the name of a file", given=written, fix="Choose another name.")
    return name


def _query(entry: YamlEntry, policy: Policy) -> Query:
    document = _question(entry, policy.domain)
    blamed, places = entry, {"query": entry}
    if entry.is_mapping and len(document) == 1:
        (keyword, blamed), *_ = entry.mapping().items()
        places |= {keyword: blamed, **(blamed.mapping() if blamed.is_mapping else {})}
    with blamed.blamed(places):
        try:
            return resolve(from_document(document), policy.domain)
        except (TypeError, ValueError):
            pass
        # raised outside the handler; such a query has a list where a text must be, or the other way round
        raise blamed.refuse(
            "must be a query", given=entry.plain(), fix="For instance {histogram: [age]} or {count: 'age < 30'}."
        )


def _question(entry: YamlEntry, domain: Domain) -> Any:
    """Return a question as it was written: decimals as texts, values as their attribute reads them.

    What stands below a word that no question has is not looked at: that word is what is refused.
    """
    if not entry.is_mapping:
        return _plain(entry)
    found: dict[str, Any] = {}
    for keyword, below in entry.mapping().items():
        keys = keys_of(keyword)
        if not keys or not below.is_mapping:
            found[keyword] = _plain(below) if keys else below.plain()
            continue
        fields = below.mapping()
        about = fields.get("attribute", fields.get("attributes"))
        name = about.plain() if about is not None else None
        found[keyword] = {
            key: _below_key(value, keys[key].holds, name, domain) if key in keys else value.plain()
            for key, value in fields.items()
        }
    return found


def _below_key(entry: YamlEntry, holds: str, name: Any, domain: Domain) -> Any:
    """Return what stands below a key of a question; `name` is the attribute that it is about, or a list of them."""
    if holds == "decimals":
        return _decimals(entry)
    if holds == "ends" and entry.is_list:
        names = name if isinstance(name, list) else [name]
        if not names or not all(isinstance(one, str) and one in domain for one in names):
            return entry.plain()  # the name is what will be refused
        if domain[names[0]].measured == "places":
            return _plain(entry)  # rows and columns
        return [
            # two ends for each attribute, one after the other
            [domain[names[min(at // 2, len(names) - 1)]].read_value(end) for at, end in enumerate(ends.listed())]
            if ends.is_list
            else ends.plain()
            for ends in entry.listed()
        ]
    if holds == "item" and entry.is_list and len(entry.listed()) == 2:
        first, second = entry.listed()
        about = first.text()
        if about not in domain:
            return entry.plain()
        return [about, second.value() if domain[about].is_set else domain[about].read_value(second)]
    return _plain(entry)


def _decimals(entry: YamlEntry) -> Any:
    if entry.is_list:
        return [_decimals(one) for one in entry.listed()]
    is_number = entry.node.tag.endswith((":float", ":int"))
    return str(entry.node.value).replace("_", "") if is_number else _plain(entry)


def _plain(entry: YamlEntry) -> Any:
    """Return a value as it was written, refusing what YAML would silently change."""
    if entry.is_mapping:
        return {name: _plain(value) for name, value in entry.mapping().items()}
    if entry.is_list:
        return [_plain(value) for value in entry.listed()]
    return None if entry.is_empty else entry.value()


# ---- the JSON schema ------------------------------------------------------------------------------------------------


def job_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of job files, for editors that complete and check while typing.

    A schema cannot know the policy's attributes, so the reader refuses more.
    """
    policy = policy_schema()
    shared = policy.pop("$defs", {})
    policy.pop("$schema", None)
    text = {"type": "string", "minLength": 1}
    release = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "query", "epsilon"],
        "properties": {
            "name": {
                "type": ["string", "integer"],
                "pattern": r"^[^\W_][\w \-]*$",
                "description": "The name of the release and of its files.",
            },
            "query": {"$ref": "#/$defs/query"},
            "epsilon": {**EPSILON_SCHEMA, "description": "What the release costs."},
            "consistent": {"type": "boolean", "description": "Let marginals agree and cumulative counts never fall."},
            "nonnegative": {"type": "boolean", "description": "Let no count be below zero."},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tacit job",
        "description": "Which releases to make of which rows under which policy.",
        "type": "object",
        "additionalProperties": False,
        "required": ["policy", "rows", "releases"],
        "anyOf": [{"required": ["budget"]}, {"required": ["ledger"]}],
        "properties": {
            "name": {**text, "description": "What the report calls the job."},
            "policy": {
                "anyOf": [text, {"$ref": "#/$defs/policy"}],
                "description": "A policy file, relative to the job file, or the policy itself.",
            },
            "rows": {
                "anyOf": [text, {"type": "array", "minItems": 1, "items": text}],
                "description": "Files or patterns, relative to the job file, or demo:adult.",
            },
            "person": {**text, "description": "The column that says whose row it is; if left out, as the policy says."},
            "per_person": {"type": "integer", "minimum": 1, "description": "How many rows of one person count."},
            "order": {**text, "description": "The column that says which rows of a person come first."},
            "item": {**text, "description": "The column that holds the items of a set."},
            "dataset": {**text, "description": "The name in the ledger; the name of the rows' file by default."},
            "analyst": {**text, "description": "Who asks."},
            "budget": {**EPSILON_SCHEMA, "description": "What may be spent in all."},
            "ledger": {**text, "description": "A file, relative to the job file, or a database URL."},
            "out": {**text, "description": "The folder for the results, relative to the job file."},
            "releases": {"type": "array", "minItems": 1, "items": release},
        },
        "$defs": {**shared, "policy": policy, "query": query_schema()},
    }
