"""Job files: which releases to make of which rows under which policy, in one YAML file that can be reviewed.

Guarantee   The whole file is read and every query checked against the policy's domain before anything else happens.
            Nothing is opened but the job file and its policy.
Assumes     The job file is trusted as much as the command that runs it: it names files to read and a folder to write.
Why         What a job says is what somebody reviewed: a key that is misspelled or left out is refused, never guessed.
Checked by  tests/unit/jobs/test_job.py, tests/fuzz/test_fuzz.py.
"""

from __future__ import annotations

import glob
import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final

from tacit.amounts import AMOUNT, EPSILON_SCHEMA, as_epsilon
from tacit.errors import Exit, JobError, nearest, printable
from tacit.jobs.variables import NONE_SET, Variables, replace_variables
from tacit.ledger.applications import Applications
from tacit.ledger.input import canonical_json, checked_name
from tacit.plan.question import Query
from tacit.plan.questions.written import query_schema, read_query
from tacit.policy.keys import BOOLEAN, POSITIVE, TEXT, TEXTS, Key, Keys, Schema, together
from tacit.policy.policy import Policy
from tacit.policy.policy_file import ITEM, ORDER, PER_PERSON, PERSON, POLICY, schema_with_policy
from tacit.policy.yaml_entries import YamlEntry, YamlSource
from tacit.rows.files.written import DECIMAL, ENCODING, FORMAT, UTF_8, Written

DEMO: Final = "demo:"
PLANNED: Final = "planned"
RELEASES: Final = "releases"

# a release's name becomes the name of files: no separators, no dots, nothing that hides or climbs
_SAFE_NAME: Final = re.compile(r"[^\W_][\w \-]*")
_WHOSE: Final = ("person", "per_person", "order", "item")
_LONGEST_NAME: Final = 100  # bytes; file systems stop at 255, and ".certificate.json" comes after it
_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))]
)


# ---- readers of single keys -----------------------------------------------------------------------------------------


def _checked(entry: YamlEntry) -> str:
    with entry.blamed():
        return checked_name(entry.text(), key=entry.path, file="")


def _ledger(entry: YamlEntry) -> str:
    written = entry.text()
    return written if "://" in written else str(entry.file_path().absolute())


def _out(entry: YamlEntry) -> Path:
    written = entry.text()
    out = entry.source.folder.absolute() / written
    if not out.name or "\0" in written or out.name == "..":
        raise entry.refuse("must name a folder", given=written, fix="For instance results.")
    return entry.file_path().absolute()


def _epsilon(entry: YamlEntry) -> Fraction:
    with entry.blamed():
        return as_epsilon(entry.amount())


def _release_name(entry: YamlEntry) -> str:
    # a name like 2024 is a number to YAML, but it can only mean one thing here
    written = str(entry.whole()) if entry.node.tag.endswith(":int") else entry.text()
    name = unicodedata.normalize("NFC", written)
    if not _SAFE_NAME.fullmatch(name) or name.endswith(" "):
        rule = "must start with a letter or digit and have only letters, digits, spaces, - and _"
        raise entry.refuse(rule, given=written, fix="It becomes the name of files; rename it.")
    if len(name.encode()) > _LONGEST_NAME or name.casefold() in _DEVICES:
        raise entry.refuse("must be usable as the name of a file", given=written, fix="Choose another name.")
    return name


