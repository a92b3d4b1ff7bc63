"""What a policy file says: keys, from which reader, JSON schema and docs follow, and schemas that many share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from tacit.policy.files.yaml_entries import YamlEntry

VALUE: Final[dict[str, Any]] = {"type": ["string", "integer", "boolean"]}
WHOLE: Final[dict[str, Any]] = {"type": "integer"}
POSITIVE: Final[dict[str, Any]] = {"type": "integer", "minimum": 1}
ANY: Final[dict[str, Any]] = {"type": ["string", "number", "boolean"]}
PART: Final[dict[str, Any]] = {"anyOf": [ANY, {"type": "array", "items": VALUE}]}
NAMES: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
    ],
    "description": "Names of attributes.",
}
PREDICATE: Final[dict[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "description": "For instance: age < 18 and disease in ['flu', 'hiv'], or clicked.has(7).",
}
_CLIP: Final = "clip"


@dataclass(frozen=True)
class Key:
    """A key beside the word of a kind: how it is read, and its JSON schema. The docs name it."""

    name: str
    read: Callable[[YamlEntry], Any]
    schema: dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A row of a table in docs/files.md."""

    kind: str
    keys: str
    values: str

    def __str__(self) -> str:
        return f"| {self.kind}{' ' * bool(self.kind)}| {self.keys} | {self.values} |"


def read_keys(keys: Sequence[Key], places: dict[str, YamlEntry]) -> dict[str, Any]:
    """Read the keys that are given."""
    return {key.name: key.read(places[key.name]) for key in keys if key.name in places}


def schema_of(keys: Sequence[Key], *without: str) -> dict[str, Any]:
    """Return the JSON schemas of these keys by name."""
    return {key.name: key.schema for key in keys if key.name not in without}


def mapping(properties: dict[str, Any], required: Sequence[str], description: str = "") -> dict[str, Any]:
    """Return the JSON schema of a mapping with these keys and no others."""
    said = {"description": description} if description else {}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **said,
    }


def two(of: dict[str, Any], description: str = "") -> dict[str, Any]:
    """Return the JSON schema of a list of two."""
    said = {"description": description} if description else {}
    return {"type": "array", "items": of, "minItems": 2, "maxItems": 2, **said}


def clip_or(read: Callable[[YamlEntry], Any]) -> Callable[[YamlEntry], Any]:
    """Return a reader of the word clip or a value; a word that is nearly clip is said to be so."""

    def either(entry: YamlEntry) -> Any:
        word = entry.node.value
        if isinstance(word, str) and word != _CLIP and get_close_matches(word.lower(), [_CLIP], cutoff=0.6):
            raise entry.refuse("must be a value or clip", given=word, fix=f"Did you mean {_CLIP}?")
        return _CLIP if word == _CLIP else read(entry)

    return either


def clip_or_schema(of: dict[str, Any], description: str) -> dict[str, Any]:
    """Return the JSON schema of the word clip or a value."""
    return {"anyOf": [{"const": _CLIP}, of], "description": description}


def read_two(entry: YamlEntry) -> list[YamlEntry]:
    """Return the members of a list of two."""
    parts = entry.listed()
    if len(parts) != 2:
        raise entry.refuse("must have two parts", given=entry.plain(), fix="Write [first, second].")
    return parts
