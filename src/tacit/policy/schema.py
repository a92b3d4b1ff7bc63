"""The JSON schema of policy files, for editors and other tools."""

from __future__ import annotations

from typing import Any, Final

from tacit.policy.domain import CLIP
from tacit.policy.policy import PRESENCE
from tacit.policy.secrets import METRICS


def policy_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of policy files, for editors that complete and check while typing.

    A schema cannot know which attributes a domain has, so the reader refuses more: names and values that the domain
    does not have, predicates that cannot be read, and what YAML would silently change.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tacit policy",
        "description": "What must stay secret, about whom, and what the world already knows.",
        **_object(
            {
                "name": {"type": "string", "description": "What reports call the policy."},
                "domain": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"type": "string", "pattern": r"^[^\[\]`\r\n]+$"},
                    "additionalProperties": {"$ref": "#/$defs/attribute"},
                    "description": "The columns and the values they may have. Declared, never read off the data.",
                },
                "secrets": {
                    "anyOf": [
                        {"$ref": "#/$defs/family"},
                        {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/family"}},
                    ],
                    "description": "What a release must not give away: one family of secrets, or the union of several.",
                },
                "known": {
                    "anyOf": [
                        {"$ref": "#/$defs/fact"},
                        {"type": "array", "items": {"$ref": "#/$defs/fact"}},
                        {"type": "null"},
                    ],
                    "description": "What is public about the data set anyway. It couples people and raises the noise.",
                },
                "presence": {
                    "enum": list(PRESENCE),
                    "default": "public",
                    "description": "Whether it is secret who is in the data (and so how many there are).",
                },
                "person": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The column that says whose row it is. Left out: every row is one person.",
                },
                "per_person": {
                    **_POSITIVE,
                    "default": 1,
                    "description": "How many rows of one person count. Needs `person`.",
                },
                "order": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The column by which the first rows of a person count. Needs `person`. "
                    "Left out: what is in the rows says it.",
                },
                "item": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The column that holds the items of the set. Left out: the one called like it.",
                },
            },
            required=["domain", "secrets"],
        ),
        "if": {"properties": {"per_person": {"minimum": 2}}, "required": ["per_person"]},
        "then": {"required": ["person"]},
        "dependentRequired": {"order": ["person"]},
        "$defs": {
            "attribute": {"anyOf": _attribute_schemas(), "description": "The values of one column."},
            "family": {"anyOf": _family_schemas(), "description": "A family of secrets."},
            "fact": {
                "anyOf": [
                    {"const": "size", "description": "How many people there are."},
                    _object(
                        {"size": {"type": "integer", "minimum": 0}}, ["size"], "How many there are, and the number."
                    ),
                    _object({"marginal": _NAMES}, ["marginal"], "The whole histogram of some attributes."),
                    _object({"count": _PREDICATE}, ["count"], "How many people a predicate picks."),
                ],
                "description": "Something public about the data set.",
            },
        },
    }


_NAMES: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
    ],
    "description": "Names of attributes.",
}
_PREDICATE: Final = {
    "type": "string",
    "minLength": 1,
    "description": "For instance: age < 18 and disease in ['flu', 'hiv'], or clicked.has(7).",
}
_VALUE: Final[dict[str, Any]] = {"type": ["string", "integer", "boolean"]}
_WHOLE: Final[dict[str, Any]] = {"type": "integer"}
_POSITIVE: Final[dict[str, Any]] = {"type": "integer", "minimum": 1}
_DISTANCE: Final = {
    "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^\+?[0-9]+([./][0-9]+)?"}],
    "description": "The largest distance that is protected: 5, 2.5 or 5/2.",
}


def _object(properties: dict[str, Any], required: list[str], description: str = "") -> dict[str, Any]:
    """Return the schema of a mapping with these keys and no others."""
    said = {"description": description} if description else {}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **said}


def _two(of: dict[str, Any], description: str = "") -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"type": "array", "items": of, "minItems": 2, "maxItems": 2, **said}


