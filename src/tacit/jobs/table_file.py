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
from tacit.jobs.job_file import RELEASES, Job, job_below, job_schema, open_job
from tacit.policy.domain import Domain
from tacit.policy.files.yaml_entries import YamlEntry
from tacit.policy.policy import Policy
from tacit.publish.generalisation import check_listable
from tacit.publish.methods.criterion import CRITERIA
from tacit.publish.paid_tables import TablePlan, columns_for, plan_table
from tacit.publish.perturbed_table import chosen_channel, uniform_choice
from tacit.publish.private_tables import METHODS, private_choice
from tacit.publish.table import AGAIN

TABLE: Final = "table"
_PROMISES: Final = ("retention", "epsilon", "rho")  # one of them says how often values are kept
_NUMBERS: Final = ("retention", "epsilon", "lam", "delta", "largest_frequency")
_TABLE_KEYS: Final = ("public", "sensitive", *_NUMBERS, "rho", "criterion", "method", "groups", AGAIN)


@dataclass(frozen=True)
class TableJob:
    """What a file says: a job without releases, and the table that it asks for."""

    job: Job
    plan: TablePlan


def read_table_job(path: str | Path) -> TableJob:
    """Read a file that asks for a table, or refuse it with the line that is wrong."""
    top = open_job(path)
    job = job_below(top, path, instead=TABLE)
    plan = _planned(top.mapping()[TABLE], job.about())
    return TableJob(replace(job, beside=plan.epsilon), plan)


def _planned(entry: YamlEntry, policy: Policy) -> TablePlan:
    """Return the table that is asked for, or refuse with the line that is wrong."""
    fields = entry.fields(_TABLE_KEYS, required=("public", "sensitive"))
    asked = _asked(entry, fields)
    if "groups" in fields:
        asked["groups"] = _groups(fields["groups"], policy.domain, asked["public"])
    with entry.blamed(fields):
        columns = columns_for(policy, asked.pop("public"), asked.pop("sensitive"), None)
        groups = asked.pop("groups", None)
        again = asked.pop(AGAIN, False)
        promised = {key: asked.pop(key, None) for key in _PROMISES}
        choice = (
            private_choice(chosen_channel(columns, **promised), **asked)
            if "lam" in asked
            else uniform_choice(columns, **promised)
        )
        return plan_table(policy, columns, replace(choice, again=again), groups)


def _asked(entry: YamlEntry, fields: Mapping[str, YamlEntry]) -> dict[str, Any]:
    if ("lam" in fields) != ("delta" in fields):
        raise entry.refuse(
            "must have lam and delta together", given=sorted(fields), fix="Leave both out for perturbation."
        )
    private = ("criterion", "method", "largest_frequency")
    if "lam" not in fields and any(key in fields for key in private):
        raise entry.refuse("needs lam and delta", given=sorted(fields), fix="Add `lam: 0.3` and `delta: 0.3`.")
    promised = [key for key in _PROMISES if key in fields]
    if len(promised) != 1:
        rule, fix = f"must have one of {', '.join(_PROMISES)}", "For instance `retention: 0.5`."
        raise entry.refuse(rule, given=promised or sorted(fields), fix=fix)
    found: dict[str, Any] = {
        "public": [one.text() for one in fields["public"].one_or_more()],
        "sensitive": [one.text() for one in fields["sensitive"].one_or_more()],
    }
    found |= {key: fields[key].amount() for key in _NUMBERS if key in fields}
    found |= {key: fields[key].text() for key in ("criterion", "method") if key in fields}
    if AGAIN in fields:
        found[AGAIN] = fields[AGAIN].yes_or_no()
    if "rho" in fields:
        found["rho"] = [one.amount() for one in fields["rho"].listed()]
    return found


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


# ---- the JSON schema ------------------------------------------------------------------------------------------------


def table_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of files that ask for a table: that of jobs, with `table` for releases."""
    found = job_schema()
    text: dict[str, Any] = {"type": "string", "minLength": 1}
    names = {"anyOf": [text, {"type": "array", "items": text}]}
    chance = {"type": ["number", "string"]}
    found["title"], found["description"] = "Tacit table", "Which table to publish of which rows under which policy."
    found["required"] = ["policy", "rows", TABLE]
    del found["properties"][RELEASES], found["$defs"]["query"]
    found["properties"][TABLE] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["public", "sensitive"],
        "dependentRequired": {
            "lam": ["delta"],
            "delta": ["lam"],
            **{key: ["lam", "delta"] for key in ("criterion", "method", "largest_frequency")},
        },
        "oneOf": [{"required": [key]} for key in _PROMISES],
        "properties": {
            "public": {**names, "description": "The columns that are published as they are."},
            "sensitive": {
                **names,
                "description": "The column that is hidden; of several, each is, and their combinations.",
            },
            "retention": {**chance, "description": "How likely a record keeps its value."},
            "epsilon": {**chance, "description": "What one record may lose at most."},
            "rho": {
                "type": "array",
                "items": chance,
                "minItems": 2,
                "maxItems": 2,
                "description": "What was less likely than the first stays less likely than the second.",
            },
            "lam": {**chance, "description": "Which error of a frequency, relative to it, is large enough."},
            "delta": {**chance, "description": "How likely such an error must be."},
            "largest_frequency": {
                **chance,
                "description": "A public bound on the frequency of any value of a sensitive column.",
            },
            "criterion": {"enum": list(CRITERIA), "description": "How the promise about groups is decided."},
            "method": {"enum": list(METHODS), "description": "How the table is made."},
            AGAIN: {
                "type": "boolean",
                "description": "Whether to publish it although another table about these columns promises a criterion.",
            },
            "groups": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": {"anyOf": [text, {"type": ["integer", "boolean"]}]},
                },
                "description": "What values of public columns become, or ranges of them such as 0..17.",
            },
        },
    }
    return found
