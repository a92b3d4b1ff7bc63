"""What a case may say about its plan and its limits: each key with how it is read, its schema, and whom it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tacit.errors import nearest
from tacit.plan.leakage.budget import OBJECTIVES
from tacit.plan.leakage.measured_tables import MEASURES
from tacit.policy.files.yaml_entries import YamlEntry

_NUMBER: Final = {"type": "number", "minimum": 0}


@dataclass(frozen=True)
class CaseOption:
    """A key of a case that plans (`tc.plan.leakage_budget`), limits (`tc.Applications`) or both take as it is."""

    read: Callable[[YamlEntry], Any]
    schema: Mapping[str, Any]
    for_plan: bool = False
    for_limits: bool = False


def _one_of(*words: str) -> Callable[[YamlEntry], str]:
    def read(entry: YamlEntry) -> str:
        said = entry.text()
        if said not in words:
            raise entry.refuse(f"must be {' or '.join(words)}", given=said, fix=nearest(said, words))
        return said

    return read


def _weights(entry: YamlEntry) -> dict[str, Any]:
    return {name: one.real() for name, one in entry.mapping().items()}


OPTIONS: Final[Mapping[str, CaseOption]] = {
    "posterior": CaseOption(
        YamlEntry.real,
        {"type": "number", "minimum": 0, "maximum": 1, "description": "How sure any outcome may make."},
        for_plan=True,
        for_limits=True,
    ),
    "weights": CaseOption(
        _weights,
        {"type": "object", "additionalProperties": _NUMBER, "description": "What a release is worth."},
        for_plan=True,
    ),
    "measure": CaseOption(
        _one_of(*MEASURES),
        {"enum": list(MEASURES), "description": "Whether values count, or only what is left out."},
        for_plan=True,
        for_limits=True,
    ),
    "own": CaseOption(
        YamlEntry.yes_or_no,
        {"type": "boolean", "description": "Whether what an attribute says about itself counts."},
        for_plan=True,
        for_limits=True,
    ),
    "cap": CaseOption(
        YamlEntry.real,
        {"type": "number", "exclusiveMinimum": 0, "description": "The largest epsilon."},
        for_plan=True,
    ),
    "objective": CaseOption(
        _one_of(*OBJECTIVES),
        {"enum": list(OBJECTIVES), "description": "What is made as large as possible."},
        for_plan=True,
    ),
    "drift": CaseOption(
        YamlEntry.real,
        {**_NUMBER, "description": "How far the dependence may move before the plan is made anew."},
        for_plan=True,
    ),
}


def read_options(fields: Mapping[str, YamlEntry]) -> dict[str, Any]:
    """Return what a case says of these, by key."""
    return {key: option.read(fields[key]) for key, option in OPTIONS.items() if key in fields}


def for_plan(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a plan takes."""
    return {key: value for key, value in options.items() if OPTIONS[key].for_plan}


def for_limits(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that limits take."""
    return {key: value for key, value in options.items() if OPTIONS[key].for_limits}