def _attribute_schemas() -> list[dict[str, Any]]:
    clip_or_whole = {
        "anyOf": [{"const": CLIP}, _WHOLE],
        "description": "What unexpected values count as: clip, or a value of the range. Left out: the row is dropped.",
    }
    range_options = {"step": {**_POSITIVE, "default": 1}, "otherwise": clip_or_whole}
    ends = {"low": _WHOLE, "high": _WHOLE, **range_options}
    flag_options = {
        "otherwise": {"type": "boolean", "description": "What unexpected values count as. Left out: row dropped."}
    }
    cell = {
        "anyOf": [{"const": CLIP}, _two({"type": "integer", "minimum": 0})],
        "description": "The cell of places off the map: clip, or [row, column]. Left out: the row is dropped.",
    }
    sizes = {
        "rows": _POSITIVE,
        "columns": _POSITIVE,
        "of": _two({"type": "string"}, "The two data columns, for instance [latitude, longitude]."),
        "low": _two({"type": "number"}, "Where cell [0, 0] starts. Left out: the columns hold cell numbers."),
        "high": _two({"type": "number"}, "Where the last cell ends."),
        "otherwise": cell,
    }
    return [
        _object(
            {"integers": _two(_WHOLE, "[low, high], both included."), **range_options}, ["integers"], "Whole numbers."
        ),
        _object({"integers": _object(ends, ["low", "high"])}, ["integers"], "Whole numbers."),
        _object(ends, ["low", "high"], "Whole numbers from low to high, both included."),
        _object(
            {
                "categories": {"type": "array", "items": _VALUE, "minItems": 1, "uniqueItems": True},
                "ordered": {"type": "boolean", "default": False, "description": "Whether their order means anything."},
                "otherwise": {**_VALUE, "description": "What unexpected values count as. Left out: row dropped."},
            },
            ["categories"],
            "A value out of a list.",
        ),
        {"const": "flag", "description": "Yes or no."},
        _object({"flag": {"type": "null"}, **flag_options}, ["flag"], "Yes or no."),
        _object({"flag": _object(flag_options, [])}, ["flag"], "Yes or no."),
        _object({"grid": _object(sizes, ["rows", "columns"])}, ["grid"], "A cell of a map."),
        _object(
            {
                "grid": _object({k: v for k, v in sizes.items() if k != "otherwise"}, ["rows", "columns"]),
                "otherwise": cell,
            },
            ["grid"],
            "A cell of a map.",
        ),
        _object(
            {
                "items": {**_POSITIVE, "description": "How many items there are."},
                "first": {**_WHOLE, "default": 0, "description": "The number of the first item."},
                "at_most": {**_POSITIVE, "description": "The most items that one person may have."},
            },
            ["items"],
            "A set of numbered items.",
        ),
        _object(
            {
                "items": {
                    "type": "array",
                    "items": {"type": ["string", "integer"]},
                    "minItems": 1,
                    "uniqueItems": True,
                },
                "at_most": {**_POSITIVE, "description": "The most items that one person may have."},
            },
            ["items"],
            "A set of items with names.",
        ),
    ]


def _family_schemas() -> list[dict[str, Any]]:
    metric = {"enum": list(METRICS), "default": "l1", "description": "How several differences add up."}
    width = {"anyOf": [_POSITIVE, {"type": "array", "items": _POSITIVE, "minItems": 1, "maxItems": 2}]}
    part = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]}
    side = {"anyOf": [{"type": "object", "additionalProperties": part}, {"type": "array", "items": part}, _VALUE]}
    block = {"anyOf": [{"type": "array", "items": part}, {"type": "string", "pattern": r"^\s*-?[0-9]+\s*\.\."}]}
    blocks = {"type": "array", "minItems": 1, "items": block, "description": "Lists of values, or ranges like 0..17."}
    return [
        {"const": "everything", "description": "Every value looks like every other: differential privacy."},
        _object({"everything": {"type": "null"}}, ["everything"], "Every value looks like every other."),
        _object({"attributes": _NAMES}, ["attributes"], "Each of these attributes, one at a time."),
        _object(
            {"partition": _object({"attribute": {"type": "string"}, "width": width}, ["attribute", "width"])},
            ["partition"],
            "The value within its block of a width; which block it is stays public.",
        ),
        _object(
            {"partition": _object({"attribute": {"type": "string"}, "blocks": blocks}, ["attribute", "blocks"])},
            ["partition"],
            "The value within its listed block; which block it is stays public.",
        ),
        _object(
            {"within": _object({"theta": _DISTANCE, "attributes": _NAMES, "metric": metric}, ["theta", "attributes"])},
            ["within"],
            "Values up to a distance; the rough value stays public.",
        ),
        _object(
            {
                "within": {
                    "type": "object",
                    "properties": {"metric": metric},
                    "additionalProperties": _DISTANCE,
                    "minProperties": 1,
                    "maxProperties": 2,
                    "not": {"required": ["theta", "attributes"]},
                }
            },
            ["within"],
            "Values up to a distance, in short: {age: 5}.",
        ),
        _object(
            {"pairs": {"type": "array", "minItems": 1, "items": _two(side)}},
            ["pairs"],
            "Listed pairs [hidden, cover]: the first looks like the second.",
        ),
        _object(
            {
                "values": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {"type": "array", "minItems": 1, "items": part},
                }
            },
            ["values"],
            "Sensitive values by attribute; 1 means having an item. They look like any other value.",
        ),
        _object({"records": _PREDICATE}, ["records"], "Everything about the people that a predicate calls sensitive."),
    ]
