"""Files that ask for a published table: a job with the key `table` in the place of `releases`.

Guarantee   The whole file is read and the table planned before anything is charged; nothing is opened but the file and
            its policy.
Assumes     The file is trusted as much as the command that runs it: it names files to read and a folder to write.
Why         Rows, people, data sets, ledgers and folders are read as jobs read them (`jobs/job_file.py`), so that one
            file means the same in both.
Checked by  tests/cli/test_tables.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tacit.errors import nearest
from tacit.jobs.job_file import RELEASES, Job, job_below, open_job, schema_of_jobs
from tacit.jobs.variables import NONE_SET, Variables
from tacit.policy.domain import Domain
from tacit.policy.keys import BOOLEAN, TEXT, Key, Keys, Schema, together
from tacit.policy.policy import Policy
from tacit.policy.yaml_entries import YamlEntry
from tacit.publish.groups import check_listable
from tacit.publish.make_tables import METHODS, chosen_channel, private_choice, uniform_choice
from tacit.publish.methods.criterion import CRITERIA, TAILS
from tacit.publish.paid_tables import TablePlan, columns_for, plan_table
from tacit.publish.table import AGAIN

_NAMES: Final[Schema] = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
_CHANCE: Final[Schema] = {"type": ["number", "string"]}


def _texts(entry: YamlEntry) -> list[str]:
    return [one.text() for one in entry.one_or_more()]


_ONE_OF_THREE: Final = "one of retention, epsilon and rho says how often values are kept"
_PLAIN: Final = "plain perturbation; lam and delta stand together"
TABLE_KEYS: Final = Keys(
    Key("public", _NAMES, "The columns that are published as they are.", read=_texts, required=True),
    Key(
        "sensitive",
        _NAMES,
        "The column that is hidden; of several, each is, and their combinations.",
        read=_texts,
        required=True,
    ),
    Key(
        "retention",
        _CHANCE,
        "How likely a record keeps its value.",
        _ONE_OF_THREE,
        read=YamlEntry.amount,
        to=("promise",),
    ),
    Key("epsilon", _CHANCE, "What one record may lose at most.", _ONE_OF_THREE, read=YamlEntry.amount, to=("promise",)),
    Key(
        "rho",
        {"type": "array", "items": _CHANCE, "minItems": 2, "maxItems": 2},
        "What was less likely than the first stays less likely than the second.",
        _ONE_OF_THREE,
        read=lambda entry: [one.amount() for one in entry.listed()],
        to=("promise",),
    ),
    Key(
        "lam",
        _CHANCE,
        "Which error of a frequency, relative to it, is large enough.",
        _PLAIN,
        read=YamlEntry.amount,
        to=("groups",),
    ),
    Key("delta", _CHANCE, "How likely such an error must be.", _PLAIN, read=YamlEntry.amount, to=("groups",)),
    Key(
        "largest_frequency",
        _CHANCE,
        "A public bound on the frequency of any value of a sensitive column.",
        "1",
        read=YamlEntry.amount,
        to=("groups",),
    ),
    Key(
        "criterion",
        {"enum": list(CRITERIA)},
        "How the promise about groups is decided.",
        "`exact`",
        read=YamlEntry.text,
        to=("groups",),
    ),
    Key(
        "tails",
        {"enum": list(TAILS)},
        "Whether too low and too high an estimate are each that likely, or together.",
        "`together`",
        read=YamlEntry.text,
        to=("groups",),
    ),
    Key("method", {"enum": list(METHODS)}, "How the table is made.", "`best`", read=YamlEntry.text, to=("groups",)),
    Key(
        AGAIN,
        BOOLEAN,
        "Whether to publish it although another table about these columns promises a criterion.",
        "false",
        to=("choice",),
    ),
    Key(
        "groups",
        {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"anyOf": [TEXT, {"type": ["integer", "boolean"]}]},
            },
        },
        "What values of public columns become, or ranges of them such as 0..17.",
        "values stay as they are",
        read=together,
    ),
)
_PROMISES: Final = tuple(key.name for key in TABLE_KEYS if "promise" in key.to)
_ABOUT_GROUPS: Final = tuple(key.name for key in TABLE_KEYS if "groups" in key.to)
_BOTH: Final = ("lam", "delta")
_BESIDE_BOTH: Final = tuple(name for name in _ABOUT_GROUPS if name not in _BOTH)
_TABLE: Final = Key(
    "table",
    {
        **TABLE_KEYS.schema(),
        "dependentRequired": {"lam": ["delta"], "delta": ["lam"], **{key: list(_BOTH) for key in _BESIDE_BOTH}},
        "oneOf": [{"required": [name]} for name in _PROMISES],
    },
    "The table.",
    read=together,
    required=True,
)


@dataclass(frozen=True)
class TableJob:
    """What a file says: a job without releases, and the table that it asks for."""

    job: Job
    plan: TablePlan


def read_table_job(path: str | Path, variables: Variables = NONE_SET) -> TableJob:
    """Read a file that asks for a table, or refuse it with the line that is wrong."""
    top = open_job(path, variables=variables)
    job = job_below(top, path, instead=_TABLE)
    plan = _planned(top.mapping()[_TABLE.name], job.about())
    return TableJob(replace(job, beside=plan.epsilon), plan)


def _planned(entry: YamlEntry, policy: Policy) -> TablePlan:
    fields = TABLE_KEYS.entries(entry)
    _check_fit_together(entry, fields)
    values = TABLE_KEYS.read(fields)
    promise = dict.fromkeys(_PROMISES) | TABLE_KEYS.handed_to("promise", values)
    groups = _groups(fields["groups"], policy.domain, values["public"]) if "groups" in fields else None
    with entry.blamed(fields):
        columns = columns_for(policy, values["public"], values["sensitive"], None)
        choice = (
            private_choice(chosen_channel(columns, **promise), **TABLE_KEYS.handed_to("groups", values))
            if "lam" in values
            else uniform_choice(columns, **promise)
        )
        return plan_table(policy, columns, replace(choice, **TABLE_KEYS.handed_to("choice", values)), groups)


def _check_fit_together(entry: YamlEntry, fields: Mapping[str, YamlEntry]) -> None:
    """Refuse keys that need others, or that say the same as others."""
    if ("lam" in fields) != ("delta" in fields):
        fix = "Leave both out for perturbation."
        raise entry.refuse("must have lam and delta together", given=sorted(fields), fix=fix)
    if "lam" not in fields and any(key in fields for key in _BESIDE_BOTH):
        raise entry.refuse("needs lam and delta", given=sorted(fields), fix="Add `lam: 0.3` and `delta: 0.3`.")
    promised = [key for key in _PROMISES if key in fields]
    if len(promised) != 1:
        rule, fix = f"must have one of {', '.join(_PROMISES)}", "For instance `retention: 0.5`."
        raise entry.refuse(rule, given=promised or sorted(fields), fix=fix)


def _groups(entry: YamlEntry, domain: Domain, public: Sequence[str]) -> dict[str, dict[Any, str]]:
    """Return what values of public columns become; keys are values as the column has them, or ranges such as 0..17."""
    maps: dict[str, dict[Any, str]] = {}
    for name, listed in entry.mapping().items():
        if name not in public or name not in domain:
            raise listed.refuse("must be about public columns", given=name, fix=nearest(name, list(public)))
        with listed.blamed():  # before a range is written out
            check_listable(name, domain[name])
        maps[name] = {}
        for key, becomes in listed.pairs():
            with key.blamed():
                values = domain[name].read_values(key)
            twice = [value for value in values if value in maps[name]]
            if twice:
                fix = "Leave it out of one of the two."
                raise key.refuse("must not say twice what a value becomes", given=twice[0], fix=fix)
            maps[name] |= dict.fromkeys(values, str(becomes.value()))
    return maps


def table_schema() -> Schema:
    """Return the JSON schema (draft 2020-12) of files that ask for a table: that of jobs, with `table` for releases."""
    description = "Which table to publish of which rows under which policy."
    keys = Keys(*(_TABLE if key.name == RELEASES else key for key in Keys.of(Job)))
    return schema_of_jobs("Tacit table", description, keys, {})
