"""The JSON schema of policy files, for editors and other tools."""

from __future__ import annotations

from typing import Any

from tacit.policy.attributes import KINDS
from tacit.policy.files.spec import NAMES, POSITIVE, PREDICATE, mapping
from tacit.policy.policy import PRESENCE
from tacit.policy.secrets import FAMILIES


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
                    "Left out: rows are chosen as at random, always the same ones.",
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
            "family": {
                "anyOf": [schema for family in FAMILIES.values() for schema in family.schemas()],
                "description": "A family of secrets.",
            },
            "fact": {
                "anyOf": [
                    {"const": "size", "description": "How many people there are."},
                    mapping(
                        {"size": {"type": "integer", "minimum": 0}}, ["size"], "How many there are, and the number."
                    ),
                    mapping({"marginal": NAMES}, ["marginal"], "The whole histogram of some attributes."),
                    mapping({"count": PREDICATE}, ["count"], "How many people a predicate picks."),
                ],
                "description": "Something public about the data set.",
            },
        },
    }