# ---- jobs and their keys --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class JobRelease:
    """One release of a job: a checked question, its cost, and how the answers are made to fit."""

    name: Annotated[
        str,
        Key(
            "name",
            {"type": ["string", "integer"], "pattern": r"^[^\W_][\w \-]*$"},
            "The name of the release and of its files.",
            read=_release_name,
            required=True,
        ),
    ]
    query: Annotated[Query, Key("query", {"$ref": "#/$defs/query"}, "One question.", read=together, required=True)]
    epsilon: Annotated[
        Fraction, Key("epsilon", EPSILON_SCHEMA, "What the release costs.", "what the next keys say", read=together)
    ]
    error: Annotated[
        str | None,
        Key(
            "error",
            AMOUNT,
            "How large the expected error may be (root mean square): the smallest epsilon is found.",
            read=YamlEntry.amount,
        ),
    ] = None
    within: Annotated[
        str | None,
        Key(
            "within",
            AMOUNT,
            "How far each answer may be off, with the probability `level`; as `error`.",
            read=YamlEntry.amount,
        ),
    ] = None
    level: Annotated[
        str | None, Key("level", AMOUNT, "The probability of `within`.", "0.95", read=YamlEntry.amount)
    ] = None
    weight: Annotated[
        str | None,
        Key(
            "weight",
            AMOUNT,
            "The share of what releases with an epsilon or an error leave of the budget.",
            "1, if none of the keys above is given",
            read=YamlEntry.amount,
        ),
    ] = None
    consistent: Annotated[
        bool, Key("consistent", BOOLEAN, "Let marginals agree and cumulative counts never fall.", "no")
    ] = False
    nonnegative: Annotated[bool, Key("nonnegative", BOOLEAN, "Let no count be below zero.", "no")] = False
    application: Annotated[
        str | None, Key("application", TEXT, "Who asks, where the policy declares who may.", "as true records say")
    ] = None


def schema_of_release(keys: Keys) -> Schema:
    """Return the JSON schema of a release: at most one key says what it costs."""
    pairs = combinations(("epsilon", "error", "within", "weight"), 2)
    never = {"not": {"anyOf": [{"required": list(pair)} for pair in pairs]}}
    return {**keys.schema(), **never, "dependentRequired": {"level": ["within"]}}


