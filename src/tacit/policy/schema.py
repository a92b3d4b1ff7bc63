"""The JSON schema of policy files, for editors and other tools."""

from __future__ import annotations

from typing import Any, Final

from tacit.policy.attributes import KINDS
from tacit.policy.attributes.keys import POSITIVE, VALUE, mapping, two
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
        **mapping(
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
                    **POSITIVE,
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
            "attribute": {
                "anyOf": [schema for kind in KINDS.values() for schema in kind.schemas()],
                "description": "The values of one column.",
            },
            "family": {"anyOf": _family_schemas(), "description": "A family of secrets."},
            "fact": {
                "anyOf": [
                    {"const": "size", "description": "How many people there are."},
                    mapping(
                        {"size": {"type": "integer", "minimum": 0}}, ["size"], "How many there are, and the number."
                    ),
                    mapping({"marginal": _NAMES}, ["marginal"], "The whole histogram of some attributes."),
                    mapping({"count": _PREDICATE}, ["count"], "How many people a predicate picks."),
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
_DISTANCE: Final = {
    "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^\+?[0-9]+([./][0-9]+)?"}],
    "description": "The largest distance that is protected: 5, 2.5 or 5/2.",
}


def _family_schemas() -> list[dict[str, Any]]:
    metric = {"enum": list(METRICS), "default": "l1", "description": "How several differences add up."}
    positive = {"type": "number", "exclusiveMinimum": 0}
    width = {"anyOf": [positive, {"type": "array", "items": positive, "minItems": 1, "maxItems": 2}]}
    value = {"type": ["string", "number", "boolean"]}
    part = {"anyOf": [value, {"type": "array", "items": VALUE}]}
    side = {"anyOf": [{"type": "object", "additionalProperties": part}, {"type": "array", "items": part}, value]}
    block = {"anyOf": [{"type": "array", "items": part}, {"type": "string", "pattern": r"^\s*-?[0-9][^\s]*\s*\.\."}]}
    blocks = {"type": "array", "minItems": 1, "items": block, "description": "Lists of values, or ranges like 0..17."}
    return [
        {"const": "everything", "description": "Every value looks like every other: differential privacy."},
        mapping({"everything": {"type": "null"}}, ["everything"], "Every value looks like every other."),
        mapping({"attributes": _NAMES}, ["attributes"], "Each of these attributes, one at a time."),
        mapping(
            {"partition": mapping({"attribute": {"type": "string"}, "width": width}, ["attribute", "width"])},
            ["partition"],
            "The value within its block of a width; which block it is stays public.",
        ),
        mapping(
            {"partition": mapping({"attribute": {"type": "string"}, "blocks": blocks}, ["attribute", "blocks"])},
            ["partition"],
            "The value within its listed block; which block it is stays public.",
        ),
        mapping(
            {"within": mapping({"theta": _DISTANCE, "attributes": _NAMES, "metric": metric}, ["theta", "attributes"])},
            ["within"],
            "Values up to a distance; the rough value stays public.",
        ),
        mapping(
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
        mapping(
            {"pairs": {"type": "array", "minItems": 1, "items": two(side)}},
            ["pairs"],
            "Listed pairs [hidden, cover]: the first looks like the second.",
        ),
        mapping(
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
        mapping({"records": _PREDICATE}, ["records"], "Everything about the people that a predicate calls sensitive."),
    ]
