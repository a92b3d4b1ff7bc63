"""Keys of files that people write. Each is declared once: its reader, its JSON schema and its row in the docs follow.

A key whose value becomes a field stands on that field: `out: Annotated[Path, Key("out", ..)]`. Keys whose values are
passed on unchanged stand in `Keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias, get_type_hints

from tacit.errors import nearest
from tacit.policy.yaml_entries import YamlEntry

Schema: TypeAlias = dict[str, Any]
TEXT: Final[Schema] = {"type": "string", "minLength": 1}
TEXTS: Final[Schema] = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
VALUE: Final[Schema] = {"type": ["string", "integer", "boolean"]}
WHOLE: Final[Schema] = {"type": "integer"}
POSITIVE: Final[Schema] = {"type": "integer", "minimum": 1}
BOOLEAN: Final[Schema] = {"type": "boolean"}
ANY: Final[Schema] = {"type": ["string", "number", "boolean"]}
PART: Final[Schema] = {"anyOf": [ANY, {"type": "array", "items": VALUE}]}
NAMES: Final[Schema] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}],
    "description": "Names of attributes.",
}
PREDICATE: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "description": "For instance: age < 18 and disease in ['flu', 'hiv'], or clicked.has(7).",
}
SCHEMA_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_CLIP: Final = "clip"
_NONE: Final[Mapping[str, Schema]] = MappingProxyType({})


_READERS: Final[Mapping[str, Callable[[YamlEntry], Any]]] = {
    "string": YamlEntry.text,
    "integer": YamlEntry.whole,
    "number": YamlEntry.real,
    "boolean": YamlEntry.yes_or_no,
}


def together(entry: YamlEntry) -> YamlEntry:
    """Mark a key that is read together with others."""
    return entry


@dataclass(frozen=True)
class Key:
    """One key: its reader, its allowed values, its meaning, and what holds if it is left out.

    `read` is left out if the schema determines it, and `together` if the key is read with others. `to` names the
    receivers of the unchanged value.
    """

    name: str
    schema: Schema
    meaning: str = ""
    left_out: str = ""
    read: Callable[..., Any] | None = None
    required: bool = False
    to: tuple[str, ...] = ()

    @property
    def reader(self) -> Callable[..., Any]:
        """The reader: its own, or the one that fits the schema."""
        if self.read is not None:
            return self.read
        return one_of(*self.schema["enum"]) if "enum" in self.schema else _READERS[self.schema["type"]]

    def property(self) -> Schema:
        """Return the JSON schema with its description."""
        left_out = f"Left out: {self.left_out}." if self.left_out and "default" not in self.schema else ""
        description = " ".join(part for part in (self.meaning, left_out) if part)
        return {**self.schema, "description": description} if description else self.schema

    def row(self) -> str:
        """Return the line of the docs table of keys."""
        left_out = "must be given" if self.required else self.left_out
        return f"| `{self.name}` | {self.meaning} | {left_out} |".replace("|  |", "| |")


class Keys(tuple[Key, ...]):
    """The keys of one mapping: from them follow its reader and its JSON schema."""

    __slots__ = ()

    def __new__(cls, *keys: Key) -> Self:
        """Make the keys of a mapping."""
        return super().__new__(cls, keys)

    @staticmethod
    @cache
    def of(kind: type) -> Keys:
        """Return the keys on the fields of a class; their readers are named functions, not lambdas."""
        hints = get_type_hints(kind, include_extras=True).values()
        return Keys(*(key for hint in hints for key in getattr(hint, "__metadata__", ()) if isinstance(key, Key)))

    @property
    def required(self) -> list[str]:
        """The names of the keys that must be given."""
        return [key.name for key in self if key.required]

    def without(self, *names: str) -> Keys:
        """Return the other keys."""
        return Keys(*(key for key in self if key.name not in names))

    def entries(self, entry: YamlEntry) -> dict[str, YamlEntry]:
        """Return the entries below the keys of a mapping; refuse unknown keys and missing required ones."""
        return entry.fields([key.name for key in self], required=self.required)

    def read(self, places: Mapping[str, YamlEntry]) -> dict[str, Any]:
        """Read the given keys, without those that are read together with others."""
        given = [key for key in self if key.name in places and key.read is not together]
        return {key.name: key.reader(places[key.name]) for key in given}

    def handed_to(self, taker: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values for one receiver."""
        return {key.name: values[key.name] for key in self if taker in key.to and key.name in values}

    def schema(self, description: str = "", *, first: Mapping[str, Schema] = _NONE) -> Schema:
        """Return the JSON schema of a mapping with exactly these keys, and the required keys `first`."""
        properties = {**first, **{key.name: key.property() for key in self}}
        return mapping(properties, [*first, *self.required], description)


@dataclass(frozen=True)
class Row:
    """A row of a table in docs/files.md, and the JSON schema of its example, if it has its own."""

    kind: str
    keys: str
    values: str
    schema: Schema | None = None

    def __str__(self) -> str:
        return f"| {self.kind}{' ' * bool(self.kind)}| {self.keys} | {self.values} |"


def mapping(properties: Schema, required: Sequence[str], description: str = "") -> Schema:
    """Return the JSON schema of a mapping with these keys and no others."""
    described = {"description": description} if description else {}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **described,
    }


def two(of: Schema, description: str = "") -> Schema:
    """Return the JSON schema of a list of two."""
    described = {"description": description} if description else {}
    return {"type": "array", "items": of, "minItems": 2, "maxItems": 2, **described}


def otherwise_key(
    schema: Schema,
    read: Callable[[YamlEntry], Any],
    meaning: str = "What unexpected values count as: clip, or a value of the range.",
) -> Key:
    """Return the key whose value is the word clip or a value; refuse a word that is nearly clip."""

    def clip_or_value(entry: YamlEntry) -> Any:
        word = entry.node.value
        if isinstance(word, str) and word != _CLIP and get_close_matches(word.lower(), [_CLIP], cutoff=0.6):
            raise entry.refuse("must be a value or clip", given=word, fix=f"Did you mean {_CLIP}?")
        return _CLIP if word == _CLIP else read(entry)

    return Key("otherwise", {"anyOf": [{"const": _CLIP}, schema]}, meaning, "the row is dropped", read=clip_or_value)


def one_of(*words: str) -> Callable[[YamlEntry], str]:
    """Return a reader of one of these words."""

    def read(entry: YamlEntry) -> str:
        word = entry.text()
        if word not in words:
            raise entry.refuse(f"must be {' or '.join(words)}", given=word, fix=nearest(word, words))
        return word

    return read


def read_two(entry: YamlEntry) -> list[YamlEntry]:
    """Return the members of a list of two."""
    parts = entry.listed()
    if len(parts) != 2:
        raise entry.refuse("must have two parts", given=entry.plain(), fix="Write [first, second].")
    return parts


_VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
_NO_VALUES: Final = ("required", "dependentRequired", "propertyNames", "not", "enum", "const")


def or_variables(schema: Any) -> Any:
    """Return a schema that takes a text with a variable, such as `${DATE}`, in the place of every single value."""
    if isinstance(schema, list):
        return [or_variables(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: value if key in _NO_VALUES else or_variables(value) for key, value in schema.items()}
    is_single = isinstance(schema.get("enum"), list) or isinstance(schema.get("pattern"), str)
    if not is_single and schema.get("type") not in ("number", "integer", "boolean"):
        return found
    described = {"description": found.pop("description")} if "description" in found else {}
    return {**described, "anyOf": [found, _VARIABLE]}