NAME: Final = Key("name", TEXT, "What the report calls the job.", "the name of the file")
DATASET: Final = Key(
    "dataset", TEXT, "The name in the ledger, in one spelling.", "the name of the one file", read=_checked
)
ANALYST: Final = Key("analyst", TEXT, "Who asks.", "nobody in particular", read=_checked)
LEDGER: Final = Key(
    "ledger",
    TEXT,
    "Where what was spent is kept: a file, relative to this file, or a database URL.",
    "the budget is for this run only",
    read=_ledger,
)
_AS_IN_THE_POLICY: Final = "as the policy says"
_OTHER_WORDS: Final = {  # that people try, and what they mean
    **dict.fromkeys(("data", "file", "files", "input", "source", "table", "csv"), "rows"),
    **dict.fromkeys(("query", "queries", "question", "questions", "release"), RELEASES),
    "epsilon": "budget",
    "output": "out",
}
_NOT_ASKED: Final = ("policy", "budget", "ledger", "analyst", "out")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a job file says, with all paths spelled out. `ledger` is a path or a URL, `file` the job file itself.

    `person`, `per_person`, `order` and `item` are None where the job leaves them out: then the policy's hold. `places`
    has the line of a key, or of one path of the rows, and what was written there.
    """

    name: Annotated[str, NAME]
    policy: Annotated[Policy, POLICY]
    rows: Annotated[
        tuple[str, ...],
        Key(
            "rows",
            TEXTS,
            "CSV or parquet files, relative to this file, patterns, a list of these, or demo:adult.",
            read=together,
            required=True,
        ),
    ]
    decimal: Annotated[str, DECIMAL] = "."
    format: Annotated[str, FORMAT] = ""
    encoding: Annotated[str, ENCODING] = UTF_8
    person: Annotated[str | None, replace(PERSON, left_out=_AS_IN_THE_POLICY)] = None
    per_person: Annotated[int | None, replace(PER_PERSON, schema=POSITIVE, left_out=_AS_IN_THE_POLICY)] = None
    order: Annotated[str | None, replace(ORDER, left_out=_AS_IN_THE_POLICY)] = None
    item: Annotated[str | None, replace(ITEM, left_out=_AS_IN_THE_POLICY)] = None
    dataset: Annotated[str, DATASET]
    analyst: Annotated[str | None, ANALYST] = None
    budget: Annotated[
        Fraction | None,
        Key(
            "budget",
            EPSILON_SCHEMA,
            "What may be spent in all: a number or a fraction.",
            "what the ledger grants; one of the two must be given",
            read=_epsilon,
        ),
    ] = None
    ledger: Annotated[str | None, LEDGER] = field(default=None, repr=False)  # a URL may hold a password
    out: Annotated[
        Path,
        Key(
            "out",
            TEXT,
            "The folder for the results, relative to this file; must not exist.",
            "the name of the job file, with `-release`",
            read=_out,
        ),
    ]
    xlsx: Annotated[bool, Key("xlsx", BOOLEAN, "Write all results as one workbook too, `results.xlsx`.", "no")] = False
    releases: Annotated[
        tuple[JobRelease, ...],
        Key(
            RELEASES,
            {"type": "array", "minItems": 1, "items": schema_of_release(Keys.of(JobRelease))},
            "A list of releases.",
            read=together,
            required=True,
        ),
    ]
    file: str = ""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    leakage: Applications | None = None
    beside: Fraction = Fraction(0)  # what else the file asks for costs: a table
    places: Mapping[str, tuple[int, str]] = field(default_factory=dict, repr=False, compare=False)
    said: str = field(default="", repr=False, compare=False)  # the file without its policy, who pays, and `out`

    @property
    def cost(self) -> Fraction:
        """What all that is asked for costs together."""
        return sum((release.epsilon for release in self.releases), self.beside)

    @property
    def label(self) -> str:
        """What a ledger calls the job: its file, and what variables stand for, as in `visits.yaml NIGHT=2026-11-03`."""
        said = (f"{name}={value}" for name, value in self.variables.items())
        return printable(" ".join([Path(self.file).name or self.name, *said]))

    @property
    def source(self) -> Written:
        """The rows, with how they are written."""
        return Written(list(self.rows), self.decimal, self.format, self.encoding)

    def about(self) -> Policy:
        """Return the policy about the people whom the job names, or else about those whom the policy names."""
        return self._about

    @cached_property
    def _about(self) -> Policy:
        return self.policy.about(self.person, self.per_person, self.order, self.item)

    @property
    def asked(self) -> str:
        """A digest of what is asked for, of which rows and under which policy; nothing if no file asked for it."""
        text = f"{self.about().fingerprint} {self.said}"
        return hashlib.sha256(text.encode()).hexdigest() if self.said else ""

    def refuse(
        self, key: str, rule: str, *, given: str, fix: str, place: str = "", exit_code: Exit | None = None
    ) -> JobError:
        """Return the refusal of what stands below a key, with the line where it was written."""
        line, written = self.places.get(place or key, (None, given))
        return JobError(rule, key=key, given=written, file=self.file, line=line, fix=fix, exit_code=exit_code)


# ---- reading --------------------------------------------------------------------------------------------------------


def read_job(path: str | Path, variables: Variables = NONE_SET) -> Job:
    """Read a job file; every refusal names the file, the line, the key, the rule, the value given and the fix."""
    return job_below(open_job(path, variables=variables), path)


def read_job_or_case(path: str | Path, variables: Variables = NONE_SET) -> Job:
    """Read what `tacit run` and `tacit plan` are given: a job, or the job of a case with its limits."""
    top = open_job(path, variables=variables)
    if "dependence" not in top.mapping():  # a case has a dependence
        return job_below(top, path)
    # here, not above: that module is built on this one
    from tacit.jobs.case_file import job_of_case

    return job_of_case(top, path)


def open_job(
    path: str | Path,
    whole: str = "the job",
    kind: str = "job file",
    if_table: str = "",
    variables: Variables = NONE_SET,
) -> YamlEntry:
    """Return the top of a job file, or of another file with a policy; its variables are replaced."""
    Path(path).absolute()  # refuses a working folder that no longer exists, before the file is looked for
    top = YamlSource.open(
        path,
        file=str(path),
        whole=whole,
        refusal=JobError,
        kind=f"a {kind}",
        if_table=if_table or f"Name the {kind}; the table belongs into it, below `rows:`.",
        if_missing=f"Check the path of the {kind}.",
    ).read()
    if not top.is_mapping:
        raise top.refuse("must be a mapping", fix="Start with `policy:`, without a dash.")  # repeats nothing of it
    return replace(top, source=replace(top.source, variables=replace_variables(top, variables)))


def job_below(
    top: YamlEntry,
    path: str | Path,
    *,
    also: Sequence[Key] = (),
    planned: Callable[[Query], Fraction] | None = None,
    instead: Key | None = None,
) -> Job:
    """Read a job from the top of its file; `also` are keys that others read, `instead` one in the place of releases.

    A release whose epsilon is the word `planned` has what `planned` gives for its question.
    """
    file = Path(path).absolute()
    keys = Keys(*(instead if instead and key.name == RELEASES else key for key in Keys.of(Job)), *also)
    for name, entry in top.mapping().items():
        if name in _OTHER_WORDS and name not in [key.name for key in keys]:
            raise entry.refuse("is not a key that may stand here", fix=f"Say `{_OTHER_WORDS[name]}`.")
    fields = keys.entries(top)
    values = Keys.of(Job).read(fields)
    rows = rows_below(fields["rows"])
    if "budget" not in values and "ledger" not in values:
        raise top.refuse("must have the key budget or the key ledger", given=sorted(fields), fix="Add `budget: 1.0`.")
    _check_person(top, fields, values)
    defaults = {
        "name": file.stem,
        "dataset": values["dataset"] if "dataset" in values else _dataset(fields["rows"], list(rows)),
        "out": file.with_name(f"{file.stem}-{instead.name if instead else 'release'}"),
    }
    return Job(
        **{**defaults, **values},
        rows=tuple(rows),
        releases=() if instead else _releases(fields[RELEASES], values, planned),
        file=str(path),
        variables=top.source.variables,
        places={found: (entry.line, _written(entry)) for found, entry in (fields | rows).items()},
        said=canonical_json({key: _said(entry.node) for key, entry in fields.items() if key not in _NOT_ASKED}),
    )


def _said(node: Any) -> Any:
    """Return what YAML reads in a node as plain data, whatever its keys are."""
    if isinstance(node.value, str):
        return node.tag, node.value
    return [[_said(part) for part in pair] if isinstance(pair, tuple) else _said(pair) for pair in node.value]


def _written(entry: YamlEntry) -> str:
    return "" if entry.is_mapping or entry.is_list else str(entry.node.value)


def _check_person(top: YamlEntry, fields: Mapping[str, YamlEntry], values: Mapping[str, Any]) -> None:
    """Refuse what the job and its policy say together about whose row it is."""
    policy = values["policy"]
    if "person" not in values and policy.person is None:
        for key in ("per_person", "order"):
            if key in values and values[key] != 1:
                raise fields[key].refuse("needs the key person", fix="Name the column that says whose row it is.")
    with top.blamed(fields):
        policy.about(**{key: values[key] for key in _WHOSE if key in values})


def rows_below(entry: YamlEntry) -> dict[str, YamlEntry]:
    """Return the paths and patterns of the rows, each with the place where it was written."""
    listed = entry.one_or_more()
    if not listed:
        raise entry.refuse("must name a file", given=[], fix="For instance people.csv, or demo:adult.")
    found: dict[str, YamlEntry] = {}
    for entered in listed:
        path = _row_path(entered)
        if path in found:
            fix = "Everybody in it would count twice."
            raise entered.refuse("must not be given twice", given=entered.text(), fix=fix)
        found[path] = entered
    return found


def _row_path(entry: YamlEntry) -> str:
    written = entry.text()
    if re.match(r"\s*(select|with|from)\s", written, re.IGNORECASE):
        fix = "Write what the query finds to a .parquet or .csv file, or open it in Python: duckdb.sql('select ..')."
        raise entry.refuse("must name files, not a query", fix=fix)
    if not written or "\0" in written:
        raise entry.refuse("must name a file", given=written, fix="For instance people.csv, or demo:adult.")
    if written.startswith(DEMO):
        return _path_of_bundled(entry, written.removeprefix(DEMO))
    path = entry.file_path().absolute()
    if glob.has_magic(written) and not Path(written).is_absolute() and not path.exists():
        # the folder's own name is no pattern, even if it looks like one
        return str(Path(glob.escape(str(entry.source.folder.absolute()))) / written)
    return str(path)


def _path_of_bundled(entry: YamlEntry, name: str) -> str:
    data = resources.files("tacit") / "data"
    known = sorted(Path(one.name).stem for one in data.iterdir() if one.name.endswith(".parquet"))
    if name not in known:
        fix = nearest(name, known) if known else "Name a file instead."
        raise entry.refuse("must be data that come with Tacit", given=f"{DEMO}{name}", fix=fix)
    return str(data / f"{name}.parquet")


def _dataset(entry: YamlEntry, rows: Sequence[str]) -> str:
    stem = Path(rows[0]).stem
    # the name decides whose budget is charged, so it is never made up from a pattern or from one file of several
    if len(rows) > 1 or glob.has_magic(stem):
        fix = "Add `dataset: ..`."
        raise entry.refuse("has several files, so the data set needs a name", given=entry.plain(), fix=fix)
    with entry.blamed():
        return checked_name(stem, key="dataset", file="")


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


def _releases(
    entry: YamlEntry, job: Mapping[str, Any], planned: Callable[[Query], Fraction] | None
) -> tuple[JobRelease, ...]:
    if entry.is_mapping:
        raise entry.refuse(
            "must be a list", fix="Begin each release with a dash: `- {name: .., query: .., epsilon: 0.1}`."
        )
    if entry.is_empty or (entry.is_list and not entry.listed()):
        raise entry.refuse("must list a release", given=entry.plain(), fix="Add one below, with a dash.")
    # here, not above: plans take longer to load than files
    from tacit.jobs.shares import epsilons_of, read_share

    found, shares = [], []
    taken: dict[str, int] = {}
    for one in entry.listed():
        fields = Keys.of(JobRelease).entries(one)
        values = Keys.of(JobRelease).read(fields)
        name = values["name"]
        # also names that differ by case alone: many file systems do not tell them apart
        if name.casefold() in taken:
            fix = f"Rename it; the first is in line {taken[name.casefold()]}."
            raise fields["name"].refuse("must be the name of one release only", given=name, fix=fix)
        taken[name.casefold()] = fields["name"].line
        query = read_query(fields["query"], job["policy"].domain)
        epsilon = None
        if "epsilon" in fields:
            epsilon = _epsilon(fields["epsilon"]) if planned is None else _epsilon_of(fields, query, planned)
        shares.append(read_share(fields, values, query, epsilon))
        found.append({**values, "query": query})
    policy = job["policy"].about(**{key: job[key] for key in _WHOSE if key in job})
    costs = epsilons_of(shares, policy, job.get("budget"))
    return tuple(JobRelease(**one, epsilon=epsilon) for one, epsilon in zip(found, costs, strict=True))


def job_schema() -> Schema:
    """Return the JSON schema (draft 2020-12) of job files, for editors that complete and check while typing.

    A schema cannot know the policy's attributes, so the reader refuses more.
    """
    description = "Which releases to make of which rows under which policy."
    return schema_of_jobs("Tacit job", description, Keys.of(Job), {"query": query_schema()})


def schema_of_jobs(title: str, description: str, keys: Keys, definitions: Schema) -> Schema:
    """Return the JSON schema of files that ask for releases, or for something else that is paid for."""
    paid = [{"required": ["budget"]}, {"required": ["ledger"]}]
    return {**schema_with_policy(title, description, keys, definitions), "anyOf": paid}
